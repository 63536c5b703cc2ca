"""DuckDB: the engine inside the process, and the default.

One database in memory serves the whole process, with the settings' threads, memory limit and spill folder; each query has a cursor of
its own, so queries of many threads run at once and share the workers. Rows stream out in batches while the query runs,
with the GIL released. DuckDB loads no extensions, looks at no Python variables and sees no file but those of the tables.
"""

from __future__ import annotations

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
from headwater.query.sources import Source, TableSource
from headwater.sql.casts import ERROR_MARK
from headwater.sql.duckdb_query import to_duckdb
from headwater.sql.functions import udfs
from headwater.sql.plan import Plan, Scan
from headwater.sql.quoting import quote_identifier

if TYPE_CHECKING:
    import duckdb

__all__ = ["DuckDBEngine"]

_BATCH_ROWS = 122_880  # as many as DuckDB keeps together itself
_lock = threading.Lock()


@lru_cache(maxsize=8)
def _open(threads: int, memory_bytes: int, spill_dir: str) -> duckdb.DuckDBPyConnection:
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": threads,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
    }
    if memory_bytes:
        config["memory_limit"] = f"{memory_bytes}B"
    if spill_dir:
        config["temp_directory"] = spill_dir
    connection = duckdb.connect(":memory:", config=config)
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    return connection


def database() -> duckdb.DuckDBPyConnection:
    """The database that the current settings ask for; take a `cursor` of it."""
    now = settings.current()
    with _lock:
        return _open(now.worker_threads, now.memory_limit_bytes, str(now.spill_dir or ""))


class DuckDBEngine:
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
            bound = cursor.sql(sql, params=relations.values or None)
        except Exception as error:
            cursor.close()
            raise failed(error) from None

        def batches() -> Iterator[pa.RecordBatch]:
            # Begun when the first batch is asked for: until then, and while it is computed, it can be cancelled.
            yield from bound.to_arrow_reader(_BATCH_ROWS)

        return Running(conformed(batches(), plan.schema, failed), cursor.interrupt, cursor.close)

    def named_tables(self, sql: str) -> set[str]:
        """The tables that a text of DuckDB's own SQL names."""
        return named_tables(sql)

    def native(self, sql: str, tables: Mapping[str, Source]) -> Running:
        """Run a text of DuckDB's own SQL."""
        return native(sql, tables)

    def explain(self, plan: Plan, sources: Mapping[Scan, Source], *, analyze: bool = False) -> str:
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
            rows = cursor.execute(f"{word} {sql}", values or None).fetchall()
        except Exception as error:
            raise failure("EXPLAIN", error, sources) from None
        finally:
            cursor.close()
        return "\n".join(str(row[-1]).rstrip() for row in rows)


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
    if kind.startswith("out of memory") or kind.startswith("outofmemory"):
        return SetupError.out_of_memory(settings.current().memory_limit_bytes)
    if kind.startswith("io") or "magic bytes" in message or "parquet" in message.lower():
        return _file_failure(message, sources) or ExpressionError.query_failed(text, message)
    if kind.startswith("out of range") or "out of range" in message.lower() or "overflow" in message.lower():
        return ExpressionError.query_failed(text, "a number does not fit its type (overflow)")
    if kind.startswith("conversion"):
        return ExpressionError.query_failed(text, "a value cannot be cast to the type asked for")
    if "more than one row returned by a subquery" in message.lower():
        return ExpressionError.query_failed(text, "a subquery that stands for one value gave more than one row")
    return ExpressionError.query_failed(text, f"the engine refused it ({message})")


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


def native(sql: str, tables: Mapping[str, Source]) -> Running:
    """DuckDB's own SQL, in a database of its own where each table of the lake is a view under its name."""
    import duckdb

    now = settings.current()
    connection = duckdb.connect(
        ":memory:",
        config={
            "threads": now.worker_threads,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
        },
    )
    sources: Mapping[Scan, Source] = {Scan(name, None, None, ()): source for name, source in tables.items()}
    try:
        connection.execute("SET TimeZone = 'UTC'")
        statements = connection.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise ExpressionError.syntax(sql, "native SQL is one SELECT")
        for name, source in tables.items():
            _view(connection, name, source)
        reader = connection.sql(sql).to_arrow_reader(_BATCH_ROWS)
    except Exception as error:
        connection.close()
        raise _native_failure(sql, error, sources) from None

    def failed(error: Exception) -> Exception:
        return _native_failure(sql, error, sources)

    return Running(conformed(iter(reader), reader.schema, failed), connection.interrupt, connection.close)


def named_tables(sql: str) -> set[str]:
    """The tables that a text of DuckDB's SQL names, with dots between their parts."""
    import duckdb

    with duckdb.connect(":memory:") as connection:
        try:
            return {name.replace('"', "") for name in connection.get_table_names(sql, qualified=True)}
        except duckdb.Error as error:
            raise _native_failure(sql, error, {}) from None


def _view(connection: duckdb.DuckDBPyConnection, name: str, source: Source) -> None:
    relations = Relations()
    body = relations.sql(source)
    schema, _, _ = name.rpartition(".")
    if schema:
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quote_identifier(schema)}")
    streams = {quote_identifier(old): quote_identifier(f"{name}:{old}") for old in relations.streams}
    for old, stream in relations.streams.items():
        connection.register(f"{name}:{old}", stream)
        body = streams[quote_identifier(old)]
    full = ".".join(quote_identifier(p) for p in ((schema, name.rpartition(".")[2]) if schema else (name,)))
    for value, bits in relations.values.items():
        variable = f"{name}:{value}"
        connection.execute(f"SET VARIABLE {quote_identifier(variable)} = $1::BLOB", [bits])
        body = body.replace(f"CAST(${value} AS BLOB)", f"getvariable('{variable}')")
    connection.execute(f"CREATE VIEW {full} AS SELECT * FROM {body}")


def _native_failure(sql: str, error: Exception, sources: Mapping[Scan, Source]) -> Exception:
    if isinstance(error, HeadwaterError):
        return error
    kind = type(error).__name__
    if kind in ("ParserException", "BinderException", "CatalogException", "SyntaxException"):
        return ExpressionError.native(sql, str(error).split("\n\n")[0].strip(), "DuckDB")
    return failure(sql, error, sources)
