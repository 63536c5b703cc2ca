"""Building splits with Spark: tasks index shares of a table's files, and the driver names what they wrote.

A task takes data files up to the rows that a split should have, indexes them with one writer (`split_builder`) and puts
split and cover where readers look for them. Only names come back to the driver. It reads the covers from storage, which
also tells whether the executors write to a storage that the driver sees. A task that Spark runs twice, because an
executor was lost or because it was slow, leaves a split that no commit names; `SearchIndex.tidy` deletes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.base import events, settings
from headwater.base.errors import StorageError
from headwater.lake.actions import AddFile
from headwater.lake.snapshot import Snapshot
from headwater.lake.spark.tasks import without_files
from headwater.search.cover import Cover
from headwater.search.definition import Definition
from headwater.search.split_builder import build_splits
from headwater.search.split_store import SplitStore, discarded
from headwater.spark import blocks
from headwater.spark.progress import followed

if TYPE_CHECKING:
    from headwater.derived.environment import Environment

__all__ = ["PASSED_ON", "build_on_spark", "shares_of", "write_splits"]

PASSED_ON = ("fsync", "search_cache_bytes", "search_loads", "spill_dir")
"""The settings of the driver that tasks have too."""
_ROW_BYTES = 100
"""A guess for files whose rows the log does not count."""
_WRITTEN = pa.schema([("written", pa.string())])


def build_on_spark(
    meant: Definition,
    store: SplitStore,
    base: Snapshot,
    todo: Sequence[AddFile],
    environment: Environment,
    task: events.Task,
) -> dict[str, Cover]:
    """Splits of some files of a snapshot, built by tasks; gives the names and covers of what they wrote."""
    assert environment.session is not None
    session = environment.session()
    shares = shares_of(todo, meant.target_rows)
    chosen = {k: v for k, v in asdict(settings.current()).items() if k in PASSED_ON}
    frame, source = blocks.tasks_of(session, len(shares), _Building(meant, store, without_files(base), shares, chosen))
    with followed(session, f"index {len(todo):,} files of {meant.source} by {len(shares):,} tasks"):
        found = blocks.results_of(frame, source, _Names(), "written string")
    names = [str(name) for name in found["written"].to_pylist()]
    there = store.usable()
    if missing := [name for name in names if name not in there]:
        why = (
            f"{len(missing)} of {len(names)} splits that tasks wrote are not here; "
            "executors on other machines need a storage that all share"
        )
        raise StorageError.failed(store.root.url, why)
    covers = store.covers(names)
    for cover in covers.values():
        task.advance(cover.rows)
    return covers


def shares_of(files: Sequence[AddFile], target_rows: int) -> tuple[str, ...]:
    """The files of each task, as JSON: as many as one split takes."""
    shares: list[list[Any]] = []
    rows = 0
    for f in files:
        count = f.num_records if f.num_records is not None else f.size // _ROW_BYTES
        if not shares or rows + count > target_rows:
            shares.append([])
            rows = 0
        shares[-1].append(f.to_action()["add"])
        rows += count
    return tuple(json.dumps(share) for share in shares)


def write_splits(meant: Definition, store: SplitStore, base: Snapshot, files: Sequence[AddFile]) -> dict[str, Cover]:
    """Index files and put the splits where readers look for them."""
    found = {}
    for built in build_splits(meant, base, files, advance=lambda _rows: None):
        with discarded(built):
            found[built.name] = store.add(built)
    return found


@dataclass(frozen=True, slots=True)
class _Building:
    """What the n-th task does: it gives the names of the splits that it wrote."""

    meant: Definition
    store: SplitStore
    base: Snapshot
    shares: tuple[str, ...]
    chosen: dict[str, Any]

    def __call__(self, number: int) -> Iterator[pa.Table]:
        files = [AddFile.from_json(action) for action in json.loads(self.shares[number])]
        with settings.override(**self.chosen):
            found = write_splits(self.meant, self.store, self.base, files)
        yield pa.table([pa.array(list(found), pa.string())], schema=_WRITTEN)


@dataclass(frozen=True, slots=True)
class _Names:
    """Hands names on as they are."""

    def __call__(self, tables: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
        for table in tables:
            yield from table.to_batches()
