"""What all methods of a stream stand on: the plan so far, and what makes its rows a series."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from headwater.base.errors import InputError, NotFoundError
from headwater.spark.columns import is_column
from headwater.timeseries.node import Node, Ordering

if TYPE_CHECKING:
    from headwater.lake.port import OpenLake

__all__ = ["Methods", "flat_names", "names_of"]


class Methods:
    """A plan and its ordering; every method gives a new stream."""

    def __init__(self, plan: Node, ordering: Ordering | None = None, *, lake: OpenLake | None = None) -> None:
        self.plan = plan
        self.ordering = ordering
        self.lake = lake
        self._lost: str | None = None

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the rows."""
        return self.plan.schema

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.plan.schema.names)

    def _with(self, plan: Node, ordering: Ordering | None = None) -> Self:
        """The stream of another plan. An ordering whose columns are not all there is not one any more."""
        found = ordering if ordering is not None else self.ordering
        lost = None if found is None else next((c for c in found.columns if c not in plan.schema.names), None)
        made = type(self)(plan, None if lost is not None else found, lake=self.lake)
        made._lost = lost if lost is not None else self._lost
        return made

    def _ordered(self, what: str) -> Ordering:
        """The ordering, which ``what`` needs."""
        if self.ordering is None and self._lost is not None:
            expected = (
                f"an ordering for {what}: `{self._lost}`, which was part of it, is gone; say .ordered(time, "
                "by=[...]) again"
            )
            raise InputError.bad_argument("ordering", None, expected)
        if self.ordering is None:
            expected = f"the column that {what} goes by: lake.stream(..., time=, by=[...]) or .ordered(time, by=[...])"
            raise InputError.bad_argument("time", None, expected)
        return self.ordering

    def _column(self, name: str) -> str:
        """A column by its name, as it is spelled in the schema."""
        if not isinstance(name, str):
            raise InputError.bad_argument("column", name, "the name of a column")
        for known in self.plan.schema.names:
            if known == name:
                return name
        for known in self.plan.schema.names:
            if known.lower() == name.lower():
                return str(known)
        raise NotFoundError.column(name, self.columns, "the stream")


def names_of(names: str | Sequence[str]) -> tuple[str, ...]:
    """One name or several.

    >>> names_of("a"), names_of(["a", "b"])
    (('a',), ('a', 'b'))
    """
    if isinstance(names, str):
        return (names,)
    if is_column(names) or not isinstance(names, Iterable):
        raise InputError.bad_argument("columns", names, "the name of a column, or several names")
    return tuple(names)


def flat_names(names: Iterable[str | Sequence[str]]) -> tuple[str, ...]:
    """Names, where each may be a list of them.

    >>> flat_names(["a", ["b", "c"]])
    ('a', 'b', 'c')
    """
    return tuple(name for one in names for name in names_of(one))
