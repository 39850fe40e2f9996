"""A run whose scores are ranks: every ranking would be turned round, so it is told."""

from __future__ import annotations

import warnings

import pytest

from ndcg_ml import align, evaluate_run

DOCUMENTS = list("abcde")
QRELS = {"q1": dict.fromkeys("abc", 1), "q2": {"b": 2}}
RANKS = r"count up 1, 2, \.\.\. in every topic, like ranks"


def ranked(*scores):
    return {f"q{i}": dict(zip(DOCUMENTS, listed, strict=False)) for i, listed in enumerate(scores, 1)}


@pytest.mark.parametrize(
    "run",
    [ranked([1, 2, 3, 4, 5]), ranked([1, 2, 3], [1, 2, 3]), ranked([1, 2, 3, 4], [1, 2]), ranked([1, 2, 3, 4, 5], [1])],
)
def test_scores_that_count_up_are_told(run, tmp_path):
    path = tmp_path / "run"
    path.write_text("".join(f"{q} Q0 {d} 0.5 {s} t\n" for q in run for d, s in run[q].items()), encoding="utf-8")
    for form in (run, path):
        with pytest.warns(UserWarning, match=RANKS) as caught:
            evaluate_run(QRELS, form)
        assert [each.filename for each in caught] == [__file__]
        with pytest.warns(UserWarning, match=RANKS) as caught:
            align(QRELS, form)
        assert [each.filename for each in caught] == [__file__]


def test_ranks_from_0_and_mixed_topics_are_told():
    with pytest.warns(UserWarning, match=r"count up 0, 1, \.\.\."):
        evaluate_run(QRELS, ranked([0, 1, 2, 3, 4], [0, 1]))


@pytest.mark.parametrize(
    "run",
    [
        ranked([1, 2, 3, 4]),  # four scores are three steps
        ranked([1, 2], [1, 2], [1, 2]),
        ranked([5, 4, 3, 2, 1]),
        ranked([1, 2, 3, 4, 5], [2, 1]),
        ranked([1, 2, 3, 4, 6]),
        ranked([2, 3, 4, 5, 6]),
        ranked([1, 2, 3, 4, 5], [0, 1]),
        ranked([1, 1, 1, 1, 1]),
        {"q1": DOCUMENTS},
    ],
)
def test_other_scores_are_not(run):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate_run(QRELS, run)


def test_lines_of_topics_may_be_mixed(tmp_path):
    lines = [f"q{i} Q0 {d} 9 {s} t\n" for s, d in enumerate(DOCUMENTS, 1) for i in (1, 2)]
    (tmp_path / "run").write_text("".join(lines), encoding="utf-8")
    with pytest.warns(UserWarning, match=RANKS):
        evaluate_run(QRELS, tmp_path / "run")
