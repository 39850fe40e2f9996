"""From bytes to columns: TREC, JSONL, JSON, CSV, Parquet and the forms of qrels and runs.

In: paths, streams, dicts and frames. Out: columns of ids, grades and scores, or an error that names the line.
"""
