"""Connections that are awaited: a protocol of asyncio that receives replies where they stay, and the pool of them.

The same rules as for connections that are waited for (`connection`): one request at a time, back to the pool only after
a whole reply, and no more than a number of them open at once. A pool belongs to the event loop that it is used in; in
another one it begins anew.
"""

from __future__ import annotations

import asyncio
import select
from collections import deque
from typing import cast

from headwater.base.errors import ServerError
from headwater.serving.client.address import Address
from headwater.serving.client.connection import ConnectionLost
from headwater.serving.client.reply import Reply, ReplyReader
from headwater.serving.frame_view import Bytes

__all__ = ["AsyncConnection", "AsyncPool"]


class AsyncConnection(asyncio.BufferedProtocol):
    """One open connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop, most_bytes: int) -> None:
        self._loop = loop
        self._reader = ReplyReader(most_bytes)
        self._waiter: asyncio.Future[Reply] | None = None
        self._transport: asyncio.Transport | None = None
        self.is_used = False
        self.is_alive = False

    async def exchange(self, head: bytes, body: Bytes, deadline: float) -> Reply:
        """Send a request and await its reply; a TimeoutError, ConnectionLost or ValueError where that fails."""
        assert self._transport is not None and self._waiter is None
        if not self.is_alive:
            raise ConnectionLost("it was closed", unanswered=True)
        self.is_used = True
        waiter: asyncio.Future[Reply] = self._loop.create_future()
        self._waiter = waiter
        timer = self._loop.call_at(deadline, self._expire)
        self._transport.write(b"".join((head, body)) if len(body) else head)
        try:
            return await waiter
        finally:
            timer.cancel()
            self._waiter = None

    @property
    def is_quiet(self) -> bool:
        """Whether the server has neither closed it nor sent anything, also of what the event loop has not seen yet."""
        found = self._transport.get_extra_info("socket") if self._transport is not None and self.is_alive else None
        if found is None:
            return False
        ready = select.poll()
        ready.register(found.fileno(), select.POLLIN)
        return not ready.poll(0)

    def _expire(self) -> None:
        self._fail(TimeoutError())

    def _fail(self, error: Exception) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)

    # -- what asyncio calls ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.is_alive = True

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        if self._waiter is None or self._waiter.done():
            self.close()  # nobody asked for that
            return
        try:
            reply = self._reader.received(nbytes)
        except ValueError as error:
            self._fail(error)
            self.close()
            return
        if reply is not None:
            self._waiter.set_result(reply)

    def eof_received(self) -> bool | None:
        self._end("it was closed")
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        self._end("it was closed" if exc is None else str(exc) or type(exc).__name__)

    def _end(self, why: str) -> None:
        self.is_alive = False
        if self._waiter is None or self._waiter.done():
            return
        unanswered = self._reader.is_idle
        try:
            self._waiter.set_result(self._reader.ended())
        except ValueError:
            self._fail(ConnectionLost(why, unanswered=unanswered))

    def close(self) -> None:
        """Close it at once."""
        self.is_alive = False
        if self._transport is not None:
            self._transport.abort()


class AsyncPool:
    """The connections of one client."""

    def __init__(self, address: Address, *, limit: int, connect_s: float, most_bytes: int) -> None:
        self._address, self._limit, self._connect_s, self._most_bytes = address, limit, connect_s, most_bytes
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle: deque[AsyncConnection] = deque()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._open = 0
        self.is_closed = False

    async def take(self, deadline: float) -> AsyncConnection:
        """An idle connection, or a new one; waits where there are as many as there may be."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            # The connections of a loop that has ended are gone with it.
            self._loop, self._idle, self._waiting, self._open = loop, deque(), deque(), 0
        while True:
            while self._idle:
                connection = self._idle.pop()
                if connection.is_alive:
                    return connection
                self._open -= 1
            if self._open < self._limit:
                return await self._connect(loop, deadline)
            await self._wait(loop, deadline)

    async def _wait(self, loop: asyncio.AbstractEventLoop, deadline: float) -> None:
        freed: asyncio.Future[None] = loop.create_future()
        self._waiting.append(freed)
        try:
            async with asyncio.timeout_at(deadline):
                await freed
        except BaseException:
            if freed.done() and not freed.cancelled():
                self._wake()  # it was meant for whoever waits next
            else:
                self._waiting.remove(freed)
            raise

    async def _connect(self, loop: asyncio.AbstractEventLoop, deadline: float) -> AsyncConnection:
        address = self._address
        self._open += 1
        try:
            async with asyncio.timeout_at(min(deadline, loop.time() + self._connect_s)):
                _, made = await loop.create_connection(
                    lambda: AsyncConnection(loop, self._most_bytes),
                    address.host,
                    address.port,
                    ssl=address.tls,
                    server_hostname=address.host if address.tls else None,
                )
        except BaseException as error:
            self._release()
            if isinstance(error, TimeoutError):
                raise ServerError.unreachable(address.url, f"no connection within {self._connect_s:g} s") from None
            if isinstance(error, OSError):
                raise ServerError.unreachable(address.url, error.strerror or str(error)) from None
            raise
        return made

    def give_back(self, connection: AsyncConnection) -> None:
        """Keep a connection for the next request."""
        if self.is_closed:
            self.discard(connection)
            return
        self._idle.append(connection)
        self._wake()

    def discard(self, connection: AsyncConnection) -> None:
        """Close a connection, and make room for another."""
        connection.close()
        self._release()

    def clear(self) -> None:
        """Close all idle connections: one of them turned out to be closed by the server, so they may all be."""
        while self._idle:
            self.discard(self._idle.pop())

    def close(self) -> None:
        """Close what is idle now, and what is in use when it comes back."""
        self.is_closed = True
        self.clear()

    def _release(self) -> None:
        self._open -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting:
            freed = self._waiting.popleft()
            if not freed.done():
                freed.set_result(None)
                return
