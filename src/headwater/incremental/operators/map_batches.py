"""Map and flat map by a Python function on Arrow: for what SQL has no word for.

The function is given rows as a table and gives rows; it must treat each row by itself (that is what makes it linear),
and give the same for the same row whenever it is asked, because a deleted row is taken back by computing it again. For
a flat map it gives the rows together with the position of the row each came from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

import numpy as np
import pyarrow as pa

from headwater.base.errors import HeadwaterError, InputError
from headwater.incremental.layout import Layout
from headwater.incremental.operators.node import Kind, Node
from headwater.incremental.packing import unpack
from headwater.incremental.zset import ZSet

__all__ = ["FlatMap", "MapBatches"]

Function = Callable[[pa.Table], pa.Table]
FlatFunction = Callable[[pa.Table], "tuple[pa.Table, Sequence[int]]"]
_Given = TypeVar("_Given")


class MapBatches(Node):
    """One row for each row, by a function of Arrow tables."""

    kind: ClassVar[Kind] = "lift"

    def __init__(self, source: Node, function: Function, schema: pa.Schema, *, label: str = "map") -> None:
        super().__init__([source], Layout(schema), label=label, detail=_name(function))
        self._function = function

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        delta = deltas[0]
        found = _called(self._function, _table(delta), self.detail)
        if not isinstance(found, pa.Table):
            raise InputError.bad_rows(f"{self.detail} gave {type(found).__name__}, and not an Arrow table")
        if found.num_rows != len(delta):
            raise InputError.bad_rows(f"{self.detail} gave {found.num_rows} rows for {len(delta)}")
        return ZSet.packed(self.layout, _cast(found, self.layout.schema, self.detail), delta.weights)


class FlatMap(Node):
    """Any number of rows for each row, by a function of Arrow tables."""

    kind: ClassVar[Kind] = "lift"

    def __init__(self, source: Node, function: FlatFunction, schema: pa.Schema, *, label: str = "flat map") -> None:
        super().__init__([source], Layout(schema), label=label, detail=_name(function))
        self._function = function

    def step(self, deltas: Sequence[ZSet]) -> ZSet:
        delta = deltas[0]
        given = _called(self._function, _table(delta), self.detail)
        if not isinstance(given, tuple) or len(given) != 2 or not isinstance(given[0], pa.Table):
            raise InputError.bad_rows(
                f"{self.detail} did not give an Arrow table and the positions of its rows' origins"
            )
        found, parents = given
        positions = np.asarray(parents, dtype=np.int64)
        if len(positions) != found.num_rows or (
            len(positions) and not 0 <= positions.min() <= positions.max() < len(delta)
        ):
            raise InputError.bad_rows(f"{self.detail} gave {found.num_rows} rows and {len(positions)} positions")
        return ZSet.packed(self.layout, _cast(found, self.layout.schema, self.detail), delta.weights[positions])


def _table(delta: ZSet) -> pa.Table:
    return pa.Table.from_arrays(unpack(delta.layout, delta.rows), schema=delta.schema)


def _called(function: Callable[[pa.Table], _Given], table: pa.Table, name: str) -> _Given:
    try:
        return function(table)
    except HeadwaterError:
        raise
    except Exception as error:
        raise InputError.failing_function(name, error) from error


def _cast(table: pa.Table, schema: pa.Schema, name: str) -> pa.Table:
    try:
        return table.select(schema.names).cast(schema)
    except (KeyError, pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise InputError.bad_rows(f"{name} gave rows that are not ({schema.to_string()}): {error}") from None


def _name(function: object) -> str:
    return getattr(function, "__name__", type(function).__name__)
