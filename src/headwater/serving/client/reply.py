"""Replies: from the bytes of a connection to status, headers and body, without a socket in it.

The problem: the head of a reply is small and almost always the same, and its body is large and wanted in one piece that
can be written to (a tensor shares it). The idea: bytes are received into a buffer until the head is complete; httptools
parses it, unless it is byte for byte the head of the reply before. A body of known length is then received where it
stays, by the connection itself. Bodies in chunks, or that end with the connection, go through httptools.

Invariants: a reply ends where its head says, and nothing that came behind it is ever taken for another: such a
connection is not used again. Heads and bodies have a largest size. Whatever does not fit is a ValueError.
"""

from __future__ import annotations

from dataclasses import dataclass

import httptools

__all__ = ["Reply", "ReplyReader"]

_BUFFER_BYTES = 256 << 10
_HEAD_BYTES = 64 << 10
_KEPT_HEADS = 64
_END = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class _Head:
    """What a head says: ``length`` is None where the body is in chunks or ends with the connection."""

    status: int
    headers: dict[bytes, bytes]
    length: int | None
    keep_alive: bool


class Reply:
    """A whole reply; the names of headers are in lower case."""

    __slots__ = ("body", "headers", "keep_alive", "status")

    def __init__(self, status: int, headers: dict[bytes, bytes], body: bytearray, *, keep_alive: bool) -> None:
        self.status, self.headers, self.body, self.keep_alive = status, headers, body, keep_alive

    def text(self, header: bytes) -> str:
        """The value of a header; empty where there is none."""
        return self.headers.get(header, b"").decode("utf-8", "replace")


class _Parser:
    """What httptools calls."""

    def __init__(self) -> None:
        self.headers: dict[bytes, bytes] = {}
        self.body = bytearray()
        self.is_complete = False

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        self.headers[name] = value if name not in self.headers else self.headers[name] + b", " + value

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.is_complete = True


class ReplyReader:
    """Reads the replies of one connection, one after the other: receive into `buffer`, then say `received`."""

    __slots__ = (
        "_body",
        "_filled",
        "_head",
        "_heads",
        "_known",
        "_known_bytes",
        "_known_total",
        "_most_bytes",
        "_parser",
        "_scratch",
        "_view",
        "_wire",
    )

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._scratch = bytearray(_BUFFER_BYTES)
        self._view = memoryview(self._scratch)
        self._heads: dict[bytes, _Head] = {}
        """Heads that were parsed: where answers differ in their length, a few come again and again."""
        self._known: _Head | None = None
        self._known_bytes = b""
        self._known_total = -1
        """The bytes of a whole reply with the known head; -1 where its head does not say."""
        self._reset()

    def _reset(self) -> None:
        self._filled = 0
        self._head: _Head | None = None
        self._body: bytearray | None = None
        self._parser: _Parser | None = None
        self._wire: httptools.HttpResponseParser | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing of a reply has come."""
        return self._filled == 0 and self._head is None

    def buffer(self) -> memoryview:
        """Where the next bytes go; never empty."""
        if self._body is not None:
            return memoryview(self._body)[self._filled :]
        return self._view[self._filled :] if self._head is None and self._filled else self._view

    def received(self, count: int) -> Reply | None:
        """Take note of bytes that are in the buffer now; the reply, when it is complete."""
        if self._head is None:
            if count == self._known_total and not self._filled and self._scratch.startswith(self._known_bytes):
                return self._repeated(count)
            return self._in_head(count)
        if self._body is not None:
            self._filled += count
            return self._finish(self._body, clean=True) if self._filled == len(self._body) else None
        return self._feed(bytes(self._view[:count]))

    def _repeated(self, count: int) -> Reply:
        """A whole reply that came at once, with the head of the one before."""
        head = self._known
        assert head is not None
        body = self._scratch[len(self._known_bytes) : count]
        return Reply(head.status, head.headers, body, keep_alive=head.keep_alive)

    def ended(self) -> Reply:
        """The reply that ends since the connection does; a ValueError where it should not."""
        if self._head is not None and self._parser is not None and b"transfer-encoding" not in self._head.headers:
            return self._finish(self._parser.body, clean=False)
        raise ValueError("it ended in the middle of a reply" if not self.is_idle else "it was closed")

    def _in_head(self, count: int) -> Reply | None:
        start, self._filled = max(0, self._filled - 3), self._filled + count
        at = self._scratch.find(_END, start, self._filled)
        if at < 0 or at > _HEAD_BYTES:
            if self._filled > _HEAD_BYTES:
                raise ValueError(f"its head has more than {_HEAD_BYTES:,} bytes")
            return None
        at += len(_END)
        head_bytes = bytes(self._view[:at])
        head = self._heads.get(head_bytes)
        if head is None:
            head = self._parse(head_bytes)
            if len(self._heads) >= _KEPT_HEADS:
                self._heads.clear()
            self._heads[head_bytes] = head
        behind = self._filled - at
        if 100 <= head.status < 200:  # something is still to come
            if head.status == 101:
                raise ValueError("it changes the protocol")
            self._scratch[:behind] = self._scratch[at : self._filled]
            self._reset()
            return self._in_head(behind) if behind else None
        if head is not self._known:
            self._known, self._known_bytes = head, head_bytes
            is_short = head.length is not None and head.length <= self._most_bytes
            self._known_total = at + head.length if is_short and head.length is not None else -1
        self._head = head
        if head.length is None:
            return self._feed_after(head_bytes, bytes(self._view[at : self._filled]))
        if head.length > self._most_bytes:
            raise ValueError(f"its body has {head.length:,} bytes, and {self._most_bytes:,} are the most that is taken")
        body = bytearray(head.length)
        taken = min(behind, head.length)
        body[:taken] = self._view[at : at + taken]
        if taken == head.length:
            return self._finish(body, clean=behind == taken)
        self._body, self._filled = body, taken
        return None

    def _parse(self, data: bytes) -> _Head:
        parser = _Parser()
        wire = httptools.HttpResponseParser(parser)
        try:
            wire.feed_data(data)
        except httptools.HttpParserUpgrade:
            raise ValueError("it changes the protocol") from None
        except httptools.HttpParserError as error:
            raise ValueError(f"it is no HTTP: {error}") from None
        status, headers = wire.get_status_code(), parser.headers
        length = None
        if status in (204, 304):
            length = 0
        elif b"transfer-encoding" not in headers and b"content-length" in headers:
            text = headers[b"content-length"]
            if not text.isdigit() or len(text) > 18:
                raise ValueError("its length is no number")
            length = int(text)
        return _Head(status, headers, length, wire.should_keep_alive())

    def _feed_after(self, head: bytes, data: bytes) -> Reply | None:
        """Begin with a body whose length is not known."""
        self._parser = _Parser()
        self._wire = httptools.HttpResponseParser(self._parser)
        self._wire.feed_data(head)
        return self._feed(data) if data else None

    def _feed(self, data: bytes) -> Reply | None:
        assert self._wire is not None and self._parser is not None
        try:
            self._wire.feed_data(data)
        except httptools.HttpParserError as error:
            raise ValueError(f"it is no HTTP: {error}") from None
        if len(self._parser.body) > self._most_bytes:
            raise ValueError(f"its body has more than the {self._most_bytes:,} bytes that are taken")
        return self._finish(self._parser.body, clean=True) if self._parser.is_complete else None

    def _finish(self, body: bytearray, *, clean: bool) -> Reply:
        head = self._head
        assert head is not None
        self._reset()
        return Reply(head.status, head.headers, body, keep_alive=head.keep_alive and clean)
