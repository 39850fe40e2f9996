"""Compare scores of the same documents, and numbers per query, by default under the names a, b, c, ...; given NDCGs.

And statistics of the difference of two systems, from their values per query.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ndcg_ml import Comparison, Evaluation, Flavor, compare, compare_values, evaluate
from ndcg_ml._statistics.distributions import t_quantile
from ndcg_ml._statistics.means import Means
from ndcg_ml._statistics.p_values_and_sample_sizes import exchange_tests

# NDCGs from -1 to 2.
WIDE = Flavor(gain=lambda y: y if y < 2 else 1.0, ideal="max", max_grade=2, negative="allow", k=1)
OF_DATA = ("qid", "group", "mask", "retrieved", "doc_id", "query_weight", "flavor", "k")


def by_scores(*scores: Any, y_true: Any, **options: Any) -> Comparison:
    data = {name: options.pop(name) for name in OF_DATA if name in options}
    return compare(*(evaluate(y_true, each, **data) for each in scores), **options)


def by_values(*systems: Any, names: Sequence[str] | None = None, **options: Any) -> Comparison:
    if isinstance(systems[0], Mapping):
        return compare_values(systems[0], **options)
    letters = [chr(ord("a") + at) if at < 26 else f"s{at + 1}" for at in range(len(systems))]
    return compare_values(dict(zip(names or letters, systems, strict=True)), **options)


def of_values(values: Any, ids: Any = None, **options: Any) -> Evaluation[Any]:
    """An evaluation whose queries have these values: the label of the first of two documents."""
    ids = np.arange(len(values)) if ids is None else np.asarray(ids)
    labels = np.column_stack([values, np.zeros(len(values))]).reshape(-1)
    return evaluate(labels, np.tile([0.5, 0.0], len(values)), qid=np.repeat(ids, 2), **{"flavor": WIDE} | options)


class Paired:
    """The weighted mean difference b - a over queries."""

    def __init__(self, a: np.ndarray, b: np.ndarray, weight: np.ndarray | None = None) -> None:
        self.means = Means.from_weights(np.stack([a, b], axis=1), weight)
        self.difference = float(self.means.minus(0, 1).mean()[0])

    def test(self, n_resamples: int = 9999, seed: Any = None) -> Any:
        [found] = exchange_tests(self.means, [(0, 1)], n_resamples, np.random.default_rng(seed))
        return found


def interval_by_hand(
    values: np.ndarray, share: np.ndarray, confidence: float = 0.95, bounds: tuple[float, float] = (0.0, 1.0)
) -> tuple[float, float]:
    """The limits of a weighted mean, from a list of the queries and two pseudo-queries."""
    least, span = bounds[0], bounds[1] - bounds[0]
    mean = float(share @ values)
    of_rows = share**2 / (1 - share)
    dof = 1 / ((share**2).sum() + of_rows.sum() ** 2 - (of_rows**2).sum())
    apart = (values - mean) / span
    if np.ptp(values) > 1e-12:
        apart *= np.sqrt((of_rows @ apart**2) * dof / (share @ apart**2))
    m = (mean - least) / span
    weight = 1 / (1 + 2 * (dof + 1) * m * (1 - m))
    weights, apart = np.r_[(dof + 1) * share, weight, weight], np.r_[apart, -m, 1 - m]
    total = weights.sum()
    deviation = np.sqrt(weights @ apart**2 / total)
    skew = weights @ apart**3 / total / deviation**3 / np.sqrt(total)
    limits = []
    for t in np.array([-1, 1]) * t_quantile(confidence, total - 1):
        x = skew / 6 + t
        bent = x * (1 + skew * x / 3) if skew * x > 0 else x / (1 - skew * x / 3)
        limits.append(mean + span * deviation / np.sqrt(total - 1) * bent)
    return max(bounds[0], min(limits[0], mean)), min(bounds[1], max(limits[1], mean))
