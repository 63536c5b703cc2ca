"""Circuits: streams of changes in, streams of changes out.

A circuit is built once, from inputs through operators to outputs, and then stepped: each step takes a change of some inputs and gives the change of every
output. After any number of steps the sum of an output's changes is what the operators would compute from the sum of the inputs' changes; that
is the whole promise, and it costs what the change costs.

A step happens or it does not. If an operator fails on a row, the error names the row and the operator, the state is as
before, and the next step goes on from there. A `transaction` takes many steps' worth of input and makes one step of it.

>>> import headwater as hw, pyarrow as pa
>>> c = hw.Circuit()
>>> orders = c.input("orders", pa.schema([("customer", pa.string()), ("amount", pa.int64())]))
>>> orders.group_by("customer").agg(total="sum(amount)").output("spend")
>>> first = c.step(orders=pa.table({"customer": ["ann", "bob"], "amount": [5, 7]}))["spend"].to_arrow()
>>> first.sort_by("customer").to_pylist()
[{'customer': 'ann', 'total': 5, '_weight': 1}, {'customer': 'bob', 'total': 7, '_weight': 1}]
>>> old, new = (pa.table({"customer": ["bob"], "amount": [x]}) for x in (7, 9))
>>> c.step(orders=hw.ChangeBatch.diff(old, new))["spend"].to_arrow().sort_by("total").to_pylist()
[{'customer': 'bob', 'total': 7, '_weight': -1}, {'customer': 'bob', 'total': 9, '_weight': 1}]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.base.errors import InputError, NotFoundError
from headwater.base.schema import normalize_type
from headwater.incremental.arrangement import Arrangement
from headwater.incremental.circuit import checking, durable, feeding
from headwater.incremental.circuit.drawing import graph_of
from headwater.incremental.circuit.outputs import Outputs
from headwater.incremental.circuit.running import Runner
from headwater.incremental.circuit.schedule import Schedule
from headwater.incremental.circuit.sources import Command, KeyedSource, Source
from headwater.incremental.dataflow.vertex import Exchange, Vertex
from headwater.incremental.layout import Order
from headwater.incremental.operators.arrange import Arrange
from headwater.incremental.operators.node import Node
from headwater.incremental.operators.settled import Below
from headwater.incremental.zset import ZSet, concatenate

if TYPE_CHECKING:
    from headwater.incremental.circuit.feedback import Feedback
    from headwater.incremental.circuit.stream import Stream
    from headwater.incremental.store import Store
    from headwater.observe.graph import Graph

__all__ = ["Circuit", "Transaction"]

Build = Callable[..., Node]
Keys = Sequence[str] | None


class Transaction:
    """Many steps that become one: see `Circuit.transaction`."""

    def __init__(self) -> None:
        self.outputs: Outputs | None = None
        self.step: Callable[[], Outputs] | None = None
        """What makes a step of it in the end, if it is not the circuit's own way."""
        self.holds = False
        """Whether the step is not permanent before `commit` is called, which has to be before the next step."""
        self.commit: Callable[[], None] | None = None


class Circuit:
    """A circuit of operators on changes.

    Parameters
    ----------
    name : str
        for pictures and messages
    shards : int
        how many parts the state is divided into; with more than one, large steps run on as many threads
    """

    def __init__(self, name: str = "circuit", *, shards: int = 1) -> None:
        if isinstance(shards, bool) or not isinstance(shards, int) or shards < 1:
            raise InputError.bad_argument("shards", shards, "a whole number of at least 1")
        self.name = name
        self.shards = shards
        self.vertices: list[Vertex] = []
        self.fingerprints: list[str] = []
        """The names that `durable` gives the vertices, once it has."""
        self.captions: dict[str, str] = {}
        """Details and pieces of SQL that are shown in other words, by what state is found by."""
        self.inputs: dict[str, Vertex] = {}
        self.outputs: dict[str, Vertex] = {}
        self._known: dict[tuple[object, ...], Vertex] = {}
        self._arrangements: dict[tuple[object, ...], list[Vertex]] = {}
        self._transaction: Transaction | None = None
        self.runner = Runner(shards)
        self.steps = 0
        self._group: str | None = None
        self._schedule: Schedule | None = None

    # -- building --------------------------------------------------------------------------------------------------

    def input(self, name: str, schema: pa.Schema, *, key: str | Sequence[str] | None = None) -> Stream:
        """An input of rows, or with ``key`` a table with a primary key.

        Rows are inserted and deleted by their weights. A table takes `Insert`, `Upsert`, `Delete` and `Patch`; rows given plainly are upserted.
        """
        from headwater.incremental.circuit.stream import Stream

        checking.texts("name", name)
        checking.a_schema("schema", schema)
        if name in self.inputs:
            raise InputError.port_taken("input", name)
        schema = pa.schema([f.with_type(normalize_type(f.type)) for f in schema])
        feeding.check_names(schema.names)
        if key is None:
            vertex = self.add(lambda: Source(name, schema), [])
        else:
            keys = checking.names("key", key)
            feeding.check_names(keys)
            arranged = feeding.keys_first(schema, keys, f"input `{name}`")
            vertex = self.add(lambda: KeyedSource(name, arranged, len(keys)), [])
            vertex.placed_by = tuple(keys)
            vertex.keys = len(keys)
        self.inputs[name] = vertex
        stream = Stream(self, vertex)
        return stream if key is None or list(vertex.layout.names) == schema.names else stream.select(*schema.names)

    def output(self, name: str, stream: Stream) -> None:
        """Give a stream's changes from `step`, under a name."""
        if self.steps:
            raise InputError.has_run(self.name)
        if name in self.outputs:
            raise InputError.port_taken("output", name)
        self.outputs[name] = stream.vertex

    def feedback(self, schema: pa.Schema) -> Feedback:
        """A stream that gives in each step what was given to it in the step before: ``f.connect(...)`` closes the cycle."""
        from headwater.incremental.circuit.feedback import Feedback

        return Feedback(self, schema)

    def recursive(
        self,
        schemas: Mapping[str, pa.Schema],
        body: Callable[..., Stream | Mapping[str, Stream]],
        /,
        *,
        most: int = 100_000,
        distinct: bool = True,
        **outer: Stream,
    ) -> dict[str, Stream]:
        """The least fixpoint of some variables.

        Parameters
        ----------
        schemas
            the variables by name, with their columns
        body
            takes the variables and the ``outer`` streams, by name, as streams of an inner circuit, and gives the next value of each
            variable (or of the only one)
        most
            how many rounds to try before giving up
        distinct
            is a row kept once, however often it is found? If not, it is counted, and the body has to be linear in the variables

        Examples
        --------
        >>> import headwater as hw, pyarrow as pa
        >>> c = hw.Circuit()
        >>> edge = pa.schema([("a", pa.int64()), ("b", pa.int64())])
        >>> edges = c.input("edges", edge)
        >>> def step(path, edges):
        ...     longer = path.join(edges, [("b", "a")], suffix="2").select("a", b="b2")
        ...     return edges.plus(longer)
        >>> c.recursive({"path": edge}, step, edges=edges)["path"].output("path")
        >>> c.step(edges=pa.table({"a": [1, 2], "b": [2, 3]}))["path"].to_arrow().num_rows
        3
        >>> c.step(edges=pa.table({"a": [1], "b": [2], "_weight": [-1]}))["path"].to_arrow()["_weight"].to_pylist()
        [-1, -1]
        """
        from headwater.incremental.nesting.inner import recursive

        return recursive(self, schemas, body, outer, most, distinct=distinct)

    def add(self, build: Build, inputs: Sequence[Vertex], *, by: Sequence[Keys] | None = None) -> Vertex:
        """Put a node into the circuit: ``build`` is called once a shard, with the nodes of the inputs.

        ``by`` says for each input which columns its rows have to be placed by: None for any place.
        """
        if self.steps:
            raise InputError.has_run(self.name)
        placed = [
            vertex if keys is None else self._exchanged(vertex, keys)
            for vertex, keys in zip(inputs, by or [None] * len(inputs), strict=True)
        ]
        nodes = [build(*(v.nodes[s] for v in placed)) for s in range(self.shards)]
        feeding.check_names(nodes[0].layout.names)
        vertex = Vertex(len(self.vertices), nodes, tuple(placed), group=self._group)
        vertex.signed = nodes[0].kind not in {"cogroup", "nest"} and any(v.signed for v in placed)
        if by and by[0] is not None:
            vertex.keys = len(by[0])
        elif inputs and inputs[0].node.kind == "arrange":
            vertex.keys = inputs[0].layout.keys
        for node in nodes:
            node.id = vertex.id
        self.vertices.append(vertex)
        return vertex

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
    ) -> Vertex:
        """The vertex that keeps a stream by a key; the same for all who ask for the same.

        ``columns`` are those that the caller reads, beside the key and the order; all of them if not given. No others are kept, so rows that
        differ in others become one row with the sum of their weights. ``placed_by`` is how many columns of the key decide on the shard, if
        not all.
        """
        read = set(vertex.layout.names if columns is None else columns)
        read |= {o.column for o in order}
        known = self._arrangements.setdefault((vertex.id, tuple(keys), tuple(order)), [])
        for found in known:
            if read <= set(found.layout.names):
                return found
        kept = [*keys, *(c for c in vertex.layout.names if c in read and c not in keys)]
        found = self.add(
            lambda source: Arrange(source, Arrangement(source.layout, kept, keys=len(keys), order=order)),
            [vertex],
            by=[keys[:placed_by]],
        )
        found.placed_by = tuple(keys[:placed_by])
        known.append(found)
        return found

    def once(self, name: tuple[object, ...], build: Callable[[], Stream]) -> Stream:
        """A stream that is built when it is first asked for by this name."""
        from headwater.incremental.circuit.stream import Stream

        found = self._known.get(name)
        if found is None:
            found = self._known[name] = build().vertex
        return Stream(self, found)

    def forgetting(self, vertex: Vertex) -> Vertex:
        """Let the state of a vertex behind its first mark go; give the vertex."""
        if vertex.marks:
            column, mark = next(iter(vertex.marks.items()))
            vertex.settled = Below(column, mark)
        return vertex

    # -- running ---------------------------------------------------------------------------------------------------

    def step(self, changes: Mapping[str, Any] | None = None, /, **more: Any) -> Outputs:
        """Take changes of inputs, by name, and give the changes of the outputs.

        Inside a `transaction` the changes are only taken; the outputs come with its end, and are empty until then.
        """
        if changes is not None and not isinstance(changes, Mapping):
            raise InputError.bad_argument("changes", changes, "a mapping: the change of each input by its name")
        given = {**changes, **more} if changes else more
        taken = []
        for name, data in given.items():
            vertex = self._input(name)
            taken.append((vertex, feeding.taken(vertex.node, data)))
        for vertex, pieces in taken:
            self._feed(vertex, pieces)
        if self._transaction is not None:
            return Outputs({name: v.node.empty for name, v in self.outputs.items()})
        return self._run()

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Make one step of many: ``with c.transaction() as t: c.step(...); c.step(...)``, then ``t.outputs``.

        If the block raises, what it gave is forgotten.
        """
        if self._transaction is not None:
            raise InputError.in_transaction()
        self._transaction = Transaction()
        try:
            yield self._transaction
        except BaseException:
            self.rollback()
            self._transaction = None
            raise
        transaction, self._transaction = self._transaction, None
        if transaction.step is not None:
            transaction.outputs = transaction.step()
            return
        transaction.outputs = self._run(holds=transaction.holds)
        if transaction.holds:
            transaction.commit = self._commit

    def _input(self, name: str) -> Vertex:
        found = self.inputs.get(name)
        if found is None:
            raise NotFoundError.port("input", name, sorted(self.inputs))
        return found

    def _feed(self, vertex: Vertex, pieces: Sequence[ZSet | Command]) -> None:
        for piece in pieces:
            for node, part in zip(vertex.nodes, feeding.divided(piece, self.shards), strict=True):
                if part is None:
                    continue
                assert isinstance(node, Source | KeyedSource)
                node.pending.append(part)

    def schedule(self) -> Schedule:
        """What runs in which order, and what of it together."""
        found = self._schedule
        if found is None or found.made_for != (len(self.vertices), len(self.outputs)):
            found = self._schedule = Schedule(self.vertices, list(self.outputs.values()))
        return found

    def _run(self, *, holds: bool = False) -> Outputs:
        schedule = self.schedule()
        try:
            values = self.runner.values(schedule)
            outputs = {name: concatenate(values[v.id], v.layout).netted() for name, v in self.outputs.items()}
        except BaseException:
            self.rollback()
            raise
        if not holds:
            self._commit()
        return Outputs(outputs)

    def _commit(self) -> None:
        """Make a step permanent."""
        self.schedule().commit()
        self.steps += 1

    def rollback(self) -> None:
        """Forget what was fed and staged."""
        for vertex in self.vertices:
            for node in vertex.nodes:
                node.rollback()

    # -- looking at it ---------------------------------------------------------------------------------------------

    def graph(self) -> Graph:
        """The circuit as a picture: in a notebook it shows itself; ``.svg()``, ``.dot()`` and ``.text()`` write it."""
        return graph_of(self)

    def explain(self) -> str:
        """The circuit as text, a line for each operator."""
        return self.graph().text()

    def profile(self) -> pa.Table:
        """What each operator has done so far: rows, seconds, state; the slowest first."""
        from headwater.incremental.circuit.drawing import profile_of

        return profile_of(self)

    # -- keeping it ------------------------------------------------------------------------------------------------

    def checkpoint(self, store: Store, extra: Any = None) -> str:
        """Make the state durable, at the price of what changed, and give the name of its manifest.

        ``extra`` is whatever belongs to it, as JSON: where the sources stand.
        """
        checking.a_store(store)
        return durable.checkpoint(self, store, extra)

    def restore(self, store: Store, name: str | None = None) -> Any:
        """Take the state of the newest checkpoint, or of the one of this name; give the ``extra`` it was made with.

        The circuit has to be built as it was when the checkpoint was made; the number of shards may differ.
        """
        checking.a_store(store)
        return durable.restore(self, store, name)

    def __repr__(self) -> str:
        return f"Circuit({self.name!r}: {len(self.vertices)} operators, {len(self.inputs)} inputs, {len(self.outputs)} outputs)"
