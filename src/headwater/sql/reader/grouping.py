"""GROUP BY: by column, alias, number or expression; GROUPING SETS, ROLLUP, CUBE and ALL.

Above the aggregation a row has the keys and the aggregates and nothing else: `Groups.above` rewrites an expression over
the rows of FROM into one over the groups, and refuses a column that is neither.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import exp

from headwater.sql.nodes import (
    AggregateCall,
    Call,
    Column,
    Literal,
    Node,
    Refused,
    SubqueryCall,
    Wrong,
    call,
    rewrite,
    walk,
)
from headwater.sql.plan import Aggregate, Attribute, Named, Plan, Project
from headwater.sql.reader.clauses import check_args
from headwater.sql.reader.context import Context
from headwater.sql.reader.expressions import QueryReader
from headwater.sql.reader.scopes import RowScope
from headwater.sql.reader.time_windows import TimeWindow
from headwater.sql.time_windows import check_sessions, sessions, taken_apart, with_fields
from headwater.sql.types import is_key, name_of

__all__ = ["Groups", "grouped_columns", "read_groups"]

_Items = Sequence[tuple[str, Node]]


@dataclass
class Groups:
    """The aggregation, and what each expression below it has become."""

    plan: Plan
    keys: dict[Node, Attribute]
    aggregates: dict[AggregateCall, Attribute]
    below: dict[str, Attribute]
    null_keys: set[str] = field(default_factory=set)
    # What a window of time that was grouped by is above the groups, and each of its fields.
    parts: dict[Node, Node] = field(default_factory=dict)

    def above(self, node: Node) -> Node:
        """The expression over groups."""
        if isinstance(node, Literal) and node in self.keys:
            return self.keys[node].column
        return rewrite(node, self._change)

    def _check_inside(self, subquery: SubqueryCall) -> None:
        """What a subquery names of the rows around it has to be grouped by: it is computed above the groups."""
        for plan in subquery.plan.walk():
            for part in (n for e in plan.expressions for n in walk(e) if isinstance(n, Column)):
                if part.path[0] in self.below and self.below[part.path[0]].column not in self.keys:
                    raise self._ungrouped(part)

    def _ungrouped(self, node: Column) -> Wrong:
        name = self.below[node.path[0]].name
        hint = "group by it, or take first(), min() or max() of it"
        if any(node in walk(key) for key in self.keys if pa.types.is_struct(key.dtype)):
            hint = "(a, b) is one key, a struct: write GROUP BY a, b without parentheses"
        return Wrong(f"column `{name}` is neither grouped nor aggregated", hint, part=name)

    def _change(self, node: Node) -> Node | None:
        if node in self.parts:
            return self.parts[node]
        if isinstance(node, AggregateCall):
            return self.aggregates[node].column
        if isinstance(node, SubqueryCall):
            self._check_inside(node)
        if node in self.keys and not isinstance(node, Literal):
            return self.keys[node].column
        if isinstance(node, Column) and node.path[0] in self.below:
            whole = self.below[node.path[0]].column
            if len(node.path) > 1 and whole in self.keys:
                return replace(node, path=(self.keys[whole].key, *node.path[1:]))
            raise self._ungrouped(node)
        return None


def read_groups(
    context: Context,
    group: exp.Expr | None,
    child: Plan,
    scope: RowScope,
    items: _Items,
    nodes: Sequence[Node],
    windows: Mapping[str, exp.Expr],
    timed: TimeWindow | None = None,
) -> Groups:
    """The aggregation under a select list of ``items``, with all aggregates that occur in ``nodes``."""
    keys, sets = _Keys(context, scope, items, windows).read(group)
    for key in keys:
        if any(isinstance(n, AggregateCall) for n in walk(key)):
            raise Wrong("an aggregate cannot stand in GROUP BY", "group by columns")
        _groupable(key.dtype)
    bounds: dict[str, Node] = {}
    if timed is not None and timed.column in keys:
        if sets is not None:
            raise Refused("grouping sets of a window of time", "make the window in a subquery, and group by its start")
        child, keys, bounds = _by_bounds(context, child, keys, nodes, timed)
        nodes = [*nodes, *bounds.values()]
    named: list[Named] = []
    taken: set[str] = set()
    for at, key in enumerate(keys):
        one = context.named(f"key{at + 1}", key)
        attribute = one.attribute
        if isinstance(key, Column) and len(key.path) == 1 and key.path[0] not in taken:
            attribute = replace(attribute, key=key.path[0], name=key.path[0].rsplit("#", 1)[0])
        if sets is not None:
            attribute = replace(attribute, nullable=True)
        taken.add(attribute.key)
        named.append(Named(attribute, key))
    if sets is not None and any(not isinstance(n.node, Column) or n.node.path != (n.attribute.key,) for n in named):
        # Grouping sets are written over plain columns.
        passed = tuple(Named(a, a.column) for a in child.output)
        computed = [context.named("key", n.node) for n in named]
        child = Project(child, (*passed, *computed))
        by_node = {n.node: c.attribute for n, c in zip(named, computed, strict=True)}
        named = [Named(replace(n.attribute, key=by_node[n.node].key), by_node[n.node].column) for n in named]
    key_of = dict(zip(keys, [n.attribute for n in named], strict=True))
    aggregates = _aggregates(context, nodes, keys, named, sets)
    given = tuple(Named(a, n) for n, a in aggregates.values())
    plan = Aggregate(child, tuple(named), given, sets)
    below = {a.key: a for a in child.output}
    groups = Groups(plan, key_of, {call_: a for call_, (_, a) in aggregates.items()}, below)
    if timed is not None and bounds:
        groups.parts |= taken_apart(timed.column, {name: groups.above(node) for name, node in bounds.items()})
    return groups


def grouped_columns(
    context: Context, group: exp.Expr | None, scope: RowScope, items: _Items, windows: Mapping[str, exp.Expr]
) -> frozenset[Node]:
    """What a GROUP BY groups by, for HAVING: there such a column comes before an alias of the same name."""
    return frozenset(_Keys(context, scope, items, windows).read(group)[0])


def _by_bounds(
    context: Context, child: Plan, keys: list[Node], nodes: Sequence[Node], timed: TimeWindow
) -> tuple[Plan, list[Node], dict[str, Node]]:
    """The rows and keys of a window that is grouped by, and what its start and its end are made of."""
    if timed.session:
        check_sessions(nodes, timed.column)
        others = [k for k in keys if k != timed.column]
        cut = sessions(context.named, child, others, timed.column)
        end = AggregateCall("max", (cut.end,), cut.end.dtype)
        return cut.plan, [*others, cut.start], {"start": cut.start, "end": end}
    child, fields = with_fields(context.named, child, timed.column)
    spread = [p for k in keys for p in (fields.values() if k == timed.column else (k,))]
    return child, spread, dict(fields)


def _groupable(dtype: pa.DataType) -> None:
    if not is_key(dtype):
        raise Refused(f"GROUP BY {name_of(dtype)}", "group by its fields")


def _aggregates(
    context: Context,
    nodes: Sequence[Node],
    keys: Sequence[Node],
    named: Sequence[Named],
    sets: tuple[tuple[int, ...], ...] | None,
) -> dict[AggregateCall, tuple[Node, Attribute]]:
    found: dict[AggregateCall, tuple[Node, Attribute]] = {}
    for node in nodes:
        for part in walk(node):
            if not isinstance(part, AggregateCall) or part in found:
                continue
            rendered: Node = part
            if part.op in ("grouping", "grouping_id"):
                rendered = _grouping(part, keys, named, sets)
            attribute = context.named(part.op, part).attribute
            found[part] = (rendered, attribute)
    return found


def _grouping(
    part: AggregateCall, keys: Sequence[Node], named: Sequence[Named], sets: tuple[tuple[int, ...], ...] | None
) -> Call:
    if sets is None:
        raise Wrong(f"{part.op}() needs grouping sets", "use it with ROLLUP, CUBE or GROUPING SETS")
    args = part.args or (tuple(keys) if part.op == "grouping_id" else ())
    if any(a not in keys for a in args) or not args or (part.op == "grouping" and len(args) != 1):
        raise Wrong(f"{part.op}() is of something that is no key", "name a column of GROUP BY")
    columns = tuple(named[list(keys).index(a)].attribute.column for a in args)
    return call("grouping", columns, part.dtype)


class _Keys:
    """Reads the GROUP BY clause into keys, and sets of their positions."""

    def __init__(self, context: Context, scope: RowScope, items: _Items, windows: Mapping[str, exp.Expr]) -> None:
        self.context, self.items = context, items
        aliases = {name.lower(): node for name, node in reversed(items)}
        self.reader = QueryReader(context, replace(scope, aliases=aliases), place="GROUP BY", windows=windows)
        self.keys: list[Node] = []

    def read(self, group: exp.Expr | None) -> tuple[list[Node], tuple[tuple[int, ...], ...] | None]:
        if group is None:
            return [], None
        check_args(group, "expressions", "all", "rollup", "cube", "grouping_sets")
        if group.args.get("all"):
            plain = [n for _, n in self.items if not any(isinstance(p, AggregateCall) for p in walk(n))]
            return list(dict.fromkeys(plain)), None
        sets: list[list[tuple[int, ...]]] = []
        special = False
        trailing = [(kind, group.args.get(kind) or []) for kind in ("rollup", "cube", "grouping_sets")]
        legacy = [n for _, nodes in trailing for n in nodes]
        if legacy:
            return self._trailing(group, legacy)
        for node in group.expressions:
            found, one = self._sets(node)
            sets.append(found)
            special = special or not one
        if not special:
            return self.keys, None
        product = [tuple(dict.fromkeys(itertools.chain(*parts))) for parts in itertools.product(*sets)]
        return self.keys, tuple(tuple(sorted(p)) for p in product)

    def _trailing(
        self, group: exp.Expr, kinds: list[exp.Expr]
    ) -> tuple[list[Node], tuple[tuple[int, ...], ...] | None]:
        """``GROUP BY a, b WITH ROLLUP``, WITH CUBE, and ``GROUP BY a, b GROUPING SETS (…)``."""
        plain = [(self._key(node),) for node in group.expressions]
        if len(kinds) > 1 or any(isinstance(n, exp.Rollup | exp.Cube | exp.GroupingSets) for n in group.expressions):
            raise Wrong("GROUP BY mixes two forms of grouping sets", "write ROLLUP(a, b), CUBE(a, b) or GROUPING SETS")
        if isinstance(kinds[0], exp.GroupingSets):
            return self.keys, tuple(tuple(sorted(s)) for s in self._sets(kinds[0])[0])
        if kinds[0].expressions:
            raise Refused("this GROUP BY", "write ROLLUP(a, b)")
        counts = range(len(plain), -1, -1)
        if isinstance(kinds[0], exp.Rollup):
            chosen = [plain[:n] for n in counts]
        else:
            chosen = [list(c) for n in counts for c in itertools.combinations(plain, n)]
        return self.keys, tuple(tuple(sorted(dict.fromkeys(itertools.chain(*c)))) for c in chosen)

    def _key(self, node: exp.Expr) -> int:
        found: Node | None = None
        if isinstance(node, exp.Literal) and not node.is_string:
            number = self.reader.read(node)
            place = number.value if isinstance(number, Literal) else None
            if not isinstance(place, int) or not 1 <= place <= len(self.items):
                raise Wrong(
                    f"GROUP BY {node.this} names no column", f"the select list has {len(self.items)}", part=node
                )
            found = self.items[place - 1][1]
        else:
            found = self.reader.read(node)
        if found not in self.keys:
            self.keys.append(found)
        return self.keys.index(found)

    def _several(self, node: exp.Expr) -> tuple[int, ...]:
        inner = node
        while isinstance(inner, exp.Paren):
            inner = inner.this
        parts = inner.expressions if isinstance(inner, exp.Tuple) else [inner]
        return tuple(self._key(p) for p in parts)

    def _sets(self, node: exp.Expr) -> tuple[list[tuple[int, ...]], bool]:
        if isinstance(node, exp.Rollup | exp.Cube):
            check_args(node, "expressions")
            parts = [self._several(e) for e in node.expressions]
            if isinstance(node, exp.Rollup):
                chosen = [parts[:n] for n in range(len(parts), -1, -1)]
            else:
                whole = range(len(parts), -1, -1)
                chosen = [list(c) for n in whole for c in itertools.combinations(parts, n)]
            return [tuple(itertools.chain(*c)) for c in chosen], False
        if isinstance(node, exp.GroupingSets):
            check_args(node, "expressions")
            found: list[tuple[int, ...]] = []
            for inner in node.expressions:
                if isinstance(inner, exp.Rollup | exp.Cube | exp.GroupingSets):
                    found += self._sets(inner)[0]
                else:
                    found.append(self._several(inner))
            return found, False
        return [(self._key(node),)], True
