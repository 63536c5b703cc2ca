"""Nexmark's auctions: people, what they sell, and what is bid for it, made from a seed.

Nexmark is the usual benchmark of continuous queries. Its stream has one kind of event after another: of fifty, one is a
new person, three are new auctions and forty-six are bids. Some auctions and bidders are hot, which makes keys skewed.

Every value is a function of the seed and the event's number, by a mixing of bits, and of nothing else. So the stream is
the same on every machine, and however it is cut into batches. Events are 100 ms apart, so that times are unique and
each is in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

__all__ = ["SCHEMAS", "batches", "tables"]

_TIME = pa.timestamp("us", tz="UTC")
SCHEMAS: dict[str, pa.Schema] = {
    "person": pa.schema(
        [
            ("id", pa.int64()),
            ("name", pa.string()),
            ("email_address", pa.string()),
            ("credit_card", pa.string()),
            ("city", pa.string()),
            ("state", pa.string()),
            ("date_time", _TIME),
            ("extra", pa.string()),
        ]
    ),
    "auction": pa.schema(
        [
            ("id", pa.int64()),
            ("item_name", pa.string()),
            ("description", pa.string()),
            ("initial_bid", pa.int64()),
            ("reserve", pa.int64()),
            ("date_time", _TIME),
            ("expires", _TIME),
            ("seller", pa.int64()),
            ("category", pa.int64()),
            ("extra", pa.string()),
        ]
    ),
    "bid": pa.schema(
        [
            ("auction", pa.int64()),
            ("bidder", pa.int64()),
            ("price", pa.int64()),
            ("channel", pa.string()),
            ("url", pa.string()),
            ("date_time", _TIME),
            ("extra", pa.string()),
        ]
    ),
}
"""The three tables."""

_ROUND, _AUCTIONS = 50, 3
_FIRST_ID = 1_000
_START_US = 1_704_067_200_000_000  # 2024-01-01
_STEP_US = 100_000
_FIRST_NAMES = ["Ada", "Bela", "Carl", "Dora", "Emil", "Flora", "Gus", "Hana"]
_LAST_NAMES = ["Adler", "Berg", "Cohen", "Diaz", "Eder", "Frank"]
_PLACES = [
    ("Phoenix", "AZ"),
    ("San Jose", "CA"),
    ("Boise", "ID"),
    ("Portland", "OR"),
    ("Kent", "WA"),
    ("Cheyenne", "WY"),
]
_CHANNELS = ["Google", "Facebook", "Baidu", "Apple"]
_CATEGORIES = 5
_HOT_SHARE = 2
_RECENT = 100
Numbers = np.ndarray[tuple[int], np.dtype[np.uint64]]


def batches(seed: int = 0, *, batch_events: int = 1_000, first_event: int = 0) -> Iterator[dict[str, pa.RecordBatch]]:
    """The stream, without an end: for each run of events the new rows of each table.

    Parameters
    ----------
    seed
        Another seed is another stream.
    batch_events
        How many events a batch has.
    first_event
        The number of the event to begin with.

    Examples
    --------
    >>> first = next(batches(7, batch_events=100))
    >>> {name: rows.num_rows for name, rows in first.items()}
    {'person': 2, 'auction': 6, 'bid': 92}
    """
    at = first_event
    while True:
        yield _batch(seed, np.arange(at, at + batch_events, dtype=np.uint64))
        at += batch_events


def tables(events: int, seed: int = 0) -> dict[str, pa.Table]:
    """All rows of the first events, table by table.

    Examples
    --------
    >>> tables(50, seed=7)["auction"].column("id").to_pylist()
    [1000, 1001, 1002]
    """
    found = _batch(seed, np.arange(events, dtype=np.uint64))
    return {name: pa.Table.from_batches([rows]) for name, rows in found.items()}


def _batch(seed: int, events: Numbers) -> dict[str, pa.RecordBatch]:
    place = events % np.uint64(_ROUND)
    dice = _Dice(seed)
    return {
        "person": _people(dice, events[place == 0]),
        "auction": _auctions(dice, events[(place > 0) & (place <= _AUCTIONS)]),
        "bid": _bids(dice, events[place > _AUCTIONS]),
    }


class _Dice:
    """Numbers that depend on the seed, on what they are for, and on the event."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def bits(self, events: Numbers, purpose: str) -> Numbers:
        salt = int.from_bytes(purpose.encode()[:8].ljust(8, b"\0"), "little") ^ (self.seed * 0x9E3779B97F4A7C15)
        with np.errstate(over="ignore"):
            z = (events + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(salt & (2**64 - 1))
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))

    def below(self, events: Numbers, purpose: str, bound: int) -> Numbers:
        return self.bits(events, purpose) % np.uint64(bound)

    def pick(self, events: Numbers, purpose: str, choices: Sequence[str]) -> list[str]:
        return [choices[i] for i in self.below(events, purpose, len(choices)).tolist()]

    def text(self, events: Numbers, purpose: str) -> list[str]:
        """A few letters from a to j."""
        return [str(n).translate(_LETTERS) for n in self.below(events, purpose, 10**9).tolist()]

    def price(self, events: Numbers, purpose: str) -> Numbers:
        """Cents, spread evenly over six powers of ten."""
        share = self.below(events, purpose, 6_000_000).astype(np.float64) / 1_000_000
        found: Numbers = np.rint(np.power(10.0, share) * 100).astype(np.uint64)
        return found


_LETTERS = str.maketrans("0123456789", "abcdefghij")


def _times(events: Numbers) -> pa.Array:
    micros = events.astype(np.int64) * _STEP_US + _START_US
    return pa.array(micros, pa.int64()).cast(_TIME)


def _ids(numbers: Numbers) -> pa.Array:
    return pa.array(numbers.astype(np.int64) + _FIRST_ID)


def _last_person(events: Numbers) -> Numbers:
    return events // np.uint64(_ROUND)


def _last_auction(events: Numbers) -> Numbers:
    """The number of the newest auction at an event; the three of a round are its second to fourth event."""
    rounds, place = events // np.uint64(_ROUND), events % np.uint64(_ROUND)
    begun: Numbers = np.minimum(np.maximum(place, np.uint64(1)), np.uint64(_AUCTIONS)) - np.uint64(1)
    return rounds * np.uint64(_AUCTIONS) + begun


def _one_of(dice: _Dice, events: Numbers, purpose: str, last: Numbers) -> Numbers:
    """One of the newest hundred, or half of the time the hot one: the last whose number is a multiple of a hundred."""
    hot = last - last % np.uint64(_RECENT)
    recent = np.minimum(last + np.uint64(1), np.uint64(_RECENT))
    plain = last - dice.bits(events, purpose) % recent
    found: Numbers = np.where(dice.below(events, f"{purpose}?", _HOT_SHARE) == 0, hot, plain)
    return found


def _people(dice: _Dice, events: Numbers) -> pa.RecordBatch:
    names = [
        f"{a} {b}"
        for a, b in zip(dice.pick(events, "first", _FIRST_NAMES), dice.pick(events, "last", _LAST_NAMES), strict=True)
    ]
    places = [_PLACES[i] for i in dice.below(events, "place", len(_PLACES)).tolist()]
    cards = [f"{n:016d}" for n in dice.below(events, "card", 10**16).tolist()]
    columns = [
        _ids(_last_person(events)),
        names,
        [f"{n.lower().replace(' ', '.')}@example.com" for n in names],
        cards,
        [city for city, _ in places],
        [state for _, state in places],
        _times(events),
        dice.text(events, "extra"),
    ]
    return _rows("person", columns)


def _auctions(dice: _Dice, events: Numbers) -> pa.RecordBatch:
    first = dice.price(events, "initial")
    open_for = (dice.below(events, "expires", 20_000_000) + np.uint64(100_000)).astype(np.int64)
    starts = events.astype(np.int64) * _STEP_US + _START_US
    columns = [
        _ids(_last_auction(events)),
        dice.text(events, "item"),
        dice.text(events, "describe"),
        pa.array(first.astype(np.int64)),
        pa.array((first + dice.price(events, "reserve")).astype(np.int64)),
        _times(events),
        pa.array(starts + open_for, pa.int64()).cast(_TIME),
        _ids(_one_of(dice, events, "seller", _last_person(events))),
        pa.array(dice.below(events, "category", _CATEGORIES).astype(np.int64) + 10),
        dice.text(events, "extra"),
    ]
    return _rows("auction", columns)


def _bids(dice: _Dice, events: Numbers) -> pa.RecordBatch:
    # Half of the bids come by one of four channels, the others by one of many, whose number is in the address.
    known = dice.below(events, "channel?", 2).tolist()
    number, path = dice.below(events, "channel", 10_000).tolist(), dice.text(events, "path")
    channels, urls = [], []
    for is_known, n, text in zip(known, number, path, strict=True):
        channels.append(_CHANNELS[n % len(_CHANNELS)] if is_known else f"channel-{n}")
        parts = "/".join((text[:2], text[2:4], text[4:]))
        urls.append(f"https://auctions.example.com/{parts}/item.htm?query=1{'' if is_known else f'&channel_id={n}'}")
    columns = [
        _ids(_one_of(dice, events, "auction", _last_auction(events))),
        _ids(_one_of(dice, events, "bidder", _last_person(events))),
        pa.array(dice.price(events, "price").astype(np.int64)),
        channels,
        urls,
        _times(events),
        dice.text(events, "extra"),
    ]
    return _rows("bid", columns)


def _rows(name: str, columns: Sequence[pa.Array | list[str]]) -> pa.RecordBatch:
    schema = SCHEMAS[name]
    arrays = [c if isinstance(c, pa.Array) else pa.array(c, pa.string()) for c in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
