"""Checkpoints: the state of a table in one Parquet file, so that opening it never replays a long log.

One is written after every ``delta.checkpointInterval`` commits (10, unless the table says otherwise) by whoever
committed that version. It is the classic single file that every Delta reader knows: one row per action, one
column per kind of action. Writing it twice gives the same bytes in meaning, so racing writers do no harm; a
crash before it leaves the commits, which still say everything.

After a checkpoint, log files that are older than ``delta.logRetentionDuration`` and not needed to rebuild any
newer version are deleted.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from headwater.base import faults, settings
from headwater.base.storage import Storage, now_ms
from headwater.lake import log
from headwater.lake.checkpoint_file import to_arrow
from headwater.lake.properties import duration_ms

__all__ = ["clean_log", "due", "write"]


def due(state: log.LogState) -> bool:
    """Whether the commit that made ``state`` should be followed by a checkpoint."""
    interval = state.metadata.configuration.get("delta.checkpointInterval", "")
    every = int(interval) if interval.isdigit() and int(interval) else settings.current().checkpoint_interval
    return state.version > 0 and state.version % every == 0


def write(storage: Storage, version: int, *, without: Callable[[str, str], bool] | None = None) -> log.LogState:
    """Write the checkpoint of ``version`` and point readers at it; gives the state that it holds.

    ``without`` are tombstones to leave out, by their paths and what they say as JSON: nobody will look for these files.
    """
    state = log.load(storage, version, tombstones=True)
    if without is not None:
        told = {key: json.dumps(t.to_action(), ensure_ascii=False) for key, t in (state.tombstones or {}).items()}
        kept = {key: t for key, t in (state.tombstones or {}).items() if not without(t.path, told[key])}
        state = replace(state, tombstones=kept)
    table = _rows(state)
    path = f"{log.LOG}/{version:020d}.checkpoint.parquet"
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="snappy")
    data = sink.getvalue().to_pybytes()
    faults.point("lake.checkpoint.before_publish", path)
    storage.put(path, data)
    hint = {"version": version, "size": table.num_rows, "sizeInBytes": len(data), "numOfAddFiles": len(state.files)}
    faults.point("lake.checkpoint.before_hint", path)
    if (log.last_checkpoint(storage) or -1) < version:
        storage.put(f"{log.LOG}/_last_checkpoint", json.dumps(hint).encode())
    return state


def _rows(state: log.LogState) -> pa.Table:
    keep_since = now_ms() - duration_ms(state.metadata.configuration, "delta.deletedFileRetentionDuration")
    few = [state.protocol.to_action(), state.metadata.to_action()]
    few += [{"txn": {"appId": app, "version": v}} for app, v in state.txns.items()]
    few += [{"domainMetadata": {**body, "removed": False}} for body in state.domains.values()]
    tombstones = [t for t in (state.tombstones or {}).values() if t.deletion_timestamp >= keep_since]
    return to_arrow(few, list(state.files.values()), tombstones)


def clean_log(storage: Storage, state: log.LogState) -> int:
    """Delete log files that are past their retention and that no readable version needs; returns how many."""
    configuration = state.metadata.configuration
    if configuration.get("delta.enableExpiredLogCleanup", "true").lower() != "true":
        return 0
    oldest_ms = now_ms() - duration_ms(configuration, "delta.logRetentionDuration")
    segment = log.list_segment(storage)
    expired = [v for v, modified in segment.commits.items() if modified < oldest_ms]
    # The checkpoint that the oldest kept version is rebuilt from must stay, and everything after it.
    base = max((v for v in segment.checkpoints if expired and v <= max(expired) + 1), default=0)
    if base == 0 or not log.is_sound(storage, segment.checkpoints[base]):
        return 0
    removed = 0
    for version in sorted(v for v in expired if v < base):
        faults.point("lake.clean_log.before_delete", log.commit_path(version))
        storage.delete(log.commit_path(version))
        removed += 1
    for version, paths in segment.checkpoints.items():
        if version < base:
            for path in paths:
                storage.delete(path)
                removed += 1
    return removed
