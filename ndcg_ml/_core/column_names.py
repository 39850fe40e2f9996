"""Decide which column of a table, or key of an object, holds what: the one that you name, or one with a usual name."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from ndcg_ml._plain.messages import brief, nearest

ColumnNames: TypeAlias = "Mapping[str, Hashable | list[Hashable]]"
"""Your names of the columns ``qid``, ``docno``, ``label`` and ``score``; a list has one for qrels and one for a run."""

_CONTENTS = {"qid": "topics", "docno": "documents", "label": "grades", "score": "scores"}

# Usual names without case, blanks, "_" and "-". Those of the second rank count if the table has none of the first.
_USUAL = {
    "qid": ("qid queryid topicid questionid userid requestid sessionid", "query question topic user"),
    "docno": (
        "docno docid documentid corpusid passageid chunkid productid articleid itemid movieid bookid answerid pid",
        "doc document item url",
    ),
    "label": ("label grade rel relevance relevancescore relscore relevancelabel rating judgment judgement", ""),
    "score": ("score similarity prediction", "rank"),
    # BEIR calls the grade a score. In JSON, a key may hold all documents of a topic, and "id" be that of a document.
    "label of qrels": ("", "score"),
    "docno of lists of qrels": ("relevant relevantids relevantdocids relevantdocs relevantdocuments", "ids"),
    "docno of lists of run": ("results retrieved ids", ""),
    "docno of documents": ("id", ""),
}
_SHOWN = 12  # columns in a message


def kind(meaning: Any) -> Any:
    """Return the kind of a column. Several columns of one kind have meanings such as ("score", "bm25")."""
    return meaning[0] if isinstance(meaning, tuple) else meaning


def column_names(columns: object, two_tables: bool = False) -> dict[str, Any]:
    """Return the caller's names of columns; those of qrels and of a run may be two.

    Raises
    ------
    TypeError, ValueError
        Not a mapping from the usual names.
    """
    if not isinstance(columns, Mapping):
        raise TypeError(
            'columns must be a mapping to the names of your columns, such as {"qid": "user_id", "docno": "item_id"}; '
            f"got {type(columns).__name__}."
        )
    unknown = [key for key in columns if key not in _CONTENTS]
    if unknown:
        raise ValueError(f"columns must have no other keys than {', '.join(_CONTENTS)}; got {brief(unknown[0])}.")
    both = {meaning: name for meaning, name in columns.items() if isinstance(name, list)}
    if any(not two_tables or len(name) != 2 for name in both.values()):
        raise ValueError(f"columns must have names, or lists of a name for qrels and one for a run; got {brief(both)}.")
    return dict(columns)


class Wanted(NamedTuple):
    """Columns to look for in a table.

    Attributes
    ----------
    meanings : sequence
        "qid", "docno", "label", "score", or meanings such as ("score", "bm25") for several columns of one kind.
    names : mapping
        The caller's names by meaning, which come first.
    within : sequence of str
        Kinds of the table, which have more usual names: "qrels", "lists of qrels", "lists of run", "documents".
    optional : sequence
        Meanings that may be missing. Grades of qrels may be, too, as in ``_are_pairs``.
    elsewhere : mapping
        The caller's names in the run, if these are qrels, and conversely.
    """

    meanings: Sequence[Any]
    names: Mapping[Any, Any]
    within: Sequence[str] = ()
    optional: Sequence[Any] = ()
    elsewhere: Mapping[Any, Any] = MappingProxyType({})

    def choose(self, source: str, has: Sequence[Any], error: type[ValueError] = ValueError) -> dict[Any, Any]:
        """Return the column of each meaning; `has` are the names of all columns.

        Raises
        ------
        ValueError
            A column is missing, repeated or has two meanings, or two columns have the same. The message begins with
            `source`, and the type is `error`.
        """
        given = {meaning: self.names[meaning] for meaning in self.meanings if self.names.get(meaning) is not None}
        others = [column for column in has if column not in given.values()]
        found: dict[Any, Any] = {}
        for meaning in self.meanings:
            if meaning in given:
                columns = [column for column in has if column == given[meaning] and column not in found.values()]
            else:
                columns = usual_columns(meaning, others, self.within)
            if len(columns) > 1:
                advice = f"Name one: columns={{{kind(meaning)!r}: {columns[0]!r}}}."
                if len(set(columns)) == 1 or "documents" in self.within:
                    advice = "Rename the others."
                both = _enumerate_columns(columns, {})
                raise error(f"{source} must name its {_CONTENTS[kind(meaning)]} once; got {both}. {advice}")
            if columns:
                found[meaning] = columns[0]
        are_pairs = "qrels" in self.within and (len(has) == 2 or _are_pairs(others, given))
        optional = [*self.optional, *["label"] * are_pairs]
        missing = [each for each in self.meanings if each not in found and (each in given or each not in optional)]
        if missing:
            raise error(f"{source} must name its {self._describe_missing(has, found, missing)}")
        return found

    def _describe_missing(self, has: Sequence[Any], found: Mapping[Any, Any], missing: Sequence[Any]) -> str:
        left = {_spelled(column): column for column in has if column not in found.values() and len(str(column)) > 2}
        whose, meant, names = [], [], []
        for meaning in missing:
            what, given = kind(meaning), self.names.get(meaning)
            usual = usual_columns(meaning, [*left.values()], self.within) if meaning in self.elsewhere else []
            words = _usual(what, (), 0, 1) if given is None else [given]
            match = next(filter(None, (nearest(_spelled(word), left, 0.75) for word in words)), None)
            whose.append(_CONTENTS[what] + f", not {brief(given)}" * (given is not None))
            several = [*given] if isinstance(given, tuple) else str(given).split(",")
            if len(several) == 2 and {*several} <= {*has}:
                names.append(f"{what!r}: {several}")
            elif usual or (match is None and given is not None and meaning in self.elsewhere):
                pair = [repr(self.elsewhere[meaning]), repr(usual[0]) if usual else "NAME"]
                names.append(f"{what!r}: [{', '.join(pair[:: 1 if 'run' in self.within else -1])}]")
            elif given is None:
                names.append(f"{what!r}: {'NAME' if match is None else repr(left.pop(match))}")
            elif match is not None:
                meant.append(repr(left.pop(match)))
        advice = f" Did you mean {' and '.join(meant)}?" * bool(meant)
        advice += f" Name yours: columns={{{', '.join(names)}}}." * (names != [] and "documents" not in self.within)
        if missing == ["score"] and "run" in self.within and usual_columns("label", has):
            advice += " Or are qrels and run swapped?"
        if missing == ["label"] and "docno" in found:
            advice += f" If each row has grade 1, name its documents: columns={{'docno': {found['docno']!r}}}."
        return f"{' and its '.join(whose)}; got {_enumerate_columns(has, found)}.{advice}"

    def are_ranks(self, columns: Mapping[Any, Any]) -> bool:
        """Return whether the column of scores was found by its name, rank: 1 is the best."""
        return self.names.get("score") is None and _spelled(columns.get("score", "")) == "rank"


def documents_of(table: str, names: Mapping[Any, Any]) -> Wanted:
    """Return the columns of "qrels", or of a "run"."""
    qrels, run = ({m: name[at] if isinstance(name, list) else name for m, name in names.items()} for at in (0, 1))
    own, others = (qrels, run) if table == "qrels" else (run, qrels)
    return Wanted(("qid", "docno", "label" if table == "qrels" else "score"), own, (table,), elsewhere=others)


def usual_columns(meaning: Any, columns: Sequence[Any], within: Sequence[str] = ()) -> list[Any]:
    """Return the columns whose names usually have this meaning: those of the first rank, if any."""
    for rank in (0, 1):
        usual = _usual(kind(meaning), within, rank)
        if some := [column for column in columns if _spelled(column) in usual]:
            return some
    return []


def _usual(what: str, within: Sequence[str], *ranks: int) -> list[str]:
    keys = [what, *(f"{what} of {each}" for each in within)]
    return " ".join(_USUAL[key][rank] for key in keys if key in _USUAL for rank in ranks).split()


def _spelled(column: Any) -> str:
    return re.sub(r"[\s_-]+", "", str(column)).casefold()


def _are_pairs(others: Sequence[Any], given: Mapping[Any, Any]) -> bool:
    """Return whether the rows of qrels without grades are pairs of grade 1.

    They are if the column of documents is named, or all columns hold topics or documents (or an index without a name).
    """
    ids = ["", *_usual("qid", (), 0, 1), *_usual("docno", (), 0, 1)]
    return "docno" in given or all(_spelled(column) in ids for column in others)


def _enumerate_columns(columns: Sequence[Any], found: Mapping[Any, Any]) -> str:
    known = {column: f" ({_CONTENTS[kind(meaning)]})" for meaning, column in found.items()}
    listed = [brief(column) + known.get(column, "") for column in columns[:_SHOWN]]
    return (", ".join(listed) or "none") + f" and {len(columns) - _SHOWN} others" * (len(columns) > _SHOWN)
