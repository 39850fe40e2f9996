"""NDCG under the labels of a model, corrected by human labels of a random sample of the queries."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ndcg_ml._data.arrays import FloatArray, IntArray
from ndcg_ml._flavor.text import metric_key
from ndcg_ml._one_line import brief
from ndcg_ml._stats.differences import Settings
from ndcg_ml._stats.means import SAME, Interval, as_confidence
from ndcg_ml._stats.quantiles import t_quantile, t_tail
from ndcg_ml._stats.simultaneous import MaxT, normal_t
from ndcg_ml._stats.verdict import verdict
from ndcg_ml.flavor import Flavor
from ndcg_ml.result import Evaluation, at_cutoff

if TYPE_CHECKING:
    from ndcg_ml._compare.comparison import Comparison

__all__ = ["CorrectedEvaluation", "correct_labels"]

_FEWEST = 20


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class CorrectedEvaluation:
    """The value of a system under a model's labels, corrected by human labels; ``print`` shows it.

    Attributes
    ----------
    value : float
        The corrected mean NDCG of all queries.
    standard_error : float
        Standard error. The t interval has n - 2 degrees of freedom for n queries with human labels.
    weight : float
        Weight of the model's labels, from 0 (only human labels are used) to 1.
    bias : float
        The mean under the model's labels minus that under human labels, on the queries that have both.
    effective_queries : float
        Number of queries with human labels only that would give the same standard error.
    flavor : Flavor
        The flavor, with the cut-off.
    model, human : Evaluation
    """

    value: float
    standard_error: float
    weight: float
    bias: float
    effective_queries: float
    flavor: Flavor
    model: Evaluation[float] = field(repr=False)
    human: Evaluation[float] = field(repr=False)
    _labelled: IntArray = field(repr=False)
    """The rows of `model` that have human labels, in the order of `human`."""

    def interval(self, confidence: float = 0.95) -> Interval:
        """Return the t interval of the corrected value.

        Parameters
        ----------
        confidence : float, default 0.95
            Above 0 and below 1.

        Returns
        -------
        Interval
        """
        level = as_confidence(confidence)
        reach = t_quantile(level, self.human.n_queries - 2) * self.standard_error
        return Interval(
            value=self.value,
            low=self.value - reach,
            high=self.value + reach,
            confidence=level,
            method="corrected",
            n_queries=self.human.n_queries,
            n_resamples=None,
            effective_queries=self.effective_queries,
        )

    def metrics(self) -> dict[str, float]:
        """Return the value and its 95 % interval as ``ndcg_at_10``, ``ndcg_at_10_low`` and ``ndcg_at_10_high``.

        Returns
        -------
        dict of float by name
        """
        name, interval = metric_key(self.flavor.k), self.interval()
        return {name: self.value, f"{name}_low": interval.low, f"{name}_high": interval.high}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON.

        Returns
        -------
        dict
        """
        names = ("value", "standard_error", "weight", "bias", "effective_queries")
        return {
            "flavor": str(self.flavor),
            **{name: getattr(self, name) for name in names},
            "interval": self.interval().to_dict(),
            "n_queries": self.model.n_queries,
            "model": self.model.value,
            "human": self.human.value,
        }

    def __str__(self) -> str:
        return (
            f"ndcg{at_cutoff(self.flavor.k)} {self.interval()}\n"
            f"{self.flavor}; {self.model.n_queries} queries labelled by a model, {self.human.n_queries} by people\n"
            f"Not corrected: {self.model.value:.6f} under the model's labels, whose bias is {self.bias:+.6f}; "
            f"{self.human.value:.6f} on the queries with human labels.\n"
            f"Note: {_note(self.human.n_queries)}."
        )


def correct_labels(model: Evaluation[float], human: Evaluation[float]) -> CorrectedEvaluation:
    """Correct the value under a model's labels by human labels of a random sample of the queries.

    Parameters
    ----------
    model : Evaluation
        One system on all N queries, under the labels of a model.
    human : Evaluation
        The same system on a random sample of n of these queries, 20 or more, under human labels. In each of them, the
        same documents are judged as by the model.

    Returns
    -------
    CorrectedEvaluation
        ``.value``, ``.interval()``, ``.weight``, ``.bias``, ``.effective_queries``; ``compare`` takes two or more.

    Raises
    ------
    TypeError
        `model` or `human` is not an evaluation at one cut-off.
    ValueError
        The flavors differ; a query of `human` is not among those of `model`, or differs in its number of documents or
        of judged ones; fewer than 20 queries, or all of them, have human labels; queries are left out of the mean, have
        the value nan, or differ in weight; there are clusters; or the mean is a micro average.

    Warns
    -----
    UserWarning
        The sample is the first n queries, or its values under the model's labels differ from those of the others (p <
        .001).

    Notes
    -----
    With f the NDCG of a query under the model's labels and d that under human labels:

        value = w mean(f, other queries) + mean(d - w f, sample)
        variance = w^2 var(f) / (N - n) + var(d - w f) / n
        w = cov(d, f) / ((1 + n / (N - n)) var f), from 0 to 1

    where w of each half of the sample is estimated from the other half, so that the value is unbiased for any model: A.
    Angelopoulos et al., Prediction-powered inference, Science 382, 2023; A. Angelopoulos, J. Duchi and T. Zrnic, PPI++,
    2023.

    Examples
    --------
    >>> import numpy as np
    >>> from ndcg_ml import evaluate
    >>> rng = np.random.default_rng(0)
    >>> qid, scores = np.repeat(np.arange(1000), 10), rng.normal(size=10_000)
    >>> labels = rng.integers(0, 4, qid.size)
    >>> by_model = np.minimum(labels + (rng.random(qid.size) < 0.2), 3)
    >>> some = np.isin(qid, rng.choice(1000, 100, replace=False))
    >>> model = evaluate(by_model, scores, qid=qid, k=5)
    >>> corrected = correct_labels(model, evaluate(labels[some], scores[some], qid=qid[some], k=5))
    >>> corrected.effective_queries > 200
    True
    """
    flavor = _one_flavor(model, human)
    ids = {qid: row for row, qid in enumerate(model.per_query.qid.tolist())}
    unknown = [qid for qid in human.per_query.qid.tolist() if qid not in ids]
    if unknown:
        raise ValueError(
            f"every query of human must be among those of model; got {_first_ids(unknown)}, which are not."
        )
    if not _FEWEST <= human.n_queries < model.n_queries:
        raise ValueError(
            f"human must have at least {_FEWEST} of the {model.n_queries} queries, and not all of them; got "
            f"{human.n_queries}. Label more queries by hand, or evaluate under human labels only."
        )
    labelled = np.array([ids[qid] for qid in human.per_query.qid.tolist()], dtype=np.int64)
    partly = np.zeros(human.n_queries, dtype=bool)
    for name in ("n_docs", "n_judged"):
        partly |= model.per_query[name][labelled] != human.per_query[name]
    if partly.any():
        raise ValueError(
            "each query must have the same number of documents and of judged documents in model and human; the numbers "
            f"differ in {_first_ids(human.per_query.qid[partly].tolist())}. Judge all documents of these queries, or "
            "leave the queries out of human."
        )
    f, d = model.per_query.ndcg, human.per_query.ndcg
    _warn_unless_random(f, labelled)
    estimate = _Estimate.from_values(f, d, labelled)
    return CorrectedEvaluation(
        value=estimate.value,
        standard_error=estimate.standard_error,
        weight=estimate.weight,
        bias=float((f[labelled] - d).mean()),
        effective_queries=estimate.worth(d),
        flavor=flavor,
        model=model,
        human=human,
        _labelled=labelled,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Estimate:
    """A corrected mean, and the contributions of queries, whose sum of squares is its variance."""

    value: float
    weight: float
    parts: FloatArray

    @property
    def standard_error(self) -> float:
        return float(np.sqrt(np.square(self.parts).sum()))

    def worth(self, d: FloatArray) -> float:
        """Return the number of queries with human labels only that would give this standard error."""
        return float(d.var(ddof=1)) / self.standard_error**2 if self.standard_error else float(d.size)

    @classmethod
    def from_values(cls, f: FloatArray, d: FloatArray, chosen: IntArray) -> _Estimate:
        """Estimate from f, all queries under the model's labels, and d, the chosen ones under human labels."""
        # The two halves are the even and the odd queries, in the order of the model's evaluation.
        order = np.argsort(chosen)
        d, chosen = d[order], chosen[order]
        n, rest, g = d.size, np.delete(f, chosen), f[chosen]
        halves = [np.arange(n) % 2 == half for half in (0, 1)]
        weights = []
        for other in reversed(halves):
            variance = float(g[other].var(ddof=1)) * (1 + n / rest.size)
            slope = float(np.cov(d[other], g[other])[0, 1]) / variance if variance > SAME * SAME else 0.0
            weights.append(min(1.0, max(0.0, slope)))
        weight = float(sum(w * half.sum() / n for w, half in zip(weights, halves, strict=True)))
        value, parts = weight * float(rest.mean()), np.zeros(f.size)
        others = np.setdiff1d(np.arange(f.size), chosen)
        parts[others] = weight * (rest - rest.mean()) / rest.size * math.sqrt(rest.size / max(1, rest.size - 1))
        for w, half in zip(weights, halves, strict=True):
            left = d[half] - w * g[half]
            value += float(left.sum()) / n
            parts[chosen[half]] = (left - left.mean()) / n * math.sqrt(left.size / (left.size - 1))
        return cls(value, weight, parts)


# -- comparisons ----------------------------------------------------------------------------------------------------


def corrected(
    people: Comparison, systems: Sequence[CorrectedEvaluation], settings: Settings, rng: np.random.Generator
) -> Comparison:
    """Return the comparison under human labels, with corrected differences; see ``compare``."""
    first = systems[0]
    ids = [np.append(system.model.per_query.qid, system.human.per_query.qid) for system in systems]
    if not all(np.array_equal(each, ids[0]) for each in ids):
        raise ValueError(
            "all systems must have the same queries in the same order, under the model's labels and human labels."
        )
    f, d = (
        {name: getattr(system, side).per_query.ndcg for name, system in zip(people.names, systems, strict=True)}
        for side in ("model", "human")
    )
    found = [
        _Estimate.from_values(f[pair.b] - f[pair.a], d[pair.b] - d[pair.a], first._labelled) for pair in people.pairs
    ]
    dof, several = float(people.n_queries - 2), len(found) > 1
    chance = MaxT(np.sort(normal_t(np.column_stack([one.parts for one in found]), dof, settings.n_draws, rng)))
    critical = chance.critical(settings.level) if several else t_quantile(1 - settings.level, dof)
    pairs = []
    for pair, one in zip(people.pairs, found, strict=True):
        error = one.standard_error
        t = abs(one.value) / error if error else math.inf * (abs(one.value) > SAME)
        p, low, high = t_tail(t, dof), one.value - critical * error, one.value + critical * error
        interval = replace(pair.interval, value=one.value, low=low, high=high, method="corrected", n_resamples=None)
        pairs.append(
            replace(
                pair,
                difference=one.value,
                interval=interval,
                standard_error=error,
                p_value=p,
                p_adjusted=max(p, chance.p_value(t)) if several else p,
                verdict=verdict(low, high, people.n_queries, settings.margin)
                if error or pair.verdict != "unchanged"
                else "unchanged",
                exact=False,
                changed_at_most=None,
                widened=False,
                level=t_tail(critical, dof),
                dof=dof,
                effective_queries=one.worth(d[pair.b] - d[pair.a]),
            )
        )
    return replace(
        people,
        values=tuple(system.value for system in systems),
        pairs=tuple(pairs),
        further_notes=(f"{first.model.n_queries} queries have labels of a model; {_note(people.n_queries)}",),
        _missing=None,
    )


# -- what is refused ------------------------------------------------------------------------------------------------


def _one_flavor(model: Evaluation[float], human: Evaluation[float]) -> Flavor:
    for name, each in (("model", model), ("human", human)):
        if not isinstance(each, Evaluation) or isinstance(each.k, tuple):
            raise TypeError(f"{name} must be an evaluation at one cut-off; got {type(each).__name__}. Evaluate one k.")
        share = each._totals.shares(each.flavor, each.k)[1]
        undefined = np.isnan(each.per_query.ndcg).any()
        if each.flavor.aggregate != "macro" or each.cluster is not None or np.ptp(share) or undefined:
            raise ValueError(
                f"{name} must be a plain mean over all its queries; got weights, clusters, a micro average, or queries "
                "without a value. Choose flavor.replace(aggregate='macro', empty=0), without weights."
            )
    one, other = (each.flavor.replace(k=each.k) for each in (model, human))
    if one != other:
        raise ValueError(f"model and human must have one flavor; got {one} and {other}.")
    return one


def _warn_unless_random(f: FloatArray, chosen: IntArray) -> None:
    """Warn if the sample does not look random."""
    one, other = f[chosen], np.delete(f, chosen)
    error = math.sqrt(one.var(ddof=1) / one.size + other.var() / other.size)
    why = f"under the model's labels their mean is {one.mean():.4f}, and that of the others {other.mean():.4f}"
    if (np.sort(chosen) == np.arange(chosen.size)).all():
        why = "these are the first ones (pass qid= to both evaluations if the ids are positions)"
    elif error == 0 or t_tail(abs(one.mean() - other.mean()) / error, one.size - 1) >= 0.001:
        return
    message = f"the queries with human labels must be a random sample; {why}. Draw them, for example by rng.choice."
    warnings.warn(message, UserWarning, stacklevel=3)


def _note(n: int) -> str:
    return f"the correction is valid if the {n} queries with human labels are a random sample of all"


def _first_ids(ids: Sequence[Any]) -> str:
    return ", ".join(brief(qid) for qid in ids[:5]) + ", ..." * (len(ids) > 5)
