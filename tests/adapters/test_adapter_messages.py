"""Error messages of the adapters name arguments of the adapter that was called."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")
pd = pytest.importorskip("pandas")

from sklearn.linear_model import Ridge

from ndcg_ml import evaluate
from ndcg_ml.sklearn import QueryKFold, QueryRanker, ndcg_scorer

X = pd.DataFrame({"user": [1.0, 2, np.nan, 3], "a": [1.0, 2, 3, 4]})
Y = [1, 0, 2, 1]
MISSING = {
    "None": X.assign(user=["a", "b", None, "c"]),
    "time": X.assign(user=pd.to_datetime(["2020-01-01", "2020-01-02", None, "2020-01-03"])),
}


@pytest.mark.parametrize("frame", MISSING.values(), ids=MISSING)
def test_missing_ids_name_the_column(frame):
    message = r"the column qid_column='user' of X must have an id for every row; got a missing value"
    for call in (
        lambda: next(QueryKFold(2, qid_column="user").split(frame)),
        lambda: QueryRanker(Ridge(), qid_column="user").fit(frame, Y),
        lambda: ndcg_scorer("sklearn", qid_column="user")(Ridge(), frame, Y),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("ids", [["a", "b", None, "c"], [1.0, 2.0, np.nan, 3.0]])
def test_missing_ids_of_a_splitter_name_the_argument(ids):
    with pytest.raises(ValueError, match=r"^qid must have an id for every row"):
        next(QueryKFold(2, qid=np.array(ids)).split(X))


def test_a_confidence_just_below_one_is_not_a_hundred_per_cent():
    rng = np.random.default_rng(0)
    found = evaluate(rng.integers(0, 3, (20, 5)), rng.normal(size=(20, 5)))
    assert "99.99999 %" in str(found.interval(0.9999999, method="t"))
    assert "95 %" in str(found.interval(method="t"))
    assert "99.9 %" in str(found.interval(0.999, method="t"))


def test_the_repr_of_evaluation_functions_and_callbacks():
    pytest.importorskip("lightgbm")
    pytest.importorskip("xgboost")
    pytest.importorskip("catboost")
    from ndcg_ml import catboost, lightgbm, xgboost

    for module in (lightgbm, xgboost):
        assert repr(module.NDCGEval("sklearn@5", k=(10, None))) == "NDCGEval('sklearn', k=(10, None))"
    assert xgboost.NDCGEval("xgboost@5", k=(10, 3)).__name__ == "ndcg_xgboost@10"
    data = {"X": X, "y": Y, "group": [4]}
    assert repr(xgboost.NDCGCallback("sklearn", name="held out", rounds=3, **data)) == (
        "NDCGCallback('sklearn', name='held out', rounds=3)"
    )
    sets = [(Y, [1] * 4), ([1, 0], [1, 1])]
    assert repr(catboost.NDCGEval("sklearn@5", pools=sets)) == "NDCGEval('sklearn', k=5, pools=<2 data sets>)"
    assert repr(lightgbm.StopEarly("lightgbm", k=5, rounds=7, watch="v")) == (
        "StopEarly('lightgbm', k=5, rounds=7, watch='v')"
    )
