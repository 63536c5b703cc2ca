"""The typed tree in DuckDB's SQL, so that DuckDB's rows are Spark's rows.

Where the engines agree, a node is written as it is. Where they do not, it is rewritten:

- division and remainder by zero raise, as in ANSI Spark; the smallest integer % -1 is 0, not an overflow;
- a quotient of decimals is computed in whole numbers and rounded half up, because DuckDB divides decimals as doubles;
- what has no form in DuckDB's SQL calls a Python function, ``hw_…``: see `headwater.sql.udfs`;
- AND and OR keep Spark's order when a part may fail: DuckDB evaluates the parts of a conjunction in any order, but a
  CASE branch only for its own rows;
- what may fail is written ``greatest(x, NULL)``, which is ``x``. DuckDB's optimiser knows ``i + 1 > 5`` to be ``i >
  4``, and from statistics that ``(i + 1) IS NULL`` is false: true of numbers, but the overflow is then never noticed.
  It does not look into greatest();
- every float column is written ``CASE WHEN isnan(f) THEN 'nan' ELSE f END``. Parquet's statistics leave NaN out, and
  DuckDB concludes from them that ``f > 5`` is false where ``f`` is NaN: both engines say that it is true. The CASE
  tells the optimiser that a NaN may be there.

Invariant: every name and value in the output went through `quoting`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from headwater.base.schema import duckdb_type
from headwater.sql.binding import (
    LET,
    WASTE,
    Binder,
    Marks,
    Weights,
    has_many_rows,
    hoisted,
    is_plain,
    naming,
    parts_of_let,
)
from headwater.sql.casts import cast_form, raise_form
from headwater.sql.decimals import scaled_form, whole_form
from headwater.sql.functions.catalogue import FORMS
from headwater.sql.functions.conditional import extreme_form
from headwater.sql.functions.function import Form
from headwater.sql.functions.user import duckdb_name, is_user
from headwater.sql.nodes import Call, Column, Literal, Node, Refused
from headwater.sql.quoting import literal_sql, quote_identifier
from headwater.sql.types import digits_of, family, has_void

__all__ = ["Relations", "Renderer", "float_guard", "render"]

Relations = Mapping[str | None, str]
_MOST_CHARACTERS = 50_000_000
_DIVISION, _REMAINDER = "division by zero", "remainder by zero"


class Renderer:
    """Writes expressions; ``relations`` says which relation an alias is called by in the query.

    ``guards_floats`` is for columns that come from storage with statistics: a query guards them once, where it scans.
    """

    def __init__(self, relations: Relations, *, guards_floats: bool = True) -> None:
        self.relations = relations
        self.guards_floats = guards_floats
        self.weights = Weights()
        self._variables: dict[Node, str] = {}

    def render(self, node: Node) -> str:
        """DuckDB's SQL of a tree."""
        with naming(node):
            return self.written(node)

    def written(self, node: Node) -> str:
        """DuckDB's SQL of a part of a tree."""
        if isinstance(node, Literal):
            return "NULL" if has_void(node.dtype) else literal_sql(node.value, node.dtype)
        if isinstance(node, Column):
            bare = self._bare(node)
            # A query guards columns where it scans them, but not what lies inside of structs.
            guarded = self.guards_floats or len(node.path) > 1
            return float_guard(bare, node.dtype) if guarded and family(node.dtype) == "float" else bare
        if not isinstance(node, Call):
            return self.many_rows(node)
        if node.op in ("is null", "is not null") and isinstance(node.args[0], Column):
            return f"({self._bare(node.args[0])} {node.op.upper()})"
        if node.op == "in":
            return self._membership(node)
        if node.op == LET:
            return self._let(node)
        if node.op == "variable" and node in self._variables:
            return self._variables[node]
        if node.op in _STOPS and node.fallible:
            return self._in_order(node)
        marks = Marks()
        for arg in node.args:
            plain = is_plain(arg) or node.op in _BINDING
            marks.add(self.written(arg), plain=plain, weight=self.weights.of(arg))
        sql = marks.filled(self._form(node, marks.texts), BINDER)
        if len(sql) > _MOST_CHARACTERS:
            raise Refused("an expression nested this deep", "split it into several columns")
        return sql

    def _form(self, node: Call, args: list[str]) -> str:
        if is_user(node.op):
            return f"{duckdb_name(node.op)}({', '.join(args)})"
        form = _FORMS.get(node.op) or FORMS[node.op]
        sql = form.format(*args, type=_type_name(node.dtype)) if isinstance(form, str) else form(node, args)
        if node.op in _READING and family(node.dtype) == "float":
            sql = float_guard(sql, node.dtype)
        if node.fallible and node.op in _RAISING and family(node.dtype) != "nested":
            sql = extreme_form("greatest", node.dtype, [sql, "NULL"])
        return sql

    def _let(self, node: Call) -> str:
        """A value that the body names more than once."""
        values, names, body = parts_of_let(node)
        outside = any(map(has_many_rows, values))
        if outside and has_many_rows(body):
            return self.written(hoisted(node))
        marks, before = Marks(), self._variables
        self._variables = {**before, **{n: marks.add(self.written(v)) for n, v in zip(names, values, strict=True)}}
        sql = self.written(body)
        self._variables = before
        if marks.wasteful(sql) and has_many_rows(body):
            return self.written(hoisted(node))
        return marks.filled(sql, BINDER, always=outside)

    def _in_order(self, node: Call) -> str:
        """AND and OR with parts that may fail: each is tried only where those before it leave the answer open."""
        parts = [self.written(a) for a in node.args]
        stop = _STOPS[node.op]
        word, test = node.op.upper(), "NOT " if stop == "FALSE" else ""
        if all(len(p) <= WASTE for p in parts[:-1]):
            steps = " ".join(f"WHEN {test}{part} THEN {stop}" for part in parts[:-1])
            return f"(CASE {steps} ELSE ({f' {word} '.join(parts)}) END)"
        if any(map(has_many_rows, node.args[1:])):
            return self.written(hoisted(node))
        sql = parts[-1]
        for part in reversed(parts[:-1]):
            marks = Marks()
            first = marks.add(part)
            sql = marks.filled(f"(CASE WHEN {test}{first} THEN {stop} ELSE ({first} {word} {sql}) END)", BINDER)
        return sql

    def many_rows(self, node: Node) -> str:
        """Aggregates, windows and subqueries: not in an expression of one row."""
        raise AssertionError(f"{type(node).__name__} in an expression of one row")

    def _bare(self, node: Column) -> str:
        relation = self.relations.get(node.alias, node.alias)
        sql = quote_identifier(node.path[0])
        if relation is not None:
            sql = f"{quote_identifier(relation)}.{sql}"
        for name in node.path[1:]:
            sql = f"struct_extract({sql}, {literal_sql(name)})"
        return sql

    def _membership(self, node: Call) -> str:
        value, *items = node.args
        sql = self.written(value)
        whole = family(value.dtype) == "integer"
        # Long lists of whole numbers are read much faster bare, and take their type from the left side.
        spelled = (
            str(i.value) if whole and isinstance(i, Literal) and i.value is not None else self.written(i) for i in items
        )
        return f"({sql} IN ({', '.join(spelled)}))"


def render(node: Node, relations: Relations) -> str:
    """DuckDB's SQL of a tree; ``relations`` says which relation an alias is called by in the query.

    >>> import pyarrow as pa
    >>> render(Column("t", ("id",), pa.int64()), {"t": "target"})
    '"target"."id"'
    """
    return Renderer(relations).render(node)


def _bind_several(parts: Sequence[tuple[str, str]], name: str, body: str) -> str:
    held = ", ".join(f"'{part}': {sql}" for part, sql in parts)
    return f"list_transform([{{{held}}}], lambda {name}: {body})[1]"


BINDER = Binder(
    lambda sql, name, body: f"list_transform([{sql}], lambda {name}: {body})[1]",
    _bind_several,
    lambda name, part: f"struct_extract({name}, '{part}')",
)


def float_guard(x: str, dtype: pa.DataType) -> str:
    """A float that the optimiser knows may be NaN: see the head of this file."""
    return f"(CASE WHEN isnan({x}) THEN CAST('nan' AS {duckdb_type(dtype)}) ELSE {x} END)"


def _type_name(dtype: pa.DataType) -> str:
    return '"NULL"' if pa.types.is_null(dtype) else duckdb_type(dtype)


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
    # NULL / 0 is NULL.
    return f"(CASE WHEN {a[1]} = 0 AND {a[0]} IS NOT NULL THEN {raise_form(why)}{extra} ELSE {a[1]} END)"


def _quotient(node: Call, a: list[str]) -> str:
    if family(node.dtype) == "float":
        return f"({a[0]} / {_divisor(node, a, _DIVISION)})"
    left, right = (digits_of(n.dtype) for n in node.args)
    assert left is not None and right is not None
    precision, scale = node.dtype.precision, node.dtype.scale
    # In whole numbers: A/10^s1 over B/10^s2, at a scale of s, is A * 10^(s2 + s - s1) / B. Too many digits raise.
    shift = right[1] + scale - left[1]
    top = whole_form(a[0], left)
    bottom = whole_form(_divisor(node, a, _DIVISION), right)
    top = f"({top} * CAST(1{'0' * shift} AS HUGEINT))" if shift > 0 else top
    bottom = f"({bottom} * CAST(1{'0' * -shift} AS HUGEINT))" if shift < 0 else bottom
    rounded = f"((2 * abs({top}) + abs({bottom})) // (2 * abs({bottom})))"
    signed = f"(CASE WHEN ({a[0]} < 0) <> ({a[1]} < 0) THEN -{rounded} ELSE {rounded} END)"
    return scaled_form(signed, precision, scale)


def _remainder(node: Call, a: list[str]) -> str:
    extra = f" WHEN {a[1]} = -1 THEN 1" if family(node.dtype) == "integer" else ""
    right = node.args[1]
    if isinstance(right, Literal) and right.value == -1 and extra:
        return f"({a[0]} % {literal_sql(1, right.dtype)})"
    return f"CAST({a[0]} % {_divisor(node, a, _REMAINDER, extra=extra)} AS {duckdb_type(node.dtype)})"


def _case(_: Call, a: list[str]) -> str:
    steps = " ".join(f"WHEN {a[i]} THEN {a[i + 1]}" for i in range(0, len(a) - 1, 2))
    return f"(CASE {steps} ELSE {a[-1]} END)"


def _cast(node: Call, a: list[str]) -> str:
    return cast_form(a[0], node.args[0].dtype, node.dtype)


# Templates are for operators that are the same in both engines, or nearly so: the operands are put in as they are.
_FORMS: dict[str, Form] = {
    "=": "({} = {})",
    "!=": "({} <> {})",
    "<": "({} < {})",
    "<=": "({} <= {})",
    ">": "({} > {})",
    ">=": "({} >= {})",
    "<=>": "({} IS NOT DISTINCT FROM {})",
    "not": "(NOT {})",
    "is null": "({} IS NULL)",
    "zero sign": "({0} = 0 AND signbit({0}))",
    "is not null": "({} IS NOT NULL)",
    "like": "({} LIKE {} ESCAPE {})",
    "+": "CAST({} + {} AS {type})",
    "-": "CAST({} - {} AS {type})",
    "*": "CAST({} * {} AS {type})",
    "and": lambda _, a: f"({' AND '.join(a)})",
    "or": lambda _, a: f"({' OR '.join(a)})",
    "case": _case,
    "cast": _cast,
    "try_cast": lambda node, a: cast_form(a[0], node.args[0].dtype, node.dtype, word="TRY_CAST"),
    "/": _quotient,
    "%": _remainder,
    "minus": _minus,
    "div": lambda node, a: f"({a[0]} // {_divisor(node, a, _DIVISION)})",
}
# The part that decides, whatever the others are.
_STOPS = {"and": "FALSE", "or": "TRUE"}
# Their operands are parameters of a lambda, and what is computed of them.
_BINDING = {"lambda", "array_sort by"}
# What takes a float out of a nested value, whose statistics leave NaN out too.
_READING = {"field", "map value", "item", "get", "element_at", "try_element_at"}
_HANDING_ON = {"||", "coalesce", "greatest", "least"}
_RAISING = {"+", "-", "*", "/", "%", "minus", "cast", "div"} | (FORMS.keys() - _HANDING_ON)
