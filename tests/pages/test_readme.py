"""Each block of the README runs alone and prints the text shown, and its table agrees with the data.

``python tests/pages/test_readme.py --write`` writes docs/winner.json from the rankings and judgments of TREC Deep
Learning 2019, where they are at hand, and the table from docs/winner.json.
"""

import json
import re
import sys
import warnings
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "support")]

import numpy as np
import pytest
from printed import assert_shown, code_and_output, run_blocks, with_table

from ndcg_ml import PRESETS, compare, evaluate_run

ROOT = Path(__file__).parents[2]
README, RECORD = ROOT / "README.md", ROOT / "docs" / "winner.json"

# A gain, and the presets with this gain and the names of their libraries.
ROWS: tuple[tuple[str, dict[str, str]], ...] = (
    ("the grade", {"trec_eval": "trec_eval", "ranx": "ranx", "beir": "BEIR"}),
    ("2^grade - 1", {"gdeval": "gdeval", "opensearch": "OpenSearch"}),
    ("1 if relevant", {"sentence_transformers": "sentence-transformers", "recbole": "RecBole", "spark": "Spark"}),
    ("1 if judged", {"recommenders_binary": "Recommenders"}),
)
# Pairs whose differences the README reports.
PAIRS = (("SPLADE++", "BM25"), ("SPLADE++", "TAS-B"))
MODELS = {"SPLADE++": "SPLADE_P_P_ENSEMBLE_DISTIL", "TAS-B": "D_BERT_KD_TASB", "BM25": "BM25"}


def evaluated(data: Path, preset: str) -> dict[str, Any]:
    folder = data / "trec_dl19"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # RecBole's preset warns of unjudged documents
        return {
            model: evaluate_run(folder / "qrels.dl19-passage.txt", folder / f"run.{run}.txt", flavor=preset, k=10)
            for model, run in MODELS.items()
        }


def measured(data: Path) -> dict[str, dict[str, float]]:
    """NDCG@10 of each model by preset."""
    return {
        preset: {model: round(float(found.value), 6) for model, found in evaluated(data, preset).items()}
        for _, presets in ROWS
        for preset in presets
    }


def differences(data: Path) -> dict[str, dict[str, list[float]]]:
    """Difference of each pair with the ends of its 95 % interval, by the first preset of a row."""
    found: dict[str, dict[str, list[float]]] = {}
    for preset in (next(iter(presets)) for _, presets in ROWS):
        runs, found[preset] = evaluated(data, preset), {}
        for a, b in PAIRS:
            [pair] = compare(runs[b], runs[a], unjudged="accept", seed=0).pairs
            numbers = (pair.difference, pair.interval.low, pair.interval.high)
            found[preset][f"{a} - {b}"] = [round(number, 3) for number in numbers]
    return found


def kept(part: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(RECORD.read_text(encoding="utf-8"))[part]
    return found


def table() -> list[str]:
    lines = [f"|gain|libraries|{'|'.join(MODELS)}|", "|---|---|" + "--:|" * len(MODELS)]
    for gain, presets in ROWS:
        [values] = {tuple(f"{value:.4f}" for value in kept("values")[preset].values()) for preset in presets}
        cells = [f"**{value}**" if value == max(values) else value for value in values]
        lines.append(f"|{gain}|{', '.join(presets.values())}|{'|'.join(cells)}|")
    return lines


def test_the_table_is_up_to_date():
    text = README.read_text(encoding="utf-8")
    assert text == with_table(text, "winner", table())


def test_the_definition_decides_which_model_wins():
    winners = [max(kept("values")[next(iter(presets))].items(), key=lambda each: each[1])[0] for _, presets in ROWS]
    assert winners == ["SPLADE++", "SPLADE++", "TAS-B", "BM25"]


def test_the_record_is_what_the_rankings_give(data_dir):
    assert measured(data_dir) == kept("values")
    for preset, pairs in differences(data_dir).items():
        for name, found in pairs.items():
            assert np.allclose(found, kept("differences")[preset][name], atol=0.0011), (preset, name)


def test_what_is_said_of_chance_is_so():
    first, _, third, last = (kept("differences")[next(iter(presets))] for _, presets in ROWS)
    assert last["SPLADE++ - BM25"][2] < 0  # the upper end of the interval
    for row in (first, third):
        _, low, high = row["SPLADE++ - TAS-B"]
        assert low < 0 < high


@pytest.mark.parametrize(
    ("block", "needs"),
    list(enumerate([(), ("sklearn",), ("torch", "torchmetrics"), ("lightgbm",), ("ir_measures",)])),
    ids=["score", "sklearn", "torch", "lightgbm", "other measures"],
)
def test_a_block_runs_alone_and_prints_what_is_shown(block, needs, capsys):
    for library in needs:
        pytest.importorskip(library)
    code, shown = code_and_output(README)[block]
    # Another version of a library trains another model, which may stop a few rounds sooner or later.
    slack = {1: [0, 0.02], 2: [0.02], 3: [5, 0.02]}.get(block, 1e-12)
    assert_shown(*run_blocks(capsys, code), shown, slack)


def test_it_counts_the_presets():
    said = re.search(r"(\d+) presets\b", README.read_text(encoding="utf-8"))
    assert said
    assert int(said[1]) == len(PRESETS)


def test_the_first_page_is_short():
    text = README.read_text(encoding="utf-8")
    assert len(text.split()) <= 850
    assert all(code.count("\n") <= 15 for code, _ in code_and_output(README))


if __name__ == "__main__" and "--write" in sys.argv:
    from conftest import _DATA

    if _DATA.is_dir():
        source = "TREC Deep Learning 2019 passage judgments (NIST), runs of castorini/rank_llm; 43 queries, NDCG@10"
        found = {"source": source, "values": measured(_DATA), "differences": differences(_DATA)}
        RECORD.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    README.write_text(with_table(README.read_text(encoding="utf-8"), "winner", table()), encoding="utf-8")
