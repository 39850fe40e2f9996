"""The search of this repository is not worse than its baseline or its last accepted run, by the margin."""

import os
import warnings

import pytest

from ndcg_ml import Evaluation, compare, evaluate_run


@pytest.mark.parametrize("reference", ["baseline.json", "last.json"])
def test_the_search_is_not_worse(reference: str) -> None:
    """new.jsonl is what the search retrieves now. On the main branch, set SAVE_LAST to save it."""
    base = Evaluation.load(reference)
    new = evaluate_run("qrels.jsonl", "new.jsonl", flavor=base.flavor, k=base.k)
    both = compare(base, new, names=["before", "new"], margin=0.01, seed=0)
    assert both.verdict != "worse", str(both)
    if both.verdict == "undecided":
        warnings.warn(str(both), UserWarning, stacklevel=1)  # pytest.fail(str(both)) is strict
    if reference == "last.json" and "SAVE_LAST" in os.environ:
        new.save("last.json", qrels="qrels.jsonl")
