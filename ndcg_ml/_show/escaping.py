"""Results as HTML for notebooks and reports: what stands around their tables, and how text is escaped."""

from __future__ import annotations

from html import escape

from ndcg_ml._one_line import visible

_BLOCK = "overflow-x:auto;font-size:.9em;line-height:1.4"


def escaped(text: str) -> str:
    """Text that shows as it is, between tags and in attributes, and that can be written as UTF-8."""
    return escape(visible(text)).encode("utf-8", "xmlcharrefreplace").decode("utf-8")


def paragraph(text: str) -> str:
    """A paragraph of text, which is escaped here."""
    return f'<p style="margin:.3em 0;overflow-wrap:anywhere">{escaped(text)}</p>'


def block(*parts: str) -> str:
    """Tables and paragraphs together, as ``_repr_html_`` returns them."""
    return "\n".join([f'<div style="{_BLOCK}">', *parts, "</div>"])
