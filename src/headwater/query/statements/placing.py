"""Placing: an error about a name shows where the statement names it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

from headwater.base.errors import InputError
from headwater.query.result import Result
from headwater.query.session import Session
from headwater.sql.statements import Statement
from headwater.sql.tokens import tokenize

__all__ = ["place_of", "placing"]

S = TypeVar("S", bound=Statement)


def placing(runs: Callable[[S, Session], Result]) -> Callable[[S, Session], Result]:
    """A function that runs a statement, with its errors about tables and columns pointing into the statement."""

    @functools.wraps(runs)
    def placed(statement: S, session: Session) -> Result:
        try:
            return runs(statement, session)
        except InputError as error:
            if error.subject is not None and error.position is None:
                position = place_of(statement.text, error.subject)
                if position is not None:
                    raise error.placed_at(statement.text, position) from None
            raise

    return placed


def place_of(text: str, name: str) -> int | None:
    """Where a name, with dots between its parts, first stands in a statement; None where it does not.

    >>> place_of("UPDATE orders SET `amout` = 1", "amout")
    18
    """
    parts = [p.lower() for p in name.split(".")]
    tokens = list(tokenize(text))
    for at, token in enumerate(tokens):
        inside = [t for t in tokens[at : at + 2 * len(parts) - 1] if t.text != "."]
        named = [str(t.value).lower() for t in inside if t.kind in ("word", "name")]
        if named == parts or (token.kind == "name" and str(token.value).lower() == name.lower()):
            return token.start
    return None
