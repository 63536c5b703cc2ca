"""Table functions: ``FROM table_changes('orders', 2, 5)``. Each takes constants and gives a relation.

A room adds one with `table_function`; the functions of this room are registered below.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from headwater.base.errors import HeadwaterError, did_you_mean
from headwater.lake.relation import Relation
from headwater.sql.nodes import Refused, Wrong
from headwater.sql.query import Arguments

if TYPE_CHECKING:
    from headwater.lake.port import OpenLake

__all__ = ["open_function", "table_function"]

Opener = Callable[["OpenLake", Arguments], Relation]
_FUNCTIONS: dict[str, Opener] = {}


def table_function(name: str) -> Callable[[Opener], Opener]:
    """Register a table function under a name of lower case."""

    def register(opener: Opener) -> Opener:
        _FUNCTIONS[name] = opener
        return opener

    return register


def open_function(lake: OpenLake, name: str, arguments: Arguments) -> Relation:
    """The rows of a call, or `Refused`."""
    if name not in _FUNCTIONS:
        near = did_you_mean(name, _FUNCTIONS)
        known = f"known: {', '.join(sorted(_FUNCTIONS))}"
        raise Wrong(f"there is no table function {name}() here", f"did you mean `{near}`?" if near else known)
    return _FUNCTIONS[name](lake, arguments)


@table_function("table_changes")
def _table_changes(lake: OpenLake, arguments: Arguments) -> Relation:
    from headwater.lake.feed import feed

    values = [value for name, value in arguments if name is None]
    if len(values) != len(arguments) or len(values) not in (2, 3) or not isinstance(values[0], str):
        raise Refused(
            "table_changes() with these arguments", "write table_changes('table', from) or ('table', from, to)"
        )
    start, end = values[1], values[2] if len(values) == 3 else None
    if not isinstance(start, int | str | datetime) or not isinstance(end, int | str | datetime | None):
        raise Wrong("table_changes() goes from and to versions or timestamps", "write table_changes('table', 2, 5)")
    table = lake.named(values[0])
    assert table.snapshot is not None, "a table that is not there is refused here"
    try:
        return feed(table.storage, start, end)
    except HeadwaterError as error:
        error.on("sql", table=table.name)
        raise
