"""Types, constants and errors in DataFusion's SQL, and the few wrappers that keep its optimiser honest.

- Constants are texts inside a CAST, as in `headwater.sql.quoting`; a bare ``5`` would be a bigint.
- DataFusion has no function that raises. ``CAST('headwater!why!…' AS INT)`` does, and the reason stands in the error.
  It must not be a constant, or the planner would evaluate it: a column of the row (the *witness*) is part of the text.
- ``greatest(x)`` is ``x``, but the optimiser does not look into it. It knows ``CAST(l AS INT) = 5`` to be ``l = 5``,
  and the overflow would never be noticed.
- A CASE of booleans is turned into AND and OR, whose parts are tried in any order; a CASE of integers is not. `lazy`
  goes that way.
- Sorting and grouping see the bits of a NaN, and ``inf - inf`` has others than the usual one. Every operation that may
  make a NaN is therefore followed by `one_nan`, and the scan does it for stored ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa

from headwater.base.errors import Action
from headwater.base.schema import datafusion_type
from headwater.sql.casts import ERROR_MARK
from headwater.sql.nodes import Column, Node, Refused, walk
from headwater.sql.quoting import literal_sql
from headwater.sql.types import TIMESTAMP, TIMESTAMP_NTZ, family

__all__ = [
    "ELSEWHERE",
    "lazy",
    "literal",
    "one_nan",
    "opaque",
    "raise_form",
    "refusal",
    "type_name",
    "witness",
    "zero_free",
]

ELSEWHERE = Action("run_elsewhere")


def refusal(what: str) -> Refused:
    """What is raised for something that has no form here."""
    return Refused(f"{what} in DataFusion", ELSEWHERE)


def type_name(dtype: pa.DataType) -> str:
    """DataFusion's name of a type; a TIMESTAMP without digits would count nanoseconds.

    >>> type_name(pa.timestamp("us", tz="UTC")), type_name(pa.list_(pa.int32()))
    ('TIMESTAMP(6) WITH TIME ZONE', 'INT[]')
    """
    if dtype == TIMESTAMP:
        return "TIMESTAMP(6) WITH TIME ZONE"
    if dtype == TIMESTAMP_NTZ:
        return "TIMESTAMP(6)"
    if pa.types.is_list(dtype):
        return f"{type_name(dtype.value_type)}[]"
    if family(dtype) == "nested" or pa.types.is_null(dtype):
        raise refusal(f"the type {dtype}")
    return datafusion_type(dtype)


def literal(value: object, dtype: pa.DataType) -> str:
    """A Python value as a constant of a type.

    >>> literal(7, pa.int32()), literal("it's", pa.string())
    ('CAST(7 AS INT)', "'it''s'")
    """
    if value is None:
        return "NULL" if pa.types.is_null(dtype) or family(dtype) == "nested" else f"CAST(NULL AS {type_name(dtype)})"
    if isinstance(value, bool | str):
        return literal_sql(value, dtype)
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    return f"CAST({_spelled(value)} AS {type_name(dtype)})"


def _spelled(value: object) -> str:
    if isinstance(value, int):
        return str(value) if -(2**63) < value < 2**63 else f"'{value}'"
    if isinstance(value, float):
        return "'NaN'" if math.isnan(value) else f"'{value!r}'"
    if isinstance(value, Decimal):
        return f"'{value:f}'"
    if isinstance(value, datetime) and value.tzinfo is not None:
        return f"'{value.astimezone(UTC).isoformat(' ')}'"
    assert isinstance(value, date)
    return f"'{value.isoformat(' ') if isinstance(value, datetime) else value.isoformat()}'"


def raise_form(why: str, witness: str, dtype: pa.DataType) -> str:
    """SQL that stops with a reason of ours; ``witness`` is an operand, so that this is no constant.

    >>> raise_form("division by zero", '"a"', pa.int64())
    'CAST(CAST(concat_ws(\\'\\', \\'headwater!division by zero!\\', CAST("a" AS VARCHAR)) AS INT) AS BIGINT)'
    """
    text = f"concat_ws('', {literal_sql(f'{ERROR_MARK}{why}!')}, CAST({witness} AS VARCHAR))"
    stop = f"CAST({text} AS INT)"
    if pa.types.is_binary(dtype):
        return f"CAST(CAST({stop} AS VARCHAR) AS BYTEA)"
    if dtype in (TIMESTAMP, TIMESTAMP_NTZ):
        stop = f"CAST({stop} AS BIGINT)"
    return f"CAST({stop} AS {type_name(dtype)})"


def witness(nodes: Sequence[Node], sqls: Sequence[str]) -> str:
    """The SQL of the first operand that is no constant, as something that has a text."""
    for node, sql in zip(nodes, sqls, strict=True):
        if any(isinstance(n, Column) for n in walk(node)):
            if pa.types.is_binary(node.dtype):
                return f"hex({sql})"
            return f"cardinality({sql})" if pa.types.is_list(node.dtype) else sql
    return "random()"


def opaque(sql: str) -> str:
    """The same value, of which the optimiser knows nothing."""
    return f"greatest({sql})"


def lazy(steps: Sequence[tuple[str, str]], otherwise: str) -> str:
    """A CASE of booleans whose branches are evaluated only for their own rows."""
    whole = " ".join(f"WHEN {when} THEN {_bit(then)}" for when, then in steps)
    return f"CAST(CASE {whole} ELSE {_bit(otherwise)} END AS BOOLEAN)"


def _bit(truth: str) -> str:
    return {"TRUE": "1", "FALSE": "0"}.get(truth, f"CAST({truth} AS INT)")


def one_nan(sql: str, dtype: pa.DataType) -> str:
    """A float whose NaN, if it is one, is the usual one."""
    return f"nanvl({sql}, CAST('NaN' AS {type_name(dtype)}))"


def zero_free(sql: str, dtype: pa.DataType) -> str:
    """A float without its negative zero, for keys."""
    return f"({sql} + CAST('0.0' AS {type_name(dtype)}))" if family(dtype) == "float" else sql
