"""The history of a record log: which frontier was published when, long after the commits themselves were swept.

The log keeps its newest commits, for readers that have just looked. Some artefacts are asked what they said at a
moment in the past; for them the commits that go are written down first, some at a time, in one file::

    <lake>/_headwater/history/<kind>/<name>/<20 digits>-<20 digits>.json      by the first and the last commit in it

A file is JSON in UTF-8; version 1::

    {"format": "headwater history", "version": 1, "commits": [
        {"number": <n>, "at": <ms>, "frontier": {"<table>": <version>, …}, "ids": {"<table>": "<id>", …},
         "definition": {…}}, …]}

A process that ends between writing a file and deleting the commits leaves both; they say the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from headwater.base import faults
from headwater.base.errors import CorruptionError
from headwater.base.frontier import Frontier, TableIdentity
from headwater.base.storage import Storage
from headwater.derived.record import Record
from headwater.derived.record_log import Committed, RecordLog

__all__ = ["Published", "RecordHistory"]

_FORMAT, _VERSION = "headwater history", 1
_TOGETHER = 16


@dataclass(frozen=True, slots=True)
class Published:
    """A commit that was the newest from ``at`` (in ms) until the next one."""

    number: int
    at: int
    frontier: Frontier
    definition: Mapping[str, Any]


class RecordHistory:
    """What an artefact has published."""

    def __init__(self, root: Storage, log: RecordLog) -> None:
        self._root, self._log = root, log
        self.path = f"_headwater/history/{log.kind}/{log.name}"

    def sweep(self) -> None:
        """Write down the commits that the log does not have to keep, if they are some, and delete them there."""
        old = self._log.superfluous()
        if len(old) < _TOGETHER:
            return
        commits = [_to_json(one) for one in map(published, map(self._log.read, old)) if one is not None]
        body = json.dumps({"format": _FORMAT, "version": _VERSION, "commits": commits}, ensure_ascii=False)
        faults.point("derived.history.before_put", self._log.name)
        self._root.put(f"{self.path}/{old[0]:020d}-{old[-1]:020d}.json", body.encode())
        self._log.sweep()

    def entries(self) -> list[Published]:
        """All that is known of, in the order of the commits."""
        found: dict[int, Published] = {}
        for entry in self._root.list(f"{self.path}/"):
            found.update((one.number, one) for one in self._read(entry.path))
        live: Iterable[Committed] = map(self._log.read, self._log.numbers())
        found.update((one.number, one) for one in map(published, live) if one is not None)
        return [found[number] for number in sorted(found)]

    def _read(self, path: str) -> list[Published]:
        try:
            body = json.loads(self._root.get(path))
            if body["format"] != _FORMAT or body["version"] != _VERSION:
                raise ValueError(f"it is {body['format']}, version {body['version']}")
            return [_from_json(one) for one in body["commits"]]
        except (AttributeError, KeyError, TypeError, ValueError) as e:
            raise CorruptionError.state_file(path, str(e), self._root.url) from e

    def remove(self) -> None:
        """Delete it: the artefact is no more."""
        for entry in list(self._root.list(f"{self.path}/")):
            self._root.delete(entry.path)
        self._root.remove_folder(self.path)


def published(committed: Committed) -> Published | None:
    """What a commit published; None if it only defined the artefact."""
    record = Record.from_json(committed.record, f"commit {committed.number}", "")
    if record.last is None:
        return None
    return Published(committed.number, record.last.at, record.frontier, committed.definition)


def _to_json(one: Published) -> dict[str, Any]:
    ids = {table: identity.id for table, identity in one.frontier.identities.items()}
    return {
        "number": one.number,
        "at": one.at,
        "frontier": dict(one.frontier),
        "ids": ids,
        "definition": dict(one.definition),
    }


def _from_json(found: Mapping[str, Any]) -> Published:
    frontier = Frontier(found["frontier"]).identified({t: TableIdentity(id_) for t, id_ in found["ids"].items()})
    return Published(int(found["number"]), int(found["at"]), frontier, found["definition"])
