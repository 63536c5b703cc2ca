"""Client and server together: what is served equals what is stored, through swaps, writes, kills and refusals."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.serving.server.conftest import all_types
from tests.serving.server.publishing import publish, store_at
from tests.serving.server.running import RunningServer, running, serving, wait_ready
from tests.waiting import PATIENCE_S, wait_until

import headwater as hw
from headwater.base.errors import AccessError, InputError, LimitError, NotFoundError, RequestError, SchemaError
from headwater.base.frontier import Frontier
from headwater.serving.answer import Answer
from headwater.serving.value_status import NOT_FOUND, NULL_VALUE, OUTSIDE_MAX_AGE, PRESENT

pytestmark = pytest.mark.long

ROWS = 2000
COLUMNS = [f"f{n}" for n in range(10)]


def many(version: int = 0) -> pa.Table:
    """Floats by string: what a row has says which it is, and of which version."""
    ids = pa.array([f"item_{n}" for n in range(ROWS)])
    values = {
        name: pa.array(np.arange(ROWS) + 10_000 * version + c / 16, pa.float32()) for c, name in enumerate(COLUMNS)
    }
    return pa.table({"id": ids, **values})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables by a string, by a number, by two columns; of all types; with an age; and two that share a source."""
    made = tmp_path_factory.mktemp("served")
    publish(store_at(made, "items"), many(), ["id"])
    numbers = pa.table(
        {"id": pa.array(range(100), pa.int32()), "n": pa.array([None if n % 7 == 0 else n for n in range(100)])}
    )
    publish(store_at(made, "numbers"), numbers, ["id"])
    publish(store_at(made, "types"), all_types(), ["id"], Frontier(raw=3, cards=5))
    pairs = pa.table({"a": ["x", "x", "y"], "b": [1, 2, 1], "n": [1.0, 2.0, None]})
    publish(store_at(made, "pairs"), pairs, ["a", "b"])
    seen = pa.array([0, 4_000_000_000_000], pa.timestamp("ms", "UTC"))
    publish(
        store_at(made, "aged"),
        pa.table({"id": [1, 2], "x": pa.array([1.0, None]), "seen": seen}),
        ["id"],
        ttl_ms=1000,
        event_time="seen",
    )
    publish(
        store_at(made, "spend"),
        pa.table({"customer": ["ada", "bob"], "total": [10.0, 5.0]}),
        ["customer"],
        Frontier(orders=7),
    )
    publish(
        store_at(made, "risk"),
        pa.table({"customer": ["bob", "eve"], "score": [1, 2]}),
        ["customer"],
        Frontier(orders=7, cards=2),
    )
    return made


@pytest.fixture(scope="module", params=[True, False], ids=["below ASGI", "through ASGI"])
def server(request: pytest.FixtureRequest, folder: Path) -> Iterator[RunningServer]:
    with serving(folder, fast_path=request.param) as found:
        wait_ready(found)
        yield found


Ask = Callable[..., Any]


@pytest.fixture(params=["waiting", "awaiting"])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Makes one call by either client."""

    def waiting(url: str, use: Callable[[Any], Any], **options: Any) -> Any:
        with hw.Client(url, **{"timeout": PATIENCE_S, **options}) as client:
            return use(client)

    def awaiting(url: str, use: Callable[[Any], Any], **options: Any) -> Any:
        async def run() -> Any:
            async with hw.AsyncClient(url, **{"timeout": PATIENCE_S, **options}) as client:
                return await use(client)

        return asyncio.run(run())

    return waiting if request.param == "waiting" else awaiting


@pytest.mark.parametrize("count", [0, 1, 100, 1000, 5000])
def test_floats_are_served_as_they_are_stored(server: RunningServer, ask: Ask, count: int) -> None:
    chance = random.Random(count)
    numbers = [chance.randrange(ROWS + ROWS // 4) for _ in range(count)]
    keys = [f"item_{n}" for n in numbers]
    answer = ask(server.url, lambda client: client.fetch("items", keys))
    expected = np.array([[n + c / 16 if n < ROWS else np.nan for c in range(10)] for n in numbers], np.float32)
    values = answer.to_numpy()
    np.testing.assert_array_equal(values, expected.reshape(count, 10))
    assert answer.found.tolist() == [n < ROWS for n in numbers]
    assert answer.columns == COLUMNS and dict(answer.versions) == {"items": 1} and answer.frontier == Frontier(orders=1)
    if count:
        assert np.shares_memory(values, np.frombuffer(answer._body, np.uint8)) and values.flags.writeable
        assert np.shares_memory(answer.to_pandas().to_numpy(), values)
    some = ask(server.url, lambda client: client.fetch("items", keys, ["f7", "f2"], found=False))
    np.testing.assert_array_equal(some.to_numpy(), expected.reshape(count, 10)[:, [7, 2]])


def test_all_types_are_served_as_they_are_stored(server: RunningServer, ask: Ask) -> None:
    stored = all_types()
    answer = ask(server.url, lambda client: client.fetch("types", ["c", "a", "nobody", "b"]))
    expected = stored.drop_columns("id").take(pa.array([2, 0, None, 1]))
    for name in expected.column_names:
        one, other = answer[name].to_pylist(), expected[name].to_pylist()
        assert [str(value) for value in one] == [str(value) for value in other], name
        assert answer[name].type == expected[name].type
    assert answer.found.tolist() == [True, True, False, True] and answer.frontier == Frontier(raw=3, cards=5)
    assert answer.status("text").tolist() == [PRESENT, PRESENT, NOT_FOUND, NULL_VALUE]


@pytest.mark.parametrize("kind", [list, np.array, pa.array, tuple], ids=["list", "numpy", "arrow", "tuple"])
def test_numbers_in_any_form(server: RunningServer, ask: Ask, kind: Callable[[Any], Any]) -> None:
    answer = ask(server.url, lambda client: client.fetch("numbers", kind([1, 7, 500])))
    assert answer.to_pylist() == [{"n": 1}, {"n": None}, {"n": None}]
    with pytest.raises(InputError, match="E1762"):
        answer.to_numpy()
    assert answer.to_numpy(fill=-1).tolist() == [[1], [-1], [-1]]


@pytest.mark.parametrize(
    "keys", [[("y", 1), ("x", 2), ("z", 1)], {"b": [1, 2, 1], "a": ["y", "x", "z"]}], ids=["tuples", "dict"]
)
def test_keys_of_several_columns(server: RunningServer, ask: Ask, keys: Any) -> None:
    answer = ask(server.url, lambda client: client.fetch("pairs", keys))
    assert answer.to_pylist() == [{"n": None}, {"n": 2.0}, {"n": None}] and answer.found.tolist() == [True, True, False]


def test_options(server: RunningServer, ask: Ask) -> None:
    dropped = ask(
        server.url, lambda client: client.fetch("items", ["x", "item_3", "y", "item_1"], ["f0"], missing="drop")
    )
    assert dropped.index.tolist() == [1, 3] and dropped.to_numpy().tolist() == [[3.0], [1.0]]
    aged = ask(server.url, lambda client: client.fetch("aged", [1, 2, 3], ["x"], status=True, event_time=True))
    assert aged.status("x").tolist() == [OUTSIDE_MAX_AGE, NULL_VALUE, NOT_FOUND]
    assert aged.found.tolist() == [False, True, False]
    assert aged.event_time.cast(pa.int64()).to_pylist() == [None, 4_000_000_000_000, None]


def test_several_tables(server: RunningServer, ask: Ask) -> None:
    keys = {"customer": ["ada", "bob", "eve"]}
    answer = ask(server.url, lambda client: client.fetch_many({"spend": None, "risk": ["score"]}, keys, status=True))
    assert answer.to_pylist() == [
        {"spend.total": 10.0, "risk.score": None},
        {"spend.total": 5.0, "risk.score": 1},
        {"spend.total": None, "risk.score": 2},
    ]
    assert answer.found_in("spend").tolist() == [True, True, False] and answer.found.tolist() == [False, True, False]
    assert answer.status("risk.score").tolist() == [NOT_FOUND, PRESENT, PRESENT]
    assert answer.frontier == Frontier(orders=7, cards=2) and dict(answer.versions) == {"spend": 1, "risk": 1}
    plain = ask(server.url, lambda client: client.fetch_many(["spend", "risk"], ["bob"]))
    assert plain.to_pylist() == [{"spend.total": 5.0, "risk.score": 1}]
    np.testing.assert_array_equal(
        ask(server.url, lambda client: client.fetch_many(["spend"], ["ada", "eve"])).to_numpy(), [[10.0], [np.nan]]
    )


def test_what_a_server_says_of_itself(server: RunningServer, ask: Ask) -> None:
    assert ask(server.url, lambda client: client.health())["status"] == "ok"
    assert ask(server.url, lambda client: client.ready())["status"] == "ready"
    assert "headwater_" in ask(server.url, lambda client: client.metrics())
    tables = {one["name"]: one for one in ask(server.url, lambda client: client.tables())}
    assert set(tables) == {"aged", "items", "numbers", "pairs", "risk", "spend", "types"}
    assert tables["items"]["rows"] == ROWS and ask(server.url, lambda client: client.describe("items"))["version"] == 1
    schema = ask(server.url, lambda client: client.schema("pairs"))
    assert schema["key"] == ["a", "b"] and schema["columns"]["n"]["dtype"] == "float64"
    assert [one["version"] for one in ask(server.url, lambda client: client.versions("items"))] == [1]


def test_refusals_are_typed(server: RunningServer, ask: Ask) -> None:
    with pytest.raises(NotFoundError, match=r"`itms`") as caught:
        ask(server.url, lambda client: client.fetch("itms", ["a"]))
    assert caught.value.hint is not None and "items" in caught.value.hint
    with pytest.raises(NotFoundError, match=r"E1002.*`f77`"):
        ask(server.url, lambda client: client.fetch("items", ["a"], ["f1", "f77"]))
    with pytest.raises(InputError):
        ask(server.url, lambda client: client.fetch("numbers", ["not a number"]))
    with pytest.raises(RequestError, match="E1748"):
        ask(server.url, lambda client: client.write("items", [{"id": "a"}]))
    with pytest.raises(LimitError, match=r"E8202.*100,001 keys"):
        ask(server.url, lambda client: client.fetch("numbers", list(range(100_001))))
    with pytest.raises(RequestError, match="E1749"):
        ask(server.url, lambda client: client.fetch("items", ["a"], min_frontier="cards@3"))
    with pytest.raises(LimitError, match=r"E8206.*orders@9 was not reached within 0.01 s"):
        ask(server.url, lambda client: client.fetch("items", ["a"], min_frontier="orders@9", wait=0.01))


def test_an_embedded_answer_is_the_served_one(server: RunningServer, folder: Path) -> None:
    keys = ["item_5", "nobody", "item_1999"]
    following = store_at(folder, "items").follow()
    following.advance()
    version = following.current
    assert version is not None
    embedded = Answer(version.fetch(keys), frontier=version.frontier, versions={"items": version.number})
    with hw.Client(server.url) as client:
        served = client.fetch("items", keys)
    assert embedded.to_arrow().equals(served.to_arrow()) or embedded.to_pylist() == served.to_pylist()
    assert embedded.versions == served.versions and embedded.frontier == served.frontier
    np.testing.assert_array_equal(embedded.to_numpy(), served.to_numpy())


# -- what changes --------------------------------------------------------------------------------------------------------


def test_no_answer_mixes_versions(tmp_path: Path) -> None:
    store = store_at(tmp_path, "items")
    publish(store, many(1), ["id"])
    keys = [f"item_{n}" for n in range(0, ROWS, 7)]
    expected = np.arange(0, ROWS, 7, dtype=np.float32)[:, None] + np.arange(10, dtype=np.float32) / 16
    failed = threading.Event()
    with serving(tmp_path, workers=2) as server, hw.Client(server.url, timeout=PATIENCE_S, retries=0) as client:

        def read() -> set[int]:
            seen: set[int] = set()
            while 11 not in seen and not failed.is_set():
                answer = client.fetch("items", keys)
                number = answer.versions["items"]
                assert answer.frontier == Frontier(orders=number) and answer.found.all()
                np.testing.assert_array_equal(answer.to_numpy(), expected + np.float32(10_000 * number))
                seen.add(number)
            return seen

        with ThreadPoolExecutor(3) as threads:
            readers = [threads.submit(read) for _ in range(3)]
            try:
                for number in range(2, 12):
                    assert publish(store, many(number), ["id"]) == number
                    # Whoever knows the version can wait for it, whichever worker answers.
                    waited = client.fetch("items", keys, min_frontier=f"orders@{number}", wait=60)
                    assert waited.versions["items"] >= number
            except BaseException:
                failed.set()
                raise
            assert all(11 in reader.result(PATIENCE_S) for reader in readers), "every reader comes to the last version"


def replace_a_worker(server: RunningServer) -> None:
    """Kill a process of the server, and wait for the one that takes its place."""
    before = server.children()
    victim = min(before)
    os.kill(victim, signal.SIGKILL)

    def is_replaced() -> bool:
        now = server.children()
        return victim not in now and len(now) >= len(before)

    wait_until(is_replaced, "another worker")


def test_a_worker_that_is_killed_costs_a_retry_at_most(folder: Path) -> None:
    keys = [f"item_{n}" for n in range(50)]
    expected = np.arange(50, dtype=np.float32)
    stop = threading.Event()
    with serving(folder, workers=2) as server, hw.Client(server.url, timeout=PATIENCE_S, retries=5) as client:
        wait_ready(server)

        def read() -> int:
            count = 0
            while not stop.is_set():
                np.testing.assert_array_equal(client.fetch("items", keys).to_numpy()[:, 0], expected)
                count += 1
            return count

        with ThreadPoolExecutor(3) as threads:
            readers = [threads.submit(read) for _ in range(3)]
            try:
                for _ in range(4):
                    replace_a_worker(server)
            finally:
                stop.set()
            assert all(reader.result() > 0 for reader in readers)


# -- tables that are written by the API ----------------------------------------------------------------------------------


def hashed(token: str) -> str:
    return f"sha256:{hashlib.sha256(token.encode()).hexdigest()}"


@pytest.fixture(scope="module")
def writable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    made = tmp_path_factory.mktemp("config")
    (made / "serve.yaml").write_text(
        f"""
server:
  host: 127.0.0.1
  port: 0
  data_dir: {made / "data"}
  tokens:
    - name: everything
      hash: "{hashed("secret")}"
      scopes: [read, write, admin]
    - name: reader
      hash: "{hashed("glance")}"
      scopes: ["read:clicks"]
"""
    )
    with running([sys.executable, "-m", "headwater.cli", "serve", "--json", str(made / "serve.yaml")]) as server:
        yield server


def test_a_table_from_its_creation_to_its_end(writable: RunningServer, ask: Ask) -> None:
    def call(use: Callable[[Any], Any], token: str | None = "secret") -> Any:
        return ask(writable.url, use, token=token)

    columns = {"user": "int64", "score": "float32", "name": {"dtype": "utf8", "nullable": True}, "tags": "list<int32>"}
    made = call(lambda client: client.create("clicks", key="user", columns=columns))
    assert made["name"] == "clicks" and made["key"] == ["user"] and made["rows"] == 0
    try:
        rows = [{"user": n, "score": n / 2, "name": f"n{n}", "tags": [n, n]} for n in range(100)]
        written = call(lambda client: client.write("clicks", pa.Table.from_pylist(rows)))
        assert written["rows"] == 100
        answer = call(lambda client: client.fetch("clicks", [7, 1000], min_frontier=written["frontier"]))
        assert answer.to_pylist() == [
            {"score": 3.5, "name": "n7", "tags": [7, 7]},
            {"score": None, "name": None, "tags": None},
        ]
        assert answer.versions["clicks"] == written["version"]
        call(lambda client: client.write("clicks", [{"user": 7, "score": -1.0}]))
        gone = call(lambda client: client.delete("clicks", [8, 1000]))
        answer = call(lambda client: client.fetch("clicks", [7, 8, 9], min_frontier=gone["frontier"]))
        assert answer["score"].to_pylist() == [-1.0, None, 4.5] and answer.found.tolist() == [True, False, True]

        # Nothing but nulls, and nothing at all, have no type of their own.
        nulls = call(lambda client: client.write("clicks", [{"user": 9, "score": None, "name": None, "tags": None}]))
        answer = call(lambda client: client.fetch("clicks", [9, None], min_frontier=nulls["frontier"]))
        assert answer.to_pylist()[0] == {"score": None, "name": None, "tags": None}
        assert answer.found.tolist() == [True, False]
        assert len(call(lambda client: client.fetch("clicks", []))) == 0
        assert call(lambda client: client.fetch("clicks", [None, None])).found.tolist() == [False, False]

        with pytest.raises(AccessError, match="E8101"):
            call(lambda client: client.fetch("clicks", [7]), None)
        with pytest.raises(AccessError, match="E8102"):
            call(lambda client: client.fetch("clicks", [7]), "wrong")
        assert call(lambda client: client.fetch("clicks", [7]), "glance").found.all()
        with pytest.raises(AccessError, match="E8103"):
            call(lambda client: client.write("clicks", [{"user": 7}]), "glance")
        with pytest.raises((InputError, SchemaError, NotFoundError)):
            call(lambda client: client.write("clicks", [{"user": 7, "scroe": 1.0}]))
        with pytest.raises(InputError, match="exists already"):
            call(lambda client: client.create("clicks", key="user", columns=columns))
    finally:
        call(lambda client: client.drop("clicks"))
    with pytest.raises(NotFoundError):
        call(lambda client: client.fetch("clicks", [7]))
