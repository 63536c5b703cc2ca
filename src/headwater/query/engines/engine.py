"""What an engine is: it takes a query over a lake, and gives a stream of Arrow batches.

Engines hold no state of their own and are safe to use from many threads. Those that compute plans of ours are
`planned`; Spark is given the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from headwater.query.pinned import Relations
from headwater.query.sources import Source
from headwater.sql.fragment import Fragment
from headwater.sql.types import has_void

if TYPE_CHECKING:
    from headwater.derived.port import DerivingLake

__all__ = ["Engine", "Rows", "Running", "conformed"]


def _nothing() -> None:
    """There is nothing to do."""


@dataclass(frozen=True, slots=True)
class Running:
    """A query that runs: its rows as they come, and how to stop it."""

    reader: pa.RecordBatchReader
    cancel: Callable[[], None] = _nothing
    close: Callable[[], None] = _nothing


def _itself(error: Exception) -> Exception:
    return error


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a query for a writer: Arrow or a DataFrame, how to give them back,
    and what an error of theirs means.
    """

    data: Any
    close: Callable[[], None] = _nothing
    failure: Callable[[Exception], Exception] = _itself


class Engine(Protocol):
    """Answers queries over a lake."""

    name: str

    def start(self, lake: DerivingLake, fragment: Fragment, relations: Relations) -> Running:
        """Begin to run a query; an error that shows at once is raised here, a later one by the reader."""

    def rows(self, lake: DerivingLake, fragment: Fragment, relations: Relations) -> Rows:
        """The rows of a query, in the form that the lake writes best on this engine."""

    def schema(self, lake: DerivingLake, fragment: Fragment, relations: Relations) -> pa.Schema:
        """Names and types of a query's rows, without running it."""

    def explain(self, lake: DerivingLake, fragment: Fragment, mode: str) -> str:
        """What a query would do, as text."""

    def named_tables(self, sql: str) -> set[str]:
        """Names in a text of the engine's own SQL; those of tables are among them."""

    def native(self, sql: str, tables: Mapping[str, Source]) -> Running:
        """Begin to run a text of the engine's own SQL."""


def conformed(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, failure: Callable[[Exception], Exception]
) -> pa.RecordBatchReader:
    """The batches under the names and types of ``schema``, by position;
    what an engine raises goes through ``failure``.
    """
    loose = pa.schema([f.with_nullable(True) for f in schema])

    def stream() -> Iterator[pa.RecordBatch]:
        try:
            for batch in batches:
                columns = [_cast(c, f.type) for c, f in zip(batch.columns, loose, strict=True)]
                yield pa.RecordBatch.from_arrays(columns, schema=loose)
        except Exception as error:  # noqa: BLE001 (told in plain words)
            raise failure(error) from None

    return pa.RecordBatchReader.from_batches(loose, stream())


def _cast(column: pa.Array, dtype: pa.DataType) -> pa.Array:
    if column.type == dtype:
        return column
    if has_void(dtype):
        # What `array()` and `map()` hold has a type of its own in an engine, and here there is nothing of it.
        return pa.array(column.to_pylist(), dtype)
    return column.cast(dtype)
