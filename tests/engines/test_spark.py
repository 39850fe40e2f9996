"""Spark's section of docs/recipes.md is the number of one machine, and what would be wrong is refused."""

from __future__ import annotations

import shutil

import pytest
from engines.test_engines import blocks, run_as_script


@pytest.mark.needs("pyspark")
def test_spark(tmp_path):
    if not shutil.which("java"):
        pytest.skip("Spark needs Java, and there is none on the path")
    checks = """
        print(by_spark.n_queries == 400, by_spark.n_docs == len(qid))
        named = {"label": "grade", "score": "score", "qid": "query"}
        own = {"flavor": "lightgbm[ties=average]", "k": 10}
        few, some = rows.where("query < 3").repartition(5), qid < 3  # fewer queries than partitions
        total = ndcg_ml.spark.evaluate(few, **named, **own)
        assert abs(total.value - ndcg_score(grade[some], score[some], qid=qid[some], **own)) < 1e-12
        print(total.n_queries, ndcg_ml.spark.evaluate(rows.where("query < 0"), **named).n_queries)

        dotted = rows.withColumnRenamed("query", "query.id`s")
        again = ndcg_ml.spark.evaluate(dotted, **{**named, "qid": "query.id`s"}, **ndcg)
        print(again.value == by_spark.value)
        for change in ({"flavor": "lightgbm"}, {"label": "stars"}):
            try:
                ndcg_ml.spark.evaluate(rows, **{**named, **own, **change})
            except Exception as error:
                print(str(error)[-200:])
        spark.stop()
    """
    out = run_as_script(tmp_path, *blocks("Spark"), checks)
    assert out.startswith("True True\n3 0\nTrue\n")
    assert 'Choose ties="average"' in out
    assert "It has query, grade, score, row." in out
