"""Calls: what the methods of both clients send, and what they make of the reply. Nothing here waits.

A `Call` is the head of a request up to its length, the body, whether it may be sent twice, and the function that reads
the reply. Heads of fetches are kept, since a client asks the same of a table again and again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

from headwater.base.errors import HeadwaterError, InputError, ServerError, UnsupportedError
from headwater.base.errors.codes import class_of
from headwater.base.frontier import Frontier
from headwater.serving.answer import Answer
from headwater.serving.client.address import Address
from headwater.serving.client.key_frame import key_body, rows_body
from headwater.serving.client.reply import Reply
from headwater.serving.frame_view import Bytes

__all__ = ["Call", "Calls", "Missing", "error_of", "retry_after_s"]

ARROW = "application/vnd.apache.arrow.stream"
JSON = "application/json"
_ARROW_BYTES = ARROW.encode()
_LENGTH = b"content-length: "
_KEPT = 256
_T = TypeVar("_T")
Missing = Literal["null", "drop"]
Columns = Sequence[str] | None


class Call(NamedTuple, Generic[_T]):
    """A request, and what its reply means."""

    head: bytes
    body: Bytes
    repeatable: bool
    read: Callable[[Reply], _T]
    extra_s: float = 0.0
    """How long the server may wait before it answers, on purpose."""


class Calls:
    """The requests to one server."""

    def __init__(self, address: Address, wait_s: float) -> None:
        self.address = address
        self._wait_s = wait_s
        self._lines = address.headers
        self._fetches: dict[tuple[object, ...], tuple[bytes, Callable[[Reply], Answer]]] = {}

    # -- fetching --------------------------------------------------------------------------------------------------

    def fetch(
        self,
        table: str,
        keys: Any,
        columns: Columns,
        *,
        found: bool,
        status: bool,
        event_time: bool,
        missing: Missing,
        min_frontier: Frontier | str | None,
        wait: float | None,
        names: Sequence[str] = (),
    ) -> Call[Answer]:
        """Rows of one table."""
        if wait is None and min_frontier is not None:
            wait = self._wait_s
        asked = (
            table,
            None if columns is None else tuple(columns),
            found,
            status,
            event_time,
            missing,
            min_frontier,
            wait,
        )
        known = self._fetches.get(asked)
        if known is None:
            known = self._fetch_head(*asked)
            if len(self._fetches) >= _KEPT:
                self._fetches = {}
            self._fetches[asked] = known
        head, read = known
        body = key_body(keys, names)
        return Call(b"%b%d\r\n\r\n" % (head, len(body)), body, True, read, wait or 0.0)

    def _fetch_head(
        self,
        table: str,
        columns: tuple[str, ...] | None,
        found: bool,
        status: bool,
        event_time: bool,
        missing: Missing,
        min_frontier: Frontier | str | None,
        wait: float | None,
    ) -> tuple[bytes, Callable[[Reply], Answer]]:
        options = _options(found, status, event_time, min_frontier, wait)
        if missing not in ("null", "drop"):
            raise InputError.bad_argument("missing", missing, "null or drop")
        if missing != "null":
            options["missing"] = missing
        query = urlencode(options, quote_via=quote)
        if columns is not None:
            _check_columns(columns)
            # The commas stay as they are, so that the server sees at once what is meant.
            named = "columns=" + ",".join(quote(column, safe="") for column in columns)
            query = f"{named}&{query}" if query else named
        path = f"/v1/tables/{_part(table)}/fetch" + (f"?{query}" if query else "")

        # Replies whose heads are the same have the same headers, and these mean the same.
        last: tuple[dict[bytes, bytes], str, str] | None = None

        def read(reply: Reply) -> Answer:
            nonlocal last
            if last is None or last[0] is not reply.headers:
                self._check_media(reply)
                version = reply.text(b"x-version")
                versions = f"{table}@{version}" if version.isdigit() else version
                last = reply.headers, versions, reply.text(b"x-frontier")
            _, versions, frontier = last
            return self._answer(reply, versions, frontier)

        return self._head("POST", path, ARROW, ARROW) + _LENGTH, read

    def fetch_many(
        self,
        tables: Mapping[str, Columns] | Sequence[str],
        keys: Any,
        *,
        found: bool,
        status: bool,
        event_time: bool,
        min_frontier: Frontier | str | None,
        wait: float | None,
    ) -> Call[Answer]:
        """Rows of several tables, of one frontier."""
        if wait is None and min_frontier is not None:
            wait = self._wait_s
        named = dict(tables) if isinstance(tables, Mapping) else dict.fromkeys(tables)
        if not named or isinstance(tables, str):
            raise InputError.bad_argument("tables", tables, "tables with their columns, or None for all of them")
        asked = {table: None if columns is None else list(columns) for table, columns in named.items()}
        options = _options(found, status, event_time, min_frontier, wait)
        query = urlencode({"tables": json.dumps(asked, separators=(",", ":")), **options}, quote_via=quote)

        def read(reply: Reply) -> Answer:
            self._check_media(reply)
            return self._answer(reply, reply.text(b"x-version"), reply.text(b"x-frontier"))

        return self._with_body("POST", f"/v1/fetch?{query}", ARROW, key_body(keys), read, accept=ARROW, wait=wait)

    def _check_media(self, reply: Reply) -> None:
        media = reply.headers.get(b"content-type", b"")
        if not media.startswith(_ARROW_BYTES):
            raise self._bad(f"it is {media.decode('latin-1') or 'nothing'}, and no Arrow stream")

    def _answer(self, reply: Reply, versions: str, frontier: str) -> Answer:
        try:
            return Answer(reply.body, frontier=frontier, versions=versions)
        except (InputError, UnsupportedError) as error:
            raise self._bad(error.message) from None

    def _bad(self, why: str) -> ServerError:
        return ServerError.bad_response(self.address.url, why)

    # -- everything else -------------------------------------------------------------------------------------------

    def get(self, path: str, read: Callable[[Any], _T]) -> Call[_T]:
        """What lies at a path, as JSON."""

        def understand(reply: Reply) -> _T:
            try:
                return read(self._document(reply))
            except (KeyError, TypeError, ValueError):
                raise self._bad("its JSON has another form") from None

        return Call(self._head("GET", path, None, JSON) + b"\r\n", b"", True, understand)

    def get_text(self, path: str) -> Call[str]:
        """What lies at a path, as text."""
        head = self._head("GET", path, None, "text/plain") + b"\r\n"
        return Call(head, b"", True, lambda reply: reply.body.decode("utf-8", "replace"))

    def table(self, table: str, *parts: str) -> str:
        """The path of a table."""
        return "/".join((f"/v1/tables/{_part(table)}", *parts))

    def write(self, table: str, rows: Any) -> Call[dict[str, Any]]:
        return self._with_body("PUT", self.table(table, "rows"), ARROW, rows_body(rows), self._object)

    def delete(self, table: str, keys: Any, names: Sequence[str] = ()) -> Call[dict[str, Any]]:
        return self._with_body("POST", self.table(table, "rows", "delete"), ARROW, key_body(keys, names), self._object)

    def create(self, table: str, definition: Mapping[str, Any]) -> Call[dict[str, Any]]:
        return self._with_body("PUT", self.table(table), JSON, json.dumps(definition).encode(), self._object)

    def drop(self, table: str) -> Call[None]:
        return self._with_body("DELETE", self.table(table), JSON, b"", lambda _: None)

    def _with_body(
        self,
        method: str,
        path: str,
        media: str,
        body: Bytes,
        read: Callable[[Reply], _T],
        *,
        accept: str = JSON,
        wait: float | None = None,
    ) -> Call[_T]:
        head = self._head(method, path, media if len(body) else None, accept) + b"%b%d\r\n\r\n" % (_LENGTH, len(body))
        return Call(head, body, accept == ARROW, read, wait or 0.0)

    def _head(self, method: str, path: str, media: str | None, accept: str) -> bytes:
        """The head of a request, but for the length of its body and the empty line."""
        said = f"content-type: {media}\r\n" if media else ""
        first = f"{method} {self.address.prefix}{path} HTTP/1.1\r\n"
        return first.encode("ascii") + self._lines + f"accept: {accept}\r\n{said}".encode("ascii")

    def _document(self, reply: Reply) -> Any:
        try:
            return json.loads(reply.body)
        except ValueError:
            raise self._bad("it is no JSON") from None

    def _object(self, reply: Reply) -> dict[str, Any]:
        found = self._document(reply)
        if not isinstance(found, dict):
            raise self._bad("it is no JSON object")
        return found


def error_of(reply: Reply, url: str) -> HeadwaterError:
    """The error that a server answered with: of the class that has its code, with what it says."""
    try:
        facts = json.loads(reply.body)
        code, message = facts["code"], facts["message"]
        where, hint = facts.get("where"), facts.get("hint")
        is_known = all(isinstance(one, str) for one in (code, message))
    except (ValueError, KeyError, TypeError):
        is_known = False
    if not is_known:
        text = reply.body[:200].decode("utf-8", "replace").strip()
        return ServerError.failed(url, reply.status, " ".join(text.split()) or "nothing more")
    kind = class_of(code) or ServerError
    return kind(
        code, message, where=where if isinstance(where, str) else url, hint=hint if isinstance(hint, str) else None
    )


def retry_after_s(reply: Reply) -> float | None:
    """When a server that is busy asks to come back; None where it does not, or where it is not busy."""
    text = reply.headers.get(b"retry-after", b"")
    return float(text) if reply.status in (429, 503) and text.isdigit() and len(text) < 10 else None


def _options(
    found: bool,
    status: bool,
    event_time: bool,
    min_frontier: Frontier | str | None,
    wait: float | None,
) -> dict[str, str]:
    """The options of a fetch that differ from what a server takes for granted."""
    options: dict[str, str] = {}
    if not found:
        options["found"] = "0"
    if status:
        options["status"] = "1"
    if event_time:
        options["event_time"] = "1"
    if min_frontier is not None:
        options["min_frontier"] = str(Frontier.parse(min_frontier) if isinstance(min_frontier, str) else min_frontier)
    if wait is not None:
        if not isinstance(wait, (int, float)) or not 0 <= wait < 1e6:
            raise InputError.bad_argument("wait", wait, "a number of seconds")
        options["wait"] = f"{wait:g}"
    return options


def _check_columns(columns: tuple[str, ...]) -> None:
    for column in columns:
        if not isinstance(column, str) or "," in column or not column:
            raise InputError.bad_argument("columns", column, "names of columns, without a comma in them")


def _part(table: str) -> str:
    if not isinstance(table, str) or not table or table in (".", ".."):
        raise InputError.bad_name(str(table))
    return quote(table, safe="")
