"""The saved form of an evaluation: what the file holds, and the digests that detect changes.

A file is JSON with one line per query, so that you can review the diff of two baselines, and holds a digest of all its
values.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping
from datetime import date
from hashlib import sha256
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.json_values import plain, unique_keys
from ndcg_ml._core.layout import as_objects
from ndcg_ml._core.mean_and_empty_queries import Totals
from ndcg_ml._core.per_query import PerQuery
from ndcg_ml._core.queries import Scored
from ndcg_ml._core.scores import MODIFIED, is_modified
from ndcg_ml._files.byte_ids import Names, digests
from ndcg_ml._files.opening import AnyPath, DataFileError, open_with_head, whole_text, write_atomically
from ndcg_ml._files.read_run import id_array
from ndcg_ml._plain.checks import cutoffs
from ndcg_ml._plain.messages import brief, brief_text
from ndcg_ml._statistics.verdict import as_margin
from ndcg_ml.flavor import Flavor

Result = TypeVar("Result")

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


def label_digests(scored: Scored, flavor: Flavor, totals: Totals) -> NDArray[np.uint64]:
    """Digest each query's pairs of document and label.

    Documents are identified by their ids, or without ids by their positions in the query. Unlabelled documents are
    ignored. Raises a ValueError if the evaluated arrays were modified since.
    """
    if is_modified(scored, totals, flavor):
        raise ValueError(MODIFIED)
    found = np.zeros(scored.queries.n_queries, dtype=np.uint64)
    if scored.queries.names is not None:
        documents = scored.queries.names(scored.queries.groups.rows())
        found += _pair_digests(scored, [str(document) for document in documents])
    if scored.queries.names is None or flavor.ideal == "given":  # the ideal depends on the row order
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


class Stored(NamedTuple):
    """What a file holds of an evaluation.

    Attributes
    ----------
    totals, flavor, several
        DCG and ideal DCG of the queries, the flavor, and whether there are several cut-offs.
    table : PerQuery, or mapping of its columns
    labels, excluded : ndarray or None
        A digest of each query's labels and of its excluded documents; None if they are unknown.
    cluster : ndarray or None
    run : mapping or None
        Of a run: which topics were evaluated, those on one side only, and the number of excluded documents.
    """

    totals: Totals
    flavor: Flavor
    several: bool
    table: PerQuery | Mapping[str, NDArray[Any]]
    labels: NDArray[np.uint64] | None
    cluster: NDArray[Any] | None = None
    run: Mapping[str, Any] | None = None
    excluded: NDArray[np.uint64] | None = None


# -- writing ----------------------------------------------------------------------------------------------------------


def write(stored: Stored, values: list[float], path: AnyPath, qrels: AnyPath | None, margin: float | None) -> None:
    """Write an evaluation. The path `qrels` of its judgements is stored if it is inside the file's folder."""
    place = None if qrels is None else _relative_path(path, qrels)
    write_atomically(path, _to_text(stored, values, place, as_margin(margin, 1.0)))


def _relative_path(path: AnyPath, qrels: AnyPath) -> str | None:
    """Return the path of `qrels` relative to the saved file's folder, with slashes; None if outside it."""
    folder = os.path.dirname(os.path.abspath(os.fspath(path)))
    try:
        place = os.path.relpath(os.fspath(qrels), folder).replace(os.sep, "/")
    except ValueError:  # another drive
        return None
    return None if place.split("/")[0] == ".." else place


def _to_text(stored: Stored, values: list[float], qrels: str | None, margin: float | None) -> str:
    from ndcg_ml import __version__

    # The file stores the flavor as text, which cannot represent a callable.
    totals, table, flavor, run = stored.totals, stored.table, stored.flavor, stored.run
    if not isinstance(flavor.gain, (str, tuple)) or not isinstance(flavor.discount, str):
        raise ValueError(
            f"gain and discount must not be callables in an evaluation that is saved; got {flavor}. Choose named "
            "ones, or a table of gains."
        )
    # Each row holds the unrounded totals of a query, so that a loaded evaluation is bitwise identical.
    ids = [_check_storable(query, "query ids") for query in table["qid"].tolist()]
    ndcg = table["ndcg"].reshape(len(ids), -1)
    labels = _to_hexadecimal(stored.labels, len(ids))
    rows: list[dict[str, Any]] = [
        {
            "qid": qid,
            "ndcg": plain(ndcg[at].tolist()),
            "dcg": totals.dcg[at].tolist(),
            "idcg": totals.ideal[at].tolist(),
            "weight": None if totals.weight is None else float(totals.weight[at]),
            **{name: int(table[name][at]) for name in _COUNTS},
            "labels": labels[at],
        }
        for at, qid in enumerate(ids)
    ]
    if stored.cluster is not None:
        for row, cluster in zip(rows, stored.cluster.tolist(), strict=True):
            row["cluster"] = _check_storable(cluster, "clusters")
    # The rows of a run also hold judged@k and a digest of the excluded documents.
    if run is not None:
        judged, n_retrieved = table["judged"].reshape(len(ids), -1), table["n_retrieved"].tolist()
        excluded = _to_hexadecimal(stored.excluded, len(ids))
        for at, row in enumerate(rows):
            row |= {"n_retrieved": n_retrieved[at], "judged": plain(judged[at].tolist()), "excluded": excluded[at]}
        one_sided = {
            side: [_check_storable(topic, "query ids") for topic in run[side].tolist()]
            for side in ("qrels_only", "run_only")
        }
        run = {**run, **one_sided}
    head = {
        "ndcg_ml_evaluation": _FORMAT,
        "flavor": str(flavor),
        "k": list(totals.ks) if stored.several else totals.ks[0],
        "value": plain(values),  # redundant, but readers of the file look for it at the top
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


class Saved(NamedTuple, Generic[Result]):
    """A saved evaluation, the relative path of its judgements and the margin if they were stored, and the date."""

    evaluation: Result
    qrels: str | None
    margin: float | None
    date: date


def read(path: AnyPath, result: Callable[[Stored], Result]) -> Saved[Result]:
    """Read a saved evaluation, as the result of what is stored.

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
        return Saved(result(_columns(stored)), stored["qrels"], margin, date.fromisoformat(stored["saved"]))
    except (AttributeError, LookupError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        why = "it is not JSON" if isinstance(error, json.JSONDecodeError) else brief_text(str(error).rstrip("."))
        raise DataFileError(
            f"{path}: must be a file that Evaluation.save wrote; it could not be read: {why}."
        ) from error


def _columns(stored: dict[str, Any]) -> Stored:
    """Return the contents of a file as arrays."""
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
    table: dict[str, NDArray[Any]] = {name: np.array(column[name], dtype=np.int64) for name in _COUNTS}
    cluster = as_objects(column["cluster"]) if "cluster" in column else None
    labels, excluded = _from_hexadecimal(column["labels"]), None
    if run is not None:
        topics = {side: id_array(run[side]) for side in ("qrels_only", "run_only")}
        run = {"queries": run["queries"], **topics, "n_excluded": run["n_excluded"]}
        judged = np.array(column["judged"], dtype=np.float64)
        table |= {"n_retrieved": np.array(column["n_retrieved"]), "judged": judged}
        excluded = _from_hexadecimal(column["excluded"])
    return Stored(totals, flavor, several, table, labels, cluster, run, excluded)


def _from_hexadecimal(stored: list[str | None]) -> NDArray[np.uint64] | None:
    """Return digests from their hexadecimal digits; None if they are unknown."""
    known = [int(digest, 16) for digest in stored if digest is not None]
    return np.array(known, dtype=np.uint64) if len(known) == len(stored) else None
