"""The explorer page: its examples are current, its bridge answers, and the whole page works in a browser.

``python tests/pages/test_explorer_page.py --write`` writes docs/explorer/examples.json again.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from ndcg_ml import PRESETS, Flavor, ndcg_score

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "explorer"
EXAMPLES = FOLDER / "examples.json"


def _bridge() -> Any:
    spec = importlib.util.spec_from_file_location("explorer_bridge", FOLDER / "bridge.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


bridge = _bridge()


# -- the examples -----------------------------------------------------------------------------------------------------


def rows(text: str) -> list[dict[str, Any]]:
    """Parse a row per line: query, document, label, score (``-`` is blank), and ``no`` if it was not retrieved."""
    cells = [["" if cell == "-" else cell for cell in line.split()] for line in text.strip().splitlines()]
    return [
        {"query": q, "doc": d, "label": label, "score": score, "retrieved": not rest}
        for q, d, label, score, *rest in cells
    ]


# Title, text, rows, k and flavor.
STORIES = [
    dict(zip(("title", "text", "rows", "k", "flavor"), story, strict=True))
    for story in (
        ("Tied scores", "Three documents share the top score. Is the best of them ranked first, last or in between?",
            rows("a d1 0 2\na d2 3 2\na d3 1 2\na d4 2 1\na d5 0 0"), "3", "sklearn"),
        ("A query without relevant documents",
            "Query c has no relevant document. It scores 0 or 1, or is excluded from the mean.",
            rows("a d1 1 3\na d2 0 2\na d3 2 1\nb d1 0 3\nb d2 1 2\nb d3 0 1\nc d1 0 3\nc d2 0 2\nc d3 0 1"),
            "3", "lightgbm"),
        ("Large grades",
            "The best document is third. With the gain 2^y - 1, grade 6 has 63 times the gain of grade 1.",
            rows("a d1 4 5\na d2 2 4\na d3 6 3\na d4 1 2\na d5 0 1"), "5", "lightgbm"),
        ("Few documents and no cut-off",
            "Query a has 12 documents with the best ones last. Query b has 2. Some libraries silently use k = 10.",
            rows("\n".join(f"a - {grade} {12 - at}" for at, grade in enumerate("002000000021")) + "\nb - 0 2\nb - 1 1"),
            "", "recommenders_raw"),
        ("Relevant but not retrieved",
            "The best document was judged but never retrieved. Is it in the ideal ranking?",
            rows("a d1 1 4\na d2 0 3\na d3 2 2\na d4 3 0 no\nb d1 2 4\nb d2 0 3\nb d3 1 0 no"), "3", "trec_eval"),
        ("Documents without a label",
            "d2 and d4 are unjudged. They have gain 0 or are removed, or the library raises an error.",
            rows("a d1 1 5\na d2 - 4\na d3 3 3\na d4 - 2\na d5 0 1"), "5", "ranx"),
    )
]  # fmt: skip


def examples() -> dict[str, Any]:
    return {**bridge.about(), "examples": [example(story) for story in STORIES]}


def example(story: dict[str, Any]) -> dict[str, Any]:
    """A story, and what the page shows for it before Python is loaded."""
    found = ask("numbers", **story)
    value = f"{found['flavor']['value']:.4f}"
    return {**story, "value": value, "numbers": found, "identified": ask("identify", value=value, **story)}


def ask(do: str, **request: Any) -> dict[str, Any]:
    return json.loads(bridge.answer(json.dumps({"do": do, **request})))


def written() -> str:
    return json.dumps(examples(), indent=1) + "\n"


# -- the bridge -------------------------------------------------------------------------------------------------------


def test_the_examples_are_current() -> None:
    assert EXAMPLES.read_text(encoding="utf-8") == written()


def test_every_preset_has_a_number_or_an_error() -> None:
    story = STORIES[0]
    found = ask("numbers", **story)
    listed = [name for part in (*found["groups"], *found["refused"]) for name in part["presets"]]
    assert sorted(listed) == sorted(PRESETS)
    for group in found["groups"]:
        for name in group["presets"]:
            ids = [f"d{i}" for i in range(1, 6)]
            value = ndcg_score([0, 3, 1, 2, 0], [2, 2, 2, 1, 0], qid=[*"aaaaa"], doc_id=ids, flavor=name, k=3)
            assert value == pytest.approx(group["value"], abs=2e-12), name
    assert [group["value"] for group in found["groups"]] == sorted((g["value"] for g in found["groups"]), reverse=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": rows("a d1 x 1\na d2 1 2")}, "y_true must hold real numbers"),
        ({"rows": []}, "qid must hold at least one row"),
        ({"k": "ten"}, "k must be"),
        ({"flavor": "lightgmb"}, "Did you mean 'lightgbm'?"),
    ],
)
def test_errors_are_those_of_ndcg_ml(change: dict[str, Any], message: str) -> None:
    found = ask("numbers", **{"rows": rows("a d1 1 2\na d2 0 1"), "k": "", "flavor": "sklearn", **change})
    assert message in found.get("error", "") + found.get("flavor", {}).get("error", "") + str(found.get("refused"))


def test_the_page_offers_every_switch_and_all_its_values() -> None:
    about = bridge.about()
    assert set(about["switches"]) | {"k", "max_grade", "recall_depth"} == set(Flavor.__dataclass_fields__)
    for name, words in about["switches"].items():
        start = "sklearn" if name != "off_table" else "mslr"
        for word in words:
            text = f"{start}[{name}={word}]" if word != "max" else f"{start}[ideal=max,max_grade=4]"
            assert bridge._switch(Flavor.parse(text), name) == word


# -- the page in a browser --------------------------------------------------------------------------------------------

# Replaces the explorer's worker, not that of the theme's search: it calls the bridge in this process.
INSTEAD = """
((Real, Other) => {
  window.Worker = function (url, options) {
    return String(url).endsWith("/explorer/worker.js") ? new Other() : new Real(url, options);
  };
})(window.Worker, class {
  terminate() {}
  postMessage(data) {
    const send = (reply) => this.onmessage({data: reply});
    %s
  }
});
"""
STUB = (
    INSTEAD
    % """
    if (data.start) setTimeout(() => { window.started = data; send({stage: "NumPy"}); send({ready: true}); });
    else window.python(data.request).then((answer) => send({id: data.id, answer}));
"""
)
HELD = (
    INSTEAD
    % """
    if (data.start) setTimeout(() => send({ready: true}));
    else window.python(data.request).then(
        (answer) => (window.held ??= []).push(() => send({id: data.id, answer})));
"""
)


class Page:
    """The explorer in a browser, with its errors and its requests to the bridge and to other hosts."""

    def __init__(self, context: Any, address: str, worker: str | None) -> None:
        self.wrong: list[str] = []
        self.elsewhere: list[str] = []
        self.requests: list[dict[str, Any]] = []
        self.view = context.new_page()
        self.view.set_default_timeout(20_000)
        self.view.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.view.on(
            "request", lambda request: request.url.startswith((address, "blob:")) or self.elsewhere.append(request.url)
        )
        self.view.expose_function("python", self.answer)
        if worker is not None:
            self.view.add_init_script(worker)
        self.view.goto(f"{address}explorer/")
        self.view.wait_for_selector("[data-part=numbers] table")

    def answer(self, request: str) -> str:
        self.requests.append(json.loads(request))
        return bridge.answer(request)

    def text(self, part: str) -> str:
        return self.view.locator(f"[data-part={part}]").inner_text()

    def settle(self) -> None:
        """Wait until the page shows the results of its fields."""
        self.view.wait_for_function(
            "document.querySelector('[data-part=numbers]').ariaBusy === 'false'", timeout=120_000
        )

    def mine(self) -> str:
        return self.view.locator(".explorer-value strong").inner_text()


@pytest.fixture
def open_page(chromium: Any, address: str) -> Any:
    pages = []

    def opened(worker: str | None = STUB, width: int = 1280, policy: bool = False) -> Page:
        # The driver waits with eval, which the policy blocks.
        context = chromium.new_context(viewport={"width": width, "height": 900}, bypass_csp=not policy)
        pages.append(Page(context, address, worker))
        return pages[-1]

    yield opened
    for page in pages:
        page.view.context.close()
        assert not page.wrong


@pytest.mark.long
def test_the_examples_need_no_python(open_page: Any) -> None:
    page = open_page()
    for story, shown in zip(STORIES, json.loads(EXAMPLES.read_text())["examples"], strict=True):
        page.view.get_by_role("button", name=story["title"], exact=True).click()
        assert page.mine() == f"{shown['numbers']['flavor']['value']:.6f}"
        assert page.view.locator(".explorer-groups tr").count() == len(shown["numbers"]["groups"])
        assert page.view.locator(".explorer-groups .explorer-mine").count() == 1
        assert shown["identified"]["headline"] in page.text("identified")
        assert page.view.locator("[data-part=rows] tr").count() == len(story["rows"])
    assert page.view.evaluate("window.started") is None
    assert not page.requests
    assert not page.elsewhere


WATCH = """
document.addEventListener("securitypolicyviolation", (event) => (window.refused ??= []).push(event.violatedDirective));
"""


@pytest.mark.long
def test_the_page_keeps_its_policy_and_the_policy_keeps_others_out(open_page: Any) -> None:
    page = open_page(STUB + WATCH, policy=True)
    assert page.view.evaluate("window.refused ?? []") == []
    added = "const it = document.createElement('script'); it.text = 'window.ran = 1'; document.head.append(it);"
    page.view.evaluate(f"() => {{ {added} }}")
    assert page.view.evaluate("window.ran") is None
    assert page.view.evaluate("fetch('https://example.org/').then(() => 'sent', () => 'refused')") == "refused"
    assert {*page.view.evaluate("window.refused")} == {"script-src-elem", "connect-src"}
    assert not page.elsewhere


@pytest.mark.long
def test_an_edit_loads_python_and_asks_it(open_page: Any) -> None:
    page = open_page()
    page.view.get_by_label("score of row 2").fill("9")
    page.settle()
    assert page.view.evaluate("window.started.wheel") == f"ndcg_ml-{bridge.about()['version']}-py3-none-any.whl"
    assert "runs in this browser" in page.text("note")
    assert page.view.get_by_role("button", name="Load Python").count() == 0
    value = ndcg_score([0, 3, 1, 2, 0], [2, 9, 2, 1, 0], qid=[*"aaaaa"], k=3)
    assert page.mine() == f"{value:.6f}"
    assert page.view.get_by_label("the number, as printed").input_value() == f"{value:.4f}"
    assert "scikit-learn" in page.text("identified")


@pytest.mark.long
def test_answers_to_earlier_edits_are_not_shown(open_page: Any) -> None:
    page = open_page(HELD)
    field = page.view.get_by_label("score of row 2")
    field.fill("9")
    page.view.wait_for_function("window.held?.length === 1")
    field.fill("0")
    page.view.wait_for_function("window.held.length === 2")
    page.view.evaluate("window.held[1]()")
    page.view.evaluate("window.held[0]()")  # the earlier question is answered last
    page.view.wait_for_function("window.held.length === 3")
    page.view.evaluate("window.held[2]()")
    page.settle()
    asked = [(each["do"], each["rows"][1]["score"]) for each in page.requests[:3]]
    assert asked == [("numbers", "9"), ("numbers", "0"), ("identify", "0")]
    value = ndcg_score([0, 3, 1, 2, 0], [2, 0, 2, 1, 0], qid=[*"aaaaa"], k=3)
    assert page.mine() == f"{value:.6f}"


@pytest.mark.long
def test_rows_switches_and_cut_offs_are_edited(open_page: Any) -> None:
    page = open_page()
    for change in (
        page.view.get_by_label("remove row 5").click,
        page.view.get_by_role("button", name="Add a row").click,
        lambda: page.view.keyboard.type("1"),  # behind the label of the new row, 0
        page.view.get_by_label("row 5 was found").uncheck,
        lambda: page.view.get_by_label("ties", exact=True).select_option("worst"),
        lambda: page.view.get_by_label("k", exact=True).fill(""),
    ):
        change()
        page.settle()
    assert page.view.get_by_label("as text").input_value() == "sklearn[ties=worst]"
    expected = {"do": "numbers", "k": "", "flavor": "sklearn[ties=worst]"}
    assert expected.items() <= page.requests[-2].items()
    assert (page.requests[-2]["rows"][4]["label"], page.requests[-2]["rows"][4]["retrieved"]) == ("01", False)


@pytest.mark.long
def test_errors_are_shown_as_they_are(open_page: Any) -> None:
    page = open_page()
    page.view.get_by_label("label of row 1", exact=True).fill("<b>x</b>")
    page.settle()
    assert "y_true must hold real numbers" in page.text("numbers") + page.text("own")
    assert page.view.locator("#ndcg-explorer b").count() == 0
    page.view.get_by_label("label of row 1", exact=True).fill("0")
    page.view.get_by_label("the number, as printed").fill("many")
    page.settle()
    assert page.view.locator("[data-part=identified] [role=alert]").inner_text().startswith("value must be")
    page.view.get_by_label("as text").fill("lightgmb")
    page.settle()
    assert "Did you mean 'lightgbm'?" in page.text("own")
    assert page.view.locator(".explorer-groups tr").count() > 5


@pytest.mark.long
def test_every_field_has_a_name_and_fits(open_page: Any) -> None:
    page = open_page(width=390)
    page.view.evaluate("for (const each of document.querySelectorAll('#ndcg-explorer details')) each.open = true")
    assert page.view.evaluate("document.documentElement.scrollWidth") <= 390
    unnamed = page.view.evaluate(
        "[...document.querySelectorAll('#ndcg-explorer :is(input, select, button)')]"
        ".filter((each) => !(each.ariaLabel || each.labels?.length || each.textContent.trim())).length"
    )
    assert unnamed == 0


# -- Pyodide itself ---------------------------------------------------------------------------------------------------

WORKER = (FOLDER / "worker.js").read_text(encoding="utf-8")
CDN = re.search(r'PYODIDE = "(.*)"', WORKER)[1]
CHECKSUMS = dict(re.findall(r'^  "(\S+)": "(\S+)",$', WORKER, re.MULTILINE))


def test_the_packages_of_pyodide_are_those_with_a_checksum() -> None:
    lock = json.loads((FOLDER / "pyodide-lock.json").read_text())
    assert f"/v{lock['info']['version']}/" in CDN
    numpy = [CDN + name for name in CHECKSUMS if "numpy" in name]
    assert [package["file_name"] for package in lock["packages"].values()] == numpy


@pytest.mark.long
def test_pyodide_itself_gives_the_numbers(open_page: Any) -> None:
    """In WebAssembly an index has 32 bits; the numbers of all examples stay the same after an edit."""
    given = os.environ.get("NDCG_ML_PYODIDE")
    if not given:
        pytest.skip(f"NDCG_ML_PYODIDE names no folder with the files of {CDN}: {', '.join(CHECKSUMS)}")
    for name, checksum in CHECKSUMS.items():
        digest = base64.b64encode(hashlib.sha384(Path(given, name).read_bytes()).digest()).decode()
        assert checksum == f"sha384-{digest}", name
    page = open_page(None)
    page.view.context.route(
        f"{CDN}*",
        lambda route: route.fulfill(
            path=Path(given, route.request.url.removeprefix(CDN)), headers={"Access-Control-Allow-Origin": "*"}
        ),
    )
    assert not page.elsewhere
    page.view.get_by_role("button", name="Load Python").click()
    page.view.wait_for_function(
        "document.querySelector('[data-part=note]').textContent.includes('runs in this browser')", timeout=120_000
    )
    for story, shown in zip(STORIES, json.loads(EXAMPLES.read_text())["examples"], strict=True):
        page.view.get_by_role("button", name=story["title"], exact=True).click()
        before = page.text("numbers"), page.text("identified"), page.mine()
        label = page.view.get_by_label("label of row 1", exact=True)
        label.fill("7")
        page.settle()
        label.fill(story["rows"][0]["label"])
        page.view.get_by_label("the number, as printed").fill(shown["value"])
        page.settle()
        assert (page.text("numbers"), page.text("identified"), page.mine()) == before, story["title"]
    assert {url.removeprefix(CDN) for url in page.elsewhere} == set(CHECKSUMS)


if __name__ == "__main__" and "--write" in sys.argv:
    EXAMPLES.write_text(written(), encoding="utf-8")
