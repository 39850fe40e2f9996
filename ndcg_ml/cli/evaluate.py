"""``ndcg-ml eval``: evaluate a run, or scores with labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import EllipsisType
from typing import Any

import click

from ndcg_ml._plain.flavor_text import at_cutoff
from ndcg_ml._plain.table import Column, Record
from ndcg_ml.cli import inputs
from ndcg_ml.flavor import Flavor
from ndcg_ml.results.evaluation import Evaluation


@click.command("eval")
@inputs.data_options()
@inputs.flavor_option(described="trec_eval for a run, sklearn for labels and tables")
@inputs.cut_off_option("A cut-off, or 'none'; may be repeated.  [default: the flavor's own]", multiple=True)
@click.option("--per-query", is_flag=True, help="List every query.")
@inputs.slice_option("Also evaluate slices", multiple=True)
@click.option(
    "--save",
    type=inputs.OUTPUT,
    help="Save the evaluation to this file, as a baseline for 'ndcg-ml gate', replacing any existing file.",
)
@click.option(
    "--save-margin",
    type=inputs.BETWEEN_0_AND_1,
    help="Save the largest loss that does not matter with --save, as the margin of 'ndcg-ml gate'.",
)
@inputs.HUMAN
@inputs.HTML
@inputs.JSON
def evaluate(
    flavor: Flavor | None,
    k: tuple[int | None, ...] | EllipsisType,
    per_query: bool,
    by: Sequence[str],
    save: str | None,
    save_margin: float | None,
    human: str | None,
    html: str | None,
    as_json: bool,
    **files: Any,
) -> None:
    """Evaluate a run, or scores with labels.

    Give the data as --qrels with --run, --labels with --scores, or --table. Files may be gzipped; - is standard input.

    \b
    Examples:
      ndcg-ml eval --qrels qrels.txt --run run.txt -k 10 -k 100
      zcat run.gz | ndcg-ml eval --qrels qrels.txt --run - --per-query
      ndcg-ml eval --labels test.txt --scores scores.txt --flavor lightgbm -k 5 --html report.html
      ndcg-ml eval --table ratings.csv --query user --label rating --score s -k 10 --by country
    """
    if save_margin is not None and save is None:
        raise click.UsageError("--save-margin requires --save.")
    data = inputs.Inputs(**files)
    chosen = flavor or data.flavor
    ks = (chosen.k,) if k is ... else k
    if human is not None:
        if len(ks) > 1 or per_query or by or save or html:
            raise click.UsageError("--human requires a single -k, without --per-query, --by, --save and --html.")
        with inputs.refusals():
            corrected = data.corrected(human, chosen, ks[0])
        inputs.show(corrected, corrected.to_dict() if as_json else None)
        return
    with inputs.refusals():
        result = data.evaluate(chosen, ks)
        if by:
            result = replace(result, _slice_names=data.slice_names(by, result.per_query.qid))
    if save is not None:
        try:
            result.save(save, qrels=inputs.given_as_file(data.qrels), margin=save_margin)
        except (TypeError, ValueError) as error:
            raise inputs.BadInput(str(error)) from error
    inputs.write_report(result, html)
    listed = [_queries(result).text()] if per_query and not as_json else []
    tables = [*listed, str(result), *map(str, filter(None, [result.slices]))]
    inputs.show("\n\n".join(tables), result.to_dict(per_query) if as_json else None)


def _queries(result: Evaluation[dict[int | None, float]]) -> Record:
    """Return a table with a row per query."""
    names = {"n_docs": "documents", "n_judged": "judged", "n_relevant": "relevant", "tied": "tied"}
    rows = [
        {**query, **{f"ndcg{at_cutoff(v['k'])}": v["ndcg"] for v in query["values"]}}
        for query in result.per_query.to_dicts(result._totals.ks)
    ]
    columns = [Column("qid", "{qid}", "l")]
    columns += [Column(name, f"{{{name}:.6f}}") for name in (f"ndcg{at_cutoff(k)}" for k in result.value)]
    return Record(columns + [Column(heading, f"{{{name}}}") for name, heading in names.items()], rows)
