"""``ndcg-ml flavors``: every preset, and one flavor in words and as JSON."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("click")


from command_line import document, text

from ndcg_ml import PRESETS, Flavor
from ndcg_ml.presets import MIRRORS

pytestmark = pytest.mark.usefixtures("files")


def test_flavors_has_one_line_a_preset_in_a_pipe():
    heading, *lines = text("flavors").splitlines()
    assert heading.split() == ["flavor", "library", "unusual"]
    assert [line.split()[0] for line in lines] == list(PRESETS)
    for line, mirror in zip(lines, MIRRORS.values(), strict=True):
        assert len(line) <= 100
        _, library, unusual = re.split(r"  +", line)
        assert mirror.library.startswith(library)
        assert mirror.unusual.startswith(unusual.removesuffix(" ..."))


def test_flavors_as_json_are_the_presets():
    listed = document("flavors")["flavors"]
    assert {each["name"]: Flavor.parse(each["text"]) for each in listed} == dict(PRESETS)
    for each in listed:
        gain = each["switches"].pop("gain")
        assert Flavor(gain=tuple(gain) if isinstance(gain, list) else gain, **each["switches"]) == PRESETS[each["name"]]
        mirror = MIRRORS[each["name"]]
        assert [each[key] for key in ("library", "verified", "unusual")] == [
            mirror.library,
            mirror.verified,
            mirror.unusual,
        ]


@pytest.mark.parametrize(
    ("name", "mirror", "same"),
    [
        ("ir_measures@10", "ir_measures", {"trec_eval", "pytrec_eval"}),  # not the first of the presets that are equal
        ("lightgbm@10[gain=linear]", "lightgbm_linear", set()),
        ("lightgbm@10[ties=average,empty=nan]", None, set()),
    ],
)
def test_one_flavor(name, mirror, same):
    result = document("flavors", name)
    assert result["name"] == mirror
    assert result["library"] == (mirror and MIRRORS[mirror].library)
    assert set(result["same_as"]) >= same
    assert mirror not in result["same_as"]
    assert Flavor.parse(result["text"]) == Flavor.parse(name)
    shown = text("flavors", name)
    assert shown.endswith(f"{Flavor.parse(name).describe()}\n")
    assert mirror is None or MIRRORS[mirror].library in shown


def test_an_alias_says_whose_it_is():
    assert document("flavors", "mteb")["alias_of"] == "pytrec_eval"
    assert document("flavors", "pytrec_eval")["alias_of"] is None
