"""Columns as the circuits hold them: plain numpy values with a mask, and Arrow for what has no fixed width.

The problem: Arrow's own arrays cost microseconds to look into, and a step of a hundred rows has a hundred of them in
all. The idea: every type that fits a machine word is one numpy array (integers, dates, timestamps and decimals of up to
18 digits as int64, decimals by their unscaled value), and what is left stays an Arrow array.

Invariants:
1. ``valid`` is None where every row has a value, else a mask; ``values`` under False are arbitrary. An Arrow array has
   its nulls in itself, and ``valid`` is None or agrees with them.
2. Nobody writes into ``values`` or ``valid``: they may be strided, read-only views of somebody else's memory.
3. Between the operators of a program a decimal of more than 18 digits is an int64 array where its values fit one, and
   else an array of Python's whole numbers; `inner` and `outer` go between that and Arrow.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = [
    "Constant",
    "Mask",
    "Operand",
    "Vector",
    "arrow_mask",
    "constant_of",
    "dense",
    "inner",
    "is_arrow",
    "is_wide",
    "nulls",
    "outer",
    "packed",
    "unpacked",
    "validity",
    "vector_of",
]

Mask: TypeAlias = npt.NDArray[np.bool_]
_LONG_DIGITS = 18
_EXACT = Context(prec=100)
_WORD = (1 << 64) - 1
_FEW = 1024
# The eight bits of each byte as eight bytes: for few rows a look-up costs half of numpy's unpackbits.
_EIGHT = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").view(np.uint64).ravel()
_STORED: dict[pa.DataType, type[np.generic]] = {
    pa.int8(): np.int8,
    pa.int16(): np.int16,
    pa.int32(): np.int32,
    pa.int64(): np.int64,
    pa.date32(): np.int32,
    pa.float32(): np.float32,
    pa.float64(): np.float64,
}


@dataclass(slots=True)
class Vector:
    """One value a row: see the head of this file."""

    dtype: pa.DataType
    values: Any
    valid: Mask | None = None

    def __len__(self) -> int:
        return len(self.values)

    def to_arrow(self) -> pa.Array:
        """The same values as an Arrow array of ``dtype``.

        >>> Vector(pa.int8(), np.array([1, 2]), np.array([True, False])).to_arrow().to_pylist()
        [1, None]
        """
        return _to_arrow(self)


@dataclass(slots=True, frozen=True)
class Constant:
    """One value for all rows, or None for a null.

    It is numpy's scalar of the type, which costs an operator half of what Python's costs; Python's for booleans and
    decimals, and Arrow's for the types that are Arrow arrays.
    """

    dtype: pa.DataType
    values: Any
    valid: ClassVar[None] = None


Operand: TypeAlias = Vector | Constant


def is_wide(dtype: pa.DataType) -> bool:
    """Is it a decimal of more digits than an int64 holds?

    >>> is_wide(pa.decimal128(18, 2)), is_wide(pa.decimal128(19, 2))
    (False, True)
    """
    return bool(pa.types.is_decimal(dtype)) and dtype.precision > _LONG_DIGITS


def is_arrow(dtype: pa.DataType) -> bool:
    """Are values of this type an Arrow array between operators?

    >>> is_arrow(pa.string()), is_arrow(pa.decimal128(38, 2)), is_arrow(pa.date32())
    (True, False, False)
    """
    plain = dtype in _STORED or pa.types.is_boolean(dtype) or pa.types.is_decimal(dtype)
    return not plain and not pa.types.is_timestamp(dtype)


def unpacked(buffer: pa.Buffer, offset: int, rows: int) -> Mask:
    """The bits of an Arrow bitmap, one a byte.

    >>> unpacked(pa.py_buffer(bytes([0b101])), 0, 3).tolist()
    [True, False, True]
    """
    first = offset >> 3
    used = np.frombuffer(buffer, np.uint8)[first : (offset + rows + 7) >> 3]
    skipped = offset - (first << 3)
    if rows <= _FEW:
        return _EIGHT[used].view(np.bool_)[skipped : skipped + rows]
    bits = np.unpackbits(used, count=skipped + rows, bitorder="little").view(np.bool_)
    return bits[skipped:] if skipped else bits


def packed(mask: Mask) -> pa.Buffer:
    """An Arrow bitmap of a mask."""
    return pa.py_buffer(np.packbits(mask, bitorder="little"))


def arrow_mask(mask: Mask) -> pa.Array:
    """A mask as an Arrow array.

    >>> arrow_mask(np.array([True, False])).to_pylist()
    [True, False]
    """
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, packed(mask)], 0)


def _mask_of(array: pa.Array) -> Mask | None:
    if array.null_count == 0:
        return None
    bitmap = array.buffers()[0]
    if bitmap is None:
        return np.zeros(len(array), np.bool_)
    return unpacked(bitmap, array.offset, len(array))


def validity(operand: Operand) -> Mask | None:
    """Which rows have a value; None for all of them."""
    values = operand.values
    return _mask_of(values) if isinstance(values, pa.Array) else operand.valid


def vector_of(array: pa.Array | pa.ChunkedArray) -> Vector:
    """The vector of an Arrow column, without copying where the layout allows it.

    >>> vector_of(pa.array([1, None], pa.int32())).values.dtype
    dtype('int64')
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
        if isinstance(array, pa.ChunkedArray):
            array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    dtype = array.type
    if pa.types.is_large_string(dtype) or pa.types.is_string_view(dtype):
        array, dtype = array.cast(pa.string()), pa.string()
    elif pa.types.is_large_binary(dtype) or pa.types.is_binary_view(dtype):
        array, dtype = array.cast(pa.binary()), pa.binary()
    if is_arrow(dtype) or is_wide(dtype):
        return Vector(dtype, array, None)
    rows, offset = len(array), array.offset
    valid, data = _mask_of(array), array.buffers()[1]
    if data is None or rows == 0:
        kind = np.dtype(np.bool_ if pa.types.is_boolean(dtype) else _number_type(dtype))
        return Vector(dtype, np.zeros(rows, kind), valid)
    if pa.types.is_boolean(dtype):
        return Vector(dtype, unpacked(data, offset, rows), valid)
    if pa.types.is_decimal(dtype):
        return Vector(dtype, np.frombuffer(data, np.int64)[2 * offset : 2 * (offset + rows) : 2], valid)
    stored = np.frombuffer(data, _STORED.get(dtype, np.int64))[offset : offset + rows]
    return Vector(dtype, stored if stored.dtype.kind == "f" else stored.astype(np.int64, copy=False), valid)


def _number_type(dtype: pa.DataType) -> type[np.generic]:
    return np.float32 if dtype == pa.float32() else np.float64 if dtype == pa.float64() else np.int64


def constant_of(value: object, dtype: pa.DataType) -> Constant:
    """A constant of the typed tree.

    >>> constant_of(Decimal("1.5"), pa.decimal128(4, 2)).values
    150
    """
    if value is None:
        return Constant(dtype, None)
    if pa.types.is_decimal(dtype):
        assert isinstance(value, int | Decimal)
        return Constant(dtype, int(Decimal(value).scaleb(dtype.scale, _EXACT)))
    if dtype == pa.float32():
        return Constant(dtype, np.float32(value))  # type: ignore[arg-type]
    if dtype == pa.float64():
        return Constant(dtype, np.float64(value))  # type: ignore[arg-type]
    if isinstance(value, datetime):
        wall = value.replace(tzinfo=UTC) if value.tzinfo is None else value
        gone = wall - datetime(1970, 1, 1, tzinfo=UTC)
        return Constant(dtype, np.int64((gone.days * 86_400 + gone.seconds) * 1_000_000 + gone.microseconds))
    if isinstance(value, date):
        return Constant(dtype, np.int64((value - date(1970, 1, 1)).days))
    if is_arrow(dtype):
        return Constant(dtype, pa.scalar(value, dtype))
    return Constant(dtype, np.int64(value) if dtype in _STORED else value)  # type: ignore[arg-type]


def nulls(dtype: pa.DataType, rows: int) -> Vector:
    """A vector of nothing but nulls."""
    if is_arrow(dtype):
        return Vector(dtype, pa.nulls(rows, dtype), None)
    kind = np.bool_ if pa.types.is_boolean(dtype) else _number_type(dtype)
    return Vector(dtype, np.zeros(rows, kind), np.zeros(rows, np.bool_))


def dense(operand: Operand, rows: int) -> Vector:
    """A constant as a vector; a vector as it is."""
    if isinstance(operand, Vector):
        return operand
    dtype, value = operand.dtype, operand.values
    if value is None:
        return nulls(dtype, rows)
    if is_arrow(dtype):
        return Vector(dtype, pa.repeat(value, rows), None)
    if pa.types.is_boolean(dtype):
        return Vector(dtype, np.full(rows, value, np.bool_))
    if is_wide(dtype) and not -(1 << 63) <= value < 1 << 63:
        return Vector(dtype, np.full(rows, value, object))
    return Vector(dtype, np.full(rows, value, _number_type(dtype)))


def inner(vector: Vector) -> Vector:
    """A column as operators take it: a wide decimal by its whole numbers."""
    array = vector.values
    if not isinstance(array, pa.Array) or not pa.types.is_decimal(array.type):
        return vector
    rows, valid = len(array), _mask_of(array)
    data = array.buffers()[1]
    if rows == 0 or data is None:
        return Vector(vector.dtype, np.zeros(rows, np.int64), valid)
    words = np.frombuffer(data, np.int64)[2 * array.offset : 2 * (array.offset + rows)].reshape(rows, 2)
    low, high = words[:, 0], words[:, 1]
    beyond = high != low >> 63
    if valid is not None:
        beyond &= valid
    if not np.count_nonzero(beyond):
        return Vector(vector.dtype, low, valid)
    return Vector(vector.dtype, (high.astype(object) << 64) | low.view(np.uint64).astype(object), valid)


def outer(vector: Vector) -> Vector:
    """A result as others take it: the opposite of `inner`."""
    if is_wide(vector.dtype) and not isinstance(vector.values, pa.Array):
        return Vector(vector.dtype, _to_arrow(vector), None)
    return vector


def _to_arrow(vector: Vector) -> pa.Array:
    dtype, values, valid = vector.dtype, vector.values, vector.valid
    if isinstance(values, pa.Array):
        if valid is not None and values.null_count == 0 and len(values) and not valid.all():
            return pc.if_else(arrow_mask(valid), values, pa.scalar(None, values.type))
        return values
    rows = len(values)
    bitmap = None if valid is None else packed(valid)
    if pa.types.is_boolean(dtype):
        data = packed(values)
    elif pa.types.is_decimal(dtype):
        data = pa.py_buffer(_words(values, valid))
    else:
        data = pa.py_buffer(np.ascontiguousarray(values, _STORED.get(dtype, np.int64)))
    return pa.Array.from_buffers(dtype, rows, [bitmap, data])


def _words(values: npt.NDArray[Any], valid: Mask | None) -> npt.NDArray[Any]:
    words = np.empty((len(values), 2), np.int64)
    if values.dtype == object:
        # What lies under nulls may be any number at all.
        whole = values if valid is None else np.where(valid, values, 0)
        words[:, 0] = np.array([v & _WORD for v in whole], np.uint64).view(np.int64)
        words[:, 1] = np.array([v >> 64 for v in whole], np.int64)
    else:
        words[:, 0] = values
        words[:, 1] = words[:, 0] >> 63
    return words
