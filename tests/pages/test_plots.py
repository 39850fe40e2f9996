"""Drawings show values, limits, names and titles, and change nothing global."""

import sys
import warnings

import numpy as np
import pytest
from comparing import by_scores, by_values

from ndcg_ml import Flavor, evaluate

matplotlib = pytest.importorskip("matplotlib")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # old Matplotlib with new pyparsing
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import to_rgba
    from matplotlib.figure import Figure
    from matplotlib.text import Text

LABELS = [[3, 0, 1], [0, 1, 0], [1, 0, 2], [0, 0, 0]]
SCORES = [[3, 2, 1], [3, 1, 2], [2, 1, 1], [1, 3, 2]]


@pytest.fixture
def ax():
    """Axes of a figure that pyplot does not manage. The drawing is rendered after the test, behind it a faint grid."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    yield axes
    figure.canvas.draw()
    grid = axes.get_xgridlines()[0]
    assert (grid.get_alpha(), grid.get_linewidth(), axes.get_axisbelow()) == (0.3, 0.6, True)
    assert [side for side, line in axes.spines.items() if line.get_visible()] == ["left", "bottom"]


def evaluated(**arguments):
    return evaluate(LABELS, SCORES, **arguments)


def words(axes) -> list[str]:
    """Texts of the legend."""
    return [text.get_text() for text in axes.get_legend().get_texts()]


def title(axes) -> list[str]:
    return axes.get_title(loc="left").splitlines()


def rows(axes) -> list[str]:
    """Texts above the intervals."""
    return [text.get_text() for text in axes.texts]


def points(axes) -> dict[float, tuple[float, bool]]:
    """Value and whether its marker is filled, by row."""
    lines = [line for line in axes.lines if line.get_marker() == "o"]
    return {
        y: (x, line.get_markerfacecolor() != "none") for line in lines for x, y in zip(*line.get_data(), strict=True)
    }


def limits(axes) -> dict[float, np.ndarray]:
    return {segment[0, 1]: segment[:, 0] for lines in axes.collections for segment in lines.get_segments()}


def systems(n, noise=0.5):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, (50, 8))
    return labels, [labels + rng.normal(0, noise * (i + 1), labels.shape) for i in range(n)]


# -- values with intervals ------------------------------------------------------------------------------------------


def test_values_are_drawn_with_their_intervals(ax):
    labels, [scores] = systems(1)
    result = evaluate(labels, scores, k=(None, 5, 1))
    assert result.plot(ax) == (ax.figure, ax)
    intervals = result.interval()
    for at, (k, value) in enumerate(result.value.items()):
        assert points(ax)[at] == (value, True)
        assert limits(ax)[at] == pytest.approx([intervals[k].low, min(intervals[k].high, 1.02)])
    assert rows(ax) == [f"NDCG{at}: {result.value[k]:.4f}" for at, k in (("", None), ("@5", 5), ("@1", 1))]
    assert words(ax) == ["with 95 % interval"]
    assert title(ax) == ["sklearn", "50 queries, 0 empty (scored 0); 400 documents"]
    assert ax.get_xlabel() == "mean NDCG"


def test_one_query_has_no_interval(ax):
    evaluate([[1, 0]], [[0, 1]], k=(1, 2), flavor="ndcg[aggregate=micro]").plot(ax)
    assert not any(filled for _, filled in points(ax).values())
    assert (words(ax), ax.get_xlabel()) == (["no interval"], "micro-averaged NDCG")
    assert title(ax)[0] == "ndcg[aggregate=micro]"
    evaluate([[0, 1]], [[1, 0]], k=(1, 2), flavor=Flavor(ideal="local", empty=np.nan, k=7)).plot(ax)
    assert rows(ax)[2:] == ["NDCG@1: nan", "NDCG@2: 0.6309"]
    assert "@" not in title(ax)[0]


@pytest.mark.parametrize("labels", [[[1, 0], [0, 1]], [[3, -2], [0, 1]], [[1, 0], [3, 2]]])
def test_the_axis_ends_a_little_beyond_the_values(ax, labels):
    result = evaluate(labels, [[1, 2], [1, 2]], k=2, flavor="ndcg[negative=allow]")
    result.plot(ax)
    low, high = min(0, result.per_query.ndcg.min()), max(1, result.per_query.ndcg.max())
    ends = [low - 0.02 * (high - low), high + 0.02 * (high - low)]
    assert ax.get_xlim() == pytest.approx(ends)
    assert [*limits(ax)[0]] == pytest.approx([result.interval().low, result.interval().high])
    assert title(ax)[0] == "ndcg@2[negative=allow]"


@pytest.mark.parametrize(("n", "more"), [(30, ""), (31, "; the first 30 of 31 cut-offs")])
def test_of_many_cut_offs_the_first_are_drawn(ax, n, more):
    evaluated(k=tuple(range(1, n + 1))).plot(ax)
    assert rows(ax)[::29] == [row for row in rows(ax) if row.startswith(("NDCG@1:", "NDCG@30:"))]
    assert " ".join(title(ax)) == f"sklearn 4 queries, 1 empty (scored 0); 12 documents{more}"


def test_slices(ax):
    result = evaluated(k=(2, 3), by={"kind": ["x", "x", "y", "z"], "all": ["w"] * 4})
    result.slices.plot(ax)
    assert ax.lines[0].get_xdata()[0] == pytest.approx(result.value[2])
    assert (ax.lines[0].get_color(), ax.lines[0].get_linewidth()) == ("#7f7f7f", 1.2)
    for at, ((column, label), each) in enumerate(result.slices.items()):
        assert points(ax)[at] == (each.value[2], column == "all" or label == "x")
        assert rows(ax)[at] == f"{column}={label}: {each.n_queries} queries, {each.value[2]:.4f}"
    assert words(ax) == ["with 95 % interval", "no interval: too few queries"]
    assert title(ax) == ["sklearn@2", "4 queries"]
    assert ax.get_xlabel() == f"NDCG@2; the line is that of all queries, {result.value[2]:.4f}"


# -- systems --------------------------------------------------------------------------------------------------------


def test_two_systems_are_drawn_query_by_query(ax):
    labels, both = systems(2)
    result = by_scores(*both, y_true=labels, k=5, names=["old", "new"], seed=0)
    assert result.plot(ax) == (ax.figure, ax)
    apart = np.sort(result.ndcg[:, 1] - result.ndcg[:, 0])
    drawn = [line for line in ax.lines if line.get_linestyle() == "None"]
    marks = sorted((x, y) for line in drawn for x, y in zip(*line.get_data(), strict=True))
    assert marks == [(at + 1, pytest.approx(value)) for at, value in enumerate(apart)]
    marked = {line.get_marker(): len(line.get_xdata()) for line in drawn}
    assert marked == {"v": result.losses, "o": result.ties, "^": result.wins}
    zero, mean, *others = ax.lines
    assert [zero.get_ydata()[0], mean.get_ydata()[0]] == [0, result.difference]
    assert (zero.get_linestyle(), mean.get_linestyle()) == ("-", "--")
    assert len({line.get_color() for line in ax.lines}) == 4  # ties are as grey as the line at 0
    widths = [zero.get_linewidth(), mean.get_linewidth(), *(line.get_markersize() for line in others)]
    assert widths == [1, 1.8, 5, 5, 5]
    assert (ax.patches[0].get_facecolor(), ax.patches[0].get_linewidth()) == (to_rgba(zero.get_color(), 0.25), 0)
    reach = np.abs(apart).max()
    assert ax.get_ylim() == pytest.approx((-1.06 * reach, 1.06 * reach))
    assert ax.get_ylabel() == "NDCG@5 of the query,\nnew minus old"
    assert ax.get_xlabel() == "queries, the largest loss first"
    kinds = ((result.losses, "new worse"), (result.ties, "equal"), (result.wins, "new better"))
    counts = [f"{n} queries: {kind}" for n, kind in kinds]
    difference = f"difference of the values {result.difference:+.4f}"
    assert words(ax) == ["95 %, interval of the randomisation test", difference, *counts]
    band = ax.patches[0].get_extents().transformed(ax.transData.inverted())
    assert (band.y0, band.y1) == pytest.approx((result.interval.low, result.interval.high))
    ends = f"({result.interval.low:+.4f} to {result.interval.high:+.4f})"
    found = f"new minus old: {result.difference:+.4f} {ends}, p\xa0=\xa0{result.p_value:.4f}: {result.verdict}"
    assert title(ax) == ["sklearn@5; 50 queries", found]


def test_of_many_queries_the_curve_is_drawn_through_some(ax):
    change = np.linspace(-0.2, 0.3, 5000)
    by_values(np.full(5000, 0.5), 0.5 + change, qid=range(5000), measure="m").plot(ax)
    x = np.concatenate([line.get_xdata() for line in ax.lines if line.get_linestyle() == "None"])
    assert (x.min(), x.max(), x.size) == (1, 5000, 2000)
    ax.clear()
    by_values(np.zeros(5), [1e-12, -1e-12, 0.5, 0.5, 0.5], qid=range(5), measure="m").plot(ax)  # that much is rounding
    assert words(ax)[2:] == ["2 queries: equal", "3 queries: b better"]
    assert [len(line.get_xdata()) for line in ax.lines[2:]] == [2, 3]


def test_several_systems_are_drawn_pair_by_pair(ax):
    labels, (one, other) = systems(2, noise=1.0)
    third = one + np.random.default_rng(1).normal(0, 0.1, one.shape)
    result = by_scores(one, other, third, y_true=labels, k=5, names=["a", "b", "c"], seed=0)
    assert result.plot(ax) == (ax.figure, ax)
    for at, pair in enumerate(result.pairs):
        assert points(ax)[at] == (pair.difference, pair.significant)
        assert limits(ax)[at] == pytest.approx([pair.interval.low, pair.interval.high])
        shown = f"{pair.b} minus {pair.a}: {pair.difference:+.4f}, p = {pair.p_adjusted:.4f}: {pair.verdict}"
        assert rows(ax)[at] == shown
    assert {pair.significant for pair in result.pairs} == {True, False}
    assert (words(ax), title(ax)) == (["decided", "undecided"], ["sklearn@5", "50 queries"])
    assert (ax.lines[0].get_xdata()[0], ax.lines[0].get_color(), ax.lines[0].get_linewidth()) == (0, "#7f7f7f", 1.2)
    assert ax.get_xlabel() == "difference of NDCG@5, 95 %, simultaneous intervals (max-T)"
    low, high = ax.get_ylim()
    assert low > 2 > 0 > high  # the first pair is at the top


def test_of_many_pairs_those_with_the_smallest_p_are_drawn(ax):
    labels, nine = systems(9, noise=0.3)
    result = by_scores(*nine, y_true=labels, seed=0)
    result.plot(ax)
    assert title(ax)[-1] == "50 queries; the 30 of 36 pairs with the smallest p"
    least = sorted(result.pairs, key=lambda pair: pair.p_value)[:30]
    assert [row.split(":")[0] for row in rows(ax)] == [f"{x.b} minus {x.a}" for x in result.pairs if x in least]


# -- all drawings --------------------------------------------------------------------------------------------------

DRAWINGS = {
    "Evaluation": lambda ax: evaluated(k=(1, 2)).plot(ax),
    "Comparison of two": lambda ax: by_scores(SCORES, LABELS, y_true=LABELS).plot(ax),
    "Comparison of three": lambda ax: by_scores(SCORES, LABELS, SCORES, y_true=LABELS).plot(ax),
    "Slices": lambda ax: evaluated(by=["x", "x", "y", "y"]).slices.plot(ax),
}


@pytest.mark.parametrize(("width", "wrapped"), [(4, True), (12, False)])
@pytest.mark.parametrize("n", [2, 3])
def test_texts_are_wrapped_to_the_width_of_the_axes(ax, n, width, wrapped):
    ax.figure.set_size_inches(width, 6)
    ax.figure.canvas.draw()
    names = [f"model {name} of many letters" for name in "abc"[:n]]
    by_scores(*[SCORES, LABELS, SCORES][:n], y_true=LABELS, names=names).plot(ax)
    found = [text for text in ax.get_children() if isinstance(text, Text) and " minus " in text.get_text()]
    assert len(found) == {2: 1, 3: 3}[n]
    for text in found:
        lines = text.get_text().split("\n")[n == 2 :]  # the lines of the title below the definition
        assert wrapped == (len(lines) > 1)
        assert 0.5 * wrapped < text.get_window_extent(ax.figure.canvas.get_renderer()).width / ax.bbox.width < 1


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS.keys())
def test_nothing_global_changes(draw, ax):
    from matplotlib import pyplot as plt

    plt.switch_backend("agg")
    theirs = plt.figure()
    try:
        before = dict(matplotlib.rcParams)
        draw(ax)
        assert plt.get_fignums() == [theirs.number]
        assert not theirs.axes
        figure, axes = draw(None)
        assert plt.gcf() is figure
        n_rows = len(rows(axes)) or 7  # a row has the same height in every drawing
        assert figure.get_size_inches() == pytest.approx([8, 1.5 + 0.42 * n_rows])
        figure.canvas.draw()
        assert dict(matplotlib.rcParams) == before
    finally:
        plt.close("all")


@pytest.mark.parametrize(
    ("data", "axes", "error", "words"),
    [
        ({"y_true": [[0, 0]], "y_score": [[1, 2]], "flavor": Flavor(empty=np.nan)}, None, ValueError, "a finite value"),
        ({"y_true": LABELS, "y_score": SCORES}, Figure(), TypeError, "ax must be the axes of a matplotlib f.*got Fig"),
    ],
)
def test_what_cannot_be_drawn_is_refused(data, axes, error, words):
    with pytest.raises(error, match=words):
        evaluate(**data).plot(axes)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    for name, draw in DRAWINGS.items():
        with pytest.raises(ImportError, match=rf"{name.partition(' ')[0]}.plot needs matplotlib.*\.\[plot\]"):
            draw(None)


@pytest.mark.parametrize("name", ["$x", r"$\frac{1}$", "_hidden", "two\nlines", "<script>", "x" * 300])
def test_any_name_is_drawn_as_it_is(ax, name):
    shown = " ".join((name if len(name) < 24 else "x" * 11 + "..." + "x" * 10).split())
    by_scores(SCORES, LABELS, y_true=LABELS, names=["a", name]).plot(ax)
    assert f"3 queries: {shown} better" in words(ax)
    ax.figure.canvas.draw()
    ax.clear()
    by_scores(SCORES, LABELS, SCORES, y_true=LABELS, names=["a", name, "c"]).plot(ax)
    assert rows(ax)[0].startswith(shown)
    ax.figure.canvas.draw()
    ax.clear()
    evaluated(by={name: ["x", "x", name, name]}).slices.plot(ax)
    assert rows(ax)[1].startswith(f"{shown}={shown}: 2 queries")
