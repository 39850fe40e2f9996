"""What the other tests left unsaid: found by changing one token of the code at a time and seeing nothing fail.

Some of it is speed, which no value shows: the shorter way must be the one that is taken.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
import re
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest

from ndcg_ml import PRESETS, Flavor, _numpy, _tables, evaluate, ndcg_score, prepare
from ndcg_ml._aggregate import Sums, per_query_ndcg
from ndcg_ml.flavor import cutoffs, switch_text
from ndcg_ml.groups import Groups
from ndcg_ml.presets import MIRRORS


def refused(*_: Any, **__: Any) -> Any:
    raise AssertionError("the longer way was taken")


# -- the kernel takes the shorter way -------------------------------------------------------------------------------


def test_the_blocks_of_a_call_share_their_memory() -> None:
    space = _numpy.Workspace()
    first = space.array("a", (3, 4), np.float64)
    assert first.shape == (3, 4)
    for shape in ((3, 4), (4, 3), (2, 2)):
        again = space.array("a", shape, np.float64)
        assert (again.shape, again.dtype) == (shape, np.float64)
        assert np.shares_memory(first, again)
    assert not np.shares_memory(first, space.array("b", (3, 4), np.float64))
    assert space.array("a", (3, 4), np.float32).dtype == np.float32
    assert space.array("a", (5, 5), np.float32).shape == (5, 5)


def test_scores_that_float32_tells_apart_are_sorted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = np.array([[3.0, -1.0, 0.0, -1.0, -0.0, 2.0], [-5.0, 1e-30, -3.0, 1e30, -1e-30, np.inf]])
    expected = np.argsort(keys, axis=1, kind="stable") + np.array([[0], [6]])
    monkeypatch.setattr(np, "argsort", refused)
    order, ordered = _numpy._stable_order(keys)
    assert (order == expected).all()
    assert (ordered == keys.reshape(-1)[expected]).all()


@pytest.mark.parametrize(("depth", "width", "selects"), [(3, 10, True), (3, 9, False), (4, 10, False), (1, 4, True)])
def test_the_top_is_selected_where_less_than_a_third_of_the_slots_is_needed(
    monkeypatch: pytest.MonkeyPatch, depth: int, width: int, selects: bool
) -> None:
    seen = []
    select = _numpy._select
    monkeypatch.setattr(_numpy, "_select", lambda *arguments: seen.append(arguments) or select(*arguments))
    scores = np.arange(float(width))[None]
    top = _numpy.expected_gains(scores, scores, depth, True, _numpy.Workspace())
    assert top.tolist() == [[float(width - rank) for rank in range(1, depth + 1)]]
    assert bool(seen) == selects


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_cut_that_no_tie_crosses_needs_no_second_look(monkeypatch: pytest.MonkeyPatch, dtype: type) -> None:
    monkeypatch.setattr(_numpy, "_settle", refused)
    scores = np.array([[1, 7, 2, 7, 3, 0, 4, 0], [8, 1, 7, 1, 6, 1, 5, 1]], dtype=dtype)
    gains = np.arange(16.0).reshape(2, 8)
    top = _numpy.expected_gains(scores, gains, 2, True, _numpy.Workspace())
    assert top.tolist() == [[2.0, 2.0], [8.0, 10.0]]


@pytest.mark.parametrize(("gain", "dtype"), [(3.0, np.float32), (0.1, np.float64)])
def test_ideal_gains_are_sorted_in_float32_where_that_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, gain: float, dtype: type
) -> None:
    seen = []
    sort = np.sort
    monkeypatch.setattr(np, "sort", lambda values, **how: seen.append(values.dtype) or sort(values, **how))
    best = _numpy.best_first(np.array([[0.0, gain, -np.inf, 1.0]]), 4)
    assert best.dtype == np.float64
    assert best.tolist() == [sorted([gain, 1.0, 0.0, 0.0], reverse=True)]
    assert seen == [dtype]


# -- gains and discounts as numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("discount", ["log2", "ln", "reciprocal", "jarvelin", "none"])
def test_there_are_as_many_discounts_as_ranks(discount: str) -> None:
    for depth in (1, 2, 5):
        assert _tables.discounts(Flavor(discount=discount), depth).shape == (depth,)


def test_a_callable_discount_is_asked_for_each_rank_once() -> None:
    asked = []

    def inverse(rank: int) -> float:
        asked.append(rank)
        return 1 / rank

    assert _tables.discounts(Flavor(discount=inverse), 4).tolist() == [1, 1 / 2, 1 / 3, 1 / 4]
    assert asked == [1, 2, 3, 4]
    assert {type(rank) for rank in asked} == {int}


def relative(flavor: Flavor, labels: list[float]) -> tuple[list[float], Any]:
    gains, exponent = _tables.relative_gains(flavor, np.array(labels), Groups.from_sizes([len(labels)], len(labels)))
    return gains.tolist(), exponent


@pytest.mark.parametrize("labels", [[0.0, 1.0, 3.0], [0.5, 0.0, 2.25], [0.0, 0.0], [1e-9, 1e9]])
def test_gains_of_ordinary_size_are_left_as_they_are(labels: list[float]) -> None:
    assert relative(Flavor(negative="allow"), labels) == (labels, None)
    assert relative(Flavor(negative="allow"), [-y for y in labels]) == ([-y for y in labels], None)


def test_whole_grades_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    formula = _tables._power_of_two_minus_one
    monkeypatch.setattr(_tables, "_power_of_two_minus_one", lambda y: sizes.append(y.size) or formula(y))
    labels = [float(grade) for grade in (4, 0, 2, 1, 3) * 20]
    assert relative(Flavor(gain="exponential"), labels) == ([2**y - 1 for y in labels], None)
    assert sizes == [5]


def test_gains_below_the_least_normal_number_keep_their_ratio() -> None:
    least = 5e-324
    for unit in (least, 2.0**-1050, 2.0**-600):
        value = ndcg_score([3 * unit, unit, 2 * unit], [1, 3, 2], group=[3])
        assert value == pytest.approx(ndcg_score([3, 1, 2], [1, 3, 2], group=[3]), rel=1e-15)
    assert evaluate([least, 0], [2, 1], group=[2]).per_query.idcg.tolist() == [least]
    assert math.isfinite(least)


def test_a_grade_far_below_zero_has_the_exponential_gain_of_minus_one() -> None:
    assert relative(Flavor(gain="exponential", negative="allow"), [-1e300, 2.0]) == ([-1.0, 3.0], None)


def test_exponential_gains_are_right_to_the_last_bits() -> None:
    grades = np.linspace(0.01, 4, 400)
    gains, _ = relative(Flavor(gain="exponential"), grades.tolist())
    with localcontext() as context:
        context.prec = 40
        for grade, gain in zip(grades.tolist(), gains, strict=True):
            exact = Decimal(2) ** Decimal(grade) - 1
            assert abs(Decimal(gain) / exact - 1) < 2.3 * 2.0**-53


def test_gains_of_which_the_sum_alone_is_too_large_keep_their_ratio() -> None:
    discounts = 1 / np.log2(np.arange(2, 7))
    value = ndcg_score([0, *[8e307] * 4], [5, 4, 3, 2, 1], group=[5])
    assert value == pytest.approx(discounts[1:].sum() / discounts[:4].sum(), rel=1e-14)


def doubled(grade: float) -> float:
    return 2 * grade


@pytest.mark.parametrize(
    ("gain", "top", "gain_of_top"),
    [
        ("linear", 2.5, 2.5),
        ("exponential", 2.0, 3.0),
        ("exponential", 0.5, math.sqrt(2) - 1),
        ("binary", 2.0, 1.0),
        ("binary", 0.0, 0.0),
        ("judged", 0.0, 1.0),
        ((0, 3, 8), 2.0, 8.0),
        (doubled, 3.0, 6.0),
    ],
)
def test_the_maximal_ideal_has_the_gain_of_the_top_grade(gain: Any, top: float, gain_of_top: float) -> None:
    flavor = Flavor(gain=gain, ideal="max", max_grade=top, k=2)
    ideal = evaluate([0.0, 0.0], [1, 2], group=[2], flavor=flavor).per_query.idcg
    assert ideal == pytest.approx([gain_of_top * (1 + 1 / math.log2(3))], rel=1e-14)


@pytest.mark.parametrize(
    ("labels", "top"), [([1e308, 5e307], 1.5e308), ([2.0**499, 0.0], 1.5e308), ([3e-200, 1e-200], 4e-200)]
)
@pytest.mark.parametrize("gain", ["linear", doubled], ids=["linear", "callable"])
def test_the_maximal_ideal_is_on_the_scale_of_the_gains(labels: list[float], top: float, gain: Any) -> None:
    if gain is doubled:
        labels, top = [y / 2 for y in labels], top / 2
    flavor = Flavor(gain=gain, ideal="max", max_grade=top, k=2)
    third = 1 / math.log2(3)
    expected = (labels[0] / top + labels[1] / top * third) / (1 + third)
    assert ndcg_score(labels, [2, 1], group=[2], flavor=flavor) == pytest.approx(expected, rel=1e-14)


def inverse_of_distance_to_four(grade: float) -> float:
    return math.inf if grade == 4 else 1 / (4 - grade)


def test_a_callable_gain_that_fails_at_the_top_grade_is_named() -> None:
    flavor = Flavor(gain=inverse_of_distance_to_four, ideal="max", max_grade=4)
    with pytest.raises(
        ValueError, match=r"Flavor\.gain as a callable must return a finite number; gain\(4\.0\) is inf"
    ):
        ndcg_score([1, 2], [1, 2], group=[2], flavor=flavor)


def test_large_negative_gains_do_not_overflow() -> None:
    flavor = Flavor(negative="allow", k=2)
    value = ndcg_score([-1.5e308, -1.5e308, 1e100, 1e100], [4, 3, 2, 1], group=[4], flavor=flavor)
    assert value == pytest.approx(-1.5e208, rel=1e-14)


def test_the_binary_logarithm_of_jarvelin_is_exact_at_powers_of_two() -> None:
    discounts = _tables.discounts(Flavor(discount="jarvelin"), 1 << 15)
    for power in range(1, 16):
        assert discounts[(1 << power) - 1] == 1 / power
    assert (discounts[1:] == 1 / np.log2(np.arange(2, (1 << 15) + 1))).all()


# -- the flavor in words --------------------------------------------------------------------------------------------


def own(number: float) -> float:
    return number


def test_a_description_is_these_lines() -> None:
    flavor = Flavor(gain="exponential", k=10, empty="skip", aggregate="micro", unjudged="condense")
    assert flavor.describe().split("\n") == [
        "NDCG@10 = DCG@10 / IDCG@10, DCG@10 = sum over documents of gain(y) * D(rank)",
        "  gain       gain(y) = 2^y - 1",
        "  discount   D(r) = 1 / log2(r + 1); D(r) = 0 for r > 10",
        "  ties       every order of the tied documents counts the same (their mean discount)",
        "  ideal      all judged documents of the query, retrieved or not, best first",
        "  empty      a query whose ideal DCG is 0 is left out of the mean",
        "  aggregate  sum of DCG over sum of IDCG",
        "  negative   a negative label is an error",
        "  unjudged   a document without a label (NaN) is removed before ranking",
        "  scores     scores are compared in float64",
        f"  text       {flavor}",
    ]


def test_the_description_of_a_preset_ends_with_what_it_mirrors() -> None:
    lines = Flavor.preset("letor3").describe().split("\n")
    assert lines[0] == "NDCG = DCG / IDCG, DCG = sum over documents of gain(y) * D(rank)"
    three, four = MIRRORS["letor3"], MIRRORS["letor4"]
    assert lines[-4:] == [
        f"  preset     letor3: {three.library}",
        f"  note       {three.unusual}",
        f"  also       letor4: {four.library}",
        f"  text       {Flavor.preset('letor3')}",
    ]
    assert [line.split()[0] for line in lines[1:10]] == (
        ["gain", "discount", "ties", "ideal", "empty", "aggregate", "negative", "unjudged", "scores"]
    )


ALL_JUDGED = "all judged documents of the query, retrieved or not, "


@pytest.mark.parametrize(
    ("switches", "row", "words"),
    [
        ({"gain": own}, "gain", "gain(y) = <own>(y), a callable"),
        ({"gain": (0, 1, 3)}, "gain", "gain(y) = table 0|1|3, by grade"),
        ({"gain": (0, 1), "off_table": "zero"}, "gain", "gain(y) = table 0|1, by grade; a grade beyond it gains 0"),
        ({"max_grade": 2.5}, "gain", "gain(y) = y; a label above 2.5 is an error"),
        ({"discount": own}, "discount", "D(r) = <own>(r), a callable"),
        ({"discount": "jarvelin", "discount_base": 3}, "discount", "D(r) = 1 for r < 3, else 1 / log_3(r)"),
        (
            {"short_lists": "zero"},
            "discount",
            "D(r) = 1 / log2(r + 1); a query with fewer than k documents has DCG 0",
        ),
        (
            {"short_lists": "zero", "k": 4},
            "discount",
            "D(r) = 1 / log2(r + 1); D(r) = 0 for r > 4; a query with fewer than 4 documents has DCG 0",
        ),
        ({}, "ideal", f"{ALL_JUDGED}best first"),
        ({"k": 3, "ideal_depth": "all"}, "ideal", f"{ALL_JUDGED}best first; not cut at 3"),
        (
            {"k": 3, "ideal_depth": "retrieved"},
            "ideal",
            f"{ALL_JUDGED}best first; cut after as many documents as were retrieved",
        ),
        ({"ideal": "given"}, "ideal", f"{ALL_JUDGED}in the order of the input"),
        ({"ideal": "recall"}, "ideal", "the retrieved documents, best first"),
        ({"ideal": "recall", "recall_depth": 5}, "ideal", "the retrieved documents among the first 5, best first"),
        ({"ideal": "local"}, "ideal", "the expected gains at every rank, re-sorted"),
        ({"ideal": "local", "k": 3}, "ideal", "the expected gains at ranks 1..3, re-sorted"),
        ({"ideal": "max", "max_grade": 4}, "ideal", "gain(4) at as many ranks as documents were retrieved"),
        ({"ideal": "max", "max_grade": 4, "k": 3}, "ideal", "gain(4) at ranks 1..3"),
        ({"empty": "raise"}, "empty", "a query whose ideal DCG is 0 is an error"),
        ({"empty": "nan"}, "empty", "a query whose ideal DCG is 0 scores nan"),
        ({"empty": 1}, "empty", "a query whose ideal DCG is 0 scores 1"),
    ],
)
def test_a_switch_is_described_in_these_words(switches: dict[str, Any], row: str, words: str) -> None:
    assert f"\n  {row:<10} {words}\n" in Flavor(**switches).describe()


def test_flavors_that_differ_spread_over_hashes() -> None:
    assert len({hash(flavor) for flavor in PRESETS.values()}) == len(set(PRESETS.values()))


# -- the flavor's text and its errors -------------------------------------------------------------------------------


class Named:
    """A callable that is no function."""

    def __call__(self, number: float) -> float:
        return number


def test_the_text_of_a_flavor_is_as_short_as_it_reads() -> None:
    assert str(Flavor()) == "ndcg[gain=linear,discount=log2,ideal=global,ties=average,empty=0]"
    assert str(Flavor(max_grade=4, gain=(0, 0.5))) == (
        "ndcg[gain=0|0.5,discount=log2,ideal=global,ties=average,empty=0,max_grade=4]"
    )
    assert switch_text(999999999999999.0) == "999999999999999"
    assert switch_text(1e15) == "1000000000000000.0"


def test_what_a_flavor_is_where_nothing_is_said() -> None:
    assert {field.name: getattr(Flavor(), field.name) for field in dataclasses.fields(Flavor)} == {
        "gain": "linear",
        "off_table": "raise",
        "discount": "log2",
        "discount_base": 2.0,
        "ideal": "global",
        "ideal_depth": "k",
        "recall_depth": None,
        "max_grade": None,
        "k": None,
        "short_lists": "score",
        "ties": "average",
        "empty": 0.0,
        "aggregate": "macro",
        "negative": "raise",
        "unjudged": "raise",
        "score_dtype": "float64",
    }


def test_a_callable_of_any_kind_is_shown_without_spaces() -> None:
    assert switch_text(Named()) == "<Named>"
    assert switch_text(functools.partial(pow, 2)) == "<partial>"
    spaced = Named()
    spaced.__dict__["__qualname__"] = "two words"
    assert switch_text(spaced) == "<two_words>"
    assert "gain=<two_words>," in str(Flavor(gain=spaced))


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("ndcg[max_grade=None]", "max_grade", None),
        ("ndcg[max_grade=1E2]", "max_grade", 100.0),
        ("ndcg[max_grade=1e+2]", "max_grade", 100.0),
        ("ndcg[empty=0.0]", "empty", 0.0),
        ("ndcg[empty=1.0]", "empty", 1.0),
    ],
)
def test_numbers_may_be_written_in_other_ways(text: str, field: str, value: float | None) -> None:
    assert getattr(Flavor.parse(text), field) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ndcg[short_lists=None]", "Flavor.short_lists must be one of 'score', 'zero'; got 'None'."),
        ("ndcg@5x", "k must be an integer >= 1; got '5x' in the text of a flavor."),
        ("ndcg[max_grade=1.2.3]", "max_grade must be a number; got '1.2.3' in the text of a flavor."),
        ("ndcg[max_grade=.]", "max_grade must be a number; got '.' in the text of a flavor."),
        ("ndcg[max_grade=-.]", "max_grade must be a number; got '-.' in the text of a flavor."),
        ("ndcg[max_grade=..]", "max_grade must be a number; got '..' in the text of a flavor."),
        ("ndcg[empty=0x]", "empty must be a number; got '0x' in the text of a flavor."),
        ("ndcg[ideal=a=b]", "Flavor.ideal must be one of 'global', 'recall', 'local', 'max', 'given'; got 'a=b'."),
    ],
)  # fmt: skip
def test_what_the_text_gets_wrong_is_said_in_full(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Flavor.parse(text)


@pytest.mark.parametrize(
    ("switches", "error", "end"),
    [
        ({"ideal": 3}, TypeError, "; got 3."),
        ({"ideal": "xyzzy"}, ValueError, "; got 'xyzzy'."),
        ({"gain": "e2"}, ValueError, "; got 'e2'."),
        ({"gain": "expo"}, ValueError, "; got 'expo'. Did you mean 'exponential'?"),
        ({"discount": "recip"}, ValueError, "; got 'recip'. Did you mean 'reciprocal'?"),
        ({"discount": "jarv"}, ValueError, "; got 'jarv'. Did you mean 'jarvelin'?"),
        ({"ideal_depth": "retr"}, ValueError, "; got 'retr'. Did you mean 'retrieved'?"),
    ],
)
def test_a_suggestion_is_made_where_one_is_near(switches: dict[str, Any], error: type[Exception], end: str) -> None:
    with pytest.raises(error, match=f"{re.escape(end)}$"):
        Flavor(**switches)


def test_a_flavor_has_one_cut_off() -> None:
    with pytest.raises(ValueError, match=r"^a flavor's text must have the form .*; got 'ndcg@5@3'\.$"):
        Flavor.parse("ndcg@5@3")


def test_the_name_for_logs_is_a_digest_of_the_text_without_the_cut_off() -> None:
    flavor = Flavor(gain=(0, 1, 3), k=10, empty="skip")
    digest = hashlib.sha256(str(flavor.replace(k=None)).encode()).hexdigest()
    assert flavor.metric_name == f"ndcg_{digest[:8]}"


def test_a_word_for_a_gain_is_not_taken_for_a_table() -> None:
    with pytest.raises(ValueError, match=r"^Flavor\.gain must be one of 'linear', .*; got 'e2'"):
        Flavor.parse("ndcg[gain=e2]")


def test_the_type_of_what_is_no_name_is_said() -> None:
    with pytest.raises(TypeError, match=r"^name must be the name of a preset \(a str\); got 3 of type int\.$"):
        Flavor.preset(3)  # type: ignore[arg-type]


def test_only_the_maximal_ideal_limits_the_cut_off() -> None:
    flavor = Flavor(ideal="max", max_grade=1)
    assert cutoffs((10**8, None), flavor) == ((10**8, None), True)
    with pytest.raises(ValueError, match=r"^k must be at most 100000000 under ideal='max', .*; got 100000001. Choose"):
        cutoffs((3, 10**8 + 1, None), flavor)
    assert cutoffs(10**12, Flavor()) == ((10**12,), False)
    assert cutoffs(10**12, Flavor(ideal="local")) == ((10**12,), False)


def test_there_is_no_negative_zero() -> None:
    assert repr(Flavor(gain=(-0.0, 1), max_grade=-0.0)) == "Flavor(gain=(0.0, 1.0), max_grade=0.0)"
    assert math.copysign(1, float(Flavor(empty=-0.0).empty)) == 1


def test_a_refused_switch_says_what_else_it_may_be() -> None:
    with pytest.raises(ValueError, match=r"'ln', 'none', or a callable of one rank; got 'xyzzy'\.$"):
        Flavor(discount="xyzzy")
    with pytest.raises(
        ValueError, match=r"'binary', 'judged', a table \(.*\) or a callable of one grade; got 'xyzzy'\.$"
    ):
        Flavor(gain="xyzzy")
    with pytest.raises(ValueError, match=r"'macro', 'micro'; got 'xyzzy'\.$"):
        Flavor(aggregate="xyzzy")


@pytest.mark.parametrize("grade", [0, 1])
def test_every_grade_of_a_gain_table_may_be_the_top(grade: int) -> None:
    flavor = Flavor(ideal="max", gain=(2, 3), max_grade=grade, k=1)
    assert evaluate([0.0], [1], group=[1], flavor=flavor).per_query.idcg.tolist() == [2.0 + grade]
    assert Flavor(ideal="max", gain=(2,), max_grade=0).max_grade == 0


@pytest.mark.parametrize("grade", [2, 0.5, -1])
def test_the_top_grade_must_be_in_the_gain_table(grade: float) -> None:
    message = f"Flavor.max_grade must be a grade of the gain table, an integer from 0 to 1; got {float(grade)!r}."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Flavor(ideal="max", gain=(2, 3), max_grade=grade)


@pytest.mark.parametrize(
    ("switches", "error", "message"),
    [
        (
            {"ideal": "recall", "recall_depth": 0},
            ValueError,
            "Flavor.recall_depth must be an integer >= 1, or None for all that was retrieved; got 0.",
        ),
        (
            {"ideal": "recall", "recall_depth": 1.0},
            TypeError,
            "Flavor.recall_depth must be an integer >= 1, or None for all that was retrieved; got 1.0 of type float.",
        ),
        ({"k": 0}, ValueError, "Flavor.k must be an integer >= 1, or None for no cut-off; got 0."),
        ({"discount_base": "2"}, TypeError, "Flavor.discount_base must be a finite number; got '2' of type str."),
        ({"max_grade": math.inf}, ValueError, "Flavor.max_grade must be a finite number; got inf."),
        ({"gain": ()}, ValueError, "Flavor.gain as a table must hold a gain for grade 0 at least; got an empty table."),
    ],
)
def test_what_a_switch_gets_wrong_is_said_in_full(
    switches: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        Flavor(**switches)


def test_no_cut_off_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^k must hold at least one cut-off; got an empty sequence\.$"):
        cutoffs([], Flavor())


def test_the_settings_of_other_libraries_are_those_of_the_flavor_that_is_asked() -> None:
    trained = Flavor(gain="exponential", ties="first", k=4, max_grade=3)
    lightgbm = trained.lightgbm_params(evaluate=False)
    assert (lightgbm["label_gain"], lightgbm["metric"]) == ([0.0, 1.0, 3.0, 7.0], "None")
    assert Flavor.preset("lightgbm", k=4).lightgbm_params()["eval_at"] == [4]
    assert Flavor.preset("xgboost", k=4).xgboost_params()["eval_metric"] == "ndcg@4"
    assert trained.xgboost_params(evaluate=False)["lambdarank_num_pair_per_sample"] == 4
    assert "ndcg@4" not in trained.xgboost_params(evaluate=False).values()
    assert "top=4" in Flavor.preset("catboost", k=4).catboost_params()["eval_metric"]
    assert "eval_metric" not in trained.catboost_params(evaluate=False)


# -- sums over parts ------------------------------------------------------------------------------------------------


def as_lists(sums: Sums) -> tuple[list[float], list[float], int, int, list[int]]:
    return sums.numerator.tolist(), sums.denominator.tolist(), sums.exponent, sums.n_queries, sums.n_empty.tolist()


def test_sums_add_up_on_the_larger_scale() -> None:
    one = Sums(np.array([1.0, 4.0]), np.array([2.0, 8.0]), 3, 2, np.array([1, 0]))
    other = Sums(np.array([16.0, 32.0]), np.array([64.0, 128.0]), 1, 5, np.array([0, 2]))
    both = ([5.0, 12.0], [18.0, 40.0], 3, 7, [1, 2])
    assert as_lists(one + other) == as_lists(other + one) == both
    assert as_lists(one.rescaled(5)) == ([0.25, 1.0], [0.5, 2.0], 5, 2, [1, 0])
    assert as_lists(one.rescaled(3)) == as_lists(one)


def test_a_perfect_ranking_is_one_whatever_its_rounding_errors() -> None:
    micro = Flavor(aggregate="micro")
    for ratio, value in ((1 + 1e-13, 1.0), (1 - 1e-13, 1 - 1e-13), (1 + 1e-12, 1 + 1e-12), (1.0, 1.0)):
        sums = Sums(np.array([ratio]), np.array([1.0]), 0, 1, np.array([0]))
        assert sums.values(micro) == [value]
        ndcg, _ = per_query_ndcg(np.array([[ratio]]), np.array([[1.0]]), Flavor(), np.array([0]))
        assert ndcg.tolist() == [[value]]


def test_parts_of_ordinary_and_of_huge_gains_add_up() -> None:
    flavor = Flavor(aggregate="micro")
    labels, scores = [2.0**499, 0.0, 2.0**501, 2.0**500], [1, 2, 1, 2]
    parts = [
        prepare(labels[at : at + 2], group=[2], flavor=flavor).sums(np.array(scores[at : at + 2])) for at in (0, 2)
    ]
    whole = ndcg_score(labels, scores, group=[2, 2], flavor=flavor)
    assert (parts[0] + parts[1]).values(flavor) == [pytest.approx(whole, rel=1e-14)]
    third = 1 / math.log2(3)
    assert whole == pytest.approx((third + 4 * third + 2) / (1 + 4 + 2 * third), rel=1e-14)


def test_an_ideal_may_be_as_small_as_it_likes() -> None:
    ndcg, empty = per_query_ndcg(np.array([[1e300]]), np.array([[1e-300]]), Flavor(), np.array([0]))
    assert (ndcg.tolist(), empty.tolist()) == ([[math.inf]], [[False]])


@pytest.mark.parametrize("size", [1.0, 1e308])
def test_a_micro_mean_leaves_an_ideal_below_zero_out(size: float) -> None:
    """Nor does the size of such gains decide which others are too small to see."""
    flavor = Flavor(aggregate="micro", negative="allow")
    labels = [1e-20, 0.0, -size, -size]
    value = ndcg_score(labels, [1, 2, 1, 2], group=[2, 2], flavor=flavor)
    assert value == pytest.approx(1 / math.log2(3), rel=1e-14)


@pytest.mark.parametrize("aggregate", ["macro", "micro"])
def test_sums_count_the_empty_queries_at_each_cut_off(aggregate: str) -> None:
    flavor = Flavor(ideal="local", aggregate=aggregate)
    prepared = prepare([0, 1, 0, 0, 1, 0], group=[2, 2, 2], k=(1, 2), flavor=flavor)
    sums = prepared.sums(np.array([2.0, 1, 2, 1, 2, 1]))
    assert (sums.n_queries, sums.n_empty.tolist()) == (3, [2, 1])
