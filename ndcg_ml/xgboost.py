"""XGBoost: an evaluation function, exact across workers, a callback, and XGBoost's own parameters."""

from __future__ import annotations

import copy
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ndcg_ml import _boosting as boosting
from ndcg_ml._core.frames import match_index, refuse_lazy
from ndcg_ml._core.kernel_and_threads import Cache
from ndcg_ml._core.mean_and_empty_queries import Sums
from ndcg_ml._core.queries import Queries, Weights
from ndcg_ml._core.scores import Ranking
from ndcg_ml._plain.checks import KSpec, optional_whole_number, plain_signature
from ndcg_ml.flavor import Flavor

__all__ = ["NDCGCallback", "NDCGEval", "supports", "xgboost_params"]

# Data sets whose layout is kept between rounds, enough for the folds and sets of a cross-validation.
_SLOTS = 32
_WHY_NO_NAN = "a nan in the first round freezes XGBoost's early stopping"


class NDCGEval(boosting.NamedMetric):
    """NDCG of any flavor as XGBoost's evaluation function.

    The same object works as ``xgb.train(custom_metric=)`` and ``xgb.cv(custom_metric=)``. If XGBoost runs on several
    workers, as under ``xgboost.dask``, it reports the value over all of them: workers exchange sums, so queries may be
    distributed in any way, as long as each is whole on one worker. (For other functions, XGBoost takes the mean of the
    workers' values.)

    Parameters
    ----------
    flavor : Flavor or str
        Definition of NDCG: a ``Flavor``, the name of a preset, or a flavor's text such as ``"xgboost@10"``.
    k : int, None or sequence of them, optional
        Cut-offs, each a separate metric; None for no cut-off. XGBoost's early stopping follows the first. Default: the
        flavor's own.
    name : str, optional
        Name in logs, such as "mine", which becomes ``ndcg_mine``. Default: ``flavor.metric_name``.

    Attributes
    ----------
    flavor : Flavor
    ks : tuple of int or None
    names : tuple of str
        Names in XGBoost's log, in the order of `ks`, with ``@k`` if there is a cut-off.

    Raises
    ------
    TypeError, ValueError
        The flavor or a cut-off is not valid, or the flavor has a switch that XGBoost does not support: ``ties="docid"``
        (it does not store document ids), ``empty=nan`` (a nan in the first round freezes its early stopping). When
        called: no groups, scores that are NaN or not one per row, labels that the flavor refuses. An error on one
        worker is raised on all of them.

    See Also
    --------
    NDCGCallback : for ``XGBRanker``, which cannot evaluate a function on whole data sets.

    Notes
    -----
    For XGBoost 3.2: early stopping follows the last metric of the last data set and maximises names that begin with
    ``ndcg``, so the cut-offs are reported in reverse order, after XGBoost's own metrics (which it computes unless
    ``disable_default_eval_metric`` is among the parameters). The history and early stopping have a precision of six
    decimals. There is one weight per query. ``xgb.cv`` drops weights when it makes its folds. With external memory
    (``DataIter``) each query must be whole in one batch: XGBoost silently makes two queries of a query that is cut.

    Examples
    --------
    >>> ndcg = NDCGEval("xgboost", k=(10, 5))
    >>> ndcg.names
    ('ndcg_xgboost@10', 'ndcg_xgboost@5')
    >>> import numpy as np, xgboost as xgb
    >>> data = xgb.DMatrix(np.zeros((4, 1)), label=[1, 0, 2, 0], group=[2, 2])
    >>> ndcg(np.array([0.5, 0.4, 0.9, 0.1]), data)
    [('ndcg_xgboost@5', 1.0), ('ndcg_xgboost@10', 1.0)]
    """

    @plain_signature
    def __init__(self, flavor: Flavor | str, k: KSpec = ..., *, name: str | None = None) -> None:
        super().__init__(flavor, k, name, "XGBoost", _WHY_NO_NAN)
        self._cache: Cache[Ranking] = Cache(_SLOTS)

    @property
    def __name__(self) -> str:  # XGBRanker reads the name of its eval_metric before it calls it
        return self.names[0]

    def __call__(self, preds: Any, dmatrix: Any) -> list[tuple[str, float]]:
        """Evaluate, called by XGBoost.

        Parameters
        ----------
        preds : ndarray of float, shape (n_rows,)
        dmatrix : xgboost.DMatrix

        Returns
        -------
        list of (name, value)
            In the reverse order of `names`.
        """
        self.refuse_data_of_others(dmatrix)
        if not hasattr(dmatrix, "get_uint_info"):
            raise ValueError(
                "NDCGEval cannot be the eval_metric of an XGBoost estimator, which calls it with the labels and scores "
                "of one query at a time, weights the results by the number of documents, and scores a query of one "
                "document 1.0. Use xgb.train(custom_metric=NDCGEval(...)); or "
                "XGBRanker(callbacks=[ndcg_ml.xgboost.NDCGCallback(...)]); or "
                "ndcg_ml.sklearn.QueryRanker(XGBRanker(), early_stopping_rounds=...)."
            )
        from xgboost import collective

        if collective.is_distributed():
            values = self._over_workers(preds, dmatrix)
        else:
            values = self._prepared(dmatrix).totals(self.one_score_per_row(preds)).values(self.flavor)
        return list(zip(self.names, values, strict=True))[::-1]

    def _prepared(self, dmatrix: Any) -> Ranking:
        return self._cache.get_or_make(_contents(dmatrix), lambda: self._prepare(*_contents(dmatrix)))

    def _prepare(self, ends: NDArray[Any], labels: NDArray[Any], weight: NDArray[Any] | None) -> Ranking:
        group = np.diff(ends.astype(np.int64))
        if weight is not None and weight.shape != group.shape:
            raise ValueError(
                f"weight must have one entry per query, {group.size}, as XGBoost's weights do when ranking; got "
                f"{weight.size}."
            )
        return Ranking(self.flavor, self.ks, Queries.read(labels, group=group, query_weight=weight))

    # -- several workers ---------------------------------------------------------------------------------------------

    def _over_workers(self, preds: Any, dmatrix: Any) -> list[float]:
        """Return the value over all workers' queries. If one fails, all still make the same calls, to avoid a hang."""
        from xgboost import collective

        problem: Exception | None = None
        try:
            mine, weighted = self._share(preds, dmatrix)
        except Exception as error:
            problem = error
        failed = 0 if problem is None else collective.get_rank() + 1
        (failed,) = collective.allreduce(np.array([failed], np.int64), collective.Op.MAX).tolist()
        if problem is not None:
            raise problem
        if failed:
            raise ValueError(
                f"NDCGEval could not evaluate the rows of worker {failed - 1}, so there is no overall value. See the "
                "error raised on that worker."
            )
        counts = [mine.n_queries, weighted]
        flat = np.concatenate([mine.numerator, mine.denominator, mine.n_empty, counts])
        total = collective.allreduce(flat, collective.Op.SUM)
        (numerator, denominator, n_empty), (n_queries, weighted) = total[:-2].reshape(3, len(self.ks)), total[-2:]
        if not n_queries:
            raise ValueError("at least one worker must have a query; got none.")
        if not weighted:
            raise ValueError("query weights must include at least one above 0; they are 0 on every worker.")
        sums = Sums(numerator, denominator, int(n_queries), n_empty.astype(np.int64))
        return sums.values(self.flavor)

    def _share(self, preds: Any, dmatrix: Any) -> tuple[Sums, bool]:
        """Return the sums over this worker's rows, and whether one of its queries has a weight above 0."""
        scores = self.one_score_per_row(preds)
        zeros = np.zeros(len(self.ks))
        if dmatrix.num_row() == 0:
            return Sums(zeros, zeros, 0, zeros.astype(np.int64)), False
        ends, labels, weight = _contents(dmatrix)
        if weight is None or weight.any():
            return self._prepared(dmatrix).totals(scores).sums(self.flavor), True
        # Weights that are all 0 are refused by prepare, but other workers may have positive weights.
        sums = self._prepare(ends, labels, None).totals(scores).sums(self.flavor)
        return sums._replace(numerator=zeros, denominator=zeros), False


class NDCGCallback(boosting.NamedMetric):
    """NDCG of held-out queries after every boosting round, for ``XGBRanker(callbacks=[...])`` and ``xgb.train``.

    It is recorded in the evaluation history. With `rounds` it stops training early, like XGBoost's own
    ``EarlyStopping``: ``best_iteration`` and ``best_score`` are set on the booster, and ``XGBRanker.predict`` uses the
    best iteration.

    Parameters
    ----------
    flavor : Flavor or str
        Definition of NDCG: a ``Flavor``, the name of a preset, or a flavor's text such as ``"sklearn@10"``.
    k : int, None or sequence of them, optional
        Cut-offs, each a separate metric; None for no cut-off. Early stopping follows the first. Default: the flavor's
        own.
    X : array-like, data frame or xgboost.DMatrix
        Features of the held-out rows, of the same type as the training data: anything that ``xgb.DMatrix`` takes. The
        training data's ``missing`` (``XGBRanker(missing=)``) applies here too. A ``DMatrix`` keeps its own missing
        value and base margin; it is required if the training data have a base margin.
    y : array-like of shape (n_rows,)
        Labels.
    group, qid
        The queries, as for ``ndcg_score``: sizes of consecutive queries, or one id per row.
    query_weight : array-like of shape (n_queries,), optional
    name : str, optional
        Name in logs, such as "mine", which becomes ``ndcg_mine``. Default: ``flavor.metric_name``.
    data_name : str, default "validation"
        Name of the data set in the evaluation history.
    rounds : int, optional
        Stop if the value has not increased for this many rounds. Default: do not stop early.

    Attributes
    ----------
    flavor : Flavor
    ks : tuple of int or None
    names : tuple of str
        The metrics in the evaluation history, in the order of `ks`, with ``@k`` if there is a cut-off.

    Raises
    ------
    TypeError, ValueError
        As for ``ndcg_score``, and as for ``NDCGEval``; pandas objects (X, y, qid) whose indexes differ. In training:
        `X` and `y` differ in the number of rows; the history already has a metric of that name for a data set called
        `data_name`; the trainer is ``xgb.cv``. Unless `X` is a ``DMatrix``: the training rows have a base margin; the
        trainer is not ``xgb.train`` (which the estimators call).

    See Also
    --------
    NDCGEval : the evaluation function of ``xgb.train``.

    Notes
    -----
    Values have full precision; those of an evaluation function have six decimals (XGBoost 3.2). XGBoost keeps the
    predictions of a ``DMatrix`` and adds only the new trees. A callback can be reused, and cloned with its estimator;
    copies share the data.

    With ``dart`` or ``gblinear``, XGBoost cannot predict with its ``best_iteration``.

    Transform `X` as the training rows (missing values replaced, features scaled, zeros removed from a sparse matrix);
    the callback cannot detect a difference.

    If several workers train one model, pass every worker the same held-out queries.

    Examples
    --------
    >>> import numpy as np, xgboost as xgb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(120, 3))
    >>> y, qid = (X[:, 0] > 0).astype(int), np.repeat(np.arange(12), 10)
    >>> ndcg = NDCGCallback("sklearn@5", X=X[80:], y=y[80:], qid=qid[80:], rounds=3)
    >>> ranker = xgb.XGBRanker(n_estimators=20, callbacks=[ndcg])
    >>> history = ranker.fit(X[:80], y[:80], qid=qid[:80]).evals_result()["validation"]["ndcg_sklearn@5"]
    >>> ranker.best_score == max(history) == history[ranker.best_iteration]
    True
    >>> len(history) - 1 - ranker.best_iteration
    3
    """

    @plain_signature
    def __init__(
        self,
        flavor: Flavor | str,
        k: KSpec = ...,
        *,
        X: Any,  # noqa: N803
        y: ArrayLike,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        query_weight: Weights | None = None,
        name: str | None = None,
        data_name: str = "validation",
        rounds: int | None = None,
    ) -> None:
        self._register()
        super().__init__(flavor, k, name, "XGBoost", _WHY_NO_NAN)
        self.data_name = data_name
        self.rounds: int | None = optional_whole_number(rounds, "rounds", "for no early stopping")
        self.X = X
        refuse_lazy(y, "y")
        match_index({"X": X, "y": y, "qid": qid})
        data = Queries.read(y, group=group, qid=qid, query_weight=query_weight)
        self._prepared = Ranking(self.flavor, self.ks, data)
        self._n_rows = np.size(y)
        self._run: Any = None  # the state of a training

    def __repr__(self) -> str:
        return f"NDCGCallback({self.definition()}, data_name={self.data_name!r}, rounds={self.rounds})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_run": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._register()
        self.__dict__.update(state)

    @classmethod
    def _register(cls) -> None:
        # XGBoost requires an instance of its abstract base class; inheriting from it would import XGBoost here.
        from xgboost.callback import TrainingCallback

        TrainingCallback.register(cls)

    def __deepcopy__(self, memo: dict[int, Any]) -> NDCGCallback:
        return copy.copy(self)  # share the data

    def before_training(self, model: Any) -> Any:
        """Prepare for a training, called by XGBoost."""
        import xgboost as xgb

        if not isinstance(model, xgb.Booster):
            raise ValueError(
                "NDCGCallback evaluates one model on held-out queries, and xgb.cv trains several on its own folds. "
                "Use xgb.cv(custom_metric=ndcg_ml.xgboost.NDCGEval(...))."
            )
        data = self.X if isinstance(self.X, xgb.DMatrix) else self._as_in_training(_training_data())
        if data.num_row() != self._n_rows:
            raise ValueError(f"X must have one row per label, {self._n_rows}; got {data.num_row()}.")
        self._run = SimpleNamespace(data=data, stopping=None, n_done=0)
        if self.rounds is not None:
            self._run.stopping = xgb.callback.EarlyStopping(
                rounds=self.rounds, metric_name=self.names[0], data_name=self.data_name, maximize=True
            )
            model = self._run.stopping.before_training(model)
        return model

    def _as_in_training(self, training: Any) -> Any:
        """Return the held-out rows with the settings of the training data."""
        import xgboost as xgb

        if training is None:
            raise ValueError(
                "X must be an xgb.DMatrix unless xgb.train does the training, because the missing value of the "
                "training data is unknown. Pass X=xgb.DMatrix(X, missing=..., base_margin=...)."
            )
        if training.get_base_margin().size:
            raise ValueError(
                "X must be an xgb.DMatrix if the training rows have a base margin, because the held-out rows need one "
                "too. Pass X=xgb.DMatrix(X, base_margin=...)."
            )
        # Without category columns enable_categorical has no effect.
        data = xgb.DMatrix(self.X, missing=training.missing, enable_categorical=True)
        if data.num_col() != training.num_col():
            raise ValueError(
                f"X must have the {training.num_col()} columns of the training data; got {data.num_col()}."
            )
        return data

    def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Nothing to do, called by XGBoost."""
        return False

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Evaluate and record; True stops the training. Called by XGBoost."""
        scores = self.one_score_per_row(model.predict(self._run.data))
        values = self._prepared.totals(scores).values(self.flavor)
        log = evals_log.setdefault(self.data_name, {})
        # In reverse order, as in NDCGEval, because other callbacks follow the last metric.
        for logged, value in reversed(list(zip(self.names, values, strict=True))):
            if len(log.setdefault(logged, [])) != self._run.n_done:
                raise ValueError(
                    f"the evaluation history already has {logged!r} for a data set called {self.data_name!r}, written "
                    "by another callback or evaluation function. Pass another data_name= to NDCGCallback."
                )
            log[logged].append(value)
        self._run.n_done += 1
        stopping = self._run.stopping
        return stopping is not None and bool(stopping.after_iteration(model, epoch, evals_log))

    def after_training(self, model: Any) -> Any:
        """Release the state of this training, called by XGBoost."""
        self._run = None
        return model


def _training_data() -> Any:
    """Return the DMatrix that ``xgb.train`` is training on; None if another function trains.

    The estimators and ``xgboost.dask`` call ``xgb.train``. XGBoost does not pass the data to a callback, so they are
    read from the frame of that function, if they are an argument.
    """
    frame = sys._getframe().f_back
    while frame is not None:
        if frame.f_globals.get("__name__") == "xgboost.training" and frame.f_code.co_name == "train":
            return frame.f_locals.get("dtrain")
        frame = frame.f_back
    return None


def _contents(dmatrix: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """Return the ends of queries, the labels and the weights of a DMatrix."""
    ends = dmatrix.get_uint_info("group_ptr")
    if ends.size < 2:
        raise ValueError(
            "NDCGEval needs the queries, and this DMatrix has none. Pass qid= or group= to every xgb.DMatrix, "
            "including those for evaluation."
        )
    weight = dmatrix.get_weight()
    return ends, dmatrix.get_label(), weight if weight.size else None


# -- XGBoost's own parameters ----------------------------------------------------------------------------------------

# First version whose metric follows ndcg_exp_gain=False (of 2.1.0, 2.1.4, 3.0.0, 3.0.2 and 3.0.3).
_LINEAR_SINCE = (3, 0, 3)
_XGBOOST = boosting.Library(
    name="XGBoost",
    training={
        "gain": boosting.Rule(("exponential", "linear"), "has the gains 2^y - 1 and y"),
        "discount": boosting.LOGARITHM,
        "negative": boosting.Rule(
            ("raise", "allow"), "passes negative labels through the linear gain, and refuses them under the exponential"
        ),
        "unjudged": boosting.Rule(("raise",), "refuses a NaN label"),
    },
    # Its predictions are float32, so the ties are the same in float64 and float32.
    metric={
        **boosting.METRIC,
        "empty": boosting.Rule(
            (1.0, 0.0), "gives a query without a relevant document the score 1, or 0 under 'ndcg@k-'"
        ),
    },
)


def xgboost_params(flavor: Flavor | str, *, evaluate: bool = True) -> dict[str, Any]:
    """Return XGBoost's parameters for this flavor, for ``xgb.train``, ``xgb.cv`` and ``XGBRanker``.

    They set the objective ``rank:ndcg`` with this gain, and XGBoost's own metric, which then computes exactly this
    flavor.

    Parameters
    ----------
    flavor : Flavor or str
        A ``Flavor``, the name of a preset, or a flavor's text.
    evaluate : bool, default True
        False: only the objective, without the default metric, for use with ``NDCGEval``. Switches
        of evaluation (ideal, ties, empty, aggregate, short_lists, score_dtype) may then have any value.

    Returns
    -------
    dict

    Raises
    ------
    ValueError
        XGBoost cannot express a switch; or the gain is linear and the installed XGBoost is older than 3.0.3, whose
        metric ignores ``ndcg_exp_gain``.
    TypeError
        `flavor` is not a flavor, or `evaluate` is not a bool.

    Notes
    -----
    Verified with XGBoost 3.2.0, to the digits that it prints. `score_dtype` has no effect, because XGBoost's
    predictions are float32. Under the exponential gain XGBoost requires integer labels from 0 to 31; under the
    linear one it accepts labels that this flavor refuses (negative ones, and those above `max_grade`). The
    objective takes its pairs from the first k ranks or, without a cut-off, from all. Plain ``ndcg`` means
    ``ndcg@32``, so without a cut-off the metric has one that no list reaches.

    Examples
    --------
    >>> xgboost_params(Flavor.preset("xgboost", k=5))  # doctest: +NORMALIZE_WHITESPACE
    {'objective': 'rank:ndcg', 'ndcg_exp_gain': True, 'lambdarank_pair_method': 'topk',
     'lambdarank_num_pair_per_sample': 5, 'eval_metric': 'ndcg@5'}
    """
    flavor = boosting.expressible(flavor, _XGBOOST, evaluate)
    if flavor.gain == "exponential" and flavor.negative == "allow":
        raise boosting.NotExpressibleError(
            "XGBoost cannot express negative='allow' with gain='exponential': under that gain it refuses negative "
            "labels.",
            "Use flavor.replace(negative='raise'), or gain='linear'.",
        )
    at = min(flavor.k or boosting.LONGEST, boosting.LONGEST)
    params: dict[str, Any] = {
        "objective": "rank:ndcg",
        "ndcg_exp_gain": flavor.gain == "exponential",
        "lambdarank_pair_method": "topk",
        "lambdarank_num_pair_per_sample": at,
    }
    if not evaluate:
        return {**params, "disable_default_eval_metric": True}
    if flavor.gain == "linear":
        _check_linear_metric()
    return {**params, "eval_metric": f"ndcg@{at}{'-' if flavor.empty == 0 else ''}"}


def _check_linear_metric() -> None:
    from importlib.metadata import PackageNotFoundError, version  # a slow import that few calls need

    try:
        installed = version("xgboost")
    except PackageNotFoundError:
        return
    if tuple(int(part) for part in installed.split(".")[:3] if part.isdigit()) < _LINEAR_SINCE:
        raise boosting.NotExpressibleError(
            f"XGBoost {installed} cannot express gain='linear': its metric does not follow ndcg_exp_gain=False before "
            f"{'.'.join(map(str, _LINEAR_SINCE))}.",
            "Use a later one, flavor.replace(gain='exponential'), or xgboost_params(flavor, evaluate=False) with "
            "ndcg_ml.xgboost.NDCGEval, which evaluates this flavor.",
        )


def supports(flavor: Flavor | str) -> boosting.Support:
    """Return whether XGBoost's own objective and metric can express this flavor, and the reason if not.

    It is true exactly if ``xgboost_params`` returns parameters. ``NDCGEval`` computes more flavors.

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
    >>> bool(supports("xgboost@10")), bool(supports("xgboost[ties=average]"))
    (True, False)
    """
    return boosting.support(xgboost_params, flavor)
