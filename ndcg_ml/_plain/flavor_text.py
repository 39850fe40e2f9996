"""Write and read the one-line text of a flavor, hash it, and describe it in words."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ndcg_ml._plain.checks import quote
from ndcg_ml._plain.messages import brief, did_you_mean, unknown_preset
from ndcg_ml.divergences import declared
from ndcg_ml.presets import MIRRORS

if TYPE_CHECKING:
    from ndcg_ml.flavor import Flavor

# Switches that are always written. Others are written if they differ from the default.
_ALWAYS = ("gain", "discount", "ideal", "ties", "empty")

# The named values of switches. To add a discount, add its name here and its formula to DISCOUNTS in
# _core/labels_gains_discounts.py and torch/kernel.py; type checkers use NamedDiscount in flavor.py.
WORDS: Mapping[str, Mapping[str, str]] = {
    "gain": {
        "linear": "y",
        "exponential": "2^y - 1",
        "binary": "1 if y > 0, otherwise 0",
        "judged": "1 for every judged document, whatever its label",
    },
    "discount": {
        "log2": "1 / log2(r + 1)",
        "jarvelin": "1 for r < 2, otherwise 1 / log2(r)",
        "reciprocal": "1 / r",
        "ln": "1 / ln(r + 1)",
        "none": "1",
    },
    "aggregate": {"macro": "weighted mean of the queries' NDCG", "micro": "sum of DCG over sum of IDCG"},
    "ties": {
        "average": "every order of the tied documents counts the same (their mean discount)",
        "first": "tied documents keep their input order",
        "last": "tied documents take the reverse of their input order",
        "best": "tied documents are put highest gain first",
        "worst": "tied documents are put lowest gain first",
        "docid": "tied documents are put in descending order of document id",
        "docid_ascending": "tied documents are put in ascending order of document id",
    },
    "negative": {
        "raise": "a negative label is an error",
        "zero": "a negative label has gain 0",
        "drop": "a document with a negative label is removed before ranking",
        "allow": "a negative label goes through the gain formula; an ideal DCG <= 0 counts as empty",
    },
    "unjudged": {
        "raise": "a document without a label (NaN) is an error",
        "zero": "a document without a label (NaN) keeps its rank and has gain 0",
        "condense": "a document without a label (NaN) is removed before ranking",
    },
    "score_dtype": {
        "float64": "scores are compared in float64",
        "float32": "scores are compared in float32: what float32 cannot distinguish is tied",
    },
    "duplicates": {
        "first": "a document that is listed twice is credited at its first rank, and has gain 0 at later ranks",
        "count": "a document that is listed twice is credited at each of its ranks",
    },
}


# -- the line -------------------------------------------------------------------------------------------------------

_FORM = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)(?:@(?P<k>[^\[\]@]*))?(?:\[(?P<switches>[^\[\]]*)\])?", re.ASCII)
_SHAPE = "'ndcg', 'ndcg@10', 'ndcg@10[gain=exponential,ties=average]', or a preset's name in place of 'ndcg'"


def switch_text(value: object) -> str:
    """Return the value of a switch as written in the flavor's text."""
    if isinstance(value, tuple):
        return "|".join(switch_text(entry) for entry in value)
    if isinstance(value, float):
        return str(int(value)) if value == value and abs(value) < 1e15 and value == int(value) else repr(value)
    if callable(value):
        return f"<{getattr(value, '__qualname__', type(value).__qualname__)}>".replace(" ", "_")
    return str(value)


def at_cutoff(k: int | None) -> str:
    """Return the cut-off as part of a name."""
    return "" if k is None else f"@{k}"


def metric_key(k: int | None, name: str = "ndcg") -> str:
    """Return the name of NDCG that every tracker accepts: ``ndcg``, or ``ndcg_at_10`` for a cut-off of 10."""
    return name if k is None else f"{name}_at_{k}"


def log_name(name: object, default: str) -> str:
    """Return a name for logs: `name`, which gets ``ndcg_`` in front unless it begins with that, or the default."""
    if name is None:
        return default
    if not isinstance(name, str) or not name.replace("_", "").isalnum():
        kind = ValueError if isinstance(name, str) else TypeError
        raise kind(f"name must consist of letters, digits and '_', such as 'mine'; got {brief(name)}.")
    return f"ndcg_{name.removeprefix('ndcg_')}"


def write(values: Mapping[str, object], defaults: Mapping[str, object]) -> str:
    """Return the text of a flavor with these fields."""
    rest = [name for name in values if name not in (*_ALWAYS, "k") and values[name] != defaults[name]]
    switches = ",".join(f"{name}={switch_text(values[name])}" for name in (*_ALWAYS, *rest))
    k = values["k"]
    return f"ndcg{'' if k is None else f'@{k}'}[{switches}]"


def read(text: object, presets: Collection[str], fields: Collection[str]) -> tuple[str, dict[str, object]]:
    """Return the name that a text starts with (``ndcg`` or a preset's) and the fields that it changes."""
    if not isinstance(text, str):
        raise TypeError(f"text must be a str such as {_SHAPE}; got {brief(text)} of type {type(text).__name__}.")
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"a flavor's text must have the form {_SHAPE}; got {brief(text)}.")
    name, names = match["name"], ["ndcg", *presets]
    if name in WORDS["gain"]:
        raise ValueError(
            f"a flavor's text must start with 'ndcg' or the name of a preset; got {brief(name)}, which is a gain. Use "
            f"Flavor(gain={name!r}), or 'ndcg[gain={name}]'."
        )
    if name not in names:
        must = "a flavor's text must start with 'ndcg' or the name of a preset"
        raise unknown_preset(must, f"{brief(name)} in {brief(text)}", name, names)
    changes: dict[str, object] = {}
    if match["k"] is not None:
        changes["k"] = _value("k", match["k"])
    for part in (match["switches"] or "").split(",") if match["switches"] else ():
        switch, equals, value = part.strip().partition("=")
        if not equals:
            raise ValueError(
                f"a switch in a flavor's text must have the form name=value; got {brief(part)} in {brief(text)}."
            )
        if switch not in fields:
            raise ValueError(
                f"a switch in a flavor's text must be one of {quote(fields)}; got {brief(switch)} in {brief(text)}."
                f"{did_you_mean(switch, fields)}"
            )
        if switch in changes:
            raise ValueError(f"a flavor's text must set {brief(switch)} once; got it twice in {brief(text)}.")
        changes[switch] = _value(switch, value)
    return name, changes


def _value(name: str, text: str) -> object:
    if text.startswith("<"):
        raise ValueError(
            f"a flavor with a callable cannot be read back from text; got {name}={text}. "
            "Keep the Flavor object itself, or write a gain as a table."
        )
    if name in ("k", "recall_depth"):
        return None if text == "None" else _number(name, text, int)
    if name == "max_grade":
        return None if text == "None" else _number(name, text)
    if name == "gain" and text not in WORDS["gain"] and not text[:1].isalpha():
        return tuple(_number(name, entry) for entry in text.split("|"))
    if name == "empty" and text[:1].isdigit():
        return _number(name, text)
    return text


def _number(name: str, text: str, kind: type[float] = float) -> float:
    try:
        return kind(text)
    except ValueError:
        must = "an integer >= 1" if kind is int else "a number"
        raise ValueError(f"{name} must be {must}; got {brief(text)} in the text of a flavor.") from None


# -- the hash -------------------------------------------------------------------------------------------------------

_TOKENS: WeakKeyDictionary[Callable[..., Any], str] = WeakKeyDictionary()
_PROCESS = os.urandom(16).hex()


def hash_definition(flavor: Flavor, ks: Collection[int | None] = ()) -> str:
    """Hash a flavor without its cut-off, and cut-offs. Equal in every process if its callables can be imported."""
    import hashlib  # a slow import that few calls need

    callables = [_identify_callable(part) for part in (flavor.gain, flavor.discount) if callable(part)]
    return hashlib.sha256(f"{flavor.replace(k=None)} {ks} {callables}".encode()).hexdigest()[:16]


def _identify_callable(function: Callable[..., Any]) -> str:
    """Return where a callable is imported from, or a token of its own if it cannot be imported, as for a lambda."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    imported: object = sys.modules.get(module or "")
    for part in name.split("."):
        imported = getattr(imported, part, None)
    if imported is function:
        return f"{module}.{name}"
    with suppress(TypeError):  # it has no weak reference, or no hash
        return _TOKENS.setdefault(function, os.urandom(16).hex())
    return f"{_PROCESS} {id(function)}"


# -- the words ------------------------------------------------------------------------------------------------------


def describe(flavor: Flavor, also: Iterable[str]) -> str:
    """Return the formula, every switch in words and, for a preset, its notes. `also` names the presets equal to it."""
    names = {"score_dtype": "scores", "duplicates": "repeats"}
    rows = [(names.get(switch, switch), words) for switch, words in switches_in_words(flavor).items()]
    mirror = MIRRORS.get(flavor.preset_name or "")
    if mirror is not None:
        rows += [("preset", f"{mirror.name}: {mirror.library}"), ("note", mirror.unusual)]
        rows += [("verified", mirror.verified), *(("differs", str(entry)) for entry in declared(mirror.name))]
        for other in (MIRRORS[name] for name in also):
            alias = "" if other.alias_of is None else f" (an alias of {other.alias_of})"
            rows.append(("also", f"{other.name}: {other.library}{alias}"))
    rows.append(("text", str(flavor)))
    return "\n".join([formula(flavor), *(f"  {name:<10} {words}" for name, words in rows)])


def formula(flavor: Flavor) -> str:
    """Return NDCG in terms of gain and discount."""
    at = at_cutoff(flavor.k)
    return f"NDCG{at} = DCG{at} / IDCG{at}, DCG{at} = sum over documents of gain(y) * D(rank)"


def switches_in_words(flavor: Flavor) -> dict[str, str]:
    """Return the switches in words. Gain, discount and ideal include the switches that modify them."""
    words = {
        "gain": _gain_in_words(flavor),
        "discount": _discount_in_words(flavor),
        "ties": WORDS["ties"][flavor.ties],
        "ideal": _ideal_in_words(flavor),
        "empty": f"a query whose ideal DCG is 0 {empty_in_words(flavor)}",
        "aggregate": WORDS["aggregate"][flavor.aggregate],
        "negative": WORDS["negative"][flavor.negative],
        "unjudged": WORDS["unjudged"][flavor.unjudged],
        "score_dtype": WORDS["score_dtype"][flavor.score_dtype],
    }
    if flavor.duplicates != "raise":
        words["duplicates"] = WORDS["duplicates"][flavor.duplicates]
    return words


def _gain_in_words(flavor: Flavor) -> str:
    if callable(flavor.gain):
        words = f"gain(y) = {switch_text(flavor.gain)}(y), a callable"
    elif isinstance(flavor.gain, tuple):
        words = f"gain(y) = table {switch_text(flavor.gain)}, by grade"
        if flavor.off_table == "zero":
            words += "; a grade beyond it has gain 0"
    else:
        words = f"gain(y) = {WORDS['gain'][str(flavor.gain)]}"
    return words if flavor.top_label is None else f"{words}; a label above {switch_text(flavor.top_label)} is an error"


def _discount_in_words(flavor: Flavor) -> str:
    if callable(flavor.discount):
        words = f"D(r) = {switch_text(flavor.discount)}(r), a callable"
    else:
        words = f"D(r) = {WORDS['discount'][flavor.discount]}"
    if flavor.k is not None:
        words += f"; D(r) = 0 for r > {flavor.k}"
    if flavor.short_lists == "zero":
        words += f"; a query with fewer than {flavor.k or 'k'} documents has DCG 0"
    return words


def _ideal_in_words(flavor: Flavor) -> str:
    k = None if flavor.ideal_depth == "all" else flavor.k
    ranks = "every rank" if k is None else f"ranks 1..{k}"
    if flavor.ideal == "recall":
        first = "" if flavor.recall_depth is None else f" among the first {flavor.recall_depth}"
        words = f"the retrieved documents{first}, best first"
    elif flavor.ideal == "local":
        words = f"the expected gains at {ranks}, re-sorted"
    elif flavor.ideal == "max":
        where = "as many ranks as documents were retrieved" if k is None else ranks
        words = f"gain({switch_text(flavor.max_grade)}) at {where}"
    elif flavor.ideal == "given":
        words = "all judged documents of the query, retrieved or not, in the order of the input"
    else:
        words = "all judged documents of the query, retrieved or not, best first"
    if flavor.ideal_depth == "retrieved":
        words += "; cut after as many documents as were retrieved"
    return words if k == flavor.k else f"{words}; not cut at {flavor.k}"


_TIES = {
    "average": "averaged",
    "first": "in order of input",
    "last": "in reverse order of input",
    "best": "best first",
    "worst": "worst first",
    "docid": "by descending id",
    "docid_ascending": "by ascending id",
}


def summarise(flavor: Flavor, changed: Mapping[str, object]) -> str:
    """Return gain, ties, empty queries and the other changed switches, on one line."""
    gain = flavor.gain if isinstance(flavor.gain, str) else switch_text(flavor.gain)
    empty = {"skip": "skipped", "raise": "refused"}.get(str(flavor.empty), f"score {switch_text(flavor.empty)}")
    words = [f"NDCG{at_cutoff(flavor.k)}: {gain} gain", f"ties {_TIES[flavor.ties]}", f"empty queries {empty}"]
    for switch, value in changed.items():
        if switch in ("discount", "ideal"):
            words.append(f"{switch_text(value)} {switch}")
        elif switch not in ("gain", "ties", "empty"):
            words.append(f"{switch}={switch_text(value)}")
    return ", ".join(words)


def empty_in_words(flavor: Flavor) -> str:
    """Return the score of an empty query under the flavor, in words."""
    if isinstance(flavor.empty, str):
        return {"skip": "is left out of the mean", "raise": "is an error"}[flavor.empty]
    return f"scores {switch_text(flavor.empty)}"
