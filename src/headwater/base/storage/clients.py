"""Clients of object stores: one for each bucket and set of options in a process, with its connections.

A client's threads do not survive a fork, so a forked child is refused instead of left waiting. And a client knows
whether its service has been seen to honour a conditional put. Everything the lake promises rests on that condition, and
some servers take the request and ignore it: two writers would both be told that they committed. So before a process
puts the first object with it, it creates a small object beside the target twice; a service that lets the second one
through is refused, and nothing is committed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from headwater.base.errors import UnsupportedError
from headwater.base.storage.address import Address

__all__ = ["RETRIES", "Client", "Connection", "check_not_forked", "client_of"]

# A server that is down or wrong is reported after about ten seconds, not minutes.
RETRIES = {
    "max_retries": 6,
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=3), "base": 2},
    "retry_timeout": timedelta(seconds=60),
}
_LEAST_SECRET = 6


@dataclass(frozen=True, slots=True)
class Connection:
    """What a service is reached with: obstore's configuration, HTTP options, and values that no message may show."""

    config: Mapping[str, Any]
    http: Mapping[str, Any]
    secrets: tuple[str, ...] = ()

    def hide_secrets(self, text: str) -> str:
        """The text without the secrets; a shorter one than six letters would hide half of any message."""
        for secret in sorted({s for s in self.secrets if len(s) >= _LEAST_SECRET}, key=len, reverse=True):
            text = text.replace(secret, "…")
        return text


@dataclass(slots=True)
class Client:
    """An obstore client of one bucket."""

    store: Any
    connection: Connection
    _honours_conditions: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def check_conditions(self, ask: Callable[[], None]) -> None:
        """Call ``ask``, which raises if the service ignores the condition of a put, until it has returned once."""
        if not self._honours_conditions:
            with self._lock:
                if not self._honours_conditions:
                    ask()
                    self._honours_conditions = True


_clients: dict[tuple[object, ...], Client] = {}
_clients_lock = threading.Lock()
_forked = False


def _after_fork() -> None:
    """A child of a process that used object storage would wait forever for threads that it does not have."""
    global _forked
    _forked = bool(_clients)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def check_not_forked() -> None:
    if _forked:
        raise UnsupportedError.operation(
            "using object storage in a forked process",
            "its parent used it before, and the client's threads stayed there",
            'start processes with "spawn" or "forkserver", or fork before S3, Azure or Google Cloud is used',
        )


def client_of(address: Address, options: Mapping[str, str], make: Callable[[], tuple[Any, Connection]]) -> Client:
    """The client of an address' bucket with these options, made by ``make`` where there is none yet."""
    key = (address.root, tuple(sorted(options.items())))
    with _clients_lock:
        if key not in _clients:
            store, connection = make()
            _clients[key] = Client(store, connection)
        return _clients[key]
