"""Long replies of Spark's JVM without a pause of 40 ms each.

The JVM's side of py4j writes a reply through a buffer of 8 KiB, so a longer one (an error with its Java trace, a plan as JSON) leaves in two
pieces. The JVM's kernel holds the second piece until the first is acknowledged, and this side's kernel waits 40 ms before it acknowledges
anything, in the hope of something to send along. The tests get thousands of such replies. Here a connection acknowledges at once.
"""

from __future__ import annotations

import socket
from typing import Any

__all__ = ["acknowledge_at_once"]

_AT_ONCE = getattr(socket, "TCP_QUICKACK", None)  # Linux only


class _Replies:
    """The stream that py4j reads replies from."""

    def __init__(self, stream: Any, connection: socket.socket) -> None:
        self._stream, self._connection = stream, connection

    def readline(self) -> bytes:
        # Each time, because the kernel falls back to waiting; after the request was sent, because sending makes it fall back.
        assert _AT_ONCE is not None
        self._connection.setsockopt(socket.IPPROTO_TCP, _AT_ONCE, 1)
        line: bytes = self._stream.readline()
        return line

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def acknowledge_at_once() -> None:
    """Have all connections that this process makes to a JVM from now on acknowledge what they receive at once."""
    from py4j.clientserver import ClientServerConnection

    connect = ClientServerConnection._authenticate_connection
    if _AT_ONCE is None or getattr(connect, "at_once", False):
        return

    def authenticate(connection: Any) -> None:
        connection.stream = _Replies(connection.stream, connection.socket)
        connect(connection)

    authenticate.at_once = True  # type: ignore[attr-defined]
    ClientServerConnection._authenticate_connection = authenticate
