"""Write files atomically: after a full disk or Ctrl-C, either the old or the new file exists."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress

_STREAMS = (1, 2)  # standard output and standard error


def write(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a temporary file and rename it. Pipes, devices and standard streams are written directly.

    Raises
    ------
    OSError
        The file cannot be written. The error names it.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        if _is_written_directly(path):
            with open(path, "wb") as file:
                file.write(data)
            return
        target = os.path.realpath(path)  # keep a symbolic link
        if os.path.exists(target) and not os.access(target, os.W_OK):
            raise PermissionError(13, "Permission denied")
        part = os.path.join(os.path.dirname(target), f".{secrets.token_hex(8)}.part")
        try:
            with open(part, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if os.path.exists(target):
                shutil.copymode(target, part)
            os.replace(part, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(part)
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _is_written_directly(path: str | os.PathLike[str]) -> bool:
    """Return whether a path exists that a rename would disconnect from its readers."""
    if not os.path.exists(path):
        return False
    found = os.stat(path)
    for stream in _STREAMS:  # /dev/stdout may be a file
        with suppress(OSError):
            if os.path.samestat(found, os.fstat(stream)):
                return True
    return not os.path.isfile(path)
