"""From the text to the typed tree: sqlglot parses, we resolve, type and refuse.

sqlglot is given no functions: each call stays a name with arguments, so its rewrites cannot change a meaning. Its
precedence is not quite Spark's (``||`` binds weaker than ``+``, chains of comparisons nest in another way), so wherever the
two could group a text differently, parentheses are demanded instead of guessed.

Invariants: a node kind without an entry in `READERS` is refused by name; so is a known kind with an argument
that its reader does not look at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, ClassVar, Protocol

import pyarrow as pa
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError, TokenError

from headwater.base.errors import ExpressionError
from headwater.sql import operators
from headwater.sql.casts import cast, try_cast
from headwater.sql.functions.catalogue import UNSTABLE, apply_function
from headwater.sql.lexis import Scanned, scan
from headwater.sql.literals import number_literal, text_literal
from headwater.sql.names import Scope
from headwater.sql.nodes import Literal, Node, Refused, call
from headwater.sql.types import BOOLEAN, DATE, NULL, TIMESTAMP, TIMESTAMP_NTZ, family

__all__ = ["Names", "Reader", "data_type", "kind_name", "parse_text", "resolve"]


class Names(Protocol):
    """What a reader asks of the place an expression stands in."""

    def has(self, name: str) -> bool: ...

    def column(self, parts: tuple[str, ...]) -> Node: ...


_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
_PREDICATES = (*_COMPARISONS, exp.NullSafeNEQ, exp.Is, exp.In, exp.Between, exp.Like, exp.Escape)
_LOGIC = (exp.And, exp.Or, exp.Not)
_BITS: dict[type[exp.Expr], str] = {exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^"}
_TERMS = (exp.Add, exp.Sub)
_TYPES = {
    "BOOLEAN": BOOLEAN,
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "TEXT": pa.string(),
    "VARCHAR": pa.string(),
    "BINARY": pa.binary(),
    "DATE": DATE,
    "TIMESTAMPTZ": TIMESTAMP,
    "TIMESTAMPLTZ": TIMESTAMP,
    "TIMESTAMPNTZ": TIMESTAMP_NTZ,
}
# Calls with words between their arguments: CAST(x AS t), EXTRACT(year FROM x).
_OWN_GRAMMAR = ("CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM", "TRY_CAST")
_SIZED_TEXT = re.compile(r"\bAS\s+((?:VAR)?CHAR(?:ACTER)?\b)", re.IGNORECASE)
_UNARY_PLUS = re.compile(
    r"(?:^|[(,=<>+\-*/%|!]|\b(?:AND|OR|NOT|IN|LIKE|BETWEEN|WHEN|THEN|ELSE|CASE|IS|DIV))\s*\+", re.IGNORECASE
)


@lru_cache(maxsize=1)
def _dialect() -> Spark:
    class Parser(Spark.Parser):  # type: ignore[misc, valid-type, unused-ignore]
        FUNCTIONS: dict[str, Any] = {}  # noqa: RUF012
        FUNCTION_PARSERS = {name: Spark.Parser.FUNCTION_PARSERS[name] for name in _OWN_GRAMMAR}  # noqa: RUF012
        NO_PAREN_FUNCTIONS: dict[Any, Any] = {}  # noqa: RUF012

    class Expressions(Spark):
        pass

    Expressions.Parser = Parser  # type: ignore[attr-defined, unused-ignore]
    Expressions.parser_class = Parser
    return Expressions()


def resolve(text: str, scope: Scope) -> Node:
    """The typed tree of one expression."""
    scanned = scan(text)
    if not scanned.sql.strip():
        raise ExpressionError.syntax(text, "the expression is empty")
    try:
        return Reader(scanned, scope).read(parse_text(text, scanned))
    except Refused as refused:
        raise ExpressionError.not_known(text, refused.what, refused.hint) from None
    except RecursionError:
        raise ExpressionError.not_known(text, "an expression nested this deep", "split it in several") from None


def parse_text(text: str, scanned: Scanned) -> exp.Expr:
    if unary := _UNARY_PLUS.search(scanned.sql):
        raise ExpressionError.syntax(text, "a `+` needs a value on its left", scanned.original(unary.end() - 1))
    if sized := _SIZED_TEXT.search(scanned.sql):
        # sqlglot reads varchar(n) as plain text and so loses the limit.
        raise ExpressionError.syntax(text, "cast to string, without a length", scanned.original(sized.start(1)))
    try:
        parsed = _dialect().parse(scanned.sql)
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
    return parsed[0]


def _why(detail: Mapping[str, Any]) -> str:
    if "Required keyword" in str(detail["description"]):
        return "something is missing after this"
    if str(detail["description"]).startswith("Expecting"):
        return str(detail["description"]).replace("Expecting", "expected") + " after this"
    return "this is not expected here"


class Reader:
    """One expression's walk: ``scanned`` holds its texts, ``scope`` its columns."""

    READERS: ClassVar[dict[type[exp.Expr], Callable[[Any, Any], Node]]] = {}

    def __init__(self, scanned: Scanned, scope: Names) -> None:
        self.texts = scanned.texts
        self.casts = re.search(r"\bcast\s*\(", scanned.sql, re.IGNORECASE) is not None
        self.scope = scope

    def read(self, node: exp.Expr) -> Node:
        kind = type(node)
        if kind in _COMPARISONS:
            return operators.compare(_COMPARISONS[kind], *self._sides(node, _PREDICATES + _LOGIC))
        if kind in _ARITHMETIC:
            return operators.arithmetic(
                _ARITHMETIC[kind], *self._sides(node, (*_PREDICATES, *_LOGIC, exp.DPipe, *_BITS))
            )
        reader = self.READERS.get(kind)
        if reader is None:
            raise Refused(f"`{kind_name(node)}`", _HINTS.get(kind, _PLAIN_HINT))
        return reader(self, node)

    def _args(self, node: exp.Expr, *known: str) -> None:
        strange = [k for k, v in node.args.items() if v and k not in known]
        if strange:
            raise Refused(f"`{kind_name(node)}` with {', '.join(strange)}", "write the plain form")

    def _operand(self, node: exp.Expr | None, barred: tuple[type[exp.Expr], ...]) -> Node:
        if node is None:
            raise Refused("a missing operand", "complete the expression")
        if isinstance(node, barred):
            raise Refused(f"`{kind_name(node)}` inside another operator without parentheses", "add parentheses")
        return self.read(node)

    def _sides(self, node: exp.Expr, barred: tuple[type[exp.Expr], ...]) -> tuple[Node, Node]:
        self._args(node, "this", "expression", "typed", "safe")
        return self._operand(node.args.get("this"), barred), self._operand(node.args.get("expression"), barred)

    def paren(self, node: exp.Expr) -> Node:
        self._args(node, "this")
        return self.read(node.this)

    def column(self, node: exp.Expr) -> Node:
        parts: list[str] = []
        while isinstance(node, exp.Dot):
            if not isinstance(node.expression, exp.Identifier):
                raise Refused("a function of a schema", "call functions by their plain name")
            parts.insert(0, node.expression.this)
            node = node.this
        if parts and isinstance(node, exp.Anonymous | exp.Paren | exp.Bracket):
            return self._fields(self.read(node), parts)
        if not isinstance(node, exp.Column) or not all(isinstance(p, exp.Identifier) for p in node.parts):
            raise Refused(f"`{kind_name(node)}`", "name columns as a, t.a or a.field")
        self._args(node, "this", "table", "db", "catalog")
        parts = [p.name for p in node.parts] + parts
        bare_word = len(parts) == 1 and not node.this.args.get("quoted")
        if bare_word and parts[0].lower() in UNSTABLE and not self.scope.has(parts[0]):
            return apply_function(parts[0], [])
        return self.scope.column(tuple(parts))

    @staticmethod
    def _fields(node: Node, names: list[str]) -> Node:
        for name in names:
            stored = node.dtype
            found = [f for f in stored if f.name.lower() == name.lower()] if pa.types.is_struct(stored) else []
            if len(found) != 1:
                raise Refused(f"the field `{name}`", "name a field of a struct")
            node = call("field", (node, text_literal(found[0].name)), found[0].type)
        return node

    def literal(self, node: exp.Expr) -> Node:
        if not node.args.get("is_string"):
            return number_literal(node.this)
        value = self.texts.get(node.this)
        if value is None:
            raise Refused(f"the literal {node.this!r}", "write decimals as 1.5 or CAST('1.5' AS DECIMAL(2,1))")
        return Literal(value, pa.binary()) if isinstance(value, bytes) else text_literal(value)

    def null(self, node: exp.Expr) -> Node:
        return Literal(None, NULL)

    def boolean(self, node: exp.Expr) -> Node:
        return Literal(bool(node.this), BOOLEAN)

    def minus(self, node: exp.Expr) -> Node:
        self._args(node, "this")
        inner = node.this
        if isinstance(inner, exp.Literal) and not inner.is_string:
            return number_literal(inner.this, negative=True)
        if self._is_suffixed(inner):
            return self._suffixed(inner, negative=True)
        return operators.minus(self._operand(inner, (exp.Binary, *_PREDICATES, *_LOGIC)))

    def logic(self, node: exp.Expr) -> Node:
        kind, op = type(node), "and" if isinstance(node, exp.And) else "or"
        parts: list[exp.Expr] = []
        current = node
        while type(current) is kind:  # left-deep, so that a thousand parts are a loop and not a recursion
            self._args(current, "this", "expression")
            parts.append(current.expression)
            current = current.this
        parts.append(current)
        return operators.logic(op, [self.read(p) for p in reversed(parts)])

    def negation(self, node: exp.Expr) -> Node:
        self._args(node, "this")
        return operators.negate(self._operand(node.this, (exp.And, exp.Or)))

    def is_(self, node: exp.Expr) -> Node:
        self._args(node, "this", "expression")
        value = self._operand(node.this, _PREDICATES + _LOGIC)
        if isinstance(node.expression, exp.Null):
            return operators.is_null(value)
        if isinstance(node.expression, exp.Boolean):
            return operators.compare("<=>", value, self.boolean(node.expression))
        raise Refused(f"`IS {node.expression.sql()}`", "use IS NULL, IS TRUE or IS FALSE")

    def distinct_from(self, node: exp.Expr) -> Node:
        return operators.negate(operators.compare("<=>", *self._sides(node, _PREDICATES + _LOGIC)))

    def contains(self, node: exp.Expr) -> Node:
        if node.args.get("query"):
            raise Refused("`subquery`", _HINTS[exp.Subquery])
        self._args(node, "this", "expressions")
        items = [self._operand(i, (exp.Tuple,)) for i in node.expressions]
        if not items:
            raise Refused("IN without values", "list at least one value")
        return operators.contains(self._operand(node.this, _PREDICATES + _LOGIC), items)

    def between(self, node: exp.Expr) -> Node:
        self._args(node, "this", "low", "high")
        bounds = (node.this, node.args["low"], node.args["high"])
        return operators.between(*(self._operand(n, _PREDICATES + _LOGIC) for n in bounds))

    def like(self, node: exp.Expr) -> Node:
        escape = "\\"
        if isinstance(node, exp.Escape):
            self._args(node, "this", "expression")
            mark = self.read(node.expression)
            if not isinstance(node.this, exp.Like) or not isinstance(mark, Literal) or not isinstance(mark.value, str):
                raise Refused("this ESCAPE", "write LIKE 'pattern' ESCAPE '/'")
            node, escape = node.this, mark.value
        self._args(node, "this", "expression", "negate")
        sides = [self._operand(n, _PREDICATES + _LOGIC) for n in (node.this, node.expression)]
        found = operators.like(sides[0], sides[1], escape)
        return operators.negate(found) if node.args.get("negate") else found

    def joined(self, node: exp.Expr) -> Node:
        parts = self._sides(node, (*_PREDICATES, *_LOGIC, *_TERMS))
        return apply_function("concat", parts)

    def case(self, node: exp.Expr) -> Node:
        self._args(node, "this", "ifs", "default")
        subject = self.read(node.this) if node.this else None
        branches = []
        for branch in node.args["ifs"]:
            condition = self.read(branch.this)
            if subject is not None:
                condition = operators.compare("=", subject, condition)
            branches.append((condition, self.read(branch.args["true"])))
        default = node.args.get("default")
        return operators.cases(branches, self.read(default) if default is not None else None)

    def if_(self, node: exp.Expr) -> Node:
        self._args(node, "this", "true", "false")
        parts = [node.args.get(k) for k in ("this", "true", "false")]
        return apply_function("if", [self.read(p) for p in parts if p is not None])

    def substring(self, node: exp.Expr) -> Node:
        self._args(node, "this", "start", "length")
        parts = [node.this, node.args.get("start"), node.args.get("length")]
        return apply_function("substring", [self.read(p) for p in parts if p is not None])

    def position(self, node: exp.Expr) -> Node:
        self._args(node, "this", "substr")
        return apply_function("position", [self.read(node.args["substr"]), self.read(node.this)])

    def trim(self, node: exp.Expr) -> Node:
        self._args(node, "this", "position", "expression")
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or ""), "trim")
        parts = [node.this] if node.args.get("expression") is None else [node.this, node.expression]
        return apply_function(f"{name} of" if len(parts) == 2 else name, [self.read(p) for p in parts])

    def extract(self, node: exp.Expr) -> Node:
        self._args(node, "this", "expression")
        return apply_function("date_part", [text_literal(node.this.name), self.read(node.expression)])

    def matches(self, node: exp.Expr) -> Node:
        self._args(node, "this", "expression")
        return apply_function("rlike", [self._operand(n, _PREDICATES + _LOGIC) for n in (node.this, node.expression)])

    def whole_quotient(self, node: exp.Expr) -> Node:
        return operators.whole_quotient(*self._sides(node, (*_PREDICATES, *_LOGIC, exp.DPipe, *_BITS)))

    def bits(self, node: exp.Expr) -> Node:
        # Spark's precedence of & ^ | is not sqlglot's, so each operand stands alone.
        sides = self._sides(node, (*_PREDICATES, *_LOGIC, exp.DPipe, exp.Binary))
        return apply_function(_BITS[type(node)], sides)

    def inverted(self, node: exp.Expr) -> Node:
        self._args(node, "this")
        return apply_function("~", [self._operand(node.this, (exp.Binary, *_PREDICATES, *_LOGIC))])

    def item(self, node: exp.Expr) -> Node:
        self._args(node, "this", "expressions")
        if len(node.expressions) != 1:
            raise Refused("`[…]` with several indices", "write xs[0]")
        return apply_function("[]", [self.read(node.this), self.read(node.expressions[0])])

    def call(self, node: exp.Expr) -> Node:
        self._args(node, "this", "expressions")
        if any(isinstance(a, exp.Star) for a in node.expressions):
            return apply_function(node.name, [])
        return apply_function(node.name, [self.read(a) for a in node.expressions])

    def cast(self, node: exp.Expr) -> Node:
        self._args(node, "this", "to", "_type", "safe")
        if node.args.get("safe"):
            return try_cast(self.read(node.this), data_type(node.args["to"]))
        if self._is_suffixed(node):
            return self._suffixed(node, negative=False)
        if type(node) is exp.Cast:
            dtype = data_type(node.args["to"])
            if family(dtype) not in ("date", "timestamp", "timestamp_ntz"):
                raise Refused("this typed literal", "write CAST('…' AS type)")
            return cast(self.read(node.this), dtype)
        return cast(self.read(node.this), data_type(node.args["to"]))

    def _suffixed(self, node: exp.Expr, *, negative: bool) -> Node:
        """``-128Y``, ``1.5D``, ``2.5BD``: sqlglot shows a suffix as a cast of the number."""
        if negative and self.casts:
            # -128Y is a number, -CAST(128 AS TINYINT) an overflow, and here they look the same.
            return operators.minus(self._suffixed(node, negative=False))
        return cast(number_literal(node.this.this, negative=negative), data_type(node.args["to"]))

    def _is_suffixed(self, node: exp.Expr) -> bool:
        inner = node.this
        return (
            isinstance(node, exp.TryCast)
            and not node.args.get("safe")
            and isinstance(inner, exp.Literal)
            and inner.this not in self.texts
        )


def data_type(node: exp.Expr) -> pa.DataType:
    kind = node.this if isinstance(node, exp.DataType) else node
    name = str(getattr(kind, "value", kind))
    params = [p.this.this for p in node.expressions if isinstance(p, exp.DataTypeParam)]
    if name == "DECIMAL" and all(str(p).isdecimal() for p in params) and len(params) <= 2:
        precision, scale = (*map(int, params), *(10, 0)[len(params) :])
        if not 1 <= precision <= 38 or not 0 <= scale <= precision:
            raise Refused(f"the type decimal({precision},{scale})", "a decimal has 1 to 38 digits")
        return pa.decimal128(precision, scale)
    if node.expressions or name not in _TYPES:
        raise Refused(f"a cast to {name.lower()}", "cast to a plain type: int, bigint, double, decimal, string, date")
    return _TYPES[name]


_PLAIN_HINT = "use comparisons, AND, OR, NOT, arithmetic, CASE and functions such as coalesce"
_ONE_ROW = "an expression sees one row at a time: join first, or use lake.sql"
_HINTS: dict[type[exp.Expr], str] = {
    exp.Subquery: _ONE_ROW,
    exp.Select: _ONE_ROW,
    exp.Exists: _ONE_ROW,
    exp.Window: _ONE_ROW,
    exp.RegexpLike: "use LIKE 'a%', or run the statement on Spark",
    exp.ILike: "compare lower(x) with a lower-case pattern",
    exp.IntDiv: "write CAST(a / b AS BIGINT) if the numbers are small",
    exp.Array: "write element_at(array(a, b), 1): the parser loses what stands before [ ] here",
    exp.Alias: "give the expression alone, without AS",
    exp.Interval: "use date_add and date_sub",
}


def kind_name(node: exp.Expr) -> str:
    if isinstance(node, exp.Select | exp.Subquery | exp.Union | exp.Exists):
        return "subquery"
    if isinstance(node, exp.Window):
        return "window function"
    if isinstance(node, exp.RegexpLike):
        return "RLIKE"
    return type(node).__name__.upper()


Reader.READERS.update(
    {
        exp.Paren: Reader.paren,
        exp.Column: Reader.column,
        exp.Dot: Reader.column,
        exp.Literal: Reader.literal,
        exp.Null: Reader.null,
        exp.Boolean: Reader.boolean,
        exp.Neg: Reader.minus,
        exp.And: Reader.logic,
        exp.Or: Reader.logic,
        exp.Not: Reader.negation,
        exp.Is: Reader.is_,
        exp.NullSafeNEQ: Reader.distinct_from,
        exp.In: Reader.contains,
        exp.Between: Reader.between,
        exp.Like: Reader.like,
        exp.Escape: Reader.like,
        exp.DPipe: Reader.joined,
        exp.Case: Reader.case,
        exp.If: Reader.if_,
        exp.Substring: Reader.substring,
        exp.StrPosition: Reader.position,
        exp.Trim: Reader.trim,
        exp.RegexpLike: Reader.matches,
        exp.IntDiv: Reader.whole_quotient,
        exp.BitwiseAnd: Reader.bits,
        exp.BitwiseOr: Reader.bits,
        exp.BitwiseXor: Reader.bits,
        exp.BitwiseNot: Reader.inverted,
        exp.Bracket: Reader.item,
        exp.Extract: Reader.extract,
        exp.Anonymous: Reader.call,
        exp.Cast: Reader.cast,
        exp.TryCast: Reader.cast,
    }
)
