"""Window functions: ranks, lag, frames and whole partitions; several in one query; ordered by expressions."""

from __future__ import annotations

import pytest

from headwater.base.errors import UnsupportedError

from .views import circuit_of, holds, labels


@pytest.mark.parametrize(
    "text",
    [
        "row_number() OVER (PARTITION BY k ORDER BY v)",
        "rank() OVER (ORDER BY d DESC)",
        "dense_rank() OVER (PARTITION BY s ORDER BY e NULLS LAST)",
        "percent_rank() OVER (PARTITION BY k ORDER BY s)",
        "cume_dist() OVER (PARTITION BY k ORDER BY s)",
        "ntile(3) OVER (ORDER BY length(s), k)",
        "lag(d, 2) OVER (PARTITION BY k ORDER BY e)",
        "lead(s, 1, 'none') OVER (PARTITION BY k % 2 ORDER BY e)",
        "lag(k, 1, k) OVER (ORDER BY v DESC)",
        "lag(upper(s), 0) OVER (ORDER BY v DESC)",
        "first_value(s) OVER (PARTITION BY k ORDER BY e ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
        "last_value(s) OVER (PARTITION BY k ORDER BY e ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
        "nth_value(s, 2) OVER (PARTITION BY k ORDER BY e ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
        "sum(k) OVER (PARTITION BY s ORDER BY d)",
        "avg(d) OVER (PARTITION BY s ORDER BY d ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
        "count(*) FILTER (WHERE v > 0) OVER (ORDER BY e RANGE BETWEEN INTERVAL 2 DAYS PRECEDING AND CURRENT ROW)",
        "max(v) OVER (ORDER BY k RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
        "sum(v) OVER (PARTITION BY v)",
        "round(stddev(k) OVER (PARTITION BY s), 6)",
        "bool_or(v > 1) OVER (PARTITION BY k ORDER BY e)",
        "sort_array(collect_list(k) OVER (PARTITION BY s))",
        "min(d) OVER ()",
    ],
)
def test_a_window_function_equals_a_recomputation(text: str) -> None:
    holds(f"SELECT k, s, {text} AS w FROM t")


def test_several_windows_and_a_condition_on_one() -> None:
    holds(
        "SELECT k, s, sum(k) OVER (PARTITION BY s) AS a, row_number() OVER (ORDER BY d, e) AS b, lag(k) OVER (ORDER BY d) AS c "
        "FROM t QUALIFY count(*) OVER (PARTITION BY k) > 1"
    )


@pytest.mark.parametrize(
    "bound", ["row_number() {} <= 2", "2 > rank() {}", "dense_rank() {} = 1", "row_number() {} < 1"]
)
def test_a_bound_on_a_rank_keeps_the_first_rows_only(bound: str) -> None:
    condition = bound.format("OVER (PARTITION BY k ORDER BY v DESC)")
    text = f"SELECT k, s, v FROM t QUALIFY {condition} AND s IS NOT NULL"
    assert "top" in labels(circuit_of(text))
    assert "ranks" not in labels(circuit_of(text))
    holds(text)


def test_a_bound_on_a_rank_is_found_under_another_name() -> None:
    text = (
        "SELECT a FROM (SELECT s AS a, rank() OVER (PARTITION BY e ORDER BY v) AS n FROM t) WHERE n <= 2 AND a <> 'B'"
    )
    assert "top" in labels(circuit_of(text))
    holds(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT sum(k) OVER (ORDER BY e RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND CURRENT ROW) AS x FROM t",
        "SELECT collect_list(k) OVER (ORDER BY e) AS x FROM t",
    ],
)
def test_what_no_frame_can_follow_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        circuit_of(text)
    assert caught.value.hint
