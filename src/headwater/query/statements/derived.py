"""CREATE, REFRESH, DROP and SHOW of derived artefacts; and no other statement changes a table that an artefact
publishes.

How each is done is the kind's affair: it is found in the registry (`headwater.derived.kinds`) by the words of the
statement.
"""

from __future__ import annotations

import pyarrow as pa

from headwater.base import settings
from headwater.base.errors import InputError, NotFoundError
from headwater.base.kinds import words_of
from headwater.derived import kinds
from headwater.derived.artefact import Artefact
from headwater.lake.published import kind_of
from headwater.query.result import Result
from headwater.query.run import GUARDS, run
from headwater.query.session import Session
from headwater.query.statements.answers import counts, dropped, nothing
from headwater.query.statements.placing import place_of, placing
from headwater.query.statements.show import fits
from headwater.sql.statements import (
    AlterTable,
    CreateArtefact,
    CreateTable,
    CreateTableAs,
    Delete,
    DropArtefact,
    DropTable,
    Insert,
    Merge,
    RefreshArtefact,
    Restore,
    ShowArtefacts,
    Statement,
    TruncateTable,
    Update,
)

__all__ = ["create", "drop", "refresh", "refuse_to_change", "show"]

_CHANGING = (AlterTable, CreateTable, CreateTableAs, Delete, DropTable, Insert, Merge, Restore, TruncateTable, Update)


def refuse_to_change(statement: Statement, session: Session) -> None:
    """Stop a statement that would change by hand the table that an artefact publishes."""
    if not isinstance(statement, _CHANGING):
        return
    keeps = isinstance(statement, CreateTable | CreateTableAs) and statement.mode != "replace"
    now = None if keeps else session.table(statement.table).current()
    kind = None if now is None else kind_of(now)
    if kind is not None:
        error = InputError.is_derived(statement.table, words_of(kind), statement.verb)
        raise error.placed_at(statement.text, place_of(statement.text, statement.table))


GUARDS.append(refuse_to_change)


@run.register
@placing
def create(statement: CreateArtefact, session: Session) -> Result:
    environment = session.lake.environment()
    there = statement.table in environment.artefacts()
    made = kinds.kind(statement.kind).create(statement, environment)
    if there and statement.mode == "ignore":
        return counts(statement.verb, {"num_affected_rows": 0}, made.version)
    try:
        done = made.refresh()
    except BaseException:
        if not there:
            made.drop()
        raise
    return counts(statement.verb, {"num_affected_rows": done.rows_out}, made.version)


@run.register
@placing
def refresh(statement: RefreshArtefact, session: Session) -> Result:
    kind = words_of(statement.kind)
    asked = {} if statement.engine is None else {"view_engine": statement.engine}
    with settings.override(**asked):
        done = _opened(statement, session).refresh(full=statement.full, cascade=statement.cascade)
    # One row for each artefact that was refreshed, the one that was asked for first.
    rows = [done, *done.upstream]
    found = {
        "mode": [one.mode for one in rows],
        "rows_in": [one.rows_in for one in rows],
        "rows_out": [one.rows_out for one in rows],
        "frontier": [str(one.after) for one in rows],
        "reason": ["; ".join([one.reason, *map(str, one.behind)]) for one in rows],
        kind.name: [one.name for one in rows],
    }
    return Result.of(pa.table(found), f"{statement.verb} {kind.sql}")


@run.register
@placing
def drop(statement: DropArtefact, session: Session) -> Result:
    verb = f"{statement.verb} {words_of(statement.kind).sql}"
    try:
        return dropped(verb, _opened(statement, session).drop(cascade=statement.cascade))
    except NotFoundError:
        if not statement.if_exists:
            raise
    return nothing(verb)


def _opened(statement: RefreshArtefact | DropArtefact, session: Session) -> Artefact:
    return kinds.kind(statement.kind).open(statement.table, session.lake.environment())


@run.register
@placing
def show(statement: ShowArtefacts, session: Session) -> Result:
    kind = words_of(statement.kind)
    rows = [name.rpartition(".") for name in session.lake.environment().names(kind.name)]
    if statement.within is not None:
        rows = [row for row in rows if row[0].lower() == statement.within.lower()]
    rows = [row for row in rows if fits(row[2], statement.pattern)]
    found = {
        "namespace": pa.array([namespace for namespace, _, _ in rows], pa.string()),
        f"{kind.name}Name": pa.array([name for _, _, name in rows], pa.string()),
        "isTemporary": pa.array([False] * len(rows), pa.bool_()),
        "isMaterialized": pa.array([True] * len(rows), pa.bool_()),
    }
    return Result.of(pa.table(found), f"{statement.verb} {kind.sql_plural}")
