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
from ndcg_ml._files.byte_ids import PADDING
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
@pytest.mark.parametrize("score", ["1", "-3.25", "12.345678", "0.12345678901234567", "1e-7", "-inf"])
def test_the_usual_lines_are_read_at_once(tmp_path, monkeypatch, end, gap, score):
    monkeypatch.setattr(trec, "_parse_lines", None)
    line = gap.join(["7", "Q0", "d1", "1", score, "tag"])
    (tmp_path / "run").write_text(f"{line}{end}{line}", newline="")
    assert [row[1:] for row in read(tmp_path / "run", RUN)] == [(b"d1", float(score).hex(), n) for n in (1, 2)]


@pytest.mark.parametrize("odd", ["", "  ", "\t", "# a comment of six or so words", " # another", "#"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_comments_and_blank_lines_leave_the_others_read_at_once(tmp_path, monkeypatch, odd, end):
    monkeypatch.setattr(trec, "_parse_lines", None)
    line = "7 Q0 d1 1 0.5 tag"
    (tmp_path / "run").write_text(end.join([odd, odd, line, odd, f" {line}", line, odd, odd]), newline="")
    assert [row[3] for row in read(tmp_path / "run", RUN)] == [3, 5, 6]
    (tmp_path / "run").write_text(end.join([line, odd]), newline="")
    assert [row[3] for row in read(tmp_path / "run", RUN)] == [1]


@given(st.lists(st.one_of(NUMBERS, ODD_NUMBERS.filter(bool)), min_size=1, max_size=9), st.booleans())
def test_numbers_are_pythons(tokens, infinite):
    coded = [token.encode() for token in tokens]
    text = np.frombuffer(b" ".join(coded) + PADDING, dtype=np.uint8)
    sizes = np.array([len(token) for token in coded])
    found = trec._parse_numbers(text, np.cumsum(sizes + 1) - sizes - 1, sizes, infinite=infinite)
    expected = trec._to_floats(coded, infinite=infinite)
    assert (found is None) == (expected is None)
    assert found is None or [value.hex() for value in found.tolist()] == [value.hex() for value in expected.tolist()]


@pytest.mark.parametrize("token", ["1.5", "-1.5", ".5", "5.", "-0.25", "123456789.1234567", "17", "-17"])
def test_plain_numbers_are_read_all_at_once(monkeypatch, token):
    monkeypatch.setattr(trec, "_to_floats", None)
    text = np.frombuffer(token.encode() + PADDING, dtype=np.uint8)
    found = trec._parse_numbers(text, np.zeros(1, dtype=np.int64), np.array([len(token)]), infinite=False)
    assert found.tolist() == [float(token)]


def test_a_number_of_eighteen_characters_that_begins_like_a_shorter_one():
    coded = [b"1.2345678901234567890", b"12345678901234567890.5", b"9007199254740992", b"-9007199254740992.0"]
    text = np.frombuffer(b" ".join(coded) + PADDING, dtype=np.uint8)
    sizes = np.array([len(token) for token in coded])
    found = trec._parse_numbers(text, np.cumsum(sizes + 1) - sizes - 1, sizes, infinite=False)
    assert found.tolist() == [float(token) for token in coded]


def test_numbers_with_more_digits_than_float64_holds_exactly():
    rng = np.random.default_rng(0)
    whole = rng.integers(2**53, 10**16, 500)
    coded = [f"{number // 10**at}.{number % 10**at:0{at}}".encode() for number in whole.tolist() for at in (1, 3, 12)]
    text = np.frombuffer(b" ".join(coded) + PADDING, dtype=np.uint8)
    sizes = np.array([len(token) for token in coded])
    found = trec._parse_numbers(text, np.cumsum(sizes + 1) - sizes - 1, sizes, infinite=False)
    assert found.tolist() == [float(token) for token in coded]


def test_a_control_character_is_part_of_a_word(tmp_path):
    (tmp_path / "run").write_bytes(b"301 Q0 d 1\x1c2.5 tag\n")
    assert "line 1: a line of a run must have 6 or more columns" in read(tmp_path / "run", RUN)


LEGITIMATE = ["q1 Q0 d1 1 2.0 my tag", "q1 Q0 d7 1 2.0 a tag of five words"]
WRONG = [
    ("q1 Q0 d 2 2 1.5 tag", "'2', a number|'d 2|where the rank should be|where the tag should begin"),
    ("q1 Q0 a doc 2 1.5 tag", "where the rank should be"),
    ("q1 Q0 d2 2", "got 4"),
    ("q1 Q0 d2 2 one tag", "score"),
]


@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize("after", [0, 2])
@pytest.mark.parametrize(("wrong", "told"), WRONG)
@pytest.mark.parametrize("legitimate", LEGITIMATE)
def test_every_line_is_checked_after_a_long_one_that_is_right(tmp_path, before, after, wrong, told, legitimate):
    """A tag of several words is right; the lines that follow it are looked at as closely as those before."""
    fine = [f"q1 Q0 x{i} 1 {9 - i}.5 tag" for i in range(before)]
    last = [f"q1 Q0 y{i} 1 0.5 tag" for i in range(after)]
    (tmp_path / "run").write_text("\n".join([legitimate, *fine, wrong, *last]) + "\n", encoding="utf-8")
    with pytest.raises(DataFileError, match=rf"run, line {before + 2}: .*({told})"):
        list(trec_lines(tmp_path / "run", RUN))
    (tmp_path / "run").write_text("\n".join([legitimate, *fine, *last]) + "\n", encoding="utf-8")
    [block] = trec_lines(tmp_path / "run", RUN)
    assert len(block.documents) == 1 + before + after


@pytest.mark.parametrize("content", [b"\xef\xbb\xbf", b"# a comment\n", b"\n\n", b"# one\n#two\n   \n"])
def test_a_file_without_a_line_says_so(tmp_path, content):
    (tmp_path / "run").write_bytes(content)
    assert "has no lines" in read(tmp_path / "run", RUN)
