"""``ndcg-ml explain``, ``identify`` and ``flavors``: as in the library, as tables and as JSON."""

from __future__ import annotations

import json
import re

import pytest
from command_line import LETOR, TREC, document, invoke, text

from ndcg_ml import PRESETS, Flavor, identify
from ndcg_ml.explain import explain_difference
from ndcg_ml.presets import MIRRORS
from ndcg_ml.readers import read_letor
from ndcg_ml.runs import align

# -- explain ----------------------------------------------------------------------------------------------------------


def test_explain_is_that_of_the_library():
    a, b = "trec_eval@3", "trec_eval[gain=exponential,score_dtype=float64]"
    result = document(f"explain --a {a} --b {b} -k 2 {TREC}")
    expected = explain_difference(a, b, **align("qrels", "run").arguments(), k=2)
    assert result == expected.to_dict()
    assert {part["switches"][0] for part in result["parts"]} == {"gain", "score_dtype"}
    assert text(f"explain --a {a} --b {b} -k 2 {TREC}") == f"{expected}\n"
    assert "k" in [part["switches"][0] for part in document(f"explain --a {a} --b {b} {TREC}")["parts"]]
    both = document(f"explain --a {a} --b {b} --queries both {TREC}")
    assert both["n_queries"] == 2


def test_explain_of_labels_and_tables():
    by_letor = document(f"explain --a sklearn --b lightgbm {LETOR}")
    assert by_letor == document("explain --a sklearn --b lightgbm --table table.csv")
    assert {part["switches"][0] for part in by_letor["parts"]} == {"gain", "ties", "empty"}
    [empty] = [each for each in by_letor["queries"] if each["empty_a"]]
    assert (empty["qid"], empty["contribution"]) == ("8", pytest.approx(1 / 3))
    skipped = document(f"explain --a sklearn --b sklearn[empty=skip] {LETOR}")
    assert None in [each["value_b"] for each in skipped["queries"]]
    assert document(f"explain --a sklearn --b sklearn {LETOR}")["parts"] == []


# -- identify ---------------------------------------------------------------------------------------------------------


def test_identify_names_the_flavor():
    value = document(f"eval {LETOR} --flavor catboost -k 3")["values"][0]["ndcg"]
    result = document(f"identify {value:.4f} -k 3 {LETOR}")
    expected = identify(float(f"{value:.4f}"), **read_letor("labels", "scores").arguments(), k=(3,))
    assert result == expected.to_dict()
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
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.startswith("0.12345: no match; the nearest are\n")
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


# -- flavors ----------------------------------------------------------------------------------------------------------


def test_flavors_has_one_line_a_preset_in_a_pipe():
    heading, *lines = text("flavors").splitlines()
    assert heading.split() == ["flavor", "library", "unusual"]
    assert [line.split()[0] for line in lines] == list(PRESETS)
    for line, mirror in zip(lines, MIRRORS.values(), strict=True):
        assert len(line) <= 100
        _, library, unusual = re.split(r"  +", line)
        assert mirror.library.startswith(library)
        assert mirror.unusual.startswith(unusual.removesuffix(" ..."))


def test_flavors_as_json_are_the_presets():
    listed = document("flavors")["flavors"]
    assert {each["name"]: Flavor.parse(each["text"]) for each in listed} == dict(PRESETS)
    for each in listed:
        gain = each["switches"].pop("gain")
        assert Flavor(gain=tuple(gain) if isinstance(gain, list) else gain, **each["switches"]) == PRESETS[each["name"]]
        for key in ("library", "verified", "unusual"):
            assert each[key] == getattr(MIRRORS[each["name"]], key)


@pytest.mark.parametrize(
    ("name", "mirror", "same"),
    [
        ("ir_measures@10", "ir_measures", {"trec_eval", "pytrec_eval"}),  # not the first of the presets that are equal
        ("lightgbm@10[gain=linear]", "lightgbm_linear", set()),
        ("lightgbm@10[ties=average,empty=nan]", None, set()),
    ],
)
def test_one_flavor(name, mirror, same):
    result = document("flavors", name)
    assert result["name"] == mirror
    assert result["library"] == (mirror and MIRRORS[mirror].library)
    assert set(result["same_as"]) >= same
    assert mirror not in result["same_as"]
    assert Flavor.parse(result["text"]) == Flavor.parse(name)
    shown = text("flavors", name)
    assert shown.endswith(f"{Flavor.parse(name).describe()}\n")
    assert mirror is None or MIRRORS[mirror].library in shown


def test_an_alias_says_whose_it_is():
    assert document("flavors", "mteb")["alias_of"] == "pytrec_eval"
    assert document("flavors", "pytrec_eval")["alias_of"] is None
