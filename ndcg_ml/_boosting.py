"""What the adapters of LightGBM, XGBoost and CatBoost share: what a library can express, and named metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ndcg_ml._plain.checks import KSpec, cutoffs, refuse_docid, refuse_nan, true_or_false
from ndcg_ml._plain.flavor_text import at_cutoff, log_name, switch_text
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
    """Whether a library can express a flavor; see ``ndcg_ml.lightgbm.supports``."""

    reason: str | None = None
    fix: str | None = None

    def __bool__(self) -> bool:
        return self.reason is None


def support(params: Callable[[Flavor | str], object], flavor: Flavor | str) -> Support:
    """Return whether a library's ``params`` express the flavor, and the reason if not."""
    try:
        params(flavor)
    except NotExpressibleError as refusal:
        return Support(*refusal.args)
    return Support()


# -- rules of several libraries ---------------------------------------------------------------------------------------

# The base of the logarithm cancels in NDCG, so log2 and ln are one discount.
LOGARITHM = Rule(("log2", "ln"), "discounts by 1/log2(rank + 1)")
METRIC: Mapping[str, Rule] = {
    "ideal": Rule(("recall", "global"), "divides by the DCG of the best order of all rows of the query"),
    "recall_depth": Rule((None,), "divides by the DCG of the best order of all rows of the query"),
    # In these libraries, all documents of a query are retrieved.
    "ideal_depth": Rule(("k", "retrieved"), "cuts off the ideal at the same rank as the ranking"),
    "short_lists": Rule(("score",), "scores a query with fewer than k documents like any other"),
    "aggregate": Rule(("macro",), "takes the mean of the queries' NDCG"),
    "ties": Rule(("first",), "ranks tied rows in the order of the data"),
    "empty": Rule((1.0,), "gives a query without a relevant document the score 1"),
}
FLOAT64 = Rule(("float64",), "compares scores in float64")

# The largest number that XGBoost and CatBoost read, and more rows than a query can have there (3.2, 1.2.10).
LONGEST = 2**31 - 1

# Without a cut-off, these switches have no effect.
_OF_A_CUTOFF = ("ideal_depth", "short_lists")


def expressible(flavor: Flavor | str, library: Library, evaluate: object) -> Flavor:
    """Return the flavor if the library's objective, and with `evaluate` also its metric, can express it."""
    flavor = as_flavor(flavor)
    true_or_false(evaluate, "evaluate")
    module = library.name.lower()
    evaluation = f"ndcg_ml.{module}.NDCGEval"
    for rules, name, otherwise in (
        (library.training, library.name, f"; {evaluation} can evaluate the original flavor"),
        (
            library.metric if evaluate else {},
            f"{library.name}'s metric",
            f", or {module}_params(flavor, evaluate=False) with {evaluation}, which evaluates this flavor",
        ),
    ):
        for switch, rule in rules.items():
            value = getattr(flavor, switch)
            if value not in rule.takes and not (switch in _OF_A_CUTOFF and flavor.k is None):
                # off_table needs a gain table.
                also = ", off_table='raise'" if switch == "gain" and flavor.off_table != "raise" else ""
                raise NotExpressibleError(
                    f"{name} cannot express {switch}={value_in_words(value)}: it {rule.does}.",
                    f"Use flavor.replace({switch}={rule.takes[0]!r}{also}){otherwise}.",
                )
    return flavor


def value_in_words(value: object) -> str:
    """Return the value of a switch for an error message."""
    return switch_text(value) if callable(value) else repr(value)


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

    def refuse_data_of_others(self, data: object) -> None:
        """Refuse the data set of another library, which calls this function otherwise."""
        library, mine = type(data).__module__.partition(".")[0], type(self).__module__
        if library in ("lightgbm", "xgboost") and not mine.endswith(library):
            raise TypeError(f"{library} needs ndcg_ml.{library}.NDCGEval; got {mine}.NDCGEval.")

    def evaluate(self, *_: Any) -> Any:
        """Refuse to be a metric of CatBoost, whose ``NDCGEval`` overrides this."""
        raise TypeError(f"CatBoost needs ndcg_ml.catboost.NDCGEval; got {type(self).__module__}.NDCGEval.")

    is_max_optimal = evaluate

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
