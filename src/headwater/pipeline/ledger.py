"""The ledger: one row for each publish of a project's nodes, in a table that anybody can query.

``headwater.ledger`` is an ordinary Delta table of the lake. A row is written after the publish that it is about, so a
process may end between the two. What is missing is found by comparing the newest record of each node with the ledger,
and written before anything else is refreshed: the ledger converges.

**Exactly once.** The append of a row carries a transaction of Delta's: an id for the node, and a number that grows with
each of its publishes. A table takes a number only once and only upwards, whoever tries and however often, so a row that
two processes write, or one that was written before a crash, is there once. The id of a node with a table holds that
table's own id, so a node that was dropped and made again begins anew; a node without one is numbered by the time of the
publish in its record.

A commit that only puts files together is no publish, though it has a record: its record tells of the same refresh as
the one before it.

Failures are rows too, without a version: they are reports, and promise nothing.
"""

from __future__ import annotations

import getpass
import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.base import faults
from headwater.base.errors import HeadwaterError, InputError, NotFoundError
from headwater.base.frontier import Frontier
from headwater.derived.artefact import Artefact
from headwater.derived.record import Record
from headwater.lake import snapshot
from headwater.lake.snapshot import Snapshot

if TYPE_CHECKING:
    from headwater.lakehouse import Lake

__all__ = ["LEDGER", "SCHEMA", "Entry", "Ledger"]

LEDGER = "headwater.ledger"
"""The table's name."""
SCHEMA = pa.schema(
    [
        ("at", pa.timestamp("us", "UTC")),
        ("run", pa.string()),
        ("who", pa.string()),
        ("project", pa.string()),
        ("node", pa.string()),
        ("kind", pa.string()),
        ("version", pa.int64()),
        ("mode", pa.string()),
        ("reason", pa.string()),
        ("rows_in", pa.int64()),
        ("rows_touched", pa.int64()),
        ("rows_total", pa.int64()),
        ("frontier_before", pa.string()),
        ("frontier_after", pa.string()),
        ("seconds", pa.float64()),
        ("cpu_seconds", pa.float64()),
        ("tries", pa.int32()),
        ("error", pa.string()),
    ]
)
_MOST_RECOVERED = 200
_COMPACT_EVERY = 200


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What a run knows of a publish, or of a failure, beyond what the node's record says."""

    run: str | None
    node: str
    kind: str
    reason: str
    before: Frontier | None = None
    seconds: float | None = None
    cpu_seconds: float | None = None
    rows_total: int | None = None
    tries: int | None = None
    error: str | None = None
    mode: str = "failed"


class Ledger:
    """The ledger of the projects of a lake."""

    def __init__(self, lake: Lake, project: str) -> None:
        self._lake = lake
        self._project = project

    def publish(self, artefact: Artefact, entry: Entry | None) -> int:
        """Write the row of an artefact's newest publish, and those that are missing before it; gives how many.

        ``entry`` is what the caller knows of the newest one, if it has made it.
        """
        table = artefact_table(artefact, self._lake)
        missing = list(self._missing(artefact, table))
        written = 0
        for index, (record, transaction) in enumerate(reversed(missing)):
            newest = index == len(missing) - 1
            row = self._row(record, artefact, entry if newest else None)
            faults.point("pipeline.ledger.before_append", artefact.name)
            done = self._table().append(pa.Table.from_pylist([row], SCHEMA), txn=transaction)
            faults.point("pipeline.ledger.after_append", artefact.name)
            written += not done.skipped
        if written:
            self._tidy()
        return written

    def failed(self, entries: Iterable[Entry]) -> None:
        """Write rows of failures; those of data tests have the kind ``test`` and the mode ``failed`` or ``warned``."""
        rows = [self._failure(entry) for entry in entries]
        if rows:
            self._table().append(pa.Table.from_pylist(rows, SCHEMA))

    def read(self, node: str | None = None, limit: int | None = None) -> list[dict[str, Any]]:
        """Rows, newest first; those of one node, if it is named."""
        if not self._lake.table(LEDGER).exists():
            return []
        condition = "WHERE project = :project" + (" AND node = :node" if node is not None else "")
        parameters: dict[str, Any] = {"project": self._project, **({"node": node} if node is not None else {})}
        order = f"ORDER BY at DESC, version DESC{f' LIMIT {int(limit)}' if limit is not None else ''}"
        text = f"SELECT * FROM {LEDGER} {condition} {order}"
        return self._lake.sql(text, parameters=parameters).to_pylist()

    # -- which rows are missing ------------------------------------------------------------------------------------

    def _missing(self, artefact: Artefact, table: Snapshot | None) -> Iterable[tuple[Record, tuple[str, int]]]:
        """The publishes that the ledger lacks, newest first, each with its transaction."""
        known = self._known()
        record = artefact.record
        if table is None:
            if record.published and record.last is not None:
                transaction = (f"headwater {artefact.kind.name} {artefact.name}", record.last.at)
                if known.get(transaction[0], -1) < transaction[1]:
                    yield record, transaction
            return
        name = f"headwater {artefact.kind.name} {artefact.name} {table.table_id}"
        written = known.get(name, -1)
        if record.published <= written:
            return
        for one, older in pairwise(_records(table, record, written)):
            # Files that are put together get a commit with a record of its own, which tells of the same refresh.
            if one is not None and (older is None or older.last is None or older.last != one.last):
                yield one, (name, one.published)

    def _known(self) -> dict[str, int]:
        """The newest number of each node that the ledger has."""
        base = self._lake.table(LEDGER).current()
        return {} if base is None else dict(base.state.txns)

    # -- rows ------------------------------------------------------------------------------------------------------

    def _row(self, record: Record, artefact: Artefact, entry: Entry | None) -> dict[str, Any]:
        last = record.last
        assert last is not None, "a publish says how it was made"
        known = entry is not None
        return {
            "at": last.time,
            "run": entry.run if entry is not None else None,
            "who": _who() if known else None,
            "project": self._project,
            "node": artefact.name,
            "kind": artefact.kind.name,
            "version": record.published,
            "mode": last.mode,
            "reason": entry.reason if entry is not None else "found in the record of the node",
            "rows_in": last.rows_in,
            "rows_touched": last.rows_out,
            "rows_total": entry.rows_total if entry is not None else None,
            "frontier_before": str(entry.before) if entry is not None and entry.before is not None else None,
            "frontier_after": str(record.frontier),
            "seconds": entry.seconds if entry is not None and entry.seconds is not None else last.seconds,
            "cpu_seconds": entry.cpu_seconds if entry is not None else None,
            "tries": entry.tries if entry is not None else None,
            "error": None,
        }

    def _failure(self, entry: Entry) -> dict[str, Any]:
        return {
            **dict.fromkeys(SCHEMA.names),
            "at": datetime.now(UTC),
            "run": entry.run,
            "who": _who(),
            "project": self._project,
            "node": entry.node,
            "kind": entry.kind,
            "mode": entry.mode,
            "reason": entry.reason,
            "frontier_before": None if entry.before is None else str(entry.before),
            "seconds": entry.seconds,
            "cpu_seconds": entry.cpu_seconds,
            "tries": entry.tries,
            "error": entry.error,
        }

    def _table(self) -> Any:
        table = self._lake.table(LEDGER)
        if not table.exists():
            table.create(SCHEMA, mode="ignore", description="One row for each publish of a project's nodes.")
        return table

    def _tidy(self) -> None:
        """Put the small files together now and then."""
        table = self._lake.table(LEDGER)
        base = table.current()
        if base is not None and len(base.files) > _COMPACT_EVERY:
            with suppress(HeadwaterError):  # somebody else is at it
                table.optimize()


def artefact_table(artefact: Artefact, lake: Lake) -> Snapshot | None:
    """The table of an artefact; None if it has none of its own."""
    return lake.table(artefact.name).current()


def _records(base: Snapshot, record: Record, written: int) -> Iterator[Record | None]:
    """The records of a node after the publish that was written last, newest first, then that one, or None."""
    for _ in range(_MOST_RECOVERED):
        if not record.published or record.last is None:
            break
        yield record
        if record.published <= written:
            return
        try:
            base = snapshot.at_version(base.storage, record.published - 1)
        except (NotFoundError, InputError):  # the log does not go back further
            break
        record = Record.of(base)
    yield None


def summaries(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the ledger as JSON has them."""
    return [{**row, "at": row["at"].isoformat(timespec="milliseconds")} for row in rows]


@cache
def _who() -> str:
    """The user, machine and process that refresh."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{platform.node()}"
