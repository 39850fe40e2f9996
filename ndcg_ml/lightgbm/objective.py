"""LightGBM's lambdarank for any flavor: gradients and hessians of all queries at once, in both of its interfaces."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._boosting import one_score_per_row
from ndcg_ml._checks import cutoffs, optional_whole_number, positive_number, refuse_docid, true_or_false
from ndcg_ml._data.arrays import FloatArray
from ndcg_ml._data.groups import Block
from ndcg_ml._data.queries import Queries, real_array
from ndcg_ml._kernel.cache import Cache
from ndcg_ml._kernel.gains import discounts, grade, unscaled
from ndcg_ml._kernel.grade_codes import full
from ndcg_ml._kernel.numpy_kernel import fill, ideal, in_tie_order
from ndcg_ml._kernel.threads import in_threads, thread_count
from ndcg_ml._kernel.totals import empty_queries
from ndcg_ml.flavor import Flavor, as_flavor
from ndcg_ml.lightgbm.folds import FoldGuard
from ndcg_ml.lightgbm.params import BELOW_THE_CUT

__all__ = ["NDCGObjective"]

Float32Array = NDArray[np.float32]

# Data sets whose layout is kept between rounds: every fold of a cross-validation, with room to spare.
_SLOTS = 32
# LightGBM adds this float32 to a difference of scores before it divides by it.
_DIFFERENCE_FLOOR = float(np.float32(0.01))
# LightGBM reads the sigmoid from a table with this many bins between -25 and 25, and clips what is beyond. With the
# same table, the choice between two nearly equal splits is the same.
_BINS, _SATURATED = 1 << 20, 25.0
# Documents per batch: few enough that the dozen arrays of a batch stay in the processor's cache.
_DOCUMENTS = 1 << 15
# Pairs of one document that take as long as ranking it does elsewhere; the number of threads depends on it.
_WORTH_OF_WORK = 16


class NDCGObjective:
    r"""Lambdarank for any flavor, as LightGBM's objective.

    The same object works as ``lgb.train({"objective": ...})``, ``lgb.cv``, ``Booster.update(fobj=)`` and
    ``LGBMRanker(objective=)``. Each pair of documents of a query with different gains pushes the two apart,

        lambda = sigma |G_i - G_j| |D(r_i) - D(r_j)| / Z / (1 + exp(sigma (s_i - s_j)))

    where document *i* gains more, *G* and *D* are the flavor's gain and discount, *r* the ranks under the present
    scores *s*, and *Z* the ideal DCG of the query.

    Parameters
    ----------
    flavor : Flavor or str
        Which NDCG: a ``Flavor``, the name of a preset, or a flavor's text such as ``"lightgbm@10"``.
    sigmoid : float, default 1.0
        sigma, LightGBM's parameter ``sigmoid``; greater than 0.
    truncation : int or None, optional
        At least one document of each pair is among this many first ranks: LightGBM's ``lambdarank_truncation_level``.
        None is every pair. A round takes time proportional to `truncation` times the number of documents. Default:
        three more than the flavor's cut-off, or None if it has none, as in ``Flavor.lightgbm_params``. (LightGBM's own
        default is 30.)
    norm : bool, default True
        Divide each pair's weight by 0.01 plus its difference of scores (unless all scores of the query are equal), and
        scale the gradients and hessians of a query by log2(1 + S)/S, where S is twice the sum of its lambdas:
        LightGBM's ``lambdarank_norm``.
    threads : int, optional
        Threads that a call may use. Default: as for ``prepare``.

    Attributes
    ----------
    flavor : Flavor
    sigmoid : float
    truncation : int or None
    norm : bool

    Raises
    ------
    TypeError, ValueError
        An argument is not valid, or the flavor has a switch that the objective does not support: ``ties="docid"``
        (LightGBM does not store document ids), ``ideal="local"`` and a `recall_depth` (their ideal changes with each
        exchange of two documents, so the change of NDCG is not the change of DCG over a constant),
        ``discount="none"`` (no exchange changes anything). When called: no groups, queries cut by the folds of
        ``lgb.cv``, positions, scores that are NaN or +inf or not one per row, labels that the flavor refuses.

    See Also
    --------
    NDCGEval : the same flavor as evaluation function.
    query_folds : folds for ``lgb.cv``, which would cut queries under a custom objective.

    Notes
    -----
    ``NDCGObjective("lightgbm", truncation=30)`` grows the trees of ``objective="lambdarank"`` with its defaults, and
    ``NDCGObjective(flavor)`` those of ``flavor.lightgbm_params()`` if that can express the flavor. With LightGBM
    4.3.0 and 4.7.0, the scores are equal to the last digit. To achieve this, the sigmoid is read from LightGBM's
    table (relative error 1e-5) and gradients are summed in float32.

    No other parameter has to change: lambdarank starts from a score of 0 whatever ``boost_from_average`` is, and so
    does LightGBM under a custom objective. Under one it does not evaluate ``ndcg`` by itself in ``lgb.train`` (see
    ``NDCGEval``), and does not keep queries whole in ``lgb.cv``. ``sigmoid``, ``label_gain``,
    ``lambdarank_truncation_level`` and ``lambdarank_norm`` among the parameters have no effect on this objective.

    Under ``boosting="dart"`` LightGBM (4.7.0) grows other trees under any custom objective than under its built-in one
    of the same formula, squared error included, so there the scores are not those of ``objective="lambdarank"``.

    What the switches of the flavor mean here:

    - The cut-off sets the default of `truncation`, and which lists are short. As in LightGBM, *Z* is the ideal DCG cut
      at `truncation` (or not at all under ``ideal_depth="all"``), and the discount of the lower document of a pair is
      not cut.
    - Tied documents take ranks in the order that the flavor says. Under ``ties="average"`` it is the order of the
      rows, as in LightGBM, because averaged discounts would give tied pairs no gradient, and training would not start.
    - Empty queries have no gradient, whatever they score; ``empty="raise"`` refuses them. Documents that the flavor
      drops, and queries that score 0 because they are short (``short_lists="zero"``), have none either.
    - ``aggregate="micro"``: *Z* is the mean of the queries' ideals.

    Row weights multiply gradients and hessians. A document that scores -inf takes part in no pair. A label
    that is NaN is read as grade 0 by ``lgb.Dataset``, before any flavor sees it.

    Examples
    --------
    >>> import numpy as np
    >>> objective = NDCGObjective("sklearn@10[discount=reciprocal]", norm=False)
    >>> objective.truncation
    13
    >>> gradient, hessian = objective(np.array([0.0, 1.0]), np.array([0.0, 0.0]), None, np.array([2]))
    >>> gradient.tolist(), hessian.tolist()
    ([0.25, -0.25], [0.125, 0.125])
    """

    def __init__(
        self,
        flavor: Flavor | str,
        *,
        sigmoid: float = 1.0,
        truncation: int | EllipsisType | None = ...,
        norm: bool = True,
        threads: int | None = None,
    ) -> None:
        self.flavor: Flavor = as_flavor(flavor)
        self.sigmoid: float = positive_number(sigmoid, "sigmoid")
        if isinstance(truncation, EllipsisType):
            self.truncation = None if self.flavor.k is None else self.flavor.k + BELOW_THE_CUT
        else:
            self.truncation = optional_whole_number(truncation, "truncation", "for every pair")
        self.norm: bool = true_or_false(norm, "norm")
        self.threads: int | None = optional_whole_number(threads, "threads", "for the default")
        _check_flavor(self.flavor)
        self._cache: Cache[_Pairs] = Cache(_SLOTS)
        self._whole = FoldGuard("NDCGObjective")

    def __repr__(self) -> str:
        return (
            f"NDCGObjective({self.flavor.short_text!r}, sigmoid={self.sigmoid}, truncation={self.truncation}, "
            f"norm={self.norm})"
        )

    # LightGBM counts the parameters of this signature, and only 2, 3 or 4 of them will do.
    def __call__(self, a: Any, b: Any, weight: Any = None, group: Any = None) -> tuple[Float32Array, Float32Array]:
        """Gradients and hessians, called by LightGBM.

        Parameters
        ----------
        a, b
            ``(preds, dataset)`` from ``lgb.train`` and ``lgb.cv``; ``(y_true, y_pred)`` from ``LGBMRanker``.
        weight : ndarray of float or None
            Row weights, from ``LGBMRanker``.
        group : ndarray of int
            Sizes of the queries, from ``LGBMRanker``.

        Returns
        -------
        gradient, hessian : ndarray of float32, shape (n_rows,)
        """
        scores, labels, weight, group = self._whole.rows(a, b, weight, group)
        if hasattr(b, "get_position") and b.get_position() is not None:
            raise ValueError(
                "NDCGObjective cannot correct for the positions of the documents, as LightGBM's own lambdarank does. "
                "Leave position= out of lgb.Dataset, or use objective='lambdarank'."
            )
        labels = real_array(labels, "y_true")
        scores = _checked_scores(scores, labels.shape)
        gradient, hessian = self._pairs(labels, group).lambdas(scores)
        if weight is not None:
            weight = np.asarray(weight, dtype=np.float32)
            if weight.shape != labels.shape:
                raise ValueError(f"weight must have one entry per row, {labels.size}; got shape {weight.shape}.")
            gradient *= weight
            hessian *= weight
        return gradient, hessian

    def _pairs(self, labels: NDArray[Any], group: NDArray[Any]) -> _Pairs:
        return self._cache.prepared((group, labels), lambda: _Pairs(self, labels, group))


class _Pairs:
    """A data set's queries with their gains over the ideal: all that does not depend on scores."""

    def __init__(self, objective: NDCGObjective, labels: NDArray[Any], group: NDArray[Any]) -> None:
        flavor = objective.flavor
        self._sigmoid, self._norm, self._threads = objective.sigmoid, objective.norm, objective.threads
        self._coarse = flavor.score_dtype == "float32"
        queries = Queries.read(labels, group=group)
        at_truncation = flavor.replace(k=objective.truncation)
        graded = grade(at_truncation, queries.labels, queries.groups)
        longest = int(graded.documents.sizes.max())
        depth = longest if objective.truncation is None else max(longest, objective.truncation)
        self._discounts = discounts(flavor, depth if flavor.ideal == "max" else longest)
        ks, _ = cutoffs((objective.truncation,), at_truncation)
        ideals = ideal(at_truncation, ks, graded, self._discounts)
        assert ideals is not None  # the two that depend on the ranking are refused
        empty_queries(ideals, flavor, queries.ids)  # refuses them under empty="raise"
        ideals = unscaled(ideals, graded.exponent)[:, 0]
        gains = graded.gains
        if graded.exponent is not None:
            with np.errstate(over="ignore"):
                gains = np.ldexp(gains, np.repeat(graded.exponent, queries.groups.sizes))
        if not (np.isfinite(ideals).all() and np.isfinite(gains).all()):
            raise ValueError(
                f"y_true must have gains and ideals that float64 can hold; got labels up to {labels.max():g} under "
                f"gain={flavor.gain!r}. Use fewer grades, or another gain."
            )
        counts = ideals > 0
        if flavor.aggregate == "micro" and counts.any():
            ideals = np.where(counts, ideals[counts].mean(), 0.0)
        if flavor.short_lists == "zero":
            counts &= graded.ranked.sizes >= (flavor.k or 0)
        scale = np.divide(1.0, ideals, out=np.zeros_like(ideals), where=counts)
        self._depth = longest if objective.truncation is None else objective.truncation
        in_order = in_tie_order(graded.ranked, flavor, gains, None)
        self._blocks = [(block, full(each) * scale[block.queries, None]) for block, each in fill(in_order, gains)]

    def lambdas(self, scores: FloatArray) -> tuple[Float32Array, Float32Array]:
        """Gradient and hessian of every row."""
        gradient, hessian = np.zeros(scores.size, dtype=np.float32), np.zeros(scores.size, dtype=np.float32)
        if self._coarse:
            with np.errstate(over="ignore"):
                scores = scores.astype(np.float32).astype(np.float64)

        def work(blocks: Iterable[tuple[Block, FloatArray]]) -> None:
            for block, gains in blocks:
                padded = block.gather(scores, -np.inf, np.empty)
                of_block = np.empty((2, *block.shape), dtype=np.float32)
                step = max(1, _DOCUMENTS // block.shape[1])
                for at in range(0, block.shape[0], step):
                    part = slice(at, at + step)
                    of_block[:, part] = self._of_queries(padded[part], gains[part])
                if isinstance(block.rows, slice):
                    gradient[block.rows], hessian[block.rows] = of_block.reshape(2, -1)
                    continue
                present = np.ones(block.shape, dtype=bool)
                if block.padding is not None:
                    present.reshape(-1)[block.padding] = False
                rows = block.rows[present]
                gradient[rows], hessian[rows] = of_block[:, present]

        in_threads(work, self._blocks, thread_count(self._threads, scores.size * min(self._depth, _WORTH_OF_WORK)))
        return gradient, hessian

    def _of_queries(self, scores: FloatArray, gains: FloatArray) -> Float32Array:
        """Gradient and hessian, shape (2, n_queries, width), of queries that are padded with scores of -inf."""
        order = np.argsort(-scores, axis=1, kind="stable")
        # There, each row is a rank and each column a query, so that each rank is processed for all queries at once.
        by_rank = self._of_ranking(
            np.take_along_axis(scores, order, axis=1).T.copy(), np.take_along_axis(gains, order, axis=1).T.copy()
        )
        out = np.empty((2, *scores.shape), dtype=np.float32)
        for by_slot, ranked in zip(out, by_rank, strict=True):
            np.put_along_axis(by_slot, order, ranked.T, axis=1)
        return out

    def _of_ranking(self, s: FloatArray, g: FloatArray) -> Float32Array:
        """Gradient and hessian at each rank (a row) of each query (a column), from the scores and gains there."""
        # A slot beyond the end of its query gets the lowest score of the query: -inf would make NaN of differences.
        width, n_queries = s.shape
        present = s > -np.inf
        counts = np.count_nonzero(present, axis=0)
        full = int(counts.min())  # the number of ranks that hold a document in every query
        lowest = s[np.maximum(counts - 1, 0), np.arange(n_queries)]
        s = np.where(present, s, np.where(counts > 0, lowest, 0.0))
        # Scores that are all equal are not divided by their differences, as in LightGBM.
        floor = np.where(s[0] == s[-1], 1.0, _DIFFERENCE_FLOOR)
        wrong_order = _wrong_order()
        # The space for all ranks is allocated once: new arrays per rank would take longer than the arithmetic.
        out = np.zeros((2, width, n_queries), dtype=np.float32)
        gradient, hessian = out
        total = np.zeros(n_queries)
        space = np.empty((4, (width - 1) * n_queries))
        places = np.empty((width - 1) * n_queries, dtype=np.intp)
        rounded = np.empty(width * n_queries, dtype=np.float32)
        # Each rank down to the truncation depth is paired with all ranks below it.
        for rank in range(min(self._depth, width - 1)):
            below = slice(rank + 1, width)
            size = (width - rank - 1) * n_queries
            push, apart, p, h = (array[:size].reshape(-1, n_queries) for array in space)
            place = places[:size].reshape(-1, n_queries)
            terms = rounded[: size + n_queries].reshape(-1, n_queries)
            # The change of DCG if the two documents were exchanged. Slots beyond the end of a query must not add any.
            np.subtract(g[rank], g[below], out=push)
            push *= self._sigmoid * np.abs(self._discounts[rank] - self._discounts[below, None])
            if full < width:
                first = max(rank + 1, full)
                push[first - rank - 1 :] *= present[first:]
            np.subtract(s[rank], s[below], out=apart)
            # p, the probability that the order is wrong, falls with the distance if the upper document gains more,
            # and rises with it if the lower one does.
            np.copysign(apart, push, out=p)
            p *= self._sigmoid
            np.clip(p, -_SATURATED, _SATURATED, out=p)
            p += _SATURATED
            p *= _BINS / (2 * _SATURATED)
            np.copyto(place, p, casting="unsafe")
            wrong_order.take(place, out=p, mode="clip")
            # With norm, pairs that the scores already tell apart count less, as in LightGBM.
            if self._norm:
                apart += floor
                push /= apart
            # First and second derivative of the pair's loss: |change| times the logistic loss of the gap.
            np.subtract(1.0, p, out=h)
            h *= p
            h *= np.abs(push, out=apart)
            h *= self._sigmoid
            push *= p
            total += np.abs(push, out=p).sum(axis=0)
            # LightGBM adds float32 pair by pair; the same order of additions gives the same bits.
            terms[1:] = push
            gradient[below] += terms[1:]
            terms[0] = -gradient[rank]
            gradient[rank] = -_one_by_one(terms)
            terms[1:] = h
            hessian[below] += terms[1:]
            terms[0] = hessian[rank]
            hessian[rank] = _one_by_one(terms)
        # With norm, a query with many wrong pairs must not outweigh the others: its sum of pushes becomes a logarithm.
        if self._norm:
            total *= 2
            out *= np.divide(np.log2(1 + total), total, out=np.ones(n_queries), where=total > 0)
        return out


@lru_cache(maxsize=1)
def _wrong_order() -> FloatArray:
    """1/(1 + e^x) at the left end of each of LightGBM's bins."""
    left = np.arange(_BINS) / (_BINS / (2 * _SATURATED)) - _SATURATED
    table: FloatArray = 1.0 / (1.0 + np.exp(left))
    return table


def _one_by_one(terms: Float32Array) -> Float32Array:
    """The sums of the columns, added up from the first row to the last; NumPy would add a single column in pairs."""
    total: Float32Array = terms.sum(axis=0) if terms.shape[1] > 1 else np.cumsum(terms, axis=0)[-1]
    return total


def _check_flavor(flavor: Flavor) -> None:
    refuse_docid(flavor, "NDCGObjective", "LightGBM does not store document ids")
    if flavor.ideal == "local" or flavor.recall_depth is not None:
        switch = "ideal='local'" if flavor.ideal == "local" else f"recall_depth={flavor.recall_depth}"
        raise ValueError(
            f"NDCGObjective does not support {switch}: its ideal changes with the ranking, so that exchanging two "
            "documents changes more than DCG. Train on flavor.replace(ideal='global', recall_depth=None); NDCGEval "
            "evaluates this flavor."
        )
    if flavor.discount == "none":
        raise ValueError(
            "NDCGObjective does not support discount='none': all ranks count the same, so exchanging two documents "
            "changes nothing, and every gradient would be 0. Train on another discount, such as "
            "flavor.replace(discount='log2'); NDCGEval evaluates this flavor."
        )


def _checked_scores(scores: Any, shape: tuple[int, ...]) -> FloatArray:
    one_score_per_row(scores, "NDCGObjective", "Leave num_class at 1.")
    array: FloatArray = real_array(scores, "y_score").astype(np.float64, copy=False)
    if array.shape != shape:
        raise ValueError(f"y_score must have the shape of y_true, {shape}; got {array.shape}.")
    if array.size and not array.max() < np.inf:
        bad = np.flatnonzero(~(array < np.inf))
        raise ValueError(
            f"y_score must not hold NaN or +inf, which have no gradient; got {bad.size} of {array.size}, the first "
            f"at row {bad[0]}. Look at the init_score, and lower the learning rate."
        )
    return array
