"""What a task writes, and its report: new runs, merged runs, and the view's rows.

The driver names what a report lists; whatever else a task wrote is swept.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.base import faults
from headwater.incremental.views.addresses import Addresses, Places, split_address
from headwater.incremental.views.publishing import publish_share
from headwater.incremental.views.reconciling import reconcile_share
from headwater.lake import deletion_vectors

if TYPE_CHECKING:
    from headwater.incremental.circuit.circuit import Circuit
    from headwater.incremental.circuit.parts import Cone
    from headwater.incremental.dataflow.vertex import Vertex
    from headwater.incremental.views.spark.jobs import Job
    from headwater.incremental.zset import ZSet

__all__ = ["REPORT", "Report", "merge", "publish", "save"]

_COLUMN = "report"
REPORT = f"{_COLUMN} string"


@dataclass(slots=True)
class Report:
    """What a shard has written, to be named by the driver."""

    shard: int
    runs: dict[str, list[Any]] = field(default_factory=dict)
    """By the names of traces: the file of a new run, its rows and bytes."""
    merged: dict[str, list[Any]] = field(default_factory=dict)
    """The same of the run that takes the place of those that were to be merged."""
    left: dict[str, tuple[int, str, int]] = field(default_factory=dict)
    """By goal: how many rows were left, where, and how many bytes that are."""
    adds: list[Any] = field(default_factory=list)
    cdc: list[Any] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    """The numbers of the files of ``adds``, for the addresses of their rows."""
    gone: dict[str, str] = field(default_factory=dict)
    """By the number of a file: the positions of the rows that go, as a bitmap."""
    inserted: int = 0
    deleted: int = 0
    rows_in: int = 0
    shuffled_bytes: int = 0
    arrived: list[int] = field(default_factory=list)
    """The same of each feed of the job."""
    opened: list[str] = field(default_factory=list)
    """The names of the traces whose runs were opened."""
    scanned: dict[str, list[int]] = field(default_factory=dict)
    """In the report of the first shard, of all tasks that read: by fingerprints of vertices the rows that each gave,
    their bytes, and steps.
    """
    figures: dict[str, list[float]] = field(default_factory=dict)

    def text(self) -> str:
        """As text."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__}, separators=(",", ":"))

    def table(self) -> pa.Table:
        """As the one row of a table of the column `REPORT`."""
        return pa.table({_COLUMN: pa.array([self.text()], pa.string())})

    @classmethod
    def of(cls, text: str) -> Report:
        """What `text` gave."""
        return cls(**json.loads(text))


def save(job: Job, cone: Cone, names: Sequence[str], report: Report, *, copy: int = 0) -> None:
    """Write what the traces got that a cone keeps: those of the copy of its nodes that was stepped."""
    traces = {
        f"{names[v.id]}/{name}/0": trace
        for v in cone.vertices
        if v.id in cone.keeps
        for name, trace in v.nodes[copy].traces().items()
    }
    report.runs |= job.state.write(traces, report.shard)
    report.figures = {names[v.id]: _figures(v) for v in cone.vertices if v.figures.steps}


def merge(job: Job, circuit: Circuit, names: Sequence[str], report: Report) -> None:
    """Merge the runs that a job names, those rows of them whose hashes are in the range of the shard."""
    traces = dict(Addresses().traces)
    for vertex in circuit.vertices:
        traces |= {f"{names[vertex.id]}/{name}/0": trace for name, trace in vertex.node.traces().items()}
    attempt = uuid.uuid4().hex[:12]
    for i, (name, runs) in enumerate(job.merges.items()):
        run = job.state.merged(runs, traces[name].layout, report.shard, job.shards)
        if run is not None:
            file = f"{job.state.epoch:012d}-{report.shard:05d}-{attempt}-m{i:02d}.run"
            report.merged[name] = job.state.put(run, file)


def publish(job: Job, rows: ZSet, there: ZSet | None, report: Report) -> None:
    """Write a share of the view's change; with ``there``, the rows that it has, a share of its result."""
    publishing = job.publishing
    assert publishing is not None
    delta = rows.consolidate()
    if not len(delta) and (there is None or not len(there)):
        return
    addresses = Addresses()
    for name, trace in addresses.traces.items():
        job.state.open(name, trace)
        report.opened.append(name)
    first = addresses.next_file = publishing.next_file + report.shard * publishing.numbers
    if there is None:
        share = publish_share(publishing.base, addresses, delta, feed=publishing.feed)
    else:
        share = reconcile_share(publishing.base, addresses, there, delta, feed=publishing.feed)
    assert addresses.next_file - first <= publishing.numbers, "a shard writes a few files"
    report.adds = [f.to_action()["add"] for f in share.adds]
    report.cdc = share.cdc
    report.files = {str(number): path for number, path in addresses.files.items()}
    report.inserted, report.deleted = share.inserted, len(share.places)
    report.gone = _bitmaps(share.places)
    report.runs |= job.state.write(addresses.traces, report.shard)
    faults.point("view.publish.written", publishing.base.where)


def _figures(vertex: Vertex) -> list[float]:
    done = vertex.figures
    return [done.steps, done.rows_in, done.rows_out, done.seconds]


def _bitmaps(places: Places) -> dict[str, str]:
    """Places as bitmaps of positions, by the numbers of their files."""
    if not len(places):
        return {}
    files, positions = split_address(np.sort(places))
    starts = np.flatnonzero(np.diff(files, prepend=-1))
    parts = np.split(positions, starts[1:])
    return {
        str(int(files[start])): base64.b64encode(
            deletion_vectors.serialize(deletion_vectors.from_positions(part))
        ).decode()
        for start, part in zip(starts, parts, strict=True)
    }
