"""``ndcg-ml eval``: evaluate a run, or scores with labels."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ndcg_ml._core.checks import ByK
from ndcg_ml._core.flavor_text import at_cutoff
from ndcg_ml._core.result import Evaluation
from ndcg_ml._core.table import Column, Record
from ndcg_ml.cli.inputs import (
    CUT_OFF,
    HUMAN,
    OUTPUT,
    BadInput,
    Inputs,
    command_line,
    flavor_option,
    given_as_file,
    html_option,
    json_option,
    print_json,
    refusals,
    refuse_overwriting,
    show,
    takes_data,
)
from ndcg_ml.flavor import Flavor

_EPILOG = """\
\b
Examples:
  ndcg-ml eval --qrels qrels.txt --run run.txt -k 10 -k 100
  zcat run.gz | ndcg-ml eval --qrels qrels.txt --run - --per-query
  ndcg-ml eval --labels test.txt --scores scores.txt --flavor lightgbm -k 5 --html report.html
  ndcg-ml eval --table ratings.csv --query user --label rating --score s -k 10 --by country
"""


@click.command("eval", epilog=_EPILOG)
@takes_data
@flavor_option("trec_eval for a run, sklearn for labels and tables")
@click.option(
    "-k",
    "ks",
    metavar="K",
    type=CUT_OFF,
    multiple=True,
    help="A cut-off, or 'none'; may be repeated.  [default: the flavor's own]",
)
@click.option("--per-query", is_flag=True, help="List every query.")
@click.option(
    "--by",
    multiple=True,
    metavar="FILE|COLUMN",
    help="Also evaluate slices: a file with the id and the label of a query on each line, or a column of --table. May "
    "be repeated.",
)
@click.option(
    "--save",
    type=OUTPUT,
    help="Save the evaluation to this file, as a baseline for 'ndcg-ml gate', replacing any existing file.",
)
@HUMAN
@html_option
@json_option
def evaluate(
    data: Inputs,
    flavor: Flavor | None,
    ks: Sequence[tuple[int | None]],
    per_query: bool,
    by: Sequence[str],
    save: str | None,
    human: str | None,
    html: str | None,
    as_json: bool,
) -> None:
    """Evaluate a run, or scores with labels.

    Give the data as --qrels with --run, --labels with --scores, or --table. Files may be gzipped; - is standard input.
    """
    refuse_overwriting()
    chosen = data.flavor if flavor is None else flavor
    cut_offs = tuple(dict.fromkeys(k for (k,) in ks)) or (chosen.k,)
    if human is not None:
        if len(cut_offs) > 1 or per_query or by or save or html:
            raise click.UsageError("--human requires a single -k, without --per-query, --by, --save and --html.")
        with refusals():
            corrected = data.corrected(human, chosen, cut_offs[0])
        if as_json:
            print_json(corrected.to_dict())
        else:
            show(str(corrected))
        return
    with refusals():
        result = data.evaluate(chosen, cut_offs)
        if by:
            result = data.sliced(result, by)
    if save is not None:
        try:
            result.save(save, qrels=given_as_file(data.qrels))
        except (TypeError, ValueError) as error:
            raise BadInput(str(error)) from error
    if html is not None:
        result.to_html(html, command=command_line())
    if as_json:
        print_json(result.to_dict(per_query))
        return
    parts = [_queries(result).text()] if per_query else []
    show("\n\n".join([*parts, str(result), *map(str, filter(None, [result.slices]))]))


def _queries(result: Evaluation[ByK]) -> Record:
    """Return a table with a row per query."""
    names = {"n_docs": "documents", "n_judged": "judged", "n_relevant": "relevant", "tied": "tied"}
    rows = [
        {**query, **{f"ndcg{at_cutoff(v['k'])}": v["ndcg"] for v in query["values"]}} for query in result._queries()
    ]
    columns = [Column("qid", "{qid}", "l")]
    columns += [Column(name, f"{{{name}:.6f}}") for name in (f"ndcg{at_cutoff(k)}" for k in result.value)]
    return Record(columns + [Column(heading, f"{{{name}}}") for name, heading in names.items()], rows)
