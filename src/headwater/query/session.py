"""A session: one script's view of a lake, with the engine it runs on.

Each query pins the tables it names: whatever others commit meanwhile, all its scans of a table see one version. Statements that
change a table hand in what a name stands for (`relations`), so that a second try after a lost race reads the newer snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.base.errors import ExpressionError, HeadwaterError
from headwater.lake import snapshot
from headwater.lake.relation import Relation
from headwater.lake.snapshot import Snapshot
from headwater.query.engines.engine import Engine, Running
from headwater.query.result import Result
from headwater.query.sources import RelationSource, Source, TableSource
from headwater.query.table_functions import open_function
from headwater.sql.demands import demands
from headwater.sql.fragment import Fragment
from headwater.sql.nodes import Refused
from headwater.sql.plan import Plan, Scan
from headwater.sql.query import Arguments, parse_query

if TYPE_CHECKING:
    from headwater.lake.table import Table
    from headwater.lakehouse import Lake

__all__ = ["Opened", "Pinned", "Relations", "Session", "named_table"]

Relations = Mapping[str, "Snapshot | Relation"]


def named_table(lake: Lake, name: str) -> Table:
    """The table that SQL means by a name: upper and lower case are the same, as long as one table fits."""
    table = lake.table(name)
    if not table.exists():
        alike = [n for n in lake.tables() if n.lower() == name.lower()]
        if len(alike) == 1:
            return lake.table(alike[0])
    return table


@dataclass
class Pinned:
    """What the names of one query stand for, each looked up once."""

    lake: Lake
    given: Relations = field(default_factory=dict)
    found: dict[tuple[object, ...], Snapshot | Relation] = field(default_factory=dict)

    def table(self, name: str, version: int | None, timestamp: datetime | None) -> Snapshot | Relation:
        """The table, at the version or timestamp or as it is now."""
        if version is None and timestamp is None and name in self.given:
            return self.given[name]
        key = (name, version, timestamp)
        if key not in self.found:
            self.found[key] = self._look_up(name, version, timestamp)
        return self.found[key]

    def _look_up(self, name: str, version: int | None, timestamp: datetime | None) -> Snapshot:
        given = self.given.get(name)
        if isinstance(given, Snapshot) and version is not None:
            return snapshot.at_version(given.storage, version)
        table = named_table(self.lake, name)
        now = table.snapshot
        if version is None and timestamp is None:
            return now
        return table.at(version).snapshot if version is not None else table.at(timestamp=timestamp).snapshot

    def function(self, name: str, arguments: Arguments) -> Relation:
        """The rows of a table function."""
        key = (name, arguments)
        if key not in self.found:
            self.found[key] = open_function(self.lake, name, arguments)
        found = self.found[key]
        assert not isinstance(found, Snapshot)
        return found

    def schema(self, name: str, version: int | None, timestamp: datetime | None) -> pa.Schema:
        found = self.table(name, version, timestamp)
        return found.arrow_schema if isinstance(found, Snapshot) else found.schema

    def sources(self, plan: Plan) -> dict[Scan, Source]:
        """What each scan of a plan reads."""
        found: dict[Scan, Source] = {}
        for demand in demands(plan):
            scan = demand.scan
            if scan.arguments is not None:
                held: Snapshot | Relation = self.function(scan.name, scan.arguments)
            else:
                held = self.table(scan.name, scan.version, scan.timestamp)
            of = TableSource.of(held, demand) if isinstance(held, Snapshot) else RelationSource.of(held, demand)
            found[scan] = of
        return found


@dataclass(frozen=True, slots=True)
class Opened:
    """A query that a statement reads from: how it is given back, and what an error of its engine means."""

    close: Callable[[], None]
    failure: Callable[[Exception], Exception] | None = None


@dataclass(frozen=True)
class Session:
    """A lake and an engine; statements run in it.

    What a statement reads (`rows`, `data`) is kept until `close`, which whoever runs the statement calls when it is over: a
    statement that fails before the last row, or before the first one, gives back its cursor all the same.
    """

    lake: Lake
    engine: Engine
    opened: list[Opened] = field(default_factory=list, compare=False, repr=False)

    def close(self) -> None:
        """Give back what was opened for a statement."""
        while self.opened:
            self.opened.pop().close()

    def failure(self, error: Exception) -> Exception:
        """An error from within a statement; one that an engine raised in its own words, in ours."""
        meanings = [o.failure for o in self.opened if o.failure is not None]
        return meanings[-1](error) if meanings and not isinstance(error, HeadwaterError) else error

    def table(self, name: str) -> Table:
        """The table of that name, in whatever case it is written; it need not exist."""
        return named_table(self.lake, name)

    def plan(self, fragment: Fragment, relations: Relations | None = None) -> tuple[Plan, dict[Scan, Source]]:
        """A query, resolved, and what its scans read."""
        pinned = Pinned(self.lake, relations or {})
        with fragment.placed():
            plan = parse_query(
                fragment.text,
                pinned.schema,
                fragment.parameters,
                lambda name, arguments: pinned.function(name, arguments).schema,
            )
        return plan, pinned.sources(plan)

    def start(self, fragment: Fragment, relations: Relations | None = None) -> Running:
        """Begin to run a query."""
        whole = fragment.whole or fragment.text
        native = getattr(self.engine, "run_text", None)
        if native is not None:
            running: Running = native(self.lake, fragment, relations or {})
            return running
        plan, sources = self.plan(fragment, relations)
        try:
            return self.engine.run(plan, sources, whole)
        except Refused as refused:
            raise ExpressionError.refused(whole, refused.what, refused.hint, refused.position) from None

    def query(self, fragment: Fragment, statement: str = "SELECT") -> Result:
        """Run a query, for the user."""
        running = self.start(fragment)
        return Result(running.reader, statement=statement, cancel=running.cancel, close=running.close)

    def rows(self, fragment: Fragment, relations: Relations | None = None) -> pa.RecordBatchReader:
        """Run a query, for a statement: its rows as they come."""
        running = self.start(fragment, relations)
        self.opened.append(Opened(running.close))
        return running.reader

    def data(self, fragment: Fragment, relations: Relations | None = None) -> Any:
        """The rows of a query in the form that the engine's writers take: a Spark DataFrame, or a stream of Arrow."""
        frame = getattr(self.engine, "frame", None)
        if frame is None:
            return self.rows(fragment, relations)
        found, close, failure = frame(self.lake, fragment, relations or {})
        self.opened.append(Opened(close, failure))
        return found

    def schema(self, fragment: Fragment, relations: Relations | None = None) -> pa.Schema:
        """Names and types of a query's rows, without running it."""
        native = getattr(self.engine, "schema", None)
        if native is not None:
            found: pa.Schema = native(self.lake, fragment, relations or {})
            return found
        return self.plan(fragment, relations)[0].schema

    def explain(self, fragment: Fragment, mode: str = "") -> str:
        """What a query would do: the plan, what is read of each table, and (EXTENDED, ANALYZE) the engine's own plan."""
        native = getattr(self.engine, "explain_text", None)
        if native is not None:
            text: str = native(self.lake, fragment, mode)
            return text
        plan, sources = self.plan(fragment)
        lines = [plan.dump().rstrip(), ""]
        lines += [f"{scan.relation}: {source.describe()}" for scan, source in sources.items()]
        if mode.upper() in ("EXTENDED", "FORMATTED", "ANALYZE"):
            lines += ["", f"{self.engine.name}:"]
            lines.append(self.engine.explain(plan, sources, analyze=mode.upper() == "ANALYZE"))
        return "\n".join(lines).rstrip() + "\n"
