"""Which flavor a reported number is: of installed libraries, of recorded tools, and of flavors chosen here."""

import pytest

pytest.importorskip("lightgbm")
pytest.importorskip("sklearn")
pytest.importorskip("xgboost")

import json
import math
import re

import numpy as np
from lanes import quick
from libraries import lightgbm_ndcg, xgboost_ndcg
from sklearn.metrics import ndcg_score as sklearn_ndcg

from ndcg_ml import Flavor, align, identify, ndcg_score


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


def sklearn_says(y, s, group, k):
    # It refuses queries of one document, which the data must not have.
    parts = np.split(np.arange(y.size), np.cumsum(group)[:-1])
    return float(np.mean([sklearn_ndcg([y[part]], [s[part]], k=k) for part in parts]))


LIVE = {"lightgbm": lightgbm_ndcg, "xgboost": xgboost_ndcg, "sklearn": sklearn_says}


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


# -- order


@pytest.mark.parametrize(
    ("printed", "libraries"),
    [(0.387, "mlflow"), (0.296, "llama_index haystack vespa replay"), (0.380, "lenskit"), (0.139, "rectools")],
)
def test_what_libraries_print_for_one_query(printed, libraries):
    """Three documents are relevant, one of them is retrieved, at rank 2."""
    data = align({"q": {"a": 1, "b": 1, "c": 1}}, {"q": ["x", "a"]}).arguments()
    result = identify(printed, **data, decimals=3)
    assert set(libraries.split()) <= {preset.partition("@")[0] for preset in result.matches[0].presets}
    assert all(re.search(rf"\b{name}\b", str(result)) for name in libraries.split())


def test_what_is_printed_is_a_handful():
    y, s, group = data(0)
    result = identify(round(ndcg_score(y, s, group=group, flavor="lightgbm@10"), 1), y, s, group=group, decimals=1)
    with_preset = [match for match in result.matches if match.presets]
    assert len(result.matches) > len(with_preset) > 5
    listed = re.findall(r"^    ([^;\n]+)", str(result), re.MULTILINE)
    assert listed == [match.name for match in with_preset[:5]]
    assert f"and {len(result.matches) - 5} more, in .matches" in str(result)
    others = len(result.matches) - len(with_preset)
    assert f": {len(with_preset)} matches with a preset, {others} others with one switch changed\n" in str(result)


def test_a_match_is_printed_in_words_and_then_by_the_presets():
    _, words, presets, *_ = str(identify(0.8766, **SMALL, k=3)).splitlines()
    assert words == "  0.876633  NDCG@3: exponential gain, ties in order of input, empty queries score 1, recall ideal"
    assert presets.startswith("    lightgbm@3; these data cannot distinguish it from xgboost@3, allrank@3 and ")


def test_of_a_finer_value_the_nearest_preset_is_first():
    y, s, group = data(0)
    value = ndcg_score(y, s, group=group, flavor="xgboost", k=10) + 1e-7
    result = identify(value, y, s, group=group, decimals=0, k=10)
    assert result.matches[0].name == "xgboost@10"
    distances = [abs(match.value - value) for match in result.matches if match.presets]
    assert distances == sorted(distances)
    assert len(distances) > 4


# -- rounding


VALUE = ndcg_score(flavor="lightgbm@3", **SMALL)  # 0.876632989


@pytest.mark.parametrize(
    ("reported", "decimals", "matches"),
    [
        *((VALUE + off * 1e-4 + 1e-15, ..., abs(off) < 0.51) for off in (0.505, 0.53, -0.53)),
        (VALUE + 9e-10, None, True),
        (VALUE + 2e-9, None, False),
        (0.87663299, 8, True),
        (1.0, ..., False),  # a float of no decimals is not a value rounded to none
    ],
)
def test_half_a_unit_of_the_last_decimal(reported, decimals, matches):
    found = identify(reported, **SMALL, k=3, decimals=decimals)
    assert any(match.name == "lightgbm@3" for match in found.matches) == matches


def test_a_value_that_was_cut_off_is_the_nearest():
    cut = identify(0.87663298, **SMALL, k=3, decimals=8)
    assert not cut.matches
    assert cut.nearest[0].name == "lightgbm@3"


def test_fewer_decimals_are_pointed_out():
    assert "pass decimals=2" in str(identify(0.88, **SMALL, k=3, decimals=4))
    for other in (0.88, 0.8112):
        assert "pass decimals=" not in str(identify(other, **SMALL, k=3))


def test_no_match_names_the_nearest():
    result = identify(0.12345678, **SMALL, k=3)
    assert result.matches == ()
    assert len(result.nearest) == 5
    gaps = [abs(match.value - 0.12345678) for match in result.nearest]
    assert gaps == sorted(gaps)
    assert "no match; the nearest are" in str(result)
    assert identify(7.512345, **SMALL).nearest[0].value < 3


def test_what_was_not_tried_says_why():
    result = identify(0.5, **SMALL)
    assert result.not_tried["trec_eval"] == "doc_id was not given"
    assert str(result).count("doc_id was not given") == 1
    assert "trec_eval" not in identify(0.5, **SMALL, doc_id=list("abcdefgh")).not_tried
    unjudged = identify(0.0, [math.nan] * 2, [1, 2], group=[2])
    assert unjudged.not_tried["sklearn"].endswith("; got 2 of 2")  # without advice
    result = identify(0.0, [0, 0], [1, 2], group=[2])
    assert result.not_tried["burges2005"] == "it has no value under empty=skip"
    assert result.presets_by_chance == pytest.approx(2 * 0.51e-4 / 0.05)  # one value, of numbers from 0 to 0.05
    assert "they have no value under empty=skip" in str(result)
    assert "sklearn" in result.matches[0].presets
    assert not re.search(r"from (.*, )?sklearn(@\d+)?,", str(result))  # it is not called another flavor


def test_json_and_text():
    result = identify(0.8766, **SMALL)
    shown = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert shown["matches"][0]["name"] == "lightgbm@3"
    assert Flavor.parse(shown["matches"][0]["flavor"]) == result.matches[0].flavor
    assert str(result).startswith("0.8766: ")
    assert re.match(r"0\.1234567: no match(?!.* 0 more)", str(identify(0.1234567, **SMALL, decimals=None)), re.DOTALL)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        *(({"value": value}, ValueError, "value must be a finite number") for value in (math.nan, math.inf)),
        ({"value": "half"}, ValueError, "value must be a decimal number, such as '0.7840'; got 'half'"),
        ({"value": "1e-3"}, ValueError, "value must be a decimal number"),
        *(({"value": value}, TypeError, "value must be a finite number") for value in (None, True)),
        ({"decimals": -1}, ValueError, "decimals must be"),
        *(({"decimals": decimals}, TypeError, "decimals must be") for decimals in (2.0, True)),
        ({"y_true": [1, 2, math.inf]}, ValueError, "y_true must be finite"),
    ],
)
def test_refusals(arguments, error, words):
    good = {"value": 0.5, "y_true": [0, 1, 0], "y_score": [1, 2, 3], "group": [2, 1]}
    with pytest.raises(error, match=words):
        identify(**{**good, **arguments})
