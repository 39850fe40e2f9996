"""Reports in a browser: they load nothing, complain of nothing and fit a desktop and a phone, light and dark."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import by_scores

pytest.importorskip("jinja2", reason="a report needs the extra [report]")
pytest.importorskip("matplotlib", reason="a report needs the extra [report]")

from ndcg_ml import compare, evaluate

HOSTILE = "<script>document.title = 'taken'</script><img src=http://localhost/x onerror=alert(1)>" + "x" * 90

FOUR = ["BM25 with tuned parameters", "cross-encoder (MiniLM, 6 layers)", "LightGBM lambdarank", "production 2024-05"]


def reports() -> dict[str, str]:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, (400, 12))
    scores = [labels + rng.normal(0, noise, labels.shape) for noise in (2.0, 1.5, 1.0)]
    ids = [f"a query of many words {i}" for i in range(399)] + [HOSTILE]
    evaluations = [
        evaluate(labels.ravel(), each.ravel(), qid=np.repeat(np.array(ids, dtype=object), 12), flavor="lightgbm", k=10)
        for each in scores
    ]
    four = [labels + rng.normal(0, noise, labels.shape) for noise in (3.0, 2.8, 2.5, 2.45)]
    by = {"a column of a long name": rng.integers(0, 8, 400), HOSTILE: rng.integers(0, 2, 400)}
    names = ["a very long name of a system", "another name that is as long", HOSTILE]
    return {
        "evaluation": evaluate(labels, scores[0], flavor="lightgbm", k=(1, 5, 10, None), by=by).to_html(
            command="evaluate(" + "x" * 500 + ")", date="2026-05-01"
        ),
        "two": compare(*evaluations[:2], names=names[1:], seed=0).to_html(title=HOSTILE),
        "three": compare(*evaluations, names=names, seed=0).to_html(),
        "four": by_scores(*four, y_true=labels, names=FOUR, flavor="lightgbm", k=10, seed=0).to_html(),
    }


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    for name, text in reports().items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return sorted(folder.iterdir())


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390], ids=["desktop", "phone"])
def test_reports_fit_the_screen_and_load_nothing(files, chromium, width, scheme):
    for file in files:
        view = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
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
        assert view.evaluate("document.documentElement.scrollWidth") <= width, file.name
        # On a phone, too, letters are of a size that can be read.
        assert view.locator("figure:visible").count() == view.locator("figure").count() > 0
        letters = "all => Math.min(...all.map(each => each.getBoundingClientRect().height))"
        assert view.locator("figure:visible text").evaluate_all(letters) >= 9
        ink = "all => all.map(each => getComputedStyle(each).fill)"
        assert (
            len(set(view.locator("figure:visible text").evaluate_all(ink))) == 1
        )  # the page's own colour, in both schemes
        assert view.locator("figure:visible text").first.evaluate(
            "each => getComputedStyle(each).fill"
        ) == view.locator("body").evaluate("each => getComputedStyle(each).color")
        view.close()


@pytest.mark.long
def test_the_first_screen_has_the_verdicts_and_the_picture(files, chromium):
    [file] = [file for file in files if file.stem == "four"]
    view = chromium.new_page(viewport={"width": 1280, "height": 900})
    view.goto(file.as_uri())
    assert view.evaluate("document.documentElement.scrollHeight") <= 2 * 900
    where = "all => all.map(each => each.getBoundingClientRect().bottom)"
    assert max(view.locator("table:visible, figure text").evaluate_all(where)) <= 900
    view.close()


@pytest.mark.long
def test_a_phone_shows_names_in_few_lines_and_every_p(files, chromium):
    [file] = [file for file in files if file.stem == "four"]
    view = chromium.new_page(viewport={"width": 390, "height": 900})
    view.goto(file.as_uri())
    cells = view.locator(".verdicts td").evaluate_all(
        "all => all.map(each => [each.getBoundingClientRect().right, each.getBoundingClientRect().height])"
    )
    assert len(cells) == 6 * 4
    assert max(right for right, _ in cells) <= 390
    line = min(height for _, height in cells)
    assert max(height for _, height in cells) <= 2.5 * line
    # The picture begins with its axes and the names, not with names alone.
    starts = view.locator("figure text").evaluate_all("all => all.map(each => each.getBoundingClientRect().left)")
    assert min(starts) < 60
    view.close()


@pytest.mark.long
def test_what_is_folded_opens_on_a_click_and_on_paper(files, chromium):
    for file in files:
        view = chromium.new_page(viewport={"width": 680, "height": 960})
        view.goto(file.as_uri())
        inside = view.locator("details > :not(summary)")
        assert inside.count() == inside.locator("visible=false").count() > 2, file.name
        view.locator("summary").last.click()
        assert inside.locator("visible=true").count() > 0
        view.locator("summary").last.click()
        view.emulate_media(media="print")
        heights = inside.evaluate_all("all => all.map(each => each.getBoundingClientRect().height)")
        assert min(heights) > 0, file.name
        assert "How it was made" in view.locator("summary").last.inner_text()
        view.close()


@pytest.mark.long
def test_reports_fit_on_paper(files, chromium):
    for file in files:
        view = chromium.new_page(viewport={"width": 680, "height": 960}, color_scheme="dark")  # A4 within 15 mm
        view.emulate_media(media="print")
        view.goto(file.as_uri())
        assert view.evaluate("document.documentElement.scrollWidth") <= 680, file.name
        assert view.locator("body").evaluate("each => getComputedStyle(each).color") == "rgb(0, 0, 0)"
        view.close()
