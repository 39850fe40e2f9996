"""Parts of a data set add up to the whole, exactly; and what is not disjoint or not whole is refused."""

import copy
import math
import pickle
import re
from dataclasses import replace
from fractions import Fraction
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import Problem, flavors, problems, square_root

from ndcg_ml import Flavor, PartialEvaluation, evaluate, evaluate_batches, evaluate_part, ndcg_score
from ndcg_ml.parts import ExactSums, exact_sum

KS: Any = (1, 3, None)


class SquareRoot:
    """A callable that is equal to itself alone."""

    def __call__(self, grade: float) -> float:
        return square_root(grade)


def copied(function: Any) -> Any:
    """What a process gets that was sent a function of ``__main__``, or an object."""
    if isinstance(function, FunctionType):
        return FunctionType(function.__code__, function.__globals__, function.__name__)
    return copy.copy(function)


def part_of(problem: Problem, flavor: Flavor, queries: list[int], k: Any = ...) -> PartialEvaluation:
    """The part that these queries of the problem are."""
    weights = None if problem.weights is None else tuple(problem.weights[q] for q in queries)
    some = Problem(tuple(problem.queries[q] for q in queries), weights)
    return evaluate_part(**some.flat(flavor), query_id=np.array(queries, dtype=np.int64), flavor=flavor, k=k)


def outcome(function: Any) -> Any:
    try:
        return function()
    except ValueError as error:
        return str(error)


def same(got: Any, expected: Any) -> bool:
    """Both the same value to 1e-12, or both an error."""
    if isinstance(expected, str) or isinstance(got, str):
        return isinstance(expected, str) and isinstance(got, str)
    if isinstance(expected, dict):
        return got.keys() == expected.keys() and all(same(got[k], expected[k]) for k in expected)
    return bool(np.isclose(got, expected, rtol=1e-12, atol=1e-13, equal_nan=True))


ANY = st.floats(allow_nan=False, allow_infinity=False)
TOO_LARGE = "an NDCG, or a sum of them, is too large for float64. Use a smaller grade scale."


@given(st.lists(ANY, max_size=30), st.randoms())
def test_an_exact_sum_is_that_of_fractions_in_any_order_and_grouping(values: list[float], random: Any) -> None:
    expected = sum(map(Fraction, values))
    total = outcome(lambda: exact_sum(values))
    if isinstance(total, str):
        assert sum(map(abs, map(Fraction, values))) >= Fraction(2) ** 1023
        return
    assert sum(map(Fraction, total)) == expected
    assert (total[0] if total else 0.0) == float(expected)
    shuffled = random.sample(values, len(values))
    cut = random.randint(0, len(values))
    assert outcome(lambda: exact_sum((*exact_sum(shuffled[:cut]), *exact_sum(shuffled[cut:])))) in (total, TOO_LARGE)


@given(st.data())
def test_parts_add_up_to_the_whole_in_any_grouping(data: st.DataObject) -> None:
    flavor = data.draw(flavors())
    problem = data.draw(problems(flavor, max_queries=8))
    k = data.draw(st.sampled_from([..., None, 2, KS]))
    where = data.draw(st.lists(st.integers(0, 3), min_size=len(problem.queries), max_size=len(problem.queries)))
    shards = [[q for q, shard in enumerate(where) if shard == number] for number in range(4)]
    whole = outcome(lambda: ndcg_score(**problem.flat(flavor), flavor=flavor, k=k))
    try:
        parts = [part_of(problem, flavor, shard, k) for shard in shards]
    except ValueError:
        assert isinstance(whole, str)  # empty="raise"
        return
    order = data.draw(st.permutations(range(4)))
    a, b, c, d = (parts[i] for i in order)
    merged = PartialEvaluation.merge(parts)
    assert merged == (a + b) + (c + d) == a + (b + (c + d)) == sum([d, c, b, a]) == ((d + b) + a) + c
    assert hash(merged) == hash(sum([d, c, b, a]))
    assert same(outcome(lambda: merged.value), whole)
    everything = part_of(problem, flavor, list(range(len(problem.queries))), k)
    assert same(outcome(lambda: merged.value), outcome(lambda: everything.value))
    assert (merged.n_queries, merged.n_docs, merged.n_empty) == (
        everything.n_queries,
        everything.n_docs,
        everything.n_empty,
    )
    np.testing.assert_array_equal(merged.ids, everything.ids)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy warns of the overflow
@pytest.mark.parametrize("empty", [0.0, math.nan])
def test_a_nan_that_is_not_of_an_empty_query_is_refused(empty: float) -> None:
    flavor = Flavor(gain=lambda grade: grade * 1e100, discount=lambda rank: 1e300, empty=empty)
    labels, scores, qid = rows = [3, 1, 2], [2, 1, 0], [1, 1, 2]
    assert math.isnan(ndcg_score(labels, scores, qid=qid, flavor=flavor))
    assert outcome(lambda: evaluate_part(labels, scores, qid=qid, flavor=flavor)) == TOO_LARGE
    assert outcome(lambda: evaluate_batches([rows], flavor=flavor)) == TOO_LARGE


def test_a_part_says_what_the_evaluation_says_wherever_its_cut_off_is_given() -> None:
    y, s, qid = [3, 0, 1, 0, 0], [0.9, 0.1, 0.3, 0.2, 0.8], list("aaabb")
    part = evaluate_part(y, s, qid=qid, flavor="lightgbm", k=10)
    whole = evaluate(y, s, qid=qid, flavor="lightgbm", k=10)
    assert (part.value, part.flavor, part.k) == (whole.value, whole.flavor, whole.k)
    assert (part.n_queries, part.n_empty, part.n_docs) == (2, 1, 5)
    assert str(part) == "ndcg@10 = 1.000000\n2 queries, 1 empty; 5 documents\n" + str(whole.flavor)
    several = evaluate_part(y, s, qid=qid, flavor="lightgbm", k=[1, 10])
    assert several.n_empty == {1: 1, 10: 1}
    assert several.k == (1, 10)
    assert str(several).startswith("ndcg@1 = 1.000000\nndcg@10 = 1.000000\n2 queries, 1 empty")
    assert "2 queries" in repr(part)
    beside = evaluate_part([1], [1], qid=[1], flavor="sklearn", k=5)
    within = evaluate_part([1], [1], qid=[2], flavor=Flavor.preset("sklearn", k=5))
    assert (beside + within).n_queries == 2


@pytest.mark.parametrize("shape", ["flat", "two-dimensional", "no slots", "padding", "group"])
def test_a_part_without_rows_changes_nothing(shape: str) -> None:
    some = evaluate_part([1, 0], [0.1, 0.2], qid=["x", "x"])
    forms: dict[str, Any] = {
        "flat": lambda: evaluate_part([], [], qid=[]),
        "two-dimensional": lambda: evaluate_part(np.empty((0, 4)), np.empty((0, 4)), query_id=[]),
        "no slots": lambda: evaluate_part(np.empty((2, 0)), np.empty((2, 0)), query_id=[7, 7]),
        "padding": lambda: evaluate_part([[-1.0, np.nan]], [[np.nan] * 2], mask=[[False] * 2], query_id=[None]),
        "group": lambda: evaluate_part([], [], group=np.array([], dtype=int), query_id=[]),
    }
    nothing = forms[shape]()
    assert nothing + some == some + nothing == some
    assert str(nothing).startswith("no queries")
    both = PartialEvaluation.merge([nothing, nothing])
    assert (both.n_queries, both.ids.size, both) == (0, 0, nothing)
    assert evaluate_batches([]).n_queries == evaluate_batches([([], [], [])]).n_queries == 0
    with pytest.raises(ValueError, match="no query"):
        _ = nothing.value


def test_a_part_whose_weights_are_0_counts_for_nothing_and_is_still_seen() -> None:
    some = evaluate_part([1, 0], [0.1, 0.2], qid=["x", "x"])
    muted = evaluate_part([1, 0], [0.2, 0.1], qid=["y", "y"], query_weight={"x": 1.0, "y": 0.0})
    assert (some + muted).value == some.value
    assert (some + muted).n_queries == 2
    without_rows = evaluate_part([], [], group=[0, 0], query_id=[1, 2], flavor="sklearn")
    assert (without_rows.n_queries, without_rows.n_empty, without_rows.value) == (2, 2, 0.0)
    empty = evaluate_part([0], [1], qid=[1], flavor=Flavor(empty="skip"))
    assert (empty + evaluate_part([1], [1], qid=[2], flavor=Flavor(empty="skip"))).value == 1.0


IDS: dict[str, tuple[Any, Any]] = {
    "int": (np.array([3, 4]), np.array([4, 5], dtype=np.int16)),
    "object uint64": (np.array([3, 2**63 + 4], dtype=object), np.array([2**63 + 4], dtype=np.uint64)),
    "objects from -1 to 2^63": (np.array([2**63 + 1, -1], dtype=object), np.array([-1, 3], dtype=object)),
    "uint64": (np.array([3, 2**63 + 4], dtype=np.uint64), np.array([2**63 + 4], dtype=np.uint64)),
    "bool": (np.array([True, False]), np.array([False])),
    "negative": (np.array([-1, 4]), np.array([-1])),
    "str": (["a", "b"], np.array(["b", "longer"])),
    "objects": (np.array(["a", "b"], dtype=object), ["b"]),
    "object integers": (np.array([3, 4], dtype=object), [4]),
    "zeros at the end": (np.array(["b", "b\0"], dtype=object), np.array(["b\0"], dtype=object)),
    "bytes": (np.array([b"a", b"b"]), np.array([b"b"], dtype=object)),
    "float": (np.array([1e-20, -0.0]), np.array([0.0])),
    "object floats": (np.array([0.5, -0.0], dtype=object), np.array([0.0])),
    "object times": (np.array([np.datetime64(1, "D"), np.datetime64(2, "D")], dtype=object), np.array([2], "M8[D]")),
    "time": (np.array(["2026-01-01", "2026-01-02"], dtype="M8[s]"), np.array(["2026-01-02"], dtype="M8[ms]")),
}


@pytest.mark.parametrize("name", IDS)
def test_a_query_in_two_parts_is_recognised(name: str) -> None:
    first, second = (
        evaluate_part(np.ones(len(ids)), np.ones(len(ids)), group=[1] * len(ids), query_id=ids) for ids in IDS[name]
    )
    with pytest.raises(ValueError, match="1 of the queries is in two of the parts"):
        first + second
    with pytest.raises(ValueError, match="2 of the queries are in two"):
        first + first
    (other,) = (x for x in IDS[name][0] if x not in list(IDS[name][1]))
    alone = evaluate_part([1], [1], qid=np.array([other], dtype=np.asarray(IDS[name][0]).dtype))
    assert (alone + second).n_queries == 1 + len(second.ids)


@pytest.mark.parametrize("ids", [[-(2**63), 2**63], [2**64 - 1, -1], [2**63 - 1, 2**63]])
def test_integers_of_64_bits_are_ids(ids: Any) -> None:
    part = evaluate_part([1, 1], [1, 2], qid=np.array(ids, dtype=object))
    assert part.id_kind == "int"
    assert part.n_queries == 2
    assert sorted(part.ids.tolist()) == sorted(one % 2**64 for one in ids)


@pytest.mark.parametrize(
    ("gain", "name"),
    [(lambda grade: grade, "gain"), (square_root, "gain"), (SquareRoot(), "discount")],
    ids=["a lambda", "a function", "an object"],
)
def test_parts_of_copies_of_one_callable_say_why_they_do_not_merge(gain: Any, name: str) -> None:
    copies = [Flavor(**{name: copied(gain)}, k=5) for _ in range(2)]
    parts = [evaluate_part([1], [1], qid=[i], flavor=flavor) for i, flavor in enumerate(copies)]
    with pytest.raises(ValueError, match=r"Copies of a callable.* are equal if it is a function of a module") as caught:
        sum(parts)
    assert "__main__" in str(caught.value)
    assert "0x" not in str(caught.value)  # an address would differ in every process


def test_a_cut_off_at_which_no_query_counts_may_stand_beside_a_large_ndcg() -> None:
    flavor = Flavor(ideal="given", empty="skip")
    part = evaluate_part([0, 1e-100, 1e100], [1, 2, 3], qid=[1, 1, 1], flavor=flavor, k=[1, 2])
    assert part.n_empty == {1: 1, 2: 0}
    assert pickle.loads(pickle.dumps(part)) == part


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
def test_parts_are_equal_where_all_of_them_is(change: Any) -> None:
    part = evaluate_part([1, 0], [0, 1], qid=[1, 2])
    assert replace(part) == part
    assert hash(replace(part)) == hash(part)
    assert replace(part, **change) != part


@pytest.mark.parametrize("arguments", [{"flavor": "sklearn[empty=skip]"}, {"query_weight": [0]}])
def test_a_part_without_a_value_can_be_printed(arguments: dict[str, Any]) -> None:
    part = evaluate_part([0, 0], [1, 2], qid=[7, 7], **arguments)
    with pytest.raises(ValueError, match=r"nothing to average|above 0 for at least one"):
        _ = part.value
    assert re.match(r"no value: .*\n1 queries, 1 empty; 2 documents\nndcg", str(part))


def stream(n_queries: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows in the order of their queries."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, n_queries)
    qid = np.repeat(rng.permutation(n_queries), sizes)
    return rng.integers(0, 4, qid.size), rng.normal(size=qid.size).round(1), qid


def cut(rows: tuple[np.ndarray, ...], at: list[int]) -> list[Any]:
    return [tuple(column[a:b] for column in rows) for a, b in zip([0, *at], [*at, rows[0].size], strict=True)]


@given(st.lists(st.integers(0, 180), max_size=20), st.sampled_from(["int", "str", "object"]))
def test_a_stream_may_be_cut_anywhere(at: list[int], kind: str) -> None:
    y, s, qid = stream()
    expected = ndcg_score(y, s, qid=qid, flavor="sklearn", k=KS)
    ids = {"int": qid, "str": qid.astype(str), "object": np.array([f"q{i}" for i in qid], dtype=object)}[kind]
    result = evaluate_batches(cut((y, s, ids), sorted(min(a, y.size) for a in at)), flavor="sklearn", k=KS)
    assert same(result.value, expected)
    assert result.n_queries == 40
    assert result.n_docs == y.size
    np.testing.assert_array_equal(result.ids, evaluate_part(y, s, qid=ids).ids)


DAYS = np.array(["2026-01-01", "2026-01-02", "2026-01-03"], dtype="M8[D]")
NUL = [b"\x01", b"\x01\0", b"\x01\0\0"]
# NumPy has no strings of variable width before 2.0.
VARIABLE_WIDTH = "T" if hasattr(np.dtypes, "StringDType") else "U5"
PIECES: dict[str, list[Any]] = {
    "int32, int64, uint8": [np.array([1, 2], "i4"), np.array([2, 2], "i8"), np.array([2, 3], "u1")],
    "int64, uint64": [np.array([1, 2**62 + 1]), np.array([2**62 + 1, 2**62 + 2], "u8")],
    "uint64, int64": [np.array([2**62, 2**62 + 1], "u8"), np.array([2**62 + 1, 3])],
    "int, objects": [np.array([1, 2]), np.array([2, 2], dtype=object)],
    "objects around 2^63": [np.array([-5, 2**63 + 1], dtype=object), np.array([2**63 + 1, 2**63], dtype=object)],
    "float32, float64": [np.array([1.5, 2.5], "f4"), np.array([2.5, 3.5])],
    "U1, U5, T": [np.array(["a", "b"]), np.array(["b", "bcdef"]), np.array(["bcdef", "c"], dtype=VARIABLE_WIDTH)],
    "U1, objects": [np.array(["a", "b"]), np.array(["b", "b\0"], dtype=object)],
    "S1, objects": [np.array([b"a", b"b"]), np.array([b"b", b"b\0"], dtype=object)],
    "seconds, nanoseconds": [DAYS[:2].astype("M8[s]"), DAYS[1:].astype("M8[ns]")],
    "bytes": [np.array(NUL[:2], dtype=object), np.array(NUL[1:2], dtype=object), np.array(NUL[1:], dtype=object)],
    "4 bytes": [np.array([b"123\0", b"1234"]).view("V4"), np.array([b"1234", b"12\0\0"]).view("V4")],
}  # fmt: skip


@pytest.mark.parametrize("name", PIECES)
def test_the_ids_of_a_query_may_change_their_dtype_between_batches(name: str) -> None:
    """The ids of these batches name the same queries as in one array."""
    pieces = PIECES[name]
    listed = [each for ids in pieces for each in np.asarray(ids).tolist()]
    if name == "seconds, nanoseconds":
        listed = [0, 1, 1, 2]  # tolist() would make integers of nanoseconds
    codes = [listed.index(each) for each in listed]
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 4, len(codes)), rng.normal(size=len(codes))
    at = np.cumsum([len(ids) for ids in pieces])[:-1].tolist()
    batches = [(y, s, ids) for (y, s, _), ids in zip(cut((y, s, np.array(codes)), at), pieces, strict=True)]
    result = evaluate_batches(batches, flavor="sklearn")
    assert result.n_queries == len(set(codes))
    assert same(result.value, ndcg_score(y, s, qid=codes, flavor="sklearn"))
    back = [(y[::-1], s[::-1], ids[::-1]) for y, s, ids in batches[::-1]]
    assert same(evaluate_batches(back, flavor="sklearn").value, result.value)


def test_integer_scores_of_a_stream() -> None:
    y, qid = np.array([0, 1, 2, 0, 1, 0]), np.array([7, 7, 7, 7, 8, 8])
    s = np.array([3, 2, 1, 0, 0, 1])
    mixed = [(y[:2], s[:2], qid[:2]), (y[2:], s[2:].astype(float), qid[2:])]
    assert evaluate_batches(mixed).value == ndcg_score(y, s, qid=qid)
    y, s, qid = np.arange(500) % 4, np.sin(np.arange(500)), np.zeros(500, dtype=int)  # one query in many batches
    assert same(evaluate_batches(cut((y, s, qid), list(range(7, 500, 7)))).value, ndcg_score(y, s, qid=qid))


def test_two_lists_of_one_are_warned_of_and_one_is_not(recwarn: Any) -> None:
    evaluate_batches([([1], [1], [0])])
    assert not recwarn.list
    with pytest.warns(UserWarning, match="2 queries"):
        evaluate_batches([([1], [1], [0]), ([1], [1], [1])])
