"""Open files: read text, plain or compressed by gzip, write atomically, and define the errors of all readers."""

from __future__ import annotations

import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from typing import IO, Any, TypeAlias

from ndcg_ml._plain.checks import EXACT_INTEGERS
from ndcg_ml._plain.messages import brief, brief_text

AnyPath: TypeAlias = "str | os.PathLike[str]"

_MARK = b"\xef\xbb\xbf"  # the byte order mark in UTF-8
_BLOCK = 1 << 18  # bytes of lines that are split at once; the tokens take about ten times as much memory
_HEAD = 1 << 13  # bytes that are read to detect the format of a file
_MOST_BYTES = 1 << 32  # unpacked bytes of a file that is read by lines
_MOST_WHOLE = 1 << 30  # unpacked bytes of a file that is read whole, such as JSON
_LONGEST = 1 << 24  # bytes of a line; 2 MB of gzip may unpack to a line of 4 GB

ROUNDED = "an integer must be at most 2^53, because float64 rounds larger ones"

JOINED = "Two lines may have been joined by concatenating files without a final line end"


class DataFileError(ValueError):
    """A data file cannot be used. The message names the file, the line if there is one, and the reason."""


class ColumnError(DataFileError):
    """A table lacks a column, or several have one meaning."""


def unpacked_limit(default: int = _MOST_BYTES) -> int:
    """Return the largest allowed unpacked size of a file: NDCG_ML_MAX_BYTES, or `default` if it is not set.

    Raises
    ------
    ValueError
        The environment variable is not a positive integer.
    """
    text = os.environ.get("NDCG_ML_MAX_BYTES", "")
    if text and not (text.isascii() and text.isdigit() and int(text)):
        raise ValueError(f"NDCG_ML_MAX_BYTES must be a positive integer; got {brief(text)}.")
    return int(text) if text else default


def is_empty(path: AnyPath) -> bool:
    """Whether this is a file without a byte. The size of a pipe is 0, too, and says nothing."""
    return os.path.isfile(path) and not os.path.getsize(path)


def too_large(path: AnyPath, limit: int) -> DataFileError:
    """Return the error for a file that unpacks to more than `limit` bytes."""
    return DataFileError(
        f"{path}: must have at most {limit} bytes when unpacked; got more. If you trust the file, set the environment "
        "variable NDCG_ML_MAX_BYTES to a larger number."
    )


_OTHER_COMPRESSION = re.compile(
    rb"(?P<zstd>\x28\xb5\x2f\xfd)|(?P<bz2>BZh[1-9]1AY&SY)|(?P<xz>\xfd7zXZ)|(?P<zip>PK\x03\x04)|(?P<lz4>\x04\x22\x4d\x18)"
)


class _Rewound(io.RawIOBase):
    """A pipe whose first bytes were already read, with these bytes put back."""

    def __init__(self, head: bytes, pipe: IO[bytes]) -> None:
        self._head, self._pipe = head, pipe

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._head:
            return self._pipe.readinto(buffer)  # type: ignore[attr-defined]  # a BufferedReader has it
        read, self._head = self._head[: len(buffer)], self._head[len(buffer) :]
        buffer[: len(read)] = read
        return len(read)


@contextmanager
def open_with_head(path: AnyPath) -> Iterator[tuple[bytes, IO[bytes]]]:
    """Open a file and yield its head, without a byte order mark, and the file at its start.

    The file is unpacked if its first bytes are those of gzip. The head has at least the first line that is not blank,
    unless that is too long.
    """
    with open(path, "rb") as pipe:
        start = pipe.read(10)  # peek(10) may return a single byte of a pipe
        if packed := _OTHER_COMPRESSION.match(start):
            raise DataFileError(
                f"{path}: must be plain text or compressed by gzip; got {packed.lastgroup}. Unpack it first."
            )
        file: Any = io.BufferedReader(_Rewound(start, pipe))
        try:
            file = gzip.GzipFile(fileobj=file) if start.startswith(b"\x1f\x8b") else file
            head = file.read(_HEAD)
            if b"\n" not in head.removeprefix(_MARK).lstrip():
                head += file.readline(_LONGEST)
            yield head.removeprefix(_MARK), io.BufferedReader(_Rewound(head, file))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataFileError(f"{path}: is damaged and cannot be unpacked: {brief_text(str(error))}") from error


def blocks(path: AnyPath, file: IO[bytes] | None = None) -> Iterator[bytes]:
    """Yield a file, which may already be open, in blocks of whole lines, without byte order marks at line starts.

    Concatenated files may each begin with such a mark.
    """
    if file is None:
        with open_with_head(path) as (_, file):
            yield from blocks(path, file)
        return
    rest, before, limit = b"", 0, unpacked_limit()
    while read := file.read(_BLOCK):
        block = rest + read
        if before + len(block) > limit:
            raise too_large(path, limit)
        # A carriage return at the end may be half of a line end.
        stop = max(block.rfind(b"\n"), block.rfind(b"\r", 0, -1)) + 1
        block, rest = block[:stop], block[stop:]
        if len(rest) > _LONGEST:
            raise DataFileError(
                f"{path}: a line must have at most {_LONGEST >> 20} MiB; got a longer one at byte "
                f"{before + stop}. Check that the file is text, with one line for each row."
            )
        if block:
            yield _checked_text(path, block)
        before += stop
    if rest:
        yield _checked_text(path, rest)


def _checked_text(path: AnyPath, block: bytes) -> bytes:
    if b"\0" in block:
        raise DataFileError(
            f"{path}: must be text in UTF-8 or another extension of ASCII; got a NUL byte. Save it as UTF-8."
        )
    block = block.removeprefix(_MARK)
    if _MARK[:1] in block and _MARK in block:  # searching for one byte is sixty times as fast
        block = block.replace(b"\n" + _MARK, b"\n").replace(b"\r" + _MARK, b"\r")
    return block


def whole_text(path: AnyPath, file: IO[bytes], most: int = _MOST_WHOLE) -> str:
    """Read a file as one text, such as JSON; `most` is the default of ``unpacked_limit``."""
    limit = unpacked_limit(most)
    content = bytearray()
    while read := file.read(_BLOCK):
        content += read
        if len(content) > limit:
            raise too_large(path, limit)
    return decode_utf8(path, _checked_text(path, bytes(content)))


def decode_id(path: AnyPath, number: int, token: bytes) -> str:
    """Decode an id on this line of a file."""
    return decode_utf8(path, token, number, "an id")


def decode_utf8(path: AnyPath, content: bytes, number: int = 1, what: str = "JSON") -> str:
    """Decode bytes that begin on this line of a file."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        at = number + content.count(b"\n", 0, error.start)
        got = content[error.start : error.start + 8]
        raise wrong_line(path, at, f"{what} must be text in UTF-8", got) from error


def numbered(path: AnyPath, file: IO[bytes] | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file, which may already be open, numbered from 1."""
    return enumerate(chain.from_iterable(map(bytes.splitlines, blocks(path, file))), 1)


def as_number(token: bytes) -> float | None:
    """Convert a token to a number, or return None. Unlike Python, this rejects 1_000, as other readers do."""
    try:
        return None if b"_" in token else float(token)
    except ValueError:
        return None


def is_rounded(token: bytes) -> bool:
    """Return whether a token is an integer beyond 2^53."""
    digits = token.strip().lstrip(b"+-").lstrip(b"0")
    return digits.isdigit() and (len(digits) > 16 or int(digits) > EXACT_INTEGERS)


def as_text(token: bytes) -> str:
    """Decode bytes without loss. Different bytes give different strings."""
    return token.decode("utf-8", "surrogateescape")


def wrong_line(path: AnyPath, number: int, reason: str, got: bytes) -> DataFileError:
    """Return the error for a malformed line."""
    return DataFileError(f"{path}, line {number}: {reason}; got {brief(got.decode('utf-8', 'backslashreplace'))}.")


# -- write files: after a full disk or Ctrl-C, either the old or the new file exists ----------------------------------

_STREAMS = (1, 2)  # standard output and standard error


def write_atomically(path: str | os.PathLike[str], content: str | bytes) -> None:
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
        if exists := os.path.exists(target):
            os.close(os.open(target, os.O_WRONLY))  # a rename would replace even a file that is read-only
        part = os.path.join(os.path.dirname(target), f".{os.urandom(8).hex()}.part")
        try:
            with open(part, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if exists:
                os.chmod(part, os.stat(target).st_mode & 0o7777)
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
