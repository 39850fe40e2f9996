"""An index of pandas and the keys of a mapping are used to align data, or refused with a fix, by every adapter too.

Slices of ``evaluate(by=)`` and ``compare`` are matched by index or id too, never by position.
"""

import pickle
import re

import numpy as np
import pytest
from comparing import by_values

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

from ndcg_ml import compare, dcg_score, evaluate, explain_difference, identify, ndcg_score, prepare

# The ids are not sorted, so that groupby and the rows have different orders.
FRAME = pd.DataFrame(
    {
        "q": ["c", "c", "a", "a", "a", "b", "b"],
        "y": [0, 3, 1, 0, 2, 1, 0],
        "s": [0.9, 0.1, 0.5, 0.4, 0.3, 0.2, 0.7],
        "w": [1.0, 1.0, 5.0, 5.0, 5.0, 0.5, 0.5],
    },
    index=[10, 11, 12, 13, 14, 15, 16],
)
NUMBERED = FRAME.assign(q=FRAME.q.map({"c": 2, "a": 0, "b": 1}))
BY_APPEARANCE = [1.0, 5.0, 0.5]
BY_ID = FRAME.groupby("q")["w"].first()
ROWS = {"y_true": FRAME.y, "y_score": FRAME.s, "qid": FRAME.q}
SIZES = {"y_true": FRAME.y, "y_score": FRAME.s, "group": [2, 3, 2]}
RIGHT = ndcg_score(**ROWS, query_weight=BY_APPEARANCE)


@pytest.mark.parametrize("frame", [FRAME, NUMBERED], ids=["text", "numbers"])
@pytest.mark.parametrize(
    "weights",
    [
        lambda frame: frame.groupby("q")["w"].first(),
        lambda frame: frame.groupby("q", sort=False)["w"].first(),
        lambda frame: frame.groupby("q")["w"].first().sample(frac=1, random_state=1),
        lambda frame: pd.concat([frame.groupby("q")["w"].first(), pd.Series([9.0], index=["z"])]),
        lambda frame: frame.groupby("q")["w"].first().to_dict(),
        lambda frame: frame.drop_duplicates("q")["w"].to_numpy(),
    ],
    ids=["by id", "by appearance", "shuffled", "more queries", "a mapping", "an array"],
)
def test_weights_are_found_by_id(frame, weights):
    query_weight = weights(frame)
    by_position = ndcg_score(frame.y, frame.s, qid=frame.q, query_weight=[5.0, 0.5, 1.0])
    arguments = {"qid": frame.q, "query_weight": query_weight}
    assert by_position != RIGHT
    assert ndcg_score(frame.y, frame.s, **arguments) == RIGHT
    assert evaluate(frame.y, frame.s, **arguments).per_query.weight.tolist() == BY_APPEARANCE
    assert prepare(frame.y, **arguments)(frame.s) == RIGHT
    expected = dcg_score(frame.y, frame.s, qid=frame.q, query_weight=BY_APPEARANCE)
    assert dcg_score(frame.y, frame.s, **arguments) == expected
    assert explain_difference("sklearn", "lightgbm", frame.y, frame.s, **arguments).value_a == RIGHT
    if isinstance(query_weight, dict):  # hundreds of flavors, which read weights in one place
        assert identify(round(RIGHT, 4), frame.y, frame.s, k=None, **arguments).matches


@pytest.mark.parametrize(
    "ids",
    [
        np.array(["2026-01-03", "2026-01-01"], dtype="M8[s]"),
        np.array([2.5, 1.5]),
        np.array([2**63 + 5, 7], dtype=np.uint64),
        [("b", 1), ("a", 2)],
    ],
    ids=["times", "floats", "uint64", "two columns"],
)
def test_ids_of_any_type_find_their_weight(ids):
    y, s = [1, 0, 0, 1], [0, 1, 0, 1]
    qid = [ids[0], ids[0], ids[1], ids[1]] if isinstance(ids, list) else np.repeat(ids, 2)
    index = pd.MultiIndex.from_tuples(ids[::-1]) if isinstance(ids, list) else pd.Index(ids[::-1])
    got = evaluate(y, s, qid=qid, query_weight=pd.Series([4.0, 1.0], index=index))
    assert got.per_query.weight.tolist() == [1.0, 4.0]


def test_an_index_from_zero_may_hold_the_ids():
    # groupby(..., as_index=False) returns such an index, with rows in the order of the ids.
    weights = NUMBERED.groupby("q", as_index=False)["w"].first()["w"]
    assert isinstance(weights.index, pd.RangeIndex)
    assert ndcg_score(NUMBERED.y, NUMBERED.s, qid=NUMBERED.q, query_weight=weights) == RIGHT


Y, S = pd.DataFrame([[1, 0], [0, 1]], index=["b", "a"]), pd.DataFrame([[0, 1], [0, 1]], index=["b", "a"])
BY_ROW = pd.Series([1.0, 4.0], index=["b", "a"])
DOCUMENTS = pd.DataFrame([[3, 0, 1]], columns=["x", "y", "z"]), pd.DataFrame([[9, 1, 3]], columns=["x", "y", "z"])
COLUMNS = FRAME[["y"]], FRAME[["s"]]
# The arguments, what the error says, and the arguments that it advises.
REFUSED = {
    "counted": ({**ROWS, "query_weight": FRAME.groupby("q", as_index=False)["w"].first()["w"]},
        "index of query_weight must hold the id of each query", {**ROWS, "query_weight": BY_ID}),
    "rows": ({**ROWS, "query_weight": FRAME.drop_duplicates("q")["w"]},
        r"none for 'c' \(3 of 3 queries\), and labels such as 10", {**ROWS, "query_weight": BY_ID}),
    "one lacks": ({**ROWS, "query_weight": BY_ID.drop("b")}, r"got none for 'b' \(1 of 3 queries\)",
        {**ROWS, "query_weight": BY_ID}),
    "repeats": ({**ROWS, "query_weight": FRAME.set_index("q")["w"]},
        "index of query_weight must name each query once; got 'c' more than once", None),
    "mapping lacks": ({**ROWS, "query_weight": {"a": 5.0, "c": 1.0}},
        r"query_weight must have an entry for the id of each query; got none for 'b' \(1 of 3", None),
    "empty mapping": ({**ROWS, "query_weight": {}}, "query_weight must have an entry for the id of each query", None),
    "sizes by id": ({**ROWS, "qid": None, "group": FRAME.groupby("q").size()},
        r"^group has an index \(its first label is 'a'\).*Pass qid=.*group\.to_numpy", SIZES),
    "weights by id with sizes": ({**SIZES, "query_weight": BY_ID},
        "^query_weight has an index.*Pass qid= instead of group", {**SIZES, "query_weight": pd.Series(BY_APPEARANCE)}),
    "weights of rows in another order": ({"y_true": Y, "y_score": S, "query_weight": BY_ROW.sort_index()},
        "^query_weight and y_true must have the same index", {"y_true": Y, "y_score": S, "query_weight": BY_ROW}),
    "weights of rows without an index": ({"y_true": Y.to_numpy(), "y_score": S, "query_weight": BY_ROW},
        r"^query_weight has an index.*Pass y_true with this index, or pass query_weight\.to_numpy\(\)",
        {"y_true": Y, "y_score": S, "query_weight": BY_ROW}),
    "length": ({**ROWS, "y_score": FRAME.s.iloc[1:]}, "^y_score must have the shape of y_true", None),
    "a column": ({**ROWS, "y_score": FRAME[["s"]]}, "^y_score must have the shape of y_true.*y_score is one too", None),
    "columns": ({"y_true": DOCUMENTS[0], "y_score": DOCUMENTS[1][["z", "y", "x"]]},
        r"columns in the same order.*y_score\[y_true\.columns\]",
        {"y_true": DOCUMENTS[0], "y_score": DOCUMENTS[1][["z", "y", "x"]][DOCUMENTS[0].columns]}),
    "one column": (dict(zip(ROWS, COLUMNS, strict=False)), r"pass np\.asarray\(y_true\)\.squeeze\(-1\)",
        {**SIZES, "y_true": np.asarray(COLUMNS[0]).squeeze(-1), "y_score": np.asarray(COLUMNS[1]).squeeze(-1)}),
    "missing text": ({**ROWS, "qid": FRAME.q.where(FRAME.q != "a").astype("string")},
        "^qid must have an id for every row; got a missing value at row 2", None),
    "missing category": ({**ROWS, "qid": pa.DictionaryArray.from_arrays([0, 0, 1, 0, 0, 2, 2], ["a", None, "b"])},
        "^qid must have an id for every row; got a missing value at row 2", None),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_an_index_that_does_not_correspond_is_refused(case):
    arguments, message, advised = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        ndcg_score(**arguments)
    if advised is not None:
        assert 0 < ndcg_score(**advised) <= 1


def test_weights_and_columns_follow_their_index():
    assert evaluate(Y, S, query_weight=BY_ROW).per_query.weight.tolist() == [1.0, 4.0]
    assert ndcg_score(**SIZES, query_weight=pd.Series(BY_APPEARANCE)) == RIGHT
    assert ndcg_score(FRAME.y, FRAME.s, group=pd.Series([2, 3, 2])) == ndcg_score(**ROWS)
    y, s = DOCUMENTS
    assert ndcg_score(y, s) == ndcg_score(y, s.add_prefix("score_")) == 1.0


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_of_weights_is_refused(library):
    frame = FRAME.drop_duplicates("q")[["q", "w"]]
    if library == "polars":
        pl = pytest.importorskip("polars")
        frame = pl.DataFrame({"q": frame.q.to_list(), "w": frame.w.to_list()})
        assert ndcg_score(**ROWS, query_weight=frame["w"]) == RIGHT  # a Series of polars has no labels
    with pytest.raises(TypeError, match=r"got a frame\. Pass a mapping.*dict\(zip\(frame"):
        ndcg_score(**ROWS, query_weight=frame)
    assert ndcg_score(**ROWS, query_weight=dict(zip(frame["q"], frame["w"], strict=True))) == RIGHT


PER_ROW = {
    "y_score": lambda frame: frame.s,
    "qid": lambda frame: frame.q,
    "retrieved": lambda frame: frame.s > 0,
    "doc_id": lambda frame: frame.s.astype(str),
}


@pytest.mark.parametrize("name", PER_ROW)
@pytest.mark.parametrize("other", ["another order", "other labels"])
def test_rows_that_do_not_correspond_are_refused(name, other):
    odd = FRAME.sort_values("s") if other == "another order" else FRAME.reset_index(drop=True)
    with pytest.raises(ValueError, match=rf"^{name} and y_true must have the same index.*at row 0.*{name}\.loc\["):
        ndcg_score(**{**ROWS, name: PER_ROW[name](odd)})
    aligned = PER_ROW[name](odd).to_numpy() if other == "other labels" else PER_ROW[name](odd).loc[FRAME.index]
    assert 0 < ndcg_score(**{**ROWS, name: aligned}) <= 1


def test_arrays_are_matched_with_labelled_rows_by_position():
    expected = ndcg_score(FRAME.y.to_numpy(), FRAME.s.to_numpy(), qid=FRAME.q.to_numpy())
    shuffled = FRAME.iloc[[3, 1, 0, 2, 6, 5, 4]]
    assert ndcg_score(shuffled.y, shuffled.s, qid=shuffled.q) == pytest.approx(expected, abs=1e-15)
    assert ndcg_score(FRAME.y, FRAME.s.to_numpy(), qid=FRAME.q.tolist()) == expected
    assert ndcg_score(FRAME.y.tolist(), FRAME.s, qid=FRAME.q.to_numpy()) == expected


def test_a_prepared_object_compares_the_index_of_scores():
    ndcg = prepare(FRAME.y, qid=FRAME.q)
    for each in (ndcg, pickle.loads(pickle.dumps(ndcg))):
        assert each(FRAME.s) == each(FRAME.s.to_numpy())
        for call in (each, each.totals, each.dcg, each.evaluate):
            with pytest.raises(ValueError, match=r"^y_score and y_true must have the same index"):
                call(FRAME.s.sort_values())
            call(FRAME.s.sort_values().loc[FRAME.y.index])


@pytest.mark.parametrize("missing", [pd.NA, pd.NaT])
@pytest.mark.parametrize("name", ["qid", "doc_id"])
@pytest.mark.parametrize("part", [False, True], ids=["an id", "a part of an id"])
def test_missing_ids_of_pandas_are_refused(missing, name, part):
    ids = np.empty(3, dtype=object)
    ids[:] = [("a", 1), ("b", missing), ("c", 2)] if part else ["a", missing, "c"]
    arguments = {"group": [3], "doc_id": ids} if name == "doc_id" else {"qid": ids}
    with pytest.raises(ValueError, match=rf"^{name} must have an id for every (row|document); got a missing value"):
        ndcg_score([2, 1, 0], [2, 1, 0], **arguments)


GRADES = np.array([2, 0, 1, 0, 1, 0, 0, 2])
SCORES = np.array([0.1, 0.5, 0.9, 0.2, 0.1, 0.6, 0.3, 0.4])
LANDS = pd.DataFrame(
    {"y": GRADES, "s": SCORES, "q": list("bbaaccdd"), "land": list("xxyyxxyy"), "size": [1, 1, 1, 1, 2, 2, 2, 2]},
    index=list(range(10, 18)),
)
SLICES = [("land", "x", 2), ("land", "y", 2), ("size", 1, 2), ("size", 2, 2)]


def slices_of(by, frame=LANDS):
    slices = evaluate(frame["y"], frame["s"], qid=frame["q"], by=by).slices
    return sorted((*key, each.n_queries) for key, each in slices.items())


def test_slices_are_columns_of_rows():
    assert slices_of(LANDS[["land", "size"]]) == SLICES
    assert slices_of({"land": LANDS["land"], "size": LANDS["size"].to_numpy()}) == SLICES
    assert slices_of(LANDS["land"]) == SLICES[:2]  # the Series gives the name
    assert slices_of(LANDS["land"].astype("category")) == SLICES[:2]


def test_slices_by_query_id_in_any_order():
    per_query = LANDS.groupby("q")[["land", "size"]].first()
    assert per_query.index.tolist() == list("abcd")  # the rows of LANDS are in another order
    assert slices_of(per_query.to_dict()) == SLICES


BY, SQUARE = pd.Series(list("abcabcab"), index=list("stuvwxyz")), np.eye(8)
LABELLED = pd.DataFrame(SQUARE, index=BY.index)
REFUSED_SLICES = {
    "another order": (lambda: slices_of(LANDS["land"][::-1]),
        r"by\['land'\] and y_true must have the same index",
            lambda: slices_of(LANDS["land"][::-1].loc[LANDS["y"].index])),
    "an index by id": (lambda: slices_of(LANDS.groupby("q")[["land", "size"]].first()),
        r"one \w+ per row of y_true, 8; got 4\. .* or to_dict\(\) of a Series",
            lambda: slices_of({"land": LANDS.groupby("q")["land"].first().to_dict()})),
    "no index, ids": (lambda: evaluate(GRADES, SCORES, qid=np.repeat(list("abcd"), 2), by=BY),
        "Pass y_true with this index, or a mapping from query ids",
            lambda: evaluate(GRADES, SCORES, qid=np.repeat(list("abcd"), 2), by=dict(zip("abcd", BY, strict=False)))),
    "no index, sizes": (lambda: evaluate(GRADES, SCORES, group=[2] * 4, by=BY),
        "Pass y_true with this index, or pass",
            lambda: evaluate(pd.Series(GRADES, BY.index), SCORES, group=[2] * 4, by=BY.where(BY.isna(), "x"))),
    "no index, rows": (lambda: evaluate(SQUARE, SQUARE, by=BY),
        "Pass y_true with this index, or pass", lambda: evaluate(LABELLED, SQUARE, by=BY)),
    "another order of rows": (lambda: evaluate(LABELLED, SQUARE, by=BY[::-1]),
        "must have the same index", lambda: evaluate(LABELLED, SQUARE, by=BY[::-1].loc[LABELLED.index])),
    "missing": (lambda: slices_of(LANDS["land"].where(LANDS["q"] != "c")),
        r"must have a \w+ for each query; got .* for query 'c'",
            lambda: slices_of(LANDS["land"].where(LANDS["q"] != "c", "none"))),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED_SLICES)
def test_slices_whose_index_does_not_correspond_are_refused(case):
    call, words, advised = REFUSED_SLICES[case]
    with pytest.raises(ValueError, match=words):
        call()
    advised()


def test_slices_with_an_index_from_zero_and_that_of_y_true_are_accepted():
    assert len(evaluate(SQUARE, SQUARE, by=BY.reset_index(drop=True)).slices) == 3
    assert len(evaluate(LABELLED, SQUARE, by=BY).slices) == 3


def test_slices_of_other_frames():
    pl = pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    columns = {"land": list("xxyyxxyy"), "size": [1, 1, 1, 1, 2, 2, 2, 2]}
    assert slices_of(pl.DataFrame(columns)) == SLICES
    assert slices_of(pa.table(columns)) == SLICES


def test_slices_to_a_frame():
    slices = evaluate(LANDS["y"], LANDS["s"], qid=LANDS["q"], k=(1, None), by=LANDS[["land", "size"]]).slices
    frame = slices.to_frame()
    assert len(frame) == 8
    counts, interval = ["n_queries", "n_empty", "share", "ndcg"], ["low", "high"]
    of_difference = ["difference", "difference_low", "difference_high"]
    assert list(frame) == ["column", "label", "k", *counts, *interval, *of_difference]
    chosen = frame[(frame["column"] == "land") & frame["k"].isna()]
    whole = evaluate(LANDS["y"], LANDS["s"], qid=LANDS["q"]).value
    assert (chosen["share"] * chosen["ndcg"]).sum() == pytest.approx(whole)


def test_scores_in_columns_are_compared():
    scores = pd.DataFrame({"base": SCORES, "new": GRADES + SCORES}, index=LANDS.index)
    systems = [evaluate(LANDS["y"], scores[name], qid=LANDS["q"]) for name in scores]
    both = compare(*systems, names=list(scores), seed=0)
    frame = both.to_frame()
    counts = [both.wins, both.ties, both.losses]
    assert frame.loc[0, ["a", "b", "wins", "ties", "losses"]].tolist() == ["base", "new", *counts]
    assert frame.loc[0, "value_b"] - frame.loc[0, "value_a"] == pytest.approx(both.difference)
    assert (frame.loc[0, "low"], frame.loc[0, "high"]) == (both.interval.low, both.interval.high)


def test_slices_and_clusters_are_matched_by_the_index():
    rng = np.random.default_rng(1)
    ids = [f"q{i}" for i in range(40)]
    a, b = rng.random((2, 40))
    label = pd.Series(np.arange(40) % 2, index=ids).sample(frac=1, random_state=0)
    user = pd.Series(np.arange(40) // 4, index=ids).sample(frac=1, random_state=1)
    found = by_values(a, b, qid=ids, measure="m", by={"odd": label}, cluster=user, seed=0)
    plain = by_values(a, b, qid=ids, measure="m", by={"odd": np.arange(40) % 2}, cluster=np.arange(40) // 4, seed=0)
    assert found.pairs == plain.pairs
    assert [each.pairs for each in found.slices.values()] == [each.pairs for each in plain.slices.values()]
    frame = found.slices.to_frame()
    assert list(frame.verdict) == ["undecided", "undecided"]
    assert list(frame.n_queries) == [20, 20]
    named = by_values(pd.Series(a, index=ids), pd.Series(b, index=ids)[::-1], qid=ids, measure="m", seed=0)
    assert named.difference == pytest.approx(b.mean() - a.mean())
    assert named.to_frame().verdict[0] == named.verdict
    by_frame = by_values(a, b, qid=ids, measure="m", by=label.to_frame("odd"), cluster=user, seed=0)
    assert [each.pairs for each in by_frame.slices.values()] == [each.pairs for each in found.slices.values()]


# -- adapters ---------------------------------------------------------------------------------------------------------

pytest.importorskip("sklearn")

import sklearn
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score

from ndcg_ml.sklearn import QueryKFold, QueryRanker, ndcg_scorer

RNG = np.random.default_rng(0)
INDEX = [f"row{at}" for at in range(60)]
X = pd.DataFrame(RNG.normal(size=(60, 3)), columns=list("abc"), index=INDEX)
LABELS = pd.Series(np.clip(np.round(X["a"] + RNG.normal(size=60)), 0, 3), index=INDEX)
QID = pd.Series(RNG.permutation(np.repeat(np.arange(12), 5)), index=INDEX)
SORTED = QID.sort_values()  # the same index labels in another order
SCORER = ndcg_scorer("lightgbm@5")
MODEL = Ridge().fit(X, LABELS)


def routed(**params):
    with sklearn.config_context(enable_metadata_routing=True):
        return cross_val_score(Ridge(), X, LABELS, cv=GroupKFold(4), scoring=SCORER, params=params)


class Sorting(RegressorMixin, BaseEstimator):
    """Predict a Series in another order."""

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X):
        return X["a"].sort_values()


def callback(**changed):
    pytest.importorskip("xgboost")
    from ndcg_ml.xgboost import NDCGCallback

    return NDCGCallback("lightgbm@5", **{"X": X, "y": LABELS, "qid": QID, **changed})


def validation(**changed):
    pytest.importorskip("lightgbm")
    from ndcg_ml.lightgbm import StopEarly

    parts = {"X": X, "y": LABELS, "group": [60], "weight": None, **changed}
    return StopEarly("lightgbm@5").fit(tuple(parts.values()))


def catboost(y, qid):
    pytest.importorskip("catboost")
    from ndcg_ml.catboost import NDCGEval

    return NDCGEval("lightgbm@5", pools=[(y, qid)])


OF_ADAPTERS = {
    "scorer, ids": lambda: SCORER(MODEL, X, LABELS, qid=SORTED),
    "scorer, groups": lambda: SCORER(MODEL, X, LABELS, groups=SORTED),
    "scorer, labels": lambda: SCORER(MODEL, X, LABELS[::-1], qid=QID),
    "scorer, labels of a column": lambda: ndcg_scorer("lightgbm@5", qid_column="c")(MODEL, X, LABELS[::-1]),
    "scorer, predictions": lambda: SCORER(Sorting().fit(X, LABELS), X, LABELS, qid=QID),
    "routed as groups": lambda: routed(groups=SORTED),
    "routed as qid": lambda: routed(qid=SORTED, groups=QID),
    "search": lambda: GridSearchCV(Ridge(), {"alpha": [1, 2]}, scoring=ndcg_scorer("lightgbm", qid_column="a"),
        cv=QueryKFold(3, qid=SORTED)).fit(X, LABELS),
    "QueryRanker, ids": lambda: QueryRanker(Ridge()).fit(X, LABELS, SORTED),
    "QueryRanker, groups": lambda: QueryRanker(Ridge()).fit(X, LABELS, groups=SORTED),
    "QueryRanker, labels": lambda: QueryRanker(Ridge()).fit(X, LABELS[::-1], QID),
    "QueryRanker, features": lambda: QueryRanker(Ridge()).fit(X[::-1], LABELS, QID.to_numpy()),
    "QueryRanker, weights": lambda: QueryRanker(Ridge()).fit(X, LABELS, QID, pd.Series(1.0, index=INDEX[::-1])),
    "QueryRanker.score": lambda: QueryRanker(Ridge()).fit(X, LABELS, QID).score(X, LABELS, SORTED),
    "QueryKFold, own": lambda: next(QueryKFold(4, qid=SORTED).split(X)),
    "QueryKFold, labels": lambda: next(QueryKFold(4, qid=QID).split(X, LABELS[::-1])),
    "NDCGCallback, ids": lambda: callback(qid=SORTED),
    "NDCGCallback, labels": lambda: callback(y=LABELS[::-1], qid=QID.to_numpy()),
    "StopEarly, labels": lambda: validation(y=LABELS[::-1]),
    "StopEarly, weights": lambda: validation(weight=LABELS[::-1]),
    "StopEarly, sizes": lambda: validation(group=pd.Series([30, 30], index=["b", "a"])),
    "CatBoost": lambda: catboost(LABELS, SORTED),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_ADAPTERS)
def test_adapters_refuse_indexes_that_differ(name):
    differ = "group of validation set 0 has an index" if "sizes" in name else "must have the same index, because rows"
    with pytest.raises(ValueError, match=differ) as caught:
        OF_ADAPTERS[name]()
    code = re.search(r"(?:label, |or pass )(.*?)(?:, or pass| if )", str(caught.value))[1]
    assert len(eval(code, dict.fromkeys(re.findall(r"\b(?<!\.)[A-Za-z_]+", code), LABELS))) == 60


def test_equal_indexes_and_no_index_give_the_same_result():
    at_position = SCORER(MODEL, X, LABELS, qid=QID.to_numpy())
    assert SCORER(MODEL, X, LABELS, qid=QID) == SCORER(MODEL, X, LABELS.to_numpy(), qid=QID) == at_position
    assert np.array_equal(routed(groups=QID), routed(groups=QID.to_numpy()))
    left, right = (list(QueryKFold(4, qid=ids).split(X, LABELS)) for ids in (QID, QID.to_numpy()))
    assert all(
        np.array_equal(a, b) for one, other in zip(left, right, strict=True) for a, b in zip(one, other, strict=True)
    )
    by_index, by_position = (QueryRanker(Ridge()).fit(X, LABELS, ids).predict(X) for ids in (QID, QID.to_numpy()))
    assert np.array_equal(by_index, by_position)
    callback()
    validation()
    order = np.argsort(QID.to_numpy(), kind="stable")
    catboost(LABELS.iloc[order], QID.iloc[order])
