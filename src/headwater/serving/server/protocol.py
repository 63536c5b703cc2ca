"""The way below ASGI: uvicorn's protocol on httptools, which answers plain fetches itself.

The problem: of the time that a fetch of 100 keys takes, most is spent on a task, a scope, two events and a response
object for each request. The idea: uvicorn's own protocol class stays in charge of connections, keep-alive, pipelining,
flow control and the end of the server, and the parser stays httptools. Only when a request is a plain fetch does this
class collect its body and write the whole answer at once, from the callback of the parser. Everything else goes on to
uvicorn and to the application.

A request is plain if it is a POST to the path of a fetch, written plainly, with one Content-Length of moderate size and
no other framing, no ``Expect`` or ``Upgrade``, and no header twice. It is answered here only if no other answer is
under way on the connection and its peer reads what is written, so answers never overtake each other and memory stays
bounded; otherwise it is queued by uvicorn like any other. What is answered and how is decided by `fetching` alone.

Clients send heads (request line and headers) that are the same byte by byte, but for the length of the body. A head
that httptools has read, and that was plain, is remembered by its bytes, and when the same bytes come again as one whole
request, with nothing before it and nothing behind it, what httptools found is used again instead of having it read anew
(`head_memory`). The same bytes mean the same, and the parser, which has not seen them, stays where it was: between two
messages.

This class also guards what uvicorn leaves open: the size of headers and of whole messages, requests that never become
complete (`sweep`), trailers, upgrades with a body, and a parser error behind requests that are still being answered.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.utils import get_client_addr

from headwater.base.errors import LimitError, RequestError
from headwater.serving.server.head_memory import END_OF_HEAD, LONGEST_HEAD
from headwater.serving.server.refusal import refuse
from headwater.serving.server.reply import STATUS_LINES, Reply, header_lines

if TYPE_CHECKING:
    import asyncio

    from headwater.serving.server.fetching import FetchHead, Fetching
    from headwater.serving.server.service import Service

__all__ = ["FetchProtocol", "sweep"]

_MOST_AT_ONCE = 256 << 10
"""Bodies up to this size are answered here; larger ones take long enough to be computed in a thread."""
_FRAMING_BYTES = 4 << 20
"""What chunk headers and trailers of a body may amount to, beside the limit of headers."""
_JOINED_BYTES = 16 << 10
"""Answers up to this size are copied behind their headers; larger ones are written by one call with two buffers."""
_LEAVING_S = 0.5
_NEW_LEAVING_S = 2.0
"""When the server is being stopped, connections without a request are ended after so long, since one may be on its way;
those that were just made are made for one."""
_NEVER_THE_SAME = (b"x-request-id", b"traceparent")


class FetchProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        service: Service = self.app_state["service"]
        self.service = service
        self.fetching: Fetching = service.fetching
        self.takes_fetches = service.options.fast_path
        self.heads = service.heads
        limits = service.options.limits
        self.max_header_bytes = limits.max_header_bytes
        self.max_body_bytes = limits.max_body_bytes
        self.most_at_once = min(_MOST_AT_ONCE, limits.max_body_bytes)
        self.is_surplus = False
        """Whether there were too many connections already when this one was made."""
        self.began = 0.0
        """When the request that is not complete yet began, or the connection if there was none; 0 if there is none."""
        self.idle_since = 0.0
        """When the last answer was written by this class and nothing came since; 0 otherwise."""
        # The request that is being read.
        self.in_head = False
        self.is_passed_on = False
        self.has_passed_on = False
        self.chunk_bytes = 0
        self.wire_bytes = 0
        self.body_bytes = 0
        self.head: FetchHead | None = None
        """What a plain fetch asks for, while its body is being read."""
        self.facts: dict[bytes, bytes] = {}
        self.parts: list[bytes] = []
        self.last: FetchHead | None = None
        """What the last plain fetch asked for that was answered."""
        self.answered = 0
        """How many plain fetches were answered."""
        self.is_leaving = False
        """Whether the next answer is the last, since the server is being stopped."""
        self.is_dead = False
        """Whether nothing that comes on this connection is looked at any more."""
        self.failure: Reply | None = None
        """What is to be written, before the connection ends, behind answers that are under way."""

    # -- the connection --------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.began = time.monotonic()
        most = self.service.options.limits.max_concurrency
        self.is_surplus = len(self.connections) > most
        if len(self.connections) > 2 * most:
            self.is_dead = True
            transport.abort()

    def data_received(self, data: bytes) -> None:
        if self.idle_since:  # nothing is being read, and nothing is being answered
            end = data.find(END_OF_HEAD, 0, LONGEST_HEAD) + 4
            known = self.heads.known.get(data[:end])
            if known is not None and len(data) == end + known[1]:
                reply = self.fetching.reply(known[0], data[end:])
                if reply is not None:
                    self.finish(reply, None, "1.1")
                    return
        if self.is_dead:
            return
        if self.timeout_keep_alive_task is not None:
            self._unset_keepalive_if_required()
        self.idle_since = 0.0
        is_first = not self.began
        if is_first:
            self.began = time.monotonic()
        self.chunk_bytes = len(data)
        self.wire_bytes += self.chunk_bytes
        answered = self.answered
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # The request is answered as if it had not asked for another protocol; what follows it is not looked at.
            self.is_dead = True
            self.began = 0.0
            return
        except httptools.HttpParserError as error:
            if not self.is_dead:
                self.end_with(refuse(RequestError.malformed(str(error))))
            return
        if self.began:
            if not self.is_dead:
                self.check_size()
        elif is_first and self.answered == answered + 1 and self.chunk_bytes > self.body_bytes:
            self.remember(data)

    def remember(self, data: bytes) -> None:
        """Keep the head of a request that came as one piece, with nothing else in it, and was answered here."""
        head, facts = self.last, self.facts
        if head is None or b"connection" in facts or not facts.keys().isdisjoint(_NEVER_THE_SAME):
            return
        if data.startswith(b"POST /") and not self.is_dead and self.parser.get_http_version() == "1.1":
            self.heads.remember(data, head, self.body_bytes)

    def check_size(self) -> None:
        """End the connection if a message that is still being read is larger than it may be."""
        most = self.max_header_bytes if self.in_head else 2 * self.max_header_bytes + _FRAMING_BYTES + self.body_bytes
        if self.wire_bytes > most:
            self.end_with(refuse(LimitError.headers(self.max_header_bytes)))

    def end_with(self, reply: Reply) -> None:
        """Write an answer to the request that is being read and end the connection, after the answers under way."""
        self.is_dead = True
        self.began = 0.0
        self.head, self.parts = None, []
        reply.close = True
        cycle = self.cycle
        if self.is_passed_on:  # the application has the request already, or will have it
            if self.pipeline and self.pipeline[0][0] is cycle:
                self.pipeline.popleft()
                self.failure = reply
            elif cycle.response_started:
                self.transport.close()
            else:
                cycle.disconnected = True
                cycle.message_event.set()
                self.write_last(reply)
        elif cycle is not None and not cycle.response_complete:
            self.failure = reply
            self.flow.pause_reading()
        else:
            self.write_last(reply)

    def write_last(self, reply: Reply) -> None:
        self.fetching.nobody.answered(reply.status)
        self.server_state.total_requests += 1
        self.write(reply, None)

    def on_response_complete(self) -> None:
        if self.failure is not None and not self.pipeline:
            failure, self.failure = self.failure, None
            self.write_last(failure)
            return
        super().on_response_complete()
        if self.is_dead and not self.pipeline and not self.transport.is_closing():
            self.transport.close()

    def shutdown(self) -> None:
        """End the connection after the requests that are under way, and after one that may be on its way."""
        self.is_leaving = True
        if self.cycle is not None and not self.cycle.response_complete:
            super().shutdown()
        self.loop.call_later(_LEAVING_S if self.has_answered else _NEW_LEAVING_S, self.leave)

    @property
    def has_answered(self) -> bool:
        """Whether this connection had a request already, of either way."""
        return self.answered > 0 or self.has_passed_on

    def leave(self) -> None:
        """End the connection if nothing is asked on it now."""
        if not self.is_passed_on and self.head is None and (self.cycle is None or self.cycle.response_complete):
            self.transport.close()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.flow.read_paused and (self.cycle is None or self.cycle.response_complete):
            self.flow.resume_reading()

    # -- what the parser finds -------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self.idle_since = 0.0
        self.url = b""
        self.headers = []
        self.in_head = True
        self.is_passed_on = False
        self.wire_bytes = self.body_bytes = 0
        if not self.began:
            self.began = time.monotonic()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.in_head:  # and not in the trailers
            self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self.in_head = False
        if self.is_dead:
            return
        headers = self.headers
        facts = self.facts = dict(headers)
        version = self.parser.get_http_version()
        if (version != "1.1" or b"host" not in facts) and version != "1.0":
            why = "it has no Host header" if version == "1.1" else f"its version is {version}"
            self.end_with(refuse(RequestError.malformed(why)))
            return
        if self.chunk_bytes + self.wire_bytes > self.max_header_bytes or self.is_surplus:
            problem = self.problem_of_head()
            if problem is not None:
                self.end_with(refuse(problem))
                return
        length = facts.get(b"content-length", b"")
        if (
            self.takes_fetches
            and len(facts) == len(headers)  # none is there twice
            and 0 < len(length) < 10
            and int(length) <= self.most_at_once
            and b"expect" not in facts
            and b"transfer-encoding" not in facts
            and b"upgrade" not in facts
            and self.parser.get_method() == b"POST"
            and not self.flow.write_paused
            and (self.cycle is None or self.cycle.response_complete)
        ):
            target = self.fetching.target(self.url)
            if target is not None:
                self.head = self.fetching.head(target, facts)
                self.parts = []
                return
        self.pass_on(facts)

    def problem_of_head(self) -> LimitError | None:
        """What is known to be too much before the body has come."""
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        most = self.service.options.limits.max_concurrency
        if size > self.max_header_bytes:
            return LimitError.headers(self.max_header_bytes)
        return LimitError.concurrency(most) if self.is_surplus and len(self.connections) > most else None

    def pass_on(self, facts: dict[bytes, bytes]) -> None:
        """Let uvicorn and the application answer."""
        length = facts.get(b"content-length", b"0")
        if self.parser.should_upgrade() and (b"transfer-encoding" in facts or length.strip(b"0")):
            self.end_with(refuse(RequestError.malformed("an upgrade with a body")))
            return
        if int(length) > self.max_body_bytes:
            self.end_with(refuse(LimitError.body(self.max_body_bytes)))
            return
        headers, url = self.headers, self.url
        super().on_message_begin()
        self.url = url
        self.headers.extend(headers)
        self.expect_100_continue = facts.get(b"expect", b"").lower() == b"100-continue"
        super().on_headers_complete()
        self.is_passed_on = self.has_passed_on = True
        if self.is_leaving or self.parser.should_upgrade():
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        if self.is_dead:
            return
        self.body_bytes += len(body)
        if self.head is not None:
            self.parts.append(body)
            return
        if self.body_bytes > self.max_body_bytes:
            self.end_with(refuse(LimitError.body(self.max_body_bytes)))
            return
        super().on_body(body)

    def on_message_complete(self) -> None:
        self.began = 0.0
        if self.is_dead:
            return
        head = self.head
        if head is None:
            self.is_passed_on = False
            super().on_message_complete()
            return
        self.head = None
        parts = self.parts
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        self.parts = []
        reply = self.fetching.reply(head, body)
        if reply is None:  # it has to be waited for
            self.last = None
            self.pass_on(self.facts)
            if not self.is_dead:
                self.is_passed_on = False
                super().on_body(body)
                super().on_message_complete()
            return
        self.last = head
        version = self.parser.get_http_version()
        if version == "1.0" or not self.parser.should_keep_alive():
            reply.close = True
        self.finish(reply, head.identity, version)

    def finish(self, reply: Reply, identity: bytes | None, http_version: str) -> None:
        """Write the answer to a plain fetch, and count it as uvicorn does."""
        if self.is_leaving:
            reply.close = True
        self.answered += 1
        self.server_state.total_requests += 1
        if self.access_log:
            self.log_access(reply.status, http_version)
        self.write(reply, identity)

    def write(self, reply: Reply, identity: bytes | None) -> None:
        """Write a whole answer at once."""
        if self.transport.is_closing():
            return
        body = reply.body
        lines = header_lines(reply.headers) if reply.lines is None else reply.lines
        head = b"%b%b%bcontent-length: %d\r\n%b%b\r\n" % (
            STATUS_LINES[reply.status],
            self.service.default_lines(self.server_state.default_headers),
            lines,
            len(body),
            b"" if identity is None else b"x-request-id: %b\r\n" % identity,
            b"connection: close\r\n" if reply.close else b"",
        )
        if len(body) <= _JOINED_BYTES:
            self.transport.write(head + body)
        else:
            self.transport.writelines((head, body))
        if reply.close:
            self.is_dead = True
            self.transport.close()
            return
        if self.flow.write_paused:
            self.flow.pause_reading()
        self.idle_since = time.monotonic()

    def log_access(self, status: int, http_version: str) -> None:
        client = get_client_addr({"client": self.client})  # type: ignore[arg-type]
        url = self.url.decode("ascii")
        self.access_logger.info('%s - "%s %s HTTP/%s" %d', client, "POST", url, http_version, status)


def sweep(connections: set[Any], timeout_s: float, keep_alive_s: float) -> None:
    """End connections whose request does not become complete, and those on which nothing is asked any more.

    uvicorn's own timer ends the latter after answers of the application.
    """
    now = time.monotonic()
    for one in list(connections):
        if not isinstance(one, FetchProtocol) or one.transport is None or one.transport.is_closing():
            continue
        if one.began and now - one.began > timeout_s:
            one.end_with(refuse(LimitError.too_slow(timeout_s)))
        elif one.idle_since and now - one.idle_since > keep_alive_s:
            one.transport.close()
