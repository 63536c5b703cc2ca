"""Aggregates that may choose give one answer, in a circuit as in a recomputation."""

from __future__ import annotations

import pytest

from headwater.incremental.planning import determined

from .views import holds, plan_of


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    [
        "SELECT k, first(s) AS a, last(d) AS b, any_value(e) AS c FROM t GROUP BY k",
        "SELECT first(s, TRUE) AS a, last(s, TRUE) AS b FROM t",
        "SELECT k, collect_list(s) AS a, collect_set(e) AS b FROM t GROUP BY k HAVING size(collect_list(s)) > 0",
        "SELECT listagg(s, '+') AS a, listagg(DISTINCT s, ',') AS b FROM t",
        "SELECT s, first(k) AS f, collect_list(k) AS l FROM t GROUP BY ROLLUP(s)",
    ],
)
def test_a_choice_equals_that_of_a_recomputation(text: str) -> None:
    holds(text)


def test_to_choose_twice_changes_nothing() -> None:
    once = determined(plan_of("SELECT first(k) AS a, collect_list(k) AS b, listagg(s, ',') AS c FROM t"))
    assert determined(once) == once
