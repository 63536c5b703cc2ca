"""A user's function on each batch of rows: transform.

The function gets some rows and gives some rows, of the schema that was announced. It is called for whatever rows lie
together in a task, so the answer is a function of the rows only if the function looks at each row by itself; one that
needs all rows of a group is for `group(…).apply`, one that goes along a series for `stateful_transform`.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headwater.timeseries.node import Node, RowKernel, RowWise
from headwater.timeseries.operators.functions import Function, as_batch, as_result, called, name_of

__all__ = ["Transform"]


@dataclass(frozen=True)
class Transform(RowWise):
    """What a function makes of each batch.

    >>> from headwater.timeseries.operators.values import Values
    >>> node = Transform(Values(pa.table({"v": [1, 2]})), lambda t: t.slice(1), pa.schema([("v", pa.int64())]), ("v",))
    >>> node.kernel()(pa.table({"v": [1, 2]})).to_pylist()
    [{'v': 2}]
    """

    input: Node
    function: Function
    result: pa.Schema
    columns: tuple[str, ...]
    """What the function gets to see."""
    batch: str = "arrow"

    @property
    def schema(self) -> pa.Schema:
        return self.result

    def line(self) -> str:
        return f"transform with {name_of(self.function)}()"

    def kept(self, name: str) -> str | None:
        # A function may put any values under a name.
        return None

    def kernel(self) -> RowKernel:
        return _Transform(self.function, self.result, self.columns, self.batch)


@dataclass(frozen=True, slots=True)
class _Transform:
    function: Function
    schema: pa.Schema
    columns: tuple[str, ...]
    batch: str

    def __call__(self, rows: pa.Table) -> pa.Table:
        if not rows.num_rows:
            return self.schema.empty_table()
        given = as_batch(rows.select(list(self.columns)), self.batch)
        with called(f"transform with {name_of(self.function)}()"):
            found = self.function(given)
        return as_result(found, self.schema, self.function)
