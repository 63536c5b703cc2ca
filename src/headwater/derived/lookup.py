"""Lookup: the tables and artefacts of a lake, each as it was when it was first looked at; and who is behind.

A refresh that goes through several artefacts looks at each table once, so that all of them see the same version of it:
artefacts that meet again further down agree. An artefact of another lake that is attached here is a table like others;
what it reads is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from headwater.base.errors import HeadwaterError, NotFoundError, SchemaError
from headwater.derived import kinds
from headwater.derived.dependencies import upstream_first
from headwater.derived.environment import Environment
from headwater.derived.reports import Behind
from headwater.lake.changes import change_files
from headwater.lake.published import kind_of
from headwater.lake.snapshot import Snapshot

if TYPE_CHECKING:
    from headwater.derived.artefact import Artefact

__all__ = ["Lookup", "behind", "lag_of"]


class Lookup:
    """What a lake holds, each name looked at once."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._seen: dict[str, Snapshot | None] = {}
        self._artefacts: dict[str, Artefact | None] = {}
        self._reads: dict[str, tuple[str, ...] | None] = {}

    def snapshot(self, name: str) -> Snapshot | None:
        """The table; None if it is not there, or cannot be read."""
        if name not in self._seen:
            try:
                self._seen[name] = self._environment.table(name).current()
            except HeadwaterError:  # whoever reads it reports what is wrong with it
                self._seen[name] = None
        return self._seen[name]

    def forget(self, name: str) -> None:
        """A table was refreshed: whoever asks for it is to look at it once more."""
        for known in (self._seen, self._artefacts, self._reads):
            known.pop(name, None)

    def hold(self, artefact: Artefact) -> None:
        """Take an artefact that is open already for the one of its name."""
        self._artefacts[artefact.name] = artefact

    def artefact(self, name: str) -> Artefact | None:
        """The artefact of this lake, as it was looked at; None for anything else."""
        if name not in self._artefacts:
            self._artefacts[name] = self._opened(name)
        return self._artefacts[name]

    def _opened(self, name: str) -> Artefact | None:
        base = self.snapshot(name)
        if base is None:
            # Only what has no table of its own can still be an artefact.
            kind = self._environment.recorded().get(name)
            return None if kind is None else kinds.kind(kind).open(name, self._environment)
        kind = kind_of(base)
        if kind is None or not self._environment.owns(name, base.storage):
            return None
        return kinds.kind(kind).open(name, self._environment, base)

    def reads(self, name: str) -> tuple[str, ...] | None:
        """The names that an artefact reads; None for anything else."""
        if name not in self._reads:
            found = self.artefact(name)
            self._reads[name] = None if found is None else found.reads
        return self._reads[name]

    def tables(self) -> dict[str, Snapshot]:
        """What was looked at and is there."""
        return {name: base for name, base in self._seen.items() if base is not None}


def behind(names: Iterable[str], lookup: Lookup) -> tuple[Behind, ...]:
    """Those of some artefacts, and of all that they read, which are behind, each after those that it reads."""
    found = []
    for name in upstream_first(names, lookup.reads):
        artefact = lookup.artefact(name)
        assert artefact is not None, "it reads something"
        lag = lag_of(artefact, lookup)
        if lag or not artefact.built:
            found.append(Behind(name, lag, built=artefact.built))
    return tuple(found)


def lag_of(artefact: Artefact, lookup: Lookup) -> dict[str, int | None]:
    """By how many versions an artefact is behind each of its sources, where rows have changed; None for one that is not
    there.
    """
    found: dict[str, int | None] = {}
    frontier = artefact.frontier
    for name in artefact.reads:
        base, known = lookup.snapshot(name), frontier.identities.get(name)
        have = frontier.get(name, -1)
        if base is None:
            found[name] = None
        elif known is not None and known.id != base.state.metadata.id:
            found[name] = base.version + 1  # it is another table, of which nothing has been read
        elif base.version != have and _has_changed(base, have):
            found[name] = abs(base.version - have)
    return found


def _has_changed(base: Snapshot, after: int) -> bool:
    """Whether rows came or went; commits that only rewrite files do not count."""
    try:
        return base.version < after or bool(change_files(base, after))
    except (NotFoundError, SchemaError):  # nobody knows any more
        return True
