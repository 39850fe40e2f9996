"""What the public functions return: values, tables of queries, comparisons and slices."""

from typing import TYPE_CHECKING

from ndcg_ml._core.first_use import modules_of

if TYPE_CHECKING:
    from ndcg_ml.results import slices as slices

__getattr__ = modules_of(__name__, "slices")
