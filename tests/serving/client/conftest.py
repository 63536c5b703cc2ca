"""Both clients, under one name: a test says what is called, and it is called or awaited."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest

import headwater as hw

Use = Callable[..., Any]


def waiting(url: str, use: Callable[[Any], Any], **options: Any) -> Any:
    with hw.Client(url, **options) as client:
        found = [one() if callable(one) else one for one in use(client)]
        return found[-1] if found else None


def awaiting(url: str, use: Callable[[Any], Any], **options: Any) -> Any:
    async def run() -> Any:
        found = None
        async with hw.AsyncClient(url, **options) as client:
            for one in use(client):
                given = one() if callable(one) else one
                found = await given if inspect.isawaitable(given) else given
        return found

    return asyncio.run(run())


@pytest.fixture(params=["waiting", "awaiting"])
def using(request: pytest.FixtureRequest) -> Use:
    """Makes calls one after the other and gives the result of the last: ``using(url, lambda client: [client.tables])``.

    Each is a function without arguments, so that the second begins when the first has ended.
    """
    return {"waiting": waiting, "awaiting": awaiting}[request.param]
