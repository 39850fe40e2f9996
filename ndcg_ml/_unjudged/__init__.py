"""Bound values and differences over all possible grades of unjudged documents, and select documents to label next.

``ranges`` decides which flavors and labels have a range, and weighs the documents of a ranking; ``completions`` finds
the extreme values over all grades by exact optimisation; ``judge_next`` selects documents.
"""

from typing import TYPE_CHECKING

from ndcg_ml._core import modules_of

if TYPE_CHECKING:
    from ndcg_ml._unjudged import ranges as ranges

__getattr__ = modules_of(__name__, "ranges")
