"""Random views over random histories equal DuckDB's answer after every step: batches, transactions, restarts, shards."""

from __future__ import annotations

import os
import re

import pytest

from headwater.sql.functions.catalogue import AGGREGATES
from headwater.testing.views import is_determined, play, random_view

# To build a view costs as much as many steps: every day there are fewer of them, with longer histories.
STEPS = int(os.environ.get("HEADWATER_TEST_STEPS", "16"))
SEEDS = int(os.environ["HEADWATER_TEST_SEEDS"]) * 55 if "HEADWATER_TEST_SEEDS" in os.environ else 45
CHUNK = 9
_INSIDE = r"(?:[^()]|\([^()]*\))*"


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_random_views_equal_a_recomputation(first: int) -> None:
    played = [play(seed, steps=STEPS) for seed in range(first, min(first + CHUNK, SEEDS))]
    kept = [n for n in played if n is not None]
    # Few are refused, or the oracle would say nothing.
    assert sum(kept) >= 0.9 * STEPS * len(played)


def test_random_views_are_of_many_kinds() -> None:
    texts = [random_view(seed) for seed in range(SEEDS)]
    words = [
        "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI", "LEFT ANTI", "CROSS JOIN", "<=>", "ROLLUP", "CUBE",
        "GROUPING SETS", "HAVING", "DISTINCT", "UNION ALL", "EXCEPT", "INTERSECT", "EXISTS", "NOT IN", "WITH c AS",
        "OVER", "QUALIFY", "LIMIT", "OFFSET", "explode", "FILTER", "VALUES",
    ]  # fmt: skip
    assert [w for w in words if not any(w in t for t in texts)] == []


@pytest.mark.long
def test_random_views_have_every_function_that_depends_on_the_order_of_rows() -> None:
    texts = " ".join(random_view(seed) for seed in range(3_000))
    named = [n for n, f in AGGREGATES.items() if f.by_order != "no"]
    assert len(named) > 20
    assert [n for n in named if not re.search(rf"\b{n}\(", texts)] == []
    for name in ("any_value", "first", "first_value", "last", "last_value", "nth_value"):
        over = re.findall(rf"\b{name}\({_INSIDE}\)(?: IGNORE NULLS)? OVER \(({_INSIDE})\)", texts)
        frames = {
            next((w for w in ("ROWS", "RANGE") if f"{w} BETWEEN" in frame), "ORDER" * ("ORDER" in frame))
            for frame in over
        }
        assert frames == {"", "ORDER", "RANGE", "ROWS"}, name
        assert re.search(rf"\b{name}\({_INSIDE}\) IGNORE NULLS OVER", texts), name


@pytest.mark.long
def test_spark_is_asked_about_functions_that_depend_on_the_order_of_rows() -> None:
    # Where ties are of rows that are the same, or the value is that of the order, there is one answer.
    missing = {"first_value", "lag", "max_by", "listagg"}
    for sql in map(random_view, range(5_000, 8_000)):
        found = {name for name in missing if re.search(rf"\b{name}\(", sql)}
        if found and is_determined(sql):
            missing -= found
        if not missing:
            return
    raise AssertionError(missing)
