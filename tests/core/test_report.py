"""``to_html``: what the page says, what it must not hold, and how the file is written."""

from __future__ import annotations

import datetime
import math
import os
import re
import sys
from html import unescape
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from comparing import by_scores

pytest.importorskip("jinja2", reason="a report needs the extra [report]")
matplotlib = pytest.importorskip("matplotlib", reason="a report needs the extra [report]")

from ndcg_ml import compare, evaluate, evaluate_run, prepare
from ndcg_ml._stats.comparison_table import pairs_table

Y = [[3, 0, 1, 2], [0, 1, 0, 0], [1, 0, 2, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
A = [[4.0, 3, 2, 1], [4, 1, 3, 2], [4, 3, 2, 1], [1, 2, 4, 3], [4, 3, 2, 1]]
B = [[4.0, 1, 2, 3], [4, 3, 1, 2], [2, 3, 4, 1], [4, 3, 2, 1], [4, 3, 2, 1]]
IDS = [f"q{i}" for i in range(5)]
HOSTILE = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "</td></table></title><style>*{display:none}</style>",
    "half of a pair \udcff and a NUL \0 and \x1b[31m",
    "{{ 7 * 7 }} $x_1$ ]]> --> " + "x" * 10_000,
]


class Page(HTMLParser):
    """The elements of a page, and its tables as text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.tables: list[list[list[str]]] = []
        self.folded: list[bool] = []  # one entry per table
        self.depth = 0
        self.words: list[str] = []
        self._cell = self._silent = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.depth += tag == "details"
        if tag == "table":
            self.tables.append([])
            self.folded.append(self.depth > 0)
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self._cell = True
        self._silent = tag == "style"

    def handle_endtag(self, tag):
        self.depth -= tag == "details"
        self._cell = self._cell and tag not in ("td", "th")
        self._silent = False

    def handle_data(self, data):
        if self._cell:
            self.tables[-1][-1][-1] += data
        if not self._silent:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def table(self, *heading: str) -> list[list[str]]:
        """The rows of the one table whose heading begins like this."""
        [table] = [each for each in self.tables if each[0][: len(heading)] == list(heading)]
        return table[1:]

    def open_tables(self) -> list[list[str]]:
        """The headings of the tables that no click has to open."""
        assert self.depth == 0
        return [table[0] for table, folded in zip(self.tables, self.folded, strict=True) if not folded]


def compared(**more):
    return by_scores(A, B, y_true=Y, names=["old", "new"], seed=0, **more)


@pytest.fixture
def undrawn(monkeypatch):
    """Without the drawings, which take most of the time."""
    monkeypatch.setattr("ndcg_ml._show.report._svg", lambda *_, **__: "<svg></svg>")


# -- what it says -----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("undrawn")
def test_values_intervals_and_counts():
    result = evaluate(Y, A, k=(1, 3))
    page = Page(result.to_html(digits=5, confidence=0.9, method="percentile", n_resamples=500, seed=7))
    intervals = result.interval(0.9, "percentile", 500, seed=7)
    assert page.table("", "value", "90 % interval") == [
        [
            f"NDCG@{k}",
            f"{result.value[k]:.5f}",
            f"{intervals[k].low:.5f} to {intervals[k].high:.5f}",
            "5",
            str(result.n_empty[k]),
        ]
        for k in (1, 3)
    ]
    assert "Intervals: 90 %, percentile bootstrap, 500 resamples." in page.text
    assert "5 queries, 1 empty (scored 0); 20 documents" in page.text
    one = Page(evaluate(Y, A, k=3).to_html())
    assert [row[0] for row in one.table("", "value", "95 % interval")] == ["NDCG@3"]
    assert "BCa bootstrap, 9999 resamples" in one.text


@pytest.mark.usefixtures("undrawn")
def test_the_queries_with_the_largest_loss():
    result = evaluate(Y, A, k=(3, 1))
    table = result.per_query
    lost = (table.idcg - table.dcg)[:, 0]
    # By hand, at 3: query 1 has its document last, query 0 loses 2 places of a grade 2, query 2 has it at rank 3.
    assert lost.round(6).tolist() == [
        round(2 / math.log2(3) + 1 / 2 - 1 / 2, 6),
        1.0,
        round(2 + 1 / math.log2(3) - 1 - 1, 6),
        0.0,
        0.0,
    ]
    page = Page(result.to_html())
    rows = page.table("query", "lost", "DCG@3", "ideal", "NDCG@3", "documents", "relevant", "tied")
    assert [row[0] for row in rows] == ["0", "1", "2"]
    for row in rows:
        i = int(row[0])
        assert row[1:5] == [f"{x[i]:.4f}" for x in (lost, table.dcg[:, 0], table.idcg[:, 0], table.ndcg[:, 0])]
        assert row[5:] == [str(table[name][i]) for name in ("n_docs", "n_relevant", "tied")]
    assert "3 of 5 queries lose DCG@3 against the ideal." in page.text
    some = Page(result.to_html(top=1))
    assert [row[0] for row in some.table("query", "lost")] == ["0"]
    share = lost[0] / lost.sum()
    assert (
        f"3 of 5 queries lose DCG@3 against the ideal. The largest is listed: {share:.0%} of all that is lost."
    ) in some.text
    assert "query" not in {table[0][0] for table in Page(result.to_html(top=0)).tables}
    assert "No query loses DCG against its ideal." in Page(evaluate(Y, Y).to_html()).text


@pytest.mark.usefixtures("undrawn")
def test_queries_that_do_not_count_are_not_listed():
    weights = [0, 1, 2, 1, 1]
    rows = Page(evaluate(Y, A, k=3, query_weight=weights).to_html()).table("query", "lost")
    assert [(row[0], row[-1]) for row in rows] == [("1", "1"), ("2", "2")]
    skipped = Page(evaluate(Y, A, flavor="sklearn[empty=skip]").to_html()).table("query", "lost")
    assert "4" not in [row[0] for row in skipped]


@pytest.mark.usefixtures("undrawn")
def test_slices():
    by = {"kind": ["a", "b", "a", "b", "a"], "<b>": [f"label {i}" for i in range(5)]}
    result = evaluate(Y, A, k=(1, 3), by=by)
    page = Page(result.to_html())
    assert page.table("slice", "queries") == result.slices._table().rows
    assert "<b>=label 4@1" in page.text
    many = evaluate([[1, 0]] * 130, [[1.0, 2.0], [2.0, 1.0]] * 65, by={"n": list(range(130))})
    limited = Page(many.to_html())
    assert limited.table("slice", "queries") == many.slices._table().rows[:100]
    assert "The first 100 of 130 rows" in limited.text


@pytest.mark.usefixtures("undrawn")
def test_a_run_says_what_is_judged():
    qrels = {"q1": {"d1": 2, "d2": 0, "d3": 1}, "q2": {"d4": 1}, "q3": {"d5": 1}}
    run = {"q1": {"d1": 0.9, "d7": 0.5}, "q2": ["d9", "d4"], "q9": ["d1"]}
    result = evaluate_run(qrels, run, k=(1, 10))
    page = Page(result.to_html())
    rows = page.table("", "value", "95 % interval", "judged")
    assert [row[3] for row in rows] == [f"{result.judged[k]:.4f}" for k in (1, 10)]
    assert "1 of the qrels are not in the run, counted as retrieving nothing" in page.text


@pytest.mark.usefixtures("undrawn")
def test_a_comparison_lists_wins_and_losses():
    both = compared(k=3)
    page = Page(both.to_html(top=1, digits=3))
    assert page.table("system", "NDCG@3") == [
        [name, f"{value:.3f}"] for name, value in zip(both.names, both.values, strict=True)
    ]
    shown = pairs_table(both, 3)
    head, [cells] = shown.head, shown.rows
    for name, cell in zip(head, cells, strict=True):
        assert f"{name} {cell}" in page.text
    assert both.caption() in page.text
    apart = both.ndcg[:, 1] - both.ndcg[:, 0]
    down, up = (table[1:] for table in page.tables if table[0] == ["query", "old", "new", "difference"])
    for [row], i in ((down, int(apart.argmin())), (up, int(apart.argmax()))):
        assert row == [str(i), f"{both.ndcg[i, 0]:.3f}", f"{both.ndcg[i, 1]:.3f}", f"{apart[i]:+.3f}"]
    assert (both.wins, both.losses) == (3, 1)
    assert "new above old: 1 of 3 queries" in page.text
    assert "new below old: 1 query " in page.text
    same = Page(by_scores(A, A, y_true=Y, names=["old", "new"], seed=0).to_html())
    assert "new below old: 0 queries." in same.text


@pytest.mark.usefixtures("undrawn")
def test_many_systems_and_queries_that_were_not_compared():
    systems = [evaluate(Y * 10, A * i + B * (10 - i), flavor="sklearn[ideal=recall]") for i in range(5)]
    page = Page(compare(*systems, seed=0).to_html(top=2))
    assert len(page.table("a", "b")) == 10
    assert "These are the first 6 of 10 pairs." in page.text
    assert "Comparison of 5 systems" in page.text
    ids = [f"id {i}" for i in range(50)]
    one, other = (
        evaluate(np.array(Y * 10).ravel(), np.array(s * 10).ravel(), qid=np.repeat(q, 4))
        for s, q in ((A, ids), (B, [f"other {i}" for i in range(25)] + ids[25:]))
    )
    shown = Page(compare(one, other, missing="drop", seed=0).to_html()).text
    assert "25 queries were compared; 50 were left out (weight 0, or no value in one of the systems): " in shown
    assert "id 19 and 30 more." in shown
    assert "id 20 " not in shown


@pytest.mark.usefixtures("undrawn")
def test_the_definition_in_words_and_the_versions(monkeypatch):
    monkeypatch.setattr("ndcg_ml._show.versions._LIBRARIES", ("numpy", "no-such-library"))
    result = evaluate(Y, A, flavor="lightgbm", k=3)
    page = Page(result.to_html())
    formula, *lines = result.flavor.describe().split("\n")
    assert formula in page.text
    for line in lines:
        assert " ".join(line.split()) in page.text
    several = Page(evaluate(Y, A, k=(3, None)).to_html()).text
    assert "In words for k = 3, the first cut-off" in several
    assert "D(r) = 0 for r > 3" in several
    assert f"numpy {version('numpy')}" in page.text
    assert "no-such-library" not in page.text
    assert str(Path.cwd()) not in page.text


@pytest.mark.usefixtures("undrawn")
def test_what_the_caller_adds():
    page = Page(compared().to_html(title="A & B", command="evaluate(y, s) < 1", date=datetime.date(2026, 5, 1)))
    assert ("title", {}) in page.tags
    assert page.words.count("A & B") == 2  # the title and the heading
    assert "evaluate(y, s) < 1" in page.words
    assert "2026-05-01" in page.text
    assert r"half of a pair \udcff" in Page(evaluate(Y, A).to_html(title="half of a pair \udcff")).words
    assert "May" in Page(evaluate(Y, A).to_html(date="in May")).text


def test_the_same_result_gives_the_same_page():
    result = evaluate(Y, A, k=3, by=["a", "b", "a", "b", "a"])
    first = result.to_html()
    before = dict(matplotlib.rcParams)
    changed = {
        "axes.facecolor": "red",
        "lines.linewidth": 9,
        "font.size": 30,
        "svg.fonttype": "path",
        "xtick.labelsize": 3,
    }
    with matplotlib.rc_context(changed):
        state = dict(matplotlib.rcParams)
        assert result.to_html() == first
        assert dict(matplotlib.rcParams) == state
    assert dict(matplotlib.rcParams) == before
    prepare(Y, k=1).evaluate(A)  # another evaluation in between does not show
    assert result.to_html() == first
    assert compared().to_html() == compared().to_html()
    assert result.to_html(seed=1) != first


@pytest.mark.usefixtures("undrawn")
def test_verdicts_stand_open_and_the_rest_is_folded():
    names = ["old", "new", "third", "fourth"]
    four = by_scores(A, B, Y, [row[::-1] for row in A], y_true=Y, names=names, seed=0)
    page = Page(four.to_html())
    verdicts = page.table("b against a")
    assert page.open_tables() == [["system", "NDCG"], ["b against a", "b - a, NDCG", "p adjusted", "verdict on b"]]
    assert verdicts == [
        [f"{pair.b} against {pair.a}", f"{pair.difference:+.4f}", f"{pair.p_adjusted:.4f}", pair.verdict]
        for pair in four.pairs
    ]
    assert len(page.table("a", "b")) == 6
    [[name, _, p, verdict]] = (two := Page(compared().to_html())).table("b against a")
    pair = compared().pairs[0]
    assert (name, p, verdict) == ("new against old", f"{pair.p_value:.4f}", pair.verdict)
    assert [head[0] for head in two.open_tables()] == ["system", "b against a"]
    assert [head[0] for head in Page(evaluate(Y, A, by=["a"] * 5).to_html()).open_tables()] == ["", "slice"]
    assert [head[0] for head in Page(evaluate(Y * 3, A * 3, by=list(range(15))).to_html()).open_tables()] == [""]


@pytest.mark.usefixtures("undrawn")
def test_verdicts_of_many_pairs_leave_room_for_the_picture():
    six = by_scores(*[np.array(A) + 0.1 * i for i in range(6)], y_true=Y, seed=0)
    page = Page(six.to_html())
    assert len(page.table("b against a")) == 10
    assert len(page.table("a", "b")) == 15
    assert "The first 10 of 15 pairs" in page.text


# -- what cannot be computed or drawn -------------------------------------------------------------------------------


@pytest.mark.usefixtures("undrawn")
def test_a_single_query_has_no_interval():
    text = Page(evaluate([[3, 0, 1]], [[1, 2, 3]]).to_html()).text
    assert "There is no interval: at least two queries must count in the mean" in text


def test_nothing_to_draw_is_said():
    text = Page(evaluate([[0, 0], [0, 0]], [[1, 2], [1, 2]], flavor="sklearn[empty=nan]", k=(1, 2)).to_html()).text
    assert "There is no interval" in text
    assert text.count("There is no drawing of") == 1
    assert "No query loses DCG@1" in text


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"top": -1}, ValueError, "top must be an integer >= 0"),
        ({"digits": 1.5}, TypeError, "digits must be an integer >= 0"),
        ({"title": 3}, TypeError, "title must be text or None; got 3 of type int"),
        ({"command": ["ls"]}, TypeError, "command must be text or None"),
        ({"date": 2026}, TypeError, "date must be a date, text or None"),
        ({"confidence": 95}, ValueError, "confidence must be above 0 and below 1"),
        ({"method": "bootstrap"}, ValueError, "method must be one of"),
        ({"n_resamples": 0}, ValueError, "n_resamples must be an integer >= 1"),
        ({"seed": -1}, ValueError, "seed must be an integer >= 0"),
    ],
)
def test_wrong_arguments(options, error, words):
    with pytest.raises(error, match=re.escape(words)):
        evaluate(Y, A).to_html(**options)
    if not options.keys() & {"confidence", "method", "n_resamples", "seed"}:
        with pytest.raises(error, match=re.escape(words)):
            compared().to_html(**options)


@pytest.mark.parametrize("missing", ["jinja2", "matplotlib"])
def test_without_a_library_the_extra_is_named(monkeypatch, missing):
    for name in [name for name in sys.modules if name.partition(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    for result in (evaluate(Y, A), compared()):
        with pytest.raises(ImportError, match=rf"{missing}.*pip install 'ndcg_ml\[report\]'"):
            result.to_html()


# -- what it must not hold --------------------------------------------------------------------------------------------


def hostile_pages() -> list[str]:
    flat, scores = np.ravel(Y), np.ravel(A)
    qid = np.empty(20, dtype=object)
    qid[:] = [HOSTILE[i // 4] for i in range(20)]
    by = {HOSTILE[0]: [HOSTILE[i // 4] for i in range(20)]}
    said = {"title": HOSTILE[0], "command": HOSTILE[2], "date": HOSTILE[1]}
    systems = [evaluate(flat, np.ravel(s), qid=qid) for s in (A, B, Y)]
    return [
        evaluate(flat, scores, qid=qid, by=by, k=(1, 3)).to_html(**said),
        compare(*systems[:2], names=HOSTILE[:2], seed=0).to_html(**said),
        compare(*systems, names=HOSTILE[2:], seed=0).to_html(),
    ]


@pytest.fixture(scope="module")
def hostile() -> list[str]:
    return hostile_pages()


@pytest.mark.parametrize("at", range(3))
def test_hostile_ids_and_labels_stay_text(hostile, at):
    plain = [evaluate(Y, A, by=["a"] * 5, k=(1, 3)), compared(), by_scores(A, B, Y, y_true=Y, seed=0)][at]
    ours, theirs = (Page(text) for text in (plain.to_html(title="t", command="c", date="d"), hostile[at]))
    assert {tag for tag, _ in theirs.tags} <= {tag for tag, _ in ours.tags}
    assert "script" not in {tag for tag, _ in theirs.tags}
    assert not [name for _, attributes in theirs.tags for name in attributes if name.startswith("on")]
    assert "<script>alert(1)</script>" in theirs.text or at == 2
    assert "{{ 7 * 7 }}" in theirs.text or at == 1
    assert "x" * 200 not in hostile[at]
    hostile[at].encode("utf-8")
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", hostile[at])


@pytest.mark.parametrize("at", range(3))
def test_nothing_is_loaded_and_no_id_is_used_twice(hostile, at):
    page = Page(hostile[at])
    for _, attributes in page.tags:
        for name, value in attributes.items():
            if name.rpartition(":")[2] in ("src", "href", "action", "data", "poster", "srcset"):
                assert value.startswith(("#", "data:,"))
            assert not re.search(r"url\((?!#)", value or "")
            assert "//" not in (value or "") or name.startswith("xmlns") or "alert" in value
    used = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(used) == len(set(used)) > 0
    wanted = set(re.findall(r'(?:xlink:href="|url\()#([^")]+)', hostile[at]))
    assert wanted <= set(used)
    [policy] = [attributes["content"] for _, attributes in page.tags if "http-equiv" in attributes]
    assert policy.startswith("default-src 'none'")
    assert unescape(page.text) == page.text.replace("&amp;", "&")


# -- the file ---------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("undrawn")
def test_the_file_is_the_page(tmp_path):
    result = evaluate(Y, A)
    file = tmp_path / "report.html"
    page = result.to_html()
    assert result.to_html(file) == file
    assert file.read_text(encoding="utf-8") == page
    assert compared().to_html(str(file)) == file
    assert file.read_text(encoding="utf-8") == compared().to_html()
    assert os.listdir(tmp_path) == ["report.html"]


@pytest.mark.usefixtures("undrawn")
@pytest.mark.skipif(os.name != "posix", reason="links and modes are those of POSIX")
def test_an_older_file_is_replaced_with_its_mode_and_through_a_link(tmp_path):
    (tmp_path / "real.html").write_text("older")
    (tmp_path / "real.html").chmod(0o640)
    (tmp_path / "report.html").symlink_to("real.html")
    evaluate(Y, A).to_html(tmp_path / "report.html")
    assert (tmp_path / "real.html").read_text(encoding="utf-8") == evaluate(Y, A).to_html()
    assert (tmp_path / "report.html").is_symlink()
    assert (tmp_path / "real.html").stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(tmp_path)) == ["real.html", "report.html"]


@pytest.mark.usefixtures("undrawn")
def test_what_fails_leaves_the_older_file(tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    file = tmp_path / "report.html"
    file.write_text("older")
    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        evaluate(Y, A).to_html(file)
    assert caught.value.filename == str(file)
    assert file.read_text() == "older"
    assert os.listdir(tmp_path) == ["report.html"]
    with pytest.raises(OSError, match=r"none.*report\.html"):
        evaluate(Y, A).to_html(tmp_path / "none" / "report.html")
    with pytest.raises(OSError, match="directory"):
        evaluate(Y, A).to_html(tmp_path)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_device_is_written_to_and_not_replaced():
    with pytest.raises(OSError, match=r"No space left on device: '/dev/full'"):
        evaluate(Y, A).to_html("/dev/full")
    evaluate(Y, A).to_html("/dev/null")
    assert not Path("/dev/null").is_file()
    assert not Path("/dev/full").is_file()


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    "make", [lambda **said: evaluate(Y, A).to_html(**said), lambda **said: compared().to_html(**said)]
)
def test_no_control_or_turning_character_reaches_the_page(make):
    """A title, a date and a command may come from file names of strangers; a command may have lines."""
    page = make(title="a\x1b[2Jb\u202ec", date="May\x00", command="one\n two\u2066\x07")
    assert not {each for each in page if not each.isprintable()} - {"\n"}
    for told in (r"a\x1b[2Jb\u202ec", r"May\x00", "one\n two" + r"\u2066\x07"):
        assert told in page
