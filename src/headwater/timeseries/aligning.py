"""Two inputs in step: pieces of both that hold all rows of the same keys, in bounded memory.

The problem: a join needs the rows of a key of both sides at once, and one task's rows may be more than fits. The idea:
what fits is one piece. What does not is sorted by its keys (`Rows.sorted` spills), and both sides are walked together:
of the two chunks at hand the smaller last key bounds what is complete on both sides, that much is given, and the side
that is used up goes on. Only one key has to fit in memory, on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa

from headwater.base.errors import InputError, UnsupportedError
from headwater.timeseries.rows import Rows, comparable, whole_keys
from headwater.timeseries.wider_type import wider

__all__ = ["aligned", "check_alike", "check_keys", "in_pieces", "key_types"]


def key_types(left: pa.Schema, right: pa.Schema, keys: Sequence[tuple[str, str]]) -> list[pa.DataType]:
    """The types in which keys of two sides are compared.

    >>> key_types(pa.schema([("a", pa.int8())]), pa.schema([("b", pa.int64())]), [("a", "b")])
    [DataType(int64)]
    """
    found = []
    for mine, theirs in keys:
        a, b = left.field(mine).type, right.field(theirs).type
        kind = wider(a, b)
        if kind is None or pa.types.is_null(kind):
            what = f"`{mine}` of type {a} and `{theirs}` of type {b}"
            raise InputError.bad_argument("on", what, "columns of one type: cast one of them with with_columns()")
        found.append(kind)
    check_keys(left, [k for k, _ in keys])
    check_keys(right, [k for _, k in keys])
    return found


def check_alike(left: pa.Schema, right: pa.Schema, keys: Sequence[tuple[str, str]]) -> None:
    """Refuse keys of two sides whose values would never be equal, or only by chance: other types than whole numbers
    have to be the same.

    >>> check_alike(pa.schema([("a", pa.int8())]), pa.schema([("b", pa.int64())]), [("a", "b")])
    """
    for mine, theirs in keys:
        kinds = left.field(mine).type, right.field(theirs).type
        if kinds[0] != kinds[1] and not all(pa.types.is_integer(kind) for kind in kinds):
            what = f"{mine} {kinds[0]} and {theirs} {kinds[1]}"
            raise InputError.bad_argument("by", what, "columns of one type; cast one of them")


def check_keys(schema: pa.Schema, keys: Sequence[str]) -> None:
    """Refuse keys by whose values rows cannot be put together."""
    for name in keys:
        kind = schema.field(name).type
        if pa.types.is_nested(kind):
            hint = "use one of its fields, or its text, as the key"
            raise UnsupportedError.column_type(name, str(kind), hint)


def in_pieces(rows: Rows, keys: Sequence[str]) -> Iterator[pa.Table]:
    """All rows at once where they fit, else sorted and in pieces that end where a key ends; nothing, if there are none.

    >>> [t.num_rows for t in in_pieces(Rows([pa.table({"k": [2, 1]}), pa.table({"k": [1]})]), ["k"])]
    [3]
    """
    held, rest = _fitting(rows)
    if rest is not None:
        yield from whole_keys(rest.sorted(keys), keys)
    elif held.num_rows:
        yield held


def aligned(
    left: Rows, right: Rows, left_keys: Sequence[str], right_keys: Sequence[str]
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Pieces of both sides; each key is in one pair of them.

    >>> a, b = Rows([pa.table({"k": [2, 1]})]), Rows([pa.table({"j": [1, 3]})])
    >>> [(l["k"].to_pylist(), r["j"].to_pylist()) for l, r in aligned(a, b, ["k"], ["j"])]
    [([2, 1], [1, 3])]
    """
    left_whole, left_rest = _fitting(left)
    right_whole, right_rest = _fitting(right)
    if left_rest is None and right_rest is None:
        yield left_whole, right_whole
        return
    mine = whole_keys((left_rest or Rows([left_whole], left.schema)).sorted(left_keys), left_keys)
    theirs = whole_keys((right_rest or Rows([right_whole], right.schema)).sorted(right_keys), right_keys)
    nothing = left.schema.empty_table(), right.schema.empty_table()
    a, b = next(mine, None), next(theirs, None)
    while a is not None and b is not None:
        end_a = _up_to(a, left_keys, b.slice(b.num_rows - 1), right_keys)
        end_b = _up_to(b, right_keys, a.slice(a.num_rows - 1), left_keys)
        yield a.slice(0, end_a), b.slice(0, end_b)
        a = a.slice(end_a) if end_a < a.num_rows else next(mine, None)
        b = b.slice(end_b) if end_b < b.num_rows else next(theirs, None)
    while a is not None:
        yield a, nothing[1]
        a = next(mine, None)
    while b is not None:
        yield nothing[0], b
        b = next(theirs, None)


def _fitting(rows: Rows) -> tuple[pa.Table, Rows | None]:
    held: list[pa.Table] = []
    size = 0
    tables = iter(rows)
    for table in tables:
        held.append(table)
        size += table.nbytes
        if size > rows.budget_bytes:
            more = Rows(chain(held, tables), rows.schema, budget_bytes=rows.budget_bytes)
            return rows.schema.empty_table(), more
    return pa.concat_tables(held) if held else rows.schema.empty_table(), None


def _up_to(table: pa.Table, keys: Sequence[str], last: pa.Table, last_keys: Sequence[str]) -> int:
    """How many rows of a sorted table are not after the key of one row."""
    within = np.ones(table.num_rows, np.bool_)
    same = within.copy()
    for mine, theirs in zip(keys, last_keys, strict=True):
        a, b = table.column(mine), last.column(theirs)
        kind = wider(a.type, b.type)
        column = pa.chunked_array([*a.cast(kind).chunks, *b.cast(kind).chunks], kind)
        for word in comparable(column):
            within &= ~(same & (word[:-1] > word[-1]))
            same &= word[:-1] == word[-1]
    return int(np.count_nonzero(within))
