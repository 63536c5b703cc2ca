"""NaN inside structs and maps: Parquet's statistics leave it out, and DuckDB believes them unless it is told otherwise."""

from __future__ import annotations

import math
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headwater.sql.duckdb_query import to_duckdb
from headwater.sql.query import parse_query

_TABLE = pa.table(
    {
        "id": pa.array([1, 2], pa.int32()),
        "st": pa.array([{"d": 1.0}, {"d": math.nan}], pa.struct([("d", pa.float64())])),
        "ds": pa.array([[1.0], [math.nan]], pa.list_(pa.float64())),
        "m": pa.array([[("a", 1.0)], [("a", math.nan)]], pa.map_(pa.string(), pa.float64())),
    }
)


@pytest.mark.parametrize(
    "condition",
    [
        "st.d > 5",
        "m['a'] > 5",
        "ds[0] > 5",
        "get(ds, 0) > 5",
        "element_at(ds, 1) > 5",
        "array_max(ds) > 5",
        "exists(ds, x -> x > 5)",
        "map_values(m)[0] > 5",
        "transform_values(m, (k, v) -> v > 5)['a']",
        "named_struct('q', st).q.d > 5",
        "coalesce(st, st).d > 5",
        "st > named_struct('d', 5.0D)",
        "isnan(st.d)",
        "NOT st.d <= 5",
    ],
)
def test_nan_is_larger_than_every_number(tmp_path: Path, condition: str) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(_TABLE, path)
    sql = to_duckdb(parse_query(f"select id from t where {condition}", lambda *_: _TABLE.schema))
    with duckdb.connect(":memory:") as con:
        con.execute(f"CREATE VIEW t AS SELECT * FROM read_parquet('{path}')")
        assert con.sql(sql).fetchall() == [(2,)]


def test_nan_is_there_after_an_explode(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(_TABLE, path)
    text = "select id from (select id, explode(m) as (k, v) from t) where v > 5"
    with duckdb.connect(":memory:") as con:
        con.execute(f"CREATE VIEW t AS SELECT * FROM read_parquet('{path}')")
        assert con.sql(to_duckdb(parse_query(text, lambda *_: _TABLE.schema))).fetchall() == [(2,)]
