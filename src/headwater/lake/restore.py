"""Restore: making an older version the newest one, by a commit like any other."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from headwater.base.errors import NotFoundError
from headwater.base.storage import now_ms
from headwater.lake import partitions, transaction
from headwater.lake.actions import AddFile, Metadata
from headwater.lake.conflicts import Proposal
from headwater.lake.snapshot import Snapshot, Target, at_version
from headwater.lake.transaction import Committed

__all__ = ["restore"]


def restore(target: Target, version: int) -> Committed:
    """Bring back the rows, schema and properties of ``version``; history keeps everything since."""
    return transaction.run(target, partial(_propose, version=version))


def _propose(base: Snapshot, version: int) -> Proposal:
    wanted = at_version(base.storage, version)
    now = now_ms()
    have = {f.key for f in base.files.values()}
    want = {f.key for f in wanted.files.values()}
    back = [f.rewritten(data_change=True) for f in wanted.files.values() if f.key not in have]
    gone = [f.removed(now) for f in base.files.values() if f.key not in want]
    _check_there(wanted, back)
    metadata = _metadata(base.state.metadata, wanted.state.metadata)
    return Proposal(
        "RESTORE",
        {"version": version},
        adds=back,
        removes=gone,
        metadata=None if metadata == base.state.metadata else metadata,
        metrics={"numRestoredFiles": len(back), "numRemovedFiles": len(gone)},
        reads=lambda _: True,
        yields_to_appends=False,
        keeps=frozenset(f.path for f in back),
    )


def _metadata(now: Metadata, wanted: Metadata) -> Metadata:
    """What the table said then; but an id that a column had since is not given again."""
    last = "delta.columnMapping.maxColumnId"
    if last not in now.configuration or last not in wanted.configuration:
        return wanted
    highest = max(now.configuration[last], wanted.configuration[last], key=int)
    return replace(wanted, configuration={**wanted.configuration, last: highest})


def _check_there(wanted: Snapshot, files: list[AddFile]) -> None:
    for f in files:
        path = partitions.decode_path(f.path)
        if not wanted.storage.exists(path):
            raise NotFoundError.data_file(path, wanted.where, wanted.version)
        vector = f.deletion_vector.path if f.deletion_vector is not None else None
        if vector is not None and not wanted.storage.exists(vector):
            raise NotFoundError.deletion_vector(vector, path, wanted.where, wanted.version)
