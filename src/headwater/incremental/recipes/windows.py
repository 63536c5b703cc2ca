"""Windows of time on streams: recipes over `Windows` and `Sessions` that carry watermarks along."""

from __future__ import annotations

from headwater.base.errors import NotFoundError
from headwater.base.spans import distance, span
from headwater.incremental.layout import Order
from headwater.incremental.operators.sessions import Sessions
from headwater.incremental.operators.settled import Below, Closed
from headwater.incremental.operators.windows import Windows
from headwater.incremental.recipes.row_stream import Length, S
from headwater.incremental.recipes.zero_keys import normalised

__all__ = ["sessions", "windowed"]


def windowed(stream: S, time: str, size: Length, every: Length | None, offset: Length) -> S:
    """See `Stream.window`."""
    _known(stream, time)
    wide, hop, shift_by = distance(size), distance(every), distance(offset)
    circuit = stream.circuit
    vertex = circuit.add(lambda s: Windows(s, time, size=wide, every=hop, offset=shift_by), [stream.vertex])
    vertex.marks = {c: m for c, m in stream.vertex.marks.items() if c in vertex.layout.schema.names}
    mark = stream.vertex.marks.get(time)
    if mark is not None:
        field = stream.schema.field(time)
        ticks, step, shift = span(size, field), span(every if every is not None else size, field), span(offset, field)

        def start(now: int) -> int:
            """The earliest begin of a window that still gets rows."""
            last = (now - shift) // step * step + shift
            return int(last - (ticks - 1) // step * step)

        starts = mark.moved(start)
        vertex.marks |= {"window_start": starts, "window_end": starts.moved(lambda begin: begin + ticks)}
    return stream.at(vertex)


def sessions(stream: S, time: str, gap: Length, by: list[str]) -> S:
    """See `Stream.session`."""
    for name in (time, *by):
        _known(stream, name)
    circuit = stream.circuit
    keyed, keys = normalised(stream, by)
    arranged = circuit.arranged(keyed.vertex, keys, [Order(time)], alone=True)
    columns = [(c, c) for c in stream.columns]
    length = distance(gap)
    vertex = circuit.add(lambda s: Sessions(s, length, columns=columns), [arranged])
    vertex.placed_by = arranged.placed_by if keys == by else None
    marks = stream.vertex.marks
    vertex.marks = {k: marks[k] for k in by if k in marks}
    mark, node = marks.get(time), vertex.node
    assert isinstance(node, Sessions)
    if mark is None:
        vertex.needs = tuple(Below(k, m) for k, m in list(vertex.marks.items())[:1])
    else:
        vertex.needs = (Closed(time, mark, node.gap),)
        # Whatever a row touches ends after it. Its begin, and the times of the other rows, may be as old as can be.
        vertex.marks["session_end"] = mark
    return stream.at(vertex)


def _known(stream: S, name: str) -> None:
    if name not in stream.columns:
        raise NotFoundError.column(name, stream.columns, where="a window")
