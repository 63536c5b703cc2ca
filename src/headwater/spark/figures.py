"""What tasks did: the rows, bytes and seconds of each operator, brought to the driver with the rows themselves.

An operator in a task is a source of tables, and `Counted` is a source that counts what another gives. Its seconds are
those of its own work: what the sources below it took, in the same task, is not among them. The counts of a task are
one small piece of text beside its blocks. A task that reads blocks adds up the texts that come with them and hands on
one of its own; so the driver gets the counts of all stages with the last one, of each task once, however often it was
tried, and on Spark Connect as well. Seconds are only known of the last stage: what goes through an exchange has to be
the same if the task is run again.

Counts are by mark: a number that the driver gives to each operator of a run.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter

import pyarrow as pa

__all__ = [
    "SAID",
    "Counted",
    "Figure",
    "Figures",
    "SaidAlone",
    "SaidBeside",
    "counted_tables",
    "current",
    "new_mark",
    "recorded",
    "recording",
]

SAID = "__hw_said"
"""The column of what tasks did, beside a sink's own."""

_marks = itertools.count(1)


def new_mark() -> int:
    """A number that no other operator of this process has."""
    return next(_marks)


@dataclass(slots=True)
class Figure:
    """What all tasks of one operator did, together."""

    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0
    tasks: int = 0


class Figures:
    """Figures by mark.

    >>> one, other = Figures(), Figures()
    >>> one.of(7).rows = 3
    >>> other.merge(one.text())
    >>> other.merge(one.text())
    >>> other.found[7].rows
    6
    """

    def __init__(self) -> None:
        self.found: dict[int, Figure] = {}
        self.below_seconds = 0.0
        """What sources that are being asked, and those below them, have taken so far."""

    def of(self, mark: int) -> Figure:
        return self.found.setdefault(mark, Figure())

    def text(self, *, timed: bool = True) -> str:
        """The figures as text; nothing, if there are none.
        Without seconds it is the same whenever a task is run again.
        """
        if not self.found:
            return ""
        facts = {
            mark: [f.rows, f.bytes, round(f.seconds, 6) if timed else 0, f.tasks]
            for mark, f in sorted(self.found.items())
        }
        return json.dumps(facts, separators=(",", ":"))

    def merge(self, text: str) -> None:
        """Add those of another task."""
        for mark, (rows, size, seconds, tasks) in json.loads(text).items():
            figure = self.of(int(mark))
            figure.rows += rows
            figure.bytes += size
            figure.seconds += seconds
            figure.tasks += tasks


_current: list[Figures] = []


def current() -> Figures:
    """The figures of the task that runs here; ones that nobody reads, if none does."""
    return _current[-1] if _current else Figures()


@contextmanager
def recording() -> Iterator[Figures]:
    """Figures of a task's work that is done within the block."""
    figures = Figures()
    _current.append(figures)
    try:
        yield figures
    finally:
        _current.remove(figures)


def recorded(work: Callable[[Figures], Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """Run a task's work with figures of its own."""
    with recording() as figures:
        yield from work(figures)


def counted_tables(mark: int, make: Callable[[], Iterator[pa.Table]]) -> Iterator[pa.Table]:
    """The tables of a source, counted as they go by.

    >>> [t.num_rows for t in counted_tables(1, lambda: iter([pa.table({"v": [1, 2]})]))]
    [2]
    """
    figures = current()
    figure = figures.of(mark)
    figure.tasks += 1
    tables: Iterator[pa.Table] | None = None
    while True:
        outside, figures.below_seconds = figures.below_seconds, 0.0
        begun = perf_counter()
        try:
            tables = make() if tables is None else tables
            table = next(tables, None)
        finally:
            took = perf_counter() - begun
            figure.seconds += max(0.0, took - figures.below_seconds)
            figures.below_seconds = outside + took
        if table is None:
            return
        figure.rows += table.num_rows
        figure.bytes += table.nbytes
        yield table


@dataclass(frozen=True, slots=True)
class Counted:
    """A source of tables that counts another's."""

    source: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.Table]]
    mark: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        return counted_tables(self.mark, lambda: iter(self.source(batches)))


@dataclass(frozen=True, slots=True)
class SaidBeside:
    """A sink's rows, with a column beside them for what the task did."""

    sink: Callable[[Iterator[pa.Table]], Iterator[pa.RecordBatch]]

    def __call__(self, tables: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
        for batch in self.sink(tables):
            yield batch.append_column(SAID, pa.nulls(batch.num_rows, pa.string()))


@dataclass(frozen=True, slots=True)
class SaidAlone:
    """What a task did, as a row of its own beside those of a sink."""

    column: str
    kind: pa.DataType

    @classmethod
    def beside(cls, column: str) -> SaidAlone:
        """For a sink of one column, ``name type`` in Spark's words."""
        name, _, kind = column.partition(" ")
        return cls(name, {"long": pa.int64(), "string": pa.string()}[kind])

    def __call__(self, text: str) -> pa.RecordBatch:
        values = [pa.nulls(1, self.kind), pa.array([text], pa.string())]
        return pa.RecordBatch.from_arrays(values, names=[self.column, SAID])
