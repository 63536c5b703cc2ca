"""Physical columns: how a table's columns look inside its Parquet files.

Under column mapping a file knows a column by another name (and an id); after schema changes an older file lacks
columns, or holds a narrower type. These functions go both ways, for nested columns too, without touching values
that need no change.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.schema import DeltaType, Field, arrow_type

__all__ = ["physical_field", "to_logical", "to_physical"]


def _children(dtype: DeltaType) -> list[Field]:
    assert isinstance(dtype, dict)
    return [Field.from_json(f) for f in dtype["fields"]]


def physical_field(f: Field, *, mapped: bool) -> pa.Field:
    """The column as it is written to files: its physical name, with the ids readers map by."""
    metadata = None
    if mapped and "delta.columnMapping.id" in f.metadata:
        metadata = {"PARQUET:field_id": str(f.metadata["delta.columnMapping.id"])}
    name = f.physical_name if mapped else f.name
    return pa.field(name, _physical_type(f.type, mapped), f.nullable, metadata)


def _physical_type(dtype: DeltaType, mapped: bool) -> pa.DataType:
    if isinstance(dtype, str) or not mapped:
        return arrow_type(dtype)
    if dtype["type"] == "struct":
        return pa.struct([physical_field(f, mapped=True).with_nullable(True) for f in _children(dtype)])
    if dtype["type"] == "array":
        return pa.list_(pa.field("element", _physical_type(dtype["elementType"], mapped)))
    key = pa.field("key", _physical_type(dtype["keyType"], mapped), False)
    return pa.map_(key, pa.field("value", _physical_type(dtype["valueType"], mapped)))


def to_physical(array: pa.Array, f: Field, *, mapped: bool) -> pa.Array:
    """Values of a column, typed as `physical_field` says."""
    if not mapped or isinstance(f.type, str):
        return array
    return _convert(array, f.type, mapped=True, inward=True)


def to_logical(array: pa.Array, dtype: DeltaType, *, mapped: bool) -> pa.Array:
    """Values read from a file, typed as the table's schema says today."""
    target = arrow_type(dtype)
    return array if array.type == target else _convert(array, dtype, mapped=mapped, inward=False)


def _convert(array: pa.Array, dtype: DeltaType, *, mapped: bool, inward: bool) -> pa.Array:
    target = _physical_type(dtype, mapped) if inward else arrow_type(dtype)
    if array.type == target:
        return array
    if isinstance(dtype, str):
        return _cast(array, target)
    if array.offset or pa.types.is_large_list(array.type):
        array = array.take(pa.array(np.arange(len(array))))
    if dtype["type"] == "struct":
        arrays = [_child(array, f, mapped, inward) for f in _children(dtype)]
        return pa.StructArray.from_arrays(arrays, fields=list(target), mask=array.is_null())
    mask = array.is_null() if array.null_count else None
    if dtype["type"] == "array":
        values = _convert(array.values, dtype["elementType"], mapped=mapped, inward=inward)
        return pa.ListArray.from_arrays(array.offsets, values, type=target, mask=mask)
    keys = _convert(array.keys, dtype["keyType"], mapped=mapped, inward=inward)
    items = _convert(array.items, dtype["valueType"], mapped=mapped, inward=inward)
    return pa.MapArray.from_arrays(array.offsets, keys, items, type=target, mask=mask)


def _child(array: Any, f: Field, mapped: bool, inward: bool) -> pa.Array:
    source = f.name if inward or not mapped else f.physical_name
    index = array.type.get_field_index(source)
    if index < 0:  # added to the struct after the file was written
        return pa.nulls(len(array), _physical_type(f.type, mapped) if inward else arrow_type(f.type))
    return _convert(array.field(index), f.type, mapped=mapped, inward=inward)


def _cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(array.type) and pa.types.is_timestamp(target):
        # Files of other engines may hold nanoseconds; Delta's timestamps are microseconds.
        return pc.cast(array, target, safe=False)
    return pc.cast(array, target)
