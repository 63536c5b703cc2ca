"""An act of the demo: what was done, what there is to see, and a check that was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Act", "Grid"]


@dataclass(frozen=True, slots=True)
class Grid:
    """A small table to look at."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(slots=True)
class Act:
    """One scene of the demo."""

    title: str
    sql: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    grid: Grid | None = None
    check: str = ""
    holds: bool = True
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        grid = None if self.grid is None else [dict(zip(self.grid.columns, r, strict=True)) for r in self.grid.rows]
        return {
            "title": self.title,
            "sql": self.sql,
            "facts": self.facts,
            "rows": grid,
            "check": self.check,
            "holds": self.holds,
            "seconds": round(self.seconds, 3),
        }
