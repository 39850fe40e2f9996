"""Hostile inputs by the million: ``python -m reliability.fuzz --target all --inputs 1550000 --seed 1``.

Each input follows from the seed, the target and its number, so ``--only NUMBER`` repeats one. The contract: a result as
documented, or a ValueError or TypeError, within five seconds; never another exception, a warning, a nan that the flavor
does not ask for, or a text of a flavor that does not read back. ``--engine atheris`` looks for texts and files with
coverage as its guide, where atheris (3.0) is installed.
"""

from __future__ import annotations

import argparse
import array
import contextlib
import gzip
import importlib
import itertools
import json
import linecache
import math
import os
import pickle
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import ndcg_ml
from ndcg_ml import PRESETS, Flavor
from ndcg_ml.readers import read_columns, read_letor

RESULTS = Path(__file__).parent / "results"
SECONDS = 5.0  # after which an input counts as hanging
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None  # for files that are written by the million
PACKAGE = os.path.dirname(ndcg_ml.__file__)


class BrokenContractError(AssertionError):
    """A result that is not as documented."""


class HangError(BaseException):
    """Not an Exception, so that nothing on the way takes it for an error of its own."""


# -- running one input ----------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """What became of the inputs of a target."""

    answered: int = 0
    refused: int = 0
    seconds: float = 0.0
    foreign: Counter[str] = field(default_factory=Counter)
    """Refusals in the words of another library, by where they came from: right types, but they name no parameter."""
    failures: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By kind and place, with the first input that shows it."""

    @property
    def inputs(self) -> int:
        """How many were tried."""
        return self.answered + self.refused + sum(failure["times"] for failure in self.failures.values())


def run(target: str, numbers: Sequence[int], seed: int) -> Tally:
    """Try the inputs of these numbers."""
    draw, attempt = TARGETS[target]
    tally, started = Tally(), time.perf_counter()
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder, guarded():
        for number in numbers:
            rng = Random(f"{seed}/{target}/{number}")
            with quiet():
                case = draw(rng, Path(folder))
            judge(tally, attempt, case, rng, number)
    tally.seconds = time.perf_counter() - started
    return tally


def judge(tally: Tally, attempt: Callable[[Any, Random], None], case: Any, rng: Random, number: int) -> None:
    """Try one input and count what became of it."""
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        attempt(case, rng)
    except (ValueError, TypeError) as error:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if isinstance(error, UnicodeError):
            fail(tally, error, case, number)
        else:
            tally.refused += 1
            if not in_our_words(error):
                tally.foreign[f"{place(error)}: {type(error).__name__}: {str(error)[:60]}"] += 1
    except OSError as error:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if error.errno is None:  # a library's, about what is in the file
            fail(tally, error, case, number)
        else:
            tally.refused += 1
    except ImportError as error:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if installed("pyarrow") is not None or installed("polars") is not None:
            fail(tally, error, case, number)
        else:  # as documented of parquet files
            tally.refused += 1
    except (Exception, HangError) as error:
        signal.setitimer(signal.ITIMER_REAL, 0)
        fail(tally, error, case, number)
    else:
        tally.answered += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def fail(tally: Tally, error: BaseException, case: Any, number: int) -> None:
    """Keep the first input of each kind of failure."""
    kind = f"{type(error).__name__} at {place(error)}"
    if kind not in tally.failures:
        shown = repr(case)
        tally.failures[kind] = {"times": 0, "number": number, "error": str(error)[:300], "case": shown[:2000]}
    tally.failures[kind]["times"] += 1


def place(error: BaseException) -> str:
    """The innermost line of the package that the error passed."""
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    ours = [frame for frame in frames if frame[0].startswith(PACKAGE)] or frames
    return f"{os.path.relpath(ours[-1][0], os.path.dirname(PACKAGE))}:{ours[-1][1]}"


def in_our_words(error: BaseException) -> bool:
    """Whether a ``raise`` of the package made the error."""
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    name = frame.f_code.co_filename
    return name.startswith(PACKAGE) and linecache.getline(name, line).lstrip().startswith("raise ")


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Warnings are errors, and an input that hangs is interrupted."""

    def interrupt(*_: Any) -> None:
        raise HangError(f"no answer after {SECONDS:g} seconds")

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with warnings.catch_warnings(), np.errstate(all="warn", under="ignore"):
            warnings.simplefilter("error")
            yield
    finally:
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """What goes wrong while an input is made is none of the library's business."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def installed(name: str) -> Any:
    """The module, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


# -- values that nobody expects ---------------------------------------------------------------------------------------


class Index:
    """An integer by ``__index__`` alone."""

    def __index__(self) -> int:
        return 3


def _odd_values() -> list[Any]:
    values: list[Any] = [
        *(None, True, False, ..., NotImplemented, object(), Index(), int, len, slice(2), date(2020, 1, 1)),
        *(0, 1, 2, 3, -1, 10, 255, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**30, 10**400, -(10**400), 10**5000),
        *(0.5, -0.0, 1.0, 2.0, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 1j, complex(math.nan)),
        *("", "0", "1", "nan", "skip", "none", "abc", "\ud800", "\0", "9" * 5000, b"", b"1", b"\x05\x03"),
        *(Decimal(1), Decimal("NaN"), Decimal("sNaN"), Decimal("1e9999"), Fraction(1, 3), Fraction(10**400, 3)),
        *(datetime(2020, 1, 1), timedelta(1), range(3), range(0), (), [], {}, set(), {1, 2}, {"a": 1}, [1], (1, None)),
        *([1, 2], [0, 1, 3], [[1]], [[]], ["1"], [None], [math.nan], [10**400], (3, 3), frozenset({1})),
        *(bytearray(b"\x01\x02"), memoryview(b"\x01")),
        *(np.float32(1), np.float16(0.5), np.int8(3), np.uint64(2**64 - 1), np.bool_(True), np.complex128(1)),
        *(np.longdouble("1e4000"), np.float64(math.nan), np.datetime64("NaT"), np.timedelta64(1), np.str_("sklearn")),
        *(np.bytes_(b"x"), np.array(3), np.array(1.5), np.array(True), np.array([1, 2]), np.array([]), np.array([[1]])),
        *(np.array([1, None], dtype=object), np.array("a"), np.ma.masked_array([1, 2], [0, 1])),
        array.array("d", [1.0, 2.0]),
    ]  # fmt: skip
    pandas = installed("pandas")
    if pandas is not None:
        values += [pandas.NA, pandas.NaT, pandas.Series([1, 2]), pandas.DataFrame({"a": [1]}), pandas.Timestamp(0)]
    return values


ODD = _odd_values()
PIECES = [
    *("", ",", "=", "@", "[", "]", "[[", "]]", "|", "||", "<", ">", "<f>", "-", "--", ".", "..", "e", ".e5", "1e999"),
    *("-1e999", "1e-999", "0" * 50, "9" * 30, "9" * 5000, "nan", "-nan", "inf", "None", "True", " ", "\t", "\n", "\r"),
    *("\0", "\x1c", "\x85", "\u2028", "\ud800", "\udc80", "é", "٣", "²", "½", "\U0001d7d9", "\u202e", "\ufeff"),
    *("_", "1_0", "0x10"),
    *("'", '"', '""', "%s", "{}", "{k}", "\\", "#", "qid:", "qid:1", ":", "1:0.5", "k=", "k=1", "gain=0|1|3"),
    "a" * 300,
]  # fmt: skip


def mutated(rng: Random, text: str, pieces: Sequence[str] = PIECES) -> str:
    """The text with some places changed."""
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3, 6))):
        at = rng.randrange(len(text) + 1)
        to = min(len(text), at + rng.choice((0, 1, 1, 2, 5, 20)))
        change = rng.randrange(7)
        if change == 0:
            text = text[:at] + text[to:]
        elif change == 1:
            text = text[:at] + rng.choice(pieces) + text[to:]
        elif change == 2:
            text = text[:to] + text[at:to] * rng.choice((1, 2, 50)) + text[to:]
        elif change == 3:
            text = text[:at] + chr(rng.choice((rng.randrange(128), rng.randrange(0x110000)))) + text[to:]
        elif change == 4:
            text = text[:at]
        elif change == 5:
            text = text[:at] + text[at:to].swapcase() + text[to:]
        else:
            other = rng.randrange(len(text) + 1)
            text = text[:at] + text[other : other + 10] + text[at:]
    return text


# -- flavors ----------------------------------------------------------------------------------------------------------

CHOICES: dict[str, Sequence[Any]] = {
    "gain": ("linear", "exponential", "binary", "judged", (0.0, 1.0, 3.0, 7.0, 15.0), (0, 1, 0.5), (0, -1, 1e300)),
    "off_table": ("raise", "zero"),
    "discount": ("log2", "jarvelin", "reciprocal", "ln", "none"),
    "discount_base": (2.0, 3, 1.5, math.e, 1e300, 1.0000001),
    "ideal": ("global", "recall", "local", "max", "given"),
    "ideal_depth": ("k", "all", "retrieved"),
    "recall_depth": (None, 1, 3, 10**18),
    "max_grade": (None, 4, 1.0, 0, 5000.0, 1e308, -3),
    "k": (None, 1, 2, 5, 10, 1000, 10**12, 2**63 - 1, 2**63, 10**30),
    "short_lists": ("score", "zero"),
    "ties": ("average", "first", "last", "best", "worst", "docid"),
    "empty": (0.0, 1, math.nan, "skip", "raise", "nan"),
    "aggregate": ("macro", "micro"),
    "negative": ("raise", "zero", "drop", "allow"),
    "unjudged": ("raise", "zero", "condense"),
    "score_dtype": ("float64", "float32"),
}


_GIVE_MEANING = {"ideal": CHOICES["ideal"][1:2], "discount": CHOICES["discount"][1:2], "gain": CHOICES["gain"][4:]}


def drawn_switches(rng: Random, n: int, odd: float = 0.0) -> dict[str, Any]:
    """Some switches of a flavor, each with the chance `odd` of a value that nobody expects."""
    names = rng.sample(list(CHOICES), n)
    switches = {name: rng.choice(ODD if rng.random() < odd else CHOICES[name]) for name in names}
    if rng.random() < 0.9:  # otherwise nearly every flavor contradicts itself
        if switches.get("ideal") is CHOICES["ideal"][3]:
            switches.setdefault("max_grade", 4)
        for name, needed in (("recall_depth", "ideal"), ("discount_base", "discount"), ("off_table", "gain")):
            if not any(switches.get(needed) is each for each in _GIVE_MEANING[needed]):
                switches.pop(name, None)
    return switches


def drawn_flavor(rng: Random) -> Flavor:
    """A flavor with any of the switches."""
    while True:
        base = rng.choice(list(PRESETS))
        with contextlib.suppress(ValueError):
            if rng.random() < 0.3:
                return PRESETS[base].replace(k=rng.choice((None, 1, 3, 10)))
            return Flavor(**drawn_switches(rng, rng.randrange(1, 12)))


def drawn_text(rng: Random) -> str:
    """The text of a flavor, valid more often than not."""
    name = rng.choice(("ndcg", *PRESETS))
    k = rng.choice(("", "", "@10", "@1", "@999999999999999999999", "@0", "@-1", "@None", "@" + "1" * 4500))
    switches = drawn_switches(rng, rng.randrange(6))
    parts = []
    for switch, value in switches.items():
        written = "|".join(map(repr, value)) if isinstance(value, tuple) else str(value)
        parts.append(f"{switch}={written}")
    return f"{name}{k}[{','.join(parts)}]" if parts or rng.random() < 0.1 else f"{name}{k}"


def draw_parse(rng: Random, folder: Path) -> Any:
    """A text, or rarely something else; or the switches themselves."""
    kind = rng.randrange(20)
    if kind < 14:
        return mutated(rng, drawn_text(rng))
    if kind < 16:
        size = rng.randrange(30)
        return "".join(rng.choice(PIECES) if rng.random() < 0.5 else chr(rng.randrange(0x110000)) for _ in range(size))
    if kind < 17:
        return rng.choice(ODD)
    return drawn_switches(rng, rng.randrange(1, 8), odd=0.3)


def attempt_parse(case: Any, rng: Random) -> None:
    """A flavor that reads back from its own text, if it has no callables."""
    if isinstance(case, dict) and case.keys() <= CHOICES.keys():
        flavor = Flavor(**case)
    else:
        flavor = Flavor.parse(case)
    text = str(flavor)
    if callable(flavor.gain) or callable(flavor.discount):
        return
    expect(Flavor.parse(text) == flavor, f"{text} reads back as another flavor")
    expect(hash(Flavor.parse(text)) == hash(flavor), "equal flavors hash alike")
    expect(" " not in text, "a text has no spaces")
    if rng.random() < 0.02:
        expect(pickle.loads(pickle.dumps(flavor)) == flavor, "pickled")
        expect(eval(repr(flavor), {"Flavor": Flavor, "nan": math.nan}) == flavor, "repr")
        expect(text in flavor.describe(), "described")
        expect(flavor.metric_name.startswith("ndcg_"), "named")
        for library in (flavor.lightgbm_params, flavor.xgboost_params, flavor.catboost_params):
            with contextlib.suppress(ValueError):
                library()


def expect(condition: bool, what: str) -> None:
    """Break the contract unless the condition holds."""
    if not condition:
        raise BrokenContractError(what)


# -- files ------------------------------------------------------------------------------------------------------------

NUMBERS = [
    *("0", "1", "2", "3", "0.5", "-1", "1e3", "1e308", "5e-324"),
    *("007", "+1", "2.", ".5", "-0.0", "1e400", "inf", "nan"),
]
IDS = ["1", "07", "7", "q1", "q-2", "Ünïcode", "d#1", "#1", "1_0", "a" * 200, "\udcff", "-0"]


def as_file(rng: Random, text: str) -> bytes:
    """The bytes of a text file: in UTF-8 as a rule, sometimes compressed, sometimes damaged."""
    encoding = rng.choice(("utf-8",) * 40 + ("utf-16", "latin-1", "utf-8-sig"))
    content = text.encode(encoding, "replace" if encoding == "latin-1" else "surrogatepass")
    if rng.random() < 0.05:
        content = gzip.compress(content, 1)
    for _ in range(rng.choice((0,) * 12 + (1, 3))):
        at = rng.randrange(len(content) + 1)
        more = bytes([rng.randrange(256)]) * rng.choice((0, 1, 1, 4))
        content = content[:at] + more + content[at + rng.randrange(2) :]
    return content


def lines_of(rng: Random, make: Callable[[], str]) -> str:
    """Some lines, mostly with the same ends."""
    end = rng.choice(("\n",) * 6 + ("\r\n", "\r"))
    return end.join(make() for _ in range(rng.choice((0, 1, 2, 3, 5, 12)))) + rng.choice((end, end, ""))


def draw_letor(rng: Random, folder: Path) -> Any:
    """Labels, scores and sizes as files."""
    n = rng.choice((0, 1, 2, 3, 5, 12))
    with_ids = rng.random() < 0.8
    grade = ("0", "1", "2", "3")

    def one() -> str:
        ids = f" qid:{rng.choice(IDS[:3])}" if with_ids else ""
        number = rng.choice(NUMBERS if rng.random() < 0.05 else grade)
        return f"{number}{ids}{rng.choice(('', ' 1:0.5 2:1', ' 1:0.5 # doc 7', ' #'))}"

    labels = "\n".join(one() for _ in range(n)) + "\n"
    scores = "\n".join(rng.choice(NUMBERS if rng.random() < 0.1 else NUMBERS[:8]) for _ in range(n)) + "\n"
    sizes = f"{n}\n" if rng.random() < 0.5 else lines_of(rng, lambda: rng.choice(("1", "2", "0", "-1", "9" * 4400)))
    texts = [labels, scores, sizes]
    at = rng.randrange(3)
    if rng.random() < 0.6:
        texts[at] = mutated(rng, texts[at])
    files = {"labels": texts[0], "scores": texts[1], "labels.query": texts[2]}
    return written(rng, folder, files, optional="labels.query")


def written(rng: Random, folder: Path, files: dict[str, str], optional: str = "") -> dict[str, Any]:
    """The files on disk, and their bytes to show."""
    shown: dict[str, Any] = {"folder": folder}
    for name, text in files.items():
        path = folder / name
        if name == optional and rng.random() < 0.3:
            path.unlink(missing_ok=True)
            continue
        shown[name] = as_file(rng, text)
        path.write_bytes(shown[name])
    shown["flavor"] = drawn_flavor(rng) if rng.random() < 0.2 else None
    return shown


def attempt_letor(case: Any, rng: Random) -> None:
    """Rows that can be evaluated."""
    check_rows(read_letor(case["folder"] / "labels", case["folder"] / "scores"), case["flavor"])


def check_rows(rows: Any, flavor: Flavor | None) -> None:
    """Columns of one length, labels that are not infinite, scores that are not nan."""
    size = rows.y_true.size
    expect(rows.y_score.size == rows.qid.size == size > 0, "columns of one length")
    expect(rows.doc_id is None or rows.doc_id.size == size, "an id a row")
    expect(not np.isinf(rows.y_true).any() and not np.isnan(rows.y_score).any(), "finite labels, scores that rank")
    if flavor is not None:
        check_evaluation(ndcg_ml.evaluate(**rows.arguments(), flavor=flavor), flavor)


def draw_trec(rng: Random, folder: Path) -> Any:
    """Qrels and a run as files."""

    def id_of(ids: Sequence[str]) -> str:
        return rng.choice(ids if rng.random() < 0.1 else ids[: rng.choice((1, 2))])

    documents = [iter(rng.sample(range(20), 20)) for _ in range(2)]

    def judged() -> str:
        return f"{id_of(IDS)} 0 d{next(documents[0])} {rng.choice(NUMBERS if rng.random() < 0.05 else NUMBERS[:4])}"

    def ranked() -> str:
        score = rng.choice(NUMBERS if rng.random() < 0.05 else NUMBERS[:9])
        return f"{id_of(IDS)} Q0 d{next(documents[1])} {rng.choice(('1', '1', 'x'))} {score} tag"

    texts = [lines_of(rng, judged), lines_of(rng, ranked)]
    at = rng.randrange(2)
    if rng.random() < 0.5:
        texts[at] = mutated(rng, texts[at])
    case = written(rng, folder, {"qrels": texts[0], "run": texts[1]})
    case["queries"] = rng.choice(("qrels", "run", "both", "all") if rng.random() < 0.1 else ("qrels", "run", "both"))
    case["k"] = rng.choice(ODD) if rng.random() < 0.05 else rng.choice((..., None, 1, (1, 5), 10**18))
    return case


def attempt_trec(case: Any, rng: Random) -> None:
    """An evaluation of the run."""
    flavor = case["flavor"] or "trec_eval"
    paths = case["folder"] / "qrels", case["folder"] / "run"
    check_evaluation(ndcg_ml.evaluate_run(*paths, flavor=flavor, k=case["k"], queries=case["queries"]), flavor)


def draw_columns(rng: Random, folder: Path) -> Any:
    """A CSV file, or now and then a parquet file."""
    names = ["qid", "label", "score", *rng.choice(([], ["docno"], ["other"]))]
    rng.shuffle(names)
    if rng.random() < 0.1 and installed("pyarrow") is not None:
        return parquet_file(rng, folder, names)
    comma = rng.choice((",", ",", "\t"))
    quote = rng.random() < 0.2

    def cell(name: str) -> str:
        text = rng.choice(IDS if name in ("qid", "docno", "other") else NUMBERS[:6] if rng.random() < 0.95 else NUMBERS)
        return f'"{text}"' if quote else text

    body = lines_of(rng, lambda: comma.join(map(cell, names)))
    text = f"{comma.join(names)}\n{body}"
    if rng.random() < 0.6:
        text = mutated(rng, text)
    if rng.random() < 0.002:
        text += f"{'x' * 200_000}{comma}1{comma}1\n"
    return {**written(rng, folder, {"rows": text}), "path": folder / "rows"}


def parquet_file(rng: Random, folder: Path, names: list[str]) -> dict[str, Any]:
    """Columns of all sorts of types, and now and then a file that is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    n = rng.choice((0, 1, 3, 8))
    columns = {}
    for name in names:
        if rng.random() < 0.7:
            values: list[Any] = [rng.choice((0, 1, 2)) for _ in range(n)]
            values = [f"q{value}" for value in values] if name in ("qid", "docno") and rng.random() < 0.5 else values
        else:
            kinds: Sequence[Sequence[Any]] = (
                (0.5, math.nan, None), (True, False, None), ("a", "\0", None), (date(2020, 1, 1),), (b"x", b"\xff"),
                (Decimal(1), Decimal("0.5")), ([1], [1, 2], None), ({"a": 1},), (None,), (2**63 - 1, -1),
                (timedelta(1),), (math.inf, 1.0), (datetime(2020, 1, 1),),
            )  # fmt: skip
            kind = rng.choice(kinds)
            values = [rng.choice(kind) for _ in range(n)]
        columns[name] = pa.array(values)
        if rng.random() < 0.1 and not pa.types.is_nested(columns[name].type):
            columns[name] = columns[name].dictionary_encode()
    path = folder / "rows"
    try:
        pq.write_table(pa.table(columns), path)
    except pa.ArrowNotImplementedError:  # of a type that parquet has not
        path.write_bytes(b"PAR1")
    content = path.read_bytes()
    if rng.random() < 0.15 and len(content) > 4:
        at = rng.randrange(4, len(content))
        content = rng.choice((content[:at], content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]))
        path.write_bytes(content)
    return {"rows": content, "path": path, "flavor": None}


def attempt_columns(case: Any, rng: Random) -> None:
    """Rows that can be evaluated."""
    check_rows(read_columns(case["path"]), case["flavor"])


# -- arrays -----------------------------------------------------------------------------------------------------------

DTYPES = [
    *("?", "i1", "u1", "i2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "g", ">f4"),
    *(">f8", ">i8", "c8", "c16", "S3", "U3", "M8[D]", "m8[s]", "O", "V8", "i4,f8"),
]
POOLS: Sequence[Sequence[Any]] = (
    (0, 1, 2, 3, 4),
    (0, 0, 0, 1),
    (0.0, 0.5, 1.5, 3.25, 2.0),
    (0.0, -0.0, 1e308, 5e-324, 2.2e-308, 1.7e308),
    (-1, 0, 2, -3),
    (math.nan, 1.0, 0.0, 2.0),
    (math.inf, -math.inf, 1.0),
    (2**53, 2**53 + 1, 2**63 - 1),
    (1e300, 1e-300, -1e300),
    (0, 1, 1000, 5000),
)
Maker = Callable[[Random, list[Any]], Any]


def _makers() -> list[Maker]:
    makers: list[Maker] = [
        lambda rng, v: tuple(v),
        lambda rng, v: np.array(v).astype(rng.choice(DTYPES)),
        lambda rng, v: np.array(v).astype(rng.choice(DTYPES)),
        lambda rng, v: np.frombuffer(rng.randbytes(8 * len(v)), dtype="f8"),
        lambda rng, v: np.frombuffer(rng.randbytes(4 * len(v)), dtype="f4"),
        lambda rng, v: np.frombuffer(rng.randbytes(2 * len(v)), dtype="f2"),
        lambda rng, v: np.array(v, dtype=object),
        lambda rng, v: np.array([rng.choice(ODD) for _ in v] + [None], dtype=object)[:-1],
        lambda rng, v: [rng.choice(ODD) if rng.random() < 0.3 else each for each in v],
        lambda rng, v: np.repeat(np.array(v), 2)[::2],
        lambda rng, v: np.array(v[::-1])[::-1],
        lambda rng, v: np.broadcast_to(np.array(v[:1]), len(v)),
        lambda rng, v: np.array(v).reshape(-1, 1),
        lambda rng, v: np.array(v).reshape(1, -1),
        lambda rng, v: np.array(v)[..., None, None],
        lambda rng, v: np.array(v[0] if v else 0),
        lambda rng, v: np.array([*v, 1]),
        lambda rng, v: np.array(v[:-1]),
        lambda rng, v: np.array([]),
        lambda rng, v: np.asmatrix(v),
        lambda rng, v: np.rec.fromarrays([v]),
        lambda rng, v: np.ma.masked_array(v, mask=[rng.random() < 0.3 for _ in v]),
        lambda rng, v: np.array(v, dtype=np.dtypes.StringDType()),
        lambda rng, v: array.array("d", v),
        lambda rng, v: memoryview(array.array("d", v)),
        lambda rng, v: (each for each in v),
        lambda rng, v: set(v),
        lambda rng, v: dict(enumerate(v)),
        lambda rng, v: range(len(v)),
        lambda rng, v: [v, v[:1]],
        lambda rng, v: [[each] for each in v],
        lambda rng, v: [str(each) for each in v],
        lambda rng, v: [Decimal(each) for each in v],
        lambda rng, v: [*v[:-1], None],
        lambda rng, v: [*v[:-1], 10**400],
        lambda rng, v: [date(2020, 1, 1 + i % 28) for i in range(len(v))],
        lambda rng, v: "".join(map(str, v)),
        lambda rng, v: rng.choice(ODD),
        lambda rng, v: _deep(rng.choice((70, 500))),
    ]
    pd, pl, pa, torch = map(installed, ("pandas", "polars", "pyarrow", "torch"))
    if pd is not None:
        makers += [
            lambda rng, v: pd.Series(v),
            lambda rng, v: pd.Series(v, range(len(v), 0, -1), rng.choice(("object", "float32", "category"))),
            lambda rng, v: pd.Series([*v[:-1], None], dtype="Int64"),
            lambda rng, v: pd.Series([*v[:-1], None], dtype="boolean"),
            lambda rng, v: pd.Series([*map(str, v[:-1]), None], dtype="string"),
            lambda rng, v: pd.DataFrame({"a": v}),
            lambda rng, v: pd.Index(v),
            lambda rng, v: pd.MultiIndex.from_arrays([v, v]),
            lambda rng, v: pd.date_range("2020-01-01", periods=len(v)),
            lambda rng, v: pd.date_range("2020-01-01", periods=len(v), tz="UTC"),
        ]
    if pl is not None:
        makers += [
            lambda rng, v: pl.Series(_ordinary(v), strict=False),
            lambda rng, v: pl.Series([*_ordinary(v[:-1]), None], strict=False),
            lambda rng, v: pl.DataFrame({"a": _ordinary(v)}, strict=False),
            lambda rng, v: pl.Series([str(each) for each in v]).cast(pl.Categorical),
            lambda rng, v: pl.Series([[each] for each in _ordinary(v)], strict=False),
        ]
    if pa is not None:
        makers += [
            lambda rng, v: pa.array(v),
            lambda rng, v: pa.chunked_array([v[:1], [None], v[2:]]),
            lambda rng, v: pa.table({"a": v}),
            lambda rng, v: pa.array([str(each) for each in v]).dictionary_encode(),
        ]
    if torch is not None:
        makers += [
            lambda rng, v: torch.tensor(v),
            lambda rng, v: torch.tensor(v, dtype=torch.float64, requires_grad=True),
            lambda rng, v: torch.tensor(v).to(torch.bfloat16),
        ]
    return makers


def _ordinary(values: list[Any]) -> list[Any]:
    """The values, unless they are of a kind that Polars ends in a panic for, which is no exception."""
    if not all(type(each) in (str, float, bool) or (type(each) is int and abs(each) < 2**63) for each in values):
        raise TypeError
    return values


def _deep(levels: int) -> list[Any]:
    nested: list[Any] = [1]
    for _ in range(levels):
        nested = [nested]
    return nested


_MOSTLY: tuple[Maker, Maker] = (lambda rng, v: np.array(v)), (lambda rng, v: v)
MAKERS = _makers()
TENSORS = installed("ndcg_ml.torch")  # now, for it takes seconds


def dressed(rng: Random, values: list[Any], odd: float) -> Any:
    """The values as some kind of sequence: mostly an array or a list, with the chance `odd` anything at all."""
    make: Maker = _MOSTLY[rng.random() < 0.3] if rng.random() >= odd else rng.choice(MAKERS)
    try:
        return make(rng, values)
    except Exception:  # a container that does not take these values
        return values


def draw_arrays(rng: Random, folder: Path) -> Any:
    """A function and its arguments."""
    odd = rng.choice((0.0, 0.1, 0.1, 0.4))
    function = rng.choice((*("ndcg_score",) * 3, "dcg_score", "evaluate", "prepare", "evaluate_ranked", "torch"))
    if function == "torch" and (TENSORS is None or rng.random() < 0.5):
        function = "evaluate"
    flavor: Any = drawn_flavor(rng)
    ok_pools = POOLS[:3] if rng.random() < 0.6 else POOLS
    pool, score_pool = rng.choice(ok_pools), rng.choice(POOLS)
    sizes = [rng.choice((0, 1, 1, 2, 3, 5, 9)) for _ in range(rng.choice((1, 1, 2, 4)))]
    n = sum(sizes)
    if function == "evaluate_ranked":
        grades = [dressed(rng, [rng.choice(pool) for _ in range(size)], odd) for size in sizes]
        arguments: dict[str, Any] = {"grades": dressed(rng, grades, odd / 2) if odd else grades}
        if rng.random() < 0.4:
            judged = [[*(each if isinstance(each, list) else [1, 2]), rng.choice(pool)] for each in grades]
            arguments["judged"] = judged
    elif rng.random() < 0.3:
        shape = rng.choice(((1, 3), (2, 4), (3, 1), (2, 0), (0, 3), (5, 7)))
        n = shape[0] * shape[1]
        arguments = {}
        for name, values in (("y_true", pool), ("y_score", score_pool)):
            made: Any = np.array([rng.choice(values) for _ in range(n)])
            arguments[name] = made.reshape(shape, order=rng.choice("CF"))
            if rng.random() < odd:
                arguments[name] = dressed(rng, made.tolist(), 1.0)
        if rng.random() < 0.4:
            arguments["mask"] = np.array([rng.random() < 0.8 for _ in range(n)]).reshape(shape)
        sizes = [0] * shape[0]
    else:
        arguments = {
            "y_true": dressed(rng, [rng.choice(pool) for _ in range(n)], odd),
            "y_score": dressed(rng, [rng.choice(score_pool) for _ in range(n)], odd),
        }
        if rng.random() < 0.5:
            arguments["group"] = dressed(rng, sizes, odd)
        else:
            ids: list[Any] = [i for i, size in enumerate(sizes) for _ in range(size)]
            rng.shuffle(ids)
            ids = ids if rng.random() < 0.5 else [f"q{each}" for each in ids]
            arguments["qid"] = dressed(rng, ids, odd)
    if function != "evaluate_ranked":
        if rng.random() < 0.2:
            weights = (0, 1, 2, 0.5, rng.choice((1e308, 5e-324, 1e-300)))
            arguments["query_weight"] = dressed(rng, [rng.choice(weights) for _ in sizes], odd)
        if rng.random() < 0.2:
            arguments["retrieved"] = dressed(rng, [rng.random() < 0.7 for _ in range(n)], odd)
        if rng.random() < (0.9 if flavor.ties == "docid" else 0.2):
            arguments["doc_id"] = dressed(rng, rng.sample(range(100), n), odd)
    if rng.random() < odd / 2:
        flavor = rng.choice(ODD)
    if rng.random() < 0.3:
        arguments["k"] = rng.choice(ODD) if rng.random() < odd else rng.choice((None, 1, 3, (1, 3), [None, 2], 10**18))
    if rng.random() < odd / 2 and function != "evaluate_ranked":
        arguments[rng.choice(("qid", "group", "mask", "retrieved", "doc_id", "query_weight"))] = rng.choice(ODD)
    return {"function": function, "flavor": flavor, **arguments}


def attempt_arrays(case: Any, rng: Random) -> None:
    """A value in range, or a table of queries."""
    arguments = dict(case)
    function, flavor = arguments.pop("function"), arguments["flavor"]
    if function == "torch":
        attempt_torch(arguments)
    elif function in ("ndcg_score", "dcg_score"):
        check_value(getattr(ndcg_ml, function)(**arguments), flavor, dcg=function == "dcg_score")
    elif function == "prepare":
        scores = arguments.pop("y_score")
        prepared = ndcg_ml.prepare(**arguments)
        value = prepared(scores)
        check_value(value, flavor)
        result = prepared.evaluate(scores)
        check_evaluation(result, flavor)
        expect(repr(result.value) == repr(value), "evaluate and the call agree")
        check_value(prepared.dcg(scores), flavor, dcg=True)
    else:
        check_evaluation(getattr(ndcg_ml, function)(**arguments), flavor)


def attempt_torch(arguments: dict[str, Any]) -> None:
    """The same with tensors, where the arguments have a form that the function knows."""
    import torch

    def tensor(value: Any) -> Any:
        if isinstance(value, (np.ndarray, list)):
            with contextlib.suppress(Exception), quiet():
                return torch.tensor(np.asarray(value))
        return value

    names = {"y_true": "labels", "y_score": "scores", "qid": "indexes", "group": "indexes"}
    arguments.pop("query_weight", None)
    kept = {
        names.get(name, name): value if name in ("flavor", "k") else tensor(value) for name, value in arguments.items()
    }
    value = TENSORS.ndcg(**kept)
    flavor = kept["flavor"]
    for each in value.values() if isinstance(value, dict) else [value]:
        may_be_nan = not isinstance(flavor, Flavor) or flavor.empty in ("skip",) or flavor.empty != flavor.empty
        expect(may_be_nan or not torch.isnan(each).any().item(), f"nan in {each}")
        if isinstance(flavor, Flavor) and bounded(flavor):
            expect(not ((each < 0) | (each > 1 + 1e-9)).any().item(), f"out of range: {each}")


def bounded(flavor: Flavor) -> bool:
    """Whether NDCG is between 0 and 1 by definition: no gain below 0, and an ideal that no ranking beats."""
    plain = isinstance(flavor.gain, str) and isinstance(flavor.discount, str) and flavor.negative != "allow"
    return plain and flavor.ideal != "given" and flavor.recall_depth is None


def check_value(value: Any, flavor: Any, dcg: bool = False) -> None:
    """A Python float, or a dict of them by cut-off, in range."""
    for each in value.values() if isinstance(value, dict) else [value]:
        expect(type(each) is float, f"a float, not {type(each).__name__}")
        if not isinstance(flavor, Flavor):
            continue
        if dcg:
            expect(math.isfinite(each), f"a DCG of {each}")
        else:
            expect(flavor.empty != flavor.empty or not math.isnan(each), "a nan that the flavor does not ask for")
            expect(not bounded(flavor) or math.isnan(each) or 0 <= each <= 1 + 1e-9, f"out of range: {each}")


def check_evaluation(result: Any, flavor: Any) -> None:
    """A value, and a table of queries that has one row for each."""
    check_value(result.value, flavor)
    table = result.per_query
    expect(len(table) == result.n_queries == len(table.qid), "a row a query")
    for name, column in dict(table).items():
        expect(isinstance(column, np.ndarray) and len(column) == len(table), f"column {name}")
    if isinstance(flavor, Flavor):
        wrong = np.isnan(table.ndcg)
        if flavor.empty == "skip" or flavor.empty != flavor.empty:
            wrong &= ~table.empty
        expect(not wrong.any(), "a nan in the table that the flavor does not ask for")
    expect(isinstance(str(result), str), "printed")


# -- runs in memory ---------------------------------------------------------------------------------------------------


def draw_runs(rng: Random, folder: Path) -> Any:
    """Qrels and a run as dicts or frames."""
    odd = rng.choice((0.0, 0.02, 0.1))

    def topic() -> Any:
        return rng.choice(ODD) if rng.random() < odd else rng.choice(topics)

    common: Sequence[Sequence[Any]] = (("a", "b", "c"), (1, 2, 3))
    odd_topics = (("1", "01", "q\0"), (2**63, -1, 2), (2**64, 10**30))
    odd_documents = (("d1", "d2", "d3", "\udcff"), (1, 2, 3, -4), (np.int64(1), 2, 3), ("\ud800",))
    topics: Sequence[Any] = rng.choice(common if rng.random() < 0.8 else odd_topics)
    documents: Sequence[Any] = rng.choice(common if rng.random() < 0.8 else odd_documents)

    def entries(values: Sequence[Any]) -> Any:
        ids = [rng.choice(ODD) if rng.random() < odd else rng.choice(documents) for _ in range(rng.randrange(1, 5))]
        if rng.random() < odd:
            return dressed(rng, ids, 1.0)
        with contextlib.suppress(TypeError, ValueError):
            return {each: rng.choice(ODD if rng.random() < odd else values) for each in ids}
        return {}

    def mapping(values: Sequence[Any]) -> Any:
        made: dict[Any, Any] = {}
        for _ in range(rng.randrange(1, 6)):
            with contextlib.suppress(TypeError, ValueError):
                made[topic()] = entries(values)
        return made

    qrels: Any = mapping((0, 1, 2, 3, 0.5, -1))
    run: Any = mapping((0.1, 0.5, 0.5, 2, -1.0, math.inf))
    if rng.random() < 0.2:
        run = {each: [rng.choice(documents) for _ in range(rng.randrange(4))] for each in topics}
    if rng.random() < 0.2:
        qrels = frame(rng, topics, documents, "label", odd)
    if rng.random() < 0.2:
        run = frame(rng, topics, documents, "score", odd)
    if rng.random() < odd:
        qrels = rng.choice([each for each in ODD if not isinstance(each, str)])  # a str is a path
    flavor: Any = rng.choice(ODD) if rng.random() < odd else drawn_flavor(rng) if rng.random() < 0.6 else "trec_eval"
    return {
        "qrels": qrels,
        "run": run,
        "flavor": flavor,
        "k": rng.choice(ODD) if rng.random() < odd else rng.choice((..., None, 1, 10, (1, 5), 10**18)),
        "queries": rng.choice(ODD) if rng.random() < odd else rng.choice(("qrels", "run", "both")),
    }


def frame(rng: Random, topics: Sequence[Any], documents: Sequence[Any], value: str, odd: float) -> Any:
    """A data frame of some library."""
    n = rng.randrange(6)
    columns: dict[str, Any] = {
        "qid": [rng.choice(topics) for _ in range(n)],
        "docno": [rng.choice(documents) for _ in range(n)],
        value: [rng.choice(ODD) if rng.random() < odd else rng.choice((0, 1, 2.5)) for _ in range(n)],
    }
    if rng.random() < odd:
        columns.pop(rng.choice(list(columns)))
    libraries = [module for module in map(installed, ("pandas", "polars", "pyarrow")) if module is not None]
    if not libraries:
        return columns
    try:
        module = rng.choice(libraries)
        if module.__name__ == "polars":
            columns = {name: _ordinary(values) for name, values in columns.items()}
        return module.table(columns) if module.__name__ == "pyarrow" else module.DataFrame(columns)
    except Exception:  # a frame that does not take these values
        return columns


def attempt_runs(case: Any, rng: Random) -> None:
    """An evaluation of the run."""
    result = ndcg_ml.evaluate_run(**case)
    check_evaluation(result, case["flavor"])
    for topics in (result.per_query.qid, result.qrels_only, result.run_only):
        expect(all(isinstance(each, (str, int)) for each in topics.tolist()), f"topics as they were: {topics}")


TARGETS: dict[str, tuple[Callable[[Random, Path], Any], Callable[[Any, Random], None]]] = {
    "parse": (draw_parse, attempt_parse),
    "letor": (draw_letor, attempt_letor),
    "trec": (draw_trec, attempt_trec),
    "columns": (draw_columns, attempt_columns),
    "arrays": (draw_arrays, attempt_arrays),
    "runs": (draw_runs, attempt_runs),
}
# Of a run of all targets: texts are cheap.
GUIDED = ("parse", "letor", "trec", "columns")
SHARES = {"parse": 20, "letor": 2, "trec": 2, "columns": 2, "arrays": 3, "runs": 2}


# -- with coverage as the guide ---------------------------------------------------------------------------------------

_GUIDED = """
import sys, atheris
with atheris.instrument_imports(include=["ndcg_ml.flavor", "ndcg_ml.readers", "ndcg_ml.runs"]):
    import ndcg_ml.flavor, ndcg_ml.readers, ndcg_ml.runs
from reliability import fuzz
fuzz.guided(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
"""
_TALLY = "TALLY "


def guided(target: str, inputs: int, seed: int) -> None:
    """Give atheris the target: bytes become a text or a file. Ends the process, with the tally on standard output."""
    import atheris

    tally, started = Tally(), time.perf_counter()
    folder = Path(tempfile.mkdtemp(dir=MEMORY))
    number = itertools.count()
    keep = contextlib.ExitStack()
    keep.enter_context(guarded())

    def one(data: bytes) -> None:
        case: Any = data.decode("utf-8", "surrogateescape")
        if target != "parse":
            # A NUL and a byte between two files, as no reader takes a NUL.
            first, _, second = data.partition(b"\0\xff")
            names = {"letor": ("labels", "scores"), "trec": ("qrels", "run"), "columns": ("rows", "rest")}[target]
            for name, content in zip(names, (first, second), strict=True):
                (folder / name).write_bytes(content)
            case = {"folder": folder, "path": folder / "rows", "data": data, "flavor": None}
            case |= {"k": ..., "queries": "qrels"}
        judge(tally, TARGETS[target][1], case, Random(0), at := next(number))
        if at + 1 == inputs:
            tally.seconds = time.perf_counter() - started
            print(_TALLY + json.dumps({**vars(tally), "foreign": dict(tally.foreign)}), flush=True)
            shutil.rmtree(folder)
            os._exit(0)

    corpus = folder / "corpus"
    corpus.mkdir()
    for i in range(200):
        (corpus / str(i)).write_bytes(_seed(target, Random(f"{seed}/{i}"), folder))
    atheris.Setup(["fuzz", str(corpus), f"-seed={seed}", "-max_len=4096", "-verbosity=0", "-rss_limit_mb=4096"], one)
    atheris.Fuzz()


def guided_elsewhere(target: str, inputs: int, seed: int) -> Tally:
    """The tally of ``guided`` in a process of its own."""
    command = [sys.executable, "-c", _GUIDED, target, str(inputs), str(seed)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        if line.startswith(_TALLY):
            return Tally(**json.loads(line.removeprefix(_TALLY)))
    raise SystemExit(f"atheris ended with {done.returncode}: {done.stderr[-2000:]}")


def _seed(target: str, rng: Random, folder: Path) -> bytes:
    if target == "parse":
        return drawn_text(rng).encode("utf-8", "surrogatepass")
    case = TARGETS[target][0](rng, folder)
    contents = [value for value in case.values() if isinstance(value, bytes)]
    return b"\0\xff".join(contents[:2])


# -- the record -------------------------------------------------------------------------------------------------------


def save(tallies: dict[str, Tally], command: str) -> None:
    """Write the record, keeping what was found before."""
    path = RESULTS / "fuzz.json"
    before = (
        json.loads(path.read_text()) if path.exists() else {"found": [], "figures": [], "versions": {}, "command": ""}
    )
    rows = {row["target"]: row for row in before["figures"]}
    for name, tally in tallies.items():
        rows[name] = {
            "target": name,
            "inputs": f"{tally.inputs:,}",
            "answered": f"{tally.answered:,}",
            "refused": f"{tally.refused:,}",
            "fails": str(len(tally.failures)),
            "seconds": f"{tally.seconds:.0f}",
        }
    names = ("numpy", "pandas", "polars", "pyarrow", "torch", "atheris")
    here = {"python": platform.python_version(), **{name: found for name in names if (found := _version(name))}}
    commands = [*filter(None, before["command"].split("; ")), command]
    record = {
        "title": "Fuzzed inputs",
        "tried": "Texts of flavors, data files, arrays and runs in memory, drawn and then damaged: each must give a "
        "result as documented or a ValueError or TypeError within five seconds, without a warning, a nan that the "
        "flavor does not ask for, or a text of a flavor that does not read back.",
        "command": "; ".join(dict.fromkeys(commands)),
        "count": sum(int(row["inputs"].replace(",", "")) for row in rows.values()),
        "unit": "inputs",
        "failed": sum(int(row["fails"]) for row in rows.values()),
        "found": before["found"],
        "figures": list(rows.values()),
        "versions": {**before["versions"], **here},
        "date": str(date.today()),
    }
    RESULTS.mkdir(exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def main() -> None:
    """Fuzz, print what was found, and keep the record."""
    parser = argparse.ArgumentParser(prog="python -m reliability.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--target", choices=[*TARGETS, "all"], default="all")
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="repeat the input of this number")
    parser.add_argument("--engine", choices=["own", "atheris"], default="own")
    parser.add_argument("--record", action="store_true", help="write reliability/results/fuzz.json")
    args = parser.parse_args()
    targets = list(TARGETS) if args.target == "all" else [args.target]
    if args.engine == "atheris":
        targets = [target for target in targets if target in GUIDED]
    tallies = {}
    for target in targets:
        share = args.inputs * SHARES[target] // sum(SHARES[each] for each in targets)
        if args.engine == "atheris":
            name, tally = f"{target}, guided by coverage", guided_elsewhere(target, share, args.seed)
        else:
            name, tally = target, run(target, [args.only] if args.only is not None else range(share), args.seed)
        tallies[name] = tally
        print(
            f"{name}: {tally.inputs:,} inputs, {tally.answered:,} answered, {tally.refused:,} refused, "
            f"{len(tally.failures)} failures, {tally.seconds:.0f} s",
            flush=True,
        )
        for kind, failure in tally.failures.items():
            print(f"  FAILS {kind} ({failure['times']} times): {failure['error']}")
            print(f"    --target {target} --seed {args.seed} --only {failure['number']}: {failure['case'][:600]}")
        for where, times in Counter(tally.foreign).most_common(30):
            print(f"  foreign words, {times}: {where}")
    if args.record:
        engine = "" if args.engine == "own" else " --engine atheris"
        options = f"--target {args.target} --inputs {args.inputs} --seed {args.seed}{engine}"
        save(tallies, f"python -m reliability.fuzz {options} --record")
    raise SystemExit(any(tally.failures for tally in tallies.values()))


if __name__ == "__main__":
    main()
