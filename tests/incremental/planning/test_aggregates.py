"""GROUP BY: keys and arguments that are expressions, grouping sets, and the one row of no keys."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.testing.views import SCHEMAS

from .views import circuit_of, holds, rows_of


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    [
        "SELECT k, s, count(*) AS n, sum(d) AS total, avg(v) AS mean FROM t GROUP BY k, s",
        "SELECT k % 2 AS odd, max(upper(s)) AS m, count(DISTINCT e) AS days FROM t GROUP BY k % 2",
        "SELECT count(*) AS n, sum(k) AS total, min(e) AS first, max(v) AS most FROM t",
        "SELECT sum(k) / count(*) AS mean, round(stddev(k), 6) AS spread FROM t WHERE s IS NOT NULL",
        "SELECT k FROM t GROUP BY k HAVING count(*) > 1 AND max(d) > 1",
        "SELECT s, sum(k) FILTER (WHERE v > 0) AS a, count(DISTINCT k) FILTER (WHERE d > 0) AS b FROM t GROUP BY s",
        "SELECT k, s, grouping(k) AS g, grouping_id(k, s) AS i, count(*) AS n, max(k) AS m FROM t GROUP BY ROLLUP(k, s)",
        "SELECT k, s, e, sum(d) AS total FROM t GROUP BY CUBE(k, s, e)",
        "SELECT k, s, count(*) AS n FROM t GROUP BY GROUPING SETS ((k), (k), (s), ())",
        "SELECT v, count(*) AS n FROM t GROUP BY v",
        "SELECT bool_and(g) AS a, bool_or(g) AS b, count_if(g) AS c, bit_xor(n) AS d FROM u GROUP BY k",
        "SELECT sort_array(collect_list(k)) AS a, sort_array(collect_set(s)) AS b FROM t GROUP BY e",
        "SELECT listagg(s, '-') WITHIN GROUP (ORDER BY s DESC) AS a, median(k) AS m, percentile(k, 0.3) AS p FROM t GROUP BY d",
        "SELECT count(1) AS a, count(NULL) AS b, count(k, s) AS c, sum(1) AS d FROM t",
        "SELECT 1 AS one FROM t HAVING count(*) >= 0",
        "SELECT s, max(struct(k, s)) AS last FROM t GROUP BY s",
    ],
)
def test_an_aggregation_equals_a_recomputation(text: str) -> None:
    holds(text)


def test_without_keys_there_is_a_row_of_no_rows() -> None:
    circuit = circuit_of("SELECT count(*) AS n, sum(k) AS total FROM t WHERE k > 100")
    assert rows_of(circuit) == [{"n": 0, "total": None, "_weight": 1}]
    assert rows_of(circuit, t=SCHEMAS["t"].empty_table()) == []


def test_grouping_sets_of_no_rows_have_no_groups() -> None:
    assert rows_of(circuit_of("SELECT k, count(*) AS n FROM t GROUP BY ROLLUP(k)")) == []


def test_a_sum_of_doubles_is_the_true_one() -> None:
    schema = pa.schema([("v", pa.float64())])
    circuit = circuit_of("SELECT sum(v) AS total FROM x", {"x": schema})

    def total(v: float, weight: int) -> list[float]:
        rows = rows_of(circuit, x=pa.table({"v": [v], "_weight": [weight]}))
        return [r["total"] for r in rows if r["_weight"] > 0]

    rows_of(circuit, x=pa.table({"v": [1e16, 1.0, -1e16]}))
    assert total(0.0, 1) == []
    assert total(1e300, 1) == [1e300]
    assert total(1e300, -1) == [1.0]
