"""Packing: columns of Arrow into rows of words, and back.

A batch crosses over in one call, by Arrow's C data interface (`headwater.kernels.arrow`). Short strings are copied into
their slots; long strings are referred to where Arrow has them, so whoever holds the rows holds the batch too (the
*owners*). Nested values become bytes first (`headwater.incremental.nested`). Nothing here loops over rows in Python.

Invariants: ``unpack(pack(x))`` is ``x`` (but for NaN's payload); the words of a null are zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.errors import UnsupportedError
from headwater.incremental import nested
from headwater.kernels import arrow as kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.incremental.layout import Layout, Placed

__all__ = [
    "Owners",
    "Rows",
    "pack",
    "pack_column",
    "pack_table",
    "pack_weighted",
    "unpack",
    "unpack_column",
    "unpack_table",
]

Rows = npt.NDArray[np.int64]
Owners = tuple[object, ...]


def pack_table(layout: Layout, table: pa.Table | pa.RecordBatch) -> tuple[Rows, Owners]:
    """A matrix of words with zero weights and unfilled order words, and what has to be kept alive for it."""
    schema = table.schema
    if not schema.equals(layout.schema):
        assert schema.types == layout.schema.types, f"{schema.types} are not the layout's {layout.schema.types}"
    out = np.zeros((table.num_rows, layout.width), dtype=np.int64)
    if isinstance(table, pa.RecordBatch):
        return out, (_pack_batch(layout, table, out),)
    owners = []
    at = 0
    for batch in table.to_batches():
        owners.append(_pack_batch(layout, batch, out[at : at + batch.num_rows]))
        at += batch.num_rows
    return out, tuple(owners)


def _pack_batch(layout: Layout, batch: pa.RecordBatch, out: Rows) -> object:
    if layout.has_nested:
        arrays = [
            nested.encode(a) if p.kind == "nested" else a for p, a in zip(layout.columns, batch.columns, strict=True)
        ]
        batch = pa.RecordBatch.from_arrays(arrays, names=[str(i) for i in range(len(arrays))])
    room = kernels.room()
    batch._export_to_c(room)
    kernels.pack(room, True, layout.codes, out)
    return batch


def pack_weighted(layout: Layout, table: pa.Table | pa.RecordBatch, *, weighted: bool) -> tuple[Rows, Owners] | None:
    """The same with weights: those of the last column, or one each. None if there are nulls where there may be none.

    For layouts without nested columns.
    """
    assert not layout.has_nested, "nested columns are packed one by one"
    out = np.zeros((table.num_rows, layout.width), dtype=np.int64)
    batches = [table] if isinstance(table, pa.RecordBatch) else table.to_batches()
    codes = layout.codes_with_weight if weighted else layout.codes
    at = 0
    for batch in batches:
        room = kernels.room()
        batch._export_to_c(room)
        if not kernels.pack(room, True, codes, out if len(batches) == 1 else out[at : at + batch.num_rows]):
            return None
        at += batch.num_rows
    if not weighted:
        out[:, -1] = 1
    return out, tuple(batches)


def pack(layout: Layout, columns: Sequence[pa.Array], rows: int) -> tuple[Rows, Owners]:
    """The same for columns; ``rows`` is their number of rows."""
    out = np.zeros((rows, layout.width), dtype=np.int64)
    owners: list[object] = []
    for placed, array in zip(layout.columns, columns, strict=True):
        pack_column(out, placed, array, owners)
    return out, tuple(owners)


def pack_column(out: Rows, placed: Placed, array: pa.Array, owners: list[object]) -> None:
    """Fill the words of one column from an Arrow array of its type; the words and the null bits were zero."""
    if not len(out):
        return
    assert array.type == placed.dtype, f"{array.type} is not the column's {placed.dtype}"
    if placed.kind == "nested":
        array = nested.encode(array)
    room = kernels.room()
    array._export_to_c(room)
    kernels.pack(room, False, placed.codes, out)
    if placed.is_slot:
        owners.append(array)


def unpack_table(layout: Layout, rows: Rows) -> pa.Table:
    """The rows as a table whose last column is the weight."""
    return pa.Table.from_batches([_unpack_batch(layout, rows, layout.codes_with_weight, layout.plain_with_weight)])


def _unpack_batch(layout: Layout, rows: Rows, codes: Rows, schema: pa.Schema) -> pa.RecordBatch:
    struct = kernels.unpack(rows, True, codes, kernels.RELEASE)
    if struct == kernels.TOO_LONG:
        raise _too_long("the strings")
    batch = pa.RecordBatch._import_from_c(struct, schema)
    if layout.has_nested:
        arrays = batch.columns
        for i, placed in enumerate(layout.columns):
            if placed.kind == "nested":
                arrays[i] = nested.decode(arrays[i], placed.dtype)
        fields = [*layout.schema, *list(schema)[len(layout.columns) :]]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
    return batch


def unpack(layout: Layout, rows: Rows) -> list[pa.Array]:
    """The columns of the rows, as Arrow arrays of the schema's types."""
    if not layout.columns:
        return []
    return list(_unpack_batch(layout, rows, layout.codes, layout.plain).columns)


def unpack_column(placed: Placed, rows: Rows) -> pa.Array:
    """One column of the rows, as an Arrow array of its type."""
    struct = kernels.unpack(rows, False, placed.codes, kernels.RELEASE)
    if struct == kernels.TOO_LONG:
        raise _too_long(f"the texts of `{placed.name}`")
    if placed.kind == "nested":
        return nested.decode(pa.Array._import_from_c(struct, pa.binary()), placed.dtype)
    return pa.Array._import_from_c(struct, placed.dtype)


def _too_long(what: str) -> UnsupportedError:
    return UnsupportedError.operation("a change", f"{what} have more than 2 GiB in one batch", "make the steps smaller")
