"""Bound values and differences over all possible grades of unjudged documents, and select documents to label next.

``completions`` weighs the documents of a ranking and finds the extreme values over all grades by exact optimisation.
``ranges`` and ``judge_next`` make the results.
"""

from typing import TYPE_CHECKING

from ndcg_ml._core import modules_of

if TYPE_CHECKING:
    from ndcg_ml._unjudged import ranges as ranges

__getattr__ = modules_of(__name__, "ranges")
