"""A script is statements with `;` between them; each keeps the line it begins on, for messages.

In the engine's own dialect the rules of quoting are the engine's, so that its text is handed over in one piece.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.base.errors import ExpressionError
from headwater.sql.tokens import split, tokenize

__all__ = ["Piece", "is_complete", "named_parameters", "pieces_of"]


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement of a script, and the line of the script it begins on, from 1."""

    text: str
    line: int


def pieces_of(script: str, *, dialect: str = "spark") -> list[Piece]:
    """The statements of a script.

    >>> [(piece.line, piece.text) for piece in pieces_of("SELECT 1;\\nSELECT ';'")]
    [(1, 'SELECT 1'), (2, "SELECT ';'")]
    """
    if dialect != "spark":
        return [Piece(script.strip().rstrip(";"), 1)] if script.strip(" \t\r\n;") else []
    return [Piece(text, script.count("\n", 0, offset) + 1) for text, offset in split(script)]


def is_complete(text: str, *, dialect: str = "spark") -> bool:
    """Whether what was typed is to be run: it ends with a `;` that is one.

    >>> is_complete("SELECT 1;  "), is_complete("SELECT ';"), is_complete("SELECT 1")
    (True, False, False)
    """
    if dialect != "spark":
        return text.rstrip().endswith(";")
    last = None
    try:
        for token in tokenize(text):
            last = token
    except ExpressionError:  # a quote or a comment is open
        return False
    return last is not None and last.text == ";"


def named_parameters(statement: str) -> set[str]:
    """The parameters that a statement names.

    >>> sorted(named_parameters("SELECT :a, ':b', x WHERE y = :c"))
    ['a', 'c']
    """
    return {token.text[1:] for token in tokenize(statement) if token.kind == "parameter"}
