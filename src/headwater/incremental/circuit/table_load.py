"""Whole tables into a circuit without state, as one step that never holds them at once.

The tables are fed one after the other, the smaller ones first, in pieces that go all the way through the circuit
(`headwater.incremental.circuit.table_stages`) before the next one is read. The state that comes out is that of the one
step it stands for, run for run; so is the answer. Until `finish` nothing is permanent, and an error anywhere leaves
the circuit without state, as it was.

>>> import headwater as hw, pyarrow as pa
>>> from headwater.incremental.circuit.table_load import TableLoad
>>> c = hw.Circuit()
>>> orders = c.input("orders", pa.schema([("customer", pa.string()), ("amount", pa.int64())]))
>>> orders.group_by("customer").agg(total="sum(amount)").output("spend")
>>> with TableLoad(c, {"orders": 3}) as load:
...     load.feed("orders", pa.table({"customer": ["ann", "bob"], "amount": [5, 7]}))
...     load.feed("orders", pa.table({"customer": ["ann"], "amount": [1]}))
...     outputs = load.finish()
>>> outputs["spend"].to_arrow().sort_by("customer").to_pylist()
[{'customer': 'ann', 'total': 6, '_weight': 1}, {'customer': 'bob', 'total': 7, '_weight': 1}]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from headwater.incremental.circuit import feeding
from headwater.incremental.circuit.outputs import Outputs
from headwater.incremental.circuit.sources import Source
from headwater.incremental.circuit.table_stages import PIECE_ROWS, Collected, Stage, stage_of
from headwater.incremental.zset import ZSet, concatenate

if TYPE_CHECKING:
    from types import TracebackType

    from headwater.incremental.circuit.circuit import Circuit
    from headwater.incremental.partitions import RunMaker

__all__ = ["TableLoad", "can_load"]


def can_load(circuit: Circuit) -> bool:
    """Whether tables can be given in pieces: on one shard, to inputs of plain rows, without cycles, before the first
    step.
    """
    if circuit.shards > 1 or circuit.steps or not all(isinstance(v.node, Source) for v in circuit.inputs.values()):
        return False
    return all(before.id < v.id for v in circuit.vertices for before in v.inputs)


class TableLoad:
    """One step of a circuit that has made none, of whole tables; a ``with`` block that rolls back unless `finish` was
    called.

    Parameters
    ----------
    circuit : Circuit
        `can_load` says yes
    expected : mapping of str to int
        about how many rows each input gets
    store : RunMaker, optional
        where large runs are written; without one they are made in memory
    """

    def __init__(self, circuit: Circuit, expected: Mapping[str, int], store: RunMaker | None = None) -> None:
        assert can_load(circuit), "a circuit without state, on one shard"
        self._circuit = circuit
        self._expected = dict(expected)
        self._sources: dict[str, Stage] = {}
        self._outputs: dict[str, Collected] = {}
        self._open = set(circuit.inputs)
        self._build(store)

    @property
    def order(self) -> list[str]:
        """The inputs, in the order in which they should be fed: the smaller first, so that the larger look up in
        them.
        """
        return sorted(self._circuit.inputs, key=lambda name: self._expected.get(name, 0))

    def _build(self, store: RunMaker | None) -> None:
        circuit = self._circuit
        names = {v.id: name for name, v in circuit.inputs.items()}
        # A join may give more rows than it is given; what comes of it is expected to be as much as the largest table.
        expected: dict[int, int] = {}
        stages: dict[int, Stage] = {}
        for entry in circuit.schedule().entries:
            if entry.id in names and not entry.inputs:
                stage: Stage = Collected(entry, entry.node.layout)
                self._sources[names[entry.id]] = stage
                expected[entry.id] = self._expected.get(names[entry.id], 0)
            else:
                expected[entry.id] = max((expected[i] for i in entry.inputs), default=0)
                stage = stage_of(entry, store, expected[entry.id])
                for port, i in enumerate(entry.inputs):
                    stages[i].readers.append((stage, port))
            stages[entry.id] = stage
        for name, vertex in circuit.outputs.items():
            self._outputs[name] = given = Collected(stages[vertex.id].entry, vertex.layout)
            stages[vertex.id].readers.append((given, 0))
        self._stages = list(stages.values())
        self._constants = [s for s in self._stages if not isinstance(s, Collected) and not s.entry.inputs]

    def _begin(self) -> None:
        """Let constants give their rows, which are few."""
        constants, self._constants = self._constants, []
        for stage in constants:
            stage.timed(stage.finish)
            stage.timed(stage.end)

    def feed(self, name: str, rows: pa.RecordBatch | pa.Table) -> None:
        """Take rows of an input, of which more may come."""
        self._begin()
        vertex = self._circuit.inputs[name]
        stage, figures = self._sources[name], vertex.figures
        for at in range(0, rows.num_rows, PIECE_ROWS):
            for piece in feeding.taken(vertex.node, rows.slice(at, PIECE_ROWS)):
                assert isinstance(piece, ZSet)
                figures.steps = 1
                figures.rows_out += len(piece)
                stage.hand_on(piece)

    def complete(self, name: str) -> None:
        """An input has no more rows."""
        self._begin()
        self._open.remove(name)
        self._sources[name].end()

    def finish(self, *, holds: bool = False) -> Outputs:
        """Complete what is open yet, make the state permanent unless it is held, and give the rows of the outputs."""
        circuit = self._circuit
        self._begin()
        for name in self.order:
            if name in self._open:
                self.complete(name)
        found = {name: concatenate(g.rows, g.layout).netted() for name, g in self._outputs.items()}
        for stage in self._stages:
            stage.entry.figures.seconds += stage.seconds
        self._outputs, self._stages = {}, []
        if not holds:
            circuit.commit()
        return Outputs(found)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._circuit.rollback()
