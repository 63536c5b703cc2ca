"""Circuits: streams of changes in, streams of changes out.

A circuit is built once, from inputs through operators to outputs, and then stepped: each step takes a change of some
inputs and gives the change of every output. After any number of steps the sum of an output's changes is what the
operators would compute from the sum of the inputs' changes; that is the whole promise, and it costs what the change
costs.

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

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.base.errors import InputError, NotFoundError
from headwater.base.schema import normalize_type
from headwater.incremental.circuit import durable, feeding
from headwater.incremental.circuit.drawing import graph_of, profile_of
from headwater.incremental.circuit.feedback import Feedback
from headwater.incremental.circuit.outputs import Outputs
from headwater.incremental.circuit.recursion import recursive
from headwater.incremental.circuit.running import Runner
from headwater.incremental.circuit.schedule import Schedule
from headwater.incremental.circuit.sources import Command, KeyedSource, Source
from headwater.incremental.circuit.stream import Stream
from headwater.incremental.dataflow import arguments
from headwater.incremental.dataflow.dataflow import Dataflow, check_names
from headwater.incremental.dataflow.vertex import Vertex
from headwater.incremental.zset import ZSet, concatenate

if TYPE_CHECKING:
    from headwater.incremental.store import Store
    from headwater.observe.graph import Graph

__all__ = ["Circuit", "Transaction"]


class Transaction:
    """Many steps that become one: see `Circuit.transaction`."""

    def __init__(self) -> None:
        self.outputs: Outputs | None = None
        self.step: Callable[[], Outputs] | None = None
        """What makes a step of it in the end, if it is not the circuit's own way."""
        self.holds = False
        """Whether the step is not permanent before `commit` is called, which has to be before the next step."""
        self.commit: Callable[[], None] | None = None


class Circuit(Dataflow):
    """A circuit of operators on changes.

    Parameters
    ----------
    name : str
        for pictures and messages
    shards : int
        how many parts the state is divided into; with more than one, large steps run on as many threads
    """

    def __init__(self, name: str = "circuit", *, shards: int = 1) -> None:
        super().__init__(name, shards=shards)
        self.runner = Runner(shards)
        self._transaction: Transaction | None = None
        self._schedule: Schedule | None = None

    # -- building --------------------------------------------------------------------------------------------------

    def input(self, name: str, schema: pa.Schema, *, key: str | Sequence[str] | None = None) -> Stream:
        """An input of rows, or with ``key`` a table with a primary key.

        Rows are inserted and deleted by their weights. A table takes `Insert`, `Upsert`, `Delete` and `Patch`; rows
        given plainly are upserted.
        """
        arguments.texts("name", name)
        arguments.a_schema("schema", schema)
        if name in self.inputs:
            raise InputError.port_taken("input", name)
        schema = pa.schema([f.with_type(normalize_type(f.type)) for f in schema])
        check_names(schema.names)
        if key is None:
            vertex = self.add(lambda: Source(name, schema), [])
        else:
            keys = arguments.names("key", key)
            check_names(keys)
            arranged = feeding.keys_first(schema, keys, f"input `{name}`")
            vertex = self.add(lambda: KeyedSource(name, arranged, len(keys)), [])
            vertex.placed_by = tuple(keys)
            vertex.placing = tuple(range(len(keys)))
        self.inputs[name] = vertex
        stream = Stream(self, vertex)
        return stream if key is None or list(vertex.layout.names) == schema.names else stream.select(*schema.names)

    def output(self, name: str, stream: Stream) -> None:
        """Give a stream's changes from `step`, under a name."""
        self.publish(name, stream.vertex)

    def feedback(self, schema: pa.Schema) -> Feedback:
        """A stream that gives in each step what was given to it in the step before:
        ``f.connect(...)`` closes the cycle.
        """
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
            takes the variables and the ``outer`` streams, by name, as streams of an inner circuit, and gives the next
            value of each variable (or of the only one)
        most
            how many rounds to try before giving up
        distinct
            is a row kept once, however often it is found? If not, it is counted, and the body has to be linear in the
            variables

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
        return recursive(self, schemas, body, outer, most, distinct=distinct)

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
            transaction.commit = self.commit

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
            self.commit()
        return Outputs(outputs)

    def commit(self) -> None:
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
        return graph_of(self, self.schedule())

    def explain(self) -> str:
        """The circuit as text, a line for each operator."""
        return self.graph().text()

    def profile(self) -> pa.Table:
        """What each operator has done so far: rows, seconds, state; the slowest first."""
        return profile_of(self, self.schedule())

    # -- keeping it ------------------------------------------------------------------------------------------------

    def checkpoint(self, store: Store, extra: Any = None) -> str:
        """Make the state durable, at the price of what changed, and give the name of its manifest.

        ``extra`` is whatever belongs to it, as JSON: where the sources stand.
        """
        arguments.a_store(store)
        return durable.checkpoint(self, store, extra)

    def restore(self, store: Store, name: str | None = None) -> Any:
        """Take the state of the newest checkpoint, or of the one of this name; give the ``extra`` it was made with.

        The circuit has to be built as it was when the checkpoint was made; the number of shards may differ.
        """
        arguments.a_store(store)
        return durable.restore(self, store, name)

    def __repr__(self) -> str:
        return (
            f"Circuit({self.name!r}: {len(self.vertices)} operators, {len(self.inputs)} inputs, "
            f"{len(self.outputs)} outputs)"
        )
