"""Find the tests that run a line, in the contexts of a coverage run of the whole suite."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from itertools import zip_longest
from pathlib import Path

from coverage import CoverageData

ROOT = Path(__file__).parents[1]

QUICK, ALL, MOST = 5.0, 120.0, 400
"""Maximum duration in seconds of the tests that run first and of all tests, and their maximum number."""
UNMEASURED = 0.005
"""Seconds of a test that is not in the log, because pytest omits short ones."""


class Seen:
    """The data of a coverage run, and the durations of its tests, if there is a log with ``--durations=0``."""

    def __init__(self, path: Path, log: Path | None, known: Iterable[str]) -> None:
        self.data = CoverageData(basename=str(path))
        self.data.read()
        self.known = set(known)
        self.seconds: dict[str, float] = defaultdict(lambda: UNMEASURED)
        for line in log.read_text("utf-8", "replace").splitlines() if log else []:
            if timed := re.match(r"([\d.]+)s (?:call|setup|teardown) +(.+)", line):
                self.seconds[timed[2]] += float(timed[1])

    def tests_of(self, file: str, line: int) -> tuple[list[str], list[str]]:
        """Return the quick tests that run this line, and further ones."""
        quick: list[str] = []
        more: list[str] = []
        total = 0.0
        for test in self._in_turn(self._of_line(file, line))[:MOST]:
            total += self.seconds[test]
            if total <= ALL:
                (quick if total <= QUICK else more).append(test)
        # Fixtures of a file are set up once if its tests run together.
        quick.sort(key=_file)
        more.sort(key=_file)
        return quick, more

    def _in_turn(self, tests: set[str]) -> list[str]:
        """Return the quickest case of each test function, then the second quickest of each, and so on."""
        of_function = defaultdict(list)
        for test in sorted(tests, key=lambda test: (self.seconds[test], test)):
            of_function[test.split("[")[0]].append(test)
        return [test for turn in zip_longest(*of_function.values()) for test in turn if test is not None]

    def _of_line(self, file: str, line: int) -> set[str]:
        """Return the tests that run the statement of a line, or that use the names it defines at import."""
        statement, inside = _statement((ROOT / file).read_text("utf-8"), line)
        tests = self._of_lines(file, range(statement.lineno, _end_of_head(statement) + 1))
        if tests or inside:
            return tests
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):  # its defaults
            tests = self._of_lines(file, range(statement.lineno, (statement.end_lineno or 0) + 1))
        else:
            for name in _defined(statement):
                tests |= self._that_use(name, file)
        return tests or {test for of_line in self._run(file).values() for test in of_line}

    def _that_use(self, name: str, file: str) -> set[str]:
        """Return the tests that run a line with this name, in its file or, for a constant, in any file."""
        files = self._paths if name.isupper() else [file]
        word = re.compile(rf"\b{re.escape(name)}\b")
        tests: set[str] = set()
        for each in files:
            path = ROOT / each
            lines = path.read_text("utf-8").splitlines() if path.exists() else []
            if used := [at for at, text in enumerate(lines, 1) if word.search(text)]:
                tests |= self._of_lines(each, used)
        return tests

    def _of_lines(self, file: str, lines: Iterable[int]) -> set[str]:
        run = self._run(file)
        return {test for line in lines for test in run.get(line, ())}

    @lru_cache(maxsize=8)  # noqa: B019
    def _run(self, file: str) -> dict[int, list[str]]:
        """Return the known tests of each line of a file, by its current line number."""
        if file not in self._paths:
            return {}
        path = self._paths[file]
        then = Path(path).read_text("utf-8").splitlines()
        now = (ROOT / file).read_text("utf-8").splitlines()
        today: dict[int, int] = {}
        for block in SequenceMatcher(None, then, now, autojunk=False).get_matching_blocks():
            today |= {block.a + at + 1: block.b + at + 1 for at in range(block.size)}
        run = {}
        for line, contexts in self.data.contexts_by_lineno(path).items():
            tests = {re.sub(r"\|(run|setup|teardown)$", "", context) for context in contexts}
            if line in today and tests & self.known:
                run[today[line]] = sorted(tests & self.known)
        return run

    @cached_property
    def _paths(self) -> dict[str, str]:
        """The path of each file of the package in the coverage run, if that file still exists."""
        then = {"ndcg_ml/" + path.rpartition("/ndcg_ml/")[2]: path for path in self.data.measured_files()}
        return {name: path for name, path in then.items() if (ROOT / name).exists() and Path(path).exists()}


def _file(test: str) -> str:
    return test.split("::")[0]


def _statement(source: str, line: int) -> tuple[ast.stmt, bool]:
    """Return the innermost statement of a line, and whether it is in a function."""
    innermost: ast.stmt | None = None
    inside = False
    for node in ast.walk(ast.parse(source)):  # the outer ones first
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0):
            inside = inside or isinstance(innermost, (ast.FunctionDef, ast.AsyncFunctionDef))
            innermost = node
    assert innermost is not None
    return innermost, inside


def _end_of_head(statement: ast.stmt) -> int:
    """Return the last line of a simple statement, or the last line before the body of a compound one."""
    body = getattr(statement, "body", None)
    return max(body[0].lineno - 1, statement.lineno) if body else statement.end_lineno or 0


def _defined(statement: ast.stmt) -> set[str]:
    """Return the names that a statement assigns."""
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
