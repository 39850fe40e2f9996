"""``ndcg``: the metric as a function of tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, overload

import numpy as np
import torch
from torch import Tensor

from ndcg_ml._plain.checks import K, KSpec, OneK, cutoffs, plain_signature
from ndcg_ml.flavor import Flavor
from ndcg_ml.torch import inputs
from ndcg_ml.torch.inputs import Batch, Flat
from ndcg_ml.torch.kernel import evaluate_or_refuse
from ndcg_ml.torch.limits import not_mapped


# fmt: off
@overload
def ndcg(
    scores: Tensor, labels: Tensor, *, flavor: Flavor | str = ..., k: OneK = ..., mask: Tensor | None = ...,
    indexes: Tensor | None = ..., retrieved: Tensor | None = ..., doc_id: Tensor | None = ...,
) -> Tensor: ...
@overload
def ndcg(
    scores: Tensor, labels: Tensor, *, flavor: Flavor | str = ..., k: Sequence[K], mask: Tensor | None = ...,
    indexes: Tensor | None = ..., retrieved: Tensor | None = ..., doc_id: Tensor | None = ...,
) -> dict[K, Tensor]: ...
# fmt: on
@plain_signature
def ndcg(
    scores: Tensor,
    labels: Tensor,
    *,
    flavor: Flavor | str = "sklearn",
    k: KSpec = ...,
    mask: Tensor | None = None,
    indexes: Tensor | None = None,
    retrieved: Tensor | None = None,
    doc_id: Tensor | None = None,
) -> Any:
    r"""Compute NDCG of each query.

        NDCG@k = DCG@k / IDCG@k,  DCG@k = sum over documents d of gain(y_d) w_d

    where w_d is the expected discount of document *d* under the flavor's tie-breaking rule.

    Parameters
    ----------
    scores : Tensor
        One score per document, higher is better, of any real dtype. Padded: shape (..., n_documents), one query per
        row. Flat: shape (n_rows,), with `indexes`. Scores are compared in their own precision (half precision has many
        ties), or in float32 if the flavor says so. -inf ranks last.
    labels : Tensor
        Relevance labels, shape of `scores`, of any real dtype. NaN is an unjudged document.
    flavor : Flavor, name of a preset, or a flavor's text, default "sklearn"
        The definition of NDCG.
    k : int, None, or sequence of these, default the flavor's own
        Cut-off; None for the whole list. With a sequence, a dict is returned.
    mask : Tensor of bool, optional
        Padded form only: True for slots with a document. The contents of other slots are ignored. A list without any
        document is padding, not a query.
    indexes : Tensor of int, shape (n_rows,), optional
        Flat form only: one query id per row, any values, in any order.
    retrieved : Tensor of bool, shape of `scores`, optional
        Documents that were retrieved. The others are only judged, and their scores are ignored. Default all.
    doc_id : Tensor of int, shape of `scores`, optional
        Document ids, for tie-breaking by id and to find repeated documents (``duplicates``). Ids are compared as
        decimal text, as in trec_eval: 10 comes before 9. Repeated documents are scored for plain tensors on the CPU,
        and refused otherwise.

    Returns
    -------
    Tensor of float64, or dict of such by cut-off
        One value per query, on the device of `scores`, without a gradient (see ``ApproxNDCGLoss``). Padded: the leading
        shape of `scores`, with nan for a list without documents. Flat: one entry per query, in the order in which the
        queries first appear. An empty query has the value of ``flavor.empty``, or nan if that is "skip". float32 on
        devices without float64 (mps).

    Raises
    ------
    TypeError
        An argument is not a tensor, or has an unsupported dtype; or as for ``Flavor``.
    ValueError
        Shapes do not match, 1-D input has no `indexes`, scores are NaN, the flavor refuses labels, queries are empty
        under ``empty="raise"``, or there is no query.

    Warns
    -----
    UserWarning
        `scores` are integers and `labels` are floats, as if the two were swapped; or every query has one document.

    See Also
    --------
    ndcg_ml.ndcg_score : the same number from NumPy arrays.
    NDCG : the mean over batches, as a torchmetrics metric.

    Notes
    -----
    You can compile the padded form, ``torch.compile(ndcg, fullgraph=True)``, unless the gain or the discount is a
    callable or ties are broken by id, which needs the host. (torch 2.4 breaks the graph for a flavor given as a string
    and for ``ideal="max"``.) Compiled code and ``torch.func.vmap`` cannot raise, so that invalid queries (NaN score,
    refused label), and empty ones under ``empty="raise"``, are nan there. Eager code waits for the device to find such
    queries, and with flat input also to count the queries.

    Plain tensors on the CPU are ranked by the kernel of ``ndcg_score``, which is several times faster there than
    torch's sort, except in compiled or traced code and under ``torch.func``. The values are the same.

    Averaging over ties follows McSherry and Najork 2008.

    Examples
    --------
    >>> import torch
    >>> scores = torch.tensor([[0.9, 0.1, 0.3], [0.5, 0.2, 0.0]])
    >>> labels = torch.tensor([[3, 1, 0], [0, 1, 0]])
    >>> mask = torch.tensor([[True, True, True], [True, True, False]])
    >>> [round(value, 6) for value in ndcg(scores, labels, flavor="sklearn", k=2, mask=mask).tolist()]
    [0.826235, 0.63093]
    >>> ids = torch.tensor([7, 7, 4])
    >>> ndcg(torch.tensor([0.2, 0.8, 0.1]), torch.tensor([0, 1, 1]), indexes=ids).tolist()
    [1.0, 1.0]
    """
    flavor = inputs.read_flavor(flavor)
    ks, several = cutoffs(k, flavor)
    scores, labels = inputs.scores_and_labels(scores, labels, mask)
    # The NumPy kernel if it can take the tensors, and otherwise the torch kernel, which raises all errors.
    optional: dict[str, Any] = {"mask": mask, "indexes": indexes, "retrieved": retrieved, "doc_id": doc_id}
    totals = inputs.rank_on_host(flavor, ks, scores, labels, **optional)
    if totals is None:
        batch = inputs.read_batch(flavor, scores, labels, **optional)
        if batch is None:
            raise ValueError(
                f"scores must hold at least one query; got shape {tuple(scores.shape)}. Skip batches without queries."
            )
        values = _restore_query_order(evaluate_or_refuse(flavor, ks, batch).ndcg(flavor), batch)
    else:
        values = torch.from_numpy(totals.ndcg(flavor)[0])
        if scores.ndim > 1:  # queries are the lists that have documents
            of_lists = np.full((*scores.shape[:-1], len(ks)), math.nan)
            of_lists.reshape(-1, len(ks))[totals.ids] = values.numpy()
            values = torch.from_numpy(of_lists)
    if several:
        return {cut: values[..., column] for column, cut in enumerate(ks)}
    return values[..., 0]


def _restore_query_order(values: Tensor, batch: Batch) -> Tensor:
    if batch.rows is None:
        return values if len(batch.shape) == 1 else values.reshape(*batch.shape, values.shape[-1])
    assert isinstance(batch.layout, Flat)
    with not_mapped(
        "indexes must be the same for all samples of torch.func.vmap, because they determine shapes; got indexes that "
        "are mapped over. Pass padded lists with mask=, or in_dims=None for indexes."
    ):
        first_rows = batch.rows[batch.layout.starts]  # one per query
    return values[: first_rows.numel()][first_rows.argsort()]
