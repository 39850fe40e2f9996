"""Blocks of lines read all at once: the same columns and the same errors as line by line."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndcg_ml._files import opening as lines
from ndcg_ml._files import trec
from ndcg_ml._files.byte_ids import PADDING, Names, digests, earlier
from ndcg_ml._files.trec import QRELS, RUN, trec_lines
from ndcg_ml.readers import DataFileError

NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(-(10**9), 10**9, places=6, allow_nan=False).map(str),
    st.integers(-(10**19), 10**19).map(str),
    st.from_regex(r"[+-]?[0-9]{0,12}\.?[0-9]{1,12}", fullmatch=True),
)
ODD_NUMBERS = st.sampled_from(
    ["inf", "-inf", "nan", "1_0", "0x1", ".", "-", "-.", "5.", ".5", "--1", "1-", "1.2.3", "+3", "1e3", "", "-0", "one"]
)
WORDS = st.one_of(
    st.sampled_from(
        ["1", "07", "a", "doc0000017", "é", "\U0001f600", "#b", "x#", "q\x0bq", "p\x1cp", "\x85", "x" * 70]
    ),
    st.from_regex(r"[a-z0-9-]{1,20}", fullmatch=True),
)
GAPS = st.sampled_from([" ", " ", " ", "\t", "  ", " \t", "\x0c"])
ENDS = st.sampled_from(["\n", "\n", "\n", "\n", "\r\n", "\r", " \n", "\t\r\n", "\n\n", "\n \n", "\n# one two three\n"])


@st.composite
def files(draw, odd):
    """Files in the form of qrels or a run; if odd, with lines of which some are refused."""
    form = draw(st.sampled_from([QRELS, RUN]))
    numbers = st.one_of(NUMBERS, ODD_NUMBERS) if odd else NUMBERS
    gaps, ends = (GAPS, ENDS) if odd else (st.just(" "), st.just("\n"))
    text = draw(st.sampled_from(["", "\ufeff", "\n", "# c\n", " "])) if odd else ""
    topic = "1"
    for _ in range(draw(st.integers(0, 12))):
        topic = draw(st.one_of(st.just(topic), WORDS)) if odd else topic
        columns = [draw(WORDS) for _ in form.columns]
        columns[0], columns[form.value] = topic, draw(numbers)
        extra = draw(st.sampled_from([0] * 12 + [-1, 1, 2])) if odd else 0
        columns = columns[:extra] if extra < 0 else [*columns, *(draw(st.one_of(WORDS, numbers)) for _ in range(extra))]
        text += "".join(column + draw(gaps) for column in columns[:-1]) + columns[-1] + draw(ends)
    content = (text[:-1] if draw(st.booleans()) else text).encode()
    return form, gzip.compress(content) if draw(st.booleans()) else content


def read(path, form):
    try:
        blocks = list(trec_lines(path, form))
    except DataFileError as error:
        return str(error)
    return [
        (topic, name, value.hex() if isinstance(value, float) else str(value), number)
        for block in blocks
        for topic, name, value, number in zip(
            np.repeat(np.array(block.topics, dtype=object), block.lengths).tolist(),
            block.documents,
            block.values.tolist(),
            block.numbers.tolist(),
            strict=True,
        )
    ]


@pytest.mark.parametrize("size", [1 << 20, 40])
@pytest.mark.parametrize("odd", [False, True])
@given(data=st.data())
def test_all_at_once_and_one_by_one_read_the_same(size, odd, data):
    form, content = data.draw(files(odd))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder, "file")
        path.write_bytes(content)
        patch.setattr(lines, "_BLOCK", size)
        at_once = read(path, form)
        patch.setattr(trec, "_parse_block", lambda *_: None)
        assert read(path, form) == at_once


@pytest.mark.parametrize("end", ["\n", "\r\n", " \n", "\r"])
@pytest.mark.parametrize("gap", [" ", "\t", "  \t "])
@pytest.mark.parametrize("score", ["1", "-3.25", ".5", "5.", "12.345678", "0.12345678901234567", "1e-7", "-inf"])
def test_the_usual_lines_are_read_at_once(tmp_path, monkeypatch, end, gap, score):
    monkeypatch.setattr(trec, "_parse_lines", None)
    line = gap.join(["7", "Q0", "d1", "1", score, "tag"])
    (tmp_path / "run").write_text(f"{line}{end}{line}", newline="")
    assert [row[1:] for row in read(tmp_path / "run", RUN)] == [(b"d1", float(score).hex(), n) for n in (1, 2)]


def parsed(coded, infinite=False):
    """The numbers of these tokens, all at once."""
    text = np.frombuffer(b" ".join(coded) + PADDING, dtype=np.uint8)
    sizes = np.array([len(token) for token in coded])
    return trec._parse_numbers(text, np.cumsum(sizes + 1) - sizes - 1, sizes, infinite=infinite)


@given(st.lists(st.one_of(NUMBERS, ODD_NUMBERS.filter(bool)), min_size=1, max_size=9), st.booleans())
def test_numbers_are_pythons(tokens, infinite):
    coded = [token.encode() for token in tokens]
    found, expected = parsed(coded, infinite), trec._to_floats(coded, infinite=infinite)
    assert (found is None) == (expected is None)
    assert found is None or [value.hex() for value in found.tolist()] == [value.hex() for value in expected.tolist()]


def test_numbers_with_more_digits_than_float64_holds_exactly():
    whole = np.random.default_rng(0).integers(2**53, 10**16, 500).tolist()
    coded = [f"{number // 10**at}.{number % 10**at:0{at}}".encode() for number in whole for at in (1, 3, 12)]
    # The first begins like a shorter number in its first eighteen characters.
    coded += [b"1.2345678901234567890", b"12345678901234567890.5", b"9007199254740992", b"-9007199254740992.0"]
    assert parsed(coded).tolist() == [float(token) for token in coded]


# Ids with trailing NULs, with lengths near the limits of words and columns, and that differ beyond the columns.
IDS = st.one_of(
    st.sampled_from([b"", b"\0", b"a", b"a\0", b"b", b"x" * 8, b"x" * 9, b"\xff" * 8, b"\xff" * 7]),
    st.sampled_from([b"p" * 64, b"p" * 63 + b"q", b"p" * 64 + b"a", b"p" * 64 + b"b", b"p" * 64 + b"a\0", b"p" * 200]),
    st.binary(max_size=70),
)
ROWS = st.lists(st.tuples(st.integers(0, 2), IDS), max_size=30)


def names_of(ids):
    names = Names()
    names.extend(ids)
    return names


def previous(rows):
    last, found = {}, []
    for i, row in enumerate(rows):
        found.append(last.get(row, -1))
        last[row] = i
    return found


@given(ROWS, st.integers(0, 30))
def test_names_are_the_bytes_they_were_made_of(rows, cut):
    ids = [each for _, each in rows]
    names = names_of(ids[:cut])
    names.add(names_of(ids[cut:]))
    assert list(names) == ids
    assert names.changes().tolist() == [i for i, each in enumerate(ids) if i == 0 or each != ids[i - 1]]


@pytest.mark.parametrize("bits", [64, 3, 0])
@pytest.mark.parametrize("chunk", [1 << 18, 2])
@given(ROWS)
def test_the_same_name_is_found_whatever_its_hash(bits, chunk, rows):
    topic = np.array([topic for topic, _ in rows], dtype=np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ndcg_ml._files.byte_ids._CHUNK", chunk)
        hashes = Names.hashes
        patch.setattr(
            Names, "hashes", lambda self, rows: hashes(self, rows) & np.uint64(((1 << bits) - 1) << 64 - bits)
        )
        assert earlier(topic, names_of([each for _, each in rows])).tolist() == previous(rows)


@given(ROWS)
def test_byte_order(rows):
    names = names_of([each for _, each in rows])
    some = np.arange(0, len(rows), 2)
    topic = np.array([rows[i][0] for i in some], dtype=np.int64)
    assert [rows[i] for i in names.order_by_bytes(topic, some)] == sorted(rows[i] for i in some)


def test_similar_ids_have_different_hashes():
    names = names_of([b"doc%07d" % i for i in range(200_000)])
    hashes = names.hashes(slice(0, len(names)))
    for bits in (40, 48):
        n_pairs = 200_000**2 / 2
        assert 200_000 - np.unique(hashes >> np.uint64(64 - bits)).size < 6 + 3 * n_pairs / 2**bits


LONG = [b"p" * 64 + end for end in (b"c", b"a", b"b", b"aa", b"")]


@pytest.mark.parametrize("first", [0, 1, 2])
def test_ids_that_differ_beyond_their_columns_are_in_order_in_every_topic(first):
    topic = np.array([first, first, *np.repeat([3, 4], len(LONG)), 5])
    names = names_of([b"z", b"a", *LONG, *LONG, b"b"])
    ordered = names.order_by_bytes(topic, np.arange(13))
    assert topic[ordered].tolist() == topic.tolist()
    assert [names[row] for row in ordered] == [b"a", b"z", *sorted(LONG), *sorted(LONG), b"b"]


def test_ids_that_differ_beyond_their_columns_are_different():
    names = names_of([LONG[0], LONG[1], LONG[1], LONG[0], b"p" * 64, LONG[3]])
    assert names.changes().tolist() == [0, 1, 3, 4, 5]
    assert names.are_equal(np.arange(5), np.arange(1, 6)).tolist() == [False, True, False, False, False]
    assert earlier(np.array([0, 0, 0, 0, 0, 0]), names).tolist() == [-1, -1, 1, 0, -1, -1]
    assert earlier(np.array([0, 0, 1, 0, 1, 1]), names).tolist() == [-1, -1, -1, 0, -1, -1]
    assert names.long_rows(slice(1, 4)) == [1, 2, 3]
    assert names.long_rows(slice(4, 6)) == [5]


def test_ids_that_differ_beyond_their_columns_have_different_digests():
    def digest(ids, values):
        names = names_of([b"first", *ids])
        return digests(
            names, slice(1, len(names)), np.arange(len(ids)), np.array(values, dtype=np.float64), len(ids)
        ).tolist()

    one, other, again = digest([LONG[0], LONG[1], LONG[0]], [1, 1, 1])
    assert one == again != other
    assert digest([LONG[0]], [1]) == [one]
    assert digest([LONG[0]], [2]) != [one]
    assert digest([LONG[0]], [0.0]) == digest([LONG[0]], [-0.0])
