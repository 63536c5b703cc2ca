"""Keys as bytes: how rows and requests name the same thing.

A key is one column or several. To the index it is a string of bytes: the bytes of a fixed-width value as they lie in
memory, the bytes of a string as they are, and for several columns those of fixed width first, one after the other, then
each string with its length, as 32 bits, before it. Equal keys have equal bytes: a negative zero is a zero, all NaNs are
one. A null is no key: a request that has one gets no row, and a source that has one is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import InputError, SchemaError
from headwater.serving.layout import KeyPart

__all__ = ["KeyBatch", "KeyCodec"]

_BYTES = np.dtype(np.uint8)
_MOST = 1 << 16
_numbers = np.arange(_MOST + 1, dtype=np.int64)
_strides: dict[int, np.ndarray[Any, Any]] = {}


@dataclass(frozen=True, slots=True)
class KeyBatch:
    """Some keys: their bytes, where each begins and ends, and which of them are null, if any."""

    data: np.ndarray[tuple[int], np.dtype[np.uint8]]
    offsets: np.ndarray[tuple[int], np.dtype[np.int64]]
    nulls: np.ndarray[tuple[int], np.dtype[np.bool_]] | None = None
    arrays: tuple[pa.Array, ...] = ()
    """The columns that they were made from."""

    def __len__(self) -> int:
        return int(self.offsets.size) - 1


class KeyCodec:
    """Makes keys of columns, and columns of keys."""

    def __init__(self, parts: Sequence[KeyPart], where: str = "") -> None:
        self.parts = tuple(parts)
        self.where = where
        self._fixed = [i for i, p in enumerate(self.parts) if not p.value.is_slot]
        self._strings = [i for i, p in enumerate(self.parts) if p.value.is_slot]
        self.width = 0 if self._strings else sum(p.value.width for p in self.parts)

    # -- from what people have -------------------------------------------------------------------------------------

    def keys(self, given: Any) -> KeyBatch:
        """Keys from a list of values (of tuples, for several columns), a dict of columns, Arrow, numpy or a frame."""
        if isinstance(given, KeyBatch):
            return given
        if isinstance(given, list) and len(self.parts) == 1:  # the usual case first
            return self.encode([self._array(self.parts[0], given)])
        if isinstance(given, pa.Table):
            given = given.combine_chunks()
            columns = [c.chunk(0) if c.num_chunks else pa.array([], c.type) for c in given.columns]
            given = pa.RecordBatch.from_arrays(columns, names=given.column_names) if columns else given
        if isinstance(given, pa.RecordBatch):
            return self.encode(self._of_columns(dict(zip(given.schema.names, given.columns, strict=True))))
        if isinstance(given, Mapping):
            return self.encode(self._of_columns(given))
        if hasattr(given, "columns") and hasattr(given, "__arrow_c_stream__"):
            return self.keys(pa.table(given))
        if len(self.parts) == 1:
            return self.encode([self._array(self.parts[0], given)])
        return self.encode(self._of_tuples(given))

    def _of_columns(self, columns: Mapping[str, Any]) -> list[pa.Array]:
        if len(self.parts) == 1 and len(columns) == 1 and self.parts[0].name not in columns:
            return [self._array(self.parts[0], next(iter(columns.values())))]
        missing = [p.name for p in self.parts if p.name not in columns]
        if missing:
            raise InputError.missing_key_columns(missing, [p.name for p in self.parts], self.where)
        arrays = [self._array(p, columns[p.name]) for p in self.parts]
        if len({len(a) for a in arrays}) != 1:
            raise InputError.bad_argument("keys", "columns of different lengths", "one value per key in each column")
        return arrays

    def _of_tuples(self, given: Any) -> list[pa.Array]:
        rows = list(given)
        names = [p.name for p in self.parts]
        for row in rows:
            if isinstance(row, Mapping):
                if set(row) != set(names):
                    raise InputError.missing_key_columns([n for n in names if n not in row], names, self.where)
            elif not isinstance(row, (tuple, list)) or len(row) != len(names):
                raise InputError.bad_argument("keys", row, f"one value for each of {', '.join(names)}")
        columns = [[row[n] if isinstance(row, Mapping) else row[i] for row in rows] for i, n in enumerate(names)]
        return [self._array(p, c) for p, c in zip(self.parts, columns, strict=True)]

    def _array(self, part: KeyPart, given: Any) -> pa.Array:
        """Values as an array of the type of a part of the key; an error for values that are none of its."""
        try:
            if isinstance(given, pa.ChunkedArray):
                given = given.combine_chunks()
            if isinstance(given, pa.Array):
                return given if given.type == part.type else _cast(given, part.type)
            if isinstance(given, np.ndarray):
                found = pa.array(given)
                return found if found.type == part.type else _cast(found, part.type)
            if isinstance(given, (str, bytes)):
                raise TypeError("it is a single value: put it into a list")
            values = given if isinstance(given, list) else list(given)
            if pa.types.is_integer(part.type) and any(isinstance(v, (bool, float, str)) for v in values):
                raise TypeError("there is a value that is no whole number")
            return pa.array(values, part.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as e:
            raise SchemaError.bad_keys(part.name, str(part.type), str(e).splitlines()[0], self.where) from None

    # -- bytes -----------------------------------------------------------------------------------------------------

    def encode(self, arrays: Sequence[pa.Array]) -> KeyBatch:
        """The keys of columns, one array for each part, of its type."""
        nulls = None
        for array in arrays:
            if array.null_count:
                mask = array.is_null().to_numpy(zero_copy_only=False)
                nulls = mask if nulls is None else nulls | mask
        if len(arrays) == 1:
            data, offsets = _bytes_of(arrays[0]) if self._strings else _fixed_keys(arrays[0])
        elif not self._strings:
            data, offsets = _joined_fixed([_plain(a) for a in arrays])
        else:
            data, offsets = self._joined([_filled(a) for a in arrays])
        return KeyBatch(data, offsets, nulls, tuple(arrays))

    def _joined(self, arrays: Sequence[pa.Array]) -> tuple[Any, Any]:
        pieces: list[pa.Array] = []
        for i in self._fixed:
            values = _plain(arrays[i])
            raw = pa.py_buffer(np.ascontiguousarray(values).view(_BYTES))
            pieces.append(pa.FixedSizeBinaryArray.from_buffers(pa.binary(values.itemsize), len(values), [None, raw]))
        for i in self._strings:
            lengths = pc.binary_length(arrays[i]).to_numpy(zero_copy_only=False).astype("<u4")
            pieces.append(
                pa.FixedSizeBinaryArray.from_buffers(pa.binary(4), len(lengths), [None, pa.py_buffer(lengths)])
            )
            pieces.append(arrays[i].cast(pa.binary()))
        joined = pc.binary_join_element_wise(*(p.cast(pa.binary()) for p in pieces), pa.scalar(b"", pa.binary()))
        return _bytes_of(joined)

    def decode(self, data: Any, offsets: Any) -> list[pa.Array]:
        """The columns of keys: the inverse of `encode`."""
        count = len(offsets) - 1
        if len(self.parts) == 1 and self._strings:
            return [_strings(self.parts[0].type, data, offsets)]
        arrays: list[pa.Array | None] = [None] * len(self.parts)
        if not self._strings:
            matrix = np.ascontiguousarray(data).reshape(count, self.width)
            at = 0
            for i, p in enumerate(self.parts):
                arrays[i] = _values(p.type, np.ascontiguousarray(matrix[:, at : at + p.value.width]), count)
                at += p.value.width
            return [a for a in arrays if a is not None]
        begin = np.array(offsets[:-1], np.int64)
        for i in self._fixed:
            width = self.parts[i].value.width
            picked = data[begin[:, None] + np.arange(width)] if count else np.empty((0, width), _BYTES)
            arrays[i] = _values(self.parts[i].type, np.ascontiguousarray(picked), count)
            begin = begin + width
        for i in self._strings:
            picked = data[begin[:, None] + np.arange(4)] if count else np.empty((0, 4), _BYTES)
            lengths = np.ascontiguousarray(picked).view("<u4").reshape(-1).astype(np.int64)
            begin = begin + 4
            ends = np.concatenate([[0], np.cumsum(lengths)])
            index = np.repeat(begin - ends[:-1], lengths) + np.arange(int(ends[-1]))
            arrays[i] = _strings(self.parts[i].type, data[index], ends)
            begin = begin + lengths
        return [a for a in arrays if a is not None]

    def shown(self, batch: KeyBatch, position: int) -> str:
        """A key, for people."""
        columns = self.decode(batch.data, batch.offsets[position : position + 2])
        values = [c[0].as_py() for c in columns] if self.width == 0 else self._one(batch, position)
        return ", ".join(f"{p.name}={v!r}" for p, v in zip(self.parts, values, strict=True))

    def _one(self, batch: KeyBatch, position: int) -> list[Any]:
        begin, end = (int(v) for v in batch.offsets[position : position + 2])
        return [a[0].as_py() for a in self.decode(batch.data[begin:end], np.array([0, end - begin]))]


def _cast(given: pa.Array, to: pa.DataType) -> pa.Array:
    """A safe cast between forms of one type: numbers to numbers, strings to strings, and nothing else."""
    if given.null_count == len(given):  # nothing but nulls, or nothing at all, is of any type
        return pa.nulls(len(given), to)
    if pa.types.is_dictionary(given.type):
        given = given.dictionary_decode()
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    if pa.types.is_string(to) != any(test(given.type) for test in texts):
        raise TypeError(f"values of type {given.type}")
    if pa.types.is_boolean(given.type) != pa.types.is_boolean(to):
        raise TypeError(f"values of type {given.type}")
    return given.cast(to, safe=True)


def _plain(array: pa.Array) -> np.ndarray[Any, Any]:
    """The values of a fixed-width array as numpy has them, nulls as zeros; equal values have equal bytes."""
    kind = array.type
    if pa.types.is_boolean(kind):
        return np.asarray(_filled(array).cast(pa.uint8()).to_numpy(zero_copy_only=False))
    width = kind.bit_width // 8
    values = np.frombuffer(array.buffers()[1], np.dtype((np.void, width)), len(array), array.offset * width)
    if pa.types.is_floating(kind):
        numbers = values.view(np.dtype(f"<f{width}")) + kind.to_pandas_dtype()(0)  # -0.0 + 0.0 is 0.0
        return np.where(np.isnan(numbers), np.array(np.nan, numbers.dtype), numbers)
    return values


def _fixed_keys(array: pa.Array) -> tuple[Any, Any]:
    values = _plain(array)
    width = values.itemsize
    return np.ascontiguousarray(values).view(_BYTES).reshape(-1), _stride(width, len(array))


def _stride(width: int, count: int) -> np.ndarray[Any, Any]:
    if count > _MOST:
        return np.arange(count + 1, dtype=np.int64) * width
    if width not in _strides:
        _strides[width] = _numbers * width
    found: np.ndarray[Any, Any] = _strides[width][: count + 1]
    return found


def _joined_fixed(columns: Sequence[np.ndarray[Any, Any]]) -> tuple[Any, Any]:
    count = len(columns[0])
    views = [np.ascontiguousarray(c).view(_BYTES).reshape(count, c.itemsize) for c in columns]
    matrix = np.concatenate(views, axis=1)
    return np.ascontiguousarray(matrix).reshape(-1), _stride(matrix.shape[1], count)


def _bytes_of(array: pa.Array) -> tuple[Any, Any]:
    """The bytes and offsets of an array of strings."""
    buffers = array.buffers()
    offsets = np.frombuffer(buffers[1], np.int32, len(array) + 1, array.offset * 4) if buffers[1] else np.zeros(1, "i4")
    data = np.frombuffer(buffers[2], _BYTES) if buffers[2] is not None and buffers[2].size else np.zeros(1, _BYTES)
    return data, offsets.astype(np.int64)


def _filled(array: pa.Array) -> pa.Array:
    """An array without nulls, which are marked elsewhere."""
    if not array.null_count:
        return array
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        return pc.fill_null(array, "" if pa.types.is_string(array.type) else b"")
    if pa.types.is_boolean(array.type):
        return pc.fill_null(array, False)
    return array


def _strings(kind: pa.DataType, data: Any, offsets: Any) -> pa.Array:
    begin = int(offsets[0])
    places = (np.asarray(offsets) - begin).astype(np.int32)
    raw = np.ascontiguousarray(data[begin : int(offsets[-1])])
    return pa.Array.from_buffers(kind, len(places) - 1, [None, pa.py_buffer(places), pa.py_buffer(raw)])


def _values(kind: pa.DataType, raw: np.ndarray[Any, Any], count: int) -> pa.Array:
    if pa.types.is_boolean(kind):
        return pa.array(raw.reshape(-1).astype(bool))
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(raw)])
