"""``ndcg-ml flavors``, ``eval``, ``compare``, ``explain``, ``identify``: numbers, forms of input, refusals, pipes."""

from __future__ import annotations

import pytest

pytest.importorskip("click")
pytest.importorskip("pyarrow")

import dataclasses
import datetime
import gzip
import json
import math
import os
import re
import signal
import subprocess
import sys
from decimal import Decimal
from html import unescape
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner, Result

from ndcg_ml import PRESETS, Flavor, compare, evaluate, identify
from ndcg_ml.cli.commands import ndcg_ml
from ndcg_ml.explain import explain_difference
from ndcg_ml.presets import MIRRORS
from ndcg_ml.readers import read_columns, read_letor
from ndcg_ml.runs import align, evaluate_run

QRELS = "q1 0 d1 2\nq1 0 d2 0\nq1 0 d3 1\nq2 0 d4 1\nq3 0 d5 3\nq3 0 d1 1\n"
RUN = "q3 Q0 d9 1 7.0 t\nq3 Q0 d5 2 3.5 t\nq1 Q0 d1 1 .9 t\nq1 Q0 d3 3 .5 t\nq1 Q0 d7 2 .5 t\nq9 Q0 d1 1 1 t\n"
BETTER = "q1 Q0 d1 1 3 t\nq1 Q0 d3 2 2 t\nq2 Q0 d4 1 1 t\nq3 Q0 d9 1 7.0 t\nq3 Q0 d5 2 3.5 t\n"
# q1 ranks d1, then d7 before d3 (descending id); q3 ranks an unjudged document first; q2 is not in the run.
Q1 = (2 + 1 / math.log2(4)) / (2 + 1 / math.log2(3))
Q3 = (3 / math.log2(3)) / (3 + 1 / math.log2(3))

LABELS = "2 qid:7 1:0.5 # first\n0 qid:7 1:0.1\n1 qid:7\n0 qid:8 1:1\n0 qid:8 1:2\n3 qid:9\n1 qid:9\n"
SCORES = "0.3\n0.9\n0.3\n1\n2\n5\n6\n"
TABLE = "qid,label,score,docno\n7,2,0.3,a\n7,0,0.9,b\n7,1,0.3,c\n8,0,1,a\n8,0,2,b\n9,3,5,a\n9,1,6,b\n"
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """Small files in the working folder; nothing in the environment that changes how rich prints."""
    contents = {"qrels": QRELS, "run": RUN, "better": BETTER, "labels": LABELS, "scores": SCORES, "table.csv": TABLE}
    for name, content in contents.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def invoke(command: str, *more: object, **settings: object) -> Result:
    """The command line as it would be typed; further arguments may hold blanks."""
    return CliRunner().invoke(ndcg_ml, [*command.split(), *map(str, more)], **settings)


def text(command: str, *more: object, **settings: object) -> str:
    result = invoke(command, *more, **settings)
    assert result.exit_code == 0, result.output
    return result.stdout


def document(command: str, *more: object, ok: tuple[int, ...] = (0,), **settings: object) -> dict:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    result = invoke(command, "--json", *more, **settings)
    assert result.exit_code in ok, result.output
    return json.loads(result.stdout, parse_constant=refuse)


def program(arguments: list[object], **settings: object) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    run = "from ndcg_ml.cli import main; main()"
    return subprocess.run([sys.executable, "-c", run, *map(str, arguments)], capture_output=True, text=True, **settings)


TREC = "--qrels qrels --run run"
LETOR = "--labels labels --scores scores"


# -- flavors --------------------------------------------------------------------------------------------------------


def test_flavors_has_one_line_a_preset_in_a_pipe():
    heading, *lines = text("flavors").splitlines()
    assert heading.split() == ["flavor", "gain", "discount", "ideal", "ties", "empty", "k", "library", "unusual"]
    assert [line.split()[0] for line in lines] == list(PRESETS)
    for line, mirror in zip(lines, MIRRORS.values(), strict=True):
        assert mirror.library in line
        assert mirror.unusual in line
    [xgboost] = [line for line in lines if line.startswith("xgboost ")]
    assert xgboost.split()[1:7] == ["2^y-1", "log2(r+1)", "recall", "first", "1", "32"]


def test_flavors_as_json_are_the_presets():
    listed = document("flavors")["flavors"]
    assert {each["name"]: Flavor.parse(each["text"]) for each in listed} == dict(PRESETS)
    for each in listed:
        gain = each["switches"].pop("gain")
        assert Flavor(gain=tuple(gain) if isinstance(gain, list) else gain, **each["switches"]) == PRESETS[each["name"]]
        mirror = MIRRORS[each["name"]]
        assert [each[key] for key in ("library", "verified", "unusual")] == [
            mirror.library,
            mirror.verified,
            mirror.unusual,
        ]


@pytest.mark.parametrize(
    ("name", "mirror", "same"),
    [
        ("ir_measures", "ir_measures", {"trec_eval", "pytrec_eval"}),  # not the first of the presets that are equal
        ("ir_measures@10", "ir_measures", {"trec_eval", "pytrec_eval"}),
        ("lightgbm", "lightgbm", set()),
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
    assert result["words"] == Flavor.parse(name).describe()
    shown = text("flavors", name)
    assert str(Flavor.parse(name)) in shown
    if mirror is None:
        assert "no library or paper" in shown
        assert result["switches"]["empty"] == "nan"
    else:
        for words in (MIRRORS[mirror].library, MIRRORS[mirror].verified, MIRRORS[mirror].unusual):
            assert words in shown
    for other in same:
        assert other in shown
        assert MIRRORS[other].library not in shown


def test_an_alias_says_whose_it_is():
    assert document("flavors", "mteb")["alias_of"] == "pytrec_eval"
    assert document("flavors", "pytrec_eval")["alias_of"] is None
    assert "mteb, an alias of pytrec_eval" in text("flavors", "mteb")
    assert "alias" not in text("flavors", "pytrec_eval")


# -- eval -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run", "published"), [("BM25", "0.5058"), ("BM25_RM3", "0.5216"), ("SPLADE_P_P_ENSEMBLE_DISTIL", "0.7308")]
)
def test_published_values_of_the_deep_learning_track(data_dir, run, published):
    folder = data_dir / "trec_dl19"
    shown = text("eval -k 10", "--qrels", folder / "qrels.dl19-passage.txt", "--run", folder / f"run.{run}.txt")
    [line] = [line.split() for line in shown.splitlines() if line.startswith("ndcg@10 ")]
    assert line[:2] == ["ndcg@10", published]
    assert re.search(r"^queries +43;", shown, re.MULTILINE)


@pytest.mark.parametrize(
    ("queries", "value"), [("qrels", (Q1 + Q3) / 3), ("both", (Q1 + Q3) / 2), ("run", (Q1 + Q3) / 3)]
)
def test_eval_of_a_run(queries, value):
    result = document(f"eval {TREC} --queries {queries}")
    assert result["values"][0]["ndcg"] == pytest.approx(value, abs=1e-12)
    assert result["queries"] == queries
    assert result["n_queries"] == {"qrels": 3, "both": 2, "run": 3}[queries]
    assert (result["qrels_only"], result["run_only"]) == (["q2"], ["q9"])
    assert result["values"][0]["judged"] == evaluate_run("qrels", "run", queries=queries).judged
    shown = text(f"eval {TREC} --queries {queries} --digits 7")
    assert f"{value:.7f}" in shown
    lacks = "counted as retrieving nothing" if queries == "qrels" else "left out"
    assert re.search(rf"^not in run +1 topic \(q2\), {lacks}$", shown, re.MULTILINE)
    assert re.search(
        rf"^not in qrels +1 topic \(q9\), {'counted' if queries == 'run' else 'left out'}", shown, re.MULTILINE
    )


def test_documents_are_taken_out_of_a_run(files):
    (files / "own").write_text("q1 0 d1 1\nd1 0 d2 1\n", encoding="utf-8")
    (files / "asked").write_text("d1 Q0 d1 1 9 t\nd1 Q0 d2 2 8 t\nq1 Q0 d1 1 1 t\n", encoding="utf-8")
    trec = "eval --qrels own --run asked -k 1"
    assert document(trec)["values"][0]["ndcg"] == 0.5
    result = document(f"{trec} --exclude identical")
    assert (result["values"][0]["ndcg"], result["n_excluded"], result["n_unanswered"]) == (1.0, 1, 0)
    (files / "seen").write_text("d1 d1\n\nq1\td7\nq9 d1\n", encoding="utf-8")
    assert document(f"{trec} --exclude seen")["values"] == result["values"]
    assert re.search("excluded +1 retrieved documents", text(f"{trec} --exclude identical"))
    for command in ("explain --a trec_eval --b sklearn[unjudged=zero]", "identify 1.0000"):
        rows = document(f"{command} --qrels own --run asked -k 1 --exclude identical", ok=(0, 1))
        assert rows.get("value_a", rows.get("value")) == 1.0
    both = document("compare asked asked --qrels own -k 1 --exclude identical")
    assert (both["a"]["ndcg"], both["a"]["n_unanswered"]) == (1.0, 0)


def test_what_is_no_exclusion_is_refused(files):
    (files / "seen").write_text("d1 d1\nd1 d2 d3\n", encoding="utf-8")
    result = invoke(f"eval {TREC} --exclude seen")
    assert result.exit_code == 2
    assert "seen, line 2: must be a topic and a document; got 'd1 d2 d3'" in result.stderr
    assert "nowhere" in invoke(f"eval {TREC} --exclude nowhere").stderr
    told = "--exclude is for --qrels and --run; leave it out."
    assert told in invoke(f"eval {LETOR} --exclude identical").stderr


def test_topics_without_an_answer_are_shown(files):
    (files / "short").write_text("q1 Q0 d1 1 1 t\nq2 Q0 q2 1 1 t\n", encoding="utf-8")
    result = invoke("eval --qrels qrels --run short --exclude identical")
    assert re.search("unanswered +2 topics, in which nothing is retrieved", result.stdout)
    told = re.search("unanswered +a 2, b 1", text("compare short run --qrels qrels --exclude identical"))
    assert told
    assert "Warning: the run answers 1 of 3 topics with an empty list, the first 'q2'" in result.stderr


def test_eval_at_several_cut_offs_and_per_query():
    result = document(f"eval {TREC} -k 1 -k none --per-query")
    expected = evaluate_run("qrels", "run", k=(1, None))
    assert [(each["k"], each["ndcg"]) for each in result["values"]] == list(expected.value.items())
    assert [Flavor.parse(each["flavor"]).k for each in result["values"]] == [1, None]
    assert [each["qid"] for each in result["per_query"]] == ["q1", "q2", "q3"]
    table = expected.per_query
    for i, each in enumerate(result["per_query"]):
        assert [each[key] for key in ("n_docs", "n_judged", "n_relevant", "tied")] == [
            table[key][i] for key in ("n_docs", "n_judged", "n_relevant", "tied")
        ]
        for at, value in enumerate(each["values"]):
            for key in ("ndcg", "dcg", "idcg", "empty"):
                assert value[key] == table[key][i, at]
            assert value["judged"] == (None if math.isnan(table.judged[i, at]) else table.judged[i, at])
    shown = text(f"eval {TREC} -k 1 -k none --per-query").splitlines()
    assert shown[0].split() == ["qid", "ndcg@1", "ndcg", "documents", "judged", "relevant", "tied"]
    assert shown[1].split() == ["q1", "1.0000", f"{Q1:.4f}", "3", "3", "2", "2"]
    assert text(f"eval {TREC} -k 2 --per-query").splitlines()[2].split()[-2:] == ["0", "-"]  # q2 retrieves nothing


def test_queries_that_the_mean_leaves_out_are_null():
    result = document(f"eval {LETOR} --flavor sklearn[empty=skip] --per-query")
    assert [each["values"][0]["ndcg"] is None for each in result["per_query"]] == [False, True, False]
    assert result["values"][0]["n_empty"] == 1
    undefined = document(f"eval {LETOR} --flavor sklearn[empty=nan]")
    assert undefined["values"][0]["ndcg"] is None
    assert re.search(r"^ndcg +- +1$", text(f"eval {LETOR} --flavor sklearn[empty=nan]"), re.MULTILINE)


def test_the_three_forms_are_those_of_the_library(files):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    rows = read_columns("table.csv")
    columns = {"qid": rows.qid.tolist(), "label": rows.y_true, "score": rows.y_score, "docno": rows.doc_id.tolist()}
    pyarrow.parquet.write_table(pa.table(columns), "table.parquet")
    expected = evaluate(**read_letor("labels", "scores").arguments(), k=(2,)).value[2]
    for inputs in (LETOR, "--table table.csv", "--table table.parquet"):
        result = document(f"eval {inputs} -k 2")
        assert result["values"][0]["ndcg"] == expected
        assert result["values"][0]["flavor"] == str(PRESETS["sklearn"].replace(k=2))
        assert (result["queries"], result["values"][0]["judged"], result["per_query"]) == (None, None, None)
    with_ids = document("eval --table table.csv --flavor trec_eval")["values"][0]["ndcg"]
    assert with_ids == evaluate(**rows.arguments(), flavor="trec_eval").value != expected


def test_the_default_flavor_is_that_of_the_library():
    assert document(f"eval {TREC}")["values"][0]["flavor"] == str(PRESETS["trec_eval"])
    assert document(f"eval {LETOR}")["values"][0]["flavor"] == str(PRESETS["sklearn"])
    shown = text(f"eval {LETOR} --flavor xgboost")  # its own cut-off
    assert shown.splitlines()[1].startswith("ndcg@32 ")


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input(packed):
    def given(content: str) -> bytes:
        return gzip.compress(content.encode()) if packed else content.encode()

    run = document("eval --qrels qrels --run -", input=given(RUN))
    assert run == document(f"eval {TREC}")
    assert document("eval --qrels - --run run", input=given(QRELS)) == run
    explained = document("explain --a trec_eval --b ranx --qrels - --run run --queries both", input=given(QRELS))
    assert explained["n_queries"] == 2
    assert document("eval --table -", input=given(TABLE)) == document("eval --table table.csv")
    assert document("eval --labels labels --scores -", input=given(SCORES)) == document(f"eval {LETOR}")
    moved = document("compare run - --qrels qrels", input=given(BETTER))
    assert (moved.pop("b")["file"], moved.pop("moved")) == ("-", document("compare run better --qrels qrels")["moved"])


def test_parquet_from_standard_input(files):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.table({"qid": [1, 1], "label": [0, 1], "score": [0.5, 0.2]}), "t")
    result = document("eval --per-query --table -", input=Path("t").read_bytes())
    assert result["per_query"][0]["qid"] == 1
    assert result["values"][0]["ndcg"] == pytest.approx(1 / math.log2(3))


def test_ids_are_shown_as_they_are():
    Path("odd.csv").write_bytes(b'qid,label,score\n[red]a,1,1\n:smile:,1,1\n"two\nlines",1,1\nb\xff,1,1\n\x1b[2J,1,1\n')
    shown = text("eval --table odd.csv --per-query").splitlines()[1:6]
    assert [line.split("  ")[0] for line in shown] == ["[red]a", ":smile:", r"two\x0alines", r"b\udcff", r"\x1b[2J"]
    ids = [each["qid"] for each in document("eval --table odd.csv --per-query")["per_query"]]
    assert ids == ["[red]a", ":smile:", "two\nlines", "b\udcff", "\x1b[2J"]


# -- compare --------------------------------------------------------------------------------------------------------


def test_compare_of_three_queries_by_hand():
    result = document("compare run better --qrels qrels")
    differences = [1 - Q1, 1.0, 0.0]
    assert result["difference"] == pytest.approx(sum(differences) / 3, abs=1e-12)
    assert result["a"]["ndcg"] == result["a"]["ndcg_of_pairs"] == pytest.approx((Q1 + Q3) / 3, abs=1e-12)
    assert result["b"]["ndcg"] == pytest.approx((2 + Q3) / 3, abs=1e-12)
    assert (result["wins"], result["ties"], result["losses"]) == (2, 1, 0)
    # Two differences that are not 0: of the four assignments of signs, two have a sum as far from 0.
    assert (result["exact"], result["p_value"]) == (True, 0.5)
    assert [each["qid"] for each in result["moved"]] == ["q2", "q1"]
    assert result["moved"][0] == {"qid": "q2", "a": 0.0, "b": 1.0, "difference": 1.0}
    # 1 of the 27 resamples is q3 alone, more than 2.5 %, and 1 is q2 alone.
    assert document("compare run better --qrels qrels --method percentile")["interval"] == [0.0, 1.0]
    assert (result["n_pairs"], result["not_compared"], result["confidence"]) == (3, [], 0.95)
    mirrored = document("compare better run --qrels qrels")
    assert (mirrored["difference"], mirrored["p_value"]) == (-result["difference"], 0.5)
    assert (mirrored["wins"], mirrored["losses"]) == (0, 2)
    assert [each["qid"] for each in mirrored["moved"]] == ["q2", "q1"]
    shown = text("compare run better --qrels qrels --top 1")
    for words in (
        "b - a",
        f"{result['difference']:+.4f}",
        " (95 %, interval of the randomisation test)",
        "0.5000",
        "every exchange",
        "of 3 queries",
    ):
        assert words in shown
    assert re.search(r"^queries +3: b is better in 2, equal in 1, worse in 0$", shown, re.MULTILINE)
    assert "not compared" not in shown


def test_compare_of_scores():
    Path("other").write_text("3\n2\n1\n1\n2\n6\n5\n")
    result = document("compare scores other --labels labels --flavor lightgbm -k 2")
    values = [document(f"eval --labels labels --scores {name} --flavor lightgbm -k 2") for name in ("scores", "other")]
    assert [result[side]["ndcg"] for side in "ab"] == [each["values"][0]["ndcg"] for each in values]
    assert result["flavor"] == str(PRESETS["lightgbm"].replace(k=2))


def test_compare_says_which_queries_are_no_pair():
    # Topics of the run: q9 is in the one alone, q2 in the other.
    result = document("compare run better --qrels qrels --queries run")
    assert result["not_compared"] == ["q9", "q2"]
    assert (result["n_pairs"], result["a"]["n_queries"], result["b"]["n_queries"]) == (2, 3, 3)
    assert result["a"]["ndcg"] != result["a"]["ndcg_of_pairs"] == pytest.approx((Q1 + Q3) / 2, abs=1e-12)
    assert result["difference"] == pytest.approx((1 - Q1) / 2, abs=1e-12)
    shown = text("compare run better --qrels qrels --queries run")
    assert "2 without a value in one of the runs: q9, q2" in shown
    assert f"a {(Q1 + Q3) / 3:.4f} of 3, b {(2 + Q3) / 3:.4f} of 3" in shown


@pytest.mark.parametrize("empty", ["skip", "nan"])
def test_empty_queries_are_no_pairs(empty):
    result = document(f"compare scores scores --labels labels --flavor sklearn[empty={empty}]")
    assert (result["not_compared"], result["n_pairs"], result["p_value"]) == (["8"], 2, 1.0)
    assert (result["interval"], result["moved"], result["ties"]) == ([None, None], [], 2)
    assert (result["a"]["ndcg"] is None) == (empty == "nan")


def test_nothing_to_compare_is_refused():
    Path("zeros").write_text("0 qid:1\n")
    Path("one").write_text("1\n")
    result = invoke("compare one one --labels zeros --flavor sklearn[empty=nan]")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert result.stderr.startswith("Error: one, one: at least two queries must have a value in every system")


def test_compare_prints_what_the_function_finds():
    for more in ({}, {"method": "bca", "confidence": 0.8}, {"method": "percentile", "n_resamples": 200, "seed": 5}):
        expected = compare(
            *(evaluate_run("qrels", each) for each in ("run", "better")),
            **{"unjudged": "accept", "n_resamples": 10_000, "seed": 0, **more},
        )
        options = [f"--{name.removeprefix('n_')}={value}" for name, value in more.items()]
        result = document("compare run better --qrels qrels", *options)
        limits = [expected.interval.low, expected.interval.high]
        assert result["interval"] == [limit if math.isfinite(limit) else None for limit in limits]
        assert (result["confidence"], result["method"]) == (expected.interval.confidence, expected.interval.method)
        for name in ("difference", "p_value", "standard_error", "effect_size", "wins", "ties", "losses"):
            assert result[name] == getattr(expected, name)
        assert result["smallest_detectable"] == expected.smallest_detectable()


def test_columns_of_a_table_are_compared():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 200)
    scores = {name: labels + rng.normal(0, noise, 200) for name, noise in (("old", 2.0), ("new", 0.5), ("score", 1.0))}
    lines = zip(np.repeat(np.arange(20), 10), labels, *scores.values(), strict=True)
    text_of_table = "qid,label,old,new,score\n" + "".join(
        ",".join(map(repr, map(float, line))) + "\n" for line in lines
    )
    Path("scores.csv").write_text(text_of_table)
    pq.write_table(pa.table({"qid": np.repeat(np.arange(20), 10), "label": labels, **scores}), "scores.parquet")
    qid = np.repeat(np.arange(20), 10)
    expected = compare(scores["old"], scores["new"], y_true=labels, qid=qid, k=5, n_resamples=10_000, seed=0)
    for table in ("scores.csv", "scores.parquet"):
        result = document(f"compare old new --table {table} -k 5")
        assert result["difference"] == pytest.approx(expected.difference, abs=1e-12)
        assert result["p_value"] == expected.p_value
        assert result["a"]["file"] == "old"
    assert document("compare old new --table - -k 5", input=text_of_table)["p_value"] == expected.p_value
    three = document("compare old new score --table scores.csv -k 5")
    assert [(each["name"], each["file"]) for each in three["systems"]] == [("a", "old"), ("b", "new"), ("c", "score")]
    assert [(each["a"], each["b"]) for each in three["pairs"]] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert three["pairs"][0]["difference"] == pytest.approx(expected.difference, abs=1e-12)
    assert all(each["p_value"] <= each["p_adjusted"] for each in three["pairs"])
    shown = text("compare old new score --table scores.csv -k 5")
    assert "adjusted for 3 pairs by max-t" in shown
    assert re.search(r"^b - a +\+0\.", shown, re.MULTILINE)
    for command, message in (
        ("compare old none --table scores.csv", "scores.csv: must have the columns qid, label, none"),
        ("compare old label --table scores.csv", "label and score must be columns of their own; got 'label' for both."),
    ):
        result = invoke(command)
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
        assert message in result.stderr


NAMES = {"qid": "user", "label": "rating", "score": "s", "docno": "item"}


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet", "stdin"])
@pytest.mark.parametrize(
    "command",
    [
        "eval {} --flavor trec_eval --per-query",
        "explain --a trec_eval --b ranx_burges {}",
        "identify 0.5 --decimals 1 -k 2 {}",
    ],
)
def test_columns_of_other_names(command, form):
    rows = [line.split(",") for line in TABLE.splitlines()[1:]]
    # The usual names are there too, and hold something else.
    header = [*NAMES.values(), *NAMES]
    lines = [header, *([*row, "0", "1", "0", "x"] for row in rows)]
    separator, name = ("\t", "named.tsv") if form == "tsv" else (",", "named.csv")
    Path(name).write_text("".join(separator.join(line) + "\n" for line in lines))
    if form == "parquet":
        name = "named.parquet"
        numbers = [("user", str), ("rating", float), ("s", float), ("item", str)]
        columns = {column: [kind(row[i]) for row in rows] for i, (column, kind) in enumerate(numbers)}
        pq.write_table(pa.table({**columns, **dict.fromkeys(NAMES, [0] * len(rows))}), name)
    stdin = Path(name).read_text() if form == "stdin" else None
    options = f"--table {'-' if form == 'stdin' else name} --query user --label rating --score s --document item"
    assert document(command.format(options), input=stdin) == document(command.format("--table table.csv"))


def test_columns_of_other_names_are_compared():
    Path("usual.csv").write_text("qid,label,a,b,docno\n1,2,1,2,x\n1,0,1,1,y\n2,1,3,3,x\n2,0,4,1,y\n")
    Path("named.csv").write_text(Path("usual.csv").read_text().replace("qid,label,a,b,docno", "user,rating,a,b,item"))
    found, expected = (
        document(f"compare a b --table {options} --flavor trec_eval")
        for options in ("named.csv --query user --label rating --document item", "usual.csv")
    )
    assert found == expected
    assert found["difference"] != 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("", "user', 'Rating', 's_old', 's_new'. Name your own with --query, --label, --score."),
        ("--query user --score s_new", "'s_new'. Name your own with --label."),
        ("--query user --label RATING --score s_new", "RATING is missing, .*'s_new'. Did you mean 'Rating'?"),
        ("--query usr --label Rating --score s_nwe", "usr, s_nwe are missing, .* Did you mean 'user' or 's_new'?"),
        ("--query user --label Rating --score s_new --document item", "item is missing, .*'s_new'."),
        ("--query user --label s_new --score s_new", "label and score must be columns of their own; got 's_new'"),
        ("--query user --score s_new --label ", "user, , s_new (and may have docno"),
    ],
)
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_missing_columns_suggest_those_of_similar_names(options, words, form):
    columns = {"user": [1, 1], "Rating": [1, 0], "s_old": [1, 2], "s_new": [2, 1]}
    if form == "parquet":
        pq.write_table(pa.table(columns), "named")
    else:
        lines = [columns, *zip(*columns.values(), strict=True)]
        Path("named").write_text("".join(",".join(map(str, line)) + "\n" for line in lines))
    more = [""] if options.endswith("--label ") else []
    result = invoke(f"eval --table named {options}", *more)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert result.stderr.startswith("Error: named: ")
    pattern = re.escape(words).replace(r"\.\*", ".*")
    assert re.search(pattern, result.stderr)


def test_micro_averages_are_compared():
    flavor = "--flavor trec_eval[aggregate=micro]"
    result = document(f"compare run better --qrels qrels {flavor}")
    values = [document(f"eval --qrels qrels --run {name} {flavor}")["values"][0]["ndcg"] for name in ("run", "better")]
    assert result["difference"] == pytest.approx(values[1] - values[0], abs=1e-12)


def test_a_p_value_is_never_shown_as_zero():
    rows = [(qid, doc, label) for qid in range(12) for doc, label in (("a", 1), ("b", 0))]
    Path("labels").write_text("".join(f"{label} qid:{qid}\n" for qid, _, label in rows))
    Path("bad").write_text("".join(f"{1 - label}\n" for *_, label in rows))
    Path("good").write_text("".join(f"{label}\n" for *_, label in rows))
    result = document("compare bad good --labels labels")
    assert result["p_value"] == pytest.approx(2 / 2**12)
    assert "below 0.001 " in text("compare bad good --labels labels --digits 3")
    assert "0.0005 " in text("compare bad good --labels labels")


def test_real_runs_are_compared(data_dir):
    folder = data_dir / "trec_dl19"
    files = [folder / f"run.{name}.txt" for name in ("BM25", "SPLADE_P_P_ENSEMBLE_DISTIL", "BM25_RM3")]
    qrels = ("--qrels", folder / "qrels.dl19-passage.txt", "-k", 10)
    better = document("compare", *files[:2], *qrels)
    assert f"{better['a']['ndcg']:.4f} {better['b']['ndcg']:.4f}" == "0.5058 0.7308"
    assert better["p_value"] < 0.001
    assert better["interval"][0] > 0.1
    assert (better["n_pairs"], len(better["moved"]), better["exact"]) == (43, 10, False)
    unclear = document("compare", files[0], files[2], *qrels)
    assert 0.2 < unclear["p_value"] < 0.6
    assert unclear["interval"][0] < 0 < unclear["difference"] < unclear["interval"][1]
    assert unclear["wins"] + unclear["ties"] + unclear["losses"] == 43


# -- reports ----------------------------------------------------------------------------------------------------------


def test_a_report_of_an_evaluation():
    pytest.importorskip("jinja2", reason="a report needs the extra [report]")
    pytest.importorskip("matplotlib", reason="a report needs the extra [report]")
    command = f"eval {TREC} -k 1 -k 10 --digits 3"
    shown = text(f"{command} --html", "a report.html")
    assert shown == text(command) + "report        a report.html\n"
    page = Path("a report.html").read_text(encoding="utf-8")
    typed = f"ndcg-ml {command} --html 'a report.html'"
    assert page == evaluate_run("qrels", "run", k=(1, 10)).to_html(command=typed, digits=3)
    assert typed in unescape(page)
    assert document(f"{command} --html other.html") == document(command)
    assert Path("other.html").exists()


def test_a_report_of_a_comparison():
    pytest.importorskip("jinja2", reason="a report needs the extra [report]")
    pytest.importorskip("matplotlib", reason="a report needs the extra [report]")
    Path("folder").mkdir()
    Path("folder/run").write_text(RUN)
    command = "compare folder/run better --qrels qrels --queries both --top 1 --html report.html"
    assert text(command).endswith("report        report.html\n")
    page = Path("report.html").read_text(encoding="utf-8")
    systems = [evaluate_run("qrels", name, queries="both") for name in ("run", "better")]
    found = compare(*systems, names=["run", "better"], n_resamples=10_000, seed=0, missing="drop", unjudged="accept")
    found = dataclasses.replace(found, accepts_unjudged=False)
    assert page == found.to_html(command=f"ndcg-ml {command}", top=1)
    text("compare run better folder/run --qrels qrels --html report.html")  # two of one name keep their letters
    assert "run" not in re.findall(r"<td[^>]*>([^<]+)</td>", Path("report.html").read_text(encoding="utf-8"))
    text("compare run better run --qrels qrels --html report.html")


REPORTS = {
    "eval --table table.csv --html table.csv": "--html would replace 'table.csv', which is read",
    f"eval {TREC} --html run": "--html would replace 'run', which is read",
    "compare run better --qrels qrels --html better": "--html would replace 'better', which is read",
    f"eval {TREC} --html none/report.html": "the folder none does not exist",
    f"eval {TREC} --html .": "File '.' is a directory",
    f"eval {TREC} --html -": "must be the name of a file; got -",
}


@pytest.mark.parametrize("command", REPORTS)
def test_a_report_that_cannot_be_written_is_refused(command, files):
    pytest.importorskip("jinja2", reason="a report needs the extra [report]")
    pytest.importorskip("matplotlib", reason="a report needs the extra [report]")
    before = {path.name: path.read_bytes() for path in files.iterdir()}
    result = invoke(command)
    assert (result.exit_code, result.stdout) == (2, "")
    assert REPORTS[command] in result.stderr
    assert {path.name: path.read_bytes() for path in files.iterdir()} == before


@pytest.mark.parametrize("missing", ["jinja2", "matplotlib"])
@pytest.mark.parametrize("command", [f"eval {TREC}", "compare run better --qrels qrels"])
def test_without_the_extra_a_report_is_refused_before_any_work(command, missing):
    Path("run").write_text("not a run\n")  # which would be an error of its own
    without = f"import sys; sys.modules[{missing!r}] = None; from ndcg_ml.cli import main; main()"
    arguments = [sys.executable, "-c", without, *command.split(), "--html", "report.html"]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("Error: a report needs jinja2 and matplotlib")
    assert "pip install 'ndcg_ml[report]'" in done.stderr
    assert not Path("report.html").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_leaves_no_report():
    pytest.importorskip("jinja2", reason="a report needs the extra [report]")
    pytest.importorskip("matplotlib", reason="a report needs the extra [report]")
    done = program(["eval", *TREC.split(), "--html", "/dev/full"])
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "Error: /dev/full: No space left on device.\n")


# -- explain --------------------------------------------------------------------------------------------------------


def test_explain_is_that_of_the_library():
    a, b = "trec_eval@3", "trec_eval[gain=exponential,score_dtype=float64]"
    result = document(f"explain --a {a} --b {b} -k 2 --top 1 {TREC}")
    expected = explain_difference(a, b, **align("qrels", "run").arguments(), k=2, top=1)
    assert result == expected.to_dict()
    assert sum(part["contribution"] for part in result["parts"]) == pytest.approx(result["difference"], abs=1e-12)
    assert {part["switches"][0] for part in result["parts"]} == {"gain", "score_dtype"}
    shown = text(f"explain --a {a} --b {b} -k 2 --top 1 {TREC}")
    gain = f"{expected.parts[0].contribution:+.4f}"
    assert re.search(rf"^gain +linear +exponential +{re.escape(gain)}$", shown, re.MULTILINE)
    assert re.search(r"^no effect +score_dtype$", shown, re.MULTILINE)
    assert "the 1 of 3 queries" in shown
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
    assert re.search(r"^8 +\S+ +0.0000 +- ", text(f"explain --a sklearn --b sklearn[empty=skip] {LETOR}"), re.MULTILINE)


def test_explain_of_one_flavor_is_nothing():
    assert document(f"explain --a sklearn --b sklearn {LETOR}")["parts"] == []
    assert re.search(r"^b - a +\+0.0000$", text(f"explain --a sklearn --b sklearn {LETOR}"), re.MULTILINE)


# -- identify -------------------------------------------------------------------------------------------------------


def test_identify_names_the_flavor():
    value = document(f"eval {LETOR} --flavor catboost -k 3")["values"][0]["ndcg"]
    result = document(f"identify {value:.4f} -k 3 {LETOR}")
    assert result == identify(float(f"{value:.4f}"), **read_letor("labels", "scores").arguments(), k=(3,)).to_dict()
    assert result["matches"][0]["value"] == pytest.approx(value, abs=1e-12)
    assert "catboost@3" in result["matches"][0]["presets"]
    shown = text(f"identify {value:.4f} -k 3 {LETOR}")
    assert shown.startswith(f"{value:.4f}: ")
    assert f"{value:.6f}" in shown  # two digits more than were given
    assert re.search(r"^tried +\d+ flavors$", shown, re.MULTILINE)
    assert "ties=docid, ties=docid_ascending: doc_id was not given" in shown


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
    assert "--queries qrels" in result.stdout
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


# -- refusals -------------------------------------------------------------------------------------------------------

USAGE = {
    "eval": "the data must be given as --qrels with --run",
    "eval --qrels qrels": "--qrels needs --run as well",
    "eval --scores scores": "--scores needs --labels as well",
    f"eval {LETOR} --table table.csv": "got --labels --scores --table",
    f"eval {LETOR} --queries both": "--queries is for --qrels and --run",
    "eval --qrels - --run -": "only one file can be read from standard input",
    "compare - - --qrels qrels": "only one file can be read from standard input",
    f"eval {TREC} --label rating": "--label names a column of --table; leave it out",
    "compare run better --qrels qrels --query user": "--query names a column of --table; leave it out",
    "eval --table nowhere.csv": "'nowhere.csv' does not exist",
    f"eval {TREC} --flavor lightgmb": "Did you mean 'lightgbm'?",
    f"eval {TREC} -k 0": "must be an integer of 1 or more, or 'none'",
    f"eval {TREC} -k ten": "must be an integer of 1 or more, or 'none'",
    f"eval {TREC} --queries all": "'all' is not one of",
    f"eval {TREC} --digits -1": "not in the range",
    "compare run better": "as --qrels, --labels or --table",
    "compare run better --qrels qrels --table table.csv": "as --qrels, --labels or --table",
    "compare run nowhere --qrels qrels": "'nowhere' does not exist",
    "compare run better --qrels qrels --confidence 1": "not in the range 0<x<1",
    "compare run --qrels qrels": "Missing argument 'RUN_B'",
    f"explain --a sklearn {LETOR}": "Missing option '--b'",
    f"identify half {LETOR}": "must be a finite number; got 'half'",
    f"identify nan {LETOR}": "must be a finite number; got 'nan'",
    "flavors lightgmb": "got 'lightgmb' in 'lightgmb'. Did you mean 'lightgbm'? List the presets with",
}


@pytest.mark.parametrize("command", USAGE)
def test_wrong_arguments(command):
    result = invoke(command)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert USAGE[command] in result.stderr
    assert result.stderr.startswith("Usage: ")


BAD = {
    "eval --qrels qrels --run short": "short, line 1: a line of a run must have 6",
    "eval --qrels short --run run": "short, line 1: a line of qrels must have 4",
    "eval --labels labels --scores short": "short, line 1: a line must be one score",
    "eval --labels short --scores scores": "short, line 1: a line must begin with a grade",
    "eval --table short": "short: must have the columns",
    f"eval {LETOR} --flavor trec_eval": "labels, scores: doc_id must be given",
    "eval --table unjudged.csv": "unjudged.csv, line 2: label must not be missing under",
    f"eval {TREC} --flavor lightgbm": "run, line 5",
    f"explain --a trec_eval --b lightgbm {TREC}": "qrels, run: y_true must not hold NaN",
    f"explain --a sklearn --b lightgbm[empty=nan] {LETOR}": "labels, scores: flavor_b must have a finite value",
    "identify 0.5 --table short": "short: must have the columns",
    "explain --a sklearn --b lightgbm --table unjudged.csv": "unjudged.csv, line 2: label must not be missing under",
    "compare run short --qrels qrels": "short, line 1: a line of a run must have 6",
    "eval --qrels qrels --run foreign": "qrels and run must share a topic",
    "eval --table twice.csv --flavor trec_eval": "twice.csv: ",
}


@pytest.mark.parametrize("command", BAD)
def test_data_that_cannot_be_used_are_one_line(command):
    Path("short").write_text("a b c\n")
    Path("foreign").write_text("x Q0 d 1 1 t\n")
    Path("unjudged.csv").write_text("qid,label,score\n1,,1\n1,2,3\n")
    Path("twice.csv").write_text("qid,label,score,docno\n1,1,1,a\n1,2,3,a\n")
    result = invoke(command)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert BAD[command] in result.stderr
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1


def test_standard_input_is_named_as_such():
    result = invoke("eval --labels - --scores scores", input="1 qid:1\nx qid:1\n")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: standard input, line 2: a line must begin with a grade")


def test_a_file_that_cannot_be_read_is_named(monkeypatch):
    def refuse(path, *more, **names):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("ndcg_ml.cli.inputs.read_columns", refuse)
    result = invoke("eval --table table.csv")
    assert (result.exit_code, result.stderr) == (2, "Error: table.csv: Permission denied\n")


def test_a_message_of_several_lines_becomes_one(monkeypatch):
    def refuse(path, *more, **names):
        raise ValueError("table.csv:\n  two\n  lines")

    monkeypatch.setattr("ndcg_ml.cli.inputs.read_columns", refuse)
    assert invoke("eval --table table.csv").stderr == "Error: table.csv: two lines\n"


def test_the_name_of_a_file_is_not_taken_for_a_part_of_a_word():
    Path("a").write_text("qid,label,score\n1,,1\n1,2,3\n")
    assert invoke("eval --table a").stderr.startswith("Error: a, line 2: label must not be missing")


# -- terminals and pipes --------------------------------------------------------------------------------------------

ALL = (
    "flavors",
    "flavors letor3",
    f"eval {TREC} -k 10 -k 100 --per-query",
    "compare run better --qrels qrels",
    f"explain --a trec_eval --b ranx_burges {TREC}",
    f"identify 0.5 -k 3 {TREC}",
)


@pytest.mark.parametrize("command", ALL)
def test_a_terminal_of_100_columns_and_a_pipe(command):
    terminal = invoke(command, env={"FORCE_COLOR": "1", "COLUMNS": "100", "TERM": "xterm-256color"}).stdout
    lines = ANSI.sub("", terminal).splitlines()
    assert max(map(len, lines)) <= 100
    assert ANSI.search(terminal)
    pipe = invoke(command).stdout
    assert pipe.isascii()
    assert not ANSI.search(pipe)
    assert [line for line in pipe.splitlines() if line != line.rstrip()] == []
    if command != "flavors":  # which has another layout
        words = set("".join(lines).replace(" ", "").replace("─", ""))
        assert words == set(pipe.replace(" ", "").replace("\n", ""))


def test_a_flavor_is_broken_after_commas_on_a_terminal():
    shown = ANSI.sub("", text(f"eval {TREC}", env={"FORCE_COLOR": "1", "COLUMNS": "60", "TERM": "xterm-256color"}))
    [flavor] = re.findall(r"^flavor +(ndcg\[(?:.|\n)*?\])", shown, re.MULTILINE)
    lines = [line.strip() for line in flavor.split("\n")]
    assert len(lines) > 2
    assert all(line.endswith(",") for line in lines[:-1])
    assert "".join(lines) == str(PRESETS["trec_eval"])


@pytest.mark.parametrize("command", ["", *(command.split()[0] for command in ALL)])
def test_help_fits(command):
    shown = text(f"{command} --help")
    assert max(map(len, shown.splitlines())) <= 110
    assert "\b" not in shown
    if command:
        assert "  --json" in shown


JSON = {
    "flavors letor3": "name library verified unusual alias_of text switches same_as words",
    f"eval {TREC}": "values n_queries n_documents queries qrels_only run_only n_unanswered n_excluded per_query",
    "compare run better --qrels qrels": "flavor a b n_pairs not_compared difference interval standard_error confidence "
    "method p_value exact resamples seed wins ties losses effect_size smallest_detectable moved p_adjusted verdict "
    "correction baseline margin n_clusters notes",
    "compare run better run --qrels qrels": "flavor n_pairs not_compared confidence method resamples seed systems "
    "pairs correction baseline margin n_clusters notes",
    f"explain --a trec_eval --b ranx_burges {TREC}": "flavor_a flavor_b value_a value_b difference method parts "
    "n_queries queries",
    f"identify 0.4 -k 3 --decimals 1 {TREC}": "value decimals truncated matches nearest n_tried not_tried reasons",
}


@pytest.mark.parametrize("command", JSON)
def test_json_has_the_keys_that_help_names(command):
    keys = document(command)
    assert set(keys) == set(JSON[command].split())
    explained = text(f"{command.split()[0]} --help")
    explained = explained[explained.index("  --json prints" if "flavors" not in command else "  --json without") :]
    for key in keys:
        assert re.search(rf"\b{key}\b", explained), key


DAY, HOUR = datetime.date(2026, 5, 1), datetime.time(1, 2, 3)
PARQUET_IDS = {
    "numbers": (pa.array([3, 3, 2**60]), [3, 2**60]),
    "truths": (pa.array([True, True, False]), [True, False]),
    "fractions": (pa.array([0.5, 0.5, math.inf]), [0.5, "inf"]),
    "text": (pa.array(["a", "a", "a\0"]), ["a", "a\0"]),
    "bytes": (pa.array([b"a\0", b"a\0", b"\xff"]), ["6100", "ff"]),
    "uuids": (pa.array([b"\1" * 15 + b"\0"] * 2 + [b"\1" * 16], pa.binary(16)), ["01" * 15 + "00", "01" * 16]),
    "dates": (pa.array([DAY, DAY, datetime.date(2026, 5, 2)]), ["2026-05-01", "2026-05-02"]),
    "seconds": (pa.array([0, 0, 1], pa.timestamp("s")), ["1970-01-01T00:00:00.000", "1970-01-01T00:00:01.000"]),
    "nanoseconds": (
        pa.array([0, 0, 1], pa.timestamp("ns")),
        ["1970-01-01T00:00:00.000000000", "1970-01-01T00:00:00.000000001"],
    ),
    "zoned": (
        pa.array([0, 0, 1], pa.timestamp("us", "Europe/Berlin")),
        ["1970-01-01T00:00:00.000000", "1970-01-01T00:00:00.000001"],
    ),
    "times": (pa.array([HOUR, HOUR, datetime.time(4, 5)]), ["01:02:03", "04:05:00"]),
    "durations": (pa.array([0, 0, 90], pa.duration("s")), ["0:00:00", "0:01:30"]),
    "decimals": (pa.array([Decimal("1.50")] * 2 + [Decimal("2.00")]), ["1.50", "2.00"]),
}


@pytest.mark.parametrize("kind", PARQUET_IDS)
def test_ids_of_any_type_are_in_json(kind):
    column, expected = PARQUET_IDS[kind]
    pq.write_table(pa.table({"qid": column, "label": [1, 0, 0], "score": [0.1, 0.2, 0.3]}), "rows")
    assert [row["qid"] for row in document("eval --table rows --per-query")["per_query"]] == expected
    explained = document("explain --a sklearn --b lightgbm[discount=reciprocal] --table rows")["queries"]
    assert sorted((row["qid"] for row in explained), key=expected.index) == expected
    assert document("identify 0.8 --table rows", ok=(0, 1))["n_tried"] > 0
    table = text("eval --table rows --per-query").splitlines()[1:3]
    assert [line.split()[0] for line in table] == [str(each).replace("\0", r"\x00") for each in expected]


def test_the_help_says_how_ids_are_printed():
    for command in ("eval", "explain"):
        assert "bytes in hexadecimal" in " ".join(text(f"{command} --help").split())


def test_a_long_argument_is_shown_in_part():
    for command in (f"eval {TREC} -k {'x' * 10**5}", f"identify {'9' * 10**5}x {TREC}"):
        result = invoke(command)
        assert result.exit_code == 2
        assert len(result.output) < 700


def test_processes_and_exit_codes():
    fine = program(["eval", *TREC.split(), "-k", 2])
    assert (fine.returncode, fine.stderr) == (0, "")
    assert fine.stdout == text(f"eval {TREC} -k 2")
    piped = program(["eval", "--qrels", "qrels", "--run", "-", "-k", 2], input=RUN)
    assert piped.stdout == fine.stdout
    nothing = program(["identify", "0.12345", "-k", 3, *TREC.split()])
    assert (nothing.returncode, nothing.stderr) == (1, "")
    wrong = program(["eval", "--table", "labels"])
    assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (2, "", 1)


NEEDS_LINUX = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")


@NEEDS_LINUX
@pytest.mark.parametrize("arguments", ["flavors", f"eval {TREC} --json", "--help"])
def test_a_full_disk_ends_with_one_line(arguments):
    with open("/dev/full", "w") as full:
        run = [sys.executable, "-c", "from ndcg_ml.cli import main; main()", *arguments.split()]
        done = subprocess.run(run, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, "Error: the output cannot be written: No space left on device.\n")


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as on POSIX")
def test_an_interrupt_ends_without_a_traceback():
    os.mkfifo("pipe")
    # CatBoost may have left the signal ignored in this process, which a new one inherits.
    heard = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from ndcg_ml.cli import main; main()"
    )
    run = [sys.executable, "-c", heard, "eval", "--qrels", "pipe", "--run", "run"]
    process = subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process, open("pipe", "w"):  # opened here when the command opens it there, and waits for its lines
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.strip()) == (130, "", "Error: interrupted.")


def test_an_unjudged_run_is_warned_of_on_standard_error():
    Path("foreign").write_text("q1 Q0 D1 1 1 t\nq1 Q0 D2 1 .5 t\n")
    result = invoke("eval --qrels qrels --run foreign --json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["values"][0]["ndcg"] == 0.0
    told = "Warning: the run retrieves no judged document in any of the 3 topics.* like 'd1', .* like 'D1'"
    assert re.match(told, result.stderr)
    assert result.stderr.count("\n") == 1
    piped = invoke("eval --qrels qrels --run - --json", input=Path("foreign").read_text())
    assert piped.stderr == result.stderr.replace("foreign", "standard input")


@pytest.mark.parametrize("command", ["", *ndcg_ml.commands])
def test_help_names_only_what_exists(command):
    shown = " ".join(text(f"{command} --help").split())
    options = {name for each in ndcg_ml.commands.values() for param in each.params for name in param.opts}
    for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", shown):
        assert option in options | {"--help", "--version"}
    for named in re.findall(r"ndcg-ml ([a-z]+)", shown):
        assert named in ndcg_ml.commands
    for flavor in re.findall(r"'((?:\w+@|ndcg\b)[^' ]*)'", shown):
        Flavor.parse(flavor)


def test_the_examples_of_the_help_run():
    for name, content in (("qrels.txt", QRELS), ("run.txt", RUN), ("test.txt", LABELS), ("scores.txt", SCORES)):
        Path(name).write_text(content)
    three = [f"{line},{i % 2},{i}" for i, line in enumerate(TABLE.splitlines()[1:])]
    Path("scores.csv").write_text("\n".join(["qid,label,linear,docno,trees,network", *three]))
    user = TABLE.replace("qid,label,score,docno", "user,rating,s,old").replace("a\n", "1\n").replace("b\n", "2\n")
    user = re.sub("c\n", "3\n", user)
    Path("ratings.csv").write_text(user)
    Path("clicks.csv").write_text(user.replace(",s,", ",new,"))
    for name, content in (("bm25.run", RUN), ("dense.run", BETTER)):
        Path(name).write_text(content)
    examples = [
        line.strip()
        for name in ndcg_ml.commands
        for line in invoke(f"{name} --help").stdout.splitlines()
        if re.match(r"\s+(zcat .* \| )?ndcg-ml ", line)
    ]
    assert len(examples) == 9
    for example in examples:
        before, _, arguments = example.partition("ndcg-ml ")
        result = invoke(arguments, input=RUN if before else None)
        assert result.exit_code == ("identify" in arguments), (example, result.output)


@pytest.mark.parametrize("json_too", [[], ["--json"]])
def test_a_reader_that_leaves_early_is_no_error(json_too):
    rows = "".join(f"query-{i // 2},1,0.5\n" for i in range(10_000))
    Path("many.csv").write_text(f"qid,label,score\n{rows}")
    run = "from ndcg_ml.cli import main; main()"
    arguments = [sys.executable, "-c", run, "eval", "--table", "many.csv", "--per-query", *json_too]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
        process.wait(timeout=60)


def test_an_encoding_that_lacks_a_letter():
    Path("table.csv").write_text("qid,label,score\nWürzburg,1,0.5\n", encoding="utf-8")
    shown = program(["eval", "--table", "table.csv", "--per-query"], env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.splitlines()[1].startswith(r"W\xfcrzburg ")


def test_nothing_heavy_is_loaded_or_needed():
    heavy = (
        "[name for name in ('scipy', 'sklearn', 'torch', 'pandas', 'lightgbm', 'matplotlib') if name in sys.modules]"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, ndcg_ml.cli.commands; print({heavy})"], capture_output=True, text=True
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
    without = "import sys; sys.modules['scipy'] = None; from ndcg_ml.cli import main; main()"
    arguments = ["compare", "run", "better", "--qrels", "qrels"]
    done = subprocess.run([sys.executable, "-c", without, *arguments], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "p-value" in done.stdout


# -- formats ----------------------------------------------------------------------------------------------------------


def test_every_command_reads_json_lines_and_dicts(files):
    qrels = {"q1": {"d1": 2, "d2": 0, "d3": 1}, "q2": {"d4": 1}, "q3": {"d5": 3, "d1": 1}}
    run = {"q3": {"d9": 7.0, "d5": 3.5}, "q1": {"d1": 0.9, "d3": 0.5, "d7": 0.5}, "q9": {"d1": 1.0}}
    (files / "qrels.json").write_text(json.dumps(qrels))
    (files / "run.jsonl").write_text("".join(json.dumps({"qid": q, "docs": d}) + "\n" for q, d in run.items()))
    forms = "--qrels qrels.json --run run.jsonl"
    assert text(f"eval {forms} -k 2 --per-query") == text(f"eval {TREC} -k 2 --per-query")
    assert text(f"explain --a jarvelin2002 --b trec_eval {forms}") == text(
        f"explain --a jarvelin2002 --b trec_eval {TREC}"
    )
    value = document(f"eval {forms} -k 2")["values"][0]["ndcg"]
    found, expected = (document(f"identify {value:.4f} -k 2 {data}") for data in (forms, TREC))
    assert found["matches"] == expected["matches"]
    compared = text("compare run.jsonl better --qrels qrels.json")
    assert compared.replace("run.jsonl", "run") == text("compare run better --qrels qrels")
    rows = [dict(zip(("qid", "label", "score", "docno"), row.split(","), strict=True)) for row in TABLE.split()[1:]]
    (files / "table.jsonl").write_text(
        "".join(json.dumps({**row, "label": int(row["label"]), "score": float(row["score"])}) + "\n" for row in rows)
    )
    assert text("eval --table table.jsonl --per-query") == text("eval --table table.csv --per-query")
    (files / "run.jsonl").write_text('{"qid": "q1", "docno": "d1"}\n')
    result = invoke(f"eval {forms}")
    assert result.exit_code == 2
    assert "run.jsonl, line 1: must have the keys qid, docno, score" in result.stderr


@pytest.mark.parametrize("name", ["table.csv", "table.jsonl"])
def test_a_missing_label_is_named_by_its_line(files, name):
    rows = ['{"qid": 1, "label": 1, "score": 2}', "", '{"qid": 1, "label": null, "score": 1}']
    content = "\n".join(rows) if name.endswith("l") else "qid,label,score\n1,1,2\n1,,1\n"
    (files / name).write_text(content)
    result = invoke(f"eval --table {name}")
    assert result.exit_code == 2
    assert f"{name}, line 3: label must not be missing under unjudged='raise'" in result.stderr
    assert "1 of 2 are" in result.stderr
    assert invoke(f"eval --table {name} --flavor trec_eval[ties=first]").exit_code == 0
