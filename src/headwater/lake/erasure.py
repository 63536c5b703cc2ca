"""Erasure: taking rows out of a table for good, and with them every version that has them.

A DELETE leaves a row in the old file, in the feed, in the statistics and conditions that the log keeps, and in every
older version. Erasing goes further, in an order in which a process may end anywhere and a second run finds what is
left:

1. `delete_rows` commits the deletion: files are written without the rows, and neither condition nor feed says which;
2. `rewrite` commits live files that hold erased rows under their deletion vectors, written without them;
3. `mark` commits a version whose own log entry names none of it, so that something readable is left to stand on;
   whatever is derived from the table is brought forward up to here, while the old files are still there;
4. `truncate` writes a checkpoint of that version without the tombstones of erased files, deletes every log entry up to
   the last one that names such a file or a value, and then the files: of old versions, of the feed, of no version.

A log has no holes, so every version up to that entry is lost to time travel, also those that never had the rows. That
is what `Truncated.lost` says. Later ones stay as they are.

What is erased is said by a `Suspicion`: it looks at the rows of a file as they are stored, whether they are alive or
not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from headwater.base import events, faults
from headwater.base.errors import NotFoundError
from headwater.base.storage import Entry, Storage, now_ms
from headwater.lake import checkpoint, data_files, edit, find, log, partitions, snapshot, transaction
from headwater.lake.actions import AddFile, Commit, RemoveFile, parse_commit
from headwater.lake.conflicts import Proposal
from headwater.lake.modify import check_may_change, reads_of
from headwater.lake.scan import scan
from headwater.lake.snapshot import Snapshot
from headwater.lake.transaction import Committed
from headwater.sql.fragment import Fragment

__all__ = ["Suspicion", "Truncated", "delete_rows", "mark", "rewrite", "rows_since", "suspicious_files", "truncate"]

MARK = "headwater.erasure"
"""The application that a marking commit names in its ``txn`` action."""

_SINCE = "rowsSince"
_VERSION = re.compile(rf"{log.LOG}/(\d{{20}})\.(?P<rest>.+)")


class Suspicion(Protocol):
    """What must not be left of a table."""

    def of_rows(self, rows: pa.RecordBatch, values: Mapping[str, str | None]) -> bool:
        """Whether some rows of a data file are to be erased; ``values`` are its partition values, as in the log."""
        ...

    def of_text(self, text: str) -> bool:
        """Whether an entry of the log, a path or a statistic tells something that is to be erased."""
        ...

    @property
    def columns(self) -> Collection[str] | None:
        """The columns that it looks at, as they may be called in files; None: all."""
        ...

    @property
    def whole_past(self) -> bool:
        """Whether all that only older versions have is to be erased, whatever it holds."""
        ...


@dataclass(frozen=True, slots=True)
class Truncated:
    """What `truncate` did.

    Parameters
    ----------
    lost : int
        the last version that cannot be read any more; -1: none is lost
    entries : int
        entries of the log that were deleted, checkpoints among them
    files : int
        data files that were deleted
    bytes : int
        of these files
    """

    lost: int = -1
    entries: int = 0
    files: int = 0
    bytes: int = 0


def delete_rows(base: Snapshot, condition: Fragment) -> Committed:
    """Delete the rows that meet a condition from the newest version, by files written without them."""

    def propose(now: Snapshot) -> Proposal:
        check_may_change(now)
        wanted = find.condition(now, condition)
        rows = find.find_rows(now, wanted)
        cut = edit.rewriting(now, rows)
        return Proposal(
            "DELETE", {}, adds=cut.adds, removes=cut.removes, metrics=cut.metrics, reads=reads_of(now, wanted)
        )  # fmt: skip

    return transaction.run(base, propose)


def suspicious_files(base: Snapshot, suspicion: Suspicion) -> dict[str, Entry]:
    """The data files below a table's folder that hold what is to be erased, live or not, by their paths."""
    known = _partition_values(base)
    live = {partitions.decode_path(path): file.num_deleted for path, file in base.files.items()}
    found = {}
    with events.task(f"search {base.where}", total=None, unit="files") as task:
        for entry in base.storage.list(""):
            if not entry.path.endswith(".parquet") or entry.path.startswith(f"{log.LOG}/"):
                continue
            task.advance(1)
            past = suspicion.whole_past and live.get(entry.path) != 0  # it is not live, or not all of it
            if past or suspicion.of_text(entry.path) or _holds(base.storage, entry, suspicion, known.get(entry.path)):
                found[entry.path] = entry
    return found


def _partition_values(base: Snapshot) -> dict[str, Mapping[str, str | None]]:
    """The partition values of every file that the log still names."""
    found: dict[str, Mapping[str, str | None]] = {}
    for commit in _commits(base.storage):
        for one in _files_of(commit):
            if one.partition_values is not None:
                found[partitions.decode_path(one.path)] = one.partition_values
        for action in commit.cdc:
            found[partitions.decode_path(action["path"])] = dict(action.get("partitionValues") or {})
    state = log.load(base.storage, tombstones=True)
    for live in state.files.values():
        found[partitions.decode_path(live.path)] = live.partition_values
    for gone in (state.tombstones or {}).values():
        found.setdefault(partitions.decode_path(gone.path), gone.partition_values or {})
    return found


def _holds(storage: Storage, entry: Entry, suspicion: Suspicion, values: Mapping[str, str | None] | None) -> bool:
    with storage.open_input(entry.path, size=entry.size) as source:
        file = pq.ParquetFile(source)
        names = file.schema_arrow.names
        wanted = names if suspicion.columns is None else [name for name in names if name in suspicion.columns]
        for batch in file.iter_batches(columns=wanted):
            if suspicion.of_rows(batch, values or {}):
                return True
        return file.metadata.num_rows > 0 and not wanted and suspicion.of_rows(_no_columns(file), values or {})


def _no_columns(file: pq.ParquetFile) -> pa.RecordBatch:
    """The rows of a file of which no column is asked for: all that is known is in its partition values."""
    return pa.record_batch([pa.nulls(min(1, file.metadata.num_rows))], names=["_"])


def rewrite(base: Snapshot, paths: Collection[str]) -> Committed | None:
    """Write live files anew, without the rows that are marked as deleted in them; None where none of them is live."""

    def chosen(now: Snapshot) -> list[AddFile]:
        return [f for f in now.files.values() if partitions.decode_path(f.path) in paths]

    def propose(now: Snapshot) -> Proposal:
        files, at = chosen(now), now_ms()
        faults.point("lake.erasure.before_rewrite", now.where)
        adds = data_files.write_rows(
            now.storage,
            data_files.Layout(now.state.metadata),
            scan(now, now.schema.names, files),
            data_change=False,
        )
        gone = [f.removed(at, data_change=False) for f in files]
        return Proposal("OPTIMIZE", {}, adds=adds, removes=gone, relies_on=frozenset(f.path for f in files))

    return transaction.run(base, propose) if chosen(base) else None


def mark(base: Snapshot) -> Committed:
    """Commit a version that changes nothing, and names nothing but the version since which the rows are the same."""

    def propose(now: Snapshot) -> Proposal:
        return Proposal("ERASE", {_SINCE: str(_unchanged_since(now))}, txn=(MARK, now.version + 1))

    return transaction.run(base, propose)


def rows_since(commit: Commit) -> int:
    """The first version from which on a table's rows are those that it has at a commit, as far as the commit says."""
    told = commit.info.get("operationParameters", {}).get(_SINCE)
    return int(told) if commit.operation == "ERASE" and str(told).isdecimal() else commit.version


def _unchanged_since(now: Snapshot) -> int:
    version = now.version
    while version > 0:
        try:
            commit = log.read_commit(now.storage, version, 0)
        except NotFoundError:
            return version
        if commit.changes_data:
            return version
        version = min(version - 1, rows_since(commit))
    return version


def truncate(base: Snapshot, suspicion: Suspicion, paths: Mapping[str, Entry]) -> Truncated:
    """Delete the files at these paths that are not live, and every log entry up to the last one that tells of them.

    The newest version must be one whose entry tells nothing (`mark`).
    """
    storage = base.storage
    live = {partitions.decode_path(path) for path in base.files}
    dead = {path: entry for path, entry in paths.items() if path not in live}
    last = base.version - 1 if suspicion.whole_past else _last_entry(storage, suspicion, dead)
    assert last < base.version, "the newest version tells nothing"
    checkpoints = log.list_segment(storage).checkpoints
    entries, lost = 0, -1
    if last >= 0 or any(_tells(storage, files, suspicion, dead) for files in checkpoints.values()):
        faults.point("lake.erasure.before_checkpoint", storage.url)
        kept = sorted({last + 1, base.version})  # what is rebuilt from the first of them can be read as before
        for version in kept:
            checkpoint.write(storage, version, without=lambda path, text: _names(suspicion, dead, path, text))
        entries = _delete_entries(storage, last, kept)
        lost = last
    for path in dead:
        faults.point("lake.erasure.before_delete", path)
        storage.delete(path)
    snapshot.forget(storage)
    return Truncated(lost, entries, len(dead), sum(entry.size for entry in dead.values()))


def _names(suspicion: Suspicion, dead: Collection[str], path: str, text: str) -> bool:
    return partitions.decode_path(path) in dead or suspicion.of_text(text)


def _last_entry(storage: Storage, suspicion: Suspicion, dead: Collection[str]) -> int:
    """The last version whose entry tells of what is to be erased."""
    found = -1
    for commit in _commits(storage):
        if _tells_of(commit, suspicion, dead):
            found = commit.version
    return found


def _files_of(commit: Commit) -> list[AddFile | RemoveFile]:
    return [*commit.adds, *commit.removes]


def _tells_of(commit: Commit, suspicion: Suspicion, dead: Collection[str]) -> bool:
    paths = [f.path for f in _files_of(commit)] + [a["path"] for a in commit.cdc]
    if any(partitions.decode_path(path) in dead for path in paths):
        return True
    texts = [json.dumps(f.to_action(), ensure_ascii=False) for f in _files_of(commit)]
    texts += [json.dumps(one, ensure_ascii=False) for one in (commit.info, *commit.cdc, *commit.domains.values())]
    return any(suspicion.of_text(text) for text in texts)


def _tells(storage: Storage, files: Sequence[str], suspicion: Suspicion, dead: Collection[str]) -> bool:
    """Whether a checkpoint tells of it."""
    for path in files:
        if not path.endswith(".parquet"):
            return True  # a manifest: what its sidecars tell is not looked up
        with storage.open_input(path) as source:
            text = json.dumps(pq.read_table(source).to_pylist(), ensure_ascii=False, default=str)
        if suspicion.of_text(text) or any(one in text for one in dead):
            return True
    return False


def _commits(storage: Storage) -> Iterator[Commit]:
    for version in sorted(log.list_segment(storage).commits):
        yield parse_commit(storage.get(log.commit_path(version)), version, 0, storage.url)


def _delete_entries(storage: Storage, last: int, kept: Collection[int]) -> int:
    """Delete the entries up to a version, and all checkpoints but those that are kept; gives how many."""
    deleted = 0
    for entry in list(storage.list(f"{log.LOG}/")):
        match = _VERSION.fullmatch(entry.path)
        if match is None:
            goes = entry.path.startswith(f"{log.LOG}/_sidecars/")
        elif match["rest"].startswith("checkpoint"):
            goes = int(match[1]) not in kept
        else:  # commits, their checksums, and compacted ranges, which begin with their first version
            goes = int(match[1]) <= last
        if goes:
            faults.point("lake.erasure.before_log_delete", entry.path)
            storage.delete(entry.path)
            deleted += 1
    return deleted
