"""Columns that nobody reads are not carried: scans, joins and filters are followed by narrow projections.

The rule goes down with the keys that are needed above. Where a node gives more than that, a projection takes the rest away. Operators that look
at whole rows (DISTINCT, INTERSECT, EXCEPT, recursions) need all of theirs. A definition that is read in several places keeps what
any of them needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headwater.sql.demands import narrowest
from headwater.sql.nodes import Node
from headwater.sql.plan import (
    Aggregate,
    Attribute,
    Filter,
    Generate,
    Join,
    Limit,
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
from headwater.sql.rewriting.keys import reads
from headwater.sql.rewriting.rebuilding import with_children

__all__ = ["pruned"]


def pruned(plan: Plan) -> Plan:
    """The plan without columns that nobody reads; its own output stays as it is."""
    return _exactly(_Pruning().prune(plan, {a.key for a in plan.output}), plan.output)


class _Pruning:
    def __init__(self) -> None:
        # What is read of each definition.
        self.wanted: dict[str, set[str]] = {}

    def prune(self, plan: Plan, needed: set[str]) -> Plan:
        if isinstance(plan, With):
            return self._with(plan, needed)
        if isinstance(plan, Reference):
            return self._reference(plan, needed)
        if isinstance(plan, Scan):
            return _narrow(plan, needed)
        if isinstance(plan, Project):
            items = _some([i for i in plan.items if i.attribute.key in needed], plan.items)
            return Project(self.prune(plan.child, _read(i.node for i in items)), items)
        if isinstance(plan, Aggregate):
            given = tuple(a for a in plan.aggregates if a.attribute.key in needed)
            if not plan.keys and not given:
                given = plan.aggregates[:1]
            child = self.prune(plan.child, _read(n.node for n in (*plan.keys, *given)))
            return _narrow(replace(plan, child=child, aggregates=given), needed)
        if isinstance(plan, Window):
            items = tuple(i for i in plan.items if i.attribute.key in needed)
            child = self.prune(plan.child, needed | _read(i.node for i in items))
            return _narrow(Window(child, items), needed) if items else child
        if isinstance(plan, SetOperation):
            return self._set_operation(plan, needed)
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

    def _with(self, plan: With, needed: set[str]) -> Plan:
        body = self.prune(plan.child, needed)
        definitions: list[tuple[str, Plan]] = []
        # The last one first: by then all that reads a definition has been seen.
        for name, definition in reversed(plan.definitions):
            if isinstance(definition, Recursion):
                self.wanted[name] = {a.key for a in definition.output}
            if name in self.wanted:
                definitions.append((name, self.prune(definition, self.wanted[name])))
        return With(tuple(reversed(definitions)), body) if definitions else body

    def _reference(self, plan: Reference, needed: set[str]) -> Plan:
        pairs = list(zip(plan.keys, plan.columns, strict=True))
        pairs = [p for p in pairs if p[1].key in needed] or pairs[:1]
        self.wanted.setdefault(plan.name, set()).update(k for k, _ in pairs)
        return Reference(plan.name, tuple(k for k, _ in pairs), tuple(a for _, a in pairs))

    def _set_operation(self, plan: SetOperation, needed: set[str]) -> Plan:
        places = list(range(len(plan.columns)))
        if plan.kind == "union" and plan.every:
            places = [i for i in places if plan.columns[i].key in needed] or places[:1]
        sides = []
        for child in (plan.left, plan.right):
            wanted = tuple(child.output[i] for i in places)
            sides.append(_exactly(self.prune(child, {a.key for a in wanted}), wanted))
        return replace(plan, left=sides[0], right=sides[1], columns=tuple(plan.columns[i] for i in places))


def _read(nodes: Iterable[Node]) -> set[str]:
    return {key for node in nodes for key in reads(node)}


def _some(items: list[Named], instead: tuple[Named, ...]) -> tuple[Named, ...]:
    """At least one column, so that there are rows to count; the cheapest one."""
    if items or not instead:
        return tuple(items)
    return (instead[narrowest([i.attribute.dtype for i in instead])],)


def _narrow(plan: Plan, needed: set[str]) -> Plan:
    output = plan.output
    items = _some([Named(a, a.column) for a in output if a.key in needed], tuple(Named(a, a.column) for a in output))
    return plan if len(items) == len(output) else Project(plan, items)


def _exactly(plan: Plan, output: tuple[Attribute, ...]) -> Plan:
    if [a.key for a in plan.output] == [a.key for a in output]:
        return plan
    return Project(plan, tuple(Named(a, a.column) for a in output))
