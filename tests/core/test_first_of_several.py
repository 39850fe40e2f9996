"""Messages name the first of several places that are wrong, and what else is wrong does not change them."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from comparing import by_values

from ndcg_ml import align, compare, evaluate, evaluate_part, evaluate_run

QID = [5, 6, 7, 8]
ROWS = np.repeat(QID, 2)
OF_MEASURE = {"qid": QID, "measure": "m", "n_resamples": 99}


def weighted(*weight):
    return evaluate([1, 0] * 4, [2, 1] * 4, qid=ROWS, query_weight=weight)


def labelled(*labels):
    return evaluate(labels, [2, 1] * 4, qid=ROWS)


def of_text(qrels, run):
    """A run of the text of a file, or what it is."""

    def evaluated(folder):
        (folder / "run").write_text(run)
        return evaluate_run(qrels, folder / "run")

    return evaluated


NAN = float("nan")
WRONG = {
    "scores": (lambda _: evaluate_run({"q": {"a": 1}}, {"q": {"b": 1.0, "a": NAN, "c": NAN}, "r": {"z": NAN}}),
               "got nan in run['q'], document 'a'"),
    "grades": (lambda _: evaluate_run({"q": {"b": 1.0, "a": math.inf, "c": NAN}, "r": {"z": NAN}}, {"q": ["a"]}),
               "got inf in qrels['q'], document 'a'"),
    "lines of TREC": (of_text({"q": {"a": 1}}, "q Q0 a 1 1 t\nq Q0 b 1 x t\nq Q0 c 1 y t\n"), "run, line 2: "),
    "columns of TREC": (of_text({"q": {"a": 1}}, "q Q0 a 1 1 t\nq Q0 b 1\nq Q0 c\n"), "run, line 2: "),
    "repeats": (of_text({"q": {"a": 1}}, "q Q0 a 1 1 t\nq Q0 a 1 1 t\nq Q0 b 1 2 t\nq Q0 b 1 2 t\n"),
                "'a' does in "),
    "keys": (of_text({"q": {"a": 1}}, '{"qid": "q", "docno": "a", "a": 1, "b": 1, "b": 2, "a": 1, "score": 1}'),
             "got 'a' twice"),
    "topics": (of_text({"q": {"a": 1}}, '{"q": ["a"], "r": 1, "s": 2}'), "'r' must be"),
    "values": (lambda _: by_values([1, 2, 3, 4.0], [1, NAN, NAN, 2], **OF_MEASURE), "2, such as 6, have none in b"),
    "systems": (lambda _: by_values([NAN, 2, 3, 4.0], [1, 2, NAN, 2], **OF_MEASURE),
                "5 has no value in a; 7 has no value in b"),
    "weights": (lambda _: compare(weighted(1, 1, 1, 1), weighted(1, 2, 3, 1)), "2 do not, the first is query 6."),
    "ideals": (lambda _: compare(labelled(1, 0, 1, 0, 1, 0, 1, 0), labelled(1, 0, 2, 0, 2, 0, 1, 0)),
               "ideal DCG in 2 of 4 queries, such as 6,"),
    "labels of queries": (lambda _: by_values([1, 2, 3, 4.0], [2, 3, 4, 5.0], by=["a", None, None, "b"], **OF_MEASURE),
                          "got None for query 6."),
    "labels": (lambda _: evaluate([1, 0] * 4, [2, 1] * 4, qid=ROWS, by=[*"aa", *[None] * 4, *"bb"]),
               "got None for query 6."),
    "labels of rows": (lambda _: evaluate([1, 0] * 4, [2, 1] * 4, qid=ROWS, by=[*"aaab", *"bcde"]),
                       "query 6 has 'a' and 'b'."),
    "three labels of rows": (lambda _: evaluate([1, 0, 0] * 2, [3, 2, 1] * 2, qid=[5, 5, 5, 6, 6, 6], by=[*"abcdef"]),
                             "query 5 has 'a' and 'b'."),
    "ids of parts": (lambda _: evaluate_part([1] * 4, [1] * 4, group=[1] * 4, query_id=[9, 9, 8, 8]),
                     "got 9 for two queries"),
    "wide ids": (lambda _: evaluate_part([1] * 3, [1] * 3, qid=np.array([1, 2**65, 2**66], dtype=object)),
                 f"got {2**65}."),
    "no weight": (lambda _: evaluate_part([1], [1], qid=[1], query_weight=[]),
                  "shape (1,); got (0,). Queries are in the order of group or of the rows, or of the first appearance"),
    "weights of 0": (lambda _: evaluate_part([1], [1], qid=[1], query_weight=[0, 0]), "shape (1,); got (2,)."),
    "lists": (lambda _: align({"q": {"a": 1}}, {"q": {"a": 1}, "r": 5, "s": 6}), "run['r'] must be {document: score}"),
    "surrogates": (lambda _: align({"q": {"a": 1}}, {"q": {"a\ud800": 1}, "r": {"c\udbff": 1}}), "got 'a\\ud800'"),
    "names": (lambda _: by_values({1: [1, 2.0], "b": [1, 2.0], 3: [1, 2.0]}, qid=[1, 2], measure="m"), "got 1."),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_the_first_of_several_is_named(tmp_path, name):
    call, words = WRONG[name]
    with pytest.raises((ValueError, TypeError), match=re.escape(words)):
        call(tmp_path)
