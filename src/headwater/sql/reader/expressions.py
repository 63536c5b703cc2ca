"""Expressions inside a query: those of one row, and aggregates, windows, subqueries and parameters.

An aggregate becomes an `AggregateCall` where it stands; `select` takes them out of the tree later. Where aggregates or
windows have no place (WHERE, ON, inside another aggregate) they are refused here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pyarrow as pa
from sqlglot import exp

from headwater.base.errors import Action, NotFoundError
from headwater.sql.calls import apply_aggregate
from headwater.sql.casts import cast
from headwater.sql.functions.catalogue import AGGREGATES, FUNCTIONS, UNSTABLE, by_order
from headwater.sql.functions.user import apply_user
from headwater.sql.nodes import (
    AggregateCall,
    Frame,
    Literal,
    Node,
    Offset,
    Ordering,
    Refused,
    SubqueryCall,
    WindowCall,
    Wrong,
)
from headwater.sql.plan import Project
from headwater.sql.reader.clauses import name_of_kind
from headwater.sql.reader.clock import CLOCKS, at, is_clock_word
from headwater.sql.reader.context import Context
from headwater.sql.reader.frames import checked_frame, offset
from headwater.sql.reader.resolve import BY_UNITS, Reader, quoted_constant
from headwater.sql.reader.scopes import RowScope
from headwater.sql.rewriting.negation import negation_inside
from headwater.sql.time_windows import last_moment
from headwater.sql.types import BOOLEAN, NULL, STRING, family, is_comparable, is_key, name_of, wider

__all__ = ["QueryReader"]

_GENERATORS = ("explode", "posexplode", "inline", "stack", "json_tuple")
_SKIPPING = {"first", "last", "lag", "lead", "nth_value", "first ignore nulls", "last ignore nulls"}
_SKIP_INSIDE = {"first", "last", "any_value"}
# Functions whose rows WITHIN GROUP (ORDER BY …) puts in order; two of them have no other argument.
_NEED_ORDER = {"percentile_cont", "percentile_disc"}
_JOINING = {"listagg", "string_agg"}
_TAKE_ORDER = _NEED_ORDER | _JOINING | {"mode"}
_UNFRAMED = {*_TAKE_ORDER, "percentile"}
_TIME_WINDOWS = ("window", "session_window", "window_time")


class QueryReader(Reader):
    """Reads the expressions of one clause; ``place`` names it when aggregates may not stand there."""

    READERS: ClassVar[dict[type[exp.Expr], Callable[[Any, Any], Node]]] = dict(Reader.READERS)

    def __init__(
        self,
        context: Context,
        scope: RowScope,
        *,
        place: str | None = None,
        windows: Mapping[str, exp.Expr] | None = None,
    ) -> None:
        super().__init__(context.scanned, scope)
        self.context = context
        self.rows = scope
        self.place = place
        self.windows = windows or {}

    def read(self, node: exp.Expr) -> Node:
        try:
            return super().read(node)
        except Refused as refused:
            if refused.position is None:
                refused.position = self.context.position_of(refused, quoted_constant(node, refused.what, self.texts))
            raise

    def condition(self, node: exp.Expr, what: str) -> Node:
        """A boolean, for WHERE, HAVING, ON."""
        found = self.whole(node)
        if found.dtype == NULL:
            return cast(found, BOOLEAN)
        if found.dtype != BOOLEAN:
            refused = Wrong(f"{what} of type {name_of(found.dtype)} is no condition", "compare it with something")
            refused.position = self.context.position(node)
            raise refused
        return found

    def whole(self, node: exp.Expr) -> Node:
        """An expression of its own, a condition or an item of the select list: NOT stands in front of IN."""
        return negation_inside(self.read(node))

    def column(self, node: exp.Expr) -> Node:
        if is_clock_word(node) and self._variable(node.name) is None and not self.scope.has(node.name):
            return at(node.name, self.context.now)
        try:
            return super().column(node)
        except NotFoundError as error:
            raise error.placed_at(self.context.text, self.context.position(node)) from None

    def placeholder(self, node: exp.Expr) -> Node:
        return self.context.parameter(node)

    # --- many rows

    def call(self, node: exp.Expr) -> Node:
        own = self.context.user_functions.get(node.name.lower())
        if own is not None:
            self._args(node, "this", "expressions")
            return apply_user(own, [self.read(a) for a in node.expressions])
        if node.name.lower() in _TIME_WINDOWS:
            return self._time_window(node)
        if node.name.lower() in CLOCKS:
            self._args(node, "this", "expressions")
            if node.expressions:
                raise Wrong(f"{node.name.lower()}() takes no arguments", "leave them out")
            return at(node.name, self.context.now)
        if node.name.lower() in AGGREGATES:
            if AGGREGATES[node.name.lower()].kind == "window":
                raise Wrong(f"the window function {node.name.lower()}() needs OVER", "write OVER (ORDER BY …)")
            return self._aggregate(node)
        if node.name.lower() in ("grouping", "grouping_id"):
            dtype = pa.int8() if node.name.lower() == "grouping" else pa.int64()
            return AggregateCall(node.name.lower(), tuple(self.read(a) for a in node.expressions), dtype)
        if node.name.lower().startswith(_GENERATORS):
            what = f"the function {node.name.lower()}() gives rows, and cannot stand inside an expression"
            raise Wrong(what, "write it alone in the select list, or in LATERAL VIEW")
        if node.name.lower() == "identifier" and len(node.expressions) == 1:
            return self._named(node)
        known = {*FUNCTIONS, *UNSTABLE, *BY_UNITS, "ilike"}
        if node.name.lower() not in known:
            return apply_aggregate(node.name, ())  # which refuses it by name
        return super().call(node)

    def _named(self, node: exp.Expr) -> Node:
        """``IDENTIFIER('t.a')``: the column of that name."""
        parts = self.context.identifier(self.read(node.expressions[0]))
        try:
            return self.scope.column(parts)
        except NotFoundError as error:
            raise error.placed_at(self.context.text, self.context.position(node)) from None

    def _time_window(self, node: exp.Expr) -> Node:
        """A call that `time_windows` has made a column of."""
        name = node.name.lower()
        if name == "window_time":
            self._args(node, "this", "expressions")
            if len(node.expressions) != 1:
                raise Wrong("window_time() takes one argument", "give the column that window() made")
            return last_moment(self.read(node.expressions[0]))
        column = self.rows.qualified((node.meta.get("time_window", ""),))
        if not column:
            place = f"in {self.place}" if self.place else "here"
            raise Refused(f"{name}() {place}", "write it in a select list or in GROUP BY")
        return column[0].column

    @contextlib.contextmanager
    def _inside(self, place: str) -> Iterator[None]:
        """Aggregates may not stand inside, and names mean the columns of FROM first."""
        place, self.place = self.place, place  # type: ignore[assignment]
        scope, self.rows = self.rows, replace(self.rows, aliases_first=False)
        self.scope = self.rows
        try:
            yield
        finally:
            self.place, self.rows, self.scope = place, scope, scope

    def _aggregate(self, node: exp.Expr, *, window: bool = False) -> AggregateCall:
        where: Node | None = None
        skip = distinct = False
        if isinstance(node, exp.Filter):
            self._args(node, "this", "expression")
            with self._inside("FILTER"):
                where = self.condition(node.expression.this, "a FILTER")
            node = node.this
        if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
            self._args(node, "this")
            skip, node = isinstance(node, exp.IgnoreNulls), node.this
        within, node = self._ordered(node)
        if not isinstance(node, exp.Anonymous):
            raise Refused(f"`{name_of_kind(node)}` as an aggregate", "use sum, count, avg, min, max and the like")
        self._args(node, "this", "expressions")
        if not window:
            self._check_place(node.name.lower())
        parts = list(node.expressions)
        if len(parts) == 1 and isinstance(parts[0], exp.IgnoreNulls) and node.name.lower() in _SKIP_INSIDE:
            self._args(parts[0], "this")
            skip, parts = True, [parts[0].this]  # first(a IGNORE NULLS)
        if len(parts) == 1 and isinstance(parts[0], exp.Distinct):
            self._args(parts[0], "expressions")
            distinct, parts = True, list(parts[0].expressions)
        if any(isinstance(p, exp.Star) for p in parts):
            if len(parts) > 1 or distinct or node.name.lower() != "count" or any(parts[0].args.values()):
                raise Refused("this use of `*`", "write count(*)")
            parts = []
        elif not parts and node.name.lower() == "count":
            raise Wrong("count() needs an argument", "write count(*)")
        # The aggregates that a window is over stand below it: sum(sum(x)) OVER ().
        with contextlib.nullcontext() if window else self._inside(f"{node.name.lower()}()"):
            args = [self.read(p) for p in parts]
            args += self._within(within, node.name.lower(), given=len(args))
        found = apply_aggregate(node.name, args)
        if skip:
            if found.op not in _SKIPPING or (not window and found.op not in ("first", "last")):
                raise Refused(f"IGNORE NULLS in {found.op}()", "leave it out")
            found = replace(found, op=f"{found.op} ignore nulls")
        if distinct and not all(is_key(a.dtype) for a in args):
            raise Refused(f"{found.op}(DISTINCT …) of {name_of(args[0].dtype)}", "count its fields")
        if distinct and found.op in ("min", "max"):
            distinct = False  # it changes nothing
        return replace(found, distinct=distinct, where=where)

    def _check_place(self, name: str) -> None:
        if self.place is None:
            return
        hint = "compute it in a subquery or in HAVING"
        if self.place.startswith(_GENERATORS):  # where Spark takes it
            raise Refused(f"the aggregate {name}() in {self.place}", hint)
        raise Wrong(f"the aggregate {name}() cannot stand in {self.place}", hint)

    def _ordered(self, node: exp.Expr) -> tuple[exp.Expr | None, exp.Expr]:
        """The order of WITHIN GROUP, and the call that it belongs to."""
        if not isinstance(node, exp.WithinGroup):
            return None, node
        self._args(node, "this", "expression")
        return node.expression, node.this

    def _within(self, order: exp.Expr | None, name: str, *, given: int) -> list[Node]:
        """WITHIN GROUP (ORDER BY x DESC) as arguments: the key, is it descending, do nulls come first."""
        if order is None:
            if name in _NEED_ORDER:
                raise Wrong(f"{name}() needs an order", "write WITHIN GROUP (ORDER BY x) behind it")
            return []
        if name not in _TAKE_ORDER:
            raise Refused(f"{name}() WITHIN GROUP", "leave the order out")
        keys = self.orderings(order)
        if len(keys) != 1:
            raise Refused(f"{name}() in the order of several keys", "order by one key")
        flags = (Literal(keys[0].descending, BOOLEAN), Literal(keys[0].nulls_first, BOOLEAN))
        separator = [Literal("", STRING)] if name in _JOINING and given == 1 else []
        return [*separator, keys[0].node, *flags]

    def filtered(self, node: exp.Expr) -> Node:
        return self._aggregate(node)

    def window(self, node: exp.Expr) -> Node:
        if self.place is not None:
            raise Wrong(f"a window function cannot stand in {self.place}", "compute it in a subquery")
        spec = node
        if node.args.get("alias") is not None:
            self._args(node, "this", "alias", "over")
            spec = self.windows.get(node.args["alias"].name.lower())  # type: ignore[assignment]
            if spec is None:
                raise Wrong(f"there is no window `{node.args['alias'].name}`", "define it with WINDOW w AS (…)")
        self._args(spec, "this", "partition_by", "order", "spec", "over")
        with self._inside_window():
            found = self._aggregate(node.this, window=True)
            partition = tuple(self.read(p) for p in spec.args.get("partition_by") or ())
            order = self.orderings(spec.args.get("order"))
            frame = self._frame(spec.args.get("spec"), order)
        if found.distinct:
            raise Wrong("DISTINCT cannot stand in a window function", "count distinct values in a GROUP BY")
        if found.op in _UNFRAMED and (order or frame is not None):
            raise Refused(f"{found.op}() over an order or a frame", "leave them out")
        counts = by_order(found.op) in ("peers", "rows")
        if counts and not order:
            raise Wrong(f"{found.op}() needs an ORDER BY in its OVER", "say by what the rows are ordered")
        if counts and frame is not None:
            raise Refused(f"{found.op}() with a frame", "leave the frame out")
        if found.where is not None and by_order(found.op) in ("peers", "rows", "place"):
            what = f"FILTER in the window function {found.op.removesuffix(' ignore nulls')}()"
            raise Refused(what, "filter the rows in a subquery, or make the others null and write IGNORE NULLS")
        for key in partition:
            if not is_key(key.dtype):
                raise Refused(f"PARTITION BY {name_of(key.dtype)}", "partition by plain columns")
        skip = found.op.endswith(" ignore nulls")
        op = found.op.removesuffix(" ignore nulls")
        return WindowCall(op, found.args, found.dtype, partition, order, frame, found.distinct, found.where, skip)

    @contextlib.contextmanager
    def _inside_window(self) -> Iterator[None]:
        # A window may be over aggregates (sum(sum(x)) OVER ()), so they are allowed; other windows are not.
        readers = self.READERS
        self.READERS = {k: v for k, v in readers.items() if k is not exp.Window}  # type: ignore[misc]
        try:
            yield
        finally:
            self.READERS = readers  # type: ignore[misc]

    def orderings(self, node: exp.Expr | None) -> tuple[Ordering, ...]:
        """The keys of an ORDER BY inside OVER."""
        return () if node is None else tuple(self.ordering(o, self.read(o.this)) for o in node.expressions)

    def ordering(self, node: exp.Expr, key: Node) -> Ordering:
        """One key with its direction; nulls come first going up and last going down, unless it says otherwise."""
        self._args(node, "this", "desc", "nulls_first")
        if not is_comparable(key.dtype):
            raise Refused(f"ORDER BY {name_of(key.dtype)}", "order by plain columns")
        return Ordering(key, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))

    def _frame(self, node: exp.Expr | None, order: tuple[Ordering, ...]) -> Frame | None:
        if node is None:
            return None
        self._args(node, "kind", "start", "start_side", "end", "end_side")
        unit = str(node.args["kind"]).lower()
        if unit not in ("rows", "range"):
            raise Wrong("a frame is of ROWS or RANGE", "write ROWS BETWEEN 3 PRECEDING AND CURRENT ROW")

        def bound(which: str, default: int) -> int | Offset | None:
            value, side = node.args.get(which), str(node.args.get(f"{which}_side") or "").lower()
            if value is None:
                return default
            if isinstance(value, str):
                words = value.upper()
                if words == "UNBOUNDED" and side in (("preceding",) if which == "start" else ("following",)):
                    return None
                if words == "CURRENT ROW":
                    return 0
                raise Wrong(
                    f"a frame cannot have the bound {words} {side.upper()} here",
                    "write UNBOUNDED PRECEDING … UNBOUNDED FOLLOWING",
                )
            distance = self._interval(value) if isinstance(value, exp.Interval) else self.read(value)
            return offset(distance, order, unit, before=side == "preceding")

        frame = Frame(unit, bound("start", 0), bound("end", 0))
        if not checked_frame(frame, *(node.args.get(which) for which in ("start", "end"))):
            raise Wrong("the frame ends before it begins", "put the earlier bound first")
        return frame

    def _lambda_body(self, node: exp.Expr) -> Node:
        place, self.place = self.place, "a lambda"
        try:
            return super()._lambda_body(node)
        finally:
            self.place = place

    # --- subqueries

    def _outside_lambdas(self) -> None:
        if self.variables:
            raise Refused("a subquery in a lambda", "compute it outside, in a column of a subquery or WITH")

    def subquery(self, node: exp.Expr) -> Node:
        self._outside_lambdas()
        inner = node.this if isinstance(node, exp.Subquery) else node
        if isinstance(node, exp.Subquery):
            self._args(node, "this")
        plan = self.context.read_query(self.context, inner, self.rows)
        if len(plan.output) != 1:
            raise Wrong(f"a subquery of {len(plan.output)} columns cannot be a value", "select one column")
        return SubqueryCall("scalar", plan, (), plan.output[0].dtype)

    def exists(self, node: exp.Expr) -> Node:
        self._outside_lambdas()
        self._args(node, "this")
        inner = node.this.this if isinstance(node.this, exp.Subquery) else node.this
        if not isinstance(inner, exp.Query):
            raise Refused("exists() with a function", Action("run_on_spark"))
        return SubqueryCall("exists", self.context.read_query(self.context, inner, self.rows), (), BOOLEAN)

    def contains(self, node: exp.Expr) -> Node:
        query = node.args.get("query")
        if query is None:
            return super().contains(node)
        self._outside_lambdas()
        self._args(node, "this", "query")
        several = isinstance(node.this, exp.Tuple)
        written = node.this.expressions if several else [node.this]
        values = [self.read(v) if several else self._operand(v) for v in written]
        inner = query.this if isinstance(query, exp.Subquery) else query
        plan = self.context.read_query(self.context, inner, self.rows)
        if len(plan.output) != len(values):
            wanted = "one column" if len(values) == 1 else f"{len(values)} columns"
            raise Wrong(f"IN cannot have a subquery of {len(plan.output)} columns", f"select {wanted}", part=query)
        types = []
        for value, given in zip(values, plan.output, strict=True):
            meet = wider(value.dtype, given.dtype, promote_text=False)
            if meet is None or family(meet) == "nested":
                what = f"IN of {name_of(value.dtype)} and a subquery of {name_of(given.dtype)}"
                raise Refused(what, "cast one side so that both have one type")
            types.append(meet)
        if types != [a.dtype for a in plan.output]:
            pairs = zip(plan.output, types, strict=True)
            plan = Project(plan, tuple(self.context.named(a.name, cast(a.column, t)) for a, t in pairs))
        return SubqueryCall("in", plan, tuple(cast(v, t) for v, t in zip(values, types, strict=True)), BOOLEAN)


QueryReader.READERS.update(
    {
        exp.Anonymous: QueryReader.call,
        exp.Column: QueryReader.column,
        exp.Dot: QueryReader.column,
        exp.Identifier: QueryReader.column,
        exp.Placeholder: QueryReader.placeholder,
        exp.Filter: QueryReader.filtered,
        exp.IgnoreNulls: QueryReader.filtered,
        exp.WithinGroup: QueryReader.filtered,
        exp.RespectNulls: QueryReader.filtered,
        exp.Window: QueryReader.window,
        exp.Subquery: QueryReader.subquery,
        exp.Select: QueryReader.subquery,
        exp.Exists: QueryReader.exists,
        exp.In: QueryReader.contains,
    }
)
