"""A table of text, printed as text, HTML or Markdown: results say their cells, and this how they look."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ndcg_ml._one_line import visible
from ndcg_ml._text.escaping import escaped, in_markdown, markdown_paragraph

if TYPE_CHECKING:
    import pandas as pd

# Colours are the page's own, or see-through, so that nothing has to be known about the theme.
_LINE = "1px solid rgba(128,128,128,.4)"
_CELL = f"padding:.2em .8em;border:none;border-bottom:{_LINE};color:inherit;vertical-align:top"
_MARK = "background:rgba(230,159,0,.25);font-weight:600"
_TABLE = "border-collapse:collapse;border:none;margin:.3em 0;font-size:1em;font-variant-numeric:tabular-nums"
_CAPTION = "caption-side:top;text-align:left;padding:.2em 0;color:inherit;overflow-wrap:anywhere"


@dataclass(frozen=True, slots=True)
class Table:
    """Cells of text under a head. Whatever a cell holds, it stays one cell on one line.

    Attributes
    ----------
    head : sequence of str
        Names of the columns.
    rows : sequence of sequences of str
        As many cells per row as there are columns.
    align : str
        A letter per column: ``l`` for words, flush left, or ``r`` for numbers, flush right. A shorter text stands for
        itself and ``r`` in all other columns.
    marked : collection of int, default ()
        The rows, from 0, that have another background in HTML. Say in words, too, what it means.
    caption : str, default ""
        Description of the table; "" for none.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    align: str = "l"
    marked: Collection[int] = ()
    caption: str = ""

    def sides(self) -> str:
        """``align`` with a letter for every column."""
        return self.align.ljust(len(self.head), "r")

    def text(self) -> str:
        """Columns of equal width, two blanks apart, with the caption below.

        Line ends, control characters and those that change the direction of writing are printed as escapes.
        """
        lines = [[visible(cell) for cell in row] for row in (self.head, *self.rows)]
        widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
        padded = (
            "  ".join(
                f"{' ' * (width - _width(cell))}{cell}" if side == "r" else f"{cell}{' ' * (width - _width(cell))}"
                for cell, width, side in zip(line, widths, self.sides(), strict=True)
            ).rstrip()
            for line in lines
        )
        return "\n".join([*padded, *[visible(self.caption)] * bool(self.caption)])

    def html(self) -> str:
        """An element ``<table>`` with its styles, which reads on light and on dark pages."""

        def line(tag: str, cells: Sequence[str], style: str = "") -> str:
            scope = ' scope="col"' if tag == "th" else ""
            inner = "".join(
                f'<{tag}{scope} style="{_CELL};text-align:{"left" if side == "l" else "right;white-space:nowrap"}'
                f'{style}">{escaped(cell)}</{tag}>'
                for side, cell in zip(self.sides(), cells, strict=True)
            )
            return f"<tr>{inner}</tr>"

        body = "\n".join(line("td", row, f";{_MARK}" if at in self.marked else "") for at, row in enumerate(self.rows))
        above = f'<caption style="{_CAPTION}">{escaped(self.caption)}</caption>\n' if self.caption else ""
        head = line("th", self.head)
        return f'<table style="{_TABLE}">\n{above}<thead>{head}</thead>\n<tbody>\n{body}\n</tbody>\n</table>'

    def markdown(self) -> str:
        """A table of GitHub's Markdown, with the caption below. No cell is read as markup."""
        rule = ["---" if side == "l" else "--:" for side in self.sides()]
        lines = [list(map(in_markdown, row)) for row in (self.head, *self.rows)]
        table = [f"| {' | '.join(line)} |" for line in (lines[0], rule, *lines[1:])]
        caption = markdown_paragraph(self.caption)
        return "\n".join([*table, *["", caption] * bool(caption), ""])


def pandas_frame(result: str, rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The rows as a DataFrame; `result` is whose ``to_frame`` asks.

    Raises
    ------
    ImportError
        pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(f"{result}.to_frame needs pandas. Install it with: pip install pandas") from error
    return pd.DataFrame(rows)


def _width(text: str) -> int:
    """Number of columns of a terminal that the text takes: two for a wide letter of East Asia, none for an accent."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(unicodedata.combining(letter) > 0 for letter in text)
