"""Sums that merge: what parts of a data set keep, so that their union has the exact value of the whole.

In: totals of complete queries. Out: exact sums, ids that tell whether a query came twice, and both as text.
"""
