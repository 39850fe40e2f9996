"""Read columns of data frames of pandas, polars and pyarrow, and make such frames.

A library is imported only to make a frame.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from importlib import import_module
from itertools import combinations
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.one_line import brief, brief_text

ColumnNames: TypeAlias = "Mapping[str, Hashable]"
"""Your names of the columns ``qid``, ``docno``, ``label`` and ``score``."""

_LIBRARIES = ("pandas", "polars", "pyarrow")
_MEANINGS = ("qid", "docno", "label", "score")


class Frame(Protocol):
    """A data frame of pandas, polars or pyarrow."""

    @property
    def columns(self) -> Any:
        """Names of the columns; of pyarrow, the columns."""

    def __getitem__(self, column: Any, /) -> Any:
        """A column."""


def library_of(data: object) -> str | None:
    """Return the library of a frame or column, or None if it is not one of the three."""
    library = type(data).__module__.partition(".")[0]
    return library if library in _LIBRARIES else None


def is_frame(data: object) -> bool:
    """Whether the data have named columns."""
    return hasattr(data, "columns") and hasattr(data, "__getitem__")


def column_names(columns: object) -> dict[str, Any]:
    """Return the name of every column: the caller's or, if none is given, the usual one.

    Raises
    ------
    TypeError, ValueError
        Not a mapping from the usual names.
    """
    if not isinstance(columns, Mapping):
        raise TypeError(
            'columns must be a mapping to the names of your columns, such as {"qid": "user_id", "docno": "item_id"}; '
            f"got {type(columns).__name__}."
        )
    unknown = [key for key in columns if key not in _MEANINGS]
    if unknown:
        raise ValueError(f"columns must have no other keys than {', '.join(_MEANINGS)}; got {brief(unknown[0])}.")
    return {meaning: columns.get(meaning, meaning) for meaning in _MEANINGS}


def select_columns(
    name: str, frame: Any, needed: Sequence[str], names: Mapping[str, Any], optional: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the needed columns of a frame, and the optional ones that it has, by their usual names.

    Raises
    ------
    ValueError
        A column is missing, appears twice or has two meanings.
    """
    has = list(getattr(frame, "column_names", frame.columns))  # pyarrow keeps arrays in .columns
    missing = [meaning for meaning in needed if names[meaning] not in has]
    if missing:
        raise ValueError(
            f"{name} as a data frame must have columns {', '.join(str(names[meaning]) for meaning in needed[:-1])} and "
            f"{names[needed[-1]]}; got {brief_text(', '.join(map(str, has)))}. Pass the name of your column: "
            f"columns={{{missing[0]!r}: NAME}}."
        )
    wanted = [*needed, *(meaning for meaning in optional if names[meaning] in has)]
    for one, other in combinations(wanted, 2):
        if names[one] == names[other]:
            raise ValueError(
                f"columns must use a column of {name} once; got {brief(names[one])} for {one} and {other}."
            )
    repeated = [names[meaning] for meaning in wanted if has.count(names[meaning]) > 1]
    if repeated:
        raise ValueError(f"{name} as a data frame must have each column once; got {brief(repeated[0])} more than once.")
    return {meaning: frame[names[meaning]] for meaning in wanted}


def make_frame(library: str, columns: Mapping[str, NDArray[Any]]) -> Any:
    """Return a data frame of this library.

    Raises
    ------
    ImportError
        The library is not installed.
    """
    try:
        module = import_module(library)
    except ImportError as error:
        raise ImportError(f"Evaluation.to_frame needs {library}. Install it with: pip install {library}") from error
    if library == "pandas":
        return module.DataFrame(dict(columns))
    # polars and pyarrow infer the type of a list, but not of an array of Python objects.
    plain = {name: array.tolist() if array.dtype == np.dtype(object) else array for name, array in columns.items()}
    return module.DataFrame(plain) if library == "polars" else module.table(plain)
