"""Read the labels filled in after ``judge_next``, and join them with the judgements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import numpy as np

from ndcg_ml._core.frames import column_names
from ndcg_ml._core.one_line import brief
from ndcg_ml._files.cells import parse_json_cell
from ndcg_ml._files.json_text import objects
from ndcg_ml._files.opening import AnyPath, DataFileError
from ndcg_ml._files.run_rows import Ids, RunLike, read_rows

Judgements = dict[Any, dict[Any, float]]


def read_filled(path: AnyPath) -> Judgements:
    """Read the labels that were filled in a file of ``ToJudge.to_jsonl``, as ``{qid: {docno: label}}``.

    Lines whose label is still null are skipped.

    Raises
    ------
    DataFileError
        A line is not a JSON object with ``qid``, ``docno`` and ``label``, a label is not a finite number or is an
        integer beyond 2^53, or a document is labelled twice.
    """
    labels: Judgements = {}
    for number, line in objects(path):
        missing = [key for key in ("qid", "docno", "label") if key not in line]
        if missing:
            raise DataFileError(
                f"{path}, line {number}: must have the keys qid, docno and label; {missing[0]} is missing."
            )
        qid, document, label = line["qid"], line["docno"], line["label"]
        for key, value in (("qid", qid), ("docno", document)):
            if isinstance(value, bool) or not isinstance(value, (str, int)):
                raise DataFileError(f"{path}, line {number}: {key} must be a string or an integer; got {brief(value)}.")
        if label is None:
            continue
        if isinstance(label, bool) or not isinstance(label, (int, float)):
            raise DataFileError(
                f"{path}, line {number}: label must be a number, or null if it is missing; got {brief(label)}."
            )
        of_query = labels.setdefault(qid, {})
        if document in of_query:
            raise DataFileError(f"{path}, line {number}: {brief(document)} is labelled twice in {brief(qid)}.")
        of_query[document] = parse_json_cell(path, number, "label", label, "grade")
    return labels


def with_labels(qrels: RunLike, filled: Iterable[AnyPath | Mapping[Any, Mapping[Any, float]]]) -> Judgements:
    """Return judgements as a dict, with labels that were filled in. Ids from files are strings.

    Parameters
    ----------
    qrels : mapping, path or data frame
        As for ``evaluate_run``.
    filled : iterable of paths or mappings
        Files of ``ToJudge.to_jsonl``, or labels by query and document.

    Raises
    ------
    DataFileError
        A file has a malformed line.
    ValueError
        A document has two different labels.
    """
    ids = Ids()
    rows = read_rows("qrels", qrels, ids, column_names({}))
    topics = ids.topics.names(np.arange(len(ids.topics))).tolist()
    judgements: Judgements = {topics[topic]: {} for topic in rows.topics.tolist()}
    for at, (topic, value) in enumerate(zip(rows.topic.tolist(), rows.value.tolist(), strict=True)):
        judgements[topics[topic]][ids.kind.decode(ids.documents[rows.first + at])] = value
    # JSON may have integers for ids that are strings. The ids of the judgements have one type.
    qids_are_text = isinstance(next(iter(judgements)), str)
    documents_are_text = isinstance(next(chain.from_iterable(judgements.values()), None), str)
    for source in filled:
        labels = source if isinstance(source, Mapping) else read_filled(source)
        for written_qid, documents in labels.items():
            qid = str(written_qid) if qids_are_text else written_qid
            known = judgements.setdefault(qid, {})
            for written, label in documents.items():
                document = str(written) if documents_are_text else written
                if known.setdefault(document, label) != label:
                    raise ValueError(
                        f"a document must have one label; {brief(document)} of {brief(qid)} has "
                        f"{_every_digit(known[document])} and {_every_digit(label)}. Correct one of them."
                    )
    return judgements


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
        if str(qid).startswith(("#", "\ufeff")):
            raise ValueError(
                f"a topic must not begin with # or U+FEFF in TREC qrels; got {brief(qid)}. Keep the labels as JSONL."
            )
        for document, label in documents.items():
            coded = [str(one_id).encode() for one_id in (qid, document)]
            # Only blanks in ASCII separate columns.
            if b" ".join(coded).split() != coded or b"\0" in b"".join(coded):
                raise ValueError(
                    f"ids must not be empty or contain blanks or NUL in TREC qrels; got {brief(qid)} and "
                    f"{brief(document)}. Keep the labels as JSONL."
                )
            lines.append(f"{qid} 0 {document} {_every_digit(label)}\n")
    return "".join(lines)
