"""The search of this repository is not worse than its baseline by more than the margin."""

from ndcg_ml import Evaluation, compare, evaluate_run


def test_the_search_is_not_worse() -> None:
    """new.jsonl is what the search retrieves now."""
    base = Evaluation.load("baseline.json")
    new = evaluate_run("qrels.jsonl", "new.jsonl", flavor=base.flavor, k=base.k)
    both = compare(base, new, names=["baseline", "new"], margin=0.01, seed=0)
    assert both.verdict in ("better", "not worse", "equivalent", "unchanged"), str(both)
