"""The same on every engine: ``t@v0``, lists as parameters, the clock, and the forms of a query without SELECT in front."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import headwater as hw
from headwater.base.errors import HeadwaterError, InputError
from headwater.lakehouse import Lake
from headwater.query.run import EngineName

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(params=["duckdb", "datafusion", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest) -> EngineName:
    name: EngineName = request.param
    return name


@pytest.fixture
def lake(request: pytest.FixtureRequest, tmp_path: Path, engine: EngineName) -> Lake:
    made = hw.connect(tmp_path / "lake")
    if engine == "spark":
        session: SparkSession = request.getfixturevalue("spark")
        made._spark = session
    made.write("t", [{"id": 1, "s": "a"}])
    made.write("t", [{"id": 2, "s": "B"}], mode="append")
    made.write("t", [{"id": 3, "s": None}], mode="append")
    return made


def test_delta_shorthand_of_a_version(lake: Lake, engine: EngineName) -> None:
    for version in range(3):
        for text in (f"t@v{version}", f"t@V{version} AS x", f"t VERSION AS OF {version}"):
            assert lake.sql(f"SELECT count(*) FROM {text}", engine=engine).to_tuples() == [(version + 1,)], text
    joined = "SELECT a.id, b.id FROM t@v0 a JOIN t@v1 AS b ON a.id < b.id, t@v0"
    assert lake.sql(joined, engine=engine).to_tuples() == [(1, 2)]
    assert lake.sql("SELECT t.id FROM t@v0", engine=engine).to_tuples() == [(1,)]


@pytest.mark.parametrize(
    "text", ["t@v99", "t@nonsense", "t @v0", "t@ v0", "t@v", "t@v0x", "t@20240131000000000", "(SELECT 1)@v0"]
)
def test_what_is_no_version_is_refused(lake: Lake, engine: EngineName, text: str) -> None:
    with pytest.raises(HeadwaterError):
        lake.sql(f"SELECT count(*) FROM {text}", engine=engine).to_tuples()


@pytest.mark.parametrize(
    ("ids", "rows"),
    [
        ([1, 3], [1, 3]),
        ((2,), [2]),
        ([1, 2**40], [1]),
        ([1, None], [1]),
    ],
)
def test_a_list_is_an_array(lake: Lake, engine: EngineName, ids: list[object], rows: list[int]) -> None:
    text = "SELECT id FROM t WHERE array_contains(:ids, id) ORDER BY id"
    assert [r for (r,) in lake.sql(text, engine=engine, parameters={"ids": ids}).to_tuples()] == rows


def test_lists_of_every_type(lake: Lake, engine: EngineName) -> None:
    lists: list[list[object]] = [["it's", "b"], [True, False], [0.5, -1.5], [date(2024, 1, 31)], [1, 2]]
    for values in lists:
        found = lake.sql("SELECT :v AS v, size(:v) AS n", engine=engine, parameters={"v": values}).to_tuples()
        assert found == [(values, len(values))]


@pytest.mark.parametrize("values", [[], [None], [1, "x", date(2024, 1, 1)], [[1], [2]], object(), {"a": 1}])
def test_a_bad_value_is_named(lake: Lake, values: object) -> None:
    with pytest.raises(InputError) as caught:
        lake.sql("SELECT :ids AS v", parameters={"ids": values})
    assert ":ids" in caught.value.message
    with pytest.raises(InputError) as caught:
        lake.sql("SELECT 1, ? AS v", parameters=[values])
    assert "?" in caught.value.message


def test_a_list_in_in_is_explained(lake: Lake) -> None:
    with pytest.raises(InputError) as caught:
        lake.sql("SELECT id FROM t WHERE id IN (:ids)", parameters={"ids": [1, 2]})
    assert "array_contains(:ids, x)" in str(caught.value)


def test_the_clock(lake: Lake, engine: EngineName) -> None:
    found = lake.sql("SELECT current_date(), current_timestamp(), now() FROM t", engine=engine).to_tuples()
    ((today, now, again),) = set(found)
    assert now == again and today == now.date()
    assert abs((datetime.now(UTC) - now).total_seconds()) < 120
    recent = "SELECT count(*) FROM t WHERE current_date() - INTERVAL 7 DAYS < date(now())"
    assert lake.sql(recent, engine=engine).to_tuples() == [(3,)]
    assert lake.sql("SELECT count(*) FROM t TIMESTAMP AS OF current_timestamp()", engine=engine).to_tuples() == [(3,)]


def test_forms(lake: Lake, engine: EngineName) -> None:
    def rows(text: str) -> list[tuple[object, ...]]:
        return lake.sql(text, engine=engine).to_tuples()

    assert rows("TABLE t ORDER BY id LIMIT 1") == [(1, "a")]
    assert sorted(rows("FROM t SELECT id WHERE id > 1")) == [(2,), (3,)]
    assert rows("SELECT s ILIKE 'b', id::string, string(id), typeof(id) FROM t ORDER BY id") == [
        (False, "1", "1", "bigint"),
        (True, "2", "2", "bigint"),
        (None, "3", "3", "bigint"),
    ]
    assert rows("SELECT sum(id), count(*) FROM range(2, 10, 3)") == [(15, 3)]
    assert rows("SELECT * FROM range(0)") == []
    assert sorted(rows("SELECT t.id FROM t JOIN range(1, 3) r ON t.id = r.id")) == [(1,), (2,)]


def test_a_list_is_spelled_in_the_history(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path / "lake")
    lake.write("t", [{"id": 1}, {"id": 2}])
    lake.sql("DELETE FROM t WHERE array_contains(:ids, id)", parameters={"ids": [2, 3]})
    assert lake.sql("SELECT id FROM t").to_tuples() == [(1,)]
    assert "array(2, 3)" in str(lake.sql("DESCRIBE HISTORY t").to_dicts()[0])
