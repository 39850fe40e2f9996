"""Read TREC files of judgements (qrels) and rankings (runs) as columns.

Ids remain strings. They are not parsed as numbers, hashed or truncated. The error for a malformed line has the name of
the file and the number of the line.

NumPy parses a block of well-formed lines at once. Any other block is parsed line by line, which gives the same columns
or an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.checks import EXACT_INTEGERS
from ndcg_ml._core.layout import FloatArray, IntArray
from ndcg_ml._core.one_line import brief
from ndcg_ml._files import opening
from ndcg_ml._files.byte_ids import PADDING, Names, cells

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Form:
    """The columns of a line of a TREC file.

    Attributes
    ----------
    name : str
    columns : tuple of str
        Names of the columns, which are separated by blanks or tabs in the file.
    value : int
        Index of the column with the number. The topic is column 0, the document column 2.
    longer : bool
        Whether more columns may follow.
    """

    name: str
    columns: tuple[str, ...]
    value: int
    longer: bool

    def __str__(self) -> str:
        more = " or more" if self.longer else ""
        return f"a line of {self.name} must have {len(self.columns)}{more} columns ({' '.join(self.columns)})"


QRELS = Form("qrels", ("topic", "iteration", "document", "grade"), value=3, longer=False)
RUN = Form("a run", ("topic", "Q0", "document", "rank", "score", "tag"), value=4, longer=True)


class Lines(NamedTuple):
    """Consecutive lines of qrels or of a run, in any format, as columns."""

    topics: list[bytes]
    """The topic of each range of consecutive lines with one topic."""
    lengths: IntArray
    """Number of lines of each range."""
    documents: Names
    values: FloatArray
    numbers: IntArray
    """The number of each line in the file, from 1."""


def trec_lines(path: opening.AnyPath, form: Form, file: IO[bytes] | None = None) -> Iterator[Lines]:
    """Yield the lines of a TREC file, plain or compressed by gzip, in blocks of about a megabyte.

    Parameters
    ----------
    path : path
    form : Form
        ``QRELS`` or ``RUN``.
    file : binary file, optional
        The file, if it is already open.

    Yields
    ------
    Lines
        Topics and documents as bytes. A range of lines with one topic may be split at the end of a block.

    Raises
    ------
    DataFileError
        A line has too few or too many columns, its ids are not UTF-8, its grade or score is not a number, or a grade is
        infinite; or the file has no lines, has a line of more than 16 MiB, is not text, or is damaged.
    OSError
        The file cannot be read.

    Notes
    -----
    As in trec_eval 9.0.8, columns are separated by blanks or tabs, blank lines and lines that begin with ``#`` are
    skipped, and text after the tag of a run is ignored. Unlike trec_eval, this reader also skips blank lines in qrels,
    and refuses a malformed number, which trec_eval reads as 0. Lines may end in LF, CR or both, and a byte order
    mark at the beginning of a line is ignored. In a run, a line with more than six columns must have an integer rank
    and a tag that does not begin with a number; otherwise a document id contains a blank. It must not contain a second
    line, which results from concatenating files without a final line end.
    """
    number, empty = 1, True
    for block in opening.blocks(path, file):
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if not block.endswith(b"\n"):
            block += b"\n"
        n_lines = block.count(b"\n")
        numbers = np.arange(number, number + n_lines)
        number += n_lines
        block, numbers = _drop_comments(block, numbers)
        if not numbers.size:
            continue
        lines = _parse_block(block, form, numbers)
        if lines is None:
            lines = _parse_lines(path, block, form, numbers)
        try:
            block.decode()
        except UnicodeDecodeError:  # find the line, unless only a skipped column is not UTF-8
            topics = np.repeat(np.array(lines.topics, dtype=object), lines.lengths).tolist()
            for ids in zip(lines.numbers.tolist(), topics, lines.documents, strict=True):
                for one_id in ids[1:]:
                    opening.decode_id(path, ids[0], one_id)
        empty = False
        yield lines
    if empty:
        raise opening.DataFileError(f"{path}: has no lines; {form}.")


def _drop_comments(block: bytes, numbers: IntArray) -> tuple[bytes, IntArray]:
    """Drop blank lines and comments from a block, and their numbers."""
    if not (block.startswith(_ODD) or any(b"\n" + start in block for start in _ODD)):
        return block, numbers
    text = np.frombuffer(block, dtype=np.uint8)
    ends = np.flatnonzero(text == _LINE_END)
    starts = np.append(0, ends[:-1] + 1)
    # Most lines begin with a word. For indented lines, find the first word in Python.
    is_line = (text[starts] != _LINE_END) & (text[starts] != _COMMENT)
    for at in np.flatnonzero(np.isin(text[starts], _INDENTS)).tolist():
        word = block[starts[at] : ends[at]].lstrip()[:1]
        is_line[at] = bool(word) and word != b"#"
    return text[np.repeat(is_line, ends - starts + 1)].tobytes(), numbers[is_line]


# -- all lines at once ------------------------------------------------------------------------------------------------

_ODD = (b"#", b"\n", b" ", b"\t", b"\x0b", b"\x0c")
"""First bytes of lines that may be blank, indented or comments."""
_INDENTS = np.frombuffer(b" \t\x0b\x0c", dtype=np.uint8)
_BLANK, _COMMENT, _LINE_END, _TAB = b" #\n\t"


def _parse_block(block: bytes, form: Form, numbers: IntArray) -> Lines | None:
    """Parse a block if every line has the form's columns and a valid number; otherwise return None."""
    text = np.frombuffer(block + PADDING, dtype=np.uint8)
    bounds = _find_columns(text[: -len(PADDING)], len(form.columns), numbers.size)
    if bounds is None:
        return None

    def column(which: int) -> tuple[IntArray, IntArray]:
        starts = np.ascontiguousarray(bounds[:, which, 0])
        return starts, bounds[:, which, 1] - starts

    values = _parse_numbers(text, *column(form.value), infinite=form is RUN)
    if values is None:
        return None
    topics, documents = Names(), Names()
    starts, sizes = column(0)
    topics.cut(text, starts, sizes)
    documents.cut(text, *column(2))
    heads = topics.changes()
    lengths = np.diff(np.append(heads, numbers.size))
    return Lines(_cut_tokens(text, starts[heads], sizes[heads]), lengths, documents, values, numbers)


def _find_columns(text: Bytes, width: int, n_lines: int) -> IntArray | None:
    """Return the start and the end of each column of each line; None if the number of columns differs.

    The text ends with a line end.
    """
    blank = text <= _BLANK
    odd = blank & (text != _BLANK) & (text != _LINE_END) & (text != _TAB)  # other whitespace, which may separate words
    if blank[0] or odd.any():
        return None
    edges = np.flatnonzero(blank[1:] != blank[:-1])
    edges += 1
    if edges.size + 1 != 2 * width * n_lines:
        return None
    bounds = np.append(0, edges).reshape(n_lines, width, 2)
    ends, firsts, lasts = np.flatnonzero(text == _LINE_END), bounds[:, 0, 0], bounds[:, -1, 1]
    return bounds if (lasts <= ends).all() and (ends[:-1] < firsts[1:]).all() else None


_LONGEST_NUMBER = 17  # characters, such as 16 digits and a point
_POWERS = 10.0 ** np.arange(_LONGEST_NUMBER)  # exact
_MINUS, _POINT, _ZERO = b"-.0"


def _parse_numbers(text: Bytes, starts: IntArray, sizes: IntArray, *, infinite: bool) -> FloatArray | None:
    """Parse the numbers at these positions like ``float``; return None if one is invalid.

    A number with few digits is an integer divided by a power of ten. Both are exact, so the quotient is rounded once.
    """
    longest = min(int(sizes.max()), _LONGEST_NUMBER)
    characters = np.ascontiguousarray(cells(text, starts, longest).T)
    digits = characters - np.uint8(_ZERO)
    whole = np.zeros(sizes.size, dtype=np.int64)
    places = np.zeros(sizes.size, dtype=np.int64)
    negative = characters[0] == _MINUS
    after_point = np.zeros(sizes.size, dtype=bool)
    simple = sizes <= longest
    for at in range(longest):
        inside = sizes > at
        is_digit = (digits[at] < 10) & inside
        is_point = (characters[at] == _POINT) & inside
        simple &= ~inside | is_digit | (is_point & ~after_point) | (negative if at == 0 else False)
        whole = np.where(is_digit, 10 * whole + digits[at], whole)
        places += is_digit & after_point
        after_point |= is_point
    simple &= (sizes > after_point.astype(np.int64) + negative) & (whole <= EXACT_INTEGERS)
    values: FloatArray = whole / _POWERS[places]
    np.negative(values, out=values, where=negative)
    rest = np.flatnonzero(~simple)
    if rest.size:
        tokens = _cut_tokens(text, starts[rest], sizes[rest])
        numbers = _to_floats(tokens, infinite=infinite)
        if numbers is None:
            return None
        values[rest] = numbers
    return values


def _cut_tokens(text: Bytes, starts: IntArray, sizes: IntArray) -> list[bytes]:
    whole = text.tobytes()
    return [whole[start:stop] for start, stop in zip(starts.tolist(), (starts + sizes).tolist(), strict=True)]


# -- one by one -------------------------------------------------------------------------------------------------------


def _parse_lines(path: opening.AnyPath, block: bytes, form: Form, numbers: IntArray) -> Lines:
    """Parse the lines of a block one by one; raise an error for the first malformed one."""
    n_columns = len(form.columns)
    fields = [line.split() for line in block.splitlines()]
    _check_columns(path, form, fields, numbers)
    tokens = [column for columns in fields for column in columns[:n_columns]]
    values = _check_numbers(path, form, tokens[form.value :: n_columns], numbers)
    documents = Names()
    documents.extend(tokens[2::n_columns])
    return Lines(tokens[::n_columns], np.ones(numbers.size, dtype=np.int64), documents, values, numbers)


def _check_columns(path: opening.AnyPath, form: Form, fields: list[list[bytes]], numbers: IntArray) -> None:
    n_columns = len(form.columns)
    for tokens, number in zip(fields, numbers.tolist(), strict=True):
        if len(tokens) < n_columns or (len(tokens) > n_columns and not form.longer):
            hint = f". {opening.JOINED}" * (len(tokens) == 2 * n_columns - 1)
            raise opening.wrong_line(path, number, f"{form}; got {len(tokens)}{hint}", b" ".join(tokens))
        if len(tokens) > n_columns:
            if not tokens[3].removeprefix(b"-").isdigit():
                what = f"{brief(opening.as_text(tokens[3]))} where the rank should be"
            elif opening.as_number(tokens[5]) is not None:
                what = f"{brief(opening.as_text(tokens[5]))}, a number, where the tag should begin"
            elif _contains_second_line(tokens):
                raise opening.wrong_line(
                    path, number, f"{form}; got {len(tokens)}. {opening.JOINED}", b" ".join(tokens)
                )
            else:
                continue
            reason = f"{form}; got {len(tokens)}, and {what}. An id cannot contain a blank"
            raise opening.wrong_line(path, number, reason, b" ".join(tokens))


def _contains_second_line(tokens: list[bytes]) -> bool:
    """Return whether the tag of a run's line seems to contain a second line: Q0, document, rank, score, tag.

    The second line's topic may be joined to the tag. If the tag is one word, any second column counts; in a longer tag,
    only this line's or Q0 does, because a tag may contain words and numbers.
    """
    return any(
        tokens[at + 2].removeprefix(b"-").isdigit()
        and opening.as_number(tokens[at + 3]) is not None
        and (at <= 7 or tokens[at] in (tokens[1], b"Q0"))
        for at in range(6, len(tokens) - 4)
    )


def _check_numbers(path: opening.AnyPath, form: Form, tokens: Sequence[bytes], numbers: IntArray) -> FloatArray:
    values = _to_floats(tokens, infinite=form is RUN)
    if values is None:
        first = next(i for i, token in enumerate(tokens) if _to_floats([token], infinite=form is RUN) is None)
        what = form.columns[form.value]
        kind = "a finite number" if form is QRELS else "a number, and not NaN, which cannot be ranked"
        kind += f" ({opening.ROUNDED})" * opening.is_rounded(tokens[first])
        raise opening.wrong_line(
            path, int(numbers[first]), f"column {form.value + 1}, the {what}, must be {kind}", tokens[first]
        )
    return values


def _to_floats(tokens: Sequence[bytes], *, infinite: bool) -> FloatArray | None:
    """Convert tokens to numbers. Return None if one is invalid, NaN, or infinite unless `infinite` is set."""
    try:
        values = np.fromiter(map(float, tokens), np.float64, len(tokens))
    except ValueError:
        return None
    bad = np.isnan(values) if infinite else ~np.isfinite(values)
    # Python reads 1_000 as a number. Other readers of these files do not.
    if bad.any() or b"_" in b"".join(tokens):
        return None
    large = np.flatnonzero(np.abs(values) >= EXACT_INTEGERS).tolist()
    return None if any(opening.is_rounded(tokens[at]) for at in large) else values
