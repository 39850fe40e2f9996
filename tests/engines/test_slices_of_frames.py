"""``evaluate(by=)`` and ``compare`` with pandas, polars and pyarrow: labels are matched, never taken by position."""

from __future__ import annotations

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from ndcg_ml import compare, evaluate

Y = np.array([2, 0, 1, 0, 1, 0, 0, 2])
SCORES = np.array([0.1, 0.5, 0.9, 0.2, 0.1, 0.6, 0.3, 0.4])
FRAME = pd.DataFrame(
    {"y": Y, "s": SCORES, "q": list("bbaaccdd"), "land": list("xxyyxxyy"), "size": [1, 1, 1, 1, 2, 2, 2, 2]},
    index=list(range(10, 18)),
)
EXPECTED = [("land", "x", 2), ("land", "y", 2), ("size", 1, 2), ("size", 2, 2)]


def found(by, frame=FRAME):
    slices = evaluate(frame["y"], frame["s"], qid=frame["q"], by=by).slices
    return sorted((each.column, each.label, each.n_queries) for each in slices)


def test_columns_of_rows():
    assert found(FRAME[["land", "size"]]) == EXPECTED
    assert found({"land": FRAME["land"], "size": FRAME["size"].to_numpy()}) == EXPECTED
    assert found(FRAME["land"]) == EXPECTED[:2]  # the Series gives the name
    assert found(FRAME["land"].astype("category")) == EXPECTED[:2]


def test_rows_in_another_order_are_refused():
    with pytest.raises(ValueError, match=r"by\['land'\] and y_true must have the same index"):
        found(FRAME["land"][::-1])


def test_labels_by_query_id_in_any_order():
    per_query = FRAME.groupby("q")[["land", "size"]].first()
    assert per_query.index.tolist() == list("abcd")  # the rows of FRAME are in another order
    assert found(per_query) == EXPECTED
    slices = evaluate(FRAME["y"], FRAME["s"], qid=FRAME["q"], by=per_query["land"]).slices
    assert slices["land", "x"].evaluation.per_query.qid.tolist() == ["b", "c"]
    with pytest.raises(ValueError, match="must hold the id of each query; got none for 'b'"):
        found(per_query["land"].rename({"b": "z"}))


def test_queries_of_one_row_are_matched_by_what_the_index_says():
    y, s, q = np.array([1.0, 0, 2]), np.array([1.0, 2, 3]), np.array(["c", "a", "b"])
    by_id = pd.Series(["A", "B", "C"], index=list("abc"))
    slices = evaluate(y, s, qid=q, by=by_id).slices
    assert slices["by", "C"].evaluation.per_query.qid.tolist() == ["c"]
    by_row = evaluate(y, s, qid=q, by=pd.Series(["C", "A", "B"])).slices
    assert by_row["by", "C"].evaluation.per_query.qid.tolist() == ["c"]


def test_labels_without_ids_need_no_index_of_their_own():
    with pytest.raises(ValueError, match=r"has an index .* Pass qid= instead of group"):
        evaluate(Y, SCORES, group=[2, 2, 2, 2], by=pd.Series(list("xyxy"), index=list("abcd")))
    assert len(evaluate(Y, SCORES, group=[2, 2, 2, 2], by=pd.Series(list("xyxy"))).slices) == 2


def test_an_index_beside_rows_of_queries_is_matched_or_refused():
    square, index = np.eye(4), list("wxyz")
    by = pd.Series(list("aabb"), index=index)
    with pytest.raises(ValueError, match="Pass y_true as a frame with this index"):
        evaluate(square, square, by=by)
    assert len(evaluate(pd.DataFrame(square, index=index), square, by=by).slices) == 2
    with pytest.raises(ValueError, match="must have the same index"):
        evaluate(pd.DataFrame(square, index=index), square, by=by[::-1])


def test_missing_labels_are_named():
    with pytest.raises(ValueError, match=r"must have a label for each query; got .* for query 'c'"):
        found(FRAME["land"].where(FRAME["q"] != "c"))


def test_other_frames():
    pl = pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    columns = {"land": list("xxyyxxyy"), "size": [1, 1, 1, 1, 2, 2, 2, 2]}
    assert found(pl.DataFrame(columns)) == EXPECTED
    assert found(pa.table(columns)) == EXPECTED


def test_to_frame():
    slices = evaluate(FRAME["y"], FRAME["s"], qid=FRAME["q"], k=(1, None), by=FRAME[["land", "size"]]).slices
    frame = slices.to_frame()
    assert len(frame) == 8
    assert list(frame) == ["column", "label", "k", "n_queries", "n_empty", "share", "ndcg", "low", "high", "difference"]
    chosen = frame[(frame["column"] == "land") & frame["k"].isna()]
    assert (chosen["share"] * chosen["ndcg"]).sum() == pytest.approx(
        evaluate(FRAME["y"], FRAME["s"], qid=FRAME["q"]).value
    )


def test_scores_in_columns_are_compared():
    scores = pd.DataFrame({"base": SCORES, "new": Y + SCORES}, index=FRAME.index)
    systems = [evaluate(FRAME["y"], scores[name], qid=FRAME["q"]) for name in scores]
    both = compare(*systems, names=list(scores), seed=0)
    frame = both.to_frame()
    assert frame.loc[0, ["a", "b", "wins", "ties", "losses"]].tolist() == [
        "base",
        "new",
        both.wins,
        both.ties,
        both.losses,
    ]
    assert frame.loc[0, "value_b"] - frame.loc[0, "value_a"] == pytest.approx(both.difference)
    assert (frame.loc[0, "low"], frame.loc[0, "high"]) == (both.interval.low, both.interval.high)


# Labels of eight known queries, as many as there are rows; four of them are asked for.
TABLE = pd.Series(list("aabbaabb"), index=["q0", "q1", "q2", "q3", "x", "y", "z", "w"])


def slices_of(by, qid, y=Y):
    slices = evaluate(y, SCORES, qid=qid, by=by).slices
    return [(each.label, each.evaluation.per_query.qid.tolist()) for each in slices]


def test_a_table_of_queries_with_as_many_entries_as_rows():
    qid = np.repeat(["q0", "q1", "q2", "q3"], 2)
    by_id = sorted([("a", ["q0", "q1"]), ("b", ["q2", "q3"])])
    for by in (TABLE, TABLE[::-1], {"by": TABLE}, TABLE.to_frame("by"), TABLE.to_dict() and {"by": TABLE.to_dict()}):
        assert sorted(slices_of(by, qid)) == by_id
    labelled = pd.Series(Y, index=list("ABCDEFGH"))
    assert sorted(slices_of(TABLE, qid, labelled)) == by_id
    # An index that lacks an id, or repeats one, is no table of queries.
    assert sorted(slices_of(TABLE.rename({"q0": "v"}), qid)) == [("a", ["q0", "q2"]), ("b", ["q1", "q3"])]
    assert sorted(slices_of(TABLE.rename({"x": "q0"}), qid)) == [("a", ["q0", "q2"]), ("b", ["q1", "q3"])]


def test_integers_may_be_row_numbers_too_so_nothing_is_guessed():
    qid, table = np.repeat([0, 1, 2, 3], 2), TABLE.set_axis([0, 1, 2, 3, 10, 11, 12, 13])
    for by in (table, {"by": table}, table.to_frame()):
        with pytest.raises(ValueError, match=r"cannot be told which of the two it labels.*to_dict\(\).*to_numpy\(\)"):
            slices_of(by, qid)
    assert sorted(slices_of({"by": table.to_dict()}, qid)) == [("a", [0, 1]), ("b", [2, 3])]
    assert sorted(slices_of(table.to_numpy(), qid)) == [("a", [0, 2]), ("b", [1, 3])]
    # Rows that carry labels of their own say which it is.
    assert sorted(slices_of(table, qid, pd.Series(Y, index=table.index))) == [("a", [0, 2]), ("b", [1, 3])]
    assert sorted(slices_of(table, qid, pd.Series(Y, index=list("ABCDEFGH")))) == [("a", [0, 1]), ("b", [2, 3])]
    # The labels 0, 1, ..., which pandas gives to what has none, are those of rows.
    assert sorted(slices_of(table.reset_index(drop=True), qid)) == [("a", [0, 2]), ("b", [1, 3])]
