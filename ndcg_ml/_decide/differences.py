"""Differences between systems: the test, the interval that agrees with it, the verdict, and planning."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.layout import BoolArray, FloatArray
from ndcg_ml._core.table import Column
from ndcg_ml._decide.distributions import beta_cdf, beta_quantile, t_quantile, t_tail
from ndcg_ml._decide.intervals import FEWEST_FOR_TEST, aggregate_clusters, effective_queries
from ndcg_ml._decide.means import SAME, Interval, Means, Spread, crossed_error, minus, n_equal, skewness, spread_of
from ndcg_ml._decide.randomisation import exchange_tests, max_t, queries_needed, smallest_detectable
from ndcg_ml._decide.verdict import Verdict, verdict

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
        runs. Changes below a thousandth of the largest one do not count.
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
    dof : float
        Degrees of freedom of ``smallest_detectable``: one less than the changed queries (or clusters), or those of the
        standard error with several runs.
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
    dof: float
    effective_queries: float | None = None

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

    @property
    def _n_seen(self) -> float:
        """The number of queries or clusters that `unseen` counts."""
        return self._seen_by(self.unseen)

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
            In units of the value. The variance of these queries is assumed, and that no other queries change. Infinite
            if so few changed that the test cannot reject.

        Notes
        -----
            (t (1 - 1/(4 dof)) + z_power sqrt(1 + t^2/(2 dof) + u (t + z_power)^2/(4 (dof + 1)))) standard_error

        where t is the critical value of the test, dof is one less than the changed queries, and u is the share of the
        others. This is the normal approximation of the noncentral t distribution (M. Abramowitz and I. Stegun, Handbook
        of Mathematical Functions, 26.7.10). The last term allows for the varying number of changed queries.
        """
        # With m changed queries, the test by exchanges has no p-value below 2^(1 - m).
        least_p, unchanged = float(self.interval.method == "corrected" and not self.n_changed), 0.0
        if self.interval.method in ("test", "max-t"):
            least_p, unchanged = 2**-self.dof, max(0.0, 1 - (self.dof + 1) / self._n_seen)
        return smallest_detectable(self.standard_error, self.dof, power, 1 - self.level, least_p, unchanged)

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

# A change below this share of the largest one does not count, so that changes of no size decide nothing.
_SMALLEST = 1e-3
# Divisor of the level: the largest change and the limit of the mean change are estimates, too.
_TAILS = 4
# Confidence of the interval of the mean change.
_MEAN_CONFIDENCE = 0.95
# A smaller share of weight is rounding.
_NOTHING = 1e-9


@dataclass(frozen=True, slots=True)
class FewChanged:
    """The number of queries that changed, and what other queries may lose or gain.

    Notes
    -----
    Let m of n queries have changed. The share of all queries that change may be as large as the upper limit p_U of a
    binomial share (C. Clopper and E. Pearson, Biometrika 26, 1934). An unseen change is taken to be the largest loss
    or gain among the changed queries, or the limit of the t interval of their mean change if that is smaller:

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
    """

    share: float
    n: float
    loss: float
    gain: float

    @classmethod
    def from_differences(
        cls, d: FloatArray, changed: BoolArray, share: FloatArray, largest: float | None
    ) -> FewChanged | None:
        """Summarise the difference of each query (or cluster), whether it changed, and its share of the mean.

        None if all of them changed. If human labels of a sample correct a model's labels, `largest` is the largest
        change of a query under the model's labels. If fewer than six of the sample changed, which do not show a
        direction, the loss and the gain are both the largest change, or `largest` if none changed.
        """
        if share[~changed].sum() < _NOTHING:
            return None
        of_changed, n = float(share[changed].sum()), n_equal(share)
        if largest is not None and of_changed * n <= FEWEST_FOR_TEST - 0.5:
            worst = float(np.abs(d).max()) if of_changed else largest
            return cls(of_changed, n, worst, worst)
        loss, gain = max(0.0, float(-d.min())), max(0.0, float(d.max()))
        if np.count_nonzero(changed) > 1:
            change, part = d[changed], share[changed] / of_changed
            mean, m = float(part @ change), n_equal(part)
            error = math.sqrt(float(np.square(part * (change - mean)).sum()) * m / max(m - 1, 1e-9))
            reach = t_quantile(_MEAN_CONFIDENCE, max(1.0, m - 1)) * error
            loss, gain = min(loss, max(0.0, reach - mean)), min(gain, max(0.0, reach + mean))
        return cls(of_changed, n, loss, gain)

    def share_at_most(self, level: float) -> float:
        """Return the upper limit of the share of queries that change."""
        if not self.share:
            return float(1 - (level / 2) ** (1 / self.n))
        m = self.share * self.n
        return beta_quantile(1 - level / _TAILS, m + 1, self.n - m)

    def limits(self, difference: float, level: float) -> tuple[float, float]:
        """Return an upper bound of the low limit, and a lower bound of the high limit."""
        unseen = self.share_at_most(level) - self.share
        return difference - unseen * self.loss, difference + unseen * self.gain

    def p_value(self, difference: float) -> float:
        """Return the level at which these limits begin to exclude 0."""
        against = self.loss if difference > 0 else self.gain
        if not against:
            return 0.0
        m = self.share * self.n
        share = min(1.0, self.share + abs(difference) / against)
        return min(1.0, _TAILS * beta_cdf(1 - share, self.n - m, m + 1))

    def widen(self, decision: Decision, family_level: float) -> Decision:
        """Widen the limits to allow for changes of other queries, and adjust the p-values accordingly."""
        low, high = self.limits(decision.difference, decision.level)
        p = self.p_value(decision.difference)
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
    share = units.share()[:, 0]
    # The spreads of the systems, computed once, give the difference and standard error of each pair.
    spreads = spread_of(grouped)
    gaps = [minus(spreads[b], spreads[a]) for a, b in pairs]

    # Each branch gives p-values and limits that agree with them. With several runs, queries and runs both vary. Several
    # pairs share one critical value. A single pair has its own test.
    decisions: Sequence[Decision]
    method: Literal["test", "max-t", "crossed", "corrected"]
    if corrected is not None:
        decisions, method = corrected, "corrected"
    elif runs is not None:
        decisions, method = _over_runs(pairs, gaps, runs, units.n_queries, settings.level), "crossed"
    elif len(pairs) > 1:
        decisions, method = _decide_family(units, pairs, gaps, settings, rng), "max-t"
    else:
        decisions, method = [_decide_pair(units, pairs[0], gaps[0], settings, rng)], "test"
    if corrected is not None:
        effective = [decision.effective_queries for decision in corrected]
    elif clusters is not None:
        effective = [*_effective(means, units, pairs)]
    else:
        effective = [None if gap.n_effective == units.n_queries else gap.n_effective for gap in gaps]

    result = []
    for (a, b), gap, narrow, n_effective in zip(pairs, gaps, decisions, effective, strict=True):
        d, of_units = (table.values[:, b] - table.values[:, a] for table in (means, units))
        # Wins and losses count queries, even if clusters are the sampling units.
        wins, losses = int((d > SAME).sum()), int((d < -SAME).sum())
        changed = _changed_units(d, clusters)
        few = None if runs is not None else FewChanged.from_differences(of_units, changed, share, narrow.largest)
        decision = narrow if few is None else few.widen(narrow, settings.level)
        nothing_varies = gap.is_constant and (runs is None or not decision.standard_error)
        interval = Interval(
            value=decision.difference,
            low=decision.low,
            high=decision.high,
            confidence=settings.confidence,
            method=method,
            n_queries=means.n_queries,
            n_resamples=None if method in ("crossed", "corrected") else settings.n_draws,
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
                    changed=wins + losses > 0 or not nothing_varies or (decision.largest or 0.0) > SAME,
                    settled=may_turn is None or not may_turn(a, b, decision.difference),
                ),
                exact=decision.exact,
                wins=wins,
                ties=means.n_queries - wins - losses,
                losses=losses,
                changed_at_most=None if few is None else few.share_at_most(decision.level),
                widened=(decision.low, decision.high) != (narrow.low, narrow.high),
                unseen=1 - _MISSED ** (1 / gap.n_effective),
                skewness=skewness(of_units),
                level=decision.level,
                # Exchanges of equal values change nothing, so the test varies as over the changed units alone.
                dof=float(np.count_nonzero(changed) - 1) if decision.dof is None else decision.dof,
                effective_queries=n_effective,
            )
        )
    return result


def _changed_units(d: FloatArray, clusters: NDArray[np.int64] | None) -> BoolArray:
    """Return which queries or clusters changed, other than by a thousandth of the largest change."""
    size = np.abs(d)
    changed: BoolArray = size > max(SAME, _SMALLEST * float(size.max()))
    return changed if clusters is None else np.bincount(np.unique(clusters, return_inverse=True)[1], changed) > 0


def _decide_family(
    units: Means, pairs: Pairs, gaps: Sequence[Spread], settings: Settings, rng: np.random.Generator
) -> list[Decision]:
    """Decide all pairs by one critical value of the largest |t|."""
    tests = exchange_tests(units, pairs, settings.n_draws, rng)
    chance = max_t(units, pairs, settings.n_draws, rng)
    critical = chance.critical(settings.level)
    level = t_tail(critical, units.n_queries - 1) if math.isfinite(critical) else settings.level / len(pairs)
    level = min(level, settings.level)  # few draws can give a smaller critical value than that of one pair
    decisions = []
    for test, gap in zip(tests, gaps, strict=True):
        error = _standard_error(gap)
        if error > 0:
            t, reach = abs(gap.value) / error, critical * error
        else:  # every query differs by the same
            t, reach = (math.inf if abs(gap.value) > SAME else 0.0), 0.0
        p_adjusted = max(chance.p_value(t), test.p_value)
        low, high = _rounded(gap, gap.value - reach, gap.value + reach)
        if p_adjusted > settings.level * (1 + SAME):  # p and limits must agree, also for constant differences
            low, high = min(low, 0.0), max(high, 0.0)
        decisions.append(Decision(gap.value, error, test.p_value, p_adjusted, level, low, high, test.exact))
    return decisions


def _decide_pair(
    units: Means, pair: tuple[int, int], gap: Spread, settings: Settings, rng: np.random.Generator
) -> Decision:
    """Decide the only pair by its own test, which is inverted for the interval."""
    # The copy leaves the state of the generator as it is for the slices.
    [test] = exchange_tests(units, [pair], settings.n_draws, copy.deepcopy(rng), settings.level)
    limits = _rounded(gap, test.low, test.high)
    return Decision(
        gap.value, _standard_error(gap), test.p_value, test.p_value, settings.level, *limits, exact=test.exact
    )


def _standard_error(gap: Spread) -> float:
    return 0.0 if gap.is_constant else gap.standard_error


def _rounded(gap: Spread, low: float, high: float) -> tuple[float, float]:
    """Return the limits, or the difference itself twice if all differences are equal."""
    return (gap.value, gap.value) if gap.is_constant and math.isfinite(high - low) else (low, high)


def _over_runs(
    pairs: Pairs, gaps: Sequence[Spread], runs: Sequence[FloatArray], n_units: int, level: float
) -> list[Decision]:
    """Decide each pair by a t test over queries and runs, with Bonferroni's correction for several pairs."""
    level, decisions = level / len(gaps), []
    for (a, b), gap in zip(pairs, gaps, strict=True):
        crossed = crossed_error(_standard_error(gap), n_units, runs[a], runs[b])
        p, error = crossed.p_value(gap.value), crossed.standard_error
        reach = t_quantile(1 - level, crossed.dof) * error
        limits = gap.value - reach, gap.value + reach
        decisions.append(Decision(gap.value, error, p, min(1.0, len(gaps) * p), level, *limits, dof=crossed.dof))
    return decisions


def _effective(means: Means, clusters: Means, pairs: Pairs) -> list[float]:
    """Return the effective number of queries of each difference."""

    def subtract(systems: Means) -> Means:
        systems = systems.linear()
        values = np.stack([systems.values[:, b] - systems.values[:, a] for a, b in pairs], axis=1)
        return Means(values, np.broadcast_to(systems.weight[:, :1], values.shape))

    return effective_queries(subtract(means), subtract(clusters)).tolist()


# Columns of a difference, from the values of ``Difference._row``.
SYSTEMS = (Column("a", "{a}", "l"), Column("b", "{b}", "l"))
DIFFERENCE = Column("b - a", "{difference:+.{digits}f}")
INTERVAL = Column("interval", "{low:+.{digits}f} to {high:+.{digits}f}")
P_ADJUSTED = Column("adj. p", "{p_adjusted:.{digits}p}")
VERDICT = Column("verdict on b", "{verdict}", "w")
