"""The definitions that everything is reported under."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ndcg_ml import Flavor, evaluate
from ndcg_ml.demo import Split

REPORTED = Flavor(gain="exponential", k=10, empty="skip")
"""Queries without a relevant document say nothing about a model and are left out; ties share their ranks."""
LINEAR = REPORTED.replace(gain="linear")
UNCUT = REPORTED.replace(k=None)
LINEAR_UNCUT = LINEAR.replace(k=None)
LETOR = Flavor.preset("letor4", k=10)

Values = NDArray[np.float64]


def per_query(split: Split, scores: NDArray[np.floating], flavor: Flavor = REPORTED) -> Values:
    """NDCG of each query, nan where the flavor leaves it out."""
    return evaluate(split.labels, scores, group=split.sizes, flavor=flavor).per_query.ndcg


def mean(split: Split, scores: NDArray[np.floating], flavor: Flavor = REPORTED) -> float:
    """NDCG of the part."""
    return evaluate(split.labels, scores, group=split.sizes, flavor=flavor).value


def answers(split: Split, scores: NDArray[np.floating]) -> dict[str, object]:
    """What is kept of one model's scores of a test part."""
    queries, linear = (per_query(split, scores, flavor) for flavor in (REPORTED, LINEAR))
    kept = ~np.isnan(queries)
    return {
        "reported": [round(float(value), 5) for value in queries[kept]],
        "linear": [round(float(value), 5) for value in linear[kept]],
        "uncut": round(mean(split, scores, UNCUT), 5),
        "letor4": {str(k): round(mean(split, scores, LETOR.replace(k=k)), 5) for k in (1, 3, 5, 10)},
        "letor4_queries": int(split.sizes.size),
    }
