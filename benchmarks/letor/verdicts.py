"""What the answers allow to be said: by query and seed, with intervals that hold together, and a margin."""

from __future__ import annotations

import json
import os
import platform
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.__main__ import _processor, _version
from benchmarks.letor.cells import Answers, Cell
from benchmarks.letor.folders import Folder
from benchmarks.letor.metrics import LETOR, LINEAR, REPORTED
from ndcg_ml import compare

MARGIN = 0.005
"""What does not matter, in NDCG@10."""
REFERENCES = {"trees": "LightGBM lambdarank", "network": "SoftmaxLoss(gain)", "attention": "SoftmaxLoss(gain)"}
LIBRARIES = ("numpy", "torch", "lightgbm", "xgboost", "catboost", "allrank", "rax", "jax")
COUNTERPARTS = (
    ("SoftmaxLoss(gain)", "rax softmax"),
    ("SoftmaxLoss(listnet)", "allRank listNet"),
    ("ListMLELoss", "allRank listMLE"),
    ("ListMLELoss", "rax listmle"),
    ("ApproxNDCGLoss", "allRank approxNDCG"),
    ("ApproxNDCGLoss", "rax approx NDCG"),
    ("NeuralNDCGLoss", "allRank neuralNDCG"),
    ("LambdaNDCGLoss(lambdarank)", "allRank lambdaLoss(lambdaRank)"),
    ("LambdaNDCGLoss(lambdarank)", "rax lambdarank"),
    ("LambdaNDCGLoss(ndcg2pp)", "allRank lambdaLoss(ndcgLoss2++)"),
)
"""Our losses, and other packages' forms of them."""
TRAINED_ON = (
    "NDCGObjective(exponential, k = 10)",
    "NDCGObjective(exponential)",
    "NDCGObjective(linear, k = 10)",
    "NDCGObjective(linear)",
)
MATCHING = {"exponential": ("reported", TRAINED_ON[0]), "linear": ("linear", TRAINED_ON[2])}
"""By the gain that is reported: the values, and the objective of the same definition."""
ACROSS = "across"
CONFIDENCE = 0.95
_DRAWS = 9999

Values = dict[str, np.ndarray]
"""Of one contender, by what is reported: one row per seed, one column per query."""


def write_report(cells: list[Cell], answers: Answers, folders: list[Folder], out: Path) -> None:
    """All comparisons of these cells, as JSON."""
    report: dict[str, Any] = {
        "date": date.today().isoformat(),
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "system": f"{platform.system()} {platform.machine()}",
        },
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in LIBRARIES},
        "reported": str(REPORTED),
        "linear": str(LINEAR),
        "letor4": str(LETOR),
        "margin": MARGIN,
        "seconds": round(sum(answers.of[cell.key]["seconds"] for cell in cells)),
        "data": {folder.name: _report_of(folder.name, cells, answers) for folder in folders},
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=1) + "\n")


def _report_of(data: str, cells: list[Cell], answers: Answers) -> dict[str, Any]:
    """One data set: every kind, and the best of each kind side by side."""
    report: dict[str, Any] = {}
    by_kind: dict[str, dict[str, Values]] = {}
    for kind in ("trees", "network", "attention"):
        of_kind = [cell for cell in cells if cell.data == data and cell.kind == kind]
        if of_kind:
            rows = {name: _row(_of(of_kind, name, answers)) for name in dict.fromkeys(cell.name for cell in of_kind)}
            values = {name: row.pop("values") for name, row in rows.items()}
            by_kind[kind] = values
            report[kind] = {
                "folds": len({cell.fold for cell in of_kind}),
                "seeds": of_kind[0].seeds,
                "length": of_kind[0].length,
                "queries": int(next(iter(values.values()))["reported"].shape[1]),
                "rows": rows,
                "against": _verdicts(values, REFERENCES[kind], "reported"),
                "against_linear": _verdicts(values, REFERENCES[kind], "linear"),
            }
    stopping = [cell for cell in cells if cell.data == data and cell.kind == "stopping"]
    if stopping:
        report["stopping_folds"] = len({cell.fold for cell in stopping})
        report["stopping"] = {
            name: _stopping([answers.of[cell.key] for cell in stopping if cell.name == name])
            for name in dict.fromkeys(cell.name for cell in stopping)
        }
    if "trees" in report and "network" in report:
        side_by_side, folds = _on_common_folds(data, cells, answers)
        against = _verdicts(side_by_side, REFERENCES["trees"], "reported")
        report[ACROSS] = against and {**against, "folds": folds}
        report["best"] = _best(side_by_side, list(report["trees"]["rows"]))
    if "network" in report:
        report["counterparts"] = _counterparts(by_kind["network"])
    if all(name in by_kind.get("trees", ()) for name in TRAINED_ON):
        objectives = {name: by_kind["trees"][name] for name in TRAINED_ON}
        report["trained_on"] = {gain: _verdicts(objectives, name, what) for gain, (what, name) in MATCHING.items()}
    return report


def _on_common_folds(data: str, cells: list[Cell], answers: Answers) -> tuple[dict[str, Values], int]:
    """Trees, networks and, where they have them all, networks with attention, on the folds that both of the first have.

    A run that goes on may have got further with one kind than with another.
    """
    folds_of = {
        kind: {cell.fold for cell in cells if (cell.data, cell.kind) == (data, kind)}
        for kind in ("trees", "network", "attention")
    }
    common = folds_of["trees"] & folds_of["network"]
    chosen = [cell for cell in cells if cell.data == data and cell.fold in common]
    return {
        _label(kind, name): _row(_of([cell for cell in chosen if cell.kind == kind], name, answers))["values"]
        for kind, folds in folds_of.items()
        if common <= folds
        for name in dict.fromkeys(cell.name for cell in chosen if cell.kind == kind)
    }, len(common)


def _best(every: dict[str, Values], trees: list[str]) -> dict[str, Any]:
    """The best of this library's losses less the best trees. Both were picked for being best."""
    from benchmarks.letor.networks import OURS

    ours = [one.name for one in OURS if one.module == "ndcg_ml"]
    losses = [name for one in ours for name in (one, _label("attention", one)) if name in every]
    best, tree = (max(names, key=lambda name: every[name]["reported"].mean()) for names in (losses, trees))
    pair = _verdicts({tree: every[tree], best: every[best]}, tree, "reported")
    assert pair is not None
    return {"loss": best, "trees": tree, **pair["pairs"][best]}


def _counterparts(every: dict[str, Values]) -> dict[str, Any]:
    """Each of our losses less another package's form of it. The intervals of all pairs hold together (Bonferroni)."""
    there = [(ours, other) for ours, other in COUNTERPARTS if ours in every and other in every]
    pairs = []
    for ours, other in there:
        confidence = 1 - (1 - CONFIDENCE) / len(there)
        compared = _verdicts({other: every[other], ours: every[ours]}, other, "reported", confidence)
        assert compared is not None
        pairs.append({"ours": ours, "other": other, **compared["pairs"][ours]})
    return {"confidence_of_all": CONFIDENCE, "pairs": pairs}


def _label(kind: str, name: str) -> str:
    return f"{name}, with attention" if kind == "attention" else name


def _of(cells: list[Cell], name: str, answers: Answers) -> list[dict]:
    """The answers of a contender, fold by fold."""
    return [answers.of[cell.key] for cell in sorted(cells, key=lambda cell: cell.fold) if cell.name == name]


def _row(folds: list[dict]) -> dict[str, Any]:
    """Means of a contender, and its values by seed and query."""
    seeds = range(len(folds[0]["seeds"]))
    values = {
        what: np.array([np.concatenate([fold["seeds"][seed][what] for fold in folds]) for seed in seeds])
        for what in ("reported", "linear")
    }
    by_seed = values["reported"].mean(1)
    sizes = np.array([len(fold["seeds"][0]["reported"]) for fold in folds], dtype=float)
    everything = np.array([fold["seeds"][0]["letor4_queries"] for fold in folds], dtype=float)
    tuned = np.average([fold["tuned"] for fold in folds], weights=sizes)
    return {
        "values": values,
        "mean": round(float(by_seed.mean()), 5),
        "by_fold": [round(float(np.mean([seed["reported"] for seed in fold["seeds"]])), 5) for fold in folds],
        "sd_of_seeds": round(float(by_seed.std(ddof=1)), 5) if len(by_seed) > 1 else None,
        "linear": round(float(values["linear"].mean()), 5),
        "tuned": round(float(tuned), 5),
        "letor4": {
            k: round(float(np.average(_by_fold(folds, k), weights=everything)), 5)
            for k in folds[0]["seeds"][0]["letor4"]
        },
        "settings": [[fold["rate"], fold.get("temperature", fold.get("size"))] for fold in folds],
        "at_an_end": sum(fold["at_an_end"] for fold in folds),
        "seconds": round(sum(fold["seconds"] for fold in folds)),
    }


def _by_fold(folds: list[dict], k: str) -> list[float]:
    """The value of each fold under LETOR's definition, a mean over the seeds."""
    return [float(np.mean([seed["letor4"][k] for seed in fold["seeds"]])) for fold in folds]


def _verdicts(
    values: dict[str, Values], reference: str, what: str, confidence: float = CONFIDENCE
) -> dict[str, Any] | None:
    """Each contender less the reference: simultaneous intervals over queries and seeds, and what they allow to say."""
    if reference not in values or len(values) < 2:
        return None
    runs = {name: list(value[what]) for name, value in values.items()}
    fewest = min(map(len, runs.values()))
    queries = np.arange(len(runs[reference][0]))
    systems = {name: several[:fewest] for name, several in runs.items()}
    if fewest == 1:
        systems = {name: several[0] for name, several in systems.items()}
    compared = compare(
        systems,
        baseline=reference,
        margin=MARGIN,
        measure="NDCG@10",
        qid=queries,
        confidence=confidence,
        n_resamples=_DRAWS,
        seed=0,
    )
    return {
        "reference": reference,
        "pairs": {
            pair.b: {
                "difference": round(pair.difference, 5),
                "low": round(pair.interval.low, 5),
                "high": round(pair.interval.high, 5),
                "p_adjusted": round(pair.p_adjusted, 5),
                "verdict": pair.verdict,
            }
            for pair in compared.pairs
        },
    }


def _stopping(folds: list[dict]) -> dict[str, Any]:
    """What stopping by each rule costs, against stopping on what is reported with the rows as they are."""
    rules = list(folds[0]["rules"])
    n_seeds = len(folds[0]["rules"][rules[0]])
    values = {
        rule: {
            "reported": np.array(
                [np.concatenate([fold["rules"][rule][seed]["reported"] for fold in folds]) for seed in range(n_seeds)]
            )
        }
        for rule in rules
    }
    reference = "StopEarly, what is reported, rows file"
    # A seed is one boosting under every rule, so a rule is compared with the reference on the same seed. The reference
    # stands at its mean over the seeds and a rule at its differences from it, which leaves the noise of these alone.
    at = values[reference]["reported"]
    paired = {rule: {"reported": at.mean(0) + value["reported"] - at} for rule, value in values.items()}
    return {
        "rows": {
            rule: {
                "mean": round(float(values[rule]["reported"].mean()), 5),
                "median_round": float(np.median([one["round"] for fold in folds for one in fold["rules"][rule]])),
            }
            for rule in rules
        },
        "against": _verdicts(paired, reference, "reported"),
    }
