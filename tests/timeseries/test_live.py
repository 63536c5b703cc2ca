"""Streams that go on: what is written equals the batch answer over the tables so far, whoever is killed when."""

from __future__ import annotations

import datetime as dt
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.amounts import everyday
from tests.timeseries.live_server import stream_of

import headwater as hw
from headwater.base.errors import InputError, UnsupportedError
from headwater.timeseries.live import kept

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
KILLS = everyday(int(os.environ.get("HEADWATER_TEST_KILLS", "3")), soak=25)
BASE = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SCHEMA = pa.schema([("id", pa.int64()), ("sym", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("price", pa.int64())])


class Market:
    """Two tables that change: rows in time and late ones, corrections, deletions, and commits without a row."""

    def __init__(self, folder: Path, spark: Any = None) -> None:
        self.lake = hw.connect(folder, spark=spark)
        self.dice = random.Random(7)
        self.last = 0
        for name in ("trades", "quotes"):
            self.lake.write(name, self.rows(20))

    def rows(self, count: int) -> pa.Table:
        found = []
        for _ in range(count):
            self.last += 1
            at = self.last - self.dice.choice([0, 0, 0, 15])
            row = {"id": self.last, "sym": self.dice.choice("abc"), "ts": BASE + dt.timedelta(seconds=at)}
            found.append(row | {"price": self.dice.randrange(20)})
        return pa.Table.from_pylist(found, SCHEMA)

    def commit(self) -> None:
        table = self.lake.table(self.dice.choice(["trades", "trades", "quotes"]))
        kind = self.dice.choice(["append", "append", "update", "delete", "nothing"])
        some = f"id % 7 = {self.dice.randrange(7)} AND id > {self.last - 60}"
        if kind == "append":
            table.append(self.rows(self.dice.randint(1, 6)))
        elif kind == "update":
            table.update({"price": "price + 1"}, where=some)
        elif kind == "delete":
            table.delete(f"{some} AND price < 8")
        else:
            table.optimize()


def as_rows(table: pa.Table) -> list[str]:
    return sorted(repr(tuple(row.values())) for row in table.to_pylist())


@pytest.mark.spark
def test_it_equals_the_batch_answer_over_the_tables_so_far(tmp_path: Path, spark: SparkSession) -> None:
    market = Market(tmp_path, spark)
    lake = market.lake
    patterns = lake.stream("trades", time="ts", by="sym", tiebreak="id").match(
        "a up+", {"up": "price > LAST(up.price, 1) OR price > a.price"}, measures={"n": "count(*)"}
    )
    queries = [stream_of(lake).follow("live"), patterns.follow("runs", every="0 seconds")]
    try:
        for _ in range(6):
            for _ in range(2):
                market.commit()
            for query in queries:
                query.processAllAvailable()
            batch = stream_of(lake).collect()
            assert as_rows(lake.table("live").to_arrow().select(batch.schema.names)) == as_rows(batch)
            assert lake.features("runs").verify().equal
            assert dict(lake.features("live").frontier) == {
                name: lake.table(name).version for name in ("quotes", "trades")
            }
        assert all(query.isActive for query in queries)
    finally:
        for query in queries:
            query.stop()


@pytest.mark.spark
def test_what_is_there_now_and_what_is_derived(tmp_path: Path, spark: SparkSession) -> None:
    market = Market(tmp_path, spark)
    lake = market.lake
    large = lake.view("large", "SELECT id, sym, ts, price FROM trades WHERE price > 3", refresh=True)
    stream = lake.stream("large", time="ts", by="sym", tiebreak="id").rolling(rows=3, total="sum(price)")
    stream.follow("sums", available_now=True).awaitTermination()
    market.lake.table("trades").append(market.rows(5))
    # The view is refreshed first, because it is what the stream reads.
    stream.follow("sums", available_now=True).awaitTermination()
    assert dict(large.frontier) == {"trades": 1}
    assert lake.features("sums").verify().equal
    query = stream.follow("sums")
    try:
        market.lake.table("trades").append(market.rows(5))
        query.processAllAvailable()
        assert dict(large.frontier) == {"trades": 2}
        assert lake.features("sums").verify().equal and not lake.features("sums").lag()
    finally:
        query.stop()


@pytest.mark.spark
def test_what_cannot_be_followed_is_refused(tmp_path: Path, spark: SparkSession) -> None:
    lake = Market(tmp_path, spark).lake
    trades = lake.stream("trades", time="ts", by="sym", tiebreak="id")
    with pytest.raises(UnsupportedError, match="looks at all rows"):
        trades.describe().follow("x")
    with pytest.raises(UnsupportedError, match="may touch every row"):
        trades.ordered("ts", tiebreak="id").match("a b", {"b": "price > a.price"}).follow("x")
    with pytest.raises(InputError, match="rows that do not change"):
        lake.stream(pa.table({"ts": [1], "v": [2]}), time="ts").shift("v").follow("x")
    (tmp_path / "files").mkdir()
    pq.write_table(pa.table({"ts": [1], "v": [2]}), tmp_path / "files" / "a.parquet")
    with pytest.raises(UnsupportedError, match="have no versions to follow"):
        lake.stream(str(tmp_path / "files"), time="ts", format="parquet").shift("v").follow("x")
    assert "x" not in lake


@pytest.mark.long
@pytest.mark.spark
def test_killed_at_random_it_goes_on(tmp_path: Path) -> None:
    market = Market(tmp_path)
    lake = market.lake
    dice = random.Random(KILLS)
    for number in range(KILLS):
        command = [sys.executable, "-m", "tests.timeseries.live_server", str(tmp_path)]
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            env={**os.environ, "HEADWATER_PROGRESS": "off"},
        )
        assert process.stdout is not None
        until_ready = number % 2 == 0
        if until_ready:
            assert process.stdout.readline() == "ready\n"
        end = time.monotonic() + dice.uniform(0.2, 3 if until_ready else 9)
        while time.monotonic() < end:
            market.commit()
            time.sleep(dice.uniform(0, 0.3))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        if "live" in lake:
            table = kept(stream_of(lake), "live", lake.environment())
            assert table.frontier == lake.features("live").frontier
            if table.built:
                assert table.verify().equal, number
    table = kept(stream_of(lake), "live", lake.environment())
    table.refresh()
    assert table.verify().equal
    assert dict(table.frontier) == {name: lake.table(name).version for name in ("quotes", "trades")}
