"""Limits of parts and streams that no ordinary data meet: the largest ids, counts and sums, and what is left out."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import blake2b

import numpy as np
import pytest

from ndcg_ml import Flavor, PartialEvaluation, evaluate_batches, evaluate_part
from ndcg_ml._parts import query_ids, stream, text
from ndcg_ml._parts.exact import ExactSums


def stored(flavor="sklearn", **changes):
    part = evaluate_part([1, 0], [0, 1], qid=[1, 2], flavor=flavor)
    return json.dumps({**json.loads(part.to_json()), **changes})


def digest_of(text):
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little")


# -- ids ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([-(2**63), 2**63 - 1], np.int64),
        ([0, 2**63], np.uint64),
        ([0, 2**64 - 1], np.uint64),
        ([-1, 2**63], object),
        ([0, 2**64], object),
        ([True, 2], np.int64),
        ([0.5, 1.5], np.float64),
        ([0.5, 1], object),
        ([np.datetime64("2026-01-01", "D")] * 2, "M8[D]"),
        (["a", "b"], object),
        ([b"a", b"b"], object),
        ([(0.5, 1.5), (2.5, 3.5)], object),
        ([], object),
    ],
    ids=str,
)
def test_objects_become_numbers_where_none_is_changed(values, dtype):
    ids = np.empty(len(values), dtype=object)
    ids[:] = values
    found = query_ids.typed_ids(ids)
    assert found.dtype == dtype
    assert found.shape == (len(values),)
    assert all(one == other for one, other in zip(found, values, strict=True))


@pytest.mark.parametrize("ids", [[-(2**63), 2**63], [2**64 - 1, -1], [2**63 - 1, 2**63]])
def test_integers_of_64_bits_are_ids(ids):
    part = evaluate_part([1, 1], [1, 2], qid=np.array(ids, dtype=object))
    assert part.id_kind == "int"
    assert part.n_queries == 2
    assert sorted(part.ids.tolist()) == sorted(one % 2**64 for one in ids)


@pytest.mark.parametrize("wide", [2**64, -(2**63) - 1])
def test_integers_beyond_64_bits_are_refused(wide):
    with pytest.raises(TypeError, match=f"that are integers must fit 64 bits; got {wide}"):
        evaluate_part([1, 1], [1, 2], qid=np.array([0, wide], dtype=object))


# -- texts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_docs", "fine"), [(-1, False), (0, True), (2**63 - 1, True), (2**63, False), (True, False)])
def test_a_count_is_an_integer_of_64_bits(n_docs, fine):
    if fine:
        assert PartialEvaluation.from_json(stored(n_docs=n_docs)).n_docs == n_docs
    else:
        with pytest.raises(ValueError, match=f"n_docs must be an integer from 0 to {2**63 - 1}; it is {n_docs}"):
            PartialEvaluation.from_json(stored(n_docs=n_docs))


@pytest.mark.parametrize(("n_empty", "fine"), [(-1, False), (0, True), (1, True), (2, False), (3, False)])
def test_no_more_queries_are_empty_than_there_are(n_empty, fine):
    if fine:
        assert PartialEvaluation.from_json(stored(n_empty=[n_empty])).n_empty == n_empty
    else:
        with pytest.raises(
            ValueError, match=r"n_empty must be an integer from 0 to 2|its numerator is not that of empty"
        ):
            PartialEvaluation.from_json(stored(n_empty=[n_empty]))


@pytest.mark.parametrize(("above", "fine"), [(0, True), (2**-51, False)])
def test_an_ndcg_may_be_above_1_by_a_billionth(above, fine):
    text = stored(numerator=[[2 * (1 + 1e-9) + above]], denominator=[[2.0]])
    if fine:
        assert PartialEvaluation.from_json(text).value == 1 + 1e-9
    else:
        with pytest.raises(ValueError, match="an NDCG is above 1, which its flavor cannot give"):
            PartialEvaluation.from_json(text)


@pytest.mark.parametrize("text", [5, None, ["{}"], np.bytes_(b"{}").tolist])
def test_a_text_of_another_type_is_refused(text):
    with pytest.raises(TypeError, match="text must be a str or bytes; got"):
        PartialEvaluation.from_json(text)


# -- merging --------------------------------------------------------------------------------------------------------


def test_parts_are_added_to_parts_and_to_the_0_of_sum():
    part = evaluate_part([1, 0], [0, 1], qid=[1, 2])
    assert 0 + part == part
    for other in (1, 0.0, None):
        with pytest.raises(TypeError, match="unsupported operand"):
            other + part
        with pytest.raises(TypeError, match="unsupported operand"):
            part + other
    assert part != 0
    assert part != "part"


def _gain(label):
    return label


def _other_gain(label):
    return 2 * label


def test_callables_are_blamed_only_where_all_else_is_the_same():
    flavor = Flavor(gain=_gain)
    one = evaluate_part([1], [1], qid=[1], flavor=flavor, k=[1, 2])
    for other in (
        evaluate_part([1], [1], qid=[2], flavor=flavor.replace(discount="ln"), k=[1, 2]),
        evaluate_part([1], [1], qid=[2], flavor=flavor, k=[1, 3]),
        evaluate_part([1], [1], qid=[2], flavor=flavor, k=[2, 3]),
        evaluate_part([1], [1], qid=[2], flavor=flavor, k=1),
    ):
        with pytest.raises(ValueError, match=r"^parts must have one flavor and the same cut-offs; got "):
            one + other


# -- streams --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [1, -1])
def test_integers_and_floats_may_meet_below_2_53(sign):
    def batches(largest):
        return [([1, 0], np.array([sign * largest, 3]), [7, 7]), ([1], np.array([0.5]), [7])]

    assert evaluate_batches(batches(2**53 - 1)).n_queries == 1
    with pytest.raises(TypeError, match=r"y_score must have one dtype in all batches .* got float64 and int64"):
        evaluate_batches(batches(2**53))


def test_two_lists_of_one_are_warned_of_and_one_is_not(recwarn):
    evaluate_batches([([1], [1], [0])])
    assert not recwarn.list
    with pytest.warns(UserWarning, match="2 queries"):
        evaluate_batches([([1], [1], [0]), ([1], [1], [1])])


# -- sums and streams by hand, beside those that are drawn ----------------------------------------------------------


@pytest.mark.parametrize("cuts", [[], [1], [2], [3], [1, 2], [2, 4], [3, 3], [0, 6], [1, 2, 3, 4, 5]])
def test_a_stream_that_is_cut_by_hand(cuts):
    y, s, qid = np.array([1, 0, 2, 0, 1, 1]), np.array([3.0, 4, 1, 2, 5, 6]), np.array([7, 7, 7, 8, 8, 9])
    pieces = [tuple(column[at:to] for column in (y, s, qid)) for at, to in zip([0, *cuts], [*cuts, 6], strict=True)]
    whole = evaluate_part(y, s, qid=qid)
    assert evaluate_batches(pieces) == whole
    sizes = [ids.tolist() for _, _, ids in stream.whole_queries(iter(pieces))]
    assert [qid for ids in sizes for qid in ids] == qid.tolist()
    assert len({qid for ids in sizes for qid in set(ids)}) == sum(len(set(ids)) for ids in sizes) == 3


# -- what makes a part what it is -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"n_docs": 3},
        {"n_queries": 3},
        {"empties": (0,)},
        {"several": True},
        {"ks": (1,)},
        {"id_kind": "float"},
        {"ids": np.array([1, 3], dtype=np.uint64)},
        {"ids": np.array([1], dtype=np.uint64)},
        {"flavor": Flavor(gain="exponential")},
        {"sums": ExactSums(((1.5,),), ((2.0,),))},
    ],
    ids=lambda change: next(iter(change)),
)
def test_parts_are_equal_where_all_of_them_is(change):
    part = evaluate_part([1, 0], [0, 1], qid=[1, 2])
    assert replace(part) == part
    assert hash(replace(part)) == hash(part)
    assert replace(part, **change) != part


@pytest.mark.parametrize(
    ("flavor", "positive", "beaten"),
    [
        ({}, True, False),
        ({"negative": "allow"}, False, False),
        ({"negative": "allow", "gain": "binary"}, True, False),
        ({"gain": (0, 1, 3)}, True, False),
        ({"gain": (-1, 1, 3)}, False, False),
        ({"gain": (0, 1, 3), "ideal": "max", "max_grade": 2}, True, False),
        ({"gain": (0, 3, 1), "ideal": "max", "max_grade": 2}, True, True),
        ({"gain": (0, 3, 1), "ideal": "max", "max_grade": 1}, True, False),
        ({"gain": (1, 3), "ideal": "max", "max_grade": 0}, True, False),
        ({"ideal": "global", "duplicates": "count"}, True, True),
        ({"ideal": "global"}, True, False),
        ({"ideal": "given"}, True, True),
        ({"ideal": "recall"}, True, False),
    ],
    ids=str,
)
def test_what_an_ndcg_of_a_flavor_may_be(flavor, positive, beaten):
    assert text.gains_are_positive(Flavor(**flavor)) == positive
    assert text.ideal_can_be_beaten(Flavor(**flavor)) == beaten


@pytest.mark.parametrize(
    ("batch", "shapes"),
    [
        (([[1]], [[1]], [1]), r"\(1, 1\), \(1, 1\) and \(1,\)"),
        (([[1]], [1], [[1], [2]]), r"\(1, 1\), \(1,\) and \(2, 1\)"),
        (([1], [[1]], [1]), r"\(1,\), \(1, 1\) and \(1,\)"),
        (([1, 0], [1, 2], [1]), r"\(2,\), \(2,\) and \(1,\)"),
    ],
)
def test_the_shapes_of_a_batch_are_told_apart(batch, shapes):
    with pytest.raises(ValueError, match=rf"per row; batch 0 has shapes {shapes}\.$"):
        evaluate_batches([batch])


def test_a_part_of_nothing_has_no_ids():
    part = evaluate_part([], [], qid=[])
    assert (part.n_queries, part.ids.size) == (0, 0)
