"""Escape text for HTML and Markdown, and make paragraphs of it."""

from __future__ import annotations

import re
from html import escape

from ndcg_ml._core.one_line import visible

# Some characters are markup only in certain places: "]" in a link, "<" in a tag, "&" in an entity, "_" at word ends,
# "://" and "www." in a bare address, which GitHub makes a link.
_MARKDOWN = re.compile(r"[\\|*`~]|:(?=//)|(?<=www)\.|\](?=[(\[])|<(?=[A-Za-z/!?])|&(?=#?\w+;)|_(?![^\W_])")
# Paragraphs that start with these are headings, lists, quotations or rules.
_MARKDOWN_START = re.compile(r"^(\d*)([-+>#=.)])")

_BLOCK = "overflow-x:auto;font-size:.9em;line-height:1.4"


def escaped(text: str) -> str:
    """Escape text for HTML elements and attributes, so that it can be encoded in UTF-8."""
    return escape(visible(text)).encode("utf-8", "xmlcharrefreplace").decode("utf-8")


def escape_markdown(text: str) -> str:
    """Escape text for a Markdown cell or sentence."""
    return _MARKDOWN.sub(lambda found: f"\\{found[0]}", visible(text))


def markdown_paragraph(text: str) -> str:
    """Escape text that starts a Markdown paragraph or list item."""
    return _MARKDOWN_START.sub(r"\1\\\2", escape_markdown(text).strip())


def paragraph(text: str) -> str:
    """Return a paragraph with this text, escaped."""
    return f'<p style="margin:.3em 0;overflow-wrap:anywhere">{escaped(text)}</p>'


def block(*parts: str) -> str:
    """Return an element with these tables and paragraphs."""
    return "\n".join([f'<div style="{_BLOCK}">', *parts, "</div>"])
