"""Functions that are Python functions of one row: called directly, instead of by DuckDB, which would call them too.

A form of the catalogue that is nothing but ``hw_name(arguments)`` is such a function (see `headwater.sql.udfs`). Only
the rows that count are handed to it.
"""

from __future__ import annotations

import re

import pyarrow as pa

from headwater.base.errors import SchemaError
from headwater.base.schema import duckdb_type
from headwater.sql.functions.catalogue import FORMS
from headwater.sql.java_regexp import RegexpError
from headwater.sql.nodes import Call, Literal, Node
from headwater.sql.udfs import UDFS, Failed, Udf
from headwater.sql.vectorised.frame import Frame, Kernel, RowFailed
from headwater.sql.vectorised.vector import Constant, Operand, Vector, dense, inner, vector_of

__all__ = ["called_by_row", "row_kernel"]

_CALL = re.compile(r"(?:(make_timestamp(?:tz)?)\()?(hw_\w+)\((.*?)\)(?(1)\))")
_MARK = "headwater!"


def called_by_row(udf: Udf, dtype: pa.DataType) -> Kernel:
    """The kernel that calls a function for each row that counts."""
    call, strict = udf.call, udf.strict

    def kernel(frame: Frame, *args: Operand) -> Operand:
        columns = [dense(a, frame.rows).to_arrow().to_pylist() for a in args]
        active = frame.active
        out: list[object] = [None] * frame.rows
        for row, given in enumerate(zip(*columns, strict=True)):
            if (strict and None in given) or (active is not None and not active[row]):
                continue
            try:
                out[row] = call(*given)
            except (Failed, RegexpError) as failed:
                raise RowFailed(row, str(failed).removeprefix(_MARK)) from None
        return inner(vector_of(pa.array(out, dtype)))

    return kernel


def row_kernel(node: Call) -> Kernel | None:
    """The kernel of a call whose form is one Python function over its operands, or None.

    Timestamps may go to it and come from it as counts of microseconds, which is what they are here.
    """
    form = FORMS.get(node.op)
    names = [f"argument{i}" for i in range(len(node.args))]
    if form is None:
        return None
    sql = form.format(*names, type="") if isinstance(form, str) else form(node, names)
    match = _CALL.fullmatch(sql)
    udf = UDFS.get(match[2]) if match is not None else None
    if match is None or udf is None:
        return None
    given = match[3].split(", ")
    counts = [g == f"epoch_us({n})" for g, n in zip(given, names, strict=False)]
    if len(given) != len(names) or [f"epoch_us({n})" if c else n for n, c in zip(names, counts, strict=True)] != given:
        return None
    for arg, wanted, is_count in zip(node.args, udf.parameters, counts, strict=True):
        if not is_count and not _takes(wanted, arg):
            return None
    made = pa.types.is_timestamp(node.dtype)
    if bool(match[1]) != made or (not made and udf.arrow != node.dtype and not pa.types.is_nested(node.dtype)):
        return None
    by_row = called_by_row(udf, pa.int64() if made else node.dtype)
    if not made and not any(counts):
        return by_row

    def kernel(frame: Frame, *args: Operand) -> Operand:
        plain = [_as_count(a) if c else a for a, c in zip(args, counts, strict=True)]
        found = by_row(frame, *plain)
        return Vector(node.dtype, found.values, found.valid) if made else found

    return kernel


def _as_count(operand: Operand) -> Operand:
    if isinstance(operand, Constant):
        return Constant(pa.int64(), operand.values)
    return Vector(pa.int64(), operand.values, operand.valid)


def _takes(wanted: str, arg: Node) -> bool:
    if pa.types.is_null(arg.dtype):
        return not isinstance(arg, Literal)
    try:
        return bool(duckdb_type(arg.dtype).replace(" ", "") == wanted.replace(" ", ""))
    except SchemaError:
        return False
