"""Upstream: the views that a view reads, and how far they are behind.

A refresh that goes through several views looks at each table once, so that all of them see the same version of it:
views that meet again further down agree. A view of another lake that is attached here is a table like others; what it
reads is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable

from headwater.base.errors import HeadwaterError, NotFoundError, SchemaError
from headwater.derived.contract import Behind
from headwater.incremental.views.definition import Definition
from headwater.incremental.views.dependencies import upstream_first
from headwater.incremental.views.record import Record
from headwater.incremental.views.surroundings import Surroundings
from headwater.lake.changes import change_files
from headwater.lake.snapshot import Snapshot

__all__ = ["Looked", "behind", "lag_of"]


class Looked:
    """Tables of a lake, each as it was when it was first looked at."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self.seen: dict[str, Snapshot | None] = {}

    def snapshot(self, name: str) -> Snapshot | None:
        """The table; None if it is not there, or cannot be read."""
        if name not in self.seen:
            self.again(name)
        return self.seen[name]

    def again(self, name: str) -> None:
        """Look at a table once more: it was refreshed."""
        self.seen[name] = None
        table = self._around.table(name)
        try:
            self.seen[name] = table.snapshot if table.exists() else None
        except HeadwaterError:  # whoever reads it says what is wrong with it
            return

    def definition(self, name: str) -> Definition | None:
        """What a view of this lake is a view of; None for anything else."""
        base = self.snapshot(name)
        return None if base is None or not self._around.owns(name, base.storage) else Definition.of(base)

    def sources(self, name: str) -> tuple[str, ...] | None:
        """The names that a view reads; None for anything else."""
        found = self.definition(name)
        return None if found is None else found.reads

    def tables(self) -> dict[str, Snapshot]:
        """What was looked at and is there."""
        return {name: base for name, base in self.seen.items() if base is not None}


def behind(names: Iterable[str], looked: Looked) -> tuple[Behind, ...]:
    """Those of some views, and of all that they read, which are behind, each after those that it reads."""
    found = []
    for name in upstream_first(names, looked.sources):
        base, meant = looked.snapshot(name), looked.definition(name)
        assert base is not None, "it has a definition"
        assert meant is not None, "it is a view"
        record = Record.of(base)
        lag = lag_of(meant, record, looked)
        if lag or not record.published:
            found.append(Behind(name, lag, built=bool(record.published)))
    return tuple(found)


def lag_of(meant: Definition, record: Record, looked: Looked) -> dict[str, int | None]:
    """By how many versions a view is behind each of its sources, where rows have changed; None for one that is not
    there.
    """
    found: dict[str, int | None] = {}
    for name in meant.reads:
        base = looked.snapshot(name)
        have = record.frontier.get(name, -1)
        if base is None:
            found[name] = None
        elif record.ids.get(name, base.state.metadata.id) != base.state.metadata.id:
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
