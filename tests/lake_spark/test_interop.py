"""delta-spark, the JVM's own implementation, reads what Spark wrote here, and its tables are read here."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.feather as feather
import pytest
from pyspark.sql import functions as sf

from headwater.base.change import ChangeBatch
from headwater.lakehouse import Lake

from .conftest import agree

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.interop_driver import Driver

pytestmark = pytest.mark.interop

# In a session with delta-spark's classes, which `Table.spark` takes when they are there: read our tables with them, and
# make tables for us to read.
PROGRAM = """
import json
import headwater as hw
import pyarrow.feather as feather
from headwater.base.change import ChangeBatch
from headwater.spark.session import has_delta

folder, names = arguments[0], json.loads(arguments[1])
assert has_delta(session)
lake = hw.connect(folder, spark=session)

run = session.sql
run(f'''CREATE TABLE delta.`{folder}/jvm` USING delta PARTITIONED BY (k)
    TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.checkpointInterval' = '2')
    AS SELECT id, if(id % 3 = 0, null, concat('a b/%é', id % 3)) AS k, timestamp_micros(id) AS ts,
    named_struct('a', cast(id as int), 'b', array('x', null)) AS n FROM range(300)''')
run(f"DELETE FROM delta.`{folder}/jvm` WHERE id % 7 = 0")
run(f"UPDATE delta.`{folder}/jvm` SET n.a = 5 WHERE id = 11")
for mode in ("name", "id"):
    run(f'''CREATE TABLE delta.`{folder}/jvm_{mode}` USING delta PARTITIONED BY (k)
        TBLPROPERTIES ('delta.columnMapping.mode' = '{mode}', 'delta.enableDeletionVectors' = 'true')
        AS SELECT id AS `the id`, concat('x ', id % 2) AS k, named_struct('a a', cast(id as int)) AS n FROM range(20)''')
    if mode == "name":
        run(f"ALTER TABLE delta.`{folder}/jvm_{mode}` RENAME COLUMN `the id` TO `other id`")
    run(f"DELETE FROM delta.`{folder}/jvm_{mode}` WHERE n.`a a` = 2")
for name in (*names, "jvm", "jvm_name", "jvm_id"):
    table = lake.table(name)
    rows = table.to_arrow()
    assert ChangeBatch.diff(rows, table.spark().toArrow().cast(rows.schema)).is_empty, name
table = lake.table("jvm")
assert table.at(version=0).spark().count() == 300
assert "checkpoint" in " ".join(e.path for e in table.storage.list("_delta_log")), "read from a checkpoint, too"
lake.table("jvm").append(session.createDataFrame([(1000, "z", None, None)], lake.table("jvm").spark().schema))
feather.write_feather(session.read.format("delta").load(f"{folder}/jvm").toArrow(), f"{folder}/jvm.feather")
"""


def test_both_ways(lake: Lake, spark: SparkSession, jvm: Driver) -> None:
    moment = sf.timestamp_micros(sf.col("id") * 1_000_003)
    plain = spark.range(0, 1000, 1, 3).select(
        "id", moment.alias("ts"), sf.lit("x").alias("s"), (sf.col("id") / 7).alias("v")
    )
    lake.write("plain", plain)
    key = sf.when(sf.col("id") % 4 > 0, sf.concat(sf.lit("a b/%é="), sf.col("id") % 4))
    split = spark.range(0, 200).select(
        "id", key.alias("k"), sf.timestamp_seconds(sf.col("id") % 2).alias("at"), sf.lit(1).alias("n")
    )
    table = lake.write("split", split, partition_by=["k", "at"])
    table.delete("id % 5 = 0")
    table.append(split.where("id < 10"))
    inner = pa.struct([("a b", pa.int32()), ("l", pa.list_(pa.struct([("q q", pa.string())])))])
    schema = pa.schema([("the id", pa.int64()), ("st", inner), ("d", pa.date32())])
    for mode in ("name", "id"):
        mapped = lake.table(f"mapped_{mode}").create(
            schema, partition_by=["d"], properties={"delta.columnMapping.mode": mode}
        )
        rows = [
            {"the id": i, "st": {"a b": i, "l": [{"q q": "z"}]}, "d": dt.date(2020, 1, 1 + i % 2)} for i in range(6)
        ]
        mapped.append(spark.createDataFrame(pa.Table.from_pylist(rows, schema)))
        mapped.rename_column("the id", "id")
        mapped.delete("id = 3")
    names = ["plain", "split", "mapped_name", "mapped_id"]
    jvm.execute(PROGRAM, lake.location, json.dumps(names))
    ours = lake.table("jvm").to_arrow()
    theirs = feather.read_table(f"{lake.location}/jvm.feather").cast(ours.schema)
    assert ChangeBatch.diff(ours, theirs).is_empty
    assert [agree(lake.table(f"jvm{x}")) for x in ("", "_name", "_id")] == [258, 19, 19]
