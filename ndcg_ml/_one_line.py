"""Values of a caller as messages and tables show them: on one line, whatever they hold and however large they are."""

from __future__ import annotations

_WIDTH = 100
_TAIL = 20


def shown(value: object) -> str:
    """The ``repr`` of a value on one line, at most 100 characters; ``...`` stands for the middle of a longer one."""
    try:
        text = repr(value)
    except Exception:  # the value's own repr may raise anything; very long integers refuse
        text = f"<{type(value).__name__}>"
    return shown_text(text)


def shown_text(text: str) -> str:
    """A text such as the message of another error, cut as in ``shown``."""
    if len(text) > 10 * _WIDTH:
        text = text[: 5 * _WIDTH] + text[-5 * _WIDTH :]
    if not text.isprintable():  # line ends, in the repr of an array; controls, in the message of another error
        text = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - _TAIL - 3]}...{text[-_TAIL:]}"


def visible(text: str) -> str:
    r"""The text on one line, with escapes such as ``\x0a`` for line ends, cursor moves and turned letters."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escape(ord(each)) for each in text)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def percent(share: float) -> str:
    """A share such as a confidence in per cent, with the digits that it has: 99.99999 % is not 100 %."""
    return f"{100 * share:.12g} %"
