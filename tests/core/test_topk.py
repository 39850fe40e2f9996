"""Full-catalogue evaluation from item numbers: the numbers of ``evaluate_run``, and what is refused."""

import math
import re
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, flavors

from ndcg_ml import Evaluation, RangeError, compare, evaluate_run, evaluate_topk, topk

RECOMMENDERS = (
    *("implicit", "recbole", "cornac", "elliot", "lenskit", "rectools", "rectools_achievable", "replay"),
    *("transformers4rec", "librecommender", "torchrec", "pyg", "trec_eval", "ranx", "spark_graded"),
)
COLUMNS = ("qid", "ndcg", "dcg", "idcg", "empty", "n_docs", "n_judged", "n_relevant", "tied", "n_retrieved", "judged")


def csr(users: Any, items: Any, grades: Any, shape: tuple[int, int]) -> SimpleNamespace:
    """What SciPy's matrix is to the function, so that these tests need no SciPy."""
    order = np.lexsort((items % 5, users))
    counts = np.bincount(users, minlength=shape[0])
    return SimpleNamespace(
        format="csr",
        shape=shape,
        indptr=np.append(0, np.cumsum(counts)).astype(np.int32),
        indices=np.asarray(items)[order].astype(np.int32),
        data=np.asarray(grades)[order],
    )


def drawn(seed: int, repeats: bool) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray], int]:
    rng = np.random.default_rng(seed)
    n_users, n_items, depth = (int(rng.integers(*bounds)) for bounds in ((1, 9), (6, 30), (1, 25)))
    retrieved = np.argsort(rng.random((n_users, n_items)), axis=1)[:, :depth]
    if repeats:
        retrieved = rng.integers(0, 4, retrieved.shape)
    retrieved[rng.random(retrieved.shape) < rng.choice([0, 0.2, 0.9])] = -1  # padding may also stand before items
    likely = rng.choice([0.1, 0.4]) * (np.arange(n_items) < rng.choice([3, n_items]))  # few of the items are held out
    users, items = np.nonzero(rng.random((n_users, n_items)) < likely)
    return retrieved, (users, items, rng.integers(rng.choice([0, 0, -1]), 4, users.size).astype(float)), n_items


def by_ids(retrieved: np.ndarray, held: Any, flavor: Any, k: Any) -> Any:
    """The same as dicts. Items have as many digits each, because ids of evaluate_run are compared as text."""
    qrels: dict[int, dict[int, float]] = {user: {} for user in range(len(retrieved))}
    for user, item, grade in zip(*(column.tolist() for column in held), strict=True):
        qrels[user][1000 + item] = grade
    run = {user: [1000 + item for item in row if item >= 0] for user, row in enumerate(retrieved.tolist())}
    return evaluate_run(qrels, run, flavor=flavor, k=k)


def objects(numbers: np.ndarray) -> np.ndarray:
    """The same integers of NumPy as objects."""
    return np.array([*numbers.ravel()], dtype=object).reshape(numbers.shape)


def outcome(function: Any, *arguments: Any, **settings: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*arguments, **settings)
        except ValueError:
            return None


def check(seed: int, flavor: Any, k: Any, repeats: bool = False) -> None:
    retrieved, held, n_items = drawn(seed, repeats)
    arrays = tuple(column[np.argsort(held[1] % 5, kind="stable")] for column in held)
    expected = outcome(by_ids, retrieved, arrays, flavor, k)
    forms = {
        "arrays": (retrieved, arrays),
        "unsigned": (
            retrieved.astype(np.uint64) if retrieved.min() >= 0 else retrieved,
            (*np.uint8(arrays[:2]), arrays[2]),
        ),
        "objects": (objects(retrieved), (objects(arrays[0]), objects(arrays[1]), arrays[2])),
        "matrix": (retrieved.astype(np.int32), csr(*held, (len(retrieved), n_items))),
        "lists": ([[item for item in row if item >= 0] for row in retrieved.tolist()], arrays),
        # Users times items exceed 32 bits, which is the default integer on Windows, under NumPy 1.
        "large": (np.where(retrieved < 0, -1, retrieved << 26), (arrays[0], arrays[1] << 26, arrays[2])),
    }
    for name, form in forms.items():
        for part_rows in (1 << 18, 1 + seed % 12):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(topk, "_BATCH_ROWS", part_rows)
                got = outcome(evaluate_topk, *form, flavor=flavor, k=k)
            if expected is None:
                # A topic of the run that the qrels lack is no query there, so that this side may refuse more.
                assert got is None, name
                continue
            assert got is not None, name
            assert repr(got.value) == repr(expected.value), name
            assert (got.flavor, got.n_unanswered) == (expected.flavor, expected.n_unanswered)
            assert repr(got.judged) == repr(expected.judged)
            assert got.qrels_only.size == got.run_only.size == 0
            for column in COLUMNS:
                np.testing.assert_array_equal(got.per_query[column], expected.per_query[column], err_msg=column)


@pytest.mark.parametrize("preset", RECOMMENDERS)
def test_presets_of_recommenders_give_the_numbers_of_evaluate_run(preset: str) -> None:
    for seed in range(12):
        check(seed, preset, (1, 3, None), repeats=seed % 3 == 0)


@examples(60)
@given(st.data())
def test_every_flavor_gives_the_numbers_of_evaluate_run(data: st.DataObject) -> None:
    flavor = data.draw(flavors(callables=False, gains=("linear", "exponential", "binary", "judged")))
    if flavor.max_grade is not None and flavor.max_grade < 4:
        flavor = flavor.replace(max_grade=4.0)
    check(
        data.draw(st.integers(0, 10**6)),
        flavor,
        data.draw(st.sampled_from([..., 2, (1, None)])),
        data.draw(st.booleans()),
    )


def test_a_scipy_matrix() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    dense = np.array([[0, 2, 0, 1], [1, 0, 0, 0], [0, 0, 0, 0]])
    retrieved = np.array([[1, 0], [0, 2], [3, 1]])
    for made in (sparse.csr_array, sparse.csr_matrix):
        result = evaluate_topk(retrieved, made(dense), flavor="recbole", k=2)
        assert result.per_query.ndcg.tolist() == pytest.approx([1 / (1 + 1 / math.log2(3)), 1.0, 0.0])


def test_spare_slots_of_a_matrix_are_no_entries() -> None:
    matrix = csr(np.array([0, 0, 1]), np.array([1, 3, 0]), np.array([2.0, 1.0, 1.0]), (2, 4))
    expected = evaluate_topk([[1, 0], [0, 2]], matrix, flavor="recbole", k=2).per_query.ndcg.tolist()
    matrix.indices, matrix.data = np.append(matrix.indices, [0, 0]), np.append(matrix.data, [9.0, np.nan])
    assert evaluate_topk([[1, 0], [0, 2]], matrix, flavor="recbole", k=2).per_query.ndcg.tolist() == expected


RETRIEVED = [[2, 0, 1], [1, 3, -1]]
HELD = ([0, 0, 1], [2, 3, 0], [1, 1, 1])


@pytest.mark.parametrize(
    ("held_out", "qid"),
    [([[3, 2, 3], [0]], None), ({0: [2, 3], 1: [0, 0]}, None), ({"u": [0], "t": (3, 2)}, ["t", "u"])],
)
def test_held_out_items_without_grades(held_out, qid):
    found = evaluate_topk(RETRIEVED, held_out, k=3, qid=qid)
    assert found.per_query.ndcg.tolist() == evaluate_topk(RETRIEVED, HELD, k=3).per_query.ndcg.tolist()
    assert evaluate_topk(RETRIEVED, [[2, 3], []], k=3).n_empty == 1
    assert evaluate_topk(RETRIEVED, [[], []], k=3).n_empty == 2
    assert evaluate_topk([[-1, 2]], [[2]], k=1).value == 1


def test_a_catalogue_has_users_and_items_and_says_who_is_shown_nothing(tmp_path) -> None:
    held = [[7, 8], [3], [9], [5]] * 10
    a = evaluate_topk([[1, 2], [3, 4], [3, 9], [5, 6]] * 10, held, k=2)
    with pytest.warns(UserWarning, match=r"no items are retrieved for 10 of 40 users"):
        b = evaluate_topk([[7, 8], [3, 4], [9, 3], [-1, -1]] * 10, held, k=2, qid=range(40))
    lines = str(a).splitlines()
    assert lines[1:-1] == ["held out@2 = 0.375000", "40 users, 0 empty (scored 0); 80 items"]
    assert "\n10 users without a retrieved item\n" in str(b)
    assert "\n1 user, 0 empty" in str(evaluate_topk([[1]], [[1]]))
    with pytest.raises(RangeError, match=r"results of evaluate_topk do not hold\..*or use evaluate_run"):
        a.range()
    b.save(tmp_path / "base.json")
    both = compare(a, Evaluation.load(tmp_path / "base.json"))  # its judged share is the hits, so nothing warns of it
    assert str(both).startswith("system    NDCG@2  unanswered\n")
    assert "; 40 users (no items returned: a 0, b 10); " in both.caption()
    assert max(map(len, str(both).splitlines())) <= 100  # that of the flavor alone is longer
    with pytest.warns(UserWarning, match=r"no items are retrieved for 1 of 2 users, the first 1;"):
        result = evaluate_topk([[0], [-1]], ([0, 1], [0, 0], [1, 1]), flavor="recbole", k=1)
    assert (result.value, result.n_unanswered) == (0.5, 1)
    for nothing in ([[-1], [-1]], [[], []]):
        with pytest.warns(UserWarning, match=r"for 2 of 2 users, .* Find out why the system returned nothing"):
            result = evaluate_topk(nothing, ([0, 1], [0, 0], [1, 1]), flavor="recbole", k=1)
        assert (result.value, result.n_unanswered) == (0, 2)


@pytest.mark.parametrize(
    ("k", "n_items", "warns"),
    [(10, 40, True), ((2, 10), 40, True), (3, 40, False), (None, 40, False), (10, 6, False), (6, 6, True)],
)
def test_lists_that_are_all_shorter_than_the_cut_off_are_told(k: Any, n_items: int, warns: bool) -> None:
    held = csr(np.array([0, 1]), np.array([1, 5]), np.ones(2), (2, n_items))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        evaluate_topk([[1, 2, -1], [3, 5, 4]], held, k=k)
        evaluate_topk([[1, 2, -1], [3, 5, 4]], ([0, 1], [1, 5], [1, 1]), k=3)
    words = "retrieved_ids is shorter than the cut-off .*; the longest has 3 items. Retrieve .* or pass k=3"
    assert [re.search(words, str(each.message)) is not None for each in seen] == [True] * warns
