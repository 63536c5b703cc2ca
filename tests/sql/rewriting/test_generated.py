"""Generated subqueries of every shape: the rewritten plans give the rows of the plan as it was read."""

from __future__ import annotations

import os

import pytest

from headwater.sql.rewriting import decorrelated, prepared

from .oracle import connected, differences, read
from .shapes import Shapes, tables

_SEEDS = int(os.environ.get("HEADWATER_TEST_SEEDS", "1")) * 60
_PORTION = 20


@pytest.mark.long
@pytest.mark.parametrize("start", range(0, _SEEDS, _PORTION))
def test_the_rows_stay_the_same(start: int) -> None:
    rules = {"decorrelated": decorrelated, "prepared": prepared}
    found = []
    known = tables(start // _PORTION)
    with connected(known) as con:
        for seed in range(start, min(start + _PORTION, _SEEDS)):
            found += differences(Shapes(seed).query(), known, rules, con)
    assert not found, found[0]


@pytest.mark.long
def test_the_family_is_a_wide_one() -> None:
    texts = [Shapes(seed).query() for seed in range(_PORTION * 8)]
    words = (
        "NOT IN",
        " IN ",
        "NOT EXISTS",
        "LIMIT",
        "UNION",
        "EXCEPT",
        "HAVING",
        "DISTINCT",
        "FULL",
        " OR ",
        "OVER",
        "<=>",
    )
    assert [w for w in words if sum(w in t for t in texts) < 5] == []
    assert sum(t.count("SELECT") > 3 for t in texts) > 30
    assert len({read(t, tables(0)).dump() for t in texts}) > 150
