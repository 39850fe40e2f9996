"""``ndcg-ml gate``: outcomes, exit codes, refusals. ``ndcg-ml judge-next``: the file to fill in, and its judgements."""

import json
import pickle
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest
from command_line import ANSI, document, invoke
from hypothesis import given
from hypothesis import strategies as st

from ndcg_ml import Evaluation, compare, evaluate, evaluate_ranked, evaluate_run, with_labels
from ndcg_ml._files.saved import digest
from ndcg_ml.gating import GateError
from ndcg_ml.gating import gate as gated

N = 40
TO_JUDGE = "q1 0 d1 2\nq1 0 d2 0\nq2 0 d5 1\n"
RNG = np.random.default_rng(0)
QRELS = {f"q{i}": {f"d{j}": int(RNG.integers(0, 3)) for j in range(12)} for i in range(N)}


def noisy(scores, noise):
    return {q: {d: score + RNG.normal() * noise for d, score in v.items()} for q, v in scores.items()}


OLD = noisy(QRELS, 0.5)
RUNS = {"old": OLD, "alike": noisy(OLD, 0.02), "worse": noisy(QRELS, 3.0), "noisy": noisy(OLD, 0.5), "better": QRELS}


def write(name, data):
    Path(name).write_text(json.dumps(data))


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    for name, data in {"qrels": QRELS, **RUNS}.items():
        write(f"{name}.json", data)
    assert invoke("eval --qrels qrels.json --run old.json -k 10 --save base.json").exit_code == 0
    Path("q.txt").write_text(TO_JUDGE)
    Path("a.run").write_text("q1 Q0 d1 1 2 x\nq1 Q0 d9 2 1 x\nq2 Q0 d6 1 2 x\nq2 Q0 d5 2 1 x\n")
    Path("b.run").write_text("q1 Q0 d3 1 2 x\nq1 Q0 d1 2 1 x\nq2 Q0 d5 1 2 x\nq2 Q0 d7 2 1 x\n")
    return tmp_path


@pytest.mark.parametrize(
    ("run", "margin"), [("old", 0.001), ("alike", 0.02), ("better", 0.01), ("worse", 0.01), ("noisy", 0.0001)]
)
def test_the_outcome_is_that_of_compare(run, margin):
    result = invoke(f"gate base.json --run {run}.json --margin {margin}")
    both = compare(Evaluation.load("base.json"), evaluate_run("qrels.json", f"{run}.json", k=10), margin=margin, seed=0)
    code, words = {
        "worse": (3, "worse: ndcg@10"),
        "undecided": (4, "cannot tell whether it is worse by more than the margin of"),
        "unchanged": (0, "unchanged: no query has a different value"),
    }.get(both.verdict, (0, f"not worse by more than the margin of {margin}"))
    assert result.exit_code == code, result.output
    assert result.stdout.startswith(words)
    assert f"{both.interval.low:+.4f} to {both.interval.high:+.4f}" in result.stdout
    assert both.verdict in result.stdout
    says = both.verdict in ("better", "not worse", "equivalent", "unchanged")
    assert ("Note: 40 queries can miss a problem that 7.2 % of queries have; with " in result.stdout) == says
    assert ("Note: queries that lose most, ndcg@10: " in result.stdout) == (both.verdict == "worse")


def test_what_cannot_be_told_says_how_many_queries_it_takes():
    few = dict(list(QRELS.items())[:10])
    runs = {"few_old": {q: OLD[q] for q in few}, "few_new": {q: RUNS["noisy"][q] for q in few}}
    for name, data in {"few_qrels": few, **runs}.items():
        write(f"{name}.json", data)
    assert invoke("eval --qrels few_qrels.json --run few_old.json -k 10 --save few.json").exit_code == 0
    both = compare(Evaluation.load("few.json"), evaluate_run(few, "few_new.json", k=10), margin=0.005, seed=0)
    found = document("gate few.json --run few_new.json --margin 0.005 --markdown few.md", ok=(4,))
    needed = found["queries_needed"]
    # (z(.975) + z(.8)) sd / sqrt(N) is the margin.
    assert needed == pytest.approx((2.80159 / 0.005) ** 2 * ((both.ndcg @ [-1, 1]) ** 2).sum() / 9, rel=0.01)
    assert found["outcome"] == "undecided"
    words = (
        f"cannot tell whether it is worse by more than the margin of 0.005 (10 queries, about {needed} needed): ndcg@10"
    )
    assert Path("few.md").read_text().replace("\\", "").startswith(f"**{words}")


def turned(n, n_worse, n_better):
    """Two evaluations of queries with one relevant document, which some rank second instead of first, or first."""
    first = np.arange(n) % 2 == 0
    moved = np.isin(np.arange(n), [*np.flatnonzero(first)[:n_worse], *np.flatnonzero(~first)[:n_better]])
    return [evaluate([[1, 0]] * n, np.where(np.c_[top, ~top], 1, 0)) for top in (first, first ^ moved)]


def test_few_changed_queries_need_as_many_as_their_charge_takes():
    stats = pytest.importorskip("scipy.stats")
    found = gated(*turned(50, 2, 2), margin=0.02)
    size, share, z = 1 - 1 / np.log2(3), 4 / 50, stats.norm.ppf(0.8)

    def passes(n):
        m = share * n
        error, reach = size * np.sqrt(share * 50 / 49 / n), stats.t.ppf(0.975, max(1, m - 1)) / np.sqrt(m - 1)
        unseen = stats.beta.ppf(1 - 0.05 / 4, m + 1, n - m) - share
        by_mean = unseen * reach * size * np.sqrt(50 / 49) + z * error * (1 + unseen / share)
        return max((stats.t.ppf(0.975, n - 1) + z) * error, min(unseen * size + z * error, by_mean)) <= 0.02

    assert found.outcome == "undecided"
    assert f"(50 queries, about {found.queries_needed} needed)" in found.sentence()
    assert [passes(found.queries_needed - fewer) for fewer in (1, 0)] == [False, True]


def test_a_run_that_is_undecided_with_enough_queries_may_be_worse():
    found = gated(*turned(200, 58, 42), margin=0.06)
    assert (found.outcome, found.queries_needed) == ("undecided", 151)  # (2.80 .262 / .06)^2, and little for t
    assert "(200 queries; equal systems pass with 151 in 4 of 5 cases, so this one may be worse)" in found.sentence()


def test_json_markdown_and_html(files):
    found = document("gate base.json --run worse.json --margin 0.01 --markdown summary.md", ok=(3,))
    [check] = found["checks"]
    assert found["outcome"] == check["verdict"] == "worse"
    assert (check["k"], check["segment"], check["n_queries"]) == (10, None, N)
    assert check["unseen"] == pytest.approx(1 - 0.05 ** (1 / N))
    assert check["new"] - check["before"] == pytest.approx(check["difference"])
    assert check["high"] < 0
    assert found["changes"] == found["unanswered"] == []
    markdown = Path("summary.md").read_text()
    assert markdown.startswith("**worse: ndcg@10**\n\n| metric | queries of |")
    assert "margin 0.01" in markdown
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    assert invoke("gate base.json --run old.json --margin 0.01 --html report.html").exit_code == 0
    assert "<html" in Path("report.html").read_text()


def saves(name, run, more=""):
    return invoke(f"eval --qrels qrels.json --run {run}.json -k 10 --save {name}.json {more}").exit_code == 0


def test_a_run_must_pass_against_the_baseline_and_the_last_run():
    """A step back from a better run than the baseline is no loss since the baseline."""
    assert saves("base", "old", "--save-margin 0.01")
    gate = "gate base.json --last last.json --run"
    refused = invoke(f"{gate} better.json")
    assert (refused.exit_code, "--save-last begins it." in refused.stderr) == (2, True)
    for run, code in (("worse", 3), ("better", 0), ("old", 3), ("better", 0)):
        result = invoke(f"{gate} {run}.json --save-last")
        assert result.exit_code == code, result.output
        saved = Path("last.json").exists() and Evaluation.load("last.json").value
        better = evaluate_run("qrels.json", "better.json", k=10).value
        assert saved == (False if run == "worse" else {10: better})  # a worse run is not saved
    found = invoke(f"{gate} old.json")
    assert found.stdout.startswith("worse: ndcg@10 against the last run\n")
    assert "margin 0.01; confidence 0.95 with each reference" in found.stdout
    [line] = [line for line in found.stdout.splitlines() if line.startswith("Note: queries that lose most")]
    lost = compare(*(evaluate_run("qrels.json", f"{run}.json", k=10) for run in ("better", "old")))
    worst = lost.qid[np.argsort(lost.ndcg @ [-1, 1], kind="stable")[:5]]
    assert [part.split()[0] for part in line.partition("last run: ")[2].split(", ")] == [f"'{q}'" for q in worst]
    checks = document(f"{gate} old.json --margin 0.02", ok=(3,))["checks"]
    assert [(check["reference"], check["verdict"]) for check in checks] == [
        ("baseline", "unchanged"),
        ("last run", "worse"),
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("gate base.json --run old.json", "--margin must be given, because the baseline was saved without a margin"),
        ("gate base.json --run old.json --margin .1 --save-last", "--save-last requires --last"),
        ("gate base.json --run old.json --margin .1 --last base.json", "--last would replace 'base.json', an input"),
        ("eval --qrels qrels.json --run old.json --save-margin .1", "--save-margin requires --save"),
    ],
)
def test_what_the_last_run_and_the_margin_require(arguments, words):
    result = invoke(arguments)
    assert (result.exit_code, words in ANSI.sub("", result.stderr)) == (2, True), result.stderr


def test_a_last_run_with_other_judgements_is_refused_by_name():
    write("qrels.json", {**QRELS, "q1": {"d1": 9}})
    assert saves("last", "old")
    write("qrels.json", QRELS)
    result = invoke("gate base.json --run old.json --margin .01 --last last.json")
    assert (result.exit_code, "Remove the file of the last run, or leave" in result.stderr) == (1, True)
    Path("segments").write_text("".join(f"q{i} {'ab'[i % 2]}\n" for i in range(N)))
    found = document("gate base.json --run old.json --margin .01 --last last.json --on-change drop --by segments")
    assert [check["n_queries"] for check in found["checks"]] == [N, N - 1, 20, 20, 20, 19]


def test_cut_offs_and_segments_share_the_level():
    assert invoke("eval --qrels qrels.json --run old.json --queries both -k 5 -k 10 --save several.json").exit_code == 0
    Path("segments").write_text("".join(f"q{i} {'rare' if i < 3 else 'ab'[i % 2]}\n" for i in range(N)))
    found = document("gate several.json --run noisy.json --margin 0.05 --by segments", ok=(0, 3, 4))
    asked = [(check["k"], check["segment"]) for check in found["checks"]]
    assert asked[:2] == [(5, None), (10, None)]
    assert sorted(asked[2:]) == [(k, f"segments={name}") for k in (5, 10) for name in ("a", "b", "rare")]
    new, how = evaluate_run("qrels.json", "noisy.json", k=(5, 10)), {"margin": 0.05, "confidence": 1 - 0.05 / 4}
    both = compare(Evaluation.load("several.json"), new, k=5, seed=0, **how)
    assert [found["checks"][0][end] for end in ("low", "high")] == [both.interval.low, both.interval.high]
    rare = [check for check in found["checks"] if check["segment"] == "segments=rare"]
    assert [check["verdict"] for check in rare] == ["too few", "too few"]


def test_a_segment_that_is_worse_fails_the_whole():
    half = {q: (RUNS["worse"] if i % 2 else QRELS)[q] for i, q in enumerate(QRELS)}
    write("half.json", half)
    Path("segments").write_text("".join(f"q{i} {'ab'[i % 2]}\n" for i in range(N)))
    result = invoke("gate base.json --run half.json --margin 0.14 --by segments")
    assert result.exit_code == 3, result.output
    assert result.stdout.startswith("worse: ndcg@10 of segments=b")
    [line] = [line for line in result.stdout.splitlines() if line.startswith("Note: queries that lose most")]
    assert "ndcg@10 of segments=b: 'q" in line
    assert all(int(part.split("'")[1][1:]) % 2 for part in line.partition("=b: ")[2].split(", "))


def test_queries_without_an_answer_are_named():
    write("new.json", {**RUNS["alike"], "q3": {}, "q7": {}})
    result = invoke("gate base.json --run new.json --margin 0.01")
    assert "queries for which the new run returns no documents: 'q3', 'q7' (2)" in result.stdout
    assert document("gate base.json --run new.json --margin 0.01", ok=(0, 3, 4))["unanswered"] == ["q3", "q7"]


@pytest.mark.parametrize("n", [1, 2, 5, 6, 1000, *[pytest.param(n, marks=pytest.mark.long) for n in (1024, 20_000)]])
def test_a_run_that_is_unchanged_passes(n):
    Path("qrels").write_text("".join(f"q{i} 0 d{j} {i * j % 3}\n" for i in range(n) for j in range(1, 6)))
    Path("run").write_text("".join(f"q{i} Q0 d{j} 1 {i * j % 7} t\n" for i in range(n) for j in range(6)))
    assert invoke("eval --qrels qrels --run run -k 10 --save base.json").exit_code == 0
    result = invoke("gate base.json --run run --margin .001")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("change", "words", "left"),
    [
        (lambda q: q["q1"].update(d1=9), "queries whose judgements changed: 'q1' (1)", N - 1),
        (lambda q: q["q1"].update(d77=0), "queries whose judgements changed: 'q1' (1)", N - 1),
        (lambda q: q["q2"].pop("d3"), "queries whose judgements changed: 'q2' (1)", N - 1),
        (lambda q: q.pop("q2"), "queries missing from the new evaluation: 'q2' (1)", N - 1),
        (lambda q: q.update(new={"d1": 1}), "queries that are not in the baseline: 'new' (1)", N),
    ],
)
def test_changes_are_refused_or_left_out(change, words, left):
    qrels = {q: dict(v) for q, v in QRELS.items()}
    change(qrels)
    write("qrels.json", qrels)
    result = invoke("gate base.json --run alike.json --margin 0.02")
    assert result.exit_code == 1
    assert words in result.stderr
    assert "leave these queries out with --on-change drop.\n" in result.stderr
    assert result.stdout == ""
    found = document("gate base.json --run alike.json --margin 0.02 --on-change drop")
    assert found["checks"][0]["n_queries"] == left
    assert found["changes"][0] == f"{words}; these are left out"
    if left < N:
        [query] = set(QRELS) - set(qrels) or {words[-7:-5]}
        value = Evaluation.load("base.json").per_query.ndcg[list(QRELS).index(query), 0]
        assert f"of the omitted queries in the baseline: '{query}' {value:.4f} (together" in found["changes"][1]


def test_other_exclusions_are_refused_by_name():
    Path("one").write_text("".join(f"q{i} d1\n" for i in range(N)))
    Path("other").write_text("".join(f"q{i} 0 d1 nan\n" for i in range(1, N)) + "q0 0 d2 1\n")
    assert invoke("eval --qrels qrels.json --run old.json -k 10 --exclude one --save base.json").exit_code == 0
    assert invoke("gate base.json --run old.json --margin .01 --exclude one").exit_code == 0
    Path("none").write_text("")
    assert invoke("eval --qrels qrels.json --run old.json --exclude none").exit_code == 0
    result = invoke("gate base.json --run old.json --margin .01 --exclude other")
    assert result.exit_code == 1
    assert "queries whose exclusions changed: 'q0' (1)" in result.stderr
    assert "--on-change drop" in result.stderr
    assert invoke("gate base.json --run old.json --margin .01 --exclude other --on-change drop").exit_code == 0
    assert "exclude= given in the baseline and none now" in invoke("gate base.json --run old.json --margin .01").stderr


def test_at_most_a_tenth_may_be_left_out():
    write("qrels.json", {q: v for i, (q, v) in enumerate(QRELS.items()) if i > 4})
    for more, code in (("", 1), ("--drop-at-most 0.12", 1), ("--drop-at-most 0.125", 0)):
        result = invoke(f"gate base.json --run old.json --margin .01 --on-change drop {more}")
        assert result.exit_code == code
        assert code == 0 or f"(--drop-at-most); got 5 of {N}: " in result.stderr


BASE = evaluate([[1, 0]] * 8, [[2, 1]] * 8)


def test_a_confidence_of_nearly_0_is_one():
    assert gated(BASE, BASE, margin=0.01, confidence=1e-300).outcome == "unchanged"


def test_the_caption_counts_the_checks_and_the_notes_date_the_baseline():
    several, by = evaluate([[1, 0]] * 30, [[2, 1]] * 30, k=(1, 2)), {i: "rare" if i < 3 else i % 2 for i in range(30)}
    found = replace(gated(several, several, margin=0.01, by=by), saved=date.today() - timedelta(days=3))
    assert "; margin 0.01; confidence 0.95 over all 6 checks; two-sided" in found.caption()
    assert "; confidence 0.95; two-sided" in gated(BASE, BASE, margin=0.01).caption()
    assert "(3 days ago)" in found.notes()[-1]


@pytest.mark.parametrize("other", [pickle.loads(pickle.dumps(BASE)), evaluate_ranked([[1, 0]] * 8)])
def test_labels_that_are_not_known_are_refused(other):
    with pytest.raises(GateError, match="must hold their labels"):
        gated(other, other, margin=0.01)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("base.json --run alike.json --margin .01 -k 5", 2, "No such option"),
        ("base.json --run alike.json --margin .01 --queries both", 1, "queries= qrels in the baseline and both now"),
        ("base.json --run alike.json --margin .01 --exclude identical", 1, "exclude= none in the baseline and given"),
        ("base.json --table table.csv --margin .01", 1, "data judgements and a run in the baseline and labels"),
        ("base.json --run alike.json --margin 0", 2, "0<x<1"),
        ("base.json --run alike.json --margin 1", 2, "0<x<1"),
        ("base.json --run bad.json --margin .01", 1, "bad.json, line "),
        ("base.json --run nothing.json --margin .01", 1, "for at least one query; new returns none for 40"),
        ("base.json --run alike.json --margin .01 --drop-at-most nan", 1, "drop_at_most must be from 0 to 1; got nan"),
        ("base.json --run alike.json --margin .01 --by one", 1, "one: must have a label for each query"),
        ("base.json --run alike.json --margin .01 --markdown nowhere/s.md", 2, "nowhere"),
        ("old.json --run old.json --margin .01", 1, "old.json: must be a file that Evaluation.save wrote"),
        ("nowhere.json --run old.json --margin .01", 2, "nowhere.json"),
    ],
)  # fmt: skip
def test_what_is_refused(arguments, code, words):
    Path("table.csv").write_text("qid,label,score,docno\n" + "".join(f"q{i},1,1,a\nq{i},0,2,b\n" for i in range(N)))
    Path("bad.json").write_text('{"q1": 1,\n')
    Path("one").write_text("q1 a\n")
    write("nothing.json", {"q1": []})
    result = invoke(f"gate {arguments}")
    assert result.exit_code == code, result.output
    assert words in ANSI.sub("", result.stderr)
    assert result.stdout == ""


def test_judgements_are_found_beside_the_baseline(files):
    (files / "data").mkdir()
    assert invoke("eval --qrels qrels.json --run old.json -k 10 --save data/base.json").exit_code == 0
    result = invoke("gate data/base.json --run old.json --margin .01")
    assert result.exit_code == 2
    assert "names no judgements in its folder or below" in result.stderr
    assert invoke("gate data/base.json --run old.json --qrels qrels.json --margin .01").exit_code == 0
    Path("data/judged.csv").write_text("sujet,piece,note\nq1,a,1\n")
    Path("data/run.csv").write_text("qid,docno,score\nq1,a,1\n")
    names = "--query sujet --query qid --document piece --document docno --label note"
    assert invoke(f"eval --qrels data/judged.csv --run data/run.csv {names} --save data/own.json").exit_code == 0
    result = invoke("gate data/own.json --run data/run.csv --margin .01")
    assert "Give --document and other names of columns as for eval" in result.stderr
    assert invoke(f"gate data/own.json --run data/run.csv --margin .01 {names}").exit_code in (0, 4)
    Path("qrels.json").rename("moved.json")
    result = invoke("gate base.json --run old.json --margin .01")
    assert result.exit_code == 2
    assert "the judgements of the baseline, 'qrels.json', do not exist" in result.stderr
    assert invoke("gate base.json --run old.json --qrels moved.json --margin .01").exit_code == 0


@pytest.mark.parametrize(
    "place", ["../secret", "/etc/hostname", "link", "data/../../secret", "near", "C:/secret", "//host/share/secret"]
)
def test_a_baseline_of_a_stranger_shows_no_file(files, place):
    """The author of a baseline can write its digest too."""
    (files / "repository").mkdir()
    (files / "secret").write_text("password\n")
    (files / "repository" / "near").write_text("password\n")
    (files / "repository" / "link").symlink_to("../secret")
    stored = json.loads(Path("base.json").read_text())
    del stored["digest"]
    stored["qrels"] = place
    Path("repository/base.json").write_text(json.dumps({**stored, "digest": digest(stored)}))
    gate = "gate repository/base.json --run old.json --margin .01"
    result = invoke(gate)
    assert result.exit_code in (1, 2)
    assert "--qrels" in result.stderr
    assert "password" not in result.output
    # To look whether a file of another host exists is to ask that host.
    assert place[1] not in ":/" or "are not in its folder or below" in result.stderr
    assert place != "near" or "line 1" in invoke(f"{gate} --qrels repository/near").stderr


@pytest.mark.parametrize("data", ["--table {}.csv", "--labels {}.letor --scores {}.scores"])
def test_tables_and_labels_have_gates_too(data):
    """A label that moved to the new top document is noticed, although the counts and the ideal are the same."""
    for name, labels, scores in (("old", "10", "21"), ("new", "10", "12"), ("moved", "01", "12")):
        rows = [(i, label, score) for i in range(20) for label, score in zip(labels, scores, strict=True)]
        Path(f"{name}.csv").write_text("qid,label,score\n" + "".join(f"q{i},{y},{s}\n" for i, y, s in rows))
        Path(f"{name}.letor").write_text("".join(f"{y} qid:{i}\n" for i, y, _ in rows))
        Path(f"{name}.scores").write_text("".join(f"{s}\n" for _, _, s in rows))
    assert invoke(f"eval {data.replace('{}', 'old')} -k 5 --save table.json").exit_code == 0
    for name, code in (("old", 0), ("new", 3), ("moved", 1)):
        result = invoke(f"gate table.json {data.replace('{}', name)} --margin .01")
        assert result.exit_code == code
    assert "queries whose judgements changed" in result.stderr
    assert "Documents without ids must be in the same order." in result.stderr


# -- judge-next -------------------------------------------------------------------------------------------------------


def called(*arguments):
    result = invoke("judge-next a.run b.run --qrels q.txt -k 2", *arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_file_goes_round_until_the_sign_is_settled():
    rounds = 0
    filled = []
    while "Missing labels cannot change who leads" not in called(
        "-n", "1", "--output", f"todo{rounds}", *filled, "--write-qrels", "more.txt"
    ):
        todo = Path(f"todo{rounds}")
        line = json.loads(todo.read_text())
        line["label"] = 2 if line["docno"] == "d3" else 0
        todo.write_text(json.dumps(line))
        filled += ["--filled", todo]
        rounds += 1
    assert 1 <= rounds <= 4
    assert not Path(f"todo{rounds}").read_text()
    judged = Path("more.txt").read_text().splitlines()
    assert len(judged) == len(TO_JUDGE.splitlines()) + rounds
    assert set(TO_JUDGE.splitlines()) <= set(judged)


def test_written_judgements_have_every_digit_and_every_topic():
    labels = [0.1234567, 1234567, 2.0000004, 1e-7, 2**53]
    rows = [
        {"qid": qid, "docno": f"d\u00a0{at}", "label": y} for qid in ("q1", "\u00a0q") for at, y in enumerate(labels)
    ]
    Path("filled.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    called("--filled", "filled.jsonl", "--write-qrels", "more.txt")
    assert with_labels("more.txt", []) == with_labels("q.txt", ["filled.jsonl"])
    assert set(TO_JUDGE.splitlines()) <= set(Path("more.txt").read_text().splitlines())


NAMES = st.text(st.characters(), max_size=4) | st.sampled_from(["#", "\ufeff", "\x85", "\u2028", "#q"])
GRADES = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53)


@given(st.dictionaries(NAMES, st.dictionaries(NAMES, GRADES, min_size=1, max_size=3), max_size=3))
def test_judgements_are_written_so_that_they_are_read_back_or_refused(more):
    Path("drawn.json").write_text(json.dumps({**more, "q1": {"d1": 1}}))
    result = invoke("judge-next a.run b.run --qrels drawn.json --write-qrels more.txt")
    if result.exit_code == 0:
        assert with_labels("more.txt", []) == with_labels("drawn.json", [])
    else:
        assert result.stderr.startswith("Error: ")
        assert result.stderr.count("\n") == 1
