"""The site: every public name has a place in its reference, it builds without a warning, and it fits a screen."""

from __future__ import annotations

import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import ndcg_ml

ROOT = Path(__file__).parents[2]
API = ROOT / "docs" / "api"
MODULES = ("sklearn", "torch", "torch.losses", "lightgbm", "xgboost", "catboost")
PAGES = ("", "flavors/", "api/score/", "losses/", "notebooks/03_rosetta/")


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


takes_a_build = pytest.mark.long


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="the site is built with the extra [docs]")
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "-q",
        "-f",
        str(ROOT / "mkdocs.yml"),
        "-d",
        str(folder),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


@takes_a_build
def test_the_site_builds_without_a_warning(site):
    assert (site / "index.html").exists()
    text = (site / "llms.txt").read_text()
    assert "# ndcg_ml" in text
    assert (site / "losses" / "index.md").exists()  # each page as plain Markdown


@takes_a_build
def test_no_page_asks_another_host_for_anything(site):
    asked = re.compile(r"<(?:script|img|link)[^>]*\b(?:src|href)=\"?(https?:)?//(?!localhost)[^\">]*")
    for page in site.rglob("*.html"):
        found = [match[0] for match in asked.finditer(page.read_text(encoding="utf-8"))]
        assert not found, (page.relative_to(site), found[:3])


@takes_a_build
@pytest.mark.parametrize("width", [1280, 390], ids=["desktop", "phone"])
def test_pages_fit_the_screen(site, width):
    playwright = pytest.importorskip("playwright.sync_api", reason="a browser is driven with the extra [docs]")
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        pytest.skip("no chromium on this machine")
    handler = functools.partial(QuietHandler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, playwright.sync_playwright() as driver:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        chromium = driver.chromium.launch(
            executable_path=browser, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        )
        view = chromium.new_page(viewport={"width": width, "height": 900})
        wrong: list[str] = []
        view.on("pageerror", lambda error: wrong.append(str(error)))
        view.on("requestfailed", lambda request: wrong.append(request.url))
        for page in PAGES:
            view.goto(f"http://127.0.0.1:{server.server_port}/{page}")
            view.wait_for_load_state("load")
            assert view.locator("h1").count() >= 1, page
            assert view.evaluate("document.documentElement.scrollWidth") <= width, page
        chromium.close()
        server.shutdown()
    assert not wrong


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass
