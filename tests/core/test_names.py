"""Ids in columns of bytes: equal, in order and found again as Python's own bytes are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndcg_ml._files.byte_ids import Names, digests, earlier

# Ends in NULs, lengths around the words' and the columns' ends, ids that differ beyond the columns.
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


def test_hashes_tell_ids_that_are_almost_equal_apart():
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


def test_ids_that_differ_beyond_their_columns_are_told_apart():
    names = names_of([LONG[0], LONG[1], LONG[1], LONG[0], b"p" * 64, LONG[3]])
    assert names.changes().tolist() == [0, 1, 3, 4, 5]
    assert names.are_equal(np.arange(5), np.arange(1, 6)).tolist() == [False, True, False, False, False]
    assert earlier(np.array([0, 0, 0, 0, 0, 0]), names).tolist() == [-1, -1, 1, 0, -1, -1]
    assert earlier(np.array([0, 0, 1, 0, 1, 1]), names).tolist() == [-1, -1, -1, 0, -1, -1]
    assert names.long_rows(slice(1, 4)) == [1, 2, 3]
    assert names.long_rows(slice(4, 6)) == [5]


def test_digests_tell_ids_that_differ_beyond_their_columns_apart():
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
