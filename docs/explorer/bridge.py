"""Requests of the explorer page to ndcg_ml: JSON in, JSON out.

Pyodide runs this file in the browser; the tests run it here. Cells are the text that the reader typed. Text that is
not a number is passed on unchanged, so that the error is ndcg_ml's.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin, get_type_hints

import ndcg_ml
from ndcg_ml import PRESETS, Flavor, identify, ndcg_score
from ndcg_ml.presets import MIRRORS

# Values within this distance are equal, as in identify.
SAME = 1e-12
# Largest number of matches shown.
SHOWN = 6


def answer(request: str) -> str:
    """Answer a request, which has the action (``numbers`` or ``identify``), the rows, the cut-off and more."""
    requested = json.loads(request)
    do = {"numbers": numbers, "identify": identified}[requested["do"]]
    try:
        return json.dumps(do(requested))
    except (TypeError, ValueError) as error:
        return json.dumps({"error": str(error)})


def about() -> dict[str, Any]:
    """Return what the page needs before Python is loaded: the presets, and the values of every switch."""
    words = {name: _words(hint) for name, hint in get_type_hints(Flavor).items()}
    words["empty"] = ["0", "1", "nan", *words["empty"]]
    return {
        "version": ndcg_ml.__version__,
        "presets": {name: _library(name) for name in PRESETS},
        "switches": {name: found for name, found in words.items() if found},
    }


# -- requests ---------------------------------------------------------------------------------------------------------


def numbers(requested: dict[str, Any]) -> dict[str, Any]:
    """Return the value of the reader's flavor, and the presets grouped by value, highest first."""
    data, k = _data(requested["rows"]), _cutoff(requested["k"])
    found: list[tuple[float, str]] = []
    refused: dict[str, list[str]] = {}
    for name, flavor in PRESETS.items():
        value, error = _try(lambda flavor=flavor: ndcg_score(flavor=flavor, k=k, **data))
        if error is None:
            found.append((value, name))
        else:
            refused.setdefault(error, []).append(name)
    groups: list[dict[str, Any]] = []
    for value, name in sorted(found, key=lambda pair: -pair[0] if pair[0] == pair[0] else math.inf):
        if not groups or not abs(groups[-1]["value"] - value) <= SAME:
            groups.append({"value": value, "presets": []})
        groups[-1]["presets"].append(name)
    for group in groups:
        group["value"] = _plain(group["value"])
    return {
        "groups": groups,
        "refused": [{"error": error, "presets": names} for error, names in refused.items()],
        "flavor": _reader_flavor(requested["flavor"], k, data),
    }


def _reader_flavor(text: str, k: Any, data: dict[str, Any]) -> dict[str, Any]:
    flavor, error = _try(lambda: Flavor.parse(text))
    if error is not None:
        return {"error": error}
    value, error = _try(lambda: ndcg_score(flavor=flavor, k=k, **data))
    shown = flavor if k is ... else _try(lambda: flavor.replace(k=k))[0] or flavor
    start = Flavor.parse(f"{text.partition('[')[0].partition('@')[0]}")
    answer = {
        "text": shown.short_text,
        "words": shown.describe(),
        "switches": {name: _switch(flavor, name) for name in Flavor.__dataclass_fields__},
        "changed": [
            name for name in Flavor.__dataclass_fields__ if _switch(flavor, name) != _switch(start, name)
        ],
    }
    return answer | ({"value": _plain(value)} if error is None else {"error": error})


def identified(requested: dict[str, Any]) -> dict[str, Any]:
    """Return the flavors that reproduce the reader's number."""
    text = requested["value"].strip()
    data = _data(requested["rows"])
    decimals = len(text.partition(".")[2]) if re.fullmatch(r"-?[0-9]*\.?[0-9]*", text) else 4
    k = _cutoff(requested["k"])
    found = identify(_number(text), k=k, decimals=decimals, **data)
    lines = str(found).splitlines()
    listed = [match for match in found.matches if match.presets] or found.matches or found.nearest
    return {
        "headline": lines[0],
        "tried": found.n_tried,
        "matches": [
            {
                "name": match.name,
                "value": _plain(match.value),
                "presets": list(match.presets),
                "others": match.n_others,
            }
            for match in listed[:SHOWN]
        ],
        "more": max(0, len(found.matches or found.nearest) - SHOWN),
        "not_tried": [line.removeprefix("not tried: ") for line in lines if line.startswith("not tried: ")],
    }


# -- the reader's input -----------------------------------------------------------------------------------------------


def _data(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The arguments of ndcg_score; ids and flags are left out where they say nothing."""
    retrieved = [bool(row["retrieved"]) for row in rows]
    ids = [row["doc"].strip() for row in rows]
    return {
        "y_true": [_number(row["label"], math.nan) for row in rows],
        "y_score": [_number(row["score"], math.nan) for row in rows],
        "qid": [row["query"].strip() for row in rows],
        "retrieved": None if all(retrieved) else retrieved,
        "doc_id": ids if any(ids) else None,
    }


def _number(text: str, blank: Any = "") -> Any:
    text = text.strip()
    if not text:
        return blank
    try:
        return float(text)
    except ValueError:
        return text


def _cutoff(text: str) -> Any:
    """``...``, the flavor's own, where the field is blank."""
    text = text.strip()
    if not text:
        return ...
    return int(text) if re.fullmatch(r"[-+]?[0-9]{1,18}", text) else text


# -- what the page shows ----------------------------------------------------------------------------------------------


def _try(compute: Callable[[], Any]) -> tuple[Any, str | None]:
    try:
        return compute(), None
    except (TypeError, ValueError) as error:
        return None, str(error)


def _plain(value: float) -> float | None:
    """A number that JSON has, the same on every machine."""
    return round(value, 12) if math.isfinite(value) else None


def _switch(flavor: Flavor, name: str) -> str:
    value = getattr(flavor, name)
    if isinstance(value, tuple):
        return "|".join(f"{entry:g}" for entry in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _words(hint: Any) -> list[str]:
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [word for part in get_args(hint) for word in _words(part)]


def _plain_library(name: str) -> str:
    """Return the library of a preset, without version and function."""
    return re.sub(r" v?\d+\.[\w.]*$", "", re.split(r",| [(]", MIRRORS[name].library)[0])


_PRESETS_OF = Counter(_plain_library(name) for name in PRESETS)
_FIRST_OF = {_plain_library(name): name for name in reversed(PRESETS)}


def _library(name: str) -> str:
    """Return the name of a preset on the page: its library, with the preset unless it is the first."""
    library = _plain_library(name)
    return library if _FIRST_OF[library] == name else f"{library} ({name})"
