"""What this package needs of a table.

The table itself is a facade above (`headwater.lake.table`), whose methods call this package.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from headwater.base.storage import Storage
from headwater.lake.snapshot import Snapshot

__all__ = ["PickledPlace", "TableAtVersion", "TablePlace"]


class TableAtVersion(Protocol):
    """A table at a version, to read."""

    @property
    def name(self) -> str: ...

    @property
    def snapshot(self) -> Snapshot: ...


class TablePlace(Protocol):
    """A table to write: it need not exist yet."""

    @property
    def name(self) -> str: ...

    @property
    def storage(self) -> Storage: ...


@dataclass(frozen=True, slots=True)
class PickledPlace:
    """A place that can be pickled: a table may hold a session, which cannot."""

    storage: Storage
    name: str
