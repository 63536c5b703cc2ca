"""Keys of more columns than a row's first word has bits for: what is too much goes into a struct, which is one column.

The nulls of a key stand in one word, beside which the kernels keep some bits, so a key has at most `MOST` columns. A
GROUP BY, a DISTINCT or a set operation of more packs the last of them below, and unpacks them above. Structs and floats
do not go together in keys, because of -0.0, so floats stay outside. Equalities of a join are packed, too: a struct is
null where one of its columns is, unless nulls are to meet.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from headwater.incremental.layout import MOST_KEYS
from headwater.incremental.planning.equalities import Equality, equalities
from headwater.incremental.planning.shape import keys_of
from headwater.sql.nodes import AggregateCall, Call, Column, Literal, Node, call
from headwater.sql.plan import Aggregate, Attribute, Distinct, Join, Named, Plan, Project, SetOperation
from headwater.sql.plan.rebuilding import bottom_up
from headwater.sql.types import BOOLEAN, STRING, has_float, has_void

__all__ = ["packed_equalities", "with_narrow_keys"]


def packed_equalities(keys: Sequence[Equality]) -> tuple[list[Equality], list[Node]]:
    """The keys of a join, few enough; and conditions for what could not be packed."""
    if len(keys) <= MOST_KEYS:
        return list(keys), []
    found = [k for k in keys if not _fits(k.left.dtype)]
    for safe in (False, True):
        some = [k for k in keys if _fits(k.left.dtype) and k.nulls_match == safe]
        if some:
            lefts, rights = _struct([k.left for k in some]), _struct([k.right for k in some])
            found.append(Equality(lefts, rights, True) if safe else Equality(_strict(lefts), _strict(rights)))
    rest: list[Node] = [call("<=>" if k.nulls_match else "=", (k.left, k.right), BOOLEAN) for k in found[MOST_KEYS:]]
    return found[:MOST_KEYS], rest


def _fits(dtype: pa.DataType) -> bool:
    return not has_float(dtype) and not has_void(dtype)


def _struct(values: Sequence[Node]) -> Call:
    dtype = pa.struct([pa.field(f"f{i}", v.dtype) for i, v in enumerate(values)])
    fields = (part for i, v in enumerate(values) for part in (Literal(f"f{i}", STRING), v))
    return call("named_struct", tuple(fields), dtype)


def _strict(struct: Call) -> Node:
    """A struct that is null where one of its values is."""
    missing = call("or", tuple(call("is null", (v,), BOOLEAN) for v in struct.args[1::2]), BOOLEAN)
    return call("case", (missing, Literal(None, struct.dtype), struct), struct.dtype)


def with_narrow_keys(plan: Plan) -> Plan:
    """The plan without groups and sets of too many columns; one that cannot be packed stays,
    and is refused where it is built.
    """
    return bottom_up(plan, _narrow)


@dataclass(frozen=True, slots=True)
class _Packing:
    """Which columns go into the struct, and the struct's own column."""

    inside: tuple[int, ...]
    whole: Attribute

    def below(self, items: Sequence[Named]) -> tuple[Named, ...]:
        """The columns, with a struct for some of them."""
        fields: list[Node] = []
        for i in self.inside:
            fields += [Literal(f"f{i}", STRING), items[i].node]
        plain = [item for i, item in enumerate(items) if i not in self.inside]
        return (*plain, Named(self.whole, call("named_struct", tuple(fields), self.whole.dtype)))

    def above(self, columns: Sequence[Attribute]) -> list[Named]:
        """The columns as they were."""
        return [Named(a, self.read(i, a)) for i, a in enumerate(columns)]

    def read(self, at: int, column: Attribute) -> Column:
        """One of them."""
        return Column(None, (self.whole.key, f"f{at}"), column.dtype) if at in self.inside else column.column


def _packing(columns: Sequence[Attribute], read: Collection[str] = ()) -> _Packing | None:
    """How to pack columns, but none of those that are ``read`` on the way; None where there is no need or no way."""
    spare = len(columns) - MOST_KEYS
    if spare <= 0:
        return None
    fit = [i for i, a in enumerate(columns) if _fits(a.dtype) and a.key not in read]
    if len(fit) <= spare:
        return None
    inside = tuple(fit[-spare - 1 :])
    dtype = pa.struct([pa.field(f"f{i}", columns[i].dtype) for i in inside])
    return _Packing(inside, Attribute("keys", f"keys from {columns[inside[0]].key}", dtype, False))


def _counting(item: Named, keys: int) -> Named:
    """count(DISTINCT …) of many columns as that of one."""
    node = item.node
    if not isinstance(node, AggregateCall) or node.op != "count" or not node.distinct:
        return item
    if len(node.args) < 2 or keys + len(node.args) <= MOST_KEYS or not all(_fits(a.dtype) for a in node.args):
        return item
    return replace(item, node=replace(node, args=(_strict(_struct(node.args)),)))


def _narrow(plan: Plan) -> Plan:
    if isinstance(plan, Aggregate):
        counted = tuple(_counting(a, len(plan.keys)) for a in plan.aggregates)
        plan = plan if counted == plan.aggregates else replace(plan, aggregates=counted)
    if isinstance(plan, Aggregate) and plan.sets is None:
        columns = [k.attribute for k in plan.keys]
        packing = _packing(columns)
        if packing is not None:
            grouped = replace(plan, keys=packing.below(plan.keys))
            rest = [Named(a.attribute, a.attribute.column) for a in plan.aggregates]
            return Project(grouped, (*packing.above(columns), *rest))
    if isinstance(plan, Join):
        return _joined(plan)
    if isinstance(plan, Distinct):
        packing = _packing(plan.output)
        if packing is not None:
            return Project(Distinct(_packed(plan.child, plan.output, packing)), tuple(packing.above(plan.output)))
    if isinstance(plan, SetOperation) and plan.kind != "union":
        packing = _packing(plan.columns)
        if packing is not None:
            sides = [_packed(side, side.output, packing) for side in plan.children]
            plain = [a for i, a in enumerate(plan.columns) if i not in packing.inside]
            found = replace(plan, left=sides[0], right=sides[1], columns=(*plain, packing.whole))
            return Project(found, tuple(packing.above(plan.columns)))
    return plan


def _joined(plan: Join) -> Plan:
    """An outer, semi or anti join on more than equalities: it looks for whole rows that have found a partner."""
    if plan.kind in ("inner", "cross") or not equalities(plan.condition, plan.left.output, plan.right.output)[1]:
        return plan
    read = keys_of(plan.condition) if plan.condition is not None else set()
    packings = [_packing(side.output, read) for side in plan.children]
    if packings == [None, None]:
        return plan
    sides = [s if p is None else _packed(s, s.output, p) for s, p in zip(plan.children, packings, strict=True)]
    found = replace(plan, left=sides[0], right=sides[1])
    width, items = len(plan.left.output), []
    for at, attribute in enumerate(plan.output):
        side, i = (0, at) if at < width else (1, at - width)
        packing = packings[side]
        items.append(Named(attribute, attribute.column if packing is None else packing.read(i, attribute)))
    return Project(found, tuple(items))


def _packed(plan: Plan, columns: Sequence[Attribute], packing: _Packing) -> Plan:
    return Project(plan, packing.below([Named(a, a.column) for a in columns]))
