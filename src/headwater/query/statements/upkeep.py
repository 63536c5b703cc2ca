"""OPTIMIZE, VACUUM and RESTORE, with what they did in numbers."""

from __future__ import annotations

import pyarrow as pa

from headwater.query.result import Result
from headwater.query.run import run
from headwater.query.session import Session
from headwater.query.statements.answers import counts, snake_case
from headwater.query.statements.placing import placing
from headwater.sql.statements import Optimize, Restore, Vacuum

__all__ = ["optimize", "restore", "vacuum"]


@run.register
@placing
def optimize(statement: Optimize, session: Session) -> Result:
    table = session.table(statement.table)
    done = table.optimize(where=statement.where, zorder_by=statement.zorder_by)
    values: dict[str, int | float | str] = {"path": table.location}
    values |= {snake_case(name): value for name, value in done.metrics.items()}
    return counts(statement.verb, values, done.version)


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
