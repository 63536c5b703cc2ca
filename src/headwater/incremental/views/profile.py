"""Profiles: what each stage of a refresh has done, and each operator in it, on either engine.

A stage is one job of Spark's tasks, or all that this process did. Its first row is the stage itself, without an
operator; its operators follow. What the figures count is the same on both engines:

- ``bytes_in``: the rows that were read of the sources, as Arrow holds them, without columns that are not read
- ``shuffled_bytes``: what went through Spark's shuffle; of an operator, what it sent there
- ``bytes_out``: data files of the view, and on Spark the rows that a job left for later ones
- state read: the run files that were opened, each once for a stage. They are mapped, so it is a bound of what was
  looked at; in object storage it is what a machine fetches that has none of them
- state written: the run files that the new state has and the one before had not. This process saves the state of a
  small refresh some time after it: until then nothing of it is written
- ``seconds``: of a stage the time that passed, of an operator the sum over its tasks. What Spark's tasks do before an
  exchange is counted in rows only
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.incremental.dataflow.fingerprint import fingerprints
from headwater.incremental.dataflow.vertex import Figures

if TYPE_CHECKING:
    from headwater.incremental.circuit.circuit import Circuit
    from headwater.incremental.dataflow.vertex import Vertex
    from headwater.incremental.traffic import Traffic

__all__ = ["LOCAL", "Begun", "Work", "begun", "local_works", "table_of", "work_of"]

LOCAL = "in process"
ADDRESSES = "publish"
"""What is said instead of an operator where the state is that of the view's rows: in which files they lie."""


@dataclass(slots=True, kw_only=True)
class Work:
    """What a stage did, or one of its operators."""

    engine: str
    stage: str
    operator: str | None = None
    detail: str = ""
    steps: int = 0
    rows_in: int = 0
    bytes_in: int = 0
    shuffled_bytes: int = 0
    rows_out: int = 0
    bytes_out: int = 0
    state_rows_read: int = 0
    state_bytes_read: int = 0
    state_rows_written: int = 0
    state_bytes_written: int = 0
    seconds: float = 0.0
    sql: str = ""

    def read(self, rows: int, size: int) -> None:
        """Count state that was opened."""
        self.state_rows_read += rows
        self.state_bytes_read += size

    def wrote(self, rows: int, size: int) -> None:
        """Count state that was written."""
        self.state_rows_written += rows
        self.state_bytes_written += size


_KINDS = {"int": pa.int64(), "float": pa.float64(), "str": pa.string(), "str | None": pa.string()}
_SCHEMA = pa.schema([(f.name, _KINDS[str(f.type)]) for f in fields(Work)])


def table_of(works: Iterable[Work]) -> pa.Table:
    """The works, one row each."""
    rows = [{name: getattr(one, name) for name in _SCHEMA.names} for one in works]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def work_of(vertices: Mapping[str, Vertex], owner: str, engine: str, stage: str) -> Work:
    """The work, so far none, of the operator of a fingerprint; any other owner of state keeps addresses."""
    vertex = vertices.get(owner)
    if vertex is None:
        return Work(engine=engine, stage=stage, operator=ADDRESSES, detail="the files and positions of its rows")
    node = vertex.node
    return Work(engine=engine, stage=stage, operator=node.label, detail=node.shown.replace("\0", ""), sql=vertex.sql)


@dataclass(frozen=True, slots=True)
class Begun:
    """What operators, and the store of their state, had done when a refresh began."""

    figures: Mapping[str, Figures]
    traffic: Traffic


def begun(circuit: Circuit | None, traffic: Traffic) -> Begun:
    """What a circuit has done by now; none has done nothing."""
    if circuit is None:
        return Begun({}, traffic)
    names = fingerprints(circuit)
    return Begun({names[v.id]: replace(v.figures) for v in circuit.vertices if v.node.kind != "exchange"}, traffic)


def local_works(circuit: Circuit | None, since: Begun, traffic: Traffic, whole: Work) -> list[Work]:
    """What this process did in a refresh of which ``whole`` says what is known of it as a whole."""
    found: dict[str, Work] = {}
    vertices: dict[str, Vertex] = {}
    if circuit is not None:
        names = fingerprints(circuit)
        vertices = {names[v.id]: v for v in circuit.vertices if v.node.kind != "exchange"}
    for name, vertex in vertices.items():
        done = vertex.figures.since(since.figures.get(name))
        if not done.steps:
            continue
        work = found[name] = work_of(vertices, name, whole.engine, whole.stage)
        work.steps, work.rows_in, work.rows_out = done.steps, done.rows_in, done.rows_out
        work.bytes_in, work.seconds = done.bytes_in, done.seconds
        whole.bytes_in += done.bytes_in
    for trace, (read, wrote) in traffic.since(since.traffic).items():
        owner = trace.split("/", 1)[0]
        work = found.setdefault(owner, work_of(vertices, owner, whole.engine, whole.stage))
        for one in (work, whole):
            one.read(*read)
            one.wrote(*wrote)
    return [whole, *sorted(found.values(), key=lambda one: -one.seconds)]
