"""Batches of unequal width in two processes of accelerate, with the code of docs/training.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("torchmetrics")
accelerate = pytest.importorskip("accelerate")

import numpy as np
import torch
from torch.utils.data import DataLoader

from ndcg_ml import ndcg_score
from ndcg_ml.torch import NDCG

PAGE = Path(__file__).parents[2] / "docs" / "training.md"
SIZES = np.random.default_rng(0).integers(1, 20, 37)
ROWS = [np.random.default_rng(size).integers(0, 4, (2, size)) for size in SIZES]


def padded(items):
    grades, scores, ids = zip(*items, strict=True)
    columns = scores, grades, [torch.ones(len(part), dtype=torch.bool) for part in grades]
    scores, grades, mask = (torch.nn.utils.rnn.pad_sequence(list(part), batch_first=True) for part in columns)
    return scores.float(), grades, torch.stack(ids), mask


def one_process(folder, code):
    accelerator = accelerate.Accelerator(cpu=True)
    items = [(*map(torch.from_numpy, rows), torch.tensor(at)) for at, rows in enumerate(ROWS)]
    scope = {
        "accelerator": accelerator,
        "NDCG": NDCG,
        "torch": torch,
        "loader": DataLoader(items, 4, collate_fn=padded),
    }
    exec(code, scope)
    Path(folder, str(accelerator.process_index)).write_text(repr(scope["metric"].compute().item()))


@pytest.mark.filterwarnings("ignore")  # accelerate's own
def test_the_code_of_the_page_gathers_all_queries(tmp_path):
    [code] = re.findall(r"```python\n# accelerate\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL)
    accelerate.debug_launcher(one_process, (str(tmp_path), code), num_processes=2)
    grades, scores = np.concatenate(ROWS, axis=1)
    expected = ndcg_score(grades, scores, qid=np.repeat(np.arange(SIZES.size), SIZES), k=10, flavor="lightgbm")
    values = [float(path.read_text()) for path in tmp_path.iterdir()]
    assert values == [pytest.approx(expected, abs=1e-12)] * 2
