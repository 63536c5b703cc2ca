"""Rows of words from Arrow's columns and back, through Arrow's C data interface.

A batch is handed over as one struct that describes all its columns, so that a change of a hundred rows costs one call
and not one for each column. `ArrowArray` is ten words::

    0 length | 1 nulls | 2 offset | 3 number of buffers | 4 number of children
    5 buffers | 6 children | 7 dictionary | 8 release | 9 private

Inwards, `pack` reads the columns where they lie, and gives the struct back; long strings are referred to, so the caller
keeps the batch. Outwards, `unpack` writes all columns into one piece of memory that begins with the structs themselves;
Arrow frees it, by calling ``release``, when the last column of it is gone.

A column is described by (code, word, null word, null bit, may be null); the codes are `CODES`. The words of a null are
zero; all NaNs are one NaN; a float of 32 bits is kept as the double of the same value.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from headwater.kernels.arrays import Rows
from headwater.kernels.compiled import inlined, kernel, shared
from headwater.kernels.memory import (
    address_of,
    byte,
    load,
    store,
    view_bytes,
    view_f32,
    view_f64,
    view_i8,
    view_i16,
    view_i32,
    view_u16,
    view_u32,
)
from headwater.kernels.words import INLINE

__all__ = ["CODES", "RELEASE", "TOO_LONG", "pack", "room", "unpack"]

CODES = {
    "int8": 0,
    "int16": 1,
    "int32": 2,
    "int64": 3,
    "uint8": 4,
    "uint16": 5,
    "uint32": 6,
    "float": 7,
    "double": 8,
    "bool": 9,
    "decimal": 10,
    "pair": 11,
    "slot": 12,
}
_I8, _I16, _I32, _I64, _U8, _U16, _U32, _FLOAT, _DOUBLE, _BOOL, _DECIMAL, _PAIR, _SLOT = range(13)

TOO_LONG = -1
"""For the address of what `unpack` made: a column has more bytes than Arrow's 32-bit offsets can count."""

_LENGTH = np.int64(0xFFFFFFFF)
_NAN = np.float64(np.nan).view(np.int64)
_MAGNITUDE = np.int64((1 << 63) - 1)
_INFINITY = np.int64(0x7FF0000000000000)
_FLIP = np.int64(-(1 << 63))
_MOST = 0x7FFFFFFF
_LINE = 64


_aligned_alloc = types.ExternalFunction("aligned_alloc", types.int64(types.int64, types.int64))
_free = types.ExternalFunction("free", types.void(types.int64))


_emitted: Any = intrinsic


@_emitted
def _call(typingctx: Any, function: Any, argument: Any) -> Any:  # noqa: ARG001
    """Call the C function at an address with one pointer."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        wanted = ir.FunctionType(ir.VoidType(), [ir.IntType(64)]).as_pointer()
        builder.call(builder.inttoptr(args[0], wanted), [args[1]])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@numba.cfunc(types.void(types.int64))  # type: ignore[untyped-decorator]
def _release(struct: int) -> None:
    _free(load(struct, 9))
    store(struct, 8, 0)


RELEASE: int = _release.address
"""The function by which Arrow gives the memory of `unpack` back."""


@kernel
def room() -> int:
    """The address of a struct to export into; `pack` frees it."""
    return _aligned_alloc(_LINE, 2 * _LINE)  # type: ignore[no-any-return]


# -- inwards -----------------------------------------------------------------------------------------------------------


@inlined
def _is_null(bitmap: int, i: int) -> bool:
    return bitmap != 0 and ((byte(bitmap + (i >> 3)) >> np.uint64(i & 7)) & np.uint64(1)) == 0


@shared
def _pack_slots(offsets: int, data: int, bitmap: int, offset: int, n: int, to: int, step: int) -> None:
    ends = view_i32(offsets + 4 * offset, n + 1)
    for i in range(n):
        first = np.uint64(0)
        second = np.uint64(0)
        if not _is_null(bitmap, offset + i):
            begin = data + np.int64(ends[i])
            length = np.int64(ends[i + 1]) - np.int64(ends[i])
            first = np.uint64(length)
            for k in range(min(length, 4)):
                first |= byte(begin + k) << np.uint64(32 + 8 * k)
            if length <= INLINE:
                for k in range(4, length):
                    second |= byte(begin + k) << np.uint64(8 * (k - 4))
            else:
                second = np.uint64(begin)
        store(to, 0, np.int64(first))
        store(to, 1, np.int64(second))
        to += step


@inlined
def _one_nan(bits: int) -> int:
    return _NAN if (bits & _MAGNITUDE) > _INFINITY else bits


@shared
def _pack_words(  # noqa: C901
    code: int, values: int, bitmap: int, offset: int, n: int, to: int, step: int
) -> None:
    i8 = view_i8(values, offset + n)
    i16 = view_i16(values, offset + n)
    i32 = view_i32(values, offset + n)
    u8 = view_bytes(values, offset + n)
    u16 = view_u16(values, offset + n)
    u32 = view_u32(values, offset + n)
    f32 = view_f32(values, offset + n)
    scratch = np.empty(1, np.float64)
    for i in range(offset, offset + n):
        x = np.int64(0)
        low = np.int64(0)
        if not _is_null(bitmap, i):
            if code == _I64:
                x = load(values, i)
            elif code == _DOUBLE:
                x = _one_nan(load(values, i))
            elif code == _I32:
                x = np.int64(i32[i])
            elif code == _FLOAT:
                scratch[0] = np.float64(f32[i])
                x = _one_nan(load(address_of(scratch), 0))
            elif code == _BOOL:
                x = np.int64((byte(values + (i >> 3)) >> np.uint64(i & 7)) & np.uint64(1))
            elif code == _DECIMAL:
                x = load(values, 2 * i)
            elif code == _PAIR:
                x = load(values, 2 * i + 1)
                low = load(values, 2 * i) ^ _FLIP
            elif code == _I16:
                x = np.int64(i16[i])
            elif code == _I8:
                x = np.int64(i8[i])
            elif code == _U8:
                x = np.int64(u8[i])
            elif code == _U16:
                x = np.int64(u16[i])
            else:
                x = np.int64(u32[i])
        store(to, 0, x)
        if code == _PAIR:
            store(to, 1, low)
        to += step


@shared
def _pack_column(struct: int, more: int, columns: Rows, c: int, rows: int, n: int, step: int) -> bool:
    """Fill the words of one column; False if it has a null, and may have none."""
    missing = np.int64(0)
    buffers = load(struct, 5)
    offset = load(struct, 2) + more
    bitmap = load(buffers, 0) if load(struct, 1) != 0 else np.int64(0)
    if bitmap != 0:
        to = rows + 8 * columns[c, 2]
        for i in range(offset, offset + n):
            null = np.int64(_is_null(bitmap, i))
            missing |= null
            store(to, 0, load(to, 0) | (null << columns[c, 3]))
            to += step
    to = rows + 8 * columns[c, 1]
    code = columns[c, 0]
    if code == _SLOT:
        _pack_slots(load(buffers, 1), load(buffers, 2), bitmap, offset, n, to, step)
    else:
        _pack_words(code, load(buffers, 1), bitmap, offset, n, to, step)
    return missing == 0 or columns[c, 4] != 0


@kernel
def pack(struct: int, whole: bool, columns: Rows, out: Rows) -> bool:
    """Fill the words of columns from a struct in a `room`: of a batch if it is the ``whole``, else of the one column.

    ``out`` has been zeroed; order words and weights are left as they are. False if there are nulls where there may be
    none.
    """
    n = out.shape[0]
    right = True
    step = 8 * out.shape[1]
    if n > 0:
        if whole:
            children = load(struct, 6)
            for c in range(columns.shape[0]):
                right &= _pack_column(load(children, c), load(struct, 2), columns, c, address_of(out), n, step)
        else:
            right = _pack_column(struct, 0, columns, 0, address_of(out), n, step)
    _call(load(struct, 8), struct)
    _free(struct)
    return right


# -- outwards ----------------------------------------------------------------------------------------------------------


@inlined
def _whole_lines(size: int) -> int:
    return (size + _LINE - 1) // _LINE * _LINE


@shared
def _slot_bytes(rows: int, step: int, n: int, word: int) -> int:
    total = np.int64(0)
    row = rows + 8 * word
    for _ in range(n):
        total += load(row, 0) & _LENGTH
        row += step
    return total


@inlined
def _value_bytes(code: int, n: int) -> int:
    """How many bytes the values of a column take, or the offsets of strings."""
    if code == _SLOT:
        return 4 * (n + 1)
    if code in (_DECIMAL, _PAIR):
        return 16 * n
    if code in (_I64, _DOUBLE):
        return 8 * n
    if code in (_I32, _U32, _FLOAT):
        return 4 * n
    if code in (_I16, _U16):
        return 2 * n
    return n


@shared
def _unpack_slots(rows: int, step: int, n: int, word: int, offsets: int, data: int) -> None:
    ends = view_i32(offsets, n + 1)
    row = rows + 8 * word
    used = np.int64(0)
    ends[0] = 0
    for i in range(n):
        first = load(row, 0)
        second = load(row, 1)
        length = first & _LENGTH
        to = view_bytes(data + used, length)
        if length > INLINE:
            source = view_bytes(second, length)
            for k in range(length):
                to[k] = source[k]
        else:
            for k in range(min(length, 4)):
                to[k] = (first >> (32 + 8 * k)) & 255
            for k in range(4, length):
                to[k] = (second >> (8 * (k - 4))) & 255
        used += length
        ends[i + 1] = used
        row += step


@shared
def _unpack_words(code: int, row: int, step: int, n: int, to: int) -> None:
    u8 = view_bytes(to, n)
    i16 = view_i16(to, n)
    i32 = view_i32(to, n)
    f32 = view_f32(to, n)
    for i in range(n):
        x = load(row, 0)
        if code in (_I64, _DOUBLE):
            store(to, i, x)
        elif code in (_I32, _U32):
            i32[i] = x
        elif code == _FLOAT:
            f32[i] = view_f64(row, 1)[0]
        elif code == _BOOL:
            if i & 7 == 0:
                u8[i >> 3] = 0
            u8[i >> 3] |= (x & 1) << (i & 7)
        elif code == _DECIMAL:
            store(to, 2 * i, x)
            store(to, 2 * i + 1, x >> 63)
        elif code == _PAIR:
            low = load(row, 1)
            store(to, 2 * i + 1, x)
            store(to, 2 * i, low ^ _FLIP)
        elif code in (_I16, _U16):
            i16[i] = x
        else:
            u8[i] = x
        row += step


@shared
def _validity(row: int, step: int, n: int, bit: int, to: int) -> None:
    for i in range(n):
        if i & 7 == 0:
            view_bytes(to, (i >> 3) + 1)[i >> 3] = 0
        view_bytes(to, (i >> 3) + 1)[i >> 3] |= (1 - ((load(row, 0) >> bit) & 1)) << (i & 7)
        row += step


@shared
def _describe(struct: int, n: int, nulls: int, buffers: int, at: int, children: int, first: int, release: int) -> None:
    store(struct, 0, n)
    store(struct, 1, nulls)
    store(struct, 2, 0)
    store(struct, 3, buffers)
    store(struct, 4, children)
    store(struct, 5, at)
    store(struct, 6, first)
    store(struct, 7, 0)
    store(struct, 8, release)
    store(struct, 9, 0)


@kernel
def unpack(rows: Rows, whole: bool, columns: Rows, release: int) -> int:
    """Make the columns of these rows, and give the address of their struct for Arrow to import: a batch if ``whole``.

    TOO_LONG if a column of strings is.
    """
    n = rows.shape[0]
    step = np.int64(8 * rows.shape[1])
    number = columns.shape[0]
    counts = np.zeros(number, np.int64)
    texts = np.zeros(number, np.int64)
    head = 8 * (10 + 15 * number + 1)
    size = _whole_lines(head)
    for c in range(number):
        if columns[c, 4]:
            row = address_of(rows) + 8 * columns[c, 2]
            bit = columns[c, 3]
            for _ in range(n):
                counts[c] += (load(row, 0) >> bit) & 1
                row += step
            if counts[c]:
                size += _whole_lines((n + 7) >> 3)
        size += _whole_lines(_value_bytes(columns[c, 0], n))
        if columns[c, 0] == _SLOT:
            texts[c] = _slot_bytes(address_of(rows), step, n, columns[c, 1])
            if texts[c] > _MOST:
                return TOO_LONG
            size += _whole_lines(texts[c])
    block = _aligned_alloc(_LINE, size)
    buffers = block + 80 + 88 * number
    at = block + _whole_lines(head)
    if whole:
        store(buffers, 3 * number, 0)
        _describe(block, n, 0, 1, buffers + 24 * number, number, block + 80, release)
    for c in range(number):
        struct = block + 80 + 8 * number + 80 * c if whole else block
        mine = buffers + 24 * c
        code = columns[c, 0]
        if whole:
            store(block + 80, c, struct)
        _describe(struct, n, counts[c], 3 if code == _SLOT else 2, mine, 0, 0, release)
        store(mine, 0, 0)
        if counts[c]:
            store(mine, 0, at)
            _validity(address_of(rows) + 8 * columns[c, 2], step, n, columns[c, 3], at)
            at += _whole_lines((n + 7) >> 3)
        store(mine, 1, at)
        values = at
        at += _whole_lines(_value_bytes(code, n))
        if code == _SLOT:
            store(mine, 2, at)
            _unpack_slots(address_of(rows), step, n, columns[c, 1], values, at)
            at += _whole_lines(texts[c])
        else:
            _unpack_words(code, address_of(rows) + 8 * columns[c, 1], step, n, values)
    store(block, 9, block)
    return block  # type: ignore[no-any-return]
