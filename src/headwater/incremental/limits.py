"""Conditions that are limits of words: comparisons with constants, and conjunctions of them.

Most filters compare a column with a constant. Such a condition needs no columns to be made of rows: it is decided
on the words themselves, in one call (`headwater.kernels.limits`). `limits_of` recognises it; for other conditions it
gives None.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.incremental.layout import Layout, Placed
from headwater.incremental.packing import pack_table
from headwater.sql.nodes import Call, Column, Literal, Node

__all__ = ["limits_of"]

_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1
_TURNED = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "=": "=", "!=": "!="}
_MOST = 16

_Line = tuple[int, int, int, int, int, int]


def limits_of(condition: Node, layout: Layout) -> npt.NDArray[np.int64] | None:
    """The limits that a condition is, for rows of a layout.

    >>> from headwater.sql.expressions import parse_condition
    >>> schema = pa.schema([("a", pa.int64()), ("s", pa.string())])
    >>> limits_of(parse_condition("a BETWEEN 2 AND 7", schema=schema).node, Layout(schema)).shape
    (2, 6)
    >>> limits_of(parse_condition("s = 'x'", schema=schema).node, Layout(schema)) is None
    True
    """
    lines: list[_Line] = []
    pending = [condition]
    while pending:
        node = pending.pop()
        if not isinstance(node, Call):
            return None
        if node.op == "and":
            pending += node.args
            continue
        line = _limit(node, layout)
        if line is None or len(lines) == _MOST:
            return None
        lines.append(line)
    return np.array(lines, dtype=np.int64)


def _limit(node: Call, layout: Layout) -> _Line | None:
    if node.op == "is not null":
        placed = _placed(node.args[0], layout)
        return None if placed is None else _line(placed, _LEAST, _GREATEST)
    if node.op not in _TURNED:
        return None
    op, (left, right) = node.op, node.args
    if isinstance(left, Literal):
        op, left, right = _TURNED[op], right, left
    placed = _placed(left, layout)
    if placed is None or placed.kind != "word" or not isinstance(right, Literal) or right.dtype != placed.dtype:
        return None
    if right.value is None:
        return None
    x = _word_of(right)
    if op in {"=", "!="}:
        return _line(placed, x, x, outside=op == "!=")
    if op in {"<", ">"} and x == (_LEAST if op == "<" else _GREATEST):
        return _line(placed, _LEAST, _GREATEST, outside=True)
    low = {">": x + 1, ">=": x}.get(op, _LEAST)
    high = {"<": x - 1, "<=": x}.get(op, _GREATEST)
    return _line(placed, low, high)


def _placed(node: Node, layout: Layout) -> Placed | None:
    if not isinstance(node, Column) or len(node.path) != 1 or layout.names.count(node.path[0]) != 1:
        return None
    return layout.column(node.path[0])


def _line(placed: Placed, low: int, high: int, *, outside: bool = False) -> _Line:
    return placed.word, low, high, placed.null_word, placed.null_bit, int(outside)


def _word_of(literal: Literal) -> int:
    table = pa.table([pa.array([literal.value], literal.dtype)], names=["value"])
    layout = Layout(table.schema)
    rows, _ = pack_table(layout, table)
    return int(rows[0, layout.columns[0].word])
