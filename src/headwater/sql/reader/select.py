"""One SELECT: FROM, WHERE, GROUP BY, HAVING, windows, QUALIFY, the select list, DISTINCT, ORDER BY and LIMIT.

All expressions of the select list, HAVING, QUALIFY and ORDER BY are first read over the rows of FROM, aggregates and
windows still inside. Then the aggregates are taken out into an `Aggregate`, the windows into a `Window`, and what is
left of each expression is computed above them. An alias stands for its expression, so it can be named anywhere that
Spark allows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from headwater.base.errors import NotFoundError
from headwater.base.errors.wording import list_some
from headwater.sql.functions.struct import field_of
from headwater.sql.nodes import (
    AggregateCall,
    Column,
    Literal,
    Node,
    Ordering,
    Refused,
    WindowCall,
    Wrong,
    rewrite,
    walk,
)
from headwater.sql.plan import Attribute, Distinct, Filter, Limit, Named, Plan, Project, Sort, Window
from headwater.sql.reader.clauses import ORDERINGS, check_args, ordering_clause
from headwater.sql.reader.column_names import column_name
from headwater.sql.reader.context import Context
from headwater.sql.reader.expressions import QueryReader
from headwater.sql.reader.generators import generated, is_generator
from headwater.sql.reader.grouping import Groups, grouped_columns, read_groups
from headwater.sql.reader.relations import Source, read_from
from headwater.sql.reader.scopes import Entry, RowScope
from headwater.sql.reader.time_windows import read_time_window
from headwater.sql.rewriting.negation import is_membership
from headwater.sql.types import is_key, name_of

__all__ = ["limited", "read_select"]

_KNOWN = (
    *("expressions", "from_", "joins", "laterals", "where", "group", "having", "qualify", "windows"),
    *("distinct", *ORDERINGS, "limit", "offset", "with_", "hint", "kind"),
)


@dataclass(frozen=True, slots=True)
class Item:
    """One column of the select list: its name and its expression over the rows of FROM."""

    name: str
    node: Node
    attribute: Attribute | None = None


def read_select(context: Context, select: exp.Expr, around: RowScope | None) -> Plan:
    """The plan of a SELECT, without its WITH."""
    check_args(select, *_KNOWN)
    source = read_from(context, select, around)
    source = _exploded(context, select, source, around)
    scope = RowScope(source.entries, around=around)
    plan = source.plan
    where = select.args.get("where")
    if where is not None:
        condition = QueryReader(context, scope, place="WHERE").condition(where.this, "a WHERE")
        plan = Filter(plan, condition)
    timed = read_time_window(context, select, plan, scope)
    if timed is not None:
        plan, scope = timed.plan, replace(scope, entries=(*scope.entries, timed.entry))
    windows = {w.this.name.lower(): w for w in select.args.get("windows") or ()}
    items = _items(context, select, scope, windows)
    aliases = _aliases(items)
    group = select.args.get("group")
    clauses = _Clauses(context, select, scope, aliases, windows)
    having = clauses.having(grouped_columns(context, group, scope, items_of(items), windows) if group else frozenset())
    qualify = clauses.qualify()
    order = clauses.order(items)
    distinct = select.args.get("distinct")
    if distinct is not None:
        check_args(distinct)

    selected = {i.node for i in items}
    if any(is_membership(n) for o in order if o.node not in selected for n in walk(o.node)):
        raise Wrong("IN with a subquery cannot stand in ORDER BY", "select it, and order by its name")
    nodes = [i.node for i in items] + [o.node for o in order] + [n for n in (having, qualify) if n is not None]
    # HAVING without GROUP BY makes one group of all rows.
    if (
        group is not None
        or having is not None
        or any(isinstance(n, AggregateCall) for node in nodes for n in walk(node))
    ):
        groups = read_groups(context, group, plan, scope, items_of(items), nodes, windows, timed)
        plan = groups.plan
        items, order, having, qualify = _grouped(groups, items, order, having, qualify)
        if having is not None:
            plan = Filter(plan, having)
    return _finish(context, select, plan, items, order, qualify, distinct=distinct is not None)


def items_of(items: Sequence[Item]) -> list[tuple[str, Node]]:
    """Names and expressions, for clauses that may name them."""
    return [(i.name, i.node) for i in items]


def _grouped(
    groups: Groups, items: list[Item], order: list[Ordering], having: Node | None, qualify: Node | None
) -> tuple[list[Item], list[Ordering], Node | None, Node | None]:
    above = groups.above
    return (
        [replace(i, node=above(i.node), attribute=None) for i in items],
        [replace(o, node=above(o.node)) for o in order],
        None if having is None else above(having),
        None if qualify is None else above(qualify),
    )


def _finish(
    context: Context,
    select: exp.Expr,
    plan: Plan,
    items: list[Item],
    order: list[Ordering],
    qualify: Node | None,
    *,
    distinct: bool,
) -> Plan:
    """Windows, QUALIFY, the projection, DISTINCT, ORDER BY and LIMIT."""
    found = _Windows(context)
    items = [replace(i, node=found.out_of(i.node)) for i in items]
    order = [replace(o, node=found.out_of(o.node)) for o in order]
    qualify = None if qualify is None else found.out_of(qualify)
    if found.items:
        plan = Window(plan, tuple(found.items))
    if qualify is not None:
        plan = Filter(plan, qualify)

    outputs = _outputs(context, items)
    hidden: list[Named] = []
    by_node = {o.node: o.attribute for o in reversed(outputs)}
    keys = []
    for key in order:
        attribute = by_node.get(key.node)
        if attribute is None:
            if distinct:
                raise Wrong("ORDER BY names something that SELECT DISTINCT leaves out", "put it into the select list")
            named = context.named("order", key.node)
            hidden.append(named)
            attribute = by_node[key.node] = named.attribute
        keys.append(replace(key, node=attribute.column))
    plan = Project(plan, (*outputs, *hidden))
    if distinct:
        for output in outputs:
            if not is_key(output.attribute.dtype):
                raise Refused(f"SELECT DISTINCT of {name_of(output.attribute.dtype)}", "select its fields")
        plan = Distinct(plan)
    if keys:
        plan = Sort(plan, tuple(keys))
    plan = limited(context, select, plan)
    if hidden:
        plan = Project(plan, tuple(Named(o.attribute, o.attribute.column) for o in outputs))
    return plan


def limited(context: Context, query: exp.Expr, plan: Plan) -> Plan:
    """The plan under the query's LIMIT and OFFSET."""
    limit, offset = query.args.get("limit"), query.args.get("offset")
    if limit is None and offset is None:
        return plan
    return Limit(plan, _number(context, limit, "LIMIT"), _number(context, offset, "OFFSET") or 0)


def _number(context: Context, clause: exp.Expr | None, what: str) -> int | None:
    if clause is None:
        return None
    check_args(clause, "expression")
    if isinstance(clause.expression, exp.Var) and clause.expression.name.upper() == "ALL":
        return None
    value = None
    with contextlib.suppress(NotFoundError):  # a column is no constant
        value = QueryReader(context, RowScope(()), place=what).read(clause.expression)
    number = value.value if isinstance(value, Literal) else None
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        part = clause if value is not None else clause.expression
        raise Wrong(f"{what} takes a constant: a whole number, from 0 up", f"write {what} 10", part=part)
    return number


def _outputs(context: Context, items: Sequence[Item]) -> tuple[Named, ...]:
    taken: set[str] = set()
    outputs = []
    for item in items:
        named = context.named(item.name, item.node)
        path: tuple[str, ...] = item.node.path if isinstance(item.node, Column) else ()
        # A column that only passes through keeps its key, once.
        if len(path) == 1 and path[0] not in taken:
            named = Named(replace(named.attribute, key=path[0]), item.node)
        taken.add(named.attribute.key)
        outputs.append(named)
    return tuple(outputs)


def _exploded(context: Context, select: exp.Expr, source: Source, around: RowScope | None) -> Source:
    """A generator in the select list is a lateral view whose columns are selected in its place."""
    first = True
    for at, item in enumerate(select.expressions):
        inner = item.this if isinstance(item, exp.Alias | exp.Aliases) else item
        if not isinstance(inner, exp.Anonymous) or not is_generator(inner.name):
            continue
        if not first or any(e.find(exp.Window) for e in select.expressions):
            raise Refused("a generator beside another one or a window function", "write LATERAL VIEW explode(…)")
        first = False
        names = [context.name_of(item.args["alias"])] if isinstance(item, exp.Alias) else []
        if isinstance(item, exp.Aliases):
            names = [context.name_of(n) for n in item.expressions]
        try:
            plan = generated(context, source.plan, source.entries, inner, names, outer=False, around=around)
        except Refused as refused:
            refused.position = context.position(inner) if refused.position is None else refused.position
            raise
        added = plan.output[len(source.plan.output) :]
        key = f"explode {at}"
        item.set("generated", key)
        source = Source(plan, (*source.entries, *(Entry((key,), a, hidden=True) for a in added)))
    return source


def _items(context: Context, select: exp.Expr, scope: RowScope, windows: Mapping[str, exp.Expr]) -> list[Item]:
    items: list[Item] = []
    for node in select.expressions:
        if node.args.get("generated"):
            found = scope.qualified((node.args["generated"],))
            items += [Item(a.name, a.column, a) for a in found]
            continue
        fields = _struct_star(context, node, scope)
        if fields is not None:
            items += fields
            continue
        star = _star(context, node, scope)
        if star is not None:
            items += [Item(a.name, a.column, a) for a in star]
            continue
        alias, inner = None, node
        if isinstance(node, exp.Alias):
            check_args(node, "this", "alias")
            alias, inner = context.name_of(node.args["alias"]), node.this
        here = replace(scope, aliases=_aliases(items))
        reader = QueryReader(context, here, windows=windows)
        found_node = reader.whole(inner)
        items.append(Item(alias if alias is not None else column_name(context, here, inner, windows), found_node))
    if not items:
        raise Wrong("this SELECT has no columns", "select something")
    return items


def _aliases(items: Sequence[Item]) -> dict[str, Node]:
    """What each name of the select list stands for; names given twice stand for nothing."""
    counts: dict[str, list[Node]] = {}
    for item in items:
        counts.setdefault(item.name.lower(), []).append(item.node)
    return {name: nodes[0] for name, nodes in counts.items() if all(n == nodes[0] for n in nodes)}


def _star(context: Context, node: exp.Expr, scope: RowScope) -> list[Attribute] | None:
    star = node.this if isinstance(node, exp.Column) and isinstance(node.this, exp.Star) else node
    if not isinstance(star, exp.Star):
        return None
    check_args(star, "except_")
    if star is node:
        found = scope.visible()
        if not scope.entries:
            raise Wrong("there is no FROM that `*` could mean", "name a table in FROM")
    else:
        check_args(node, "this", "table", "db", "catalog")
        qualifier = tuple(context.name_of(p) for p in node.parts[:-1])  # type: ignore[attr-defined]
        found = scope.qualified(qualifier)
        if not found:
            what = f"`{'.'.join(qualifier)}.*` means no table of FROM"
            raise Wrong(what, "put the name of a table in FROM before the star", part=node)
    left_out = set()
    for column in star.args.get("except_") or ():
        name = context.name_of(column.this) if isinstance(column, exp.Column) else ""
        matching = [a for a in found if a.name.lower() == name.lower()]
        if len(matching) != 1 or len(column.parts) != 1:
            what = f"EXCEPT ({column.sql()}) names no column of the star"
            raise Wrong(what, f"columns: {list_some([a.name for a in found])}", part=column)
        left_out.add(matching[0].key)
    return [a for a in found if a.key not in left_out]


def _struct_star(context: Context, node: exp.Expr, scope: RowScope) -> list[Item] | None:
    """``s.*``: the fields of a struct, where no table is called that."""
    if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Star) or any(node.this.args.values()):
        return None
    parts = tuple(context.name_of(p) for p in node.parts[:-1])
    if scope.qualified(parts) or not scope.has(parts[0]):
        return None
    whole = scope.column(parts)
    if not pa.types.is_struct(whole.dtype):
        return None
    return [Item(f.name, field_of(whole, f.name)) for f in whole.dtype]


class _Clauses:
    """HAVING, QUALIFY and ORDER BY, which may name aliases."""

    def __init__(
        self,
        context: Context,
        select: exp.Expr,
        scope: RowScope,
        aliases: Mapping[str, Node],
        windows: Mapping[str, exp.Expr],
    ) -> None:
        self.context, self.select, self.windows = context, select, windows
        self.by_column = replace(scope, aliases=aliases)
        self.by_alias = replace(scope, aliases=aliases, aliases_first=True)

    def having(self, grouped: frozenset[Node]) -> Node | None:
        """A name means a column that is grouped by, else an alias, else a column;
        inside an aggregate it is a column.
        """
        node = self.select.args.get("having")
        if node is None:
            return None
        scope = replace(self.by_alias, grouped=grouped)
        return QueryReader(self.context, scope, windows=self.windows).condition(node.this, "a HAVING")

    def qualify(self) -> Node | None:
        """A name means a column, else an alias; over groups,
        what means both is not known to mean the same as in Spark.
        """
        node = self.select.args.get("qualify")
        if node is None:
            return None
        scopes = (self.by_column, self.by_alias) if self.select.args.get("group") else (self.by_column,)
        readings = [
            QueryReader(self.context, scope, windows=self.windows).condition(node.this, "a QUALIFY") for scope in scopes
        ]
        if _keyless(readings[0]) != _keyless(readings[-1]):
            what = "a name in QUALIFY that is both a column and an alias, over groups,"
            raise Refused(what, "call the alias otherwise", part=node)
        return readings[0]

    def order(self, items: Sequence[Item]) -> list[Ordering]:
        clause = ordering_clause(self.select)
        if clause is None:
            return []
        check_args(clause, "expressions")
        reader = QueryReader(self.context, self.by_alias, windows=self.windows)
        keys = []
        for node in clause.expressions:
            for key in self._keys(node.this, items, reader):
                try:
                    keys.append(reader.ordering(node, key))
                except Refused as refused:
                    refused.position = self.context.position(node)
                    raise
        return keys

    def _keys(self, node: exp.Expr, items: Sequence[Item], reader: QueryReader) -> list[Node]:
        if isinstance(node, exp.Var) and node.name.upper() == "ALL":
            return [i.node for i in items]
        found = reader.whole(node)
        if isinstance(found, Literal) and isinstance(node, exp.Literal) and not node.is_string:
            number = found.value
            if not isinstance(number, int) or not 1 <= number <= len(items):
                raise Wrong(f"ORDER BY {number} names no column", f"the select list has {len(items)}", part=node)
            return [items[number - 1].node]
        return [found]


def _keyless(node: Node) -> object:
    """A tree to compare with another reading of the same text: subqueries get new keys each time."""
    return [
        (
            type(n).__name__,
            getattr(n, "op", None),
            getattr(n, "path", None),
            getattr(n, "value", None),
            name_of(n.dtype),
        )
        for n in walk(node)
    ]


class _Windows:
    """Takes window calls out of expressions; equal calls become one column."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.items: list[Named] = []
        self.known: dict[WindowCall, Attribute] = {}

    def out_of(self, node: Node) -> Node:
        return rewrite(node, self._change)

    def _change(self, node: Node) -> Node | None:
        if not isinstance(node, WindowCall):
            return None
        if node not in self.known:
            named = self.context.named(node.op, node)
            self.items.append(named)
            self.known[node] = named.attribute
        return self.known[node].column
