"""Tables as text, HTML and Markdown: a cell stays one cell that says what it said, whatever is in it."""

from __future__ import annotations

import re

import pytest
from html_pages import Page
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from ndcg_ml._core.one_line import visible
from ndcg_ml._core.table import Column, Record

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
