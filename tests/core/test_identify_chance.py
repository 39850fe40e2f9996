"""``identify``: what chance would match, decimals as they are written, short lists, and rows without their queries."""

from __future__ import annotations

import numpy as np
import pytest

from ndcg_ml import Flavor, identify, ndcg_score


def problem(n_queries=12, longest=9, seed=11):
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), rng.integers(2, longest, n_queries))
    x = rng.normal(size=qid.size)
    y = np.clip(np.round(x + rng.normal(size=qid.size)), 0, 4).astype(int)
    return {"y_true": y, "y_score": np.round(x + rng.normal(size=qid.size), 1), "qid": qid}


DATA = problem()


@pytest.mark.parametrize(
    ("value", "decimals"),
    [
        *[("0.784", 3), ("0.7840", 4), ("0.78400", 5), ("1", 0), ("1.", 0), (".5", 1), (" -0.25 ", 2)],
        *[("0.123456789", 9), ("0.1234567891", None)],
        *[(0.784, 3), (0.5, 1), (0.78, 2), (0.7841, 4), (0.78412, 4), (0.7841234567, 4), (1.0, 4), (0, 4)],
    ],
)
def test_decimals_are_those_that_are_written_or_needed(value, decimals):
    found = identify(value, [1, 0], [2, 1], group=[2], k=1)
    assert (found.value, found.decimals) == (float(value), decimals)


def test_a_number_in_per_cent_is_named():
    value = ndcg_score(**DATA)
    hint = "if the number is in per cent, pass "
    said = str(identify(round(100 * value, 2), **DATA))
    found = identify(float(said.partition(hint)[2].splitlines()[0]), **DATA)
    assert any("sklearn" in match.presets for match in found.matches)
    assert hint not in str(found)
    assert hint not in str(identify(101.5, **DATA))


def test_cutoffs_up_to_the_longest_list_are_tried():
    scores = np.random.default_rng(0).normal(size=14)
    data = {"y_true": [1, 0, *(3, 0, 1, 2, 0, 1, 3, 2, 0, 1, 0, 2)], "y_score": scores, "group": [2, 12]}
    found = identify(f"{ndcg_score(**data, k=7):.12f}", **data, decimals=12)
    assert "sklearn@7" in found.matches[0].presets


def test_the_matches_that_chance_gives_are_counted():
    """Simulated: numbers drawn close to this one, and how many of the values each of them has within reach."""
    number, within = 0.7, 0.505e-3
    values = np.sort([match.value for match in identify(number, **DATA, decimals=0).matches])
    drawn = np.random.default_rng(5).uniform(number - 0.05, number + 0.05, 20_000)
    counts = np.searchsorted(values, drawn + within) - np.searchsorted(values, drawn - within)
    assert identify("0.700", **DATA).by_chance == pytest.approx(counts.mean(), rel=0.1)


def test_a_match_that_chance_would_give_is_called_no_evidence():
    coarse = identify("0.7", **DATA)
    assert coarse.matches
    assert coarse.presets_by_chance > 0.5
    assert "a match is no evidence here; pass more decimals, k, or more data" in str(coarse)
    value = ndcg_score(**DATA, flavor="lightgbm", k=3)
    sure = identify(f"{value:.9f}", **DATA, k=3)
    assert sure.by_chance < 0.05
    assert "evidence" not in str(sure)
    assert "by chance, a number near this one would match" in str(sure)
    assert sure.to_dict()["by_chance"] == sure.by_chance
    weak = identify(f"{value:.4f}", **DATA, k=3)
    assert ("weak evidence" in str(weak)) == (0.05 <= weak.presets_by_chance < 0.5)


def test_every_cut_off_is_tried_where_lists_are_short():
    y, s = [10, 0, 0, 1, 5], [0.05, 1.1, 1.0, 0.5, 0.0]
    assert identify("0.35202", y, s, group=[5]).matches[0].name == "sklearn@4"
    rng = np.random.default_rng(2)
    for longest in (20, 21):
        data = {"y_true": rng.integers(0, 4, longest), "y_score": rng.normal(size=longest), "group": [longest]}
        value = ndcg_score(**data, flavor="sklearn", k=7)
        is_tried = any("sklearn@7" in match.presets for match in identify(f"{value:.12f}", **data).matches)
        assert is_tried == (longest == 20)


def test_all_rows_as_one_query_are_recognised():
    value = ndcg_score(DATA["y_true"], DATA["y_score"], group=[len(DATA["qid"])], flavor="sklearn", k=10)
    match = identify(f"{value:.8f}", **DATA).matches[0]
    assert match.name == "sklearn@10 (all rows as one query)"
    assert match.value == value
    one = identify(f"{value:.8f}", DATA["y_true"], DATA["y_score"], group=[len(DATA["qid"])])
    assert not any("one query" in each for match in one.matches for each in match.presets)


def test_a_match_by_query_comes_before_one_of_all_rows():
    data = {"y_true": [[1, 0], [1, 0]], "y_score": [[2.0, 1.0], [2.0, 1.0]]}
    result = identify("1.0000", **data)
    assert "one query" not in result.matches[0].name


def test_every_match_reads_back_as_a_flavor_with_its_value():
    matches = [m for m in identify("0.7", **DATA, k=(3, 5)).matches if "one query" not in m.name]
    assert len(matches) > 10
    for match in matches:
        assert Flavor.parse(match.name) == match.flavor
        assert ndcg_score(**DATA, flavor=match.flavor) == pytest.approx(match.value, abs=1e-11)
