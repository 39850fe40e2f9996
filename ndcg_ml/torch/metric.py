"""``NDCG``: the mean over queries as a torchmetrics metric, from sums that add up over batches and processes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric

from ndcg_ml.flavor import Flavor, KSpec, as_flavor, cutoffs
from ndcg_ml.torch._host import host_sums
from ndcg_ml.torch._inputs import read_batch
from ndcg_ml.torch._kernel import evaluate, snapped
from ndcg_ml.torch._problems import PROBLEMS, refusal

__all__ = ["NDCG"]


class NDCG(Metric):  # type: ignore[misc]  # torchmetrics is untyped here
    r"""NDCG over all queries seen, as a ``torchmetrics.Metric``.

    .. math::  \frac{1}{|Q|} \sum_q NDCG_q@k

    (or the flavor's ``aggregate="micro"``: sum of DCG over sum of IDCG). Every query must arrive whole, in one
    ``update`` of one process: two updates never share a query, so query ids may start again from 0 in each batch.

    Parameters
    ----------
    flavor : Flavor, name of a preset, or a flavor's text, default "sklearn"
        Which NDCG. ``ties="docid"`` is refused: a metric is given no document ids.
    k : int, None, or sequence of these, default the flavor's own
        Cut-off; None is no cut. With a sequence, ``compute`` gives a dict.
    compute_on_cpu, dist_sync_on_step, process_group, dist_sync_fn, distributed_available_fn, sync_on_compute, \
compute_with_cache
        Handed to ``torchmetrics.Metric``, which documents them. Leave ``dist_sync_on_step`` off where processes may
        see different numbers of batches: torchmetrics would wait for ever.

    Attributes
    ----------
    flavor : Flavor
        With `k` in it, where that is one cut-off.
    ks : tuple of int or None
        The cut-offs.

    Raises
    ------
    TypeError, ValueError
        As for ``Flavor``; or the tie rule is "docid". ``update`` raises as ``ndcg_ml.torch.ndcg`` does. On an
        accelerator ``update`` only looks at shapes and dtypes, so as not to wait for the device: NaN scores, refused
        labels and (under ``empty="raise"``) empty queries raise in ``compute``. ``compute`` also raises when there is
        nothing to average: no query, or only empty ones under ``empty="skip"``.

    See Also
    --------
    ndcg_ml.torch.ndcg : the value of each query.

    Notes
    -----
    The state is a handful of numbers, float64 sums and int64 counts, however many queries there are. It stays exact
    when a model is cast (``.to(torch.bfloat16)``, ``set_dtype``), is not saved in checkpoints, and adds up over
    processes with any number of batches, even none. A ``DistributedSampler`` repeats examples to make processes even;
    repeated queries count twice, here as in any metric.

    Two metrics of different flavor or cut-off are never merged into one compute group of a ``MetricCollection``.

    The keys of the dict, ``ndcg_at_10`` and ``ndcg`` (no cut-off), are legal in file names and in every logger; the
    cut-off itself, ``result[10]``, finds the same value.

    Under ``aggregate="micro"`` the sums must fit a float64, so exponential gains of grades above about 1000 raise.

    Examples
    --------
    >>> import torch
    >>> metric = NDCG("sklearn", k=[1, 2])
    >>> metric.update(torch.tensor([[0.9, 0.1, 0.3]]), torch.tensor([[3, 1, 0]]))
    >>> metric.update(torch.tensor([0.2, 0.8, 0.5]), torch.tensor([1, 0, 1]), indexes=torch.tensor([0, 0, 1]))
    >>> value = metric.compute()
    >>> {name: round(v.item(), 6) for name, v in value.items()}
    {'ndcg_at_1': 0.666667, 'ndcg_at_2': 0.819055}
    >>> value[2] is value["ndcg_at_2"]
    True
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False

    n_queries: Tensor
    n_empty: Tensor
    problems: Tensor
    ndcg_sum: Tensor
    dcg_sum: Tensor
    idcg_sum: Tensor

    def __init__(
        self,
        flavor: Flavor | str = "sklearn",
        *,
        k: KSpec = ...,
        compute_on_cpu: bool = False,
        dist_sync_on_step: bool = False,
        process_group: Any = None,
        dist_sync_fn: Callable[..., Any] | None = None,
        distributed_available_fn: Callable[..., Any] | None = None,
        sync_on_compute: bool = True,
        compute_with_cache: bool = True,
    ) -> None:
        flavor = as_flavor(flavor)
        ks, several = cutoffs(k, flavor)
        if flavor.ties == "docid":
            raise ValueError(
                "flavor.ties='docid' orders tied documents by their ids, and a metric is given none. Choose another "
                "rule, such as flavor.replace(ties='average'), or call ndcg_ml.torch.ndcg(..., doc_id=)."
            )
        super().__init__(
            compute_on_cpu=compute_on_cpu,
            dist_sync_on_step=dist_sync_on_step,
            process_group=process_group,
            dist_sync_fn=dist_sync_fn,
            distributed_available_fn=distributed_available_fn,
            sync_on_compute=sync_on_compute,
            compute_with_cache=compute_with_cache,
        )
        self.flavor = flavor if several else flavor.replace(k=ks[0])
        self.ks = ks
        self._several = several
        count = torch.int64
        self.add_state("n_queries", torch.zeros((), dtype=count), dist_reduce_fx="sum", persistent=False)
        self.add_state("n_empty", torch.zeros(len(ks), dtype=count), dist_reduce_fx="sum", persistent=False)
        self.add_state("problems", torch.zeros(len(PROBLEMS), dtype=count), dist_reduce_fx="sum", persistent=False)
        for name in ("ndcg_sum", "dcg_sum", "idcg_sum"):
            total = torch.zeros(len(ks), dtype=torch.float64)
            self.add_state(name, total, dist_reduce_fx="sum", persistent=False)
        # A MetricCollection merges metrics whose states have equal names and, after one batch, equal values. Metrics of
        # unlike meaning may well agree on one batch: the name of this state, which is never used, tells them apart.
        self.add_state(
            f"meaning_{_digest(flavor, ks)}", torch.zeros((), dtype=count), dist_reduce_fx="sum", persistent=False
        )

    def update(self, preds: Tensor, target: Tensor, indexes: Tensor | None = None, mask: Tensor | None = None) -> None:
        """Add whole queries.

        Parameters
        ----------
        preds : Tensor
            Scores, shape (..., n_documents) with one query a row, or (n_rows,) with `indexes`.
        target : Tensor
            Labels, shape of `preds`.
        indexes : Tensor of int, shape (n_rows,), optional
            One query id a row of 1-D input; ids mean nothing beyond this call.
        mask : Tensor of bool, optional
            True where a slot of padded input holds a document.

        Raises
        ------
        TypeError, ValueError
            As for ``ndcg_ml.torch.ndcg``; on an accelerator, what needs a look at the data raises in ``compute``.
        """
        sums = host_sums(self.flavor, self.ks, preds, target, indexes, mask)
        if sums is not None:
            self._add(*map(torch.as_tensor, sums))
            return
        batch = read_batch(self.flavor, preds, target, mask=mask, indexes=indexes, names=("preds", "target"))
        if batch is None:
            return
        result = evaluate(self.flavor, self.ks, batch.layout, batch.scores, batch.labels, batch.listed)
        if preds.device.type == "cpu" and not torch.compiler.is_compiling():
            refused = refusal(self.flavor, result.problems.tolist(), labels="target", scores="preds")
            if refused is not None:
                raise ValueError(refused)
        exists = batch.layout.exists.unsqueeze(-1)
        counted = exists & ~result.empty
        averaged = counted if self.flavor.empty == "skip" else exists
        self.problems = self.problems.long() + result.problems
        self._add(
            exists.sum(),
            (exists & result.empty).sum(0),
            torch.where(averaged, result.ndcg, 0.0).sum(0),
            torch.where(counted, result.dcg, 0.0).sum(0),
            torch.where(counted, result.idcg, 0.0).sum(0),
        )

    def _add(self, n_queries: Tensor, n_empty: Tensor, ndcg: Tensor, dcg: Tensor, idcg: Tensor) -> None:
        # Out of place, and restored to their dtype: a cast of the module around must not be able to narrow the sums.
        self.n_queries = self.n_queries.long() + n_queries.to(self.n_queries.device)
        self.n_empty = self.n_empty.long() + n_empty.to(self.n_empty.device)
        self.ndcg_sum = self.ndcg_sum.to(ndcg.dtype) + ndcg.to(self.ndcg_sum.device)
        self.dcg_sum = self.dcg_sum.to(ndcg.dtype) + dcg.to(self.dcg_sum.device)
        self.idcg_sum = self.idcg_sum.to(ndcg.dtype) + idcg.to(self.idcg_sum.device)

    def compute(self) -> Tensor | dict[str, Tensor]:
        """The value over all queries seen.

        Returns
        -------
        Tensor of float64 without dimensions, or dict of such
            With several cut-offs, a dict by name, ``ndcg_at_10`` or ``ndcg``, which also answers to the cut-offs.

        Raises
        ------
        ValueError
            No query was seen, or there is nothing to average; or the data seen were refused (see the class).
        """
        refused = refusal(self.flavor, self.problems.tolist(), labels="target", scores="preds")
        if refused is not None:
            raise ValueError(f"{refused} (Found by update, on the batches since the last reset.)")
        n_queries = int(self.n_queries)
        if n_queries == 0:
            raise ValueError("NDCG has seen no query, so there is nothing to average. Call update first.")
        n_counted = [n_queries - n for n in self.n_empty.tolist()]
        if self.flavor.empty == "skip" and not all(n_counted):
            raise ValueError(
                f"all {n_queries} queries are empty (ideal DCG 0), and empty='skip' leaves nothing to average. "
                "Check the labels, or choose empty=0, 1 or nan."
            )
        values = self._micro(n_counted) if self.flavor.aggregate == "micro" else self._macro(n_queries, n_counted)
        if not self._several:
            return values[0]
        return ByCutoff(zip(map(_name, self.ks), values, strict=True))

    def _macro(self, n_queries: int, n_counted: Sequence[int]) -> Tensor:
        n = n_counted if self.flavor.empty == "skip" else [n_queries] * len(self.ks)
        return self.ndcg_sum / torch.tensor(n, dtype=self.ndcg_sum.dtype, device=self.ndcg_sum.device)

    def _micro(self, n_counted: Sequence[int]) -> Tensor:
        if not bool(torch.isfinite(self.dcg_sum + self.idcg_sum).all()):
            raise ValueError(
                "the sum of DCG under aggregate='micro' is too large for float64, because the gains of the grades are. "
                "Use a smaller grade scale, or aggregate='macro', a mean of ratios that has no such limit."
            )
        value = self.flavor.empty if isinstance(self.flavor.empty, float) else math.nan
        none = torch.tensor([n == 0 for n in n_counted], device=self.idcg_sum.device)
        return torch.where(none, value, snapped(self.dcg_sum / torch.where(none, 1.0, self.idcg_sum)))

    def _apply(self, fn: Callable[[Tensor], Tensor], exclude_state: Sequence[str] = "") -> NDCG:
        def moved(tensor: Tensor) -> Tensor:
            device = fn(tensor.new_empty(0, dtype=torch.int64)).device
            if device.type == "mps" and tensor.dtype == torch.float64:  # has no float64
                return tensor.float().to(device)
            out = fn(tensor)
            return out if out.dtype == tensor.dtype else tensor.to(device)

        applied: NDCG = super()._apply(moved, exclude_state)
        return applied


class ByCutoff(dict[Any, Tensor]):
    """Values by name, ``ndcg_at_5``; the cut-off itself, 5, finds the same value."""

    def __missing__(self, key: object) -> Tensor:
        if key is None or (isinstance(key, int) and not isinstance(key, bool)):
            name = _name(key)
            if name in self:
                return self[name]
        raise KeyError(key)


def _name(k: int | None) -> str:
    return "ndcg" if k is None else f"ndcg_at_{k}"


def _digest(flavor: Flavor, ks: tuple[int | None, ...]) -> str:
    """Different for metrics of different meaning."""
    # Two callables may bear one name; the flavor keeps them alive, so that their ids are their own.
    callables = [id(part) for part in (flavor.gain, flavor.discount) if callable(part)]
    return hashlib.sha256(f"{flavor.replace(k=None)} {ks} {callables}".encode()).hexdigest()[:16]
