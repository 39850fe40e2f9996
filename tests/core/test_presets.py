"""The peculiarities of presets, on inputs small enough to compute by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ndcg_ml import Flavor, dcg_score, evaluate, ndcg_score

LOG3 = 1 / math.log2(3)
GRADES_OF_12 = [3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1]


def score(y_true: list[float], y_score: list[float] | None = None, **arguments: Any) -> float:
    """Return the value of one query, ranked in input order unless scores are given."""
    falling = [-float(place) for place in range(len(y_true))]
    value = ndcg_score(y_true, falling if y_score is None else y_score, group=[len(y_true)], **arguments)
    assert isinstance(value, float)
    return value


# -- the ideal


@pytest.mark.parametrize(("k", "value"), [(10, 0.976), (3, 0.642)])
def test_quepid_does_not_cut_the_ideal(k: int, value: float) -> None:
    assert score(GRADES_OF_12, flavor="quepid", k=k) == pytest.approx(value, abs=5e-4)
    assert score(GRADES_OF_12, flavor="quepid_cut", k=k) == 1.0


def test_elasticsearch_cuts_the_ideal_at_the_hits_that_came_back() -> None:
    labels, scores = [3, 3, 1], [2, 0, 1]
    found = [True, False, False]
    assert score(labels, scores, flavor="elasticsearch", retrieved=found) == 1.0
    assert score(labels, scores, flavor="quepid_cut", retrieved=found) == pytest.approx(7 / (7 + 7 * LOG3 + 1 / 2))
    two = [False, True, True]  # the ranking is 1, 3 and the ideal 3, 3
    expected = (1 + 7 * LOG3) / (7 + 7 * LOG3)
    assert score(labels, scores, flavor="elasticsearch", retrieved=two) == pytest.approx(expected)
    assert score(labels, scores, flavor="elasticsearch", retrieved=two, k=1) == pytest.approx(1 / 7)


def test_the_top_of_the_scale_for_as_many_ranks_as_were_retrieved() -> None:
    flavor = Flavor(ideal="max", max_grade=2, ideal_depth="retrieved", k=3)
    assert score([2, 2], flavor=flavor) == 1.0
    assert score([2, 2], flavor=flavor.replace(ideal_depth="k")) == pytest.approx((1 + LOG3) / (1.5 + LOG3))


def test_spark_takes_the_judgements_in_the_order_given() -> None:
    assert score([3, 1], [1, 0], flavor="spark_graded") == 1.0
    expected = (7 + LOG3) / (1 + 7 * LOG3)
    assert expected > 1.25
    assert score([1, 3], [0, 1], flavor="spark_graded") == pytest.approx(expected)
    assert score([1, 3], [0, 1], flavor="spark_graded", k=1) == 7.0
    # The ideal has all judged documents, retrieved or not, and no unjudged ones.
    flags = [True, False, True]
    assert score([math.nan, 1, 3], [0, 0, 1], flavor="spark_graded", retrieved=flags) == pytest.approx(
        7 / (1 + 7 * LOG3)
    )


# -- the gain


def test_every_judged_item_counts() -> None:
    assert score([0, 0, math.nan], [0, 1, 2], flavor="recommenders_binary") == pytest.approx(
        (LOG3 + 1 / 2) / (1 + LOG3)
    )
    assert score([0, 0, math.nan], [0, 1, 2], flavor="pyspark_graded", k=1) == 0.0
    assert score([0, 0, 1], flavor="recommenders_binary") == 1.0
    assert evaluate([0, -3], [0, 1], group=[2], flavor="pyspark_graded").per_query.n_relevant.tolist() == [2]


@pytest.mark.parametrize(("preset", "gains"), [("letor3", [0, 1, 3, 0, 0, 0]), ("mslr", [0, 1, 3, 7, 15, 0])])
def test_a_grade_beyond_the_table_has_gain_0(preset: str, gains: list[int]) -> None:
    for grade, gain in enumerate(gains):
        assert dcg_score([grade], [1], group=[1], flavor=preset) == gain
    assert dcg_score([1e300], [1], group=[1], flavor=preset) == 0


# -- the discount, and short lists


def test_letor_does_not_discount_rank_2() -> None:
    assert score([0, 1], flavor="mslr", k=2) == 1.0
    assert score([0, 1], flavor="lightgbm", k=2) == pytest.approx(LOG3)


@pytest.mark.parametrize("preset", ["letor3", "letor4", "mslr"])
def test_a_list_shorter_than_k_scores_0(preset: str) -> None:
    arguments: dict[str, Any] = {"y_true": [2, 1, 2, 1, 0], "y_score": [2, 1, 3, 2, 1], "group": [2, 3]}
    result = evaluate(flavor=preset, k=[1, 2, 3, 4, None], **arguments)
    assert isinstance(result.value, dict)
    assert result.value == {1: 1.0, 2: 1.0, 3: 0.5, 4: 0.0, None: 1.0}
    assert result.per_query.dcg[:, 2].tolist() == [0.0, 4.0]
    assert result.per_query.idcg[0, 2] == 4.0
    assert dcg_score(flavor=preset, k=3, **arguments) == 2.0
    assert not result.per_query.empty.any()
    longer = evaluate(flavor=Flavor.preset(preset, short_lists="score"), k=3, **arguments)
    assert longer.value == 1.0


def test_unretrieved_documents_do_not_lengthen_a_list() -> None:
    flavor = Flavor(short_lists="zero", unjudged="condense", k=2)
    assert score([1, 1], flavor=flavor, retrieved=[True, False]) == 0.0
    assert score([1, math.nan], flavor=flavor) == 0.0
    assert score([1, math.nan], flavor=flavor.replace(unjudged="zero")) == 1.0


# -- scores


def test_trec_eval_compares_scores_in_float32_until_version_10() -> None:
    arguments: dict[str, Any] = {"y_score": [1.0, 1.0 + 1e-9], "doc_id": ["b", "a"]}
    assert score([1, 0], flavor="trec_eval", **arguments) == 1.0
    assert score([1, 0], flavor="trec_eval10", **arguments) == pytest.approx(LOG3)


def test_gdeval_skips_topics_without_a_relevant_document() -> None:
    arguments: dict[str, Any] = {"y_true": [4, 0, 0], "y_score": [1, 2, 1], "group": [1, 2], "doc_id": ["a", "a", "b"]}
    assert ndcg_score(**arguments, flavor="gdeval") == 1.0
    assert ndcg_score(**arguments, flavor="ir_measures_exp") == 0.5
    assert evaluate(**arguments, flavor="gdeval").n_empty == 1


# -- the discount


def test_mlnet_discounts_by_a_natural_logarithm() -> None:
    """DCG@1 of a document of grade 1 is 3 / ln 2. The base of the logarithm does not change NDCG."""
    assert dcg_score([[1, 0]], [[2, 1]], flavor="mlnet", k=1) == pytest.approx(4.3280851226668897, rel=1e-15)
    table = evaluate([[1, 0, 2]], [[2, 1, 0]], flavor="mlnet", k=(1, 3)).per_query
    assert table.dcg[0] == pytest.approx([3 / math.log(2), 3 / math.log(2) + 7 / math.log(4)])
    assert table.idcg[0] == pytest.approx([7 / math.log(2), 7 / math.log(2) + 3 / math.log(3)])
    log2 = Flavor.preset("mlnet").replace(discount="log2")
    assert evaluate([[1, 0, 2]], [[2, 1, 0]], flavor=log2, k=(1, 3)).per_query.ndcg == pytest.approx(table.ndcg)


# -- the weights


@pytest.mark.parametrize(
    ("weights", "theirs"),
    [
        ([1, 0.5, 2, 1], 0.5079638957977295),
        ([1, 1, 1, 1], 0.5421534180641174),
        ([2, 0.5, 0.25, 1], 0.4980306029319763),
        ([1, 3, 0, 2], 0.7761831879615784),
        ([1, 2, 4, 3], 0.5366475582122803),
    ],
)
def test_keras_rs_weighs_an_empty_query_as_the_mean_of_the_others(weights: list[float], theirs: float) -> None:
    """Recorded from KerasRS 0.4.0 on JAX, which ignores the weight of the third query unless it is 0."""
    y_true = [[0, 0, 1, 0], [1, 0, 3, 2], [0, 0, 0, 0], [2, 1, 0, 0]]
    y_score = [[0.1, 0.2, 0.3, 0.9], [0.1, 0.8, 0.9, 0.7], [0.4, 0.3, 0.2, 0.1], [0.2, 0.7, 0.1, 0.9]]
    used = [*weights[:2], weights[2] and (weights[0] + weights[1] + weights[3]) / 3, weights[3]]
    assert ndcg_score(y_true, y_score, flavor="keras_rs", query_weight=used) == pytest.approx(theirs, abs=1e-6)
    ours = ndcg_score(y_true, y_score, flavor="keras_rs", query_weight=weights)
    assert (ours == pytest.approx(theirs, abs=1e-6)) == (used == weights)
