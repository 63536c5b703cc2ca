"""Arrow Flight over the online tables of a server: read only, for tools that speak Flight.

HTTP is the faster way to a few keys; Flight is for programs that have it already, and for reading a whole table as a
stream. A ticket is JSON, with the meaning that the body of a fetch has over HTTP::

    {"table": "spend", "keys": [1, 2, 3], "columns": ["total"], "found": true, "status": false, "missing": "null"}

Without ``keys``, a ticket stands for all rows of the table: key and columns, in no particular order. `list_flights` has
the tables, and `get_flight_info` the ticket of a table (by its path) or of a request (by its command). Tokens are sent
as the header ``authorization: Bearer …``, and have the scopes that they have over HTTP. The schema of an answer says in
its metadata which version and which frontier it is of (``headwater.version``, ``headwater.frontier``).

Invariants: nothing is written. One call reads one version. A server without tokens listens on loopback only. gRPC
starts threads when it is loaded, so a process that serves Flight must not be forked afterwards.
"""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
from pyarrow import flight

from headwater.base.errors import AccessError, HeadwaterError, InputError, LimitError, NotFoundError
from headwater.base.packages import required
from headwater.serving.server.access import Access
from headwater.serving.server.options import ServerOptions

if TYPE_CHECKING:
    from headwater.serving.server.served import Backing
    from headwater.serving.store import Following
    from headwater.serving.version import TableVersion

__all__ = ["FlightTables", "run_flight"]

_log = logging.getLogger("headwater.serve")
_FIELDS = ("table", "keys", "columns", "found", "status", "event_time", "missing")
_MIDDLEWARE = "access"
_LOOK_S = 1.0
"""How often a table on object storage is looked at."""


class _Caller(flight.ServerMiddleware):  # type: ignore[misc]
    """Who makes a call: its headers, in the form that `Access` reads."""

    def __init__(self, headers: Mapping[bytes, bytes]) -> None:
        self.headers = headers


class _Authenticate(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Refuses calls without a token that is known."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def start_call(self, info: flight.CallInfo, headers: Mapping[str, list[Any]]) -> _Caller:
        given = headers.get("authorization") or headers.get("Authorization") or []
        text = given[0] if given else b""
        sent = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else bytes(text)
        caller = _Caller({b"authorization": sent} if sent else {})
        if not self._access.is_open:
            try:
                self._access.token(caller.headers)
            except AccessError as error:
                raise flight.FlightUnauthenticatedError(str(error)) from None
        return caller


class FlightTables(flight.FlightServerBase):  # type: ignore[misc]
    """A Flight server of the tables that a server of HTTP would serve.

    Parameters
    ----------
    backing : Backing
        where the tables are: those of a lake (`headwater.serving.server.backing.LakeTables`) or of a configuration
    options : ServerOptions
        host, port (0 takes a free one: see `port`), tokens, TLS and limits, as for HTTP

    Call `serve` to answer until `shutdown` is called by another thread; both are pyarrow's.
    """

    def __init__(self, backing: Backing, options: ServerOptions) -> None:
        required("orjson", "Arrow Flight", "serve")
        options.check()
        self._backing, self._options = backing, options
        self._access = Access(options.tokens)
        self._followed: dict[str, tuple[Following, float]] = {}
        self._lock = threading.Lock()
        host = f"[{options.host}]" if ":" in options.host else options.host
        more: dict[str, Any] = {}
        if options.tls is not None:
            key = Path(options.tls.keyfile or options.tls.certfile).read_bytes()
            more["tls_certificates"] = [(Path(options.tls.certfile).read_bytes(), key)]
            if options.tls.ca is not None:
                more |= {"verify_client": True, "root_certificates": Path(options.tls.ca).read_bytes()}
        super().__init__(
            f"{'grpc+tls' if options.tls else 'grpc+tcp'}://{host}:{options.port}",
            middleware={_MIDDLEWARE: _Authenticate(self._access)},
            **more,
        )

    # -- what Flight calls -----------------------------------------------------------------------------------------

    def list_flights(self, context: flight.ServerCallContext, criteria: bytes) -> Iterator[flight.FlightInfo]:
        """The tables that the caller may read; ``criteria`` is the beginning of their names."""
        with _answered():
            headers = self._headers(context)
            names = [name for name in sorted(self._backing.tables()) if name.encode().startswith(criteria)]
            visible = self._access.visible(headers, "read", names)
            found = [self._info(version, None) for version in map(self._loaded, visible) if version is not None]
        return iter(found)

    def get_flight_info(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.FlightInfo:
        """What a table, or the answer to a request, is like, and the ticket for it."""
        with _answered():
            version, request = self._asked(context, descriptor)
            return self._info(version, request, descriptor)

    def get_schema(self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor) -> flight.SchemaResult:
        """The columns of a table, or of the answer to a request."""
        with _answered():
            version, request = self._asked(context, descriptor)
            return flight.SchemaResult(self._schema(version, request))

    def do_get(self, context: flight.ServerCallContext, ticket: flight.Ticket) -> flight.FlightDataStream:
        """The rows of a ticket."""
        with _answered():
            version, request = self._read(context, ticket.ticket)
            if "keys" not in request:
                return self._all_rows(version, request)
            from headwater.serving.server.fetching import json_keys

            most = self._options.limits.max_keys
            keys = version.keys(json_keys(version, request["keys"], most))
            if len(keys) > most:
                raise LimitError.keys(len(keys), most)
            columns, options = _target(request)
            batch = version.fetch(keys, columns, options).batch()
            schema = batch.schema.with_metadata(_facts(version))
            return flight.RecordBatchStream(pa.Table.from_batches([batch.cast(schema)]))

    # -- how it is done --------------------------------------------------------------------------------------------

    def _all_rows(self, version: TableVersion, request: Mapping[str, Any]) -> flight.FlightDataStream:
        schema = self._schema(version, request)
        numbers = [version.schema.names.index(name) for name in schema.names]

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in version.read():
                yield pa.RecordBatch.from_arrays([batch.column(number) for number in numbers], schema=schema)

        return flight.RecordBatchStream(pa.RecordBatchReader.from_batches(schema, batches()))

    def _schema(self, version: TableVersion, request: Mapping[str, Any] | None) -> pa.Schema:
        """The schema of the rows that a request stands for."""
        columns, options = _target(request or {})
        if request is not None and "keys" in request:
            schema: pa.Schema = version.projection(columns, options).schema
        else:
            names = version.schema.names if columns is None else columns
            for name in names:
                if name not in version.schema.names:
                    raise NotFoundError.column(name, version.schema.names, where=version.name)
            schema = pa.schema([version.schema.field(name).with_nullable(True) for name in names])
        return schema.with_metadata(_facts(version))

    def _info(
        self,
        version: TableVersion,
        request: Mapping[str, Any] | None,
        descriptor: flight.FlightDescriptor | None = None,
    ) -> flight.FlightInfo:
        import orjson

        if descriptor is None:
            descriptor = flight.FlightDescriptor.for_path(version.name)
        ticket = flight.Ticket(orjson.dumps({"table": version.name} if request is None else dict(request)))
        rows = -1 if request is not None and "keys" in request else version.rows
        # An endpoint without locations: the server that was asked has it.
        return flight.FlightInfo(
            self._schema(version, request), descriptor, [flight.FlightEndpoint(ticket, [])], rows, -1
        )

    def _asked(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> tuple[TableVersion, Mapping[str, Any] | None]:
        if descriptor.descriptor_type == flight.DescriptorType.PATH:
            if len(descriptor.path) != 1:
                raise InputError.bad_argument("path", descriptor.path, "the name of a table")
            return self._opened(context, descriptor.path[0].decode("utf-8", "replace")), None
        return self._read(context, descriptor.command)

    def _read(self, context: flight.ServerCallContext, ticket: bytes) -> tuple[TableVersion, dict[str, Any]]:
        """What a ticket asks for, and the version that answers it."""
        from headwater.serving.server.fetching import read_object

        limit = self._options.limits.max_body_bytes
        if len(ticket) > limit:
            raise LimitError.body(limit)
        request = read_object(ticket, _FIELDS)
        table = request.get("table")
        if not isinstance(table, str):
            raise InputError.bad_argument("table", table, "the name of a table")
        return self._opened(context, table), request

    def _opened(self, context: flight.ServerCallContext, table: str) -> TableVersion:
        """The current version of a table that the caller may read."""
        headers = self._headers(context)
        self._access.require(headers, "read", table)
        if table not in self._backing.tables():
            names = self._access.visible(headers, "read", sorted(self._backing.tables()))
            raise NotFoundError.table(table, names, "this server")
        version = self._loaded(table)
        if version is None:
            raise LimitError.not_loaded(table)
        return version

    def _loaded(self, table: str) -> TableVersion | None:
        now = time.monotonic()
        with self._lock:
            known = self._followed.get(table)
            following, looked_at = known or (self._backing.follow(table), -_LOOK_S)
            is_due = following.is_local or now - looked_at >= _LOOK_S
            if known is None or is_due:
                self._followed[table] = (following, now)
        if known is None or is_due:
            following.advance()
        return following.current

    def _headers(self, context: flight.ServerCallContext) -> Mapping[bytes, bytes]:
        caller = context.get_middleware(_MIDDLEWARE)
        return caller.headers if isinstance(caller, _Caller) else {}


def run_flight(options: ServerOptions, make_backing: Callable[[], Backing], *, parent: int) -> None:
    """Answer Flight on its port until the process is ended, or the pipe ``parent`` is:
    its other end is the supervisor's.
    """
    assert options.flight_port is not None
    server = FlightTables(make_backing(), replace(options, port=options.flight_port))
    _log.info("Arrow Flight on port %d", server.port)

    def end_with_parent() -> None:
        select.select([parent], [], [])  # others may have made it non-blocking
        os._exit(0)

    threading.Thread(target=end_with_parent, daemon=True).start()
    server.serve()


def _target(request: Mapping[str, Any]) -> tuple[tuple[str, ...] | None, Any]:
    """The columns and the options of a request, read as over HTTP."""
    from headwater.serving.server.target import Target

    fields = {name: value for name, value in request.items() if name not in ("table", "keys")}
    target = Target("").with_fields(fields)
    return target.columns, target.options


def _facts(version: TableVersion) -> dict[str, str]:
    return {"headwater.version": f"{version.name}@{version.number}", "headwater.frontier": str(version.frontier)}


@contextmanager
def _answered() -> Iterator[None]:
    """Errors as Flight has them: unknown tables, wrong arguments, missing scopes; what else goes wrong is not told."""
    try:
        yield
    except flight.FlightError:
        raise
    except Exception as error:  # noqa: BLE001 (a call must get its answer)
        _refuse(error)


_KINDS: tuple[tuple[type[HeadwaterError], Callable[[str], Exception]], ...] = (
    (NotFoundError, pa.ArrowKeyError),
    (AccessError, flight.FlightUnauthorizedError),
    (InputError, pa.ArrowInvalid),
)


def _refuse(error: Exception) -> NoReturn:
    if isinstance(error, LimitError):
        kind = flight.FlightUnavailableError if error.code == "E8208" else pa.ArrowInvalid
        raise kind(str(error)) from None
    for ours, theirs in _KINDS:
        if isinstance(error, ours):
            raise theirs(str(error)) from None
    _log.error("a call of Flight failed", exc_info=error)
    raise flight.FlightInternalError("the server failed; its log says more") from None
