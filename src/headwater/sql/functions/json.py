"""JSON in texts: looking into it, and to and from typed values. DuckDB reads JSON by other rules, so all of this is
Python.

What the functions mean is in `json_path` (get_json_object) and `json_values` (from_json, to_json). The functions that
depend on a type are defined when a query names them, one for each type.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from headwater.base.errors import ExpressionError
from headwater.base.schema import duckdb_type
from headwater.sql.binding import let
from headwater.sql.functions.function import Function
from headwater.sql.functions.typing import argument, constant
from headwater.sql.grammar import data_type, parse_text
from headwater.sql.json_path import found_text, steps_of
from headwater.sql.json_text import MALFORMED, Pairs, read_json, sound, write_json
from headwater.sql.json_values import reader_of, writer_of
from headwater.sql.lexis import scan
from headwater.sql.nodes import Call, Node, Refused, call
from headwater.sql.types import INT, STRING, array_of, name_of
from headwater.sql.udfs import UDFS, Udf, define

__all__ = ["FUNCTIONS", "json_fields"]

_NESTED = re.compile(r"\s*(?:array|map|struct)\s*<", re.IGNORECASE)


def _length(text: str) -> int | None:
    value = read_json(text)
    return len(value) if isinstance(value, list) and not isinstance(value, Pairs) else None


def _keys(text: str) -> list[str] | None:
    value = read_json(text)
    return [sound(name) for name, _ in value] if isinstance(value, Pairs) else None


def _fields(text: str | None, names: list[str]) -> list[str | None]:
    value = read_json(text) if text is not None else MALFORMED
    pairs = dict(value) if isinstance(value, Pairs) else {}
    found = [pairs.get(name) for name in names]
    return [v if v is None else sound(v) if isinstance(v, str) else write_json(v, astral=False) for v in found]


_GET = define("json_object", "VARCHAR VARCHAR", STRING, found_text)
_LENGTH = define("json_length", "VARCHAR", INT, _length)
_KEYS = define("json_keys", "VARCHAR", array_of(STRING), _keys)
_TUPLE = define("json_tuple", "VARCHAR VARCHAR[]", array_of(STRING), _fields, strict=False)


def _get(args: Sequence[Node]) -> Node:
    path = constant(args[1], "get_json_object", "write the path as a text")
    steps_of(str(path))
    return call("get_json_object", (argument("s", args[0], "get_json_object"), args[1]), STRING, fallible=True)


def json_fields(args: Sequence[Node]) -> Node:
    """json_tuple as a struct of texts, which is never null itself."""
    if len(args) < 2:
        raise Refused("json_tuple() without a field", "write json_tuple(text, 'a', 'b')")
    for name in args[1:]:
        constant(name, "json_tuple", "write the fields as texts")
    dtype = pa.struct([pa.field(f"c{i}", STRING) for i in range(len(args) - 1)])
    names = tuple(argument("s", a, "json_tuple") for a in args[1:])
    return call("json_tuple", (argument("s", args[0], "json_tuple"), *names), dtype, fallible=True)


def _tuple_form(_: Call, a: list[str]) -> str:
    def body(found: str) -> str:
        return "{" + ", ".join(f"'c{i}': {found}[{i + 1}]" for i in range(len(a) - 1)) + "}"

    return let([f"{_TUPLE}({a[0]}, [{', '.join(a[1:])}])"], body)


def _schema(text: str) -> pa.DataType:
    try:
        whole = text if _NESTED.match(text) else f"struct<{text}>"
        parsed = parse_text(text, scan(f"CAST(x AS {whole})"))
    except ExpressionError:
        parsed = None
    kind = parsed.args.get("to") if isinstance(parsed, exp.Cast) else None
    if kind is None or re.search(r"\bchar|varchar", text, re.IGNORECASE):
        raise Refused(f"the schema {text!r}", "write it as 'a INT, b STRING' or 'ARRAY<STRUCT<a: INT>>'")
    return data_type(kind)


def _from(args: Sequence[Node]) -> Node:
    dtype = _schema(str(constant(args[1], "from_json", "write the schema as a text")))
    reader_of(dtype)
    return call("from_json", (argument("s", args[0], "from_json"),), dtype, fallible=True)


def _tag(dtype: pa.DataType) -> str:
    return hashlib.sha256(name_of(dtype).encode()).hexdigest()[:16]


def _from_form(node: Call, a: list[str]) -> str:
    return f"{define(f'from_json_{_tag(node.dtype)}', 'VARCHAR', node.dtype, reader_of(node.dtype))}({a[0]})"


def _to(args: Sequence[Node]) -> Node:
    if not pa.types.is_nested(args[0].dtype):
        raise Refused(f"to_json() of {name_of(args[0].dtype)}", "pass a struct, an array or a map")
    writer_of(args[0].dtype)
    return call("to_json", (args[0],), STRING, fallible=True)


def _to_form(node: Call, a: list[str]) -> str:
    dtype = node.args[0].dtype
    name = f"hw_to_json_{_tag(dtype)}"
    UDFS.setdefault(name, Udf(name, (duckdb_type(dtype),), "VARCHAR", STRING, writer_of(dtype)))
    return f"{name}({a[0]})"


_PATHS = "a constant path of names, indices and at most one [*]"
_DIGITS = "numbers whose digits depend on the version of Java raise"
FUNCTIONS = (
    Function(
        "get_json_object",
        "json",
        _get,
        2,
        2,
        {"get_json_object": lambda _, a: f"{_GET}({a[0]}, {a[1]})", "json_tuple": _tuple_form},
        note=f"{_PATHS}; {_DIGITS}",
    ),
    Function(
        "from_json",
        "json",
        _from,
        2,
        2,
        {"from_json": _from_form},
        note="a constant schema without floats and timestamp_ntz, in PERMISSIVE mode",
    ),
    Function("to_json", "json", _to, 1, 1, {"to_json": _to_form}, note=_DIGITS),
    Function(
        "json_array_length",
        "json",
        lambda args: call("json length", (argument("s", args[0], "json_array_length"),), INT, fallible=True),
        1,
        1,
        {"json length": lambda _, a: f"{_LENGTH}({a[0]})"},
    ),
    Function(
        "json_object_keys",
        "json",
        lambda args: call("json keys", (argument("s", args[0], "json_object_keys"),), array_of(STRING), fallible=True),
        1,
        1,
        {"json keys": lambda _, a: f"{_KEYS}({a[0]})"},
    ),
)
