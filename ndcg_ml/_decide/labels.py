"""Digests of each query's labels, which reveal labels and documents that changed between evaluations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.result import Evaluation
from ndcg_ml._core.scored_documents import Scored
from ndcg_ml._core.scores import Prepared
from ndcg_ml._files.byte_ids import Names, digests
from ndcg_ml.runs import RunEvaluation


def label_digests(evaluation: Evaluation[Any]) -> NDArray[np.uint64] | None:
    """Digest each query's pairs of document and label; None if the documents are not known.

    Documents are identified by their ids, or without ids by their positions in the query. Unlabelled documents are
    ignored. Raises a ValueError if the evaluated arrays were modified since.
    """
    if isinstance(evaluation, RunEvaluation):
        return evaluation._judgements
    if evaluation._labels is not None or evaluation._scored is None or not evaluation._scored.rows_are_documents:
        return evaluation._labels
    scored = evaluation._scored
    scores = scored.scores.reshape(scored.queries.labels.shape)
    now = Prepared(evaluation.flavor, evaluation.k, scored.queries).totals(scores)
    if not all(map(np.array_equal, (now.dcg, now.ideal), (evaluation._totals.dcg, evaluation._totals.ideal))):
        raise ValueError(
            "the labels and scores must be those that were evaluated; the arrays were modified since. Evaluate "
            "them again, or pass copies."
        )
    found = np.zeros(scored.queries.n_queries, dtype=np.uint64)
    if scored.queries.names is not None:
        documents = scored.queries.names(scored.queries.groups.rows())
        found += _pair_digests(scored, [str(document) for document in documents])
    if scored.queries.names is None or evaluation.flavor.ideal == "given":  # the ideal depends on the row order
        groups = scored.queries.groups
        found += _pair_digests(
            scored, (np.arange(groups.sizes.sum()) - np.repeat(groups.starts, groups.sizes)).tolist()
        )
    return found


def _pair_digests(scored: Scored, documents: list[Any]) -> NDArray[np.uint64]:
    queries, labels = scored.queries.groups.codes(), scored.labels
    judged = np.flatnonzero(~np.isnan(labels))
    names = Names()
    names.extend([str(documents[row]).encode("utf-8", "surrogatepass") for row in judged.tolist()])
    return digests(names, slice(0, len(names)), queries[judged], labels[judged], scored.queries.n_queries)
