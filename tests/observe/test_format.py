from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.observe.format import human_bytes, human_count, human_seconds

COUNT_UNITS = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
BYTE_UNITS: dict[str, float] = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50}
SECOND_UNITS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


def value(text: str, units: dict[str, float]) -> tuple[float, float]:
    """What a text says, and the unit it says it in."""
    found = re.fullmatch(r"(-?[\d.]+) ?([^\d ]*)", text)
    assert found
    return float(found[1]) * units[found[2]], units[found[2]]


@given(st.integers(-(10**17), 10**17))
def test_counts_are_near(count: int) -> None:
    said, unit = value(human_count(count), COUNT_UNITS)
    assert abs(said - count) <= max(abs(count) * 0.051, 0)
    assert abs(said) < 1000 * unit or unit == 1e15


@given(st.integers(0, 2**59))
def test_bytes_are_near(size: int) -> None:
    said, unit = value(human_bytes(size), BYTE_UNITS)
    assert abs(said - size) <= size * 0.051
    assert said < 1024 * unit


@given(st.floats(1e-9, 1e6))
def test_seconds_are_near(seconds: float) -> None:
    said, _ = value(human_seconds(seconds), SECOND_UNITS)
    assert abs(said - seconds) <= seconds * 0.051


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0009996, "1.0 ms"), (0.9999, "1.0 s"), (59.6, "1.0 min"), (3599, "1.0 h"), (1e-12, "0.0 ns"), (9.97, "10 s")],
)
def test_rounding_moves_to_the_next_unit(seconds: float, text: str) -> None:
    assert human_seconds(seconds) == text


@pytest.mark.parametrize(("count", "text"), [(999, "999"), (1000, "1.0k"), (999_499, "999k"), (999_500, "1.0M")])
def test_counts_at_the_edge(count: int, text: str) -> None:
    assert human_count(count) == text


def test_bytes_at_the_edge() -> None:
    assert [human_bytes(n) for n in (1023, 1024, 2**20 - 1)] == ["1023 B", "1.0 KiB", "1.0 MiB"]
