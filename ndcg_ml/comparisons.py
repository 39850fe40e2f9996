"""Compare systems query by query: read their values, match the queries, and decide whether they differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from types import EllipsisType
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from ndcg_ml import _matched_systems as matching
from ndcg_ml._core.layout import FloatArray
from ndcg_ml._core.queries import Weights
from ndcg_ml._core.slice_names import column_by_id, slice_names_by_id
from ndcg_ml._plain.checks import as_confidence, one_of, whole_number
from ndcg_ml._plain.flavor_text import at_cutoff
from ndcg_ml._plain.messages import brief
from ndcg_ml._statistics.differences import Settings, differences
from ndcg_ml._statistics.intervals import numbered
from ndcg_ml._statistics.means import Means, Seed, generator
from ndcg_ml._statistics.verdict import as_margin
from ndcg_ml._unjudged.judge_next import count_unlabelled
from ndcg_ml.model_labels import CorrectedEvaluation, correct_pairs, corrected_systems
from ndcg_ml.results.comparison import Comparison
from ndcg_ml.results.evaluation import WORDS, Evaluation
from ndcg_ml.results.slices import compared_by


def compare(
    *systems: Evaluation[Any] | CorrectedEvaluation | Mapping[str, Any],
    names: Sequence[str] | None = None,
    baseline: str | None = None,
    margin: float | None = None,
    cluster: Any = None,
    by: Any = None,
    unjudged: matching.Unjudged = "warn",
    confidence: float = 0.95,
    n_resamples: int = 9999,
    seed: Seed = 0,
    missing: Literal["raise", "drop"] = "raise",
    k: int | None | EllipsisType = ...,
) -> Comparison:
    """Compare systems query by query: difference, interval, p-value and verdict.

    Parameters
    ----------
    *systems : Evaluation or CorrectedEvaluation, or a single mapping from names to evaluations
        Two or more evaluations of the same queries under one flavor, matched by query id. A mapping
        ``{"old": [e1, e2], "new": [f1, f2]}`` names the systems and may hold several runs (seeds) of each; the
        difference is then tested over queries and runs. Evaluations without `qid` have the ids 0, 1, ..., so two
        unrelated sets of queries are refused only if their ideals or sizes differ.
    names : sequence of str, optional
        Names of the systems. Default: ``a``, ``b``, ...
    baseline : str, optional
        Compare each system with the one of this name (as Dunnett) instead of all pairs (as Tukey). With fewer pairs,
        intervals are narrower.
    margin : float, optional
        The largest difference that does not matter, above 0 and below 1. With it, a verdict may be ``equivalent`` or
        ``not worse``.
    cluster : array-like, mapping or pandas object, optional
        Groups of related queries (user, topic, session): one label per query, in the forms of `by`. The test then
        permutes clusters. Default: the clusters of the evaluations, if they have any.
    by : array-like, mapping of array-like by column, or data frame, optional
        Labels of queries, such as their country. The systems are also compared within each slice, corrected for the
        number of slices: see ``.slices``. A column has one label per query of the first system, in its order, or is a
        mapping or Series by query id. A mapping from query ids to labels is one column, "slice".
    unjudged : {"warn", "note", "refuse", "accept"}, default "warn"
        Action if the judged@k of systems differ by more than 0.05: a warning and a note, a note alone, an error, or
        none. Under "refuse" a pair is also undecided if labels of unjudged documents could change the sign of its
        difference (``settled``), or if a label is missing and the range is unknown; likewise within slices.
    confidence : float, default 0.95
        Simultaneous confidence of the intervals of all pairs. The level of the test is 1 - confidence.
    n_resamples : int, default 9999
        Number of exchanges that a test draws, unless it can enumerate all of them with no more. It is raised if no
        p-value could reach the level otherwise.
    seed : int, numpy.random.Generator or None, default 0
        Random seed. With None, each call draws differently.
    missing : {"raise", "drop"}, default "raise"
        Action if a query has no value in some system: it was not evaluated, is empty only there, or has the value nan.
        "drop" compares the other queries and stores the ids in ``.not_compared``.
    k : int or None, optional
        The cut-off to compare, if the evaluations have several.

    Returns
    -------
    Comparison
        ``.pairs``, each with ``.verdict``, ``.difference``, ``.interval``, ``.p_value``, ``.p_adjusted``, ``.wins``,
        ``.ties``, ``.losses``, ``.effect_size``; for two systems these are also attributes of the comparison. Also
        ``.smallest_detectable()``, ``.queries_needed(difference)``, ``.judged``, ``.slices``, ``.to_frame()``,
        ``.to_dict()``, ``.to_markdown()``, ``str()``.

    Raises
    ------
    TypeError
        A system is not an evaluation, or an argument has the wrong type.
    ValueError
        A system returns no document for any query; the evaluations differ in flavor, queries, weights or judgements,
        or have several cut-offs and no `k` is given; there are fewer than two queries or six clusters, or one cluster
        has most of the weight; one system has several runs and another only one; `names` repeat or differ in number
        from the systems; `margin` or `confidence` is out of range; or judged@k differs under ``unjudged="refuse"``.

    Warns
    -----
    UserWarning
        Under ``unjudged="warn"``: the judged@k of systems differ by more than 0.05.

    See Also
    --------
    compare_values : Compare precomputed values of another measure.
    explain_difference : Compare two flavors on one system.

    Notes
    -----
    The randomisation test exchanges the two systems' values of each query at random. Its p-value is the share of
    exchanges, including the observed one, whose difference is at least as large in absolute value. The test is exact if
    the systems are exchangeable. If only their means are equal, differences are skewed and queries are few, its type I
    error exceeds the level; ``.notes`` then says so of a verdict. The differences are those of the flavor's mean:
    weighted means, or ratios of sums under ``aggregate="micro"``, which are linearised if the ideals differ. Queries
    that are empty in all systems count as the flavor says.

    The interval of a single pair contains the differences that the test does not reject. Several pairs share one
    critical value, that of the largest |t| when each query has one random sign for all pairs (max-T), so their
    intervals are simultaneous. Several runs per system are corrected by Bonferroni's method.

    If only some queries changed, the limits allow for changes of others: low <= difference - (p_U - m / n) loss, where
    m of n queries changed, p_U is the upper confidence limit of the share that may, and the loss is the largest one
    observed or the limit of the mean change; high likewise, and p-values agree. A change below a fifth of the largest
    one counts in proportion to its size. With clusters, these counts are of clusters, with weights they are shares of
    weight, and for results of ``correct_labels`` they are of queries with human labels.

    No interval allows for a loss that no query of the sample shows. So every verdict with which a gate passes has a
    note with ``.unseen``, the largest share of queries (95 %) whose loss n queries may not show: 1 - .05^(1/n).

    References
    ----------
    M. Smucker, J. Allan and B. Carterette, A comparison of statistical significance tests for information retrieval
    evaluation, CIKM 2007. B. Carterette, Multiple testing in statistical analysis of systems-based information
    retrieval experiments, ACM TOIS 30(1), 2012. P. Westfall and S. Young, Resampling-based multiple testing, 1993. D.
    Schuirmann, A comparison of the two one-sided tests procedure and the power approach, 1987. A. Owen, The pigeonhole
    bootstrap, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from ndcg_ml import evaluate
    >>> rng = np.random.default_rng(0)
    >>> y_true = rng.integers(0, 3, (60, 10))
    >>> good, better = (y_true + rng.normal(0, noise, y_true.shape) for noise in (2.0, 1.0))
    >>> both = compare(evaluate(y_true, good, k=5), evaluate(y_true, better, k=5), seed=0)
    >>> round(both.difference, 4), both.p_value < 0.01, both.interval.low > 0, both.verdict
    (0.1139, True, True, 'better')
    >>> both.queries_needed(0.01) > both.queries_needed(0.02) > 60
    True
    """
    settings = _settings(confidence, as_margin(margin, 1.0), n_resamples)
    one_of(unjudged, "unjudged", get_args(matching.Unjudged))
    named = matching.named_systems(systems, names)
    corrected = corrected_systems(named)
    if corrected:
        if not (cluster is None and by is None and k is ... and missing == "raise"):
            raise ValueError(
                "cluster, by, k and missing must be left out if the systems are results of correct_labels."
            )
        named = {name: [system.human] for name, system in zip(named, corrected, strict=True)}
    sources = matching.sources_of_evaluations(named, k)
    return _compared(
        sources,
        f"NDCG{at_cutoff(sources[0].k)}",
        settings,
        baseline=baseline,
        cluster=cluster,
        by=by,
        unjudged=unjudged,
        seed=seed,
        missing=missing,
        corrected=corrected,
    )


def compare_values(
    values: Mapping[str, ArrayLike | Sequence[ArrayLike]],
    *,
    qid: ArrayLike,
    measure: str,
    query_weight: Weights | None = None,
    baseline: str | None = None,
    margin: float | None = None,
    cluster: Any = None,
    by: Any = None,
    confidence: float = 0.95,
    n_resamples: int = 9999,
    seed: Seed = 0,
    missing: Literal["raise", "drop"] = "raise",
) -> Comparison:
    """Compare systems by another measure, given its value for each query.

    Parameters
    ----------
    values : mapping of array-like by name
        The values of each system in the order of `qid`, or a Series by query id; nan if a query has none. A list of
        such arrays holds several runs of a system.
    qid : array-like
        The id of each query.
    measure : str
        The name of the measure, such as ``"recall@10"``.
    query_weight : array-like or mapping, optional
        The weight of each query in the means.
    baseline, margin, cluster, by, confidence, n_resamples, seed, missing
        As for ``compare``.

    Returns
    -------
    Comparison

    Raises
    ------
    TypeError, ValueError
        Ids are missing or repeat, a system does not have one value per query, or as for ``compare``.

    Examples
    --------
    >>> values = {"old": [0.2, 0.5, 0.4], "new": [0.3, 0.5, 0.6]}
    >>> compare_values(values, qid=["q1", "q2", "q3"], measure="recall@10").verdict
    'undecided'
    """
    settings = _settings(confidence, as_margin(margin, math.inf), n_resamples)
    if not isinstance(values, Mapping):
        raise TypeError(f"values must be a mapping from system names to values per query; got {type(values).__name__}.")
    return _compared(
        matching.sources_of_values(matching.named_systems([values], None), qid, query_weight, measure),
        measure,
        settings,
        baseline=baseline,
        cluster=cluster,
        by=by,
        unjudged="warn",
        seed=seed,
        missing=missing,
    )


def _settings(confidence: object, margin: float | None, n_resamples: object) -> Settings:
    return Settings(
        confidence=as_confidence(confidence), margin=margin, n_resamples=whole_number(n_resamples, "n_resamples")
    )


def _compared(
    sources: Sequence[matching.Source],
    measure: str,
    settings: Settings,
    *,
    baseline: str | None,
    cluster: Any,
    by: Any,
    unjudged: matching.Unjudged,
    seed: Seed,
    missing: Literal["raise", "drop"],
    corrected: Sequence[CorrectedEvaluation] = (),
) -> Comparison:
    """Compare systems that have one source per run: match their queries, average, test, and return the result."""
    # Match the queries, and refuse systems that cannot be compared.
    rng, first = generator(seed), sources[0]
    clusters = matching.clusters_of(sources) if cluster is None else column_by_id(cluster, "cluster", first.qid)
    table = matching.matched(sources, missing)
    names, of_system, judged = table.names, table.columns_of_systems(), matching.judged_fractions(table)
    pairs = _pairs(names, baseline)
    codes = None if clusters is None else numbered(table.select(clusters))
    columns = {} if by is None else slice_names_by_id(by, first.qid)

    # Average. A system with fewer judged documents is at a disadvantage; warn before any p-value is computed.
    means, runs = _system_means(table, of_system)
    values = tuple(means.mean().tolist())
    if judged is not None:
        matching.check_unjudged(names, judged, values, unjudged, stacklevel=4)

    # Decide on the differences, overall and within slices.
    decisions, notes = None, list[str]()
    if corrected:
        decisions, values, *notes = correct_pairs(table, corrected, pairs, settings, rng)
    documents = None if corrected else matching.unjudged_documents(table)
    may_turn: Callable[..., bool] | None = None
    if unjudged == "refuse" and not corrected and count_unlabelled(sources):
        may_turn = (lambda *_, **__: True) if documents is None else documents.may_turn  # several runs have no range
    found = differences(
        names,
        means,
        pairs,
        settings,
        rng,
        clusters=codes,
        runs=None if runs is None else [np.average(of_runs, axis=0, weights=weight) for of_runs, weight in runs],
        corrected=decisions,
        may_turn=may_turn,
    )
    unanswered = [0 if one.evaluation is None else int(one.evaluation._unanswered().sum()) for one in sources]
    return Comparison(
        flavor=None if first.evaluation is None else first.evaluation.flavor.replace(k=first.k),
        measure=measure,
        names=names,
        values=values,
        pairs=tuple(found),
        qid=table.qid,
        ndcg=table.values if runs is None else means.values,
        not_compared=table.left_out,
        n_resamples=settings.n_draws,
        margin=settings.margin,
        baseline=baseline,
        seed=None if seed is None or isinstance(seed, np.random.Generator) else int(seed),
        n_runs=tuple(len(at) for at in of_system),
        n_clusters=None if codes is None else int(codes.max()) + 1,
        judged=judged,
        n_unanswered=tuple(max(unanswered[at] for at in columns) for columns in of_system),
        slices=compared_by(
            columns, table.rows[:, 0], names, means, pairs, settings, rng, clusters=codes, runs=runs, may_turn=may_turn
        )
        if columns
        else None,
        accepts_unjudged=unjudged == "accept",
        further_notes=tuple(notes),
        _words=WORDS if first.evaluation is None else first.evaluation._words(),
        _unjudged=documents,
    )


def _pairs(names: Sequence[str], baseline: str | None) -> list[tuple[int, int]]:
    """Return all pairs of systems, or those with the baseline."""
    if baseline is None:
        return list(combinations(range(len(names)), 2))
    if baseline not in names:
        raise ValueError(
            f"baseline must be the name of a system, {', '.join(map(repr, names))}; got {brief(baseline)}."
        )
    base = names.index(baseline)
    return [(base, i) for i in range(len(names)) if i != base]


def _system_means(
    table: matching.Matched, of_system: Sequence[list[int]]
) -> tuple[Means, list[tuple[FloatArray, FloatArray]] | None]:
    """Return the values of systems, and those of their runs with the weights of queries if there are several runs.

    The runs of a system are averaged into one column. The test also uses the mean of each run over all queries.
    """
    means = Means.from_weights(table.values, table.share)
    if len(of_system) == len(table.sources):
        return means, None
    every = means.linear()
    runs = [(every.values[:, at], every.weight[:, at]) for at in of_system]
    values = np.stack([values.mean(axis=1) for values, _ in runs], axis=1)
    return Means(values, np.stack([weight[:, 0] for _, weight in runs], axis=1)), runs
