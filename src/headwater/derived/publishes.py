"""Publishes: the commits by which an artefact came to be what it is, each with the frontier that it reflects.

An artefact with a table of its own has them in the log of that table, as values of the domain of its record; the others
in their record log. Both are kept for a while only, so a list of publishes begins where the log begins.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from headwater.base.errors import CorruptionError, NotFoundError
from headwater.base.frontier import Frontier
from headwater.derived.record import Record
from headwater.derived.record_log import RecordLog
from headwater.lake import log
from headwater.lake.published import state_domain
from headwater.lake.snapshot import Snapshot

__all__ = ["Publish", "publishes_of_log", "publishes_of_table"]


@dataclass(frozen=True, slots=True)
class Publish:
    """One commit of an artefact.

    Parameters
    ----------
    version : int
        of its table, or the number of its record
    frontier : Frontier
        what it reflects since then
    at_ms : int, optional
        when that was
    """

    version: int
    frontier: Frontier
    at_ms: int | None = None


def publishes_of_table(base: Snapshot, kind: str) -> list[Publish]:
    """The publishes that the log of an artefact's table still has, oldest first."""
    domain, found = state_domain(kind), []
    for version in sorted(log.list_segment(base.storage).commits):
        if version > base.version:
            break
        try:
            commit = log.read_commit(base.storage, version, 0)
        except NotFoundError:  # cleaned up meanwhile
            continue
        body = commit.domains.get(domain)
        if body is None or body.get("removed"):
            continue
        try:
            value = json.loads(body["configuration"])
        except (KeyError, TypeError, ValueError) as e:
            raise CorruptionError.state_file(f"the domain {domain}", "it is not JSON", base.where) from e
        record = Record.from_json(value, f"the domain {domain}", base.where)
        found.append(Publish(version, record.frontier, None if record.last is None else record.last.at))
    return found


def publishes_of_log(records: RecordLog) -> list[Publish]:
    """The commits that a record log still has, oldest first; one that only defines the artefact reflects nothing."""
    return list(_read(records))


def _read(records: RecordLog) -> Iterator[Publish]:
    for number in records.numbers():
        try:
            committed = records.read(number)
        except NotFoundError:  # swept meanwhile
            continue
        record = Record.from_json(committed.record, f"commit {number}", records.path)
        yield Publish(number, record.frontier, None if record.last is None else record.last.at)
