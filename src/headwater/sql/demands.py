"""What a query wants of each table it scans: which columns, and conditions that let an executor skip files and rows.

A condition reaches a scan through everything that neither makes rows nor looks at several of them: filters,
projections, the preserved sides of joins, and groups by the column itself. A column keeps its key on that way, so a
condition on the key is a condition on the stored column.

Invariant: a row of the scan that breaks one of the conjuncts, or for which one of the conditions is not true, does not
change the query's rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from headwater.sql.conjuncts import Conjunct, conjuncts_of
from headwater.sql.nodes import Call, Column, Node, SubqueryCall, rewrite, walk
from headwater.sql.plan import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Plan,
    Project,
    Recursion,
    Reference,
    Scan,
    SetOperation,
    Single,
    Sort,
    With,
)

__all__ = ["Demand", "demands", "keys_read", "narrowest"]

_HANDED_ON = {
    "inner": ("left", "right"),
    "cross": ("left", "right"),
    "left": ("left",),
    "semi": ("left",),
    "anti": ("left",),
    "right": ("right",),
    "full": (),
}


@dataclass(frozen=True, slots=True)
class Demand:
    """One scan, the stored names of the columns it reads, and what its rows have to satisfy.

    ``conditions`` are whole conditions on the scan's columns alone, which call them by their stored names;
    ``conjuncts`` say the same of those parts that compare a column with constants.
    """

    scan: Scan
    columns: tuple[str, ...]
    conjuncts: tuple[Conjunct, ...]
    conditions: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class _Held:
    """What rows have to satisfy on their way up; columns are called by their keys."""

    conjuncts: tuple[Conjunct, ...] = ()
    conditions: tuple[Node, ...] = ()

    @classmethod
    def of(cls, condition: Node | None) -> _Held:
        return cls() if condition is None else cls(tuple(conjuncts_of(condition)), tuple(_parts(condition)))

    def __add__(self, other: _Held) -> _Held:
        return _Held((*self.conjuncts, *other.conjuncts), (*self.conditions, *other.conditions))

    def within(self, keys: Collection[str]) -> _Held:
        """What is said about these columns alone."""
        return _Held(
            tuple(c for c in self.conjuncts if c.column in keys),
            tuple(c for c in self.conditions if _columns(c) <= set(keys)),
        )


def _parts(condition: Node) -> Iterator[Node]:
    """The conditions that an AND joins; one with a subquery looks at other rows, and one without columns at none."""
    if isinstance(condition, Call) and condition.op == "and":
        for part in condition.args:
            yield from _parts(part)
    elif _columns(condition) and not any(isinstance(n, SubqueryCall) for n in walk(condition)):
        yield condition


def _columns(node: Node) -> set[str]:
    return {n.path[0] for n in walk(node) if isinstance(n, Column)}


def _renamed(node: Node, names: Mapping[str, str]) -> Node:
    def change(n: Node) -> Node | None:
        return replace(n, path=(names[n.path[0]], *n.path[1:])) if isinstance(n, Column) else None

    return rewrite(node, change)


def narrowest(dtypes: Sequence[pa.DataType]) -> int:
    """The place of the column that costs least to carry, for whoever only has to count rows.

    >>> narrowest([pa.string(), pa.int64(), pa.int32(), pa.list_(pa.int64())])
    2
    """
    widths = [_width(t) for t in dtypes]
    return widths.index(min(widths))


def _width(dtype: pa.DataType) -> int:
    try:
        return int(dtype.bit_width)
    except ValueError:
        return 1 << 11 if pa.types.is_nested(dtype) else 1 << 10


def keys_read(plan: Plan) -> set[str]:
    """The keys of all columns that some expression or the answer reads."""
    found = {a.key for a in plan.output}
    for node in plan.walk():
        for expression in node.expressions:
            found |= {n.path[0] for n in walk(expression) if isinstance(n, Column)}
        if isinstance(node, SetOperation):
            found |= {a.key for child in node.children for a in child.output}
        if isinstance(node, Reference):
            found |= set(node.keys)
        if isinstance(node, Distinct):
            found |= {a.key for a in node.output}
        if isinstance(node, Single):
            found |= {a.key for a in node.keys}
        if isinstance(node, Recursion):
            found |= {a.key for child in (node, *node.children) for a in child.output}
        for subquery in node.subqueries():
            found |= {a.key for a in subquery.plan.output}
    return found


def demands(plan: Plan) -> list[Demand]:
    """One demand for each scan of the plan, those of subqueries too."""
    read = keys_read(plan)
    found: list[Demand] = []
    _descend(plan, _Held(), read, found)
    return found


def _descend(plan: Plan, held: _Held, read: set[str], found: list[Demand]) -> None:
    for subquery in plan.subqueries():
        _descend(subquery.plan, _Held(), read, found)
    if isinstance(plan, Scan):
        names = {a.key: a.name for a in plan.columns}
        mine = held.within(names)
        conjuncts = tuple(replace(c, column=names[c.column]) for c in mine.conjuncts)
        conditions = tuple(_renamed(c, names) for c in mine.conditions)
        found.append(Demand(plan, tuple(a.name for a in plan.columns if a.key in read), conjuncts, conditions))
        return
    if isinstance(plan, Filter):
        held = held + _Held.of(plan.condition)
    elif isinstance(plan, Join):
        own = _Held.of(plan.condition)
        for side, child in (("left", plan.left), ("right", plan.right)):
            passed = held if side in _HANDED_ON[plan.kind] else _Held()
            # A condition of the join itself binds the side that may be left out.
            joined = (
                own
                if plan.kind in ("inner", "semi") or (plan.kind, side) in (("left", "right"), ("right", "left"))
                else _Held()
            )
            _descend(child, passed + joined, read, found)
        return
    elif isinstance(plan, Aggregate):
        held = held.within({k.attribute.key for k in plan.keys} if plan.sets is None else ())
    elif not isinstance(plan, Project | Sort | Distinct):
        held = _Held()
    for child in plan.children:
        inside = held if not isinstance(plan, With) or child is plan.child else _Held()
        _descend(child, inside, read, found)
