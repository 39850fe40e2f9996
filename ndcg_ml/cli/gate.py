"""``ndcg-ml gate``: whether a new run is worse than a saved evaluation by more than a margin, as an exit code."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import click

from ndcg_ml import _atomic
from ndcg_ml._baseline.gate import GateError, OnChange
from ndcg_ml._baseline.gate import gate as compared
from ndcg_ml._baseline.saved import read
from ndcg_ml._one_line import brief
from ndcg_ml.cli.inputs import (
    Inputs,
    data_options,
    json_option,
    label_name,
    refusals,
)
from ndcg_ml.cli.output import command_line, html_option, print_json, show
from ndcg_ml.cli.written import OUTPUT, refuse_overwriting

_CODES = {"pass": 0, "unchanged": 0, "worse": 3, "undecided": 4}

_EPILOG = """\
\b
Examples:
  ndcg-ml eval --qrels qrels.jsonl --run main.jsonl -k 10 --save baseline.json
  ndcg-ml gate baseline.json --run new.jsonl --margin 0.01 --markdown summary.md

\b
Exit codes: 0 not worse than the margin or unchanged, 3 worse, 4 cannot tell with so few queries, 2 wrong arguments,
1 data that cannot be used, or that cannot be compared with the baseline.
"""


@click.command(epilog=_EPILOG)
@click.argument("baseline", type=click.Path(exists=True, dir_okay=False, readable=True))
@data_options
@click.option(
    "--margin",
    type=click.FloatRange(0, min_open=True),
    required=True,
    help="The largest loss that does not matter, such as 0.01.",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Of all intervals together.",
)
@click.option(
    "--by",
    multiple=True,
    metavar="FILE|COLUMN",
    help="A file with the id of a query and its segment on each line, or a column of --table; each segment is checked "
    "too. May be repeated.",
)
@click.option(
    "--on-change",
    type=click.Choice(["refuse", "drop"]),
    default="refuse",
    show_default=True,
    help="What happens where queries, labels or exclusions are not those of the baseline: an error, or the others are "
    "compared.",
)
@click.option(
    "--drop-at-most",
    type=click.FloatRange(0, 1),
    default=0.1,
    show_default=True,
    help="The largest share of the queries of the baseline that --on-change drop may leave out.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Random seed.")
@click.option("--markdown", type=OUTPUT, help="Write the result to this file as well.")
@html_option
@json_option
@click.pass_context
def gate(
    context: click.Context,
    /,
    baseline: str,
    margin: float,
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
    """Check that a new run is not worse than BASELINE, by more than a margin.

    BASELINE is a file that 'ndcg-ml eval --save' wrote. The new run is given as for eval and evaluated under the flavor
    and the cut-offs of the baseline; --qrels may be left out if the file of judgements has not moved. The run
    passes if the interval of the difference is above minus the margin, at every cut-off and in every segment.
    """
    # Errors in file names and in the baseline are found before the run is read.
    refuse_overwriting()
    with refusals(click.ClickException):  # whose exit code is 1; 2 is that of wrong arguments
        base, place, saved = read(baseline)
        given = [files[name] is not None for name in ("run", "qrels", "labels", "table")]
        is_named = given == [True, False, False, False]
        if is_named:
            files["qrels"] = _judgements(baseline, place)
        # The new run is evaluated as the baseline was: its flavor, cut-offs and choice of topics.
        data = Inputs(**{field.name: files[field.name] for field in fields(Inputs)})
        refuse_overwriting(data.qrels)
        queries = getattr(base, "queries", None)
        if data.queries is None and data.qrels is not None and queries is not None:
            data = Inputs(**{**files, "queries": queries})
        try:
            new = data.evaluate(base.flavor, base._totals.ks)
        except ValueError as error:
            # A baseline may come from a stranger, who must not learn what the file holds that it names.
            if not is_named or str(error).startswith(str(data.run)):
                raise
            raise GateError(
                f"{data.qrels}: cannot be used as the judgements of this run, which the baseline says it is. Give "
                "the file as --qrels to see why."
            ) from None
        # Segments are columns of labels, by query id.
        ids = base.per_query.qid
        labels = {label_name(name): dict(zip(ids.tolist(), data.query_labels(name, ids), strict=True)) for name in by}
        result = compared(
            base,
            new,
            margin=margin,
            confidence=confidence,
            by=labels or None,
            on_change=on_change,
            drop_at_most=drop_at_most,
            seed=seed,
        )
        result = replace(result, saved=saved)
        # The files are written here too, so that a failure to write ends with the exit code 1 and not as an outcome.
        code = _CODES[result.outcome]
        if markdown is not None:
            _atomic.write(markdown, result.markdown())
        if html is not None and not result.comparisons:
            raise GateError("a report needs at least two queries with a value.")
        if html is not None:
            next(iter(result.comparisons.values())).to_html(html, command=command_line())
    if as_json:
        print_json(result.to_dict())
    else:
        show(str(result))
    context.exit(code)


def _judgements(baseline: str, place: str | None) -> str:
    """The file of the judgements of a baseline."""
    if place is None:
        raise click.UsageError(
            "--run needs --qrels as well, because the baseline names no judgements in its folder or below."
        )
    folder = os.path.dirname(baseline)
    path = os.path.normpath(os.path.join(folder, place))
    if os.path.commonpath([os.path.realpath(folder), os.path.realpath(path)]) != os.path.realpath(folder):
        raise click.UsageError(
            f"--run needs --qrels as well, because the judgements of the baseline, {brief(path)}, are not in its "
            "folder or below."
        )
    if not os.path.isfile(path):
        raise click.UsageError(
            f"--run needs --qrels as well, because the judgements of the baseline, {brief(path)}, are gone."
        )
    return path
