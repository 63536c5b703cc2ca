"""CAST, by the pairs of types for which DuckDB can be made to do what Spark does.

The two engines disagree on most interesting casts: DuckDB rounds where Spark truncates, prints floats in another way,
reads texts that Spark refuses. Each pair of families is therefore listed with its DuckDB form, or it is refused.

Forms (x is the operand's SQL):
- to integers: from floats and decimals by trunc(x);
- from texts: plain numbers and dates natively, all other texts that Spark reads by Python functions (`text_casts`);
- decimal to double: up to 15 digits by a division, which is rounded once; all others, and floats, by way of text;
- decimal to text: with one more digit, because DuckDB prints ``.5`` where Spark prints ``0.5``;
- dates print as text only between the years 1 and 9999, outside which the engines differ: an error there;
- instants to wall clocks and back through the count of microseconds, which no session's time zone touches.

Invariant: a row for which Spark raises makes this raise; a row for which this does not raise has Spark's value.
"""

from __future__ import annotations

import pyarrow as pa

from headwater.base.schema import duckdb_type
from headwater.sql.interval_types import is_interval
from headwater.sql.intervals.casts import interval_cast
from headwater.sql.literals import cast_literal
from headwater.sql.moment_casts import PAIRS as MOMENT_PAIRS
from headwater.sql.moment_casts import moment_cast_form
from headwater.sql.nested_casts import nested_fallible, nested_form
from headwater.sql.nodes import Call, Literal, Node, Refused, Wrong, call
from headwater.sql.quoting import literal_sql
from headwater.sql.text_casts import PAIRS, text_cast_form
from headwater.sql.types import digits_of, family, has_void, name_of

__all__ = ["ERROR_MARK", "by_text", "cast", "cast_form", "raise_form", "try_cast"]

ERROR_MARK = "headwater!"
_EXACT_DOUBLE_DIGITS = 15

# (from, to) -> may a row fail? None: it depends on the widths.
_ALLOWED: dict[tuple[str, str], bool | None] = {
    ("integer", "integer"): None,
    ("integer", "float"): False,
    ("integer", "decimal"): None,
    ("integer", "string"): False,
    ("integer", "boolean"): False,
    ("boolean", "integer"): False,
    ("boolean", "float"): False,
    ("boolean", "string"): False,
    ("float", "integer"): True,
    ("float", "float"): None,
    ("float", "boolean"): False,
    ("decimal", "decimal"): None,
    ("decimal", "integer"): True,
    ("decimal", "float"): False,
    ("decimal", "string"): False,
    ("decimal", "boolean"): False,
    ("date", "string"): True,
    ("date", "timestamp"): True,
    ("date", "timestamp_ntz"): True,
    ("timestamp", "date"): False,
    ("timestamp_ntz", "date"): False,
    ("timestamp", "timestamp_ntz"): False,
    ("timestamp_ntz", "timestamp"): False,
    **PAIRS,
    **MOMENT_PAIRS,
}


def cast(node: Node, dtype: pa.DataType) -> Node:
    """``node`` in another type; constants change at once, columns by a ``cast`` node.

    >>> cast(Literal(5, pa.int32()), pa.int64())
    Literal(value=5, dtype=DataType(int64))
    """
    source = node.dtype
    if source == dtype:
        return node
    if family(source) == "null" and has_void(dtype) and not node.fallible:
        return Literal(None, dtype)
    if is_interval(source) or is_interval(dtype):
        return interval_cast(node, dtype, cast)
    if isinstance(node, Literal):
        folded = cast_literal(node, dtype)
        if folded is not None:
            return folded
    if (
        isinstance(node, Call)
        and node.op == "array"
        and pa.types.is_list(dtype)
        and all(isinstance(a, Literal) for a in node.args)
    ):
        return call("array", tuple(cast(a, dtype.value_type) for a in node.args), dtype)
    if isinstance(node, Call) and node.op == "map" and not node.args and pa.types.is_map(dtype):
        return call("map", (), dtype)
    if family(source) == "null":
        return Call("cast", (node,), dtype, node.fallible)
    fallible = _fallible(source, dtype)
    return call("cast", (node,), dtype, fallible=fallible)


def try_cast(node: Node, dtype: pa.DataType) -> Node:
    """``node`` in another type, and null where that does not go.

    >>> try_cast(Literal("x", pa.string()), pa.int32())
    Literal(value=None, dtype=DataType(int32))
    """
    if is_interval(dtype) and isinstance(node, Literal):
        try:
            return cast(node, dtype)
        except Wrong:
            return Literal(None, dtype)
    if is_interval(node.dtype) or is_interval(dtype):
        found = cast(node, dtype)
        if found.fallible and not node.fallible:
            raise Refused(f"try_cast of {name_of(node.dtype)} to {name_of(dtype)}", "use a plain cast")
        return found
    if family(node.dtype) == "nested" and node.dtype != dtype and _fallible(node.dtype, dtype):
        raise Refused(f"try_cast of {name_of(node.dtype)} to {name_of(dtype)}", "cast its elements in a lambda")
    if (family(node.dtype), family(dtype)) in MOMENT_PAIRS:
        raise Refused(f"try_cast of {name_of(node.dtype)} to {name_of(dtype)}", "use a plain cast")
    try:
        found = cast(node, dtype)
    except Refused:
        _fallible(node.dtype, dtype)  # a pair of types that is refused for columns is refused for constants
        return Literal(None, dtype)
    if (
        isinstance(found, Call)
        and found.op == "cast"
        and family(node.dtype) in ("string", "integer", "float", "decimal")
    ):
        return call("try_cast", found.args, dtype)
    return found


def _fallible(source: pa.DataType, target: pa.DataType) -> bool:
    pair = (family(source), family(target))
    if pair[0] == "nested" and source != target:
        return nested_fallible(source, target, _fallible)
    refusal = Refused(
        f"a cast of {name_of(source)} to {name_of(target)}", "the engines give different answers; cast the data first"
    )
    if pair not in _ALLOWED:
        raise refusal
    fixed = _ALLOWED[pair]
    if fixed is not None:
        return fixed
    if pair == ("float", "float"):
        return bool(target == pa.float32())
    have, want = digits_of(source), digits_of(target)
    assert have is not None and want is not None
    if pair == ("integer", "integer"):
        return want[0] < have[0]
    rounds = want[1] < have[1]
    return want[0] - want[1] < have[0] - have[1] + rounds


def by_text(source: pa.DataType, target: pa.DataType) -> bool:
    """Is a decimal read from its text as a float? Two roundings, of a quotient and to a float,
    could differ from one.
    """
    return family(source) == "decimal" and (target == pa.float32() or source.precision > _EXACT_DOUBLE_DIGITS)


def raise_form(reason: str) -> str:
    """DuckDB SQL that stops with a reason of ours.

    >>> raise_form("division by zero")
    "error('headwater!division by zero')"
    """
    return f"error({literal_sql(ERROR_MARK + reason)})"


def cast_form(x: str, source: pa.DataType, target: pa.DataType, *, word: str = "CAST") -> str:
    """The DuckDB SQL of a cast that `cast` allowed; ``word`` is TRY_CAST where a null stands for what
    cannot be cast.
    """
    if family(source) == "null":
        # An engine has given the column some type, from which not every other one can be reached.
        return f"(CASE WHEN {x} IS NULL THEN CAST(NULL AS {duckdb_type(target)}) END)"
    if family(source) == "nested":
        return nested_form(x, source, target, cast_form)
    pair, name = (family(source), family(target)), duckdb_type(target)
    if (found := text_cast_form(x, source, target, safe=word == "TRY_CAST")) is not None:
        return found
    if (found := moment_cast_form(x, source, target)) is not None:
        return found
    if pair == ("decimal", "float") and by_text(source, target):
        return f"CAST(CAST({x} AS VARCHAR) AS {name})"
    if pair in (("float", "integer"), ("decimal", "integer")):
        return f"{word}(trunc({x}) AS {name})"
    if pair[1] == "boolean" and pair[0] != "null":
        return f"({x} <> 0)"
    if pair == ("decimal", "string") and source.precision == source.scale:
        if source.precision == 38:
            raise Refused("a text of a decimal(38,38)", "give it a digit before the point")
        return f"CAST(CAST({x} AS DECIMAL({source.precision + 1},{source.scale})) AS VARCHAR)"
    if pair == ("date", "string"):
        why = raise_form("a date outside the years 1 to 9999 has no common text")
        return f"CASE WHEN year({x}) NOT BETWEEN 1 AND 9999 THEN {why} ELSE CAST({x} AS VARCHAR) END"
    if pair == ("date", "timestamp"):
        return f"make_timestamptz(epoch_us(CAST({x} AS TIMESTAMP)))"
    if pair == ("timestamp_ntz", "timestamp"):
        return f"make_timestamptz(epoch_us({x}))"
    if pair[0] == "timestamp":
        wall = f"make_timestamp(epoch_us({x}))"
        return wall if pair[1] == "timestamp_ntz" else f"CAST({wall} AS DATE)"
    return f"{word}({x} AS {name})"
