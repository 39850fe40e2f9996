"""``ndcg-ml identify``: the flavors that give a number, as tables and JSON."""

from __future__ import annotations

import pytest

pytest.importorskip("click")

import json

from command_line import LETOR, TREC, document, invoke, text

from ndcg_ml import identify
from ndcg_ml.readers import read_letor

pytestmark = pytest.mark.usefixtures("files")


def test_identify_names_the_flavor():
    value = document(f"eval {LETOR} --flavor catboost -k 3")["values"][0]["ndcg"]
    result = document(f"identify {value:.4f} -k 3 {LETOR}")
    expected = identify(float(f"{value:.4f}"), **read_letor("labels", "scores").arguments(), k=(3,))
    assert result == expected.to_dict()
    assert result["matches"][0]["value"] == pytest.approx(value, abs=1e-12)
    assert "catboost@3" in result["matches"][0]["presets"]
    assert text(f"identify {value:.4f} -k 3 {LETOR}") == f"{expected}\n"


def test_decimals_are_those_that_value_is_written_with():
    value = document(f"eval {LETOR} --flavor lightgbm")["values"][0]["ndcg"]
    for written, decimals in ((f"{value:.2f}", 2), (f"{value:.6f}", 6), (repr(value), None)):
        result = document(f"identify {written} {LETOR}")
        assert result["decimals"] == decimals
        assert "lightgbm" in [name for match in result["matches"] for name in match["presets"]]
    assert document(f"identify {value:.6f} --decimals 3 {LETOR}")["decimals"] == 3


def test_identify_without_a_match_exits_with_1():
    result = invoke(f"identify 0.12345 -k 3 {TREC}")
    assert result.exit_code == 1
    assert result.stdout.startswith("0.12345: no match; the nearest are\n")
    assert result.stderr == ""
    as_json = invoke(f"identify 0.12345 -k 3 {TREC} --json")
    assert as_json.exit_code == 1
    assert json.loads(as_json.stdout)["matches"] == []
    assert json.loads(as_json.stdout)["nearest"]


def test_identify_a_published_value(data_dir):
    folder = data_dir / "trec_dl19"
    data = ("--qrels", folder / "qrels.dl19-passage.txt", "--run", folder / "run.BM25.txt")
    for command in ("identify .5058 -k 10", "identify .5058"):
        match = document(command, *data)["matches"][0]
        assert match["name"] == "trec_eval@10"
        assert {"ir_measures@10", "recommenders_raw@10"} <= set(match["presets"])
