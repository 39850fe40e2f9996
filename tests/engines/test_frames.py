"""Columns and frames of pandas, polars and pyarrow give the results of their arrays and dicts, or are refused.

Every function refuses frames that are not in memory, before it computes one of their columns.
"""

import math
import re

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("sklearn")

from sklearn.linear_model import Ridge

from ndcg_ml import (
    Flavor,
    align,
    compare,
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

QRELS = {"q1": {"d1": 2, "d2": 0, "d3": 1}, "q2": {"d4": 1}, "q3": {"d5": 3, "d1": 1}}
RUN = {"q3": {"d9": 7.0, "d5": 3.5}, "q1": {"d3": 0.5, "d1": 0.9, "d7": 0.5}, "q9": {"d1": 1.0}}
# Here topics are documents too.
OWN_QRELS = {"a": {"b": 2, "c": 1}, "b": {"a": 1}}
OWN_RUN = {"a": {"a": 3.0, "b": 2.0, "x": 1.0}, "b": {"b": 9.0, "c": 3.0, "a": 2.0}}
NAMES = {"qid": "user_id", "docno": "item_id", "label": "rating", "score": "prediction"}
LIBRARIES = ["pandas", "polars", "pyarrow"]


def library(name):
    module = pytest.importorskip(name)
    return module.table if name == "pyarrow" else module.DataFrame


def rows(data, value):
    each = [(topic, doc, number) for topic in data for doc, number in data[topic].items()]
    return dict(zip(("qid", "docno", value), map(list, zip(*each, strict=True)), strict=True))


def frame(data, value, name="pandas"):
    return library(name)(rows(data, value))


def named(columns, name):
    return library(name)({NAMES[each]: values for each, values in columns.items()} | {"other": columns["qid"]})


# -- columns ----------------------------------------------------------------------------------------------------------

COLUMNS = {
    "pandas": lambda values: pd.Series(values, index=np.arange(len(values))[::-1] * 10),
    "pandas extension": lambda values: pd.Series(values).convert_dtypes(),
    "categories": lambda values: pd.Series(pd.Categorical(values)),
    "polars": lambda values: pl.Series(values),
    "categories of polars": lambda values: pl.Series(values).cast(pl.Categorical),
    "categories of pyarrow, each twice": lambda values: categories_of_pyarrow(values, 2),
    "categories of pyarrow in chunks": lambda values: pa.chunked_array(
        [categories_of_pyarrow(values[:17], 1), categories_of_pyarrow(values[17:], 1)]
    ),
}


def categories_of_pyarrow(values, copies):
    names = [*dict.fromkeys(values)] * copies
    first = len(names) // copies * (np.arange(len(values)) % copies)
    return pa.DictionaryArray.from_arrays(first + [names.index(value) for value in values], names)


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("flavor", ["sklearn@3", "lightgbm@3", "catboost", "torchmetrics@5", "trec_eval@4"])
def test_a_column_gives_the_value_of_its_array(kind, flavor):
    rng, column = np.random.default_rng(0), COLUMNS[kind]
    y, s = rng.integers(0, 4, 60).astype(float), rng.integers(-6, 6, 60).astype(float)
    queries, documents = rng.integers(0, 4, 60), rng.permutation(60)
    ids = {"qid": [f"q{query}" for query in queries], "doc_id": [f"d{document:02d}" for document in documents]}
    expected = evaluate(y, s, flavor=flavor, **ids)
    found = evaluate(y, s, flavor=flavor, **{name: column(each) for name, each in ids.items()})
    assert found.per_query.qid.tolist() == expected.per_query.qid.tolist() == [*dict.fromkeys(ids["qid"])]
    assert found.per_query.ndcg.tolist() == expected.per_query.ndcg.tolist()
    if "categories" not in kind:
        numbered = {"qid": column(queries), "doc_id": column(documents)}
        value = ndcg_score(y, s, flavor=flavor, qid=queries, doc_id=documents)
        assert ndcg_score(column(y), column(s), flavor=flavor, **numbered) == value
    if kind == "polars":  # other indexes are refused with sizes
        sizes = {"doc_id": documents, "flavor": flavor}
        assert ndcg_score(y, s, group=column([20, 40]), **sizes) == ndcg_score(y, s, group=[20, 40], **sizes)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_a_frame_is_a_two_dimensional_array(library):
    rng = np.random.default_rng(1)
    y, s, mask = rng.integers(0, 4, (5, 8)), rng.integers(0, 4, (5, 8)), rng.random((5, 8)) < 0.7
    arguments = {"mask": mask, "flavor": "lightgbm", "k": 4}
    assert ndcg_score(library(y), library(s), **arguments) == ndcg_score(y, s, **arguments)


def test_a_missing_boolean_of_pandas_is_an_unjudged_document():
    labels = pd.Series([True, None, False], dtype="boolean")
    expected = ndcg_score([1, np.nan, 0], [1, 3, 2], group=[3], flavor="ranx")
    assert ndcg_score(labels, [1, 3, 2], group=[3], flavor="ranx") == expected


SCORED = {
    "qid": ["u1", "u1", "u2", "u1"],
    "docno": ["a", "b", "a", "c"],
    "label": [1, 0, 1, None],
    "score": [0.1, 0.5, 2, 0.5],
}


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("flavor", ["trec_eval", "sklearn[unjudged=zero]"])
def test_evaluate_takes_a_frame(name, flavor):
    arrays = [np.array(SCORED[each], dtype=float) for each in ("label", "score")]
    expected = evaluate(*arrays, qid=SCORED["qid"], doc_id=SCORED["docno"], flavor=flavor, k=2)
    result = evaluate(named(SCORED, name), flavor=flavor, k=2, columns=NAMES)
    assert result.value == expected.value
    assert result.per_query.qid.tolist() == ["u1", "u2"]
    assert type(result.to_frame()) is type(named(SCORED, name))
    plain = library(name)({each: values for each, values in SCORED.items() if each != "docno"})
    expected = evaluate(*arrays, qid=SCORED["qid"], flavor="sklearn[unjudged=zero]", k=2).value
    assert evaluate(plain, columns={}, flavor="sklearn[unjudged=zero]", k=2).value == pytest.approx(expected)


# -- runs and qrels ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LIBRARIES)
def test_runs_and_qrels_in_frames_give_the_result_of_dicts(name):
    usual, expected = (frame(QRELS, "label", name), frame(RUN, "score", name)), evaluate_run(QRELS, RUN, k=(1, 10))
    own = named(rows(QRELS, "label"), name), named(rows(RUN, "score"), name)
    for columns, qrels, run in ((None, *usual), (NAMES, *own), (NAMES, QRELS, own[1]), (NAMES, own[0], RUN)):
        result = evaluate_run(qrels, run, k=(1, 10), columns=columns)
        assert result.value == expected.value
        for column in expected.per_query:
            np.testing.assert_array_equal(result.per_query[column], expected.per_query[column])
        assert result.run_only.tolist() == ["q9"]
        made = result.to_frame()
        assert type(made) is type(usual[1])
        assert "judged@10" in (made.column_names if name == "pyarrow" else made.columns)
        ids = made["qid"]
        assert (ids.to_pylist() if name == "pyarrow" else [*ids]) == [*QRELS]
    data = align(*own, columns=NAMES)
    assert ndcg_score(**data.arguments(), flavor="trec_eval", k=10) == pytest.approx(expected.value[10], abs=1e-15)


USUAL = [
    ("query_id", "doc_id", "relevance", "score"),
    ("userId", "movieId", "rating", "prediction"),
    ("Query ID", "corpus-id", "rel_score", "similarity"),
]


@pytest.mark.parametrize("library_name", [*LIBRARIES, "parquet"])
@pytest.mark.parametrize("names", USUAL)
def test_columns_with_usual_names(tmp_path, library_name, names):
    usual = dict(zip(("qid", "docno", "label", "score"), names, strict=True))
    sides = {}
    for side, data, value in (("qrels", QRELS, "label"), ("run", RUN, "score")):
        columns = {usual[meaning]: each for meaning, each in rows(data, value).items()} | {"text": ["?"] * 6}
        sides[side] = columns if library_name == "parquet" else library(library_name)(columns)
        if library_name == "parquet":
            pd.DataFrame(columns).to_parquet(tmp_path / side)
            sides[side] = tmp_path / side
    result = evaluate_run(**sides, k=(1, 10))
    assert result.value == evaluate_run(QRELS, RUN, k=(1, 10)).value
    read = {"qrels": (*names[:3],), "run": (*names[:2], names[3])}
    assert {side: (*columns.values(),) for side, columns in result.columns_read.items()} == read


def test_pairs_ranks_and_missing_grades_of_frames():
    relevant = {"q": {"a": 1, "b": 1}}
    pairs = pd.DataFrame({"user": ["q", "q"], "item": ["a", "b"]})
    ranked = pd.DataFrame({"user": "q", "item": ["x", "a", "b"], "rank": [1, 3, 2]})
    with pytest.warns(UserWarning, match="qrels has no grades, so that each pair"):
        found = evaluate_run(pairs, ranked)
    assert found.value == evaluate_run(relevant, {"q": ["x", "b", "a"]}).value
    assert found.columns_read["run"] == {"qid": "user", "docno": "item", "score": "rank"}
    graded = ranked.assign(rating=[0, 1, 2])
    assert (
        evaluate(graded, columns={}).value
        == evaluate(graded.assign(rank=-graded["rank"]), columns={"score": "rank"}).value
    )
    missing = pd.DataFrame({"qid": "q", "docno": ["a", "b"], "label": pd.Series([True, None], dtype="boolean")})
    assert evaluate_run(missing, {"q": ["b", "a"]}).value == evaluate_run({"q": ["a"]}, {"q": ["b", "a"]}).value


def test_columns_of_any_type_and_name():
    typed = frame(RUN, "score").astype({"qid": "category", "docno": object, "score": "float32"})
    values = {"label": "value", "score": "value"}  # one name in two frames
    expected = evaluate_run(QRELS, RUN).value
    assert evaluate_run(QRELS, typed).value == expected
    assert evaluate_run(frame(QRELS, "value"), frame(RUN, "value"), columns=values).value == expected
    numbered = pd.DataFrame([["q1", "d1", 1.0]])
    assert evaluate_run(QRELS, numbered, columns={"qid": 0, "docno": 1, "score": 2}, queries="run", k=1).value == 1.0


@pytest.mark.parametrize("name", LIBRARIES)
def test_ids_of_frames_may_end_in_nul(name):
    qrels = {"q": {"d": 1, "d\0": 0}, "q\0": {"d": 0, "d\0": 2}}
    run = {"q": {"d": 1.0, "d\0": 2.0}, "q\0": {"d": 1.0, "d\0": 2.0}}
    result = evaluate_run(frame(qrels, "label", name), frame(run, "score", name))
    assert result.per_query.ndcg.tolist() == [1 / math.log2(3), 1.0]
    assert result.per_query.qid.tolist() == ["q", "q\0"]


def test_the_result_of_a_run_as_a_frame():
    table = evaluate_run(QRELS, RUN, k=(1, 10)).to_frame()
    assert type(table) is pd.DataFrame
    assert {"qid", "ndcg@1", "ndcg@10", "judged@1", "judged@10", "n_docs"} <= set(table.columns)
    assert table["qid"].tolist() == ["q1", "q2", "q3"]
    assert evaluate_run(QRELS, RUN, k=10).to_frame()["judged"].tolist()[::2] == [2 / 3, 0.5]
    with pytest.warns(UserWarning, match="answers 1 of 2 topics"):
        table = evaluate_run(OWN_QRELS, {"a": ["b"], "b": []}, k=(1, 10)).to_frame()
    assert table.n_retrieved.tolist() == [1, 0]


@pytest.mark.parametrize("exclude", ["identical", {"a": ["x"], "b": ["c"]}])
def test_documents_of_a_frame_are_excluded(exclude):
    expected = evaluate_run(OWN_QRELS, OWN_RUN, exclude=exclude).value
    assert evaluate_run(OWN_QRELS, OWN_RUN).value != expected
    for judged in (OWN_QRELS, frame(OWN_QRELS, "label")):
        assert evaluate_run(judged, frame(OWN_RUN, "score"), exclude=exclude).value == expected


def test_the_order_of_a_frame_of_judgements_is_that_of_the_given_ideal():
    for run in ({"t": {"a": 1.0, "b": 2.0}}, {"t": {"b": 2.0, "a": 1.0}}):
        for order in ({"t": {"a": 1, "b": 3}}, {"t": {"b": 3, "a": 1}}):
            expected = evaluate_run(order, run, flavor="spark_graded").per_query.idcg.tolist()
            found = evaluate_run(frame(order, "label"), frame(run, "score"), flavor="spark_graded")
            assert found.per_query.idcg.tolist() == expected
    assert expected == pytest.approx([7 + 1 / math.log2(3)])


WEIGHTS = pd.Series({"b": 3.0, "a": 1.0})
LANDS = pd.DataFrame({"land": ["x", "y"], "size": [1, 2]}, index=["b", "a"])


def test_slices_and_weights_of_topics_are_matched_by_their_index():
    slices = evaluate_run(OWN_QRELS, OWN_RUN, by=LANDS).slices
    assert slices["land", "x"].per_query.qid.tolist() == ["b"]
    assert slices["size", 2].per_query.qid.tolist() == ["a"]
    assert len(evaluate_run(OWN_QRELS, OWN_RUN, by=LANDS["land"]).slices) == 2
    # There are no rows that the slices could be of, so that integers in an index are ids.
    qrels, run = {3: {1: 1}, 1: {1: 1}, 2: {1: 0, 2: 1}}, {1: [1], 2: [1], 3: [2]}
    slices = evaluate_run(qrels, run, by=pd.Series(list("xxy"), index=[1, 2, 3], name="land")).slices
    assert slices["land", "x"].per_query.qid.tolist() == [1, 2]
    assert slices["land", "y"].per_query.qid.tolist() == [3]
    expected = evaluate_run(OWN_QRELS, OWN_RUN, query_weight=WEIGHTS.to_dict())
    found = evaluate_run(OWN_QRELS, OWN_RUN, query_weight=WEIGHTS, by=LANDS["land"])
    assert found.value == expected.value
    assert {"difference_low", "difference_high"} <= set(found.slices.to_frame().columns)


def test_the_documents_to_judge_next_are_a_frame_to_fill_in():
    qrels = {"q1": {"d1": 2, "d2": 0}, "q2": {"d5": 1}}
    runs = {"q1": ["d1", "d9"], "q2": ["d6", "d5"]}, {"q1": ["d3", "d1"], "q2": ["d5", "d7"]}
    tasks = compare(*(evaluate_run(qrels, run, k=2) for run in runs), unjudged="accept").judge_next(3)
    frame = tasks.to_frame()
    assert list(frame.columns) == ["qid", "docno", "label", "change"]
    assert frame["docno"].tolist() == [task.document for task in tasks]
    assert frame["label"].isna().all()
    assert str(tasks).count("\n") == 4


@pytest.mark.parametrize(("ids", "dtype"), [([1, "a"], "object"), ([1, 2], "int64")])
def test_ids_of_queries_keep_their_types(ids, dtype):
    y, flavor, qid = [math.nan, 1, 0] * 2, Flavor(unjudged="zero", k=1), np.repeat(np.array(ids, dtype=object), 3)
    first, second = (evaluate(y, s, qid=qid, flavor=flavor) for s in ([3, 2, 1, 1, 2, 3], [1, 2, 3, 3, 2, 1]))
    found = compare(first, second, unjudged="accept").judge_next(2).to_frame()["qid"]
    assert {*found} == {*ids}
    assert found.dtype == dtype


FORMS_OF_RUNS = {
    "dict": lambda scores: {"q": dict(zip("ab", scores, strict=True))},
    "dict of NumPy's": lambda scores: {"q": dict(zip("ab", np.array(scores), strict=True))},
    "pandas": lambda scores: pd.DataFrame({"qid": "q", "docno": ["a", "b"], "label": [1, 0], "score": scores}),
    "objects": lambda scores: FORMS_OF_RUNS["pandas"](np.array(scores, dtype=object)),
    "polars": lambda scores: pl.from_pandas(FORMS_OF_RUNS["pandas"](scores)),
    "pyarrow": lambda scores: pytest.importorskip("pyarrow").Table.from_pandas(FORMS_OF_RUNS["pandas"](scores)),
}


@pytest.mark.parametrize("form", FORMS_OF_RUNS)
@pytest.mark.parametrize("least", [1731000000000000001, 2**53, 2**63])  # the first are nanoseconds
def test_integers_that_float64_would_tie_are_refused(form, least):
    qrels, run = {"q": {"a": 1, "b": 0}}, FORMS_OF_RUNS[form]([least, least + 1])
    calls = [lambda: evaluate_run(qrels, run), *[lambda: evaluate(run, columns={})] * isinstance(run, pd.DataFrame)]
    for call in calls:
        with pytest.raises(ValueError, match="must hold scores that stay different in float64"):
            call()
    assert evaluate_run(qrels, FORMS_OF_RUNS[form]([0, 1])).value == evaluate_run(qrels, {"q": ["b", "a"]}).value
    exact = [2**53, 2**53 - 1]
    assert align(qrels, FORMS_OF_RUNS[form](exact)).y_score.tolist() == exact


FRAME, LAZY, SCORES = pd.DataFrame(SCORED), pl.LazyFrame(SCORED), frame(RUN, "score")
TWICE = pd.DataFrame([["q1", "d1", 1, 2]], columns=["qid", "docno", "score", "score"])


def changed(column, value):
    return SCORES.assign(**{column: [value, *SCORES[column][1:]]})


ZERO = "sklearn[unjudged=zero]"
REFUSED = [
    (lambda: evaluate(LAZY, columns={}), TypeError, r"y_true must be .*a LazyFrame of polars,.*frame.collect\(\)",
        lambda: evaluate(LAZY.collect(), columns={}, flavor=ZERO)),
    (lambda: evaluate_run(QRELS, LAZY), TypeError, r"run must be .* got a LazyFrame of polars.*frame.collect",
        lambda: evaluate_run({"u1": {"a": 1}}, LAZY.collect())),
    (lambda: evaluate_run(LAZY, RUN), TypeError, r"qrels must be .*LazyFrame of polars.*frame.collect",
        lambda: evaluate_run(LAZY.drop_nulls().collect(), {"u1": ["a"]})),
    (lambda: evaluate([1], columns={}), TypeError, "y_true must be a data frame with columns=; got list", None),
    (lambda: evaluate([1]), TypeError, "y_score must be given", None),
    (lambda: evaluate(FRAME, [1], columns={}), ValueError, "y_score must be left out with columns=",
        lambda: evaluate(FRAME, columns={}, flavor=ZERO)),
    (lambda: evaluate(FRAME, group=[4], columns={}), ValueError, "group must be left out",
        lambda: evaluate(FRAME, columns={}, flavor=ZERO)),
    (lambda: evaluate(FRAME, columns={"qid": "user"}), ValueError, "must name its topics, not 'user'; got 'qid'",
        lambda: evaluate(FRAME, columns={"qid": "qid"}, flavor=ZERO)),
    (lambda: evaluate(FRAME, columns={"doc": "x"}), ValueError, "keys than qid, .*; got 'doc'", None),
    (lambda: evaluate(FRAME, columns={"label": "score"}), ValueError,
        "must name its scores; got .* 'score' .grades.. Name yours: columns={'score': NAME}", None),
    (lambda: evaluate(FRAME, columns={"qid": "docno", "docno": "docno"}), ValueError,
        "must name its documents, not 'docno'", None),
    (lambda: evaluate(FRAME.assign(user=1, query=2).drop(columns="qid"), columns={}), ValueError,
        "its topics once; got 'user', 'query'. Name one: columns={'qid': 'user'}", None),
    (lambda: evaluate(FRAME, columns="qid"), TypeError, "columns must be a mapping.*got str",
        lambda: evaluate(FRAME.set_axis(["user_id", "item_id", *FRAME.columns[2:]], axis=1),
            columns={"qid": "user_id", "docno": "item_id"}, flavor=ZERO)),
    (lambda: evaluate_run(QRELS, RUN, columns={}), ValueError, r"columns=\{\} must be left out",
        lambda: evaluate_run(QRELS, RUN)),
    (lambda: evaluate_run(QRELS, SCORES, columns={"score": "s"}), ValueError, "must name its scores, not 's'",
        lambda: evaluate_run(QRELS, SCORES, columns={"score": "score"})),
    (lambda: evaluate_run(QRELS, TWICE), ValueError, "must name its scores once; got 'score', 'score'. Rename", None),
    (lambda: evaluate_run({1: {"d1": 1}}, SCORES), TypeError, "topic ids.*int in qrels and str in run, column qid",
        None),
    (lambda: evaluate_run(QRELS, frame(QRELS, "label")), ValueError,
        "must name its scores; got 'qid' .topics., 'docno' .documents., 'label'. Name yours: columns={'score': NAME}",
        lambda: evaluate_run(QRELS, frame(QRELS, "label"), columns={"score": "label"})),
    (lambda: evaluate_run(SCORES.rename(columns={"score": "stars"}), RUN), ValueError,
        ("must name its grades; .*columns={'label': NAME}. If each row has grade 1, name its documents: "
            "columns={'docno': 'docno'}"),
        lambda: evaluate_run(SCORES.rename(columns={"score": "stars"}), RUN, columns={"label": "stars"},
            flavor="ranx")),
    (lambda: evaluate_run(QRELS, pd.concat([SCORES] * 2)), ValueError, r"twice in a topic; 'd9' does in run\['q3'\]",
        lambda: [evaluate_run(QRELS, pd.concat([SCORES] * 2),
            flavor=f"trec_eval[duplicates={how}]") for how in ("first", "count")]),
    (lambda: evaluate_run(QRELS, changed("docno", None)), ValueError, "ids of run, column docno, must not be missing",
        None),
    (lambda: evaluate_run(QRELS, changed("docno", "")), ValueError, "ids of run, column docno, must not be empty",
        None),
    (lambda: evaluate_run(QRELS, changed("qid", "")), ValueError, "ids of run, column qid, must not be empty; got ''",
        None),
    (lambda: evaluate_run(QRELS, SCORES[:0]), ValueError, "run must hold at least one document; got none", None),
    (lambda: evaluate_run(OWN_QRELS, OWN_RUN, by=LANDS["land"].rename({"a": "c"})), ValueError, "'a'",
        lambda: [evaluate_run(OWN_QRELS, OWN_RUN, by={"land": land}) for land in (LANDS["land"],
            LANDS["land"].to_numpy())]),
    (lambda: evaluate_run(OWN_QRELS, OWN_RUN, query_weight=pd.concat([WEIGHTS, pd.Series({"B": 1.0})])), ValueError,
        r"must have entries for known queries only; got 'B' \(1 of 3 entries\)", None),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "words", "advised"), REFUSED)
def test_frames_and_columns_that_are_refused(call, error, words, advised):
    with pytest.raises(error, match=words):
        call()
    if advised is not None:
        advised()


@pytest.mark.parametrize("dtype", ["string", "object", "category", "Int64"])
@pytest.mark.parametrize("column", ["qid", "docno"])
def test_a_missing_id_of_a_frame_is_refused(column, dtype):
    ids = pd.Series([1, None] if dtype == "Int64" else ["q1", None], dtype=dtype)
    with pytest.raises(ValueError, match=rf"column {column}, must not be missing; got"):
        evaluate_run(frame(QRELS, "label").head(2).assign(**{column: ids}), RUN)


# -- frames that are not in memory ------------------------------------------------------------------------------------

HELD = pd.DataFrame({"qid": [0, 0, 1, 1], "docno": [1, 2, 3, 4], "label": [1, 0, 2, 1], "score": [0.4, 0.2, 0.1, 0.3]})
Y, S, Q = HELD.label.to_numpy(), HELD.score.to_numpy(), HELD.qid.to_numpy()
X = HELD[["score"]].to_numpy()


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


LAZY_COLUMNS = {
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
LAZY_FRAMES = {
    "evaluate": lambda f: evaluate(f, columns={}),
    "evaluate without columns": lambda f: evaluate(f),
    "qrels": lambda f: evaluate_run(f, HELD),
    "run": lambda f: evaluate_run(HELD, f),
    "align": lambda f: align(HELD, f),
    "by": lambda f: evaluate(Y, S, qid=Q, by=f),
    "evaluate_batches": lambda f: evaluate_batches(f),
    "X of QueryRanker": lambda f: QueryRanker(Ridge()).fit(f, Y, Q),
    "X of QueryRanker with a column": lambda f: QueryRanker(Ridge(), qid_column="qid").fit(f, Y),
    "X of a scorer": lambda f: ndcg_scorer("sklearn", qid_column="qid")(Ridge(), f, Y),
    "X of QueryKFold": lambda f: next(QueryKFold(2, qid=Q).split(f)),
}


@pytest.mark.parametrize(
    "route", [*LAZY_COLUMNS.values(), *LAZY_FRAMES.values()], ids=[*LAZY_COLUMNS, *(f"frame: {f}" for f in LAZY_FRAMES)]
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
        ("pyarrow", "RecordBatchReader", r"read_all\(\)", None),
    ],
)
def test_the_message_names_the_library_and_the_fix(library, kind, fix, sister):
    for route in (LAZY_COLUMNS["labels of ndcg_score"], LAZY_FRAMES["run"]):
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
    frame = dd.from_pandas(HELD, npartitions=2)
    for shuffled in (frame, frame.shuffle("qid")):
        for route in (
            lambda f: evaluate_run(f, f),
            lambda f: ndcg_score(f["label"], f["score"], qid=f["qid"]),
            lambda f: ndcg_score(f["label"].to_dask_array(), S, qid=Q),
        ):
            with pytest.raises(TypeError, match="of dask"):
                route(shuffled)
    assert evaluate(frame.compute(), columns={}).value == evaluate(HELD, columns={}).value


def test_pyarrow_itself():
    dataset = pytest.importorskip("pyarrow.dataset")
    rows = pytest.importorskip("pyarrow").Table.from_pandas(HELD)
    for lazy in (dataset.dataset(rows), rows.to_reader()):
        with pytest.raises(TypeError, match="rows = frame") as caught:
            evaluate(lazy, columns={})
        code = re.search(r"frame\.\w+\(\)", str(caught.value))[0]
        assert evaluate(eval(code, {"frame": lazy}), columns={}).value == evaluate(HELD, columns={}).value


def test_duckdb_itself():
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql("select 1 as qid, 2 as docno, 3 as label, 4 as score")
    for route in (LAZY_FRAMES["evaluate"], LAZY_FRAMES["run"], LAZY_COLUMNS["labels of ndcg_score"]):
        with pytest.raises(TypeError, match=r"a DuckDBPyRelation of duckdb.*frame\.df\(\)"):
            route(relation)
    assert evaluate(relation.df(), columns={}).value == 1


@pytest.mark.parametrize(
    ("batches", "got"), [(None, "NoneType"), (3, "int"), ("rows.csv", "str"), ({"a": 1}, "dict"), (HELD, "DataFrame")]
)
def test_an_argument_without_batches_is_refused(batches, got):
    with pytest.raises(TypeError, match=rf"batches must be an iterable of tuples \(y_true, y_score, qid\).*got {got}"):
        evaluate_batches(batches)
