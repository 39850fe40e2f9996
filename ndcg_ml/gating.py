"""Check whether a new evaluation is worse than saved ones by more than a margin.

It calls ``compare`` once per cut-off, at a confidence level that is corrected for the number of comparisons.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.json_values import plain
from ndcg_ml._core.layout import IntArray, keys_of
from ndcg_ml._core.slice_names import slice_names_by_id
from ndcg_ml._matched_systems import describe_changes, list_ids, rows_of_ids
from ndcg_ml._plain.checks import as_confidence, as_float
from ndcg_ml._plain.flavor_text import at_cutoff
from ndcg_ml._plain.messages import brief, escape_markdown, markdown_paragraph, percent, visible
from ndcg_ml._plain.table import Column, Record
from ndcg_ml._statistics.differences import DIFFERENCE, INTERVAL, VERDICT, Difference, Settings
from ndcg_ml._statistics.intervals import FEWEST_FOR_INTERVAL, FEWEST_FOR_TEST
from ndcg_ml._statistics.verdict import PASSES
from ndcg_ml.comparisons import compare
from ndcg_ml.flavor import Flavor
from ndcg_ml.results.comparison import Comparison
from ndcg_ml.results.evaluation import Evaluation

OnChange: TypeAlias = Literal["refuse", "drop"]
Outcome: TypeAlias = Literal["pass", "unchanged", "worse", "undecided"]
BASE, LAST, NEW = "baseline", "last run", "new"
# Number of queries that are named.
_LISTED = 5


class GateError(ValueError):
    """The evaluations cannot be compared. The message names what changed."""


@dataclass(frozen=True, slots=True)
class Check:
    """The difference from one reference at one cut-off, over all queries or one segment.

    Attributes
    ----------
    reference : {"baseline", "last run"}
    k : int or None
    part : tuple of column and label, or None
        The segment; None for all queries.
    n_queries : int
    values : tuple of float, or None
        The values of the reference and the new evaluation; None in a segment.
    pair : Difference or None
        None in a segment with too few queries to test.
    """

    reference: str
    k: int | None
    part: tuple[str, Any] | None
    n_queries: int
    values: tuple[float, float] | None
    pair: Difference | None

    @property
    def segment(self) -> str:
        """``column=label``; "" for all queries."""
        return "" if self.part is None else f"{self.part[0]}={self.part[1]}"

    @property
    def verdict(self) -> str:
        """The verdict of ``compare``, or "too few"."""
        return "too few" if self.pair is None else self.pair.verdict

    def row(self) -> dict[str, Any]:
        """Return the values under the names of ``Gate.to_dict``; None for unknown values."""
        before, new = self.values or (None, None)
        pair = {} if self.pair is None else self.pair._row()
        return {
            "reference": self.reference,
            "k": self.k,
            "segment": self.segment or None,
            "n_queries": self.n_queries,
            "before": before,
            "new": new,
            **{name: pair.get(name) for name in ("n_changed", "difference", "low", "high", "p_value", "unseen")},
            "verdict": self.verdict,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The result of ``gate``.

    Attributes
    ----------
    margin, confidence : float
        The confidence level holds for all checks with one reference together.
    flavor : Flavor
    comparisons : dict of dict of Comparison, by reference and cut-off
        Without cut-offs if fewer than two queries have a value and no value changed.
    changes : tuple of str
        Descriptions of changed queries, which were left out, and of their values in the reference.
    unanswered : ndarray
        Ids of queries for which the new run returns no documents.
    segments : dict of dict, by column and query id
        Names of the segments.
    saved : date or None
        Date on which the baseline was saved, if it was read from a file.
    """

    margin: float
    confidence: float
    flavor: Flavor
    comparisons: dict[str, dict[int | None, Comparison]]
    changes: tuple[str, ...]
    unanswered: NDArray[Any]
    segments: Mapping[str, Mapping[Any, Any]]
    saved: date | None = None

    @property
    def checks(self) -> list[Check]:
        """All checks: first those over all queries, then those over segments."""
        whole, parts = [], []
        for reference, k, comparison in self._compared():
            values = comparison.values[0], comparison.values[1]
            whole.append(Check(reference, k, None, comparison.n_queries, values, comparison.pairs[0]))
            for key, part in (comparison.slices or {}).items():
                pair = part.pairs[0] if part.pairs and part.n_queries >= FEWEST_FOR_TEST else None
                parts.append(Check(reference, k, key, part.n_queries, None, pair))
        return whole + parts

    def _compared(self) -> list[tuple[str, int | None, Comparison]]:
        return [(name, k, found) for name, by_k in self.comparisons.items() for k, found in by_k.items()]

    @property
    def outcome(self) -> Outcome:
        """Worse if any check is, unchanged if no value differs, pass if all checks pass, otherwise undecided."""
        verdicts = {check.verdict for check in self.checks}
        if "worse" in verdicts:
            return "worse"
        if {check.verdict for check in self.checks if check.part is None} <= {"unchanged"}:
            return "unchanged"
        return "pass" if verdicts <= {*PASSES} else "undecided"

    @property
    def queries_needed(self) -> int | None:
        """Number of queries with which an equal system passes in 4 of 5 cases; None if decided."""
        needed = [
            check.pair._queries_to_pass(self.margin)
            for check in self.checks
            if check.pair is not None and check.verdict == "undecided" and check.pair.standard_error > 0
        ]
        return max(needed, default=None) if self.outcome == "undecided" else None

    def sentence(self) -> str:
        """Return the outcome as a sentence."""
        checks = self.checks
        if self.outcome == "unchanged":
            return "unchanged: no query has a different value"
        if self.outcome == "pass":
            return f"not worse by more than the margin of {self.margin:g}"
        if self.outcome == "worse":
            where = ", ".join(self._describe(check) for check in checks if check.verdict == "worse")
            return f"worse: {where}"
        where = ", ".join(self._describe(check) for check in checks if check.verdict not in PASSES)
        n = max(check.n_queries for check in checks)
        needed, more = self.queries_needed, ""
        if needed is not None:
            more = f", about {needed} needed"
            if needed <= n:
                more = f"; equal systems pass with {needed} in 4 of 5 cases, so this one may be worse"
        return (
            f"cannot tell whether it is worse by more than the margin of {self.margin:g} ({n} queries{more}): {where}"
        )

    def record(self) -> Record:
        """Return one row per check."""
        columns = [
            Column("metric", "ndcg{k:@}", "l"),
            *[Column("compared with", "{reference}", "l")] * (len(self.comparisons) > 1),
            *(Column("queries of", "{queries}", "l"), Column("queries", "{n_queries}")),
            Column("changed", "{n_changed:d}"),
            *(Column("before", "{before:.{digits}f}"), Column(NEW, "{new:.{digits}f}")),
            *(DIFFERENCE._replace(heading="difference"), INTERVAL, VERDICT._replace(heading="verdict")),
        ]
        rows = [{**check.row(), "queries": check.segment or "all"} for check in self.checks]
        return Record(columns, rows, caption=self.caption())

    def caption(self) -> str:
        """Return the settings of the checks, as the caption of the table."""
        n = len([check for check in self.checks if check.pair is not None]) // len(self.comparisons)
        together = f" over all {n} checks" if n > 1 else ""
        if len(self.comparisons) > 1:
            together += " with each reference"
        tested = ["not tested: fewer than two queries have a value, and no value changed"]
        if self.checks:
            tested = self._compared()[0][2]._how_tested()
        return f"{self.flavor}; margin {self.margin:g}; confidence {self.confidence:g}{together}; {'; '.join(tested)}"

    def notes(self) -> list[str]:
        """Return the notes below the table: the largest losses, changed queries, empty rankings, differing judged@k."""
        notes = [self._losses(check) for check in self.checks if check.verdict == "worse"] + list(self.changes)
        if self.unanswered.size:
            ids = self.unanswered.tolist()
            notes.append(f"queries for which the new run returns no documents: {list_ids(ids)}")
        notes += dict.fromkeys(note for _, _, comparison in self._compared() for note in comparison.notes)
        if self.saved is not None:
            days = (date.today() - self.saved).days
            notes.append(
                f"the baseline was saved on {self.saved} ({days} days ago); the more changes you select with it, "
                "the less it shows about other queries"
            )
        return [visible(note) for note in notes]

    def _losses(self, check: Check) -> str:
        """Name the queries that lose most."""
        comparison = self.comparisons[check.reference][check.k]
        gained = comparison.ndcg[:, 1] - comparison.ndcg[:, 0]
        by_gain = sorted(zip(gained.tolist(), keys_of(comparison.qid), strict=True), key=lambda query: query[0])
        if check.part is not None:
            column, label = check.part
            by_gain = [(gain, qid) for gain, qid in by_gain if self.segments[column][qid] == label]
        listed = ", ".join(f"{brief(qid)} {gain:+.4f}" for gain, qid in by_gain[:_LISTED] if gain < 0)
        return f"queries that lose most, {self._describe(check)}: {listed}"

    def _describe(self, check: Check) -> str:
        of = f" of {visible(check.segment)}" if check.segment else ""
        against = f" against the {check.reference}" if len(self.comparisons) > 1 else ""
        return f"ndcg{at_cutoff(check.k)}{of}{against}"

    def markdown(self) -> str:
        """Return the outcome, the table and the notes as Markdown."""
        notes = "".join(f"- {markdown_paragraph(note)}\n" for note in self.notes())
        return f"**{escape_markdown(self.sentence())}**\n\n{self.record().markdown()}\n{notes}".rstrip() + "\n"

    def __str__(self) -> str:
        notes = [f"Note: {note}" for note in self.notes()]
        return "\n".join([self.sentence(), "", self.record().text(), *notes])

    def to_dict(self) -> dict[str, Any]:
        """Return all values as JSON types; infinity and nan become None."""
        document = {
            "outcome": self.outcome,
            "flavor": str(self.flavor),
            "margin": self.margin,
            "confidence": self.confidence,
            "queries_needed": self.queries_needed,
            "checks": [check.row() for check in self.checks],
            "changes": list(self.changes),
            "unanswered": self.unanswered,
            "notes": self.notes(),
        }
        return {name: plain(value) for name, value in document.items()}


def gate(
    base: Evaluation[Any],
    new: Evaluation[Any],
    *,
    margin: float,
    last: Evaluation[Any] | None = None,
    confidence: float = 0.95,
    by: Any = None,
    on_change: OnChange = "refuse",
    drop_at_most: float = 0.1,
    seed: int = 0,
) -> Gate:
    """Compare a new evaluation with a baseline, and with the last accepted run, at each cut-off.

    Parameters
    ----------
    base, new : Evaluation
    margin : float
        Largest acceptable loss of NDCG.
    last : Evaluation, optional
        The last accepted run. Changes of queries add up since the baseline, until it shows no single step. With both
        references, the new evaluation must pass both.
    confidence : float, default 0.95
        Confidence level of all checks with one reference together, over all cut-offs and segments (Bonferroni).
    by : mapping, optional
        Names of segments, in the forms of ``compare``: by query id, or by column and query id. Queries with the same
        name are also checked, as a segment.
    on_change : {"refuse", "drop"}, default "refuse"
        Action if queries, labels, exclusions or weights changed: an error, or leaving those queries out.
    drop_at_most : float, default 0.1
        Largest fraction of a reference's queries that "drop" may leave out.
    seed : int, default 0
        Random seed of the tests.

    Raises
    ------
    GateError
        The evaluations differ in flavor, cut-offs or kind of data; the labels of one are unknown; or queries, labels,
        exclusions or weights changed (with "drop", in too many queries).
    TypeError, ValueError
        `drop_at_most` is not a number from 0 to 1; or as from ``compare``.
    """
    share = as_float(drop_at_most)
    if share is None:
        raise TypeError(f"drop_at_most must be a number from 0 to 1; got {brief(drop_at_most)}.")
    if not 0 <= share <= 1:
        raise ValueError(f"drop_at_most must be from 0 to 1; got {brief(drop_at_most)}.")
    ids = keys_of(base.per_query.qid)
    segments = {} if by is None else slice_names_by_id(by, base.per_query.qid)
    # Queries that only the last run has are in no segment.
    by_id = {column: defaultdict(str, zip(ids, names, strict=True)) for column, names in segments.items()}
    comparisons, changes = {}, list[str]()
    for name, reference in ((BASE, base), (LAST, last)):
        if reference is None:
            continue
        _require_same_definition(name, reference, new)
        one, other, changed = _unchanged_queries(name, reference, new, on_change, share)
        changes += changed
        comparisons[name] = _compare(name, one, other, margin, confidence, by_id, seed)
    return Gate(
        margin=margin,
        confidence=confidence,
        flavor=base.flavor,
        comparisons=comparisons,
        changes=tuple(changes),
        unanswered=new.per_query.qid[new._unanswered() if new.queries else slice(0)],
        segments=by_id,
    )


def _unchanged_queries(
    name: str, reference: Evaluation[Any], new: Evaluation[Any], on_change: OnChange, share: float
) -> tuple[Evaluation[Any], Evaluation[Any], list[str]]:
    """Return both evaluations of the same queries with the same judgements, and what was left out."""
    rows, changes = _find_changes(name, reference, new)
    again = "Save a new baseline of the old system" if name == BASE else "Remove the file of the last run"
    if changes and on_change == "refuse":
        raise GateError(
            f"{'; '.join(changes)}. They would distort the difference. {again}, or leave these queries out with "
            "--on-change drop." + " Documents without ids must be in the same order." * (reference.queries is None)
        )
    n_dropped = reference.n_queries - len(rows)
    if not len(rows) or n_dropped > share * reference.n_queries:
        raise GateError(
            f"at most {percent(share)} of the queries of the {name} may be left out (--drop-at-most); got "
            f"{n_dropped} of {reference.n_queries}: {'; '.join(changes)}. {again}."
        )
    changes = [f"{change}; these are left out" for change in changes]
    changes += _describe_dropped(name, reference, rows[:, 0])
    one, other = reference._at(rows[:, 0]), new._at(rows[:, 1])
    # The command line cannot pass clusters.
    return one, replace(other, cluster=one.cluster) if other.cluster is None else other, changes


def _compare(
    name: str,
    reference: Evaluation[Any],
    new: Evaluation[Any],
    margin: float,
    confidence: float,
    segments: Mapping[str, Mapping[Any, Any]],
    seed: int,
) -> dict[int | None, Comparison]:
    """Compare at each cut-off, with the level divided among the cut-offs and between all queries and the segments."""
    ks, n = reference._totals.ks, reference.n_queries
    values, values_now = (side.per_query.ndcg.reshape(n, -1) for side in (reference, new))
    n_values = int((~np.isnan(values).any(axis=1)).sum())
    answered = not (reference._unanswered().all() or new._unanswered().all())  # otherwise, compare refuses
    if answered and n_values < FEWEST_FOR_INTERVAL and np.array_equal(values, values_now, equal_nan=True):
        ks = ()
    families = len(ks) * (2 if segments else 1)
    shared = Settings(confidence=as_confidence(confidence), margin=margin, n_resamples=1, n_families=max(families, 1))
    ids = keys_of(reference.per_query.qid)
    return {
        k: compare(
            reference,
            new,
            names=[name, NEW],
            margin=margin,
            by={column: [of_query[qid] for qid in ids] for column, of_query in segments.items()} or None,
            unjudged="note",
            confidence=max(shared.confidence, 1 - shared.level),  # nearly 0 must not round to 0
            seed=seed,
            k=k,
        )
        for k in ks
    }


def _require_same_definition(name: str, reference: Evaluation[Any], new: Evaluation[Any]) -> None:
    """Raise if the flavors, cut-offs or kinds of data differ."""
    one, other = _describe_definition(reference), _describe_definition(new)
    differ = [f"{what} {one[what]} in the {name} and {other[what]} now" for what in one if one[what] != other[what]]
    if differ:
        raise GateError(f"{name} and new evaluation must have the same definition; got {'; '.join(differ)}.")


def _describe_definition(evaluation: Evaluation[Any]) -> dict[str, str]:
    """Return the settings that both evaluations must share, by name."""
    return {
        "flavor": str(evaluation.flavor.replace(k=None)),
        "cut-offs": ", ".join(map(str, evaluation._totals.ks)),
        "data": "labels and scores" if evaluation.queries is None else "judgements and a run",
        "queries=": evaluation.queries or "",
        "exclude=": "none" if evaluation.n_excluded is None else "given",
    }


def _find_changes(name: str, reference: Evaluation[Any], new: Evaluation[Any]) -> tuple[IntArray, list[str]]:
    """Return the rows of unchanged queries in the two evaluations, and descriptions of the changed ones."""
    ids, rows = rows_of_ids([reference.per_query.qid, new.per_query.qid])
    shared = (rows >= 0).all(axis=1)
    changes = [
        ("queries missing from the new evaluation", rows[:, 1] < 0),
        (f"queries that are not in the {name}", rows[:, 0] < 0),
    ]
    sides = _comparable_values(reference), _comparable_values(new)
    for what, values, values_now in zip(_COMPARED, *sides, strict=True):
        changes.append((f"queries whose {what} changed", shared & (values[rows[:, 0]] != values_now[rows[:, 1]])))
    changed = np.any([which for _, which in changes], axis=0)
    return rows[~changed], describe_changes(changes, ids)


_COMPARED = ("judgements", "exclusions", "weights")


def _comparable_values(evaluation: Evaluation[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return each query's digest of labels, digest of excluded documents, and weight."""
    judgements = evaluation._label_digests()
    if judgements is None:
        raise GateError(
            "both evaluations must hold their labels; one of ranked grades, or one that was pickled, does not. "
            "Evaluate labels and scores, or judgements and a run."
        )
    excluded = evaluation._excluded
    return judgements, np.zeros(judgements.size) if excluded is None else excluded, evaluation.per_query.weight


def _describe_dropped(name: str, reference: Evaluation[Any], kept: IntArray) -> list[str]:
    """Describe the reference's values of the omitted queries, compared with those of all queries."""
    n, ids = reference.n_queries, reference.per_query.qid.tolist()
    rows = np.delete(np.arange(n), kept)
    if not rows.size:
        return []
    table = reference.per_query.ndcg.reshape(n, -1)
    left_out = reference._totals.at(rows).mean(reference.flavor)
    whole = reference._totals.mean(reference.flavor)
    changes = []
    for column, k in enumerate(reference._totals.ks):
        some = ", ".join(f"{brief(ids[row])} {table[row, column]:.4f}" for row in rows[:_LISTED])
        changes.append(
            f"ndcg{at_cutoff(k)} of the omitted queries in the {name}: {some}{', ...' * (len(rows) > _LISTED)} "
            f"(together {left_out[column]:.4f}; all {n} queries {whole[column]:.4f})"
        )
    return changes
