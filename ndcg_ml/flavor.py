"""The flavor: one immutable value that defines an NDCG."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from operator import ne
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, cast, get_args

from ndcg_ml._plain import checks, flavor_text, messages
from ndcg_ml._plain.flavor_text import switch_text
from ndcg_ml._plain.messages import block, brief, paragraph
from ndcg_ml._plain.table import Column, Record
from ndcg_ml.presets import MIRRORS

__all__ = ["PRESETS", "Flavor", "as_arguments", "as_flavor"]

NamedGain: TypeAlias = Literal["linear", "exponential", "binary", "judged"]
Gain: TypeAlias = NamedGain | Sequence[float] | Callable[[float], float]
NamedDiscount: TypeAlias = Literal["log2", "jarvelin", "reciprocal", "ln", "none"]
Discount: TypeAlias = NamedDiscount | Callable[[int], float]
Ideal: TypeAlias = Literal["global", "recall", "local", "max", "given"]
Ties: TypeAlias = Literal["average", "first", "last", "best", "worst", "docid", "docid_ascending"]
Empty: TypeAlias = float | Literal["skip", "raise"]

# The strings that each switch accepts.
_CHOICES: Mapping[str, Collection[str]] = {
    "gain": flavor_text.WORDS["gain"],
    "off_table": ("raise", "zero"),
    "discount": flavor_text.WORDS["discount"],
    "ideal": get_args(Ideal),
    "ideal_depth": ("k", "all", "retrieved"),
    "short_lists": ("score", "zero"),
    "ties": flavor_text.WORDS["ties"],
    "empty": ("skip", "raise"),
    "aggregate": ("macro", "micro"),
    "negative": ("raise", "zero", "drop", "allow"),
    "unjudged": ("raise", "zero", "condense"),
    "score_dtype": ("float64", "float32"),
    "duplicates": ("raise", "first", "count"),
}
# The switches that accept only these strings.
_WORDED = tuple(name for name in _CHOICES if name not in ("gain", "discount", "empty"))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class Flavor:
    """Definition of NDCG: gain, discount, ideal, ties, empty queries and cut-off.

        NDCG@k = DCG@k / IDCG@k,  DCG@k = sum over documents d of gain(y_d) w_d

    where w_d is the expected discount of document *d*: D(rank) if its score is unique, otherwise what the tie-breaking
    rule gives; D(r) = 0 for r > k.

    A flavor is immutable, hashable, picklable and compared by value. ``str(flavor)`` is one line without
    spaces, which ``Flavor.parse`` reads.

    Parameters
    ----------
    gain : {"linear", "exponential", "binary", "judged"}, sequence of float, or callable, default "linear"
        ``linear`` y, ``exponential`` 2^y - 1, ``binary`` 1 if y > 0, ``judged`` 1 for every judged document, even of
        grade 0. A sequence is a table indexed by integer grade. A callable takes one grade and returns its gain; it is
        called once per distinct grade.
    off_table : {"raise", "zero"}, default "raise"
        Only with a gain table: a grade beyond its end is an error, or has gain 0 (the scripts of LETOR and MSLR).
    discount : {"log2", "jarvelin", "reciprocal", "ln", "none"} or callable, default "log2"
        ``log2`` 1/log2(r + 1), ``jarvelin`` 1 at rank 1 and 1/log2(r) at the others, ``reciprocal`` 1/r, ``ln``
        1/ln(r + 1), ``none`` 1 (cumulated gain); a callable takes one rank (1, 2, ...) and returns its discount.
    ideal : {"global", "recall", "local", "max", "given"}, default "global"
        The ranking whose DCG is the denominator. ``global``: all judged documents of the query, retrieved or not, best
        first. ``recall``: the retrieved ones, best first. ``local``: the expected gains at ranks 1..k, re-sorted.
        ``max``: gain(max_grade) at every rank 1..k (without a cut-off, at one rank per retrieved document).
        ``given``: all judged documents in the order of the input (in ``evaluate_run`` that of the qrels), not sorted,
        so that NDCG may exceed 1 (Spark's graded NDCG).
    ideal_depth : {"k", "all", "retrieved"}, default "k"
        Cut-off of the ideal. ``k``: that of the ranking. ``all``: none (Quepid). ``retrieved``: k, or the number of
        retrieved documents if that is smaller (Elasticsearch).
    recall_depth : int or None, default None
        Only with ``ideal="recall"``: the ideal uses the first ``recall_depth`` retrieved documents. If a tie group
        crosses that depth and ties are averaged, its ranks within the depth have the mean gain of the group.
    max_grade : float or None, default None
        The top of the grade scale. A label above it is an error, unless it is ``max_grade`` in float32 (0.80000001
        for 0.8). ``ideal="max"`` requires it. With ``ideal="max"`` and a ``binary`` or ``judged`` gain, labels are not
        checked.
    k : int or None, default None
        Cut-off: ranks beyond k are ignored. None for no cut-off.
    short_lists : {"score", "zero"}, default "score"
        ``zero``: the DCG of a query with fewer than k retrieved documents is 0, however they are ranked (the scripts of
        LETOR and MSLR).
    ties : {"average", "first", "last", "best", "worst", "docid", "docid_ascending"}, default "average"
        How documents with equal scores are ordered. ``docid`` is descending document id (trec_eval),
        ``docid_ascending`` the reverse (sentence-transformers); both need ids, and compare them as text, integers too.
    empty : {0.0, 1.0, nan, "skip", "raise"}, default 0.0
        The NDCG of a query whose ideal DCG is 0 (no relevant document, or no document at all).
    aggregate : {"macro", "micro"}, default "macro"
        ``macro``: weighted mean of the queries' NDCG. ``micro``: sum of DCG over sum of IDCG.
    negative : {"raise", "zero", "drop", "allow"}, default "raise"
        Treatment of negative labels. ``raise``: an error. ``zero``: gain 0. ``drop``: the document is removed before
        ranking. ``allow``: the label goes through the gain formula.
    unjudged : {"raise", "zero", "condense"}, default "raise"
        Treatment of documents without a label (NaN). ``raise``: an error. ``zero``: gain 0. ``condense``: the document
        is removed before ranking.
    score_dtype : {"float64", "float32"}, default "float64"
        The precision in which scores are compared.
    duplicates : {"raise", "first", "count"}, default "raise"
        Treatment of a document that is listed twice in a query. ``raise``: an error. ``first``: it has its gain at its
        first rank and gain 0 at its later ranks (Haystack, TruLens). ``count``: it has its gain at each rank, so that
        NDCG may exceed 1 (LlamaIndex, Spark). Without document ids, every row is a separate document.

    Raises
    ------
    TypeError
        A field has the wrong type, or is unknown.
    ValueError
        A field has a value that is not allowed, or fields contradict each other.

    See Also
    --------
    Flavor.preset : the flavors of other libraries.
    ndcg_ml.ndcg_score : the metric.

    Notes
    -----
    A document that is listed twice is in the ``global`` and the ``given`` ideal once. In the latter it has the place of
    its first retrieved row or, if none is retrieved, of its first row. The ideals that re-sort the retrieved documents
    (``recall``, ``local``) use the gain of each rank, which is 0 for a repeat under ``duplicates="first"``.

    Four of the ideals are the normalisations of Järvelin and Kekäläinen (2002) and of Burges et al. (2005), and the
    local and maximal variants found in practice. Averaging of ties follows McSherry and Najork (2008).

    Examples
    --------
    >>> flavor = Flavor(gain="exponential", k=10, ties="average")
    >>> str(flavor)
    'ndcg@10[gain=exponential,discount=log2,ideal=global,ties=average,empty=0]'
    >>> Flavor.parse(str(flavor)) == flavor
    True
    >>> flavor.replace(k=5).k
    5
    """

    gain: Gain = "linear"
    off_table: Literal["raise", "zero"] = "raise"
    discount: Discount = "log2"
    ideal: Ideal = "global"
    ideal_depth: Literal["k", "all", "retrieved"] = "k"
    recall_depth: int | None = None
    max_grade: float | None = None
    k: int | None = None
    short_lists: Literal["score", "zero"] = "score"
    ties: Ties = "average"
    empty: Empty = 0.0
    aggregate: Literal["macro", "micro"] = "macro"
    negative: Literal["raise", "zero", "drop", "allow"] = "raise"
    unjudged: Literal["raise", "zero", "condense"] = "raise"
    score_dtype: Literal["float64", "float32"] = "float64"
    duplicates: Literal["raise", "first", "count"] = "raise"

    if not TYPE_CHECKING:  # type checkers and editors know the switches from the fields

        def __new__(cls, *args: object, **switches: object) -> Self:
            """Refuse a preset's name, which a dataclass refuses without advice."""
            if args:
                raise TypeError(
                    f"Flavor takes switches by keyword, such as gain='exponential'; got {brief(args[0])}. "
                    "Use Flavor.preset(name) for a preset, or Flavor.parse(text)."
                )
            return object.__new__(cls)

        def __getattr__(self, name: str) -> None:
            """Say where the parameters of other libraries are."""
            libraries = ("lightgbm", "xgboost", "catboost")
            homes = [each for each in libraries if name in (f"{each}_params", "supports")]
            where = f". Use {name}(flavor) of ndcg_ml.{' or ndcg_ml.'.join(homes)}." if homes else ""
            raise AttributeError(f"'Flavor' object has no attribute {name!r}{where}", name=name, obj=self)

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        # Each switch is checked by itself first, then against the others.
        put("gain", _check_gain(self.gain))
        if not callable(self.discount):
            checks.one_of(self.discount, "Flavor.discount", _CHOICES["discount"], "or a callable of one rank")
        for name in _WORDED:
            checks.one_of(getattr(self, name), f"Flavor.{name}", _CHOICES[name])
        if self.off_table != "raise" and not isinstance(self.gain, tuple):
            raise ValueError(
                f"Flavor.off_table only has a meaning with a gain table; got off_table={self.off_table!r} with "
                f"gain={switch_text(self.gain)}. Leave it out, or give the gains by grade, such as gain=(0, 1, 3)."
            )
        # Convert numbers to Python's own types, so that equal flavors have the same hash and text.
        put("empty", _check_empty(self.empty))
        put("k", checks.optional_whole_number(self.k, "Flavor.k", "for no cut-off"))
        depth = checks.optional_whole_number(self.recall_depth, "Flavor.recall_depth", "for all that was retrieved")
        put("recall_depth", depth)
        # A switch without an effect is refused.
        if self.recall_depth is not None and self.ideal != "recall":
            raise ValueError(
                f"Flavor.recall_depth only has a meaning with ideal='recall'; got recall_depth={self.recall_depth} "
                f"with ideal={self.ideal!r}. Leave it out, or use ideal='recall'."
            )
        # The ideal "max" needs a top grade, whose gain a table must hold.
        if self.max_grade is not None:
            put("max_grade", checks.finite_number(self.max_grade, "Flavor.max_grade"))
        elif self.ideal == "max":
            raise ValueError(
                "Flavor.max_grade must be given with ideal='max', which places gain(max_grade) at every rank; "
                "got None. Pass the top of your grade scale, for example max_grade=4."
            )
        if self.ideal == "max" and isinstance(self.gain, tuple):
            grade = self.max_grade
            if grade != int(grade or 0) or not 0 <= int(grade or 0) < len(self.gain):
                raise ValueError(
                    f"Flavor.max_grade must be a grade of the gain table, an integer from 0 to {len(self.gain) - 1}; "
                    f"got {brief(grade)}."
                )

    @property
    def top_label(self) -> float | None:
        """Largest allowed label: `max_grade`, or None if labels are not checked against it."""
        return None if self.ideal == "max" and self.gain in ("binary", "judged") else self.max_grade

    # -- value semantics: unlike in the generated methods, nan equals nan ---------------------------------------

    def _key(self) -> tuple[object, ...]:
        values = self._fields().values()
        return tuple("nan" if isinstance(v, float) and math.isnan(v) else v for v in values)

    def _key_without_k(self) -> tuple[object, ...]:
        return self.replace(k=None)._key()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Flavor):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    # -- text ----------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        return flavor_text.write(self._fields(), _DEFAULT._fields())

    def __repr__(self) -> str:
        default = _DEFAULT._fields()
        changed = ((name, value) for name, value in self._fields().items() if value != default[name])
        return f"Flavor({', '.join(f'{name}={value!r}' for name, value in changed)})"

    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def parse(cls, text: str) -> Flavor:
        """Read the one-line text of a flavor.

        Parameters
        ----------
        text : str
            ``NAME``, ``NAME@K`` or ``NAME@K[switch=value,...]``. NAME is ``ndcg`` (the default flavor) or the name of a
            preset; the switches change single fields. A gain table is written ``gain=0|1|3|7``.

        Returns
        -------
        Flavor

        Raises
        ------
        TypeError
            `text` is not a string.
        ValueError
            The text does not have that form, or a name, switch or value in it is unknown.

        Examples
        --------
        >>> Flavor.parse("lightgbm@10[ties=average]").ties
        'average'
        """
        name, changes = flavor_text.read(text, PRESETS, [f.name for f in fields(cls)])
        return (_DEFAULT if name == "ndcg" else PRESETS[name]).replace(**changes)

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Flavor:
        """Return the flavor of a library or a paper, with single fields changed.

        Parameters
        ----------
        name : str
            A key of ``ndcg_ml.PRESETS``.
        **changes
            Fields of the flavor to change, such as ``k=10``.

        Returns
        -------
        Flavor

        Raises
        ------
        ValueError
            The name is not that of a preset; or as for ``Flavor``.

        Examples
        --------
        >>> Flavor.preset("lightgbm", k=10).gain
        'exponential'
        """
        if name not in PRESETS:
            if isinstance(name, str) and {*"@["} & {*name}:
                raise ValueError(f"name must name a preset; got a flavor's text. Write Flavor.parse({brief(name)}).")
            raise messages.unknown_preset("name must be the name of a preset", brief(name), name, PRESETS)
        return PRESETS[name].replace(**changes)

    def replace(self, **changes: Any) -> Flavor:
        """Return a copy with the given fields changed, validated like a new flavor.

        Parameters
        ----------
        **changes
            Fields of the flavor.

        Returns
        -------
        Flavor

        Raises
        ------
        TypeError
            A name is not a field of the flavor; or as for ``Flavor``.
        ValueError
            As for ``Flavor``.

        Examples
        --------
        >>> Flavor.preset("sklearn").replace(empty="skip").empty
        'skip'
        """
        return Flavor(**{**self._fields(), **changes})

    @property
    def preset_name(self) -> str | None:
        """Name of the preset that this flavor equals, apart from the cut-off, or None.

        Libraries that compute the same NDCG have equal presets; the first one in ``ndcg_ml.PRESETS`` is returned.
        """
        mine = self._key_without_k()
        return next((name for name, key in _keys_of_presets().items() if key == mine), None)

    @property
    def short_text(self) -> str:
        """Short text that ``Flavor.parse`` reads: the nearest preset, the cut-off, and the switches that differ.

        Examples
        --------
        >>> Flavor.preset("lightgbm", k=10, ties="average").short_text
        'lightgbm@10[ties=average]'
        """
        return self._text_from(self)

    def _text_from(self, near: Flavor) -> str:
        """Return the short text, starting from the preset nearest to `near`."""
        name, start, _ = near._nearest()
        changed = self._changes_of(start)
        if callable(self.gain) or callable(self.discount) or len(changed) > _FEW_CHANGES:
            return str(self)
        at = "" if self.k == start.k else f"@{self.k}"
        switches = ",".join(f"{switch}={switch_text(value)}" for switch, value in changed.items())
        return f"{name}{at}{f'[{switches}]' if switches else ''}"

    def _advice(self, **changes: Any) -> str:
        """Return the argument of a call for this flavor with switches changed, for error messages."""
        if callable(self.gain) or callable(self.discount):
            return f"flavor=flavor.replace({', '.join(f'{name}={value!r}' for name, value in changes.items())})"
        return f"flavor={self.replace(**changes)._text_from(self)!r}"

    @property
    def metric_name(self) -> str:
        """Short name for logs, different for every flavor.

        ``ndcg_<preset>`` if the flavor is that of a preset. Otherwise the gain, and each switch that is not the
        default: ``ndcg_exponential_skip``, ``ndcg_linear_recall_ties_first``, ``ndcg_gain0_1_3_7``. For a callable or a
        long gain table it has a digest: ``ndcg_gain_9f86d081``. The digest of a lambda, or of another callable that
        cannot be imported, differs in every process. The name consists of letters, digits and ``_``, starts with
        ``ndcg_`` (XGBoost maximises such metrics), and is never the name of a library's own metric. It excludes the
        cut-off; adapters append ``@k``.
        """
        switches = {"gain": self.gain, **self._changes_of(_DEFAULT)}
        return f"ndcg_{self.preset_name or '_'.join(self._log_word(*each) for each in switches.items())}"

    def _log_word(self, switch: str, value: object) -> str:
        """Return one switch as part of a name for logs."""
        if isinstance(value, str) and switch in _SPEAKING and value not in ("max", "none", "first", "raise"):
            return value
        text = switch_text(value).replace("|", "_").replace(".", "p")
        if len(text) > _LONGEST_WORD or not text.replace("_", "").isalnum():
            return f"{switch}_{flavor_text.hash_definition(self)[:8]}"
        return f"{switch}{text}" if isinstance(value, tuple) else f"{switch}_{text}"

    def _nearest(self) -> tuple[str, Flavor, dict[str, object]]:
        """Return the first preset from which the fewest switches differ, and those switches."""
        mine, keys = self._key_without_k(), {"ndcg": _DEFAULT._key(), **_keys_of_presets()}
        name = min(keys, key=lambda name: sum(map(ne, mine, keys[name])))
        preset = PRESETS.get(name, _DEFAULT)
        return name, preset, self._changes_of(preset)

    def _changes_of(self, preset: Flavor) -> dict[str, object]:
        """Return the switches that differ from those of a preset."""
        return {s: v for s, v in self._fields().items() if s != "k" and not same_value(v, getattr(preset, s))}

    def describe(self) -> str:
        """Return the formula and every switch in words and, for a preset, how it was verified and how it differs.

        Returns
        -------
        str
            Several lines of text.

        Examples
        --------
        >>> print(Flavor(k=10).describe())  # doctest: +ELLIPSIS
        NDCG@10 = DCG@10 / IDCG@10, DCG@10 = sum over documents of gain(y) * D(rank)
        ...
        """
        mine = self._key_without_k()
        equal = (name for name, key in _keys_of_presets().items() if key == mine and name != self.preset_name)
        return flavor_text.describe(self, equal)

    def _repr_html_(self) -> str:
        """Return a table of the switches, compared with the nearest preset, with the differences marked."""
        near, preset, _ = self._nearest()
        mine, theirs, words = self._fields(), preset._fields(), flavor_text.switches_in_words(self)
        rows: list[dict[str, str]] = []
        marked: list[int] = []
        for name, value in mine.items():
            differs = not same_value(value, theirs[name])
            if name in words or name == "k" or differs:
                if differs and name != "k":  # an argument of most libraries
                    marked.append(len(rows))
                other = "any" if name == "k" else switch_text(theirs[name])
                rows.append({"switch": name, "value": switch_text(value), "other": other, "words": words.get(name, "")})
        near = "the default" if near == "ndcg" else near
        ours = f"no switch differs from {near}" if not marked else f"marked: what differs from {near}"
        headings = {"switch": "switch", "value": "value", "other": near, "words": "in words"}
        columns = [Column(heading, f"{{{name}}}", "l") for name, heading in headings.items()]
        table = Record(columns, rows, marked, f"{self.short_text}; {ours}")
        return block(paragraph(flavor_text.formula(self)), table.html(), paragraph(str(self)))


@cache
def _keys_of_presets() -> dict[str, tuple[object, ...]]:
    return {name: preset._key_without_k() for name, preset in PRESETS.items()}


# -- checks of gain and empty ----------------------------------------------------------------------------------------


def _check_gain(value: object) -> Gain:
    if callable(value):
        return value
    if checks.is_vector(value):
        table = tuple(checks.finite_number(entry, "Flavor.gain") for entry in value)
        if not table:
            raise ValueError("Flavor.gain as a table must hold a gain for grade 0 at least; got an empty table.")
        return table
    other = "a table (a tuple of gains indexed by integer grade) or a callable of one grade"
    checks.one_of(value, "Flavor.gain", _CHOICES["gain"], other)
    return cast(NamedGain, value)


def _check_empty(value: object) -> Empty:
    if isinstance(value, str) and value in _CHOICES["empty"]:
        return cast(Literal["skip", "raise"], value)
    number = math.nan if isinstance(value, str) and value == "nan" else checks.as_float(value)
    if number is not None and (math.isnan(number) or number in (0.0, 1.0)):
        return number + 0.0  # -0.0 becomes 0.0
    kind = ValueError if isinstance(value, (str, int, float)) and not isinstance(value, bool) else TypeError
    raise kind(
        f"Flavor.empty must be 0, 1, nan, 'skip' or 'raise'; got {brief(value)}."
        f"{messages.did_you_mean(value, _CHOICES['empty'])}"
    )


def same_value(mine: object, theirs: object) -> bool:
    """Return whether two values of a switch are equal; nan equals nan."""
    return bool(mine == theirs) or (mine != mine and theirs != theirs)


_of_init = inspect.signature(Flavor.__init__)
# Without this, editors show the parameters of __new__.
setattr(Flavor, "__signature__", _of_init.replace(parameters=[*_of_init.parameters.values()][1:]))  # noqa: B010

# Short names state at most this many differences from a preset.
_FEW_CHANGES = 2
# Names for logs write longer values, such as gain tables, as a digest.
_LONGEST_WORD = 20
# The switches whose values need no name of the switch there.
_SPEAKING = ("gain", "discount", "ideal", "ties", "empty")
_DEFAULT = Flavor()

PRESETS: Mapping[str, Flavor] = MappingProxyType({name: Flavor(**mirror.switches) for name, mirror in MIRRORS.items()})
"""Every preset by name. ``ndcg_ml.presets.MIRRORS`` has the library of each and how the preset was verified."""


def as_arguments(flavor: Flavor, ks: tuple[int | None, ...], several: bool) -> str:
    """Return the flavor and its cut-offs as arguments of a call, for ``repr``: ``'lightgbm', k=5``."""
    _, start, _ = flavor._nearest()
    name = repr(flavor.replace(k=start.k).short_text)
    if several:
        return f"{name}, k={ks}"
    return name if ks[0] == start.k else f"{name}, k={ks[0]}"


_parse = lru_cache(maxsize=256)(Flavor.parse)


def as_flavor(flavor: object) -> Flavor:
    """Return the flavor for an argument: a Flavor, the name of a preset, or a flavor's text."""
    if isinstance(flavor, Flavor):
        return flavor
    if isinstance(flavor, str):
        return _parse(flavor)
    # A library calls a class with the scores if the class was passed in place of an object.
    hint = " Pass an object, such as NDCGEval('sklearn'), or call ndcg_score." if hasattr(flavor, "dtype") else ""
    hint = f" Pass a cut-off as k={flavor}." if isinstance(flavor, int) else hint
    raise TypeError(
        f"flavor must be a Flavor, the name of a preset or a flavor's text (a str); "
        f"got {brief(flavor)} of type {type(flavor).__name__}.{hint}"
    )
