"""Where the online store for Feast keeps its tables: on a server,
or in a folder that this process reads and writes itself.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa

from headwater.base.errors import NotFoundError
from headwater.serving.answer import Answer
from headwater.serving.client import AsyncClient, Client
from headwater.serving.dtypes import dtype_name

__all__ = ["FolderBacking", "ServerBacking", "TableBacking"]

Definition = tuple[list[str], dict[str, str]]
"""The key, and the types of all columns by name."""


class TableBacking(Protocol):
    """What the store does with tables."""

    def definition(self, table: str) -> Definition | None:
        """What a table is like; None where there is none."""

    def create(self, table: str, key: Sequence[str], schema: pa.Schema, event_time: str) -> None: ...

    def drop(self, table: str) -> None:
        """Delete a table, if it is there."""

    def write(self, table: str, rows: pa.Table) -> None: ...

    def fetch(self, table: str, keys: pa.Table, columns: Sequence[str]) -> Answer: ...

    async def fetch_async(self, table: str, keys: pa.Table, columns: Sequence[str]) -> Answer: ...

    def close(self) -> None: ...

    async def close_async(self) -> None: ...


class ServerBacking:
    """Tables of a server."""

    def __init__(self, url: str, token: str | None, timeout_s: float) -> None:
        self._client = Client(url, token, timeout=timeout_s)
        self._async_client = AsyncClient(url, token, timeout=timeout_s, pool=64)

    def definition(self, table: str) -> Definition | None:
        try:
            found = self._client.schema(table)
        except NotFoundError:
            return None
        return list(found["key"]), {name: column["dtype"] for name, column in found["columns"].items()}

    def create(self, table: str, key: Sequence[str], schema: pa.Schema, event_time: str) -> None:
        columns: dict[str, Any] = {}
        for field in schema:
            columns[field.name] = {"dtype": dtype_name(field.type), "nullable": field.nullable}
        self._client.create(table, key=list(key), columns=columns, event_time=event_time)

    def drop(self, table: str) -> None:
        try:
            self._client.drop(table)
        except NotFoundError:
            return

    def write(self, table: str, rows: pa.Table) -> None:
        self._client.write(table, rows)

    def fetch(self, table: str, keys: pa.Table, columns: Sequence[str]) -> Answer:
        return self._client.fetch(table, keys, columns)

    async def fetch_async(self, table: str, keys: pa.Table, columns: Sequence[str]) -> Answer:
        return await self._async_client.fetch(table, keys, columns)

    def close(self) -> None:
        self._client.close()

    async def close_async(self) -> None:
        await self._async_client.close()


class FolderBacking:
    """Tables in a folder, or below a prefix of object storage. Other processes may use the same folder."""

    def __init__(self, path: str) -> None:
        from headwater.base.storage import open_storage
        from headwater.serving.pushed import PushedTables

        self._root = open_storage(path)
        make = getattr(self._root, "make", None)
        if make is not None:
            make()
        self._tables = PushedTables(self._root)
        self._followed: dict[str, Any] = {}
        self._lock = threading.Lock()

    def definition(self, table: str) -> Definition | None:
        try:
            found = self._tables.definition(table)
        except NotFoundError:
            return None
        return list(found.key), {field.name: dtype_name(field.type) for field in found.schema}

    def create(self, table: str, key: Sequence[str], schema: pa.Schema, event_time: str) -> None:
        self._tables.create(table, key=key, schema=schema, event_time=event_time)

    def drop(self, table: str) -> None:
        with self._lock:
            self._followed.pop(table, None)
        try:
            self._tables.drop(table)
        except NotFoundError:
            return

    def write(self, table: str, rows: pa.Table) -> None:
        self._tables.upsert(table, rows)

    def fetch(self, table: str, keys: pa.Table, columns: Sequence[str]) -> Answer:
        version = self._current(table)
        frame = version.fetch(keys, columns)
        return Answer(frame, frontier=version.frontier, versions={table: version.number})

    def _current(self, table: str) -> Any:
        """The newest version of a table: what was written before, here or elsewhere, is seen."""
        from headwater.serving.store import OnlineStore

        with self._lock:
            following = self._followed.get(table)
            if following is None:
                self._tables.definition(table)  # an error, if it is not there
                following = self._followed[table] = OnlineStore(self._root, table).follow()
            following.advance()
            version = following.current
        if version is None:
            raise following.error or NotFoundError.table(table, self._tables.names(), self._root.url)
        return version

    async def fetch_async(self, table: str, keys: pa.Table, columns: Sequence[str]) -> Answer:
        return await asyncio.to_thread(self.fetch, table, keys, columns)

    def close(self) -> None:
        with self._lock:
            self._followed.clear()

    async def close_async(self) -> None:
        return
