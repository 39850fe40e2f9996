"""JSON with a digest of its values.

The digest detects accidental edits and merges. It is no protection against deliberate changes.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from ndcg_ml._core.one_line import brief


def digest(values: dict[str, Any]) -> str:
    """Return a digest of the values. It does not depend on the layout of the text, such as line ends."""
    return sha256(json.dumps(values, allow_nan=False, sort_keys=True).encode()).hexdigest()


def read_digested(text: str | bytes, name: str, version: int) -> dict[str, Any]:
    """Return the values of an object that has a digest and, under `name`, this version of the format.

    Raises
    ------
    ValueError, RecursionError
        The text is not such an object. The message gives the reason, without the name of the file.
    """
    stored = json.loads(text, object_pairs_hook=_unique_keys)
    if not isinstance(stored, dict) or name not in stored:
        raise ValueError(f"it has no key {name!r}")
    if type(stored[name]) is not int or stored[name] != version:
        raise ValueError(f"its format is {brief(stored[name])}, and this version reads format {version}: save it again")
    if stored.pop("digest", None) != digest(stored):
        raise ValueError("its values do not match its digest: it was edited, merged or damaged")
    return stored


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("it has a key twice")
    return values
