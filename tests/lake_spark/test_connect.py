"""The same through a Spark Connect session, which has no JVM in this process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.spark_session.conftest import free_port
from tests.waiting import listens, wait_until

from .conftest import RunPython

PROGRAM = """
import sys
import headwater as hw
from headwater.base.change import ChangeBatch
from headwater.lake.spark.stream import foreach_batch_append
session = hw.spark(sys.argv[1])
assert type(session).__module__ == "pyspark.sql.connect.session"
lake = hw.connect("lake", spark=session)

def agree(table):
    rows = table.to_arrow()
    assert ChangeBatch.diff(rows, table.spark().toArrow().cast(rows.schema)).is_empty
    return rows.num_rows

frame = session.range(1000).selectExpr("id", "concat('k ', id % 3) AS k", "timestamp_micros(id) AS ts")
table = lake.write("t", frame, partition_by=["k"])
table.delete("id % 7 = 0")
print(agree(table), table.spark().where("k = 'k 1'").count())
table.add_constraint("small", "id < 5000")
try:
    table.append(session.range(6000, 6003).selectExpr("id", "'x' AS k", "current_timestamp() AS ts"))
except hw.ConstraintError as e:
    print(e.code, e.message)
def started():
    writer = table.spark_changes().writeStream.foreachBatch(foreach_batch_append(lake.table("copy"), "q"))
    return writer.option("checkpointLocation", "checkpoint").trigger(availableNow=True).start()

# The server gives the Python that it starts ten seconds to say so, which no setting changes.
for _ in range(20):
    try:
        query = started()
        break
    except Exception as e:
        if "Python worker failed to connect back" not in str(e):
            raise
query.awaitTermination()
print(lake.table("copy").count())

from headwater.timeseries.running import stages
from headwater.timeseries.running.here import run_here
stages._GIVEN_BYTES = 0
rows = lake.stream(table, time="ts", by="k", tiebreak="id")
known = rows.filter("id % 5 = 0").select("k", "ts", "id", known="id")
joined = rows.join_asof(known.ordered("ts", by="k", tiebreak="id")).shift("known").filter("known >= 0")
found = joined.collect()
assert "exchange by k" in joined.explain()
assert sorted(found.to_pylist(), key=str) == sorted(run_here(joined.plan).to_pylist(), key=str)
joined.write("joined")
print(found.num_rows, joined.count(), lake.table("joined").count())

# Columns of this session mean to a stream what they mean to it.
import datetime as dt
from decimal import Decimal
from pyspark.sql import functions as F
at = dt.datetime(1970, 1, 1, 0, 0, 0, 500, tzinfo=dt.UTC)
columns = dict(
    late=F.col("ts") > F.lit(at), money=F.col("id") * F.lit(Decimal("1.50")), small=F.lit(Decimal("0.05")), day=F.lit(dt.date(2024, 2, 29)),
    kind=F.when(F.col("k").like("%1"), F.lit(1)).otherwise(F.col("id") % 7), long=F.lit(2**40), moment=F.lit(at),
)
wanted = table.spark().select("id", *[column.alias(name) for name, column in columns.items()]).toArrow()
found = run_here(rows.select("id", **columns).plan)
print([(f.name, str(f.type)) for f in wanted.schema if found.schema.field(f.name).type != f.type])
assert sorted(found.cast(wanted.schema).to_pylist(), key=str) == sorted(wanted.to_pylist(), key=str)
print(sorted(rows.filter(F.col("id") < 100).group("k").agg(F.count("*").alias("n")).collect()["n"].to_pylist()))
"""


@pytest.mark.spark
def test_connect(run_python: RunPython, tmp_path: Path) -> None:
    import pyspark

    port = free_port()
    options = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    home = Path(pyspark.__file__).parent
    environment = os.environ | {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    environment |= {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    settings = [word for name, value in options.items() for word in ("--conf", f"{name}={value}")]
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = [str(home / "bin/spark-class"), "org.apache.spark.deploy.SparkSubmit", *settings]
    with (tmp_path / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--class", server, "spark-internal"], env=environment, stdout=log, stderr=log, cwd=tmp_path
        )
    try:
        wait_until(lambda: process.poll() is not None or listens(port), "the server")
        assert process.poll() is None, (tmp_path / "server.log").read_text()
        out = run_python(PROGRAM, f"sc://127.0.0.1:{port}", JAVA_HOME="/nowhere").splitlines()
    finally:
        process.kill()
        process.wait()
    assert out == [
        "857 285",
        "E2002 3 row(s) break the constraint `small`: id < 5000",
        "857",
        "850 850 850",
        "[]",
        "[28, 28, 29]",
    ]
