"""The torch kernel against the NumPy one, over drawn problems and drawn flavors, and what only tensors can do.

Everything is run twice: by the torch kernel, and by the NumPy one as ``ndcg`` uses it for plain tensors on the CPU.
"""

import pytest

pytest.importorskip("torch")

import math
import warnings
from collections import Counter
from contextlib import nullcontext

import numpy as np
import strategies
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from lanes import quick
from strategies import examples
from torch.fx.experimental.proxy_tensor import make_fx
from torch_batches import Largest, torch_kernel
from torch_features import flavors_by_text_in_a_graph, numbers_of_numpy_in_a_graph, skip_unless

from ndcg_ml import Flavor, evaluate
from ndcg_ml.torch import NDCG, ndcg

pytestmark = pytest.mark.usefixtures("kernel")


def shifted(rank):
    return 1.0 / (rank + 2.0)


def square(grade):
    return grade * grade


@st.composite
def flavors(draw):
    short, full, falling = (0.0, 1.0, 3.0), (0.0, 1.0, 3.0, 7.0, 15.0), (0.5, -0.5, 0, 5, 5)
    gain = draw(st.sampled_from(["linear", "exponential", "binary", "judged", short, full, falling, square]))
    discount = draw(st.sampled_from(["log2", "jarvelin", "reciprocal", "ln", "none", shifted]))
    ideal = draw(st.sampled_from(["global", "given"] + (["recall", "recall", "local", "max"] if gain != short else [])))
    return Flavor(
        gain=gain,
        off_table="zero" if gain == short else "raise",
        discount=discount,
        ideal=ideal,
        ideal_depth=draw(st.sampled_from(["k", "all", "retrieved"])),
        short_lists=draw(st.sampled_from(["score", "score", "zero"])),
        recall_depth=draw(st.sampled_from([None, None, None, 1, 2, 3, 50])) if ideal == "recall" else None,
        max_grade=4.0 if ideal == "max" else draw(st.sampled_from([None, 4.0])),
        ties=draw(st.sampled_from(["average", "first", "last", "best", "worst", "docid", "docid_ascending"])),
        empty=draw(st.sampled_from([0.0, 1.0, math.nan])),
        negative=draw(st.sampled_from(["zero", "drop"] if isinstance(gain, tuple) else ["zero", "drop", "allow"])),
        unjudged=draw(st.sampled_from(["zero", "condense"])),
        score_dtype=draw(st.sampled_from(["float64", "float32"])),
        duplicates=draw(st.sampled_from(["raise", "raise", "first", "count"])),
    )


def problem(seed, most):
    """Scores full of ties (some only in float32), of -inf and of -0.0; labels with negatives and without judgement."""
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(1, most + 1)), int(rng.integers(0, 9))
    scores = rng.choice([-math.inf, -1.0, -0.0, 0.0, 0.5, 1.0, 1.0 + 1e-12, 2.0, math.inf], shape)
    mask, retrieved = rng.random((2, *shape)) < 2 / 3
    return {
        "y_true": rng.choice([0.0, 0.0, 1.0, 2.0, 3.0, 4.0, -1.0, math.nan], shape),
        "y_score": scores.astype(rng.choice(["float32", "float64"])),
        # A column is lists of one document under a mask only: otherwise it may be rows.
        "mask": mask if shape[1] == 1 < shape[0] or rng.random() < 0.5 else None,
        "retrieved": retrieved if rng.random() < 0.5 else None,
        "doc_id": rng.permuted(np.tile(np.arange(shape[1]), (shape[0], 1)), axis=1),
    }


SEEDS, CUTS = st.integers(0, 2**32), st.sampled_from([[None, 1, 3, 20], [2], [None]])


@st.composite
def cases(draw):
    return draw(flavors()), problem(draw(SEEDS), 12), draw(CUTS)


def tensor(array):
    return None if array is None else torch.from_numpy(np.array(array))


def both(flavor, problem, ks):
    """Per-query values from torch and from NumPy, in the padded form."""
    p = problem
    with torch.device("meta"):  # the default device, which is not that of the tensors
        got = ndcg(
            tensor(p["y_score"]), tensor(p["y_true"]), flavor=flavor, k=ks, mask=tensor(p["mask"]),
            retrieved=tensor(p["retrieved"]), doc_id=tensor(p["doc_id"]),
        )  # fmt: skip
    want = np.full((len(p["y_true"]), len(ks)), math.nan)  # a list without documents is no query
    if p["y_true"].size if p["mask"] is None else p["mask"].any():
        found = evaluate(**problem, flavor=flavor, k=ks).per_query
        want[found.qid] = found.ndcg
    return torch.stack([got[k] for k in ks], dim=-1).numpy(), want


@st.composite
def repeating(draw):
    """Documents that a query lists more than once, also beside slots without a document."""
    p = problem(draw(SEEDS), 3)
    p["doc_id"] = np.maximum(p["doc_id"] // draw(st.integers(1, 2)) - draw(st.integers(0, 2)), -1)
    for grades, ids in zip(p["y_true"], p["doc_id"], strict=True):
        grades[:] = grades[[ids.tolist().index(each) for each in ids]]
    return draw(flavors()).replace(duplicates=draw(st.sampled_from(["first", "count"]))), p, draw(CUTS)


def flat(problem):
    """The same with one row per document, those of a query apart."""
    shape = problem["y_true"].shape
    order = np.arange(problem["y_true"].size).reshape(shape).T.ravel()
    keep = order if problem["mask"] is None else order[problem["mask"].ravel()[order]]
    one = {
        name: None if problem[name] is None else problem[name].ravel()[keep]
        for name in ("y_true", "y_score", "retrieved", "doc_id")
    }
    return {**one, "qid": np.repeat(np.arange(shape[0])[:, None], shape[1], axis=1).ravel()[keep]}


@examples(200)
@given(repeating())
def test_repeated_documents_are_those_of_the_numpy_kernel_or_refused(kernel, case):
    flavor, problem, ks = case
    p = flat(problem)
    try:
        got, want = both(flavor, problem, ks)
    except ValueError:
        with pytest.raises(ValueError, match="doc_id must not repeat within a query"):
            both(flavor, problem, ks)
        if kernel == "host":
            with pytest.raises(ValueError, match="must not tie a document with its own repeat"):
                evaluate(flavor=flavor, **p)
        return
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    if kernel == "torch" or p["y_true"].size == 0:
        return
    got = ndcg(
        tensor(p["y_score"]), tensor(p["y_true"]), flavor=flavor, k=ks, indexes=tensor(p["qid"]),
        retrieved=tensor(p["retrieved"]), doc_id=tensor(p["doc_id"]),
    )  # fmt: skip
    rows = list(dict.fromkeys(p["qid"].tolist()))
    np.testing.assert_allclose(torch.stack([got[k] for k in ks], -1).numpy(), want[rows], rtol=1e-12, atol=1e-12)


@examples(1200)
@given(cases())
def test_padded_form_is_the_numpy_kernel(case):
    got, want = both(*case)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@examples(800)
@given(cases(), st.randoms(use_true_random=False))
def test_flat_form_is_the_numpy_kernel(case, random):
    flavor, p, ks = case
    y, s = p["y_true"].ravel(), p["y_score"].ravel()
    assume(y.size)
    ids = np.array([random.choice([7, -3, 4, 10**12]) for _ in y])
    doc_id = np.array(random.sample(range(len(y)), len(y)))
    retrieved = None if p["retrieved"] is None else p["retrieved"].ravel()
    form = {"indexes": tensor(ids), "retrieved": tensor(retrieved), "doc_id": tensor(doc_id)}
    with torch.device("meta"):
        got = ndcg(tensor(s), tensor(y), flavor=flavor, k=ks, **form)
    want = evaluate(y, s, flavor=flavor, k=ks, qid=ids, retrieved=retrieved, doc_id=doc_id)
    assert want.per_query.qid.tolist() == list(dict.fromkeys(ids.tolist()))
    got = torch.stack([got[k] for k in ks], dim=-1).numpy()
    np.testing.assert_allclose(got, want.per_query.ndcg, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", ["torch"], indirect=True)
@pytest.mark.parametrize("ties", ["average", "first", "last", "best", "worst"])
@pytest.mark.parametrize("levels", [1, 2, 29, 10_000])
@pytest.mark.parametrize("ks", [[None, 1, 5], [1], [3, 2, 1], [7, 100]])
def test_long_lists_of_documents_that_all_gain_are_the_numpy_kernel(ties, levels, ks):
    """Also where the tie group that crosses the cut-off has one document, and where there are fewer than k."""
    flavor = Flavor(ties=ties, gain="exponential", empty=0)
    draw = torch.Generator().manual_seed(0)
    for width in (47, 64, 130):
        scores = torch.randint(0, levels, (4, width), generator=draw).double()
        labels = torch.randint(1, 5, (4, width), generator=draw)
        mask = torch.rand(4, width, generator=draw) < torch.tensor([[1.0], [0.5], [0.06], [0.02]])
        for flags in ({}, {"mask": mask}, {"retrieved": mask}):
            arrays = {name: part.numpy() for name, part in flags.items()}
            found = evaluate(labels.numpy(), scores.numpy(), flavor=flavor, k=ks, **arrays).per_query
            want = np.full((4, len(ks)), math.nan)
            want[found.qid] = found.ndcg
            for kind in (scores, scores.long()):
                got = torch.stack([*ndcg(kind, labels, flavor=flavor, k=ks, **flags).values()], -1)
                np.testing.assert_allclose(got.numpy(), want, rtol=1e-13, atol=0)


HUGE = math.nextafter(2.0**500, math.inf)
BOUNDS = {
    "exponential": (Flavor(gain="exponential"), 500.0, 501.0),
    "linear": (Flavor(), 2.0**500, HUGE),
    "negative": (Flavor(negative="allow"), -(2.0**500), -(2.0**501)),
    "of a very negative grade": (Flavor(gain="exponential", negative="allow"), -1e300, 501.0),
    "callable": (Flavor(gain=lambda y: 2.0**y), 500.0, 501.0),
    "unjudged": (Flavor(unjudged="zero"), 2.0**500, 2.0**501),
    "small": (Flavor(), 2.0**-500, 2.0**-501),
    "subnormal": (Flavor(), 2.0**-500, 5e-324),
    "small negative": (Flavor(negative="allow"), -(2.0**-500), -(2.0**-501)),
    "small, unjudged": (Flavor(unjudged="zero"), 2.0**-500, 2.0**-501),
    "small exponential": (Flavor(gain="exponential"), 2.0**-499, 2.0**-500),
    "small callable": (Flavor(gain=lambda y: y), 2.0**-500, 2.0**-501),
    "small callable, unjudged": (Flavor(gain=lambda y: y, unjudged="zero"), 2.0**-500, 2.0**-501),
}
"""Flavors, the last label whose gain is accepted, and one beyond it."""


@pytest.mark.parametrize("case", BOUNDS)
def test_gains_are_zero_or_from_2_to_the_minus_500_to_2_to_the_500(case):
    flavor, accepted, refused = BOUNDS[case]
    small = case.startswith("s")
    scores, labels = torch.tensor([[0.3, 0.2, 0.1]]), torch.tensor([[0.0, accepted, 1.0]], dtype=torch.float64)
    one = {"flavor": flavor, "indexes": torch.zeros(3).long()}
    with nullcontext() if small else torch_kernel():  # the NumPy kernel accepts large gains
        assert ndcg(scores[0], labels[0], **one) == ndcg(scores, labels, flavor=flavor)
        if small:
            alone = torch.tensor([[0.0, accepted, 0.0]], dtype=torch.float64)
            expected = 1 / math.log2(3) if accepted > 0 else 0.0
            assert ndcg(scores, alone, flavor=flavor).item() == pytest.approx(expected, rel=1e-12)
        for beyond in (labels, labels.long()) if refused == 501.0 else (labels,):
            beyond[0, 1] = refused
            mask = torch.tensor([[True, False, True]])
            assert ndcg(scores, beyond, flavor=flavor, mask=mask).isfinite().all()  # padding may hold anything
            metric = NDCG(flavor)
            for call in (
                lambda: ndcg(scores, beyond, flavor=flavor),  # noqa: B023
                lambda: ndcg(scores[0], beyond[0], **one),  # noqa: B023
                lambda: (metric.update(scores, beyond), metric.compute()),  # noqa: B023
            ):
                with pytest.raises(ValueError, match=r"gains must be (at most 2\*\*500|0 or at least 2\*\*-500)"):
                    call()


@pytest.mark.parametrize(
    "flavor", [Flavor(gain=(0.0, 2.0**501)), Flavor(gain="exponential", ideal="max", max_grade=501)]
)
def test_a_table_and_a_scale_with_a_gain_above_2_to_the_500_are_refused(flavor):
    with torch_kernel(), pytest.raises(ValueError, match=r"gains must be at most 2\*\*500; got 6\.5"):
        ndcg(torch.tensor([[0.3, 0.2]]), torch.tensor([[0, 1]]), flavor=flavor)


def test_a_small_gain_beside_a_huge_one_of_another_query_keeps_its_digits():
    labels = torch.tensor([[1e-6, 2e-6], [0.0, 500.0]], dtype=torch.float64)
    flavor = Flavor(gain="exponential", k=1)
    scores = torch.tensor([[1.0, 0.0]]).expand(2, 2)
    want = math.expm1(1e-6 * math.log(2)) / math.expm1(2e-6 * math.log(2))
    assert ndcg(scores, labels, flavor=flavor)[0].item() == pytest.approx(want, rel=1e-14)


def test_rounding_lifts_no_value_above_1_and_a_value_above_1_is_kept():
    labels = torch.rand(300, 20, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    metric, ids = NDCG(Flavor(aggregate="micro"), k=list(range(1, 21)), query_ids="batch"), torch.arange(300)
    for grades in (labels, (9 * labels).round()):  # with ties, the sum is that of their mean
        for form in ((grades, grades), (grades.flatten(), grades.flatten(), ids.repeat_interleave(20))):
            metric.reset()
            metric.update(*form)
            value = ndcg(*form[:2], k=20, indexes=form[2] if len(form) > 2 else None)
            assert max(value.max(), *metric.compute().values()) == 1
    near, share = torch.tensor([[1.0, 1 + 1e-9]], dtype=torch.float64), 1 / math.log2(3)
    above = pytest.approx(1e-9 * (1 - share) / (1 + share), rel=1e-5)
    assert ndcg(near, near, flavor=Flavor(ideal="given")).item() - 1 == above
    metric = NDCG(Flavor(ideal="given", aggregate="micro"))
    metric.update(near, near)
    assert metric.compute().item() - 1 == above


# -- padding ---------------------------------------------------------------------------------------------------------


def test_leading_dimensions_are_kept_and_lists_may_have_no_documents():
    scores, labels = torch.rand(2, 3, 5), torch.randint(0, 4, (2, 3, 5))
    got = ndcg(scores, labels, k=[3, None])
    assert {k: v.shape for k, v in got.items()} == {3: (2, 3), None: (2, 3)}
    assert got[3][1, 2].item() == ndcg(scores[1, 2:], labels[1, 2:], k=3).item()
    assert ndcg(torch.zeros(2, 0), torch.zeros(2, 0), flavor=Flavor(empty="raise")).isnan().tolist() == [True, True]


@pytest.mark.parametrize("ideal", ["global", "local"])
def test_flat_form_does_not_pad(ideal):
    ids = torch.cat([torch.zeros(2000, dtype=torch.int64), torch.arange(1, 2001)])
    with Largest() as largest:
        ndcg(torch.rand(4000), torch.ones(4000), flavor=Flavor(ideal=ideal), indexes=ids)
    assert largest.numel <= 10 * 4000


# -- numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_scores_tie_in_their_own_precision(dtype):
    scores = torch.tensor([[1.0, 1.0 + 1e-4, 0.5]])
    labels = torch.tensor([[3, 1, 0]])
    got = ndcg(scores.to(dtype), labels)
    assert got.dtype == torch.float64
    assert got.item() == ndcg(torch.tensor([[1.0, 1.0, 0.5]]), labels).item() != ndcg(scores, labels).item()


@pytest.mark.parametrize("scores", [[2**40, 2**40 + 1], [2**53 - 1, 2**53]])
def test_integer_scores_are_told_apart_unless_the_flavor_says_otherwise(scores):
    scores, labels = torch.tensor([scores]), torch.tensor([[0, 1]])
    assert ndcg(scores, labels).item() == 1.0
    assert ndcg(scores, labels, flavor=Flavor(score_dtype="float32")).item() < 1.0


FAR = [2**62, 2**62 + 1, torch.iinfo(torch.int64).min, torch.iinfo(torch.int64).min + 1]


@pytest.mark.parametrize("scores", [[2, 1, *FAR], [2**60, 5, *FAR]])
def test_integers_of_other_slots_and_other_queries_do_not_tie(scores):
    scores, labels = torch.tensor([scores]), torch.tensor([[1, 2, 0, 0, 0, 0]])
    listed, want = labels > 0, ndcg(torch.tensor([[2.0, 1.0]]), torch.tensor([[1, 2]]))
    metric = NDCG()
    metric.update(scores, labels, mask=listed)
    assert ndcg(scores, labels, mask=listed) == metric.compute() == want
    assert ndcg(scores, labels, retrieved=listed) == want
    unjudged = labels.double().masked_fill(~listed, math.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert ndcg(scores, unjudged, flavor=Flavor(unjudged="condense")) == want
        assert (ndcg(scores[0, 2:4], labels[0, 1:3], indexes=torch.tensor([7, 8])) == torch.tensor([1.0, 0.0])).all()


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint64])
def test_integers_are_refused_if_and_only_if_numpy_refuses_them(dtype):
    rng, low = np.random.default_rng(0), 2**63 if dtype == torch.uint64 else 0
    near = [2**53, 2**53 + 1, 2**53 + 2, 2**63 - 1, 2**63 - 2, -(2**63), 1 - 2**63, 0, 1]
    outcomes = Counter()
    for _ in range(70):
        scores = [[low + near[at] for at in row] for row in rng.integers(9, size=(2, 4))]
        scores = np.array(scores, f"{'ui'[low == 0]}8")
        labels, mask = rng.integers(3, size=(2, 4)), rng.random((2, 4)) < 0.7
        ids, tensors = rng.integers(2, size=8), [torch.from_numpy(part) for part in (scores, labels, mask)]
        for flat in (False, True):
            given = (labels.ravel(), scores.ravel()) if flat else (labels, scores)
            try:
                want = evaluate(*given, **({"qid": ids} if flat else {"mask": mask})).per_query.ndcg
            except ValueError:
                want = None
            score, label, listed = (part.flatten() if flat else part for part in tensors)
            with torch_kernel():
                form = {"indexes": torch.from_numpy(ids)} if flat else {"mask": listed}
                if want is None:
                    with pytest.raises(ValueError, match="scores must hold scores that stay different"):
                        ndcg(score, label, **form)
                else:
                    np.testing.assert_allclose(ndcg(score, label, **form), want, rtol=1e-12)
            outcomes[flat, want is None] += 1
    assert min(outcomes.values()) > 5
    assert len(outcomes) == 4


ODD = [0.0, 0.8, 1.0, 2.5, 4.0, 9.0, -1.0, math.nan, math.inf, -math.inf]


@pytest.mark.parametrize("kernel", ["torch"], indirect=True)
@examples(400)
@given(strategies.flavors() | strategies.flavors(negative="raise", unjudged="raise"), SEEDS)
def test_labels_are_refused_if_and_only_if_numpy_refuses_them(flavor, seed):
    flavor = flavor.replace(aggregate="macro", empty=0.0, ties="average", duplicates="raise")
    rng = np.random.default_rng(seed)
    labels, mask = rng.choice(rng.choice(ODD[: rng.choice([6, 10])], 3), (1, 6)), rng.random((1, 6)) < 0.7
    for y_true in (labels, labels.astype("f4"), np.nan_to_num(labels, nan=3.0, posinf=3.0, neginf=-3.0).astype("i8")):
        problem = {"y_true": y_true, "y_score": np.arange(6.0)[None], "mask": mask, "retrieved": None, "doc_id": None}
        try:
            evaluate(**problem, flavor=flavor)
        except ValueError:
            with pytest.raises(ValueError, match="labels must"):
                ndcg(torch.arange(6.0)[None], tensor(y_true), flavor=flavor, mask=tensor(mask))
        else:
            np.testing.assert_allclose(*both(flavor, problem, [flavor.k]), rtol=1e-12, atol=1e-12)


def test_a_callable_gain_is_only_asked_about_documents_that_have_a_grade():
    # The gain has no value at grade 0.
    flavor = Flavor(gain=lambda grade: 1 + math.log(grade), unjudged="zero", negative="zero")
    labels = torch.tensor([[3.0, math.nan, -1.0, 0.0]])
    mask = torch.tensor([[True, True, True, False]])
    scores = torch.tensor([[3.0, 2.0, 1.0, 0.0]])
    assert ndcg(scores, labels, flavor=flavor, mask=mask).item() == 1.0
    for refused in (flavor.replace(unjudged="raise"), flavor.replace(unjudged="raise", negative="raise")):
        with pytest.raises(ValueError, match="labels must not hold NaN"):
            ndcg(scores, labels, flavor=refused, mask=mask)


# -- which kernel ----------------------------------------------------------------------------------------------------


class Subclass(torch.Tensor):
    """A tensor that may be more than its numbers."""


SCORES, LABELS = torch.tensor([[0.3, 0.1, 0.2]]), torch.tensor([[0.0, 2.0, 1.0]])
CALLS = {
    "padded": lambda: ndcg(SCORES, LABELS),
    "masked": lambda: ndcg(SCORES, LABELS, mask=LABELS >= 0),
    "flat": lambda: ndcg(SCORES[0], LABELS[0], indexes=torch.tensor([4, 4, 4])),
    "bfloat16": lambda: ndcg(SCORES.bfloat16(), LABELS.bfloat16()),
    "parameter": lambda: ndcg(torch.nn.Parameter(SCORES), LABELS.int()),
    "negated view": lambda: ndcg(torch._neg_view(-SCORES), LABELS),
    "every argument": lambda: ndcg(
        SCORES, LABELS, k=[1, None], mask=LABELS >= 0, retrieved=LABELS >= 0, doc_id=torch.arange(3)[None]
    )[None],
    "no gradient": lambda: ndcg(SCORES.clone().requires_grad_() * 1, LABELS),
    "unsigned 64 bits": lambda: ndcg(torch.tensor([[2**50, 5, 7]], dtype=torch.uint64), LABELS.long()),
    "vmap": lambda: torch.func.vmap(ndcg)(SCORES[None], LABELS[None]),
    "inside a transform": lambda: torch.func.vmap(lambda _: ndcg(SCORES, LABELS).expand(1))(SCORES[:, :1]),
    "compiled": lambda: torch.compile(ndcg, backend="eager")(SCORES, LABELS),
    "traced": lambda: torch.jit.trace(ndcg, (SCORES * 0, LABELS), check_trace=False)(SCORES, LABELS),
    "dispatched": lambda: dispatched(ndcg, SCORES, LABELS),
    "subclass": lambda: ndcg(SCORES.as_subclass(Subclass), LABELS),
}
WANT = ndcg(SCORES, LABELS).item()


def dispatched(function, *arguments):
    with Largest():
        return function(*arguments)


@pytest.mark.filterwarnings(
    "ignore::torch.jit.TracerWarning", "ignore:.*torch.jit:DeprecationWarning", "ignore:.*torch.jit:FutureWarning"
)
@pytest.mark.parametrize("case", CALLS)
def test_every_kind_of_call_has_the_same_value_and_no_gradient(case):
    torch._dynamo.reset()
    got = CALLS[case]()
    assert got.flatten()[0].item() == pytest.approx(WANT, rel=1e-12)
    assert got.dtype == torch.float64
    assert not got.requires_grad


@pytest.mark.filterwarnings(
    "ignore::torch.jit.TracerWarning", "ignore:.*torch.jit:DeprecationWarning", "ignore:.*torch.jit:FutureWarning"
)
def test_a_number_worked_out_rank_by_numpy_is_never_a_constant_of_a_trace():
    traced = torch.jit.trace(ndcg, (SCORES, LABELS), check_trace=False)
    assert traced(-SCORES, LABELS).item() == pytest.approx(ndcg(-SCORES, LABELS).item(), rel=1e-12)
    with pytest.raises(RuntimeError, match="tracing tensor"):  # the search for refused data looks at values
        make_fx(lambda scores, labels: ndcg(scores, labels))(SCORES, LABELS)


# -- compiled code ---------------------------------------------------------------------------------------------------

COMPILED = [
    Flavor(gain=(0, 1, 3, 7), ideal="recall", recall_depth=3, ties="worst", discount="jarvelin"),
    Flavor(gain="exponential", ideal="global"),
    Flavor(ideal="local", unjudged="zero", negative="drop"),
    Flavor(ideal="max", max_grade=3, ties="last", empty="raise", score_dtype="float32"),
    Flavor(ideal="given", ideal_depth="retrieved", gain=(0, 1), off_table="zero", short_lists="zero"),
    "ndcg@3[gain=exponential]",
]


@pytest.mark.parametrize("flavor", quick(COMPILED[:1], COMPILED), ids=lambda flavor: getattr(flavor, "ideal", flavor))
@pytest.mark.parametrize("kernel", ["host"], indirect=True)  # for eager code alone
def test_padded_form_compiles_without_a_graph_break(flavor):
    if isinstance(flavor, str):
        skip_unless(flavors_by_text_in_a_graph)
    elif flavor.ideal == "max":
        skip_unless(numbers_of_numpy_in_a_graph)
    torch._dynamo.reset()
    compiled = torch.compile(ndcg, fullgraph=True, backend="aot_eager")
    generator = torch.Generator().manual_seed(1)
    for width in (4, 7):
        scores = torch.randint(0, 4, (5, width), generator=generator).float()
        labels = torch.randint(0, 4, (5, width), generator=generator)
        mask = torch.rand(5, width, generator=generator) < 0.7
        labels[:, 0], mask[:, 0] = 1, True
        got, want = (function(scores, labels, flavor=flavor, k=[None, 2], mask=mask) for function in (compiled, ndcg))
        torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", ["host"], indirect=True)
def test_compiled_code_says_nan_where_eager_code_raises():
    torch._dynamo.reset()
    compiled = torch.compile(ndcg, fullgraph=True, backend="aot_eager")
    scores = torch.tensor([[1.0, 2.0], [math.nan, 1.0], [1.0, 2.0], [1.0, 2.0]])
    labels = torch.tensor([[0.0, 1.0], [0.0, 1.0], [-1.0, 1.0], [0.0, 0.0]])
    got = compiled(scores, labels, flavor=Flavor(empty="raise"))
    assert got.isnan().tolist() == [False, True, True, True]
    assert got[0] == 1.0


# -- rules ----------------------------------------------------------------------------------------------------------


def test_documents_of_two_queries_may_share_an_id():
    flavor, ids = Flavor(ties="docid"), torch.tensor([5, 6, 5])
    got = ndcg(torch.zeros(3), torch.tensor([1, 0, 1]), flavor=flavor, indexes=torch.tensor([0, 0, 1]), doc_id=ids)
    assert got.tolist() == pytest.approx([1 / math.log2(3), 1.0])


def test_a_document_without_a_tie_keeps_every_digit_of_its_discount():
    scores, labels = torch.arange(100_000.0).flip(0), torch.zeros(100_000)
    labels[-1], scores[0] = 1, scores[1]  # a tie elsewhere
    assert ndcg(scores[None], labels[None]).item() == pytest.approx(1 / math.log2(100_001), rel=1e-15, abs=0)


def test_a_tie_rule_by_id_is_refused_where_operations_are_watched():
    scores, labels, ids = torch.zeros(2, 1, 3), torch.ones(2, 1, 3), torch.arange(6).reshape(2, 1, 3)
    with pytest.raises(ValueError, match="ties must not be broken by document id in compiled, traced"):
        torch.func.vmap(lambda s, y, i: ndcg(s, y, flavor=Flavor(ties="docid"), doc_id=i))(scores, labels, ids)
    with torch_kernel(), pytest.raises(ValueError, match=r"doc_id must not repeat .*in 1 query.*plain CPU"):
        ndcg(scores[0], labels[0], flavor=Flavor(duplicates="count"), doc_id=ids[1].clamp(max=4))
    ndcg(scores, labels, flavor=Flavor(ties="docid"), doc_id=ids)
    torch.func.vmap(lambda s, y, i: ndcg(s, y, flavor=Flavor(ties="worst"), doc_id=i))(scores, labels, ids)
