"""MERGE: a query's rows into a table, clause by clause."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from headwater.base.errors import NotFoundError, SchemaError
from headwater.lake.conform import plain_columns
from headwater.lake.merge import Merge as LakeMerge
from headwater.lake.snapshot import Snapshot
from headwater.query.result import Result
from headwater.query.run import run
from headwater.query.session import Session
from headwater.query.statements.answers import counts
from headwater.query.statements.assigning import assigned, cast_for, quoted
from headwater.query.statements.insert import mentions
from headwater.query.statements.placing import placing
from headwater.sql.fragment import Fragment, joined
from headwater.sql.statements import Merge, MergeClause
from headwater.sql.types import name_of

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
        _add(made, _cast(statement, clause, base, source))
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


def _cast(statement: Merge, clause: MergeClause, base: Snapshot, source: pa.Table) -> MergeClause:
    """The clause with its values in the types of their columns."""
    if not clause.all_columns and clause.assignments is None:
        return clause
    given = plain_columns(source.slice(0, 0), base.schema, base.where).schema
    if clause.all_columns:
        named = {f.name.lower(): f for f in given}
        own = [(f.name, named[f.name.lower()]) for f in base.schema.fields if f.name.lower() in named]
        casts = {name: cast_for(name, f.type, base, evolve=statement.evolve) for name, f in own}
        cast = [name for name, kind in casts.items() if kind is not None]
        if not cast:
            return clause
        if any(name not in base.schema for name in given.names):  # they are to be added, which only `*` does
            name = cast[0]
            have, want = named[name.lower()].type, base.schema.field(name).arrow.type
            raise SchemaError.type_clash(name, name_of(have), name_of(want), base.where)
        texts = {name: Fragment(f"{quoted(statement.source_alias)}.{quoted(f.name)}") for name, f in own}
        values = {n: joined("CAST(", t, f" AS {casts[n]})") if casts[n] else t for n, t in texts.items()}
        kept = {n: v for n, v in values.items() if not base.schema.field(n).generation}
        return MergeClause(clause.when, clause.condition, kept)
    hidden = {"not matched": statement.alias, "not matched by source": statement.source_alias}.get(clause.when)
    schemas = {statement.alias: base.arrow_schema, statement.source_alias: given}
    seen = {alias: schema for alias, schema in schemas.items() if alias != hidden}
    return replace(clause, assignments=assigned(clause.assignments or {}, seen, base, statement.text))


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
