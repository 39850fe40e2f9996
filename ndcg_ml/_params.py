"""The parameters of LightGBM, XGBoost and CatBoost that express a flavor; and what the metrics for them share.

This module imports no adapter, because ``Flavor`` and the adapters import it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ndcg_ml._core.checks import KSpec, cutoffs, log_name, one_of, refuse_docid, refuse_nan, true_or_false
from ndcg_ml._core.flavor_text import at_cutoff, switch_text
from ndcg_ml._core.gains_and_discounts import gain
from ndcg_ml.flavor import Flavor, as_arguments, as_flavor


class Rule(NamedTuple):
    """The values of a switch that a library supports, its default first, and a description of its behaviour."""

    takes: tuple[object, ...]
    does: str


class Library(NamedTuple):
    """The rules for switches of a library's objective and of its own metric."""

    name: str
    training: Mapping[str, Rule]
    metric: Mapping[str, Rule]


class NotExpressibleError(ValueError):
    """A library cannot express a flavor. Its two arguments are the reason and what to pass instead, as sentences."""

    def __str__(self) -> str:
        return " ".join(self.args)


@dataclass(frozen=True)
class Support:
    """Whether a library can express a flavor; see ``Flavor.supports``."""

    reason: str | None = None
    fix: str | None = None

    def __bool__(self) -> bool:
        return self.reason is None


def support(flavor: Flavor, library: str) -> Support:
    """See ``Flavor.supports``."""
    parameters = {"lightgbm": lightgbm_params, "xgboost": xgboost_params, "catboost": catboost_params}
    one_of(library, "library", parameters)
    try:
        parameters[library](flavor, evaluate=True)
    except NotExpressibleError as refusal:
        return Support(*refusal.args)
    return Support()


# -- rules of several libraries ---------------------------------------------------------------------------------------

# The base of the logarithm cancels in NDCG, so log2 and ln are one discount.
_LOGARITHM = Rule(("log2", "ln"), "discounts by 1/log2(rank + 1)")
_IDEAL: Mapping[str, Rule] = {
    "ideal": Rule(("recall", "global"), "divides by the DCG of the best order of all rows of the query"),
    "recall_depth": Rule((None,), "divides by the DCG of the best order of all rows of the query"),
    # In these libraries, all documents of a query are retrieved.
    "ideal_depth": Rule(("k", "retrieved"), "cuts off the ideal at the same rank as the ranking"),
    "short_lists": Rule(("score",), "scores a query with fewer than k documents like any other"),
    "aggregate": Rule(("macro",), "takes the mean of the queries' NDCG"),
}
_EMPTY_IS_ONE = Rule((1.0,), "gives a query without a relevant document the score 1")
_IN_ROW_ORDER = Rule(("first",), "ranks tied rows in the order of the data")
_FLOAT64 = Rule(("float64",), "compares scores in float64")

# Without a cut-off, these switches have no effect.
_OF_A_CUTOFF = ("ideal_depth", "short_lists")


def _check_expressible(flavor: Flavor, library: Library, evaluate: object) -> None:
    """Refuse a flavor that the library's objective, and with `evaluate` also its metric, cannot express."""
    true_or_false(evaluate, "evaluate")
    module = library.name.lower()
    evaluation = f"ndcg_ml.{module}.NDCGEval"
    for rules, name, otherwise in (
        (library.training, library.name, f"; {evaluation} can evaluate the original flavor"),
        (
            library.metric if evaluate else {},
            f"{library.name}'s metric",
            f", or {module}_params(evaluate=False) with {evaluation}, which evaluates this flavor",
        ),
    ):
        for switch, rule in rules.items():
            value = getattr(flavor, switch)
            if value not in rule.takes and not (switch in _OF_A_CUTOFF and flavor.k is None):
                # off_table needs a gain table.
                also = ", off_table='raise'" if switch == "gain" and flavor.off_table != "raise" else ""
                raise NotExpressibleError(
                    f"{name} cannot express {switch}={_value_in_words(value)}: it {rule.does}.",
                    f"Use flavor.replace({switch}={rule.takes[0]!r}{also}){otherwise}.",
                )


def _value_in_words(value: object) -> str:
    """Return the value of a switch for an error message."""
    return switch_text(value) if callable(value) else repr(value)


# -- LightGBM ---------------------------------------------------------------------------------------------------------

# LightGBM documents lambdarank_truncation_level as "slightly above k, for example k + 3".
_BELOW_THE_CUT = 3
# LightGBM 4.7 refuses a query with more rows, so a cut-off at this rank has no effect.
_LIGHTGBM_ROWS = 10_000
# Number of grades in LightGBM's default table: 0..30.
_GRADES = 31
_MOST_GRADES = 10_000
# LightGBM's sums of larger gains could overflow.
_LARGEST_GAIN = 1e300

_LIGHTGBM = Library(
    name="LightGBM",
    training={
        "off_table": Rule(("raise",), "refuses a label beyond its table"),
        "discount": _LOGARITHM,
        "negative": Rule(("raise",), "refuses negative labels"),
        "unjudged": Rule(("raise",), "reads a NaN label as grade 0, or refuses it"),
    },
    metric={**_IDEAL, "ties": _IN_ROW_ORDER, "empty": _EMPTY_IS_ONE, "score_dtype": _FLOAT64},
)


def lightgbm_params(flavor: Flavor, evaluate: bool) -> dict[str, Any]:
    """See ``Flavor.lightgbm_params``."""
    _check_expressible(flavor, _LIGHTGBM, evaluate)
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
        raise NotExpressibleError(
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
        raise NotExpressibleError(
            f"gain must have a value for every grade of LightGBM's table, 0 to {len(grades) - 1}; "
            f"{str(error).rstrip('.')}.",
            "Use a gain that is defined at 0, and flavor.replace(max_grade=...) with the top of your grade scale.",
        ) from error
    for grade, (lower, higher) in enumerate(pairwise(gains), start=1):
        if higher < lower:
            raise NotExpressibleError(
                f"LightGBM cannot express gain={_value_in_words(flavor.gain)}: it ranks the higher grade first, and "
                f"the gain {higher!r} of grade {grade} is below the gain {lower!r} of grade {grade - 1}.",
                "Use flavor.replace(gain='exponential'), or another gain that does not decrease.",
            )
    if max(map(abs, gains)) > _LARGEST_GAIN:
        raise NotExpressibleError(
            f"LightGBM cannot express gain={_value_in_words(flavor.gain)} up to grade {len(gains) - 1}, whose gain is "
            f"beyond {_LARGEST_GAIN:g}.",
            "Use flavor.replace(max_grade=...) on labels of fewer grades, or another gain.",
        )
    return gains


# -- XGBoost ----------------------------------------------------------------------------------------------------------

# The largest number that XGBoost and CatBoost read, and more rows than a query can have there (3.2, 1.2.10).
_LONGEST = 2**31 - 1
# First version whose metric follows ndcg_exp_gain=False (of 2.1.0, 2.1.4, 3.0.0, 3.0.2 and 3.0.3).
_LINEAR_SINCE = (3, 0, 3)
_XGBOOST = Library(
    name="XGBoost",
    training={
        "gain": Rule(("exponential", "linear"), "has the gains 2^y - 1 and y"),
        "discount": _LOGARITHM,
        "negative": Rule(
            ("raise", "allow"), "passes negative labels through the linear gain, and refuses them under the exponential"
        ),
        "unjudged": Rule(("raise",), "refuses a NaN label"),
    },
    # Its predictions are float32, so the ties are the same in float64 and float32.
    metric={
        **_IDEAL,
        "ties": _IN_ROW_ORDER,
        "empty": Rule((1.0, 0.0), "gives a query without a relevant document the score 1, or 0 under 'ndcg@k-'"),
    },
)


def xgboost_params(flavor: Flavor, evaluate: bool) -> dict[str, Any]:
    """See ``Flavor.xgboost_params``."""
    _check_expressible(flavor, _XGBOOST, evaluate)
    if flavor.gain == "exponential" and flavor.negative == "allow":
        raise NotExpressibleError(
            "XGBoost cannot express negative='allow' with gain='exponential': under that gain it refuses negative "
            "labels.",
            "Use flavor.replace(negative='raise'), or gain='linear'.",
        )
    at = min(flavor.k or _LONGEST, _LONGEST)
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
        raise NotExpressibleError(
            f"XGBoost {installed} cannot express gain='linear': its metric does not follow ndcg_exp_gain=False before "
            f"{'.'.join(map(str, _LINEAR_SINCE))}.",
            "Use a later one, flavor.replace(gain='exponential'), or xgboost_params(evaluate=False) with "
            "ndcg_ml.xgboost.NDCGEval, which evaluates this flavor.",
        )


# -- CatBoost ---------------------------------------------------------------------------------------------------------

_CATBOOST = Library(
    name="CatBoost",
    training={
        "gain": Rule(("linear", "exponential"), "has the gains y and 2^y - 1"),
        "discount": Rule(("log2", "ln", "reciprocal"), "discounts by 1/log2(rank + 1) or by 1/rank"),
        "negative": Rule(("raise", "allow"), "passes a negative label through the gain formula"),
        "unjudged": Rule(("raise",), "refuses a NaN label"),
    },
    metric={
        **_IDEAL,
        "ties": Rule(("worst",), "ranks tied rows by ascending gain"),
        "empty": _EMPTY_IS_ONE,
        "score_dtype": _FLOAT64,
    },
)


def catboost_params(flavor: Flavor, evaluate: bool) -> dict[str, Any]:
    """See ``Flavor.catboost_params``."""
    _check_expressible(flavor, _CATBOOST, evaluate)
    top = "" if flavor.k is None else f"top={min(flavor.k, _LONGEST)};"
    kind = "Exp" if flavor.gain == "exponential" else "Base"
    denominator = "Position" if flavor.discount == "reciprocal" else "LogPosition"
    # The loss and the metric name them differently, and the loss silently ignores the metric's names.
    params = {"loss_function": f"YetiRank:mode=NDCG;{top}dcg_type={kind};dcg_denominator={denominator}"}
    if evaluate:
        params["eval_metric"] = f"NDCG:{top}type={kind};denominator={denominator}"
    return params


# -- evaluation functions ---------------------------------------------------------------------------------------------


class NamedMetric:
    """The flavor and the cut-offs of an evaluation function, and the names that the library logs.

    The names are ``flavor.metric_name``, or ``ndcg_`` and `name`, with ``@k``: never the name of a built-in metric, and
    one that XGBoost maximises. Flavors that no boosting library supports are refused.

    Attributes
    ----------
    of_classes : callable or None
        Returns one score per row from the probabilities of a classifier's classes. ``QueryRanker`` sets it.
    """

    of_classes: Callable[[Any], Any] | None = None

    def __init__(self, flavor: Flavor | str, k: KSpec, name: str | None, library: str, why_no_nan: str) -> None:
        self.flavor: Flavor = as_flavor(flavor)
        self.ks: tuple[int | None, ...]
        self.ks, self._several = cutoffs(k, self.flavor)
        caller = type(self).__name__
        refuse_docid(self.flavor, caller, f"{library} does not store document ids")
        refuse_nan(self.flavor, caller, why_no_nan)
        self._named = "" if name is None else f", name={name!r}"
        logged = log_name(name, self.flavor.metric_name)
        self.names: tuple[str, ...] = tuple(f"{logged}{at_cutoff(k)}" for k in self.ks)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.definition()})"

    def definition(self) -> str:
        """Return the flavor, cut-offs and name as arguments of a call."""
        return as_arguments(self.flavor, self.ks, self._several) + self._named

    def one_score_per_row(self, scores: Any) -> Any:
        """Return the scores; refuse several numbers per row, unless they are of a classifier."""
        if self.of_classes is not None and np.ndim(scores) == 2:
            scores = self.of_classes(scores)
        if np.ndim(scores) != 1:
            raise ValueError(
                f"{type(self).__name__} needs one score per row; got predictions of shape {np.shape(scores)}. "
                "Use an objective with a single output, such as one for ranking."
            )
        return scores
