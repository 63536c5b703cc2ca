"""Passage: rows that depend on a key have it, for queries of many shapes, against recomputation without the key's rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.sql.passage import identifying, passage
from headwater.sql.query import parse_query

T = pa.schema([("k", pa.int64()), ("g", pa.int64()), ("n", pa.int64()), ("tags", pa.list_(pa.int64()))])
U = pa.schema([("k", pa.int64()), ("name", pa.string())])

CARRIED = {
    "SELECT k, n FROM t WHERE n > 1": "k",
    "SELECT k AS who, n + 1 AS m FROM t": "who",
    "SELECT k, count(*) AS c FROM t GROUP BY k": "k",
    "SELECT k, g, sum(n) AS s FROM t GROUP BY g, k HAVING sum(n) > 2": "k",
    "SELECT DISTINCT k, g FROM t": "k",
    "SELECT t.k, u.name FROM t JOIN u ON t.k = u.k": "k",
    "SELECT t.k, u.name FROM t LEFT JOIN u ON t.k = u.k": "k",
    "SELECT u.k, t.n FROM u LEFT JOIN t ON t.k = u.k": "k",
    "SELECT u.k, u.name FROM u LEFT ANTI JOIN t ON t.k = u.k": "k",
    "SELECT u.k, u.name FROM u LEFT SEMI JOIN t ON u.k = t.k": "k",
    "SELECT t.k, u.name FROM u RIGHT JOIN t ON t.k = u.k": "k",
    "SELECT k, n, row_number() OVER (PARTITION BY k ORDER BY n, g) AS r FROM t": "k",
    "SELECT k FROM t UNION ALL SELECT k FROM u": "k",
    "SELECT k FROM u EXCEPT SELECT k FROM t": "k",
    "WITH c AS (SELECT k, n FROM t WHERE g = 1) SELECT k, max(n) AS m FROM c GROUP BY k": "k",
    "SELECT k, tag FROM t LATERAL VIEW explode(tags) e AS tag": "k",
}
LOST = [
    "SELECT n FROM t",
    "SELECT count(*) AS c FROM t",
    "SELECT k + 0 AS k, n FROM t",
    "SELECT g, max(k) AS k FROM t GROUP BY g",
    "SELECT k, n, rank() OVER (ORDER BY n) AS r FROM t",
    "SELECT k, n, sum(n) OVER (PARTITION BY g ORDER BY k, n) AS s FROM t",
    "SELECT a.k, b.n FROM t a JOIN t b ON a.g = b.g",
    "SELECT u.k, t.n FROM u LEFT JOIN t ON t.g = u.k",
    "SELECT u.k, t.k AS other FROM u FULL JOIN t ON t.k = u.k",
    "SELECT k, n FROM t ORDER BY n LIMIT 2",
    "SELECT k, name FROM u WHERE k > (SELECT avg(n) FROM t)",
    "SELECT k FROM t UNION ALL SELECT n FROM t",
    "SELECT k, g, count(*) AS c FROM t GROUP BY ROLLUP (k, g)",
]


def read(sql: str) -> Any:
    return parse_query(sql, lambda name, *_: T if name == "t" else U)


@pytest.mark.parametrize(("sql", "column"), CARRIED.items())
def test_carried(sql: str, column: str) -> None:
    assert passage(read(sql), {"t"}, ["k"]) == {"k": column}


@pytest.mark.parametrize("sql", LOST)
def test_lost(sql: str) -> None:
    assert passage(read(sql), {"t"}, ["k"]) is None


def test_a_query_that_does_not_read_the_table_says_nothing() -> None:
    assert passage(read("SELECT k FROM u"), {"t"}, ["k"]) is None


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> hw.Lake:
    lake = hw.connect(tmp_path_factory.mktemp("lake"))
    rows = [{"k": k, "g": k % 2, "n": n, "tags": [k, n]} for k in (1, 2, 3, 4) for n in range(k)]
    lake.write("t", pa.Table.from_pylist(rows, T))
    lake.write("u", pa.Table.from_pylist([{"k": k, "name": f"u{k}"} for k in (2, 3, 5)], U))
    return lake


@pytest.mark.parametrize(("sql", "column"), CARRIED.items())
def test_rows_that_depend_on_the_key_have_it(sql: str, column: str, lake: hw.Lake) -> None:
    """Without the rows of a key the answer is another one only in rows that have the key."""
    whole = lake.sql(sql).to_pylist()
    for key in (1, 2, 3, 4):
        lake.write("t", lake.table("t").to_arrow(where=f"k <> {key}"), mode="overwrite")
        without = lake.sql(sql).to_pylist()
        lake.table("t").restore(0)
        before, after = (
            Counter(repr(sorted(row.items())) for row in rows if row[column] != key) for rows in (whole, without)
        )
        assert before == after


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT k AS who, count(*) AS c FROM t GROUP BY k", ("who",)),
        ("SELECT count(*) AS c, g, k FROM t GROUP BY k, g HAVING count(*) > 1", ("k", "g")),
        ("SELECT count(*) AS c FROM t GROUP BY k", ()),
        ("SELECT count(*) AS c FROM t", ()),
        ("SELECT k, n FROM t", ()),
        ("SELECT k, count(*) AS c FROM t GROUP BY CUBE (k)", ()),
    ],
)
def test_what_a_grouped_answer_is_known_by(sql: str, columns: tuple[str, ...]) -> None:
    assert identifying(read(sql)) == columns
