"""Read files as Python objects: scored rows (LETOR, CSV, JSONL, Parquet), and judgements with labels filled in.

Ids remain strings. They are not parsed as numbers, hashed or truncated. The error for a malformed line has the name of
the file and the number of the line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.column_names import ColumnNames, Wanted, column_names
from ndcg_ml._core.layout import FloatArray
from ndcg_ml._files.cells import read_column
from ndcg_ml._files.opening import (
    JOINED,
    AnyPath,
    DataFileError,
    as_text,
    decode_id,
    is_empty,
    numbered,
    wrong_line,
)
from ndcg_ml._files.read_run import Ids, RunLike, read_rows
from ndcg_ml._files.tables import table_columns
from ndcg_ml._files.trec import place_in
from ndcg_ml._plain.messages import brief

__all__ = ["DataFileError", "ScoredRows", "read_columns", "read_letor"]


_MAX_DIGITS = 18  # of the size of a query


# -- LETOR and SVMlight labels, one score per line ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ScoredRows:
    """Documents with label, score and query, one per row, as input of ``evaluate``.

    Attributes
    ----------
    y_true, y_score : ndarray of float64
    qid : ndarray
        The query of each row, as a string.
    doc_id : ndarray or None
    columns_read : dict
        The columns that were read, by meaning, if they have names.
    """

    y_true: FloatArray
    y_score: FloatArray
    qid: NDArray[Any]
    doc_id: NDArray[Any] | None = None
    columns_read: Mapping[str, str] = field(default_factory=dict)

    def arguments(self) -> dict[str, Any]:
        """Return keyword arguments for ``evaluate`` and functions with the same parameters."""
        return {"y_true": self.y_true, "y_score": self.y_score, "qid": self.qid, "doc_id": self.doc_id}


def read_letor(labels: AnyPath, scores: AnyPath) -> ScoredRows:
    r"""Read labels and queries from a LETOR/SVMlight file, and one score for each line from another file.

    Parameters
    ----------
    labels : path
        Lines of ``grade qid:ID index:value ... # comment``. Features and comments are ignored. If no line has a
        ``qid:``, query sizes are read from a file with the same name and ``.query`` appended, one integer per line
        (LightGBM's convention), and queries are numbered from 1.
    scores : path
        One number per line, in the order of `labels`. Either file may be compressed by gzip; blank lines are skipped.

    Returns
    -------
    ScoredRows
        ``qid`` holds strings.

    Raises
    ------
    DataFileError
        A line is malformed, only some lines have a ``qid:``, an id is not UTF-8, a grade is infinite, a score is NaN,
        a grade or score is an integer beyond 2^53, the files differ in length, or the query sizes do not sum to this
        length.
    OSError
        A file cannot be read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     labels, scores = Path(folder, "test.txt"), Path(folder, "scores.txt")
    ...     _ = labels.write_text("2 qid:7 1:0.5 # first\n0 qid:7 1:0.1\n"), scores.write_text("0.3\n0.9\n")
    ...     rows = read_letor(labels, scores)
    >>> rows.y_true.tolist(), rows.y_score.tolist(), rows.qid.tolist()
    ([2.0, 0.0], [0.3, 0.9], ['7', '7'])
    """
    grades, qid = _read_letor_rows(labels)
    return ScoredRows(grades, _read_scores(scores, grades.size, labels), qid)


def _read_letor_rows(path: AnyPath) -> tuple[FloatArray, NDArray[Any]]:
    """Read the grade and the query id of each line of a LETOR/SVMlight file, ids as strings."""
    numbers: list[int] = []
    grades: list[str] = []
    queries: list[str] = []
    for number, line in numbered(path):
        tokens = line.partition(b"#")[0].split(None, 2)
        if not tokens:
            continue
        given = len(tokens) > 1 and tokens[1].startswith(b"qid:")
        if given != (len(queries) == len(grades)) and grades:
            raise wrong_line(path, number, "either all lines or none must have qid:ID after the grade", line)
        if given:
            queries.append(decode_id(path, number, tokens[1].removeprefix(b"qid:")))
            if not queries[-1]:
                raise wrong_line(path, number, "qid: must be followed by the id of the query, without a blank", line)
            rest = tokens[-1]
            if b"qid:" in rest and len(tokens) > 2 and any(token.startswith(b"qid:") for token in rest.split()):
                raise wrong_line(path, number, f"qid: must appear once in a line. {JOINED}", line)
        numbers.append(number)
        grades.append(as_text(tokens[0]))
    if not grades:
        raise DataFileError(f"{path}: has no rows.")
    qid = _string_ids(queries) if queries else _read_query_sizes(path, len(grades))
    return read_column(place_in(path, numbers), "the grade at its start", grades, "label", text=True), qid


def _read_query_sizes(labels: AnyPath, n_rows: int) -> NDArray[Any]:
    name = os.fspath(labels)
    side = f"{name}.query"
    if not os.path.isfile(side):
        raise DataFileError(
            f"{name}: must have qid:ID in every line, or a file {os.path.basename(side)} of query sizes in the same "
            "folder; got neither."
        )
    sizes: list[int] = []
    for number, line in numbered(side):
        token = line.strip()
        # No file has 10^18 rows, and Python cannot parse integers of more than 4300 digits.
        if token and not (token.isdigit() and len(token) <= _MAX_DIGITS and int(token)):
            raise wrong_line(side, number, "a line must be a query size, a positive integer", line)
        if token:
            sizes.append(int(token))
    if sum(sizes) != n_rows:
        raise DataFileError(
            f"{side}: sizes must sum to the {n_rows} rows of {os.path.basename(name)}; got {sum(sizes)}."
        )
    return np.repeat(_string_ids(str(i) for i in range(1, len(sizes) + 1)), sizes)


def _read_scores(path: AnyPath, n_rows: int, labels: AnyPath) -> FloatArray:
    lines = [(number, as_text(line.strip())) for number, line in numbered(path) if line.strip()]
    place = place_in(path, [number for number, _ in lines])
    scores: FloatArray = read_column(place, "a line", [text for _, text in lines], "score", text=True)
    if len(scores) != n_rows:
        raise DataFileError(
            f"{path}: must have one score for each of the {n_rows} rows of {labels}; got {len(scores)}."
        )
    return scores


# -- CSV and Parquet ------------------------------------------------------------------------------------------------


def read_columns(path: AnyPath, columns: ColumnNames | None = None) -> ScoredRows:
    r"""Read rows from columns of a CSV, JSON or Parquet file: query, label, score and optionally document id.

    Parameters
    ----------
    path : path
        A Parquet file (recognised by its first bytes), which needs pyarrow; JSONL, with one object per line, or an
        array of objects; otherwise CSV with a header line, separated by tabs if the header has one, by semicolons if it
        has one and no comma, and otherwise by commas. Text may be compressed by gzip. Other columns are ignored.
    columns : mapping, optional
        Names of your columns, such as ``{"qid": "session", "score": "bm25"}``; the keys are ``qid``, ``docno``,
        ``label`` and ``score``. Default: the columns with usual names, such as these (docs/runs.md).

    Returns
    -------
    ScoredRows
        ``qid`` and ``doc_id`` are strings; integers in JSON and Parquet are converted. A label that is empty, null or
        ``nan`` is NaN, for an unjudged document. ``columns_read`` says which columns were read.

    Raises
    ------
    DataFileError
        A column is missing or repeated, or two have one meaning; a CSV line has more or fewer fields than the header; a
        line is not JSON or lacks a key; a label or score is not a number, or an integer beyond 2^53; a score is
        missing or NaN; an id is missing, empty, not UTF-8 or contains a line end; or there are no rows.
    ImportError
        The file is Parquet, and pyarrow is not installed.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "rows.csv")
    ...     _ = path.write_text("query_id,label,bm25\n07,2,0.3\n07,,0.9\n")
    ...     rows = read_columns(path, {"score": "bm25"})
    >>> rows.qid.tolist(), rows.y_true.tolist(), rows.y_score.tolist()
    (['07', '07'], [2.0, nan], [0.3, 0.9])
    >>> rows.columns_read
    {'qid': 'query_id', 'label': 'label', 'score': 'bm25'}
    """
    [rows] = score_columns(path, columns or {})
    return rows


def score_columns(path: AnyPath, columns: ColumnNames, scores: Sequence[str] = ()) -> list[ScoredRows]:
    """Read rows for each of several score columns, as ``read_columns`` does for one. The file is read once."""
    names: dict[Any, Any] = column_names(columns)
    named: list[Any] = [("score", score) for score in scores] or ["score"]
    names |= {("score", score): score for score in scores}
    wanted = Wanted(("qid", "docno", "label", *named), names, optional=("docno",))
    read, values = table_columns(path, wanted)
    qid = _string_ids(values["qid"])
    docno = _string_ids(values["docno"]) if "docno" in values else None
    sign = -1.0 if wanted.are_ranks(read) else 1.0
    return [ScoredRows(values["label"], sign * values[each], qid, docno, read) for each in named]


# -- read the labels filled in after ``judge_next``, and join them with the judgements --------------------------------

Judgements = dict[Any, dict[Any, float]]


def with_labels(
    qrels: RunLike,
    filled: Iterable[AnyPath | Mapping[Any, Mapping[Any, float]]],
    *,
    columns: ColumnNames | None = None,
) -> Judgements:
    """Return judgements as a dict, with labels that were filled in. Ids from files are strings.

    Parameters
    ----------
    qrels, columns
        As for ``evaluate_run``.
    filled : iterable of paths or mappings
        Files of ``ToJudge.to_jsonl``, or labels by query and document. A label that is still null is skipped.

    Raises
    ------
    DataFileError
        A file has a malformed line.
    ValueError
        A document has two labels in one source, or different ones in two.
    """
    judgements = read_judgements(qrels, columns or {})
    # Ids from files are strings, but those of the judgements may be integers.
    qids_are_text = isinstance(next(iter(judgements)), str)
    documents_are_text = isinstance(next(chain.from_iterable(judgements.values()), ""), str)
    for source in filled:
        labels = source if isinstance(source, Mapping) else read_filled(source)
        for written_qid, documents in labels.items():
            qid = _as_written(written_qid, qids_are_text)
            known = judgements.setdefault(qid, {})
            for written, label in documents.items():
                document = _as_written(written, documents_are_text)
                if known.setdefault(document, label) != label:
                    raise ValueError(
                        f"a document must have one label; {brief(document)} of {brief(qid)} has "
                        f"{_every_digit(known[document])} and {_every_digit(label)}. Correct one of them."
                    )
    return judgements


def read_filled(path: AnyPath) -> Judgements:
    """Return the labels that were filled in a file of ``ToJudge.to_jsonl``, which may be empty."""
    return {} if is_empty(path) else read_judgements(path, {})


def _as_written(one_id: str | int, as_text: bool) -> str | int:
    if as_text:
        return str(one_id)
    return int(one_id) if re.fullmatch("0|-?[1-9][0-9]*", str(one_id)) else one_id


def read_judgements(qrels: RunLike, columns: ColumnNames) -> Judgements:
    """Return judgements as a dict, without unjudged documents.

    Raises
    ------
    ValueError
        A document has two labels.
    """
    ids = Ids()
    rows = read_rows("qrels", qrels, ids, columns)
    topics = ids.topics.names(np.arange(len(ids.topics))).tolist()
    judgements: Judgements = {topics[topic]: {} for topic in rows.topics.tolist()}
    for at, (topic, value) in enumerate(zip(rows.topic.tolist(), rows.value.tolist(), strict=True)):
        document, of_topic = ids.kind.decode(ids.documents[rows.first + at]), judgements[topics[topic]]
        if document in of_topic:
            raise ValueError(f"{rows.place_of(at)}: {brief(document)} is labelled twice in {brief(topics[topic])}.")
        of_topic[document] = value
    return {topic: {d: value for d, value in of.items() if value == value} for topic, of in judgements.items()}


def _every_digit(label: float) -> str:
    return repr(float(label)).removesuffix(".0")


def qrels_text(judgements: Mapping[Any, Mapping[Any, float]]) -> str:
    """Format judgements as a TREC qrels file.

    Raises
    ------
    ValueError
        The format cannot represent an id: it contains blanks or NUL, or a topic begins a comment.
    """
    lines = []
    for qid, documents in judgements.items():
        for document, label in documents.items():
            words = [str(qid), "0", str(document), _every_digit(label)]
            line = " ".join(words)
            # Only blanks in ASCII separate columns.
            is_split = line.encode().split() == [word.encode() for word in words]
            if not is_split or line.startswith(("#", "\ufeff")) or "\0" in line:
                raise ValueError(
                    "ids in TREC qrels must not be empty or contain blanks or NUL, and topics not begin with # or "
                    f"U+FEFF; got {brief(qid)} and {brief(document)}. Keep the labels as JSONL."
                )
            lines.append(f"{line}\n")
    return "".join(lines)


# -- ids ------------------------------------------------------------------------------------------------------------


def _string_ids(ids: Iterable[str]) -> NDArray[Any]:
    """Return ids as an array of shared Python strings. NumPy's own would all be as wide as the longest."""
    once: dict[str, str] = {}
    return np.array([once.setdefault(query, query) for query in ids], dtype=object)
