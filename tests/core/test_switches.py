"""What each switch and preset does, in numbers small enough to compute by hand, up to the limits of float64."""

import math
from dataclasses import replace
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest

from ndcg_ml import (
    Flavor,
    align,
    dcg_score,
    evaluate,
    evaluate_part,
    evaluate_run,
    evaluate_topk,
    explain_difference,
    identify,
    ndcg_score,
    prepare,
)
from ndcg_ml._core import labels_gains_discounts as gains
from ndcg_ml._core.query_groups import group_by_sizes

LOG3 = 1 / math.log2(3)
GRADES_OF_12 = [3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1]


def score(y_true: list[float], y_score: list[float] | None = None, **arguments: Any) -> float:
    """Return the value of one query, ranked in input order unless scores are given."""
    falling = [-float(place) for place in range(len(y_true))]
    value = ndcg_score(y_true, falling if y_score is None else y_score, group=[len(y_true)], **arguments)
    assert isinstance(value, float)
    return value


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
    value = score([math.nan, 1, 3], [0, 0, 1], flavor="spark_graded", retrieved=flags)
    assert value == pytest.approx(7 / (1 + 7 * LOG3))


def test_every_judged_item_counts() -> None:
    expected = (LOG3 + 1 / 2) / (1 + LOG3)
    assert score([0, 0, math.nan], [0, 1, 2], flavor="recommenders_binary") == pytest.approx(expected)
    assert score([0, 0, math.nan], [0, 1, 2], flavor="pyspark_graded", k=1) == 0.0
    assert score([0, 0, 1], flavor="recommenders_binary") == 1.0
    assert evaluate([0, -3], [0, 1], group=[2], flavor="pyspark_graded").per_query.n_relevant.tolist() == [2]


@pytest.mark.parametrize(("preset", "gains"), [("letor3", [0, 1, 3, 0, 0, 0]), ("mslr", [0, 1, 3, 7, 15, 0])])
def test_a_grade_beyond_the_table_has_gain_0(preset: str, gains: list[int]) -> None:
    for grade, gain in enumerate(gains):
        assert dcg_score([grade], [1], group=[1], flavor=preset) == gain
    assert dcg_score([1e300], [1], group=[1], flavor=preset) == 0


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


def test_trec_eval_compares_scores_in_float32_until_version_10() -> None:
    arguments: dict[str, Any] = {"y_score": [1.0, 1.0 + 1e-9], "doc_id": ["b", "a"]}
    assert score([1, 0], flavor="trec_eval", **arguments) == 1.0
    assert score([1, 0], flavor="trec_eval10", **arguments) == pytest.approx(LOG3)


def test_gdeval_skips_topics_without_a_relevant_document() -> None:
    arguments: dict[str, Any] = {"y_true": [4, 0, 0], "y_score": [1, 2, 1], "group": [1, 2], "doc_id": ["a", "a", "b"]}
    assert ndcg_score(**arguments, flavor="gdeval") == 1.0
    assert ndcg_score(**arguments, flavor="ir_measures_exp") == 0.5
    assert evaluate(**arguments, flavor="gdeval").n_empty == 1


def test_mlnet_discounts_by_a_natural_logarithm() -> None:
    """DCG@1 of a document of grade 1 is 3 / ln 2. The base of the logarithm does not change NDCG."""
    assert dcg_score([[1, 0]], [[2, 1]], flavor="mlnet", k=1) == pytest.approx(4.3280851226668897, rel=1e-15)
    table = evaluate([[1, 0, 2]], [[2, 1, 0]], flavor="mlnet", k=(1, 3)).per_query
    assert table.dcg[0] == pytest.approx([3 / math.log(2), 3 / math.log(2) + 7 / math.log(4)])
    assert table.idcg[0] == pytest.approx([7 / math.log(2), 7 / math.log(2) + 3 / math.log(3)])
    log2 = Flavor.preset("mlnet").replace(discount="log2")
    assert evaluate([[1, 0, 2]], [[2, 1, 0]], flavor=log2, k=(1, 3)).per_query.ndcg == pytest.approx(table.ndcg)


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


# -- values of gains, discounts and the maximal ideal, up to the limits of float64


def test_a_callable_discount_is_called_once_per_rank() -> None:
    asked = []

    def inverse(rank: int) -> float:
        asked.append(rank)
        return 1 / rank

    assert gains.discounts(Flavor(discount=inverse), 4).tolist() == [1, 1 / 2, 1 / 3, 1 / 4]
    assert asked == [1, 2, 3, 4]
    assert {type(rank) for rank in asked} == {int}


def of_labels(flavor: Flavor, labels: list[float]) -> list[float]:
    groups = group_by_sizes([len(labels)], len(labels))
    found: list[float] = gains.grade(flavor, np.array(labels), groups).gains.tolist()
    return found


def test_exponential_gains_are_right_to_the_last_bits_and_minus_one_far_below_zero() -> None:
    grades = np.linspace(0.01, 4, 400)
    found = of_labels(Flavor(gain="exponential"), grades.tolist())
    with localcontext() as context:
        context.prec = 40
        for grade, gain in zip(grades.tolist(), found, strict=True):
            exact = Decimal(2) ** Decimal(grade) - 1
            assert abs(Decimal(gain) / exact - 1) < 2.3 * 2.0**-53
    assert of_labels(Flavor(gain="exponential", negative="allow"), [-1e300, 2.0]) == [-1.0, 3.0]


def test_the_binary_logarithm_of_jarvelin_is_exact_at_powers_of_two() -> None:
    discounts = gains.discounts(Flavor(discount="jarvelin"), 1 << 15)
    for power in range(1, 16):
        assert discounts[(1 << power) - 1] == 1 / power
    assert (discounts[1:] == 1 / np.log2(np.arange(2, (1 << 15) + 1))).all()


@pytest.mark.parametrize(
    ("flavor", "label", "size"),
    [
        (Flavor(), 2.0**501, r"at most 2\*\*500; got 6.5\d*e\+150"),
        (Flavor(gain="exponential"), 600.0, r"at most 2\*\*500; got 4.1\d*e\+180"),
        (Flavor(gain="exponential"), 1e308, r"at most 2\*\*500; got inf"),
        (Flavor(negative="allow"), -(2.0**501), r"at most 2\*\*500; got -6.5\d*e\+150"),
        (Flavor(gain=lambda grade: 1e200), 1.0, r"at most 2\*\*500; got 1e\+200"),
        (Flavor(ideal="max", max_grade=1e200), 1.0, r"at most 2\*\*500; got 1e\+200"),
        (Flavor(gain=(0.0, 1e200)), 1.0, r"at most 2\*\*500; got 1e\+200"),
        (Flavor(), 2.0**-501, r"0 or at least 2\*\*-500; got 1.5\d*e-151"),
        (Flavor(), 5e-324, r"0 or at least 2\*\*-500; got 4.9\d*e-324"),
    ],
)
def test_gains_that_float64_cannot_sum_with_all_digits_are_refused(flavor: Flavor, label: float, size: str) -> None:
    for n_documents in (2, 600):  # in a wide list, labels are kept as bytes
        labels, scores = [label, *[0.0] * (n_documents - 1)], list(range(n_documents))
        with pytest.raises(ValueError, match=f"gains must be {size}"):
            ndcg_score(labels, scores, group=[n_documents], flavor=flavor)
    if label == 2.0**501:
        assert ndcg_score([2.0**500, 0], [2, 1], group=[2], flavor=flavor) == 1


def one_query(dcg: float, ideal: float) -> Any:
    """The totals of one query with this DCG and ideal DCG."""
    totals = prepare([[1]]).totals([[1]])
    return replace(totals, dcg=np.array([[dcg]]), ideal=np.array([[ideal]]))


def test_a_perfect_ranking_is_one_whatever_its_rounding_and_an_ideal_may_be_tiny() -> None:
    for ratio, value in ((1 + 1e-13, 1.0), (1 - 1e-13, 1 - 1e-13), (1 + 1e-12, 1 + 1e-12), (1.0, 1.0)):
        for aggregate in ("macro", "micro"):
            assert one_query(ratio, 1.0).values(Flavor(aggregate=aggregate)) == [value]
    tiny = one_query(1e300, 1e-300)
    assert tiny.ndcg(Flavor())[1].tolist() == [[False]]
    assert tiny.values(Flavor()) == tiny.values(Flavor(aggregate="micro")) == [math.inf]
    ideal = np.array([[1.0], [1e-300]])  # the second query, of weight 0, has an infinite DCG
    both = replace(tiny, ids=np.arange(2), dcg=np.array([[1.0], [math.inf]]), ideal=ideal, weight=np.array([1.0, 0.0]))
    assert both.values(Flavor()) == both.values(Flavor(aggregate="micro")) == [1.0]
    for large in (both, replace(both, dcg=np.full((2, 1), 1.7e308), weight=None)):
        with pytest.raises(ValueError, match=r"^a DCG, or the sum of all, is too large for float64"):
            large.mean_dcg()


@pytest.mark.parametrize("size", [1.0, 1e150])
def test_a_micro_mean_skips_a_negative_ideal(size: float) -> None:
    """Large negative gains do not make small gains of other queries vanish."""
    flavor = Flavor(aggregate="micro", negative="allow")
    labels = [1e-20, 0.0, -size, -size]
    value = ndcg_score(labels, [1, 2, 1, 2], group=[2, 2], flavor=flavor)
    assert value == pytest.approx(1 / math.log2(3), rel=1e-14)


@pytest.mark.parametrize("empty", [0.0, 1.0, "skip"])
@pytest.mark.parametrize("aggregate", ["macro", "micro"])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_several_cut_offs_are_bitwise_those_of_each(empty: Any, aggregate: Any, weighted: bool) -> None:
    """Cut-offs at which the same queries count are summed together, which must not change a bit."""
    rng = np.random.default_rng(0)
    ideal = rng.random((301, 7)) + 0.1
    ideal[rng.random(301) < 0.2, :3] = 0.0
    ideal[:5, 3] = 0.0
    ideal[:, 6] = 0.0
    dcg = ideal * rng.random((301, 7))
    weight = rng.integers(0, 4, 301) / 3 if weighted else None
    flavor = Flavor(empty=empty, aggregate=aggregate)
    whole = replace(prepare(np.ones((301, 2)), k=range(1, 8)).totals(np.ones((301, 2))), dcg=dcg, ideal=ideal)
    whole = replace(whole, weight=weight)
    sums, terms = whole.sums(flavor), whole.terms(flavor)
    for column in range(7):
        one = whole.at_cutoff(column + 1)
        alone = one.terms(flavor)
        assert terms.numerator[column].tolist() == alone.numerator[0].tolist()
        assert terms.denominator[column].tolist() == alone.denominator[0].tolist()
        assert sums.numerator[column] == terms.numerator[column].sum() == alone.numerator[0].sum()
        assert sums.denominator[column] == terms.denominator[column].sum()
        assert sums.n_empty[column] == alone.n_empty[0]
        nothing = empty == "skip" and alone.n_empty[0] == 301
        assert whole.mean(flavor)[column] == pytest.approx(math.nan if nothing else one.values(flavor)[0], nan_ok=True)


# -- ``ideal="given"``: the order of the judgements, whatever the order of the run


GIVEN = Flavor(ideal="given", ties="first", unjudged="zero")


def spark(predicted, labels, grades):
    """Compute Spark's ``ndcgAt`` for graded labels."""
    grade = dict(zip(labels, grades, strict=True))
    dcg = sum((2.0 ** grade.get(d, 0) - 1) / math.log(i + 2) for i, d in enumerate(predicted))
    return dcg / sum((2.0**g - 1) / math.log(i + 2) for i, g in enumerate(grades))


@pytest.mark.parametrize("order", [["a", "b", "c"], ["b", "a"], ["x", "b", "c", "a"], ["c", "x", "b"]])
def test_the_ideal_of_spark_is_in_the_order_of_its_labels(order):
    qrels = {"t": {"a": 1, "b": 3, "c": 2}}
    expected = spark(order, ["a", "b", "c"], [1, 3, 2])
    assert evaluate_run(qrels, {"t": order}, flavor="spark_graded", k=10).value == pytest.approx(expected, rel=1e-12)
    data = align(qrels, {"t": order}).arguments()
    assert ndcg_score(**data, flavor="spark_graded", k=10) == pytest.approx(expected, rel=1e-12)
    items = [["xcba".index(document) for document in order]]
    held_out = [0, 0, 0], ["xcba".index(document) for document in "abc"], [1, 3, 2]
    assert evaluate_topk(items, held_out, flavor="spark_graded").value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("scores", [{"b": 2.0, "a": 1.0}, {"a": 1.0, "b": 2.0}, {"b": 1.0, "a": 1.0}])
def test_every_form_of_a_run_has_one_given_ideal(scores, tmp_path):
    qrels = {"t": {"a": 0, "b": 3}}
    ideal = 3 / math.log2(3)
    judged, ranked = tmp_path / "qrels.txt", tmp_path / "run.txt"
    judged.write_text("".join(f"t 0 {d} {g}\n" for d, g in qrels["t"].items()))
    ranked.write_text("".join(f"t Q0 {d} 1 {s} tag\n" for d, s in scores.items()))
    for one, other in ((qrels, {"t": scores}), (judged, ranked), (qrels, ranked), (judged, {"t": scores})):
        assert evaluate_run(one, other, flavor=GIVEN).per_query.idcg == pytest.approx([ideal])


def test_rows_follow_the_judgements_or_the_run_where_scores_tie():
    qrels = {"t": {"a": 1, "b": 2, "c": 3}, "u": {"a": 1, "b": 2, "c": 3}}
    data = align(qrels, {"t": {"c": 5.0, "x": 1.0, "b": 2.0}, "u": {"b": 1.0, "x": 1.0, "a": 1.0}})
    assert data.in_run_order.tolist() == ["u"]
    assert data.y_true[: data.group[0]].tolist()[:3] == [1, 2, 3]
    np.testing.assert_array_equal(data.y_true[data.group[0] :], [2, np.nan, 1, 3])


@pytest.mark.parametrize("ties", ["first", "last", "average", "docid"])
@pytest.mark.parametrize("duplicates", ["raise", "first", "count"])
def test_arrays_of_align_give_the_value_of_the_run(ties, duplicates):
    """For random runs: under other ideals in all topics, under ``given`` in topics without ties."""
    rng = np.random.default_rng(7)
    documents = [f"d{i}" for i in range(7)]
    qrels, run = {}, {}
    for topic in map(str, range(40)):
        judged = rng.permutation(documents)[: rng.integers(1, 7)].tolist()
        ranked = rng.permutation(documents)[: rng.integers(1, 7)].tolist()
        qrels[topic] = {d: int(rng.integers(0, 4)) for d in judged}
        run[topic] = {d: float(rng.integers(0, 40)) for d in ranked}
        if ties == "first" and duplicates != "raise":
            run[topic] = [*ranked, ranked[0]]
    for ideal in ("given", "global", "recall"):
        flavor = Flavor(ideal=ideal, ties=ties, unjudged="zero", duplicates=duplicates, k=4)
        whole = evaluate_run(qrels, run, flavor=flavor).per_query
        data = align(qrels, run, duplicates="raise" if duplicates == "raise" else "keep")
        rows = evaluate(**data.arguments(), flavor=flavor).per_query
        both = ~np.isin(whole.qid, data.in_run_order) if ideal == "given" else np.ones(len(whole), dtype=bool)
        assert both.sum() > 15
        np.testing.assert_allclose(rows.ndcg[both], whole.ndcg[both], rtol=1e-12)


def test_the_given_ideal_has_the_first_retrieved_copy_and_no_other():
    flavor = GIVEN.replace(duplicates="count")
    rows = {"group": [4], "doc_id": ["a", "b", "a", "c"]}
    labels, scores = [3, 1, 3, 2], [4, 3, 2, 1]
    first = 3 + 1 / math.log2(3) + 2 / math.log2(4)
    assert evaluate(labels, scores, **rows, flavor=flavor).per_query.idcg == pytest.approx([first])
    second = 1 + 3 / math.log2(3) + 2 / math.log2(4)
    found = evaluate(labels, scores, **rows, retrieved=[False, True, True, True], flavor=flavor)
    assert found.per_query.idcg == pytest.approx([second])
    none = evaluate(labels, scores, **rows, retrieved=[False, True, False, True], flavor=flavor)
    assert none.per_query.idcg == pytest.approx([first])
    table = evaluate_run({"t": {"a": 1, "b": 2}}, {"t": ["b", "a", "b"]}, flavor=flavor).per_query
    assert table.idcg == pytest.approx([1 + 2 / math.log2(3)])


# -- documents that a query lists twice, under each flavor and through each function


QRELS = {"q": {"a": 1, "b": 1, "c": 1}}
TWICE = {"q": ["a", "a", "x"]}
IDEAL_OF_3 = 1 + LOG3 + 1 / 2


def of_run(flavor: str, **more: Any) -> float:
    value = evaluate_run(QRELS, TWICE, flavor=flavor, **more).value
    assert isinstance(value, float)
    return value


@pytest.mark.parametrize(
    ("preset", "value"),
    [
        ("haystack", 1 / IDEAL_OF_3),  # .469
        ("llama_index", (1 + LOG3) / IDEAL_OF_3),  # .765
        ("vespa", (1 + LOG3) / IDEAL_OF_3),
        ("autorag", (1 + LOG3) / IDEAL_OF_3),
        ("trulens", 1 / IDEAL_OF_3),
    ],
)
def test_the_relevant_chunk_twice(preset: str, value: float) -> None:
    assert of_run(preset) == pytest.approx(value, abs=1e-15)


def test_the_ideal_has_each_document_once_so_that_one_found_twice_may_score_more_than_1() -> None:
    for duplicates, gain in (("first", 1.0), ("count", 1 + LOG3)):
        table = evaluate_run(QRELS, TWICE, flavor=f"trec_eval[duplicates={duplicates}]").per_query
        assert (table.n_docs.tolist(), table.n_judged.tolist(), table.n_relevant.tolist()) == ([3], [3], [3])
        assert table.idcg.tolist() == pytest.approx([IDEAL_OF_3])
        assert table.dcg.tolist() == pytest.approx([gain])
        assert table.judged.tolist() == pytest.approx([2 / 3])  # the share of ranks with a judged document
    assert evaluate_run({"q": {"a": 1}}, {"q": ["a", "a"]}, flavor="llama_index").value == pytest.approx(1 + LOG3)
    assert evaluate_run({"q": {"a": 1}}, {"q": ["a", "a"]}, flavor="haystack").value == 1.0


def test_a_recall_ideal_uses_the_gain_of_each_rank() -> None:
    """A recall ideal is made of the gain at each rank; Phoenix, which has no ids, gives 1."""
    labels, ids = [1, 1, 0], ["a", "a", "x"]
    arguments: dict[str, Any] = {"y_true": labels, "y_score": [3, 2, 1], "group": [3], "doc_id": ids}
    assert ndcg_score(**arguments, flavor="phoenix[duplicates=count]") == 1.0
    assert evaluate(**arguments, flavor="phoenix[duplicates=first]").per_query.idcg.tolist() == [1.0]


def test_the_credit_is_at_the_best_rank_and_not_at_the_first_row() -> None:
    flavor = "trec_eval[duplicates=first]"
    arguments: dict[str, Any] = {"y_true": [1, 0, 1], "group": [3], "doc_id": ["a", "b", "a"]}
    assert ndcg_score(y_score=[1, 2, 3], flavor=flavor, **arguments) == 1.0
    assert ndcg_score(y_score=[2, 3, 1], flavor=flavor, **arguments) == pytest.approx(LOG3)
    score = prepare(flavor=flavor, **arguments)  # one preparation, two rankings
    assert (score([1, 2, 3]), score([2, 3, 1])) == (1.0, pytest.approx(LOG3))


@pytest.mark.parametrize(("ties", "value"), [("first", 1.0), ("last", LOG3), ("docid", LOG3), ("docid_ascending", 1.0)])
def test_a_repeat_may_tie_with_other_documents(ties: str, value: float) -> None:
    flavor = Flavor(ties=ties, duplicates="first")
    # "a" is in rows 0 and 2, "b" in row 1; row 2 has a lower score
    assert ndcg_score([1, 0, 1], [2, 2, 1], group=[3], doc_id=["a", "b", "a"], flavor=flavor) == pytest.approx(value)


def test_a_document_may_tie_with_itself_unless_ties_are_averaged() -> None:
    arguments: dict[str, Any] = {"y_true": [1, 0, 1], "group": [3], "doc_id": ["a", "b", "a"]}
    flavor = Flavor(duplicates="first")
    assert ndcg_score(y_score=[1, 1, 1], flavor=flavor.replace(ties="first"), **arguments) == 1.0
    assert ndcg_score(y_score=[1, 1, 0], flavor=flavor, **arguments) == pytest.approx((1 + LOG3) / 2)
    # Without ids, rows are separate documents.
    assert ndcg_score(y_score=[0, 1, 0], flavor="sklearn", y_true=[1, 0, 1], group=[3]) > 0


def test_every_function_gives_the_same_number() -> None:
    want = of_run("haystack")

    data = align(QRELS, TWICE, duplicates="keep").arguments()
    assert ndcg_score(**data, flavor="haystack") == want
    assert evaluate_part(**data, flavor="haystack").value == want
    padded = {
        "y_true": [[1, 1, np.nan, 1, 1, 7]], "y_score": [[3, 2, 1, 0, 0, 9]], "mask": [[True] * 5 + [False]],
        "doc_id": [["a", "a", "x", "b", "c", "a"]], "retrieved": [[True, True, True, False, False, True]],
    }  # fmt: skip
    assert ndcg_score(**padded, flavor="haystack") == want  # padding does not count as a repeat


def test_a_copy_that_is_unjudged_or_not_retrieved_adds_nothing() -> None:
    arguments: dict[str, Any] = {"y_true": [1, 1, 1], "y_score": [0, 1, 0], "group": [3], "doc_id": ["a", "a", "b"]}
    for duplicates in ("first", "count"):
        flavor = Flavor(duplicates=duplicates)
        value = ndcg_score(**arguments, retrieved=[False, True, False], flavor=flavor)
        assert value == pytest.approx(1 / (1 + LOG3))
    flavor = Flavor(duplicates="count", unjudged="zero")
    both = [math.nan, 1, math.nan]
    assert ndcg_score(both, [3, 2, 1], group=[3], doc_id=["a", "b", "a"], flavor=flavor) == pytest.approx(LOG3)


def test_the_difference_is_explained() -> None:
    data = align(QRELS, TWICE, duplicates="keep").arguments()
    result = explain_difference("haystack", "haystack[duplicates=count]", **data)
    assert {part.name: part.contribution for part in result.parts} == {"duplicates": pytest.approx(LOG3 / IDEAL_OF_3)}
    alone = explain_difference("sklearn", "haystack", [1, 0], [1, 2], group=[2])
    assert {part.name: part.contribution for part in alone.parts}["duplicates"] == 0


def test_a_number_with_repeats_is_identified() -> None:
    data = align(QRELS, TWICE, duplicates="keep").arguments()
    found = identify(of_run("haystack"), **data, k=None, decimals=None)
    assert found.matches[0].name == "haystack"
    assert found.not_tried["sklearn"].startswith("doc_id must not repeat")


def test_as_text() -> None:
    flavor = Flavor.preset("haystack")
    assert str(flavor).endswith(",duplicates=first]")
    assert Flavor.parse(str(flavor)) == flavor
    assert "repeats    a document that is listed twice is credited at its first rank" in flavor.describe()
    assert "repeats" not in Flavor().describe()
    assert "duplicates" not in str(Flavor())
    assert Flavor(duplicates="count").metric_name == "ndcg_linear_duplicates_count"


def test_ties_by_ascending_id() -> None:
    arguments: dict[str, Any] = {"y_true": [0, 1], "y_score": [1, 1], "group": [2], "doc_id": ["d2", "d10"]}
    assert ndcg_score(**arguments, flavor="sentence_transformers") == 1.0  # "d10" < "d2"
    assert ndcg_score(**arguments, flavor="trec_eval") == pytest.approx(LOG3)
    run = {"q": {"d2": 1.0, "d10": 1.0}}
    assert evaluate_run({"q": {"d10": 1}}, run, flavor="sentence_transformers", k=1).value == 1.0


def test_labels_are_not_checked_against_the_scale_under_a_binary_gain() -> None:
    ratings, retrieved = [5, 3, 0, 4], [True, True, True, False]
    value = ndcg_score(ratings, [3, 1, 2, 0], group=[4], retrieved=retrieved, flavor="rectools", k=3)
    assert value == pytest.approx((1 + 1 / 2) / IDEAL_OF_3)
    assert ndcg_score([1], [1], group=[1], flavor="rectools", k=10) == pytest.approx(0.220, abs=5e-4)
    assert "is an error" not in Flavor.preset("rectools").describe().split("\n")[1]
