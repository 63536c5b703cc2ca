"""What the names of a query stand for.

Each query pins the tables it names: whatever others commit meanwhile, all its scans of a table see one version.
Statements that change a table hand in what a name stands for (`Relations`), so that a second try after a lost race
reads the newer snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.base import settings
from headwater.base.errors import NotFoundError
from headwater.derived import kinds
from headwater.derived.narrowing import Conditions
from headwater.lake import snapshot
from headwater.lake.addressed import Addressed
from headwater.lake.published import check_built
from headwater.lake.relation import Relation
from headwater.lake.snapshot import Snapshot
from headwater.query.sources import NarrowedSource, RelationSource, Source, TableSource
from headwater.query.table_functions import open_function
from headwater.sql.demands import Demand, demands
from headwater.sql.plan import Plan, Scan
from headwater.sql.query import Arguments

if TYPE_CHECKING:
    from headwater.derived.port import DerivingLake

__all__ = ["Pinned", "Relations"]

Relations = Mapping[str, "Snapshot | Relation"]


@dataclass
class Pinned:
    """What the names of one query stand for, each looked up once."""

    lake: DerivingLake
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
        table = self.lake.table(name)
        try:
            now = table.snapshot
        except NotFoundError:  # perhaps it is written in another case
            table = self.lake.named(name)
            now = table.snapshot
        if version is None and timestamp is None:
            found = now
        else:
            found = table.at(version).snapshot if version is not None else table.at(timestamp=timestamp).snapshot
        check_built(table.name, found)
        # Under the name that it has in the lake as well, so that it is one table however a query writes its name.
        held = self.found.setdefault((table.name, version, timestamp), found)
        assert isinstance(held, Snapshot)
        return held

    def snapshot(self, name: str, version: int | None = None, timestamp: datetime | None = None) -> Snapshot:
        """The table itself, also where a statement that changes it has handed in its rows."""
        found = self.table(name, version, timestamp)
        if isinstance(found, Addressed):
            return found.base
        return found if isinstance(found, Snapshot) else self._look_up(name, version, timestamp)

    def function(self, name: str, arguments: Arguments) -> Relation:
        """The rows of a table function."""
        key = (name, arguments)
        if key not in self.found:
            self.found[key] = open_function(self.lake, self, name, arguments)
        found = self.found[key]
        assert not isinstance(found, Snapshot)
        return found

    def schema(self, name: str, version: int | None, timestamp: datetime | None) -> pa.Schema:
        found = self.table(name, version, timestamp)
        return found.arrow_schema if isinstance(found, Snapshot) else found.schema

    def sources(self, plan: Plan, *, narrowing: bool = False) -> dict[Scan, Source]:
        """What each scan of a plan reads; with ``narrowing``,
        fewer rows where something derived knows which may count.
        """
        found: dict[Scan, Source] = {}
        for demand in demands(plan):
            scan = demand.scan
            if scan.arguments is not None:
                held: Snapshot | Relation = self.function(scan.name, scan.arguments)
            else:
                held = self.table(scan.name, scan.version, scan.timestamp)
            if not isinstance(held, Snapshot):
                found[scan] = RelationSource.of(held, demand)
            else:
                whole = TableSource.of(held, demand)
                found[scan] = self._narrowed(whole, demand) if narrowing and demand.conditions else whole
        return found

    def _narrowed(self, whole: TableSource, demand: Demand) -> Source:
        if not settings.current().use_indexes:
            return whole
        size = sum(add.size for add in whole.files)
        asked = Conditions(demand.scan.name, whole.snapshot, demand.conditions, size)
        for name in kinds.narrowing_kinds():
            narrowed = kinds.kind(name).narrowed(asked, self.lake.environment())
            if narrowed is not None:
                return NarrowedSource.of(whole, narrowed)
        return whole
