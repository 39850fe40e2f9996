"""Invalid input raises a typed error that names the parameter, the constraint, the value and the fix."""

import datetime
import math
import re
import warnings
from typing import Any

import numpy as np
import pytest
from strategies import square_root

from ndcg_ml import (
    PRESETS,
    Flavor,
    PartialEvaluation,
    align,
    dcg_score,
    evaluate,
    evaluate_batches,
    evaluate_part,
    evaluate_ranked,
    explain_difference,
    identify,
    ndcg_score,
    prepare,
)
from ndcg_ml.flavor import as_flavor
from ndcg_ml.parts import exact_sum

Y, S, Q = [3, 0, 1, 2], [0.4, 0.3, 0.2, 0.1], [1, 1, 2, 2]
Y2, S2, MASK = [[3, 0], [1, 2]], [[0.4, 0.3], [0.2, 0.1]], np.array([[False, True], [False, False]])

HUGE = "begin" + "x" * 1_000_000 + "end"
MASKED = np.ma.masked_array([1, 1, 1], mask=[0, 1, 0])
OURS = {"y_score": S, "qid": Q, "doc_id": list("abcd"), "query_weight": [1, 2], "k": 1, "flavor": "lightgbm"}
SINGLE, ZEROS = "at least one weight above 0", [0] * 200_000


class Unhashable:
    __hash__ = None


class Stubborn:
    """An object whose conversion fails, like that of a tensor with a gradient."""

    def __array__(self, *_, **__):
        raise RuntimeError("not here")


CASES = {
    "no ids": (Y, S, {}, ValueError,
        (r"qid or group must be given with 1-D input.*Pass "
            r"qid=.*group=\[len\(y_true\)\].*ndcg_ml.sklearn.ndcg_scorer\(\)"),
        lambda: (ndcg_score(Y, S, qid=Q), ndcg_score(Y, S, group=[len(Y)]))),
    "classes": ([0, 2, 1], np.eye(3), {}, ValueError, r"pass np\.eye\(y_score\.shape\[1\]\)\[y_true\] as y_true",
        lambda: ndcg_score(np.eye(3)[[0, 2, 1]], np.eye(3))),
    "both": (Y, S, {"qid": Q, "group": [2, 2]}, ValueError, "qid and group.*pass one of them; got both",
        lambda: (ndcg_score(Y, S, qid=Q), ndcg_score(Y, S, group=[2, 2]))),
    "scores of another length": (Y, S[:3], {"qid": Q}, ValueError,
        r"y_score must have the shape of y_true, \(4,\); got \(3,\)"),
    "qid of another length": (Y, S, {"qid": [7, 7, 8]}, ValueError,
        r"qid must have one id per label; got 3 ids and 4 labels\.$"),
    "more ids than rows": (Y, S, {"qid": [0, 1, 1, 1, 1]}, ValueError,
        r"qid must have one id per label; got 5 ids and 4 labels\.$"),
    "sizes as qid": (Y, S, {"qid": [2, 2]}, ValueError, "qid must have one id per label.*pass them as group=",
        lambda: ndcg_score(Y, S, group=[2, 2])),
    "sizes that do not sum": (Y, S, {"group": [2, 1]}, ValueError,
        r"group must sum to the number of rows, 4; got a sum of 3\.$"),
    "ids as group": (Y, S, {"group": Q}, ValueError, "group must sum to.*pass them as qid=",
        lambda: ndcg_score(Y, S, qid=Q)),
    "string ids as group": (Y, S, {"group": list("aabb")}, TypeError, "group must hold integers.*pass them as qid=",
        lambda: ndcg_score(Y, S, qid=list("aabb"))),
    "negative size": (Y, S, {"group": [5, -1]}, ValueError, "group must hold sizes >= 0; got -1"),
    "2-D group": (Y, S, {"group": [[2, 2]]}, ValueError, r"group must be one-dimensional.*got shape \(1, 2\)"),
    "2-D qid": (Y, S, {"qid": [[1, 1, 2, 2]]}, ValueError, r"qid must be one-dimensional.*got shape \(1, 4\)"),
    "NaN score": (Y, [0.4, math.nan, math.nan, 0.1], {"qid": Q}, ValueError,
        "y_score must not hold NaN.*got 2 of 4, the first at row 1.*-inf",
        lambda: ndcg_score(Y, [0.4, -math.inf, 0.2, 0.1], qid=Q)),
    "NaN label": ([3, math.nan, 1, 2], S, {"qid": Q}, ValueError,
        "y_true must not hold NaN.*unjudged='raise'; got 1 of 4.*flavor='sklearn\\[unjudged=zero\\]'"),
    "NaN label under the recommended flavor": ([3, math.nan, 1, 2], S, {"qid": Q, "flavor": Flavor(k=10, empty="skip")},
        ValueError, "or use flavor='ndcg@10\\[empty=skip,unjudged=zero\\]', which gives"),
    "NaN label under a callable": ([3, math.nan, 1, 2], S, {"qid": Q, "flavor": Flavor(gain=abs)}, ValueError,
        r"or use flavor=flavor\.replace\(unjudged='zero'\), which gives"),
    "infinite label": ([3, math.inf, 1, 2], S, {"qid": Q}, ValueError,
        "y_true must be finite; got labels from 1.0 to inf"),
    "negative label": ([3, -1, 1, 2], S, {"qid": Q}, ValueError,
        "y_true must be >= 0.*got 1 negative labels, the lowest -1.0.*flavor='sklearn\\[negative=zero\\]'",
        lambda: ndcg_score([[3, -1], [1, 2]], S2, mask=np.array([[True, False], [True, True]]))),
    "fraction with a table": ([3, 0.5, 1, 2], S, {"qid": Q, "flavor": Flavor(gain=(0, 1, 3, 7))}, ValueError,
        "integer grades from 0 to 3.*got 0.5.*Extend the table"),
    "grade outside the table": ([3, 4, 1, 2], S, {"qid": Q, "flavor": Flavor(gain=(0, 1, 3, 7))}, ValueError,
        "integer grades from 0 to 3.*got 4",
        lambda: ndcg_score([3, 4, 1, 2], S, qid=Q, flavor=Flavor(gain=(0, 1, 3, 7, 15)))),
    "negative with a table": ([3, -1, 1, 2], S, {"qid": Q, "flavor": Flavor(gain=(0, 1, 3, 7), negative="allow")},
        ValueError, "integer grades.*got -1"),
    "grade above max_grade": (Y, S, {"qid": Q, "flavor": Flavor(ideal="max", max_grade=2)}, ValueError,
        "y_true must not exceed Flavor.max_grade=2.0; got 3.0.*Raise max_grade",
        lambda: ndcg_score(Y, S, qid=Q, flavor=Flavor(ideal="max", max_grade=3))),
    "k beyond any list": (Y, S, {"qid": Q, "k": 10**18, "flavor": Flavor(ideal="max", max_grade=3)}, ValueError,
        "k must be at most 100000000 under ideal='max'"),
    "k=0": (Y, S, {"qid": Q, "k": 0}, ValueError, "k must be an integer >= 1, or None.*got 0"),
    "k=-1": (Y, S, {"qid": Q, "k": -1}, ValueError, "k must be an integer >= 1.*got -1"),
    "k=True": (Y, S, {"qid": Q, "k": True}, TypeError, "k must be an integer >= 1.*got True of type bool"),
    "k=2.0": (Y, S, {"qid": Q, "k": 2.0}, TypeError, "k must be an integer >= 1.*got 2.0 of type float"),
    "k='2'": (Y, S, {"qid": Q, "k": "2"}, TypeError, "k must be an integer >= 1.*got '2' of type str"),
    "no k": (Y, S, {"qid": Q, "k": ()}, ValueError, "k must hold at least one cut-off"),
    "k twice": (Y, S, {"qid": Q, "k": (3, 3)}, ValueError, "k must not repeat a cut-off"),
    "bad k in a sequence": (Y, S, {"qid": Q, "k": (3, 0)}, ValueError, "k must be an integer >= 1.*got 0"),
    "unknown preset": (Y, S, {"qid": Q, "flavor": "lightgmb"}, ValueError,
        "got 'lightgmb' in 'lightgmb'. Did you mean 'lightgbm'",
        lambda: (ndcg_score(Y, S, qid=Q, flavor="lightgbm"),
            [Flavor.preset(name).describe() for name in list(PRESETS)])),
    "scores as a flavor": (Y, S, {"qid": Q, "flavor": np.ones(2)}, TypeError,
        r"of type ndarray. Pass an object, such as NDCGEval\('sklearn'\), or call ndcg_score",
        lambda: ndcg_score(Y, S, qid=Q)),
    "not a flavor": (Y, S, {"qid": Q, "flavor": 3}, TypeError,
        r"flavor must be a Flavor, the name of a preset.*got 3 of type int\. Pass a cut-off as k=3\.",
        lambda: ndcg_score(Y, S, qid=Q, k=3)),
    "mask of another shape": (Y2, S2, {"mask": [[True, False]]}, ValueError,
        r"mask must have the shape of y_true, \(2, 2\); got \(1, 2\)"),
    "mask of integers": (Y2, S2, {"mask": [[1, 0], [1, 1]]}, TypeError,
        r"mask must be an array of bool.*got dtype int.*np\.asarray\(mask, dtype=bool\)",
        lambda: ndcg_score(Y2, S2, mask=np.asarray([[1, 0], [1, 1]], dtype=bool))),
    "mask with 1-D": (Y, S, {"qid": Q, "mask": [True] * 4}, ValueError, "mask is for 2-D input.*Leave mask out",
        lambda: ndcg_score(Y, S, qid=Q)),
    "qid with 2-D": (Y2, S2, {"qid": [1, 2]}, ValueError, "qid is for 1-D input.*each row is one query.*Leave qid out",
        lambda: (ndcg_score(Y2, S2), ndcg_score(np.ravel(Y2), np.ravel(S2), qid=Q))),
    "group with 2-D": (Y2, S2, {"group": [1, 1]}, ValueError, "group is for 1-D input",
        lambda: (ndcg_score(Y2, S2), ndcg_score(np.ravel(Y2), np.ravel(S2), group=[2, 2]))),
    "retrieved of integers": (Y, S, {"qid": Q, "retrieved": [1, 1, 0, 0]}, TypeError,
        "retrieved must be an array of bool",
        lambda: ndcg_score(Y, S, qid=Q, retrieved=np.asarray([1, 1, 0, 0], dtype=bool))),
    "retrieved of another shape": (Y, S, {"qid": Q, "retrieved": [True]}, ValueError,
        r"retrieved must have the shape of y_true, \(4,\)"),
    "docid without ids": (Y, S, {"qid": Q, "flavor": "trec_eval"}, ValueError,
        "doc_id must be given under ties='docid'.*Pass doc_id=",
        lambda: ndcg_score(Y, S, qid=Q, flavor="trec_eval", doc_id=list("abcd"))),
    "repeated ids": ([1, 1, 1, 2], S, {"qid": Q, "flavor": "trec_eval", "doc_id": list("aabc")}, ValueError,
        "doc_id must not repeat within a query under duplicates='raise'; got .*'a'.*Remove the duplicate"),
    "repeated ids that are not needed": ([1, 1, 1, 2], S, {"qid": Q, "doc_id": list("aabc")}, ValueError,
        "doc_id must not repeat"),
    "copies with two labels": ([1, 1, 2, 2], S,
        {"group": [4], "doc_id": list("abac"), "flavor": Flavor(duplicates="first")}, ValueError,
        "y_true must be the same wherever a query repeats a doc_id; got 1 and"),
    "copies of which one is judged": ([1, 1, math.nan, 2], S,
        {"group": [4], "doc_id": list("abac"), "flavor": Flavor(duplicates="count", unjudged="zero")}, ValueError,
        "y_true must be the same wherever a query repeats a doc_id; got 1 and"),
    "a copy without a score": ([1, 1, 1, 2], [math.nan, 1, 1, 2],
        {"group": [4], "doc_id": list("aabc"), "flavor": "haystack"}, ValueError, "y_score must not hold NaN"),
    "a tie with a copy, averaged": ([1, 0, 1, 2], [1, 1, 1, 0],
        {"group": [4], "doc_id": list("abac"), "flavor": Flavor(duplicates="first")}, ValueError,
        "must not tie a document with its own repeat.*got 1 such.*duplicates=first"),
    "ascending ids without ids": (Y, S, {"qid": Q, "flavor": "sentence_transformers"}, ValueError,
        "given under ties='docid_ascending', which orders tied documents by ascending",
        lambda: ndcg_score(Y, S, qid=Q, flavor="sentence_transformers", doc_id=list("abcd"))),
    "a grade above a scale beyond float32": ([2e39, 0, 1, 0], S, {"qid": Q, "flavor": Flavor(max_grade=1e39)},
        ValueError, r"must not exceed Flavor\.max_grade=1e\+39",
        lambda: ndcg_score([2e39, 0, 1, 0], S, qid=Q, flavor=Flavor(max_grade=2e39))),
    "above max_grade in a long list": ([*ZEROS[:300], 3], range(301),
        {"group": [301, 0], "flavor": Flavor(max_grade=2)}, ValueError, r"must not exceed Flavor\.max_grade=2"),
    "beyond the table in a long list": ([*ZEROS[:300], 3], range(301),
        {"group": [301], "flavor": Flavor(gain=(0, 1, 2))}, ValueError,
        "integer grades from 0 to 2 for a gain table of 3"),
    "a tiny gain at the end of a long list": ([*ZEROS, 1e-200], range(200_001), {"group": [200_001]}, ValueError,
        r"gains must be 0 or at least 2\*\*-500; got 1e-200",
        lambda: ndcg_score([*ZEROS, 1], range(200_001), group=[200_001])),
    "labels above a binary scale": (Y, S, {"qid": Q, "flavor": Flavor(gain="binary", max_grade=1)}, ValueError,
        r"y_true must not exceed Flavor\.max_grade=1",
        lambda: ndcg_score(Y, S, qid=Q, flavor=Flavor(gain="binary", max_grade=3))),
    "a grade above gdeval's": ([5, 0, 1, 0], S, {"qid": Q, "flavor": "gdeval", "doc_id": list("abcd")}, ValueError,
        r"must not exceed Flavor\.max_grade=4",
        lambda: ndcg_score([5, 0, 1, 0], S, qid=Q, flavor="gdeval[max_grade=5]", doc_id=list("abcd"))),
    **{
        f"{label} under {preset}": ([label, 0, 1, 2], S, {"qid": Q, "flavor": preset}, ValueError, words)
        for preset in ("letor3", "mslr")
        for label,
            words in ((0.5, "integer grades >= 0 for a gain table"), (7.5, "integer grades >= 0 for"),
                (-1, r"must be >= 0 under negative='raise'.*\[negative=zero\]'"))
    },
    "a missing document id": (Y, S,
        {"qid": Q, "doc_id": np.array(["2026-01-01", "NaT", "2026-01-02", "2026-01-03"], dtype="M8[D]")}, ValueError,
        "doc_id must have an id for every document; got a missing value"),
    "ids of another shape": (Y, S, {"qid": Q, "doc_id": list("abc")}, ValueError,
        r"doc_id must have the shape of y_true, \(4,\); got \(3,\)"),
    "ids that have no order": (Y, S, {"qid": Q, "doc_id": np.array(["a", 1, "b", 2], dtype=object)}, TypeError,
        "doc_id must hold ids of one type.*got int, str"),
    "missing document ids": (Y, S, {"qid": Q, "doc_id": [1.0, math.nan, 2.0, 3.0]}, ValueError,
        "doc_id must have an id for every document; got a missing value"),
    "missing qid": (Y, S, {"qid": [1.0, math.nan, 2.0, 2.0]}, ValueError,
        r"qid must have an id for every row; got a missing value \(NaN or NaT\)"),
    "missing time as qid": (Y, S, {"qid": np.array(["2020-01-01", "NaT", "2020-01-01", "2020-01-02"], "M8[D]")},
        ValueError, "qid must have an id for every row"),
    "None as qid": (Y, S, {"qid": ["a", None, "b", "b"]}, ValueError,
        "qid must have an id for every row; got a missing value at row 1"),
    "unhashable qid": (Y, S, {"qid": np.array([Unhashable() for _ in Y], dtype=object)}, TypeError,
        "qid must hold hashable ids; got .*Unhashable"),
    "ragged lists": ([[1, 0], [1]], [[1, 0], [1]], {}, ValueError,
        "y_true must be a one- or two-dimensional array.*flattened, with qid=",
        lambda: ndcg_score([1, 0, 1], [1, 0, 1], qid=[0, 0, 1])),
    "three dimensions": (np.zeros((2, 2, 2)), np.zeros((2, 2, 2)), {}, ValueError,
        r"y_true must be one- or two-dimensional; got shape \(2, 2, 2\)"),
    "a number": (1.0, 1.0, {}, ValueError, r"y_true must be one- or two-dimensional; got shape \(\)"),
    "strings": (list("abcd"), S, {"qid": Q}, TypeError,
        "y_true must hold real numbers; got text, such as 'a'. Map words to grades, and convert numbers with float",
        lambda: ndcg_score(list(map({"a": 0, "b": 1}.get, "abba")), S, qid=Q)),
    "numbers in text": (Y, np.array(list("1234")), {"qid": Q}, TypeError,
        r"y_score must hold real numbers; got text.*or \.astype\(float\)",
        lambda: ndcg_score(Y, np.array(list("1234")).astype(float), qid=Q)),
    "names of columns": ("rating", "score", {"qid": "user"}, TypeError,
        (r"got text, such as 'rating'\. For names of columns, use evaluate\(df, columns={'qid': 'user', 'label': "
            r"'rating',")),
    "objects": (np.array([1j, 1, None, 2], dtype=object), S, {"qid": Q}, TypeError,
        "y_true must hold real numbers; got an array of Python objects"),
    "qrels and a run": ({"q": {"d": 1}}, {"q": {"d": 0.5}}, {}, TypeError,
        r"use evaluate_run\(qrels, run\), or pass \*\*align\(qrels, run\)\.arguments\(\)",
        lambda: ndcg_score(**align({"q": {"d": 1}}, {"q": {"d": 0.5}}).arguments())),
    "complex": (Y, np.array(S, dtype=complex), {"qid": Q}, TypeError,
        "y_score must hold real numbers; got dtype complex128"),
    "masked array": (Y, np.ma.masked_array(S, mask=[0, 1, 0, 0]), {"qid": Q}, TypeError,
        "y_score is a NumPy masked array, whose mask would be lost",
        lambda: (ndcg_score(Y, np.ma.masked_array(S, mask=[0, 1, 0, 0]).data, qid=Q),
            ndcg_score(Y2, np.ma.masked_array(S2, mask=MASK).data, mask=~MASK))),
    "no number": (Y2, 2, {}, ValueError, "^y_score must"),
    "None": (np.array(None), np.array(None), {}, (TypeError, ValueError), "^y_true must"),
    "a mask with a mask": (Y2, S2, {"mask": np.ma.masked_array([[True] * 2] * 2, mask=[[0, 1], [0, 0]])}, TypeError,
        "^mask is a NumPy masked array",
        lambda: ndcg_score(Y2, S2, mask=np.ma.masked_array([[True] * 2] * 2, mask=MASK).data)),
    "a column": (np.array(Y)[:, None], np.array(S)[:, None], {}, ValueError,
        r"\(4, 1\) may be 4 rows.*y_true\.squeeze\(-1\).*qid=.*mask=np\.ones",
        lambda: (ndcg_score(np.array(Y)[:, None].squeeze(-1), np.array(S)[:, None].squeeze(-1), qid=Q),
            ndcg_score(np.array(Y)[:, None], np.array(S)[:, None], mask=np.ones((4, 1), dtype=bool)))),
    "a column of lists": ([[3], [0]], [[0.4], [0.3]], {}, ValueError, r"pass np\.asarray\(y_true\)\.squeeze\(-1\)",
        lambda: ndcg_score(np.asarray([[3], [0]]).squeeze(-1), np.asarray([[0.4], [0.3]]).squeeze(-1), group=[2])),
    "a superfluous axis of scores": (Y, np.array(S)[:, None], {"group": [4]}, ValueError,
        r"got \(4, 1\)\. The last axis of y_score is one too many: pass y_score\.squeeze\(-1\)",
        lambda: ndcg_score(Y, np.array(S)[:, None].squeeze(-1), group=[4])),
    "a superfluous axis of labels": (np.array(Y)[:, None], S, {"qid": Q}, ValueError, r"y_true\.squeeze\(-1\)",
        lambda: ndcg_score(np.array(Y)[:, None].squeeze(-1), S, qid=Q)),
    "three axes, the last of them superfluous": (np.ones((2, 3, 1)), np.ones((2, 3, 1)), {}, ValueError,
        r"not have the shape \(2, 3, 1\).*squeeze\(-1\)",
        lambda: (ndcg_score(*[np.ones((2, 3, 1)).squeeze(-1)] * 2),
            ndcg_score(*[np.ones((2, 3, 1)).reshape(6, 1)] * 2, mask=np.ones((6, 1), dtype=bool)))),
    "ids of two types": (Y, S, {"qid": Q, "doc_id": [1, "1", 2, 3]}, TypeError, "^doc_id must hold ids of one type"),
    **{
        f"ids that are floats, {name}": (Y, S, {"qid": Q, "doc_id": ids}, TypeError,
            "doc_id must hold strings or integers.*got floats, such as 9.0. Convert them to",
            lambda ids=ids: [ndcg_score(Y, S, qid=Q, doc_id=[*map(kind, ids)]) for kind in (str, int)])
        for name,
            ids in {"a list": [9.0, 10, 100, 11], "an array": np.float32([9, 10, 100, 11]),
                "objects": np.array([9.0, 10.0, 100.0, 11.0], dtype=object)}.items()
    },
    "ids of two types in rows": (Y2, S2, {"doc_id": [[1, "1"], [2, 3]]}, TypeError,
        "^doc_id must hold ids of one type"),
    "bytes and text": (Y, S, {"qid": Q, "doc_id": [b"1", "1", "2", "3"]}, TypeError,
        "^doc_id must hold ids of one type"),
    "a huge sum of sizes": (Y, S, {"group": np.array([2**62] * 4 + [4])}, ValueError,
        "group must sum to the number of rows, 4; got a sum of 18446744073709551620"),
    "a huge unsigned size": (Y, S, {"group": np.array([4, 2**64 - 1], dtype=np.uint64)}, ValueError,
        "group must sum to the number of rows, 4; got a sum of 18446744073709551619"),
    # messages show part of the data
    "a huge document id": ([1] * 4, S, {"qid": Q, "doc_id": [HUGE] * 4}, ValueError, "doc_id"),
    "a huge id of an empty query": ([0, 0, 1, 1], S, {"qid": [HUGE, HUGE, "b", "b"], "flavor": Flavor(empty="raise")},
        ValueError, "relevant document"),
    "a huge unhashable id": (Y, S, {"qid": np.array([{HUGE}, {"b"}] * 2, dtype=object)}, TypeError, "hashable"),
    "a weight of a huge id": (Y, S, {"qid": list("aabb"), "query_weight": {HUGE: 1}}, ValueError, "query_weight"),
    "no weight of a huge id": (Y, S, {"qid": [HUGE, HUGE, "b", "b"], "query_weight": {"b": 1}}, ValueError,
        "query_weight"),
    "a huge flavor": (Y, S, {"qid": Q, "flavor": HUGE}, ValueError, "flavor"),
    "an array as flavor": (Y, S, {"qid": Q, "flavor": np.zeros((300, 300))}, TypeError, "flavor"),
    "a huge label": (np.array([1, HUGE, 1, 1], dtype=object), S, {"qid": Q}, TypeError, "y_true"),
    "a huge cut-off": (Y, S, {"qid": Q, "k": HUGE}, TypeError, "k must be"),
    "nothing, by qid": ([], [], {"qid": []}, ValueError, "qid must hold at least one row; got none"),
    "nothing, by group": ([], [], {"group": []}, ValueError, "group must hold at least one query size; got none"),
    "nothing, 2-D": (np.zeros((0, 3)), np.zeros((0, 3)), {}, ValueError,
        r"y_true must hold at least one query, a row with a document; got none in shape \(0, 3\)\."),
    "no documents": (np.zeros((2, 0)), np.zeros((2, 0), dtype=int), {}, ValueError,
        r"at least one query, a row with a document; got none in shape \(2, 0\)"),
    "padding alone": (Y2, S2, {"mask": np.zeros((2, 2), dtype=bool)}, ValueError,
        r"at least one query, a row with a document; got none in shape \(2, 2\)"),
    "weights of rows": (Y, S, {"qid": Q, "query_weight": [1, 1, 1, 1]}, ValueError,
        r"query_weight must have one weight per query, shape \(2,\); got \(4,\)"),
    "weights by name without ids": (Y, S, {"group": [2, 2], "query_weight": {1: 1, 2: 2}}, TypeError,
        "query_weight must be an array.*have no ids; got a mapping. Pass qid=",
        lambda: ndcg_score(Y, S, qid=Q, query_weight={1: 1, 2: 2})),
    "negative weight": (Y, S, {"qid": Q, "query_weight": [1, -1]}, ValueError, "query_weight must be finite and >= 0"),
    "NaN weight": (Y, S, {"qid": Q, "query_weight": [1, math.nan]}, ValueError, "query_weight must be finite and >= 0"),
    "weights of zero": (Y, S, {"qid": Q, "query_weight": [0, 0]}, ValueError, "at least one weight above 0"),
    "weights whose sum overflows": (Y, S, {"qid": Q, "query_weight": [1e150, 1e150]}, ValueError, SINGLE),
    "weights whose squares underflow": (Y, S, {"qid": Q, "query_weight": [1e-150, 1e-151]}, ValueError, SINGLE),
    "weights too small, micro": (Y, S,
        {"qid": Q, "query_weight": [5e-324, 5e-324], "flavor": Flavor(aggregate="micro")}, ValueError, SINGLE),
    "an infinite weight, micro": (Y, S, {"qid": Q, "query_weight": [math.inf, 1], "flavor": Flavor(aggregate="micro")},
        ValueError, SINGLE),
    "all empty under skip at one of two cut-offs": ([0, 3, 0, 2], S,
        {"qid": Q, "k": (2, 1), "flavor": Flavor(ideal="local", empty="skip")}, ValueError,
        "leaves nothing to average"),
    "all empty under skip": ([0] * 4, S, {"qid": Q, "flavor": "burges2005"}, ValueError,
        "every query is empty.*leaves nothing to average.*use flavor="),
    "empty refused": ([0, 0, 1, 1], S, {"qid": list("aabb"), "flavor": Flavor(empty="raise")}, ValueError,
        "every query must have a relevant document.*1 of 2.*'a'.*flavor='ndcg\\[empty=skip\\]'"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_ndcg_score_evaluate_and_dcg_score_refuse(case):
    y, s, arguments, error, message, *advised = CASES[case]
    with pytest.raises(error, match=f"(?s){message}") as caught:
        ndcg_score(y, s, **arguments)
    text = str(caught.value)
    assert len(text) < 1000
    assert "\n" not in text
    with pytest.raises(error, match=f"(?s){message}"):
        evaluate(y, s, **arguments)
    if advice := re.search(r"flavor=(flavor\.replace\(.*?\)|'[a-z_@0-9]+\[[^']+')", text):
        passed = as_flavor(arguments.get("flavor", "sklearn"))
        ndcg_score(y, s, **{**arguments, "flavor": eval(advice[1], {"flavor": passed})})
    if "flavor.replace(gain='linear', off_table='raise')" in text:
        flavor = as_flavor(arguments["flavor"]).replace(gain="linear", off_table="raise")
        ndcg_score(y, s, **{**arguments, "flavor": flavor})
    assert all(call() is not None for call in advised)
    if "empty" not in case:
        with pytest.raises(error, match=f"(?s){message}"):
            dcg_score(y, s, **arguments)


def test_a_query_of_size_zero_is_an_empty_query():
    result = evaluate(Y, S, group=[2, 0, 2], flavor="lightgbm")
    assert (result.n_queries, result.n_empty) == (3, 1)
    assert result.per_query.ndcg[1] == 1.0
    assert evaluate([], [], group=[0, 0], doc_id=[]).n_empty == 2


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
        ([3, 0, 1], None, TypeError, r"grades\[0\] must be a list of grades.*got 3.*wrap its list: \[\[3, 0, 1\]\]"),
        ([[3, 0]], [[3], [1]], ValueError, "judged must have one list for each query of grades, 1; got 2"),
        ([[1, 1]], [[1, 0]], ValueError, r"judged\[0\] must hold every relevant grade of grades\[0\].*grade 1"),
        ([], None, ValueError, "grades must hold at least one list"),
        (np.array(3), None, TypeError, "grades must be a list of grades for each query; got ndarray"),
        ([["a"]], None, TypeError, r"grades\[0\] must hold real numbers"),
        ([[[3]]], None, ValueError, r"grades\[0\] must be one list of grades; got shape \(1, 1\)"),
        (
            [[1, [2]]],
            None,
            ValueError,
            r"^grades\[0\] must be a one- or two-dimensional array; got list that is not one",
        ),
        ([[[1], [1, 2]]], None, ValueError, r"^grades\[0\] must be a one- or two-dimensional array"),
    ],
)
def test_evaluate_ranked_refuses(grades, judged, error, message):
    with pytest.raises(error, match=message):
        evaluate_ranked(grades, judged=judged)
    assert "wrap its list" not in message or evaluate_ranked([grades]) is not None


REALS = "must hold real numbers"
NUMBERS = {
    "a number too large": ([1, 10**400, 2], ValueError, "must hold numbers that float64 can hold; got one that is too"),
    "a string among objects": (np.array([1, "2", 3], dtype=object), TypeError, f"{REALS}; got text, such as '2'"),
    "bytes among objects": (np.array([1, b"2", 3], dtype=object), TypeError, f"{REALS}.* such as b'2'"),
    "complex among objects": (np.array([1, 2j, 3], dtype=object), TypeError, f"{REALS}; got .* such as 2j"),
    "NumPy's complex": (np.array([1, np.complex64(2), 3], dtype=object), TypeError, f"{REALS}.*complex64"),
    "times among objects": (np.array([1, np.timedelta64(1, "s"), 3], dtype=object), TypeError, REALS),
    "a list of strings": (["1", "2", "3"], TypeError, f"{REALS}; got text, such as '1'"),
    "dates": (np.array(["2020-01-01"] * 3, dtype="M8[D]"), TypeError, f"{REALS}; got dtype datetime64"),
    "records": (np.zeros(3, dtype="i4,f8"), TypeError, REALS),
    "variable-width strings": (np.array(["1", "2", "3"], dtype="T" if hasattr(np.dtypes, "StringDType") else "U3"),
        TypeError, REALS),
    "a set": ({1, 2, 3}, TypeError, f"{REALS}; got an array of Python objects"),
    "a generator": ((each for each in [1, 2, 3]), TypeError, REALS),
    "a mapping": ({0: 1, 1: 2, 2: 3}, TypeError, "must (hold real numbers|be an array in the order of the queries)"),
}  # fmt: skip
ARRAYS = {
    "masked": (MASKED, TypeError, "is a NumPy masked array, whose mask would be lost"),
    "stubborn": (Stubborn(), TypeError, r"must be an array; got Stubborn, which NumPy cannot read \(not here\)"),
    "ragged": ([[1, 2], [3]], ValueError, "must be a one- or two-dimensional array; got list that is not one"),
}
OF_NUMBERS = ("y_true", "y_score", "query_weight")


@pytest.mark.parametrize(
    ("name", "case"),
    [
        *((name, case) for name in OF_NUMBERS for case in NUMBERS.values()),
        *((name, case) for name in (*OF_NUMBERS, "retrieved", "qid", "group", "doc_id") for case in ARRAYS.values()),
    ],
)
def test_every_argument_is_an_array(name, case):
    value, error, message = case
    arguments = {"y_true": [1, 0, 2], "y_score": [3, 2, 1]} | (
        {"group": [1] * 3} if name not in ("qid", "group") else {}
    )
    with pytest.raises(error, match=f"^{name} {message}") as caught:
        ndcg_score(**{**arguments, name: value})
    if "convert numbers with float()" in str(caught.value):
        ndcg_score(**{**arguments, name: [float(number) for number in value]})
    if f"Pass {name}.data" in str(caught.value):
        ndcg_score(**{**arguments, name: value.data.astype(bool if name == "retrieved" else int)})
    by_rows = name in ("y_true", "y_score", "retrieved", "doc_id")
    advised = "flattened, with qid=" in str(caught.value) or ", with mask= for 2-D" in str(caught.value)
    assert advised == (by_rows and ("list that is not one" in message or "masked" in message))


@pytest.mark.parametrize("missing", [None, math.nan, np.datetime64("NaT", "s")])
@pytest.mark.parametrize("name", ["qid", "doc_id"])
@pytest.mark.parametrize("part", [False, True], ids=["an id", "a part of an id"])
def test_missing_ids_are_refused(missing, name, part):
    ids = np.empty(3, dtype=object)
    ids[:] = [("a", 1), ("b", missing), ("c", 2)] if part else ["a", missing, "c"]
    arguments = {"group": [3], "doc_id": ids} if name == "doc_id" else {"qid": ids}
    with pytest.raises(ValueError, match=rf"^{name} must have an id for every (row|document); got a missing value"):
        ndcg_score([2, 1, 0], [2, 1, 0], **arguments)


def test_prepare_refuses_at_once_and_its_object_refuses_scores():
    with pytest.raises(ValueError, match="qid or group must be given"):
        prepare(Y)
    prepared = prepare(Y, qid=Q)
    with pytest.raises(ValueError, match=r"y_score must have the shape of y_true, \(4,\); got \(2,\)"):
        prepared([1.0, 2.0])
    with pytest.raises(ValueError, match="last axis of y_true is one too many"):
        prepare(np.array(Y)[:, None], mask=np.ones((4, 1), dtype=bool))(S)
    prepare(np.array(Y)[:, None].squeeze(-1), qid=Q)(S)


def test_per_query_names_its_columns():
    table = evaluate(Y, S, qid=Q).per_query
    assert (table["ndcg"] == table.ndcg).all()
    assert len(table) == 2
    assert set(dict(table)) >= {"qid", "ndcg", "dcg", "idcg", "n_docs", "n_relevant", "tied"}
    with pytest.raises(KeyError, match="'gain' is not a column of per_query; the columns are qid, ndcg"):
        table["gain"]


class _NoRepr:
    def __repr__(self) -> str:
        raise RuntimeError("no text of this one")


def message(value: object) -> str:
    with pytest.raises((TypeError, ValueError)) as raised:
        Flavor(ties=value)
    return str(raised.value)


SHORT = ["q1", b"\x00", 3, 2.5, None, ("a", 1), "two  spaces", "x" * 80, "é\n"]
LONG = ["begin" + "x" * 10_000_000 + "end", b"begin" + b"x" * 10_000_000 + b"end", ("begin" + "\x00" * 1_000 + "end",)]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        *((value, [repr(value)]) for value in SHORT),
        *((value, ["begin", "...", "end"]) for value in LONG),
        (np.arange(1000.0).reshape(10, 100), ["array([[ 0.", "...", "999.]])"]),
        *((value, []) for value in (list(range(100_000)), 10**10_000, _NoRepr())),
    ],
    ids=[*map(repr, SHORT), "str", "bytes", "escapes", "array", "list", "integer", "no repr"],
)
def test_a_value_fits_on_a_line_as_its_repr_or_with_both_ends(value, words):
    text = message(value)
    assert len(text) <= 300
    assert text.isprintable()
    assert all(word in text for word in words)


# -- what parts and streams refuse, in each part or when they are merged


ROWS = np.ones((2, 3))
HALF_MASKED = np.ma.masked_array([1, 2], mask=[False, True])
SKIP, CALLABLE = Flavor(empty="skip"), Flavor(gain=square_root)


def part(qid: Any = 1, labels: Any = 1, **options: Any) -> PartialEvaluation:
    """Two queries of one document that have these ids, or one query."""
    ids = np.atleast_1d(np.asarray(qid))
    return evaluate_part(np.full(ids.size, labels), np.ones(ids.size), qid=ids, **options)


def objects(*ids: Any) -> Any:
    out = np.empty(len(ids), dtype=object)
    out[:] = ids
    return out


def stream(*ids: Any, scores: Any = (1, 2)) -> PartialEvaluation:
    return evaluate_batches([([1, 0][: len(each)], scores[: len(each)], each) for each in ids])


@pytest.mark.parametrize(
    "case",
    [
        *((lambda bad=bad: exact_sum([1.0, *bad]), ValueError, "too large for float64") for bad in ([math.nan],
            [math.inf], [math.inf, -math.inf], [1.7e308, 1.7e308])),
        (lambda: evaluate_part([], [1.0], qid=[]), ValueError, "y_score must be as long as y_true"),
        *((lambda name=name: evaluate_part([], [], qid=[], **{name: [True]}), ValueError,
            f"{name} must be as long as y_true, 0; got") for name in ("query_weight", "retrieved", "doc_id")),
        (lambda: evaluate_part(Y, S, qid=Q, mask=[False] * 4), ValueError, "mask is for 2-D input"),
        (lambda: evaluate_part(Y2, S2, query_id=[1, 2], mask=[[0, 0], [0, 0]]), TypeError,
            "mask must be an array of bool"),
        (lambda: evaluate_part(Y2, S2, query_id=[1], mask=MASK & False), ValueError,
            r"query_id must be as long as y_true, 2; got shape \(1,\)"),
        (lambda: part(query_weight=[0.0]).value, ValueError, "above 0"),
        (lambda: part(query_weight=[0.0, 0.0]), ValueError, "one weight per query"),
        (lambda: part(["a", "b"], [1, 0], flavor=Flavor(empty="raise")), ValueError, "query 'b'",
            lambda: part(["a", "b"], [1, 0], flavor="ndcg[empty=skip]").value),
        (lambda: part(labels=0, flavor=SKIP).value, ValueError, "nothing to average",
            lambda: part(labels=0, flavor="ndcg").value),
        # ids
        (lambda: evaluate_part(ROWS, ROWS), ValueError, "got neither",
            lambda: evaluate_part(ROWS, ROWS, query_id=[1, 2])),
        (lambda: evaluate_part([1], [1], qid=[1], query_id=[1]), ValueError, "got both",
            lambda: (evaluate_part([1], [1], qid=[1]), evaluate_part([1], [1], group=[1], query_id=[1]))),
        (lambda: evaluate_part(ROWS, ROWS, query_id=[1, 2, 3]), ValueError, "one id per query, 2; got 3"),
        (lambda: evaluate_part(Y, Y, group=[1] * 4, query_id=[3, 2, 1, 2]), ValueError,
            "query_id must have each query once; got 2"),
        (lambda: evaluate_part(ROWS, ROWS, query_id=[1, math.nan]), ValueError, "missing value"),
        (lambda: evaluate_part(ROWS, ROWS, query_id=["1", 1]), TypeError, "all of one type"),
        (lambda: evaluate_part(ROWS, ROWS, query_id=HALF_MASKED), TypeError, "query_id",
            lambda: evaluate_part(ROWS, ROWS, query_id=HALF_MASKED.data)),
        (lambda: part(objects((1, 2), "a")), TypeError, "query ids must be integers, strings"),
        (lambda: part(objects(1, "a")), TypeError, "query ids must be integers, strings"),
        (lambda: part(np.array([1 + 2j, 3])), TypeError, "query ids must be integers, strings"),
        (lambda: part(objects((0.5, 1.5), (0.5, 1.5))), TypeError, "query ids must be integers, strings"),
        (lambda: part(np.array([1, 2], dtype="m8[s]")), TypeError, "query ids must be integers, strings"),
        (lambda: part(objects(np.timedelta64(1, "s"), np.timedelta64(2, "s"))), TypeError,
            "query ids must be integers, strings"),
        *((lambda wide=wide: part(objects(0, wide)), TypeError,
            f"that are integers must fit in 64 bits; got {wide}") for wide in (2**64, -(2**63) - 1)),
        # merged
        (lambda: part([1]) + part(["1"]), TypeError, "query ids must have one type in all parts"),
        (lambda: part([1]) + part([1.0]), TypeError, "query ids must have one type in all parts"),
        (lambda: part(["a"]) + part([b"a"]), TypeError, "query ids must have one type in all parts"),
        (lambda: part([-7, 93]) + part(-7), ValueError, r"is in two of the parts \(such as query -7\)\. Either"),
        (lambda: part([12, 112]) + part(12), ValueError, r"is in two of the parts \(such as query 12\)\. Either"),
        (lambda: part(k=5) + part(2, k=6), ValueError, "one flavor and the same cut-offs"),
        (lambda: part(k=5) + part(2, k=[5]), ValueError, "one flavor and the same cut-offs"),
        (lambda: part(k=5) + part(2, k=5, flavor="lightgbm"), ValueError, "one flavor and the same cut-offs"),
        (lambda: PartialEvaluation.merge([]), ValueError, "at least one part"),
        # type: ignore[list-item]
        (lambda: PartialEvaluation.merge([part(), 0.5]), TypeError, "PartialEvaluation objects; got float"),
        *((lambda wrong=wrong: wrong + part(), TypeError, "unsupported operand") for wrong in (1, 0.0, None)),
        # callables are blamed only if all else is the same
        *(
            (lambda more=more: part(flavor=CALLABLE, k=[1, 2]) + part(2, **{"flavor": CALLABLE, "k": [1, 2], **more}),
                ValueError, "^parts must have one flavor and the same cut-offs; got ")
            for more in ({"flavor": CALLABLE.replace(discount="ln")}, {"k": [1, 3]}, {"k": [2, 3]}, {"k": 1})
        ),
        # streams
        (lambda: evaluate_batches([([1, 1, 0], [1, 1, 0], ["1", 1, 2])]), TypeError, "all of one type"),
        (lambda: stream(HALF_MASKED), TypeError, "qid", lambda: stream(HALF_MASKED.data)),
        (lambda: stream(objects(2**64, 2**64 + 1)), TypeError, "must fit in 64 bits; got 18446744073709551616"),
        (lambda: stream(np.array([1, 2], dtype="M8[ps]")), TypeError, "whole nanoseconds"),
        (lambda: stream([datetime.date(2026, 1, 1)]), TypeError, "got date"),
        (lambda: stream([7], ["7"]), TypeError, "one type in all parts, .*; got int and str"),
        (lambda: stream([7, 7], scores=np.array([2**60 + 1, 2**60])), ValueError,
            "y_score must hold scores that stay different in float64",
            lambda: stream([7, 7], scores=np.array([2**60 + 1, 2**60]) - 2**60)),
        (lambda: sum([stream([1, 2]), stream([2, 3])]), ValueError, "a query was split",
            lambda: evaluate_batches([([1, 0], [1, 2], [1, 2]), ([1, 0], [1, 2], [2, 3])])),
        *((lambda n=n: stream(*([2 * i, 2 * i + 1] for i in range(n)), [0]), ValueError,
            r"a query reappeared after other queries\. Sort the rows",
            lambda: (stream([0, 0], [1]), sum([stream([0, 0]), stream([1])]))) for n in (1, 2, 300)),
        (lambda: evaluate_batches([], flavor=Flavor(ties="docid")), ValueError, "docid",
            lambda: (evaluate_batches([([1], [1], [1])], flavor="ndcg"),
                part(flavor=Flavor(ties="docid"), doc_id=["d"]))),
        (lambda: evaluate_batches([([1], [1])]), TypeError, "batch 0 is a tuple of 2"),  # type: ignore[list-item]
        (lambda: evaluate_batches([([1], [1], [1]), 5]), TypeError, "batch 1 is a int"),  # type: ignore[list-item]
        (lambda: evaluate_batches([([1], [1, 2], [1])]), ValueError, r"batch 0 has shapes \(1,\), \(2,\) and \(1,\)"),
        (lambda: evaluate_batches([([[1]], [[1]], [[1]])]), ValueError, "one label, score and query id per row"),
        (lambda: evaluate_batches([([1], [math.nan], [1])]), ValueError, "must not hold NaN",
            lambda: evaluate_batches([([1], [-math.inf], [1])])),
        (lambda: evaluate_batches([([1, 1], [1, 2], [1.0, math.nan])]), ValueError, "missing value"),
        (lambda: evaluate_batches([(["a"], [1], [1])]), TypeError, "y_true"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:each of the")
def test_a_part_or_a_sum_is_refused(case: Any) -> None:
    call, error, words, *advised = case
    with pytest.raises(error, match=words):
        call()
    assert all(each() is not None for each in advised)


# -- likely mistakes on every route for arrays


LABELS, SCORES = np.array([3.0, 0, 1, 0, 2, 1]), np.array([0.9, 0.8, 0.1, 0.5, 0.4, 0.3])

ROUTES = {
    "ndcg_score": lambda y, s, **given: ndcg_score(y, s, **given),
    "dcg_score": lambda y, s, **given: dcg_score(y, s, **given),
    "evaluate": lambda y, s, **given: evaluate(y, s, **given).value,
    "prepare": lambda y, s, **given: prepare(y, **given)(s),
    "explain_difference": lambda y, s, **given: explain_difference("sklearn", "lightgbm", y, s, **given).value_a,
    "identify": lambda y, s, **given: identify(1.0, y, s, k=3, **given),
    "evaluate_part": lambda y, s, **given: evaluate_part(y, s, query_id=np.arange(len(y)), **given).value,
}


@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
def test_likely_mistakes_are_refused_or_warned_of_on_every_route(route):
    with pytest.raises(ValueError, match=r"\(6, 1\) may be 6 rows.*y_true\.squeeze\(-1\).*qid=.*mask=np\.ones"):
        route(LABELS[:, None], SCORES[:, None])
    with pytest.raises(ValueError, match=r"shape \(2, 3, 1\).*squeeze\(-1\)"):
        route(LABELS.reshape(2, 3, 1), SCORES.reshape(2, 3, 1))
    # With a mask, a column is lists of one document.
    with pytest.warns(UserWarning, match="each of the 6 queries has one document") as seen:
        value = route(LABELS[:, None], SCORES[:, None], mask=np.ones((6, 1), dtype=bool))
    assert seen[0].filename == __file__  # the warning points at the caller's line
    if isinstance(value, float) and route not in (ROUTES["dcg_score"],):
        assert value == pytest.approx(4 / 6)  # the share of relevant rows
    grades, scores = LABELS.reshape(2, 3), SCORES.reshape(2, 3)
    with pytest.warns(UserWarning, match="y_score holds integers and y_true does not, as if the two were swap") as seen:
        route(scores, grades)
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        route(grades, scores)


@pytest.mark.parametrize("route", ["ndcg_score", "dcg_score", "evaluate", "prepare", "explain_difference", "identify"])
def test_sizes_of_0_are_queries_and_cause_a_warning(route):
    ids, rows = [2, 2, 5, 5], (np.array([0, 1, 0, 2]), np.array([0.1, 0.2, 0.4, 0.3]))
    sizes = np.bincount(ids)  # with a 0 for each gap
    with pytest.warns(UserWarning, match=r"4 sizes of 0.*np\.bincount.*qid=, or group=sizes\[sizes > 0\]") as seen:
        value = ROUTES[route](*rows, group=sizes)
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        advised = [ROUTES[route](*rows, group=sizes[sizes > 0]), ROUTES[route](*rows, qid=ids)]
    assert str(advised[0]) == str(advised[1])
    assert not isinstance(value, float) or value == pytest.approx(advised[0] / 3)


PAIR = [[0.5, 0.25, 0.75]]


@pytest.mark.parametrize(
    ("labels", "scores", "given", "warns"),
    [
        (PAIR, [[2, 0, 1]], {}, True),
        (PAIR, [[2.0, 0.0, 100.0]], {}, True),
        (PAIR, [[2, 0, 101]], {}, False),  # views or ranks
        (PAIR, [[2, 0, -1]], {}, False),
        (PAIR, [[0, 0, 0]], {}, False),  # a constant model
        (PAIR, [[2, 0, 0.5]], {}, False),
        (PAIR, [[2, 0, -np.inf]], {}, False),
        ([[0.5, 1, 2]], [[2, 0, 1]], {}, False),
        ([[0.5, 1, np.nan]], [[2, 0, 1]], {"flavor": "sklearn[unjudged=zero]"}, True),
        # Padding and documents that were not retrieved may have any score.
        (PAIR, [[2, 1, 0.5]], {"mask": np.array([[True, True, False]])}, True),
        (PAIR, [[2, 1, 0.5]], {"retrieved": np.array([[True, True, False]])}, True),
        ([[0.5, 3, 3]], [[2, 1, 1]], {"mask": np.array([[True, False, False]])}, True),
        (np.tile([0.5, 1.5], (1, 5000)), np.tile([1.0, 2.0], (1, 5000)), {}, True),
        (np.tile([0.5, 1.5], (1, 5000)), np.append(np.tile([1.0, 2.0], 4998), [1, 0.5, 1, 2])[None], {}, False),
    ],
)
def test_which_labels_and_scores_seem_to_be_swapped(labels, scores, given, warns):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        ndcg_score(labels, scores, **given)
    assert ["as if the two were swapped" in str(each.message) for each in seen] == [True] * warns


GRADES, BEST_FIRST = np.tile([2, 0, 1, 0, 0], (10, 1)), np.tile([1.0, 3.0, 2.0, 5.0, 4.0], (10, 1))
ONE_OTHER = np.where(np.arange(50).reshape(10, 5) == 47, 2.5, BEST_FIRST)
BESIDE = np.append(BEST_FIRST, np.full((10, 1), 7.5), axis=1)


@pytest.mark.parametrize(
    ("labels", "scores", "given", "warns"),
    [
        (GRADES, BEST_FIRST, {}, True),
        (GRADES, BEST_FIRST.astype(int), {}, True),
        (GRADES.ravel(), BEST_FIRST.ravel(), {"qid": np.arange(50) // 5}, True),
        (GRADES.ravel(), BEST_FIRST.ravel(), {"qid": np.arange(50) % 10}, False),
        (np.append(GRADES, [1, 0]), np.append(BEST_FIRST, [0.5, 0.7]), {"group": [5] * 10 + [2]}, True),
        (GRADES, 6 - BEST_FIRST, {}, False),  # 1 is the worst
        (GRADES, BEST_FIRST - 1, {}, False),
        (GRADES, ONE_OTHER, {}, False),
        (GRADES[1:], BEST_FIRST[1:], {}, False),
        (GRADES[:, [0, 1, 2, 4]], np.tile([1, 3, 2, 4], (10, 1)), {}, False),
        (np.append(GRADES, GRADES[:, :1], axis=1), BESIDE, {}, False),
        (np.append(GRADES, GRADES[:, :1], axis=1), BESIDE, {"mask": BESIDE != 7.5}, True),
        (np.append(GRADES, GRADES[:, :1], axis=1), BESIDE, {"retrieved": BESIDE != 7.5}, True),
        (np.where(GRADES == 1, np.nan, GRADES), BEST_FIRST, {"flavor": "sklearn[unjudged=zero]"}, True),
    ],
)
def test_which_scores_seem_to_be_ranks(labels, scores, given, warns):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        ndcg_score(labels, scores, **given)
    assert ["count up 1, 2, ... in every query, like ranks" in str(each.message) for each in seen] == [True] * warns


@pytest.mark.parametrize("layout", [{"qid": np.arange(2)}, {"group": [1] * 6}, {"group": [1, 0, 1, 1, 1, 1, 1]}])
def test_row_numbers_as_ids_cause_a_warning(layout):
    n_rows, n_queries = sum(layout.get("group", [1, 1])), len(layout.get("group", [1, 1]))
    with pytest.warns(UserWarning, match=f"each of the {n_queries} queries has one document.*ids may number rows"):
        ndcg_score(LABELS[:n_rows], SCORES[:n_rows], **layout)


def test_a_stream_is_checked_as_a_whole():
    """In one batch, each query may have one document without a warning."""
    one_each, pair = ([3.0, 0], [1.0, 2], ["a", "b"]), ([3.0, 0], [1.0, 2], ["c", "c"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate_batches([one_each, pair])
        evaluate_batches([pair, one_each])
        evaluate_batches([([3.0], [1.0], ["a"])])
    with pytest.warns(UserWarning, match="each of the 4 queries has one document"):
        evaluate_batches([one_each, (*one_each[:2], ["c", "d"])])
