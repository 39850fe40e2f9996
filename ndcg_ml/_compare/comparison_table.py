"""The tables that a comparison prints: the systems with their values, and the pairs with their differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ndcg_ml._checks import whole_number
from ndcg_ml._flavor.text import at_cutoff
from ndcg_ml._one_line import percent, visible
from ndcg_ml._text.table import Table

if TYPE_CHECKING:
    from ndcg_ml._compare.comparison import Comparison


def closing_lines(comparison: Comparison) -> list[str]:
    """The caption, and what a reader must know, each as a sentence."""
    return [visible(line) for line in (comparison.caption(), *(f"Note: {note}." for note in comparison.notes))]


def systems_table(comparison: Comparison, digits: int) -> Table:
    """The value of each system, and what is known of its documents."""
    columns: list[tuple[str, Sequence[object]]] = [("system", comparison.names)]
    columns.append((comparison.measure, [f"{value:.{digits}f}" for value in comparison.values]))
    if comparison.judged is not None:
        at = "" if comparison.flavor is None else at_cutoff(comparison.flavor.k)
        columns.append((f"judged{at}", [f"{share:.4f}" for share in comparison.judged]))
    if any(comparison.n_unanswered):
        columns.append(("unanswered", comparison.n_unanswered))
    if max(comparison.n_runs, default=1) > 1:
        columns.append(("runs", comparison.n_runs))
    head, cells = zip(*columns, strict=True)
    return Table(head, [list(map(str, row)) for row in zip(*cells, strict=True)])


def pairs_table(comparison: Comparison, digits: int) -> Table:
    """The differences, with the caption."""
    digits = whole_number(digits, "digits", 0)
    first = comparison.pairs[0]
    several = len(comparison.pairs) > 1
    head = ["a", "b", f"b - a, {comparison.measure}", f"{percent(first.interval.confidence)} interval", "p"]
    head += ["p adjusted"] * several + ["changed (better/worse)", "d_z", "detectable", "verdict on b"]
    rows = []
    for pair in comparison.pairs:
        low, high = (f"{limit:+.{digits}f}" for limit in (pair.interval.low, pair.interval.high))
        size = f"{pair.effect_size:+.2f}" if math.isfinite(pair.effect_size) else "-"
        rows.append(
            [
                *(pair.a, pair.b, f"{pair.difference:+.{digits}f}", f"{low} to {high}"),
                *(_probability(p, digits) for p in (pair.p_value, pair.p_adjusted)[: 1 + several]),
                *(f"{pair.n_changed} of {pair.interval.n_queries} ({pair.wins}/{pair.losses})", size),
                *(f"{pair.smallest_detectable():.{digits}f}", pair.verdict),
            ]
        )
    marked = [at for at, pair in enumerate(comparison.pairs) if pair.verdict not in ("undecided", "unchanged")]
    return Table(head, rows, "ll" + "r" * (len(head) - 3) + "l", marked, " ".join(closing_lines(comparison)))


def _probability(value: float, digits: int) -> str:
    """A probability, which is never 0."""
    text = f"{value:.{digits}f}"
    return text if float(text) else f"<{10.0**-digits:g}"
