"""From date folders to served rows: what is published, what is refused, and when it is looked at again."""

from __future__ import annotations

import contextlib
import errno
import os
from collections import Counter
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.serving.folder.conftest import Folders, served

from headwater.base.errors import HeadwaterError, PartitionError, StorageError
from headwater.base.storage import LocalStorage
from headwater.serving import commits
from headwater.serving.folder import FolderPublisher
from headwater.testing.faults import FaultPlan, SimulatedCrash

ONE = [{"id": 1, "v": 1.5}, {"id": 2, "v": 2.5}]
TWO = [{"id": 1, "v": 10.5}, {"id": 3, "v": 3.5}]
DECLARED = {"id": ("int64", False), "v": "float64"}


@pytest.fixture(params=["disk", pytest.param("s3", marks=pytest.mark.s3)])
def source(request: pytest.FixtureRequest) -> Folders:
    found: Folders = request.getfixturevalue("folders" if request.param == "disk" else "s3_folders")
    return found


def problem(publisher: FolderPublisher) -> str | None:
    """The code of the error that is reported."""
    return None if publisher.error is None else publisher.error.code


def refused(publisher: FolderPublisher) -> HeadwaterError:
    with pytest.raises(HeadwaterError) as caught:
        publisher.publish()
    return caught.value


# -- what is served ----------------------------------------------------------------------------------------------------


def test_the_newest_partition_is_served(source: Folders) -> None:
    source.write("2024-01-13", ONE)
    publisher = source.publisher(columns=DECLARED)
    assert publisher.publish() and served(publisher) == ONE
    version = publisher.commits.store.newest()
    assert version is not None
    assert (str(version.frontier), version.number, version.rows) == ("features@20240113", 1, 2)
    assert not publisher.publish()  # there is nothing new

    source.write("2024-01-14", TWO)
    assert publisher.publish() and served(publisher) == TWO and publisher.served == "2024-01-14"
    version = publisher.commits.store.newest()
    assert version is not None and (str(version.frontier), version.number) == ("features@20240114", 2)
    assert version.fetch([3, 2], ["v"]).batch().to_pylist() == [
        {"v": 3.5, "_found": True},
        {"v": None, "_found": False},
    ]


def test_a_partition_of_the_same_date_that_is_written_again(source: Folders) -> None:
    source.write("2024-01-13", ONE)
    publisher = source.publisher()
    publisher.publish()
    source.write("2024-01-13", TWO)
    assert publisher.publish() and served(publisher) == TWO
    version = publisher.commits.store.newest()
    assert version is not None and (str(version.frontier), version.number) == ("features@20240113", 2)


def test_a_vanished_partition_is_served_on_and_reported(source: Folders) -> None:
    source.write("2024-01-13", ONE)
    source.write("2024-01-14", TWO)
    publisher = source.publisher()
    publisher.publish()
    source.remove("2024-01-14")
    error = refused(publisher)
    assert (type(error), error.code) == (PartitionError, "E1735")
    assert "2024-01-14" in error.message and "2024-01-13" in error.message
    source.remove("2024-01-13")
    assert refused(publisher).message == "the folder 2024-01-14, which is served, is gone"
    assert served(publisher) == TWO
    source.write("2024-01-15", ONE)
    assert publisher.publish() and served(publisher) == ONE


def test_nothing_to_serve_yet(folders: Folders) -> None:
    folders.write("2024-01-13", done=False)
    folders.write("2024-1-5")
    publisher = folders.publisher()
    error = refused(publisher)
    assert error.code == "E1730" and served(publisher) == []
    assert error.message == (
        "there is nothing to serve: 2024-01-13 has no _SUCCESS; 2024-1-5 is not a date written as YYYY-MM-DD"
    )


def test_several_files_and_parts(folders: Folders) -> None:
    for number in range(3):
        rows = [{"id": f"k{number * 1000 + i}", "v": i, "s": "x" * (i % 40)} for i in range(1000)]
        folders.write("2024-01-13", rows, name=f"part-{number}.parquet")
    publisher = folders.publisher(parts=4)
    publisher.publish()
    head = publisher.commits.head()
    assert head.record is not None and len(head.record.layers[0].files) == 4 and head.record.rows == 3000
    version = publisher.commits.store.newest()
    assert version is not None
    found = version.fetch(["k7", "k2999", "nobody"]).batch().to_pylist()
    assert [row["v"] for row in found] == [7, 999, None] and found[1]["s"] == "x" * 39


def test_composite_keys(folders: Folders) -> None:
    rows = [{"user": "a", "day": date(2024, 1, 1), "n": 1}, {"user": "a", "day": date(2024, 1, 2), "n": 2}]
    folders.write("2024-01-13", rows)
    publisher = folders.publisher(key=["user", "day"])
    publisher.publish()
    assert served(publisher) == rows


def test_only_declared_columns_are_served(folders: Folders) -> None:
    folders.write("2024-01-13", [{"secret": "x", "v": 1.5, "id": 1}])
    publisher = folders.publisher(columns=DECLARED)
    publisher.publish()
    assert served(publisher) == [{"id": 1, "v": 1.5}]


def test_an_empty_partition(folders: Folders) -> None:
    folders.write("2024-01-13", pa.table({"id": pa.array([], pa.int64()), "v": pa.array([], pa.float64())}))
    publisher = folders.publisher()
    assert publisher.publish() and served(publisher) == []
    version = publisher.commits.store.newest()
    assert version is not None and version.rows == 0
    assert version.fetch([1]).batch().to_pylist() == [{"v": None, "_found": False}]


def test_order_by_decides_between_rows(folders: Folders) -> None:
    folders.write(
        "2024-01-13", [{"id": 1, "at": 1, "v": 1.5}, {"id": 1, "at": 3, "v": 3.5}, {"id": 2, "at": 1, "v": 0.5}]
    )
    folders.write("2024-01-13", [{"id": 1, "at": 2, "v": 2.5}], name="part-1.parquet")
    publisher = folders.publisher(order_by="at")
    publisher.publish()
    assert served(publisher) == [{"id": 1, "at": 3, "v": 3.5}, {"id": 2, "at": 1, "v": 0.5}]
    version = publisher.commits.store.newest()
    assert version is not None and version.rows == 2


def test_ttl_and_event_time(folders: Folders) -> None:
    old, new = datetime(2024, 1, 1), datetime(2024, 1, 10)
    folders.write("2024-01-13", [{"id": 1, "at": old}, {"id": 2, "at": new}])
    publisher = folders.publisher(ttl=timedelta(days=5), event_time="at", columns={"id": "int64", "at": "timestamp"})
    publisher.publish()
    version = publisher.commits.store.newest()
    assert version is not None
    now_ms = int((datetime(2024, 1, 12) - datetime(1970, 1, 1)) / timedelta(milliseconds=1))
    assert version.fetch([1, 2], now_ms=now_ms).batch().column("_found").to_pylist() == [False, True]

    files = publisher.commits.head().record
    longer = folders.publisher(ttl=timedelta(days=50), event_time="at", columns={"id": "int64", "at": "timestamp"})
    assert longer.publish() and not longer.publish()
    version = longer.commits.store.newest()
    assert version is not None
    assert version.fetch([1, 2], now_ms=now_ms).batch().column("_found").to_pylist() == [True, True]
    after = longer.commits.head().record
    assert files is not None and after is not None and after.files == files.files  # no rows were read for it


@pytest.mark.parametrize("options", [{"parts": 3}, {"columns": {"id": "int64"}}, {"key": ["id", "v"]}], ids=str)
def test_another_declaration_is_loaded_again(folders: Folders, options: dict[str, Any]) -> None:
    folders.write("2024-01-13", ONE)
    folders.publisher().publish()
    other = folders.publisher(**options)
    assert other.publish() and not other.publish()
    assert served(other) == [{"id": 1}, {"id": 2}] if "columns" in options else ONE


def test_files_that_were_lost_are_made_again(folders: Folders) -> None:
    folders.write("2024-01-13", ONE)
    publisher = folders.publisher()
    publisher.publish()
    for name in publisher.commits.store.file_names():
        os.unlink(Path(publisher.commits.store.folder.folder) / name)
    assert publisher.publish() and served(publisher) == ONE


@pytest.mark.long
def test_old_files_go(folders: Folders) -> None:
    publisher = folders.publisher()
    for day in range(10, 25):
        folders.write(f"2024-01-{day}", ONE)
        publisher.publish()
    assert len(publisher.commits.store.file_names()) == 2  # of the newest version, and of the one before it
    assert len(publisher.commits.log.numbers()) == 10


# -- every type --------------------------------------------------------------------------------------------------------

VALUES: dict[str, tuple[pa.DataType, Any]] = {
    "utf8": (pa.string(), "süß"),
    "binary": (pa.binary(), b"\x00\xff"),
    "bool": (pa.bool_(), True),
    "int8": (pa.int8(), -128),
    "int16": (pa.int16(), -32768),
    "int32": (pa.int32(), -(2**31)),
    "int64": (pa.int64(), -(2**63)),
    "uint8": (pa.uint8(), 255),
    "uint16": (pa.uint16(), 65535),
    "uint32": (pa.uint32(), 2**32 - 1),
    "uint64": (pa.uint64(), 2**64 - 1),
    "float16": (pa.float16(), 1.5),
    "float32": (pa.float32(), 0.25),
    "float64": (pa.float64(), 0.1),
    "decimal(10,2)": (pa.decimal128(10, 2), Decimal("12345678.90")),
    "date": (pa.date32(), date(2024, 2, 29)),
    "timestamp": (pa.timestamp("ms"), datetime(2024, 2, 29, 1, 2, 3)),
    "timestamp(us)": (pa.timestamp("us"), datetime(2024, 2, 29, 1, 2, 3, 4)),
    "list<float32>": (pa.list_(pa.float32()), [0.5, 1.5]),
    "list<int64>": (pa.list_(pa.int64()), [1, None]),
}


@pytest.mark.parametrize("dtype", VALUES)
def test_each_type(folders: Folders, dtype: str) -> None:
    kind, value = VALUES[dtype]
    folders.write("2024-01-13", pa.table({"id": [1, 2], "v": pa.array([value, None], kind)}))
    publisher = folders.publisher(columns={"id": "int64", "v": dtype})
    publisher.publish()
    assert served(publisher) == [{"id": 1, "v": value}, {"id": 2, "v": None}]


@pytest.mark.parametrize("dtype", [d for d in VALUES if not d.startswith("list")])
def test_each_type_as_key(folders: Folders, dtype: str) -> None:
    kind, value = VALUES[dtype]
    folders.write("2024-01-13", pa.table({"k": pa.array([value], kind), "v": [7]}))
    publisher = folders.publisher(key=["k"], columns={"k": dtype, "v": "int64"})
    publisher.publish()
    assert served(publisher) == [{"k": value, "v": 7}]


@pytest.mark.parametrize("dtype", VALUES)
def test_each_type_is_told_from_others(folders: Folders, dtype: str) -> None:
    kind, value = VALUES[dtype]
    folders.write("2024-01-13", pa.table({"id": [1], "v": pa.array([value], kind)}))
    other = "int32" if dtype != "int32" else "int64"
    assert refused(folders.publisher(columns={"id": "int64", "v": other})).code == "E1732"


def test_other_forms_of_a_type(folders: Folders) -> None:
    words = pa.array(["a", "b", "a"]).dictionary_encode()
    folders.write("2024-01-13", pa.table({"id": pa.array(["x", "y", "z"], pa.large_string()), "v": words}))
    publisher = folders.publisher(columns={"id": "utf8", "v": "utf8"})
    publisher.publish()
    assert [row["v"] for row in served(publisher)] == ["a", "b", "a"]


# -- what is refused ---------------------------------------------------------------------------------------------------


def bad_partitions() -> dict[str, tuple[Any, dict[str, Any], str]]:
    """By title: the rows, options of the table, and the code."""
    return {
        "a column is missing": ([{"id": 9}], {}, "E1731"),
        "the key is missing": ([{"v": 1.5}], {}, "E1731"),
        "another type": ([{"id": 9, "v": "x"}], {}, "E1732"),
        "a wider type": ([{"id": 9, "v": 1}], {}, "E1732"),
        "a key of another type": ([{"id": "9", "v": 1.5}], {}, "E1732"),
        "a null in the key": ([{"id": None, "v": 1.5}, {"id": 9, "v": 1.5}], {}, "E1733"),
        "a null where none may be": (
            [{"id": 9, "v": None}, {"id": 8, "v": 1.5}],
            {"columns": {"id": "int64", "v": ("float64", False)}},
            "E1733",
        ),
        "a key twice": ([{"id": 9, "v": 1.5}, {"id": 9, "v": 2.5}], {}, "E1704"),
        "a null in the order": ([{"id": 9, "v": None}, {"id": 8, "v": 1.5}], {"order_by": "v"}, "E1706"),
        "an event time that is none": ([{"id": 9, "v": 1.5}], {"columns": {}, "event_time": "v"}, "E1732"),
        "an event time that is missing": ([{"id": 9, "v": 1.5}], {"columns": {}, "event_time": "at"}, "E1731"),
        "a type that nothing can hold": (pa.table({"id": [9], "v": [{"a": 1}]}), {"columns": {}}, "E1701"),
        "a reserved name": ([{"id": 9, "_found": True}], {"columns": {}}, "E1001"),
    }


@pytest.mark.parametrize("title", bad_partitions())
def test_a_bad_partition_is_refused(folders: Folders, title: str) -> None:
    rows, options, code = bad_partitions()[title]
    folders.write("2024-01-14", rows)
    publisher = folders.publisher(**{"columns": DECLARED, **options})
    error = refused(publisher)
    assert error.code == code and error.hint
    assert served(publisher) == [] and publisher.commits.store.file_names() == []


@pytest.mark.parametrize("title", ["a column is missing", "another type", "a null in the key", "a key twice"])
def test_the_old_partition_is_served_on(folders: Folders, title: str) -> None:
    folders.write("2024-01-13", ONE)
    publisher = folders.publisher(columns=DECLARED)
    publisher.tick()
    rows, _, code = bad_partitions()[title]
    folders.write("2024-01-14", rows)
    folders.now += 10
    assert publisher.tick() == 10 and problem(publisher) == code
    assert served(publisher) == ONE and publisher.served == "2024-01-13"
    assert len(publisher.commits.log.numbers()) == 1
    folders.write("2024-01-14", TWO)
    folders.now += 10
    publisher.tick()
    assert problem(publisher) is None and served(publisher) == TWO


def test_files_that_are_no_parquet(source: Folders) -> None:
    for data in (b"", b"PAR1", b"PAR1" + b"\0" * 100 + b"PAR1", b"id,v\n1,2\n"):
        source.put("2024-01-14/part-0.parquet", data)
        source.put("2024-01-14/_SUCCESS")
        error = refused(source.publisher())
        assert error.code == "E1734" and (error.where or "").endswith("2024-01-14/part-0.parquet")


def test_a_truncated_file_among_good_ones(folders: Folders) -> None:
    rows = pa.table({"id": range(100_000), "v": [float(i) for i in range(100_000)]})
    folders.write("2024-01-14", rows)
    folders.write("2024-01-14", pa.table({"id": range(100_000, 200_000), "v": rows["v"]}), name="part-1.parquet")
    whole = folders.root.get("2024-01-14/part-1.parquet")
    folders.put("2024-01-14/part-1.parquet", whole[:5000] + bytes(2000) + whole[7000:])
    publisher = folders.publisher()
    assert refused(publisher).code in ("E1734", "E1704")  # damaged pages fail, or are other numbers
    assert served(publisher) == [] and publisher.commits.store.file_names() == []


def test_files_that_differ(folders: Folders) -> None:
    folders.write("2024-01-14", [{"id": 1, "v": 1.5}])
    folders.write("2024-01-14", [{"id": 2, "v": 1}], name="part-1.parquet")
    assert refused(folders.publisher()).code == "E1732"
    folders.write("2024-01-15", [{"v": 1.5, "id": 1}])
    folders.write("2024-01-15", [{"id": 2, "v": 2.5, "w": 1}], name="part-1.parquet")
    publisher = folders.publisher()
    assert publisher.publish()  # the order does not matter, and the first file says which columns there are
    assert served(publisher) == [{"id": 1, "v": 1.5}, {"id": 2, "v": 2.5}]


def test_nested_files_are_refused(source: Folders) -> None:
    source.write("2024-01-14", ONE)
    source.write("2024-01-14/region=eu", TWO, done=False)
    error = refused(source.publisher())
    assert error.code == "E1734" and "region=eu/part-0.parquet" in error.message


def test_two_columns_of_one_name(folders: Folders) -> None:
    folders.write("2024-01-14", pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], ["id", "v", "v"]))
    assert refused(folders.publisher()).code == "E1734"


def test_the_newest_good_partition_is_served_where_there_is_nothing_yet(folders: Folders) -> None:
    folders.write("2024-01-12", ONE)
    folders.write("2024-01-13", TWO)
    folders.write("2024-01-14", [{"id": 1}])
    folders.write("2024-01-15", [{"id": 1}])
    publisher = folders.publisher(columns=DECLARED)
    publisher.tick()
    assert publisher.error is not None and "2024-01-15" in (publisher.error.where or "")
    assert served(publisher) == TWO and publisher.served == "2024-01-13"
    folders.now += 10
    publisher.tick()
    assert publisher.error is not None and len(publisher.commits.log.numbers()) == 1


def test_a_folder_that_changes_while_it_is_read(folders: Folders) -> None:
    folders.write("2024-01-13", ONE)
    publisher = folders.publisher()
    plan = FaultPlan().call_at("online.file.before_header", lambda *_: folders.write("2024-01-13", TWO))
    with plan:
        assert refused(publisher).code == "E1736"
    assert served(publisher) == [] and publisher.commits.store.file_names() == []
    assert publisher.publish() and served(publisher) == TWO


def test_a_file_that_vanishes_while_it_is_read(folders: Folders) -> None:
    folders.write("2024-01-13", ONE)
    folders.write("2024-01-13", TWO, name="part-1.parquet")
    publisher = folders.publisher()
    with FaultPlan().call_at("online.publish.begin", lambda *_: folders.root.delete("2024-01-13/part-1.parquet")):
        publisher.tick()
    assert problem(publisher) == "E1736"
    folders.now += 2
    publisher.tick()
    assert problem(publisher) is None and served(publisher) == ONE


# -- when --------------------------------------------------------------------------------------------------------------


class Broken(Exception):
    pass


def test_the_poll_interval(folders: Folders) -> None:
    folders.write("2024-01-13", ONE)
    publisher = folders.publisher(poll_interval=timedelta(minutes=5))
    assert publisher.tick() == 300
    folders.write("2024-01-14", TWO)
    folders.now += 299
    assert publisher.tick() == 1 and served(publisher) == ONE
    folders.now += 1
    assert publisher.tick() == 300 and served(publisher) == TWO


@pytest.mark.long
def test_storage_that_fails_is_asked_again_soon(folders: Folders) -> None:
    folders.write("2024-01-13", ONE)
    publisher = folders.publisher(poll_interval=timedelta(minutes=5))
    full = OSError(errno.EIO, os.strerror(errno.EIO))
    pauses: list[float] = []
    with FaultPlan().raise_at("storage.put_if_absent.before_publish", error=full, nth=0):
        for _ in range(12):
            pauses.append(publisher.tick())
            folders.now += pauses[-1]
    assert isinstance(publisher.error, StorageError) and publisher.failures == 12
    assert 0.9 <= pauses[0] <= 1.1 and 1.8 <= pauses[1] <= 2.2 and pauses[-1] <= 330
    assert pauses == sorted(pauses) or pauses[-1] > 250
    assert publisher.tick() == 300 and problem(publisher) is None and publisher.failures == 0
    assert served(publisher) == ONE and len(publisher.commits.store.file_names()) == 1


def test_whatever_goes_wrong_a_tick_does_not_raise(folders: Folders) -> None:
    folders.write("2024-01-13", ONE)
    publisher = folders.publisher()
    with FaultPlan().raise_at("online.publish.begin", error=Broken("odd")):
        assert publisher.tick() < 2
    assert publisher.error is not None and "Broken: odd" in publisher.error.message
    assert publisher.error.__traceback__ is None


def test_a_refused_partition_is_not_read_again(folders: Folders) -> None:
    folders.write("2024-01-13", [{"id": 1, "v": 1.5}, {"id": 1, "v": 2.5}])
    publisher = folders.publisher()
    plan = FaultPlan()
    with plan:
        for _ in range(3):
            publisher.tick()
            folders.now += 10
    assert plan.reached.count("online.publish.begin") == 1
    assert problem(publisher) == "E1704" and publisher.failures == 3


def test_a_source_that_cannot_be_reached(s3_folders: Folders) -> None:
    s3_folders.write("2024-01-13", ONE)
    publisher = s3_folders.publisher()
    publisher.tick()
    source = s3_folders.source.s3
    assert source is not None
    wrong = source.model_copy(update={"access_key_id": "nobody"})
    other = s3_folders.source.model_copy(update={"s3": wrong})
    s3_folders.source = other
    publisher = s3_folders.publisher()
    assert publisher.tick() < 2
    assert isinstance(publisher.error, StorageError) and publisher.error.code == "E6001"
    secret = source.secret_access_key
    assert secret is not None and secret.get_secret_value() not in f"{publisher.error}{publisher.table}"
    assert served(publisher) == ONE


# -- crashes -----------------------------------------------------------------------------------------------------------


def reopened(folders: Folders, attempt: str) -> FolderPublisher:
    """A publisher as another process would have it, with a data folder of its own for each attempt."""
    commits._places.clear()
    folders.data = LocalStorage(Path(folders.root.url).parent / attempt)
    return folders.publisher(parts=2)


@pytest.mark.long
def test_a_crash_anywhere_leaves_the_old_partition_or_the_new(folders: Folders) -> None:
    def begin(attempt: str) -> None:
        folders.remove("2024-01-14")
        reopened(folders, attempt).publish()
        folders.write("2024-01-14", TWO)

    folders.write("2024-01-13", ONE)
    begin("watched")
    with FaultPlan() as watched:
        reopened(folders, "watched").publish()
    points = Counter(watched.reached)
    assert len(points) >= 6
    seen = Counter[bool]()
    for point, times in sorted(points.items()):
        for nth in range(1, times + 1):
            attempt = f"{point}-{nth}"
            begin(attempt)
            with FaultPlan().crash_at(point, nth=nth), contextlib.suppress(SimulatedCrash):
                reopened(folders, attempt).publish()
            now = served(reopened(folders, attempt))
            assert now in (ONE, TWO), f"after a crash at {point}"
            seen[now == TWO] += 1
            publisher = reopened(folders, attempt)
            publisher.publish()
            assert served(publisher) == TWO
            record = publisher.commits.head().record
            files = set(publisher.commits.store.file_names())
            assert (record is not None and files - {*record.files, *record.superseded} == set()) or now == TWO
    assert seen[False] and seen[True], "some crashes are before the commit, and some after it"
