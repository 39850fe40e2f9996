"""The text of a ``PartialEvaluation``: what is written, and what a text must hold to be one that was written."""

from __future__ import annotations

import base64
import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ndcg_ml._checks import cutoffs
from ndcg_ml._one_line import shown, shown_text
from ndcg_ml._parts.exact import Exact, ExactSums, exact_sum, nearest
from ndcg_ml._parts.query_ids import KINDS, Digests
from ndcg_ml.flavor import Flavor

if TYPE_CHECKING:
    from ndcg_ml.parts import PartialEvaluation

_FORMAT = 2
_KEYS = ["ndcg_ml", "flavor", "k", "n_queries", "n_docs", "n_empty", "numerator", "denominator", "id_kind", "ids"]
_MOST = 2**63 - 1
_HEAVIEST = 1e150
"""No query has a larger weight."""
_ROUNDED_UP = 1 + 1e-9
_MINUS_ZERO = _NOT_A_TIME = 2**63


def text_of(part: PartialEvaluation) -> str:
    """A part as JSON."""
    sums = part.sums
    return json.dumps(
        {
            "ndcg_ml": _FORMAT,
            "flavor": str(part.flavor),
            "k": part.k,
            "n_queries": part.n_queries,
            "n_docs": part.n_docs,
            "n_empty": part.empties,
            "numerator": sums.numerator,
            "denominator": sums.denominator,
            "id_kind": part.id_kind,
            "ids": base64.b64encode(part.ids.astype("<u8").tobytes()).decode(),
        }
    )


def fields_of(text: str | bytes) -> dict[str, Any]:
    """The fields of the part that was written, each of them and all together such as a part can have.

    Raises
    ------
    TypeError
        The text is neither str nor bytes.
    ValueError
        It is not a part that this version wrote.
    """
    if not isinstance(text, (str, bytes, bytearray)):
        raise TypeError(f"text must be a str or bytes; got {shown(text)} of type {type(text).__name__}.")
    try:
        return _fields(json.loads(text, object_pairs_hook=unique_keys))
    except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise ValueError(
            f"text must be what PartialEvaluation.to_json wrote; it could not be read: {shown_text(str(error))}."
        ) from error


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, in which no key may appear twice."""
    stored = dict(pairs)
    must(len(stored) == len(pairs), "a key appears twice in it")
    return stored


def must(holds: object, otherwise: str) -> None:
    """Refuse a stored text that is not as it was written."""
    if not holds:
        raise ValueError(otherwise)


def _fields(stored: Any) -> dict[str, Any]:
    must(isinstance(stored, dict) and "ndcg_ml" in stored, "it is no such object")
    version = stored["ndcg_ml"]
    must(
        type(version) is int and version == _FORMAT,
        f"its format is {shown(version)}, and this version reads format {_FORMAT}",
    )
    must(sorted(stored) == sorted(_KEYS), f"its keys must be {', '.join(_KEYS)}")
    flavor = Flavor.parse(stored["flavor"])
    k = stored["k"]
    ks, several = cutoffs(tuple(k) if isinstance(k, list) else k, flavor)
    must(flavor.k == (None if several else ks[0]), "its flavor has another cut-off")
    n_queries, n_docs = (_count(stored, name, _MOST) for name in ("n_queries", "n_docs"))
    listed = {name: stored[name] for name in ("n_empty", "numerator", "denominator")}
    for name, values in listed.items():
        must(isinstance(values, list) and len(values) == len(ks), f"{name} must have one entry for each cut-off")
    empties = tuple(_count({"n_empty": n_empty}, "n_empty", n_queries) for n_empty in listed["n_empty"])
    sums = ExactSums(tuple(map(_sum, listed["numerator"])), tuple(map(_sum, listed["denominator"])))
    for numerator, denominator, n_empty in zip(sums.numerator, sums.denominator, empties, strict=True):
        if flavor.aggregate == "macro":
            heaviest = n_queries * _HEAVIEST
            must(nearest(denominator) <= heaviest, "a denominator is too large for the weights of its queries")
        _check_sums(flavor, n_queries, numerator, denominator, n_empty)
    kind = stored["id_kind"]
    must(kind in (KINDS if n_queries else ("",)), f"id_kind must be that of the ids; it is {shown(kind)}")
    must(n_queries > 0 or n_docs == 0, "it has documents without queries")
    return {
        "flavor": flavor,
        "ks": ks,
        "several": several,
        "n_queries": n_queries,
        "n_docs": n_docs,
        "empties": empties,
        "sums": sums,
        "id_kind": kind,
        "ids": _ids(stored["ids"], kind, n_queries),
    }


def _count(stored: dict[str, Any], name: str, most: int) -> int:
    value = stored[name]
    must(type(value) is int and 0 <= value <= most, f"{name} must be an integer from 0 to {most}; it is {shown(value)}")
    number: int = value
    return number


def _sum(stored: Any) -> Exact:
    numbers = isinstance(stored, list) and all(type(part) is float and math.isfinite(part) for part in stored)
    must(numbers and exact_sum(stored) == tuple(stored), f"a sum must be a list of floats; it is {shown(stored)}")
    return tuple(stored)


def _check_sums(flavor: Flavor, n_queries: int, numerator: Exact, denominator: Exact, n_empty: int) -> None:
    """Refuse what cannot be the sums over `n_queries` queries, `n_empty` of them empty."""
    must(nearest(denominator) >= 0, "a denominator is below 0")
    must(flavor.empty != "raise" or not n_empty, "it has empty queries under empty='raise'")
    if n_empty == n_queries:
        counted = flavor.aggregate == "macro" and flavor.empty != "skip" and n_queries > 0
        must(counted or not denominator, "its denominator must be 0, because no query counts")
        must(
            numerator == (denominator if counted and flavor.empty == 1.0 else ()),
            "its numerator is not that of empty queries",
        )
    if gains_are_positive(flavor):
        must(nearest(numerator) >= 0, "an NDCG is below 0, which its flavor cannot give")
        if not ideal_can_be_beaten(flavor):
            must(
                nearest(numerator) <= nearest(denominator) * _ROUNDED_UP,
                "an NDCG is above 1, which its flavor cannot give",
            )


def gains_are_positive(flavor: Flavor) -> bool:
    """Whether no document gains less than 0."""
    if isinstance(flavor.gain, tuple):
        return bool(min(flavor.gain) >= 0)
    return flavor.negative != "allow" or flavor.gain in ("binary", "judged")


def ideal_can_be_beaten(flavor: Flavor) -> bool:
    """Whether some ranking of documents that gain 0 or more has a DCG above the ideal one."""
    if flavor.ideal == "max" and isinstance(flavor.gain, tuple):
        assert flavor.max_grade is not None
        top = int(flavor.max_grade)
        return bool(flavor.gain[top] < max(flavor.gain[: top + 1]))
    # The judged documents are in a global ideal once each, however often a ranking is credited for them.
    counts_copies = flavor.ideal == "global" and flavor.duplicates == "count"
    return counts_copies or flavor.ideal == "given" or flavor.recall_depth is not None


def _ids(text: Any, kind: str, n_queries: int) -> Digests:
    must(isinstance(text, str), "ids must be text in base64")
    ids = np.frombuffer(base64.b64decode(text, validate=True), "<u8").astype(np.uint64)
    must(ids.size == n_queries, f"ids must be those of {n_queries} queries; it has {ids.size}")
    must(bool((ids[1:] > ids[:-1]).all()), "ids must rise, and none may repeat")
    if kind == "float":
        must(not np.isnan(ids.view(np.float64)).any() and _MINUS_ZERO not in ids, "an id is no number")
    elif kind == "time":
        must(_NOT_A_TIME not in ids, "an id is no time")
    return ids
