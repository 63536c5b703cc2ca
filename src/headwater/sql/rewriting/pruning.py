"""Columns that nobody reads are not carried: scans, joins and filters are followed by narrow projections.

The rule goes down with the keys that are needed above. Where a node gives more than that, a projection takes the rest
away. Operators that look at whole rows (DISTINCT, INTERSECT, EXCEPT, recursions) need all of theirs. A definition that
is read in several places keeps what any of them needs. Where rows are only counted, one column stays; if computing it
could fail, a null takes its place, because Spark does not compute what nobody reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headwater.sql.demands import narrowest
from headwater.sql.nodes import AggregateCall, Literal, Node, SubqueryCall, rewrite
from headwater.sql.plan import (
    Aggregate,
    Attribute,
    Filter,
    Generate,
    Join,
    Limit,
    Match,
    Named,
    Plan,
    Project,
    Recursion,
    Reference,
    Scan,
    SetOperation,
    Single,
    Sort,
    Window,
    With,
)
from headwater.sql.plan.rebuilding import with_children, with_expressions
from headwater.sql.rewriting.keys import reads
from headwater.sql.types import LONG

__all__ = ["pruned"]


def pruned(plan: Plan) -> Plan:
    """The plan without columns that nobody reads; its own output stays as it is."""
    return _exactly(_Pruning().prune(plan, {a.key for a in plan.output}), plan.output)


class _Pruning:
    def __init__(self) -> None:
        # What is read of each definition.
        self.wanted: dict[str, set[str]] = {}
        # A column by which the rows of a definition are counted.
        self.counted: dict[str, str] = {}

    def prune(self, plan: Plan, needed: set[str]) -> Plan:
        if any(True for _ in plan.subqueries()):
            plan = with_expressions(plan, self._inside)
        if isinstance(plan, With):
            return self._with(plan, needed)
        if isinstance(plan, Reference):
            return self._reference(plan, needed)
        if isinstance(plan, Scan):
            return _narrow(plan, needed)
        if isinstance(plan, Project):
            items = _some([i for i in plan.items if i.attribute.key in needed], plan.items, plan.child)
            return Project(self.prune(plan.child, _read(i.node for i in items)), items)
        if isinstance(plan, Aggregate):
            given = tuple(a for a in plan.aggregates if a.attribute.key in needed)
            if not plan.keys and not given:
                given = tuple(map(_row_count, plan.aggregates[:1]))
            child = self.prune(plan.child, _read(n.node for n in (*plan.keys, *given)))
            return _narrow(replace(plan, child=child, aggregates=given), needed)
        if isinstance(plan, Window):
            items = tuple(i for i in plan.items if i.attribute.key in needed)
            child = self.prune(plan.child, needed | _read(i.node for i in items))
            return _narrow(Window(child, items), needed) if items else child
        if isinstance(plan, SetOperation):
            return self._set_operation(plan, needed)
        if isinstance(plan, Match):
            return self._match(plan, needed)
        if isinstance(plan, Recursion):
            base = _exactly(self.prune(plan.base, {a.key for a in plan.base.output}), plan.base.output)
            step = _exactly(self.prune(plan.step, {a.key for a in plan.step.output}), plan.step.output)
            return replace(plan, base=base, step=step)
        if isinstance(plan, Filter | Join | Sort | Generate | Single | Limit):
            more = _read(plan.expressions)
            if isinstance(plan, Single):
                more = {a.key for a in plan.keys}
            children = tuple(self.prune(child, needed | more) for child in plan.children)
            changed = with_children(plan, children)
            return _narrow(changed, needed) if isinstance(plan, Filter | Join | Generate) else changed
        children = tuple(
            _exactly(self.prune(child, {a.key for a in child.output}), child.output) for child in plan.children
        )
        return with_children(plan, children)

    def _inside(self, node: Node) -> Node:
        """An expression with the plans of its subqueries pruned, too."""

        def change(part: Node) -> Node | None:
            if not isinstance(part, SubqueryCall):
                return None
            output = part.plan.output
            plan = _exactly(self.prune(part.plan, {a.key for a in output}), output)
            return replace(part, plan=plan, args=tuple(map(self._inside, part.args)))

        return rewrite(node, change)

    def _with(self, plan: With, needed: set[str]) -> Plan:
        body = self.prune(plan.child, needed)
        definitions: list[tuple[str, Plan]] = []
        # The last one first: by then all that reads a definition has been seen.
        for name, definition in reversed(plan.definitions):
            if isinstance(definition, Recursion):
                self.wanted[name] = {a.key for a in definition.output}
            if name in self.wanted:
                definitions.append((name, self._definition(name, definition)))
        return With(tuple(reversed(definitions)), body) if definitions else body

    def _definition(self, name: str, definition: Plan) -> Plan:
        made = self.prune(definition, self.wanted[name])
        counted = [a for a in definition.output if a.key == self.counted.get(name)]
        if not counted or counted[0].key in {a.key for a in made.output}:
            return made
        kept = tuple(Named(a, a.column) for a in made.output if a.key in self.wanted[name])
        return Project(made, (*kept, _null(counted[0])))

    def _reference(self, plan: Reference, needed: set[str]) -> Plan:
        pairs = list(zip(plan.keys, plan.columns, strict=True))
        wanted = self.wanted.setdefault(plan.name, set())
        if read := [p for p in pairs if p[1].key in needed]:
            pairs = read
            wanted.update(k for k, _ in pairs)
        else:
            pairs = pairs[:1]
            self.counted.setdefault(plan.name, pairs[0][0])
        return Reference(plan.name, tuple(k for k, _ in pairs), tuple(a for _, a in pairs))

    def _match(self, plan: Match, needed: set[str]) -> Plan:
        """The columns that it reads decide between rows that are equal by the order, so none of those is dropped."""
        kept = tuple(a for a in plan.kept if a.key in needed)
        rest = tuple(a for a in plan.rest if a.key in needed)
        measures = tuple(m for m in plan.measures if m.attribute.key in needed)
        if not (kept or rest or measures):
            return _narrow(self._match(plan, {a.key for a in plan.output}), needed)
        made = replace(plan, kept=kept, rest=rest, measures=measures)
        return replace(made, child=self.prune(plan.child, _read(made.expressions)))

    def _set_operation(self, plan: SetOperation, needed: set[str]) -> Plan:
        places = list(range(len(plan.columns)))
        if plan.kind == "union" and plan.every:
            places = [i for i in places if plan.columns[i].key in needed]
        if not places:
            nulls = [Project(self.prune(c, set()), (_null(c.output[0]),)) for c in (plan.left, plan.right)]
            return replace(plan, left=nulls[0], right=nulls[1], columns=(replace(plan.columns[0], nullable=True),))
        sides = []
        for child in (plan.left, plan.right):
            wanted = tuple(child.output[i] for i in places)
            sides.append(_exactly(self.prune(child, {a.key for a in wanted}), wanted))
        return replace(plan, left=sides[0], right=sides[1], columns=tuple(plan.columns[i] for i in places))


def _read(nodes: Iterable[Node]) -> set[str]:
    return {key for node in nodes for key in reads(node)}


def _some(items: list[Named], instead: tuple[Named, ...], child: Plan) -> tuple[Named, ...]:
    """At least one column, so that there are rows to count: the cheapest one of those that cannot fail."""
    if items or not instead:
        return tuple(items)
    safe = [i for i in instead if not i.node.fallible and not any(_may_fail(child, k) for k in reads(i.node))]
    one = (safe or instead)[narrowest([i.attribute.dtype for i in safe or instead])]
    return (one if safe else _null(one.attribute),)


def _may_fail(plan: Plan, key: str) -> bool:
    """Is a column computed by something that may stop with an error, and that is not computed for its own sake?"""
    if isinstance(plan, Project):
        node = next((i.node for i in plan.items if i.attribute.key == key), None)
        return node is not None and (node.fallible or any(_may_fail(plan.child, k) for k in reads(node)))
    if isinstance(plan, Aggregate | Window) and key not in {a.key for a in plan.children[0].output}:
        computed = plan.aggregates if isinstance(plan, Aggregate) else plan.items
        return any(i.attribute.key == key for i in computed)
    if isinstance(plan, SetOperation):
        places = [i for i, a in enumerate(plan.columns) if a.key == key]
        return any(_may_fail(side, side.output[i].key) for side in plan.children for i in places)
    return any(_may_fail(c, key) for c in plan.children if not isinstance(plan, Aggregate))


def _null(attribute: Attribute) -> Named:
    """A column that nobody reads, and that costs nothing."""
    return Named(replace(attribute, nullable=True), Literal(None, attribute.dtype))


def _row_count(item: Named) -> Named:
    """An aggregate that cannot fail in the place of one that nobody reads."""
    return Named(replace(item.attribute, dtype=LONG, nullable=False), AggregateCall("count", (), LONG))


def _narrow(plan: Plan, needed: set[str]) -> Plan:
    output = plan.output
    columns = [Named(a, a.column) for a in output]
    items = _some([i for i in columns if i.attribute.key in needed], tuple(columns), plan)
    return plan if len(items) == len(output) else Project(plan, items)


def _exactly(plan: Plan, output: tuple[Attribute, ...]) -> Plan:
    if [a.key for a in plan.output] == [a.key for a in output]:
        return plan
    return Project(plan, tuple(Named(a, a.column) for a in output))
