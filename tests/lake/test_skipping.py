"""Skipping never loses a row: what it keeps is a superset of what a scan of the rows finds."""

from __future__ import annotations

import datetime as dt
import io
import json
import math
import operator
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.base.errors import InputError
from headwater.lake import partitions, stats
from headwater.lake.skipping import FileIndex, may_match
from headwater.sql.conjuncts import Conjunct

moment = dt.datetime.fromisoformat
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Ordered:
    """A float as Spark orders it: NaN equals itself and is larger than every number."""

    def __init__(self, value: float) -> None:
        self.key = (math.isnan(value), 0.0 if math.isnan(value) else value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ordered) and self.key == other.key

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: Ordered) -> bool:
        return self.key < other.key

    def __le__(self, other: Ordered) -> bool:
        return self.key <= other.key

    def __gt__(self, other: Ordered) -> bool:
        return self.key > other.key

    def __ge__(self, other: Ordered) -> bool:
        return self.key >= other.key


def comparable(value: Any) -> Any:
    if isinstance(value, float):
        return Ordered(value)
    return value.encode() if isinstance(value, str) else value


def meets(value: Any, conjunct: Conjunct) -> bool:
    if conjunct.op.startswith("is "):
        return (value is None) == (conjunct.op == "is null")
    if value is None:
        return False
    if conjunct.op == "in":
        return any(comparable(value) == comparable(v) for v in conjunct.values)
    return COMPARE[conjunct.op](comparable(value), comparable(conjunct.values[0]))


SMALL_TEXT = st.one_of(
    st.text(alphabet="ab\x7f\U0010ffff", max_size=3),
    st.builds(
        lambda n, s: "a" * n + s, st.integers(28, 70), st.text(alphabet="aé\x7f\U0001f600\U0010ffff", max_size=4)
    ),
)
TIMES = st.builds(
    lambda n: moment("2020-01-01") + dt.timedelta(microseconds=n),
    st.one_of(st.integers(-2000, 2000), st.integers(-(10**12), 10**12)),
)
KINDS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.one_of(st.integers(-4, 4), st.integers(-(2**63), 2**63 - 1)),
    pa.int32(): st.integers(-4, 4),
    pa.float64(): st.one_of(st.sampled_from([0.0, -0.0, 0.1, 0.3, math.nan, math.inf, -math.inf]), st.floats()),
    pa.float32(): st.one_of(st.sampled_from([0.0, -0.0, 1.5, math.nan]), st.floats(width=32)),
    pa.decimal128(20, 2): st.decimals(-5, 5, places=2),
    pa.string(): SMALL_TEXT,
    pa.date32(): st.dates(dt.date(2019, 12, 28), dt.date(2020, 1, 4)),
    pa.timestamp("us", "UTC"): TIMES.map(lambda t: t.replace(tzinfo=dt.UTC)),
    pa.timestamp("us"): TIMES,
    pa.bool_(): st.booleans(),
    pa.binary(): st.binary(max_size=2),
}


@st.composite
def cases(draw: st.DrawFn) -> tuple[pa.DataType, list[list[Any]], list[Conjunct]]:
    kind = draw(st.sampled_from(list(KINDS)))
    value = KINDS[kind]
    files = draw(st.lists(st.lists(st.one_of(st.none(), value), max_size=4), max_size=6))
    ops = st.sampled_from([*COMPARE, "in", "is null", "is not null"])
    conjuncts = []
    for op in draw(st.lists(ops, min_size=1, max_size=3)):
        count = 0 if op.startswith("is ") else draw(st.sampled_from([1, 2, 20])) if op == "in" else 1
        conjuncts.append(Conjunct("s.c", op, tuple(draw(st.lists(value, min_size=count, max_size=count)))))  # type: ignore[arg-type]
    return kind, files, conjuncts


def statistics(values: list[Any], kind: pa.DataType, *, nan_free: bool) -> str:
    file = io.BytesIO()
    table = pa.table({"s": pa.array([{"c": v} for v in values], pa.struct([("c", kind)]))})
    pq.write_table(table, file)
    return stats.from_footer(pq.read_metadata(file), nan_free={"s.c"} if nan_free else ())


@pytest.mark.long
@settings(max_examples=4 * settings().max_examples)
@given(cases(), st.booleans())
def test_no_matching_file_is_skipped(case: tuple[pa.DataType, list[list[Any]], list[Conjunct]], loose: bool) -> None:
    kind, files, conjuncts = case
    # As bad writers do, bounds are written although NaN hides in the column.
    texts = [statistics(values, kind, nan_free=True) for values in files]
    if loose:
        texts = [stats.loosen(text) for text in texts]
    kept = may_match(texts, conjuncts, schema=pa.schema([("s", pa.struct([("c", kind)]))]))
    assert len(kept) == len(files)
    for keep, values in zip(kept, files, strict=True):
        assert keep or not any(all(meets(v, c) for c in conjuncts) for v in values)


@pytest.mark.long
@settings(max_examples=4 * settings().max_examples)
@given(cases(), st.booleans())
def test_no_matching_partition_is_skipped(case: tuple[pa.DataType, list[list[Any]], list[Conjunct]], odd: bool) -> None:
    kind, files, conjuncts = case
    if kind == pa.binary():
        files = [[None]]
    values = [v for file in files for v in file]
    texts = [partitions.serialize(v, kind) for v in values]
    given_values = [{"s.c": t} for t in texts] + (
        [{}, {"s.c": "\x00?"}] if odd and kind not in (pa.string(), pa.binary()) else []
    )
    kept = may_match(
        [None] * len(given_values),
        conjuncts,
        schema=pa.schema([("s.c", kind)]),
        partition_values=given_values,
        partition_columns=["s.c"],
    )
    for keep, text in zip(kept, texts, strict=False):
        back = partitions.parse(text, kind).as_py()
        assert keep or not all(meets(back, c) for c in conjuncts)
    assert kept[len(texts) :].all()


def index(*values: dict[str, Any] | str | None, **kinds: pa.DataType) -> FileIndex:
    texts = [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]
    return FileIndex(texts, schema=pa.schema(list(kinds.items())))


def bounds(low: Any, high: Any, nulls: int = 0) -> dict[str, Any]:
    return {"numRecords": 3, "minValues": {"c": low}, "maxValues": {"c": high}, "nullCount": {"c": nulls}}


def kept(files: FileIndex, op: Any, *values: Any) -> list[bool]:
    answer: list[bool] = files.may_match([Conjunct("c", op, values)]).tolist()
    return answer


def test_skipping_does_skip() -> None:
    files = index(bounds(1, 5), bounds(6, 9), bounds(7, 7), bounds(None, None, 3), c=pa.int64())
    assert kept(files, "=", 4) == [True, False, False, False]
    assert kept(files, "<", 6) == [True, False, False, False]
    assert kept(files, "<=", 6) == [True, True, False, False]
    assert kept(files, ">", 7) == [False, True, False, False]
    assert kept(files, ">=", 7) == [False, True, True, False]
    assert kept(files, "!=", 7) == [True, True, False, False]
    assert kept(files, "in", 5, 7) == [True, True, True, False]
    assert kept(files, "in", *range(10, 40)) == [False, False, False, False]
    assert kept(files, "in", 5, *range(10, 40)) == [True, False, False, False]
    assert kept(files, "is null") == [False, False, False, True]
    assert kept(files, "is not null") == [True, True, True, False]
    assert files.may_match([Conjunct("c", ">", (3,)), Conjunct("c", "<", (7,))]).tolist() == [True, True, False, False]
    assert files.may_match([]).tolist() == [True] * 4


@pytest.mark.parametrize(
    ("kind", "low", "high", "above"),
    [
        (pa.float64(), 1.0, 2.0, 3.0),
        (pa.decimal128(10, 2), 1.25, 2.5, Decimal("2.51")),
        (pa.string(), "a", "b", "c"),
        (pa.date32(), "2020-01-01", "2020-01-02", dt.date(2020, 1, 3)),
        (pa.timestamp("us"), "2020-01-01T00:00:00.000", "2020-01-02T00:00:00.000", moment("2020-01-02T00:00:00.002")),
        (
            pa.timestamp("us", "UTC"),
            "2020-01-01T00:00:00.000Z",
            "2020-01-02T00:00:00.000+01:00",
            moment("2020-01-02T00:00:00Z"),
        ),
    ],
    ids=str,
)
def test_every_type_is_skipped_by(kind: pa.DataType, low: Any, high: Any, above: Any) -> None:
    files = index(bounds(low, high), c=kind)
    assert kept(files, "=", above) == [False]
    assert kept(files, "in", *[above] * 30) == [False]
    both = [Conjunct("c", ">=", (above,)), Conjunct("c", "<=", (above,))]
    assert files.may_match(both).tolist() == [False]
    assert kept(files, "<=", above) == [True]


@pytest.mark.parametrize(
    "text",
    [
        None, "", " ", "{}", "nonsense", "[1,2]", "7", '{"numRecords":"3"}', '{"minValues":{"c":9}', '{"maxValues":7}',
        '{"minValues":{"c":{"d":1}}}', '{"minValues":{"c":"9"},"maxValues":{"c":"9"}}', '{"nullCount":{"c":3}}',
        '{"minValues":{"c":true}}', '{"numRecords":3,"nullCount":{"c":1.5}}', '{"minValues":{"c":1e400}}', "{}{}", '"\ud83d"',
    ],
)  # fmt: skip
def test_odd_statistics_keep_the_file_and_spare_the_others(text: str | None) -> None:
    files = index(bounds(1, 5), text, bounds(1, 9), c=pa.int64())
    assert kept(files, "=", 7) == [False, True, True]
    assert kept(files, "is null") == [False, True, False]


@pytest.mark.parametrize(
    ("kind", "low", "high", "literal"),
    [
        (pa.int64(), 1, 5, "7"),
        (pa.int64(), 1, 5, True),
        (pa.int64(), 1, 5, 10**30),
        (pa.int64(), 1, 5, math.nan),
        (pa.int64(), 1, 5, None),
        (pa.int64(), 1, 2**53 + 1, float(2**53 + 2)),
        (pa.string(), "a", "b", 7),
        (pa.string(), "a", "b" * 32, "b" * 40),
        (pa.string(), "a", "b", "\ud83d"),
        (pa.float64(), 1.0, 2.0, math.nan),
        (pa.float64(), 1.0, 2.0, "x"),
        (pa.float64(), 0.1, 0.1, 0.10000000149011612),
        (pa.float32(), 0.1, 0.1, 0.10000000149011612),
        (pa.float64(), 1.0, "NaN", 5.0),
        (pa.float64(), 1.0, "Infinity", 5.0),
        (pa.decimal128(10, 2), 1, 5, math.inf),
        (pa.decimal128(10, 2), 1, 5, Decimal(10) ** 60),
        (pa.date32(), "2020-01-01", "2020-01-02", moment("2020-01-03T05:00:00Z")),
        (pa.date32(), "2020-01-01", "2020-01-02", "2020-01-09"),
        (pa.date32(), "2020-01-01", "+12020-01-02", dt.date(2021, 1, 1)),
        (pa.timestamp("us", "UTC"), "2020-01-01T00:00:00.000Z", "2020-01-01T00:00:00.123Z", moment("2020-01-01T00:00:00.123456Z")),
        (pa.timestamp("us", "UTC"), "2020-01-01T00:00:00.000Z", "2020-01-01T00:00:00.123Z", moment("2020-01-01T09:00:00")),
        (pa.timestamp("us", "UTC"), "2020-01-01T00:00:00.000Z", "2020-01-01T00:00:00.123Z", dt.date(2020, 1, 2)),
        (pa.timestamp("us", "UTC"), "2020-01-01T00:00:00.000Z", "2020-01-01T00:00:00.123Z", "2021-01-01"),
        (pa.binary(), "a", "b", b"z"),
        (pa.bool_(), False, False, True),
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_told_stays(kind: pa.DataType, low: Any, high: Any, literal: Any) -> None:
    files = index(bounds(low, high), c=kind)
    assert kept(files, "=", literal) == [True]
    assert kept(files, "in", literal, literal) == [True]
    assert kept(files, ">=", literal) == [True]


def test_nan_hides_above_the_maximum() -> None:
    files = index(bounds(1.0, 2.0), c=pa.float64())
    assert kept(files, ">", 5.0) == [True]
    assert kept(files, "!=", 1.0) == [True]
    assert files.may_match([Conjunct("c", ">", (5.0,)), Conjunct("c", "<", (9.0,))]).tolist() == [False]


def test_columns_that_are_not_there() -> None:
    files = index(bounds(1, 5), c=pa.int64(), s=pa.struct([("t", pa.int64())]))
    for column in ("nope", "c.x", "s", "s.u", "nope.x"):
        assert files.may_match([Conjunct(column, "=", (9,))]).tolist() == [True]


def test_no_files() -> None:
    assert index(c=pa.int64()).may_match([Conjunct("c", "=", (1,))]).tolist() == []
    assert len(index(c=pa.int64())) == 0


def test_texts_over_several_lines() -> None:
    texts = [json.dumps(bounds(i, i), indent=1) for i in range(1500)]
    files = FileIndex(texts, schema=pa.schema([("c", pa.int64())]))
    assert sum(kept(files, ">=", 1498)) == 2


def test_conjuncts_are_checked() -> None:
    with pytest.raises(InputError, match="op"):
        Conjunct("c", "~", (1,))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="values"):
        Conjunct("c", "=", ())


@pytest.mark.long
def test_a_hundred_thousand_files_are_quick() -> None:
    names = [f"c{i}" for i in range(8)]
    body = '{{"numRecords":9,"minValues":{low},"maxValues":{high},"nullCount":{nulls}}}'
    nulls = json.dumps(dict.fromkeys(names, 0))
    texts = [
        body.format(low=json.dumps(dict.fromkeys(names, i)), high=json.dumps(dict.fromkeys(names, i + 1)), nulls=nulls)
        for i in range(100_000)
    ]
    files = FileIndex(texts, schema=pa.schema([(name, pa.int64()) for name in names]))
    conjuncts = [Conjunct("c1", "=", (500,)), Conjunct("c5", ">", (0,))]
    start = time.process_time()
    assert int(files.may_match(conjuncts).sum()) == 2
    first = time.process_time() - start
    start = time.process_time()
    assert int(files.may_match([Conjunct("c1", "in", tuple(range(0, 100_000, 10)))]).sum()) == 19_999
    again = time.process_time() - start
    assert first < 5 and again < 1  # generous: about 0.4 s and 0.01 s on a quiet machine
