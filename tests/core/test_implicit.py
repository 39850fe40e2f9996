"""Relevant documents without grades, as judgements of runs and as held-out items; and exchanged arguments."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from ndcg_ml import evaluate_run, evaluate_topk

RUN = {"q": {"d1": 3.0, "d2": 2.0, "d3": 1.0}, "r": {"d1": 1.0, "d4": 2.0}}
GRADED = {"q": {"d1": 1, "d3": 1}, "r": {"d4": 1}}


@pytest.mark.parametrize("form", [list, tuple, set, frozenset, lambda docs: np.array(list(docs))])
def test_lists_and_sets_are_judgements_of_grade_1(form):
    found = evaluate_run({topic: form(docs) for topic, docs in GRADED.items()}, RUN, k=10)
    assert found.per_query.ndcg.tolist() == evaluate_run(GRADED, RUN, k=10).per_query.ndcg.tolist()


def test_a_document_listed_twice_is_refused():
    with pytest.raises(ValueError, match="d1"):
        evaluate_run({"q": ["d1", "d1"]}, RUN)
    with pytest.raises(TypeError, match=r"qrels\['q'\] must be \{document: grade\} or the relevant documents; got str"):
        evaluate_run({"q": "d1"}, RUN)


def test_exchanged_arguments_cause_a_warning():
    run = {"q": {"d1": 0.5, "d2": 0.25}}
    with pytest.warns(UserWarning, match=r"as if the two were swapped. Pass labels as qrels and scores as run"):
        evaluate_run(run, {"q": {"d1": 1, "d2": 0}})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate_run({"q": {"d1": 1, "d2": 0}}, run)
        evaluate_run(run, {"q": ["d1", "d2"]})
        evaluate_run(run, {"q": {"d1": 1.5, "d2": 1}})


RETRIEVED = [[2, 0, 1], [1, 3, -1]]
ARRAYS = ([0, 0, 1], [2, 3, 0], [1, 1, 1])


@pytest.mark.parametrize(
    ("held_out", "qid"), [([[3, 2], [0]], None), ({0: [2, 3], 1: [0]}, None), ({"u": [0], "t": (3, 2)}, ["t", "u"])]
)
def test_held_out_items_without_grades(held_out, qid):
    found = evaluate_topk(RETRIEVED, held_out, k=3, qid=qid)
    assert found.per_query.ndcg.tolist() == evaluate_topk(RETRIEVED, ARRAYS, k=3).per_query.ndcg.tolist()
    assert evaluate_topk(RETRIEVED, [[2, 3], []], k=3).n_empty == 1


@pytest.mark.parametrize(
    ("held_out", "qid", "message"),
    [
        ({2: [1]}, None, "keys of held_out must be rows of retrieved_ids; got 2"),
        ({0: [1]}, ["t", "u"], "keys of held_out must be ids in qid; got 0"),
        ([[1, 1], [0]], None, "user 0 has item 1 twice"),
    ],
)
def test_held_out_items_that_are_refused(held_out, qid, message):
    with pytest.raises(ValueError, match=message):
        evaluate_topk(RETRIEVED, held_out, qid=qid)


def test_the_message_names_a_row_that_is_not_a_list():
    with pytest.raises(TypeError, match="a list of relevant items for each user; got 'a'"):
        evaluate_topk(RETRIEVED, [[0], "a"])


def test_a_list_has_one_entry_per_user():
    with pytest.raises(ValueError, match=r"one list per row of retrieved_ids, 2; got 3.*as a tuple"):
        evaluate_topk([[0], [1]], [[0, 1], [4, 1], [1, 1]])


def test_three_lists_for_three_users_are_ambiguous():
    with pytest.raises(ValueError, match="must not be a list of three for three users"):
        evaluate_topk([[0], [1], [2]], [[0], [1], [2]])
    lists = dict(enumerate([[0], [1], [2]]))
    assert evaluate_topk([[0], [1], [2]], lists, k=1).value == 1
