"""Arrays of every dtype, layout and value give the result of plain arrays or a typed error; inputs never change."""

import itertools
import math
import warnings
from collections import deque
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from lanes import quick
from oracle import Document, oracle

from ndcg_ml import Flavor, dcg_score, evaluate, evaluate_batches, evaluate_run, evaluate_topk, ndcg_score, prepare
from ndcg_ml._core.layout import ODD

pytestmark = pytest.mark.usefixtures("kernel")

SIZES = [4, 3, 5]
LABELS = [3, 0, 1, 2, 0, 0, 1, 2, 2, 0, 4, 1]
SCORES = [0.5, 2.0, 0.5, -1.0, 0.0, 0.0, 3.0, 1.0, 1.0, 1.0, -2.0, 4.0]
WEIGHTS = [1, 2, 0]
FLAVORS = (
    Flavor(gain="exponential", k=3),
    Flavor(ideal="recall", recall_depth=3, score_dtype="float32", k=2),
    Flavor(gain=(0, 1, 3, 7, 15), ties="first", ideal="local"),
    Flavor(gain="binary", ties="docid", ideal="max", max_grade=4, aggregate="micro"),
)


class Marked(np.ndarray):
    """A subclass."""


def unaligned(values):
    shifted = np.zeros(values.nbytes + 1, dtype="u1")[1:].view(values.dtype).reshape(values.shape)
    shifted[...] = values
    return shifted


def memmapped(values, folder):
    path = folder / f"{values.dtype.name}{values.size}-{len(list(folder.iterdir()))}"
    mapped = np.memmap(path, dtype=values.dtype, mode="w+", shape=values.shape)
    mapped[...] = values
    mapped.flush()
    return np.memmap(path, dtype=values.dtype, mode="r", shape=values.shape)


# The same values in other layouts and dtypes. Integer dtypes are for labels, sizes and ids.
LAYOUTS = {
    "every other": lambda v: np.repeat(v, 2, axis=-1)[..., ::2],
    "negative stride": lambda v: np.array(v[..., ::-1])[..., ::-1],
    "Fortran": np.asfortranarray,
    "transposed twice": lambda v: np.ascontiguousarray(v.T).T,
    "a column of a table": lambda v: np.stack([v, v], axis=-1)[..., 0],
    "unaligned": unaligned,
    "subclass": lambda v: v.view(Marked),
    "a field of a record": lambda v: np.rec.fromarrays([v], names="value")["value"],
    "other byte order": lambda v: v.astype(v.dtype.newbyteorder()),
}
REAL = {
    "float32": lambda v: v.astype("f4"),
    "float16": lambda v: v.astype("f2"),
    "float64": lambda v: v.astype("f8"),
    "longdouble": lambda v: v.astype("g"),
    "big-endian float32": lambda v: v.astype(">f4"),
    "big-endian float16": lambda v: v.astype(">f2"),
    "objects": lambda v: v.astype(object),
    "objects of many kinds": lambda v: np.array(
        [(float, Fraction, Decimal, np.float32)[at % 4](each) for at, each in enumerate(v.reshape(-1).tolist())],
        dtype=object,
    ).reshape(v.shape),
    "list": lambda v: v.tolist(),
    "tuple": lambda v: tuple(v.tolist()),
}
WHOLE = {
    name: (lambda v, name=name: v.astype(name)) for name in ("i1", "u1", "<i2", ">i4", "u4", "i8", ">i8", "u8", ">u8")
}
EVERY = {**LAYOUTS, **REAL}


def plain_arguments(flavor, two_dimensional=False):
    shape = (3, 4) if two_dimensional else (12,)
    arguments = {
        "y_true": np.array(LABELS, dtype="f8").reshape(shape),
        "y_score": np.array(SCORES, dtype="f8").reshape(shape),
        "query_weight": np.array(WEIGHTS, dtype="f8"),
        "retrieved": (np.arange(12) % 7 != 2).reshape(shape),
        "doc_id": np.arange(12)[::-1].copy().reshape(shape),
    }
    if two_dimensional:
        arguments["mask"] = (np.arange(12) % 5 != 3).reshape(shape)
    else:
        arguments["group"] = np.array(SIZES)
    return arguments


def frozen(arguments):
    """Make the arrays read-only, and return their bytes."""
    before = {}
    for name, value in arguments.items():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
            before[name] = value.tolist() if value.dtype == object else value.tobytes()
    return before


def assert_unchanged(arguments, before):
    for name, content in before.items():
        value = arguments[name]
        assert (value.tolist() if value.dtype == object else value.tobytes()) == content, name


def everything(flavor, arguments):
    """Return all results for these arguments, as bytes and values that must be bitwise identical."""
    table = evaluate(**arguments, flavor=flavor).per_query
    rest = {name: value for name, value in arguments.items() if name != "y_score"}
    return (
        ndcg_score(**arguments, flavor=flavor),
        ndcg_score(**arguments, flavor=flavor, k=(1, None)),
        dcg_score(**arguments, flavor=flavor),
        prepare(**rest, flavor=flavor)(arguments["y_score"]),
        *(table[name].tobytes() for name in ("ndcg", "dcg", "idcg", "empty", "n_docs", "n_relevant", "tied")),
    )


FORMS = [*EVERY, *WHOLE, "memmap", "read-only"]
# Layouts are tested in two dimensions too; for dtypes one dimension suffices.
QUICK = [*itertools.product(FORMS, [False]), *itertools.product([*LAYOUTS, "memmap", "list"], [True])]


@pytest.mark.parametrize(("form", "two_dimensional"), quick(QUICK, itertools.product(FORMS, [False, True])))
def test_layout_and_dtype_do_not_change_results(form, two_dimensional, tmp_path):
    for at, flavor in enumerate(FLAVORS):
        plain = plain_arguments(flavor, two_dimensional)
        expected = everything(flavor, plain)
        for turn, (name, values) in enumerate(plain.items(), FORMS.index(form)):
            if not name.startswith("y_") and turn % len(FLAVORS) != at:  # the flavors take turns
                continue
            if values.dtype == bool and form not in (*LAYOUTS, "memmap", "read-only", "list", "tuple"):
                continue
            if name in ("group", "doc_id") and form in REAL and form not in ("list", "tuple"):
                continue
            if name == "y_score" and form in WHOLE:
                continue
            if form == "memmap":
                changed = memmapped(values, tmp_path)
            else:
                changed = values.copy() if form == "read-only" else {**EVERY, **WHOLE}[form](values)
            arguments = {**plain_arguments(flavor, two_dimensional), name: changed}
            before = frozen(arguments)
            assert everything(flavor, arguments) == expected, (name, flavor)
            assert_unchanged(arguments, before)


@pytest.mark.parametrize("shape", [(1, 12), (12, 1), (2, 6), (1, 1)])
def test_matrices_are_read_as_queries(shape):
    y, s = (np.resize(values, shape) for values in (LABELS, SCORES))
    lists = {} if shape != (12, 1) else {"mask": np.ones(shape, dtype=bool)}  # a column without a mask is refused
    want = evaluate(y, s, **lists).per_query.ndcg
    for make in (np.asfortranarray, lambda v: v.view(Marked), lambda v: np.flip(np.flip(v).copy())):
        assert evaluate(make(y), make(s), **lists).per_query.ndcg.tobytes() == want.tobytes()
    warnings.simplefilter("ignore", PendingDeprecationWarning)  # NumPy warns about np.matrix itself
    assert evaluate(np.matrix(y), np.matrix(s), **lists).per_query.ndcg.tobytes() == want.tobytes()


def test_a_prepared_object_keeps_copies():
    y, w, sizes = np.array(LABELS, dtype="f8"), np.array(WEIGHTS, dtype="f8"), np.array(SIZES)
    for flavor in (Flavor(), Flavor(ideal="local"), Flavor(ideal="recall", recall_depth=2)):
        ndcg = prepare(y, group=sizes, query_weight=w, flavor=flavor)
        before = ndcg(SCORES)
        table = ndcg.evaluate(SCORES).per_query
        y[:], w[:], sizes[:] = 1, 5, 4
        assert ndcg(SCORES) == before
        for column in dict(table).values():
            column[:] = column.dtype.type(7)
        assert ndcg(SCORES) == before
        assert ndcg.evaluate(SCORES).per_query.qid.tolist() == [0, 1, 2]
        y[:], w[:], sizes[:] = LABELS, WEIGHTS, SIZES


EXTREMES = {
    "zeros of both signs tie": ([3, 0, 1], [0.0, -0.0, 0.0]),
    "zeros of both signs between others": ([3, 0, 1, 2], [-0.0, -5e-324, 0.0, 5e-324]),
    "subnormal scores are told apart": ([0, 1, 2, 3], [5e-324, 1e-323, 0.0, 2.2e-308]),
    "scores at the top": ([0, 1, 2, 3], [1.7e308, 1.6e308, math.inf, 1.7976931348623157e308]),
    "scores at the bottom": ([0, 1, 2, 3], [-math.inf, -1.7976931348623157e308, -math.inf, 0.0]),
    "neighbours of 1": ([0, 1, 2], [1.0, math.nextafter(1.0, 2), math.nextafter(1.0, 0)]),
    "labels at the top": ([1e150, 0, 3e150, 1e-150], [0.4, 0.3, 0.1, 0.2]),
    "labels beyond 2^53": ([2**53, 2**53 + 2, 2**60, 0], [0.1, 0.2, 0.3, 0.4]),
    "labels of zero of both signs": ([-0.0, 0.0, 1.0], [0.3, 0.2, 0.1]),
}


@pytest.mark.parametrize("case", EXTREMES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("ties", ["average", "first", "last", "best", "worst"])
def test_extreme_values_follow_the_definition(case, dtype, ties):
    labels, scores = EXTREMES[case]
    for k in (1, 2, 2**63 - 1):
        flavor = Flavor(ties=ties, score_dtype=dtype, k=k)
        answer = oracle(flavor, [Document(float(y), s) for y, s in zip(labels, scores, strict=True)])
        with np.errstate(all="raise"):  # the caller's setting
            got = evaluate([labels], [scores], flavor=flavor).per_query
        assert got.ndcg[0] == pytest.approx(answer.ndcg, rel=1e-12, abs=0)
        assert got.tied[0] == answer.tied
        if math.isfinite(answer.dcg):
            assert got.dcg[0] == pytest.approx(answer.dcg, rel=1e-12, abs=5e-324)


BEYOND = [2**53 + 1, 2**53, 2**53 + 2, 0]

ROUNDED = {
    "int64": np.array([*BEYOND[:2], 1, 0], dtype=np.int64),
    "uint64": np.array(BEYOND, dtype=np.uint64),
    "object": np.array([*BEYOND[:3], None], dtype=object),
    "a list with a float": [*BEYOND[:3], 0.5],
    "a tuple with a float": (*BEYOND[:2], 1, 0.5),
    "a deque with a float": deque([*BEYOND[:3], 0.5]),
    "beyond 64 bits": [each * 2**70 for each in BEYOND],
    "fractions": [Fraction(each) for each in BEYOND],
    "negative": [-each for each in BEYOND[::-1]],
    "long double": np.array(BEYOND, dtype=np.longdouble),
}


@pytest.mark.parametrize("scores", ROUNDED.values(), ids=ROUNDED)
@pytest.mark.parametrize("flavor", ["sklearn", "trec_eval"])
def test_scores_that_float64_would_tie_are_refused(scores, flavor):
    if isinstance(scores, np.ndarray) and scores.dtype.kind == "f" and scores[0] == scores[1]:
        pytest.skip("long double is float64 here")
    with pytest.raises(ValueError, match=r"^y_score must hold scores that stay different in float64; .* pass ranks\.$"):
        ndcg_score([0, 3, 1, 2], scores, group=[4], flavor=flavor, doc_id=[1, 2, 3, 4])


def test_scores_and_labels_that_float64_keeps_apart_are_accepted():
    exact = ndcg_score([[0, 3, 1, 2]], [[2, 1, 3, 0]])
    for scores in ([2**53, 2**53 - 1, 2**60, 0], [Fraction(2, 3), Fraction(1, 3), Fraction(1), Fraction(0)]):
        assert ndcg_score([[0, 3, 1, 2]], [scores]) == exact
    other, listed = [[2, 1, 3, 0, 2**62, 2**62 + 1]], [[True] * 4 + [False] * 2]  # that become equal without a rank
    assert ndcg_score([[0, 3, 1, 2, 0, 0]], other, mask=listed) == exact
    assert ndcg_score([[0, 3, 1, 2, 0, 0]], other, retrieved=listed) == exact
    assert ndcg_score([[0, 3, 1, 2, None, None]], other, flavor=Flavor(unjudged="condense")) == exact
    assert ndcg_score([1, 0, 0, 1], [2**53, 1, 0, 2**53 + 1], group=[2, 2]) == 1.0
    top = np.array([2**63, 2**62, 1], dtype=np.uint64)
    got = evaluate(top[None], [[1, 2, 3]], flavor=Flavor()).per_query
    assert got.ndcg[0] == evaluate([top.astype("f8")], [[1, 2, 3]], flavor=Flavor()).per_query.ndcg[0]
    assert got.ndcg[0] == pytest.approx((2**63 / 2 + 2**62 / math.log2(3)) / (2**63 + 2**62 / math.log2(3)), rel=1e-12)
    masked = np.array([[3, 0, 1, 2**62 + 1]])
    assert ndcg_score(masked, [[1, 2, 3, 4]], mask=[[True] * 3 + [False]]) == ndcg_score([[3, 0, 1]], [[1, 2, 3]])


@pytest.mark.parametrize("labels", ROUNDED.values(), ids=ROUNDED)
def test_labels_that_float64_would_round_are_refused(labels):
    if isinstance(labels, np.ndarray) and labels.dtype.kind == "f" and labels[0] == labels[1]:
        pytest.skip("long double is float64 here")
    flavor, scores, why = ("trec_eval[ties=average,negative=allow]", [1, 2, 3, 4], r"must hold integers that float64")
    with pytest.raises(ValueError, match=rf"^y_true {why} does not round, .*; got -?\d{{16,}}"):
        ndcg_score(labels, scores, group=[4], flavor=flavor)
    with pytest.raises(ValueError, match=rf"^y_true {why}"):
        evaluate_batches([(labels, scores, [1] * 4)], flavor=flavor)
    with pytest.raises(ValueError, match=rf"^qrels\['q'\] {why}"):
        evaluate_run({"q": dict(zip("abcd", list(labels), strict=True))}, {"q": ["a"]}, flavor=flavor)
    with pytest.raises(ValueError, match=rf"^the grades of held_out {why}"):
        evaluate_topk([[0, 1]], ([0] * 4, range(4), labels), flavor=flavor)


def test_long_doubles_beyond_float64():
    huge = np.array([[1, np.longdouble("1e4000"), 0]], dtype="g")
    if not np.isfinite(huge).all():
        pytest.skip("long double is float64 here")
    with pytest.raises(ValueError, match=r"y_true must be finite; got labels from 0\.0 to inf"):
        ndcg_score(huge, [[1, 2, 3]])
    assert ndcg_score([[0, 1, 0]], huge) == ndcg_score([[0, 1, 0]], [[1, math.inf, 0]]) == 1.0


def test_ids_beyond_ascii_have_an_order():
    both = [ndcg_score([[3, 0, 1, 2]], [[0] * 4], flavor="trec_eval", doc_id=[[*ids]]) for ids in ("éàüö", "badc")]
    assert both[0] == both[1]


def test_signalling_nans_cause_no_warning():
    quiet = np.array([0x7FC00000, 0, 0x3F800000], dtype="u4").view("f4")
    signalling = np.array([0x7F800001, 0, 0x3F800000], dtype="u4").view("f4")
    flavor = Flavor(unjudged="zero")
    for dtype in ("f4", "<f4", ">f4"):
        labels = signalling.astype(signalling.dtype.newbyteorder(dtype[0]) if dtype != "f4" else "f4")
        result = evaluate([labels], [[1, 2, 3]], flavor=flavor)
        assert result.value == ndcg_score([quiet], [[1, 2, 3]], flavor=flavor)
        assert result.range().n_unjudged == 1
        with pytest.raises(ValueError, match="y_score must not hold NaN"):
            ndcg_score([[1, 2, 3]], labels[None])
    scores = np.array([[0x7FF0000000000001, 0]], dtype="u8").view("f8")
    with pytest.raises(ValueError, match="y_score must not hold NaN"):
        ndcg_score([[1, 2]], scores, flavor=Flavor(score_dtype="float32"))


@pytest.mark.parametrize("ids", [[b"\x01", b"\x01\x00", b"\x02"], ["a", "a\x00", "b"], [("a", 1), ("a", 2), ("b", 1)]])
def test_different_document_ids_of_a_list_stay_different(ids):
    flavor = Flavor(ties="docid")
    assert ndcg_score([2, 1, 0], [1, 1, 1], group=[3], doc_id=ids, flavor=flavor) == ndcg_score(
        [2, 1, 0], [1, 1, 1], group=[3], doc_id=[0, 1, 2], flavor=flavor
    )
    if not isinstance(ids[0], tuple):  # NumPy reads tuples as rows
        assert ndcg_score([[2, 1, 0]], [[1, 1, 1]], doc_id=(tuple(ids),), flavor=flavor) < 1


def test_text_ids_with_one_hash_are_different_queries():
    words = np.array([ODD + 5, 7 << 56, 5, (7 << 56) + 1], dtype=np.uint64)  # two texts of two words each
    ids = words.astype("<u8").view("S16")[[0, 1, 0, 1, 1]]
    found = evaluate([1, 0, 2, 1, 3], [1, 2, 3, 4, 5], qid=ids)
    assert found.per_query.qid.tolist() == ids[:2].tolist()
    assert found.per_query.n_docs.tolist() == [2, 3]


def test_documents_with_one_hash_do_not_repeat():
    far = pow(ODD, -1, 2**64)  # this one in the first query has the hash of document 0 in the second
    arguments = {"y_true": [1, 0, 1, 0], "y_score": [2, 1, 1, 2], "qid": [0, 0, 1, 1]}
    ids = np.array([far, 1, 0, 3], dtype=np.uint64)
    assert ndcg_score(**arguments, doc_id=ids) == ndcg_score(**arguments)
