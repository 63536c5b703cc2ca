"""A fragment: a piece of SQL inside a longer text, with the values of its parameters.

A statement is read piece by piece: the condition of a DELETE, the right side of an assignment, the query of an INSERT.
Each piece goes to its own reader, but what the user wrote is the whole, so that an error has to point into the whole.
And parameters belong to the statement, while each reader may see only those of its piece.

Invariants:
1. ``parameters`` holds the values that this piece names and no others: a mapping for ``:name``, a sequence for ``?``.
2. Values are handed on as typed constants. They are never pasted into text that is parsed; `spelled` writes them out
   for people, in the history of a table.
3. A position in ``text`` has exactly one place in ``whole``: `place` finds it, also after pieces were `joined`.

>>> piece = Fragment("amount > :least", {"least": 3}, whole="DELETE FROM t WHERE amount > :least", offset=20)
>>> piece.place(9), piece.spelled()
(29, 'amount > 3')
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal

from headwater.base.errors import HeadwaterError, InputError
from headwater.base.spark_text import quoted_text

__all__ = ["Fragment", "joined", "spelled"]

Parameters = Mapping[str, object] | Sequence[object]


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece of SQL: its ``text``, the ``parameters`` it names, and its ``offset`` in the ``whole`` statement."""

    text: str
    parameters: Parameters = field(default_factory=dict)
    whole: str | None = None
    offset: int = 0
    # Of a text that was joined from pieces: where each begins and ends here, and where it begins in the whole.
    spans: tuple[tuple[int, int, int], ...] = ()

    def __str__(self) -> str:
        return self.text

    @classmethod
    def of(cls, text: str | Fragment) -> Fragment:
        """The fragment itself, or a text as one that stands alone."""
        return text if isinstance(text, Fragment) else cls(text)

    def place(self, position: int) -> int:
        """The position in ``whole`` of a position in ``text``."""
        spans = self.spans or ((0, len(self.text), self.offset),)
        for start, end, source in spans:
            if position < end:
                return source + max(position - start, 0)
        start, end, source = spans[-1]
        return source + end - start

    @contextlib.contextmanager
    def placed(self) -> Iterator[None]:
        """Errors about ``text`` that are raised inside point into ``whole``."""
        try:
            yield
        except HeadwaterError as error:
            if self.whole is not None and error.position is not None:
                error.placed_at(self.whole, self.place(error.position))
            raise

    def spelled(self) -> str:
        """The text with its parameters written out as constants: for people to read, never to be parsed here."""
        if not self.parameters:
            return self.text
        from headwater.sql.tokens import tokenize

        out, at, number = [], 0, 0
        for token in tokenize(self.text):
            if token.kind not in ("parameter", "question"):
                continue
            if token.kind == "parameter":
                assert isinstance(self.parameters, Mapping)
                value = self.parameters[token.text[1:]]
            else:
                assert isinstance(self.parameters, Sequence)
                value, number = self.parameters[number], number + 1
            out += [self.text[at : token.start], _constant(value)]
            at = token.end
        return "".join([*out, self.text[at:]])


def joined(*pieces: str | Fragment) -> Fragment:
    """One fragment of several, in the order of their parameters; a plain text between them counts to what follows it.

    >>> where = Fragment("id = ?", [7], whole="DELETE FROM t WHERE id = ?", offset=20)
    >>> made = joined("SELECT id FROM t WHERE (", where, ")")
    >>> made.text, made.parameters, made.place(24)
    ('SELECT id FROM t WHERE (id = ?)', [7], 20)
    """
    text, spans = "", list[tuple[int, int, int]]()
    named: dict[str, object] = {}
    numbered: list[object] = []
    whole = next((p.whole for p in pieces if isinstance(p, Fragment) and p.whole is not None), None)
    for piece in pieces:
        if isinstance(piece, Fragment):
            own = piece.spans or ((0, len(piece.text), piece.offset),)
            spans += [(len(text) + start, len(text) + end, source) for start, end, source in own]
            if isinstance(piece.parameters, Mapping):
                named |= piece.parameters
            else:
                numbered += piece.parameters
        text += str(piece)
    assert not (named and numbered), "a statement has parameters of one kind"
    return Fragment(text, numbered or named, whole, spans[0][2] if spans else 0, tuple(spans))


def spelled(text: str | Fragment | None, default: str = "true") -> str:
    """What a table's history says of a condition.

    >>> spelled("a > 1"), spelled(None), spelled(Fragment("s = ?", ["it's"]))
    ('a > 1', 'true', "s = 'it\\\\'s'")
    """
    if text is None:
        return default
    return text if isinstance(text, str) else text.spelled()


def _constant(value: object) -> str:
    if isinstance(value, str):
        return quoted_text(value)
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, datetime):
        kind = "TIMESTAMP_NTZ" if value.tzinfo is None else "TIMESTAMP"
        return f"{kind}'{value.isoformat(' ')}'"
    if isinstance(value, date):
        return f"DATE'{value.isoformat()}'"
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)"
    if isinstance(value, int | Decimal):
        return str(value)
    if isinstance(value, list | tuple):
        return f"array({', '.join(map(_constant, value))})"
    raise InputError.bad_argument("parameters", value, "a value that a column can hold")
