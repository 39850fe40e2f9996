"""Results as text, HTML, Markdown and JSON: a cell stays one cell that says what it said, whatever is in it."""

import json
import math
import re
from datetime import date
from typing import Any

import numpy as np
import pytest
from comparing import by_scores, by_values
from html_pages import Page
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from ndcg_ml import Flavor, compare, evaluate, evaluate_run, explain_difference
from ndcg_ml._plain.messages import visible
from ndcg_ml._plain.table import Column, Record
from ndcg_ml.gating import Gate, gate

HOSTILE = [
    *("a|b", "two\nlines\r\n", "<script>alert(1)</script>", "a\\", "\\|", "\u202eturned", "\x1b[2J", "\ud800"),
    *("*bold* _it_ snake_case `code`", "[link](https://example.org)", "![picture](x)", "[a][b]", "&lt; &amp; & 5 %"),
    *("$x^2$ #1 {a}_b ~", "[begins a row", "* begins a row", "日本語", "e\u0301", ""),
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


def test_a_table_is_aligned_text_html_with_marks_and_markdown_with_its_caption() -> None:
    table = Record(COLUMNS, rows(("日本", "1", "\x1b\u202e\U000e0001"), ("e\u0301", "-10", "x")), caption="below")
    assert table.text() == "name    n  word\n日本    1  \\x1b\\u202e\\U000e0001\ne\u0301     -10  x\nbelow"
    table = Record(COLUMNS, rows(("1", "<2>", ""), ("3", "4", "")), marked={1}, caption="c & d")
    page = table.html()
    assert Page(page).tables[0] == [["name", "n", "word"], ["1", "<2>", ""], ["3", "4", ""]]
    assert "c &amp; d</caption>" in page
    assert [line.count("background") for line in page.split("\n") if line.startswith("<tr><td")] == [0, 3]
    assert re.findall(r'text-align:(\w+);[a-z:-]+">', Record(COLUMNS, []).html()) == ["left", "right", "left"]
    assert "<caption" not in Record(COLUMNS, []).html()
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
    row = {"low": -0.123, "high": 0.5, "tiny": 1e-9, "k": 10, "no_cutoff": None, "unknown": None, "nan": math.nan}
    assert Record([Column("", cell)], [row], digits=2).cells()[1] == [text]


MARKUP = "<script>alert(\"1\")</script> & 'two' \ud800"


def compared():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, (40, 6))
    systems = [labels + rng.normal(0, noise, labels.shape) for noise in (3.0, 0.1, 0.11)]
    return by_scores(*systems, y_true=labels, names=[MARKUP, "b", "c"], seed=0)


def test_a_flavor_marks_what_differs_from_the_nearest_preset():
    flavor = Flavor.preset("lightgbm", k=10, max_grade=4)
    page = Page(flavor._repr_html_())
    [[head, *rows]] = page.tables
    assert head == ["switch", "value", "lightgbm", "in words"]
    marked = [row[0] for row, mark in zip(rows, page.marked, strict=True) if mark]
    assert marked == ["max_grade"]
    by_name = {row[0]: row[1:] for row in rows}
    assert by_name["gain"] == ["exponential", "exponential", "gain(y) = 2^y - 1; a label above 4 is an error"]
    assert by_name["k"][:2] == ["10", "any"]  # LightGBM takes it as an argument
    assert (by_name["max_grade"], by_name["discount"][:2]) == (["4", "None", ""], ["log2", "log2"])
    assert str(flavor) in page.text
    assert "duplicates" not in by_name
    same = Page(Flavor.preset("sklearn", k=3)._repr_html_())
    assert not any(same.marked)
    assert "no switch differs from sklearn" in same.text
    assert "what differs from the default" in Page(Flavor(gain="judged", empty=1)._repr_html_()).text


def test_a_comparison_marks_clear_differences():
    result = compared()
    page = Page(result._repr_html_())
    systems, pairs = page.tables
    assert [row[0] for row in systems[1:]][1:] == ["b", "c"]
    result._repr_html_().encode("utf-8")
    assert page.marked == [False, False, False, *(pair.significant for pair in result.pairs)]
    assert {pair.significant for pair in result.pairs} == {True, False}
    assert [row[3] for row in pairs[1:]] == [f"{pair.difference:+.4f}" for pair in result.pairs]
    assert page.text.count(result.caption()) == 1
    assert all(f"{pair.difference:+.6f}" in str(result) for pair in result.pairs)


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


# -- ``to_dict`` of results: what JSON can hold, and the numbers that the result has


LABELS, SCORES = [[3, 0, 1], [0, 0, 0], [1, 0, 2]], [[3, 2, 1], [3, 1, 2], [1, 3, 2]]


def plain(result: Any, *arguments: Any) -> dict[str, Any]:
    return json.loads(json.dumps(result.to_dict(*arguments), allow_nan=False))


@pytest.mark.parametrize("ks", [2, (1, None)])
def test_an_evaluation(ks):
    flavor = Flavor(empty=math.nan)
    result = evaluate(LABELS, SCORES, flavor=flavor, k=ks, by={"kind": ["a", math.inf, "a"]})
    document = plain(result, True)
    every = ks if isinstance(ks, tuple) else (ks,)
    assert [value["k"] for value in document["values"]] == list(every)
    assert [Flavor.parse(value["flavor"]).k for value in document["values"]] == list(every)
    assert all(value["ndcg"] is None and value["n_empty"] == 1 for value in document["values"])
    assert (document["n_queries"], document["n_documents"]) == (3, 9)
    table = result.per_query
    for i, query in enumerate(document["per_query"]):
        assert (query["qid"], query["n_relevant"]) == (i, table.n_relevant[i])
        for at, value in enumerate(query["values"]):
            ndcg = table.ndcg.reshape(3, -1)[i, at]
            assert value["ndcg"] == (None if i == 1 else ndcg)
            assert value["empty"] == (i == 1)
    slices = {(row["label"], row["k"]): row for row in document["slices"]}
    assert len(slices) == 2 * len(every)
    assert slices["inf", every[0]]["ndcg"] is None
    by_k = result.slices["kind", "a"].value
    assert slices["a", every[-1]]["ndcg"] == (by_k[every[-1]] if isinstance(by_k, dict) else by_k)
    assert plain(result)["per_query"] is None
    assert "slices" not in plain(evaluate(LABELS, SCORES))


def test_a_run_and_ids_that_json_lacks():
    result = evaluate_run({"q1": {"d1": 1}, "q2": {"d2": 1}}, {"q1": ["x", "d1"], "q3": ["x"]}, k=1)
    document = plain(result, True)
    assert document["values"][0]["judged"] == 0.0
    assert (document["queries"], document["qrels_only"], document["run_only"]) == ("qrels", ["q2"], ["q3"])
    assert [query["values"][0]["judged"] for query in document["per_query"]] == [0.0, None]
    days = np.array(["2026-01-01", "2026-01-02", "2026-01-03"], "M8[ns]").repeat(3)
    dated = plain(evaluate(np.ravel(LABELS), np.ravel(SCORES), qid=days), True)
    assert dated["per_query"][0]["qid"].startswith("2026-01-01")


@pytest.mark.parametrize("labels", [[date(2026, 1, 1), date(2026, 1, 2)], [b"a", b"b"], np.float32([0.5, np.inf])])
def test_labels_that_json_lacks_are_written_alike(labels):
    by = {"kind": [labels[i % 2] for i in range(16)]}
    result = evaluate([[1, 0]] * 16, [[i % 3, 1] for i in range(16)], by=by)
    both = compare(result, evaluate([[1, 0]] * 16, [[1, 0]] * 16), by=by, seed=0)
    written = [{row["label"] for row in plain(each)["slices"]} for each in (result, both)]
    assert written[0] == written[1]
    assert len(written[0]) == 2


@pytest.mark.parametrize("ids", [[b"a", b"b"], [0.5, 1.5], [date(2026, 1, 1), date(2026, 1, 2)]], ids=str)
def test_lists_to_judge_have_the_ids_of_results(ids):
    y, qid = [1, math.nan, 0, 1, math.nan, 0], np.repeat(np.array(ids, dtype=object), 3)
    sides = [
        evaluate(y, scores, qid=qid, doc_id=[*"abcabc"], flavor="ndcg@1[unjudged=zero]")
        for scores in ([1, 2, 3, 1, 3, 2], [1, 3, 2, 1, 2, 3])
    ]
    lines = compare(*sides, seed=0, unjudged="accept").judge_next(9).to_jsonl().splitlines()
    assert {json.loads(line)["qid"] for line in lines} == {row["qid"] for row in plain(sides[0], True)["per_query"]}


def test_an_interval_and_numbers_of_a_measure():
    interval = evaluate(LABELS, SCORES).interval()
    document = plain(interval)
    assert (document["low"], document["value"], document["high"]) == (interval.low, interval.value, interval.high)
    assert document["method"] == "value"
    # No query of numbers is unanswered.
    systems = by_values([0.1, 0.5, 0.3], [0.2, 0.4, 0.9], qid=[1, 2, 3], measure="recall").to_dict()["systems"]
    assert [system["n_unanswered"] for system in systems] == [0, 0]


def test_metrics_have_names_that_trackers_accept():
    one, other = (evaluate([[2, 0, 1], [0, 1, 0]], scores, k=[1, 10]) for scores in ([[3, 2, 1]] * 2, [[1, 3, 2]] * 2))
    assert one.metrics() == {"ndcg_at_1": one.value[1], "ndcg_at_10": one.value[10]}
    assert evaluate([[1, 0]], [[1, 2]]).metrics().keys() == {"ndcg"}
    with pytest.raises(AttributeError, match=r"has 3 differences. Choose one of .pairs"):
        _ = compare(one, other, one, k=10, seed=0).difference
