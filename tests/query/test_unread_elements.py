"""A list that is unnested decides how many rows there are, also where its elements are not read."""

from __future__ import annotations

import pytest

from headwater.lakehouse import Lake


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT k FROM w LATERAL VIEW explode(xs) e AS x", [1, 1]),
        ("SELECT k FROM w LATERAL VIEW posexplode(xs) e AS p, x", [1, 1]),
        ("SELECT k FROM w LATERAL VIEW OUTER explode(xs) e AS x", [1, 1, 2, 3]),
        ("SELECT DISTINCT k FROM w LATERAL VIEW explode(xs) e AS x", [1]),
        ("SELECT k FROM (SELECT k, x FROM w LATERAL VIEW explode(xs) e AS x)", [1, 1]),
        ("SELECT k FROM w LATERAL VIEW explode(xs) e AS x WHERE k < 3", [1, 1]),
    ],
)
def test_rows_are_made_all_the_same(lake: Lake, sql: str, expected: list[int]) -> None:
    lake.write("w", [{"k": 1, "xs": [7, 8]}, {"k": 2, "xs": []}, {"k": 3, "xs": None}])
    assert sorted(row["k"] for row in lake.sql(sql).to_pylist()) == expected
