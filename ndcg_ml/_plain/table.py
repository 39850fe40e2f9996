"""The rows of a result, printed as text, HTML or Markdown."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import TYPE_CHECKING, Any, NamedTuple

from ndcg_ml._plain.flavor_text import at_cutoff
from ndcg_ml._plain.messages import escape_markdown, escaped, markdown_paragraph, visible

if TYPE_CHECKING:
    import pandas as pd

# Colours are translucent, so that tables are readable in light and dark themes.
_LINE = "1px solid rgba(128,128,128,.4)"
_CELL = f"padding:.2em .8em;border:none;border-bottom:{_LINE};color:inherit;vertical-align:top"
_MARK = "background:rgba(230,159,0,.25);font-weight:600"
_TABLE = "border-collapse:collapse;border:none;margin:.3em 0;font-size:1em;font-variant-numeric:tabular-nums"
_CAPTION = "caption-side:top;text-align:left;padding:.2em 0;color:inherit;overflow-wrap:anywhere"


class Column(NamedTuple):
    """A column of a printed table.

    Attributes
    ----------
    heading : str
    cell : str
        Format string for the values of a row, such as ``"{low:+.{digits}f} to {high:+.{digits}f}"``. The format ``p``
        is for probabilities, ``@`` for cut-offs. A cell is "-" if the row lacks one of its values, or if a number is
        None, nan or infinite.
    align : str, default "r"
        ``l`` for text, flush left, which HTML breaks anywhere; ``w`` for a word, flush left; ``r`` for numbers, flush
        right.
    """

    heading: str
    cell: str
    align: str = "r"


@dataclass(frozen=True, slots=True)
class Record:
    """Rows of values, and the columns that are printed. Each cell is one line.

    Attributes
    ----------
    columns : sequence of Column
    rows : sequence of mapping
        The values of each row by name.
    marked : collection of int, default ()
        Rows, from 0, that are highlighted in HTML.
    caption : str, default ""
        Description of the table; "" for none.
    digits : int, default 4
        Decimals of numbers whose format contains ``{digits}``.
    """

    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Any]]
    marked: Collection[int] = ()
    caption: str = ""
    digits: int = 4

    def cells(self) -> list[list[str]]:
        """Return the cells as text, with the headings as the first row."""
        body = [[_cell(column.cell, {**row, "digits": self.digits}) for column in self.columns] for row in self.rows]
        return [[column.heading for column in self.columns], *body]

    def frame(self, result: str) -> pd.DataFrame:
        """Return the rows as a DataFrame. `result` is the class to name in an error message.

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(f"{result}.to_frame needs pandas. Install it with: pip install pandas") from error
        return pd.DataFrame(self.rows)

    def text(self) -> str:
        """Return aligned columns, two blanks apart, with the caption below.

        Line ends and control characters, including those for writing direction, are escaped.
        """
        lines = [[visible(cell) for cell in row] for row in self.cells()]
        widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
        padded = (
            "  ".join(
                f"{' ' * (width - _width(cell))}{cell}"
                if column.align == "r"
                else f"{cell}{' ' * (width - _width(cell))}"
                for cell, width, column in zip(line, widths, self.columns, strict=True)
            ).rstrip()
            for line in lines
        )
        return "\n".join([*padded, *[visible(self.caption)] * bool(self.caption)])

    def html(self) -> str:
        """Return a ``<table>`` element with its styles, for light and dark pages."""
        whole = ";white-space:nowrap"
        sides = {"l": "left;overflow-wrap:anywhere", "w": f"left{whole}", "r": f"right{whole}"}

        def line(tag: str, cells: Sequence[str], style: str = "") -> str:
            scope = ' scope="col"' if tag == "th" else ""
            inner = "".join(
                f'<{tag}{scope} style="{_CELL};text-align:{sides[column.align]}{style}">{escaped(cell)}</{tag}>'
                for column, cell in zip(self.columns, cells, strict=True)
            )
            return f"<tr>{inner}</tr>"

        headings, *rows = self.cells()
        body = "\n".join(line("td", row, f";{_MARK}" if at in self.marked else "") for at, row in enumerate(rows))
        above = f'<caption style="{_CAPTION}">{escaped(self.caption)}</caption>\n' if self.caption else ""
        head = line("th", headings)
        return f'<table style="{_TABLE}">\n{above}<thead>{head}</thead>\n<tbody>\n{body}\n</tbody>\n</table>'

    def markdown(self) -> str:
        """Return a table in GitHub's Markdown, with the caption below. Text is escaped."""
        rule = ["--:" if column.align == "r" else "---" for column in self.columns]
        lines = [list(map(escape_markdown, row)) for row in self.cells()]
        table = [f"| {' | '.join(line)} |" for line in (lines[0], rule, *lines[1:])]
        caption = markdown_paragraph(self.caption)
        return "\n".join([*table, *["", caption] * bool(caption), ""])


class _UnknownError(Exception):
    """A value of a cell is missing."""


class _Cells(Formatter):
    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if key not in kwargs:
            raise _UnknownError
        return kwargs[str(key)]

    def format_field(self, value: Any, format_spec: str) -> str:
        if not format_spec:
            return str(value)
        if format_spec == "@":
            return at_cutoff(value)
        if value is None or not math.isfinite(value):
            raise _UnknownError
        if not format_spec.endswith("p"):
            return format(value, format_spec)
        text = format(value, f"{format_spec[:-1]}f")  # a p-value is never 0
        return text if float(text) else f"<{10.0 ** -int(format_spec[1:-1]):g}"


def _cell(template: str, values: Mapping[str, Any]) -> str:
    try:
        return _Cells().vformat(template, (), values)
    except _UnknownError:
        return "-"


def _width(text: str) -> int:
    """Return the width in terminal columns: 2 for a wide East Asian character, 0 for a combining accent."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(unicodedata.combining(letter) > 0 for letter in text)
