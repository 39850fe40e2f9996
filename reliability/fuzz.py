"""Fuzz the package: ``python -m reliability.fuzz --inputs 20000 --seed 1``.

Flavors and queries are drawn by tests/support/strategies.py and then corrupted: strings and files in a few places,
arguments by an unusual container or value. Each input must give a documented result, or a ValueError or TypeError,
within five seconds: no other exception, no warning, no nan unless the flavor defines it, and no string of a flavor that
parses as another. Hypothesis shrinks and prints the first input that fails.
"""

from __future__ import annotations

import argparse
import array
import contextlib
import gzip
import importlib.util
import json
import math
import os
import pickle
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

import ndcg_ml
from ndcg_ml import PRESETS, Flavor
from ndcg_ml.catboost import catboost_params
from ndcg_ml.lightgbm import lightgbm_params
from ndcg_ml.readers import read_columns, read_letor
from ndcg_ml.xgboost import xgboost_params
from reliability.records import save

with contextlib.ExitStack() as _path:
    sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
    _path.callback(sys.path.pop)
    from strategies import Problem, flavors, problems

_DOCUMENTED = (
    "the run retrieves no judged document",
    "the run answers .* topics with an empty list",
    "the scores of .* count up",
    "the grades of qrels are fractions",
    "trec_eval itself truncates grades",
    ".* has no grades, so that each pair",
    "grades answer .* queries with an empty list",
    "each of the .* queries has one document",
    "group holds .* sizes of 0",
)
SECONDS = 5.0  # time limit of an input
AT_ONCE = 5000  # inputs per run of Hypothesis, which stores them all


class BrokenContractError(AssertionError):
    """The result is not as documented, or took too long."""


class Interrupt(BaseException):
    """Raised after the time limit. It is not an Exception, so that the package does not catch it."""


# -- running inputs -------------------------------------------------------------------------------------------------


def run(target: str, inputs: int, seed: int, phases: tuple[Phase, ...] = (Phase.generate,)) -> Counter[str]:
    """Try inputs, and count the results and the errors."""
    cases, attempt = TARGETS[target]
    tally: Counter[str] = Counter()
    for start in range(0, inputs, AT_ONCE):
        number = min(AT_ONCE, inputs - start)

        @hypothesis.seed(f"{seed} {target} {start}")
        @hypothesis.settings(
            max_examples=number,
            phases=phases,
            deadline=None,
            database=None,
            derandomize=False,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        )
        @hypothesis.given(cases)
        def one(case: Any) -> None:
            tally[judge(attempt, case)] += 1

        one()
    return tally


def judge(attempt: Callable[[Any], None], case: Any) -> str:
    """Try one input, and raise if the result is not as documented."""
    try:
        with guarded():
            attempt(case)
    except UnicodeError:
        raise
    except (ValueError, TypeError):
        return "refused"
    except OSError as error:
        if error.errno is None:  # errors of a library about the content have no number
            raise
        return "refused"
    except Interrupt:
        raise BrokenContractError(f"no answer after {SECONDS:g} seconds") from None
    return "answered"


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Raise warnings as errors, and interrupt after the time limit."""

    def interrupt(*_: Any) -> None:
        raise Interrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        with warnings.catch_warnings(), np.errstate(all="warn", under="ignore"):
            warnings.simplefilter("error")
            # These warnings are documented.
            for words in _DOCUMENTED:
                warnings.filterwarnings("ignore", words, UserWarning)
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def expect(condition: bool, what: str) -> None:
    """Raise unless the condition holds."""
    if not condition:
        raise BrokenContractError(what)


def installed(name: str) -> Any:
    """Return the module, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


# -- unusual values ---------------------------------------------------------------------------------------------------

pd, pl, pa = map(installed, ("pandas", "polars", "pyarrow"))
tensors = installed("ndcg_ml.torch")
torch = installed("torch") if tensors is not None else None

ODD: list[Any] = [
    *(None, True, False, ..., NotImplemented, object(), int, len, slice(2), date(2020, 1, 1), timedelta(1)),
    *(0, 1, 3, -1, 255, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**400, -(10**400)),
    *(0.5, -0.0, 1.0, math.nan, math.inf, -math.inf, 1e308, 5e-324, 1j, complex(math.nan)),
    *("", "0", "1", "nan", "skip", "none", "abc", "\ud800", "\0", "9" * 5000, b"", b"1", bytearray(b"\x01\x02")),
    *(Decimal(1), Decimal("sNaN"), Decimal("1e9999"), Fraction(1, 3), Fraction(10**400, 3), range(3), (), [], {}),
    *(set(), {1, 2}, {"a": 1}, [1], (1, None), [1, 2], [0, 1, 3], [[1]], [[]], ["1"], [None], [math.nan], [10**400]),
    *(np.float32(1), np.float16(0.5), np.int8(3), np.uint64(2**64 - 1), np.bool_(True), np.complex128(1), np.str_("a")),
    *(np.longdouble("1e4000"), np.float64(math.nan), np.datetime64("NaT"), np.timedelta64(1), np.array(3)),
    *(np.array("a"), np.array([1, 2]), np.array([]), np.array([[1]]), np.array([1, None], dtype=object)),
    *(array.array("d", [1.0, 2.0]), np.ma.masked_array([1, 2], [0, 1]), memoryview(b"\x01")),
    *([] if pd is None else [pd.NA, pd.NaT, pd.Series([1, 2]), pd.DataFrame({"a": [1]})]),
]  # fmt: skip
odd = st.integers(0, len(ODD) - 1).map(lambda at: ODD[at])  # sampled_from needs hashable values
rarely = st.integers(0, 9).map(lambda number: number == 7)  # Hypothesis draws 0 and 9 more often

PIECES = [
    *("", ",", "=", "@", "[", "]", "]]", "|", "||", "<f>", "-", "..", ".e5", "1e999", "-1e999", "0" * 50, "9" * 4400),
    *("nan", "-nan", "inf", "None", " ", "\t", "\n", "\r", "\0", "\x1c", "\x85", "\u2028", "\ud800", "\udcff", "é"),
    *("٣", "½", "\u202e", "\ufeff", "_", "1_0", "0x10", '"', '""', "#", "qid:", "qid:1", ":", "1:0.5", "a" * 300),
]  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> str:
    """Draw a text, and change up to three places."""
    text = draw(texts)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        to = min(len(text), at + draw(st.sampled_from([0, 1, 2, 5, 20])))
        piece = draw(st.sampled_from(PIECES) | st.text(max_size=3) | st.sampled_from([text[at:to] * 50, text[:at]]))
        text = text[:at] + piece + text[to:]
    return text


def _integers(values: list[Any]) -> Any:
    return np.array(values).astype("i8")


# Containers for a list of numbers or ids. If one cannot hold the values, the list is used.
CONTAINERS: list[Callable[[list[Any]], Any]] = [
    tuple, set, iter, np.asmatrix, lambda v: dict(enumerate(v)), lambda v: [[each] for each in v], lambda v: [*v, 1],
    *(lambda v, t=t: np.array(v).astype(t) for t in ("?", "i1", "u8", "f2", ">f8", "c16", "S3", "U3", "m8[s]", "O")),
    *(lambda v, t=t: np.array(v, dtype="f8").view(t) for t in ("f4", "f2", "M8[s]")),  # bits of another dtype
    lambda v: np.repeat(np.array(v), 2)[::2], lambda v: np.array(v[::-1])[::-1], lambda v: np.array(v).reshape(-1, 1),
    lambda v: np.array(v).reshape(1, -1), lambda v: np.array(v[:-1]), lambda v: np.rec.fromarrays([v]),
    lambda v: np.ma.masked_array(v, mask=[at % 3 == 1 for at in range(len(v))]), lambda v: array.array("d", v),
    lambda v: [str(each) for each in v], lambda v: [Decimal(each) for each in v], lambda v: [*v[:-1], None],
    lambda v: [*v[:-1], 10**400], lambda v: np.array([*v[:-1], "a"], dtype=object), lambda v: [v, v[:1]], lambda v: "1",
    *([] if pd is None else [
        pd.Series, pd.Index, lambda v: pd.Series(v, range(len(v), 0, -1), "category"), lambda v: pd.DataFrame({"a": v}),
        lambda v: pd.Series([*_integers(v[:-1]), None], dtype="Int64"), lambda v: pd.MultiIndex.from_arrays([v, v]),
        lambda v: pd.Series([*map(str, v[:-1]), None], dtype="string"), lambda v: pd.date_range("2020", periods=len(v)),
    ]),
    *([] if pl is None else [
        pl.Series, lambda v: pl.Series([*v[:-1], None]), lambda v: pl.DataFrame({"a": v}),
        lambda v: pl.Series(list(map(str, v))).cast(pl.Categorical), lambda v: pl.Series([[each] for each in v]),
    ]),
    *([] if pa is None else [
        pa.array, lambda v: pa.chunked_array([v[:1], [None], v[2:]]), lambda v: pa.table({"a": v}),
        lambda v: pa.array([str(each) for each in v]).dictionary_encode(),
    ]),
    *([] if torch is None else [
        torch.tensor, lambda v: torch.tensor(v, dtype=torch.float64, requires_grad=True),
        lambda v: torch.tensor(v).to(torch.bfloat16),
    ]),
]  # fmt: skip


@st.composite
def dressed(draw: st.DrawFn, values: Any) -> Any:
    """Draw the values in another container, with an unusual value among them, or an unusual value instead."""
    kind = draw(st.integers(0, 5))
    flat = np.asarray(values).reshape(-1).tolist()
    if kind == 0:
        return draw(odd)
    if kind == 1 and flat:
        flat[draw(st.integers(0, len(flat) - 1))] = draw(odd)
        return flat
    with contextlib.suppress(Exception), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return draw(st.sampled_from(CONTAINERS))(flat)
    return flat


# -- flavors ----------------------------------------------------------------------------------------------------------

CUTS = st.sampled_from(["", "", "@10", "@1", "@0", "@-1", "@None", "@" + "9" * 21, "@" + "1" * 4500])
SOME_K = st.sampled_from([[None, 2], 2**63, (), (3, 3), 0]) | odd


@st.composite
def texts_and_switches(draw: st.DrawFn) -> Any:
    """Draw the string of a flavor, or its switches, one of them possibly unusual."""
    if draw(rarely):
        return draw(st.text() | odd)
    flavor = draw(flavors(callables=False))
    if draw(st.booleans()):
        text = str(flavor)
        name, rest = draw(st.sampled_from(["ndcg", *PRESETS])) + draw(CUTS), text[text.index("[") :]
        return draw(damaged(st.sampled_from([text, text, name, name + rest])))
    switches = {each.name: getattr(flavor, each.name) for each in fields(Flavor) if each.init}
    if draw(st.booleans()):
        switches[draw(st.sampled_from(list(switches)))] = draw(odd)
    return switches


def attempt_parse(case: Any) -> None:
    """Check that a flavor without callables parses from its string."""
    flavor = Flavor(**case) if isinstance(case, dict) and "gain" in case else Flavor.parse(case)
    text = str(flavor)
    if callable(flavor.gain) or callable(flavor.discount):
        return
    expect(Flavor.parse(text) == flavor, f"{text} reads back as another flavor")
    expect(hash(Flavor.parse(text)) == hash(flavor), "equal flavors hash alike")
    expect(" " not in text, "a text has no spaces")
    expect(pickle.loads(pickle.dumps(flavor)) == flavor, "pickled")
    expect(eval(repr(flavor), {"Flavor": Flavor, "nan": math.nan}) == flavor, "repr")
    expect(text in flavor.describe(), "described")
    expect(flavor.metric_name.startswith("ndcg_"), "named")
    for parameters in (lightgbm_params, xgboost_params, catboost_params):
        with contextlib.suppress(ValueError):
            parameters(flavor)


# -- files ------------------------------------------------------------------------------------------------------------

IDS = ["1", "07", "7", "q1", "q-2", "Ünïcode", "d#1", "1_0", "a" * 200, "\udcff", "-0"]


def as_letor(names: list[str], problem: Problem) -> dict[str, str]:
    """Return LETOR lines and scores."""
    rows = list(zip(names, problem.documents, strict=True))
    labels = "".join(f"{row.grade:g} qid:{name} 1:0.5 # d\n" for name, row in rows)
    return {"labels": labels, "scores": "".join(f"{row.score!r}\n" for _, row in rows)}


def as_trec(names: list[str], problem: Problem) -> dict[str, str]:
    """Return qrels and a run."""
    rows = list(zip(names, problem.documents, strict=True))
    qrels = "".join(f"{name} 0 {row.doc_id} {row.grade:g}\n" for name, row in rows)
    return {"qrels": qrels, "run": "".join(f"{name} Q0 {row.doc_id} 1 {row.score!r} tag\n" for name, row in rows)}


def as_tables(names: list[str], problem: Problem) -> dict[str, str]:
    """Return qrels and a run as CSV, with another column in quotes."""
    rows = list(zip(names, problem.documents, strict=True))
    qrels = "".join(f'{name},"a, ""b""\n c",{row.doc_id},{row.grade:g}\n' for name, row in rows)
    run = "".join(f"{name}\t{row.doc_id}\t{row.score!r}\n" for name, row in rows)
    return {"qrels": f"query_id,query,doc_id,relevance\n{qrels}", "run": f"query-id\tcorpus-id\tscore\n{run}"}


def as_json(names: list[str], problem: Problem) -> dict[str, str]:
    """Return qrels as JSONL of documents, and a run as an array of topics."""
    rows = list(zip(names, problem.documents, strict=True))
    qrels = [{"query_id": name, "doc_id": row.doc_id, "relevance": row.grade} for name, row in rows]
    listed = {name: [row.doc_id for topic, row in rows if topic == name] for name in dict.fromkeys(names)}
    run = [{"query": name, "retrieved": documents} for name, documents in listed.items()]
    return {"qrels": "".join(f"{json.dumps(each)}\n" for each in qrels), "run": json.dumps(run)}


def as_csv(names: list[str], problem: Problem) -> dict[str, str]:
    """Return a CSV table."""
    rows = zip(names, problem.documents, strict=True)
    body = "".join(f'"{name}",{row.doc_id},{row.grade:g},{row.score!r}\n' for name, row in rows)
    return {"rows": f"qid,docno,label,score\n{body}"}


@st.composite
def files(draw: st.DrawFn, form: Callable[[list[str], Problem], dict[str, str]]) -> dict[str, bytes]:
    """Draw the files of queries, and corrupt one of them: its text, and sometimes its bytes."""
    problem = draw(problems(draw(flavors(callables=False)), finite=draw(st.integers(0, 9)) > 0))
    ids = draw(st.permutations(IDS))
    made = form([ids[at] for at, size in enumerate(problem.group) for _ in range(size)], problem)
    name = draw(st.sampled_from(sorted(made)))
    made[name] = draw(damaged(st.just(made[name])))
    shown = {each: text.encode("utf-8", "surrogatepass") for each, text in made.items()}
    kind = draw(st.integers(0, 19))
    if kind == 0:
        shown[name] = gzip.compress(shown[name], 1, mtime=0)
    if kind < 3:
        at = draw(st.integers(0, len(shown[name])))
        shown[name] = shown[name][:at] + draw(st.binary(max_size=4)) + shown[name][at + 1 :]
    return shown


@contextlib.contextmanager
def written(contents: dict[str, bytes]) -> Iterator[Path]:
    """Write the files into a temporary folder."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        for name, content in contents.items():
            (Path(folder) / name).write_bytes(content)
        yield Path(folder)


def attempt_letor(case: Any) -> None:
    """Check the rows that the reader returns."""
    with written(case) as folder:
        check_rows(read_letor(folder / "labels", folder / "scores"))


def attempt_trec(case: Any) -> None:
    """Check the evaluation of the run."""
    with written(case) as folder:
        check_evaluation(ndcg_ml.evaluate_run(folder / "qrels", folder / "run", k=(1, None)), "trec_eval")


def attempt_columns(case: Any) -> None:
    """Check the rows that the reader returns."""
    with written(case) as folder:
        check_rows(read_columns(folder / "rows"))


def check_rows(rows: Any) -> None:
    """Check that columns have one length, labels are not infinite, and scores are not nan."""
    size = rows.y_true.size
    expect(rows.y_score.size == rows.qid.size == size > 0, "columns of one length")
    expect(rows.doc_id is None or rows.doc_id.size == size, "one id per row")
    expect(not np.isinf(rows.y_true).any() and not np.isnan(rows.y_score).any(), "finite labels, scores that rank")


# -- arrays -----------------------------------------------------------------------------------------------------------

FUNCTIONS = ["ndcg_score", "ndcg_score", "dcg_score", "evaluate", "prepare", "evaluate_ranked"]


@st.composite
def calls(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a function and its arguments, up to two of them unusual."""
    function = draw(st.sampled_from([*FUNCTIONS, *(["torch"] if tensors is not None else [])]))
    flavor: Any = draw(flavors())
    problem = draw(problems(flavor))
    tame = draw(st.booleans())
    if function == "evaluate_ranked":
        arguments: dict[str, Any] = {"grades": [[d.grade for d in query] for query in problem.queries]}
        if not tame:
            arguments["grades"] = [draw(dressed(each)) for each in arguments["grades"]]
    else:
        layout = draw(st.sampled_from(["sizes", "ids", "padded"]))
        arguments = problem.padded(flavor) if layout == "padded" else problem.flat(flavor)
        if layout == "ids":
            group = arguments.pop("group")
            arguments["qid"] = np.repeat(np.arange(group.size), group)
            if "query_weight" in arguments:  # queries without documents have no id
                arguments["query_weight"] = arguments["query_weight"][group > 0]
        for name in draw(st.lists(st.sampled_from(sorted(arguments)), max_size=0 if tame else 2, unique=True)):
            arguments[name] = draw(dressed(arguments[name]))
        if draw(rarely):
            name = draw(st.sampled_from(["qid", "group", "mask", "retrieved", "doc_id", "query_weight"]))
            arguments[name] = draw(odd)
    if draw(rarely):
        flavor = draw(odd)
    if draw(st.booleans()):
        arguments["k"] = draw(SOME_K if draw(rarely) else st.sampled_from([None, 1, 3, (1, 3), 10**18]))
    return {"function": function, "flavor": flavor, **arguments}


def attempt_arrays(case: Any) -> None:
    """Check the value, or the table of queries."""
    arguments = dict(case)
    function, flavor = arguments.pop("function"), arguments["flavor"]
    if function == "torch":
        attempt_torch(arguments)
    elif function in ("ndcg_score", "dcg_score"):
        check_value(getattr(ndcg_ml, function)(**arguments), flavor, dcg=function == "dcg_score")
    elif function == "prepare":
        scores = arguments.pop("y_score")
        prepared = ndcg_ml.prepare(**arguments)
        value, result = prepared(scores), prepared.evaluate(scores)
        check_value(value, flavor)
        check_evaluation(result, flavor)
        expect(repr(result.value) == repr(value), "evaluate and the call agree")
        check_value(prepared.dcg(scores), flavor, dcg=True)
    else:
        check_evaluation(getattr(ndcg_ml, function)(**arguments), flavor)


def attempt_torch(arguments: dict[str, Any]) -> None:
    """Check the value for tensors, for arguments that torch converts."""
    names = {"y_true": "labels", "y_score": "scores", "qid": "indexes", "group": "indexes"}
    arguments.pop("query_weight", None)
    kept = {}
    for name, value in arguments.items():
        kept[names.get(name, name)] = value
        if isinstance(value, np.ndarray):
            with contextlib.suppress(Exception):
                kept[names.get(name, name)] = torch.tensor(value)
    value, flavor, mask = tensors.ndcg(**kept), kept["flavor"], kept.get("mask")
    for each in value.values() if isinstance(value, dict) else [value]:
        each = each if mask is None else each[mask.any(-1)]  # a list without documents has no value
        may_be_nan = not isinstance(flavor, Flavor) or flavor.empty == "skip" or flavor.empty != flavor.empty
        expect(may_be_nan or not torch.isnan(each).any().item(), f"nan in {each}")
        if isinstance(flavor, Flavor) and bounded(flavor):
            expect(not ((each < 0) | (each > 1 + 1e-9)).any().item(), f"out of range: {each}")


def bounded(flavor: Flavor) -> bool:
    """Whether NDCG is between 0 and 1 by definition: gains are not negative, and no ranking is above the ideal."""
    plain = isinstance(flavor.gain, str) and isinstance(flavor.discount, str) and flavor.negative != "allow"
    return plain and flavor.ideal != "given" and flavor.recall_depth is None


def check_value(value: Any, flavor: Any, dcg: bool = False) -> None:
    """Check that the value is a float in range, or a dict of them by cut-off."""
    for each in value.values() if isinstance(value, dict) else [value]:
        expect(type(each) is float, f"a float, not {type(each).__name__}")
        if dcg:
            expect(math.isfinite(each), f"a DCG of {each}")
        elif isinstance(flavor, Flavor):
            expect(flavor.empty != flavor.empty or not math.isnan(each), "a nan that the flavor does not ask for")
            expect(not bounded(flavor) or math.isnan(each) or 0 <= each <= 1 + 1e-9, f"out of range: {each}")


def check_evaluation(result: Any, flavor: Any) -> None:
    """Check the value, and that the table has one row per query."""
    check_value(result.value, flavor)
    table = result.per_query
    expect(len(table) == result.n_queries == len(table.qid), "one row per query")
    for name, column in dict(table).items():
        expect(isinstance(column, np.ndarray) and len(column) == len(table), f"column {name}")
    if isinstance(flavor, Flavor):
        wrong = np.isnan(table.ndcg)
        if flavor.empty == "skip" or flavor.empty != flavor.empty:
            wrong &= ~table.empty
        expect(not wrong.any(), "a nan in the table that the flavor does not ask for")
    expect(isinstance(str(result), str), "printed")


# -- runs in memory ---------------------------------------------------------------------------------------------------

TOPICS = [("a", "b", "c", "d", "e"), (1, 2, 3, 4, 5), ("1", "01", "q\0", "\ud800", ""), (2**63, -1, 2, 2**64, 10**30)]


@st.composite
def runs_in_memory(draw: st.DrawFn) -> dict[str, Any]:
    """Draw qrels and a run as dicts, lists or data frames, sometimes with unusual values."""
    problem = draw(problems(draw(flavors(gain="linear", ideal="global", ties="docid")), weighted=False))
    topics: list[Any] = list(draw(st.sampled_from(TOPICS)))
    if draw(rarely):
        topics[0] = draw(odd)
    sides: dict[str, Any] = {}
    for side, field in (("qrels", "grade"), ("run", "score")):
        made: dict[Any, Any] = {}
        for topic, query in zip(topics, problem.queries, strict=False):
            with contextlib.suppress(TypeError, ValueError):
                made[topic] = {each.doc_id: getattr(each, field) for each in query}
        change = draw(st.integers(0, 9))
        if change == 0 and made:
            made[draw(st.sampled_from(list(made)))] = draw(odd | dressed([1, 2]))
        elif change == 1 and side == "run":
            made = {topic: list(docs) for topic, docs in made.items()}
        elif change == 2:
            names = ("qid", "docno", "label" if side == "qrels" else "score")
            rows = [(topic, doc, value) for topic, docs in made.items() for doc, value in docs.items()]
            columns = {name: [row[at] for row in rows] for at, name in enumerate(names)}
            with contextlib.suppress(Exception):
                made = draw(st.sampled_from([each for each in (pd, pl) if each is not None])).DataFrame(columns)
        elif change == 3:
            made = draw(odd.filter(lambda each: not isinstance(each, str)))  # a str is a path
        sides[side] = made
    flavor = draw(odd if draw(rarely) else st.just("trec_eval") | flavors())
    k = draw(SOME_K if draw(rarely) else st.sampled_from([..., None, 1, (1, 5)]))
    return {**sides, "flavor": flavor, "k": k, "queries": draw(st.sampled_from(["qrels", "run", "both"]))}


def attempt_runs(case: Any) -> None:
    """Check the evaluation of the run."""
    result = ndcg_ml.evaluate_run(**case)
    check_evaluation(result, case["flavor"])
    for topics in (result.per_query.qid, result.qrels_only, result.run_only):
        expect(all(isinstance(each, (str, int)) for each in topics.tolist()), f"topics as they were: {topics}")


TARGETS: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], None]]] = {
    "parse": (texts_and_switches(), attempt_parse),
    "letor": (files(as_letor), attempt_letor),
    "trec": (files(as_trec), attempt_trec),
    "tables": (files(as_tables), attempt_trec),
    "json": (files(as_json), attempt_trec),
    "columns": (files(as_csv), attempt_columns),
    "arrays": (calls(), attempt_arrays),
    "runs": (runs_in_memory(), attempt_runs),
}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m reliability.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--target", choices=TARGETS, action="append", help="run only this target")
    parser.add_argument("--inputs", type=int, default=2000, help="inputs per target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", action="store_true", help="write reliability/results/fuzz.json")
    args = parser.parse_args()
    rows = []
    for target in args.target or TARGETS:
        started = time.perf_counter()
        tally = run(target, args.inputs, args.seed, (Phase.generate, Phase.shrink))
        row = {"target": target, "inputs": f"{tally.total():,}", **{name: f"{tally[name]:,}" for name in sorted(tally)}}
        rows.append({**row, "fails": "0", "seconds": f"{time.perf_counter() - started:.0f}"})
        print(rows[-1], flush=True)
    if args.record:
        save(
            "fuzz",
            *("numpy", "hypothesis", "pandas", "polars", "pyarrow", "torch"),
            title="Fuzzed inputs",
            tried="Texts of flavors, data files, arrays and runs in memory are generated and then corrupted. Each must "
            "give a documented result, or a ValueError or TypeError within five seconds, without a warning.",
            command=f"python -m reliability.fuzz --inputs {args.inputs} --seed {args.seed} --record",
            count=sum(int(row["inputs"].replace(",", "")) for row in rows),
            unit="inputs",
            failed=0,
            figures=rows,
        )


if __name__ == "__main__":
    main()
