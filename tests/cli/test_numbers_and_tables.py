"""``ndcg-ml eval``, ``compare``, ``explain``, ``identify`` and ``flavors``: as in the library, also as JSON."""

import gzip
import json
import math
import os
import re
import threading
from pathlib import Path

import forms
import numpy as np
import pytest
from command_line import BETTER, LETOR, QRELS, RUN, SCORES, TABLE, TREC, document, invoke, text

from ndcg_ml import PRESETS, Flavor, compare, correct_labels, evaluate, identify
from ndcg_ml.presets import MIRRORS
from ndcg_ml.readers import read_columns, read_letor
from ndcg_ml.runs import evaluate_run

# -- eval -------------------------------------------------------------------------------------------------------------


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
    assert result["per_query"][0]["qid"] == "1"
    assert result["values"][0]["ndcg"] == pytest.approx(1 / math.log2(3))


def test_ids_are_shown_as_they_are():
    Path("odd.csv").write_bytes(b"qid,label,score\n[red]a,1,1\n:smile:,1,1\n\x1b[2J,1,1\n")
    shown = text("eval --table odd.csv --per-query").splitlines()[1:4]
    assert [line.split("  ")[0] for line in shown] == ["[red]a", ":smile:", r"\x1b[2J"]
    ids = [each["qid"] for each in document("eval --table odd.csv --per-query")["per_query"]]
    assert ids == ["[red]a", ":smile:", "\x1b[2J"]
    assert invoke("eval --table odd.csv --by label").stderr.count("Warning: ") == 1  # queries have one row


def test_slices_of_parquet(files):
    """A name per query, as a file and as a column of a table."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    names = {"7": "large one", "8": "small", "9": "small"}
    qid, label, score, docno = zip(*(line.split(",") for line in TABLE.splitlines()[1:]), strict=True)
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


def test_a_topic_may_have_a_blank_that_is_not_ascii(files):
    (files / "qrels").write_text("q\u00a01 0 d1 1\nq2 0 d1 1\n", encoding="utf-8")
    (files / "run").write_text("q\u00a01 Q0 d1 1 1 t\nq2 Q0 d2 1 1 t\n", encoding="utf-8")
    (files / "area").write_text("q\u00a01 a b\n q2\tb\u00a0\n", encoding="utf-8")
    assert [each["label"] for each in document(f"eval {TREC} --by area")["slices"]] == ["a b", "b\u00a0"]


OPTIONS = {"qid": "--query", "docno": "--document", "label": "--label", "score": "--score"}
OTHER = {topic: dict(zip(documents, [1.0, 2.0, 3.0], strict=False)) for topic, documents in forms.RUN.items()}


@pytest.mark.filterwarnings("ignore:.* has no grades, so that each pair")
@pytest.mark.parametrize(("side", "form"), [*(("qrels", f) for f in forms.FORMS), *(("run", f) for f in forms.RUNS)])
def test_every_form_through_every_command(side, form):
    (write, columns), content = {"qrels": forms.FORMS, "run": forms.RUNS}[side][form], getattr(forms, side.upper())
    data = {"qrels": forms.QRELS, "run": forms.RUN, "other": OTHER}
    for name, each in data.items():
        Path(name).write_text(json.dumps(each))
    for name, each in ((side, content), *[("other", OTHER)] * (side == "run")):
        Path(name).write_text(write(each), encoding="utf-8", newline="")
    words = [word for meaning, name in (columns or {}).items() for word in (OPTIONS[meaning], name)]
    first = evaluate_run("qrels", "run", k=2, columns=columns)
    second = evaluate_run("qrels", "other", k=2, columns=columns)
    read = "".join(f"{name}: {', '.join(names.values())}\n" for name, names in first.columns_read.items())
    of_both = read + read.replace("run", "other") * (side == "run")
    shown = evaluate_run("qrels", "run", k=(2,), columns=columns)
    assert text("eval --qrels qrels --run run -k 2 --save base", *words) == f"{shown}\n{read}"
    both = compare(first, second, names=["run", "other"], seed=0, unjudged="note")
    assert first.value == evaluate_run(forms.QRELS, forms.RUN, k=2).value
    assert text("compare run other --qrels qrels -k 2", *words) == f"{both}\n{of_both}"
    assert text("judge-next run other --qrels qrels -k 2", *words) == f"{both.judge_next(20)}\n{of_both}"
    gated = invoke("gate base --qrels qrels --run run --margin .1", *words)
    assert (gated.exit_code, gated.stdout.splitlines()[0][:9]) == (0, "unchanged")
    assert gated.stdout.endswith(f"\n{read}")
    assert invoke("eval --qrels qrels --run run --json", *words).stderr.endswith(read)


# -- compare ----------------------------------------------------------------------------------------------------------


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


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_table_is_read_once():
    """A pipe can be read only once."""
    content = "qid,label,old,new,other\n1,1,1,2,3\n1,0,2,1,1\n2,1,1,2,1\n2,0,2,3,2\n"
    Path("table").write_text(content)
    os.mkfifo("pipe")
    threading.Thread(target=lambda: Path("pipe").write_text(content), daemon=True).start()
    once, again = (document(f"compare old new other --table {file}")["pairs"] for file in ("pipe", "table"))
    assert once == again


@pytest.mark.filterwarnings("ignore:trec_eval itself truncates grades")
def test_labels_of_a_model_are_corrected_by_those_of_people():
    rng = np.random.default_rng(0)
    people = {f"t{i}": {f"d{j}": int(rng.integers(0, 4)) for j in range(8)} for i in range(80)}

    def near(noise):
        return {topic: {d: grade + noise * rng.random() for d, grade in of.items()} for topic, of in people.items()}

    contents = {"model": near(0.5), "people": dict([*people.items()][20:50]), "old": near(8), "new": near(4)}
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


def test_identify_names_the_flavor():
    value = document(f"eval {LETOR} --flavor catboost -k 3")["values"][0]["ndcg"]
    result = document(f"identify {value:.4f} -k 3 {LETOR}")
    expected = identify(float(f"{value:.4f}"), **read_letor("labels", "scores").arguments(), k=(3,))
    assert result == expected.to_dict()
    assert "catboost@3" in result["matches"][0]["presets"]
    assert text(f"identify {value:.4f} -k 3 {LETOR}") == f"{expected}\n"
    assert document(f"identify {value:.2f} {LETOR}")["decimals"] == 2
    assert document(f"identify {value:.6f} --decimals 3 {LETOR}")["decimals"] == 3


def test_identify_without_a_match_exits_with_1():
    result = invoke(f"identify 0.12345 -k 3 {TREC}")
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.startswith("0.12345: no match; the nearest are\n")
    as_json = invoke(f"identify 0.12345 -k 3 {TREC} --json")
    assert as_json.exit_code == 1
    assert json.loads(as_json.stdout)["matches"] == []
    assert json.loads(as_json.stdout)["nearest"]


def test_flavors_has_one_line_a_preset_in_a_pipe():
    heading, *lines = text("flavors").splitlines()
    assert heading.split() == ["flavor", "library", "unusual"]
    assert [line.split()[0] for line in lines] == list(PRESETS)
    for line, mirror in zip(lines, MIRRORS.values(), strict=True):
        assert len(line) <= 100
        _, library, unusual = re.split(r"  +", line)
        assert mirror.library.startswith(library)
        shown = unusual.removesuffix(" ...")
        assert mirror.unusual.startswith(shown)
        assert not (left := mirror.unusual.removeprefix(shown).split()) or len(f"{line} {left[0]}") > 100


def test_flavors_as_json_are_the_presets():
    listed = document("flavors")["flavors"]
    assert {each["name"]: Flavor.parse(each["text"]) for each in listed} == dict(PRESETS)
    for each in listed:
        gain = each["switches"].pop("gain")
        assert Flavor(gain=tuple(gain) if isinstance(gain, list) else gain, **each["switches"]) == PRESETS[each["name"]]
        for key in ("library", "verified", "unusual", "alias_of"):
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
