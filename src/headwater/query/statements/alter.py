"""ALTER TABLE: each change is a method of the table."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.base.errors import InputError
from headwater.base.schema import arrow_type
from headwater.lake.table import Table
from headwater.query.result import Result
from headwater.query.run import run
from headwater.query.session import Session
from headwater.query.statements.answers import version_only
from headwater.query.statements.placing import placing
from headwater.sql.statements import AlterTable
from headwater.sql.statements.alter_table import (
    AddColumns,
    AddConstraint,
    Change,
    CommentColumn,
    DropColumns,
    DropConstraint,
    DropNotNull,
    RenameColumn,
    SetProperties,
    UnsetProperties,
    WidenColumn,
)

__all__ = ["alter"]


@run.register
@placing
def alter(statement: AlterTable, session: Session) -> Result:
    table = session.table(statement.table)
    _apply(table, statement.change)
    return version_only(statement.verb, table.version)


def _check_new(what: str, names: Sequence[str], known: Sequence[str], hint: str) -> None:
    there = {name.lower() for name in known}
    for name in names:
        if name.lower() in there:
            raise InputError.bad_clause(f"there is a {what} `{name}` already", hint)


def _apply(table: Table, change: Change) -> None:
    columns = table.snapshot.schema
    if isinstance(change, AddColumns):
        _check_new("column", [f.name for f in change.fields], columns.names, "give the new one another name")
        table.add_columns(change.fields)
    elif isinstance(change, CommentColumn):
        table.comment_column(change.column, change.comment)
    elif isinstance(change, WidenColumn):
        table.widen_column(change.column, arrow_type(change.type))
    elif isinstance(change, DropNotNull):
        table.drop_not_null(change.column)
    elif isinstance(change, RenameColumn):
        table.rename_column(change.column, change.new_name)
    elif isinstance(change, DropColumns):
        there = [c for c in change.columns if not change.if_exists or c in columns]
        for column in there:
            columns.field(column, table.location)  # all are there before the first one goes
        for column in there:
            table.drop_column(column)
    elif isinstance(change, SetProperties):
        table.set_properties(change.properties)
    elif isinstance(change, UnsetProperties):
        table.unset_properties(change.names)
    elif isinstance(change, AddConstraint):
        hint = f"give it another name, or ALTER TABLE … DROP CONSTRAINT {change.name} first"
        _check_new("constraint", [change.name], list(table.snapshot.constraints), hint)
        table.add_constraint(change.name, change.condition)
    else:
        assert isinstance(change, DropConstraint)
        known = {name.lower() for name in table.snapshot.constraints}
        if not change.if_exists or change.name.lower() in known:
            table.drop_constraint(change.name)
