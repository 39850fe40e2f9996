"""Exact sums of parts of a data set, whose merge has the same value as the whole.

In: totals of complete queries. Out: exact sums, ids that reveal repeated queries, and both as text.
"""
