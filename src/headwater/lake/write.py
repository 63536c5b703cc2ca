"""Writing rows: append, and overwrite of everything, of partitions, or of a condition.

Data files are written first and committed after. An append that meets other writers keeps its files and tries the
next version. An overwrite works out what it removes from the version it is committed on: a row that another writer
appended a moment before is overwritten like the rest, and never survives by accident. Whoever computed the new rows
from an older version says so with ``if_version``, and gets a conflict instead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa

from headwater.base.errors import ConflictError, ConstraintError, InputError, SchemaError
from headwater.base.schema import Field, Schema
from headwater.base.storage import Storage, now_ms
from headwater.lake import data_files, definition, edit, find, protocol, transaction
from headwater.lake.actions import Action, AddFile, Metadata, RemoveFile
from headwater.lake.conflicts import Proposal
from headwater.lake.conform import Rows, as_rows, conform, new_fields
from headwater.lake.constraints import enforce
from headwater.lake.scan import scan
from headwater.lake.snapshot import Snapshot, Target, resolve
from headwater.lake.transaction import Committed
from headwater.sql import expressions
from headwater.sql.fragment import Fragment, spelled

__all__ = ["SchemaMode", "Source", "append", "check_definition", "create", "evolve", "fitted", "overwrite", "prepared"]

SchemaMode = Literal["strict", "merge", "replace"]


class Source(ABC):
    """Rows that another engine writes: they never pass through this process, only what was written does."""

    schema: pa.Schema

    @abstractmethod
    def write(
        self, storage: Storage, metadata: Metadata, checks: Mapping[str, str], where: str | None = None
    ) -> list[AddFile]:
        """Write rows that fit the table and meet its constraints and ``where``, or leave nothing and raise."""


def create(
    storage: Storage, metadata: Metadata, rows: Rows | Source | None = None, **proposal: Any
) -> Committed | None:
    """Make a table (with its first rows, in the same commit); None if one is there already."""
    layout = data_files.Layout(metadata)
    checks = check_definition(metadata)
    adds: list[AddFile] = []
    if isinstance(rows, Source):
        adds = rows.write(storage, metadata, checks)
    elif rows is not None:
        fit = fitted(rows, metadata.schema, checks, storage.url)
        adds = data_files.write_rows(storage, layout, fit.batches)
    return transaction.create(
        storage,
        Proposal(
            "CREATE TABLE" if rows is None else "CREATE TABLE AS SELECT",
            {"partitionBy": list(metadata.partition_columns)},
            adds=adds,
            metadata=metadata,
            protocol=protocol.for_table(metadata.schema, metadata.configuration),
            metrics=_written(adds),
            **proposal,
        ),
    )


def check_definition(metadata: Metadata) -> dict[str, str]:
    """The CHECK constraints of a new table by name, once they and its generated columns are seen to make sense."""
    prefix = "delta.constraints."
    checks = {k[len(prefix) :]: v for k, v in metadata.configuration.items() if k.startswith(prefix)}
    for text in checks.values():
        expressions.parse_condition(text, schema=metadata.schema.arrow)
    for text in [f.generation for f in metadata.schema.fields if f.generation]:
        expressions.parse(text, schema=metadata.schema.arrow)
    return checks


def fitted(rows: Rows, schema: Schema, checks: dict[str, str], where: str) -> Rows:
    """``rows`` with exactly these columns, of which each is checked as it passes."""
    generated = [f.name for f in schema.fields if f.generation]
    return enforce(conform(rows, schema, where=where, optional=generated), schema, checks, where)


def prepared(rows: Rows, base: Snapshot) -> Rows:
    """``rows`` that fit the table and meet its constraints."""
    return fitted(rows, base.schema, base.constraints, base.where)


def _written(adds: Sequence[AddFile]) -> dict[str, int | float]:
    return {
        "numFiles": len(adds),
        "numOutputRows": sum(f.num_records or 0 for f in adds),
        "numOutputBytes": sum(f.size for f in adds),
    }


def evolve(base: Snapshot, incoming: pa.Schema, mode: SchemaMode) -> Snapshot:
    """The snapshot under the metadata that rows of ``incoming`` are written with."""
    metadata = base.state.metadata
    if mode == "merge":
        added = new_fields(incoming, base.schema)
        if added:
            metadata = definition.add_fields(metadata, added)
    elif mode == "replace":
        metadata = _replaced(base, incoming)
    elif mode != "strict":
        raise InputError.bad_argument("schema_mode", mode, '"strict", "merge" or "replace"')
    if metadata is base.state.metadata:
        return base
    needed = protocol.needed(metadata.schema, metadata.configuration)
    raised = protocol.with_features(base.state.protocol, needed)
    return Snapshot(base.storage, replace(base.state, metadata=metadata, protocol=raised))


def _replaced(base: Snapshot, incoming: pa.Schema) -> Metadata:
    # A column that stays as it is keeps its id and its name in files, and what else is said of it.
    kept = {f.name: f for f in base.schema.fields}
    new = Schema(tuple(_kept(kept.get(f.name), f) for f in Schema.from_arrow(incoming).fields))
    if set(new.names) == set(kept) and all(kept[f.name] is f for f in new.fields):
        return base.state.metadata
    lost = [c for c in base.partition_columns if c not in new]
    if lost:
        raise SchemaError.bad_partition(lost[0], "the new schema lacks it, and the table is partitioned by it")
    return definition.with_schema(base.state.metadata, new)


def _kept(old: Field | None, new: Field) -> Field:
    return old if old is not None and old.arrow.type == new.arrow.type else new


class _Files:
    """Data files written once for an operation that may have to run several times."""

    def __init__(self, base: Snapshot, planned: Snapshot, adds: list[AddFile]) -> None:
        self.base, self.planned, self.adds = base, planned, adds

    def check(self, now: Snapshot) -> None:
        """The table may have moved on, but not its meaning."""
        if now.table_id != self.base.table_id:
            raise ConflictError.lost("the table was dropped and created again", now.version, "CREATE", now.where)
        before, after = self.base.state.metadata, now.state.metadata
        if (before.schema, before.partition_columns, dict(before.configuration)) != (
            after.schema,
            after.partition_columns,
            dict(after.configuration),
        ):
            raise ConflictError.lost("the table's schema or properties were changed", now.version, "ALTER", now.where)

    def metadata(self) -> dict[str, Any]:
        if self.planned is self.base:
            return {}
        changed: dict[str, Any] = {"metadata": self.planned.state.metadata}
        if self.planned.state.protocol != self.base.state.protocol:
            changed["protocol"] = self.planned.state.protocol
        return changed

    def discard(self, storage: Storage) -> None:
        transaction.discard(storage, Proposal("", adds=self.adds))


def _write_files(base: Snapshot, data: Any, schema_mode: SchemaMode, where: str | Fragment | None = None) -> _Files:
    storage = base.storage
    base.check_writable()
    rows = data if isinstance(data, Rows | Source) else as_rows(data)
    planned = evolve(base, rows.schema, schema_mode)
    if isinstance(rows, Source):
        find.condition(planned, where)  # so that a bad condition is found before anything is written
        assert not isinstance(where, Fragment) or not where.parameters, "values are not pasted into Spark's text"
        text = None if where is None else str(where)
        return _Files(base, planned, rows.write(storage, planned.state.metadata, planned.constraints, text))
    fitted = prepared(rows, planned)
    if where is not None:
        fitted = _all_meeting(fitted, planned, where)
    adds = data_files.write_rows(storage, data_files.Layout(planned.state.metadata), fitted.batches)
    return _Files(base, planned, adds)


def append(
    target: Target,
    data: Any,
    *,
    schema_mode: SchemaMode = "strict",
    txn: tuple[str, int] | None = None,
    tags: Mapping[str, str] | None = None,
) -> Committed:
    """Add rows to the table, in one commit."""
    if schema_mode == "replace":
        raise InputError.bad_argument("schema_mode", schema_mode, '"strict" or "merge" for append')
    base = resolve(target)
    if _is_applied(base, txn):
        return Committed(base.version, "WRITE", {}, skipped=True)
    files = _write_files(base, data, schema_mode)

    def operation(now: Snapshot) -> Proposal:
        files.check(now)
        return Proposal(
            "WRITE",
            {"mode": "Append", "partitionBy": list(now.partition_columns)},
            adds=files.adds,
            txn=txn,
            tags=dict(tags or {}),
            metrics=_written(files.adds),
            keeps=frozenset(f.path for f in files.adds),
            **files.metadata(),
        )

    return transaction.run(base, operation, undo=lambda: files.discard(base.storage))


def _is_applied(base: Snapshot, txn: tuple[str, int] | None) -> bool:
    return txn is not None and base.state.txns.get(txn[0], -1) >= txn[1]


def overwrite(
    target: Target,
    data: Any,
    *,
    where: str | Fragment | None = None,
    partitions: Literal["dynamic"] | None = None,
    schema_mode: SchemaMode = "strict",
    if_version: int | None = None,
    txn: tuple[str, int] | None = None,
    tags: Mapping[str, str] | None = None,
) -> Committed:
    """Replace all rows, those of the partitions that ``data`` has rows in, or those that meet ``where``."""
    if where is not None and partitions is not None:
        raise InputError.bad_argument("where", str(where), "either `where` or `partitions`, not both")
    if partitions not in (None, "dynamic"):
        raise InputError.bad_argument("partitions", partitions, '"dynamic" or None')
    if schema_mode == "replace" and (where or partitions):
        raise InputError.bad_argument(
            "schema_mode", schema_mode, '"strict" or "merge" when only some rows are replaced'
        )
    base = resolve(target)
    storage = base.storage
    if _is_applied(base, txn):
        return Committed(base.version, "WRITE", {}, skipped=True)
    if partitions == "dynamic" and not base.partition_columns:
        raise InputError.bad_argument("partitions", partitions, "a partitioned table")
    files = _write_files(base, data, schema_mode, where)

    def operation(now: Snapshot) -> Proposal:
        files.check(now)
        _check_not_append_only(now)
        cut = _cut(now, where, files.adds if partitions else None)
        cdc: list[Action] = []
        if where is not None and cut.adds:
            # Some files keep part of their rows, so readers of the feed cannot tell the change from the files.
            planned = replace(now.state, metadata=files.planned.state.metadata)
            gone = find.fetch(Snapshot(storage, planned), find.find_rows(now, find.condition(now, where)))
            written = Snapshot(storage, replace(planned, files={f.path: f for f in files.adds}))
            new = pa.Table.from_batches(scan(written, written.schema.names), gone.schema)
            cdc = data_files.change_feed(planned.metadata, storage, {"delete": gone, "insert": new})
        return Proposal(
            "WRITE",
            _parameters(now, where, partitions),
            adds=cut.adds + files.adds,
            removes=cut.removes,
            cdc=cdc,
            txn=txn,
            tags=dict(tags or {}),
            metrics=cut.metrics | _written(files.adds),
            reads=lambda _: True,
            yields_to_appends=False,
            keeps=frozenset(f.path for f in files.adds),
            **files.metadata(),
        )

    return transaction.run(base, operation, if_version=if_version, undo=lambda: files.discard(storage))


def _parameters(base: Snapshot, where: str | Fragment | None, partitions: str | None) -> dict[str, Any]:
    parameters: dict[str, Any] = {"mode": "Overwrite", "partitionBy": list(base.partition_columns)}
    if where is not None:
        parameters["predicate"] = spelled(where)
    if partitions is not None:
        parameters["partitionOverwriteMode"] = partitions
    return parameters


def _check_not_append_only(base: Snapshot) -> None:
    if base.is_on("delta.appendOnly"):
        raise InputError.append_only(base.where)


def _cut(base: Snapshot, where: str | Fragment | None, only_partitions_of: Sequence[AddFile] | None) -> edit.Edit:
    """The actions that take the replaced rows out."""
    now = now_ms()
    if where is not None:
        wanted = find.condition(base, where)
        return edit.remove_rows(base, find.find_rows(base, wanted))
    touched = None if only_partitions_of is None else {find.partition_of(base, f) for f in only_partitions_of}
    removes: list[RemoveFile] = [
        f.removed(now) for f in base.files.values() if touched is None or find.partition_of(base, f) in touched
    ]
    return edit.Edit(removes=removes, metrics={"numRemovedFiles": len(removes)})


def _all_meeting(rows: Rows, base: Snapshot, where: str | Fragment) -> Rows:
    """``rows``, with an error if one of them does not meet ``where``: it would not be replaced next time."""
    import pyarrow.compute as pc

    wanted = find.condition(base, where)
    assert wanted is not None

    def checked() -> Iterator[pa.RecordBatch]:
        for batch in rows.batches:
            table = pa.Table.from_batches([batch])
            met = pc.sum(pc.fill_null(expressions.evaluate(wanted, table), False)).as_py() or 0
            if met != batch.num_rows:
                raise ConstraintError.outside(str(where), batch.num_rows - met, base.where)
            yield batch

    return Rows(rows.schema, checked())
