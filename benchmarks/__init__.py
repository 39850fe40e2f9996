"""Benchmarks of ndcg_ml and other libraries on the same data: ``python -m benchmarks``."""
