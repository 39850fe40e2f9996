"""JSON with a digest of its values, which shows that a text is the one that was written.

The digest detects accidents and merges. It does not protect against an author, who can compute it as well.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from ndcg_ml._one_line import brief


def digest(values: dict[str, Any]) -> str:
    """Return a digest of every value, however the text is laid out: line ends may change in a checkout."""
    return sha256(json.dumps(values, allow_nan=False, sort_keys=True).encode()).hexdigest()


def read_digested(text: str | bytes, name: str, version: int) -> dict[str, Any]:
    """Return the values of an object that was written with its digest and, under `name`, this version of the format.

    Raises
    ------
    ValueError, RecursionError
        The text is not such an object. The message says why, without the name of the file.
    """
    stored = json.loads(text, object_pairs_hook=_unique_keys)
    if not isinstance(stored, dict) or name not in stored:
        raise ValueError("it is no such object")
    if type(stored[name]) is not int or stored[name] != version:
        raise ValueError(f"its format is {brief(stored[name])}, and this version reads format {version}: save it again")
    if stored.pop("digest", None) != digest(stored):
        raise ValueError("its values are not those that were written, by its digest: it was edited, merged or damaged")
    return stored


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a key appears twice in it")
    return values
