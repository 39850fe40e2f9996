"""Labels of a model that a hundred of people correct: by hand, by simulation, and what is refused."""

from __future__ import annotations

import math
import warnings
from hashlib import blake2b

import numpy as np
import pytest
from comparing import of_values

from ndcg_ml import compare, correct_labels, evaluate, evaluate_run

N = 300


def drawn(seed, bias=0.1, noise=0.1, n_people=40):
    """Values under human labels and under those of a model, and the queries with human labels."""
    rng = np.random.default_rng(seed)
    human = rng.beta(2, 2, N)
    model = np.clip(human + bias + rng.normal(0, noise, N), 0.001, 1)  # a label of 0 is not relevant
    return human, model, rng.choice(N, n_people, replace=False)


def corrected(human, model, some):
    return correct_labels(of_values(model), of_values(human[some], some))


def by_hand(f, d, chosen):
    """Prediction-powered inference with two folds by a digest of the ids: value, standard error, weight."""
    order = sorted(range(chosen.size), key=lambda at: blake2b(str(chosen[at]).encode()).digest())
    chosen, d = chosen[order], d[order]
    rest, n = np.delete(f, chosen), chosen.size
    weights, value, variance = [], 0.0, 0.0
    for half in (0, 1):
        mine, other = slice(half, None, 2), slice(1 - half, None, 2)
        g = f[chosen]
        slope = np.cov(d[other], g[other])[0, 1] / ((1 + n / rest.size) * g[other].var(ddof=1))
        w = min(1.0, max(0.0, slope))
        left = d[mine] - w * g[mine]
        weights.append((w, left.size))
        value += left.size / n * (w * rest.mean() + left.mean())
        variance += (left.size / n) ** 2 * left.var(ddof=1) / left.size
    weight = sum(w * size for w, size in weights) / n
    return value, math.sqrt(variance + weight**2 * rest.var(ddof=1) / rest.size), weight


@pytest.mark.parametrize("n_people", [20, 41, N - 2])
def test_the_corrected_value_by_hand(n_people):
    human, model, some = drawn(1, n_people=n_people)
    found = corrected(human, model, some)
    value, error, weight = by_hand(model, human[some], some)
    assert (found.value, found.standard_error, found.weight) == pytest.approx((value, error, weight))
    assert found.bias == pytest.approx((model - human)[some].mean())
    assert found.effective_queries == pytest.approx(human[some].var(ddof=1) / error**2)
    interval = found.interval(0.9)
    if n_people == 20:
        assert interval.method == "bounded"
        return
    stats = pytest.importorskip("scipy.stats")
    reach = stats.t.ppf(0.95, n_people - 2) * error
    assert (interval.low, interval.high) == pytest.approx((value - reach, value + reach))


def test_a_model_that_is_the_negative_of_the_truth_has_no_weight():
    human, _, some = drawn(1)
    found = corrected(human, 1 - human, some)
    assert (found.weight, found.value) == (0, pytest.approx(human[some].mean()))


@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_rows_does_not_matter(seed):
    human, model, some = drawn(8)
    other = np.roll(human, 1)
    rng = np.random.default_rng(seed)

    def ordered(human, model):
        rows, of_people = rng.permutation(N), rng.permutation(some)
        return correct_labels(of_values(model[rows], rows), of_values(human[of_people], of_people))

    plain = [corrected(human, model, np.sort(some)), corrected(other, np.roll(model, 1), np.sort(some))]
    shuffled = [ordered(human, model), ordered(other, np.roll(model, 1))]
    for one, two in [*zip(plain, shuffled, strict=True), (compare(*plain).pairs[0], compare(*shuffled).pairs[0])]:
        assert one.standard_error == pytest.approx(two.standard_error, rel=1e-9)
    assert compare(*shuffled).difference == pytest.approx(compare(*plain).difference, abs=1e-12)
    assert shuffled[0].value == pytest.approx(plain[0].value, abs=1e-12)


def test_the_difference_of_two_systems_is_corrected_by_itself_and_that_of_their_values():
    human, model, some = drawn(2)
    other, other_model = np.clip(human + 0.05, 0, 1), np.clip(model - 0.02, 0.001, 1)
    old, new = corrected(human, model, some), corrected(other, other_model, some)
    found = compare(old, new, names=["old", "new"], margin=0.2)
    value, error, _ = by_hand(other_model - model, (other - human)[some], some)
    assert (found.difference, found.standard_error) == pytest.approx((value, error))
    assert found.values[1] - found.values[0] == pytest.approx(found.difference, abs=1e-12)
    assert np.mean(found.values) == pytest.approx(
        by_hand((other_model + model) / 2, (other + human)[some] / 2, some)[0]
    )
    assert (found.interval.low > 0) == found.pairs[0].significant
    assert found.verdict == "equivalent"
    assert found.wins == ((other - human)[some] > 1e-12).sum()
    assert "300 queries have labels of a model; the correction is valid if the 40 queries" in found.notes[0]
    assert "corrected" in str(found)


@pytest.mark.parametrize("baseline", [None, "a"])
def test_several_systems_hold_together(baseline):
    rng = np.random.default_rng(3)
    human, model, some = drawn(3)
    systems = {name: corrected(np.clip(human + rng.normal(0, 0.1, N), 0, 1), model, some) for name in "abc"}
    found = compare(systems, baseline=baseline, seed=0)
    assert len(found.pairs) == (3 if baseline is None else 2)
    value = dict(zip(found.names, found.values, strict=True))
    for pair in found.pairs:
        assert pair.p_adjusted >= pair.p_value
        assert (pair.interval.low > 0 or pair.interval.high < 0) == pair.significant
        alone = compare(systems[pair.a], systems[pair.b])
        assert value[pair.b] - value[pair.a] == pytest.approx(pair.difference, abs=1e-12)
        assert alone.interval.high - alone.interval.low < pair.interval.high - pair.interval.low


def test_what_is_printed_says_what_is_not_corrected():
    human, model, some = drawn(4)
    found = corrected(human, model, some)
    assert f"Not corrected: {model.mean():.6f} under the model's labels" in str(found)
    assert "40 by people" in str(found)
    assert found.to_dict()["interval"]["low"] == found.interval().low


# -- what is refused --------------------------------------------------------------------------------------------------

HUMAN, MODEL, SOME = drawn(5)


def test_queries_that_people_judged_in_part_are_named():
    ids = [f"q{i}" for i in range(60)]
    run = {qid: ["a", "b", "c"] for qid in ids}
    by_model = {qid: {"a": 1, "b": 0, "c": i % 2} for i, qid in enumerate(ids)}
    by_people = {qid: dict(by_model[qid]) for qid in np.random.default_rng(0).permutation(ids)[:25].tolist()}
    found = correct_labels(evaluate_run(by_model, run, k=2), evaluate_run(by_people, run, k=2))
    assert found.bias == 0
    partly = next(iter(by_people))
    del by_people[partly]["c"]
    with pytest.raises(ValueError, match=f"same number of documents .* the numbers differ in '{partly}'"):
        correct_labels(evaluate_run(by_model, run, k=2), evaluate_run(by_people, run, k=2))


def of_documents(prefix, shift, ids):
    run = {qid: {f"{prefix}{at}": shift - at for at in range(3)} for qid in ids}
    return lambda queries, grade: evaluate_run(
        {q: {f"{prefix}{at}": grade for at in range(3)} for q in queries}, {q: run[q] for q in queries}, k=2
    )


def of_rows(prefix, shift, ids):
    return lambda queries, grade: evaluate(
        np.full(3 * len(queries), grade),
        np.tile([3.0, 2.0, 1.0], len(queries)) + shift,
        qid=np.repeat(queries, 3),
        doc_id=None if prefix is None else np.tile([prefix, "y", "z"], len(queries)),
    )


@pytest.mark.parametrize(
    ("system", "one", "other"),
    [
        (of_documents, ("d", 9), ("e", 9)),
        (of_documents, ("d", 9), ("d", 10)),
        (of_rows, ("d", 0), ("e", 0)),
        (of_rows, ("d", 0), ("d", 1)),
        (of_rows, (None, 0), (None, 1)),
        (of_rows, ("d", 0), (None, 1)),
    ],
)
def test_other_documents_or_scores_are_refused(system, one, other):
    ids = [f"q{i}" for i in range(60)]
    people = np.random.default_rng(0).permutation(ids)[:25].tolist()
    model = system(*one, ids)(ids, 1)
    correct_labels(model, system(*one, ids)(people[::-1], 2))
    with pytest.raises(
        ValueError, match=f"the same documents and scores in model and human; got others in '{people[0]}'"
    ):
        correct_labels(model, system(*other, ids)(people, 2))


def test_a_sample_that_is_not_random_is_warned_of():
    with pytest.warns(UserWarning, match=r"must be a random sample; these are the first ones \(pass qid= to both"):
        corrected(HUMAN, MODEL, np.arange(40))
    best = np.argsort(-MODEL)[:40]
    with pytest.warns(
        UserWarning, match=r"random sample; under the model's labels their mean is 0\.9\d+, and that of the others"
    ):
        corrected(HUMAN, MODEL, best)


def test_a_system_is_unchanged_beside_itself():
    one = corrected(HUMAN, MODEL, SOME)
    found = compare(one, one, margin=0.001)
    assert found.verdict == "unchanged"
    assert (found.interval.low, found.interval.high) == (0.0, 0.0)


def test_systems_that_only_the_model_tells_apart_are_not_unchanged():
    rng = np.random.default_rng(0)
    some = rng.choice(N, 50, replace=False)
    human, worse = np.full(N, 0.9), np.full(N, 0.9)
    worse[np.setdiff1d(np.arange(N), some)[:15]] = 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no loss was drawn, which is not likely
        systems = [corrected(human, labels, some) for labels in (human, worse)]
    found = compare(*systems, margin=0.02)
    pair = found.pairs[0]
    assert (found.verdict, found.difference, found.p_value, pair.widened) == ("undecided", 0, 1, True)
    # Up to 1 - .025^(1/50) of the queries may lose as much as the model's labels say.
    assert found.interval.low == pytest.approx(-0.4 * (1 - 0.025 ** (1 / 50)))
    assert "none of 50 queries changed" in str(found)
    assert "up to 7.1 % of other queries may" in str(found)
    assert pair.unseen == pytest.approx(1 - 0.05 ** (1 / 50))
    assert pair.smallest_detectable() == math.inf
    family = compare(*systems, systems[0], margin=0.02)
    assert [one.verdict for one in family.pairs] == ["undecided", "unchanged", "undecided"]
    assert family.pairs[0].interval.low <= found.interval.low


def test_fewer_than_six_changed_queries_widen_the_interval_on_both_sides():
    rng = np.random.default_rng(1)
    some = rng.choice(N, 100, replace=False)
    old, new = np.full(N, 0.9), np.full(N, 0.9)
    new[some[:3]] = 0.5
    new[np.setdiff1d(np.arange(N), some)[:6]] = 0.5
    found = compare(corrected(old, old, some), corrected(new, new, some))
    alone = compare(of_values(old[some], some), of_values(new[some], some))
    assert (found.pairs[0].widened, found.verdict) == (True, "undecided")
    assert found.difference - found.interval.low == pytest.approx(alone.difference - alone.interval.low)
    assert found.interval.high - found.difference == pytest.approx(found.difference - found.interval.low)
    assert found.p_value > 0.05


def test_values_at_a_bound_have_the_interval_of_people_at_least():
    rng = np.random.default_rng(2)
    human, some = np.where(rng.random(N) < 0.9, 1.0, rng.random(N)), rng.choice(N, 60, replace=False)
    model = np.where(rng.random(N) < 0.1, rng.random(N), human)
    perfect = some[human[some] == 1][:30]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = corrected(human, model, perfect)
        other = corrected(human, model, some)
    alone = of_values(human[perfect], perfect).interval()
    interval = found.interval()
    assert (interval.low, interval.high, interval.method) == pytest.approx((alone.low, 1.0, "bounded"))
    assert "interval between bounds" in str(found)
    for confidence in (0.5, 0.95, 0.999):
        interval = other.interval(confidence)
        assert 0 <= interval.low < other.value < interval.high <= 1


def test_few_queries_of_people_are_not_blamed_on_weights():
    human, model, some = drawn(7, noise=1.0, n_people=20)
    found = compare(corrected(human, model, some), corrected(human[::-1].copy(), model, some))
    assert found.pairs[0].effective_queries < 30
    assert not any("weights" in note for note in found.notes)
