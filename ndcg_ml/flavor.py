"""The flavor: one frozen value that says which NDCG is meant, and its one-line text."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import lru_cache
from numbers import Complex, Real
from types import EllipsisType, MappingProxyType
from typing import Any, TypeAlias

from ndcg_ml import settings
from ndcg_ml._shown import shown
from ndcg_ml.presets import MIRRORS

__all__ = ["PRESETS", "Flavor", "Gain", "KSpec", "as_flavor", "check_k", "cutoffs", "empty_in_words", "switch_text"]

Gain: TypeAlias = "str | tuple[float, ...] | Callable[[float], float]"
Discount: TypeAlias = "str | Callable[[int], float]"
KSpec: TypeAlias = "int | None | Sequence[int | None] | EllipsisType"
"""A cut-off as callers write it: ``...`` is the flavor's own, ``None`` no cut, a sequence several."""

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "gain": ("linear", "exponential", "binary", "judged"),
    "off_table": ("raise", "zero"),
    "discount": ("log2", "jarvelin", "reciprocal", "ln", "none"),
    "ideal": ("global", "recall", "local", "max", "given"),
    "ideal_depth": ("k", "all", "retrieved"),
    "short_lists": ("score", "zero"),
    "ties": ("average", "first", "last", "best", "worst", "docid"),
    "empty": ("skip", "raise"),
    "aggregate": ("macro", "micro"),
    "negative": ("raise", "zero", "drop", "allow"),
    "unjudged": ("raise", "zero", "condense"),
    "score_dtype": ("float64", "float32"),
}

# The switches whose value is always one of these words.
_WORDED = tuple(name for name in _CHOICES if name not in ("gain", "discount", "empty"))

# Words that other libraries use for the same thing: only ever offered as a suggestion.
_ELSEWHERE = {
    "exp": "exponential",
    "exp2": "exponential",
    "lin": "linear",
    "identity": "linear",
    "log": "ln",
    "mean": "average",
    "stable": "first",
    "input": "first",
    "reverse": "last",
    "zero": "0.0",
    "one": "1.0",
    "neg": "0.0",
    "pos": "1.0",
    "error": "raise",
    "condensed": "condense",
    "clip": "zero",
    "double": "float64",
    "single": "float32",
    "scikit-learn": "sklearn",
    "scikit": "sklearn",
    "lgb": "lightgbm",
    "lgbm": "lightgbm",
    "xgb": "xgboost",
    "trec": "trec_eval",
    "pytrec_eval": "trec_eval",
    "burges": "burges2005",
}

_WORDS: Mapping[str, Mapping[str, str]] = {
    "gain": {
        "linear": "y",
        "exponential": "2^y - 1",
        "binary": "1 if y > 0 else 0",
        "judged": "1 of every judged document, whatever its label",
    },
    "discount": {
        "log2": "1 / log2(r + 1)",
        "jarvelin": "1 for r < {base}, else 1 / log_{base}(r)",
        "reciprocal": "1 / r",
        "ln": "1 / ln(r + 1)",
        "none": "1",
    },
    "aggregate": {"macro": "weighted mean of the queries' NDCG", "micro": "sum of DCG over sum of IDCG"},
    "ties": {
        "average": "every order of the tied documents counts the same (their mean discount)",
        "first": "tied documents keep their input order",
        "last": "tied documents take the reverse of their input order",
        "best": "tied documents are put highest gain first",
        "worst": "tied documents are put lowest gain first",
        "docid": "tied documents are put in descending order of document id",
    },
    "negative": {
        "raise": "a negative label is an error",
        "zero": "a negative label gains 0",
        "drop": "a document with a negative label is removed before ranking",
        "allow": "a negative label goes through the gain formula; an ideal DCG <= 0 counts as empty",
    },
    "unjudged": {
        "raise": "a document without a label (NaN) is an error",
        "zero": "a document without a label (NaN) keeps its rank and gains 0",
        "condense": "a document without a label (NaN) is removed before ranking",
    },
    "score_dtype": {
        "float64": "scores are compared in float64",
        "float32": "scores are compared in float32: what float32 cannot tell apart is tied",
    },
}


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class Flavor:
    r"""Which NDCG is meant: gain, discount, ideal, ties, empty queries, cut-off, chosen once.

    .. math::  NDCG@k = \frac{DCG@k}{IDCG@k}, \qquad DCG@k = \sum_d gain(y_d)\, w_d

    where :math:`w_d` is the expected discount of document *d*: :math:`D(rank)` where its score is unique, and
    what the tie rule says where it is not; :math:`D(r) = 0` for :math:`r > k`.

    A flavor is frozen, hashable, picklable and compared by value. ``str(flavor)`` is one line without
    spaces and ``Flavor.parse`` reads it back.

    Parameters
    ----------
    gain : {"linear", "exponential", "binary", "judged"}, sequence of float, or callable, default "linear"
        ``linear`` y, ``exponential`` 2^y - 1, ``binary`` 1 where y > 0, ``judged`` 1 for every judged document, also
        at grade 0; a sequence is a table indexed by integer grade; a callable takes one grade and returns its gain
        (it is called once per distinct grade).
    off_table : {"raise", "zero"}, default "raise"
        Only with a gain table: a grade beyond its end is an error, or gains 0 (the scripts of LETOR and MSLR).
    discount : {"log2", "jarvelin", "reciprocal", "ln", "none"} or callable, default "log2"
        ``log2`` 1/log2(r + 1), ``jarvelin`` 1 for r < b else 1/log_b(r), ``reciprocal`` 1/r, ``ln`` 1/ln(r + 1),
        ``none`` 1 (cumulated gain); a callable takes one rank (1, 2, ...) and returns its discount.
    discount_base : float, default 2.0
        The base b of ``jarvelin``; greater than 1.
    ideal : {"global", "recall", "local", "max", "given"}, default "global"
        What divides. ``global``: all judged documents of the query, retrieved or not, best first. ``recall``: the
        retrieved ones, best first. ``local``: the expected gains at ranks 1..k, re-sorted. ``max``: gain(max_grade)
        at every rank 1..k (with no cut-off, at as many ranks as documents were retrieved). ``given``: all judged
        documents in the order of the input, not sorted, so that NDCG may exceed 1 (Spark's graded NDCG).
    ideal_depth : {"k", "all", "retrieved"}, default "k"
        Where the ideal is cut. ``k``: where the ranking is. ``all``: not at all (Quepid). ``retrieved``: at k, or after
        as many documents as were retrieved where that is less (Elasticsearch).
    recall_depth : int or None, default None
        Only with ``ideal="recall"``: the ideal uses the first ``recall_depth`` retrieved documents. Where a tied run
        crosses that depth and ties are averaged, its places inside the depth hold the run's mean gain.
    max_grade : float or None, default None
        The top of the grade scale. A label above it is an error; ``ideal="max"`` needs it.
    k : int or None, default None
        Cut-off: ranks beyond k do not count. None is no cut-off.
    short_lists : {"score", "zero"}, default "score"
        ``zero``: the DCG of a query with fewer than k retrieved documents is 0, however they are ranked (the scripts of
        LETOR and MSLR).
    ties : {"average", "first", "last", "best", "worst", "docid"}, default "average"
        How documents with equal scores are ordered. ``docid`` is descending document id and needs ids.
    empty : {0.0, 1.0, nan, "skip", "raise"}, default 0.0
        The NDCG of a query whose ideal DCG is 0 (no relevant document, or no document at all).
    aggregate : {"macro", "micro"}, default "macro"
        ``macro``: weighted mean of the queries' NDCG. ``micro``: sum of DCG over sum of IDCG.
    negative : {"raise", "zero", "drop", "allow"}, default "raise"
        What a negative label means.
    unjudged : {"raise", "zero", "condense"}, default "raise"
        What a document without a label (NaN) means.
    score_dtype : {"float64", "float32"}, default "float64"
        The precision in which scores count as equal.

    Raises
    ------
    TypeError
        A field has the wrong type.
    ValueError
        A field has a value that is not allowed, or fields contradict each other.

    See Also
    --------
    Flavor.preset : the flavors of other libraries.
    ndcg_ml.ndcg_score : the metric.

    Notes
    -----
    The vocabulary of ideals follows the four normalisations in use (Järvelin and Kekäläinen 2002; Burges et al.
    2005; and the local and maximal variants found in practice). Tie averaging is McSherry and Najork 2008.

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
    off_table: str = "raise"
    discount: Discount = "log2"
    discount_base: float = 2.0
    ideal: str = "global"
    ideal_depth: str = "k"
    recall_depth: int | None = None
    max_grade: float | None = None
    k: int | None = None
    short_lists: str = "score"
    ties: str = "average"
    empty: float | str = 0.0
    aggregate: str = "macro"
    negative: str = "raise"
    unjudged: str = "raise"
    score_dtype: str = "float64"

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("gain", _check_gain(self.gain))
        if not callable(self.discount):
            _check_choice("discount", self.discount, "or a callable of one rank")
        for name in _WORDED:
            _check_choice(name, getattr(self, name))
        if self.off_table != "raise" and not isinstance(self.gain, tuple):
            raise ValueError(
                f"Flavor.off_table only has a meaning with a gain table; got off_table={self.off_table!r} with "
                f"gain={switch_text(self.gain)}. Leave it out, or give the gains by grade, such as gain=(0, 1, 3)."
            )
        put("empty", _check_empty(self.empty))
        put("k", check_k(self.k, "Flavor.k"))
        put("recall_depth", check_k(self.recall_depth, "Flavor.recall_depth", "for all that was retrieved"))
        put("discount_base", _check_number("discount_base", self.discount_base))
        if self.discount_base <= 1:
            raise ValueError(
                f"Flavor.discount_base must be greater than 1, the base of a logarithm; got {self.discount_base!r}."
            )
        if self.discount_base != 2 and self.discount != "jarvelin":
            raise ValueError(
                f"Flavor.discount_base only has a meaning with discount='jarvelin'; got discount_base="
                f"{self.discount_base!r} with discount={self.discount!r}. Leave it out, or use discount='jarvelin'."
            )
        if self.recall_depth is not None and self.ideal != "recall":
            raise ValueError(
                f"Flavor.recall_depth only has a meaning with ideal='recall'; got recall_depth={self.recall_depth} "
                f"with ideal={self.ideal!r}. Leave it out, or use ideal='recall'."
            )
        if self.max_grade is not None:
            put("max_grade", _check_number("max_grade", self.max_grade))
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
                    f"got {shown(grade)}."
                )

    # -- value semantics; nan is one value here, so the generated methods would not do -------------------------

    def _key(self) -> tuple[object, ...]:
        values = (getattr(self, field.name) for field in fields(self))
        return tuple("nan" if isinstance(v, float) and math.isnan(v) else v for v in values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Flavor):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    # -- text ----------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        always = ("gain", "discount", "ideal", "ties", "empty")
        rest = [f.name for f in fields(self) if f.name not in (*always, "k")]
        shown = [*always, *(name for name in rest if getattr(self, name) != getattr(_DEFAULT, name))]
        switches = ",".join(f"{name}={switch_text(getattr(self, name))}" for name in shown)
        return f"ndcg{'' if self.k is None else f'@{self.k}'}[{switches}]"

    def __repr__(self) -> str:
        changed = (f for f in fields(self) if self._differs_from_default(f.name))
        return f"Flavor({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in changed)})"

    def _differs_from_default(self, name: str) -> bool:
        return bool(getattr(self, name) != getattr(_DEFAULT, name))

    @classmethod
    def parse(cls, text: str) -> Flavor:
        """Read the one-line text of a flavor.

        Parameters
        ----------
        text : str
            ``NAME``, ``NAME@K`` or ``NAME@K[switch=value,...]``, where NAME is ``ndcg`` (the default flavor) or the
            name of a preset, and the switches change single fields. A gain table is written ``gain=0|1|3|7``.

        Returns
        -------
        Flavor

        Raises
        ------
        TypeError
            `text` is not a string.
        ValueError
            The text is not of that form, or a name, switch or value in it is not known.

        Examples
        --------
        >>> Flavor.parse("lightgbm@10[ties=average]").ties
        'average'
        """
        return _parse(text)

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Flavor:
        """The flavor that mirrors a library or a paper, with single fields changed.

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
        if not isinstance(name, str):
            raise TypeError(
                f"name must be the name of a preset (a str); got {shown(name)} of type {type(name).__name__}."
            )
        if name not in PRESETS:
            raise ValueError(
                f"name must be the name of a preset, one of {_listed(PRESETS)}; got {shown(name)}."
                f"{_did_you_mean(name, PRESETS)}"
            )
        return PRESETS[name].replace(**changes)

    def replace(self, **changes: Any) -> Flavor:
        """A copy with the given fields changed, validated like a new flavor.

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
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        for name in changes:
            if name not in values:
                raise TypeError(
                    f"{shown(name)} is not a field of Flavor; the fields are {_listed(values)}."
                    f"{_did_you_mean(name, values)}"
                )
        return Flavor(**{**values, **changes})

    @property
    def preset_name(self) -> str | None:
        """Name of the preset that this flavor equals, its cut-off aside; None where there is none.

        Libraries that compute the same NDCG have equal presets; it is the first of them in ``ndcg_ml.PRESETS``.
        """
        mine = self.replace(k=None)
        return next((name for name, flavor in PRESETS.items() if flavor.replace(k=None) == mine), None)

    @property
    def metric_name(self) -> str:
        """Short name for logs, the same in every process: ``ndcg_<preset>``, else ``ndcg_<digest of the text>``.

        It has no space and no ``:``, starts with ``ndcg`` (by which XGBoost knows to maximise), and is never the name
        of a library's own metric. The cut-off is not part of it; adapters append ``@k``.
        """
        name = self.preset_name
        if name is None:
            import hashlib  # here, like difflib below, because few need it and all would wait for it

            name = hashlib.sha256(str(self.replace(k=None)).encode()).hexdigest()[:8]
        return f"ndcg_{name}"

    def describe(self) -> str:
        """The formula and every switch, in words.

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
        return _describe(self)

    # -- the settings of other libraries -------------------------------------------------------------------------

    def lightgbm_params(self, *, evaluate: bool = True) -> dict[str, Any]:
        """LightGBM's parameters for this flavor, for ``lgb.train``, ``lgb.cv`` and ``LGBMRanker``.

        The objective ``lambdarank`` with this gain as a table by grade, and LightGBM's own metric, which computes
        exactly this flavor, or a refusal that says which switch it cannot express.

        Parameters
        ----------
        evaluate : bool, default True
            False: the settings of the objective alone, with the built-in metrics switched off, for use with
            ``ndcg_ml.lightgbm.NDCGEval`` or ``StopEarly``. What concerns evaluation alone (ideal, ties, empty,
            aggregate, short_lists, score_dtype) may then be anything.

        Returns
        -------
        dict
            Where a flavor has no `max_grade`, the table is that of grades 0..30 (that of a gain table, its own).

        Raises
        ------
        ValueError
            LightGBM cannot express a switch; the message names it, what LightGBM does, and the way out.
        TypeError
            `evaluate` is not a bool.

        Notes
        -----
        Run with LightGBM 4.7.0: equal to 1e-9. A label beyond the table, a fractional and a negative one are errors
        there; a label that is NaN is read as grade 0 by ``lgb.Dataset``, without a word. Its metric leaves queries
        without a relevant document unweighted where rows have weights. The objective is truncated three ranks
        below the cut-off, as LightGBM's documentation advises; with no cut-off not at all. ``LGBMRanker.fit`` warns
        when it finds ``eval_at`` in place, and uses it.

        Examples
        --------
        >>> flavor = Flavor.preset("lightgbm", gain=(0, 1, 3), k=5)
        >>> flavor.lightgbm_params()  # doctest: +NORMALIZE_WHITESPACE
        {'objective': 'lambdarank', 'label_gain': [0.0, 1.0, 3.0], 'lambdarank_truncation_level': 8,
         'metric': 'ndcg', 'eval_at': [5]}
        >>> flavor.replace(ties="average").lightgbm_params(evaluate=False)["metric"]
        'None'
        """
        return settings.lightgbm_params(self, evaluate)

    def xgboost_params(self, *, evaluate: bool = True) -> dict[str, Any]:
        """XGBoost's parameters for this flavor, for ``xgb.train``, ``xgb.cv`` and ``XGBRanker``.

        The objective ``rank:ndcg`` with this gain, and XGBoost's own metric, which computes exactly this flavor, or a
        refusal that says which switch it cannot express.

        Parameters
        ----------
        evaluate : bool, default True
            False: the settings of the objective alone, with the default metric switched off, for use with
            ``ndcg_ml.xgboost.NDCGEval``. What concerns evaluation alone (ideal, ties, empty, aggregate, short_lists,
            score_dtype) may then be anything.

        Returns
        -------
        dict

        Raises
        ------
        ValueError
            XGBoost cannot express a switch; the message names it, what XGBoost does, and the way out. So does the
            linear gain where the XGBoost that is installed is older than 3.0.3, whose metric does not follow it.
        TypeError
            `evaluate` is not a bool.

        Notes
        -----
        Run with XGBoost 3.2.0: equal to the digits that it prints. Scores may count as equal in float64 or float32,
        for its predictions are float32. Under the exponential gain labels must be whole numbers from 0 to 31 there;
        under the linear one it takes what this flavor refuses (negative labels, labels above `max_grade`). The
        objective takes its pairs from the first k ranks; with no cut-off, from all of them, and the metric says a
        cut-off that no list reaches, for plain ``ndcg`` means ``ndcg@32``.

        Examples
        --------
        >>> Flavor.preset("xgboost", k=5).xgboost_params()  # doctest: +NORMALIZE_WHITESPACE
        {'objective': 'rank:ndcg', 'ndcg_exp_gain': True, 'lambdarank_pair_method': 'topk',
         'lambdarank_num_pair_per_sample': 5, 'eval_metric': 'ndcg@5'}
        """
        return settings.xgboost_params(self, evaluate)

    def catboost_params(self, *, evaluate: bool = True) -> dict[str, Any]:
        """CatBoost's parameters for this flavor, for ``CatBoost`` and ``CatBoostRanker``.

        The loss ``YetiRank`` in its NDCG mode with this gain, discount and cut-off, and CatBoost's own metric, which
        computes exactly this flavor, or a refusal that says which switch it cannot express.

        Parameters
        ----------
        evaluate : bool, default True
            False: the settings of the loss alone, for use with ``ndcg_ml.catboost.NDCGEval`` as the ``eval_metric``.
            What concerns evaluation alone (ideal, ties, empty, aggregate, short_lists, score_dtype) may then be
            anything.

        Returns
        -------
        dict

        Raises
        ------
        ValueError
            CatBoost cannot express a switch; the message names it, what CatBoost does, and the way out.
        TypeError
            `evaluate` is not a bool.

        Notes
        -----
        Run with CatBoost 1.2.10: equal to 1e-6. It takes what this flavor may refuse (negative labels, labels above
        `max_grade`), though with negative labels training may end in an error of its own.

        Examples
        --------
        >>> Flavor.preset("catboost", k=5).catboost_params()  # doctest: +NORMALIZE_WHITESPACE
        {'loss_function': 'YetiRank:mode=NDCG;top=5;dcg_type=Base;dcg_denominator=LogPosition',
         'eval_metric': 'NDCG:top=5;type=Base;denominator=LogPosition'}
        """
        return settings.catboost_params(self, evaluate)


# -- validation -----------------------------------------------------------------------------------------------------


def _listed(names: Any) -> str:
    return ", ".join(repr(name) for name in names)


def _did_you_mean(got: object, names: Any) -> str:
    if not isinstance(got, str):
        return ""
    from difflib import get_close_matches

    near = _ELSEWHERE.get(got.lower()) or next(iter(get_close_matches(got.lower(), list(names), n=1, cutoff=0.5)), None)
    return f" Did you mean {near!r}?" if near else ""


def _check_choice(name: str, value: object, alternative: str = "") -> None:
    allowed = _CHOICES[name]
    if isinstance(value, str) and value in allowed:
        return
    kind = ValueError if isinstance(value, str) else TypeError
    also = f", {alternative}" if alternative else ""
    raise kind(
        f"Flavor.{name} must be one of {_listed(allowed)}{also}; got {shown(value)}.{_did_you_mean(value, allowed)}"
    )


def _check_gain(value: object) -> Gain:
    if callable(value):
        return value
    if isinstance(value, str):
        _check_choice("gain", value, "a table (gains indexed by integer grade) or a callable of one grade")
        return value
    if (isinstance(value, Sequence) and not _is_bytes(value)) or _is_ordered_vector(value):
        entries: Any = value
        table = tuple(_check_number("gain", entry) for entry in entries)
        if not table:
            raise ValueError("Flavor.gain as a table must hold a gain for grade 0 at least; got an empty table.")
        return table
    raise TypeError(
        f"Flavor.gain must be one of {_listed(_CHOICES['gain'])}, a table (a tuple of gains indexed by integer grade) "
        f"or a callable of one grade; got {shown(value)} of type {type(value).__name__}."
    )


def _check_number(name: str, value: object) -> float:
    number = _as_float(value)
    if number is None:
        raise TypeError(f"Flavor.{name} must be a finite number; got {shown(value)} of type {type(value).__name__}.")
    if not math.isfinite(number):
        raise ValueError(f"Flavor.{name} must be a finite number; got {shown(value)}.")
    return number + 0.0  # -0.0 and 0.0 are one value, and print as one


def _as_float(value: object) -> float | None:
    """A real number as a float, infinite where it is beyond float64; None for anything else."""
    imaginary = isinstance(value, Complex) and not isinstance(value, Real)  # NumPy's would lose that part
    masked = hasattr(value, "mask")  # an element of NumPy's masked arrays would be nan, with a warning
    if isinstance(value, (bool, str, bytes)) or imaginary or masked or not hasattr(value, "__float__"):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):  # an array of several, or of text
        return None


def _check_empty(value: object) -> float | str:
    if isinstance(value, str):
        if value in _CHOICES["empty"]:
            return value
        if value == "nan":
            return math.nan
    elif (number := _as_float(value)) is not None:
        if math.isnan(number):
            return math.nan
        if number in (0.0, 1.0):
            return number + 0.0
    kind = ValueError if isinstance(value, (str, int, float)) and not isinstance(value, bool) else TypeError
    raise kind(
        f"Flavor.empty must be 0, 1, nan, 'skip' or 'raise'; got {shown(value)}."
        f"{_did_you_mean(value, _CHOICES['empty'])}"
    )


def check_k(value: object, name: str, none: str = "for no cut-off") -> int | None:
    """A cut-off, depth or number as an int >= 1, or None, of which `none` says what it means."""
    if value is None:
        return None
    number = None
    if not isinstance(value, (bool, float, str)) and hasattr(value, "__index__"):
        with suppress(TypeError):  # of an array that is no single integer, or of a class
            number = operator.index(value)
    if number is None:
        raise TypeError(
            f"{name} must be an integer >= 1, or None {none}; got {shown(value)} of type {type(value).__name__}."
        )
    if number < 1:
        raise ValueError(f"{name} must be an integer >= 1, or None {none}; got {_briefly(number)}.")
    if number > _LARGEST:
        raise ValueError(f"{name} must be at most 2^63 - 1, or None {none}; got {_briefly(number)}.")
    return number


_LARGEST = 2**63 - 1
"""No list is longer, and 64 bits hold it."""


def _briefly(number: int) -> str:
    return str(number) if abs(number) < 10**30 else "one of more than 30 digits"  # Python writes no more than 4300


def cutoffs(k: KSpec, flavor: Flavor) -> tuple[tuple[int | None, ...], bool]:
    """The cut-offs that a caller asked for, and whether they asked for several (a sequence).

    Raises
    ------
    TypeError, ValueError
        A cut-off is not an integer >= 1 or None, one is repeated, or the sequence is empty; or, under ``ideal="max"``,
        it is beyond 10^8.
    """
    ks, several = _as_cutoffs(k, flavor)
    if flavor.ideal == "max" and max(entry or 0 for entry in ks) > _DEEPEST:
        raise ValueError(
            f"k must be at most {_DEEPEST} under ideal='max', which sums over all ranks up to k; got "
            f"{max(filter(None, ks))}. Choose a smaller cut-off, or None for no cut-off."
        )
    return ks, several


_DEEPEST = 10**8
"""A table of discounts to this rank has 0.8 GB."""


def _as_cutoffs(k: KSpec, flavor: Flavor) -> tuple[tuple[int | None, ...], bool]:
    if isinstance(k, EllipsisType):
        return (flavor.k,), False
    if isinstance(k, str) or _is_bytes(k) or not (isinstance(k, Sequence) or _is_vector(k)):
        return (check_k(k, "k"),), False
    entries: Any = k
    several = tuple(check_k(entry, "k") for entry in entries)
    if not several:
        raise ValueError("k must hold at least one cut-off; got an empty sequence.")
    if len(set(several)) != len(several):
        raise ValueError(f"k must not repeat a cut-off; got {several}.")
    return several, True


def _is_vector(value: object) -> bool:
    # NumPy arrays, pandas Index and the like; zero-dimensional ones are numbers.
    return getattr(value, "ndim", 0) == 1 or isinstance(value, (set, frozenset, range))


def _is_ordered_vector(value: object) -> bool:
    return _is_vector(value) and not isinstance(value, (set, frozenset, memoryview))


def _is_bytes(value: object) -> bool:
    return isinstance(value, (bytes, bytearray, memoryview))  # sequences of numbers that nobody means as such


# -- text -----------------------------------------------------------------------------------------------------------

_FORM = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)(?:@(?P<k>[^\[\]@]*))?(?:\[(?P<switches>[^\[\]]*)\])?", re.ASCII)
_SHAPE = "'ndcg', 'ndcg@10', 'ndcg@10[gain=exponential,ties=average]', or a preset's name in place of 'ndcg'"


def switch_text(value: object) -> str:
    """The value of a switch as the flavor's text has it."""
    if isinstance(value, tuple):
        return "|".join(switch_text(entry) for entry in value)
    if isinstance(value, float):
        return str(int(value)) if value == value and abs(value) < 1e15 and value == int(value) else repr(value)
    if callable(value):
        return f"<{getattr(value, '__qualname__', type(value).__qualname__)}>".replace(" ", "_")
    return str(value)


def _from_text(name: str, text: str) -> object:
    if text.startswith("<"):
        raise ValueError(
            f"a flavor with a callable cannot be read back from text; got {name}={text}. "
            "Keep the Flavor object itself, or write a gain as a table."
        )
    if name in ("k", "recall_depth"):
        return None if text == "None" else _int_from_text(name, text)
    if name == "max_grade" and text == "None":
        return None
    if name in ("max_grade", "discount_base"):
        return _float_from_text(name, text)
    if name == "gain" and text not in _CHOICES["gain"] and not text[:1].isalpha():
        return tuple(_float_from_text(name, entry) for entry in text.split("|"))
    if name == "empty" and text[:1].isdigit():
        return _float_from_text(name, text)
    return text


def _int_from_text(name: str, text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,4000}", text):  # longer ones Python itself refuses to read
        raise ValueError(f"{name} must be an integer >= 1; got {shown(text)} in the text of a flavor.")
    return int(text)


def _float_from_text(name: str, text: str) -> float:
    if not re.fullmatch(r"-?[0-9.]+(?:[eE][-+]?[0-9]+)?", text) or text.count(".") > 1 or not text.strip("-."):
        raise ValueError(f"{name} must be a number; got {shown(text)} in the text of a flavor.")
    return float(text)


def _parse(text: str) -> Flavor:
    if not isinstance(text, str):
        raise TypeError(f"text must be a str such as {_SHAPE}; got {shown(text)} of type {type(text).__name__}.")
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"a flavor's text must have the form {_SHAPE}; got {shown(text)}.")
    name = match["name"]
    if name != "ndcg" and name not in PRESETS:
        known = ["ndcg", *PRESETS]
        raise ValueError(
            f"a flavor's text must start with one of {_listed(known)}; got {shown(name)} in {shown(text)}."
            f"{_did_you_mean(name, known)}"
        )
    changes: dict[str, object] = {}
    if match["k"] is not None:
        changes["k"] = _from_text("k", match["k"])
    known = [f.name for f in fields(Flavor)]
    for part in (match["switches"] or "").split(",") if match["switches"] else ():
        switch, equals, value = part.partition("=")
        if not equals:
            raise ValueError(
                f"a switch in a flavor's text must have the form name=value; got {shown(part)} in {shown(text)}."
            )
        if switch not in known:
            raise ValueError(
                f"a switch in a flavor's text must be one of {_listed(known)}; got {shown(switch)} in {shown(text)}."
                f"{_did_you_mean(switch, known)}"
            )
        if switch in changes:
            raise ValueError(f"a flavor's text must set {shown(switch)} once; got it twice in {shown(text)}.")
        changes[switch] = _from_text(switch, value)
    start = _DEFAULT if name == "ndcg" else PRESETS[name]
    return start.replace(**changes)


def _describe(flavor: Flavor) -> str:
    at = "" if flavor.k is None else f"@{flavor.k}"
    rows = [
        ("gain", _gain_in_words(flavor)),
        ("discount", _discount_in_words(flavor)),
        ("ties", _WORDS["ties"][flavor.ties]),
        ("ideal", _ideal_in_words(flavor)),
        ("empty", f"a query whose ideal DCG is 0 {empty_in_words(flavor)}"),
        ("aggregate", _WORDS["aggregate"][flavor.aggregate]),
        ("negative", _WORDS["negative"][flavor.negative]),
        ("unjudged", _WORDS["unjudged"][flavor.unjudged]),
        ("scores", _WORDS["score_dtype"][flavor.score_dtype]),
    ]
    mirror = MIRRORS.get(flavor.preset_name or "")
    if mirror is not None:
        rows += [("preset", f"{mirror.name}: {mirror.library}"), ("note", mirror.unusual)]
        same = [name for name, preset in PRESETS.items() if preset.replace(k=None) == flavor.replace(k=None)]
        rows += [("also", f"{name}: {MIRRORS[name].library}") for name in same if name != mirror.name]
    rows.append(("text", str(flavor)))
    formula = f"NDCG{at} = DCG{at} / IDCG{at}, DCG{at} = sum over documents of gain(y) * D(rank)"
    return "\n".join([formula, *(f"  {name:<10} {words}" for name, words in rows)])


def _gain_in_words(flavor: Flavor) -> str:
    if callable(flavor.gain):
        words = f"gain(y) = {switch_text(flavor.gain)}(y), a callable"
    elif isinstance(flavor.gain, tuple):
        words = f"gain(y) = table {switch_text(flavor.gain)}, by grade"
        if flavor.off_table == "zero":
            words += "; a grade beyond it gains 0"
    else:
        words = f"gain(y) = {_WORDS['gain'][flavor.gain]}"
    return words if flavor.max_grade is None else f"{words}; a label above {switch_text(flavor.max_grade)} is an error"


def _discount_in_words(flavor: Flavor) -> str:
    if callable(flavor.discount):
        words = f"D(r) = {switch_text(flavor.discount)}(r), a callable"
    else:
        words = f"D(r) = {_WORDS['discount'][flavor.discount].format(base=switch_text(flavor.discount_base))}"
    if flavor.k is not None:
        words += f"; D(r) = 0 for r > {flavor.k}"
    if flavor.short_lists == "zero":
        words += f"; a query with fewer than {flavor.k or 'k'} documents has DCG 0"
    return words


def _ideal_in_words(flavor: Flavor) -> str:
    k = None if flavor.ideal_depth == "all" else flavor.k
    ranks = "every rank" if k is None else f"ranks 1..{k}"
    if flavor.ideal == "recall":
        first = "" if flavor.recall_depth is None else f" among the first {flavor.recall_depth}"
        words = f"the retrieved documents{first}, best first"
    elif flavor.ideal == "local":
        words = f"the expected gains at {ranks}, re-sorted"
    elif flavor.ideal == "max":
        where = "as many ranks as documents were retrieved" if k is None else ranks
        words = f"gain({switch_text(flavor.max_grade)}) at {where}"
    elif flavor.ideal == "given":
        words = "all judged documents of the query, retrieved or not, in the order of the input"
    else:
        words = "all judged documents of the query, retrieved or not, best first"
    if flavor.ideal_depth == "retrieved":
        words += "; cut after as many documents as were retrieved"
    return words if k == flavor.k else f"{words}; not cut at {flavor.k}"


def empty_in_words(flavor: Flavor) -> str:
    """What a query without a relevant document does under the flavor."""
    if isinstance(flavor.empty, str):
        return {"skip": "is left out of the mean", "raise": "is an error"}[flavor.empty]
    return f"scores {switch_text(flavor.empty)}"


_DEFAULT = Flavor()

PRESETS: Mapping[str, Flavor] = MappingProxyType({name: Flavor(**mirror.switches) for name, mirror in MIRRORS.items()})
"""Every preset by name. ``ndcg_ml.presets.MIRRORS`` says what each mirrors and how that was verified."""


@lru_cache(maxsize=256)
def _named(text: str) -> Flavor:
    return _parse(text)


def as_flavor(flavor: object) -> Flavor:
    """The flavor that a caller named: a Flavor, the name of a preset, or a flavor's text."""
    if isinstance(flavor, Flavor):
        return flavor
    if isinstance(flavor, str):
        return _named(flavor)
    raise TypeError(
        f"flavor must be a Flavor, the name of a preset or a flavor's text (a str); "
        f"got {shown(flavor)} of type {type(flavor).__name__}."
    )
