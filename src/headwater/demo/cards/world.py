"""Card payments with chargebacks, made from a seed: the same rows on every machine, offline.

Customers pay merchants by card. A few cards are stolen: from some day on, most payments with them are disputed by their
owners, and the bank hears of it between five and twenty days later. Support writes notes about disputed payments. The
first three weeks are there from the beginning; `Day` is what one more day brings: new payments, a few that come late,
and the chargebacks that were reported since. What is planted is in `Planted`, so that every act can be checked without
asking the lake.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["SIZES", "Day", "Planted", "World", "make"]

SIZES = {"S": 50_000, "M": 2_000_000, "L": 20_000_000}
"""How many payments there are."""

SEED = 20_261_118
FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = 21
"""The days that are there from the beginning; one more lands."""
DAY_SECONDS = 86_400
STOLEN = 100
"""One card of so many is stolen."""
LATE = 200
MERCHANTS = ("Alpine Gear", "Bäckerei Huber", "Café Zoé", "Dvořák Knihy", "Éclair & Fils", "日本茶 Teehaus")
COUNTRIES = ("DE", "ES", "FR", "IT", "PL")
NAMES = ("Ada", "Bruno", "Chloé", "Dóra", "Emil", "Fatma", "Gita", "Hugo", "Ines", "Jörg", "Kyra", "Luís")
FAMILIES = ("Arslan", "Bianchi", "Castro", "Dufour", "Eriksen", "Fischer", "García", "Horváth", "Iversen", "Jansen")
MATTERS = (
    "says that the card was stolen and disputes the payment",
    "does not know this merchant and asks for a refund",
    "was charged twice and wants one of the payments back",
    "asks for an invoice of the payment",
    "wants to know when the payment was booked",
)
DISPUTES = 3
"""So many of the matters are about a payment that should not have been made."""
OTHER_NOTES = 2_000
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Planted:
    """What is known of the rows beforehand."""

    payments: int
    cents: int
    day_payments: int
    """Payments that one more day brings, late ones among them."""
    known_chargebacks: int
    late_chargebacks: int
    """Chargebacks of payments of the first three weeks that are reported with the next day."""


@dataclass(frozen=True, slots=True)
class Day:
    """What one more day brings."""

    transactions: pa.Table
    chargebacks: pa.Table


@dataclass(frozen=True, slots=True)
class World:
    """The rows of the story."""

    customers: pa.Table
    transactions: pa.Table
    chargebacks: pa.Table
    support_notes: pa.Table
    day: Day
    disputed: frozenset[int]
    """The payments that are disputed sooner or later: what a model has to predict."""
    planted: Planted

    @property
    def corrected(self) -> dict[str, Any]:
        """A note, whose payment is corrected later."""
        found: dict[str, Any] = self.support_notes.slice(0, 1).to_pylist()[0]
        return found


def make(size: str = "S") -> World:
    """The rows, from a fixed seed."""
    rng = np.random.default_rng(SEED)
    count = SIZES[size]
    people = max(count // 25, 200)
    stolen = rng.choice(people, people // STOLEN, replace=False)
    since = np.full(people, np.iinfo(np.int64).max)
    since[stolen] = rng.integers(8 * DAY_SECONDS, 16 * DAY_SECONDS, len(stolen))

    seconds = np.sort(rng.integers(0, (DAYS + 1) * DAY_SECONDS, count + count // DAYS))
    rows = _transactions(rng, seconds, people)
    customer = rows["customer_id"].to_numpy()
    odds = np.where(seconds >= since[customer], 0.7, 0.0005)
    disputed = np.flatnonzero(rng.random(len(seconds)) < odds)
    reported = seconds[disputed] + rng.integers(5 * DAY_SECONDS, 20 * DAY_SECONDS, len(disputed))

    late = rng.choice(np.flatnonzero(seconds < DAYS * DAY_SECONDS), LATE, replace=False)
    there = seconds < DAYS * DAY_SECONDS
    there[late] = False
    known = (reported < DAYS * DAY_SECONDS) & there[disputed]
    chargebacks = _chargebacks(rows, disputed, reported)
    first = rows.filter(pa.array(there))
    return World(
        customers=_customers(rng, people),
        transactions=first,
        chargebacks=chargebacks.filter(pa.array(known)),
        support_notes=_notes(rng, rows, disputed[known]),
        day=Day(rows.filter(pa.array(~there)), chargebacks.filter(pa.array(~known))),
        disputed=frozenset(disputed.tolist()),
        planted=Planted(
            payments=first.num_rows,
            cents=int(pc.sum(first["cents"]).as_py()),
            day_payments=int((~there).sum()),
            known_chargebacks=int(known.sum()),
            late_chargebacks=int((there[disputed] & ~known).sum()),
        ),
    )


def _times(seconds: Any) -> pa.Array:
    return pa.array((seconds + int(FIRST_DAY.timestamp())) * 1_000_000, pa.timestamp("us", tz="UTC"))


def day_of(number: int) -> datetime:
    """The beginning of a day of the story."""
    return FIRST_DAY + timedelta(days=number)


def _customers(rng: np.random.Generator, people: int) -> pa.Table:
    given, family = rng.integers(0, len(NAMES), people), rng.integers(0, len(FAMILIES), people)
    names = [f"{NAMES[a]} {FAMILIES[b]}" for a, b in zip(given, family, strict=True)]
    return pa.table(
        {
            "customer_id": np.arange(people),
            "name": names,
            "email": [f"{name.split()[0].lower()}.{n:06d}@mail.example" for n, name in enumerate(names)],
            "country": rng.choice(COUNTRIES, people),
        }
    )


def _transactions(rng: np.random.Generator, seconds: Numbers, people: int) -> pa.Table:
    count, times = len(seconds), _times(seconds)
    return pa.table(
        {
            "transaction_id": np.arange(count),
            "customer_id": rng.integers(0, people, count),
            "merchant": rng.choice(MERCHANTS, count),
            "paid_at": times,
            "cents": rng.integers(100, 50_000, count),
            "status": pa.array(["paid"] * count),
            "day": times.cast(pa.date32()),
        }
    )


def _chargebacks(rows: pa.Table, disputed: Numbers, reported: Numbers) -> pa.Table:
    found = rows.take(pa.array(disputed)).select(["transaction_id", "customer_id", "paid_at", "cents"])
    return found.append_column("reported_at", _times(reported))


def _notes(rng: np.random.Generator, rows: pa.Table, disputed: Numbers) -> pa.Table:
    """A note about each payment that is known to be disputed, and some about others."""
    about = np.concatenate([disputed, rng.choice(len(rows), OTHER_NOTES, replace=False)])
    of = rows.take(pa.array(about))
    matters = np.concatenate(
        [rng.integers(0, DISPUTES, len(disputed)), rng.integers(DISPUTES, len(MATTERS), OTHER_NOTES)]
    )
    return pa.table(
        {
            "note_id": np.arange(len(about)),
            "transaction_id": of["transaction_id"],
            "customer_id": of["customer_id"],
            "body": [
                f"Customer {customer} {MATTERS[matter]} at {merchant}."
                for customer, matter, merchant in zip(
                    of["customer_id"].to_pylist(), matters, of["merchant"].to_pylist(), strict=True
                )
            ],
        }
    )
