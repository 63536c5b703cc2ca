"""The home of a table: what a table asks of the lake that it was opened from.

A table is usable on its own; its lake adds the other names (for the hint of an error, and so that no table is made
inside another one) and a Spark session. `OpenLake` (`headwater.lake.port`) is the same lake seen from the rooms above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from headwater.lake.catalog import Catalog

if TYPE_CHECKING:
    from headwater.spark.types import SparkSession

__all__ = ["TableHome"]


class TableHome(Protocol):
    """A lake, as its tables see it."""

    @property
    def catalog(self) -> Catalog:
        """The lake's names, what kind each is, and where its table lies; its ``root`` is the lake's storage."""

    @property
    def location(self) -> str:
        """The address of the lake, for messages."""

    @property
    def spark(self) -> SparkSession:
        """The lake's Spark session; a local one is started when it is first asked for."""
