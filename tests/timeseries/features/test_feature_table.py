"""What a feature table is: its definition, its statements, what is refused, and what Spark computes of it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.incremental.killing import Server
from tests.timeseries.features.feature_world import PaymentWorld
from tests.timeseries.features.test_contract import rated

import headwater as hw
from headwater.base.errors import ConflictError, HeadwaterError, InputError, NotFoundError, UnsupportedError
from headwater.lakehouse import Lake
from headwater.timeseries.features import computing

START = datetime(2026, 1, 1, tzinfo=UTC)
SIZE = "5m"


def velocity(lake: Any) -> Any:
    return lake.stream("payments", time="ts", by="card").rolling(SIZE, n="count(*)")


def total(lake: Any) -> Any:
    return lake.stream("payments", time="ts", by="card").agg(n="count(*)")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = hw.connect(tmp_path)
    rows = {"card": ["a", "a", "b"], "ts": [START + timedelta(minutes=m) for m in (0, 1, 2)], "amount": [1, 2, 3]}
    found.write("payments", pa.table(rows))
    return found


def late(lake: Lake, card: str = "a") -> None:
    lake.table("payments").append(pa.table({"card": [card], "ts": [START + timedelta(seconds=30)], "amount": [9]}))


def test_it_is_one_of_the_lake_s_artefacts(lake: Lake) -> None:
    table = lake.features("velocity", velocity)
    assert lake.artefacts() == {"velocity": "features"}
    (status,) = lake.status()
    assert (status.kind.singular, status.built, status.sources) == ("feature table", False, ("payments",))
    with pytest.raises(InputError, match="never built"):
        table.to_arrow()
    assert table.plan().mode == "full"
    assert lake.sql("REFRESH FEATURE TABLE velocity").to_pylist()
    late(lake)
    (status,) = lake.status()
    assert status.stale
    assert "velocity" in str(lake.sql("SHOW FEATURE TABLES").to_pylist())
    with pytest.raises(InputError, match="velocity"):
        lake.drop("payments")
    with pytest.raises(InputError, match="feature table"):
        lake.table("velocity").delete("n = 1")
    assert [(one.name, one.mode) for one in lake.refresh()] == [("velocity", "incremental")]
    assert lake.sql("SELECT max(n) AS n FROM velocity").to_pylist() == [{"n": 3}]
    lake.sql("DROP FEATURE TABLE velocity")
    assert lake.artefacts() == {}


def test_a_plan_says_what_is_computed_where_and_why(lake: Lake) -> None:
    table = lake.features("velocity", velocity, refresh=True)
    late(lake)
    text = str(table.plan())
    assert "incremental: 1 row has changed" in text
    assert "computes the rows of their card within reach of the change" in text
    assert "in this process" in text
    whole = lake.features("total", total, refresh=True)
    late(lake, "b")
    assert "may touch every row" in str(whole.plan())


def test_a_refresh_writes_only_what_differs(lake: Lake) -> None:
    table = lake.features("velocity", velocity, refresh=True)
    late(lake)
    report = table.refresh()
    assert (report.rows_in, report.rows_out) == (1, 3)  # it comes, and the next row of its card counts one more
    before = set(table.table.snapshot.files)
    assert len(before) == 2
    lake.table("payments").update({"amount": "amount + 1"}, where="card = 'b'")
    assert table.refresh().rows_out == 2
    lake.features("cards", lambda lake: lake.stream("velocity").select("card"), refresh=True)
    assert lake.derived("cards").reads == ("velocity",)
    late(lake, "c")
    report = lake.derived("cards").refresh()
    assert [one.name for one in report.upstream] == ["velocity"]
    assert lake.derived("cards").verify().equal


def test_strict_refuses_to_compute_everything(lake: Lake) -> None:
    table = lake.features("total", total, policy="strict", refresh=True)
    late(lake)
    with pytest.raises(UnsupportedError, match="may touch every row"):
        table.refresh()
    assert lake.features("total", policy="auto").refresh().mode == "full"
    with pytest.raises(InputError, match="policy"):
        lake.features("total", policy="never")  # type: ignore[arg-type]


def test_another_function_is_noticed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lake.features("velocity", velocity, refresh=True)
    monkeypatch.setitem(globals(), "SIZE", "10s")  # the text is the same, and the stream is not
    report = table.refresh()
    assert report.mode == "full"
    assert "another" in report.reason
    assert max(table.to_arrow()["n"].to_pylist()) == 1

    def more(lake: Any) -> Any:
        return lake.stream("payments", time="ts", by="card").rolling("5m", n="count(*)", s="sum(amount)")

    table = lake.features("velocity", more)
    assert "s" not in table.schema.names
    assert table.refresh().mode == "full"
    assert "s" in table.schema.names
    assert table.verify().equal
    assert table.refresh().mode == "noop"


@pytest.mark.long
def test_a_function_that_is_not_here_is_an_error(lake: Lake, tmp_path: Path) -> None:
    def inner(lake: Any) -> Any:
        return velocity(lake)

    lake.features("velocity", inner, refresh=True)
    late(lake)
    script = f"""
import headwater as hw
lake = hw.connect({str(tmp_path)!r})
table = lake.features("velocity")
print(table.to_arrow().num_rows, table.lag())
try:
    table.refresh()
except hw.NotFoundError as error:
    print(error.code, error.hint)
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "3 {'payments': 1}" in found
    assert "E1617 give it, lake.features('velocity', function)" in found


def test_a_declared_feature_is_found_by_its_name(lake: Lake) -> None:
    @hw.feature(policy="strict", name="declared")
    def by_card(lake: Any) -> Any:
        return velocity(lake)

    try:
        assert lake.features("declared", refresh=True).policy == "strict"
        assert [one.name for one in hw.feature if one.name == "declared"] == ["declared"]
    finally:
        hw.feature.forget("declared")


@pytest.mark.parametrize(
    ("build", "what"),
    [
        (lambda lake: lake.stream("payments", version=0), "version"),
        (lambda lake: lake.stream("nothing"), "no table `nothing`"),
        (lambda lake: lake.stream("payments").select(at="now()"), "cannot be kept up to date"),
        (
            lambda lake: lake.stream("payments", time="ts").rolling("1m", n="max(current_timestamp())"),
            "kept up to date",
        ),
        (lambda lake: lake.stream("/tmp/files"), "tmp"),
        (lambda lake: 3, "gave 3"),
        (lambda lake: 1 / 0, "ZeroDivisionError"),
        (lambda lake: lake.stream(pa.table({"a": [1]})), "build"),
        (lambda lake: lake.stream("payments").rolling("5m", n="count(*)"), "time"),
        (lambda lake: lake.stream("payments", time="ts").collect(), "stream"),
    ],
)
def test_what_is_no_feature_table_is_refused_and_nothing_is_made(lake: Lake, build: Any, what: str) -> None:
    with pytest.raises(HeadwaterError, match=what):
        lake.features("bad", build)
    assert "bad" not in lake


def test_rows_that_nothing_puts_in_order_are_refused_and_nothing_changes(lake: Lake) -> None:
    table = lake.features("before", lambda lake: lake.stream("payments", time="ts", by="card").shift("amount"))
    table.refresh()
    rows, at = table.to_arrow(), table.frontier
    late(lake)
    lake.table("payments").append(pa.table({"card": ["a"], "ts": [START + timedelta(seconds=30)], "amount": [11]}))
    with pytest.raises(InputError, match="two rows"):
        table.refresh()
    assert (table.to_arrow(), table.frontier) == (rows, at)


def test_rows_that_others_changed_are_not_built_on(lake: Lake) -> None:
    from headwater.lake import modify

    table = lake.features("velocity", velocity, refresh=True)
    lake.table("velocity").optimize()
    late(lake)
    assert table.refresh().mode == "incremental"
    modify.delete(table.table.snapshot, "card = 'b'")
    late(lake, "b")
    with pytest.raises(ConflictError, match="changed by others"):
        table.refresh()
    assert table.refresh(full=True).mode == "full"
    assert table.verify().equal


def test_many_small_files_are_put_together(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    from headwater.timeseries.features import feature_table

    monkeypatch.setattr(feature_table, "_MANY_FILES", 4)
    table = lake.features("velocity", velocity, refresh=True)
    for number in range(5):
        late(lake, f"card {number}")
        table.refresh()
        lake.close()  # a compaction that meets the next refresh may give way to it
    assert len(table.table.snapshot.files) < 4
    assert table.refresh().mode == "noop"
    assert table.verify().equal


@pytest.mark.long
def test_killed_at_random_it_is_before_or_after(tmp_path: Path) -> None:
    world, rng = PaymentWorld(tmp_path, 3), random.Random(7)
    world.lake.features("rated", rated, refresh=True)
    server = Server("tests.timeseries.features.kill_server")
    for number in range(int(os.environ.get("HEADWATER_TEST_KILLS", "8"))):
        for _ in range(3):
            world.commit(rng)
        life = {"full": bool(number % 2), "after_ms": rng.uniform(5, 250)}
        assert server.live(folder=str(tmp_path), **life) == signal.SIGKILL
        assert hw.connect(tmp_path).features("rated", rated).verify().equal
    server.close()
    table = world.lake.features("rated")
    table.refresh()
    assert table.frontier == world.head("payments", "rates")
    assert table.verify().equal
    table.refresh(full=True)
    table.compact()
    table.table.vacuum(retention_hours=0, enforce_retention=False)
    files = {path.name for path in (tmp_path / "rated").glob("*.parquet")}
    assert files == {Path(path).name for path in table.table.snapshot.files}


@pytest.mark.spark
def test_spark_computes_the_same(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world, rng = PaymentWorld(tmp_path, 6), random.Random(6)
    lake = hw.connect(tmp_path, spark=spark)
    monkeypatch.setattr(computing, "HERE_ROWS", -1)

    def build(lake: Any) -> Any:
        payments, rates = lake.stream("payments", time="ts", by="card"), lake.stream("rates", time="ts", by="card")
        return payments.rolling("5m", n="count(*)", s="sum(amount)").join_asof(rates, tolerance="20m")

    table = lake.features("velocity", build)
    assert "by Spark" in str(table.plan())
    assert table.refresh().mode == "full"
    for _ in range(2):
        world.commit(rng)
        world.payments.append(world._payments(rng, 2))
        assert table.refresh().mode == "incremental"
        found = table.to_arrow().sort_by("id")
        monkeypatch.setattr(computing, "HERE_ROWS", 1_000)
        assert table.verify().equal
        monkeypatch.setattr(computing, "HERE_ROWS", -1)
        assert found.num_rows == world.payments.count()
    with pytest.raises(NotFoundError):
        lake.features("other")
