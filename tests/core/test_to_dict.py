"""``to_dict`` of results: what JSON can hold, and the numbers that the result has."""

from __future__ import annotations

import json
import math
from datetime import date
from typing import Any

import numpy as np
import pytest
from comparing import by_values

from ndcg_ml import Flavor, compare, evaluate, evaluate_run

LABELS, SCORES = [[3, 0, 1], [0, 0, 0], [1, 0, 2]], [[3, 2, 1], [3, 1, 2], [1, 3, 2]]


def plain(result: Any, *arguments: Any) -> dict[str, Any]:
    return json.loads(json.dumps(result.to_dict(*arguments), allow_nan=False))


@pytest.mark.parametrize("ks", [2, (1, None)])
def test_an_evaluation(ks):
    flavor = Flavor(empty=math.nan)
    result = evaluate(LABELS, SCORES, flavor=flavor, k=ks, by={"kind": ["a", math.inf, "a"]})
    document = plain(result, True)
    every = ks if isinstance(ks, tuple) else (ks,)
    assert [value["k"] for value in document["values"]] == list(every)
    assert [Flavor.parse(value["flavor"]).k for value in document["values"]] == list(every)
    assert all(value["ndcg"] is None and value["n_empty"] == 1 for value in document["values"])
    assert (document["n_queries"], document["n_documents"]) == (3, 9)
    table = result.per_query
    for i, query in enumerate(document["per_query"]):
        assert (query["qid"], query["n_relevant"]) == (i, table.n_relevant[i])
        for at, value in enumerate(query["values"]):
            ndcg = table.ndcg.reshape(3, -1)[i, at]
            assert value["ndcg"] == (None if i == 1 else ndcg)
            assert value["empty"] == (i == 1)
    slices = {(row["label"], row["k"]): row for row in document["slices"]}
    assert len(slices) == 2 * len(every)
    assert slices["inf", every[0]]["ndcg"] is None
    by_k = result.slices["kind", "a"].value
    assert slices["a", every[-1]]["ndcg"] == (by_k[every[-1]] if isinstance(by_k, dict) else by_k)
    assert plain(result)["per_query"] is None
    assert "slices" not in plain(evaluate(LABELS, SCORES))


def test_a_run_and_ids_that_json_lacks():
    result = evaluate_run({"q1": {"d1": 1}, "q2": {"d2": 1}}, {"q1": ["x", "d1"], "q3": ["x"]}, k=1)
    document = plain(result, True)
    assert document["values"][0]["judged"] == 0.0
    assert (document["queries"], document["qrels_only"], document["run_only"]) == ("qrels", ["q2"], ["q3"])
    assert [query["values"][0]["judged"] for query in document["per_query"]] == [0.0, None]
    days = np.array(["2026-01-01", "2026-01-02", "2026-01-03"], "M8[ns]").repeat(3)
    dated = plain(evaluate(np.ravel(LABELS), np.ravel(SCORES), qid=days), True)
    assert dated["per_query"][0]["qid"].startswith("2026-01-01")


@pytest.mark.parametrize("labels", [[date(2026, 1, 1), date(2026, 1, 2)], [b"a", b"b"], np.float32([0.5, np.inf])])
def test_labels_that_json_lacks_are_written_alike(labels):
    by = {"kind": [labels[i % 2] for i in range(16)]}
    result = evaluate([[1, 0]] * 16, [[i % 3, 1] for i in range(16)], by=by)
    both = compare(result, evaluate([[1, 0]] * 16, [[1, 0]] * 16), by=by, seed=0)
    written = [{row["label"] for row in plain(each)["slices"]} for each in (result, both)]
    assert written[0] == written[1]
    assert len(written[0]) == 2


@pytest.mark.parametrize("ids", [[b"a", b"b"], [0.5, 1.5], [date(2026, 1, 1), date(2026, 1, 2)]], ids=str)
def test_lists_to_judge_have_the_ids_of_results(ids):
    y, qid = [1, math.nan, 0, 1, math.nan, 0], np.repeat(np.array(ids, dtype=object), 3)
    sides = [
        evaluate(y, scores, qid=qid, doc_id=[*"abcabc"], flavor="ndcg@1[unjudged=zero]")
        for scores in ([1, 2, 3, 1, 3, 2], [1, 3, 2, 1, 2, 3])
    ]
    lines = compare(*sides, seed=0, unjudged="accept").judge_next(9).to_jsonl().splitlines()
    assert {json.loads(line)["qid"] for line in lines} == {row["qid"] for row in plain(sides[0], True)["per_query"]}


def test_an_interval():
    interval = evaluate(LABELS, SCORES).interval(method="t")
    document = plain(interval)
    assert (document["low"], document["value"], document["high"]) == (interval.low, interval.value, interval.high)
    assert (document["method"], document["n_resamples"]) == ("t", None)


def test_of_numbers_of_a_measure_no_query_is_unanswered():
    systems = by_values([0.1, 0.5, 0.3], [0.2, 0.4, 0.9], qid=[1, 2, 3], measure="recall").to_dict()["systems"]
    assert [system["n_unanswered"] for system in systems] == [0, 0]


def test_metrics_have_names_that_trackers_accept():
    one, other = (evaluate([[2, 0, 1], [0, 1, 0]], scores, k=[1, 10]) for scores in ([[3, 2, 1]] * 2, [[1, 3, 2]] * 2))
    assert one.metrics() == {"ndcg_at_1": one.value[1], "ndcg_at_10": one.value[10]}
    assert evaluate([[1, 0]], [[1, 2]]).metrics().keys() == {"ndcg"}
    both = compare(one, other, k=10, seed=0)
    assert both.metrics() == {
        "ndcg_at_10_difference": both.difference,
        "ndcg_at_10_low": both.interval.low,
        "ndcg_at_10_high": both.interval.high,
    }
    with pytest.raises(AttributeError, match=r"has 3 differences. Choose one of .pairs"):
        compare(one, other, one, k=10, seed=0).metrics()
