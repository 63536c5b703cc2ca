"""Nested values as bytes: lists, structs and maps in a canonical encoding.

Rows are told apart by their words, so a nested value has to become a string of bytes, such that equal values have equal
bytes and different ones different bytes. Both directions work on whole columns, one level of the type at a time, and
never on single rows; so an element's place must follow from numbers that stand together, not from reading all elements
before it::

    value     1 byte: 0 null, 1 not; then what follows
    number    its bytes, little endian (all NaNs are one NaN); zeros for a null
    string    4 bytes: its length; its bytes
    struct    its fields, one after the other
    list      4 bytes: how many elements; 4 bytes for the size of each, unless all have the same; the elements
    map       as a list of structs of key and value: the order of the entries counts, as it does in Arrow

A type is *fixed* if all its values have the same size: numbers, and structs and lists of fixed length of them. A null
of a fixed type takes the same room, in zeros; any other null is the one byte. The encoding is kept in state on disk, so
it never changes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import UnsupportedError

__all__ = ["check", "decode", "encode"]

Longs = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

_MOST = (1 << 31) - 1
_FLAG = 1
_COUNT = 4


def encode(array: pa.Array) -> pa.Array:
    """Nested values as binary ones, such that equal values have equal bytes.

    >>> encode(pa.array([[1], None, []], pa.list_(pa.int8()))).to_pylist()
    [b'\\x01\\x01\\x00\\x00\\x00\\x01\\x01', None, b'\\x01\\x00\\x00\\x00\\x00']
    """
    valid = _valid(array)
    present = array if valid.all() else array.filter(pa.array(valid))
    sizes = np.zeros(len(array), dtype=np.int64)
    sizes[valid] = _sizes(present)
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    if total > _MOST:
        why = "nested values have more than 2 GiB in one batch"
        raise UnsupportedError.operation("a change", why, "make the steps smaller")
    out = np.zeros(total, dtype=np.uint8)
    _write(present, (ends - sizes)[valid], out)
    offsets = np.zeros(len(array) + 1, dtype=np.int32)
    offsets[1:] = ends
    return pa.Array.from_buffers(
        pa.binary(),
        len(array),
        [_bitmap(valid), pa.py_buffer(offsets), pa.py_buffer(out)],
        null_count=int((~valid).sum()),
    )


def decode(array: pa.Array, dtype: pa.DataType) -> pa.Array:
    """The nested values of their encodings.

    >>> decode(encode(pa.array([[1], None, []])), pa.list_(pa.int64())).to_pylist()
    [[1], None, []]
    """
    valid = _valid(array)
    _, offsets, data = array.buffers()
    if data is None or data.size == 0:
        data = pa.py_buffer(b"\0")
    begins = np.frombuffer(offsets, dtype=np.int32)[array.offset : array.offset + len(array)].astype(np.int64)
    found, _ = _read(np.frombuffer(data, dtype=np.uint8), begins[valid], dtype)
    return _spread(found, valid)


def check(dtype: pa.DataType, name: str) -> None:
    """Refuse types that have no encoding, at any depth."""
    is_ = pa.types
    if is_.is_struct(dtype) or _is_list(dtype) or is_.is_fixed_size_list(dtype):
        for i in range(dtype.num_fields):
            check(dtype.field(i).type, name)
    elif not (
        _is_text(dtype)
        or is_.is_primitive(dtype)
        or is_.is_decimal(dtype)
        or is_.is_fixed_size_binary(dtype)
        or is_.is_null(dtype)
    ):
        hint = "cast it to a type of Spark's first: a number, date, timestamp, string, binary, array, map or struct"
        raise UnsupportedError.column_type(name, str(dtype), hint)


# -- types -------------------------------------------------------------------------------------------------------------


def _is_text(dtype: pa.DataType) -> bool:
    is_ = pa.types
    return bool(
        is_.is_string(dtype) or is_.is_binary(dtype) or is_.is_large_string(dtype) or is_.is_large_binary(dtype)
    )


def _is_list(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_list(dtype) or pa.types.is_large_list(dtype) or pa.types.is_map(dtype))


def _fields(dtype: pa.DataType) -> list[pa.DataType]:
    return [dtype.field(i).type for i in range(dtype.num_fields)]


def _element(dtype: pa.DataType) -> pa.DataType:
    if pa.types.is_map(dtype):
        return pa.struct([dtype.key_field, dtype.item_field])
    return dtype.value_type


def _number_size(dtype: pa.DataType) -> int:
    """How many bytes a number has, without its flag."""
    if pa.types.is_null(dtype):
        return 0
    return 1 if pa.types.is_boolean(dtype) else int(dtype.bit_width) // 8


def _fixed(dtype: pa.DataType) -> int | None:
    """The size that all values of a type have, if they have the same."""
    if _is_text(dtype) or _is_list(dtype):
        return None
    if pa.types.is_struct(dtype):
        sizes = [_fixed(t) for t in _fields(dtype)]
        return None if None in sizes else _FLAG + sum(s for s in sizes if s is not None)
    if pa.types.is_fixed_size_list(dtype):
        size = _fixed(dtype.value_type)
        return None if size is None else _FLAG + dtype.list_size * size
    return _FLAG + _number_size(dtype)


# -- writing -----------------------------------------------------------------------------------------------------------


def _children(array: pa.Array) -> list[pa.Array]:
    """The columns of a struct, or the one of elements, of an array without nulls."""
    if pa.types.is_struct(array.type):
        return list(array.flatten())
    if pa.types.is_map(array.type):
        array = _as_list(array)
    return [array.flatten()]


def _as_list(array: pa.Array) -> pa.Array:
    """A map as the list of its entries."""
    entries = pa.StructArray.from_arrays(
        [array.keys, array.items], fields=[array.type.key_field, array.type.item_field]
    )
    dtype = pa.list_(pa.field("entries", entries.type, nullable=False))
    return pa.Array.from_buffers(
        dtype, len(array), array.buffers()[:2], null_count=array.null_count, offset=array.offset, children=[entries]
    )


def _counts(array: pa.Array) -> Longs:
    if pa.types.is_fixed_size_list(array.type):
        return np.full(len(array), array.type.list_size, dtype=np.int64)
    if pa.types.is_map(array.type):
        array = _as_list(array)
    return np.asarray(pc.list_value_length(array)).astype(np.int64)


def _sizes(array: pa.Array) -> Longs:
    """How many bytes each value of an array takes."""
    dtype = array.type
    fixed = _fixed(dtype)
    if fixed is not None:
        return np.full(len(array), fixed, dtype=np.int64)
    valid = _valid(array)
    if not valid.all():
        sizes = np.full(len(array), _FLAG, dtype=np.int64)
        sizes[valid] = _sizes(array.filter(pa.array(valid)))
        return sizes
    if _is_text(dtype):
        return _FLAG + _COUNT + np.asarray(pc.binary_length(array)).astype(np.int64)
    if pa.types.is_struct(dtype):
        return _FLAG + sum((_sizes(child) for child in _children(array)), np.zeros(len(array), dtype=np.int64))
    elements = _sizes(_children(array)[0])
    counts = _counts(array)
    head = _FLAG + _COUNT + (0 if _fixed(_element(dtype)) is not None else _COUNT) * counts
    return head + _sums(elements, counts)


def _write(array: pa.Array, at: Longs, out: Bytes) -> None:
    """Write the values of an array to their places in ``out``, which is zero."""
    dtype = array.type
    valid = _valid(array)
    if not valid.all():
        array, at = array.filter(pa.array(valid)), at[valid]
    if not len(array):
        return
    out[at] = 1
    if _is_text(dtype):
        lengths = np.asarray(pc.binary_length(array)).astype(np.int64)
        _write_counts(lengths, at + _FLAG, out)
        _, offsets, data = array.buffers()
        if data is not None and data.size:
            ends = np.frombuffer(offsets, dtype=np.int64 if "large" in str(dtype) else np.int32)
            begins: Longs = ends[array.offset : array.offset + len(array)].astype(np.int64)
            out[_spans(at + _FLAG + _COUNT, lengths)] = np.frombuffer(data, dtype=np.uint8)[_spans(begins, lengths)]
    elif pa.types.is_struct(dtype):
        at = at + _FLAG
        for child in _children(array):
            _write(child, at, out)
            at = at + _sizes(child)
    elif _is_list(dtype) or pa.types.is_fixed_size_list(dtype):
        _write_list(array, at + _FLAG, out)
    else:
        numbers = _numbers(array)
        for k in range(numbers.shape[1]):
            out[at + (_FLAG + k)] = numbers[:, k]


def _write_list(array: pa.Array, at: Longs, out: Bytes) -> None:
    counts = _counts(array)
    child = _children(array)[0]
    sizes = _sizes(child)
    if _is_list(array.type) or _fixed(array.type) is None:
        _write_counts(counts, at, out)
        at = at + _COUNT
        if _fixed(_element(array.type)) is None:
            firsts = np.repeat(at, counts) + _COUNT * _ranks(counts)
            _write_counts(sizes, firsts, out)
            at = at + _COUNT * counts
    _write(child, _places(at, sizes, counts), out)


def _numbers(array: pa.Array) -> Bytes:
    """The bytes of numbers without nulls, a row each."""
    dtype = array.type
    size = _number_size(dtype)
    if pa.types.is_boolean(dtype):
        return np.asarray(array.cast(pa.uint8()))[:, None]
    raw = np.frombuffer(array.buffers()[1], dtype=np.uint8)[size * array.offset :][: size * len(array)].reshape(
        len(array), size
    )
    if pa.types.is_floating(dtype):
        floats = raw.view(f"f{size}").copy()
        floats[np.isnan(floats)] = np.nan
        raw = floats.view(np.uint8).reshape(len(array), size)
    return raw


def _write_counts(numbers: Longs, at: Longs, out: Bytes) -> None:
    for k in range(_COUNT):
        out[at + k] = (numbers >> (8 * k)) & 255


# -- reading -----------------------------------------------------------------------------------------------------------


def _read(data: Bytes, at: Longs, dtype: pa.DataType) -> tuple[pa.Array, Longs]:
    """The values at these places, and where each ends."""
    valid = data[at] != 0
    fixed = _fixed(dtype)
    if not valid.all() and (fixed is None or pa.types.is_struct(dtype) or pa.types.is_fixed_size_list(dtype)):
        found, ends = _read(data, at[valid], dtype)
        every = at + (_FLAG if fixed is None else fixed)
        every[valid] = ends
        return _spread(found, valid), every
    n = len(at)
    at = at + _FLAG
    if _is_text(dtype):
        lengths = _read_counts(data, at)
        at = at + _COUNT
        large = "large" in str(dtype)
        texts = pa.py_buffer(np.ascontiguousarray(data[_spans(at, lengths)]))
        return _made(dtype, n, [_offsets(lengths, large=large), texts]), at + lengths
    if pa.types.is_struct(dtype):
        children = []
        for field in _fields(dtype):
            child, at = _read(data, at, field)
            children.append(child)
        return _made(dtype, n, [], children), at
    if _is_list(dtype) or pa.types.is_fixed_size_list(dtype):
        return _read_list(data, at, dtype)
    size = _number_size(dtype)
    if pa.types.is_null(dtype):
        return pa.nulls(n, dtype), at
    raw = data[at[:, None] + np.arange(size)]
    values = np.packbits(raw[:, 0] != 0, bitorder="little") if pa.types.is_boolean(dtype) else np.ascontiguousarray(raw)
    array = pa.Array.from_buffers(dtype, n, [_bitmap(valid), pa.py_buffer(values)], null_count=int((~valid).sum()))
    return array, at + size


def _read_list(data: Bytes, at: Longs, dtype: pa.DataType) -> tuple[pa.Array, Longs]:
    n = len(at)
    element = _element(dtype)
    size = _fixed(element)
    counted = _is_list(dtype) or size is None
    counts = _read_counts(data, at) if counted else np.full(n, dtype.list_size, dtype=np.int64)
    at = at + (_COUNT if counted else 0)
    if size is None:
        sizes = _read_counts(data, np.repeat(at, counts) + _COUNT * _ranks(counts))
        at = at + _COUNT * counts
    else:
        sizes = np.full(int(counts.sum()), size, dtype=np.int64)
    child, _ = _read(data, _places(at, sizes, counts), element)
    ends = at + _sums(sizes, counts)
    if pa.types.is_fixed_size_list(dtype):
        return _made(dtype, n, [], [child]), ends
    return _made(dtype, n, [_offsets(counts, large=pa.types.is_large_list(dtype))], [child]), ends


def _read_counts(data: Bytes, at: Longs) -> Longs:
    found = np.zeros(len(at), dtype=np.int64)
    for k in range(_COUNT):
        found |= data[at + k].astype(np.int64) << (8 * k)
    return found


def _made(dtype: pa.DataType, n: int, buffers: list[pa.Buffer], children: list[pa.Array] | None = None) -> pa.Array:
    return pa.Array.from_buffers(dtype, n, [None, *buffers], null_count=0, children=children)


def _spread(array: pa.Array, valid: Mask) -> pa.Array:
    """An array that has these values where it is valid, and nulls elsewhere."""
    if valid.all():
        return array
    at = np.cumsum(valid) - 1
    return array.take(pa.array(np.where(valid, at, 0), mask=~valid))


# -- positions ---------------------------------------------------------------------------------------------------------


def _valid(array: pa.Array) -> Mask:
    if pa.types.is_null(array.type):
        return np.zeros(len(array), dtype=np.bool_)
    if not array.null_count:
        return np.ones(len(array), dtype=np.bool_)
    return np.asarray(pc.is_valid(array))


def _bitmap(valid: Mask) -> pa.Buffer | None:
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))


def _offsets(counts: Longs, *, large: bool) -> pa.Buffer:
    offsets = np.zeros(len(counts) + 1, dtype=np.int64 if large else np.int32)
    offsets[1:] = np.cumsum(counts)
    return pa.py_buffer(offsets)


def _ranks(counts: Longs) -> Longs:
    """0, 1, ... for each of so many, anew for every count: ``[2, 3]`` gives ``0 1 0 1 2``."""
    ends = np.cumsum(counts)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)


def _spans(begins: Longs, lengths: Longs) -> Longs:
    """All positions of stretches, one after the other."""
    return np.repeat(begins, lengths) + _ranks(lengths)


def _sums(values: Longs, counts: Longs) -> Longs:
    """The sums of so many values each."""
    running = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=running[1:])
    ends = np.cumsum(counts)
    found: Longs = running[ends] - running[ends - counts]
    return found


def _places(begins: Longs, sizes: Longs, counts: Longs) -> Longs:
    """Where elements begin that stand one after the other from the beginnings of their lists on."""
    running = np.cumsum(sizes) - sizes
    ends = np.cumsum(counts)
    firsts = np.zeros(len(counts), dtype=np.int64)
    there = counts > 0
    firsts[there] = running[(ends - counts)[there]]
    found: Longs = np.repeat(begins - firsts, counts) + running
    return found
