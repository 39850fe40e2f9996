"""Compare scores of the same documents, and numbers per query, by default under the names a, b, c, ..."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ndcg_ml import Comparison, compare, compare_values, evaluate

OF_DATA = ("qid", "group", "mask", "retrieved", "doc_id", "query_weight", "flavor", "k")


def by_scores(*scores: Any, y_true: Any, **options: Any) -> Comparison:
    data = {name: options.pop(name) for name in OF_DATA if name in options}
    return compare(*(evaluate(y_true, each, **data) for each in scores), **options)


def by_values(*systems: Any, names: Sequence[str] | None = None, **options: Any) -> Comparison:
    if isinstance(systems[0], Mapping):
        return compare_values(systems[0], **options)
    letters = [chr(ord("a") + at) if at < 26 else f"s{at + 1}" for at in range(len(systems))]
    return compare_values(dict(zip(names or letters, systems, strict=True)), **options)
