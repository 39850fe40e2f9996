"""Parse the cells of a table: ids, grades, scores, and labels, which may be missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.checks import EXACT_INTEGERS
from ndcg_ml._core.one_line import brief
from ndcg_ml._files.opening import ROUNDED, AnyPath, DataFileError, as_number, decode_id, describe_place, is_rounded

NUMBERS = ("label", "grade", "score")
"""Meanings of numeric columns. A label may be missing, if a document is unjudged; a grade may not."""


def kind(meaning: Any) -> Any:
    """Return the kind of a column. Several columns of one kind have meanings such as ("score", "bm25")."""
    return meaning[0] if isinstance(meaning, tuple) else meaning


_MISSING = ("na", "n/a", "none", "null", "<na>", "-")


def allowed_values(meaning: str) -> str:
    """Return the allowed numbers with this meaning, for an error message."""
    return {
        "label": "finite, or empty for an unjudged document",
        "grade": "a finite number",
        "score": "a number, and not NaN",
    }[meaning]


def is_wrong(meaning: str, value: float) -> bool:
    """Return whether a number is invalid for this meaning."""
    if meaning == "grade":
        return not math.isfinite(value)
    return math.isinf(value) if meaning == "label" else math.isnan(value)


def are_wrong(meaning: str, values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return whether each number is invalid for this meaning."""
    if meaning == "grade":
        return ~np.isfinite(values)
    return np.isinf(values) if meaning == "label" else np.isnan(values)


def parse_csv_cell(path: AnyPath, number: int, name: str, cell: str, meaning: str) -> str | float:
    """Parse a cell of the CSV column `name` on line `number`."""
    if meaning not in NUMBERS:
        if not cell or "\0" in cell:
            raise DataFileError(f"{path}, line {number}: {name} must be an id; got {brief(cell)}.")
        return decode_id(path, number, cell.encode("utf-8", "surrogateescape"))
    if meaning == "label" and not cell.strip():
        return math.nan
    token = cell.encode("utf-8", "surrogateescape")
    value = as_number(token)
    if value is None:
        raise DataFileError(f"{path}, line {number}: {name} must be a number; got {brief(cell)}.{_hint(cell, meaning)}")
    if is_wrong(meaning, value):
        raise DataFileError(f"{path}, line {number}: {name} must be {allowed_values(meaning)}; got {value}.")
    if abs(value) >= EXACT_INTEGERS and is_rounded(token):
        raise DataFileError(f"{path}, line {number}: {name}: {ROUNDED}; got {brief(cell)}.")
    return value


def _hint(cell: str, meaning: str) -> str:
    if meaning == "label" and cell.strip().casefold() in _MISSING:
        return " Leave the cell empty if the document is unjudged."
    if as_number(cell.replace(",", ".", 1).encode("utf-8", "surrogateescape")) is not None:
        return " Write a decimal point, not a comma."
    return ""


def parse_json_cell(path: AnyPath, number: int | None, name: str, value: Any, meaning: str) -> Any:
    """Parse a value of a JSON object, an id or a number; `number` is its line, if known."""
    if meaning not in NUMBERS:
        return parse_json_id(path, number, name, value)
    if meaning == "label" and value is None:
        return math.nan
    if type(value) not in (float, int, bool):
        raise DataFileError(f"{describe_place(path, number)}: {name} must be a number; got {json_repr(value)}.")
    if type(value) is int and abs(value) > EXACT_INTEGERS:
        raise DataFileError(f"{describe_place(path, number)}: {name}: {ROUNDED}; got {brief(value)}.")
    if is_wrong(meaning, value):
        raise DataFileError(f"{describe_place(path, number)}: {name} must be {allowed_values(meaning)}; got {value}.")
    return float(value)


def parse_json_id(path: AnyPath, number: int | None, name: str, value: Any) -> str:
    """Parse an id that is a string or an integer in JSON."""
    if type(value) is int:
        return str(value)
    if not isinstance(value, str) or not value:
        raise DataFileError(
            f"{describe_place(path, number)}: {name} must be an id, a string or an integer; got {json_repr(value)}."
        )
    if "\n" in value or "\r" in value:
        raise DataFileError(
            f"{describe_place(path, number)}: {name} must be an id without a line end; got {brief(value)}."
        )
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise DataFileError(
                f"{describe_place(path, number)}: {name} must be a string that UTF-8 can encode; got "
                f"{brief(value)}, which has an unpaired surrogate."
            ) from error
    return value


def json_repr(value: Any) -> str:
    """Format a value for an error message, in JSON's terms."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        return "an object"
    return "an array" if isinstance(value, list) else brief(value)


def find_columns(path: AnyPath, of: str, columns: Sequence[str]) -> dict[str, str]:
    """Return the names of the columns of a table that hold topics, documents and values of qrels or of a run.

    They are ``qid``, ``docno`` and ``score`` (in qrels, ``label`` or ``grade``); or BEIR's ``query-id``,
    ``corpus-id`` and ``score``, which is the grade in qrels.
    """
    meaning = "grade" if of == "qrels" else "score"
    if "query-id" in columns or "corpus-id" in columns:
        return {"qid": "query-id", "docno": "corpus-id", meaning: "score"}
    if of == "run":
        return {"qid": "qid", "docno": "docno", "score": "score"}
    if "label" in columns and "grade" in columns:
        raise DataFileError(f"{path}: must have the column label or the column grade; got both. Remove one.")
    return {"qid": "qid", "docno": "docno", "grade": "grade" if "grade" in columns else "label"}
