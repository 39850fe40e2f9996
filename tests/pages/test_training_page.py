"""The code of the page on validation in PyTorch runs as printed."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from printed import blocks

from ndcg_ml import ndcg_score

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "training.md"


def code():
    found = blocks(PAGE)
    assert len(found) == 10
    [script] = [block for block in found if block.startswith("# validate.py\n")]
    # tests/pytorch/test_accelerate.py runs the other that begins with a comment
    return [block for block in found if not block.startswith("# ")], script


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore:.*is deprecated:FutureWarning")  # Lightning's own warnings
def test_the_code_of_the_page_runs(capsys, tmp_path, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("lightning")
    monkeypatch.chdir(tmp_path)
    warnings.filterwarnings("error", "queries are added after|this state_dict leaves out")  # our own warnings
    scope: dict[str, object] = {"__name__": "training_page"}
    for block in code()[0]:
        exec(compile(block, PAGE.name, "exec"), scope)
    printed = capsys.readouterr().out
    assert "4 of the queries appeared more than once (such as id 6)" in printed
    assert printed.count("val_ndcg_at_") == 3
    [kept] = (tmp_path / "checkpoints").iterdir()
    frugal = scope["frugal"]
    assert frugal.current_epoch < 30
    assert 0 < frugal.lightning_module.improvements <= frugal.current_epoch - 4
    value = scope["trainer"].checkpoint_callback.best_model_score.item()
    assert kept.name.endswith(f"-val_ndcg_at_10={value:.4f}.ckpt")


@pytest.mark.long  # test_torch_distributed.py has two processes in the quick line
def test_the_script_of_the_page_runs_in_two_processes(tmp_path):
    torch = pytest.importorskip("torch")
    script = tmp_path / "validate.py"
    script.write_text(code()[1], encoding="utf-8")
    logs = ["--log-dir", str(tmp_path / "logs"), "--redirects", "3"]  # on one stream their lines would mix
    run = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *logs, str(script)],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    generator = torch.Generator().manual_seed(0)
    scores = torch.stack([torch.rand(9, generator=generator) for _ in range(35)]).numpy()
    value = ndcg_score([[number % 4 for number in range(9)]] * 35, scores, flavor="lightgbm", k=10)
    for rank in "01":
        [log] = (tmp_path / "logs").glob(f"*/attempt_0/{rank}/stdout.log")
        lines = [line.removeprefix(f"{rank} ") for line in log.read_text().splitlines()]
        assert float(lines[0]) == pytest.approx(value, abs=1e-12)
        assert "1 of the queries appeared more than once" in lines[1]
