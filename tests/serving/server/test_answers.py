"""What is answered is what is stored: every type in every form, options, several tables."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.serving.server.conftest import all_types
from tests.serving.server.running import ARROW, RunningServer, serving

JSON = "application/json"
PARQUET = "application/vnd.apache.parquet"


def batch_of(body: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(body) as reader:
        (batch,) = list(reader)
    batch.validate(full=True)
    return batch


@pytest.mark.parametrize("form", [ARROW, PARQUET])
def test_all_types_come_back(server: RunningServer, form: str) -> None:
    found = server.fetch("types", ["c", "a", "nobody", "b"], accept=form)
    assert found.status == 200 and found.headers["content-type"] == form
    got = batch_of(found.body) if form == ARROW else parquet.read_table(io.BytesIO(found.body))
    rows = all_types().to_pylist()
    empty = dict.fromkeys(rows[0])
    for row, wanted in zip(got.to_pylist(), [rows[2], rows[0], empty, rows[1]], strict=True):
        assert row.pop("_found") is (wanted["id"] is not None)
        assert repr(row) == repr({name: value for name, value in wanted.items() if name != "id"})


def test_all_types_in_json(server: RunningServer) -> None:
    found = server.fetch("types", ["a", "b", "c"]).json()
    assert found["found"] == [True, True, True]
    assert found["frontier"] == "cards@5 raw@3" and found["version"] == 1
    columns = found["columns"]
    assert [column[1] for column in columns.values()] == [None] * len(columns)
    assert {name: [column[0], column[2]] for name, column in columns.items()} == {
        "text": ["häß", ""],
        "raw": [base64.b64encode(b"\x00\xff").decode(), ""],
        "flag": [True, False],
        "i8": [-8, 127],
        "u64": [2**64 - 1, 0],
        "i64": [-(2**63), 2**63 - 1],
        "f16": [1.5, "NaN"],
        "f32": [0.1, "Infinity"],
        "f64": [0.1, "-Infinity"],
        "amount": ["12.30", "-0.01"],
        "day": ["2024-02-29", "0001-01-01"],
        "at": ["2026-11-01T00:00:00.000000Z", "2026-11-01T00:00:00.000000Z"],
        "plain_at": ["2024-01-01T00:00:00.000", None],
        "vector": [[0.5, 1.5], []],
    }


def test_rows_in_json(server: RunningServer) -> None:
    by_row = server.fetch("types", ["a", "x", "c"], "?orient=rows").json()
    by_column = server.fetch("types", ["a", "x", "c"]).json()
    for place, row in enumerate(by_row["rows"]):
        assert row.pop("_found") == by_column["found"][place]
        assert row == {name: column[place] for name, column in by_column["columns"].items()}


@pytest.mark.parametrize("count", [1, 7, 100, 1000])
def test_every_key_has_its_row(server: RunningServer, count: int) -> None:
    keys = [(n * 7919) % 1500 for n in range(count)]
    got = batch_of(server.fetch("numbers", keys, accept=ARROW).body).to_pylist()
    wanted = [
        {"x": k / 4, "y": k, "_found": True} if k < 1000 else {"x": None, "y": None, "_found": False} for k in keys
    ]
    assert got == wanted


def test_a_table_with_a_ttl(server: RunningServer) -> None:
    found = server.fetch("aged", [1, 2, 3], "?status=1&event_time=1").json()
    assert found["status"] == [3, 3, 2] and found["found"] == [False, False, False]
    assert found["columns"]["x"] == [None, None, None]


def test_dropped_rows_say_where_they_belong(server: RunningServer) -> None:
    found = server.fetch("numbers", [5000, 3, 6000, 4], "?missing=drop").json()
    assert found["idx"] == [1, 3] and found["columns"]["y"] == [3, 4] and "found" not in found


# -- several tables ------------------------------------------------------------------------------------------------------


def several(server: RunningServer, **body: Any) -> Any:
    return server.ask("POST", "/v1/fetch", json.dumps(body).encode(), content_type=JSON)


def test_several_tables_by_the_same_keys(server: RunningServer) -> None:
    found = several(server, keys={"customer": ["bob", "ada", "zoe"]}, tables={"spend": ["total"], "risk": None})
    assert found.status == 200
    assert found.headers["x-frontier"] == "cards@2 orders@7" and found.headers["x-version"] == "risk@1 spend@1"
    assert found.json() == {
        "columns": {"spend.total": [5.0, 10.0, None], "risk.score": [1, None, None]},
        "found": {"spend": [True, True, False], "risk": [True, False, False]},
        "frontier": "cards@2 orders@7",
        "versions": {"spend": 1, "risk": 1},
    }


def test_several_tables_in_arrow(server: RunningServer) -> None:
    sink = io.BytesIO()
    keys = pa.record_batch({"customer": ["bob"], "other": [1]})
    with pa.ipc.new_stream(sink, keys.schema) as writer:
        writer.write_batch(keys)
    path = "/v1/fetch?tables=%7B%22spend%22%3A%5B%22total%22%5D%2C%22risk%22%3Anull%7D&status=1"
    found = server.ask("POST", path, sink.getvalue(), content_type=ARROW)
    assert found.status == 200, found.body
    assert batch_of(found.body).to_pylist() == [
        {
            "spend.total": 5.0,
            "_status.spend": 0,
            "_found.spend": True,
            "risk.score": 1,
            "_status.risk": 0,
            "_found.risk": True,
        }
    ]


def test_several_tables_by_row_and_as_parquet(server: RunningServer) -> None:
    found = several(server, keys=["bob"], tables=["spend", "risk"], orient="rows", found=False).json()
    assert found["rows"] == [{"spend.total": 5.0, "risk.score": 1}]
    body = json.dumps({"keys": ["bob"], "tables": ["spend"]}).encode()
    got = server.ask("POST", "/v1/fetch", body, content_type=JSON, accept=PARQUET)
    assert parquet.read_table(io.BytesIO(got.body)).column_names == ["spend.total", "_found.spend"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"keys": ["bob"]}, 400),
        ({"keys": ["bob"], "tables": {}}, 400),
        ({"keys": ["bob"], "tables": "spend"}, 400),
        ({"keys": ["bob"], "tables": {"spend": "total"}}, 400),
        ({"keys": ["bob"], "tables": {"spend": ["nothing"]}}, 400),
        ({"keys": ["bob"], "tables": ["spend", "nothing"]}, 404),
        ({"keys": {"id": [1]}, "tables": ["spend"]}, 400),
        ({"keys": ["bob"], "tables": ["spend", "days"]}, 409),  # one is of orders@7, the other of orders@1
        ({"keys": ["bob"], "tables": ["types"]}, 200),
        ({"keys": ["bob"], "tables": ["days"]}, 400),
        ({"tables": ["spend"]}, 400),
        ({"keys": ["bob"], "tables": ["spend"], "missing": "drop"}, 400),
        ({"keys": ["bob"], "tables": ["spend", "risk"], "min_frontier": "orders@8", "wait": 0}, 409),
        ({"keys": ["bob"], "tables": ["spend", "risk"], "min_frontier": "elsewhere@8"}, 400),
        ({"keys": ["bob"], "tables": ["spend", "risk"], "min_frontier": "orders@7"}, 200),
        ({"keys": ["bob"], "tables": [f"t{n}" for n in range(100)]}, 413),
    ],
)
def test_what_is_asked_of_several(server: RunningServer, body: dict[str, Any], status: int) -> None:
    assert several(server, **body).status == status


# -- what is told of tables --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/v1/tables", "/api/v1/table"])
def test_a_list_names_what_all_of_its_tables_have_reached(
    server: RunningServer, slow_server: RunningServer, path: str
) -> None:
    one, other = (each.ask("GET", path) for each in (server, slow_server))
    # The tables are of orders@1, orders@7, raw@3 with cards@5, and orders@7 with cards@2.
    assert one.headers["x-frontier"] == other.headers["x-frontier"] == "cards@2 orders@1 raw@3"
    assert one.body == other.body


def test_a_list_of_nothing_names_no_frontier(tmp_path: Path) -> None:
    for fast in (True, False):
        with serving(tmp_path, fast_path=fast) as server:
            found = server.ask("GET", "/v1/tables")
            assert found.json() == {"tables": []} and "x-frontier" not in found.headers


def test_tables_are_described(server: RunningServer) -> None:
    listed = server.ask("GET", "/v1/tables").json()["tables"]
    assert [one["name"] for one in listed] == ["aged", "days", "numbers", "pairs", "risk", "spend", "types"]
    one = server.ask("GET", "/v1/tables/pairs")
    assert one.headers["x-frontier"] == "orders@1" and one.headers["x-version"] == "1"
    about = one.json()
    assert about["key"] == ["a", "b"] and about["rows"] == 3 and about["loaded"] and not about["writable"]
    assert about in listed
    schema = server.ask("GET", "/v1/tables/types/schema").json()
    assert schema["columns"]["vector"] == {"dtype": "list<float32>", "nullable": True}
    assert schema["columns"]["id"] == {"dtype": "utf8", "nullable": False}
    (version,) = server.ask("GET", "/v1/tables/types/versions").json()["versions"]
    assert version["version"] == 1 and version["frontier"] == "cards@5 raw@3"
    assert server.ask("GET", "/v1/tables/aged/schema").json()["ttl_s"] == 1.0


def test_murr_reads_the_same(server: RunningServer) -> None:
    assert server.ask("GET", "/health").body == b"OK"
    listed = server.ask("GET", "/api/v1/table").json()
    assert listed["numbers"] == server.ask("GET", "/api/v1/table/numbers/schema").json()
    assert set(listed["numbers"]) == {"columns"}, "its client takes nothing else"
    assert listed["numbers"]["columns"]["id"] == {"dtype": "int64", "nullable": False, "key": True, "strict": True}
    assert not listed["numbers"]["columns"]["x"]["key"]
    body = json.dumps({"keys": [4, -5], "columns": ["x"]}).encode()
    found = server.ask("POST", "/api/v1/table/numbers/fetch", body, content_type=JSON)
    assert found.json()["columns"] == {"x": [1.0, None]}, "as clients before 0.3 send it: a row for each key"


def murr_request(columns: Any, **keys: list[Any]) -> bytes:
    """What Murr's client sends since 0.3: the wanted columns stand in the metadata of the schema."""
    sink = pa.BufferOutputStream()
    table = pa.table(keys).replace_schema_metadata(
        {b"columns": columns if isinstance(columns, bytes) else json.dumps(columns)}
    )
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


@pytest.mark.parametrize("repeats", [1, 3])
def test_murr_gets_rows_of_keys_that_were_found_and_their_positions(server: RunningServer, repeats: int) -> None:
    path = "/api/v1/table/numbers/fetch"
    for _ in range(repeats):  # what is remembered of a body's beginning must not change its answer
        for asked, expected in ((["x"], {"_idx": [1, 2], "x": [1.0, 1.0]}), (["x", "y"], {"_idx": [1, 2]})):
            body = murr_request(asked, id=[-5, 4, 4])
            found = server.ask("POST", path, body, content_type=ARROW, accept=ARROW)
            batch = pa.ipc.open_stream(found.body).read_all()
            assert batch.schema.names == ["_idx", *asked] and batch.schema.field("_idx").type == pa.uint32()
            assert {name: batch[name].to_pylist() for name in expected} == expected
    none = server.ask("POST", path, murr_request(["x"], id=[-5]), content_type=ARROW, accept=ARROW)
    assert pa.ipc.open_stream(none.body).read_all().num_rows == 0
    both = json.dumps({"keys": {"id": [-5, 4]}, "columns": ["x"]}).encode()
    in_json = server.ask("POST", path, both, content_type=JSON).json()
    assert in_json["columns"] == {"_idx": [1], "x": [1.0]} and "found" not in in_json
    composite = murr_request(["n"], b=[1, 2, 9], a=["y", "x", "x"])
    found = server.ask("POST", "/api/v1/table/pairs/fetch", composite, content_type=ARROW, accept=JSON)
    assert found.json()["columns"] == {"_idx": [0, 1], "n": [None, 2.0]}


@pytest.mark.parametrize("columns", [b"{", b"5", b'["nothing"]', b"[1]", b"\xff"])
def test_murr_is_told_what_is_wrong(server: RunningServer, columns: bytes) -> None:
    found = server.ask("POST", "/api/v1/table/numbers/fetch", murr_request(columns, id=[4]), content_type=ARROW)
    assert found.status == 400 and found.json()["error"] == found.json()["message"]


def test_tables_of_a_lake_are_not_written(server: RunningServer) -> None:
    rows = b'[{"id": 1, "x": 1.0, "y": 1}]'
    found = server.ask("PUT", "/v1/tables/numbers/rows", rows, content_type=JSON)
    assert found.status == 405 and found.json()["code"] == "E1748"
    definition = b'{"key": "a", "columns": {"a": {"dtype": "int64"}}}'
    for found in (
        server.ask("DELETE", "/v1/tables/numbers"),
        server.ask("PUT", "/v1/tables/fresh", definition, content_type=JSON),
    ):
        assert found.status == 405 and found.json()["code"] == "E1752" and "ONLINE TABLE" in found.json()["hint"]
    assert server.ask("POST", "/v1/tables/numbers/compact").status == 405
