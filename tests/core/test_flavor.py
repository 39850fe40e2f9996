"""The flavor as a value: text, equality, pickling, description and errors."""

import ast
import copy
import dataclasses
import functools
import inspect
import math
import pickle
import re
import sys
import types
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import flavors

import ndcg_ml
from ndcg_ml import PRESETS, Flavor, evaluate, ndcg_score, prepare
from ndcg_ml.flavor import as_arguments, as_flavor
from ndcg_ml.presets import MIRRORS

AWKWARD = [0.1, 1 / 3, 1e-300, 5e-324, 1.7976931348623157e308, -2.5, 1e15, 1e16, 123456789012345.6, -0.0]


@given(flavors(callables=False), st.integers(1, 2**63 - 1) | st.none())
def test_texts_pickles_and_copies_are_the_same_flavor(flavor, k):
    flavor = flavor.replace(k=k)
    text, short = str(flavor), flavor.short_text
    read = (
        Flavor.parse(text),
        as_flavor(text),
        Flavor.parse(short),
        eval(repr(flavor), {"Flavor": Flavor, "nan": math.nan}),
    )
    for again in (*read, pickle.loads(pickle.dumps(flavor)), copy.deepcopy(flavor), flavor.replace()):
        assert again == flavor
        assert hash(again) == hash(flavor)
        assert str(again) == text
    assert not set(text) & set(" :\n")
    assert len(short) <= len(text)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(AWKWARD), min_size=1, max_size=8))
def test_tables_of_any_numbers_read_back(table):
    flavor = Flavor(gain=table)
    assert flavor.gain == tuple(table)
    assert Flavor.parse(str(flavor)) == flavor


def test_flavors_with_nan_are_equal():
    one, other = Flavor(empty=math.nan), Flavor(empty=float("nan"))
    assert one == other == Flavor(empty="nan") == pickle.loads(pickle.dumps(one)) == Flavor.parse(str(one))
    assert hash(one) == hash(other)
    assert one != Flavor(empty=0)
    assert isinstance(one.empty, float)


CHANGES = [
    {}, {"gain": "exponential"}, {"gain": "binary"}, {"gain": "judged"}, {"gain": (0, 1)},
        {"gain": (0, 1), "off_table": "zero"},
    {"discount": "reciprocal"}, {"discount": "ln"}, {"discount": "jarvelin"}, {"ideal": "recall"}, {"ideal": "local"},
        {"ideal": "given"},
    {"ideal": "max", "max_grade": 4}, {"ideal_depth": "all"}, {"ideal_depth": "retrieved"},
        {"ideal": "recall", "recall_depth": 3},
    {"max_grade": 3}, {"ties": "worst"}, {"ties": "docid"}, {"ties": "docid_ascending"}, {"empty": 1},
        {"aggregate": "micro"},
    {"negative": "drop"}, {"unjudged": "zero"}, {"unjudged": "condense"}, {"score_dtype": "float32"},
        {"short_lists": "zero"},
    {"duplicates": "first"}, {"duplicates": "count"},
]  # fmt: skip


def test_every_field_counts_in_equality_and_in_the_description():
    others = [Flavor(k=5, **change) for change in CHANGES]
    assert len({Flavor(), *others}) == len(CHANGES) + 1
    assert len({flavor.describe().rsplit("\n", 1)[0] for flavor in others}) == len(CHANGES)
    assert {field.name for field in dataclasses.fields(Flavor)} == {"k", *(name for each in CHANGES for name in each)}
    assert repr(Flavor(ideal="recall", recall_depth=np.int64(5))) == "Flavor(ideal='recall', recall_depth=5)"
    assert Flavor(max_grade=4, gain=(0, 1), k=np.int64(3)) == Flavor(max_grade=4.0, gain=np.array([0.0, 1.0]), k=3)
    assert Flavor() != "ndcg"


def test_it_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Flavor().k = 3
    with pytest.raises(TypeError, match="'at'"):
        Flavor.preset("sklearn", at=3)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"gain": "exp2"}, ValueError,
            r"Flavor.gain must be one of 'linear', 'exponential', 'binary'.*got 'exp2'. Did you mean 'exponential'"),
        ({"gain": ()}, ValueError, "Flavor.gain as a table must hold a gain for grade 0"),
        ({"gain": (0, math.inf)}, ValueError, "Flavor.gain must be a finite number; got inf"),
        ({"gain": (0, "1")}, TypeError, "Flavor.gain must be a finite number; got '1' of type str"),
        ({"gain": 3}, TypeError, "Flavor.gain must be one of .*got 3"),
        ({"discount": "log"}, ValueError,
            "Flavor.discount must be one of 'log2', 'jarvelin', 'reciprocal', 'ln', 'none'.*Did you mean 'ln'"),
        ({"discount": 2}, TypeError, "Flavor.discount must be one of"),
        ({"gain": "2^y-1"}, ValueError, r"got '2\^y-1'\. Did you mean 'exponential'"),
        ({"ideal": "optimal"}, ValueError,
            "Flavor.ideal must be one of 'global', 'recall', 'local', 'max', 'given'; got 'optimal'"),
        ({"ideal": "max"}, ValueError, "Flavor.max_grade must be given with ideal='max'.*got None. Pass the top"),
        *(
            ({"ideal": "max", "max_grade": top, "gain": (0, 1)}, ValueError,
                f"max_grade must be a grade of the gain table, an integer from 0 to 1; got {top}")
            for top in (2.0, 0.5, -1.0)
        ),
        ({"max_grade": math.nan}, ValueError, "Flavor.max_grade must be a finite number; got nan"),
        ({"max_grade": True}, TypeError, "Flavor.max_grade must be a finite number; got True of type bool"),
        ({"ideal_depth": 10}, TypeError, "Flavor.ideal_depth must be one of 'k', 'all', 'retrieved'; got 10"),
        ({"ideal_depth": "retreived"}, ValueError, "got 'retreived'. Did you mean 'retrieved'"),
        ({"off_table": "zero"}, ValueError,
            ("Flavor.off_table only has a meaning with a gain table; got off_table='zero' with gain=linear. Leave it "
                "out")),
        ({"off_table": "drop", "gain": (0, 1)}, ValueError,
            "Flavor.off_table must be one of 'raise', 'zero'; got 'drop'"),
        ({"short_lists": 0}, TypeError, "Flavor.short_lists must be one of 'score', 'zero'; got 0"),
        ({"short_lists": "zeros"}, ValueError, "got 'zeros'. Did you mean 'zero'"),
        ({"gain": "judge"}, ValueError, "got 'judge'. Did you mean 'judged'"),
        ({"recall_depth": 3}, ValueError, "recall_depth only has a meaning with ideal='recall'"),
        ({"recall_depth": 0, "ideal": "recall"}, ValueError, "Flavor.recall_depth must be an integer >= 1.*got 0"),
        ({"k": 0}, ValueError, "Flavor.k must be an integer >= 1, or None for no cut-off; got 0"),
        ({"k": True}, TypeError, "Flavor.k must be an integer.*got True of type bool"),
        ({"k": 10.0}, TypeError, "Flavor.k must be an integer.*got 10.0 of type float"),
        ({"ties": "mean"}, ValueError,
            ("Flavor.ties must be one of 'average', 'first', 'last', 'best', 'worst', 'docid', 'docid_ascending'; got "
                "'mean'. Did you mean 'average'")),
        ({"empty": 0.5}, ValueError, "Flavor.empty must be 0, 1, nan, 'skip' or 'raise'; got 0.5"),
        ({"empty": "skp"}, ValueError,
            "Flavor.empty must be 0, 1, nan, 'skip' or 'raise'; got 'skp'. Did you mean 'skip'"),
        ({"empty": True}, TypeError, "Flavor.empty must be 0, 1, nan, 'skip' or 'raise'; got True"),
        ({"empty": None}, TypeError, "Flavor.empty must be 0, 1, nan"),
        ({"aggregate": "mean"}, ValueError, "Flavor.aggregate must be one of 'macro', 'micro'"),
        ({"negative": "clip"}, ValueError,
            "Flavor.negative must be one of 'raise', 'zero', 'drop', 'allow'; got 'clip'. Did you mean 'zero'"),
        ({"unjudged": "condensed"}, ValueError,
            "Flavor.unjudged must be one of 'raise', 'zero', 'condense'; got 'condensed'. Did you mean 'condense'"),
        ({"score_dtype": "float16"}, ValueError, "Flavor.score_dtype must be one of 'float64', 'float32'"),
        ({"duplicates": "drop"}, ValueError, "Flavor.duplicates must be one of 'raise', 'first', 'count'; got 'drop'"),
        ({"score_dtype": np.float32}, TypeError, "Flavor.score_dtype must be one of"),
    ],
)  # fmt: skip
def test_invalid_switches_are_refused(arguments, error, message):
    with pytest.raises(error, match=message) as caught:
        Flavor(**arguments)
    name = next(iter(arguments))
    if meant := re.search(r"Did you mean '(\w+)'", str(caught.value)):
        Flavor(**{name: meant[1]})
    if switch := re.search(r"(?:example|such as|or use) (\w+)=(.*)\.$", str(caught.value)):
        Flavor(**{**arguments, switch[1]: ast.literal_eval(switch[2])})
    if "max_grade" not in message:
        with pytest.raises(error, match=message):
            Flavor().replace(**arguments)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (3, TypeError, "text must be a str such as 'ndcg', 'ndcg@10'.*got 3 of type int"),
        ("", ValueError, "a flavor's text must have the form"),
        ("ndcg @10", ValueError, "a flavor's text must have the form"),
        ("ndcg[gain=linear", ValueError, "a flavor's text must have the form"),
        ("map@10", ValueError,
            "must start with 'ndcg' or the name of a preset; got 'map' in 'map@10'.* List the presets with list"),
        ("scikit-learn", ValueError, "Did you mean 'sklearn'"),
        ("ndcg@ten", ValueError, "k must be an integer >= 1; got 'ten'"),
        ("ndcg@0", ValueError, "Flavor.k must be an integer >= 1"),
        ("ndcg[ties]", ValueError, "must have the form name=value; got 'ties'"),
        ("ndcg[tie=first]", ValueError, "a switch in a flavor's text must be one of.*Did you mean 'ties'"),
        ("ndcg[ties=first,ties=last]", ValueError, "must set 'ties' once"),
        ("ndcg@5[k=5]", ValueError, "must set 'k' once"),
        ("ndcg[ties=mean]", ValueError, "Flavor.ties must be one of.*Did you mean 'average'"),
        ("ndcg[max_grade=a]", ValueError, "max_grade must be a number; got 'a'"),
        ("ndcg[gain=0|x]", ValueError, "gain must be a number; got 'x'"),
        ("ndcg@5@3", ValueError, "a flavor's text must have the form"),
        ("ndcg[empty=0x]", ValueError, "empty must be a number; got '0x' in the text of a flavor"),
        ("ndcg[ideal=a=b]", ValueError, "Flavor.ideal must be one of .*; got 'a=b'"),
        ("ndcg[gain=e2]", ValueError, "Flavor.gain must be one of .*; got 'e2'"),
        ("exponential", ValueError, r"which is a gain\. Use Flavor\(gain='exponential'\)"),
        ("ndcg[gain=<lambda>]", ValueError, "a flavor with a callable cannot be read back.*Keep the Flavor object"),
    ],
)  # fmt: skip
def test_invalid_text_is_refused(text, error, message):
    with pytest.raises(error, match=message) as caught:
        Flavor.parse(text)
    if meant := re.search(r"got '([\w-]+)'.* Did you mean '(\w+)'", str(caught.value)):
        Flavor.parse(re.sub(rf"\b{meant[1]}\b", meant[2], text))
    if code := re.search(r"Use (Flavor\(.*?\)), or '(.*)'\.$", str(caught.value)):
        assert eval(code[1]) == Flavor.parse(code[2])


@given(st.text() | st.from_regex(r"(ndcg|sklearn)(@[0-9x-]{0,4})?(\[[a-z_=,0-9.|<-]{0,30}\])?", fullmatch=True))
def test_any_text_is_a_flavor_or_a_value_error(text):
    try:
        flavor = Flavor.parse(text)
    except ValueError:
        return
    assert Flavor.parse(str(flavor)) == flavor


def test_text_may_start_from_a_preset():
    assert Flavor.parse("lightgbm@10") == Flavor.preset("lightgbm", k=10)
    assert Flavor.parse("lightgbm@10[ties=average,empty=skip]") == Flavor.preset(
        "lightgbm", k=10, ties="average", empty="skip"
    )
    assert Flavor.parse("xgboost[k=None]").k is None
    assert Flavor.parse("ndcg") == Flavor()


def gain_of_my_own(grade):
    return grade**2


def test_callables_are_compared_by_identity_and_shown():
    flavor = Flavor(gain=gain_of_my_own, discount=abs)
    assert flavor == Flavor(gain=gain_of_my_own, discount=abs) == pickle.loads(pickle.dumps(flavor))
    assert flavor != Flavor(gain=lambda y: y**2, discount=abs)
    assert "gain=<gain_of_my_own>" in str(flavor)
    assert "D(r) = <abs>(r), a callable" in flavor.describe()


def test_presets_are_listed_with_their_sources():
    assert set(PRESETS) == set(MIRRORS)
    assert {"sklearn", "lightgbm", "xgboost", "catboost", "torchmetrics", "trec_eval"} <= set(PRESETS)
    assert {"burges2005", "jarvelin2002"} <= set(PRESETS)
    first = {
        **dict.fromkeys(("pytrec_eval", "ir_measures", "mteb", "beir", "flagembedding"), "trec_eval"),
        **dict.fromkeys(("implicit", "rectools_achievable", "cornac", "recpack"), "pyg"),
        "spark": "recbole",
        "letor4": "letor3",
        "keras_rs": "tensorflow_ranking",
        "flaml": "sklearn",
        "ydf": "pytorchltr",
        "river": "vespa",
    }
    for name, flavor in PRESETS.items():
        mirror = MIRRORS[name]
        assert flavor == Flavor.preset(name) == Flavor(**mirror.switches)
        assert flavor.preset_name == flavor.replace(k=7).preset_name == first.get(name, name)
        assert flavor.metric_name == f"ndcg_{first.get(name, name)}"
        assert all((mirror.library, mirror.verified, mirror.unusual))
        assert re.search(r"\d", mirror.library), "no version"
        assert mirror.library in flavor.describe()
        assert MIRRORS[first.get(name, name)].unusual in flavor.describe()
    for name, powers in {
        "letor4": range(3),
        "mslr": range(5),
        "elliot": range(1, 7),
        "mlnet": (0, *range(2, 6)),
    }.items():
        assert PRESETS[name].gain == tuple(2**n - 1 for n in powers)
    assert "also       letor4: LETOR 4.0" in Flavor.preset("letor3").describe()
    assert "also" not in Flavor.preset("mslr").describe()
    with pytest.raises(TypeError):
        PRESETS["mine"] = Flavor()


def test_an_alias_is_the_flavor_of_the_preset_that_it_names():
    aliases = {name: mirror.alias_of for name, mirror in MIRRORS.items() if mirror.alias_of}
    assert aliases == {
        **dict.fromkeys(("mteb", "beir", "flagembedding"), "pytrec_eval"),
        "cornac": "pyg",
        "recpack": "pyg",
        "flaml": "sklearn",
        "river": "vespa",
    }
    for name, target in aliases.items():
        flavor = Flavor.preset(name)
        assert flavor == Flavor.preset(target) == Flavor.parse(name)
        assert MIRRORS[name].switches == MIRRORS[target].switches
        # equal flavors have the same name and text, whichever preset they were made from
        assert flavor.metric_name == Flavor.preset(target).metric_name
        assert flavor.short_text == Flavor.preset(target).short_text
        assert f"also       {name}: {MIRRORS[name].library} (an alias of {target})" in flavor.describe()
    assert "alias" not in Flavor.preset("ranx").describe()


def test_an_unknown_preset_is_refused():
    with pytest.raises(TypeError, match=r"by keyword, .*; got 'lightgbm'\. Use Flavor\.preset\(name\)"):
        Flavor("lightgbm")
    with pytest.raises(ValueError, match=r"a preset; got '\w+'\. Did you mean 'catboost'\? List the presets with"):
        Flavor.preset("catbost")
    with pytest.raises(ValueError, match=r"a preset; got a flavor's text\. Write Flavor\.parse\('sklearn@5'\)"):
        Flavor.preset("sklearn@5")
    assert all(Flavor.preset(name).describe() for name in list(PRESETS))
    with pytest.raises(ValueError, match="must be the name of a preset"):
        Flavor.preset(Flavor())


@given(flavors(callables=False), flavors(callables=False))
def test_metric_names_are_safe_in_logs(one, other):
    for flavor in (one, other):
        assert flavor.metric_name.startswith("ndcg_")
        assert flavor.metric_name.replace("_", "").isalnum()
        assert flavor.replace(k=3).metric_name == flavor.replace(k=None).metric_name
    assert (one.metric_name == other.metric_name) == (one.replace(k=None) == other.replace(k=None))


@pytest.mark.parametrize(
    ("flavor", "name"),
    [
        (Flavor(), "linear"),
        (Flavor(gain="exponential", empty="skip", k=10), "exponential_skip"),
        (Flavor(ties="first"), "linear_ties_first"),
        (Flavor.preset("lightgbm", k=5), "lightgbm"),
        (Flavor.preset("lightgbm", ties="average", k=5), "exponential_recall_empty_1"),
        (Flavor(ideal="max", max_grade=0.5, discount="none", ideal_depth="all"),
            "linear_discount_none_ideal_max_ideal_depth_all_max_grade_0p5"),
        (Flavor(gain=(0, 1, 3, 7)), "gain0_1_3_7"),
        (Flavor(gain=tuple(range(20)), empty="skip"), "gain_[0-9a-f]{8}_skip"),
        (Flavor(gain=lambda grade: grade, ties="worst"), "gain_[0-9a-f]{8}_worst"),
    ],
)  # fmt: skip
def test_metric_names_say_what_was_switched(flavor, name):
    assert re.fullmatch(f"ndcg_{name}", flavor.metric_name)


@dataclasses.dataclass  # it has no hash
class Power:
    exponent: float

    def __call__(self, grade: float) -> float:
        return grade**self.exponent


def test_metric_names_tell_callables_of_one_name_apart(monkeypatch):
    def power(exponent):
        return lambda grade: grade**exponent

    def of_module(name):
        monkeypatch.setitem(sys.modules, name, module := types.ModuleType(name))
        exec("def gain(grade): return grade", vars(module))
        return module.gain

    pairs = [(power(2), power(3)), (Power(2), Power(3)), (of_module("one"), of_module("other"))]
    for one, other in [(lambda grade: grade, lambda grade: grade), *pairs]:
        for switch in ("gain", "discount"):
            names = [Flavor(**{switch: each}).metric_name for each in (one, other, one)]
            assert names[0] == names[2] != names[1]


@pytest.mark.parametrize(
    ("flavor", "text"),
    [
        (Flavor(), "ndcg"),
        (Flavor(k=3, empty="skip"), "ndcg@3[empty=skip]"),
        (PRESETS["lightgbm"], "lightgbm"),
        (PRESETS["xgboost"], "xgboost"),
        (Flavor.preset("xgboost", k=5, empty=0), "xgboost_minus@5"),
        (Flavor.preset("lightgbm", k=10, ties="average"), "lightgbm@10[ties=average]"),
    ],
)
def test_the_short_text_starts_from_the_nearest_preset(flavor, text):
    assert flavor.short_text == text


FAR = "ndcg[gain=binary,discount=reciprocal,ideal=local,ties=worst,empty=skip]"  # from every preset


@pytest.mark.parametrize("flavor", [Flavor.preset("lightgbm", discount=math.sqrt), Flavor.parse(FAR)])
def test_the_short_text_with_a_function_or_with_many_changes_is_the_whole_text(flavor):
    assert flavor.short_text == str(flavor)


@pytest.mark.parametrize(
    ("flavor", "ks", "several", "text"),
    [
        ("lightgbm", (None,), False, "'lightgbm'"),
        ("lightgbm@7", (5,), False, "'lightgbm', k=5"),
        ("xgboost", (32,), False, "'xgboost'"),
        ("xgboost", (None,), False, "'xgboost', k=None"),
        ("lightgbm[ties=average]", (1, 10), True, "'lightgbm[ties=average]', k=(1, 10)"),
        (FAR, (None,), False, repr(FAR)),
    ],
)
def test_a_definition_is_printed_as_arguments(flavor, ks, several, text):
    assert as_arguments(as_flavor(flavor), ks, several) == text


@pytest.mark.parametrize(
    ("k", "ks"),
    [
        (..., (7,)),
        (None, (None,)),
        (np.int32(3), (3,)),
        ([1, 3, None], (1, 3, None)),
        (np.array([1, 3, None], dtype=object), (1, 3, None)),
        (range(1, 3), (1, 2)),
    ],
)
def test_cutoffs(k, ks):
    prepared = prepare([[1, 0]], flavor=Flavor(k=7), k=k)
    assert prepared.ks == ks
    assert isinstance(prepared([[1, 0]]), dict) == (len(ks) > 1)


@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "catboost"])
def test_supports_agrees_with_the_parameters_for_every_preset(library):
    home, answers = getattr(ndcg_ml, library), set()
    parameters = getattr(home, f"{library}_params")
    for name, preset in PRESETS.items():
        for flavor in (preset, preset.replace(k=None), preset.replace(gain=(0, 3, 1)), preset.replace(max_grade=5000)):
            support = home.supports(flavor)
            if support:
                assert parameters(flavor), name
                assert support.reason is support.fix is None
            else:
                with pytest.raises(
                    ValueError, match="^" + re.escape(f"{support.reason} {support.fix}") + "$"
                ) as refusal:
                    parameters(flavor)
                assert str(pickle.loads(pickle.dumps(refusal.value))) == str(refusal.value)
                while not (answer := home.supports(flavor)):  # each fix leads to the next refusal
                    flavor = eval(re.search(r"flavor\.replace\(.*?\)", answer.fix)[0].replace("...", "4"))
                assert parameters(str(flavor)) == parameters(flavor)
            answers.add(bool(support))
    assert answers == {True, False}


@pytest.mark.parametrize("name", ["lightgbm_params", "xgboost_params", "catboost_params", "supports"])
def test_a_flavor_says_where_the_parameters_of_libraries_are(name):
    with pytest.raises(AttributeError, match=rf"has no attribute '{name}'\. Use {name}\(flavor\) of ") as error:
        getattr(Flavor(), name)
    for home in re.findall(r"ndcg_ml\.(\w+)", str(error.value)):
        assert callable(getattr(getattr(ndcg_ml, home), name))


def same_number(number: float) -> float:
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
        ({"gain": same_number}, "gain", "gain(y) = <same_number>(y), a callable"),
        ({"gain": (0, 1, 3)}, "gain", "gain(y) = table 0|1|3, by grade"),
        ({"gain": (0, 1), "off_table": "zero"}, "gain", "gain(y) = table 0|1, by grade; a grade beyond it has gain 0"),
        ({"max_grade": 2.5}, "gain", "gain(y) = y; a label above 2.5 is an error"),
        ({"discount": same_number}, "discount", "D(r) = <same_number>(r), a callable"),
        ({"discount": "jarvelin"}, "discount", "D(r) = 1 for r < 2, otherwise 1 / log2(r)"),
        ({"short_lists": "zero"}, "discount", "D(r) = 1 / log2(r + 1); a query with fewer than k documents has DCG 0"),
        (
            {"short_lists": "zero", "k": 4},
            "discount",
            "D(r) = 1 / log2(r + 1); D(r) = 0 for r > 4; a query with fewer than 4 documents has DCG 0",
        ),
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


class Named:
    """A callable that is not a function."""

    def __call__(self, number: float) -> float:
        return number


def test_the_text_of_a_flavor_omits_these_defaults() -> None:
    assert str(Flavor()) == "ndcg[gain=linear,discount=log2,ideal=global,ties=average,empty=0]"
    assert str(Flavor(max_grade=4, gain=(0, 0.5))) == (
        "ndcg[gain=0|0.5,discount=log2,ideal=global,ties=average,empty=0,max_grade=4]"
    )
    for number, text in ((999999999999999.0, "999999999999999"), (1e15, "1000000000000000.0")):
        assert str(Flavor(max_grade=number)).endswith(f",max_grade={text}]")
    assert dataclasses.asdict(Flavor()) == {
        "gain": "linear", "off_table": "raise", "discount": "log2", "ideal": "global", "ideal_depth": "k",
        "recall_depth": None, "max_grade": None, "k": None, "short_lists": "score", "ties": "average", "empty": 0.0,
        "aggregate": "macro", "negative": "raise", "unjudged": "raise", "score_dtype": "float64", "duplicates": "raise",
    }  # fmt: skip


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


def test_there_is_no_negative_zero() -> None:
    assert repr(Flavor(gain=(-0.0, 1), max_grade=-0.0)) == "Flavor(gain=(0.0, 1.0), max_grade=0.0)"
    assert math.copysign(1, float(Flavor(empty=-0.0).empty)) == 1


@pytest.mark.parametrize("grade", [0, 1])
def test_every_grade_of_a_gain_table_may_be_the_top(grade: int) -> None:
    flavor = Flavor(ideal="max", gain=(2, 3), max_grade=grade, k=1)
    assert evaluate([0.0], [1], group=[1], flavor=flavor).per_query.idcg.tolist() == [2.0 + grade]
    assert Flavor(ideal="max", gain=(2,), max_grade=0).max_grade == 0


def test_signatures_show_the_switches_and_the_flavors_own_cut_off():
    assert list(inspect.signature(Flavor).parameters) == list(Flavor.__dataclass_fields__)
    signature = inspect.signature(ndcg_score)
    assert "k: 'KSpec' = the flavor's own, qid" in str(signature)
    assert list(signature.parameters)[-1] == "query_weight"
    bound = signature.bind([[1, 0]], [[1, 2]])
    bound.apply_defaults()  # the default that is shown may be passed
    assert ndcg_score(*bound.args, **bound.kwargs) == ndcg_score([[1, 0]], [[1, 2]], k=...)
