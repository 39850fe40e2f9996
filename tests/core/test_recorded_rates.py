"""Intervals, verdicts and corrected scores have the rates that benchmarks/results/decisions.md states."""

import json

import pytest

simulation = pytest.importorskip("benchmarks.coverage", reason="benchmarks are not part of the installed package")
promises = pytest.importorskip("benchmarks.decisions", reason="benchmarks are not part of the installed package")

COVERAGES = json.loads(simulation.RESULT.read_text(encoding="utf-8"))


def test_the_record_has_every_cell_and_all_but_rare_values_are_covered():
    assert [*COVERAGES["cells"]] == [*simulation.POPULATIONS, *simulation.RARE]
    shares = [COVERAGES["cells"][name][str(n)][0] for name in simulation.POPULATIONS for n in simulation.SIZES]
    assert len(shares) == 210
    assert min(shares) >= 0.93


@pytest.mark.parametrize(
    ("name", "n"), [("beta(8, .8)", 20), ("98 % ones, 2 % zeros", 50), ("95 % from .95 to 1, 5 % zeros", 30)]
)
def test_few_queries_near_a_bound_are_covered(name, n):
    share, width = simulation.coverage(name, n, 400)
    assert share >= 0.91  # t: 92, 65, 77
    assert width < 3


@pytest.mark.long
@pytest.mark.parametrize("name", COVERAGES["cells"])
def test_the_recorded_coverage_is_what_comes_out(name, request):
    if name.startswith("TREC"):
        request.getfixturevalue("data_dir")
    for n in simulation.SIZES:
        recorded, width = COVERAGES["cells"][name][str(n)]
        found, wide = simulation.coverage(name, n, 500)
        error = (max(recorded * (1 - recorded), 0.002) * (1 / 500 + 1 / COVERAGES["samples"])) ** 0.5
        assert found == pytest.approx(recorded, abs=4 * error)
        assert wide == pytest.approx(width, rel=0.25)


# -- verdicts, intervals and corrected scores, in a few samples of fixed seed ----------------------------------

CELLS = {cell.name: cell for cell in promises.cells()}
RECORDED = {row["cell"]: row for row in json.loads(promises.RESULT.read_text(encoding="utf-8"))}


# The comments give the result of simpler methods: intervals of single pairs, tests of queries as if they were
# independent, runs stacked as queries, variances of two runs alone, and the best score of a search.
@pytest.mark.parametrize(
    ("name", "samples", "low", "high"),
    [
        ("simultaneous coverage, 5 systems, 50 queries", 40, 85, 100),  # 73
        ("verdict, interval and p contradict each other, 4 systems, 12 queries", 25, 0, 0),  # 29
        ("false 'not worse' at the margin, 50 queries", 60, 0, 9),
        ("type I error with cluster=, 50 users", 60, 0, 14),  # 31
        ("miss rate, robust t interval of a value, 20 users", 400, 2, 9),
        ("type I error, 5 seeds that differ by .05, 50 queries", 100, 0, 14),  # 34
        ("power at the minimum detectable difference, 50 queries", 60, 65, 95),
        ("type I error, 4 systems of 2 seeds, 100 queries", 100, 0, 10),  # 11
        ("bias of the corrected score, 20 candidates, 50 queries", 30, -0.01, 0.012),  # .0155, .0225
    ],
)
def test_promises_are_kept(name, samples, low, high):
    found = promises.measured(CELLS[name], samples)
    assert low <= found["result"] <= high
    assert found["samples"] == samples


# These cells take half of the time. Sixty samples distinguish 95 % from the 73 % that intervals of single pairs cover,
# and the power of the last is 1.
FEWER = {
    "simultaneous coverage, 10 systems, 50 queries": 60,
    "simultaneous coverage, 10 systems, 200 queries": 60,
    "t = 25 found among 100 systems": 10,
}


@pytest.mark.long
@pytest.mark.parametrize("name", CELLS)
def test_the_record_is_what_comes_out(name):
    cell, row = CELLS[name], RECORDED[name]
    found = promises.measured(cell, min(FEWER.get(name, 200), row["samples"]))
    error = 4 * (found["standard_error"] ** 2 + row["standard_error"] ** 2) ** 0.5
    assert found["result"] == pytest.approx(row["result"], abs=max(error, 2.0 if cell.per_cent else 0.01))


def test_missed_targets_are_documented():
    for name, row in RECORDED.items():
        assert row["met"] == (CELLS[name].target[0] <= row["result"] <= CELLS[name].target[1])
        assert row["met"] or f"{name} |" in promises.PAGE.read_text(encoding="utf-8")
