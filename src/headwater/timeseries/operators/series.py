"""What SQL says of a row and its neighbours in the series: window functions over it, in chunks.

Each column is a function (``lag(price, 1)``, ``sum(size)``) with a frame; the window is always the series, in its
order. Spark computes the same text over its frame. In a task the rows come sorted and in chunks. How far a function
looks is its reach: so many rows or so long a time before and after the row. A chunk is computed together with the rows
within reach on both sides, so that a series may be larger than memory; without a reach, a whole series is computed at
once. Plain aggregates over bounded frames are computed by a kernel, everything else by DuckDB, over the columns it
reads and nothing else; other columns pass by as they are.

A function that depends on the order of rows refuses rows that nothing puts in order
(`headwater.timeseries.total_order`); frames in time have all rows of the same time or none, so plain aggregates over
them do not. Spark's own form does not look for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.base.errors import NotFoundError
from headwater.timeseries.aggregate_calls import calls_in, over
from headwater.timeseries.frames import Frame, bounds_of, over_bounds
from headwater.timeseries.node import Extent, Keyed, KeyedKernel, Node, Ordering
from headwater.timeseries.plain_aggregates import PlainAggregate, is_order_free, plain_aggregate, schema_for
from headwater.timeseries.querying import RowsQuery, quoted
from headwater.timeseries.reaching import Neighbourhood, Reach, neighbourhoods
from headwater.timeseries.rows import Rows, key_starts, whole_keys
from headwater.timeseries.times import time_numbers
from headwater.timeseries.total_order import checked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["OverSeries", "Windowed", "extended", "extended_schema"]

_SERIES, _ROW, _TIME = "__hw_series", "__hw_row", "__hw_time"


@dataclass(frozen=True, slots=True)
class Windowed:
    """A function over the series: without a frame one that goes by places (``lag(price, 1)``), else an aggregate.

    Where fewer than ``least`` rows of the frame fulfil ``present``, there is no value.
    """

    function: str
    frame: Frame | None = None
    reach: Reach | None = None
    least: int = 0
    present: str = "true"

    @property
    def is_order_free(self) -> bool:
        """Whether it is the same for each order of the rows of the same time."""
        frame = self.frame
        together = frame is not None and (frame.in_time or (frame.begin is None and frame.end is None))
        return together and is_order_free(self.function)

    def plain(self, schema: pa.Schema) -> PlainAggregate | None:
        """What a kernel computes of it, if one does."""
        if self.frame is None or (self.frame.in_time and self.frame.reach is None):
            return None
        found = plain_aggregate(self.function, schema)
        return None if found is not None and found.function == "product" else found

    def text(self, parts: str, kind: pa.DataType | None) -> str:
        """Its SQL over a window."""
        window = f"{parts} {self.frame.sql(kind) if self.frame else ''}".strip()
        text = over(self.function, window) if calls_in(self.function) else f"{self.function} OVER ({window})"
        if not self.least:
            return text
        return f"CASE WHEN count_if({self.present}) OVER ({window}) >= {self.least} THEN {text} END"


@dataclass(frozen=True)
class OverSeries(Keyed):
    """New columns from a row's neighbours in its series.

    >>> from headwater.timeseries.operators.values import Values
    >>> trades = pa.table({"s": ["a", "a", "b"], "t": [1, 2, 1], "p": [5, 7, 9]})
    >>> columns = {"high": Windowed("max(p + 1)", Frame(-1, 0))}
    >>> node = OverSeries(Values(trades), Ordering("t", ("s",)), columns, "rolling")
    >>> pa.concat_tables(node.kernel()(Rows([trades])))["high"].to_pylist()
    [6, 8, 10]
    """

    input: Node
    ordering: Ordering
    columns: Mapping[str, Windowed]
    shown: str

    @cached_property
    def schema(self) -> pa.Schema:
        fields = {name: plain.type for name, plain in self._plain.items()}
        if self._query is not None:
            fields |= {field.name: field.type for field in self._query.schema if field.name != _ROW}
        return extended_schema(self.input.schema, {name: fields[name] for name in self.columns})

    @cached_property
    def _plain(self) -> dict[str, PlainAggregate]:
        found = {}
        for name, column in self.columns.items():
            plain = column.plain(self.input.schema)
            if plain is not None:
                found[name] = plain
        return found

    @cached_property
    def _query(self) -> RowsQuery | None:
        """What the tasks compute in SQL, over columns that tell series, rows and times by numbers."""
        texts = []
        for name, column in self.columns.items():
            if name not in self._plain:
                order = _TIME if column.frame and column.frame.in_time else _ROW
                texts.append(f"{column.text(f'PARTITION BY {_SERIES} ORDER BY {order}', None)} AS {quoted(name)}")
        if not texts:
            return None
        text = f"SELECT {_ROW}, {', '.join(texts)} FROM rows"
        own = [pa.field(name, pa.int64()) for name in (_SERIES, _ROW, _TIME)]
        near = schema_for(text, self.input.schema)
        try:
            return RowsQuery.read(text, {"rows": pa.schema([*near, *own])}, self.shown)
        except NotFoundError:
            # Again, for a message that knows all columns.
            return RowsQuery.read(text, {"rows": pa.schema([*self.input.schema, *own])}, self.shown)

    def line(self) -> str:
        return self.shown

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.ordering.by,)

    def extents(self) -> tuple[Extent | None, ...]:
        time = self.ordering.time
        if time in self.columns:
            return (None,)
        spans = [_times(column) for column in self.columns.values()]
        before, after = (_furthest(side) for side in zip(*spans, strict=True))
        return (Extent(time, time, before, after),)

    def kernel(self) -> KeyedKernel:
        plain = {name: (self.columns[name], what) for name, what in self._plain.items()}
        names: tuple[str, ...] = ()
        if self._query is not None:
            texts = " ".join(c.text("", None) for n, c in self.columns.items() if n not in self._plain)
            names = tuple(schema_for(texts, self.input.schema).names)
        free = all(c.is_order_free for c in self.columns.values())
        return _Over(self.ordering, tuple(self.columns), plain, self._query, names, self._reach, free)

    @cached_property
    def _reach(self) -> Reach | None:
        """What covers the reach of all columns, if they have one, and all in the same unit."""
        reaches = [c.frame.reach if c.frame else c.reach for c in self.columns.values()]
        found = [r for r in reaches if r is not None]
        if len(found) < len(reaches) or len({r.in_time for r in found}) > 1:
            return None
        return Reach(max(r.before for r in found), max(r.after for r in found), found[0].in_time)

    def frame(self, *frames: DataFrame) -> DataFrame | None:
        by = ", ".join(map(quoted, self.ordering.by))
        parts = f"PARTITION BY {by} " if by else ""
        kind = self.input.schema.field(self.ordering.time).type
        texts = {}
        for name, column in self.columns.items():
            in_time = column.frame is not None and column.frame.in_time
            order = (self.ordering.time,) if in_time else (self.ordering.time, *self.ordering.tiebreak)
            window = f"{parts}ORDER BY {', '.join(map(quoted, order))}"
            texts[name] = column.text(window, kind if in_time else None)
        names = extended_schema(self.input.schema, dict.fromkeys(self.columns, pa.null())).names
        return frames[0].selectExpr(*[f"{texts[n]} AS {quoted(n)}" if n in texts else quoted(n) for n in names])


def _times(column: Windowed) -> tuple[int | None, int | None]:
    """How far back and ahead a function looks, in time."""
    if column.frame is not None:
        return column.frame.times
    reach = column.reach
    if reach is None:
        return None, None
    if reach.in_time:
        return reach.before, reach.after
    return None if reach.before else 0, None if reach.after else 0


def _furthest(spans: tuple[int | None, ...]) -> int | None:
    found = [span for span in spans if span is not None]
    return max(found) if len(found) == len(spans) else None


def extended_schema(schema: pa.Schema, columns: Mapping[str, pa.DataType]) -> pa.Schema:
    """A schema with new columns: in the place of one of the same name, or at the end.

    >>> extended_schema(pa.schema([("a", pa.int32()), ("b", pa.int32())]), {"c": pa.string(), "a": pa.string()}).names
    ['a', 'b', 'c']
    """
    for name, kind in columns.items():
        at = schema.get_field_index(name)
        schema = schema.append(pa.field(name, kind)) if at < 0 else schema.set(at, pa.field(name, kind))
    return schema


def extended(table: pa.Table, columns: Mapping[str, pa.Array | pa.ChunkedArray]) -> pa.Table:
    """A table with new columns, as `extended_schema` places them."""
    for name, values in columns.items():
        at = table.schema.get_field_index(name)
        field = pa.field(name, values.type)
        table = table.append_column(field, values) if at < 0 else table.set_column(at, field, values)
    return table


@dataclass(frozen=True, slots=True)
class _Over:
    ordering: Ordering
    names: tuple[str, ...]
    plain: Mapping[str, tuple[Windowed, PlainAggregate]]
    query: RowsQuery | None
    read: tuple[str, ...]
    reach: Reach | None
    order_free: bool

    def __call__(self, rows: Rows) -> Iterator[pa.Table]:
        chunks = rows.sorted(self.ordering.columns)
        if not self.order_free:
            chunks = checked(chunks, self.ordering)
        for near in self._neighbourhoods(chunks):
            found = {}
            bounds = {}
            for name, (column, aggregate) in self.plain.items():
                assert column.frame is not None
                if column.frame not in bounds:
                    bounds[column.frame] = bounds_of(near, column.frame, self.ordering.time)
                found[name] = over_bounds(bounds[column.frame], aggregate, column.least)
            if self.query is not None:
                found |= self._queried(near)
            yield extended(near.rows, {name: found[name] for name in self.names})

    def _neighbourhoods(self, chunks: Iterator[pa.Table]) -> Iterator[Neighbourhood]:
        if self.reach is not None:
            yield from neighbourhoods(chunks, self.ordering, self.reach)
            return
        for table in whole_keys(chunks, self.ordering.by):
            yield Neighbourhood(table, 0, table.num_rows, key_starts(table, self.ordering.by), 0)

    def _queried(self, near: Neighbourhood) -> dict[str, pa.ChunkedArray]:
        assert self.query is not None
        rows = near.table.num_rows
        series = np.repeat(np.arange(len(near.starts)), np.diff(near.starts, append=rows))
        times: pa.Array = pa.nulls(rows, pa.int64())
        if self.reach is None or self.reach.in_time:
            numbers, timed = time_numbers(near.table.column(self.ordering.time))
            times = pa.array(numbers, mask=None if timed is None else ~timed)
        own = [pa.array(series), pa.array(np.arange(rows)), times]
        table = pa.table(
            [*(near.table.column(name) for name in self.read), *own], names=[*self.read, _SERIES, _ROW, _TIME]
        )
        answer = self.query.run({"rows": table})
        at = answer.column(_ROW).to_numpy()
        order = np.empty(rows, np.int64)
        order[at] = np.arange(rows)
        wanted = pa.array(order[near.begin : near.end])
        in_order = bool((at[1:] > at[:-1]).all())
        return {
            name: answer.column(name).slice(near.begin, near.end - near.begin)
            if in_order
            else answer.column(name).take(wanted)
            for name in answer.column_names
            if name != _ROW
        }
