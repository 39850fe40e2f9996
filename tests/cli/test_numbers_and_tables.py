"""``ndcg-ml eval``, ``compare``, ``explain``, ``identify`` and ``flavors``: as in the library, also as JSON."""

from __future__ import annotations

import gzip
import json
import math
import os
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from command_line import BETTER, LETOR, Q1, Q3, QRELS, RUN, SCORES, TABLE, TREC, document, invoke, text
from comparing import by_scores

from ndcg_ml import PRESETS, Flavor, compare, correct_labels, evaluate, identify
from ndcg_ml.explain import explain_difference
from ndcg_ml.presets import MIRRORS
from ndcg_ml.readers import read_columns, read_letor
from ndcg_ml.runs import align, evaluate_run

# -- eval -------------------------------------------------------------------------------------------------------------


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
    assert text(f"eval {TREC} --queries {queries}") == f"{evaluate_run('qrels', 'run', k=(None,), queries=queries)}\n"


def test_documents_are_taken_out_of_a_run(files):
    (files / "own").write_text("q1 0 d1 1\nd1 0 d2 1\n", encoding="utf-8")
    (files / "asked").write_text("d1 Q0 d1 1 9 t\nd1 Q0 d2 2 8 t\nq1 Q0 d1 1 1 t\n", encoding="utf-8")
    trec = "eval --qrels own --run asked -k 1"
    assert document(trec)["values"][0]["ndcg"] == 0.5
    result = document(f"{trec} --exclude identical")
    assert (result["values"][0]["ndcg"], result["n_excluded"], result["n_unanswered"]) == (1.0, 1, 0)
    (files / "seen").write_text("d1 d1\n\nq1\td7\nq9 d1\n", encoding="utf-8")
    assert document(f"{trec} --exclude seen")["values"] == result["values"]
    assert re.search("excluded: 1 retrieved documents", text(f"{trec} --exclude identical"))
    for command in ("explain --a trec_eval --b sklearn[unjudged=zero]", "identify 1.0000"):
        rows = document(f"{command} --qrels own --run asked -k 1 --exclude identical", ok=(0, 1))
        assert rows.get("value_a", rows.get("value")) == 1.0
    both = document("compare asked asked --qrels own -k 1 --exclude identical")
    assert (both["systems"][0]["value"], both["systems"][0]["n_unanswered"]) == (1.0, 0)


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


def test_queries_that_the_mean_leaves_out_are_null():
    result = document(f"eval {LETOR} --flavor sklearn[empty=skip] --per-query")
    assert [each["values"][0]["ndcg"] is None for each in result["per_query"]] == [False, True, False]
    assert result["values"][0]["n_empty"] == 1
    undefined = document(f"eval {LETOR} --flavor sklearn[empty=nan]")
    assert undefined["values"][0]["ndcg"] is None


def test_the_forms_are_those_of_the_library():
    rows = read_columns("table.csv")
    expected = evaluate(**read_letor("labels", "scores").arguments(), k=(2,)).value[2]
    for inputs in (LETOR, "--table table.csv"):
        result = document(f"eval {inputs} -k 2")
        assert result["values"][0]["ndcg"] == expected
        assert result["values"][0]["flavor"] == str(PRESETS["sklearn"].replace(k=2))
        assert result["per_query"] is None
    with_ids = document("eval --table table.csv --flavor trec_eval")["values"][0]["ndcg"]
    assert with_ids == evaluate(**rows.arguments(), flavor="trec_eval").value != expected


def test_the_default_flavor_is_that_of_the_library():
    assert document(f"eval {TREC}")["values"][0]["flavor"] == str(PRESETS["trec_eval"])
    assert document(f"eval {LETOR}")["values"][0]["flavor"] == str(PRESETS["sklearn"])
    shown = text(f"eval {LETOR} --flavor xgboost")  # its own cut-off
    assert shown.startswith("ndcg@32 = ")


def test_standard_input():
    run = document("eval --qrels qrels --run -", input=gzip.compress(RUN.encode()))
    assert run == document(f"eval {TREC}")
    assert document("eval --qrels - --run run", input=QRELS) == run
    explained = document("explain --a trec_eval --b ranx --qrels - --run run --queries both", input=QRELS)
    assert explained["n_queries"] == 2
    assert document("eval --table -", input=TABLE) == document("eval --table table.csv")
    assert document("eval --labels labels --scores -", input=SCORES) == document(f"eval {LETOR}")
    [pair] = document("compare run - --qrels qrels", input=BETTER)["pairs"]
    assert pair == {**document("compare run better --qrels qrels")["pairs"][0], "b": "-"}
    invoke("eval --qrels - --run run --save saved", input=QRELS)
    assert json.loads(Path("saved").read_text())["qrels"] is None


def test_parquet_from_standard_input(files):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.table({"qid": [1, 1], "label": [0, 1], "score": [0.5, 0.2]}), "t")
    result = document("eval --per-query --table -", input=Path("t").read_bytes())
    assert result["per_query"][0]["qid"] == 1
    assert result["values"][0]["ndcg"] == pytest.approx(1 / math.log2(3))


def test_ids_are_shown_as_they_are():
    Path("odd.csv").write_bytes(b"qid,label,score\n[red]a,1,1\n:smile:,1,1\n\x1b[2J,1,1\n")
    shown = text("eval --table odd.csv --per-query").splitlines()[1:4]
    assert [line.split("  ")[0] for line in shown] == ["[red]a", ":smile:", r"\x1b[2J"]
    ids = [each["qid"] for each in document("eval --table odd.csv --per-query")["per_query"]]
    assert ids == ["[red]a", ":smile:", "\x1b[2J"]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_slices_are_those_of_the_library(files, form):
    """A name per query, as a file and as a column of a table."""
    names = {"7": "large one", "8": "small", "9": "small"}
    header, *lines = TABLE.splitlines()
    if form == "csv":
        wide = "\n".join([f"{header},kind", *(f"{line},{names[line[0]]}" for line in lines)])
        (files / "wide").write_text(wide)
    else:
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        qid, label, score, docno = zip(*(line.split(",") for line in lines), strict=True)
        numbers = {"qid": [*map(int, qid)], "label": [*map(int, label)], "score": [*map(float, score)]}
        pq.write_table(pa.table({**numbers, "docno": docno, "kind": [names[query] for query in qid]}), "wide")
    rows = read_columns("table.csv")
    by = {"kind": [names[query] for query in rows.qid]}
    expected = evaluate(**rows.arguments(), flavor="trec_eval", k=(1, 2), by=by).slices.to_dict()["slices"]
    command = "eval --table wide --flavor trec_eval -k 1 -k 2"
    assert document(f"{command} --by kind")["slices"] == expected
    assert len(expected) == 4
    (files / "folder").mkdir()
    (files / "folder" / "kind").write_text("7 large one\n\n9\tsmall\n8 small\nother small\n", encoding="utf-8")
    assert document(f"{command} --by folder/kind")["slices"] == expected
    assert "slices" not in document(command)


def test_slices_of_a_run(files):
    (files / "area").write_text("q1 a\nq2 b\nq3 a\n", encoding="utf-8")
    result = document(f"eval {TREC} --by area --per-query")
    slices = evaluate_run("qrels", "run", by={"area": {"q1": "a", "q2": "b", "q3": "a"}}).slices
    assert result["slices"] == slices.to_dict()["slices"]
    assert str(slices) in text(f"eval {TREC} --by area")


def test_a_topic_may_have_a_blank_that_is_not_ascii(files):
    (files / "qrels").write_text("q\u00a01 0 d1 1\nq2 0 d1 1\n", encoding="utf-8")
    (files / "run").write_text("q\u00a01 Q0 d1 1 1 t\nq2 Q0 d2 1 1 t\n", encoding="utf-8")
    (files / "area").write_text("q\u00a01 a b\n q2\tb\u00a0\n", encoding="utf-8")
    assert [each["label"] for each in document(f"eval {TREC} --by area")["slices"]] == ["a b", "b\u00a0"]


# -- compare ----------------------------------------------------------------------------------------------------------


def test_compare_of_three_queries_by_hand():
    result = document("compare run better --qrels qrels")
    [pair] = result["pairs"]
    assert pair["difference"] == pytest.approx((1 - Q1 + 1) / 3, abs=1e-12)
    assert [each["name"] for each in result["systems"]] == ["run", "better"]
    values = [each["value"] for each in result["systems"]]
    assert values == pytest.approx([(Q1 + Q3) / 3, (2 + Q3) / 3], abs=1e-12)
    assert (pair["wins"], pair["ties"], pair["losses"]) == (2, 1, 0)
    # Two differences that are not 0: of the four assignments of signs, two have a sum as far from 0.
    assert (pair["exact"], pair["p_value"]) == (True, 0.5)
    assert (result["n_queries"], result["not_compared"], result["confidence"]) == (3, [], 0.95)
    [mirrored] = document("compare better run --qrels qrels")["pairs"]
    assert (mirrored["difference"], mirrored["p_value"]) == (-pair["difference"], 0.5)


def test_compare_of_scores():
    Path("other").write_text("3\n2\n1\n1\n2\n6\n5\n")
    result = document("compare scores other --labels labels --flavor lightgbm -k 2")
    values = [document(f"eval --labels labels --scores {name} --flavor lightgbm -k 2") for name in ("scores", "other")]
    assert [each["value"] for each in result["systems"]] == [each["values"][0]["ndcg"] for each in values]
    assert result["flavor"] == str(PRESETS["lightgbm"].replace(k=2))


def test_compare_says_which_queries_are_no_pair():
    # Topics of the run: q9 is in the one alone, q2 in the other.
    result = document("compare run better --qrels qrels --queries run")
    assert (result["not_compared"], result["n_queries"]) == (["q9", "q2"], 2)
    assert result["pairs"][0]["difference"] == pytest.approx((1 - Q1) / 2, abs=1e-12)


def test_compare_prints_what_the_function_finds():
    systems = [evaluate_run("qrels", each) for each in ("run", "better")]
    how = {"unjudged": "accept", "n_resamples": 200, "confidence": 0.8, "seed": 5}
    expected = compare(*systems, names=["run", "better"], **how)
    options = "--unjudged accept --resamples 200 --confidence .8 --seed 5"
    assert document(f"compare run better --qrels qrels {options}") == expected.to_dict()
    assert text(f"compare run better --qrels qrels {options}") == f"{expected}\n"
    as_json = text(f"compare run better --qrels qrels {options} --json")
    assert as_json == f"{json.dumps(expected.to_dict(), indent=2)}\n"


NAMES = {"qid": "user", "label": "rating", "score": "s", "docno": "item"}


@pytest.mark.parametrize(
    "command",
    [
        "eval {} --flavor trec_eval --per-query",
        "explain --a trec_eval --b ranx_burges {}",
        "identify 0.5 --decimals 1 -k 2 {}",
    ],
)
def test_columns_of_other_names(command):
    rows = [line.split(",") for line in TABLE.splitlines()[1:]]
    # The usual names are there too, and hold something else.
    lines = [[*NAMES.values(), *NAMES], *([*row, "0", "1", "0", "x"] for row in rows)]
    Path("named.csv").write_text("".join(",".join(line) + "\n" for line in lines))
    options = "--table named.csv --query user --label rating --score s --document item"
    assert document(command.format(options)) == document(command.format("--table table.csv"))


def test_compare_has_the_options_of_the_function():
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(3)
    qid = np.repeat(np.arange(30), 6)
    labels = rng.integers(0, 3, qid.size)
    scores = {name: labels + rng.normal(0, noise, qid.size) for name, noise in (("old", 4), ("new", 1), ("same", 4))}
    half = np.where(np.arange(30) % 2, "one half", "other")
    pq.write_table(pa.table({"qid": qid, "label": labels, **scores, "half": half[qid], "user": qid // 3}), "many")
    Path("halves").write_text("".join(f"{q} {half[q]}\n" for q in range(30)))
    Path("users").write_text("".join(f"{q}\t{q // 3}\n\n" for q in range(30)))
    command = "compare old new same --table many --flavor sklearn -k 3 --resamples 999"
    found = document(f"{command} --baseline new --margin 0.02 --by halves --cluster users")
    assert [each["label"] for each in found["slices"]] == ["one half", "one half", "other", "other"]
    expected = by_scores(
        *(column.reshape(30, 6) for column in scores.values()),
        y_true=labels.reshape(30, 6),
        k=3,
        names=["old", "new", "same"],
        baseline="new",
        margin=0.02,
        by={"by": half},
        cluster=np.arange(30) // 3,
        n_resamples=999,
        seed=0,
    )
    for key in ("pairs", "systems", "baseline", "margin", "n_clusters"):
        assert found[key] == expected.to_dict()[key]
    assert document(f"{command} --baseline new --margin 0.02 --by half --cluster user")["pairs"] == found["pairs"]


def test_compare_says_how_even_the_judgements_are():
    warned = document("compare run better --qrels qrels")
    assert "favours better" in warned["notes"][0]
    assert [round(each["judged"], 4) for each in warned["systems"]] == [0.5833, 0.8333]
    assert "favours better" in text("compare run better --qrels qrels")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_table_is_read_once():
    """A pipe can be read only once."""
    content = "qid,label,old,new,other\n1,1,1,2,3\n1,0,2,1,1\n2,1,1,2,1\n2,0,2,3,2\n"
    Path("table").write_text(content)
    os.mkfifo("pipe")
    threading.Thread(target=lambda: Path("pipe").write_text(content), daemon=True).start()
    once, again = (document(f"compare old new other --table {file}")["pairs"] for file in ("pipe", "table"))
    assert once == again


def test_labels_of_a_model_are_corrected_by_those_of_people():
    rng = np.random.default_rng(0)
    topics, documents = [f"t{i}" for i in range(80)], [f"d{i}" for i in range(8)]
    people = {t: {d: int(rng.integers(0, 4)) for d in documents} for t in topics}
    model = {t: {d: min(3, g + int(rng.random() < 0.2)) for d, g in of.items()} for t, of in people.items()}
    some = rng.choice(topics, 30, replace=False).tolist()
    scores = [
        {t: {d: g + rng.normal(0, noise) for d, g in of.items()} for t, of in people.items()} for noise in (2.0, 1.0)
    ]
    contents = {"model": model, "people": {t: people[t] for t in some}, "old": scores[0], "new": scores[1]}
    for name, content in contents.items():
        Path(name).write_text(json.dumps(content))
    old, new = (
        correct_labels(evaluate_run("model", run, k=5), evaluate_run("people", run, k=5)) for run in ("old", "new")
    )
    command = "--qrels model --human people -k 5"
    assert text(f"eval {command} --run new") == f"{new}\n"
    assert document(f"eval {command} --run new") == json.loads(json.dumps(new.to_dict()))
    both = compare(old, new, names=["old", "new"], margin=0.02)
    assert text(f"compare old new {command} --margin 0.02") == f"{both}\n"


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
