"""Views of how long something took: compared, summed up, and not stored as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater as hw
from headwater.base.errors import ExpressionError, SchemaError


def test_a_view_of_what_took_long(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    lake.sql("CREATE TABLE o(id INT, placed TIMESTAMP, paid TIMESTAMP, day DATE, due DATE)")
    start = "TIMESTAMP '2024-01-01 00:00:00'"
    row = "({0}, {1}, {1} + INTERVAL '{2}' HOUR, DATE '2024-01-01', DATE '2024-01-01' + INTERVAL '{0}' DAY)"
    lake.sql("INSERT INTO o SELECT * FROM VALUES " + ", ".join(row.format(i, start, 23 + i) for i in range(3)))
    quick = lake.view("quick", "SELECT id FROM o WHERE paid - placed < INTERVAL '1' DAY")
    late = lake.view("late", "SELECT count(*) AS n FROM o WHERE due - day BETWEEN INTERVAL '1' DAY AND INTERVAL 3 DAYS")
    quick.refresh()
    late.refresh()
    assert quick.to_pylist() == [{"id": 0}] and late.to_pylist() == [{"n": 2}]
    lake.sql("UPDATE o SET paid = placed WHERE id = 2")
    lake.sql("DELETE FROM o WHERE id = 1")
    for view in (quick, late):
        assert view.refresh().mode == "incremental"
        assert view.verify().equal
    assert sorted(r["id"] for r in quick.to_pylist()) == [0, 2] and late.to_pylist() == [{"n": 1}]


def _orders(tmp_path: Path) -> hw.Lake:
    lake = hw.connect(tmp_path)
    lake.sql("CREATE TABLE o(shop STRING, placed TIMESTAMP, paid TIMESTAMP, n INT)")
    return lake


def test_a_view_of_how_long_it_took(tmp_path: Path) -> None:
    lake = _orders(tmp_path)
    query = "SELECT shop, cast(avg(paid - placed) AS bigint) AS seconds, extract(HOUR FROM max(paid - placed)) AS hours FROM o GROUP BY shop"
    view = lake.view("took", query)
    row = "('{0}', TIMESTAMP '2024-01-01 00:00:00', TIMESTAMP '2024-01-01 00:00:00' + INTERVAL 1 MINUTE * {1}, {1})"
    lake.sql("INSERT INTO o SELECT * FROM VALUES " + ", ".join(row.format("ab"[i % 2], 30 * i) for i in range(6)))
    view.refresh()
    by_shop = sorted(view.to_pylist(), key=lambda r: r["shop"])
    assert by_shop == [{"shop": "a", "seconds": 3600, "hours": 2}, {"shop": "b", "seconds": 5400, "hours": 2}]
    lake.sql("DELETE FROM o WHERE n >= 120")
    assert view.refresh().mode == "incremental" and view.verify().equal
    assert {r["shop"]: r["seconds"] for r in view.to_pylist()} == {"a": 1800, "b": 3600}


def test_a_table_holds_no_intervals(tmp_path: Path) -> None:
    lake = _orders(tmp_path)
    with pytest.raises(SchemaError) as caught:
        lake.view("took", "SELECT shop, paid - placed AS took FROM o")
    assert caught.value.code == "E1213" and "`took`" in caught.value.message
    assert "CAST(… AS BIGINT)" in str(caught.value.hint)


def test_a_length_that_does_not_fit_stops_a_refresh(tmp_path: Path) -> None:
    lake = _orders(tmp_path)
    view = lake.view("far", "SELECT cast((paid - placed) * n AS bigint) AS far FROM o")
    lake.sql("INSERT INTO o VALUES ('a', TIMESTAMP '0001-01-01 00:00:00', TIMESTAMP '9999-01-01 00:00:00', 1000000)")
    with pytest.raises(ExpressionError, match="overflow") as caught:
        view.refresh()
    assert caught.value.code == "E1303"
