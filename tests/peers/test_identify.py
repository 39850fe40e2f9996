"""Which flavor a reported number is: against live libraries, and against trying every flavor by hand."""

from __future__ import annotations

import pytest

pytest.importorskip("lightgbm")
pytest.importorskip("sklearn")
pytest.importorskip("xgboost")

import json
import math
import re

import lightgbm as lgb
import numpy as np
import xgboost as xgb
from lanes import quick
from sklearn.metrics import ndcg_score as sklearn_ndcg

from ndcg_ml import PRESETS, Flavor, align, identify, ndcg_score


def data(seed=0, n_queries=30, smallest=1):
    """Tied scores, scores that only float32 ties, empty queries, queries of one document."""
    rng = np.random.default_rng(seed)
    group = rng.integers(smallest, 30, n_queries)
    n = int(group.sum())
    y = np.clip(rng.integers(-2, 5, n), 0, 4).astype(float)
    s = rng.normal(size=n).round(1) + 1e-9 * rng.integers(0, 2, n)
    y[: group[0]] = 0
    return y, s, group


SMALL = {"y_true": [0, 2, 1, 0, 3, 1, 0, 0], "y_score": [0.9, 0.5, 0.5, 0.2, 0.7, 0.8, 0.1, 0.5], "group": [5, 1, 2]}


# -- live libraries


def lightgbm_says(y, s, group, k):
    train = lgb.Dataset(np.zeros((y.size, 1)), y, group=group, init_score=s, params={"verbosity": -1})
    parameters = {"objective": "lambdarank", "metric": "ndcg", "eval_at": [k], "verbosity": -1, "num_threads": 1}
    return lgb.Booster(parameters, train).eval_train()[0][2]


def xgboost_says(y, s, group, k):
    matrix = xgb.DMatrix(np.zeros((y.size, 1)), y, base_margin=s)
    matrix.set_group(group)
    parameters = {"objective": "rank:ndcg", "eval_metric": f"ndcg@{k}", "base_score": 0.0, "nthread": 1}
    return float(xgb.Booster(parameters, [matrix]).eval(matrix).rsplit(":", 1)[1])


def sklearn_says(y, s, group, k):
    # It refuses queries of one document, which the data must not have.
    parts = np.split(np.arange(y.size), np.cumsum(group)[:-1])
    return float(np.mean([sklearn_ndcg([y[part]], [s[part]], k=k) for part in parts]))


LIVE = {"lightgbm": lightgbm_says, "xgboost": xgboost_says, "sklearn": sklearn_says}


# Other data change the number alone, and test_parity_live.py holds the presets to these libraries on many.
@pytest.mark.parametrize("name", LIVE)
@pytest.mark.parametrize("seed", quick([0], [0, 1]))
def test_a_live_library_is_named_first(name, seed):
    y, s, group = data(seed, smallest=2 if name == "sklearn" else 1)
    value = LIVE[name](y, s, group, 10)
    # The full value with the cut-off unknown, then the printed value with the cut-off known.
    assert identify(value, y, s, group=group).matches[0].name == f"{name}@10"
    printed = identify(round(value, 4), y, s, group=group, k=10)
    assert printed.matches[0].name == f"{name}@10"
    assert abs(printed.matches[0].value - value) < 1e-5


# -- the presets and the combinations


def test_a_preset_with_one_switch_changed_is_named_so():
    y, s, group = data(3)
    value = ndcg_score(y, s, group=group, flavor="lightgbm@5[ties=best]")
    match = identify(value, y, s, group=group, decimals=None).matches[0]
    assert match.name == "lightgbm@5[ties=best]"
    assert match.presets == ()
    assert match.n_others >= 1


def test_the_maximal_ideal_takes_the_highest_label():
    value = ndcg_score(flavor=Flavor(ideal="max", max_grade=3, ties="first", k=3), **SMALL)
    match = identify(value, **SMALL, k=3, decimals=None).matches[0]
    assert (match.flavor.ideal, match.flavor.max_grade) == ("max", 3)
    assert "ideal=max,max_grade=3" in match.name


# -- order


def test_presets_that_coincide_stand_in_the_order_of_presets():
    # No near-ties: float32, all that XGBoost does otherwise than LightGBM, does not show.
    y, s, group = data(4)
    s = s.round(1)
    match = identify(ndcg_score(y, s, group=group, flavor="xgboost", k=10), y, s, group=group).matches[0]
    expected = [name for name in PRESETS if f"{name}@10" in match.presets]
    assert [text.split("@")[0] for text in match.presets] == expected
    assert {"lightgbm@10", "xgboost@10"} <= set(match.presets)
    assert match.name == match.presets[0]
    assert "xgboost@10" in str(identify(match.value, y, s, group=group))


def test_a_presets_own_cutoff_comes_before_others():
    # No query is longer than 30: no cut-off, 32 and 100 are one, and only the first is LightGBM's own.
    y, s, group = data(4)
    match = identify(ndcg_score(y, s, group=group, flavor="lightgbm"), y, s, group=group).matches[0]
    assert match.name == "lightgbm"
    assert match.flavor.k is None
    assert {"lightgbm@100"} <= set(match.presets)


def test_of_equal_fits_the_tools_for_such_data_come_first():
    rng = np.random.default_rng(4)
    group = rng.integers(12, 30, 20)
    y, s = rng.integers(0, 4, group.sum()).astype(float), rng.permutation(group.sum()).astype(float)
    ids = np.concatenate([rng.permutation(size) for size in group])
    missing = np.where(rng.random(y.size) < 0.2, math.nan, y)

    def first(labels, **more):
        value = ndcg_score(labels, s, group=group, **more, flavor="ndcg@10[unjudged=zero]")
        return identify(value, labels, s, group=group, **more, decimals=None).matches[0]

    # Those that want a label for each document; those that know unjudged ones; those that order ties by id. A preset's
    # own cut-off counts less than that: 10 is that of recommenders_raw.
    every, run, trec = first(y), first(missing), first(missing, doc_id=ids)
    assert every.name == "sklearn@10"
    assert PRESETS[run.name.partition("@")[0]].unjudged == "zero"
    assert run.flavor.ties != "docid"
    assert trec.name == "trec_eval@10"
    for match in (every, trec):
        assert {"recommenders_raw@10", "ranx@10"} <= set(match.presets)
    text = str(identify(trec.value, missing, s, group=group, doc_id=ids, decimals=None))
    assert re.search("these data cannot distinguish it from .*pytrec_eval@10.*recommenders_raw@10", text)


@pytest.mark.parametrize(
    ("printed", "libraries"),
    [
        (0.387, ["mlflow"]),
        (0.296, ["llama_index", "haystack", "vespa", "replay"]),
        (0.380, ["lenskit"]),
        (0.139, ["rectools"]),
    ],
)
def test_what_libraries_print_for_one_query(printed, libraries):
    """Three documents are relevant, one of them is retrieved, at rank 2."""
    data = align({"q": {"a": 1, "b": 1, "c": 1}}, {"q": ["x", "a"]}).arguments()
    for k in (10, ...):
        result = identify(printed, **data, k=k, decimals=3)
        names = [preset.partition("@")[0] for preset in result.matches[0].presets]
        assert set(libraries) <= set(names)
        assert all(re.search(rf"\b{name}\b", str(result)) for name in libraries)


def test_what_is_printed_is_a_handful():
    y, s, group = data(0)
    result = identify(round(ndcg_score(y, s, group=group, flavor="lightgbm@10"), 1), y, s, group=group, decimals=1)
    with_preset = [match for match in result.matches if match.presets]
    assert len(result.matches) > len(with_preset) > 5
    listed = [line.split()[0] for line in str(result).splitlines() if re.match("  [a-z]", line) and "more" not in line]
    assert listed == [match.name for match in with_preset[:5]]
    assert f"and {len(result.matches) - 5} more, in .matches" in str(result)
    others = len(result.matches) - len(with_preset)
    assert f": {len(with_preset)} matches with a preset, {others} others with one switch changed\n" in str(result)


def test_of_a_finer_value_the_nearest_preset_is_first():
    y, s, group = data(0)
    values = {name: ndcg_score(y, s, group=group, flavor=name, k=10) for name in ("lightgbm", "xgboost", "sklearn")}
    for name, value in values.items():
        result = identify(value + 1e-7, y, s, group=group, decimals=0, k=10)
        assert result.matches[0].name == f"{name}@10"
        distances = [abs(match.value - value - 1e-7) for match in result.matches if match.presets]
        assert distances == sorted(distances)
        assert len(distances) > 4


# -- rounding


def test_half_a_unit_of_the_last_decimal():
    value = ndcg_score(flavor="lightgbm@3", **SMALL)  # 0.876633
    for off, is_match in [(0.49, True), (-0.49, True), (0.505, True), (0.53, False), (-0.53, False)]:
        reported = value + off * 1e-4 + 1e-15
        assert any(m.name == "lightgbm@3" for m in identify(reported, **SMALL, k=3).matches) == is_match
        reported = value + off * 1e-2
        assert any(m.name == "lightgbm@3" for m in identify(reported, **SMALL, k=3, decimals=2).matches) == is_match


def test_a_value_that_was_cut_off():
    value = ndcg_score(flavor="lightgbm@3", **SMALL)  # 0.876632989
    rounded = identify(0.8766, **SMALL, k=3)
    assert not rounded.truncated
    cut = identify(0.87663298, **SMALL, k=3, decimals=8)
    assert cut.truncated
    assert cut.matches[0].name == "lightgbm@3"
    assert "truncated rather than rounded" in str(cut)
    assert not identify(0.876632982, **SMALL, k=3, decimals=8).matches  # has more digits than it was cut to
    assert not identify(0.87663300, **SMALL, k=3, decimals=8).truncated
    assert identify(0.87663299, **SMALL, k=3, decimals=8).matches[0].value == value


@pytest.mark.parametrize(("value", "decimals"), [(0.9999, 4), (0.99, 2), (0.9, 1), (0.99999999, 8), (0.0, 0)])
def test_one_is_not_cut_off_to_what_is_below_it(value, decimals):
    result = identify(value, [3, 2, 1, 0], [4, 3, 2, 1], group=[4], k=2, decimals=decimals)
    assert all(match.value != 1 for match in result.matches)
    assert result.matches or result.nearest[0].value == 1


def test_fewer_decimals_are_pointed_out():
    value = ndcg_score(flavor="lightgbm@3", **SMALL)  # 0.876632989
    assert "pass decimals=2" in str(identify(0.88, **SMALL, k=3, decimals=4))
    assert "pass decimals=" not in str(identify(0.88, **SMALL, k=3))
    assert "pass decimals=" not in str(identify(0.8112, **SMALL, k=3))
    assert "lightgbm@3" in str(identify(round(value, 2), **SMALL, k=3, decimals=2))


def test_an_exact_value():
    value = ndcg_score(flavor="lightgbm@3", **SMALL)
    assert identify(value + 9e-10, **SMALL, decimals=None).matches[0].name == "lightgbm@3"
    assert identify(value + 2e-9, **SMALL, decimals=None).matches == ()


def test_no_match_names_the_nearest():
    value = 0.12345678
    result = identify(value, **SMALL, k=3)
    assert result.matches == ()
    assert not result.truncated
    assert len(result.nearest) == 5
    gaps = [abs(match.value - value) for match in result.nearest]
    assert gaps == sorted(gaps)
    assert "no match; the nearest are" in str(result)
    assert identify(7.5, **SMALL).nearest[0].value < 3


# -- what was tried


def test_without_a_cutoff_the_common_ones_and_the_presets_own_are_tried():
    y, s, group = data(6, n_queries=12)
    for k in (None, 5, 100):
        value = ndcg_score(y, s, group=group, flavor="catboost", k=k)
        assert f"catboost{'' if k is None else f'@{k}'}" in identify(value, y, s, group=group).matches[0].presets
    value = ndcg_score(y, s, group=group, flavor="catboost", k=7)
    assert identify(value, y, s, group=group, decimals=None).matches == ()
    assert identify(value, y, s, group=group, decimals=None, k=(6, 7)).matches[0].name == "catboost@7"


def test_repeated_documents_open_their_switch():
    y, s, ids = [1, 0, 1, 1, 0, 2], [5, 4, 3, 2, 1, 0], list("axabcd")
    for rule in ("first", "count"):
        flavor = Flavor(ideal="global", ties="first", duplicates=rule, k=5)
        value = ndcg_score(y, s, group=[6], doc_id=ids, flavor=flavor)
        result = identify(value, y, s, group=[6], doc_id=ids, k=5, decimals=None)
        assert result.matches[0].flavor.duplicates == rule
        assert "under duplicates='raise'" in result.not_tried["sklearn"]


def test_what_needs_ids_says_so():
    result = identify(0.5, **SMALL)
    assert result.not_tried["trec_eval"] == "doc_id was not given"
    assert str(result).count("doc_id was not given") == 1
    assert "trec_eval" not in identify(0.5, **SMALL, doc_id=list("abcdefgh")).not_tried


def test_a_preset_without_a_value_says_so():
    result = identify(0.0, [0, 0], [1, 2], group=[2])
    assert result.not_tried["burges2005"] == "it has no value under empty=skip"
    assert "sklearn" in result.matches[0].presets


def test_json_and_text():
    result = identify(0.8766, **SMALL)
    shown = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert shown["matches"][0]["name"] == "lightgbm@3"
    assert Flavor.parse(shown["matches"][0]["flavor"]) == result.matches[0].flavor
    assert str(result).startswith("0.8766: ")
    assert str(identify(0.1234567, **SMALL, decimals=None)).startswith("0.1234567: no match")


# -- refusals


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"value": math.nan}, ValueError, "value must be a finite number"),
        ({"value": math.inf}, ValueError, "value must be a finite number"),
        ({"value": "half"}, ValueError, "value must be a decimal number, such as '0.7840'; got 'half'"),
        ({"value": "1e-3"}, ValueError, "value must be a decimal number"),
        ({"value": None}, TypeError, "value must be a finite number"),
        ({"value": True}, TypeError, "value must be a finite number"),
        ({"decimals": -1}, ValueError, "decimals must be"),
        ({"decimals": 2.0}, TypeError, "decimals must be"),
        ({"decimals": True}, TypeError, "decimals must be"),
        ({"y_true": [1, 2, math.inf]}, ValueError, "y_true must be finite"),
    ],
)
def test_refusals(arguments, error, words):
    good = {"value": 0.5, "y_true": [0, 1, 0], "y_score": [1, 2, 3], "group": [2, 1]}
    with pytest.raises(error, match=words):
        identify(**{**good, **arguments})
