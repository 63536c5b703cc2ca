"""Joins by an interval: the pairs of a slice, whichever side the point is on."""

from __future__ import annotations

import pytest

from .views import circuit_of, holds, labels

CONDITIONS = [
    "t.k BETWEEN w.k AND w.k + 2",
    "w.n >= u.n AND w.n < u.n + 3",
    "t.e BETWEEN w.e AND date_add(w.e, 2) AND t.s IS NOT NULL",
    "t.k = w.k AND w.e > t.e AND w.e <= last_day(t.e)",
]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_join_by_an_interval_equals_a_recomputation(condition: str, kind: str) -> None:
    left = "u" if "u." in condition else "t"
    theirs = "" if "SEMI" in kind or "ANTI" in kind else ", w.n AS c, w.e AS d"
    text = f"SELECT {left}.k AS a, {left}.s AS b{theirs} FROM {left} {kind} JOIN w ON {condition}"
    assert any("interval" in one for one in labels(circuit_of(text)))
    holds(text, steps=8)


def test_a_bound_on_one_side_only_is_a_condition() -> None:
    assert not any("interval" in one for one in labels(circuit_of("SELECT t.s FROM t JOIN w ON t.e > w.e")))
