"""Columns that Python functions compute from batches of rows: with_columns(name=function).

Each function gets a batch and gives one value for each of its rows; the other columns stay. As with `transform`, a
function has to look at each row by itself. What type a column gets is said with it, or found by calling the function
once, on the driver, with a batch of no rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from headwater.base.errors import InputError
from headwater.timeseries.node import Node, RowKernel, RowWise
from headwater.timeseries.operators.functions import Function, as_batch, as_column, called, name_of

__all__ = ["Computed", "type_of"]


@dataclass(frozen=True)
class Computed(RowWise):
    """The rows with columns that functions compute; one of a name that is there takes its place.

    >>> import pyarrow.compute as pc
    >>> from headwater.timeseries.operators.values import Values
    >>> rows = pa.table({"v": [1, 2]})
    >>> node = Computed(Values(rows), {"w": (lambda t: pc.add(t["v"], 1), pa.int64())})
    >>> node.kernel()(rows).to_pydict()
    {'v': [1, 2], 'w': [2, 3]}
    """

    input: Node
    columns: Mapping[str, tuple[Function, pa.DataType]]
    batch: str = "arrow"

    @cached_property
    def schema(self) -> pa.Schema:
        fields = {f.name: f for f in self.input.schema}
        return pa.schema((fields | {n: pa.field(n, kind) for n, (_, kind) in self.columns.items()}).values())

    def line(self) -> str:
        return f"with_columns {', '.join(f'{n} = {name_of(f)}()' for n, (f, _) in self.columns.items())}"

    def kept(self, name: str) -> str | None:
        return None if name in self.columns else super().kept(name)

    def kernel(self) -> RowKernel:
        return _Compute(self.schema, tuple((n, f) for n, (f, _) in self.columns.items()), self.batch)


@dataclass(frozen=True, slots=True)
class _Compute:
    schema: pa.Schema
    functions: tuple[tuple[str, Function], ...]
    batch: str

    def __call__(self, rows: pa.Table) -> pa.Table:
        if not rows.num_rows:
            return self.schema.empty_table()
        batch = as_batch(rows, self.batch)
        found = dict(zip(rows.schema.names, rows.columns, strict=True))
        for name, function in self.functions:
            with called(f"with_columns {name} = {name_of(function)}()"):
                given = function(batch)
            column = as_column(given, self.schema.field(name), function)
            if len(column) != rows.num_rows:
                expected = f"one value for each of the {rows.num_rows:,} rows"
                raise InputError.bad_argument(f"result of {name_of(function)}()", f"{len(column):,} values", expected)
            found[name] = column
        return pa.Table.from_arrays([found[name] for name in self.schema.names], schema=self.schema)


def type_of(function: Function, schema: pa.Schema, batch: str) -> pa.DataType:
    """The type of what a function gives, asked of it with no rows.

    >>> type_of(lambda t: t["v"], pa.schema([("v", pa.int16())]), "arrow")
    DataType(int16)
    """
    expected = "its type as well: with_columns(name=(function, pa.float64()))"
    try:
        found = function(as_batch(schema.empty_table(), batch))
        kind = as_column(found, pa.field("", _kind(found)), function).type
    except Exception as error:
        what = f"{name_of(function)}, which raised {type(error).__name__}: {error} for a batch of no rows"
        raise InputError.bad_argument("function", what, expected) from error
    if pa.types.is_null(kind):
        raise InputError.bad_argument("function", f"{name_of(function)}, whose type is not known", expected)
    return kind


def _kind(found: object) -> pa.DataType:
    if isinstance(found, pa.ChunkedArray | pa.Array):
        return found.type
    return pa.array(found.to_arrow() if hasattr(found, "to_arrow") else found).type
