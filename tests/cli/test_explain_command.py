"""``ndcg-ml explain``: the parts of a difference, as tables and JSON."""

from __future__ import annotations

import pytest

pytest.importorskip("click")

from command_line import LETOR, TREC, document, text

from ndcg_ml.explain import explain_difference
from ndcg_ml.runs import align

pytestmark = pytest.mark.usefixtures("files")


def test_explain_is_that_of_the_library():
    a, b = "trec_eval@3", "trec_eval[gain=exponential,score_dtype=float64]"
    result = document(f"explain --a {a} --b {b} -k 2 {TREC}")
    expected = explain_difference(a, b, **align("qrels", "run").arguments(), k=2)
    assert result == expected.to_dict()
    assert sum(part["contribution"] for part in result["parts"]) == pytest.approx(result["difference"], abs=1e-12)
    assert {part["switches"][0] for part in result["parts"]} == {"gain", "score_dtype"}
    assert text(f"explain --a {a} --b {b} -k 2 {TREC}") == f"{expected}\n"
    assert "k" in [part["switches"][0] for part in document(f"explain --a {a} --b {b} {TREC}")["parts"]]
    both = document(f"explain --a {a} --b {b} --queries both {TREC}")
    assert both["n_queries"] == 2


def test_explain_of_labels_and_tables():
    by_letor = document(f"explain --a sklearn --b lightgbm {LETOR}")
    assert by_letor == document("explain --a sklearn --b lightgbm --table table.csv")
    assert {part["switches"][0] for part in by_letor["parts"]} == {"gain", "ties", "empty"}
    [empty] = [each for each in by_letor["queries"] if each["empty_a"]]
    assert (empty["qid"], empty["contribution"]) == ("8", pytest.approx(1 / 3))
    skipped = document(f"explain --a sklearn --b sklearn[empty=skip] {LETOR}")
    assert None in [each["value_b"] for each in skipped["queries"]]


def test_explain_of_one_flavor_is_nothing():
    assert document(f"explain --a sklearn --b sklearn {LETOR}")["parts"] == []
