"""Joins of all kinds, on columns, expressions, nulls that match, and conditions beside the key."""

from __future__ import annotations

import pytest

from .views import circuit_of, holds, labels

KINDS = ["INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI"]
CONDITIONS = [
    "t.k = u.k",
    "t.k + 1 = u.k AND t.s = upper(u.s)",
    "t.k <=> u.k",
    "t.k <=> u.k AND t.s = u.s",
    "t.k = u.k AND t.d > u.d",
    "t.k < u.k",
    "TRUE",
    "t.v = CAST(u.n AS DOUBLE) AND (u.g OR t.s IS NULL)",
]


@pytest.mark.long
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_join_equals_a_recomputation(kind: str, condition: str) -> None:
    mine = "t.k AS a, t.s AS b, t.v AS c"
    theirs = "" if kind in ("LEFT SEMI", "LEFT ANTI") else ", u.k AS d, u.n AS e"
    holds(f"SELECT {mine}{theirs} FROM t {kind} JOIN u ON {condition}", steps=8)


@pytest.mark.long
def test_a_cross_join_and_a_join_of_three() -> None:
    holds("SELECT t.k AS a, u.n AS b FROM t CROSS JOIN u")
    holds("SELECT t.k AS a, u.n AS b, w.e AS c FROM t, u, w WHERE t.k = u.k AND u.n = w.n")


def test_two_joins_by_one_key_share_their_state() -> None:
    text = "SELECT t.k AS a, u.n AS b FROM t JOIN u ON t.k = u.k UNION ALL SELECT t.k, u.n FROM t JOIN u ON t.k = u.k"
    found = labels(circuit_of(text))
    assert found.count("join") == 1
    assert found.count("arrange") == 2


def test_columns_that_nobody_reads_are_not_kept() -> None:
    circuit = circuit_of("SELECT count(*) AS n FROM t JOIN u ON t.k = u.k")
    kept = [v.layout.names for v in circuit.vertices if v.node.label == "arrange"]
    assert kept == [["k"], ["k"]]
