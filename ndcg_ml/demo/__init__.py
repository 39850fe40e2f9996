"""The demo: three frameworks guided by one flavor, on data that needs no download. ``ndcg-ml demo`` runs it.

Importing this package loads NumPy and nothing heavier; the frameworks are loaded when the demo trains.
"""

from __future__ import annotations

from ndcg_ml.demo.digits import digits_problem
from ndcg_ml.demo.problem import Problem, Split, letor_problem

__all__ = ["Problem", "Split", "digits_problem", "letor_problem"]
