"""Text of messages: values made safe to print (one short line, HTML, Markdown), suggestions, and what to install."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection
from html import escape

# -- one line ---------------------------------------------------------------------------------------------------------

_WIDTH = 100
_TAIL = 20


def brief(value: object) -> str:
    """Return the ``repr`` of a value on one line. Beyond 100 characters, ``...`` replaces the middle."""
    try:
        text = repr(value)
    except Exception:  # the value's own repr may raise anything, and very long integers have none
        text = f"<{type(value).__name__}>"
    return brief_text(text)


def brief_text(text: str, width: int = _WIDTH, tail: int = _TAIL) -> str:
    """Shorten a text, such as the message of another error, as in ``brief``. `tail` characters follow the ``...``."""
    if len(text) > 10 * width:
        text = text[: 5 * width] + text[-5 * width :]
    if not text.isprintable():  # line ends in the repr of an array; control characters in a message
        text = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return text if len(text) <= width else f"{text[: width - tail - 3]}...{text[-tail:]}"


def visible(text: str) -> str:
    r"""Return the text on one line, with escapes such as ``\x0a`` for line ends and control characters."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escape(ord(each)) for each in text)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def wrapped(text: str) -> str:
    """Break a text into lines of at most 100 characters, between words, and a longer word after commas."""
    text = re.sub(rf"\S{{{_WIDTH + 1},}}", lambda word: word[0].replace(",", ", "), text.replace(" %", "\xa0%"))
    lines = textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\xa0%", " %")


def percent(share: float) -> str:
    """Format a fraction in per cent with all its digits, so that 99.99999 % does not become 100 %."""
    return f"{100 * share:.12g} %"


# -- HTML and Markdown ------------------------------------------------------------------------------------------------

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


# -- suggestions -------------------------------------------------------------------------------------------------------

# Names that other libraries use for values and for arguments, for suggestions.
_ELSEWHERE = {
    **dict.fromkeys(("2^y - 1", "2^y-1", "2**y - 1", "2**y-1"), "exponential"),
    "exp": "exponential",
    "exp2": "exponential",
    "identity": "linear",
    "log": "ln",
    "mean": "average",
    "stable": "first",
    "reverse": "last",
    "error": "raise",
    "clip": "zero",
    "double": "float64",
    "single": "float32",
    "scikit": "sklearn",
    "trec": "trec_eval",
    **dict.fromkeys(("at", "cutoff", "eval_at", "top_k", "topk"), "k"),
    **dict.fromkeys(("metric", "metrics"), "flavor"),
    "empty_target_action": "empty",
    "ignore_ties": "ties",
    "log_base": "discount",
}

# The first release changes this to 'pip install "ndcg_ml[{}]"'. cmd.exe knows double quotes only.
_INSTALL = 'pip install ".[{}]" in a clone of ndcg_ml'


def install(extra: str) -> str:
    """Return the command that installs an extra of this package."""
    return _INSTALL.format(extra)


def did_you_mean(got: object, names: Collection[str]) -> str:
    """Return a sentence that suggests the nearest of the names, or an empty string."""
    near = nearest(got, names) if isinstance(got, str) else None
    return "" if near is None else f" Did you mean {near!r}?"


def nearest(got: str, names: Collection[str], cutoff: float = 0.6) -> str | None:
    """Return the name that another library's name means, or the one with the most similar spelling, if any.

    `cutoff` is the least similarity, from 0 to 1.
    """
    from difflib import get_close_matches  # a slow import that few calls need

    near = [_ELSEWHERE.get(got.lower()), *get_close_matches(got.lower(), list(names), cutoff=cutoff)]
    return next((name for name in near if name in names), None)


def unknown_preset(must: str, got: str, name: str, names: Collection[str]) -> ValueError:
    """Return the error for a name that is not a preset, with a suggestion and how to list all presets."""
    return ValueError(
        f"{must}; got {got}.{did_you_mean(name, names)} List the presets with list(ndcg_ml.PRESETS), or with the "
        "command ndcg-ml flavors; Flavor.preset(name).describe() explains one."
    )
