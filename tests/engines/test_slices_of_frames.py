"""``evaluate(by=)`` and ``compare`` of frames: slices are matched by index or id, never by position."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import by_values

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


def test_slices_by_query_id_in_any_order():
    per_query = FRAME.groupby("q")[["land", "size"]].first()
    assert per_query.index.tolist() == list("abcd")  # the rows of FRAME are in another order
    assert found(per_query.to_dict()) == EXPECTED


BY, SQUARE = pd.Series(list("abcabcab"), index=list("stuvwxyz")), np.eye(8)
LABELLED = pd.DataFrame(SQUARE, index=BY.index)
REFUSED = {
    "another order": (lambda: found(FRAME["land"][::-1]), r"by\['land'\] and y_true must have the same index"),
    "an index by id": (
        lambda: found(FRAME.groupby("q")[["land", "size"]].first()),
        r"one \w+ per row of y_true, 8; got 4\. .* or to_dict\(\) of a Series",
    ),
    "no index, ids": (
        lambda: evaluate(Y, SCORES, qid=np.repeat(list("abcd"), 2), by=BY),
        "Pass y_true with this index, or a mapping from query ids",
    ),
    "no index, sizes": (lambda: evaluate(Y, SCORES, group=[2] * 4, by=BY), "Pass y_true with this index, or a mapping"),
    "no index, rows": (lambda: evaluate(SQUARE, SQUARE, by=BY), "Pass y_true with this index, or a mapping"),
    "another order of rows": (lambda: evaluate(LABELLED, SQUARE, by=BY[::-1]), "must have the same index"),
    "missing": (
        lambda: found(FRAME["land"].where(FRAME["q"] != "c")),
        r"must have a \w+ for each query; got .* for query 'c'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_index_that_does_not_correspond_is_refused(case):
    call, words = REFUSED[case]
    with pytest.raises(ValueError, match=words):
        call()


def test_an_index_from_zero_and_that_of_y_true_are_accepted():
    assert len(evaluate(SQUARE, SQUARE, by=BY.reset_index(drop=True)).slices) == 3
    assert len(evaluate(LABELLED, SQUARE, by=BY).slices) == 3


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
    whole = evaluate(FRAME["y"], FRAME["s"], qid=FRAME["q"]).value
    assert (chosen["share"] * chosen["ndcg"]).sum() == pytest.approx(whole)


def test_scores_in_columns_are_compared():
    scores = pd.DataFrame({"base": SCORES, "new": Y + SCORES}, index=FRAME.index)
    systems = [evaluate(FRAME["y"], scores[name], qid=FRAME["q"]) for name in scores]
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
