"""Test a random sample of one-token mutants: ``python -m reliability.mutants --group statistics --count 40 --seed 1``.

Each mutant changes one token of a file in a copy of the project, where the tests of that file run until one fails. The
libraries that tests need are imported once. Each mutant runs in a forked process, which imports the package and the
tests.

A mutant for which no test fails survives. Either tests are missing, or it is equivalent to the original. ``--again``
runs the survivors again, after tests were added. ``--record`` writes the record, which docs/reliability.md shows.

The table TESTS lists the tests of each file. With ``--seen .coverage``, the tests that run the changed line come first,
the quickest before the others. Create that file with pytest-cov,
``pytest --cov=ndcg_ml --cov-branch --cov-context=test --durations=0 > log.txt``, and pass the durations as
``--durations log.txt``.
"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from hypothesis import Phase, settings

from reliability.records import RESULTS, save

ROOT = Path(__file__).parents[1]

GROUPS = {
    "adapters": (
        "ndcg_ml/sklearn/*.py",
        "ndcg_ml/lightgbm.py",
        "ndcg_ml/xgboost.py",
        "ndcg_ml/catboost.py",
        "ndcg_ml/_params.py",
    ),
    "statistics": ("ndcg_ml/_stats/*.py", "ndcg_ml/_compare/*.py", "ndcg_ml/result.py"),
    "files": ("ndcg_ml/_files/*.py", "ndcg_ml/readers.py"),
    "parts": ("ndcg_ml/_parts/*.py", "ndcg_ml/parts.py"),
    "torch": ("ndcg_ml/torch/*.py", "ndcg_ml/torch/losses/*.py"),
}

TESTS = {
    "ndcg_ml/sklearn/paired_search.py": "adapters/test_paired_search core/test_decisions",
    "ndcg_ml/sklearn/kept_scores.py": "adapters/test_paired_search",
    "ndcg_ml/sklearn/": "adapters/test_* engines/test_index_of_adapters",
    "ndcg_ml/lightgbm.py": "adapters/test_lightgbm_* adapters/test_*",
    "ndcg_ml/xgboost.py": "adapters/test_xgboost_* adapters/test_* engines/test_index_of_adapters",
    "ndcg_ml/catboost.py": "adapters/test_catboost_* adapters/test_*",
    "ndcg_ml/_params.py": "adapters/test_*_eval adapters/test_*",
    "ndcg_ml/_compare/slice": "core/test_slices* core/test_* engines/test_slices_of_frames",
    "ndcg_ml/_stats/": "core/test_* engines/test_compare_of_frames adapters/test_paired_search",
    "ndcg_ml/_compare/": "core/test_* engines/test_compare_of_frames adapters/test_paired_search",
    "ndcg_ml/result.py": "core/test_* engines/test_frames",
    "ndcg_ml/_files/": "core/test_readers core/test_trec core/test_* engines/test_*",
    "ndcg_ml/readers.py": "core/test_readers core/test_formats engines/test_*",
    "ndcg_ml/_parts/": "core/test_partial engines/test_parquet engines/test_engines",
    "ndcg_ml/parts.py": "core/test_partial engines/test_parquet engines/test_*frames",
    "ndcg_ml/torch/losses/": "pytorch/test_torch_*",
    "ndcg_ml/torch/metric.py": "pytorch/test_torch_metric*",
    "ndcg_ml/torch/_metric_sums.py": "pytorch/test_torch_metric*",
    "ndcg_ml/torch/": "pytorch/test_torch_kernel pytorch/test_torch_*",
}
"""The tests of a file, by the beginning of its path. The first entry that matches is used."""

LIMIT = 900
"""Maximum processor seconds of one mutant, several times those of the tests of any file without a mutant."""
QUICK_LIMIT = 60
"""Maximum processor seconds of the tests that run first."""
WAIT = 3000
"""Maximum seconds of a mutant that does not end. It is long because other processes may slow down the tests."""
PAST = "past the limit"

_LOADED = (
    *("numpy", "pandas", "polars", "pyarrow", "pyarrow.parquet", "scipy.stats", "sklearn", "sklearn.model_selection"),
    *("lightgbm", "xgboost", "catboost", "joblib", "hypothesis", "hypothesis.extra.numpy", "numba", "matplotlib"),
    *("click", "torch", "torchmetrics", "torch.nested"),
)

_SWAPPED: dict[type[ast.AST], tuple[tuple[str, str], ...]] = {
    ast.Lt: (("<", "<="), ("<", ">=")),
    ast.LtE: (("<=", "<"), ("<=", ">")),
    ast.Gt: ((">", ">="), (">", "<=")),
    ast.GtE: ((">=", ">"), (">=", "<")),
    ast.Eq: (("==", "!="),),
    ast.NotEq: (("!=", "=="),),
    ast.Is: (("is", "is not"),),
    ast.IsNot: (("is not", "is"),),
    ast.In: (("in", "not in"),),
    ast.NotIn: (("not in", "in"),),
    ast.Add: (("+", "-"),),
    ast.Sub: (("-", "+"),),
    ast.Mult: (("*", "/"),),
    ast.Div: (("/", "*"),),
    ast.FloorDiv: (("//", "/"),),
    ast.Mod: (("%", "//"),),
    ast.Pow: (("**", "*"),),
    ast.BitAnd: (("&", "|"),),
    ast.BitOr: (("|", "&"),),
    ast.LShift: (("<<", ">>"),),
    ast.RShift: ((">>", "<<"),),
    ast.And: (("and", "or"),),
    ast.Or: (("or", "and"),),
}


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A change of one token."""

    group: str
    file: str
    line: int
    kind: str
    was: str
    now: str
    start: int
    stop: int
    text: str

    @property
    def name(self) -> str:
        """The file and the line before and after, which do not change if other lines are edited."""
        return f"{self.file}: {self.was} -> {self.now}"


# -- sites ------------------------------------------------------------------------------------------------------------


def sites(group: str, path: Path) -> list[Mutant]:
    """Return every mutant of a file."""
    source = path.read_text("utf-8")
    lines = source.encode().splitlines(keepends=True)
    begins = [0]
    for line in lines:
        begins.append(begins[-1] + len(line))
    encoded = source.encode()
    mutants = []
    for kind, start, stop, text in _changes(ast.parse(source), encoded, begins):
        if text.encode() == encoded[start:stop]:
            continue
        first = next(at for at, begin in enumerate(begins) if begin > start)
        changed = (encoded[begins[first - 1] : start] + text.encode() + encoded[stop:]).split(b"\n")[0]
        mutants.append(
            Mutant(
                group=group,
                file=path.relative_to(ROOT).as_posix(),
                line=first,
                kind=kind,
                was=lines[first - 1].decode().strip(),
                now=changed.decode().strip(),
                start=start,
                stop=stop,
                text=text,
            )
        )
    return mutants


def _changes(tree: ast.Module, source: bytes, begins: list[int]) -> Iterator[tuple[str, int, int, str]]:
    """Yield the kind, begin, end and new text of each change."""

    def span(node: Any) -> tuple[int, int]:
        return begins[node.lineno - 1] + node.col_offset, begins[node.end_lineno - 1] + node.end_col_offset

    def between(left: ast.AST, operator: ast.AST, right: ast.AST, kind: str) -> Iterator[tuple[str, int, int, str]]:
        start, stop = span(left)[1], span(right)[0]
        for old, new in _SWAPPED.get(type(operator), ()):
            at = source.find(old.encode(), start, stop)
            if at >= 0:
                yield kind, at, at + len(old), new

    defaults = set()
    for node in _code(tree):
        if isinstance(node, ast.arguments):
            for default in [*node.defaults, *node.kw_defaults]:
                defaults.add(default)
                if isinstance(default, ast.Constant) and isinstance(default.value, str):
                    yield "default", *span(default), repr(default.value + "_")
    for node in _code(tree):
        if isinstance(node, ast.Compare):
            for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
                yield from between(left, operator, right, "comparison")
        elif isinstance(node, ast.BinOp):
            yield from between(node.left, node.op, node.right, "arithmetic")
        elif isinstance(node, ast.BoolOp):
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield from between(left, node.op, right, "boolean")
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub, ast.Invert)):
            at = span(node)[0]
            yield "negation", at, at + (3 if isinstance(node.op, ast.Not) else 1), ""
        elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
            start, stop = span(node.test)
            yield "negation", start, stop, f"not ({source[start:stop].decode()})"
        elif isinstance(node, ast.Constant) and type(node.value) in (bool, int, float):
            kind = "default" if node in defaults else "constant"
            if type(node.value) is bool:
                yield kind, *span(node), str(not node.value)
            else:
                yield kind, *span(node), repr(node.value + 1)
                yield kind, *span(node), repr(node.value - 1)
        elif isinstance(node, ast.Raise):
            yield "dropped raise", *span(node), "pass"
        elif isinstance(node, ast.Return) and node.value is not None:
            yield "dropped return", *span(node), "return None"


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run, without annotations, f-strings and code for type checkers."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list") or isinstance(node, ast.JoinedStr):
            continue
        for child in value if isinstance(value, list) else [value]:
            of_types = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
            if isinstance(child, ast.AST) and not of_types and "TypeAlias" not in ast.unparse(child)[:80]:
                yield from _code(child)


# -- runs -------------------------------------------------------------------------------------------------------------


def tests_of(file: str) -> list[str]:
    """Return the test files for a file of the package."""
    for start, names in TESTS.items():
        if file.startswith(start):
            found = [
                path.relative_to(ROOT).as_posix() for name in names.split() for path in ROOT.glob(f"tests/{name}.py")
            ]
            return list(dict.fromkeys(found))
    raise ValueError(f"TESTS must have an entry for every file; got none for {file}.")


def known_tests(folder: Path) -> list[str]:
    """Return every test of the suite, because pytest fails on names of removed tests.

    Doctests and tests of pages are excluded, because they fail in the copy without a mutant.
    """
    in_child(folder, [], "--collect-only", "--no-header")
    lines = (folder / "out.txt").read_text("utf-8").splitlines()
    return [line for line in lines if "::" in line and line.startswith("tests/") and not line.startswith("tests/pages")]


def in_child(folder: Path, tests: list[str], *options: str, limit: int = LIMIT) -> tuple[bool | None, list[str]]:
    """Run tests in a forked child that imports the package of this folder.

    Returns
    -------
    passed : bool or None
        None past a limit.
    failures : list of str
        The lines that name the failed tests.
    """
    out = folder / "out.txt"
    child = os.fork()
    if not child:  # the child
        os.setsid()
        os.chdir(folder)
        sys.path.insert(0, str(folder))
        to = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(to, 1)
        os.dup2(to, 2)
        code = 1
        try:
            import pytest

            # pytest cannot rewrite modules that were imported before the fork, and warns of it.
            quiet = ["-W", "ignore::pytest.PytestAssertRewriteWarning", "-p", "no:cacheprovider", "-p", "no:xdist"]
            code = pytest.main(["-q", "--tb=line", *quiet, *options, *tests])
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(int(code))
    end = time.monotonic() + WAIT
    while time.monotonic() < end and _used(child) < limit:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            lines = out.read_text("utf-8", "replace").splitlines()
            words = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
            code = os.waitstatus_to_exitcode(status)
            return code == 0, words or [f"exit status {code}"] * (code != 0)
        time.sleep(0.05)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None, [PAST]


def _used(child: int) -> float:
    """Return the processor seconds of a child, or 0 if the system does not report them."""
    try:
        fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def copied(folder: Path) -> None:
    """Copy the files of the project that git does not ignore."""
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "ndcg_ml", "tests", "reliability", "docs", "pyproject.toml"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\n")  # fmt: skip
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


def drawn_from(groups: list[str], count: int, seed: int) -> list[Mutant]:
    """Return a sample of each group, interleaved, so that an interrupted run has tried all groups equally."""
    samples = []
    for group in groups:
        every = every_of(group)
        print(f"{group}: {len(every)} mutants", flush=True)
        samples.append(random.Random(seed).sample(every, min(count, len(every))))
    return [mutant for turn in zip_longest(*samples) for mutant in turn if mutant is not None]


def every_of(group: str) -> list[Mutant]:
    """Return every mutant of the files of a group."""
    return [mutant for pattern in GROUPS[group] for path in sorted(ROOT.glob(pattern)) for mutant in sites(group, path)]


def run(mutants: list[Mutant], out: Path, lock: Path | None, seen: Path | None, log: Path | None) -> None:
    """Try mutants in a copy of the project, and append each result."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("NDCG_ML_DATA", str(ROOT.parent / "shared" / "data"))
    os.environ["COLUMNS"] = "300"
    for name in _LOADED:
        with suppress(ImportError):
            importlib.import_module(name)
    # Failures are not shrunk. The profiles of tests/conftest.py inherit this setting.
    settings.register_profile("unshrunk", phases=[Phase.explicit, Phase.generate])
    settings.load_profile("unshrunk")
    gc.freeze()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "project"
        folder.mkdir()
        copied(folder)
        lines = None
        if seen is not None:
            from reliability.seen import Seen  # needs coverage.py

            lines = Seen(seen, log, known_tests(folder))
        for mutant in mutants:
            path, original = folder / mutant.file, (ROOT / mutant.file).read_bytes()
            path.write_bytes(original[: mutant.start] + mutant.text.encode() + original[mutant.stop :])
            begun = time.monotonic()
            quick, more = ([], []) if lines is None else lines.tests_of(mutant.file, mutant.line)
            with locked(lock):
                for tests, limit in ((quick, QUICK_LIMIT), (more, LIMIT), (tests_of(mutant.file), LIMIT)):
                    passed, words = in_child(folder, tests, "-x", limit=limit) if tests else (True, [])
                    if passed is not True:
                        break
            path.write_bytes(original)
            row = {
                "name": mutant.name,
                "killed": passed is not True,
                "by": words[0][:300] if words else "",
                "seconds": round(time.monotonic() - begun, 1),
                **asdict(mutant),
            }
            word = "SURVIVED" if passed else "killed  "
            print(word, row["seconds"], f"{mutant.file}:{mutant.line}", mutant.now, flush=True)
            with out.open("a") as file:
                file.write(json.dumps(row) + "\n")
        with locked(lock):
            _confirm(folder, read(out))


def _confirm(folder: Path, rows: list[dict[str, Any]]) -> None:
    """Check that the tests that killed mutants pass without a mutant."""
    tests = {row["by"].split(" - ")[0].split("[")[0].split()[1] for row in rows if " tests/" in row["by"]}
    if tests:
        passed, words = in_child(folder, sorted(tests))
        print("all tests that killed pass without a mutant" if passed else f"they fail without a mutant: {words}")


def read(out: Path) -> list[dict[str, Any]]:
    """Return the last result of each mutant; ``at_first`` is its first result."""
    rows: dict[str, dict[str, Any]] = {}
    for line in out.read_text().splitlines() if out.exists() else []:
        row = json.loads(line)
        first = rows.get(row["name"], {}).get("at_first", row["killed"])
        rows[row["name"]] = {**row, "at_first": first}
    return list(rows.values())


def explained() -> list[dict[str, str]]:
    """Return the survivors that the record lists as equivalent, with the reasons, which are written by hand."""
    path = RESULTS / "mutants.json"
    return json.loads(path.read_text()).get("figures", []) if path.exists() else []


def record(rows: list[dict[str, Any]], note: str, command: str) -> None:
    """Write the record of a sample. A survivor is equivalent if the old record has a reason for it."""
    names = {row["name"] for row in rows}
    why = {one["equivalent"]: one["why"] for one in explained() if one["equivalent"] in names}
    score = {}
    for group in GROUPS:
        of_group = [row for row in rows if row["group"] == group]
        equivalent = sum(row["name"] in why for row in of_group)
        killed = sum(row["killed"] for row in of_group)
        score[group] = {
            "mutants": len(of_group),
            "equivalent": equivalent,
            "killed at first": sum(row["at_first"] for row in of_group),
            "killed": killed,
            "survived": len(of_group) - equivalent - killed,
        }
    every = {key: sum(of_group[key] for of_group in score.values()) for key in score["torch"]}
    first, kills = every["killed at first"], every["mutants"] - every["equivalent"]
    save(
        "mutants",
        *("numpy", "hypothesis", "pytest", "torch"),
        title="A sample of mutants of adapters, statistics, files, parts and torch",
        tried="One token of a file was changed at a time (comparisons, arithmetic, constants by one, negations, "
        "defaults, a raise or return left out), at places drawn evenly from each group, and the tests ran that run the "
        "line, the cheapest first, and then those of a table of the files. "
        f"Of {every['mutants']} mutants {every['equivalent']} are equivalent, {first} of the other {kills} were killed "
        f"at first ({100 * first / kills:.1f} %), and {every['killed']} with the tests that were written for the "
        f"survivors. What a new sample would show is nearer the first figure than the last. {note}".strip(),
        command=command,
        count=every["mutants"],
        unit="mutants",
        failed=every["survived"],
        score=score,
        figures=[{"equivalent": name, "why": reason} for name, reason in why.items()],
    )


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", choices=GROUPS, action="append", help="default: all")
    parser.add_argument("--count", type=int, default=40, help="mutants per group")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--out", type=Path, required=True, help="JSON lines, one per mutant; mutants in the file are not run again"
    )
    parser.add_argument("--seen", type=Path, help="a coverage file with the tests that ran each line")
    parser.add_argument("--durations", type=Path, help="the log of that run, with the durations of its tests")
    parser.add_argument("--lock", type=Path, help="a file that is locked while tests run")
    parser.add_argument("--again", action="store_true", help="run only the survivors of --out again")
    parser.add_argument("--record", action="store_true", help="write the record of --out without running mutants")
    parser.add_argument("--note", default="", help="a note on the sample for the record")
    chosen = parser.parse_args()
    groups = chosen.group or list(GROUPS)
    before = read(chosen.out)
    if chosen.record:
        options = f"--count {chosen.count} --seed {chosen.seed} --seen .coverage --durations log.txt"
        record(before, chosen.note, f"python -m reliability.mutants {options} --out mutants.jsonl")
        return
    if chosen.again:
        names = {row["name"] for row in before if not row["killed"]} - {one["equivalent"] for one in explained()}
        every = {mutant.name: mutant for group in groups for mutant in every_of(group) if mutant.name in names}
        mutants = list(every.values())
    else:
        names = {row["name"] for row in before}
        mutants = [mutant for mutant in drawn_from(groups, chosen.count, chosen.seed) if mutant.name not in names]
    run(mutants, chosen.out, chosen.lock, chosen.seen, chosen.durations)


class locked:  # noqa: N801
    """Lock a file, if given, so that tests of one machine do not run at once."""

    def __init__(self, path: Path | None) -> None:
        self.file = None if path is None else path.open("w")

    def __enter__(self) -> None:
        if self.file is not None:
            import fcntl

            fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        if self.file is not None:
            self.file.close()


if __name__ == "__main__":
    main()
