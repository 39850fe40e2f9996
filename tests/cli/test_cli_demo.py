"""``ndcg-ml demo``: its picture, its table and its errors."""

import pytest

pytest.importorskip("sklearn")

import re

import numpy as np
from command_line import invoke, program

from ndcg_ml import Flavor, evaluate, ndcg_score
from ndcg_ml import demo as module
from ndcg_ml.demo import digits_problem
from ndcg_ml.readers import read_columns


@pytest.fixture(autouse=True)
def _few_queries(monkeypatch):
    monkeypatch.setattr(module, "digits_problem", lambda: digits_problem(queries=20))


def test_the_picture_and_the_table(tmp_path):
    for needed in ("lightgbm", "matplotlib", "torch", "torchmetrics"):
        pytest.importorskip(needed)
    picture, scores = tmp_path / "curves.png", tmp_path / "scores.csv"
    arguments = ("--picture", picture, "--scores", scores, "--flavor", "catboost@5[gain=0|1|3,empty=skip]")
    result = invoke("demo", *arguments)
    assert result.exit_code == 0, result.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    head, *rows = (line.split() for line in result.stdout.splitlines())
    assert head == ["definition", "gain", "ties", "empty", "scikit-learn", "PyTorch", "LightGBM", "no", "model"]
    values = {row[0]: row[-4:] for row in rows[1:9]}
    assert rows[0][:2] == ["this", "flavor"]
    for name in ("sklearn", "lightgbm", "torchmetrics", "burges2005"):
        for model, value in zip(head[4:7], values[name], strict=False):
            assert f"{ndcg_score(**read_columns(scores, model).arguments(), flavor=name, k=5):.4f}" == value
    assert invoke("demo", *arguments).stdout == result.stdout


@pytest.mark.parametrize("train", [module.train_network, module.boost_trees])
def test_the_validation_value_is_that_of_evaluate_on_the_scores(train):
    for needed in ("lightgbm", "torch", "torchmetrics"):
        pytest.importorskip(needed)
    problem = digits_problem(queries=20)
    test, flavor = problem.test, Flavor.parse("sklearn")  # without a cut-off, padding would always count
    trained = train(problem._replace(valid=test), flavor)
    expected = evaluate(test.labels, trained.scores, group=test.sizes, flavor=flavor).value
    assert trained.history[trained.best] == pytest.approx(expected, abs=1e-6)
    assert np.diff(trained.history[: trained.best + 1]).min() < 0  # a worse round does not end the training


def test_the_problem():
    problem = digits_problem()
    for part in problem:
        assert part.features.shape == (part.sizes.sum(), 70)
        assert np.isfinite(part.features).all()
        assert set(part.labels.tolist()) == {0, 1, 2}
    assert (problem.test.sizes == 1).any()
    assert (np.bincount(problem.test.qid, weights=problem.test.labels) == 0).any()
    again, other = digits_problem(), digits_problem(seed=1)
    assert np.array_equal(problem.test.features, again.test.features)
    assert not np.array_equal(problem.test.sizes, other.test.sizes)
    with pytest.raises(ValueError, match="queries must be from 8 to 300; got 301"):
        digits_problem(queries=301)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--flavor", "lightgmb"), "Did you mean 'lightgbm'"),
        (("--flavor", "trec_eval@10"), "docid"),
        (("--flavor", "ndcg@10[gain=-1|0|1]"), "must be >= 0 in a loss"),
        (("--picture", "nowhere/curves.png"), "does not exist"),
        (("--picture", "one.png", "--scores", "./one.png"), "--scores would replace the output of --picture"),
    ],
)
def test_refused(arguments, words):
    pytest.importorskip("torch")
    result = invoke("demo", *arguments)
    assert result.exit_code == 2, result.output
    assert words in " ".join(result.output.split())


@pytest.mark.parametrize("missing", ["torch", "sklearn"])
def test_missing_packages_are_named(missing):
    done = program(["demo"], (missing,))
    assert done.returncode == 1
    assert "pip install 'ndcg_ml[demo]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_version():
    done = program(["--version"])
    assert done.returncode == 0
    assert re.fullmatch(r"ndcg-ml, version \d+\.\d+.*\n", done.stdout)
