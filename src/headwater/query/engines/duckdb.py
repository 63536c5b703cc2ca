"""DuckDB: the engine inside the process, and the default.

One database in memory serves the whole process, with the settings' threads, memory limit and spill folder; each query has a cursor of
its own, so queries of many threads run at once and share the workers. Rows stream out in batches while the query runs,
with the GIL released. DuckDB loads no extensions and looks at no Python variables, and is given SQL of our own making only; native
SQL has a database of its own (`duckdb_native`).
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

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
from headwater.query.engines.duckdb_scan import Relations
from headwater.query.engines.engine import Running, conformed
from headwater.query.engines.planned import PlannedEngine
from headwater.query.sources import Source, TableSource
from headwater.sql.casts import ERROR_MARK
from headwater.sql.duckdb_query import to_duckdb
from headwater.sql.expressions import map_failure
from headwater.sql.functions import udfs
from headwater.sql.plan import Plan, Scan

if TYPE_CHECKING:
    import duckdb

__all__ = ["BATCH_ROWS", "DuckDBEngine", "configuration", "database", "failure"]

BATCH_ROWS = 30_720  # a quarter of DuckDB's row group: batches of wide rows stay small
_lock = threading.Lock()


def configuration(threads: int, memory_bytes: int, spill_dir: str) -> dict[str, str | bool | int | float | list[str]]:
    """How a database of ours is opened."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": threads,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
    }
    if memory_bytes:
        config["memory_limit"] = f"{memory_bytes}B"
    # DuckDB's own choice is a folder `.tmp` wherever the process was started. It removes the one that it has made.
    config["temp_directory"] = spill_dir or os.path.join(tempfile.gettempdir(), f"headwater-duckdb-{os.getpid()}")
    return config


@lru_cache(maxsize=8)
def _open(threads: int, memory_bytes: int, spill_dir: str) -> duckdb.DuckDBPyConnection:
    import duckdb

    connection = duckdb.connect(":memory:", config=configuration(threads, memory_bytes, spill_dir))
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    return connection


def database() -> duckdb.DuckDBPyConnection:
    """The database that the current settings ask for; take a `cursor` of it."""
    now = settings.current()
    with _lock:
        return _open(now.worker_threads, now.memory_limit_bytes, str(now.spill_dir or ""))


class DuckDBEngine(PlannedEngine):
    """Plans and native SQL, computed by DuckDB."""

    name = "duckdb"

    def run(self, plan: Plan, sources: Mapping[Scan, Source], text: str) -> Running:
        relations = Relations()
        sql = to_duckdb(plan, lambda scan: relations.sql(sources[scan]))
        owner = database()
        udfs.install(owner, sql)
        cursor = owner.cursor()

        def failed(error: Exception) -> Exception:
            return failure(text, error, sources)

        try:
            for name, source in relations.streams.items():
                cursor.register(name, source)
            bound = cursor.sql(sql, params=_named_in(sql, relations.values) or None)
        except Exception as error:  # noqa: BLE001 (told in plain words)
            cursor.close()
            raise failed(error) from None

        def batches() -> Iterator[pa.RecordBatch]:
            # Begun when the first batch is asked for: until then, and while it is computed, it can be cancelled.
            yield from bound.to_arrow_reader(BATCH_ROWS)

        return Running(conformed(batches(), plan.schema, failed), cursor.interrupt, cursor.close)

    def named_tables(self, sql: str) -> set[str]:
        """The tables that a text of DuckDB's own SQL names."""
        from headwater.query.engines.duckdb_native import named_tables

        return named_tables(sql)

    def native(self, sql: str, tables: Mapping[str, Source]) -> Running:
        """Run a text of DuckDB's own SQL."""
        from headwater.query.engines.duckdb_native import native

        return native(sql, tables)

    def own_plan(self, plan: Plan, sources: Mapping[Scan, Source], *, analyze: bool = False) -> str:
        relations = Relations()
        sql = to_duckdb(plan, lambda scan: relations.sql(sources[scan]))
        owner = database()
        udfs.install(owner, sql)
        cursor = owner.cursor()
        try:
            for name, source in relations.streams.items():
                cursor.register(name, source)
            word = "EXPLAIN ANALYZE" if analyze else "EXPLAIN"
            # The bits of deletion vectors would be printed in full; where nothing runs, one byte stands for them.
            values = relations.values if analyze else dict.fromkeys(relations.values, b"\0")
            rows = cursor.execute(f"{word} {sql}", _named_in(sql, values) or None).fetchall()
        except Exception as error:  # noqa: BLE001 (told in plain words)
            raise failure("EXPLAIN", error, sources) from None
        finally:
            cursor.close()
        return "\n".join(str(row[-1]).rstrip() for row in rows)


def _named_in(sql: str, values: Mapping[str, bytes]) -> dict[str, bytes]:
    """The values that a text names: a scan that was written may have been left out again, and DuckDB takes none too many."""
    named = set(re.findall(r"\$(\w+)", sql))
    return {name: value for name, value in values.items() if name in named}


def failure(text: str, error: Exception, sources: Mapping[Scan, Source]) -> Exception:
    """An error of DuckDB's in plain words; errors of ours pass."""
    if isinstance(error, HeadwaterError):
        return error
    message = str(error).split("\n")[0]
    # An error in the middle of a stream arrives as an OSError with DuckDB's own text.
    kind = message.partition(" Error: ")[0].lower() if " Error: " in message else type(error).__name__.lower()
    if ERROR_MARK in message:
        return ExpressionError.query_failed(text, message.split(ERROR_MARK, 1)[1].strip())
    if kind.startswith("interrupt"):
        return CancelledError.query("query")
    if kind.startswith(("out of memory", "outofmemory")):
        return SetupError.out_of_memory(settings.current().memory_limit_bytes)
    if kind.startswith("io") or "magic bytes" in message or "parquet" in message.lower():
        return _file_failure(message, sources) or ExpressionError.query_failed(text, message)
    if (why := map_failure(message)) is not None:
        return ExpressionError.query_failed(text, why)
    if kind.startswith("out of range") or "out of range" in message.lower() or "overflow" in message.lower():
        return ExpressionError.query_failed(text, "a number does not fit its type (overflow)")
    if kind.startswith("conversion"):
        return ExpressionError.query_failed(text, "a value cannot be cast to the type asked for")
    if "more than one row returned by a subquery" in message.lower():
        return ExpressionError.query_failed(text, "a subquery that stands for one value gave more than one row")
    # Its own words name columns of the SQL that was made for it, which nobody wrote.
    return ExpressionError.engine_refused(text, f"DuckDB, {kind}")


def _file_failure(message: str, sources: Mapping[Scan, Source]) -> Exception | None:
    for source in sources.values():
        if not isinstance(source, TableSource):
            continue
        now = source.snapshot
        for add, path in zip(source.files, source.paths or (), strict=bool(source.paths)):
            if path in message:
                missing = "no files found" in message.lower() or "no such file" in message.lower()
                if missing or not now.storage.exists(add.path):
                    return NotFoundError.data_file(add.path, now.where, now.version)
                return CorruptionError.data_file(add.path, message.replace(path, add.path), now.where)
    return None
