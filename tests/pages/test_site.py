"""The built site: its reference, its pages and the explorer in a browser; reports in a browser fit and load nothing.

``python tests/pages/test_site.py --write`` writes docs/explorer/examples.json again.
"""

import ast
import base64
import functools
import hashlib
import http.server
import importlib.util
import inspect
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1] / "support")]

import numpy as np
import pytest
from printed import documented

import ndcg_ml
from ndcg_ml import PRESETS, Flavor, compare, evaluate, ndcg_score

ROOT = Path(__file__).parents[2]
MODULES = ("sklearn", "torch", "torch.losses", "lightgbm", "xgboost", "catboost")
PAGES = ("", "flavors/", "flavors/lightgbm/", "explorer/", "api/score/", "losses/", "notebooks/03_rosetta/")


# The guide that the search must show first, before pages of presets and of records.
GUIDES = {
    "install": "install",
    "torch early stopping": "training",
    "lightning": "training",
    "pytorch loss": "losses",
    "lightgbm ranker gridsearch": "sklearn",
    "xgboost custom metric": "boosting",
    "confidence interval": "deciding",
    "ci gate": "gate",
    "unjudged documents": "unjudged",
    "recommender": "full_catalogue",
    "trec_eval": "coming_from",
    "optuna": "recipes",
}


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for module in ("mkdocs", "hatchling"):
        pytest.importorskip(module, reason="the site is built with the extra [docs]")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-f", str(ROOT / "mkdocs.yml"), "-d", folder]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=quiet, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """Serve the site, and return its address."""
    handler = functools.partial(QuietHandler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="a browser is driven with the extra [docs]")
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if not path:
        pytest.skip("no chromium on this machine")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        )
        yield browser
        browser.close()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("module", ["ndcg_ml", *(f"ndcg_ml.{module}" for module in MODULES)])
def test_every_public_name_is_in_the_reference_once(module):
    pytest.importorskip(f"{module}.numpy".split(".")[1])  # the core needs NumPy alone
    names = {f"{module}.{name}" for name in importlib.import_module(module).__all__}
    if module == "ndcg_ml.torch":  # the losses have a page of their own
        names -= {f"{module}.{name}" for name in importlib.import_module("ndcg_ml.torch.losses").__all__}
    assert sorted(names) == sorted(name for name in documented() if name.rpartition(".")[0] == module)


# Types of members that are for the package itself, and of Matplotlib and of dictionaries, which have the same names.
UNLISTED = {"ExactSums", "Queries", "Scored", "Totals", "UnjudgedDocuments", "Axes", "Judgements"}


@pytest.mark.needs("sklearn", "torch", "lightgbm", "xgboost", "catboost")
def test_types_that_results_have_and_errors_that_docstrings_name_are_in_the_reference():
    listed = [name for name in documented() if name.split(".")[1] not in ("dask", "ray", "spark")]
    modules = {name.rpartition(".")[0]: importlib.import_module(name.rpartition(".")[0]) for name in listed}
    ours = [module for name, module in sys.modules.items() if name.startswith("ndcg_ml")]
    classes = {each for module in ours for each in vars(module).values() if inspect.isclass(each)}
    known = {each.__name__ for each in classes if each.__module__.startswith("ndcg_ml")}
    said = set()
    for module, _, name in (name.rpartition(".") for name in listed):
        public = getattr(modules[module], name)
        members = [each for key, each in vars(public).items() if key[0] != "_"] if inspect.isclass(public) else []
        for each in (public, *members):
            each = getattr(each, "fget", None) or getattr(each, "__func__", each)
            types = getattr(each, "__annotations__", {})
            types = types if inspect.isclass(each) else {"return": types.get("return", "")}
            types = {key: kind for key, kind in types.items() if key[0] != "_"}
            said |= set(re.findall(r"\b[A-Z]\w+", " ".join(map(str, types.values()))))
            said |= set(re.findall(r"^(\w+Error)$", inspect.getdoc(each) or "", re.MULTILINE))
    assert (said & known) - {name.rpartition(".")[2] for name in documented()} - UNLISTED == set()


@pytest.mark.needs("sklearn", "torch", "lightgbm", "xgboost", "catboost")
def test_defaults_are_those_of_the_documentation():
    given, written = {}, {}
    for module in map(importlib.import_module, ["ndcg_ml", *(f"ndcg_ml.{name}" for name in MODULES)]):
        public = [getattr(module, name) for name in module.__all__]
        classes = [each for each in public if inspect.isclass(each) and not issubclass(each, Exception)]
        members = [part for each in classes for name, part in vars(each).items() if name[0] != "_"]
        functions = [getattr(each, "__func__", each) for each in (*public, *members)]
        for function in [*classes, *filter(inspect.isfunction, functions)]:
            name, doc = function.__qualname__, inspect.getdoc(function) or ""
            given |= {(name, each.name): each.default for each in inspect.signature(function).parameters.values()}
            found = re.findall(r"^(\w+) : .*, default ([^a-z].*)$", doc, re.MULTILINE)
            written |= {(name, parameter): ast.literal_eval(value) for parameter, value in found}
    assert len(written) > 80
    assert {key: given[key] for key in written} == written
    # Others say "as for" one of these.
    usual = {name: {repr(value) for (_, other), value in written.items() if other == name} for _, name in written}
    simple = {key: value for key, value in given.items() if isinstance(value, (bool, int, float, str))}
    assert not {key: value for key, value in simple.items() if repr(value) not in usual.get(key[1], repr(value))}


def test_the_change_log_and_the_citation_have_this_version() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    headings = [line for line in lines if line.startswith("## ") and line != "## [Unreleased]"]
    assert headings[0].startswith(f"## [{ndcg_ml.__version__}]")  # the release workflow looks for this heading
    said = re.search(r"(\d+) presets", "\n".join(lines))
    assert said
    assert int(said[1]) == len(PRESETS)
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", cited, re.MULTILINE)[1] == ndcg_ml.__version__
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    author = re.search(r'authors = \[\{ name = "(.+)" \}\]', project)[1]
    assert f"  - name: {author}\n" in cited


def test_the_address_of_the_project_is_in_all_places_or_a_placeholder_in_none() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    url = re.search(r'^Repository = "(.+)"$', project, re.MULTILINE)[1]
    lines = {
        "README.md": f"[![tests]({url}/actions/workflows/tests.yml/badge.svg)]({url}/actions/workflows/tests.yml)\n\n",
        "CITATION.cff": f"repository-code: {url}\n",
        "SECURITY.md": f"]({url}/security/advisories/new)",
    }
    for name, line in lines.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        assert (line in text, ".invalid" in text) == (".invalid" not in url, False), f"{name} must have: {line}"


@pytest.mark.long
def test_the_site_builds_without_a_warning_and_llms_txt_lists_every_page(site: Path) -> None:
    text = (site / "llms.txt").read_text(encoding="utf-8")
    listed = {posixpath.dirname(urlsplit(link).path).strip("/") for link in re.findall(r"\((http\S+)\)", text)}
    pages = {page.parent.relative_to(site).as_posix().strip(".") for page in site.rglob("index.html")}
    assert listed == pages
    assert len(pages) > len(PRESETS) + 20


@pytest.mark.long
def test_notebooks_link_to_pages_and_name_their_pictures(site: Path) -> None:
    pages = [page.read_text(encoding="utf-8") for page in (site / "notebooks").glob("*/index.html")]
    assert len(pages) == len([*(ROOT / "notebooks").glob("*.ipynb")])
    for text in pages:
        assert "data:image/png" in text
        assert "No description has been provided" not in text
        assert not re.findall(r'href="[^"]*\.(?:ipynb|md)"', text)


@pytest.mark.long
def test_the_explorer_has_a_wheel_of_this_package(site: Path) -> None:
    (wheel,) = (site / "explorer").glob("*.whl")
    assert wheel.name == f"ndcg_ml-{ndcg_ml.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        kernel = "ndcg_ml/_core/numpy_kernel.py"
        assert archive.read(kernel) == (ROOT / kernel).read_bytes()
        assert b"Root-Is-Purelib: true" in archive.read(f"ndcg_ml-{ndcg_ml.__version__}.dist-info/WHEEL")


@pytest.mark.long
def test_no_page_asks_another_host_for_anything(site: Path) -> None:
    asked = re.compile(r"<(?:script|img|link)[^>]*\b(?:src|href)=\"?(https?:)?//(?!localhost)[^\">]*")
    for page in site.rglob("*.html"):
        found = [match[0] for match in asked.finditer(page.read_text(encoding="utf-8"))]
        assert not found, (page.relative_to(site), found[:3])


@pytest.mark.long
def test_signatures_say_their_types_and_defaults(site: Path) -> None:
    """A function has one signature, of a line per parameter; no name of an alias is left."""
    signatures, lines = {}, []
    for page in (site / "api").glob("*/index.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"\b(KSpec|OneK|ByK|EllipsisType)\b", text), page
        for block in re.findall(r'<div class="[^"]*doc-signature.*?</div>', text, re.DOTALL):
            lines += unescape(re.sub(r"<[^>]+>", "", block)).split("\n")
            words = " ".join(unescape(re.sub(r"<[^>]+>", "", block)).split())
            signatures.setdefault(words.partition("(")[0], []).append(words)
    assert max(map(len, lines)) <= 100, max(lines, key=len)
    for name in ("ndcg_score", "dcg_score", "evaluate_ranked", "evaluate_run", "evaluate_topk", "prepare"):
        [signature] = signatures[name]
        assert "k: int | None | Sequence[int | None] = ..." in signature, signature
        assert "Any" not in signature.rpartition("->")[2], signature
        assert "unknown" not in signature, signature
    assert 'flavor: Flavor | str = "sklearn"' in signatures["ndcg_score"][0]
    assert signatures["ndcg_score"][0].endswith("-> float | dict[int | None, float]")


@pytest.mark.long
def test_pages_fit_a_phone(chromium: Any, address: str) -> None:
    view = chromium.new_page(viewport={"width": 390, "height": 900})
    wrong: list[str] = []
    view.on("pageerror", lambda error: wrong.append(str(error)))
    view.on("requestfailed", lambda request: wrong.append(request.url))
    for page in PAGES:
        view.goto(f"{address}{page}")
        view.wait_for_load_state("networkidle")  # a request that the next page interrupts fails
        assert view.evaluate("document.documentElement.scrollWidth") <= 390, page
    view.close()
    assert not wrong


@pytest.mark.long
def test_the_search_finds_the_guide(chromium: Any, address: str) -> None:
    view = chromium.new_page(viewport={"width": 1280, "height": 800})
    found = {}
    for query in GUIDES:
        view.goto(f"{address}?q={query.replace(' ', '+')}")
        view.wait_for_selector(".md-search-result__item a")
        found[query] = urlsplit(view.get_attribute(".md-search-result__item a", "href")).path.strip("/")
    view.close()
    assert found == GUIDES


# -- reports ----------------------------------------------------------------------------------------------------------

HOSTILE = "<script>document.title = 'taken'</script><img src=http://localhost/x onerror=alert(1)>" + "x" * 90


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    for module in ("jinja2", "matplotlib"):
        pytest.importorskip(module, reason="a report needs the extra [report]")
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, (400, 12))
    qid = np.repeat(np.array([*(f"a query of many words {i}" for i in range(399)), HOSTILE], dtype=object), 12)
    by = {"a column of a long name": np.repeat(rng.integers(0, 8, 400), 12)}
    systems = [
        evaluate(labels.ravel(), (labels + rng.normal(0, noise, labels.shape)).ravel(), qid=qid, by=by, k=10)
        for noise in (2.0, 1.5, 1.0)
    ]
    names = ["a very long name of a system", "another name that is as long", HOSTILE]
    pages = {
        "evaluation": systems[0].to_html(command="evaluate(" + "x" * 500 + ")"),
        "two": compare(*systems[1:], names=names[1:], seed=0).to_html(title=HOSTILE),
        "three": compare(*systems, names=names, seed=0).to_html(),
        "slices": compare(*systems, names=names, by={"kind": ["navigational", "other"] * 200}, seed=0).to_html(top=3),
    }
    folder = tmp_path_factory.mktemp("reports")
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return sorted(folder.iterdir())


# Words of up to 24 letters that are on two lines, except a row of x.
BROKEN_WORDS = """
(() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  const found = [], range = document.createRange()
  while (walker.nextNode())
    for (const { index, 0: word } of walker.currentNode.data.matchAll(/[A-Za-z_]{2,24}(?![A-Za-z_])/g)) {
      range.setStart(walker.currentNode, index), range.setEnd(walker.currentNode, index + word.length)
      const lines = new Set([...range.getClientRects()].map(line => Math.round(line.top)))
      if (lines.size > 1 && !/^x+$/.test(word)) found.push(word)
    }
  return found
})()
"""


@pytest.mark.long
@pytest.mark.parametrize("width", [1280, 1000, 390], ids=["desktop", "window", "phone"])
def test_reports_fit_and_load_nothing(reports, chromium, width):
    for file in reports:
        view = chromium.new_page(viewport={"width": width, "height": 900})
        asked, said = [], []
        view.on("request", lambda request, asked=asked: asked.append(request.url))
        view.on("console", lambda message, said=said: said.append(message.text))
        view.on("pageerror", lambda error, said=said: said.append(str(error)))
        view.on("dialog", lambda dialog, said=said: (said.append(dialog.message), dialog.dismiss()))
        view.goto(file.as_uri())
        view.wait_for_load_state("load")
        assert [url for url in asked if not url.startswith("data:,")] == [file.as_uri()]
        assert said == []
        assert view.title() != "taken"
        assert view.locator("figure svg").count() == 1
        assert view.evaluate("document.documentElement.scrollWidth") <= width, file.name
        cut_off = "[...document.querySelectorAll('section, div, figure')].filter(e => e.scrollWidth > e.clientWidth)"
        assert view.evaluate(f"{cut_off}.map(e => e.innerText.slice(0, 200))") == [], file.name
        assert width > 390 or view.evaluate(BROKEN_WORDS) == [], file.name
        view.close()


FOLDER = ROOT / "docs" / "explorer"
EXAMPLES = FOLDER / "examples.json"
SPEC = importlib.util.spec_from_file_location("explorer_bridge", FOLDER / "bridge.py")
bridge = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(bridge)

# -- the examples of the explorer -------------------------------------------------------------------------------------


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


# -- the explorer in a browser ----------------------------------------------------------------------------------------

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
