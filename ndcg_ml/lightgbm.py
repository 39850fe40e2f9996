"""LightGBM: one object that is the evaluation function of both of its interfaces, and early stopping on it."""

from __future__ import annotations

import heapq
import inspect
import math
import operator
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._recent import Recent
from ndcg_ml.flavor import Flavor, KSpec, as_flavor, check_k, cutoffs
from ndcg_ml.groups import Groups, IntArray
from ndcg_ml.prepared import Prepared, prepare

__all__ = ["NDCGEval", "StopEarly", "query_folds"]

# Data sets whose layout is kept between rounds: every fold and set of a cross-validation, with room to spare.
_SLOTS = 32
_DEFAULT_K = 10


class NDCGEval:
    """NDCG of any flavor as LightGBM's evaluation function.

    The same object works as ``lgb.train(feval=)``, ``lgb.cv(feval=)`` and ``LGBMRanker.fit(eval_metric=)``.

    Parameters
    ----------
    flavor : Flavor or str
        Which NDCG: a ``Flavor``, the name of a preset, or a flavor's text such as ``"lightgbm@10"``.
    k : int, None or sequence of them, optional
        Cut-offs, each reported as a metric of its own in this order. LightGBM monitors the first one when stopping
        early with ``first_metric_only``. Default: the flavor's own cut-off, or 10 where the flavor has none; for no
        cut-off pass ``None``.
    threads : int, optional
        As for ``prepare``.

    Attributes
    ----------
    flavor : Flavor
    ks : tuple of int or None
    names : tuple of str
        What LightGBM logs: ``flavor.metric_name`` with ``@k``, never the name of a built-in metric.

    Raises
    ------
    TypeError, ValueError
        The flavor or a cut-off is not valid, or the flavor is one that cannot be honoured: ``ties="docid"`` (LightGBM
        holds no document ids), ``empty=nan`` (a nan in the first round freezes LightGBM's early stopping). When called:
        no groups, queries cut by the folds of ``lgb.cv``, scores that are NaN or not one a row, labels that the flavor
        refuses.

    See Also
    --------
    StopEarly : stop training on this and nothing else.
    query_folds : folds for ``lgb.cv`` that keep queries whole.

    Notes
    -----
    Row weights become query weights as in LightGBM 4.7: the mean of the query's rows. Layout, gains and ideal of each
    data set are kept between rounds. LightGBM computes its built-in metrics as well, and first, unless
    ``metric="None"`` is among the parameters.

    Examples
    --------
    >>> ndcg = NDCGEval("lightgbm", k=(10, 5))
    >>> ndcg.names
    ('ndcg_lightgbm@10', 'ndcg_lightgbm@5')
    >>> import numpy as np
    >>> ndcg(np.array([1.0, 0.0, 2.0, 0.0]), np.array([0.5, 0.4, 0.9, 0.1]), None, np.array([2, 2]))[0]
    ('ndcg_lightgbm@10', 1.0, True)
    """

    def __init__(self, flavor: Flavor | str, k: KSpec = ..., *, threads: int | None = None) -> None:
        self.threads = check_k(threads, "threads", "for the default")
        self.flavor = as_flavor(flavor)
        if k is ... and self.flavor.k is None:
            k = (_DEFAULT_K,)
        self.ks, _ = cutoffs(k, self.flavor)
        if self.flavor.ties == "docid":
            raise ValueError(
                "NDCGEval cannot honour ties='docid', for LightGBM holds no document ids. "
                "Choose another rule: flavor.replace(ties='average')."
            )
        if self.flavor.empty != self.flavor.empty:
            raise ValueError(
                "NDCGEval cannot honour empty=nan, for a nan in the first round freezes LightGBM's early stopping. "
                "Choose empty='skip' to leave empty queries out, or 0 or 1."
            )
        base = self.flavor.metric_name
        self.names = tuple(base if k is None else f"{base}@{k}" for k in self.ks)
        self._recent = Recent(_SLOTS)
        self._whole: WeakSet[Any] = WeakSet()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_whole"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._whole = WeakSet()

    def __repr__(self) -> str:
        return f"NDCGEval({str(self.flavor)!r}, k={self.ks})"

    # LightGBM counts the parameters of this signature, and only 2, 3 or 4 of them will do.
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
        if hasattr(b, "get_label"):
            self._check_whole(b)
            scores, labels, weight, group = a, b.get_label(), b.get_weight(), b.get_group()
        else:
            labels, scores = a, b
        if group is None:
            raise ValueError(
                "NDCGEval needs the sizes of the queries, and this data set has none. Pass group= to lgb.Dataset, "
                "or group= and eval_group= to LGBMRanker.fit."
            )
        if np.ndim(scores) != 1:
            raise ValueError(
                f"NDCGEval needs one score a row; got predictions of shape {np.shape(scores)}. "
                "Use an objective with a single output, such as lambdarank."
            )
        values = self._prepared(np.asarray(group), np.asarray(labels), weight)(scores)
        assert isinstance(values, dict)
        return [(name, values[k], True) for name, k in zip(self.names, self.ks, strict=True)]

    def _check_whole(self, dataset: Any) -> None:
        # By data set and not by content, by which `_recent` keeps: what is left of a cut query is in the rows that a
        # data set took, and another one may hold the same labels in whole queries.
        if dataset in self._whole:
            return
        part = dataset
        while getattr(part, "used_indices", None) is not None:  # a subset; a validation set merely has a reference
            _refuse_cut_queries(part.reference.get_group(), part.used_indices)
            part = part.reference
        self._whole.add(dataset)

    def _prepared(self, group: NDArray[Any], labels: NDArray[Any], weight: Any) -> Prepared:
        weight = None if weight is None else np.asarray(weight)

        def make() -> Prepared:
            query_weight = None if weight is None else _mean_row_weight(weight, group)
            return prepare(
                labels, group=group, flavor=self.flavor, k=self.ks, query_weight=query_weight, threads=self.threads
            )

        return self._recent.prepared((group, labels, weight), make)


def _mean_row_weight(weight: NDArray[Any], group: NDArray[Any]) -> NDArray[np.float64]:
    """Mean weight of each query's rows; 0 for a query without rows, which has none."""
    if weight.size != group.sum():
        raise ValueError(f"weight must have one entry a row, {group.sum()}; got {weight.size}.")
    query = np.repeat(np.arange(group.size), group)
    total = np.bincount(query, weights=weight, minlength=group.size)
    mean: NDArray[np.float64] = total / np.maximum(group, 1)
    return mean


def _refuse_cut_queries(group: Any, rows: Any) -> None:
    """Raise where these rows of a data set hold a part of a query."""
    if group is None:
        return
    sizes = np.asarray(group)
    query = np.repeat(np.arange(sizes.size), sizes)
    used = np.bincount(query[np.asarray(rows)], minlength=sizes.size)
    cut = int(((used > 0) & (used != sizes)).sum())
    if cut:
        raise ValueError(
            f"NDCGEval needs whole queries, and the folds cut {cut} of {sizes.size}: some of their rows are in this "
            "data set and some are not. Pass folds=query_folds(group), or folds=GroupKFold().split(...), to lgb.cv; "
            "left to itself it keeps queries whole under ranking objectives only."
        )


@dataclass(frozen=True, eq=False)
class StopEarly:
    """What makes LightGBM stop on NDCG of one flavor at one cut-off, and on nothing else.

    LightGBM stops as soon as any metric of any validation set stalls, its built-in metrics among them and before all
    others. These are the arguments, for each of its interfaces, under which it does not::

        stop = StopEarly("lightgbm", k=(10, 5))  # stops on NDCG@10, logs NDCG@5 as well
        lgb.train({**params, **stop.params}, train, valid_sets=[valid], **stop.train())
        lgb.cv({**params, **stop.params}, data, folds=query_folds(group), **stop.train())
        LGBMRanker(**stop.params).fit(X, y, group=group, **stop.fit((X_valid, y_valid, group_valid)))

    Parameters
    ----------
    flavor, k, threads
        As for ``NDCGEval``. The first cut-off is the one that decides.
    rounds : int, default 50
        Training stops after this many rounds without an improvement.
    min_delta : float, default 0.0
        How much counts as an improvement.
    watch : str, optional
        Name of the validation set that decides, such as ``"valid_1"`` (``"valid"`` in ``lgb.cv``). Default: the only
        one there is; where there are several one must be named.

    Attributes
    ----------
    eval : NDCGEval
        The evaluation function that is in the arguments.
    params : dict
        Parameters for the booster: no built-in metric. A fresh dict each time.

    Raises
    ------
    TypeError, ValueError
        An option is not valid, or as for ``NDCGEval``. In the first round of training: there are several validation
        sets and `watch` names none, `watch` is not the name of one, there is none, the metric is not among those
        evaluated, or ``early_stopping_round`` is among the parameters of the booster, by which LightGBM (4.3 and 4.7)
        adds a rule of its own that stops on every metric of every set.

    Notes
    -----
    ``best_iteration`` is LightGBM's own, and ``best_score`` holds all metrics of all sets in that round. Boosting with
    ``dart`` cannot stop early in LightGBM, which warns and trains on.

    Examples
    --------
    >>> stop = StopEarly("lightgbm", k=(10, 5), rounds=20)
    >>> stop.params, stop.eval.names
    ({'metric': 'None'}, ('ndcg_lightgbm@10', 'ndcg_lightgbm@5'))
    >>> sorted(stop.train())
    ['callbacks', 'feval']
    """

    flavor: Flavor | str
    k: KSpec = ...
    rounds: int = field(default=50, kw_only=True)
    min_delta: float = field(default=0.0, kw_only=True)
    watch: str | None = field(default=None, kw_only=True)
    threads: int | None = field(default=None, kw_only=True)
    eval: NDCGEval = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rounds", _whole_number(self.rounds, "rounds", 1))
        delta: object = self.min_delta
        if isinstance(delta, bool) or not isinstance(delta, Real):
            raise TypeError(f"min_delta must be one number >= 0; got {delta!r} of type {type(delta).__name__}.")
        if not 0 <= self.min_delta < math.inf:
            raise ValueError(f"min_delta must be a finite number >= 0; got {self.min_delta!r}.")
        watch: object = self.watch
        if watch is not None and not isinstance(watch, str):
            raise TypeError(
                f"watch must be the name of a validation set (a str), or None; got {watch!r} of type "
                f"{type(watch).__name__}. LightGBM calls them 'valid_0', 'valid_1', ... unless they are named."
            )
        object.__setattr__(self, "eval", NDCGEval(self.flavor, self.k, threads=self.threads))

    @property
    def params(self) -> dict[str, Any]:
        """Parameters for the booster."""
        return {"metric": "None"}

    def train(self) -> dict[str, Any]:
        """Keyword arguments for ``lgb.train`` and ``lgb.cv``.

        Returns
        -------
        dict
            ``feval`` and ``callbacks``, fresh each time.
        """
        return {"feval": self.eval, "callbacks": [self._callback()]}

    def fit(self, *valid: tuple[Any, ...]) -> dict[str, Any]:
        """Keyword arguments for ``LGBMRanker.fit``.

        Parameters
        ----------
        *valid : tuple
            Validation sets, each ``(X, y, group)`` or ``(X, y, group, sample_weight)``; `group` is the sizes of the
            queries, `sample_weight` one weight a row or None. LightGBM calls them ``valid_0``, ``valid_1``, ...

        Returns
        -------
        dict
            ``eval_metric``, ``callbacks``, ``eval_group``, ``eval_sample_weight``, and the sets as ``eval_X`` and
            ``eval_y``, or as ``eval_set`` before LightGBM 4.7.

        Raises
        ------
        TypeError, ValueError
            There is no validation set, or one is not such a tuple or its parts do not have the same number of rows.
        """
        import lightgbm

        if not valid:
            raise ValueError("StopEarly.fit needs a validation set to stop on; got none. Pass (X, y, group).")
        for number, entry in enumerate(valid):
            _check_valid(entry, number)
        sets: dict[str, Any]
        if "eval_X" in inspect.signature(lightgbm.LGBMRanker.fit).parameters:
            sets = {"eval_X": tuple(entry[0] for entry in valid), "eval_y": tuple(entry[1] for entry in valid)}
        else:
            sets = {"eval_set": [(entry[0], entry[1]) for entry in valid]}
        return {
            **sets,
            "eval_group": [entry[2] for entry in valid],
            "eval_sample_weight": [entry[3] if len(entry) == 4 else None for entry in valid],
            "eval_metric": self.eval,
            "callbacks": [self._callback()],
        }

    def _callback(self) -> _Watch:
        from lightgbm import early_stopping

        lightgbms_own = early_stopping(
            self.rounds, first_metric_only=True, verbose=False, min_delta=float(self.min_delta)
        )
        return _Watch(lightgbms_own, self.eval.names[0], self.watch)


class _Watch:
    """LightGBM's own early stopping, shown the one metric of the one set that decides."""

    def __init__(self, early_stopping: Any, metric: str, watch: str | None) -> None:
        self.order, self.before_iteration = early_stopping.order, early_stopping.before_iteration
        self._early_stopping = early_stopping
        self._metric, self._watch = metric, watch
        self._rounds: list[Any] = []

    def __call__(self, env: Any) -> None:
        from lightgbm.callback import EarlyStopException

        if env.iteration == env.begin_iteration:
            self._check(env)
            self._rounds = []
        self._rounds.append(env.evaluation_result_list)
        watched = [entry for entry in env.evaluation_result_list if self._decides(*_set_and_metric(entry))]
        try:
            self._early_stopping(replace(env, evaluation_result_list=watched))
        except EarlyStopException as stop:
            # It carries what it was shown, which becomes best_score: say all that was evaluated in that round.
            everything = self._rounds[stop.best_iteration - env.begin_iteration]
            raise EarlyStopException(stop.best_iteration, everything) from None

    def _decides(self, name: str, metric: str) -> bool:
        return metric == self._metric and self._watch in (None, name)  # the training set LightGBM leaves out itself

    def _check(self, env: Any) -> None:
        if (env.params.get("early_stopping_round") or 0) > 0:
            raise ValueError(
                "early_stopping_round must not be among the parameters beside StopEarly; got "
                f"{env.params['early_stopping_round']}. LightGBM would stop on every metric of every set as well. "
                "Leave it out and pass StopEarly(..., rounds=)."
            )
        found = [_set_and_metric(entry) for entry in env.evaluation_result_list or ()]
        names = dict.fromkeys(name for name, _ in found)
        sets = [name for name in names if name not in _training_sets(env)]
        listed = ", ".join(map(repr, sets))
        if not sets:
            also = ", only the training set, on which LightGBM does not stop" if names else ""
            raise ValueError(f"StopEarly needs a validation set to stop on; got none{also}. Pass valid_sets=[...].")
        if self._watch is None and len(sets) > 1:
            raise ValueError(
                f"watch must name the validation set that decides where there are several; got None with {listed}. "
                f"Pass StopEarly(..., watch={sets[0]!r})."
            )
        if self._watch is not None and self._watch not in sets:
            raise ValueError(f"watch must be the name of a validation set, one of {listed}; got {self._watch!r}.")
        if (self._watch or sets[0], self._metric) not in found:
            raise ValueError(
                f"StopEarly needs {self._metric!r} to be evaluated, and it was not. Pass feval= (eval_metric= of "
                "LGBMRanker.fit) as StopEarly gives it, or a list that holds StopEarly.eval."
            )


def _set_and_metric(entry: Any) -> tuple[str, str]:
    name, metric = entry[0], entry[1]
    if name == "cv_agg":  # lgb.cv before LightGBM 4.7 has "valid ndcg@10" here
        name, _, metric = metric.partition(" ")
    return name, metric


def _training_sets(env: Any) -> tuple[str, ...]:
    # As LightGBM's own callback tells them apart: the training data of a Booster may bear any name.
    from lightgbm import Booster

    return (env.model._train_data_name,) if isinstance(env.model, Booster) else ("train",)


def _check_valid(entry: Any, number: int) -> None:
    if not isinstance(entry, tuple):
        raise TypeError(
            f"a validation set must be a tuple (X, y, group) or (X, y, group, sample_weight); number {number} is of "
            f"type {type(entry).__name__}."
        )
    if len(entry) not in (3, 4):
        raise ValueError(
            f"a validation set must be a tuple (X, y, group) or (X, y, group, sample_weight); number {number} has "
            f"{len(entry)} parts."
        )
    X, y, group, weight = entry if len(entry) == 4 else (*entry, None)  # noqa: N806
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    for name, part in (("y", y), ("sample_weight", weight)):
        if part is not None and len(part) != n_rows:
            raise ValueError(
                f"{name} of validation set {number} must have one entry a row of X, {n_rows}; got {len(part)}."
            )
    try:
        Groups.from_sizes(group, n_rows)
    except (TypeError, ValueError) as error:
        raise type(error)(f"In validation set {number}, {error}") from None


def _whole_number(value: object, name: str, least: int) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an integer >= {least}; got {value!r} of type {type(value).__name__}.")
    number = operator.index(value)
    if number < least:
        raise ValueError(f"{name} must be an integer >= {least}; got {number}.")
    return number


def query_folds(
    group: Any, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None
) -> list[tuple[IntArray, IntArray]]:
    """Folds of whole queries, for ``lgb.cv(folds=)`` under any objective.

    ``lgb.cv`` itself keeps queries whole under ranking objectives only; under any other its folds cut them.

    Parameters
    ----------
    group : array-like of int
        Sizes of the queries, as given to ``lgb.Dataset``.
    n_splits : int, default 5
        Number of folds, at least 2.
    shuffle : bool, default False
        False: queries are dealt out largest first, each to the fold with the fewest rows so far, so that folds are of
        nearly equal size (as scikit-learn's ``GroupKFold`` does). True: they are dealt out in random order, and folds
        differ by no more rows than the largest query has.
    random_state : int, numpy Generator or None, default None
        Of the shuffling: an int gives the same folds each time, None others each time.

    Returns
    -------
    list of (train_rows, test_rows)
        Row numbers in ascending order, one pair a fold.

    Raises
    ------
    TypeError, ValueError
        `group` does not hold sizes, `n_splits` is not an integer >= 2 or is more than the number of queries that have
        rows, or `random_state` is given without `shuffle`.

    Examples
    --------
    >>> [test.tolist() for _, test in query_folds([1, 3, 2, 2], n_splits=2)]
    [[0, 1, 2, 3], [4, 5, 6, 7]]
    """
    n_splits = _whole_number(n_splits, "n_splits", 2)
    sizes = np.asarray(group)
    sizes = Groups.from_sizes(sizes, sizes.sum() if sizes.dtype.kind in "iu" else 0).sizes
    if random_state is not None and not shuffle:
        raise ValueError(
            f"random_state only has a meaning with shuffle=True; got {random_state!r} with shuffle={shuffle!r}."
        )
    filled = int((sizes > 0).sum())
    if n_splits > filled:
        raise ValueError(f"n_splits must be at most the number of queries with rows, {filled}; got {n_splits}.")
    if shuffle:
        order = np.random.default_rng(random_state).permutation(sizes.size)
    else:
        order = np.argsort(-sizes, kind="stable")
    fold_of_query = np.empty(sizes.size, dtype=np.int64)
    lightest = [(0, fold) for fold in range(n_splits)]
    for query in order.tolist():
        rows, fold = lightest[0]
        fold_of_query[query] = fold
        heapq.heapreplace(lightest, (rows + int(sizes[query]), fold))
    fold_of_row = np.repeat(fold_of_query, sizes)
    return [(np.flatnonzero(fold_of_row != fold), np.flatnonzero(fold_of_row == fold)) for fold in range(n_splits)]
