"""What cannot be kept up to date is refused with the reason, the place and a hint."""

from __future__ import annotations

import pytest

from headwater.base.errors import UnsupportedError
from headwater.incremental.planning import check
from headwater.sql.plan import Scan

from .views import plan_of


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("SELECT current_date() AS d FROM t", "current_date"),
        ("SELECT k FROM t WHERE e < CURRENT_DATE", "CURRENT_DATE"),
        ("SELECT now() AS d, /* now() */ 'now()' AS s FROM t", "now"),
        ("SELECT k FROM t LIMIT 3", "LIMIT"),
        ("SELECT k FROM (SELECT k FROM t LIMIT 3) WHERE k > 1", "LIMIT"),
        ("SELECT k FROM t VERSION AS OF 3", "VERSION"),
        ("SELECT k FROM t WHERE k IN (SELECT k FROM u LIMIT 2)", "LIMIT"),
    ],
)
def test_the_place_is_shown(text: str, place: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        check(plan_of(text), text)
    error = caught.value
    assert error.code == "E3007"
    assert error.position == text.index(place)
    assert error.hint
    assert text in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k FROM t ORDER BY k LIMIT 3",
        "SELECT count(*) AS n FROM t LIMIT 1",
        "SELECT 1 AS x LIMIT 5",
        "SELECT k AS now, s AS rand FROM t",
        "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k LIMIT 1)",
        "SELECT 'current_date()' AS x FROM t -- now()",
        "SELECT k FROM t ORDER BY k LIMIT 0",
    ],
)
def test_what_is_determined_passes(text: str) -> None:
    check(plan_of(text), text)


def test_any_rows_may_be_allowed() -> None:
    check(plan_of("SELECT k FROM t LIMIT 3"), "SELECT k FROM t LIMIT 3", any_rows=True)


def test_table_functions_have_no_changes() -> None:
    text = "SELECT * FROM table_changes('t', 1)"
    with pytest.raises(UnsupportedError, match="no changes to follow"):
        check(Scan("table_changes", None, None, (), ((None, "t"), (None, 1))), text)
