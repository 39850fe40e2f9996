"""Parquet files: read in batches, in any order of files, with ids of any type, by either library, and refused."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from core.test_partial import assert_joined, cut, same, stream

from ndcg_ml import Flavor, evaluate, evaluate_parquet, evaluate_run, ndcg_score, parts
from ndcg_ml._files import parquet
from ndcg_ml.readers import DataFileError, read_columns

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pl = pytest.importorskip("polars")
pytest.importorskip("tqdm")
pd = pytest.importorskip("pandas")

# -- evaluate_parquet -------------------------------------------------------------------------------------------------


def written(path: Path, rows: tuple[np.ndarray, ...], row_group: int = 64, **columns: Any) -> Path:
    table = {"grade": rows[0], "score": rows[1], "query": rows[2], "other": rows[0], **columns}
    pq.write_table(pa.table(table), path, row_group_size=row_group)
    return path


NAMES = {"label": "grade", "score": "score", "qid": "query"}


@pytest.mark.parametrize("batch_rows", [1, 7, 64, 1 << 18])
def test_a_file_is_read_in_batches(tmp_path: Path, batch_rows: int) -> None:
    rows = stream()
    path = written(tmp_path / "scores.parquet", rows)
    result = evaluate_parquet(path, **NAMES, flavor="sklearn", k=3, batch_rows=batch_rows)
    assert (result.n_queries, result.n_docs) == (40, rows[0].size)
    assert same(result.value, ndcg_score(*rows[:2], qid=rows[2], flavor="sklearn", k=3))
    assert same(evaluate_parquet(str(path), **NAMES, k=3).value, ndcg_score(*rows[:2], qid=rows[2], k=3))


def test_files_are_one_stream_in_their_order(tmp_path: Path) -> None:
    rows = stream()
    pieces = [written(tmp_path / f"{i}.parquet", piece) for i, piece in enumerate(cut(rows, [50, 100]))]
    result = evaluate_parquet(pieces, **NAMES)
    assert same(result.value, ndcg_score(*rows[:2], qid=rows[2]))
    assert result.n_docs == rows[0].size
    with pytest.raises(ValueError, match="in two of the parts"):
        sum(evaluate_parquet(piece, **NAMES) for piece in pieces)


@pytest.mark.parametrize("kind", ["string", "dictionary", "large_string", "uint32"])
def test_ids_of_a_file_may_be_of_any_type(tmp_path: Path, kind: str) -> None:
    y, s, qid = stream()
    column = pa.array(qid.astype(np.uint32)) if kind == "uint32" else pa.array([f"q{i}" for i in qid])
    if kind == "dictionary":
        column = column.dictionary_encode()
    elif kind == "large_string":
        column = column.cast(pa.large_string())
    path = written(tmp_path / "a.parquet", (y, s, qid), query=column)
    assert same(evaluate_parquet(path, **NAMES, batch_rows=10).value, ndcg_score(y, s, qid=qid))


@pytest.mark.parametrize("kind", [pa.binary(16), pa.binary(), pa.large_binary(), "dictionary", "uuid"], ids=str)
@pytest.mark.parametrize("batch_rows", [1, 2, 3, 7])
def test_binary_ids_may_end_in_zeros(tmp_path: Path, kind: Any, batch_rows: int) -> None:
    queries = np.repeat(np.arange(6), 3)
    ids = [bytes(15 - q) + bytes([q + 1]) + bytes(q) for q in queries.tolist()]  # all but the first end in zeros
    if kind == "uuid":
        column = pa.array(ids, pa.uuid())
    elif kind == "dictionary":
        column = pa.array(ids).dictionary_encode()
    else:
        column = pa.array(ids, kind)
    y, s, _ = stream()
    path = written(tmp_path / "a.parquet", (y[:18], s[:18], queries), query=column, row_group=4)
    result = evaluate_parquet(path, **NAMES, batch_rows=batch_rows)
    assert (result.n_queries, result.id_kind) == (6, "bytes")
    assert same(result.value, ndcg_score(y[:18], s[:18], qid=queries))


def test_ids_of_pandas_may_change_their_dtype_between_batches() -> None:
    numbers = [np.array([1, 2]), np.array([2, 2], dtype=object), pd.Series([2, 3], dtype="Int16")]
    texts = [pd.Series(["a", "b"], dtype="string"), pd.Series(["b", "bc"]), pd.Series(["bc"], dtype="category")]
    for pieces in (numbers, texts):
        assert_joined(pieces, "pandas")


def test_a_missing_label_is_an_unjudged_document(tmp_path: Path) -> None:
    y = pa.array([3, None, 0, 1])
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"grade": y, "score": [0.4, 0.3, 0.2, 0.1], "query": [1, 1, 1, 1]}), path)
    for unjudged in ("zero", "condense"):
        flavor = Flavor(unjudged=unjudged)
        expected = ndcg_score([3, math.nan, 0, 1], [4, 3, 2, 1], group=[4], flavor=flavor)
        assert evaluate_parquet(path, **NAMES, flavor=flavor).value == expected
    with pytest.raises(ValueError, match="y_true"):
        evaluate_parquet(path, **NAMES, flavor=Flavor(unjudged="raise"))
    with pytest.raises(ValueError, match="NaN"):
        evaluate_parquet(path, label="score", score="grade", qid="query")
    with pytest.raises(ValueError, match="missing"):
        evaluate_parquet(path, label="score", score="score", qid="grade")


def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", stream())
    with pytest.raises(ValueError, match=r"a\.parquet: must have the columns nope, .*; nope is missing, the file has"):
        evaluate_parquet(path, label="nope", score="score", qid="query")
    twice = tmp_path / "twice.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1])] * 4, ["grade", "score", "query", "score"]), twice)
    with pytest.raises(DataFileError, match=r"twice\.parquet: must have each column once; got 'score' 2 times"):
        evaluate_parquet(twice, **NAMES)
    with pytest.raises(TypeError, match="label must be the name of a column; got 3"):
        evaluate_parquet(path, label=3, score="score", qid="query")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="batch_rows must be an integer >= 1; got 0"):
        evaluate_parquet(path, **NAMES, batch_rows=0)
    with pytest.raises(TypeError, match=r"batch_rows must be an integer >= 1; got 2\.5"):
        evaluate_parquet(path, **NAMES, batch_rows=2.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least one file"):
        evaluate_parquet([], **NAMES)
    with pytest.raises(OSError, match="nowhere"):
        evaluate_parquet(tmp_path / "nowhere.parquet", **NAMES)
    damaged = path.read_bytes()
    (tmp_path / "damaged").write_bytes(damaged[:-30] + b"\x0c" * 22 + damaged[-8:])
    with pytest.raises(ValueError, match="cannot be read as Parquet"):
        evaluate_parquet(tmp_path / "damaged", **NAMES)
    (tmp_path / "text").write_text("not a table")
    with pytest.raises(ValueError, match="cannot be read as Parquet"):
        evaluate_parquet(tmp_path / "text", **NAMES)


def test_damage_that_is_met_on_the_way_is_reported_with_the_file(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", stream())
    content = path.read_bytes()
    page = content.index(b"\x15", pq.read_metadata(path).row_group(1).column(0).data_page_offset)
    path.write_bytes(content[:page] + b"\xff" * 20 + content[page + 20 :])
    with pytest.raises(DataFileError, match=r"a\.parquet: cannot be read as Parquet"):
        evaluate_parquet(path, **NAMES, batch_rows=32)


TWO = np.array([1, 0]), np.array([0.5, 1.5]), np.array([1, 1])


def test_files_are_read_quietly_and_a_quarter_of_a_million_rows_at_once(tmp_path: Path, monkeypatch: Any) -> None:
    path = written(tmp_path / "rows", TWO)
    asked: list[int] = []
    batches = parquet.ParquetStream.batches
    monkeypatch.setattr(parquet.ParquetStream, "batches", lambda self, rows: asked.append(rows) or batches(self, rows))
    monkeypatch.setattr(parts, "_bar", lambda n_rows: pytest.fail(f"a bar of {n_rows} rows"))
    assert evaluate_parquet(path, **NAMES).n_docs == 2
    assert asked == [262_144]


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("tqdm.auto", r"^progress=True needs tqdm\. Install it with: pip install 'ndcg_ml\[parquet\]'$"),
        ("pyarrow.parquet", r"^ndcg_ml\.evaluate_parquet needs pyarrow\. Install it with: pip install 'ndcg_ml\["),
    ],
)
def test_what_is_not_installed_is_named(tmp_path: Path, monkeypatch: Any, module: str, words: str) -> None:
    path = written(tmp_path / "rows", TWO)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=words):
        evaluate_parquet(path, **NAMES, progress=True)


def test_the_progress_bar_counts_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = stream()
    path = written(tmp_path / "a.parquet", rows)
    evaluate_parquet(path, **NAMES, progress=True, batch_rows=10)
    shown = capsys.readouterr().err
    assert "100%" in shown
    assert f"{rows[0].size}/{rows[0].size}" in shown


# -- read_columns -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pyarrow", "polars"])
@pytest.mark.parametrize("qid", [[7, 7, 8], ["07", "07", "8"]])
def test_parquet(tmp_path, monkeypatch, library, qid):
    path = tmp_path / "no suffix"
    columns = {"qid": qid, "label": [2, None, 0], "score": [0.5, 0.1, 1], "docno": ["a", "b", "a"], "x": [[1], [2], []]}
    pl.DataFrame(columns, strict=False).write_parquet(path)
    if library == "pyarrow":
        pytest.importorskip("pyarrow.parquet")
    else:
        hide(monkeypatch, "pyarrow.parquet")
    rows = read_columns(path)
    assert rows.qid.tolist() == qid
    np.testing.assert_array_equal(rows.y_true, [2.0, np.nan, 0.0])
    assert rows.y_score.tolist() == [0.5, 0.1, 1.0]
    assert rows.doc_id.tolist() == ["a", "b", "a"]
    result = evaluate(**rows.arguments(), flavor="trec_eval")
    assert result.per_query.qid.tolist() == [qid[0], qid[2]]


def hide(monkeypatch, *names):
    found = parquet.import_module

    def import_module(name):
        if name in names:
            raise ImportError(name)
        return found(name)

    monkeypatch.setattr(parquet, "import_module", import_module)


@pytest.mark.parametrize("library", ["pyarrow", "polars"])
def test_ids_in_parquet_may_end_in_nul(tmp_path, monkeypatch, library):
    path = tmp_path / "rows"
    names = ["a", "a\0", "a\0\0"]
    pl.DataFrame({"qid": names, "label": [1, 0, 1], "score": [1, 2, 3], "docno": names}).write_parquet(path)
    if library == "pyarrow":
        pytest.importorskip("pyarrow.parquet")
    else:
        hide(monkeypatch, "pyarrow.parquet")
    rows = read_columns(path)
    assert rows.qid.tolist() == rows.doc_id.tolist() == names
    assert evaluate(**rows.arguments(), flavor="trec_eval").n_queries == 3


def test_parquet_without_a_library_that_reads_it(tmp_path, monkeypatch):
    path = tmp_path / "rows.parquet"
    pl.DataFrame({"qid": [1], "label": [1], "score": [1.0]}).write_parquet(path)
    hide(monkeypatch, "pyarrow.parquet", "polars")
    with pytest.raises(
        ImportError, match=r"rows.parquet is a Parquet file.*needs pyarrow or polars.*pip install pyarrow"
    ):
        read_columns(path)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"qid": [1, None], "label": [1, 1], "score": [1.0, 1.0]}, "column qid must have an id in every row"),
        ({"qid": ["a", None], "label": [1, 1], "score": [1.0, 1.0]}, "column qid must have an id in every row"),
        ({"qid": [1], "label": ["1"], "score": [1.0]}, "column label must hold numbers"),
        ({"qid": [1], "label": [1], "score": [None]}, "score must be|column score must hold numbers"),
        ({"qid": [1], "score": [1.0]}, "label is missing"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("library", ["pyarrow", "polars"])
def test_parquet_that_is_refused(tmp_path, monkeypatch, columns, words, library):
    path = tmp_path / "rows"
    pl.DataFrame(columns).write_parquet(path)
    if library == "pyarrow":
        pytest.importorskip("pyarrow.parquet")
    else:
        hide(monkeypatch, "pyarrow.parquet")
    with pytest.raises(DataFileError, match=rf"rows.*{words}"):
        read_columns(path)


# -- qrels and runs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("integers", [False, True])
def test_qrels_and_runs(tmp_path, integers):
    qrels, run = {"1": {"7": 2, "8": 1}, "2": {"9": 1}}, {"1": {"8": 2.5, "7": 1.0}, "2": {"10": 2.0, "9": 1.0}}
    kind = int if integers else str
    for name, data, value in (("qrels", qrels, "label"), ("run", run, "score")):
        table = [{"qid": kind(q), "docno": kind(d), value: v} for q, listed in data.items() for d, v in listed.items()]
        pq.write_table(pa.Table.from_pylist(table), tmp_path / name)
    assert evaluate_run(tmp_path / "qrels", tmp_path / "run").value == evaluate_run(qrels, run).value
    assert evaluate_run(qrels, tmp_path / "run").value == evaluate_run(qrels, run).value
    for bad, words in (
        ([{"qid": "1", "docno": "a", "score": math.nan}], "run, row 1: score must be a number, and not NaN"),
        ([{"qid": 1.5, "docno": "a", "score": 1.0}], "run: the ids of topics must be text or integers; got 1.5"),
        ([{"qid": None, "docno": "a", "score": 1.0}], "run: column qid must have an id in every row"),
        ([{"qid": "1", "docno": "a", "label": 1.0}], "must have the columns qid, docno, score; score is missing"),
        (
            [{"qid": "1", "docno": "a", "score": 1.0}, {"qid": "1", "docno": "a", "score": 2.0}],
            "'a' does in .*run, row 1 and .*run, row 2",
        ),
    ):
        pq.write_table(pa.Table.from_pylist(bad), tmp_path / "run")
        with pytest.raises(ValueError, match=words):
            evaluate_run(qrels, tmp_path / "run")
