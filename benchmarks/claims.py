"""The figures of four pages of docs/, from the records: ``python -m benchmarks.claims`` writes them.

A claim is a part of a page, in which each ``{}`` is a figure that a record gives.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import coverage, gating, verdicts
from ndcg_ml._statistics.differences import FewChanged

ROOT = Path(__file__).parents[1]
NUMBER = r"(-?\d+(?:\.\d+)?)"
# What a record must give: decimals, percentages, and numbers with a unit.
FIGURE = re.compile(r"(?<![\w/.-])(?:\d*\.\d+|\d+(?= %)|\d+(?= (?:times|s|ms|MB|GB)\b))")
CONSTANTS = {
    "evidence": ("95 %", "its 5 %", "LETOR 4.0", "differences of .01 real", "1 % relevant"),
    "deciding": (
        *("95 %", "a 5 % error", "exceeds 5 %", "of 80 %"),
        *("within 0.02", "more than 0.05", "below .05", "at most 0.05", "difference of 0.01"),
    ),
    "gate": ("(1.96 + 0.84) sd", "80 % of cases", "at 95 %", "1 - 0.05^(1/n)", "N(0, 0.1)"),
    "faq": (),
}


def record(name: str, folder: str = "benchmarks") -> Any:
    """Return a record, or the text of a table."""
    text = (ROOT / folder / "results" / name).read_text(encoding="utf-8")
    return json.loads(text) if name.endswith(".json") else text


def span(values: Iterable[float], digits: int = 1) -> list[float]:
    """Return the smallest and the largest value."""
    values = [*values]
    return [round(min(values), digits), round(max(values), digits)]


def percent(*rows: dict[str, list[float]], n: str = "") -> list[float]:
    """Return the smallest and the largest share of some rows of verdicts.json, or of those for n queries."""
    return span(100 * cell[0] for row in rows for size, cell in row.items() if cell and n in ("", size))


def significant(values: Iterable[float], digits: int) -> list[float]:
    """Return the smallest and the largest value, with this number of significant digits."""
    return [float(f"{value:.{digits}g}") for value in span(values)]


def claims() -> dict[str, dict[str, Any]]:
    """Return the figures of each claim of each page."""
    clients = re.findall(r"^\| .* \d{4}-\d\d-\d\d \|", record("clients.md", "reliability"), re.MULTILINE)
    suites, grids, gate = record("suites.json", "reliability")["suites"], record("verdicts.json"), record("gating.json")
    rows = [record(name, "reliability")["count"] / 1e6 for name in ("stress.json", "parquet.json")]
    intervals, labels, letor = record("coverage.json"), record("unjudged.json")["labels"], record("letor.json")
    cells = [100 * share for name in coverage.POPULATIONS for share, _ in intervals["cells"][name].values()]
    rare = [round(100 * min(intervals["cells"][name][n][0] for name in coverage.RARE)) for n in ("30", "50")]
    weights, ones = ([row for name, row in grids["slices_hard"].items() if of in name] for of in ("Pareto", "ones"))
    good = [cell[0] for name, row in grids["width"].items() if "good" in name for cell in row.values()]
    several = round(percent(*grids["unseen"].values(), n="20")[1])

    rates = {row["cell"]: row["result"] for row in record("decisions.json")}
    alike = {
        words: span(rate for name, rate in rates.items() if name.startswith(words))
        for words in ("simultaneous", "false 'not worse'", "type I error, 5 seeds", "type I error, 4 systems of 2")
    }
    users, few_users = (
        round(rates[f"type I error without cluster=, {who}"]) for who in ("50 users", "20 users of 50 queries")
    )
    size = "20 candidates, 50 queries"
    best, fair = (round(rates[f"bias of the {what} score, {size}"], 3) for what in ("best", "corrected"))
    clear = rates["bias of the corrected score, 50 candidates, 50 queries, one candidate better by .05"]
    pairs = record("deciding.json")["rows"]
    sds, needed = [row["deviation"] for row in pairs], [row["needed_for_0.01"] for row in pairs]

    equal = [case for case in gate["cases"] if case["true"] == 0]
    passes = [case["pass"] for case in gate["cases"] if case["true"] <= -gate["margin"]]
    outcomes = [round(100 * max(case["worse"] for case in equal), 1), round(100 * max(passes), 1)]
    step = round(gate["step"] / gate["margin"], 1)
    alone, both = (
        span(100 * row["references"][name]["step"] for row in gate["persistent"]) for name in ("the baseline", "both")
    )
    changed = round(100 * FewChanged(share=3 / 50, n=50, loss=1, gain=1).share_at_most(0.05))
    unseen = {n: 100 * (1 - 0.05 ** (1 / n)) for n in (20, 100, 200, 1000)}
    right = [
        round(np.median([row["right"] for row in labels if (row["data"], row["order"]) == (data, order)]))
        for data in ("TREC DL 2019", "MQ2008")
        for order in ("judge_next", "random")
    ]

    letor = letor["data"]["mq2008"]
    means = sorted(row["mean"] for row in letor["network"]["rows"].values())
    first = [of["against"]["pairs"][f"{name}'s own, rows best first"] for name, of in letor["stopping"].items()]
    gains = [abs(pair["difference"]) for of in letor["trained_on"].values() for pair in of["pairs"].values()]
    runs = re.findall(r"\| (0\.\d+) \|", record("letor.md").split("## A second run")[1])
    again = np.subtract(*np.reshape([*map(float, runs)], (2, 2))).round(3)

    speed = {
        each["title"]: each["timings"]
        for name in ("rounds.json", "speed.json", "catalogue.json", "runs.json")
        for bench in record(name)["results"].values()
        for each in bench
    }
    times = lambda words: next(found for title, found in speed.items() if words in title)  # noqa: E731
    ms = lambda words: [round(each["median_ms"], 1) for each in times(words)]  # noqa: E731
    shares = lambda words: [float(each["note"].split("%")[0]) for each in times(words)]  # noqa: E731
    million = round(record("rounds.json")["results"]["rounds"][0]["rows"] / 1e6, 2)
    ratios = {each["name"]: round(each["ratio"], 1) for each in times("other formats")}
    epoch = {each["name"]: each["median_ms"] for each in times("validation epoch")}
    seconds = [round(each / 1e3, 1) for each in ms("5000000 lines")]
    memory = round(float(re.findall(r"(\d+) MB", times("5000000 lines")[0]["note"])[0]) / 1e3, 1)
    return {
        "evidence": {
            "{} clients (searches": [len(clients)],
            "Of {} tests of scikit-learn and torchmetrics, {} pass": [
                sum(each[what] for each in suites) for what in ("run", "passed")
            ],
            "{} million rows in memory, files of {} million rows": rows,
            "at least {} % of {} samples in each of {} cells": [span(cells)[0], intervals["samples"], len(cells)],
            "lack it, {} % with 30 queries and {} % with 50": rare,
            "20 or 200 queries in the slice, in {} to {} %": percent(*grids["slices"].values()),
            "With heavy weights in {} to {} %": percent(*weights),
            "near 1, with 20 queries, in {} to {} %": percent(*ones, n="20"),
            "Simultaneous coverage is {} to {} %": alike["simultaneous"],
            'A false "not worse" occurs in {} to {} %': alike["false 'not worse'"],
            "has a type I error of {} % (of {} % over 50 queries each of 20 users)": [users, few_users],
            "; with it {} %": [round(rates["type I error with cluster=, 50 users"], 1)],
            "Five seeds as a list: {} to {} %": alike["type I error, 5 seeds"],
            "four systems of two seeds: {} to {} %": alike["type I error, 4 systems of 2"],
            "in at most {} % of cases if losses have one size": percent(*grids["few"].values())[1:],
            "it can pass in {} % of cases with 20 queries": [several],
            "on 50 queries is {} too high, the corrected one {} too low": [best, -fair],
            "{} too low if one of 50 candidates is clearly best": [round(-clear, 3)],
            '"worse" in at most {} % of runs, and a loss of the margin passes in at most {} %': outcomes,
            "{} harmless commits, a step of {} margins is caught in {} to {} %": [gating.STEP_AT - 1, step, *alone],
            "in {} to {} % by two references": both,
            "after {} labels on TREC (random order {}) and {} on MQ2008 ({})": right,
            "covers {} to {} %, whatever the model's bias": percent(*grids["corrected"].values()),
            "With a good model it is {} to {} times as wide": span(good),
            "({} test queries": [letor["network"]["queries"]],
            "All but one of {} lie between {} and {}": [len(means), *span(means[1:], 3)],
            "keep round 1: {} less NDCG@10": [-span((pair["difference"] for pair in first), 3)[0]],
            "At most {} either way": [span(gains, 3)[1]],
            "changed a difference of {} to {}": again,
            "On {} million rows, the compiled": [million],
            "takes {} % of an update of LightGBM (its own metric {} %, NumPy {} %)": shares("metric in LightGBM"),
            "and {} % of XGBoost's (its own {} %, NumPy {} %)": shares("metric in XGBoost"),
            "On arrays it takes {} ms, CatBoost's own {} ms and NumPy {} ms": ms("metric of CatBoost"),
            "epoch takes {} times as long with `NDCG` (NumPy kernel {}), {} with torchmetrics' metric": [
                round(epoch[f"epoch with {metric}"] / epoch["epoch without a metric"], 1)
                for metric in (
                    *("ndcg_ml.torch.NDCG, compiled kernel", "ndcg_ml.torch.NDCG, NumPy kernel"),
                    "torchmetrics RetrievalNormalizedDCG",
                )
            ],
            "take {} s in `evaluate_topk`, a million users {} s": [
                round(ms("50000 users, 10")[0] / 1e3, 2), round(ms("1000000 users")[0] / 1e3, 1)
            ],
            "5 million lines take {} s of processor time and {} GB": [seconds[0], memory],
            "pytrec_eval takes {} s, ir_measures {} s and ranx {} s": seconds[1:],
            "CSV takes {} times as long as TREC, JSONL {} times": [ratios["csv"], ratios["jsonl"]],
        },
        "deciding": {
            'false "not worse" occurs in {} to {} %': alike["false 'not worse'"],
            "several sizes, in up to {} % with 20 queries": [several],
            "100 queries can miss a problem that {} % of queries have": [round(unseen[100])],
            "[{} %](../benchmarks/results/decisions.md#error-rates-and-power) of cases (50 users": [users],
            "or {} % (20 users, 50 queries each) instead of 5": [few_users],
            "[type I error](../benchmarks/results/decisions.md#error-rates-and-power) of {} %": [
                round(rates["the same, 4 systems of 2 seeds, one system's vary by .1, others' by .02"], 1)
            ],
            "50 perfect queries have the interval {} to 1": [round(verdicts.of_values(np.ones(50)).interval().low, 3)],
            "at least {} % of samples in [{} simulated cells]": [span(cells)[0], len(cells)],
            "differences below about {} to {}": span((2.8 * sd / 50**0.5 for sd in sds), 2),
            "takes from {} to {} queries": significant(needed, 1),
        },
        "gate": {
            "each of {} commits changes": [gating.COMMITS],
            "loses {} margins at commit {}, and the drift loses {}": [step, gating.STEP_AT, gate["drift"]],
            "(margin {}, {} series)": [gate["margin"], gate["series"]],
            "{} to {} (median {}) in {} pairs": [*span(sds, 2), round(float(np.median(sds)), 2), len(sds)],
            '"worse" in at most {} % of runs, and a loss of the margin passes in at most {} %': outcomes,
            "outcome of {} % of equal systems": [round(100 * max(case["undecided"] for case in equal))],
            "up to {} % of all queries may change": [changed],
            "{} % with 20 queries, {} % with 200, and {} % with 1000": [
                round(unseen[20]), round(unseen[200], 1), round(unseen[1000], 1)
            ],
        },
        "faq": {
            "on {} million rows takes {} ms": [million, *ms("metric in LightGBM")[:1]],
            # A difference twice as large needs a quarter of the queries.
            "a difference of 0.02, {} to {} queries": significant((each / 4 for each in needed), 2),
        },
    }  # fmt: skip


def _pattern(text: str, hole: str = NUMBER) -> str:
    return re.escape(text).replace(r"\ ", r"\s+").replace(r"\{\}", hole)


def written(page: str, text: str) -> str:
    """Return the text of a page with the figures of the records."""
    for claim, figures in claims()[page].items():
        found = [*re.finditer(_pattern(claim), text)]
        if len(found) != 1 or claim.count("{}") != len(figures):
            raise ValueError(f"docs/{page}.md must say {claim!r} once, with {figures}; got it {len(found)} times")
        for at, figure in reversed([*enumerate(figures, start=1)]):
            begin, end = found[0].span(at)
            text = f"{text[:begin]}{figure:g}{text[end:]}"
    return text


def others(page: str, text: str) -> list[str]:
    """Return the lines of a page with figures that are in no claim, code, table of a record or constant."""
    text = text.replace(gating.table(record("gating.json")), "")
    for part in (*claims()[page], *CONSTANTS[page]):
        text, n = re.subn(_pattern(part), "", text)
        if not n:
            raise ValueError(f"docs/{page}.md must say {part!r}, or claims.py must not")
    text = re.sub(r"^```.*?^```|<!-- margins -->\n\n(?:\|.*\n)+", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`\n]+`|\]\([^)]*\)", "", text)
    return [line for line in text.splitlines() if FIGURE.search(line)]


if __name__ == "__main__":
    for name in CONSTANTS:
        path = ROOT / "docs" / f"{name}.md"
        path.write_text(written(name, path.read_text(encoding="utf-8")), encoding="utf-8")
