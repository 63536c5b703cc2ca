"""What joins in time have in common: two sides, their times and keys, and the columns that come out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from headwater.base.errors import InputError
from headwater.timeseries.node import Keyed, Node

__all__ = ["TimeJoin"]


@dataclass(frozen=True)
class TimeJoin(Keyed):
    """Rows of two sides that agree in their keys and are near in time. All of the left side's columns come out,
    and the right side's but its keys.
    """

    left: Node
    right: Node
    left_time: str
    right_time: str
    left_by: tuple[str, ...]
    right_by: tuple[str, ...]
    suffix: str = field(default="_right", kw_only=True)
    """For columns of the right side whose names are taken."""
    names: Mapping[str, str] | None = field(default=None, kw_only=True)
    """The right side's columns by the names they get. They are chosen once: with fewer columns on a side,
    names are the same.
    """

    def __post_init__(self) -> None:
        if self.names is None:
            object.__setattr__(self, "names", self._named())

    def _named(self) -> dict[str, str]:
        names: dict[str, str] = {}
        taken = {name.lower() for name in self.left.schema.names}
        for column in self.right.schema.names:
            if column in self.right_by:
                continue
            name = column
            while name.lower() in taken:
                if not isinstance(self.suffix, str) or not self.suffix:
                    expected = f"one under which `{column}` of the other stream has a name of its own"
                    raise InputError.bad_argument("suffix", self.suffix, expected)
                name += self.suffix
            taken.add(name.lower())
            names[name] = column
        return names

    @cached_property
    def taken(self) -> dict[str, str]:
        """The right side's columns that come out, by the names they get."""
        assert self.names is not None
        there = set(self.right.schema.names)
        return {name: column for name, column in self.names.items() if column in there}

    @cached_property
    def schema(self) -> pa.Schema:
        fields = list(self.left.schema)
        fields += [pa.field(name, self.right.schema.field(column).type) for name, column in self.taken.items()]
        return pa.schema(fields)

    def keys(self) -> tuple[tuple[str, ...], ...]:
        return (self.left_by, self.right_by)

    def time_columns(self) -> tuple[str | None, ...]:
        return (self.left_time, self.right_time)

    def needs(self, wanted: frozenset[str]) -> tuple[frozenset[str] | None, ...]:
        right = {column for name, column in self.taken.items() if name in wanted}
        return wanted | {self.left_time, *self.left_by}, frozenset(right | {self.right_time, *self.right_by})

    @property
    def takes_whole_second(self) -> bool:
        return True
