"""Files are written whole or not at all."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time

import pytest

from ndcg_ml import Evaluation, evaluate
from ndcg_ml._files.opening import write_atomically

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
