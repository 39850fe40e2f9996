"""The command group ``ndcg-ml``: one entry a command."""

from __future__ import annotations

import click

from ndcg_ml import __version__
from ndcg_ml.cli.compare import compare
from ndcg_ml.cli.evaluate import evaluate
from ndcg_ml.cli.explain import explain
from ndcg_ml.cli.flavors import flavors
from ndcg_ml.cli.identify import identify
from ndcg_ml.demo.run import demo

__all__ = ["ndcg_ml"]


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 fine, 1 nothing found (identify), 2 wrong arguments or data that cannot be used.",
)
@click.version_option(__version__, prog_name="ndcg-ml")
def ndcg_ml() -> None:
    """NDCG defined once, and the same number from it everywhere."""


for _command in (flavors, evaluate, compare, explain, identify, demo):
    ndcg_ml.add_command(_command)
