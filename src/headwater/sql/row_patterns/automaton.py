"""The machine of a row pattern: a short program that is walked along the rows, preferred ways first.

A pattern becomes instructions, as a regular expression does: ``row`` takes a row for which a variable's condition is
true, ``either`` tries one way and, if that fails, another. The order in which ways are tried is the whole meaning of
greedy, reluctant and alternation, so the first way that reaches ``accept`` is the match.

A quantifier is written out, `{2,4}` as four times its part; a pattern that would become longer than `LONGEST` is
refused. A loop whose part has taken no row ends there, as in other regular expressions: `(A*)*` stops.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headwater.sql.nodes import Wrong
from headwater.sql.row_patterns.syntax import (
    Alternation,
    Anchor,
    Concatenation,
    Exclusion,
    Pattern,
    Permutation,
    Quantified,
    Variable,
)

__all__ = ["LONGEST", "Automaton", "Instruction", "automaton_of"]

LONGEST = 20_000
"""Instructions that a pattern may become."""

_MOST_PERMUTED = 7


@dataclass(slots=True)
class Instruction:
    """One step: ``first`` and ``second`` are a variable and whether it is excluded, or where to go on."""

    op: str
    first: int = 0
    second: int = 0


@dataclass(slots=True)
class Automaton:
    """The program, its variables by number, and how many loops have to look whether they took a row."""

    variables: tuple[str, ...]
    instructions: list[Instruction] = field(default_factory=list)
    loops: int = 0

    def text(self) -> str:
        """The program, an instruction a line."""
        return "\n".join(f"{at:>4}  {self._line(one)}" for at, one in enumerate(self.instructions))

    def _line(self, one: Instruction) -> str:
        if one.op == "row":
            return f"row {self.variables[one.first]}{', left out' if one.second else ''}"
        if one.op == "either":
            return f"either {one.first}, or else {one.second}"
        if one.op == "jump":
            return f"go to {one.first}"
        if one.op in ("begin loop", "end if no row"):
            return f"{one.op} {one.first}" + (f": go to {one.second}" if one.op == "end if no row" else "")
        return one.op


def automaton_of(pattern: Pattern, variables: Iterable[str]) -> Automaton:
    """The program of a pattern.

    >>> print(automaton_of(Quantified(Variable("A"), 1, None), ["A"]).text())
       0  row A
       1  either 2, or else 4
       2  row A
       3  go to 1
       4  accept
    """
    names = tuple(variables)
    made = _Writer(Automaton(names), {name: number for number, name in enumerate(names)})
    made.write(pattern, excluded=False)
    made.add("accept")
    return made.automaton


@dataclass(slots=True)
class _Writer:
    automaton: Automaton
    numbers: Mapping[str, int]

    @property
    def here(self) -> int:
        return len(self.automaton.instructions)

    def add(self, op: str, first: int = 0, second: int = 0) -> Instruction:
        if self.here >= LONGEST:
            hint = "use smaller bounds in {n,m}, or * with a condition that ends it"
            raise Wrong(f"the row pattern is one of more than {LONGEST:,} steps", hint)
        made = Instruction(op, first, second)
        self.automaton.instructions.append(made)
        return made

    def write(self, pattern: Pattern, *, excluded: bool) -> None:
        if isinstance(pattern, Variable):
            self.add("row", self.numbers[pattern.name], int(excluded))
        elif isinstance(pattern, Anchor):
            self.add("at end" if pattern.end else "at start")
        elif isinstance(pattern, Concatenation):
            for part in pattern.parts:
                self.write(part, excluded=excluded)
        elif isinstance(pattern, Exclusion):
            self.write(pattern.part, excluded=True)
        elif isinstance(pattern, Permutation):
            if len(pattern.parts) > _MOST_PERMUTED:
                hint = f"give it {_MOST_PERMUTED} at most: each more has as many times more orders"
                raise Wrong(f"PERMUTE has {len(pattern.parts)} parts", hint)
            orders = itertools.permutations(pattern.parts)
            self._alternatives([Concatenation(order) for order in orders], excluded)
        elif isinstance(pattern, Alternation):
            self._alternatives(pattern.parts, excluded)
        else:
            self._quantified(pattern, excluded)

    def _alternatives(self, parts: Iterable[Pattern], excluded: bool) -> None:
        *others, last = parts
        leaving = []
        for part in others:
            fork = self.add("either", self.here + 1)
            self.write(part, excluded=excluded)
            leaving.append(self.add("jump"))
            fork.second = self.here
        self.write(last, excluded=excluded)
        for jump in leaving:
            jump.first = self.here

    def _quantified(self, pattern: Quantified, excluded: bool) -> None:
        for _ in range(pattern.least):
            self.write(pattern.part, excluded=excluded)
        if pattern.most is None:
            self._loop(pattern, excluded)
            return
        forks, guards = [], []
        for _ in range(pattern.most - pattern.least):
            forks.append(self.add("either"))
            self._way_in(forks[-1], pattern.reluctant)
            guards += self._round(pattern, excluded)
        for fork in forks:
            self._way_out(fork, pattern.reluctant)
        for guard in guards:
            guard.second = self.here

    def _loop(self, pattern: Quantified, excluded: bool) -> None:
        again = self.here
        fork = self.add("either")
        self._way_in(fork, pattern.reluctant)
        guards = self._round(pattern, excluded)
        self.add("jump", again)
        self._way_out(fork, pattern.reluctant)
        for guard in guards:
            guard.second = self.here

    def _round(self, pattern: Quantified, excluded: bool) -> list[Instruction]:
        """One more time; the instructions that leave the loop where the part took no row."""
        if not is_nullable(pattern.part):
            self.write(pattern.part, excluded=excluded)
            return []
        number = self.automaton.loops
        self.automaton.loops += 1
        self.add("begin loop", number)
        self.write(pattern.part, excluded=excluded)
        return [self.add("end if no row", number)]

    def _way_in(self, fork: Instruction, reluctant: bool) -> None:
        if reluctant:
            fork.second = self.here
        else:
            fork.first = self.here

    def _way_out(self, fork: Instruction, reluctant: bool) -> None:
        if reluctant:
            fork.first = self.here
        else:
            fork.second = self.here


def is_nullable(pattern: Pattern) -> bool:
    """Whether it may match without a row."""
    if isinstance(pattern, Variable):
        return False
    if isinstance(pattern, Anchor):
        return True
    if isinstance(pattern, Concatenation | Permutation):
        return all(map(is_nullable, pattern.parts))
    if isinstance(pattern, Alternation):
        return any(map(is_nullable, pattern.parts))
    if isinstance(pattern, Quantified):
        return pattern.least == 0 or is_nullable(pattern.part)
    return is_nullable(pattern.part)
