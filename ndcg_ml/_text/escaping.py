"""Escape text of a caller for HTML and Markdown, and set paragraphs around the tables of a result."""

from __future__ import annotations

import re
from html import escape

from ndcg_ml._one_line import visible

# Markup only in some places: "]" in a link, "<" before a tag, "&" before an entity, "_" at the end of a word.
_MARKDOWN = re.compile(r"[\\|*`]|~~|\](?=[(\[])|<(?=[A-Za-z/!?])|&(?=#?\w+;)|_(?![^\W_])")
# A heading, a list, a quotation or a rule begins a paragraph with these.
_MARKDOWN_START = re.compile(r"^(\d*)([-+>#=~.)])")

_BLOCK = "overflow-x:auto;font-size:.9em;line-height:1.4"


def escaped(text: str) -> str:
    """Text that shows as it is, between tags and in attributes, and that can be written as UTF-8."""
    return escape(visible(text)).encode("utf-8", "xmlcharrefreplace").decode("utf-8")


def escape_markdown(text: str) -> str:
    """Escape text for the inside of a Markdown cell or sentence, so that none of it is read as markup."""
    return _MARKDOWN.sub(lambda found: f"\\{found[0]}", visible(text))


def markdown_paragraph(text: str) -> str:
    """Escape text that begins a Markdown paragraph or the item of a list."""
    return _MARKDOWN_START.sub(r"\1\\\2", escape_markdown(text).strip())


def paragraph(text: str) -> str:
    """A paragraph of text, which is escaped here."""
    return f'<p style="margin:.3em 0;overflow-wrap:anywhere">{escaped(text)}</p>'


def block(*parts: str) -> str:
    """Tables and paragraphs together, as ``_repr_html_`` returns them."""
    return "\n".join([f'<div style="{_BLOCK}">', *parts, "</div>"])
