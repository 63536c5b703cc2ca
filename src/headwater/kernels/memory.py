"""Memory by its address: how one call reads many runs, and how a row refers to a long string.

A trace is read by one kernel call, however many runs it has, so kernels take a table of addresses instead of a list of
arrays. And a row that holds a long string holds the address of its bytes. Whoever makes such a table or such rows keeps
the owners of the memory alive for as long as they are used: `headwater.incremental` does it by carrying the owners
along.

`view_i64` and its siblings make arrays of an address and a length. `load` and `store` are a word at a distance from an
address, and `copy_words` a few of them: in inner loops they are cheaper than arrays, which check every index for being
negative. `byte`, `half`, `quarter` (of a word) and `word` read at any alignment, `put_byte` and its siblings write;
`swapped` turns a word around, so that eight bytes compare as one number; `prefetch` and `prefetch_at` ask for a cache
line ahead of time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic

from headwater.kernels.arrays import Bytes, Directory, Doubles, Hashes, Positions, Rows
from headwater.kernels.compiled import inlined

__all__ = [
    "address_of",
    "byte",
    "copy_bytes",
    "copy_words",
    "half",
    "load",
    "prefetch",
    "prefetch_at",
    "put_byte",
    "put_half",
    "put_quarter",
    "put_word",
    "quarter",
    "store",
    "swapped",
    "view_bytes",
    "view_f32",
    "view_f64",
    "view_i8",
    "view_i16",
    "view_i32",
    "view_i64",
    "view_rows",
    "view_u16",
    "view_u32",
    "view_u64",
    "word",
]


_emitted: Any = intrinsic
"""The decorator without its types: what is called has no typing context."""


def _pointer_to(item: Any) -> Any:
    @_emitted
    def pointer(typingctx: Any, address: Any) -> Any:  # noqa: ARG001
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return types.CPointer(item)(types.int64), codegen

    return pointer


_to_i64 = _pointer_to(types.int64)
_to_i32 = _pointer_to(types.int32)
_to_u64 = _pointer_to(types.uint64)
_to_u8 = _pointer_to(types.uint8)
_to_i8 = _pointer_to(types.int8)
_to_i16 = _pointer_to(types.int16)
_to_u16 = _pointer_to(types.uint16)
_to_u32 = _pointer_to(types.uint32)
_to_f32 = _pointer_to(types.float32)
_to_f64 = _pointer_to(types.float64)


@inlined
def view_i64(address: int, length: int) -> Positions:
    return carray(_to_i64(address), length)  # type: ignore[no-any-return]


@inlined
def view_i32(address: int, length: int) -> Directory:
    return carray(_to_i32(address), length)  # type: ignore[no-any-return]


@inlined
def view_u64(address: int, length: int) -> Hashes:
    return carray(_to_u64(address), length)  # type: ignore[no-any-return]


@inlined
def view_bytes(address: int, length: int) -> Bytes:
    return carray(_to_u8(address), length)  # type: ignore[no-any-return]


@inlined
def view_i8(address: int, length: int) -> npt.NDArray[np.int8]:
    return carray(_to_i8(address), length)  # type: ignore[no-any-return]


@inlined
def view_i16(address: int, length: int) -> npt.NDArray[np.int16]:
    return carray(_to_i16(address), length)  # type: ignore[no-any-return]


@inlined
def view_u16(address: int, length: int) -> npt.NDArray[np.uint16]:
    return carray(_to_u16(address), length)  # type: ignore[no-any-return]


@inlined
def view_u32(address: int, length: int) -> npt.NDArray[np.uint32]:
    return carray(_to_u32(address), length)  # type: ignore[no-any-return]


@inlined
def view_f32(address: int, length: int) -> npt.NDArray[np.float32]:
    return carray(_to_f32(address), length)  # type: ignore[no-any-return]


@inlined
def view_f64(address: int, length: int) -> Doubles:
    return carray(_to_f64(address), length)  # type: ignore[no-any-return]


@inlined
def view_rows(address: int, length: int, width: int) -> Rows:
    return carray(_to_i64(address), (length, width))  # type: ignore[no-any-return]


@_emitted
def byte(typingctx: Any, address: Any) -> Any:  # noqa: ARG001
    """The byte at an address, as uint64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        pointer = builder.inttoptr(args[0], ir.IntType(8).as_pointer())
        return builder.zext(builder.load(pointer), ir.IntType(64))

    return types.uint64(types.int64), codegen


@_emitted
def word(typingctx: Any, address: Any) -> Any:  # noqa: ARG001
    """The eight bytes at an address, aligned or not, as uint64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        pointer = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.load(pointer, align=1)

    return types.uint64(types.int64), codegen


def _reader_of(bits: int) -> Any:
    @_emitted
    def read(typingctx: Any, address: Any) -> Any:  # noqa: ARG001
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
            pointer = builder.inttoptr(args[0], ir.IntType(bits).as_pointer())
            return builder.zext(builder.load(pointer, align=1), ir.IntType(64))

        return types.uint64(types.int64), codegen

    return read


def _writer_of(bits: int) -> Any:
    @_emitted
    def write(typingctx: Any, address: Any, value: Any) -> Any:  # noqa: ARG001
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
            pointer = builder.inttoptr(args[0], ir.IntType(bits).as_pointer())
            given = args[1] if bits == 64 else builder.trunc(args[1], ir.IntType(bits))
            builder.store(given, pointer, align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.uint64), codegen

    return write


quarter = _reader_of(16)
"""The two bytes at an address, as uint64."""
half = _reader_of(32)
"""The four bytes at an address, as uint64."""
put_byte = _writer_of(8)
put_quarter = _writer_of(16)
put_half = _writer_of(32)
put_word = _writer_of(64)


@inlined
def copy_bytes(to: int, source: int, count: int) -> None:
    """Copy bytes from one address to another; they must not overlap."""
    k = np.int64(0)
    while k + 8 <= count:
        put_word(to + k, word(source + k))
        k += 8
    while k < count:
        put_byte(to + k, byte(source + k))
        k += 1


@_emitted
def swapped(typingctx: Any, value: Any) -> Any:  # noqa: ARG001
    """The word with its bytes in the other order, as uint64: of two, that comes first whose bytes do."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return builder.bswap(args[0])

    return types.uint64(types.int64), codegen


@_emitted
def prefetch(typingctx: Any, array: Any, index: Any) -> Any:  # noqa: ARG001
    """Ask for the cache line of an item of a one-dimensional array."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        text = ir.IntType(8).as_pointer()
        number = ir.IntType(32)
        wanted = ir.FunctionType(ir.VoidType(), [text, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, wanted, "llvm.prefetch.p0")
        place = builder.bitcast(builder.gep(data, [args[1]]), text)
        builder.call(function, [place, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen


@_emitted
def address_of(typingctx: Any, array: Any) -> Any:  # noqa: ARG001
    """Where the items of an array begin."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.ptrtoint(data, ir.IntType(64))

    return types.int64(array), codegen


@_emitted
def load(typingctx: Any, address: Any, k: Any) -> Any:  # noqa: ARG001
    """The ``k``-th word from an address on, as int64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        pointer = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.load(builder.gep(pointer, [args[1]]), align=8)

    return types.int64(types.int64, types.int64), codegen


@_emitted
def store(typingctx: Any, address: Any, k: Any, value: Any) -> Any:  # noqa: ARG001
    """Write the ``k``-th word from an address on."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        pointer = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        builder.store(args[2], builder.gep(pointer, [args[1]]), align=8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@_emitted
def _copy_pair(typingctx: Any, to: Any, source: Any) -> Any:  # noqa: ARG001
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        pair = ir.VectorType(ir.IntType(64), 2).as_pointer()
        value = builder.load(builder.inttoptr(args[1], pair), align=8)
        builder.store(value, builder.inttoptr(args[0], pair), align=8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@inlined
def copy_words(to: int, source: int, count: int) -> None:
    """Copy a few words from one address to another."""
    k = np.int64(0)
    while k + 2 <= count:
        _copy_pair(to + 8 * k, source + 8 * k)
        k += 2
    if k < count:
        store(to, k, load(source, k))


@_emitted
def prefetch_at(typingctx: Any, address: Any) -> Any:  # noqa: ARG001
    """Ask for the cache line at an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        text = ir.IntType(8).as_pointer()
        number = ir.IntType(32)
        wanted = ir.FunctionType(ir.VoidType(), [text, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, wanted, "llvm.prefetch.p0")
        builder.call(function, [builder.inttoptr(args[0], text), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(types.int64), codegen
