"""The torchmetrics metric under Lightning's Trainer: what it logs and stops on is the number of the whole set."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import csv
import warnings
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from ndcg_ml import ndcg_score
from ndcg_ml.torch import NDCG, ApproxNDCGLoss, EpochWarning, ndcg_collection

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Lightning's imports warn
    lightning = pytest.importorskip("lightning", reason="Lightning is not installed (pip install lightning)")
    from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
    from lightning.pytorch.loggers import CSVLogger

pytestmark = [
    # Lightning's advice, such as more workers
    pytest.mark.filterwarnings("ignore::lightning.fabric.utilities.warnings.PossibleUserWarning"),
    pytest.mark.filterwarnings("ignore:.*is deprecated:FutureWarning"),
]

N_QUERIES, WIDTH = 21, 7


class Queries(Dataset):
    """Item: features, labels, id and mask of one query."""

    def __init__(self):
        draw = torch.Generator().manual_seed(11)
        self.features = torch.randn(N_QUERIES, WIDTH, 4, generator=draw)
        self.labels = torch.randint(0, 4, (N_QUERIES, WIDTH), generator=draw)
        self.labels[::5] = 0
        self.mask = torch.rand(N_QUERIES, WIDTH, generator=draw) < 0.7
        self.mask[:, 0] = True

    def __len__(self):
        return N_QUERIES

    def __getitem__(self, number):
        return self.features[number], self.labels[number], torch.tensor(number), self.mask[number]


QUERIES = Queries()


def whole_set(scores, **arguments):
    """What the scores of all queries are worth, by NumPy."""
    return ndcg_score(QUERIES.labels.numpy(), scores, mask=QUERIES.mask.numpy(), **arguments)


class Ranker(lightning.LightningModule):
    """A linear ranker that remembers its scores of each validation epoch."""

    def __init__(self, metric):
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(4, 1, bias=False)
        self.metric = metric
        self.loss = ApproxNDCGLoss()
        self.scores = []

    def forward(self, features):
        return self.layer(features.to(self.dtype)).squeeze(-1)

    def training_step(self, batch):
        features, labels, _, mask = batch
        return self.loss(self(features), labels, mask)

    def validation_step(self, batch):
        features, labels, ids, mask = batch
        self.metric.update(self(features), labels, ids, mask)
        self.log("val_ndcg_at_5", self.metric)

    def on_validation_epoch_end(self):
        if not self.trainer.sanity_checking:
            self.scores.append(self(QUERIES.features).double().numpy())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.5)


class SeveralCutoffs(Ranker):
    """Several cut-offs from one metric."""

    def validation_step(self, batch):
        features, labels, ids, mask = batch
        self.metric(self(features), labels, ids if self.metric.query_ids == "global" else None, mask)

    def on_validation_epoch_end(self):
        super().on_validation_epoch_end()
        self.log_dict({f"val/{name}": value for name, value in self.metric.compute().items()})
        self.metric.reset()


class Collection(Ranker):
    """Several cut-offs from a collection, which Lightning computes and resets."""

    def validation_step(self, batch):
        features, labels, ids, mask = batch
        self.metric.update(self(features), labels, ids, mask)
        self.log_dict(self.metric)


class Logged(lightning.Callback):
    """What every validation epoch left in ``callback_metrics``, and how many queries the metric had counted."""

    def __init__(self):
        self.values, self.counted = [], []

    def on_validation_epoch_end(self, trainer, module):
        if not trainer.sanity_checking and hasattr(module.metric, "n_queries"):
            self.counted.append(int(module.metric.n_queries))

    def on_validation_end(self, trainer, module):
        if not trainer.sanity_checking:
            self.values.append({name: value.item() for name, value in trainer.callback_metrics.items()})


def loader(**arguments):
    return DataLoader(QUERIES, batch_size=4, **arguments)


def trainer(folder, **arguments):
    options = {"accelerator": "cpu", "devices": 1, "max_epochs": 3, "logger": False, "enable_checkpointing": False}
    quiet = {"enable_progress_bar": False, "enable_model_summary": False}
    return lightning.Trainer(**(options | quiet | arguments), default_root_dir=folder)


def test_what_is_logged_stopped_on_and_kept_is_the_number_of_the_whole_set(tmp_path):
    stop = EarlyStopping("val_ndcg_at_5", mode="max", patience=5)
    best = ModelCheckpoint(tmp_path / "kept", "{epoch}-{val_ndcg_at_5:.4f}", "val_ndcg_at_5", mode="max")
    model, logged, logger = Ranker(NDCG(k=5)), Logged(), CSVLogger(tmp_path)
    options = {"logger": logger, "enable_checkpointing": True, "log_every_n_steps": 1}
    trainer(tmp_path, callbacks=[stop, best, logged], **options).fit(model, loader(shuffle=True), loader())

    want = [whole_set(scores, k=5) for scores in model.scores]
    assert len(want) == 3
    assert len(set(want)) > 1
    assert logged.counted == [N_QUERIES] * 3  # the two batches of the sanity check are of no epoch
    assert [values["val_ndcg_at_5"] for values in logged.values] == pytest.approx(want, abs=1e-12)
    assert stop.best_score.item() == best.best_model_score.item() == pytest.approx(max(want), abs=1e-12)
    epoch = int(np.argmax(want))
    assert Path(best.best_model_path).name == f"epoch={epoch}-val_ndcg_at_5={want[epoch]:.4f}.ckpt"
    with open(Path(logger.log_dir) / "metrics.csv", newline="") as file:
        written = [float(row["val_ndcg_at_5"]) for row in csv.DictReader(file) if row["val_ndcg_at_5"]]
    assert written == pytest.approx(want, abs=1e-12)
    kept = torch.load(best.best_model_path, weights_only=True)["state_dict"]
    assert set(kept) == {"layer.weight"}  # a checkpoint made without the metric loads


CUTOFFS = {
    "whole queries": (lambda: SeveralCutoffs(NDCG(k=[1, 5, None])), 1e-6),
    "split queries": (lambda: SeveralCutoffs(NDCG(k=[1, 5, None], split_queries=True)), 1e-6),
    "ids of the batch": (lambda: SeveralCutoffs(NDCG(k=[1, 5, None], query_ids="batch")), 1e-6),
    "a collection": (lambda: Collection(ndcg_collection(k=[1, 5, None]).clone(prefix="val/")), 1e-12),
}


@pytest.mark.parametrize("case", CUTOFFS)
def test_several_cutoffs_by_log_dict(tmp_path, case):
    make, tolerance = CUTOFFS[case]
    model, logged = make(), Logged()
    best = ModelCheckpoint(tmp_path, "{val/ndcg_at_5:.4f}", "val/ndcg_at_5", mode="max", auto_insert_metric_name=False)
    trainer(tmp_path, callbacks=[best, logged], enable_checkpointing=True).fit(model, loader(), loader())
    assert len(logged.values) == 3
    for values, scores in zip(logged.values, model.scores, strict=True):
        want = whole_set(scores, k=[1, 5, None])
        expected = {"val/ndcg_at_1": want[1], "val/ndcg_at_5": want[5], "val/ndcg": want[None]}
        assert values == pytest.approx(expected, abs=tolerance)
    assert Path(best.best_model_path).name == f"{best.best_model_score.item():.4f}.ckpt"


# -- epochs ----------------------------------------------------------------------------------------------------------


class OnTraining(Ranker):
    """NDCG of the training batches, as they were when they were learned from."""

    def __init__(self, *, saved):
        super().__init__(NDCG(k=5))
        self.metric.persistent(saved)
        self.counted = []

    def training_step(self, batch):
        features, labels, ids, mask = batch
        preds = self(features)
        self.metric.update(preds.detach(), labels, ids, mask)
        return self.loss(preds, labels, mask)

    def on_train_epoch_end(self):
        self.counted.append((int(self.metric.n_queries), self.metric.compute().item()))
        self.metric.reset()


@pytest.mark.parametrize("saved", [False, True])
def test_an_epoch_that_is_resumed_in_the_middle(tmp_path, saved):
    whole = OnTraining(saved=False)
    trainer(tmp_path, max_epochs=1).fit(whole, loader())
    every = ModelCheckpoint(tmp_path, "middle", every_n_train_steps=3, save_top_k=1)
    options = {"callbacks": [every], "enable_checkpointing": True}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trainer(tmp_path, max_steps=3, **options).fit(OnTraining(saved=saved), loader())
    said = [one for one in caught if one.category is EpochWarning]
    assert len(said) == (not saved)
    resumed = OnTraining(saved=saved)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Lightning warns that the loader cannot be resumed
        # Lightning makes as many batches as are left, but from the start of a loader that does not know where it was.
        batches = [list(range(start, min(start + 4, N_QUERIES))) for start in range(0, N_QUERIES, 4)]
        left_first = DataLoader(QUERIES, batch_sampler=batches[3:] + batches[:3])
        trainer(tmp_path, max_epochs=1).fit(resumed, left_first, ckpt_path=tmp_path / "middle.ckpt")
    [(n_queries, value)] = resumed.counted
    assert n_queries == (N_QUERIES if saved else N_QUERIES - 12)
    assert (value == pytest.approx(whole.counted[0][1], abs=1e-12)) == saved
