"""Whatever changes come, the ways that are taken cost no more than a small multiple of the best choice in hindsight."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from headwater.incremental.views.costs import FLOOR_ROWS, Rates

ROWS = 10_000_000
MEASURED = Rates(
    changes_per_second=1e6, fixed_seconds=0.02, full_seconds=20.0, full_rows=ROWS, query_seconds=0.5, query_rows=ROWS
)


def spent(rates: Rates, changes: list[int]) -> float:
    """What following the choices costs."""
    total = 0.0
    for changed in changes:
        choice = rates.choice(changed, ROWS)
        total += {
            "changes": rates.changes_seconds(changed),
            "query": rates.queried_seconds(ROWS),
            "build": rates.anew_seconds(ROWS),
        }[choice.way]
        rates = replace(rates, stateless=choice.way == "query", lost_seconds=choice.lost_seconds)
    return total


def best(rates: Rates, changes: list[int]) -> float:
    """What it costs whoever knows all of them."""
    state, none = 0.0, math.inf
    query, build = rates.queried_seconds(ROWS), rates.anew_seconds(ROWS)
    for changed in changes:
        follow = rates.changes_seconds(changed)
        state, none = min(state + min(follow, build), none + build), min(state, none) + query
    return min(state, none)


def histories() -> list[list[int]]:
    rng = random.Random(6)

    def small() -> int:
        return rng.randint(1, 20_000)

    def large() -> int:
        return rng.randint(FLOOR_ROWS, 9_000_000)

    found = [[large() for _ in range(200)], [small() for _ in range(500)], [60_000_000] * 3]
    found += [[large() if rng.random() < share else small() for _ in range(400)] for share in (0.02, 0.1, 0.5, 0.9)]
    found += [[large() if (n // length) % 2 else small() for n in range(600)] for length in (3, 10, 50)]
    return found


@pytest.mark.parametrize("number", range(10))
def test_the_choice_is_never_much_worse_than_the_best_in_hindsight(number: int) -> None:
    changes = histories()[number]
    assert spent(MEASURED, changes) <= 3 * best(MEASURED, changes) + 2 * MEASURED.full_seconds


def test_small_changes_are_followed_and_large_ones_too_until_they_have_cost_a_state() -> None:
    assert {MEASURED.choice(n, ROWS).way for n in (1, 99_999, 1_000_000, 10_000_000)} == {"changes"}
    assert MEASURED.choice(30_000_000, ROWS).way == "build"
    assert replace(MEASURED, lost_seconds=1.0).choice(30_000_000, ROWS).way == "query"
    assert replace(MEASURED, lost_seconds=19.8).choice(1_000_000, ROWS).way == "query"
    assert replace(MEASURED, lost_seconds=19.8).choice(99_999, ROWS).way == "changes"
    assert replace(MEASURED, stateless=True).choice(5, ROWS).way == "query"
    assert replace(MEASURED, stateless=True, lost_seconds=19.9).choice(5, ROWS).way == "build"


def test_what_is_measured_moves_the_crossover() -> None:
    assert MEASURED.crossover(ROWS) == 480_000
    quick = MEASURED.after_changes(2_000_000, 0.52)
    assert quick.changes_per_second == pytest.approx(2.5e6) and quick.crossover(ROWS) > 1_000_000
    assert MEASURED.after_changes(10, 0.04).fixed_seconds == pytest.approx(0.03)
    assert MEASURED.after_query(ROWS, 2.0).crossover(ROWS) == 1_980_000
    assert Rates(**MEASURED.to_json()) == MEASURED


def test_a_small_build_says_little_of_a_large_one() -> None:
    tiny = Rates().after_full(1, 0.2).after_query(1, 0.05)
    assert tiny.anew_seconds(300_000) < 3 and tiny.queried_seconds(300_000) < 0.1
    some = Rates().after_full(2_000, 0.3)
    assert 1 < some.anew_seconds(300_000) < 3
    assert MEASURED.after_full(5, 0.2).anew_seconds(ROWS) == MEASURED.anew_seconds(ROWS) == pytest.approx(20.0)
    assert MEASURED.after_query(5, 0.2).queried_seconds(ROWS) == pytest.approx(0.5)
