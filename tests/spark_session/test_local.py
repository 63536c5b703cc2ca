"""The local session: its settings, and that it is quiet and leaves nothing behind."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import headwater as hw
from headwater.spark.blocks import ByKeys, blocks_of, tasks_of
from headwater.spark.daemon import LOADED
from headwater.spark.java import Java
from headwater.spark.session import QUICK_START, _java_options, active_session, has_delta

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .conftest import RunPython


def test_answers_do_not_depend_on_the_machine(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    assert spark.conf.get("spark.sql.execution.arrow.pyspark.enabled") == "true"
    assert spark.conf.get("spark.ui.enabled") == "false"


def test_what_stays_on_the_machine_is_not_compressed(spark: SparkSession) -> None:
    assert spark.conf.get("spark.shuffle.compress") == "false"
    rows = pa.table({"k": ["a"] * 1_000})
    frame, source = tasks_of(spark, 1, lambda _: iter([rows]))
    (row,) = blocks_of(frame, source, ByKeys(("k",), 2)).collect()
    assert row["size"] == 0
    assert len(row["block"]) > rows.nbytes  # Spark was told not to, and neither do we


def test_options_of_ones_own_win() -> None:
    java = Java("/usr/bin/java", "17.0.1", 17, QUICK_START)
    found = _java_options("-Xss4m -XX:G1HeapRegionSize=2m", java, local=True)
    assert found.rindex("RegionSize=2m") > found.index("RegionSize=16m")  # the last one counts
    assert found.endswith("-Xss4m -XX:G1HeapRegionSize=2m")
    assert set(QUICK_START) <= set(found.split())
    assert "RegionSize" not in _java_options("", java, local=False)
    assert "Tier4" not in _java_options("", java, local=False)


def test_the_running_session_is_used(spark: SparkSession) -> None:
    assert hw.spark() is spark
    assert active_session() is spark


def test_settings_that_can_change_are_set_on_the_running_session(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    assert before is not None
    try:
        assert hw.spark(config={"spark.sql.shuffle.partitions": "7"}) is spark
        assert spark.conf.get("spark.sql.shuffle.partitions") == "7"
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)


def test_what_the_running_session_cannot_be_is_refused(spark: SparkSession) -> None:
    with pytest.raises(hw.InputError, match=r"local\[13\].*\n.*stop"):
        hw.spark("local[13]")
    with pytest.raises(hw.InputError, match=r"spark.driver.memory.*\n.*stop"):
        hw.spark(config={"spark.driver.memory": "31g"})


def test_delta_classes_are_absent_from_a_plain_session(spark: SparkSession) -> None:
    assert not has_delta(spark)


def test_workers_are_forked_with_everything_loaded(spark: SparkSession) -> None:
    def loaded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        there = sorted(sys.modules)  # before anything is imported here
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"name": there})

    names = {row.name for row in spark.range(1).mapInArrow(loaded, "name string").collect()}
    assert set(LOADED) <= names


def test_workers_are_forked_with_the_machine_code_of_a_view(spark: SparkSession, tmp_path: Path) -> None:
    lake = hw.connect(tmp_path, spark=spark)
    lake.write("t", [{"k": 1, "v": 2}])
    lake.view(
        "v", "SELECT k, sum(v) AS s FROM t GROUP BY k", refresh=True
    )  # whose kernels are compiled now, if they were not

    def has_code(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from headwater.kernels.compiled import kernels

        asked = ("consolidate.consolidate", "hash.hash_rows", "aggregate.aggregate_step")
        for _ in batches:
            found = [name in kernels and bool(kernels[name].overloads) for name in asked]
            yield pa.RecordBatch.from_pydict({"found": found})

    assert [row.found for row in spark.range(1).mapInArrow(has_code, "found boolean").collect()] == [True, True, True]


def test_quiet_and_clean(run_python: RunPython, tmp_path: Path) -> None:
    program = """
import sys, headwater as hw
config = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
session = hw.spark("local[1]", config=config)
assert session.sparkContext.pythonExec == sys.executable
print(session.range(10).mapInArrow(lambda batches: batches, "id long").count())
session.sql("CREATE TABLE t USING parquet AS SELECT 1 AS a").collect()
session.sql("DROP TABLE t").collect()
try:
    session.sql("SELECT 1 / 0").collect()
except Exception as error:
    print(type(error).__name__)
session.stop()
try:
    hw.spark("nowhere[2]")
except hw.SetupError as error:
    print(error)
again = hw.spark("local[1]")
print(again.range(3).count())
"""
    expected = """10
ArithmeticException
error[E7003]: Spark did not start: Could not parse Master URL: 'nowhere[2]'
  hint: run `headwater doctor` to see what is missing
3
--
"""
    assert run_python(program) == expected
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_a_jvm_that_does_not_start_is_one_error(run_python: RunPython) -> None:
    program = """
import headwater as hw
try:
    hw.spark("local[1]", config={"spark.driver.memory": "99999999g"})
except hw.SetupError as error:
    print(error)
"""
    out = run_python(program)
    assert out.startswith("error[E7003]: Spark did not start: Error occurred during initialization of VM: Could not")
    assert out.endswith("--\n")
