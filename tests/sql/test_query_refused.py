"""Queries that are refused: by name, at their place, with a way out."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headwater.base.errors import ExpressionError, InputError, NotFoundError
from headwater.sql.plan import Scan
from headwater.sql.query import parse_query

from .oracle import run_here

_T = pa.table({"a": pa.array([1, 2], pa.int32()), "b": [3, 4], "s": ["x", "y"], "d": [1.0, 2.0]})
_TABLES = {"t": _T, "u": pa.table({"a": [1], "c": [2]})}


def _parse(text: str, parameters: Any = None) -> object:
    return parse_query(text, lambda name, *_: _TABLES[name].schema, parameters)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("select nosuch(a) from t", "the function nosuch()"),
        ("select a, b from t group by a", "neither grouped nor aggregated"),
        ("select sum(sum(a)) from t", "the aggregate sum() in sum()"),
        ("select a from t where sum(a) > 1", "in WHERE"),
        ("select a from t where row_number() over (order by a) = 1", "in WHERE"),
        ("select rank() from t", "without OVER"),
        ("select rank() over (partition by a) from t", "without ORDER BY"),
        ("select sum(distinct a) over () from t", "DISTINCT in a window"),
        ("select a from t, u", "fits 2 columns"),
        ("select a from t where a in (select a, c from u)", "2 columns"),
        ("select (select a, c from u) from t", "2 columns"),
        ("select a in (select a from u) from t", "inside another expression"),
        ("select a from t where b = 1 or a not in (select a from u)", "inside another expression"),
        ("select a from t where (a, b) in (select a, c from u)", "several columns"),
        ("select a from t union select a, c from u", "1 and 2 columns"),
        ("select a from t union select s from t", "int and string"),
        ("select a from t having a > 1", "HAVING without GROUP BY"),
        ("select a as b, sum(b) as x from t group by a having b > 1", "both a column and an alias"),
        ("select distinct a from t order by b", "SELECT DISTINCT leaves out"),
        ("select a from t order by 3", "ORDER BY 3"),
        ("select a, count(*) from t group by 5", "GROUP BY 5"),
        ("select * from t tablesample (10 percent)", "SAMPLE"),
        ("select * from range(10)", "table function"),
        ("select a from t limit -1", "LIMIT"),
        ("select a from t limit a", "no column"),
        ("select * from t pivot (sum(a) for s in ('x'))", "PIVOT"),
        ("with recursive q as (select 1 as x union all select x + 1 from q where x < 3) select * from q", "RECURSIVE"),
        ("select * from t lateral view parse_url(s, 'HOST') j as x", "parse_url"),
        ("select a from t cluster by a", "CLUSTER"),
        ("select current_date()", "another answer"),
        ("select sum(a) over (order by d range between 1 preceding and current row) from t", "RANGE"),
        ("select x.* from t", "`x.*`"),
        ("select * ", "without FROM"),
        ("insert into t values (1)", "INSERT"),
        ("delete from t", "DELETE"),
        ("select 1 as 'x'", "the place of a name"),
    ],
)
def test_refused(text: str, what: str) -> None:
    with pytest.raises(InputError) as caught:
        _parse(text)
    assert what in caught.value.message
    assert caught.value.hint
    if isinstance(caught.value, ExpressionError):
        assert 'engine="spark"' in caught.value.hint


def test_the_place_is_shown() -> None:
    with pytest.raises(ExpressionError) as caught:
        _parse("select a,\n  nosuch(b)\nfrom t")
    assert caught.value.where == "line 2:   nosuch(b)\n" + " " * 19 + "^"
    with pytest.raises(NotFoundError) as missing:
        _parse("select a, bb from t")
    assert missing.value.where == "select a, bb from t\n" + " " * 19 + "^"
    assert missing.value.hint == "columns: a, b, s, d"
    with pytest.raises(ExpressionError) as broken:
        _parse("select a from t where")
    assert broken.value.code == "E1301" and broken.value.where is not None and "^" in broken.value.where


@pytest.mark.parametrize(
    "value", [1, 2**40, 1.5, Decimal("1.50"), "it's; drop -- /* `x` \"\0", b"\x00a", True, None, date(2024, 1, 1)]
)
def test_parameters_are_constants(value: object) -> None:
    assert run_here("select :v as v", {}, {"v": value})[2] == run_here("select ? as v", {}, [value])[2]
    ((found,),) = run_here("select :v as v", {}, {"v": value})[2]
    expected = {date: 19723, Decimal: "1.50"}.get(type(value), value)
    assert found == expected


def test_parameters_have_to_fit() -> None:
    for text, given in [
        ("select :x", {}),
        ("select ?", []),
        ("select 1", {"x": 1}),
        ("select ?", [1, 2]),
        ("select :x", [1]),
    ]:
        with pytest.raises(InputError):
            _parse(text, given)


def test_time_travel_reaches_the_catalog() -> None:
    asked: list[object] = []

    def catalog(name: str, version: int | None, timestamp: datetime | None) -> pa.Schema:
        asked.append((name, version, timestamp))
        return _T.schema

    plan = parse_query(
        "select x.a from db.t version as of 3 x join db.t timestamp as of '2024-01-31 12:00:00' y on x.a = y.a", catalog
    )
    moment = datetime(2024, 1, 31, 12, tzinfo=UTC)
    assert asked == [("db.t", 3, None), ("db.t", None, moment)]
    assert [s.relation for s in plan.walk() if isinstance(s, Scan)] == ["db.t@3", f"db.t@{moment.isoformat()}"]


def test_an_empty_query_is_none() -> None:
    for text in ("", " ; ", "-- nothing"):
        with pytest.raises(ExpressionError, match="empty"):
            _parse(text)
