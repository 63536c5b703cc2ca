"""Facts: a side of a join that is one row, and of which only truths are wanted.

``x NOT IN (SELECT y FROM t)`` asks two things of all of ``t``: is it empty, and does it hold a null? A plan says so by
joining each row with the counts of ``t``. The counts change with every row, and with them every pair; the two truths
hardly ever do. So where a join with one row needs nothing of it but what its condition says, the row becomes the truths
in the condition, once each, and a change that leaves them as they were ends there.
"""

from __future__ import annotations

from dataclasses import replace

from headwater.incremental.planning.limit import most_rows
from headwater.incremental.planning.shape import keys_of
from headwater.sql.nodes import Column, Node, rewrite
from headwater.sql.plan import Attribute, Distinct, Filter, Join, Named, Plan, Project
from headwater.sql.plan.rebuilding import with_children

__all__ = ["with_facts"]


def with_facts(plan: Plan) -> Plan:
    """The same plan with truths for rows, wherever nothing else is read of them."""
    plan = with_children(plan, tuple(map(with_facts, plan.children)))
    if not isinstance(plan, Project):
        return plan
    child = plan.child
    join = child.child if isinstance(child, Filter) else child
    if not isinstance(join, Join) or join.kind != "inner" or join.condition is None or most_rows(join.right) != 1:
        return plan
    theirs = {a.key for a in join.right.output}
    read = keys_of(*plan.expressions) | (keys_of(child.condition) if isinstance(child, Filter) else set())
    if read & theirs or isinstance(join.right, Distinct) or not keys_of(join.condition) & theirs:
        return plan
    facts: dict[Node, Attribute] = {}
    first = min(theirs)

    def change(node: Node) -> Node | None:
        keys = keys_of(node)
        if not keys or not keys <= theirs or isinstance(node, Column):
            return None
        if node not in facts:
            facts[node] = Attribute(f"fact {len(facts) + 1}", f"fact {len(facts) + 1} of {first}", node.dtype)
        return facts[node].column

    condition = rewrite(join.condition, change)
    if keys_of(condition) & theirs:
        # A value is compared with one of the rows: it is no truth about all of them.
        return plan
    right = Distinct(Project(join.right, tuple(Named(a, n) for n, a in facts.items())))
    better: Plan = replace(join, right=right, condition=condition)
    return replace(plan, child=replace(child, child=better) if isinstance(child, Filter) else better)
