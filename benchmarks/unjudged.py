"""Comparisons with missing labels: ``python -m benchmarks.unjudged``.

It measures how a difference changes if the judgements that only one system contributed are removed, how many labels
determine the winner, and how long an exact range takes. The tables and the figure are in
benchmarks/results/unjudged.md.
"""

from __future__ import annotations

import gzip
import json
import os
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.deciding import RUNS
from ndcg_ml import compare, evaluate, evaluate_run
from ndcg_ml._unjudged.judge_next import _changes
from ndcg_ml._unjudged.ranges import Pair

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "unjudged.json"
PAGE = ROOT / "benchmarks" / "results" / "unjudged.md"
STRONG = ("TAS-B", "ADA-002", "SPLADE++")
ORDERS = ("judge_next", "pooling", "random")
DEPTH = 10

Qrels = dict[str, dict[str, float]]
Run = dict[str, list[str]]


def main() -> None:
    """Measure, and write the record and the tables of the page."""
    data = Path(os.environ.get("NDCG_ML_DATA") or ROOT.parent / "shared" / "data")
    qrels, runs = read_trec(data / "trec_dl19")
    report: dict[str, Any] = {"date": date.today().isoformat()}
    report["uniques"] = [left_out(qrels, runs, a, b) for a, b in permutations(STRONG, 2)]
    report["labels"] = [*trec_pairs(qrels, runs), *mq2008_pairs(data / "mq2008")]
    report["seconds"] = seconds()
    RESULT.write_text(json.dumps(report, indent=1) + "\n")
    write_page(report)


# -- data --------------------------------------------------------------------------------------------------------------


def read_trec(folder: Path) -> tuple[Qrels, dict[str, Run]]:
    """Return the judgements of TREC DL 2019 and the first ranks of five runs."""
    qrels: Qrels = {}
    for line in (folder / "qrels.dl19-passage.txt").read_text().splitlines():
        topic, _, document, grade = line.split()
        qrels.setdefault(topic, {})[document] = float(grade)
    runs: dict[str, Run] = {}
    for name, file in RUNS.items():
        scored: dict[str, list[tuple[float, str]]] = {}
        for line in (folder / f"run.{file}.txt").read_text().splitlines():
            topic, _, document, _, score, _ = line.split()
            scored.setdefault(topic, []).append((float(score), document))
        runs[name] = {topic: [name for _, name in sorted(scored[topic], reverse=True)] for topic in qrels}
    return qrels, runs


def read_mq2008(folder: Path) -> tuple[Qrels, dict[str, Run]]:
    """Return the labels of MQ2008 and the rankings by its four best single features."""
    files = sorted(folder.glob("S*.txt.gz"))
    lines = [line for file in files for line in gzip.decompress(file.read_bytes()).decode().splitlines()]
    rows = [line.split("#")[0].split() for line in lines]
    labels = np.array([float(row[0]) for row in rows])
    topics = [row[1].removeprefix("qid:") for row in rows]
    features = np.array([[float(cell.split(":")[1]) for cell in row[2:]] for row in rows])
    quality = [
        evaluate(labels, each, qid=topics, flavor="trec_eval[ties=average]", k=DEPTH).value for each in features.T
    ]
    qrels: Qrels = {}
    for at, topic in enumerate(topics):
        qrels.setdefault(topic, {})[str(at)] = float(labels[at])
    runs: dict[str, Run] = {}
    for feature in np.argsort(quality)[::-1][:4].tolist():
        order = np.argsort(-features[:, feature], kind="stable")
        run: Run = {}
        for at in order.tolist():
            run.setdefault(topics[at], []).append(str(at))
        runs[f"feature {feature + 1}"] = run
    return qrels, runs


# -- judgements that only one system contributed -----------------------------------------------------------------------


def left_out(qrels: Qrels, runs: dict[str, Run], a: str, b: str) -> dict[str, Any]:
    """Compare b with a after removing the judgements of documents that only b has at its first ranks."""
    others = [run for name, run in runs.items() if name != b]
    fewer = {
        topic: {
            document: grade
            for document, grade in judged.items()
            if document not in runs[b][topic][:DEPTH] or any(document in run[topic][:DEPTH] for run in others)
        }
        for topic, judged in qrels.items()
    }
    flavor = "trec_eval[ties=first]"

    def compared(judgements: Qrels, flavor: str) -> Any:
        return compare(
            *(evaluate_run(judgements, runs[name], flavor=flavor, k=DEPTH) for name in (a, b)),
            unjudged="accept",
            seed=0,
        )

    full, zero = compared(qrels, flavor), compared(fewer, flavor)
    condensed = compared(fewer, "trec_eval[ties=first,unjudged=condense]")
    limits = zero.range(max_grade=3)
    return {
        "a": a,
        "b": b,
        "full": full.difference,
        "full_p": full.p_value,
        "judged": zero.judged,
        "zero": zero.difference,
        "zero_p": zero.p_value,
        "condensed": condensed.difference,
        "condensed_p": condensed.p_value,
        "low": limits.low,
        "high": limits.high,
        "settled": limits.settled,
    }


# -- labels until the winner no longer changes -------------------------------------------------------------------------


def trec_pairs(qrels: Qrels, runs: dict[str, Run]) -> Iterator[dict[str, Any]]:
    """Yield all pairs of runs on random halves of the topics."""
    rng = np.random.default_rng(0)
    for a, b in combinations(runs, 2):
        for _ in range(3):
            topics = sorted(rng.choice(sorted(qrels), 25, replace=False).tolist())
            yield from labels_needed("TREC DL 2019", qrels, runs[a], runs[b], topics, rng)


def mq2008_pairs(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield all pairs of four rankings on random queries."""
    qrels, runs = read_mq2008(folder)
    rng = np.random.default_rng(0)
    for a, b in combinations(runs, 2):
        for _ in range(5):
            topics = sorted(rng.choice(sorted(qrels), 50, replace=False).tolist())
            yield from labels_needed("MQ2008", qrels, runs[a], runs[b], topics, rng)


def labels_needed(
    data: str, qrels: Qrels, a: Run, b: Run, topics: list[str], rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """Yield, per order, the numbers of labels until the winner is that of the whole pool and until it is settled."""
    tops = [{topic: run[topic][:DEPTH] for topic in topics} for run in (a, b)]
    nothing: Qrels = {topic: {"(no document)": 0.0} for topic in topics}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no document is judged at first
        both = compare(
            *(evaluate_run(nothing, run, k=DEPTH) for run in tops), unjudged="accept", seed=0, n_resamples=100
        )
    assert both._unjudged is not None
    pair = both._unjudged._pair(0, 1)
    truth, place = labels_and_ranks(pair, qrels, tops, both._unjudged._qid)
    target = np.sign(difference(pair, truth))
    if target == 0:
        return
    pool = np.flatnonzero(pair.unjudged)
    top = float(truth.max())
    for name in ORDERS:
        repeats = []
        for _ in range(9 if name == "random" else 1):
            order = {
                "judge_next": lambda: judge_next_order(pair, truth, top),
                "pooling": lambda: pool[np.argsort(place[pool] + rng.random(pool.size), kind="stable")],
                "random": lambda: rng.permutation(pool),
            }[name]()
            repeats.append((until_right(pair, truth, order, target), until_settled(pair, truth, order, top)))
        right, settled = np.median(np.array(repeats, dtype=np.float64), axis=0).tolist()
        yield {"data": data, "order": name, "pool": int(pool.size), "right": right, "settled": settled}


def labels_and_ranks(pair: Pair, qrels: Qrels, tops: list[Run], topics: list[str]) -> tuple[Any, Any]:
    """Return the true grade of every document of a pair and the better of its two ranks, from 0."""
    truth, place = np.zeros(pair.query.size), np.full(pair.query.size, 10 * DEPTH)
    for side, scored in enumerate((pair.a, pair.b)):
        assert scored.queries.names is not None
        here = np.flatnonzero(pair.row[:, side] >= 0)
        for at, document in zip(here.tolist(), scored.queries.names(pair.row[here, side]), strict=True):
            topic = topics[pair.query[at]]
            truth[at] = max(qrels[topic].get(document, 0.0), 0.0)
            if document in tops[side][topic]:
                place[at] = min(place[at], tops[side][topic].index(document))
    return truth, place


def difference(pair: Pair, gain: Any) -> float:
    """Return the difference if documents with a NaN grade have gain 0."""
    known = np.where(np.isnan(gain), 0.0, gain)
    n_queries = pair.n_queries
    order = np.lexsort((-known, pair.query))
    starts = np.searchsorted(pair.query, np.arange(n_queries))
    rank = np.arange(order.size) - starts[pair.query[order]]
    discount = np.where(rank < DEPTH, 1 / np.log2(rank + 2), 0.0)
    ideal = np.bincount(pair.query[order], weights=known[order] * discount, minlength=n_queries)
    upper = np.bincount(pair.query, weights=known * pair.weight, minlength=n_queries)
    return float(np.divide(upper, ideal, out=np.zeros(n_queries), where=ideal > 0).mean())


def judge_next_order(pair: Pair, truth: Any, top: float) -> Any:
    """Return the documents in the order of judge_next, which is called after every five labels."""
    gain, order = pair.gain.copy(), []
    gains = np.arange(top + 1)
    while np.isnan(gain).any():
        documents = np.flatnonzero(np.isnan(gain))
        change = _changes(replace(pair, gain=gain), documents, gains)
        chosen = documents[np.lexsort((-np.abs(pair.weight[documents]), -change))[:5]]
        order += chosen.tolist()
        gain[chosen] = truth[chosen]
    return np.array(order)


def until_right(pair: Pair, truth: Any, order: Any, target: float) -> int:
    """Return the number of labels after which the winner is right for the rest of this order."""
    gain, last_wrong = pair.gain.copy(), 0
    for n, document in enumerate(order.tolist(), start=1):
        gain[document] = truth[document]
        if np.sign(difference(pair, gain)) != target:
            last_wrong = n
    return last_wrong + 1


def until_settled(pair: Pair, truth: Any, order: Any, top: float) -> int:
    """Return the number of labels after which no other grades change the sign. Labels never widen a range."""
    low, high = 0, len(order)
    while low < high:
        middle = (low + high) // 2
        gain = pair.gain.copy()
        gain[order[:middle]] = truth[order[:middle]]
        if replace(pair, gain=gain).range(0.0, top).settled:
            high = middle
        else:
            low = middle + 1
    return low


# -- time --------------------------------------------------------------------------------------------------------------


def seconds() -> dict[str, float]:
    """Time ranges: 10 000 queries of 20 documents, 40 % unjudged, 4 grades, k = 10."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, (10_000, 20)).astype(np.float64)
    labels[rng.random(labels.shape) < 0.4] = np.nan
    results = [evaluate(labels, rng.random(labels.shape), flavor="trec_eval[ties=first]", k=10) for _ in range(2)]
    both = compare(*results, n_resamples=100, seed=0)
    times: dict[str, list[float]] = {"value": [], "difference": []}
    for _ in range(5):
        start = time.perf_counter()
        results[0].range()
        times["value"].append(time.perf_counter() - start)
        assert both._unjudged is not None
        both._unjudged._ranges.clear()
        start = time.perf_counter()
        both.range()
        times["difference"].append(time.perf_counter() - start)
    return {name: min(values) for name, values in times.items()}


# -- the page ----------------------------------------------------------------------------------------------------------


def table_of_uniques(report: dict[str, Any]) -> str:
    """Return the table of removed judgements in Markdown."""
    head = "| a, b | all labels | judged@10, a, b | zero | condensed | range | settled |\n|--|--:|--|--:|--:|--|--|\n"
    lines = [
        f"| {row['a']}, {row['b']} | {row['full']:+.3f} (p {row['full_p']:.3f}) | "
        f"{row['judged'][0]:.2f}, {row['judged'][1]:.2f} | {row['zero']:+.3f} (p {row['zero_p']:.4f}) | "
        f"{row['condensed']:+.3f} (p {row['condensed_p']:.3f}) | {row['low']:+.3f} to {row['high']:+.3f} | "
        f"{'yes' if row['settled'] else 'no'} |\n"
        for row in report["uniques"]
    ]
    return head + "".join(lines)


def table_of_labels(report: dict[str, Any]) -> str:
    """Return the table of needed labels in Markdown."""
    out = "| data | pool | order | winner stays right: median (quartiles) | settled: median |\n|--|--:|--|--:|--:|\n"
    for data in dict.fromkeys(row["data"] for row in report["labels"]):
        for order in ORDERS:
            rows = [row for row in report["labels"] if (row["data"], row["order"]) == (data, order)]
            low, middle, high = np.percentile([row["right"] for row in rows], [25, 50, 75])
            out += (
                f"| {data} | {np.median([row['pool'] for row in rows]):.0f} | {order} | {middle:.0f} ({low:.0f} to "
                f"{high:.0f}) | {np.median([row['settled'] for row in rows]):.0f} |\n"
            )
    return out


def write_page(report: dict[str, Any]) -> None:
    """Write the tables into the page."""
    page = PAGE.read_text(encoding="utf-8")
    for name, table in (("uniques", table_of_uniques(report)), ("labels", table_of_labels(report))):
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, rest = page.split(begin)
        page = before + begin + table + end + rest.split(end)[1]
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
