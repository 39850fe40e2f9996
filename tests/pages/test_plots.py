"""What is drawn: the data of lines and steps, labels and limits; and that nothing global changes."""

from __future__ import annotations

import subprocess
import sys
import warnings
from itertools import pairwise

import numpy as np
import pytest
from comparing import by_scores

from ndcg_ml import Flavor, evaluate, evaluate_run, explain_difference

matplotlib = pytest.importorskip("matplotlib")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # an old Matplotlib calls what is old in a new pyparsing
    from matplotlib import colors
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

from ndcg_ml._show import plot

LABELS = [[3, 0, 1], [0, 1, 0], [1, 0, 2], [0, 0, 0]]
SCORES = [[3, 2, 1], [3, 1, 2], [2, 1, 1], [1, 3, 2]]


@pytest.fixture
def ax():
    """Axes in a figure that pyplot does not know; what is drawn there is rendered."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    yield axes
    figure.canvas.draw()


def evaluated(**arguments):
    return evaluate(LABELS, SCORES, **arguments)


def words(axes) -> list[str]:
    """The legend."""
    return [text.get_text() for text in axes.get_legend().get_texts()]


def title(axes) -> list[str]:
    return axes.get_title(loc="left").splitlines()


def rows(axes) -> list[str]:
    return [text.get_text() for text in axes.get_yticklabels()]


def steps(axes) -> list[tuple[np.ndarray, np.ndarray]]:
    return [patch.get_data()[:2] for patch in axes.patches if hasattr(patch, "get_data")]


def area(heights, edges) -> float:
    return float((heights * np.diff(edges)).sum() / 100)


def systems(n, noise=0.5):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, (50, 8))
    return {"y_true": labels}, [labels + rng.normal(0, noise * (i + 1), labels.shape) for i in range(n)]


# -- the queries ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"query_weight": [1, 2, 0.5, 4]},
        {"query_weight": [1, 2, 0, 4]},
        {"flavor": "ndcg[empty=skip]"},
        {"flavor": "ndcg[empty=1]"},
        {"flavor": "ndcg[aggregate=micro]"},
        {"flavor": "ndcg[aggregate=micro]", "query_weight": [1, 2, 0.5, 4]},
    ],
    ids=str,
)
def test_the_area_under_the_queries_is_the_value(ax, arguments):
    result = evaluated(k=2, **arguments)
    assert result.plot(ax=ax) == (ax.figure, ax)
    (heights, edges), (filled, filled_edges) = steps(ax)
    assert area(heights, edges) == pytest.approx(result.value, abs=1e-12)
    assert np.array_equal(heights, filled)
    assert np.array_equal(edges, filled_edges)
    assert np.array_equal(np.sort(heights), heights)
    assert edges[0] == 0
    assert edges[-1] == pytest.approx(100)
    [line] = [line for line in ax.lines if len(line.get_xdata())]
    assert set(line.get_ydata()) == {result.value}
    assert f"NDCG@2 = {result.value:.4f}" in words(ax)


def test_the_queries_are_named_by_the_definition(ax):
    evaluated(k=2, flavor="lightgbm").plot("queries", ax)
    assert title(ax) == ["lightgbm@2", "4 queries, 1 empty (each scores 1)"]
    assert ax.get_ylabel() == "NDCG@2 of the query"
    assert ax.get_xlabel() == "queries, the worst first (%)"
    assert ax.get_xlim() == (0, 100)
    assert ax.get_ylim() == pytest.approx((-0.03, 1.03))


@pytest.mark.parametrize(("empty", "place"), [("0", (0, 25)), ("1", (75, 100))])
def test_empty_queries_are_drawn_at_the_end_of_their_like(ax, empty, place):
    evaluated(k=1, flavor=f"ndcg[empty={empty}]").plot(ax=ax)
    [segment] = ax.collections[0].get_segments()
    assert segment[:, 0] == pytest.approx(place)
    assert set(segment[:, 1]) == {float(empty)}
    assert "empty queries" in words(ax)


def test_empty_queries_that_do_not_count_are_said_and_not_drawn(ax):
    evaluated(flavor="ndcg[empty=skip]", query_weight=[1, 0, 1, 1]).plot(ax=ax)
    assert title(ax)[1] == "4 queries, 1 empty (each is left out of the mean); 1 of weight 0 are left out"
    assert len(steps(ax)[0][0]) == 2
    assert "empty queries" not in words(ax)
    assert not ax.collections
    ax.clear()
    evaluated(flavor="ndcg[aggregate=micro]").plot(ax=ax)
    assert title(ax)[1] == "4 queries, 1 empty (each adds nothing to the sums)"
    assert len(steps(ax)[0][0]) == 3
    assert ax.get_xlabel() == "share of the ideal DCG, the worst query first (%)"


def test_a_value_that_is_nan_has_no_line(ax):
    evaluated(flavor=Flavor(empty=np.nan)).plot(ax=ax)
    assert len(steps(ax)[0][0]) == 3
    assert words(ax) == ["queries"]
    assert title(ax)[1] == "4 queries, 1 empty (each scores nan)"


def test_several_cut_offs_have_a_curve_each(ax):
    result = evaluated(k=(1, 2, None))
    result.plot("queries", ax)
    for (heights, edges), value in zip(steps(ax), result.value.values(), strict=True):
        assert area(heights, edges) == pytest.approx(value, abs=1e-12)
    assert words(ax)[:3] == [
        f"NDCG{at} = {value:.4f}" for at, value in zip(("@1", "@2", ""), result.value.values(), strict=True)
    ]
    looks = {(colors.to_hex(patch.get_edgecolor()), patch.get_linestyle()) for patch in ax.patches}
    assert len(looks) == 3
    assert title(ax)[0] == "sklearn"


def test_more_cut_offs_than_colours_are_refused(ax):
    with pytest.raises(ValueError, match=r"more than 6 cannot be told apart; got 7 cut-offs.*kind='cutoffs'"):
        evaluated(k=range(1, 8)).plot("queries", ax)


def test_nothing_to_draw_is_refused(ax):
    nothing = evaluate([[0, 0]], [[1, 2]], flavor=Flavor(empty=np.nan))
    with pytest.raises(ValueError, match=r"of 1, none counts.*scores nan"):
        nothing.plot(ax=ax)
    with pytest.raises(ValueError, match=r"a finite value to draw.*scores nan"):
        nothing.plot("cutoffs", ax)


def test_one_query(ax):
    evaluate([[1, 0]], [[0, 1]]).plot(ax=ax)
    assert title(ax)[1] == "1 query, 0 empty"
    [*_, (heights, edges)] = steps(ax)
    assert (heights.tolist(), edges.tolist()) == ([pytest.approx(0.63092975)], [0, 100])


def test_many_queries_are_thinned_and_stay_true(ax):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, (30_000, 3))
    result = evaluate(labels, rng.random(labels.shape))
    result.plot(ax=ax)
    heights, edges = steps(ax)[0]
    assert heights.size == 2000
    assert area(heights, edges) == pytest.approx(result.value, abs=1e-3)


def test_one_huge_value_does_not_squash_the_others(ax):
    labels = np.tile([1, 0, 1], (20, 1))
    labels[0] = [1, 0, 200]
    scores = np.tile([3, 2, 1], (20, 1))
    result = evaluate(labels, scores, flavor=Flavor(ideal="recall", recall_depth=1))
    assert result.per_query.ndcg[0] > 50
    result.plot(ax=ax)
    assert ax.get_ylim()[1] < 3
    assert words(ax)[-1].startswith("1 drawn at the edge, up to ")


# -- the cut-offs ---------------------------------------------------------------------------------------------------


def test_cut_offs_are_in_order_with_their_intervals(ax):
    _, [scores] = (given := systems(1))
    result = evaluate(given[0]["y_true"], scores, k=(None, 5, 1))
    result.plot("cutoffs", ax)
    ks = [1, 5, None]
    [line] = ax.lines
    assert line.get_xdata().tolist() == [0, 1, 2]
    assert line.get_ydata().tolist() == [result.value[k] for k in ks]
    intervals = result.interval(method="t")
    _, bars = ax.collections
    for segment, k in zip(bars.get_segments(), ks, strict=True):
        assert segment[:, 1] == pytest.approx([intervals[k].low, intervals[k].high])
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1", "5", "none"]
    assert words(ax) == ["95 % interval (t)", "value"]
    assert title(ax) == ["sklearn", "50 queries, 0 empty"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("cut-off k", "mean NDCG@k")


def test_a_single_cut_off_is_a_point(ax):
    result = evaluated(k=2)
    result.plot("cutoffs", ax)
    [line] = ax.lines
    assert line.get_ydata().tolist() == [result.value]
    assert line.get_marker() == "o"
    low, high = ax.get_ylim()
    assert (low, high) == pytest.approx((-0.02, 1.02))  # the t interval of four queries reaches far beyond
    assert words(ax) == ["95 % interval (t)", "value"]


def test_one_query_has_no_interval(ax):
    evaluate([[1, 0]], [[0, 1]], k=(1, 2)).plot("cutoffs", ax)
    assert not ax.collections
    assert words(ax) == ["value, which has no interval here"]


def test_a_cut_off_without_a_value_is_a_gap(ax):
    # Under an ideal of the retrieved documents' own ranks, the first query is empty at 1 and not at 2.
    result = evaluate([[0, 1], [1, 0]], [[2, 1], [2, 1]], flavor=Flavor(ideal="local", empty=np.nan), k=(1, 2))
    assert np.isnan(result.value[1])
    result.plot("cutoffs", ax)
    [line] = [line for line in ax.lines if len(line.get_xdata())]
    assert np.isnan(line.get_ydata()).tolist() == [True, False]
    assert "no finite value at k = 1" in words(ax)


def test_many_cut_offs_have_ticks_at_equal_distances(ax):
    evaluated(k=range(1, 101), flavor="ndcg[aggregate=micro]").plot("cutoffs", ax)
    ticks = ax.get_xticks()
    assert len(ticks) <= 15
    assert set(np.diff(ticks)) == {7}
    assert ax.get_ylabel() == "micro-averaged NDCG@k"
    assert len(ax.lines[0].get_xdata()) == 100


def test_a_run_is_drawn_as_an_evaluation(ax):
    run = evaluate_run({"q1": {"d1": 1}, "q2": {"d2": 1}}, {"q1": ["x", "d1"]}, k=(1, 5))
    run.plot("cutoffs", ax)
    assert ax.lines[0].get_ydata().tolist() == [run.value[1], run.value[5]]


# -- two flavors ----------------------------------------------------------------------------------------------------


def arrows(axes) -> list[tuple[float, float, int]]:
    """Where each begins and ends, and its row."""
    found = [text for text in axes.texts if text.arrow_patch is not None]
    return [(text.get_position()[0], text.xy[0], text.xy[1]) for text in found]


def test_the_steps_lead_from_a_to_b(ax):
    result = explain_difference("sklearn", "lightgbm@2", LABELS, SCORES)
    assert result.plot(ax) == (ax.figure, ax)
    drawn = arrows(ax)
    parts = [part for part in result.parts if abs(part.contribution) > 1e-15]
    assert len(drawn) == len(parts) > 1
    assert drawn[0][0] == pytest.approx(result.value_a)
    assert drawn[-1][1] == pytest.approx(result.value_b)
    for at, ((before, after, row), part) in enumerate(zip(drawn, parts, strict=True), start=1):
        assert row == at
        assert after - before == pytest.approx(part.contribution)
    for (_, end, _), (begin, _, _) in pairwise(drawn):
        assert end == begin
    names = rows(ax)
    assert (names[0], names[-1]) == ("a: sklearn", "b: lightgbm@2")
    assert f"{parts[0].name}: {' → '.join(parts[0].values_text())}" == names[1]
    numbers = [text.get_text() for text in ax.texts if text.get_text()]
    assert f"{parts[0].contribution:+.4f}" in numbers
    assert f"{result.value_a:.4f}" in numbers
    assert ax.get_xlabel().splitlines()[0] == "NDCG"  # no cut-off in the name: the two sides have different ones
    assert title(ax)[0] == f"b - a = {result.difference:+.4f}; 4 queries; Shapley values of the switches"
    low, high = ax.get_xlim()
    assert all(low < x < high for before, after, _ in drawn for x in (before, after))


def test_a_step_down_has_another_colour(ax):
    result = explain_difference(
        "ndcg[ties=best,empty=0]", "ndcg[ties=worst,empty=1]", [[1, 0], [0, 0]], [[1, 1], [1, 1]]
    )
    result.plot(ax)
    hues = {np.sign(after - before): text.arrow_patch.get_edgecolor() for (before, after, _), text in
            zip(arrows(ax), [text for text in ax.texts if text.arrow_patch is not None], strict=True)}  # fmt: skip
    assert colors.to_hex(hues[1.0]).upper() == plot.BLUE
    assert colors.to_hex(hues[-1.0]).upper() == plot.VERMILLION


def test_no_difference_has_no_step(ax):
    explain_difference("sklearn", "sklearn", LABELS, SCORES).plot(ax)
    assert not arrows(ax)
    assert rows(ax) == ["a: sklearn", "b: sklearn"]
    ax.clear()
    explain_difference("sklearn@1", "sklearn[score_dtype=float32]@1".replace("]@1", ",k=1]"), LABELS, SCORES).plot(ax)
    assert ax.get_xlabel() == "NDCG@1\nno effect on these data: score_dtype"


def test_a_long_flavor_is_in_the_title_whole(ax):
    long = Flavor(gain=(0, 1.5, 3.25, 7.125, 9.5), discount="reciprocal", ties="worst", empty="skip", k=2)
    explain_difference("sklearn", long, LABELS, SCORES).plot(ax)
    assert rows(ax)[-1] == "b"
    assert long.short_text in "".join(title(ax))
    ax.figure.canvas.draw()
    assert ax._left_title.get_window_extent().x1 <= ax.figure.bbox.x1


# -- systems --------------------------------------------------------------------------------------------------------


def test_two_systems_are_drawn_query_by_query(ax):
    labels, both = systems(2)
    result = by_scores(*both, **labels, k=5, names=["old", "new"], seed=0)
    assert result.plot(ax) == (ax.figure, ax)
    apart = np.sort(result.ndcg[:, 1] - result.ndcg[:, 0])
    points = [line for line in ax.lines if line.get_linestyle() == "None" and len(line.get_xdata())]
    drawn = sorted((x, y) for line in points for x, y in zip(*line.get_data(), strict=True))
    assert [x for x, _ in drawn] == list(range(1, 51))
    assert [y for _, y in drawn] == pytest.approx(apart)
    assert len({line.get_marker() for line in points}) == 3
    assert words(ax) == [
        "95 %, interval of the randomisation test",
        f"difference of the values {result.difference:+.4f}",
        f"{result.losses} queries: new worse",
        f"{result.ties} queries: equal",
        f"{result.wins} queries: new better",
    ]
    low, high = ax.get_ylim()
    assert low == -high
    assert low < apart[0]
    band = ax.patches[0].get_extents().transformed(ax.transData.inverted())
    assert (band.y0, band.y1) == pytest.approx((result.interval.low, result.interval.high))
    assert title(ax)[0] == "sklearn@5; 50 queries"
    assert f"p\xa0=\xa0{result.p_value:.4f}" in title(ax)[1]


def test_systems_that_are_the_same(ax):
    by_scores(SCORES, SCORES, y_true=LABELS).plot(ax)
    assert words(ax)[-1] == "4 queries: equal"
    assert ax.get_ylim() == pytest.approx((-1.06, 1.06))


def test_one_query_far_off_does_not_squash_the_others(ax):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, (100, 10))
    good = labels + rng.normal(0, 0.5, labels.shape)
    other = good + rng.normal(0, 0.05, labels.shape)
    other[0] = -good[0]
    result = by_scores(good, other, y_true=labels, seed=0)
    apart = np.abs(result.ndcg[:, 1] - result.ndcg[:, 0])
    result.plot(ax)
    assert ax.get_ylim()[1] < apart.max() / 2
    worst = (result.ndcg[:, 1] - result.ndcg[:, 0]).min()
    n = int((apart > ax.get_ylim()[1] / 1.06 + 1e-12).sum())
    assert words(ax)[-1] == f"{n} drawn at the edge, up to {worst:+.4f}"
    drawn = [y for line in ax.lines if line.get_linestyle() == "None" for y in line.get_ydata()]
    assert len(drawn) == 100
    assert all(abs(y) < ax.get_ylim()[1] for y in drawn)


def test_several_systems_are_drawn_pair_by_pair(ax):
    labels, (one, other) = systems(2, noise=1.0)
    rng = np.random.default_rng(1)
    result = by_scores(one, other, one + rng.normal(0, 0.1, one.shape), **labels, k=5, names=["a", "b", "c"], seed=0)
    result.plot(ax)
    drawn = {}
    for line in (line for line in ax.lines if line.get_marker() == "o"):
        for x, y in zip(*line.get_data(), strict=True):
            drawn[y] = (x, line.get_markerfacecolor() != "none")
    spans = {segment[0, 1]: segment[:, 0] for lines in ax.collections for segment in lines.get_segments()}
    for at, pair in enumerate(result.pairs):
        assert drawn[at] == (pair.difference, pair.significant)
        assert spans[at] == pytest.approx([pair.interval.low, pair.interval.high])
        assert (
            rows(ax)[at]
            == f"{pair.b} minus {pair.a}\n{pair.difference:+.4f}, p = {pair.p_adjusted:.4f}: {pair.verdict}"
        )
    assert {pair.significant for pair in result.pairs} == {True, False}
    assert words(ax) == ["decided", "undecided"]
    assert title(ax) == ["sklearn@5", "50 queries"]
    assert ax.get_xlabel() == "difference of NDCG@5, 95 %, intervals that hold together (max-T)"
    assert ax.get_xscale() == "linear"
    low, high = ax.get_ylim()
    assert low > 2.5 > high  # the first pair is at the top


def test_a_system_far_off_does_not_squash_the_others(ax):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, (200, 8))
    close = [labels + rng.normal(0, 0.01, labels.shape) + (rng.random(labels.shape) < 0.01) for _ in range(3)]
    result = by_scores(*close, rng.random(labels.shape), y_true=labels, seed=0)
    result.plot(ax)
    assert ax.get_xscale() == "symlog"
    assert ax.get_xlabel().splitlines()[1] == "logarithmic beyond 0.01 to either side"
    low, high = ax.get_xlim()
    assert low < min(pair.interval.low for pair in result.pairs)
    assert high > max(pair.interval.high for pair in result.pairs)
    close_pair = result.pairs[0].interval
    ends = ax.transAxes.inverted().transform(ax.transData.transform([(close_pair.low, 0), (close_pair.high, 0)]))
    assert ends[1, 0] - ends[0, 0] > 0.03


def test_of_many_pairs_those_with_the_smallest_p_are_drawn(ax):
    labels, nine = systems(9, noise=0.3)
    result = by_scores(*nine, **labels, seed=0)
    result.plot(ax)
    assert len(result.pairs) == 36
    assert title(ax)[-1] == "50 queries; the 30 of 36 pairs with the smallest p"
    limit = sorted(pair.p_adjusted for pair in result.pairs)[29]
    surely = [f"{pair.b} minus {pair.a}" for pair in result.pairs if pair.p_adjusted < limit]
    assert len(rows(ax)) == 30
    assert set(surely) <= {row.splitlines()[0] for row in rows(ax)}


def test_queries_that_are_not_compared_are_counted(ax):
    by_scores(SCORES, [[1, 2, 3]] * 4, y_true=LABELS, flavor="ndcg[empty=skip]").plot(ax)
    assert title(ax)[0] == "ndcg[empty=skip]; 3 queries, 1 more not compared"


def test_slices(ax):
    result = evaluated(k=(2, 3), by={"kind": ["x", "x", "y", "z"], "all": ["w"] * 4})
    result.slices.plot(ax)
    whole = ax.lines[0].get_xdata()[0]
    assert whole == pytest.approx(result.value[2])
    points = {y: x for line in ax.lines[1:] for x, y in zip(*line.get_data(), strict=True)}
    assert points == {at: each.value[2] for at, each in enumerate(result.slices)}
    assert [row.splitlines()[0] for row in rows(ax)] == [f"{each.column}={each.label}" for each in result.slices]
    assert words(ax) == ["with 95 % t interval", "no interval: too few queries"]
    assert title(ax) == ["sklearn@2", "4 queries"]
    low, high = ax.get_xlim()
    assert low >= -0.02
    assert high <= 1.02


# -- what holds for all ---------------------------------------------------------------------------------------------

DRAWINGS = {
    "queries": lambda ax: evaluated(k=(1, 2)).plot("queries", ax),
    "cutoffs": lambda ax: evaluated(k=(1, 2)).plot("cutoffs", ax),
    "explanation": lambda ax: explain_difference("sklearn", "lightgbm", LABELS, SCORES).plot(ax),
    "two systems": lambda ax: by_scores(SCORES, LABELS, y_true=LABELS).plot(ax),
    "three systems": lambda ax: by_scores(SCORES, LABELS, SCORES, y_true=LABELS).plot(ax),
    "slices": lambda ax: evaluated(by=["x", "x", "y", "y"]).slices.plot(ax),
}


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS.keys())
def test_nothing_global_changes(draw, ax):
    from matplotlib import pyplot as plt

    plt.switch_backend("agg")
    theirs = plt.figure()
    try:
        before = dict(matplotlib.rcParams)
        draw(ax)
        assert dict(matplotlib.rcParams) == before
        assert plt.get_fignums() == [theirs.number]
        assert plt.gcf() is theirs
        assert not theirs.axes
        figure, axes = draw(None)
        assert plt.gcf() is figure
        assert axes in figure.axes
        assert figure.get_size_inches().tolist()[0] == 8
        figure.canvas.draw()
        inside = figure.bbox.padded(2)
        box = axes.get_tightbbox()
        assert inside.x0 <= box.x0
        assert box.x1 <= inside.x1
        assert inside.y0 <= box.y0
        assert box.y1 <= inside.y1
        assert dict(matplotlib.rcParams) == before
    finally:
        plt.close("all")


def test_pyplot_is_not_imported_for_the_callers_axes():
    code = f"""
import sys
from matplotlib.figure import Figure
from ndcg_ml import evaluate
evaluate({LABELS}, {SCORES}).plot(ax=Figure().subplots())
print("matplotlib.pyplot" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS.keys())
def test_other_axes_are_refused(draw):
    figure = Figure()
    for other, named in (
        ("axes", "got str"),
        (figure, "got Figure"),
        (figure.subplots(1, 2), r"got ndarray. Pass one of the axes in the array, such as axes\[0\]"),
        (figure.add_subplot(projection="polar"), "got polar axes"),
    ):
        with pytest.raises(TypeError, match=f"ax must be the axes of a matplotlib figure.*{named}"):
            draw(other)


def test_several_cutoffs_are_drawn_without_asking(ax):
    axes = evaluated(k=(1, 2, 3, 4, 5, 6, 7)).plot(ax=ax)[1]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == list("1234567")
    assert axes.get_xlabel() == "cut-off k"
    assert evaluated(k=(2,)).plot()[1].get_xlabel() == "cut-off k"
    assert evaluated(k=2).plot()[1].get_xlabel() == "queries, the worst first (%)"


def test_another_kind_is_refused(ax):
    with pytest.raises(ValueError, match="kind must be one of 'queries', 'cutoffs'; got 'histogram'"):
        evaluated().plot("histogram", ax)


def test_without_matplotlib_the_extra_is_named():
    code = f"""
import sys
sys.modules["matplotlib"] = sys.modules["matplotlib.axes"] = None
from ndcg_ml import compare, evaluate, explain_difference
made = (
    evaluate({LABELS}, {SCORES}, by=list("xxyy")),
    explain_difference("sklearn", "lightgbm", {LABELS}, {SCORES}),
    compare(evaluate({LABELS}, {SCORES}), evaluate({LABELS}, {LABELS})),
)
for each in (*made, made[0].slices):
    try:
        each.plot()
    except ImportError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines() == [
        f"{name}.plot needs matplotlib. Install it with: pip install 'ndcg_ml[plot]'"
        for name in ("Evaluation", "Explanation", "Comparison", "Slices")
    ]


@pytest.mark.parametrize("name", ["$x", r"$\frac{1}$", "_hidden", "two\nlines", "<script>", "x" * 300])
def test_any_name_is_drawn_as_it_is(ax, name):
    by_scores(SCORES, LABELS, y_true=LABELS, names=["a", name]).plot(ax)
    shown = name if len(name) < 24 else "x" * 11 + "..." + "x" * 10
    assert f"3 queries: {' '.join(shown.split())} better" in words(ax)
    ax.figure.canvas.draw()
    ax.clear()
    by_scores(SCORES, LABELS, SCORES, y_true=LABELS, names=["a", name, "c"]).plot(ax)
    assert rows(ax)[0].startswith(" ".join(shown.split()))
    ax.figure.canvas.draw()
    ax.clear()
    evaluated(by={name: ["x", "x", name, name]}).slices.plot(ax)


def test_a_title_is_as_wide_as_its_axes():
    figure = Figure(figsize=(8, 4), layout="constrained")
    FigureCanvasAgg(figure)
    long = Flavor(gain=lambda grade: grade, ties="worst", empty="skip", discount="jarvelin", k=2)
    for axes in figure.subplots(1, 2):
        evaluated(flavor=long).plot(ax=axes)
        assert "".join(title(axes)).startswith(str(long))
        figure.canvas.draw()
        box = axes._left_title.get_window_extent()
        assert box.x1 - box.x0 < 1.15 * axes.bbox.width
