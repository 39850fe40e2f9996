"""Columns and frames of pandas, polars and pyarrow give the results of their arrays."""

from __future__ import annotations

import math

import numpy as np
import pytest
from core.test_properties import check_form, check_ids
from core.test_runs import QRELS, RUN, check_forms
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from ndcg_ml import evaluate, ndcg_score
from ndcg_ml.runs import align, evaluate_run

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

ID_TYPES = {
    "pandas": lambda ids: pd.Series([f"q{i}" for i in ids], index=np.arange(ids.size)[::-1]),
    "categories": lambda ids: pd.Series(pd.Categorical([f"q{i}" for i in ids])),
    "polars": lambda ids: pl.Series([f"q{i}" for i in ids]),
}


@examples(15)
@pytest.mark.parametrize("name", ID_TYPES)
@given(st.data())
def test_ids_in_a_column_equal_sizes_and_padding(name, data):
    check_ids(ID_TYPES[name], data)


FORMS = {
    "pandas": lambda values: pd.Series(values, index=np.arange(values.size)[::-1] * 10),
    "pandas extension": lambda values: pd.Series(values).astype("Float64"),
    "polars": lambda values: pl.Series(values),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("flavor", ["sklearn@3", "lightgbm@3", "catboost", "torchmetrics@5", "trec_eval@4"])
def test_a_column_gives_the_value_of_its_array(form, flavor):
    # The index of this pandas Series is not 0, 1, ..., so sizes in it are refused.
    check_form(FORMS[form], flavor, ids=form != "pandas extension", sizes=form != "pandas")


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_a_frame_is_a_two_dimensional_array(library):
    rng = np.random.default_rng(1)
    y, s, mask = rng.integers(0, 4, (5, 8)), rng.integers(0, 4, (5, 8)), rng.random((5, 8)) < 0.7
    arguments = {"mask": mask, "flavor": "lightgbm", "k": 4}
    assert ndcg_score(library(y), library(s), **arguments) == ndcg_score(y, s, **arguments)


# -- runs and qrels ---------------------------------------------------------------------------------------------------


def frame(data, value, library=pd.DataFrame):
    rows = [(topic, doc, number) for topic in data for doc, number in data[topic].items()]
    return library(dict(zip(("qid", "docno", value), map(list, zip(*rows, strict=True)), strict=True)))


def test_runs_and_qrels_in_frames_give_the_result_of_dicts():
    check_forms(
        [frame(QRELS, "label"), frame(QRELS, "label", pl.DataFrame)],
        [
            frame(RUN, "score"),
            frame(RUN, "score").astype({"qid": "category", "docno": object, "score": "float32"}),
            frame(RUN, "score", pl.DataFrame),
        ],
    )


def test_a_pyarrow_table_is_a_frame_too():
    table = pytest.importorskip("pyarrow").table
    result = evaluate_run(frame(QRELS, "label", table), frame(RUN, "score", table))
    assert result.value == evaluate_run(QRELS, RUN).value


@pytest.mark.parametrize(
    ("qrels", "run", "error", "words"),
    [
        ({1: {"d1": 1}}, frame(RUN, "score"), TypeError, r"topic ids.*int in qrels and str in run, column qid"),
        (QRELS, frame(QRELS, "label"), ValueError, "columns qid, docno and score; got qid, docno, label"),
        (frame(RUN, "score"), RUN, ValueError, "columns qid, docno and label; got qid, docno, score"),
        (QRELS, pd.concat([frame(RUN, "score")] * 2), ValueError, r"twice in a topic; 'd9' does in run\['q3'\]"),
        (QRELS, frame(RUN, "score").replace("d9", None), ValueError, "ids of run, column docno, must not be missing"),
    ],
)  # fmt: skip
def test_frames_that_are_refused(qrels, run, error, words):
    with pytest.raises(error, match=words):
        evaluate_run(qrels, run)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, "pyarrow"])
def test_ids_of_frames_may_end_in_nul(library):
    library = pytest.importorskip("pyarrow").table if library == "pyarrow" else library
    qrels = {"q": {"d": 1, "d\0": 0}, "q\0": {"d": 0, "d\0": 2}}
    run = {"q": {"d": 1.0, "d\0": 2.0}, "q\0": {"d": 1.0, "d\0": 2.0}}
    expected = evaluate_run(qrels, run)
    assert expected.per_query.ndcg.tolist() == [1 / math.log2(3), 1.0]
    result = evaluate_run(frame(qrels, "label", library), frame(run, "score", library))
    assert result.per_query.qid.tolist() == ["q", "q\0"]
    assert result.value == expected.value


@pytest.mark.parametrize("dtype", ["string", "object", "category", "Int64"])
def test_a_missing_id_of_a_frame_is_refused(dtype):
    ids = [1, None] if dtype == "Int64" else ["q1", None]
    for qid, docno, column in ((ids, ["d1", "d2"], "qid"), (["q1", "q1"], ids, "docno")):
        columns = {"qid": qid, "docno": docno, "label": [1, 2]}
        columns[column] = pd.Series(columns[column], dtype=dtype)
        with pytest.raises(ValueError, match=rf"column {column}, must not be missing; got"):
            evaluate_run(pd.DataFrame(columns), RUN)


def test_the_result_of_a_run_as_a_frame():
    pair, one = evaluate_run(QRELS, RUN, k=(1, 10)), evaluate_run(QRELS, RUN, k=10)
    table = pair.to_frame()
    assert {"qid", "ndcg@1", "ndcg@10", "judged@1", "judged@10", "n_docs"} <= set(table.columns)
    assert table["qid"].tolist() == ["q1", "q2", "q3"]
    assert one.to_frame()["judged"].tolist()[::2] == [2 / 3, 0.5]


# -- the caller's names of columns, and kind of frame -----------------------------------------------------------------

NAMES = {"qid": "user_id", "docno": "item_id", "label": "rating", "score": "prediction"}


def library(name):
    module = pytest.importorskip(name)
    return module.table if name == "pyarrow" else module.DataFrame


def table(columns, name):
    return library(name)({NAMES[each]: values for each, values in columns.items()} | {"other": columns["qid"]})


def rows(data, value):
    each = [(topic, doc, number) for topic in data for doc, number in data[topic].items()]
    return dict(zip(("qid", "docno", value), map(list, zip(*each, strict=True)), strict=True))


@pytest.mark.parametrize("name", ["pandas", "polars", "pyarrow"])
def test_the_callers_names_and_kind_of_frame(name):
    qrels, run = table(rows(QRELS, "label"), name), table(rows(RUN, "score"), name)
    expected = evaluate_run(QRELS, RUN, k=(1, 10))
    for data in ((qrels, run), (QRELS, run), (qrels, RUN)):
        result = evaluate_run(*data, k=(1, 10), columns=NAMES)
        assert result.value == expected.value
        made = result.to_frame()
        assert type(made) is type(run)
        assert "judged@10" in (made.column_names if name == "pyarrow" else made.columns)
        ids = made["qid"]
        assert (ids.tolist() if name == "pandas" else ids.to_pylist() if name == "pyarrow" else ids.to_list()) == [
            *QRELS
        ]
    usual = library(name)(rows(RUN, "score"))
    assert type(evaluate_run(frame(QRELS, "label"), usual).to_frame()) is type(usual)
    assert type(evaluate_run(QRELS, RUN).to_frame()) is pd.DataFrame
    data = align(qrels, run, columns=NAMES)
    assert ndcg_score(**data.arguments(), flavor="trec_eval", k=10) == pytest.approx(expected.value[10], abs=1e-15)


SCORED = {
    "qid": ["u1", "u1", "u2", "u1"],
    "docno": ["a", "b", "a", "c"],
    "label": [1, 0, 1, None],
    "score": [0.1, 0.5, 2, 0.5],
}


@pytest.mark.parametrize("name", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("flavor", ["trec_eval", "sklearn[unjudged=zero]"])
def test_evaluate_takes_a_frame(name, flavor):
    arrays = [np.array(SCORED[each], dtype=float) for each in ("label", "score")]
    expected = evaluate(*arrays, qid=SCORED["qid"], doc_id=SCORED["docno"], flavor=flavor, k=2)
    result = evaluate(table(SCORED, name), flavor=flavor, k=2, columns=NAMES)
    assert result.value == expected.value
    assert result.per_query.qid.tolist() == ["u1", "u2"]
    assert type(result.to_frame()) is type(table(SCORED, name))
    plain = library(name)({each: values for each, values in SCORED.items() if each != "docno"})
    assert evaluate(plain, columns={}, flavor="sklearn[unjudged=zero]", k=2).value == pytest.approx(
        evaluate(*arrays, qid=SCORED["qid"], flavor="sklearn[unjudged=zero]", k=2).value
    )


REFUSED = [
    (
        lambda: evaluate(pl.LazyFrame(SCORED), columns={}),
        TypeError,
        r"y_true must be .*a LazyFrame of polars,.*frame.collect\(\)",
    ),
    (
        lambda: evaluate_run(QRELS, pl.LazyFrame(SCORED)),
        TypeError,
        r"run must be .* got a LazyFrame of polars.*frame.collect",
    ),
    (lambda: evaluate_run(pl.LazyFrame(SCORED), RUN), TypeError, r"qrels must be .*LazyFrame of polars.*frame.collect"),
    (lambda: evaluate([1], columns={}), TypeError, "y_true must be a data frame with columns=; got list"),
    (lambda: evaluate([1]), TypeError, "y_score must be given"),
    (lambda: evaluate(FRAME, [1], columns={}), ValueError, "y_score must be left out with columns="),
    (lambda: evaluate(FRAME, group=[4], columns={}), ValueError, "group must be left out"),
    (lambda: evaluate(FRAME, columns={"qid": "user"}), ValueError, "must have columns user, label and score; got qid"),
    (lambda: evaluate(FRAME, columns={"doc": "x"}), ValueError, "keys than qid, .*; got 'doc'"),
    (lambda: evaluate(FRAME, columns={"label": "score"}), ValueError, "'score' for label and score"),
    (lambda: evaluate(FRAME, columns={"qid": "docno"}), ValueError, "'docno' for qid and docno"),
    (lambda: evaluate(FRAME, columns="qid"), TypeError, "columns must be a mapping.*got str"),
    (lambda: evaluate_run(QRELS, RUN, columns={}), ValueError, "columns must be None"),
    (
        lambda: evaluate_run(QRELS, frame(RUN, "score"), columns={"score": "s"}),
        ValueError,
        r"columns=\{'score': NAME\}",
    ),
    (lambda: evaluate_run(QRELS, TWICE), ValueError, "must have each column once; got 'score' more than once"),
]
FRAME = pd.DataFrame(SCORED)
TWICE = pd.DataFrame([["q1", "d1", 1, 2]], columns=["qid", "docno", "score", "score"])


@pytest.mark.parametrize(("call", "error", "words"), REFUSED)
def test_frames_and_columns_that_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_grades_and_scores_may_have_one_name_in_two_frames():
    columns = {"label": "value", "score": "value"}
    result = evaluate_run(frame(QRELS, "value"), frame(RUN, "value"), columns=columns)
    assert result.value == evaluate_run(QRELS, RUN).value


def test_columns_of_pandas_may_have_names_that_are_no_text():
    frame = pd.DataFrame([["q1", "d1", 1.0]])
    assert evaluate_run(QRELS, frame, columns={"qid": 0, "docno": 1, "score": 2}, queries="run", k=1).value == 1.0


def test_a_missing_boolean_of_pandas_is_an_unjudged_document():
    labels = pd.Series([True, None, False], dtype="boolean")
    expected = ndcg_score([1, np.nan, 0], [1, 3, 2], group=[3], flavor="ranx")
    assert ndcg_score(labels, [1, 3, 2], group=[3], flavor="ranx") == expected
    qrels = pd.DataFrame({"qid": "q", "docno": ["a", "b", "c"], "label": labels})
    with pytest.raises(ValueError, match="grades must be finite numbers; got nan in qrels"):
        evaluate_run(qrels, {"q": ["a"]})
