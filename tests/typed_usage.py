"""What an editor knows of the public functions: checked by mypy, which refuses an ignored error that is none."""

from typing import assert_type

import numpy as np
import torch
from torch import Tensor
from torch.types import Number

from ndcg_ml import (
    Comparison,
    Evaluation,
    Flavor,
    align,
    compare,
    dcg_score,
    evaluate,
    evaluate_ranked,
    evaluate_run,
    evaluate_topk,
    identify,
    ndcg_score,
    prepare,
)
from ndcg_ml._statistics.means import Interval
from ndcg_ml.arrays import Prepared
from ndcg_ml.identification import Identification
from ndcg_ml.runs import AlignedRun
from ndcg_ml.torch import NDCG, ApproxNDCGLoss, ndcg
from ndcg_ml.torch.losses import Stochastic

flavor = Flavor(gain="exponential", ties="average", empty="skip", k=10)
Flavor(gain=(0, 1, 3))
Flavor(gain=lambda grade: grade / 2, discount=lambda rank: 1 / rank)
Flavor(gain="exp")  # type: ignore[arg-type]
Flavor(ties="stable")  # type: ignore[arg-type]
Flavor(empty="zero")  # type: ignore[arg-type]

labels, scores = [3, 0, 1], np.array([0.9, 0.1, 0.3])
assert_type(ndcg_score(labels, scores, group=[3], flavor=flavor), float)
assert_type(ndcg_score(labels, scores, group=[3], k=None), float)
by_k: dict[int, float] = ndcg_score(labels, scores, qid=["a", "a", "a"], k=[1, 5])
assert_type(ndcg_score(labels, scores, qid=["a", "a", "a"], k=(1, 5)), dict[int, float])
assert_type(ndcg_score(labels, scores, qid=["a", "a", "a"], k=(1, None)), dict[int | None, float])
assert_type(dcg_score(labels, scores, group=[3]), float)
assert_type(evaluate(labels, scores, group=[3]), Evaluation[float])
assert_type(evaluate(labels, scores, group=[3]).value, float)
assert_type(evaluate(labels, scores, group=[3], k=[1, 5]).value, dict[int, float])
ndcg_score(labels, scores, qid=["a", "a", "a"], query_weight={"a": 2.0})
assert_type(evaluate(labels, scores, group=[2, 1]).interval(), Interval)
assert_type(evaluate(labels, scores, group=[2, 1], k=[1, 5]).interval(), dict[int, Interval])
assert_type(evaluate(labels, scores, group=[2, 1]).standard_error, float)
assert_type(evaluate(labels, scores, group=[2, 1], k=(1, 5), by=["x", "x", "y"]).std, dict[int, float])
assert_type(compare(evaluate(labels, scores, group=[3]), evaluate(labels, scores, group=[3])).interval, Interval)
assert_type(compare(evaluate(labels, scores, group=[3]), evaluate(labels, scores, group=[3])), Comparison)

# One cut-off gives a number and several a dict, wherever a number is asked for.
assert_type(evaluate_ranked([[3, 0, 1]]).value, float)
assert_type(evaluate_ranked([[3, 0, 1]], k=(1, 5)), Evaluation[dict[int, float]])
assert_type(prepare(labels, group=[3], k=5), Prepared[float])
assert_type(prepare(labels, group=[3])(scores), float)
assert_type(prepare(labels, group=[3], k=(1, 5)).dcg(scores), dict[int, float])
assert_type(prepare(labels, group=[3], k=(1, 5)).evaluate(scores), Evaluation[dict[int, float]])
assert_type(evaluate_run({"q1": {"d1": 3}}, {"q1": ["d1"]}), Evaluation[float])
assert_type(evaluate_run({"q1": {"d1": 3}}, {"q1": ["d1"]}, k=(1, 5)).value, dict[int, float])
assert_type(evaluate_topk([[0, 1]], ([0], [1], [1]), k=10).value, float)
assert_type(compare(evaluate(labels, scores, group=[3]), evaluate(labels, scores, group=[3])).difference, float)

# An editor must know the names that are imported at their first use.
aligned = align({"q1": {"d1": 3}}, {"q1": ["d1", "d2"]})
assert_type(aligned, AlignedRun)
assert_type(identify(1.0, **aligned.arguments()), Identification)

# The pages on PyTorch write this: one cut-off gives a tensor, several a dict, and neither line needs a cast.
metric = NDCG(flavor, k=10)
float(metric.compute())
metric.compute().item()
several = NDCG(flavor, k=(1, 10)).compute()
assert_type(several["ndcg_at_10"].item(), Number)

# A metric may be annotated without what it returns, which is then one tensor.
annotated: NDCG = NDCG()
x = torch.rand(2, 3)
assert_type(annotated.compute(), Tensor)
assert_type(NDCG()(x, x), Tensor)
assert_type(NDCG(k=[1, 5])(x, x)[5], Tensor)
assert_type(ndcg(x, x).mean(), Tensor)
assert_type(ndcg(x, x, k=[1, 5]), dict[int, Tensor])
assert_type(ApproxNDCGLoss(flavor)(x, x, mask=None), Tensor)
assert_type(Stochastic(ApproxNDCGLoss(flavor), samples=2)(x, x), Tensor)
