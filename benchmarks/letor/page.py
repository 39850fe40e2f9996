"""docs/training_evidence.md: its tables and pictures from the committed result. Its words are written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.letor.peers import COUNTERPARTS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "training_evidence.md"
BLUE, GREY, RED = "#2f6ca3", "#8a8a8a", "#c8452f"
COLOURS = {"better": BLUE, "worse": RED}
ORDERS = ("file", "shuffled", "best first", "worst first")
PUBLISHED = {
    "RankSVM-Struct": (0.3627, 0.4286, 0.4695, 0.2279),
    "ListNet": (0.3754, 0.4324, 0.4747, 0.2303),
    "AdaRank-MAP": (0.3754, 0.4370, 0.4794, 0.2288),
    "AdaRank-NDCG": (0.3826, 0.4420, 0.4821, 0.2307),
    "RankBoost": (0.3856, 0.4288, 0.4666, 0.2255),
}
"""NDCG@1, 3, 5 and 10 on MQ2008 of the baselines that LETOR 4.0 published."""


def write(result: Path, page: Path = PAGE, pictures: Path | None = None) -> None:
    """Put every table between its markers, and draw the pictures beside the page."""
    report = json.loads(result.read_text(encoding="utf-8"))
    text = page.read_text(encoding="utf-8")
    for name, table in tables(report).items():
        begin, end = markers(name)
        head, rest = text.split(begin)
        _, tail = rest.split(end)
        text = f"{head}{begin}\n{table}\n{end}{tail}"
    page.write_text(text, encoding="utf-8")
    draw(report, pictures or page.parent)


def markers(name: str) -> tuple[str, str]:
    """What stands before and after a table of the page."""
    return f"<!-- {name}: written by python -m benchmarks.letor --page -->", f"<!-- end of {name} -->"


def tables(report: dict[str, Any]) -> dict[str, str]:
    """Every table of the page, by its name there."""
    found: dict[str, str] = {"how": _how(report)}
    for data, parts in report["data"].items():
        for kind, first in (("network", "loss"), ("attention", "loss"), ("trees", "objective")):
            if kind in parts:
                found[f"{data} {kind}"] = _contenders(parts[kind], first)
        if "stopping" in parts:
            found[f"{data} stopping"] = _stopping(parts["stopping"])
        if "network" in parts:
            found[f"{data} counterparts"] = _counterparts(parts["network"])
        if "trees" in parts:
            found[f"{data} gains"] = _gains(parts["trees"])
        if data == "mq2008":
            found[f"{data} published"] = _published(parts)
    return found


def _contenders(part: dict[str, Any], first: str) -> str:
    """One row per contender, the best first."""
    pairs = part["against"]["pairs"] if part["against"] else {}
    reference = part["against"]["reference"] if part["against"] else ""
    lines = [
        f"| {first} | NDCG@10 | sd of seeds | difference (95 %) | verdict | linear gain | its best in tuning |",
        "|---|--:|--:|--:|---|--:|--:|",
    ]
    for name, row in _ranked(part):
        deviation = "" if row["sd_of_seeds"] is None else f"{row['sd_of_seeds']:.4f}"
        cells = [name, f"{row['mean']:.4f}", deviation, *_verdict(pairs.get(name), name == reference)]
        lines.append(f"| {' | '.join([*cells, format(row['linear'], '.4f'), format(row['tuned'], '.4f')])} |")
    return "\n".join(lines)


def _ranked(part: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return sorted(part["rows"].items(), key=lambda item: -item[1]["mean"])


def _verdict(pair: dict[str, Any] | None, is_reference: bool) -> list[str]:
    if is_reference:
        return ["the reference", ""]
    if pair is None:
        return ["", ""]
    return [f"{pair['difference']:+.4f} ({pair['low']:+.4f} to {pair['high']:+.4f})", pair["verdict"]]


def _stopping(libraries: dict[str, Any]) -> str:
    """One row per rule; a column per order of the validation rows."""
    lines = [f"| stopped by | {' | '.join(f'rows {order}' for order in ORDERS)} |", "|---|" + "--:|" * len(ORDERS)]
    for library, part in libraries.items():
        pairs = part["against"]["pairs"] if part["against"] else {}
        rules = dict.fromkeys(rule.rpartition(", rows ")[0] for rule in part["rows"] if ", rows " in rule)
        for rule in rules:
            cells = []
            for order in ORDERS:
                name = f"{rule}, rows {order}"
                row, pair = part["rows"][name], pairs.get(name)
                said = "the reference" if pair is None else f"{pair['difference']:+.4f}"
                strong = "**" if pair is not None and pair["verdict"] in ("better", "worse") else ""
                cells.append(f"{strong}{said}{strong}, round {row['median_round']:g}")
            lines.append(f"| {library}: {rule} | {' | '.join(cells)} |")
        never, pair = part["rows"]["no stopping"], pairs.get("no stopping")
        if pair is not None:
            strong = "**" if pair["verdict"] in ("better", "worse") else ""
            text = f"{strong}{pair['difference']:+.4f}{strong}, round {never['median_round']:g}"
            lines.append(f"| {library}: no stopping | {' | '.join([text] * len(ORDERS))} |")
    return "\n".join(lines)


def _counterparts(part: dict[str, Any]) -> str:
    """Our losses beside other packages' forms of them."""
    lines = ["| ours | NDCG@10 | another form | NDCG@10 |", "|---|--:|---|--:|"]
    for ours, others in COUNTERPARTS.items():
        for other in others:
            if ours in part["rows"] and other in part["rows"]:
                values = (part["rows"][name]["mean"] for name in (ours, other))
                mine, theirs = (f"{value:.4f}" for value in values)
                lines.append(f"| {ours} | {mine} | {other} | {theirs} |")
    return "\n".join(lines)


def _gains(part: dict[str, Any]) -> str:
    """What training on another definition than the reported one costs."""
    names = [name for name in part["rows"] if name.startswith("NDCGObjective")]
    lines = ["| trained on | exponential NDCG@10 | linear NDCG@10 |", "|---|--:|--:|"]
    lines += [
        f"| {name.removeprefix('NDCGObjective(').removesuffix(')')} | {part['rows'][name]['mean']:.4f} "
        f"| {part['rows'][name]['linear']:.4f} |"
        for name in names
    ]
    return "\n".join(lines)


def _published(parts: dict[str, Any]) -> str:
    """The baselines of LETOR 4.0 and ours, under its script's definition, all queries."""
    lines = ["| | NDCG@1 | NDCG@3 | NDCG@5 | NDCG@10 |", "|---|--:|--:|--:|--:|"]
    rows: dict[str, tuple[float, ...]] = dict(PUBLISHED)
    for kind in ("network", "attention", "trees"):
        for name, row in _ranked(parts[kind])[:3] if kind in parts else []:
            rows[f"{name}{', with attention' if kind == 'attention' else ''}"] = tuple(row["letor4"].values())
    lines += [f"| {name} | {' | '.join(f'{value:.4f}' for value in values)} |" for name, values in rows.items()]
    return "\n".join(lines)


def _how(report: dict[str, Any]) -> str:
    """Machine, versions and sizes, as a paragraph."""
    machine = report["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in report["versions"].items() if number != "not installed")
    return (
        f"{report['date']}; {machine['processor']}, {machine['cores']} cores, {machine['system']}; Python "
        f"{report['python']}; {versions}. {report['seconds'] / 3600:.1f} hours of one core. Reported: "
        f"`{report['reported']}`."
    )


def draw(report: dict[str, Any], folder: Path) -> None:
    """A picture per question: differences from the reference, with the intervals that hold together."""
    import matplotlib as mpl

    mpl.use("Agg")
    for data, parts in report["data"].items():
        for kind in ("network", "attention", "trees"):
            if kind in parts and parts[kind]["against"]:
                _forest(parts[kind]["against"], report["margin"], folder / f"evidence_{data}_{kind}.png")


def _forest(against: dict[str, Any], margin: float, path: Path) -> None:
    from matplotlib import pyplot as plt

    pairs = sorted(against["pairs"].items(), key=lambda item: item[1]["difference"])
    figure, axes = plt.subplots(figsize=(8, 0.3 * len(pairs) + 1.2), layout="constrained")
    axes.axvspan(-margin, margin, color=GREY, alpha=0.15, lw=0)
    axes.axvline(0, color=GREY, lw=1)
    for y, (_, pair) in enumerate(pairs):
        colour = COLOURS.get(pair["verdict"], GREY)
        axes.plot([pair["low"], pair["high"]], [y, y], color=colour, lw=2)
        axes.plot(pair["difference"], y, "o", color=colour, ms=5)
    axes.set_yticks(range(len(pairs)), [name for name, _ in pairs], fontsize=8)
    axes.set_xlabel(f"NDCG@10 less that of {against['reference']}; grey: within the margin of {margin:g}")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)
