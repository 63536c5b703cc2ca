"""A worker imports nothing once it answers: an import in the middle of a request would hold up all the others."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.serving.server.running import running

JSON = "application/json"
PARQUET = "application/vnd.apache.parquet"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"

WORKER = """
import json, socket, sys
from headwater.serving.server.supervisor import preload
preload()
from headwater.serving.config import Config
from headwater.serving.server.configured import ConfiguredTables, options_of
from headwater.serving.server.metrics import NUMBERS, ServerMetrics
from headwater.serving.server.service import Service
from headwater.serving.server.shared_counters import SharedCounters
from headwater.serving.server.worker import WorkerServer, uvicorn_config

config = Config.load(sys.argv[1])
counters = SharedCounters(regions=1, tables=8, numbers=NUMBERS)
service = Service(options_of(config), ConfiguredTables(config), ServerMetrics(counters, 0))
listener = socket.create_server(("127.0.0.1", 0))
loaded = set()

def ready():
    loaded.update(sys.modules)
    print(json.dumps({"url": f"http://127.0.0.1:{listener.getsockname()[1]}"}), flush=True)

WorkerServer(uvicorn_config(service), service, on_ready=ready).run(sockets=[listener])
print(json.dumps(sorted(set(sys.modules) - loaded)))
"""


@pytest.mark.long
def test_requests_import_nothing(tmp_path: Path) -> None:
    config = tmp_path / "serve.yaml"
    config.write_text("server: {data_dir: data}\n")
    with running([sys.executable, "-c", WORKER, str(config)]) as server:
        body = (
            b'{"key": "id", "columns": {"id": "utf8", "x": "float32", "at": "timestamp(us,UTC)", "d": "decimal(9,2)"}}'
        )
        assert server.ask("PUT", "/v1/tables/t", body, content_type=JSON).status == 201
        rows = b'[{"id": "a", "x": 0.5, "at": "2024-05-01T00:00:00Z", "d": "1.50"}]'
        assert server.ask("PUT", "/v1/tables/t/rows", rows, content_type=JSON).status == 200
        for accept in (JSON, "application/vnd.apache.arrow.stream", PARQUET):
            assert server.fetch("t", ["a", "b"], "?status=1", accept=accept).status == 200
        several = b'{"keys": ["a"], "tables": ["t"]}'
        assert server.ask("POST", "/v1/fetch", several, content_type=JSON).status == 200
        sink = pa.BufferOutputStream()
        pa.parquet.write_table(pa.table({"id": ["b"], "x": pa.array([1.0], pa.float32())}), sink)
        parquet = sink.getvalue().to_pybytes()
        assert server.ask("PUT", "/v1/tables/t/rows", parquet, content_type=PARQUET).status == 200
        assert server.ask("POST", "/v1/tables/t/rows/delete", b'{"keys": ["b"]}', content_type=JSON).status == 200
        for path in (
            "/metrics",
            "/readyz",
            "/openapi.json",
            "/docs",
            "/v1/tables",
            "/v1/tables/t/versions",
            "/nothing",
        ):
            assert server.ask("GET", path).status in (200, 404)
        assert server.ask("GET", "/metrics", accept=OPEN_METRICS).status == 200
        assert server.ask("DELETE", "/v1/tables/t").status == 204
        server.stop()
        assert server.process.stdout is not None
        late = json.loads(server.process.stdout.read())
        assert late == [], late[:400]
