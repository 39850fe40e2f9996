"""Pages of the site that live elsewhere in the repository, where their readers look for them first.

The README is the home page; the change log, the notebooks and the recorded benchmarks keep their own places. Links are
written for the repository, so they are rewritten here for the site.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]

# Places outside docs/ that are pages under the same path, and the one under another.
SAME_PATH = ("CHANGELOG.md", "CONTRIBUTING.md", "benchmarks/results/*.md", "notebooks/*.ipynb")
PAGES = {str(path.relative_to(ROOT)): str(path.relative_to(ROOT)) for glob in SAME_PATH for path in ROOT.glob(glob)}
PAGES["README.md"] = "index.md"

_LINK = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)\s]*)?\))")


@event_priority(100)  # before the plugin that turns notebooks into pages
def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add the files that are not in docs/."""
    for source, page in PAGES.items():
        if source == page:
            files.append(File(page, str(ROOT), config.site_dir, config.use_directory_urls))
        else:
            files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrite the links of one page from places in the repository to places on the site."""
    homes = {page: source for source, page in PAGES.items()}
    here = page.file.src_uri
    origin = homes.get(here, posixpath.join("docs", here))

    def site(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(origin), match[2]))
        found = PAGES.get(target, target.removeprefix("docs/") if target.startswith("docs/") else None)
        if found is None:
            return match[0]
        return f"{match[1]}{posixpath.relpath(found, posixpath.dirname(here) or '.')}{match[3]}"

    return _LINK.sub(site, markdown)
