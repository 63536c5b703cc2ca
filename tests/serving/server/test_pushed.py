"""Tables that the API makes: create, write in every form, delete, drop, by several workers."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.serving.server.running import ARROW, Answer, RunningServer, running
from tests.waiting import wait_until

JSON = "application/json"
PARQUET = "application/vnd.apache.parquet"
CLICKS = {
    "key": "user",
    "columns": {"user": {"dtype": "int64"}, "n": {"dtype": "int32"}, "at": {"dtype": "timestamp(us,UTC)"}},
}


@pytest.fixture(scope="module")
def pushing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """`headwater serve` with two workers and a pushed table in the configuration."""
    folder = tmp_path_factory.mktemp("pushing")
    config = folder / "serve.yaml"
    config.write_text(
        """
server:
  port: 0
  data_dir: data
  workers: 2
  limits: {max_keys: 1000, max_body_bytes: 1000000}
tables:
  scores:
    source: push
    key: [name]
    columns:
      name: {dtype: utf8, nullable: false}
      score: {dtype: float32}
"""
    )
    with running([sys.executable, "-m", "headwater.cli", "serve", str(config), "--json"]) as server:
        yield server


def put(server: RunningServer, path: str, body: Any, media: str = JSON) -> Answer:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return server.ask("PUT", path, data, content_type=media)


def fetched(server: RunningServer, table: str, keys: Any, since: Answer) -> Any:
    """What is read of a table that has seen a write."""
    body = json.dumps({"keys": keys, "min_frontier": since.headers["x-frontier"]}).encode()
    found = server.ask("POST", f"/v1/tables/{table}/fetch", body, content_type=JSON)
    assert found.status == 200, found.body
    return found.json()


@pytest.fixture
def clicks(pushing: RunningServer) -> Iterator[str]:
    made = put(pushing, "/v1/tables/clicks", CLICKS)
    assert made.status == 201 and made.json()["writable"], made.body
    yield "clicks"
    wait_until(lambda: pushing.ask("DELETE", "/v1/tables/clicks").status in (204, 404), "the end of the table")
    wait_until(lambda: all(pushing.ask("GET", "/v1/tables/clicks").status == 404 for _ in range(8)), "both workers")


def test_rows_in_every_form(pushing: RunningServer, clicks: str) -> None:
    path = f"/v1/tables/{clicks}/rows"
    rows = [{"user": 1, "n": 5, "at": "2024-01-01T00:00:00Z"}, {"user": 2, "n": None, "at": None}]
    done = put(pushing, path, rows)
    assert done.status == 200 and done.json()["rows"] == 2, done.body
    done = put(pushing, path, {"rows": [{"user": 3, "n": 3}]})
    done = put(pushing, path, {"columns": {"user": [4, 5], "n": [4, 5]}})
    batch = pa.record_batch(
        {"user": [6], "n": pa.array([6], pa.int32()), "at": pa.array([None], pa.timestamp("us", "UTC"))}
    )
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    done = put(pushing, path, sink.getvalue(), ARROW)
    assert done.status == 200, done.body
    sink = io.BytesIO()
    parquet.write_table(pa.table({"user": [7], "n": [7], "at": pa.array([None], pa.timestamp("us", "UTC"))}), sink)
    done = put(pushing, path, sink.getvalue(), PARQUET)
    assert done.status == 200, done.body
    done = put(pushing, f"/api/v1/table/{clicks}/write", {"columns": {"user": [8], "n": [8]}})
    assert done.status == 200, done.body
    found = fetched(pushing, clicks, list(range(1, 10)), done)
    assert found["columns"]["n"] == [5, None, 3, 4, 5, 6, 7, 8, None]
    assert found["columns"]["at"][0] == "2024-01-01T00:00:00.000000Z"
    assert found["found"] == [True] * 8 + [False]


def test_rows_replace_and_are_deleted(pushing: RunningServer, clicks: str) -> None:
    path = f"/v1/tables/{clicks}/rows"
    put(pushing, path, [{"user": n, "n": n} for n in range(10)])
    put(pushing, path, [{"user": 3, "n": 33}])
    gone = pushing.ask("DELETE", path, b'{"keys": [4, 5, 77]}', content_type=JSON)
    assert gone.status == 200 and gone.json()["keys"] == 2
    gone = pushing.ask("POST", f"{path}/delete", b'{"keys": {"user": [6]}}', content_type=JSON)
    assert gone.status == 200, gone.body
    found = fetched(pushing, clicks, [2, 3, 4, 5, 6, 7], gone)
    assert found["columns"]["n"] == [2, 33, None, None, None, 7]


@pytest.mark.parametrize(
    ("rows", "status"),
    [
        ([{"user": None, "n": 1}], 400),
        ([{"n": 1}], 400),
        ([{"user": 1, "n": 2**31}], 400),
        ([{"user": 1, "n": 1.5}], 400),
        ([{"user": 1, "n": "1"}], 400),
        ([{"user": 1, "n": True}], 400),
        ([{"user": 1, "at": "yesterday"}], 400),
        ([{"user": 1, "nothing": 1}], 400),
        ([{"user": 1}, {"user": 1}], 400),
        ([1], 400),
        ({"rows": {}}, 400),
        ({"columns": {"user": [1], "n": [1, 2]}}, 400),
        ({"columns": [1]}, 400),
        ({"lines": []}, 400),
        ("x", 400),
        ([{"user": n} for n in range(1001)], 413),
        ([], 200),
    ],
)
def test_rows_that_do_not_fit(pushing: RunningServer, rows: Any, status: int) -> None:
    put(pushing, "/v1/tables/strict", CLICKS)
    done = put(pushing, "/v1/tables/strict/rows", rows)
    assert done.status == status, done.body
    assert fetched(pushing, "strict", [1], put(pushing, "/v1/tables/strict/rows", []))["found"] == [False]


@pytest.mark.parametrize(
    "definition",
    [
        {},
        {"key": "a"},
        {"key": "a", "columns": {}},
        {"key": [], "columns": {"a": "int64"}},
        {"key": ["a", "a"], "columns": {"a": "int64"}},
        {"key": "b", "columns": {"a": "int64"}},
        {"key": "a", "columns": {"a": "int65"}},
        {"key": "a", "columns": {"a": {"dtype": "int64", "nullable": True}}},
        {"key": "a", "columns": {"a": {"dtype": "int64", "default": 1}}},
        {"key": "a", "columns": {"a": "int64", "_found": "bool"}},
        {"key": "a", "columns": {"a": "list<int64>"}},
        {"key": "a", "columns": {"a": "int64"}, "ttl": -1},
        {"key": "a", "columns": {"a": "int64"}, "ttl": 5},
        {"key": "a", "columns": {"a": "int64"}, "event_time": "a"},
        {"key": "a", "columns": {"a": "int64"}, "event_time": "b"},
        {"key": "a", "columns": {"a": "int64"}, "other": 1},
        {"key": {"a": 1}, "columns": {"a": "int64"}},
        [],
    ],
    ids=str,
)
def test_definitions_that_are_wrong(pushing: RunningServer, definition: Any) -> None:
    assert put(pushing, "/v1/tables/wrong", definition).status == 400
    assert pushing.ask("GET", "/v1/tables/wrong").status == 404


def test_a_table_is_made_once(pushing: RunningServer, clicks: str) -> None:
    again = put(pushing, f"/v1/tables/{clicks}", CLICKS)
    assert again.status == 409 and again.json()["code"] == "E1005"
    for refused in (put(pushing, "/v1/tables/scores", CLICKS), pushing.ask("DELETE", "/v1/tables/scores")):
        assert refused.status == 405 and refused.json()["code"] == "E1752", "it is in the configuration"


def test_a_table_by_the_requests_of_murr(pushing: RunningServer) -> None:
    """What its clients send: columns that say themselves that they are keys, keys and rows by column, and a compaction."""
    columns = {
        "shop": {"dtype": "utf8", "nullable": False, "key": True},
        "day": {"dtype": "int32", "nullable": False, "key": True},
        "n": {"dtype": "float32", "nullable": True, "key": False, "strict": True},
    }
    path = "/api/v1/table/visits"
    assert put(pushing, path, {"columns": columns}).status == 201
    for number in range(3):
        rows = {"columns": {"shop": ["a", "b"], "day": [number, number], "n": [number + 0.5, None], "other": [1, 2]}}
        assert put(pushing, f"{path}/write", rows).status == 200, "a column that the table does not have is ignored"
        assert put(pushing, "/v1/tables/visits/rows", rows).status == 400, "and refused by the paths that are ours"
    done = pushing.ask("POST", f"{path}/compact")
    assert done.status == 200 and (done.json()["layers"], done.json()["overlay_rows"], done.json()["rows"]) == (1, 0, 6)
    since = done.headers["x-frontier"]  # the other worker may still be about to see the last write
    asked = {"keys": {"shop": ["a", "c", "a"], "day": [2, 2, 0]}, "columns": ["n"], "min_frontier": since}
    found = pushing.ask("POST", f"{path}/fetch", json.dumps(asked).encode(), content_type=JSON)
    assert found.json()["columns"] == {"_idx": [0, 2], "n": [2.5, 0.5]}
    assert "visits" in pushing.ask("GET", "/api/v1/table").json()
    assert pushing.ask("DELETE", path).status == 204
    assert put(pushing, path, {"key": "n", "columns": columns}).status == 400, "the columns say something else"
    assert put(pushing, path, {"columns": {"n": "int32"}}).status == 400, "no column says it"
    assert put(pushing, path, {"columns": {"n": {"dtype": "int32", "key": 1}}}).status == 400
    lossy = put(pushing, path, {"columns": {"k": {"dtype": "int32", "key": True, "strict": False}}})
    assert lossy.status == 400 and "cast values before writing" in lossy.json()["hint"]


def test_a_table_with_a_ttl(pushing: RunningServer) -> None:
    definition = {**CLICKS, "ttl": 60, "event_time": "at"}
    assert put(pushing, "/v1/tables/fading", definition).status == 201
    done = put(pushing, "/v1/tables/fading/rows", [{"user": 1, "n": 1, "at": "2020-01-01T00:00:00Z"}])
    body = json.dumps({"keys": [1, 2], "status": True, "min_frontier": done.headers["x-frontier"]}).encode()
    found = pushing.ask("POST", "/v1/tables/fading/fetch", body, content_type=JSON).json()
    assert found["status"] == [3, 2] and found["columns"]["n"] == [None, None]
    assert pushing.ask("GET", "/v1/tables/fading/schema").json()["ttl_s"] == 60


def test_the_table_of_the_configuration(pushing: RunningServer) -> None:
    done = put(pushing, "/v1/tables/scores/rows", [{"name": "ada", "score": 0.5}])
    assert fetched(pushing, "scores", ["ada"], done)["columns"]["score"] == [0.5]
    assert pushing.ask("GET", "/readyz").status == 200


def test_what_unpacks_to_more_than_was_sent(pushing: RunningServer) -> None:
    put(pushing, "/v1/tables/strict", CLICKS)
    sink = io.BytesIO()
    table = pa.table({"user": pa.array([1] * 2_000_000), "n": pa.array([1] * 2_000_000)})
    parquet.write_table(table, sink, compression="zstd")
    assert len(sink.getvalue()) < 100_000
    assert put(pushing, "/v1/tables/strict/rows", sink.getvalue(), PARQUET).status == 413
    sink = io.BytesIO()
    parquet.write_table(pa.table({"user": [1], "n": ["x" * 5_000_000]}), sink, compression="zstd")
    assert put(pushing, "/v1/tables/strict/rows", sink.getvalue(), PARQUET).status == 413
    for cut in range(0, 400, 13):
        assert put(pushing, "/v1/tables/strict/rows", sink.getvalue()[:cut], PARQUET).status == 400


def test_writes_are_counted(pushing: RunningServer, clicks: str) -> None:
    put(pushing, f"/v1/tables/{clicks}/rows", [{"user": 1, "n": 1}])
    text = pushing.ask("GET", "/metrics").body.decode()
    assert 'headwater_rows_written_total{table="clicks"}' in text
