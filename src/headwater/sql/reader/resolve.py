"""From the text to the typed tree: sqlglot parses, we resolve, type and refuse.

The parser is `grammar`'s, operators are read by `operator_readers`; here stand names, constants, calls, casts and
lambdas. A lambda is read by the function it is given to, because only that knows the types of its parameters.

Invariants: a node kind without an entry in `READERS` is refused by name; so is a known kind with an argument
that its reader does not look at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

import pyarrow as pa
from sqlglot import exp

from headwater.base.errors import Action, ExpressionError, Hint, NotFoundError
from headwater.sql import operators
from headwater.sql.calls import apply_function
from headwater.sql.casts import cast, try_cast
from headwater.sql.functions.catalogue import FUNCTIONS, UNIT_FIRST
from headwater.sql.functions.struct import field_of
from headwater.sql.grammar import data_type, parse_text
from headwater.sql.interval_types import IntervalType
from headwater.sql.intervals.constants import Interval, constant_interval, interval_literal
from headwater.sql.intervals.lowering import lowered_node
from headwater.sql.lexis import Scanned, scan
from headwater.sql.literals import number_literal, text_literal, time_literal
from headwater.sql.nodes import Literal, Node, Refused, Unbound, Wrong
from headwater.sql.reader.clauses import name_of_kind
from headwater.sql.reader.context import Parameters, constant
from headwater.sql.reader.names import Scope
from headwater.sql.reader.operator_readers import ARITHMETIC, BITS, COMPARISONS, OperatorReaders
from headwater.sql.types import BOOLEAN, NULL, STRING, family, has_void, name_of

__all__ = ["BY_UNITS", "Names", "Reader", "data_type", "parse_text", "quoted_constant", "resolve"]


class Names(Protocol):
    """What a reader asks of the place an expression stands in."""

    def has(self, name: str) -> bool: ...

    def column(self, parts: tuple[str, ...]) -> Node: ...


# Functions that are called without parentheses.
_BARE = {"current_date", "current_timestamp", "current_time", "current_user", "user", "session_user"}
# Other names of functions whose first argument is a unit.
BY_UNITS = {"date_add": "timestampadd", "timediff": "timestampdiff"}
_PLAIN_HINT = "use comparisons, AND, OR, NOT, arithmetic, CASE and functions such as coalesce"
_ONE_ROW = Action("query_instead")
HINTS: dict[type[exp.Expr], Hint] = {
    exp.Subquery: _ONE_ROW,
    exp.Select: _ONE_ROW,
    exp.Exists: _ONE_ROW,
    exp.Window: _ONE_ROW,
    exp.RegexpLike: "use LIKE 'a%', or run the statement on Spark",
    exp.IntDiv: "write CAST(a / b AS BIGINT) if the numbers are small",
    exp.Lambda: "lambdas are arguments of transform, filter, aggregate and the like",
    exp.Alias: "give the expression alone, without AS",
    exp.Var: "write a value, or a name in `backticks`",
    exp.Kwarg: "give the arguments in their order, without names",
    exp.Collate: "compare lower(x) or upper(x) where case does not matter",
    exp.Aliases: "call the function by its name",
}

# What no Spark takes.
_FOREIGN: dict[type[exp.Expr], str] = {
    exp.Array: "write array(1, 2)",
    exp.All: "write a > (SELECT max(b) FROM …), or NOT IN (SELECT …) for <> ALL",
    exp.Any: "write IN (SELECT …) for = ANY, or EXISTS (SELECT …)",
    exp.AtTimeZone: "use from_utc_timestamp and to_utc_timestamp",
    exp.HexString: "write the number in decimal digits",
    exp.JSONExtractScalar: "use get_json_object",
    exp.Parameter: "write parameters as :name or ?",
    exp.Slice: "use slice(xs, 1, 2)",
}


def resolve(text: str, scope: Scope, parameters: Parameters = ()) -> Node:
    """The typed tree of one expression; ``parameters`` holds the values of its ``:name`` or ``?``."""
    scanned = scan(text)
    if not scanned.sql.strip():
        raise ExpressionError.syntax(text, "the expression is empty")
    try:
        node = _Placing(scanned, scope, parameters).read(parse_text(text, scanned))
        if node.dtype != NULL and has_void(node.dtype):
            raise Refused(f"a value of type {name_of(node.dtype)}", "cast the array to its type")
        return lowered_node(node)
    except Wrong as wrong:
        raise ExpressionError.wrong(text, wrong.what, wrong.hint, wrong.position) from None
    except Refused as refused:
        raise ExpressionError.not_known(text, refused.what, refused.hint, refused.position) from None
    except NotFoundError as error:
        raise error if error.position is None else error.placed_at(text, error.position) from None
    except RecursionError:
        raise ExpressionError.not_known(text, "an expression nested this deep", "split it in several") from None


class Reader(OperatorReaders):
    """One expression's walk: ``scanned`` holds its texts, ``scope`` its columns."""

    READERS: ClassVar[dict[type[exp.Expr], Callable[[Any, Any], Node]]] = {}

    def __init__(self, scanned: Scanned, scope: Names, parameters: Parameters = ()) -> None:
        self.texts, self.pieced = scanned.texts, scanned.pieced
        self.scope = scope
        self.variables: list[dict[str, Node]] = []
        self.parameters = parameters

    def read(self, node: exp.Expr) -> Node:
        kind = type(node)
        if kind in COMPARISONS:
            return operators.compare(COMPARISONS[kind], *self._sides(node))
        if kind in ARITHMETIC:
            return operators.arithmetic(ARITHMETIC[kind], *self._sides(node))
        reader = self.READERS.get(kind)
        if reader is None and kind in _FOREIGN:
            raise Wrong(f"`{name_of_kind(node)}` is not Spark SQL", _FOREIGN[kind])
        if reader is None:
            raise Refused(f"`{name_of_kind(node)}`", HINTS.get(kind, _PLAIN_HINT))
        return reader(self, node)

    def paren(self, node: exp.Expr) -> Node:
        self._args(node, "this")
        return self.read(node.this)

    def row(self, node: exp.Expr) -> Node:
        """``(a, b)``: a struct, named as struct(a, b) names it."""
        self._args(node, "expressions")
        if len(node.expressions) < 2:
            raise Wrong("a row in parentheses needs two values", "write (a, b)", part=node)
        return apply_function("named_struct", self._labelled(node.expressions, "col", 1))

    def column(self, node: exp.Expr) -> Node:
        parts: list[str] = []
        while isinstance(node, exp.Dot):
            if not isinstance(node.expression, exp.Identifier):
                raise Refused("a function of a schema", "call functions by their plain name")
            parts.insert(0, node.expression.this)
            node = node.this
        if parts and isinstance(node, exp.Anonymous | exp.Paren | exp.Bracket | exp.Tuple):
            return self._fields(self.read(node), parts)
        if isinstance(node, exp.Identifier):
            parts = [node.name, *parts]
        elif isinstance(node, exp.Column) and all(isinstance(p, exp.Identifier) for p in node.parts):
            self._args(node, "this", "table", "db", "catalog")
            parts = [p.name for p in node.parts] + parts
        else:
            raise Refused(f"`{name_of_kind(node)}`", "name columns as a, t.a or a.field")
        variable = self._variable(parts[0])
        if variable is not None:
            return self._fields(variable, parts[1:])
        bare_word = len(parts) == 1 and isinstance(node, exp.Column) and not node.this.args.get("quoted")
        if bare_word and parts[0].lower() in _BARE and not self.scope.has(parts[0]):
            return apply_function(parts[0], [])
        return self.scope.column(tuple(parts))

    def _variable(self, name: str) -> Node | None:
        """What a name means inside a lambda: its parameters come before all columns, the innermost first."""
        return next((v[name.lower()] for v in reversed(self.variables) if name.lower() in v), None)

    def _fields(self, node: Node, names: list[str]) -> Node:
        for name in names:
            if self.variables and pa.types.is_map(node.dtype):
                raise Refused("a key behind a point inside a lambda", f"write x['{name}']")
            node = field_of(node, name)
        return node

    def literal(self, node: exp.Expr) -> Node:
        if not node.args.get("is_string"):
            return number_literal(node.this)
        value = self.texts.get(node.this)
        if value is None:
            raise Refused(f"the literal {node.this!r}", "write decimals as 1.5 or CAST('1.5' AS DECIMAL(2,1))")
        return Literal(value, pa.binary()) if isinstance(value, bytes) else text_literal(value)

    def placeholder(self, node: exp.Expr) -> Node:
        name = str(node.name) if node.args.get("this") else None
        place = int(node.meta["number"]) if name is None else 0
        if name is not None and isinstance(self.parameters, Mapping) and name in self.parameters:
            return constant(self.parameters[name], f":{name}")
        if name is None and not isinstance(self.parameters, Mapping) and place < len(self.parameters):
            return constant(self.parameters[place], f"? number {place + 1}")
        raise Refused(f"the parameter {'?' if name is None else ':' + name} without a value", "pass its value")

    def null(self, node: exp.Expr) -> Node:
        return Literal(None, NULL)

    def boolean(self, node: exp.Expr) -> Node:
        return Literal(bool(node.this), BOOLEAN)

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

    def item(self, node: exp.Expr) -> Node:
        self._args(node, "this", "expressions")
        if len(node.expressions) != 1:
            raise Wrong("`[…]` takes one index", "write xs[0]")
        value, index = self.read(node.this), self.read(node.expressions[0])
        if self.variables and index.dtype == STRING and not pa.types.is_map(value.dtype):
            raise Refused("a field in brackets inside a lambda", "write x.field")
        return apply_function("[]", [value, index])

    def call(self, node: exp.Expr) -> Node:
        self._args(node, "this", "expressions")
        if any(isinstance(a, exp.Star) for a in node.expressions):
            return apply_function(node.name, [])
        name = node.name.lower()
        if name in ("struct", "arrays_zip"):
            first = ("col", 1) if name == "struct" else ("", 0)
            named = self._labelled(node.expressions, *first)
            return apply_function("named_struct" if name == "struct" else name, named)
        if name == "ilike" and len(node.expressions) == 2:
            return self.like(exp.ILike(this=node.expressions[0], expression=node.expressions[1]))
        args, unit = list(node.expressions), []
        name = BY_UNITS.get(name, name) if len(args) == 3 else name
        if name in UNIT_FIRST and len(args) == 3 and isinstance(args[0], exp.Column) and not args[0].table:
            unit = [text_literal(args.pop(0).name)]
        return apply_function(name, [*unit, *(self._argument(name, a) for a in args)])

    def _argument(self, function: str, node: exp.Expr) -> Any:
        if isinstance(node, exp.Lambda):
            if function not in FUNCTIONS or not FUNCTIONS[function].lambdas:
                raise Wrong(
                    f"a lambda cannot stand in {function}()",
                    "lambdas are for transform, filter, aggregate and the like",
                )
            return self._unbound(node)
        if isinstance(node, exp.Interval) and function == "sequence":
            return Literal(self._interval(node), pa.month_day_nano_interval())
        return self.read(node)

    def interval(self, node: exp.Expr) -> Literal:
        """``INTERVAL '3' DAY``, ``INTERVAL '1 02' DAY TO HOUR``, ``INTERVAL '1 day 2 hours'``."""
        self._args(node, "this", "unit")
        amount, unit = node.this, node.args.get("unit")
        if isinstance(amount, exp.Anonymous) and amount.name == "positive" and amount.meta.get("sign"):
            amount = amount.expressions[0]
        negative = isinstance(amount, exp.Neg)
        amount = amount.this if negative else amount
        text = self.texts.get(amount.this, amount.this) if isinstance(amount, exp.Literal) else None
        ends = (unit.this, unit.expression) if isinstance(unit, exp.IntervalSpan) else (unit,)
        if not isinstance(text, str) or not all(e is None or isinstance(e, exp.Var) for e in ends):
            raise Refused("this interval", "write INTERVAL '3' MONTH, of one unit and a whole number")
        found = interval_literal(text, *(None if e is None else e.name for e in ends))
        assert isinstance(found.value, int)
        return Literal(-found.value, found.dtype) if negative else found

    def _interval(self, node: exp.Expr) -> Interval:
        found = self.interval(node)
        assert isinstance(found.value, int) and isinstance(found.dtype, IntervalType)
        return constant_interval(found.value, found.dtype)

    def _unbound(self, node: exp.Expr) -> Unbound:
        """A lambda whose parameters have no types yet; the function it is given to will bind them."""
        self._args(node, "this", "expressions")
        names = [p.name for p in node.expressions if isinstance(p, exp.Identifier)]
        if len({n.lower() for n in names}) != len(node.expressions):
            raise Wrong("a lambda has two parameters of one name", "give each parameter its own name")
        depth = len(self.variables)

        def read(values: Sequence[Node]) -> Node:
            self.variables.append({n.lower(): v for n, v in zip(names, values, strict=True)})
            try:
                return self._lambda_body(node.this)
            finally:
                self.variables.pop()

        def spelled(name: str) -> str:
            shown = f"{name} {depth}"
            while self.scope.has(shown):
                shown += "_"
            return shown

        return Unbound(tuple(map(spelled, names)), read)

    def _lambda_body(self, node: exp.Expr) -> Node:
        return self.read(node)

    def _labelled(self, nodes: Sequence[exp.Expr], prefix: str, first: int) -> list[Node]:
        """Values after their names: an alias, the last part of a column's name, or the place it stands at."""
        out: list[Node] = []
        for at, node in enumerate(nodes):
            label, inner = f"{prefix}{first + at}", node
            if isinstance(node, exp.Alias):
                self._args(node, "this", "alias")
                label, inner = str(node.args["alias"].name), node.this
                if label in self.texts:
                    raise Wrong("a text stands in the place of a name", "write names bare or in `backticks`")
            elif isinstance(node, exp.Column | exp.Identifier):
                label = str(node.name)
            elif isinstance(node, exp.Dot):
                label = str(node.expression.name)
            out += [text_literal(label), self.read(inner)]
        return out

    def cast(self, node: exp.Expr) -> Node:
        self._args(node, "this", "to", "_type", "safe")
        if node.args.get("safe"):
            return try_cast(self.read(node.this), data_type(node.args["to"]))
        if self._is_suffixed(node):
            return self._suffixed(node, negative=False)
        if type(node) is exp.Cast and node.args["to"].this == exp.DataType.Type.TIME:
            return time_literal(self.read(node.this))
        if type(node) is exp.Cast:
            dtype = data_type(node.args["to"])
            if node.this.name in self.pieced:
                raise Wrong("a typed literal has one string behind its type", "write it in one piece")
            if family(dtype) not in ("date", "timestamp", "timestamp_ntz"):
                raise Wrong("there is no typed literal of this type", "write CAST('…' AS type)")
            return cast(self.read(node.this), dtype)
        return cast(self.read(node.this), data_type(node.args["to"]))

    def _suffixed(self, node: exp.Expr, *, negative: bool) -> Node:
        """``-128Y``, ``1.5D``, ``2.5BD``: sqlglot shows a suffix as a cast of the number."""
        return cast(number_literal(node.this.this, negative=negative), data_type(node.args["to"]))

    def _is_suffixed(self, node: exp.Expr) -> bool:
        return bool(node.meta.get("suffix"))


Reader.READERS.update(
    {
        exp.Paren: Reader.paren,
        exp.Tuple: Reader.row,
        exp.Column: Reader.column,
        exp.Dot: Reader.column,
        exp.Identifier: Reader.column,
        exp.Interval: Reader.interval,
        exp.Literal: Reader.literal,
        exp.Placeholder: Reader.placeholder,
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
        exp.ILike: Reader.like,
        exp.DPipe: Reader.joined,
        exp.Case: Reader.case,
        exp.If: Reader.if_,
        exp.Substring: Reader.substring,
        exp.StrPosition: Reader.position,
        exp.Trim: Reader.trim,
        exp.RegexpLike: Reader.matches,
        exp.IntDiv: Reader.whole_quotient,
        exp.BitwiseNot: Reader.inverted,
        exp.Bracket: Reader.item,
        exp.Extract: Reader.extract,
        exp.Anonymous: Reader.call,
        exp.Cast: Reader.cast,
        exp.TryCast: Reader.cast,
    }
)


Reader.READERS.update(dict.fromkeys(BITS, Reader.bits))


def quoted_constant(node: exp.Expr, what: str, texts: Mapping[str, str | bytes]) -> exp.Expr:
    """The one constant below ``node`` that an error quotes: it is at fault, and not what it is an argument of."""
    found = []
    for literal in node.find_all(exp.Literal):
        value = texts.get(literal.this) if literal.is_string else None
        quoted = isinstance(value, str) and value != "" and repr(value) in what
        if quoted or (not literal.is_string and what.startswith(f"{literal.this} as ")):
            found.append(literal)
    return found[0] if len(found) == 1 else node


class _Placing(Reader):
    """A reader whose errors say where in the text they arose."""

    def __init__(self, scanned: Scanned, scope: Names, parameters: Parameters = ()) -> None:
        super().__init__(scanned, scope, parameters)
        self.scanned = scanned

    def read(self, node: exp.Expr) -> Node:
        try:
            return super().read(node)
        except (Refused, NotFoundError) as error:
            if error.position is None:
                part = node
                if isinstance(error, Refused):
                    part = error.part if isinstance(error.part, exp.Expr) else node
                    part = quoted_constant(part, error.what, self.texts)
                starts = [n.meta["start"] for n in part.walk() if "start" in n.meta]
                error.position = self.scanned.original(min(starts)) if starts else None
            raise
