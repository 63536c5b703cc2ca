"""Aggregates of whole groups: collect_list, listagg, and functions of one's own.

What needs all rows of a key is given all rows of a key: they are kept in a trace, sorted, and of the keys that a step
touches all are read, once for the value before the step and the value after it. All keys are evaluated in one call,
over one Arrow table with the keys' rows one after the other. The cost is the size of the groups touched.

Lists are sorted by the order given, then by the value itself, so that equal rows give equal lists; Spark's order is
the accident of its partitions. Nulls are left out.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.incremental.aggregates.aggregation import (
    Aggregation,
    Values,
    Words,
    failed,
    from_arrow,
    ordered,
    place,
    selected,
)
from headwater.incremental.arrangement import Arrangement
from headwater.incremental.layout import Layout, Order
from headwater.incremental.packing import unpack
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet, concatenate

__all__ = ["Collect", "General", "Groups", "ListAgg", "UserGeneral"]

Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True)
class General(Aggregation):
    """A function of all rows of a key."""

    @property
    def order(self) -> tuple[Order, ...]:
        """How the rows of a key are sorted for it."""
        return ()

    @property
    def needed(self) -> tuple[str, ...]:
        """Columns that must not be null for a row to count."""
        return ()

    @abstractmethod
    def evaluate(self, rows: pa.Table, offsets: Offsets) -> pa.Array:
        """The values of several keys: rows ``offsets[k]`` to ``offsets[k + 1]`` are those of key ``k``."""


class _Sorted(General):
    """Of the values of one column that are not null, in an order, and then in their own."""

    column: str
    by: tuple[Order, ...]

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([self.column, *(o.column for o in self.by)]))

    @property
    def order(self) -> tuple[Order, ...]:
        own = any(o.column == self.column for o in self.by)
        return self.by if own else (*self.by, Order(self.column))

    @property
    def needed(self) -> tuple[str, ...]:
        return (self.column,)


@dataclass(frozen=True)
class Collect(_Sorted):
    """collect_list(column) and collect_set(column): an array of the values, sorted."""

    column: str
    dtype: pa.DataType
    by: tuple[Order, ...] = ()

    @property
    def field(self) -> pa.Field:
        return pa.field(self.name, pa.list_(pa.field("element", self.dtype)), nullable=False)

    @property
    def text(self) -> str:
        return f"{'collect_set' if self.distinct else 'collect_list'}({self.column}{_ordering(self.by)})"

    def evaluate(self, rows: pa.Table, offsets: Offsets) -> pa.Array:
        return _lists(rows[self.column], offsets, self.field.type)


@dataclass(frozen=True)
class ListAgg(_Sorted):
    """listagg(column, separator): the texts of a key, joined in an order; null if there are none."""

    column: str
    separator: str = ""
    by: tuple[Order, ...] = ()

    @property
    def field(self) -> pa.Field:
        return pa.field(self.name, pa.string())

    @property
    def text(self) -> str:
        return f"listagg({'DISTINCT ' * self.distinct}{self.column}, {self.separator!r}{_ordering(self.by)})"

    def evaluate(self, rows: pa.Table, offsets: Offsets) -> pa.Array:
        joined = pc.binary_join(_lists(rows[self.column], offsets, pa.list_(pa.string())), self.separator)
        return pc.if_else(pa.array(offsets[1:] == offsets[:-1]), pa.scalar(None, pa.string()), joined)


@dataclass(frozen=True)
class UserGeneral(General):
    """A Python function of the rows of a key.

    Parameters
    ----------
    columns : tuple of str
    dtype : pa.DataType
        of what it gives
    function : callable
        takes an Arrow table of one key's rows, a row as often as it occurs, and gives a value; or, if ``vectorised``,
        takes the rows of many keys with their offsets and gives an Arrow array. It must give the same for the same
        rows.
    by : tuple of Order
        how the rows are sorted
    """

    columns: tuple[str, ...]
    dtype: pa.DataType
    function: Callable[..., Any] = field(compare=False)
    vectorised: bool = False
    by: tuple[Order, ...] = ()

    @property
    def field(self) -> pa.Field:
        return pa.field(self.name, self.dtype)

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.columns, *(o.column for o in self.by)]))

    @property
    def order(self) -> tuple[Order, ...]:
        return (*self.by, *(Order(c) for c in self.columns if all(o.column != c for o in self.by)))

    def evaluate(self, rows: pa.Table, offsets: Offsets) -> pa.Array:
        given = rows.select(list(self.columns))
        try:
            if self.vectorised:
                found = self.function(given, offsets)
            else:
                parts = [
                    given.slice(a, b - a) for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
                ]
                found = pa.array([self.function(p) if p.num_rows else None for p in parts], self.dtype)
        except Exception as error:
            raise failed(self, f"{type(error).__name__}: {error}") from error
        if not isinstance(found, pa.Array) or found.type != self.dtype or len(found) != len(offsets) - 1:
            raise failed(self, f"it has to give an array of {len(offsets) - 1} values of {self.dtype}")
        return found


class Groups:
    """The rows of each key for some aggregates that read the same columns in the same order."""

    accumulators = 0

    def __init__(self, arranged: Layout, output: Layout, *, wanted: Sequence[General]) -> None:
        first = wanted[0]
        keys = arranged.names[: arranged.keys]
        self._wanted = [(output.column(a.name), a) for a in wanted]
        self._owners: tuple[object, ...] = ()
        names = [*keys, *(a for a in first.arguments if a not in keys)]
        self._arrangement = Arrangement(arranged, names, keys=arranged.keys, order=first.order)
        self._layout = self._arrangement.target
        self._where = first.where
        self._needed = first.needed
        self._trace = Trace(self._layout)
        self._pairs = Layout(self._layout.schema, keys=self._layout.keys, order=first.order, weights=2)
        parts = [", ".join(first.arguments), f"by {ordered(first.order)}", first.where and f"where {first.where}"]
        parts.append(f"with {', '.join(first.needed)}" if first.needed else "with nulls")
        self.name = " ".join(p for p in parts if p)

    def step(self, delta: ZSet, touched: ZSet, old: Words, out: Words) -> None:
        """Write the old and the new values to the two halves of ``out``."""
        own = self._arrangement.apply(selected(delta, self._where, self._needed))
        staged = self._trace.stage(own)
        sources = [(self._trace, True)]
        if staged is not None:
            sources.append((Trace(self._layout, [staged]), False))
        parts = []
        for trace, before in sources:
            matches = trace.find(touched)
            rows = np.empty((len(matches.which), self._pairs.width), dtype=np.int64)
            rows[:, :-1] = matches.rows.rows
            rows[:, -1] = rows[:, -2]
            if not before:
                rows[:, -2] = 0
            parts.append(ZSet(self._pairs, rows, matches.rows.owners, hashes=matches.which.view(np.uint64)))
        which = np.concatenate([p.hashes for p in parts])
        together = concatenate(parts, self._pairs)
        found = ZSet(self._pairs, together.rows, together.owners, hashes=which).consolidate()
        self._owners = ()
        for placed, a in self._wanted:
            values = self._valued(a, found, len(touched))
            place(out, placed, values)
            self._owners += values.owners

    def _valued(self, aggregation: General, rows: ZSet, n: int) -> Values:
        """The values of all keys before the step, then of all keys after it."""
        positions = []
        offsets = np.zeros(2 * n + 1, dtype=np.int64)
        which = rows.hashes.view(np.int64)
        for k, column in enumerate((-2, -1)):
            times = np.maximum(rows.rows[:, column], 0)
            if aggregation.distinct:
                times = np.minimum(times, 1)
            positions.append(np.repeat(np.arange(len(times)), times))
            counts = np.bincount(which, weights=times, minlength=n).astype(np.int64)
            offsets[1 + k * n : 1 + (k + 1) * n] = counts
        offsets = np.cumsum(offsets)
        chosen = rows.rows[np.concatenate(positions)]
        table = pa.Table.from_arrays(unpack(self._pairs, chosen), schema=self._pairs.schema)
        found = aggregation.evaluate(table, offsets)
        return from_arrow(found, aggregation.field.type)

    def owners(self) -> Sequence[object]:
        """What has to be kept while the values flow."""
        return self._owners

    def commit(self) -> None:
        """Make staged state permanent."""
        self._trace.commit()

    def rollback(self) -> None:
        """Forget staged state."""
        self._trace.rollback()

    def traces(self) -> Mapping[str, Trace]:
        """The state, by name."""
        return {f"groups of {self.name}": self._trace}


def _ordering(by: Sequence[Order]) -> str:
    return f" ORDER BY {ordered(by)}" if by else ""


def _lists(column: pa.ChunkedArray, offsets: Offsets, dtype: pa.DataType) -> pa.Array:
    items = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(items, pa.ChunkedArray):
        items = pa.concat_arrays(items.chunks)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items, type=dtype)
