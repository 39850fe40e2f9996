"""``evaluate(..., by=)``: which queries a slice has, sums that add up, the order of the slices, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ndcg_ml import Flavor, evaluate

RNG = np.random.default_rng(4)
Y = RNG.integers(0, 3, (90, 8)) * (RNG.random((90, 1)) > 0.1)
SCORES = Y + RNG.normal(0, 2, Y.shape)
COUNTRY = np.array(["de", "fr", "uk"])[np.arange(90) % 3]
SCORES[COUNTRY == "uk"] = -Y[COUNTRY == "uk"]  # which is as bad as can be
DEVICE = np.where(RNG.random(90) < 0.5, "phone", "desk")
WEIGHT = RNG.random(90) + 0.1


@pytest.mark.parametrize("aggregate", ["macro", "micro"])
@pytest.mark.parametrize("empty", [0.0, 1.0, "skip"])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_slices_are_evaluations_that_add_up(aggregate, empty, weight):
    flavor = Flavor(aggregate=aggregate, empty=empty, k=5)
    whole = evaluate(Y, SCORES, flavor=flavor, query_weight=weight, by={"country": COUNTRY, "device": DEVICE})
    assert len(whole.slices) == 5
    for column, labels in (("country", COUNTRY), ("device", DEVICE)):
        slices = [each for each in whole.slices if each.column == column]
        assert sum(each.n_queries for each in slices) == whole.n_queries
        assert sum(each.n_empty for each in slices) == whole.n_empty
        assert sum(each.share for each in slices) == pytest.approx(1)
        assert sum(each.share * each.value for each in slices) == pytest.approx(whole.value, rel=1e-12)
        for each in slices:
            inside = labels == each.label
            of_weight = None if weight is None else weight[inside]
            alone = evaluate(Y[inside], SCORES[inside], flavor=flavor, query_weight=of_weight)
            others = evaluate(
                Y[~inside], SCORES[~inside], flavor=flavor, query_weight=None if weight is None else weight[~inside]
            )
            assert each.value == pytest.approx(alone.value, rel=1e-12)
            assert each.difference == pytest.approx(alone.value - others.value, abs=1e-12)
            assert each.evaluation.n_empty == alone.n_empty
            assert each.evaluation.per_query.qid.tolist() == np.flatnonzero(inside).tolist()
            expected = alone.interval(method="t")
            assert (each.interval.low, each.interval.high) == pytest.approx((expected.low, expected.high), rel=1e-9)
            assert each.evaluation.interval(seed=0).n_queries == expected.n_queries


def test_the_slices_that_differ_most_come_first():
    by = np.where(np.arange(90) == 1, "one", COUNTRY)
    slices = evaluate(Y, SCORES, k=5, by=by).slices
    assert slices[0].label == "uk"
    assert slices[0].difference < -0.3
    assert slices[-1].label == "one"  # a single query: it may differ by chance
    assert (slices[-1].n_queries, slices[-1].interval) == (1, None)
    distances = []
    for each in slices[:-1]:
        others = [other for other in range(90) if by[other] != each.label]
        error = evaluate(Y[others], SCORES[others], k=5).standard_error
        distances.append(abs(each.difference) / math.hypot(each.evaluation.standard_error, error))
    assert distances == sorted(distances, reverse=True)


def test_labels_per_row_and_per_query_are_one():
    rows = {"y_true": Y.reshape(-1), "y_score": SCORES.reshape(-1), "k": 5}
    qid = np.repeat([f"q{i}" for i in range(90)], 8)
    expected = str(evaluate(Y, SCORES, k=5, by=COUNTRY).slices)
    assert expected.count("by=") == 3
    assert str(evaluate(**rows, qid=qid, by=COUNTRY).slices) == expected
    assert str(evaluate(**rows, qid=qid, by=np.repeat(COUNTRY, 8)).slices) == expected
    assert str(evaluate(**rows, group=[8] * 90, by=COUNTRY.tolist()).slices) == expected
    assert str(evaluate(**rows, group=[8] * 90, by=np.repeat(COUNTRY, 8)).slices) == expected
    assert str(evaluate(Y, SCORES, k=5, by=np.repeat(COUNTRY[:, None], 8, axis=1)).slices) == expected
    by_id = dict(zip([f"q{i}" for i in range(90)], COUNTRY.tolist(), strict=True))
    assert str(evaluate(**rows, qid=qid, by={"by": by_id}).slices) == expected
    order = RNG.permutation(720)
    shuffled = evaluate(
        Y.reshape(-1)[order], SCORES.reshape(-1)[order], qid=qid[order], k=5, by=np.repeat(COUNTRY, 8)[order]
    )
    assert str(shuffled.slices) == expected


def test_several_cutoffs():
    slices = evaluate(Y, SCORES, k=(1, None), by={"country": COUNTRY}).slices
    one = evaluate(Y, SCORES, k=1, by={"country": COUNTRY}).slices
    uk = slices["country", "uk"]
    assert uk.value == pytest.approx(
        {1: one["country", "uk"].value, None: evaluate(Y, SCORES).per_query.ndcg[2::3].mean()}
    )
    assert set(uk.share) == set(uk.interval) == set(uk.difference) == {1, None}
    assert [each.label for each in slices] == [each.label for each in one]
    assert str(slices).count("country=uk@1 ") == 1
    assert len(str(slices).splitlines()) == 7


def test_labels_of_any_kind():
    for labels in (
        np.arange(90) % 2,
        np.arange(90) % 2 == 0,
        [("a", i % 2) for i in range(90)],
        np.datetime64("2026-01-01") + np.arange(90) % 2,
        [1 if i % 2 else "1" for i in range(90)],
    ):
        slices = evaluate(Y, SCORES, by=labels).slices
        assert sorted(each.n_queries for each in slices) == [45, 45]
    crossed = evaluate(Y, SCORES, by=list(zip(COUNTRY.tolist(), DEVICE.tolist(), strict=True))).slices
    assert crossed["by", ("uk", "desk")].n_queries == ((COUNTRY == "uk") & (DEVICE == "desk")).sum()
    with pytest.raises(KeyError, match="is no slice; name a column and a label, such as"):
        crossed["by", "uk"]


def test_a_slice_that_does_not_count():
    labels = Y.copy()
    labels[:10] = 0
    by = np.where(np.arange(90) < 10, "none", "some")
    skipped = evaluate(labels, SCORES, flavor=Flavor(empty="skip"), by=by).slices["by", "none"]
    assert math.isnan(skipped.value)
    assert (skipped.n_empty, skipped.share, skipped.interval, skipped.difference) == (10, 0.0, None, None)
    micro = evaluate(labels, SCORES, flavor=Flavor(aggregate="micro", empty=1.0), by=by).slices["by", "none"]
    assert (micro.value, micro.share) == (1.0, 0.0)
    nan = evaluate(labels, SCORES, flavor=Flavor(empty=math.nan), by=by).slices["by", "none"]
    assert math.isnan(nan.value)
    assert (nan.interval, nan.difference) == (None, None)
    single = evaluate(Y, SCORES, by=["all"] * 90).slices[0]
    assert (single.share, single.difference) == (pytest.approx(1), None)
    assert evaluate(Y, SCORES).slices is None


ROWS = {"y_true": Y.reshape(-1), "y_score": SCORES.reshape(-1), "qid": np.repeat(np.arange(90) + 100, 8)}


def test_refusals():
    constant = np.repeat(COUNTRY, 8)
    constant[19] = "fr"
    for by, kind, message in (
        (constant, ValueError, r"by\['by'\] must be the same in all rows of a query, .* query 102 has 'uk' and 'fr'"),
        (
            {"country": COUNTRY[:50]},
            ValueError,
            r"by\['country'\] must have one label per row, 720, or one per query, 90; got 50",
        ),
        ({}, ValueError, "by must have at least one column"),
        ([None, *COUNTRY[1:]], ValueError, "must have a label for each query; got None for query 100"),
        (np.where(np.arange(90) == 3, np.nan, 1.0), ValueError, "missing value"),
        ([["x"]] * 90, ValueError, "must be one-dimensional"),
        ({"c": {100: "de"}}, ValueError, r"by\['c'\] must have an entry for the id of each query; got none for 101"),
    ):
        with pytest.raises(kind, match=message):
            evaluate(**ROWS, by=by)
    with pytest.raises(TypeError, match="is a mapping from query ids, and the queries have none"):
        evaluate(Y, SCORES, by={"c": {0: "de"}})
    with pytest.raises(ValueError, match=r"must have the shape of y_true, \(90, 8\); got \(90, 2\)"):
        evaluate(Y, SCORES, by=np.ones((90, 2)))
    with pytest.raises(ValueError, match="as many rows as queries, so that it cannot be told"):
        evaluate([1, 0], [1, 0], group=[0, 2], by=["x", "y"])
    with pytest.raises(ValueError, match="because some queries have no row"):
        evaluate([1, 0], [1, 0], group=[0, 2, 0], by=["x", "y"])
    objects = np.empty(90, dtype=object)
    objects[:] = [{}] * 90
    with pytest.raises(TypeError, match="must hold a label per row or per query; got 5"):
        evaluate(**ROWS, by=5)
    with pytest.raises(TypeError, match="must hold hashable labels"):
        evaluate(**ROWS, by=objects)
