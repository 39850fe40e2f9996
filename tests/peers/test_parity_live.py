"""The presets against the installed libraries, on random problems and on real data."""

import pytest

pytest.importorskip("catboost")
pytest.importorskip("lightgbm")
pytest.importorskip("sklearn")
pytest.importorskip("xgboost")

import shutil
import subprocess
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
from divergences import CHECKS
from libraries import catboost_ndcg, lightgbm_ndcg, torchmetrics_ndcg, xgboost_ndcg
from sklearn.metrics import dcg_score as sklearn_dcg
from sklearn.metrics import ndcg_score as sklearn_ndcg

from ndcg_ml import Flavor, dcg_score, evaluate, evaluate_run, ndcg_score
from ndcg_ml.divergences import DIVERGENCES

KS = (1, 3, 10, None)


def ragged(seed, *, ties=True, empties=True, top=5, longest=29):
    """Return queries with tied scores, queries without relevant documents and queries of one document."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, longest + 1, 40)
    y = rng.integers(0, top, sizes.sum()).astype(float)
    s = rng.normal(size=y.size)
    if ties:
        s = s.round(rng.integers(0, 2))
    starts = np.cumsum(sizes) - sizes
    for query, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        if empties and query % 7 == 0:
            y[start : start + size] = 0
        elif not empties and not y[start : start + size].any():
            y[start] = 1
    return y, s, sizes


# -- scores and labels in arrays --------------------------------------------------------------------------------------


def rax_ndcg(y, s, sizes, k):
    rax = pytest.importorskip("rax")
    shape = len(sizes), max(sizes)
    where = np.arange(shape[1]) < np.asarray(sizes)[:, None]
    labels, scores = np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=np.float32)
    labels[where], scores[where] = y, s
    return float(rax.ndcg_metric(scores, labels, where=where, topn=k))


# By preset: the library's value, its arguments, the number of data sets, their highest grade, and the tolerance.
# Without a cut-off, XGBoost computes ndcg@32, and so does its preset.
ARRAYS = {
    "lightgbm": (lightgbm_ndcg, {}, 15, 31, 1e-12),
    "lightgbm_linear": (lightgbm_ndcg, {"label_gain": [*range(31)]}, 15, 31, 1e-12),
    "xgboost": (xgboost_ndcg, {}, 10, 32, 2e-6),
    "xgboost_minus": (xgboost_ndcg, {"suffix": "-"}, 10, 32, 2e-6),
    "xgboost_linear": (xgboost_ndcg, {"exponential": False}, 10, 32, 2e-6),
    "catboost": (catboost_ndcg, {}, 10, 30, 1e-6),
    "catboost_exp": (catboost_ndcg, {"kind": "Exp"}, 10, 30, 1e-6),
    "catboost_position": (catboost_ndcg, {"position": "Position"}, 10, 30, 1e-6),
    "catboost_exp_position": (catboost_ndcg, {"kind": "Exp", "position": "Position"}, 10, 30, 1e-6),
    "torchmetrics": (torchmetrics_ndcg, {}, 3, 5, 1e-5),
    "torchmetrics_pos": (torchmetrics_ndcg, {"action": "pos"}, 3, 5, 1e-5),
    "torchmetrics_skip": (torchmetrics_ndcg, {"action": "skip"}, 3, 5, 1e-5),
    "torchmetrics_error": (torchmetrics_ndcg, {"action": "error"}, 1, 5, 1e-5),
    "rax": (rax_ndcg, {}, 5, 30, 1e-5),
}


@pytest.mark.parametrize("k", KS)
@pytest.mark.parametrize("preset", ARRAYS)
def test_a_preset_is_the_library_on_arrays(preset, k):
    library, options, n_data, top, tolerance = ARRAYS[preset]
    k = ... if k is None and library is xgboost_ndcg else k
    for seed in range(n_data):
        longest = 60 if library is xgboost_ndcg else 29
        y, s, sizes = ragged(seed, top=5 if seed % 2 else top, longest=longest, empties=preset != "torchmetrics_error")
        more = {}
        if preset == "rax":
            s[:: 2 + seed] = -np.inf  # rax gives documents that were not retrieved this score
            more["retrieved"] = s > -np.inf
        ours = ndcg_score(y, s, group=sizes, flavor=preset, k=k, **more)
        assert ours == pytest.approx(library(y, s, sizes, k, **options), abs=tolerance)
        if library is catboost_ndcg:
            weight = np.random.default_rng(seed).integers(1, 5, sizes.size).astype(float)
            ours = ndcg_score(y, s, group=sizes, flavor=preset, k=k, query_weight=weight)
            assert ours == pytest.approx(library(y, s, sizes, k, weight, **options), abs=tolerance)


def weighted(library):
    y, s, sizes = ragged(3)
    weight = np.random.default_rng(0).random(sizes.size).astype(np.float32)
    ours = ndcg_score(y, s, group=sizes, flavor=library.__name__.partition("_")[0], k=5, query_weight=weight)
    return ours, library(y, s, sizes, 5, np.repeat(weight, sizes) if library is lightgbm_ndcg else weight)


def test_torchmetrics_error_raises_where_its_preset_does():
    y, s, sizes = ragged(0)
    with pytest.raises(ValueError, match="query with no positive target"):
        torchmetrics_ndcg(y, s, sizes, 5, "error")
    with pytest.raises(ValueError, match="under empty='raise'"):
        ndcg_score(y, s, group=sizes, flavor="torchmetrics_error", k=5)


@pytest.mark.parametrize("digits", [0, 1, 12])
@pytest.mark.parametrize("k", KS)
def test_sklearn(k, digits):
    for seed in range(25):
        rng = np.random.default_rng(seed)
        shape = rng.integers(1, 8), rng.integers(2, 60)
        y, s, weight = (
            rng.integers(0, 5, shape).astype(float),
            rng.normal(size=shape).round(digits),
            rng.random(shape[0]),
        )
        y[:: 1 + seed % 3] *= rng.random()  # fractions, sometimes 0
        for theirs, ours in ((sklearn_ndcg, ndcg_score), (sklearn_dcg, dcg_score)):
            assert ours(y, s, flavor="sklearn", k=k) == pytest.approx(theirs(y, s, k=k), rel=1e-12, abs=1e-12)
            weighted = ours(y, s, flavor="sklearn", k=k, query_weight=weight)
            assert weighted == pytest.approx(theirs(y, s, k=k, sample_weight=weight), rel=1e-12, abs=1e-12)


# -- runs and judgements


def trec(seed, *, ties=True, longest=29, near=False):
    """Return a run and judgements with ties, topics without a relevant document, unjudged and unretrieved documents."""
    y, s, sizes = ragged(seed, ties=ties, longest=longest)
    rng = np.random.default_rng(seed)
    if near:
        s = s + 1e-9 * rng.integers(0, 2, s.size)  # equal in float32
    qrels, run = {}, {}
    ends = np.cumsum(sizes)
    for topic, (start, end) in enumerate(zip(ends - sizes, ends, strict=True)):
        ids = [f"{i:02}" for i in rng.permutation(100)]
        here = range(end - start)
        judged = [i for i in here if i == 0 or rng.random() < 0.8]
        qrels[f"q{topic}"] = {ids[i]: int(y[start + i]) for i in judged}
        qrels[f"q{topic}"] |= {ids[60 + i]: int(rng.integers(0, 4)) for i in range(topic % 3)}  # not retrieved
        if topic % 9 != 5:
            run[f"q{topic}"] = {ids[i]: float(s[start + i]) for i in here}
    run["q_unjudged"] = {"d1": 1.0}
    return qrels, run


def numbered(seed):
    """Return a run and judgements whose topics are numbers, as gdeval.pl needs."""
    return ({q[1:]: docs for q, docs in part.items() if q[1:].isdigit()} for part in trec(seed, near=True))


def columns(qrels, run):
    """Return a run and judgements as arguments of ``evaluate``."""
    rows = [
        (topic, document, qrels[topic].get(document, np.nan), scores.get(document, 0.0), document in scores)
        for topic in qrels
        for scores in [run.get(topic, {})]
        for document in dict.fromkeys([*scores, *qrels[topic]])
    ]
    qid, doc_id, y_true, y_score, retrieved = map(np.array, zip(*rows, strict=True))
    return {"y_true": y_true, "y_score": y_score, "qid": qid, "doc_id": doc_id, "retrieved": retrieved}


def random_problem(rng):
    """Grades from -2 to 4, tied and nearly tied scores, unjudged documents, topics on one side only."""
    alphabet = ["doc1", "doc2", "doc10", "Doc1", "é", "\U0001f600", "\uf8ff", "~", "A", "a", "07", "7", "x" * 40]
    qrels, run = {}, {}
    for number in range(int(rng.integers(2, 9))):
        topic = f"t{number}"
        pool = [*alphabet, *(f"{rng.integers(10**6)}-{i}" for i in range(int(rng.integers(0, 40))))]
        if number == 0 or rng.random() < 0.8:
            some = rng.permutation(pool)[: rng.integers(1, len(pool) + 1)].tolist()
            qrels[topic] = {doc: int(rng.integers(-2, 5)) for doc in some}
            # pytrec_eval-terrier 0.5.11 kills the process where every grade of a topic is negative.
            qrels[topic][some[0]] = abs(qrels[topic][some[0]])
        if number == 0 or rng.random() < 0.8:
            some = rng.permutation(pool)[: rng.integers(1, len(pool) + 1)].tolist()
            near = rng.choice([0.0, 1e-9, 1e-3], len(some))
            run[topic] = dict(zip(some, (rng.integers(0, 4, len(some)) + near).tolist(), strict=True))
    return qrels, run


@pytest.mark.parametrize("seed", range(150))
def test_pytrec_eval(seed):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    rng = np.random.default_rng(seed)
    qrels, run = random_problem(rng)
    if not any(doc in qrels.get(topic, {}) for topic, docs in run.items() for doc in docs):
        pytest.skip("no judged document drawn")
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg", "ndcg_cut.1,3,10"}).evaluate(run)
    result = evaluate_run(qrels, run, flavor="pytrec_eval", k=(None, 1, 3, 10), queries="both")
    names = ("ndcg", "ndcg_cut_1", "ndcg_cut_3", "ndcg_cut_10")
    assert sorted(result.per_query.qid.tolist()) == sorted(theirs)
    expected = np.array([[theirs[topic][name] for name in names] for topic in result.per_query.qid.tolist()])
    assert result.per_query.ndcg == pytest.approx(expected, abs=1e-12)
    assert list(result.value.values()) == pytest.approx(expected.mean(axis=0), abs=1e-12)
    # With every topic of the qrels, the missing ones count 0.
    whole = evaluate_run(qrels, run, k=10).value
    assert whole == pytest.approx(expected[:, 3].sum() / len(qrels), abs=1e-12)


needs_perl = pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval.pl needs perl")


@pytest.mark.parametrize("k", [1, 10, 1000])
@pytest.mark.parametrize("provider", ["pytrec_eval", pytest.param("gdeval", marks=needs_perl)])
def test_ir_measures(k, provider):
    ir_measures = pytest.importorskip("ir_measures")
    exponential = provider == "gdeval"
    measure = (ir_measures.nDCG(dcg="exp-log2") if exponential else ir_measures.nDCG) @ k
    flavor, tolerance = ("ir_measures_exp", 0.5e-5 + 1e-9) if exponential else ("ir_measures", 1e-12)
    for qrels, run in [numbered(k)] if exponential else (trec(seed, near=True) for seed in range(3)):
        theirs = getattr(ir_measures, provider).calc([measure], qrels, run)
        ours = evaluate(flavor=flavor, k=k, **columns(qrels, run))
        assert ours.value == pytest.approx(theirs.aggregated[measure], abs=2 * tolerance)
        mine = dict(zip(ours.per_query.qid.tolist(), ours.per_query.ndcg.tolist(), strict=True))
        for value in theirs.per_query:
            assert mine[value.query_id] == pytest.approx(value.value, abs=tolerance), value.query_id


@needs_perl
@pytest.mark.parametrize("k", [1, 10, 1000])
def test_gdeval(k, tmp_path):
    """gdeval.pl averages the topics that it prints. The copy in ir_measures does not print the mean."""
    ir_measures = pytest.importorskip("ir_measures")
    qrels, run = numbered(k)
    nothing_relevant, missing = list(qrels)[:2]
    qrels[nothing_relevant] = dict.fromkeys(qrels[nothing_relevant], 0)
    del run[missing]
    lines = {
        "qrels": [f"{q} 0 {doc} {grade}" for q, docs in qrels.items() for doc, grade in docs.items()],
        "run": [f"{q} Q0 {doc} 1 {score!r} x" for q, docs in run.items() for doc, score in docs.items()],
    }
    for name, each in lines.items():
        (tmp_path / name).write_text("\n".join(each) + "\n")
    script = Path(ir_measures.__file__).parent / "bin" / "gdeval.pl"
    command = ["perl", str(script), str(tmp_path / "qrels"), str(tmp_path / "run"), str(k)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[1:]
    theirs = {topic: float(value) for _, topic, value, _ in (line.split(",") for line in printed)}
    ours = evaluate_run(str(tmp_path / "qrels"), str(tmp_path / "run"), flavor="gdeval", k=k, queries="both")
    counted = dict(zip(ours.per_query.qid.tolist(), ours.per_query.ndcg.tolist(), strict=True))
    assert {topic for topic, value in counted.items() if value == value} == set(theirs)
    assert nothing_relevant in counted
    assert nothing_relevant not in theirs
    assert {topic: counted[topic] for topic in theirs} == pytest.approx(theirs, abs=0.5e-5 + 1e-9)
    assert ours.value == pytest.approx(np.mean(list(theirs.values())), abs=1e-5)
    # With -c, judged topics that the run lacks score 0; topics without a relevant document are still excluded.
    complete = evaluate_run(str(tmp_path / "qrels"), str(tmp_path / "run"), flavor="gdeval", k=k)
    n_relevant = sum(any(grade > 0 for grade in docs.values()) for docs in qrels.values())
    assert complete.value == pytest.approx(sum(theirs.values()) / n_relevant, abs=1e-5)


def ranx_ndcg(qrels, run, k, metric):
    ranx = pytest.importorskip("ranx")  # compiles anew for document ids of another length: here all have two characters
    ranked = ranx.Run({topic: dict(docs) for topic, docs in run.items()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Numba warns of casts in ranx
        at_k = metric if k is None else f"{metric}@{k}"
        return float(ranx.evaluate(ranx.Qrels(qrels), ranked, at_k, make_comparable=True))


@pytest.mark.long  # ranx compiles for seconds
def test_the_containers_of_ranx_are_read():
    ranx = pytest.importorskip("ranx")
    qrels, run = {"q": {"d1": 1, "d3": 1}, "r": {"d4": 1}}, {"q": {"d1": 3.0, "d2": 2.0}, "r": {"d1": 1.0, "d4": 2.0}}
    assert evaluate_run(ranx.Qrels(qrels), ranx.Run(run), k=10).value == evaluate_run(qrels, run, k=10).value


def recommenders_ndcg(qrels, run, k, kind):
    module = pytest.importorskip("recommenders.evaluation.python_evaluation")
    pandas = pytest.importorskip("pandas")

    def frame(part, column):
        rows = [(user, item, value) for user, items in part.items() for item, value in items.items()]
        return pandas.DataFrame(rows, columns=["userID", "itemID", column])

    return module.ndcg_at_k(frame(qrels, "rating"), frame(run, "prediction"), k=k, score_type=kind)


# By preset: the library's value, its arguments, and the cut-offs. ranx compiles for seconds, and
# test_parity_golden.py has its recorded values.
RUNS = {
    "ranx": (ranx_ndcg, "ndcg", KS),
    "ranx_burges": (ranx_ndcg, "ndcg_burges", KS),
    **{f"recommenders_{kind}": (recommenders_ndcg, kind, (1, 3, 10, 1000)) for kind in ("binary", "raw", "exp")},
}
MARKS = {ranx_ndcg: pytest.mark.long, recommenders_ndcg: pytest.mark.needs("recommenders")}


@pytest.mark.parametrize(
    ("preset", "k"), [pytest.param(preset, k, marks=MARKS[row[0]]) for preset, row in RUNS.items() for k in row[2]]
)
def test_a_preset_is_the_library_on_runs(preset, k):
    library, kind, _ = RUNS[preset]
    for seed in range(4):
        # The sort of ranx is stable up to 15 documents.
        ties = seed % 2 == 0 or library is recommenders_ndcg
        qrels, run = trec(seed, ties=ties, longest=15 if ties and library is ranx_ndcg else 29)
        ours = ndcg_score(flavor=preset, k=k, **columns(qrels, run))
        assert ours == pytest.approx(library(qrels, run, k, kind), abs=1e-12)


def test_weights_of_items_are_gains_times_weights():
    """As docs/flavors.md says, rax weights the gain of each document, also in the ideal."""
    jnp, rax = pytest.importorskip("jax.numpy"), pytest.importorskip("rax")
    rng = np.random.default_rng(0)
    scores, labels, weights = rng.normal(size=8), rng.integers(0, 4, 8), rng.integers(1, 9, 8) / 4
    theirs = {"weights": jnp.array(weights)}
    for k in (None, 3):
        exponential = rax.ndcg_metric(jnp.array(scores), jnp.array(labels), topn=k, **theirs)
        linear = rax.ndcg_metric(jnp.array(scores), jnp.array(labels), topn=k, gain_fn=lambda y: y, **theirs)
        ours = [ndcg_score([gain * weights], [scores], flavor=Flavor(), k=k) for gain in (2.0**labels - 1, labels)]
        assert np.allclose(ours, [float(exponential), float(linear)], atol=1e-6)


# -- declared divergences ---------------------------------------------------------------------------------------------

WEIGHTED = "queries are weighted and one has no relevant document"
NEGATIVE_IDEAL = "the ideal DCG is 0 or below, because labels are negative"
MANY = {f"{i:02x}": int(grade) for i, grade in enumerate(np.random.default_rng(0).integers(0, 5, 200))}


def one_list(library, y, s, k=None):
    flavor = library.__name__.partition("_")[0]
    return ndcg_score(y, s, group=[len(y)], flavor=flavor, k=k), library(y, s, [len(y)], k)


def one_run(library, preset, kind, grades, scores, k):
    qrels, run = {"q": grades}, {"q": scores}
    return ndcg_score(flavor=preset, k=k, **columns(qrels, run)), library(qrels, run, k, kind)


# A preset of the entry and its cases, and the value of ndcg_ml with that of the library.
DIVERGES = [
    ("sklearn", "a query has one document", lambda: (ndcg_score([[2.0]], [[1.0]]), sklearn_ndcg([[2.0]], [[1.0]]))),
    ("lightgbm", WEIGHTED, lambda: weighted(lightgbm_ndcg)),
    ("xgboost", WEIGHTED, lambda: weighted(xgboost_ndcg)),
    ("torchmetrics", "the labels of a query sum to 0, but some are above 0",
        lambda: one_list(torchmetrics_ndcg, [1, 0, -1], [3.0, 2.0, 1.0])),
    ("torchmetrics", NEGATIVE_IDEAL, lambda: one_list(torchmetrics_ndcg, [-2, -1], [2.0, 1.0])),
    ("rax", NEGATIVE_IDEAL, lambda: one_list(rax_ndcg, [0, -1], [0, 1], 1)),
    ("rax", "a label is 128 or more", lambda: one_list(rax_ndcg, [128, 0], [0, 1])),
    pytest.param("ranx", "scores are tied in a query of more than 15 documents",
        lambda: one_run(ranx_ndcg, "ranx", "ndcg", MANY, dict.fromkeys(MANY, 1.0), 10), marks=pytest.mark.long),
    pytest.param("ranx", "a grade is a fraction",
        lambda: one_run(ranx_ndcg, "ranx", "ndcg", {"d1": 0.5, "d2": 1.0}, {"d1": 2.0, "d2": 1.0}, None),
        marks=pytest.mark.long),
    pytest.param("recommenders_binary", NEGATIVE_IDEAL,
        lambda: one_run(recommenders_ndcg, "recommenders_raw", "raw", {"a": 0, "b": -1}, {"a": 1.0, "b": 2.0}, 10),
        marks=pytest.mark.needs("recommenders")),
    pytest.param("recommenders_raw", "every user is empty",
        lambda: one_run(recommenders_ndcg, "recommenders_raw", "raw", {"a": 0, "b": 0}, {"a": 1.0, "b": 2.0}, 10),
        marks=pytest.mark.needs("recommenders")),
]  # fmt: skip


@pytest.mark.parametrize(("preset", "cases", "values"), DIVERGES)
def test_a_declared_divergence_is_there(preset, cases, values):
    [_] = (entry for entry in DIVERGENCES if preset in entry.presets and entry.cases == cases)
    with suppress(ValueError):  # scikit-learn raises
        ours, theirs = values()
        assert ours != pytest.approx(theirs, abs=1e-3)


def test_every_divergence_declared_as_live_has_a_test():
    shown = {getattr(row, "values", row)[1] for row in DIVERGES}
    assert {cases for (_, cases), check in CHECKS.items() if check.shown_by == "live"} <= shown
