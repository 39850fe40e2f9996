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
    return sorted((*key, each.n_queries) for key, each in slices.items())


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
    assert found(per_query.to_dict()) == EXPECTED
    with pytest.raises(ValueError, match=r"one label per row of y_true, 8; got 4\. .* or to_dict\(\) of a Series"):
        found(per_query)


def test_an_index_is_that_of_y_true_or_refused():
    by = pd.Series(list("abcabcab"), index=list("stuvwxyz"))
    qid = np.repeat(list("abcd"), 2)
    square = np.eye(8)
    for data in ({"qid": qid}, {"group": [2, 2, 2, 2]}):
        with pytest.raises(ValueError, match="Pass y_true with this index, or a mapping from query ids"):
            evaluate(Y, SCORES, **data, by=by)
    with pytest.raises(ValueError, match="Pass y_true with this index, or a mapping from query ids"):
        evaluate(square, square, by=by)
    assert len(evaluate(square, square, by=by.reset_index(drop=True)).slices) == 3
    assert len(evaluate(pd.DataFrame(square, index=by.index), square, by=by).slices) == 3
    with pytest.raises(ValueError, match="must have the same index"):
        evaluate(pd.DataFrame(square, index=by.index), square, by=by[::-1])


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
    counts, interval = ["n_queries", "n_empty", "share", "ndcg"], ["low", "high"]
    of_difference = ["difference", "difference_low", "difference_high"]
    assert list(frame) == ["column", "label", "k", *counts, *interval, *of_difference]
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
