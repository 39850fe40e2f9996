"""Differences between systems: the test, the interval that agrees with it, the verdict, and planning."""

from __future__ import annotations

import copy
import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.layout import FloatArray
from ndcg_ml._plain.table import Column
from ndcg_ml._statistics.distributions import beta_cdf, beta_quantile, normal_quantile, t_quantile, t_tail
from ndcg_ml._statistics.intervals import FEWEST_FOR_TEST, aggregate_clusters, effective_queries
from ndcg_ml._statistics.means import SAME, Interval, Means, n_equal, skewness
from ndcg_ml._statistics.p_values_and_sample_sizes import (
    Case,
    changed_cases,
    exchange_tests,
    max_t,
    queries_needed,
    smallest_detectable,
)
from ndcg_ml._statistics.verdict import Verdict, verdict

Pairs: TypeAlias = Sequence[tuple[int, int]]

# Notes mention a larger skewness unless there are many queries: the error of a tail is about skewness / sqrt(n).
_SKEWED = 2.0
# Limit of the draws of one test, which need several hundred megabytes.
_MOST_DRAWS = 2_000_000


_MEASURES = (
    *("standard_error", "p_value", "p_adjusted", "verdict", "exact", "n_changed", "wins", "ties", "losses"),
    *("changed_at_most", "widened", "unseen", "effect_size", "skewness", "effective_queries"),
)
# Probability of a sample without any query of the share `unseen`.
_MISSED = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """The difference of two systems on the same queries.

    Attributes
    ----------
    a, b : str
        Names of the systems.
    difference : float
        The value of b minus that of a.
    interval : Interval
        Interval of the difference. If there are several pairs, their intervals are simultaneous.
    standard_error : float
        Standard error of the difference.
    p_value : float
        Two-sided p-value of the randomisation test, which exchanges the two systems query by query. With several runs
        per system, that of a t test over queries and runs. If few queries changed, it is raised so that it agrees with
        the widened interval.
    p_adjusted : float
        The p-value, corrected for the number of compared pairs.
    verdict : {"better", "worse", "not worse", "equivalent", "unchanged", "undecided"}
        The verdict on b: better if the interval is above 0, worse if it is below 0. With a margin also not worse if the
        interval is above -margin, and equivalent, which takes precedence, if it is between -margin and margin.
        Unchanged if no query has a different value, also under the labels of a model that were corrected.
    exact : bool
        Whether the test enumerated all exchanges instead of drawing some.
    wins, ties, losses : int
        Number of queries in which b is above, equal to (within 1e-12), and below a.
    changed_at_most : float or None
        Upper confidence limit of the share of queries that change; None if all queries changed, or systems have several
        runs. Changes below a fifth of the largest one count in proportion to their size.
    widened : bool
        Whether the interval is wider because few queries changed: see ``compare``.
    unseen : float
        Largest share of the population's queries (95 %) whose loss this sample may not show: 1 - .05^(1/n), because
        queries with this share are all missing from n draws in 5 % of samples. n counts the queries, or the clusters,
        or under unequal weights the effective sample size 1 / sum of squared shares.
    skewness : float
        Skewness of the queries' differences.
    level : float
        The level of the test of this pair alone that corresponds to the corrected test.
    effective_queries : float or None
        Effective sample size: independent queries of equal weight with the same standard error; None if queries are
        independent and have equal weights.
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
    changed_at_most: float | None
    widened: bool
    unseen: float
    skewness: float
    level: float
    effective_queries: float | None = None
    _dof: float | None = None
    """Degrees of freedom of the standard error; None for a test that exchanges systems."""
    _few: FewChanged | None = None
    """None with several runs per system."""

    @property
    def n_changed(self) -> int:
        """Number of queries with a different value."""
        return self.wins + self.losses

    @property
    def effect_size(self) -> float:
        """Cohen's d_z: the difference over the standard deviation of the queries' differences.

        Infinite if all queries have the same difference, and 0 if no query differs.
        """
        deviation = self._deviation
        if deviation == 0:
            return 0.0 if self.difference == 0 else float(np.copysign(np.inf, self.difference))
        return self.difference / deviation

    @property
    def significant(self) -> bool:
        """Whether the adjusted p-value is at most 1 - confidence."""
        return self.p_adjusted <= (1 - self.interval.confidence) * (1 + SAME)

    def _row(self) -> dict[str, Any]:
        """Return the values for tables, frames and JSON."""
        return {
            "a": self.a,
            "b": self.b,
            "difference": self.difference,
            "low": self.interval.low,
            "high": self.interval.high,
            **{name: getattr(self, name) for name in _MEASURES},
            "smallest_detectable": self.smallest_detectable(),
        }

    @staticmethod
    def _seen_by(unseen: float) -> float:
        """Return the number of queries or clusters with which a loss in this share of all may be unseen."""
        return math.log(_MISSED) / math.log1p(-unseen)

    def queries_needed(self, difference: float, power: float = 0.8) -> int:
        """Return the number of queries needed to detect a difference of this size.

        Parameters
        ----------
        difference : float
            The smallest true difference that matters. Do not pass the difference of a pilot study because it was
            significant: it is likely to be too large, and the study then has less power than planned.
        power : float, default 0.8
            The probability of detecting the difference, at the corrected level of this pair.

        Returns
        -------
        int
            At least the number with which the test can reject, 6 at 5 %. The variance of these queries is assumed.

        Raises
        ------
        TypeError, ValueError
            The difference is 0, not finite, or so small that the number of queries exceeds float64, or the power is not
            between 0 and 1.

        Notes
        -----
            n = ((z + z_power) deviation / difference)^2 + z^2 / 2

        where z is the normal quantile of 1 - level/2, z_power that of the power, and the deviation the standard
        deviation of the queries' differences. The last term allows for estimating it: W. Guenther, Sample size formulas
        for normal theory t tests, The American Statistician 35(4), 1981.
        """
        return queries_needed(self._deviation, difference, power, 1 - self.level)

    def smallest_detectable(self, power: float = 0.8) -> float:
        """Return the smallest true difference that this number of queries detects.

        Parameters
        ----------
        power : float, default 0.8
            The probability of the verdict "better" if b is better by this difference.

        Returns
        -------
        float
            In units of the value. The variance of these queries is assumed, and that other samples have as large a
            share of changed queries. Infinite if so few changed that no difference has this power.

        Notes
        -----
        The power is the mean, over the numbers m of queries that may change in such a sample (a binomial variable), of
        the probability that Student's t with m - 1 degrees of freedom is above its critical value: the normal
        approximation of its noncentral distribution (M. Abramowitz and I. Stegun, Handbook of Mathematical Functions,
        26.7.10). With m changed queries, the test by exchanges has no p-value below 2^(1 - m).
        """
        if self._few is not None and self._dof is None:
            return smallest_detectable(
                self.standard_error, power, changed_cases(self._few.n, self._few.differing, self.level)
            )
        # People's labels of a sample that did not change show no variance.
        is_unknown = self.interval.method == "corrected" and not self.n_changed
        level = 0.0 if is_unknown else self.level
        return smallest_detectable(self.standard_error, power, [Case(1.0, self._dof or 1.0, 1.0, level)])

    def _queries_to_pass(self, margin: float, power: float = 0.8) -> int:
        """Return the number of queries with which b is "not worse" with this probability if it equals a."""
        if self._few is None:
            return self.queries_needed(margin, power)
        units = self._few.needed_to_pass(margin, power, self.level)
        return math.ceil(units * self.interval.n_queries / self._few.n * (1 - SAME))

    @property
    def _deviation(self) -> float:
        return self.standard_error * float(np.sqrt(self.interval.n_queries))

    @property
    def _is_skewed(self) -> bool:
        return abs(self.skewness) >= max(_SKEWED, math.sqrt(self.interval.n_queries) / 5)


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """Settings of the tests of differences.

    Attributes
    ----------
    confidence : float
        Simultaneous confidence of all intervals.
    margin : float or None
    n_resamples : int
    n_families : int
        Number of families of pairs, such as slices, among which the level is divided.
    """

    confidence: float
    margin: float | None
    n_resamples: int
    n_families: int = 1

    def __post_init__(self) -> None:
        if 2 / self.level > _MOST_DRAWS * (1 + 1e-9):  # allow for rounding of the level in the message
            raise ValueError(
                f"confidence must be at most {1 - 2 * self.n_families / _MOST_DRAWS:.7g} here, because a test at a "
                f"smaller level takes more than {_MOST_DRAWS} draws; got {self.confidence!r}."
            )

    @property
    def level(self) -> float:
        """The level of the family of pairs."""
        return (1 - self.confidence) / self.n_families

    @property
    def n_draws(self) -> int:
        """The number of draws: `n_resamples`, or more if the level of the family needs them."""
        return max(self.n_resamples, math.ceil(2 / self.level))


# -- few changed queries ----------------------------------------------------------------------------------------------

# A change counts in full from this share of the largest one on, so that changes of no size decide nothing.
_FULL = 0.2
# Divisor of the level: the largest change and the limit of the mean change are estimates, too.
_TAILS = 4
# Confidence of the interval of the mean change.
_MEAN_CONFIDENCE = 0.95
# A smaller share of weight is rounding.
_NOTHING = 1e-9
MOST_QUERIES = 10**9
"""More queries are as good as all."""


@dataclass(frozen=True, slots=True)
class FewChanged:
    """The number of queries that changed, and what other queries may lose or gain.

    Notes
    -----
    Let m of n queries have changed, where a change below a fifth of the largest one counts in proportion to its size.
    The share of all queries that change may be as large as the upper limit p_U of a binomial share (C. Clopper and E.
    Pearson, Biometrika 26, 1934). An unseen change is taken to be the largest loss or gain among the changed queries,
    or the limit of the t interval of their mean change if that is smaller:

        low <= difference - (p_U - m / n) loss,    high >= difference + (p_U - m / n) gain

    That interval narrows as m grows, so the assumed change falls from the largest one to about the mean.

    Attributes
    ----------
    share : float
        Share of the weight that belongs to changed queries.
    n : float
        Effective sample size.
    loss, gain : float
        0 or above.
    largest, deviation : float
        The largest change, and the standard deviation of the differences around 0.
    n_equal : float
        Effective number of changed queries.
    differing : float
        Share of the weight that belongs to queries with a difference of any size.
    """

    share: float
    n: float
    loss: float
    gain: float
    largest: float = 0.0
    deviation: float = 0.0
    n_equal: float = 0.0
    differing: float = 0.0

    @classmethod
    def from_differences(
        cls, d: FloatArray, counts: FloatArray, share: FloatArray, largest: float | None
    ) -> FewChanged:
        """Summarise the difference of each query (or cluster), how far it counts as changed, and its share of the mean.

        If human labels of a sample correct a model's labels, `largest` is the largest change of a query under the
        model's labels. If fewer than six of the sample changed, which do not show a direction, the loss and the gain
        are both the largest change, or `largest` if none changed.
        """
        changed, n, worst = float(share @ counts), n_equal(share), float(np.abs(d).max())
        if 1 - changed < _NOTHING:
            changed = 1.0
        if not changed:
            return cls(0.0, n, largest or 0.0, largest or 0.0)
        part = share * counts / changed
        mean = float(part @ d)
        m = n_equal(part)
        deviation = math.sqrt(float(share @ d**2) * d.size / (d.size - 1))
        loss, gain = max(0.0, float(-d.min())), max(0.0, float(d.max()))
        if largest is not None and changed * n <= FEWEST_FOR_TEST - 0.5:
            loss = gain = worst
        elif m > 1:
            error = math.sqrt(float(np.square(part * (d - mean)).sum()) * m / max(m - 1, 1e-9))
            reach = t_quantile(_MEAN_CONFIDENCE, max(1.0, m - 1)) * error
            loss, gain = min(loss, max(0.0, reach - mean)), min(gain, max(0.0, reach + mean))
        return cls(changed, n, loss, gain, worst, deviation, m, min(1.0, float(share[counts > 0].sum())))

    def needed_to_pass(self, margin: float, power: float, level: float) -> int:
        """Return the number of queries (or clusters) with which the low limit is above -margin with this probability.

        Notes
        -----
        The system is assumed to be equal, and the changes to be as frequent and as large as here. With N queries, the
        difference has the standard error e = deviation / sqrt(N) and is above -z e with the probability of the power.
        Both of its limits must then be above -margin: that of the test, t e below it, and that for unseen changes, of
        which the smaller one counts: the share (p_U - share) of the largest change, or of the limit of the mean change,
        whose distance from the mean change varies with the difference.
        """
        z = normal_quantile(power)

        def passes(n: int) -> bool:
            error = self.deviation / math.sqrt(n)
            if (t_quantile(1 - level, max(1, n - 1)) + z) * error > margin:
                return False
            unseen = replace(self, n=float(n)).share_at_most(level) - self.share
            if not self.share:
                return unseen * self.loss <= margin
            m = max(1.0, self.n_equal * n / self.n)
            of_change = self.deviation / math.sqrt(self.share * max(m - 1, 1e-9))
            reach = t_quantile(_MEAN_CONFIDENCE, max(1.0, m - 1)) * of_change
            of_mean = unseen * reach + z * error * (1 + unseen / self.share)
            return min(unseen * self.largest + z * error, of_mean) <= margin

        most = 4
        while most < MOST_QUERIES and not passes(most):
            most *= 2
        return most // 2 + bisect_left(range(most // 2, most), True, key=passes)

    def share_at_most(self, level: float) -> float:
        """Return the upper limit of the share of queries that change."""
        if not self.share:
            return float(1 - (level / 2) ** (1 / self.n))
        if self.share == 1:
            return 1.0
        m = self.share * self.n
        return beta_quantile(1 - level / _TAILS, m + 1, self.n - m)

    def p_value(self, difference: float) -> float:
        """Return the level at which the widened limits begin to exclude 0."""
        against = self.loss if difference > 0 else self.gain
        if not against or self.share == 1:
            return 0.0
        m = self.share * self.n
        share = min(1.0, self.share + abs(difference) / against)
        return min(1.0, _TAILS * beta_cdf(1 - share, self.n - m, m + 1))

    def widen(self, decision: Decision, family_level: float) -> Decision:
        """Widen the limits to allow for changes of other queries, and adjust the p-values accordingly."""
        difference, unseen = decision.difference, self.share_at_most(decision.level) - self.share
        low, high = difference - unseen * self.loss, difference + unseen * self.gain
        is_wider = low < decision.low if difference > 0 else high > decision.high
        p = self.p_value(difference) if is_wider else 0.0
        return replace(
            decision,
            low=min(decision.low, low),
            high=max(decision.high, high),
            p_value=max(decision.p_value, p),
            p_adjusted=max(decision.p_adjusted, min(1.0, p * family_level / decision.level)),
        )


# -- decide on each pair ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Decision:
    """The difference of one pair, its test, and the interval that agrees with the test.

    Attributes
    ----------
    difference, standard_error : float
    p_value, p_adjusted, level : float
        `level` is that of the test of this pair alone.
    low, high : float
    exact : bool
    dof : float or None
        Degrees of freedom of the standard error; None for a test that exchanges systems.
    effective_queries : float or None
        Effective sample size, if human labels correct those of a model.
    largest : float or None
        Largest difference of a query under the model's labels, if human labels correct them.
    """

    difference: float
    standard_error: float
    p_value: float
    p_adjusted: float
    level: float
    low: float
    high: float
    exact: bool = False
    dof: float | None = None
    effective_queries: float | None = None
    largest: float | None = None


def differences(
    names: Sequence[str],
    means: Means,
    pairs: Pairs,
    settings: Settings,
    rng: np.random.Generator,
    *,
    clusters: NDArray[np.int64] | None = None,
    runs: Sequence[FloatArray] | None = None,
    corrected: Sequence[Decision] | None = None,
    may_turn: Callable[[int, int, float], bool] | None = None,
) -> list[Difference]:
    """Return the differences of pairs of systems.

    Parameters
    ----------
    names : sequence of str
    means : Means
        One column per system; the mean of its runs if there are several.
    pairs : sequence of (int, int)
        Columns a and b. The differences are b - a.
    settings : Settings
    rng : Generator
    clusters : ndarray of int, shape (n_queries,), optional
        The cluster of each query.
    runs : sequence of ndarray, optional
        The value of every run, for each system.
    corrected : sequence of Decision, optional
        The decisions on the pairs, if `means` holds human labels that correct those of a model.
    may_turn : callable, optional
        Whether labels of unjudged documents could change the sign of the difference between two columns. Such a pair is
        undecided.
    """
    # Clusters are exchanged instead of queries. Each becomes one row with the weight of its queries.
    grouped = means if clusters is None else aggregate_clusters(means, clusters)
    units = grouped.linear()
    share, n_equals, values = units.share()[:, 0], grouped.n_effective(), grouped.mean()
    gaps = [
        _Gap(float(values[b] - values[a]), float(units.minus(a, b).standard_error()[0]), units.n_queries)
        for a, b in pairs
    ]

    # Each branch gives p-values and limits that agree with them. With several runs, queries and runs both vary. Several
    # pairs share one critical value. A single pair has its own test.
    decisions: Sequence[Decision]
    method: Literal["test", "max-t", "crossed", "corrected"]
    if corrected is not None:
        decisions, method = corrected, "corrected"
    elif runs is not None:
        decisions, method = _over_runs(pairs, gaps, runs, settings.level), "crossed"
    elif len(pairs) > 1:
        decisions, method = _decide_family(units, pairs, gaps, settings, rng), "max-t"
    else:
        decisions, method = [_decide_pair(units, pairs[0], gaps[0], settings, rng)], "test"
    if corrected is not None:
        effective = [decision.effective_queries for decision in corrected]
    elif clusters is not None:
        alone = means.linear()
        effective = [effective_queries(alone.minus(*pair), units.minus(*pair)) for pair in pairs]
    else:
        effective = [None if n == units.n_queries else n for n in (min(n_equals[a], n_equals[b]) for a, b in pairs)]

    result = []
    for (a, b), narrow, worth in zip(pairs, decisions, effective, strict=True):
        d, of_units = (each.values[:, b] - each.values[:, a] for each in (means, units))
        # Wins and losses count queries, even if clusters are the sampling units.
        wins, losses = int((d > SAME).sum()), int((d < -SAME).sum())
        few, decision = None, narrow
        if runs is None:
            few = FewChanged.from_differences(of_units, _counted(d, clusters), share, narrow.largest)
            decision = few.widen(narrow, settings.level)
        interval = Interval(
            value=decision.difference,
            low=decision.low,
            high=decision.high,
            confidence=settings.confidence,
            method=method,
            n_queries=means.n_queries,
        )
        result.append(
            Difference(
                a=names[a],
                b=names[b],
                difference=decision.difference,
                interval=interval,
                standard_error=decision.standard_error,
                p_value=decision.p_value,
                p_adjusted=min(1.0, settings.n_families * decision.p_adjusted),
                verdict=verdict(
                    decision.low,
                    decision.high,
                    units.n_queries,
                    settings.margin,
                    changed=wins + losses > 0 or decision.standard_error > SAME or (decision.largest or 0.0) > SAME,
                    settled=may_turn is None or not may_turn(a, b, decision.difference),
                ),
                exact=decision.exact,
                wins=wins,
                ties=means.n_queries - wins - losses,
                losses=losses,
                changed_at_most=None if few is None or few.share == 1 else few.share_at_most(decision.level),
                widened=(decision.low, decision.high) != (narrow.low, narrow.high),
                unseen=1 - _MISSED ** (1 / min(n_equals[a], n_equals[b])),
                skewness=skewness(of_units),
                level=decision.level,
                effective_queries=worth,
                _dof=decision.dof,
                _few=few,
            )
        )
    return result


class _Gap(NamedTuple):
    """The difference of two systems, its standard error, and the number of queries or clusters."""

    value: float
    error: float
    n: int


def _counted(d: FloatArray, clusters: NDArray[np.int64] | None) -> FloatArray:
    """Return how far each query or cluster counts as changed, from 0 to 1; a cluster as far as any of its queries."""
    size = np.where(np.abs(d) > SAME, np.abs(d), 0.0)
    counts: FloatArray = np.minimum(1.0, size / (_FULL * max(float(size.max()), SAME)))
    if clusters is None:
        return counts
    present, codes = np.unique(clusters, return_inverse=True)
    most = np.zeros(present.size)
    np.maximum.at(most, codes, counts)
    return most


def _decide_family(
    units: Means, pairs: Pairs, gaps: Sequence[_Gap], settings: Settings, rng: np.random.Generator
) -> list[Decision]:
    """Decide all pairs by one critical value of the largest |t|."""
    tests = exchange_tests(units, pairs, settings.n_draws, rng)
    chance = max_t(units, pairs, settings.n_draws, rng)
    critical = chance.critical(settings.level)
    level = t_tail(critical, units.n_queries - 1) if math.isfinite(critical) else settings.level / len(pairs)
    level = min(level, settings.level)  # few draws can give a smaller critical value than that of one pair
    decisions = []
    for test, gap in zip(tests, gaps, strict=True):
        value, error, _ = gap
        if error > 0:
            t, reach = abs(value) / error, critical * error
        else:  # every query differs by the same
            t, reach = (math.inf if abs(value) > SAME else 0.0), 0.0
        p_adjusted = max(chance.p_value(t), test.p_value)
        low, high = value - reach, value + reach
        if p_adjusted > settings.level * (1 + SAME):  # p and limits must agree, also for constant differences
            low, high = min(low, 0.0), max(high, 0.0)
        decisions.append(Decision(value, error, test.p_value, p_adjusted, level, low, high, test.exact))
    return decisions


def _decide_pair(
    units: Means, pair: tuple[int, int], gap: _Gap, settings: Settings, rng: np.random.Generator
) -> Decision:
    """Decide the only pair by its own test, which is inverted for the interval."""
    # The copy leaves the state of the generator as it is for the slices.
    [test] = exchange_tests(units, [pair], settings.n_draws, copy.deepcopy(rng), settings.level)
    (value, error, _), low, high = gap, test.low, test.high
    if not error and math.isfinite(high - low):  # all differences are equal, except for rounding
        low = high = value
    return Decision(value, error, test.p_value, test.p_value, settings.level, low, high, exact=test.exact)


def _over_runs(pairs: Pairs, gaps: Sequence[_Gap], runs: Sequence[FloatArray], level: float) -> list[Decision]:
    """Decide each pair by a t test over queries and runs, with Bonferroni's correction for several pairs.

    Queries and runs are crossed random effects. The variance is the sum of two parts: the variance over queries of the
    means over runs, and for each system the variance over runs of the means over queries, each divided by its number.
    The interaction of queries and runs is in both parts, so the error is conservative, as in the pigeonhole bootstrap
    (A. Owen, The pigeonhole bootstrap, Annals of Applied Statistics 1(2), 2007). Runs of different systems are
    independent (X. Bouthillier et al., Accounting for variance in machine learning benchmarks, MLSys 2021). Two runs
    hardly show how much they vary, so the variance over a system's runs is that of all systems, pooled, or its own if
    that is larger, with the degrees of freedom of all. Those of the sum are Satterthwaite's.
    """
    level, decisions = level / len(pairs), []
    dof_of_runs = sum(of_one.size - 1 for of_one in runs)
    own = [float(of_one.var(ddof=1)) for of_one in runs]
    pooled = math.fsum(variance * (of_one.size - 1) for variance, of_one in zip(own, runs, strict=True)) / dof_of_runs
    parts = [max(variance, pooled) / of_one.size for variance, of_one in zip(own, runs, strict=True)]
    for (a, b), (value, of_queries, n) in zip(pairs, gaps, strict=True):
        over_queries, over_runs = of_queries**2, parts[a] + parts[b]
        squares = over_queries**2 / (n - 1) + over_runs**2 / dof_of_runs
        variance = over_queries + over_runs
        dof = variance**2 / squares if squares > 0 else float(n - 1)
        error = math.sqrt(variance)
        t = abs(value) / error if error > 0 else math.inf
        p = 1.0 if abs(value) <= SAME else t_tail(t, dof)
        reach = t_quantile(1 - level, dof) * error
        limits = value - reach, value + reach
        decisions.append(Decision(value, error, p, min(1.0, len(pairs) * p), level, *limits, dof=dof))
    return decisions


# Columns of a difference, from the values of ``Difference._row``.
SYSTEMS = (Column("a", "{a}", "l"), Column("b", "{b}", "l"))
DIFFERENCE = Column("b - a", "{difference:+.{digits}f}")
INTERVAL = Column("interval", "{low:+.{digits}f} to {high:+.{digits}f}")
P_ADJUSTED = Column("adj. p", "{p_adjusted:.{digits}p}")
VERDICT = Column("verdict on b", "{verdict}", "w")
