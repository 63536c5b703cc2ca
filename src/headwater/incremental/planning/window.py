"""Window: columns made of a row's neighbours, one operator for each specification.

Functions with the same partition, order and frame are one node; nodes stand one after the other, each with the columns
of all before. Partitions and orders may be expressions. An aggregate over a whole partition is an aggregation joined
back to the rows: it changes only when its value does. Everything else reads slices of the partition
(`headwater.incremental.operators.frames`, `ranks`, `lag`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headwater.base.errors import UnsupportedError
from headwater.incremental.circuit.stream import Stream
from headwater.incremental.operators.ranks import Rank, Ranks
from headwater.incremental.planning.builder import Builder, Form
from headwater.incremental.planning.order import order_columns
from headwater.incremental.planning.partition import partitioned, placed_within
from headwater.incremental.planning.passes import pass_of
from headwater.incremental.planning.rows import Rows, Scope, names_for
from headwater.incremental.planning.session import session_rows
from headwater.incremental.planning.shape import Shape, keys_of
from headwater.incremental.planning.window_frames import framed, is_whole, joined_back, takes_a_row
from headwater.incremental.planning.window_lag import shifted
from headwater.sql.nodes import Literal, Node, Ordering, WindowCall
from headwater.sql.plan import Window
from headwater.sql.plan.text import expression_text, ordering_text

__all__ = ["FORM", "Spec"]


def _wanted(shape: Shape) -> list[int]:
    plan = shape.plan
    assert isinstance(plan, Window)
    first = len(plan.child.output)
    return [i for i in range(len(plan.items)) if i + first in shape.needed]


def _needs(shape: Shape) -> None:
    plan = shape.plan
    assert isinstance(plan, Window)
    first = len(plan.child.output)
    shape.children[0].need({i for i in shape.needed if i < first})
    shape.children[0].need_keys(plan.child.output, keys_of(*(plan.items[i].node for i in _wanted(shape))))


@dataclass
class Spec:
    """Functions over one partition, order and frame: by the names of the columns they give.

    ``within`` is the order in which the rows of a frame are taken, where it is more than the order.
    """

    partition: tuple[Node, ...]
    order: tuple[Ordering, ...]
    how: str
    within: tuple[Ordering, ...] = ()
    calls: dict[str, WindowCall] = field(default_factory=dict)


def _rows(builder: Builder, shape: Shape) -> Rows:
    plan = shape.plan
    assert isinstance(plan, Window)
    found = session_rows(builder, shape)
    if found is not None:
        return found
    child = builder.child(shape)
    scope = child.scope(plan.child.output)
    wanted = _wanted(shape)
    names = names_for([plan.items[i].attribute.name for i in wanted], child.stream.columns)
    specs: dict[tuple[object, ...], Spec] = {}
    for i, name in zip(wanted, names, strict=True):
        call = plan.items[i].node
        assert isinstance(call, WindowCall)
        how = _how(call)
        # A whole partition has no order.
        order = () if how == "whole" else call.order
        within = call.within if takes_a_row(call) and how != "whole" else ()
        key = (
            tuple(map(expression_text, call.partition)),
            tuple(map(ordering_text, order)),
            how,
            tuple(map(ordering_text, within)),
        )
        specs.setdefault(key, Spec(call.partition, order, how, within)).calls[name] = call
    stream = child.stream
    passed = [c if i in shape.needed else None for i, c in enumerate(child.columns)]
    todo = _shared(specs)
    for number, spec in enumerate(todo):
        sql = ", ".join(scope.text(c) for c in spec.calls.values())
        scope.caption(sql, ", ".join(scope.words(c) for c in spec.calls.values()))
        later = [call for other in todo[number + 1 :] for call in other.calls.values()]
        read = {*passed, *names, *(scope.names[key] for key in keys_of(*later))}
        kept = [(c, c) for c in stream.columns if c in read]
        stream = _with(Scope(stream, scope.names), spec, kept, sql)
    called = dict(zip(wanted, names, strict=True))
    return Rows(stream, (*passed, *(called.get(i) for i in range(len(plan.items)))))


def _shared(specs: Mapping[tuple[object, ...], Spec]) -> list[Spec]:
    """The specifications, those that do not care about the order within frames together with one that does."""
    found = dict(specs)
    for (*key, within), spec in specs.items():
        plain = found.get((*key, ())) if within else None
        if plain is not None:
            spec.calls.update(plain.calls)
            del found[(*key, ())]
    return list(found.values())


def _how(call: WindowCall) -> str:
    """Which operator a function belongs to."""
    found = pass_of(call)
    return "whole" if found.startswith("frame") and is_whole(call) else found


def _with(scope: Scope, spec: Spec, kept: list[tuple[str, str]], sql: str) -> Stream:
    """The stream with the columns of one specification, beside those that are ``kept``."""
    if spec.how == "whole":
        return joined_back(scope, spec.partition, spec.calls, kept, sql)
    stream = scope.stream
    keyed, keys = partitioned(scope, spec.partition)
    if spec.how in ("places", "shares"):
        stream, order = order_columns(scope, spec.order, keyed)
        ranks = [Rank(n, c.op, _buckets(c)) for n, c in spec.calls.items()]  # type: ignore[arg-type]
        arranged = stream.circuit.arranged(stream.vertex, keys, order, columns=[c for c, _ in kept], alone=True)
        vertex = stream.circuit.add(lambda s: Ranks(s, ranks, columns=kept, sql=sql), [arranged])
        vertex.placed_by = placed_within(arranged, kept)
    elif spec.how == "lag":
        return shifted(scope, keyed, keys, spec.order, spec.calls, kept, sql)
    else:
        vertex = framed(scope, keyed, keys, (spec.order, spec.within), spec.calls, kept, sql)
    return Stream(stream.circuit, vertex)


def _buckets(call: WindowCall) -> int:
    if call.op != "ntile":
        return 1
    (count,) = call.args
    if not isinstance(count, Literal) or not isinstance(count.value, int):
        raise UnsupportedError.operation("ntile()", "the number of its buckets is no constant", "write ntile(4)").about(
            "ntile"
        )
    return count.value


FORM = Form(_needs, _rows)
