"""A running object store of a test: where it is, and what a client needs to know."""

from __future__ import annotations

import contextlib
import itertools
import secrets
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from headwater.base.errors import SetupError
from headwater.base.storage import open_storage
from headwater.testing.guarded_process import last_line, stop_guarded

__all__ = ["ObjectServer", "running"]

_READY_SECONDS = 60.0
_ATTEMPTS = 3


class ObjectServer(ABC):
    """A server with one bucket: ``url("name")`` is a fresh prefix, ``options`` are the storage options."""

    scheme = ""
    service = ""

    def __init__(self, endpoint: str, bucket: str, options: Mapping[str, str], secret: str) -> None:
        self.endpoint = endpoint
        self.bucket = bucket
        self.options: dict[str, str] = dict(options)
        self.secret = secret
        """What no message may show."""
        self._count = itertools.count(1)

    def url(self, prefix: str = "test") -> str:
        """A location in the bucket that no other call has been given: ``s3://bucket/prefix-1-9f3c``."""
        return f"{self.scheme}://{self.bucket}/{prefix}-{next(self._count)}-{secrets.token_hex(4)}"

    @abstractmethod
    def with_secret(self, secret: str) -> dict[str, str]:
        """The options with another secret."""

    @abstractmethod
    def with_endpoint(self, endpoint: str) -> dict[str, str]:
        """The options of the same account at another endpoint, ``http://host:port``."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.endpoint}, bucket={self.bucket!r})"


S = TypeVar("S", bound=ObjectServer)


@contextmanager
def running(
    start: Callable[[Path], tuple[S, subprocess.Popen[bytes]]], make_bucket: Callable[[S], None] | None = None
) -> Iterator[S]:
    """A server that ``start`` starts in a folder; it ends with the block, and its data with it."""
    with tempfile.TemporaryDirectory(prefix="hw-server-", ignore_cleanup_errors=True) as folder, ExitStack() as stack:
        for attempt in range(1, _ATTEMPTS + 1):
            # Another process may take a port between choosing it and using it: choose again.
            data = Path(folder) / str(attempt)
            data.mkdir()
            server, process = start(data)
            stack.callback(stop_guarded, process)
            if _wait_until_ready(server, process, make_bucket):
                break
            stop_guarded(process)
            if attempt == _ATTEMPTS:
                raise SetupError.server_failed(server.service, last_line(data))
        yield server


def _wait_until_ready(
    server: S, process: subprocess.Popen[bytes], make_bucket: Callable[[S], None] | None = None
) -> bool:
    deadline = time.monotonic() + _READY_SECONDS
    port = int(server.endpoint.partition("://")[2].partition("/")[0].rpartition(":")[2])
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            break
        time.sleep(0.05)
    while time.monotonic() < deadline and process.poll() is None:
        # A port may answer before the server can take data.
        with contextlib.suppress(OSError, LookupError):
            if make_bucket is not None:
                make_bucket(server)
            open_storage(f"{server.scheme}://{server.bucket}/ready", server.options).put("ready", b"")
            return True
        time.sleep(0.1)
    return False
