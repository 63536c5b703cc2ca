"""Clauses and the operators between them, put together by precedence.

A group is read as alternatives joined by OR; an alternative is a row of clauses side by side; a clause of the row is a
chain joined by AND; and an operand of the chain may have a mark: `+` (must), `-` (must not) or `!` (NOT). With
``default="and"`` clauses side by side join the chain, so a row has only one. Where a clause of a row has a `+` or `-`,
all alternatives are one row: OR says no more than standing side by side, as in Lucene.

Nothing recurses: the reader keeps a stack of `Clauses`, one per open parenthesis. Each operand knows the height of its
tree, and one that would become higher than `MAX_DEPTH` is refused, so that whoever walks a tree may recurse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from headwater.base.errors import SearchQueryError
from headwater.search.language.source import MAX_DEPTH, Source
from headwater.search.language.tree import And, Node, Not, Occurs, Or

__all__ = ["Clauses", "Default", "Operand"]

Default = Literal["and", "or"]
Mark = Literal["", "+", "-", "!"]


@dataclass(frozen=True, slots=True)
class Operand:
    """A node with its mark, its height, and where it is in the query."""

    node: Node
    height: int
    start: int
    end: int
    mark: Mark = ""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An operator or a mark whose right side has not come yet."""

    symbol: str
    start: int
    end: int


_MARKS: dict[str, Mark] = {"+": "+", "-": "-", "!": "!", "NOT": "!"}


class Clauses:
    """What is between two parentheses, or in the whole query, as far as it was read."""

    __slots__ = ("_chain", "_default", "_marks", "_operator", "_row", "_rows", "_source")

    def __init__(self, source: Source, default: Default) -> None:
        self._source = source
        self._default = default
        self._rows: list[list[Operand]] = []
        self._row: list[Operand] = []
        self._chain: list[Operand] = []
        self._operator: _Waiting | None = None
        self._marks: list[_Waiting] = []

    def join(self, operator: Literal["AND", "OR"], start: int, end: int) -> None:
        """Take an operator between two operands."""
        written = self._source.text[start:end]
        if self._operator or self._marks or not self._chain:
            hint = f'write a clause on both sides: `a {operator} b`; to search for the word itself, write `"{written}"`'
            self._source.refuse(start, end, f"`{written}` has no clause before it", hint)
            return
        self._operator = _Waiting(operator, start, end)

    def mark(self, symbol: str, start: int, end: int) -> None:
        """Take ``NOT``, ``!``, ``-`` or ``+`` before an operand."""
        self._marks.append(_Waiting(symbol, start, end))

    def add(self, operand: Operand | None) -> None:
        """Take an operand; None is one that was too deep."""
        marked = self._marked(operand)
        if marked is None:
            return
        joined = self._operator.symbol if self._operator else "AND" if self._default == "and" else ""
        self._operator = None
        if self._chain and joined == "AND":
            self._chain.append(marked)
            return
        self._end_chain()
        if joined == "OR":
            self._end_row()
        self._chain = [marked]

    def close(self) -> Operand | None:
        """All of it as one operand, without a mark; None where there is nothing."""
        for waiting in (*([self._operator] if self._operator else []), *self._marks):
            self._refuse_dangling(waiting)
        self._end_chain()
        self._end_row()
        if any(one.mark in ("+", "-") for row in self._rows for one in row):
            self._rows = [[one for row in self._rows for one in row]]
        if len(self._rows) == 1:
            return self._of_row(self._rows[0])
        alternatives: list[Operand] = []
        for row in self._rows:
            if len(row) > 1 and not any(one.mark for one in row):
                alternatives.extend(row)
            elif whole := self._of_row(row):
                alternatives.append(whole)
        return self.combine(alternatives, Or)

    def lift(self, operand: Operand | None, make: Callable[[Node], Node]) -> Operand | None:
        """The operand with a node put above its own; None where it is too deep for that."""
        fitting = self._fitting([operand] if operand else [])
        if not fitting:
            return None
        one = fitting[0]
        return replace(one, node=make(one.node), height=one.height + 1, mark="")

    def combine(self, operands: Sequence[Operand], make: Callable[[tuple[Node, ...]], Node]) -> Operand | None:
        """Several operands as the children of one; a single one as it is."""
        fitting = operands if len(operands) < 2 else self._fitting(operands)
        if len(fitting) < 2:
            return fitting[0] if fitting else None
        return _above(fitting, make(tuple(one.node for one in fitting)))

    def _refuse_dangling(self, waiting: _Waiting) -> None:
        written = self._source.text[waiting.start : waiting.end]
        shown = f"a {waiting.symbol} b" if waiting.symbol in ("AND", "OR") else "NOT a"
        hint = f'add one: `{shown}`; to search for the word itself, write `"{written}"`'
        self._source.refuse(waiting.start, waiting.end, f"`{written}` has no clause after it", hint)

    def _marked(self, operand: Operand | None) -> Operand | None:
        marks, self._marks = self._marks, []
        for inner in reversed(marks[1:]):
            if inner.symbol != "+":
                operand = self.lift(operand, Not)
        if operand is None or not marks:
            return operand
        return replace(operand, start=marks[0].start, mark=_MARKS[marks[0].symbol])

    def _end_chain(self) -> None:
        chain, self._chain = self._chain, []
        if len(chain) == 1:
            self._row += chain
        elif whole := self.combine(self._settled(chain), And):
            self._row.append(replace(whole, mark="+" if any(one.mark == "+" for one in chain) else ""))

    def _end_row(self) -> None:
        if self._row:
            self._rows.append(self._row)
            self._row = []

    def _of_row(self, row: Sequence[Operand]) -> Operand | None:
        if len(row) == 1:
            return _first(self._settled(row))
        fitting = self._fitting(row)
        if len(fitting) < 2:
            return _first(self._settled(fitting))
        must, should, must_not = (
            tuple(one.node for one in fitting if one.mark in marks) for marks in (("+",), ("",), ("-", "!"))
        )
        return _above(fitting, Occurs(must, should, must_not) if must or must_not else Or(should))

    def _settled(self, operands: Iterable[Operand]) -> list[Operand]:
        """The operands without their marks: `-` and `!` are NOT, and `+` is nothing."""
        settled = []
        for one in operands:
            whole = self.lift(one, Not) if one.mark in ("-", "!") else replace(one, mark="")
            if whole is not None:
                settled.append(whole)
        return settled

    def _fitting(self, operands: Iterable[Operand]) -> list[Operand]:
        """The operands that may have a node above them; the others are refused."""
        fitting = []
        for one in operands:
            if one.height < MAX_DEPTH:
                fitting.append(one)
            else:
                self._source.refuse_limit(one.start, one.end, SearchQueryError.too_deep(MAX_DEPTH))
        return fitting


def _above(operands: Sequence[Operand], node: Node) -> Operand:
    return Operand(node, 1 + max(one.height for one in operands), operands[0].start, operands[-1].end)


def _first(operands: Sequence[Operand]) -> Operand | None:
    return operands[0] if operands else None
