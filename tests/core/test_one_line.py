"""Messages show a value on part of one line."""

from __future__ import annotations

import numpy as np
import pytest

from ndcg_ml import Flavor


class _NoRepr:
    def __repr__(self) -> str:
        raise RuntimeError("no text of this one")


def message(value: object) -> str:
    with pytest.raises((TypeError, ValueError)) as raised:
        Flavor(ties=value)
    return str(raised.value)


@pytest.mark.parametrize("value", ["q1", b"\x00", 3, 2.5, None, ("a", 1), "two  spaces", "x" * 80, "é\n"])
def test_a_short_value_is_its_repr(value):
    assert repr(value) in message(value)


@pytest.mark.parametrize(
    "value",
    [
        "begin" + "x" * 10_000_000 + "end",
        b"begin" + b"x" * 10_000_000 + b"end",
        ("begin" + "\x00" * 1_000 + "end",),
    ],
    ids=["str", "bytes", "escapes"],
)
def test_a_long_value_shows_both_ends(value):
    text = message(value)
    assert len(text) <= 300
    assert "begin" in text
    assert "..." in text
    assert "end" in text


@pytest.mark.parametrize(
    "value",
    [np.arange(1000.0).reshape(10, 100), list(range(100_000)), 10**10_000, _NoRepr()],
    ids=["array", "list", "integer", "no repr"],
)
def test_any_value_fits_on_a_line(value):
    text = message(value)
    assert len(text) <= 300
    assert text.isprintable()
