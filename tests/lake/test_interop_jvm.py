"""The JVM's own Delta reads what is written here, and the reverse; then each changes the other's tables.

A statement of the JVM's Delta takes half a second or more, so every day there is one long history each way, one table of all types, and what only
the JVM can make; the rest of the matrix is `slow` (`make test-slow`).
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from tests.interop_driver import Driver

import headwater as hw
from headwater.lake import snapshot
from headwater.lake.table import Table
from headwater.lakehouse import Lake
from headwater.testing.oracles import assert_same_rows

pytestmark = [pytest.mark.interop, pytest.mark.spark]

FEED = {"delta.enableChangeDataFeed": "true"}
UTC = dt.UTC


def same(jvm: Driver, table: Table) -> None:
    """Both read the same rows."""
    mine = table.to_arrow()
    theirs = jvm.read(table.location).select(mine.column_names).cast(mine.schema)
    assert_same_rows(theirs, mine, where=f"delta-spark, {table.name} version {table.version}")


def same_feed(jvm: Driver, table: Table, after: int) -> None:
    """The JVM's table_changes, summed up, is our change."""
    found = jvm.query(f"SELECT * FROM table_changes_by_path('{table.location}', {after + 1}, {table.version})")
    signs = pa.array([-1 if k in ("delete", "update_preimage") else 1 for k in found["_change_type"].to_pylist()])
    rows = found.select(table.schema.names).append_column("_weight", signs)
    mine = table.changes(after=after)
    schema = pa.schema([*mine.schema, pa.field("_weight", pa.int64())])
    assert hw.ChangeBatch.from_table(rows.cast(schema)) == mine


# ---- written here, read there ------------------------------------------------------------------------------


def test_edits_with_inline_and_stored_vectors(lake: Lake, jvm: Driver) -> None:
    table = lake.write("t", pa.table({"id": range(1000), "v": [f"x{i}" for i in range(1000)]}), properties=FEED)
    table.delete("id < 10")
    with hw.settings.override(small_vector_bytes=0):
        table.delete("id % 7 = 0")
        table.update({"v": "concat(v, '!')"}, where="id BETWEEN 20 AND 30")
        source = [{"id": 500, "v": "m"}, {"id": 501, "v": None}, {"id": 5000, "v": "new"}]
        merge = table.merge(source, on=["id"])
        merge.when_matched_delete(condition="s.v IS NULL").when_matched_update_all().when_not_matched_insert_all()
        merge.execute()
    table.overwrite([{"id": 40, "v": "w"}], where="id BETWEEN 40 AND 50")
    same(jvm, table)
    same_feed(jvm, table, 0)
    table.checkpoint()
    table.optimize(zorder_by=["id"])
    same(jvm, table)
    table.restore(2)
    same(jvm, table)
    same_feed(jvm, table, 1)
    table.overwrite([{"id": 1, "v": "last"}])
    table.delete()
    table.append([{"id": 2, "v": "again"}])
    same(jvm, table)
    same_feed(jvm, table, 0)


@pytest.mark.slow
def test_rewrites_without_vectors(lake: Lake, jvm: Driver) -> None:
    table = lake.write(
        "t", [{"id": i, "v": i * 0.5} for i in range(20)], properties={**FEED, "delta.enableDeletionVectors": "false"}
    )
    table.delete("id < 5")
    table.update({"v": "v + 1"}, where="id > 15")
    table.merge([{"id": 7, "v": 0.0}], on=["id"]).when_matched_update_all().execute()
    table.optimize()
    same(jvm, table)
    same_feed(jvm, table, 0)


ODD = ["plain", "a b", "é/=%", "snow 雪", "__HIVE_DEFAULT_PARTITION__", "x:y*z?", "%20", None]


# With names it renames and drops columns, too. By ids as by names, except for what is in the data files; lake_spark/test_interop.py has
# tables with ids, with names and without either, every day.
@pytest.mark.parametrize(
    "mapping", [pytest.param("none", marks=pytest.mark.slow), "name", pytest.param("id", marks=pytest.mark.slow)]
)
def test_partitions_and_every_type(lake: Lake, jvm: Driver, mapping: str) -> None:
    kinds = pa.schema(
        [
            ("id", pa.int64()),
            ("p", pa.string()),
            ("day", pa.date32()),
            ("at", pa.timestamp("us", "UTC")),
            ("wall", pa.timestamp("us")),
            ("n", pa.decimal128(38, 10)),
            ("small", pa.decimal128(5, 2)),
            ("f", pa.float32()),
            ("d", pa.float64()),
            ("b", pa.binary()),
            ("tiny", pa.int8()),
            ("flag", pa.bool_()),
            ("s", pa.struct([("x", pa.int64()), ("l", pa.list_(pa.struct([("y", pa.string())])))])),
            ("m", pa.map_(pa.string(), pa.list_(pa.int32()))),
        ]
    )
    rows = [
        {
            "id": i,
            "p": p,
            "day": dt.date(1, 1, 1) if i % 2 else dt.date(9999, 12, 31),
            "at": dt.datetime(1905, 3, 2, 1, 2, 3, 456789, tzinfo=UTC) + dt.timedelta(days=i),
            "wall": dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
            "n": Decimal("-1234567890123456789012345678.0123456789"),
            "small": Decimal("-1.05"),
            "f": float("nan"),
            "d": -0.0,
            "b": b"\x00\xff",
            "tiny": -128,
            "flag": bool(i % 2),
            "s": {"x": i, "l": [{"y": "é"}, None]},
            "m": [("k", [1, None]), ("", None)],
        }
        for i, p in enumerate(ODD)
    ]
    rows += [{"id": 100}]
    table = lake.table("t").create(
        kinds, partition_by=["p", "day"], properties={**FEED, "delta.columnMapping.mode": mapping}
    )
    table.append(pa.Table.from_pylist(rows, kinds))
    same(jvm, table)
    table.delete("id = 2")
    table.update({"p": "'moved here'", "flag": "NOT flag"}, where="id IN (3, 4)")
    if mapping != "none":
        table.rename_column("d", "a double, renamed")
        table.drop_column("b")
    table.add_columns({"late": pa.int32()})
    table.overwrite(
        pa.Table.from_pylist([{"id": 7, "p": "a b", "day": dt.date(1, 1, 1), "late": 1}], table.schema),
        partitions="dynamic",
    )
    table.checkpoint()
    same(jvm, table)
    same_feed(jvm, table, table.version - 1)
    for text in ("p = 'a b'", "p = 'é/=%'", "p IS NULL", "at < TIMESTAMP '1905-03-05 00:00:00Z'"):
        theirs = jvm.query(f"SELECT id FROM delta.`{table.location}` WHERE {text}")
        assert sorted(theirs["id"].to_pylist()) == sorted(r["id"] for r in table.to_pylist(where=text)), text


@pytest.mark.slow
def test_timestamps_floats_and_bytes_as_partitions(lake: Lake, jvm: Driver) -> None:
    kinds = pa.schema(
        [
            ("id", pa.int64()),
            ("at", pa.timestamp("us", "UTC")),
            ("wall", pa.timestamp("us")),
            ("f", pa.float64()),
            ("n", pa.decimal128(10, 2)),
            ("ok", pa.bool_()),
        ]
    )
    rows = [
        {"id": 1, "at": dt.datetime(1900, 1, 1, 0, 0, 0, 1, tzinfo=UTC), "wall": dt.datetime(1950, 1, 1), "f": 1e300, "n": Decimal("-0.50"), "ok": True},
        {"id": 2, "at": dt.datetime(2024, 1, 1, tzinfo=UTC), "wall": None, "f": float("nan"), "n": None, "ok": False},
    ]  # fmt: skip
    table = lake.write("t", pa.Table.from_pylist(rows, kinds), partition_by=kinds.names[1:])
    same(jvm, table)


def test_constraints_and_generated_columns(lake: Lake, jvm: Driver) -> None:
    table = lake.table("t").create(
        {"id": pa.int64(), "twice": pa.int64()}, generated={"twice": "id * 2"}, constraints={"positive": "id > 0"}
    )
    table.append([{"id": 1}])
    jvm.run(f"INSERT INTO delta.`{table.location}` (id) VALUES (5)")
    same(jvm, table)
    assert sorted(r["twice"] for r in table.to_pylist()) == [2, 10]
    with pytest.raises(RuntimeError, match=r"(?i)check|violat"):
        jvm.run(f"INSERT INTO delta.`{table.location}` (id) VALUES (-5)")


@pytest.mark.slow
def test_widened_columns(lake: Lake, jvm: Driver) -> None:
    table = lake.write(
        "t",
        pa.table(
            {
                "id": pa.array([1, 2], pa.int32()),
                "n": pa.array([1, 2], pa.int16()),
                "d": pa.array([dt.date(2020, 1, 1)] * 2),
            }
        ),
    )
    table.widen_column("id", pa.int64())
    table.widen_column("n", pa.decimal128(12, 2))
    table.widen_column("d", pa.timestamp("us"))
    table.append(pa.table({"id": [2**40], "n": [Decimal("0.25")], "d": [dt.datetime(2020, 1, 1, 12)]}))
    same(jvm, table)


@pytest.mark.slow
def test_times_kept_in_commits_and_many_commits(lake: Lake, jvm: Driver) -> None:
    table = lake.write("t", [{"id": 0}], properties={"delta.checkpointInterval": "4"})
    table.set_properties({"delta.enableInCommitTimestamps": "true"})
    for i in range(1, 8):
        table.append([{"id": i}])
    table.delete("id % 2 = 0")
    same(jvm, table)
    jvm.run(f"DELETE FROM delta.`{table.location}` WHERE id = 1")
    table.append([{"id": 100}])
    same(jvm, table)
    found = jvm.query(f"SELECT id FROM delta.`{table.location}` VERSION AS OF 5")
    assert sorted(found["id"].to_pylist()) == sorted(r["id"] for r in table.at(version=5).to_pylist())


# ---- made there, read and changed here ---------------------------------------------------------------------


def made(lake: Lake, jvm: Driver, columns: str, options: str = "", rows: str = "") -> Table:
    location = f"{lake.location}/t"
    jvm.run(f"CREATE TABLE delta.`{location}` ({columns}) USING delta {options}")
    if rows:
        jvm.run(f"INSERT INTO delta.`{location}` VALUES {rows}")
    return lake.table("t")


def test_their_vectors_zorder_and_merge(lake: Lake, jvm: Driver) -> None:
    properties = "TBLPROPERTIES ('delta.enableDeletionVectors'='true', 'delta.enableChangeDataFeed'='true')"
    table = made(lake, jvm, "id BIGINT, v STRING, p STRING", f"PARTITIONED BY (p) {properties}")
    where = f"delta.`{table.location}`"
    jvm.run(
        f"INSERT INTO {where} SELECT id, concat('v', id), IF(id % 2 = 0, 'a b', NULL) FROM range(200)",
        f"DELETE FROM {where} WHERE id % 10 = 3",
        f"UPDATE {where} SET v = 'u' WHERE id BETWEEN 50 AND 60",
        f"MERGE INTO {where} t USING (SELECT explode(array(7, 8, 999)) AS id) s ON t.id = s.id "
        "WHEN MATCHED AND s.id = 7 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'm' "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'new')",
    )
    same(jvm, table)
    same_feed(jvm, table, 1)
    jvm.run(f"OPTIMIZE {where} ZORDER BY (id)")
    same(jvm, table)
    assert table.changes(after=4).is_empty
    table.delete("id % 10 = 4")
    table.update({"v": "'here'"}, where="id < 20")
    table.merge([{"id": 0, "v": "z", "p": "c"}], on=["id"]).when_matched_update_all().execute()
    same(jvm, table)
    same_feed(jvm, table, 1)
    jvm.run(f"DELETE FROM {where} WHERE id % 10 = 5", f"RESTORE TABLE {where} TO VERSION AS OF 3")
    same(jvm, table)
    same_feed(jvm, table, 5)
    table.vacuum()
    same(jvm, table)


def test_their_v2_checkpoints(lake: Lake, jvm: Driver) -> None:
    properties = "TBLPROPERTIES ('delta.checkpointPolicy'='v2', 'delta.checkpointInterval'='3', 'delta.enableDeletionVectors'='true')"
    table = made(lake, jvm, "id BIGINT", properties, "(1), (2), (3)")
    for i in range(10, 15):
        jvm.run(f"INSERT INTO delta.`{table.location}` VALUES ({i})")
    jvm.run(f"DELETE FROM delta.`{table.location}` WHERE id = 2")
    log = Path(table.location) / "_delta_log"
    assert list((log / "_sidecars").glob("*.parquet")), "there is a checkpoint with sidecars"
    for version in range(6):
        (log / f"{version:020d}.json").unlink()
    snapshot.forget(table.storage)
    assert sorted(r["id"] for r in table.to_pylist()) == [1, 3, 10, 11, 12, 13, 14]
    for i in range(20, 24):
        table.append([{"id": i}])
    same(jvm, table)
    assert len(table.vacuum(dry_run=True)) == 0


@pytest.mark.slow
def test_their_mapping_rename_drop_and_widening(lake: Lake, jvm: Driver) -> None:
    properties = "TBLPROPERTIES ('delta.columnMapping.mode'='name', 'delta.enableTypeWidening'='true')"
    columns = "id INT, `a b` STRING, s STRUCT<x: INT, y: ARRAY<STRUCT<z: STRING>>>, m MAP<STRING, INT>, gone INT"
    table = made(
        lake,
        jvm,
        columns,
        properties,
        "(1, 'x', struct(1, array(struct('k'))), map('k', 1), 7), (2, NULL, NULL, NULL, NULL)",
    )
    where = f"delta.`{table.location}`"
    jvm.run(
        f"ALTER TABLE {where} RENAME COLUMN `a b` TO `c d`",
        f"ALTER TABLE {where} DROP COLUMN gone",
        f"ALTER TABLE {where} ADD COLUMN gone STRING",
        f"ALTER TABLE {where} ADD COLUMN s.late DOUBLE",
        f"ALTER TABLE {where} RENAME COLUMN s.x TO renamed",
        f"ALTER TABLE {where} ALTER COLUMN id TYPE BIGINT",
        f"INSERT INTO {where} VALUES (3000000000, 'n', struct(5, NULL, 0.5D), map(), 'back')",
    )
    same(jvm, table)
    table.update({"c d": "concat(`c d`, '!')"}, where="id = 1")
    table.append([{"id": 9, "c d": "here"}])
    table.delete("id = 2")
    same(jvm, table)
    assert table.schema.field("s").type.field(0).name == "renamed"


@pytest.mark.slow
def test_their_generated_columns_checks_and_legacy_times(lake: Lake, jvm: Driver) -> None:
    columns = "id BIGINT NOT NULL, at TIMESTAMP, wall TIMESTAMP_NTZ, day DATE GENERATED ALWAYS AS (CAST(at AS DATE)), n DECIMAL(10, 2), f FLOAT, b BINARY"
    table = made(lake, jvm, columns, "PARTITIONED BY (day) TBLPROPERTIES ('delta.enableDeletionVectors'='true')")
    where = f"delta.`{table.location}`"
    jvm.run(
        f"INSERT INTO {where} (id, at, wall, n, f, b) VALUES "
        "(1, TIMESTAMP '1850-01-01 10:00:00.123456Z', TIMESTAMP_NTZ '1969-12-31 23:59:59.5', -1.5, FLOAT('NaN'), X'00FF'), "
        "(2, TIMESTAMP '2024-05-01 00:00:00Z', NULL, NULL, -0.0, NULL), (3, NULL, NULL, 99999999.99, 1.5, X'')",
        f"ALTER TABLE {where} ADD CONSTRAINT small CHECK (id < 100)",
        f"DELETE FROM {where} WHERE id = 2",
    )
    same(jvm, table)
    assert table.to_pylist(where="day = DATE '1850-01-01'")[0]["id"] == 1
    table.append([{"id": 5, "at": dt.datetime(2020, 1, 1, 23, tzinfo=UTC)}])
    with pytest.raises(hw.ConstraintError):
        table.append([{"id": 500}])
    with pytest.raises(hw.ConstraintError):
        table.append(pa.table({"id": pa.array([None], pa.int64())}))
    table.overwrite([{"id": 6, "at": dt.datetime(1850, 1, 1, tzinfo=UTC)}], partitions="dynamic")
    same(jvm, table)
    assert sorted((r["id"], str(r["day"])) for r in table.to_pylist()) == [
        (3, "None"),
        (5, "2020-01-01"),
        (6, "1850-01-01"),
    ]


def test_their_features_that_are_refused(lake: Lake, jvm: Driver) -> None:
    tracked = made(lake, jvm, "id BIGINT", "TBLPROPERTIES ('delta.enableRowTracking'='true')", "(1)")
    assert tracked.to_pylist() == [{"id": 1}]
    with pytest.raises(hw.UnsupportedError, match="rowTracking"):
        tracked.append([{"id": 2}])
    same(jvm, tracked)
