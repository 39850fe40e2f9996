"""Parquet files: ids of any type, numbers of any type, and what is refused."""

import math
import sys
import tracemalloc
from decimal import Decimal

import numpy as np
import pytest

from ndcg_ml import evaluate, evaluate_run
from ndcg_ml.readers import DataFileError, read_columns

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def written(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("qid", [[7, 7, 8], ["07", "07", "8"], ["a", "a\0", "a\0\0"]])
def test_parquet(tmp_path, qid):
    columns = {"x": [[1], [2], []], "qid": qid, "label": [2, None, 0], "score": [0.5, 0.1, 1], "docno": ["a", "b", "a"]}
    path = written(tmp_path / "no suffix", **columns)
    path.write_bytes(b"PAR1" + b"\xff" * 8 + path.read_bytes()[12:])  # in the column x, which is not read
    rows = read_columns(path)
    qid = list(map(str, qid))
    assert rows.qid.tolist() == qid
    np.testing.assert_array_equal(rows.y_true, [2.0, np.nan, 0.0])
    assert rows.y_score.tolist() == [0.5, 0.1, 1.0]
    assert rows.doc_id.tolist() == ["a", "b", "a"]
    result = evaluate(**rows.arguments(), flavor="trec_eval")
    assert result.per_query.qid.tolist() == list(dict.fromkeys(qid))


TEXT = ["b", "a", "b\0"]
KINDS = {
    "string": pa.array(TEXT),
    "large string": pa.array(TEXT, pa.large_string()),
    "dictionary": pa.array(TEXT).dictionary_encode(),
    "binary": pa.array([b"b", b"a", b"b\0"]),
    "fixed binary": pa.array([b"b\0", b"a\0", b"bb"], pa.binary(2)),
    "uint64": pa.array([2**64 - 1, 0, 7], pa.uint64()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_ids_may_be_of_any_type(tmp_path, kind):
    rows = read_columns(written(tmp_path / "rows", qid=KINDS[kind], label=[1, 0, 1], score=[0.1, 0.2, 0.3]))
    ids = KINDS[kind].to_pylist()
    assert rows.qid.tolist() == [value.decode() if isinstance(value, bytes) else str(value) for value in ids]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([Decimal("1.25"), Decimal("0.10"), Decimal("-3.00")], pa.decimal128(10, 2)),
        pa.array([3, 0, 2], pa.uint8()),
        pa.array([2**53, 0, -(2**53)]),
        pa.array([True, False, True]),
        pa.array([1.5, 0.1, -1.0], pa.float32()),
    ],
    ids=["decimal", "uint8", "int64", "bool", "float32"],
)
def test_numbers_may_be_of_any_type(tmp_path, values):
    path = written(tmp_path / "rows", qid=["q"] * 3, docno=["a", "b", "c"], label=values, score=values)
    numbers = list(map(float, values.to_pylist()))
    rows = read_columns(path)
    assert rows.y_true.tolist() == rows.y_score.tolist() == numbers
    by_id = {"q": dict(zip("abc", numbers, strict=True))}
    expected = evaluate_run(by_id, by_id, flavor="trec_eval[negative=allow]").value
    assert evaluate_run(path, path, flavor="trec_eval[negative=allow]").value == expected


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    path = written(tmp_path / "rows.parquet", qid=[1], label=[1], score=[1.0])
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r"rows.parquet is a Parquet file.*needs pyarrow.*pip install pyarrow"):
        read_columns(path)


def test_an_error_of_the_system_is_not_one_of_the_file(tmp_path, monkeypatch):
    def fail(_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(pq, "read_metadata", fail)
    with pytest.raises(OSError, match="Input/output error"):
        read_columns(written(tmp_path / "rows", **rows()))


def rows(**columns):
    return {"qid": [1, 1], "label": [1, 2], "score": [1.0, 2.0], **columns}


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (rows(qid=[1, None]), "row 2: qid must be an id: .*; got null"),
        (rows(qid=["a", None]), "row 2: qid must be an id: .*; got null"),
        (rows(qid=["a", "a\nb"]), "row 2: qid must be an id: .* without a line end"),
        (rows(qid=[1.0, 2.0]), "row 1: qid must be an id: a string or an integer, .*; got 1.0"),
        (rows(label=["1", "2"]), "row 1: label must be a number; got '1'"),
        (rows(label=[b"1", b"2"]), "row 1: label must be a number; got b'1'"),
        (rows(label=[None, Decimal(2**53 + 1)]), r"row 2: label: an integer must be at most 2\^53"),
        (rows(label=["Bad", "Good"]), "row 1: label must be a number; got 'Bad'. Map words to numbers"),
        (rows(label=pa.array([1, 2], "date32")), r"column label must hold numbers, .*; got date32\[day\]: Unsupported"),
        (rows(score=pa.nulls(2)), "row 1: score must be a number, and not NaN"),
        (rows(score=[1, 2**53 + 1]), r"column score must hold numbers, integers up to 2\^53; got int64: "),
        (rows(label=[None, 2**53 + 1]), r"column label must .* up to 2\^53; got int64: .*9007199254740993"),
        (rows(qid=["a", ""]), "row 2: qid must be an id: .*; got ''"),
        (rows(qid=[b"a", b""]), "row 2: qid must be an id: .*; got ''"),
        ({"qid": [1], "score": [1.0]}, "must name its grades"),
        ({name: pa.array([], "int8") for name in rows()}, "has no rows"),
    ],
)
@pytest.mark.parametrize("batch", [1, 1 << 14])
def test_tables_that_are_refused(tmp_path, monkeypatch, columns, words, batch):
    monkeypatch.setattr("ndcg_ml._files.tables._BATCH", batch)
    with pytest.raises(DataFileError, match=rf"rows.*{words}"):
        read_columns(written(tmp_path / "rows", **columns))


def run(**columns):
    return {"qid": ["1"], "docno": ["a"], "score": [1.0], **columns}


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (run(score=[math.nan]), "run, row 1: score must be a number, and not NaN"),
        (run(qid=[1.5]), "run, row 1: qid must be an id: .* got 1.5"),
        (run(qid=[None]), "run, row 1: qid must be an id: .*; got null"),
        ({"qid": ["1"], "docno": ["a"], "label": [1.0]}, "must name its scores"),
        ({name: 2 * column for name, column in run().items()}, "'a' does in .*run, row 1 and .*run, row 2"),
    ],
)
@pytest.mark.parametrize("batch", [1, 1 << 14])
def test_runs_that_are_refused(tmp_path, monkeypatch, columns, words, batch):
    monkeypatch.setattr("ndcg_ml._files.tables._BATCH", batch)
    with pytest.raises(ValueError, match=words):
        evaluate_run({"1": {"a": 1}}, written(tmp_path / "run", **columns))


TENSOR = pa.fixed_shape_tensor(pa.int8(), [1])
NESTED = {
    "list": [["a"], ["b"]],
    "struct": [{"x": 1}, {"x": 2}],
    "extension": pa.ExtensionArray.from_storage(TENSOR, pa.array([[1], [2]], TENSOR.storage_type)),
}


@pytest.mark.parametrize("nested", NESTED.values(), ids=NESTED)
@pytest.mark.parametrize("name", ["qid", "score"])
def test_nested_columns_are_refused_before_their_pages_are_unpacked(tmp_path, nested, name):
    columns = {"qid": ["q", "q"], "docno": ["a", "b"], "label": [1, 0], "score": [[1.0], [2.0]], name: nested}
    path = written(tmp_path / "rows", **columns)
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    path.write_bytes(b"PAR1" + b"\xff" * (footer - 4) + content[footer:])
    words = f"rows: column {name} must hold one value per row; got (list<\\w+: string|struct<|extension<)"
    for read in (read_columns, lambda run: evaluate_run({"q": {"a": 1}}, run)):
        with pytest.raises(DataFileError, match=words):
            read(path)


def test_a_large_group_of_equal_ids_takes_memory_for_its_rows_alone(tmp_path, monkeypatch):
    n, path, run = 200_000, tmp_path / "rows", tmp_path / "run"
    ids = pa.DictionaryArray.from_arrays(np.zeros(n, "i4"), ["x" * 10_000])
    for name, columns in ((path, {"label": np.zeros(n, "i1")}), (run, {"docno": ids})):
        table = pa.table({"qid": ids, "score": np.zeros(n, "f4"), **columns})
        pq.write_table(table, name, store_schema=False)  # otherwise they are read as dictionaries in any case
    tracemalloc.start()
    try:
        assert read_columns(path).qid.size == n
        assert tracemalloc.get_traced_memory()[1] < 100 * n
    finally:
        tracemalloc.stop()
    monkeypatch.setenv("NDCG_ML_MAX_BYTES", "20000000")
    with pytest.raises(DataFileError, match="run: must have at most 20000000 bytes when unpacked"):
        evaluate_run({"q1": {"d1": 1}}, run)
    monkeypatch.setenv("NDCG_ML_MAX_BYTES", "10000000")
    with pytest.raises(DataFileError, match="rows: must have at most 10000000 bytes when unpacked; got more"):
        read_columns(path)


def test_the_pages_of_a_file_count_before_compression(tmp_path, monkeypatch):
    table = pa.table({"qid": [f"{i}{'x' * 1000}" for i in range(1000)], "label": [1] * 1000, "score": [1.0] * 1000})
    pq.write_table(table, tmp_path / "rows", compression="zstd", use_dictionary=False)
    assert (tmp_path / "rows").stat().st_size < 100_000
    group = pq.read_metadata(tmp_path / "rows").row_group(0)
    size = sum(group.column(at).total_uncompressed_size for at in range(3))
    # Repeated ids are counted where they become text.
    run = written(tmp_path / "run", qid=["x" * 1000] * 9, docno=list("abcdefghi"), score=np.zeros(9))
    reads = (read_columns, lambda run: evaluate_run({"x" * 1000: {"a": 1}}, run))
    for path, most, read in zip((tmp_path / "rows", run), (size, 9009), reads, strict=True):
        monkeypatch.setenv("NDCG_ML_MAX_BYTES", str(most))
        read(path)
        monkeypatch.setenv("NDCG_ML_MAX_BYTES", str(most - 1))
        with pytest.raises(DataFileError, match=f"{path.name}: must have at most {most - 1} bytes when unpacked"):
            read(path)


@pytest.mark.parametrize("integers", [False, True])
def test_qrels_and_runs(tmp_path, integers):
    qrels, run = {"1": {"7": 2, "8": 1}, "2": {"9": 1}}, {"1": {"8": 2.5, "7": 1.0}, "2": {"10": 2.0, "9": 1.0}}
    kind = int if integers else str
    for name, data, value in (("qrels", qrels, "label"), ("run", run, "score")):
        table = [{"qid": kind(q), "docno": kind(d), value: v} for q, listed in data.items() for d, v in listed.items()]
        pq.write_table(pa.Table.from_pylist(table), tmp_path / name)
    assert evaluate_run(tmp_path / "qrels", tmp_path / "run").value == evaluate_run(qrels, run).value
    assert evaluate_run(qrels, tmp_path / "run").value == evaluate_run(qrels, run).value
