"""Parse the cells of text files: which ids, labels and scores are valid in CSV and in JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ndcg_ml._core.column_names import kind
from ndcg_ml._core.json_values import json_repr
from ndcg_ml._core.layout import FloatArray
from ndcg_ml._files.opening import ROUNDED, DataFileError, as_number, is_rounded
from ndcg_ml._plain.checks import EXACT_INTEGERS

NUMBERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "label": (np.isinf, "finite, or empty for an unjudged document"),
    "score": (np.isnan, "a number, and not NaN"),
}
"""Kinds of numeric columns: which numbers are wrong, and the allowed ones, for a message. A label may be missing."""

_NOT_IN_IDS = re.compile("[\n\r\ud800-\udfff]")  # the last cannot be encoded

WORDS = "Map words to numbers, such as frame['label'].map({'Bad': 0, 'Good': 1}) in pandas, and pass the frame."


def read_column(place: Callable[[int], str], name: str, cells: Sequence[Any], meaning: Any, text: bool = False) -> Any:
    """Return a column as a list of ids or an array of numbers, from values of JSON or, with `text`, cells of CSV.

    Usual cells are checked all at once. In other cases, each is parsed, with the same result or an error. `place`
    describes a row, by its index.

    Raises
    ------
    DataFileError
        A cell is invalid.
    """
    types, what = set(map(type, cells)), kind(meaning)
    if what not in NUMBERS:
        if types == {int}:
            return list(map(str, cells))
        usual = types == {str} and all(cells) and not _NOT_IN_IDS.search("".join(cells))
        return list(cells) if usual else [parse_id(place(row), name, cell) for row, cell in enumerate(cells)]
    values = usual_numbers(cells, what, text)
    if values is not None:
        return values
    parsed = (_from_text(cell, what) for cell in cells) if text else cells
    return np.array([parse_number(place(row), name, cell, what) for row, cell in enumerate(parsed)])


def usual_numbers(cells: Sequence[Any], what: str, text: bool) -> FloatArray | None:
    """Return numbers if all are valid and written like numbers of other readers; otherwise return None."""
    if text and (not (joined := "".join(cells)).isascii() or "_" in joined):  # Python reads 1_000 and other digits
        return None
    try:
        usual = text or set(map(type, cells)) <= {float, int}
        values = np.fromiter(map(float, cells), np.float64, len(cells)) if usual else None
    except (ValueError, OverflowError):
        return None
    if values is None or NUMBERS[what][0](values).any():
        return None
    large = np.flatnonzero(np.abs(values) >= EXACT_INTEGERS).tolist()
    return None if any(is_rounded(str(cells[at]).encode()) for at in large) else values


def _from_text(cell: str, what: str) -> Any:
    """Return the value of a cell of CSV as in JSON; the cell itself if it is not a number."""
    token, word = cell.encode("utf-8", "surrogateescape"), cell.strip().casefold()
    if what == "label" and word in ("", "true", "false"):
        return None if not word else word == "true"
    number = as_number(token)
    return cell if number is None else int(cell) if is_rounded(token) else number


def parse_number(place: str, name: str, value: Any, what: str) -> float:
    """Parse a label or a score of JSON."""
    if what == "label" and value is None:
        return math.nan
    if type(value) not in (float, int, bool):
        hint = _hint(value.strip(), what) if isinstance(value, str) else ""
        raise DataFileError(f"{place}: {name} must be a number; got {json_repr(value)}.{hint}")
    if type(value) is int and abs(value) > EXACT_INTEGERS:
        raise DataFileError(f"{place}: {name}: {ROUNDED}; got {json_repr(value)}.")
    is_wrong, allowed = NUMBERS[what]
    if is_wrong(value):
        raise DataFileError(f"{place}: {name} must be {allowed}; got {value}.")
    return float(value)


def _hint(cell: str, what: str) -> str:
    if what == "label" and cell.casefold() in ("na", "n/a", "none", "null", "<na>", "-"):
        return " Leave the cell empty if the document is unjudged."
    if re.fullmatch(r"[+-]?\d+,\d{3}", cell):
        return " The comma may be a decimal one or one of thousands: write a decimal point, or no comma."
    if re.fullmatch(r"[+-]?\d*,\d+", cell):
        return " Write a decimal point, not a comma."
    return f" {WORDS}" * (what == "label" and cell.isalpha())


def parse_id(place: str, name: str, value: Any) -> str:
    """Parse an id of CSV, or one that is a string or an integer in JSON."""
    if type(value) is int:
        return str(value)
    if not isinstance(value, str) or not value or _NOT_IN_IDS.search(value):
        raise DataFileError(
            f"{place}: {name} must be an id: a string or an integer, in UTF-8 and without a line end; got "
            f"{json_repr(value)}."
        )
    return value
