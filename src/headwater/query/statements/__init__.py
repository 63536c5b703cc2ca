"""statements: how does each statement run? One function a kind, registered with `headwater.query.run.run`.

What a statement says was read by `headwater.sql.statements`; here it meets the lake. Rows are computed by the session's
engine, and tables are changed through `headwater.lake`, in one commit each.
"""

from headwater.query.statements import (
    alter,
    create,
    derived,
    describe,
    insert,
    merge,
    modify,
    queries,
    show,
    upkeep,
)

__all__ = ["alter", "create", "derived", "describe", "insert", "merge", "modify", "queries", "show", "upkeep"]
