"""Invalid input raises a typed error that names the parameter, the constraint, the value and the fix."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ndcg_ml import Flavor, dcg_score, evaluate, evaluate_ranked, ndcg_score, prepare

Y, S, Q = [3, 0, 1, 2], [0.4, 0.3, 0.2, 0.1], [1, 1, 2, 2]
Y2, S2 = [[3, 0], [1, 2]], [[0.4, 0.3], [0.2, 0.1]]


class Unhashable:
    __hash__ = None


CASES = {
    "no ids": (Y, S, {}, ValueError, r"qid or group must be given with 1-D input.*Pass qid=.*group=\[len\(y_true\)\].*ndcg_ml.sklearn.ndcg_scorer\(\)"),
    "both": (Y, S, {"qid": Q, "group": [2, 2]}, ValueError, "qid and group.*pass one of them; got both"),
    "scores of another length": (Y, S[:3], {"qid": Q}, ValueError, r"y_score must have the shape of y_true, \(4,\); got \(3,\)"),
    "qid of another length": (Y, S, {"qid": [7, 7, 8]}, ValueError, r"qid must have one id per row, 4; got 3\.$"),
    "more ids than rows": (Y, S, {"qid": [0, 1, 1, 1, 1]}, ValueError, r"qid must have one id per row, 4; got 5\.$"),
    "sample_weight": (Y, S, {"qid": Q, "sample_weight": Y}, TypeError, "unexpected keyword argument 'sample_weight'. Did you mean 'query_weight'"),
    **{
        name: (Y, S, {"qid": Q, name: 1}, TypeError, f"unexpected keyword argument '{name}'. Did you mean '{ours}'?")
        for name, ours in {
            "y_pred": "y_score", "groups": "qid", "qids": "qid", "query_ids": "qid", "docid": "doc_id", "docno": "doc_id",
            "weight": "query_weight", "weights": "query_weight", "top_k": "k", "cutoff": "k", "eval_at": "k",
            "flavour": "flavor", "metrics": "flavor",
        }.items()
    },
    "a switch": (Y, S, {"qid": Q, "gain": "linear"}, TypeError, r"Pass it in the flavor: flavor=Flavor\(gain=...\)\."),
    "a switch of another library": (Y, S, {"qid": Q, "ignore_ties": True}, TypeError, r"flavor=Flavor\(ties=...\)\."),
    "an argument of no library": (Y, S, {"qid": Q, "xyzzy": 1}, TypeError, "unexpected keyword argument 'xyzzy'.$"),
    "sizes as qid": (Y, S, {"qid": [2, 2]}, ValueError, "qid must have one id per row.*pass them as group="),
    "sizes that do not sum": (Y, S, {"group": [2, 1]}, ValueError, r"group must sum to the number of rows, 4; got a sum of 3\.$"),
    "ids as group": (Y, S, {"group": Q}, ValueError, "group must sum to.*pass them as qid="),
    "string ids as group": (Y, S, {"group": list("aabb")}, TypeError, "group must hold integers.*pass them as qid="),
    "negative size": (Y, S, {"group": [5, -1]}, ValueError, "group must hold sizes >= 0; got -1"),
    "2-D group": (Y, S, {"group": [[2, 2]]}, ValueError, r"group must be one-dimensional.*got shape \(1, 2\)"),
    "2-D qid": (Y, S, {"qid": [[1, 1, 2, 2]]}, ValueError, r"qid must be one-dimensional.*got shape \(1, 4\)"),
    "NaN score": (Y, [0.4, math.nan, 0.2, 0.1], {"qid": Q}, ValueError, "y_score must not hold NaN.*got 1 of 4, the first at row 1.*-inf"),
    "NaN label": ([3, math.nan, 1, 2], S, {"qid": Q}, ValueError, "y_true must not hold NaN.*unjudged='raise'; got 1 of 4.*flavor='sklearn\\[unjudged=zero\\]'"),
    "infinite label": ([3, math.inf, 1, 2], S, {"qid": Q}, ValueError, "y_true must be finite; got labels from 1.0 to inf"),
    "negative label": ([3, -1, 1, 2], S, {"qid": Q}, ValueError, "y_true must be >= 0.*got 1 negative labels, the lowest -1.0.*flavor='sklearn\\[negative=zero\\]'"),
    "fraction with a table": ([3, 0.5, 1, 2], S, {"qid": Q, "flavor": Flavor(gain=(0, 1, 3, 7))}, ValueError, "integer grades from 0 to 3.*got 0.5.*Extend the table"),
    "grade outside the table": ([3, 4, 1, 2], S, {"qid": Q, "flavor": Flavor(gain=(0, 1, 3, 7))}, ValueError, "integer grades from 0 to 3.*got 4"),
    "negative with a table": ([3, -1, 1, 2], S, {"qid": Q, "flavor": Flavor(gain=(0, 1, 3, 7), negative="allow")}, ValueError, "integer grades.*got -1"),
    "grade above max_grade": (Y, S, {"qid": Q, "flavor": Flavor(ideal="max", max_grade=2)}, ValueError, "y_true must not exceed Flavor.max_grade=2.0; got 3.0.*Raise max_grade"),
    "k beyond any list": (Y, S, {"qid": Q, "k": 10**18, "flavor": Flavor(ideal="max", max_grade=3)}, ValueError, "k must be at most 100000000 under ideal='max'"),
    "k=0": (Y, S, {"qid": Q, "k": 0}, ValueError, "k must be an integer >= 1, or None.*got 0"),
    "k=-1": (Y, S, {"qid": Q, "k": -1}, ValueError, "k must be an integer >= 1.*got -1"),
    "k=True": (Y, S, {"qid": Q, "k": True}, TypeError, "k must be an integer >= 1.*got True of type bool"),
    "k=2.0": (Y, S, {"qid": Q, "k": 2.0}, TypeError, "k must be an integer >= 1.*got 2.0 of type float"),
    "k='2'": (Y, S, {"qid": Q, "k": "2"}, TypeError, "k must be an integer >= 1.*got '2' of type str"),
    "no k": (Y, S, {"qid": Q, "k": ()}, ValueError, "k must hold at least one cut-off"),
    "k twice": (Y, S, {"qid": Q, "k": (3, 3)}, ValueError, "k must not repeat a cut-off"),
    "bad k in a sequence": (Y, S, {"qid": Q, "k": (3, 0)}, ValueError, "k must be an integer >= 1.*got 0"),
    "unknown preset": (Y, S, {"qid": Q, "flavor": "lightgmb"}, ValueError, "got 'lightgmb' in 'lightgmb'. Did you mean 'lightgbm'"),
    "not a flavor": (Y, S, {"qid": Q, "flavor": 3}, TypeError, "flavor must be a Flavor, the name of a preset.*got 3 of type int"),
    "mask of another shape": (Y2, S2, {"mask": [[True, False]]}, ValueError, r"mask must have the shape of y_true, \(2, 2\); got \(1, 2\)"),
    "mask of integers": (Y2, S2, {"mask": [[1, 0], [1, 1]]}, TypeError, r"mask must be an array of bool.*got dtype int.*astype\(bool\)"),
    "mask with 1-D": (Y, S, {"qid": Q, "mask": [True] * 4}, ValueError, "mask is for 2-D input.*Leave mask out"),
    "qid with 2-D": (Y2, S2, {"qid": [1, 2]}, ValueError, "qid is for 1-D input.*each row is one query.*Leave qid out"),
    "group with 2-D": (Y2, S2, {"group": [1, 1]}, ValueError, "group is for 1-D input"),
    "retrieved of integers": (Y, S, {"qid": Q, "retrieved": [1, 1, 0, 0]}, TypeError, "retrieved must be an array of bool"),
    "retrieved of another shape": (Y, S, {"qid": Q, "retrieved": [True]}, ValueError, r"retrieved must have the shape of y_true, \(4,\)"),
    "docid without ids": (Y, S, {"qid": Q, "flavor": "trec_eval"}, ValueError, "doc_id must be given under ties='docid'.*Pass doc_id="),
    "repeated ids": (Y, S, {"qid": Q, "flavor": "trec_eval", "doc_id": list("aabc")}, ValueError, "doc_id must not repeat within a query under duplicates='raise'; got .*'a'.*Remove the duplicate"),
    "repeated ids that are not needed": (Y, S, {"qid": Q, "doc_id": list("aabc")}, ValueError, "doc_id must not repeat"),
    "a missing document id": (Y, S, {"qid": Q, "doc_id": np.array(["2026-01-01", "NaT", "2026-01-02", "2026-01-03"], dtype="M8[D]")}, ValueError, "doc_id must have an id for every document; got a missing value"),
    "ids of another shape": (Y, S, {"qid": Q, "doc_id": list("abc")}, ValueError, r"doc_id must have the shape of y_true, \(4,\); got \(3,\)"),
    "ids that have no order": (Y, S, {"qid": Q, "doc_id": np.array(["a", 1, "b", 2], dtype=object)}, TypeError, "doc_id must hold ids of one type.*got int, str"),
    "missing document ids": (Y, S, {"qid": Q, "doc_id": [1.0, math.nan, 2.0, 3.0]}, ValueError, "doc_id must have an id for every document; got a missing value"),
    "missing qid": (Y, S, {"qid": [1.0, math.nan, 2.0, 2.0]}, ValueError, r"qid must have an id for every row; got a missing value \(NaN or NaT\)"),
    "missing time as qid": (Y, S, {"qid": np.array(["2020-01-01", "NaT", "2020-01-01", "2020-01-02"], "M8[D]")}, ValueError, "qid must have an id for every row"),
    "None as qid": (Y, S, {"qid": ["a", None, "b", "b"]}, ValueError, "qid must have an id for every row; got a missing value at row 1"),
    "unhashable qid": (Y, S, {"qid": np.array([Unhashable() for _ in Y], dtype=object)}, TypeError, "qid must hold hashable ids; got .*Unhashable"),
    "ragged lists": ([[1, 0], [1]], [[1, 0], [1]], {}, ValueError, "y_true must be a one- or two-dimensional array.*flattened, with qid="),
    "three dimensions": (np.zeros((2, 2, 2)), np.zeros((2, 2, 2)), {}, ValueError, r"y_true must be one- or two-dimensional; got shape \(2, 2, 2\)"),
    "a number": (1.0, 1.0, {}, ValueError, r"y_true must be one- or two-dimensional; got shape \(\)"),
    "strings": (list("abcd"), S, {"qid": Q}, TypeError, "y_true must hold real numbers; got text, such as 'a'. If these are numbers, pass"),
    "objects": (np.array(["a", 1, None, 2], dtype=object), S, {"qid": Q}, TypeError, "y_true must hold real numbers; got an array of Python objects"),
    "complex": (Y, np.array(S, dtype=complex), {"qid": Q}, TypeError, "y_score must hold real numbers; got dtype complex128"),
    "masked array": (Y, np.ma.masked_array(S, mask=[0, 1, 0, 0]), {"qid": Q}, TypeError, "y_score is a NumPy masked array, whose mask would be lost"),
    "nothing, by qid": ([], [], {"qid": []}, ValueError, "qid must hold at least one row; got none"),
    "nothing, by group": ([], [], {"group": []}, ValueError, "group must hold at least one query size; got none"),
    "nothing, 2-D": (np.zeros((0, 3)), np.zeros((0, 3)), {}, ValueError, r"y_true must hold at least one query; got shape \(0, 3\)"),
    "weights of rows": (Y, S, {"qid": Q, "query_weight": [1, 1, 1, 1]}, ValueError, r"query_weight must have one weight per query, shape \(2,\); got \(4,\)"),
    "weights by name without ids": (Y, S, {"group": [2, 2], "query_weight": {1: 1, 2: 2}}, TypeError, "query_weight must be an array.*have no ids; got a mapping. Pass qid="),
    "negative weight": (Y, S, {"qid": Q, "query_weight": [1, -1]}, ValueError, "query_weight must be finite and >= 0"),
    "NaN weight": (Y, S, {"qid": Q, "query_weight": [1, math.nan]}, ValueError, "query_weight must be finite and >= 0"),
    "weights of zero": (Y, S, {"qid": Q, "query_weight": [0, 0]}, ValueError, "at least one weight above 0"),
    "all empty under skip": ([0] * 4, S, {"qid": Q, "flavor": "burges2005"}, ValueError, "every query is empty.*leaves nothing to average.*use flavor="),
    "empty refused": ([0, 0, 1, 1], S, {"qid": list("aabb"), "flavor": Flavor(empty="raise")}, ValueError, "every query must have a relevant document.*1 of 2.*'a'.*flavor='ndcg\\[empty=skip\\]'"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_ndcg_score_refuses(case):
    y, s, arguments, error, message = CASES[case]
    with pytest.raises(error, match=f"(?s){message}"):
        ndcg_score(y, s, **arguments)
    with pytest.raises(error, match=f"(?s){message}"):
        evaluate(y, s, **arguments)


@pytest.mark.parametrize("case", [c for c in CASES if "empty" not in c])
def test_dcg_score_refuses_the_same(case):
    y, s, arguments, error, message = CASES[case]
    with pytest.raises(error, match=f"(?s){message}"):
        dcg_score(y, s, **arguments)


def test_a_query_of_size_zero_is_an_empty_query():
    result = evaluate(Y, S, group=[2, 0, 2], flavor="lightgbm")
    assert (result.n_queries, result.n_empty) == (3, 1)
    assert result.per_query.ndcg[1] == 1.0
    assert evaluate(np.zeros((2, 0)), np.zeros((2, 0))).n_empty == 2


def test_scores_of_excluded_rows_may_be_nan():
    kept = np.array([True, False, True, True])
    got = evaluate(Y, [0.4, math.nan, 0.2, 0.1], qid=Q, retrieved=kept).per_query.ndcg
    assert (got == evaluate(Y, S, qid=Q, retrieved=kept).per_query.ndcg).all()
    value = ndcg_score([[3, 0, 9]], [[0.1, 0.2, math.nan]], mask=np.array([[True, True, False]]))
    assert value == ndcg_score([[3, 0]], [[0.1, 0.2]])


@pytest.mark.parametrize(
    ("gain", "error", "message"),
    [
        (lambda y: "a", TypeError, r"Flavor\.gain as a callable must take one number and return one number"),
        (lambda y: math.log(y - 1), TypeError, r"gain\(0.0\) failed"),
        (lambda y: math.inf, ValueError, r"Flavor\.gain as a callable must return a finite number"),
    ],
)
def test_callables_that_fail_are_refused(gain, error, message):
    with pytest.raises(error, match=message):
        ndcg_score(Y, S, qid=Q, flavor=Flavor(gain=gain))
    discount = lambda rank: gain(rank - 1)  # noqa: E731
    with pytest.raises(error, match=message.replace("gain", "discount").replace("0.0", "1")):
        ndcg_score(Y, S, qid=Q, flavor=Flavor(discount=discount))


@pytest.mark.parametrize(
    ("grades", "judged", "error", "message"),
    [
        ([3, 0, 1], None, TypeError, r"grades\[0\] must be a list of grades.*got 3.*\[\[3, 0, 1\]\]"),
        ([[3, 0]], [[3], [1]], ValueError, "judged must have one list for each query of grades, 1; got 2"),
        ([[3, 3]], [[3, 0]], ValueError, r"judged\[0\] must hold every relevant grade of grades\[0\].*grade 3"),
        ([], None, ValueError, "group must hold at least one query size"),
        ([["a"]], None, TypeError, r"grades\[0\] must hold real numbers"),
        ([[[3]]], None, ValueError, r"grades\[0\] must be one list of grades; got shape \(1, 1\)"),
    ],
)
def test_evaluate_ranked_refuses(grades, judged, error, message):
    with pytest.raises(error, match=message):
        evaluate_ranked(grades, judged=judged)


def test_prepare_refuses_at_once_and_its_object_refuses_scores():
    with pytest.raises(ValueError, match="qid or group must be given"):
        prepare(Y)
    prepared = prepare(Y, qid=Q)
    with pytest.raises(ValueError, match=r"y_score must have the shape of y_true, \(4,\); got \(2,\)"):
        prepared([1.0, 2.0])


def test_per_query_names_its_columns():
    table = evaluate(Y, S, qid=Q).per_query
    assert (table["ndcg"] == table.ndcg).all()
    assert len(table) == 2
    assert set(dict(table)) >= {"qid", "ndcg", "dcg", "idcg", "n_docs", "n_relevant", "tied"}
    with pytest.raises(KeyError, match="'gain' is not a column of per_query; the columns are qid, ndcg"):
        table["gain"]
