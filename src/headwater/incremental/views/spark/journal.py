"""The journal of a build: what its shards have finished, so that one that was killed goes on from there.

Building a view from all rows may take hours. Each shard of each job puts its report beside the state when it is done,
and the next refresh takes over those whose files are all there: rows are sent only to shards that are not done, at
the versions of the sources that the build had begun with, and what has changed since is followed afterwards. What is
taken over was computed from the same rows by the same definition, divided in the same way; the name of the journal
says so::

    <view>/spark/<version>-<16 hexadecimal digits>/goal.json     the frontier, the number of shards
                                                   <job>-<shard>.json    the report of a shard
                                                   <goal>-<shard>-….arrow   rows that a part left for later ones

A commit ends it: the version is the one that the build is to become.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwater.base.errors import NotFoundError
from headwater.base.frontier import Frontier, TableIdentity
from headwater.incremental.views.spark.written import Report
from headwater.incremental.views.state_folder import SCRATCH, ViewFolder
from headwater.lake import partitions

if TYPE_CHECKING:
    from headwater.incremental.views.definition import Definition
    from headwater.lake.snapshot import Snapshot

__all__ = ["Goal", "Journal", "unfinished"]


@dataclass(frozen=True, slots=True)
class Goal:
    """What a build is to become."""

    frontier: Frontier
    shards: int

    def to_json(self) -> Any:
        """What is saved."""
        ids = {table: one.id for table, one in self.frontier.identities.items()}
        return {"frontier": dict(self.frontier), "ids": ids, "shards": self.shards}

    @classmethod
    def of(cls, saved: Any) -> Goal:
        """What `to_json` gave."""
        identities = {table: TableIdentity(id_) for table, id_ in saved["ids"].items()}
        return cls(Frontier(saved["frontier"]).identified(identities), int(saved["shards"]))


class Journal:
    """The journal of one build."""

    def __init__(self, folder: ViewFolder, base: Snapshot, definition: Definition, goal: Goal) -> None:
        self._folder, self._base, self._goal = folder, base, goal
        text = json.dumps([definition.text, goal.to_json()], sort_keys=True)
        key = hashlib.sha256(text.encode()).hexdigest()[:16]
        self.path = f"{_prefix(folder, base)}{key}"

    def begin(self) -> None:
        """Say what the build is to become."""
        self._folder.root.put(f"{self.path}/goal.json", json.dumps(self._goal.to_json()).encode())

    def finished(self, job: int) -> dict[int, Report]:
        """The reports of the shards of a job that are done, and whose files are there."""
        found = {}
        for entry in self._folder.root.list(self.path):
            name = entry.path.rpartition("/")[2]
            if name.startswith(f"{job:02d}-") and name.endswith(".json"):
                report = Report.of(self._folder.root.get(entry.path).decode())
                if all(self._is_there(report)):
                    found[report.shard] = report
        return found

    def _is_there(self, report: Report) -> Iterable[bool]:
        root, table = self._folder.root, self._base.storage
        yield from (root.exists(f"{self._folder.path}/runs/{run[0]}") for run in report.runs.values())
        yield from (root.exists(path) for _, path, _ in report.left.values())
        named = [*(add["path"] for add in report.adds), *(one["cdc"]["path"] for one in report.cdc)]
        yield from (table.exists(partitions.decode_path(path)) for path in named)


def _prefix(folder: ViewFolder, base: Snapshot) -> str:
    return f"{folder.path}/{SCRATCH}/{base.version + 1:012d}-"


def unfinished(folder: ViewFolder, base: Snapshot, definition: Definition) -> Goal | None:
    """What a build of the next version was to become that did not end."""
    prefix = _prefix(folder, base)
    for entry in folder.root.list(f"{folder.path}/{SCRATCH}"):
        if entry.path.startswith(prefix) and entry.path.endswith("/goal.json"):
            try:
                goal = Goal.of(json.loads(folder.root.get(entry.path)))
            except (NotFoundError, ValueError, KeyError):
                continue
            if Journal(folder, base, definition, goal).path == entry.path.rpartition("/")[0]:
                return goal
    return None
