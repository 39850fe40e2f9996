"""Gains, discounts and the maximal ideal as numbers, at both ends of float64."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest

from ndcg_ml import Flavor, evaluate, ndcg_score
from ndcg_ml._data.queries import by_sizes
from ndcg_ml._kernel import gains


@pytest.mark.parametrize("discount", ["log2", "ln", "reciprocal", "jarvelin", "none"])
def test_there_are_as_many_discounts_as_ranks(discount: str) -> None:
    for depth in (1, 2, 5):
        assert gains.discounts(Flavor(discount=discount), depth).shape == (depth,)


def test_a_callable_discount_is_asked_for_each_rank_once() -> None:
    asked = []

    def inverse(rank: int) -> float:
        asked.append(rank)
        return 1 / rank

    assert gains.discounts(Flavor(discount=inverse), 4).tolist() == [1, 1 / 2, 1 / 3, 1 / 4]
    assert asked == [1, 2, 3, 4]
    assert {type(rank) for rank in asked} == {int}


def relative(flavor: Flavor, labels: list[float]) -> tuple[list[float], Any]:
    graded = gains.grade(flavor, np.array(labels), by_sizes([len(labels)], len(labels)))
    return graded.gains.tolist(), graded.exponent


@pytest.mark.parametrize("labels", [[0.0, 1.0, 3.0], [0.5, 0.0, 2.25], [0.0, 0.0], [1e-9, 1e9]])
def test_gains_of_ordinary_size_are_left_as_they_are(labels: list[float]) -> None:
    assert relative(Flavor(negative="allow"), labels) == (labels, None)
    assert relative(Flavor(negative="allow"), [-y for y in labels]) == ([-y for y in labels], None)


def test_whole_grades_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    formula = gains.gain
    monkeypatch.setattr(gains, "gain", lambda flavor, y: sizes.append(y.size) or formula(flavor, y))
    labels = [float(grade) for grade in (4, 0, 2, 1, 3) * 20]
    assert relative(Flavor(gain="exponential"), labels) == ([2**y - 1 for y in labels], None)
    assert sizes == [5]


def test_gains_below_the_least_normal_number_keep_their_ratio() -> None:
    least = 5e-324
    for unit in (least, 2.0**-1050, 2.0**-600):
        value = ndcg_score([3 * unit, unit, 2 * unit], [1, 3, 2], group=[3])
        assert value == pytest.approx(ndcg_score([3, 1, 2], [1, 3, 2], group=[3]), rel=1e-15)
    assert evaluate([least, 0], [2, 1], group=[2]).per_query.idcg.tolist() == [least]
    assert math.isfinite(least)


def test_a_grade_far_below_zero_has_the_exponential_gain_of_minus_one() -> None:
    assert relative(Flavor(gain="exponential", negative="allow"), [-1e300, 2.0]) == ([-1.0, 3.0], None)


def test_exponential_gains_are_right_to_the_last_bits() -> None:
    grades = np.linspace(0.01, 4, 400)
    gains, _ = relative(Flavor(gain="exponential"), grades.tolist())
    with localcontext() as context:
        context.prec = 40
        for grade, gain in zip(grades.tolist(), gains, strict=True):
            exact = Decimal(2) ** Decimal(grade) - 1
            assert abs(Decimal(gain) / exact - 1) < 2.3 * 2.0**-53


def test_gains_of_which_the_sum_alone_is_too_large_keep_their_ratio() -> None:
    discounts = 1 / np.log2(np.arange(2, 7))
    value = ndcg_score([0, *[8e307] * 4], [5, 4, 3, 2, 1], group=[5])
    assert value == pytest.approx(discounts[1:].sum() / discounts[:4].sum(), rel=1e-14)


def doubled(grade: float) -> float:
    return 2 * grade


@pytest.mark.parametrize(
    ("gain", "top", "gain_of_top"),
    [
        ("linear", 2.5, 2.5),
        ("exponential", 2.0, 3.0),
        ("exponential", 0.5, math.sqrt(2) - 1),
        ("binary", 2.0, 1.0),
        ("binary", 0.0, 0.0),
        ("judged", 0.0, 1.0),
        ((0, 3, 8), 2.0, 8.0),
        (doubled, 3.0, 6.0),
    ],
)
def test_the_maximal_ideal_has_the_gain_of_the_top_grade(gain: Any, top: float, gain_of_top: float) -> None:
    flavor = Flavor(gain=gain, ideal="max", max_grade=top, k=2)
    ideal = evaluate([0.0, 0.0], [1, 2], group=[2], flavor=flavor).per_query.idcg
    assert ideal == pytest.approx([gain_of_top * (1 + 1 / math.log2(3))], rel=1e-14)


@pytest.mark.parametrize(
    ("labels", "top"), [([1e308, 5e307], 1.5e308), ([2.0**499, 0.0], 1.5e308), ([3e-200, 1e-200], 4e-200)]
)
@pytest.mark.parametrize("gain", ["linear", doubled], ids=["linear", "callable"])
def test_the_maximal_ideal_is_on_the_scale_of_the_gains(labels: list[float], top: float, gain: Any) -> None:
    if gain is doubled:
        labels, top = [y / 2 for y in labels], top / 2
    flavor = Flavor(gain=gain, ideal="max", max_grade=top, k=2)
    third = 1 / math.log2(3)
    expected = (labels[0] / top + labels[1] / top * third) / (1 + third)
    assert ndcg_score(labels, [2, 1], group=[2], flavor=flavor) == pytest.approx(expected, rel=1e-14)


def inverse_of_distance_to_four(grade: float) -> float:
    return math.inf if grade == 4 else 1 / (4 - grade)


def test_a_callable_gain_that_fails_at_the_top_grade_is_named() -> None:
    flavor = Flavor(gain=inverse_of_distance_to_four, ideal="max", max_grade=4)
    with pytest.raises(
        ValueError, match=r"Flavor\.gain as a callable must return a finite number; gain\(4\.0\) is inf"
    ):
        ndcg_score([1, 2], [1, 2], group=[2], flavor=flavor)


def test_large_negative_gains_do_not_overflow() -> None:
    flavor = Flavor(negative="allow", k=2)
    value = ndcg_score([-1.5e308, -1.5e308, 1e100, 1e100], [4, 3, 2, 1], group=[4], flavor=flavor)
    assert value == pytest.approx(-1.5e208, rel=1e-14)


def test_the_binary_logarithm_of_jarvelin_is_exact_at_powers_of_two() -> None:
    discounts = gains.discounts(Flavor(discount="jarvelin"), 1 << 15)
    for power in range(1, 16):
        assert discounts[(1 << power) - 1] == 1 / power
    assert (discounts[1:] == 1 / np.log2(np.arange(2, (1 << 15) + 1))).all()
