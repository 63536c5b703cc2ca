"""From a configuration to a server: its options, its tables, and what its follower keeps up to date.

Tables of date folders and pushed tables lie in the server's data folder, those of lakes in their lakes. A table that
the API makes lies beside the pushed ones and is served as long as it is there; the configuration need not name it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Self

from headwater.base.errors import ConflictError, NotFoundError, RequestError
from headwater.base.storage import Storage, open_storage
from headwater.serving.folder import FolderPublisher
from headwater.serving.pushed import PushedCompaction, PushedTables
from headwater.serving.server.backing import online_names
from headwater.serving.server.follower import LakePublisher, Publisher
from headwater.serving.server.options import Limits, ServerOptions, Tls, Token
from headwater.serving.server.served import NewTable, TableFacts, TableWrite
from headwater.serving.server.supervisor import Plan
from headwater.serving.store import Following, OnlineStore

if TYPE_CHECKING:
    import pyarrow as pa

    from headwater.derived.environment import Environment
    from headwater.serving.config import Config, TableConfig
    from headwater.serving.config.tables import LakeSource

__all__ = ["ConfiguredTables", "options_of", "plan_of"]

OpenLake = Callable[[str, Mapping[str, str]], "Environment"]


def options_of(config: Config) -> ServerOptions:
    """The options of a server, as its configuration has them."""
    server = config.server
    tls = server.tls
    password = None if tls is None or tls.key_password is None else tls.key_password.get_secret_value()
    return ServerOptions(
        host=server.host,
        port=server.port,
        flight_port=server.flight_port,
        workers=server.workers,
        tokens=tuple(Token.parse(one.name, one.hash, one.scopes) for one in server.tokens),
        tls=None
        if tls is None
        else Tls(str(tls.cert), str(tls.key), password, None if tls.ca is None else str(tls.ca)),
        limits=Limits(**server.limits.model_dump()),
    )


def plan_of(config: Config, open_lake: OpenLake, options: ServerOptions, *, refresh: bool = True) -> Plan:
    """What a server does that has this configuration.

    Parameters
    ----------
    open_lake : callable
        opens the lake at a location, with storage options
    refresh : bool
        let the follower refresh online tables of lakes
    """
    return Plan(
        options,
        lambda: ConfiguredTables(config).made(),
        lambda: _publishers(config, open_lake, refresh=refresh),
        lambda: ConfiguredTables(config),
    )


def _publishers(config: Config, open_lake: OpenLake, *, refresh: bool) -> list[Publisher]:
    root = open_storage(config.server.data_dir)
    found: list[Publisher] = [PushedCompaction(root)]
    for name, table in config.tables.items():
        if table.source.folders is not None:
            found.append(FolderPublisher(name, table, root))
        elif table.source.lake is not None and refresh:
            found.append(_lake_publisher(name, table, table.source.lake, open_lake))
    return found


def _lake_publisher(name: str, table: TableConfig, source: LakeSource, open_lake: OpenLake) -> LakePublisher:
    every_s = table.poll_interval.total_seconds()
    return LakePublisher(
        name, lambda: open_lake(source.location, source.options), {source.table or name: name}, every_s=every_s
    )


class ConfiguredTables:
    """The tables of a configuration, and those that the API has made."""

    is_remote = False

    def __init__(self, config: Config) -> None:
        self._tables = config.tables
        self._root = open_storage(config.server.data_dir)
        self._pushed = PushedTables(self._root, background=False)
        self._lakes: dict[tuple[str, tuple[tuple[str, str], ...]], Storage] = {}
        self._facts = {name: self._facts_of(table) for name, table in self._tables.items()}
        self._is_pushed: dict[str, bool] = {}

    def made(self) -> Self:
        """Itself, after the data folder and the tables that take rows were made, where they are not there yet."""
        make = getattr(self._root, "make", None)
        if make is not None:
            make()
        for name, table in self._tables.items():
            if table.source.push is not None:
                self._declare(name, table)
        return self

    def _declare(self, name: str, table: TableConfig) -> None:
        schema = table.declared
        assert schema is not None
        ttl_ms = None if table.ttl is None else round(table.ttl / timedelta(milliseconds=1))
        for left in reversed(range(5)):
            try:
                self._pushed.create(
                    name, key=table.key, schema=schema, ttl_ms=ttl_ms, event_time=table.event_time, exists_ok=True
                )
                return
            except ConflictError:  # another worker does the same
                if not left:
                    raise

    def _facts_of(self, table: TableConfig) -> TableFacts:
        lake = table.source.lake
        freshness = None if table.freshness is None else table.freshness.total_seconds()
        return TableFacts(
            required=table.required,
            freshness_s=freshness,
            remote=lake is not None and self._lake(lake).local_path("") is None,
            writable=table.source.push is not None,
        )

    def _lake(self, source: LakeSource) -> Storage:
        place = (source.location, tuple(sorted(source.options.items())))
        if place not in self._lakes:
            self._lakes[place] = open_storage(source.location, source.options or None)
        return self._lakes[place]

    # -- what there is ---------------------------------------------------------------------------------------------

    def tables(self) -> Mapping[str, TableFacts]:
        made = {name: _PUSHED for name in online_names(self._root) if name not in self._facts and self._was_made(name)}
        return {**self._facts, **made}

    def _was_made(self, name: str) -> bool:
        """Whether a table in the data folder was made by the API, and not from date folders."""
        if name not in self._is_pushed:
            try:
                self._pushed.definition(name)
                self._is_pushed[name] = True
            except NotFoundError:
                return False
            except Exception:  # noqa: BLE001 (whatever it is, it is not ours to serve)
                self._is_pushed[name] = False
        return self._is_pushed[name]

    def follow(self, name: str) -> Following:
        table = self._tables.get(name)
        if table is not None and table.source.lake is not None:
            return OnlineStore(self._lake(table.source.lake), table.source.lake.table or name).follow()
        return OnlineStore(self._root, name).follow()

    # -- what the API changes --------------------------------------------------------------------------------------

    def definition(self, name: str) -> NewTable:
        found = self._pushed.definition(name)
        return NewTable(found.key, found.schema, found.ttl_ms, found.event_time)

    def create(self, name: str, definition: NewTable) -> None:
        if name in self._tables:
            raise _declared(name)
        self._is_pushed.pop(name, None)
        self._pushed.create(
            name,
            key=definition.key,
            schema=definition.schema,
            ttl_ms=definition.ttl_ms,
            event_time=definition.event_time,
        )

    def drop(self, name: str) -> None:
        if name in self._tables:
            raise _declared(name)
        self._pushed.drop(name)
        self._is_pushed.pop(name, None)

    def write(self, name: str, rows: pa.Table) -> TableWrite:
        done = self._pushed.upsert(name, rows)
        return TableWrite(done.rows, done.version, str(done.frontier))

    def delete(self, name: str, keys: pa.Table) -> TableWrite:
        done = self._pushed.delete(name, keys)
        return TableWrite(done.rows, done.version, str(done.frontier))

    def compact(self, name: str) -> None:
        self._pushed.compact(name, always=True)

    def close(self) -> None:
        self._lakes = {}


def _declared(name: str) -> RequestError:
    why = "the configuration names it"
    return RequestError.not_ours(name, why, "change the configuration, and have it read again (SIGHUP)")


_PUSHED = TableFacts(required=False, writable=True)
