"""The reference of the site has every public name, and the site builds without a warning and fits a screen."""

from __future__ import annotations

import posixpath
import re
import zipfile
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from printed import documented

import ndcg_ml
from ndcg_ml import PRESETS

ROOT = Path(__file__).parents[2]
MODULES = ("sklearn", "torch", "torch.losses", "lightgbm", "xgboost", "catboost")
PAGES = ("", "flavors/", "flavors/lightgbm/", "explorer/", "api/score/", "losses/", "notebooks/03_rosetta/")


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
        assert (
            archive.read("ndcg_ml/_core/numpy_kernel.py")
            == (ROOT / "ndcg_ml" / "_core" / "numpy_kernel.py").read_bytes()
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
