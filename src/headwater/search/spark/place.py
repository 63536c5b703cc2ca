"""Places: from the folder of a table to its lake, its name and its indexes.

The data source is given a folder, as Spark's sources are. A table ``sales.orders`` lies in ``sales/orders`` below the
root of its lake, and everything that is derived in the lake is recorded in ``_headwater`` there. So the lake of a table
is the nearest of three folders above that has one; a table that lies elsewhere and is attached needs the option
``lake``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from headwater.base.errors import InputError, NotFoundError, StorageError
from headwater.base.storage import Storage, open_storage
from headwater.derived.environment import Environment
from headwater.derived.record_log import RecordLog
from headwater.lake.catalog import RECORDS, Catalog
from headwater.lake.relation import Relation
from headwater.lake.snapshot import Snapshot
from headwater.lake.table import Table
from headwater.search.definition import Definition
from headwater.search.kept_index import KeptIndex
from headwater.search.spark.options import SourceOptions
from headwater.sql.plan import Plan

__all__ = ["TablePlace", "environment_of", "place_of"]

_OWN = "_headwater"
_DEEPEST = 3


@dataclass(frozen=True)
class TablePlace:
    """A table of a lake: the lake's root, the table's name there, and where it lies."""

    root: Storage
    name: str
    storage: Storage
    in_lake: bool = True
    """Whether the root is known to be that of a lake."""

    def indexes(self) -> dict[str, Definition]:
        """The indexes on the table, by name."""
        if not self.in_lake:
            return {}
        found = {}
        kind = KeptIndex.kind.name
        for name in self.root.folders(f"{RECORDS}/{kind}"):
            committed = RecordLog(self.root, kind, name).newest()
            if committed is not None:
                meant = Definition.from_json(committed.definition, self.root.url)
                if meant.source == self.name:
                    found[name] = meant
        return found

    def index(self, named: str | None) -> KeptIndex:
        """The index that is named, or the only one."""
        known = self.indexes()
        if named is None and len(known) == 1:
            named = next(iter(known))
        if named is None and known:
            raise InputError.bad_argument("index", None, f"which of the table's indexes: {', '.join(sorted(known))}")
        if named is None or named not in known:
            wanted = named or f"index on {self.name}"
            raise NotFoundError.derived(wanted, KeptIndex.kind, sorted(known), self.root.url)
        return KeptIndex(named, environment_of(self.root))


def place_of(options: SourceOptions) -> TablePlace | None:
    """Where the table of a read or write lies; None if no lake can have a table in that folder."""
    storage = open_storage(options.path, options.storage or None)
    lake = options.text("lake")
    if lake is not None:
        return _in_lake(open_storage(lake, options.storage or None), storage)
    above = list(_above(storage, options.storage))
    for root, name in above:
        try:
            if root.folders(_OWN):
                return TablePlace(root, name, storage)
        except StorageError:  # a folder above that may not be listed is not the lake of somebody who may
            continue
    return TablePlace(*above[0], storage, in_lake=False) if above else None


def _above(storage: Storage, options: Mapping[str, str]) -> Iterator[tuple[Storage, str]]:
    """The folders above, the nearest first, each with the name that the table would have there."""
    url, parts = storage.url.rstrip("/"), list[str]()
    for _ in range(_DEEPEST):
        url, _, part = url.rpartition("/")
        parts.insert(0, part)
        name = ".".join(parts)
        try:
            Catalog.check_name(name)
        except InputError:
            return
        if not url or url.endswith(":/"):
            return
        yield open_storage(url, options or None), name


def _in_lake(root: Storage, storage: Storage) -> TablePlace:
    catalog = Catalog(root)
    for name in catalog.names():
        if catalog.storage(name).url == storage.url:
            return TablePlace(root, name, storage)
    inside = storage.url.removeprefix(root.url.rstrip("/") + "/")
    if inside == storage.url:
        raise NotFoundError.table(storage.url, catalog.names(), root.url)
    name = inside.strip("/").replace("/", ".")
    catalog.check_name(name)
    return TablePlace(root, name, storage)


def environment_of(root: Storage) -> Environment:
    """A lake as its indexes see it, without a session and without queries."""
    catalog = Catalog(root)
    return Environment(
        root=root,
        table=lambda name: Table(catalog.storage(name), name),
        artefacts=catalog.artefacts,
        recorded=catalog.recorded,
        check_free=catalog.check_free,
        drop=catalog.drop,
        compute=_no_queries,
    )


def _no_queries(_: Plan, __: Mapping[str, Snapshot | Relation], text: str) -> pa.RecordBatchReader:
    raise AssertionError(f"an index computes no query: {text}")
