"""The table that a name in SQL means."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.lake.port import OpenLake
    from headwater.lake.table import Table

__all__ = ["named_table"]


def named_table(lake: OpenLake, name: str) -> Table:
    """The table that SQL means by a name: upper and lower case are the same, as long as one table fits."""
    table = lake.table(name)
    if not table.exists():
        alike = [n for n in lake.catalog.names() if n.lower() == name.lower()]
        if len(alike) == 1:
            return lake.table(alike[0])
    return table
