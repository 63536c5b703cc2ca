"""Joins as recipes: inner, left, right, full, semi, anti and cross, with a further condition.

An inner join is the bilinear node and a filter. What the others need beside it is which rows have a partner::

    semi(A, B)  =  A joined with the different keys of B
    anti(A, B)  =  A - semi(A, B)
    left(A, B)  =  inner(A, B) + anti(A, B) with nulls for B

With a further condition the rows that have a partner are the different rows of A in the inner join. All pieces cost
their change; none looks at a whole group, so a key with many rows on both sides costs no more than the pairs that
change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

import pyarrow as pa

from headwater.base.errors import InputError, NotFoundError, SchemaError
from headwater.incremental.operators.join import Join
from headwater.incremental.operators.pad import Pad
from headwater.incremental.operators.settled import Below
from headwater.incremental.operators.star_join import StarJoin
from headwater.incremental.operators.watermark import Mark
from headwater.incremental.recipes.present import present, without_partners
from headwater.incremental.recipes.row_stream import On, S
from headwater.incremental.recipes.zero_keys import normalised

__all__ = ["Sides", "Where", "inner_join", "joined", "named_sides", "sides_joined", "star_joined"]

Where = Callable[[S], S]

_WAYS = ("inner", "left", "right", "full", "semi", "anti", "cross")


@dataclass(frozen=True, slots=True)
class Sides(Generic[S]):
    """Two streams with their keys, and what the columns are called in the result.

    ``pairs`` is another way to find the pairs than by equal keys; then there is a further condition.
    """

    left: S
    right: S
    mine: list[str]
    theirs: list[str]
    left_names: dict[str, str]
    right_names: dict[str, str]
    nulls_match: bool = False
    sql: str = ""
    pairs: Callable[[Sides[S]], S] | None = None

    @property
    def new_right(self) -> list[tuple[str, str]]:
        """The columns that only the right side gives."""
        taken = set(self.left_names.values())
        return [(c, n) for c, n in self.right_names.items() if n not in taken]


def joined(left: S, right: S, on: On, *, how: str, where: str | None, suffix: str) -> S:
    """The stream of a join: see `Stream.join`."""
    if how not in _WAYS:
        raise InputError.bad_argument("how", how, f"one of {', '.join(_WAYS)}")
    if how not in {"inner", "cross"}:
        left, right = present(left), present(right)
    sides = named_sides(left, right, on, suffix)
    if not sides.mine and how not in {"inner", "cross"} and where is None:
        raise InputError.bad_argument("on", "nothing", f"the columns of the keys, for a {how} join")
    return sides_joined(sides, how, None if where is None else lambda pairs: pairs.filter(where))


def sides_joined(sides: Sides[S], how: str, where: Where[S] | None = None) -> S:
    """The stream of a join; ``where`` gives those of the pairs that count.

    With ``where`` every column of both sides has to be among the names.
    """
    left, right = sides.left, sides.right
    if how in {"semi", "anti"}:
        partners = _with_partner(sides, where)
        return partners if how == "semi" else without_partners(left, partners)
    inner = _inner(sides, where)
    if how in {"inner", "cross"}:
        return inner
    schema = _outer_schema(inner.schema, sides, how)
    parts = []
    if how in {"left", "full"}:
        lonely = without_partners(left, _with_partner(sides, where, inner))
        parts.append(_padded(lonely, schema, {n: c for c, n in sides.left_names.items()}))
    if how in {"right", "full"}:
        lonely = without_partners(right, _with_partner(_flipped(sides), where, inner))
        parts.append(_padded(lonely, schema, {n: c for c, n in sides.right_names.items()}))
    return inner._relabelled(schema).plus(*parts)


def inner_join(
    left: S,
    right: S,
    mine: Sequence[str],
    theirs: Sequence[str],
    left_columns: Sequence[tuple[str, str]],
    right_columns: Sequence[tuple[str, str]],
    *,
    nulls_match: bool = False,
    sql: str = "",
) -> S:
    """The bilinear node over two arranged streams; columns are pairs (theirs, in the result)."""
    circuit = left.circuit
    left, mine = normalised(left, mine)
    right, theirs = normalised(right, theirs)
    pairs = list(dict.fromkeys(zip(mine, theirs, strict=True)))
    mine, theirs = [m for m, _ in pairs], [t for _, t in pairs]
    place = circuit.meeting(left.vertex, mine, right.vertex, theirs)
    a = circuit.arranged(left.vertex, mine, columns=[c for c, _ in left_columns], place=place[0])
    b = circuit.arranged(right.vertex, theirs, columns=[c for c, _ in right_columns], place=place[1])
    vertex = circuit.add(lambda x, y: Join(x, y, left_columns, right_columns, nulls_match=nulls_match, sql=sql), [a, b])
    named = dict(reversed(right_columns)), dict(reversed(left_columns))
    found = [named[1].get(k) or named[0].get(m) for k, m in zip(*place, strict=True)]
    vertex.placed_by = tuple(n for n in found if n is not None) if None not in found else None
    keys = [(k, m, left.vertex.marks.get(k), right.vertex.marks.get(m)) for k, m in zip(mine, theirs, strict=True)]
    # What the other side never asks for again.
    of_left = next((Below(k, y) for k, _, _, y in keys if y is not None), None)
    of_right = next((Below(m, x) for _, m, x, _ in keys if x is not None), None)
    vertex.needs = (of_left, of_right)
    for k, m, x, y in keys:
        if x is not None and y is not None:
            names = [n for c, n in left_columns if c == k] + [n for c, n in right_columns if c == m]
            vertex.marks |= dict.fromkeys(names, Mark.both(x, y))
    return left.at(vertex)


def star_joined(left: S, others: Sequence[S], on: Sequence[str], suffix: str) -> S:
    """The inner join of many streams on columns that all of them have."""
    if not others:
        raise InputError.bad_argument("others", "nothing", "at least one stream")
    circuit = left.circuit
    taken = set(left.columns)
    columns = [[(c, c) for c in left.columns]]
    for other in others:
        named_sides(left, other, on, suffix)
        some = []
        for c in other.columns:
            if c in on:
                continue
            name = c
            while name in taken:
                name += suffix or "_right"
            taken.add(name)
            some.append((c, name))
        columns.append(some)
    keyed = [normalised(s, on) for s in (left, *others)]
    arranged = [
        circuit.arranged(s.vertex, keys, columns=[c for c, _ in some])
        for (s, keys), some in zip(keyed, columns, strict=True)
    ]
    return left.at(circuit.add(lambda *nodes: StarJoin(nodes, columns), arranged))


def _inner(sides: Sides[S], where: Where[S] | None) -> S:
    if sides.pairs is not None:
        found = sides.pairs(sides)
        return found if where is None else where(found)
    pairs = inner_join(
        sides.left,
        sides.right,
        sides.mine,
        sides.theirs,
        list(sides.left_names.items()),
        sides.new_right,
        nulls_match=sides.nulls_match,
        sql=sides.sql,
    )
    return pairs if where is None else where(pairs)


def _with_partner(sides: Sides[S], where: Where[S] | None, pairs: S | None = None) -> S:
    """The rows of the left side that have a partner, with their weights."""
    left = sides.left
    everything = [(c, c) for c in left.columns]
    if where is None:
        keys = sides.right.select(*dict.fromkeys(sides.theirs)).distinct()
        return inner_join(
            left, keys, sides.mine, sides.theirs, everything, [], nulls_match=sides.nulls_match, sql=sides.sql
        )
    pairs = pairs or _inner(sides, where)
    names = sides.left_names
    partners = pairs._project([(c, names[c]) for c in left.columns], {}, "select").distinct()
    return inner_join(left, partners, left.columns, left.columns, everything, [], nulls_match=True, sql=sides.sql)


def _flipped(sides: Sides[S]) -> Sides[S]:
    """The right side as the left; the columns of the pairs keep their names."""
    return Sides(
        sides.right,
        sides.left,
        sides.theirs,
        sides.mine,
        sides.right_names,
        sides.left_names,
        sides.nulls_match,
        sides.sql,
        sides.pairs,
    )


def _padded(lonely: S, schema: pa.Schema, columns: dict[str, str]) -> S:
    padded = lonely._lifted(lambda s: Pad(s, schema, columns))
    # Columns of the side that is missing say nothing of where a row lies: `plus` compares the names.
    placed, names = lonely.vertex.placed_by, {c: n for n, c in columns.items()}
    if placed is not None and all(c in names for c in placed):
        padded.vertex.placed_by = tuple(names[c] for c in placed)
    return padded


def _outer_schema(inner: pa.Schema, sides: Sides[S], how: str) -> pa.Schema:
    """Which columns may be null: those of a side that may be missing, unless both sides give them."""
    mine, theirs = set(sides.left_names.values()), set(sides.right_names.values())

    def loosened(field: pa.Field) -> pa.Field:
        name = field.name
        missing = (name not in theirs and how in {"right", "full"}) or (name not in mine and how in {"left", "full"})
        shared = name in mine and name in theirs
        return field.with_nullable(True) if missing or (shared and _nullable(sides, name)) else field

    return pa.schema([loosened(f) for f in inner])


def _nullable(sides: Sides[S], name: str) -> bool:
    back_left = {n: c for c, n in sides.left_names.items()}
    back_right = {n: c for c, n in sides.right_names.items()}
    return bool(
        sides.left.schema.field(back_left[name]).nullable or sides.right.schema.field(back_right[name]).nullable
    )


def named_sides(left: S, right: S, on: On, suffix: str) -> Sides[S]:
    """The two sides of a join with their keys, checked, and what their columns are called in the result."""
    given = [on] if isinstance(on, str) else list(on)
    pairs = [(p, p) if isinstance(p, str) else (p[0], p[1]) for p in given]
    for a, b in pairs:
        for name, stream, side in ((a, left, "left"), (b, right, "right")):
            if name not in stream.columns:
                raise NotFoundError.column(name, stream.columns, where=f"the {side} side of the join")
        x, y = left.schema.field(a).type, right.schema.field(b).type
        if x != y:
            raise SchemaError.type_clash(b, str(y), str(x), where="the key of the join")
    same = {b for a, b in pairs if a == b}
    taken = set(left.columns)
    right_names: dict[str, str] = {}
    for c in right.columns:
        name = c
        if c not in same:
            while name in taken:
                name += suffix
                if not suffix:
                    raise SchemaError.duplicate_columns([c])
            taken.add(name)
        right_names[c] = name
    return Sides(left, right, [a for a, _ in pairs], [b for _, b in pairs], {c: c for c in left.columns}, right_names)
