"""The lives of exports that are killed (`tests.incremental.killing`).

Commands come as JSON lines on stdin: ``{"folder": …, "full": …, "after_ms": …}``. The child refreshes the export ``out`` of the lake again and again,
until it is killed.
"""

from __future__ import annotations

from typing import Any

import duckdb  # noqa: F401  (children need not load it again)
import pyarrow.compute
import pyarrow.parquet  # noqa: F401
from tests.incremental.killing import serve

import headwater as hw
from headwater.export import Export  # noqa: F401


def live(command: dict[str, Any]) -> None:
    export = hw.connect(command["folder"]).export("out")
    while True:
        export.refresh(full=command["full"])


if __name__ == "__main__":
    serve(live, lambda: None)
