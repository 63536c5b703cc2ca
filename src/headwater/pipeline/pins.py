"""Pins: the version of each table that one refresh of a project is about.

Every table that is read and not made is looked at once, before the first node is refreshed. All nodes of the refresh
then read that very version, so nodes that meet again further down agree, whatever is committed meanwhile; a commit
that comes later is for the next refresh. What a node publishes is pinned at the version that it published.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from headwater.base.errors import HeadwaterError, NotFoundError
from headwater.base.frontier import Frontier, TableIdentity
from headwater.base.pools import pool
from headwater.derived.environment import Environment
from headwater.derived.record import Record
from headwater.lake import snapshot
from headwater.lake.snapshot import Snapshot

__all__ = ["Pins"]

_AT_ONCE = 16


class Pins:
    """Snapshots by name, each looked at once; safe to use from several threads."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._pinned: dict[str, Snapshot] = {}
        self.failed: dict[str, HeadwaterError] = {}
        """Tables that could not be looked at, with the reason."""
        self._guard = threading.Lock()

    def look(self, names: Iterable[str]) -> None:
        """Pin tables at their newest versions."""
        wanted = [name for name in names if name not in self._pinned]
        if self._environment.root.local_path("") is not None or len(wanted) < 2:
            for name in wanted:
                self._look(name)
        else:
            list(pool("pins", _AT_ONCE).map(self._look, wanted))

    def _look(self, name: str) -> None:
        try:
            found = self._environment.table(name).current()
            if found is None:
                raise NotFoundError.table(name, [], self._environment.root.url)
        except HeadwaterError as error:
            self.failed[name] = error
            return
        with self._guard:
            self._pinned[name] = found

    def of(self, names: Iterable[str]) -> dict[str, Snapshot]:
        """The snapshots of some names; what was not looked at, or failed, is left out."""
        with self._guard:
            return {name: self._pinned[name] for name in names if name in self._pinned}

    def published(self, name: str, after: Frontier) -> None:
        """Pin what a node has just published, at the version that reflects ``after``."""
        try:
            base = self._environment.table(name).current()
        except HeadwaterError:
            base = None
        if base is None:  # it has no table, and nobody reads it
            return
        try:
            while (record := Record.of(base)).published and record.frontier != after and record.frontier >= after:
                base = snapshot.at_version(base.storage, record.published - 1)
        except NotFoundError:  # older versions are not known any more
            base = self._environment.table(name).snapshot
        with self._guard:
            self._pinned[name] = base

    @property
    def frontier(self) -> Frontier:
        """The versions that are pinned, and of which tables."""
        with self._guard:
            held: Mapping[str, Snapshot] = dict(self._pinned)
        versions = Frontier({name: base.version for name, base in held.items()})
        return versions.identified({name: TableIdentity(base.table_id) for name, base in held.items()})
