"""Evaluate arrays: ``ndcg_score``, ``dcg_score``, ``evaluate``, ``evaluate_ranked`` and ``prepare``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, overload

import numpy as np
from numpy.typing import ArrayLike

from ndcg_ml._core.arrays import real_array, score_array
from ndcg_ml._core.column_names import ColumnNames, Wanted, column_names
from ndcg_ml._core.frames import Frame, is_frame, library_of, refuse_lazy, select_columns
from ndcg_ml._core.mean_and_empty_queries import shape_values
from ndcg_ml._core.queries import Queries, Scored, Weights
from ndcg_ml._core.query_groups import group_by_sizes
from ndcg_ml._core.scores import Ranking
from ndcg_ml._core.slice_names import query_clusters, slice_names
from ndcg_ml._plain.checks import K, KSpec, OneK, warn_caller, warn_of_lists_of_one
from ndcg_ml._plain.messages import brief
from ndcg_ml.flavor import Flavor, as_flavor
from ndcg_ml.results.evaluation import Evaluation, V, evaluation_from_totals


# fmt: off
@overload
def ndcg_score(
    y_true: ArrayLike, y_score: ArrayLike, *, flavor: Flavor | str = ..., k: OneK = ..., qid: ArrayLike | None = ...,
    group: ArrayLike | None = ..., mask: ArrayLike | None = ..., retrieved: ArrayLike | None = ...,
    doc_id: ArrayLike | None = ..., query_weight: Weights | None = ...,
) -> float: ...
@overload
def ndcg_score(
    y_true: ArrayLike, y_score: ArrayLike, *, flavor: Flavor | str = ..., k: Sequence[K],
    qid: ArrayLike | None = ..., group: ArrayLike | None = ..., mask: ArrayLike | None = ...,
    retrieved: ArrayLike | None = ..., doc_id: ArrayLike | None = ...,
    query_weight: Weights | None = ...,
) -> dict[K, float]: ...
# fmt: on
def ndcg_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    flavor: Flavor | str = "sklearn",
    k: KSpec = ...,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    retrieved: ArrayLike | None = None,
    doc_id: ArrayLike | None = None,
    query_weight: Weights | None = None,
) -> Any:
    r"""Normalised discounted cumulative gain of scores against graded labels, averaged over queries.

        NDCG@k = DCG@k / IDCG@k,  DCG@k = sum over documents d of gain(y_d) w_d

    where w_d is the expected discount of document *d* under the scores. The flavor defines every part, and
    ``flavor.describe()`` prints the definition.

    Parameters
    ----------
    y_true : array-like of float, shape (n_documents,) or (n_queries, n_documents)
        Graded labels. NaN is an unjudged document.
    y_score : array-like of float, shape of `y_true`
        Scores, higher is better. -inf ranks last. Scores of one query that float64 would make equal, such as integers
        beyond 2^53, are refused.
    flavor : Flavor or str, default "sklearn"
        Which NDCG: a ``Flavor``, the name of a preset, or a flavor's text such as ``"lightgbm@10"``.
    k : int, None or sequence of them, optional
        Cut-off in ranks; None uses all ranks; a sequence computes several from one ranking. Default: the flavor's own.
    qid : array-like of shape (n_documents,), optional
        With 1-D input: the query of each row, of any dtype, in any order. In a list, a tuple is one id of several
        parts.
    group : array-like of int, shape (n_queries,), optional
        With 1-D input: sizes of consecutive queries (LightGBM's convention). A size of 0 is an empty query, with a
        warning. A pandas Series is refused unless its index is 0, 1, ..., because ``groupby(...).size()`` sorts the
        queries by id, and the rows may have another order.
    mask : array of bool, shape of `y_true`, optional
        With 2-D input: True if the slot holds a document. Other slots are padding and may hold anything. A row without
        a document is padding, not a query: its weight, slice and cluster are ignored.
    retrieved : array of bool, shape of `y_true`, optional
        True if the document was ranked. Other documents only enter the ``global`` ideal. Default: all were ranked.
    doc_id : array-like of shape of `y_true`, optional
        Document ids, needed by ``ties="docid"`` and ``"docid_ascending"``. As in trec_eval, ids are compared as text,
        integers too: "10" is before "9"; floats are refused. (For an order of your own, number the documents from
        10^9.) An id that repeats within a query is an error unless the flavor's ``duplicates`` allows it. Without ids,
        every row is a separate document.
    query_weight : array-like of float, shape (n_queries,), pandas.Series, or mapping, optional
        Weight of each query. With `qid`, a Series is aligned by its index (even if that is 0, 1, ...) and a mapping by
        its keys; every query must have an entry. An array, or a polars Series, is in the order of first appearance in
        `qid`. Without `qid`, weights are in the order of `group` or of all rows of a 2-D `y_true`. A mapping, or a
        Series with another index than 0, 1, ... (or than that of a 2-D `y_true`), is then refused, because it cannot be
        aligned. In a scikit-learn search, pass ``sample_weight``; see ``ndcg_ml.sklearn.ndcg_scorer``.

    Returns
    -------
    float, or dict of float by cut-off if `k` is a sequence
        Between 0 and 1 if gains are non-negative and no ranking can exceed the ideal.

    Raises
    ------
    TypeError
        An argument has the wrong type: not real numbers, a torch tensor, a mask that is not boolean, a frame of
        weights.
    ValueError
        1-D input without `qid` or `group`, or with both; shapes that differ; sizes that do not sum to the number of
        rows; NaN scores; labels that the flavor refuses (unjudged, negative, outside the gain table, above
        ``max_grade``); ties by document id without ids; repeated ids, or repeats with different labels; pandas
        arguments whose indexes differ; weights without an entry for a query; nothing to evaluate.

    Warns
    -----
    UserWarning
        Every query has one document; sizes in `group` are 0; most labels are fractions and all scores are integers from
        0 to 100, as if `y_true` and `y_score` were swapped; or the scores of each query are 1, 2, ..., n and fall as
        the labels rise, as if they were ranks (in at least ten queries of five or more documents; shorter ones are
        ignored).

    See Also
    --------
    evaluate : NDCG with the table of queries.
    prepare : evaluate many sets of scores of the same documents.

    Notes
    -----
    ``flavor="sklearn"`` equals ``sklearn.metrics.ndcg_score`` (1.9.1), ``"lightgbm"`` the value that LightGBM prints
    (4.7.0); ``ndcg_ml.PRESETS`` lists the others. Sums are in float64.

    References
    ----------
    K. Järvelin and J. Kekäläinen, Cumulated gain-based evaluation of IR techniques, TOIS 20(4), 2002.
    C. Burges et al., Learning to rank using gradient descent, ICML 2005.
    F. McSherry and M. Najork, Computing information retrieval performance measures efficiently in the presence of
    tied scores, ECIR 2008.

    Examples
    --------
    >>> y_true, y_score, qid = [3, 0, 1, 1, 0], [0.9, 0.1, 0.3, 0.2, 0.8], ["a", "a", "a", "b", "b"]
    >>> round(ndcg_score(y_true, y_score, qid=qid, flavor="lightgbm", k=10), 6)
    0.815465
    >>> ndcg_score([[3, 0, 1]], [[0.9, 0.1, 0.3]], k=(1, 3))
    {1: 1.0, 3: 1.0}
    """
    queries = Queries.read(
        y_true, qid=qid, group=group, mask=mask, retrieved=retrieved, doc_id=doc_id, query_weight=query_weight
    )
    return Prepared(flavor, k, queries)(y_score)


# fmt: off
@overload
def dcg_score(
    y_true: ArrayLike, y_score: ArrayLike, *, flavor: Flavor | str = ..., k: OneK = ..., qid: ArrayLike | None = ...,
    group: ArrayLike | None = ..., mask: ArrayLike | None = ..., retrieved: ArrayLike | None = ...,
    doc_id: ArrayLike | None = ..., query_weight: Weights | None = ...,
) -> float: ...
@overload
def dcg_score(
    y_true: ArrayLike, y_score: ArrayLike, *, flavor: Flavor | str = ..., k: Sequence[K],
    qid: ArrayLike | None = ..., group: ArrayLike | None = ..., mask: ArrayLike | None = ...,
    retrieved: ArrayLike | None = ..., doc_id: ArrayLike | None = ...,
    query_weight: Weights | None = ...,
) -> dict[K, float]: ...
# fmt: on
def dcg_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    flavor: Flavor | str = "sklearn",
    k: KSpec = ...,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    retrieved: ArrayLike | None = None,
    doc_id: ArrayLike | None = None,
    query_weight: Weights | None = None,
) -> Any:
    r"""Discounted cumulative gain, not normalised: the (weighted) mean over queries of DCG@k.

        DCG@k = sum over documents d of gain(y_d) w_d

    Parameters
    ----------
    y_true, y_score, flavor, k, qid, group, mask, retrieved, doc_id, query_weight
        As for ``ndcg_score``. The ideal, ``empty`` and ``aggregate`` of the flavor have no effect.

    Returns
    -------
    float, or dict of float by cut-off if `k` is a sequence
        In units of gain.

    Raises
    ------
    TypeError, ValueError
        As for ``ndcg_score``.

    Notes
    -----
    ``flavor="sklearn"`` equals ``sklearn.metrics.dcg_score`` (1.9.1).

    Examples
    --------
    >>> round(dcg_score([[3, 0, 1]], [[0.9, 0.1, 0.3]], flavor="sklearn"), 6)
    3.63093
    """
    queries = Queries.read(
        y_true, qid=qid, group=group, mask=mask, retrieved=retrieved, doc_id=doc_id, query_weight=query_weight
    )
    return Prepared(flavor, k, queries).dcg(y_score)


# fmt: off
@overload
def evaluate(
    y_true: ArrayLike | Frame, y_score: ArrayLike | None = ..., *, flavor: Flavor | str = ..., k: OneK = ...,
    qid: ArrayLike | None = ..., group: ArrayLike | None = ..., mask: ArrayLike | None = ...,
    retrieved: ArrayLike | None = ..., doc_id: ArrayLike | None = ..., query_weight: Weights | None = ...,
    by: Any = ..., cluster: Any = ..., columns: ColumnNames | None = ...,
) -> Evaluation[float]: ...
@overload
def evaluate(
    y_true: ArrayLike | Frame, y_score: ArrayLike | None = ..., *, flavor: Flavor | str = ..., k: Sequence[K],
    qid: ArrayLike | None = ..., group: ArrayLike | None = ..., mask: ArrayLike | None = ...,
    retrieved: ArrayLike | None = ..., doc_id: ArrayLike | None = ...,
    query_weight: Weights | None = ..., by: Any = ..., cluster: Any = ..., columns: ColumnNames | None = ...,
) -> Evaluation[dict[K, float]]: ...
# fmt: on
def evaluate(
    y_true: ArrayLike | Frame,
    y_score: ArrayLike | None = None,
    *,
    flavor: Flavor | str = "sklearn",
    k: KSpec = ...,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    retrieved: ArrayLike | None = None,
    doc_id: ArrayLike | None = None,
    query_weight: Weights | None = None,
    by: ArrayLike | Mapping[str, Any] | None = None,
    cluster: ArrayLike | Mapping[Any, Any] | None = None,
    columns: ColumnNames | None = None,
) -> Evaluation[Any]:
    """NDCG with a table of the queries.

    Parameters
    ----------
    y_true, y_score, flavor, k, qid, group, mask, retrieved, doc_id, query_weight
        As for ``ndcg_score``. With `columns`, `y_true` is a data frame, and `y_score`, `qid`, `group`, `mask` and
        `doc_id` are left out.
    by : array-like, mapping of array-like by column, or data frame, optional
        Labels of the queries, such as their country. A column has one label per row of `y_true`, the same in all rows
        of a query, or is a mapping from query ids. Several columns are sliced one by one; to cross two, pass tuples.
        The index of a pandas object must be that of `y_true`. A mapping from query ids to labels is one column,
        "slice".
    cluster : array-like or mapping, optional
        Groups of related queries (user, topic, session), in the forms of a column of `by`. ``.interval()``,
        ``.standard_error``, the intervals of slices and ``compare`` then use clusters, not queries, as the
        sampling units.
    columns : mapping, optional
        Names of the columns of the data frame (pandas, polars or pyarrow), such as
        ``{"qid": "user_id", "label": "rating", "score": "prediction"}``. The keys are ``qid``, ``label``, ``score`` and
        ``docno``. Default of each: the column with a usual name (docs/runs.md). The column ``docno`` is optional.

    Returns
    -------
    Evaluation
        ``.value`` is what ``ndcg_score`` returns; ``.per_query`` holds NDCG, DCG, IDCG, sizes, ties and ids as arrays;
        ``.n_empty`` is the number of queries without a relevant document; ``.interval()`` is the confidence interval
        of the value. With `by`, ``.slices`` has the NDCG, count and interval of each label, and the difference from the
        others with its interval, sorted by how much they differ. ``.to_frame()`` returns a frame of the library of
        `y_true`, by default pandas.

    Raises
    ------
    TypeError, ValueError
        As for ``ndcg_score``; the frame lacks a column or is lazy; or `by` or `cluster` fits neither the rows nor the
        queries, lacks a label, or has two labels in one query.

    Examples
    --------
    >>> print(evaluate([3, 0, 1, 0, 0], [.9, .1, .3, .2, .8], qid=list("aaabb"), flavor="lightgbm", k=10))
    ndcg@10 = 1.000000
    2 queries, 1 empty (scored 1); 5 documents
    ndcg@10[gain=exponential,discount=log2,ideal=recall,ties=first,empty=1]

    >>> y_true = [[3, 0, 1], [0, 1, 0], [1, 0, 2], [0, 0, 1], [2, 1, 0]]
    >>> y_score = [[3, 2, 1], [3, 1, 2], [3, 2, 1], [1, 3, 2], [2, 1, 3]]
    >>> print(evaluate(y_true, y_score, by={"country": ["de", "fr", "de", "fr", "de"]}).slices)
    slice       queries  empty   share    NDCG     95 % interval  minus the others        its interval
    country=de        3      0  0.6000  0.7979  0.0000 to 1.0000           +0.2325  -0.6761 to +0.8330
    country=fr        2      0  0.4000  0.5655  0.0000 to 1.0000           -0.2325  -0.8330 to +0.6761
    """
    refuse_lazy(y_true, "y_true")
    library = library_of(y_true) or "pandas"
    read: dict[str, dict[str, Any]] = {}
    if columns is not None:
        for name, value in (("y_score", y_score), ("qid", qid), ("group", group), ("mask", mask), ("doc_id", doc_id)):
            if value is not None:
                raise ValueError(f"{name} must be left out with columns=, which names its column in the frame.")
        if not is_frame(y_true):
            raise TypeError(f"y_true must be a data frame with columns=; got {type(y_true).__name__}.")
        wanted = Wanted(("qid", "docno", "label", "score"), column_names(columns), optional=("docno",))
        read["y_true"], found = select_columns("y_true", y_true, wanted)
        labels, y_score, qid, doc_id = found["label"], found["score"], found["qid"], found.get("docno")
        if wanted.are_ranks(read["y_true"]):
            y_score = -score_array(y_score, "y_score")
    elif y_score is None:
        raise TypeError("y_score must be given, one score for each label; or columns=, if y_true is a data frame.")
    else:
        labels = y_true
    queries = Queries.read(
        labels, qid=qid, group=group, mask=mask, retrieved=retrieved, doc_id=doc_id, query_weight=query_weight
    )
    names = None if by is None else slice_names(by, queries)
    clusters = None if cluster is None else query_clusters(cluster, queries)
    evaluation: Evaluation[Any] = Prepared(flavor, k, queries).evaluate(y_score)
    return replace(evaluation, frame_library=library, cluster=clusters, columns_read=read, _slice_names=names)


# fmt: off
@overload
def evaluate_ranked(
    grades: Iterable[Iterable[float]], *, judged: Iterable[Iterable[float]] | None = ..., flavor: Flavor | str = ...,
    k: OneK = ...,
) -> Evaluation[float]: ...
@overload
def evaluate_ranked(
    grades: Iterable[Iterable[float]], *, judged: Iterable[Iterable[float]] | None = ..., flavor: Flavor | str = ...,
    k: Sequence[K],
) -> Evaluation[dict[K, float]]: ...
# fmt: on
def evaluate_ranked(
    grades: Iterable[Iterable[float]],
    *,
    judged: Iterable[Iterable[float]] | None = None,
    flavor: Flavor | str = "sklearn",
    k: KSpec = ...,
) -> Evaluation[Any]:
    """NDCG of ranked lists of grades, as in textbooks.

    Parameters
    ----------
    grades : iterable of iterables of float
        For each query, the grades of its retrieved documents in rank order; NaN is an unjudged document.
    judged : iterable of iterables of float, optional
        For each query, the grades of all its judged documents, retrieved or not, in any order. The ``global`` ideal is
        made of these. Default: only retrieved documents were judged.
    flavor : Flavor or str, default "sklearn"
        As for ``ndcg_score``. Its tie-breaking rule has no effect, because the order is given.
    k : int, None or sequence of them, optional
        As for ``ndcg_score``.

    Returns
    -------
    Evaluation

    Raises
    ------
    TypeError
        `grades` is one list of numbers instead of a list for each query.
    ValueError
        `judged` and `grades` differ in their number of queries, or `judged` lacks a relevant grade that was retrieved;
        nothing to evaluate; or as for ``ndcg_score``.

    Warns
    -----
    UserWarning
        A query with a relevant document has an empty list. It is evaluated as an empty ranking.

    Examples
    --------
    >>> burges = Flavor.preset("burges2005").replace(ideal="global")
    >>> round(evaluate_ranked([[3, 0, 3, 0, 3]], judged=[[3, 3, 3, 2, 2]], flavor=burges).value, 6)
    0.760429
    """
    flavor = as_flavor(flavor).replace(ties="first")
    ranked = [_one_list(row, f"grades[{i}]") for i, row in enumerate(_lists(grades, "grades"))]
    if not ranked:
        raise ValueError("grades must hold at least one list; got none. There is nothing to evaluate.")
    if judged is None:
        lists: list[tuple[list[float], list[float]]] = [(row, []) for row in ranked]
    else:
        pools = [_one_list(row, f"judged[{i}]") for i, row in enumerate(_lists(judged, "judged"))]
        if len(pools) != len(ranked):
            raise ValueError(f"judged must have one list for each query of grades, {len(ranked)}; got {len(pools)}.")
        both = enumerate(zip(ranked, pools, strict=True))
        lists = [(row, _not_retrieved(row, pool, i)) for i, (row, pool) in both]
    silent = [at for at, (row, rest) in enumerate(lists) if not row and any(grade > 0 for grade in rest)]
    if silent:
        warn_caller(
            f"grades has an empty list for {len(silent)} of {len(ranked)} queries although documents are judged "
            f"relevant, the first is query {silent[0]}. These lists are evaluated as empty rankings."
        )
    sizes = [len(row) + len(rest) for row, rest in lists]
    labels = [grade for row, rest in lists for grade in (*row, *rest)]
    position = [-rank for size in sizes for rank in range(size)]
    retrieved = [flag for row, rest in lists for flag in (*[True] * len(row), *[False] * len(rest))]
    if max(sizes) == 1 < len(sizes):
        warn_of_lists_of_one(len(sizes))
    groups = group_by_sizes(sizes, len(labels))  # lists without documents are intended, so that nothing warns of them
    queries = Queries(np.array(labels, dtype=np.float64), groups, np.array(retrieved, dtype=bool))
    result: Evaluation[Any] = Prepared(flavor, k, queries).evaluate(position)
    assert result._scored is not None
    # Rows are ranks, so the same row of another evaluation may be another document.
    return replace(result, _scored=replace(result._scored, rows_are_documents=False))


def _lists(value: Any, name: str) -> Iterable[Any]:
    refuse_lazy(value, name)
    if not isinstance(value, Iterable) or (isinstance(value, np.ndarray) and value.ndim == 0):
        raise TypeError(f"{name} must be a list of grades for each query; got {type(value).__name__}.")
    return value


def _one_list(row: Any, name: str) -> list[float]:
    values = real_array(row, name)
    if values.ndim == 0:
        raise TypeError(
            f"{name} must be a list of grades, one list for each query; got {brief(row)}. "
            "For a single query, wrap its list: [[3, 0, 1]]."
        )
    if values.ndim != 1:
        raise ValueError(f"{name} must be one list of grades; got shape {values.shape}.")
    return values.tolist()


def _not_retrieved(row: list[float], pool: list[float], query: int) -> list[float]:
    rest = Counter(pool)
    rest.subtract(grade for grade in row if grade == grade)
    missing = [grade for grade, count in rest.items() if count < 0 and grade > 0]
    if missing:
        raise ValueError(
            f"judged[{query}] must hold every relevant grade of grades[{query}], which are judged too; "
            f"grade {missing[0]:g} was retrieved more often than it was judged."
        )
    return [grade for grade, count in rest.items() for _ in range(count)]


# -- many sets of scores of the same documents -------------------------------------------------------------------------


# fmt: off
@overload
def prepare(
    y_true: ArrayLike, *, flavor: Flavor | str = ..., k: OneK = ..., qid: ArrayLike | None = ...,
    group: ArrayLike | None = ..., mask: ArrayLike | None = ..., retrieved: ArrayLike | None = ...,
    doc_id: ArrayLike | None = ..., query_weight: Weights | None = ..., threads: int | None = ..., kernel: str = ...,
) -> Prepared[float]: ...
@overload
def prepare(
    y_true: ArrayLike, *, flavor: Flavor | str = ..., k: Sequence[K], qid: ArrayLike | None = ...,
    group: ArrayLike | None = ..., mask: ArrayLike | None = ..., retrieved: ArrayLike | None = ...,
    doc_id: ArrayLike | None = ..., query_weight: Weights | None = ..., threads: int | None = ..., kernel: str = ...,
) -> Prepared[dict[K, float]]: ...
# fmt: on
def prepare(
    y_true: ArrayLike,
    *,
    flavor: Flavor | str = "sklearn",
    k: KSpec = ...,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    retrieved: ArrayLike | None = None,
    doc_id: ArrayLike | None = None,
    query_weight: Weights | None = None,
    threads: int | None = None,
    kernel: str = "auto",
) -> Prepared[Any]:
    """Prepare labels for evaluating many sets of scores of the same documents.

    The layout of the queries and the gains are computed once, and so is the ideal DCG if it does not depend on the
    ranking.

    Parameters
    ----------
    y_true, flavor, k, qid, group, mask, retrieved, doc_id, query_weight
        As for ``ndcg_score``.
    threads : int, optional
        Maximum number of threads of the compiled kernel; the NumPy kernel uses one. Default: the environment variable
        NDCG_ML_THREADS; if it is not set, OMP_NUM_THREADS or the number of available processors. Calls from threads
        other than the main one use one thread by default, and so do small inputs.
    kernel : {"auto", "numpy", "compiled"}, default "auto"
        The implementation: NumPy, or machine code compiled by Numba (the extra ``[fast]``). Compiling takes a
        second or more, once per process. The values are bitwise identical. "auto" is the environment variable
        NDCG_ML_KERNEL; if it is not set, the compiled kernel if Numba is installed and the process has ranked enough
        rows to make compiling worthwhile. ``show_versions()`` prints which is in use. Only the NumPy kernel computes
        an ideal that depends on the ranking (``ideal="local"`` and `recall_depth`).

    Returns
    -------
    Prepared
        Call it on scores to get the value; its ``evaluate`` also returns the table of queries.

    Raises
    ------
    TypeError, ValueError
        As for ``ndcg_score``, except errors of the scores; or the ideal depends on the ranking under
        ``kernel="compiled"``.
    ImportError
        Under ``kernel="compiled"``, Numba is missing, too old or broken.

    Examples
    --------
    >>> ndcg = prepare([3, 0, 1, 1, 0], group=[3, 2], flavor="sklearn", k=2)
    >>> ndcg
    <Prepared: sklearn@2, 2 queries, 5 documents>
    >>> round(ndcg([0.9, 0.1, 0.3, 0.2, 0.8]), 6), ndcg([3, 0, 1, 1, 0])
    (0.815465, 1.0)
    """
    queries = Queries.read(
        y_true, qid=qid, group=group, mask=mask, retrieved=retrieved, doc_id=doc_id, query_weight=query_weight
    )
    return Prepared(flavor, k, queries, threads, kernel)


class Prepared(Ranking, Generic[V]):
    """Queries with their gains and ideal DCG. Created by ``prepare``.

    Attributes
    ----------
    flavor : Flavor
    ks : tuple of int or None
        The cut-offs.
    queries : Queries
        The data.
    n_docs : int
        Number of ranked documents.
    """

    def __repr__(self) -> str:
        k = f", k={self.ks}" if self.several else ""
        definition = (self.flavor if self.several else self.flavor.replace(k=self.ks[0])).short_text
        return f"<Prepared: {definition}{k}, {self.queries.n_queries} queries, {self.n_docs} documents>"

    def __call__(self, y_score: ArrayLike) -> V:
        """Return the value for these scores.

        Parameters
        ----------
        y_score : array-like of the shape of y_true
            One score per document; higher is better.

        Returns
        -------
        float, or dict of float by cut-off if there are several

        Raises
        ------
        TypeError, ValueError
            The scores differ from the labels in shape or pandas index, are not real numbers, or contain NaN.
        """
        values: V = shape_values(self.ks, self.totals(y_score).values(self.flavor), self.several)
        return values

    def dcg(self, y_score: ArrayLike) -> V:
        """Return the (weighted) mean over queries of DCG for these scores; see ``__call__``."""
        values: V = shape_values(self.ks, self.totals(y_score).mean_dcg(), self.several)
        return values

    def evaluate(self, y_score: ArrayLike) -> Evaluation[V]:
        """Return the value for these scores with the table of queries; see ``__call__``."""
        scores = self.scores(y_score)
        totals = self.rank(scores)
        # Copy what is stored, so that later changes of the caller's arrays have no effect.
        totals = replace(totals, ids=totals.ids.copy(), weight=None if totals.weight is None else totals.weight.copy())
        evaluation = evaluation_from_totals(totals, self.flavor, self.several, self.counts(scores))
        return replace(evaluation, _scored=Scored(self.queries, scores))
