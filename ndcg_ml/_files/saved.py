"""Write evaluations to files and read them back.

A file is JSON with one line per query, so that you can review the diff of two baselines, and holds a digest of all its
values.
"""

from __future__ import annotations

import json
import os
import platform
from dataclasses import replace
from datetime import date
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.checks import cutoffs
from ndcg_ml._core.json_values import plain, unique_keys
from ndcg_ml._core.layout import as_objects
from ndcg_ml._core.mean import Totals
from ndcg_ml._core.one_line import brief, brief_text
from ndcg_ml._core.queries import Scored
from ndcg_ml._core.ranking import Ranking
from ndcg_ml._files.byte_ids import Names, digests
from ndcg_ml._files.opening import AnyPath, DataFileError, open_with_head, whole_text, write_atomically
from ndcg_ml._files.read_run import id_array
from ndcg_ml._files.run_result import RunEvaluation, as_run_evaluation
from ndcg_ml._statistics.verdict import as_margin
from ndcg_ml.flavor import Flavor
from ndcg_ml.results.evaluation import Evaluation, evaluation_from_totals

# -- JSON with a digest of its values ---------------------------------------------------------------------------------


def digest(values: dict[str, Any]) -> str:
    """Return a digest of the values. It does not depend on the layout of the text, such as line ends."""
    return sha256(json.dumps(values, allow_nan=False, sort_keys=True).encode()).hexdigest()


def read_digested(text: str | bytes, name: str, version: int) -> dict[str, Any]:
    """Return the values of an object that has a digest and, under `name`, this version of the format.

    Raises
    ------
    ValueError, RecursionError
        The text is not such an object. The message gives the reason, without the name of the file.
    """
    stored = json.loads(text, object_pairs_hook=unique_keys)
    if not isinstance(stored, dict) or name not in stored:
        raise ValueError(f"it has no key {name!r}")
    if type(stored[name]) is not int or stored[name] != version:
        raise ValueError(f"its format is {brief(stored[name])}, and this version reads format {version}: save it again")
    if stored.pop("digest", None) != digest(stored):
        raise ValueError("its values do not match its digest: it was edited, merged or damaged")
    return stored


# -- digests of each query's judgements, which show what changed between evaluations ----------------------------------


def judgement_digests(evaluation: Evaluation[Any]) -> NDArray[np.uint64] | None:
    """Digest each query's pairs of document and label; None if the documents are not known.

    Documents are identified by their ids, or without ids by their positions in the query. Unlabelled documents are
    ignored. Raises a ValueError if the evaluated arrays were modified since.
    """
    if isinstance(evaluation, RunEvaluation):
        return evaluation._judgements
    if evaluation._digests is not None or evaluation._scored is None or not evaluation._scored.rows_are_documents:
        return evaluation._digests
    scored = evaluation._scored
    scores = scored.scores.reshape(scored.queries.labels.shape)
    now = Ranking(evaluation.flavor, evaluation.k, scored.queries).totals(scores)
    if not all(map(np.array_equal, (now.dcg, now.ideal), (evaluation._totals.dcg, evaluation._totals.ideal))):
        raise ValueError(
            "the labels and scores must be those that were evaluated; the arrays were modified since. Evaluate "
            "them again, or pass copies."
        )
    found = np.zeros(scored.queries.n_queries, dtype=np.uint64)
    if scored.queries.names is not None:
        documents = scored.queries.names(scored.queries.groups.rows())
        found += _pair_digests(scored, [str(document) for document in documents])
    if scored.queries.names is None or evaluation.flavor.ideal == "given":  # the ideal depends on the row order
        groups = scored.queries.groups
        found += _pair_digests(
            scored, (np.arange(groups.sizes.sum()) - np.repeat(groups.starts, groups.sizes)).tolist()
        )
    return found


def _pair_digests(scored: Scored, documents: list[Any]) -> NDArray[np.uint64]:
    queries, labels = scored.queries.groups.codes(), scored.labels
    judged = np.flatnonzero(~np.isnan(labels))
    names = Names()
    names.extend([str(documents[row]).encode("utf-8", "surrogatepass") for row in judged.tolist()])
    return digests(names, slice(0, len(names)), queries[judged], labels[judged], scored.queries.n_queries)


_FORMAT = 3
_COUNTS = ("n_docs", "n_judged", "n_relevant", "tied")
_MOST_BYTES = 1 << 26  # unpacked bytes; a small gzip file may unpack to any size


# -- writing ----------------------------------------------------------------------------------------------------------


def write(evaluation: Evaluation[Any], path: AnyPath, qrels: AnyPath | None, margin: float | None = None) -> None:
    """Write an evaluation. The path `qrels` of its judgements is stored if it is inside the file's folder."""
    place = None if qrels is None else _relative_path(path, qrels)
    write_atomically(path, _to_text(evaluation, place, as_margin(margin, 1.0)))


def _relative_path(path: AnyPath, qrels: AnyPath) -> str | None:
    """Return the path of `qrels` relative to the saved file's folder, with slashes; None if outside it."""
    folder = os.path.dirname(os.path.abspath(os.fspath(path)))
    try:
        place = os.path.relpath(os.fspath(qrels), folder).replace(os.sep, "/")
    except ValueError:  # another drive
        return None
    return None if place.split("/")[0] == ".." else place


def _to_text(evaluation: Evaluation[Any], qrels: str | None, margin: float | None) -> str:
    from ndcg_ml import __version__

    # The file stores the flavor as text, which cannot represent a callable.
    totals, table, flavor = evaluation._totals, evaluation.per_query, evaluation.flavor
    if not isinstance(flavor.gain, (str, tuple)) or not isinstance(flavor.discount, str):
        raise ValueError(
            f"gain and discount must not be callables in an evaluation that is saved; got {flavor}. Choose named "
            "ones, or a table of gains."
        )
    # Each row holds the unrounded totals of a query, so that a loaded evaluation is bitwise identical.
    ids = [_check_storable(query, "query ids") for query in table.qid.tolist()]
    ndcg = table.ndcg.reshape(len(ids), -1)
    judgements = _to_hexadecimal(judgement_digests(evaluation), len(ids))
    rows: list[dict[str, Any]] = [
        {
            "qid": qid,
            "ndcg": plain(ndcg[at].tolist()),
            "dcg": totals.dcg[at].tolist(),
            "idcg": totals.ideal[at].tolist(),
            "weight": None if totals.weight is None else float(totals.weight[at]),
            **{name: int(table[name][at]) for name in _COUNTS},
            "labels": judgements[at],
        }
        for at, qid in enumerate(ids)
    ]
    if evaluation.cluster is not None:
        for row, cluster in zip(rows, evaluation.cluster.tolist(), strict=True):
            row["cluster"] = _check_storable(cluster, "clusters")
    # The rows of a run also hold judged@k and a digest of the excluded documents.
    run = None
    if isinstance(evaluation, RunEvaluation):
        judged = evaluation.per_query.judged.reshape(len(ids), -1)
        excluded = _to_hexadecimal(evaluation._excluded, len(ids))
        for at, row in enumerate(rows):
            row["n_retrieved"] = int(evaluation.per_query.n_retrieved[at])
            row["judged"] = plain(judged[at].tolist())
            row["excluded"] = excluded[at]
        run = {
            "queries": evaluation.queries,
            "qrels_only": [_check_storable(topic, "query ids") for topic in evaluation.qrels_only.tolist()],
            "run_only": [_check_storable(topic, "query ids") for topic in evaluation.run_only.tolist()],
            "n_excluded": evaluation.n_excluded,
        }
    # The value is redundant, but readers of the file look for it at the top.
    values = evaluation.value if isinstance(evaluation.value, dict) else {evaluation.k: evaluation.value}
    head = {
        "ndcg_ml_evaluation": _FORMAT,
        "flavor": str(flavor),
        "k": list(evaluation.k) if isinstance(evaluation.k, tuple) else evaluation.k,
        "value": plain(list(values.values())),
        "saved": date.today().isoformat(),
        "versions": {"ndcg_ml": __version__, "numpy": np.__version__, "python": platform.python_version()},
        "qrels": qrels,
        "margin": margin,
        "run": run,
    }
    head["digest"] = digest({**head, "per_query": rows})
    # One line per query, so that version control shows which queries changed.
    lines = [f"  {json.dumps(name)}: {json.dumps(value, allow_nan=False)}," for name, value in head.items()]
    body = ",\n".join(f"    {json.dumps(row, allow_nan=False)}" for row in rows)
    return "\n".join(["{", *lines, '  "per_query": [', *[body] * bool(rows), "  ]", "}", ""])


def _check_storable(value: object, what: str) -> str | int:
    if type(value) is int or isinstance(value, str):
        return value
    raise TypeError(
        f"{what} must be strings or integers to be saved; got {brief(value)} of type {type(value).__name__}. Evaluate "
        "with strings, for example made by str()."
    )


def _to_hexadecimal(digests: NDArray[np.uint64] | None, n: int) -> list[str | None]:
    return [None] * n if digests is None else [f"{digest:016x}" for digest in digests.tolist()]


# -- reading ----------------------------------------------------------------------------------------------------------


class Saved(NamedTuple):
    """A saved evaluation, the relative path of its judgements and the margin if they were stored, and the date."""

    evaluation: Evaluation[Any]
    qrels: str | None
    margin: float | None
    date: date


def read(path: AnyPath) -> Saved:
    """Read a saved evaluation.

    Raises
    ------
    DataFileError
        The file is not a saved evaluation in the current format.
    OSError
        The file cannot be read.
    """
    with open_with_head(path) as (_, file):
        text = whole_text(path, file, max(_MOST_BYTES, os.path.getsize(path)))
    try:
        stored = read_digested(text, "ndcg_ml_evaluation", _FORMAT)
        if not isinstance(stored["qrels"], (str, type(None))):
            raise TypeError(f"qrels must be a path or null; got {brief(stored['qrels'])}")
        margin = as_margin(stored.get("margin"), 1.0)  # files of earlier versions have none
        return Saved(_to_evaluation(stored), stored["qrels"], margin, date.fromisoformat(stored["saved"]))
    except (AttributeError, LookupError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        why = "it is not JSON" if isinstance(error, json.JSONDecodeError) else brief_text(str(error).rstrip("."))
        raise DataFileError(
            f"{path}: must be a file that Evaluation.save wrote; it could not be read: {why}."
        ) from error


def _to_evaluation(stored: dict[str, Any]) -> Evaluation[Any]:
    flavor, k, run = Flavor.parse(stored["flavor"]), stored["k"], stored["run"]
    ks, several = cutoffs(tuple(k) if isinstance(k, list) else k, flavor)
    if not isinstance(stored["per_query"], list) or not stored["per_query"]:
        raise TypeError(f"per_query must be a list of queries; got {brief(stored['per_query'])}")
    column = {name: [row.get(name) for row in stored["per_query"]] for name in stored["per_query"][0]}
    ids = column["qid"]
    totals = Totals(
        ks,
        id_array(ids),
        np.array(column["dcg"], dtype=np.float64),
        np.array(column["idcg"], dtype=np.float64),
        None if column["weight"][0] is None else np.array(column["weight"], dtype=np.float64),
    )
    counts = {name: np.array(column[name], dtype=np.int64) for name in _COUNTS}
    result = evaluation_from_totals(totals, flavor, several, counts)
    judgements = _from_hexadecimal(column["labels"])
    if "cluster" in column:
        result = replace(result, cluster=as_objects(column["cluster"]))
    if run is None:
        return replace(result, _digests=judgements)
    topics = id_array(run["qrels_only"]), id_array(run["run_only"])
    judged = np.array(column["judged"], dtype=np.float64)
    whole = as_run_evaluation(result, np.array(column["n_retrieved"]), judged, run["queries"], *topics)
    excluded = _from_hexadecimal(column["excluded"])
    return replace(whole, n_excluded=run["n_excluded"], _judgements=judgements, _excluded=excluded)


def _from_hexadecimal(stored: list[str | None]) -> NDArray[np.uint64] | None:
    """Return digests from their hexadecimal digits; None if they are unknown."""
    known = [int(digest, 16) for digest in stored if digest is not None]
    return np.array(known, dtype=np.uint64) if len(known) == len(stored) else None
