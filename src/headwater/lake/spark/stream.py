"""Streams: a table's changes into Structured Streaming, and a stream's batches into a table, each exactly once.

`read_changes` is a source (`source` tells how): every version's rows with ``_weight`` (+1 in, -1 out) and
``_commit_version``. `foreach_batch_append` is the other end. Spark repeats a batch after a crash that came between the
table's commit and its own checkpoint; each commit carries the query's name and the batch's number as a Delta
transaction, so the repeated batch finds that it is there and is skipped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from headwater.base.errors import InputError
from headwater.lake.catalog import is_table
from headwater.lake.spark import write
from headwater.lake.spark.source import ChangeSource, Stream
from headwater.lake.spark.tables import PickledPlace, TableAtVersion, TablePlace
from headwater.lake.spark.tasks import without_files
from headwater.lake.write import SchemaMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["foreach_batch_append", "read_changes"]


def read_changes(
    table: TableAtVersion,
    session: SparkSession,
    *,
    starting_version: int | Literal["latest"] | None = None,
    max_versions_per_trigger: int | None = None,
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """The table's changes as a streaming DataFrame: its columns, ``_weight`` and ``_commit_version``.

    Parameters
    ----------
    starting_version
        The first version whose change is delivered; "latest": only what is committed from now on; None: the rows that
        are there now, all with weight 1, and then every change. A query that has a checkpoint goes on from there.
    max_versions_per_trigger
        At most so many versions in a batch.
    columns
        Only these columns; columns that the table gets later do not stop the stream then.
    """
    now = table.snapshot
    if starting_version == "latest":
        begin: int | None = now.version
    elif starting_version is None:
        begin = None
    elif isinstance(starting_version, bool) or not isinstance(starting_version, int) or starting_version < 0:
        raise InputError.bad_argument("starting_version", starting_version, 'a version, "latest" or None')
    else:
        begin = starting_version - 1
    if max_versions_per_trigger is not None and (
        isinstance(max_versions_per_trigger, bool)
        or not isinstance(max_versions_per_trigger, int)
        or max_versions_per_trigger < 1
    ):
        raise InputError.bad_argument("max_versions_per_trigger", max_versions_per_trigger, "1 or more, or None")
    names = [now.schema.field(c, now.where).name for c in columns] if columns is not None else now.schema.names
    stream = Stream(without_files(now), tuple(names), columns is not None, begin, max_versions_per_trigger)
    facts = (now.where, now.version, stream.columns, stream.chosen, begin, max_versions_per_trigger)
    name = "headwater_changes_" + hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
    # A class of its own for each stream, so that storage options travel inside its pickle and not as option texts.
    made = type("TableChanges", (ChangeSource,), {"stream": stream, "source_name": name})
    session.dataSource.register(made)
    return session.readStream.format(name).load()


def foreach_batch_append(
    table: TablePlace, app_id: str, *, schema_mode: SchemaMode = "strict"
) -> Callable[[DataFrame, int], None]:
    """A function for ``foreachBatch`` that appends each batch exactly once, making the table with the first.

    ``app_id`` names the query: another query into the same table, or the same query with a new checkpoint, needs
    another name.
    """
    if not isinstance(app_id, str) or not app_id:
        raise InputError.bad_argument("app_id", app_id, "a name for the query")
    target = PickledPlace(table.storage, table.name)

    def append(frame: DataFrame, batch_id: int) -> None:
        txn = (app_id, batch_id)
        if not is_table(target.storage) and write.create(target, frame, txn=txn) is not None:
            return
        write.append(target, frame, schema_mode=schema_mode, txn=txn)

    return append
