"""The client that is awaited: the same methods as `Client`, for programs that wait for many things at once."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from headwater.base.errors import HeadwaterError, InputError, ServerError
from headwater.base.frontier import Frontier
from headwater.serving.answer import Answer
from headwater.serving.client.address import Address
from headwater.serving.client.async_connection import AsyncPool
from headwater.serving.client.calls import Call, Calls, Missing, error_of, retry_after_s
from headwater.serving.client.client import checked, definition
from headwater.serving.client.connection import ConnectionLost
from headwater.serving.client.key_frame import needs_names
from headwater.serving.client.reply import Reply
from headwater.serving.client.retries import Retries

__all__ = ["AsyncClient"]

_T = TypeVar("_T")


class AsyncClient:
    """A server of online tables, for asyncio. The parameters and methods are those of `headwater.Client`.

    Examples
    --------
    >>> AsyncClient("http://127.0.0.1:8080", pool=64)
    AsyncClient('http://127.0.0.1:8080')

    .. code-block:: text

        async with hw.AsyncClient("http://127.0.0.1:8080") as client:
            spend, risk = await asyncio.gather(client.fetch("spend", keys), client.fetch("risk", keys))
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: float = 5.0,
        connect_timeout: float = 1.0,
        retries: int = 2,
        pool: int = 16,
        tls: ssl.SSLContext | None = None,
        max_answer_bytes: int = 1 << 30,
    ) -> None:
        self._address = Address.parse(url, token, tls)
        self._timeout_s = checked("timeout", timeout)
        self._calls = Calls(self._address, self._timeout_s)
        connect_s = checked("connect_timeout", connect_timeout)
        self._retries = Retries(checked("retries", retries, least=0))
        self._limit = checked("pool", pool)
        self._pool = AsyncPool(self._address, limit=pool, connect_s=connect_s, most_bytes=max_answer_bytes)
        self._url = self._address.url
        self._key_names: dict[str, list[str]] = {}

    # -- reading ---------------------------------------------------------------------------------------------------

    async def fetch(
        self,
        table: str,
        keys: Any,
        columns: Sequence[str] | None = None,
        *,
        found: bool = True,
        status: bool = False,
        event_time: bool = False,
        missing: Missing = "null",
        min_frontier: Frontier | str | None = None,
        wait: float | None = None,
    ) -> Answer:
        """The values of columns for keys, in the order of the keys; see `headwater.Client.fetch`."""
        names = await self._names(table) if needs_names(keys) else ()
        return await self._run(
            self._calls.fetch(
                table,
                keys,
                columns,
                found=found,
                status=status,
                event_time=event_time,
                missing=missing,
                min_frontier=min_frontier,
                wait=wait,
                names=names,
            )
        )

    async def fetch_many(
        self,
        tables: Mapping[str, Sequence[str] | None] | Sequence[str],
        keys: Any,
        *,
        found: bool = True,
        status: bool = False,
        event_time: bool = False,
        min_frontier: Frontier | str | None = None,
        wait: float | None = None,
    ) -> Answer:
        """The values of several tables for the same keys, of one frontier; see `headwater.Client.fetch_many`."""
        return await self._run(
            self._calls.fetch_many(
                tables, keys, found=found, status=status, event_time=event_time, min_frontier=min_frontier, wait=wait
            )
        )

    async def tables(self) -> list[dict[str, Any]]:
        """What is known of each table that may be read."""
        return await self._run(self._calls.get("/v1/tables", lambda found: list(found["tables"])))

    async def describe(self, table: str) -> dict[str, Any]:
        """What is known of a table: its key, its columns, its newest version."""
        return await self._run(self._calls.get(self._calls.table(table), dict))

    async def schema(self, table: str) -> dict[str, Any]:
        """The key and the columns of a table, with their types."""
        return await self._run(self._calls.get(self._calls.table(table, "schema"), dict))

    async def versions(self, table: str) -> list[dict[str, Any]]:
        """The versions of a table that can still answer, newest first."""
        path = self._calls.table(table, "versions")
        return await self._run(self._calls.get(path, lambda found: list(found["versions"])))

    # -- writing ---------------------------------------------------------------------------------------------------

    async def write(self, table: str, rows: Any) -> dict[str, Any]:
        """Insert rows, or replace those with the same keys."""
        return await self._run(self._calls.write(table, rows))

    async def delete(self, table: str, keys: Any) -> dict[str, Any]:
        """Delete rows by their keys, which are given as to `fetch`."""
        names = await self._names(table) if needs_names(keys) else ()
        return await self._run(self._calls.delete(table, keys, names))

    async def create(
        self,
        table: str,
        *,
        key: str | Sequence[str],
        columns: Mapping[str, Any],
        ttl: float | None = None,
        event_time: str | None = None,
    ) -> dict[str, Any]:
        """Make a table whose rows are written by this API; see `headwater.Client.create`."""
        return await self._run(self._calls.create(table, definition(key, columns, ttl, event_time)))

    async def drop(self, table: str) -> None:
        """Delete a table that was made by `create`, with its rows."""
        self._key_names.pop(table, None)
        await self._run(self._calls.drop(table))

    # -- the server ------------------------------------------------------------------------------------------------

    async def health(self) -> dict[str, Any]:
        """Whether the server answers."""
        return await self._run(self._calls.get("/healthz", dict))

    async def ready(self) -> dict[str, Any]:
        """Whether the server has loaded all its tables, and what is missing: ``{"status": "ready", …}``,
        or another status.
        """
        call = self._calls.get("/readyz", dict)
        reply = await self._exchange(call, asyncio.get_running_loop().time() + self._timeout_s)
        if reply.status not in (200, 503):
            raise error_of(reply, self._url)
        return call.read(reply)

    async def metrics(self) -> str:
        """What the server has counted, in the text format of Prometheus."""
        return await self._run(self._calls.get_text("/metrics"))

    # -- how a call is made ----------------------------------------------------------------------------------------

    async def _names(self, table: str) -> list[str]:
        known = self._key_names.get(table)
        if known is None:
            known = self._key_names[table] = list((await self.schema(table))["key"])
        return known

    async def _run(self, call: Call[_T]) -> _T:
        now = asyncio.get_running_loop().time
        deadline = now() + self._timeout_s + call.extra_s
        attempt = 0
        while True:
            after_s = None
            try:
                reply = await self._exchange(call, deadline)
                if reply.status < 300:
                    self._retries.earn()
                    return call.read(reply)
                failure: HeadwaterError = error_of(reply, self._url)
                after_s = retry_after_s(reply)
            except ServerError as error:
                failure = error
            left_s = deadline - now()
            pause = self._retries.pause_s(failure, after_s, attempt=attempt, repeatable=call.repeatable, left_s=left_s)
            if pause is None:
                raise failure
            attempt += 1
            await asyncio.sleep(pause)

    async def _exchange(self, call: Call[Any], deadline: float) -> Reply:
        pool, url = self._pool, self._url
        if pool.is_closed:
            raise InputError.bad_argument("client", "closed", "a client that is open: make another one")
        while True:
            try:
                connection = await pool.take(deadline)
            except TimeoutError:
                raise ServerError.busy(url, self._limit, self._timeout_s) from None
            again = connection.is_used
            if again and not call.repeatable and not connection.is_quiet:
                pool.discard(connection)
                continue
            try:
                reply = await connection.exchange(call.head, call.body, deadline)
            except ConnectionLost as lost:
                pool.discard(connection)
                if again and lost.unanswered and call.repeatable:
                    # The server closed it while nobody used it. The others are as old.
                    pool.clear()
                    continue
                raise ServerError.lost(url, str(lost)) from None
            except TimeoutError:
                pool.discard(connection)
                raise ServerError.timed_out(url, self._timeout_s + call.extra_s) from None
            except ValueError as error:
                pool.discard(connection)
                raise ServerError.bad_response(url, str(error)) from None
            except BaseException:  # it was cancelled: what is on its way must not be taken for the next answer
                pool.discard(connection)
                raise
            if reply.keep_alive and connection.is_alive:
                pool.give_back(connection)
            else:
                pool.discard(connection)
            return reply

    # -- its life --------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Close the connections."""
        self._pool.close()
        await asyncio.sleep(0)  # which lets the event loop close the sockets

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._url!r})"
