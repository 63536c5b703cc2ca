"""An open lake with its derived artefacts, as the rooms above see it.

`query` runs statements on artefacts of every kind. It names this protocol, which the facade
(`headwater.lakehouse.Lake`) satisfies by its shape; the kinds themselves are found in the registry (`kinds`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from headwater.lake.port import OpenLake

if TYPE_CHECKING:
    from headwater.derived.environment import Environment

__all__ = ["DerivingLake"]


class DerivingLake(OpenLake, Protocol):
    """An open lake that has derived artefacts."""

    def environment(self) -> Environment:
        """The lake as its artefacts see it."""
