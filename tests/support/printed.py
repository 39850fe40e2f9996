"""Compare what the code of a page prints with what the page shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

_BLOCK = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
_NUMBER = re.compile(r"(?<![\w@])[+-]?\d*\.?\d+")


def code_and_output(page: Path) -> list[tuple[str, str]]:
    """Return each block of Python that is followed by its output, and the output."""
    return _BLOCK.findall(page.read_text(encoding="utf-8"))


def assert_shown(printed: str, shown: str, slack: float | Sequence[float] = 1e-12) -> None:
    """Compare the words exactly, and the numbers with this slack."""
    assert _NUMBER.sub("#", printed) == _NUMBER.sub("#", shown)
    got, want = (np.array([*map(float, _NUMBER.findall(text))]) for text in (printed, shown))
    assert (abs(got - want) <= slack).all(), printed
