"""Arguments as checked arrays: labels, scores, flags and ids. No other module converts arguments to arrays.

Also the signs that labels and scores are in each other's place, or that scores are ranks.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ndcg_ml._core.frames import library_of, refuse_lazy
from ndcg_ml._core.layout import Groups, IntArray, as_objects, keys_of, ranges
from ndcg_ml._plain.checks import EXACT_INTEGERS
from ndcg_ml._plain.messages import brief, brief_text

# -- one argument as a checked array ----------------------------------------------------------------------------------


def real_array(value: Any, name: str) -> NDArray[Any]:
    """Return the value as a C-contiguous array of float32 or float64. Raise if float64 would round an integer."""
    return _exact(value, plain_array(value, name), name)


def label_array(value: Any) -> NDArray[Any]:
    """Return labels as real numbers. Integers keep their dtype, because wide lists need no floats."""
    array = plain_array(value, "y_true")
    if array.dtype.kind == "b":
        array = array.view(np.uint8)
    if array.dtype.kind in "iu" and array.dtype.isnative:
        return np.asarray(array, order="C")
    return _exact(value, array, "y_true")


def _exact(value: Any, array: NDArray[Any], name: str) -> NDArray[Any]:
    numbers, given = read_reals(value, array, name)
    if given is not None:
        refuse_rounded(name, given, numbers)
    return numbers


def refuse_rounded(name: str, given: NDArray[Any], numbers: NDArray[Any]) -> None:
    """Raise if float64 has rounded an integer."""
    if (np.abs(numbers) < EXACT_INTEGERS).all():
        return
    large = (np.abs(numbers) >= EXACT_INTEGERS) & np.isfinite(numbers)
    for integer, number in zip(given[large].tolist(), numbers[large].tolist(), strict=True):
        if integer != number:
            raise ValueError(
                f"{name} must hold integers that float64 does not round, such as those up to 2^53; got "
                f"{brief(int(integer))}. Use smaller numbers, or convert them with float()."
            )


def _real(array: NDArray[Any], name: str) -> NDArray[Any]:
    if array.dtype.kind in "OSUT":
        odd = next((number for number in array.flat if isinstance(number, _NOT_REAL)), None)
        if odd is not None:  # NumPy would read numbers in strings, and drop imaginary parts
            shown = brief(np.asarray(odd).tolist())
            raise TypeError(
                f"{name} must hold real numbers; got text, such as {shown}. {_OF_TEXT if array.ndim else _OF_COLUMNS}"
                if isinstance(odd, (str, bytes))
                else f"{name} must hold real numbers; got an array of Python objects, such as {shown} of type "
                f"{type(odd).__name__}."
            )
    if array.dtype == object:
        missing = [type(number).__name__ == "NAType" for number in array.flat]
        if any(missing):  # pandas.NA
            array = np.where(np.reshape(missing, array.shape), np.nan, array)
        try:
            with np.errstate(over="ignore"):  # long doubles may be beyond float64
                array = array.astype(np.float64)
        except OverflowError as error:
            raise ValueError(f"{name} must hold numbers that float64 can hold; got one that is too large.") from error
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"{name} must hold real numbers; got an array of Python objects ({brief_text(str(error))})."
                f"{_PER_ROW.get(name, '') if array.ndim else _OF_DICTS * isinstance(array.item(), dict)}"
            ) from error
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers; got dtype {array.dtype}.")
    dtype = np.float32 if array.dtype.kind == "f" and array.dtype.itemsize <= 4 else np.float64
    with np.errstate(over="ignore", invalid="ignore"):  # long doubles beyond float64; signalling NaNs
        return np.asarray(array, dtype=dtype, order="C")


def score_array(value: Any, name: str) -> NDArray[Any]:
    """Return scores as real numbers. Raise if float64 would make different scores equal."""
    scores, given = read_reals(value, plain_array(value, name), name)
    if given is not None:
        refuse_equal(name, given.ravel(), scores.ravel(), np.zeros(scores.size, dtype=np.intp))
    return scores


def read_reals(value: Any, given: NDArray[Any], name: str) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return an array of real numbers; also the numbers as given, if float64 may have rounded an integer."""
    numbers = _real(given, name)
    is_float, is_array = given.dtype.kind == "f", type(value) is np.ndarray
    fits = given.dtype.kind in "biuf" and given.dtype.char != "g"  # a long double may have more digits
    if fits and ((is_float and is_array) or not (abs(numbers) >= EXACT_INTEGERS).any()):
        return numbers, None
    if is_float and not is_array:
        # NumPy rounds integers in a sequence with floats, and polars and pyarrow those in a column with nulls.
        listed = getattr(value, "to_list", getattr(value, "to_pylist", None))
        given = np.array(value if listed is None else listed(), dtype=object)
    return numbers, given


def refuse_equal(name: str, given: NDArray[Any], scores: NDArray[Any], query: IntArray) -> None:
    """Raise if float64 has made different scores of a query equal."""
    known = ~np.isnan(scores)

    def n_distinct(values: NDArray[Any]) -> int:
        codes = np.unique(values[known], return_inverse=True)[1]
        return int(np.unique(np.stack([query[known], codes]), axis=1).shape[1])

    if n_distinct(given) > n_distinct(scores):
        raise ValueError(
            f"{name} must hold scores that stay different in float64; got different ones that become equal, such as "
            "integers beyond 2^53. Subtract the smallest score, or pass ranks."
        )


def flag_array(value: Any, name: str, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return the value as a boolean array of the given shape."""
    array = plain_array(value, name)
    if array.dtype != bool:
        raise TypeError(
            f"{name} must be an array of bool, True if the document is included; got dtype {array.dtype}. "
            f"Write np.asarray({name}, dtype=bool) if it holds 0 and 1."
        )
    if array.shape != shape:
        raise ValueError(f"{name} must have the shape of y_true, {shape}; got {array.shape}.")
    return np.ascontiguousarray(array)


_PER_ROW = dict.fromkeys(
    ("y_true", "y_score", "retrieved", "doc_id"),
    " Lists of unequal lengths must be flattened, with qid= or group= saying which rows belong together.",
)
_OF_TEXT = "Map words to grades, and convert numbers with float() or .astype(float)."
_OF_COLUMNS = (
    "For names of columns, use evaluate(df, columns={'qid': 'user', 'label': 'rating', 'score': 'prediction'})."
)
_OF_DICTS = " For qrels and a run, use evaluate_run(qrels, run), or pass **align(qrels, run).arguments()."
_NOT_REAL = (str, bytes, complex, np.complexfloating, np.datetime64, np.timedelta64)


def plain_array(value: Any, name: str) -> NDArray[Any]:
    """Return the value as a NumPy array of any dtype and shape."""
    if type(value) is np.ndarray:
        return value
    refuse_lazy(value, name)
    if type(value).__module__.split(".")[0] == "torch":
        raise TypeError(
            f"{name} is a {type(value).__name__} of torch, and this function takes NumPy arrays. Use "
            f"ndcg_ml.torch.ndcg(scores, labels, ...) on tensors, or pass {name}.detach().cpu().numpy()."
        )
    if hasattr(value, "tocsr"):
        raise TypeError(f"{name} must be a dense array; got a {type(value).__name__}. Pass {name}.toarray().")
    # NumPy imports numpy.ma at its first use, which takes long, and without it there is no masked array.
    if "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray):
        fix = ", with mask= for 2-D input" if name in _PER_ROW else ""
        raise TypeError(f"{name} is a NumPy masked array, whose mask would be lost. Pass {name}.data{fix}.")
    try:
        return np.asarray(value)
    except MemoryError:
        raise
    except ValueError as error:  # ragged nested lists
        raise ValueError(
            f"{name} must be a one- or two-dimensional array; got {type(value).__name__} that is not one "
            f"({brief_text(str(error))}).{_PER_ROW.get(name, '')}"
        ) from error
    except Exception as error:  # the value's own conversion may raise anything
        raise TypeError(
            f"{name} must be an array; got {type(value).__name__}, which NumPy cannot read ({brief_text(str(error))})."
        ) from error


def id_array(value: Any, name: str, ndim: int = 1) -> NDArray[Any]:
    """Return ids as an array of any dtype, in which different ids of a list stay different.

    In one dimension, a tuple is one id with several parts.
    """
    if type(value).__module__.partition(".")[0] == "polars" and str(getattr(value, "dtype", "")) == "String":
        # NumPy arrays of strings would lose trailing NULs.
        value = value.to_list()
    if not isinstance(value, (list, tuple)):
        return plain_array(value, name)
    if ndim == 1 and any(issubclass(kind, tuple) for kind in set(map(type, value))):
        return as_objects(value)
    ids = plain_array(value, name)
    if ids.dtype.kind not in "USfmM" or not ids.size:
        return ids
    listed = list(value) if ids.ndim == 1 else [item for row in value for item in row]
    return as_objects(listed).reshape(ids.shape) if _is_lossy(listed, ids.dtype.kind) else ids


def _is_lossy(ids: Sequence[Any], kind: str) -> bool:
    """Whether converting this list to one NumPy dtype made different ids equal.

    1 and "1" become strings; 2**63 and -1 become floats, which have too few digits; strings lose trailing NULs.
    """
    if kind == "f":
        return any(isinstance(value, (int, np.integer)) and abs(int(value)) > EXACT_INTEGERS for value in ids)
    if kind in "mM":
        return any(isinstance(value, (int, str)) for value in ids)
    if kind == "S":
        return any(not isinstance(value, bytes) or value.endswith(b"\0") for value in ids)
    return any(not isinstance(value, str) or value.endswith("\0") for value in ids)


# -- ids --------------------------------------------------------------------------------------------------------------


def ids_as_array(ids: Any, name: str = "qid", per: str = "row") -> NDArray[Any]:
    """Return query ids as an array in which different ids stay different."""
    array = id_array(ids, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, one id per {per}; got shape {array.shape}.")
    if array.dtype.kind in "TV":  # variable-width strings have no unique() before NumPy 2.3, records no order
        array = array.astype(object)
    if array.dtype.kind in "fmM" and np.isnan(array).any():
        raise ValueError(f"{name} must have an id for every {per}; got a missing value (NaN or NaT).")
    return array


def column_codes(column: Any) -> tuple[NDArray[Any], Callable[[IntArray], Any]] | None:
    """Return an integer for each row of a text or categorical column, or a list of text; and a function to take rows.

    Rows with different ids have different integers. The reverse may fail, because a dictionary of pyarrow may hold an
    id twice. None for other values, and for columns that lack a value.
    """
    library = library_of(column)
    dtype = str(getattr(column, "dtype", getattr(column, "type", ""))).partition("(")[0]
    codes: Any = None
    if type(column) is list and set(map(type, column)) == {str}:
        codes, take = hash_codes(column)[0], lambda rows: [column[row] for row in rows]
    elif library == "pandas" and dtype == "category":
        codes, take = np.asarray(getattr(column, "cat", column).codes), column.take
    elif library == "pandas" and dtype in ("str", "string"):
        codes, take = column.factorize()[0], column.take
    elif library == "polars" and dtype in ("String", "Categorical", "Enum"):
        named = column.cast(sys.modules["polars"].Categorical) if dtype == "String" else column
        codes = named.to_physical().to_numpy()
        take = column.gather
    elif library == "pyarrow" and dtype.partition("<")[0] in ("string", "large_string", "dictionary"):
        encoded = column.dictionary_encode()
        parts = encoded.unify_dictionaries().chunks if hasattr(encoded, "chunks") else [encoded]
        codes, take = np.concatenate([part.indices for part in parts]) if parts else None, column.take
    if codes is None or codes.dtype.kind not in "iu" or not codes.size or codes.min() < 0:
        return None
    return codes, take


def hash_codes(ids: list[Any]) -> tuple[IntArray, NDArray[Any]]:
    """Return the ids numbered by first appearance, and the unique ids."""
    seen: defaultdict[Any, int] = defaultdict(count().__next__)
    try:
        codes = np.fromiter(map(seen.__getitem__, ids), np.int64, len(ids))
        missing = next((code for value, code in seen.items() if is_missing(value)), None)
    except (ArithmeticError, TypeError, ValueError) as error:  # unhashable ids, and ids that refuse == or its bool()
        raise TypeError(f"qid must hold hashable ids; got an id with {brief_text(str(error))}.") from error
    if missing is not None:
        row = int(np.flatnonzero(codes == missing)[0])
        raise ValueError(f"qid must have an id for every row; got a missing value at row {row}.")
    return codes, as_objects(list(seen))


def is_missing(value: Any) -> bool:
    """Whether an id is None, nan, NaT or pandas.NA, or a tuple that holds one of these."""
    if type(value) is tuple:
        return any(map(is_missing, value))
    return value is None or type(value).__name__ == "NAType" or not value == value  # noqa: SIM201


def convert_ids(ids: NDArray[Any]) -> NDArray[Any]:
    """Convert an array of Python numbers or times to their NumPy type. Return other arrays unchanged."""
    values: list[Any] = ids.tolist() if ids.dtype == object else []
    if not values or isinstance(values[0], (str, bytes)):  # NumPy's strings would drop trailing NULs
        return ids
    if all(map(is_integer, values)):
        for dtype in (np.int64, np.uint64):
            if np.iinfo(dtype).min <= min(values) and max(values) <= np.iinfo(dtype).max:
                return np.array(values, dtype=dtype)
        return ids  # NumPy would round them to floats
    if len(set(map(type, values))) == 1:
        array = np.array(values)
        if array.dtype.kind in "fM" and array.ndim == 1:
            return array
    return ids


def is_integer(value: object) -> bool:
    """Whether an id is an integer, of Python or NumPy."""
    return isinstance(value, (int, np.integer, np.bool_)) and not isinstance(value, np.timedelta64)


def names_at(ids: NDArray[Any], rows: IntArray) -> list[Any]:
    return keys_of(ids.ravel()[rows])


def sortable_ids(ids: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return document ids that have this shape, an order and no missing value."""
    if ids.dtype.kind == "T":  # NumPy's variable-width strings have no unique() before 2.3
        ids = ids.astype(object)
    if ids.shape != shape:
        raise ValueError(f"doc_id must have the shape of y_true, {shape}; got {ids.shape}.")
    if ids.dtype.kind in "fmM" and np.isnan(ids).any():
        raise ValueError("doc_id must have an id for every document; got a missing value (NaN or NaT).")
    if ids.dtype == object:
        values = ids.ravel().tolist()
        if any(map(is_missing, values)):
            raise ValueError("doc_id must have an id for every document; got a missing value.")
        ids = convert_ids(ids.ravel())
        kinds = set(map(type, ids.tolist()))
        if len(kinds) > 1 or any(kind.__hash__ is None for kind in kinds):
            names = sorted(kind.__name__ for kind in kinds)
            raise TypeError(
                f"doc_id must hold ids of one type, so that they have an order; got {', '.join(names)}. Convert them, "
                "for example to strings."
            )
    if ids.size and ids.dtype.kind == "f":
        raise TypeError(
            f"doc_id must hold strings or integers, which are compared as text; got floats, such as {ids.ravel()[0]}. "
            "Convert them to strings or integers."
        )
    return ids.ravel()


def doc_hashes(ids: NDArray[Any]) -> IntArray:
    """Return an integer for each of these sortable ids. Different ids may share one."""
    return ids.astype(np.int64) if ids.dtype.kind in "iu" else np.fromiter(map(hash, ids.tolist()), np.int64, ids.size)


def doc_places(ids: NDArray[Any]) -> IntArray:
    """Return integers in the order of these sortable ids, which are compared as text."""
    unique, codes = np.unique(ids, return_inverse=True)
    if unique.dtype.kind in "iu" or (unique.size and unique.dtype == object and type(unique[0]) is int):
        codes = _text_order(unique)[codes]
    return codes


def _text_order(ids: NDArray[Any]) -> IntArray:
    """Return the position of each of these distinct integers in the order of their decimal text.

    trec_eval compares ids as text, "10" before "9"; pandas makes integers of ids that look like numbers.
    """
    place = np.empty(ids.size, dtype=np.int64)
    place[np.argsort(ids.astype("S"))] = np.arange(ids.size)
    return place


# -- labels and scores in each other's place, and ranks as scores -----------------------------------------------------

# Half-precision scores above 256 are all integers, and so are numbers of views. Grades are seldom above this one.
_LARGEST_GRADE = 100
_SAMPLE = 4096


def stride(n: int) -> int:
    """Return the step that takes at most 4,096 of `n` values, so that large arrays cost no time."""
    return max(1, -(-n // _SAMPLE))


def are_fractions(labels: NDArray[Any], rows: IntArray | None = None) -> bool:
    """Whether at least half of the labels in these rows, or of a sample of them, are fractions. NaN is not counted."""
    flat = labels.ravel()
    sample = flat[:: stride(flat.size)] if rows is None else flat[rows[:: stride(rows.size)]]
    known = sample[np.isfinite(sample)]
    return bool(known.size and (known == np.floor(known)).mean() <= 0.5)


def are_grades(scores: NDArray[Any]) -> bool:
    """Whether all scores are integers from 0 to 100, and not all are 0."""
    if not scores.size or not (scores.min() >= 0 and 0 < scores.max() <= _LARGEST_GRADE):
        return False
    return bool((scores == np.floor(scores)).all())


# Fewer or shorter queries may have such scores by chance.
_FEWEST_RANKED, _SHORTEST_RANKED = 10, 5


def are_ranks(scores: NDArray[Any], labels: NDArray[Any], groups: Groups) -> bool:
    """Whether the scores of every query are 1, 2, ..., n, and fall as the labels rise, as if 1 were the best.

    Queries of fewer than five documents are ignored, and there must be ten others. Nearly always the scores of the
    first one decide, so that this costs no time.
    """
    sizes, long = groups.sizes, groups.sizes >= _SHORTEST_RANKED
    if np.count_nonzero(long) < _FEWEST_RANKED:
        return False
    first = int(long.argmax())
    rows = slice(int(groups.starts[first]), int(groups.starts[first] + sizes[first]))
    some = scores[rows] if groups.order is None else scores[groups.order[rows]]
    if some.min() != 1 or some.max() != some.size:
        return False
    order = groups.sort_rows(scores).rows()
    rank = ranges(np.ones_like(sizes), sizes)
    counted = np.repeat(long, sizes)
    from_middle = rank - np.repeat((sizes + 1) / 2, sizes)
    falls = (np.nan_to_num(labels[order]) * from_middle)[counted].sum() < 0
    return bool(falls and (scores[order] == rank)[counted].all())
