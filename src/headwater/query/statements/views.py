"""CREATE, REFRESH and DROP MATERIALIZED VIEW, and SHOW VIEWS; and no other statement changes a view's table.

Views belong to another room. They are reached through the lake, whose facade knows both.
"""

from __future__ import annotations

import pyarrow as pa

from headwater.base.errors import InputError, NotFoundError
from headwater.lake.published import is_view
from headwater.query.result import Result
from headwater.query.run import GUARDS, run
from headwater.query.session import Session
from headwater.query.statements.answers import counts, dropped, nothing
from headwater.query.statements.placing import place_of, placing
from headwater.query.statements.show import fits
from headwater.sql.statements import (
    AlterTable,
    CreateTable,
    CreateTableAs,
    CreateView,
    Delete,
    DropTable,
    DropView,
    Insert,
    Merge,
    RefreshView,
    Restore,
    ShowViews,
    Statement,
    TruncateTable,
    Update,
)

__all__ = ["create", "drop", "refresh", "refuse_to_change", "show"]

_CHANGING = (AlterTable, CreateTable, CreateTableAs, Delete, DropTable, Insert, Merge, Restore, TruncateTable, Update)
_POLICY, _SHARDS = "headwater.policy", "headwater.shards"


def refuse_to_change(statement: Statement, session: Session) -> None:
    """Stop a statement that would change the table of a view by hand."""
    if not isinstance(statement, _CHANGING):
        return
    keeps = isinstance(statement, CreateTable | CreateTableAs) and statement.mode != "replace"
    now = None if keeps else session.table(statement.table).current()
    if now is not None and is_view(now):
        error = InputError.is_view(statement.table, statement.verb)
        raise error.placed_at(statement.text, place_of(statement.text, statement.table))


GUARDS.append(refuse_to_change)


@run.register
@placing
def create(statement: CreateView, session: Session) -> Result:
    there = session.table(statement.table).exists()
    properties = {k: v for k, v in statement.properties.items() if k not in (_POLICY, _SHARDS)}
    with statement.query.placed():
        view = session.lake.view(
            statement.table,
            statement.query.text,
            policy=statement.properties.get(_POLICY, "auto"),  # type: ignore[arg-type]
            shards=_shards(statement),
            mode=statement.mode,
            properties=properties,
            comment=statement.comment,
        )
    if there and statement.mode == "ignore":
        return counts(statement.verb, {"num_affected_rows": 0}, view.table.version)
    try:
        done = view.refresh()
    except BaseException:
        if not there:
            view.drop()
        raise
    return counts(statement.verb, {"num_affected_rows": done.rows_out}, view.table.version)


def _shards(statement: CreateView) -> int:
    text = statement.properties.get(_SHARDS, "1")
    if not text.isdecimal():
        raise InputError.bad_property(_SHARDS, text, "a whole number")
    return int(text)


@run.register
@placing
def refresh(statement: RefreshView, session: Session) -> Result:
    done = session.lake.view(statement.table).refresh(full=statement.full, cascade=statement.cascade)
    # One row for each view that was refreshed, the one that was asked for first.
    rows = [done, *done.upstream]
    found = {
        "mode": [one.mode for one in rows],
        "rows_in": [one.rows_in for one in rows],
        "rows_out": [one.rows_out for one in rows],
        "frontier": [str(one.after) for one in rows],
        "reason": ["; ".join([one.reason, *map(str, one.behind)]) for one in rows],
        "view": [one.name for one in rows],
    }
    return Result.of(pa.table(found), statement.verb)


@run.register
@placing
def drop(statement: DropView, session: Session) -> Result:
    try:
        return dropped(statement.verb, session.lake.drop_view(statement.table, cascade=statement.cascade))
    except NotFoundError:
        if not statement.if_exists:
            raise
    return nothing(statement.verb)


@run.register
@placing
def show(statement: ShowViews, session: Session) -> Result:
    rows = [name.rpartition(".") for name in session.lake.views()]
    if statement.within is not None:
        rows = [row for row in rows if row[0].lower() == statement.within.lower()]
    rows = [row for row in rows if fits(row[2], statement.pattern)]
    found = {
        "namespace": pa.array([namespace for namespace, _, _ in rows], pa.string()),
        "viewName": pa.array([name for _, _, name in rows], pa.string()),
        "isTemporary": pa.array([False] * len(rows), pa.bool_()),
        "isMaterialized": pa.array([True] * len(rows), pa.bool_()),
    }
    return Result.of(pa.table(found), statement.verb)
