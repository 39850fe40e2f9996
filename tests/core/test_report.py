"""``to_html``: what the page says, and what it must not hold."""

import math
import re
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from comparing import by_scores
from html_pages import HOSTILE, Page

pytest.importorskip("jinja2", reason="a report needs the extra [report]")
matplotlib = pytest.importorskip("matplotlib", reason="a report needs the extra [report]")

from ndcg_ml import compare, evaluate, evaluate_topk

Y = [[3, 0, 1, 2], [0, 1, 0, 0], [1, 0, 2, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
A = [[4.0, 3, 2, 1], [4, 1, 3, 2], [4, 3, 2, 1], [1, 2, 4, 3], [4, 3, 2, 1]]
B = [[4.0, 1, 2, 3], [4, 3, 1, 2], [2, 3, 4, 1], [4, 3, 2, 1], [4, 3, 2, 1]]


def compared(**more):
    return by_scores(A, B, y_true=Y, names=["old", "new"], seed=0, **more)


def test_values_intervals_and_counts():
    result = evaluate(Y, A, k=(1, 3))
    page = Page(result.to_html())
    assert page.table("", "value") == [
        [f"NDCG@{k}", f"{result.value[k]:.6f}", "5", str(result.n_empty[k])] for k in (1, 3)
    ]
    intervals = result.interval()
    assert page.table("", "interval") == [
        [f"NDCG@{k}", f"{intervals[k].low:.6f} to {intervals[k].high:.6f}", intervals[k].how_text()] for k in (1, 3)
    ]
    assert "5 queries, 1 empty (scored 0); 20 documents" in page.text
    assert f"NDCG@3 of 5 queries: {result.value[3]:.4f}" in Page(evaluate(Y, A, k=3).to_html()).text
    assert [tag for tag, _ in page.tags].count("svg") == 1


def test_the_queries_with_the_largest_loss_are_listed_if_they_count():
    result = evaluate(Y, A, k=(3, 1))
    table = result.per_query
    lost = (table.idcg - table.dcg)[:, 0]
    # By hand, at 3: query 1 has its document last, query 0 loses 2 places of a grade 2, query 2 has it at rank 3.
    by_hand = [2 / math.log2(3) + 1 / 2 - 1 / 2, 1.0, 2 + 1 / math.log2(3) - 1 - 1, 0.0, 0.0]
    assert lost == pytest.approx(by_hand, abs=1e-12)
    page = Page(result.to_html())
    rows = page.table("query", "lost", "DCG@3", "ideal", "NDCG@3", "documents", "relevant", "tied", "weight")
    assert [row[0] for row in rows] == ["0", "1", "2"]
    for row in rows:
        i = int(row[0])
        assert row[1:5] == [f"{x[i]:.4f}" for x in (lost, table.dcg[:, 0], table.idcg[:, 0], table.ndcg[:, 0])]
        assert row[5:] == [*(str(table[name][i]) for name in ("n_docs", "n_relevant", "tied")), "1"]
    assert "3 of 5 queries lose DCG@3 against the ideal; 3 are listed." in page.text
    assert [row[0] for row in Page(result.to_html(top=1)).table("query", "lost")] == ["0"]
    assert "0 of 5 queries lose DCG against the ideal" in Page(evaluate(Y, Y).to_html()).text
    weights = [0, 1, 2, 1, 1]
    rows = Page(evaluate(Y, A, k=3, query_weight=weights).to_html()).table("query", "lost")
    assert [(row[0], row[-1]) for row in rows] == [("1", "1"), ("2", "2")]
    skipped = Page(evaluate(Y, A, flavor="sklearn[empty=skip]").to_html()).table("query", "lost")
    assert "4" not in [row[0] for row in skipped]


def test_slices():
    result = evaluate(Y, A, k=(1, 3), by={"kind": ["a", "b", "a", "b", "a"]})
    page = Page(result.to_html())
    assert [row[0] for row in page.table("slice", "queries")] == ["kind=a@1", "kind=a@3", "kind=b@1", "kind=b@3"]
    assert [tag for tag, _ in page.tags].count("svg") == 1


def test_a_comparison_lists_the_queries_that_moved_most():
    both = compared(k=3)
    page = Page(both.to_html())
    assert page.table("system", "NDCG@3") == [
        [name, f"{value:.6f}"] for name, value in zip(both.names, both.values, strict=True)
    ]
    assert page.table("a", "b")[0][2] == both.pairs[0].verdict
    assert both.caption() in page.text
    apart = both.ndcg[:, 1] - both.ndcg[:, 0]
    rows = page.table("query", "old", "new", "difference")
    assert [int(row[0]) for row in rows] == [int(i) for i in np.argsort(-np.abs(apart), kind="stable") if apart[i]]
    for name, *numbers in rows:
        i = int(name)
        assert numbers == [f"{both.ndcg[i, 0]:.4f}", f"{both.ndcg[i, 1]:.4f}", f"{apart[i]:+.4f}"]
    assert f"new is better than old in {both.wins} queries and worse in {both.losses}." in page.text
    assert len(Page(both.to_html(top=1)).table("query", "old")) == 1
    assert "Undecided: new may be better or worse, and more data are needed to say which." in page.text
    numbers = f"{both.difference:+.4f} (95 % interval {both.interval.low:+.4f} to {both.interval.high:+.4f})"
    assert page.words.count(f"new may be better or worse than old: NDCG@3 {numbers}") == 2  # title and heading
    assert "With this number of" not in page.text  # too few queries detect nothing


def test_the_words_of_a_catalogue():
    held = [[7, 8], [3], [9], [5]] * 10
    two = [evaluate_topk(items, held, k=2) for items in ([[1, 2], [3, 4], [3, 9], [6, 7]] * 10, [[7, 3]] * 40)]
    both = compare(*two)
    detectable = f"With this number of users, a true difference of {both.smallest_detectable():.4f} is found"
    for result, heading in ((two[0], "Users that lose most"), (both, "Users that changed most"), (both, detectable)):
        text = Page(result.to_html()).text
        assert heading in text
        assert "quer" not in text.split("Definition")[0]


def test_many_systems_and_queries_that_were_not_compared():
    five = by_scores(*[A * i + B * (10 - i) for i in range(5)], y_true=Y * 10, flavor="sklearn[empty=skip]", seed=0)
    page = Page(five.to_html(top=2))
    assert len(page.table("a", "b")) == 10
    assert "These are the first 6 of 10 pairs." in page.text
    assert "Comparison of 5 systems" in page.text
    assert "10 more queries were not compared" in page.text


def test_the_definition_the_versions_and_what_the_caller_adds():
    result = evaluate(Y, A, flavor="lightgbm", k=3)
    page = Page(result.to_html(title="A & B", command="evaluate(y, s) < 1"))
    assert page.words.count("A & B") == 2  # the title and the heading
    assert "evaluate(y, s) < 1" in page.words
    assert str(result.flavor) in page.text
    assert ["numpy", version("numpy")] in page.table("library", "version")
    assert str(Path.cwd()) not in page.text


def test_the_same_result_gives_the_same_page_and_file(tmp_path):
    result = evaluate(Y, A, k=3, by=["a", "b", "a", "b", "a"])
    first, before = result.to_html(), dict(matplotlib.rcParams)
    with matplotlib.rc_context({"axes.facecolor": "red", "svg.fonttype": "path", "xtick.labelsize": 3}):
        assert result.to_html() == first
    assert dict(matplotlib.rcParams) == before
    assert compared().to_html() == compared().to_html()
    file = tmp_path / "report.html"
    for result, path in ((evaluate(Y, A), file), (compared(), str(file))):
        assert result.to_html(path) == file
        assert file.read_text(encoding="utf-8") == result.to_html()


def test_what_is_not_known_is_said():
    text = Page(evaluate([[0, 0], [0, 0]], [[1, 2], [1, 2]], flavor="sklearn[empty=nan]", k=(1, 2)).to_html()).text
    assert "There is no interval" in text
    assert "There is no drawing: there must be a finite value to draw" in text
    one = Page(evaluate([[3, 0, 1]], [[1, 2, 3]]).to_html()).text
    assert "There is no interval: at least two queries must count in the mean" in one


@pytest.mark.parametrize("missing", ["jinja2", "matplotlib"])
def test_without_a_library_the_extra_is_named(monkeypatch, missing):
    for name in [name for name in sys.modules if name.partition(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    for result in (evaluate(Y, A), compared()):
        with pytest.raises(ImportError, match=rf'{missing}.*pip install "\.\[report\]" in a clone'):
            result.to_html()


def hostile(at: int) -> str:
    flat, scores = np.ravel(Y), np.ravel(A)
    qid = np.empty(20, dtype=object)
    qid[:] = [HOSTILE[i // 4] for i in range(20)]
    said = {"title": HOSTILE[0], "command": HOSTILE[2] + "\n two\u2066\x07 {{ 7 * 7 }}"}
    if at == 0:
        return evaluate(flat, scores, qid=qid, by={HOSTILE[0]: list(qid)}, k=(1, 3)).to_html(**said)
    systems = [evaluate(flat, np.ravel(s), qid=qid) for s in (A, B, Y)]
    names = {1: HOSTILE[:2], 2: HOSTILE[2:]}[at]
    return compare(*systems[: len(names)], names=names, seed=0).to_html(**said)


@pytest.mark.parametrize("at", range(3))
def test_hostile_text_stays_text_and_nothing_is_loaded(at):
    plain = [evaluate(Y, A, by=["a"] * 5, k=(1, 3)), compared(), by_scores(A, B, Y, y_true=Y, seed=0)][at]
    text = hostile(at)
    ours, page = Page(plain.to_html(title="t", command="c")), Page(text)
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in ours.tags}
    assert "script" not in {tag for tag, _ in page.tags}
    assert "<script>alert(1)</script>" in page.text
    assert "{{ 7 * 7 }}" in page.text
    text.encode("utf-8")
    assert not {each for each in text if not each.isprintable()} - {"\n", "\xa0"}
    for _, attributes in page.tags:
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name.rpartition(":")[2] in ("src", "href", "action", "data", "poster", "srcset"):
                assert value.startswith(("#", "data:,"))
            assert not re.search(r"url\((?!#)", value or "")
    [policy] = [attributes["content"] for _, attributes in page.tags if "http-equiv" in attributes]
    assert policy.startswith("default-src 'none'")
    used = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(used) == len(set(used))
