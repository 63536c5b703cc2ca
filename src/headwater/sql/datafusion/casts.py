"""CAST in DataFusion, for the pairs of types that `headwater.sql.casts` allows.

Arrow's casts cut floats and decimals towards zero, round decimals half up, and raise where a number does not fit: as
ANSI Spark. Texts are another matter, since Arrow reads others than Spark: only the shapes that both read are let
through. What Spark reads and this cannot (`headwater.sql.number_text` says what that is) stops the query, also in
TRY_CAST.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from headwater.sql.casts import by_text
from headwater.sql.datafusion.spelling import lazy, literal, one_nan, raise_form, refusal, type_name, witness
from headwater.sql.moment_casts import PAIRS as MOMENT_PAIRS
from headwater.sql.nodes import Node
from headwater.sql.number_text import ALL_BLANKS, BLANKS, FALSE, TRUE
from headwater.sql.quoting import literal_sql
from headwater.sql.types import family, name_of

__all__ = ["cast_form"]

_BLANKS = {"decimal": BLANKS, "float": BLANKS}
_NUMBER = r"[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)"
_SHAPES = {
    "integer": r"[+-]?[0-9]+",
    "decimal": _NUMBER,
    "float": _NUMBER + r"([eE][+-]?[0-9]+)?",
    "date": r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
}
_BEYOND = {
    "decimal": (r"[+-]?(\d+([.]\d*)?|[.]\d+)([eE][+-]?\d+)?", "a decimal with an exponent or other digits"),
    "date": (r"[+-]?[0-9]{4,7}(-[0-9]{1,2}(-[0-9]{1,2}([ T].*)?)?)?", "a date in another form than 2024-01-31"),
    "float": (r"[+-]?0[xX][0-9a-fA-F.]+[pP].*", "a hexadecimal number"),
}
_NAN = ("NaN", "+NaN", "-NaN", "nan")
_INFINITE = {"Infinity": ("inf", "+inf", "infinity", "+infinity"), "-Infinity": ("-inf", "-infinity")}


def cast_form(x: str, node: Node, target: pa.DataType, *, word: str = "CAST") -> str:
    """The SQL of a cast of ``node``, written ``x``; ``word`` is TRY_CAST where a null stands for what cannot be cast.

    >>> from headwater.sql.nodes import Column
    >>> cast_form("x", Column(None, ("x",), pa.int32()), pa.int64())
    'CAST(x AS BIGINT)'
    """
    source = node.dtype
    pair = (family(source), family(target))
    if pair[0] == "null":
        return f"(CASE WHEN {x} IS NULL THEN CAST(NULL AS {type_name(target)}) END)"
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
    if pair == ("decimal", "float") and by_text(source, target):
        return f"CAST(CAST({x} AS VARCHAR) AS {type_name(target)})"
    sql = f"{word}({x} AS {type_name(target)})"
    return one_nan(sql, target) if pair == ("float", "float") else sql


def _zero(dtype: pa.DataType) -> str:
    return f"CAST('0' AS {type_name(dtype)})"


def _text_form(x: str, node: Node, target: pa.DataType, word: str) -> str:
    kind, name = family(target), type_name(target)
    if kind == "binary":
        return f"CAST({x} AS BYTEA)"
    if kind not in _SHAPES and kind != "boolean":
        raise refusal(f"a cast of string to {name_of(target)}")
    trimmed = f"btrim({x}, {literal_sql(_BLANKS.get(kind, ALL_BLANKS))})"
    fails = raise_form(f"a text cannot be cast to {name_of(target)}", witness([node], [x]), target)
    why = fails if word == "CAST" else f"CAST(NULL AS {name})"
    cases = [(f"{x} IS NULL", f"CAST(NULL AS {name})")]
    if kind == "boolean":
        cases += [(_among(f"lower({trimmed})", TRUE), "TRUE"), (_among(f"lower({trimmed})", FALSE), "FALSE")]
        return lazy(cases, why)
    cases.append((_matches(trimmed, _SHAPES[kind]), f"{word}({trimmed} AS {name})"))
    if kind == "float":
        suffixed = f"substr({trimmed}, 1, length({trimmed}) - 1)"
        cases.append((_matches(trimmed, _SHAPES[kind] + "[dDfF]"), f"{word}({suffixed} AS {name})"))
        cases.append((f"{_among(trimmed, _NAN)} OR lower({trimmed}) = 'nan'", f"CAST('NaN' AS {name})"))
        cases += [(_among(f"lower({trimmed})", words), f"CAST('{is_}' AS {name})") for is_, words in _INFINITE.items()]
    if kind in _BEYOND:
        shape, what = _BEYOND[kind]
        unknown = raise_form(f"{what} in a text is not known here", witness([node], [x]), target)
        cases.append((_matches(trimmed, shape), unknown))
    return f"(CASE {' '.join(f'WHEN {when} THEN {then}' for when, then in cases)} ELSE {why} END)"


def _matches(text: str, shape: str) -> str:
    return f"regexp_like({text}, {literal_sql(f'^({shape})$')})"


def _among(text: str, words: Iterable[str]) -> str:
    return f"{text} IN ({', '.join(map(literal_sql, words))})"
