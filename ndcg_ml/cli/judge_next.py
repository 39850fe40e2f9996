"""``ndcg-ml judge-next``: list the documents to label next, and read the labels filled in."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import click

from ndcg_ml._files.opening import DataFileError, write_atomically
from ndcg_ml._plain.checks import OneK
from ndcg_ml._plain.messages import brief
from ndcg_ml.cli import inputs
from ndcg_ml.comparisons import compare
from ndcg_ml.flavor import Flavor
from ndcg_ml.readers import qrels_text, read_filled, with_labels
from ndcg_ml.runs import Which


@click.command("judge-next")
@click.argument("run_a", type=inputs.FILE)
@click.argument("run_b", type=inputs.FILE)
@click.option("--qrels", type=inputs.FILE, required=True, help="Judgements, as for eval.")
@click.option("-n", "n", type=click.IntRange(1), default=20, show_default=True, help="Number of documents.")
@inputs.data_options("query", "label", "score", "document", "queries")
@inputs.flavor_option("trec_eval")
@inputs.cut_off_option()
@click.option(
    "--max-grade", type=click.IntRange(1), help="The top of the grade scale.  [default: the grades in the judgements]"
)
@click.option(
    "--filled", type=inputs.FILE, multiple=True, help="A file of --output with labels filled in; may be repeated."
)
@click.option(
    "--output",
    type=inputs.OUTPUT_OR_STDOUT,
    help="Write the documents as JSONL, to be filled in; '-' is standard output.",
)
@click.option(
    "--write-qrels",
    type=inputs.OUTPUT,
    help="Write the judgements with the labels of --filled as a TREC qrels file.",
)
def judge_next(
    run_a: str,
    run_b: str,
    qrels: str,
    n: int,
    queries: Which | None,
    flavor: Flavor,
    k: OneK,
    max_grade: int | None,
    filled: tuple[str, ...],
    output: str | None,
    write_qrels: str | None,
    **names: Any,
) -> None:
    """List the unjudged documents whose labels could change which of two runs is better.

    Documents are ordered by how far their label alone can change the difference. None are listed if no labels can
    change its sign.

    \b
    Examples:
      ndcg-ml judge-next a.run b.run --qrels qrels.txt -k 10 -n 20
      ndcg-ml judge-next a.run b.run --qrels qrels.txt -k 10 --output todo.jsonl
      ndcg-ml judge-next a.run b.run --qrels qrels.txt -k 10 --filled todo.jsonl --write-qrels more.txt

    \b
    Each line of the file is {"qid": ..., "docno": ..., "label": null, "change": ...}. Replace null by a grade;
    lines with null are ignored.
    """
    with inputs.refusals():
        if output is not None and os.path.isfile(output) and _is_filled(output):
            raise click.UsageError(
                f"--output would replace {brief(output)}, which has labels or was not written by this command. Pass "
                "another file as --output, and this one as --filled if it has labels."
            )
        sides = [inputs.Inputs(qrels=qrels, run=run, queries=queries, **names) for run in (run_a, run_b)]
        judgements: Any = qrels
        if filled or write_qrels:
            judgements = with_labels(qrels, filled, columns=sides[0].names())
        a, b = (replace(side, qrels=judgements).evaluate(flavor, k) for side in sides)
        # The test is not printed, so few resamples are enough.
        comparison = compare(a, b, n_resamples=100, seed=0, missing="drop", unjudged="accept")
        tasks = comparison.judge_next(n, max_grade)
        text = qrels_text(judgements) if write_qrels is not None else ""
    # Files are written last, so that an error leaves none incomplete.
    if write_qrels is not None:
        write_atomically(write_qrels, text)
    if output == "-":
        click.echo(tasks.to_jsonl().encode(), nl=False)  # UTF-8, whatever the terminal's encoding
        return
    if output is not None:
        tasks.to_jsonl(output)
    inputs.show(tasks)


def _is_filled(file: str) -> bool:
    """Return whether a file has labels, or was not written by this command."""
    try:
        return any(read_filled(file).values())
    except DataFileError:
        return True
