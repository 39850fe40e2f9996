"""The site: every public name has a place in its reference, it builds without a warning, and it fits a screen."""

from __future__ import annotations

import posixpath
import re
import zipfile
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import ndcg_ml
from ndcg_ml import PRESETS, Flavor
from ndcg_ml._flavor.divergences import declared
from ndcg_ml.presets import MIRRORS

ROOT = Path(__file__).parents[2]
API = ROOT / "docs" / "api"
MODULES = ("sklearn", "torch", "torch.losses", "lightgbm", "xgboost", "catboost")
PAGES = ("", "flavors/", "flavors/lightgbm/", "explorer/", "api/score/", "losses/", "notebooks/03_rosetta/")


def documented() -> list[str]:
    return [name for page in API.glob("*.md") for name in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)]


def test_every_public_name_of_the_core_is_in_the_reference():
    core = [name for name in documented() if name.count(".") == 1]
    assert sorted(core) == sorted(f"ndcg_ml.{name}" for name in ndcg_ml.__all__)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_of_an_adapter_is_in_the_reference(module):
    pytest.importorskip(module.split(".")[0])
    names = {f"ndcg_ml.{module}.{name}" for name in __import__(f"ndcg_ml.{module}", fromlist=["_"]).__all__}
    if module == "torch":  # the losses have a page of their own
        losses = __import__("ndcg_ml.torch.losses", fromlist=["_"]).__all__
        names -= {f"ndcg_ml.torch.{name}" for name in losses}
    assert names == {name for name in documented() if name.rpartition(".")[0] == f"ndcg_ml.{module}"}


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_names_its_page(name: str) -> None:
    page = MIRRORS[name].page
    assert (ROOT / page).read_text(encoding="utf-8").startswith(f"# {name}\n")


@pytest.mark.parametrize("name", PRESETS)
def test_a_description_needs_no_page(name: str) -> None:
    """A wheel has no pages: how a preset was verified, and what it does not reproduce, stands in the words."""
    flavor = Flavor.preset(name, k=7)
    words = flavor.describe()
    assert "docs/" not in words
    mirror = MIRRORS[flavor.preset_name]  # the first of presets that coincide
    assert f"  verified   {mirror.verified}\n" in words
    assert words.count("\n  differs ") == len(declared(mirror.name))
    assert all(str(entry) in words for entry in declared(mirror.name))


def test_a_name_that_no_preset_has_leads_to_the_words() -> None:
    with pytest.raises(ValueError, match=r"Flavor\.preset\(name\)\.describe\(\) explains one\.$"):
        Flavor.preset("lightgmb")
    assert "(flavors/lightgbm.md)" in (ROOT / "docs" / "flavors.md").read_text(encoding="utf-8")


def test_the_change_log_has_this_version() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    headings = [line for line in lines if line.startswith("## ") and line != "## [Unreleased]"]
    assert headings[0].startswith(f"## [{ndcg_ml.__version__}]")  # the release workflow looks for this heading
    said = re.search(r"(\d+) presets", "\n".join(lines))
    assert said
    assert int(said[1]) == len(PRESETS)


def test_the_citation_is_of_this_version() -> None:
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", cited, re.MULTILINE)[1] == ndcg_ml.__version__
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    author = re.search(r'authors = \[\{ name = "(.+)" \}\]', project)[1]
    assert f"  - name: {author}\n" in cited


@pytest.mark.long
def test_the_site_builds_without_a_warning(site: Path) -> None:
    assert (site / "index.html").exists()
    assert (site / "losses" / "index.md").exists()  # each page as plain Markdown


@pytest.mark.long
def test_llms_txt_lists_every_page(site: Path) -> None:
    text = (site / "llms.txt").read_text(encoding="utf-8")
    assert "# ndcg_ml" in text
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
        assert (
            archive.read("ndcg_ml/_kernel/numpy_kernel.py")
            == (ROOT / "ndcg_ml" / "_kernel" / "numpy_kernel.py").read_bytes()
        )
        assert b"Root-Is-Purelib: true" in archive.read(f"ndcg_ml-{ndcg_ml.__version__}.dist-info/WHEEL")


@pytest.mark.long
def test_no_page_asks_another_host_for_anything(site: Path) -> None:
    asked = re.compile(r"<(?:script|img|link)[^>]*\b(?:src|href)=\"?(https?:)?//(?!localhost)[^\">]*")
    for page in site.rglob("*.html"):
        found = [match[0] for match in asked.finditer(page.read_text(encoding="utf-8"))]
        assert not found, (page.relative_to(site), found[:3])


@pytest.mark.long
def test_signatures_say_their_types_and_defaults(site: Path) -> None:
    """A function with overloads shows these alone, with the defaults of the function; no name of an alias is left."""
    signatures = {}
    for page in (site / "api").glob("*/index.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"\b(KSpec|OneK|ByK)\b", text), page
        for block in re.findall(r'<div class="[^"]*doc-signature.*?</div>', text, re.DOTALL):
            words = " ".join(unescape(re.sub(r"<[^>]+>", "", block)).split())
            signatures.setdefault(words.partition("(")[0], []).append(words)
    for name in ("ndcg_score", "dcg_score", "evaluate_ranked", "evaluate_run", "evaluate_topk", "prepare"):
        one, several = signatures[name]
        assert "k: int | None = ..." in one, one
        assert "k: Sequence[int | None]," in several, several
        assert "None = ..." not in one.replace("k: int | None = ...", ""), one
        assert "Any" not in one.rpartition("->")[2], one
    assert 'flavor: Flavor | str = "sklearn"' in signatures["ndcg_score"][0]
    assert signatures["ndcg_score"][1].endswith("-> dict[int | None, float]")


class Anchors(HTMLParser):
    """The places of a page that a link can name, and where its own links lead."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" or (name == "name" and tag == "a"):
                self.places.add(value or "")
            elif name in ("href", "src") and tag != "base":
                self.links.append(value or "")


@pytest.mark.long
def test_every_link_leads_somewhere(site: Path) -> None:
    pages = {page: Anchors(page) for page in site.rglob("*.html") if page.name != "404.html"}
    broken = []
    for page, anchors in pages.items():
        for link in anchors.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            place = unquote(parts.fragment)
            known = pages[target].places if target in pages else None
            if not target.is_file() or (
                place and known is not None and place not in known and not place.startswith("__")
            ):
                broken.append((page.relative_to(site).as_posix(), link))
    assert not broken, broken[:10]


@pytest.mark.parametrize("width", [1280, 390], ids=["desktop", "phone"])
@pytest.mark.long
def test_pages_fit_the_screen(chromium: Any, address: str, width: int) -> None:
    view = chromium.new_page(viewport={"width": width, "height": 900})
    wrong: list[str] = []
    view.on("pageerror", lambda error: wrong.append(str(error)))
    view.on("requestfailed", lambda request: wrong.append(request.url))
    view.on("request", lambda request: request.url.startswith(address) or wrong.append(request.url))
    for page in PAGES:
        view.goto(f"{address}{page}")
        view.wait_for_load_state("load")
        assert view.locator("h1").count() >= 1, page
        assert view.evaluate("document.documentElement.scrollWidth") <= width, page
    view.close()
    assert not wrong


@pytest.mark.long
def test_the_table_of_presets_shows_that_it_scrolls(chromium: Any, address: str) -> None:
    view = chromium.new_page(viewport={"width": 390, "height": 900})
    view.goto(f"{address}flavors/")
    wrap = view.locator(".wide .md-typeset__scrollwrap").first
    assert wrap.evaluate("each => each.scrollWidth > each.clientWidth")
    # The shadow at the side is behind the table, which must not cover it.
    assert "linear-gradient" in wrap.evaluate("each => getComputedStyle(each).backgroundImage")
    seen = "each => getComputedStyle(each).backgroundColor"
    assert wrap.locator("table").evaluate(seen) == "rgba(0, 0, 0, 0)"
    assert {
        *wrap.locator("td:nth-child(4)").evaluate_all("all => all.map(each => getComputedStyle(each).whiteSpace)")
    } == {"nowrap"}
    view.close()


@pytest.mark.long
def test_commands_fit_their_column_and_drawings_suit_the_dark_theme(chromium: Any, address: str) -> None:
    view = chromium.new_page(viewport={"width": 1280, "height": 900}, color_scheme="dark")
    view.goto(address)
    beyond = "all => all.filter(each => each.scrollWidth > each.clientWidth).map(each => each.textContent)"
    assert view.locator("pre > code").evaluate_all(beyond) == []
    for page in ("", "notebooks/03_rosetta/"):
        view.goto(f"{address}{page}")
        drawings = view.locator("article img")
        assert drawings.count() > 0
        assert all(
            "invert" in each for each in drawings.evaluate_all("all => all.map(each => getComputedStyle(each).filter)")
        )
    view.close()
