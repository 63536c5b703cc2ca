"""Order-sensitive functions over ties: the circuit and the query that a view is verified with choose the same."""

from __future__ import annotations

import pytest

from headwater.base.errors import HeadwaterError
from headwater.incremental.planning import determined
from headwater.sql.functions.catalogue import AGGREGATES, by_order

from .views import circuit_of, holds, labels, plan_of

FRAMES = [
    "",
    "PARTITION BY k",
    "ORDER BY k",
    "PARTITION BY g ORDER BY k DESC NULLS FIRST RANGE BETWEEN 1 PRECEDING AND CURRENT ROW",
    "PARTITION BY g ORDER BY k RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ORDER BY k ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "PARTITION BY k ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "PARTITION BY g ORDER BY k RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
]
PLACES = [
    "first_value(s)",
    "last_value(s)",
    "nth_value(s, 2)",
    "any_value(n)",
    "first(s) IGNORE NULLS",
    "last_value(n) IGNORE NULLS",
    "nth_value(s, 2) IGNORE NULLS",
]
GROUPED = [
    "first(v)",
    "last(v)",
    "any_value(s, true)",
    "max_by(s, k)",
    "min_by(v, k)",
    "max_by(k, v)",
    "max_by(DISTINCT v, k)",
    "min_by(struct(s, v), k)",
    "mode(s)",
    "mode(DISTINCT k)",
    "min(v)",
    "max(v)",
    "max(struct(k, v))",
    "collect_list(v)",
    "collect_list(DISTINCT v)",
    "collect_list(struct(k, v))",
    "collect_set(s)",
    "listagg(s, ',')",
    "listagg(s, ',') WITHIN GROUP (ORDER BY k)",
    "string_agg(s, '') WITHIN GROUP (ORDER BY v DESC)",
    "percentile_disc(0.5) WITHIN GROUP (ORDER BY v)",
    "percentile_cont(0.25) WITHIN GROUP (ORDER BY v DESC)",
    "approx_percentile(v, 0.5)",
]


@pytest.mark.long
@pytest.mark.parametrize("frame", FRAMES)
def test_the_row_at_a_place_of_a_frame(frame: str) -> None:
    listed = ", ".join(f"{f} OVER ({frame}) AS c{i}" for i, f in enumerate(PLACES))
    holds(f"SELECT k, s, {listed} FROM u")


@pytest.mark.long
def test_a_choice_of_a_group() -> None:
    listed = ", ".join(f"{f} AS c{i}" for i, f in enumerate(GROUPED))
    holds(f"SELECT d, {listed} FROM t GROUP BY d", steps=25)


@pytest.mark.long
def test_a_choice_of_a_partition() -> None:
    some = [f for f in GROUPED if "WITHIN" not in f and "DISTINCT" not in f]
    listed = ", ".join(f"{f} OVER (PARTITION BY d) AS c{i}" for i, f in enumerate(some))
    holds(f"SELECT k, {listed}, collect_list(e) OVER (PARTITION BY d ORDER BY k {_WHOLE}) AS x FROM t", steps=25)


_WHOLE = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"


@pytest.mark.long
def test_an_order_by_a_constant_is_none() -> None:
    holds(
        "SELECT k, listagg(s, ',') WITHIN GROUP (ORDER BY upper('a')) AS a, max_by(s, upper('b')) AS b, min_by(s, 1) AS c,"
        " listagg(DISTINCT upper('a'), ',') WITHIN GROUP (ORDER BY upper('a')) AS d, mode(upper('c')) AS e FROM t GROUP BY k"
    )
    holds("SELECT k, first_value(s) OVER (PARTITION BY k ORDER BY upper('a')) AS a FROM t")


@pytest.mark.long
def test_arrays_are_chosen_too() -> None:
    holds(
        "SELECT first_value(xs) OVER (ORDER BY k) AS a, any_value(xs) OVER (PARTITION BY k) AS b,"
        " max_by(xs, n) OVER (PARTITION BY k) AS c, collect_list(xs) OVER (PARTITION BY n) AS e FROM w",
        steps=25,
    )


@pytest.mark.long
def test_extremes_of_a_frame_know_the_sign_of_a_zero() -> None:
    frame = "OVER (PARTITION BY s ORDER BY k RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)"
    holds(f"SELECT k, min(v) {frame} AS a, max(v) {frame} AS b FROM t", steps=30)


def test_sums_share_the_arrangement_of_a_function_that_takes_a_row() -> None:
    over = "OVER (PARTITION BY s ORDER BY k)"
    found = circuit_of(f"SELECT sum(d) {over} AS a, first_value(v) {over} AS b, max(e) {over} AS c FROM t")
    assert labels(found).count("frames") == 1


def test_the_first_of_a_partition_is_kept_as_an_extreme() -> None:
    text = "SELECT k, first_value(s) OVER (PARTITION BY k) AS a, last_value(s) OVER (PARTITION BY k) AS b FROM t"
    assert "frames" not in labels(circuit_of(text))


def test_peers_stay_in_one_frame() -> None:
    plan = determined(plan_of("SELECT first_value(s) OVER (ORDER BY k) AS f FROM t"))
    assert "first(s#2 order by k#1 asc nulls first, s#2 asc nulls first" in plan.dump()
    assert "over (order by k#1 asc nulls first)" in plan.dump()
    assert determined(plan) == plan


def test_a_filter_in_a_function_that_takes_a_row_is_refused() -> None:
    with pytest.raises(HeadwaterError, match="FILTER in the window function first"):
        plan_of("SELECT first(s) FILTER (WHERE k > 1) OVER (PARTITION BY g) AS f FROM u")


def test_the_catalogue_says_how_a_function_depends_on_the_order() -> None:
    used = {name: f.by_order for name, f in AGGREGATES.items() if f.by_order != "no"}
    assert {n for n, f in AGGREGATES.items() if f.kind == "window"} <= set(used)
    assert by_order("first ignore nulls") == "place" and by_order("count") == "no"
