"""DataFusion: an engine inside the process that many Arrow tools share.

One session serves the whole process, with the settings' threads, memory limit and spill folder; the relations of a
query have names of their own in it and are gone when the query is closed. Rows stream out in batches while the query
runs: a batch is awaited on an event loop in a thread of its own, which leaves the GIL to others and can be cancelled at
any time. A cancelled query stops at its next batch inside, which is soon for all but a large cross join.

What DataFusion cannot plan is `Refused` before any row is computed.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.base import settings
from headwater.base.errors import (
    CancelledError,
    CorruptionError,
    ExpressionError,
    HeadwaterError,
    NotFoundError,
    SetupError,
)
from headwater.query.engines.datafusion_scan import FILE, Relations
from headwater.query.engines.engine import Running, conformed
from headwater.query.engines.planned import PlannedEngine
from headwater.query.sources import Source
from headwater.sql.casts import ERROR_MARK
from headwater.sql.datafusion import to_datafusion
from headwater.sql.datafusion.spelling import ELSEWHERE
from headwater.sql.nodes import Refused
from headwater.sql.plan import Plan, Scan
from headwater.sql.quoting import quote_identifier

if TYPE_CHECKING:
    from datafusion import DataFrame, SessionContext

__all__ = ["DataFusionEngine"]

_lock = threading.Lock()
_OVERFLOW = ("overflow", "too large to store", "can't cast value", "out of range", "too small to store")
_NO_CAST = ("cast error", "parser error", "cannot cast")
_PLANNING = (
    "error during planning",
    "not implemented",
    "schema error",
    "optimizer rule",
    "analyzer rule",
    "sql error",
    "invalid (non-executable) plan",
    "internal error",
)


@lru_cache(maxsize=8)
def _open(threads: int, memory_bytes: int, spill_dir: str, spark: bool) -> SessionContext:
    try:
        from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext
    except ImportError:
        raise SetupError.missing_package("datafusion", 'engine="datafusion"', "datafusion") from None
    config = SessionConfig().with_target_partitions(threads)
    config = config.set("datafusion.execution.time_zone", "UTC")
    config = config.set("datafusion.sql_parser.recursion_limit", "5000")
    runtime = RuntimeEnvBuilder()
    if memory_bytes:
        runtime = runtime.with_fair_spill_pool(memory_bytes)
    runtime = runtime.with_temp_file_path(spill_dir) if spill_dir else runtime.with_disk_manager_os()
    if spark:
        config = config.set("datafusion.execution.enable_ansi_mode", "true")
        # The dialect decides whether ``v -> v + 1`` is a lambda (and takes a bare ``f(a = b)`` for a named argument).
        config = config.set("datafusion.sql_parser.dialect", "duckdb")
    session = SessionContext(config, runtime)
    if spark:
        session.enable_spark_functions()
    return session


def session() -> SessionContext:
    """The session that the current settings ask for, with Spark's functions in it."""
    now = settings.current()
    with _lock:
        return _open(now.worker_threads, now.memory_limit_bytes, str(now.spill_dir or ""), True)


@lru_cache(maxsize=1)
def _start_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="headwater-datafusion", daemon=True).start()
    return loop


def _loop() -> asyncio.AbstractEventLoop:
    with _lock:
        return _start_loop()


class _Stream:
    """The batches of a query; `cancel` makes the one that is awaited an error."""

    def __init__(self, frame: DataFrame) -> None:
        self._stream: Any = frame.execute_stream()
        self._waiting: futures.Future[Any] | None = None
        self._cancelled = threading.Event()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while not self._cancelled.is_set():
            waiting = asyncio.run_coroutine_threadsafe(_next(self._stream), _loop())
            self._waiting = waiting
            if self._cancelled.is_set():  # before it could see what is awaited
                waiting.cancel()
            try:
                batch = waiting.result()
            except KeyboardInterrupt:
                self.cancel()
                raise
            if batch is None:
                return
            yield batch.to_pyarrow()
        raise CancelledError.query("query")

    def cancel(self) -> None:
        self._cancelled.set()
        if self._waiting is not None:
            self._waiting.cancel()

    def close(self) -> None:
        self.cancel()
        self._stream = None


async def _next(stream: Any) -> Any:
    try:
        return await stream.__anext__()
    except StopAsyncIteration:
        return None


class DataFusionEngine(PlannedEngine):
    """Plans and native SQL, computed by DataFusion."""

    name = "datafusion"

    def compute(self, plan: Plan, sources: Mapping[Scan, Source], text: str) -> Running:
        relations = Relations(session(), settings.current().worker_threads)

        def failed(error: BaseException) -> Exception:
            return failure(text, error, relations)

        try:
            sql = to_datafusion(plan, lambda scan: relations.sql(sources[scan]))
            stream = _Stream(relations.session.sql_with_options(sql, _reading()))
        except Exception as error:  # noqa: BLE001 - DataFusion raises bare ones
            found = failed(error)
            relations.close()
            raise found from None
        return _running(stream, plan.schema, failed, relations.close)

    def own_plan(self, plan: Plan, sources: Mapping[Scan, Source], *, analyze: bool = False) -> str:
        relations = Relations(session(), settings.current().worker_threads)
        try:
            sql = to_datafusion(plan, lambda scan: relations.sql(sources[scan]))
            word = "EXPLAIN ANALYZE" if analyze else "EXPLAIN"
            rows = relations.session.sql(f"{word} {sql}").to_pylist()
        except Exception as error:  # noqa: BLE001 - DataFusion raises bare ones
            raise failure("EXPLAIN", error, relations) from None
        finally:
            relations.close()
        return "\n".join(f"{row['plan_type']}:\n{row['plan'].rstrip()}" for row in rows)

    def named_tables(self, sql: str) -> set[str]:
        """Every name in a text of DataFusion's own SQL, with dots between the parts; some of them are tables."""
        word = r'(?:"(?:[^"]|"")+"|\w+)'
        return {found.replace('"', "") for found in re.findall(rf"{word}(?:\.{word})*", sql)}

    def native(self, sql: str, tables: Mapping[str, Source]) -> Running:
        """Run a text of DataFusion's own SQL, where each table is a view under its name."""
        now = settings.current()
        own = _open.__wrapped__(now.worker_threads, now.memory_limit_bytes, str(now.spill_dir or ""), False)
        relations = Relations(own, now.worker_threads)

        def failed(error: BaseException) -> Exception:
            found = failure(sql, error, relations)
            if isinstance(found, Refused):
                return ExpressionError.native(sql, _first_words(str(error)), "DataFusion")
            return found

        try:
            for name, source in tables.items():
                _view(own, name, relations.sql(source))
            frame = own.sql_with_options(sql, _reading())
            schema = pa.schema(frame.schema())
            stream = _Stream(frame)
        except Exception as error:  # noqa: BLE001 - DataFusion raises bare ones
            found = failed(error)
            relations.close()
            raise found from None
        return _running(stream, schema, failed, relations.close)


def _reading() -> Any:
    from datafusion import SQLOptions

    return SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)


def _running(
    stream: _Stream, schema: pa.Schema, failed: Callable[[BaseException], Exception], close: Callable[[], None]
) -> Running:
    def closed() -> None:
        stream.close()
        close()

    return Running(conformed(_mended(stream, failed), schema, failed), stream.cancel, closed)


def _mended(stream: _Stream, failed: Callable[[BaseException], Exception]) -> Iterator[pa.RecordBatch]:
    try:
        yield from stream
    except (Exception, futures.CancelledError) as error:  # noqa: BLE001 - DataFusion raises bare ones
        raise failed(error) from None


def _view(own: SessionContext, name: str, body: str) -> None:
    schema, _, table = name.rpartition(".")
    # Names without quotes are read in lower case.
    for folder, relation in {(schema, table), (schema.lower(), table.lower())}:
        if folder:
            own.sql(f"CREATE SCHEMA IF NOT EXISTS {quote_identifier(folder)}").collect()
        full = ".".join(quote_identifier(part) for part in (folder, relation) if part)
        own.sql(f"CREATE OR REPLACE VIEW {full} AS SELECT * FROM {body}").collect()


def failure(text: str, error: BaseException, relations: Relations) -> Exception:
    """An error of DataFusion's in plain words; errors of ours pass."""
    if isinstance(error, HeadwaterError | Refused):
        return error
    if isinstance(error, futures.CancelledError | asyncio.CancelledError):
        return CancelledError.query("query")
    message = str(error)
    small = message.lower()
    if ERROR_MARK in message:
        return ExpressionError.query_failed(text, message.split(ERROR_MARK, 1)[1].split("!", 1)[0])
    if "divide by zero" in small:
        return ExpressionError.query_failed(text, "division by zero")
    if "scalar subquery returned more than one row" in small:
        return ExpressionError.query_failed(text, "a subquery that stands for one value gave more than one row")
    if "resources exhausted" in small:
        return SetupError.out_of_memory(settings.current().memory_limit_bytes)
    if f"{FILE}=" in message or "parquet error" in small:
        return _file_failure(message, relations) or ExpressionError.query_failed(text, "a data file cannot be read")
    if any(words in small for words in _OVERFLOW):
        return ExpressionError.query_failed(text, "a number does not fit its type (overflow)")
    if "unable to parse date" in small:
        return ExpressionError.query_failed(text, "there is no such date")
    if any(words in small for words in _NO_CAST):
        return ExpressionError.query_failed(text, "a value cannot be cast to the type asked for")
    if any(words in small for words in _PLANNING):
        return Refused("a query of this shape in DataFusion", ELSEWHERE)
    return ExpressionError.engine_refused(text, "DataFusion")


def _first_words(message: str) -> str:
    return message.removeprefix("DataFusion error: ").split("\n")[0].strip()


def _file_failure(message: str, relations: Relations) -> Exception | None:
    """Which file it was; DataFusion names it by its link, or not at all."""
    found = re.search(rf"(headwater_\d+)/{FILE}=(\d+)", message)
    for folder, (source, files) in relations.folders.items():
        now = source.snapshot
        for number, add in enumerate(files):
            if found and (not folder.endswith(f"/{found[1]}") or number != int(found[2])):
                continue
            if not now.storage.exists(add.path):
                return NotFoundError.data_file(add.path, now.where, now.version)
            if found or not _readable(source.paths or [], source.files.index(add)):
                return CorruptionError.data_file(add.path, "its Parquet cannot be read", now.where)
    return None


def _readable(paths: list[str], number: int) -> bool:
    import pyarrow.parquet as pq

    try:
        pq.read_metadata(paths[number])
    except (OSError, pa.ArrowInvalid):
        return False
    return True
