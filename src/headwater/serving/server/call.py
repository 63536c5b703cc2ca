"""One request to the application: its headers by name, its body within limits, and what it is allowed.

A header that decides something must be there once: of two, a proxy might have looked at the other one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from headwater.base.errors import LimitError, NotFoundError, RequestError
from headwater.serving.server.reply import Reply, request_id
from headwater.serving.server.target import check_table_name

if TYPE_CHECKING:
    from collections.abc import Awaitable, MutableMapping

    from headwater.serving.server.options import Action
    from headwater.serving.server.served import Served
    from headwater.serving.server.service import Service

    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]

__all__ = ["Call", "ClientGone", "send_reply"]

_Result = TypeVar("_Result")

_ONCE = frozenset(
    {b"authorization", b"content-length", b"content-type", b"host", b"transfer-encoding", b"x-request-id"}
)


class ClientGone(Exception):
    """The client went away before its request was complete."""


class Call:
    """A request that the application answers."""

    def __init__(self, service: Service, scope: Message, receive: Receive) -> None:
        self.service, self.scope, self._receive = service, scope, receive
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.query: bytes = scope["query_string"]
        self.headers: dict[bytes, bytes] = {}
        self.table: str | None = None
        """The table that the path names, once it is known to be a name."""
        self.is_counted = False
        """Whether whoever answers it counts it as well."""
        self.is_murr = self.path.startswith("/api/v1/")

    def read_headers(self) -> None:
        """Take the headers in; of those that decide something there may be one each."""
        found = self.headers
        for name, value in self.scope["headers"]:
            if name not in found:
                found[name] = value
            elif name in _ONCE:
                raise RequestError.malformed(f"the header {name.decode('latin-1')} is there twice")
            else:
                found[name] += b", " + value
        if "table" in self.scope.get("path_params", {}):
            self.table = check_table_name(self.scope["path_params"]["table"])

    @property
    def request_id(self) -> bytes | None:
        return request_id(self.headers.get(b"x-request-id"))

    def require(self, action: Action, *, on_table: bool = True) -> None:
        """Raise unless the sender may do that, to the table of the path or to all of them."""
        self.service.access.require(self.headers, action, self.table if on_table else None)

    async def served(self, name: str | None = None) -> Served:
        """A table, by default that of the path; raises if there is none."""
        name = self.table if name is None else name
        assert name is not None
        found = self.service.tables.by_name.get(name)
        if found is None:
            found = await self.in_thread(lambda: self.service.tables.look_for(name))
        if found is None:
            names = self.service.access.visible(self.headers, "read", sorted(self.service.tables.by_name))
            raise NotFoundError.table(name, names, "this server")
        return found

    async def loaded(self, name: str | None = None) -> Served:
        """A table that has a version; looks for one that was committed a moment ago before it raises."""
        found = await self.served(name)
        if found.following.current is None:
            await self.in_thread(found.advance)
        if found.following.current is None:
            raise LimitError.not_loaded(found.name)
        return found

    async def body(self) -> bytes:
        """The whole body, if it is not too large."""
        most = self.service.options.limits.max_body_bytes
        parts: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            part = message.get("body", b"")
            size += len(part)
            if size > most:
                raise LimitError.body(most)
            parts.append(part)
            if not message.get("more_body", False):
                return parts[0] if len(parts) == 1 else b"".join(parts)

    async def in_thread(self, work: Callable[[], _Result]) -> _Result:
        """Do what takes long, or may wait for a disk, without holding up other requests."""
        return await asyncio.get_running_loop().run_in_executor(self.service.threads, work)


async def send_reply(reply: Reply, identity: bytes | None, send: Send) -> None:
    """Send an answer by ASGI; the headers come in the order in which the other way writes them."""
    headers = [*reply.headers, (b"content-length", str(len(reply.body)).encode())]
    if identity is not None:
        headers.append((b"x-request-id", identity))
    if reply.close:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body, "more_body": False})
