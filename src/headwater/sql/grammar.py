"""The grammar: sqlglot's parser with as little of its own mind as possible, and the names of types.

sqlglot is given no functions: each call stays a name with arguments, so its rewrites cannot change a meaning. What it
would read in a way that loses something (``array(1, 2)[0]``, TRANSFORM with a script, varchar with a length) is
switched off or refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError

from headwater.base.errors import ExpressionError
from headwater.sql.depth import allow_depth, is_deep
from headwater.sql.interval_types import DAY_UNITS, MONTH_UNITS, IntervalType
from headwater.sql.lexis import Scanned
from headwater.sql.misplaced import misplaced
from headwater.sql.nodes import Refused
from headwater.sql.strict_parser import StrictSpark
from headwater.sql.types import BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ, array_of, map_of

__all__ = ["data_type", "parse_text"]

_TYPES = {
    "BOOLEAN": BOOLEAN,
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "TEXT": pa.string(),
    "BINARY": pa.binary(),
    "DATE": DATE,
    "TIMESTAMPTZ": TIMESTAMP,
    "TIMESTAMPLTZ": TIMESTAMP,
    "TIMESTAMPNTZ": TIMESTAMP_NTZ,
}


def parse_text(text: str, scanned: Scanned) -> exp.Expr:
    try:
        try:
            parsed = StrictSpark().parse(scanned.sql)
        except RecursionError:
            allow_depth()
            parsed = StrictSpark().parse(scanned.sql)
    except ParseError as error:
        detail = error.errors[0]
        lines = scanned.sql.split("\n")
        line, column = int(detail["line"] or 1), int(detail["col"] or 1)
        at = sum(len(part) + 1 for part in lines[: line - 1]) + column - len(str(detail["highlight"] or ""))
        raise ExpressionError.syntax(text, _why(detail), scanned.original(at)) from None
    except TokenError:
        raise ExpressionError.syntax(text, "a character here has no meaning") from None
    except SqlglotError as error:
        raise ExpressionError.syntax(text, type(error).__name__) from None
    if len(parsed) != 1 or parsed[0] is None:
        raise ExpressionError.syntax(text, "one expression is expected")
    if is_deep(parsed[0]):
        allow_depth()
    for why, start in misplaced(parsed[0]):
        raise ExpressionError.syntax(text, why, None if start is None else scanned.original(start))
    # A query is not read in the order in which it is written, so each `?` is told its number here.
    asked = [n for n in parsed[0].find_all(exp.Placeholder) if not n.args.get("this")]
    for number, node in enumerate(sorted(asked, key=lambda n: int(n.meta["start"]))):
        node.meta["number"] = number
    return parsed[0]


def _why(detail: Mapping[str, Any]) -> str:
    if str(detail["description"]).startswith("="):  # said by `strict_parser`
        return str(detail["description"])[1:]
    if "Required keyword" in str(detail["description"]):
        return "something is missing after this"
    if str(detail["description"]).startswith("Expecting"):
        return str(detail["description"]).replace("Expecting", "expected") + " after this"
    return "this is not expected here"


def data_type(node: exp.Expr) -> pa.DataType:
    """The type that a parsed type name means."""
    kind = node.this if isinstance(node, exp.DataType) else node
    if isinstance(kind, exp.Interval):
        return _interval_type(kind.args.get("unit"))
    name = str(getattr(kind, "value", kind))
    if name in ("ARRAY", "MAP", "STRUCT") and node.expressions:
        return _nested_type(name, list(node.expressions))
    params = [p.this.this for p in node.expressions if isinstance(p, exp.DataTypeParam)]
    if name == "DECIMAL" and all(str(p).isdecimal() for p in params) and len(params) <= 2:
        precision, scale = (*map(int, params), *(10, 0)[len(params) :])
        if not 1 <= precision <= 38 or not 0 <= scale <= precision:
            raise Refused(f"the type decimal({precision},{scale})", "a decimal has 1 to 38 digits")
        return pa.decimal128(precision, scale)
    if name in ("CHAR", "VARCHAR"):
        return pa.string()  # in a cast Spark takes them for strings, whatever the length
    if node.expressions or name not in _TYPES:
        raise Refused(f"a cast to {name.lower()}", "cast to a type such as int, bigint, double, string or array<int>")
    return _TYPES[name]


def _interval_type(unit: exp.Expr | None) -> pa.DataType:
    ends = (unit.this, unit.expression) if isinstance(unit, exp.IntervalSpan) else (unit, unit)
    first, last = (str(e.name).lower() if isinstance(e, exp.Var) else "" for e in ends)
    for units in (tuple(DAY_UNITS), tuple(MONTH_UNITS)):
        spans = isinstance(unit, exp.IntervalSpan)
        if first in units and last in units and units.index(first) + spans <= units.index(last):
            return IntervalType(first, last)
    raise Refused("a cast to this interval", "cast to a type such as INTERVAL DAY or INTERVAL DAY TO SECOND")


def _nested_type(name: str, parts: list[exp.Expr]) -> pa.DataType:
    if name == "STRUCT":
        fields = []
        for part in parts:
            strange = [k for k, v in part.args.items() if v and k not in ("this", "kind")]
            if not isinstance(part, exp.ColumnDef) or not isinstance(part.args.get("kind"), exp.DataType) or strange:
                raise Refused("this field of a struct type", "write struct<a: int, b: string>")
            fields.append(pa.field(part.name, data_type(part.args["kind"])))
        if len({f.name.lower() for f in fields}) != len(fields):
            raise Refused("a struct type with two fields of one name", "give each field a name of its own")
        return pa.struct(fields)
    if len(parts) != (1 if name == "ARRAY" else 2) or not all(isinstance(p, exp.DataType) for p in parts):
        raise Refused(f"this {name.lower()} type", "write array<int> or map<string, int>")
    return array_of(data_type(parts[0])) if name == "ARRAY" else map_of(*map(data_type, parts))
