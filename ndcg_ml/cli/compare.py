"""``ndcg-ml compare``: compare systems on the same queries, and test their differences."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from ndcg_ml._core.evaluate import evaluate
from ndcg_ml._decide.comparison import compare as compared
from ndcg_ml._decide.matching import Unjudged
from ndcg_ml.cli.inputs import (
    CONFIDENCE,
    CUT_OFF,
    DOCUMENT,
    FILE,
    HUMAN,
    LABEL,
    QUERIES,
    QUERY,
    SEED,
    Inputs,
    command_line,
    flavor_option,
    html_option,
    json_option,
    print_json,
    refusals,
    refuse_overwriting,
    show,
)
from ndcg_ml.flavor import Flavor
from ndcg_ml.runs import Which

_EPILOG = """\
\b
Examples:
  ndcg-ml compare bm25.run dense.run --qrels qrels.txt -k 10 --html report.html
  ndcg-ml compare linear trees network --table scores.csv --flavor lightgbm -k 10
  ndcg-ml compare old new --table clicks.csv --query user --label rating
"""


@click.command(epilog=_EPILOG)
@click.argument("run_a")
@click.argument("run_b")
@click.argument("more", metavar="[RUN_C]...", nargs=-1)
@click.option("--qrels", type=FILE, help="Judgements; the arguments are runs. Both in any format that eval takes.")
@click.option(
    "--labels", type=FILE, help="LETOR/SVMlight labels; the arguments are files with one score for each line."
)
@click.option(
    "--table",
    type=FILE,
    help="CSV, TSV, JSONL or parquet with the columns qid and label, and docno if ties are broken by id; the arguments "
    "are names of columns of scores.",
)
@QUERY
@LABEL
@DOCUMENT
@click.option("--queries", type=QUERIES, help="The topics that count, as for eval.  [default: qrels]")
@click.option("--exclude", metavar="identical|FILE", help="Documents to remove from the runs, as for eval.")
@flavor_option("trec_eval with --qrels, otherwise sklearn")
@click.option("-k", "at", metavar="K", type=CUT_OFF, help="The cut-off, or 'none'.  [default: the flavor's own]")
@click.option("--baseline", metavar="RUN", help="Compare each run only with this one, instead of all pairs.")
@click.option(
    "--margin",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="The largest difference that does not matter. Verdicts may then be 'equivalent' or 'not worse'.",
)
@click.option(
    "--unjudged",
    type=click.Choice(["warn", "refuse", "accept"]),
    default="warn",
    show_default=True,
    help="Action if the runs' shares of judged documents differ by more than 0.05.",
)
@click.option(
    "--by",
    metavar="FILE|COLUMN",
    help="Also compare within slices: a file with the id and the label of a query on each line, or a column of "
    "--table.",
)
@click.option(
    "--cluster", metavar="FILE|COLUMN", help="Groups of related queries, such as those of a user, in the forms of --by."
)
@CONFIDENCE
@click.option(
    "--resamples",
    type=click.IntRange(100, 10_000_000),
    default=9999,
    show_default=True,
    help="Number of exchanges that the test draws.",
)
@SEED
@HUMAN
@html_option
@json_option
def compare(
    run_a: str,
    run_b: str,
    more: tuple[str, ...],
    qrels: str | None,
    labels: str | None,
    table: str | None,
    query: str | None,
    label: str | None,
    document: str | None,
    queries: Which | None,
    exclude: str | None,
    flavor: Flavor | None,
    at: tuple[int | None] | None,
    baseline: str | None,
    margin: float | None,
    unjudged: Unjudged,
    by: str | None,
    cluster: str | None,
    confidence: float,
    resamples: int,
    seed: int,
    human: str | None,
    html: str | None,
    as_json: bool,
) -> None:
    """Compare two or more runs, query by query.

    Differences are RUN_B minus RUN_A, over the queries that have a value in all runs. The two-sided randomisation test
    exchanges the two values of each query at random. It enumerates all exchanges if there are at most --resamples, and
    otherwise draws that many. The interval contains the differences that the test does not reject. For more than two
    runs, p-values and intervals are corrected for the number of pairs (max-T).
    """
    runs = (run_a, run_b, *more)
    if sum(source is not None for source in (qrels, labels, table)) != 1:
        raise click.UsageError("the judgements must be given by exactly one of --qrels, --labels and --table.")
    columns = {"query": query, "label": label, "document": document}
    shared: dict[str, Any] = {"queries": queries, "exclude": exclude, **columns}
    if table is not None:
        sides = [Inputs(table=table, **shared)]
    else:
        # They are checked here and not by Click, because with --table they are names of columns.
        files = [FILE.convert(run, None, click.get_current_context()) for run in runs]
        sides = [
            Inputs(qrels=qrels, run=file, **shared) if qrels else Inputs(labels=labels, scores=file, **shared)
            for file in files
        ]
    refuse_overwriting()
    if baseline is not None and baseline not in runs:
        raise click.UsageError(f"--baseline must be one of the runs, {', '.join(runs)}; got {baseline}.")
    chosen = sides[0].flavor if flavor is None else flavor
    k = chosen.k if at is None else at[0]
    names = _names(runs)
    if human is not None and (by or cluster):
        raise click.UsageError("--human cannot be combined with --by or --cluster.")
    results: list[Any]
    with refusals():
        if human is not None:
            results = [side.corrected(human, chosen, k) for side in sides]
        elif table is None:
            results = [side.evaluate(chosen, (k,)) for side in sides]
        else:
            results = [evaluate(**rows, flavor=chosen, k=(k,)) for rows in sides[0].columns(runs)]
        comparison = compared(
            *results,
            names=names,
            baseline=None if baseline is None else names[runs.index(baseline)],
            margin=margin,
            by=None if by is None else {"by": sides[0].query_labels(by, results[0].per_query.qid)},
            cluster=None if cluster is None else sides[0].query_labels(cluster, results[0].per_query.qid, "--cluster"),
            unjudged="refuse" if unjudged == "refuse" else "accept",  # the command prints warnings with its notes
            k=k if human is None else ...,
            confidence=confidence,
            n_resamples=resamples,
            seed=seed,
            missing="drop" if human is None else "raise",
        )
    comparison = replace(comparison, accepts_unjudged=unjudged == "accept")
    if html is not None:
        comparison.to_html(html, command=command_line())
    if as_json:
        print_json(comparison.to_dict())
    else:
        show(str(comparison))


def _names(runs: Sequence[str]) -> list[str]:
    """Return the file names without folders if they differ, or the runs as typed if those do, or letters."""
    for names in ([os.path.basename(run) for run in runs], list(runs)):
        if len(set(names)) == len(names):
            return names
    return [chr(ord("a") + at) if at < 26 else f"s{at + 1}" for at in range(len(runs))]
