"""Integer scores beyond 2^53, which float64 would tie, are refused in runs and in arrays."""

from __future__ import annotations

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from ndcg_ml import align, evaluate, evaluate_run
from ndcg_ml.readers import DataFileError, read_columns, read_letor

NOW = 1731000000000000001  # nanoseconds
QRELS = {"q": {"a": 1, "b": 0}}


def frame(scores, **columns):
    return pd.DataFrame({"qid": "q", "docno": ["a", "b"], "label": [1, 0], "score": scores, **columns})


RUNS = {
    "dict": lambda scores: {"q": dict(zip("ab", scores, strict=True))},
    "dict of NumPy's": lambda scores: {"q": dict(zip("ab", np.array(scores), strict=True))},
    "pandas": lambda scores: frame(scores),
    "objects": lambda scores: frame(np.array(scores, dtype=object)),
    "polars": lambda scores: pytest.importorskip("polars").from_pandas(frame(scores)),
    "pyarrow": lambda scores: pytest.importorskip("pyarrow").Table.from_pandas(frame(scores)),
}


@pytest.mark.parametrize("make", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("scores", [[NOW, NOW + 1], [2**53, 2**53 + 1], [2**63, 2**63 + 1]])
def test_a_run_that_float64_would_tie_is_refused(make, scores):
    with pytest.raises(ValueError, match="must hold scores that stay different in float64"):
        evaluate_run(QRELS, make(scores))
    if isinstance(make(scores), pd.DataFrame):
        with pytest.raises(ValueError, match="must hold scores that stay different in float64"):
            evaluate(make(scores), columns={})
    assert align(QRELS, make([2**53, 2**53 - 1])).y_score.tolist() == [2**53, 2**53 - 1]


def lines_of(scores, form):
    return "".join(form.format(at=at, d=d, s=s) for at, (d, s) in enumerate(zip("ab", scores, strict=True)))


FILES = {
    "trec": lambda scores: lines_of(scores, "q Q0 {d} {at} {s} t\n"),
    "trec, line by line": lambda scores: lines_of(scores, "q\x0bQ0 {d} {at} {s} t\n"),
    "csv": lambda scores: "qid,docno,score\n" + lines_of(scores, "q,{d},{s}\n"),
    "tsv": lambda scores: "qid\tdocno\tscore\n" + lines_of(scores, "q\t{d}\t{s}\n"),
    "jsonl": lambda scores: lines_of(scores, '{{"qid": "q", "docno": "{d}", "score": {s}}}\n'),
    "json": lambda scores: '{{"q": {{"a": {}, "b": {}}}}}'.format(*scores),
}


def written(make, scores, folder):
    path = folder / "run"
    if make is None:
        pq = pytest.importorskip("pyarrow.parquet")
        pq.write_table(
            pytest.importorskip("pyarrow").table(
                {
                    "qid": ["q"] * 2,
                    "docno": ["a", "b"],
                    "score": np.array(scores, dtype=np.uint64 if max(scores) >= 2**63 else np.int64),
                }
            ),
            path,
        )
    else:
        path.write_text(make(scores))
    return path


@pytest.mark.parametrize("make", [*FILES.values(), None], ids=[*FILES, "parquet"])
@pytest.mark.parametrize("score", [NOW, 2**53 + 1, 2**64 - 1, -(2**63)])
def test_a_file_that_float64_cannot_hold_is_refused(make, score, tmp_path):
    with pytest.raises(DataFileError, match=r"run.* integer must be at most 2\^53"):
        evaluate_run(QRELS, written(make, [score, 5], tmp_path))
    assert align(QRELS, written(make, [2**53, -(2**53)], tmp_path)).y_score.tolist() == [2**53, -(2**53)]


def test_tables_and_scores_that_float64_cannot_hold_are_refused(tmp_path):
    labels, scores, table = tmp_path / "labels", tmp_path / "scores", tmp_path / "table"
    labels.write_text("1 qid:7 1:0\n")
    scores.write_text(f"{NOW}\n")
    with pytest.raises(DataFileError, match=r"scores, line 1: an integer must be at most 2\^53"):
        read_letor(labels, scores)
    for text in (f"qid,label,score\n7,1,{NOW}\n", f'{{"qid": 7, "label": 1, "score": {NOW}}}\n'):
        table.write_text(text)
        with pytest.raises(DataFileError, match=r"table, line \d: score: an integer must be at most 2\^53"):
            read_columns(table)
