"""The common aggregate in one kernel call: counts, sums and means of whole numbers, and the least and greatest of one
column.

A small step of an aggregate is dominated by its ten calls of kernels and what happens between them. Where all its parts
are of fixed width `Fused` prepares a plan once, and then a step is one call (`headwater.kernels.aggregate`). It reads
and stages the same traces as the operator does piece by piece; which of the two did a step cannot be seen from the
state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.base.errors import ConstraintError
from headwater.incremental.layout import Layout
from headwater.incremental.run import NO_RUNS, Run, directory_bits
from headwater.incremental.slots import NO_BOOK, NO_PLACES, Slots
from headwater.incremental.zset import ZSet
from headwater.kernels.aggregate import (
    FULL_WEIGHT,
    MATRICES,
    NO_ROOM_FOR_SUM,
    NOT_FOR_SLOTS,
    NUMBERS,
    aggregate_step,
)
from headwater.kernels.aside import is_loaded, is_ready
from headwater.kernels.consolidate import LINE
from headwater.kernels.signature import signature

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from headwater.incremental.trace import Trace

__all__ = ["Fused", "compile_now"]

_WORTH_COMPILING = 100


class Fused:
    """A plan, and the two traces that a step reads and stages.

    Parameters
    ----------
    matrices, numbers
        what `headwater.kernels.aggregate.MATRICES` and ``NUMBERS`` name
    output
        of the rows that it gives
    sums, values
        the traces; without extremes there are no values
    """

    __slots__ = ("_arrays", "_is_due", "_output", "_plan", "_plan_at", "_slots", "_steps", "_sums", "_values")

    def __init__(
        self,
        matrices: Mapping[str, npt.NDArray[np.int64]],
        numbers: Mapping[str, int],
        *,
        output: Layout,
        sums: Trace,
        values: Trace | None,
    ) -> None:
        plan: list[int] = []
        self._arrays = [np.ascontiguousarray(matrices.get(name, _NOTHING)) for name in MATRICES]
        for array in self._arrays:
            plan += [array.ctypes.data, *array.shape]
        self._plan = np.array([*plan, *(numbers.get(name, 0) for name in NUMBERS)], dtype=np.int64)
        self._plan_at = self._plan.ctypes.data
        self._output = output
        self._sums = sums
        self._values = values
        self._steps = 0
        self._is_due = False
        self._slots = sums.slots = Slots(sums.layout)

    def is_due(self) -> bool:
        """Can it be used? Its kernel takes long to compile: that is worth it for many steps only, and is done aside."""
        if self._is_due:
            return True
        self._steps += 1
        if self._steps == 1:
            self._is_due = is_loaded(aggregate_step)
        elif self._steps > _WORTH_COMPILING:
            self._is_due = is_ready(aggregate_step)
        return self._is_due

    def step(self, delta: ZSet) -> ZSet | None:
        """The change of the output, with the traces staged; None where a sum does not fit,
        which the operator then explains.
        """
        n = len(delta.rows)
        self._sums.check()
        if self._values is not None:
            self._values.check()
        slots = self._slots
        if not slots.has_room(n):
            self._sums.drain()
            if not slots.make_room(n):
                return self._stepped(delta, slotted=False)
        found = self._stepped(delta, slotted=True)
        if slots.is_off:
            self._sums.drain()
            slots.drop()
            return self._stepped(delta, slotted=False)
        return found

    def _stepped(self, delta: ZSet, *, slotted: bool) -> ZSet | None:
        n = len(delta.rows)
        sums, values, slots = self._sums, self._values, self._slots
        out = np.empty((2 * n, self._output.width), dtype=np.int64)
        bits = directory_bits(n)
        one = _Room(sums.layout, n, bits, plain=slotted)
        places = np.empty(n, dtype=np.int32) if slotted else NO_PLACES
        other = _Room(values.layout, n, bits) if values is not None else _NO_ROOM
        found, kept, most, kept_values, most_values = aggregate_step(
            self._plan_at,
            delta.rows,
            sums.table_beside_slots() if slotted else sums.table(),
            slots.book if slotted else NO_BOOK,
            places,
            NO_RUNS if values is None else values.table_with_room(),
            out,
            one.hashes,
            one.rows,
            one.directory,
            one.line,
            other.hashes,
            other.rows,
            other.directory,
            other.line,
            bits,
        )
        if found < 0:
            if found == FULL_WEIGHT:
                raise ConstraintError.weight_overflow()
            slots.is_off = found == NOT_FOR_SLOTS
            assert found in (NO_ROOM_FOR_SUM, NOT_FOR_SLOTS)
            return None
        if slotted:
            slots.added(places[:kept], one.rows[:kept])
        elif kept:
            sums.stage_run(one.run(kept, most))
        if kept_values:
            assert values is not None
            values.stage_run(other.run(kept_values, most_values))
        return ZSet(self._output, out[:found], delta.owners, net=True)

    def commit(self) -> None:
        """Make what is in the slots permanent."""
        self._slots.commit()

    def rollback(self) -> None:
        """Take back what was put into slots."""
        self._slots.rollback()


def compile_now() -> None:
    """Compile the kernel here, or load it, and wait for that: for those who measure."""
    aggregate_step.compile(signature(aggregate_step.py_func))  # type: ignore[attr-defined]


class _Room:
    """The arrays of a run that is to be made."""

    __slots__ = ("bits", "directory", "hashes", "layout", "line", "rows")
    directory: npt.NDArray[np.int32]
    line: npt.NDArray[np.int64]

    def __init__(self, layout: Layout, n: int, bits: int, *, plain: bool = False) -> None:
        self.layout = layout
        self.bits = bits
        self.hashes = np.empty(n, dtype=np.uint64)
        self.rows = np.empty((n, layout.width), dtype=np.int64)
        if plain:
            self.directory, self.line = _NO_DIRECTORY, _NO_LINE
            return
        self.directory = np.empty((1 << bits) + 1, dtype=np.int32)
        self.line = np.empty(LINE, dtype=np.int64)

    def run(self, count: int, most: int) -> Run:
        """The run that was made."""
        hashes, rows = self.hashes, self.rows
        if count < len(hashes):
            hashes, rows = hashes[:count], rows[:count]
        return Run.made(self.layout, hashes, rows, self.directory, self.bits, self.line, most)


_NO_DIRECTORY = np.empty(0, dtype=np.int32)
_NO_LINE = np.empty(0, dtype=np.int64)
_NOTHING = np.zeros((0, 3), dtype=np.int64)
_NO_ROOM = _Room(Layout(pa.schema([])), 0, 1)
