"""Time functions that compute the same value."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field


@dataclass
class Contender:
    """A function to time, which returns NDCG."""

    name: str
    call: Callable[[], float]
    # Tolerance of its value; None if it computes another definition, as its note says.
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
    """The timings of one benchmark, ours first. `ratio` is the time relative to ours.

    A positive target is the smallest ratio for the second contender. A negative target -x means that ours takes at most
    x times as long as the second.
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
    """Check that the values of the contenders agree with the first, then time them repeatedly, in turn."""
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
