"""The engines of docs/recipes.md: what they add up is the number of one machine, and the short cuts are refused."""

import pytest

pytest.importorskip("pyarrow")

import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from lanes import quick
from printed import blocks, run_script

import ndcg_ml
from ndcg_ml import ndcg_score

PAGE = Path(__file__).parents[2] / "docs" / "recipes.md"
DATA = "The data of the engines"
CUT = re.compile(r"every query must be entirely in one part; (\d+) of the quer")


def code_of(section: str) -> list[str]:
    found = blocks(PAGE, section)
    assert found
    return found


def run_here(code: list[str], scope: dict[str, Any]) -> dict[str, Any]:
    exec(compile("\n".join(code), PAGE.name, "exec"), scope)
    return scope


def run_as_script(folder: Path, *parts: str) -> str:
    """What this code prints as a script after the data."""
    return run_script(folder, *code_of(DATA), *parts, PYSPARK_PYTHON=sys.executable)


@pytest.fixture
def page(tmp_path, monkeypatch):
    """The names of the page's first section, in a folder with its files."""
    monkeypatch.chdir(tmp_path)
    return run_here(code_of(DATA), {})


def test_the_data_of_the_page_do_cut_queries_and_do_tie(page):
    ends = np.cumsum([pq.read_metadata(path).num_rows for path in sorted(Path("any_row").iterdir())])[:-1]
    assert (page["qid"][ends - 1] == page["qid"][ends]).any()
    assert page["expected"] != ndcg_score(page["grade"], page["score"], qid=page["qid"], flavor="lightgbm", k=10)


@pytest.mark.parametrize("library", ["", "polars", "duckdb"])
def test_files_larger_than_memory(page, library, capsys):
    first, *others = code_of("Files larger than memory")
    named = {re.search(r"^(?:import|from) (\w+)", block, flags=re.MULTILINE)[1]: block for block in others}
    assert set(named) == {"polars", "duckdb"}
    if not library:
        run_here([first], page)
        assert int(CUT.search(capsys.readouterr().out)[1]) == 2
        assert page["one"] == page["four"]
        return
    pl = pytest.importorskip(library)
    if library == "polars" and not hasattr(pl.LazyFrame, "collect_batches"):
        pytest.skip("this polars cannot stream a query")
    if library == "duckdb" and not hasattr(pl.DuckDBPyRelation, "to_arrow_reader"):
        pytest.skip("this DuckDB streams under another name")
    run_here([named[library]], page)
    by_library = page[f"by_{library}"]
    assert (by_library.n_queries, by_library.n_docs) == (400, len(page["qid"]))
    assert by_library.value == pytest.approx(page["expected"], abs=1e-12, rel=0)
    if library == "duckdb":
        assert "a query reappeared after other queries" in capsys.readouterr().out


def test_processes(tmp_path):
    pytest.importorskip("joblib")
    out = run_as_script(tmp_path, *code_of("Processes"), "print(by_shards.n_queries == 400)")
    assert int(CUT.search(out)[1]) >= 1
    assert out.endswith("True\n")


@pytest.fixture
def dd():
    pytest.importorskip("pandas")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("dask.dataframe")


@pytest.mark.long  # the next test computes the same in one process
def test_dask(tmp_path, dd):
    pytest.importorskip("distributed")
    code, close = code_of("Dask")[0].split("client.close()")
    check = "print(by_dask.n_queries, by_dask.n_docs == len(qid))"
    out = run_as_script(tmp_path, code, check, f"client.close(){close}")
    assert "flavor must not follow the order of rows" in out
    assert out.endswith("400 True\n")


@pytest.mark.parametrize(("flavor", "ids"), [("sklearn", int), ("lightgbm[ties=average]", str)])
def test_dask_gives_the_number_of_one_machine(page, dd, flavor, ids):
    import dask

    rng = np.random.default_rng(1)
    # Few queries for many partitions: some stay without rows, and rows of each query lie in several of them.
    some = rng.permutation(np.flatnonzero(page["qid"] < 7))
    columns = {name: page[name][some] for name in ("grade", "score", "qid")}
    columns["qid"] = columns["qid"].astype(ids)
    rows = dd.from_dict(columns, npartitions=9)
    named = {"label": "grade", "score": "score", "qid": "qid"}
    with dask.config.set(scheduler="synchronous"):
        part = ndcg_ml.dask.evaluate(rows, **named, flavor=flavor, k=[1, 10])
    expected = ndcg_score(page["grade"][some], page["score"][some], qid=page["qid"][some], flavor=flavor, k=[1, 10])
    assert part.value == pytest.approx(expected, abs=1e-12, rel=0)
    assert (part.n_queries, part.n_docs) == (7, len(some))


@pytest.mark.parametrize(
    ("change", "error", "words", "advised"),
    [
        ({"frame": "pandas"}, TypeError, "frame must be a dask.dataframe.DataFrame; got DataFrame", None),
        ({"label": "stars"}, ValueError, "the frame must name its grades, not 'stars'", {"label": "grade"}),
        ({"score": 1}, TypeError, "score must be the name of a column", None),
        ({"score": "grade"}, ValueError, "the frame must name its scores, not 'grade'", None),
        ({"flavor": "lightgbm"}, ValueError, "flavor must not follow the order of rows or document ids",
            {"flavor": "lightgbm[ties=average]"}),
        ({"flavor": "trec_eval"}, ValueError, "neither; got ties='docid", {"flavor": "trec_eval[ties=average]"}),
        ({"flavor": "sklearn[ideal=given]"}, ValueError, "neither; got ideal='given'",
            {"flavor": "sklearn[ideal=global]"}),
        ({"k": 0}, ValueError, "k must be", {"k": None}),
    ],
)  # fmt: skip
def test_what_dask_is_refused(dd, change, error, words, advised):
    import dask
    import pandas as pd

    frame = pd.DataFrame({"grade": [1, 0, 2], "score": [0.1, 0.1, 0.3], "qid": [1, 1, 2]})
    arguments = {"label": "grade", "score": "score", "qid": "qid", "frame": dd.from_pandas(frame, npartitions=2)}
    refused = {**arguments, **change, **({"frame": frame} if "frame" in change else {})}
    with dask.config.set(scheduler="synchronous"), pytest.raises(error, match=re.escape(words)):
        ndcg_ml.dask.evaluate(**refused)
    if advised is not None:
        with dask.config.set(scheduler="synchronous"):
            assert ndcg_ml.dask.evaluate(**{**arguments, **advised}).value is not None


@pytest.mark.parametrize(
    ("engine", "module", "method", "meant"),
    [("ray", "ray.data", "groupby", "ray.data.Dataset"), ("spark", "pyspark.", "mapInArrow", "pyspark.sql.DataFrame")],
)
def test_frames_of_other_libraries_are_refused(engine, module, method, meant):
    for other in ({"__module__": module}, {"__module__": "pandas", method: None}):
        with pytest.raises(TypeError, match=f"frame must be a {meant}; got X. For a frame in memory, use .*evaluate"):
            getattr(ndcg_ml, engine).evaluate(type("X", (), other)(), label="grade", score="score", qid="qid")


@pytest.mark.needs("ray")
def test_ray(tmp_path):
    checks = """
        shuffled = ray.data.from_arrow(table).repartition(7).random_shuffle(seed=1)
        few = shuffled.filter(lambda row: row["query"] < 3)
        named = {"label": "grade", "score": "score", "qid": "query"}
        some = qid < 3
        own = {"flavor": "lightgbm[ties=average]", "k": 10}
        total = ndcg_ml.ray.evaluate(few, **named, **own)
        assert abs(total.value - ndcg_score(grade[some], score[some], qid=qid[some], **own)) < 1e-12
        print(by_ray.n_queries, by_ray.n_docs == len(qid), total.n_queries)
        print(ndcg_ml.ray.evaluate(shuffled.filter(lambda row: row["query"] < 0), **named).n_queries)
        for change in ({"flavor": "lightgbm"}, {"label": "stars"}):
            try:
                ndcg_ml.ray.evaluate(shuffled, **{**named, **own, **change})
            except ValueError as error:
                print(error)
    """
    code, shutdown = code_of("Ray")[0].split("ray.shutdown()")
    out = run_as_script(tmp_path, code, checks, f"ray.shutdown(){shutdown}")
    assert "400 True 3\n0\n" in out
    assert "flavor must not follow the order of rows" in out
    assert "the frame must name its grades, not 'stars'" in out


@pytest.mark.needs("pyspark")
def test_spark(tmp_path):
    if not shutil.which("java"):
        pytest.skip("Spark needs Java, and there is none on the path")
    checks = """
        print(by_spark.n_queries == 400, by_spark.n_docs == len(qid))
        named = {"label": "grade", "score": "score", "qid": "query"}
        own = {"flavor": "lightgbm[ties=average]", "k": 10}
        few, some = rows.where("query < 3").repartition(5), qid < 3  # fewer queries than partitions
        total = ndcg_ml.spark.evaluate(few, **named, **own)
        assert abs(total.value - ndcg_score(grade[some], score[some], qid=qid[some], **own)) < 1e-12
        print(total.n_queries, ndcg_ml.spark.evaluate(rows.where("query < 0"), **named).n_queries)

        dotted = rows.withColumnRenamed("query", "query.id`s")
        again = ndcg_ml.spark.evaluate(dotted, **{**named, "qid": "query.id`s"}, **ndcg)
        print(again.value == by_spark.value)
        for change in ({"flavor": "lightgbm"}, {"label": "stars"}):
            try:
                ndcg_ml.spark.evaluate(rows, **{**named, **own, **change})
            except Exception as error:
                print(str(error)[-200:])
        spark.stop()
    """
    out = run_as_script(tmp_path, *code_of("Spark"), checks)
    assert out.startswith("True True\n3 0\nTrue\n")
    assert 'Choose ties="average"' in out
    assert "It has query, grade, score, row." in out


def test_folds(page, capsys):
    lgb = pytest.importorskip("lightgbm")
    (of_lightgbm,) = code_of("Folds")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lgb.basic.LGBMDeprecationWarning)
        run_here([of_lightgbm], page)
    grade, qid, features, folds, ndcg = (page[name] for name in ("grade", "qid", "features", "folds", "ndcg"))
    scores = np.empty(len(qid))
    for booster, (_, test) in zip(page["boosters"], folds, strict=True):
        scores[test] = booster.predict(features[test])
    total = page["out_of_fold"]
    assert total.value == pytest.approx(ndcg_score(grade, scores, qid=qid, **ndcg), abs=1e-12, rel=0)
    assert page["mean_of_folds"] == pytest.approx(np.mean([part.value for part in page["parts"]]), abs=1e-12, rel=0)
    assert abs(page["mean_of_folds"] - total.value) > 1e-3

    assert capsys.readouterr().out.count("all 400 queries") == 1


MEASURE = """
import sys
from pathlib import Path
import pyarrow.parquet as pq
from ndcg_ml import evaluate_batches

def resident(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))

def evaluate(path):
    names = ["grade", "score", "query"]
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
        batches = file.iter_batches(1 << 18, columns=names)
        return evaluate_batches(([batch[name].to_numpy() for name in names] for batch in batches), k=10)

evaluate(sys.argv[1])  # loads the code
before = resident("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
part = evaluate(sys.argv[2])
print(resident("VmHWM") - before, repr(part.value), part.n_docs)
"""


def write(path: Path, n_rows: int, row_group_size: int) -> float:
    """Write a file of about so many rows and return its NDCG."""
    rng = np.random.default_rng(n_rows)
    qid = np.repeat(np.arange(n_rows // 100), rng.integers(1, 200, n_rows // 100))
    grade, score = rng.integers(0, 5, len(qid), dtype=np.int8), rng.random(len(qid), dtype=np.float32)
    table = pa.table({"query": qid, "grade": grade, "score": score, "unread": rng.random(len(qid))})
    pq.write_table(table, path, row_group_size=row_group_size)
    return float(ndcg_score(grade, score, qid=qid, k=10))


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="measures memory as Linux counts it")
@pytest.mark.parametrize("row_group_size", quick([1 << 62], [1 << 62, 100_000]), ids=["one row group", "many"])
def test_memory_does_not_grow_with_the_file(tmp_path, row_group_size):
    write(tmp_path / "small.parquet", 10_000, row_group_size)
    peaks = []
    for n_rows in (1_000_000, 2_000_000):
        path = tmp_path / f"{n_rows}.parquet"
        expected = write(path, n_rows, row_group_size)
        command = [sys.executable, "-c", MEASURE, str(tmp_path / "small.parquet"), str(path)]
        out = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout.split()
        assert float(out[1]) == pytest.approx(expected, abs=1e-12, rel=0)
        assert int(out[2]) > 0.9 * n_rows
        peaks.append(int(out[0]))
    assert max(peaks) < 150e6, peaks
    assert peaks[1] - peaks[0] < 20e6, peaks
