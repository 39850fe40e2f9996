"""docs/recipes.md is true: every section runs as printed, on a machine that has its tool."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "recipes.md"
DATA = "The data of this page"
# The tools that a section needs beside NumPy, by the names that Python imports.
NEEDS = {
    "Optuna": ("optuna", "optuna_integration", "lightgbm", "sklearn"),
    "mlflow": ("mlflow", "pandas", "lightgbm"),
    "sentence-transformers": ("sentence_transformers",),
    "Hugging Face Trainer": ("transformers", "accelerate", "torch"),
    "skorch": ("skorch", "torch"),
    "Keras": ("keras",),
    "FLAML": ("flaml", "lightgbm", "sklearn", "pandas"),
    "Ray Tune": ("ray", "pandas", "pyarrow"),
    "skore": ("skore", "lightgbm", "sklearn"),
    "Extreme classification": (),
}


def blocks(section: str) -> list[str]:
    """The code of a section of the page."""
    [text] = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


def run(folder: Path, section: str, checks: str, **environment: str) -> str:
    """What a section prints as a script after the data and before these checks; it is ended with its children.

    The tools warn of one another, start threads and processes, and change global state: none of it is this process's.
    """
    code = "\n".join([*blocks(DATA), *blocks(section), textwrap.dedent(checks)])
    script = folder / "script.py"
    script.write_text(f'if __name__ == "__main__":\n{textwrap.indent(code, "    ")}', encoding="utf-8")
    offline = {"HF_HUB_OFFLINE": "1", "MLFLOW_DISABLE_TELEMETRY": "true", "RAY_USAGE_STATS_ENABLED": "0"}
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", str(script)],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **offline, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, error = process.communicate(timeout=240)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert process.returncode == 0, error[-3000:]
    return out


def test_every_section_with_code_is_run_by_a_test():
    titles = re.findall(r"^## (.*)$", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    assert [title for title in titles if blocks(title)] == [DATA, *NEEDS]


@pytest.mark.needs(*NEEDS["Optuna"])
def test_optuna(tmp_path):
    run(
        tmp_path,
        "Optuna",
        """
        assert {trial.state.name for trial in study.trials} == {"COMPLETE", "PRUNED"}
        assert max(study.best_trial.intermediate_values.values()) == study.best_value
        again = ndcg_score(y[valid], best.predict(X[valid]), qid=qid[valid], flavor=flavor)
        assert abs(again - study.best_value) < 1e-9
        assert value < study.best_value
        """,
    )


@pytest.mark.needs(*NEEDS["mlflow"])
def test_mlflow(tmp_path):
    out = run(
        tmp_path,
        "mlflow",
        """
        from ndcg_ml import Flavor, evaluate_run

        logged = mlflow.get_run(run.info.run_id)
        assert logged.data.metrics == {f"ndcg_at_{k}": value for k, value in result.value.items()}
        assert Flavor.parse(logged.data.params["ndcg_flavor"]) == result.flavor
        assert len(mlflow.load_table("queries.json", run_ids=[run.info.run_id])) == 40

        qrels = {row["inputs"]["q"]: row["expectations"]["grades"] for row in questions}
        found = {row["inputs"]["q"]: list(dict.fromkeys(row["outputs"])) for row in questions}
        expected = evaluate_run(qrels, found, k=10).value
        assert abs(by_mlflow.metrics["ndcg_at_10/mean"] - expected) < 1e-12
        of_retrieved = ndcg_score([0, 3], [2, 1], group=[2], flavor="sklearn@10")  # the mistake
        assert ndcg_at_10(outputs=["x", "a"], expectations=questions[0]["expectations"]) < of_retrieved
        assert ndcg_at_10(outputs=[], expectations=questions[0]["expectations"]) == 0

        import lightgbm as lgb
        from ndcg_ml.lightgbm import NDCGEval

        mlflow.lightgbm.autolog(log_models=False, silent=True)
        data = lgb.Dataset(X[valid], y[valid], group=valid_sizes)
        params = {"objective": "lambdarank", "metric": "None", "verbosity": -1}
        with mlflow.start_run() as automatic:
            lgb.train(params, data, 3, valid_sets=[data], valid_names=["valid_0"], feval=NDCGEval("lightgbm@10"))
        assert "valid_0-ndcg_lightgbm_at_10" in mlflow.get_run(automatic.info.run_id).data.metrics
        """,
    )
    assert 'Invalid value "ndcg@10"' in out


@pytest.mark.needs(*NEEDS["sentence-transformers"])
def test_sentence_transformers(tmp_path):
    run(
        tmp_path,
        "sentence-transformers",
        """
        vectors = [np.asarray(model.encode(list(found.values()))) for found in (asked, texts)]
        queries, documents = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in vectors)
        grades = [[qrels[q].get(d, 0) for d in texts] for q in asked]
        expected = ndcg_score(grades, queries @ documents.T, k=10, flavor="sklearn[gain=exponential]")
        assert abs(graded["ndcg_at_10"] - expected) < 0.01, (graded, expected)  # ties: by id there, averaged here
        assert binary["cosine_ndcg@10"] == 1 > graded["ndcg_at_10"]

        from types import SimpleNamespace
        from sentence_transformers.cross_encoder.evaluation import CrossEncoderRerankingEvaluator

        known, ranked = [*sorted(texts)], np.zeros((len(asked), len(texts)), dtype=bool)
        ranked[:, :40] = True
        grades = np.array([[qrels[q].get(d, 0) for d in known] for q in asked])
        given = np.pad(scores.reshape(len(asked), 40), ((0, 0), (0, 20)))
        ids = [known] * len(asked)
        mine = ndcg_score(grades, given, retrieved=ranked, doc_id=ids, k=10, flavor="trec_eval[gain=exponential]")
        assert abs(reranked.value - mine) < 1e-12
        reranker.model_card_data = SimpleNamespace(set_evaluation_metrics=lambda *given: None)
        theirs = [
            {"query": asked[q], "positive": [texts[d] for d in run[q] if d in qrels[q]],
             "negative": [texts[d] for d in run[q] if d not in qrels[q]]}
            for q in asked
        ]
        binary = CrossEncoderRerankingEvaluator(theirs, write_csv=False)(reranker)["ndcg@10"]
        mine = ndcg_score(grades[:, :40] > 0, given[:, :40], k=10, flavor="sklearn")
        assert abs(binary - mine) < 1e-6 and abs(binary - reranked.value) > 0.01, (binary, mine, reranked.value)
        """,
    )


@pytest.mark.needs(*NEEDS["Hugging Face Trainer"])
def test_hugging_face_trainer(tmp_path):
    run(
        tmp_path,
        "Hugging Face Trainer",
        """
        with torch.no_grad():
            scores = trainer.model.layers(torch.from_numpy(X[valid])).squeeze(-1).numpy()
        expected = ndcg_score(y[valid], scores, qid=qid[valid], flavor=flavor)
        assert abs(trainer.evaluate()["eval_ndcg_at_10"] - expected) < 1e-6
        assert abs(trainer.state.best_metric - expected) < 1e-6

        trainer.args.train_sampling_strategy = "group_by_length"
        lengths = rng.integers(1, 50, valid.sum())
        longer = [{**row, "input_ids": [0] * n} for row, n in zip(rows(valid), lengths)]
        prediction = trainer.predict(longer)
        assert not np.array_equal(prediction.label_ids[1], qid[valid])
        assert abs(prediction.metrics["test_ndcg_at_10"] - expected) < 1e-6
        wrong = ndcg_score(prediction.label_ids[0], prediction.predictions, qid=qid[valid], flavor=flavor)
        assert abs(wrong - expected) > 0.01
        """,
    )


@pytest.mark.needs(*NEEDS["skorch"])
def test_skorch(tmp_path):
    run(
        tmp_path,
        "skorch",
        """
        found = ndcg_score(y[valid], net.predict(X[valid])[:, 0], qid=qid[valid], flavor=flavor)
        assert abs(found - max(net.history[:, "ndcg_at_10"])) < 1e-6
        assert len(net.history) > 5
        columns = net.predict(X[valid]), -net.predict(X[valid])
        assert len({ndcg_score(y[valid, None], column) for column in columns}) == 1  # the mistake
        """,
    )


@pytest.mark.needs(*NEEDS["Keras"])
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_keras(tmp_path, backend):
    pytest.importorskip(backend)
    run(
        tmp_path,
        "Keras",
        """
        found = ndcg_score(y[valid], network.predict(X[valid], verbose=0)[:, 0], qid=qid[valid], flavor=flavor)
        assert abs(found - max(history.history["val_ndcg_at_10"])) < 1e-6
        assert min(history.history["val_ndcg_at_10"]) < found
        """,
        KERAS_BACKEND=backend,
    )


@pytest.mark.needs(*NEEDS["FLAML"])
def test_flaml(tmp_path):
    run(
        tmp_path,
        "FLAML",
        """
        scores = automl.predict(X[valid])
        assert abs(1 - automl.best_loss - ndcg_score(y[valid], scores, qid=qid[valid], flavor=flavor)) < 1e-9

        from flaml.automl.ml import sklearn_metric_loss_score

        own = 1 - sklearn_metric_loss_score("ndcg", scores, y[valid], groups=qid[valid])
        assert abs(own - ndcg_score(y[valid], scores, group=[valid.sum()])) < 1e-9  # one query
        """,
    )


@pytest.mark.needs(*NEEDS["Ray Tune"])
def test_ray_tune(tmp_path):
    run(
        tmp_path,
        "Ray Tune",
        """
        scores = [X[valid, 0] + 5 * w * X[valid, 1] * X[valid, 2] for w in (0.0, 0.1, 0.2, 0.4)]
        values = [ndcg_score(y[valid], each, qid=qid[valid], flavor=flavor) for each in scores]
        assert grid.get_best_result().config["weight"] == (0.0, 0.1, 0.2, 0.4)[int(np.argmax(values))]
        assert abs(grid.get_best_result().metrics["ndcg_at_10"] - max(values)) < 1e-9
        """,
    )


@pytest.mark.needs(*NEEDS["skore"])
def test_skore(tmp_path):
    run(
        tmp_path,
        "skore",
        """
        expected = ndcg_score(y[test], ranker.predict(table[test]), qid=qid[test], flavor=flavor)
        assert abs(report.metrics.get("ndcg_at_10") - expected) < 1e-12
        assert not np.allclose(expected, ndcg_score(y[test], ranker.predict(table[test]), group=[test.sum()]))
        """,
    )


def test_extreme_classification(tmp_path):
    """The numbers are those of pyxclib 0.97 (git 5d13086) on the same labels and scores."""
    run(
        tmp_path,
        "Extreme classification",
        """
        theirs = 0.4384545385837555, 0.44136667251586914, 0.4652375280857086, 0.4663713276386261, 0.4791165888309479
        assert abs(ps_ndcg - theirs[4]) < 1e-6 and plain.empty.sum() == 1
        weighted = truth * inverse_propensity
        for k, value in enumerate(theirs, start=1):
            ideal = evaluate(truth, predicted, k=k, flavor="ndcg").per_query.idcg
            weights = 1 / np.where(ideal > 0, ideal, 1)
            ours = ndcg_score(weighted, predicted, k=k, flavor="ndcg[aggregate=micro]", query_weight=weights)
            assert abs(ours - value) < 1e-6, k
        assert abs(ndcg_score(weighted, predicted, k=5, flavor="ndcg") - ps_ndcg) > 0.004  # the mistake
        """,
    )
