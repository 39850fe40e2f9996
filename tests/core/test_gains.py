"""Values of gains, discounts and the maximal ideal, up to the limits of float64."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest

from ndcg_ml import Flavor, ndcg_score, prepare
from ndcg_ml._core import gains_and_discounts as gains
from ndcg_ml._core.query_groups import group_by_sizes


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


def test_a_grade_far_below_zero_has_the_exponential_gain_of_minus_one() -> None:
    assert of_labels(Flavor(gain="exponential", negative="allow"), [-1e300, 2.0]) == [-1.0, 3.0]


def test_exponential_gains_are_right_to_the_last_bits() -> None:
    grades = np.linspace(0.01, 4, 400)
    found = of_labels(Flavor(gain="exponential"), grades.tolist())
    with localcontext() as context:
        context.prec = 40
        for grade, gain in zip(grades.tolist(), found, strict=True):
            exact = Decimal(2) ** Decimal(grade) - 1
            assert abs(Decimal(gain) / exact - 1) < 2.3 * 2.0**-53


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


def test_a_perfect_ranking_is_one_whatever_its_rounding_errors() -> None:
    for ratio, value in ((1 + 1e-13, 1.0), (1 - 1e-13, 1 - 1e-13), (1 + 1e-12, 1 + 1e-12), (1.0, 1.0)):
        for aggregate in ("macro", "micro"):
            assert one_query(ratio, 1.0).values(Flavor(aggregate=aggregate)) == [value]


def test_an_ideal_may_be_arbitrarily_small() -> None:
    ndcg, empty = one_query(1e300, 1e-300).ndcg(Flavor())
    assert (ndcg.tolist(), empty.tolist()) == ([[math.inf]], [[False]])


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
