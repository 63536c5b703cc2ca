"""UNION, INTERSECT and EXCEPT, of sets and of multisets, and DISTINCT."""

from __future__ import annotations

import pytest

from .views import holds


@pytest.mark.long
@pytest.mark.parametrize("word", ["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"])
def test_a_set_operation_equals_a_recomputation(word: str) -> None:
    holds(f"SELECT k, s FROM t {word} SELECT k, s FROM u")
    holds(f"SELECT v, k FROM t {word} SELECT v, k FROM w")


@pytest.mark.long
def test_of_three_and_of_one_with_itself() -> None:
    holds("SELECT k FROM t UNION SELECT k FROM u EXCEPT SELECT k FROM w")
    holds("SELECT k FROM t UNION ALL SELECT k FROM t")


@pytest.mark.long
def test_distinct() -> None:
    holds("SELECT DISTINCT v, s FROM t")
    holds("SELECT count(*) AS n FROM (SELECT DISTINCT k, s FROM t)")
