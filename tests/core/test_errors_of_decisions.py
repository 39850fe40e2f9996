"""What intervals, comparisons, corrections, slices and ranges refuse: the type of the error, and what it names."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from comparing import by_values, of_values

from ndcg_ml import Flavor, RangeError, compare, compare_values, correct_labels, evaluate, evaluate_ranked, evaluate_run
from ndcg_ml._statistics.differences import Settings
from ndcg_ml._statistics.p_values_and_sample_sizes import queries_needed
from ndcg_ml.explain import explain_difference
from ndcg_ml.gating import gate

RNG = np.random.default_rng(2)
Y = RNG.integers(0, 4, (60, 10))
A, B = (Y + RNG.normal(0, noise, Y.shape) for noise in (2.5, 2.0))
ONE, TWO = RNG.random((2, 40))
IDS = [f"q{i}" for i in range(40)]
OF = {"measure": "m", "qid": IDS}
NAN = Flavor(empty=math.nan)


def of(scores=A, rows=slice(None), labels=Y, **options):
    qid = np.repeat(np.array([f"q{i}" for i in range(60)])[rows], 10)
    return evaluate(labels[rows].reshape(-1), scores[rows].reshape(-1), qid=qid, **{"k": 5} | options)


a, b = of(), of(B)
old = [of(A), of(B)]


def refused(call, error, words, advised=None):
    with pytest.raises(error, match=words):
        call()
    assert advised is None or advised() is not None


@pytest.mark.parametrize(
    "case",
    [
        (lambda: compare(A, B), TypeError, r"must be evaluations; got ndarray. Use compare\(evaluate\(",
            lambda: compare(a, b)),
        (lambda: compare("a.run", "b.run"), TypeError, r"got str\. .*evaluate_run\(qrels, path\) for each file", None),
        (lambda: f"{of(k=(1, 5)):.3f}", TypeError, r"one cut-off .*; got \(1, 5\)\. Write {result\.value\[1\]:\.3f}",
            lambda: f"{of(k=(1, 5)).value[1]:.3f}" == f"{of(k=1):.3f}" or None),
        (lambda: compare(a, B), TypeError, "must be evaluations; got ndarray.*compare_values for",
            lambda: by_values(ONE, TWO, **OF)),
        (lambda: compare(a, b, y_true=Y), TypeError, "unexpected keyword argument 'y_true'"),
        (lambda: compare(a, of(B, flavor="lightgbm")), ValueError,
            "under one flavor; a is ndcg.*, b is ndcg.*exponential",
            lambda: (compare(*(of(each, flavor="lightgbm") for each in (A, B))),
                explain_difference("sklearn", "lightgbm", Y, A))),
        (lambda: compare(a, b, names=["x"]), ValueError, "names must be 2 different names"),
        (lambda: compare(a, b, names=["x", "x"]), ValueError, "names must be 2 different names"),
        (lambda: compare(a, b, names="ab"), TypeError, "names must be a sequence of strings"),
        (lambda: compare(a, b, names=5), TypeError, "names must be a sequence of strings, one per system; got 5"),
        *((lambda wrong=wrong: compare(a, b, confidence=wrong), ValueError,
            rf"above 0 and below 1; got {wrong}\.{hint}$", lambda: compare(a, b, confidence=0.015)) for wrong,
            hint in ((1, ""), (1.5, r" Write 0\.015 for 1\.5 %\."), (100, ""))),
        (lambda: compare(a, b, n_resamples=0), ValueError, "n_resamples must be an integer >= 1"),
        (lambda: compare(a, b, missing="ignore"), ValueError, "missing must be one of 'raise', 'drop'"),
        (lambda: compare(a, b, unjudged="ignore"), ValueError,
            "unjudged must be one of 'warn', 'note', 'refuse', 'accept'", lambda: compare(a, b, unjudged="note")),
        (lambda: compare(a, b, baseline="old"), ValueError,
            r"baseline must be the name of a system, 'a', 'b'; got 'old'"),
        *((lambda margin=margin: compare(a, b, margin=margin), ValueError,
            "margin must be above 0 and below 1; got") for margin in (0, -0.01, 1, math.nan, math.inf)),
        (lambda: compare_values({"a": ONE, "b": TWO}, **OF, margin=0), ValueError,
            "margin must be above 0 and finite; got 0. .* Leave it out"),
        (lambda: compare_values({"a": ONE, "b": TWO}, **OF, margin="1 %"), TypeError,
            "margin must be a number above 0 and finite; got '1 %'"),
        (lambda: compare(of(A, slice(1)), of(B, slice(1))), ValueError, "at least two queries .* got 1 of 1"),
        (lambda: compare(a, of(B, query_weight=np.arange(1, 61))), ValueError,
            r"weights differ: .*, \.\.\. \(59\)\. Pass the same query_weight",
            lambda: compare(*(of(each, query_weight=np.arange(1, 61)) for each in (A, B)))),
        (lambda: compare(a, of(B, slice(54))), ValueError,
            r"not in b: 'q54', 'q55', 'q56', 'q57', 'q58', \.\.\. \(6\)\. Evaluate the same queries, or",
            lambda: compare(a, of(B, slice(54)), missing="drop")),
        (lambda: compare(of(A, slice(50)), of(B, slice(5, None))), ValueError,
            r"not in a: 'q50', .* \(10\); queries that are not in b: 'q0', .* \(5\)",
            lambda: compare(of(A, slice(50)), of(B, slice(5, None)), missing="drop")),
        (lambda: compare(evaluate(Y[:30], A[:30]), evaluate(Y[30:], B[30:])), ValueError,
            r"Their ids are positions \(0, 1, ...\): pass qid=",
            lambda: compare(of(A, slice(30, None)), of(B, slice(30, None)))),
        (lambda: compare(a, of(B, labels=np.minimum(Y, 2))), ValueError, "queries whose ideal DCGs differ"),
        (lambda: compare(of(labels=0 * Y, flavor=NAN), of(B, labels=0 * Y, flavor=NAN)), ValueError,
            r"without a value in a: 'q0', .* \(60\); .* without a value in b: 'q0', .* \(60\). They are empty",
            lambda: compare(*(of(each, labels=0 * Y, flavor=NAN.replace(empty=0)) for each in (A, B)))),
        (lambda: compare(*(of(each, flavor="ndcg@1[ideal=local,empty=skip]", k=...) for each in (A, B))), ValueError,
            "without a value in b: .* They are empty there, and the flavor skips them",
            lambda: [compare(*(of(each, flavor=f"ndcg@1[{chosen}]", k=...) for each in (A, B)), **drop) for chosen,
                drop in (("ideal=local,empty=0", {}), ("ideal=global,empty=skip", {"missing": "drop"}),
                    ("ideal=local,empty=skip", {"missing": "drop"}))]),
        (lambda: compare(of(k=(1, 5)), of(B, k=(1, 5))), ValueError,
            r"k must be the cut-off to compare, .* several: \(1, 5\)"),
        (lambda: compare(of(k=(1, 5)), of(B, k=(1, 5)), k=10), ValueError,
            r"must have the cut-off 10; got one with \(1, 5\)"),
        (lambda: compare(a, b, confidence=0.9999999), ValueError, r"confidence must be at most 0\.999999 here"),
        (lambda: a.to_html(top=-1), ValueError, "top must be an integer >= 0"),
        (lambda: compare(a, b).to_html(top=-1), ValueError, "top must be an integer >= 0"),
        (lambda: compare(a, b).to_markdown(1.5), TypeError, "digits must be an integer"),
        (lambda: compare(a, b).queries_needed(0.0), ValueError, "difference must not be 0"),
        *((lambda power=power: compare(a, b).smallest_detectable(power=power), ValueError,
            f"power must be above 0 and below 1; got {power}") for power in (-0.5, 0, 1)),
        (lambda: compare(a, b, by=["x", "y"] * 30).slices["by", "z"], KeyError, "; pass a column and a label",
            lambda: compare(a, b, by=["x", "y"] * 30).slices["by", "x"]),
        # several runs
        (lambda: compare({"old": old}), ValueError, "at least two systems; got 1"),
        (lambda: compare([a, b]), ValueError, r"at least two systems; got 1. Pass compare\(\*systems\)",
            lambda: compare(*[a, b])),
        (lambda: compare({1: a, 2: b}), TypeError, "system names must be strings; got 1"),
        (lambda: compare({"a": a, "b": b}, names=["a", "b"]), TypeError, "names must be left out",
            lambda: compare({"a": a, "b": b})),
        (lambda: compare({"old": [*old, 3], "new": old}), TypeError, "must be evaluations; got int"),
        (lambda: compare({"old": old, "new": old[:1]}), ValueError, "'new' has 1. Train it again with another seed"),
        # clusters
        (lambda: compare(a, b, cluster=np.arange(60) % 5), ValueError, "at least 6 clusters, .* got 5 for 60 queries",
            lambda: compare(a, b)),
        (lambda: compare(a, b, cluster=np.maximum(np.arange(60) - 47, 0)), ValueError,
            "cluster number 0 has 80 % of it",
            lambda: compare(*(of(each, query_weight=np.r_[np.full(48, 0.25), np.ones(12)]) for each in (A, B)),
                cluster=np.maximum(np.arange(60) - 47, 0))),
        (lambda: evaluate(np.outer([55, 30, 4, 4, 4, 3], np.ones(10)) * (np.arange(10) < np.c_[[1, 9, 10, 10, 10, 10]]),
            A[:6], flavor=Flavor(aggregate="micro"), k=(1, None), cluster=range(6)).interval(), ValueError,
            "cluster number 0 has 55 % of it"),
        *((lambda wrong=wrong: compare(a, b, cluster=wrong), error,
            f"cluster must have one label per query, {words}or be a mapping") for wrong, error,
            words in (("user", TypeError, ""), (np.arange(59), ValueError, "60, "))),
        (lambda: compare(a, b, cluster=[None if i == 3 else i for i in range(60)]), ValueError,
            "cluster must have a label for each query; got None for query 'q3'",
            lambda: compare(a, b, cluster=["none" if i == 3 else str(i) for i in range(60)])),
        (lambda: evaluate(Y, A, cluster=[None if i == 2 else i for i in range(60)]), ValueError,
            "cluster must have a label for each query; got None for query 2",
            lambda: evaluate(Y, A, cluster=["none" if i == 2 else str(i) for i in range(60)])),
        (lambda: compare(of(cluster=np.arange(600) // 30), b), ValueError,
            "must have the same clusters of queries; those of a and b differ",
            lambda: (compare(of(cluster=np.arange(600) // 30), b, cluster=np.arange(60) // 3),
                compare(*(of(each, cluster=np.arange(600) // 30) for each in (A, B))))),
        (lambda: compare(of(cluster=np.arange(600) // 30), of(B, cluster=np.arange(600)[::-1] // 20)), ValueError,
            "must have the same clusters"),
        # numbers of a measure
        (lambda: by_values(ONE, TWO, measure=" ", qid=IDS), TypeError, "measure must be a string that names"),
        (lambda: by_values(ONE, TWO[:9], **OF), ValueError, "b must have one number per query, 40"),
        (lambda: by_values(ONE[:2], TWO[:2], measure="m", qid=["x", "x"]), ValueError, "each query once"),
        (lambda: by_values(ONE[:2], TWO[:2], measure="m", qid=["x", None]), ValueError, "qid must have an id"),
        (lambda: by_values(ONE[:2], [0.1, math.inf], measure="m", qid=["x", "y"]), ValueError, "b must be finite"),
        (lambda: by_values(ONE, TWO, **OF, query_weight=[1.0] * 39), ValueError,
            "query_weight must have one weight per query"),
        (lambda: compare_values([ONE, TWO], **OF), TypeError,
            "values must be a mapping from system names to values per query; got list"),
        (lambda: by_values(ONE, np.where(np.arange(40) == 5, math.nan, TWO), **OF), ValueError,
            r"without a value in b: 'q5' \(1\)\. Pass missing='drop'",
            lambda: by_values(ONE, np.where(np.arange(40) == 5, math.nan, TWO), **OF, missing="drop")),
        (lambda: by_values(ONE, TWO, **OF).range(), RangeError, "precomputed values"),
        # intervals of one evaluation
        (lambda: a.interval(99), ValueError, "above 0 and below 1; got 99. Write 0.99 for 99 %",
            lambda: a.interval(0.99)),
        *((lambda bad=bad: a.interval(bad), ValueError, f"above 0 and below 1; got {bad}") for bad in (0, 1.0,
            math.nan)),
        (lambda: a.interval("95%"), TypeError, "confidence must be a number above 0 and below 1; got '95%'"),
        (lambda: of(rows=slice(1)).interval(), ValueError, "at least two queries must count .* got 1 of 1"),
        (lambda: of(rows=slice(1)).std, ValueError, "at least two queries must count"),
        (lambda: of(rows=slice(1)).standard_error, ValueError, "at least two queries must count"),
        (lambda: of(flavor=Flavor(empty="skip"), query_weight=[1.0] + [0.0] * 59).interval(), ValueError,
            "got 1 of 60"),
        (lambda: of(labels=Y * (np.arange(60) > 6)[:, None], flavor=NAN).interval(), ValueError,
            "7 of 60 queries are empty under empty=nan",
            lambda: of(labels=Y * (np.arange(60) > 6)[:, None], flavor=NAN.replace(empty="skip")).interval()),
        (lambda: of(labels=Y * (np.arange(60) > 6)[:, None], flavor=NAN, query_weight=[1.0] * 59 + [0.0]).interval(),
            ValueError, "7 of 60 queries are empty under empty=nan"),
        (lambda: evaluate(Y, A, by={"c": {0: "de"}}), TypeError,
            "must not be a mapping from query ids if queries have no ids",
            lambda: of(by={"c": dict.fromkeys(a.per_query.qid, "de")})),
        (lambda: evaluate([1, 0], [1, 0], group=[0, 2], by=["x", "x"]), ValueError,
            "must have a label for each query, but some queries have no rows"),
        (lambda: ranged(LABELS, "3"), TypeError, "max_grade must be a number"),
        (lambda: queries_needed(0.2, 0, 0.8, 0.95), ValueError, "must not be 0"),
        (lambda: queries_needed(0.2, 1e-300, 0.8, 0.95), ValueError, "must be larger"),
        (lambda: queries_needed(0.2, math.nan, 0.8, 0.95), ValueError, "must be a finite"),
        (lambda: queries_needed(0.2, 0.1, 1, 0.95), ValueError, "power must be above 0 and below 1; got 1"),
        (lambda: gate(a, b, margin=0.1, by={f"q{i}": None if i == 3 else "x" for i in range(60)}), ValueError,
            "must have a label for each query; got None for query 'q3'",
            lambda: gate(a, b, margin=0.1, by={f"q{i}": "none" if i == 3 else "x" for i in range(60)})),
    ],
)  # fmt: skip
def test_a_decision_is_refused(case):
    refused(*case)


SHARES = [
    ("margin", lambda share: compare(a, b, margin=share)),
    ("margin", lambda share: gate(a, b, margin=share)),
    ("confidence", lambda share: compare(a, b, confidence=share)),
    ("confidence", lambda share: a.interval(share)),
    ("confidence", lambda share: gate(a, b, margin=0.1, confidence=share)),
    ("drop_at_most", lambda share: gate(a, b, margin=0.1, drop_at_most=share)),
    ("power", lambda share: compare(a, b).smallest_detectable(power=share)),
    ("power", lambda share: compare(a, b).queries_needed(0.1, power=share)),
]


@pytest.mark.parametrize(("name", "call"), SHARES)
@pytest.mark.parametrize("share", [math.nan, math.inf, 5, -1, True, "x", 1j, [0.5], np.ones(2)], ids=repr)
def test_whatever_is_no_share_is_refused(name, call, share):
    with pytest.raises((TypeError, ValueError), match=rf"^{name} must be .*; got"):
        call(share)


@pytest.mark.parametrize("n_families", [1, 2, 3, 10, 97])
def test_the_confidence_that_the_refusal_names_is_accepted(n_families):
    options = {"margin": None, "n_resamples": 99, "n_families": n_families}
    with pytest.raises(ValueError, match="confidence must be at most") as refused:
        Settings(confidence=1 - 1e-12, **options)
    named = float(re.search(r"at most (\S+) here", str(refused.value))[1])
    assert Settings(confidence=named, **options).n_draws <= 2_000_001


def test_the_confidence_that_the_gate_names_is_that_of_all_checks_together():
    base = evaluate([[2, 0, 1]] * 30, [[3.0, 1, 2]] * 30, k=[1, 2, 3])
    with pytest.raises(ValueError, match=r"must be at most 0\.999997 here.*; got 0\.999999\.$"):
        gate(base, base, margin=0.1, confidence=0.999999)
    found = gate(base, base, margin=0.1, confidence=0.999997)
    assert (found.outcome, found.unanswered.size) == ("unchanged", 0)


# -- slices -----------------------------------------------------------------------------------------------------------

COUNTRY = np.repeat(["de", "fr", "uk"] * 20, 10)
OBJECTS = np.empty(600, dtype=object)
OBJECTS[:] = [{}] * 600


@pytest.mark.parametrize(
    "case",
    [
        (np.where(np.arange(600) == 19, "uk", COUNTRY), ValueError,
            r"by\['by'\] must be the same in all rows of a query, .* query 'q1' has 'fr' and 'uk'"),
        (COUNTRY[:60], ValueError, "must have one label per row of y_true, 600; got 60. Pass labels of queries as a",
            lambda: of(by=dict(zip(a.per_query.qid, COUNTRY[:60], strict=True)))),
        ({}, ValueError, "by must have at least one column", lambda: of()),
        ([*[None] * 10, *COUNTRY[10:]], ValueError, "must have a label for each query; got None for query 'q0'",
            lambda: of(by=[*["none"] * 10, *COUNTRY[10:]])),
        (np.where(np.arange(600) == 3, np.nan, 1.0), ValueError, "missing value"),
        ([["x"]] * 600, ValueError, "must be one-dimensional"),
        ({"q0": "de"}, ValueError, r"by\['slice'\] must have an entry for the id of each query; got none for 'q1'"),
        ({0: "de", 1: "fr"}, ValueError,
            r"by\['slice'\] .* got none for 'q0' \(60 of 60 queries\), and keys such as 0"),
        ({"c": {"q0": "de"}}, ValueError, r"by\['c'\] must have an entry for the id of each query; got none for 'q1'"),
        ({"c": 5}, ValueError, r"by\['slice'\] must have an entry for the id of each query; got none for 'q0'"),
        ({"c": "ab", "d": COUNTRY}, TypeError,
            r"by\['c'\] must have one label per row, or be a mapping from query ids"),
        (OBJECTS, TypeError, "must hold hashable labels"),
    ],
)  # fmt: skip
def test_labels_of_slices_are_refused(case):
    refused(lambda: of(by=case[0]), *case[1:])


# -- labels of a model ------------------------------------------------------------------------------------------------

N = 300
HUMAN = np.random.default_rng(5).beta(2, 2, N)
MODEL = np.clip(HUMAN + 0.1, 0.001, 1)
SOME, OTHERS = (np.random.default_rng(seed).choice(N, 40, replace=False) for seed in (6, 7))


def corrected(some=SOME, kept=slice(None)):
    return correct_labels(of_values(MODEL[kept], np.arange(N)[kept]), of_values(HUMAN[some], some))


def undefined(rows, flavor=NAN):
    return evaluate(np.arange(180)[rows] % 7 // 6, np.arange(180.0)[rows], qid=np.arange(180)[rows] // 3, flavor=flavor)


@pytest.mark.parametrize(
    "case",
    [
        (lambda: correct_labels(of_values(MODEL), of_values(HUMAN[SOME], SOME + 1000)), ValueError,
            "every query of human must be among"),
        (lambda: correct_labels(of_values(MODEL), of_values(HUMAN[SOME[:19]], SOME[:19])), ValueError,
            "at least 20 of the 300 .* got 19"),
        (lambda: correct_labels(of_values(MODEL), of_values(HUMAN)), ValueError, "and not all of them; got 300"),
        (lambda: correct_labels(of_values(MODEL), of_values(HUMAN[SOME], SOME, k=2)), ValueError,
            "must have one flavor; got"),
        (lambda: correct_labels(of_values(MODEL, k=(1, 2)), of_values(HUMAN[SOME], SOME)), TypeError,
            "model must be an evaluation at one"),
        (lambda: correct_labels(of_values(MODEL), HUMAN), TypeError,
            "human must be an evaluation at one cut-off, .*got ndarray",
            lambda: correct_labels(of_values(MODEL), of_values(HUMAN[SOME], SOME))),
        (lambda: correct_labels(of_values(MODEL, query_weight=dict(enumerate(MODEL))), of_values(HUMAN[SOME], SOME)),
            ValueError, "model must be a plain mean over all its queries",
            lambda: correct_labels(of_values(MODEL), of_values(HUMAN[SOME], SOME))),
        (lambda: correct_labels(of_values(MODEL),
            of_values(HUMAN[SOME], SOME, cluster=dict(zip(SOME.tolist(), SOME.tolist(), strict=True)))), ValueError,
            "human must be a plain mean"),
        (lambda: correct_labels(undefined(slice(None)), undefined(np.arange(180) % 7 < 5)), ValueError,
            "model must be .*queries without a value",
            lambda: correct_labels(*(undefined(rows, NAN.replace(aggregate="macro", empty=0)) for rows in (slice(None),
                np.arange(180) // 3 % 3 > 0)))),
        (lambda: compare(corrected(), corrected(OTHERS), names=["old", "new"]), ValueError,
            r"old and new differ in \d+, .* of human. Evaluate every system with the same"),
        (lambda: compare(corrected(), corrected(kept=np.arange(N) != np.setdiff1d(np.arange(N), SOME)[7])), ValueError,
            r"a and b differ in \d+ \(1\) of model"),
        (lambda: compare(corrected(), of_values(MODEL)), TypeError, "all be results of correct_labels, one each"),
        (lambda: compare(corrected(), corrected(), by={"half": ["a", "b"] * 20}), ValueError,
            "cluster, by, k and missing must be left out", lambda: compare(corrected(), corrected())),
        (lambda: compare(corrected(), corrected(), missing="drop"), ValueError,
            "cluster, by, k and missing must be left out", lambda: compare(corrected(), corrected())),
    ],
)  # fmt: skip
def test_a_correction_is_refused(case):
    refused(*case)


# -- ranges -----------------------------------------------------------------------------------------------------------

LABELS, SCORES = [[2.0, math.nan, 1.0, 0.0]], [[2.0, 2.0, 1.0, 0.0]]
QRELS = {"q1": {"d1": 2, "d2": 0}, "q2": {"d5": 1}, "q3": {"d1": 1}}
NEW = {"q1": ["d2", "d3", "d1"], "q2": ["d5", "d7"], "q3": ["d4", "d1"]}
LISTS = ([1.0, math.nan], [0.0, 1.0])
DOCUMENTS = {"doc_id": [["a", "b", "c"]] * 2, "flavor": Flavor(unjudged="zero", k=2)}
MEASURED = np.r_[math.nan, np.linspace(0, 1, 2999)]


def ranged(labels=LABELS, max_grade=None, scores=SCORES, **switches):
    return evaluate(labels, scores, flavor=Flavor(**{"unjudged": "zero"} | switches)).range(max_grade)


def of_runs(switch):
    runs = ({q: d[:1] for q, d in NEW.items()}, NEW)
    return compare(*(evaluate_run(QRELS, run, flavor=f"trec_eval[{switch}]", k=2) for run in runs), unjudged="accept")


def of_labels(*labels):
    return compare(*(evaluate(each, [[3, 2, 1], [1, 2, 3]], **DOCUMENTS) for each in labels))


@pytest.mark.parametrize(
    "case",
    [
        (lambda: ranged(ties="best"), "ties must be .* got .*Evaluate again with ties=",
            lambda: ranged(ties="average")),
        (lambda: ranged(ties="worst"), "ties must be .* got .*Evaluate again with ties=",
            lambda: ranged(ties="average")),
        (lambda: ranged(ideal="local"), "ideal must be .* got .*Evaluate again with ideal=",
            lambda: ranged(ideal="global")),
        (lambda: ranged(ideal="given"), "ideal must be .* got .*Evaluate again with ideal=",
            lambda: ranged(ideal="global")),
        (lambda: evaluate(LABELS, SCORES, flavor=Flavor(unjudged="zero", ideal="max", max_grade=2)).range(),
            "ideal must be .* got .*Evaluate again with ideal=", lambda: ranged(ideal="global")),
        (lambda: ranged(ideal="recall", recall_depth=1),
            "recall_depth must be .* got .*Evaluate again with recall_depth=",
            lambda: ranged(ideal="recall", recall_depth=None)),
        (lambda: ranged(aggregate="micro"), "aggregate must be .* got .*Evaluate again with aggregate=",
            lambda: ranged(aggregate="macro")),
        *((lambda gain=gain: ranged(gain=gain, max_grade=3), "gains must be >= 0") for gain in ((0.0, -1.0, 2.0, 3.0),
            (0.0, 1.0, 2.0, -1.0))),
        *((lambda gain=gain: ranged(gain=gain, max_grade=3), "gains must be at most 1e120",
            lambda: ranged(gain=(0.0, 1.0, 2.0, 1e120))) for gain in ((0.0, 1.0, 2.0, 2.0**400),
            (2.0**400, 1.0, 2.0, 3.0))),
        (lambda: [ranged([[2.0, math.nan, -1.0, 0.0]], 2, negative="allow")], "gains must be >= 0",
            lambda: [ranged([[2.0, math.nan, -1.0, 0.0]], negative=negative) for negative in ("zero", "drop")]),
        (lambda: ranged([[0.0, math.nan, 0.0, 0.0]], 1, empty=math.nan), "empty must not be nan",
            lambda: [ranged([[0.0, math.nan, 0.0, 0.0], [1.0] * 4], 1, SCORES * 2, empty=empty) for empty in (0, 1,
                "skip")]),
        (lambda: ranged([[0.0, math.nan, 0.0, 0.0]]), "max_grade must be given",
            lambda: ranged([[0.0, math.nan, 0.0, 0.0]], max_grade=3)),
        *((lambda options=options: evaluate(LABELS, SCORES, flavor=Flavor(unjudged="zero", **options)).range(1),
            "must be at least the highest label; got 1 and the label 2.", lambda: ranged(LABELS, 2)) for options in ({},
            {"max_grade": 3})),
        (lambda: ranged(LABELS, 2.5), "an integer >= 0", lambda: ranged(LABELS)),
        (lambda: ranged(LABELS, 3, gain=(0.0, 1.0, 2.0)), "gain table",
            lambda: (ranged(LABELS, 2, gain=(0.0, 1.0, 2.0)), ranged(LABELS, 3, gain=(0.0, 1.0, 2.0, 3.0)))),
        (lambda: ranged([[2.0, math.nan, 450.0, 0.0]], gain="exponential"), "float64 can sum"),
        (lambda: ranged([MEASURED], scores=[-np.arange(3000)]), "at most 1001 grades",
            lambda: (ranged([np.round(MEASURED)], 1000, scores=[-np.arange(3000)]),
                ranged([[1.0] + [math.nan] * 200], 1000, scores=[-np.arange(201)]))),
        (lambda: ranged(LABELS, 1001), "at most 1001 grades", lambda: ranged(LABELS, 1000)),
        (lambda: evaluate([[2, math.nan, 2]], [[3, 2, 1]], doc_id=[["a", "b", "a"]],
            flavor=Flavor(unjudged="zero", duplicates="first")).range(), "got repeated ids in doc_id"),
        (lambda: of_runs("ideal=recall").range(), "must have the same ideal",
            lambda: of_runs("ideal=global,ideal_depth=k").range()),
        (lambda: of_runs("ideal_depth=retrieved").range(), "must have the same ideal",
            lambda: (of_runs("ideal=global,ideal_depth=k").range(),
                compare(*(evaluate_run(QRELS, {**NEW, "q1": names},
                    flavor="trec_eval[ideal_depth=retrieved]") for names in (["d1", "d3"], ["d3", "d1", "d2"])),
                    unjudged="accept").range())),
        (lambda: compare(*[evaluate_ranked(LISTS, flavor=Flavor(unjudged="zero"))] * 2).range(), "must have ids",
            lambda: (of_labels(*[[[1.0, math.nan, 0.0], [1.0, 0.0, math.nan]]] * 2).range(),
                compare(*[evaluate(LABELS * 2, SCORES * 2, flavor=Flavor(unjudged="zero"))] * 2).range())),
        (lambda: compare(*(evaluate(LISTS, [[2, 1]] * 2, doc_id=[ids] * 2,
            flavor=Flavor(unjudged="zero")) for ids in (["a", "b"], [1, 2]))).range(), "must have ids of one type"),
        *((lambda row=row: of_labels([[1.0, math.nan, 0.0], [1.0, 0.0, math.nan]], [[1.0, math.nan, 0.0], row]).range(),
            "same judgements") for row in ([0.0, 1.0, math.nan], [1.0, 0.0, 0.0])),
    ],
)  # fmt: skip
def test_a_range_is_refused(case):
    refused(case[0], RangeError, *case[1:])


@pytest.mark.parametrize(
    ("result", "error", "words"),
    [
        (lambda: evaluate([1, 0, 1, 0], [1, 2, 1, 2], qid=[1.5, 1.5, 2.5, 2.5]), TypeError,
            "query ids must be strings or integers to be saved; got 1.5"),
        (lambda: evaluate([[1, 0], [1, 2]], [[1, 2], [1, 2]], flavor=Flavor(gain=np.sqrt)), ValueError,
            "gain and discount must not be callables"),
        (lambda: of(cluster=[1.5] * 600), TypeError, r"clusters must be strings or integers to be saved; got 1\.5"),
    ],
)  # fmt: skip
def test_what_cannot_be_saved_leaves_no_file(tmp_path: Path, result, error, words):
    with pytest.raises(error, match=words):
        result().save(tmp_path / "base.json")
    assert not (tmp_path / "base.json").exists()
    with pytest.raises(OSError, match="nowhere"):
        a.save(tmp_path / "nowhere" / "base.json")
