"""Every section of docs/recipes.md runs as printed, if its tool is installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from printed import blocks, run_script

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "recipes.md"
DATA, ENGINES = "The data of this page", "The data of the engines"  # tests/engines run those below the second
# By the title of a section: checks that run after it, and below the tools that it needs besides NumPy.
CHECKS = {
    "Optuna": """
        assert {trial.state.name for trial in study.trials} == {"COMPLETE", "PRUNED"}
        again = ndcg_score(y[valid], best.predict(X[valid]), qid=qid[valid], flavor=flavor)
        assert abs(again - study.best_value) < 1e-9
    """,
    "mlflow": """
        from ndcg_ml import Flavor

        logged = mlflow.get_run(run.info.run_id)
        assert logged.data.metrics == {f"ndcg_at_{k}": value for k, value in result.value.items()}
        assert Flavor.parse(logged.data.params["ndcg_flavor"]) == result.flavor
    """,
    "sentence-transformers": """
        similar = model.similarity(*(model.encode(list(found.values())) for found in (queries, texts))).numpy()
        grades, ids = [[qrels[q].get(d, 0) for d in texts] for q in queries], [[*texts]] * len(queries)
        expected = ndcg_score(grades, similar, doc_id=ids, k=10, flavor="trec_eval[gain=exponential]")
        assert abs(graded["ndcg_at_10"] - expected) < 1e-9
    """,
    "Hugging Face Trainer": """
        with torch.no_grad():
            scores = trainer.model.layers(torch.from_numpy(X[valid])).squeeze(-1).numpy()
        expected = ndcg_score(y[valid], scores, qid=qid[valid], flavor=flavor)
        assert abs(trainer.evaluate()["eval_ndcg_at_10"] - expected) < 1e-6
        assert abs(trainer.state.best_metric - expected) < 1e-6
    """,
    "torchmetrics": """
        whole = evaluate(y[valid], X[valid, 0] + X[valid, 1] * X[valid, 2], qid=qid[valid], flavor=flavor)
        found, interval = strapped.compute(), whole.interval(method="percentile")
        assert abs(found["quantile"] - torch.tensor([interval.low, interval.high])).max() < 0.01
    """,
    "skorch": """
        found = ndcg_score(y[valid], net.predict(X[valid])[:, 0], qid=qid[valid], flavor=flavor)
        assert abs(found - max(net.history[:, "ndcg_at_10"])) < 1e-6
    """,
    "Keras": """
        found = ndcg_score(y[valid], network.predict(X[valid], verbose=0)[:, 0], qid=qid[valid], flavor=flavor)
        assert abs(found - max(history.history["val_ndcg_at_10"])) < 1e-6
    """,
    "FLAML": """
        scores = automl.predict(X[valid])
        assert abs(1 - automl.best_loss - ndcg_score(y[valid], scores, qid=qid[valid], flavor=flavor)) < 1e-9
    """,
    "Ray Tune": """
        scores = [X[valid, 0] + 5 * w * X[valid, 1] * X[valid, 2] for w in (0.0, 0.1, 0.2, 0.4)]
        values = [ndcg_score(y[valid], each, qid=qid[valid], flavor=flavor) for each in scores]
        assert abs(grid.get_best_result().metrics["ndcg_at_10"] - max(values)) < 1e-9
    """,
    "skore": """
        expected = ndcg_score(y[test], ranker.predict(table[test]), qid=qid[test], flavor=flavor)
        assert abs(report.metrics.get("ndcg_at_10") - expected) < 1e-12
    """,
    "skops": """
        assert set(skops.io.get_untrusted_types(file="ranker.skops")) == {*ours, *theirs}
        expected = ndcg_score(y[test], ranker.predict(X[test]), qid=qid[test], flavor=flavor)
        assert loaded.score(X[test], y[test], qid=qid[test]) == expected
    """,
}
NEEDS = {
    "Optuna": ("optuna", "optuna_integration", "lightgbm", "sklearn"),
    "mlflow": ("mlflow", "pandas", "lightgbm"),
    "sentence-transformers": ("sentence_transformers",),
    "Hugging Face Trainer": ("transformers", "accelerate", "torch"),
    "torchmetrics": ("torchmetrics", "torch"),
    "skorch": ("skorch", "torch"),
    "Keras": ("keras",),
    "FLAML": ("flaml", "lightgbm", "sklearn", "pandas"),
    "Ray Tune": ("ray", "pandas", "pyarrow"),
    "skore": ("skore", "lightgbm", "sklearn"),
    "skops": ("skops", "lightgbm", "sklearn"),
}


def test_every_section_with_code_is_run_by_a_test():
    titles = re.findall(r"^## (.*)$", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    with_code = [title for title in titles if blocks(PAGE, title)]
    assert with_code == [
        DATA,
        *NEEDS,
        ENGINES,
        "Dask",
        "Spark",
        "Ray",
        "Files larger than memory",
        "Processes",
        "Folds",
    ]


@pytest.mark.parametrize(
    "section", [pytest.param(title, marks=pytest.mark.needs(*needs)) for title, needs in NEEDS.items()]
)
def test_a_section_runs(tmp_path, section):
    offline = {"HF_HUB_OFFLINE": "1", "MLFLOW_DISABLE_TELEMETRY": "true", "KERAS_BACKEND": "torch"}
    run_script(tmp_path, *blocks(PAGE, DATA), *blocks(PAGE, section), CHECKS[section], **offline)
