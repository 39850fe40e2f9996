"""Saved evaluations: what was saved comes back, and a file that was not saved is refused."""

from __future__ import annotations

import copy
import gzip
import json
import os
import random
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from ndcg_ml import Evaluation, Flavor, compare, evaluate, evaluate_run
from ndcg_ml._decide.saved import digest, judgement_digests, read
from ndcg_ml._files.opening import write_atomically
from ndcg_ml.readers import DataFileError

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
    assert np.array_equal(judgement_digests(one), judgement_digests(other))
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


def test_compare_refuses_changed_judgements(tmp_path):
    base = again(evaluate_run(QRELS, RUN, k=5, flavor="trec_eval[ideal=local]"), tmp_path)
    changed = {**QRELS, "q1": {**QRELS["q1"], "d99": 0}}  # a document of grade 0 changes no ideal
    with pytest.raises(ValueError, match=r"judged documents or grades differ between a and b: 'q1' \(1\)"):
        compare(base, evaluate_run(changed, RUN, k=5, flavor="trec_eval[ideal=local]"))


def test_the_digest_is_that_of_the_judgements(tmp_path):
    result = evaluate_run(QRELS, RUN, k=5)
    shuffled = {q: dict(reversed(v.items())) for q, v in reversed(QRELS.items())}
    assert dict(zip(result.per_query.qid, result._judgements, strict=True)) == dict(
        zip(*(lambda e: (e.per_query.qid, e._judgements))(evaluate_run(shuffled, {"q1": ["d1"]}, k=1)), strict=True)
    )
    long = "x" * 100
    for change in ({"d1": 9}, {"d9": 0}, {"d1": -1}, {long + "a": 1}):
        other = evaluate_run({**QRELS, "q1": {**QRELS["q1"], **change}}, RUN, k=5)
        differ = other._judgements != result._judgements
        assert result.per_query.qid[differ].tolist() == ["q1"]
    one, two = (evaluate_run({"q1": {long + end: 1}}, {"q1": [long + end]}) for end in "ab")
    assert one._judgements != two._judgements


def test_digests_are_those_of_the_format():
    """A change of these numbers would make every baseline look changed."""
    qrels = {"q1": {"d1": 1, "d2": 0}, "q2": {"x" * 100: 0.5}, "q3": {"d1": -0.0}}
    run = evaluate_run(qrels, {"q1": ["d1"]}, exclude={"q1": ["d7"]})
    table = evaluate([[2, 1]], [[1, 2]])
    named = evaluate([[2, 1]], [[1, 2]], doc_id=[["a", "b"]])
    found = [run._judgements, run._excluded[:1], judgement_digests(table), judgement_digests(named)]
    assert [f"{each:016x}" for each in np.concatenate(found).tolist()] == RECORDED


RECORDED = [
    "51d4d0de919e795e",
    "1ebabd1a10b8fc4e",
    "e9dda06fa04a450c",
    "e8fff3b496257bd2",
    "47e6868faf494ef8",
    "00319ecb23195321",
]


def test_the_place_of_the_judgements_is_kept_if_it_is_below(tmp_path):
    (tmp_path / "data").mkdir()
    result = evaluate_run(QRELS, RUN)
    for saved, qrels, place in (
        ("base.json", tmp_path / "data" / "qrels", "data/qrels"),
        ("data/base.json", tmp_path / "qrels", None),
        ("base.json", None, None),
    ):
        result.save(tmp_path / saved, qrels=qrels)
        assert read(tmp_path / saved)[1] == place


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
        read(tmp_path / "base.json")


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
    assert process.stdout.readline() == b"saved\n"
    return process


@posix
def test_a_file_keeps_its_mode_and_its_link(tmp_path):
    (tmp_path / "real").write_text("older")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to("real")
    write_atomically(tmp_path / "link", "é\n")
    assert (tmp_path / "real").read_bytes() == "é\n".encode()
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(tmp_path)) == ["link", "real"]


@pytest.mark.parametrize("step", ["os.fsync", "os.replace"])
def test_what_fails_leaves_the_older_file(tmp_path, monkeypatch, step):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    file = tmp_path / "base.json"
    file.write_text("older")
    monkeypatch.setattr(step, full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        evaluate([[1, 0]], [[1, 2]]).save(file)
    assert caught.value.filename == str(file)
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
    call = [
        sys.executable,
        "-c",
        "from ndcg_ml._files.opening import write_atomically; write_atomically('/dev/stdout', 'text')",
    ]
    assert subprocess.run(call, capture_output=True, check=True).stdout == b"text"
    with (tmp_path / "file").open("w") as file:
        subprocess.run(call, stdout=file, check=True)
    assert (tmp_path / "file").read_text() == "text"
    assert sorted(os.listdir(tmp_path)) == ["file", "pipe"]


@pytest.mark.parametrize("times", [5, pytest.param(200, marks=pytest.mark.long)])
def test_a_process_that_is_killed_while_it_saves_leaves_a_whole_file(tmp_path, times):
    file, drawn = tmp_path / "base.json", random.Random(times)
    for number in range(times):
        before = "none" if number == 0 else Evaluation.load(file).k
        process = saving(number + 1, str(file), 60)
        time.sleep(drawn.random() / 50)
        process.kill()
        process.communicate()
        assert Evaluation.load(file).k in (before, number + 1)


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
