"""Read TREC, JSONL, JSON, CSV and Parquet files, and qrels and runs in any format.

In: paths, streams, dicts and frames. Out: columns of ids, grades and scores, or an error that names the line.
"""
