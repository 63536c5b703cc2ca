"""The typed tree in DuckDB's SQL, so that DuckDB's rows are Spark's rows.

Where the engines agree, a node is written as it is. Where they do not, it is rewritten:

- division and remainder by zero raise, as in ANSI Spark; the smallest integer % -1 is 0, not an overflow;
- a quotient of decimals is computed in whole numbers and rounded half up, because DuckDB divides decimals as doubles;
- upper and lower raise for text outside ASCII: Java maps ``ß`` to ``SS``, DuckDB does not;
- AND and OR keep Spark's order when a part may fail: DuckDB evaluates the parts of a conjunction in any order, but a
  CASE branch only for its own rows;
- what may fail is written ``greatest(x, NULL)``, which is ``x``. DuckDB's optimiser knows ``i + 1 > 5`` to be ``i > 4``, and from
  statistics that ``(i + 1) IS NULL`` is false: true of numbers, but the overflow is then never noticed. It does not look
  into greatest();
- every float column is written ``CASE WHEN isnan(f) THEN 'nan' ELSE f END``. Parquet's statistics leave NaN out, and DuckDB
  concludes from them that ``f > 5`` is false where ``f`` is NaN: both engines say that it is true. The CASE tells
  the optimiser that a NaN may be there.

Invariant: every name and value in the output went through `quoting`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from headwater.base.schema import duckdb_type
from headwater.sql.casts import cast_form, raise_form
from headwater.sql.nodes import Call, Column, Literal, Node, Refused
from headwater.sql.quoting import literal_sql, quote_identifier
from headwater.sql.types import digits_of, family

__all__ = ["Relations", "render"]

Relations = Mapping[str | None, str]
_MOST_CHARACTERS = 50_000_000
_SHORT = 200
_RAISING = {"+", "-", "*", "/", "%", "minus", "abs", "cast", "upper", "lower", "date +", "date -", "datediff"}
_DIVISION, _REMAINDER = "division by zero", "remainder by zero"


def render(node: Node, relations: Relations) -> str:
    """DuckDB's SQL of a tree; ``relations`` says which relation an alias is called by in the query.

    >>> import pyarrow as pa
    >>> render(Column("t", ("id",), pa.int64()), {"t": "target"})
    '"target"."id"'
    """
    if isinstance(node, Literal):
        return literal_sql(node.value, node.dtype)
    if isinstance(node, Column):
        bare = _bare(node, relations)
        if family(node.dtype) != "float":
            return bare
        return f"(CASE WHEN isnan({bare}) THEN CAST('nan' AS {duckdb_type(node.dtype)}) ELSE {bare} END)"
    if node.op in ("is null", "is not null") and isinstance(node.args[0], Column):
        return f"({_bare(node.args[0], relations)} {node.op.upper()})"
    if node.op == "in":
        return _membership(node, relations)
    args = [render(a, relations) for a in node.args]
    if node.op in _TEMPLATES:
        sql = _TEMPLATES[node.op].format(*args, type=duckdb_type(node.dtype))
    else:
        sql = _FORMS[node.op](node, args)
    if node.fallible and node.op in _RAISING:
        sql = _extreme("greatest")(node, [sql, "NULL"])
    if len(sql) > _MOST_CHARACTERS:
        raise Refused("an expression nested this deep", "split it into several columns")
    return sql


def _bare(node: Column, relations: Relations) -> str:
    relation = relations.get(node.alias, node.alias)
    sql = quote_identifier(node.path[0])
    if relation is not None:
        sql = f"{quote_identifier(relation)}.{sql}"
    for name in node.path[1:]:
        sql = f"struct_extract({sql}, {literal_sql(name)})"
    return sql


def _membership(node: Call, relations: Relations) -> str:
    value, *items = node.args
    sql = render(value, relations)
    whole = family(value.dtype) == "integer"
    # Long lists of whole numbers are read much faster bare, and take their type from the left side.
    spelled = (
        str(i.value) if whole and isinstance(i, Literal) and i.value is not None else render(i, relations)
        for i in items
    )
    return f"({sql} IN ({', '.join(spelled)}))"


def _logic(stop: str) -> Callable[[Call, list[str]], str]:
    word, test = ("AND", "NOT ") if stop == "FALSE" else ("OR", "")

    def form(node: Call, a: list[str]) -> str:
        whole = f" {word} ".join(a)
        if not node.fallible:
            return f"({whole})"
        steps = " ".join(f"WHEN {test}{part} THEN {stop}" for part in a[:-1])
        return f"(CASE {steps} ELSE ({whole}) END)"

    return form


def _minus(node: Call, a: list[str]) -> str:
    # DuckDB's unary minus widens small integers instead of overflowing; its subtraction does not.
    if family(node.dtype) == "integer":
        return f"({literal_sql(0, node.dtype)} - {a[0]})"
    return f"(-{a[0]})"


def _divisor(node: Call, a: list[str], why: str, *, extra: str = "") -> str:
    """The right operand, made to raise where it is zero and the left one is not null."""
    right = node.args[1]
    if isinstance(right, Literal) and right.value:
        return a[1]
    # NULL / 0 is NULL. A long operand is not written twice: there NULL / 0 raises, which is allowed.
    held = f" AND {a[0]} IS NOT NULL" if len(a[0]) < _SHORT else ""
    return f"(CASE WHEN {a[1]} = 0{held} THEN {raise_form(why)}{extra} ELSE {a[1]} END)"


def _quotient(node: Call, a: list[str]) -> str:
    if family(node.dtype) == "float":
        return f"({a[0]} / {_divisor(node, a, _DIVISION)})"
    left, right = (digits_of(n.dtype) for n in node.args)
    assert left is not None and right is not None
    precision, scale = node.dtype.precision, node.dtype.scale
    above, below = scale + right[1], right[1]
    top = f"CAST({a[0]} * CAST(1{'0' * above} AS DECIMAL({above + 1},0)) AS HUGEINT)"
    bottom = f"CAST({_divisor(node, a, _DIVISION)} * CAST(1{'0' * below} AS DECIMAL({below + 1},0)) AS HUGEINT)"
    rounded = f"((2 * abs({top}) + abs({bottom})) // (2 * abs({bottom})))"
    signed = f"(CASE WHEN ({a[0]} < 0) <> ({a[1]} < 0) THEN -{rounded} ELSE {rounded} END)"
    unit = f"CAST('0.{'0' * (scale - 1)}1' AS DECIMAL({scale + 1},{scale}))"
    return f"CAST(CAST({signed} AS DECIMAL({precision},0)) * {unit} AS DECIMAL({precision},{scale}))"


def _remainder(node: Call, a: list[str]) -> str:
    extra = f" WHEN {a[1]} = -1 THEN 1" if family(node.dtype) == "integer" else ""
    right = node.args[1]
    if isinstance(right, Literal) and right.value == -1 and extra:
        return f"({a[0]} % {literal_sql(1, right.dtype)})"
    return f"CAST({a[0]} % {_divisor(node, a, _REMAINDER, extra=extra)} AS {duckdb_type(node.dtype)})"


def _case(_: Call, a: list[str]) -> str:
    steps = " ".join(f"WHEN {a[i]} THEN {a[i + 1]}" for i in range(0, len(a) - 1, 2))
    return f"(CASE {steps} ELSE {a[-1]} END)"


def _letters(name: str) -> Callable[[Call, list[str]], str]:
    why = raise_form(f"{name}() of text outside ASCII is not the same in every engine")

    def form(_: Call, a: list[str]) -> str:
        x = a[0]
        ascii_only = f"strlen({x}) = length({x})"
        return f"(CASE WHEN {x} IS NULL THEN NULL WHEN {ascii_only} THEN {name}({x}) ELSE {why} END)"

    return form


def _cast(node: Call, a: list[str]) -> str:
    return cast_form(a[0], node.args[0].dtype, node.dtype)


def _joined(symbol: str) -> Callable[[Call, list[str]], str]:
    return lambda _, a: "(" + symbol.join(a) + ")"


def _extreme(name: str) -> Callable[[Call, list[str]], str]:
    def form(node: Call, a: list[str]) -> str:
        if node.dtype != pa.float32():
            return f"{name}({', '.join(a)})"
        # Of FLOATs, unlike DOUBLEs, DuckDB's greatest() and least() lose the sign of -0.0.
        return f"CAST({name}({', '.join(f'CAST({x} AS DOUBLE)' for x in a)}) AS FLOAT)"

    return form


# Operators that are the same in both engines, or nearly so: the operands are put in as they are.
_TEMPLATES = {
    "=": "({} = {})",
    "!=": "({} <> {})",
    "<": "({} < {})",
    "<=": "({} <= {})",
    ">": "({} > {})",
    ">=": "({} >= {})",
    "<=>": "({} IS NOT DISTINCT FROM {})",
    "not": "(NOT {})",
    "is null": "({} IS NULL)",
    "is not null": "({} IS NOT NULL)",
    "like": "({} LIKE {} ESCAPE {})",
    "+": "CAST({} + {} AS {type})",
    "-": "CAST({} - {} AS {type})",
    "*": "CAST({} * {} AS {type})",
    "abs": "abs({})",
    "isnan": "coalesce(isnan({}), FALSE)",
    "length": "CAST(length({}) AS {type})",
    "octet_length": "CAST(octet_length({}) AS {type})",
    "year": "CAST(year({}) AS {type})",
    "month": "CAST(month({}) AS {type})",
    "day": "CAST(day({}) AS {type})",
    "date +": "({} + {})",
    "date -": "({} - {})",
    "datediff": "CAST({} - {} AS {type})",
}

_FORMS: dict[str, Callable[[Call, list[str]], str]] = {
    "and": _logic("FALSE"),
    "or": _logic("TRUE"),
    "case": _case,
    "cast": _cast,
    "/": _quotient,
    "%": _remainder,
    "minus": _minus,
    "upper": _letters("upper"),
    "lower": _letters("lower"),
    "||": _joined(" || "),
    "coalesce": lambda _, a: f"coalesce({', '.join(a)})",
    "greatest": _extreme("greatest"),
    "least": _extreme("least"),
}
