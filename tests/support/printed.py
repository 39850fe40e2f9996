"""Run the code of a page, and compare what it prints with what the page shows."""

import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

_BLOCK = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
_NUMBER = re.compile(r"(?<![\w@])[+-]?\d*\.?\d+")


def blocks(page: Path, section: str = "") -> list[str]:
    """Return the blocks of Python of a page, or of one section."""
    text = page.read_text(encoding="utf-8")
    if section:
        [text] = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


def run_blocks(capsys: Any, *code: str, scope: dict[str, Any] | None = None) -> list[str]:
    """Run blocks one after another with the same names, and return what each prints."""
    scope, printed = {} if scope is None else scope, []
    for block in code:
        exec(compile(block, "a page", "exec"), scope)
        printed.append(capsys.readouterr().out)
    return printed


def run_script(folder: Path, *code: str, **environment: str) -> str:
    """Run code as a script and return what it prints. If it hangs, end it with all its children.

    Tools warn of one another, start threads and processes, and change global state: none of it is this process's.
    """
    script = folder / "script.py"
    lines = textwrap.indent("\n".join(map(textwrap.dedent, code)), "    ")
    script.write_text(f'if __name__ == "__main__":\n{lines}', encoding="utf-8")
    quiet = {"OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", str(script)],
        cwd=folder,
        env={**os.environ, **quiet, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, error = process.communicate(timeout=240)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert process.returncode == 0, error[-3000:]
    return out


def documented() -> list[str]:
    """Return the names that the reference has."""
    pages = (Path(__file__).parents[2] / "docs" / "api").glob("*.md")
    return [name for page in pages for name in re.findall(r"^::: (\S+)$", page.read_text("utf-8"), re.MULTILINE)]


def code_and_output(page: Path) -> list[tuple[str, str]]:
    """Return each block of Python that is followed by its output, and the output."""
    return _BLOCK.findall(page.read_text(encoding="utf-8"))


def with_table(text: str, name: str, lines: Iterable[str]) -> str:
    """Return the text of a page with these lines between the marks of this name and the blank lines within them."""
    before, begin, end, after = re.fullmatch(
        rf"(.*)(<!-- {name}: [^\n]*-->\n+)(?:\|[^\n]*\n)*(\n*<!-- end of {name} -->\n)(.*)", text, re.DOTALL
    ).groups()
    return before + begin + "".join(f"{line}\n" for line in lines) + end + after


def assert_shown(printed: str, shown: str, slack: float | Sequence[float] = 1e-12) -> None:
    """Compare the words exactly, and the numbers with this slack."""
    assert _NUMBER.sub("#", printed) == _NUMBER.sub("#", shown)
    got, want = (np.array([*map(float, _NUMBER.findall(text))]) for text in (printed, shown))
    assert (abs(got - want) <= slack).all(), printed
