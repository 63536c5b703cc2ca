"""Parameters: each ``?`` gets the value of its place in the text, wherever a query is read first."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from headwater.base.errors import ExpressionError, InputError
from headwater.lakehouse import Lake


@pytest.mark.parametrize(
    ("text", "values", "rows"),
    [
        ("SELECT ? AS a, b FROM (SELECT ? AS b)", [1, 2], [(1, 2)]),
        ("SELECT ? AS a FROM VALUES (1), (2) AS v(x) WHERE x = ?", ["a", 2], [("a",)]),
        ("WITH q AS (SELECT ? AS x) SELECT ? AS y, x FROM q", [1, 2], [(2, 1)]),
        ("SELECT x, ? AS k FROM VALUES (?), (?) AS v(x) ORDER BY x * ? LIMIT ?", ["k", 1, 2, -1, 1], [(2, "k")]),
        ("SELECT ? AS a, (SELECT ?) AS b, CASE WHEN ? THEN ? ELSE ? END AS c", [1, 2, False, 3, 4], [(1, 2, 4)]),
        ("SELECT sum(x + ?) AS s FROM VALUES (1), (2) AS v(x) GROUP BY x % ? HAVING count(*) > ?", [10, 1, 1], [(23,)]),
        ("SELECT '?' AS a, ? AS b -- ?\n, `?` AS c FROM (SELECT 7 AS `?`)", [1], [("?", 1, 7)]),
        ("SELECT ? AS a UNION ALL SELECT ?", [1, 2], [(1,), (2,)]),
    ],
)
def test_question_marks_in_their_order(
    lake: Lake, text: str, values: list[object], rows: list[tuple[object, ...]]
) -> None:
    assert lake.sql(text, parameters=values).to_tuples() == rows


def test_in_every_part_of_a_statement(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (a INT, b STRING); INSERT INTO t VALUES (?, ?), (?, ?)", parameters=[1, "x", 2, "y"])
    lake.sql("UPDATE t SET b = concat(?, b, ?), a = a + ? WHERE b = ?", parameters=["<", ">", 10, "x"])
    assert sorted(lake.sql("SELECT * FROM t").to_tuples()) == [(2, "y"), (11, "<x>")]
    lake.sql("UPDATE t SET b = ?, a = (SELECT max(a) + ? FROM t WHERE a < ?) WHERE a > ?", parameters=["z", 5, 10, 10])
    assert sorted(lake.sql("SELECT * FROM t").to_tuples()) == [(2, "y"), (7, "z")]
    lake.sql(
        "MERGE INTO t USING (SELECT ? AS k) AS s ON t.a = s.k + ? WHEN MATCHED AND t.b = ? THEN UPDATE SET b = ? "
        "WHEN NOT MATCHED THEN INSERT (a, b) VALUES (?, ?)",
        parameters=[1, 1, "y", "matched", 0, "never"],
    )
    assert sorted(lake.sql("SELECT * FROM t").to_tuples()) == [(2, "matched"), (7, "z")]


def test_every_type_of_value(lake: Lake) -> None:
    at = datetime(2024, 1, 31, 12, 30, 15, 123456, tzinfo=UTC)
    values = {
        "i": 2**40,
        "d": Decimal("1.50"),
        "f": 0.1,
        "s": "s",
        "b": b"\x00\xff",
        "day": date(2024, 2, 29),
        "at": at,
    }
    values |= {"n": None, "t": True, "wall": at.replace(tzinfo=None)}
    text = "SELECT " + ", ".join(f":{name} AS {name}" for name in values)
    assert lake.sql(text, parameters=values).to_pylist() == [values]


def test_what_is_wrong_with_them(lake: Lake) -> None:
    for text, parameters in (("SELECT :a", None), ("SELECT ?", None), ("SELECT :a", {"b": 1}), ("SELECT ?, ?", [1])):
        with pytest.raises(ExpressionError):
            lake.sql(text, parameters=parameters)
    for text, given in (
        ("SELECT 1", {"a": 1}),
        ("SELECT ?", [1, 2]),
        ("SELECT :a", {"a": object()}),
        ("SELECT ?", [2**70]),
    ):
        with pytest.raises(InputError):
            lake.sql(text, parameters=given)
