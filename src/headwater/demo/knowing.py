"""The act in which time is asked for: which exchange rate was known when a payment was made, and what else its card had
done that day.

Rates are planted by a rule: every three hours there is a new one, and from the time alone it can be said which. So the
truth about each payment is arithmetic, also about those that reached the lake days later; the sums of each card's day
are recomputed with numpy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.demo.payments import DAYS, FIRST_DAY

if TYPE_CHECKING:
    from headwater.lakehouse import Lake

__all__ = ["STREAM", "Known", "know", "planted_rates"]

CURRENCIES = {"Alpine Gear": ("CHF", 10_400), "Dvořák Knihy": ("CZK", 400), "日本茶 Teehaus": ("JPY", 60)}
"""The merchants that are not paid in euros, their currency, and the least rate of it, in ten-thousandths of a euro."""
STEP = 3 * 3600
DAY = 86_400

_CASE = " ".join(f"WHEN '{merchant}' THEN '{currency}'" for merchant, (currency, _) in CURRENCIES.items())
STREAM = """\
payments = lake.stream("transactions", time="paid_at", by="customer_id", tiebreak="transaction_id")
rates = lake.stream("fx_rates", time="known_at", by="currency")
features = payments.with_columns(currency=...).join_asof(rates, by="currency", tolerance="1 day")
features.rolling("1 day", payments="count(*)", spent="sum(cents)").write("features")"""

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Known:
    """What came of asking: rows by currency, and whether all of it is true."""

    by_currency: list[tuple[str, int, int]]
    payments: int
    late: int
    busiest: tuple[int, int, int]
    rates_hold: bool
    days_hold: bool
    plan: str


def planted_rates() -> pa.Table:
    """A rate of each currency for every three hours, from the day before the first to the last."""
    steps = np.arange(-DAY // STEP, DAYS * DAY // STEP)
    moments = pa.array((steps * STEP + int(FIRST_DAY.timestamp())) * 1_000_000, pa.timestamp("us", tz="UTC"))
    tables = [
        pa.table({"currency": [currency] * len(steps), "known_at": moments, "rate": least + steps % 16})
        for currency, least in CURRENCIES.values()
    ]
    return pa.concat_tables(tables)


def know(lake: Lake, late: set[int]) -> Known:
    """Join and roll on Spark, write the features in one commit, and look at every row of them."""
    lake.write("fx_rates", planted_rates(), mode="overwrite")
    payments = lake.stream("transactions", time="paid_at", by="customer_id", tiebreak="transaction_id")
    rates = lake.stream("fx_rates", time="known_at", by="currency")
    features = (
        payments.with_columns(currency=f"CASE merchant {_CASE} ELSE 'EUR' END")
        .join_asof(rates, by="currency", tolerance="1 day")
        .rolling("1 day", payments="count(*)", spent="sum(cents)")
    )
    plan = features.explain()
    features.write("features", mode="overwrite")
    found = lake.table("features").to_arrow().sort_by("transaction_id")
    truth = lake.table("transactions").to_arrow().sort_by("transaction_id")
    value = pc.multiply(found["cents"], found["rate"])
    sums = pa.table({"currency": found["currency"], "value": value}).group_by("currency")
    by_currency = sums.aggregate([("currency", "count"), ("value", "sum")]).sort_by("currency").to_pylist()
    busiest = found.sort_by([("payments", "descending"), ("spent", "descending")]).slice(0, 1).to_pylist()[0]
    return Known(
        [(r["currency"], r["currency_count"], (r["value_sum"] or 0) // 1_000_000) for r in by_currency],
        found.num_rows,
        sum(i in late for i in found["transaction_id"].to_pylist()),
        (busiest["customer_id"], busiest["payments"], busiest["spent"]),
        found["transaction_id"].equals(truth["transaction_id"]) and _rates_hold(found, truth),
        _days_hold(found, truth),
        plan,
    )


def _rates_hold(found: pa.Table, truth: pa.Table) -> bool:
    """Whether each payment has the rate of its own time, by the rule of the rates; euros have none."""
    step = _seconds(truth) // STEP
    for merchant in truth["merchant"].unique().to_pylist():
        which = pc.equal(truth["merchant"], merchant)
        rates = found["rate"].filter(which)
        if merchant not in CURRENCIES:
            if rates.null_count < len(rates):
                return False
        elif rates.null_count or (rates.to_numpy() != CURRENCIES[merchant][1] + step[np.asarray(which)] % 16).any():
            return False
    return True


def _days_hold(found: pa.Table, truth: pa.Table) -> bool:
    """Whether the sums beside each payment are those of its card's payments within a day before it."""
    # Cards lie so far apart that a day before a card's first payment holds none of another card.
    at = truth["customer_id"].to_numpy() * (100 * DAYS * DAY) + _seconds(truth)
    order = np.argsort(at, kind="stable")
    places, total = at[order], np.concatenate(([0], np.cumsum(truth["cents"].to_numpy()[order])))
    first, last = np.searchsorted(places, at - DAY, "left"), np.searchsorted(places, at, "right")
    counts, spent = (found[name].to_numpy() for name in ("payments", "spent"))
    return bool((counts == last - first).all() and (spent == total[last] - total[first]).all())


def _seconds(rows: pa.Table) -> Numbers:
    """The seconds since the first day."""
    micros: Any = rows["paid_at"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
    found: Numbers = micros // 1_000_000 - int(FIRST_DAY.timestamp())
    return found
