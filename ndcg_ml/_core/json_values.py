"""Values of JSON: convert values and ids for ``to_dict``, describe them in messages, and refuse repeated keys."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date, time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.layout import as_objects
from ndcg_ml._plain.messages import brief


def plain(value: Any) -> Any:
    """Convert a value, also inside dicts and lists: nan and infinity to None, others by ``plain_id``."""
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, np.ndarray):
        return plain_ids(value).tolist()
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return plain_id(value)


def plain_ids(ids: NDArray[Any]) -> NDArray[Any]:
    """Convert ids; those that JSON has no type for become text. Different ids stay different."""
    if ids.dtype.kind in "biu":
        return ids
    if ids.dtype.kind == "M":  # tolist() would return nanoseconds as integers
        return np.datetime_as_string(ids).astype(object)
    return as_objects([plain_id(one_id) for one_id in ids.tolist()])


def plain_id(value: object) -> bool | int | float | str:
    """Convert an id to a number or text: bytes to hexadecimal, dates and times to ISO 8601, others by ``str``."""
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64):
        value = value.item()
    if isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if isinstance(value, (date, time)) else str(value)


def json_repr(value: Any) -> str:
    """Format a value for an error message, in JSON's terms."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, dict):
        return "an object"
    return "an array" if isinstance(value, list) else brief(value)


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object as a dict, for ``json.loads(object_pairs_hook=)``. Raise ``ValueError`` if it repeats a key."""
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"an object must have each key once; got {brief(max(names, key=names.count))} twice")
    return values
