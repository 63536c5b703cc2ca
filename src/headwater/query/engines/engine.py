"""What an engine is: it takes a plan and the sources of its scans, and gives a stream of Arrow batches.

Engines are made once for a process and are safe to use from many threads. A plan is Spark's meaning already resolved, so an
engine only has to write it in its own SQL; where it cannot, it raises `Refused` and no row is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from headwater.query.sources import Source
from headwater.sql.plan import Plan, Scan

__all__ = ["Engine", "Running", "conformed"]


def _nothing() -> None:
    """There is nothing to do."""


@dataclass(frozen=True, slots=True)
class Running:
    """A query that runs: its rows as they come, and how to stop it."""

    reader: pa.RecordBatchReader
    cancel: Callable[[], None] = _nothing
    close: Callable[[], None] = _nothing


class Engine(Protocol):
    """Computes plans."""

    name: str

    def run(self, plan: Plan, sources: Mapping[Scan, Source], text: str) -> Running:
        """Begin to compute; an error that shows at once is raised here, a later one by the reader."""

    def explain(self, plan: Plan, sources: Mapping[Scan, Source], *, analyze: bool = False) -> str:
        """The engine's own plan, as text; ``analyze`` runs it first, to count rows and time."""


def conformed(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, failure: Callable[[Exception], Exception]
) -> pa.RecordBatchReader:
    """The batches under the names and types of ``schema``, by position; what an engine raises goes through ``failure``."""
    loose = pa.schema([f.with_nullable(True) for f in schema])

    def stream() -> Iterator[pa.RecordBatch]:
        try:
            for batch in batches:
                columns = [c if c.type == f.type else c.cast(f.type) for c, f in zip(batch.columns, loose, strict=True)]
                yield pa.RecordBatch.from_arrays(columns, schema=loose)
        except Exception as error:  # noqa: BLE001 (told in plain words)
            raise failure(error) from None

    return pa.RecordBatchReader.from_batches(loose, stream())
