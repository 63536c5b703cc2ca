"""DuckDB's own SQL, over the lake's tables.

A text that we do not understand runs in a database of its own, where each table of the lake is a view under its name.
Nothing else of the machine can be read from there: only the folders of these tables are open to it, and its settings
are locked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.base import settings
from headwater.base.errors import ExpressionError, HeadwaterError
from headwater.query.engines.duckdb_database import BATCH_ROWS, configuration, failure
from headwater.query.engines.duckdb_scan import Relations
from headwater.query.engines.engine import Running, conformed
from headwater.query.sources import Source, TableSource
from headwater.sql.plan import Scan
from headwater.sql.quoting import literal_sql, quote_identifier

if TYPE_CHECKING:
    import duckdb

__all__ = ["named_tables", "native"]

_NAME = re.compile(r'(?:"(?:[^"]|"")*"|[^\s"])+')


def native(sql: str, tables: Mapping[str, Source]) -> Running:
    """Run one SELECT of DuckDB's."""
    import duckdb

    now = settings.current()
    spill = str(now.spill_dir or "")
    connection = duckdb.connect(":memory:", config=configuration(now.worker_threads, now.memory_limit_bytes, spill))
    sources: Mapping[Scan, Source] = {Scan(name, None, None, ()): source for name, source in tables.items()}
    try:
        connection.execute("SET TimeZone = 'UTC'")
        _check_select(connection, sql)
        for name, source in tables.items():
            _view(connection, name, source)
        folders = [s.snapshot.storage.local_path("") for s in tables.values() if isinstance(s, TableSource)]
        allowed = ", ".join(literal_sql(f) for f in (*folders, spill) if f)
        connection.execute(f"SET allowed_directories = [{allowed}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        bound = connection.sql(sql)
        schema = bound.limit(0).to_arrow_table().schema
    except Exception as error:  # noqa: BLE001 (told in plain words)
        connection.close()
        raise _failure(sql, error, sources) from None

    def failed(error: Exception) -> Exception:
        return _failure(sql, error, sources)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from bound.to_arrow_reader(BATCH_ROWS)

    return Running(conformed(batches(), schema, failed), connection.interrupt, connection.close)


def named_tables(sql: str) -> set[str]:
    """The tables that a text of DuckDB's SQL names, with dots between their parts."""
    import duckdb

    with duckdb.connect(":memory:") as connection:
        try:
            _check_select(connection, sql)
            # An alias, or a sample, stands behind the name.
            found = (_NAME.match(name) for name in connection.get_table_names(sql, qualified=True))
            return {name[0].replace('"', "") for name in found if name is not None}
        except duckdb.Error as error:
            raise _failure(sql, error, {}) from None


def _check_select(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    import duckdb

    statements = connection.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise ExpressionError.native(sql, "one SELECT is expected", "DuckDB")


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


def _failure(sql: str, error: Exception, sources: Mapping[Scan, Source]) -> Exception:
    if isinstance(error, HeadwaterError):
        return error
    kind = type(error).__name__
    if kind in ("ParserException", "BinderException", "CatalogException", "SyntaxException"):
        return ExpressionError.native(sql, str(error).split("\n")[0].strip(), "DuckDB")
    return failure(sql, error, sources)
