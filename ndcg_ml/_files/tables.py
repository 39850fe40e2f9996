"""Read tables of text: JSONL, and CSV and TSV with a header line, such as BEIR's judgements."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import IO, Any, NamedTuple, TypeAlias

from ndcg_ml._core.one_line import brief_text
from ndcg_ml._files.cells import kind, parse_csv_cell, parse_json_cell
from ndcg_ml._files.json_text import objects
from ndcg_ml._files.opening import AnyPath, DataFileError, as_text, choose_columns, numbered

ColumnNames: TypeAlias = "Mapping[Any, str] | Callable[[Sequence[str]], Mapping[Any, str]]"
"""The column name of each meaning, or a callable that returns these for the names in a file."""


class TextTable(NamedTuple):
    """The column names of a file, its numbered records, and the function that parses a cell."""

    names: list[str]
    records: Iterable[tuple[int, Mapping[str, Any]]]
    cell: Callable[[AnyPath, int, str, Any, str], Any]


def detect_delimiter(header: str) -> str:
    """Return a tab if the header has one, a semicolon if it has one and no comma, otherwise a comma."""
    if "\t" in header:
        return "\t"
    return ";" if ";" in header and "," not in header else ","


def csv_table(path: AnyPath, file: IO[bytes] | None = None) -> TextTable:
    """Return the table of a CSV file. Each row must be on one line."""
    rows = _csv_rows(path, file)
    _, header = next(rows, (1, []))

    def records() -> Iterator[tuple[int, Mapping[str, str]]]:
        for number, row in rows:
            if len(row) != len(header):
                raise DataFileError(
                    f"{path}, line {number}: must have {len(header)} fields, like the header; got {len(row)}."
                )
            yield number, dict(zip(header, row, strict=True))

    return TextTable(header, records(), parse_csv_cell)


def _csv_rows(path: AnyPath, file: IO[bytes] | None) -> Iterator[tuple[int, list[str]]]:
    delimiter = None
    for number, line in numbered(path, file=file):
        if not line:
            continue
        text = as_text(line)
        delimiter = delimiter or detect_delimiter(text)
        try:
            [row] = csv.reader([text], delimiter=delimiter, strict=True)
        except csv.Error as error:
            why = str(error)
            if why == "unexpected end of data":
                why = "a field in quotes must end on its line"
            raise DataFileError(f"{path}, line {number}: not CSV: {brief_text(why)}.") from error
        yield number, row


def json_table(path: AnyPath, file: IO[bytes] | None = None) -> TextTable:
    """Return the table of a JSONL file. Its columns are the keys of the first line."""
    lines = objects(path, file)
    first = next(lines)
    return TextTable([*first[1]], chain([first], lines), parse_json_cell)


def text_columns(
    path: AnyPath, table: TextTable, names: ColumnNames, optional: Sequence[str] = ()
) -> tuple[dict[Any, list[Any]], list[int]]:
    """Return columns by meaning, as lists of ids or numbers, and the line of each row.

    Raises
    ------
    DataFileError
        A column is missing or repeated, a line lacks a key or has more or fewer fields than the header, or a cell is
        invalid for its column.
    """
    called = names(table.names) if callable(names) else names
    chosen = choose_columns(path, table.names, [name for name in called.values() if name not in optional], optional)
    columns: dict[Any, list[Any]] = {meaning: [] for meaning, name in called.items() if name in chosen}
    at_lines: list[int] = []
    for number, record in table.records:
        for meaning, column in columns.items():
            name = called[meaning]
            if name not in record:
                raise DataFileError(
                    f"{path}, line {number}: must have the key {name}, like the first line; it is missing."
                )
            column.append(table.cell(path, number, name, record[name], kind(meaning)))
        at_lines.append(number)
    return columns, at_lines
