"""Every function refuses frames that are not in memory, before it computes one of their columns."""

from __future__ import annotations

import pytest

pytest.importorskip("sklearn")
pd = pytest.importorskip("pandas")

from sklearn.linear_model import Ridge

from ndcg_ml import (
    align,
    dcg_score,
    evaluate,
    evaluate_batches,
    evaluate_part,
    evaluate_ranked,
    evaluate_run,
    explain_difference,
    identify,
    ndcg_score,
    prepare,
)
from ndcg_ml.sklearn import QueryKFold, QueryRanker, ndcg_scorer

ROWS = pd.DataFrame({"qid": [0, 0, 1, 1], "docno": [1, 2, 3, 4], "label": [1, 0, 2, 1], "score": [0.4, 0.2, 0.1, 0.3]})
Y, S, Q = ROWS.label.to_numpy(), ROWS.score.to_numpy(), ROWS.qid.to_numpy()
X = ROWS[["score"]].to_numpy()


class Poisoned:
    """A column and a frame that raise if they are computed."""

    columns = ("qid", "docno", "label", "score")

    def __getitem__(self, name):
        return self

    def _computed(self, *_, **__):
        raise AssertionError("a plan was computed")

    __array__ = __len__ = __iter__ = _computed
    shape = property(_computed)


def of(library, kind="DataFrame"):
    return type(kind, (Poisoned,), {"__module__": f"{library}.sql.frame"})()


COLUMNS = {
    "labels of ndcg_score": lambda v: ndcg_score(v, S, qid=Q),
    "scores of ndcg_score": lambda v: ndcg_score(Y, v, qid=Q),
    "ids of ndcg_score": lambda v: ndcg_score(Y, S, qid=v),
    "sizes of ndcg_score": lambda v: ndcg_score(Y, S, group=v),
    "mask": lambda v: ndcg_score(Y.reshape(2, 2), S.reshape(2, 2), mask=v),
    "retrieved": lambda v: ndcg_score(Y, S, qid=Q, retrieved=v),
    "documents": lambda v: ndcg_score(Y, S, qid=Q, doc_id=v),
    "weights": lambda v: ndcg_score(Y, S, qid=Q, query_weight=v),
    "dcg_score": lambda v: dcg_score(v, v, qid=v),
    "evaluate": lambda v: evaluate(v, v, qid=v),
    "by": lambda v: evaluate(Y, S, qid=Q, by=v),
    "a column of by": lambda v: evaluate(Y, S, qid=Q, by={"country": v}),
    "prepare": lambda v: prepare(v, qid=v),
    "prepared scores": lambda v: prepare(Y, qid=Q)(v),
    "explain_difference": lambda v: explain_difference("sklearn", "lightgbm", v, v, qid=v),
    "identify": lambda v: identify(0.5, v, v, qid=v),
    "evaluate_part": lambda v: evaluate_part(v, v, qid=v),
    "weights of evaluate_part": lambda v: evaluate_part(Y, S, qid=Q, query_weight=v),
    "scores of evaluate_part": lambda v: evaluate_part(Y, v, qid=Q),
    "a batch": lambda v: evaluate_batches([(v, v, v)]),
    "ids of a batch": lambda v: evaluate_batches([(Y, S, v)]),
    "evaluate_ranked": lambda v: evaluate_ranked(v),
    "labels of a scorer": lambda v: ndcg_scorer("sklearn")(Ridge().fit(X, Y), X, v, qid=Q),
    "ids of a scorer": lambda v: ndcg_scorer("sklearn")(Ridge().fit(X, Y), X, Y, qid=v),
    "labels of QueryRanker": lambda v: QueryRanker(Ridge()).fit(X, v, Q),
    "ids of QueryRanker": lambda v: QueryRanker(Ridge()).fit(X, Y, v),
    "ids of QueryKFold": lambda v: next(QueryKFold(2, qid=v).split(X, Y)),
    "own ids of QueryKFold": lambda v: next(QueryKFold(2, qid=v).split(X)),
}
FRAMES = {
    "evaluate": lambda f: evaluate(f, columns={}),
    "evaluate without columns": lambda f: evaluate(f),
    "qrels": lambda f: evaluate_run(f, ROWS),
    "run": lambda f: evaluate_run(ROWS, f),
    "align": lambda f: align(ROWS, f),
    "by": lambda f: evaluate(Y, S, qid=Q, by=f),
    "evaluate_batches": lambda f: evaluate_batches(f),
    "X of QueryRanker": lambda f: QueryRanker(Ridge()).fit(f, Y, Q),
    "X of QueryRanker with a column": lambda f: QueryRanker(Ridge(), qid_column="qid").fit(f, Y),
    "X of a scorer": lambda f: ndcg_scorer("sklearn", qid_column="qid")(Ridge(), f, Y),
    "X of QueryKFold": lambda f: next(QueryKFold(2, qid_column="qid").split(f)),
}


@pytest.mark.parametrize(
    "route", [*COLUMNS.values(), *FRAMES.values()], ids=[*COLUMNS, *(f"frame: {f}" for f in FRAMES)]
)
def test_every_route_refuses_a_plan_without_computing_it(route):
    with pytest.raises(TypeError, match="must be in memory; got a DataFrame of dask"):
        route(of("dask"))


@pytest.mark.parametrize(
    ("library", "kind", "fix", "sister"),
    [
        ("dask", "Series", r"compute\(\)", "dask"),
        ("dask_expr", "Series", r"compute\(\)", "dask"),
        ("pyspark", "Column", r"toPandas\(\)", "spark"),
        ("ray", "Dataset", r"to_pandas\(\)", "ray"),
        ("ibis", "Table", r"execute\(\)", None),
        ("duckdb", "DuckDBPyRelation", r"df\(\)", None),
        ("polars", "LazyFrame", r"collect\(\)", None),
        ("polars", "Expr", r"collect\(\)", None),
        ("narwhals", "LazyFrame", r"collect\(\)", None),
        ("daft", "DataFrame", r"to_pandas\(\)", None),
        ("snowflake", "DataFrame", r"to_pandas\(\)", None),
        ("pyarrow", "RecordBatchReader", r"to_table\(\)", None),
    ],
)
def test_the_message_names_the_library_and_the_fix(library, kind, fix, sister):
    for route in (COLUMNS["labels of ndcg_score"], FRAMES["run"]):
        sisters = f".*To evaluate it where it is.*ndcg_ml.{sister}.evaluate" if sister else r"((?! where it is).)*$"
        with pytest.raises(TypeError, match=f"got a {kind} of {library},.*rows = frame.{fix}{sisters}"):
            route(of(library, kind))


def test_a_subclass_and_another_collection_of_dask_are_lazy_too():
    frame = type("Mine", (type(of("dask")),), {"__module__": "mine"})()
    graph = type("DataArray", (Poisoned,), {"__module__": "xarray", "__dask_graph__": lambda self: {}})()
    for lazy in (frame, graph):
        with pytest.raises(TypeError, match="of dask"):
            ndcg_score(lazy, S, qid=Q)
    in_memory = type("DataArray", (list,), {"__module__": "xarray", "__dask_graph__": lambda self: None})
    assert ndcg_score(in_memory(Y), S, qid=Q) == ndcg_score(Y, S, qid=Q)


def test_dask_itself():
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(ROWS, npartitions=2)
    for shuffled in (frame, frame.shuffle("qid")):
        for route in (
            lambda f: evaluate_run(f, f),
            lambda f: ndcg_score(f["label"], f["score"], qid=f["qid"]),
            lambda f: ndcg_score(f["label"].to_dask_array(), S, qid=Q),
        ):
            with pytest.raises(TypeError, match="of dask"):
                route(shuffled)
    assert evaluate(frame.compute(), columns={}).value == evaluate(ROWS, columns={}).value


def test_duckdb_itself():
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql("select 1 as qid, 2 as docno, 3 as label, 4 as score")
    for route in (FRAMES["evaluate"], FRAMES["run"], COLUMNS["labels of ndcg_score"]):
        with pytest.raises(TypeError, match=r"a DuckDBPyRelation of duckdb.*frame\.df\(\)"):
            route(relation)


@pytest.mark.parametrize(
    ("batches", "got"), [(None, "NoneType"), (3, "int"), ("rows.csv", "str"), ({"a": 1}, "dict"), (ROWS, "DataFrame")]
)
def test_an_argument_without_batches_is_refused(batches, got):
    with pytest.raises(TypeError, match=rf"batches must be an iterable of tuples \(y_true, y_score, qid\).*got {got}"):
        evaluate_batches(batches)
