"""What a refresh of an index does: which files are indexed, which splits are merged, and which are dropped.

A refresh indexes the files that no split covers. Small splits are merged as in a log-structured merge tree: when eight
of about the same size are there, they become one, up to the rows that a split should have. So any number of small
appends leaves a number of splits that grows with its logarithm, and a row is merged a few times in its life, at a small
part of the price of indexing it. A split of which more than half of the rows lie in files that the table has no more is
written again without them. One of which nothing is left stays for a while, for those who look at older versions.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from headwater.base.errors import CorruptionError, NotFoundError, SearchQueryError
from headwater.base.scratch import own_folder
from headwater.base.storage import now_ms
from headwater.lake.actions import AddFile
from headwater.lake.snapshot import Snapshot
from headwater.search.cover import Cover
from headwater.search.definition import Definition
from headwater.search.record import SplitEntry
from headwater.search.split_merge import Unmergeable, merge_splits
from headwater.search.split_store import SplitStore, discarded, forget_corrupt

__all__ = ["RETENTION_MS", "Coverage", "choose_merges", "coverage_of", "entry_of", "merged_entries", "retained"]

_FAN = 8
_MOST_DEAD = 0.5
RETENTION_MS = 7 * 24 * 3_600_000


@dataclass(frozen=True)
class Coverage:
    """Which files of a snapshot splits cover, and which they do not."""

    entries: tuple[SplitEntry, ...]
    covers: Mapping[str, Cover]
    missing: tuple[AddFile, ...]
    broken: tuple[str, ...]

    def dead_rows(self, name: str, base: Snapshot) -> int:
        """How many rows of a split lie in files that the snapshot does not have."""
        cover = self.covers[name]
        return sum(n for path, n in zip(cover.files, cover.rows_of, strict=True) if path not in base.files)


def coverage_of(
    meant: Definition, base: Snapshot, entries: Sequence[SplitEntry], covers: Mapping[str, Cover], broken: Sequence[str]
) -> Coverage:
    """Hold splits against a snapshot."""
    stamp = meant.stamp_of(base)
    good = tuple(one for one in entries if one.name in covers)
    covered = {path for one in good if one.stamp == stamp for path in covers[one.name].files}
    missing = tuple(f for path, f in base.files.items() if path not in covered and f.num_records != 0)
    return Coverage(good, covers, missing, tuple(broken))


def entry_of(name: str, cover: Cover) -> SplitEntry:
    """What a record says of a split."""
    return SplitEntry(name, cover.stamp, cover.rows, len(cover.files), cover.size)


def retained(
    entries: Sequence[SplitEntry], covers: Mapping[str, Cover], base: Snapshot, stamp: str
) -> list[SplitEntry]:
    """The splits that stay: those in use, and idle ones for as long as older versions are usually kept."""
    kept, now = [], now_ms()
    for one in entries:
        used = one.stamp == stamp and any(path in base.files for path in covers[one.name].files)
        idle = None if used else one.idle_since if one.idle_since is not None else now
        if idle is None or now - idle < RETENTION_MS:
            kept.append(replace(one, idle_since=idle))
    return kept


def choose_merges(
    entries: Sequence[SplitEntry], dead: Mapping[str, int], target_rows: int, *, fan: int = _FAN
) -> list[list[SplitEntry]]:
    """Groups of splits of one stamp to be merged; a group of one is written again without its dead rows."""
    chosen = [[one] for one in entries if one.rows and dead.get(one.name, 0) > _MOST_DEAD * one.rows]
    taken = {group[0].name for group in chosen}
    levels: dict[int, list[SplitEntry]] = {}
    for one in entries:
        if one.name not in taken and one.rows < target_rows:
            levels.setdefault(int(math.log(max(one.rows, 64), _FAN)), []).append(one)
    for _, level in sorted(levels.items()):
        group: list[SplitEntry] = []
        for one in sorted(level, key=lambda e: (e.rows, e.name)):
            if group and sum(e.rows for e in group) + one.rows > target_rows:
                if len(group) >= fan:
                    chosen.append(group)
                group = []
            group.append(one)
        if len(group) >= fan:
            chosen.append(group)
    return chosen


def merged_entries(
    meant: Definition,
    store: SplitStore,
    group: Sequence[SplitEntry],
    covers: Mapping[str, Cover],
    base: Snapshot,
    *,
    report: Callable[[str, Exception], object],
) -> list[SplitEntry]:
    """What becomes of a group of splits; the group itself where they cannot be merged.

    Those that are missing or corrupt are given to ``report``, so that the next refresh builds them again.
    """
    gone = {path for one in group for path in covers[one.name].files if path not in base.files}
    with tempfile.TemporaryDirectory(prefix="headwater-group-", dir=own_folder()) as home:
        folders = {one.name: os.path.join(home, one.name) for one in group}
        try:
            for name, folder in folders.items():
                _lend(store, name, folder, report)
            built = merge_splits(meant, [(folder, covers[name]) for name, folder in folders.items()], gone)
        except (Unmergeable, _Damaged):
            return list(group)
        except (SearchQueryError, OSError, ValueError):
            if not forget_corrupt(folders):
                raise
            return list(group)
    if built is None:
        return []
    with discarded(built):
        cover = store.add(built)
    return [entry_of(built.name, cover)]


class _Damaged(Exception):
    """A split cannot be used."""


def _lend(store: SplitStore, name: str, to: str, report: Callable[[str, Exception], object]) -> None:
    try:
        store.lend(name, to)
    except (NotFoundError, CorruptionError) as e:
        report(name, e)
        raise _Damaged from e
