"""CAST in DataFusion, for the pairs of types that `headwater.sql.casts` allows.

Arrow's casts cut floats and decimals towards zero, round decimals half up, and raise where a number does not fit: as ANSI Spark.
Texts are another matter, since Arrow reads more of them than Spark: only the shapes that both read are let through.
"""

from __future__ import annotations

import pyarrow as pa

from headwater.sql.datafusion.spelling import lazy, literal, one_nan, raise_form, refusal, type_name, witness
from headwater.sql.moment_casts import PAIRS as MOMENT_PAIRS
from headwater.sql.nodes import Node
from headwater.sql.quoting import literal_sql
from headwater.sql.types import family, name_of

__all__ = ["cast_form"]

_BLANKS = " \t\r\n"
_SHAPES = {
    "integer": r"[+-]?[0-9]+",
    "decimal": r"[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)",
    "float": r"[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?",
    "date": r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
}
_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")


def cast_form(x: str, node: Node, target: pa.DataType, *, word: str = "CAST") -> str:
    """The SQL of a cast of ``node``, written ``x``; ``word`` is TRY_CAST where a null stands for what cannot be cast.

    >>> from headwater.sql.nodes import Column
    >>> cast_form("x", Column(None, ("x",), pa.int32()), pa.int64())
    'CAST(x AS BIGINT)'
    """
    source = node.dtype
    pair = (family(source), family(target))
    if pair[0] == "null":
        return f"CAST({x} AS {type_name(target)})"
    if pair[0] == "string":
        return _text_form(x, node, target, word)
    if pair[1] == "boolean":
        return f"({x} <> {literal(0, source) if pair[0] == 'integer' else _zero(source)})"
    if pair == ("date", "string"):
        why = raise_form("a date outside the years 1 to 9999 has no common text", witness([node], [x]), target)
        text = f"CAST({x} AS VARCHAR)"
        return f"(CASE WHEN date_part('year', {x}) NOT BETWEEN 1 AND 9999 THEN {why} ELSE {text} END)"
    # Arrow's texts of floats and timestamps are not Java's.
    printed = pair[1] == "string" and pair[0] in ("float", "timestamp", "timestamp_ntz")
    if printed or "nested" in pair or pair in MOMENT_PAIRS:
        raise refusal(f"a cast of {name_of(source)} to {name_of(target)}")
    sql = f"{word}({x} AS {type_name(target)})"
    return one_nan(sql, target) if pair == ("float", "float") else sql


def _zero(dtype: pa.DataType) -> str:
    return f"CAST('0' AS {type_name(dtype)})"


def _text_form(x: str, node: Node, target: pa.DataType, word: str) -> str:
    kind, name = family(target), type_name(target)
    if kind == "binary":
        return f"CAST({x} AS BYTEA)"
    trimmed = f"btrim({x}, {literal_sql(_BLANKS)})"
    fails = raise_form(f"a text cannot be cast to {name_of(target)}", witness([node], [x]), target)
    why = fails if word == "CAST" else f"CAST(NULL AS {name})"
    if kind == "boolean":
        small = f"lower({trimmed})"
        true, false = (", ".join(map(literal_sql, words)) for words in (_TRUE, _FALSE))
        return lazy(
            [
                (f"{x} IS NULL", "CAST(NULL AS BOOLEAN)"),
                (f"{small} IN ({true})", "TRUE"),
                (f"{small} IN ({false})", "FALSE"),
            ],
            why,
        )
    shape = literal_sql(f"^[{_BLANKS}]*{_SHAPES[kind]}[{_BLANKS}]*$")
    return (
        f"(CASE WHEN {x} IS NULL THEN CAST(NULL AS {name}) WHEN regexp_like({x}, {shape}) "
        f"THEN {word}({trimmed} AS {name}) ELSE {why} END)"
    )
