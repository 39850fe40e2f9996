"""Suggest meanings of an unknown name (the words of other libraries, similar spellings), and what to install."""

from __future__ import annotations

from collections.abc import Collection

# Names that other libraries use for values and for arguments, for suggestions.
_ELSEWHERE = {
    **dict.fromkeys(("2^y - 1", "2^y-1", "2**y - 1", "2**y-1"), "exponential"),
    "exp": "exponential",
    "exp2": "exponential",
    "identity": "linear",
    "log": "ln",
    "mean": "average",
    "stable": "first",
    "reverse": "last",
    "error": "raise",
    "clip": "zero",
    "double": "float64",
    "single": "float32",
    "scikit": "sklearn",
    "trec": "trec_eval",
    **dict.fromkeys(("at", "cutoff", "eval_at", "top_k", "topk"), "k"),
    **dict.fromkeys(("metric", "metrics"), "flavor"),
    "empty_target_action": "empty",
    "ignore_ties": "ties",
    "log_base": "discount",
}

# The first release changes this to 'pip install "ndcg_ml[{}]"'. cmd.exe knows double quotes only.
_INSTALL = 'pip install ".[{}]" in a clone of ndcg_ml'


def install(extra: str) -> str:
    """Return the command that installs an extra of this package."""
    return _INSTALL.format(extra)


def did_you_mean(got: object, names: Collection[str]) -> str:
    """Return a sentence that suggests the nearest of the names, or an empty string."""
    near = nearest(got, names) if isinstance(got, str) else None
    return "" if near is None else f" Did you mean {near!r}?"


def nearest(got: str, names: Collection[str], cutoff: float = 0.6) -> str | None:
    """Return the name that another library's name means, or the one with the most similar spelling, if any.

    `cutoff` is the least similarity, from 0 to 1.
    """
    from difflib import get_close_matches  # a slow import that few calls need

    near = [_ELSEWHERE.get(got.lower()), *get_close_matches(got.lower(), list(names), cutoff=cutoff)]
    return next((name for name in near if name in names), None)


def unknown_preset(must: str, got: str, name: str, names: Collection[str]) -> ValueError:
    """Return the error for a name that is not a preset, with a suggestion and how to list all presets."""
    return ValueError(
        f"{must}; got {got}.{did_you_mean(name, names)} List the presets with list(ndcg_ml.PRESETS), or with the "
        "command ndcg-ml flavors; Flavor.preset(name).describe() explains one."
    )
