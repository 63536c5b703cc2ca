"""The routes about the server itself: is it alive, is it ready, what has it counted, what does it offer."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import orjson

from headwater.base.errors import AccessError
from headwater.serving.server.metrics import exposition
from headwater.serving.server.openapi import document
from headwater.serving.server.page import PAGE, PAGE_POLICY
from headwater.serving.server.reply import HTML, JSON, TEXT, Reply

if TYPE_CHECKING:
    from headwater.serving.server.call import Call

__all__ = ["docs", "health", "healthz", "metrics", "openapi", "readyz"]

_RETRY_AFTER = (b"retry-after", b"1")


async def healthz(_: Call) -> Reply:
    """Whether this process answers."""
    return Reply(200, (JSON,), b'{"status":"ok"}')


async def health(_: Call) -> Reply:
    """The same, in Murr's words."""
    return Reply(200, (TEXT,), b"OK")


async def readyz(call: Call) -> Reply:
    """Whether all tables that are required are loaded, well and fresh;
    names of tables are for those who may read them.
    """
    service = call.service
    refused = service.metrics.counters.notes()
    problems = await call.in_thread(lambda: service.tables.problems(refused))
    if service.is_stopping:
        problems["-"] = "the server is being stopped"
    try:
        visible = service.access.visible(call.headers, "read", list(problems))
    except AccessError:
        visible = []
    reasons = {name: why for name, why in problems.items() if name in visible}
    ready = not problems
    body = {"status": "ready" if ready else "not ready", "problems": len(problems), "reasons": reasons}
    return Reply(200 if ready else 503, (JSON,) if ready else (JSON, _RETRY_AFTER), orjson.dumps(body))


async def metrics(call: Call) -> Reply:
    """What was counted by all processes, for Prometheus."""
    call.require("read", on_table=False)
    accept = call.headers.get(b"accept", b"").decode("latin-1")
    body, media = await call.in_thread(lambda: exposition(call.service.metrics.counters, accept))
    return Reply(200, ((b"content-type", media.encode()),), body)


async def openapi(call: Call) -> Reply:
    """The OpenAPI document."""
    return Reply(200, (JSON,), _document_bytes(has_tokens=not call.service.access.is_open))


async def docs(_: Call) -> Reply:
    """The same for people, on a page that loads nothing from elsewhere."""
    headers = (HTML, (b"content-security-policy", PAGE_POLICY), (b"x-content-type-options", b"nosniff"))
    return Reply(200, headers, PAGE)


@cache
def _document_bytes(*, has_tokens: bool) -> bytes:
    return orjson.dumps(document(has_tokens=has_tokens))
