"""NDCG under the labels of a model, corrected by human labels of a random sample of the queries."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.layout import FloatArray, IntArray, keys_of
from ndcg_ml._core.queries import Scored
from ndcg_ml._matched_systems import Matched, list_ids, matched, rows_of_ids, sources_of_evaluations
from ndcg_ml._plain.checks import as_confidence
from ndcg_ml._plain.flavor_text import at_cutoff
from ndcg_ml._statistics.differences import MOST_QUERIES, Decision, Pairs, Settings
from ndcg_ml._statistics.distributions import t_quantile, t_tail
from ndcg_ml._statistics.intervals import FEWEST_TO_SPLIT, Estimate, bounds_of, estimate_of
from ndcg_ml._statistics.means import SAME, Interval, Means
from ndcg_ml._statistics.p_values_and_sample_sizes import normal_max_t
from ndcg_ml.flavor import Flavor
from ndcg_ml.results.evaluation import Evaluation


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class CorrectedEvaluation:
    """The value of a system under a model's labels, corrected by human labels; ``print`` shows it.

    Attributes
    ----------
    value : float
        The corrected mean NDCG of all queries, between 0 and 1 if all values are.
    standard_error : float
        Standard error. The t interval has n - 2 degrees of freedom for n queries with human labels.
    weight : float
        Weight of the model's labels, from 0 (only human labels are used) to 1.
    bias : float
        The mean under the model's labels minus that under human labels, on the queries that have both.
    flavor : Flavor
        The flavor, with the cut-off.
    model, human : Evaluation
    """

    value: float
    standard_error: float
    weight: float
    bias: float
    flavor: Flavor
    model: Evaluation[float] = field(repr=False)
    human: Evaluation[float] = field(repr=False)
    _estimate: Estimate = field(repr=False)
    _bounds: tuple[float, float] = field(repr=False)
    """The smallest and the largest value that a query may have."""

    @property
    def effective_queries(self) -> float:
        """The number of human-labelled queries that, used alone, would give a 95 % interval as wide."""
        return cast(float, self.interval().effective_queries)

    def interval(self, confidence: float = 0.95) -> Interval:
        """Return the interval of the corrected value, by the rule of ``Evaluation.interval``.

        Parameters
        ----------
        confidence : float, default 0.95
            Above 0 and below 1.

        Returns
        -------
        Interval
            Within 0 and 1 if the values of the queries are. Its ``.effective_queries`` is the number of human-labelled
            queries that, used alone, would give an interval as wide.
        """
        level, d = as_confidence(confidence), self.human.per_query.ndcg
        low, high = np.clip(self._estimate.limits(level), *self._bounds).tolist()
        alone = estimate_of(Means.from_weights(d[:, None], None), float(d.mean()))

        def suffice(n: int) -> bool:
            """Return whether n human-labelled queries like these give an interval that is not wider."""
            error = alone.error * math.sqrt(d.size / n)
            least, most = replace(alone, error=error, dof=float(n - 1)).limits(level)
            return most - least <= high - low

        return Interval(
            value=self.value,
            low=low,
            high=high,
            confidence=level,
            method="corrected",
            n_queries=d.size,
            effective_queries=2.0 + bisect_left(range(2, MOST_QUERIES), True, key=suffice),
        )

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
        The flavors differ; a query of `human` is not among those of `model`, or differs in its documents, their scores,
        or which of them are judged; fewer than 20 queries, or all of them, have human labels; queries are left out of
        the mean, have the value nan, or differ in weight; there are clusters; or the mean is a micro average. Documents
        and scores are not compared if an evaluation was saved or pickled.

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

    where w of each half of the sample is estimated from the other half, so that the value is unbiased for any model. A
    digest of the query ids determines the halves, so the order of rows does not matter. ``compare`` corrects the values
    of all systems together, so they may differ slightly from those of each system alone. A.
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
    _, rows = rows_of_ids([human.per_query.qid, model.per_query.qid])
    labelled = rows[: human.n_queries, 1]
    if (labelled < 0).any():
        unknown = list_ids(human.per_query.qid[labelled < 0].tolist())
        raise ValueError(f"every query of human must be among those of model; got {unknown}, which are not.")
    if not FEWEST_TO_SPLIT <= human.n_queries < model.n_queries:
        raise ValueError(
            f"human must have at least {FEWEST_TO_SPLIT} of the {model.n_queries} queries, and not all of them; got "
            f"{human.n_queries}. Label more queries by hand, or evaluate under human labels only."
        )
    partly = np.zeros(human.n_queries, dtype=bool)
    for name in ("n_docs", "n_judged"):
        partly |= model.per_query[name][labelled] != human.per_query[name]
    if partly.any():
        raise ValueError(
            "each query must have the same number of documents and of judged documents in model and human; the numbers "
            f"differ in {list_ids(human.per_query.qid[partly].tolist())}. Judge all documents of these queries, or "
            "leave the queries out of human."
        )
    _refuse_other_documents(model, human, labelled)
    f, d = model.per_query.ndcg, human.per_query.ndcg
    _warn_unless_random(f, labelled)
    found = _Corrected.from_values(f[:, None], model.per_query.qid, d[:, None], human.per_query.qid)
    bounds = bounds_of(np.concatenate([f, d]))
    value, parts, dof = float(np.clip(found.value[0], *bounds)), found.parts[:, 0], float(d.size - 2)
    error = float(np.sqrt(np.square(parts).sum()))
    # Differences up to .05 do not count, and those from .1 on count in full.
    distance = np.abs(parts[: d.size] - np.median(parts[: d.size])) * d.size
    # A query counts as its human label plus a part of the model's mean of the others minus the model's label.
    added = found.largest * (np.delete(f, labelled).mean() - f)
    estimate = Estimate(
        value,
        error,
        dof,
        skewness=float(((parts / error) ** 3).sum()) * math.sqrt(dof + 1) if error > SAME else 0.0,
        bounds=(bounds[0] + min(0.0, float(added.min())), bounds[1] + max(0.0, float(added.max()))),
        changed_labels=float(np.clip(distance / 0.05 - 1, 0, 1).mean()),
    )
    return CorrectedEvaluation(
        value=value,
        standard_error=error,
        weight=found.weight,
        bias=float((f[labelled] - d).mean()),
        flavor=flavor,
        model=model,
        human=human,
        _estimate=estimate,
        _bounds=bounds,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Corrected:
    """Corrected means of columns, all with one weight.

    Attributes
    ----------
    value : ndarray of float64, shape (n_columns,)
    weight, largest : float
        The mean weight of the model's labels, and the larger one of the two halves.
    parts : ndarray of float64, shape (n_queries, n_columns)
        Contributions of the queries, those of the sample first. Their sum of squares is the variance.
    """

    value: FloatArray
    weight: float
    largest: float
    parts: FloatArray

    @classmethod
    def from_values(cls, f: FloatArray, f_ids: NDArray[Any], d: FloatArray, d_ids: NDArray[Any]) -> _Corrected:
        """Estimate from f, all queries under the model's labels, and d, the sample under human labels."""
        # Halves of the sample are determined by the query ids, so that the order of rows does not matter.
        order = sorted(range(len(d)), key=lambda at: blake2b(str(d_ids[at]).encode("utf-8", "surrogatepass")).digest())
        chosen = rows_of_ids([d_ids[order], f_ids])[1][: len(d), 1]
        d, g, rest = d[order], f[chosen], np.delete(f, chosen, axis=0)
        n, n_rest = len(d), len(rest)
        halves = [np.arange(n) % 2 == half for half in (0, 1)]
        weights = np.empty((n, 1))
        for half, other in zip(halves, reversed(halves), strict=True):
            x, y = (values[other] - values[other].mean(axis=0) for values in (g, d))
            size = float((x * x).sum()) * (1 + n / n_rest)
            weights[half] = min(1.0, max(0.0, float((x * y).sum()) / size)) if size > n * SAME * SAME else 0.0
        weight, mean = float(weights.mean()), rest.mean(axis=0)
        parts = np.concatenate(
            [np.zeros(d.shape), weight * (rest - mean) / n_rest * math.sqrt(n_rest / max(1, n_rest - 1))]
        )
        left = d - weights * g
        for half in halves:
            m = int(half.sum())
            parts[:n][half] = (left[half] - left[half].mean(axis=0)) / n * math.sqrt(m / (m - 1))
        return cls((d + weights * (mean - g)).mean(axis=0), weight, float(weights.max()), parts)


# -- comparisons ----------------------------------------------------------------------------------------------------


def correct_pairs(
    people: Matched,
    systems: Sequence[CorrectedEvaluation],
    pairs: Pairs,
    settings: Settings,
    rng: np.random.Generator,
) -> tuple[list[Decision], tuple[float, ...], str]:
    """Correct the values of systems together, and decide their pairs.

    The differences of the corrected values are those of the pairs.

    Parameters
    ----------
    people : Matched
        The values under human labels.
    systems : sequence of CorrectedEvaluation
    pairs, settings, rng
        As for ``differences``.

    Returns
    -------
    list of Decision, tuple of float, str
        The decisions on the pairs, the corrected values, and a note.
    """
    model = matched(
        sources_of_evaluations({name: [one.model] for name, one in zip(people.names, systems, strict=True)}, ...),
        "raise",
    )
    # One weight corrects the mean of the systems, and one their deviations from it.
    f_mean, d_mean = (table.values.mean(axis=1, keepdims=True) for table in (model, people))
    mean = _Corrected.from_values(f_mean, model.qid, d_mean, people.qid)
    deviation = _Corrected.from_values(model.values - f_mean, model.qid, people.values - d_mean, people.qid)

    # Subtract the systems of each pair. All pairs share one critical value.
    a, b = (np.array(side) for side in zip(*pairs, strict=True))
    gaps, parts, f, d = (
        values[..., b] - values[..., a] for values in (deviation.value, deviation.parts, model.values, people.values)
    )
    errors, dof = np.sqrt(np.square(parts).sum(axis=0)), float(len(d) - 2)
    chance = normal_max_t(deviation.parts, pairs, dof, settings.n_draws, rng) if len(pairs) > 1 else None
    critical = t_quantile(1 - settings.level, dof)
    if chance is not None:
        critical = max(critical, chance.critical(settings.level))

    # Test each pair by its t. The interval agrees with the adjusted p-value.
    decisions = []
    for at, (gap, error) in enumerate(zip(gaps.tolist(), errors.tolist(), strict=True)):
        t = abs(gap) / error if error > SAME else math.inf if abs(gap) > SAME else 0.0
        p = t_tail(t, dof)
        decisions.append(
            Decision(
                gap,
                error,
                p_value=p,
                p_adjusted=p if chance is None else max(p, chance.p_value(t)),
                level=t_tail(critical, dof),
                low=gap - critical * error,
                high=gap + critical * error,
                dof=dof,
                effective_queries=float(d[:, at].var(ddof=1)) / error**2 if error else float(len(d)),
                largest=float(np.abs(f[:, at]).max()),
            )
        )
    note = (
        f"{len(f)} queries have labels of a model; {_note(len(d))}; the values are corrected together, so that their "
        "differences are those below"
    )
    return decisions, tuple((mean.value + deviation.value).tolist()), note


def corrected_systems(named: Mapping[str, list[Any]]) -> list[CorrectedEvaluation]:
    """Return the systems if they are results of ``correct_labels`` on the same queries; empty if none is.

    Raises
    ------
    TypeError, ValueError
        Only some are, one has several runs, or the queries differ under the model's labels or under human labels.
    """
    runs = [run for of_one in named.values() for run in of_one]
    systems = [run for run in runs if isinstance(run, CorrectedEvaluation)]
    if not systems:
        return []
    if not len(systems) == len(runs) == len(named):
        raise TypeError("the systems must all be results of correct_labels, one each, or all be evaluations.")
    names = [*named]
    for side in ("model", "human"):
        first, *others = (set(keys_of(getattr(system, side).per_query.qid)) for system in systems)
        for name, other in zip(names[1:], others, strict=True):
            if other != first:
                raise ValueError(
                    f"all systems must be corrected on the same queries, with labels of the model and of people for "
                    f"the same ones; {names[0]} and {name} differ in {list_ids(sorted(first ^ other, key=str))} of "
                    f"{side}. Evaluate every system with the same two sets of labels, and correct it again."
                )
    return systems


# -- what is refused ------------------------------------------------------------------------------------------------


def _one_flavor(model: Evaluation[float], human: Evaluation[float]) -> Flavor:
    for name, each in (("model", model), ("human", human)):
        if not isinstance(each, Evaluation) or isinstance(each.k, tuple):
            raise TypeError(
                f"{name} must be an evaluation at one cut-off, such as evaluate_run(qrels, run, k=10); got "
                f"{type(each).__name__}."
            )
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


def _refuse_other_documents(model: Evaluation[float], human: Evaluation[float], labelled: IntArray) -> None:
    """Refuse queries with other documents or scores in `human`, if both evaluations hold their documents."""
    one, other = model._scored, human._scored
    if one is None or other is None:
        return
    with_ids = one.queries.names is not None and other.queries.names is not None
    pairs = zip(_documents(one, labelled, with_ids), _documents(other, range(human.n_queries), with_ids), strict=True)
    differs = [qid for qid, (mine, theirs) in zip(keys_of(human.per_query.qid), pairs, strict=True) if mine != theirs]
    if differs:
        raise ValueError(
            f"each query must have the same documents and scores in model and human; got others in "
            f"{list_ids(differs)}. Evaluate the same system under both sets of labels."
        )


def _documents(scored: Scored, queries: Iterable[int], with_ids: bool) -> Iterator[Counter[tuple[Any, ...]]]:
    """Yield the documents of each query: whether it is judged, its score if it is retrieved, and its id."""
    data, labels, rows_of_all = scored.queries, scored.labels, scored.queries.groups.rows()
    for query in queries:
        at = slice(data.groups.starts[query], data.groups.starts[query] + data.groups.sizes[query])
        rows = rows_of_all[at]
        scores = scored.scores.reshape(-1)[rows].astype(np.float64)
        if data.retrieved is not None:
            scores[~data.retrieved[rows]] = np.inf
        names = data.names(rows) if with_ids and data.names is not None else [None] * rows.size
        yield Counter(zip(np.isnan(labels[at]).tolist(), scores.tolist(), map(str, names), strict=True))


def _warn_unless_random(f: FloatArray, chosen: IntArray) -> None:
    """Warn if the sample does not look random."""
    one, other = f[chosen], np.delete(f, chosen)
    error = math.sqrt(one.var(ddof=1) / one.size + other.var() / other.size)
    why = f"under the model's labels their mean is {one.mean():.4f}, and that of the others {other.mean():.4f}"
    if (np.sort(chosen) == np.arange(chosen.size)).all():
        why = "these are the first ones (pass qid= to both evaluations if the ids are positions)"
    elif error <= SAME or t_tail(abs(one.mean() - other.mean()) / error, one.size - 1) >= 0.001:
        return
    message = f"the queries with human labels must be a random sample; {why}. Draw them, for example by rng.choice."
    warnings.warn(message, UserWarning, stacklevel=3)


def _note(n: int) -> str:
    return f"the correction is valid if the {n} queries with human labels are a random sample of all"
