"""Where aggregates stand in a text, and texts with others in their place."""

from __future__ import annotations

import pytest

from headwater.base.errors import UnsupportedError
from headwater.timeseries.aggregate_calls import by_key, calls_in, names_in, over


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("sum(a)", [("sum", ("a",))]),
        ("Sum ( a + (b) ) -- sum(c)\n / count(*)", [("sum", ("a + (b)",)), ("count", ("*",))]),
        ("`sum`(a) + s.max(b)", []),
        ("concat('sum(a)', max(b))", [("max", ("b",))]),
        ("max_by(a, b)", [("max_by", ("a", "b"))]),
        ("count(DISTINCT a, b)", [("count", ("a", "b"))]),
        ("percentile(f(a, b), array(0.1, 0.2))", [("percentile", ("f(a, b)", "array(0.1, 0.2)"))]),
        ("sum(a", [("sum", ("a",))]),
        ("a + 1", []),
        ("", []),
    ],
)
def test_calls(text: str, found: list[tuple[str, tuple[str, ...]]]) -> None:
    calls = calls_in(text)
    if text == "sum(a":
        # The reader refuses it; here it only must not fail.
        assert [c.function for c in calls] == ["sum"]
    else:
        assert [(c.function, c.arguments) for c in calls] == found


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("first(a)", "min_by(a, k)"),
        ("first_value(a) RESPECT NULLS", "min_by(a, k)"),
        ("last(a, false)", "max_by(a, k)"),
        ("any_value(a) IGNORE NULLS", "min_by(a, CASE WHEN (a) IS NOT NULL THEN k END)"),
        ("last(a IGNORE NULLS)", "max_by(a, CASE WHEN (a) IS NOT NULL THEN k END)"),
        ("first(a) FILTER (WHERE b > 0) + sum(c)", "min_by(a, k) FILTER (WHERE b > 0) + sum(c)"),
        (
            "array_agg(a)",
            "transform(sort_array(collect_list(CASE WHEN (a) IS NOT NULL THEN named_struct('k', k, 'v', a) END)), e -> e.v)",
        ),
    ],
)
def test_by_key(text: str, spoken: str) -> None:
    assert by_key(text, "k") == spoken


def test_over() -> None:
    assert over("sum(a) FILTER (WHERE b) / 2", "ORDER BY t") == "sum(a) FILTER (WHERE b) OVER (ORDER BY t) / 2"
    assert over("first(a)", "ORDER BY t") == "first(a) OVER (ORDER BY t)"
    with pytest.raises(UnsupportedError, match="order"):
        over("listagg(a, ',')", "ORDER BY t")


def test_names() -> None:
    columns = ["a", "B", "c d"]
    assert list(names_in("sum(b) + max(`c d`)", columns)) == ["B", "c d"]
    assert list(names_in("count(*) + max(2 * a)", columns)) == ["a"]
    assert list(names_in("count(struct(*))", columns)) == columns
