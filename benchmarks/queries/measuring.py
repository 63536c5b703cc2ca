"""What all sections share: how a run is timed, how answers are compared, and how a table is printed.

CPU seconds are those of this process, all its threads; where Spark computes, those of its processes are added. Nobody
else's work is in them, but on a busy machine the wall is longer than it would be, and caches are colder.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeVar

import psutil
import pyarrow as pa

__all__ = ["Measured", "Report", "Sample", "difference", "interleaved", "percentile", "timed"]

T = TypeVar("T")
# An average or a quotient is a double for one, a decimal of six digits for another, and some cut the digits off.
_TOLERANCE = 1.01e-6


@dataclass(frozen=True, slots=True)
class Sample:
    """One run."""

    wall: float
    cpu: float


def _cpu_seconds(*, children: bool) -> float:
    total = time.process_time()
    for process in psutil.Process().children(recursive=True) if children else ():
        try:
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
        except psutil.Error:
            continue
    return total


def timed(work: Callable[[], T], *, children: bool = False) -> tuple[T, Sample]:
    """What ``work`` gave, and what it cost."""
    cpu, start = _cpu_seconds(children=children), time.perf_counter()
    result = work()
    wall = time.perf_counter() - start
    return result, Sample(wall, _cpu_seconds(children=children) - cpu)


@dataclass
class Measured:
    """The runs of several competitors."""

    runs: dict[str, list[Sample]] = field(default_factory=dict)

    def add(self, name: str, sample: Sample) -> None:
        self.runs.setdefault(name, []).append(sample)

    def wall(self, name: str) -> float:
        return statistics.median(s.wall for s in self.runs[name])

    def cpu(self, name: str) -> float:
        return statistics.median(s.cpu for s in self.runs[name])

    def best(self, name: str) -> float:
        return min(s.wall for s in self.runs[name])

    def figures(self) -> dict[str, dict[str, float]]:
        return {n: {"median_s": self.wall(n), "best_s": self.best(n), "cpu_s": self.cpu(n)} for n in self.runs}


def interleaved(names: Sequence[str], rounds: int) -> Iterable[tuple[int, str]]:
    """Each name once a round, every round beginning with another, so that none always runs after the same one."""
    for number in range(rounds):
        shift = number % len(names) if names else 0
        for name in [*names[shift:], *names[:shift]]:
            yield number, name


def percentile(values: Iterable[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]


def difference(ours: pa.Table, theirs: pa.Table, *, exact: bool) -> str | None:
    """How two answers differ, or None; ``exact`` compares names and types too, else numbers may differ in the last digit."""
    if (ours.num_rows, ours.num_columns) != (theirs.num_rows, theirs.num_columns):
        return f"{theirs.num_rows} rows of {theirs.num_columns} columns, not {ours.num_rows} of {ours.num_columns}"
    if exact and [(f.name, f.type) for f in ours.schema] != [(f.name, f.type) for f in theirs.schema]:
        return f"columns {_line(theirs.schema)}, not {_line(ours.schema)}"
    for number, column in enumerate(ours.schema.names):
        pairs = zip(ours.column(number).to_pylist(), theirs.column(number).to_pylist(), strict=True)
        for row, (a, b) in enumerate(pairs):
            if not (a == b if exact else _close(a, b)):
                return f"{column} of row {row + 1} is {b!r}, not {a!r}"
    return None


def _line(schema: pa.Schema) -> str:
    return ", ".join(f"{f.name} {f.type}" for f in schema)


def _close(a: Any, b: Any) -> bool:
    if isinstance(a, int | float | Decimal) and isinstance(b, int | float | Decimal):
        return math.isclose(float(a), float(b), rel_tol=1e-9, abs_tol=_TOLERANCE)
    return bool(a == b)


@dataclass
class Report:
    """What a section found: a table to read, sentences below it, and the same for machines."""

    title: str
    head: Sequence[str] = ()
    rows: list[Sequence[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    # What we want is said of full size; a run in seconds measures little but the start of each query.
    full_size: bool = True
    _widths: list[int] = field(default_factory=list)

    def begin(self, names: Iterable[str]) -> None:
        """Print the head of the table; its lines will begin with these names, and follow as they are measured."""
        first, *rest = self.head
        self._widths = [max(map(len, [first, *names])), *(max(len(cell), 7) for cell in rest)]
        print("\n" + "\n".join([self.title, self._line(self.head)]), flush=True)

    def add(self, row: Sequence[str]) -> None:
        """A line, printed at once if the table has begun."""
        self.rows.append(row)
        if self._widths:
            print(self._line(row), flush=True)

    def target(
        self, what: str, value: float, least: float | None = None, most: float | None = None, unit: str = "x"
    ) -> None:
        """A ratio, or a figure of another unit, and what we want of it."""
        if not self.full_size:
            self.notes.append(f"{what}: {value:.2f}{unit}")
            return
        wanted = f">= {least:g}" if least is not None else f"<= {most:g}"
        met = value >= least if least is not None else value <= (most if most is not None else math.inf)
        self.notes.append(f"{what}: {value:.2f}{unit} (target {wanted}: {'met' if met else 'MISSED'})")
        targets: dict[str, Any] = self.figures.setdefault("targets", {})
        targets[what] = {"value": value, "target": wanted, "met": met}

    def text(self) -> str:
        """The table and what is to be said of it; of a table whose lines were printed already, the latter."""
        notes = [f"  {n}" for n in self.notes]
        if self._widths:
            return "\n".join(notes)
        cells = [list(self.head), *[list(r) for r in self.rows]]
        self._widths = [max(len(r[i]) for r in cells) for i in range(len(self.head))]
        return "\n".join(["", self.title, *(self._line(row) for row in cells if self.rows), *notes])

    def _line(self, row: Sequence[str]) -> str:
        padded = (c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(row, self._widths, strict=True)))
        return "  ".join(padded).rstrip()

    def as_dict(self) -> Mapping[str, Any]:
        return {"title": self.title, "notes": self.notes, **self.figures}
