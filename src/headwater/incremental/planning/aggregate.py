"""Aggregate: arguments are computed for each row, and aggregates are kept for each key.

GROUPING SETS, ROLLUP and CUBE are one aggregation too: each row is taken once for every set, with nulls for the keys
outside of it and the number of the set beside it, and the number is one more key. So a set that is written twice gives
its rows twice, as in Spark, and ``grouping()`` is a function of the number. Aggregates see the row as it was.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.incremental.aggregates.aggregation import Aggregation
from headwater.incremental.aggregates.calls import aggregation_of
from headwater.incremental.aggregates.linear import CountRows
from headwater.incremental.circuit.stream import Stream
from headwater.incremental.operators.relabel import Relabel
from headwater.incremental.planning.arguments import Arguments
from headwater.incremental.planning.builder import Builder, Form
from headwater.incremental.planning.rows import Computed, Rows, Scope, line_of, names_for
from headwater.incremental.planning.shape import Shape, keys_of
from headwater.incremental.recipes.aggregates import kept
from headwater.sql.nodes import AggregateCall, Call, Column, Literal, Node, call
from headwater.sql.plan import Aggregate
from headwater.sql.plan.text import expression_text
from headwater.sql.types import BOOLEAN, INT
from headwater.sql.vectorised import Program

__all__ = ["FORM"]

_SET = "\0set"


def _wanted(shape: Shape) -> list[int]:
    """The places of the aggregates that somebody reads."""
    plan = shape.plan
    assert isinstance(plan, Aggregate)
    first = len(plan.keys)
    return [i for i in range(len(plan.aggregates)) if i + first in shape.needed]


def _needs(shape: Shape) -> None:
    plan = shape.plan
    assert isinstance(plan, Aggregate)
    nodes = [k.node for k in plan.keys]
    nodes += [plan.aggregates[i].node for i in _wanted(shape) if isinstance(plan.aggregates[i].node, AggregateCall)]
    shape.children[0].need_keys(plan.child.output, keys_of(*nodes))


def _rows(builder: Builder, shape: Shape) -> Rows:
    plan = shape.plan
    assert isinstance(plan, Aggregate)
    child = builder.child(shape)
    scope = child.scope(plan.child.output)
    sql = line_of(plan, scope)
    keys = [scope.nested_key(k.node) for k in plan.keys]
    wanted = [k.attribute.name for k in plan.keys] + [a.attribute.name for a in plan.aggregates]
    names = names_for(wanted, scope.stream.columns)
    key_names, value_names = names[: len(keys)], names[len(keys) :]
    arguments = Arguments(scope)
    chosen: list[Aggregation] = []
    for i in _wanted(shape):
        node = plan.aggregates[i].node
        if isinstance(node, AggregateCall):
            chosen.append(aggregation_of(node, value_names[i], arguments.column, arguments.schema))
    # A key loses the sign of its zeros, and an aggregate of the same column must not.
    read = {c for a in chosen for c in (*a.arguments, a.where)}
    keys = [scope.key(k.node) if how in read else how for k, how in zip(plan.keys, keys, strict=True)]
    if plan.sets is not None and keys:
        return _with_sets(shape, plan, scope, keys, names, chosen, arguments, sql)
    if not chosen and not keys:
        chosen = [CountRows(names_for(["count"], names)[0])]
    stream, grouped = _keyed(scope.stream, keys, key_names, arguments)
    found = kept(stream, grouped, chosen, sql=sql) if chosen else stream.select(*grouped).distinct()
    columns: list[str | None] = [*grouped]
    columns += [value_names[i] if i in _wanted(shape) else None for i in range(len(plan.aggregates))]
    return Rows(found, tuple(columns))


def _keyed(
    stream: Stream, keys: Sequence[Computed], names: Sequence[str], arguments: Arguments
) -> tuple[Stream, list[str]]:
    """The stream with the columns of keys and arguments, and the names of the keys."""
    grouped: list[str] = []
    computed: list[tuple[str, Computed]] = []
    for key, name in zip(keys, names, strict=True):
        if isinstance(key, str) and key not in grouped:
            grouped.append(key)
            continue
        (one,) = names_for([name], [*stream.columns, *names, *grouped])
        computed.append((one, key))
        grouped.append(one)
    if not computed and not arguments.computed:
        return stream, grouped
    columns: list[tuple[str, Computed]] = [(c, c) for c in stream.columns]
    columns += [*computed, *arguments.computed.items()]
    texts = [k.text for k in (*keys, *arguments.computed.values()) if isinstance(k, Program)]
    return stream.projected(columns, label="arguments", detail=", ".join(texts)), grouped


def _with_sets(
    shape: Shape,
    plan: Aggregate,
    scope: Scope,
    keys: Sequence[Computed],
    names: Sequence[str],
    chosen: list[Aggregation],
    arguments: Arguments,
    sql: str,
) -> Rows:
    """One aggregation by the keys and the number of the set."""
    assert plan.sets is not None
    stream = scope.stream
    grouped = [f"\0key {i}" for i in range(len(keys))]
    passed: list[tuple[str, Computed]] = [(c, c) for c in stream.columns]
    passed += list(arguments.computed.items())
    sides = []
    for number, chosen_keys in enumerate(plan.sets):
        columns = [*passed]
        for i, key in enumerate(keys):
            null = Literal(None, plan.keys[i].node.dtype)
            columns.append((grouped[i], key if i in chosen_keys else Program(null, stream.schema)))
        columns.append((_SET, Program(Literal(number, INT), stream.schema)))
        detail = "(" + ", ".join(plan.keys[i].attribute.name for i in chosen_keys) + ")"
        sides.append(stream.projected(columns, label="grouping set", detail=detail))
    schema = pa.schema([f.with_nullable(f.nullable or f.name in grouped) for f in sides[0].schema])
    sides = [s if s.schema.equals(schema) else s._lifted(lambda x: Relabel(x, schema)) for s in sides]
    union = sides[0].plus(*sides[1:]) if len(sides) > 1 else sides[0]
    by = [*grouped, _SET]
    found = kept(union, by, chosen, sql=sql) if chosen else union.select(*by).distinct()
    wanted = _wanted(shape)
    value_names = names[len(keys) :]
    finished: list[tuple[str, Computed]] = list(zip(names[: len(keys)], grouped, strict=True))
    for i in wanted:
        node = plan.aggregates[i].node
        how: Computed = value_names[i]
        if isinstance(node, Call):
            how = Program(_grouping(node, plan), found.schema, "grouping")
        finished.append((value_names[i], how))
    found = found.projected(finished, label="finish", detail=", ".join(n for n, _ in finished))
    given: list[str | None] = [*names[: len(keys)]]
    given += [value_names[i] if i in wanted else None for i in range(len(plan.aggregates))]
    return Rows(found, tuple(given))


def _grouping(node: Call, plan: Aggregate) -> Node:
    """``grouping(a, b)`` by the number of the set: a bit for each argument, 1 where it is not grouped by."""
    assert node.op == "grouping" and plan.sets is not None
    keys = [expression_text(k.node) for k in plan.keys]
    places = [keys.index(expression_text(arg)) for arg in node.args]
    number = Column(None, (_SET,), INT)
    args: list[Node] = []
    for at, chosen in enumerate(plan.sets[:-1]):
        args += [call("=", (number, Literal(at, INT)), BOOLEAN), Literal(_bits(places, chosen), node.dtype)]
    return call("case", (*args, Literal(_bits(places, plan.sets[-1]), node.dtype)), node.dtype)


def _bits(places: Sequence[int], chosen: Sequence[int]) -> int:
    found = 0
    for place in places:
        found = 2 * found + (place not in chosen)
    return found


FORM = Form(_needs, _rows)
