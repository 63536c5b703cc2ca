"""What Spark calls a column that was given no name: ``sum(x)``, ``(a + 1)``, ``CASE WHEN (a > 1) THEN b END``.

Spark prints the expression as it understood it, with parentheses around each operator, constants without quotes, and
without the casts it made itself. The names here are made from the text as parsed, and are compared with Spark's in the
tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
from sqlglot import exp

from headwater.sql.functions.of_types import CAST_FUNCTIONS
from headwater.sql.grammar import data_type
from headwater.sql.nodes import Call, Column, Literal, SubqueryCall, walk
from headwater.sql.operator_grammar import UnsignedRightShift
from headwater.sql.reader.call_names import DEFAULTS, FORMS, RENAMED, UNITS_FIRST, UPPER
from headwater.sql.reader.clock import is_clock_word
from headwater.sql.reader.constant_names import constant_name
from headwater.sql.reader.context import Context
from headwater.sql.reader.expressions import QueryReader
from headwater.sql.reader.interval_names import interval_name, moved_name
from headwater.sql.reader.nested_names import NESTED_NAMES
from headwater.sql.reader.predicate_names import like_name, membership_name, row_name
from headwater.sql.reader.scopes import RowScope
from headwater.sql.types import family, name_of

__all__ = ["column_name"]

_INFIX: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
    UnsignedRightShift: ">>>",
    exp.EQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.And: "AND",
    exp.Or: "OR",
}
_ROW_FRAMES = {"row_number", "rank", "dense_rank", "percent_rank", "ntile"}


def column_name(context: Context, scope: RowScope, node: exp.Expr, windows: Mapping[str, exp.Expr]) -> str:
    """The name of an item of a select list."""
    while isinstance(node, exp.Paren):
        node = node.this
    base = node
    while isinstance(base, exp.Dot):
        base = base.this
    if is_clock_word(base) and not scope.has(base.name):
        return f"{base.name.lower()}()"
    if isinstance(base, exp.Column):
        return str(node.name if isinstance(node, exp.Column) else node.expression.name)
    if isinstance(node, exp.TryCast) and isinstance(node.this, exp.Column):
        return str(node.this.name)
    if isinstance(node, exp.Anonymous) and node.name.lower() in CAST_FUNCTIONS and len(node.expressions) == 1:
        return column_name(context, scope, node.expressions[0], windows)
    return _Namer(context, scope, windows).name(node)


class _Namer:
    def __init__(self, context: Context, scope: RowScope, windows: Mapping[str, exp.Expr]) -> None:
        self.context, self.scope, self.windows = context, scope, windows
        self.reader = QueryReader(context, scope)
        self.variables: list[set[str]] = []

    def name(self, node: exp.Expr) -> str:
        if type(node) in _INFIX:
            if (moved := moved_name(self, node)) is not None:
                return moved
            return f"({self.name(node.this)} {_INFIX[type(node)]} {self.name(node.expression)})"
        maker = _MAKERS.get(type(node))
        return maker(self, node) if maker is not None else node.sql(dialect="spark")

    def names(self, nodes: list[exp.Expr]) -> str:
        return ", ".join(map(self.name, nodes))

    def paren(self, node: exp.Expr) -> str:
        return self.name(node.this)

    def column(self, node: exp.Expr) -> str:
        parts = [p.name for p in node.parts] if isinstance(node, exp.Column) else []
        if isinstance(node, exp.Dot):
            if not self.variables and pa.types.is_map(self.reader.read(node.this).dtype):
                return f"{self.name(node.this)}[{node.expression.name}]"
            return f"{self.name(node.this)}.{node.expression.name}"
        if isinstance(node, exp.Identifier):
            parts = [node.name]
        if is_clock_word(node) and not self._is_variable(parts[0]) and not self.scope.has(parts[0]):
            return f"{parts[0].lower()}()"
        if self._is_variable(parts[0]):
            return ".".join(["namedlambdavariable()", *parts[1:]])
        if len(parts) == 1 and self.scope.is_alias(parts[0]):
            return f"lateralAliasReference({parts[0]})"
        found = self.scope.column(tuple(parts))
        steps: list[str] = []
        while isinstance(found, Call) and found.op in ("field", "fields", "map value"):
            name = parts[-1 - len(steps)]
            steps.insert(0, f"[{name}]" if found.op == "map value" else f".{name}")
            found = found.args[0]
        if steps:
            depth = len(found.path) if isinstance(found, Column) else 1
            return ".".join(parts[-depth - len(steps) : -len(steps)]) + "".join(steps)
        depth = len(found.path) if isinstance(found, Column) else 1
        return ".".join(parts[-depth:])

    def literal(self, node: exp.Expr) -> str:
        return constant_name(self.reader.read(node))

    def cast(self, node: exp.Expr) -> str:
        if type(node) is exp.Cast or self.reader._is_suffixed(node):
            return constant_name(self.reader.read(node))
        word, dtype = "TRY_CAST" if node.args.get("safe") else "CAST", data_type(node.args["to"])
        if pa.types.is_nested(dtype):
            return self.name(node.this)
        return f"{word}({self.name(node.this)} AS {name_of(dtype).upper()})"

    def minus(self, node: exp.Expr) -> str:
        inner = node.this
        if (moved := self.reader._cast_of_negative(inner)) is not None:
            return self.name(moved)
        if (isinstance(inner, exp.Literal) and not inner.is_string) or self.reader._is_suffixed(inner):
            found = self.reader.read(node)
            if not isinstance(found, Literal):
                return f"-{constant_name(self.reader.read(inner))}"
            return constant_name(found)
        return f"(- {self.name(inner)})"

    def negation(self, node: exp.Expr) -> str:
        inner = node.this
        if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null) and not node.meta.get("before"):
            return f"({self.name(inner.this)} IS NOT NULL)"
        return f"(NOT {self.name(inner)})"

    def is_(self, node: exp.Expr) -> str:
        if isinstance(node.expression, exp.Null):
            return f"({self.name(node.this)} IS NULL)"
        return f"({self.name(node.this)} <=> {self.name(node.expression)})"

    def differs(self, node: exp.Expr) -> str:
        op = "=" if isinstance(node, exp.NEQ) else "<=>"
        return f"(NOT ({self.name(node.this)} {op} {self.name(node.expression)}))"

    def between(self, node: exp.Expr) -> str:
        return f"between({self.names([node.this, node.args['low'], node.args['high']])})"

    def rlike(self, node: exp.Expr) -> str:
        return f"RLIKE({self.name(node.this)}, {self.name(node.expression)})"

    def joined(self, node: exp.Expr) -> str:
        return f"concat({self.name(node.this)}, {self.name(node.expression)})"

    def inverted(self, node: exp.Expr) -> str:
        return f"~{self.name(node.this)}"

    def case(self, node: exp.Expr) -> str:
        parts = []
        for branch in node.args["ifs"]:
            condition = self.name(branch.this)
            if node.this is not None:
                condition = f"({self.name(node.this)} = {condition})"
            parts.append(f"WHEN {condition} THEN {self.name(branch.args['true'])}")
        default = node.args.get("default")
        last = [] if default is None else [f"ELSE {self.name(default)}"]
        return " ".join(["CASE", *parts, *last, "END"])

    def if_(self, node: exp.Expr) -> str:
        return f"(IF({self.names([node.args[k] for k in ('this', 'true', 'false')])}))"

    def lambda_(self, node: exp.Expr) -> str:
        self.variables.append({p.name.lower() for p in node.expressions})
        try:
            return f"lambdafunction({', '.join([self.name(node.this), *map(self.name, node.expressions)])})"
        finally:
            self.variables.pop()

    def _is_variable(self, name: str) -> bool:
        return any(name.lower() in names for names in self.variables)

    def alias(self, node: exp.Expr) -> str:
        return f"{self.name(node.this)} AS {node.args['alias'].name}"

    def call(self, node: exp.Expr) -> str:
        name, parts = node.name.lower(), list(node.expressions)
        if name == "identifier" and len(parts) == 1:
            return self.context.identifier(self.reader.read(parts[0]))[-1]
        if "time_window" in node.meta:
            return name
        if name in CAST_FUNCTIONS and len(parts) == 1:
            return self.name(parts[0])
        if name in NESTED_NAMES:
            return NESTED_NAMES[name](name, [self.name(p) for p in parts])
        if (named := self._by_type(name, parts)) is not None:
            return named
        distinct = ""
        if len(parts) == 1 and isinstance(parts[0], exp.Distinct):
            distinct, parts = "DISTINCT ", list(parts[0].expressions)
        if len(parts) == 1 and isinstance(parts[0], exp.Star):
            return f"{name}(1)"
        if name in ("isnull", "isnotnull"):
            return f"({self.names(parts)} IS {'NOT ' if name == 'isnotnull' else ''}NULL)"
        if name == "log":
            return f"LOG({self.names(parts)})" if len(parts) == 2 else f"LOG(E(), {self.names(parts)})"
        if name in ("lag", "lead"):
            given = [self.name(p) for p in parts] + ["1", "NULL"][len(parts) - 1 :]
            return f"{name}({', '.join(given)})"
        if name in ("first", "last", "first_value", "last_value", "any_value"):
            parts = parts[:1]
        shown = name.upper() if name in UPPER else RENAMED.get(name, name)
        unit = [parts.pop(0).name] if name in UNITS_FIRST and len(parts) == 3 else []
        given = unit + [self.name(p) for p in parts]
        if (name, len(given)) in FORMS:
            return FORMS[name, len(given)].format(*given)
        if name in DEFAULTS and len(given) == DEFAULTS[name][1] - 1:
            given.append(DEFAULTS[name][0])
        return f"{'locate' if name == 'position_in' else shown}({distinct}{', '.join(given)})"

    def _by_type(self, name: str, parts: list[exp.Expr]) -> str | None:
        """The name of a call that Spark takes for another one, by the type of its first argument."""
        if len(parts) != 2 or name not in ("lpad", "rpad", "to_char", "to_varchar", "mode"):
            return None
        if name == "mode":
            ordered = self.name(parts[1]) == "true"
            return (
                f"mode() WITHIN GROUP (ORDER BY {self.name(parts[0])} DESC)"
                if ordered
                else f"mode({self.name(parts[0])})"
            )
        kind, given = family(self.reader.read(parts[0]).dtype), [self.name(p) for p in parts]
        if name in ("lpad", "rpad"):
            return f"{name}({given[0]}, {given[1]}, X'00')" if kind == "binary" else None
        if kind in ("date", "timestamp", "timestamp_ntz"):
            return f"date_format({given[0]}, {given[1]})"
        if kind != "binary":
            return None
        if name == "to_varchar":
            return f"to_varchar({given[0]}{f', {given[1]}' if given[1].lower() == 'utf-8' else ''})"
        word = given[1].lower()
        return f"decode({given[0]}, {given[1]})" if word == "utf-8" else f"{word}({given[0]})"

    def substring(self, node: exp.Expr) -> str:
        parts = [node.this, node.args.get("start"), node.args.get("length")]
        given = [self.name(p) for p in parts if p is not None]
        return f"substring({', '.join([*given, '2147483647'][:3])})"

    def position(self, node: exp.Expr) -> str:
        return f"locate({self.name(node.args['substr'])}, {self.name(node.this)}, 1)"

    def trim(self, node: exp.Expr) -> str:
        if node.args.get("expression") is None:
            sides = {"LEADING": "ltrim", "TRAILING": "rtrim"}
            return f"{sides.get(str(node.args.get('position') or ''), 'trim')}({self.name(node.this)})"
        side = node.args.get("position") or "BOTH"
        return f"TRIM({side} {self.name(node.expression)} FROM {self.name(node.this)})"

    def extract(self, node: exp.Expr) -> str:
        return f"extract({node.meta['word']} FROM {self.name(node.expression)})"

    def subquery(self, node: exp.Expr) -> str:
        return f"{'exists' if isinstance(node, exp.Exists) else 'scalarsubquery'}({self.outer_columns(node)})"

    def outer_columns(self, node: exp.Expr) -> str:
        """The columns of this query that a subquery names, each time it does."""
        found = self.reader.read(node)
        keys = {e.attribute.key: e.attribute.name for e in self.scope.entries}
        plans = found.plan.walk() if isinstance(found, SubqueryCall) else ()
        used = [n for p in plans for e in p.expressions for n in walk(e) if isinstance(n, Column)]
        return ", ".join(keys[n.path[0]] for n in used if n.path[0] in keys)

    def filtered(self, node: exp.Expr) -> str:
        return f"{self.name(node.this)} FILTER (WHERE {self.name(node.expression.this)})"

    def within(self, node: exp.Expr) -> str:
        keys = []
        if node.this.name.lower() == "mode":
            (key,) = node.expression.expressions  # Spark shows the direction in which it takes the values off
            return f"mode() WITHIN GROUP (ORDER BY {self.name(key.this)}{'' if key.args.get('desc') else ' DESC'})"
        for key in node.expression.expressions:
            words = [self.name(key.this)] + (["DESC"] if key.args.get("desc") else [])
            if node.this.name.lower() in ("listagg", "string_agg"):
                words = [words[0], "DESC" if key.args.get("desc") else "ASC"]
                words.append(f"NULLS {'FIRST' if key.args.get('nulls_first') else 'LAST'}")
            keys.append(" ".join(words))
        call = self.name(node.this)
        call = call.replace("string_agg(", "listagg(", 1) if call.startswith("string_agg(") else call
        return f"{call} WITHIN GROUP (ORDER BY {', '.join(keys)})"

    def interval(self, node: exp.Expr) -> str:
        return interval_name(self.reader.interval(node))

    def bracket(self, node: exp.Expr) -> str:
        (index,) = node.expressions
        if isinstance(index, exp.Literal) and index.is_string and not self.variables:
            base = self.reader.read(node.this).dtype
            if pa.types.is_struct(base) or pa.types.is_list(base):
                return f"{self.name(node.this)}.{self.name(index)}"
        return f"{self.name(node.this)}[{self.name(index)}]"

    def placeholder(self, node: exp.Expr) -> str:
        return constant_name(self.reader.read(node)) if node.args.get("this") else "?"

    def window(self, node: exp.Expr) -> str:
        inner = node.this.this if isinstance(node.this, exp.IgnoreNulls | exp.RespectNulls) else node.this
        function = self.name(inner)
        if isinstance(node.this, exp.IgnoreNulls):
            function = function.replace("first_value(", "first(", 1).replace("last_value(", "last(", 1)
        if node.args.get("alias") is not None:
            spec = self.windows[node.args["alias"].name.lower()].copy()
            spec.set("this", node.this.copy())
            node = spec
        name = inner.name.lower() if isinstance(inner, exp.Anonymous) else ""
        parts = []
        if node.args.get("partition_by"):
            parts.append(f"PARTITION BY {self.names(node.args['partition_by'])}")
        order = node.args.get("order")
        if order is not None:
            keys = []
            for key in order.expressions:
                direction = "DESC" if key.args.get("desc") else "ASC"
                nulls = "FIRST" if key.args.get("nulls_first") else "LAST"
                keys.append(f"{self.name(key.this)} {direction} NULLS {nulls}")
            parts.append("ORDER BY " + ", ".join(keys))
        parts.append(self._frame(node, name, ordered=order is not None))
        return f"{function} OVER ({' '.join(parts)})"

    def _converted(self, value: exp.Expr, node: exp.Expr) -> bool:
        """Is the bound of a RANGE a number of another type than the key?"""
        if isinstance(value, exp.Interval) or str(node.args["spec"].args["kind"]).upper() != "RANGE":
            return False
        key = self.reader.read(node.args["order"].expressions[0].this)
        return family(key.dtype) != "date" and self.reader.read(value).dtype != key.dtype

    def _frame(self, node: exp.Expr, name: str, *, ordered: bool) -> str:
        spec = node.args.get("spec")
        if name in ("lag", "lead"):
            inner = node.this.this if isinstance(node.this, exp.IgnoreNulls) else node.this
            offset = int(self.name(inner.expressions[1])) if len(inner.expressions) > 1 else 1
            signed = -offset if name == "lag" else offset
            return f"ROWS BETWEEN {signed} FOLLOWING AND {signed} FOLLOWING"
        if spec is None:
            if not ordered:
                return "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
            unit = "ROWS" if name in _ROW_FRAMES else "RANGE"
            return f"{unit} BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"

        def bound(which: str) -> str:
            value, side = spec.args.get(which), str(spec.args.get(f"{which}_side") or "").upper()
            if value is None:
                return "CURRENT ROW"
            if isinstance(value, str):
                return f"{value.upper()} {side}".strip()
            if side == "PRECEDING" and self._converted(value, node):
                return f"(- {self.name(value)}) FOLLOWING"
            return f"{self.name(value)} {side}"

        return f"{str(spec.args['kind']).upper()} BETWEEN {bound('start')} AND {bound('end')}"


_MAKERS: dict[type[exp.Expr], Callable[[_Namer, exp.Expr], str]] = {
    exp.Paren: _Namer.paren,
    exp.Tuple: row_name,
    exp.IgnoreNulls: _Namer.paren,
    exp.RespectNulls: _Namer.paren,
    exp.Column: _Namer.column,
    exp.Dot: _Namer.column,
    exp.Literal: _Namer.literal,
    exp.Null: _Namer.literal,
    exp.Boolean: _Namer.literal,
    exp.Cast: _Namer.cast,
    exp.TryCast: _Namer.cast,
    exp.Neg: _Namer.minus,
    exp.Not: _Namer.negation,
    exp.Is: _Namer.is_,
    exp.NEQ: _Namer.differs,
    exp.NullSafeNEQ: _Namer.differs,
    exp.In: membership_name,
    exp.Between: _Namer.between,
    exp.Like: like_name,
    exp.Escape: like_name,
    exp.ILike: like_name,
    exp.RegexpLike: _Namer.rlike,
    exp.DPipe: _Namer.joined,
    exp.BitwiseNot: _Namer.inverted,
    exp.Case: _Namer.case,
    exp.If: _Namer.if_,
    exp.Anonymous: _Namer.call,
    exp.Substring: _Namer.substring,
    exp.StrPosition: _Namer.position,
    exp.Trim: _Namer.trim,
    exp.Extract: _Namer.extract,
    exp.Subquery: _Namer.subquery,
    exp.Select: _Namer.subquery,
    exp.Exists: _Namer.subquery,
    exp.Filter: _Namer.filtered,
    exp.WithinGroup: _Namer.within,
    exp.Interval: _Namer.interval,
    exp.Bracket: _Namer.bracket,
    exp.Lambda: _Namer.lambda_,
    exp.Identifier: _Namer.column,
    exp.Alias: _Namer.alias,
    exp.Placeholder: _Namer.placeholder,
    exp.Window: _Namer.window,
}
