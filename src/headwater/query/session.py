"""A session: one script's view of a lake, with the engine it runs on.

Statements run in it. It hands queries to the engine, and keeps what a statement reads from until the statement is over.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.base.errors import HeadwaterError
from headwater.query.engines.engine import Engine, Rows
from headwater.query.pinned import Relations
from headwater.query.result import Result
from headwater.sql.fragment import Fragment

if TYPE_CHECKING:
    from headwater.derived.port import DerivingLake
    from headwater.lake.table import Table

__all__ = ["Relations", "Session"]


@dataclass(frozen=True)
class Session:
    """A lake and an engine; statements run in it.

    What a statement reads (`rows`, `data`) is kept until `close`, which whoever runs the statement calls when it is
    over: a statement that fails before the last row, or before the first one, gives back its cursor all the same.
    """

    lake: DerivingLake
    engine: Engine
    opened: list[Rows] = field(default_factory=list, compare=False, repr=False)

    def close(self) -> None:
        """Give back what was opened for a statement."""
        while self.opened:
            self.opened.pop().close()

    def failure(self, error: Exception) -> Exception:
        """An error from within a statement; one that an engine raised in its own words, in ours."""
        if isinstance(error, HeadwaterError) or not self.opened:
            return error
        return self.opened[-1].failure(error)

    def table(self, name: str) -> Table:
        """The table of that name, in whatever case it is written; it need not exist."""
        return self.lake.named(name)

    def query(self, fragment: Fragment, statement: str = "SELECT") -> Result:
        """Run a query, for the user."""
        running = self.engine.start(self.lake, fragment, {})
        return Result(running.reader, statement=statement, cancel=running.cancel, close=running.close)

    def rows(self, fragment: Fragment, relations: Relations | None = None) -> pa.RecordBatchReader:
        """Run a query, for a statement: its rows as they come."""
        running = self.engine.start(self.lake, fragment, relations or {})
        self.opened.append(Rows(running.reader, running.close))
        return running.reader

    def data(self, fragment: Fragment, relations: Relations | None = None) -> Any:
        """The rows of a query in the form that the engine's writers take: a Spark DataFrame, or a stream of Arrow."""
        rows = self.engine.rows(self.lake, fragment, relations or {})
        self.opened.append(rows)
        return rows.data

    def schema(self, fragment: Fragment, relations: Relations | None = None) -> pa.Schema:
        """Names and types of a query's rows, without running it."""
        return self.engine.schema(self.lake, fragment, relations or {})

    def explain(self, fragment: Fragment, mode: str = "") -> str:
        """What a query would do: the plan, what is read of each table, and (EXTENDED, ANALYZE)
        the engine's own plan.
        """
        return self.engine.explain(self.lake, fragment, mode)
