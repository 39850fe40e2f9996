"""Read the labels filled in after ``judge_next``, and join them with the judgements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ndcg_ml._data.frames import column_names
from ndcg_ml._files.json_text import objects
from ndcg_ml._files.lines import AnyPath, DataFileError
from ndcg_ml._files.run_rows import Ids, RunLike, read_rows
from ndcg_ml._one_line import brief

Judgements = dict[Any, dict[Any, float]]


def read_filled(path: AnyPath) -> Judgements:
    """Read the labels that were filled in a file of ``ToJudge.to_jsonl``, as ``{qid: {docno: label}}``.

    Lines whose label is still null are skipped.

    Raises
    ------
    DataFileError
        A line is not a JSON object with ``qid``, ``docno`` and ``label``, a label is not a finite number, or a
        document is labelled twice.
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
        if isinstance(label, bool) or not isinstance(label, (int, float)) or not np.isfinite(label):
            raise DataFileError(
                f"{path}, line {number}: label must be a number, or null if it is missing; got {brief(label)}."
            )
        of_query = labels.setdefault(qid, {})
        if document in of_query:
            raise DataFileError(f"{path}, line {number}: {brief(document)} is labelled twice in {brief(qid)}.")
        of_query[document] = float(label)
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
    for source in filled:
        labels = source if isinstance(source, Mapping) else read_filled(source)
        for written_qid, documents in labels.items():
            qid = _match_type(judgements, written_qid)
            known = judgements.setdefault(qid, {})
            for written, label in documents.items():
                document = _match_type(known, written)
                if known.setdefault(document, label) != label:
                    raise ValueError(
                        f"a document must have one label; {brief(document)} of {brief(qid)} has {known[document]:g} "
                        f"and {label:g}. Correct one of them."
                    )
    return judgements


def _match_type(known: Mapping[Any, Any], written: Any) -> Any:
    """Convert an id to the type of the known ids. JSON may have integers for ids that are strings."""
    return str(written) if any(isinstance(key, str) for key in known) else written


def qrels_text(judgements: Mapping[Any, Mapping[Any, float]]) -> str:
    """Format judgements as a TREC qrels file.

    Raises
    ------
    ValueError
        An id is empty or contains blanks, which the format cannot represent.
    """
    lines = []
    for qid, documents in judgements.items():
        for document, label in documents.items():
            if not all(str(one_id) and len(str(one_id).split()) == 1 for one_id in (qid, document)):
                raise ValueError(
                    f"ids must not be empty or contain blanks in TREC qrels; got {brief(qid)} and {brief(document)}. "
                    "Keep the labels as JSONL."
                )
            lines.append(f"{qid} 0 {document} {label:g}\n")
    return "".join(lines)
