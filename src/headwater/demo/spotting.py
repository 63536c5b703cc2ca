"""The act of the row pattern: stolen cards are tried with small payments before a large one, and a view keeps watch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headwater.demo.act import Act, Grid

if TYPE_CHECKING:
    from headwater.lakehouse import Lake

__all__ = ["PATTERN", "spot"]

PATTERN = """\
CREATE MATERIALIZED VIEW card_tests AS
SELECT * FROM taps MATCH_RECOGNIZE (
  PARTITION BY card ORDER BY at
  MEASURES FIRST(at) AS began, count(tiny.*) AS tries, charge.cents AS charged
  PATTERN (tiny{3,} charge) WITHIN INTERVAL 30 MINUTES
  DEFINE tiny AS cents < 100, charge AS cents > 300 * avg(tiny.cents))"""

_START = datetime(2026, 1, 5, tzinfo=UTC)
_PLANTED = 5
_CARDS = 400


def _taps(rows: int = 20_000, seed: int = 17) -> pa.Table:
    """Payments at tills of some hundred cards; five of the cards are tried, and one more nearly."""
    rng = np.random.default_rng(seed)
    cards, seconds = rng.integers(0, _CARDS, rows), rng.choice(10 * 86_400, rows, replace=False)
    found = [
        {"card": int(c), "at": _START + timedelta(seconds=int(s)), "cents": int(v)}
        for c, s, v in zip(cards, seconds, rng.integers(400, 20_000, rows), strict=True)
    ]
    for number in range(_PLANTED + 1):
        begun = _START + timedelta(days=number + 1, microseconds=1)
        small = [20, 30, 10] if number < _PLANTED else [20, 30]
        values = [*small, 40_000 + number]
        found += [
            {"card": _CARDS + number, "at": begun + timedelta(minutes=at), "cents": cents}
            for at, cents in enumerate(values)
        ]
    return pa.Table.from_pylist(found).cast(
        pa.schema([("card", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("cents", pa.int64())])
    )


def spot(lake: Lake) -> Act:
    """The act."""
    taps = lake.write("taps", _taps())
    lake.sql(PATTERN)
    view = lake.view("card_tests")
    first = view.rows
    # A payment that comes late is the third small one of the sixth card.
    late = _START + timedelta(days=_PLANTED + 1, seconds=90)
    taps.append([{"card": _CARDS + _PLANTED, "at": late, "cents": 5}])
    report = view.refresh()
    verified = view.verify()
    rows = view.table.to_arrow().sort_by("card").to_pylist()
    return Act(
        "A row pattern: cards that are tried with small payments before a large one, and a late row that completes one",
        PATTERN,
        {
            "payments": taps.snapshot.num_rows,
            "found at first": first,
            "after a late row": view.rows,
            "how it was refreshed": report.mode,
            "verified": str(verified),
        },
        grid=Grid(("card", "began", "tries", "charged"), [tuple(map(str, row.values())) for row in rows[-3:]]),
        check="the planted cards are found, and the one that a late row completes",
        holds=verified.equal
        and report.mode == "incremental"
        and first == _PLANTED
        and [row["card"] for row in rows] == [_CARDS + n for n in range(_PLANTED + 1)],
    )
