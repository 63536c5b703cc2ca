"""Casts over the edges of every type: to every other type that may be asked for, and TRY_CAST."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from .agreement import differences

_TARGETS = "boolean tinyint smallint int bigint float double decimal(5,2) decimal(18,0) decimal(38,6) string date timestamp binary"
_CASTS = [f"CAST(x AS {t})" for t in _TARGETS.split()]
_TRIED = [f"TRY_CAST(x AS {t})" for t in _TARGETS.split()]
_WHOLE = [0, 1, -1, 127, 128, -128, -129, 999, 2**31 - 1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63), None]
_REAL = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.9,
    -1.9,
    127.9,
    128.0,
    1e10,
    2147483647.5,
    9.3e18,
    -9.3e18,
    1e300,
    5e-324,
    0.1,
    1e7,
    123456.789,
]
_NUMBERS = "0 1 -1 +3 127 128 -129 1.5 -1.5 .5 5. 1e3 1E-2 1e400 -1e400 9223372036854775807 9223372036854775808 99999999999999999999"
_WORDS = "t T true yes y n no f false TRUE x nan inf Infinity --1 0x1 1_0 １ ß 2024-02-29 2023-02-29 2024-2-9 0001-01-01 9999-12-31 2024"
_TEXTS = [*_NUMBERS.split(), *_WORDS.split(), " 12 ", "\t7\n", "", " ", "1 2", "2024-02-29 10:11:12", None]
_COLUMNS = [
    pa.array([True, False, None]),
    pa.array([0, 1, 127, -128, None], pa.int8()),
    pa.array([v for v in _WHOLE if v is None or -(2**31) <= v < 2**31], pa.int32()),
    pa.array(_WHOLE, pa.int64()),
    pa.array([0.0, -0.0, 1.5, 3e38, -3e38, 1e-45, math.nan, math.inf, -math.inf, 16777217.0, None], pa.float32()),
    pa.array([*_REAL, math.nan, math.inf, -math.inf, None], pa.float64()),
    pa.array(
        [Decimal(v) for v in ("0", "1.5", "-1.5", "0.005", "999.995", "-999.994", "127.999", "9999999.999")] + [None],
        pa.decimal128(10, 3),
    ),
    pa.array([Decimal(10**30), Decimal("-0.000001"), Decimal(2**63), Decimal("2.5"), None], pa.decimal128(38, 6)),
    pa.array(_TEXTS),
    pa.array([b"a", b"", b"\xff", "ß".encode(), None]),
    pa.array([date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29), None]),
    pa.array(
        [
            datetime(1, 1, 1, tzinfo=UTC),
            datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
            datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=UTC),
            None,
        ],
        pa.timestamp("us", tz="UTC"),
    ),
    pa.array([datetime(1969, 12, 31, 1), datetime(2024, 2, 29, 1, 2, 3, 4), None], pa.timestamp("us")),
]


@pytest.mark.long
@pytest.mark.parametrize("column", _COLUMNS, ids=lambda c: str(c.type))
def test_every_pair_of_types(column: pa.Array) -> None:
    found = differences(_TRIED, pa.table({"x": column}))
    # Where most rows fail, each is asked for alone: some suffice.
    found += differences(_CASTS, pa.table({"x": column[::3] if pa.types.is_string(column.type) else column}))
    assert not found, "\n".join(found)


_NUMERALS = st.from_regex(r"[ \t]?[+-]?[0-9]{1,20}(\.[0-9]{0,20})?([eE][+-]?[0-9]{1,3})?[ \n]?", fullmatch=True)


@settings(max_examples=max(4, settings().max_examples // 6), phases=[Phase.generate])
@given(texts=st.lists(_NUMERALS | st.text("0123456789.eE+- x", max_size=6), min_size=20, max_size=20))
def test_texts_that_look_like_numbers(texts: list[str]) -> None:
    found = differences(
        ["TRY_CAST(x AS int)", "TRY_CAST(x AS bigint)", "TRY_CAST(x AS double)"], pa.table({"x": pa.array(texts)})
    )
    assert not found, "\n".join(found)
