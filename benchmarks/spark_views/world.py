"""Orders and customers in a lake, a view that joins and groups them, and what a piece of work costs: CPU seconds of the driver, the JVM and
Python's workers together, and wall time. Tables are written in pieces, so that their size does not have to fit into memory.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import psutil  # type: ignore[import-untyped]
import pyarrow as pa

import headwater as hw
from headwater.base import settings
from headwater.derived import upkeep
from headwater.incremental.views import View

__all__ = ["QUERY", "World", "measured", "median", "refreshed"]

QUERY = (
    "SELECT region, day, count(*) AS n, sum(amount) AS total, max(amount) AS top "
    "FROM orders JOIN customers ON customer = id GROUP BY region, day"
)
_CUSTOMERS = 50  # orders of each, on average
_PIECE_ROWS = 1_000_000
_ORDERS = pa.schema([("customer", pa.int64()), ("day", pa.int64()), ("amount", pa.int64())])


def cpu_seconds() -> float:
    """Of this process and of all that it has started, those that have ended with them."""
    me = psutil.Process()
    total = 0.0
    for process in [me, *me.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def measured(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """CPU seconds, wall seconds, and what the work gave."""
    cpu, start = cpu_seconds(), time.perf_counter()
    found = work()
    return cpu_seconds() - cpu, time.perf_counter() - start, found


def median(samples: list[Any]) -> tuple[float, float]:
    return statistics.median(s[0] for s in samples), statistics.median(s[1] for s in samples)


def refreshed(view: View, engine: Any, *, shards: int | None = None) -> Callable[[], object]:
    """A refresh with all that it leaves to the background, into so many shards if that is said."""

    def work() -> None:
        with nullcontext() if shards is None else settings.override(view_spark_shards=shards):
            view.refresh(engine=engine)
        upkeep.wait()  # in process state may be built and saved behind the rows

    return work


class World:
    """Orders and customers in a lake with a session; in a folder of its own, or at ``url``."""

    def __init__(self, rows: int, session: Any, url: str | None = None, options: dict[str, str] | None = None) -> None:
        self.folder = None if url is not None else tempfile.mkdtemp(prefix="headwater-bench-")
        self.lake = hw.connect(url or self.folder or "", spark=session, storage_options=options)
        self.rows = rows
        self.random = np.random.default_rng(7)
        self.customers = max(10, rows // _CUSTOMERS)
        names = [f"region {i % 200}" for i in range(self.customers)]
        self.lake.write("customers", pa.table({"id": np.arange(self.customers), "region": names}))
        self.orders = self.lake.write("orders", self.made(rows))

    def made(self, rows: int) -> pa.RecordBatchReader:
        """So many orders, a piece at a time."""
        return pa.RecordBatchReader.from_batches(_ORDERS, self._pieces(rows))

    def _pieces(self, rows: int) -> Iterator[pa.RecordBatch]:
        draw = self.random.integers
        for start in range(0, rows, _PIECE_ROWS):
            n = min(_PIECE_ROWS, rows - start)
            columns = draw(0, self.customers, n), draw(0, 300, n), draw(0, 10_000, n)
            yield pa.RecordBatch.from_arrays([pa.array(c) for c in columns], schema=_ORDERS)

    def change(self, rows: int) -> None:
        """New orders: half as many as are deleted and inserted together."""
        self.orders.append(self.made(max(1, rows)))

    def query(self) -> None:
        self.lake.sql(QUERY, engine="spark").to_arrow()

    def view(self, name: str, policy: Any = "auto") -> View:
        return self.lake.view(name, QUERY, policy=policy)

    def close(self) -> None:
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
