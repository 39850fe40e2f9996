"""What a message shows of a value: at most a part of one line."""

from __future__ import annotations

import numpy as np
import pytest

from ndcg_ml._one_line import shown, shown_text


class _NoRepr:
    def __repr__(self) -> str:
        raise RuntimeError("no text of this one")


@pytest.mark.parametrize("value", ["q1", b"\x00", 3, 2.5, None, ("a", 1), [1, 2, 3], "two  spaces", "x" * 80, "é\n"])
def test_a_short_value_is_its_repr(value):
    assert shown(value) == repr(value)


@pytest.mark.parametrize(
    "value",
    [
        "begin" + "x" * 10_000_000 + "end",
        b"begin" + b"x" * 10_000_000 + b"end",
        np.str_("begin" + "x" * 10_000_000 + "end"),
        ("begin" + "x" * 10_000_000 + "end",),
        "begin" + "\x00" * 1_000 + "end",
    ],
    ids=["str", "bytes", "numpy", "tuple", "escapes"],
)
def test_a_long_value_shows_both_ends_on_part_of_a_line(value):
    text = shown(value)
    assert len(text) <= 100
    assert "begin" in text
    assert "..." in text
    assert "end" in text[-10:]


@pytest.mark.parametrize(
    "value",
    [np.arange(1000.0).reshape(10, 100), list(range(100_000)), 10**10_000, _NoRepr()],
    ids=["array", "list", "integer", "no repr"],
)
def test_any_value_fits_on_a_line(value):
    text = shown(value)
    assert 0 < len(text) <= 100
    assert text.isprintable()


def test_the_message_of_another_error_is_cut_alike():
    assert shown_text("could not convert") == "could not convert"
    text = shown_text("first line\nsecond " + "x" * 1_000_000)
    assert text.startswith("first line second")
    assert len(text) <= 100
