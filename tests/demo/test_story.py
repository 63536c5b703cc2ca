"""Every act of the demo holds, its numbers are the planted ones, and a wrong truth is noticed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import headwater as hw
from headwater.demo import knowing, payments
from headwater.demo.story import _Story, tell


def test_payments_are_the_same_every_time() -> None:
    one, two = payments.make(2_000, late=50, corrections=20), payments.make(2_000, late=50, corrections=20)
    assert one.transactions.equals(two.transactions)
    assert one.change.equals(two.change)
    assert one.truth == two.truth


@pytest.mark.spark
def test_every_act_holds(spark: Any, tmp_path: Path) -> None:
    acts = list(tell(hw.connect(tmp_path, spark=spark), lambda: spark))
    assert [a.title for a in acts if not a.holds] == []
    build, late, travel, change, _forget, optimize, skip, mistake, follow, view, agree, know, log, export, *rest = acts
    answer, find, spot = rest
    assert build.facts["payments"] == 50_000
    assert (late.facts["late payments"], late.facts["corrected payments"]) == (1_000, 300)
    assert travel.grid is not None
    assert sum(row[1] for row in travel.grid.rows) == 300
    assert (change.facts["rows out (weight -1)"], change.facts["rows in (weight +1)"]) == (300, 1_300)
    assert optimize.facts["rows changed"] == 0
    assert "(29 skipped)" in skip.facts["it reads"]
    assert mistake.facts["rows that differ"] == 0
    assert follow.facts["rows at first"] == 50_000
    assert 0 < follow.facts["rows it changed"] <= 5 * 2 * len(payments.MERCHANTS)
    assert (view.facts["how it was refreshed"], view.facts["its rows that changed"]) == ("incremental", 2)
    rows = view.facts["rows of the view"]
    assert view.facts["verified"] == f"equal at customers@0 transactions@6 ({rows:,} rows)"
    assert agree.grid is not None
    assert [row[0] for row in agree.grid.rows] == sorted(payments.MERCHANTS)
    assert 900 < know.facts["of them days late"] <= 1_000
    assert know.facts["payments"] == sum(row[1] for row in agree_rows(tmp_path))
    assert know.grid is not None
    assert [row[0] for row in know.grid.rows] == ["CHF", "CZK", "EUR", "JPY"]
    assert log.grid is not None
    assert [r[1] for r in log.grid.rows[:2]] == ["UPDATE", "RESTORE"]
    assert (export.facts["refreshed first"], export.facts["how"]) == ("spend", "incremental")
    assert all(a.sql for a in acts[1:])
    assert log.as_dict()["sql"] == "DESCRIBE HISTORY transactions"
    assert answer.facts["refreshed first"] == "spend" and answer.facts["its rows that changed"] == 1
    assert answer.grid is not None and len(answer.grid.rows) == 2
    assert (spot.facts["found at first"], spot.facts["after a late row"]) == (5, 6)
    assert (find.facts["found"], find.facts["after a correction"], find.facts["after a note was deleted"]) == (7, 6, 5)


def agree_rows(path: Path) -> list[tuple[Any, ...]]:
    return hw.connect(path).sql("SELECT merchant, count(*) FROM transactions GROUP BY merchant").to_tuples()


@pytest.mark.spark
def test_a_wrong_rate_or_a_wrong_day_is_noticed(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = hw.connect(tmp_path, spark=spark)
    rows = payments.make(2_000, late=50, corrections=20).transactions
    lake.write("transactions", rows)
    known = knowing.know(lake, set())
    assert (known.rates_hold, known.days_hold, known.late) == (True, True, 0)
    assert "with all 744 rows of the other side in each task" in known.plan
    assert known.by_currency == _euros(rows)
    truth, found = lake.table("transactions").to_arrow(), lake.table("features").to_arrow()
    truth, found = (t.sort_by("transaction_id") for t in (truth, found))
    later = truth.set_column(3, "paid_at", pc.add(truth["paid_at"], pa.scalar(timedelta(hours=3))))
    assert not knowing._rates_hold(found, later)
    more = found.set_column(found.schema.get_field_index("spent"), "spent", pc.add(found["spent"], 1))
    assert not knowing._days_hold(more, truth)
    monkeypatch.setattr(knowing, "STEP", 2 * 3600)
    assert not knowing._rates_hold(found, truth)


def _euros(rows: pa.Table) -> list[tuple[str, int, int]]:
    """Row by row, with the last rate before each payment looked for among all of them."""
    by_currency: dict[str, tuple[int, int]] = {}
    rates = knowing.planted_rates().to_pylist()
    for row in rows.to_pylist():
        currency = knowing.CURRENCIES.get(row["merchant"], ("EUR", 0))[0]
        before = [r for r in rates if r["currency"] == currency and r["known_at"] <= row["paid_at"]]
        rate = max(before, key=lambda r: r["known_at"])["rate"] if before else 0
        count, total = by_currency.get(currency, (0, 0))
        by_currency[currency] = count + 1, total + rate * row["cents"]
    return [(c, n, total // 1_000_000) for c, (n, total) in sorted(by_currency.items())]


@pytest.mark.long
def test_a_wrong_truth_does_not_hold(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    story = _Story(lake, lambda: pytest.fail("these acts need no Spark"))
    feed = {"delta.enableChangeDataFeed": "true"}
    lake.write("transactions", story.rows.transactions, partition_by=["day"], properties=feed)
    right = story.truth
    story.truth = replace(right, corrections=299)
    assert not story.late().holds
    assert not story.travel().holds
    story.truth = replace(right, correction_cents=right.correction_cents + 1)
    assert not story.travel().holds
    assert not story.change().holds
    story.truth = right
    assert story.travel().holds
    assert story.change().holds
    assert story.forget().holds
    assert story.optimize().holds
    assert story.skip().holds
    spoiled = {"id": _on_the_15th(story)}
    lake.sql("UPDATE transactions SET cents = cents + 1 WHERE transaction_id = :id", parameters=spoiled)
    lake.sql("OPTIMIZE transactions")
    assert not story.skip().holds


def _on_the_15th(story: _Story) -> int:
    day = payments.FIRST_DAY.date().replace(day=15)
    forgotten = set(story.rows.forgotten)
    rows = story.rows.transactions.select(["transaction_id", "customer_id", "day"]).to_pylist()
    return next(int(r["transaction_id"]) for r in rows if r["day"] == day and r["customer_id"] not in forgotten)
