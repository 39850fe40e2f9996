"""What the losses are worth on real data: ``python -m benchmarks.training``.

One small network is trained by each loss on the queries of LightGBM's ranking example, all else being equal: features,
architecture, initialisation and order of the batches (by the seed), optimiser. Learning rate, temperature (where the
loss has one) and number of epochs are those of the best mean NDCG@10 over folds of the training queries. The test
queries are scored once, by networks trained on all training queries, one a seed. Boosted trees are there for scale.

``--page`` runs nothing: it writes the table of the last run into docs/losses.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.__main__ import _processor, _version
from benchmarks.workloads import DATA

os.environ["OMP_NUM_THREADS"] = "1"  # __main__ asks for two; torch and LightGBM are loaded below

import lightgbm as lgb
import torch
from scipy.stats import bootstrap
from torch import Tensor, nn

from ndcg_ml import Flavor, evaluate, ndcg_score
from ndcg_ml.demo import Split, letor_problem
from ndcg_ml.lightgbm import NDCGEval, NDCGObjective
from ndcg_ml.torch import (
    ApproxNDCGLoss,
    LambdaNDCGLoss,
    ListMLELoss,
    NeuralNDCGLoss,
    PlackettLuceNDCGLoss,
    SoftmaxLoss,
    Stochastic,
    ndcg,
)

FOLDER = DATA / "lightgbm_lambdarank"
RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[1] / "docs" / "losses.md"
BEGIN, END = "<!-- table: written by python -m benchmarks.training --page -->", "<!-- end of table -->"

METRIC = Flavor.preset("lightgbm", k=10)
FLAVOR = METRIC.replace(k=None)
REFERENCE = "SoftmaxLoss(gain)"
LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch", "lightgbm")

FOLDS = 3
CHOICE_SEEDS = 2
BATCH = 32  # queries
HIDDEN = 32
WEIGHT_DECAY = 0.01
LEARNING_RATES = (0.0005, 0.002, 0.008)
TEMPERATURES = (0.1, 0.3, 1.0)
RESAMPLES = 9999

# Those of LightGBM's own example for these data, but for what is searched.
TREES = {
    "num_leaves": 31,
    "min_data_in_leaf": 50,
    "min_sum_hessian_in_leaf": 5.0,
    "bagging_fraction": 0.9,
    "bagging_freq": 1,
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
    "metric": "None",
}
TREE_RATES = (0.03, 0.1, 0.3)
ROUNDS = 100

Values = NDArray[np.float64]
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Setting:
    """What is chosen on the folds."""

    learning_rate: float
    temperature: float | None = None


@dataclass(frozen=True)
class Contender:
    """A loss by the name it has in the report; `build` is given the temperature and a generator."""

    name: str
    build: Callable[[float, torch.Generator], Loss]
    has_temperature: bool = False

    @property
    def settings(self) -> list[Setting]:
        temperatures = TEMPERATURES if self.has_temperature else (None,)
        return [Setting(*pair) for pair in product(LEARNING_RATES, temperatures)]


def squared_error(scores: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """Pointwise: the gain of a document over that of the highest grade, 4."""
    gain = (torch.exp2(labels) - 1) / 15
    return ((scores - gain)[mask] ** 2).mean()


CONTENDERS = (
    Contender("squared error of the gains", lambda t, g: squared_error),
    Contender("SoftmaxLoss(gain)", lambda t, g: SoftmaxLoss(FLAVOR)),
    Contender("SoftmaxLoss(xendcg)", lambda t, g: SoftmaxLoss(FLAVOR, target="xendcg", generator=g)),
    Contender("ListMLELoss", lambda t, g: ListMLELoss(FLAVOR, generator=g)),
    Contender("ApproxNDCGLoss(logistic)", lambda t, g: ApproxNDCGLoss(FLAVOR, temperature=t), True),
    Contender(
        "ApproxNDCGLoss(logistic), k = 10",
        lambda t, g: ApproxNDCGLoss(METRIC, temperature=t, cut_temperature=t),
        True,
    ),
    Contender("ApproxNDCGLoss(laplace)", lambda t, g: ApproxNDCGLoss(FLAVOR, temperature=t, step="laplace"), True),
    Contender(
        "Stochastic(ApproxNDCGLoss)",
        lambda t, g: Stochastic(ApproxNDCGLoss(FLAVOR, temperature=t), generator=g),
        True,
    ),
    Contender("NeuralNDCGLoss", lambda t, g: NeuralNDCGLoss(FLAVOR, temperature=t), True),
    Contender("NeuralNDCGLoss(sinkhorn=20)", lambda t, g: NeuralNDCGLoss(FLAVOR, temperature=t, sinkhorn=20), True),
    Contender("PlackettLuceNDCGLoss", lambda t, g: PlackettLuceNDCGLoss(FLAVOR, generator=g)),
    Contender("LambdaNDCGLoss(lambdarank)", lambda t, g: LambdaNDCGLoss(FLAVOR)),
    Contender("LambdaNDCGLoss(lambdarank), k = 10", lambda t, g: LambdaNDCGLoss(METRIC)),
    Contender("LambdaNDCGLoss(ndcg2pp)", lambda t, g: LambdaNDCGLoss(FLAVOR, scheme="ndcg2pp")),
)
OBJECTIVES: dict[str, str | NDCGObjective] = {
    "LightGBM, lambdarank": "lambdarank",
    'LightGBM, NDCGObjective("lightgbm")': NDCGObjective("lightgbm"),
    'LightGBM, NDCGObjective("lightgbm@10")': NDCGObjective("lightgbm@10"),
}


class Scale:
    """Features as the network sees them: standardised by the rows it is trained on."""

    def __init__(self, rows: Values) -> None:
        self.varies = rows.std(0) > 0
        self.mean, self.deviation = rows[:, self.varies].mean(0), rows[:, self.varies].std(0)

    def __call__(self, split: Split) -> tuple[Tensor, Tensor, Tensor]:
        # A feature that is rare in the training rows has values many deviations away.
        features = ((split.features[:, self.varies] - self.mean) / self.deviation).clip(-3, 3).astype(np.float32)
        arrays = split.padded(features), split.padded(split.labels), split.mask
        return tuple(map(torch.from_numpy, arrays))


def network(features: int) -> nn.Module:
    return nn.Sequential(nn.Linear(features, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1), nn.Flatten(-2))


def train(
    contender: Contender, setting: Setting, data: tuple[Tensor, Tensor, Tensor], seed: int, epochs: int
) -> Iterator[nn.Module]:
    """The network after each epoch."""
    generator = torch.Generator().manual_seed(seed)
    loss = contender.build(setting.temperature or 1.0, torch.Generator().manual_seed(seed))
    torch.manual_seed(seed)
    model = network(data[0].shape[-1])
    optimizer = torch.optim.AdamW(model.parameters(), lr=setting.learning_rate, weight_decay=WEIGHT_DECAY)
    for _ in range(epochs):
        for batch in torch.randperm(len(data[0]), generator=generator).split(BATCH):
            features, labels, mask = (part[batch] for part in data)
            optimizer.zero_grad()
            loss(model(features), labels, mask).backward()
            optimizer.step()
        yield model


@torch.no_grad()
def per_query(model: nn.Module, data: tuple[Tensor, Tensor, Tensor]) -> Values:
    features, labels, mask = data
    return ndcg(model(features), labels, mask=mask, flavor=METRIC).double().numpy()


def folds(split: Split) -> list[tuple[Split, Split]]:
    """To train on and to score on, whole queries each."""
    parts = np.array_split(np.random.default_rng(0).permutation(split.sizes.size), FOLDS)
    return [
        (split.of_queries(np.concatenate([p for p in parts if p is not part])), split.of_queries(part))
        for part in parts
    ]


def best_of(curves: dict[Setting, Values]) -> tuple[Setting, int, float]:
    """The setting and number of epochs or rounds with the best mean over the folds."""
    setting = max(curves, key=lambda one: curves[one].max())
    epoch = int(curves[setting].argmax())
    return setting, epoch + 1, float(curves[setting][epoch])


def of_loss(contender: Contender, split: Split, test: Split, seeds: int, epochs: int) -> dict[str, object]:
    """Choose on the folds, train on everything, score the test queries."""
    scaled = [tuple(map(Scale(fit_on.features), (fit_on, score_on))) for fit_on, score_on in folds(split)]
    curves = {
        setting: np.mean(
            [
                [per_query(model, held_out).mean() for model in train(contender, setting, data, seed, epochs)]
                for data, held_out in scaled
                for seed in range(CHOICE_SEEDS)
            ],
            axis=0,
        )
        for setting in contender.settings
    }
    setting, chosen, validation = best_of(curves)
    data, held_out = map(Scale(split.features), (split, test))
    values, seconds = [], []
    for seed in range(seeds):
        began = time.process_time()
        *_, model = train(contender, setting, data, seed, chosen)
        seconds.append(time.process_time() - began)
        values.append(per_query(model, held_out))
    return {
        "name": contender.name,
        "settings": len(curves),
        "learning_rate": setting.learning_rate,
        "temperature": setting.temperature,
        "epochs": chosen,
        "validation": validation,
        "ms_per_epoch": 1e3 * float(np.median(seconds)) / chosen,
        **described(np.array(values)),
    }


def of_trees(
    name: str, objective: str | NDCGObjective, split: Split, test: Split, seeds: int, rounds: int
) -> dict[str, object]:
    """The same for boosted trees: learning rate and number of rounds on the folds."""

    def params(rate: float, seed: int) -> dict[str, object]:
        return {**TREES, "objective": objective, "learning_rate": rate, "seed": seed}

    def dataset(part: Split) -> lgb.Dataset:
        return lgb.Dataset(part.features, part.labels, group=part.sizes, free_raw_data=False)

    curves: dict[Setting, list[Values]] = {Setting(rate): [] for rate in TREE_RATES}
    for setting, (fit_on, score_on) in product(curves, folds(split)):
        seen: dict[str, dict[str, list[float]]] = {}
        lgb.train(
            params(setting.learning_rate, 0),
            dataset(fit_on),
            rounds,
            valid_sets=[dataset(score_on)],
            feval=NDCGEval(METRIC),
            callbacks=[lgb.record_evaluation(seen)],
        )
        ((curve,),) = (by_metric.values() for by_metric in seen.values())
        curves[setting].append(np.array(curve))
    setting, chosen, validation = best_of({one: np.mean(several, axis=0) for one, several in curves.items()})
    data = dataset(split)
    boosters = [lgb.train(params(setting.learning_rate, seed), data, chosen) for seed in range(seeds)]
    values = [
        evaluate(test.labels, booster.predict(test.features), group=test.sizes, flavor=METRIC).per_query.ndcg
        for booster in boosters
    ]
    return {
        "name": name,
        "settings": len(curves),
        "learning_rate": setting.learning_rate,
        "temperature": None,
        "rounds": chosen,
        "validation": validation,
        **described(np.array(values)),
    }


def described(values: Values) -> dict[str, object]:
    """Mean, spread and range of the NDCG of each seed (row) and test query."""
    by_seed = values.mean(1)
    return {
        "mean": float(by_seed.mean()),
        "sd_of_seeds": float(by_seed.std(ddof=1)) if len(by_seed) > 1 else None,
        "min": float(by_seed.min()),
        "max": float(by_seed.max()),
        "by_seed": [round(float(value), 6) for value in by_seed],
        "by_query": [round(float(value), 6) for value in values.mean(0)],
    }


def differences(by_query: Values, reference: Values) -> tuple[float, float, float]:
    """The mean difference over the queries, with a 95% bootstrap interval; both are means over the seeds."""
    apart = by_query - reference
    if not apart.any():
        return 0.0, 0.0, 0.0
    drawn = bootstrap((apart,), np.mean, n_resamples=RESAMPLES, method="percentile", rng=np.random.default_rng(0))
    return float(apart.mean()), float(drawn.confidence_interval.low), float(drawn.confidence_interval.high)


COLUMNS = (
    "trained by",
    "NDCG@10",
    "sd",
    "min to max",
    "less SoftmaxLoss(gain)",
    "folds",
    "chosen",
    "of",
    "ms per epoch",
)


def table(report: dict) -> str:
    """The table of the page, and what the noise allows to say of it."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---|--:|--:|--:|--:|--:|---|--:|--:|"]
    lines += [f"| {' | '.join(_cells(row))} |" for row in report["results"]]
    rows = [row for row in report["results"] if row["name"] != REFERENCE]
    above = ", ".join(row["name"] for row in rows if row["low"] > 0) or "none"
    below = ", ".join(row["name"] for row in rows if row["high"] < 0) or "none"
    data = report["data"]
    another = f"another {data['test_queries']} queries would move each of these means by {report['error_of_mean']:.3f}"
    return "\n".join(
        [
            *lines,
            "",
            "NDCG@10: mean over the test queries and the seeds; sd, min and max: over the seeds. Less",
            "SoftmaxLoss(gain): difference on the same queries, with a 95% bootstrap interval over them. Folds: what",
            "the chosen setting scored there, the best of so many. Time: of one core.",
            "",
            f"{report['seeds']} seeds; {data['train_queries']} training queries ({data['train_rows']:,} documents),",
            f"{data['test_queries']} test queries ({data['test_rows']:,}). The documents in random order score",
            f"{report['at_random']:.4f}. **By its standard error, {another}**,",
            f"and another initialisation by about the sd. Of {len(rows)} differences the interval (of the queries",
            f"alone, for one comparison at a time) is above 0 for: {above};",
            f"below 0 for: {below}.",
            f"At an end of what was searched: {_at_the_ends(report)}.",
        ]
    )


def _at_the_ends(report: dict) -> str:
    """How many choices a wider search might change."""
    losses = [row for row in report["results"] if "epochs" in row]
    counts = []
    for key, plural in (("learning_rate", "learning_rates"), ("temperature", "temperatures")):
        chosen = [row[key] for row in losses if row[key] is not None]
        searched = report["settings"][plural]
        at_an_end = sum(value in (min(searched), max(searched)) for value in chosen)
        counts.append(f"{at_an_end} of {len(chosen)} {plural.replace('_', ' ')}")
    return ", ".join(counts)


def _cells(row: dict) -> list[str]:
    apart = "" if row["name"] == REFERENCE else f"{row['difference']:+.4f} ({row['low']:+.4f} to {row['high']:+.4f})"
    temperature = "" if row["temperature"] is None else f"T = {row['temperature']:g}, "
    length = f"{row['epochs']} epochs" if "epochs" in row else f"{row['rounds']} trees"
    return [
        row["name"],
        f"{row['mean']:.4f}",
        "" if row["sd_of_seeds"] is None else f"{row['sd_of_seeds']:.4f}",
        f"{row['min']:.4f} to {row['max']:.4f}",
        apart,
        f"{row['validation']:.4f}",
        f"rate {row['learning_rate']:g}, {temperature}{length}",
        str(row["settings"]),
        f"{row['ms_per_epoch']:.0f}" if "ms_per_epoch" in row else "",
    ]


def markdown(report: dict) -> str:
    """The report as a page."""
    machine, settings = report["machine"], report["settings"]
    where = f"{machine['processor']}, {machine['cores']} cores, {machine['system']}, accelerator: no; 1 thread"
    versions = ", ".join(f"{name} {number}" for name, number in report["versions"].items())
    names = ("learning_rates", "temperatures", "tree_rates")
    rates, temperatures, tree_rates = (", ".join(map(str, settings[name])) for name in names)
    lines = [
        "# Losses: what a network trained by each of them scores",
        "",
        f"{report['date']}; {where}; Python {report['python']}; {versions};",
        f"{report['processor_s'] / 60:.1f} minutes of one core. {report['note']}".rstrip(),
        "",
        "Written by `python -m benchmarks.training`. The data are LightGBM's ranking example. The metric is",
        f"`{report['metric']}`;",
        f"the losses have no cut-off unless named. Network: {settings['network']};",
        f"AdamW, weight decay {settings['weight_decay']:g}, batches of {settings['batch']} queries. Chosen on",
        f"{settings['folds']} folds of the training queries, mean of {settings['choice_seeds']} initialisations:",
        f"learning rate of {rates}; temperature of {temperatures} where the loss has one",
        f"(more settings, hence more luck in the column folds); up to {settings['epochs']} epochs. Trees: learning",
        f"rate of {tree_rates}, up to {settings['rounds']} trees, otherwise as in LightGBM's example for these data;",
        "the seed draws the bagged rows.",
        "",
        table(report),
        "",
    ]
    return "\n".join(lines)


def write_page(report: dict, page: Path = PAGE) -> None:
    """Put the table between the markers."""
    head, rest = page.read_text(encoding="utf-8").split(BEGIN)
    _, tail = rest.split(END)
    page.write_text(f"{head}{BEGIN}\n{table(report)}\n{END}{tail}", encoding="utf-8")


def run(arguments: argparse.Namespace) -> dict:
    """Every contender, as the report."""
    torch.set_num_threads(1)
    began = time.process_time()
    problem = letor_problem(FOLDER / "rank.train", FOLDER / "rank.test", FOLDER / "rank.test")
    split, test = problem.train, problem.test
    results: list[dict] = []
    for contender in CONTENDERS:
        results.append(of_loss(contender, split, test, arguments.seeds, arguments.epochs))
        _say(results[-1], began)
    for name, objective in OBJECTIVES.items():
        results.append(of_trees(name, objective, split, test, arguments.seeds, arguments.rounds))
        _say(results[-1], began)
    (reference,) = (np.array(row["by_query"]) for row in results if row["name"] == REFERENCE)
    for row in results:
        row["difference"], row["low"], row["high"] = differences(np.array(row["by_query"]), reference)
    constant = ndcg_score(
        test.labels, np.zeros(len(test.labels)), group=test.sizes, flavor=METRIC.replace(ties="average")
    )
    empty = sum(not labels.any() for labels in np.split(test.labels, np.cumsum(test.sizes)[:-1]))
    return {
        "date": date.today().isoformat(),
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "system": f"{platform.system()} {platform.machine()}",
        },
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in LIBRARIES},
        "note": arguments.note,
        "processor_s": round(time.process_time() - began, 1),
        "metric": str(METRIC),
        "seeds": arguments.seeds,
        "settings": {
            "network": f"features that vary, standardised and clipped at 3, {HIDDEN} ReLU, 1",
            "weight_decay": WEIGHT_DECAY,
            "batch": BATCH,
            "folds": FOLDS,
            "choice_seeds": CHOICE_SEEDS,
            "learning_rates": LEARNING_RATES,
            "temperatures": TEMPERATURES,
            "epochs": arguments.epochs,
            "tree_rates": TREE_RATES,
            "rounds": arguments.rounds,
        },
        "data": {
            "train_queries": split.sizes.size,
            "train_rows": split.labels.size,
            "test_queries": test.sizes.size,
            "test_rows": test.labels.size,
            "test_empty": int(empty),
        },
        "at_random": constant,
        "error_of_mean": float(reference.std(ddof=1) / np.sqrt(reference.size)),
        "results": results,
    }


def _say(row: dict, began: float) -> None:
    length = row.get("epochs") or row["rounds"]
    chosen = f"rate {row['learning_rate']:g}  T {row['temperature']}  {length}"
    taken = f"{time.process_time() - began:6.0f} s"
    print(f"{taken}  {row['name']:40} test {row['mean']:.4f}  folds {row['validation']:.4f}  {chosen}", flush=True)


def main() -> None:
    """Parse the command line, run, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="networks and ensembles on all training queries")
    parser.add_argument("--epochs", type=int, default=40, help="the most that may be chosen")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="the most trees that may be chosen")
    parser.add_argument("--note", default="", help="a sentence about the machine, for the report")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder to write to")
    parser.add_argument("--page", action="store_true", help="write the table into docs/losses.md and run nothing")
    arguments = parser.parse_args()
    if arguments.page:
        write_page(json.loads((arguments.out / "training.json").read_text()))
        return
    if not FOLDER.is_dir():
        sys.exit(f"skipped: no data at {FOLDER} (NDCG_ML_DATA names another folder)")
    report = run(arguments)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "training.json").write_text(json.dumps(report, indent=1) + "\n")
    (arguments.out / "training.md").write_text(markdown(report))


if __name__ == "__main__":
    main()
