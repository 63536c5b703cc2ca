"""Match: MATCH_RECOGNIZE, the stretches of ordered rows that fit a row pattern.

The rows of each partition, in order, are searched for the pattern; a match is a run of rows, each labelled with a
variable of the pattern. Conditions and measures read values of the match's rows by the calls of
`headwater.sql.row_patterns.calls`.

Rows that are equal by the order are put in the order of the other columns that are read, so that the answer is the same
whoever computes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal as OneOf

import pyarrow as pa

from headwater.sql.nodes import Attribute, Call, Column, Literal, Named, Node, Ordering, Plan, walk
from headwater.sql.plan.text import expression_text, named_text, ordering_text
from headwater.sql.row_patterns.calls import NUMBER, VALUE, place_of
from headwater.sql.row_patterns.syntax import Anchor, Pattern, parts_of_pattern, spelled, variables_of

__all__ = ["Match", "Skip"]

_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Skip:
    """Where the search goes on behind a match: past its last row, at its second row, or at a row of some variables."""

    to: OneOf["past last row", "next row", "first", "last"] = "past last row"
    variables: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """
        >>> Skip("first", ("A",)).words
        'to first A'
        """
        if self.to == "past last row":
            return self.to
        return f"to {self.to}" + (f" {' or '.join(self.variables)}" if self.variables else "")


@dataclass(frozen=True, slots=True)
class Match(Plan):
    """A row for each match (``every_row`` false), or for each row of each match.

    Parameters
    ----------
    pattern
        over the variables that ``definitions`` have conditions for; one without a condition takes any row
    kept
        the child's columns before the measures
    rest
        the child's columns behind them
    within
        how far apart the first and the last row of a match may be, in the order: microseconds for timestamps, else a
        number
    empty
        does a match without rows give one?
    unmatched
        do rows outside of all matches come too, with nulls for measures?
    """

    child: Plan
    partition: tuple[Node, ...]
    order: tuple[Ordering, ...]
    pattern: Pattern
    definitions: tuple[tuple[str, Node], ...]
    measures: tuple[Named, ...]
    kept: tuple[Attribute, ...]
    rest: tuple[Attribute, ...] = ()
    skip: Skip = Skip()
    within: Literal | None = None
    every_row: bool = False
    empty: bool = True
    unmatched: bool = False

    @property
    def output(self) -> tuple[Attribute, ...]:
        return (*self.kept, *(m.attribute for m in self.measures), *self.rest)

    @property
    def children(self) -> tuple[Plan, ...]:
        return (self.child,)

    @property
    def expressions(self) -> tuple[Node, ...]:
        return (
            *self.partition,
            *(o.node for o in self.order),
            *(condition for _, condition in self.definitions),
            *(m.node for m in self.measures),
            *(a.column for a in (*self.kept, *self.rest)),
        )

    @property
    def read(self) -> frozenset[str]:
        """The keys of the child's columns that it reads."""
        return frozenset(n.path[0] for node in self.expressions for n in walk(node) if isinstance(n, Column))

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the pattern, each once, in the order in which they are written first."""
        return tuple(dict.fromkeys(variables_of(self.pattern)))

    @property
    def length(self) -> int | None:
        """How far apart two rows of a match are at most, in the unit of the first key of the order; None where nothing
        says so, or it is no whole number.
        """
        if self.within is None:
            return None
        length, dtype = self.within.value, self.order[0].node.dtype
        if isinstance(length, Decimal):
            return int(length.scaleb(dtype.scale)) if dtype.precision <= 18 else None
        if not isinstance(length, int) or pa.types.is_floating(dtype):
            return None
        return length // _DAY if pa.types.is_date(dtype) else length

    @property
    def is_local(self) -> bool:
        """Does a match depend on nothing but its own rows: not on neighbours, the ends of the partition, or how many
        there were before?
        """
        if _has_anchor(self.pattern):
            return False
        for node in (*(condition for _, condition in self.definitions), *(m.node for m in self.measures)):
            for part in walk(node):
                if isinstance(part, Call) and (part.op == NUMBER or (part.op == VALUE and place_of(part).shift)):
                    return False
        return True

    def line(self) -> str:
        parts = [f"match ({spelled(self.pattern)})"]
        if self.partition:
            parts.append("partition by " + ", ".join(map(expression_text, self.partition)))
        parts.append("order by " + ", ".join(map(ordering_text, self.order)))
        parts += [f"{name} as {expression_text(condition)}" for name, condition in self.definitions]
        if self.within is not None:
            parts.append(f"within {expression_text(self.within)}")
        rows = "all rows" if self.every_row else "one row"
        rows += (", with unmatched rows" if self.unmatched else "") + ("" if self.empty else ", no empty matches")
        parts += [f"skip {self.skip.words}", rows]
        if self.measures:
            parts.append("measures " + ", ".join(map(named_text, self.measures)))
        return "; ".join(parts)


def _has_anchor(pattern: Pattern) -> bool:
    return isinstance(pattern, Anchor) or any(map(_has_anchor, parts_of_pattern(pattern)))
