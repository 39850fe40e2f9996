"""Exact sums of parts of a data set, which merge into the exact value of the whole.

In: totals of complete queries. Out: exact sums, ids that reveal repeated queries, and both as text.
"""
