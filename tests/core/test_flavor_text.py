"""The description of a flavor, its text and its errors, compared in full."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
import re
from typing import Any

import pytest

from ndcg_ml import Flavor, evaluate
from ndcg_ml.presets import MIRRORS

# -- the description ------------------------------------------------------------------------------------------------


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
    assert lines[-6:] == [
        f"  preset     letor3: {three.library}",
        f"  note       {three.unusual}",
        f"  verified   {three.verified}",
        lines[-3],
        f"  also       letor4: {four.library}",
        f"  text       {Flavor.preset('letor3')}",
    ]
    assert lines[-3].startswith("  differs    A score is NaN")
    assert [line.split()[0] for line in lines[1:10]] == (
        ["gain", "discount", "ties", "ideal", "empty", "aggregate", "negative", "unjudged", "scores"]
    )


ALL_JUDGED = "all judged documents of the query, retrieved or not, "


@pytest.mark.parametrize(
    ("switches", "row", "words"),
    [
        ({"gain": own}, "gain", "gain(y) = <own>(y), a callable"),
        ({"gain": (0, 1, 3)}, "gain", "gain(y) = table 0|1|3, by grade"),
        ({"gain": (0, 1), "off_table": "zero"}, "gain", "gain(y) = table 0|1, by grade; a grade beyond it has gain 0"),
        ({"max_grade": 2.5}, "gain", "gain(y) = y; a label above 2.5 is an error"),
        ({"discount": own}, "discount", "D(r) = <own>(r), a callable"),
        ({"discount": "jarvelin"}, "discount", "D(r) = 1 for r < 2, otherwise 1 / log2(r)"),
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


# -- the flavor's text and its errors -------------------------------------------------------------------------------


class Named:
    """A callable that is not a function."""

    def __call__(self, number: float) -> float:
        return number


def test_the_text_of_a_flavor_omits_defaults() -> None:
    assert str(Flavor()) == "ndcg[gain=linear,discount=log2,ideal=global,ties=average,empty=0]"
    assert str(Flavor(max_grade=4, gain=(0, 0.5))) == (
        "ndcg[gain=0|0.5,discount=log2,ideal=global,ties=average,empty=0,max_grade=4]"
    )
    for number, text in ((999999999999999.0, "999999999999999"), (1e15, "1000000000000000.0")):
        assert str(Flavor(max_grade=number)).endswith(f",max_grade={text}]")


def test_the_defaults_of_a_flavor() -> None:
    assert {field.name: getattr(Flavor(), field.name) for field in dataclasses.fields(Flavor)} == {
        "gain": "linear",
        "off_table": "raise",
        "discount": "log2",
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
        "duplicates": "raise",
    }


def test_a_text_may_be_wrapped_after_commas() -> None:
    flavor = Flavor.preset("lightgbm", k=10)
    assert Flavor.parse(str(flavor).replace(",", ", ").replace(" ideal", "\nideal")) == flavor


def test_a_callable_of_any_kind_is_shown_without_spaces() -> None:
    assert "[gain=<Named>," in str(Flavor(gain=Named()))
    assert "[gain=<partial>," in str(Flavor(gain=functools.partial(pow, 2)))
    spaced = Named()
    spaced.__dict__["__qualname__"] = "two words"
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


def test_the_name_for_logs_is_a_digest_of_the_text_without_the_cut_off() -> None:
    flavor = Flavor(gain=(0, 1, 3), k=10, empty="skip")
    digest = hashlib.sha256(str(flavor.replace(k=None)).encode()).hexdigest()
    assert flavor.metric_name == f"ndcg_{digest[:8]}"


def test_there_is_no_negative_zero() -> None:
    assert repr(Flavor(gain=(-0.0, 1), max_grade=-0.0)) == "Flavor(gain=(0.0, 1.0), max_grade=0.0)"
    assert math.copysign(1, float(Flavor(empty=-0.0).empty)) == 1


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
