"""Query ids in any order and of any type give the same layout as a dict of rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndcg_ml._core.query_groups import group_by_ids, group_by_sizes

IDS = {
    "small integers": np.array([-128, 127, 0, 3, -1], dtype=np.int8),
    "the whole range of int64": np.array([-(2**63), 2**63 - 1, 0, -1, 5]),
    "the whole range of uint64": np.array([2**64 - 1, 0, 2**63, 7], dtype=np.uint64),
    "neighbours above 2^63": np.array([2**63 + 1, 2**63, 2**63 + 2], dtype=np.uint64),
    "floats": np.array([1.5, -0.0, 0.0, np.inf, -np.inf, 1e300]),
    "text": np.array(["q10", "q9", "", "é", "q"]),
    "bytes": np.array([b"q10", b"q9", b"", b"\x00a"]),
    "times": np.array(["2026-01-02", "1900-01-01", "2026-01-01"], dtype="M8[s]"),
    "truth": np.array([True, False]),
    "objects": np.array(["q10", 9, (1, "a"), 2.5, b"q"], dtype=object),
    "complex": np.array([1j, 1 + 1j, 0]),
    "records": np.array([(1, "b"), (0, "a"), (1, "a")], dtype=[("part", int), ("name", "U1")]),
}


@pytest.mark.parametrize("kind", IDS)
@given(st.data())
def test_ids_in_any_order(kind, data):
    pool = IDS[kind]
    drawn = data.draw(st.lists(st.tuples(st.integers(0, pool.size - 1), st.integers(1, 3)), min_size=1, max_size=20))
    ids = np.concatenate([np.repeat(pool[at : at + 1], times) for at, times in drawn])
    expected: dict[object, list[int]] = {}
    for row, each in enumerate(ids.tolist()):
        expected.setdefault(each, []).append(row)
    got = group_by_ids(ids, ids.size)
    order = np.arange(ids.size) if got.order is None else got.order
    rows = [order[start : start + size].tolist() for start, size in zip(got.starts, got.sizes, strict=True)]
    assert got.ids is not None
    assert dict(zip(got.ids.tolist(), rows, strict=True)) == expected
    assert got.ids.tolist() == list(expected)  # in order of first appearance
    assert got.ids.dtype == (object if ids.dtype.names else ids.dtype)
    stops = np.cumsum(got.sizes)
    assert got.starts.tolist() == (stops - got.sizes).tolist()


def test_reversed_rows_keep_their_queries():
    groups = group_by_ids(np.array(["b", "a", "b", "c", "b", "a"]), 6)
    assert groups.reverse_rows().order.tolist() == [4, 2, 0, 5, 1, 3]
    assert groups.reverse_rows().reverse_rows().order.tolist() == groups.order.tolist()
    sized = group_by_sizes([2, 0, 3], 5)
    assert sized.reverse_rows().order.tolist() == [1, 0, 4, 3, 2]
    assert sized.reverse_rows().sizes is sized.sizes
