"""``ndcg-ml explain``: why two flavors disagree on the same data."""

from __future__ import annotations

import click

from ndcg_ml.cli.ids import IDS_IN_JSON
from ndcg_ml.cli.inputs import Inputs, takes_data
from ndcg_ml.cli.output import Screen, columns, print_json
from ndcg_ml.cli.parameters import cut_off, digits_option, flavor_text, json_option
from ndcg_ml.explain import Explanation, explain_difference
from ndcg_ml.flavor import Flavor, switch_text

__all__ = ["explain"]

_EPILOG = (
    """\
\b
Example:
  ndcg-ml explain --a trec_eval --b lightgbm[unjudged=zero] -k 10 --qrels qrels.txt --run run.txt

\b
--json prints
  flavor_a, flavor_b   the flavors as text
  value_a, value_b     their values
  difference           value_b - value_a
  method               shapley, or order: one switch after another, where they are too many
  parts                [{switches, a, b, contribution}], the largest first
  n_queries            queries in the data
  queries              [{qid, contribution, value_a, value_b, n_docs, tied, empty_a, empty_b}], the --top
                       that contribute most; a value is null where the mean leaves the query out

\b
"""
    + IDS_IN_JSON
)


@click.command(epilog=_EPILOG)
@takes_data
@click.option("--a", "a", type=flavor_text, metavar="FLAVOR", required=True, help="A preset or a flavor's text.")
@click.option("--b", "b", type=flavor_text, metavar="FLAVOR", required=True, help="Another.")
@click.option(
    "-k",
    "at",
    metavar="K",
    type=cut_off,
    help="One cut-off for both, or 'none'.  [default: each its own, a switch as others]",
)
@click.option("--top", type=click.IntRange(0), default=10, show_default=True, help="How many queries to list.")
@digits_option
@json_option
def explain(
    data: Inputs, a: Flavor, b: Flavor, at: tuple[int | None] | None, top: int, digits: int, as_json: bool
) -> None:
    """Say why two flavors disagree.

    The parts sum to the difference exactly: each is the effect of its switch, averaged over the orders in which the
    switches can be changed. The data are --qrels with --run, --labels with --scores, or --table, as for eval.
    """
    arguments = data.arguments()
    with data.refusals():
        result = explain_difference(a, b, **arguments, k=... if at is None else at[0], queries=top)
    if as_json:
        print_json(result.to_dict())
    else:
        _show(Screen(digits), result)


def _show(screen: Screen, result: Explanation) -> None:
    for name, flavor, value in (("a", result.flavor_a, result.value_a), ("b", result.flavor_b, result.value_b)):
        screen.flavor(flavor, f"{name}   {screen.number(value)}")
    screen.print()
    shown = [part for part in result.parts if abs(part.contribution) > 1e-15]
    idle = [part.name for part in result.parts if part not in shown]
    table = columns(screen, "switch", "a", "b", "contribution", left=3)
    for part in shown:
        values = (", ".join(map(switch_text, side)) for side in (part.a, part.b))
        table.add_row(part.name, *values, screen.number(part.contribution, sign=True))
    table.add_row("b - a", "", "", screen.number(result.difference, sign=True))
    screen.print(table)
    screen.print()
    if idle:
        screen.fact("no effect", ", ".join(idle))
    if result.parts:
        how = {
            "shapley": "Shapley values: the mean effect of a switch over all orders of changing them",
            "order": "one switch after another from a to b, in the order of the flavor's fields",
        }
        screen.fact("method", how[result.method])
    if result.queries:
        table = columns(screen, "qid", "contribution", "a", "b", "documents", "tied", "empty")
        for query in result.queries:
            empty = {(True, True): "both", (True, False): "a", (False, True): "b"}.get(
                (query.empty_a, query.empty_b), "-"
            )
            table.add_row(
                screen.text(query.qid),
                screen.number(query.contribution, sign=True),
                screen.number(query.value_a),
                screen.number(query.value_b),
                str(query.n_docs),
                str(query.tied),
                empty,
            )
        screen.print()
        screen.print(table)
        screen.print(f"the {len(result.queries)} of {result.n_queries} queries that contribute most")
