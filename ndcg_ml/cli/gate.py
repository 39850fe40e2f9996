"""``ndcg-ml gate``: check that a new run is not worse than a saved evaluation by more than a margin."""

from __future__ import annotations

import ntpath
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import click

from ndcg_ml._files.opening import write_atomically
from ndcg_ml._plain.messages import brief
from ndcg_ml.cli import inputs
from ndcg_ml.gating import BASE, GateError, OnChange
from ndcg_ml.gating import gate as compared
from ndcg_ml.results.evaluation import Evaluation, load

_CODES = {"pass": 0, "unchanged": 0, "worse": 3, "undecided": 4}


@click.command
@click.argument("baseline", type=click.Path(exists=True, dir_okay=False, readable=True))
@inputs.data_options()
@click.option(
    "--margin",
    type=inputs.BETWEEN_0_AND_1,
    help="The largest loss that does not matter.  [default: that of the baseline]",
)
@click.option(
    "--last",
    type=inputs.OUTPUT,
    help="The last accepted run, with which the new one is also compared: a file of --save-last.",
)
@click.option("--save-last", is_flag=True, help="Save the new run to the file of --last unless it is worse.")
@inputs.CONFIDENCE
@inputs.slice_option("Also check segments", multiple=True)
@click.option(
    "--on-change",
    type=click.Choice(["refuse", "drop"]),
    default="refuse",
    show_default=True,
    help="Action if queries, labels or exclusions differ from those of the baseline: an error, or these queries are "
    "left out.",
)
@click.option(
    "--drop-at-most",
    type=click.FloatRange(0, 1),
    default=0.1,
    show_default=True,
    help="The largest share of the baseline's queries that --on-change drop may leave out.",
)
@inputs.SEED
@click.option("--markdown", type=inputs.OUTPUT, help="Also write the result to this file.")
@inputs.HTML
@inputs.JSON
def gate(
    baseline: str,
    margin: float | None,
    last: str | None,
    save_last: bool,
    confidence: float,
    by: Sequence[str],
    on_change: OnChange,
    drop_at_most: float,
    seed: int,
    markdown: str | None,
    html: str | None,
    as_json: bool,
    **files: Any,
) -> None:
    """Check that a new run is not worse than BASELINE by more than a margin.

    BASELINE is a file written by 'ndcg-ml eval --save'. The new run is given as for eval, and evaluated under the
    flavor and cut-offs of the baseline. --qrels can be left out if the file of judgements has not moved. The run passes
    if the interval of the difference is above minus the margin, at every cut-off and in every segment. With --last, it
    must also pass against the last accepted run, which shows steps that small changes since the baseline hide.

    \b
    Examples:
      ndcg-ml eval --qrels qrels.jsonl --run main.jsonl -k 10 --save baseline.json --save-margin 0.01
      ndcg-ml gate baseline.json --run main.jsonl --last last.json --save-last
      ndcg-ml gate baseline.json --run new.jsonl --last last.json --markdown summary.md

    \b
    Exit codes: 0 not worse by more than the margin, or unchanged; 3 worse; 4 undecided, too few queries;
    1 data that are invalid or cannot be compared with the baseline; 2 invalid arguments.
    """
    with inputs.refusals(click.ClickException):  # exit code 1, because 2 is for invalid arguments
        base, place, saved_margin, saved = load(baseline)
        if margin is None and saved_margin is None:
            raise click.UsageError("--margin must be given, because the baseline was saved without a margin.")
        reference = _last_run(last, save_last)
        given = [name for name in ("run", "qrels", "labels", "table") if files[name] is not None]
        if given == ["run"]:
            files["qrels"] = _judgements(baseline, place)
        if files["qrels"] is not None:
            files["queries"] = files["queries"] or base.queries
        data = inputs.Inputs(**files)
        inputs.refuse_overwriting(data.qrels)
        try:
            new = data.evaluate(base.flavor, base._totals.ks)
        except ValueError as error:
            # A baseline from an untrusted source must not reveal contents of the file that it names.
            if given != ["run"] or str(error).startswith((str(data.run), f"run ({data.run})")):
                raise
            raise GateError(
                f"{data.qrels}: the baseline names this file as its judgements, but they cannot be used with this run. "
                "Give --document and other names of columns as for eval, or pass the file as --qrels to see why."
            ) from None
        result = compared(
            base,
            new,
            margin=cast(float, margin or saved_margin),
            last=reference,
            confidence=confidence,
            by=data.slice_names(by, base.per_query.qid) or None,
            on_change=on_change,
            drop_at_most=drop_at_most,
            seed=seed,
        )
        result = replace(result, saved=saved)
        # Files are written inside `refusals`, so that a failure to write has exit code 1.
        if markdown is not None:
            write_atomically(markdown, result.markdown())
        if html is not None:
            if not result.checks:
                raise GateError("a report needs at least two queries with a value.")
            inputs.write_report(next(iter(result.comparisons[BASE].values())), html)
        if last is not None and save_last and result.outcome != "worse":
            new.save(last, qrels=inputs.given_as_file(data.qrels))
    inputs.show(result, result.to_dict() if as_json else None)
    raise click.exceptions.Exit(_CODES[result.outcome])


def _last_run(last: str | None, save_last: bool) -> Evaluation[Any] | None:
    """Read the last accepted run; None without --last, or if --save-last begins its file."""
    if last is None:
        if save_last:
            raise click.UsageError("--save-last requires --last, the file to save to.")
        return None
    if os.path.exists(last):
        return load(last).evaluation
    if save_last:
        return None
    raise click.UsageError(f"--last {last} does not exist. --save-last begins it.")


def _judgements(baseline: str, place: str | None) -> str:
    """Return the file of the judgements of a baseline, which must be in its folder or below."""
    reason = "the baseline names no judgements in its folder or below"
    if place is not None:
        folder = os.path.dirname(baseline)
        path = os.path.normpath(os.path.join(folder, place))
        top = os.path.realpath(folder)
        # A drive or a host of Windows is refused first, because looking for the file asks the host.
        if ntpath.splitdrive(place)[0] or os.path.commonpath([top, os.path.realpath(path)]) != top:
            problem = "are not in its folder or below"
        elif os.path.isfile(path):
            return path
        else:
            problem = "do not exist"
        reason = f"the judgements of the baseline, {brief(path)}, {problem}"
    raise click.UsageError(f"--run requires --qrels, because {reason}.")
