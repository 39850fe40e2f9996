"""CatBoost: an evaluation metric that is bound to its data sets, and CatBoost's own parameters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ndcg_ml import _boosting as boosting
from ndcg_ml._core.arrays import real_array
from ndcg_ml._core.frames import match_index
from ndcg_ml._core.kernel_and_threads import Cache
from ndcg_ml._core.layout import IntArray
from ndcg_ml._core.queries import Queries, mean_row_weight
from ndcg_ml._core.query_groups import group_by_ids
from ndcg_ml._core.scores import Ranking
from ndcg_ml._plain.checks import KSpec, plain_signature
from ndcg_ml.flavor import Flavor

__all__ = ["NDCGEval", "catboost_params", "supports"]

# Value for a learn set that CatBoost has reordered, because CatBoost cannot write a nan.
_UNKNOWN = -1.0


class NDCGEval(boosting.NamedMetric):
    """NDCG of any flavor as CatBoost's evaluation metric: ``CatBoostRanker(eval_metric=NDCGEval(...))``.

    CatBoost passes scores, labels and weights to a metric, but not the queries. So the metric is bound to the data sets
    in advance, and recognizes each by its labels.

    Parameters
    ----------
    flavor : Flavor or str
        Definition of NDCG: a ``Flavor``, the name of a preset, or a flavor's text such as ``"catboost@10"``.
    k : int or None, optional
        The cut-off, None for no cut-off. Default: the flavor's own.
    pools : sequence
        Every evaluation set, in any order: a ``catboost.Pool``, or a pair ``(y, qid)`` of labels and one query id per
        row. The learn set may be among them if CatBoost keeps its order.
    learn : catboost.Pool or (y, qid), optional
        The learn set, which CatBoost evaluates too. Its value is -1 if CatBoost has reordered its rows, so that the
        queries are unknown: with categorical features or ``boosting_type="Ordered"``, unless ``has_time=True``.
        Default: it is one of `pools`.
    name : str, optional
        Name in logs, such as "mine", which becomes ``ndcg_mine``. Default: ``flavor.metric_name``.

    Attributes
    ----------
    flavor : Flavor
        The flavor with the cut-off.
    name : str
        Name of the metric in CatBoost's log and ``get_evals_result()``, with ``@k`` if there is a cut-off.

    Raises
    ------
    TypeError, ValueError
        The flavor, the cut-off or a data set is not valid; two data sets have the same labels and different queries; or
        the flavor has a switch that CatBoost does not support: ``ties="docid"`` (it does not store document ids),
        ``empty=nan`` (it cannot write a nan). In training, as a ``CatBoostError`` that contains the message: a data set
        that was not bound, scores that are NaN or not one per row.

    Notes
    -----
    For CatBoost 1.2.10, on the CPU: evaluation sets keep their order and are evaluated whole, with any
    ``thread_count``. Labels are held in float32. A query's weight is the mean of its rows' weights, which is the group
    weight if the ``Pool`` has ``group_weight``. ``catboost.cv`` creates data sets that cannot be bound: it raises.

    The object can be pickled and copied, alone or in a ranker. ``sklearn.base.clone`` refuses a ``CatBoostRanker`` that
    has any object as ``eval_metric``; use ``ranker.copy()``.

    Examples
    --------
    >>> import numpy as np
    >>> from catboost import CatBoostRanker, Pool
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(120, 3))
    >>> y, qid = (X[:, 0] > 0).astype(int), np.repeat(np.arange(12), 10)
    >>> train, valid = Pool(X[:80], y[:80], group_id=qid[:80]), Pool(X[80:], y[80:], group_id=qid[80:])
    >>> ndcg = NDCGEval("sklearn@5", learn=train, pools=[valid])
    >>> ranker = CatBoostRanker(iterations=20, eval_metric=ndcg, verbose=False, allow_writing_files=False)
    >>> ranker = ranker.fit(train, eval_set=valid, early_stopping_rounds=3, use_best_model=True)
    >>> history = ranker.get_evals_result()["validation"][ndcg.name]
    >>> ranker.get_best_iteration() == int(np.argmax(history))
    True
    """

    # Without this attribute CatBoost tries to compile the methods with Numba.
    no_jit = True

    @plain_signature
    def __init__(
        self,
        flavor: Flavor | str,
        k: KSpec = ...,
        *,
        pools: Sequence[Any],
        learn: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(flavor, k, name, "CatBoost", "CatBoost cannot write a nan")
        if self._several:
            raise TypeError(
                f"k must be one cut-off because CatBoost takes one evaluation metric; got {self.ks}. Pass "
                f"k={self.ks[0]}."
            )
        self.flavor = self.flavor.replace(k=self.ks[0])
        self.name: str = self.names[0]
        if not isinstance(pools, Sequence):
            raise TypeError(
                f"pools must be a list of catboost.Pool or (y, qid); got {type(pools).__name__}. Write pools=[...]."
            )
        sets = [_bound(entry, f"pools[{i}]") for i, entry in enumerate(pools)]
        self._learn = None if learn is None else _bound(learn, "learn")
        self._sets = sets if self._learn is None else [*sets, self._learn]
        if not self._sets:
            raise ValueError("pools must hold at least one data set; got none. Pass every evaluation set.")
        _distinct(self._sets)
        self._cache: Cache[Ranking] = Cache(2 * len(self._sets))
        for bound in self._sets:
            self._prepared(bound, None)
        self._rename()

    def _rename(self) -> None:
        # CatBoost logs the name of the class.
        self.__class__ = type(self.name, (NDCGEval,), {})

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self.__dict__,)

    def __repr__(self) -> str:
        sets = f"{len(self._sets)} data set{'' if len(self._sets) == 1 else 's'}"
        return f"NDCGEval({self.definition()}, pools=<{sets}>)"

    def is_max_optimal(self) -> bool:
        """Higher is better. Called by CatBoost."""
        return True

    def get_final_error(self, error: float, weight: float) -> float:
        """Return the value of ``evaluate``. Called by CatBoost."""
        return error

    def evaluate(self, approxes: Any, target: Any, weight: Any) -> tuple[float, float]:
        """Evaluate one data set, called by CatBoost.

        Parameters
        ----------
        approxes : sequence of one ndarray of float, shape (n_rows,)
            The scores.
        target : ndarray of float, shape (n_rows,)
        weight : ndarray of float, shape (n_rows,), or None

        Returns
        -------
        value, 1.0
            The second is the weight that CatBoost passes to ``get_final_error``.
        """
        # CatBoost frees the memory of these arrays but keeps the traceback of an error, which must not hold them.
        scores, labels = np.array(approxes), np.array(target, dtype=np.float32)
        weight = None if weight is None else np.array(weight)
        del approxes, target
        if len(scores) != 1:
            raise ValueError(
                f"NDCGEval needs one score per row; got {len(scores)}. Use a loss with a single output, "
                "such as YetiRank."
            )
        for bound in self._sets:
            if np.array_equal(bound.labels, labels):
                return self._prepared(bound, weight).totals(scores[0]).values(self.flavor)[0], 1.0
        if self._learn is not None and np.array_equal(np.sort(self._learn.labels), np.sort(labels)):
            return _UNKNOWN, 1.0
        raise ValueError(
            "NDCGEval needs every data set in advance, in its order; got "
            f"{labels.size} rows whose labels are not those of a bound data set. Pass every eval_set in pools=, and "
            "the learn set as learn=, which reports -1 if CatBoost has reordered the rows (with categorical features "
            "or boosting_type='Ordered', unless has_time=True)."
        )

    def _prepared(self, bound: _Bound, weight: NDArray[Any] | None) -> Ranking:
        def make() -> Ranking:
            mean = mean_row_weight(weight, bound.sizes)
            return Ranking(self.flavor, ..., Queries.read(bound.labels, group=bound.sizes, query_weight=mean))

        return self._cache.get_or_make((bound.labels, bound.sizes, weight), make)


class _Bound(NamedTuple):
    """A data set that can be recognized by its labels."""

    labels: NDArray[np.float32]
    sizes: IntArray
    what: str


def _unpickle(state: dict[str, Any]) -> NDCGEval:
    made = object.__new__(NDCGEval)
    made.__dict__.update(state)
    made._rename()
    return made


def _bound(entry: Any, what: str) -> _Bound:
    if hasattr(entry, "get_group_id_hash"):
        labels, qid = entry.get_label(), entry.get_group_id_hash()
        if labels is None or qid is None:
            raise ValueError(f"{what} must have labels and queries. Pass label= and group_id= to catboost.Pool.")
    elif isinstance(entry, tuple | list) and len(entry) == 2:
        labels, qid = entry
        match_index({f"the labels of {what}": labels, f"the queries of {what}": qid})
    else:
        raise TypeError(f"{what} must be a catboost.Pool or a pair (y, qid); got {type(entry).__name__}.")
    labels = real_array(labels, f"the labels of {what}")
    if labels.ndim != 1:
        raise ValueError(f"{what} must have one label per row; got labels of shape {labels.shape}.")
    groups = group_by_ids(qid, labels.size)
    if groups.order is not None:
        raise ValueError(f"{what} must have contiguous queries, as CatBoost requires. Sort the rows by query.")
    return _Bound(labels.astype(np.float32), groups.sizes, what)


def _distinct(sets: Sequence[_Bound]) -> None:
    for one, other in combinations(sets, 2):
        if np.array_equal(one.labels, other.labels) and not np.array_equal(one.sizes, other.sizes):
            raise ValueError(
                f"{one.what} and {other.what} have the same labels and different queries, so NDCGEval cannot "
                "distinguish them. Evaluate only one of them."
            )


# -- CatBoost's own parameters ---------------------------------------------------------------------------------------

_CATBOOST = boosting.Library(
    name="CatBoost",
    training={
        "gain": boosting.Rule(("linear", "exponential"), "has the gains y and 2^y - 1"),
        "discount": boosting.Rule(("log2", "ln", "reciprocal"), "discounts by 1/log2(rank + 1) or by 1/rank"),
        "negative": boosting.Rule(("raise", "allow"), "passes a negative label through the gain formula"),
        "unjudged": boosting.Rule(("raise",), "refuses a NaN label"),
    },
    metric={
        **boosting.METRIC,
        "ties": boosting.Rule(("worst",), "ranks tied rows by ascending gain"),
        "score_dtype": boosting.FLOAT64,
    },
)


def catboost_params(flavor: Flavor | str, *, evaluate: bool = True) -> dict[str, Any]:
    """Return CatBoost's parameters for this flavor, for ``CatBoost`` and ``CatBoostRanker``.

    They set the loss ``YetiRank`` in its NDCG mode with this gain, discount and cut-off, and CatBoost's own metric,
    which then computes exactly this flavor.

    Parameters
    ----------
    flavor : Flavor or str
        A ``Flavor``, the name of a preset, or a flavor's text.
    evaluate : bool, default True
        False: only the loss, for use with ``NDCGEval`` as the ``eval_metric``. Switches of
        evaluation (ideal, ties, empty, aggregate, short_lists, score_dtype) may then have any value.

    Returns
    -------
    dict

    Raises
    ------
    ValueError
        CatBoost cannot express a switch.
    TypeError
        `flavor` is not a flavor, or `evaluate` is not a bool.

    Notes
    -----
    Verified with CatBoost 1.2.10, to 1e-6. CatBoost accepts labels that this flavor may refuse (negative ones, and
    those above `max_grade`), but its training may fail with negative labels.

    Examples
    --------
    >>> catboost_params(Flavor.preset("catboost", k=5))  # doctest: +NORMALIZE_WHITESPACE
    {'loss_function': 'YetiRank:mode=NDCG;top=5;dcg_type=Base;dcg_denominator=LogPosition',
     'eval_metric': 'NDCG:top=5;type=Base;denominator=LogPosition'}
    """
    flavor = boosting.expressible(flavor, _CATBOOST, evaluate)
    top = "" if flavor.k is None else f"top={min(flavor.k, boosting.LONGEST)};"
    kind = "Exp" if flavor.gain == "exponential" else "Base"
    denominator = "Position" if flavor.discount == "reciprocal" else "LogPosition"
    # The loss and the metric name them differently, and the loss silently ignores the metric's names.
    params = {"loss_function": f"YetiRank:mode=NDCG;{top}dcg_type={kind};dcg_denominator={denominator}"}
    if evaluate:
        params["eval_metric"] = f"NDCG:{top}type={kind};denominator={denominator}"
    return params


def supports(flavor: Flavor | str) -> boosting.Support:
    """Return whether CatBoost's own objective and metric can express this flavor, and the reason if not.

    It is true exactly if ``catboost_params`` returns parameters. ``NDCGEval`` computes more flavors.

    Parameters
    ----------
    flavor : Flavor or str
        A ``Flavor``, the name of a preset, or a flavor's text.

    Returns
    -------
    Support
        True or false as a condition. If it is false, ``reason`` names the switch and ``fix`` says what to use instead;
        otherwise both are None.

    Raises
    ------
    TypeError, ValueError
        `flavor` is not a flavor.

    Examples
    --------
    >>> print(supports("lightgbm@10").reason)
    CatBoost's metric cannot express ties='first': it ranks tied rows by ascending gain.
    """
    return boosting.support(catboost_params, flavor)
