"""Recursion: rows that are made from rows made before, until no more come.

The ``base`` gives the first rows. The ``step`` is then computed over the rows that came last, again and again; inside
of it a `Reference` of the recursion's own name means those rows. With ``every`` (UNION ALL) all rows are kept; without
it (UNION) a row that is there already is left out, so a cycle comes to an end. A recursion is a definition of a `With`,
and read like any other.

>>> import pyarrow as pa
>>> from headwater.sql.query import parse_query
>>> text = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r"
>>> print(parse_query(text, lambda *_: pa.schema([])).dump(), end="")
with r#3
  recursion all of at most 100 levels as [n#2]
    project 1 as 1#1
      one row
    project (n#4 + 1) as (n + 1)#5
      filter (n#4 < 3)
        read r#3 [n#4]
project n#6
  read r#3 [n#6]
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.nodes import Attribute, Plan

__all__ = ["Recursion"]


@dataclass(frozen=True, slots=True)
class Recursion(Plan):
    """``base`` and ``step`` have the types of ``columns`` already;
    ``levels`` is the number of steps that Spark allows.
    """

    name: str
    columns: tuple[Attribute, ...]
    base: Plan
    step: Plan
    every: bool
    levels: int | None = None

    @property
    def output(self) -> tuple[Attribute, ...]:
        return self.columns

    @property
    def children(self) -> tuple[Plan, ...]:
        return (self.base, self.step)

    def line(self) -> str:
        most = "" if self.levels is None else f" of at most {self.levels} levels"
        return f"recursion{' all' if self.every else ''}{most} as [{', '.join(a.key for a in self.columns)}]"
