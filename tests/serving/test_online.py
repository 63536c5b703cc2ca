"""Online tables: what they answer, refuse and cost; and that a process killed at any time leaves before or after."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.serving.stock import Stock

import headwater as hw
from headwater.base.errors import HeadwaterError, InputError, NotFoundError, SchemaError
from headwater.derived import upkeep
from headwater.lakehouse import Lake
from headwater.serving.online import Online
from headwater.serving.projection import FetchOptions
from headwater.serving.store import common_versions


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = hw.connect(tmp_path / "lake")
    rows = {"id": [1, 2, 3], "name": ["a", None, "Zoë"], "amount": [5.0, 7.5, None]}
    lake.write("orders", pa.table(rows))
    return lake


def test_a_correction_reaches_the_answer_with_its_frontier(lake: Lake) -> None:
    made = lake.online("features", "orders", key="id", refresh=True)
    before = made.fetch([2, 9, 1])
    assert before.to_pylist() == [
        {"name": None, "amount": 7.5},
        {"name": None, "amount": None},
        {"name": "a", "amount": 5.0},
    ]
    assert before.found.tolist() == [True, False, True]
    assert str(before.frontier) == "orders@0"
    lake.table("orders").update({"amount": "8.0"}, where="id = 2")
    assert made.fetch([2], ["amount"]).to_pylist() == [{"amount": 7.5}], "not before the refresh"
    report = made.refresh()
    assert (report.mode, report.rows_out) == ("incremental", 1)
    after = made.fetch([2], ["amount"])
    assert (
        after.to_pylist() == [{"amount": 8.0}]
        and after.versions == {"features": 3}
        and str(after.frontier) == "orders@1"
    )
    assert made.verify().equal


def test_a_view_is_refreshed_first(lake: Lake) -> None:
    lake.view("spend", "SELECT name, sum(amount) AS total FROM orders WHERE name IS NOT NULL GROUP BY name")
    made = lake.online("features", "spend", key="name", refresh=True)
    lake.table("orders").append([{"id": 4, "name": "a", "amount": 1.0}])
    assert [one.name for one in made.refresh().upstream] == ["spend"]
    assert made.fetch(["a"]).to_pylist() == [{"total": 6.0}]
    assert dict(made.current.reach) == {"orders": 1, "spend": 2}
    with pytest.raises(HeadwaterError, match="features"):
        lake.drop_view("spend")


def test_tables_of_one_answer_agree_on_their_sources(lake: Lake) -> None:
    lake.view("spend", "SELECT id, amount FROM orders")
    one, two = (lake.online(n, s, key="id", refresh=True) for n, s in (("one", "orders"), ("two", "spend")))
    followed = [made.store.follow() for made in (one, two)]
    assert all(f.advance() for f in followed)
    lake.table("orders").append([{"id": 4, "name": "a", "amount": 1.0}])
    one.refresh()
    assert followed[0].advance() and not followed[1].advance()
    versions = common_versions(followed)
    assert versions is not None and [dict(v.reach)["orders"] for v in versions] == [0, 0]
    two.refresh()
    assert followed[1].advance()
    versions = common_versions(followed)
    assert versions is not None and [dict(v.reach)["orders"] for v in versions] == [1, 1]


def test_reading_before_it_is_built(lake: Lake) -> None:
    made = lake.online("features", "orders", key="id")
    for read in (made.fetch, lambda _: made.read()):
        with pytest.raises(InputError, match="never built") as refused:
            read([1])
        assert refused.value.code == "E1609"


# -- keys ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "keys",
    [
        [1, 3],
        (1, 3),
        np.array([1, 3]),
        np.array([1, 3], np.int8),
        pa.array([1, 3]),
        pa.chunked_array([[1], [3]]),
        pa.table({"id": [1, 3]}),
        {"id": [1, 3]},
        {"key": [1, 3]},
        pa.array([1.0, 3.0]),
    ],
    ids=lambda given: type(given).__name__,
)
def test_keys_in_every_form(lake: Lake, keys: Any) -> None:
    made = lake.online("features", "orders", key="id", refresh=True)
    assert made.fetch(keys, ["name"]).to_pylist() == [{"name": "a"}, {"name": "Zoë"}]


def test_frames_of_pandas_and_polars_as_keys(lake: Lake) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    made = lake.online("features", "orders", key="id", refresh=True)
    for frame in (pandas.DataFrame({"id": [1, 3]}), polars.DataFrame({"id": [1, 3]}), polars.Series([1, 3])):
        assert made.fetch(frame, ["name"]).to_arrow()["name"].to_pylist() == ["a", "Zoë"]


@pytest.mark.parametrize(
    "keys", ["1", [1.5], ["1"], [True], [2**70], pa.array(["1"]), pa.array([1.5]), {"x": [1], "y": [2]}, [[1]]]
)
def test_keys_that_do_not_fit_are_typed_errors(lake: Lake, keys: Any) -> None:
    made = lake.online("features", "orders", key="id", refresh=True)
    with pytest.raises(InputError) as refused:
        made.fetch(keys)
    assert refused.value.code in ("E1702", "E1703") and refused.value.hint


def test_composite_keys(lake: Lake) -> None:
    lake.write("pairs", pa.table({"a": ["x", "xy", ""], "b": ["yz", "z", ""], "n": [1, 2, 3]}))
    made = lake.online("pairs_online", "pairs", key=["a", "b"], refresh=True)
    assert made.fetch([("xy", "z"), ("x", "yz"), ("", ""), ("xyz", "")]).to_arrow()["n"].to_pylist() == [2, 1, 3, None]
    assert made.fetch({"b": ["z"], "a": ["xy"]}).to_pylist() == [{"n": 2}]
    assert made.fetch([{"a": "x", "b": "yz"}]).to_pylist() == [{"n": 1}]
    for bad in ([("x",)], ["x"], {"a": ["x"]}, {"a": ["x"], "b": ["y", "z"]}):
        with pytest.raises(InputError):
            made.fetch(bad)


def test_columns_and_options(lake: Lake) -> None:
    made = lake.online("features", "orders", key="id", refresh=True)
    fetch = made.current.fetch
    assert fetch([1, 9], ["amount"], FetchOptions(found=False)).batch().to_pylist() == [
        {"amount": 5.0},
        {"amount": None},
    ]
    dropped = fetch([9, 3, 8, 1], ["name"], FetchOptions(missing="drop")).batch()
    assert dropped.to_pylist() == [{"name": "Zoë", "_idx": 1}, {"name": "a", "_idx": 3}]
    assert fetch([3, 9], ["id", "name"]).batch().to_pylist() == [
        {"id": 3, "name": "Zoë", "_found": True},
        {"id": None, "name": None, "_found": False},
    ]
    assert fetch([], ["name"]).batch().num_rows == 0
    assert fetch([1] * 3).batch().num_rows == 3, "a key may be asked for more than once"
    with pytest.raises(NotFoundError, match="amout"):
        fetch([1], ["amout"])
    with pytest.raises(InputError, match="event_time"):
        fetch([1], None, FetchOptions(event_time=True))


# -- what is refused -------------------------------------------------------------------------------------------------


def test_definitions_that_make_no_sense(lake: Lake) -> None:
    lake.write("nested", pa.table({"id": [1], "s": [{"a": 1}]}))
    for arguments, error in (
        ({"key": "nope"}, NotFoundError),
        ({"key": []}, InputError),
        ({"key": None}, InputError),
        ({"key": ["id", "id"]}, InputError),
        ({"key": "id", "columns": ["nope"]}, NotFoundError),
        ({"key": "id", "ttl": "1 day"}, InputError),
        ({"key": "id", "ttl": "soon", "event_time": "name"}, InputError),
        ({"key": "id", "event_time": "name"}, InputError),
        ({"key": "id", "order_by": "name"}, InputError),
        ({"key": "id", "parts": -1}, InputError),
    ):
        with pytest.raises(error) as refused:
            lake.online("o", "orders", **arguments)
        assert refused.value.hint
    with pytest.raises(SchemaError, match="column `s` has type"):
        lake.online("o", "nested", key="id")
    assert lake.artefacts() == {}
    lake.online("o", "nested", key="id", columns=[])
    with pytest.raises(InputError, match=r"another definition|defined"):
        lake.online("o", "orders", key="id")
    with pytest.raises(InputError, match="exists"):
        lake.online("orders", "nested", key="id", columns=[])


def test_a_second_row_for_a_key_is_refused_and_the_old_version_serves_on(lake: Lake) -> None:
    made = lake.online("features", "orders", key="id", refresh=True)
    orders = lake.table("orders")
    orders.append([{"id": 2, "name": "again", "amount": 1.0}])
    for full in (False, True):
        with pytest.raises(InputError, match="1 key occurs more than once, such as id=2") as refused:
            made.refresh(full=full)
        assert refused.value.code == "E1704" and "order_by" in str(refused.value)
    assert made.fetch([2]).to_pylist() == [{"name": None, "amount": 7.5}]
    orders.delete("name = 'again'")
    assert made.refresh().mode == "incremental" and made.verify().equal
    orders.append([{"id": 7, "name": "x", "amount": 1.0}, {"id": 7, "name": "x", "amount": 1.0}])
    with pytest.raises(InputError, match="id=7"):
        made.refresh()
    orders.delete("id = 7")
    orders.append([{"id": None, "name": "x", "amount": 1.0}])
    with pytest.raises(InputError, match="null") as null:
        made.refresh()
    assert null.value.code == "E1705"


def test_the_row_with_the_largest_order_counts(lake: Lake) -> None:
    lake.write("events", pa.table({"k": [1, 1, 2], "at": [1, 3, 1], "v": ["a", "c", "x"]}))
    events = lake.table("events")
    made = lake.online("latest", "events", key="k", order_by="at", refresh=True)

    def served() -> list[str | None]:
        made.refresh()
        assert made.verify().equal
        found: list[str | None] = made.fetch([1, 2, 3], ["v"]).to_arrow()["v"].to_pylist()
        return found

    assert served() == ["c", "x", None] and made.rows == 2
    events.append([{"k": 1, "at": 2, "v": "b"}, {"k": 3, "at": 0, "v": "n"}])
    assert served() == ["c", "x", "n"]
    events.delete("at = 3")
    assert served() == ["b", "x", "n"], "the next one is looked for among all rows"
    events.update({"v": "upper(v)"}, where="k = 1")
    assert served() == ["B", "x", "n"]
    events.delete("k = 2")
    assert served() == ["B", None, "n"] and made.rows == 2
    events.append([{"k": 1, "at": 1, "v": "tie"}])
    assert served() == ["B", None, "n"], "rows that are equal but do not count do not matter"
    events.append([{"k": 1, "at": 2, "v": "tie"}])
    for full in (False, True):
        with pytest.raises(InputError, match="same `at`"):
            made.refresh(full=full)


def test_rows_that_are_too_old_are_answered_as_such(lake: Lake) -> None:
    now = datetime.now(UTC)
    ages = [timedelta(minutes=1), timedelta(days=2), None]
    rows = [{"k": i, "at": None if age is None else now - age, "v": i} for i, age in enumerate(ages)]
    schema = pa.schema([("k", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("v", pa.int64())])
    lake.write("seen", pa.Table.from_pylist(rows, schema))
    made = lake.online("recent", "seen", key="k", columns=["v"], event_time="at", ttl="1 day", refresh=True)
    answer = made.fetch([0, 1, 2, 9], status=True, event_time=True).to_arrow()
    assert answer["v"].to_pylist() == [0, None, None, None]
    assert answer["_status"].to_pylist() == [0, 3, 3, 2], "without a time nobody knows that it is young enough"
    assert answer["_event_time"].to_pylist() == [rows[0]["at"], None, None, None]
    later = int((now + timedelta(days=3)).timestamp() * 1000)
    assert made.current.fetch([0], now_ms=later).batch()["_found"].to_pylist() == [False]


# -- SQL -------------------------------------------------------------------------------------------------------------


def test_statements(lake: Lake) -> None:
    text = "CREATE ONLINE TABLE o (amount) FROM orders KEY (id)"
    assert lake.sql(text).to_pylist()[0]["num_affected_rows"] == 3
    with pytest.raises(InputError, match="exists"):
        lake.sql(text)
    assert lake.sql(text.replace("TABLE o", "TABLE IF NOT EXISTS o")).to_pylist()[0]["num_affected_rows"] == 0
    assert lake.sql("SHOW CREATE TABLE o").to_pylist() == [{"createtab_stmt": text}]
    assert [row["onlineName"] for row in lake.sql("SHOW ONLINE TABLES").to_pylist()] == ["o"]
    lake.table("orders").append([{"id": 4, "name": "d", "amount": 1.0}])
    assert lake.sql("REFRESH ONLINE TABLE o").to_pylist()[0]["mode"] == "incremental"
    assert "orders@1" in str(lake.sql("DESCRIBE EXTENDED o").to_pylist())
    lake.sql("CREATE OR REPLACE ONLINE TABLE o (name) FROM orders KEY (id)")
    assert lake.online("o").fetch([4]).to_pylist() == [{"name": "d"}]
    lake.table("orders").append([{"id": 4, "name": "d", "amount": 1.0}])
    with pytest.raises(InputError, match="more than once"):
        lake.sql("CREATE OR REPLACE ONLINE TABLE o (amount) FROM orders KEY (id)")
    assert lake.artefacts() == {"o": "online"}, "a table that was there is not dropped"
    assert lake.sql("DROP ONLINE TABLE o").to_pylist() is not None
    assert lake.artefacts() == {}
    options = "ORDER BY id EVENT TIME day TTL '2 hours' PARTS 2"
    lake.write("days", pa.table({"id": [1], "day": pa.array([datetime.now(UTC)], pa.timestamp("us", "UTC"))}))
    lake.sql(f"CREATE ONLINE TABLE o FROM days KEY (id) {options}")
    assert lake.online("o").meant.ttl_ms == 7_200_000 and len(lake.online("o").record.layers[0].files) == 2


# -- cost, files, crashes --------------------------------------------------------------------------------------------


def test_overlays_are_taken_in_by_the_base(lake: Lake) -> None:
    count = 30_000
    lake.write("many", pa.table({"k": range(count), "v": np.zeros(count)}))
    many = lake.table("many")
    made = lake.online("o", "many", key="k", refresh=True)
    base = made.record.layers[-1]
    for step in range(1, 5):
        many.update({"v": str(step)}, where=f"k >= {step * 1000} AND k < {step * 1000 + 1000}")
        report = made.refresh()
        assert report.rows_out == 1000 and report.mode == "incremental"
    upkeep.wait()
    record = made.record
    assert record.layers[-1] != base and record.overlay_rows < 4000 and record.rows == count
    assert made.fetch([1000, 2500, 3000, 4999, 5000]).to_numpy().reshape(-1).tolist() == [1, 2, 3, 4, 0]
    assert made.verify().equal
    many.update({"v": "9"}, where="k = 7")
    made.refresh()
    many.update({"v": "10"}, where="k = 7")
    made.refresh()
    named = record.files | made.record.files | set(made.record.superseded)
    assert set(made.store.file_names()) <= named, "files that no commit names are deleted"


def test_a_change_of_many_rows_builds_it(lake: Lake) -> None:
    lake.write("many", pa.table({"k": range(40_000), "v": np.zeros(40_000)}))
    made = lake.online("o", "many", key="k", refresh=True)
    lake.table("many").update({"v": "1"})
    assert made.plan().mode == "full"
    assert made.refresh().mode == "full" and made.verify().equal


def test_dropping_it_leaves_nothing(lake: Lake) -> None:
    made = lake.online("o", "orders", key="id", refresh=True)
    folder = made.store.folder.folder
    version = made.current
    assert os.listdir(folder)
    assert made.drop() == ["o"]
    assert not os.path.exists(folder) and "o" not in lake.artefacts()
    assert version.fetch([1]).batch()["name"].to_pylist() == ["a"], "whoever has it open keeps it"


def test_a_bad_version_is_reported_and_the_one_before_serves_on(lake: Lake) -> None:
    made = lake.online("o", "orders", key="id", refresh=True)
    following = made.store.follow()
    assert following.advance() and following.error is None
    lake.table("orders").append([{"id": 4, "name": "d", "amount": 1.0}])
    made.refresh()
    overlay = Path(made.store.folder.folder, made.record.layers[0].files[0])
    raw = overlay.read_bytes()
    overlay.write_bytes(raw[:100])
    assert not following.advance()
    assert getattr(following.error, "code", None) == "E5013"
    assert following.current is not None and following.current.fetch([1]).missing == 0
    overlay.write_bytes(raw)
    assert following.advance()
    assert following.current.fetch([4]).missing == 0 and following.error is None


def test_whoever_begins_at_a_bad_version_has_the_one_before(lake: Lake) -> None:
    made = lake.online("o", "orders", key="id", refresh=True)
    before = made.record.published
    lake.table("orders").append([{"id": 4, "name": "d", "amount": 1.0}])
    made.refresh()
    overlay = Path(made.store.folder.folder, made.record.layers[0].files[0])
    raw = overlay.read_bytes()
    overlay.write_bytes(raw[:100])
    following = hw.connect(lake.location).online("o").store.follow()
    assert following.advance() and following.current is not None
    assert following.current.number == before and following.current.fetch([4]).missing == 1
    assert getattr(following.error, "code", None) == "E5013"
    assert not following.advance()
    overlay.write_bytes(raw)
    assert following.advance() and following.error is None
    assert following.current.fetch([4]).missing == 0


@pytest.mark.long
def test_killed_at_random_it_is_before_or_after(tmp_path: Path) -> None:
    world = Stock(tmp_path / "lake", 3)
    made = world.open("out")
    made.refresh()
    rng = random.Random(7)
    script = (
        "import sys, headwater as hw\n"
        f"online = hw.connect({str(tmp_path / 'lake')!r}).online('out')\n"
        "print('ready', flush=True)\n"
        "for line in sys.stdin:\n"
        "    online.refresh(full=line.strip() == 'full')\n"
        "    online.compact()\n"
    )
    following = made.store.follow()
    for number in range(int(os.environ.get("HEADWATER_TEST_KILLS", "6"))):
        child = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        with contextlib.suppress(BrokenPipeError), child:
            assert child.stdin is not None and child.stdout is not None
            assert child.stdout.readline() == b"ready\n"
            for _ in range(3):
                world.commit(rng)
            child.stdin.write(b"full\n" * 200 if number % 2 else b"\n" * 200)
            child.stdin.flush()
            time.sleep(rng.uniform(0, 0.15))
            child.send_signal(signal.SIGKILL)
        assert child.returncode == -signal.SIGKILL
        assert Online("out", world.lake.environment()).verify().equal
        following.advance()
        assert following.error is None and following.current is not None
    made.refresh()
    assert made.verify().equal and made.frontier == world.head()
    made.refresh(full=True)
    made.refresh(full=True)
    files = set(made.store.file_names())
    assert files <= made.record.files | set(made.record.superseded), "what crashed attempts left is swept"
