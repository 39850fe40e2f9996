"""What was saved comes back, a file that was not saved is refused, and the gate sees what changed since."""

import copy
import gzip
import json
import os
import random
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace

import numpy as np
import pytest

from ndcg_ml import Evaluation, Flavor, compare, evaluate, evaluate_run
from ndcg_ml._files.opening import write_atomically
from ndcg_ml._files.saved import digest
from ndcg_ml.gating import GateError, gate
from ndcg_ml.readers import DataFileError
from ndcg_ml.results.evaluation import load

RNG = np.random.default_rng(0)
QRELS = {f"q{i}": {f"d{j}": int(RNG.integers(0, 4)) for j in range(8)} for i in range(12)}
RUN = {q: {d: g + RNG.normal() for d, g in v.items()} | {"other": 0.5} for q, v in QRELS.items() if q != "q3"} | {
    "x": {"d": 1}
}


def same(one, other):
    assert type(one) is type(other)
    for find in (str, lambda e: repr((e.value, e.k, e.flavor, e.n_empty)), lambda e: repr(e.to_dict(per_query=True))):
        assert find(one) == find(other)
    for name in one.per_query:
        assert one.per_query[name].dtype.kind == other.per_query[name].dtype.kind, name
        assert one.per_query[name].tolist() == other.per_query[name].tolist() or np.isnan(one.per_query[name]).any()
    assert np.array_equal(one._label_digests(), other._label_digests())
    assert np.array_equal(one.cluster, other.cluster)


def again(evaluation, folder):
    evaluation.save(folder / "base.json")
    return Evaluation.load(folder / "base.json")


@pytest.mark.parametrize("k", [5, None, (1, 5, None)])
@pytest.mark.parametrize("flavor", ["trec_eval", "lightgbm[unjudged=zero,ideal=global]", "trec_eval[aggregate=micro]"])
@pytest.mark.parametrize("queries", ["qrels", "both"])
def test_a_run_comes_back(tmp_path, k, flavor, queries):
    result = evaluate_run(QRELS, RUN, flavor=flavor, k=k, queries=queries)
    same(again(result, tmp_path), result)


@pytest.mark.parametrize("qid", [np.repeat([7, 3, 2**70], 4), np.repeat(["a", "b\0", "é"], 4).astype(object)])
@pytest.mark.parametrize("flavor", ["sklearn[empty=nan]", "lightgbm", Flavor(gain=(0, 1, 5), empty="skip")])
@pytest.mark.parametrize(("weight", "cluster"), [(None, ["u", "v", "u"]), ([0.5, 0.0, 3.0], None)])
def test_scores_come_back(tmp_path, qid, flavor, weight, cluster):
    y, s = np.array([2, 0, 1, 0, 0, 0, 0, 0, 1, 2, 0, 1]), RNG.normal(size=12).round(1)
    ids = list(dict.fromkeys(qid.tolist()))
    weight, cluster = (each and dict(zip(ids, each, strict=True)) for each in (weight, cluster))
    result = evaluate(y, s, qid=qid.tolist(), flavor=flavor, k=(1, 3), query_weight=weight, cluster=cluster)
    same(again(result, tmp_path), result)


def test_compare_refuses_changed_digests(tmp_path):
    base = again(evaluate_run(QRELS, RUN, k=5, flavor="trec_eval[ideal=local]"), tmp_path)
    changed = {**QRELS, "q1": {**QRELS["q1"], "d99": 0}}  # a document of grade 0 changes no ideal
    with pytest.raises(ValueError, match=r"judged documents or grades differ between a and b: 'q1' \(1\)"):
        compare(base, evaluate_run(changed, RUN, k=5, flavor="trec_eval[ideal=local]"))
    compare(base, evaluate_run(QRELS, RUN, k=5, flavor="trec_eval[ideal=local]"))


def test_the_digest_is_that_of_the_digests(tmp_path):
    result = evaluate_run(QRELS, RUN, k=5)
    shuffled = {q: dict(reversed(v.items())) for q, v in reversed(QRELS.items())}
    assert dict(zip(result.per_query.qid, result._digests, strict=True)) == dict(
        zip(*(lambda e: (e.per_query.qid, e._digests))(evaluate_run(shuffled, {"q1": ["d1"]}, k=1)), strict=True)
    )
    long = "x" * 100
    for change in ({"d1": 9}, {"d9": 0}, {"d1": -1}, {long + "a": 1}):
        other = evaluate_run({**QRELS, "q1": {**QRELS["q1"], **change}}, RUN, k=5)
        differ = other._digests != result._digests
        assert result.per_query.qid[differ].tolist() == ["q1"]
    one, two = (evaluate_run({"q1": {long + end: 1}}, {"q1": [long + end]}) for end in "ab")
    assert one._digests != two._digests


def test_digests_are_those_of_the_format():
    """A change of these numbers would make every baseline look changed."""
    qrels = {"q1": {"d1": 1, "d2": 0}, "q2": {"x" * 100: 0.5}, "q3": {"a document of three words": -0.0}}
    run = evaluate_run(qrels, {"q1": ["d1"]}, flavor="ranx", exclude={"q1": ["d7", "x" * 100]})
    table = evaluate([[2, 1]] * 2, [[1, 2]] * 2)  # positions count within a query
    named = evaluate([[2, 1]], [[1, 2]], doc_id=[["a", "b"]])
    found = [run._digests, run._excluded[:1], table._label_digests(), named._label_digests()]
    assert [f"{each:016x}" for each in np.concatenate(found).tolist()] == RECORDED


RECORDED = ["51d4d0de919e795e", "1ebabd1a10b8fc4e", "82db7c8b690fa543", "7ad5c3dedba03549", "47e6868faf494ef8"]
RECORDED += ["47e6868faf494ef8", "00319ecb23195321"]


def test_the_place_of_the_digests_is_kept_if_it_is_below(tmp_path):
    (tmp_path / "data").mkdir()
    result = evaluate_run(QRELS, RUN)
    for saved, qrels, place in (
        ("base.json", tmp_path / "data" / "qrels", "data/qrels"),
        ("data/base.json", tmp_path / "qrels", None),
        ("base.json", None, None),
    ):
        result.save(tmp_path / saved, qrels=qrels)
        assert load(tmp_path / saved)[1] == place


# -- hostile files ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "base.json"
    evaluate_run(QRELS, RUN, k=(3, 5), queries="qrels").save(path)
    return json.loads(path.read_text())


def put(document, path, value):
    changed = copy.deepcopy(document)
    *before, last = path
    inside = changed
    for each in before:
        inside = inside[each]
    inside[last] = value
    return changed


def places(inside, path=()):
    """Where the file has a value, one inside another; of its rows the first."""
    for key, value in inside.items() if isinstance(inside, dict) else enumerate(inside):
        if path != ("per_query",) or key == 0:
            yield (*path, key), value
            if isinstance(value, (dict, list)):
                yield from places(value, (*path, key))


@pytest.mark.parametrize("value", [None, True, -1, 1, 7, 0.5, 1e9, 2**64, "x", "q1", "both", "0" * 16, [], [3], {}])
def test_a_changed_file_is_refused(tmp_path, stored, value):
    changes = [(path, value) for path, before in places(stored) if repr(before) != repr(value)]
    for path, after in [*changes, (("more",), value), (("per_query", 0, "more"), value), (("run", "more"), value)]:
        (tmp_path / "base.json").write_text(json.dumps(put(stored, path, after)))
        with pytest.raises(
            DataFileError, match=r"base.json: must be a file that Evaluation.save wrote; .*(digest|save it again)"
        ) as e:
            Evaluation.load(tmp_path / "base.json")
        assert "\n" not in str(e.value)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("qrels", 5, "qrels must be a path or null; got 5"),
        ("per_query", [], "per_query must be a list of queries; got "),
    ],
)
def test_a_file_whose_digest_agrees_with_its_changes_is_checked_too(tmp_path, stored, name, value, words):
    changed = {**stored, name: value}
    del changed["digest"]
    (tmp_path / "base.json").write_text(json.dumps({**changed, "digest": digest(changed)}))
    with pytest.raises(DataFileError, match=rf"base.json: must be a file that Evaluation.save wrote; .*{words}"):
        load(tmp_path / "base.json")


NO_KEY, TWICE = "no key 'ndcg_ml_evaluation'", "each key once; got 'k' twice"


@pytest.mark.parametrize("case", [("{}", NO_KEY), ("[]", NO_KEY), ('{"k": 1, "k": 1}', TWICE), ("{", "it is not JSON")])
def test_another_file_is_refused(tmp_path, case):
    (tmp_path / "base.json").write_text(case[0])
    with pytest.raises(DataFileError, match=f"base.json: must be a file that Evaluation.save wrote; .*{case[1]}"):
        load(tmp_path / "base.json")


def test_the_digest_is_that_of_the_values_and_not_of_their_layout(tmp_path, stored):
    (tmp_path / "base.json").write_bytes(json.dumps(stored, indent=1).replace("\n", "\r\n").encode())
    with gzip.open(tmp_path / "base.gz", "wt") as file:
        json.dump(stored, file)
    for name in ("base.json", "base.gz"):
        assert list(Evaluation.load(tmp_path / name).value.values()) == stored["value"]


posix = pytest.mark.skipif(os.name != "posix", reason="links, modes and pipes are those of POSIX")

SAVING = """
import sys
from ndcg_ml import evaluate
k, file, seconds = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
result = evaluate([[3, 0, 1, 2]] * 500, [[1, 2, 3, 4]] * 500, k=k)
import time
result.save(file)
print("saved", flush=True)
end = time.monotonic() + seconds
while time.monotonic() < end:
    result.save(file)
"""


def saving(k, file, seconds):
    process = subprocess.Popen([sys.executable, "-c", SAVING, str(k), file, str(seconds)], stdout=subprocess.PIPE)
    assert process.stdout.readline().rstrip() == b"saved"
    return process


@posix
def test_a_file_keeps_its_mode_and_its_link(tmp_path):
    (tmp_path / "real").write_text("older")
    (tmp_path / "real").chmod(0o641)
    (tmp_path / "link").symlink_to("real")
    write_atomically(tmp_path / "link", "é\n")
    assert (tmp_path / "real").read_bytes() == "é\n".encode()
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o641
    assert sorted(os.listdir(tmp_path)) == ["link", "real"]


@pytest.mark.parametrize("step", ["os.open", "os.fsync", "os.replace"])
def test_what_fails_leaves_the_older_file(tmp_path, monkeypatch, step):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    file = tmp_path / "base.json"
    file.write_text("older")
    monkeypatch.setattr(step, full)
    for each in [file, tmp_path / "new.json"][: 1 if step == "os.open" else 2]:
        with pytest.raises(OSError, match="No space left on device") as caught:
            evaluate([[1, 0]], [[1, 2]]).save(each)
        assert caught.value.filename == str(each)
    assert file.read_text() == "older"
    assert os.listdir(tmp_path) == ["base.json"]


@posix
def test_pipes_and_the_standard_output_are_written_directly(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()
    write_atomically(tmp_path / "pipe", "text")
    reader.join()
    assert read == ["text"]
    code = "import sys; from ndcg_ml._files.opening import write_atomically; write_atomically(sys.argv[1], 'text')"
    for name in ("stdout", "stderr"):
        with (tmp_path / name).open("w+") as file:
            subprocess.run([sys.executable, "-c", code, f"/dev/{name}"], **{name: file}, check=True)
            assert (file.seek(0), file.read()) == (0, "text")  # the open file, not another of its name
    assert sorted(os.listdir(tmp_path)) == ["pipe", "stderr", "stdout"]


@pytest.mark.parametrize("times", [5, pytest.param(50, marks=pytest.mark.long)])
def test_a_process_that_is_killed_while_it_saves_leaves_a_whole_file(tmp_path, times):
    file, drawn = tmp_path / "base.json", random.Random(times)
    for number in range(times):
        before = "none" if number == 0 else Evaluation.load(file).k
        process = saving(number + 1, str(file), 60)
        time.sleep(drawn.random() / 50)
        process.kill()
        process.communicate()
        assert Evaluation.load(file).k in (before, number + 1)


@posix  # Windows refuses to replace a file that is open
def test_two_writers_never_leave_a_broken_file(tmp_path):
    file, loads = str(tmp_path / "base.json"), 0
    seconds = float(os.environ.get("NDCG_ML_TEST_SECONDS", "1"))
    writers = [saving(k, file, seconds) for k in (1, 2)]
    while any(writer.poll() is None for writer in writers):
        assert Evaluation.load(file).k in (1, 2)
        loads += 1
    assert loads
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0


# -- the gate sees every change of one thing that can move a number, or compares right


FLAVORS = [
    "trec_eval",
    "sklearn",
    "lightgbm",
    "trec_eval[ideal=given]",
    "sklearn[ties=first]",
    "trec_eval[ideal=local]",
]
SAID = {"exclusions": "exclu", "queries": "quer", "flavor": "flavor", "k": "cut-offs", "weights": "weights"}
SAID |= dict.fromkeys(("labels", "documents", "columns"), "judgements")


@dataclass(frozen=True)
class Setting:
    """All that an evaluation depends on, but for the scores."""

    kind: str
    labels: dict[str, dict[str, int]]
    column: str
    excluded: dict[str, list[str]] | None
    queries: str
    flavor: Flavor
    k: int
    weights: dict[str, float] | None

    def evaluate(self, scores):
        column = {
            q: {d: grade * (1 + (self.column == "other")) for d, grade in v.items()} for q, v in self.labels.items()
        }
        if self.kind == "run":
            return evaluate_run(
                column, scores, flavor=self.flavor, k=self.k, queries=self.queries, exclude=self.excluded
            )
        rows = [(q, d, grade, scores[q].get(d, 0.0)) for q, v in column.items() for d, grade in v.items()]
        qid, docs, y_true, y_score = zip(*rows, strict=True)
        weights = None if self.weights is None else {q: self.weights[q] for q in column}
        return evaluate(
            list(y_true), list(y_score), qid=list(qid), flavor=self.flavor, k=self.k, query_weight=weights,
            doc_id=list(docs) if self.kind == "documents" else None,
        )  # fmt: skip


def drawn(rng):
    """A setting, and the scores of a system."""
    kind = rng.choice(["run", "documents", "positions"])
    labels = {f"q{i}": {f"d{j}": rng.randrange(3) for j in range(rng.randrange(3, 7))} for i in range(8)}
    scores = {q: {d: float(rng.randrange(4)) for d in [*v, "new"]} for q, v in labels.items()}
    excluded = (
        {q: rng.sample(sorted(v), 1) for q, v in labels.items()} if kind == "run" and rng.random() < 0.5 else None
    )
    weights = (
        {q: float(rng.randrange(1, 4)) for q in [*labels, "more"]} if kind != "run" and rng.random() < 0.7 else None
    )
    flavor = Flavor.parse(rng.choice(FLAVORS)).replace(empty=0.0, unjudged="zero")
    if kind == "positions" and flavor.ties == "docid":
        flavor = flavor.replace(ties="average")
    return Setting(kind, labels, "one", excluded, "qrels", flavor, 3, weights), {
        **scores,
        "more": {"d0": 1.0, "d1": 0.0},
    }


def changed_labels(rng, documents, one, other, kind):
    """The labels of a query with one change."""
    # The order of the rows of a table is that of its system.
    change = rng.choice(["grade", "swap", "add", "remove", *["order"] * (kind == "run")])
    if change == "grade":
        documents[one] += 1
    elif change == "swap":
        documents[one], documents[other] = documents[other], documents[one]
    elif change == "add":
        documents["new"] = rng.randrange(3)
    elif change == "remove":
        del documents[one]
    else:
        return dict(rng.sample(sorted(documents.items()), len(documents)))
    return documents


def changed(rng, setting, what):
    """The setting with a change of this one thing; None where its kind of data does not have it."""
    labels = {q: dict(v) for q, v in setting.labels.items()}
    query = rng.choice(sorted(labels))
    documents = labels[query]
    one, other = rng.sample(sorted(documents), 2)
    if what == "labels":
        labels[query] = changed_labels(rng, documents, one, other, setting.kind)
    elif what == "documents" and setting.kind != "positions":
        labels[query] = {"renamed" if d == one else d: grade for d, grade in documents.items()}
    elif what == "queries":
        if setting.kind == "run" and rng.random() < 0.3:
            return replace(setting, queries="both")
        if rng.random() < 0.5:
            del labels[query]
        else:
            labels["more"] = {"d0": 0, "d1": 1}
    elif what == "exclusions" and setting.kind == "run":
        if setting.excluded is None or rng.random() < 0.3:
            return replace(setting, excluded={query: [one]} if setting.excluded is None else None)
        return replace(setting, excluded={**setting.excluded, query: [other]})
    elif what == "flavor":
        return replace(setting, flavor=setting.flavor.replace(discount="reciprocal"))
    elif what == "k":
        return replace(setting, k=setting.k + rng.choice([-1, 1]))
    elif what == "weights" and setting.weights is not None:
        weights = None if rng.random() < 0.3 else {**setting.weights, query: setting.weights[query] + 1}
        return replace(setting, weights=weights)
    elif what == "columns":
        return replace(setting, column="other")
    else:
        return None
    return replace(setting, labels=labels)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("n", [60, pytest.param(500, marks=pytest.mark.long)])
def test_no_change_passes_unseen(tmp_path, n):
    for seed in range(n):
        rng = random.Random(seed)
        setting, scores = drawn(rng)
        old = setting.evaluate(scores)
        old.save(tmp_path / "base.json")
        base = Evaluation.load(tmp_path / "base.json")
        assert gate(base, setting.evaluate(scores), margin=0.01).comparisons["baseline"][setting.k].difference == 0.0
        other = None
        while other is None:
            what = rng.choice(sorted(SAID))
            other = changed(rng, setting, what)
        new = other.evaluate(scores)  # the system is the same, so that every difference is one of the setting
        said = None
        try:
            found = gate(base, new, margin=0.01)
        except GateError as error:
            said = str(error)
        if said is not None:
            assert SAID[what] in said, (seed, what)
        else:
            assert new.value == old.value, (seed, what)
            assert found.comparisons["baseline"][setting.k].difference == 0.0, (seed, what)


@pytest.mark.parametrize("aggregate", ["macro", "micro"])
def test_what_is_left_out_has_the_value_of_its_queries(aggregate):
    rng = np.random.default_rng(0)
    labels, scores, group = rng.integers(0, 4, 60), rng.normal(size=60), np.full(20, 3)
    changed = labels.copy()
    changed[:3], changed[30:33] = 3 - labels[:3], 3 - labels[30:33]
    arguments = {"group": group, "query_weight": np.arange(1.0, 21.0), "flavor": Flavor(aggregate=aggregate)}
    base, new = (evaluate(each, scores, **arguments) for each in (labels, changed))
    left_out = np.isin(np.arange(60) // 3, [0, 10])
    part = evaluate(labels[left_out], scores[left_out], **{**arguments, "group": [3, 3], "query_weight": [1.0, 11.0]})
    note = gate(base, new, margin=0.1, on_change="drop").changes[-1]
    assert note.endswith(f"(together {part.value:.4f}; all 20 queries {base.value:.4f})")


def test_segments_are_named_in_the_forms_of_compare():
    labels, scores, qid = np.tile([2, 0, 1], 24), np.random.default_rng(0).normal(size=72), np.repeat(np.arange(24), 3)
    base, new = (evaluate(labels, each, qid=qid) for each in (scores, -scores))
    names = {query: "even" if query % 2 == 0 else "odd" for query in range(24)}
    columns = {"slice": names}, {"slice": [names[query] for query in range(24)]}
    alone, *others = (gate(base, new, margin=0.1, by=by).checks for by in (names, *columns))
    assert [check.segment for check in alone] == ["", "slice=even", "slice=odd"]
    assert all(checks == alone for checks in others)
    with pytest.raises(ValueError, match="must have a label for each query; got None for query 3"):
        gate(base, new, margin=0.1, by={**names, 3: None})
    assert "slice=none" in [check.segment for check in gate(base, new, margin=0.1, by={**names, 3: "none"}).checks]
