"""Read lines of columns: TREC files of judgements (qrels) and rankings (runs), CSV, and columns without a header.

Ids remain strings. They are not parsed as numbers, hashed or truncated. The error for a malformed line has the name of
the file and the number of the line.

NumPy parses a block of well-formed lines at once. Any other block is parsed line by line, which gives the same columns
or an error.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from types import MappingProxyType
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.layout import FloatArray, IntArray
from ndcg_ml._files import opening
from ndcg_ml._files.byte_ids import PADDING, Names, cells
from ndcg_ml._files.cells import read_column, usual_numbers
from ndcg_ml._plain.checks import EXACT_INTEGERS
from ndcg_ml._plain.messages import brief, brief_text

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Form:
    """The columns of a file of lines.

    Attributes
    ----------
    name : str
        "qrels" or "a run".
    columns : tuple of str
        Names of the columns.
    used : dict of int
        Index of the column of each meaning, such as "qid", "docno", and "label" in qrels or "score" in a run. Without
        labels, each line is a pair of grade 1.
    longer : bool
        Whether more columns may follow.
    delimiter : str
        The character between columns, which may be in quotes; empty if they are separated by blanks or tabs.
    head : bytes
        The file up to the end of its header.
    """

    name: str
    columns: tuple[str, ...]
    used: Mapping[str, int]
    longer: bool = False
    delimiter: str = ""
    head: bytes = b""

    @property
    def first(self) -> int:
        """The number of the first line after the head."""
        return 1 + len(self.head.splitlines())

    def __str__(self) -> str:
        more = " or more" if self.longer else ""
        return f"a line of {self.name} must have {len(self.columns)}{more} columns ({' '.join(self.columns)})"


QRELS = Form("qrels", ("topic", "iteration", "document", "grade"), {"qid": 0, "docno": 2, "label": 3})
RUN = Form(
    "a run", ("topic", "Q0", "document", "rank", "score", "tag"), {"qid": 0, "docno": 2, "score": 4}, longer=True
)


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


class Documents(NamedTuple):
    """The documents of a file of qrels or of a run."""

    lines: Iterator[Lines]
    columns: Mapping[str, str] = MappingProxyType({})
    """The column or key of each meaning, if they have names."""
    unit: str = "line"
    """The unit of the numbers of lines."""
    are_pairs: bool = False
    """Whether the file has no grades, so that each pair of a topic and a document has grade 1."""


def as_lines(numbers: Any, topics: Sequence[str], documents: Sequence[str], *values: FloatArray) -> Lines:
    """Return columns of rows, whose ids have no line ends, as lines. Each row has grade 1 if there are no values."""
    ids = np.array(topics, dtype=object)
    heads = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))
    lengths = np.diff(np.append(heads, ids.size))
    return as_ranges(numbers, ids[heads].tolist(), lengths, documents, values[0] if values else np.ones(ids.size))


def as_ranges(
    numbers: Any, topics: Sequence[str], lengths: IntArray, documents: Sequence[str], values: FloatArray
) -> Lines:
    """Return ranges of documents of a topic as lines."""
    text = "".join(documents).encode()
    sizes = np.fromiter(map(len, documents), np.int64, len(documents))
    if len(text) > sizes.sum():  # not ASCII
        sizes = np.array([len(document.encode()) for document in documents])
    names = Names()
    names.cut(np.frombuffer(text + PADDING, dtype=np.uint8), np.cumsum(sizes) - sizes, sizes)
    return Lines([topic.encode() for topic in topics], lengths, names, values, np.asarray(numbers))


def trec_lines(path: opening.AnyPath, form: Form, file: IO[bytes] | None = None) -> Iterator[Lines]:
    """Yield the lines of a file, plain or compressed by gzip, in blocks of about 256 KiB.

    Parameters
    ----------
    path : path
    form : Form
        ``QRELS``, ``RUN`` or another.
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
    line, which results from concatenating files without a final line end. Blanks after a delimiter are skipped, and
    lines that begin with ``#`` are rows if there is one.
    """
    number, blocks = form.first, after_head(path, form, file)
    for block in blocks:
        if form.delimiter and b'"' in block:  # a field in quotes may end in a later block
            yield from _csv_lines(path, form, number, chain([block], blocks))
            return
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if not block.endswith(b"\n"):
            block += b"\n"
        numbers = np.arange(number, number + block.count(b"\n"))
        yield from _block_lines(path, form, block, numbers)
        number += numbers.size


def after_head(path: opening.AnyPath, form: Form, file: IO[bytes] | None) -> Iterator[bytes]:
    """Yield the blocks of a file without the form's head."""
    size = len(form.head)
    for block in opening.blocks(path, file):
        if len(block) > size:
            yield block[size:]
        size = max(0, size - len(block))


def _block_lines(path: opening.AnyPath, form: Form, block: bytes, numbers: IntArray) -> Iterator[Lines]:
    lines = _parse_block(block, form, numbers)
    if lines is None and form.delimiter:
        yield from _csv_lines(path, form, int(numbers[0]), [block])
        return
    if lines is None:
        block, numbers = _drop_comments(block, numbers)
        if not numbers.size:
            return
        lines = _parse_block(block, form, numbers) or _parse_lines(path, block, form, numbers)
    try:
        block.decode()
    except UnicodeDecodeError:  # find the line, unless only a skipped column is not UTF-8
        topics = np.repeat(np.array(lines.topics, dtype=object), lines.lengths).tolist()
        for ids in zip(lines.numbers.tolist(), topics, lines.documents, strict=True):
            for one_id in ids[1:]:
                opening.decode_id(path, ids[0], one_id)
    yield lines


def _drop_comments(block: bytes, numbers: IntArray) -> tuple[bytes, IntArray]:
    """Drop blank lines and comments from a block, and their numbers."""
    lines = block.splitlines(keepends=True)
    is_line = [bool(line.strip()) and not line.lstrip().startswith(b"#") for line in lines]
    return b"".join(compress(lines, is_line)), numbers[is_line]


# -- all lines at once ------------------------------------------------------------------------------------------------

_BLANK, _COMMENT, _LINE_END, _TAB = b" #\n\t"


def _parse_block(block: bytes, form: Form, numbers: IntArray) -> Lines | None:
    """Parse a block if every line has the form's columns and a valid number; otherwise return None."""
    text = np.frombuffer(block + PADDING, dtype=np.uint8)
    find = _find_fields if form.delimiter else _find_words
    bounds = find(text[: -len(PADDING)], form, numbers.size)
    if bounds is None:
        return None
    columns = {}
    for meaning, column in form.used.items():
        starts = np.ascontiguousarray(bounds[:, column, 0])
        columns[meaning] = starts, bounds[:, column, 1] - starts
    topics, documents = Names(), Names()
    starts, sizes = columns.pop("qid")
    topics.cut(text, starts, sizes)
    documents.cut(text, *columns.pop("docno"))
    values: FloatArray | None = np.ones(numbers.size)
    for what, places in columns.items():
        values = _parse_numbers(text, *places, what)
    if values is None:
        return None
    heads = topics.changes()
    lengths = np.diff(np.append(heads, numbers.size))
    return Lines(_cut_tokens(text, starts[heads], sizes[heads]), lengths, documents, values, numbers)


def _find_words(text: Bytes, form: Form, n_lines: int) -> IntArray | None:
    """Return the start and the end of each column of each line; None if the number of columns differs, or for comments.

    The text ends with a line end.
    """
    blank = text <= _BLANK
    odd = blank & (text != _BLANK) & (text != _LINE_END) & (text != _TAB)  # other whitespace, which may separate words
    if not n_lines or blank[0] or odd.any():
        return None
    edges = np.flatnonzero(blank[1:] != blank[:-1])
    edges += 1
    if edges.size + 1 != 2 * len(form.columns) * n_lines:
        return None
    bounds = np.append(0, edges).reshape(n_lines, len(form.columns), 2)
    ends, firsts, lasts = np.flatnonzero(text == _LINE_END), bounds[:, 0, 0], bounds[:, -1, 1]
    in_lines = (lasts <= ends).all() and (ends[:-1] < firsts[1:]).all()
    return bounds if in_lines and not (text[firsts] == _COMMENT).any() else None


def _find_fields(text: Bytes, form: Form, n_lines: int) -> IntArray | None:
    """Return the same for columns with a delimiter and without quotes; also None if a used field is empty."""
    ends = np.flatnonzero((text == ord(form.delimiter)) | (text == _LINE_END))
    if not n_lines or ends.size != len(form.columns) * n_lines:
        return None
    bounds = np.stack([np.append(0, ends[:-1] + 1), ends], axis=1).reshape(n_lines, -1, 2)
    for column in form.used.values():
        start, end = bounds[:, column].T
        while (blank := (text[start] == _BLANK) & (start < end)).any():
            start += blank
    used = bounds[:, [*form.used.values()]]
    in_lines = (text[bounds[:, -1, 1]] == _LINE_END).all()
    return bounds if in_lines and (used[:, :, 0] < used[:, :, 1]).all() else None


_LONGEST_NUMBER = 17  # characters, such as 16 digits and a point
_POWERS = 10.0 ** np.arange(_LONGEST_NUMBER)  # exact
_MINUS, _POINT, _ZERO = b"-.0"


def _parse_numbers(text: Bytes, starts: IntArray, sizes: IntArray, what: str) -> FloatArray | None:
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
        numbers = usual_numbers([opening.as_text(token) for token in tokens], what, text=True)
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
    fields = [line.split() for line in block.splitlines()]
    _check_columns(path, form, fields, numbers)
    columns = {meaning: [words[column] for words in fields] for meaning, column in form.used.items()}
    topics, documents = columns.pop("qid"), Names()
    documents.extend(columns.pop("docno"))
    values = np.ones(numbers.size)
    for what, tokens in columns.items():
        name = f"column {form.used[what] + 1}, the {form.columns[form.used[what]]},"
        values = read_column(place_in(path, numbers), name, list(map(opening.as_text, tokens)), what, text=True)
    return Lines(topics, np.ones(numbers.size, dtype=np.int64), documents, values, numbers)


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


# -- CSV --------------------------------------------------------------------------------------------------------------

_ROWS = 512  # per batch: with more, the garbage collector takes as long as the parser


def _csv_lines(path: opening.AnyPath, form: Form, number: int, blocks: Iterable[bytes]) -> Iterator[Lines]:
    for numbers, columns in csv_columns(path, form, number, blocks):
        yield as_lines(numbers, *columns.values())


def csv_columns(
    path: opening.AnyPath, form: Form, number: int, blocks: Iterable[bytes]
) -> Iterator[tuple[list[int], dict[Any, Any]]]:
    """Yield the lines of rows, the first of which has this number, and their columns by meaning.

    Raises
    ------
    DataFileError
        A row has more or fewer fields than the header, its quotes are wrong, or a cell is invalid.
    """
    header = form.columns
    for numbers, rows in csv_rows(path, form.delimiter or " ", number, blocks):
        for at, row in zip(numbers, rows, strict=True) if set(map(len, rows)) != {len(header)} else ():
            if len(row) != len(header):
                must = f"must have {len(header)} fields, like the header; got {len(row)}"
                raise opening.DataFileError(f"{path}, line {at}: {must}.")
        place, cells_of = place_in(path, numbers), list(zip(*rows, strict=True))
        read = {what: read_column(place, header[at], cells_of[at], what, text=True) for what, at in form.used.items()}
        yield numbers, read


def place_in(path: opening.AnyPath, numbers: Any, unit: str = "line") -> Callable[[int], str]:
    """Return a function that describes a row for an error message."""
    return lambda row: f"{path}, {unit} {numbers[row]}"


def csv_rows(
    path: opening.AnyPath, delimiter: str, number: int, blocks: Iterable[bytes]
) -> Iterator[tuple[list[int], list[list[str]]]]:
    """Yield rows that are not blank in batches, with the line of each; the first line has this number."""
    lines = chain.from_iterable(io.StringIO(opening.as_text(block), newline="") for block in blocks)
    reader = csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=True)
    last, numbers, rows = 0, list[int](), list[list[str]]()
    try:
        for row in reader:
            several = reader.line_num > last + 1
            if several and delimiter == "\t" and any("\t" in cell and "\n" in cell for cell in row):
                raise csv.Error("a field must not hold a tab and a line end")
            if row:
                numbers.append(number + last)
                rows.append(row)
            last = reader.line_num
            if len(rows) == _ROWS:
                yield numbers, rows
                numbers, rows = [], []
    except csv.Error as error:
        quotes = " (in a field in quotes that begins here)" * (reader.line_num > last + 1)
        raise opening.DataFileError(
            f"{path}, line {number + last}: not CSV: {brief_text(str(error))}{quotes}."
        ) from error
    if rows:
        yield numbers, rows
