"""Hundreds of hostile inputs of each kind, the same in every run; and what longer runs found."""

import signal
import traceback
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from lanes import quick

from ndcg_ml import Flavor, evaluate_ranked, evaluate_run, ndcg_score, readers

fuzz = pytest.importorskip("reliability.fuzz", reason="the runs are not part of the installed package")
pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer to interrupt what hangs")

INPUTS = {
    "parse": 1200,
    "letor": 400,
    "trec": 400,
    "tables": 400,
    "json": 400,
    "columns": 400,
    "arrays": 800,
    "runs": 500,
}


@pytest.mark.parametrize("share", quick([0.1], [0.1, 1.0]))
@pytest.mark.parametrize("target", INPUTS)
def test_hostile_inputs_are_answered_or_refused(target, share):
    number = round(share * INPUTS[target])
    tally = fuzz.run(target, number, seed=0)
    assert tally.total() == number
    assert share < 1 or min(tally["answered"], tally["refused"]) > number // 20  # neither too tame nor too wild


# -- what the long runs found -----------------------------------------------------------------------------------------

ONE = {"q": {"d": 1}}
FOUND = {
    "a number beyond float64": (lambda: Flavor(max_grade=10**400), ValueError, r"max_grade must be a finite number"),
    "a fraction beyond it": (lambda: Flavor(gain=(Fraction(10**400, 3),)), ValueError, "gain must be a finite number"),
    "empty beyond it": (lambda: Flavor(empty=10**400), ValueError, r"Flavor\.empty must be 0, 1, nan"),
    "what is imaginary": (lambda: Flavor(max_grade=np.complex64(1)), TypeError, r"Flavor\.max_grade must be a finite"),
    "text in an array": (lambda: Flavor(empty=np.array("a")), TypeError, r"Flavor\.empty must be 0, 1, nan"),
    "a masked element": (lambda: Flavor(gain=np.ma.array([1, 2], mask=[0, 1])), TypeError, "gain must be a finite"),
    "bytes as a gain table": (lambda: Flavor(gain=b"\x00\x01\x03"), TypeError, r"Flavor\.gain must be one of"),
    "a set as a gain table": (lambda: Flavor(gain={0, 3, 1}), TypeError, r"Flavor\.gain must be one of"),
    "bytes as cut-offs": (lambda: ndcg_score([[1]], [[1]], k=b"\x01\x02"), TypeError, "k must be an integer >= 1"),
    "a matrix as a cut-off": (lambda: Flavor(k=np.array([[1, 2]])), TypeError, r"Flavor\.k must be an integer >= 1"),
    "a cut-off beyond 64 bits": (lambda: Flavor(k=2**63), ValueError, "k must be at most 2.63 - 1.*got 92233"),
    "one that cannot be printed": (lambda: Flavor(k=10**5000), ValueError, "k must be at most 2.63 - 1.*got <int>"),
    "half a surrogate pair": (lambda: evaluate_run({"q": {"\ud800": 1}}, {"q": {"\ud800": 1}}), ValueError,
        r"document ids of qrels\['q'\] must be strings that UTF-8 can encode; got '\\ud800'"),
    "an array of topics": (lambda: evaluate_run(ONE, ONE, queries=np.array([1, 2])), TypeError, "queries must be one"),
    "a number of lists": (lambda: evaluate_ranked(3), TypeError, "grades must be a list of grades for each query; got"),
    "an id that refuses to be compared": (
        lambda: ndcg_score([1, 0], [1, 0], qid=["a", Decimal("sNaN")]), TypeError, "qid must hold hashable ids"),
    "arrays as ids": (lambda: ndcg_score([1, 0], [1, 0], qid=np.array([np.array([1, 2]), "a"], dtype=object)),
        TypeError, "qid must hold hashable ids"),
}  # fmt: skip


@pytest.mark.parametrize("case", FOUND)
def test_what_was_found_stays_fixed(case):
    call, error, message = FOUND[case]
    with pytest.raises(error, match=f"(?s){message}") as caught:
        call()
    assert type(caught.value) is error
    *_, last = traceback.extract_tb(caught.value.__traceback__)
    assert "ndcg_ml" in Path(last.filename).parts
    assert last.line.startswith("raise ")


def test_topics_of_more_than_64_bits_stay_integers():
    qrels = {2**63: {1: 1}, -1: {1: 1}, 2**64: {1: 1}}
    result = evaluate_run(qrels, {-1: {1: 1}})
    assert [repr(each) for each in result.per_query.qid.tolist()] == [repr(each) for each in qrels]
    assert result.qrels_only.tolist() == [2**63, 2**64]


def test_a_damaged_parquet_file_is_named(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows"
    pq.write_table(pa.table({"qid": ["a"] * 50, "label": list(range(50)), "score": list(range(50))}), path)
    content = path.read_bytes()
    data, footer = content.index(b"\x15"), len(content) - 12
    for damaged in (content[:-9], b"PAR1", content[:data] + b"\xff" * 20 + content[data + 20 :], content[:footer] * 2):
        path.write_bytes(damaged)
        with pytest.raises(readers.DataFileError, match=f"^{path}: cannot be read as Parquet: "):
            readers.read_columns(path)


def test_grades_whose_bits_signal_are_unjudged():
    signalling = np.array([0x7D01, 0x3C00, 0], dtype="u2").view("f2")
    flavor = Flavor(unjudged="zero")
    quiet = evaluate_ranked([[float("nan"), 1, 0]], flavor=flavor).value
    assert evaluate_ranked([signalling], flavor=flavor).value == quiet
