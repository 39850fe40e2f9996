"""Reports in a browser: they load nothing, complain of nothing and fit a desktop and a phone."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jinja2", reason="a report needs the extra [report]")
pytest.importorskip("matplotlib", reason="a report needs the extra [report]")

from ndcg_ml import compare, evaluate

HOSTILE = "<script>document.title = 'taken'</script><img src=http://localhost/x onerror=alert(1)>" + "x" * 90


@pytest.fixture(scope="module")
def files(tmp_path_factory):
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


@pytest.mark.long
@pytest.mark.parametrize("width", [1280, 1000, 390], ids=["desktop", "window", "phone"])
def test_reports_fit_and_load_nothing(files, chromium, width):
    for file in files:
        view = chromium.new_page(viewport={"width": width, "height": 900})
        asked: list[str] = []
        said: list[str] = []
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
        view.close()
