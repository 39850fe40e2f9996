"""Find the presets, and presets with one switch changed, that reproduce a reported number on the data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from functools import lru_cache
from types import EllipsisType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ndcg_ml._core.json_values import plain
from ndcg_ml._core.layout import Groups, as_float32
from ndcg_ml._core.mean_and_empty_queries import Totals
from ndcg_ml._core.queries import Queries, Weights
from ndcg_ml._core.scores import Ranking
from ndcg_ml._plain.checks import TIES_BY_ID, KSpec, cutoffs, finite_number, optional_whole_number
from ndcg_ml._plain.flavor_text import WORDS, summarise, switch_text
from ndcg_ml._plain.messages import brief
from ndcg_ml.flavor import PRESETS, Flavor

# A string with more decimals than this is exact.
MOST_DECIMALS = 9
_USUAL_DECIMALS = 4
_MOST_ROWS_OF_ONE_QUERY = 100_000
_COMMON_KS = (None, 1, 3, 5, 10, 15, 20, 30, 50, 100, 200, 500, 1000)
# For lists of at most this length, every cut-off is tried.
_SHORT = 20
# The data cannot distinguish two flavors whose values are this close.
_SAME = 1e-12
# Tolerance for exact values (decimals=None), because libraries sum in different orders.
_EXACT = 1e-9
# Tolerance for a library's own rounding (such as float32 sums), in units of the last digit.
_SLACK = 0.01
_NEAREST = 5
# The expected number of chance matches is that of a random number within this distance.
_CLOSE = 0.05
_PRINTED = 5
# With this expected number of chance matches or more, a match is weak evidence, or none.
_WEAK, _WORTHLESS = 0.05, 0.5
_ONE_QUERY = " (all rows as one query)"


@dataclass(frozen=True, kw_only=True, slots=True)
class Match:
    """A value of one or more flavors on the data, named after one of them.

    Attributes
    ----------
    name : str
        The flavor, as text that starts from a preset: ``lightgbm@10``, ``lightgbm@10[ties=average]``.
    flavor : Flavor
    value : float
        Its value on the data.
    presets : tuple of str
        All presets with this value, with their cut-offs; if there are any, the first is `name`. After a name,
        "(all rows as one query)" means that the query ids were ignored.
    n_others : int
        Number of other presets with one switch changed and the same value to 1e-12.
    """

    name: str
    flavor: Flavor
    value: float
    presets: tuple[str, ...]
    n_others: int


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Identification:
    """The flavors that reproduce a reported number. ``print`` shows them.

    Attributes
    ----------
    value : float
        The number that you passed.
    decimals : int or None
        The decimals to which it was rounded.
    per_cent : bool
        Whether only a hundredth of the number has matches. They are given, and the expected numbers are those of it.
    matches : tuple of Match
        The matches, those with a preset first.
    nearest : tuple of Match
        The nearest values, if nothing matches.
    n_tried : int
        Number of flavors whose values were compared.
    cutoffs : tuple of int or None
        The cut-offs that were tried. If `k` was not passed, each preset's own was also tried.
    not_tried : dict of str to str
        Presets that the data rule out, with the reasons.
    by_chance, presets_by_chance : float
        Expected number of matches, and of matches with a preset, of a random number within 0.05 of this one. If it is
        large, a match is no evidence.
    """

    value: float
    decimals: int | None
    per_cent: bool = False
    matches: tuple[Match, ...]
    nearest: tuple[Match, ...]
    n_tried: int
    cutoffs: tuple[int | None, ...]
    not_tried: Mapping[str, str]
    by_chance: float
    presets_by_chance: float

    def to_dict(self) -> dict[str, Any]:
        """Return numbers and strings for JSON.

        Returns
        -------
        dict
        """
        values = _as_dict(self)
        for name in ("matches", "nearest"):
            values[name] = [_as_dict(match) for match in values[name]]
        return {name: plain(value) for name, value in values.items()}

    def __str__(self) -> str:
        listed = [match for match in self.matches if match.presets] or self.matches or self.nearest
        printed, n_all = listed[:_PRINTED], len(self.matches or self.nearest)
        lines = [self._headline()]
        for match in printed:
            lines.append(f"  {match.value:.6f}  {summarise(match.flavor, match.flavor._changes_of(Flavor()))}")
            lines.append(f"    {'; '.join([match.name, *_list_equal_flavors(match)])}")
        if n_all > len(printed):
            lines.append(f"  and {n_all - len(printed)} more, in .{'matches' if self.matches else 'nearest'}")
        return "\n".join([*lines, *self._footer()])

    __repr__ = __str__

    def _headline(self) -> str:
        """Return a line with the number of matches, with and without a preset."""
        shown = repr(self.value) if self.decimals is None else f"{self.value:.{self.decimals}f}"
        if not self.matches:
            return f"{shown}: no match{', also not in per cent' * (1 < self.value <= 100)}; the nearest are"
        presets = sum(bool(match.presets) for match in self.matches)
        others = len(self.matches) - presets
        counts = [f"{presets} match{'es' * (presets != 1)} with a preset"] if presets else ["no preset"]
        counts += [f"{others} other{'s' * (others != 1)} with one switch changed"] if others else []
        counts += ["if it is in per cent"] * self.per_cent
        return f"{shown}: {', '.join(counts)}"

    def _footer(self) -> list[str]:
        """Return lines on the matches expected by chance, what was tried, and what was not."""
        first = self.presets_by_chance if any(match.presets for match in self.matches) else self.by_chance
        worth = ""
        if self.matches and first >= _WEAK:
            worth = ": a match is no evidence here" if first >= _WORTHLESS else ": a match is weak evidence here"
            worth += "; pass more decimals, k, or more data"
        chances = f"{self.by_chance:.2g} flavors on average, {self.presets_by_chance:.2g} of them presets"
        cutoffs = f"cut-off{'s' * (len(self.cutoffs) > 1)} {', '.join(map(switch_text, self.cutoffs))}"
        lines = [
            f"by chance, a number near this one would match {chances}{worth}",
            f"{self.n_tried} flavors tried at {cutoffs}",
        ]
        by_reason: dict[str, list[str]] = {}
        for name, reason in self.not_tried.items():
            by_reason.setdefault(reason, []).append(name)
        for reason, names in by_reason.items():
            why = reason.replace("it has", "they have") if len(names) > 1 else reason
            lines.append(f"not tried: {', '.join(names)}: {why}")
        written = _count_decimals(self.value)
        if not self.matches and self.decimals is not None and written < self.decimals:
            lines.append(f"if the number was rounded to fewer decimals, pass decimals={written}")
        return lines


def _as_dict(record: Match | Identification) -> dict[str, Any]:
    return {each.name: getattr(record, each.name) for each in fields(record)}


def _list_equal_flavors(match: Match) -> list[str]:
    """Return words on flavors with the same value as a match, unless only the cut-off differs."""
    start = match.name.partition("@")[0]
    also = list({preset.partition("@")[0]: preset for preset in reversed(match.presets)}.values())[::-1]
    also = [preset for preset in also if preset.partition("@")[0] != start]
    others = f"{match.n_others} preset{'s' * (match.n_others > 1)} with one switch changed" if match.n_others else ""
    listed = " and ".join(filter(None, (", ".join(also), others)))
    return [f"these data cannot distinguish it from {listed}"] if listed else []


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
) -> Identification:
    """Find the flavors that reproduce a reported number on the data that it was computed from.

    Parameters
    ----------
    value : float or str
        The reported NDCG. A string such as ``"0.7840"`` also gives the number of decimals.
    y_true, y_score, qid, group, mask, retrieved, doc_id, query_weight
        As for ``ndcg_score``. Pass everything that the reporting library used: `doc_id` if it orders ties by id,
        `retrieved` if its ideal includes judged documents that were not retrieved.
    k : int, None or sequence of them, optional
        The cut-off if it is known, or several candidates. Default: each preset's own, no cut-off, 1, 3, 5, 10, 15,
        20, 30, 50, 100, 200, 500 and 1000; if no list is longer than 20, also every cut-off up to the longest.
    decimals : int or None, optional
        The decimals to which the number was rounded. A flavor matches within half a unit of the last one, plus a
        hundredth of a unit for the library's own rounding. None means an exact number, which matches to 1e-9. Default:
        the decimals of a string, or None if it has more than 9; the decimals that a number needs, or 4 if it is an
        integer or needs more.

    Returns
    -------
    Identification
        ``.matches``, most likely first; ``print`` shows them, ``.to_dict()`` is for JSON.

    Raises
    ------
    TypeError, ValueError
        `value` is not a finite number, `decimals` not an integer >= 0, or as for ``ndcg_score`` under any flavor.

    Notes
    -----
    Every preset is tried, unchanged and with one switch changed: gain (linear, exponential, binary, and the tables
    of presets), discount, ideal (global, recall, local, and max with the highest label), ideal_depth (k, all), ties,
    empty (0, 1, skip), aggregate and score_dtype; also negative if labels are negative, unjudged if labels are missing,
    and duplicates if ids repeat. Numbers that need two changed switches are not found. Presets that the data rule out,
    such as those that order ties by id if there are no ids, are listed in ``not_tried``.

    Flavors whose values agree to 1e-12 are one match, because the data cannot distinguish them. It is named after a
    preset if there is one, otherwise after the first preset with a switch changed.

    Matches with a preset come first. If the value has more decimals than `decimals`, they are ordered by their distance
    from it. Otherwise all agree with it equally well, and tools that are usual for such data come first: with document
    ids, those that order ties by id (as trec_eval does); with unjudged documents or some that were not retrieved, those
    that have a rule for unjudged ones; with neither, those that require a label for every document. Then presets at
    their own cut-offs precede others, and the rest follows ``PRESETS``, as do presets with equal values. Matches
    without a preset come last.

    If a value above 1 has no match, a hundredth of it is tried, in case it is in per cent. If nothing rounds to the
    value, the nearest values are given, among them one that was truncated rather than rounded.

    Numbers that were computed from all rows as one query, a frequent mistake, are found too: all presets are also tried
    without query ids (up to 100 000 rows), and such matches are marked.

    With this number of flavors, a random number may match some. ``.by_chance`` and ``.presets_by_chance`` are the
    expected numbers of such matches, and the printed text says if a match is no evidence. More decimals, a known `k`
    and more queries make a match stronger evidence.

    For qrels and a run, use ``align``: ``identify(0.5058, **align("qrels.txt", "run.txt").arguments())``.

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
    number, digits = _read_number(value, decimals)
    given = None if isinstance(k, EllipsisType) else cutoffs(k, Flavor())[0]
    queries = Queries.read(
        y_true, qid=qid, group=group, mask=mask, retrieved=retrieved, doc_id=doc_id, query_weight=query_weight
    )
    # This flavor accepts all valid data, so an error here is due to the data.
    Ranking(Flavor(negative="allow", unjudged="zero", duplicates="count"), None, queries).totals(y_score)
    scores = queries.scores(y_score, queries.groups)
    longest = int(queries.groups.sizes.max())
    short = range(1, longest + 1) if longest <= _SHORT else ()
    ks = tuple(dict.fromkeys((*_COMMON_KS, *short))) if given is None else given
    data = _Data.describe(queries, scores)
    not_tried: dict[str, str] = {}
    candidates = _Search(queries, y_score, data, ks, own_k=given is None).values(not_tried)
    if queries.n_queries > 1:
        if queries.groups.sizes.sum() > _MOST_ROWS_OF_ONE_QUERY:
            not_tried["all rows as one query"] = f"there are more than {_MOST_ROWS_OF_ONE_QUERY} rows"
        else:
            together = _Search(_merge_queries(queries), y_score, data._replace(ids=False), ks, own_k=given is None)
            candidates += [each._replace(one_query=True) for each in together.values({}, only_presets=True)]
    found = _identification(number, digits, candidates, ks, not_tried)
    if found.matches or not 1 < number <= 100:
        return found
    if isinstance(decimals, EllipsisType) and not isinstance(value, str):
        digits = min(_count_decimals(number), _USUAL_DECIMALS)  # 71 per cent is 0.71
    places = None if digits is None else digits + 2
    in_per_cent = _identification(float(_as_decimal(number).scaleb(-2)), places, candidates, ks, not_tried)
    return replace(in_per_cent, value=number, decimals=digits, per_cent=True) if in_per_cent.matches else found


def _read_number(value: float | str, decimals: int | None | EllipsisType) -> tuple[float, int | None]:
    """Return the number and its decimals, as it is written or as the caller says."""
    if isinstance(value, str):
        written = re.fullmatch(r"\s*[+-]?\d+(?:\.(\d*))?\s*|\s*[+-]?\.(\d+)\s*", value, re.ASCII)
        if written is None:
            raise ValueError(f"value must be a decimal number, such as '0.7840'; got {brief(value)}.")
        number = float(value)
        needed = len(written[1] or written[2] or "")
        usual = needed if needed <= MOST_DECIMALS else None
    else:
        number = finite_number(value, "value")
        needed = _count_decimals(number)
        usual = needed if 0 < needed < _USUAL_DECIMALS else _USUAL_DECIMALS
    if isinstance(decimals, EllipsisType):
        return number, usual
    return number, optional_whole_number(decimals, "decimals", "if it is exact", 0)


def _merge_queries(queries: Queries) -> Queries:
    """Put the rows of all queries into one query."""
    groups = queries.groups
    size = np.array([groups.sizes.sum()], dtype=np.intp)
    whole = Groups(sizes=size, starts=np.zeros(1, dtype=np.intp), order=groups.order, n_rows=groups.n_rows)
    return Queries(queries.labels, whole, queries.retrieved, axes=queries.axes)


class _Data(NamedTuple):
    """Properties of the data that decide which switches can matter."""

    ids: bool
    run: bool
    negative: bool
    unjudged: bool
    repeats: bool
    ties: bool
    rounded_ties: bool
    top: float

    @classmethod
    def describe(cls, queries: Queries, scores: NDArray[Any]) -> _Data:
        labels = queries.groups.arrange(queries.labels.reshape(-1).astype(np.float64))
        judged = labels[~np.isnan(labels)]
        ids, unjudged = queries.doc_order is not None, judged.size < labels.size
        n_scores, n_rounded = np.unique(scores).size, np.unique(as_float32(scores)).size
        return cls(
            ids=ids,
            run=ids or unjudged or queries.retrieved is not None,
            negative=bool((judged < 0).any()),
            unjudged=unjudged,
            repeats=queries.repeats is not None,
            ties=n_rounded < scores.size,
            rounded_ties=n_rounded < n_scores,
            top=float(judged.max(initial=0.0)),
        )

    def changes(self) -> Iterator[dict[str, Any]]:
        """Yield every change of one switch, followed by the switches that depend on it."""
        tables = dict.fromkeys((f.gain, f.off_table) for f in PRESETS.values() if isinstance(f.gain, tuple))
        words = [(word, "raise") for word in ("linear", "exponential", "binary")]
        for gain, off_table in (*words, *tables):
            yield {"gain": gain, "off_table": off_table}
        for ideal in ("global", "recall", "local", "max"):
            yield {"ideal": ideal, "max_grade": self.top if ideal == "max" else None, "recall_depth": None}
        choices: dict[str, tuple[Any, ...]] = {
            "discount": tuple(WORDS["discount"]),
            "ideal_depth": ("k", "all"),
            "ties": tuple(ties for ties in WORDS["ties"] if self.ids or ties not in TIES_BY_ID),
            "score_dtype": ("float64", "float32"),
            "negative": ("zero", "drop", "allow") if self.negative else (),
            "unjudged": ("zero", "condense") if self.unjudged else (),
            "duplicates": ("first", "count") if self.repeats else (),
            "empty": (0.0, 1.0, "skip"),
            "aggregate": ("macro", "micro"),
        }
        for name, values in choices.items():
            yield from ({name: value} for value in values)

    def without_effect(self) -> dict[str, Any]:
        """Return the switches that cannot change a value on the data, each with one of its values."""
        have_effect = {
            "negative": self.negative,
            "unjudged": self.unjudged,
            "duplicates": self.repeats,
            "ties": self.ties,
            "score_dtype": self.rounded_ties,
        }
        return {name: getattr(Flavor(), name) for name, has in have_effect.items() if not has}


class _Tried(NamedTuple):
    """A preset, or a preset with one switch changed, without its cut-off."""

    preset: str
    flavor: Flavor
    change: tuple[str, ...]
    totals: int
    """Equal for flavors with the same DCG and ideal DCG on the data."""


@lru_cache(maxsize=8)  # several numbers are often identified on the same data
def _presets_and_changes(data: _Data) -> list[_Tried]:
    """Return every preset, and every other flavor that is one with a switch changed, of the first such preset."""
    presets = {name: preset.replace(k=None) for name, preset in PRESETS.items()}
    listed: list[tuple[str, Flavor, dict[str, Any]]] = [(name, flavor, {}) for name, flavor in presets.items()]
    known = set(presets.values())
    for change in data.changes():
        for name, preset in presets.items():
            try:
                flavor = preset.replace(**change)
            except ValueError:  # incompatible with this preset
                continue
            if flavor not in known:
                known.add(flavor)
                listed.append((name, flavor, change))
    without_effect, tried = data.without_effect(), []
    numbers: dict[Flavor, int] = {}
    for name, flavor, change in listed:
        same = flavor.replace(empty=0.0, aggregate="macro", **without_effect)
        if same.ideal == "recall" and same.recall_depth is None and not data.run:
            same = same.replace(ideal="global")  # all judged documents were retrieved
        tried.append(_Tried(name, flavor, tuple(change), numbers.setdefault(same, len(numbers))))
    return tried


class _Candidate(NamedTuple):
    """A preset, or a preset with one switch changed, at a cut-off."""

    preset: str
    start: Flavor
    """The flavor without its cut-off."""
    k: int | None
    value: float
    unlikely: tuple[bool, ...]
    change: tuple[str, ...] = ()
    one_query: bool = False

    @property
    def flavor(self) -> Flavor:
        return self.start.replace(k=self.k)

    @property
    def text(self) -> str:
        preset = PRESETS[self.preset]
        at_k = "" if self.k is None and preset.k is None else f"@{self.k}"
        switches = ",".join(
            f"{name}={switch_text(getattr(self.start, name))}"
            for name in self.change
            if getattr(self.start, name) != getattr(preset, name)
        )
        return f"{self.preset}{at_k}{f'[{switches}]' if switches else ''}{_ONE_QUERY if self.one_query else ''}"


class _Search:
    """The values of presets, and of presets with one switch changed, on the same scores."""

    def __init__(
        self, queries: Queries, y_score: ArrayLike, data: _Data, ks: tuple[int | None, ...], *, own_k: bool
    ) -> None:
        self._queries, self._y_score, self._data, self._ks, self._own_k = queries, y_score, data, ks, own_k
        own = tuple(flavor.k for flavor in PRESETS.values()) if own_k else ()
        self._every = tuple(dict.fromkeys((*ks, *own)))
        self._totals: dict[int, Totals | str] = {}
        self._values: dict[tuple[object, ...], dict[int | None, float | None]] = {}

    def values(self, not_tried: dict[str, str], *, only_presets: bool = False) -> list[_Candidate]:
        """Return the values at every cut-off, and add presets without one to `not_tried`."""
        candidates = []
        for tried in _presets_and_changes(self._data):
            if tried.change and only_presets:
                break
            totals = self._rank(tried)
            found = [] if isinstance(totals, str) else self._at_ks(tried, totals)
            candidates += found
            if not (found or tried.change):
                none = f"it has no value under empty={switch_text(tried.flavor.empty)}"
                not_tried[tried.preset] = totals if isinstance(totals, str) else none
        return candidates

    def _rank(self, tried: _Tried) -> Totals | str:
        """Return DCG and ideal DCG, or why the data rule the flavor out, without advice, which is among the changes."""
        if tried.flavor.ties in TIES_BY_ID and not self._data.ids:
            return "doc_id was not given"
        if tried.totals not in self._totals:
            try:
                self._totals[tried.totals] = Ranking(tried.flavor, self._every, self._queries).totals(self._y_score)
            except ValueError as error:
                self._totals[tried.totals] = str(error).partition(". ")[0].rstrip(".")
        return self._totals[tried.totals]

    def _at_ks(self, tried: _Tried, totals: Totals) -> list[_Candidate]:
        flavor, own = tried.flavor, PRESETS[tried.preset].k
        key = tried.totals, flavor.aggregate, (totals.ideal > 0).all() or flavor.empty
        if key not in self._values:
            self._values[key] = dict(zip(self._every, totals.finite_values(flavor), strict=True))
        values = self._values[key]
        # The strongest reason first: tools that order ties by id are usual if documents have ids, tools with a rule for
        # unjudged documents if some are not judged or not retrieved.
        unlikely = (
            self._data.ids and flavor.ties not in TIES_BY_ID,
            self._data.run == (flavor.unjudged == "raise"),
        )
        return [
            _Candidate(tried.preset, flavor, k, value, (*unlikely, self._own_k and k != own), tried.change)
            for k in dict.fromkeys((own, *self._ks) if self._own_k else self._ks)
            if (value := values[k]) is not None
        ]


def _identification(
    number: float,
    digits: int | None,
    candidates: list[_Candidate],
    ks: tuple[int | None, ...],
    not_tried: dict[str, str],
) -> Identification:
    # The number may have been rounded, and the sum before rounding may be slightly inaccurate.
    within = _EXACT if digits is None else (0.5 + _SLACK) * 10.0**-digits
    is_rounded = digits is not None and abs(number - round(number, digits)) < _SAME
    groups = _group_by_value(number - within, number + within, candidates)
    order = {name: at for at, name in enumerate(PRESETS)}

    def key(candidate: _Candidate) -> tuple[Any, ...]:
        return bool(candidate.change), candidate.one_query, candidate.unlikely, order[candidate.preset]

    for group in groups:
        group.sort(key=key)
    if is_rounded:
        groups.sort(key=lambda group: key(group[0]))
    else:
        groups.sort(key=lambda group: (bool(group[0].change), abs(group[0].value - number), key(group[0])))
    # Without a match, the nearest values suggest what differs.
    nearest: list[list[_Candidate]] = []
    if not groups:
        nearest = sorted(_group_by_value(-np.inf, np.inf, candidates), key=lambda group: abs(group[0].value - number))
        nearest = [sorted(group, key=key) for group in nearest[:_NEAREST]]
    return Identification(
        value=number,
        decimals=digits,
        matches=tuple(_to_match(group) for group in groups),
        nearest=tuple(_to_match(group) for group in nearest),
        n_tried=len(candidates),
        cutoffs=ks,
        not_tried=not_tried,
        by_chance=_expected_matches(number, within, [each.value for each in candidates]),
        presets_by_chance=_expected_matches(number, within, [each.value for each in candidates if not each.change]),
    )


def _group_by_value(low: float, high: float, candidates: list[_Candidate]) -> list[list[_Candidate]]:
    """Return the candidates between two values, grouped by equal values."""
    inside = sorted((each for each in candidates if low <= each.value <= high), key=lambda each: each.value)
    groups: list[list[_Candidate]] = []
    for at, each in enumerate(inside):
        if at and each.value - inside[at - 1].value <= _SAME:
            groups[-1].append(each)
        else:
            groups.append([each])
    return groups


def _to_match(group: list[_Candidate]) -> Match:
    first = group[0]
    presets = [each for each in group if not each.change]
    return Match(
        name=first.text,
        flavor=first.flavor,
        value=first.value,
        presets=tuple(dict.fromkeys(each.text for each in presets)),
        n_others=len(group) - len(presets) - bool(first.change),
    )


def _expected_matches(number: float, within: float, values: list[float]) -> float:
    """Return the expected number of distinct values that a random number close to this one matches.

    The random number is uniform within 0.05 of this one, and in [0, 1] if this one is.
    """
    known = np.sort(values)
    low, high = max(number - _CLOSE, min(number, 0.0)), min(number + _CLOSE, max(number, 1.0))
    near = known[(known >= low) & (known <= high)]
    n_values = int((np.diff(near) > _SAME).sum()) + min(1, near.size)
    return n_values * 2 * within / (high - low)


def _as_decimal(value: float) -> Decimal:
    """Return a number as it was probably typed, with at most 15 digits."""
    return Decimal(f"{value:.15g}")


def _count_decimals(value: float) -> int:
    """Return the number of decimals that a number needs."""
    return len(f"{_as_decimal(value):f}".partition(".")[2])
