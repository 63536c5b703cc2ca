"""Requests per operation: what the guide says of S3 is what goes over the wire, and no more."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import headwater as hw
from headwater.lake import snapshot
from headwater.lakehouse import Lake
from headwater.testing.requests import CountedServer, Requests, counted
from headwater.testing.s3_server import S3Server

pytestmark = pytest.mark.s3
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "lake.md"
ROWS = [{"id": i, "v": "a"} for i in range(10)]
Step = Callable[[Lake], object]


def figures() -> dict[str, int]:
    """The figures of the guide, by operation."""
    table = GUIDE.read_text().split("### Requests per operation", 1)[1].split("\n\n##", 1)[0]
    found = re.findall(r"^\| `?([^|`]+?)`? +\| +(\d+) \|", table, re.MULTILINE)
    return {name: int(number) for name, number in found}


@pytest.fixture
def requests(s3: S3Server) -> Iterator[CountedServer]:
    with counted(s3) as server:
        yield server


@pytest.fixture
def lake(requests: CountedServer) -> Lake:
    lake = hw.connect(requests.url("lake"), storage_options=requests.options)
    lake.write("t", ROWS)
    lake.table("t").append([{"id": 90, "v": "x"}])
    return lake


def _open(lake: Lake) -> object:
    snapshot.forget(lake.table("t").storage)
    return hw.connect(lake.location, storage_options=dict(lake.catalog.root.options)).table("t").snapshot


def _merge(lake: Lake) -> object:
    merge = lake.table("t").merge([{"id": 1, "v": "m"}, {"id": 77, "v": "n"}], on=["id"])
    return merge.when_matched_update_all().when_not_matched_insert_all().execute()


OPERATIONS: dict[str, Step] = {
    "open": _open,
    "append": lambda lake: lake.table("t").append([{"id": 100, "v": "x"}]),
    "overwrite": lambda lake: lake.table("t").overwrite(ROWS),
    "update": lambda lake: lake.table("t").update({"v": "'z'"}, where="id = 3"),
    "delete": lambda lake: lake.table("t").delete("id = 3"),
    "merge": _merge,
    "changes": lambda lake: lake.table("t").changes(after=0),
    "read": lambda lake: lake.table("t").to_arrow(["v"]),
    "SELECT": lambda lake: lake.sql("SELECT * FROM t").to_arrow(),
    "INSERT": lambda lake: lake.sql("INSERT INTO t VALUES (1000, 'q')"),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_guide_says_how_many(name: str, lake: Lake, requests: CountedServer) -> None:
    with requests.count() as seen:
        OPERATIONS[name](lake)
    assert seen.total() == figures()[name], f"{seen}\n{seen.log}"
    changes = name not in ("open", "changes", "read", "SELECT")
    assert seen["put_if_absent"] == changes, "one commit"


def test_refreshes_take_at_most_so_many(lake: Lake, requests: CountedServer) -> None:
    view = lake.view("w", "SELECT v, count(*) AS n FROM t GROUP BY v")
    view.refresh()
    assert _refreshed(view.refresh, lake, requests).total() <= figures()["refresh with nothing to do"]
    lake.table("t").append([{"id": 101, "v": "y"}])
    assert _refreshed(view.refresh, lake, requests).total() <= figures()["refresh after one commit"]


def _refreshed(refresh: Callable[[], object], lake: Lake, requests: CountedServer) -> Requests:
    lake.close()  # what is done in the background is not part of it
    with requests.count() as seen:
        refresh()
    return seen


def test_what_others_commit_is_seen_at_once(lake: Lake, requests: CountedServer) -> None:
    """Fewer looks at the log are not older answers: the snapshot that a process holds is never taken for the newest."""
    table = lake.table("t")
    assert table.count() == 11
    ours = snapshot.latest(table.storage)
    table.append(ROWS)
    snapshot.remember(ours.storage, ours.state)
    snapshot._held[ours.storage.url] = ours  # as if another process had appended
    assert table.count() == 21
    snapshot._held[ours.storage.url] = ours
    assert table.append(ROWS).version == 3
    with requests.count() as seen:
        assert int(lake.table("t").changes(after=1).weights.sum()) == 20
    assert seen["put_if_absent"] == 0


def test_kinds_of_requests(s3: S3Server) -> None:
    with counted(s3) as server:
        storage = hw.connect(server.url("kinds"), storage_options=server.options).catalog.root
        with server.count() as first:
            storage.put_if_absent("first", b"")
        assert dict(first) == {"put_if_absent": 3, "delete": 1}, "the first one asks whether the condition is honoured"
        storage.delete("first")
        with server.count() as seen, server.count() as both:
            storage.put("a", b"1")
            storage.put_if_absent("b", b"22")
            assert storage.get("a") == b"1" and storage.get_range("b", 1, 1) == b"2"
            assert storage.head("c") is None
            assert [e.path for e in storage.list("")] == ["a", "b"]
            storage.delete("a")
        assert dict(seen) == {"put": 1, "put_if_absent": 1, "get": 2, "head": 1, "list": 1, "delete": 1} == dict(both)
        assert str(seen) == "7 (1 delete, 2 get, 1 head, 1 list, 1 put, 1 put_if_absent)"
        assert [key.rsplit("/", 1)[-1] for _, key in seen.log[:2]] == ["a", "b"]
        storage.put("d", b"")
        assert seen.total() == 7, "it is over"


def test_small_objects_are_read_by_one_request(s3: S3Server) -> None:
    with counted(s3) as server:
        storage = hw.connect(server.url("small"), storage_options=server.options).catalog.root
        storage.put("a", b"x" * 1000)
        storage.put("large", b"y" * (3 << 20))
        with server.count() as seen, storage.open_input("a", size=1000) as file:
            assert file.read() == b"x" * 1000
        assert dict(seen) == {"get": 1}
        with storage.open_input("large", size=10) as file:  # what the log says of a size may be wrong
            file.seek(3 << 20 - 1)
            assert file.size() == 3 << 20
        with pytest.raises(hw.NotFoundError), storage.open_input("none", size=10):
            pass
