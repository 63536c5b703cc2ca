"""State as tasks see it: runs that lie where every executor can read them, and new ones put beside them.

In object storage a run is fetched once to each machine, into the same folder that the local runtime keeps its cache
in, and mapped. A new run is called by the epoch, its shard and a random word for the attempt, so tries of one task
never meet, and what no manifest names is swept.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headwater.base import faults
from headwater.base.storage import Storage
from headwater.derived.state_folder import StateFolder
from headwater.incremental.held_runs import fresh, hold
from headwater.incremental.layout import Layout
from headwater.incremental.manifest import RunEntry, TraceEntry
from headwater.incremental.run import Run, merged
from headwater.incremental.run_file import RunFile, write_narrow, write_run
from headwater.incremental.trace import Trace

__all__ = ["HeldState"]

_MAPPED_ROWS = 32_768
"""From how many rows on a run is stored as it is read: every task of the next refresh would have to unpack it."""


@dataclass(frozen=True, slots=True)
class HeldState:
    """The runs of a manifest by the names of their traces, and where they lie."""

    root: Storage
    path: str
    traces: Mapping[str, TraceEntry]
    epoch: int
    flush: bool

    def open(self, name: str, trace: Trace) -> None:
        """Let a trace have what the manifest says, to be read."""
        entry = self.traces.get(name)
        if entry is None or not entry.runs:
            hold(trace, [])
            return
        folder = StateFolder(self.root, self.path)
        hold(trace, [self._run(folder, run, trace.layout) for run in entry.runs], entry.bound)

    def _run(self, folder: StateFolder, entry: RunEntry, layout: Layout) -> Run:
        path = f"runs/{entry.file}"
        if folder.remote:
            os.makedirs(os.path.join(folder.folder, "runs"), exist_ok=True)
            folder.fetch(path)
        return RunFile.read(os.path.join(folder.folder, path)).open(layout)

    def write(self, traces: Mapping[str, Trace], shard: int) -> dict[str, list[Any]]:
        """Write what traces have got: by their names the file, its rows and its bytes."""
        written: dict[str, list[Any]] = {}
        attempt = uuid.uuid4().hex[:12]
        for i, (name, trace) in enumerate(traces.items()):
            run = fresh(trace)
            if run is not None:
                written[name] = self.put(run, f"{self.epoch:012d}-{shard:05d}-{attempt}-{i:03d}.run")
        return written

    def put(self, run: Run, file: str) -> list[Any]:
        """Write a run under a name."""
        folder = StateFolder(self.root, self.path)
        runs = os.path.join(folder.folder, "runs")
        os.makedirs(runs, exist_ok=True)
        staged = os.path.join(runs, f".{file}.tmp")
        faults.point("state.run.before_write", file)
        fd = os.open(staged, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            header = write_narrow(run, fd) if len(run) < _MAPPED_ROWS else write_run(run, fd)
            if self.flush:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(staged, os.path.join(runs, file))
        if folder.remote:
            folder.upload(f"runs/{file}")
        return [file, header.rows, header.length]

    def merged(self, runs: Sequence[RunEntry], layout: Layout, shard: int, shards: int) -> Run | None:
        """The sum of those rows of some runs whose hashes are in a shard's range; None if nothing is left."""
        found = self._slices(runs, layout, shard, shards)
        if not found:
            return None
        whole = merged(found) if len(found) > 1 else found[0]
        return whole if len(whole) else None

    def _slices(self, runs: Sequence[RunEntry], layout: Layout, shard: int, shards: int) -> list[Run]:
        folder = StateFolder(self.root, self.path)
        low, high = ((shard << 64) // shards, ((shard + 1) << 64) // shards)
        found = []
        for one in runs:
            run = self._run(folder, one, layout)
            if run.file is not None:
                run.file.verify()  # what is merged loses its checksums
            begin = int(np.searchsorted(run.hashes, np.uint64(low)))
            end = len(run) if high >> 64 else int(np.searchsorted(run.hashes, np.uint64(high)))
            if end > begin:
                part = run.zset(slice(begin, end))
                found.append(Run.sorted(layout, part.hashes, part.rows))
        return found
