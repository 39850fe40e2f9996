"""Arguments, read once: rows, queries, ids and frames.

In: the arrays and frames of the caller. Out: ``Queries`` (labels, which rows are one query, retrieved, document ids,
weights). It imports no flavor, and every module that computes a number may import it.
"""
