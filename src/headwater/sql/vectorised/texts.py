"""Texts by the column: length, case, concatenation, substrings, trimming, padding, splitting.

Only what Arrow does exactly as Spark is done here: positions are of characters (code points), a null operand gives a
null. Case beyond ASCII goes row by row through the Python function that DuckDB's path calls. An argument that says
where to cut has to be a constant, otherwise the call is left to DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.sql.nodes import Call, Literal, Node
from headwater.sql.types import INT, STRING, family
from headwater.sql.udfs import UDFS
from headwater.sql.vectorised.frame import Frame, Kernel
from headwater.sql.vectorised.rows import called_by_row
from headwater.sql.vectorised.vector import Operand, Vector, arrow_mask, validity, vector_of

__all__ = ["OPERATORS", "literal", "only_ascii"]

_MOST = 2**31 - 1


def literal(node: Node, kind: type) -> Any:
    """The value of a constant of this kind, or None."""
    found = node.value if isinstance(node, Literal) else None
    return found if isinstance(found, kind) and not (kind is int and isinstance(found, bool)) else None


def only_ascii(array: pa.Array) -> bool:
    """Has the column no character beyond ASCII?

    >>> only_ascii(pa.array(["a", None])), only_ascii(pa.array(["ß"]))
    (True, False)
    """
    _, ends, data = array.buffers()
    if data is None or len(array) == 0:
        return True
    offsets = np.frombuffer(ends, np.int32)
    used = np.frombuffer(data, np.uint8)[offsets[array.offset] : offsets[array.offset + len(array)]]
    return len(used) == 0 or int(used.max()) < 128


def _counted(function: str) -> Callable[[Call], Kernel]:
    count = pc.get_function(function)

    def kernel(_: Frame, a: Operand) -> Operand:
        found = vector_of(count.call([a.values]))
        return Vector(INT, found.values, found.valid)

    return lambda _: kernel


def _bits(_: Call) -> Kernel:
    return lambda _, a: Vector(INT, a.values * 8, a.valid)


def _cased(name: str) -> Callable[[Call], Kernel]:
    plain = pc.get_function(f"ascii_{name}")

    def build(_: Call) -> Kernel:
        by_row = called_by_row(UDFS[f"hw_{name}"], STRING)

        def kernel(frame: Frame, a: Operand) -> Operand:
            return Vector(STRING, plain.call([a.values])) if only_ascii(a.values) else by_row(frame, a)

        return kernel

    return build


def _applied(function: str, options: Any = None) -> Kernel:
    apply = pc.get_function(function)
    return lambda _, a, *__: Vector(STRING, apply.call([a.values], options))


def _same(_: Frame, a: Operand, *__: Operand) -> Operand:
    return a


def _nothing(_: Frame, a: Operand, *__: Operand) -> Operand:
    return Vector(STRING, pc.utf8_slice_codeunits(a.values, 0, 0))


def _joined(node: Call) -> Kernel | None:
    if family(node.dtype) not in ("string", "binary"):
        return None
    dtype, join = node.dtype, pc.get_function("binary_join_element_wise")
    options = pc.JoinOptions(null_handling="emit_null")
    nothing = pa.scalar("" if dtype == STRING else b"", dtype)

    def kernel(_: Frame, *args: Operand) -> Operand:
        return Vector(dtype, join.call([*(a.values for a in args), nothing], options))

    return kernel


def _joined_with(node: Call) -> Kernel | None:
    mark = literal(node.args[0], str)
    if mark is None or len(node.args) < 2:
        return None
    join, between = pc.get_function("binary_join_element_wise"), pa.scalar(mark, STRING)
    options = pc.JoinOptions(null_handling="skip")

    def kernel(frame: Frame, _: Operand, *args: Operand) -> Operand:
        values = [a.values for a in args if a.values is not None]
        masks = [validity(a) for a in args if a.values is not None]
        known = [m for m in masks if m is not None]
        if len(known) == len(masks):
            # Arrow leaves out a row of nothing but nulls: there an empty text stands for them.
            some = np.logical_or.reduce(known) if known else np.zeros(frame.rows, np.bool_)
            if not values:
                values = [pa.repeat(pa.scalar("", STRING), frame.rows)]
            elif not some.all():
                values[0] = pc.if_else(arrow_mask(some), values[0], "")
        if all(isinstance(v, pa.Scalar) for v in values):
            values[0] = pa.repeat(values[0], frame.rows)
        return Vector(STRING, join.call([*values, between], options))

    return kernel


def _slice(start: int, stop: int | None) -> Kernel:
    return _applied("utf8_slice_codeunits", pc.SliceOptions(start, stop, 1))


def _substring(node: Call) -> Kernel | None:
    start = literal(node.args[1], int)
    size = literal(node.args[2], int) if len(node.args) == 3 else _MOST
    if start is None or size is None:
        return None
    if size <= 0:
        return _nothing
    if start >= 0:
        first = max(start - 1, 0)
        return _slice(first, None if first + size >= _MOST else first + size)
    # From the end: what lies before the beginning is cut off the length, as in Python's slices.
    return _slice(start, None if start + size >= 0 else start + size)


def _end(node: Call) -> Kernel | None:
    count = literal(node.args[1], int)
    if count is None:
        return None
    if count <= 0:
        return _nothing
    return _slice(0, count) if node.op == "left" else _slice(-count, None)


def _trimmed(node: Call) -> Kernel | None:
    marks = literal(node.args[1], str)
    if marks is None:
        return None
    name = {"trim": "utf8_trim", "ltrim": "utf8_ltrim", "rtrim": "utf8_rtrim"}[node.op]
    return _applied(name, pc.TrimOptions(marks)) if marks else _same


def _padded(node: Call) -> Kernel | None:
    width, pad = literal(node.args[1], int), literal(node.args[2], str)
    if width is None or pad is None or len(pad) != 1 or not pad.isascii() or not pad.isprintable() or width > 1 << 20:
        return None
    if width <= 0:
        return _nothing
    cut, fill = pc.SliceOptions(0, width, 1), pc.PadOptions(width, pad)
    slice_, pad_ = pc.get_function("utf8_slice_codeunits"), pc.get_function(f"utf8_{node.op}")
    return lambda _, a, *__: Vector(STRING, pad_.call([slice_.call([a.values], cut)], fill))


def _replaced(node: Call) -> Kernel | None:
    old, new = literal(node.args[1], str), literal(node.args[2], str)
    if old is None or new is None:
        return None
    return _applied("replace_substring", pc.ReplaceSubstringOptions(old, new)) if old else _same


def _repeated(node: Call) -> Kernel | None:
    count = literal(node.args[1], int)
    if count is None or count > 1 << 16:
        return None
    repeat, times = pc.get_function("binary_repeat"), pa.scalar(max(count, 0), pa.int64())
    return lambda _, a, __: Vector(STRING, repeat.call([a.values, times]))


def _found(node: Call) -> Kernel | None:
    mark = literal(node.args[1], str)
    if not mark:
        return None
    find, options = pc.get_function("find_substring"), pc.MatchSubstringOptions(mark)

    def kernel(_: Frame, a: Operand, __: Operand) -> Operand:
        if only_ascii(a.values):
            found = vector_of(find.call([a.values], options))
            return Vector(INT, found.values + 1, found.valid)
        places = [0 if t is None else t.find(mark) + 1 for t in a.values.to_pylist()]
        return Vector(INT, np.array(places, np.int64), validity(a))

    return kernel


def _split(node: Call) -> Kernel | None:
    pattern, limit = literal(node.args[1], str), literal(node.args[2], int)
    if not pattern or limit is None or limit > 0 or any(c in "\\.[](){}|*+?^$" for c in pattern):
        return None
    split, options, dtype = pc.get_function("split_pattern"), pc.SplitPatternOptions(pattern), node.dtype
    return lambda _, a, *__: Vector(dtype, split.call([a.values], options).cast(dtype))


OPERATORS = {
    "length": _counted("utf8_length"),
    "octet_length": _counted("binary_length"),
    "octets": _counted("binary_length"),
    "bits": _bits,
    "upper": _cased("upper"),
    "lower": _cased("lower"),
    "reverse": lambda _: _applied("utf8_reverse"),
    "||": _joined,
    "concat_ws": _joined_with,
    "substring": _substring,
    "left": _end,
    "right": _end,
    "trim": _trimmed,
    "ltrim": _trimmed,
    "rtrim": _trimmed,
    "lpad": _padded,
    "rpad": _padded,
    "replace": _replaced,
    "repeat": _repeated,
    "instr": _found,
    "split": _split,
}
