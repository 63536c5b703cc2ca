"""The order of arrays and structs: inside them null is the smallest value in Spark, and the largest in DuckDB.

A nested value is therefore compared by a key of the same shape, in which each part stands behind a flag that says
whether it is there: false comes before true, so nulls come first. Plain values are their own keys.
"""

from __future__ import annotations

import pyarrow as pa

from headwater.sql.binding import fresh, let
from headwater.sql.quoting import literal_sql
from headwater.sql.types import family

__all__ = ["null_or_key", "order_key", "sorted_form"]


def order_key(x: str, dtype: pa.DataType) -> str:
    """What DuckDB has to compare in the place of ``x``.

    >>> order_key("x", pa.int32()), order_key("x", pa.list_(pa.int32()))
    ('x', "list_transform(x, lambda e0_: {'n': e0_ IS NOT NULL, 'v': e0_})")
    """
    if pa.types.is_list(dtype):
        e = fresh(x)
        return f"list_transform({x}, lambda {e}: {_flagged(e, dtype.value_type)})"
    if pa.types.is_struct(dtype):

        def body(v: str) -> str:
            parts = (_flagged(f"struct_extract({v}, {literal_sql(f.name)})", f.type) for f in dtype)
            return "{" + ", ".join(f"'f{i}': {part}" for i, part in enumerate(parts)) + "}"

        return let([x], body)
    return x


def null_or_key(x: str, dtype: pa.DataType) -> str:
    """The key to order rows by: that of a null is null."""
    if family(dtype) != "nested":
        return x
    return let([x], lambda v: f"(CASE WHEN {v} IS NOT NULL THEN {order_key(v, dtype)} END)")


def _flagged(x: str, dtype: pa.DataType) -> str:
    return f"{{'n': {x} IS NOT NULL, 'v': {order_key(x, dtype)}}}"


def sorted_form(xs: str, element: pa.DataType, *, descending: bool = False, nulls_last: bool = False) -> str:
    """The elements in order, equal ones as they stood.

    >>> sorted_form("xs", pa.int32(), descending=True, nulls_last=True)
    "list_sort(xs, 'DESC', 'NULLS LAST')"
    """
    if family(element) != "nested":
        return f"list_sort({xs}, '{'DESC' if descending else 'ASC'}', 'NULLS {'LAST' if nulls_last else 'FIRST'}')"

    def body(v: str) -> str:
        e, i = fresh(v), fresh(v, stem="i")
        sign, direction = ("-", "DESC") if descending else ("", "ASC")
        # What stands last going down stands first going up, so that one direction serves all parts of the key.
        there = f"{e} IS NULL" if nulls_last != descending else f"{e} IS NOT NULL"
        keys = f"list_transform({v}, lambda {e}, {i}: {{'n': {there}, 'k': {order_key(e, element)}, 'i': {sign}{i}}})"
        return f"list_transform(list_sort({keys}, '{direction}'), lambda {e}: {v}[{sign}{e}.i])"

    return let([xs], body)
