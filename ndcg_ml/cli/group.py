"""The command group ``ndcg-ml``: one entry a command."""

from __future__ import annotations

import click

from ndcg_ml import __version__
from ndcg_ml.cli.demo import demo

__all__ = ["ndcg_ml"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ndcg-ml")
def ndcg_ml() -> None:
    """NDCG defined once, and the same number from it in scikit-learn, PyTorch and LightGBM."""


ndcg_ml.add_command(demo)
