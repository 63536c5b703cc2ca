"""The application: every route of the API, on starlette.

A route is a path with a function for each method, which takes a `Call` and gives a `Reply`, or raises. What is the same
for all of them is here: headers are read, errors become answers, requests are counted, and no more than a certain
number of them is under way.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.routing import Route, Router

from headwater.base.errors import HeadwaterError, LimitError, RequestError
from headwater.serving.server import fetch_routes, server_routes, table_routes
from headwater.serving.server.call import Call, ClientGone, send_reply
from headwater.serving.server.refusal import refuse, refuse_unexpected
from headwater.serving.server.reply import Reply

if TYPE_CHECKING:
    from headwater.serving.server.call import Message, Receive, Send
    from headwater.serving.server.service import Service

__all__ = ["ROUTES", "make_app"]

Handler = Callable[[Call], Awaitable[Reply]]

ROUTES: dict[str, dict[str, Handler]] = {
    "/v1/fetch": {"POST": fetch_routes.fetch_several},
    "/v1/tables": {"GET": table_routes.list_tables},
    "/v1/tables/{table}": {
        "GET": table_routes.describe,
        "PUT": table_routes.create,
        "DELETE": table_routes.drop,
    },
    "/v1/tables/{table}/compact": {"POST": table_routes.compact},
    "/v1/tables/{table}/fetch": {"POST": fetch_routes.fetch},
    "/v1/tables/{table}/rows": {"PUT": table_routes.write_rows, "DELETE": table_routes.delete_rows},
    "/v1/tables/{table}/rows/delete": {"POST": table_routes.delete_rows},
    "/v1/tables/{table}/schema": {"GET": table_routes.schema},
    "/v1/tables/{table}/versions": {"GET": table_routes.versions},
    # Murr's own paths.
    "/api/v1/table": {"GET": table_routes.list_tables},
    "/api/v1/table/{table}": {"PUT": table_routes.create, "DELETE": table_routes.drop},
    "/api/v1/table/{table}/compact": {"POST": table_routes.compact},
    "/api/v1/table/{table}/fetch": {"POST": fetch_routes.fetch},
    "/api/v1/table/{table}/schema": {"GET": table_routes.schema},
    "/api/v1/table/{table}/write": {"PUT": table_routes.write_rows},
    "/health": {"GET": server_routes.health},
    "/healthz": {"GET": server_routes.healthz},
    "/readyz": {"GET": server_routes.readyz},
    "/metrics": {"GET": server_routes.metrics},
    "/openapi.json": {"GET": server_routes.openapi},
    "/docs": {"GET": server_routes.docs},
}


def make_app(service: Service) -> Router:
    """The application of one process."""

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[dict[str, Any]]:
        await service.start()
        try:
            yield {"service": service}
        finally:
            service.close()

    routes = [Route(path, _Endpoint(service, handlers)) for path, handlers in ROUTES.items()]
    return Router(routes, redirect_slashes=False, default=_Endpoint(service, None), lifespan=lifespan)


class _Endpoint:
    """One path."""

    def __init__(self, service: Service, handlers: Mapping[str, Handler] | None) -> None:
        self._service, self._handlers = service, handlers

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        service, call = self._service, Call(self._service, scope, receive)
        limit = service.options.limits.max_concurrency
        service.in_flight += 1
        try:
            call.read_headers()
            if service.in_flight > limit:
                raise LimitError.concurrency(limit)
            reply = await self._handler(call)(call)
        except HeadwaterError as error:
            reply = refuse(error, also=self._also(error), close=_leaves_body(error), murr=call.is_murr)
        except ClientGone:
            return
        except Exception as error:  # noqa: BLE001 (a request must get its answer)
            reply = refuse_unexpected(error)
        finally:
            service.in_flight -= 1
        if not call.is_counted:
            served = None if call.table is None else service.tables.by_name.get(call.table)
            (service.fetching.nobody if served is None else served.metrics).answered(reply.status)
        await send_reply(reply, call.request_id, send)

    def _handler(self, call: Call) -> Handler:
        if self._handlers is None:
            raise RequestError.no_route(call.path)
        method = "GET" if call.method == "HEAD" else call.method
        found = self._handlers.get(method)
        if found is None:
            raise RequestError.method(call.method, call.path, self._allowed())
        return found

    def _allowed(self) -> list[str]:
        handlers = self._handlers or {}
        return sorted({*handlers, *(["HEAD"] if "GET" in handlers else [])})

    def _also(self, error: HeadwaterError) -> list[tuple[bytes, bytes]]:
        if error.code == "E1746":
            return [(b"allow", ", ".join(self._allowed()).encode())]
        return [(b"allow", b"GET, HEAD, POST")] if error.code in ("E1748", "E1752") else []


def _leaves_body(error: HeadwaterError) -> bool:
    """Whether the rest of the request's body need not be read any more."""
    return error.code == "E8201"
