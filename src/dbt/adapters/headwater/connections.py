"""The connection of dbt: a lake in this process, shared by all threads of a run.

There are no transactions over several statements: each statement is one commit, so ``BEGIN`` and ``COMMIT`` do
nothing. What a statement did is dbt's response, and with it in ``run_results.json``: for a refresh its mode, rows and
frontier.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.contracts.connection import AdapterResponse, Connection, ConnectionState, Credentials
from dbt.adapters.exceptions import FailedToConnectError
from dbt.adapters.sql import SQLConnectionManager
from dbt_common.exceptions import DbtConfigError, DbtDatabaseError

from dbt.adapters.headwater.relation import DATABASE, ROOT
from headwater.base.errors import HeadwaterError
from headwater.base.schema import spark_type
from headwater.lakehouse import Lake, connect
from headwater.query.result import Result

__all__ = ["HeadwaterConnectionManager", "HeadwaterCredentials", "HeadwaterResponse"]


@dataclass
class HeadwaterCredentials(Credentials):  # type: ignore[misc]
    """A target of ``profiles.yml``."""

    database: str = DATABASE
    schema: str = ROOT
    path: str = ""
    storage_options: dict[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not self.path:
            raise DbtConfigError("the profile has no `path`: where the lake lies, a folder or `s3://bucket/prefix`")
        if self.database != DATABASE:
            raise DbtConfigError("a lake has no databases: leave `database` out of the profile")

    @property
    def type(self) -> str:
        """The name of the adapter."""
        return "headwater"

    @property
    def unique_field(self) -> str:
        """What dbt hashes for its statistics."""
        return self.path

    def _connection_keys(self) -> tuple[str, ...]:
        return ("path", "database", "schema")  # what macros see as `target`; storage options may hold secrets


@dataclass
class HeadwaterResponse(AdapterResponse):  # type: ignore[misc]
    """What a statement did; a refresh says how."""

    mode: str | None = None
    rows_in: int | None = None
    frontier: str | None = None


class _Cursor:
    """One statement or script at a time, as PEP 249 has it."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._result: Result | None = None
        self._rows: list[tuple[Any, ...]] = []
        self.statement = ""
        self.figures: dict[str, Any] = {}
        self.description: list[tuple[Any, ...]] | None = None

    def execute(self, sql: str, bindings: Sequence[Any] | None = None) -> None:
        """Run it, and take its rows: a statement whose rows nobody fetches has to fail, too."""
        result = self._result = self._lake.sql(sql, parameters=bindings or None)
        self.statement = result.statement
        table = result.to_arrow()
        self._result = None
        self.description = [(column.name, spark_type(column.type), *[None] * 5) for column in table.schema]
        columns = [column.to_pylist() for column in table.columns]
        self._rows = list(zip(*columns, strict=True)) if columns else []
        if len(self._rows) == 1 and not _is_query(self.statement):
            self.figures = dict(zip(table.column_names, self._rows[0], strict=True))

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows."""
        return self._rows

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        """The first rows."""
        return self._rows[:size]

    def fetchone(self) -> tuple[Any, ...] | None:
        """The first row."""
        return self._rows[0] if self._rows else None

    def response(self) -> HeadwaterResponse:
        """What was done."""
        figures, said = self.figures, self.statement
        if "mode" in figures:
            rows = figures["rows_out"]
            said = f"{figures['mode']} refresh, {figures['rows_in']:,} rows in, {rows:,} out"
            return HeadwaterResponse(
                said, "REFRESH", rows, mode=figures["mode"], rows_in=figures["rows_in"], frontier=figures["frontier"]
            )
        rows = len(self._rows) if _is_query(self.statement) else figures.get("num_affected_rows")
        return HeadwaterResponse(said if rows is None else f"{said} {rows:,}", self.statement, rows)

    def cancel(self) -> None:
        """Make the engine stop; another thread asks for it."""
        if self._result is not None:
            self._result.cancel()


def _is_query(statement: str) -> bool:
    """Whether a statement's rows are an answer, and no figures of what was done."""
    return statement in {"SELECT", "EXPLAIN"} or statement.startswith(("SHOW", "DESCRIBE"))


class _Handle:
    """What dbt holds for a connection."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self._cursor: _Cursor | None = None

    def cursor(self) -> _Cursor:
        """Where the next statement runs."""
        self._cursor = _Cursor(self.lake)
        return self._cursor

    def cancel(self) -> None:
        """Stop what runs."""
        if self._cursor is not None:
            self._cursor.cancel()

    def rollback(self) -> None:
        """Each statement was a commit of its own."""

    def close(self) -> None:
        """The lake stays open for the other threads."""
        self._cursor = None


class HeadwaterConnectionManager(SQLConnectionManager):  # type: ignore[misc]
    """Connections of a run's threads, all to one lake."""

    TYPE = "headwater"
    _lakes: dict[tuple[str, tuple[tuple[str, str], ...]], Lake] = {}  # noqa: RUF012  (of the process, by place and options)
    _opening = threading.Lock()

    @classmethod
    def open(cls, connection: Connection) -> Connection:
        """Open the lake, if no thread has yet."""
        if connection.state == ConnectionState.OPEN:
            return connection
        told = connection.credentials
        key = (told.path, tuple(sorted(told.storage_options.items())))
        try:
            with cls._opening:
                if key not in cls._lakes:
                    cls._lakes[key] = connect(told.path, told.storage_options or None)
        except HeadwaterError as error:
            connection.state = ConnectionState.FAIL
            raise FailedToConnectError(str(error)) from error
        connection.handle, connection.state = _Handle(cls._lakes[key]), ConnectionState.OPEN
        return connection

    @contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
        """Errors with their code, place and hint, as dbt shows errors of databases."""
        try:
            yield
        except HeadwaterError as error:
            raise DbtDatabaseError(str(error.on("sql"))) from error

    def cleanup_all(self) -> None:
        """Wait for what is done in the background, too: states are saved before dbt ends."""
        super().cleanup_all()
        with self._opening:
            for lake in self._lakes.values():
                lake.close()

    def cancel(self, connection: Connection) -> None:
        """Stop what a connection runs."""
        connection.handle.cancel()

    @classmethod
    def get_response(cls, cursor: _Cursor) -> HeadwaterResponse:
        """What the last statement did."""
        return cursor.response()

    @classmethod
    def data_type_code_to_name(cls, type_code: int | str) -> str:
        """The type of a column: its description has the name already."""
        return str(type_code)

    def _add_query_comment(self, sql: str) -> str:
        return sql  # they are for the logs of a server, and would become part of a view's query

    def begin(self) -> None:
        """Nothing: each statement is one commit."""

    def commit(self) -> None:
        """Nothing."""

    def clear_transaction(self) -> None:
        """Nothing."""
