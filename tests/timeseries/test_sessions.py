"""Streams in a session that is set otherwise: rows and texts mean the same as everywhere."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.base.errors import ExpressionError

ZONES = ("America/New_York", "Europe/Berlin", "Australia/Lord_Howe")
# Twice, not at all, and once there is such a time in some zone.
WALL = [
    dt.datetime(2024, 11, 3, 1, 30),
    dt.datetime(2024, 3, 10, 2, 30),
    dt.datetime(2024, 1, 1, 1, 30),
]
ROWS = pa.table(
    {
        "wall": pa.array(WALL, pa.timestamp("us")),
        "ts": pa.array([w.replace(tzinfo=dt.UTC) for w in WALL], pa.timestamp("us", "UTC")),
        "v": pa.array([2_147_483_647, 1, 0], pa.int32()),
    }
)


@pytest.fixture
def session(spark: Any) -> Iterator[Any]:
    """The tests' session, which is put back afterwards."""
    names = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled")
    usual = {name: spark.conf.get(name) for name in names}
    yield spark
    for name, value in usual.items():
        spark.conf.set(name, value)


def _same(found: pa.Table, wanted: pa.Table) -> None:
    assert found.cast(wanted.schema).sort_by("wall").to_pylist() == wanted.sort_by("wall").to_pylist()


@pytest.mark.parametrize("zone", ZONES)
def test_times_stay_as_they_are(session: Any, tmp_path: Path, zone: str) -> None:
    session.conf.set("spark.sql.session.timeZone", zone)
    lake = hw.connect(tmp_path, spark=session)
    lake.write("times", ROWS)
    for source in (ROWS, "times"):
        stream = lake.stream(source)
        _same(stream.collect(), ROWS)
        _same(stream.filter("v >= 0").spark().toArrow(), ROWS)
        stream.ordered("wall").shift("v").drop("v_lag_1").write("copy", mode="overwrite")
        _same(lake.table("copy").to_arrow(), ROWS)


def test_one_text_has_one_meaning(session: Any, tmp_path: Path) -> None:
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    lake = hw.connect(tmp_path, spark=session)
    lake.write("times", ROWS)
    for source in (ROWS, "times", session.createDataFrame(ROWS.select(["ts", "v"]))):
        night = lake.stream(source).filter("hour(ts) < 3 AND ts >= TIMESTAMP '2024-03-01 00:00:00'")
        assert night.count() == 2
        assert night.spark().count() == 2
        days = lake.stream(source).group().agg(day="CAST(min(ts) AS DATE)")
        assert days.collect()["day"].to_pylist() == [dt.date(2024, 1, 1)]
    # The frame is the user's, in the user's session.
    frame = lake.stream("times").filter("v = 0").spark()
    assert frame.sparkSession is session
    assert frame.selectExpr("hour(ts) AS h").collect()[0]["h"] == 20


def test_overflow_is_an_error_whatever_the_session_says(session: Any, tmp_path: Path) -> None:
    session.conf.set("spark.sql.ansi.enabled", "false")
    stream = hw.connect(tmp_path, spark=session).stream(ROWS)
    with pytest.raises(ExpressionError, match="overflow"):
        stream.with_columns(w="v + CAST(1 AS INT)").collect()
    with pytest.raises(ExpressionError, match="overflow"):
        stream.group().agg(w="max(v + CAST(1 AS INT))").collect()


def test_no_rows_of_nested_columns(spark: Any, tmp_path: Path) -> None:
    nested = pa.schema([("k", pa.int64()), ("l", pa.list_(pa.int64())), ("s", pa.struct([("a", pa.string())]))])
    stream = hw.connect(tmp_path, spark=spark).stream(nested.empty_table())
    assert stream.count() == 0
    assert stream.filter("k > 0").collect().schema == nested
