"""Test a random sample of mutants of the package: ``python -m reliability.mutants --seed 1 --minutes 60``.

A mutant changes one place of one statement in a copy of the project. The tests that reach its line run there, the
quickest first, until one fails. If none fails within the limit, the mutant survives. Then either a test is missing, or
equivalents.json says why no test should fail.

An area is a module or package directly in ndcg_ml. Each area has mutants in proportion to its lines of code. The first
run records the tests of each line with coverage.py, which takes as long as a few runs of the suite (``--record`` does
it again, after changes of tests). The record and the results are in .cache/mutants. A run continues the sample of its
seed. ``--again`` runs survivors again, after tests were added. ``--save`` writes the record that
reliability/results/runs.md shows.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import itertools
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hypothesis import Phase, settings
from scipy.stats import binomtest

from reliability.records import save

ROOT = Path(__file__).parents[1]
CACHE = ROOT / ".cache" / "mutants"
RECORD = CACHE / "tests.json"
JUDGED = Path(__file__).with_name("equivalents.json")
"""Survivors judged by hand: the key of the mutant, its kind ("equivalent", "speed" or "message"), and why."""
MOST_MESSAGES = 0.15
"""Largest share of the survivors that may differ in the words of a message alone."""

QUICK, ALL, EACH = 5.0, 120.0, 0.01
"""Recorded seconds of the tests that run first and of all tests of a mutant, and what pytest adds to each test."""
SLOWER, START = 5, 60
"""A mutant is killed after START processor seconds and SLOWER times the recorded seconds of its tests, or after SLOWER
times that by the clock. Each of its processes may use half of the memory."""
PAST = "past the limit"

Tests = frozenset[int]


@dataclass(frozen=True, kw_only=True)
class Place:
    """A line: the function whose body it is in, if any, and what the statement of its module or class defines."""

    module: str
    function: str
    text: str
    defines: tuple[str, ...]

    @property
    def area(self) -> str:
        """The module or package directly in ndcg_ml."""
        return self.module.partition(".")[0]

    @property
    def key(self) -> str:
        """A key that does not change if the line, its function or its file moves."""
        return f"{self.function}| {self.text}"


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A change of one place of a file."""

    key: str
    area: str
    file: str
    line: int
    places: tuple[Place, ...]
    """The lines of its statement, without the body of a compound one."""
    source: bytes


# -- mutants ----------------------------------------------------------------------------------------------------------

_SWAPPED: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Lt: ("<", "<=", ">="),
    ast.LtE: ("<=", "<", ">"),
    ast.Gt: (">", ">=", "<="),
    ast.GtE: (">=", ">", "<"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
_OTHERS = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any"}


def files() -> Iterator[tuple[Path, str, list[Place]]]:
    """Yield each file of the package, its text and the places of its lines."""
    for path in sorted((ROOT / "ndcg_ml").rglob("*.py")):
        source = path.read_text("utf-8")
        yield path, source, places(".".join(path.relative_to(ROOT / "ndcg_ml").with_suffix("").parts), source)


def places(module: str, source: str) -> list[Place]:
    """Return the place of each line of a file."""
    rows, tree = source.split("\n"), ast.parse(source)
    every = tuple(node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef)))
    functions, defines = [""] * len(rows), [every] * len(rows)

    def visit(body: Iterable[ast.AST], scope: str) -> None:
        for node in (node for node in body if isinstance(node, ast.stmt)):
            stored = [each for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
            names = (scope,) if scope else tuple(each.id for each in stored) or every
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names = (f"{scope}.{node.name}".lstrip("."),)
            first, last = node.lineno - 1, node.end_lineno or 0
            defines[first:last] = [names] * (last - first)
            if isinstance(node, ast.FunctionDef):
                first = node.body[0].lineno - 1
                functions[first:last] = names * (last - first)
            else:
                visit(ast.iter_child_nodes(node), names[0] if isinstance(node, ast.ClassDef) else scope)

    visit(tree.body, "")
    made = zip(functions, rows, defines, strict=True)
    return [Place(module=module, function=function, text=row.strip(), defines=names) for function, row, names in made]


def mutants_of(path: Path, source: str, where: list[Place]) -> tuple[int, list[Mutant]]:
    """Return the number of lines of code of a file, and its mutants."""
    encoded = source.encode()
    begins = [0, *itertools.accumulate(map(len, encoded.splitlines(keepends=True)))]
    found, lines = [], set()
    for node, statement, default in _code(ast.parse(source)):
        lines.add(node.lineno)
        body = getattr(statement, "body", None)
        last = max(body[0].lineno - 1, statement.lineno) if body else statement.end_lineno
        for start, stop, new in _changes(node, default, encoded, begins):
            line = next(at for at, begin in enumerate(begins) if begin > start)
            first, end = begins[line - 1], next(begin for begin in begins if begin >= stop)
            texts = encoded[first:end], encoded[first:start] + new.encode() + encoded[stop:end]
            was, now = (" ".join(text.decode().split()) for text in texts)
            place = where[line - 1]
            found.append(
                Mutant(
                    key=f"{place.function or ', '.join(place.defines)}| {was} -> {now}",
                    area=place.area,
                    file=path.relative_to(ROOT).as_posix(),
                    line=line,
                    places=tuple(where[statement.lineno - 1 : last]),
                    source=encoded[:first] + texts[1] + encoded[end:],
                )
            )
    return len(lines), found


def _changes(node: Any, default: bool, source: bytes, begins: list[int]) -> Iterator[tuple[int, int, str]]:
    """Yield the begin, end and new text of each change of a node."""

    def span(node: Any) -> tuple[int, int]:
        return begins[node.lineno - 1] + node.col_offset, begins[node.end_lineno - 1] + node.end_col_offset

    def swapped(left: ast.AST, operator: ast.AST, right: ast.AST) -> Iterator[tuple[int, int, str]]:
        old, *others = _SWAPPED.get(type(operator), ("",))
        at = source.find(old.encode(), span(left)[1], span(right)[0])
        return ((at, at + len(old), new) for new in others if at >= 0)

    start, stop = span(node)
    name = getattr(node, "id", getattr(node, "attr", ""))
    if isinstance(node, ast.Compare):
        for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            yield from swapped(left, operator, right)
    elif isinstance(node, ast.BinOp):
        yield from swapped(node.left, node.op, node.right)
    elif isinstance(node, ast.BoolOp):
        for left, right in itertools.pairwise(node.values):
            yield from swapped(left, node.op, right)
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.UAdd):
        yield start, start + (3 if isinstance(node.op, ast.Not) else 1), ""
    elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
        start, stop = span(node.test)
        yield start, stop, f"not ({source[start:stop].decode()})"
    elif isinstance(node, ast.Constant):
        yield from ((start, stop, repr(other)) for other in _other_values(node.value, default))
    elif isinstance(node, ast.keyword) and node.arg and not _is_prose(node.value):
        yield start, stop + len(re.match(rb"\s*,?", source[stop:])[0]), ""
    elif isinstance(node, (ast.Name, ast.Attribute)) and name in _OTHERS:
        yield stop - len(name), stop, _OTHERS[name]
    elif isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
        yield start, stop, "return None"
    elif isinstance(node, (ast.Raise, ast.AugAssign, ast.Expr)) or (
        isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Subscript, ast.Attribute))
    ):
        yield start, stop, "pass"


def _other_values(value: Any, default: bool) -> list[Any]:
    """Return the values that replace a constant."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, (int, float)):
        return [value + 1, value - 1]
    return [value + "_"] if isinstance(value, str) and default else []


def _is_prose(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and " " in str(node.value))


def _code(node: ast.AST, statement: Any = None, default: bool = False) -> Iterator[tuple[Any, Any, bool]]:
    """Yield the nodes that run, their statements, and whether they are defaults.

    Annotations, decorators, f-strings, docstrings and code for type checkers are left out.
    """
    if isinstance(node, ast.stmt):
        statement = node
        words = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        of_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if words or of_types or (isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias"):
            return
    if isinstance(node, ast.JoinedStr):
        return
    if hasattr(node, "lineno"):
        yield node, statement, default
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _code(child, statement, name in ("defaults", "kw_defaults"))


def drawn(count: int, seed: int) -> list[Mutant]:
    """Return about `count` mutants in a random order. Any first part of them is a sample as well.

    The order is that of digests of the keys. An edit of the package thus changes the mutants of edited lines alone.
    """
    lines, twins, of_area = Counter[str](), Counter[str](), defaultdict(list)
    for path, source, where in files():
        number, mutants = mutants_of(path, source, where)
        lines[where[0].area] += number
        for mutant in mutants:
            twins[mutant.key] += 1
            twin = f" #{twins[mutant.key]}" if twins[mutant.key] > 1 else ""
            of_area[mutant.area].append(replace(mutant, key=mutant.key + twin))
    if gone := [each["mutant"] for each in judged() if each["mutant"] not in twins]:
        print("\n  ".join(["judged, but not in the package:", *gone]))

    def digest(mutant: Mutant) -> str:
        return hashlib.sha256(f"{seed} {mutant.key}".encode()).hexdigest()

    sample = []
    for area, mutants in of_area.items():
        valid = (mutant for mutant in sorted(mutants, key=digest) if _compiles(mutant.source))
        sample += itertools.islice(valid, max(1, round(count * lines[area] / lines.total())))
    return sorted(sample, key=digest)


def _compiles(source: bytes) -> bool:
    with suppress(SyntaxError):
        return compile(source, "", "exec") is not None
    return False


# -- the tests of a line ----------------------------------------------------------------------------------------------


def pytest_addoption() -> None:
    """Do not shrink failures: the profiles of the tests inherit this. (This and the next two are hooks of pytest.)"""
    settings.register_profile("unshrunk", phases=[Phase.explicit, Phase.generate])
    settings.load_profile("unshrunk")


def pytest_runtest_logstart(nodeid: str) -> None:
    """Begin the context of a test."""
    if "COVERAGE_PROCESS_START" in os.environ:
        from coverage import Coverage

        Coverage.current().switch_context(nodeid)


def pytest_runtest_logreport(report: Any) -> None:
    """Append the outcome of a setup, call or teardown."""
    if not hasattr(report, "node"):  # a worker of pytest-xdist has written it
        with Path(os.environ["NDCG_ML_REPORTS"]).open("a") as file:
            print(json.dumps([report.nodeid, report.outcome, report.duration]), file=file)


@contextmanager
def copied() -> Iterator[Path]:
    """Copy the files of the project that git does not ignore."""
    names = subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True)
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder).resolve() / "project"
        for name in names.splitlines():
            if (ROOT / name).is_file():
                (project / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, project / name)
        yield project


def run_tests(
    folder: Path, *tests: str, limit: float = resource.RLIM_INFINITY, **more: str
) -> tuple[int | None, list[tuple[str, str, float]]]:
    """Run tests in a process of its own. Return its exit status, None past the limit, and the reports."""
    reports = folder.parent / "reports"
    reports.write_text("")
    default = {"OMP_NUM_THREADS": "1", "NDCG_ML_DATA": str(ROOT.parent / "shared" / "data")}
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))

    def bounded() -> None:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
        for kind, most in ((resource.RLIMIT_CPU, int(limit)), (resource.RLIMIT_DATA, memory)):
            resource.setrlimit(kind, (most, most))

    options = ["-q", "--tb=no", "-p", "no:cacheprovider", "-p", "reliability.mutants"]
    with (folder.parent / "printed").open("w") as printed:
        child = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=folder,
            env={**default, **os.environ, "NDCG_ML_REPORTS": str(reports), "PYTHONPATH": path, **more},
            stdout=printed,
            stderr=printed,
            start_new_session=True,
            preexec_fn=bounded,
        )
        try:
            code = child.wait(SLOWER * limit if limit > 0 else None)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    past = code in (-signal.SIGXCPU, -signal.SIGKILL)
    return None if past else code, [tuple(json.loads(line)) for line in reports.read_text().splitlines()]


def record() -> None:
    """Record the seconds of the tests that pass, and the tests of each line in a function.

    A process that a test starts takes the name of the test from its environment. Lines outside functions are left out,
    because they run in the test that imports the file first.
    """
    from coverage import Coverage

    with copied() as folder:
        rc = folder.parent / "coveragerc"
        rc.write_text(
            f"[run]\ninclude = {folder}/ndcg_ml/*\ndata_file = {folder.parent}/coverage\nparallel = true\n"
            "context = ${PYTEST_CURRENT_TEST-}\npatch = _exit, fork\n"
            "disable_warnings = no-data-collected, module-not-measured, module-not-imported\n"
        )
        code, reports = run_tests(folder, COVERAGE_PROCESS_START=str(rc))
        seconds, bad = Counter[str](), {test for test, outcome, _ in reports if outcome != "passed"}
        for test, _, duration in reports:
            seconds[test] += duration
        tests = {test: at for at, test in enumerate(test for test in seconds if test not in bad)}
        if not tests:
            raise SystemExit(f"no test passed (exit status {code}):\n{(folder.parent / 'printed').read_text()}")
        coverage = Coverage(config_file=str(rc))
        coverage.combine([str(folder.parent)])
        data, found = coverage.get_data(), defaultdict(set)
        for file in data.measured_files():
            where = places("", Path(file).read_text("utf-8"))
            for line, contexts in data.contexts_by_lineno(file).items():
                if where[line - 1].function:
                    names = (re.sub(r" \((setup|call|teardown)\)$", "", context) for context in contexts)
                    found[where[line - 1].key] |= {tests[name] for name in names if name in tests}
    groups: dict[Tests, int] = {}
    lines = {key: groups.setdefault(frozenset(of_line), len(groups)) for key, of_line in found.items()}
    CACHE.mkdir(parents=True, exist_ok=True)
    kept = {"seconds": [[test, seconds[test]] for test in tests], "groups": [*map(sorted, groups)], "lines": lines}
    RECORD.write_text(json.dumps(kept))
    print(f"exit status {code}: {len(tests)} tests passed, {len(bad)} failed or were skipped; {len(lines)} lines")


class Reached:
    """The record, and the lines that use each name of a module, in the module or in a file that imports from it."""

    def __init__(self) -> None:
        kept = json.loads(RECORD.read_text())
        self.tests: list[str] = [test for test, _ in kept["seconds"]]
        self.seconds: list[float] = [seconds + EACH for _, seconds in kept["seconds"]]
        groups = [frozenset(group) for group in kept["groups"]]
        self.lines: dict[str, Tests] = {key: groups[at] for key, at in kept["lines"].items()}
        self.reach: Counter[int] = Counter()
        for group, number in Counter(kept["lines"].values()).items():
            self.reach.update(dict.fromkeys(groups[group], number))
        self.bodies: dict[tuple[str, str], Tests] = defaultdict(frozenset)
        self.uses: dict[tuple[str, str], list[Place]] = defaultdict(list)
        for _, source, where in files():
            for place in where:
                for name in itertools.accumulate(place.function.split("."), "{}.{}".format):
                    self.bodies[place.module, name] |= self.lines.get(place.key, frozenset())
            nodes = [*ast.walk(ast.parse(source))]
            modules = {where[0].module}
            for node in nodes:
                if isinstance(node, ast.ImportFrom) and (parent := node.module or "").split(".")[0] == "ndcg_ml":
                    imported = (parent, *(f"{parent}.{alias.name}" for alias in node.names))
                    modules |= {name.partition(".")[2] for name in imported}
            for node in nodes:
                if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
                    name = node.id if isinstance(node, ast.Name) else node.attr
                    for module in modules:
                        self.uses[module, name].append(where[node.lineno - 1])

    def tests_of(self, where: Iterable[Place]) -> Tests:
        """Return the tests that reach a statement.

        If there are none, these are the tests of any line of what it defines; otherwise, as for constants and compiled
        functions, those of the lines that use it.
        """
        found = frozenset[int]().union(*(self.lines.get(place.key, ()) for place in where))
        pending = [(place.module, name) for place in where for name in place.defines if not found]
        done = set()
        while pending:
            defined = module, name = pending.pop()
            found |= self.bodies[defined]
            if defined not in done and not self.bodies[defined]:
                for place in self.uses[module, name.rpartition(".")[2]]:
                    tests = self.lines.get(place.key, frozenset())
                    found |= tests
                    pending += [(place.module, other) for other in place.defines if not tests]
            done.add(defined)
        return found

    def batches(self, tests: Tests) -> list[list[int]]:
        """Return the quick tests and further ones, within the limits.

        The tests that reach the line come first. Others of their files follow, because one test of a file pays for
        what all share. Of the quick ones, the quickest case of each test function comes before its other cases. The
        further ones are in the order of the lines of the package that they reach, because a row of a table of refusals
        reaches few.
        """
        near = {self.tests[test].split("::")[0] for test in tests}
        others = {at for at, test in enumerate(self.tests) if test.split("::")[0] in near} - tests
        quick, further, total = list[int](), list[int](), 0.0
        for group in (tests, others):
            cases, turns = Counter[str](), []
            for test in sorted(group, key=self.seconds.__getitem__):
                function = self.tests[test].split("[")[0]
                turns.append((cases[function], self.seconds[test], test))
                cases[function] += 1
            for _, seconds, test in sorted(turns):
                if not quick or total + seconds <= QUICK:
                    total += seconds
                    quick.append(test)
            for _, test in sorted((self.reach[test], test) for _, _, test in turns if test not in quick):
                total += self.seconds[test]
                if total <= ALL:
                    further.append(test)
        # Tests of a file share fixtures if they run together.
        return [sorted(batch, key=self.tests.__getitem__) for batch in (quick, further) if batch]


# -- runs -------------------------------------------------------------------------------------------------------------


def run(mutants: list[Mutant], out: Path, minutes: float) -> None:
    """Try mutants until the time is over, and append each result."""
    end, stamps, reached = time.monotonic() + 60 * minutes, itertools.count(1), Reached()
    sound = {row["by"] for row in read(out).values() if "::" in row["by"]}
    with copied() as folder:
        run_tests(folder, "--collect-only")
        unsound = set(reached.tests) - set((folder.parent / "printed").read_text().splitlines())  # removed or renamed

        def failure(mutant: Mutant, source: bytes, batch: list[int]) -> str:
            """Return the first test that fails with this source, PAST, the exit status, or the empty string."""
            (folder / mutant.file).write_bytes(source)
            os.utime(folder / mutant.file, (now := next(stamps), now))  # otherwise old bytecode may be used
            limit = START + SLOWER * sum(reached.seconds[test] for test in batch)
            # If pytest imports a file of the package by its path, there are two modules of one file.
            options = ("-x", "--import-mode=prepend")
            code, reports = run_tests(folder, *options, *(reached.tests[test] for test in batch), limit=limit)
            failed = [test for test, outcome, _ in reports if outcome == "failed"]
            return "" if code == 0 else PAST if code is None else [*failed, f"exit status {code}"][0]

        def killer(mutant: Mutant) -> str:
            """Return what kills a mutant, or the empty string. A test kills only if it passes without the mutant."""
            original = (folder / mutant.file).read_bytes()
            batches = reached.batches(reached.tests_of(mutant.places))
            while batches:
                batch = [test for test in batches[0] if reached.tests[test] not in unsound]
                by = failure(mutant, mutant.source, batch) if batch else ""
                only = [test for test in batch if reached.tests[test] == by]
                if not by:
                    batches.pop(0)
                elif by == PAST or by in sound or not failure(mutant, original, only or batch):
                    sound.update(reached.tests[test] for test in only)
                    break
                elif not only:
                    raise SystemExit(
                        "The recorded tests must run without a mutant. Record them again with --record. They printed:\n"
                        + (folder.parent / "printed").read_text()
                    )
                unsound.add(by)
            (folder / mutant.file).write_bytes(original)
            return by if batches else ""

        for at, mutant in enumerate(mutants):
            if time.monotonic() > end:
                print(f"{len(mutants) - at} mutants are left")
                break
            begun = time.monotonic()
            row = {"mutant": mutant.key, "by": killer(mutant), "seconds": round(time.monotonic() - begun, 1)}
            with out.open("a") as file:
                print(json.dumps(row), file=file)
            print(
                f"{row['seconds']:6} {row['by'] or 'SURVIVED'}\n       {mutant.file}:{mutant.line} {mutant.key}",
                flush=True,
            )


def read(out: Path) -> dict[str, dict[str, Any]]:
    """Return the last result of each mutant."""
    rows = map(json.loads, out.read_text().splitlines() if out.exists() else [])
    return {row["mutant"]: row for row in rows}


def judged() -> list[dict[str, str]]:
    """Return the survivors that were judged by hand."""
    return json.loads(JUDGED.read_text())


def table(mutants: list[Mutant], rows: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return for each area the share of killed mutants, without those judged, and Wilson's interval (95 %)."""
    names, score = {each["mutant"] for each in judged()}, {}
    tried = [mutant for mutant in mutants if mutant.key in rows]
    for area in [*sorted({mutant.area for mutant in tried}), "all"]:
        of_area = [mutant.key for mutant in tried if area in (mutant.area, "all")]
        killed = sum(bool(rows[key]["by"]) for key in of_area)
        equivalent = sum(key in names and not rows[key]["by"] for key in of_area)
        counted = len(of_area) - equivalent
        low, high = binomtest(killed, counted).proportion_ci(method="wilson") if counted else (0.0, 1.0)
        share, *interval = (round(100 * float(part), 1) for part in (killed / max(counted, 1), low, high))
        counts = {"mutants": len(of_area), "killed": killed, "judged": equivalent, "survived": counted - killed}
        score[area] = {**counts, "% killed": share, "95 % interval": interval}
    return score


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300, help="mutants of the sample")
    parser.add_argument("--minutes", type=float, default=60, help="when to start no further mutant")
    parser.add_argument("--record", action="store_true", help="record the tests of each line again")
    parser.add_argument("--again", action="store_true", help="run survivors again that are not judged")
    parser.add_argument("--save", action="store_true", help="write the record of the results")
    chosen = parser.parse_args()
    mutants, out = drawn(chosen.count, chosen.seed), CACHE / f"seed-{chosen.seed}.jsonl"
    if chosen.record or not RECORD.exists():
        record()
    kinds = {each["mutant"]: each["kind"] for each in judged()}
    done = {key for key, row in read(out).items() if row["by"] or key in kinds or not chosen.again}
    run([mutant for mutant in mutants if mutant.key not in done], out, chosen.minutes)
    score = table(mutants, rows := read(out))
    print("| area |", " | ".join(score["all"]), "|\n|---|" + "--:|" * len(score["all"]))
    for area, of_area in score.items():
        print(f"| {area} |", " | ".join(map(str, of_area.values())), "|")
    past = sum(rows[mutant.key]["by"] == PAST for mutant in mutants if mutant.key in rows)
    survivors = [kinds.get(mutant.key) for mutant in mutants if mutant.key in rows and not rows[mutant.key]["by"]]
    messages = survivors.count("message")
    print(f"{past} were killed by the limit; {messages} of {len(survivors)} survivors differ in a message alone")
    if chosen.save:
        if messages > MOST_MESSAGES * len(survivors):
            raise SystemExit(f"At most {MOST_MESSAGES:.0%} of the survivors may be judged as messages. Add tests.")
        every = score["all"]
        save(
            "mutants",
            *("numpy", "hypothesis", "pytest", "torch"),
            title="A sample of mutants of the package",
            tried="One place of a statement is changed at a time, at random places of each module and package in "
            f"proportion to its lines of code. A test must fail. Of {every['mutants']} mutants {every['judged']} are "
            f"judged by hand in `reliability/equivalents.json`. The tests killed {every['% killed']} % of the others "
            f"(95 % interval {every['95 % interval'][0]} to {every['95 % interval'][1]} %).",
            command=f"python -m reliability.mutants --seed {chosen.seed} --count {chosen.count}",
            count=every["mutants"],
            unit="mutants",
            failed=every["survived"],
            score=score,
        )


if __name__ == "__main__":
    main()
