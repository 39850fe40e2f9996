"""Data that carry labels: an index of pandas, the keys of a mapping. They are used, or refused with the fix."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from ndcg_ml import dcg_score, evaluate, explain_difference, identify, ndcg_score, prepare

pd = pytest.importorskip("pandas")

# The ids do not appear in their own order, so that the order of groupby is another than that of the rows.
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


def _right(frame=FRAME):
    return ndcg_score(frame.y, frame.s, qid=frame.q, query_weight=BY_APPEARANCE)


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
    assert by_position != _right(frame)
    assert ndcg_score(frame.y, frame.s, **arguments) == _right(frame)
    assert evaluate(frame.y, frame.s, **arguments).per_query.weight.tolist() == BY_APPEARANCE
    assert prepare(frame.y, **arguments)(frame.s) == _right(frame)
    assert dcg_score(frame.y, frame.s, **arguments) == dcg_score(
        frame.y, frame.s, qid=frame.q, query_weight=BY_APPEARANCE
    )
    assert explain_difference("sklearn", "lightgbm", frame.y, frame.s, **arguments).value_a == _right(frame)
    assert identify(round(_right(frame), 4), frame.y, frame.s, **arguments).matches


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


def test_labels_that_count_from_zero_are_ids_where_the_ids_do():
    # groupby(..., as_index=False) gives such an index: the rows are in the order of the ids, and nothing else says so.
    weights = NUMBERED.groupby("q", as_index=False)["w"].first()["w"]
    assert isinstance(weights.index, pd.RangeIndex)
    assert ndcg_score(NUMBERED.y, NUMBERED.s, qid=NUMBERED.q, query_weight=weights) == _right(NUMBERED)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (FRAME.groupby("q", as_index=False)["w"].first()["w"], "index of query_weight must hold the id of each query"),
        (FRAME.drop_duplicates("q")["w"], r"none for 'c' \(3 of 3 queries\), and labels such as 10"),
        (FRAME.groupby("q")["w"].first().drop("b"), r"got none for 'b' \(1 of 3 queries\)"),
        (FRAME.set_index("q")["w"], "index of query_weight must name each query once; got 'c' more than once"),
        ({"a": 5.0, "c": 1.0}, r"query_weight must have an entry for the id of each query; got none for 'b' \(1 of 3"),
        ({}, "query_weight must have an entry for the id of each query"),
    ],
    ids=["counted", "rows", "one lacks", "repeats", "mapping lacks", "empty mapping"],
)
def test_labels_that_are_no_ids_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        ndcg_score(FRAME.y, FRAME.s, qid=FRAME.q, query_weight=weights)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_of_weights_is_refused_with_the_line_to_write(library):
    frame = FRAME.drop_duplicates("q")[["q", "w"]]
    if library == "polars":
        pl = pytest.importorskip("polars")
        frame = pl.DataFrame({"q": frame.q.to_list(), "w": frame.w.to_list()})
    with pytest.raises(TypeError, match=r"got a frame\. Pass a mapping.*dict\(zip\(frame"):
        ndcg_score(FRAME.y, FRAME.s, qid=FRAME.q, query_weight=frame)
    weights = dict(zip(frame["q"], frame["w"], strict=True))
    assert ndcg_score(FRAME.y, FRAME.s, qid=FRAME.q, query_weight=weights) == _right()


def test_a_series_of_polars_has_no_labels():
    pl = pytest.importorskip("polars")
    assert ndcg_score(FRAME.y, FRAME.s, qid=FRAME.q, query_weight=pl.Series(BY_APPEARANCE)) == _right()


def test_sizes_with_the_ids_as_labels_are_refused():
    sizes = FRAME.groupby("q").size()
    with pytest.raises(ValueError, match=r"^group has an index \(its first label is 'a'\).*Pass qid=.*group\.to_numpy"):
        ndcg_score(FRAME.y, FRAME.s, group=sizes)
    assert ndcg_score(FRAME.y, FRAME.s, group=pd.Series([2, 3, 2])) == ndcg_score(FRAME.y, FRAME.s, qid=FRAME.q)


def test_weights_with_ids_as_labels_beside_sizes_are_refused():
    weights = FRAME.groupby("q")["w"].first()
    with pytest.raises(ValueError, match=r"^query_weight has an index.*Pass qid= instead of group"):
        ndcg_score(FRAME.y, FRAME.s, group=[2, 3, 2], query_weight=weights)
    with pytest.raises(TypeError, match=r"^query_weight must be an array.*have no ids; got a mapping"):
        ndcg_score(FRAME.y, FRAME.s, group=[2, 3, 2], query_weight=weights.to_dict())
    assert ndcg_score(FRAME.y, FRAME.s, group=[2, 3, 2], query_weight=pd.Series(BY_APPEARANCE)) == _right()


def test_weights_of_queries_in_rows_follow_their_index():
    y, s = pd.DataFrame([[1, 0], [0, 1]], index=["b", "a"]), pd.DataFrame([[0, 1], [0, 1]], index=["b", "a"])
    weights = pd.Series([1.0, 4.0], index=["b", "a"])
    assert evaluate(y, s, query_weight=weights).per_query.weight.tolist() == [1.0, 4.0]
    with pytest.raises(ValueError, match=r"^query_weight and y_true must have the same index"):
        ndcg_score(y, s, query_weight=weights.sort_index())
    with pytest.raises(ValueError, match=r"^query_weight has an index"):
        ndcg_score(y.to_numpy(), s, query_weight=weights)


PER_ROW = {
    "y_score": lambda frame: frame.s,
    "qid": lambda frame: frame.q,
    "retrieved": lambda frame: frame.s > 0,
    "doc_id": lambda frame: frame.s,
}


@pytest.mark.parametrize("name", PER_ROW)
@pytest.mark.parametrize("other", ["another order", "other labels"])
def test_rows_that_do_not_correspond_are_refused(name, other):
    arguments = {"y_true": FRAME.y, "y_score": FRAME.s, "qid": FRAME.q}
    odd = FRAME.sort_values("s") if other == "another order" else FRAME.reset_index(drop=True)
    with pytest.raises(ValueError, match=rf"^{name} and y_true must have the same index.*at row 0.*{name}\.loc\["):
        ndcg_score(**{**arguments, name: PER_ROW[name](odd)})
    aligned = PER_ROW[name](odd).to_numpy() if other == "other labels" else PER_ROW[name](odd).loc[FRAME.index]
    assert 0 < ndcg_score(**{**arguments, name: aligned}) <= 1


def test_arrays_beside_labelled_rows_are_read_by_position():
    expected = ndcg_score(FRAME.y.to_numpy(), FRAME.s.to_numpy(), qid=FRAME.q.to_numpy())
    shuffled = FRAME.iloc[[3, 1, 0, 2, 6, 5, 4]]
    assert ndcg_score(shuffled.y, shuffled.s, qid=shuffled.q) == pytest.approx(expected, abs=1e-15)
    assert ndcg_score(FRAME.y, FRAME.s.to_numpy(), qid=FRAME.q.tolist()) == expected
    assert ndcg_score(FRAME.y.tolist(), FRAME.s, qid=FRAME.q.to_numpy()) == expected


def test_what_was_prepared_knows_its_rows():
    ndcg = prepare(FRAME.y, qid=FRAME.q)
    again = pickle.loads(pickle.dumps(ndcg))
    for each in (ndcg, again):
        assert each(FRAME.s) == each(FRAME.s.to_numpy())
        for call in (each, each.totals, each.dcg, each.evaluate):
            with pytest.raises(ValueError, match=r"^y_score and y_true must have the same index"):
                call(FRAME.s.sort_values())


def test_another_length_is_refused_as_such():
    with pytest.raises(ValueError, match=r"^y_score must have the shape of y_true"):
        ndcg_score(FRAME.y, FRAME.s.iloc[1:], qid=FRAME.q)


def test_documents_in_columns_of_another_order_are_refused():
    y = pd.DataFrame([[3, 0, 1]], columns=["x", "y", "z"])
    s = pd.DataFrame([[0.9, 0.1, 0.3]], columns=["x", "y", "z"])
    with pytest.raises(ValueError, match=r"columns in the same order.*y_score\[y_true\.columns\]"):
        ndcg_score(y, s[["z", "y", "x"]])
    assert ndcg_score(y, s) == ndcg_score(y, s.add_prefix("score_")) == 1.0


# -- missing ids ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [pd.NA, pd.NaT])
@pytest.mark.parametrize("name", ["qid", "doc_id"])
@pytest.mark.parametrize("part", [False, True], ids=["an id", "a part of an id"])
def test_a_missing_id_of_pandas_is_called_missing(missing, name, part):
    ids = np.empty(3, dtype=object)
    ids[:] = [("a", 1), ("b", missing), ("c", 2)] if part else ["a", missing, "c"]
    arguments = {"group": [3], "doc_id": ids} if name == "doc_id" else {"qid": ids}
    with pytest.raises(ValueError, match=rf"^{name} must have an id for every (row|document); got a missing value"):
        ndcg_score([2, 1, 0], [2, 1, 0], **arguments)


def test_a_missing_id_in_text_of_pandas():
    with pytest.raises(ValueError, match=r"^qid must have an id for every row; got a missing value at row 1"):
        ndcg_score([2, 1, 0], [2, 1, 0], qid=pd.Series(["a", pd.NA, "b"], dtype="string"))


def test_a_frame_of_one_column_is_rows_with_an_axis_too_many():
    frame = pd.DataFrame({"rating": [3, 0, 1, 0, 2, 1], "score": [0.9, 0.8, 0.1, 0.5, 0.4, 0.3]})
    with pytest.raises(ValueError, match=r"pass np\.asarray\(y_true\)\.squeeze\(-1\)"):
        ndcg_score(frame[["rating"]], frame[["score"]], k=10)
    rows = (np.asarray(frame[[name]]).squeeze(-1) for name in frame)
    assert ndcg_score(*rows, group=[6], k=10) == ndcg_score(frame["rating"], frame["score"], group=[6], k=10)
