"""The tables of benchmarks/results and reliability/results, and figures of pages, are those of the records.

``python tests/pages/test_records.py --write`` writes the real case of model_labels.md again.
"""

import json
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

import numpy as np
import pytest

pytest.importorskip("benchmarks.unjudged", reason="benchmarks are not part of the installed package")
from printed import with_table

from benchmarks import claims, coverage, deciding, decisions, unjudged, verdicts
from ndcg_ml import compare, correct_labels, evaluate_run
from reliability import report

REAL_CASE = ROOT / "benchmarks" / "results" / "model_labels.md"
RUNS = {"ADA2": "OPEN_AI_ADA2", "SPLADE": "SPLADE_P_P_ENSEMBLE_DISTIL"}
MISSING = json.loads(unjudged.RESULT.read_text(encoding="utf-8"))
KEYS = {"title", "tried", "command", "count", "unit", "failed", "found", "versions", "date"}


def real_case(folder):
    """The lines of the table of the page."""
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
    return lines


def test_the_real_case_is_what_the_code_gives(data_dir):
    text = REAL_CASE.read_text(encoding="utf-8")
    assert text == with_table(text, "real case", real_case(data_dir / "trec_dl19"))
    assert re.search(r"alone \|.*\| better \|", text)


def test_the_verdicts_are_those_that_were_simulated():
    known = json.loads(verdicts.RESULT.read_text("utf-8"))
    for name, path in verdicts.PAGES.items():
        assert verdicts.tables(name, known) in path.read_text(encoding="utf-8")


def test_the_demo_is_decided_as_recorded():
    significant = {(pair.a, pair.b): pair.significant for pair in deciding.compare_demo_models().pairs}
    assert significant == {
        ("scikit-learn", "PyTorch"): True,
        ("scikit-learn", "LightGBM"): False,
        ("PyTorch", "LightGBM"): True,
    }


@pytest.mark.parametrize("page", claims.CONSTANTS)
def test_the_figures_of_a_page_are_those_of_records(page):
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    assert text == claims.written(page, text), "run: python -m benchmarks.claims"
    assert claims.others(page, text) == []


def test_every_record_is_read_by_a_page_or_a_test():
    readers = [*ROOT.glob("docs/*.md"), *ROOT.glob("tests/**/*.py"), Path(claims.__file__)]
    text = "".join(path.read_text(encoding="utf-8") for path in readers)
    names = {path.name for path in (ROOT / "benchmarks" / "results").iterdir()} | {"clients.md", "runs.md"}
    assert [name for name in sorted(names) if name not in text] == []
    assert {path.stem for path in report.RESULTS.glob("*.json")} == report.records().keys()  # runs.md shows them
    assert {path.name for path in report.RESULTS.glob("*.md")} == {"clients.md", "runs.md"}


def test_every_client_has_a_row():
    clients = pytest.importorskip("reliability.clients", reason="needs PyTorch and LightGBM", exc_type=ImportError)
    table = clients.TABLE.read_text("utf-8").split("|\n\n")[0].split("|--:|---|---|---|\n")[1]
    assert [row.split(" | ")[0].removeprefix("| ") for row in table.splitlines()] == [*clients.CLIENTS]
    for (client, *_), row in zip(clients.CLIENTS.values(), table.splitlines(), strict=True):
        assert clients.code_lines(client, row) != 0, row  # its section is where the row says
        if isinstance(client, str):
            file, _, name = client.partition("::")
            assert f"def {name.partition('[')[0]}" in (ROOT / file).read_text("utf-8"), client


def test_the_engines_are_what_was_measured():
    engines = pytest.importorskip("reliability.engines", reason="needs pyarrow", exc_type=ImportError)
    record = json.loads((ROOT / "reliability" / "results" / "engines_large.json").read_text("utf-8"))
    page = (ROOT / "docs" / "recipes.md").read_text("utf-8")
    assert engines.large_table(record["figures"]) in page
    assert re.search(r"([\d ]+) million rows, in random order", page)[1] == f"{record['count'] // 5_000_000}"
    assert not record["failed"]


CELLS = {row["cell"]: row for row in json.loads(decisions.RESULT.read_text(encoding="utf-8"))}
COVERAGE = json.loads(coverage.RESULT.read_text(encoding="utf-8"))
TABLES = {  # the module whose --page writes it, the marks around it, and the table
    "coverage": (coverage, coverage.BEGIN, coverage.END, lambda: coverage.table(COVERAGE)),
    "error rates": (decisions, decisions.BEGIN, decisions.END,
        lambda: decisions.table([CELLS[cell.name] for cell in decisions.cells() if cell.name in CELLS])),
    "uniques": (unjudged, "<!-- uniques -->", "<!-- end of uniques -->", lambda: unjudged.table_of_uniques(MISSING)),
    "labels": (unjudged, "<!-- labels -->", "<!-- end of labels -->", lambda: unjudged.table_of_labels(MISSING)),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_what_was_measured(name):
    module, begin, end, table = TABLES[name]
    page = module.PAGE.read_text(encoding="utf-8")
    assert page.split(begin)[1].split(end)[0].strip() == table().strip(), f"not what {module.__name__} writes"
    assert module is not coverage or f"{COVERAGE['samples']} samples".replace("4000", "4 000") in page


def test_the_ranges_hold_the_value_under_all_labels_and_nothing_is_settled() -> None:
    rows = MISSING["uniques"]
    assert len(rows) == 6
    assert all(row["low"] <= row["full"] <= row["high"] and not row["settled"] for row in rows)
    # "With all labels no difference is significant. With b's own documents unjudged, all six are"
    assert all(row["full_p"] > 0.05 >= row["zero_p"] for row in rows)
    nearer = sum(abs(row["condensed"] - row["full"]) < abs(row["zero"] - row["full"]) for row in rows)
    assert nearer == 6


def test_the_left_out_row_is_what_the_code_computes(data_dir) -> None:
    qrels, runs = unjudged.read_trec(data_dir / "trec_dl19")
    row = unjudged.left_out(qrels, runs, "TAS-B", "ADA-002")
    recorded = MISSING["uniques"][0]
    for name in ("full", "zero", "condensed", "low", "high"):
        assert row[name] == pytest.approx(recorded[name], abs=1e-12)


def test_judge_next_needs_fewer_labels_than_pooling_and_random_order() -> None:
    labels = MISSING["labels"]
    for data in ("TREC DL 2019", "MQ2008"):
        right = {
            order: np.median([row["right"] for row in labels if (row["data"], row["order"]) == (data, order)])
            for order in unjudged.ORDERS
        }
        assert right["judge_next"] < right["pooling"] < right["random"], data


def test_the_long_runs_are_those_of_the_records() -> None:
    assert report.PAGE.read_text() == report.page(report.records()), "run: python -m reliability.report"


def test_every_record_is_complete_and_nothing_fails_now() -> None:
    for name, record in report.records().items():
        assert record.keys() >= KEYS, name
        assert record["count"] > 0, name
        assert all(set(one) == {"what", "fixed"} and all(one.values()) for one in record["found"]), name
        assert str(ROOT) not in str(record), name
        assert [test for test in re.findall(r"tests/[\w/]+\.py", str(record)) if not (ROOT / test).exists()] == [], name
        # Mutants that survive are those of a sample that states a share, so they are counted and not fixed.
        assert not record["failed"] or name == "mutants", name


def test_every_survivor_that_is_judged_has_a_reason() -> None:
    judged = json.loads((ROOT / "reliability" / "equivalents.json").read_text())
    assert len({each["mutant"] for each in judged}) == len(judged)
    for each in judged:
        assert each.keys() == {"mutant", "kind", "why"}, each
        assert each["why"], each
        assert each["kind"] in ("equivalent", "speed", "message"), each


if __name__ == "__main__" and "--write" in sys.argv:
    data = Path(os.environ.get("NDCG_ML_DATA") or ROOT.parent / "shared" / "data")
    text = REAL_CASE.read_text(encoding="utf-8")
    REAL_CASE.write_text(with_table(text, "real case", real_case(data / "trec_dl19")), encoding="utf-8")
