"""Values by hand, and the NumPy and the compiled kernel against the oracle, along every path inside them."""

import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st
from oracle import (
    Answer,
    Document,
    NothingToAverageError,
    RefusedLabelError,
    TiedRepeatError,
    oracle,
    oracle_overall,
)
from strategies import SORTED_IDEALS, Problem, examples, flavors, problems, square_root

from ndcg_ml import Evaluation, Flavor, dcg_score, evaluate, evaluate_ranked, ndcg_score, prepare
from ndcg_ml._core import labels_gains_discounts as gains
from ndcg_ml._core import layout, numpy_kernel

pytestmark = pytest.mark.usefixtures("kernel")

# Relative to the largest sum that the gains of the query could make.
TOLERANCE = 1e-12

# Values of the constants by which the kernel chooses to select or sort, and how it makes blocks.
SELECT, SORT = {"_SELECT_FROM": 0, "_SELECT_BELOW": 1e-9}, {"_SELECT_BELOW": 1e9}
# Labels as bytes and a search by lanes, for lists of any length.
WIDE = {"_WIDE": 0, "_LANES_PER_RANK": 1, "_SLOTS_PER_LANE": 1, "_PASSES_ONE_IN": 0}
ONE_BLOCK = {"_SPREAD": 1e9, "_CHEAP_PADDING": 1 << 30}
TINY_BLOCKS = {"_SPREAD": 1e9, "_BLOCK_SLOTS": 9}
ONE_QUERY_A_BLOCK = {"_SPREAD": 1.0, "_CHEAP_PADDING": 0, "_BLOCK_SLOTS": 1}
PATHS = {
    "select": SELECT,
    "sort": SORT,
    "select in one padded block": {**SELECT, **ONE_BLOCK},
    "sort in one padded block": {**SORT, **ONE_BLOCK},
    "select in tiny blocks": {**SELECT, **TINY_BLOCKS},
    "sort, one query a block": {**SORT, **ONE_QUERY_A_BLOCK},
    "wide": {**SELECT, **WIDE},
    "wide in one padded block": {**SELECT, **WIDE, **ONE_BLOCK},
    "wide, sorted in tiny blocks": {**SORT, **WIDE, **TINY_BLOCKS},
}


@contextmanager
def forced(constants: dict[str, float]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in constants.items():
            patch.setattr(next(file for file in (numpy_kernel, gains, layout) if hasattr(file, name)), name, value)
        yield


def close(got: float, exact: Fraction, size: Fraction) -> bool:
    """Whether a float is an exact sum, up to rounding of terms that could sum to `size`."""
    if not math.isfinite(got):
        try:
            return got == math.inf and float(exact) > 1.7e308
        except OverflowError:
            return (got > 0) == (exact > 0)
    return abs(Fraction(got) - exact) <= Fraction(TOLERANCE) * size + Fraction(1e-320)


def well_conditioned(answer: Answer) -> bool:
    """Whether an ideal DCG is larger than rounding errors. Only negative gains can cancel."""
    return not answer.cancels or abs(answer.exact_idcg) > Fraction(1e-3) * answer.size


def check(flavor: Flavor, problem: Problem, k: Any = ...) -> Any:
    """Compare the evaluation with the oracle and return it, or None if both refuse the problem."""
    try:
        answers = [oracle(flavor, query, k) for query in problem.queries]
    except RefusedLabelError:
        with pytest.raises(ValueError, match=r"^y_true must"):
            evaluate(flavor=flavor, k=k, **problem.flat(flavor))
        return None
    except TiedRepeatError:
        with pytest.raises(ValueError, match=r"must not tie a document with its own repeat under ties='average'"):
            evaluate(flavor=flavor, k=k, **problem.flat(flavor))
        return None
    if any(not well_conditioned(a) for a in answers):
        reject()
    arguments = problem.flat(flavor)
    try:
        expected = oracle_overall(flavor, answers, problem.weights)
    except NothingToAverageError:
        with pytest.raises(ValueError, match=r"every query (is empty|must have a relevant document)"):
            evaluate(flavor=flavor, k=k, **arguments)
        return None
    result = evaluate(flavor=flavor, k=k, **arguments)
    table = result.per_query
    for row, answer in enumerate(answers):
        assert close(table.dcg[row], answer.exact_dcg, answer.size), (row, table.dcg[row], answer)
        assert close(table.idcg[row], answer.exact_idcg, answer.size), (row, table.idcg[row], answer)
        assert table.empty[row] == answer.empty
        ndcg = math.nan if isinstance(answer.ndcg, str) else answer.ndcg
        # a sum that cancels keeps fewer digits of NDCG
        error = TOLERANCE * (1 if answer.empty else float(min(answer.size / answer.exact_idcg, 10**12)))
        assert table.ndcg[row] == pytest.approx(ndcg, abs=error, rel=TOLERANCE, nan_ok=True), (row, answer)
        assert (table.n_docs[row], table.n_judged[row]) == (answer.n_docs, answer.n_judged)
        assert (table.n_relevant[row], table.tied[row]) == (answer.n_relevant, answer.tied)
    assert {table[name].dtype.kind for name in ("n_docs", "n_judged", "n_relevant", "tied")} == {"i"}
    assert result.n_empty == sum(a.empty for a in answers)
    assert result.n_queries == len(answers)
    assert result.value == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)
    score = ndcg_score(flavor=flavor, k=k, **arguments)
    assert score == result.value or (math.isnan(score) and math.isnan(result.value))
    return result


@examples(300)
@given(st.data())
def test_every_flavor_equals_the_oracle(data: st.DataObject) -> None:
    flavor = data.draw(flavors())
    check(flavor, data.draw(problems(flavor, repeats=True)))


@examples(200)
@given(st.data())
def test_documents_that_are_listed_twice(data: st.DataObject) -> None:
    flavor = data.draw(flavors(gains=("linear",), duplicates=data.draw(st.sampled_from(["first", "count"]))))
    few = st.integers(0, 3).map(float)
    check(flavor, data.draw(problems(flavor, scores=few, repeats=True)))


@examples(50)
@pytest.mark.parametrize("name", PATHS)
@given(st.data())
def test_every_path_inside_equals_the_oracle(name: str, data: st.DataObject) -> None:
    flavor = data.draw(flavors())
    with forced(PATHS[name]):
        check(flavor, data.draw(problems(flavor, min_queries=2, repeats=True)))


@examples(120)
@pytest.mark.parametrize(
    "fixed",
    [
        {"ideal": "recall", "ties": "average", "recall_depth": 2, "empty": 0.0},
        {"ideal": "recall", "ties": "average", "recall_depth": 3, "empty": 0.0, "k": None},
        {"ideal": "local", "negative": "allow", "empty": 0.0},
        {"ideal": "recall", "recall_depth": None, "negative": "allow", "k": None, "empty": 0.0},
    ],
)
@given(st.data())
def test_the_ideals_that_depend_on_the_ranking_or_on_negative_gains(fixed: dict[str, Any], data: st.DataObject) -> None:
    flavor = data.draw(flavors(gains=("linear",) if fixed.get("negative") == "allow" else ("linear", "table"), **fixed))
    few = st.integers(0, 2).map(float)
    check(flavor, data.draw(problems(flavor, scores=few, retrieved=False, weighted=False, min_queries=3)))


def one(*documents: tuple[float, float], **flags: Any) -> tuple[Document, ...]:
    return tuple(Document(grade, score, doc_id=f"d{at}", **flags) for at, (grade, score) in enumerate(documents))


# Cases that were wrong at some time, or that found a broken kernel.
CASES = {
    "small grade, large one in another query": (
        Flavor(gain="exponential", ideal="recall"),
        (one((1e-9, 2), (3e-9, 1)), one((490, 1))),
    ),
    "small grade beside a large one": (
        Flavor(gain="exponential", ideal="local", k=2),
        (one((490, 0), (1, 2), (0, 1)), one((3, 1))),
    ),
    "a limit on grades far above them": (Flavor(gain="exponential", max_grade=450), (one((4, 0), (0, 1)),)),
    "the top of the scale in both precisions": (
        Flavor(max_grade=0.8),
        (one((0.8, 0), (float(np.float32(0.8)), 1), (0.1, 2)),),
    ),
    "a table with a negative gain, padded": (
        Flavor(gain=(-1.0, 3.0), ideal="recall"),
        (one((0, 1), (1, 0)), one((1, 1)), one((0, 3), (1, 3), (1, 2))),
    ),
    "a run within the depth keeps its gains": (
        Flavor(ideal="recall", recall_depth=3),
        (one((3, 1), (0, 1), (1, 0)), one((3, 1), (0, 1), (1, 0), (2, 0)), one((1, 1))),
    ),
    "a run across the depth is averaged": (Flavor(ideal="recall", recall_depth=1), (one((3, 1), (0, 1), (1, 0)),)),
    "absent ranks stand behind negative gains": (
        Flavor(ideal="local", negative="allow", k=5),
        (one((3, 1), (-1, 0)), one((3, 1), (-1, 0), (1, 2), (0, 0))),
    ),
    "-inf ties with -inf, and beats padding": (
        Flavor(ties="average"),
        (one((3, -math.inf), (0, -math.inf), (1, 0)), one((1, -math.inf)), one(*[(1, -math.inf)] * 3, (2, 1))),
    ),
    "equal in float32 only": (
        Flavor(score_dtype="float32"),
        (one((0, 1.0), (1, 1 - 1e-9), (2, 1 - 2e-9)), one((0, 1e300), (1, 2e300))),
    ),
    "not equal in float64": (Flavor(), (one((0, 1.0), (1, 1 - 1e-9), (2, 1 - 2e-9)), one((0, 1e300), (1, 2e300)))),
    "neighbours in float64": (
        Flavor(),
        (one(*[(at % 3, 1 + at * 2**-52) for at in range(9)]), one(*[(at % 3, -at * 5e-324) for at in (2, 1, 0, 0)])),
    ),
    "zeros of both signs": (Flavor(), (one((0, 0.0), (1, -0.0)),)),
    "max counts ranks that no document holds": (
        Flavor(ideal="max", max_grade=2, k=4),
        (one((2, 1)), (), one((1, 1), (0, 2))),
    ),
    "at both ends of what is taken": (
        Flavor(),
        (one((2.0**500, 1), (2.0**499, 2)), one((2.0**-500, 1), (2.0**-499, 0))),
    ),
    "binary": (Flavor(gain="binary", negative="allow", unjudged="zero"), (one((-2, 4), (0.25, 3), (math.nan, 5)),)),
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", CASES)
def test_known_hard_cases(name: str, path: str) -> None:
    flavor, queries = CASES[name]
    with forced(PATHS[path]):
        check(flavor, Problem(queries))


@pytest.mark.parametrize("grade", [3.0, 0.1, 2.0**60, 7923087181780399.0, -7923087181780399.0], ids=str)
def test_tied_documents_of_one_grade_have_exactly_its_gain(grade: float) -> None:
    """Sums of these integers are exact up to 2^53 only."""
    for n in (2, 5, 40, 500, 3000):
        prepared = prepare(np.full(n, grade), group=[n], k=1, flavor=Flavor(negative="allow", empty=1.0))
        assert (prepared.dcg(np.zeros(n)), prepared(np.zeros(n))) == (grade, 1.0)


@st.composite
def long_problems(draw: st.DrawFn, flavor: Flavor) -> Problem:
    """Draw lists of integer grades, of which most are long. One document may have any label."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    top = draw(st.sampled_from([4, 254]))
    if isinstance(flavor.gain, tuple) and flavor.off_table == "raise":
        top = len(flavor.gain) - 1
    if flavor.top_label is not None:
        top = min(top, int(flavor.top_label))
    queries = []
    for size in draw(st.lists(st.sampled_from([0, 2, 255, 256, 300, 700, 2100]), min_size=1, max_size=3)):
        labels = rng.integers(0, top + 1, size) * (rng.random(size) < draw(st.sampled_from([0.02, 0.9]))) * 1.0
        if size and draw(st.integers(0, 3)) == 0:
            labels[rng.integers(size)] = draw(st.sampled_from([math.nan, -1.0, 0.5, top + 1.0, 255.0, 300.0]))
        if flavor.ties == "average":  # the oracle can put few documents in all orders
            scores = rng.permutation(size) * 1.0
            scores[rng.integers(0, size, min(size, 4))] = draw(st.sampled_from([-math.inf, size // 2, size - 1]))
        else:
            some = [-math.inf, *draw(st.sampled_from([[], [-1e300, -3e38, 0.0], [1.0, math.inf], range(99)]))]
            scores = rng.choice(np.array(some), size)
        found = rng.random(size) < draw(st.sampled_from([0.8, 2]))
        rows = zip(labels.tolist(), scores.tolist(), found.tolist(), map(str, rng.permutation(size)), strict=True)
        queries.append(tuple(itertools.starmap(Document, rows)))
    return Problem(tuple(queries))


@examples(80)
@given(st.data())
def test_long_lists_equal_the_oracle_and_labels_without_a_gain_are_refused(data: st.DataObject) -> None:
    """Integer grades of long lists are kept as bytes, and their best documents are found without sorting all."""
    flavor = data.draw(flavors(empty=0.0))
    problem = data.draw(long_problems(flavor))
    if callable(flavor.gain):  # it is asked about grades that occur alone
        known = {*(document.grade for document in problem.documents), flavor.max_grade or 0.0}
        flavor = flavor.replace(gain={grade: square_root(grade) for grade in known}.__getitem__)
    padded = problem.padded(flavor, garbage=data.draw(st.sampled_from([math.nan, -1.0, 0.5, 3.0, 255.0])), extra=2)
    problem = problem.filled
    assume(problem.queries)
    plain = check(flavor, problem)
    if not plain:
        with pytest.raises(ValueError, match=r"^y_true must"):
            evaluate(flavor=flavor, **padded)
        return
    assert_same(table(evaluate(flavor=flavor, **padded)), table(plain))
    flat = problem.flat(flavor)
    with np.errstate(invalid="ignore"):
        narrow = flat["y_true"].astype(data.draw(st.sampled_from(["int16", "uint16", "uint8", "float32"])))
    if (narrow == flat["y_true"]).all():
        assert_same(table(evaluate(flavor=flavor, **{**flat, "y_true": narrow})), table(plain))


@examples(100)
@given(st.data())
def test_dcg_equals_the_oracle(data: st.DataObject) -> None:
    flavor = data.draw(flavors(empty=0.0, gains=("linear", "binary", "callable"), negative="zero"))
    problem = data.draw(problems(flavor, min_queries=1))
    answers = [oracle(flavor, query) for query in problem.queries]
    weights = problem.weights or (1.0,) * len(answers)
    assume(all(a.size < 1e300 for a in answers))
    expected = math.fsum(w * a.dcg for w, a in zip(weights, answers, strict=True)) / math.fsum(weights)
    scale = float(max(a.size for a in answers))
    assert dcg_score(flavor=flavor, **problem.flat(flavor)) == pytest.approx(expected, rel=0, abs=TOLERANCE * scale)


@examples(60)
@given(st.data())
def test_a_prepared_object_scores_any_ranking(data: st.DataObject) -> None:
    flavor = data.draw(flavors(empty=0.0))
    problem = data.draw(problems(flavor))
    arguments = problem.flat(flavor)
    scores = arguments.pop("y_score")
    prepared = prepare(flavor=flavor, **arguments)
    for each in (scores, -scores, np.zeros_like(scores), scores):
        assert prepared(each) == ndcg_score(y_score=each, flavor=flavor, **arguments)


# -- properties of every problem


COLUMNS = ("ndcg", "dcg", "idcg", "empty", "n_docs", "n_judged", "n_relevant", "tied", "weight")


def table(result: Evaluation, order: Any = slice(None), columns: tuple[str, ...] = COLUMNS) -> dict[str, Any]:
    return {name: result.per_query[name][order] for name in columns}


def assert_same(got: dict[str, Any], expected: dict[str, Any], rtol: float = 0.0) -> None:
    for name, column in expected.items():
        np.testing.assert_allclose(got[name], column, rtol=rtol, atol=rtol, err_msg=name)


@examples(150)
@given(st.data())
def test_a_perfect_ranking_is_exactly_1(data: st.DataObject) -> None:
    flavor = data.draw(
        flavors(
            empty=1.0,
            negative="zero",
            unjudged="zero",
            gains=("linear", "exponential", "binary", "callable"),
            ideals=("global", "recall", "local"),
            ideal_depth="k",
            recall_depth=None,
            max_grade=None,
            short_lists="score",
        )
    )
    problem = data.draw(problems(flavor, retrieved=False))
    arguments = problem.flat(flavor)
    grades = np.nan_to_num(arguments["y_true"], nan=-1.0)
    arguments["y_score"] = np.unique(grades, return_inverse=True)[1]  # 0, 1, 2, ... are not tied in float32 either
    result = evaluate(flavor=flavor, **arguments)
    assert result.per_query.ndcg.tolist() == [1.0] * len(problem.queries)
    assert result.value == 1.0


@examples(100)
@given(st.data())
def test_several_cut_offs_equal_each_alone(data: st.DataObject) -> None:
    flavor = data.draw(flavors(empty=0.0))
    problem = data.draw(problems(flavor))
    ks = data.draw(st.lists(st.none() | st.integers(1, 12), min_size=1, max_size=5, unique=True))
    arguments = problem.flat(flavor)
    together = evaluate(flavor=flavor, k=ks, **arguments)
    assert together.k == tuple(ks)
    assert isinstance(together.value, dict)
    assert isinstance(together.n_empty, dict)
    assert list(together.value) == ks
    for column, k in enumerate(ks):
        alone = evaluate(flavor=flavor, k=k, **arguments)
        assert together.value[k] == pytest.approx(alone.value, rel=1e-13, abs=1e-15)
        assert together.n_empty[k] == alone.n_empty
        assert alone.flavor == flavor.replace(k=k)
        for name in ("ndcg", "dcg", "idcg", "empty"):
            np.testing.assert_allclose(
                together.per_query[name][:, column], alone.per_query[name], rtol=1e-12, atol=1e-300
            )


@examples(80)
@given(st.data())
def test_padding_may_hold_anything(data: st.DataObject) -> None:
    flavor = data.draw(flavors(empty=0.0))
    problem = data.draw(problems(flavor))
    filled = problem.filled
    assume(filled.queries and any(filled.weights or (1,)))
    plain = evaluate(flavor=flavor, **filled.flat(flavor))
    for garbage, extra in [(math.nan, 1), (math.inf, 3), (-math.inf, 2), (1e308, 0), (-7.5, 4)]:
        padded = evaluate(flavor=flavor, **problem.padded(flavor, garbage, extra))
        assert_same(table(padded), table(plain))
        assert padded.value == plain.value
        assert padded.per_query.qid.tolist() == [at for at, query in enumerate(problem.queries) if query]


LOWEST = -(2**63)
ID_KINDS: dict[str, Any] = {
    "integers": lambda n: np.arange(n) - 2,
    "integers far apart": lambda n: np.array([LOWEST, 2**63 - 1, *range(n)][:n]),
    "of nearly 64 bits": lambda n: np.array([LOWEST, *(LOWEST + 2**bits for bits in range(50, 64))][:n]),
    "unsigned": lambda n: np.uint64(2**64 - 1) - np.arange(n, dtype=np.uint64),
    "bytes": lambda n: np.arange(n, dtype=np.int8),
    "floats": lambda n: np.arange(n) / 3,
    "text": lambda n: np.array([f"q{at}" for at in range(n)]),
    "times": lambda n: np.datetime64("2026-01-01") + np.arange(n),
}
ID_KINDS |= {
    # lists whose different ids NumPy would make equal
    str(ids): lambda n, ids=ids: ids[:n]
    for ids in (
        [b"\x01", b"\x01\x00", b"\x01\x00\x00"],
        ["a", "a\x00", "a\x00\x00"],
        [np.int64(2**53 + 1), 0.5, np.int64(2**53)],
        [np.datetime64(1, "D"), 1, "1970-01-02"],
        [("a", 1), ("b", 1), ("a", 2)],
        (("a",), ("a", 1), "a"),
        [2**63, -1, 2**63 + 1],
        [2**53, -0.5, 2**53 + 1],
        ("1", "a", 1),
    )
}


@examples(40)
@pytest.mark.parametrize("kind", ID_KINDS)
@given(st.data())
def test_query_ids_of_any_dtype_in_any_order(kind: str, data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    ids, n_rows = ID_KINDS[kind](int(rng.integers(1, 15))), int(rng.integers(1, 40))
    codes = rng.integers(0, len(ids), n_rows)
    order = data.draw(st.sampled_from(["any", "ascending", "descending", "in runs"]))
    if order != "any":
        codes = np.repeat(codes, rng.integers(1, 4, n_rows)) if order == "in runs" else np.sort(codes)
        codes = codes[::-1] if order == "descending" else codes
    qid = ids[codes] if isinstance(ids, np.ndarray) else [ids[code] for code in codes]
    queries = list(dict.fromkeys(codes.tolist()))
    rows = np.concatenate([np.flatnonzero(codes == query) for query in queries])
    labels, scores = rng.integers(0, 4, codes.size), rng.integers(0, 3, codes.size)
    flavor = Flavor(ties="first", k=2)
    found = evaluate(labels, scores, qid=qid, flavor=flavor)
    assert list(found.per_query.qid) == [ids[query] for query in queries]
    sizes = np.bincount(codes)[queries]
    assert_same(table(found), table(evaluate(labels[rows], scores[rows], group=sizes, flavor=flavor)))


# -- values computed by hand equal those of the oracle, of ranked lists and of scores


RANKED, JUDGED = [0.1, 1.0, 0.7], [1.0, 0.9, 0.7, 0.1, 0.1]
IDEALS = {
    "local": (0.1 + 1.0 / 2) / (1.0 + 0.1 / 2),
    "recall": (0.1 + 1.0 / 2) / (1.0 + 0.7 / 2),
    "global": (0.1 + 1.0 / 2) / (1.0 + 0.9 / 2),
    "max": (0.1 + 1.0 / 2) / (1.0 + 1.0 / 2),
}
PRINTED = {"local": 0.571428, "recall": 0.444444, "global": 0.413793, "max": 0.4}


def log2_dcg(gains: list[float]) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def exponential(grades: list[int]) -> list[float]:
    return [2.0**grade - 1 for grade in grades]


# grades in rank order, all judged grades, and the value as a formula and as printed
BURGES = [
    ([3, 0, 3, 0, 3], [3, 3, 3, 2, 2], (7 + 7 / 2 + 7 / math.log2(6)), 0.7604292916902706),
    ([3, 1, 2, 0, 2], [3, 2, 2, 1, 0], (7 + 1 / math.log2(3) + 3 / 2 + 3 / math.log2(6)), 0.950849602851865),
    (
        [0, 1, 2, 2, 3],
        [3, 2, 2, 1, 0],
        (1 / math.log2(3) + 3 / 2 + 3 / math.log2(5) + 7 / math.log2(6)),
        0.5664478625498256,
    ),
    ([3, 2, 2, 1, 0], [3, 2, 2, 1, 0], (7 + 3 / math.log2(3) + 3 / 2 + 1 / math.log2(5)), 1.0),
]


def documents(ranked: list[float], judged: list[float]) -> list[Document]:
    """Return the ranked documents with decreasing scores, then the judged ones that were not retrieved."""
    rest = list(judged)
    for grade in ranked:
        if grade in rest:
            rest.remove(grade)
    found = [Document(grade, -float(rank)) for rank, grade in enumerate(ranked)]
    return found + [Document(grade, 0.0, retrieved=False) for grade in rest]


def every_way(flavor: Flavor, ranked: list[float], judged: list[float]) -> dict[str, float]:
    """Return the value of the oracle, and that of ranked lists. Other routes equal the oracle (test_routes.py)."""
    ndcg = oracle(flavor, documents(ranked, judged)).ndcg
    assert isinstance(ndcg, float)
    ours = evaluate_ranked([ranked], judged=[judged], flavor=flavor).value
    return {"oracle": ndcg, "evaluate_ranked": float(ours)}  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore:grades has an empty list")
@examples(60)
@given(st.data())
def test_lists_in_rank_order_have_the_table_of_their_rows(data: st.DataObject) -> None:
    flavor = data.draw(flavors(empty=0.0, ideals=SORTED_IDEALS, duplicates="raise"))
    rank = itertools.count(1)
    problem = data.draw(problems(flavor, weighted=False, scores=st.builds(lambda: -float(next(rank)))))
    queries = [[d for d in query if d.retrieved or d.judged] for query in problem.queries]
    form = data.draw(st.sampled_from([list, tuple, np.array]))
    ranked = [form([d.grade for d in query if d.retrieved]) for query in queries]
    every = all(d.retrieved for query in queries for d in query)
    judged = (
        None
        if every and data.draw(st.booleans())
        else (form([d.grade for d in query if d.judged]) for query in queries)
    )
    if len(set(map(len, ranked))) == 1:
        ranked = form(ranked)
    result = evaluate_ranked(ranked, judged=judged, flavor=flavor)
    rows = Problem(tuple(map(tuple, queries))).flat()
    assert_same(table(result), table(evaluate(flavor=flavor.replace(ties="first"), **rows)))


@pytest.mark.parametrize("ideal", IDEALS)
@pytest.mark.parametrize("ties", ["average", "first", "last", "best", "worst"])
def test_the_four_ideals(ideal: str, ties: str) -> None:
    flavor = Flavor(discount="reciprocal", ideal=ideal, k=2, ties=ties, max_grade=1)
    for way, value in every_way(flavor, RANKED, JUDGED).items():
        assert value == pytest.approx(IDEALS[ideal], abs=1e-15), way
        assert value == pytest.approx(PRINTED[ideal], abs=1e-6), way


@pytest.mark.parametrize(("ranked", "judged", "dcg", "printed"), BURGES)
def test_exponential_gain_and_a_logarithm_of_any_base(
    ranked: list[int], judged: list[int], dcg: float, printed: float
) -> None:
    ideal = log2_dcg(exponential(judged))
    assert dcg == pytest.approx(log2_dcg(exponential(ranked)))
    for way, value in every_way(Flavor(gain="exponential"), ranked, judged).items():  # type: ignore[arg-type]
        assert value == pytest.approx(dcg / ideal, abs=1e-15), way
        assert value == pytest.approx(printed, abs=1e-15), way
    natural = Flavor(gain="exponential", discount="ln")  # the base of the logarithm cancels
    for value in every_way(natural, ranked, judged).values():  # type: ignore[arg-type]
        assert value == pytest.approx(printed, abs=1e-14)


@pytest.mark.parametrize("rank", range(1, 6))
def test_jarvelins_discount_is_not_log2_of_rank_plus_one(rank: int) -> None:
    ranked = [float(at == rank) for at in range(1, 6)]
    jarvelin = 1.0 if rank <= 2 else 1 / math.log2(rank)
    for value in every_way(Flavor(discount="jarvelin"), ranked, ranked).values():
        assert value == pytest.approx(jarvelin, abs=1e-15)
    for value in every_way(Flavor(discount="log2"), ranked, ranked).values():
        assert value == pytest.approx(1 / math.log2(rank + 1), abs=1e-15)


def test_an_ideal_that_is_not_cut_at_k() -> None:
    flavor = Flavor(discount="reciprocal", ideal_depth="all", k=2)
    expected = (0.1 + 1 / 2) / (1 + 0.9 / 2 + 0.7 / 3 + 0.1 / 4 + 0.1 / 5)
    for way, value in every_way(flavor, RANKED, JUDGED).items():
        assert value == pytest.approx(expected, abs=1e-15), way


def test_averaging_is_the_mean_of_d_and_not_d_of_the_mean_rank() -> None:
    tied = [Document(1.0, 5.0), Document(0.0, 5.0), Document(0.0, 5.0)]
    mean = (1 + 1 / math.log2(3) + 1 / 2) / 3
    assert oracle(Flavor(), tied).ndcg == pytest.approx(mean, abs=1e-15)
    assert ndcg_score([1, 0, 0], [5, 5, 5], group=[3], flavor=Flavor()) == pytest.approx(mean, abs=1e-15)
    assert mean != pytest.approx(1 / math.log2(2 + 1), abs=0.05)
    at_one = {"average": 1 / 3, "first": 1.0, "last": 0.0, "best": 1.0, "worst": 0.0}
    for ties, expected in at_one.items():
        flavor = Flavor(ties=ties, k=1)
        assert oracle(flavor, tied).ndcg == pytest.approx(expected)
        assert ndcg_score([1, 0, 0], [5, 5, 5], group=[3], flavor=flavor) == pytest.approx(expected)


def test_document_ids_order_ties_descending_as_text() -> None:
    ids = ["doc10", "doc9", "Doc1", "doc2"]  # descending: doc9 doc2 doc10 Doc1
    grades = [0.0, 0.0, 0.0, 1.0]
    rows = [Document(g, 1.0, doc_id=i) for g, i in zip(grades, ids, strict=True)]
    assert oracle(Flavor(ties="docid"), rows).ndcg == pytest.approx(1 / math.log2(3))
    value = ndcg_score(grades, [1] * 4, group=[4], doc_id=ids, flavor=Flavor(ties="docid"))
    assert value == pytest.approx(1 / math.log2(3))


@pytest.mark.parametrize("grade", [400.0, 499.0])
def test_a_huge_grade_does_not_overflow(grade: float) -> None:
    flavor = Flavor(gain="exponential")
    expected = (1 / math.log2(3) + 0.5 / 2) / (1 + 0.5 / math.log2(3))
    for way, value in every_way(flavor, [0.0, grade, grade - 1], [grade, grade - 1, 0.0]).items():
        assert value == pytest.approx(expected, abs=1e-14), way


def test_the_oracle_finds_empty_queries_and_averages_the_run_across_the_recall_depth() -> None:
    for empty in (0.0, 1.0, "skip", "raise"):
        assert oracle(Flavor(empty=empty), [Document(0.0, 1.0)]).ndcg == empty
        assert tuple(oracle(Flavor(empty=empty), [])) == (empty, 0.0, 0.0)
    assert oracle(Flavor(ideal="max", max_grade=3, k=2), []).empty
    assert oracle(Flavor(ideal="max", max_grade=3, k=2), [Document(0.0, 1.0)]).ndcg == 0.0
    rows = [Document(g, s) for g, s in [(3, 2), (1, 2), (2, 1), (0, 1)]]
    top = oracle(Flavor(ideal="recall", recall_depth=2, discount="none", k=1), rows)
    assert top.idcg == 3.0
    cut = oracle(Flavor(ideal="recall", recall_depth=3, discount="none"), rows)
    assert cut.idcg == 3 + 1 + (2 + 0) / 2
    within = oracle(Flavor(ideal="recall", recall_depth=1, discount="none"), rows)
    assert within.idcg == (3 + 1) / 2
