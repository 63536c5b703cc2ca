"""Dataflow: operators put together, once for each shard.

A dataflow knows which vertex reads which, and adds what is missing between them: an exchange where an operator needs
all rows of a key on one shard, and an arrangement, the same one for all who read a stream by the same key. It does not
run: a circuit runs it step by step, and a recursion round by round inside a step.

Rows that agree in a key agree in some of its columns. So rows that are placed by these already stay where they are; if
an operator brings two streams together, both have to be placed by the same part of the key, in one order. Where rows
are placed is decided without regard to the number of shards, since it says which arrangements can be shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from headwater.base.change import WEIGHT
from headwater.base.errors import InputError, SchemaError
from headwater.incremental.arrangement import Arrangement
from headwater.incremental.dataflow.vertex import Exchange, Vertex
from headwater.incremental.layout import Order
from headwater.incremental.operators.arrange import Arrange
from headwater.incremental.operators.node import Node
from headwater.incremental.operators.settled import Below

__all__ = ["Build", "Dataflow", "Keys", "check_names"]

Build = Callable[..., Node]
Keys = Sequence[str] | None


class Dataflow:
    """Vertices, and what connects them."""

    def __init__(self, name: str, *, shards: int = 1) -> None:
        if isinstance(shards, bool) or not isinstance(shards, int) or shards < 1:
            raise InputError.bad_argument("shards", shards, "a whole number of at least 1")
        self.name = name
        self.shards = shards
        self.steps = 0
        self.vertices: list[Vertex] = []
        self.fingerprints: list[str] = []
        """The names that `fingerprints` gives the vertices, once it has."""
        self.captions: dict[str, str] = {}
        """Details and pieces of SQL that are shown in other words, by what state is found by."""
        self.inputs: dict[str, Vertex] = {}
        self.outputs: dict[str, Vertex] = {}
        self._known: dict[tuple[object, ...], Vertex] = {}
        self._arrangements: dict[tuple[object, ...], list[Vertex]] = {}
        self._group: str | None = None

    def add(
        self,
        build: Build,
        inputs: Sequence[Vertex],
        *,
        by: Sequence[Keys] | None = None,
        place: Sequence[Keys] | None = None,
    ) -> Vertex:
        """Put a node into the circuit: ``build`` is called once a shard, with the nodes of the inputs.

        ``by`` says for each input by which columns its rows have to be together: None for any place. ``place`` are
        those of them that rows are placed by; if not given, a single input is left where it is if that will do.
        """
        if self.steps:
            raise InputError.has_run(self.name)
        by = by or [None] * len(inputs)
        if place is None:
            place = (
                by if len(inputs) > 1 else [None if keys is None else self.placement(inputs[0], keys) for keys in by]
            )
        placed = [
            vertex if keys is None else self._exchanged(vertex, keys)
            for vertex, keys in zip(inputs, place, strict=True)
        ]
        nodes = [build(*(v.nodes[s] for v in placed)) for s in range(self.shards)]
        check_names(nodes[0].layout.names)
        vertex = Vertex(len(self.vertices), nodes, tuple(placed), group=self._group)
        vertex.signed = nodes[0].kind not in {"cogroup", "nest"} and any(v.signed for v in placed)
        if by and by[0] is not None and place[0] is not None:
            keys = list(by[0])
            vertex.placing = tuple(keys.index(name) for name in place[0])
        elif inputs and inputs[0].node.kind == "arrange":
            vertex.placing = inputs[0].placing
        for node in nodes:
            node.id = vertex.id
        self.vertices.append(vertex)
        return vertex

    @staticmethod
    def placement(vertex: Vertex, keys: Sequence[str]) -> tuple[str, ...]:
        """The columns that rows are placed by, if they are to be together by a key: those of the key that they are
        placed by already, or all of it.
        """
        placed = vertex.placed_by
        return placed if placed and set(placed) <= set(keys) else tuple(keys)

    def meeting(
        self, left: Vertex, mine: Sequence[str], right: Vertex, theirs: Sequence[str]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The columns by which the rows of two streams are placed that meet by a key: such that as few as possible
        move.
        """
        own = [one.placed_by for one in self._arrangements.get((left.id, tuple(mine), ()), ())]
        own.append(left.placed_by)
        others = [one.placed_by for one in self._arrangements.get((right.id, tuple(theirs), ()), ())]
        others.append(right.placed_by)
        for placed in own:
            if placed and set(placed) <= set(mine):
                return placed, tuple(theirs[mine.index(name)] for name in placed)
        for placed in others:
            if placed and set(placed) <= set(theirs):
                return tuple(mine[theirs.index(name)] for name in placed), placed
        return tuple(mine), tuple(theirs)

    def _exchanged(self, vertex: Vertex, keys: Sequence[str]) -> Vertex:
        if self.shards == 1 or vertex.placed_by == tuple(keys):
            return vertex
        found = self._known.get(("exchange", vertex.id, *keys))
        if found is None:
            found = self.add(lambda source: Exchange(source, keys), [vertex])
            found.placed_by = tuple(keys)
            self._known["exchange", vertex.id, *keys] = found
        return found

    def arranged(
        self,
        vertex: Vertex,
        keys: Sequence[str],
        order: Sequence[Order] = (),
        *,
        columns: Iterable[str] | None = None,
        placed_by: int | None = None,
        place: Sequence[str] | None = None,
        alone: bool = False,
    ) -> Vertex:
        """The vertex that keeps a stream by a key; the same for all who ask for the same.

        ``columns`` are those that the caller reads, beside the key and the order; all of them if not given. No others
        are kept, so rows that differ in others become one row with the sum of their weights. ``placed_by`` is how many
        columns of the key decide on the shard, if not all; or ``place`` says which. Who reads it ``alone``, and not
        beside another stream, takes any place where rows of a key are together.
        """
        keys = list(keys)
        by = keys[:placed_by]
        wanted = tuple(place) if place is not None else self.placement(vertex, by) if alone else tuple(by)
        read = set(vertex.layout.names if columns is None else columns)
        read |= {o.column for o in order}
        known = self._arrangements.setdefault((vertex.id, tuple(keys), tuple(order)), [])
        for found in known:
            if read <= set(found.layout.names) and (alone or found.placed_by == wanted):
                return found
        kept = [*keys, *(c for c in vertex.layout.names if c in read and c not in keys)]
        found = self.add(
            lambda source: Arrange(source, Arrangement(source.layout, kept, keys=len(keys), order=order)),
            [vertex],
            by=[by],
            place=[wanted],
        )
        found.placed_by = wanted
        known.append(found)
        return found

    def once(self, name: tuple[object, ...], build: Callable[[], Vertex]) -> Vertex:
        """A vertex that is built when it is first asked for by this name."""
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = build()
        return found

    def forgetting(self, vertex: Vertex) -> Vertex:
        """Let the state of a vertex behind its first mark go; give the vertex."""
        if vertex.marks:
            column, mark = next(iter(vertex.marks.items()))
            vertex.settled = Below(column, mark)
        return vertex

    def publish(self, name: str, vertex: Vertex) -> None:
        """Make the changes of a vertex an output, under a name."""
        if self.steps:
            raise InputError.has_run(self.name)
        if name in self.outputs:
            raise InputError.port_taken("output", name)
        self.outputs[name] = vertex


def check_names(names: Sequence[str]) -> None:
    """Refuse columns that stand twice, or have the name of the weight."""
    twice = [n for i, n in enumerate(names) if n in names[:i]]
    if twice or WEIGHT in names:
        raise SchemaError.duplicate_columns(twice or [WEIGHT])
