"""From numbers to numbers: means over queries, intervals, tests of differences, and verdicts."""

from typing import TYPE_CHECKING

from ndcg_ml._core import modules_of

if TYPE_CHECKING:
    from ndcg_ml._statistics import differences as differences
    from ndcg_ml._statistics import intervals as intervals
    from ndcg_ml._statistics import means as means

__getattr__ = modules_of(__name__, "differences", "intervals", "means")
