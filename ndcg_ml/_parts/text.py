"""Write a ``PartialEvaluation`` as JSON with a digest of its values, and read it back."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from ndcg_ml._checks import cutoffs
from ndcg_ml._one_line import brief, brief_text
from ndcg_ml._parts.exact import ExactSums
from ndcg_ml._text.digested import digest, read_digested
from ndcg_ml.flavor import Flavor

if TYPE_CHECKING:
    from ndcg_ml.parts import PartialEvaluation

_FORMAT = 3


def to_text(part: PartialEvaluation) -> str:
    """Return a part as JSON."""
    values = {
        "ndcg_ml": _FORMAT,
        "flavor": str(part.flavor),
        "k": part.k,
        "n_queries": part.n_queries,
        "n_docs": part.n_docs,
        "n_empty": part.empties,
        "numerator": part.sums.numerator,
        "denominator": part.sums.denominator,
        "id_kind": part.id_kind,
        "ids": base64.b64encode(part.ids.astype("<u8").tobytes()).decode(),
    }
    return json.dumps({**values, "digest": digest(values)})


def read_fields(text: str | bytes) -> dict[str, Any]:
    """Return the fields of a part that was written by ``to_text``.

    Raises
    ------
    TypeError
        The text is neither str nor bytes.
    ValueError
        The text is not a part in the current format.
    """
    if not isinstance(text, (str, bytes, bytearray)):
        raise TypeError(f"text must be a str or bytes; got {brief(text)} of type {type(text).__name__}.")
    try:
        return _fields(read_digested(text, "ndcg_ml", _FORMAT))
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"text must be JSON written by PartialEvaluation.to_json; it could not be read: {brief_text(str(error))}."
        ) from error


def _fields(stored: dict[str, Any]) -> dict[str, Any]:
    flavor, k = Flavor.parse(stored["flavor"]), stored["k"]
    ks, several = cutoffs(tuple(k) if isinstance(k, list) else k, flavor)
    numerator, denominator = (tuple(map(tuple, stored[side])) for side in ("numerator", "denominator"))
    return {
        "flavor": flavor,
        "ks": ks,
        "several": several,
        "n_queries": stored["n_queries"],
        "n_docs": stored["n_docs"],
        "empties": tuple(stored["n_empty"]),
        "sums": ExactSums(numerator, denominator),
        "id_kind": stored["id_kind"],
        "ids": np.frombuffer(base64.b64decode(stored["ids"]), "<u8").astype(np.uint64),
    }
