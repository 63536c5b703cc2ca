"""Databases of DuckDB in this process: how one is opened, and what its errors mean.

One database in memory serves the whole process, with the settings' threads, memory limit and spill folder. It loads no
extensions and looks at no Python variables.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from headwater.base import settings
from headwater.base.errors import (
    CancelledError,
    CorruptionError,
    ExpressionError,
    HeadwaterError,
    NotFoundError,
    SetupError,
)
from headwater.query.sources import NarrowedSource, Source, TableSource
from headwater.sql.casts import ERROR_MARK
from headwater.sql.expressions import map_failure
from headwater.sql.plan import Scan

if TYPE_CHECKING:
    import duckdb

__all__ = ["BATCH_ROWS", "configuration", "database", "failure"]

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
    for given in sources.values():
        source = given.rest if isinstance(given, NarrowedSource) else given
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
