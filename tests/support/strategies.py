"""Hypothesis strategies: flavors with every switch, and ragged queries that a flavor accepts."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from oracle import Document

from ndcg_ml import Flavor

__all__ = ["SORTED_IDEALS", "Problem", "examples", "flavors", "half_power", "problems", "slow_decay", "square_root"]


def examples(number: int) -> settings:
    """The settings of a test that draws this many, a quarter under the profile "quick" and the rest under "full"."""
    of_a_hundred: int = settings().max_examples
    return settings(max_examples=max(min(number, 10), number * of_a_hundred // 100))


def square_root(grade: float) -> float:
    """A gain as a callable."""
    return math.copysign(abs(grade) ** 0.5, grade)


def slow_decay(rank: int) -> float:
    """A discount as a callable."""
    return 1.0 / rank**0.3


def half_power(rank: int) -> float:
    """The rank-biased discount, as a callable."""
    return 0.5 ** (rank - 1)


GAIN_FUNCTIONS: list[Callable[[float], float]] = [square_root]
DISCOUNT_FUNCTIONS: list[Callable[[int], float]] = [slow_decay, half_power]
SORTED_IDEALS = ("global", "recall", "local", "max")
TOPS = [0.0, 0.8, 1.0, 2.5, 4.0, 31.0, 400.0]
TIES = ("average", "first", "last", "best", "worst", "docid", "docid_ascending")

# Scores that are tied, tied in float32 only (1e-9 apart), or very large.
SCORES = [0.0, -0.0, 1.0, 2.0, -1.5, 1.0 + 1e-9, 1.0 - 1e-9, 1e-30, 3e38, 1e300, math.inf, -math.inf]


@st.composite
def tables(draw: st.DrawFn) -> tuple[float, ...]:
    """Draw gain tables in any order, with entries of 0 and sometimes negative ones."""
    entry = st.sampled_from([0.0, 1.0, 3.0, 7.0, 0.5, 0.1, 1e140]) | st.integers(0, 20).map(float)
    if draw(st.integers(0, 5)) == 0:
        entry = entry | st.sampled_from([-1.0, -0.25])
    return tuple(draw(st.lists(entry, min_size=1, max_size=6)))


@st.composite
def flavors(
    draw: st.DrawFn,
    *,
    callables: bool = True,
    gains: tuple[str, ...] = ("linear", "exponential", "binary", "judged", "table", "callable"),
    ideals: tuple[str, ...] = (*SORTED_IDEALS, "given"),
    **fixed: Any,
) -> Flavor:
    """Draw every switch of a flavor, except those in `fixed`."""
    gain: Any = draw(st.sampled_from([g for g in gains if callables or g != "callable"]))
    gain = fixed.get("gain", gain)
    if gain == "table":
        gain = draw(tables())
    elif gain == "callable":
        gain = draw(st.sampled_from(GAIN_FUNCTIONS))
    discount: Any = draw(st.sampled_from(["log2", "jarvelin", "reciprocal", "ln", "none", "callable"][: 5 + callables]))
    if discount == "callable":
        discount = draw(st.sampled_from(DISCOUNT_FUNCTIONS))
    ideal = fixed.get("ideal", draw(st.sampled_from(ideals)))
    top = float(len(gain) - 1) if isinstance(gain, tuple) else draw(st.sampled_from(TOPS))
    switches: dict[str, Any] = {
        "gain": gain,
        "off_table": draw(st.sampled_from(["raise", "zero"])) if isinstance(gain, tuple) else "raise",
        "discount": discount,
        "ideal": ideal,
        "ideal_depth": draw(st.sampled_from(["k", "all", "retrieved"])),
        "recall_depth": draw(st.none() | st.integers(1, 8)) if ideal == "recall" else None,
        "max_grade": top if ideal == "max" or draw(st.integers(0, 7)) == 0 else None,
        "k": draw(st.none() | st.integers(1, 9)),
        "short_lists": draw(st.sampled_from(["score", "score", "zero"])),
        "ties": draw(st.sampled_from(TIES)),
        "empty": draw(st.sampled_from([0.0, 1.0, math.nan, "skip", "raise"])),
        "aggregate": draw(st.sampled_from(["macro", "micro"])),
        "negative": draw(st.sampled_from(["raise", "zero", "drop", "allow"])),
        "unjudged": draw(st.sampled_from(["raise", "zero", "condense"])),
        "score_dtype": draw(st.sampled_from(["float64", "float32"])),
        "duplicates": draw(st.sampled_from(["raise", "raise", "first", "count"])),
    }
    return Flavor(**{**switches, **fixed})


@dataclass(frozen=True)
class Problem:
    """Queries and their weights."""

    queries: tuple[tuple[Document, ...], ...]
    weights: tuple[float, ...] | None = None

    @property
    def documents(self) -> list[Document]:
        return [d for query in self.queries for d in query]

    @property
    def group(self) -> list[int]:
        return [len(query) for query in self.queries]

    def flat(self, flavor: Flavor | None = None) -> dict[str, Any]:
        """Return the arguments of ``ndcg_score`` with one row per document and the sizes of the queries."""
        documents = self.documents
        arguments: dict[str, Any] = {
            "y_true": np.array([d.grade for d in documents], dtype=np.float64),
            "y_score": np.array([d.score for d in documents], dtype=np.float64),
            "group": np.array(self.group, dtype=np.int64),
        }
        if not all(d.retrieved for d in documents):
            arguments["retrieved"] = np.array([d.retrieved for d in documents], dtype=bool)
        named = all(d.doc_id for d in documents)
        if flavor is None or flavor.ties.startswith("docid") or (named and flavor.duplicates != "raise"):
            arguments["doc_id"] = np.array([d.doc_id for d in documents], dtype=str)
        if self.weights is not None:
            arguments["query_weight"] = np.array(self.weights, dtype=np.float64)
        return arguments

    @property
    def filled(self) -> "Problem":
        """The queries that have documents: a padded list without any is none."""
        kept = [at for at, query in enumerate(self.queries) if query]
        weights = None if self.weights is None else tuple(self.weights[at] for at in kept)
        return Problem(tuple(self.queries[at] for at in kept), weights)

    def padded(self, flavor: Flavor | None = None, garbage: float = math.nan, extra: int = 1) -> dict[str, Any]:
        """Return the arguments with one row per query, padded with garbage under a mask."""
        width = max((len(query) for query in self.queries), default=0) + extra
        shape = (len(self.queries), width)
        flat = self.flat(flavor)
        mask = np.arange(width) < np.array(self.group, dtype=np.int64)[:, None]
        y_true, y_score = np.full(shape, garbage), np.full(shape, garbage)
        y_true[mask], y_score[mask] = flat["y_true"], flat["y_score"]
        arguments: dict[str, Any] = {"y_true": y_true, "y_score": y_score, "mask": mask}
        if "retrieved" in flat:
            arguments["retrieved"] = np.ones(shape, dtype=bool)
            arguments["retrieved"][mask] = flat["retrieved"]
        if "doc_id" in flat:
            ids = np.array([[f"padding-{slot}" for slot in range(width)] for _ in self.queries], dtype=object)
            ids[mask] = flat["doc_id"]
            arguments["doc_id"] = ids.astype(str)
        if "query_weight" in flat:
            arguments["query_weight"] = flat["query_weight"]
        return arguments


@st.composite
def problems(
    draw: st.DrawFn,
    flavor: Flavor,
    *,
    max_docs: int = 7,
    min_queries: int = 1,
    max_queries: int = 5,
    retrieved: bool = True,
    weighted: bool = True,
    scores: st.SearchStrategy[float] | None = None,
    finite: bool = False,
    repeats: bool = False,
) -> Problem:
    """Draw ragged queries of 0..`max_docs` documents with the labels, scores and flags that `flavor` accepts.

    With ``retrieved=False`` all documents are retrieved; with ``finite`` no score is infinite. With ``repeats`` a query
    may list a document twice, if the flavor accepts that.
    """
    if scores is None:
        some = [s for s in SCORES if not (finite and math.isinf(s))]
        pool = draw(st.lists(st.sampled_from(some), min_size=1, max_size=4))  # few values, so that scores are tied
        plain = st.floats(-1e6, 1e6, allow_nan=False)
        scores = st.sampled_from(pool) | st.sampled_from(some) | plain
        if draw(st.integers(0, 3)) == 0:
            scores = plain  # practically no ties
    labels = _labels(draw, flavor)
    n_queries = draw(st.integers(min_queries, max_queries))
    queries = []
    for _ in range(n_queries):
        size = draw(st.integers(0, max_docs))
        ids = draw(st.permutations([f"d{i}" for i in range(size)]))
        flag = st.just(True)
        if retrieved and draw(st.integers(0, 2)) == 0:
            flag = st.booleans()
        some_labels = labels
        if draw(st.integers(0, 4)) == 0:
            some_labels = st.sampled_from([0.0, draw(labels)])  # a query with few or no relevant documents
        if repeats and flavor.duplicates != "raise" and draw(st.booleans()):
            ids = [draw(st.sampled_from(ids[:3])) for _ in ids]
        grade_of: dict[str, float] = {}
        for doc_id in ids:
            grade_of.setdefault(doc_id, draw(some_labels))
        queries.append(
            tuple(
                Document(grade=grade_of[doc_id], score=draw(scores), retrieved=draw(flag), doc_id=doc_id)
                for doc_id in ids
            )
        )
    weights = None
    if weighted and draw(st.booleans()):
        weight = st.sampled_from([0.0, 1.0, 2.0, 0.25, 3.7])
        weights = tuple(draw(st.lists(weight, min_size=n_queries, max_size=n_queries)))
        if not sum(weights) > 0:
            weights = (1.0, *weights[1:])
    return Problem(tuple(queries), weights)


def _labels(draw: st.DrawFn, flavor: Flavor) -> st.SearchStrategy[float]:
    if isinstance(flavor.gain, tuple):
        beyond = [7.0, 40.0, 1e300] if flavor.off_table == "zero" else []
        values = [float(grade) for grade in range(len(flavor.gain))] + beyond
    else:
        values = [0.0, 1.0, 2.0, 3.0, 4.0]
        kind = draw(st.integers(0, 5))
        if kind == 1:
            values += [0.25, 0.1, 1e-9, 2.5, 3.9]
        elif kind == 2:
            values += [400.0, 401.0, 398.5, 1e-9, 3e-9, 0.25]
        elif kind == 3 and flavor.gain != "exponential":
            values += [1e150, 3e149, 2e150]
        elif kind == 4 and flavor.gain != "exponential":
            values += [1e-150, 5e-140]
    checked = flavor.ideal != "max" or flavor.gain not in ("binary", "judged")
    if flavor.max_grade is not None and checked:
        values = [v for v in values if v <= flavor.max_grade]
        if not isinstance(flavor.gain, tuple):
            values.append(float(np.float32(flavor.max_grade)))  # 0.8 in float32 is slightly larger
    negatives = [-1.0, -2.0, -0.5]
    if flavor.negative in ("zero", "drop") or (flavor.negative == "allow" and not isinstance(flavor.gain, tuple)):
        values += negatives if draw(st.booleans()) else []
    if flavor.unjudged != "raise" and draw(st.booleans()):
        values += [math.nan] * 2
    return st.sampled_from(values)
