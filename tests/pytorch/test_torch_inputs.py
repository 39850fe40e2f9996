"""What the metric, the function and the losses refuse alike, or warn of, when they read their tensors."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import math
import re
import warnings
from contextlib import nullcontext

import torch
from torch_batches import torch_kernel

from ndcg_ml import Flavor, ndcg_score
from ndcg_ml.torch import NDCG, ApproxNDCGLoss, LambdaNDCGLoss, NeuralNDCGLoss, SoftmaxLoss, Stochastic, ndcg

# -- refusals --------------------------------------------------------------------------------------------------------

S, Y, IDS = torch.tensor([[0.3, 0.1]]), torch.tensor([[1.0, 0.0]]), torch.tensor([0, 0])
JAGGED = torch.nested.nested_tensor([torch.rand(2), torch.rand(3)], layout=torch.jagged)
REFUSED = {
    "an array": ((S.numpy(), Y), {}, TypeError, r"scores must be a torch.Tensor.*ndcg_ml.ndcg_score",
        lambda: (ndcg(torch.as_tensor(S.numpy()), Y), ndcg_score(Y.numpy(), S.numpy()))),
    "a list": ((S, [[1, 0]]), {}, TypeError, r"labels must be a torch.Tensor.*builtins.list\. Pass torch\.as_tensor\(",
        lambda: (ndcg(S, torch.as_tensor([[1, 0]])), ndcg_score([[1, 0]], S.numpy()))),
    "another shape": ((S, Y[:, :1]), {}, ValueError, r"labels must have the shape of scores, \(1, 2\); got \(1, 1\)",
        None),
    "no ids": ((S[0], Y[0]), {}, ValueError, r"indexes must be given .*scores\[None\]",
        lambda: (ndcg(S[0], Y[0], indexes=IDS), ndcg(S[0][None], Y[0][None]))),
    "ids of lists": ((S, Y), {"indexes": IDS[None]}, ValueError,
        "indexes is for 1-D input.*flatten scores, labels and indexes",
        lambda: (ndcg(S, Y), ndcg(S.flatten(), Y.flatten(), indexes=IDS[None].flatten()))),
    "a mask of rows": ((S[0], Y[0]), {"indexes": IDS, "mask": IDS == 0}, ValueError,
        "mask must not be given with 1-D input", lambda: ndcg(S[0][IDS == 0], Y[0][IDS == 0], indexes=IDS[IDS == 0])),
    "fractions as ids": ((S[0], Y[0]), {"indexes": IDS.float()}, TypeError, r"indexes must hold integers.*\.long\(\)",
        lambda: ndcg(S[0], Y[0], indexes=IDS.float().long())),
    "fewer ids": ((S[0], Y[0]), {"indexes": IDS[:1]}, ValueError, "indexes must have the shape of scores", None),
    "a mask of floats": ((S, Y), {"mask": torch.ones(1, 2)}, TypeError, r"mask must be a tensor of bool.*mask\.bool",
        lambda: ndcg(S, Y, mask=torch.ones(1, 2).bool())),
    "a complex mask": ((S, Y), {"mask": (S + 1j).conj()}, TypeError, "mask must be a tensor of bool", None),
    "fewer retrieved": ((S, Y), {"retrieved": S[:, :1] > 0}, ValueError, "retrieved must have the shape of scores",
        None),
    "numbers": ((S[0, 0], Y[0, 0]), {}, ValueError, "must have a dimension for the documents",
        lambda: (ndcg(S[:, :1], Y[:, :1]), ndcg(S[0, :1], Y[0, :1], indexes=IDS[:1]))),
    "complex scores": ((S + 1j, Y), {}, TypeError, "scores must hold real numbers", None),
    "complex labels": ((S, Y + 1j), {}, TypeError, "labels must hold real numbers; got dtype torch.complex64", None),
    "nested": ((JAGGED, JAGGED), {}, TypeError, r"must not be a nested tensor\. Pass torch\.nested\.to_padded_tensor",
        lambda: (ndcg(*[torch.nested.to_padded_tensor(JAGGED, 0.0)] * 2,
            mask=torch.arange(3) < torch.tensor([[2], [3]])),
            ndcg(JAGGED.values(), JAGGED.values(), indexes=torch.tensor([0, 0, 1, 1, 1])))),
    "no lists": ((S[:0], Y[:0]), {}, ValueError, r"at least one query; got shape \(0, 2\)", None),
    "no rows": ((S[0, :0], Y[0, :0]), {"indexes": IDS[:0]}, ValueError, r"at least one query; got shape \(0,\)", None),
    "large scores": ((torch.tensor([[2**60, 2**60 + 1]]), Y.long()), {}, ValueError,
        "scores must hold scores that stay different in float64.*in 1 query",
        lambda: ndcg(torch.tensor([[2**60, 2**60 + 1]]) - 2**60, Y.long())),
    "low scores": ((torch.tensor([[-(2**63), -(2**63) + 1]]), Y.long()), {}, ValueError,
        "different in float64.*in 1 query", lambda: ndcg(torch.tensor([[-(2**63), -(2**63) + 1]]) + 2**63, Y.long())),
    "NaN scores": ((S * math.nan, Y), {}, ValueError, "scores must not hold NaN.*got NaN in 1 query.*-inf ranks last",
        lambda: ndcg((S * math.nan).nan_to_num(-math.inf), Y)),
    "NaN labels": ((S, Y * math.nan), {}, ValueError,
        "under unjudged='raise'; got NaN in 1 query.*such as flavor='sklearn.unjudged=zero",
        lambda: [ndcg(S, Y * math.nan, mask=~(Y * math.nan).isnan()),
            *(ndcg(S, Y * math.nan, flavor=each) for each in ("sklearn[unjudged=zero]", Flavor(unjudged="condense")))]),
    "an infinite label": ((S, torch.tensor([[math.inf, 0.0]])), {}, ValueError, "finite.*in 1 query", None),
    "an infinite label beside NaN": ((S, Y * math.inf), {"flavor": Flavor(unjudged="zero")}, ValueError,
        "finite.*in 1 query", None),
    "a label of -inf": ((S, torch.tensor([[-math.inf, 0.0]])), {}, ValueError, "finite.*in 1 query", None),
    "a negative label": ((S, -Y), {}, ValueError, "under negative='raise'.*in 1 query.*pass mask=",
        lambda: [ndcg(S, -Y, mask=Y < 1), ndcg(S, 1 - Y),
            *(ndcg(S, -Y, flavor=each) for each in ("sklearn[negative=zero]", Flavor(negative="drop"),
                Flavor(negative="allow")))]),
    "a negative integer": ((S, -Y.long()), {}, ValueError, "under negative='raise'.*in 1 query.*pass mask=",
        lambda: [ndcg(S, -Y.long(), mask=Y < 1), ndcg(S, 1 - Y),
            *(ndcg(S, -Y.long(), flavor=each) for each in ("sklearn[negative=zero]", Flavor(negative="drop"),
                Flavor(negative="allow")))]),
    "a negative integer beside a mask": ((S, -Y.long()), {"mask": S > 0}, ValueError, "under negative='raise'",
        None),
    "a negative label of a discount without a name": ((S, -Y), {"flavor": Flavor(discount=lambda rank: 1 / rank)},
        ValueError, "'drop' or 'allow', such as flavor=flavor.replace.negative='zero'.",
        lambda: ndcg(S, -Y, flavor=Flavor(discount=lambda rank: 1 / rank).replace(negative="zero"))),
    "a label that is NaN of a gain without a name": ((S, Y * math.nan), {"flavor": Flavor(gain=lambda y: y)},
        ValueError, "'zero' or 'condense', such as flavor=flavor.replace.unjudged='zero'.",
        lambda: ndcg(S, Y * math.nan, flavor=Flavor(gain=lambda y: y).replace(unjudged="zero"))),
    "above max_grade": ((S, Y), {"flavor": Flavor(max_grade=0.5)}, ValueError, "max_grade=0.5.*in 1 query",
        lambda: [ndcg(S, Y, flavor=Flavor(max_grade=1)),
            *(ndcg(S, Y.to(dtype) * 0.8, flavor=Flavor(max_grade=0.8)) for dtype in (torch.float32, torch.float64))]),
    "half a grade": ((S, Y / 2), {"flavor": Flavor(gain=(0, 1))}, ValueError, "integer grades from 0 to 1",
        lambda: [ndcg(S, Y / 2, flavor=Flavor(gain=(0, 1)).replace(gain=gain)) for gain in ("linear", "exponential")]),
    "beyond the table": ((S, Y * 2), {"flavor": Flavor(gain=(0, 1))}, ValueError,
        "integer grades from 0 to 1 for a gain table of 2 entries; got others in 1 query",
        lambda: [ndcg(S, Y * 2, flavor=Flavor(gain=(0, 1)).replace(gain=gain)) for gain in ((0, 1, 3), "linear",
            "exponential")]),
    "below the table": ((S, -Y), {"flavor": Flavor(gain=(0, 1), negative="allow")}, ValueError,
        "integer grades from 0 to 1 for a gain table of 2 entries; got others in 1 query", None),
    "half a grade off the table": ((S, Y / 2), {"flavor": Flavor(gain=(0, 1), off_table="zero")}, ValueError,
        "integer grades >= 0 for a gain table.*with off_table='raise'",
        lambda: [ndcg(S, Y / 2,
            flavor=Flavor(gain=(0, 1), off_table="zero").replace(gain=gain, off_table="raise")) for gain in ("linear",
            "exponential")]),
    "an empty query": ((S, Y * 0), {"flavor": Flavor(empty="raise")}, ValueError, "got an ideal DCG of 0 in 1 query",
        lambda: [ndcg(S, Y * 0, flavor=each) for each in ("ndcg",
            *(Flavor(empty=empty) for empty in (0, 1, math.nan, "skip")))]),
    "no document ids": ((S, Y), {"flavor": Flavor(ties="docid")}, ValueError, "doc_id must be given",
        lambda: (ndcg(S, Y, flavor=Flavor(ties="docid"), doc_id=torch.tensor([[0, 1]])), ndcg(S, Y, flavor="ndcg"))),
    "repeated documents": ((S, torch.ones(1, 2)), {"doc_id": IDS[None]}, ValueError, "doc_id must not repeat.*1 query",
        lambda: [ndcg(S, torch.ones(1, 2), flavor=Flavor(duplicates=each), doc_id=IDS[None]) for each in ("first",
            "count")]),
    "fractions as document ids": ((S, Y), {"doc_id": Y}, TypeError, "doc_id must hold integers",
        lambda: ndcg(S, Y, doc_id=Y.long())),
    "flags as document ids": ((S, Y), {"doc_id": Y > 0}, TypeError, "doc_id must hold integers.*got dtype torch.bool",
        lambda: ndcg(S, Y, doc_id=(Y > 0).long())),
    "complex document ids": ((S, Y), {"doc_id": S + 1j}, TypeError, "doc_id must hold integers.*torch.complex64", None),
    "k": ((S, Y), {"k": 0}, ValueError, "k must be an integer >= 1", None),
}  # fmt: skip


@pytest.mark.parametrize("kernel", [nullcontext, torch_kernel], ids=["host", "torch"])
@pytest.mark.parametrize("case", REFUSED)
def test_refusals_say_what_to_do(case, kernel):
    arguments, options, error, words, advised = REFUSED[case]
    with kernel(), pytest.raises(error, match=words):
        ndcg(*arguments, **options)
    if advised is not None:
        with kernel() if case != "repeated documents" else nullcontext():  # its advice is plain CPU tensors
            advised()


@pytest.mark.parametrize(
    ("labels", "scores", "qid"),
    [(Y[0], S[0].numpy(), [0, 0]), (Y[0].numpy(), torch.nn.Parameter(S[0]), [0, 0]), ([1, 0], [0.3, 0.1], IDS)],
)
def test_tensors_given_to_numpy_functions_are_pointed_here(labels, scores, qid):
    words = r"qid\.detach\(\)\.cpu\(\)\.numpy\(\)" if qid is IDS else r"ndcg_ml\.torch\.ndcg\(scores, labels.*numpy\(\)"
    with pytest.raises(TypeError, match=rf"is a (Tensor|Parameter) of torch.*{words}"):
        ndcg_score(labels, scores, qid=qid)
    tensors = [torch.as_tensor(each) for each in (scores, labels, qid)]
    want = ndcg_score(*(each.detach().cpu().numpy() for each in tensors[1::-1]), qid=tensors[2].detach().cpu().numpy())
    assert ndcg(*tensors[:2], indexes=tensors[2]).tolist() == [want]


HERE, THERE, LOSS = torch.zeros(1, 3), torch.zeros(1, 3, device="meta"), SoftmaxLoss()
ELSEWHERE = [
    (ndcg, (HERE, THERE), {}, "labels"),
    (ndcg, (HERE, HERE), {"mask": THERE > 0}, "mask"),
    (ndcg, (HERE, HERE), {"retrieved": THERE > 0}, "retrieved"),
    (ndcg, (HERE, HERE), {"doc_id": THERE.long()}, "doc_id"),
    (ndcg, (HERE[0], HERE[0]), {"indexes": THERE[0].long()}, "indexes"),
    (NDCG().update, (HERE, THERE), {}, "target"),
    (NDCG(split_queries=True).update, (HERE, HERE, HERE[0, :1].long()), {"mask": THERE > 0}, "mask"),
    (NDCG().update, (HERE[0], HERE[0], THERE[0].long()), {}, "indexes"),
    (NDCG().update, (HERE, HERE, THERE[0, :1].long()), {}, "indexes"),
    (LOSS, (HERE, THERE), {}, "labels"),
    (LOSS, (HERE, HERE, THERE > 0), {}, "mask"),
    (LOSS, (HERE[0], THERE[0]), {"indexes": HERE[0].long()}, "labels"),
    (LOSS, (HERE[0], HERE[0]), {"indexes": THERE[0].long()}, "indexes"),
]


def test_what_is_on_another_device_is_named_as_the_caller_named_it():
    for call, arguments, options, name in ELSEWHERE:
        of = "scores" if call in (ndcg, LOSS) else "preds"
        message = rf"{name} must be on the device of {of}, cpu; got meta\. Pass {name}\.to\({of}\.device\)\."
        with pytest.raises(ValueError, match=message):
            call(*arguments, **options)


@pytest.mark.parametrize("rows", [[[0.3, 0.1], [0.2]], [torch.tensor([0.3, 0.1]), torch.tensor([0.2])]])
def test_lists_of_unequal_lengths_are_told_how_to_be_padded(rows):
    with pytest.raises(TypeError, match=r"pad_sequence\(.*with mask=, or torch\.cat\(.*with indexes=") as raised:
        ndcg(rows, rows)
    first, second = re.findall(r"torch\S+\(\[.*?\].*?\)(?= with)", str(raised.value))
    padded, flat = (eval(line, {"torch": torch, "scores": rows}) for line in (first, second))
    want = [1.0, 1.0]
    assert ndcg(padded, torch.ones(2, 2), mask=torch.tensor([[True, True], [True, False]])).tolist() == want
    assert ndcg(flat, torch.ones(3), indexes=torch.tensor([0, 0, 1])).tolist() == want


# -- columns ---------------------------------------------------------------------------------------------------------

SCORES, LABELS = torch.tensor([0.9, 0.8, 0.1, 0.5, 0.4, 0.3]), torch.tensor([3, 0, 1, 0, 2, 1])
ROWS = torch.tensor([0, 0, 0, 1, 1, 1])


def on_torch(scores, labels, **given):
    with torch_kernel():
        return ndcg(scores, labels, **given)


FUNCTIONS = {
    "ndcg": ndcg,
    "torch kernel": on_torch,
    "update": lambda *tensors, **given: NDCG().update(*tensors, **given),
    "forward": lambda *tensors, **given: NDCG()(*tensors, **given),
    "split_queries": lambda *tensors, **given: NDCG(split_queries=True).update(*tensors, **given),
    "query_ids='batch'": lambda *tensors, **given: NDCG(query_ids="batch").update(*tensors, **given),
    "Stochastic": Stochastic(ApproxNDCGLoss(), samples=1),
    **{type(loss).__name__: loss for loss in (ApproxNDCGLoss(), NeuralNDCGLoss(), LambdaNDCGLoss())},
}
COLUMN, LISTS, MASK = (
    (SCORES[:, None], LABELS[:, None]),
    (SCORES.reshape(2, 3, 1), LABELS.reshape(2, 3, 1)),
    torch.ones((6, 1)) > 0,
)
ROWS_OR_LISTS = r"shape \(6, 1\) may be 6 rows.*\.squeeze\(-1\).*\.squeeze\(-1\) with indexes="
TOO_MANY = r"The last axis of (scores|preds) is one too many"
COLUMNS = {
    **{name: (COLUMN, options, ROWS_OR_LISTS,
        lambda f: (f(*(each.squeeze(-1) for each in COLUMN), indexes=ROWS),
            f(*COLUMN, mask=torch.ones_like(COLUMN[0], dtype=torch.bool)))) for name,
        options in {"no ids": {}, "ids": {"indexes": ROWS}, "numbers of rows": {"indexes": torch.arange(6)},
            "a column of ids": {"indexes": ROWS[:, None]}}.items()},
    "lists": (LISTS, {}, r"\(2, 3, 1\).*\.squeeze\(-1\)", lambda f: f(*(each.squeeze(-1) for each in LISTS))),
    "lists and a mask": (LISTS, {"mask": LISTS[0] > 0}, r"\(2, 3, 1\).*\.squeeze\(-1\) and mask\.squeeze\(-1\)",
        lambda f: f(*(each.squeeze(-1) for each in LISTS), mask=(LISTS[0] > 0).squeeze(-1))),
    "scores alone": ((COLUMN[0], LABELS), {"indexes": ROWS}, TOO_MANY + r": pass (scores|preds)\.squeeze\(-1\)",
        lambda f: f(COLUMN[0].squeeze(-1), LABELS, indexes=ROWS)),
    "lists of scores alone": ((LISTS[0], LABELS.reshape(2, 3)), {}, TOO_MANY,
        lambda f: f(LISTS[0].squeeze(-1), LABELS.reshape(2, 3))),
    "nested tensors": ((JAGGED, JAGGED), {}, "must not be a nested tensor", None),
}  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("case", COLUMNS)
def test_columns_and_nested_tensors_are_refused(function, case):
    arguments, options, words, advised = COLUMNS[case]
    with pytest.raises(TypeError if case == "nested tensors" else ValueError, match=words):
        function(*arguments, **options)
    if advised is not None and function is not FUNCTIONS["split_queries"]:  # this one needs ids for lists as well
        advised(function)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "split_queries"])
def test_lists_of_one_document_under_a_mask_and_row_numbers_as_ids_are_warned_of(name):
    with pytest.warns(UserWarning, match="each of the 2 queries has one document"):
        FUNCTIONS[name](*(each[:2] for each in COLUMN), mask=MASK[:2])
    if name == "torch kernel":  # it does not look at ids
        return
    with pytest.warns(UserWarning, match="each of the 2 queries has one document.*ids may number rows"):
        FUNCTIONS[name](SCORES[:2], LABELS[:2], indexes=torch.arange(2))


def test_single_lists_pieces_of_queries_and_batches_of_unequal_lists_are_not():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metric = NDCG(split_queries=True)
        for rows in ([0, 3], [1, 4], [2, 5]):
            metric.update(SCORES[rows], LABELS[rows], indexes=ROWS[rows])
        whole = NDCG()
        whole.update(SCORES, LABELS, indexes=ROWS)
        assert metric.compute() == whole.compute()
        # Lists of very different lengths are padded in groups, one of them of single documents.
        long = torch.cat([torch.zeros(30, dtype=torch.long), torch.arange(1, 9)])
        ApproxNDCGLoss("sklearn")(torch.randn(38), torch.ones(38), indexes=long)
        for function in (ndcg, on_torch, ApproxNDCGLoss(), Stochastic(ApproxNDCGLoss(), samples=1), NDCG().update):
            function(torch.ones(1, 1), torch.ones(1, 1))
            function(torch.ones(1), torch.ones(1), indexes=torch.zeros(1).long())
        assert NDCG().update(SCORES[:0, None], LABELS[:0, None]) is None


@pytest.mark.parametrize("name", ["ndcg", "torch kernel", "update", "split_queries"])
@pytest.mark.parametrize(
    ("scores", "labels", "warns"),
    [
        (torch.int64, torch.float32, True),
        (torch.uint8, torch.float64, True),
        (torch.float32, torch.float32, False),  # any values: reading them would wait for a device
        (torch.int64, torch.int64, False),
        (torch.float16, torch.int64, False),
    ],
)
def test_integer_scores_of_floating_labels_are_warned_of(name, scores, labels, warns):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        FUNCTIONS[name](torch.tensor([2, 0, 1]).to(scores), torch.tensor([0.5, 1.5, 0.5]).to(labels), indexes=ROWS[::2])
    assert ["as if the two were swapped" in str(each.message) for each in seen] == [True] * warns


def test_compiled_code_refuses_a_column_too():
    compiled = torch.compile(ndcg, backend="eager", fullgraph=False)
    with pytest.raises(Exception, match=r"may be 6 rows"):
        compiled(*COLUMN)
    whole = torch.compile(ndcg, backend="eager", fullgraph=True)
    assert whole(*COLUMN, mask=MASK).tolist() == [1.0, 0, 1, 0, 1, 1]
