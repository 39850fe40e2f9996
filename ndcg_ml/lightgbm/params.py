"""Convert a flavor to LightGBM's own parameters, or refuse what LightGBM cannot express."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ndcg_ml._params import (
    EMPTY_IS_ONE,
    FLOAT64,
    IDEAL,
    IN_ROW_ORDER,
    LOGARITHM,
    Library,
    Rule,
    check_expressible,
    value_in_words,
)
from ndcg_ml._kernel.gains_and_discounts import gain

if TYPE_CHECKING:
    from ndcg_ml.flavor import Flavor

__all__ = ["lightgbm_params"]

# LightGBM documents lambdarank_truncation_level as "slightly above k, for example k + 3".
_BELOW_THE_CUT = 3
# LightGBM 4.7 refuses a query with more rows, so a cut-off at this rank has no effect.
_LONGEST = 10_000
# Number of grades in LightGBM's default table: 0..30.
_GRADES = 31
_MOST_GRADES = 10_000
# LightGBM's sums of larger gains could overflow.
_LARGEST_GAIN = 1e300

_LIGHTGBM = Library(
    name="LightGBM",
    training={
        "off_table": Rule(("raise",), "refuses a label beyond its table"),
        "discount": LOGARITHM,
        "negative": Rule(("raise",), "refuses negative labels"),
        "unjudged": Rule(("raise",), "reads a NaN label as grade 0, or refuses it"),
    },
    metric={**IDEAL, "ties": IN_ROW_ORDER, "empty": EMPTY_IS_ONE, "score_dtype": FLOAT64},
)


def lightgbm_params(flavor: Flavor, evaluate: bool) -> dict[str, Any]:
    """See ``Flavor.lightgbm_params``."""
    check_expressible(flavor, _LIGHTGBM, evaluate)
    at = min(flavor.k or _LONGEST, _LONGEST)
    params = {
        "objective": "lambdarank",
        "label_gain": _label_gain(flavor),
        "lambdarank_truncation_level": min(at + _BELOW_THE_CUT, _LONGEST),
    }
    return {**params, **({"metric": "ndcg", "eval_at": [at]} if evaluate else {"metric": "None"})}


def _label_gain(flavor: Flavor) -> list[float]:
    """Return the gain of every grade from 0. LightGBM refuses labels beyond the table."""
    top = flavor.max_grade
    if top is not None and not 0 <= top < _MOST_GRADES:
        raise ValueError(
            f"max_grade must be from 0 to {_MOST_GRADES - 1} for LightGBM, which looks gains up in a table by grade; "
            f"got {top!r}. Use flavor.replace(max_grade=...) on labels of fewer grades."
        )
    grades = range(_GRADES if top is None else int(top) + 1)
    if isinstance(flavor.gain, tuple):
        grades = grades[: len(flavor.gain)] if top is not None else range(len(flavor.gain))
    gains = _gains_of(flavor, grades)
    for grade, (lower, higher) in enumerate(pairwise(gains), start=1):
        if higher < lower:
            raise ValueError(
                f"LightGBM cannot express gain={value_in_words(flavor.gain)}: it ranks the higher grade first, and the "
                f"gain {higher!r} of grade {grade} is below the gain {lower!r} of grade {grade - 1}. Use "
                "flavor.replace(gain='exponential'), or another gain that does not decrease."
            )
    if max(map(abs, gains)) > _LARGEST_GAIN:
        raise ValueError(
            f"LightGBM cannot express gain={value_in_words(flavor.gain)} up to grade {len(gains) - 1}, whose gain is "
            f"beyond {_LARGEST_GAIN:g}. Use flavor.replace(max_grade=...) on labels of fewer grades, or another gain."
        )
    return gains


def _gains_of(flavor: Flavor, grades: Sequence[int]) -> list[float]:
    try:
        with np.errstate(over="ignore"):
            gains: list[float] = gain(flavor, np.array(grades, dtype=np.float64)).tolist()
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"gain must have a value for every grade of LightGBM's table, 0 to {len(grades) - 1}; "
            f"{str(error).rstrip('.')}. Use flavor.replace(max_grade=...) with the top of your grade scale."
        ) from error
    return gains
