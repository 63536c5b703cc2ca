"""What can be read of a table: its rows, versions, history and changes, here and on Spark.

A thin facade; each method is one operation in its own file. `Table` adds what changes a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, Self

import pyarrow as pa

from headwater.base.errors import CorruptionError, InputError, NotFoundError
from headwater.base.packages import required
from headwater.base.schema import spark_type
from headwater.base.storage import Storage
from headwater.lake import history, snapshot
from headwater.lake.catalog import is_table
from headwater.lake.history import HistoryEntry
from headwater.lake.published import check_built, is_built
from headwater.lake.scan import scan
from headwater.lake.snapshot import Snapshot

if TYPE_CHECKING:
    from headwater.base.change import ChangeBatch
    from headwater.lake.actions import AddFile, Metadata
    from headwater.lake.file_changes import FileChanges
    from headwater.lake.home import TableHome
    from headwater.spark.types import DataFrame, SparkSession

__all__ = ["ReadableTable", "timestamp_ms"]

_NO_SUCH_TABLE = "E1101"
_NOTHING_THERE = ("E1014", "E1108")


class ReadableTable:
    """A Delta table, now or (through `at`) at one version."""

    def __init__(
        self, storage: Storage, name: str, *, lake: TableHome | None = None, pinned: Snapshot | None = None
    ) -> None:
        self.storage = storage
        self.name = name
        self._lake = lake
        self._pinned = pinned

    # ------------------------------------------------------------------ what it is

    def __repr__(self) -> str:
        if not self.exists():
            return f"Table({self.name!r}, not created yet)"
        return f"Table({self.name!r}, version {self.version})"

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><td>{escape(f.name)}</td><td>{escape(spark_type(f.arrow.type))}</td></tr>"
            for f in self.snapshot.schema.fields
        )
        rows_said = f"{self.count():,} rows" if is_built(self.snapshot) else "never built"
        head = f"<b>{escape(self.name)}</b> version {self.version}, {rows_said}"
        return f"<div>{head}<table><tr><th>column</th><th>type</th></tr>{rows}</table></div>"

    def exists(self) -> bool:
        """Whether the table has been created."""
        if self._pinned is not None or is_table(self.storage):
            return True
        return self._lake is not None and snapshot.forget(self.storage) and self._moved() and is_table(self.storage)

    @property
    def location(self) -> str:
        return self.storage.url

    @property
    def snapshot(self) -> Snapshot:
        """The version this table stands for: the pinned one, or the newest."""
        if self._pinned is not None:
            return self._pinned
        try:
            return snapshot.latest(self.storage)
        except InputError as e:
            if not _is_no_table(e):
                raise
            was_known = snapshot.forget(self.storage)
            if self._lake is None:
                raise
            if was_known and self._moved():
                return self.snapshot
            raise NotFoundError.table(self.name, self._lake.catalog.names(), self._lake.location) from None

    def current(self) -> Snapshot | None:
        """`snapshot`, or None if there is no table: one look at the log where `exists` and `snapshot` are two."""
        if self._pinned is None and not snapshot.is_known(self.storage) and not self.exists():
            return None
        try:
            return self.snapshot
        except InputError as e:
            if _is_no_table(e) or e.code == _NO_SUCH_TABLE:
                return None
            raise

    def _moved(self) -> bool:
        """Whether the name stands for another place by now: the table was dropped, and one elsewhere has its name."""
        assert self._lake is not None, "its name is one of a lake"
        there = self._lake.catalog.storage(self.name)
        moved = bool(there.url != self.storage.url)
        self.storage = there
        return moved

    def _require(self) -> None:
        """Raise if there is no such table."""
        assert self.snapshot is not None

    @property
    def version(self) -> int:
        return self.snapshot.version

    @property
    def schema(self) -> pa.Schema:
        """The columns, as Arrow types."""
        return self.snapshot.arrow_schema

    def at(self, version: int | None = None, *, timestamp: datetime | str | None = None) -> Self:
        """The table as it was at a version, or at a point in time (text is ISO 8601; without a zone it is UTC)."""
        if (version is None) == (timestamp is None):
            raise InputError.bad_argument("at", (version, timestamp), "either a version or a timestamp")
        with suppress(CorruptionError):  # an older version may be readable where the newest is not
            self._require()
        if version is not None:
            pinned = snapshot.at_version(self.storage, version)
        else:
            assert timestamp is not None
            pinned = snapshot.at_timestamp(self.storage, timestamp_ms(timestamp))
        return type(self)(self.storage, self.name, lake=self._lake, pinned=pinned)

    def pinned_to(self, base: Snapshot) -> Self:
        """The table as it is in a snapshot that is at hand."""
        return type(self)(self.storage, self.name, lake=self._lake, pinned=base)

    def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """What was committed, newest first."""
        self._require()
        return history.history(self.storage, limit)

    def detail(self) -> dict[str, Any]:
        """Facts about the table: location, version, sizes, partitioning, properties, protocol."""
        now = self.snapshot
        protocol = now.state.protocol
        return {
            "name": self.name,
            "location": self.location,
            "id": now.state.metadata.id,
            "version": now.version,
            "last_modified": datetime.fromtimestamp(now.timestamp_ms / 1000, UTC),
            "description": now.state.metadata.description,
            "partition_columns": list(now.partition_columns),
            "num_files": len(now.files),
            "size_bytes": sum(f.size for f in now.files.values()),
            "num_rows": now.num_rows,
            "num_deleted_rows": sum(f.num_deleted for f in now.files.values()),
            "properties": dict(now.configuration),
            "min_reader_version": protocol.min_reader,
            "min_writer_version": protocol.min_writer,
            "features": sorted((protocol.reader_features or set()) | (protocol.writer_features or set())),
        }

    # ------------------------------------------------------------------ reading

    def _readable(self) -> Snapshot:
        """The version this table stands for, if it has rows to read: a view has none before it is built."""
        now = self.snapshot
        check_built(self.name, now)
        return now

    def to_reader(self, columns: Sequence[str] | None = None, *, where: str | None = None) -> pa.RecordBatchReader:
        """The rows as a stream of Arrow batches, in bounded memory."""
        from headwater.lake.select import select

        return select(self._readable(), columns, where)

    def to_arrow(self, columns: Sequence[str] | None = None, *, where: str | None = None) -> pa.Table:
        """The rows as an Arrow table."""
        return self.to_reader(columns, where=where).read_all()

    def to_pandas(self, columns: Sequence[str] | None = None, *, where: str | None = None) -> Any:
        required("pandas", "to_pandas()")
        return self.to_arrow(columns, where=where).to_pandas()

    def to_polars(self, columns: Sequence[str] | None = None, *, where: str | None = None) -> Any:
        return required("polars", "to_polars()").from_arrow(self.to_arrow(columns, where=where))

    def to_pylist(self, columns: Sequence[str] | None = None, *, where: str | None = None) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.to_arrow(columns, where=where).to_pylist()
        return rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def count(self) -> int:
        """Live rows, from the log where its statistics know."""
        now = self._readable()
        if now.num_rows is not None:
            return now.num_rows
        return sum(b.num_rows for b in scan(now, now.schema.names[:1]))

    def changes(self, after: int, until: int | None = None, *, columns: Sequence[str] | None = None) -> ChangeBatch:
        """The exact change from version ``after`` to ``until`` (the newest): rows with weights, +1 in, -1 out."""
        from headwater.lake import changes

        return changes.changes(self._until(after, until), after, columns)

    def changes_reader(
        self, after: int, until: int | None = None, *, columns: Sequence[str] | None = None, consolidated: bool = True
    ) -> pa.RecordBatchReader:
        """`changes` as a stream in bounded memory; unconsolidated, a row may come with both signs."""
        from headwater.lake import changes

        return changes.stream_changes(self._until(after, until), after, columns, consolidated=consolidated)

    def file_changes(self, after: int, until: int | None = None) -> FileChanges:
        """The data files that differ between version ``after`` and ``until`` (the newest), and how.

        What follows files instead of rows needs this: an index has to cover the files that OPTIMIZE wrote, though no
        row changed. It costs the commits in between, and fails like `changes` where log entries were cleaned up.

        >>> import headwater as hw, tempfile
        >>> t = hw.connect(tempfile.mkdtemp()).write("t", [{"id": 1}, {"id": 2}])
        >>> _ = t.append([{"id": 3}]), t.delete("id = 1")
        >>> [f.kind for f in t.file_changes(after=0)]
        ['added', 'vector_changed']
        >>> _ = t.optimize()
        >>> [(f.kind, "went" if f.after is None else "came") for f in t.file_changes(after=2)]
        [('rewritten', 'went'), ('rewritten', 'went'), ('rewritten', 'came')]
        """
        from headwater.lake import file_changes

        return file_changes.file_changes(self._until(after, until), after)

    def read_file(
        self,
        file: AddFile,
        columns: Sequence[str] | None = None,
        *,
        positions: bool = False,
        metadata: Metadata | None = None,
    ) -> pa.RecordBatchReader:
        """The live rows of one data file, under the columns of this version, in bounded memory.

        Parameters
        ----------
        file
            A file of this version (`Snapshot.files`), or one that `file_changes` gave.
        positions
            Add the column `headwater.lake.scan.POSITION`: the row's number in the file, counted before any deletion.
        metadata
            The definition that the file is laid out by, if it is not that of this version (`ChangedFile.metadata`).
        """
        from headwater.lake.scan import file_reader

        return file_reader(self.snapshot, file, columns, positions=positions, metadata=metadata)

    def _until(self, after: int, until: int | None) -> Snapshot:
        for name, value in (("after", after), ("until", until)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < -1):
                raise InputError.bad_argument(name, value, "a version of the table (after=-1: from the beginning)")
        now = self.snapshot
        if until is not None and until < after:
            raise InputError.bad_range(after, until)
        if until is None or until == now.version:
            return now
        return snapshot.at_version(self.storage, until)

    # ------------------------------------------------------------------ Spark

    def spark(
        self,
        session: SparkSession | None = None,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
    ) -> DataFrame:
        """The rows as a lazy Spark DataFrame of this version, read natively by Spark.

        A filter put on the frame prunes row groups; ``where`` also leaves out files, by the log's statistics.
        """
        from headwater.lake.spark.read import read

        return read(self, session or self._session(), columns=columns, where=where)

    def spark_changes(
        self,
        session: SparkSession | None = None,
        *,
        starting_version: int | Literal["latest"] | None = None,
        max_versions_per_trigger: int | None = None,
        columns: Sequence[str] | None = None,
    ) -> DataFrame:
        """The changes as a Structured Streaming source: the columns, ``_weight`` and ``_commit_version``.

        Parameters
        ----------
        starting_version
            The first version whose change is delivered; "latest": only what is committed from now on; None: the rows
            that are there now, and then every change.
        max_versions_per_trigger
            At most so many versions in a batch.
        columns
            Only these columns.
        """
        from headwater.lake.spark.stream import read_changes

        return read_changes(
            self,
            session or self._session(),
            starting_version=starting_version,
            max_versions_per_trigger=max_versions_per_trigger,
            columns=columns,
        )

    def _session(self) -> SparkSession:
        from headwater.spark.session import spark

        return self._lake.spark if self._lake is not None else spark()


def _is_no_table(error: InputError) -> bool:
    """Whether an error says that there is no table: no folder, or one without a log."""
    return error.code in _NOTHING_THERE


def timestamp_ms(timestamp: datetime | str) -> int:
    """A point in time in ms; text is ISO 8601, and without a zone it is UTC."""
    if isinstance(timestamp, str):
        try:
            timestamp = datetime.fromisoformat(timestamp)
        except ValueError:
            raise InputError.bad_argument("timestamp", timestamp, "ISO 8601, such as 2026-01-31T12:00:00") from None
    if not isinstance(timestamp, datetime):
        raise InputError.bad_argument("timestamp", timestamp, "a datetime, or ISO 8601 text")
    if timestamp.tzinfo is None:
        timestamp = timestamp.replace(tzinfo=UTC)
    return int(timestamp.timestamp() * 1000)
