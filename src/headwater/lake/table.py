"""The table: what a user holds. A thin facade; each method is one operation in its own file.

>>> import headwater as hw, tempfile
>>> lake = hw.connect(tempfile.mkdtemp())
>>> t = lake.write("orders", [{"id": 1, "amount": 10}, {"id": 2, "amount": 20}])
>>> _ = t.update({"amount": "amount + 1"}, where="id = 1")
>>> _ = t.delete("id = 2")
>>> t.to_pylist(), t.at(version=0).count(), t.version
([{'id': 1, 'amount': 11}], 2, 2)
>>> sorted((r["id"], r["amount"], r["_weight"]) for r in t.changes(after=0).to_arrow().to_pylist())
[(1, 10, -1), (1, 11, 1), (2, 20, -1)]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from headwater.base.errors import ConflictError, InputError
from headwater.base.schema import Field, Schema
from headwater.base.storage import Storage
from headwater.lake import alter, modify, write
from headwater.lake.conform import as_rows, is_spark_frame
from headwater.lake.definition import define, is_mapped, keep_columns
from headwater.lake.published import check_editable, check_properties, is_derived
from headwater.lake.readable import ReadableTable
from headwater.lake.replace import replace_table
from headwater.lake.snapshot import Snapshot
from headwater.lake.transaction import Committed
from headwater.lake.write import SchemaMode
from headwater.sql.fragment import Fragment

if TYPE_CHECKING:
    from headwater.lake.merge import Merge
    from headwater.lake.vacuum import Vacuumed
    from headwater.spark.types import DataFrame

__all__ = ["Table"]

_APPEND_OPTIONS = ("schema_mode", "txn", "tags")
_OVERWRITE_OPTIONS = (*_APPEND_OPTIONS, "where", "partitions", "if_version")


class Table(ReadableTable):
    """A Delta table: what can be read of it, and what changes it."""

    # ------------------------------------------------------------------ making it, and adding rows

    def create(
        self,
        schema: pa.Schema | Mapping[str, pa.DataType] | Schema,
        *,
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        constraints: Mapping[str, str] | None = None,
        generated: Mapping[str, str] | None = None,
        description: str | None = None,
        mode: Literal["error", "ignore", "replace"] = "error",
        data: Any = None,
        if_version: int | None = None,
    ) -> Table:
        """Make a table, empty or with its first rows in the same commit.

        Parameters
        ----------
        constraints
            CHECK conditions by name; a row must meet each.
        generated
            Expressions by column; the column is computed when it is left out, and checked when it is given.
        mode
            What happens where the table is there already: an error, nothing, or a new definition (and new rows) in its
            place, as one commit to the same table.
        data
            The first rows, anything that `append` takes.
        if_version
            With ``mode="replace"``: the version that is replaced, else it is a conflict.
        """
        fields = pa.schema(list(schema.items())) if isinstance(schema, Mapping) else schema
        there = self.current() if mode == "replace" else None
        if there is not None:
            there = self._editable("create", there)
        if there is not None and is_mapped(properties or {}):
            # An id that a column once had is not given to another.
            last = "delta.columnMapping.maxColumnId"
            properties = {**(properties or {}), last: there.configuration.get(last, "0")}
            columns = fields if isinstance(fields, Schema) else Schema.from_arrow(fields)
            fields = keep_columns(columns, there.state.metadata)
        metadata = define(
            fields,
            partition_by=partition_by,
            table_properties=properties,
            constraints=constraints,
            generated=generated,
            name=self.name,
            description=description,
        )
        rows = None if data is None else as_rows(data)
        if there is not None:
            replace_table(there, metadata, rows, if_version=if_version)
            return self
        made = None if mode != "replace" and self.exists() else write.create(self._free_storage(), metadata, rows)
        if made is None and mode != "ignore":
            raise InputError.already_exists(self.name, self.location)
        return self

    def append(self, data: Any, *, schema_mode: SchemaMode = "strict", **options: Any) -> Committed:
        """Add rows; ``schema_mode="merge"`` adds columns the table lacks.

        With ``txn=(app_id, version)`` the rows are added once, however often the same transaction is tried.
        """
        return self._append(self._editable("append"), data, schema_mode=schema_mode, **options)

    def _append(self, base: Snapshot, data: Any, *, schema_mode: SchemaMode = "strict", **options: Any) -> Committed:
        if is_spark_frame(data):
            from headwater.lake.spark.write import append

            return append(self, data, schema_mode=schema_mode, **options)
        return write.append(base, data, schema_mode=schema_mode, **options)

    def overwrite(
        self,
        data: Any,
        *,
        where: str | Fragment | None = None,
        partitions: Literal["dynamic"] | None = None,
        schema_mode: SchemaMode = "strict",
        **options: Any,
    ) -> Committed:
        """Replace all rows, those that meet ``where``, or the partitions that ``data`` has rows in."""
        base = self._editable("overwrite")
        return self._overwrite(base, data, where=where, partitions=partitions, schema_mode=schema_mode, **options)

    def _overwrite(
        self,
        base: Snapshot,
        data: Any,
        *,
        where: str | Fragment | None = None,
        partitions: Literal["dynamic"] | None = None,
        schema_mode: SchemaMode = "strict",
        **options: Any,
    ) -> Committed:
        if is_spark_frame(data) and isinstance(where, Fragment) and where.parameters:
            data = data.toArrow()  # Spark would have to be given the values as text
        if is_spark_frame(data):
            from headwater.lake.spark.write import overwrite

            text = None if where is None else str(where)
            return overwrite(self, data, where=text, partitions=partitions, schema_mode=schema_mode, **options)
        return write.overwrite(base, data, where=where, partitions=partitions, schema_mode=schema_mode, **options)

    def write(
        self,
        data: Any,
        *,
        mode: Literal["append", "overwrite", "error", "ignore"] = "append",
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Committed | None:
        """Append or overwrite, making the table if it is not there."""
        if mode not in ("append", "overwrite", "error", "ignore"):
            raise InputError.bad_argument("mode", mode, '"append", "overwrite", "error" or "ignore"')
        known = _OVERWRITE_OPTIONS if mode == "overwrite" else _APPEND_OPTIONS
        for name, value in options.items():
            if name not in known:
                raise InputError.bad_argument(name, value, f"one of {', '.join(known)}, for mode={mode!r}")
        base = self.current()
        if base is None:
            made = self._create_with(data, partition_by, properties, options.get("txn"))
            if made is not None:
                return made
            if isinstance(data, pa.RecordBatchReader):
                # Its rows went into files of the table that lost the race, and cannot be read again.
                raise ConflictError.lost("the table was created", 0, "CREATE TABLE", self.location)
        if mode == "error":
            raise InputError.already_exists(self.name, self.location)
        if mode == "ignore":
            return None
        base = self._editable(mode, base)
        self._check_partitioning(base, partition_by)
        return self._append(base, data, **options) if mode == "append" else self._overwrite(base, data, **options)

    def _create_with(
        self, data: Any, partition_by: Sequence[str], properties: Mapping[str, str] | None, txn: tuple[str, int] | None
    ) -> Committed | None:
        if is_spark_frame(data):
            from headwater.lake.spark.write import create

            return create(self, data, partition_by=partition_by, properties=properties, txn=txn)
        rows = data if isinstance(data, write.Source) else as_rows(data)
        metadata = define(rows.schema, partition_by=partition_by, table_properties=properties, name=self.name)
        return write.create(self._free_storage(), metadata, rows, txn=txn)

    def _free_storage(self) -> Storage:
        """Where the table will lie, if no other table is in the way."""
        if self._lake is not None:
            self._lake.catalog.check_free(self.name)
        return self.storage

    def _check_partitioning(self, base: Snapshot, partition_by: Sequence[str]) -> None:
        given = [partition_by] if isinstance(partition_by, str) else list(partition_by)
        have = list(base.partition_columns)
        if given and [c.lower() for c in given] != [c.lower() for c in have]:
            raise InputError.bad_argument("partition_by", given, f"what the table is partitioned by: {have}")

    def _newest(self) -> Snapshot:
        """The newest version, which one operation resolves once and hands on; an older one cannot be written."""
        if self._pinned is not None:
            raise InputError.bad_argument(
                "at", self._pinned.version, "the table itself: older versions cannot be written"
            )
        return self.snapshot

    def _editable(self, verb: str, base: Snapshot | None = None) -> Snapshot:
        """The newest version (``base``, if the caller has it), if its rows may be changed."""
        base = base or self._newest()
        check_editable(self.name, base, f"{verb}()")
        return base

    # ------------------------------------------------------------------ changing rows

    def delete(self, where: str | Fragment | None = None, *, if_version: int | None = None) -> Committed:
        """Delete the rows that meet ``where``, or all."""
        base = self._editable("delete")
        return modify.delete(base, where, if_version=if_version)

    def update(
        self,
        assignments: Mapping[str, str | Fragment],
        *,
        where: str | Fragment | None = None,
        if_version: int | None = None,
    ) -> Committed:
        """Set columns to SQL expressions in the rows that meet ``where``, or in all."""
        base = self._editable("update")
        return modify.update(base, assignments, where, if_version=if_version)

    def merge(
        self,
        source: Any,
        on: str | Fragment | Sequence[str],
        *,
        target_alias: str = "t",
        source_alias: str = "s",
        schema_mode: SchemaMode = "strict",
        if_version: int | None = None,
    ) -> Merge:
        """Begin a merge of ``source``; add clauses, then ``execute()``. ``on`` is a condition, or key columns."""
        from headwater.lake.merge import Merge

        base = self._editable("merge")
        if is_spark_frame(source):
            source = source.toArrow()
        return Merge.of(
            base,
            source,
            on,
            target_alias=target_alias,
            source_alias=source_alias,
            schema_mode=schema_mode,
            if_version=if_version,
        )

    # ------------------------------------------------------------------ schema and properties

    def add_columns(self, fields: Mapping[str, pa.DataType] | Sequence[pa.Field | Field]) -> Committed:
        """Add columns; rows that are there have null in them."""
        base = self._editable("add_columns")
        given: list[pa.Field | Field]
        given = [pa.field(n, t) for n, t in fields.items()] if isinstance(fields, Mapping) else list(fields)
        return alter.add_columns(base, given)

    def widen_column(self, column: str, to: pa.DataType) -> Committed:
        """Give a column a wider type."""
        base = self._editable("widen_column")
        return alter.widen_column(base, column, to)

    def rename_column(self, column: str, new_name: str) -> Committed:
        """Rename a column (with column mapping)."""
        base = self._editable("rename_column")
        return alter.rename_column(base, column, new_name)

    def drop_column(self, column: str) -> Committed:
        """Drop a column (with column mapping)."""
        base = self._editable("drop_column")
        return alter.drop_column(base, column)

    def drop_not_null(self, column: str) -> Committed:
        """Let a column be null."""
        return alter.drop_not_null(self._newest(), column)

    def comment_column(self, column: str, comment: str) -> Committed:
        """Say what a column holds."""
        return alter.comment_column(self._newest(), column, comment)

    def set_properties(self, properties: Mapping[str, str]) -> Committed:
        """Set table properties; a view's table keeps those that refreshing needs."""
        base = self._newest()
        if is_derived(base):
            check_properties(properties)
        return alter.set_properties(base, properties)

    def unset_properties(self, names: Sequence[str]) -> Committed:
        """Remove table properties."""
        base = self._newest()
        if is_derived(base):
            check_properties(dict.fromkeys(names))
        return alter.unset_properties(base, names)

    def add_constraint(self, name: str, expression: str) -> Committed:
        """Add a CHECK constraint; the rows that are there must meet it."""
        base = self._editable("add_constraint")
        return alter.add_constraint(base, name, expression)

    def drop_constraint(self, name: str) -> Committed:
        """Drop a CHECK constraint."""
        return alter.drop_constraint(self._newest(), name)

    # ------------------------------------------------------------------ upkeep

    def optimize(
        self, *, where: str | Fragment | None = None, zorder_by: Sequence[str] = (), target_bytes: int | None = None
    ) -> Committed:
        """Pack small files together and fold deletion vectors away; the rows stay the same."""
        from headwater.lake.optimize import optimize

        return optimize(self._newest(), where=where, zorder_by=zorder_by, target_bytes=target_bytes)

    def vacuum(
        self, *, retention_hours: float | None = None, dry_run: bool = False, enforce_retention: bool = True
    ) -> Vacuumed:
        """Delete files that no version within the retention needs."""
        from headwater.lake.vacuum import vacuum

        return vacuum(
            self._newest().storage,
            retention_hours=retention_hours,
            dry_run=dry_run,
            enforce_retention=enforce_retention,
        )

    def restore(self, version: int | None = None, *, timestamp: datetime | str | None = None) -> Committed:
        """Make an older version the newest one."""
        from headwater.lake.restore import restore

        base = self._editable("restore")
        return restore(base, self.at(version, timestamp=timestamp).version)

    def checkpoint(self) -> None:
        """Write a checkpoint of the newest version now."""
        from headwater.lake import checkpoint

        checkpoint.write(self.storage, self.snapshot.version)

    # ------------------------------------------------------------------ streams

    def stream_writer(self, app_id: str, *, schema_mode: SchemaMode = "strict") -> Callable[[DataFrame, int], None]:
        """A function for Structured Streaming's ``foreachBatch`` that appends each batch exactly once.

        ``app_id`` names the query in the table's log: a batch that Spark repeats after a crash is found there and
        skipped.
        """
        from headwater.lake.spark.stream import foreach_batch_append

        return foreach_batch_append(self, app_id, schema_mode=schema_mode)
