"""``ndcg-ml compare``: compare systems on the same queries, and test their differences."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import click

from ndcg_ml._matched_systems import Unjudged
from ndcg_ml._plain.checks import OneK
from ndcg_ml.arrays import evaluate
from ndcg_ml.cli import inputs
from ndcg_ml.comparisons import compare as compared
from ndcg_ml.flavor import Flavor


@click.command
@click.argument("run_a")
@click.argument("run_b")
@click.argument("more", metavar="[RUN_C]...", nargs=-1)
@inputs.data_options("qrels", "labels", "table", "query", "label", "score", "document", "queries", "exclude")
@inputs.flavor_option(described="trec_eval with --qrels, otherwise sklearn")
@inputs.cut_off_option()
@click.option("--baseline", metavar="RUN", help="Compare each run only with this one, instead of all pairs.")
@click.option(
    "--margin",
    type=inputs.BETWEEN_0_AND_1,
    help="The largest difference that does not matter. Verdicts may then be 'equivalent' or 'not worse'.",
)
@click.option(
    "--unjudged",
    type=click.Choice(["warn", "refuse", "accept"]),
    default="warn",
    show_default=True,
    help="Action if the runs' shares of judged documents differ by more than 0.05.",
)
@inputs.slice_option("Also compare within slices")
@click.option(
    "--cluster", metavar="FILE|COLUMN", help="Groups of related queries, such as those of a user, in the forms of --by."
)
@inputs.CONFIDENCE
@click.option(
    "--resamples",
    type=click.IntRange(100, 10_000_000),
    default=9999,
    show_default=True,
    help="Number of exchanges that the test draws.",
)
@inputs.SEED
@inputs.HUMAN
@inputs.HTML
@inputs.JSON
def compare(
    run_a: str,
    run_b: str,
    more: tuple[str, ...],
    flavor: Flavor | None,
    k: OneK,
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
    **files: Any,
) -> None:
    """Compare two or more runs, query by query.

    With --qrels, the arguments are runs; with --labels, files with one score for each line; with --table, the names of
    its columns of scores.

    Differences are RUN_B minus RUN_A, over the queries that have a value in all runs. The two-sided randomisation test
    exchanges the two values of each query at random. It enumerates all exchanges if there are at most --resamples, and
    otherwise draws that many. The interval contains the differences that the test does not reject. For more than two
    runs, p-values and intervals are corrected for the number of pairs (max-T).

    \b
    Examples:
      ndcg-ml compare bm25.run dense.run --qrels qrels.txt -k 10 --html report.html
      ndcg-ml compare linear trees network --table scores.csv --flavor lightgbm -k 10
      ndcg-ml compare old new --table clicks.csv --query user --label rating
    """
    runs = (run_a, run_b, *more)
    if sum(files[name] is not None for name in ("qrels", "labels", "table")) != 1:
        raise click.UsageError("the judgements must be given by exactly one of --qrels, --labels and --table.")
    if files["table"] is not None and files["score"]:
        raise click.UsageError("--score must be left out with --table, because the arguments are columns of scores.")
    if files["table"] is not None:
        sides = [inputs.Inputs(**files)]
    else:
        # Click cannot check these names, because with --table they are names of columns.
        context, option = click.get_current_context(), "scores" if files["qrels"] is None else "run"
        sides = [inputs.Inputs(**{**files, option: inputs.FILE.convert(run, None, context)}) for run in runs]
    if baseline is not None and baseline not in runs:
        raise click.UsageError(f"--baseline must be one of the runs, {', '.join(runs)}; got {baseline}.")
    if human is not None and (by or cluster):
        raise click.UsageError("--human cannot be combined with --by or --cluster.")
    data, names = sides[0], _names(runs)
    chosen = flavor or data.flavor
    results: list[Any]
    with inputs.refusals():
        if human is not None:
            results = [side.corrected(human, chosen, k) for side in sides]
        elif files["table"] is None:
            results = [side.evaluate(chosen, k) for side in sides]
        else:
            results = [evaluate(**rows, flavor=chosen, k=k) for rows in data.columns(runs)]
        comparison = compared(
            *results,
            names=names,
            baseline=None if baseline is None else names[runs.index(baseline)],
            margin=margin,
            by=None if by is None else {"by": data.query_names(by, results[0].per_query.qid)},
            cluster=None if cluster is None else data.query_names(cluster, results[0].per_query.qid, "--cluster"),
            unjudged="note" if unjudged == "warn" else unjudged,  # the command prints notes, not warnings
            confidence=confidence,
            n_resamples=resamples,
            seed=seed,
            missing="drop" if human is None else "raise",
        )
    inputs.write_report(comparison, html)
    inputs.show(comparison, comparison.to_dict() if as_json else None)


def _names(runs: Sequence[str]) -> list[str]:
    """Return the file names without folders if they differ, or the runs as typed if those do, or letters."""
    for names in ([os.path.basename(run) for run in runs], list(runs)):
        if len(set(names)) == len(names):
            return names
    return [chr(ord("a") + at) if at < 26 else f"s{at + 1}" for at in range(len(runs))]
