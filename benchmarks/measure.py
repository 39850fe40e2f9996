"""Timing of things that must first be shown to agree."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field


@dataclass
class Contender:
    """One way to the number: its name, and a call that returns it."""

    name: str
    call: Callable[[], float]
    # How far its value may be from ours; None where it computes another definition, and says so.
    within: float | None
    note: str = ""


@dataclass
class Timing:
    name: str
    value: float
    median_ms: float
    min_ms: float
    repeats: int
    ratio: float = 1.0
    note: str = ""


@dataclass
class Result:
    """One comparison: the first contender is ours, `ratio` says how many times longer the others take.

    A positive target is the ratio that was promised for the second contender; a negative one promises that the first
    takes at most that many times the second.
    """

    title: str
    rows: int = 0
    target: float | None = None
    timings: list[Timing] = field(default_factory=list)

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def compare(
    title: str,
    contenders: Iterable[Contender],
    *,
    rows: int = 0,
    target: float | None = None,
    budget_s: float = 6.0,
) -> Result:
    """Check that the contenders agree with the first, then time them in turn, several times over."""
    contenders = list(contenders)
    values, first_s = [], []
    for contender in contenders:
        began = time.perf_counter()
        values.append(float(contender.call()))
        first_s.append(time.perf_counter() - began)
        if contender.within is not None and abs(values[-1] - values[0]) > contender.within:
            raise AssertionError(
                f"{title}: {contender.name} gives {values[-1]!r}, {contenders[0].name} gives {values[0]!r}"
            )
    repeats = [max(3, min(25, int(budget_s / len(contenders) / max(s, 1e-4)))) for s in first_s]
    taken: list[list[float]] = [[] for _ in contenders]
    for turn in range(max(repeats)):
        for i, contender in enumerate(contenders):
            if turn < repeats[i]:
                began = time.perf_counter()
                contender.call()
                taken[i].append(1e3 * (time.perf_counter() - began))
    medians = [statistics.median(times) for times in taken]
    return Result(
        title,
        rows,
        target,
        [
            Timing(c.name, v, m, min(t), len(t), m / medians[0], c.note)
            for c, v, m, t in zip(contenders, values, medians, taken, strict=True)
        ],
    )
