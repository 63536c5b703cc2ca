"""OPTIMIZE, VACUUM and RESTORE, with what they did in numbers."""

from __future__ import annotations

import pyarrow as pa

from headwater.base.errors import InputError
from headwater.lake.snapshot import Snapshot
from headwater.query.result import Result
from headwater.query.run import run
from headwater.query.session import Session
from headwater.query.statements.answers import counts, snake_case
from headwater.query.statements.placing import place_of, placing
from headwater.sql import expressions
from headwater.sql.statements import Optimize, Restore, Vacuum

__all__ = ["optimize", "restore", "vacuum"]


@run.register
@placing
def optimize(statement: Optimize, session: Session) -> Result:
    table = session.table(statement.table)
    _check(statement, table.snapshot)
    done = table.optimize(where=statement.where, zorder_by=statement.zorder_by)
    values: dict[str, int | float | str] = {"path": table.location}
    values |= {snake_case(name): value for name, value in done.metrics.items()}
    return counts(statement.verb, values, done.version)


def _check(statement: Optimize, base: Snapshot) -> None:
    """WHERE chooses partitions, and a curve runs inside of them."""
    by = base.partition_columns
    for column in statement.zorder_by:
        if base.schema.field(column, base.where).name in by:
            why = f"the table is partitioned by `{column}`, so that all rows of a file have the same one"
            wrong = InputError.bad_clause(f"cannot ZORDER BY `{column}`: {why}", "leave it out of ZORDER BY")
            zorder = statement.text[: place_of(statement.text, "zorder") or 0]
            at = place_of(" " * len(zorder) + statement.text[len(zorder) :], column)
            raise wrong.placed_at(statement.text, at)
    if statement.where is None:
        return
    condition = expressions.parse_condition(statement.where, schema=base.arrow_schema)
    outside = sorted({name for _, name in condition.columns} - set(by))
    if outside:
        why = f"the WHERE of OPTIMIZE chooses partitions, and `{outside[0]}` is no partition column"
        hint = f"name only {', '.join(by)}" if by else "the table has no partitions: leave WHERE out"
        at = place_of(statement.where.text, outside[0])
        raise InputError.bad_clause(why, hint).placed_at(statement.text, statement.where.place(at or 0))


@run.register
@placing
def vacuum(statement: Vacuum, session: Session) -> Result:
    table = session.table(statement.table)
    done = table.vacuum(retention_hours=statement.retain_hours, dry_run=statement.dry_run)
    if statement.dry_run:
        paths = pa.array([f"{table.location}/{path}" for path in done.files], pa.string())
        return Result.of(pa.table({"path": paths}), statement.verb)
    values: dict[str, int | float | str] = {"path": table.location}
    values |= {"num_deleted_files": len(done), "num_deleted_bytes": done.bytes}
    return counts(statement.verb, values)


@run.register
@placing
def restore(statement: Restore, session: Session) -> Result:
    table = session.table(statement.table)
    done = table.restore(statement.version, timestamp=statement.timestamp)
    now = table.at(done.version).snapshot
    values = {
        "table_size_after_restore": sum(f.size for f in now.files.values()),
        "num_of_files_after_restore": len(now.files),
        "num_removed_files": done.metrics.get("numRemovedFiles", 0),
        "num_restored_files": done.metrics.get("numRestoredFiles", 0),
    }
    return counts(statement.verb, values, done.version)
