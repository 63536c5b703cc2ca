"""A user's function on the rows of a key in two streams: group(…).cogroup.

For each key that is in one of the streams the function gets its rows of both, of which one may be empty; one with three
parameters gets the keys first. Keys are those of `apply`: null is a key, and NaN equals itself. Types of the keys may
differ in width. A key's rows of both sides have to fit in memory, those of a task do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from headwater.timeseries.aligning import aligned, key_types
from headwater.timeseries.node import Keyed, KeyedKernel, Node
from headwater.timeseries.operators.apply import takes_key
from headwater.timeseries.operators.functions import Function, as_batch, as_result, called, name_of
from headwater.timeseries.rows import Rows, key_starts, sort_table

__all__ = ["Cogroup"]

_SIDE = "__hw_side"


@dataclass(frozen=True)
class Cogroup(Keyed):
    """What a function makes of each key's rows in two inputs.

    >>> from headwater.timeseries.operators.values import Values
    >>> from headwater.timeseries.running.here import run_here
    >>> a, b = Values(pa.table({"k": [1, 2, 1]})), Values(pa.table({"j": [2, 3]}))
    >>> count = lambda key, l, r: {"k": [key[0]], "l": [l.num_rows], "r": [r.num_rows]}
    >>> schema = pa.schema([("k", pa.int64()), ("l", pa.int64()), ("r", pa.int64())])
    >>> [tuple(row.values()) for row in run_here(Cogroup(a, b, (("k", "j"),), count, schema)).to_pylist()]
    [(1, 2, 0), (2, 1, 1), (3, 0, 1)]
    """

    left: Node
    right: Node
    on: tuple[tuple[str, str], ...]
    function: Function
    result: pa.Schema
    orders: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    batch: str = "arrow"

    def __post_init__(self) -> None:
        key_types(self.left.schema, self.right.schema, self.on)

    @property
    def schema(self) -> pa.Schema:
        return self.result

    def line(self) -> str:
        return f"cogroup with {name_of(self.function)}() by {', '.join(a for a, _ in self.on)}"

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return tuple(a for a, _ in self.on), tuple(b for _, b in self.on)

    def output_keys(self) -> tuple[str, ...] | None:
        return None

    def kernel(self) -> KeyedKernel:
        kinds = tuple(key_types(self.left.schema, self.right.schema, self.on))
        return _Cogroup(self.function, self.on, kinds, self.orders, self.result, self.batch)


@dataclass(frozen=True, slots=True)
class _Cogroup:
    function: Function
    on: tuple[tuple[str, str], ...]
    kinds: tuple[pa.DataType, ...]
    orders: tuple[tuple[str, ...], tuple[str, ...]]
    schema: pa.Schema
    batch: str

    def __call__(self, left: Rows, right: Rows) -> Iterator[pa.Table]:
        keyed = takes_key(self.function, 2)
        my_keys, their_keys = [a for a, _ in self.on], [b for _, b in self.on]
        for mine, theirs in aligned(left, right, my_keys, their_keys):
            sides = sort_table(mine, [*my_keys, *self.orders[0]]), sort_table(theirs, [*their_keys, *self.orders[1]])
            for key, a, b in self._groups(*sides):
                first = (key,) if keyed else ()
                given = as_batch(a, self.batch), as_batch(b, self.batch)
                with called(f"cogroup with {name_of(self.function)}()"):
                    found = self.function(*first, *given)
                yield as_result(found, self.schema, self.function)

    def _groups(self, left: pa.Table, right: pa.Table) -> Iterator[tuple[tuple[object, ...], pa.Table, pa.Table]]:
        keys = pa.concat_tables([self._keys(left, 0), self._keys(right, 1)])
        names = keys.column_names[: len(self.on)]
        # Both sides are sorted, so that a key's rows of a side lie together and begin where as many rows of it came
        # before.
        ordered = sort_table(keys, [*names, _SIDE])
        starts = key_starts(ordered, names)
        sides = np.asarray(ordered.column(_SIDE))
        before = np.concatenate(([0], np.cumsum(sides)))
        bounds = [*starts.tolist(), len(sides)]
        for start, end in pairwise(bounds):
            theirs = int(before[start]), int(before[end])
            mine = start - theirs[0], end - theirs[1]
            key = tuple(ordered.column(name)[start].as_py() for name in names)
            yield key, left.slice(mine[0], mine[1] - mine[0]), right.slice(theirs[0], theirs[1] - theirs[0])

    def _keys(self, rows: pa.Table, side: int) -> pa.Table:
        columns = [rows.column(pair[side]).cast(kind) for pair, kind in zip(self.on, self.kinds, strict=True)]
        sides = pa.array(np.full(rows.num_rows, side, np.int8))
        return pa.Table.from_arrays([*columns, sides], names=[*(f"k{i}" for i in range(len(columns))), _SIDE])
