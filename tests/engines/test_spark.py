"""The Spark recipe of docs/engines.md is the number of one machine, and the short cuts are refused."""

from __future__ import annotations

import shutil

import pytest
from engines.test_engines import CUT, blocks, run_as_script


@pytest.mark.needs("pyspark")
def test_spark(tmp_path):
    if not shutil.which("java"):
        pytest.skip("Spark needs Java, and there is none on the path")
    setup, *others = blocks("Spark")
    checks = """
        print(by_spark.n_queries == 400, by_spark.n_docs == len(qid), abs(in_any_order.value - in_order.value) > 1e-9)
        ndcg = {"flavor": "lightgbm[ties=average]", "k": 10}
        few = rows.where("query < 3").repartition(5, "query").sortWithinPartitions("query")
        total, some = merged(few.mapInArrow(part, "part string")), qid < 3
        print(total.n_queries)
        assert abs(total.value - ndcg_score(grade[some], score[some], qid=qid[some], **ndcg)) < 1e-12
        unsorted = rows.repartition(2, "query").sortWithinPartitions("score")
        try:
            merged(unsorted.mapInArrow(part, "part string"))
        except Exception as error:
            print("a query reappeared after other queries" in str(error))
        spark.stop()
    """
    out = run_as_script(tmp_path, setup, *others, checks)
    refused = [int(count) for count in CUT.findall(out)]
    assert len(refused) == 2
    assert refused[0] > 50  # batches of 100 rows
    assert out.splitlines()[-3:] == ["True True True", "3", "True"]
