"""The table of a feature table: its first commit, its old rows in a region, and the commits of refreshes.

It is a Delta table with deletion vectors and a change feed, and two domains in its log (`headwater.lake.published`). A
commit marks the rows that go in deletion vectors, adds a file with those that come, and names the frontier.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base import faults
from headwater.base.storage import Storage, now_ms
from headwater.derived.record import Record
from headwater.lake import data_files, find, partitions, protocol, published, small_files, transaction
from headwater.lake.actions import Action, AddFile, Metadata
from headwater.lake.conflicts import Proposal
from headwater.lake.definition import define
from headwater.lake.edit import removal
from headwater.lake.published import Changed
from headwater.lake.scan import POSITION, map_files, read_file
from headwater.lake.snapshot import Snapshot
from headwater.lake.transaction import Committed
from headwater.sql.conjuncts import Conjunct
from headwater.timeseries.features.definition import WORDS, Definition
from headwater.timeseries.features.region import Within

__all__ = [
    "PREFIX",
    "OldRows",
    "commit",
    "create",
    "metadata_for",
    "old_rows",
    "publish",
    "redefine",
    "region_of_old",
    "replaced",
]

PREFIX = "features"
"""What the names of its own data files begin with, and the folder of its deletion vectors."""
_PROPERTIES = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
_FEATURES = ("deletionVectors", "changeDataFeed", "domainMetadata")
_MAPPING = {"delta.columnMapping.mode": "name"}
_UNNAMED = set(" ,;{}()\n\t=")
_SMALL_ROWS = 65_536

Places = npt.NDArray[np.int64]


def metadata_for(name: str, definition: Definition, old: Metadata | None = None) -> Metadata:
    """The metadata of the table; ``old`` is what it had before."""
    from dataclasses import replace

    schema = definition.schema
    mapped = any(_UNNAMED & set(n) for n in schema.names)
    if old is not None and not mapped and list(old.schema.arrow) == list(schema):
        return old
    kept = (
        {k: v for k, v in old.configuration.items() if k.startswith("delta.columnMapping")} if old is not None else {}
    )
    made = define(schema, table_properties={**_PROPERTIES, **(_MAPPING if mapped else {}), **kept}, name=name)
    return made if old is None else replace(made, id=old.id, created_time=old.created_time)


def create(storage: Storage, metadata: Metadata, definition: Definition) -> Committed | None:
    """Make the table, not built yet; None if there is one already."""
    needed = protocol.for_table(metadata.schema, metadata.configuration)
    proposal = Proposal(
        "CREATE FEATURE TABLE",
        {"function": definition.function},
        metadata=metadata,
        protocol=protocol.with_features(needed, _FEATURES),
        domains=[definition.action()],
    )
    return transaction.create(storage, proposal)


def redefine(base: Snapshot, definition: Definition) -> Committed:
    """Commit other options of a feature table whose rows stay what they are."""
    proposal = Proposal("ALTER FEATURE TABLE", {"function": definition.function}, domains=[definition.action()])
    return transaction.run(base.storage, lambda _: proposal, if_version=base.version)


@dataclass(slots=True)
class OldRows:
    """Rows that the table has, and where they lie."""

    rows: pa.Table
    files: list[str]
    """The file of each row by its number."""
    number: Places
    position: Places

    def places(self, which: Places) -> dict[str, Places]:
        """The positions of some of them, by file."""
        number, position = self.number[which], self.position[which]
        return {self.files[n]: np.sort(position[number == n]) for n in np.unique(number)}


def old_rows(base: Snapshot, schema: pa.Schema, within: Within | None, conjuncts: Sequence[Conjunct]) -> OldRows:
    """The live rows of a region; all of them without one."""
    names = [base.schema.field(n).name for n in schema.names]
    mask = None if within is None else within.kernel()

    def read(file: AddFile) -> tuple[str, list[pa.Table]]:
        found = []
        for batch in read_file(base, file, names, positions=True, conjuncts=conjuncts):
            table = pa.Table.from_batches([batch])
            found.append(table if mask is None else mask(table))
        return file.path, [t for t in found if t.num_rows]

    parts = [one for one in map_files(find.candidate_files(base, conjuncts), read) if one[1]]
    tables = [table for _, some in parts for table in some]
    numbers = [np.full(t.num_rows, n, np.int64) for n, (_, some) in enumerate(parts) for t in some]
    rows = pa.concat_tables(
        [schema.empty_table(), *(t.drop_columns([POSITION]).rename_columns(schema.names).cast(schema) for t in tables)]
    )
    none = [np.empty(0, np.int64)]
    positions = np.concatenate(none + [t.column(POSITION).to_numpy() for t in tables])
    return OldRows(rows, [path for path, _ in parts], np.concatenate(none + numbers), positions)


def region_of_old(base: Snapshot, schema: pa.Schema, within: Within) -> OldRows:
    """The old rows of a region, with files skipped."""
    time = None if within.time is None else schema.field(within.time)
    return old_rows(base, schema, within, within.region.conjuncts(within.columns, time, 0, 0))


def publish(base: Snapshot, metadata: Metadata, old: OldRows, gone: Places, come: pa.Table) -> Changed:
    """Mark rows as gone and write those that come."""
    prefix = f"{PREFIX}-{base.version + 1}"
    edit = removal(base, old.places(gone), folder=PREFIX)
    adds, unflushed = [], list[str]()
    if come.num_rows:
        if come.num_rows <= _SMALL_ROWS:
            batch = come.combine_chunks().to_batches()[0]
            adds = [small_files.write_rows(base.storage, metadata, batch, small_files.new_path(prefix))]
            unflushed += [partitions.decode_path(f.path) for f in adds]
        else:
            adds = data_files.write_rows(base.storage, data_files.Layout(metadata), come.to_batches(), prefix=prefix)
    cdc: list[Action] = []
    if base.writes_change_feed and (edit.adds or any(f.deletion_vector is not None for f in edit.removes)):
        changes = {"delete": old.rows.take(pa.array(gone)), "insert": come}
        cdc = data_files.change_feed(metadata, base.storage, changes, prefix=prefix, flush=False)
        unflushed += [partitions.decode_path(a["cdc"]["path"]) for a in cdc]
    unflushed += edit.write(base, flush=False)
    faults.point("features.publish.written", base.where)
    return Changed(edit.adds + adds, edit.removes, cdc, come.num_rows, len(gone), unflushed)


def replaced(base: Snapshot, adds: Iterable[AddFile]) -> Changed:
    """Take all files out and put others in."""
    now, new = now_ms(), list(adds)
    faults.point("features.publish.written", base.where)
    deleted = sum((f.num_records or 0) - f.num_deleted for f in base.files.values())
    removes = [f.removed(now) for f in base.files.values()]
    return Changed(new, removes, [], sum(f.num_records or 0 for f in new), deleted)


def commit(
    base: Snapshot,
    changed: Changed,
    record: Record,
    *,
    definition: Definition | None = None,
    metadata: Metadata | None = None,
) -> Committed:
    """Commit rows with what they reflect, on ``base`` and nothing else; or raise ConflictError."""
    assert record.published == base.version + 1, "a record names the version that it is a part of"
    features = protocol.needed(metadata.schema, metadata.configuration) if metadata else set()
    raised = protocol.with_features(base.state.protocol, {*_FEATURES, *features})
    reflects = published.domain(published.state_domain(WORDS.name), record.to_json())
    parameters: Mapping[str, str] = {"frontier": str(record.frontier)}
    proposal = Proposal(
        "REFRESH FEATURE TABLE",
        dict(parameters),
        adds=changed.adds,
        removes=changed.removes,
        cdc=changed.cdc,
        metadata=metadata,
        protocol=None if raised == base.state.protocol else raised,
        domains=[reflects] if definition is None else [definition.action(), reflects],
        metrics={"numInsertedRows": changed.inserted, "numDeletedRows": changed.deleted},
        reads=lambda _: True,
        yields_to_appends=False,
        unflushed=changed.unflushed,
    )
    return transaction.run(base.storage, lambda _: proposal, if_version=base.version)
