"""Bound values and differences over all possible grades of unjudged documents, and select documents to label next.

``completions`` weighs the documents of a ranking and finds the extreme values over all grades by exact optimisation.
``range`` and ``judge_next`` make the results. Evaluations and comparisons call this package, which imports neither.
"""
