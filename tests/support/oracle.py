"""NDCG by its definition, in plain Python: one query, one document, one order of the ties at a time.

Only ``Flavor`` is imported from the package. Results are averaged over every order of tied documents. All sums are
exact rational numbers, so that a grade of 1000 under an exponential gain is a large integer. This is slow, so queries
should have at most about seven documents.
"""

import itertools
import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import EllipsisType

from ndcg_ml import Flavor

__all__ = [
    "Answer",
    "Document",
    "NothingToAverageError",
    "RefusedLabelError",
    "TiedRepeatError",
    "oracle",
    "oracle_overall",
]


class NothingToAverageError(Exception):
    """A query is empty under ``raise``, or all queries are empty under ``skip``."""


class RefusedLabelError(Exception):
    """The flavor has no gain for a label."""


class TiedRepeatError(Exception):
    """A document ties with its own repeat while ties are averaged, so that its first rank is undefined."""


@dataclass(frozen=True)
class Document:
    grade: float
    score: float
    retrieved: bool = True
    doc_id: str = ""

    @property
    def judged(self) -> bool:
        return not math.isnan(self.grade)


@dataclass(frozen=True)
class Answer:
    """The result of one query. `size` is the largest possible DCG, the scale of rounding errors."""

    ndcg: float | str  # for an empty query, the flavor's `empty`: a number, "skip" or "raise"
    exact_dcg: Fraction
    exact_idcg: Fraction
    size: Fraction
    cancels: bool  # some gain is below 0
    n_docs: int
    n_judged: int
    n_relevant: int
    tied: int

    @property
    def dcg(self) -> float:
        return _float(self.exact_dcg)

    @property
    def idcg(self) -> float:
        return _float(self.exact_idcg)

    @property
    def empty(self) -> bool:
        return self.exact_idcg <= 0

    def __iter__(self) -> Iterator[float | str]:
        return iter((self.ndcg, self.dcg, self.idcg))


def oracle(flavor: Flavor, documents: Sequence[Document], k: int | None | EllipsisType = ...) -> Answer:
    """Compute NDCG, DCG and IDCG of one query. By default, `k` is the flavor's own."""
    k = flavor.k if isinstance(k, EllipsisType) else k
    documents = [d for d in documents if not (flavor.negative == "drop" and d.grade < 0)]
    ranked = [d for d in documents if d.retrieved and not (flavor.unjudged == "condense" and not d.judged)]
    judged = _distinct(flavor, [d for d in documents if d.judged], ranked)
    runs = _runs(flavor, ranked)
    gains = _credited(flavor, runs)
    orders = _orders(flavor, runs)
    dcg = _mean_dcg(flavor, gains, orders, k)
    if flavor.short_lists == "zero" and k is not None and len(ranked) < k:
        dcg = Fraction(0)

    ideal_k = None if flavor.ideal_depth == "all" else k
    if flavor.ideal_depth == "retrieved":
        ideal_k = min(len(ranked), len(ranked) if k is None else k)
    if flavor.ideal == "global":
        ideal = sorted((_gain(flavor, d) for d in judged), reverse=True)
    elif flavor.ideal == "given":
        ideal = [_gain(flavor, d) for d in judged]
    elif flavor.ideal == "recall":
        ideal = sorted(_first(runs, gains, orders, flavor.recall_depth), reverse=True)
    elif flavor.ideal == "local":
        ideal = sorted(_expected(gains, orders)[:ideal_k], reverse=True)
    else:
        top = _gain_of_grade(flavor, flavor.max_grade)
        ideal = [top] * (len(ranked) if ideal_k is None else ideal_k) if documents else []
    idcg = _dcg(flavor, ideal, ideal_k)

    sizes = [abs(_gain(flavor, d)) for d in documents if d.judged]
    if flavor.ideal == "max" and documents:
        sizes += [abs(_gain_of_grade(flavor, flavor.max_grade))] * len(ideal)
    return Answer(
        ndcg=_float(dcg / idcg) if idcg > 0 else flavor.empty,
        exact_dcg=dcg,
        exact_idcg=idcg,
        size=_dcg(flavor, sorted(sizes, reverse=True), None),
        cancels=any(_gain(flavor, d) < 0 for d in documents),
        n_docs=len(ranked),
        n_judged=len(judged),
        n_relevant=sum(_gain(flavor, d) > 0 for d in judged),
        tied=sum(len(run) for run in runs if len(run) > 1),
    )


def oracle_overall(flavor: Flavor, answers: Sequence[Answer], weights: Sequence[float] | None = None) -> float:
    """Return the value over all queries."""
    weights = [1.0] * len(answers) if weights is None else weights
    full = [(a, w) for a, w in zip(answers, weights, strict=True) if not a.empty]
    if flavor.empty == "raise" and len(full) < len(answers):
        raise NothingToAverageError
    if flavor.empty == "skip" and not sum(w for _, w in full) > 0:
        raise NothingToAverageError
    if flavor.aggregate == "micro":
        if not sum(w for _, w in full) > 0:
            assert isinstance(flavor.empty, float)
            return flavor.empty
        total = sum(Fraction(w) * a.exact_dcg for a, w in full)
        return _float(total / sum(Fraction(w) * a.exact_idcg for a, w in full))
    counted = full if flavor.empty == "skip" else list(zip(answers, weights, strict=True))
    return math.fsum(w * float(a.ndcg) for a, w in counted) / math.fsum(w for _, w in counted)


# -- documents that are listed twice --------------------------------------------------------------------------------


def _distinct(flavor: Flavor, documents: Sequence[Document], ranked: Sequence[Document]) -> list[Document]:
    """Return each document once: its first ranked copy or, if none is ranked, its first copy."""
    if flavor.duplicates == "raise":
        return list(documents)
    kept: dict[object, int] = {}
    for document in [*ranked, *documents]:
        kept.setdefault(_name(document), id(document))
    return [d for d in documents if kept[_name(d)] == id(d)]


def _name(document: Document) -> object:
    """Return the id of a document; a document without an id is identified by itself."""
    return document.doc_id or id(document)


def _credited(flavor: Flavor, runs: Sequence[Sequence[Document]]) -> list[Fraction]:
    """Return the gain at each rank; under ``first``, later copies of a document have gain 0."""
    gains: list[Fraction] = []
    seen: set[object] = set()
    for run in runs:
        new = [_name(d) for d in run if _name(d) not in seen]
        if flavor.duplicates == "first" and flavor.ties == "average" and len(new) > len(set(new)):
            raise TiedRepeatError
        for document in run:
            again = flavor.duplicates == "first" and _name(document) in seen
            gains.append(Fraction(0) if again else _gain(flavor, document))
            seen.add(_name(document))
    return gains


# -- gain and discount ----------------------------------------------------------------------------------------------


def _gain(flavor: Flavor, document: Document) -> Fraction:
    grade, top = document.grade, flavor.max_grade
    if (not document.judged and flavor.unjudged == "raise") or (grade < 0 and flavor.negative == "raise"):
        raise RefusedLabelError
    if not document.judged or (grade < 0 and flavor.negative == "zero"):
        return Fraction(0)
    if flavor.ideal == "max" and flavor.gain in ("binary", "judged"):
        top = None
    if top is not None and grade > top:
        if grade != _as_float32(top):
            raise RefusedLabelError
        grade = top if flavor.ideal == "max" else grade
    return _gain_of_grade(flavor, grade)


def _gain_of_grade(flavor: Flavor, grade: float | None) -> Fraction:
    assert grade is not None
    if callable(flavor.gain):
        return Fraction(flavor.gain(grade))
    if isinstance(flavor.gain, tuple):
        beyond = grade >= len(flavor.gain)
        if not grade == int(grade) >= 0 or (beyond and flavor.off_table == "raise"):
            raise RefusedLabelError
        return Fraction(0 if beyond else flavor.gain[int(grade)])
    if flavor.gain == "binary":
        return Fraction(1 if grade > 0 else 0)
    if flavor.gain == "judged":
        return Fraction(1)
    if flavor.gain == "linear":
        return Fraction(grade)
    assert flavor.gain == "exponential"
    if abs(grade) < 1:
        return Fraction(math.expm1(grade * math.log(2)))
    whole = math.floor(grade)
    return Fraction(2) ** whole * Fraction(2.0 ** (grade - whole)) - 1


def _discount(flavor: Flavor, rank: int) -> float:
    if callable(flavor.discount):
        return flavor.discount(rank)
    if flavor.discount == "jarvelin":
        return 1.0 if rank < 2 else 1 / math.log2(rank)
    return {
        "log2": lambda: 1 / math.log2(rank + 1),
        "ln": lambda: 1 / math.log(rank + 1),
        "reciprocal": lambda: 1 / rank,
        "none": lambda: 1.0,
    }[flavor.discount]()


def _dcg(flavor: Flavor, gains: Sequence[Fraction], k: int | None) -> Fraction:
    """Return the DCG of gains in rank order."""
    return _mean_dcg(flavor, gains, [range(len(gains))], k)


def _mean_dcg(flavor: Flavor, gains: Sequence[Fraction], orders: Sequence[Sequence[int]], k: int | None) -> Fraction:
    """Return the mean DCG over all orders, exactly, as integers over a common power of two."""
    depth = len(gains) if k is None else min(k, len(gains))
    discounts, under = _integers([Fraction(_discount(flavor, rank)) for rank in range(1, depth + 1)])
    numerators, over = _integers(gains)
    total = 0
    for order in orders:
        total += sum(numerators[at] * discount for at, discount in zip(order, discounts, strict=False))
    return Fraction(total, under * over * len(orders))


def _integers(values: Sequence[Fraction]) -> tuple[list[int], int]:
    """Return the numerators over a common denominator, and that denominator."""
    common = math.lcm(*(value.denominator for value in values))
    return [value.numerator * (common // value.denominator) for value in values], common


# -- order ----------------------------------------------------------------------------------------------------------


def _runs(flavor: Flavor, ranked: Sequence[Document]) -> list[list[Document]]:
    """Return the tie groups, best first, each in the order of the tie-breaking rule (for ``average``, any order)."""

    def score(document: Document) -> float:
        assert not math.isnan(document.score)
        return _as_float32(document.score) if flavor.score_dtype == "float32" else document.score

    by_score = sorted(ranked, key=score, reverse=True)
    return [_in_rule_order(flavor, list(run)) for _, run in itertools.groupby(by_score, key=score)]


def _in_rule_order(flavor: Flavor, run: list[Document]) -> list[Document]:
    """Return tied documents, which are in the order of the input, in that of the rule."""
    if flavor.ties == "last":
        return run[::-1]
    if flavor.ties == "best":
        return sorted(run, key=lambda d: _gain(flavor, d), reverse=True)
    if flavor.ties == "worst":
        return sorted(run, key=lambda d: _gain(flavor, d))
    if flavor.ties == "docid":
        return sorted(run, key=lambda d: d.doc_id, reverse=True)
    if flavor.ties == "docid_ascending":
        return sorted(run, key=lambda d: d.doc_id)
    assert flavor.ties in ("first", "average")
    return run


def _orders(flavor: Flavor, runs: Sequence[Sequence[Document]]) -> list[list[int]]:
    """Return the document at each rank, for every order that the tie-breaking rule allows."""
    numbers = iter(range(sum(len(run) for run in runs)))
    numbered = [[next(numbers) for _ in run] for run in runs]
    if flavor.ties != "average":
        return [list(itertools.chain(*numbered))]
    choices = itertools.product(*(list(itertools.permutations(run)) for run in numbered))
    return [list(itertools.chain(*choice)) for choice in choices]


def _expected(gains: Sequence[Fraction], orders: Sequence[Sequence[int]]) -> list[Fraction]:
    """Return the mean gain at each rank."""
    numerators, over = _integers(gains)
    return [Fraction(sum(numerators[at] for at in rank), over * len(orders)) for rank in zip(*orders, strict=True)]


def _first(
    runs: Sequence[Sequence[Document]], gains: Sequence[Fraction], orders: Sequence[Sequence[int]], depth: int | None
) -> list[Fraction]:
    """Return the gains of the first `depth` retrieved documents. A tie group that crosses the depth has its mean."""
    depth = len(gains) if depth is None else depth
    whole = 0
    for run in runs:
        if whole + len(run) > depth:
            break
        whole += len(run)
    return [*gains[:whole], *_expected(gains, orders)[whole:depth]]


def _as_float32(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
