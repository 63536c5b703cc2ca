"""Watermark: how late a row may be.

The watermark of a stream is the greatest time seen so far less the lateness that is allowed. A row whose time is before
the watermark is late: it is kept out, and reported. In exchange whatever no coming row can reach is forgotten:
aggregates and distinct rows that have the time in their key, sides of a join behind the watermark of the other side (or
further back, where times need only be near), rows that an as-of join cannot match any more, sessions that nothing can
follow, and groups of ordered operators with the time in their key (`headwater.incremental.circuit.forgetting`). A row
without a time is never late, and never forgotten. The watermark of a step is that of the steps before, so the rows of
one step are never late for each other, and how the rows are divided among shards makes no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from headwater.incremental.layout import Layout
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.run import Run
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet

__all__ = ["Clock", "Late", "Mark", "Watermark"]

_LAYOUT = Layout(pa.schema([pa.field("greatest", pa.int64(), nullable=False)]))


class Clock:
    """The greatest time that a watermark has seen, on all shards, in the steps before."""

    __slots__ = ("_known", "lateness", "trace")

    def __init__(self, lateness: int) -> None:
        self.lateness = lateness
        self.trace = Trace(_LAYOUT)
        self._known: tuple[Run, int] | None = None

    @property
    def watermark(self) -> int | None:
        """Rows before this time are late; None as long as no row has come."""
        runs = self.trace.runs
        if not runs:
            return None
        if self._known is None or len(runs) > 1 or self._known[0] is not runs[0]:
            self._known = (runs[0], int(self.trace.zset().rows[0, 1]))
        return self._known[1] - self.lateness

    def seen(self, time: int) -> None:
        """A step had this time as its greatest."""
        mark = self.watermark
        if mark is None or time - self.lateness > mark:
            self.trace.load([Run.of(ZSet(_LAYOUT, np.array([[0, time, 1]], dtype=np.int64)))])


@dataclass(frozen=True, slots=True)
class Mark:
    """A column behind a watermark: its values are never less than ``least()`` again, which only rises; None as long as
    nothing is known.

    >>> Mark.both(Mark(lambda: 7), Mark(lambda: 5)).moved(lambda x: x - 1).least()
    4
    """

    least: Callable[[], int | None]

    @classmethod
    def of(cls, clock: Clock) -> Mark:
        """That of the column that a watermark looks at."""
        return cls(lambda: clock.watermark)

    def moved(self, by: Callable[[int], int]) -> Mark:
        """That of a column that is a rising function of this one."""
        least = self.least

        def found() -> int | None:
            value = least()
            return None if value is None else by(value)

        return Mark(found)

    @staticmethod
    def both(*marks: Mark) -> Mark:
        """That of a column whose values come from several."""

        def found() -> int | None:
            values = [mark.least() for mark in marks]
            known = [v for v in values if v is not None]
            return min(known) if len(known) == len(values) else None

        return marks[0] if len(marks) == 1 else Mark(found)


class Watermark(Node):
    """Passes the rows that are not late; `late` has the others of this step."""

    kind: ClassVar[Kind] = "lift"

    def __init__(self, source: Node, column: str, clock: Clock, *, detail: str, holds_clock: bool) -> None:
        super().__init__([source], source.layout, label="watermark", detail=detail)
        self._place = source.layout.column(column)
        self._clock = clock
        self._holds_clock = holds_clock
        self._greatest: int | None = None
        self.late = self.empty

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        delta = deltas[0].consolidate()  # a row that comes and goes in one step has not been seen
        place = self._place
        times = delta.rows[:, place.word]
        known = ((delta.rows[:, place.null_word] >> place.null_bit) & 1) == 0
        if known.any():
            self._greatest = int(times[known].max())
        mark = self._clock.watermark
        late = known & (times < mark) if mark is not None else None
        if late is None or not late.any():
            return delta
        self.late = delta.filtered(np.flatnonzero(late))
        return delta.filtered(np.flatnonzero(~late))

    def commit(self) -> None:
        if self._greatest is not None:
            self._clock.seen(self._greatest)
        self._greatest = None
        self.late = self.empty

    def rollback(self) -> None:
        self._greatest = None
        self.late = self.empty

    def traces(self) -> Mapping[str, Trace]:
        return {"clock": self._clock.trace} if self._holds_clock else {}


class Late(Node):
    """The rows that a watermark kept out, in the step in which they came."""

    kind: ClassVar[Kind] = "lift"
    restless: ClassVar[bool] = True

    def __init__(self, watermark: Node) -> None:
        assert isinstance(watermark, Watermark)
        super().__init__([watermark], watermark.layout, label="late", detail=watermark.detail)
        self._watermark = watermark

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        return self._watermark.late
