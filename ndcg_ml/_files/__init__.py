"""Read TREC, JSONL, JSON, CSV and Parquet files, and qrels and runs in any format.

In: paths, streams, dicts and frames. Out: columns of ids, grades and scores, or an error that names the line.
"""

from typing import TYPE_CHECKING

from ndcg_ml._core import modules_of

if TYPE_CHECKING:
    from ndcg_ml._files import saved as saved

__getattr__ = modules_of(__name__, "saved")
