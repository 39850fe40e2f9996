"""The tables of a comparison: systems with their values, and pairs with their differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ndcg_ml._core.checks import whole_number
from ndcg_ml._core.flavor_text import at_cutoff
from ndcg_ml._core.one_line import percent, visible
from ndcg_ml._core.table import Column, Record
from ndcg_ml._decide.differences import DIFFERENCE, INTERVAL, P_ADJUSTED, SYSTEMS, VERDICT

if TYPE_CHECKING:
    from ndcg_ml._decide.comparison import Comparison


def closing_lines(comparison: Comparison) -> list[str]:
    """Return the caption and the notes, one line each."""
    return [visible(line) for line in (comparison.caption(), *(f"Note: {note}." for note in comparison.notes))]


def systems_record(comparison: Comparison) -> Record:
    """Return the value of each system, its judged@k and its unanswered queries."""
    rows = [
        {
            "name": name,
            "value": comparison.values[i],
            "judged": None if comparison.judged is None else comparison.judged[i],
            "n_unanswered": comparison.n_unanswered[i] if comparison.n_unanswered else 0,
            "n_runs": comparison.n_runs[i] if comparison.n_runs else 1,
        }
        for i, name in enumerate(comparison.names)
    ]
    at = "" if comparison.flavor is None else at_cutoff(comparison.flavor.k)
    columns = [Column("system", "{name}", "l"), Column(comparison.measure, "{value:.{digits}f}")]
    columns += [Column(f"judged{at}", "{judged:.4f}")] * (comparison.judged is not None)
    columns += [Column("unanswered", "{n_unanswered}")] * any(comparison.n_unanswered)
    columns += [Column("runs", "{n_runs}")] * (max(comparison.n_runs, default=1) > 1)
    return Record(columns, rows, digits=6)


def pairs_record(comparison: Comparison, digits: int) -> Record:
    """Return the differences, with the caption."""
    value = dict(zip(comparison.names, comparison.values, strict=True))
    rows = [
        {"a": pair.a, "b": pair.b, "value_a": value[pair.a], "value_b": value[pair.b], **pair._row()}
        for pair in comparison.pairs
    ]
    confidence = percent(comparison.pairs[0].interval.confidence)
    columns = [
        *(*SYSTEMS, DIFFERENCE._replace(heading=f"b - a, {comparison.measure}")),
        INTERVAL._replace(heading=f"{confidence} interval"),
        *(Column("p", "{p_value:.{digits}p}"), *[P_ADJUSTED] * (len(rows) > 1)),
        Column("changed (better/worse)", f"{{n_changed}} of {comparison.n_queries} ({{wins}}/{{losses}})"),
        *(Column("d_z", "{effect_size:+.2f}"), Column("detectable", "{smallest_detectable:.{digits}a}"), VERDICT),
    ]
    marked = [at for at, row in enumerate(rows) if row["verdict"] not in ("undecided", "unchanged")]
    return Record(columns, rows, marked, " ".join(closing_lines(comparison)), whole_number(digits, "digits", 0))
