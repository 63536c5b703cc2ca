"""The client that waits: one method call, one request, one answer. Safe for many threads."""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from headwater.base.errors import HeadwaterError, InputError, ServerError
from headwater.base.frontier import Frontier
from headwater.serving.answer import Answer
from headwater.serving.client.address import Address
from headwater.serving.client.calls import Call, Calls, Missing, error_of, retry_after_s
from headwater.serving.client.connection import ConnectionLost, Pool
from headwater.serving.client.key_frame import needs_names
from headwater.serving.client.reply import Reply
from headwater.serving.client.retries import Retries

__all__ = ["Client", "checked"]

_T = TypeVar("_T")


class Client:
    """A server of online tables.

    Parameters
    ----------
    url : str
        where it is: ``http://127.0.0.1:8080``
    token : str, optional
        what the server is shown; tokens have scopes there
    timeout : float
        how many seconds a call may take in all, with its retries
    connect_timeout : float
        how many of them one attempt to connect may take
    retries : int
        how often a call that failed is sent again at most. Only calls that change nothing are, and requests that never
        left; and all retries together stay within a budget, about a tenth of the calls.
    pool : int
        how many connections may be open at once; they are kept between calls
    tls : ssl.SSLContext, optional
        for https: which certificates are trusted, and the client's own
    max_answer_bytes : int
        the largest reply that is taken

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8080", token="secret")
    >>> client
    Client('http://127.0.0.1:8080')

    .. code-block:: text

        features = client.fetch("customer_features", ["ann", "bob"], ["spend_7d", "spend_30d"])
        features.to_numpy()     # rows in the order of the keys, NaN where there is nothing
        features.frontier       # which versions of the lake's tables they reflect
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: float = 5.0,
        connect_timeout: float = 1.0,
        retries: int = 2,
        pool: int = 16,
        tls: ssl.SSLContext | None = None,
        max_answer_bytes: int = 1 << 30,
    ) -> None:
        self._address = Address.parse(url, token, tls)
        self._timeout_s = checked("timeout", timeout)
        self._calls = Calls(self._address, self._timeout_s)
        connect_s = checked("connect_timeout", connect_timeout)
        self._retries = Retries(checked("retries", retries, least=0))
        self._limit = checked("pool", pool)
        self._pool = Pool(self._address, limit=pool, connect_s=connect_s, most_bytes=max_answer_bytes)
        self._url = self._address.url
        self._key_names: dict[str, list[str]] = {}

    # -- reading ---------------------------------------------------------------------------------------------------

    def fetch(
        self,
        table: str,
        keys: Any,
        columns: Sequence[str] | None = None,
        *,
        found: bool = True,
        status: bool = False,
        event_time: bool = False,
        missing: Missing = "null",
        min_frontier: Frontier | str | None = None,
        wait: float | None = None,
    ) -> Answer:
        """The values of columns for keys, in the order of the keys.

        Parameters
        ----------
        table : str
        keys
            a list of values, or a column of numpy, Arrow, pandas or polars. For a key of several columns: a list of
            tuples, a dict of columns, or a table with these columns.
        columns : sequence of str, optional
            all but the key by default
        found : bool
            say which keys have a row: `Answer.found`
        status : bool
            say of each row whether it is there, not found, or too old: `Answer.status`
        event_time : bool
            bring the event times: `Answer.event_time`
        missing : "null" or "drop"
            keys without a row get nulls, or are left out; then `Answer.index` says which are there
        min_frontier : Frontier or str, optional
            answer from these versions of the sources or later ones only: ``orders@42``
        wait : float, optional
            how many seconds to wait for that, beyond the timeout; as many as the timeout has by default
        """
        names = self._names(table) if needs_names(keys) else ()
        return self._run(
            self._calls.fetch(
                table,
                keys,
                columns,
                found=found,
                status=status,
                event_time=event_time,
                missing=missing,
                min_frontier=min_frontier,
                wait=wait,
                names=names,
            )
        )

    def fetch_many(
        self,
        tables: Mapping[str, Sequence[str] | None] | Sequence[str],
        keys: Any,
        *,
        found: bool = True,
        status: bool = False,
        event_time: bool = False,
        min_frontier: Frontier | str | None = None,
        wait: float | None = None,
    ) -> Answer:
        """The values of several tables for the same keys, in one request and of one frontier.

        Columns are called ``table.column``; `Answer.found_in` says which keys have a row in a table.

        Parameters
        ----------
        tables : mapping of str to columns
            the tables, each with the columns that are wanted, or None for all of them
        keys
            a dict of key columns, by the names that they have in the tables; or one column, if all tables have one
        """
        return self._run(
            self._calls.fetch_many(
                tables, keys, found=found, status=status, event_time=event_time, min_frontier=min_frontier, wait=wait
            )
        )

    def tables(self) -> list[dict[str, Any]]:
        """What is known of each table that may be read."""
        return self._run(self._calls.get("/v1/tables", lambda found: list(found["tables"])))

    def describe(self, table: str) -> dict[str, Any]:
        """What is known of a table: its key, its columns, its newest version."""
        return self._run(self._calls.get(self._calls.table(table), dict))

    def schema(self, table: str) -> dict[str, Any]:
        """The key and the columns of a table, with their types."""
        return self._run(self._calls.get(self._calls.table(table, "schema"), dict))

    def versions(self, table: str) -> list[dict[str, Any]]:
        """The versions of a table that can still answer, newest first."""
        return self._run(self._calls.get(self._calls.table(table, "versions"), lambda found: list(found["versions"])))

    # -- writing ---------------------------------------------------------------------------------------------------

    def write(self, table: str, rows: Any) -> dict[str, Any]:
        """Insert rows, or replace those with the same keys: Arrow, pandas, polars, a list of dicts,
        or a dict of columns.
        """
        return self._run(self._calls.write(table, rows))

    def delete(self, table: str, keys: Any) -> dict[str, Any]:
        """Delete rows by their keys, which are given as to `fetch`."""
        return self._run(self._calls.delete(table, keys, self._names(table) if needs_names(keys) else ()))

    def create(
        self,
        table: str,
        *,
        key: str | Sequence[str],
        columns: Mapping[str, Any],
        ttl: float | None = None,
        event_time: str | None = None,
    ) -> dict[str, Any]:
        """Make a table whose rows are written by this API.

        Parameters
        ----------
        table : str
        key : str or sequence of str
            the columns of the key
        columns : mapping
            a type for each column, those of the key too: ``{"id": "utf8", "score": "float32"}``
        ttl : float, optional
            how many seconds a row is served after its event time
        event_time : str, optional
            the column that has it
        """
        return self._run(self._calls.create(table, definition(key, columns, ttl, event_time)))

    def drop(self, table: str) -> None:
        """Delete a table that was made by `create`, with its rows."""
        self._key_names.pop(table, None)
        self._run(self._calls.drop(table))

    # -- the server ------------------------------------------------------------------------------------------------

    def health(self) -> dict[str, Any]:
        """Whether the server answers."""
        return self._run(self._calls.get("/healthz", dict))

    def ready(self) -> dict[str, Any]:
        """Whether the server has loaded all its tables, and what is missing: ``{"status": "ready", …}``,
        or another status.
        """
        call = self._calls.get("/readyz", dict)
        reply = self._exchange(call, time.monotonic() + self._timeout_s)
        if reply.status not in (200, 503):
            raise error_of(reply, self._url)
        return call.read(reply)

    def metrics(self) -> str:
        """What the server has counted, in the text format of Prometheus."""
        return self._run(self._calls.get_text("/metrics"))

    # -- how a call is made ----------------------------------------------------------------------------------------

    def _names(self, table: str) -> list[str]:
        known = self._key_names.get(table)
        if known is None:
            known = self._key_names[table] = list(self.schema(table)["key"])
        return known

    def _run(self, call: Call[_T]) -> _T:
        deadline = time.monotonic() + self._timeout_s + call.extra_s
        attempt = 0
        while True:
            after_s = None
            try:
                reply = self._exchange(call, deadline)
                if reply.status < 300:
                    self._retries.earn()
                    return call.read(reply)
                failure: HeadwaterError = error_of(reply, self._url)
                after_s = retry_after_s(reply)
            except ServerError as error:
                failure = error
            left_s = deadline - time.monotonic()
            pause = self._retries.pause_s(failure, after_s, attempt=attempt, repeatable=call.repeatable, left_s=left_s)
            if pause is None:
                raise failure
            attempt += 1
            time.sleep(pause)

    def _exchange(self, call: Call[Any], deadline: float) -> Reply:
        pool, url = self._pool, self._url
        if pool.is_closed:
            raise InputError.bad_argument("client", "closed", "a client that is open: make another one")
        while True:
            try:
                connection = pool.take(deadline)
            except TimeoutError:
                raise ServerError.busy(url, self._limit, self._timeout_s) from None
            again = connection.is_used
            if again and not call.repeatable and not connection.is_alive:
                pool.discard(connection)
                continue
            try:
                reply = connection.exchange(call.head, call.body, deadline)
            except ConnectionLost as lost:
                pool.discard(connection)
                if again and lost.unanswered and call.repeatable:
                    # The server closed it while nobody used it. The others are as old.
                    pool.clear()
                    continue
                raise ServerError.lost(url, str(lost)) from None
            except TimeoutError:
                pool.discard(connection)
                raise ServerError.timed_out(url, self._timeout_s + call.extra_s) from None
            except ValueError as error:
                pool.discard(connection)
                raise ServerError.bad_response(url, str(error)) from None
            except BaseException:  # an interrupt: what is on its way must not be taken for the next answer
                pool.discard(connection)
                raise
            if reply.keep_alive:
                pool.give_back(connection)
            else:
                pool.discard(connection)
            return reply

    # -- its life --------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._url!r})"


def checked(name: str, value: Any, *, least: float | None = None) -> Any:
    """A number that is positive, or at least so much."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not (value > 0 if least is None else value >= least):
        raise InputError.bad_argument(
            name, value, "a number above 0" if least is None else f"a number from {least:g} up"
        )
    return value


def definition(
    key: str | Sequence[str], columns: Mapping[str, Any], ttl: float | None, event_time: str | None
) -> dict[str, Any]:
    """What `create` sends."""
    named = [key] if isinstance(key, str) else list(key)
    given = {"key": named, "columns": dict(columns), "ttl": ttl, "event_time": event_time}
    return {name: value for name, value in given.items() if value is not None}
