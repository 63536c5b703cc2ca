"""Views that compare how long something took with an interval."""

from __future__ import annotations

from pathlib import Path

import headwater as hw


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
    assert quick.read().to_pylist() == [{"id": 0}] and late.read().to_pylist() == [{"n": 2}]
    lake.sql("UPDATE o SET paid = placed WHERE id = 2")
    lake.sql("DELETE FROM o WHERE id = 1")
    for view in (quick, late):
        assert view.refresh().mode == "incremental"
        assert view.verify().equal
    assert sorted(r["id"] for r in quick.read().to_pylist()) == [0, 2] and late.read().to_pylist() == [{"n": 1}]
