"""What a query reads of a table is what the lake itself reads: any types, deleted rows, older files, every layout."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater as hw
from headwater.lakehouse import Lake
from headwater.testing.oracles import assert_same_rows
from headwater.testing.strategies import tables

MAPPINGS = ["none", "name", "id"]


def check(lake: Lake, name: str = "t", engine: str = "duckdb") -> None:
    """Every column at once, each alone, and the number of rows."""
    table = lake.table(name)
    expected = table.to_arrow()
    assert_same_rows(lake.sql(f"SELECT * FROM {name}", engine=engine).to_arrow(), expected)  # type: ignore[arg-type]
    assert lake.sql(f"SELECT count(*) FROM {name}", engine=engine).scalar() == expected.num_rows  # type: ignore[arg-type]
    for column in expected.schema.names:
        found = lake.sql(f"SELECT `{column}` FROM {name}", engine=engine).to_arrow()  # type: ignore[arg-type]
        assert_same_rows(found, expected.select([column]), where=column)


FLAT = [
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.timestamp("us", "UTC"),
    pa.timestamp("us"),
    pa.decimal128(5, 2),
    pa.decimal128(38, 10),
]
STORED = st.recursive(
    st.sampled_from(FLAT),
    lambda inner: st.one_of(
        inner.map(lambda kind: pa.list_(pa.field("element", kind))),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda kinds: pa.struct([(f"f{i}", k) for i, k in enumerate(kinds)])
        ),
    ),
    max_leaves=4,
)
SCHEMAS = st.lists(STORED, min_size=1, max_size=4).map(
    lambda kinds: pa.schema([(f"c{i}", k) for i, k in enumerate(kinds)])
)


@pytest.mark.long
@given(SCHEMAS.flatmap(lambda schema: tables(schema, min_rows=1)), st.sampled_from(MAPPINGS), st.integers(0, 2**16))
def test_all_types_and_deleted_rows(rows: pa.Table, mapping: str, seed: int) -> None:
    properties = {"delta.columnMapping.mode": mapping} if mapping != "none" else {}
    with tempfile.TemporaryDirectory() as folder, hw.settings.override(fsync=False, row_group_rows=3):
        lake = hw.connect(folder)
        numbered = rows.append_column("row", pa.array(range(rows.num_rows), pa.int64()))
        table = lake.write("t", numbered, properties=properties)
        check(lake)
        table.append(numbered)
        table.delete(f"row % 3 = {seed % 3}")
        check(lake)


@pytest.mark.parametrize("mapping", MAPPINGS)
def test_files_older_than_a_column(lake: Lake, mapping: str) -> None:
    properties = {"delta.columnMapping.mode": mapping} if mapping != "none" else {}
    table = lake.write("t", [{"id": 1, "s": {"x": 1}}, {"id": 2, "s": None}], properties=properties)
    table.add_columns({"note": pa.string(), "n": pa.decimal128(10, 2)})
    check(lake)
    table.append([{"id": 3, "s": {"x": 3}, "note": "new", "n": None}])
    table.delete("id = 1")
    check(lake)
    assert lake.sql("SELECT id FROM t WHERE note IS NULL").to_pylist() == [{"id": 2}]
    assert lake.sql("SELECT count(note), count(*) FROM t").to_tuples() == [(1, 2)]
    if mapping != "none":
        table.rename_column("note", "remark")
        table.drop_column("n")
        check(lake)
        assert lake.sql("SELECT remark FROM t ORDER BY id").to_tuples() == [(None,), ("new",)]


@pytest.mark.parametrize(
    ("narrow", "old", "wide", "new"),
    [
        (pa.int32(), -5, pa.int64(), 2**40),
        (pa.float32(), 1.5, pa.float64(), 1e300),
        (pa.decimal128(10, 2), "1.50", pa.decimal128(14, 4), "1.2345"),
        (pa.int32(), 7, pa.decimal128(12, 2), "0.25"),
    ],
)
def test_files_older_than_a_wider_type(
    lake: Lake, narrow: pa.DataType, old: object, wide: pa.DataType, new: object
) -> None:
    cast = [pa.array([v]).cast(t) for v, t in ((old, narrow), (new, wide))]
    table = lake.write("t", pa.table({"c": cast[0]}))
    table.widen_column("c", wide)
    table.append(pa.table({"c": cast[1]}))
    check(lake)
    for value, kind in ((old, narrow), (new, wide)):
        wanted = pa.array([value]).cast(kind).cast(wide)[0].as_py()
        assert lake.sql("SELECT count(*) FROM t WHERE c = ?", parameters=[wanted]).scalar() == 1


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", None, "ü x/y=z%", "'", "*?[a]"]),
        pa.array([1, None, -(2**40)], pa.int64()),
        pa.array([True, False, None]),
        pa.array([0, None, -1], pa.date32()),
        pa.array([0, None, 1_600_000_000_123_456], pa.timestamp("us", "UTC")),
        pa.array(["1.50", None, "-0.01"]).cast(pa.decimal128(10, 2)),
    ],
    ids=lambda a: str(a.type),
)
def test_partition_values(lake: Lake, values: pa.Array) -> None:
    rows = pa.table({"p": values, "id": pa.array(range(len(values)), pa.int64())})
    table = lake.write("t", rows, partition_by=["p"])
    check(lake)
    for row in rows.to_pylist():
        found = lake.sql("SELECT id FROM t WHERE p <=> ?", parameters=[row["p"]]).to_tuples()
        assert found == [(row["id"],)]
    assert lake.sql("SELECT DISTINCT p FROM t").to_arrow().num_rows == len(values)
    table.delete("id = 1")
    check(lake)


def test_a_table_without_rows_and_one_without_any_left(lake: Lake) -> None:
    lake.table("t").create({"id": pa.int64(), "s": pa.string()})
    check(lake)
    lake.table("t").append([{"id": 1, "s": "x"}])
    lake.table("t").delete()
    check(lake)
    assert lake.sql("SELECT sum(id), count(*) FROM t").to_tuples() == [(None, 0)]


@pytest.mark.usefixtures("on_disk")
@pytest.mark.parametrize("folder", ["[a]*", "it's", 'q"uote', "ü {x}", "a?b"])
def test_a_lake_in_a_folder_of_any_name(tmp_path: Path, folder: str) -> None:
    lake = hw.connect(tmp_path / folder)
    lake.write("t", [{"id": 1}, {"id": 2}])
    lake.table("t").delete("id = 1")
    assert lake.sql("SELECT * FROM t").to_tuples() == [(2,)]


def test_a_table_read_twice_in_one_query(lake: Lake) -> None:
    lake.write("t", [{"id": i} for i in range(10)])
    lake.table("t").delete("id > 7")
    text = "WITH x AS (SELECT * FROM t) SELECT count(*) FROM x a JOIN x b ON a.id = b.id JOIN t c ON c.id = a.id"
    assert lake.sql(text).scalar() == 8
