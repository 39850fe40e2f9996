"""Small networks, many at once: one per seed and learning rate, each with its own weights and order of batches.

The networks of one call share nothing but the processor's time. Their weights are slices of the same tensors, as are
the moments of Adam, so that one step of PyTorch is a step of each of them. Lists of all networks are lists of one batch
to the loss, whose mean over lists is multiplied by the number of networks.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import numpy as np

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from torch import Tensor

from benchmarks.letor.folders import Fold
from benchmarks.letor.metrics import LINEAR_UNCUT, REPORTED, UNCUT, answers
from ndcg_ml.demo import Split
from ndcg_ml.torch import (
    ApproxNDCGLoss,
    LambdaNDCGLoss,
    ListMLELoss,
    NeuralNDCGLoss,
    PlackettLuceNDCGLoss,
    SoftmaxLoss,
    Stochastic,
    ndcg,
)

BATCH = 32  # queries
HIDDEN = 32
WEIGHT_DECAY = 0.01
NOISE = 0.3  # deviation of what is added to the logarithm of a list's length, so that batches differ by epoch
LONGEST = 200  # documents of a training list: a longer one is cut by chance
RATES = (0.0003, 0.0008, 0.002, 0.005, 0.012, 0.03)
"""Six settings for a loss with nothing else to tune ..."""
FEW_RATES = (0.0008, 0.003, 0.012)
"""... and three, for each of two temperatures, otherwise."""
TUNING_SEEDS = 2
TUNING_FROM = 10_000
"""The first seed that settings are tuned with, further on in a run with other seeds."""

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Contender:
    """A loss by the name that it has in the report."""

    name: str
    build: Callable[[float, torch.Generator], Loss]
    """From the temperature and a source of randomness."""
    temperatures: tuple[float, ...] = ()
    module: str = "ndcg_ml"
    """Who wrote the loss. A cell of a library that is not installed is left out."""

    @property
    def settings(self) -> list[tuple[float, float | None]]:
        """Learning rates and temperatures: six for every contender."""
        if self.temperatures:
            return list(product(FEW_RATES, self.temperatures))
        return [(rate, None) for rate in RATES]


def squared_error(scores: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """Pointwise: the gain of a document over the largest of the batch."""
    gain = torch.exp2(labels) - 1
    return ((scores - gain / gain.max().clamp_min(1))[mask] ** 2).mean()


def _seeded(function: Callable[[Any], Loss]) -> Callable[[float, torch.Generator], Loss]:
    return lambda temperature, generator: function(generator)


OURS = (
    Contender("squared error", lambda t, g: squared_error, module="torch"),
    Contender("SoftmaxLoss(gain)", lambda t, g: SoftmaxLoss(UNCUT)),
    Contender("SoftmaxLoss(listnet)", lambda t, g: SoftmaxLoss(LINEAR_UNCUT, target="listnet")),
    Contender("SoftmaxLoss(xendcg)", _seeded(lambda g: SoftmaxLoss(UNCUT, target="xendcg", generator=g))),
    Contender("ListMLELoss", _seeded(lambda g: ListMLELoss(UNCUT, generator=g))),
    Contender("ApproxNDCGLoss", lambda t, g: ApproxNDCGLoss(UNCUT, temperature=t), (0.1, 1.0)),
    Contender("ApproxNDCGLoss(laplace)", lambda t, g: ApproxNDCGLoss(UNCUT, temperature=t, step="laplace"), (0.1, 1.0)),
    Contender(
        "ApproxNDCGLoss, k = 10", lambda t, g: ApproxNDCGLoss(REPORTED, temperature=t, cut_temperature=t), (0.1, 1.0)
    ),
    Contender(
        "Stochastic(ApproxNDCGLoss)",
        lambda t, g: Stochastic(ApproxNDCGLoss(UNCUT, temperature=t), generator=g),
        (0.1, 1.0),
    ),
    Contender("NeuralNDCGLoss", lambda t, g: NeuralNDCGLoss(UNCUT, temperature=t), (0.1, 1.0)),
    Contender("PlackettLuceNDCGLoss", _seeded(lambda g: PlackettLuceNDCGLoss(UNCUT, generator=g))),
    Contender("LambdaNDCGLoss(lambdarank)", lambda t, g: LambdaNDCGLoss(UNCUT)),
    Contender("LambdaNDCGLoss(lambdarank), k = 10", lambda t, g: LambdaNDCGLoss(REPORTED)),
    Contender("LambdaNDCGLoss(ndcg2pp)", lambda t, g: LambdaNDCGLoss(UNCUT, scheme="ndcg2pp")),
)


class Padded(NamedTuple):
    """One row per query."""

    features: Tensor
    labels: Tensor
    mask: Tensor


class Scale:
    """Features as the networks see them: standardised by the rows they are trained on."""

    def __init__(self, rows: np.ndarray) -> None:
        self.varies = rows.std(0) > 0
        self.mean, self.deviation = rows[:, self.varies].mean(0), rows[:, self.varies].std(0)

    def __call__(self, split: Split) -> Padded:
        # A feature that is rare in the training rows has values many deviations away.
        features = ((split.features[:, self.varies] - self.mean) / self.deviation).clip(-3, 3).astype(np.float32)
        arrays = split.padded(features), split.padded(split.labels.astype(np.float32)), split.mask
        return Padded(*map(torch.from_numpy, arrays))


def _uniform(shape: tuple[int, ...], fan_in: int, generators: list[torch.Generator]) -> Tensor:
    """Weights as ``torch.nn.Linear`` draws them, a network's own from its own generator."""
    bound = 1 / fan_in**0.5
    return torch.stack([torch.empty(shape).uniform_(-bound, bound, generator=g) for g in generators])


@dataclass
class Networks:
    """Many networks of one form. Every parameter has one slice per network."""

    parameters: list[Tensor]
    attention: bool
    moments: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    steps: int = 0

    @classmethod
    def drawn(cls, n_features: int, seeds: list[int], attention: bool) -> Networks:
        """Networks as they begin, by their seeds."""
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        shapes = [((n_features, HIDDEN), n_features), ((HIDDEN,), n_features)]
        if attention:  # queries, keys, values and what becomes of them
            shapes += [((HIDDEN, HIDDEN), HIDDEN)] * 4
        shapes += [((HIDDEN, HIDDEN), HIDDEN), ((HIDDEN,), HIDDEN), ((HIDDEN, 1), HIDDEN), ((1,), HIDDEN)]
        parameters = [_uniform(shape, fan_in, generators).requires_grad_() for shape, fan_in in shapes]
        return cls(parameters, attention, [(torch.zeros_like(p), torch.zeros_like(p)) for p in parameters])

    def scores(self, features: Tensor, mask: Tensor) -> Tensor:
        """Of features (networks, lists, documents, features), or (lists, documents, features) for all networks."""
        w_in, b_in, *rest = self.parameters
        hidden = torch.relu(_times(features, w_in) + b_in[:, None, None])
        if self.attention:
            w_query, w_key, w_value, w_out, *rest = rest
            query, key, value = (_times(hidden, weights) for weights in (w_query, w_key, w_value))
            apart = query @ key.transpose(-1, -2) / HIDDEN**0.5
            weights = apart.masked_fill(~mask[..., None, :], -torch.inf).softmax(-1)
            # The document's own features go around the attention, so that it can be ignored.
            hidden = hidden + _times(weights @ value, w_out)
        w_mid, b_mid, w_last, b_last = rest
        hidden = torch.relu(_times(hidden, w_mid) + b_mid[:, None, None])
        return (_times(hidden, w_last) + b_last[:, None, None]).squeeze(-1)

    def step(self, rates: Tensor) -> None:
        """One step of AdamW, each network at its own learning rate."""
        self.steps += 1
        with torch.no_grad():
            for parameter, (first, second) in zip(self.parameters, self.moments, strict=True):
                gradient = parameter.grad
                assert gradient is not None
                first.lerp_(gradient, 0.1)
                second.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
                rate = rates.view(-1, *[1] * (parameter.dim() - 1))
                parameter.mul_(1 - WEIGHT_DECAY * rate)
                change = first / (1 - 0.9**self.steps) / ((second / (1 - 0.999**self.steps)).sqrt() + 1e-8)
                parameter.sub_(rate * change)
                parameter.grad = None


def _times(values: Tensor, weights: Tensor) -> Tensor:
    """A matrix product per network."""
    return torch.matmul(values, weights[:, None])


def train(
    contender: Contender,
    temperature: float | None,
    data: Padded,
    held_out: Padded,
    seeds: list[int],
    rates: list[float],
    epochs: int,
    attention: bool,
) -> tuple[np.ndarray, list[list[Tensor]]]:
    """NDCG on the held-out lists after each epoch, one row per network; and each network at its best epoch."""
    n = len(seeds)
    networks = Networks.drawn(data.features.shape[-1], seeds, attention)
    orders = [torch.Generator().manual_seed(1000 + seed) for seed in seeds]
    loss = contender.build(temperature or 1.0, torch.Generator().manual_seed(seeds[0]))
    steps = torch.tensor(rates)
    # A list without a relevant document has no gradient under any of these losses.
    relevant = ((data.labels > 0) & data.mask).any(1).nonzero().squeeze(1)
    lengths = data.mask.sum(1)
    length = lengths[relevant].log()
    curves = np.zeros((n, epochs))
    best: list[list[Tensor]] = [[] for _ in seeds]
    for epoch in range(epochs):
        # Lists of about one length meet in a batch, so that little of it is padding.
        drawn = [torch.randn(len(relevant), generator=g) for g in orders]
        by_length = torch.stack([relevant[(length + NOISE * noise).argsort()] for noise in drawn])
        batches = by_length.split(BATCH, 1)
        for number in torch.randperm(len(batches), generator=orders[0]).tolist():
            batch = batches[number]
            longest = int(lengths[batch].max())
            features, labels, mask = (part[batch][:, :, :longest] for part in data)
            scores = networks.scores(features, mask)
            lists = scores.flatten(0, 1), labels.flatten(0, 1), mask.flatten(0, 1)
            (n * loss(*lists)).backward()
            networks.step(steps)
        with torch.no_grad():
            scores = networks.scores(held_out.features, held_out.mask)
            values = torch.stack(
                [ndcg(one, held_out.labels, mask=held_out.mask, flavor=REPORTED).nanmean() for one in scores]
            )
        curves[:, epoch] = values.numpy()
        for i in range(n):
            if curves[i, epoch] >= curves[i, : epoch + 1].max():
                best[i] = [parameter[i : i + 1].detach().clone() for parameter in networks.parameters]
    return curves, best


def cell(contender: Contender, fold: Fold, seeds: int, epochs: int, attention: bool, first_seed: int = 0) -> dict:
    """Tune on the validation part, train again from other seeds, score the test part once.

    Every network is that of its own best epoch on the validation part. The setting is the one whose networks do best
    there on average, over seeds that are not used again.
    """
    torch.set_num_threads(1)
    scale = Scale(fold.train.features)
    data, valid, test = map(scale, (_cut(fold.train), fold.valid, fold.test))
    tried: dict[tuple[float, float | None], float] = {}
    for temperature in contender.temperatures or (None,):
        rates = [rate for rate, at in contender.settings if at == temperature]
        of_rate = [rate for rate in rates for _ in range(TUNING_SEEDS)]
        tuning_seeds = [TUNING_FROM + first_seed + seed for _ in rates for seed in range(TUNING_SEEDS)]
        curves, _ = train(contender, temperature, data, valid, tuning_seeds, of_rate, epochs, attention)
        for rate, value in zip(rates, curves.max(1).reshape(-1, TUNING_SEEDS).mean(1), strict=True):
            tried[rate, temperature] = float(value)
    rate, temperature = max(tried, key=tried.__getitem__)
    chosen = [first_seed + seed for seed in range(seeds)]
    curves, best = train(contender, temperature, data, valid, chosen, [rate] * seeds, epochs, attention)
    scored = []
    for parameters in best:
        with torch.no_grad():
            scores = Networks(parameters, attention).scores(test.features, test.mask)[0]
        scored.append(answers(fold.test, scores[test.mask].double().numpy()))
    return {
        "rate": rate,
        "temperature": temperature,
        "at_an_end": rate in (min(r for r, _ in tried), max(r for r, _ in tried)),
        "tuned": max(tried.values()),
        "valid": [round(float(value), 5) for value in curves.max(1)],
        "epochs": [int(curve.argmax()) + 1 for curve in curves],
        "seeds": scored,
    }


def _cut(split: Split) -> Split:
    """The same with at most so many documents per list, drawn by chance."""
    if split.sizes.max() <= LONGEST:
        return split
    draw = np.random.default_rng(0)
    starts = np.cumsum(split.sizes) - split.sizes
    rows = np.concatenate(
        [
            start + np.sort(draw.permutation(size)[:LONGEST])
            for start, size in zip(starts.tolist(), split.sizes.tolist(), strict=True)
        ]
    )
    return Split(split.features[rows], split.labels[rows], np.minimum(split.sizes, LONGEST))
