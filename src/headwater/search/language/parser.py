"""Reading a query: `parse` and `parse_leniently`.

One loop goes over the query once. It sees parentheses, operators and marks itself, leaves the rest to `leaves`, and
what a clause belongs to to `clauses`. Open groups are on a stack, so no query can exhaust Python's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from headwater.base.errors import InputError, SearchQueryError
from headwater.search.language.clauses import Clauses, Default, Operand
from headwater.search.language.fields import read_field
from headwater.search.language.leaves import OPERATORS, read_everything, read_exists, read_leaf
from headwater.search.language.source import MAX_CLAUSES, WORD, Ignored, Source
from headwater.search.language.suffixes import Subject, read_suffixes
from headwater.search.language.tree import And, Boost, Everything, Leaf, Node, Not, Occurs, Or

__all__ = ["parse", "parse_leniently"]

_SYMBOLS: dict[str, Literal["AND", "OR"]] = {"&&": "AND", "||": "OR"}
_MARKS = re.compile(r"[+\-!]++")
_SPECIAL = re.compile(r"\*:|_exists_:\s*+")


def parse(text: str, *, default: Default = "or") -> Node:
    """The tree of a query.

    Parameters
    ----------
    text
        The query. Its language is described in `headwater.search.language`.
    default
        What clauses side by side mean: "or" (Lucene's rule with its marks `+` and `-`), or "and".

    Raises
    ------
    SearchQueryError
        It cannot be read, is longer than 65,536 characters, has more than 10,000 clauses, or nests more than 100 deep.

    Examples
    --------
    >>> title, other = parse('title:card AND NOT "lost card"').children
    >>> title, other.child
    (Term(at=0, field='title', text='card'), Phrase(at=19, field=None, text='lost card', slop=0, prefix=False))
    """
    _check(text, default)
    node = _Reader(Source(text), default).read()
    if node is None:
        raise SearchQueryError.unreadable("it is empty", "write what to search for; `*` finds every row")
    return node


def parse_leniently(text: str, *, default: Default = "or") -> tuple[Node, tuple[Ignored, ...]]:
    """The tree of what can be read in a query, and what was left out; no string is refused.

    A query of which nothing is left matches no row: `NOT *`.

    >>> parse_leniently("card AND (lost")
    (And(children=(Term(at=0, field=None, text='card'), Term(at=10, field=None, text='lost'))), \
(Ignored(at=9, text='(', reason='the parenthesis that opens here is never closed'),))
    """
    _check(text, default)
    source = Source(text, lenient=True)
    node = _Reader(source, default).read()
    return Not(Everything()) if node is None else node, source.ignored()


def _check(text: object, default: object) -> None:
    if not isinstance(text, str):
        raise InputError.bad_argument("query", text, "a string")
    if default not in ("and", "or"):
        raise InputError.bad_argument("default", default, "'or' or 'and'")


def _placed(node: Leaf | Boost, start: int, end: int) -> Operand:
    """A leaf as an operand, said to begin where its clause does: at the name of its field."""
    if isinstance(node, Boost):
        assert not isinstance(node.child, And | Or | Not | Boost | Occurs)
        return Operand(replace(node, child=replace(node.child, at=start)), 2, start, end)
    return Operand(replace(node, at=start), 1, start, end)


@dataclass(slots=True)
class _Group:
    """A parenthesis that is open: its clauses, the field that holds for it, where it began,
    and how much was refused by then.
    """

    clauses: Clauses
    field: str | None
    start: int
    opening: int
    refusals: int


class _Reader:
    def __init__(self, source: Source, default: Default) -> None:
        self._source = source
        self._text = source.text
        self._default = default
        self._groups: list[_Group] = []
        self._open_group(None, 0, 0)
        self._clauses_read = 0

    def read(self) -> Node | None:
        """Everything; None where there is nothing."""
        at = 0
        while (at := self._source.skip_blanks(at)) < len(self._text):
            at = self._read_next(at)
        while len(self._groups) > 1:
            opening = self._groups[-1].opening
            hint = "close it with `)`; to search for the character itself, write `\\(`"
            self._source.refuse(opening, opening + 1, "the parenthesis that opens here is never closed", hint)
            self._close_group(len(self._text))
        whole = self._groups[0].clauses.close()
        return whole.node if whole else None

    def _open_group(self, field: str | None, start: int, opening: int) -> int:
        clauses = Clauses(self._source, self._default)
        self._groups.append(_Group(clauses, field, start, opening, self._source.refusals))
        return opening + 1

    def _read_next(self, at: int) -> int:
        group = self._groups[-1]
        char = self._text[at]
        if char == "(":
            return self._open_group(group.field, at, at)
        if char == ")":
            return self._read_closing(at)
        if char in "+-!":
            return self._read_mark(at)
        if operator := _SYMBOLS.get(self._text[at : at + 2]):
            group.clauses.join(operator, at, at + 2)
            return at + 2
        word = self._operator_at(at)
        if word == "NOT":
            group.clauses.mark(word, at, at + 3)
        elif word:
            group.clauses.join("AND" if word == "AND" else "OR", at, at + len(word))
        else:
            return self._read_clause(at)
        return at + len(word)

    def _operator_at(self, at: int) -> str:
        """The operator that is the whole word at ``at``, and not the name of a field; empty where there is none."""
        if not self._text.startswith(OPERATORS, at):
            return ""
        word = WORD.match(self._text, at)
        assert word is not None
        return word.group() if word.group() in OPERATORS and self._source.char(word.end()) != ":" else ""

    def _read_mark(self, at: int) -> int:
        marks = _MARKS.match(self._text, at)
        assert marks is not None
        written, end = marks.group(), marks.end()
        after = self._source.char(end)
        literal = f"to search for the character itself, write `\\{written[0]}`"
        if len(written) > 1:
            self._source.refuse(at, end, f"`{written[:40]}` is more than one mark", f"keep one: `-word`; {literal}")
        elif not after or after.isspace() or after == ")":
            self._source.refuse(
                at, end, f"`{written}` has no clause directly after it", f"write it without a space: `-word`; {literal}"
            )
        else:
            self._groups[-1].clauses.mark(written, at, end)
        return end

    def _read_clause(self, start: int) -> int:
        field, at, named = self._groups[-1].field, start, False
        special = _SPECIAL.match(self._text, start)
        if special is None:
            name, at = read_field(self._source, start)
            field = field if name is None else name
            if named := at > start:
                at = self._source.skip_blanks(at)
                if at == len(self._text) or self._ends_clause(at):
                    self._refuse_bare_field(start, at)
                    return at
            if self._source.char(at) == "(":
                return self._open_group(field, start, at)
        self._clauses_read += 1
        if self._clauses_read > MAX_CLAUSES:
            self._source.refuse_limit(start, len(self._text), SearchQueryError.too_many_clauses(MAX_CLAUSES))
            return len(self._text)
        if special is None:
            node, end = read_leaf(self._source, at, field, named=named)
        elif special.group() == "*:":
            node, end = read_everything(self._source, start)
        else:
            node, end = read_exists(self._source, special.end(), start)
        if node is not None:
            self._groups[-1].clauses.add(_placed(node, start, end))
        elif named:
            self._refuse_bare_field(start, at)
        return end

    def _refuse_bare_field(self, start: int, end: int) -> None:
        hint = 'add one: `field:word`; put an operator that is a value in quotes: `field:"OR"`'
        self._source.refuse(start, end, "the field has no value", hint, caret=end)

    def _ends_clause(self, at: int) -> bool:
        return self._text[at] == ")" or self._text[at : at + 2] in _SYMBOLS or bool(self._operator_at(at))

    def _read_closing(self, at: int) -> int:
        if len(self._groups) == 1:
            hint = "open it with `(`, or remove it; to search for the character itself, write `\\)`"
            self._source.refuse(at, at + 1, "the parenthesis closes nothing", hint)
            return at + 1
        return self._close_group(at + 1)

    def _close_group(self, end: int) -> int:
        group = self._groups.pop()
        whole = group.clauses.close()
        said = read_suffixes(self._source, end, Subject.GROUP)
        if whole is None and self._source.refusals == group.refusals:
            self._source.refuse(group.start, end, "the parentheses are empty", "write a clause in them: `(a OR b)`")
        if whole is None:
            return said.end
        clauses = self._groups[-1].clauses
        operand: Operand | None = Operand(whole.node, whole.height, group.start, said.end)
        if said.boost is not None:
            factor = said.boost
            operand = clauses.lift(operand, lambda node: Boost(node, factor))
        clauses.add(operand)
        return said.end
