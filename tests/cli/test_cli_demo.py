"""``ndcg-ml demo``: its picture, its table and its errors."""

import pytest

pytest.importorskip("sklearn")

import re
from pathlib import Path

import joblib
import numpy as np
from command_line import invoke, program

from ndcg_ml import PRESETS, Flavor, evaluate, ndcg_score
from ndcg_ml import demo as module
from ndcg_ml.demo import digits_problem
from ndcg_ml.readers import read_columns


@pytest.fixture(autouse=True)
def _few_queries(monkeypatch):
    monkeypatch.setattr(module, "digits_problem", lambda: digits_problem(queries=20))
    with joblib.parallel_config("threading"):  # processes take seconds to start
        yield


def test_the_picture_and_the_table(tmp_path, monkeypatch):
    for needed in ("lightgbm", "matplotlib", "torch", "torchmetrics"):
        pytest.importorskip(needed)
    from matplotlib.figure import Figure

    drawn, save = [], Figure.savefig
    monkeypatch.setattr(
        Figure, "savefig", lambda figure, file, **how: drawn.append(figure) or save(figure, file, **how)
    )
    picture, scores = tmp_path / "curves.png", tmp_path / "scores.csv"
    flavor = Flavor.parse("catboost@5[gain=0|1|3,empty=skip]")
    result = invoke("demo", "--picture", picture, "--scores", scores, "--flavor", flavor)
    assert result.exit_code == 0, result.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    head, *rows, last = (line.replace(" (chosen by)", "").split() for line in result.stdout.splitlines())
    assert last[-1] == str(picture)
    assert head == ["definition", "gain", "ties", "empty", "scikit-learn", "PyTorch", "LightGBM", "no", "model"]
    data = {model: read_columns(scores, {"score": model}).arguments() for model in head[4:7]}
    size = data["PyTorch"]["y_true"].size
    data["no model"] = {**data["PyTorch"], "y_score": np.zeros(size)}
    data = {model: {**each, "doc_id": [f"{row:04}" for row in range(size)]} for model, each in data.items()}
    definitions = {row[0]: PRESETS[row[0]].replace(k=5) for row in rows[1:9]}
    for row, used in zip(rows[:9], [flavor, *definitions.values()], strict=True):
        assert row[1:4] == ["table" if used is flavor else used.gain, used.ties, str(used.empty)]
        assert row[4:] == [f"{ndcg_score(**each, flavor=used):.4f}" for each in data.values()]
    of_lightgbm = sorted(float(row[6]) for row in rows[:9])
    n_queries = len(set(data["PyTorch"]["qid"]))
    point = rf"The same LightGBM model has an NDCG@5 from (\S+) to (\S+) on the same {n_queries} test queries"
    assert list(map(float, re.search(point, result.stdout).groups())) == pytest.approx(of_lightgbm[::8], abs=6e-4)
    [_, *progress] = result.stderr.splitlines()
    assert progress[::2] == head[4:7]  # a bar for each, which is its label if nobody watches
    trained = progress[1::2]
    panels = drawn[0].axes
    assert panels[0].get_ylabel() == "validation NDCG@5"
    for panel, framework, said in zip(panels, head[4:7], trained, strict=True):
        found = re.fullmatch(rf"{framework}: (\w+), (candidate|epoch|round) (\d+) of (\d+)", said)
        model, unit, best, last = found.groups()
        curve, line, [point] = (each.get_xydata().tolist() for each in panel.lines)
        x, values = zip(*curve, strict=True)
        assert (x, [at for at, _ in line]) == (tuple(range(1, int(last) + 1)), [int(best)] * 2)
        assert point == curve[values.index(max(values))] == curve[int(best) - 1]
        [words] = panel.get_legend().get_texts()
        assert words.get_text() == f"kept: {unit} {best} of {last}, {max(values):.4f}"
        assert (panel.get_title(), panel.get_xlabel()) == (f"{framework}: {model}", unit)
        assert panel.get_ylim() == panels[0].get_ylim()


@pytest.mark.parametrize("train", [module.train_network, module.boost_trees])
def test_the_validation_value_is_that_of_evaluate_on_the_scores(train):
    for needed in ("lightgbm", "torch", "torchmetrics"):
        pytest.importorskip(needed)
    problem = digits_problem(queries=20)
    test, flavor = problem.test, Flavor.parse("sklearn")  # without a cut-off, padding would always count
    trained, again = (train(problem._replace(valid=test), flavor) for _ in range(2))
    expected = evaluate(test.labels, trained.scores, group=test.sizes, flavor=flavor).value
    assert trained.history[trained.best] == pytest.approx(expected, abs=1e-6)
    assert np.diff(trained.history[: trained.best + 1]).min() < 0  # a worse round does not end the training
    assert np.array_equal(again.scores, trained.scores)


def test_the_problem():
    problem = digits_problem()
    for part in problem:
        assert part.features.shape == (part.sizes.sum(), 70)
        assert np.isfinite(part.features).all()
        assert set(part.labels.tolist()) == {0, 1, 2}
    assert (problem.test.sizes == 1).any()
    assert (np.bincount(problem.test.qid, weights=problem.test.labels) == 0).any()
    recorded = read_columns(Path(__file__).parents[2] / "docs" / "demo_scores.csv", {"score": "LightGBM"}).arguments()
    assert recorded["y_true"].tolist() == problem.test.labels.tolist()
    assert recorded["qid"].tolist() == problem.test.qid.astype(str).tolist()
    assert not np.array_equal(problem.test.sizes, digits_problem(seed=1, queries=8).test.sizes)
    pytest.importorskip("lightgbm")
    trained = module.boost_trees(problem, Flavor.parse("lightgbm@10"))
    np.testing.assert_allclose(trained.scores, recorded["y_score"], rtol=0, atol=1e-6)
    for queries in (7, 301):
        with pytest.raises(ValueError, match=f"queries must be from 8 to 300; got {queries}"):
            digits_problem(queries=queries)


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


def test_a_picture_that_cannot_be_written_costs_no_table(tmp_path, monkeypatch):
    pytest.importorskip("lightgbm")

    def full(*_):
        raise OSError(28, "No space left on device", "curves.png")

    monkeypatch.setattr(module, "write_atomically", full)
    result = invoke("demo", "--picture", tmp_path / "curves.png")
    assert result.exit_code != 0
    assert "The same LightGBM model" in result.stdout


@pytest.mark.parametrize("train", [module.search_grid, module.train_network, module.boost_trees])
def test_the_progress_bar_moves_at_every_step(train):
    steps = []
    trained = train(digits_problem(queries=20), Flavor.parse("lightgbm@10"), steps.append)
    n_steps = {function: n_steps for _, function, n_steps in module._MODELS}[train]
    assert len(steps) == (n_steps if trained.unit == "candidate" else len(trained.history)) <= n_steps


@pytest.mark.parametrize("missing", ["torch", "sklearn", "matplotlib"])
def test_missing_packages_are_named(missing):
    done = program(["demo"], (missing,))
    assert done.returncode == 1
    assert 'pip install ".[demo]" in a clone of ndcg_ml' in done.stderr
    assert "Traceback" not in done.stderr


def test_the_version():
    done = program(["--version"])
    assert done.returncode == 0
    assert re.fullmatch(r"ndcg-ml, version \d+\.\d+.*\n", done.stdout)
