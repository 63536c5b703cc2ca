"""Placing: an error of a statement shows where the statement is wrong, and what to do about it in SQL.

The lake knows nothing of texts: its errors name a table, a column or a version. Here the name is found in the statement
and underlined, and the error is told that it is read by somebody who writes SQL, and which table the statement is
about.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import TypeVar

from headwater.base.errors import Action, HeadwaterError, InputError
from headwater.base.schema import TYPES
from headwater.query.result import Result
from headwater.query.session import Session
from headwater.sql.statements import AlterTable, Restore, Statement
from headwater.sql.tokens import tokenize

__all__ = ["place_of", "placing"]

S = TypeVar("S", bound=Statement)

_SPARK_NAMES = {t.delta: t.spark for t in TYPES}
_VERSIONS = {"E1102", "E1103", "E1104"}
_BY_PATH = re.compile(r"(delta|parquet)\..*/", re.DOTALL)


def placing(runs: Callable[[S, Session], Result]) -> Callable[[S, Session], Result]:
    """A function that runs a statement, with its errors pointing into it;
    what it read from is closed when it is over.
    """

    @functools.wraps(runs)
    def placed(statement: S, session: Session) -> Result:
        try:
            return runs(statement, session)
        except HeadwaterError as error:
            raise _told(error, statement) from None
        except Exception as error:
            found = session.failure(error)
            if found is error:
                raise
            raise found from None
        finally:
            session.close()

    return placed


def _told(error: HeadwaterError, statement: Statement) -> HeadwaterError:
    """The same error, in the terms of the statement."""
    if error.code in ("E1004", "E1101") and _BY_PATH.match(error.subject or ""):
        error.advice = (Action("name_table"),)
    table = getattr(statement, "table", None)
    error.on("sql", table=table, name=table, statement=statement.verb)
    if error.code in ("E1206", "E1210"):
        error.message = re.sub(
            r"(?<=(?:it|om|to) )(?:byte|short|integer|long)\b", lambda m: _SPARK_NAMES[m[0]], error.message
        )
    if error.position is None:
        position = _place(error, statement)
        if position is not None:
            error.placed_at(statement.text, position)
    return error


def _place(error: HeadwaterError, statement: Statement) -> int | None:
    """Where in the statement an error belongs that says so by a name, or by its kind."""
    text, table = statement.text, getattr(statement, "table", "")
    if error.subject is not None and isinstance(error, InputError):
        return place_of(text, error.subject)
    if isinstance(statement, Restore) and error.code in _VERSIONS:
        return list(tokenize(text))[-1].start
    if isinstance(statement, AlterTable):
        change = statement.change
        named = getattr(change, "column", None) or getattr(change, "name", None)
        several = [f.name for f in getattr(change, "fields", ())] + list(getattr(change, "columns", ()))
        named = named or next((c for c in several if f"`{c}`" in error.message), None)
        return place_of(text, named) if named is not None else None
    if error.code == "E1020":
        return place_of(text, "table_changes")
    if error.code == "E1005":
        return place_of(text, table)
    return None


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
