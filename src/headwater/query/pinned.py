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

from headwater.base.errors import NotFoundError
from headwater.lake import snapshot
from headwater.lake.published import check_built
from headwater.lake.relation import Relation
from headwater.lake.snapshot import Snapshot
from headwater.query.sources import RelationSource, Source, TableSource
from headwater.query.table_functions import open_function
from headwater.sql.demands import demands
from headwater.sql.plan import Plan, Scan
from headwater.sql.query import Arguments

if TYPE_CHECKING:
    from headwater.lake.port import OpenLake

__all__ = ["Pinned", "Relations"]

Relations = Mapping[str, "Snapshot | Relation"]


@dataclass
class Pinned:
    """What the names of one query stand for, each looked up once."""

    lake: OpenLake
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
        return found

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
