"""The lives of writers of pushed tables that are killed (`tests.incremental.killing`).

Commands come as JSON lines on stdin: ``{"root": …, "worker": …, "count": …, "fault": …, "out": …}``. The child writes ``count`` pairs of rows, and
after each of them a line of their keys to the file ``out``.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet
from tests.incremental.killing import serve

from headwater.base.storage import LocalStorage
from headwater.serving.pushed import PushedTables


def load_kernels() -> None:
    """Write and read a small table, so that no child has to load machine code."""
    with TemporaryDirectory() as folder:
        tables = PushedTables(LocalStorage(folder), background=False)
        rows = pa.table({"id": [1, 2], "v": pa.array([0.5, 1.5], pa.float32()), "s": ["x", "y"]})
        tables.create("t", key=["id"], schema=rows.schema)
        tables.upsert("t", rows)


def live(command: dict[str, Any]) -> None:
    worker = command["worker"]
    tables = PushedTables(LocalStorage(command["root"]), background=worker % 2 == 0)
    with Path(command["out"]).open("w", buffering=1) as out:
        for number in range(command["count"]):
            ids = [worker * 1_000_000 + number * 2, worker * 1_000_000 + number * 2 + 1]
            table = pa.table({"id": ids, "v": pa.array([number, number], pa.float32()), "s": ["x", "y" * 50]})
            frontier = tables.upsert("t", table).frontier
            print(*ids, str(frontier), file=out)


if __name__ == "__main__":
    serve(live, load_kernels)
