"""A flavor as the settings of a boosting library: its own objective and metric, or a refusal that says why not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ndcg_ml.flavor import Flavor

__all__ = ["catboost_params", "lightgbm_params", "xgboost_params"]

# LightGBM refuses a query with more rows (4.7), so that a cut-off of as many cuts nothing.
_LONGEST_LIGHTGBM = 10_000
# The largest number that the other two read, and more rows than a query can have there (XGBoost 3.2, CatBoost 1.2.10).
_LONGEST = 2**31 - 1
# LightGBM's own number of grades: 0..30.
_GRADES = 31
_MOST_GRADES = 10_000
# Beyond it LightGBM's sums of gains could overflow.
_LARGEST_GAIN = 1e300
# Before it the metric under ndcg_exp_gain=False is not linear: not in 2.1.0, 2.1.4, 3.0.0 and 3.0.2, but in 3.0.3.
_XGBOOST_LINEAR = (3, 0, 3)


class _Rule(NamedTuple):
    """The values of a switch that a library can express, the first of them its own; and what it does."""

    takes: tuple[object, ...]
    does: str


class _Library(NamedTuple):
    name: str
    module: str
    training: Mapping[str, _Rule]
    metric: Mapping[str, _Rule]


# The base of the logarithm cancels in NDCG, so log2 and ln are one discount.
_LOGARITHM = _Rule(("log2", "ln"), "discounts by 1/log2(rank + 1)")
_IDEAL = {
    "ideal": _Rule(("recall", "global"), "divides by the best order of all rows of the query"),
    "recall_depth": _Rule((None,), "divides by the best order of all rows of the query"),
    # There all documents of a query are retrieved.
    "ideal_depth": _Rule(("k", "retrieved"), "cuts the ideal where it cuts the ranking"),
    "short_lists": _Rule(("score",), "scores a query with fewer than k documents like any other"),
    "aggregate": _Rule(("macro",), "takes the mean of the queries' NDCG"),
}
# Without a cut-off their values are all one.
_OF_A_CUTOFF = ("ideal_depth", "short_lists")
# A switch that goes with some values of another alone, and the value that goes with all.
_TIED_TO = {"discount": ("discount_base", 2.0), "gain": ("off_table", "raise")}
_EMPTY_IS_ONE = _Rule((1.0,), "counts a query without a relevant document as 1")
_IN_ROW_ORDER = _Rule(("first",), "leaves tied rows in the order of the data")
_FLOAT64 = _Rule(("float64",), "compares scores in float64")

_LIGHTGBM = _Library(
    name="LightGBM",
    module="lightgbm",
    training={
        "off_table": _Rule(("raise",), "refuses a label beyond its table"),
        "discount": _LOGARITHM,
        "negative": _Rule(("raise",), "refuses negative labels"),
        "unjudged": _Rule(("raise",), "takes a label that is NaN for grade 0, or refuses it"),
    },
    metric={**_IDEAL, "ties": _IN_ROW_ORDER, "empty": _EMPTY_IS_ONE, "score_dtype": _FLOAT64},
)
_XGBOOST = _Library(
    name="XGBoost",
    module="xgboost",
    training={
        "gain": _Rule(("exponential", "linear"), "knows the gains 2^y - 1 and y"),
        "discount": _LOGARITHM,
        "negative": _Rule(
            ("raise", "allow"), "passes a negative label through the linear gain, and refuses it under the other"
        ),
        "unjudged": _Rule(("raise",), "refuses a label that is NaN"),
    },
    # Its predictions are float32, so what is tied in float64 is what is tied in float32.
    metric={
        **_IDEAL,
        "ties": _IN_ROW_ORDER,
        "empty": _Rule((1.0, 0.0), "counts a query without a relevant document as 1, or as 0 under 'ndcg@k-'"),
    },
)
_CATBOOST = _Library(
    name="CatBoost",
    module="catboost",
    training={
        "gain": _Rule(("linear", "exponential"), "knows the gains y and 2^y - 1"),
        "discount": _Rule(("log2", "ln", "reciprocal"), "discounts by 1/log2(rank + 1) or by 1/rank"),
        "negative": _Rule(("raise", "allow"), "passes a negative label through the gain formula"),
        "unjudged": _Rule(("raise",), "refuses a label that is NaN"),
    },
    metric={
        **_IDEAL,
        "ties": _Rule(("worst",), "puts tied rows lowest gain first"),
        "empty": _EMPTY_IS_ONE,
        "score_dtype": _FLOAT64,
    },
)


def lightgbm_params(flavor: Flavor, evaluate: bool) -> dict[str, Any]:
    """See ``Flavor.lightgbm_params``."""
    _check(flavor, _LIGHTGBM, evaluate)
    label_gain = _label_gain(flavor)
    at = _cut(flavor.k, _LONGEST_LIGHTGBM)
    # LightGBM's documentation of the parameter: slightly above k, for example k + 3.
    params = {
        "objective": "lambdarank",
        "label_gain": label_gain,
        "lambdarank_truncation_level": min(at + 3, _LONGEST_LIGHTGBM),
    }
    return {**params, **({"metric": "ndcg", "eval_at": [at]} if evaluate else {"metric": "None"})}


def xgboost_params(flavor: Flavor, evaluate: bool) -> dict[str, Any]:
    """See ``Flavor.xgboost_params``."""
    _check(flavor, _XGBOOST, evaluate)
    if flavor.gain == "exponential" and flavor.negative == "allow":
        raise ValueError(
            "XGBoost cannot express negative='allow' with gain='exponential': under that gain it refuses negative "
            "labels. Use flavor.replace(negative='raise'), or gain='linear'."
        )
    at = _cut(flavor.k, _LONGEST)
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


def catboost_params(flavor: Flavor, evaluate: bool) -> dict[str, Any]:
    """See ``Flavor.catboost_params``."""
    _check(flavor, _CATBOOST, evaluate)
    top = "" if flavor.k is None else f"top={_cut(flavor.k, _LONGEST)};"
    kind = "Exp" if flavor.gain == "exponential" else "Base"
    denominator = "Position" if flavor.discount == "reciprocal" else "LogPosition"
    # The loss calls them by other names than the metric, and ignores the metric's names without a word.
    params = {"loss_function": f"YetiRank:mode=NDCG;{top}dcg_type={kind};dcg_denominator={denominator}"}
    if evaluate:
        params["eval_metric"] = f"NDCG:{top}type={kind};denominator={denominator}"
    return params


def _cut(k: int | None, longest: int) -> int:
    return longest if k is None else min(k, longest)


def _check(flavor: Flavor, library: _Library, evaluate: object) -> None:
    if not isinstance(evaluate, bool):
        raise TypeError(f"evaluate must be True or False; got {evaluate!r} of type {type(evaluate).__name__}.")
    for switch, rule in library.training.items():
        value = getattr(flavor, switch)
        if not _taken(value, rule):
            raise ValueError(
                f"{library.name} cannot express {switch}={_shown(value)}: it {rule.does}. Use "
                f"{_fix(flavor, switch, rule)}; ndcg_ml.{library.module}.NDCGEval may keep the flavor."
            )
    if not evaluate:
        return
    for switch, rule in library.metric.items():
        value = getattr(flavor, switch)
        if not _taken(value, rule) and not (switch in _OF_A_CUTOFF and flavor.k is None):
            raise ValueError(
                f"{library.name}'s metric cannot express {switch}={_shown(value)}: it {rule.does}. Use "
                f"{_fix(flavor, switch, rule)}, or {library.module}_params(evaluate=False) with "
                f"ndcg_ml.{library.module}.NDCGEval, which evaluates this flavor."
            )


def _taken(value: object, rule: _Rule) -> bool:
    return any(value == taken for taken in rule.takes)


def _fix(flavor: Flavor, switch: str, rule: _Rule) -> str:
    also = ""
    if switch in _TIED_TO:
        other, neutral = _TIED_TO[switch]
        also = f", {other}={neutral!r}" if getattr(flavor, other) != neutral else ""
    return f"flavor.replace({switch}={rule.takes[0]!r}{also})"


def _shown(value: object) -> str:
    return f"<{getattr(value, '__qualname__', type(value).__qualname__)}>" if callable(value) else repr(value)


def _label_gain(flavor: Flavor) -> list[float]:
    """The gain of every grade from 0: LightGBM refuses a label beyond the table, as the flavor one above max_grade."""
    top = flavor.max_grade
    if top is not None and not 0 <= top < _MOST_GRADES:
        raise ValueError(
            f"max_grade must be from 0 to {_MOST_GRADES - 1} for LightGBM, which looks gains up in a table by grade; "
            f"got {top!r}. Use flavor.replace(max_grade=...) on labels of fewer grades."
        )
    grades = range(_GRADES if top is None else int(top) + 1)
    if isinstance(flavor.gain, tuple):
        gains = list(flavor.gain[: None if top is None else len(grades)])
    else:
        gains = [_gain(flavor, grade) for grade in grades]
    for grade, (lower, gain) in enumerate(pairwise(gains), start=1):
        if gain < lower:
            raise ValueError(
                f"LightGBM cannot express gain={_shown(flavor.gain)}: it takes the higher grade for the better "
                f"document, and here grade {grade} gains {gain!r}, less than {lower!r} of grade {grade - 1}. Use "
                "flavor.replace(gain='exponential'), or another gain that does not fall."
            )
    if max(map(abs, gains)) > _LARGEST_GAIN:
        raise ValueError(
            f"LightGBM cannot express gain={_shown(flavor.gain)} up to grade {len(gains) - 1}, whose gain is beyond "
            f"{_LARGEST_GAIN:g}. Use flavor.replace(max_grade=...) on labels of fewer grades, or another gain."
        )
    return gains


def _gain(flavor: Flavor, grade: int) -> float:
    if flavor.gain == "exponential":
        return 2.0**grade - 1.0 if grade < 1000 else math.inf
    if flavor.gain == "binary":
        return float(grade > 0)
    if flavor.gain == "judged":
        return 1.0
    if not callable(flavor.gain):
        return float(grade)
    try:
        gain = float(flavor.gain(float(grade)))
    except (TypeError, ValueError, LookupError, ArithmeticError) as error:
        raise ValueError(
            f"gain must have a value for every grade that LightGBM's table holds; gain({float(grade)!r}) failed: "
            f"{error}. Use flavor.replace(max_grade=...) with the top of your grade scale."
        ) from error
    if math.isnan(gain):
        raise ValueError(f"gain must return a number; gain({float(grade)!r}) is nan.")
    return gain


def _check_linear_metric() -> None:
    from importlib.metadata import PackageNotFoundError, version  # here, because it is slow and few need it

    try:
        installed = version("xgboost")
    except PackageNotFoundError:
        return
    if tuple(int(part) for part in installed.split(".")[:3] if part.isdigit()) < _XGBOOST_LINEAR:
        raise ValueError(
            f"XGBoost {installed} cannot express gain='linear': its metric does not follow ndcg_exp_gain=False before "
            f"{'.'.join(map(str, _XGBOOST_LINEAR))}. Use a later one, flavor.replace(gain='exponential'), or "
            "xgboost_params(evaluate=False) with ndcg_ml.xgboost.NDCGEval, which evaluates this flavor."
        )
