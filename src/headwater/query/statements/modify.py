"""DELETE, TRUNCATE and UPDATE.

A condition on one row is answered by the lake itself, which reads just the columns it names. A condition that asks for
other rows (a subquery) is answered by the session's engine: a query over the table, with the address of each row beside
its columns, says which rows are meant and what they become. Each try reads one snapshot of the table, inside subqueries
too, and if another writer commits first, the query is run again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from headwater.base.errors import SchemaError
from headwater.lake import modify
from headwater.lake.addressed import FILE, POSITION, Addressed, Located
from headwater.lake.modify import FoundRows
from headwater.lake.snapshot import Snapshot
from headwater.query.result import Result
from headwater.query.run import run
from headwater.query.session import Relations, Session
from headwater.query.statements.answers import counts
from headwater.query.statements.assigning import assigned, cast_for, quoted
from headwater.query.statements.placing import placing
from headwater.sql.fragment import Fragment, joined
from headwater.sql.statements import Delete, TruncateTable, Update
from headwater.sql.tokens import tokenize

__all__ = ["delete", "has_subquery", "truncate", "update"]

_TARGET = "__headwater_target"


@run.register
@placing
def delete(statement: Delete, session: Session) -> Result:
    table = session.table(statement.table)
    found = _found(session, statement, {}) if _needs_engine(session, [statement.where]) else None
    assert table.snapshot is not None, "a table that is not there is refused here"
    done = modify.delete(table.storage, statement.where, alias=statement.alias, found=found)
    return counts(statement.verb, {"num_affected_rows": done.metrics.get("numDeletedRows", 0)}, done.version)


@run.register
@placing
def truncate(statement: TruncateTable, session: Session) -> Result:
    done = session.table(statement.table).delete()
    return counts(statement.verb, {"num_affected_rows": done.metrics.get("numDeletedRows", 0)}, done.version)


@run.register
@placing
def update(statement: Update, session: Session) -> Result:
    table = session.table(statement.table)
    assert table.snapshot is not None, "a table that is not there is refused here"
    base, values = table.snapshot, list(statement.assignments.values())
    if _needs_engine(session, [*values, statement.where]):
        found, assignments = _found(session, statement, statement.assignments), statement.assignments
    else:
        schemas = {statement.alias: base.arrow_schema}
        found, assignments = None, assigned(statement.assignments, schemas, base, statement.text)
    done = modify.update(table.storage, assignments, statement.where, alias=statement.alias, found=found)
    return counts(statement.verb, {"num_affected_rows": done.metrics.get("numUpdatedRows", 0)}, done.version)


def _needs_engine(session: Session, pieces: Sequence[Fragment | None]) -> bool:
    if session.engine.name == "spark" and any(p is not None for p in pieces):
        return True  # it knows every function
    return any(has_subquery(p) for p in pieces if p is not None)


def has_subquery(piece: Fragment) -> bool:
    """Whether a query stands between parentheses.

    >>> has_subquery(Fragment("id IN (SELECT id FROM t)")), has_subquery(Fragment("name = '(SELECT'"))
    (True, False)
    """
    before = ""
    for token in tokenize(piece.text):
        if before == "(" and token.kind == "word" and token.word in ("SELECT", "WITH"):
            return True
        before = token.text
    return False


def _found(session: Session, statement: Delete | Update, assignments: Mapping[str, Fragment]) -> FoundRows:
    """Finds the rows that a statement is about, with their new values."""

    def find(base: Snapshot) -> Located:
        target = Addressed(base)
        relations: Relations = {_TARGET: target, statement.table: base}
        query = _search(statement, list(assignments.values()))
        if assignments:
            query = _search(statement, _cast(statement, assignments, session.schema(query, relations), base))
        return Located(session.rows(query, relations).read_all(), target.paths)

    return find


def _search(statement: Delete | Update, values: Sequence[Fragment]) -> Fragment:
    pieces: list[str | Fragment] = [f"SELECT `{FILE}`, `{POSITION}`"]
    for number, value in enumerate(values):
        pieces += [", (", value, f") AS `__set_{number}`"]
    pieces.append(f" FROM `{_TARGET}` AS {quoted(statement.alias)}")
    if statement.where is not None:
        pieces += [" WHERE (", statement.where, ")"]
    return joined(*pieces)


def _cast(
    statement: Delete | Update, assignments: Mapping[str, Fragment], given: pa.Schema, base: Snapshot
) -> list[Fragment]:
    """The new values in the types of their columns; ``given`` are the types they have, behind the address."""
    found = []
    for (column, value), dtype in zip(assignments.items(), given.types[2:], strict=True):
        try:
            kind = cast_for(column, dtype, base)
        except SchemaError as error:
            raise error.placed_at(statement.text, value.place(0)) from None
        found.append(value if kind is None else joined("CAST((", value, f") AS {kind})"))
    return found
