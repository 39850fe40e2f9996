"""The documents to label next as a data frame."""

from __future__ import annotations

import pytest

from ndcg_ml import compare, evaluate_run

pandas = pytest.importorskip("pandas")


def test_the_documents_are_a_frame_to_fill_in() -> None:
    qrels = {"q1": {"d1": 2, "d2": 0}, "q2": {"d5": 1}}
    runs = {"q1": ["d1", "d9"], "q2": ["d6", "d5"]}, {"q1": ["d3", "d1"], "q2": ["d5", "d7"]}
    tasks = compare(*(evaluate_run(qrels, run, k=2) for run in runs), unjudged="accept").judge_next(3)
    frame = tasks.to_frame()
    assert list(frame.columns) == ["qid", "docno", "label", "change"]
    assert frame["docno"].tolist() == [task.document for task in tasks]
    assert frame["label"].isna().all()
    assert str(tasks).count("\n") == 4
