"""What was passed, read once: rows, queries, ids and frames.

In: the arrays and frames of the caller. Out: ``Queries`` (labels, which rows are one query, retrieved, document ids,
weights). This folder knows no flavor and no score; whoever computes a number may import it.
"""
