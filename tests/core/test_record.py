"""Tables as text, HTML and Markdown: a cell stays one cell that says what it said, whatever is in it."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from comparing import by_scores
from html_pages import Page
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from ndcg_ml import Flavor, compare, evaluate, evaluate_run, explain_difference
from ndcg_ml._core.one_line import visible
from ndcg_ml._core.table import Column, Record
from ndcg_ml._decide.gate import Gate, gate

HOSTILE = [
    "a|b",
    "two\nlines\r\n",
    "<script>alert(1)</script>",
    "a\\",
    "\\|",
    "\u202eturned",
    "\x1b[2J",
    "\ud800",
    "*bold* _it_ snake_case `code`",
    "[link](https://example.org)",
    "![picture](x)",
    "[a][b]",
    "&lt; &amp; & 5 %",
    "$x^2$ #1 {a}_b ~",
    "[begins a row",
    "* begins a row",
    "日本語",
    "e\u0301",
    "",
]
CELLS = st.sampled_from(HOSTILE) | st.text(
    st.characters(exclude_categories=()) | st.sampled_from("|\\`*_[]()<>&#!\n\u202e"), max_size=8
)


def tidy(cell: str) -> str:
    """A cell without what every reader of HTML and Markdown drops: blanks at the ends, and more than one of them."""
    return " ".join(visible(cell).split())


@examples(200)
@given(st.lists(st.tuples(CELLS, CELLS), max_size=3), CELLS)
def test_a_cell_says_what_it_said(rows: list[tuple[str, str]], caption: str) -> None:
    table = Record(
        [Column("name", "{name}", "l"), Column("n", "{n}")],
        [{"name": name, "n": n} for name, n in rows],
        caption=caption,
    )
    cells = [["name", "n"], *map(list, rows)]

    lines = table.text().split("\n")
    assert len(lines) == len(cells) + bool(caption)
    assert all(line.isprintable() for line in lines)

    html = Page(table.html())
    assert [[tidy(cell) for cell in row] for row in html.tables[0]] == [[tidy(cell) for cell in row] for row in cells]
    assert {tag for tag, _ in html.tags} <= {"table", "caption", "thead", "tbody", "tr", "th", "td"}

    # markdown-it is written by others, so it reads our escapes as a reader of Markdown would.
    markdown = table.markdown().encode("utf-8", "replace").decode()
    rendered = Page(pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table").render(markdown))
    expected = [[tidy(cell).encode("utf-8", "replace").decode() for cell in row] for row in cells]
    assert [[tidy(cell) for cell in row] for row in rendered.tables[0]] == expected
    assert {tag for tag, _ in rendered.tags} <= {"table", "thead", "tbody", "tr", "th", "td", "p"}


COLUMNS = (Column("name", "{name}", "l"), Column("n", "{n}"), Column("word", "{word}", "l"))


def rows(*rows: tuple[str, ...]) -> list[dict[str, str]]:
    return [dict(zip(("name", "n", "word"), row, strict=True)) for row in rows]


def test_text_is_aligned_as_it_is_seen() -> None:
    table = Record(COLUMNS, rows(("日本", "1", "x"), ("e\u0301", "-10", "longer")), caption="below")
    assert table.text() == "name    n  word\n日本    1  x\ne\u0301     -10  longer\nbelow"


def test_html_has_sides_marks_and_a_caption() -> None:
    table = Record(COLUMNS, rows(("1", "<2>", ""), ("3", "4", "")), marked={1}, caption="c & d")
    page = table.html()
    assert Page(page).tables[0] == [["name", "n", "word"], ["1", "<2>", ""], ["3", "4", ""]]
    assert "c &amp; d</caption>" in page
    assert [line.count("background") for line in page.split("\n") if line.startswith("<tr><td")] == [0, 3]
    assert re.findall(r"text-align:(\w+)", Record(COLUMNS, []).html()) == ["left", "right", "left"]
    assert "<caption" not in Record(COLUMNS, []).html()


def test_markdown_states_the_caption() -> None:
    table = Record(COLUMNS[:2], rows(("x_1", "<0.1", "")), caption="5 %")
    assert table.markdown() == "| name | n |\n| --- | --: |\n| x_1 | <0.1 |\n\n5 %\n"


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("{low:+.{digits}f} to {high:+.{digits}f}", "-0.12 to +0.50"),
        ("{tiny:.{digits}p}, {high:.{digits}p}", "<0.01, 0.50"),
        ("NDCG{k:@}, NDCG{no_cutoff:@}", "NDCG@10, NDCG"),
        ("{low:.1f} to {unknown:.1f}", "-"),
        ("{nan:.1f}", "-"),
        ("{absent}", "-"),
    ],
)
def test_values_are_formatted_or_unknown(cell: str, text: str) -> None:
    row = {
        "low": -0.123,
        "high": 0.5,
        "tiny": 1e-9,
        "k": 10,
        "no_cutoff": None,
        "unknown": None,
        "not_finite": float("nan"),
    }
    assert Record([Column("", cell)], [row], digits=2).cells()[1] == [text]


MARKUP = "<script>alert(\"1\")</script> & 'two' \ud800"


def compared():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, (40, 6))
    systems = [labels + rng.normal(0, noise, labels.shape) for noise in (3.0, 0.1, 0.11)]
    return by_scores(*systems, y_true=labels, names=[MARKUP, "b", "c"], seed=0)


def test_a_flavor_marks_what_differs_from_scikit_learn():
    flavor = Flavor.preset("lightgbm", k=10, max_grade=4)
    page = Page(flavor._repr_html_())
    [[head, *rows]] = page.tables
    assert head == ["switch", "value", "scikit-learn", "in words"]
    marked = [row[0] for row, mark in zip(rows, page.marked, strict=True) if mark]
    assert marked == ["gain", "max_grade", "ties", "empty"]
    by_name = {row[0]: row[1:] for row in rows}
    assert by_name["gain"] == ["exponential", "linear", "gain(y) = 2^y - 1; a label above 4 is an error"]
    assert by_name["k"][:2] == ["10", "any"]  # scikit-learn takes it as an argument
    assert by_name["max_grade"] == ["4", "None", ""]
    assert str(flavor) in page.text
    assert "duplicates" not in by_name
    same = Page(Flavor.preset("sklearn", k=3)._repr_html_())
    assert not any(same.marked)
    assert "no switch differs" in same.text


def test_a_comparison_marks_clear_differences():
    result = compared()
    page = Page(result._repr_html_())
    systems, pairs = page.tables
    assert [row[0] for row in systems[1:]][1:] == ["b", "c"]
    result._repr_html_().encode("utf-8")
    assert page.marked == [False, False, False, *(pair.significant for pair in result.pairs)]
    assert {pair.significant for pair in result.pairs} == {True, False}
    assert [row[3] for row in pairs[1:]] == [f"{pair.difference:+.4f}" for pair in result.pairs]
    assert result.caption() in page.text


TEXTS = [
    "two\nlines\r\n**not worse**",
    "a|b\n\n![picture](https://example.org/x.png)",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\x1b]0;title\x07",
    "\u202eturned\x85\u2028",
    "[link](https://example.org) ~~gone~~ ~also gone~",
    "https://example.org www.example.org http://a.example/?x=1",
]


def results(text):
    """Results that hold the text in each field that a caller can name, and errors that quote it."""
    qrels = {f"{text} {i}": {f"{text} a": 2, f"{text} b": 1, f"{text} c": 0} for i in range(12)}
    good = {topic: dict(zip(labels, (3.0, 2.0, 1.0), strict=True)) for topic, labels in qrels.items()}
    bad = {topic: {document: -score for document, score in run.items()} for topic, run in good.items()}
    for run in list(bad.values())[:6]:
        run[f"{text} unjudged"] = 9.0
    names, topics = [f"{text} old", f"{text} new"], list(qrels)
    by = {text: [text if i % 2 else f"{text} other" for i in range(12)]}
    old, new = (evaluate_run(qrels, run, k=2, by=by) for run in (good, bad))
    comparison = compare(old, new, names=names, by=by, margin=0.01, unjudged="accept", seed=0)
    guarded = gate(old, new, margin=0.01, by={text: dict(zip(topics, by[text], strict=True))})
    guarded_less = gate(
        evaluate_run({**qrels, f"{text} gone": {"a": 1}}, good, k=2), new, margin=0.01, on_change="drop"
    )
    rows = [([2, 0, 1], [1, 2, 3])] * 12
    y_true, y_score = ([x for row in rows for x in row[side]] for side in (0, 1))
    qid = [topic for topic in topics for _ in range(3)]

    def gain(grade: float) -> float:
        return grade

    gain.__qualname__ = visible(text)  # a flavor shows it as it is
    return {
        "flavor": Flavor(gain=gain),
        "evaluation": evaluate(y_true, y_score, qid=qid, k=(1, None), by={text: [by[text][i // 3] for i in range(36)]}),
        "run": old,
        "slices": old.slices,
        "comparison": comparison,
        "uneven": compare(old, new, names=names, seed=0, unjudged="accept"),
        "comparison's slices": comparison.slices,
        "gate": guarded,
        "gate with changes": guarded_less,
        "to judge": comparison.judge_next(5),
        "explanation": explain_difference("sklearn", "lightgbm", y_true, y_score, qid=qid),
    }


def errors(text):
    """Messages of errors that quote the text."""
    for call in (
        lambda: Flavor.parse(text),
        lambda: Flavor(gain=text),
        lambda: Flavor.preset(text),
        lambda: evaluate([1, 0], [1, 2], flavor=text),
        lambda: evaluate([1, text], [1, 2]),
        lambda: evaluate_run(text, {"q": {"d": 1.0}}),
        lambda: evaluate_run({text: {text: text}}, {text: {"d": 1.0}}),
        lambda: compare(evaluate([1, 0], [1, 2]), evaluate([1, 0], [1, 2]), names=[text, text]),
        lambda: evaluate([1, 0], [1, 2], by={text: 3}),
    ):
        with pytest.raises((ValueError, TypeError, OSError, KeyError)) as raised:
            call()
        yield str(raised.value)


@pytest.mark.parametrize("text", TEXTS)
def test_no_field_of_a_caller_breaks_a_line_or_is_read_as_markup(text):
    checked = 0
    plain, hostile = results("plain"), results(text)
    for name, result in hostile.items():
        for show in (texts, markdown_of, html_of):
            for one, expected in zip(show(result), show(plain[name]), strict=True):
                assert all(line.isprintable() for line in one.split("\n")), name
                assert one.count("\n") == expected.count("\n"), name
                if show is markdown_of:
                    one, expected = (re.sub(r"\\.", "", page) for page in (one, expected))
                    assert not re.search(r"\]\(|<[a-z]|~|[a-z]://|www\.", one), name
                    assert [one.count(mark) for mark in "*|"] == [expected.count(mark) for mark in "*|"], name
                if show is html_of:
                    check_page(one)
                checked += 1
        if hasattr(result, "to_dict"):
            dumped = json.dumps(result.to_dict(), allow_nan=False)
            assert dumped.isascii()
            assert dumped.isprintable()
            checked += 1
    for message in errors(text):
        assert message.isprintable(), message
        checked += 1
    assert checked >= 42


def check_page(text):
    page = Page(text)
    assert {tag for tag, _ in page.tags} <= {"div", "table", "caption", "thead", "tbody", "tr", "th", "td", "p"}
    assert {name for _, attributes in page.tags for name in attributes} <= {"style", "scope"}
    for rows in page.tables:
        assert len({len(row) for row in rows}) == 1
    text.encode("utf-8")
    # Neither black nor white: what is coloured is seen through, on a dark page as on a light one.
    styles = " ".join(attributes.get("style", "") for _, attributes in page.tags)
    assert not re.findall(r"#[0-9a-f]{3,6}|rgb\(|(?<!-)color:(?!inherit)", styles)


def texts(result):
    return [result.sentence(), *result.notes()] if isinstance(result, Gate) else [str(result), repr(result)]


def markdown_of(result):
    if isinstance(result, Gate):
        return [result.markdown()]
    return [result.to_markdown()] if hasattr(result, "to_markdown") else []


def html_of(result):
    return [result._repr_html_()] if hasattr(result, "_repr_html_") else []
