"""Evaluate NDCG in LightGBM's training."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._checks import KSpec
from ndcg_ml._data.queries import mean_row_weight
from ndcg_ml._kernel.cache import Cache
from ndcg_ml._params import NamedMetric
from ndcg_ml.flavor import Flavor
from ndcg_ml.prepared import Prepared, prepare

__all__ = ["NDCGEval"]

# Data sets whose layout is kept between rounds, enough for the folds and sets of a cross-validation.
_SLOTS = 32


class NDCGEval(NamedMetric):
    """NDCG of any flavor as LightGBM's evaluation function.

    The same object works as ``lgb.train(feval=)``, ``lgb.cv(feval=)`` and ``LGBMRanker.fit(eval_metric=)``.

    Parameters
    ----------
    flavor : Flavor or str
        Definition of NDCG: a ``Flavor``, the name of a preset, or a flavor's text such as ``"lightgbm@10"``.
    k : int, None or sequence of them, optional
        Cut-offs, each reported as a separate metric, in this order; None for no cut-off. With ``first_metric_only``,
        LightGBM's early stopping follows the first. Default: the flavor's own.

    Attributes
    ----------
    flavor : Flavor
    ks : tuple of int or None
    names : tuple of str
        Names in LightGBM's log: ``flavor.metric_name``, with ``@k`` if there is a cut-off; never the name of a built-in
        metric.

    Raises
    ------
    TypeError, ValueError
        The flavor or a cut-off is not valid, or the flavor has a switch that LightGBM does not support:
        ``ties="docid"`` (it does not store document ids), ``empty=nan`` (a nan in the first round freezes its early
        stopping). When called: no groups, queries cut by the folds of ``lgb.cv``, scores that are NaN or not one per
        row, labels that the flavor refuses.

    See Also
    --------
    StopEarly : stop training on this metric only.

    Notes
    -----
    Under an objective that does not rank, ``lgb.cv`` cuts queries: pass ``folds=GroupKFold(5)`` of scikit-learn, to
    which LightGBM gives the queries as groups.

    As in LightGBM 4.7, the weight of a query is the mean weight of its rows. Layout, gains and ideal of each data set
    are kept between rounds. LightGBM also computes its built-in metrics, before this one, unless ``metric="None"`` is
    among the parameters.

    Optuna's tuners maximise only five metrics that they know by name. Pass them the negative value, as
    docs/model_selection.md shows, or they keep the worst trial.

    Examples
    --------
    >>> ndcg = NDCGEval("lightgbm", k=(10, 5))
    >>> ndcg.names
    ('ndcg_lightgbm@10', 'ndcg_lightgbm@5')
    >>> import numpy as np
    >>> ndcg(np.array([1.0, 0.0, 2.0, 0.0]), np.array([0.5, 0.4, 0.9, 0.1]), None, np.array([2, 2]))[0]
    ('ndcg_lightgbm@10', 1.0, True)
    """

    def __init__(self, flavor: Flavor | str, k: KSpec = ...) -> None:
        super().__init__(flavor, k, "LightGBM", "a nan in the first round freezes LightGBM's early stopping")
        self._cache: Cache[Prepared[Any]] = Cache(_SLOTS)

    # LightGBM requires a signature of 2, 3 or 4 parameters.
    def __call__(self, a: Any, b: Any, weight: Any = None, group: Any = None) -> list[tuple[str, float, bool]]:
        """Evaluate, called by LightGBM.

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
        list of (name, value, is_higher_better)
        """
        scores, labels, weight, group = _rows_of(a, b, weight, group)
        totals = self._prepared(group, np.asarray(labels), weight).totals(self.one_score_per_row(scores))
        return [(name, value, True) for name, value in zip(self.names, totals.values(self.flavor), strict=True)]

    def _prepared(self, group: NDArray[Any], labels: NDArray[Any], weight: Any) -> Prepared[Any]:
        weight = None if weight is None else np.asarray(weight)

        def make() -> Prepared[Any]:
            query_weight = None if weight is None else mean_row_weight(weight, group)
            return prepare(labels, group=group, flavor=self.flavor, k=self.ks, query_weight=query_weight)

        return self._cache.get_or_make((group, labels, weight), make)


def _rows_of(a: Any, b: Any, weight: Any, group: Any) -> tuple[Any, Any, Any, NDArray[Any]]:
    """Return scores, labels, row weights and sizes of queries.

    ``lgb.train`` and ``lgb.cv`` pass scores and a data set, ``LGBMRanker`` passes labels, scores, weights and sizes.

    Raises
    ------
    ValueError
        The data set has no queries, or some of them were cut.
    """
    scores, labels = b, a
    if hasattr(b, "get_label"):
        scores, labels, weight, group = a, b.get_label(), b.get_weight(), b.get_group()
        _refuse_cut(b)
    if group is None:
        raise ValueError(
            "NDCGEval needs the sizes of the queries, and this data set has none. Pass group= to lgb.Dataset, or "
            "group= and eval_group= to LGBMRanker.fit."
        )
    return scores, labels, weight, np.asarray(group)


def _refuse_cut(part: Any) -> None:
    while getattr(part, "used_indices", None) is not None:  # of subsets; a validation set has only a reference
        rows, part = part.used_indices, part.reference
        group = part.get_group()
        if group is None:
            continue
        sizes = np.asarray(group)
        query = np.repeat(np.arange(sizes.size), sizes)
        used = np.bincount(query[np.asarray(rows)], minlength=sizes.size)
        cut = int(((used > 0) & (used != sizes)).sum())
        if cut:
            raise ValueError(
                f"NDCGEval needs whole queries, and the folds cut {cut} of the {sizes.size} queries: only some of "
                "their rows are in this data set. Pass folds=GroupKFold(5) of scikit-learn to lgb.cv, which by "
                "itself keeps queries whole only under its own ranking objectives."
            )
