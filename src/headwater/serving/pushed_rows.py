"""The rows of a write to a pushed table, brought to the table's own types, or refused.

All columns of the table have to be there, and no others. Types may be other forms of the column's (a dictionary, a
large string), or such that a conversion keeps every value: whole numbers that fit, narrower floats, other units of a
timestamp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import InputError, SchemaError
from headwater.serving.building import taken
from headwater.serving.dtypes import dtype_name, stored_type
from headwater.serving.keys import KeyBatch

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["as_table", "fitted", "once"]


def as_table(rows: Any) -> pa.Table:
    """Rows as a table."""
    if isinstance(rows, pa.RecordBatchReader):
        return rows.read_all()
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if not isinstance(rows, pa.Table):
        raise InputError.not_arrow(type(rows).__name__)
    return rows


def fitted(rows: pa.Table, wanted: pa.Schema, key: Sequence[str], where: str) -> pa.RecordBatch:
    """The rows as one batch of the table's columns and types; an error for rows that are not what they should be."""
    missing = [name for name in wanted.names if name not in rows.column_names]
    extra = [name for name in rows.column_names if name not in wanted.names]
    if missing or extra:
        raise SchemaError.pushed_columns(missing, extra, wanted.names, where)
    if len(rows.column_names) != len(wanted.names):
        raise SchemaError.duplicate_columns(sorted({n for n in wanted.names if rows.column_names.count(n) > 1}))
    arrays = []
    for f in wanted:
        array = _converted(rows.column(f.name).combine_chunks(), f, where)
        if array.null_count and not f.nullable:
            what = "a key is null" if f.name in key else "a value is null, and it is declared without nulls"
            raise SchemaError.pushed_values(f.name, dtype_name(f.type), what, where)
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _converted(array: pa.Array, f: pa.Field, where: str) -> pa.Array:
    """Values of a column's type: equal types, other forms of them, and what loses nothing."""
    if array.type == f.type:
        return array
    want = dtype_name(f.type)
    try:
        have = f.type if pa.types.is_null(array.type) else stored_type(f.name, array.type)
        if have != f.type and not _loses_nothing(have, f.type):
            raise SchemaError.pushed_values(f.name, want, f"they are {dtype_name(have)}", where)
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        return array.cast(f.type, safe=True)
    except pa.ArrowException as e:
        raise SchemaError.pushed_values(f.name, want, str(e).split("\n", 1)[0][:200], where) from None


def _loses_nothing(have: pa.DataType, want: pa.DataType) -> bool:
    """Whether a safe cast from one type to the other either keeps the values or raises."""
    t = pa.types
    if t.is_integer(have):
        return bool(t.is_integer(want))
    if t.is_floating(have) and t.is_floating(want):
        return bool(have.bit_width < want.bit_width)
    if t.is_timestamp(have) and t.is_timestamp(want):
        return (have.tz is None) == (want.tz is None)
    if t.is_decimal(have) and t.is_decimal(want):
        return True
    if t.is_list(have) and t.is_list(want):
        return have.value_type == want.value_type or _loses_nothing(have.value_type, want.value_type)
    return False


def once(keys: KeyBatch) -> KeyBatch:
    """The keys, each once."""
    data, offsets = pa.py_buffer(np.ascontiguousarray(keys.data)), pa.py_buffer(keys.offsets.astype(np.int64))
    names = pa.Array.from_buffers(pa.large_binary(), len(keys), [None, offsets, data])
    first = pc.index_in(pc.unique(names), names).to_numpy(zero_copy_only=False).astype(np.int64)
    return taken(keys, first)
