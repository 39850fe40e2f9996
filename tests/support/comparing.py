"""Compare scores of the same documents, and numbers per query, by default under the names a, b, c, ...; given NDCGs.

And statistics of the difference of two systems, from their values per query.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ndcg_ml import Comparison, Evaluation, Flavor, compare, compare_values, evaluate
from ndcg_ml._decide.means import Means, minus, spread_of
from ndcg_ml._decide.randomisation import exchange_tests

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
        self.difference, self.standard_error = self.spread().value, self.spread().standard_error

    def spread(self, n_resamples: int | None = None, seed: Any = None) -> Any:
        a, b = spread_of(self.means, n_resamples, np.random.default_rng(seed))
        return minus(b, a)

    def interval(self, confidence: float = 0.95, method: str = "t", n_resamples: int = 9999, seed: Any = None) -> Any:
        return self.spread(None if method == "t" else n_resamples, seed).interval(confidence, method)

    def test(self, n_resamples: int = 9999, seed: Any = None) -> Any:
        [found] = exchange_tests(self.means, [(0, 1)], n_resamples, np.random.default_rng(seed))
        return found
