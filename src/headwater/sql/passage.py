"""Passage: which rows of an answer can depend on the rows of a table that have a key, told by the answer's own columns.

A query that filters, joins, groups or counts by the columns of a key carries them through: the rows of the answer that
depend on customer 7 are those whose ``customer`` is 7, and nobody has to compute anything to find them. A query that
drops the key, ranks over all rows or joins the table with itself does not, and then nothing is said.

Invariants: where columns are given, every row of the answer that depends on rows of the table with the key has the
key's values in them. The reverse need not hold.

>>> import pyarrow as pa
>>> from headwater.sql.query import parse_query
>>> schema = pa.schema([("customer", pa.int32()), ("amount", pa.int32())])
>>> read = lambda sql: parse_query(sql, lambda *_: schema)
>>> passage(read("SELECT customer AS who, sum(amount) AS s FROM t GROUP BY customer"), {"t"}, ["customer"])
{'customer': 'who'}
>>> passage(read("SELECT sum(amount) AS s FROM t"), {"t"}, ["customer"]) is None
True
>>> identifying(read("SELECT customer AS who, sum(amount) AS s FROM t GROUP BY customer"))
('who',)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from headwater.sql.nodes import Call, Column, Named, Node, Plan, WindowCall
from headwater.sql.plan import (
    Aggregate,
    Distinct,
    Filter,
    Generate,
    Join,
    Match,
    Project,
    Reference,
    Scan,
    SetOperation,
    Sort,
    Window,
    With,
)

__all__ = ["identifying", "passage"]

Keys = dict[str, str]
"""For each column of the key, the key of the attribute that holds it."""

_KEEPS_LEFT = ("inner", "cross", "left", "semi", "anti")
_KEEPS_RIGHT = ("inner", "cross", "right")


class _Lost(Exception):
    """The key does not come through."""


def passage(plan: Plan, relations: Collection[str], columns: Sequence[str]) -> dict[str, str] | None:
    """For each column of a key of a table, the answer's column that holds it; None where they do not come through.

    Parameters
    ----------
    relations
        the names under which the plan reads the table
    columns
        those of the key
    """
    try:
        found = _Passage(relations, columns).visit(plan)
    except _Lost:
        return None
    if found is None:
        return None
    names = {a.key: a.name for a in plan.output}
    if not set(found.values()) <= set(names):
        return None
    return {column: names[key] for column, key in found.items()}


def identifying(plan: Plan) -> tuple[str, ...]:
    """The columns that tell the rows of a grouped answer apart; none where the query does not group at its top."""
    names = {a.key: a.name for a in plan.output}
    while isinstance(plan, Project | Filter | Sort | Window):
        if isinstance(plan, Project):
            shown = [i for i in plan.items if i.attribute.key in names]
            names = {
                i.node.path[0]: names[i.attribute.key]
                for i in shown
                if isinstance(i.node, Column) and _is_plain(i.node)
            }
        plan = plan.child
    if not isinstance(plan, Aggregate) or plan.sets is not None or not plan.keys:
        return ()
    keys = [k.attribute.key for k in plan.keys]
    return tuple(names[k] for k in keys) if all(k in names for k in keys) else ()


class _Passage:
    def __init__(self, relations: Collection[str], columns: Sequence[str]) -> None:
        self.relations = {r.lower() for r in relations}
        self.columns = tuple(columns)
        self.definitions: dict[str, Keys | None] = {}

    def visit(self, plan: Plan) -> Keys | None:
        """Where the key is in the rows of a plan; None if the plan does not read the table."""
        if any(self._reads(subquery.plan) for subquery in plan.subqueries()):
            raise _Lost
        if isinstance(plan, Scan):
            return self._scan(plan)
        if isinstance(plan, Filter | Sort | Distinct | Generate):
            return self.visit(plan.child)
        if isinstance(plan, Project):
            return _renamed(self.visit(plan.child), plan.items)
        if isinstance(plan, Aggregate):
            found = self.visit(plan.child)
            if found is not None and plan.sets is not None:
                raise _Lost
            return _renamed(found, plan.keys)
        if isinstance(plan, Window | Match):
            return self._partitioned(plan)
        if isinstance(plan, Join):
            return self._join(plan)
        if isinstance(plan, SetOperation):
            return self._set_operation(plan)
        if isinstance(plan, With):
            for name, definition in plan.definitions:
                self.definitions[name] = self.visit(definition)
            return self.visit(plan.child)
        if isinstance(plan, Reference):
            return self._reference(plan)
        if self._reads(plan):
            raise _Lost
        return None

    def _reads(self, plan: Plan) -> bool:
        return any(
            (isinstance(one, Scan) and self._is_table(one))
            or (isinstance(one, Reference) and self.definitions.get(one.name) is not None)
            for one in plan.walk()
        )

    def _is_table(self, scan: Scan) -> bool:
        return scan.relation.lower() in self.relations

    def _scan(self, scan: Scan) -> Keys | None:
        if not self._is_table(scan):
            return None
        there = {a.name.lower(): a.key for a in scan.columns}
        if not all(c.lower() in there for c in self.columns):
            raise _Lost
        return {c: there[c.lower()] for c in self.columns}

    def _reference(self, plan: Reference) -> Keys | None:
        found = self.definitions.get(plan.name)
        if found is None:
            return None
        own = {key: a.key for key, a in zip(plan.keys, plan.columns, strict=True)}
        if not all(key in own for key in found.values()):
            raise _Lost
        return {column: own[key] for column, key in found.items()}

    def _partitioned(self, plan: Window | Match) -> Keys | None:
        found = self.visit(plan.child)
        if found is None:
            return None
        partitions = [plan.partition] if isinstance(plan, Match) else []
        if isinstance(plan, Window):
            partitions = [item.node.partition for item in plan.items if isinstance(item.node, WindowCall)]
        for partition in partitions:
            parts = {n.path[0] for n in partition if isinstance(n, Column) and _is_plain(n)}
            if not parts.issuperset(found.values()):
                raise _Lost
        return found

    def _join(self, plan: Join) -> Keys | None:
        left, right = self.visit(plan.left), self.visit(plan.right)
        if left is None and right is None:
            return None
        if left is not None and right is not None:
            raise _Lost  # a row of one side may meet rows of the other that have another key
        found, keeps = (left, _KEEPS_LEFT) if left is not None else (right, _KEEPS_RIGHT)
        assert found is not None, "one of the sides reads the table"
        if plan.kind in keeps:
            return found
        # A row without a partner depends on all that it did not meet: it is known by what it was compared with.
        if plan.kind == "full":
            raise _Lost
        equal = dict(_equalities(plan.condition))
        equal |= {b: a for a, b in equal.items()}
        others = {a.key for a in (plan.right if left is not None else plan.left).output}
        if not all(equal.get(key) in others for key in found.values()):
            raise _Lost
        return {column: equal[key] for column, key in found.items()}

    def _set_operation(self, plan: SetOperation) -> Keys | None:
        sides = [(side, self.visit(side)) for side in (plan.left, plan.right)]
        places = [
            {column: [a.key for a in side.output].index(key) for column, key in found.items()}
            for side, found in sides
            if found is not None and set(found.values()) <= {a.key for a in side.output}
        ]
        reading = sum(found is not None for _, found in sides)
        if not reading:
            return None
        if len(places) < reading or any(one != places[0] for one in places):
            raise _Lost
        return {column: plan.columns[at].key for column, at in places[0].items()}


def _renamed(found: Keys | None, items: Sequence[Named]) -> Keys | None:
    if found is None:
        return None
    passed = {i.node.path[0]: i.attribute.key for i in items if isinstance(i.node, Column) and _is_plain(i.node)}
    if not all(key in passed for key in found.values()):
        raise _Lost
    return {column: passed[key] for column, key in found.items()}


def _is_plain(node: Node) -> bool:
    return isinstance(node, Column) and len(node.path) == 1


def _equalities(node: Node | None) -> Iterator[tuple[str, str]]:
    """The pairs of columns that a condition compares for equality."""
    if isinstance(node, Call) and node.op == "and":
        for part in node.args:
            yield from _equalities(part)
    elif isinstance(node, Call) and node.op in ("=", "<=>"):
        one, other = node.args
        if isinstance(one, Column) and isinstance(other, Column) and _is_plain(one) and _is_plain(other):
            yield one.path[0], other.path[0]
