"""window() and session_window(), read by our own reader: the rows are those that counting by hand gives."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from tests.sql.analyzed.spoken import rows_of
from tests.sql.oracle import plan_of as read_plan

from headwater.base.errors import ExpressionError, NotFoundError
from headwater.sql.intervals.constants import interval_text
from headwater.sql.nodes import Refused

_SECONDS = (-754, -600, -1, 0, 1, 119, 120, 180, 300, 599, 600, 660, 1_500, 2_100, 2_700, 3_540, None, 180)
_ROWS = [(s, "xyxxy"[i % 5], i) for i, s in enumerate(_SECONDS)]
Span = tuple[int, int]


def _table(zone: str | None) -> pa.Table:
    moments = [None if s is None else s * 1_000_000 for s, _, _ in _ROWS]
    return pa.table(
        {
            "ts": pa.array(moments, pa.int64()).cast(pa.timestamp("us", tz=zone)),
            "s": [s for _, s, _ in _ROWS],
            "a": pa.array([a for _, _, a in _ROWS], pa.int32()),
        }
    )


ZONED, LOCAL = _table("UTC"), _table(None)


def _rows(text: str, table: pa.Table = ZONED) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(r) for r in rows_of(read_plan(text, {"t": table}), {"t": table}))


def _spans(second: int, size: int, slide: int, start: int) -> Iterator[Span]:
    """Every window that a second is in: by trying all of them."""
    for number in range(-10_000 // slide, 10_000 // slide):
        begin = number * slide + start
        if begin <= second < begin + size:
            yield begin, begin + size


_WINDOWS = [
    ("'10 minutes'", 600, 600, 0),
    ("'10 minutes', '5 minutes'", 600, 300, 0),
    ("'7 minutes', '7 minutes', '2 minutes'", 420, 420, 120),
    ("'12 minutes', '5 minutes', '-1 minute'", 720, 300, -60),
    ("'1 minute 30 seconds', '40 seconds'", 90, 40, 0),
    ("600000000, 300000000L, '1 second'", 600, 300, 1),
]


@pytest.mark.parametrize("table", [ZONED, LOCAL], ids=["timestamp", "timestamp_ntz"])
@pytest.mark.parametrize(("written", "size", "slide", "start"), _WINDOWS, ids=[w[0] for w in _WINDOWS])
def test_groups_are_the_rows_within(written: str, size: int, slide: int, start: int, table: pa.Table) -> None:
    wanted: Counter[tuple[Any, ...]] = Counter()
    for second, s, _ in _ROWS:
        if second is not None:
            wanted.update((b * 1_000_000, e * 1_000_000, s) for b, e in _spans(second, size, slide, start))
    text = f"SELECT window.start, window.end, s, count(*) FROM t GROUP BY window(ts, {written}), s"
    assert _rows(text, table) == Counter((*span, n) for span, n in wanted.items())


@pytest.mark.parametrize(("written", "size", "slide", "start"), _WINDOWS, ids=[w[0] for w in _WINDOWS])
def test_outside_groups_a_row_is_there_once_for_each_window(written: str, size: int, slide: int, start: int) -> None:
    wanted = Counter(
        (a, b * 1_000_000, e * 1_000_000)
        for second, _, a in _ROWS
        if second is not None
        for b, e in _spans(second, size, slide, start)
    )
    inner = f"SELECT a, window(ts, {written}) AS w FROM t"
    assert _rows(f"SELECT a, w.start, w.end FROM ({inner})") == wanted


def _sessions(gap: int, by: Callable[[tuple[Any, ...]], object]) -> Counter[tuple[Any, ...]]:
    out: Counter[tuple[Any, ...]] = Counter()
    groups: dict[object, list[int]] = {}
    for row in _ROWS:
        if row[0] is not None:
            groups.setdefault(by(row), []).append(row[0])
    for key, seconds in groups.items():
        seconds.sort()
        cuts = [0, *(i for i in range(1, len(seconds)) if seconds[i] - seconds[i - 1] > gap), len(seconds)]
        for low, high in itertools.pairwise(cuts):
            begin, end = seconds[low] * 1_000_000, (seconds[high - 1] + gap) * 1_000_000
            out[begin, end, key, high - low] += 1
    return out


@pytest.mark.parametrize("table", [ZONED, LOCAL], ids=["timestamp", "timestamp_ntz"])
@pytest.mark.parametrize(
    ("written", "gap"), [("1 minute", 60), ("10 minutes", 600), ("119 seconds", 119), ("1 day", 86_400)]
)
def test_sessions_end_with_a_pause(written: str, gap: int, table: pa.Table) -> None:
    text = "SELECT session_window.start, session_window.end, {} k, count(*) FROM t GROUP BY session_window(ts, '{}'){}"
    assert _rows(text.format("s", written, ", s"), table) == _sessions(gap, lambda r: r[1])
    assert _rows(text.format("'all'", written, ""), table) == _sessions(gap, lambda _: "all")


_SAME = [
    # By alias, by number, by the call itself, in HAVING and ORDER BY.
    (
        "SELECT window.start AS b, count(*) AS n FROM t GROUP BY window(ts, '10 minutes') HAVING n > 1 ORDER BY window.start",
        "SELECT window(ts, '10 minutes').start AS b, count(*) AS n FROM t GROUP BY window(ts, '10 minutes') HAVING count(*) > 1",
    ),
    (
        "SELECT w.start, n FROM (SELECT window(ts, '10 minutes') AS w, count(*) AS n FROM t GROUP BY w)",
        "SELECT w.start, n FROM (SELECT window(ts, '10 minutes') AS w, count(*) AS n FROM t GROUP BY 1)",
    ),
    (
        "SELECT window.start, max(a) FROM t GROUP BY window(ts, '10 minutes')",
        "SELECT window.start, max(a) FROM t GROUP BY window(ts, '10 minutes').start",
    ),
    # The window is of the rows that WHERE leaves.
    (
        "SELECT session_window.end, count(*) FROM t WHERE a % 2 = 0 GROUP BY session_window(ts, '5 minutes')",
        "SELECT session_window.end, count(*) FROM (SELECT ts FROM t WHERE a % 2 = 0) GROUP BY session_window(ts, '5 minutes')",
    ),
    # Above groups the whole window is there too, and its last moment.
    (
        "SELECT window_time(window) AS x FROM (SELECT window, count(*) FROM t GROUP BY window(ts, '10 minutes'))",
        "SELECT timestamp_micros(unix_micros(window.end) - 1) AS x FROM t GROUP BY window(ts, '10 minutes')",
    ),
    # A window of windows.
    (
        "WITH c AS (SELECT window(ts, '10 minutes') AS w, count(*) n FROM t GROUP BY 1) SELECT window.start, sum(n) FROM c GROUP BY window(w, '20 minutes')",
        "SELECT window.start, count(*) FROM t GROUP BY window(ts, '20 minutes')",
    ),
    # A column of that name in FROM comes first, and window is a name like any other.
    (
        "SELECT window, count(*) FROM (SELECT s AS window FROM t) GROUP BY window",
        "SELECT s, count(*) FROM t GROUP BY s",
    ),
    (
        "SELECT sum(a) OVER window AS x FROM t WINDOW window AS (PARTITION BY s)",
        "SELECT sum(a) OVER (PARTITION BY s) AS x FROM t",
    ),
]


@pytest.mark.parametrize(("one", "other"), _SAME)
def test_two_ways_to_say_it(one: str, other: str) -> None:
    found = _rows(one)
    assert found and found == _rows(other)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT *, window(ts, '1 hour') FROM t", ["ts", "s", "a", "window"]),
        ("SELECT window(ts, '1 hour').start, window.end FROM t", ["window.start", "end"]),
        (
            "SELECT session_window, count(*) FROM t GROUP BY session_window(ts, '1 hour')",
            ["session_window", "count(1)"],
        ),
        ("SELECT window_time(w) FROM (SELECT window(ts, '1 hour') AS w FROM t)", ["window_time(w)"]),
    ],
)
def test_names_are_sparks(text: str, names: list[str]) -> None:
    assert read_plan(text, {"t": ZONED}).schema.names == names


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT 1 FROM t GROUP BY window(ts, '1 month')", "months have no fixed length"),
        ("SELECT 1 FROM t GROUP BY window(ts, '0 seconds')", "more than nothing"),
        ("SELECT 1 FROM t GROUP BY window(ts, '1 second', '2 seconds')", "slide by more than they are long"),
        ("SELECT 1 FROM t GROUP BY window(ts, '2 seconds', '1 second', '1 second')", "not within the slide"),
        ("SELECT 1 FROM t GROUP BY window(ts, '1 day', '1 second')", "more than 1000"),
        ("SELECT 1 FROM t GROUP BY window(ts, 'soon')", "the interval 'soon'"),
        ("SELECT 1 FROM t GROUP BY window(ts, s)", "are constants"),
        ("SELECT 1 FROM t GROUP BY window(ts)", "takes a time, a length"),
        ("SELECT 1 FROM t GROUP BY window(a, '1 second')", "window() over int"),
        ("SELECT 1 FROM t GROUP BY window(ts, '1 hour'), window(ts, '2 hours')", "two windows of time"),
        ("SELECT 1 FROM t GROUP BY window(ts, '1 hour'), session_window(ts, '1 hour')", "two windows of time"),
        ("SELECT 1 FROM t GROUP BY session_window(ts, s)", "no constant text"),
        ("SELECT 1 FROM t GROUP BY session_window(ts, '-1 hour')", "a gap of '-1 hour'"),
        ("SELECT 1 FROM t WHERE window(ts, '1 hour').start IS NULL", "window() in WHERE"),
        ("SELECT window.start FROM t GROUP BY ROLLUP(window(ts, '1 hour'))", "grouping sets of a window of time"),
        (
            "SELECT max(session_window.start) FROM t GROUP BY session_window(ts, '1 hour')",
            "max() of a session_window that is grouped by",
        ),
        ("SELECT window(ts, '1 hour'), count(*) FROM t", "neither grouped nor aggregated"),
        ("SELECT window_time(a) FROM t", "int is no window"),
    ],
)
def test_what_has_no_answer_is_refused(text: str, said: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        read_plan(text, {"t": ZONED})
    assert said in str(caught.value) and "where:" in str(caught.value)


def test_without_the_call_there_is_no_such_column() -> None:
    with pytest.raises(NotFoundError, match="window"):
        read_plan("SELECT window.start FROM t", {"t": ZONED})


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1.5 seconds", 1_500_000),
        ("INTERVAL -2 Days 1 HOUR", -169_200_000_000),
        ("3 milliseconds 1 microsecond", 3_001),
    ],
)
def test_intervals_as_texts(text: str, micros: int) -> None:
    found = interval_text(text)
    assert timedelta(days=found.days, microseconds=found.micros) == timedelta(microseconds=micros)


@pytest.mark.parametrize("text", ["", "minutes", "1.5 hours", "1 month 1 day", "1 fortnight", "1 hour,"])
def test_texts_that_are_no_intervals(text: str) -> None:
    with pytest.raises(Refused):
        interval_text(text)
