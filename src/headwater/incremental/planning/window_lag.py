"""lag and lead in a window; a default that is no constant is chosen afterwards, where there was no such row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headwater.base.errors import UnsupportedError
from headwater.incremental.circuit.stream import Stream
from headwater.incremental.operators.lag import Lag, Shift
from headwater.incremental.planning.order import order_columns
from headwater.incremental.planning.partition import placed_within
from headwater.incremental.planning.rows import Computed, Scope
from headwater.incremental.planning.shape import keys_of
from headwater.sql.nodes import Call, Column, Literal, Ordering, WindowCall, call
from headwater.sql.types import BOOLEAN
from headwater.sql.vectorised import Program

__all__ = ["shifted"]

_THERE = "\0there"


def shifted(
    scope: Scope,
    stream: Stream,
    keys: Sequence[str],
    order: Sequence[Ordering],
    calls: Mapping[str, WindowCall],
    kept: Sequence[tuple[str, str]],
    sql: str,
) -> Stream:
    """The stream with a column for each call."""
    shifts: list[Shift] = []
    computed: list[tuple[str, Computed]] = []
    chosen: dict[str, tuple[str, WindowCall]] = {}
    for name, one in calls.items():
        if one.ignore_nulls:
            why = "it looks past any number of rows"
            raise UnsupportedError.operation(f"{one.op}() IGNORE NULLS", why, "filter the nulls before").about(one.op)
        value, offset, default = (*one.args, Literal(1, BOOLEAN), Literal(None, one.dtype))[:3]
        assert isinstance(offset, Literal) and isinstance(offset.value, int), "an offset is a constant"
        places = offset.value if one.op == "lag" else -offset.value
        how = scope.computed(value)
        column = how if isinstance(how, str) else f"\0value {len(computed)}"
        if not isinstance(how, str):
            computed.append((column, how))
        constant = default.value if isinstance(default, Literal) else None
        shifts.append(Shift(name, column, places, constant))
        if not isinstance(default, Literal):
            there = f"{_THERE} {name}"
            shifts.append(Shift(there, _THERE, places))
            chosen[name] = (there, one)
    if chosen:
        computed.append((_THERE, scope.program(Literal(True, BOOLEAN))))
    defaults = {scope.names[key] for _, one in chosen.values() for key in keys_of(one.args[2])}
    passed_on = [*kept, *((c, c) for c in scope.stream.columns if c in defaults and (c, c) not in kept)]
    source, ordered = order_columns(scope, order, stream)
    if computed:
        passed: list[tuple[str, Computed]] = [(c, c) for c in source.columns]
        detail = ", ".join(scope.text(one.args[0]) for one in calls.values())
        source = source.projected([*passed, *computed], label="arguments", detail=detail)
    circuit = source.circuit
    read = [*(c for c, _ in passed_on), *(s.column for s in shifts)]
    arranged = circuit.arranged(source.vertex, keys, ordered, columns=read, alone=True)
    vertex = circuit.add(lambda s: Lag(s, shifts, columns=passed_on, sql=sql), [arranged])
    vertex.placed_by = placed_within(arranged, kept)
    found = Stream(circuit, vertex)
    if not chosen:
        return found
    after = Scope(found, scope.names)
    finished: list[tuple[str, Computed]] = [(c, c) for c, _ in kept]
    for name, one in calls.items():
        if name not in chosen:
            finished.append((name, name))
            continue
        outside = Call("is null", (Column(None, (chosen[name][0],), BOOLEAN),), BOOLEAN, False)
        default = after.renamed(one.args[2])
        pick = call("case", (outside, default, Column(None, (name,), one.dtype)), one.dtype)
        finished.append((name, Program(pick, found.schema, f"{one.op}() or its default")))
    return found.projected(finished, label="defaults", detail=", ".join(chosen))
