"""Connections that are waited for: sockets that stay open between requests, and the pool of them.

The problem: most of what a small request costs a client is system calls and waking up. The idea: one call sends head
and body, one receives the whole reply where it fits. The socket blocks, and the kernel keeps its timeout (SO_RCVTIMEO),
so that Python does not poll before each call. TLS needs Python's own timeouts.

Invariants: a connection is used by one thread at a time, and goes back to the pool only after a whole reply that leaves
it in order. No more than a number of them is open at once. Connections of a process are not used by its forks.
"""

from __future__ import annotations

import os
import socket
import ssl
import struct
import threading
import time
from collections import deque
from contextlib import suppress

from headwater.base.errors import ServerError
from headwater.serving.client.address import Address
from headwater.serving.client.reply import Reply, ReplyReader
from headwater.serving.frame_view import Bytes

__all__ = ["Connection", "ConnectionLost", "Pool"]

_SLACK_S = 0.05
"""A timeout that is off by less than this is left as it is."""


class ConnectionLost(Exception):
    """The connection ended; ``unanswered`` says that nothing of a reply had come."""

    def __init__(self, why: str, *, unanswered: bool) -> None:
        super().__init__(why)
        self.unanswered = unanswered


class Connection:
    """One open connection."""

    __slots__ = ("_reader", "_socket", "_timeout_s", "_tls", "is_used")

    def __init__(self, address: Address, timeout_s: float, most_bytes: int) -> None:
        self.is_used = False
        self._timeout_s = -1.0
        made = socket.create_connection((address.host, address.port), timeout=max(timeout_s, 0.001))
        try:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._tls = address.tls is not None
            if address.tls is not None:
                made = address.tls.wrap_socket(made, server_hostname=address.host)
            else:
                made.settimeout(None)
        except BaseException:
            made.close()
            raise
        self._socket: socket.socket = made
        self._reader = ReplyReader(most_bytes)

    def exchange(self, head: bytes, body: Bytes, deadline: float) -> Reply:
        """Send a request and receive its reply; a TimeoutError, ConnectionLost or ValueError where that fails."""
        self._limit(deadline - time.monotonic())
        self.is_used = True
        why = self._send(head, body)
        reader, receive = self._reader, self._socket.recv_into
        while True:
            try:
                count = receive(reader.buffer())
            except (BlockingIOError, TimeoutError):
                raise TimeoutError from None
            except (OSError, ssl.SSLError) as error:
                raise ConnectionLost(why or _why(error), unanswered=reader.is_idle) from None
            if count == 0:
                unanswered = reader.is_idle
                try:
                    return reader.ended()
                except ValueError as error:
                    raise ConnectionLost(why or str(error), unanswered=unanswered) from None
            reply = reader.received(count)
            if reply is not None:
                return reply
            self._limit(deadline - time.monotonic())

    def _send(self, head: bytes, body: Bytes) -> str | None:
        """Send everything; if the server has closed its side, say so: it may have answered before that."""
        try:
            if self._tls:
                self._socket.sendall(b"".join((head, body)))
                return None
            sent = self._socket.sendmsg((head, body))
            if sent < len(head) + len(body):
                self._socket.sendall(memoryview(b"".join((head, body)))[sent:])
        except (BlockingIOError, TimeoutError):
            raise TimeoutError from None
        except (ConnectionError, ssl.SSLError) as error:
            return _why(error)
        return None

    def _limit(self, left_s: float) -> None:
        """Let the next system call wait no longer than that."""
        if left_s <= 0:
            raise TimeoutError
        if abs(left_s - self._timeout_s) < _SLACK_S and left_s > 2 * _SLACK_S:
            return
        if self._tls:
            self._socket.settimeout(left_s)
        else:
            seconds, rest = divmod(max(left_s, 0.001), 1)
            value = struct.pack("@ll", int(seconds), int(rest * 1e6))
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, value)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, value)
        self._timeout_s = left_s

    @property
    def is_alive(self) -> bool:
        """Whether the server has neither closed it nor sent anything that was not asked for."""
        try:
            self._socket.setblocking(False)
            self._socket.recv(1) if self._tls else self._socket.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except (OSError, ssl.SSLError):
            return False
        finally:
            self._timeout_s = -1.0
            self._socket.settimeout(None)
        return False

    def close(self) -> None:
        """Close it; never an error."""
        with suppress(OSError):
            self._socket.close()


class Pool:
    """The connections of one client."""

    def __init__(self, address: Address, *, limit: int, connect_s: float, most_bytes: int) -> None:
        self._address, self._limit, self._connect_s, self._most_bytes = address, limit, connect_s, most_bytes
        self._idle: deque[Connection] = deque()
        self._open = self._waiting = 0
        self._freed = threading.Condition(threading.Lock())
        self._process = os.getpid()
        self.is_closed = False

    def take(self, deadline: float) -> Connection:
        """An idle connection, or a new one; waits where there are as many as there may be."""
        if self._process != os.getpid():
            self._forget()
        try:
            return self._idle.pop()
        except IndexError:
            return self._wait(deadline) or self._connect(deadline)

    def _wait(self, deadline: float) -> Connection | None:
        with self._freed:
            while True:
                self._waiting += 1
                try:
                    if self._idle:
                        return self._idle.pop()
                    if self._open < self._limit:
                        self._open += 1
                        return None
                    left = deadline - time.monotonic()
                    if left <= 0 or not self._freed.wait(left):
                        raise TimeoutError
                except IndexError:
                    continue  # somebody was quicker
                finally:
                    self._waiting -= 1

    def _connect(self, deadline: float) -> Connection:
        try:
            return Connection(self._address, min(self._connect_s, deadline - time.monotonic()), self._most_bytes)
        except BaseException as error:
            self._release()
            if isinstance(error, TimeoutError):
                raise ServerError.unreachable(
                    self._address.url, f"no connection within {self._connect_s:g} s"
                ) from None
            if isinstance(error, OSError):
                raise ServerError.unreachable(self._address.url, _why(error)) from None
            raise

    def give_back(self, connection: Connection) -> None:
        """Keep a connection for the next request."""
        self._idle.append(connection)
        if self.is_closed:
            self.close()
        if self._waiting:
            with self._freed:
                self._freed.notify()

    def discard(self, connection: Connection) -> None:
        """Close a connection, and make room for another."""
        connection.close()
        self._release()

    def clear(self) -> None:
        """Close all idle connections: one of them turned out to be closed by the server, so they may all be."""
        while self._idle:
            try:
                self.discard(self._idle.pop())
            except IndexError:
                return

    def close(self) -> None:
        """Close what is idle now, and what is in use when it comes back."""
        self.is_closed = True
        self.clear()

    def _release(self) -> None:
        with self._freed:
            self._open -= 1
            self._freed.notify()

    def _forget(self) -> None:
        """Begin anew in a forked process: the sockets are the parent's, too,
        so they are closed here without a word to the server.
        """
        idle, self._idle = self._idle, deque()
        self._freed = threading.Condition(threading.Lock())
        self._open = self._waiting = 0
        self._process = os.getpid()
        for connection in idle:
            connection.close()

    def __del__(self) -> None:
        if "_idle" in self.__dict__:
            for connection in self._idle:
                connection.close()


def _why(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__
