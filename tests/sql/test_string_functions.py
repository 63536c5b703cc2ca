"""Texts, bytes, hashes and regular expressions against Spark: unicode beyond U+FFFF, combining marks, nulls, extremes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from .conftest import fixture_lines

Differences = Callable[[pa.Table, Sequence[str]], list[str]]

_TEXTS = """abc||ß🤦|Hello World ǆ|a,b,,c|aXbXc|ΑΣ ΟΔΟΣ| x |éa|e\u0301x|12|4111111111111111|79927398713|YWJj|YQ==|616263|abcd|zz
a b+c%7E~*|Robert|Tymczak|Pfister|Honeyman|İstanbul|A%b_\\c|ﬁ""".replace("\n", "|").split("|")
_ODD = ["a\x00b", "tabs\tx", "ab" * 40, "\n", None]


def _table(seed: int) -> pa.Table:
    rng = random.Random(seed)
    texts = [*_TEXTS, *_ODD, *("".join(rng.choices("abX ,ß🤦é1", k=rng.randint(0, 9))) for _ in range(8))]
    rows = range(len(texts))
    days = [date(2024, 2, 29), date(1, 1, 1), None, date(9999, 12, 31), date(1969, 12, 31)]
    times = [datetime(2024, 2, 29, 23, 59, 59, 999_999, tzinfo=UTC), datetime(1900, 1, 1, tzinfo=UTC), None]
    return pa.table(
        {
            "s": pa.array(texts),
            "u": pa.array(rng.sample(texts, len(texts))),
            "x": pa.array([t and t.encode() for t in texts], pa.binary()),
            "x2": pa.array([rng.choice([b"\x01\xff", b"", b"q"]) for _ in rows]),
            "i": pa.array([rng.randint(-5, 9) for _ in rows], pa.int32()),
            "j": pa.array([rng.choice([None, -1, 0, 1, 2, 3]) for _ in rows], pa.int32()),
            "i8": pa.array([rng.randint(-128, 127) for _ in rows], pa.int8()),
            "l": pa.array([rng.choice([rng.randint(-(2**63), 2**63 - 1), 7, -1, None]) for _ in rows], pa.int64()),
            "d": pa.array([rng.choice([-0.0, 0.0, 1.5, None, rng.uniform(-99, 99)]) for _ in rows]),
            "f": pa.array([rng.choice([-0.0, 0.5, None, 1.25]) for _ in rows], pa.float32()),
            "p": pa.array([Decimal(rng.randint(-9999, 9999)) / 100 for _ in rows], pa.decimal128(10, 2)),
            "b": pa.array([rng.choice([True, False, None]) for _ in rows]),
            "day": pa.array([rng.choice(days) for _ in rows]),
            "ts": pa.array([rng.choice(times) for _ in rows], pa.timestamp("us", tz="UTC")),
        }
    )


@pytest.mark.spark
@settings(max_examples=max(1, settings().max_examples // 50), phases=[Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_texts_and_bytes_are_sparks(differences: Differences, seed: int) -> None:
    found = differences(_table(seed), fixture_lines("strings.sql"))
    assert not found, "\n".join(found)


_MATCHED_TEXTS = (
    "abc||aXbXc|a1b22c333|foo bar  baz|äöü ß|🤦x🤦|AbC|aaa|a.b.c|[a]|a$b|\\d|100-200, 300-400|a,b,,c,,|über|ABAB"
)
_MATCHED = _MATCHED_TEXTS.split("|")


@pytest.mark.spark
def test_regular_expressions_mean_what_they_mean_in_java(differences: Differences) -> None:
    texts = [*_MATCHED, "\n", "a\nb", "a\r\n", "a\u2028", "x\x0by", "ab\n", "\r\n", None]
    found = differences(pa.table({"s": pa.array(texts)}), fixture_lines("regexps.sql"))
    assert not found, "\n".join(found)


@pytest.mark.spark
def test_every_letter_has_sparks_case(differences: Differences) -> None:
    # One character a row would be a million rows; a line of 256 of them gives the same answer in fewer.
    lines = []
    for start in range(1, 0x30000, 256):
        chars = (chr(c) for c in range(start, start + 256) if not 0xD800 <= c <= 0xDFFF)
        lines += ["".join(chars)]
    found = differences(pa.table({"s": lines}), ["upper(s)", "lower(s)", "initcap(s)", "reverse(s)", "length(s)"])
    assert not found, "\n".join(found)
