"""The lives of publishers that are killed (`tests.incremental.killing`).

Commands come as JSON lines on stdin: ``{"source": …, "data": …, "fault": …}``. The child publishes the newest of the date folders once, with
the faults that it is given.
"""

from __future__ import annotations

from typing import Any

import pyarrow.compute
import pyarrow.parquet  # noqa: F401  (children need not load it again)
from tests.incremental.killing import serve
from tests.serving.pushed.kill_server import load_kernels

from headwater.base.storage import LocalStorage
from headwater.serving.config import Config
from headwater.serving.folder import FolderPublisher


def live(command: dict[str, Any]) -> None:
    table = f"{{source: {{local: {{path: {command['source']}}}}}, key: [id], parts: 3}}"
    config = Config.parse(f"tables: {{features: {table}}}", environ={})
    FolderPublisher("features", config.tables["features"], LocalStorage(command["data"])).publish()


if __name__ == "__main__":
    serve(live, load_kernels)
