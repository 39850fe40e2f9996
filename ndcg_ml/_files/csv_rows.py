"""CSV and TSV: columns of a file whose first line is a header. BEIR's judgements are such a file."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import IO, Any

from ndcg_ml._files.cells import cell_of_text
from ndcg_ml._files.lines import AnyPath, DataFileError, as_text, chosen_columns, numbered
from ndcg_ml._one_line import shown_text


def delimiter_of(header: str) -> str:
    """What separates the columns: tabs if the header line holds one, semicolons if it has those and no comma."""
    if "\t" in header:
        return "\t"
    return ";" if ";" in header and "," not in header else ","


def read_csv(
    path: AnyPath,
    names: Mapping[str, str] | Callable[[Sequence[str]], Mapping[str, str]],
    optional: Sequence[str] = (),
    file: IO[bytes] | None = None,
) -> tuple[dict[str, list[Any]], list[int]]:
    """Columns by their meaning, as lists of ids and of numbers; and the line of each row.

    Parameters
    ----------
    path : path
    names : mapping, or callable that makes it from the header
        The name of the column of each meaning.
    optional : sequence of str
        Names of columns that the file may lack.
    file : binary file, optional
        The file, where it is open already.

    Raises
    ------
    DataFileError
        A column is missing or appears twice, a line has more or fewer fields than the header, or a cell is not what
        its column must hold.
    """
    lines: Iterator[str] = (as_text(line) for _, line in numbered(path, keep_ends=True, file=file))
    first = next(lines, "")
    reader = csv.reader(chain([first], lines), delimiter=delimiter_of(first), strict=True)
    at_lines: list[int] = []
    try:
        header = next(reader, [])
        called = names(header) if callable(names) else names
        needed = [name for name in called.values() if name not in optional]
        chosen = chosen_columns(path, header, needed, optional)
        wanted = {meaning: header.index(name) for meaning, name in called.items() if name in chosen}
        cells: dict[str, list[Any]] = {meaning: [] for meaning in wanted}
        for row in reader:
            if not row:
                continue
            number = reader.line_num
            if len(row) != len(header):
                raise DataFileError(
                    f"{path}, line {number}: must have {len(header)} fields, as the header; got {len(row)}."
                )
            for meaning, at in wanted.items():
                cells[meaning].append(cell_of_text(path, number, called[meaning], row[at], meaning))
            at_lines.append(number)
    except csv.Error as error:
        raise DataFileError(f"{path}, line {reader.line_num}: not CSV: {shown_text(str(error))}.") from error
    return cells, at_lines
