"""Bound values and differences over all possible grades of unjudged documents, and select documents to label next.

``documents`` computes the weight of each document in a ranking, ``completions`` the extreme values over completions of
the labels by exact optimisation, ``range`` and ``judge_next`` the results. Evaluations and comparisons call this
package, which imports neither.
"""
