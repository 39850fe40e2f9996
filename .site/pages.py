"""Hooks of MkDocs: pages from outside docs/, pages of the presets, and the wheel of the explorer.

The README is the home page. The change log, the notebooks and the recorded results keep their paths. Links are
written for the repository, and rewritten for the site.
"""

from __future__ import annotations

import base64
import hashlib
import json
import posixpath
import re
import subprocess
import sys
import tomllib
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from preset_pages import preset_page

from ndcg_ml import PRESETS

ROOT = Path(__file__).resolve().parents[1]

# Files outside docs/ that become pages, with the same path or another.
SAME_PATH = ("CHANGELOG.md", "CONTRIBUTING.md", "*/results/*.md", "notebooks/*.ipynb")
PAGES = {str(path.relative_to(ROOT)): str(path.relative_to(ROOT)) for glob in SAME_PATH for path in ROOT.glob(glob)}
PAGES["README.md"] = "index.md"

# The addresses of the project; the site has no link to a placeholder.
URLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]

# The folder of the pages of the presets, which mkdocs.yml names, and the first letters of each group of them.
_PRESETS = "flavors/"
_GROUPS = ("ac", "df", "gl", "mo", "pr", "sz")

# The converter of notebooks gives every picture this description.
_NO_WORDS = "No description has been provided for this image"

# The weight in the search of pages whose path begins so: guides, which have 4, before presets, before records.
_WEIGHTS = {"api/": 1, "notebooks/": 1, _PRESETS: 0.1, "benchmarks/": 0.05, "reliability/": 0.05, "C": 0.05}

_LINK = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)\s]*)?\))")


def on_config(config: Any, **_: Any) -> Any:
    """Put the pages of the presets in place of their folder, by first letter, and set the addresses."""
    if ".invalid" not in URLS["Repository"]:
        config.site_url = URLS["Documentation"]
        # Not repo_url, for which the theme's script asks the host of the repository for its stars.
        config.extra["social"] = [{"icon": "fontawesome/brands/git-alt", "link": URLS["Repository"], "name": "Source"}]
    groups = [
        {
            f"{first.upper()} to {last.upper()}": [
                f"{_PRESETS}{name}.md" for name in sorted(PRESETS) if first <= name[0] <= last
            ]
        }
        for first, last in _GROUPS
    ]
    for section in config.nav:
        for entries in section.values():
            for entry in entries if isinstance(entries, list) else ():
                for title, target in entry.items() if isinstance(entry, dict) else ():
                    if target == _PRESETS:
                        entry[title] = groups
    return config


def on_post_build(config: Any, **_: Any) -> None:
    """Build the explorer's wheel with the installed hatchling, without downloads."""
    if find_spec("hatchling") is None:
        raise PluginError("the explorer needs a wheel of ndcg_ml; install the extra [docs], which has hatchling")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(Path(config.site_dir, "explorer"))]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if built.returncode:
        raise PluginError(f"the wheel of the explorer was not built: {built.stderr}")


@event_priority(100)  # before the plugin that turns notebooks into pages
def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add the files that are not in docs/."""
    for source, page in PAGES.items():
        if source == page:
            files.append(File(page, str(ROOT), config.site_dir, config.use_directory_urls))
        else:
            files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    for name in PRESETS:
        files.append(File.generated(config, f"{_PRESETS}{name}.md", content=preset_page(name)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Weigh one page in the search, rewrite its links from places in the repository to the site's, link presets."""
    homes = {page: source for source, page in PAGES.items()}
    here = page.file.src_uri
    page.meta["search"] = {"boost": next((by for start, by in _WEIGHTS.items() if here.startswith(start)), 4)}
    origin = homes.get(here, posixpath.join("docs", here))

    def site(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(origin), match[2]))
        found = PAGES.get(target, target.removeprefix("docs/") if target.startswith("docs/") else None)
        if found is None:
            return match[0]
        return f"{match[1]}{posixpath.relpath(found, posixpath.dirname(here) or '.')}{match[3]}"

    if here == "index.md":  # a badge would be loaded from another host
        markdown = re.sub(r"^\[!\[tests\].*\n\n", "", markdown, flags=re.MULTILINE)
    if here == "flavors.md":
        markdown = re.sub(r"^\| `(\w+)` \|", rf"| [\1]({_PRESETS}\1.md) |", markdown, flags=re.MULTILINE)
    return _LINK.sub(site, markdown)


# The content security policy of the explorer's page. The page loads nothing from other hosts. Python runs in a worker
# under a policy of its own: the worker loads from cdn.jsdelivr.net, and checks what it gets.
_POLICY = (
    "default-src 'none'; script-src 'self' {hashes}; worker-src 'self'; connect-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
    "base-uri 'self'; form-action 'none'; object-src 'none'"
)
_INLINE = re.compile(r"<script(?P<attributes>(?![^>]*\bsrc=)[^>]*)>(?P<code>.*?)</script>", re.DOTALL)


def on_post_page(html: str, page: Any, **_: Any) -> str:
    """Give the explorer a Content-Security-Policy; the theme's own inline scripts are named by their digests."""
    if page.file.src_uri != "explorer.md":
        return html
    codes = [match["code"] for match in _INLINE.finditer(html) if "json" not in match["attributes"]]
    digests = [base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in codes]
    policy = _POLICY.format(hashes=" ".join(f"'sha256-{digest}'" for digest in digests))
    return html.replace("<head>", f'<head><meta http-equiv="Content-Security-Policy" content="{policy}">', 1)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Rewrite the links of a notebook, whose page is HTML and not Markdown, and describe its pictures."""
    if not page.file.src_uri.endswith(".ipynb"):
        return html
    notebook = json.loads(Path(page.file.abs_src_path).read_text(encoding="utf-8"))
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    for output in outputs:
        if "image/png" in output.get("data", {}):
            words = escape(output["metadata"].get("image/png", {}).get("alt", ""))
            html = html.replace(f'alt="{_NO_WORDS}"', f'alt="{words}"', 1)
    html = re.sub(r'href="(\w+)\.ipynb"', r'href="../\1/"', html)
    return re.sub(r'href="\.\./docs/([\w/]+)\.md', r'href="../../\1/', html)
