"""Statistics from the footers that Spark writes: parquet-mr shows NaN there, and by default writes instants as INT96, which has no bounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from headwater.lake import stats

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_footers_of_spark(tmp_path: Path, spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    frame = session.sql(
        "select 1 i, 1.5d d, double('NaN') x, timestamp'2020-01-01 00:00:00.1234Z' t, 12.50bd n, 's' s, null u "
        "union all select 2, 2.5d, 1.0d, timestamp'1960-01-01 00:00:00.1239Z', -3.25bd, null, null"
    ).selectExpr("i", "d", "x", "t", "n", "s", "cast(u as int) u", "cast(t as timestamp_ntz) w", "struct(s) o")
    for kind in ("INT96", "TIMESTAMP_MICROS"):
        session.conf.set("spark.sql.parquet.outputTimestampType", kind)
        frame.coalesce(1).write.parquet(f"{tmp_path}/{kind}")
    spark.createDataFrame([(1,)], "a int")  # which makes the first session the active one again, for other tests
    both = {}
    for kind in ("INT96", "TIMESTAMP_MICROS"):
        (file,) = (tmp_path / kind).glob("*.parquet")
        both[kind] = json.loads(stats.from_footer(pq.read_metadata(file)))
    newer = both["TIMESTAMP_MICROS"]
    assert newer["numRecords"] == 2
    low, high = newer["minValues"], newer["maxValues"]
    assert (low.pop("t"), high.pop("t")) == ("1960-01-01T00:00:00.123Z", "2020-01-01T00:00:00.124Z")
    assert low == {"i": 1, "d": 1.5, "n": -3.25, "s": "s", "w": "1960-01-01T00:00:00.123", "o": {"s": "s"}}
    assert high == {"i": 2, "d": 2.5, "n": 12.5, "s": "s", "w": "2020-01-01T00:00:00.124", "o": {"s": "s"}}
    assert newer["nullCount"] == {"i": 0, "d": 0, "x": 0, "t": 0, "n": 0, "s": 1, "u": 2, "w": 0, "o": {"s": 1}}
    older = both["INT96"]
    assert "t" not in older["minValues"] and older == newer  # from which t was taken above
