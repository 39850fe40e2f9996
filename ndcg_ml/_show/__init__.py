"""Drawings and pages of results. Matplotlib and Jinja2 are imported when needed."""

from typing import TYPE_CHECKING

from ndcg_ml._core import modules_of

if TYPE_CHECKING:
    from ndcg_ml._show import plot as plot
    from ndcg_ml._show import report as report

__getattr__ = modules_of(__name__, "plot", "report")
