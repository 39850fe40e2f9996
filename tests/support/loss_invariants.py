"""Invariants of every loss. Each function takes a function that makes the loss, and asserts."""

import math
import warnings
from functools import partial

import pytest

torch = pytest.importorskip("torch")

from hypothesis import strategies as st

from ndcg_ml import Flavor
from ndcg_ml.torch import ndcg

POISON = (math.nan, math.inf, -math.inf, 1e30, -1e30)


def doubles(*rows):
    return torch.tensor(rows, dtype=torch.float64, requires_grad=True)


def numbers(nested):
    """Return recorded values as floats. Values that JSON lacks are recorded as strings."""
    return [numbers(entry) for entry in nested] if isinstance(nested, list) else float(nested)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def value_and_gradient(loss, scores, labels, mask=None):
    scores = scores.detach().clone().requires_grad_()
    value = loss(scores, labels, mask)
    value.sum().backward()
    return value.detach(), scores.grad


def watched(loss, scores, labels, mask=None):
    """Return value and gradient in anomaly mode, which raises if a nan is in the graph, even if it is masked later."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Anomaly Detection")
        with torch.autograd.detect_anomaly():
            return value_and_gradient(loss, scores, labels, mask)


def relaxable_flavors(*discounts):
    """Draw flavors that a relaxation can approach. `discounts` are added to the named ones."""
    return st.builds(
        Flavor,
        gain=st.sampled_from(["linear", "exponential", "binary", "judged", (0.0, 1.0, 5.0, 6.0, 20.0)]),
        discount=st.sampled_from(["log2", "ln", "reciprocal", "jarvelin", "none", *discounts]),
        ideal=st.sampled_from(["global", "recall", "local", "max", "given"]),
        ideal_depth=st.sampled_from(["k", "all", "retrieved"]),
        short_lists=st.sampled_from(["score", "score", "zero"]),
        max_grade=st.just(4.0),
        k=st.sampled_from([None, 1, 3, 50]),
        ties=st.sampled_from(["average", "first", "worst"]),
        negative=st.sampled_from(["zero", "drop"]),
        unjudged=st.sampled_from(["zero", "condense"]),
    )


def tends_to_the_metric(cold_loss, flavor, data, *, tied=False):
    """Check that the loss of each list at a low temperature is 1 - NDCG, for random lists."""
    width = data.draw(st.integers(1, 7))
    drawn = st.lists(st.integers(0, 3), min_size=width, max_size=width) if tied else st.permutations(range(width))
    scores = torch.tensor([data.draw(drawn) for _ in range(3)], dtype=torch.float64)
    grades = st.lists(st.sampled_from([0, 1, 2, 3, 4, -1, math.nan]), min_size=width, max_size=width)
    labels = torch.tensor([data.draw(grades) for _ in range(3)], dtype=torch.float64)
    mask = torch.tensor([data.draw(st.lists(st.booleans(), min_size=width, max_size=width)) for _ in range(3)])
    metric = ndcg(scores, labels, flavor=flavor.replace(empty=1.0), mask=mask).nan_to_num(1.0)  # these have no loss
    torch.testing.assert_close(cold_loss(scores, labels, mask), 1 - metric, rtol=1e-10, atol=1e-10)


def appended_padding_changes_nothing(make):
    scores, labels = doubles([0.4, 0.1, -0.3], [0.2, 0.6, 0.5]), torch.tensor([[0.0, 1.0, 2.0], [3.0, 0.0, 1.0]])
    want, gradient = value_and_gradient(make("none"), scores, labels)
    assert gradient.abs().sum() > 0
    mask = torch.tensor([[True, True, True, False, False]] * 2)
    for poison in POISON:
        tail = torch.full((2, 2), poison, dtype=torch.float64)
        got, padded = watched(make("none"), torch.cat([scores, tail], 1), torch.cat([labels, tail], 1), mask)
        torch.testing.assert_close(got, want, rtol=1e-14, atol=1e-14)
        torch.testing.assert_close(padded[:, :3], gradient, rtol=1e-14, atol=1e-14)
        assert not padded[:, 3:].any()


def padding_may_stand_anywhere(make):
    mask = torch.tensor([[False, True, True, False, True]])
    bare, labels = doubles([0.4, 0.1, -0.3]), torch.tensor([[0.0, 1.0, 2.0]])
    want, gradient = value_and_gradient(make("mean"), bare, labels)
    for poison in POISON:
        scores = torch.full((1, 5), poison, dtype=torch.float64).masked_scatter(mask, bare.detach())
        grades = torch.full((1, 5), poison).masked_scatter(mask, labels)
        got, padded = value_and_gradient(make("mean"), scores, grades, mask)
        torch.testing.assert_close(got, want, rtol=1e-14, atol=1e-14)
        torch.testing.assert_close(padded[mask], gradient[0], rtol=1e-14, atol=1e-14)
        assert not padded[~mask].any()


def lists_without_gain_have_no_loss(make):
    for reduction, run in (("none", watched), ("mean", value_and_gradient), ("sum", value_and_gradient)):
        for shape in ((2, 3), (2, 0), (0, 3)):
            for masked in (False, True):
                labels = torch.ones(shape) if masked else torch.zeros(shape)
                mask = torch.full(shape, not masked)
                value, gradient = run(make(reduction), torch.full(shape, 0.3), labels, mask)
                assert value.sum() == 0.0
                assert torch.equal(gradient, torch.zeros(shape))


def odd_lists_have_finite_gradients(make):
    for scores, labels in (
        ([0.7], [2]),
        ([0.0, 0.0, 0.0, 0.0], [0, 1, 2, 0]),
        ([0.3, -0.2, 0.1], [2, 2, 2]),
        ([1.0, 1.0, 0.5, 0.5, 0.5, -1.0], [0, 3, 2, 0, 1, 4]),
        ([3e38, -3e38, 0.0], [0, 1, 2]),
        ([3e38, -3e38, 0.0], [1, 0, 2]),
        ([3e38, -3e38, 0.0], [0, 0, 0]),
        ([120.0, -80.0, 0.0, 60.0, -150.0], [0, 3, 1, 2, 4]),
        ([0.3, 1.2, -0.4], [500, 0, 0]),
        ([0.3, 1.2, -0.4], [30, 0, 0]),
    ):
        # To watch is slow, and float32 ends sooner.
        for dtype, run in ((torch.float32, watched), (torch.float64, value_and_gradient)):
            value, gradient = run(make("mean"), torch.tensor([scores], dtype=dtype), torch.tensor([labels]))
            assert not value.isnan(), (scores, labels)
            assert gradient.isfinite().all(), (scores, labels)


def gradients_sum_to_zero_and_a_shift_changes_nothing(make):
    scores, labels = doubles([0.4, 0.1, -0.3, 0.9], [0.1, 0.2, 0.3, 0.4]), torch.tensor([[0, 1, 2, 1], [3, 0, 0, 1]])
    want, gradient = value_and_gradient(make("none"), scores, labels)
    torch.testing.assert_close(gradient.sum(-1), torch.zeros(2, dtype=torch.float64), rtol=0, atol=1e-14)
    got, shifted = value_and_gradient(make("none"), scores + 64.0, labels)
    torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(shifted, gradient, rtol=1e-12, atol=1e-12)


def documents_may_stand_in_any_order(make, *, tied=True):
    torch.manual_seed(3)
    scores, labels = torch.rand(2, 6).double(), torch.tensor([[0, 1, 2, 0, 3, 1], [0, 0, 4, 1, 1, 0]])
    if tied:
        scores[1] = torch.tensor([0.1, 0.7, 0.1, 0.7, 0.7, 0.2])
    order = torch.randperm(6)
    want, gradient = value_and_gradient(make("none"), scores, labels)
    got, permuted = value_and_gradient(make("none"), scores[:, order], labels[:, order])
    torch.testing.assert_close(got, want, rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(permuted, gradient[:, order], rtol=1e-13, atol=1e-13)


def the_gradient_is_that_of_the_value(make):
    mask = torch.tensor([[True] * 5, [True, False, True, True, False]])
    labels = torch.tensor([[3, 0, 1, 2, 0], [1, 4, 0, 2, 4]])
    scores = doubles([0.3, -0.2, 0.9, 0.1, 0.35], [0.5, 9.0, -0.1, 0.45, -9.0])
    assert torch.autograd.gradcheck(lambda s: make("none")(s, labels, mask), (scores,))


def the_mean_is_over_lists_that_are_not_empty(make):
    scores = doubles([0.1, 0.9], [0.3, 0.2], [0.5, 0.4], [0.5, 0.4])
    labels = torch.tensor([[1, 0], [0, 0], [0, 1], [1, 2]])
    lists = scores, labels, torch.tensor([[True], [True], [True], [False]]).expand(4, 2)
    each = make("none")(*lists)
    assert each[1] == each[3] == 0.0
    assert make("sum")(*lists).item() == pytest.approx(each.sum().item())
    assert make("mean")(*lists).item() == pytest.approx(each.sum().item() / 2)


def half_precision_is_computed_in_float32(make):
    for dtype in (torch.float16, torch.bfloat16):
        scores = torch.tensor([[0.3, 1.2, -0.4, 2.0]]).to(dtype)
        labels = torch.tensor([[30, 2, 0, 1]])
        got, gradient = value_and_gradient(make("mean"), scores, labels)
        want, wide = value_and_gradient(make("mean"), scores.float(), labels)
        assert got.dtype == torch.float32
        assert gradient.dtype == dtype
        assert got == want
        assert torch.equal(gradient, wide.to(dtype))


def a_score_that_is_not_finite_makes_loss_and_gradient_of_its_list_nan(make):
    mask = torch.tensor([[True, True, False]] * 4 + [[False, False, False]])
    labels = torch.tensor([[1, 0, 2]] * 3 + [[0, 0, 0], [1, 0, 2]])
    for bad in (math.nan, math.inf, -math.inf):
        for at in (0, 1):
            scores = torch.tensor([[0.1, 0.9, bad], [0.3, 0.2, bad], [0.2, 0.1, bad], [0.2, 0.5, bad], [bad] * 3])
            scores[[0, 3], at] = bad
            value, gradient = value_and_gradient(make("none"), scores, labels, mask)
            assert value.isnan().tolist() == [True, False, False, True, False]
            assert (gradient.isnan() == (value.isnan()[:, None] & mask)).all()
            assert gradient[[1, 2]].any(-1).all()
            of_mean = value_and_gradient(make("mean"), scores, labels, mask)
            assert [each.isnan().any() for each in of_mean] == [True, True]  # a GradScaler skips the step


def it_never_waits_for_an_accelerator(make):
    # A meta tensor has no data, so reading it raises.
    scores = torch.rand(3, 5, device="meta", requires_grad=True)
    make("mean")(scores, torch.ones(3, 5, device="meta")).backward()
    assert scores.grad.shape == (3, 5)


def another_default_device_changes_nothing(make):
    scores, labels, ids = torch.arange(15.0) % 7, torch.arange(15) % 3, torch.tensor([3, 3, 1, *[2] * 12])
    for form, lists in (({}, (scores[None], labels[None], labels[None] < 2)), ({"indexes": ids}, (scores, labels))):
        loss, same = (partial(make("none"), **form) for _ in range(2))
        want = value_and_gradient(loss, *lists)
        with torch.device("meta"):
            got = value_and_gradient(same, *lists)
        torch.testing.assert_close(got, want, rtol=0, atol=0)


def refusals_say_what_to_do(make):
    for arguments, error, words in (
        ((torch.rand(3), torch.ones(3)), ValueError, r"shape \(n_lists, n_documents\)"),
        (
            (torch.ones(1, 3, dtype=torch.int64), torch.ones(1, 3)),
            TypeError,
            r"scores must be floats.*\(scores, labels\)",
        ),
        (([[1.0]], torch.ones(1, 1)), TypeError, "scores must be a torch.Tensor"),
        ((torch.rand(1, 3), torch.ones(1, 2)), ValueError, "labels must have the shape of scores"),
        ((torch.rand(1, 3), torch.ones(1, 3), torch.ones(1, 3)), TypeError, "mask must be a tensor of bool"),
        ((torch.rand(1, 3), -torch.ones(1, 3)), ValueError, "labels must be >= 0 under negative='raise'; got"),
        ((torch.rand(1, 3), torch.ones(1, 3) * math.nan), ValueError, "labels must not hold NaN"),
    ):
        with pytest.raises(error, match=words):
            make("mean")(*arguments)


ANY = (
    appended_padding_changes_nothing,
    lists_without_gain_have_no_loss,
    odd_lists_have_finite_gradients,
    the_mean_is_over_lists_that_are_not_empty,
    half_precision_is_computed_in_float32,
    a_score_that_is_not_finite_makes_loss_and_gradient_of_its_list_nan,
    it_never_waits_for_an_accelerator,
    another_default_device_changes_nothing,
    refusals_say_what_to_do,
)
"""Invariants of every loss, including random ones with a seeded generator."""

WITHOUT_NOISE = (
    *ANY,
    padding_may_stand_anywhere,
    gradients_sum_to_zero_and_a_shift_changes_nothing,
    documents_may_stand_in_any_order,
    the_gradient_is_that_of_the_value,
)
"""Invariants of every deterministic loss."""
