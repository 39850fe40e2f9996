"""Speed of ndcg_ml beside its peers, on the same arrays, in one run: ``python -m benchmarks``."""
