"""WITH: queries that are named once and read several times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headwater.sql.nodes import Attribute, Plan

__all__ = ["Reference", "With"]


@dataclass(frozen=True, slots=True)
class Reference(Plan):
    """The rows of a definition; ``keys`` are the definition's, ``columns`` this reading's own."""

    name: str
    keys: tuple[str, ...]
    columns: tuple[Attribute, ...]

    @property
    def output(self) -> tuple[Attribute, ...]:
        return self.columns

    @property
    def children(self) -> tuple[Plan, ...]:
        return ()

    def line(self) -> str:
        return f"read {self.name} [{', '.join(a.key for a in self.columns)}]"


@dataclass(frozen=True, slots=True)
class With(Plan):
    """``definitions`` in the order they were written: a later one may read an earlier one."""

    definitions: tuple[tuple[str, Plan], ...]
    child: Plan

    @property
    def output(self) -> tuple[Attribute, ...]:
        return self.child.output

    @property
    def children(self) -> tuple[Plan, ...]:
        return (*(p for _, p in self.definitions), self.child)

    def line(self) -> str:
        return "with " + ", ".join(name for name, _ in self.definitions)

    def _lines(self, depth: int) -> Iterator[str]:
        for name, plan in self.definitions:
            yield "  " * depth + f"with {name}"
            yield from plan._lines(depth + 1)
        yield from self.child._lines(depth)
