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
        ("select a from t where struct(a) in (select struct(a) from u)", "IN of struct"),
        ("select a from t union select s from t", "int and string"),
        (
            "select count(*) as a from t group by a qualify a > 1 and rank() over (order by 1) = 1",
            "both a column and an alias",
        ),
        ("select * from t tablesample (10 percent)", "SAMPLE"),
        ("select * from t lateral view parse_url(s, 'HOST') j as x", "parse_url"),
        ("select sum(a) over (order by s range between 1 preceding and current row) from t", "RANGE"),
    ],
)
def test_refused(text: str, what: str) -> None:
    with pytest.raises(InputError) as caught:
        _parse(text)
    assert what in caught.value.message
    assert caught.value.hint
    if isinstance(caught.value, ExpressionError):
        assert 'engine="spark"' in caught.value.hint


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("select nosuch(a) from t", "no function nosuch()"),
        ("select a, b from t group by a", "`b` is neither grouped nor aggregated"),
        ("select a from t having a > 1", "`a` is neither grouped nor aggregated"),
        ("select a, b from t group by (a, b)", "`a` is neither grouped nor aggregated"),
        ("select a from t group by a having exists (select 1 from u where u.a = t.b)", "`b` is neither grouped"),
        ("select a from t order by a sort by a", "exclude each other"),
        ("select a from t where a = any (select a from u)", "`ANY (SELECT …)` is not Spark SQL"),
        ("select date'2024-01-01' '0'", "one string behind its type"),
        ("select sum(sum(a)) from t", "the aggregate sum() cannot stand in sum()"),
        ("select a from t where sum(a) > 1", "cannot stand in WHERE"),
        ("select a from t where row_number() over (order by a) = 1", "cannot stand in WHERE"),
        ("select rank() from t", "needs OVER"),
        ("select rank() over (partition by a) from t", "needs an ORDER BY"),
        ("select sum(distinct a) over () from t", "DISTINCT cannot stand in a window"),
        ("select a from t where a in (select a, c from u)", "2 columns"),
        ("select (select a, c from u) from t", "2 columns"),
        ("select a from t union select a, c from u", "1 and 2 columns"),
        ("select distinct a from t order by b", "SELECT DISTINCT leaves out"),
        ("select a from t order by 3", "ORDER BY 3 names no column"),
        ("select a, count(*) from t group by 5", "GROUP BY 5 names no column"),
        ("select a from t limit -1", "LIMIT takes a constant"),
        ("select a from t limit a", "LIMIT takes a constant"),
        ("select x.* from t", "`x.*` means no table"),
        ("select * ", "no FROM that `*` could mean"),
        ("insert into t values (1)", "INSERT is no query"),
        ("delete from t", "DELETE is no query"),
        ("select 1 as 'x'", "the place of a name"),
        ("select a from t where a", "a WHERE of type int is no condition"),
        ("select a from t where not a", "condition of type int is no boolean"),
        ("select cast('x' as int)", "the text 'x' as int has no meaning"),
        ("select date '2024-13-01'", "'2024-13-01' as date has no meaning"),
        ("select 300Y", "300 as tinyint is out of range"),
        ("select a.x from t", "asks for a field of a value of type int"),
        ("select a from t version as of -1", "a version is a whole number"),
        ("select a from t version as of 0 + 1", "a version is a whole number"),
        ("select a from t for update", "FOR UPDATE is not Spark SQL"),
        ("select a from t with (nolock)", "is not Spark SQL"),
        ("select distinct on (a) a from t", "DISTINCT ON is not Spark SQL"),
        ("select a from t connect by a = 1", "CONNECT BY is not Spark SQL"),
        ("select a into x from t", "INTO is not Spark SQL"),
        ("select a from t fetch first 1 rows only", "FETCH is not Spark SQL"),
        ("select a from t union by name select a from t", "BY NAME is not Spark SQL"),
        ("select a from t natural join u on true", "NATURAL JOIN has no condition"),
        ("select a from t left inner join u on true", "no join of this kind"),
        ("select * from values (1), (2, 3)", "different lengths"),
        ("select * from t as x(p)", "1 column names are given for"),
        ("select count() from t", "count() needs an argument"),
        ("select sum(a) over (order by a groups 1 preceding) from t", "ROWS or RANGE"),
        ("select sum(a) over w from t", "no window `w`"),
        ("select explode(a) from t", "explode() cannot take int"),
        ("select current_date(1)", "takes no arguments"),
        ("select * from range(0, 5, 0)", "never ends"),
    ],
)
def test_what_spark_refuses_too_is_a_plain_error(text: str, what: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        _parse(text)
    assert caught.value.code == "E1311"
    assert what in caught.value.message
    assert "Spark's rows" not in str(caught.value)
    assert caught.value.hint and not caught.value.hint.endswith(', or run the query with engine="spark"')


def test_a_name_that_fits_two_columns_shows_both() -> None:
    with pytest.raises(NotFoundError) as caught:
        _parse("select a from t, u")
    assert caught.value.code == "E1110"
    assert "t.a, u.a" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("select a, s from t limit -1", "limit"),
        ("select a, s from t group by a", "s from"),
        ("select a, max(s), s + 1 from t group by a", "s + 1"),
        ("select a, s from t order by s, 9", "9"),
        ("select a, s from t for update", "for update"),
        ("select a, s from t tablesample (10 percent)", "10"),
        ("select a, s from t order by a where a = 1", "order"),
    ],
)
def test_the_caret_stands_at_the_clause(text: str, at: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        _parse(text)
    assert caught.value.position == text.index(at)


def test_hints_are_sentences() -> None:
    with pytest.raises(ExpressionError) as caught:
        _parse("select flor(a) from t")
    assert caught.value.hint is not None
    assert "did you mean `floor`? If" in caught.value.hint
    made = ExpressionError.refused("x", "this", "did you mean `that`?")
    assert made.hint == 'did you mean `that`? Or run the query with engine="spark"'
    assert (
        ExpressionError.refused("x", "this", "leave it out").hint
        == 'leave it out, or run the query with engine="spark"'
    )


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
