"""Random views over random histories equal DuckDB's answer after every step: batches, transactions, restarts, shards."""

from __future__ import annotations

import os

import pytest

from headwater.testing.views import play, random_view

# To build a view costs as much as many steps: every day there are fewer of them, with longer histories.
STEPS = int(os.environ.get("HEADWATER_TEST_STEPS", "40"))
SEEDS = int(os.environ["HEADWATER_TEST_SEEDS"]) * 55 if "HEADWATER_TEST_SEEDS" in os.environ else 55
CHUNK = 11


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
