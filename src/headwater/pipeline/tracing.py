"""Spans of OpenTelemetry, where its API is installed: one for each run, and one below it for each node.

Without the package nothing is loaded and nothing is done. Which spans are kept, and where they go, is set up as for any
other program: by the SDK, or by its environment variables.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

__all__ = ["span"]


@cache
def _tracer() -> Any:
    """The tracer; None without the package."""
    if find_spec("opentelemetry") is None:
        return None
    try:
        return import_module("opentelemetry.trace").get_tracer("headwater")
    except ImportError:
        return None


@contextmanager
def span(name: str, **facts: Any) -> Iterator[Any]:
    """A span around the block; gives a function that adds facts to it."""
    tracer = _tracer()
    if tracer is None:
        yield lambda **_: None
        return
    with tracer.start_as_current_span(name, attributes={f"headwater.{k}": v for k, v in facts.items()}) as made:

        def add(**more: Any) -> None:
            for key, value in more.items():
                made.set_attribute(f"headwater.{key}", value)

        yield add
