"""Shared by the boosting adapters: check what a library can express, and name metrics for its log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ndcg_ml._checks import KSpec, cutoffs, refuse_docid, true_or_false
from ndcg_ml.flavor import Flavor, as_arguments, as_flavor
from ndcg_ml.result import at_cutoff


class Rule(NamedTuple):
    """The values of a switch that a library supports, its default first, and a description of its behaviour."""

    takes: tuple[object, ...]
    does: str


class Library(NamedTuple):
    """The rules for switches of a library's objective and of its own metric."""

    name: str
    training: Mapping[str, Rule]
    metric: Mapping[str, Rule]


# -- rules of several libraries -------------------------------------------------------------------------------------

# The base of the logarithm cancels in NDCG, so log2 and ln are one discount.
LOGARITHM = Rule(("log2", "ln"), "discounts by 1/log2(rank + 1)")
IDEAL: Mapping[str, Rule] = {
    "ideal": Rule(("recall", "global"), "divides by the DCG of the best order of all rows of the query"),
    "recall_depth": Rule((None,), "divides by the DCG of the best order of all rows of the query"),
    # In these libraries, all documents of a query are retrieved.
    "ideal_depth": Rule(("k", "retrieved"), "cuts off the ideal at the same rank as the ranking"),
    "short_lists": Rule(("score",), "scores a query with fewer than k documents like any other"),
    "aggregate": Rule(("macro",), "takes the mean of the queries' NDCG"),
}
EMPTY_IS_ONE = Rule((1.0,), "gives a query without a relevant document the score 1")
IN_ROW_ORDER = Rule(("first",), "ranks tied rows in the order of the data")
FLOAT64 = Rule(("float64",), "compares scores in float64")

# Without a cut-off, these switches have no effect.
_OF_A_CUTOFF = ("ideal_depth", "short_lists")


def check_expressible(flavor: Flavor, library: Library, evaluate: object) -> None:
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
                raise ValueError(
                    f"{name} cannot express {switch}={value_in_words(value)}: it {rule.does}. Use "
                    f"{_fix(flavor, switch, rule)}{otherwise}."
                )


def _fix(flavor: Flavor, switch: str, rule: Rule) -> str:
    also = ", off_table='raise'" if switch == "gain" and flavor.off_table != "raise" else ""  # needs a gain table
    return f"flavor.replace({switch}={rule.takes[0]!r}{also})"


def value_in_words(value: object) -> str:
    """Return the value of a switch for an error message."""
    return f"<{getattr(value, '__qualname__', type(value).__qualname__)}>" if callable(value) else repr(value)


# -- evaluation functions -------------------------------------------------------------------------------------------


class NamedMetric:
    """The flavor and the cut-offs of an evaluation function, and the names that the library logs.

    The names are ``flavor.metric_name`` with ``@k``, never the name of a built-in metric. Flavors that no boosting
    library supports are refused.
    """

    def __init__(self, flavor: Flavor | str, k: KSpec, library: str, why_no_nan: str) -> None:
        self.flavor: Flavor = as_flavor(flavor)
        self.ks: tuple[int | None, ...]
        self.ks, self._several = cutoffs(k, self.flavor)
        name = type(self).__name__
        refuse_docid(self.flavor, name, f"{library} does not store document ids")
        if self.flavor.empty != self.flavor.empty:
            raise ValueError(
                f"{name} does not support empty=nan because {why_no_nan}. Choose empty='skip' to leave empty queries "
                "out, or 0 or 1."
            )
        self.names: tuple[str, ...] = tuple(f"{self.flavor.metric_name}{at_cutoff(k)}" for k in self.ks)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.definition()})"

    def definition(self) -> str:
        """Return the flavor and cut-offs as arguments of a call."""
        return as_arguments(self.flavor, self.ks, self._several)

    def one_score_per_row(self, scores: Any) -> Any:
        """Return the scores; refuse several numbers per row."""
        if np.ndim(scores) != 1:
            raise ValueError(
                f"{type(self).__name__} needs one score per row; got predictions of shape {np.shape(scores)}. "
                "Use an objective with a single output, such as one for ranking."
            )
        return scores
