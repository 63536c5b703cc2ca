"""An open lake with its derived artefacts, as the rooms above see it.

`query` runs statements on artefacts of every kind. It names this protocol, which the facade
(`headwater.lakehouse.Lake`) satisfies by its shape; the kinds themselves are found in the registry (`kinds`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from headwater.lake.port import OpenLake

if TYPE_CHECKING:
    from datetime import datetime

    from headwater.derived.environment import Environment
    from headwater.lake.snapshot import Snapshot

__all__ = ["DerivingLake", "PinnedTables"]


class DerivingLake(OpenLake, Protocol):
    """An open lake that has derived artefacts."""

    def environment(self) -> Environment:
        """The lake as its artefacts see it."""


class PinnedTables(Protocol):
    """The tables of one query, each at one version, whatever is committed meanwhile."""

    def snapshot(self, name: str, version: int | None = None, timestamp: datetime | None = None) -> Snapshot:
        """The table, at the version or timestamp, or as the query sees it everywhere else."""
