"""How rows become queries, and queries slices of ``evaluate(..., by=)``: sums that add up, order, refusals."""

import math
from typing import Any

import numpy as np
import pytest
from comparing import WIDE, interval_by_hand
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from strategies import Problem, examples, flavors, problems

from ndcg_ml import Evaluation, Flavor, evaluate
from ndcg_ml._core.query_groups import group_by_ids

RNG = np.random.default_rng(4)
Y = RNG.integers(0, 3, (90, 8)) * (RNG.random((90, 1)) > 0.1)
SCORES = Y + RNG.normal(0, 2, Y.shape)
COUNTRY = np.array(["de", "fr", "uk"])[np.arange(90) % 3]
SCORES[COUNTRY == "uk"] = -Y[COUNTRY == "uk"]  # the worst order there is
DEVICE = np.where(RNG.random(90) < 0.5, "phone", "desk")
WEIGHT = RNG.random(90) + 0.1


def rows(slices: Any) -> list[dict[str, Any]]:
    """The rows of the table of slices, nan being None."""
    return slices.to_dict()["slices"]


@pytest.mark.parametrize("aggregate", ["macro", "micro"])
@pytest.mark.parametrize("empty", [0.0, 1.0, "skip"])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_slices_add_up(aggregate, empty, weight):
    flavor = Flavor(aggregate=aggregate, empty=empty, k=5)
    whole = evaluate(Y, SCORES, flavor=flavor, query_weight=weight, by={"country": COUNTRY, "device": DEVICE})
    assert len(whole.slices) == 5
    assert repr(whole.slices) == "<Slices: 5 by country, device>"
    for column, labels in (("country", COUNTRY), ("device", DEVICE)):
        table = [row for row in rows(whole.slices) if row["column"] == column]
        assert sum(row["n_queries"] for row in table) == whole.n_queries
        assert sum(row["n_empty"] for row in table) == whole.n_empty
        assert sum(row["share"] for row in table) == pytest.approx(1)
        assert sum(row["share"] * row["ndcg"] for row in table) == pytest.approx(whole.value, rel=1e-12)
        for row in table:
            each = whole.slices[column, row["label"]]
            assert (each.value, each.n_queries, each.n_empty) == (row["ndcg"], row["n_queries"], row["n_empty"])
            assert each.per_query.qid.tolist() == np.flatnonzero(labels == row["label"]).tolist()


def test_lists_without_documents_have_no_weight_slice_or_cluster():
    users = np.arange(90) % 30
    plain = evaluate(Y, SCORES, k=5, query_weight=WEIGHT, by=COUNTRY, cluster=users)
    at, mask = np.delete(np.arange(95), [0, 7, 8, 50, 94]), np.zeros((95, 8), dtype=bool)
    labels, scores, weight = np.full((95, 8), -9.0), np.full((95, 8), np.nan), np.full(95, np.nan)
    country, user = (np.full(95, None, dtype=object) for _ in range(2))
    for padded, values in zip(
        (labels, scores, weight, country, user, mask), (Y, SCORES, WEIGHT, COUNTRY, users, True), strict=True
    ):
        padded[at] = values
    found = evaluate(labels, scores, k=5, mask=mask, query_weight=weight, by=country, cluster=user)
    assert found.per_query.qid.tolist() == at.tolist()
    assert (found.value, found.interval(), str(found.slices)) == (plain.value, plain.interval(), str(plain.slices))


def test_the_slices_that_differ_most_come_first():
    by = np.where(np.arange(90) == 1, "one", COUNTRY)
    slices = evaluate(Y, SCORES, k=5, by=by).slices
    table = rows(slices)
    assert [("by", row["label"]) for row in table] == list(slices)
    assert table[-1]["label"] == "one"  # a single query: it may differ by chance
    assert (table[-1]["n_queries"], table[-1]["low"], table[-1]["high"]) == (1, None, None)
    for by in np.random.default_rng(0).integers(0, 6, (5, 90)):
        distances = []
        for label, one in evaluate(Y, SCORES, k=5, by=by).slices.items():
            others = evaluate(Y[by != label[1]], SCORES[by != label[1]], k=5)
            error = math.hypot(one.standard_error, others.standard_error)
            distances.append(abs(one.value - others.value) / error)
        assert distances == sorted(distances, reverse=True)


def test_labels_of_rows_and_of_query_ids_are_one():
    flat = {"y_true": Y.reshape(-1), "y_score": SCORES.reshape(-1), "k": 5}
    ids = [f"q{i}" for i in range(90)]
    qid, of_rows = np.repeat(ids, 8), np.repeat(COUNTRY, 8)
    expected = str(evaluate(Y, SCORES, k=5, by=COUNTRY).slices)
    assert expected.count("by=") == 3
    assert str(evaluate(**flat, qid=qid, by=of_rows).slices) == expected
    assert str(evaluate(**flat, group=[8] * 90, by=of_rows.tolist()).slices) == expected
    by_id = dict(zip(ids, COUNTRY.tolist(), strict=True))
    assert str(evaluate(**flat, qid=qid, by={"by": by_id}).slices) == expected
    named = str(evaluate(**flat, qid=qid, by={"slice": by_id}).slices)
    assert str(evaluate(**flat, qid=qid, by=by_id).slices) == named
    pairs = {name: (label, 1) for name, label in by_id.items()}
    assert evaluate(**flat, qid=qid, by={"by": pairs}).slices["by", ("uk", 1)].n_queries == 30
    order = np.random.default_rng(0).permutation(720)
    shuffled = evaluate(flat["y_true"][order], flat["y_score"][order], qid=qid[order], k=5, by=of_rows[order])
    assert str(shuffled.slices) == expected


def test_cutoffs_and_the_limits_of_differences_are_printed():
    slices = evaluate(Y, SCORES, k=(1, None), by={"country": COUNTRY}).slices
    one = evaluate(Y, SCORES, k=1, by={"country": COUNTRY}).slices
    uk = slices["country", "uk"]
    assert uk.value == pytest.approx(
        {1: one["country", "uk"].value, None: evaluate(Y, SCORES).per_query.ndcg[2::3].mean()}
    )
    assert [row["k"] for row in rows(slices) if row["label"] == "uk"] == [1, None]
    assert list(slices) == list(one)
    assert str(slices).count("country=uk@1 ") == 1
    assert len(str(slices).splitlines()) == 7
    slices = evaluate(*np.random.default_rng(8).integers(0, 3, (2, 30, 5)), by=np.arange(30) % 2, k=(1, None)).slices
    heading, *lines = str(slices).splitlines()
    assert heading.split("  ")[-1] == "its interval"
    row = slices.to_dict()["slices"][0]
    assert lines[0].endswith(f"  {row['difference_low']:+.4f} to {row['difference_high']:+.4f}")


def test_labels_of_any_kind():
    for labels in (
        np.arange(90) % 2,
        np.arange(90) % 2 == 0,
        [("a", i % 2) for i in range(90)],
        np.datetime64("2026-01-01") + np.arange(90) % 2,
        [1 if i % 2 else "1" for i in range(90)],
    ):
        slices = evaluate(Y, SCORES, by=labels).slices
        assert sorted(each.n_queries for each in slices.values()) == [45, 45]
    crossed = evaluate(Y, SCORES, by=list(zip(COUNTRY.tolist(), DEVICE.tolist(), strict=True))).slices
    assert crossed["by", ("uk", "desk")].n_queries == ((COUNTRY == "uk") & (DEVICE == "desk")).sum()
    with pytest.raises(KeyError, match="; pass a column and a label, such as"):
        crossed["by", "uk"]


def alone(problem: Problem, flavor: Flavor, rows: list[int]) -> Evaluation[Any] | None:
    """The evaluation of these queries and no others; None where ``evaluate`` has nothing to average."""
    weights = None if problem.weights is None else tuple(problem.weights[row] for row in rows)
    part = Problem(tuple(problem.queries[row] for row in rows), weights)
    try:
        return evaluate(flavor=flavor, **part.flat(flavor))
    except ValueError:
        return None


def t_interval(evaluation: Evaluation[Any] | None) -> tuple[float, float] | None:
    """The limits, or None where there is no interval."""
    try:
        interval = None if evaluation is None else evaluation.interval()
    except ValueError:
        return None
    if interval is None:
        return None
    assert not math.isnan(evaluation.value + interval.low + interval.high + evaluation.std)
    return interval.low, interval.high


def same(got: Any, expected: Any) -> bool:
    """Whether two values are the same to rounding, nan being nan and None being None."""
    return got is expected or (got is not None and got == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True))


@examples(400)
@given(st.data())
def test_a_slice_equals_evaluate_of_its_rows(data: st.DataObject) -> None:
    empty = data.draw(st.sampled_from([0.0, 1.0, math.nan, "skip"]))
    flavor = data.draw(flavors(empty=empty, k=data.draw(st.sampled_from([1, 3, None]))))
    problem = data.draw(problems(flavor, min_queries=2))
    assume(all(problem.group))  # evaluate refuses data without a row
    every = range(len(problem.queries))
    assume(alone(problem, flavor, list(every)) is not None)
    labels = data.draw(st.lists(st.sampled_from("ab"), min_size=len(every), max_size=len(every)))
    slices = evaluate(flavor=flavor, **problem.flat(flavor), by=np.repeat(labels, problem.group)).slices
    for row in rows(slices):
        expected, others = (
            alone(problem, flavor, [query for query in every if (labels[query] == row["label"]) == inside])
            for inside in (True, False)
        )
        one = slices["by", row["label"]]
        assert same(one.value, math.nan if expected is None else expected.value)
        assert expected is None or one.n_empty == expected.n_empty
        limits = None if row["low"] is None else (row["low"], row["high"])
        assert same(limits, t_interval(expected))
        assert same(t_interval(one), limits)
        less = math.nan if expected is None or others is None else expected.value - others.value
        assert same(row["difference"], None if math.isnan(less) else less)


def test_an_ndcg_too_large_to_be_squared_has_no_interval():
    # The ideal is that of the first retrieved document alone, so a query may score 1e300.
    flavor = Flavor(gain=(0.0, 1e-150, 1e150), ideal="recall", recall_depth=1)
    result = evaluate([[1, 2], [1, 0]], [[2, 1], [2, 1]], flavor=flavor, by=["a", "a"])
    assert result.value > 1e299
    assert rows(result.slices)[0]["low"] is None
    with pytest.raises(ValueError, match=r"the NDCG of a query is .*e\+299, whose square is too large for float64"):
        result.interval()


def test_a_slice_in_which_nothing_counts_has_no_value():
    y_true, scores = [[1, 0], [0, 0], [0, 0]], [[2.0, 1]] * 3
    by = ["a", "b", "b"]

    def of_b(flavor: Flavor, **weights: Any) -> tuple[Any, ...]:
        slices = evaluate(y_true, scores, flavor=flavor, by=by, **weights).slices
        assert math.isnan(slices["by", "b"].value)
        [row] = (row for row in slices.to_dict()["slices"] if row["label"] == "b")
        return tuple(row[name] for name in ("ndcg", "share", "low", "high", "difference"))

    assert of_b(Flavor(aggregate="micro", empty="skip")) == (None, 0.0, None, None, None)
    for aggregate in ("macro", "micro"):
        flavor = Flavor(aggregate=aggregate, empty=1.0)
        assert of_b(flavor, query_weight=[1.0, 0, 0]) == (None, 0.0, None, None, None)


def slice_rows(values: NDArray[np.float64], labels: Any, **more: Any) -> dict[Any, dict[str, Any]]:
    """The rows of slices of queries with these values, by label."""
    scores = np.tile([0.9, 0.1], (values.size, 1))
    result = evaluate(np.column_stack([values, np.zeros(values.size)]), scores, flavor=WIDE, by=labels, **more)
    return {row["label"]: row for row in result.slices.to_dict()["slices"]}


def limits(row: dict[str, Any]) -> tuple[float, float]:
    return row["difference_low"], row["difference_high"]


def limits_by_hand(values, weight, inside, codes, confidence):
    """The limits and the distance of a difference: distances to the limits of the means are combined like errors.

    The errors are Bell and McCaffrey's. Samples of clusters covary where they share one.
    """
    sides, pulls = [], []
    for rows in (inside, ~inside):
        units = np.arange(values.size) if codes is None else codes
        present, of = np.unique(units[rows & (weight > 0)], return_inverse=True)
        kept, share = values[rows & (weight > 0)], weight[rows & (weight > 0)] / weight[rows].sum()
        h = np.bincount(of, share)
        if len(kept) < 2 or h.max() > 0.5 + 1e-9 or (codes is not None and len(present) < 6):
            return None, None, -1.0
        mean, of_units = share @ kept, np.bincount(of, share * kept) / h
        pulls.append(dict(zip(present.tolist(), h * (of_units - mean) / np.sqrt(1 - h), strict=True)))
        error = math.sqrt(sum(pull**2 for pull in pulls[-1].values()))
        low, high = interval_by_hand(of_units, h, confidence, (min(0.0, of_units.min()), max(1.0, of_units.max())))
        sides.append((mean, error, mean - low, high - mean))
    (mean, a, below_a, above_a), (other, b, below_b, above_b) = sides
    covariance = sum(pull * pulls[1].get(unit, 0.0) for unit, pull in pulls[0].items())
    distance = abs(mean - other) / max(math.hypot(a, b), 1e-300)
    r = covariance / (a * b) if min(a, b) > 1e-12 else 0.0  # equal values have no correlation
    down, up = (math.sqrt(max(0, x * x + y * y - 2 * r * x * y)) for x, y in ((below_a, above_b), (above_a, below_b)))
    return mean - other - down, mean - other + up, distance


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("clustered", [False, True])
def test_the_intervals_of_differences_by_hand(clustered, weighted):
    """They are simultaneous over the labels of a column, of which those without an interval do not count."""
    rng, n_without = np.random.default_rng(2 * clustered + weighted), 0
    for _ in range(30):
        n, n_labels = int(rng.integers(8, 99)), int(rng.integers(2, 6))
        labels = np.r_[np.arange(n_labels), rng.choice(n_labels, n - n_labels, p=rng.dirichlet(np.full(n_labels, 2.0)))]
        values, flat = rng.beta(2, 2, n), rng.random(n_labels) < 0.4
        values[flat[labels] & (rng.random(n) < rng.choice([0.6, 0.9, 1.0]))] = rng.choice([0.0, 0.4, 1.0])
        values += rng.choice([0.0, 0.0, -0.7, 0.7])
        weight = rng.choice([0.0, 1.0, 1.0, 2.0, 9.0], n) if weighted else np.ones(n)
        codes = rng.integers(0, rng.integers(6, 31), n) if clustered else None
        if weight.sum() == 0:
            continue
        found = slice_rows(values, labels, query_weight=weight, cluster=codes)
        n_tested = 1
        for _ in range(2):  # the first round counts the labels with an interval
            confidence = 1 - 0.05 / (1 if n_labels == 2 else max(1, n_tested))
            expected = [limits_by_hand(values, weight, labels == at, codes, confidence) for at in range(n_labels)]
            n_tested = sum(low is not None for low, _, _ in expected)
        for at in range(n_labels):
            assert limits(found[at]) == pytest.approx(expected[at][:2], abs=1e-9)
        distances = [expected[at][2] for at in found]
        if clustered:
            assert distances == pytest.approx(sorted(distances, reverse=True), abs=1e-9)
        n_without += n_tested < n_labels
    assert 0 < n_without < 25


@pytest.mark.parametrize("heavy", [1.0, 9.0])
def test_clusters_that_are_in_both_slices_are_pairs(heavy):
    for values in np.random.default_rng(8).uniform(0.06, 0.84, (20, 6 if heavy > 1 else 20)):
        # Each cluster has the same constant difference between its two queries.
        weight = np.tile(np.r_[heavy, np.full(values.size - 1, 2.0)], 2)
        units = {"cluster": np.tile(np.arange(values.size), 2), "query_weight": weight}
        both, apart = (
            limits(slice_rows(np.r_[values, values + 0.1], np.repeat(["a", "b"], values.size), **more)["b"])
            for more in (units, {"query_weight": weight})
        )
        assert both[0] < 0.1 < both[1]
        assert both[1] - both[0] < (0.3 if heavy == 1 else 1) * (apart[1] - apart[0])


# -- query ids in any order and of any type give the same layout as a dict of rows


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
