"""The real case of benchmarks/results/model_labels.md is what the code gives, and the figures are those of the records.

``python tests/pages/test_model_labels_page.py --write`` writes the example again.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from ndcg_ml import compare, correct_labels, evaluate_run

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "benchmarks" / "results" / "model_labels.md"
BEGIN, END = (
    "<!-- real case: written by tests/pages/test_model_labels_page.py --write -->\n",
    "<!-- end of real case -->\n",
)
RUNS = {"ADA2": "OPEN_AI_ADA2", "SPLADE": "SPLADE_P_P_ENSEMBLE_DISTIL"}


def real_case(folder):
    """The table of the page."""
    qrels = {}
    for line in (folder / "qrels.dl19-passage.txt").read_text().splitlines():
        topic, _, document, grade = line.split()
        qrels.setdefault(topic, {})[document] = int(grade)
    top = {}
    for name, file in RUNS.items():
        for line in (folder / f"run.{file}.txt").read_text().splitlines():
            topic, _, document, rank, *_ = line.split()
            top.setdefault((name, topic), {})[document] = int(rank)
    rng = np.random.default_rng(0)
    model = {}
    for topic, grades in qrels.items():
        first = {name: set(sorted(top[name, topic], key=top[name, topic].get)[:10]) for name in RUNS}
        liked = first["SPLADE"] - first["ADA2"]
        model[topic] = {}
        for document, grade in grades.items():
            given = int(rng.integers(0, 4)) if rng.random() < 0.1 else grade
            model[topic][document] = min(3, given + int(document in liked and rng.random() < 0.5))
    people = {topic: qrels[topic] for topic in rng.choice([*qrels], 22, replace=False).tolist()}

    def under(labels):
        return [evaluate_run(labels, folder / f"run.{file}.txt", k=10) for file in RUNS.values()]

    by_model, by_people = under(model), under(people)
    rows = {
        "true labels of all 43 topics": compare(*under(qrels), unjudged="accept", seed=0),
        "the model's labels alone": compare(*by_model, unjudged="accept", seed=0),
        "people's labels of 22 topics alone": compare(*by_people, unjudged="accept", seed=0),
        "corrected": compare(*map(correct_labels, by_model, by_people), seed=0),
    }
    lines = ["| labels | SPLADE - ADA2 | 95 % interval | verdict on SPLADE |", "|---|--:|--:|---|"]
    for name, found in rows.items():
        low, high = found.interval.low, found.interval.high
        lines.append(f"| {name} | {found.difference:+.3f} | {low:+.3f} to {high:+.3f} | {found.verdict} |")
    return "\n".join(lines) + "\n"


def test_the_real_case_is_what_the_code_gives(data_dir):
    shown = PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]
    assert shown == real_case(data_dir / "trec_dl19")
    assert re.search(r"alone \|.*\| better \|", shown)


def test_the_figures_are_those_that_were_simulated():
    verdicts = pytest.importorskip("benchmarks.verdicts", reason="benchmarks are not part of the installed package")
    known = json.loads(verdicts.RESULT.read_text("utf-8"))
    for name, path in verdicts.PAGES.items():
        assert verdicts.tables(name, known) in path.read_text(encoding="utf-8")


if __name__ == "__main__" and "--write" in sys.argv:
    data = Path(os.environ.get("NDCG_ML_DATA") or ROOT.parent / "shared" / "data")
    head, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(head + BEGIN + real_case(data / "trec_dl19") + END + rest.split(END)[1], encoding="utf-8")
