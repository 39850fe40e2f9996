"""Integer scores beyond 2^53, which float64 would tie: exact in runs as they are in arrays."""

from __future__ import annotations

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from ndcg_ml import Flavor, align, evaluate, evaluate_run, ndcg_score
from ndcg_ml.readers import DataFileError, read_columns, read_letor

NOW = 1731000000000000001  # nanoseconds: the newest first
NEWER = NOW + 1
FLAVOR = Flavor()
QRELS = {"q": {"a": 1, "b": 0}}
RIGHT = 0.6309297535714575


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
@pytest.mark.parametrize("scores", [[NOW, NEWER], [2**53, 2**53 + 1], [2**63, 2**64 - 1], [-(2**63), -(2**63) + 1]])
def test_a_run_keeps_them_apart(make, scores):
    assert ndcg_score([1, 0], scores, qid=["q", "q"], flavor=FLAVOR) == pytest.approx(RIGHT)
    assert evaluate_run(QRELS, make(scores), flavor=FLAVOR).value == pytest.approx(RIGHT)
    assert ndcg_score(**align(QRELS, make(scores)).arguments(), flavor=FLAVOR) == pytest.approx(RIGHT)
    if isinstance(make(scores), pd.DataFrame):
        assert evaluate(make(scores), columns={}, flavor=FLAVOR).value == pytest.approx(RIGHT)


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
        evaluate_run(QRELS, written(make, [score, 5], tmp_path), flavor=FLAVOR)
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


def test_float32_ties_them_all_the_same():
    tied = pytest.approx((1 + RIGHT) / 2)
    flavor = Flavor(score_dtype="float32")
    assert evaluate_run(QRELS, RUNS["dict"]([NOW, NEWER]), flavor=flavor).value == tied
    assert ndcg_score(**align(QRELS, RUNS["dict"]([NOW, NEWER])).arguments(), flavor=flavor) == tied


def test_topics_with_small_integers_join_them():
    qrels = {**QRELS, "p": {"a": 0, "b": 3, "c": 1}}
    run = {"q": {"a": NOW, "b": NEWER}, "p": {"b": 5, "a": -2}}
    by_topic = evaluate_run(qrels, run, flavor=FLAVOR).per_query.ndcg
    assert by_topic.tolist() == pytest.approx([RIGHT, 3 / (3 + RIGHT)])


@pytest.mark.parametrize(
    ("run", "error"),
    [
        ({"q": {"a": NOW, "b": 0.5}}, TypeError),
        ({"q": {"a": NOW, "b": NEWER}, "p": {"a": 0.5}}, TypeError),
        ({"q": {"a": NOW, "b": NEWER}, "p": {"a": float("-inf")}}, TypeError),
        ({"q": {"a": 2**64 - 1, "b": NEWER}, "p": {"a": -1}}, TypeError),
        ({"q": {"a": 2**70, "b": NEWER}}, ValueError),
        ({"q": {"a": 2**63, "b": -1}}, ValueError),
    ],
)
def test_what_64_bits_cannot_hold_is_refused(run, error):
    with pytest.raises(error, match=r"beyond 2\^53|of 64 bits"):
        evaluate_run({**QRELS, "p": {"a": 1}}, run, flavor=FLAVOR)


def test_large_floats_are_floats():
    run = {"q": {"a": 1e300, "b": float("inf")}}
    assert evaluate_run(QRELS, run, flavor=FLAVOR).value == pytest.approx(RIGHT)
    assert align(QRELS, run).y_score.dtype == np.float64
    assert align(QRELS, {"q": {"a": 2**53, "b": 1}}).y_score.dtype == np.float64


def test_a_list_of_integers_and_floats_at_the_edge():
    """2^53 + 1 becomes 2^53 in the array that NumPy makes of such a list."""
    flavor = Flavor(k=1)
    assert ndcg_score([1, 0, 0], [2**53, 2**53 + 1, 0.5], group=[3], flavor=flavor) == 0.0
    assert ndcg_score([0, 1, 0], [2**53, 2**53 + 1, 0.5], group=[3], flavor=flavor) == 1.0
