"""``ndcg-ml compare``: two runs on the same queries, and whether their difference may be chance."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray

from ndcg_ml.cli.inputs import FILE, QUERIES, BadInput, Inputs, cut_off, digits_option, flavor_option, json_option
from ndcg_ml.cli.output import Screen, columns, finite, print_json
from ndcg_ml.flavor import Flavor
from ndcg_ml.result import Evaluation, at_cutoff
from ndcg_ml.runs import Which
from ndcg_ml.score import ByK

__all__ = ["Paired", "compare", "paired_difference"]

_CONFIDENCE = 0.95
_SAME = 1e-12  # values this close differ by rounding alone
_BATCH = 1 << 22  # numbers that are drawn at once

_EPILOG = """\
\b
Example:
  ndcg-ml compare bm25.txt reranked.txt --qrels qrels.txt -k 10

\b
--json prints
  flavor        the flavor as text, with its cut-off
  a, b          {file, ndcg, n_queries, ndcg_of_pairs}: the value of the run by itself over its n_queries
                (null for nan), and its mean over the pairs
  n_pairs       queries that were compared
  not_compared  ids of queries without a value in one of the runs
  difference    mean of b - a over the pairs
  interval      [low, high], null for a single pair
  confidence    of the interval, 0.95
  p_value       of the randomisation test
  exact         whether the test enumerated every exchange
  resamples, seed
  wins, ties, losses   pairs in which b is above a, equal to 1e-12, and below it
  moved         [{qid, a, b, difference}], the --top queries that moved most
"""


@click.command(epilog=_EPILOG)
@click.argument("run_a", type=FILE)
@click.argument("run_b", type=FILE)
@click.option("--qrels", type=FILE, help="TREC judgements; RUN_A and RUN_B are TREC runs.")
@click.option("--labels", type=FILE, help="LETOR/SVMlight labels; RUN_A and RUN_B hold one score for each line.")
@click.option("--queries", type=QUERIES, help="Which topics count, as for eval.  [default: qrels]")
@flavor_option("trec_eval with --qrels, sklearn with --labels")
@click.option("-k", "at", metavar="K", type=cut_off, help="The cut-off, or 'none'.  [default: the flavor's own]")
@click.option(
    "--resamples",
    type=click.IntRange(100, 10_000_000),
    default=10_000,
    show_default=True,
    help="Resamples of the bootstrap and of the test.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the resamples.")
@click.option(
    "--top", type=click.IntRange(0), default=10, show_default=True, help="How many queries that moved to list."
)
@digits_option
@json_option
def compare(
    run_a: str,
    run_b: str,
    qrels: str | None,
    labels: str | None,
    queries: Which | None,
    flavor: Flavor | None,
    at: tuple[int | None] | None,
    resamples: int,
    seed: int,
    top: int,
    digits: int,
    as_json: bool,
) -> None:
    """Compare two runs, query by query.

    Differences are those of RUN_B minus RUN_A, over the queries that have a value in both. The interval is a
    percentile bootstrap of the mean difference, at 95 %. The test is the two-sided randomisation test, which
    exchanges the two values of a query at random: exactly, over every exchange, where there are no more than
    --resamples of them, and else over as many drawn ones.
    """
    if (qrels is None) == (labels is None):
        raise click.UsageError("the judgements must be given as --qrels or as --labels, and not as both.")
    sides = [
        Inputs(qrels=qrels, run=run, queries=queries) if qrels else Inputs(labels=labels, scores=run, queries=queries)
        for run in (run_a, run_b)
    ]
    if run_a == run_b == "-":
        raise click.UsageError("only one file can be read from standard input (-).")
    chosen = sides[0].flavor if flavor is None else flavor
    k = chosen.k if at is None else at[0]
    if chosen.aggregate != "macro":
        raise BadInput(
            f"compare needs a flavor with aggregate=macro, because it compares means; got aggregate={chosen.aggregate}."
        )
    try:
        import_module("scipy.stats")
    except ImportError as error:
        raise BadInput(f"{error}: compare needs scipy. Install it with: pip install 'ndcg_ml[demo]'") from error
    results = [side.evaluate(chosen, (k,)) for side in sides]
    pairs = _paired(*results)
    if not pairs.qid:
        raise BadInput(f"{run_a}, {run_b}: no query has a value in both, so there is nothing to compare.")
    paired = paired_difference(pairs.b - pairs.a, resamples=resamples, confidence=_CONFIDENCE, seed=seed)
    comparison = _Comparison(
        files=(run_a, run_b),
        flavor=chosen.replace(k=k),
        results=results,
        pairs=pairs,
        paired=paired,
        resamples=resamples,
        seed=seed,
        top=top,
    )
    if as_json:
        print_json(comparison.document())
    else:
        comparison.show(Screen(digits))


@dataclass(frozen=True, kw_only=True)
class Paired:
    """The mean of paired differences b - a."""

    difference: float
    interval: tuple[float, float] | None
    """Percentile bootstrap interval; None for a single pair."""
    p_value: float
    """Two-sided, of the randomisation test."""
    exact: bool
    """Whether all assignments of signs were enumerated, rather than some drawn."""
    wins: int
    """Pairs in which b is above a; ties are equal to within 1e-12."""
    ties: int
    losses: int


def paired_difference(differences: NDArray[np.float64], *, resamples: int, confidence: float, seed: int) -> Paired:
    """Mean difference, bootstrap interval and randomisation test of differences b - a, one per query.

    Parameters
    ----------
    differences : ndarray of float64
        At least one, all finite.
    resamples : int
        Of the bootstrap, and the limit on sign assignments in the test, which enumerates them all where it can.
    confidence : float
        Of the interval.
    seed : int

    Notes
    -----
    The test's null hypothesis is that it is random which of the two values of a query came from which run. Then each
    difference could as well have the other sign; a difference of 0 has no sign and is left out of the enumeration.
    """
    stats = import_module("scipy.stats")  # of all commands only this one needs SciPy
    apart = np.abs(differences) > _SAME
    signed = differences[apart]
    exact = signed.size < 2 or 2**signed.size <= resamples
    interval: tuple[float, float] | None = None
    mean = float(differences.mean())
    batch = max(1, _BATCH // differences.size)
    if differences.size > 1:
        if np.ptp(differences) <= _SAME:  # every resample has the same mean
            interval = (mean, mean)
        else:
            bounds = stats.bootstrap(
                (differences,),
                np.mean,
                n_resamples=resamples,
                batch=batch,
                confidence_level=confidence,
                method="percentile",
                **_drawn_with(stats.bootstrap, seed),
            ).confidence_interval
            interval = (float(bounds.low), float(bounds.high))
    p_value = 1.0
    if signed.size > 1:  # a single one is as far from 0 with either sign
        # The sum over the pairs that are apart is the mean over all pairs times a factor that no sign changes.
        with np.errstate(over="ignore"):  # SciPy 1.11 counts the assignments in floats
            test = stats.permutation_test(
                (signed,),
                np.sum,
                permutation_type="samples",
                n_resamples=resamples,
                batch=batch,
                vectorized=True,
                **_drawn_with(stats.permutation_test, seed),
            )
        p_value = float(test.pvalue)
    return Paired(
        difference=mean,
        interval=interval,
        p_value=p_value,
        exact=exact,
        wins=int((signed > 0).sum()),
        ties=int(differences.size - signed.size),
        losses=int((signed < 0).sum()),
    )


def _drawn_with(function: Any, seed: int) -> dict[str, Any]:
    """The random generator, under the name that this version of SciPy has for it (1.15 renamed it)."""
    name = "rng" if "rng" in inspect.signature(function).parameters else "random_state"
    return {name: np.random.default_rng(seed)}


class _Pairs(NamedTuple):
    qid: list[Any]
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    left_out: list[Any]


def _paired(a: Evaluation[ByK], b: Evaluation[ByK]) -> _Pairs:
    """The queries that have a value in both, in the order of a, and the others."""
    values_a, values_b = (
        dict(zip(each.per_query.qid.tolist(), each.per_query.ndcg[:, 0].tolist(), strict=True)) for each in (a, b)
    )
    everywhere = list(dict.fromkeys((*values_a, *values_b)))
    pairs = [(values_a.get(qid, np.nan), values_b.get(qid, np.nan)) for qid in everywhere]
    values = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    kept = np.isfinite(values[:, 0]) & np.isfinite(values[:, 1])
    return _Pairs(
        [qid for qid, keep in zip(everywhere, kept, strict=True) if keep],
        values[kept, 0],
        values[kept, 1],
        [qid for qid, keep in zip(everywhere, kept, strict=True) if not keep],
    )


@dataclass(frozen=True, kw_only=True)
class _Comparison:
    """Everything that the command reports."""

    files: tuple[str, str]
    flavor: Flavor
    results: list[Evaluation[ByK]]
    pairs: _Pairs
    paired: Paired
    resamples: int
    seed: int
    top: int

    def moved(self) -> list[tuple[Any, float, float, float]]:
        """The queries that moved most, largest first, without those that did not move."""
        difference = self.pairs.b - self.pairs.a
        order = np.argsort(-np.abs(difference), kind="stable")[: min(self.top, self.paired.wins + self.paired.losses)]
        return [
            (self.pairs.qid[i], float(self.pairs.a[i]), float(self.pairs.b[i]), float(difference[i]))
            for i in order.tolist()
        ]

    def own_values(self) -> list[float]:
        """The value of each run by itself."""
        return [next(iter(each.value.values())) for each in self.results]

    def document(self) -> dict[str, Any]:
        a, b = (
            {"file": file, "ndcg": finite(value), "n_queries": result.n_queries, "ndcg_of_pairs": float(mean)}
            for file, value, result, mean in zip(
                self.files, self.own_values(), self.results, (self.pairs.a.mean(), self.pairs.b.mean()), strict=True
            )
        )
        return {
            "flavor": str(self.flavor),
            "a": a,
            "b": b,
            "n_pairs": len(self.pairs.qid),
            "not_compared": self.pairs.left_out,
            "difference": self.paired.difference,
            "interval": None if self.paired.interval is None else list(self.paired.interval),
            "confidence": _CONFIDENCE,
            "p_value": self.paired.p_value,
            "exact": self.paired.exact,
            "resamples": self.resamples,
            "seed": self.seed,
            "wins": self.paired.wins,
            "ties": self.paired.ties,
            "losses": self.paired.losses,
            "moved": [dict(zip(("qid", "a", "b", "difference"), row, strict=True)) for row in self.moved()],
        }

    def show(self, screen: Screen) -> None:
        paired = self.paired
        table = columns(screen, "", f"ndcg{at_cutoff(self.flavor.k)}", "run")
        table.columns[2].justify = "left"
        for name, mean, file in zip("ab", (self.pairs.a.mean(), self.pairs.b.mean()), self.files, strict=True):
            table.add_row(name, screen.number(mean), screen.text(file))
        table.add_row("b - a", screen.number(paired.difference, sign=True), "")
        screen.print(table)
        screen.print()
        if paired.interval is None:
            interval = "none for a single pair"
        else:
            low, high = (screen.number(bound, sign=True) for bound in paired.interval)
            interval = f"{low} to {high} ({100 * _CONFIDENCE:g} %, percentile bootstrap, {self.resamples} resamples)"
        screen.fact("interval", interval)
        how = "every exchange" if paired.exact else f"{self.resamples} exchanges drawn"
        screen.fact("p-value", f"{screen.at_least(paired.p_value)} (two-sided randomisation test, {how})")
        screen.fact(
            "queries",
            f"{len(self.pairs.qid)}: b is better in {paired.wins}, equal in {paired.ties}, worse in {paired.losses}",
        )
        left_out = self.pairs.left_out
        if left_out:
            some = ", ".join(map(str, left_out[:5])) + ", ..." * (len(left_out) > 5)
            screen.fact("not compared", f"{len(left_out)} without a value in one of the runs: {screen.text(some)}")
            own = ", ".join(
                f"{name} {screen.number(value)} of {result.n_queries}"
                for name, value, result in zip("ab", self.own_values(), self.results, strict=True)
            )
            screen.fact("by itself", own)
        screen.flavor(self.flavor)
        moved = self.moved()
        if moved:
            screen.print()
            table = columns(screen, "qid", "a", "b", "b - a")
            for qid, a, b, difference in moved:
                table.add_row(
                    screen.text(qid), screen.number(a), screen.number(b), screen.number(difference, sign=True)
                )
            screen.print(table)
            screen.print(f"the {len(moved)} of {len(self.pairs.qid)} queries that moved most")
