"""Check whether a new evaluation is worse than a saved one by more than a margin.

It calls ``compare`` once per cut-off, at a confidence level that is corrected for the number of comparisons.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.checks import as_confidence, as_float
from ndcg_ml._core.flavor_text import at_cutoff
from ndcg_ml._core.json_values import plain
from ndcg_ml._core.layout import IntArray
from ndcg_ml._core.one_line import brief, escape_markdown, markdown_paragraph, percent, visible
from ndcg_ml._core.result import Evaluation
from ndcg_ml._core.slice_names import slice_names_by_id
from ndcg_ml._core.table import Column, Record
from ndcg_ml._decide.compare import compare
from ndcg_ml._decide.comparison import Comparison
from ndcg_ml._decide.differences import DIFFERENCE, INTERVAL, VERDICT, Difference, Settings
from ndcg_ml._decide.intervals import FEWEST_FOR_INTERVAL, FEWEST_FOR_TEST
from ndcg_ml._decide.matching import describe_changes, list_ids, rows_of_ids
from ndcg_ml._decide.saved import judgement_digests
from ndcg_ml._decide.verdict import PASSES, Outcome, gate_outcome
from ndcg_ml.flavor import Flavor
from ndcg_ml.runs import RunEvaluation

OnChange: TypeAlias = Literal["refuse", "drop"]
BASE, NEW = "baseline", "new"


class GateError(ValueError):
    """The evaluations cannot be compared. The message names what changed."""


@dataclass(frozen=True, slots=True)
class Check:
    """The difference at one cut-off, over all queries or one segment.

    Attributes
    ----------
    k : int or None
    segment : str
        ``column=label``; "" for all queries.
    n_queries : int
    values : tuple of float, or None
        The values of the baseline and the new evaluation; None in a segment.
    pair : Difference or None
        None in a segment with too few queries to test.
    """

    k: int | None
    segment: str
    n_queries: int
    values: tuple[float, float] | None
    pair: Difference | None

    @property
    def verdict(self) -> str:
        """The verdict of ``compare``, or "too few"."""
        return "too few" if self.pair is None else self.pair.verdict

    def row(self) -> dict[str, Any]:
        """Return the values under the names of ``Gate.to_dict``; None for unknown values."""
        baseline, new = self.values or (None, None)
        pair = {} if self.pair is None else self.pair._row()
        return {
            "k": self.k,
            "segment": self.segment or None,
            "n_queries": self.n_queries,
            "baseline": baseline,
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
        The confidence level holds for all checks together.
    flavor : Flavor
    comparisons : dict of Comparison by cut-off
        Empty if fewer than two queries have a value and no value changed.
    changes : tuple of str
        Descriptions of changed queries, which were left out, and of their values in the baseline.
    unanswered : ndarray
        Ids of queries for which the new run returns no documents.
    saved : date or None
        Date on which the baseline was saved, if it was read from a file.
    """

    margin: float
    confidence: float
    flavor: Flavor
    comparisons: dict[int | None, Comparison]
    changes: tuple[str, ...]
    unanswered: NDArray[Any]
    saved: date | None = None

    @property
    def checks(self) -> list[Check]:
        """All checks: first those over all queries, then those over segments."""
        whole, parts = [], []
        for k, comparison in self.comparisons.items():
            whole.append(
                Check(k, "", comparison.n_queries, (comparison.values[0], comparison.values[1]), comparison.pairs[0])
            )
            for (column, name), part in (comparison.slices or {}).items():
                pair = part.pairs[0] if part.pairs and part.n_queries >= FEWEST_FOR_TEST else None
                parts.append(Check(k, f"{column}={name}", part.n_queries, None, pair))
        return whole + parts

    @property
    def outcome(self) -> Outcome:
        """Worse if any check is, unchanged if no value differs, pass if all checks pass, otherwise undecided."""
        whole, parts = ([c.verdict for c in self.checks if bool(c.segment) is of_part] for of_part in (False, True))
        return gate_outcome(whole, parts)

    @property
    def queries_needed(self) -> int | None:
        """Number of queries needed to show, with power 0.8, that an equal system is not worse; None if decided."""
        needed = [
            check.pair.queries_needed(self.margin)
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
            where = ", ".join(_describe_check(check) for check in checks if check.verdict == "worse")
            return f"worse: {where}"
        where = ", ".join(_describe_check(check) for check in checks if check.verdict not in PASSES)
        n = max(check.n_queries for check in checks)
        needed = self.queries_needed
        more = f", about {needed} needed" if needed is not None and needed > n else ""
        return (
            f"cannot tell whether it is worse by more than the margin of {self.margin:g} ({n} queries{more}): {where}"
        )

    def record(self) -> Record:
        """Return one row per check."""
        columns = [
            Column("metric", "ndcg{k:@}", "l"),
            *(Column("queries of", "{queries}", "l"), Column("queries", "{n_queries}")),
            Column("changed", "{n_changed:d}"),
            *(Column(BASE, "{baseline:.{digits}f}"), Column(NEW, "{new:.{digits}f}")),
            *(DIFFERENCE._replace(heading="difference"), INTERVAL, VERDICT._replace(heading="verdict")),
        ]
        rows = [{**check.row(), "queries": check.segment or "all"} for check in self.checks]
        return Record(columns, rows, caption=self.caption())

    def caption(self) -> str:
        """Return the settings of the checks, as the caption of the table."""
        n = len([check for check in self.checks if check.pair is not None])
        together = f" over all {n} checks" if n > 1 else ""
        tested = ["not tested: fewer than two queries have a value, and no value changed"]
        if self.comparisons:
            tested = next(iter(self.comparisons.values()))._how_tested()
        return f"{self.flavor}; margin {self.margin:g}; confidence {self.confidence:g}{together}; {'; '.join(tested)}"

    def notes(self) -> list[str]:
        """Return the notes below the table: changed queries, empty rankings, differing judged@k."""
        notes = list(self.changes)
        if self.unanswered.size:
            ids = self.unanswered.tolist()
            notes.append(f"queries for which the new run returns no documents: {list_ids(ids)}")
        notes += dict.fromkeys(note for comparison in self.comparisons.values() for note in comparison.notes)
        if self.saved is not None:
            days = (date.today() - self.saved).days
            notes.append(
                f"the baseline was saved on {self.saved} ({days} days ago); the more changes you select with it, "
                "the less it shows about other queries"
            )
        return [visible(note) for note in notes]

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
    confidence: float = 0.95,
    by: Any = None,
    on_change: OnChange = "refuse",
    drop_at_most: float = 0.1,
    seed: int = 0,
) -> Gate:
    """Compare a new evaluation with a baseline at each cut-off.

    Parameters
    ----------
    base, new : Evaluation
    margin : float
        Largest acceptable loss of NDCG.
    confidence : float, default 0.95
        Confidence level of all checks together, over all cut-offs and segments (Bonferroni).
    by : mapping, optional
        Names of segments, in the forms of ``compare``: by query id, or by column and query id. Queries with the same
        name are also checked, as a segment.
    on_change : {"refuse", "drop"}, default "refuse"
        Action if queries, labels, exclusions or weights changed: an error, or leaving those queries out.
    drop_at_most : float, default 0.1
        Largest fraction of the baseline's queries that "drop" may leave out.
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
    _require_same_definition(base, new)

    # Only the same queries with the same judgements can be compared.
    rows, changes = _find_changes(base, new)
    if changes and on_change == "refuse":
        raise GateError(
            f"{'; '.join(changes)}. They would distort the difference. Save a new baseline of the old system, or "
            "leave these queries out with --on-change drop."
            + " Documents without ids must be in the same order."
            * (not isinstance(base, RunEvaluation))
        )
    n_dropped = base.n_queries - len(rows)
    if not len(rows) or n_dropped > drop_at_most * base.n_queries:
        raise GateError(
            f"at most {percent(drop_at_most)} of the baseline's queries may be left out (--drop-at-most); got "
            f"{n_dropped} of {base.n_queries}: {'; '.join(changes)}. Save a new baseline of the old system."
        )
    changes = [f"{change}; these are left out" for change in changes] + _describe_dropped(base, rows[:, 0])
    columns = {} if by is None else slice_names_by_id(by, base.per_query.qid)
    slices = {name: [of_query[row] for row in rows[:, 0].tolist()] for name, of_query in columns.items()}
    base, new = base._at(rows[:, 0]), new._at(rows[:, 1])
    if new.cluster is None:  # the command line cannot pass clusters
        new = replace(new, cluster=base.cluster)

    # Divide the level among the cut-offs and, with `by`, between all queries and the segments.
    ks = base._totals.ks
    values, values_now = (side.per_query.ndcg.reshape(len(rows), -1) for side in (base, new))
    n_values = int((~np.isnan(values).any(axis=1)).sum())
    answered = not (base._unanswered().all() or new._unanswered().all())  # otherwise, compare refuses
    if answered and n_values < FEWEST_FOR_INTERVAL and np.array_equal(values, values_now, equal_nan=True):
        ks = ()
    families = len(ks) * (2 if slices else 1)
    shared = Settings(confidence=as_confidence(confidence), margin=margin, n_resamples=1, n_families=max(families, 1))
    comparisons = {
        k: compare(
            base,
            new,
            names=[BASE, NEW],
            margin=margin,
            by=slices or None,
            unjudged="note",
            confidence=max(shared.confidence, 1 - shared.level),  # nearly 0 must not round to 0
            seed=seed,
            k=k,
        )
        for k in ks
    }
    return Gate(
        margin=margin,
        confidence=confidence,
        flavor=base.flavor,
        comparisons=comparisons,
        changes=tuple(changes),
        unanswered=new.per_query.qid[new.per_query.n_retrieved == 0 if isinstance(new, RunEvaluation) else slice(0)],
    )


def _require_same_definition(base: Evaluation[Any], new: Evaluation[Any]) -> None:
    """Raise if the flavors, cut-offs or kinds of data differ."""
    one, other = _describe_definition(base), _describe_definition(new)
    differ = [f"{what} {one[what]} in the baseline and {other[what]} now" for what in one if one[what] != other[what]]
    if differ:
        raise GateError(f"baseline and new evaluation must have the same definition; got {'; '.join(differ)}.")


def _describe_definition(evaluation: Evaluation[Any]) -> dict[str, str]:
    """Return the settings that both evaluations must share, by name."""
    is_run = isinstance(evaluation, RunEvaluation)
    return {
        "flavor": str(evaluation.flavor.replace(k=None)),
        "cut-offs": ", ".join(map(str, evaluation._totals.ks)),
        "data": "judgements and a run" if is_run else "labels and scores",
        "queries=": evaluation.queries if isinstance(evaluation, RunEvaluation) else "",
        "exclude=": "given" if isinstance(evaluation, RunEvaluation) and evaluation.n_excluded is not None else "none",
    }


def _find_changes(base: Evaluation[Any], new: Evaluation[Any]) -> tuple[IntArray, list[str]]:
    """Return the rows of unchanged queries in the two evaluations, and descriptions of the changed ones."""
    ids, rows = rows_of_ids([base.per_query.qid, new.per_query.qid])
    shared = (rows >= 0).all(axis=1)
    changes = [
        ("queries missing from the new evaluation", rows[:, 1] < 0),
        ("queries that are not in the baseline", rows[:, 0] < 0),
    ]
    for name, values, values_now in zip(_COMPARED, _comparable_values(base), _comparable_values(new), strict=True):
        changes.append((f"queries whose {name} changed", shared & (values[rows[:, 0]] != values_now[rows[:, 1]])))
    changed = np.any([which for _, which in changes], axis=0)
    return rows[~changed], describe_changes(changes, ids)


_COMPARED = ("judgements", "exclusions", "weights")


def _comparable_values(evaluation: Evaluation[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return each query's digest of labels, digest of excluded documents, and weight."""
    judgements = judgement_digests(evaluation)
    if judgements is None:
        raise GateError(
            "both evaluations must hold their labels; one of ranked grades, or one that was pickled, does not. "
            "Evaluate labels and scores, or judgements and a run."
        )
    excluded = evaluation._excluded if isinstance(evaluation, RunEvaluation) else None
    return judgements, np.zeros(judgements.size) if excluded is None else excluded, evaluation.per_query.weight


def _describe_dropped(base: Evaluation[Any], kept: IntArray) -> list[str]:
    """Describe the baseline's values of the omitted queries, compared with those of all queries."""
    rows, ids = np.delete(np.arange(base.n_queries), kept), base.per_query.qid.tolist()
    if not rows.size:
        return []
    table = base.per_query.ndcg.reshape(base.n_queries, -1)
    left_out = base._totals.at(rows).mean(base.flavor)
    whole = base._totals.mean(base.flavor)
    changes = []
    for column, k in enumerate(base._totals.ks):
        some = ", ".join(f"{brief(ids[row])} {table[row, column]:.4f}" for row in rows[:5])
        changes.append(
            f"ndcg{at_cutoff(k)} of the omitted queries in the baseline: {some}{', ...' * (len(rows) > 5)} "
            f"(together {left_out[column]:.4f}; all {base.n_queries} queries {whole[column]:.4f})"
        )
    return changes


def _describe_check(check: Check) -> str:
    return f"ndcg{at_cutoff(check.k)}{f' of {visible(check.segment)}' * bool(check.segment)}"
