"""Exports: the rows of a table, or some of them, as plain Parquet files that follow the table.

A warehouse, a notebook or a partner may read Parquet and know nothing of Delta. Such a copy is usually written by a job
that nobody trusts: rows twice after a crash, deleted rows still there. An export is a derived artefact: each file of it
holds the live rows of one file of the source, so a refresh writes only for files that came or whose deletion vector
changed. The commit (`derived.record_log`) names all files and the frontier at once. A file that is not named any more
stays until the next refresh, for readers that have just looked, and then goes.

Readers get the files from `Export.files`, or from ``_symlink_format_manifest/manifest`` in the folder, which Spark,
Trino and Athena know; it is written after the commit, in one step, and always names one whole set.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headwater.base import events, faults, rowkey
from headwater.base.errors import InputError, NotFoundError
from headwater.base.frontier import Frontier
from headwater.base.kinds import words_of
from headwater.base.storage import Storage, now_ms, open_storage
from headwater.derived.environment import Environment
from headwater.derived.plan import RefreshPlan
from headwater.derived.recorded import Built, RecordedArtefact
from headwater.derived.sources import Input, Sources, Unavailable
from headwater.export.definition import Definition, Exported, ExportRecord
from headwater.lake.actions import AddFile
from headwater.lake.file_changes import ChangedFile, file_changes
from headwater.lake.select import select
from headwater.lake.snapshot import Snapshot
from headwater.sql import expressions

__all__ = ["Export"]

_MANIFEST = "_symlink_format_manifest/manifest"
_PREFIX = "part-"


@dataclass(frozen=True, kw_only=True)
class ExportPlan(RefreshPlan):
    """What a refresh of an export would do: the files of the source to write, and those that changed."""

    todo: Sequence[AddFile] = ()
    changed: Sequence[ChangedFile] = ()


class Export(RecordedArtefact):
    """A table's rows as Parquet files. Made by ``lake.export``."""

    kind = words_of("export")
    record_type = ExportRecord

    def __init__(self, name: str, environment: Environment) -> None:
        super().__init__(name, environment)
        self._meant = Definition.from_json(self.committed().definition)

    # -- what it is ------------------------------------------------------------------------------------------------

    @property
    def definition(self) -> str:
        """The query that gives the same rows."""
        return str(self._meant)

    @property
    def inputs(self) -> Sequence[Input]:
        """The columns of the source that are exported, or that decide which rows are."""
        return (self._meant.input,)

    @property
    def location(self) -> str:
        """The folder that the files lie in."""
        return self._meant.location

    @property
    def storage(self) -> Storage:
        """The storage of that folder."""
        return open_storage(self.location, self._environment.root.options or None)

    @property
    def rows(self) -> int | None:
        """How many rows it has."""
        record: ExportRecord = self.record
        return sum(one.rows for one in record.files.values())

    @property
    def files(self) -> list[str]:
        """Where the files lie that hold the rows as of `frontier`, for any reader of Parquet."""
        return [self.storage.location(path) for path in self.record.paths]

    # -- rows ------------------------------------------------------------------------------------------------------

    def read(self) -> pa.RecordBatchReader:
        """The rows, as of `frontier`; an error if it was never built."""
        record, storage, schema = self.record, self.storage, self._meant.output
        if not record.published:
            raise InputError.not_built(self.name, 0, self.location, self.kind)

        def batches() -> Iterator[pa.RecordBatch]:
            for path in record.paths:
                with storage.open_input(path) as source:
                    for batch in pq.ParquetFile(source).iter_batches():
                        yield batch.cast(schema)

        return pa.RecordBatchReader.from_batches(schema, batches())

    def recompute(self, at: Frontier) -> pa.RecordBatchReader:
        """The rows that the source has at ``at``."""
        return self._selected(self.pinned(Frontier(), at).pinned[self._meant.source])

    def _selected(self, base: Snapshot, files: Sequence[AddFile] | None = None) -> pa.RecordBatchReader:
        meant, schema = self._meant, self._meant.output
        rows = select(base, meant.columns, meant.where, files=files)
        batches = (pa.record_batch(batch.columns, schema.names).cast(schema) for batch in rows)
        return pa.RecordBatchReader.from_batches(schema, batches)

    def of_rows(self, rows: pa.Table) -> pa.Table:
        """The columns of those rows that meet the condition."""
        if self._meant.where is not None:
            wanted = expressions.parse_condition(self._meant.where, schema=rows.schema)
            rows = rows.filter(pc.fill_null(expressions.evaluate(wanted, rows), False))
        return rows.select(self._meant.columns).cast(self._meant.output)

    def found(self, rows: pa.Table) -> list[dict[str, object]]:
        """The files that hold some of the rows, and how many of them."""
        wanted, places = rows.cast(self._meant.output), []
        for path in self.record.paths:
            with self.storage.open_input(path) as source:
                there = pq.read_table(source).cast(self._meant.output)
            count = rowkey.count_common(wanted, there)
            if count:
                places.append({"file": self.storage.location(path), "rows": count})
        return places

    # -- refreshing ------------------------------------------------------------------------------------------------

    def decide(self, record: ExportRecord, sources: Sources, *, full: bool) -> ExportPlan:
        """Which files of the source have to be written."""
        base = sources.pinned.get(self._meant.source)
        if base is None:
            return ExportPlan(mode="noop", reason="no source is named")
        rows, every = sources.total_rows(), tuple(base.files.values())
        sources.check_columns()
        if not record.published or full:
            why = "it was asked for" if record.published else "it was never built"
            return ExportPlan(mode="full", reason=why, rows=rows, todo=every)
        if sources.frontier == record.frontier:
            return ExportPlan(mode="noop", reason="nothing has changed", rows=rows)
        try:
            sources.check()
            changed = file_changes(base, sources.since[self._meant.source]).files
            counts = sources.changed_rows()
        except (Unavailable, NotFoundError) as e:
            why = str(e) if isinstance(e, Unavailable) else f"its changes are gone: {e.message}"
            return ExportPlan(mode="full", reason=why, rows=rows, todo=every)
        todo = [one.after for one in changed if one.after is not None]
        reason = f"{len(changed):,} file{'' if len(changed) == 1 else 's'} changed"
        return ExportPlan(mode="incremental", reason=reason, rows=rows, changes=counts, todo=todo, changed=changed)

    def build(self, record: ExportRecord, plan: ExportPlan, sources: Sources, number: int, task: events.Task) -> Built:
        """Write the files of the source that are to be written."""
        base = sources.pinned[self._meant.source]
        task.expect(sum((one.num_records or 0) - one.num_deleted for one in plan.todo) or None)
        kept = {} if plan.mode == "full" else {p: f for p, f in record.files.items() if p in base.files}
        written = {one.path: self._write(base, one, number, task) for one in plan.todo}
        files = {**kept, **written}
        if plan.mode == "full":
            rows_in, rows_out = plan.rows, sum(one.rows for one in (*record.files.values(), *files.values()))
        else:  # rows that only lie elsewhere now are neither read as changes nor changed
            moved = {one.path for one in plan.changed if one.kind == "rewritten"}
            rows_in = sum(plan.changes.values())
            rows_out = sum(_difference(record.files.get(p), files.get(p)) for p in {*record.files, *files} - moved)
        gone = {*record.paths} - {one.path for one in files.values()}
        return Built(ExportRecord(files=files, superseded=tuple(sorted(gone))), rows_in, rows_out)

    def _write(self, base: Snapshot, file: AddFile, number: int, task: events.Task) -> Exported:
        path, rows, vector = f"{_PREFIX}{number:010d}-{uuid.uuid4().hex}.parquet", 0, file.key[1]
        faults.point("export.file.before_write", path)
        batches = (batch for batch in self._selected(base, [file]) if batch.num_rows)
        first = next(batches, None)
        if first is None:
            return Exported(vector, None, 0)
        with self.storage.open_output(path) as to, pq.ParquetWriter(to, self._meant.output) as writer:
            for batch in itertools.chain([first], batches):
                writer.write_batch(batch)
                rows += batch.num_rows
                task.advance(batch.num_rows)
        return Exported(vector, path, rows)

    def tidy(self, before: ExportRecord | None, after: ExportRecord) -> None:
        """Delete what readers have had time to finish with, and point at what is there now."""
        storage = self.storage
        if before is None:  # an attempt may have failed: look at every file
            named = {*after.paths, *after.superseded}
            gone = [e.path for e in storage.list("") if e.path.startswith(_PREFIX) and e.path not in named]
        else:
            gone = list(before.superseded)
        for path in gone:
            faults.point("export.file.before_delete", path)
            storage.delete(path)
        if after.published:
            storage.put(_MANIFEST, "".join(f"{storage.location(path)}\n" for path in after.paths).encode())

    def delete_others(self, record: ExportRecord) -> None:
        """Delete the files that a record does not name, and have the manifest name those that it does."""
        storage, named = self.storage, set(record.paths)
        for entry in list(storage.list("")):
            if entry.path.startswith(_PREFIX) and entry.path not in named:
                faults.point("export.file.before_delete", entry.path)
                storage.delete(entry.path)
        storage.sweep("", now_ms())
        storage.put(_MANIFEST, "".join(f"{storage.location(path)}\n" for path in record.paths).encode())

    def remove_output(self) -> None:
        """Delete the files and the manifest."""
        for entry in list(self.storage.list("")):
            if entry.path.startswith(_PREFIX) or entry.path == _MANIFEST:
                self.storage.delete(entry.path)


def _difference(before: Exported | None, after: Exported | None) -> int:
    if before == after:
        return 0
    return abs((before.rows if before else 0) - (after.rows if after else 0))
