"""A view that was never built has no rows to read: every way of reading says so, and says what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headwater as hw
from headwater.lakehouse import Lake

ROWS = [{"id": 1, "ts": 1}, {"id": 2, "ts": 2}]

READS: dict[str, Callable[[Lake], Any]] = {
    "read": lambda lake: lake.view("v").read(),
    "verify": lambda lake: lake.view("v").verify(),
    "to_arrow": lambda lake: lake.table("v").to_arrow(),
    "to_reader": lambda lake: lake.table("v").to_reader(["id"], where="id > 1"),
    "count": lambda lake: lake.table("v").count(),
    "a stream of Arrow": lambda lake: lake.write("copy", lake.table("v")),
    "an old version": lambda lake: lake.table("v").at(version=0).to_pylist(),
    "duckdb": lambda lake: lake.sql("SELECT * FROM v"),
    "datafusion": lambda lake: lake.sql("SELECT count(*) FROM V", engine="datafusion"),
    "native duckdb": lambda lake: lake.sql("SELECT * FROM v", dialect="native"),
    "version as of": lambda lake: lake.sql("SELECT * FROM v VERSION AS OF 0"),
    "insert": lambda lake: lake.sql("INSERT INTO t SELECT * FROM v"),
    "merge": lambda lake: lake.sql("MERGE INTO t USING v s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"),
    "subquery": lambda lake: lake.sql("DELETE FROM t WHERE id NOT IN (SELECT id FROM v)"),
    "stream": lambda lake: lake.stream("v", time="ts"),
    "stream of a version": lambda lake: lake.stream("v", version=0),
}
ON_SPARK: dict[str, Callable[[Lake], Any]] = {
    "spark": lambda lake: lake.table("v").spark(),
    "sql": lambda lake: lake.sql("SELECT * FROM v", engine="spark").to_arrow(),
}


def unbuilt(folder: Path, **options: Any) -> Lake:
    lake = hw.connect(folder, **options)
    lake.write("t", ROWS)
    lake.view("v", "SELECT id, ts FROM t")
    return lake


IN_SQL = {"duckdb", "datafusion", "native duckdb", "version as of", "insert", "merge", "subquery", "sql"}


def check(way: str, read: Callable[[Lake], Any], lake: Lake) -> None:
    with pytest.raises(hw.InputError) as caught:
        read(lake)
    how = "REFRESH MATERIALIZED VIEW v" if way in IN_SQL else "lake.view('v').refresh()"
    assert caught.value.code == "E1609" and caught.value.hint == f"build it: {how}"
    assert lake.table("t").version == 0 and "copy" not in lake


@pytest.mark.parametrize("way", READS)
def test_reading_is_an_error(way: str, tmp_path: Path) -> None:
    check(way, READS[way], unbuilt(tmp_path))


@pytest.mark.parametrize("way", ON_SPARK)
def test_reading_on_spark_is_an_error(way: str, tmp_path: Path, spark: SparkSession) -> None:
    check(way, ON_SPARK[way], unbuilt(tmp_path, spark=spark))


def test_an_error_in_a_query_points_at_the_view(tmp_path: Path) -> None:
    lake = unbuilt(tmp_path)
    with pytest.raises(hw.InputError) as caught:
        lake.sql("SELECT t.id FROM t JOIN v ON t.id = v.id")
    assert caught.value.position == 24


def test_what_reads_no_rows_still_answers(tmp_path: Path) -> None:
    lake = unbuilt(tmp_path)
    view, table = lake.view("v"), lake.table("v")
    assert not view.built and view.schema.names == ["id", "ts"] and "never built" in repr(view)
    assert table.changes(after=0).is_empty and "never built" in table._repr_html_()
    assert lake.sql("DESCRIBE v").to_pylist()[0]["col_name"] == "id"
    assert lake.view("w", "SELECT id FROM v").schema.names == ["id"], "a view over it can be defined"
    view.refresh()
    assert lake.view("v").built and lake.sql("SELECT count(*) AS n FROM v").to_pylist() == [{"n": 2}]


def test_a_view_of_no_rows_that_was_built_reads_as_none(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    lake.write("t", ROWS)
    view = lake.view("none", "SELECT id FROM t WHERE id > 9", refresh=True)
    assert view.to_arrow().num_rows == 0 and lake.sql("SELECT * FROM none").to_pylist() == []


def test_creating_builds_what_it_reads(tmp_path: Path) -> None:
    lake = unbuilt(tmp_path)
    lake.sql("CREATE MATERIALIZED VIEW w AS SELECT count(*) AS n FROM v")
    assert lake.table("w").to_pylist() == [{"n": 2}] and lake.view("v").built
    assert lake.view("x", "SELECT id FROM w JOIN v ON true", refresh=True).to_arrow().num_rows == 2


def test_another_definition_builds_what_it_reads(tmp_path: Path) -> None:
    lake = unbuilt(tmp_path)
    lake.view("w", "SELECT count(*) AS n FROM t", refresh=True)
    lake.view("w", "SELECT count(*) AS n FROM v")
    assert lake.view("v").built and lake.view("w").to_pylist() == [{"n": 2}]


def test_without_a_cascade_an_unbuilt_source_is_an_error(tmp_path: Path) -> None:
    lake = unbuilt(tmp_path)
    view = lake.view("w", "SELECT count(*) AS n FROM v")
    with pytest.raises(hw.InputError) as caught:
        view.refresh(cascade=False)
    assert caught.value.code == "E1610" and all(f"`{name}`" in caught.value.message for name in "vw")
    assert not view.built


def test_a_view_that_until_leaves_unbuilt_counts_as_before_its_first_version(tmp_path: Path) -> None:
    lake = unbuilt(tmp_path)
    lake.write("s", ROWS)
    view = lake.view("w", "SELECT id FROM v UNION ALL SELECT id FROM s")
    view.refresh(hw.Frontier(s=0))
    assert view.to_arrow().num_rows == 2 and view.frontier == hw.Frontier(s=0) and not lake.view("v").built
    assert [one.name for one in view.refresh().upstream] == ["v"] and view.to_arrow().num_rows == 4
