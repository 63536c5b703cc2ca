"""Table functions: ``FROM table_changes('orders', 2, 5)``. Each takes constants and gives a relation.

The functions of this room are registered below, with `table_function`. A kind of derived artefact may bring others:
they are found in its registry (`headwater.derived.kinds`).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from headwater.base.errors import HeadwaterError, did_you_mean
from headwater.derived import kinds
from headwater.lake.relation import Relation
from headwater.sql.nodes import Refused, Wrong
from headwater.sql.query import Arguments

if TYPE_CHECKING:
    from headwater.derived.port import DerivingLake, PinnedTables
    from headwater.lake.port import OpenLake

__all__ = ["is_function", "open_function", "table_function"]

Opener = Callable[["OpenLake", Arguments], Relation]
_FUNCTIONS: dict[str, Opener] = {}


def table_function(name: str) -> Callable[[Opener], Opener]:
    """Register a table function under a name of lower case."""

    def register(opener: Opener) -> Opener:
        _FUNCTIONS[name] = opener
        return opener

    return register


def is_function(name: str) -> bool:
    """Whether there is a table function of that name, in lower case."""
    return name in _FUNCTIONS or name in kinds.table_functions()


def open_function(lake: DerivingLake, pinned: PinnedTables, name: str, arguments: Arguments) -> Relation:
    """The rows of a call, or `Refused`; ``pinned`` are the tables of the query that the call stands in."""
    if name in _FUNCTIONS:
        return _FUNCTIONS[name](lake, arguments)
    kind = kinds.kind_of_function(name)
    if kind is not None:
        return kind.table_function(name, arguments, lake.environment(), pinned)
    names = sorted({*_FUNCTIONS, *kinds.table_functions()})
    near = did_you_mean(name, names)
    hint = f"did you mean `{near}`?" if near else f"known: {', '.join(names)}"
    raise Wrong(f"there is no table function {name}() here", hint)


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
