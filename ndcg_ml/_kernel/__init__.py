"""From queries and a flavor to the totals of each query: gains, ideals, ranking, sums.

In: ``Queries`` and a ``Flavor``. Out: ``Totals``, the DCG and ideal of every query at every cut-off. Two kernels give
bitwise identical results: ``numpy_kernel`` and ``compiled_kernel``. Nothing here imports files, statistics or text.
``ndcg_ml.torch`` is an independent implementation and does not import it.
"""
