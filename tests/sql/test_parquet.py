"""Statistics of Parquet files must not change an answer: they leave NaN out, and an overflow is not in them."""

from __future__ import annotations

import math
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headwater.sql.expressions import evaluate, parse

_ROWS = pa.table(
    {
        "f": pa.array([1.0, 2.0, math.nan, None, -0.0, 7.0, math.inf, math.nan], pa.float32()),
        "d": pa.array([1.0, 2.0, math.nan, None, -0.0, 7.0, -math.inf, math.nan], pa.float64()),
        "i": pa.array([1, 2, 3, 2**31 - 1, None, 5, 6, 7], pa.int32()),
    }
)
_TEXTS = [
    "d > 5",
    "d >= 2",
    "d <> 1",
    "d = d",
    "isnan(d)",
    "d between 0 and 10",
    "d * 2 > 5",
    "d < 100",
    "not d < 100",
    "f > 5",
    "f <= 10",
    "-f < -5",
    "coalesce(d, 0) >= 0",
    "greatest(d, f) > 100",
    "d + f <= 9",
    "abs(d) <= 1e300",
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("parquet") / "rows.parquet"
    pq.write_table(_ROWS, path, row_group_size=3)
    return path


@pytest.mark.parametrize("text", _TEXTS)
def test_a_filter_over_parquet_keeps_the_rows_that_arrow_keeps(path: Path, text: str) -> None:
    expression = parse(text, schema=_ROWS.schema)
    numbers = pa.array(range(_ROWS.num_rows))
    want = [n for n, keep in zip(numbers.to_pylist(), evaluate(expression, _ROWS).to_pylist(), strict=True) if keep]
    sql = f"SELECT file_row_number AS n FROM read_parquet(?, file_row_number=true) WHERE {expression.duckdb} ORDER BY n"
    got = [row[0] for row in duckdb.connect().execute(sql, [str(path)]).fetchall()]
    assert got == want


@pytest.mark.parametrize("text", ["i + 1 > 5", "(i + 1) is null", "i * 2 <> 4", "cast(i as tinyint) > 5"])
def test_an_overflow_is_noticed_in_a_filter_over_parquet(path: Path, text: str) -> None:
    sql = f"SELECT count(*) FROM read_parquet(?) WHERE {parse(text, schema=_ROWS.schema).duckdb}"
    with pytest.raises(duckdb.Error):
        duckdb.connect().execute(sql, [str(path)]).fetchall()
