"""``NDCG``: the mean over the queries of an epoch, in any batches and processes, as a torchmetrics metric."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, get_args, overload

import numpy as np
import torch
from torch import Tensor

from ndcg_ml._plain.checks import KSpec, OneK, cutoffs, one_of, plain_signature, refuse_docid, true_or_false
from ndcg_ml._plain.flavor_text import hash_definition, metric_key
from ndcg_ml._plain.messages import install
from ndcg_ml.flavor import Flavor, as_arguments, as_flavor
from ndcg_ml.torch import inputs
from ndcg_ml.torch.kernel import evaluate, evaluate_or_refuse
from ndcg_ml.torch.limits import fault_message, never_compile
from ndcg_ml.torch.mean import Sums

try:
    from torchmetrics import Metric, MetricCollection
    from torchmetrics.utilities.distributed import gather_all_tensors
except ImportError as _error:
    raise ImportError(
        f"NDCG needs torchmetrics, and the losses do not. Install it with: {install('torch')}"
    ) from _error


Cutoffs = tuple[int | None, ...]
QueryIds = Literal["global", "batch"]
_NAMES = ("preds", "target")


class EpochWarning(UserWarning):
    """An ``NDCG`` may average over more or less than one epoch.

    Each metric warns once for each of these: queries are added after ``compute`` without a ``reset`` (one metric for
    two loaders, or after a sanity check); queries are added after other weights were loaded, without a ``reset``; a
    checkpoint is saved mid-epoch, without the state of the metric; several processes have equally many lists, some of
    them without ids, so that the sampler may have repeated lists.

    Examples
    --------
    If you compute running values on purpose, turn the warning off:

    >>> import warnings
    >>> warnings.filterwarnings("ignore", category=EpochWarning)
    """


_FIX = {
    "compute": "queries are added after compute without a reset: the next value includes the queries before compute. "
    "Call reset between epochs, after a sanity check and between loaders, or use one metric per loader. For running "
    "values, call warnings.filterwarnings('ignore', category=ndcg_ml.torch.EpochWarning).",
    "load": "queries are added after load_state_dict without a reset: the next value includes queries that were scored "
    "with other weights. Call reset after loading.",
    "state": "this state_dict leaves out the queries seen since the last reset: an epoch that is resumed from it is "
    "averaged over the rest. Call metric.persistent(True) before training to save them, or save checkpoints between "
    "epochs.",
    "repeats": "all processes have equally many lists, and some of these have no ids: a DistributedSampler, which "
    "repeats lists to that end, would count them twice. Pass indexes=, one id per list, to find repeated lists.",
}

_uncompiled = never_compile("an NDCG adds to its state; ndcg_ml.torch.ndcg can be compiled")


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T = TypeVar("T", default=Tensor)
else:
    from typing import TypeVar

    T = TypeVar("T")


class NDCG(Metric, Generic[T]):  # type: ignore[misc]  # torchmetrics is untyped here
    r"""NDCG over all queries seen, as a ``torchmetrics.Metric``.

        value = (sum over queries q of NDCG_q@k) / (number of queries)

    (or, with ``aggregate="micro"``, sum of DCG / sum of IDCG). The value is that of the whole epoch, however its
    queries are divided into batches and processes. Methods raise an error for input that would change it.

    Parameters
    ----------
    flavor : Flavor, name of a preset, or a flavor's text, default "sklearn"
        The definition of NDCG. ``ties="docid"`` is refused, because ``update`` receives no document ids.
    k : int, None, or sequence of these, default the flavor's own
        Cut-off; None for the whole list. With a sequence, ``compute`` returns a dict, which tools that expect a tensor
        (``MetricTracker.best_metric``, Lightning's ``log_dict``) do not take: for these, use ``ndcg_collection``.
    query_ids : {"global", "batch"}, default "global"
        Meaning of the ids passed to ``update``. "global" (as in torchmetrics): an id identifies one query of the whole
        epoch, over all updates and processes, and ``compute`` raises if a query appeared more than once. "batch": ids
        start again in every update, so that nothing can be checked.
    split_queries : bool, default False
        Whether the rows of one query may be spread over updates and processes. They are then kept until ``compute``,
        and memory grows with the number of rows. Needs ids, and ``query_ids="global"``.
    compute_on_cpu, dist_sync_on_step, process_group, dist_sync_fn, distributed_available_fn, sync_on_compute, \
compute_with_cache
        Passed to ``torchmetrics.Metric``, which documents them. Leave ``dist_sync_on_step`` off if processes may have
        different numbers of batches: torchmetrics would deadlock.

    Attributes
    ----------
    flavor : Flavor
        Includes `k` if that is a single cut-off.
    ks : tuple of int or None
        The cut-offs.
    query_ids : str
    split_queries : bool

    Raises
    ------
    TypeError, ValueError
        As for ``Flavor``; or ``ties="docid"``. ``update`` raises the errors of ``ndcg_ml.torch.ndcg``. On an
        accelerator, ``update`` only checks shapes and dtypes, so that it does not wait for the device, and ``compute``
        raises an error for NaN scores, refused labels and (under ``empty="raise"``) empty queries. ``compute`` also
        raises an error if a query appeared more than once, and if there is no query to average, or only empty ones
        under ``empty="skip"``.

    See Also
    --------
    ndcg_ml.torch.ndcg : the value of each query.

    Notes
    -----
    The state consists of float64 sums, int64 counts and the ids of the queries seen, 8 bytes each (on an accelerator 16
    bytes per list, or per row of 1-D input, until ``compute``). It remains exact if the model is cast
    (``.to(torch.bfloat16)``, ``set_dtype``), and adds up over processes with any number of batches, including none.

    Use a metric in one thread at a time, like every metric of torchmetrics. A checkpoint that another thread saves
    during ``update`` may mix the states before and after a batch.

    Checkpoints do not include the state unless you call ``persistent(True)``, which you need to resume in the middle of
    an epoch. It is not the default for three reasons. A checkpoint after a validation would hold all its queries, and a
    resumed run would count them again. A checkpoint holds the queries of one process, and all processes would load
    them. And a model without the metric could not load the checkpoint. A state of another flavor, or of other
    cut-offs, is refused.

    A metric gives at most one ``EpochWarning`` of each kind.

    ``torchmetrics.wrappers.BootStrapper`` resamples the first dimension: the queries of padded input, but the rows of
    1-D input, which divides queries. Use it with padded input and without `indexes`, because a query that is drawn
    twice would be refused. ``Running`` refuses queries that appear twice within its window.

    A ``DistributedSampler`` repeats examples so that all processes have the same number. With ids, repeated queries are
    detected and refused. Padded input without `indexes` causes a warning if all processes have equally many lists, and
    rows under ``split_queries=True`` are not checked: use a sampler that does not repeat, such as
    ``range(rank, n, world_size)``.

    With ``split_queries=True``, rows keep their dtypes, and ``compute`` gathers those of all processes in each process.
    "first" and "last" order ties by arrival, by process and then by update.

    Calling the metric (``forward``) returns the value of the batch, or nan if the batch has no query to average. The
    mean of these values is not the value of the epoch; use ``compute``.

    Metrics with different flavors or cut-offs never share a compute group of a ``MetricCollection``. Callables are
    equal if they are imported from the same place, in any process. A lambda, or another callable that cannot be
    imported by name, is only equal to itself, so that its state can only be loaded in the same process.

    The keys of the dict, ``ndcg_at_10`` and ``ndcg`` (without a cut-off), are valid in file names and all loggers. The
    cut-off, ``result[10]``, returns the same value.

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

    If the rows of query 0 are in two batches:

    >>> first = torch.tensor([0.2, 0.5]), torch.tensor([1, 1]), torch.tensor([0, 1])
    >>> second = torch.tensor([0.8]), torch.tensor([0]), torch.tensor([0])
    >>> pieces, whole = NDCG(), NDCG(split_queries=True)
    >>> for preds, target, indexes in (first, second):
    ...     pieces.update(preds, target, indexes)
    ...     whole.update(preds, target, indexes)
    >>> round(whole.compute().item(), 6)
    0.815465
    >>> pieces.compute()
    Traceback (most recent call last):
        ...
    ValueError: under query_ids='global' each query must appear once, whole; 1 of the queries appeared ...
    """

    is_differentiable: bool | None = False
    higher_is_better: bool | None = True
    full_state_update: bool | None = False

    n_queries: Tensor
    ids: list[Tensor]
    """One entry per query."""
    row_ids: list[Tensor]
    """Ids of rows or lists on a device, and 1 for one of each query, until ``compute`` reduces them to `ids`."""
    _update_count: int  # torchmetrics sets these two
    compute_on_cpu: bool
    _closed: str | None = None
    """"compute" or "load" if that was called since the last update, so that another update needs a reset."""
    _warned: tuple[str, ...] = ()

    __call__: Callable[..., T]

    # fmt: off
    @overload
    def __init__(
        self: NDCG[Tensor], flavor: Flavor | str = ..., *, k: OneK = ..., query_ids: QueryIds = ...,
        split_queries: bool = ..., compute_on_cpu: bool = ..., dist_sync_on_step: bool = ..., process_group: Any = ...,
        dist_sync_fn: Callable[..., Any] | None = ..., distributed_available_fn: Callable[..., Any] | None = ...,
        sync_on_compute: bool = ..., compute_with_cache: bool = ..., _column: int | None = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: NDCG[ByCutoff], flavor: Flavor | str = ..., *, k: Sequence[int | None], query_ids: QueryIds = ...,
        split_queries: bool = ..., compute_on_cpu: bool = ..., dist_sync_on_step: bool = ..., process_group: Any = ...,
        dist_sync_fn: Callable[..., Any] | None = ..., distributed_available_fn: Callable[..., Any] | None = ...,
        sync_on_compute: bool = ..., compute_with_cache: bool = ..., _column: int | None = ...,
    ) -> None: ...
    # fmt: on
    @plain_signature
    def __init__(
        self,
        flavor: Flavor | str = "sklearn",
        *,
        k: KSpec = ...,
        query_ids: QueryIds = "global",
        split_queries: bool = False,
        compute_on_cpu: bool = False,
        dist_sync_on_step: bool = False,
        process_group: Any = None,
        dist_sync_fn: Callable[..., Any] | None = None,
        distributed_available_fn: Callable[..., Any] | None = None,
        sync_on_compute: bool = True,
        compute_with_cache: bool = True,
        _column: int | None = None,
    ) -> None:
        # Arguments are checked before torchmetrics sets anything up.
        flavor = as_flavor(flavor)
        ks, several = cutoffs(k, flavor)
        refuse_docid(flavor, "NDCG", "update receives no document ids (ndcg_ml.torch.ndcg does, as doc_id=)")
        one_of(query_ids, "query_ids", get_args(QueryIds))
        true_or_false(split_queries, "split_queries")
        if split_queries and query_ids == "batch":
            raise ValueError(
                "split_queries must be False under query_ids='batch', because rows are joined by ids of the whole "
                "epoch; got split_queries=True. Number the queries over the whole epoch and pass query_ids='global'."
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
        # The cut-off whose value ``compute`` returns; None for all of them.
        self._column = _column if several else 0
        self.flavor: Flavor = flavor if self._column is None else flavor.replace(k=ks[self._column])
        self.ks = ks
        self.query_ids = query_ids
        self.split_queries = split_queries
        self._batch_alone = False
        # The state: sums and the ids seen, or the rows if queries arrive in parts.
        lists: tuple[str, ...] = ("ids", "row_ids") if query_ids == "global" else ()
        if split_queries:
            lists = inputs.MetricRows._fields
        else:
            for name, zeros in Sums.zeros(len(ks))._asdict().items():
                self.add_state(name, zeros, dist_reduce_fx="sum")
        for name in lists:
            self.add_state(name, [], dist_reduce_fx="cat")
        # A MetricCollection merges metrics whose states have equal names and, after one batch, equal values. Different
        # definitions may agree on a batch, so the name of this unused state distinguishes them.
        meaning = f"meaning_{hash_definition(flavor, ks)}"
        self.add_state(meaning, torch.zeros((), dtype=torch.int64), dist_reduce_fx="sum")

    def __repr__(self) -> str:
        ids = "" if self.query_ids == "global" else f", query_ids={self.query_ids!r}"
        split = ", split_queries=True" if self.split_queries else ""
        ks = self.ks if self._column is None else (self.flavor.k,)
        return f"NDCG({as_arguments(self.flavor, ks, self._column is None)}{ids}{split})"

    @_uncompiled
    def update(self, preds: Tensor, target: Tensor, indexes: Tensor | None = None, mask: Tensor | None = None) -> None:
        """Add queries, or under ``split_queries=True`` rows of queries.

        Parameters
        ----------
        preds : Tensor
            Scores, shape (..., n_documents) with one query per row, or (n_rows,) with `indexes`.
        target : Tensor
            Relevance labels, shape of `preds`.
        indexes : Tensor of int, optional
            Query ids: one per row of 1-D input, which requires them, or one per list of padded input, shape
            ``preds.shape[:-1]``, to detect queries that appear more than once.
        mask : Tensor of bool, optional
            True for slots of padded input with a document. A list without any is padding, not a query.

        Raises
        ------
        TypeError, ValueError
            As for ``ndcg_ml.torch.ndcg``; on an accelerator, ``compute`` raises errors in the data. `indexes` have
            dtype uint64. Padded input has `indexes` under ``query_ids="batch"``, or none under ``split_queries=True``.

        Warns
        -----
        UserWarning
            `preds` are integers and `target` floats, as if the two were swapped; or every query has one document.
        EpochWarning
            See the class.
        """
        if not self._batch_alone:
            self._warn_if_closed()
        preds, target = inputs.scores_and_labels(preds, target, mask, _NAMES)
        if isinstance(indexes, Tensor) and indexes.dtype == torch.uint64:
            raise TypeError(
                "indexes must hold signed integers, as which they are kept; got dtype torch.uint64. Pass "
                "indexes.long(): ids from 2^63 on become negative, and different ones stay different."
            )
        list_ids = None
        if self.split_queries and indexes is None:
            raise ValueError(
                "indexes must be given under split_queries=True; got None. Pass one query id per row of 1-D input or "
                "per list, shape preds.shape[:-1], or split_queries=False if every list is a whole query."
            )
        if preds.ndim > 1:  # ids of padded input are per list
            if self.query_ids == "batch" and indexes is not None:
                raise ValueError(
                    "indexes of padded input must not be given under query_ids='batch', where they have no use; got "
                    f"{type(indexes).__name__}. Remove indexes, or pass query_ids='global'."
                )
            if indexes is not None:
                list_ids, indexes = inputs.read_list_ids(preds, indexes), None
        # Parts of queries are kept until all have arrived. Of whole queries, the sums and the ids are.
        if self.split_queries:
            self._keep_rows(preds, target, indexes, mask, list_ids)
        else:
            self._keep_sums(preds, target, indexes, mask, list_ids)

    def _keep_sums(self, preds: Tensor, target: Tensor, indexes: Any, mask: Any, list_ids: Tensor | None) -> None:
        """Add the sums of these queries, and keep their ids to detect queries that appear again."""
        totals = inputs.rank_on_host(self.flavor, self.ks, preds, target, mask=mask, indexes=indexes)
        held, ids = "ids", None
        if totals is not None:
            sums = Sums.from_numpy(totals.sums(self.flavor))
            if list_ids is not None or indexes is not None:
                ids = torch.from_numpy(totals.ids.astype(np.int64))
                ids = ids if list_ids is None else list_ids[ids]  # ids of padded lists were positions
        else:
            batch = inputs.read_batch(self.flavor, preds, target, mask=mask, indexes=indexes, names=_NAMES)
            if batch is None:
                return
            if _can_read(preds):
                of_batch = evaluate_or_refuse(self.flavor, self.ks, batch, _NAMES)
            else:
                of_batch = evaluate(self.flavor, self.ks, batch)
            sums = of_batch.sums(self.flavor)
            # The id of each query, from those of rows or of lists. Only the device knows which ones are of queries.
            first = of_batch.filled if batch.rows is None else batch.layout.starts
            given = list_ids if batch.rows is None else indexes.detach().long()[batch.rows]
            if given is not None and _can_read(preds):
                ids = given[first]
            elif given is not None:
                held, ids = "row_ids", torch.stack([given, first.long()])
        added: dict[str, Any] = {}
        for name, more in sums._asdict().items():
            state = getattr(self, name)
            # In a new tensor, because copies of the state share the old one.
            added[name] = state + more.to(state.device)
        if self.query_ids == "global" and ids is not None:
            added[held] = [*getattr(self, held), ids.to(self.device)]
        self.__dict__.update(added)  # at once, so that an interrupt leaves whole batches

    def _keep_rows(self, preds: Tensor, target: Tensor, indexes: Any, mask: Any, list_ids: Tensor | None) -> None:
        """Keep the rows, and raise for faults in them that can be detected now."""
        flavor, can_read = self.flavor.replace(empty=0.0), _can_read(preds)  # whether a query is empty is not known yet
        if inputs.rank_on_host(flavor, (1,), preds, target, mask=mask, indexes=indexes, whole=False) is None:
            batch = inputs.read_batch(flavor, preds, target, mask=mask, indexes=indexes, names=_NAMES)
            if batch is not None and can_read:
                evaluate_or_refuse(flavor, (1,), batch, _NAMES)
        ids = indexes if list_ids is None else list_ids
        added = inputs.flatten_rows(preds, target, ids, mask, drop=can_read)._asdict()
        if added["ids"].numel():
            self.__dict__.update({name: [*getattr(self, name), part.to(self.device)] for name, part in added.items()})

    @_uncompiled
    def forward(self, *args: Any, **kwargs: Any) -> T:
        """Add a batch as ``update`` does, and return the value of this batch.

        Returns
        -------
        Tensor or dict
            As for ``compute``; nan if the batch has no query to average, or under ``split_queries=True`` a part of a
            query that ``empty="raise"`` would refuse.

        Raises
        ------
        TypeError, ValueError
            As for ``update`` and ``compute``. The state is then unchanged.
        """
        self._warn_if_closed()
        before = {**self.__dict__, **self._copy_state_dict()}
        self._batch_alone = True
        try:
            return super().forward(*args, **kwargs)
        except BaseException:  # also a warning as an error, and an interrupt
            self.__dict__.update(before)  # torchmetrics has replaced the state and its switches for this batch
            raise
        finally:
            self._batch_alone = False

    @_uncompiled
    def compute(self) -> T:
        """Compute the value over all queries seen.

        Returns
        -------
        Tensor of float64 without dimensions, or dict of such
            With several cut-offs, a dict by name, ``ndcg_at_10`` or ``ndcg``, which also accepts cut-offs as keys.

        Raises
        ------
        ValueError
            There is no query to average; a query appeared more than once; or the data were invalid (see the class).
        """
        try:
            values = self._values()
        except ValueError:
            if self._is_synced and self._should_unsync:  # torchmetrics would keep the gathered state
                self.unsync()
            raise
        if not self._batch_alone:
            self._closed = "compute"
        found: Any = values[self._column or 0]
        if self._column is None:
            found = ByCutoff(zip(map(metric_key, self.ks), values, strict=True))
        return found

    def _values(self) -> Tensor:
        sums = self._sum_rows() if self.split_queries else Sums(*(getattr(self, name) for name in Sums._fields))
        refused = fault_message(self.flavor, sums.faults.tolist(), _NAMES)
        if refused is not None:
            raise ValueError(f"{refused} (Found in the batches since the last reset; reset before you continue.)")
        if self.query_ids == "global" and not self.split_queries:
            self._refuse_queries_seen_twice()
        if not self._batch_alone:
            n_queries = int(sums.n_queries)
            if n_queries == 0:
                raise ValueError("NDCG has seen no query. Call update before compute.")
            if self.flavor.empty == "skip" and n_queries in sums.n_empty.tolist():
                raise ValueError(
                    f"a query must have a relevant document under empty='skip'; all {n_queries} queries have an ideal "
                    "DCG of 0. Check the labels, or use a flavor with empty=0, 1 or nan."
                )
        return sums.mean(self.flavor)

    def _sum_rows(self) -> Sums:
        """Compute the sums over the queries of all rows."""
        dtypes = self._dtypes_of_lists()
        # Values in a single dtype keep it, to save time and memory.
        for name in ("preds", "target"):
            held = {part.dtype for part in getattr(self, name)}
            dtypes[name] = held.pop() if len(held) == 1 else dtypes[name]
        rows = inputs.MetricRows(*(self._join(name, dtypes[name]) for name in inputs.MetricRows._fields))
        preds, target, ids = (part[rows.listed] for part in rows[:3])
        flavor = self.flavor
        if flavor.empty == "raise" and self._batch_alone:  # a part of a query may have no relevant document
            flavor = flavor.replace(empty=math.nan)
        on_host = inputs.rank_on_host(flavor, self.ks, preds, target, indexes=ids)
        if on_host is not None:
            return Sums.from_numpy(on_host.sums(flavor))
        batch = inputs.read_batch(flavor, preds, target, indexes=ids)
        if batch is None:
            return Sums.zeros(len(self.ks), self.device)
        return evaluate(flavor, self.ks, batch).sums(flavor)

    def _join(self, name: str, dtype: torch.dtype) -> Tensor:
        """Concatenate the parts of a list, of which there may be none."""
        parts = getattr(self, name)
        if not parts:
            return torch.zeros(0, dtype=dtype, device=self.device)
        convert = inputs.to_floats if name == "preds" else Tensor.to
        return torch.cat([convert(part, dtype).to(self.device) for part in parts])

    def _refuse_queries_seen_twice(self) -> None:
        self._reduce_row_ids()
        ids = np.sort(self._join("ids", torch.int64).cpu().numpy())
        again = np.unique(ids[1:][ids[1:] == ids[:-1]])
        if again.size:
            raise ValueError(
                f"under query_ids='global' each query must appear once, whole; {again.size} of the queries appeared "
                f"more than once (such as id {again[0]}), in two updates, on two processes, or as two padded lists. If "
                "rows of a query are spread over batches, use NDCG(split_queries=True). If ids start again in each "
                "batch, use NDCG(query_ids='batch'), where padded lists have no ids. If the sampler repeats examples, "
                "as DistributedSampler does, use one that does not, such as range(rank, n, world_size). Then reset."
            )

    def _reduce_row_ids(self) -> None:
        """Reduce ids of rows to ids of queries, which makes the host wait."""
        ids = [*self.ids, *(given[first > 0] for given, first in self.row_ids)]
        self.__dict__.update(ids=ids, row_ids=[])

    # -- epochs ------------------------------------------------------------------------------------------------------

    def _warn_if_closed(self) -> None:
        """Warn if an update needs a reset first."""
        if self._closed is not None:
            self._warn(self._closed)
            self._closed = None

    def _warn(self, reason: str, stacklevel: int = 6) -> None:
        if reason not in self._warned:
            self._warned = (*self._warned, reason)
            warnings.warn(_FIX[reason], EpochWarning, stacklevel=stacklevel)

    def reset(self) -> None:
        """Remove all queries, as between two epochs."""
        for name, default in self._defaults.items():
            if isinstance(default, list):  # torchmetrics would empty the list in place, which Running may have stored
                setattr(self, name, [])
        super().reset()
        if not self._batch_alone:  # forward resets the metric temporarily
            self._closed = None

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the state of the metric if ``persistent(True)`` was called, and an empty dict otherwise.

        Returns
        -------
        dict

        Warns
        -----
        EpochWarning
            It is called mid-epoch, and the queries seen are not in it.
        """
        if self._update_count and self._closed is None and not any(self._persistent.values()):
            self._warn("state")
        return super().state_dict(*args, **kwargs)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: Any, strict: bool, *found: list[str]
    ) -> None:
        given = [name for name in self._defaults if prefix + name in state_dict]
        if any(name.startswith(f"{prefix}meaning_") and name[len(prefix) :] not in given for name in state_dict):
            found[-1].append(
                f"{prefix.rstrip('.') or 'the metric'}: the checkpoint holds queries of an NDCG of another flavor or "
                f"other cut-offs than {self.flavor} at {list(self.ks)}. Build the same metric, or remove the keys of "
                f"the checkpoint that begin with {prefix!r}. (A lambda or local function as gain or discount differs "
                "between processes: define it in a module.)"
            )
            return
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, *found)
        if given:
            self._take_states({name: getattr(self, name) for name in given})
            self._update_count, self._computed, self._closed = max(self._update_count, 1), None, None
        elif self._update_count:
            self._closed = "load"

    # -- processes and copies ----------------------------------------------------------------------------------------

    def _dtypes_of_lists(self) -> dict[str, torch.dtype]:
        """The dtypes in which processes exchange lists; a process without data cannot infer them."""
        values = inputs.working_dtype(self.device)  # exact for the values of all narrower dtypes
        dtypes = {"preds": values, "target": values, "ids": torch.int64, "listed": torch.bool}
        return {name: dtype for name, dtype in dtypes.items() if name in self._defaults}

    def _sync_dist(self, dist_sync_fn: Callable[..., Any] = gather_all_tensors, process_group: Any = None) -> None:
        # torchmetrics gathers one tensor per entry of this process's lists, which hangs if another process has a
        # different number of entries or dtype, and fails if it has none. One tensor per list always works.
        group = process_group or self.process_group
        if "row_ids" in self._defaults:
            self._reduce_row_ids()
        for name, dtype in self._dtypes_of_lists().items():
            setattr(self, name, list(dist_sync_fn(self._join(name, dtype), group=group)))
        for name, default in self._defaults.items():
            if isinstance(default, Tensor):
                of_processes = list(dist_sync_fn(getattr(self, name), group=group))
                setattr(self, name, torch.stack(of_processes).sum(0))
                if name == "n_queries" and not self._batch_alone and "ids" in self._defaults:
                    # A sampler that makes all processes equal may have repeated lists without ids.
                    n_ids = sum(part.numel() for part in self.ids)
                    if len(of_processes) > 1 == len(set(map(int, of_processes))) and n_ids < self.n_queries:
                        self._warn("repeats", stacklevel=7)

    def merge_state(self, incoming_state: dict[str, Any] | Metric) -> None:
        """Add the queries of another metric after those of this one.

        Parameters
        ----------
        incoming_state : NDCG, or its ``metric_state``
            Of the same flavor, cut-offs, `query_ids` and `split_queries`.

        Raises
        ------
        ValueError
            It is not an NDCG state, or its settings differ.
        """
        states: object = incoming_state
        n_updates = 1
        if isinstance(incoming_state, NDCG):
            states, n_updates = incoming_state.metric_state, incoming_state.update_count
        if not isinstance(states, dict) or set(states) != set(self._defaults):
            raise ValueError(
                "incoming_state must be an NDCG, or its metric_state, of the same flavor, cut-offs, query_ids and "
                f"split_queries as this metric ({self.flavor}); got {type(incoming_state).__name__} with other states."
            )
        mine = self._copy_state_dict()
        self._take_states(states)
        self._reduce_states(mine)
        self._update_count += n_updates
        self._computed = None

    def _take_states(self, states: dict[str, Any]) -> None:
        """Set these states, on the device of the metric."""
        for name, state in states.items():
            moved = state.to(self.device) if isinstance(state, Tensor) else [part.to(self.device) for part in state]
            setattr(self, name, moved)

    def _copy_state_dict(self) -> dict[str, Tensor | list[Tensor]]:
        # Tensors of the state are never changed in place and can be shared. Copying them in every forward, as
        # torchmetrics does, takes time that is quadratic in the number of batches.
        states: dict[str, Tensor | list[Tensor]] = self.metric_state
        return {name: list(state) if isinstance(state, list) else state for name, state in states.items()}

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Plot a value or a sequence of values, as other metrics of torchmetrics do.

        Parameters
        ----------
        val : result of ``compute`` or ``forward``, or a sequence of such, default the result of ``compute``
        ax : matplotlib axis, default a new one

        Returns
        -------
        tuple of matplotlib figure and axis
        """
        return self._plot(val, ax)

    def _apply(self, fn: Callable[[Tensor], Tensor], exclude_state: Sequence[str] = "") -> NDCG:
        def moved(tensor: Tensor) -> Tensor:
            device = fn(tensor.new_empty(0, dtype=torch.int64)).device
            if device.type == "mps" and tensor.dtype == torch.float64:  # Apple's GPUs have no float64
                return tensor.float().to(device)
            out = fn(tensor)
            return out if out.dtype == tensor.dtype else tensor.to(device)

        return super()._apply(moved, exclude_state)


def _can_read(tensor: Tensor) -> bool:
    """Whether the host can read the values without waiting for a device."""
    return tensor.is_cpu and not torch.compiler.is_compiling()


@plain_signature
def ndcg_collection(
    flavor: Flavor | str = "sklearn", *, k: KSpec = ..., query_ids: QueryIds = "global", split_queries: bool = False
) -> MetricCollection:
    """Make a collection of one ``NDCG`` per cut-off, whose metrics share their states.

    Each of its metrics computes one tensor, as tools for collections expect (``MetricTracker``, ``plot``, Lightning's
    ``log_dict``). A batch is ranked once for all cut-offs.

    Parameters
    ----------
    flavor, query_ids, split_queries
        As for ``NDCG``.
    k : int, None, or sequence of these, default the flavor's own
        The cut-offs.

    Returns
    -------
    torchmetrics.MetricCollection
        One compute group with the keys ``ndcg_at_5``, or ``ndcg`` without a cut-off. For a prefix, ``clone(prefix=)``.
        For a tool that takes a single metric, such as ``BootStrapper``, pass one of these: ``collection["ndcg_at_5"]``.

    Raises
    ------
    TypeError, ValueError
        As for ``NDCG``.

    Examples
    --------
    >>> import torch
    >>> collection = ndcg_collection("sklearn", k=[1, 2])
    >>> collection.update(torch.tensor([[0.9, 0.1, 0.3]]), torch.tensor([[3, 1, 0]]))
    >>> {name: round(value.item(), 6) for name, value in collection.compute().items()}
    {'ndcg_at_1': 1.0, 'ndcg_at_2': 0.826235}
    """
    ks, _ = cutoffs(k, as_flavor(flavor))
    metrics = {
        metric_key(cutoff): NDCG(flavor, k=ks, query_ids=query_ids, split_queries=split_queries, _column=column)
        for column, cutoff in enumerate(ks)
    }
    return MetricCollection(metrics, compute_groups=[list(metrics)])


class ByCutoff(dict[Any, Tensor]):
    """Values by name, ``ndcg_at_5``, or by cut-off, 5."""

    def __missing__(self, key: object) -> Tensor:
        if key is None or (isinstance(key, int) and not isinstance(key, bool)):
            name = metric_key(key)
            if name in self:
                return self[name]
        raise KeyError(key)
