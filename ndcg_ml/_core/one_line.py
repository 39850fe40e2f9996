"""Format a caller's values for messages and tables, on one line of limited length."""

from __future__ import annotations

_WIDTH = 100
_TAIL = 20


def brief(value: object) -> str:
    """Return the ``repr`` of a value on one line. Beyond 100 characters, ``...`` replaces the middle."""
    try:
        text = repr(value)
    except Exception:  # the value's own repr may raise anything, and very long integers have none
        text = f"<{type(value).__name__}>"
    return brief_text(text)


def brief_text(text: str) -> str:
    """Shorten a text, such as the message of another error, as in ``brief``."""
    if len(text) > 10 * _WIDTH:
        text = text[: 5 * _WIDTH] + text[-5 * _WIDTH :]
    if not text.isprintable():  # line ends in the repr of an array; control characters in a message
        text = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - _TAIL - 3]}...{text[-_TAIL:]}"


def visible(text: str) -> str:
    r"""Return the text on one line, with escapes such as ``\x0a`` for line ends and control characters."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escape(ord(each)) for each in text)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def percent(share: float) -> str:
    """Format a fraction in per cent with all its digits, so that 99.99999 % does not become 100 %."""
    return f"{100 * share:.12g} %"
