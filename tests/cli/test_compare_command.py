"""``ndcg-ml compare``: differences, intervals, tests and verdicts, of two systems and of more."""

from __future__ import annotations

import pytest
from comparing import by_scores

pytest.importorskip("pyarrow")

import json
import os
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from command_line import Q1, Q3, TABLE, document, text

from ndcg_ml import PRESETS, compare, correct_labels
from ndcg_ml.runs import evaluate_run


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
