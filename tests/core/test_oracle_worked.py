"""Values computed by hand equal those of the oracle, of ranked lists and of scores."""

from __future__ import annotations

import math

import pytest
from oracle import Document, oracle

from ndcg_ml import Flavor, evaluate_ranked, ndcg_score

pytestmark = pytest.mark.usefixtures("kernel")

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


@pytest.mark.parametrize("ideal", IDEALS)
@pytest.mark.parametrize("ties", ["average", "first", "last", "best", "worst"])
def test_the_four_ideals(ideal: str, ties: str) -> None:
    flavor = Flavor(discount="reciprocal", ideal=ideal, k=2, ties=ties, max_grade=1)
    for way, value in every_way(flavor, RANKED, JUDGED).items():
        assert value == pytest.approx(IDEALS[ideal], abs=1e-15), way
        assert value == pytest.approx(PRINTED[ideal], abs=1e-6), way


@pytest.mark.parametrize(("ranked", "judged", "dcg", "printed"), BURGES)
def test_exponential_gain_and_log2(ranked: list[int], judged: list[int], dcg: float, printed: float) -> None:
    ideal = log2_dcg(exponential(judged))
    assert dcg == pytest.approx(log2_dcg(exponential(ranked)))
    for way, value in every_way(Flavor(gain="exponential"), ranked, judged).items():  # type: ignore[arg-type]
        assert value == pytest.approx(dcg / ideal, abs=1e-15), way
        assert value == pytest.approx(printed, abs=1e-15), way


def test_the_natural_logarithm_cancels() -> None:
    for ranked, judged, _, printed in BURGES:
        for value in every_way(Flavor(gain="exponential", discount="ln"), ranked, judged).values():  # type: ignore[arg-type]
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


def test_the_oracle_finds_empty_queries() -> None:
    for empty in (0.0, 1.0, "skip", "raise"):
        assert oracle(Flavor(empty=empty), [Document(0.0, 1.0)]).ndcg == empty
        assert tuple(oracle(Flavor(empty=empty), [])) == (empty, 0.0, 0.0)
    assert oracle(Flavor(ideal="max", max_grade=3, k=2), []).empty
    assert oracle(Flavor(ideal="max", max_grade=3, k=2), [Document(0.0, 1.0)]).ndcg == 0.0


def test_the_oracle_recall_depth_keeps_whole_runs_and_averages_the_run_at_the_cut() -> None:
    rows = [Document(g, s) for g, s in [(3, 2), (1, 2), (2, 1), (0, 1)]]
    top = oracle(Flavor(ideal="recall", recall_depth=2, discount="none", k=1), rows)
    assert top.idcg == 3.0
    cut = oracle(Flavor(ideal="recall", recall_depth=3, discount="none"), rows)
    assert cut.idcg == 3 + 1 + (2 + 0) / 2
    within = oracle(Flavor(ideal="recall", recall_depth=1, discount="none"), rows)
    assert within.idcg == (3 + 1) / 2
