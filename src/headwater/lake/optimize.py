"""Optimize: fewer, larger files with the same rows.

Small files of a partition are packed together up to the target size, and files with deletion vectors are written
anew without their dead rows. With ``zorder_by`` all files of a partition are rewritten along a Z-order curve, so that
rows near in several columns lie in the same files. The commit says ``dataChange=false``: nothing derived from the
table has anything to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from headwater.base import events
from headwater.base.errors import CorruptionError, InputError
from headwater.base.storage import Storage, now_ms
from headwater.lake import data_files, find, transaction, zorder
from headwater.lake.actions import AddFile, Metadata
from headwater.lake.conflicts import Proposal
from headwater.lake.scan import scan
from headwater.lake.snapshot import Snapshot, Target
from headwater.lake.transaction import Committed
from headwater.sql.fragment import Fragment, spelled

__all__ = ["optimize"]

# A file this near to the target is left alone.
_FULL = 0.75
# A Z-order is worked out over at most this many bytes of a partition at a time.
_ZORDER_BYTES = 2 << 30
# So often a group that other writers change meanwhile is done again.
_TRIES = 3


def optimize(
    target: Target,
    *,
    where: str | Fragment | None = None,
    zorder_by: Sequence[str] = (),
    target_bytes: int | None = None,
) -> Committed:
    """Compact the table, or the partitions that meet ``where``."""
    zorder_by = [zorder_by] if isinstance(zorder_by, str) else list(zorder_by)
    if target_bytes is not None and target_bytes <= 0:
        raise InputError.bad_argument("target_bytes", target_bytes, "a positive number of bytes")
    work = _Work(where, zorder_by, target_bytes)
    storage = target.storage if isinstance(target, Snapshot) else target
    done = transaction.run(target, work.propose, undo=lambda: work.discard(storage, work.written()))
    work.discard(storage, work.written() - work.offered)
    return done


class _Work:
    """What one optimize has rewritten so far.

    Other writers may change a file while it is being rewritten. Then only its group is done again; groups whose files
    are still as they were serve as they are. A group that lost several times is left for another day, so that a busy
    corner of the table does not keep the rest from being packed.
    """

    def __init__(self, where: str | Fragment | None, zorder_by: Sequence[str], target_bytes: int | None) -> None:
        self.where, self.zorder_by, self.target_bytes = where, zorder_by, target_bytes
        self.done: list[tuple[list[AddFile], list[AddFile]]] = []
        self.offered: set[str] = set()
        self._metadata: Metadata | None = None
        self._attempts = 0

    def written(self) -> set[str]:
        return {f.path for _, adds in self.done for f in adds}

    def discard(self, storage: Storage, paths: set[str]) -> None:
        stale = [f for _, adds in self.done for f in adds if f.path in paths]
        transaction.discard(storage, Proposal("OPTIMIZE", adds=stale))

    def propose(self, base: Snapshot) -> Proposal:
        layout = data_files.Layout(base.state.metadata)
        layout.target_bytes = self.target_bytes or layout.target_bytes
        curve = [base.schema.field(c, base.where).name for c in self.zorder_by]
        for name in curve:
            if name in base.partition_columns:
                raise InputError.bad_argument("zorder_by", name, "columns the table is not partitioned by")
        ready = self._still_right(base)
        taken = {f.key for group, _ in ready for f in group}
        self._attempts += 1
        if not ready or self._attempts <= _TRIES:
            files = [f for f in _chosen(base, self.where) if f.key not in taken]
            groups = list(_groups(files, layout.target_bytes, whole=bool(curve)))
            with events.task(f"optimize {base.where}", total=sum(len(g) for g in groups), unit="files") as progress:
                for group in groups:
                    self.done.append((group, _rewrite(base, layout, group, curve)))
                    ready.append(self.done[-1])
                    progress.advance(len(group))
        return self._proposal(ready, curve)

    def _still_right(self, base: Snapshot) -> list[tuple[list[AddFile], list[AddFile]]]:
        if self._metadata != base.state.metadata:
            self._metadata = base.state.metadata
            return []
        live = {f.key for f in base.files.values()}
        return [d for d in self.done if all(f.key in live for f in d[0])]

    def _proposal(self, ready: Sequence[tuple[list[AddFile], list[AddFile]]], curve: Sequence[str]) -> Proposal:
        old = [f for group, _ in ready for f in group]
        adds = [f for _, new in ready for f in new]
        self.offered = {f.path for f in adds}
        now = now_ms()
        return Proposal(
            "OPTIMIZE",
            {"predicate": spelled(self.where, "[]"), "zOrderBy": list(curve)},
            adds=adds,
            removes=[f.removed(now, data_change=False) for f in old],
            keeps=frozenset(self.offered),
            metrics={
                "numAddedFiles": len(adds),
                "numRemovedFiles": len(old),
                "numAddedBytes": sum(f.size for f in adds),
                "numRemovedBytes": sum(f.size for f in old),
                "numDeletionVectorsRemoved": sum(f.deletion_vector is not None for f in old),
            },
        )


def _chosen(base: Snapshot, where: str | Fragment | None) -> list[AddFile]:
    wanted = find.condition(base, where)
    if wanted is None:
        return list(base.files.values())
    outside = sorted({name for _, name in wanted.columns} - set(base.partition_columns))
    if outside:
        raise InputError.bad_argument(
            "where", str(where), f"a condition on partition columns only, not on {outside[0]}"
        )
    return [base.files[path] for path in find.find_rows(base, wanted)]


def _groups(files: Sequence[AddFile], target_bytes: int, *, whole: bool) -> Iterator[list[AddFile]]:
    """Sets of files of one partition to be written together."""
    partitions: dict[tuple[tuple[str, str | None], ...], list[AddFile]] = {}
    for f in files:
        partitions.setdefault(tuple(sorted(f.partition_values.items())), []).append(f)
    limit = _ZORDER_BYTES if whole else target_bytes
    for members in partitions.values():
        worth = [f for f in members if whole or f.num_deleted or f.size < _FULL * target_bytes]
        group: list[AddFile] = []
        for f in sorted(worth, key=lambda f: f.size):
            if group and sum(g.size for g in group) + f.size > limit:
                yield from _if_worth([group], whole)
                group = []
            group.append(f)
        yield from _if_worth([group], whole)


def _if_worth(groups: list[list[AddFile]], whole: bool) -> Iterator[list[AddFile]]:
    for group in groups:
        if len(group) > 1 or (group and (whole or group[0].num_deleted)):
            yield group


def _rewrite(base: Snapshot, layout: data_files.Layout, group: list[AddFile], curve: Sequence[str]) -> list[AddFile]:
    batches = scan(base, base.schema.names, group)
    if curve:
        table = pa.Table.from_batches(batches, pa.schema([f.with_nullable(True) for f in base.arrow_schema]))
        ordered = table.take(pa.array(zorder.order(table, list(curve))))
        batches = iter(ordered.to_batches())
    adds = data_files.write_rows(base.storage, layout, batches, data_change=False)
    before = [f.num_records for f in group]
    if all(n is not None for n in before):
        alive = sum(n for n in before if n is not None) - sum(f.num_deleted for f in group)
        found = sum(f.num_records or 0 for f in adds)
        if found != alive:  # a page of Parquet has no checksum, and may be read as fewer rows
            why = f"{len(group)} files have {found:,} rows alive, and the log says {alive:,}"
            raise CorruptionError.data_file(group[0].path, why, base.where)
    return adds
