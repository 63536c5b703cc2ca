"""Maintenance of an index: merging its splits, and dropping what only old versions need.

Neither changes an answer, so the commit keeps the frontier. Like a refresh, it holds the lock of the index's folder on
this machine, and where another machine commits first, it begins again.
"""

from __future__ import annotations

from collections.abc import Callable

from headwater.base import faults
from headwater.base.storage import now_ms
from headwater.lake.snapshot import Snapshot
from headwater.search.definition import Definition
from headwater.search.record import SplitEntry
from headwater.search.refreshing import RETENTION_MS, Coverage, choose_merges, merged_entries
from headwater.search.split_store import SplitStore

__all__ = ["rewritten"]


def rewritten(
    meant: Definition,
    store: SplitStore,
    base: Snapshot,
    found: Coverage,
    *,
    fan: int | None,
    retention_ms: int | None,
    report: Callable[[str, Exception], object],
) -> tuple[SplitEntry, ...]:
    """Other splits for the same rows: merged (``fan`` of a size are enough),
    or without what is older than a retention.
    """
    stamp = meant.stamp_of(base)
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
        faults.point("search.merge.before", meant.source)
        made = merged_entries(meant, store, group, covers, base, report=report)
        gone = {one.name for one in group}
        entries = [one for one in entries if one.name not in gone] + made
    return tuple(entries)
