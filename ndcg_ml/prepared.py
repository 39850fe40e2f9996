"""Labels, layout and flavor worked out once: what every evaluation of new scores shares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml import _aggregate, _numpy
from ndcg_ml._arrays import flag_array, id_array, real_array, score_array
from ndcg_ml._index import Axes, by_id, no_labels, same_rows
from ndcg_ml._labels import judge
from ndcg_ml._ranked import Ranked
from ndcg_ml._shown import shown
from ndcg_ml._tables import LOST, discounts, gain_of_grade, relative_gains
from ndcg_ml._threads import in_threads, thread_count
from ndcg_ml._underflow import underflow_is_zero
from ndcg_ml.evaluation import Evaluation, PerQuery
from ndcg_ml.flavor import Flavor, KSpec, as_flavor, check_k, cutoffs
from ndcg_ml.groups import Block, Groups, IntArray, is_missing

__all__ = ["Prepared", "prepare"]

FloatArray = NDArray[np.float64]


@underflow_is_zero
def prepare(
    y_true: Any,
    *,
    flavor: Flavor | str = "sklearn",
    k: KSpec = ...,
    qid: Any = None,
    group: Any = None,
    mask: Any = None,
    retrieved: Any = None,
    doc_id: Any = None,
    query_weight: Any = None,
    threads: int | None = None,
) -> Prepared:
    """Work out everything that depends on the labels alone, to score many predictions of the same documents.

    The layout of the queries, the gains and (unless it depends on the ranking) the ideal DCG are computed here, once.

    Parameters
    ----------
    y_true, flavor, k, qid, group, mask, retrieved, doc_id, query_weight
        As for ``ndcg_score``.
    threads : int, optional
        Threads that a call may use. Default: the environment variable NDCG_ML_THREADS, if it is not empty; else
        OMP_NUM_THREADS or the processors at hand, and one in a call from a thread that is not the main one. Small
        inputs use one.

    Returns
    -------
    Prepared
        Call it on scores for the value; its ``evaluate`` gives the per-query table.

    Raises
    ------
    TypeError, ValueError
        As for ``ndcg_score``, without what concerns the scores.

    Examples
    --------
    >>> ndcg = prepare([3, 0, 1, 1, 0], group=[3, 2], flavor="sklearn", k=2)
    >>> round(ndcg([0.9, 0.1, 0.3, 0.2, 0.8]), 6), ndcg([3, 0, 1, 1, 0])
    (0.815465, 1.0)
    """
    flavor = as_flavor(flavor)
    ks, several = cutoffs(k, flavor)
    per_row = {"y_true": y_true, "qid": qid, "mask": mask, "retrieved": retrieved, "doc_id": doc_id}
    axes = same_rows(per_row)
    labels = real_array(y_true, "y_true")
    groups = _layout(labels, qid, group, mask)
    retrieved = None if retrieved is None else flag_array(retrieved, "retrieved", labels.shape).reshape(-1)
    codes = None
    if doc_id is not None:
        ids = id_array(doc_id, "doc_id", labels.ndim)
        codes = _doc_codes(ids, labels.shape)
        _unique_within_queries(codes, groups, ids)
    weight = None if query_weight is None else _query_weight(query_weight, groups, group, axes)
    n_threads = check_k(threads, "threads", "for the default")
    return Prepared(flavor, ks, several, groups, labels, retrieved, codes, weight, n_threads, axes)


class Prepared:
    """Queries with their gains and ideals, ready to score rankings. Made by ``prepare``.

    Attributes
    ----------
    flavor : Flavor
    ks : tuple of int or None
        The cut-offs.
    n_docs : int
        Number of documents that are ranked.
    """

    @underflow_is_zero
    def __init__(
        self,
        flavor: Flavor,
        ks: tuple[int | None, ...],
        several: bool,
        groups: Groups,
        labels: NDArray[Any],
        retrieved: NDArray[np.bool_] | None,
        doc_id: IntArray | None,
        query_weight: FloatArray | None,
        threads: int | None,
        axes: Axes | None = None,
    ) -> None:
        self.flavor = flavor
        self.ks = ks
        self._several = several
        self._shape = labels.shape
        self._weight = query_weight
        self._threads = threads
        self._axes = axes
        with np.errstate(invalid="ignore"):  # of a NaN that signals
            flat = labels.reshape(-1).astype(np.float64, copy=False)
        judgements = judge(flavor, flat, groups)
        self.groups = groups = judgements.documents
        pool, graded = judgements.judged, judgements.graded
        ranked = pool if flavor.unjudged == "condense" else groups
        gains, self._exponent = relative_gains(flavor, flat, graded)
        if np.may_share_memory(gains, labels):  # what is kept here must not change with the caller's array
            gains = gains.copy()
        self._pool, self._relevant = pool, gains > 0
        if retrieved is not None:
            ranked = ranked.keep(retrieved)
            if flavor.ideal in ("recall", "local"):  # a gain that does not take part must not set the scale either
                gains, self._exponent = relative_gains(flavor, flat, graded.keep(retrieved))
        self._n_docs = ranked.sizes
        self.n_docs = int(ranked.sizes.sum())
        self._ranked = _in_tie_order(ranked, flavor, gains, doc_id)
        longest = int(groups.sizes.max())
        if flavor.ideal == "max":
            longest = max(longest, *(k or 0 for k in ks))
        self._discounts = discounts(flavor, longest)
        # An uncut ideal is one number a query, whatever the cut-offs of the ranking.
        self._ideal_ks: tuple[int | None, ...] = (None,) * len(ks) if flavor.ideal_depth == "all" else ks
        self._idcg: FloatArray | None = None
        whole_lists = flavor.ideal == "recall" and flavor.recall_depth is None
        # Where no gain is negative, padding with gain 0 is as good as absent: the ranked blocks serve the ideal too.
        shared = (whole_lists or (flavor.ideal == "global" and pool is ranked)) and gains.min(initial=0.0) >= 0
        self._blocks = self._gathered_gains(self._ranked, gains, 0.0, ideal=shared)
        if flavor.ideal == "max":
            self._idcg = self._max_ideal()
        elif not shared and (whole_lists or flavor.ideal in ("global", "given")):
            self._gathered_gains(ranked if whole_lists else pool, gains, -np.inf, ideal=True)

    @underflow_is_zero
    def __call__(self, y_score: Any) -> float | dict[int | None, float]:
        """The value for these scores.

        Parameters
        ----------
        y_score : array-like, shape of y_true
            One score a document, higher is better.

        Returns
        -------
        float, or dict of float by cut-off where several were asked for

        Raises
        ------
        TypeError, ValueError
            The scores have another shape than the labels or another pandas index, are not real numbers, or hold NaN.
        """
        return self._shaped(self.sums(y_score).values(self.flavor))

    @underflow_is_zero
    def sums(self, y_score: Any) -> _aggregate.Sums:
        """What these queries add to a mean over more of them, to be summed over parts; see ``__call__``."""
        dcg, idcg = self._rank(self._scores(y_score))
        ndcg, empty = _aggregate.per_query_ndcg(dcg, idcg, self.flavor, self._ids())
        return _aggregate.sums(ndcg, empty, dcg, idcg, self._exponent, self._weight, self.flavor)

    @underflow_is_zero
    def ranked(self, y_score: Any) -> Ranked:
        """DCG and ideal DCG of every query for these scores, to be averaged under other rules; see ``__call__``."""
        dcg, idcg = self._rank(self._scores(y_score))
        return Ranked(self.ks, self._ids(), dcg, idcg, self._exponent, self._weight)

    @underflow_is_zero
    def dcg(self, y_score: Any) -> float | dict[int | None, float]:
        """The (weighted) mean over queries of DCG for these scores; see ``__call__``."""
        dcg, _ = self._rank(self._scores(y_score))
        return self._shaped(_aggregate.mean_dcg(self._unscaled(dcg), self._weight))

    @underflow_is_zero
    def evaluate(self, y_score: Any) -> Evaluation:
        """The value for these scores with the table of queries behind it; see ``__call__``."""
        scores = self._scores(y_score)
        dcg, idcg = self._rank(scores)
        ids = self._ids()
        ndcg, empty = _aggregate.per_query_ndcg(dcg, idcg, self.flavor, ids)
        values = _aggregate.sums(ndcg, empty, dcg, idcg, self._exponent, self._weight, self.flavor).values(self.flavor)

        def columns(table: NDArray[Any]) -> NDArray[Any]:
            return table if self._several else table[:, 0]

        n_empty = dict(zip(self.ks, empty.sum(axis=0).tolist(), strict=True))
        return Evaluation(
            value=self._shaped(values),
            flavor=self.flavor if self._several else self.flavor.replace(k=self.ks[0]),
            k=self.ks if self._several else self.ks[0],
            n_queries=self.groups.n_queries,
            n_empty=n_empty if self._several else n_empty[self.ks[0]],
            per_query=PerQuery(
                qid=ids.copy(),  # what is kept here must not change with the caller's table
                ndcg=columns(ndcg),
                dcg=columns(self._unscaled(dcg)),
                idcg=columns(self._unscaled(idcg)),
                empty=columns(empty),
                n_docs=self._n_docs.copy(),
                n_judged=self._pool.sizes.copy(),
                n_relevant=self._pool.per_query(np.add, self._relevant.astype(np.float64), 0.0).astype(np.int64),
                tied=self._tied(scores),
                weight=np.ones(self.groups.n_queries) if self._weight is None else self._weight.copy(),
            ),
        )

    @underflow_is_zero
    def per_query(self, y_score: Any) -> tuple[FloatArray, FloatArray, FloatArray, NDArray[np.bool_]]:
        """NDCG, DCG, ideal DCG, and whether the query is empty: each of shape (n_queries, n_cutoffs).

        What ``evaluate`` tabulates, without the diagnostics; an empty query that the mean skips is nan.
        """
        dcg, idcg = self._rank(self._scores(y_score))
        ndcg, empty = _aggregate.per_query_ndcg(dcg, idcg, self.flavor, self._ids())
        return ndcg, self._unscaled(dcg), self._unscaled(idcg), empty

    # -- from scores to DCG ------------------------------------------------------------------------------------------

    def _scores(self, y_score: Any) -> NDArray[Any]:
        same_rows({"y_score": y_score}, self._axes)
        # Under float32 scores are one wherever float32 makes them so.
        read = real_array if self.flavor.score_dtype == "float32" else score_array
        scores = read(y_score, "y_score")
        if scores.shape != self._shape:
            raise ValueError(f"y_score must have the shape of y_true, {self._shape}; got {scores.shape}.")
        scores = scores.reshape(-1)
        order = self._ranked.order
        ranked = scores if order is None else scores[order]
        if ranked.size and np.isnan(ranked.min()):
            bad = np.flatnonzero(np.isnan(ranked))
            at = int(bad[0] if order is None else order[bad].min())
            raise ValueError(
                f"y_score must not hold NaN, which has no place in a ranking; got {bad.size} of {ranked.size}, "
                f"the first at row {at}. Find out why the model produced them; -inf ranks last."
            )
        if self.flavor.score_dtype == "float32" and scores.dtype != np.float32:
            with np.errstate(over="ignore"):
                scores = scores.astype(np.float32)
        return scores

    def _rank(self, scores: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
        """DCG and ideal DCG of each query at each cut-off, both divided by the query's power of two."""
        flavor = self.flavor
        average = flavor.ties == "average"
        dcg = np.zeros((self.groups.n_queries, len(self.ks)))
        idcg = np.zeros_like(dcg) if self._idcg is None else self._idcg

        def work(blocks: Sequence[tuple[Block, FloatArray]]) -> None:
            space = _numpy.Workspace()
            for block, gains, ranked in _gathered(blocks, scores, space):
                at_rank = _numpy.expected_gains(ranked, gains, _depth(self.ks, block.shape[1]), average, space)
                dcg[block.queries] = _numpy.dcg(at_rank, self._discounts, self.ks)
                if self._idcg is None:
                    idcg[block.queries] = self._ranked_ideal(block, ranked, gains, at_rank, space)

        in_threads(work, self._blocks, thread_count(self._threads, scores.size))
        if flavor.short_lists == "zero":
            for column, k in enumerate(self.ks):
                dcg[self._n_docs < (k or 0), column] = 0.0
        return dcg, idcg

    def _tied(self, scores: NDArray[Any]) -> NDArray[np.int64]:
        tied = np.zeros(self.groups.n_queries, dtype=np.int64)
        for block, _, ranked in _gathered(self._blocks, scores, _numpy.Workspace()):
            tied[block.queries] = _numpy.tied_documents(ranked)
        return tied

    # -- the four ideals ---------------------------------------------------------------------------------------------

    def _gathered_gains(
        self, groups: Groups, gains: FloatArray, padding: float, *, ideal: bool
    ) -> list[tuple[Block, FloatArray]]:
        """The layout's blocks with their gains; and the ideal that these make: ``global``, ``recall`` or ``given``."""
        blocks = list(groups.blocks())
        gathered: list[FloatArray] = [gains] * len(blocks)
        idcg = np.zeros((groups.n_queries, len(self.ks)))

        def work(numbers: Sequence[int]) -> None:
            for number in numbers:
                block = blocks[number]
                gathered[number] = mine = block.gather(gains, padding, np.empty)
                if ideal:
                    best = self._in_ideal_order(block, mine)
                    idcg[block.queries] = _numpy.dcg(best, self._discounts, self._ideal_ks)

        in_threads(work, range(len(blocks)), thread_count(self._threads, gains.size))
        if ideal:
            self._idcg = idcg
        return list(zip(blocks, gathered, strict=True))

    def _in_ideal_order(self, block: Block, gains: FloatArray) -> FloatArray:
        depth = _depth(self._ideal_ks, block.shape[1])
        if self.flavor.ideal == "given":
            best = np.where(gains == -np.inf, 0.0, gains)[:, :depth]
        else:
            best = _numpy.best_first(gains, depth)
        if self.flavor.ideal_depth == "retrieved":
            best[np.arange(depth) >= self._n_docs[block.queries, None]] = 0.0
        return best

    def _max_ideal(self) -> FloatArray:
        """``max``: the top grade at every rank; a query without any document has no ideal."""
        to_rank = np.append(0.0, np.cumsum(self._discounts))
        depths = [self._n_docs if k is None else np.full(self.groups.n_queries, k) for k in self._ideal_ks]
        if self.flavor.ideal_depth == "retrieved":
            depths = [np.minimum(depth, self._n_docs) for depth in depths]
        top = gain_of_grade(self.flavor, self.flavor.max_grade, self._exponent)
        idcg: FloatArray = to_rank[np.stack(depths, axis=1)] * np.reshape(top, (-1, 1))
        idcg[self.groups.sizes == 0] = 0.0
        return idcg

    def _ranked_ideal(
        self, block: Block, scores: NDArray[Any], gains: FloatArray, at_rank: FloatArray, space: _numpy.Workspace
    ) -> FloatArray:
        """``local`` and ``recall`` to a depth: what was ranked first, re-sorted."""
        width = block.shape[1]
        lengths = self._ranked.sizes[block.queries]
        average = self.flavor.ties == "average"
        if self.flavor.ideal == "local":
            idcg = np.empty((block.queries.size, len(self.ks)))
            depth = _depth(self._ideal_ks, width)
            if depth > at_rank.shape[1]:
                at_rank = _numpy.expected_gains(scores, gains, depth, average, space)
            for column, k in enumerate(self._ideal_ks):
                cut = _absent_beyond(at_rank[:, : _depth((k,), width)], lengths)
                idcg[:, column] = _numpy.dcg(_numpy.best_first(cut, cut.shape[1]), self._discounts, (None,))[:, 0]
            return idcg
        first = _numpy.whole_runs(scores, gains, min(self.flavor.recall_depth or width, width), average, space)
        best = _numpy.best_first(_absent_beyond(first, lengths), first.shape[1])
        return _numpy.dcg(best, self._discounts, self._ideal_ks)

    # -- small shapes ------------------------------------------------------------------------------------------------

    def _ids(self) -> NDArray[Any]:
        return np.arange(self.groups.n_queries) if self.groups.ids is None else self.groups.ids

    def _unscaled(self, values: FloatArray) -> FloatArray:
        if self._exponent is None:
            return values.copy()  # the ideals are kept here
        with np.errstate(over="ignore"):
            lost = np.abs(values) < LOST  # beside the largest gain of the query
            out: FloatArray = np.ldexp(np.where(lost, 0.0, values), self._exponent[:, None])
        return out

    def _shaped(self, values: Sequence[float]) -> float | dict[int | None, float]:
        return dict(zip(self.ks, values, strict=True)) if self._several else values[0]


def _gathered(
    blocks: Sequence[tuple[Block, FloatArray]], scores: NDArray[Any], space: _numpy.Workspace
) -> Iterator[tuple[Block, FloatArray, NDArray[Any]]]:
    """Each block with its gains and its scores, padded slots below every document."""
    bottom = scores.size > 0 and np.fmin.reduce(scores) == -np.inf  # rows that take no part may be NaN
    for block, gains in blocks:
        ranked = block.gather(scores, -np.inf, space.scores)
        yield block, gains, _numpy.room_for_padding(ranked, block.padding) if bottom else ranked


def _depth(ks: Sequence[int | None], width: int) -> int:
    return max(width if k is None else min(k, width) for k in ks)


def _absent_beyond(at_rank: FloatArray, lengths: NDArray[np.int64]) -> FloatArray:
    """The gains with the places beyond a query's last document marked as absent."""
    return np.where(np.arange(at_rank.shape[1]) < lengths[:, None], at_rank, -np.inf)


def _layout(labels: NDArray[Any], qid: Any, group: Any, mask: Any) -> Groups:
    if qid is not None and group is not None:
        raise ValueError("qid and group are two ways to say the same thing: pass one of them; got both.")
    if labels.ndim == 2:
        if qid is not None or group is not None:
            name = "qid" if qid is not None else "group"
            raise ValueError(
                f"{name} is for 1-D input; y_true is 2-D (shape {labels.shape}), where each row is one query. "
                f"Leave {name} out, or flatten y_true and y_score."
            )
        groups = Groups.from_shape((labels.shape[0], labels.shape[1]))
        return groups if mask is None else groups.keep(flag_array(mask, "mask", labels.shape).reshape(-1))
    if labels.ndim != 1:
        raise ValueError(f"y_true must be one- or two-dimensional; got shape {labels.shape}.")
    if mask is not None:
        raise ValueError("mask is for 2-D input, where rows are padded to one length; y_true is 1-D. Leave mask out.")
    if qid is not None:
        return Groups.from_ids(qid, labels.size)
    if group is not None:
        return Groups.from_sizes(group, labels.size)
    raise ValueError(
        "qid or group must be given with 1-D input: which rows belong to one query is never guessed. Pass qid= (one "
        "id a row, any dtype, any order) or group= (sizes of consecutive queries). For one query, group=[len(y_true)]."
    )


def _in_tie_order(ranked: Groups, flavor: Flavor, gains: FloatArray, doc_id: IntArray | None) -> Groups:
    """The layout with rows arranged so that, where ties are not averaged, tied rows rank in the order they stand."""
    if flavor.ties == "last":
        return ranked.arranged(-np.arange(ranked.n_rows))
    if flavor.ties == "best":
        return ranked.arranged(-gains)
    if flavor.ties == "worst":
        return ranked.arranged(gains)
    if flavor.ties == "docid":
        if doc_id is None:
            raise ValueError(
                "doc_id must be given under ties='docid', which orders tied documents by descending id; got None. "
                "Pass doc_id= (one id a document), or choose another rule, such as ties='average'."
            )
        return ranked.arranged(-doc_id)
    return ranked


def _unique_within_queries(doc_id: IntArray, groups: Groups, ids: NDArray[Any]) -> None:
    by_id = groups.arranged(doc_id)
    assert by_id.order is not None
    ordered, query = doc_id[by_id.order], by_id.codes()
    twice = np.flatnonzero((ordered[1:] == ordered[:-1]) & (query[1:] == query[:-1]))
    if twice.size:
        name = ids.reshape(-1)[by_id.order[twice[0]]]
        raise ValueError(
            f"doc_id must not repeat within a query; got {shown(name)} more than once in a query ({twice.size} "
            "repeats in all). Remove the duplicate documents."
        )


def _doc_codes(ids: NDArray[Any], shape: tuple[int, ...]) -> IntArray:
    """Document ids as integers of the same order."""
    if ids.dtype.kind == "T":  # NumPy's variable-width strings have no unique() before 2.3
        ids = ids.astype(object)
    if ids.shape != shape:
        raise ValueError(f"doc_id must have the shape of y_true, {shape}; got {ids.shape}.")
    if (ids.dtype.kind == "f" and np.isnan(ids).any()) or (ids.dtype.kind in "mM" and np.isnat(ids).any()):
        raise ValueError("doc_id must have an id for every document; got a missing value (NaN or NaT).")
    if ids.dtype == object:
        values = ids.reshape(-1).tolist()
        if any(map(is_missing, values)):
            raise ValueError("doc_id must have an id for every document; got a missing value.")
        kinds = set(map(type, values))
        if len(kinds) > 1:
            names = sorted(kind.__name__ for kind in kinds)
            raise TypeError(
                f"doc_id must hold ids of one type, which can be put in order; got {', '.join(names)}. Convert them, "
                "to strings for example."
            )
    codes: IntArray = np.unique(ids, return_inverse=True)[1].reshape(-1)
    return codes


def _query_weight(query_weight: Any, groups: Groups, group: Any, axes: Axes | None) -> FloatArray:
    n_queries = groups.n_queries
    if hasattr(query_weight, "columns") and len(query_weight.shape) == 2:
        raise TypeError(
            "query_weight must be one weight per query; got a frame. Pass a mapping from id to weight, such as "
            "dict(zip(frame['qid'], frame['weight']))."
        )
    if groups.ids is not None:
        query_weight = by_id(query_weight, "query_weight", groups.ids)
    elif isinstance(query_weight, Mapping):
        raise TypeError(
            "query_weight must be an array, one weight per query in the order of the queries, where these have no ids; "
            "got a mapping. Pass qid= in place of group."
        )
    elif (known := same_rows({"group": group}) if group is not None else axes) is not None:
        same_rows({"query_weight": query_weight}, known)
    else:
        no_labels(query_weight, "query_weight", "Pass qid= in place of group, by which weights are aligned")
    with np.errstate(invalid="ignore"):  # of a NaN that signals, which is refused below
        weight = real_array(query_weight, "query_weight").astype(np.float64)
    if weight.shape != (n_queries,):
        raise ValueError(
            f"query_weight must have one weight per query, shape ({n_queries},); got {weight.shape}. "
            "Queries are in the order of group or of the rows, or of the first appearance of their qid."
        )
    # Beyond these bounds sums and products with gains could leave float64, and NDCG, a ratio, would be wrong.
    if not np.isfinite(weight).all() or weight.min() < 0 or not 1e-150 < weight.max() < 1e150:
        raise ValueError(
            "query_weight must be finite and >= 0, with at least one weight above 0, the largest of them between "
            "1e-150 and 1e150; only their ratios matter."
        )
    return weight
