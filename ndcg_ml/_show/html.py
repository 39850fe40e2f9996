"""Results as HTML for notebooks and reports: small tables without scripts, which read on light and on dark pages."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape

__all__ = ["block", "escaped", "paragraph", "table"]

# Colours are the page's own, or see-through, so that nothing has to be known about the theme.
_LINE = "1px solid rgba(128,128,128,.4)"
_CELL = f"padding:.2em .8em;border:none;border-bottom:{_LINE};color:inherit;vertical-align:top"
_MARK = "background:rgba(230,159,0,.25);font-weight:600"
_BLOCK = "overflow-x:auto;font-size:.9em;line-height:1.4"
_TABLE = "border-collapse:collapse;border:none;margin:.3em 0;font-size:1em;font-variant-numeric:tabular-nums"
_CAPTION = "caption-side:top;text-align:left;padding:.2em 0;color:inherit;overflow-wrap:anywhere"


def escaped(text: str) -> str:
    """Text that shows as it is, between tags and in attributes, and that can be written as UTF-8."""
    return escape(text).encode("utf-8", "xmlcharrefreplace").decode("utf-8")


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    caption: str = "",
    *,
    left: int = 1,
    marked: Collection[int] = (),
) -> str:
    """A table of text, which is escaped here.

    Parameters
    ----------
    head : sequence of str
        Names of the columns.
    rows : sequence of sequences of str
        Cells, as many per row as there are columns.
    caption : str, default ""
        Above the table; "" for none.
    left : int, default 1
        This many columns are words and flush left; the others are numbers and flush right.
    marked : collection of int, default ()
        The rows, from 0, that have another background. Say in words, too, what it means.

    Returns
    -------
    str
    """

    def line(tag: str, cells: Sequence[str], style: str = "") -> str:
        scope = ' scope="col"' if tag == "th" else ""
        sides = ["left" if at < left else "right;white-space:nowrap" for at in range(len(cells))]
        inner = "".join(
            f'<{tag}{scope} style="{_CELL};text-align:{side}{style}">{escaped(cell)}</{tag}>'
            for side, cell in zip(sides, cells, strict=True)
        )
        return f"<tr>{inner}</tr>"

    body = "\n".join(line("td", row, f";{_MARK}" if at in marked else "") for at, row in enumerate(rows))
    above = f'<caption style="{_CAPTION}">{escaped(caption)}</caption>\n' if caption else ""
    return f'<table style="{_TABLE}">\n{above}<thead>{line("th", head)}</thead>\n<tbody>\n{body}\n</tbody>\n</table>'


def paragraph(text: str) -> str:
    """A paragraph of text, which is escaped here."""
    return f'<p style="margin:.3em 0;overflow-wrap:anywhere">{escaped(text)}</p>'


def block(*parts: str) -> str:
    """Tables and paragraphs together, as ``_repr_html_`` returns them."""
    return "\n".join([f'<div style="{_BLOCK}">', *parts, "</div>"])
