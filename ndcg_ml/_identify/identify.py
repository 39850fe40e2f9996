"""Which NDCG a reported number is: the presets, then combinations of switches, that reproduce it on the data."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ndcg_ml._checks import TIES_BY_ID, KSpec, cutoffs, finite_number, optional_whole_number
from ndcg_ml._data.groups import Groups
from ndcg_ml._data.queries import Queries, Weights
from ndcg_ml._flavor.text import switch_text
from ndcg_ml._identify.facts import Facts
from ndcg_ml._identify.grid import COMMON_KS, NO_IDS, Grid, Progress, usual_cutoffs
from ndcg_ml._identify.matches import Candidate, identification
from ndcg_ml._identify.result import Identification, decimals_of
from ndcg_ml._identify.sweep import Sweep
from ndcg_ml._kernel.totals import Totals
from ndcg_ml._one_line import shown
from ndcg_ml.flavor import PRESETS, Flavor
from ndcg_ml.prepared import Prepared

# A text with more decimals than this was not rounded.
MOST_DECIMALS = 9
_USUAL_DECIMALS = 4
_MOST_ROWS_OF_ONE_QUERY = 100_000

Rank: TypeAlias = Callable[[Flavor, Sequence["int | None"]], Totals]


def identify(
    value: float | str,
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    k: KSpec = ...,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    retrieved: ArrayLike | None = None,
    doc_id: ArrayLike | None = None,
    query_weight: Weights | None = None,
    decimals: int | None | EllipsisType = ...,
    progress: Progress | None = None,
) -> Identification:
    """Find the flavors that reproduce a reported number on the data that it was computed from.

    Parameters
    ----------
    value : float or str
        The reported NDCG; as text, ``"0.7840"``, it says how many decimals it was printed with.
    y_true, y_score, qid, group, mask, retrieved, doc_id, query_weight
        As for ``ndcg_score``. Pass everything that the reporting library saw: `doc_id` if it orders ties by id,
        `retrieved` if it knows of judged documents that were not retrieved.
    k : int, None or sequence of them, optional
        The cut-off, where it is known, or several to choose from. Default: each preset's own, and no cut-off, 1, 3, 5,
        10, 20 and 100; where no list is longer than 20, every cut-off up to the longest.
    decimals : int or None, optional
        The decimals to which the number was rounded: a flavor matches within half a unit of the last one, plus a
        hundredth of a unit for the library's own rounding. None means an exact number, which matches to 1e-9. Default:
        of text those that are written, exact with more than 9; of a number those that it needs, and 4 if it is a whole
        one or needs more.
    progress : callable, optional
        Called after each ranking with how many are done and how many there are, for data that take long.

    Returns
    -------
    Identification
        ``.matches``, the likeliest first; ``print`` shows them, ``.to_dict()`` is for JSON.

    Raises
    ------
    TypeError, ValueError
        `value` is not a finite number, `decimals` not an integer >= 0, or as for ``ndcg_score`` under any flavor.

    Notes
    -----
    It tries every preset, and every combination of gain (linear, exponential, binary, and the tables of presets),
    discount (with the bases of presets), ideal (global, recall, local, and max with the highest label), ideal_depth
    (k, all), ties, empty (0, 1, skip), aggregate, score_dtype and k; also of negative if labels are negative, of
    unjudged if labels are missing, and of duplicates if ids repeat. All other switches are tried only as the presets
    set them. The discounts ``ln`` and ``log2`` give one NDCG, and ``log2`` stands for both. What the data rule out,
    such as ``ties="docid"`` without ids, is listed in ``not_tried``. Documents are ranked once per gain, rule for
    labels, tie rule and precision of scores: up to a few hundred times, which takes two seconds for 35 000 documents,
    7 000 of them retrieved. Show how far it is with `progress`, such as ``lambda done, total: bar.update()`` for a
    bar of tqdm.

    Flavors whose values agree to 1e-12 are one match, because the data cannot tell them apart. It is named after a
    preset if there is one, otherwise after the preset from which the fewest switches differ.

    Matches with a preset come first. If the value has more decimals than `decimals`, they are ordered by their distance
    from it. Otherwise all agree with it equally well, and the data say which tools are usual for them: with document
    ids, those that order ties by id (as trec_eval does); with unjudged documents or some that were not retrieved, those
    that have a rule for unjudged ones; with neither, those that want a label for every document. Then a preset at its
    own cut-off comes before others, and the rest is the order of ``PRESETS``. Presets that coincide stand in the same
    order. Matches without a preset follow, those with the fewest changes first.

    If nothing rounds to the value and it has no more than `decimals` decimals, flavors match whose value is cut off to
    it: 0.87669 to 0.8766, but 1 not to 0.9999.

    A number that was computed from all rows as one query, a frequent mistake, is recognised too: the presets are also
    tried on the data without their queries (up to 100 000 rows), and say so after their name.

    So many flavors are tried that a number which nobody computed may match some. ``.by_chance`` and
    ``.presets_by_chance`` say how many would match a number close to this one, and the text says where a match is
    therefore no evidence. More decimals, a known `k` and more queries make it one.

    Qrels and a run become arrays by ``align``: ``identify(0.5058, **align("qrels.txt", "run.txt").arguments())``.

    Examples
    --------
    >>> y_true, y_score, group = [0, 2, 1, 0, 3, 1, 0, 0], [.9, .5, .5, .2, .7, .8, .1, .5], [5, 1, 2]
    >>> result = identify(0.8766, y_true, y_score, group=group, k=3)
    >>> result.matches[0].name
    'lightgbm@3'
    >>> from ndcg_ml import align
    >>> data = align({"q1": {"d1": 2, "d3": 1}}, {"q1": ["d1", "d2", "d4"]})
    >>> identify(0.7602, **data.arguments(), k=3).matches[0].name
    'trec_eval@3'
    """
    number, digits = _number_and_decimals(value, decimals)
    tried = None if isinstance(k, EllipsisType) else cutoffs(k, Flavor())[0]
    queries = Queries.read(
        y_true, qid=qid, group=group, mask=mask, retrieved=retrieved, doc_id=doc_id, query_weight=query_weight
    )
    # A flavor that refuses nothing: an error here is one of the data, and the caller must fix them.
    Prepared(Flavor(negative="allow", unjudged="zero", duplicates="count"), None, queries).evaluate(y_score)
    with np.errstate(over="ignore"):
        coarse = queries.scores(y_score, exact=False).astype(np.float32)
    scores = {"float64": queries.scores(y_score), "float32": coarse}
    data = Facts.of(queries, scores["float64"], coarse)

    def rank(flavor: Flavor, ks: Sequence[int | None]) -> Totals:
        return Prepared(flavor, ks, queries).totals(y_score)

    not_tried: dict[str, str] = {}
    presets = preset_candidates(data, tried, rank, not_tried)
    presets += _one_query_candidates(queries, y_score, data, tried, not_tried)
    grid = Grid.over(data, tried)
    grid.fill(data, Sweep(queries, scores, grid.choices.k, grid.discounts()), not_tried, progress)
    return identification(number, digits, presets, grid, data, not_tried)


def _number_and_decimals(value: float | str, decimals: int | None | EllipsisType) -> tuple[float, int | None]:
    """The number, and to how many decimals it was rounded: as it is written, or as the caller says."""
    if isinstance(value, str):
        written = re.fullmatch(r"\s*[+-]?\d+(?:\.(\d*))?\s*|\s*[+-]?\.(\d+)\s*", value, re.ASCII)
        if written is None:
            raise ValueError(f"value as text must be a number in decimals, such as '0.7840'; got {shown(value)}.")
        number = float(value)
        needed = len(written[1] or written[2] or "")
        usual = needed if needed <= MOST_DECIMALS else None
    else:
        number = finite_number(value, "value")
        needed = decimals_of(number)
        usual = needed if 0 < needed < _USUAL_DECIMALS else _USUAL_DECIMALS
    if isinstance(decimals, EllipsisType):
        return number, usual
    return number, optional_whole_number(decimals, "decimals", "if it is exact", 0)


def _one_query_candidates(
    queries: Queries, y_score: ArrayLike, data: Facts, ks: tuple[int | None, ...] | None, not_tried: dict[str, str]
) -> list[Candidate]:
    """Every preset on the rows of all queries together, as if nobody had said which row is of which query."""
    if queries.n_queries < 2:
        return []
    if queries.groups.sizes.sum() > _MOST_ROWS_OF_ONE_QUERY:
        not_tried["all rows as one query"] = f"there are more than {_MOST_ROWS_OF_ONE_QUERY} rows"
        return []
    groups = queries.groups
    size = np.array([groups.sizes.sum()])
    together = Queries(
        queries.labels,
        Groups(sizes=size, starts=np.zeros(1, dtype=np.intp), order=groups.order, n_rows=groups.n_rows),
        queries.retrieved,
        axes=queries.axes,
    )
    # A document of another query is no repeat, and ids order none of these ties; what is refused needs no second word.
    without_ids = data._replace(ids=False, n_queries=1, longest=int(size[0]))
    candidates = preset_candidates(
        without_ids,
        usual_cutoffs(data) if ks is None else ks,
        lambda flavor, cutoffs: Prepared(flavor, cutoffs, together).totals(y_score),
        {},
    )
    return [candidate._replace(unlikely=(True, *candidate.unlikely[1:]), one_query=True) for candidate in candidates]


def preset_candidates(
    data: Facts, ks: tuple[int | None, ...] | None, rank: Rank, not_tried: dict[str, str]
) -> list[Candidate]:
    """Every preset at every cut-off, the likeliest first."""
    usual = usual_cutoffs(data)
    every = usual if ks is None else ks
    own = {flavor.k for flavor in PRESETS.values()} - set(COMMON_KS) - set(range(1, data.longest + 1))
    common = tuple(k for k in usual if k not in own)
    known: dict[Flavor, Totals] = {}
    candidates = []
    for name, flavor in PRESETS.items():
        if flavor.ties in TIES_BY_ID and not data.ids:
            not_tried[name] = NO_IDS
            continue
        ranking = flavor.replace(k=None, empty=0.0, aggregate="macro")
        try:
            if ranking not in known:
                known[ranking] = rank(ranking, every)
        except ValueError as error:
            not_tried[name] = str(error)
            continue
        values = dict(zip(every, known[ranking].finite_values(flavor), strict=True))
        mine = dict.fromkeys((flavor.k, *common)) if ks is None else ks
        if all(values[k] is None for k in mine):
            not_tried[name] = f"it has no value under empty={switch_text(flavor.empty)}"
        for k in mine:
            value = values[k]
            if value is not None:
                unlikely = (False, *data.unlikely(flavor), ks is None and k != flavor.k)
                candidates.append(Candidate(name, flavor.replace(k=k), unlikely, value))
    return sorted(candidates, key=lambda candidate: candidate.unlikely)  # equals stay in the order of PRESETS
