"""Backfilling: a circuit that was changed begins with the state of the parts that are the same, and computes the rest.

A new definition often has old parts: the same joins below another aggregate, one branch more. State is named by what it
is the state of (`headwater.incremental.dataflow.fingerprint`), so the parts that are the same are found. What is new
has to be given everything that the old inputs have said so far, as one step. An arrangement that is the same holds just
that, as of the moment at which it was saved; so it speaks for everything below it, which is neither computed nor read
again. Only the sources of what is really new are read, at the same versions.

`Backfill.sources` says which these are. Then `run` makes the step: kept arrangements give all that they hold, as if it
had just come; sources give what was fed to them; and in the end the kept state takes the place of what was staged for
it, in the files that it already has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.incremental.circuit.outputs import Outputs
from headwater.incremental.dataflow.fingerprint import fingerprints
from headwater.incremental.operators.arrange import Arrange
from headwater.incremental.zset import ZSet, concatenate

if TYPE_CHECKING:
    from headwater.incremental.circuit.circuit import Circuit
    from headwater.incremental.dataflow.vertex import Vertex
    from headwater.incremental.manifest import Manifest
    from headwater.incremental.store import Store

__all__ = ["Backfill"]


class Backfill:
    """A circuit without state, and the saved state of an older one."""

    def __init__(self, circuit: Circuit, store: Store, manifest: Manifest) -> None:
        self._circuit, self._store, self._manifest = circuit, store, manifest
        self._names = fingerprints(circuit)
        same = int(manifest.extra["shards"]) == circuit.shards
        self.kept: list[Vertex] = [v for v in circuit.vertices if same and v.node.traces() and self._is_saved(v)]
        """The vertices whose state is there."""
        speaking = {v.id for v in self.kept if isinstance(v.node, Arrange) and self._is_whole(v)}
        self._needed: set[int] = set()
        waiting = list(circuit.outputs.values())
        while waiting:
            vertex = waiting.pop()
            if vertex.id not in self._needed:
                self._needed.add(vertex.id)
                waiting += () if vertex.id in speaking else vertex.inputs
        self._speaking = speaking & self._needed

    def _is_saved(self, vertex: Vertex) -> bool:
        return all(
            f"{self._names[vertex.id]}/{name}/{s}" in self._manifest.traces
            for s, node in enumerate(vertex.nodes)
            for name in node.traces()
        )

    def _is_whole(self, vertex: Vertex) -> bool:
        """Has it all rows that ever came? Not if those behind a watermark were let go."""
        return all(
            self._manifest.traces[f"{self._names[vertex.id]}/trace/{s}"].bound is None for s in range(len(vertex.nodes))
        )

    @property
    def sources(self) -> set[str]:
        """The inputs that have to be fed with all they have."""
        return {name for name, v in self._circuit.inputs.items() if v.id in self._needed}

    def run(self) -> Outputs:
        """Make the step, and give all rows of the outputs;
        it is the ``step`` of a transaction in which `sources` were fed.
        """
        circuit = self._circuit
        values: list[list[ZSet]] = []
        try:
            for vertex in circuit.vertices:
                if vertex.id in self._speaking:
                    values.append([self._spoken(vertex, s) for s in range(circuit.shards)])
                elif vertex.id in self._needed:
                    values.append(circuit.runner.evaluated(vertex, values))
                else:
                    values.append([node.empty for node in vertex.nodes])
            found = {n: concatenate(values[v.id], v.layout).consolidate() for n, v in circuit.outputs.items()}
        except BaseException:
            circuit.rollback()
            raise
        for vertex in circuit.vertices:
            for node in vertex.nodes:
                node.commit()
        for vertex in self.kept:
            self._load(vertex)
        circuit.steps = self._manifest.epoch + 1
        return Outputs(found)

    def _spoken(self, vertex: Vertex, shard: int) -> ZSet:
        """All that an arrangement holds, as if it had come in this step."""
        node = vertex.nodes[shard]
        assert isinstance(node, Arrange)
        saved = self._store.trace(self._manifest, f"{self._names[vertex.id]}/trace/{shard}", node.layout)
        return node.staged(saved.zset())

    def _load(self, vertex: Vertex) -> None:
        for s, node in enumerate(vertex.nodes):
            for name, trace in node.traces().items():
                self._store.load(self._manifest, f"{self._names[vertex.id]}/{name}/{s}", trace)
