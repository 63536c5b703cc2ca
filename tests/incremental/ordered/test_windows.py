"""Windows of time: edges as Spark's, by a definition in plain Python."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from tests.incremental.ordered.histories import Play, Row, Source, Table

from headwater.base.errors import InputError, UnsupportedError
from headwater.incremental.operators.windows import Windows

SCHEMA = pa.schema([pa.field("t", pa.int64()), pa.field("s", pa.string())])


def draw(rng: np.random.Generator) -> Row:
    t = None if rng.random() < 0.1 else int(rng.integers(-40, 40))
    return (t, [None, "a", "something longer than a slot has room for"][int(rng.integers(3))])


def expected(table: Table, size: int, every: int, offset: int) -> Table:
    out: Table = Counter()
    for row, weight in table.items():
        if row[0] is not None:
            for start in range(-200 * every + offset, 200 * every, every):
                if start <= row[0] < start + size:
                    out[(*row, start, start + size)] += weight
    return out


@pytest.mark.parametrize(
    ("size", "every", "offset"), [(10, 10, 0), (10, 10, 3), (10, 5, 0), (10, 4, 1), (7, 3, -2), (1, 1, 0), (9, 2, -1)]
)
def test_equals_definition(size: int, every: int, offset: int) -> None:
    source = Source(SCHEMA)
    play = Play(Windows(source, "t", size=size, every=every, offset=offset), [source], [draw])
    play.check(lambda t: expected(t, size, every, offset), seed=size, steps=30)


def test_timestamps_and_dates() -> None:
    source = Source(pa.schema([pa.field("t", pa.timestamp("us", tz="UTC"))]))
    node = Windows(source, "t", size=timedelta(minutes=1), every=timedelta(seconds=30))
    out = node.step([source.change([((datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC),), 1)])]).to_arrow().to_pylist()
    assert [(r["window_start"].isoformat(), r["window_end"].isoformat()) for r in out] == [
        ("1969-12-31T23:59:00+00:00", "1970-01-01T00:00:00+00:00"),
        ("1969-12-31T23:59:30+00:00", "1970-01-01T00:00:30+00:00"),
    ]
    source = Source(pa.schema([pa.field("t", pa.date32())]))
    node = Windows(source, "t", size=timedelta(days=7), offset=timedelta(days=4))
    out = node.step([source.change([((date(2024, 1, 7),), -2)])]).to_arrow().to_pylist()
    assert out == [
        {"t": date(2024, 1, 7), "window_start": date(2024, 1, 1), "window_end": date(2024, 1, 8), "_weight": -2}
    ]


def test_the_end_of_all_times() -> None:
    source = Source(SCHEMA)
    with pytest.raises(UnsupportedError, match="end of all times"):
        Windows(source, "t", size=10).step([source.change([((2**63 - 1, None), 1)])])


def test_what_is_refused() -> None:
    source = Source(SCHEMA)
    with pytest.raises(InputError, match="leave no gaps"):
        Windows(source, "t", size=5, every=6)
    with pytest.raises(InputError, match="less than the distance"):
        Windows(source, "t", size=5, offset=5)
    with pytest.raises(InputError, match="more than nothing"):
        Windows(source, "t", size=0)
    with pytest.raises(UnsupportedError, match="has type string"):
        Windows(source, "s", size=5)
