"""Tables of text: CSV and TSV, whose first line is a header, and JSONL. BEIR's judgements are such a file."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import IO, Any, NamedTuple, TypeAlias

from ndcg_ml._files.cells import cell_of_json, cell_of_text, kind
from ndcg_ml._files.json_text import objects
from ndcg_ml._files.lines import AnyPath, DataFileError, as_text, chosen_columns, numbered
from ndcg_ml._one_line import brief_text

ColumnNames: TypeAlias = "Mapping[Any, str] | Callable[[Sequence[str]], Mapping[Any, str]]"
"""The name of the column of each meaning, or a callable that makes these from the names that a file has."""


class TextTable(NamedTuple):
    """The names of the columns of a file, its records with their lines, and how to read a value of one."""

    names: list[str]
    records: Iterable[tuple[int, Mapping[str, Any]]]
    cell: Callable[[AnyPath, int, str, Any, str], Any]


def delimiter_of(header: str) -> str:
    """Return what separates the columns: tabs if the header has one, semicolons if it has those and no comma."""
    if "\t" in header:
        return "\t"
    return ";" if ";" in header and "," not in header else ","


def csv_table(path: AnyPath, file: IO[bytes] | None = None) -> TextTable:
    """Return the table of a CSV file. Every row must be on one line."""
    rows = _csv_rows(path, file)
    _, header = next(rows, (1, []))

    def records() -> Iterator[tuple[int, Mapping[str, str]]]:
        for number, row in rows:
            if len(row) != len(header):
                raise DataFileError(
                    f"{path}, line {number}: must have {len(header)} fields, as the header; got {len(row)}."
                )
            yield number, dict(zip(header, row, strict=True))

    return TextTable(header, records(), cell_of_text)


def _csv_rows(path: AnyPath, file: IO[bytes] | None) -> Iterator[tuple[int, list[str]]]:
    delimiter = None
    for number, line in numbered(path, file=file):
        if not line:
            continue
        text = as_text(line)
        delimiter = delimiter or delimiter_of(text)
        try:
            [row] = csv.reader([text], delimiter=delimiter, strict=True)
        except csv.Error as error:
            why = str(error)
            if why == "unexpected end of data":
                why = "a field in quotes must end on its line"
            raise DataFileError(f"{path}, line {number}: not CSV: {brief_text(why)}.") from error
        yield number, row


def json_table(path: AnyPath, file: IO[bytes] | None = None) -> TextTable:
    """Return the table of a JSONL file, whose columns are the keys of its first line."""
    lines = objects(path, file)
    first = next(lines)
    return TextTable([*first[1]], chain([first], lines), cell_of_json)


def text_columns(
    path: AnyPath, table: TextTable, names: ColumnNames, optional: Sequence[str] = ()
) -> tuple[dict[Any, list[Any]], list[int]]:
    """Return columns by their meaning, as lists of ids and of numbers; and the line of each row.

    Raises
    ------
    DataFileError
        A column is missing or appears twice, a line lacks a key, has more or fewer fields than the header, or a cell is
        not what its column must hold.
    """
    called = names(table.names) if callable(names) else names
    chosen = chosen_columns(path, table.names, [name for name in called.values() if name not in optional], optional)
    columns: dict[Any, list[Any]] = {meaning: [] for meaning, name in called.items() if name in chosen}
    at_lines: list[int] = []
    for number, record in table.records:
        for meaning, column in columns.items():
            name = called[meaning]
            if name not in record:
                raise DataFileError(
                    f"{path}, line {number}: must have the key {name}, as the first line; it is missing."
                )
            column.append(table.cell(path, number, name, record[name], kind(meaning)))
        at_lines.append(number)
    return columns, at_lines
