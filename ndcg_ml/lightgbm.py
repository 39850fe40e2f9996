"""LightGBM: evaluation, early stopping, and LightGBM's own parameters for a flavor."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ndcg_ml import _boosting as boosting
from ndcg_ml._core.frames import match_index, refuse_index
from ndcg_ml._core.kernel_and_threads import Cache
from ndcg_ml._core.labels_gains_discounts import gain
from ndcg_ml._core.queries import Queries, mean_row_weight
from ndcg_ml._core.scores import Ranking
from ndcg_ml._plain.checks import KSpec, plain_signature, whole_number
from ndcg_ml._plain.messages import brief
from ndcg_ml.flavor import Flavor

__all__ = ["NDCGEval", "StopEarly", "lightgbm_params", "supports"]

# Data sets whose layout is kept between rounds, enough for the folds and sets of a cross-validation.
_SLOTS = 32


class NDCGEval(boosting.NamedMetric):
    """NDCG of any flavor as LightGBM's evaluation function.

    The same object works as ``lgb.train(feval=)``, ``lgb.cv(feval=)`` and ``LGBMRanker.fit(eval_metric=)``.

    Parameters
    ----------
    flavor : Flavor or str
        Definition of NDCG: a ``Flavor``, the name of a preset, or a flavor's text such as ``"lightgbm@10"``.
    k : int, None or sequence of them, optional
        Cut-offs, each reported as a separate metric, in this order; None for no cut-off. With ``first_metric_only``,
        LightGBM's early stopping follows the first. Default: the flavor's own.
    name : str, optional
        Name in logs, such as "mine", which becomes ``ndcg_mine``. Default: ``flavor.metric_name``.

    Attributes
    ----------
    flavor : Flavor
    ks : tuple of int or None
    names : tuple of str
        Names in LightGBM's log, with ``@k`` if there is a cut-off; never the name of a built-in metric.

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

    As in LightGBM 4.7, the weight of a query is the mean weight of its rows. The layout, gains and ideal of each data
    set are cached between rounds. LightGBM also computes its built-in metrics, before this one, unless
    ``metric="None"`` is among the parameters.

    Optuna's tuners maximise only five metrics that they know by name. Pass them the negative value, as
    docs/boosting.md shows, or they keep the worst trial.

    Examples
    --------
    >>> ndcg = NDCGEval("lightgbm", k=(10, 5))
    >>> ndcg.names
    ('ndcg_lightgbm@10', 'ndcg_lightgbm@5')
    >>> import numpy as np
    >>> ndcg(np.array([1.0, 0.0, 2.0, 0.0]), np.array([0.5, 0.4, 0.9, 0.1]), None, np.array([2, 2]))[0]
    ('ndcg_lightgbm@10', 1.0, True)
    """

    @plain_signature
    def __init__(self, flavor: Flavor | str, k: KSpec = ..., *, name: str | None = None) -> None:
        super().__init__(flavor, k, name, "LightGBM", "a nan in the first round freezes LightGBM's early stopping")
        self._cache: Cache[Ranking] = Cache(_SLOTS)

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
        self.refuse_data_of_others(b)
        scores, labels, weight, group = _rows_of(a, b, weight, group)
        totals = self._prepared(group, np.asarray(labels), weight).totals(self.one_score_per_row(scores))
        return [(name, value, True) for name, value in zip(self.names, totals.values(self.flavor), strict=True)]

    def _prepared(self, group: NDArray[Any], labels: NDArray[Any], weight: Any) -> Ranking:
        weight = None if weight is None else np.asarray(weight)

        def make() -> Ranking:
            mean = mean_row_weight(weight, group)
            return Ranking(self.flavor, self.ks, Queries.read(labels, group=group, query_weight=mean))

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


# -- early stopping ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class StopEarly:
    """Make LightGBM stop early on NDCG of one flavor at one cut-off, and ignore its other metrics.

    LightGBM stops as soon as any metric of any validation set stops improving, including its built-in metrics. This
    object returns the arguments that prevent this::

        stop = StopEarly("lightgbm", k=(10, 5))  # stops on NDCG@10, logs NDCG@5 as well
        lgb.train({**params, **stop.params}, train, valid_sets=[valid], **stop.train())
        lgb.cv({**params, **stop.params}, data, folds=GroupKFold(5), **stop.train())
        LGBMRanker(**stop.params).fit(X, y, group=group, **stop.fit((X_valid, y_valid, group_valid)))

    Parameters
    ----------
    flavor, k, name
        As for ``NDCGEval``. Training stops on the first cut-off.
    rounds : int, default 50
        Training stops after this many rounds without an improvement.
    watch : str, optional
        Name of the validation set to stop on, such as ``"valid_1"`` (``"valid"`` in ``lgb.cv``). Default: the only one;
        required if there are several.

    Attributes
    ----------
    eval : NDCGEval
        The evaluation function.
    params : dict
        Parameters for the booster, without built-in metrics. A new dict each time.

    Raises
    ------
    TypeError, ValueError
        Raised at construction for an invalid argument, or as for ``NDCGEval``. Raised in the first training round if
        there is no validation set; if there are several and `watch` is None; if `watch` is not the name of one; if the
        metric is not evaluated; if ``early_stopping_round`` is among the parameters of the booster, which makes
        LightGBM (4.3 and 4.7) stop on every metric of every set; or if the parameters name several machines.

    Notes
    -----
    ``best_iteration`` is LightGBM's own, and ``best_score`` holds all metrics of all sets in that round. LightGBM
    cannot stop early with ``dart``: it warns and continues.

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
    watch: str | None = field(default=None, kw_only=True)
    name: str | None = field(default=None, kw_only=True)
    eval: NDCGEval = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rounds", whole_number(self.rounds, "rounds", 1))
        object.__setattr__(self, "eval", NDCGEval(self.flavor, self.k, name=self.name))

    def __repr__(self) -> str:
        return f"StopEarly({self.eval.definition()}, rounds={self.rounds}, watch={self.watch!r})"

    def __call__(self, a: object, b: object = None, c: object = None) -> NoReturn:
        """Refuse to be ``feval``, ``eval_metric`` or a callback, which LightGBM calls."""
        raise TypeError(
            "StopEarly is not a feval or a callback itself, it returns both. Write lgb.train(..., **stop.train()), or "
            "LGBMRanker(**stop.params).fit(..., **stop.fit((X_valid, y_valid, group_valid)))."
        )

    @property
    def params(self) -> dict[str, Any]:
        """Parameters for the booster."""
        return {"metric": "None"}

    def train(self) -> dict[str, Any]:
        """Keyword arguments for ``lgb.train`` and ``lgb.cv``.

        Returns
        -------
        dict
            ``feval`` and ``callbacks``, new each time.
        """
        return {"feval": self.eval, "callbacks": [self._callback()]}

    def fit(self, *valid: tuple[Any, ...]) -> dict[str, Any]:
        """Keyword arguments for ``LGBMRanker.fit``.

        Parameters
        ----------
        *valid : tuple
            Validation sets, each ``(X, y, group)`` or ``(X, y, group, sample_weight)``; `group` is the sizes of the
            queries, `sample_weight` one weight per row or None. LightGBM calls them ``valid_0``, ``valid_1``, ...

        Returns
        -------
        dict
            ``eval_metric``, ``callbacks``, ``eval_group``, ``eval_sample_weight``, and the sets as ``eval_X`` and
            ``eval_y``, or as ``eval_set`` before LightGBM 4.7.

        Raises
        ------
        TypeError, ValueError
            There is no validation set, or one is not such a tuple, or the indexes of its pandas objects differ.
        """
        import lightgbm

        if not valid:
            raise ValueError("StopEarly.fit needs a validation set; got none. Pass (X, y, group).")
        for number, entry in enumerate(valid):
            _check_valid(entry, number)
        X, y = tuple(entry[0] for entry in valid), tuple(entry[1] for entry in valid)  # noqa: N806
        has_eval_X = "eval_X" in inspect.signature(lightgbm.LGBMRanker.fit).parameters  # noqa: N806
        sets = {"eval_X": X, "eval_y": y} if has_eval_X else {"eval_set": list(zip(X, y, strict=True))}
        return {
            **sets,
            "eval_group": [entry[2] for entry in valid],
            "eval_sample_weight": [entry[3] if len(entry) == 4 else None for entry in valid],
            "eval_metric": self.eval,
            "callbacks": [self._callback()],
        }

    def _callback(self) -> _Watch:
        from lightgbm import early_stopping

        lightgbms_own = early_stopping(self.rounds, verbose=False)
        return _Watch(lightgbms_own, self.eval.names[0], self.watch)


class _Watch:
    """LightGBM's own early stopping, restricted to one metric and one validation set."""

    def __init__(self, early_stopping: Any, metric: str, watch: str | None) -> None:
        self.order, self.before_iteration = early_stopping.order, early_stopping.before_iteration
        self._early_stopping = early_stopping
        self._metric, self._watch = metric, watch
        self._rounds: list[Any]

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
            # Its result becomes best_score, so pass all metrics of that round.
            everything = self._rounds[stop.best_iteration - env.begin_iteration]
            raise EarlyStopException(stop.best_iteration, everything) from None

    def _decides(self, name: str, metric: str) -> bool:
        return metric == self._metric and self._watch in (None, name)  # LightGBM ignores the training set

    def _check(self, env: Any) -> None:
        from lightgbm import Booster

        if (env.params.get("early_stopping_round") or 0) > 0:
            raise ValueError(
                "early_stopping_round must not be among the parameters with StopEarly; got "
                f"{env.params['early_stopping_round']}. LightGBM would stop on every metric of every set as well. "
                "Leave it out and pass StopEarly(..., rounds=)."
            )
        machines = [str(env.params.get(name)) for name in ("machines", "workers", "nodes")]
        if any("," in each for each in machines) or int(env.params.get("num_machines") or 1) > 1:
            raise ValueError(
                "StopEarly must not be used on several machines, as by DaskLGBMRanker, because each would stop by its "
                "own rows. Train a fixed number of rounds, and pass all predictions to ndcg_score."
            )
        evaluated = [_set_and_metric(entry) for entry in env.evaluation_result_list or ()]
        # As in LightGBM's own callback, because the training data of a Booster may have any name.
        training = env.model._train_data_name if isinstance(env.model, Booster) else "train"
        sets = [name for name, metric in evaluated if metric == self._metric and name != training]
        if self._watch not in (sets if len(sets) != 1 else [None, *sets]):
            raise ValueError(
                f"watch must name a validation set on which {self._metric!r} is evaluated, one of {sets} (or be None "
                f"if there is one); got {self._watch!r}. Pass the validation sets, and feval= (eval_metric= of "
                "LGBMRanker.fit) as StopEarly returns it."
            )


def _set_and_metric(entry: Any) -> tuple[str, str]:
    name, metric = entry[0], entry[1]
    if name == "cv_agg":  # lgb.cv before LightGBM 4.7 has "valid ndcg@10" here
        name, _, metric = metric.partition(" ")
    return name, metric


def _check_valid(entry: Any, number: int) -> None:
    if not isinstance(entry, tuple) or len(entry) not in (3, 4):
        got = f"has {len(entry)} parts" if isinstance(entry, tuple) else f"is of type {type(entry).__name__}"
        raise TypeError(
            f"a validation set must be a tuple (X, y, group) or (X, y, group, sample_weight); number {number} {got}. "
            "Pass fit((X, y, group)), and several sets as fit(first, second)."
        )
    X, y, group, *weight = entry  # noqa: N806
    where = f"of validation set {number}"
    match_index({f"X {where}": X, f"y {where}": y, f"sample_weight {where}": weight[0] if weight else None})
    refuse_index(group, f"group {where}", "Pass the sizes in the order of the rows")
    sizes, n_rows = np.asarray(group), np.shape(y)[0]
    if sizes.dtype.kind not in "iuf" or sizes.sum() != n_rows:
        raise ValueError(
            f"group {where} must be the sizes of the queries, which sum to its {n_rows} rows; got {brief(group)}. If "
            "these are ids, pass [len([*rows]) for _, rows in itertools.groupby(ids)]."
        )


# -- LightGBM's own parameters ---------------------------------------------------------------------------------------

# LightGBM documents lambdarank_truncation_level as "slightly above k, for example k + 3".
_BELOW_THE_CUT = 3
# LightGBM 4.7 refuses a query with more rows, so a cut-off at this rank has no effect.
_LIGHTGBM_ROWS = 10_000
# Number of grades in LightGBM's default table: 0..30.
_GRADES = 31
_MOST_GRADES = 10_000
# LightGBM's sums of larger gains could overflow.
_LARGEST_GAIN = 1e300

_LIGHTGBM = boosting.Library(
    name="LightGBM",
    training={
        "off_table": boosting.Rule(("raise",), "refuses a label beyond its table"),
        "discount": boosting.LOGARITHM,
        "negative": boosting.Rule(("raise",), "refuses negative labels"),
        "unjudged": boosting.Rule(("raise",), "reads a NaN label as grade 0, or refuses it"),
    },
    metric={**boosting.METRIC, "score_dtype": boosting.FLOAT64},
)


def lightgbm_params(flavor: Flavor | str, *, evaluate: bool = True) -> dict[str, Any]:
    """Return LightGBM's parameters for this flavor, for ``lgb.train``, ``lgb.cv`` and ``LGBMRanker``.

    They set the objective ``lambdarank`` with this gain as a table by grade, and LightGBM's own metric, which then
    computes exactly this flavor.

    Parameters
    ----------
    flavor : Flavor or str
        A ``Flavor``, the name of a preset, or a flavor's text.
    evaluate : bool, default True
        False: only the objective, without built-in metrics, for use with ``NDCGEval`` or ``StopEarly``. Switches of
        evaluation (ideal, ties, empty, aggregate, short_lists, score_dtype) may then have any value.

    Returns
    -------
    dict
        Without `max_grade`, the table has the grades 0..30, or those of the flavor's gain table.

    Raises
    ------
    ValueError
        LightGBM cannot express a switch.
    TypeError
        `flavor` is not a flavor, or `evaluate` is not a bool.

    Notes
    -----
    Verified with LightGBM 4.7.0, to 1e-9. LightGBM refuses labels beyond the table, fractions and negative labels;
    ``lgb.Dataset`` silently reads NaN labels as grade 0. If rows have weights, its metric does not weight queries
    without a relevant document. The objective is truncated three ranks below the cut-off, as LightGBM's
    documentation advises, and not truncated without a cut-off. ``LGBMRanker.fit`` warns of ``eval_at`` and uses it.

    Examples
    --------
    >>> flavor = Flavor.preset("lightgbm", gain=(0, 1, 3), k=5)
    >>> lightgbm_params(flavor)  # doctest: +NORMALIZE_WHITESPACE
    {'objective': 'lambdarank', 'label_gain': [0.0, 1.0, 3.0], 'lambdarank_truncation_level': 8,
     'metric': 'ndcg', 'eval_at': [5]}
    >>> lightgbm_params(flavor.replace(ties="average"), evaluate=False)["metric"]
    'None'
    """
    flavor = boosting.expressible(flavor, _LIGHTGBM, evaluate)
    at = min(flavor.k or _LIGHTGBM_ROWS, _LIGHTGBM_ROWS)
    params = {
        "objective": "lambdarank",
        "label_gain": _label_gain(flavor),
        "lambdarank_truncation_level": min(at + _BELOW_THE_CUT, _LIGHTGBM_ROWS),
    }
    return {**params, **({"metric": "ndcg", "eval_at": [at]} if evaluate else {"metric": "None"})}


def _label_gain(flavor: Flavor) -> list[float]:
    """Return the gain of every grade from 0. LightGBM refuses labels beyond the table."""
    top = flavor.max_grade
    if top is not None and not 0 <= top < _MOST_GRADES:
        raise boosting.NotExpressibleError(
            f"max_grade must be from 0 to {_MOST_GRADES - 1} for LightGBM, which looks gains up in a table by grade; "
            f"got {top!r}.",
            "Use flavor.replace(max_grade=...) on labels of fewer grades.",
        )
    grades = range(_GRADES if top is None else int(top) + 1)
    if isinstance(flavor.gain, tuple):
        grades = grades[: len(flavor.gain)] if top is not None else range(len(flavor.gain))
    try:
        with np.errstate(over="ignore"):
            gains: list[float] = gain(flavor, np.array(grades, dtype=np.float64)).tolist()
    except (TypeError, ValueError) as error:
        raise boosting.NotExpressibleError(
            f"gain must have a value for every grade of LightGBM's table, 0 to {len(grades) - 1}; "
            f"{str(error).rstrip('.')}.",
            "Use a gain that is defined at 0, and flavor.replace(max_grade=...) with the top of your grade scale.",
        ) from error
    cannot = f"LightGBM cannot express gain={boosting.value_in_words(flavor.gain)}"
    for grade, (lower, higher) in enumerate(pairwise(gains), start=1):
        if higher < lower:
            raise boosting.NotExpressibleError(
                f"{cannot}: it ranks the higher grade first, and the gain {higher!r} of grade {grade} is below the "
                f"gain {lower!r} of grade {grade - 1}.",
                "Use flavor.replace(gain='exponential'), or another gain that does not decrease.",
            )
    if max(map(abs, gains)) > _LARGEST_GAIN:
        raise boosting.NotExpressibleError(
            f"{cannot} up to grade {len(gains) - 1}, whose gain is beyond {_LARGEST_GAIN:g}.",
            "Use flavor.replace(max_grade=...) on labels of fewer grades, or another gain.",
        )
    return gains


def supports(flavor: Flavor | str) -> boosting.Support:
    """Return whether LightGBM's own objective and metric can express this flavor, and the reason if not.

    It is true exactly if ``lightgbm_params`` returns parameters. ``NDCGEval`` computes more flavors.

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
    >>> supports("lightgbm@10").reason is None
    True
    >>> supports("lightgbm[ties=average]").reason
    "LightGBM's metric cannot express ties='average': it ranks tied rows in the order of the data."
    """
    return boosting.support(lightgbm_params, flavor)
