"""What the boosting adapters share: what a library can express, what it does not support, and names for its log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ndcg_ml._checks import KSpec, cutoffs, refuse_docid, true_or_false
from ndcg_ml.flavor import Flavor, as_arguments, as_flavor
from ndcg_ml.result import at_cutoff


class Rule(NamedTuple):
    """The values of a switch that a library can express, its own first, and a description of what it does."""

    takes: tuple[object, ...]
    does: str


class Library(NamedTuple):
    """What a library's objective and its own metric can express, for each switch."""

    name: str
    module: str
    training: Mapping[str, Rule]
    metric: Mapping[str, Rule]


# -- rules that several libraries have ------------------------------------------------------------------------------

# The base of the logarithm cancels in NDCG, so log2 and ln are one discount.
LOGARITHM = Rule(("log2", "ln"), "discounts by 1/log2(rank + 1)")
IDEAL: Mapping[str, Rule] = {
    "ideal": Rule(("recall", "global"), "divides by the best order of all rows of the query"),
    "recall_depth": Rule((None,), "divides by the best order of all rows of the query"),
    # All documents of a query are retrieved there.
    "ideal_depth": Rule(("k", "retrieved"), "cuts the ideal where it cuts the ranking"),
    "short_lists": Rule(("score",), "scores a query with fewer than k documents like any other"),
    "aggregate": Rule(("macro",), "takes the mean of the queries' NDCG"),
}
EMPTY_IS_ONE = Rule((1.0,), "counts a query without a relevant document as 1")
IN_ROW_ORDER = Rule(("first",), "leaves tied rows in the order of the data")
FLOAT64 = Rule(("float64",), "compares scores in float64")

# Without a cut-off, all values of these switches are the same.
_OF_A_CUTOFF = ("ideal_depth", "short_lists")
# A switch whose other values are allowed only with some values of this one, and the value that is always allowed.
_GOES_WITH = {"discount": ("discount_base", 2.0), "gain": ("off_table", "raise")}


def check_expressible(flavor: Flavor, library: Library, evaluate: object) -> None:
    """Refuse what the library's objective, and with `evaluate` also its metric, cannot express."""
    true_or_false(evaluate, "evaluate")
    for switch, rule in library.training.items():
        value = getattr(flavor, switch)
        if not _taken(value, rule):
            raise ValueError(
                f"{library.name} cannot express {switch}={value_in_words(value)}: it {rule.does}. Use "
                f"{_fix(flavor, switch, rule)}; ndcg_ml.{library.module}.NDCGEval may keep the flavor."
            )
    if not evaluate:
        return
    for switch, rule in library.metric.items():
        value = getattr(flavor, switch)
        if not _taken(value, rule) and not (switch in _OF_A_CUTOFF and flavor.k is None):
            raise ValueError(
                f"{library.name}'s metric cannot express {switch}={value_in_words(value)}: it {rule.does}. Use "
                f"{_fix(flavor, switch, rule)}, or {library.module}_params(evaluate=False) with "
                f"ndcg_ml.{library.module}.NDCGEval, which evaluates this flavor."
            )


def _taken(value: object, rule: Rule) -> bool:
    return any(value == taken for taken in rule.takes)


def _fix(flavor: Flavor, switch: str, rule: Rule) -> str:
    also = ""
    if switch in _GOES_WITH:
        other, neutral = _GOES_WITH[switch]
        also = f", {other}={neutral!r}" if getattr(flavor, other) != neutral else ""
    return f"flavor.replace({switch}={rule.takes[0]!r}{also})"


def value_in_words(value: object) -> str:
    """The value of a switch, as error messages show it."""
    return f"<{getattr(value, '__qualname__', type(value).__qualname__)}>" if callable(value) else repr(value)


def cut_at(k: int | None, longest: int) -> int:
    """The cut-off as the library takes it; `longest` stands for none."""
    return longest if k is None else min(k, longest)


# -- evaluation functions -------------------------------------------------------------------------------------------


class Metric(NamedTuple):
    """What an evaluation function computes, and what the library logs it as."""

    flavor: Flavor
    ks: tuple[int | None, ...]
    several: bool
    names: tuple[str, ...]

    def __str__(self) -> str:
        return as_arguments(self.flavor, self.ks, self.several)


def metric(flavor: Flavor | str, k: KSpec, who: str, library: str, why_no_nan: str) -> Metric:
    """The metric that a caller asked for; refuses what no boosting library supports.

    The names are ``flavor.metric_name`` with ``@k``, never the name of a built-in metric.
    """
    flavor = as_flavor(flavor)
    ks, several = cutoffs(k, flavor)
    refuse_docid(flavor, who, f"{library} does not store document ids")
    if flavor.empty != flavor.empty:
        raise ValueError(
            f"{who} does not support empty=nan because {why_no_nan}. Choose empty='skip' to leave empty queries out, "
            "or 0 or 1."
        )
    name = flavor.metric_name
    return Metric(flavor, ks, several, tuple(f"{name}{at_cutoff(k)}" for k in ks))


def one_score_per_row(scores: Any, who: str, fix: str) -> Any:
    """The scores; refused if the library predicts several numbers per row."""
    if np.ndim(scores) != 1:
        raise ValueError(f"{who} needs one score per row; got predictions of shape {np.shape(scores)}. {fix}")
    return scores
