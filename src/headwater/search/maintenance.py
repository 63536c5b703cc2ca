"""Maintenance of an index: merging its splits, and dropping what only old versions need.

Neither changes an answer, so the commit keeps the frontier. Like a refresh, it holds the lock of the index's folder on this
machine, and where another machine commits first, it begins again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headwater.base import faults
from headwater.base.errors import ConflictError, InputError
from headwater.base.storage import now_ms
from headwater.search.record import IndexRecord
from headwater.search.refreshing import RETENTION_MS, choose_merges, merged_entries

if TYPE_CHECKING:
    from headwater.search.index import SearchIndex

__all__ = ["rewrite"]

_TRIES = 10


def rewrite(index: SearchIndex, *, fan: int | None, retention_ms: int | None) -> int:
    """Merge splits (``fan`` of a size are enough), or drop what is older than a retention; gives how many are left."""
    with index.held():
        for _ in range(_TRIES):
            committed = index.committed()
            record: IndexRecord = index.record_of(committed)
            if not record.published:
                raise InputError.not_built(index.name, 0, index.log.path, index.kind)
            after = _rewritten(index, record, fan=fan, retention_ms=retention_ms)
            if after.splits == record.splits:
                _delete_orphans(index, record, retention_ms)
                return len(record.splits)
            try:
                index.log.commit(committed.number, committed.definition, replace(after, published=committed.number + 1).to_json())
            except ConflictError:
                continue
            index.tidy(record, after)
            _delete_orphans(index, after, retention_ms)
            index.log.sweep()
            return len(after.splits)
    raise ConflictError.lost("another refresh was committed first", committed.number, index.kind.name, index.log.path)


def _delete_orphans(index: SearchIndex, record: IndexRecord, retention_ms: int | None) -> None:
    """Delete the files of splits that no commit names, which a process that was killed may have left too."""
    if retention_ms is not None:
        faults.point("search.vacuum.before_delete", index.name)
        index.store.delete(index.store.orphans(record.names, young_ms=max(retention_ms, 1)))


def _rewritten(index: SearchIndex, record: IndexRecord, *, fan: int | None, retention_ms: int | None) -> IndexRecord:
    meant, base = index.meant, index.newest
    stamp = meant.stamp_of(base)
    found = index.coverage_at(record, base)
    entries, covers, now = list(found.entries), found.covers, now_ms()
    if retention_ms is not None:
        idle = {
            one.name
            for one in entries
            if one.stamp != stamp or not any(path in base.files for path in covers[one.name].files)
        }
        entries = [one for one in entries if one.name not in idle or now - (one.idle_since or now) < retention_ms]
    used = [one for one in entries if one.stamp == stamp and one.idle_since is None]
    dead = {one.name: found.dead_rows(one.name, base) for one in used}
    if fan is not None:
        groups = choose_merges(used, dead, meant.target_rows, fan=fan)
        small = [one for one in used if one.rows < meant.target_rows and all(one not in group for group in groups)]
        if not groups and len(small) > 1 and sum(one.rows for one in small) <= meant.target_rows:
            groups = [small]
    elif retention_ms is not None and retention_ms < RETENTION_MS:
        groups = [[one] for one in used if dead[one.name]]
    else:
        groups = []
    for group in groups:
        faults.point("search.merge.before", index.name)
        made = merged_entries(meant, index.store, group, covers, base, report=index.report_damage)
        gone = {one.name for one in group}
        entries = [one for one in entries if one.name not in gone] + made
    entries += [one for one in record.splits if one.name in found.broken]  # the next refresh finds and replaces them
    superseded = tuple(sorted({*record.names} - {one.name for one in entries}))
    return replace(record, splits=tuple(entries), superseded=superseded)
