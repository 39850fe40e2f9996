"""A saved evaluation: what ``Evaluation.save`` writes, and what a file must hold to be one that was written.

The file is JSON with one line per query, so that a difference of two baselines is read in a review. What the queries
were averaged from is stored, and everything else is computed again and compared with what the file says.
"""

from __future__ import annotations

import json
import math
import os
import platform
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml import _atomic
from ndcg_ml._checks import cutoffs
from ndcg_ml._files.lines import AnyPath, DataFileError, begun, whole_text
from ndcg_ml._kernel.totals import Totals
from ndcg_ml._one_line import shown, shown_text
from ndcg_ml._parts.text import gains_are_positive, ideal_can_be_beaten, must, unique_keys
from ndcg_ml.flavor import Flavor
from ndcg_ml.result import Evaluation, PerQuery, of_totals
from ndcg_ml.runs import RunEvaluation, RunPerQuery

_FORMAT = 1
_KEYS = ("ndcg_ml_evaluation", "flavor", "k", "value", "versions", "qrels", "run", "per_query")
_RUN = ("queries", "qrels_only", "run_only", "n_excluded")
_COUNTS = ("n_docs", "n_judged", "n_relevant", "tied")
_QUERY = ("qid", "ndcg", "dcg", "idcg", "exponent", "weight", *_COUNTS)
_QUERY_OF_RUN = (*_QUERY, "n_retrieved", "judged", "judgements")
_MOST = 2**63 - 1
_CLOSE = 1e-9
"""How far a number may be from the one that follows from the others: rounding of other machines."""


# -- writing ----------------------------------------------------------------------------------------------------------


def write(evaluation: Evaluation[Any], path: AnyPath, qrels: AnyPath | None) -> None:
    """Write an evaluation; `qrels` is the file of its judgements, whose place is kept relative to this file."""
    _atomic.write(path, _text_of(evaluation, None if qrels is None else _beside(path, qrels)))


def _beside(path: AnyPath, qrels: AnyPath) -> str | None:
    """The place of the judgements as seen from the folder of the saved file, with slashes; None on another drive."""
    folder = os.path.dirname(os.path.abspath(os.fspath(path)))
    try:
        return os.path.relpath(os.fspath(qrels), folder).replace(os.sep, "/")
    except ValueError:
        return None


def _text_of(evaluation: Evaluation[Any], qrels: str | None) -> str:
    # The file names the flavor by its text, and a function has none that another process could read.
    totals, table, flavor = evaluation._totals, evaluation.per_query, evaluation.flavor
    if not isinstance(flavor.gain, (str, tuple)) or not isinstance(flavor.discount, str):
        raise ValueError(
            f"a flavor with a function of one's own has no text, so the evaluation cannot be saved; got {flavor}. Use "
            "a gain and a discount that have names."
        )
    # A row per query holds its totals as they are, with their exponent, so that a loaded evaluation has the same bits.
    ids = [_stored(query, "query ids") for query in table.qid.tolist()]
    ndcg = table.ndcg.reshape(len(ids), -1)
    rows: list[dict[str, Any]] = [
        {
            "qid": qid,
            "ndcg": [_finite(value) for value in ndcg[at].tolist()],
            "dcg": totals.dcg[at].tolist(),
            "idcg": totals.ideal[at].tolist(),
            "exponent": 0 if totals.exponent is None else int(totals.exponent[at]),
            "weight": None if totals.weight is None else float(totals.weight[at]),
            **{name: int(table[name][at]) for name in _COUNTS},
        }
        for at, qid in enumerate(ids)
    ]
    if evaluation.cluster is not None:
        for row, cluster in zip(rows, evaluation.cluster.tolist(), strict=True):
            row["cluster"] = _stored(cluster, "clusters")
    # A run has more per query: the share judged, and a digest by which changed judgements are noticed.
    run = None
    if isinstance(evaluation, RunEvaluation):
        judged = evaluation.per_query.judged.reshape(len(ids), -1)
        for at, row in enumerate(rows):
            row["n_retrieved"] = int(evaluation.per_query.n_retrieved[at])
            row["judged"] = [_finite(fraction) for fraction in judged[at].tolist()]
            digests = evaluation._judgements
            row["judgements"] = None if digests is None else f"{int(digests[at]):016x}"
        run = {
            "queries": evaluation.queries,
            "qrels_only": [_stored(topic, "query ids") for topic in evaluation.qrels_only.tolist()],
            "run_only": [_stored(topic, "query ids") for topic in evaluation.run_only.tolist()],
            "n_excluded": evaluation.n_excluded,
        }
    # The value could be computed again, but it stands at the top for a person who opens the file.
    values = evaluation.value if isinstance(evaluation.value, dict) else {evaluation.k: evaluation.value}
    head = {
        "ndcg_ml_evaluation": _FORMAT,
        "flavor": str(flavor),
        "k": list(evaluation.k) if isinstance(evaluation.k, tuple) else evaluation.k,
        "value": [_finite(value) for value in values.values()],
        "versions": _versions(),
        "qrels": qrels,
        "run": run,
    }
    # One line per query, so that a version control system shows which queries changed.
    lines = [f"  {json.dumps(name)}: {json.dumps(value, allow_nan=False)}," for name, value in head.items()]
    body = ",\n".join(f"    {json.dumps(row, allow_nan=False)}" for row in rows)
    return "\n".join(["{", *lines, '  "per_query": [', *[body] * bool(rows), "  ]", "}", ""])


def _stored(value: object, what: str) -> str | int:
    if type(value) is int or isinstance(value, str):
        return value
    raise TypeError(
        f"{what} must be text or integers to be saved; got {shown(value)} of type {type(value).__name__}. Evaluate "
        "with text, for example made with str()."
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _versions() -> dict[str, str]:
    from ndcg_ml import __version__

    return {"ndcg_ml": __version__, "numpy": np.__version__, "python": platform.python_version()}


# -- reading ----------------------------------------------------------------------------------------------------------


def read(path: AnyPath) -> tuple[Evaluation[Any], str | None]:
    """The evaluation of a file, and where its judgements are as seen from the file's folder, if that is known.

    Raises
    ------
    DataFileError
        The file is not one that this version wrote.
    OSError
        The file cannot be read.
    """
    with begun(path) as (_, file):
        text = whole_text(path, file)
    try:
        return _evaluation(json.loads(text, object_pairs_hook=unique_keys, parse_constant=_refuse))
    except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise DataFileError(
            f"{path}: must be what Evaluation.save wrote; it could not be read: {shown_text(str(error).rstrip('.'))}."
        ) from error


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no number of JSON")


def _keys(stored: Any, names: tuple[str, ...], what: str) -> None:
    must(isinstance(stored, dict), f"{what} must be an object")
    must(sorted(stored) == sorted(names), f"the keys of {what} must be {', '.join(names)}")


def _evaluation(stored: Any) -> tuple[Evaluation[Any], str | None]:
    must(isinstance(stored, dict) and "ndcg_ml_evaluation" in stored, "it is no such object")
    version = stored["ndcg_ml_evaluation"]
    must(
        type(version) is int and version == _FORMAT,
        f"its format is {shown(version)}, and this version reads format {_FORMAT}",
    )
    _keys(stored, _KEYS, "the file")
    qrels = stored["qrels"]
    must(qrels is None or (isinstance(qrels, str) and qrels and "\0" not in qrels), "qrels must be the name of a file")

    # The definition: a flavor has the cut-off itself where there is one.
    must(isinstance(stored["flavor"], str), "flavor must be text")
    flavor, k = Flavor.parse(stored["flavor"]), stored["k"]
    ks, several = cutoffs(tuple(k) if isinstance(k, list) else k, flavor)
    must(several or flavor.k == ks[0], "its flavor has another cut-off")

    # The table of queries, from which everything else follows.
    rows, run = stored["per_query"], stored["run"]
    must(isinstance(rows, list) and rows, "per_query must be a list of queries")
    in_clusters = isinstance(rows[0], dict) and "cluster" in rows[0]
    for row in rows:
        _keys(row, (_QUERY if run is None else _QUERY_OF_RUN) + ("cluster",) * in_clusters, "a query")
    totals = _totals(flavor, ks, rows)
    counts = {name: _counts(rows, name) for name in _COUNTS}
    for least, most in (("n_relevant", "n_judged"), ("tied", "n_docs")):
        must((counts[least] <= counts[most]).all(), f"{least} is above {most}")
    result = of_totals(totals, flavor, several, **counts)
    _same(result.per_query.ndcg.reshape(len(rows), -1), _table(rows, "ndcg", len(ks)), "ndcg")
    values = result.value if isinstance(result.value, dict) else {ks[0]: result.value}
    _same(np.array([[*values.values()]]), _table([stored], "value", len(ks)), "value")
    if run is not None:
        result = _of_run(result, run, rows, len(ks))
    return replace(result, cluster=_clusters(rows) if in_clusters else None), qrels


def _totals(flavor: Flavor, ks: tuple[int | None, ...], rows: list[dict[str, Any]]) -> Totals:
    """DCG and ideal of every query, each of them and together such as the flavor can give."""
    dcg, ideal = (_table(rows, name, len(ks)) for name in ("dcg", "idcg"))
    must(np.isfinite(dcg).all() and np.isfinite(ideal).all(), "dcg and idcg must be numbers")
    exponents = [row["exponent"] for row in rows]
    must(all(type(exponent) is int and abs(exponent) <= _MOST for exponent in exponents), "exponent must be an integer")
    weights = [row["weight"] for row in rows]
    must(
        all(weight is None for weight in weights) or None not in weights, "weight must be given for all queries or none"
    )
    weight = None if weights[0] is None else _table([{"weight": weights}], "weight", len(rows))[0]
    must(weight is None or (np.isfinite(weight).all() and (weight >= 0).all() and weight.any()), "a weight is below 0")
    if gains_are_positive(flavor):
        must((dcg >= 0).all(), "a dcg is below 0, which its flavor cannot give")
        if not ideal_can_be_beaten(flavor):
            must((dcg <= ideal * (1 + _CLOSE)).all(), "a dcg is above its idcg, which its flavor cannot give")
    exponent = np.array(exponents, dtype=np.int64) if any(exponents) else None
    return Totals(ks, _ids([row["qid"] for row in rows], "qid"), dcg, ideal, exponent, weight)


def _ids(stored: Any, name: str) -> NDArray[Any]:
    must(isinstance(stored, list), f"{name} must be a list")
    kinds = set(map(type, stored))
    must(kinds in ({str}, {int}, set()), f"{name} must be text or integers, all of one kind")
    must(len(set(stored)) == len(stored), f"{name} must be different ids")
    # NumPy's own strings would lose a NUL at the end, and integers beyond 64 bits may become floats.
    lossy = any(query.endswith("\0") if isinstance(query, str) else abs(query) >= 2**63 for query in stored)
    return np.array(stored, dtype=object if lossy else None if stored else str)


def _clusters(rows: list[dict[str, Any]]) -> NDArray[Any]:
    clusters = np.empty(len(rows), dtype=object)
    for at, row in enumerate(rows):
        must(type(row["cluster"]) in (str, int), "cluster must be text or an integer")
        clusters[at] = row["cluster"]
    return clusters


def _table(rows: list[dict[str, Any]], name: str, width: int) -> NDArray[np.float64]:
    """Lists of numbers, where null is NaN."""
    for row in rows:
        numbers = row[name]
        must(isinstance(numbers, list) and len(numbers) == width, f"{name} must have one number for each cut-off")
        for number in numbers:
            must(number is None or type(number) in (int, float), f"{name} must hold numbers; it has {shown(number)}")
    return np.array([[math.nan if number is None else float(number) for number in row[name]] for row in rows])


def _counts(rows: list[dict[str, Any]], name: str) -> NDArray[np.int64]:
    counts = [row[name] for row in rows]
    for count in counts:
        must(
            type(count) is int and 0 <= count <= _MOST, f"{name} must be an integer of 0 or more; it is {shown(count)}"
        )
    return np.array(counts, dtype=np.int64)


def _same(computed: NDArray[np.float64], stored: NDArray[np.float64], name: str) -> None:
    with np.errstate(invalid="ignore"):
        near = np.isclose(computed, stored, rtol=_CLOSE, atol=_CLOSE, equal_nan=True)
    must((near | (np.isinf(computed) & np.isnan(stored))).all(), f"{name} is not what follows from its dcg and idcg")


def _of_run(evaluation: Evaluation[Any], run: Any, rows: list[dict[str, Any]], width: int) -> RunEvaluation[Any]:
    _keys(run, _RUN, "run")
    must(run["queries"] in ("qrels", "run", "both"), "queries must be qrels, run or both")
    judged, n_retrieved = _table(rows, "judged", width), _counts(rows, "n_retrieved")
    with np.errstate(invalid="ignore"):
        outside = (judged < 0) | (judged > 1 + _CLOSE)
    must(not outside.any(), "judged must be from 0 to 1")
    must((np.isnan(judged) == (n_retrieved == 0)[:, None]).all(), "judged must be null where nothing is retrieved")
    n_excluded = run["n_excluded"]
    must(n_excluded is None or (type(n_excluded) is int and n_excluded >= 0), "n_excluded must be a count")
    digests = [row["judgements"] for row in rows]
    known = digests[0] is not None
    for digest in digests:
        must((digest is not None) == known, "judgements must be known of all queries or of none")
        must(
            digest is None
            or (isinstance(digest, str) and len(digest) == 16 and set(digest) <= set("0123456789abcdef")),
            "judgements must be 16 hexadecimal digits",
        )
    table = PerQuery.__dataclass_fields__
    per_query = RunPerQuery(
        **{name: getattr(evaluation.per_query, name) for name in table},
        n_retrieved=n_retrieved,
        judged=judged if isinstance(evaluation.k, tuple) else judged[:, 0],
    )
    some = n_retrieved > 0
    means = judged[some].mean(axis=0).tolist() if some.any() else [math.nan] * width
    fields = {name: getattr(evaluation, name) for name in Evaluation.__dataclass_fields__}
    return replace(
        RunEvaluation(
            **{**fields, "per_query": per_query},
            judged=dict(zip(evaluation.k, means, strict=True)) if isinstance(evaluation.k, tuple) else means[0],
            queries=run["queries"],
            qrels_only=_ids(run["qrels_only"], "qrels_only"),
            run_only=_ids(run["run_only"], "run_only"),
            n_unanswered=int((~some).sum()),
            n_excluded=n_excluded,
        ),
        _judgements=np.array([int(digest, 16) for digest in digests], dtype=np.uint64) if known else None,
    )
