"""Read the caller's arrays and frames into ``Queries``: labels, query groups, retrieved documents, ids and weights.

It imports no flavor, and every module that computes a number may import it.
"""
