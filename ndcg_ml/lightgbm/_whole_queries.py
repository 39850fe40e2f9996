"""Whether a data set of LightGBM holds whole queries: a fold of ``lgb.cv`` may not."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

import numpy as np

__all__ = ["WholeQueries"]


class WholeQueries:
    """A check that is made once a data set; what was checked does not travel when it is pickled or copied.

    Parameters
    ----------
    who : str
        Who needs whole queries, for the message.
    """

    def __init__(self, who: str) -> None:
        self._who = who
        # By data set and not by content, by which `Recent` keeps: what is left of a cut query is in the rows that a
        # data set took, and another one may hold the same labels in whole queries.
        self._checked: WeakSet[Any] = WeakSet()

    def __getstate__(self) -> dict[str, Any]:
        return {"_who": self._who}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._checked = WeakSet()

    def check(self, dataset: Any) -> None:
        """Raise ValueError where a query of the data set was cut."""
        if dataset in self._checked:
            return
        part = dataset
        while getattr(part, "used_indices", None) is not None:  # a subset; a validation set merely has a reference
            self._refuse_cut(part.reference.get_group(), part.used_indices)
            part = part.reference
        self._checked.add(dataset)

    def _refuse_cut(self, group: Any, rows: Any) -> None:
        if group is None:
            return
        sizes = np.asarray(group)
        query = np.repeat(np.arange(sizes.size), sizes)
        used = np.bincount(query[np.asarray(rows)], minlength=sizes.size)
        cut = int(((used > 0) & (used != sizes)).sum())
        if cut:
            raise ValueError(
                f"{self._who} needs whole queries, and the folds cut {cut} of {sizes.size}: some of their rows are in "
                "this data set and some are not. Pass folds=query_folds(group), or folds=GroupKFold().split(...), to "
                "lgb.cv; left to itself it keeps queries whole under its own ranking objectives only."
            )
