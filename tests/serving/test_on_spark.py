"""Large online tables are built by Spark tasks, part by part, and are the same as those built here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import headwater as hw
from headwater.base import settings
from headwater.base.errors import InputError
from headwater.testing import assert_same_rows
from headwater.testing.object_server import ObjectServer

ROWS = 40_000


def table() -> pa.Table:
    rng = np.random.default_rng(1)
    names = [f"key {i} " + "long " * (i % 5) for i in range(ROWS)]
    vectors = [[float(i % 7)] * (i % 4) for i in range(ROWS)]
    return pa.table(
        {"k": names, "n": range(ROWS), "x": rng.random(ROWS), "v": pa.array(vectors, pa.list_(pa.float32()))}
    )


def test_tasks_build_the_parts(spark: SparkSession, tmp_path: Path) -> None:
    lake = hw.connect(tmp_path, spark=spark)
    rows = table()
    source = lake.write("t", rows.slice(0, 15_000))
    source.append(rows.slice(15_000))
    source.delete("n % 1000 = 7")
    made = lake.online("o", "t", key="k", parts=5)
    assert made.plan().engine == "local"  # type: ignore[attr-defined]
    with settings.override(online_spark_rows=1_000):
        assert "spark" in str(made.plan())
        report = made.refresh()
    assert (report.mode, report.rows_out) == ("full", ROWS - 40)
    record = made.record
    assert len(record.layers) == 1 and len(record.layers[0].files) == 5 and record.rows == ROWS - 40
    assert made.verify().equal
    here = lake.online("here", "t", key="k", refresh=True)
    assert_same_rows(made.read(), here.read())
    source.update({"x": "-1"}, where="n < 10")
    assert made.refresh().mode == "incremental"
    assert made.fetch([rows["k"][3].as_py()], ["x"]).to_numpy().tolist() == [[-1.0]]
    assert made.compact() and made.verify().equal


def test_a_key_that_occurs_twice_is_refused_by_the_task(spark: SparkSession, tmp_path: Path) -> None:
    lake = hw.connect(tmp_path, spark=spark)
    lake.write("t", table())
    lake.table("t").append(table().slice(77, 1))
    made = lake.online("o", "t", key="k")
    with (
        settings.override(online_spark_rows=1),
        pytest.raises(InputError, match="1 key occurs more than once") as refused,
    ):
        made.refresh()
    assert refused.value.code == "E1704"
    latest = lake.online("latest", "t", key="k", order_by="x")
    lake.table("t").delete("n = 77")
    lake.table("t").append(table().slice(77, 1))
    with settings.override(online_spark_rows=1):
        latest.refresh()
    assert latest.rows == ROWS and latest.verify().equal


def test_parts_reach_the_bucket(spark: SparkSession, server: ObjectServer) -> None:
    lake = hw.connect(server.url("online_spark"), server.options, spark=spark)
    lake.write("t", table())
    made = lake.online("o", "t", key="k", parts=3)
    with settings.override(online_spark_rows=1_000):
        made.refresh()
    assert made.verify().equal
    assert made.fetch([table()["k"][5].as_py()], ["n"]).to_pylist() == [{"n": 5}]
