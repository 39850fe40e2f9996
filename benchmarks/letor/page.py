"""docs/training_evidence.md: its tables and pictures from the committed results. Its words are written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.letor.verdicts import ACROSS, TRAINED_ON

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "training_evidence.md"
RESULT = ROOT / "benchmarks" / "results" / "letor.json"
AGAIN = RESULT.with_name("letor_again.json")
"""The same contenders from other seeds, tuned anew."""
BLUE, GREY, RED = "#2f6ca3", "#8a8a8a", "#c8452f"
COLOURS = {"better": BLUE, "worse": RED}
ORDERS = ("file", "shuffled", "best first", "worst first")
FIRST_LETOR = {"network": 4, "attention": 2, "trees": 4}
"""How many of the best of each kind stand beside the published baselines."""


RECALLED = {
    "RankSVM-Struct": (0.3627, 0.4286, 0.4695, 0.2279),
    "ListNet": (0.3754, 0.4324, 0.4747, 0.2303),
    "AdaRank-MAP": (0.3754, 0.4370, 0.4794, 0.2288),
    "AdaRank-NDCG": (0.3826, 0.4420, 0.4821, 0.2307),
    "RankBoost": (0.3856, 0.4288, 0.4666, 0.2255),
}
"""NDCG@1, 3, 5 and 10 on MQ2008 that LETOR 4.0 published for its baselines, from memory: no source was at hand."""


def write(result: Path = RESULT, again: Path = AGAIN, page: Path = PAGE) -> None:
    """Put every table between its markers, and draw the pictures beside the page."""
    report = json.loads(result.read_text(encoding="utf-8"))
    text = page.read_text(encoding="utf-8")
    for name, table in tables(report, second_run(again)).items():
        begin, end = markers(name)
        if begin in text:
            head, rest = text.split(begin)
            _, tail = rest.split(end)
            text = f"{head}{begin}\n{table}\n{end}{tail}"
    page.write_text(text, encoding="utf-8")
    draw(report, page.parent)


def second_run(path: Path = AGAIN) -> dict[str, Any] | None:
    """The report of the second run, where there is one."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def markers(name: str) -> tuple[str, str]:
    """What stands before and after a table of the page."""
    return f"<!-- {name}: written by python -m benchmarks.letor --page -->", f"<!-- end of {name} -->"


def tables(report: dict[str, Any], again: dict[str, Any] | None = None) -> dict[str, str]:
    """Every table of the page, by its name there."""
    written = {"how": _how(report)}
    for data, parts in report["data"].items():
        for kind, first in (("network", "loss"), ("attention", "loss"), ("trees", "objective")):
            if kind in parts:
                written[f"{data} {kind}"] = _contenders(parts[kind], first)
        if "stopping" in parts:
            written[f"{data} stopping"] = _stopping(parts["stopping"])
        if "counterparts" in parts:
            written[f"{data} counterparts"] = _counterparts(parts)
        if "trained_on" in parts:
            written[f"{data} wrong metric"] = _trained_on(parts)
        if "best" in parts:
            written[f"{data} best"] = _best(parts["best"])
        written[f"{data} letor"] = _letor(parts)
        if again is not None and data in again["data"]:
            written[f"{data} again"] = _again(parts, again["data"][data])
    return written


def _contenders(part: dict[str, Any], first: str) -> str:
    """One row per contender, the best first."""
    pairs = part["against"]["pairs"] if part["against"] else {}
    reference = part["against"]["reference"] if part["against"] else ""
    lines = [
        f"| {first} | NDCG@10 | sd of seeds | difference (95 %) | verdict | in tuning | linear gain |",
        "|---|--:|--:|--:|---|--:|--:|",
    ]
    for name, row in _ranked(part):
        deviation = "" if row["sd_of_seeds"] is None else f"{row['sd_of_seeds']:.4f}"
        cells = [name, f"{row['mean']:.4f}", deviation, *_verdict(pairs.get(name), name == reference)]
        lines.append(f"| {' | '.join([*cells, format(row['tuned'], '.4f'), format(row['linear'], '.4f')])} |")
    return "\n".join(lines)


def _ranked(part: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return sorted(part["rows"].items(), key=lambda item: -item[1]["mean"])


def _verdict(pair: dict[str, Any] | None, is_reference: bool) -> list[str]:
    if is_reference:
        return ["the reference", ""]
    if pair is None:
        return ["", ""]
    return [_interval(pair), _word(pair)]


def _interval(pair: dict[str, Any]) -> str:
    return f"{pair['difference']:+.4f} ({pair['low']:+.4f} to {pair['high']:+.4f})"


def _word(pair: dict[str, Any]) -> str:
    """The verdict, in bold where two are told apart."""
    return f"**{pair['verdict']}**" if pair["verdict"] in COLOURS else pair["verdict"]


def _stopping(libraries: dict[str, Any]) -> str:
    """One row per rule; a column per order of the validation rows."""
    lines = [f"| stopped by | {' | '.join(f'rows {order}' for order in ORDERS)} |", "|---|" + "--:|" * len(ORDERS)]
    for library, part in libraries.items():
        pairs = part["against"]["pairs"] if part["against"] else {}
        rules = dict.fromkeys(rule.rpartition(", rows ")[0] for rule in part["rows"] if ", rows " in rule)
        for rule in rules:
            names = [f"{rule}, rows {order}" for order in ORDERS]
            cells = [_stop(part["rows"][name], pairs.get(name)) for name in names]
            lines.append(f"| {library}: {rule} | {' | '.join(cells)} |")
        never = _stop(part["rows"]["no stopping"], pairs.get("no stopping"))
        lines.append(f"| {library}: never | {' | '.join([never] * len(ORDERS))} |")
    return "\n".join(lines)


def _stop(row: dict[str, Any], pair: dict[str, Any] | None) -> str:
    """The difference from the reference and the round that was kept."""
    if pair is None:
        return f"reference, round {row['median_round']:g}"
    strong = "**" if pair["verdict"] in COLOURS else ""
    return f"{strong}{pair['difference']:+.4f}{strong}, round {row['median_round']:g}"


def _counterparts(parts: dict[str, Any]) -> str:
    """Our losses less other packages' forms of them."""
    rows = parts["network"]["rows"]
    lines = ["| ours | NDCG@10 | another form | NDCG@10 | ours less it | verdict |", "|---|--:|---|--:|--:|---|"]
    for pair in parts["counterparts"]["pairs"]:
        values = (f"{rows[name]['mean']:.4f}" for name in (pair["ours"], pair["other"]))
        mine, theirs = values
        lines.append(f"| {pair['ours']} | {mine} | {pair['other']} | {theirs} | {_interval(pair)} | {_word(pair)} |")
    return "\n".join(lines)


def _trained_on(parts: dict[str, Any]) -> str:
    """What training on another definition than the reported one costs."""
    by_report = parts["trained_on"]
    titles = " | ".join(f"less the matching one, {gain} gain" for gain in by_report)
    lines = [f"| trained on | exponential NDCG@10 | linear NDCG@10 | {titles} |", "|---|--:|--:|--:|--:|"]
    for name in TRAINED_ON:
        row = parts["trees"]["rows"][name]
        cells = [name.removeprefix("NDCGObjective(").removesuffix(")"), f"{row['mean']:.4f}", f"{row['linear']:.4f}"]
        for against in by_report.values():
            pair = against["pairs"].get(name)
            cells.append("the matching one" if pair is None else f"{_interval(pair)}, {_word(pair)}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _best(best: dict[str, Any]) -> str:
    """One sentence."""
    return f"`{best['loss']}` less {best['trees']}: {_interval(best)}, {_word(best)}."


def _letor(parts: dict[str, Any]) -> str:
    """The published baselines and the best of each kind under the definition of LETOR 4.0's script, all queries."""
    lines = ["| | NDCG@1 | NDCG@3 | NDCG@5 | NDCG@10 |", "|---|--:|--:|--:|--:|"]
    for name, values in RECALLED.items():
        lines.append(f"| {name}, published (from memory) | {' | '.join(f'{value:.4f}' for value in values)} |")
    for kind, first in FIRST_LETOR.items():
        for name, row in _ranked(parts[kind])[:first] if kind in parts else []:
            label = f"{name}, with attention" if kind == "attention" else name
            lines.append(f"| {label} | {' | '.join(f'{value:.4f}' for value in row['letor4'].values())} |")
    return "\n".join(lines)


def _again(parts: dict[str, Any], again: dict[str, Any]) -> str:
    """Both runs side by side."""
    lines = [
        "| loss | first run | by fold | from other seeds, tuned anew | by fold | second less first |",
        "|---|--:|---|--:|---|--:|",
    ]
    for name, row in _ranked(again["network"]):
        runs = (parts["network"]["rows"][name], row)
        cells = [cell for run in runs for cell in (f"{run['mean']:.4f}", ", ".join(f"{v:.4f}" for v in run["by_fold"]))]
        lines.append(f"| {name} | {' | '.join(cells)} | {runs[1]['mean'] - runs[0]['mean']:+.4f} |")
    return "\n".join(lines)


def _how(report: dict[str, Any]) -> str:
    """Machine, versions and sizes, as a paragraph."""
    machine = report["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in report["versions"].items() if number != "not installed")
    sizes = []
    for parts in report["data"].values():
        for kind in ("network", "attention", "trees"):
            if kind in parts:
                part = parts[kind]
                sizes.append(f"{kind}: {_folds(part['folds'])}, {part['queries']} test queries, {part['seeds']} seeds")
        if "stopping" in parts:
            sizes.append(f"stopping: {_folds(parts['stopping_folds'])}")
    return (
        f"{report['date']}; {machine['processor']}, {machine['cores']} cores, {machine['system']}; Python "
        f"{report['python']}; {versions}. {report['seconds'] / 3600:.1f} hours of one core. "
        f"{'; '.join(sizes)}. Reported: `{report['reported']}`."
    )


def _folds(number: int) -> str:
    return "1 fold" if number == 1 else f"{number} folds"


def draw(report: dict[str, Any], folder: Path) -> None:
    """A picture per question: differences from the reference, with the intervals that hold together."""
    import matplotlib as mpl

    mpl.use("Agg")
    for name, panels in pictures(report).items():
        _forest(panels, report["margin"], folder / name)


def pictures(report: dict[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """By the name of each picture's file, differences by the title of their panel."""
    drawn: dict[str, dict[str, dict[str, Any]]] = {}
    for data, parts in report["data"].items():
        for kind in ("network", "attention", "trees"):
            if kind in parts:
                title = f"NDCG@10 on {_folds(parts[kind]['folds'])}"
                drawn[f"evidence_{data}_{kind}.png"] = {title: parts[kind]["against"]}
        if ACROSS in parts:
            drawn[f"evidence_{data}_across.png"] = {f"NDCG@10 on {_folds(parts[ACROSS]['folds'])}": parts[ACROSS]}
        drawn[f"evidence_{data}_stopping.png"] = {
            f"{library}'s NDCG@10": part["against"] for library, part in parts.get("stopping", {}).items()
        }
        drawn[f"evidence_{data}_wrong_metric.png"] = {
            f"{gain} NDCG@10": against for gain, against in parts.get("trained_on", {}).items()
        }
    there = {name: {title: one for title, one in panels.items() if one} for name, panels in drawn.items()}
    return {name: panels for name, panels in there.items() if panels}


def _forest(panels: dict[str, dict[str, Any]], margin: float, path: Path) -> None:
    """Differences, the largest on top, coloured where the interval leaves out 0."""
    from matplotlib import pyplot as plt

    rows = [len(against["pairs"]) + 2 for against in panels.values()]
    figure, several = plt.subplots(
        len(panels), figsize=(8, 0.26 * sum(rows) + 0.4), height_ratios=rows, layout="constrained", squeeze=False
    )
    for axes, (title, against) in zip(several.flat, panels.items(), strict=True):
        pairs = sorted(against["pairs"].items(), key=lambda item: item[1]["difference"])
        axes.axvspan(-margin, margin, color=GREY, alpha=0.15, lw=0)
        axes.axvline(0, color=GREY, lw=1)
        for y, (_, pair) in enumerate(pairs):
            colour = COLOURS.get(pair["verdict"], GREY)
            axes.plot([pair["low"], pair["high"]], [y, y], color=colour, lw=2)
            axes.plot(pair["difference"], y, "o", color=colour, ms=5)
        axes.set_yticks(range(len(pairs)), [name for name, _ in pairs], fontsize=8)
        label = f"{title} less that of {against['reference']}; grey band: the margin, {margin:g}"
        axes.set_xlabel(label, fontsize=8, loc="right")
        axes.tick_params(axis="x", labelsize=8)
        axes.spines[["top", "right", "left"]].set_visible(False)
    figure.savefig(path, dpi=100)
    plt.close(figure)
