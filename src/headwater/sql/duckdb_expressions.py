"""The expressions of a query in DuckDB's SQL: columns by their keys, aggregates, windows and subqueries.

``whole`` writes the plan of a subquery as a full SELECT. A key of a group, of DISTINCT or of a partition has no
negative zero, as in Spark; and ``x IN (SELECT …)`` is never null, which makes a difference where it is a value and not
a condition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from headwater.base.schema import duckdb_type
from headwater.sql.casts import cast
from headwater.sql.duckdb_form import Renderer
from headwater.sql.functions.catalogue import AGGREGATE_FORMS
from headwater.sql.guarding import guarded
from headwater.sql.nested_order import null_or_key
from headwater.sql.nodes import AggregateCall, Call, Frame, Literal, Node, Offset, Ordering, SubqueryCall, WindowCall
from headwater.sql.plan import Plan
from headwater.sql.quoting import quote_identifier
from headwater.sql.rewriting.negation import is_absence
from headwater.sql.types import TIMESTAMP_NTZ, family

__all__ = ["Expressions", "zero_free"]

_IGNORING = {"first": "first_value", "last": "last_value"}


class Expressions(Renderer):
    """Expressions of a query: columns by key, and subqueries."""

    def __init__(self, whole: Callable[[Plan], str]) -> None:
        super().__init__({}, guards_floats=False)
        self.whole = whole

    def many_rows(self, node: Node) -> str:
        if isinstance(node, AggregateCall | WindowCall):
            return self._aggregate(node)
        assert isinstance(node, SubqueryCall)
        inner = self.whole(node.plan)
        if node.kind == "exists":
            return f"EXISTS ({inner})"
        if node.kind == "in":
            # Without a match it is false, also where SQL would say null: see `rewriting.negation`.
            return f"coalesce({self.condition(node)}, FALSE)" if len(node.args) == 1 else self.condition(node)
        return f"({inner})"

    def written(self, node: Node) -> str:
        return f"coalesce({self.condition(node)}, FALSE)" if is_absence(node) else super().written(node)

    def condition(self, node: Node) -> str:
        """A part of a filter, where null and false are the same."""
        absent = is_absence(node)
        found = node.args[0] if absent and isinstance(node, Call) else node
        if not isinstance(found, SubqueryCall) or found.kind != "in":
            return self.render(node)
        inner = self.whole(found.plan)
        if len(found.args) == 1:
            return f"({self.render(found.args[0])} {'NOT IN' if absent else 'IN'} ({inner}))"
        # Rows of several columns are compared column by column: DuckDB's own comparison takes nulls for equal.
        pairs = zip(found.args, found.plan.output, strict=True)
        same = " AND ".join(f"{self.render(x)} = {quote_identifier(a.key)}" for x, a in pairs)
        source = f"SELECT 1 FROM ({inner}) AS members WHERE"
        return f"(NOT EXISTS ({source} coalesce({same}, TRUE)))" if absent else f"(EXISTS ({source} {same}))"

    def _aggregate(self, node: AggregateCall | WindowCall) -> str:
        over = ""
        if isinstance(node, WindowCall):
            over = f" OVER ({self._window(node)})"
        skip = " IGNORE NULLS" if isinstance(node, WindowCall) and node.ignore_nulls else ""
        within = self._within(node)

        def apply(function: str, *args: str, only: str = "") -> str:
            if isinstance(node, WindowCall):
                function = _IGNORING.get(function, function)
            conditions = [only] if only else []
            if node.where is not None:
                conditions.append(self.render(node.where))
            where = f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""
            distinct = "DISTINCT " if node.distinct else ""
            return f"{function}({distinct}{', '.join(args)}{within}{skip}){where}{over}"

        args = [self._argument(node, a) for a in node.args]
        return AGGREGATE_FORMS[node.op](node, args, apply)

    def _argument(self, node: AggregateCall | WindowCall, arg: Node) -> str:
        sql = self.render(guarded(arg, node.where))
        return zero_free(sql, arg.dtype) if node.distinct else sql

    def _within(self, node: AggregateCall | WindowCall) -> str:
        """The order in which rows are taken. DuckDB orders distinct values by the very texts of the arguments only."""
        # By a constant nothing is ordered, and DuckDB takes a number for a place.
        order = tuple(o for o in node.within if not isinstance(o.node, Literal))
        if node.distinct:
            order = tuple(o for o in order if o.node in node.args)
        keys = [self.ordering(o, self._argument(node, o.node)) for o in order]
        return f" ORDER BY {', '.join(keys)}" if keys else ""

    def _window(self, node: WindowCall) -> str:
        parts = []
        if node.partition:
            keys = (zero_free(self.render(p), p.dtype) for p in node.partition)
            parts.append("PARTITION BY " + ", ".join(keys))
        if node.order:
            parts.append("ORDER BY " + ", ".join(map(self.ordering, _walls(node))))
        if node.frame is not None:
            parts.append(_frame(node.frame))
        return " ".join(parts)

    def ordering(self, order: Ordering, rendered: str | None = None) -> str:
        direction = "DESC" if order.descending else "ASC"
        key = null_or_key(self.render(order.node) if rendered is None else rendered, order.node.dtype)
        return f"{key} {direction} NULLS {'FIRST' if order.nulls_first else 'LAST'}"


def _walls(node: WindowCall) -> tuple[Ordering, ...]:
    """The keys; an instant that a frame measures from is a wall clock in UTC, whatever zone the session is in."""
    bounds = () if node.frame is None else (node.frame.start, node.frame.end)
    if not any(isinstance(b, Offset) and family(b.dtype) == "timestamp" for b in bounds):
        return node.order
    return tuple(replace(o, node=cast(o.node, TIMESTAMP_NTZ)) for o in node.order)


def _frame(frame: Frame) -> str:
    def bound(value: int | Offset | None, unbounded: str) -> str:
        if value is None:
            return f"UNBOUNDED {unbounded}"
        if isinstance(value, Offset):
            size = f"INTERVAL {abs(value.amount)} {value.unit}"
            if not value.unit:
                size = f"CAST('{abs(value.amount)}' AS {duckdb_type(value.dtype)})"
            return f"{size} {'PRECEDING' if value.before else 'FOLLOWING'}"
        return "CURRENT ROW" if value == 0 else f"{abs(value)} {'PRECEDING' if value < 0 else 'FOLLOWING'}"

    return f"{frame.unit.upper()} BETWEEN {bound(frame.start, 'PRECEDING')} AND {bound(frame.end, 'FOLLOWING')}"


def zero_free(sql: str, dtype: pa.DataType) -> str:
    """A float without its negative zero, for keys."""
    if family(dtype) != "float":
        return sql
    zero = "CAST(0 AS FLOAT)" if dtype == pa.float32() else "CAST(0 AS DOUBLE)"
    return f"(CASE WHEN {sql} = 0 THEN {zero} ELSE {sql} END)"
