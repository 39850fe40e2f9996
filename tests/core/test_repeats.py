"""Documents that a query lists twice, under each flavor and through each function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ndcg_ml import Flavor, evaluate, evaluate_part, evaluate_run, explain_difference, identify, ndcg_score, prepare
from ndcg_ml.runs import align

LOG3 = 1 / math.log2(3)
QRELS = {"q": {"a": 1, "b": 1, "c": 1}}
TWICE = {"q": ["a", "a", "x"]}
IDEAL_OF_3 = 1 + LOG3 + 1 / 2


def of_run(flavor: str, **more: Any) -> float:
    value = evaluate_run(QRELS, TWICE, flavor=flavor, **more).value
    assert isinstance(value, float)
    return value


# -- a run with the same chunk twice, with the values of the libraries


@pytest.mark.parametrize(
    ("preset", "value"),
    [
        ("haystack", 1 / IDEAL_OF_3),  # .469
        ("llama_index", (1 + LOG3) / IDEAL_OF_3),  # .765
        ("vespa", (1 + LOG3) / IDEAL_OF_3),
        ("autorag", (1 + LOG3) / IDEAL_OF_3),
        ("trulens", 1 / IDEAL_OF_3),
    ],
)
def test_the_relevant_chunk_twice(preset: str, value: float) -> None:
    assert of_run(preset) == pytest.approx(value, abs=1e-15)


def test_a_document_found_twice_may_score_more_than_1() -> None:
    assert evaluate_run({"q": {"a": 1}}, {"q": ["a", "a"]}, flavor="llama_index").value == pytest.approx(1 + LOG3)
    assert evaluate_run({"q": {"a": 1}}, {"q": ["a", "a"]}, flavor="haystack").value == 1.0


def test_the_ideal_has_each_document_once() -> None:
    for duplicates, gain in (("first", 1.0), ("count", 1 + LOG3)):
        table = evaluate_run(QRELS, TWICE, flavor=f"trec_eval[duplicates={duplicates}]").per_query
        assert (table.n_docs.tolist(), table.n_judged.tolist(), table.n_relevant.tolist()) == ([3], [3], [3])
        assert table.idcg.tolist() == pytest.approx([IDEAL_OF_3])
        assert table.dcg.tolist() == pytest.approx([gain])
        assert table.judged.tolist() == pytest.approx([2 / 3])  # the share of ranks with a judged document


def test_a_recall_ideal_uses_the_gain_of_each_rank() -> None:
    """A recall ideal is made of the gain at each rank; Phoenix, which has no ids, gives 1."""
    labels, ids = [1, 1, 0], ["a", "a", "x"]
    arguments: dict[str, Any] = {"y_true": labels, "y_score": [3, 2, 1], "group": [3], "doc_id": ids}
    assert ndcg_score(**arguments, flavor="phoenix[duplicates=count]") == 1.0
    assert evaluate(**arguments, flavor="phoenix[duplicates=first]").per_query.idcg.tolist() == [1.0]


# -- the rank that is credited


def test_the_credit_is_at_the_best_rank_and_not_at_the_first_row() -> None:
    flavor = "trec_eval[duplicates=first]"
    arguments: dict[str, Any] = {"y_true": [1, 0, 1], "group": [3], "doc_id": ["a", "b", "a"]}
    assert ndcg_score(y_score=[1, 2, 3], flavor=flavor, **arguments) == 1.0
    assert ndcg_score(y_score=[2, 3, 1], flavor=flavor, **arguments) == pytest.approx(LOG3)
    score = prepare(flavor=flavor, **arguments)  # one preparation, two rankings
    assert (score([1, 2, 3]), score([2, 3, 1])) == (1.0, pytest.approx(LOG3))


@pytest.mark.parametrize(("ties", "value"), [("first", 1.0), ("last", LOG3), ("docid", LOG3), ("docid_ascending", 1.0)])
def test_a_repeat_may_tie_with_other_documents(ties: str, value: float) -> None:
    flavor = Flavor(ties=ties, duplicates="first")
    # "a" is in rows 0 and 2, "b" in row 1; row 2 has a lower score
    assert ndcg_score([1, 0, 1], [2, 2, 1], group=[3], doc_id=["a", "b", "a"], flavor=flavor) == pytest.approx(value)


def test_a_document_may_tie_with_itself_unless_ties_are_averaged() -> None:
    arguments: dict[str, Any] = {"y_true": [1, 0, 1], "group": [3], "doc_id": ["a", "b", "a"]}
    flavor = Flavor(duplicates="first")
    assert ndcg_score(y_score=[1, 1, 1], flavor=flavor.replace(ties="first"), **arguments) == 1.0
    assert ndcg_score(y_score=[1, 1, 0], flavor=flavor, **arguments) == pytest.approx((1 + LOG3) / 2)
    assert (
        ndcg_score(y_score=[0, 1, 0], flavor="sklearn", y_true=[1, 0, 1], group=[3]) > 0
    )  # without ids, rows are separate documents


def test_copies_may_both_be_unjudged() -> None:
    flavor = Flavor(duplicates="count", unjudged="zero")
    both = [math.nan, 1, math.nan]
    assert ndcg_score(both, [3, 2, 1], group=[3], doc_id=["a", "b", "a"], flavor=flavor) == pytest.approx(LOG3)


# -- other functions


def test_every_function_gives_the_same_number() -> None:
    want = of_run("haystack")

    data = align(QRELS, TWICE, duplicates="keep").arguments()
    assert ndcg_score(**data, flavor="haystack") == want
    assert evaluate_part(**data, flavor="haystack").value == want
    padded = {
        "y_true": [[1, 1, np.nan, 1, 1, 7]], "y_score": [[3, 2, 1, 0, 0, 9]], "mask": [[True] * 5 + [False]],
        "doc_id": [["a", "a", "x", "b", "c", "a"]], "retrieved": [[True, True, True, False, False, True]],
    }  # fmt: skip
    assert ndcg_score(**padded, flavor="haystack") == want  # padding does not count as a repeat


def test_an_unretrieved_copy_adds_nothing_to_the_ideal() -> None:
    arguments: dict[str, Any] = {"y_true": [1, 1, 1], "y_score": [0, 1, 0], "group": [3], "doc_id": ["a", "a", "b"]}
    for duplicates in ("first", "count"):
        flavor = Flavor(duplicates=duplicates)
        value = ndcg_score(**arguments, retrieved=[False, True, False], flavor=flavor)
        assert value == pytest.approx(1 / (1 + LOG3))


def test_the_difference_is_explained() -> None:
    data = align(QRELS, TWICE, duplicates="keep").arguments()
    result = explain_difference("haystack", "haystack[duplicates=count]", **data)
    assert [(part.name, part.contribution) for part in result.parts] == [
        ("duplicates", pytest.approx(LOG3 / IDEAL_OF_3))
    ]
    alone = explain_difference("sklearn", "haystack", [1, 0], [1, 2], group=[2])
    assert {part.name: part.contribution for part in alone.parts}["duplicates"] == 0


def test_a_number_with_repeats_is_identified() -> None:
    data = align(QRELS, TWICE, duplicates="keep").arguments()
    found = identify(of_run("haystack"), **data, k=None, decimals=None)
    assert found.matches[0].name == "haystack"
    assert found.not_tried["sklearn"].startswith("doc_id must not repeat")
    assert "llama_index" in identify(of_run("llama_index"), **data, k=None, decimals=None).matches[0].presets


# -- the flavor's text


def test_as_text() -> None:
    flavor = Flavor.preset("haystack")
    assert str(flavor).endswith(",duplicates=first]")
    assert Flavor.parse(str(flavor)) == flavor
    assert "repeats    a document that is listed twice is credited at its first rank" in flavor.describe()
    assert "repeats" not in Flavor().describe()
    assert "duplicates" not in str(Flavor())
    assert Flavor(duplicates="count").metric_name == "ndcg_linear_duplicates_count"


def test_ties_by_ascending_id() -> None:
    arguments: dict[str, Any] = {"y_true": [0, 1], "y_score": [1, 1], "group": [2], "doc_id": ["d2", "d10"]}
    assert ndcg_score(**arguments, flavor="sentence_transformers") == 1.0  # "d10" < "d2"
    assert ndcg_score(**arguments, flavor="trec_eval") == pytest.approx(LOG3)
    run = {"q": {"d2": 1.0, "d10": 1.0}}
    assert evaluate_run({"q": {"d10": 1}}, run, flavor="sentence_transformers", k=1).value == 1.0


def test_labels_are_not_checked_against_the_scale_under_a_binary_gain() -> None:
    ratings, retrieved = [5, 3, 0, 4], [True, True, True, False]
    assert ndcg_score(ratings, [3, 1, 2, 0], group=[4], retrieved=retrieved, flavor="rectools", k=3) == pytest.approx(
        (1 + 1 / 2) / IDEAL_OF_3
    )
    assert ndcg_score([1], [1], group=[1], flavor="rectools", k=10) == pytest.approx(0.220, abs=5e-4)
    assert "is an error" not in Flavor.preset("rectools").describe().split("\n")[1]
