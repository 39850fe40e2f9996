"""``ndcg-ml compare``: systems on the same queries, and whether their differences may be chance."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import click
import numpy as np

from ndcg_ml._checks import ByK
from ndcg_ml._show.plain import finite
from ndcg_ml._show.table import Table
from ndcg_ml._stats.comparison import Comparison, Difference
from ndcg_ml._stats.comparison import compare as compared
from ndcg_ml._stats.judged_shares import Unjudged
from ndcg_ml.cli.inputs import (
    FILE,
    QUERIES,
    BadInput,
    Inputs,
    column_options,
    cut_off,
    digits_option,
    flavor_option,
    json_option,
)
from ndcg_ml.cli.output import Screen, command_line, html_option, print_json
from ndcg_ml.cli.written import refuse_overwriting
from ndcg_ml.flavor import Flavor
from ndcg_ml.result import Evaluation, at_cutoff
from ndcg_ml.runs import Which

_EPILOG = """\
\b
Examples:
  ndcg-ml compare bm25.run dense.run --qrels qrels.txt -k 10 --html report.html
  ndcg-ml compare linear trees network --table scores.csv --flavor lightgbm -k 10
  ndcg-ml compare old new --table clicks.csv --query user --label rating

\b
--json prints
  flavor        the flavor as text, with its cut-off
  n_pairs       queries that were compared
  not_compared  ids of queries without a value in one of the runs, or that do not count
  confidence, baseline, margin, resamples, seed
  n_clusters    with --cluster; else null
  notes         what to know before relying on it: uneven judgements, skewed differences
  slices        with --by: [{column, label, n_queries, a, b, difference, low, high, p_value,
                p_adjusted, verdict}]
and of two runs
  a, b          {file, ndcg, n_queries, n_unanswered, judged, ndcg_of_pairs}: the value of the run
                by itself over its n_queries (null for nan), in how many of them it ranks nothing,
                its share of judged documents (of runs), and its value over the queries that were
                compared
  difference    b - a, over the queries that were compared
  interval      [low, high]
  standard_error   of the difference
  p_value       of the randomisation test
  p_adjusted    the p-value, corrected for the number of pairs
  verdict       on b: better, worse, not worse, equivalent or undecided
  exact         whether the test enumerated every exchange
  wins, ties, losses   queries in which b is above a, equal to 1e-12, and below it
  effect_size   Cohen's d_z, the difference over the standard deviation of the queries'
                differences; null if that is 0
  smallest_detectable   the smallest true difference that so many queries show with power 0.8
  moved         [{qid, a, b, difference}], the --top queries that moved most
or of more
  systems       [{name, file, ndcg, n_queries, n_unanswered, judged, ndcg_of_pairs}], named a, b, c, ...
  pairs         the same for each two of them, with a, b (names); without moved
"""


@click.command(epilog=_EPILOG)
@click.argument("run_a")
@click.argument("run_b")
@click.argument("more", metavar="[RUN_C]...", nargs=-1)
@click.option("--qrels", type=FILE, help="Judgements; the runs are runs. Both in any form that eval takes.")
@click.option("--labels", type=FILE, help="LETOR/SVMlight labels; the runs hold one score for each line.")
@click.option(
    "--table",
    type=FILE,
    help="CSV, TSV, JSONL or parquet with columns qid, label, and docno where ties go by id, or as they are named "
    "here; the runs are names of columns of scores.",
)
@column_options("query", "label", "document")
@click.option("--queries", type=QUERIES, help="Which topics count, as for eval.  [default: qrels]")
@click.option("--exclude", metavar="identical|FILE", help="Documents to take out of the runs, as for eval.")
@flavor_option("trec_eval with --qrels, else sklearn")
@click.option("-k", "at", metavar="K", type=cut_off, help="The cut-off, or 'none'.  [default: the flavor's own]")
@click.option("--baseline", metavar="RUN", help="Compare each run with this one alone, and not all pairs.")
@click.option(
    "--margin",
    type=click.FloatRange(0, min_open=True),
    help="The largest difference that does not matter; a verdict may then be 'equivalent' or 'not worse'.",
)
@click.option(
    "--unjudged",
    type=click.Choice(["warn", "refuse", "accept"]),
    default="warn",
    show_default=True,
    help="What happens where the runs' shares of judged documents differ by more than 0.05.",
)
@click.option(
    "--by",
    metavar="FILE|COLUMN",
    help="Segments to compare within: a file with a line per query, its id and its label, or a column of --table.",
)
@click.option(
    "--cluster", metavar="FILE|COLUMN", help="Queries that belong together, of one user say, in the forms of --by."
)
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Of the interval.",
)
@click.option(
    "--resamples",
    type=click.IntRange(100, 10_000_000),
    default=10_000,
    show_default=True,
    help="Exchanges that the test draws.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the resamples.")
@click.option(
    "--top", type=click.IntRange(0), default=10, show_default=True, help="How many queries that moved to list."
)
@html_option
@digits_option
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
    top: int,
    html: str | None,
    digits: int,
    as_json: bool,
) -> None:
    """Compare two or more runs, query by query.

    Differences are those of RUN_B minus RUN_A, over the queries that have a value in all runs. The test is the
    two-sided randomisation test, which exchanges the two values of a query at random: exactly, over every exchange,
    where there are no more than --resamples of them, and else over as many drawn ones. The interval holds the
    differences that the test does not refuse. Of more than two runs, p-values and intervals are corrected together for
    the number of pairs (max-T).
    """
    # The runs are columns of one table, or files beside one source of judgements.
    runs = (run_a, run_b, *more)
    if sum(source is not None for source in (qrels, labels, table)) != 1:
        raise click.UsageError(
            "the judgements must be given as --qrels, --labels or --table, and as one of them alone."
        )
    shared: dict[str, Any] = {
        "queries": queries,
        "exclude": exclude,
        "query": query,
        "label": label,
        "document": document,
    }
    if table is None:
        # Click has not checked them as files, because with --table they are names of columns.
        for run in runs:
            FILE.convert(run, None, click.get_current_context())
        sides = [
            Inputs(qrels=qrels, run=run, **shared) if qrels else Inputs(labels=labels, scores=run, **shared)
            for run in runs
        ]
    else:
        sides = [Inputs(table=table, **shared)]
    if table is None and runs.count("-") > 1:
        raise click.UsageError("only one file can be read from standard input (-).")
    refuse_overwriting()
    # Each run is evaluated once; the comparison pairs the queries of these results.
    chosen = sides[0].flavor if flavor is None else flavor
    k = chosen.k if at is None else at[0]
    if table is None:
        results = [side.evaluate(chosen, (k,)) for side in sides]
    else:
        results = sides[0].evaluate_columns(runs, chosen, (k,))
    if baseline is not None and baseline not in runs:
        raise click.UsageError(f"--baseline must be one of the runs, {', '.join(runs)}; got {baseline}.")
    # The letters keep the tables narrow, however long the names of the files are.
    letters = [chr(ord("a") + at) if at < 26 else f"s{at + 1}" for at in range(len(runs))]
    ids = results[0].per_query.qid
    try:
        comparison = compared(
            *results,
            names=letters,
            baseline=None if baseline is None else letters[runs.index(baseline)],
            margin=margin,
            by=None if by is None else {"by": sides[0].query_labels(by, ids)},
            cluster=None if cluster is None else sides[0].query_labels(cluster, ids, "--cluster"),
            unjudged="refuse" if unjudged == "refuse" else "accept",  # the command prints warnings with its notes
            k=k,
            confidence=confidence,
            n_resamples=resamples,
            seed=seed,
            missing="drop",
        )
    except ValueError as error:
        raise BadInput(f"{', '.join(runs)}: {error}") from error
    comparison = replace(comparison, accepts_unjudged=unjudged == "accept")
    # The page stands alone, without this command line, so it names the runs.
    if html is not None:
        named = _named(comparison, runs if table is not None else [os.path.basename(run) for run in runs])
        named.to_html(html, command=command_line(), top=top, digits=digits)
    report = _Report(runs, results, comparison, confidence, seed, top)
    if as_json:
        print_json(report.document())
    else:
        screen = Screen(digits)
        report.show(screen)
        if html is not None:
            screen.fact("report", screen.text(html))


def _named(comparison: Comparison, names: Sequence[str]) -> Comparison:
    """With these names in place of the letters, where they are all different."""
    if len(set(names)) < len(names):
        return comparison
    name = dict(zip(comparison.names, names, strict=True))
    pairs = tuple(replace(pair, a=name[pair.a], b=name[pair.b]) for pair in comparison.pairs)
    return replace(comparison, names=tuple(names), pairs=pairs)


@dataclass(frozen=True)
class _Report:
    """Everything that the command reports."""

    runs: tuple[str, ...]
    results: list[Evaluation[ByK]]
    comparison: Comparison
    confidence: float
    seed: int
    top: int

    def moved(self) -> list[tuple[Any, float, float, float]]:
        """The queries that moved most, largest first, without those that did not move."""
        ndcg = self.comparison.ndcg
        difference = ndcg[:, 1] - ndcg[:, 0]
        n_moved = self.comparison.wins + self.comparison.losses
        order = np.argsort(-np.abs(difference), kind="stable")[: min(self.top, n_moved)]
        qids = self.comparison.qid.tolist()
        return [(qids[i], float(ndcg[i, 0]), float(ndcg[i, 1]), float(difference[i])) for i in order.tolist()]

    def own_values(self) -> list[float]:
        """The value of each run by itself."""
        return [next(iter(result.value.values())) for result in self.results]

    def document(self) -> dict[str, Any]:
        comparison = self.comparison
        # "ndcg" is over all queries of a run, "ndcg_of_pairs" over those that have a value in all runs.
        systems = [
            {
                "file": file,
                "ndcg": finite(value),
                "n_queries": result.n_queries,
                "n_unanswered": n_unanswered,
                "judged": judged,
                "ndcg_of_pairs": mean,
            }
            for file, value, result, n_unanswered, judged, mean in zip(
                self.runs,
                self.own_values(),
                self.results,
                comparison.n_unanswered,
                comparison.judged or [None] * len(self.runs),
                comparison.values,
                strict=True,
            )
        ]
        document = {
            "flavor": str(comparison.flavor),
            "baseline": comparison.baseline,
            "margin": comparison.margin,
            "n_clusters": comparison.n_clusters,
            "n_pairs": comparison.n_queries,
            "not_compared": comparison.not_compared.tolist(),
            "confidence": self.confidence,
            "resamples": comparison.n_resamples,
            "seed": self.seed,
            "notes": list(comparison.notes),
        }
        if comparison.slices is not None:
            document["slices"] = comparison.to_dict()["slices"]
        # Two runs have no list of systems and pairs: a program finds "a", "b" and their difference at the top.
        if len(systems) == 2:
            moved = [dict(zip(("qid", "a", "b", "difference"), row, strict=True)) for row in self.moved()]
            return {**document, "a": systems[0], "b": systems[1], **_of_pair(comparison.pairs[0]), "moved": moved}
        named = [{"name": name, **system} for name, system in zip(comparison.names, systems, strict=True)]
        pairs = [{"a": pair.a, "b": pair.b, **_of_pair(pair)} for pair in comparison.pairs]
        return {**document, "systems": named, "pairs": pairs}

    def show(self, screen: Screen) -> None:
        comparison = self.comparison
        assert comparison.flavor is not None
        # The means; of two runs, also their difference, which of more runs has a table of pairs to itself.
        at = at_cutoff(comparison.flavor.k)
        head = ["", f"ndcg{at}", *[f"judged{at}"] * (comparison.judged is not None), "run"]
        rows = []
        for i, (name, mean, run) in enumerate(zip(comparison.names, comparison.values, self.runs, strict=True)):
            judged = [] if comparison.judged is None else [screen.number(comparison.judged[i])]
            rows.append([name, screen.number(mean), *judged, run])
        if len(comparison.pairs) == 1:
            rows.append(["b - a", screen.number(comparison.difference, sign=True), *[""] * (len(head) - 2)])
        screen.table(Table(head, rows, f"l{'r' * (len(head) - 2)}l"))
        screen.print()
        # How far chance goes: intervals and tests, and what clusters and slices do to them.
        how = comparison.pairs[0].interval.how_text()
        if len(comparison.pairs) == 1:
            self._show_pair(screen, comparison.pairs[0], how)
        else:
            self._show_pairs(screen, how)
        if comparison.n_clusters is not None:
            fewest = min(pair.effective_queries or 0.0 for pair in comparison.pairs)
            screen.fact(
                "clusters", f"{comparison.n_clusters}; the queries are as good as {fewest:.0f} independent ones"
            )
        if comparison.slices is not None:
            screen.print()
            screen.table(comparison.slices.table())
            screen.print(comparison.slices.caption())
            screen.print()
        # Queries that the means above leave out or count as 0, and other reasons to doubt them.
        if any(comparison.n_unanswered):
            counts = zip(comparison.names, comparison.n_unanswered, strict=True)
            screen.fact("unanswered", ", ".join(f"{name} {n}" for name, n in counts))
        left_out = comparison.not_compared.tolist()
        if left_out:
            some = ", ".join(map(str, left_out[:5])) + ", ..." * (len(left_out) > 5)
            screen.fact("not compared", f"{len(left_out)} without a value in one of the runs: {screen.text(some)}")
            own = ", ".join(
                f"{name} {screen.number(value)} of {result.n_queries}"
                for name, value, result in zip(comparison.names, self.own_values(), self.results, strict=True)
            )
            screen.fact("by itself", own)
        for note in comparison.notes:
            screen.fact("note", note)
        screen.flavor(comparison.flavor)
        # Examples to look at: the queries that the second run changed most.
        moved = self.moved() if len(comparison.pairs) == 1 else []
        if moved:
            screen.print()
            rows = [
                [str(qid), screen.number(a), screen.number(b), screen.number(less, sign=True)]
                for qid, a, b, less in moved
            ]
            caption = f"the {len(moved)} of {comparison.n_queries} queries that moved most"
            screen.table(Table(["qid", "a", "b", "b - a"], rows, caption=caption))

    def _show_pair(self, screen: Screen, pair: Difference, how: str) -> None:
        screen.fact("interval", f"{_limits(screen, pair)} ({how})")
        exchanges = "every exchange" if pair.exact else f"{self.comparison.n_resamples} exchanges drawn"
        screen.fact("p-value", f"{screen.at_least(pair.p_value)} (two-sided randomisation test, {exchanges})")
        screen.fact(
            "queries",
            f"{self.comparison.n_queries}: b is better in {pair.wins}, equal in {pair.ties}, worse in {pair.losses}",
        )
        screen.fact("verdict", f"b is {pair.verdict}" if pair.verdict != "undecided" else "undecided")
        screen.fact("detectable", f"{screen.number(pair.smallest_detectable())}, in 4 of 5 tests of as many queries")

    def _show_pairs(self, screen: Screen, how: str) -> None:
        head = ("", "difference", "interval", "p", "p adjusted", "better", "equal", "worse", "detectable", "verdict")
        rows = [
            (
                f"{pair.b} - {pair.a}",
                screen.number(pair.difference, sign=True),
                _limits(screen, pair),
                screen.at_least(pair.p_value),
                screen.at_least(pair.p_adjusted),
                *map(str, (pair.wins, pair.ties, pair.losses)),
                screen.number(pair.smallest_detectable()),
                pair.verdict,
            )
            for pair in self.comparison.pairs
        ]
        screen.table(Table(head, rows))
        screen.print()
        n_pairs = len(self.comparison.pairs)
        screen.fact("interval", how)
        screen.fact("p", f"two-sided randomisation test; adjusted for {n_pairs} pairs by max-t")
        screen.fact(
            "queries", f"{self.comparison.n_queries}; detectable: the difference seen in 4 of 5 tests of as many"
        )


def _limits(screen: Screen, pair: Difference) -> str:
    low, high = (screen.number(limit, sign=True) for limit in (pair.interval.low, pair.interval.high))
    return f"{low} to {high}"


def _of_pair(pair: Difference) -> dict[str, Any]:
    return {
        "difference": pair.difference,
        "interval": [finite(pair.interval.low), finite(pair.interval.high)],
        "standard_error": pair.standard_error,
        "p_value": pair.p_value,
        "p_adjusted": pair.p_adjusted,
        "verdict": pair.verdict,
        "exact": pair.exact,
        "wins": pair.wins,
        "ties": pair.ties,
        "losses": pair.losses,
        "effect_size": finite(pair.effect_size),
        "smallest_detectable": pair.smallest_detectable(),
    }
