"""An open lake, as the rooms above `lake` see it.

`query` and `timeseries` work on the tables of a lake that somebody has connected to. They are below the facade
(`headwater.lakehouse.Lake`), so they cannot name it: they name this protocol, which the facade satisfies by its shape.
A test can hand in anything else that has these members.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from headwater.lake.home import TableHome
from headwater.lake.table import Table

if TYPE_CHECKING:
    from headwater.sql.functions.user import UserFunction

__all__ = ["OpenLake"]


class OpenLake(TableHome, Protocol):
    """Tables by name, the Spark session and the user's functions of one lake."""

    @property
    def user_functions(self) -> Mapping[str, UserFunction]:
        """The user's functions, by their names in lower case."""

    def __contains__(self, name: str) -> bool:
        """Whether there is a table of that name."""

    def table(self, name: str) -> Table:
        """The table of that name; it need not exist yet."""

    def named(self, name: str) -> Table:
        """The table that SQL means by a name, in whatever case it is written; it need not exist yet."""

    def tables(self) -> list[str]:
        """The names that stand for plain tables, not for something derived."""

    def attach(self, name: str, location: str) -> Table:
        """Give a table that lies anywhere a name in the lake."""

    def drop(self, name: str, *, cascade: bool = False) -> list[str]:
        """Delete a table, with ``cascade`` also what is derived from it; returns the names,
        in the order of deletion.
        """
