"""``ndcg-ml explain``: explain why two flavors disagree."""

from __future__ import annotations

import click

from ndcg_ml.cli.inputs import CUT_OFF, Inputs, flavor_text, json_option, refusals, takes_data
from ndcg_ml.cli.output import print_json, show
from ndcg_ml.explain import explain_difference
from ndcg_ml.flavor import Flavor

_EPILOG = """\
\b
Example:
  ndcg-ml explain --a trec_eval --b lightgbm[unjudged=zero] -k 10 --qrels qrels.txt --run run.txt
"""


@click.command(epilog=_EPILOG)
@takes_data
@click.option("--a", "a", type=flavor_text, metavar="FLAVOR", required=True, help="A preset or a flavor's text.")
@click.option("--b", "b", type=flavor_text, metavar="FLAVOR", required=True, help="Another flavor.")
@click.option(
    "-k",
    "at",
    metavar="K",
    type=CUT_OFF,
    help="One cut-off for both flavors, or 'none'.  [default: each flavor's own, as a further switch]",
)
@json_option
def explain(data: Inputs, a: Flavor, b: Flavor, at: tuple[int | None] | None, as_json: bool) -> None:
    """Explain why two flavors disagree.

    Each part is the effect of one switch, averaged over all orders of changing the switches. The parts sum exactly to
    the difference. The data are given as for eval.
    """
    with refusals():
        result = explain_difference(a, b, **data.arguments(), k=... if at is None else at[0])
    if as_json:
        print_json(result.to_dict())
    else:
        show(str(result))
