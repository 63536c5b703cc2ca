"""MATCH_RECOGNIZE in plain Python, by the words of the standard: slow, short, and without anything of the real one.

A pattern is tried from each row by generators that yield where it may end, preferred ways first. Conditions and values
are Python functions of a `View`: the rows of the partition, the labels given so far, and where the current row stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

from headwater.sql.row_patterns import (
    Alternation,
    Anchor,
    Concatenation,
    Exclusion,
    Pattern,
    Permutation,
    Quantified,
    Variable,
)

Row = dict[str, Any]
Labels = tuple[tuple[str, bool], ...]


class TooLongError(Exception):
    """The plain matcher gives up."""


@dataclass(frozen=True)
class View:
    """What a condition or a measure sees: the match from ``start`` on, of which it knows the first ``upto`` labels."""

    rows: list[Row]
    start: int
    labels: Labels
    upto: int
    number: int = 0

    def where(self, names: tuple[str, ...], *, final: bool = False) -> list[int]:
        """The rows of the match so far (or all) with these labels; no names: every row."""
        end = len(self.labels) if final else self.upto
        return [self.start + i for i in range(end) if not names or self.labels[i][0] in names]

    def nth(
        self, names: tuple[str, ...], *, first: bool, skipped: int = 0, shift: int = 0, final: bool = False
    ) -> int | None:
        """The row that FIRST or LAST means, moved by ``shift``; None if there is none."""
        found = self.where(names, final=final)
        at = skipped if first else len(found) - 1 - skipped
        if not 0 <= at < len(found):
            return None
        row = found[at] + shift
        return row if 0 <= row < len(self.rows) else None

    def value(self, column: str, names: tuple[str, ...] = (), **place: Any) -> Any:
        row = self.nth(names, **({"first": False} | place))
        return None if row is None else self.rows[row][column]

    def values(self, column: str, names: tuple[str, ...] = (), *, final: bool = False) -> list[Any]:
        """What an aggregate is over: values that are not null."""
        found = (self.rows[row][column] for row in self.where(names, final=final))
        return [v for v in found if v is not None]

    def label(self, names: tuple[str, ...] = (), *, skipped: int = 0, final: bool = False) -> str | None:
        row = self.nth(names, first=False, skipped=skipped, final=final)
        return None if row is None else self.labels[row - self.start][0]


Condition = Callable[[View], Any]


@dataclass
class Plain:
    """A pattern with its conditions, over the rows of one partition."""

    pattern: Pattern
    conditions: dict[str, Condition]
    rows: list[Row]
    reach: Callable[[list[Row], int], int] = lambda rows, start: len(rows)
    steps: int = 0
    most_steps: int = 100_000
    start: int = field(default=0, init=False)
    number: int = field(default=1, init=False)

    def find(self, start: int) -> Labels | None:
        """The labels of the preferred match from a row on."""
        self.start = start
        self.end = self.reach(self.rows, start)
        return next(self._tried(self.pattern, (), excluded=False), None)

    def _tried(self, pattern: Pattern, labels: Labels, *, excluded: bool) -> Iterator[Labels]:
        self.steps += 1
        if self.steps > self.most_steps:
            raise TooLongError
        at = self.start + len(labels)
        if isinstance(pattern, Variable):
            if at >= self.end:
                return
            tried = (*labels, (pattern.name, excluded))
            condition = self.conditions.get(pattern.name)
            if condition is None or condition(View(self.rows, self.start, tried, len(tried), self.number)) is True:
                yield tried
        elif isinstance(pattern, Anchor):
            if at == (len(self.rows) if pattern.end else 0):
                yield labels
        elif isinstance(pattern, Concatenation):
            yield from self._in_order(pattern.parts, labels, excluded=excluded)
        elif isinstance(pattern, Alternation):
            for part in pattern.parts:
                yield from self._tried(part, labels, excluded=excluded)
        elif isinstance(pattern, Permutation):
            for order in permutations(pattern.parts):
                yield from self._in_order(order, labels, excluded=excluded)
        elif isinstance(pattern, Exclusion):
            yield from self._tried(pattern.part, labels, excluded=True)
        else:
            yield from self._repeated(pattern, labels, 0, excluded=excluded)

    def _in_order(self, parts: tuple[Pattern, ...], labels: Labels, *, excluded: bool) -> Iterator[Labels]:
        if not parts:
            yield labels
            return
        for one in self._tried(parts[0], labels, excluded=excluded):
            yield from self._in_order(parts[1:], one, excluded=excluded)

    def _repeated(self, pattern: Quantified, labels: Labels, times: int, *, excluded: bool) -> Iterator[Labels]:
        if times < pattern.least:
            for one in self._tried(pattern.part, labels, excluded=excluded):
                yield from self._repeated(pattern, one, times + 1, excluded=excluded)
            return
        if pattern.reluctant:
            yield labels
        if pattern.most is None or times < pattern.most:
            for one in self._tried(pattern.part, labels, excluded=excluded):
                if len(one) == len(labels):
                    yield one  # a round without a row is the last one
                else:
                    yield from self._repeated(pattern, one, times + 1, excluded=excluded)
        if not pattern.reluctant:
            yield labels


def matches(plain: Plain, skip: tuple[str, tuple[str, ...]]) -> list[tuple[int, Labels]]:
    """All matches of a partition; ValueError where AFTER MATCH SKIP leads nowhere."""
    found: list[tuple[int, Labels]] = []
    at = 0
    while at < len(plain.rows):
        plain.number = len(found) + 1
        labels = plain.find(at)
        if labels is None:
            at += 1
            continue
        found.append((at, labels))
        to, names = skip
        if not labels or to == "next row":
            at += 1
        elif to == "past last row":
            at += len(labels)
        else:
            places = [at + i for i, (name, _) in enumerate(labels) if name in names]
            if not places or (target := places[0 if to == "first" else -1]) == at:
                raise ValueError(to)
            at = target
    return found
