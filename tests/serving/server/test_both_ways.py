"""One meaning, two ways: every fetch has the same answer, byte by byte, below ASGI and through it.

A case is a path, headers, a body, and the status that it has.
"""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pytest
from tests.serving.server.running import ARROW, RunningServer

JSON = "application/json"
PARQUET = "application/vnd.apache.parquet"


def stream(**columns: Any) -> bytes:
    sink = io.BytesIO()
    batch = pa.record_batch([pa.array(c) if isinstance(c, list) else c for c in columns.values()], names=list(columns))
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def keys(given: Any, **more: Any) -> bytes:
    return json.dumps({"keys": given, **more}).encode()


CASES: dict[str, tuple[str, dict[str, str], bytes, int]] = {}


def case(name: str, path: str, body: bytes, *, sent: str | None = JSON, status: int = 200, **headers: str) -> None:
    given = {} if sent is None else {"content_type": sent}
    CASES[name] = (path, {**given, **headers}, body, status)


for form, accept in (("arrow", ARROW), ("json", JSON), ("parquet", PARQUET)):
    case(f"json to {form}", "/v1/tables/numbers/fetch", keys([1, 2, 5000]), accept=accept)
    case(f"arrow to {form}", "/v1/tables/numbers/fetch", stream(id=[1, 2, 5000]), sent=ARROW, accept=accept)
    case(f"all types to {form}", "/v1/tables/types/fetch", keys(["a", "b", "c", "d"]), accept=accept)
    case(f"no keys to {form}", "/v1/tables/types/fetch", keys([]), accept=accept)
case("one column of any name", "/v1/tables/numbers/fetch", stream(anything=[7]), sent=ARROW)
case("other integers", "/v1/tables/numbers/fetch", stream(id=pa.array([7, 8], pa.int16())), sent=ARROW)
case("null keys", "/v1/tables/numbers/fetch", stream(id=pa.array([7, None, 8], pa.int64())), sent=ARROW)
case("null keys in JSON", "/v1/tables/types/fetch", keys(["a", None]))
case("the same key twice", "/v1/tables/types/fetch", keys(["a", "a"]))
case("columns", "/v1/tables/numbers/fetch?columns=y,x", keys([1]))
case("columns in the body", "/v1/tables/numbers/fetch?columns=y", keys([1], columns=["x"]))
case("the key as a column", "/v1/tables/numbers/fetch?columns=id,x", keys([1, 5000]))
case("without found", "/v1/tables/numbers/fetch?found=0", keys([1, 5000]))
case("with status", "/v1/tables/aged/fetch?status=1&event_time=1", keys([1, 2, 3]))
case("dropped", "/v1/tables/numbers/fetch?missing=drop", keys([5000, 1, 6000, 2]))
case("dropped to arrow", "/v1/tables/numbers/fetch?missing=drop", keys([5000, 1]), accept=ARROW)
case("by row", "/v1/tables/types/fetch?orient=rows", keys(["a", "b", "c", "d"]))
case("by row in the body", "/v1/tables/types/fetch", keys(["a"], orient="rows"))
case("dates as keys", "/v1/tables/days/fetch", keys(["2024-01-02", "2025-01-01"]))
case("several columns", "/v1/tables/pairs/fetch", keys([["x", 2], ["y", 1], ["z", 1]]))
case("several columns by name", "/v1/tables/pairs/fetch", keys({"b": [2], "a": ["x"]}))
case("several columns in Arrow", "/v1/tables/pairs/fetch", stream(b=[2], a=["x"]), sent=ARROW)
case("min_frontier that is reached", "/v1/tables/types/fetch?min_frontier=cards@5", keys(["a"]))
case("min_frontier of the table", "/v1/tables/types/fetch?min_frontier=types@1", keys(["a"]))
case("request id", "/v1/tables/numbers/fetch", keys([1]), x_request_id="a1-b2")
case("bad request id", "/v1/tables/numbers/fetch", keys([1]), x_request_id="a b")
case("last request", "/v1/tables/numbers/fetch", keys([1]), connection="close")
case("murr", "/api/v1/table/numbers/fetch", keys([1], columns=["x", "y"]))
case("percent in the query", "/v1/tables/numbers/fetch?columns=%78", keys([1]))
case("charset", "/v1/tables/numbers/fetch", keys([1]), sent="application/json; charset=utf-8")
case("accept anything", "/v1/tables/numbers/fetch", keys([1]), accept="*/*")
case("weights", "/v1/tables/numbers/fetch", keys([1]), accept=f"{JSON};q=0.1, {ARROW};q=0.9")

case("unknown table", "/v1/tables/nothing/fetch", keys([1]), status=404)
case("unknown table of Murr", "/api/v1/table/nothing/fetch", keys([1]), status=404)
case("unknown column", "/v1/tables/numbers/fetch?columns=z", keys([1]), status=400)
case("unknown column of Murr", "/api/v1/table/numbers/fetch", keys([1], columns=["z"]), status=400)
case("column twice", "/v1/tables/numbers/fetch?columns=x,x", keys([1]), status=400)
case("unknown parameter", "/v1/tables/numbers/fetch?colums=x", keys([1]), status=400)
case("parameter twice", "/v1/tables/numbers/fetch?found=1&found=0", keys([1]), status=400)
case("bad flag", "/v1/tables/numbers/fetch?found=maybe", keys([1]), status=400)
case("bad wait", "/v1/tables/numbers/fetch?wait=nan", keys([1]), status=400)
case("bad query", "/v1/tables/numbers/fetch?%ff", keys([1]), status=400)
case("unknown field", "/v1/tables/numbers/fetch", keys([1], colums=["x"]), status=400)
case("no event time", "/v1/tables/numbers/fetch?event_time=1", keys([1]), status=400)
case("no keys at all", "/v1/tables/numbers/fetch", b"{}", status=400)
case("keys of another type", "/v1/tables/numbers/fetch", keys(["x"]), status=400)
case("keys that are floats", "/v1/tables/numbers/fetch", keys([1.5]), status=400)
case("keys that are flags", "/v1/tables/numbers/fetch", keys([True]), status=400)
case("a key that is too large", "/v1/tables/numbers/fetch", keys([2**63]), status=400)
case("keys that are objects", "/v1/tables/numbers/fetch", keys([{"a": 1}]), status=400)
case("a key instead of keys", "/v1/tables/numbers/fetch", keys(5), status=400)
case("strings for numbers in Arrow", "/v1/tables/numbers/fetch", stream(id=["x"]), sent=ARROW, status=400)
case("numbers for strings in Arrow", "/v1/tables/types/fetch", stream(id=[1]), sent=ARROW, status=400)
case("half of a key", "/v1/tables/pairs/fetch", keys([["x"]]), status=400)
case("half of a key in Arrow", "/v1/tables/pairs/fetch", stream(a=["x"]), sent=ARROW, status=400)
case("columns of other lengths", "/v1/tables/pairs/fetch", keys({"a": ["x"], "b": [1, 2]}), status=400)
case("no JSON", "/v1/tables/numbers/fetch", b"{", status=400)
case("an array", "/v1/tables/numbers/fetch", b"[1]", status=400)
case("no body", "/v1/tables/numbers/fetch", b"", status=400)
case("no Arrow", "/v1/tables/numbers/fetch", b"keys", sent=ARROW, status=400)
case("other media", "/v1/tables/numbers/fetch", b"keys", sent="text/plain", status=415)
case("no media", "/v1/tables/numbers/fetch", b"keys", sent=None, status=415)
case("nothing acceptable", "/v1/tables/numbers/fetch", keys([1]), accept="image/png", status=406)
case("bad name", "/v1/tables/1x/fetch", keys([1]), status=400)
case("bad frontier", "/v1/tables/numbers/fetch?min_frontier=x", keys([1]), status=400)
case("foreign frontier", "/v1/tables/numbers/fetch?min_frontier=other@1", keys([1]), status=400)
case("later frontier", "/v1/tables/types/fetch?min_frontier=cards@9&wait=0", keys(["a"]), status=409)
case("later frontier in the body", "/v1/tables/types/fetch", keys(["a"], min_frontier="cards@9", wait=0), status=409)


@pytest.mark.parametrize("name", CASES)
def test_both_ways_give_the_same(name: str, server: RunningServer, slow_server: RunningServer) -> None:
    path, headers, body, status = CASES[name]
    fast = server.ask("POST", path, body, **headers)
    slow = slow_server.ask("POST", path, body, **headers)
    assert fast.status == slow.status == status, fast.body
    assert without_date(fast.head) == without_date(slow.head)
    assert fast.body == slow.body or ("parquet" in name and same_parquet(fast.body, slow.body))
    if status == 200:
        assert "x-frontier" in fast.headers and "x-version" in fast.headers
    else:
        assert {"code", "message", "where", "hint"} <= set(fast.json())
        assert ("error" in fast.json()) == ("Murr" in name)


def test_the_second_time_the_same(server: RunningServer) -> None:
    """What is remembered of heads and frames changes no answer."""
    for name, (path, headers, body, status) in CASES.items():
        if "last" in name:
            continue
        with server.wire() as wire:
            found = [wire.ask("POST", path, body, **headers) for _ in range(4)]
        assert {one.status for one in found} == {status}, name
        assert len({one.body for one in found}) == 1, name
        assert len({without_date(one.head) for one in found}) == 1, name


def without_date(head: bytes) -> tuple[bytes, ...]:
    return tuple(line for line in head.split(b"\r\n") if not line.startswith(b"date: "))


def same_parquet(one: bytes, other: bytes) -> bool:
    from pyarrow import parquet

    return bool(parquet.read_table(io.BytesIO(one)).equals(parquet.read_table(io.BytesIO(other))))
