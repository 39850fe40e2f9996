"""From totals to what may be said: intervals, tests, comparisons, slices.

In: values and weights of queries. Out: intervals, p values and tables of differences. Nothing here ranks a document.
"""
