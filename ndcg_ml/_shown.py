"""Values of a caller as a message shows them: on a part of one line, however large they are."""

from __future__ import annotations

__all__ = ["shown", "shown_text"]

_WIDTH = 100
_TAIL = 20


def shown(value: object) -> str:
    """The ``repr`` of a value on one line, at most 100 characters; ``...`` stands for the middle of a longer one."""
    try:
        text = repr(value)
    except Exception:  # of the value's own making; or an integer of more digits than Python prints
        text = f"<{type(value).__name__}>"
    return shown_text(text)


def shown_text(text: str) -> str:
    """A text such as the message of another error, cut as in ``shown``."""
    if len(text) > 10 * _WIDTH:
        text = text[: 5 * _WIDTH] + text[-5 * _WIDTH :]
    if not text.isprintable():  # line ends, in the repr of an array; controls, in the message of another error
        text = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - _TAIL - 3]}...{text[-_TAIL:]}"
