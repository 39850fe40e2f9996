"""Compute DCG and ideal DCG of every query at every cut-off (``Totals``) from ``Queries`` and a ``Flavor``.

The two kernels, ``numpy_kernel`` and ``compiled_kernel``, give bitwise identical results. ``ndcg_ml.torch`` is an
independent implementation. This package does not import files, statistics or text.
"""
