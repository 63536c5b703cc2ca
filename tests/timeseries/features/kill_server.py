"""The lives of feature tables that are killed (`tests.incremental.killing`).

Commands come as JSON lines on stdin: ``{"folder": …, "full": …, "after_ms": …}``. The child refreshes the feature table ``rated`` of the
lake again and again, until it is killed.
"""

from __future__ import annotations

from typing import Any

import duckdb  # noqa: F401  (children need not load it again)
import pyarrow.compute
import pyarrow.parquet  # noqa: F401
from tests.incremental.killing import serve
from tests.timeseries.features.test_contract import rated

import headwater as hw
from headwater.timeseries.features import FeatureTable  # noqa: F401


def live(command: dict[str, Any]) -> None:
    table = hw.connect(command["folder"]).features("rated", rated)
    while True:
        table.refresh(full=command["full"])


if __name__ == "__main__":
    serve(live, lambda: None)
