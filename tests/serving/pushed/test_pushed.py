"""Tables whose rows are pushed: against a dict, with every kind of mistake, and with several writers at once."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.incremental.killing import Server
from tests.waiting import wait_until

from headwater.base.errors import HeadwaterError, InputError, NotFoundError, SchemaError
from headwater.base.storage import LocalStorage
from headwater.derived import upkeep
from headwater.serving import commits, pushed
from headwater.serving.config import Config
from headwater.serving.folder import FolderPublisher
from headwater.serving.pushed import PushedCompaction, PushedDefinition, PushedTables
from headwater.serving.store import OnlineStore
from headwater.testing.faults import FaultPlan, SimulatedCrash

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.float32()), ("s", pa.string())])


@pytest.fixture
def tables(tmp_path: Path) -> PushedTables:
    made = PushedTables(LocalStorage(tmp_path))
    made.create("t", key=["id"], schema=SCHEMA)
    return made


def rows(*ids: int, v: float = 0.5, s: str | None = "x") -> pa.Table:
    return pa.Table.from_pylist([{"id": i, "v": v, "s": s} for i in ids], SCHEMA)


def read(tables: PushedTables, name: str = "t") -> dict[Any, dict[str, Any]]:
    version = OnlineStore(tables.root, name).newest()
    assert version is not None
    found = version.read().read_all().to_pylist()
    made = {tuple(row[k] for k in version.key): row for row in found}
    assert len(made) == len(found) == version.rows
    return made


def refused(call: Any) -> HeadwaterError:
    with pytest.raises(HeadwaterError) as caught:
        call()
    assert caught.value.hint
    return caught.value


# -- rows --------------------------------------------------------------------------------------------------------------


def test_a_new_table_is_empty_and_answers(tables: PushedTables) -> None:
    version = OnlineStore(tables.root, "t").newest()
    assert version is not None and (version.rows, str(version.frontier)) == (0, "t@1")
    assert version.fetch([1]).batch().to_pylist() == [{"v": None, "s": None, "_found": False}]


def test_rows_are_written_replaced_and_deleted(tables: PushedTables) -> None:
    done = tables.upsert("t", rows(1, 2, 3))
    assert (done.rows, done.version, str(done.frontier)) == (3, 2, "t@2")
    done = tables.upsert("t", rows(2, 4, v=1.5, s=None))
    assert (done.rows, str(done.frontier)) == (2, "t@3")
    assert read(tables)[2,] == {"id": 2, "v": 1.5, "s": None} and sorted(read(tables)) == [(1,), (2,), (3,), (4,)]
    done = tables.delete("t", [2, 9, 2])
    assert (done.rows, str(done.frontier)) == (1, "t@4") and sorted(read(tables)) == [(1,), (3,), (4,)]
    done = tables.delete("t", [2, 9])
    assert (done.rows, done.version, str(done.frontier)) == (0, 4, "t@4")  # nothing was there to delete
    tables.upsert("t", rows(2))
    assert len(read(tables)) == 4
    assert tables.upsert("t", rows()).version == 5


@pytest.mark.long
@given(st.lists(st.tuples(st.booleans(), st.sets(st.integers(0, 20), max_size=8)), max_size=12))
def test_it_equals_a_dict(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[bool, set[int]]]) -> None:
    tables = PushedTables(LocalStorage(tmp_path_factory.mktemp("d")), background=False)
    tables.create("t", key=["id"], schema=SCHEMA)
    wanted: dict[Any, dict[str, Any]] = {}
    for number, (writes, ids) in enumerate(steps):
        if writes:
            tables.upsert("t", rows(*ids, v=float(number), s="long " * number))
            wanted |= {(i,): {"id": i, "v": float(number), "s": "long " * number} for i in ids}
        else:
            assert tables.delete("t", sorted(ids)).rows == sum((i,) in wanted for i in ids)
            wanted = {key: row for key, row in wanted.items() if key[0] not in ids}
        if number % 4 == 3:
            tables.compact("t", always=True)
        assert read(tables) == wanted


def test_composite_keys(tables: PushedTables) -> None:
    schema = pa.schema([("n", pa.int32()), ("user", pa.string()), ("day", pa.date32())])
    tables.create("u", key=["user", "day"], schema=schema)
    assert tables.definition("u").schema.names == ["user", "day", "n"]
    given = pa.table({"n": pa.array([1, 2], pa.int32()), "user": ["a", "b"], "day": pa.array([1, 2], pa.date32())})
    tables.upsert("u", given)
    assert tables.delete("u", given.select(["day", "user"]).slice(1)).rows == 1
    assert [row["user"] for row in read(tables, "u").values()] == ["a"]


def test_negative_zero_is_zero(tables: PushedTables) -> None:
    tables.create("f", key=["k"], schema=pa.schema([("k", pa.float64()), ("v", pa.int64())]))
    assert refused(lambda: tables.upsert("f", pa.table({"k": [0.0, -0.0], "v": [1, 2]}))).code == "E1704"
    tables.upsert("f", pa.table({"k": [0.0], "v": [1]}))
    assert tables.delete("f", [-0.0, 0.0]).rows == 1


# -- mistakes ----------------------------------------------------------------------------------------------------------


def bad_rows() -> dict[str, tuple[pa.Table, str]]:
    good = {"id": pa.array([1, 2], pa.int64()), "v": pa.array([1, 2], pa.float32()), "s": pa.array(["a", "b"])}
    return {
        "a column is missing": (pa.table({k: good[k] for k in ("id", "v")}), "E1737"),
        "a column too many": (pa.table({**good, "w": good["v"]}), "E1737"),
        "a misspelt column": (pa.table({"id": good["id"], "vv": good["v"], "s": good["s"]}), "E1737"),
        "the key is missing": (pa.table({k: good[k] for k in ("v", "s")}), "E1737"),
        "a column twice": (pa.Table.from_arrays([*good.values(), good["v"]], [*good, "v"]), "E1205"),
        "text for numbers": (pa.table({**good, "v": pa.array(["1", "2"])}), "E1738"),
        "numbers for text": (pa.table({**good, "s": pa.array([1, 2])}), "E1738"),
        "a wider float": (pa.table({**good, "v": pa.array([1.0, 2.0])}), "E1738"),
        "a fraction as key": (pa.table({**good, "id": pa.array([1.0, 2.0])}), "E1738"),
        "a number that does not fit": (pa.table({**good, "id": pa.array([1, 2**64 - 1], pa.uint64())}), "E1738"),
        "a null key": (pa.table({**good, "id": pa.array([1, None], pa.int64())}), "E1738"),
        "a type that nothing can hold": (pa.table({**good, "s": pa.array([{"a": 1}, {"a": 2}])}), "E1701"),
        "a key twice": (pa.table({**good, "id": pa.array([1, 1], pa.int64())}), "E1704"),
        "the same row twice": (pa.table({k: pa.concat_arrays([v[:1], v[:1]]) for k, v in good.items()}), "E1704"),
    }


@pytest.mark.parametrize("title", bad_rows())
def test_bad_rows_are_refused_as_a_whole(tables: PushedTables, title: str) -> None:
    tables.upsert("t", rows(7))
    given, code = bad_rows()[title]
    error = refused(lambda: tables.upsert("t", given))
    assert error.code == code and isinstance(error, InputError)
    assert list(read(tables)) == [(7,)]
    assert len(tables_files(tables)) == 2  # the base and one overlay


def tables_files(tables: PushedTables, name: str = "t") -> list[str]:
    store = OnlineStore(tables.root, name)
    named = commits.Commits(tables.root, name).head().record
    assert named is not None
    return [one for one in store.file_names() if one not in named.superseded]


def test_a_misspelt_column_is_named(tables: PushedTables) -> None:
    error = refused(lambda: tables.upsert("t", rows(1).rename_columns(["idd", "v", "s"])))
    assert error.message == "the rows lack id and have idd, which the table has not"
    assert error.hint is not None and "did you mean `id`?" in error.hint


def test_nulls_where_none_may_be(tables: PushedTables) -> None:
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("v", pa.int64(), nullable=False)])
    tables.create("n", key=["id"], schema=schema)
    error = refused(lambda: tables.upsert("n", pa.table({"id": [1], "v": pa.array([None], pa.int64())})))
    assert (type(error), error.code) == (SchemaError, "E1738")
    assert tables.upsert("n", pa.table({"id": [1], "v": [1]})).rows == 1


def test_keys_to_delete_that_are_none(tables: PushedTables) -> None:
    assert refused(lambda: tables.delete("t", ["a"])).code == "E1702"
    assert refused(lambda: tables.delete("t", [1, None])).code == "E1738"
    assert refused(lambda: tables.delete("t", pa.table({"a": [1], "b": [2]}))).code == "E1703"


def test_what_loses_nothing_is_converted(tables: PushedTables) -> None:
    given = {
        "id": pa.array([1], pa.uint8()),
        "v": pa.array([0.5], pa.float16()),
        "s": pa.array(["x"]).dictionary_encode(),
    }
    tables.upsert("t", pa.table(given))
    assert read(tables) == {(1,): {"id": 1, "v": 0.5, "s": "x"}}
    tables.upsert("t", pa.table({**given, "s": pa.nulls(1)}))
    assert read(tables)[1,]["s"] is None
    tables.upsert("t", pa.table({**given, "s": pa.array(["y"], pa.large_string())}).to_reader())
    tables.upsert("t", pa.table({**given, "id": pa.array([2])}).to_batches()[0])
    assert {row["s"] for row in read(tables).values()} == {"x", "y"}
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us")), ("l", pa.list_(pa.float32()))])
    tables.create("c", key=["id"], schema=schema)
    tables.upsert(
        "c",
        pa.table({"id": [1], "at": pa.array([5], pa.timestamp("s")), "l": pa.array([[0.5]], pa.list_(pa.float16()))}),
    )
    late = pa.table(
        {"id": [1], "at": pa.array([5], pa.timestamp("ns")), "l": pa.array([[0.5]], pa.list_(pa.float32()))}
    )
    assert refused(lambda: tables.upsert("c", late)).code == "E1738"  # 5 ns are no whole microsecond


def test_rows_that_are_no_arrow(tables: PushedTables) -> None:
    given: Any = [{"id": 1}]
    assert refused(lambda: tables.upsert("t", given)).code == "E1006"


# -- tables ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"key": []}, "E1001"),
        ({"key": ["id", "id"]}, "E1001"),
        ({"key": "id"}, "E1001"),
        ({"key": ["nobody"]}, "E1002"),
        ({"schema": pa.schema([("id", pa.int64()), ("v", pa.struct([("a", pa.int64())]))])}, "E1701"),
        ({"schema": pa.schema([("id", pa.int64()), ("id", pa.int64())])}, "E1205"),
        ({"schema": pa.schema([("id", pa.int64()), ("_found", pa.bool_())])}, "E1001"),
        ({"event_time": "v"}, "E1001"),
        ({"event_time": "at"}, "E1002"),
        ({"ttl_ms": 5}, "E1001"),
    ],
    ids=str,
)
def test_tables_that_cannot_be(tables: PushedTables, options: dict[str, Any], code: str) -> None:
    assert refused(lambda: tables.create("u", **{"key": ["id"], "schema": SCHEMA, **options})).code == code
    assert tables.names() == ["t"]


@pytest.mark.parametrize("name", ["../t", "a/b", "", "1a", "_headwater", "a b", "t\0", "t\n", "a.b.c.d"])
def test_names_that_cannot_be(tables: PushedTables, name: str) -> None:
    assert refused(lambda: tables.create(name, key=["id"], schema=SCHEMA)).code == "E1004"
    assert isinstance(refused(lambda: tables.upsert(name, rows(1))), InputError)
    assert isinstance(refused(lambda: tables.drop(name)), InputError)


def test_a_table_that_is_there(tables: PushedTables) -> None:
    tables.upsert("t", rows(1))
    assert refused(lambda: tables.create("t", key=["id"], schema=SCHEMA)).code == "E1005"
    tables.create("t", key=["id"], schema=SCHEMA, exists_ok=True)
    other = pa.schema([("id", pa.int64()), ("v", pa.int32())])
    assert refused(lambda: tables.create("t", key=["id"], schema=other, exists_ok=True)).code == "E1616"
    assert list(read(tables)) == [(1,)]


def test_another_ttl(tables: PushedTables) -> None:
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("ms"))])
    for ttl_ms in (1_000, 60_000, 60_000):
        tables.create("u", key=["id"], schema=schema, ttl_ms=ttl_ms, event_time="at", exists_ok=True)
        version = OnlineStore(tables.root, "u").newest()
        assert version is not None and (version.ttl_ms, version.event_time) == (ttl_ms, "at")
    assert OnlineStore(tables.root, "u").log.numbers() == [1, 2]


def test_dropped(tables: PushedTables) -> None:
    tables.upsert("t", rows(1))
    following = OnlineStore(tables.root, "t").follow()
    assert following.advance()
    tables.drop("t")
    assert tables.names() == [] and not following.advance() and getattr(following, "current") is None  # noqa: B009
    for call in (lambda: tables.upsert("t", rows(1)), lambda: tables.delete("t", [1]), lambda: tables.drop("t")):
        assert isinstance(refused(call), NotFoundError)
    tables.create("t", key=["id"], schema=pa.schema([("id", pa.int64()), ("w", pa.bool_())]))
    assert following.advance() and following.current is not None
    assert following.current.columns == ("w",) and following.current.number == 3  # numbers go on


def test_a_table_of_date_folders_takes_no_rows(tables: PushedTables, tmp_path: Path) -> None:
    folder = tmp_path / "in" / "2024-01-01"
    folder.mkdir(parents=True)
    pq.write_table(rows(1), folder / "a.parquet")
    (folder / "_SUCCESS").touch()
    config = Config.parse(f"tables: {{f: {{source: {{local: {{path: {tmp_path}/in}}}}, key: [id]}}}}", environ={})
    assert FolderPublisher("f", config.tables["f"], tables.root).publish()
    assert tables.names() == ["t"]
    for call in (
        lambda: tables.upsert("f", rows(1)),
        lambda: tables.delete("f", [1]),
        lambda: tables.drop("f"),
        lambda: tables.create("f", key=["id"], schema=SCHEMA, exists_ok=True),
    ):
        assert refused(call).code in ("E1739", "E1005")
    assert list(read(tables, "f")) == [(1,)]


def test_a_definition_is_read_back(tables: PushedTables) -> None:
    schema = pa.schema([pa.field("a", pa.decimal128(9, 2), nullable=False), ("b", pa.list_(pa.float16()))])
    meant = PushedDefinition.of(["a"], schema)
    assert PushedDefinition.from_json(meant.to_json()) == meant
    assert str(meant) == "a decimal(9,2) not null, b list<float16> by a"


# -- upkeep ------------------------------------------------------------------------------------------------------------


def test_overlays_are_taken_in_in_the_background(tables: PushedTables) -> None:
    for begin in range(0, 6_000, 500):
        last = tables.upsert("t", rows(*range(begin, begin + 500)))
    upkeep.wait()
    record = commits.Commits(tables.root, "t").head().record
    assert record is not None and record.layers[-1].rows > 2_000 and record.rows == 6_000
    assert record.frontier == last.frontier  # which compacting does not move
    assert len(read(tables)) == 6_000


@pytest.mark.parametrize("small", [100_000, 0], ids=["laid out anew", "copied"])
def test_compacting(tables: PushedTables, monkeypatch: pytest.MonkeyPatch, small: int) -> None:
    monkeypatch.setattr(pushed, "_SMALL_ROWS", small)
    tables.upsert("t", rows(*range(100)))
    tables.delete("t", list(range(50)))
    before, wanted = commits.Commits(tables.root, "t").head(), read(tables)
    assert not tables.compact("t")  # it is too little
    assert tables.compact("t", always=True) and not tables.compact("t", always=True)
    after = commits.Commits(tables.root, "t").head()
    assert before.record is not None and after.record is not None
    assert (after.number, after.record.frontier) == (before.number + 1, before.record.frontier)
    assert after.record.last == before.record.last and len(after.record.layers) == 1
    assert after.record.layers[0].rows == after.record.rows == 50 and read(tables) == wanted


def test_writes_go_on_while_a_large_table_is_compacted(tables: PushedTables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushed, "_SMALL_ROWS", 0)
    tables.upsert("t", rows(*range(100)))

    def meanwhile(*_: str) -> None:
        tables.upsert("t", rows(5, 200, v=9.0))
        tables.delete("t", [6])

    with FaultPlan().call_at("online.file.before_header", meanwhile, nth=1):
        assert tables.compact("t", always=True)
    found = read(tables)
    assert found[5,]["v"] == 9.0 and (6,) not in found and (200,) in found and len(found) == 100


def test_a_process_of_its_own_compacts(tmp_path: Path) -> None:
    tables = PushedTables(LocalStorage(tmp_path), background=False)
    tables.create("t", key=["id"], schema=SCHEMA)
    tables.upsert("t", rows(*range(3_000)))
    upkeep.wait()
    compaction = PushedCompaction(tables.root)
    record = commits.Commits(tables.root, "t").head().record
    assert record is not None and len(record.layers) == 2
    assert compaction.tick() > 0 and compaction.error is None
    record = commits.Commits(tables.root, "t").head().record
    assert record is not None and len(record.layers) == 1 and len(read(tables)) == 3_000


@pytest.mark.long
def test_files_stay_few(tables: PushedTables) -> None:
    for number in range(60):
        tables.upsert("t", rows(number))
    record = commits.Commits(tables.root, "t").head().record
    assert record is not None and len(record.layers) <= 9
    assert len(OnlineStore(tables.root, "t").file_names()) <= len(record.files) + len(record.superseded)
    assert len(commits.Commits(tables.root, "t").log.numbers()) == 10


# -- several writers ---------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_threads_write_at_once(tables: PushedTables) -> None:
    failed: list[BaseException] = []

    def write(worker: int) -> None:
        try:
            for number in range(10):
                tables.upsert("t", rows(worker * 100 + number, 999, v=float(worker)))
        except BaseException as e:  # noqa: BLE001
            failed.append(e)

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and len(read(tables)) == 41
    assert str(commits.Commits(tables.root, "t").head().record.frontier) == "t@41"  # type: ignore[union-attr]


WRITER = """
import sys
import pyarrow as pa
from headwater.base.storage import LocalStorage
from headwater.serving.pushed import PushedTables
root, worker, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
tables = PushedTables(LocalStorage(root), background=worker % 2 == 0)
for number in range(count):
    ids = [worker * 1_000_000 + number * 2, worker * 1_000_000 + number * 2 + 1]
    table = pa.table({"id": ids, "v": pa.array([number, number], pa.float32()), "s": ["x", "y" * 50]})
    print(*ids, str(tables.upsert("t", table).frontier), flush=True)
"""


def start(tables: PushedTables, worker: int, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, tables.root.url, str(worker), str(count)],
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.long
def test_processes_write_at_once(tables: PushedTables) -> None:
    processes = [start(tables, worker, 25) for worker in (1, 2)]
    said = [process.communicate()[0].splitlines() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    frontiers = [line.split()[2] for lines in said for line in lines]
    assert len(set(frontiers)) == 50  # each write is a version of its own
    assert len(read(tables)) == 100


@pytest.mark.long
def test_a_writer_that_is_killed_loses_nothing_that_it_was_told_is_written(
    tables: PushedTables, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> None:
    server, out = Server("tests.serving.pushed.kill_server"), tmp_path_factory.mktemp("told") / "lines.txt"
    request.addfinalizer(server.close)
    rng = np.random.default_rng(7)
    told: set[tuple[int]] = set()
    begun = 0
    for attempt in range(8):
        points = ("storage.put_if_absent.*", "online.*", "derived.record.*", "online.file.before_delete")
        fault = f"{points[attempt % 4]}:kill:{int(rng.integers(2, 14))}"
        status = server.live(root=tables.root.url, worker=attempt + 1, count=12, fault=fault, out=str(out))
        assert os.waitstatus_to_exitcode(status) in (-signal.SIGKILL, 0)
        lines = out.read_text().splitlines()
        told |= {(int(one),) for line in lines for one in line.split()[:2]}
        begun += len(lines) + 1
        found = set(read(tables))
        assert told <= found and len(found) <= 2 * begun
        for one in found:
            pair = (one[0] ^ 1,)
            assert pair in found, "a write is there as a whole, or not at all"
    store = OnlineStore(tables.root, "t")
    assert tables.upsert("t", rows(5)).rows == 1 and len(store.log.numbers()) <= 10


@pytest.mark.long
def test_a_crash_anywhere_leaves_all_of_a_write_or_nothing(tmp_path: Path) -> None:
    def opened(attempt: str) -> PushedTables:
        commits._places.clear()  # as another process
        return PushedTables(LocalStorage(tmp_path / attempt), background=False)

    def begin(attempt: str) -> None:
        tables = opened(attempt)
        tables.create("t", key=["id"], schema=SCHEMA)
        for ids in ((1, 2), (3, 4), (5,)):
            tables.upsert("t", rows(*ids))

    begin("watched")
    with FaultPlan() as watched:
        opened("watched").upsert("t", rows(1, 9, v=7.0))
    before, after = {1: 0.5, 2: 0.5, 3: 0.5, 4: 0.5, 5: 0.5}, {1: 7.0, 2: 0.5, 3: 0.5, 4: 0.5, 5: 0.5, 9: 7.0}
    seen = Counter[bool]()
    for point, times in sorted(Counter(watched.reached).items()):
        for nth in range(1, times + 1):
            attempt = f"{point}-{nth}"
            begin(attempt)
            with FaultPlan().crash_at(point, nth=nth), contextlib.suppress(SimulatedCrash):
                opened(attempt).upsert("t", rows(1, 9, v=7.0))
            now = {row["id"]: row["v"] for row in read(opened(attempt)).values()}
            assert now in (before, after), f"after a crash at {point}"
            seen[now == after] += 1
            opened(attempt).upsert("t", rows(1, 9, v=7.0))
            assert {row["id"]: row["v"] for row in read(opened(attempt)).values()} == after
    assert seen[False] and seen[True]


@pytest.mark.long
def test_readers_never_see_half_of_a_write(tables: PushedTables) -> None:
    following = OnlineStore(tables.root, "t").follow()
    following.advance()
    stop, torn = threading.Event(), []

    def look() -> None:
        while not stop.is_set():
            following.advance()
            version = following.current
            assert version is not None
            found = version.fetch([1, 2, 3], ["v"]).batch().column("v").to_pylist()
            if len(set(found)) != 1 or following.error is not None:
                torn.append((found, following.error))

    reader = threading.Thread(target=look)
    reader.start()
    for number in range(60):
        tables.upsert("t", rows(1, 2, 3, v=float(number)))
    wait_until(lambda: following.current is not None and str(following.current.frontier) == "t@61", "the last write")
    stop.set()
    reader.join()
    assert not torn
