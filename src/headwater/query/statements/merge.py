"""MERGE: a query's rows into a table, clause by clause."""

from __future__ import annotations

import pyarrow as pa

from headwater.base.errors import NotFoundError
from headwater.lake.merge import Merge as LakeMerge
from headwater.lake.snapshot import Snapshot
from headwater.query.result import Result
from headwater.query.run import run
from headwater.query.session import Session
from headwater.query.statements.answers import counts
from headwater.query.statements.insert import mentions
from headwater.query.statements.placing import placing
from headwater.sql.statements import Merge, MergeClause

__all__ = ["merge"]


@run.register
@placing
def merge(statement: Merge, session: Session) -> Result:
    table = session.table(statement.table)
    base = table.snapshot
    source = session.rows(statement.source, {statement.table: base}).read_all()
    reads_itself = mentions(statement.source, statement.table)
    made = table.merge(
        source,
        statement.on,
        target_alias=statement.alias,
        source_alias=statement.source_alias,
        schema_mode="merge" if statement.evolve else "strict",
        if_version=base.version if reads_itself else None,
    )
    for clause in statement.clauses:
        if clause.all_columns and not statement.evolve:
            _check_covered(base, source.schema)
        _add(made, clause)
    done = made.execute()
    updated, deleted, inserted = (
        done.metrics.get(f"numTargetRows{what}", 0) for what in ("Updated", "Deleted", "Inserted")
    )
    values = {
        "num_affected_rows": updated + deleted + inserted,
        "num_updated_rows": updated,
        "num_deleted_rows": deleted,
        "num_inserted_rows": inserted,
    }
    return counts(statement.verb, values, done.version)


def _check_covered(base: Snapshot, source: pa.Schema) -> None:
    """``*`` stands for all columns of the target, so the source must have them."""
    have = {name.lower() for name in source.names}
    for f in base.schema.fields:
        if not f.generation and f.name.lower() not in have:
            raise NotFoundError.column(f.name, source.names, where="the source of the MERGE, which `*` takes it from")


def _add(made: LakeMerge, clause: MergeClause) -> None:
    condition = clause.condition
    if clause.when == "matched":
        if clause.all_columns:
            made.when_matched_update_all(condition=condition)
        elif clause.assignments is None:
            made.when_matched_delete(condition=condition)
        else:
            made.when_matched_update(clause.assignments, condition=condition)
    elif clause.when == "not matched":
        if clause.all_columns:
            made.when_not_matched_insert_all(condition=condition)
        else:
            made.when_not_matched_insert(clause.assignments or {}, condition=condition)
    elif clause.assignments is None:
        made.when_not_matched_by_source_delete(condition=condition)
    else:
        made.when_not_matched_by_source_update(clause.assignments, condition=condition)
