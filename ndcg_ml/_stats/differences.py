"""Differences between systems: the test, the interval that agrees with it, the verdict, what more queries show."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._data.arrays import FloatArray
from ndcg_ml._stats.clusters import by_cluster, effective_queries
from ndcg_ml._stats.means import SAME, Interval, Means, Method, Spread, minus, spread_of
from ndcg_ml._stats.quantiles import t_quantile, t_tail
from ndcg_ml._stats.randomisation import exchange_tests, queries_needed, smallest_detectable
from ndcg_ml._stats.seeds import CrossedError, crossed_error
from ndcg_ml._stats.simultaneous import max_t
from ndcg_ml._stats.verdict import Verdict, verdict

Correction: TypeAlias = Literal["max-t", "holm", "none"]
DifferenceMethod: TypeAlias = Literal["test", "t", "bca", "percentile"]
Pairs: TypeAlias = Sequence[tuple[int, int]]

_SKEWED, _FEW = 2.0, 100
# Draws that one test may take: some hundred megabytes.
_MOST_DRAWS = 2_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """Two systems on the same queries.

    Attributes
    ----------
    a, b : str
        Their names.
    difference : float
        The value of b minus that of a.
    interval : Interval
        Interval of the difference. With a correction the intervals of all pairs hold together.
    standard_error : float
        Standard error of the difference.
    p_value : float
        Two-sided p-value of the randomisation test that exchanges the two systems query by query; of several runs per
        system, of a t test over queries and runs.
    p_adjusted : float
        The p-value, corrected for the number of pairs that are compared.
    verdict : {"better", "worse", "not worse", "equivalent", "undecided"}
        What the interval says about b, seen from a: better, all of it above 0; worse, all of it below 0. With a margin
        also equivalent, all of it within the margin on both sides (be it above or below 0), and not worse, all of it
        above -margin.
    exact : bool
        Whether the test enumerated every exchange, rather than drew some.
    wins, ties, losses : int
        Queries in which b is above a, equal to 1e-12, and below it.
    skewness : float
        Skewness of the queries' differences.
    level : float
        The level of the two-sided test of this pair by itself at which the corrected one decides.
    dof : float
        Degrees of freedom of the standard error.
    effective_queries : float or None
        How many independent queries would leave the difference as uncertain as these clustered ones do; None without
        clusters.
    """

    a: str
    b: str
    difference: float
    interval: Interval
    standard_error: float
    p_value: float
    p_adjusted: float
    verdict: Verdict
    exact: bool
    wins: int
    ties: int
    losses: int
    skewness: float
    level: float
    dof: float
    effective_queries: float | None = None

    @property
    def effect_size(self) -> float:
        """Cohen's d_z: the difference over the standard deviation of the queries' differences.

        Infinite, where all queries differ by the same; 0, where none differs.
        """
        deviation = self._deviation
        if deviation == 0:
            return 0.0 if self.difference == 0 else float(np.copysign(np.inf, self.difference))
        return self.difference / deviation

    @property
    def significant(self) -> bool:
        """Whether chance makes such a difference in at most 1 - confidence of cases, after the correction."""
        return self.p_adjusted <= (1 - self.interval.confidence) * (1 + SAME)

    def queries_needed(self, difference: float, power: float = 0.8) -> int:
        """How many queries it takes to see a difference of a given size.

        Parameters
        ----------
        difference : float
            The true difference that matters. Not the observed one: where that is the one significant pair of a pilot,
            it is too large, and a study planned on it finds the truth in far fewer cases than `power` says.
        power : float, default 0.8
            The chance of seeing it, at the level that decides this pair, with its correction.

        Returns
        -------
        int
            At least as many as the test needs to reach its level, 6 at 5 %. Queries are taken to vary as these do.

        Raises
        ------
        TypeError, ValueError
            The difference is 0 or no finite number, or so small that float64 has no number of queries for it; the
            power is not between 0 and 1.

        Notes
        -----
            n = ((z + z_power) deviation / difference)^2 + z^2 / 2

        with z the normal quantile of 1 - level/2, z_power that of the power, and the standard deviation of the
        queries' differences. The last term makes up for not knowing it: W. Guenther, Sample size formulas for normal
        theory t tests, The American Statistician 35(4), 1981.
        """
        return queries_needed(self._deviation, difference, power, 1 - self.level)

    def smallest_detectable(self, power: float = 0.8) -> float:
        """The smallest true difference that as many queries as these show with this chance.

        Parameters
        ----------
        power : float, default 0.8
            The chance of a verdict "better" where b is better by so much.

        Returns
        -------
        float
            In units of the value. Queries are taken to vary as these do.

        Notes
        -----
            (t (1 - 1/(4 dof)) + z_power sqrt(1 + t^2/(2 dof))) standard_error

        with t the critical value of the test that decides: the normal approximation of the noncentral t distribution
        (M. Abramowitz and I. Stegun, Handbook of Mathematical Functions, 26.7.10).
        """
        return smallest_detectable(self.standard_error, self.dof, power, 1 - self.level)

    @property
    def _deviation(self) -> float:
        return self.standard_error * float(np.sqrt(self.interval.n_queries))

    @property
    def _is_skewed(self) -> bool:
        return abs(self.skewness) >= _SKEWED and self.interval.n_queries < _FEW


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """How differences are tested.

    Attributes
    ----------
    confidence : float
        Confidence of all intervals together.
    method : {"test", "t", "bca", "percentile"}
    correction : {"max-t", "holm", "none"}
    margin : float or None
    n_resamples : int
    n_families : int
        The level is shared among so many families of pairs, such as segments.
    """

    confidence: float
    method: DifferenceMethod
    correction: Correction
    margin: float | None
    n_resamples: int
    n_families: int = 1

    def __post_init__(self) -> None:
        if 2 / self.level > _MOST_DRAWS:
            raise ValueError(
                f"confidence must be at most {1 - 2 * self.n_families / _MOST_DRAWS:.7g} here, because a test at a "
                f"smaller level takes more than {_MOST_DRAWS} draws; got {self.confidence!r}."
            )

    @property
    def level(self) -> float:
        """The level of the family of pairs."""
        return (1 - self.confidence) / self.n_families

    def n_draws(self, n_pairs: int) -> int:
        """As many draws as asked for, or as the family needs for a p-value that can decide."""
        n_tests = n_pairs if self.correction == "holm" else 1
        return max(self.n_resamples, math.ceil(2 * n_tests / self.level))


@dataclass(frozen=True, slots=True)
class _Decision:
    """The test of one pair, and its interval."""

    p_value: float
    p_adjusted: float
    level: float
    low: float
    high: float
    exact: bool = False


def differences(
    names: Sequence[str],
    means: Means,
    pairs: Pairs,
    settings: Settings,
    rng: np.random.Generator,
    *,
    clusters: NDArray[np.int64] | None = None,
    runs: Sequence[FloatArray] | None = None,
) -> list[Difference]:
    """The differences of pairs of systems.

    Parameters
    ----------
    names : sequence of str
    means : Means
        A column per system; of several runs, their mean.
    pairs : sequence of (int, int)
        Columns a and b: the differences are b - a.
    settings : Settings
    rng : Generator
    clusters : ndarray of int, shape (n_queries,), optional
        The cluster of each query.
    runs : sequence of ndarray, optional
        The value of every run, for each system.
    """
    # Clusters, not queries, are exchanged and resampled: each becomes one row that weighs as its queries do.
    grouped = means if clusters is None else by_cluster(means, clusters)
    units = grouped.linear()
    n_units = units.n_queries
    n_draws = settings.n_draws(len(pairs))
    # Every pair's mean difference and standard error come from the spreads of the systems, which are computed once.
    several = len(pairs) > 1 and settings.correction == "max-t"
    bootstrap = settings.n_resamples if settings.method in ("bca", "percentile") and runs is None else None
    spreads = spread_of(grouped, bootstrap, rng)
    gaps = [minus(spreads[b], spreads[a]) for a, b in pairs]
    errors = [0.0 if gap.is_constant else gap.standard_error for gap in gaps]
    dofs = [float(n_units - 1)] * len(pairs)
    method: Method | Literal["test", "max-t", "crossed"] = settings.method

    # Each branch gives p-values and the limits that agree with them. Runs are drawn by training as well as queries by
    # chance; several pairs share one critical value; otherwise each pair has its own test.
    if runs is not None:
        crossed = [crossed_error(error, n_units, runs[a], runs[b]) for error, (a, b) in zip(errors, pairs, strict=True)]
        errors, dofs = [error.standard_error for error in crossed], [error.dof for error in crossed]
        decisions, method = _over_runs(gaps, crossed, settings), "crossed"
    elif several:
        decisions = _together(units, pairs, gaps, errors, n_draws, settings, rng)
        method = "max-t" if settings.method == "test" else settings.method
    else:
        decisions = _one_by_one(units, pairs, n_draws, settings, rng)
    effective = None if clusters is None else _effective(means, units, pairs)

    # The caller's method replaces the limits of the test, at the level that the correction leaves the pair.
    result = []
    for at, ((a, b), decision, gap) in enumerate(zip(pairs, decisions, gaps, strict=True)):
        low, high = decision.low, decision.high
        if runs is None and settings.method != "test":
            by_method = gap.interval(1 - decision.level, settings.method)
            low, high = by_method.low, by_method.high
        if gap.is_constant and runs is None and math.isfinite(high - low):
            low = high = gap.value  # equal differences leave rounding errors in the limits
        draws_nothing = runs is not None or settings.method == "t"
        interval = Interval(
            value=gap.value,
            low=low,
            high=high,
            confidence=settings.confidence,
            method=method,
            n_queries=means.n_queries,
            n_resamples=None if draws_nothing else bootstrap or n_draws,
        )
        # Wins and losses count queries, also where clusters are what chance draws.
        apart = means.values[:, b] - means.values[:, a]
        wins, losses = int((apart > SAME).sum()), int((apart < -SAME).sum())
        result.append(
            Difference(
                a=names[a],
                b=names[b],
                difference=gap.value,
                interval=interval,
                standard_error=errors[at],
                p_value=decision.p_value,
                p_adjusted=min(1.0, settings.n_families * decision.p_adjusted),
                verdict=verdict(low, high, n_units, settings.margin),
                exact=decision.exact,
                wins=wins,
                ties=means.n_queries - wins - losses,
                losses=losses,
                skewness=_skewness(units.values[:, b] - units.values[:, a]),
                level=decision.level,
                dof=dofs[at],
                effective_queries=None if effective is None else effective[at],
            )
        )
    return result


def _together(
    units: Means,
    pairs: Pairs,
    gaps: Sequence[Spread],
    errors: Sequence[float],
    n_draws: int,
    settings: Settings,
    rng: np.random.Generator,
) -> list[_Decision]:
    """All pairs by one critical value of the largest |t|."""
    tests = exchange_tests(units, pairs, n_draws, rng)
    chance = max_t(units, pairs, n_draws, rng)
    critical = chance.critical(settings.level)
    decisions = []
    for test, gap, error in zip(tests, gaps, errors, strict=True):
        if error > 0:
            t, reach = abs(gap.value) / error, critical * error
        else:  # every query differs by the same
            t, reach = (math.inf if abs(gap.value) > SAME else 0.0), 0.0
        p_adjusted = max(chance.p_value(t), test.p_value)
        low, high = gap.value - reach, gap.value + reach
        if p_adjusted > settings.level * (1 + SAME):  # rounding must not make the two disagree
            low, high = min(low, 0.0), max(high, 0.0)
        level = t_tail(critical, units.n_queries - 1) if math.isfinite(critical) else settings.level / len(pairs)
        decisions.append(_Decision(test.p_value, p_adjusted, level, low, high, test.exact))
    return decisions


def _one_by_one(
    units: Means, pairs: Pairs, n_draws: int, settings: Settings, rng: np.random.Generator
) -> list[_Decision]:
    """Each pair by its own test, at the level that the correction leaves it."""
    again = copy.deepcopy(rng)
    levels = [settings.level] * len(pairs)
    if len(pairs) > 1 and settings.correction == "holm":
        p_values = [test.p_value for test in exchange_tests(units, pairs, n_draws, rng)]
        levels = levels_of_holm(p_values, settings.level)
    tests = exchange_tests(units, pairs, n_draws, again, levels)
    p_values = [test.p_value for test in tests]
    adjusted = holm(p_values) if settings.correction == "holm" else p_values
    return [
        _Decision(test.p_value, p, level, test.low, test.high, test.exact)
        for test, p, level in zip(tests, adjusted, levels, strict=True)
    ]


def _over_runs(gaps: Sequence[Spread], errors: Sequence[CrossedError], settings: Settings) -> list[_Decision]:
    """Each pair by a t test over queries and runs; for several pairs with Bonferroni's correction, or Holm's."""
    p_values = [error.p_value(gap.value) for gap, error in zip(gaps, errors, strict=True)]
    m = len(gaps)
    if settings.correction == "holm":
        levels, adjusted = levels_of_holm(p_values, settings.level), holm(p_values)
    elif settings.correction == "max-t":
        levels, adjusted = [settings.level / m] * m, [min(1.0, m * p) for p in p_values]
    else:
        levels, adjusted = [settings.level] * m, p_values
    decisions = []
    for gap, error, p, p_adjusted, level in zip(gaps, errors, p_values, adjusted, levels, strict=True):
        reach = t_quantile(1 - level, error.dof) * error.standard_error
        decisions.append(_Decision(p, p_adjusted, level, gap.value - reach, gap.value + reach))
    return decisions


def _effective(means: Means, clusters: Means, pairs: Pairs) -> list[float]:
    """The effective number of queries of each difference."""

    def column(of: Means) -> Means:
        of = of.linear()
        values = np.stack([of.values[:, b] - of.values[:, a] for a, b in pairs], axis=1)
        return Means(values, np.broadcast_to(of.weight[:, :1], values.shape))

    effective: list[float] = effective_queries(column(means), column(clusters)).tolist()
    return effective


def _skewness(values: FloatArray) -> float:
    centred = values - values.mean()
    deviation = float(np.sqrt((centred**2).mean()))
    return float((centred**3).mean()) / deviation**3 if deviation > SAME else 0.0


# -- Holm's correction ----------------------------------------------------------------------------------------------


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values corrected for their number, by Holm's step-down procedure; at most 1."""
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        corrected[i] = largest
    return corrected


def levels_of_holm(p_values: Sequence[float], level: float) -> list[float]:
    """The level at which Holm's procedure decides each test: p is at most this if and only if it is refused."""
    n = len(p_values)
    levels = [0.0] * n
    order = sorted(range(n), key=p_values.__getitem__)
    refused = 0
    while refused < n and (n - refused) * p_values[order[refused]] <= level:
        levels[order[refused]] = level / (n - refused)
        refused += 1
    for i in order[refused:]:  # the test at which the procedure stopped, and those with a larger p
        levels[i] = level / (n - refused)
    return levels
