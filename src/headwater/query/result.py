"""Result: the rows of one statement, on their way.

The problem: an answer may be one number or a hundred million rows. It must not be held in memory before somebody asks
for it, looking at it must not lose it, and two threads must not tear it apart.

The idea: a result is a stream of Arrow batches that can be read once. A *peek* (`show`, ``repr``, `scalar`) reads the
first batches and keeps them, so that the next reader gets them again. The first `to_arrow` keeps the whole table, and
from then on everything is answered from it, as often as one likes; so it is with small answers, which are tables from
the start.

Invariants: rows come in the engine's order, each exactly once; a result is in one of these states, and only moves down:

    fresh      nothing is read, or only peeked at
    kept       the table is in memory: every reader is served from it
    taken      a reader or an iteration has the stream: another read is `InputError` E1401
    failed     reading raised: another read raises the same error; a cancelled result is `CancelledError` E1402
    closed     as taken, and the engine's resources are given back

`cancel` may be called from any thread, also while another one waits for a batch, and takes no lock. The GIL is
released while the engine computes a batch.
"""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from html import escape
from threading import Event, RLock
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from headwater.base.errors import CancelledError, HeadwaterError, InputError, SetupError

__all__ = ["Result"]


class Result:
    """What `Lake.sql` gives: the rows of a statement, streamed, or kept once `to_arrow` was called.

    Parameters
    ----------
    reader
        The rows. Nothing is read from it before somebody asks.
    statement
        What gave the rows: ``SELECT``, ``MERGE``, ``DESCRIBE HISTORY``.
    cancel
        Makes the engine stop, so that a thread that waits for a batch gets an error soon.
    close
        Gives back what the engine holds for the result. It is called once, when the last row was read, when reading
        failed, or by `close`.

    >>> rows = pa.table({"id": [1, 2, 3], "name": ["ann", None, "bob"]})
    >>> result = Result(rows.to_reader())
    >>> result
        id  name
    bigint  string
    ──────  ──────
         1  ann
         2  null
         3  bob
    (3 rows)
    >>> result.to_dicts()[0]
    {'id': 1, 'name': 'ann'}
    >>> Result.of(rows.slice(0, 1), "SELECT").to_tuples()
    [(1, 'ann')]
    """

    def __init__(
        self,
        reader: pa.RecordBatchReader,
        *,
        statement: str = "SELECT",
        cancel: Callable[[], None] | None = None,
        close: Callable[[], None] | None = None,
    ) -> None:
        self._reader: pa.RecordBatchReader | None = reader
        self._schema: pa.Schema = reader.schema
        self._statement = statement
        self._stop, self._release = cancel, close
        self._lock = RLock()
        self._cancelled = Event()
        self._peeked: deque[pa.RecordBatch] = deque()
        self._table: pa.Table | None = None
        self._gone: str | None = None
        self._error: BaseException | None = None

    @classmethod
    def of(cls, table: pa.Table, statement: str) -> Self:
        """A small answer that is there already."""
        result = cls(table.to_reader(), statement=statement)
        result._keep(table)
        return result

    # What it is

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        return self._schema

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order; SQL allows the same name twice."""
        return list(self._schema.names)

    @property
    def statement(self) -> str:
        """What gave the rows: ``SELECT``, ``MERGE``, …"""
        return self._statement

    # Streams

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of record batches, in bounded memory. It takes the stream, unless the table is kept."""
        if self._table is not None:
            return self._table.to_reader()
        return pa.RecordBatchReader.from_batches(self._schema, self._take("a reader took them"))

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The record batches, in bounded memory. Iterating takes the stream, unless the table is kept."""
        if self._table is not None:
            return iter(self._table.to_batches())
        return self._take("they were iterated over")

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()

    # Everything at once

    def to_arrow(self) -> pa.Table:
        """All rows as an Arrow table, which is kept: later reads are answered from it."""
        with self._lock:
            if self._table is None:
                self._check_readable()
                batches = []
                while (batch := self._next()) is not None:
                    batches.append(batch)
                self._keep(pa.Table.from_batches(batches, self._schema))
            return self._table

    def to_pandas(self) -> Any:
        """All rows as a pandas DataFrame; columns of the same name stay apart by their position."""
        try:
            return self.to_arrow().to_pandas()
        except ImportError:
            raise SetupError.missing_package("pandas", "to_pandas()") from None

    def to_polars(self) -> Any:
        """All rows as a polars DataFrame. Columns of the same name are refused (E1404): polars cannot hold them."""
        try:
            import polars
        except ImportError:
            raise SetupError.missing_package("polars", "to_polars()") from None
        self._check_names("a polars frame")
        return polars.from_arrow(self.to_arrow())

    def to_dicts(self) -> list[dict[str, Any]]:
        """All rows as dicts. Columns of the same name are refused (E1404), since a dict would drop one in silence."""
        self._check_names("a dict")
        return _python(self.to_arrow())

    def to_pylist(self) -> list[dict[str, Any]]:
        """As `to_dicts`, under the name that Arrow uses."""
        return self.to_dicts()

    def to_tuples(self) -> list[tuple[Any, ...]]:
        """All rows as tuples, which have no trouble with columns of the same name."""
        table = self.to_arrow()
        if not table.num_columns:
            return [()] * table.num_rows
        columns = (_python(pa.table({"": column})) for column in table.columns)
        return list(zip(*([row[""] for row in column] for column in columns), strict=True))

    def fetchall(self) -> list[tuple[Any, ...]]:
        """As `to_tuples`, under the name that database drivers use."""
        return self.to_tuples()

    def scalar(self) -> Any:
        """The one value of a result of one row and one column; anything else is refused (E1403).

        >>> Result.of(pa.table({"n": [42]}), "SELECT").scalar()
        42
        """
        first = self._peek(2)
        if first.num_rows != 1 or first.num_columns != 1:
            rows = {0: "no rows", 1: "1 row"}.get(first.num_rows, "more than one row")
            raise InputError.not_scalar(rows, first.num_columns)
        return _python(first)[0][first.column_names[0]]

    # To look at

    def head(self, n: int) -> tuple[pa.Table, int | None]:
        """The first ``n`` rows, which are not lost to later reads,
        and how many there are in all where that is known.
        """
        return self._peek(n), self._known_rows()

    def show(self, n: int = 20) -> None:
        """Print the first ``n`` rows, fitted to the terminal; they are not lost to later reads."""
        if not isinstance(n, int) or isinstance(n, bool) or n < 0:
            raise InputError.bad_argument("n", n, "a number of rows, 0 or more")
        print(self._drawn(n))  # what show() is for

    def __repr__(self) -> str:
        if not self._lock.acquire(blocking=False):
            return f"Result({self._statement}, being read)"
        try:
            if self._gone is not None:
                return f"Result({self._statement}: {', '.join(self.columns)}; the rows are gone: {self._gone})"
            return self._drawn(20)
        finally:
            self._lock.release()

    def _repr_html_(self) -> str:
        from headwater.query.rendering.html import draw_html

        if self._gone is not None:
            return f"<pre>{escape(repr(self))}</pre>"
        return draw_html(self._peek(20 + 1), limit=20, total=self._known_rows())

    def _drawn(self, n: int) -> str:
        from headwater.query.rendering.terminal import PROSE, draw, draw_lines, terminal_style

        if self._statement in PROSE:
            return draw_lines(self.to_arrow())
        width, colour = terminal_style(sys.stdout)
        return draw(self._peek(n + 1), limit=n, total=self._known_rows(), width=width, colour=colour)

    # To end

    def cancel(self) -> None:
        """Stop the query, from any thread: whoever reads gets `CancelledError`. Rows that are kept stay."""
        if self._table is not None or self._reader is None:
            return
        self._cancelled.set()
        if self._stop is not None:
            with suppress(Exception):  # the engine may have ended by itself just now
                self._stop()

    def close(self) -> None:
        """Give back what the engine holds. Rows that are kept can still be read; others are gone."""
        with self._lock:
            if self._table is None and self._gone is None:
                self._gone = "it was closed"
            self._peeked.clear()
            self._finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # A result that nobody read still holds a cursor of its engine.
        if getattr(self, "_reader", None) is not None:
            with suppress(Exception):
                self._finish()

    # How the stream is held

    def _take(self, how: str) -> Iterator[pa.RecordBatch]:
        with self._lock:
            self._check_readable()
            self._gone = how
        return self._drain()

    def _drain(self) -> Iterator[pa.RecordBatch]:
        try:
            while True:
                with self._lock:
                    batch = self._next()
                if batch is None:
                    return
                yield batch
        finally:
            # Also when the reader walks away in the middle.
            self._finish()

    def _peek(self, rows: int) -> pa.Table:
        """At least the first ``rows`` rows, if there are so many; they stay to be read."""
        with self._lock:
            if self._table is None:
                self._check_readable()
                while sum(batch.num_rows for batch in self._peeked) < rows:
                    batch = self._read()
                    if batch is None:
                        self._keep(pa.Table.from_batches(list(self._peeked), self._schema))
                        break
                    self._peeked.append(batch)
            known = self._table
            if known is None:
                known = pa.Table.from_batches(list(self._peeked), self._schema)
            return known.slice(0, min(rows, known.num_rows))

    def _next(self) -> pa.RecordBatch | None:
        if self._peeked and not self._cancelled.is_set():
            return self._peeked.popleft()
        return self._read()

    def _read(self) -> pa.RecordBatch | None:
        if self._error is not None:
            raise self._error
        if self._reader is None:
            return None
        try:
            self._check_cancelled()
            batch = self._reader.read_next_batch()
            self._check_cancelled()
        except StopIteration:
            self._finish()
            return None
        except KeyboardInterrupt:
            raise
        except Exception as error:
            self._error = self._meaning(error)
            self._peeked.clear()
            self._finish()
            if self._error is error:
                raise
            raise self._error from None
        return batch

    def _meaning(self, error: Exception) -> Exception:
        if isinstance(error, HeadwaterError):
            return error.on("sql")
        # DuckDB says INTERRUPT, Spark and DataFusion say cancelled in other words; the flag knows who asked.
        if self._cancelled.is_set() or "INTERRUPT Error" in str(error):
            return CancelledError.query(self._statement)
        return error

    def _check_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise CancelledError.query(self._statement)

    def _check_readable(self) -> None:
        if self._error is not None:
            raise self._error
        if self._gone is not None:
            raise InputError.result_consumed(self._gone)
        self._check_cancelled()

    def _check_names(self, what: str) -> None:
        twice = [name for name, count in Counter(self._schema.names).items() if count > 1]
        if twice:
            raise InputError.same_names(twice, what)

    def _known_rows(self) -> int | None:
        return None if self._table is None else self._table.num_rows

    def _keep(self, table: pa.Table) -> None:
        self._table = table
        self._peeked.clear()
        self._finish()

    def _finish(self) -> None:
        reader, self._reader = self._reader, None
        release, self._release = self._release, None
        if reader is not None:
            with suppress(Exception):
                reader.close()
        if release is not None:
            release()


def _python(table: pa.Table) -> list[dict[str, Any]]:
    """The rows as Python values; Arrow holds timestamps that Python has no object for."""
    try:
        return list(table.to_pylist())
    except (OverflowError, ValueError, pa.ArrowException) as error:
        kinds = ", ".join(dict.fromkeys(str(field.type) for field in table.schema))
        raise InputError.no_python_value(kinds, str(error)) from None
