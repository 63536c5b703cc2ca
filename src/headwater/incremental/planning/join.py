"""Join: equal keys meet in a bilinear node, and what is left of the condition is a filter on the pairs.

Semi, anti and outer joins are recipes over that (`headwater.incremental.recipes.joins`). Keys may be expressions, which
then are columns of their own on the way. Where some keys let nulls meet and others do not, all let them meet, and the
condition sends those of the others away.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa

from headwater.incremental.circuit.stream import Stream
from headwater.incremental.planning.between import Between, between, interval_pairs
from headwater.incremental.planning.builder import Builder, Form
from headwater.incremental.planning.equalities import Equality, conjunction, equalities
from headwater.incremental.planning.filter import filtered
from headwater.incremental.planning.rows import Computed, Rows, Scope, line_of, names_for
from headwater.incremental.planning.shape import Shape, keys_of
from headwater.incremental.planning.wide_keys import packed_equalities
from headwater.incremental.recipes.joins import Sides, sides_joined
from headwater.incremental.recipes.zero_keys import normalised
from headwater.sql.nodes import Call, Literal, Node
from headwater.sql.plan import Attribute, Join
from headwater.sql.types import BOOLEAN

__all__ = ["FORM"]

_KEY = "\0key"


def _needs(shape: Shape) -> None:
    plan = shape.plan
    assert isinstance(plan, Join)
    left, right = shape.children
    width = len(plan.left.output)
    left.need({i for i in shape.needed if i < width})
    right.need({i - width for i in shape.needed if i >= width})
    if plan.condition is not None:
        read = keys_of(plan.condition)
        left.need_keys(plan.left.output, read)
        right.need_keys(plan.right.output, read)


def _rows(builder: Builder, shape: Shape) -> Rows:
    plan = shape.plan
    assert isinstance(plan, Join)
    left, right = builder.child(shape, 0), builder.child(shape, 1)
    keys, rest = equalities(plan.condition, plan.left.output, plan.right.output)
    keys, unpacked = packed_equalities(keys)
    rest += unpacked
    width = len(plan.left.output)
    lefts, rights = left.scope(plan.left.output), right.scope(plan.right.output)
    sql = line_of(plan, lefts)
    if not rest and not keys and plan.kind not in ("inner", "cross"):
        one = Literal(1, pa.int32())
        keys = [Equality(one, one)]
    nulls_match = any(k.nulls_match for k in keys)
    span = None
    if not nulls_match and not any(pa.types.is_floating(k.left.dtype) for k in keys):
        span = between(rest, plan.left.output, plan.right.output)
    mine_too, theirs_too = _ends(span)
    here, mine = _keyed(lefts, [*(k.left for k in keys), *mine_too])
    there, theirs = _keyed(rights, [*(k.right for k in keys), *theirs_too])
    here, mine = normalised(here, mine)
    there, theirs = normalised(there, theirs)
    pairs = None
    read_here, read_there = set(mine), set(theirs)
    if span is not None:
        ends = (*mine[len(keys) :], *theirs[len(keys) :])
        point, low, high = ends if span.on_left else (ends[2], *ends[:2])
        mine, theirs = mine[: len(keys)], theirs[: len(keys)]
        on_left = span.on_left

        def pairs(s: Sides[Stream]) -> Stream:
            return interval_pairs(s, point, low, high, on_left=on_left)

    if nulls_match:
        rest += [Call("is not null", (k.left,), BOOLEAN, False) for k in keys if not k.nulls_match]
    # A column that only the key reads is in no pair, and kept nowhere but in the key.
    read = keys_of(*rest)
    used_left = _used(left, plan.left.output, read, {i for i in shape.needed if i < width})
    used_right = _used(right, plan.right.output, read, {i - width for i in shape.needed if i >= width})
    if plan.kind not in ("inner", "cross"):
        # Rows with and without a partner come from one arrangement, so they have the same columns.
        here, there = _only(here, read_here.union(used_left)), _only(there, read_there.union(used_right))
        if rest:
            used_left, used_right = here.columns, there.columns
    if not used_left and not used_right:
        used_left = here.columns[:1]
    right_names = dict(zip(used_right, names_for(used_right, used_left), strict=True))
    sides = Sides(here, there, mine, theirs, {c: c for c in used_left}, right_names, nulls_match, sql, pairs)
    pair_names = {**lefts.names}
    for key, column in rights.names.items():
        if column in right_names:
            pair_names.setdefault(key, right_names[column])
    condition = conjunction(rest)

    def where(pairs: Stream) -> Stream:
        assert condition is not None
        scope = Scope(pairs, pair_names)
        return filtered(pairs, scope.program(condition), scope.text(condition))

    found = sides_joined(sides, plan.kind, None if condition is None else where)
    columns = [c if i in shape.needed else None for i, c in enumerate(left.columns)]
    if plan.kind not in ("semi", "anti"):
        columns += [
            right_names.get(c) if c and i + width in shape.needed else None for i, c in enumerate(right.columns)
        ]
    kept = list(dict.fromkeys(c for c in columns if c is not None)) or found.columns[:1]
    if len(kept) < len(found.columns):
        found = found.projected([(c, c) for c in kept], label="columns", detail=", ".join(kept))
    return Rows(found, tuple(columns))


def _used(rows: Rows, output: Sequence[Attribute], read: set[str], needed: set[int]) -> list[str]:
    """The columns of one side that are read above, or have one of these keys."""
    found = [
        c for i, (a, c) in enumerate(zip(output, rows.columns, strict=True)) if c and (i in needed or a.key in read)
    ]
    return list(dict.fromkeys(found))


def _only(stream: Stream, read: Collection[str]) -> Stream:
    """A stream without the columns that nobody reads."""
    kept = [c for c in stream.columns if c in read] or stream.columns[:1]
    if len(kept) == len(stream.columns):
        return stream
    return stream.projected([(c, c) for c in kept], label="columns", detail=", ".join(kept))


def _ends(span: Between | None) -> tuple[list[Node], list[Node]]:
    """What an interval reads of the left and of the right rows."""
    if span is None:
        return [], []
    ends = [span.low, span.high]
    return ([span.point], ends) if span.on_left else (ends, [span.point])


def _keyed(scope: Scope, nodes: Sequence[Node]) -> tuple[Stream, list[str]]:
    """The stream with columns for the keys that are no columns yet, and the names of all keys."""
    stream = scope.stream
    keys: list[str] = []
    computed: list[tuple[str, Computed]] = []
    for node in nodes:
        # Zeros of floats are brought together afterwards.
        how = scope.nested_key(node)
        if isinstance(how, str) and how not in keys:
            keys.append(how)
            continue
        name = f"{_KEY} {len(computed)}"
        computed.append((name, how))
        keys.append(name)
    if computed:
        detail = ", ".join(scope.text(n) for n in nodes)
        passed: list[tuple[str, Computed]] = [(c, c) for c in stream.columns]
        stream = stream.projected([*passed, *computed], label="keys", detail=detail)
    return stream, keys


FORM = Form(_needs, _rows)
