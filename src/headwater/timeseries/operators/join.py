"""Pairs of rows with equal keys: join.

A key that is null equals nothing; NaN equals NaN and -0.0 equals 0.0, as in Spark. The keys come once, under the left
side's names and in its places: the left side's value, or the right side's where there is no left row. Which rows meet
is a query over the keys and row numbers only; the columns of both sides are then taken by number, whatever their types.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import InputError
from headwater.timeseries.aligning import aligned, key_types
from headwater.timeseries.node import Keyed, KeyedKernel, Node
from headwater.timeseries.querying import RowsQuery, quoted
from headwater.timeseries.rows import Rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["HOW", "Join"]

HOW = {
    "inner": "JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
    "semi": "LEFT SEMI JOIN",
    "anti": "LEFT ANTI JOIN",
}
_ROW = "__hw_row"


@dataclass(frozen=True)
class Join(Keyed):
    """Rows of two inputs that agree in their keys.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> left, right = Values(pa.table({"k": [1, 2], "v": [5, 6]})), Values(pa.table({"j": [2, 3], "v": [7, 8]}))
    >>> run_here(Join(left, right, (("k", "j"),), "full")).sort_by("k").to_pylist()
    [{'k': 1, 'v': 5, 'v_right': None}, {'k': 2, 'v': 6, 'v_right': 7}, {'k': 3, 'v': None, 'v_right': 8}]
    """

    left: Node
    right: Node
    on: tuple[tuple[str, str], ...]
    how: str = "inner"
    suffix: str = "_right"
    broadcast: bool | None = None

    @property
    def frame_first(self) -> bool:
        return True

    @cached_property
    def renamed(self) -> dict[str, str]:
        """The right side's other columns, and what they are called."""
        if self.how in {"semi", "anti"}:
            return {}
        taken = {name.lower() for name in self.left.schema.names}
        keys = {theirs for _, theirs in self.on}
        found = {}
        for name in self.right.schema.names:
            if name in keys:
                continue
            new = name + self.suffix if name.lower() in taken else name
            if new.lower() in taken:
                expected = f"one under which `{name}` of the other stream has a name of its own"
                raise InputError.bad_argument("suffix", self.suffix, expected)
            taken.add(new.lower())
            found[name] = new
        return found

    @cached_property
    def schema(self) -> pa.Schema:
        kinds = key_types(self.left.schema, self.right.schema, self.on)
        fields = {f.name: pa.field(f.name, f.type) for f in self.left.schema}
        for (mine, theirs), kind in zip(self.on, kinds, strict=True):
            if self.how == "right":
                fields[mine] = pa.field(mine, self.right.schema.field(theirs).type)
            elif self.how == "full":
                fields[mine] = pa.field(mine, kind)
        others = [pa.field(new, self.right.schema.field(old).type) for old, new in self.renamed.items()]
        return pa.schema([*fields.values(), *others])

    @cached_property
    def query(self) -> RowsQuery:
        kinds = key_types(self.left.schema, self.right.schema, self.on)
        schema = pa.schema([(f"k{i}", kind) for i, kind in enumerate(kinds)] + [(_ROW, pa.int64())])
        matches = " AND ".join(f"l.k{i} = r.k{i}" for i in range(len(kinds)))
        theirs = "" if self.how in {"semi", "anti"} else f", r.{_ROW} AS theirs"
        text = f"SELECT l.{_ROW} AS mine{theirs} FROM l {HOW[self.how]} r ON {matches}"
        return RowsQuery.read(text, {"l": schema, "r": schema}, self.line())

    def line(self) -> str:
        on = ", ".join(a if a == b else f"{a} = {b}" for a, b in self.on)
        return f"{self.how} join on {on}"

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return tuple(a for a, _ in self.on), tuple(b for _, b in self.on)

    def output_keys(self) -> tuple[str, ...] | None:
        # Where rows have no left side, the key is the right side's, which lies in the same place.
        return self.keys()[0]

    def kernel(self) -> KeyedKernel:
        kinds = tuple(key_types(self.left.schema, self.right.schema, self.on))
        return _Join(self.query, self.on, kinds, self.how, tuple(self.renamed), self.schema)

    def frame(self, *frames: DataFrame) -> DataFrame:
        from pyspark.sql.functions import broadcast

        left, right = frames
        names = [*((b, a) for a, b in self.on), *self.renamed.items()]
        # Texts, because a column of Spark's costs several calls into the JVM, and a query of many joins has hundreds.
        right = right.selectExpr(*[f"{quoted(old)} AS {quoted(new)}" for old, new in names])
        if self.broadcast is not None:
            right = broadcast(right) if self.broadcast else right.hint("merge")
        how = {"semi": "left_semi", "anti": "left_anti"}.get(self.how, self.how)
        joined = left.join(right, on=[a for a, _ in self.on], how=how)
        return joined.selectExpr(*map(quoted, self.schema.names))


@dataclass(frozen=True, slots=True)
class _Join:
    query: RowsQuery
    on: tuple[tuple[str, str], ...]
    kinds: tuple[pa.DataType, ...]
    how: str
    others: tuple[str, ...]
    schema: pa.Schema

    def __call__(self, left: Rows, right: Rows) -> Iterator[pa.Table]:
        for mine, theirs in aligned(left, right, [a for a, _ in self.on], [b for _, b in self.on]):
            yield self._joined(mine, theirs)

    def _joined(self, left: pa.Table, right: pa.Table) -> pa.Table:
        found = self.query.run(
            {
                "l": self._numbered(left, [a for a, _ in self.on]),
                "r": self._numbered(right, [b for _, b in self.on]),
            }
        )
        mine = found.column("mine").combine_chunks()
        rows = left.take(mine)
        if self.how in {"semi", "anti"}:
            return rows.cast(self.schema)
        theirs = found.column("theirs").combine_chunks()
        columns = dict(zip(left.schema.names, rows.columns, strict=True))
        if self.how in {"right", "full"}:
            keys = right.select([b for _, b in self.on]).take(theirs)
            for (name, _), other in zip(self.on, keys.columns, strict=True):
                kind = self.schema.field(name).type
                columns[name] = (
                    other.cast(kind)
                    if self.how == "right"
                    else _either(mine, columns[name].cast(kind), other.cast(kind))
                )
        others = right.select(list(self.others)).take(theirs).columns
        return pa.Table.from_arrays([*columns.values(), *others], schema=self.schema)

    def _numbered(self, rows: pa.Table, keys: list[str]) -> pa.Table:
        columns = [rows.column(k).cast(kind) for k, kind in zip(keys, self.kinds, strict=True)]
        numbers = pa.array(np.arange(rows.num_rows, dtype=np.int64))
        return pa.Table.from_arrays([*columns, numbers], names=[*(f"k{i}" for i in range(len(keys))), _ROW])


def _either(mine: pa.Array, left: pa.ChunkedArray, right: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(pc.is_valid(mine), left, right)
