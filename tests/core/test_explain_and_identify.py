"""The gap between two flavors, attributed to switches and to queries; and which flavors give a number."""

import itertools
import json
import math
from decimal import Decimal
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import quick
from strategies import examples, flavors, half_power, problems, slow_decay

from ndcg_ml import PRESETS, Flavor, evaluate, identify, ndcg_score
from ndcg_ml.explain import _inseparable, explain_difference

HALF = 1 / math.log2(3)  # the discount of rank 2
BY_ID = ["docid", "docid_ascending"]
COMMON = [None, 1, 3, 5, 10, 15, 20, 30, 50, 100, 200, 500, 1000]


def data(seed=0, n_queries=40):
    """Tied scores, scores that only float32 ties, empty queries, queries of one document, ids, weights."""
    rng = np.random.default_rng(seed)
    group = rng.integers(1, 30, n_queries)
    n = int(group.sum())
    y = np.clip(rng.integers(-2, 5, n), 0, 4).astype(float)
    s = rng.normal(size=n).round(1) + 1e-9 * rng.integers(0, 2, n)
    y[: group[0]] = 0
    ids = np.concatenate([rng.permutation(size) for size in group])
    return {"y_true": y, "y_score": s, "group": group, "doc_id": ids, "query_weight": rng.random(n_queries)}


def contribution(result):
    return {part.name: part.contribution for part in result.parts}


def total(entries):
    return math.fsum(entry.contribution for entry in entries)


def test_switches_that_do_not_interact_by_hand():
    # Query 0: a relevant document tied with an irrelevant one that stands before it. Query 1: empty.
    a = Flavor(ties="average", empty=0)
    result = explain_difference(a, a.replace(ties="first", empty=1), [0, 1, 0, 0], [1, 1, 2, 1], group=[2, 2])
    assert result.value_a == pytest.approx((1 + HALF) / 2 / 2)
    assert result.value_b == pytest.approx((HALF + 1) / 2)
    assert contribution(result) == pytest.approx({"empty": 0.5, "ties": (HALF - (1 + HALF) / 2) / 2})
    assert [part.name for part in result.parts] == ["empty", "ties"]
    assert [(q.qid, q.contribution) for q in result.queries] == [
        (1, pytest.approx(0.5)),
        (0, pytest.approx((HALF - 1) / 4)),
    ]


def test_switches_that_interact_by_hand():
    # Leaving the empty query out doubles what the tie rule does, so each order of changing them counts half.
    a = Flavor(ties="average", empty=0)
    result = explain_difference(a, a.replace(ties="first", empty="skip"), [0, 1, 0, 0], [1, 1, 2, 1], group=[2, 2])
    average, first = (1 + HALF) / 2, HALF
    assert contribution(result) == pytest.approx(
        {"ties": ((first - average) / 2 + (first - average)) / 2, "empty": (average / 2 + first / 2) / 2}
    )
    # Query 1 goes from half the mean to none of it, and lifts it by its distance from the middle of the two values.
    middle = (average / 2 + first) / 2
    assert {q.qid: q.contribution for q in result.queries} == pytest.approx(
        {0: (first - middle) - (average - middle) / 2, 1: middle / 2}
    )
    assert math.isnan(next(q.value_b for q in result.queries if q.qid == 1))


def test_micro_against_macro_by_hand():
    # DCG over ideal DCG: 2 HALF / 2 and 1 / 1. Macro weighs them alike, micro two to one.
    result = explain_difference(Flavor(), Flavor(aggregate="micro"), [0, 2, 1], [2, 1, 1], group=[2, 1], k=2)
    assert contribution(result) == pytest.approx({"aggregate": (2 * HALF + 1) / 3 - (HALF + 1) / 2})
    middle = (result.value_a + result.value_b) / 2
    assert {q.qid: q.contribution for q in result.queries} == pytest.approx(
        {0: (2 / 3 - 1 / 2) * (HALF - middle), 1: (1 / 3 - 1 / 2) * (1 - middle)}
    )


def test_shapley_values_are_the_mean_over_every_order():
    arguments = data()
    a, b = Flavor.preset("sklearn", k=5), Flavor.preset("xgboost", k=20)
    result = explain_difference(a, b, **arguments)
    switches = ("gain", "k", "ties", "empty", "score_dtype")
    assert sorted(part.name for part in result.parts) == sorted(switches)
    orders = list(itertools.permutations(switches))
    expected = dict.fromkeys(switches, 0.0)
    values = {}
    for order in orders:
        for at, switch in enumerate(order):
            for taken in (order[:at], order[: at + 1]):
                key = frozenset(taken)
                if key not in values:
                    mixed = a.replace(**{name: getattr(b, name) for name in taken})
                    values[key] = ndcg_score(flavor=mixed, **arguments)
            expected[switch] += (values[frozenset(order[: at + 1])] - values[frozenset(order[:at])]) / len(orders)
    assert contribution(result) == pytest.approx(expected, abs=1e-13)
    assert min(abs(part.contribution) for part in result.parts) > 1e-6


def check_sums(a, b, arguments):
    try:
        values = [ndcg_score(flavor=flavor, **arguments) for flavor in (a, b)]
    except ValueError:
        return None
    if not all(math.isfinite(value) for value in values):
        return None
    result = explain_difference(a, b, top=1000, **arguments)
    # Gains below 0 make NDCGs of any size: rounding is then relative to the largest number that is summed.
    size = max(1.0, *(abs(e.contribution) for e in (*result.parts, *result.queries)), *map(abs, values))
    assert result.value_a == pytest.approx(values[0], rel=1e-13, abs=1e-13 * size)
    assert result.value_b == pytest.approx(values[1], rel=1e-13, abs=1e-13 * size)
    assert abs(total(result.parts) - result.difference) <= 1e-12 * size
    assert abs(total(result.queries) - result.difference) <= 1e-12 * size
    sides = [evaluate(flavor=flavor, **arguments).per_query for flavor in (a, b)]
    for each in result.queries:
        assert each.tied == max(side.tied[each.qid] for side in sides)
        assert (each.empty_a, each.empty_b) == tuple(side.empty[each.qid] for side in sides)
    differing = {
        name
        for name in a.__dataclass_fields__
        if str(getattr(a, name)) != str(getattr(b, name))  # text, because nan does not equal nan
    }
    assert {name for part in result.parts for name in part.switches} == differing
    return result


def test_parts_and_queries_sum_to_the_whole_on_random_pairs():
    seen = []

    @examples(350)
    @given(st.data())
    def draw(data):
        a, b = data.draw(flavors()), data.draw(flavors())
        problem = data.draw(problems(data.draw(st.sampled_from([a, b]))))
        result = check_sums(a, b, problem.flat())
        if result is not None and result.parts:
            seen.append(result)
            switches = [name for part in result.parts for name in part.switches]
            assert len(set(switches)) == len(switches)
            for part in result.parts:
                assert part.a == tuple(getattr(a, name) for name in part.switches)
                assert part.b == tuple(getattr(b, name) for name in part.switches)
            json.dumps(result.to_dict(), allow_nan=False)
            assert f"{result.difference:+.6f}" in str(result)
            assert all(f" {flavor}\n" in str(result) for flavor in (result.flavor_a, result.flavor_b))

    draw()
    assert len(seen) >= 15
    assert max(len(result.parts) for result in seen) >= 7


def test_a_switch_without_effect_and_a_flavor_against_itself_get_nothing():
    result = explain_difference(
        "sklearn", "lightgbm[negative=allow,unjudged=zero]", [0, 1, 1], [3, 2, 1], group=[3]
    )  # two grades, no ties, no empty query
    assert set(contribution(result)) == {"gain", "ties", "empty", "negative", "unjudged"}
    assert all(part.contribution == 0 for part in result.parts)
    assert result.queries == ()
    assert "no effect on these data: gain, ties, empty, negative, unjudged" in str(result)
    result = explain_difference("lightgbm@5", "lightgbm@5", [1, 0], [1, 2], group=[2])
    assert (result.parts, result.queries, result.difference) == ((), (), 0.0)
    nan = Flavor(empty=math.nan)
    assert explain_difference(nan, nan, [1, 0], [1, 2], group=[2]).parts == ()


def test_switches_that_cannot_matter_do_not_count_as_many():
    a = Flavor.preset("letor3")
    b = Flavor.preset("ir_measures_exp", k=10, ideal_depth="all", score_dtype="float32", duplicates="count")
    arguments = data(5)
    result = explain_difference(a, b, **arguments)
    assert len(result.parts) == 12
    assert result.method == "shapley"
    idle = ("negative", "unjudged", "max_grade", "duplicates")
    assert [contribution(result)[name] for name in idle] == [0, 0, 0, 0]
    assert total(result.parts) == pytest.approx(result.difference, abs=1e-13)
    arguments["y_true"][arguments["y_true"] == 0] = -1
    counted = explain_difference(a.replace(negative="allow", gain="binary", off_table="raise"), b, **arguments)
    assert contribution(counted)["negative"] != 0


def test_the_cutoff_is_a_switch():
    y, s = [0, 1, 0], [3, 2, 1]
    result = explain_difference("sklearn@1", "sklearn@2", y, s, group=[3])
    assert contribution(result) == pytest.approx({"k": HALF})
    assert (result.parts[0].a, result.parts[0].b) == ((1,), (2,))
    one = explain_difference("sklearn@1", "sklearn@2", y, s, group=[3], k=None)
    assert one.parts == ()
    assert one.value_a == one.value_b == pytest.approx(HALF)
    assert one.flavor_a.k is None


MAX = Flavor(ideal="max", max_grade=4)
TABLE = Flavor(gain=(0, 1, 3))


@pytest.mark.parametrize(
    ("a", "b", "parts"),
    [
        (Flavor(), TABLE.replace(off_table="zero"), [("gain", "off_table")]),
        (TABLE, TABLE.replace(off_table="zero"), [("off_table",)]),
        (Flavor(discount=slow_decay), Flavor(discount=half_power), [("discount",)]),
        (Flavor(ideal="recall"), Flavor(ideal="recall", recall_depth=5), [("recall_depth",)]),
        (Flavor(max_grade=5), Flavor(ideal="local"), [("ideal",), ("max_grade",)]),
        (Flavor(ideal="recall", recall_depth=5), MAX, [("ideal", "recall_depth", "max_grade")]),
        (TABLE, MAX.replace(max_grade=2), [("gain",), ("ideal", "max_grade")]),
        (TABLE.replace(ideal="max", max_grade=2), MAX, [("gain",), ("max_grade",)]),
        (Flavor(empty=math.nan), Flavor(empty=math.nan, k=3), [("k",)]),
    ],
)
def test_which_switches_are_one_part(a, b, parts):
    assert _inseparable(a, b) == parts
    assert _inseparable(b, a) == parts


@examples(300)
@given(flavors(), flavors())
def test_every_mixture_of_the_parts_is_a_flavor(a, b):
    parts = _inseparable(a, b)
    for bits in range(min(64, 1 << len(parts))):
        subset = [part for at, part in enumerate(parts) if bits >> at & 1]
        try:
            a.replace(**{name: getattr(b, name) for part in subset for name in part})
        except ValueError as impossible:
            if "max_grade must be a grade of the gain table" not in str(impossible):
                raise
    assert a.replace(**{name: getattr(b, name) for part in parts for name in part}) == b


@pytest.mark.parametrize("a", [TABLE.replace(max_grade=4), TABLE.replace(ideal="max", max_grade=2)])
def test_a_table_that_lacks_the_top_grade_of_the_other(a):
    one, other = (
        explain_difference(*both, [0, 2, 1, 1], [1, 1, 3, 2], group=[2, 2])
        for both in ((a, MAX.replace(ties="last")), (MAX.replace(ties="last"), a))
    )
    for result in (one, other):
        assert total(result.parts) == pytest.approx(result.difference, abs=1e-15)
    assert "order" in (one.method, other.method)


def test_a_refusal_that_only_the_mixture_meets():
    # Under b grade 0 gains, so that no query is empty; a alone is where the rule would be needed, and has one.
    a = Flavor(gain="linear", empty=0.0, ties="first")
    b = Flavor(gain=(1, 2), empty="raise", ties="last")
    result = explain_difference(a, b, [0, 0, 0, 1], [1, 1, 1, 1], group=[2, 2])
    assert result.value_a == pytest.approx(HALF / 2)
    assert result.method == "order"
    assert {part.switches for part in result.parts} == {("gain",), ("empty",), ("ties",)}
    assert total(result.parts) == pytest.approx(result.difference, abs=1e-15)


@pytest.mark.parametrize(
    ("rule", "mean", "n"), [("raise", "macro", 1), ("skip", "macro", 1), (math.nan, "macro", 1), ("raise", "micro", 2)]
)
def test_a_mixture_that_is_undefined_though_the_rule_is_the_same(rule, mean, n):
    # No query is empty under either: only with the cut-off of a and the ideal of b, and then only the first.
    a = Flavor(k=1, ideal="global", empty=rule, aggregate=mean)
    b = a.replace(k=None, ideal="local", gain="binary")
    result = explain_difference(a, b, [0, 2, 2, 1][: 2 * n], [2, 1, 2, 1][: 2 * n], group=[2] * n)
    assert {part.switches for part in result.parts} == {("ideal", "k"), ("gain",)}
    assert total(result.parts) == pytest.approx(result.difference, abs=1e-15)


def test_beyond_seven_rankings_the_order_is_that_of_the_fields_and_an_undefined_mixture_waits():
    a = Flavor(negative="zero", unjudged="zero")
    b = Flavor(
        gain="exponential", discount="reciprocal", ideal="recall", ideal_depth="all", ties="first", empty=1,
        negative="drop", unjudged="condense", score_dtype="float32", k=5, aggregate="micro",
    )  # fmt: skip
    arguments = data(3)
    arguments["y_true"][::7] = -1
    arguments["y_true"][::11] = math.nan
    result = explain_difference(a, b, **arguments)
    assert result.method == "order"
    assert len(result.parts) == 11
    assert total(result.parts) == pytest.approx(result.difference, abs=1e-12)
    mixed, before = a, result.value_a
    for name in a.__dataclass_fields__:
        if getattr(a, name) == getattr(b, name):
            continue
        mixed = mixed.replace(**{name: getattr(b, name)})
        after = ndcg_score(flavor=mixed, **arguments)
        assert contribution(result)[name] == pytest.approx(after - before, abs=1e-13)
        before = after
    assert "in the order of the flavor's fields" in str(result)
    fewer = explain_difference(a, b.replace(score_dtype="float64"), **arguments)
    assert fewer.method == "shapley"
    a = Flavor(negative="allow", unjudged="zero")
    b = Flavor(
        gain=(0, 1, 3, 7, 15), discount="reciprocal", ideal="recall", ideal_depth="all", ties="first",
        negative="zero", unjudged="condense", score_dtype="float32",
    )  # fmt: skip
    result = explain_difference(a, b, **arguments)
    assert result.method == "order"
    assert {part.switches for part in result.parts} == {
        ("gain", "discount", "ideal", "ideal_depth", "ties", "negative"), ("unjudged",), ("score_dtype",),
    }  # fmt: skip
    assert total(result.parts) == pytest.approx(result.difference, abs=1e-12)


def test_the_queries_that_move_most_are_listed_first():
    arguments = data(4)
    result = explain_difference("sklearn", "lightgbm", top=3, **arguments)
    everything = explain_difference("sklearn", "lightgbm", top=99, **arguments)
    assert result.queries == everything.queries[:3]
    assert result.n_queries == 40
    sizes = [abs(q.contribution) for q in everything.queries]
    assert sizes == sorted(sizes, reverse=True)
    assert all(size > 0 for size in sizes)
    assert explain_difference("sklearn", "lightgbm", top=0, **arguments).queries == ()


def test_ids_are_the_callers_and_json_takes_them():
    arguments = {"y_true": [0, 1, 0, 0], "y_score": [1, 1, 2, 1]}
    for qid in (["x", "x", "y", "y"], [7, 7, 9, 9], np.array(["2020-01-01"] * 2 + ["2020-01-02"] * 2, "M8[D]")):
        result = explain_difference("sklearn", "burges2005", qid=qid, **arguments)
        shown = json.loads(json.dumps(result.to_dict(), allow_nan=False))
        ids = [q.qid if isinstance(q.qid, (int, str)) else str(q.qid) for q in result.queries]
        assert [q["qid"] for q in shown["queries"]] == ids
    assert shown["queries"][0]["value_b"] is None  # flavor b leaves the query out
    assert shown["flavor_b"] == str(PRESETS["burges2005"])
    assert shown["difference"] == sum(part["contribution"] for part in shown["parts"])
    assert {"switches": ["empty"], "a": ["0"], "b": ["skip"]}.items() <= shown["parts"][0].items()


@pytest.mark.parametrize(
    ("arguments", "error", "words", "advised"),
    [
        ({"flavor_a": Flavor(empty=math.nan)}, ValueError, "flavor_a must have a finite value .* Choose empty=0",
            {"flavor_a": Flavor(empty=0)}),
        ({"flavor_b": Flavor(empty=math.nan)}, ValueError, "flavor_b must have a finite value",
            {"flavor_b": Flavor(empty="skip")}),
        ({"flavor_b": Flavor(empty="raise")}, ValueError, "under empty='raise'", {"flavor_b": "ndcg[empty=skip]"}),
        ({"flavor_b": "trec_eval"}, ValueError, "doc_id must be given under ties='docid'",
            {"flavor_b": "trec_eval[ties=average]"}),
        ({"flavor_b": "trec_eval"}, ValueError, r"Pass doc_id= \(one id per document\)", {"doc_id": ["a", "b", "a"]}),
        ({"flavor_b": "lightbgm"}, ValueError, "Did you mean 'lightgbm'", {"flavor_b": "lightgbm"}),
        ({"flavor_a": 3}, TypeError, "flavor must be", None),
        ({"k": (1, 2)}, TypeError, "k must be an integer", None),
        ({"k": 0}, ValueError, "k must be an integer", None),
        ({"top": -1}, ValueError, "top must be an integer >= 0", None),
        ({"top": True}, TypeError, "top must be an integer >= 0", None),
        ({"top": 1.5}, TypeError, "top must be an integer >= 0", None),
        ({"group": None}, ValueError, "qid or group must be given", {"group": [3]}),
    ],
)  # fmt: skip
def test_refusals(arguments, error, words, advised):
    good = {"flavor_a": "sklearn", "flavor_b": "lightgbm", "y_true": [0, 1, 0], "y_score": [1, 2, 3], "group": [2, 1]}
    with pytest.raises(error, match=words):
        explain_difference(**{**good, **arguments})
    if advised is not None:
        explain_difference(**{**good, **arguments, **advised})


# -- ``identify``: what chance would match, decimals as they are written, short lists, and rows without their queries


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
        *[("0.7840", 4), ("1.", 0), (".5", 1), (" -0.25 ", 2), ("0.123456789", 9), ("0.1234567891", None)],
        *[(0.784, 3), (0.5, 1), (0.7841, 4), (0.7841234567, 4), (1.0, 4), (70.6, 1), (1e-7, 4)],
    ],
)
def test_decimals_are_those_that_are_written_or_needed(value, decimals):
    found = identify(value, [1, 0], [2, 1], group=[2], k=1)
    assert (found.value, found.decimals) == (float(value), decimals)


@pytest.mark.parametrize("typed", [round, *(partial(round, ndigits=n) for n in (1, 2, 9)), "{:.2f}".format])
def test_a_number_in_per_cent_is_divided_and_tried(typed):
    number = typed(100 * ndcg_score(**DATA))
    found = identify(number, **DATA)
    assert any("sklearn" in match.presets for match in found.matches)
    assert found.per_cent
    assert found.value == float(number)
    hundredth = Decimal(str(number)) / 100
    exact = identify(f"{hundredth:.{found.decimals + 2}f}", **DATA)
    assert (found.matches, found.by_chance) == (exact.matches, exact.by_chance)
    assert f"{found.value:.{found.decimals}f}: " in str(found)
    assert ", if it is in per cent" in str(found).splitlines()[0]


def test_a_number_that_does_not_match_in_per_cent_either():
    assert "20.6123: no match, also not in per cent; the nearest" in str(identify(20.612345, **DATA))
    for value in (1.0, 0.5, 101.5, ndcg_score(**DATA)):
        assert not identify(value, **DATA).per_cent
        assert "per cent" not in str(identify(value, **DATA))


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


def test_every_cut_off_up_to_the_longest_list_is_tried_where_lists_are_short():
    y, s = [10, 0, 0, 1, 5], [0.05, 1.1, 1.0, 0.5, 0.0]
    assert identify("0.35202", y, s, group=[5]).matches[0].name == "sklearn@4"
    rng = np.random.default_rng(2)
    for longest in (20, 21):
        data = {"y_true": rng.integers(0, 4, longest), "y_score": rng.normal(size=longest), "group": [longest]}
        found = identify(f"{ndcg_score(**data, flavor='sklearn', k=7):.12f}", **data)
        assert any("sklearn@7" in match.presets for match in found.matches) == (longest == 20)
        assert found.cutoffs == tuple(dict.fromkeys([*COMMON, *range(1, 21 * (longest == 20))]))
    scores = np.random.default_rng(0).normal(size=14)
    data = {"y_true": [1, 0, *(3, 0, 1, 2, 0, 1, 3, 2, 0, 1, 0, 2)], "y_score": scores, "group": [2, 12]}
    found = identify(f"{ndcg_score(**data, k=7):.12f}", **data, decimals=12)
    assert "sklearn@7" in found.matches[0].presets


def test_all_rows_as_one_query_are_recognised_after_matches_by_query():
    value = ndcg_score(DATA["y_true"], DATA["y_score"], group=[len(DATA["qid"])], flavor="sklearn", k=10)
    match = identify(f"{value:.8f}", **DATA).matches[0]
    assert match.name == "sklearn@10 (all rows as one query)"
    assert match.value == value
    one = identify(f"{value:.8f}", DATA["y_true"], DATA["y_score"], group=[len(DATA["qid"])])
    assert not any("one query" in each for match in one.matches for each in match.presets)
    data = {"y_true": [[1, 0], [1, 0]], "y_score": [[2.0, 1.0], [2.0, 1.0]]}
    result = identify("1.0000", **data)
    assert "one query" not in result.matches[0].name
    assert any("one query" in each for match in result.matches for each in match.presets)


# -- ``identify`` against all flavors that it is documented to try


def changes(judged, ids, missing, repeats):
    yield {}
    tables = {flavor.gain: flavor.off_table for flavor in PRESETS.values() if isinstance(flavor.gain, tuple)}
    yield from ({"gain": gain, "off_table": "raise"} for gain in ("linear", "exponential", "binary"))
    yield from ({"gain": gain, "off_table": beyond} for gain, beyond in tables.items())
    yield from ({"ideal": i, "max_grade": None, "recall_depth": None} for i in ("global", "recall", "local"))
    yield {"ideal": "max", "max_grade": judged.max(initial=0), "recall_depth": None}
    for name, values in {
        "discount": ["log2", "jarvelin", "reciprocal", "ln", "none"],
        "ideal_depth": ["k", "all"],
        "ties": ["average", "first", "last", "best", "worst", *ids * BY_ID],
        "score_dtype": ["float64", "float32"],
        "negative": bool((judged < 0).any()) * ["zero", "drop", "allow"],
        "unjudged": missing * ["zero", "condense"],
        "duplicates": repeats * ["first", "count"],
        "empty": [0.0, 1.0, "skip"],
        "aggregate": ["macro", "micro"],
    }.items():
        yield from ({name: value} for value in values)


def value_at(ks, **arguments):
    try:
        return evaluate(**arguments, k=ks).value if ks else {}
    except ValueError as error:  # a query may be empty at some cut-offs only
        some = len(ks) > 1 and "ideal DCG of 0" in str(error)
        return value_at(ks[:1], **arguments) | value_at(ks[1:], **arguments) if some else {}


def every_value(ks, own, judged, ids, missing, repeats, **data):
    """The values of all presets, and of all with one switch changed: preset, whether it is changed, flavor, value."""
    tried = set()
    for change, (name, preset) in itertools.product(changes(judged, ids, missing, repeats), PRESETS.items()):
        try:
            flavor = preset.replace(k=None, **change)
        except ValueError:
            continue
        at = () if change and flavor in tried else dict.fromkeys([preset.k] * own + ks)
        for k, value in value_at(tuple(at), flavor=flavor, **data).items():
            if math.isfinite(value):
                yield name, bool(change), flavor.replace(k=k), value
        tried.add(flavor)


def called(row):
    name, _, flavor, _, together = row
    k = "" if flavor.k is None and PRESETS[name].k is None else f"@{flavor.k}"
    return f"{name}{k}{' (all rows as one query)' * together}"


@pytest.mark.parametrize("seed", quick((0, 9, 23), (0, 2, 5, 9, 20, 23, 24)))
def test_matches_are_those_of_all_flavors_that_are_documented(seed):
    rng = np.random.default_rng(seed)
    ids, missing, repeats, hidden, negative = (bool(seed >> bit & 1) for bit in range(5))
    own = seed in (0, 20)  # the other cut-offs take seconds
    group, weight = rng.integers(1, 5, 4), rng.integers(1, 4, 4)
    y, n = rng.integers(-negative, 4, group.sum()) + 0.0, group.sum()
    y[rng.random(n) < 0.3 * missing] = math.nan
    y[: group[0]] = np.minimum(y[: group[0]], 0)
    doc_id = np.concatenate([rng.permutation(9)[:size] for size in group]).astype(str)
    doc_id[-1], y[-1] = doc_id[-1 - repeats], y[-1 - repeats]
    missing, repeats = bool(np.isnan(y).any()), bool(ids and repeats and group[-1] > 1)
    judged, s = y[~np.isnan(y)], rng.integers(0, 5, n) + 1e-9 * rng.integers(0, 2, n)
    ks = list(dict.fromkeys([*COMMON, *range(1, group.max() + 1)])) if own else [3, None]
    data = {"y_true": y, "y_score": s} | ({"retrieved": rng.random(n) < 0.8} if hidden else {})
    more = {"group": group, "query_weight": weight} | ({"doc_id": doc_id} if ids else {})
    one = every_value(ks, own, judged, False, missing, False, **data, group=[n])
    every = [(*each, False) for each in every_value(ks, own, judged, ids, missing, repeats, **data, **more)]
    every += [(*each, True) for each in one if not each[1]]

    def order(row):
        name, changed, flavor, _, together = row
        likely = (
            flavor.ties in BY_ID or together or not ids,
            (ids or missing or hidden) == (flavor.unjudged != "raise"),
        )
        return (
            changed,
            together,
            *(not each for each in likely),
            own and flavor.k != PRESETS[name].k,
            [*PRESETS].index(name),
        )

    for decimals, is_rounded in ((0, True), (1, False), (2, True), (None, False)):
        number = every[rng.integers(len(every))][3]
        number = round(number, decimals) if is_rounded else number
        found = identify(number, **data, **more, decimals=decimals, **({} if own else {"k": ks}))
        assert (found.n_tried, found.cutoffs) == (len(every), tuple(ks))
        assert set(found.not_tried) == {*PRESETS} - {
            name for name, changed, _, _, together in every if not changed | together
        }
        within = 1e-9 if decimals is None else 0.51 * 10.0**-decimals
        near = sorted((row for row in every if abs(row[3] - number) <= within), key=lambda row: row[3])
        cuts = np.flatnonzero(np.diff([row[3] for row in near]) > 1e-12) + 1
        groups = [sorted(near[a:b], key=order) for a, b in itertools.pairwise([0, *cuts.tolist(), len(near)])]
        matches = found.matches
        if is_rounded:
            groups.sort(key=lambda rows: order(rows[0]))
        else:  # by distance, which may be the same
            matches = sorted(matches, key=lambda match: match.value)
        assert [match.flavor for match in matches] == [rows[0][2] for rows in groups]
        for match, rows in zip(matches, groups, strict=True):
            assert match.value == pytest.approx(rows[0][3], abs=1e-12)
            assert match.presets == tuple(dict.fromkeys(called(row) for row in rows if not row[1]))
            assert match.n_others == sum(row[1] for row in rows) - rows[0][1]
            assert rows[0][4] or Flavor.parse(match.name) == match.flavor
        equal = [
            preset for match in [match for match in found.matches if match.presets][:5] for preset in match.presets
        ]
        assert all(preset.partition("@")[0] in str(found) for preset in equal)
        if 0.05 < number < 0.95:
            for expected, rows in ((found.by_chance, every), (found.presets_by_chance, [r for r in every if not r[1]])):
                near = [
                    np.sort([row[3] for row in rows if abs(row[3] - number) < 0.05 + slack]) for slack in (-1e-9, 1e-9)
                ]
                least, most = (((np.diff(close) > 1e-12).sum() + bool(close.size)) * within / 0.05 for close in near)
                assert least * (1 - 1e-9) <= expected <= most * (1 + 1e-9)
