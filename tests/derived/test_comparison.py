"""Comparing: floats may differ in their last digits, and nothing else may; what differs is counted, and some of it kept."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headwater.base import events, settings
from headwater.base.errors import SchemaError, SetupError
from headwater.base.frontier import Frontier
from headwater.derived.comparison import ENGINE_BYTES, EXAMPLES, Limits, compare

AT = Frontier(t=1)


def equal(expected: dict[str, list[object]], actual: dict[str, list[object]]) -> bool:
    one = pa.table(expected)
    return compare(AT, expected=one, actual=pa.table(actual, schema=one.schema)).equal


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (0.1 + 0.2, 0.3, True),
        (1e300, 1e300 * (1 + 1e-12), True),
        (1.0, 1.0000001, False),
        (math.nan, math.nan, True),
        (0.0, -0.0, True),
        (math.inf, math.inf, True),
        (math.inf, -math.inf, False),
        (0.0, 1e-300, False),
        (None, 0.0, False),
    ],
)
def test_floats(one: float | None, other: float | None, same: bool) -> None:
    assert equal({"k": ["a", "b"], "x": [one, 2.0]}, {"k": ["b", "a"], "x": [2.0, other]}) == same


def test_other_columns_are_exact() -> None:
    assert not equal({"k": ["a"], "x": [1.0]}, {"k": ["b"], "x": [1.0]})
    assert not equal({"k": ["a", "a"], "x": [1.0, 1.0]}, {"k": ["a"], "x": [1.0]})
    assert not equal({"n": [1]}, {"n": [2]})
    assert equal({"x": [0.1 + 0.2, 5.0], "y": [1.0, 0.7]}, {"x": [5.0, 0.3], "y": [0.7, 1.0]})


def test_what_differs_is_told() -> None:
    found = compare(
        AT, expected=pa.table({"k": [1, 2], "x": [0.3, 2.0]}), actual=pa.table({"k": [1, 2], "x": [0.1 + 0.2, 3.0]})
    )
    assert found.missing.rows.to_pylist() == [{"k": 2, "x": 2.0}]
    assert found.extra.rows.to_pylist() == [{"k": 2, "x": 3.0}]


def test_columns_are_matched_by_name_and_encodings_make_no_difference() -> None:
    one = pa.table({"k": ["a", "b"], "x": [1.5, None]})
    other = pa.table({"x": [None, 1.5], "k": pa.array(["b", "a"]).dictionary_encode()})
    assert compare(AT, expected=one, actual=other).equal


@pytest.mark.parametrize("other", [pa.table({"k": [1]}), pa.table({"n": ["1"]}), pa.table({"n": [1], "m": [1]})])
def test_other_columns_and_types_are_an_error(other: pa.Table) -> None:
    with pytest.raises(SchemaError):
        compare(AT, expected=pa.table({"n": [1]}), actual=other)


def test_nothing_equals_nothing() -> None:
    none = pa.schema([("n", pa.int64()), ("x", pa.float64())]).empty_table()
    assert compare(AT, expected=none, actual=none).equal
    assert compare(AT, expected=none, actual=pa.table({"n": [1], "x": [None]}, none.schema)).extra_rows == 1


def test_what_differs_is_counted_and_some_of_it_is_kept() -> None:
    one, other = pa.table({"n": range(5_000)}), pa.table({"n": range(2_000, 9_000)})
    found = compare(AT, expected=one, actual=other)
    assert (found.missing_rows, found.extra_rows) == (2_000, 4_000)
    assert found.missing.num_rows == found.extra.num_rows == EXAMPLES
    assert set(found.missing.rows["n"].to_pylist()) < set(range(2_000))
    assert set(found.extra.rows["n"].to_pylist()) < set(range(5_000, 9_000))
    few = compare(AT, expected=one, actual=other, limits=Limits(difference_bytes=1, examples=3))
    assert (few.missing_rows, few.extra_rows, few.missing.num_rows) == (2_000, 4_000, 3)


@pytest.mark.long
def test_many_floats_are_sorted_and_some_of_what_differs_is_kept() -> None:
    numbers = [i + 0.5 for i in range(3_000)]
    one = pa.table({"k": [i % 3 for i in range(3_000)], "x": numbers})
    other = pa.table(
        {"k": [i % 3 for i in range(3_000)], "x": [x * (1 + 4e-10) + (i == 2_999) for i, x in enumerate(numbers)]}
    )
    found = compare(AT, expected=one, actual=other, limits=Limits(difference_bytes=1, paired_bytes=0))
    assert found.missing.to_arrow().to_pylist() == [{"k": 2, "x": 2999.5, "_weight": 1}]
    assert (found.missing_rows, found.extra_rows) == (1, 1)


def test_only_partitions_that_differ_are_read_row_by_row() -> None:
    rows = 300_000
    one = pa.table({"n": range(rows)})
    found = compare(AT, expected=one, actual=one.slice(1))
    assert (found.partitions, found.exact_partitions) == (32, 1) and found.missing_rows == 1
    assert str(found) == (
        "differs at t@1: 1 missing, 0 too many (299,999 rows in 32 partitions, 1 of them compared row by row)"
    )
    assert compare(AT, expected=one, actual=one).exact_partitions == 0


def test_last_digits_of_floats_are_mostly_settled_by_digests() -> None:
    rng = np.random.default_rng(5)
    x = rng.random(200_000) * 1e6
    x[0] = np.nextafter(
        1 + 2.0**-30, 0
    )  # the next number is on the other side of a border, and in the same cell of the other grid
    one, other = (pa.table({"k": range(len(x)), "x": v}) for v in (x, np.nextafter(x, np.inf)))
    found = compare(AT, expected=one, actual=other)
    assert found.equal and found.exact_partitions == 0


def test_both_sides_are_read_again_only_where_they_differ() -> None:
    calls = []

    def side(name: str, numbers: list[int]) -> Callable[[], pa.RecordBatchReader]:
        def read() -> pa.RecordBatchReader:
            calls.append(name)
            return pa.table({"n": numbers}).to_reader()

        return read

    assert compare(AT, expected=side("e", [1, 2]), actual=side("a", [2, 1])).equal
    assert calls == ["e", "a"]
    assert not compare(AT, expected=side("e", [1, 2]), actual=side("a", [2, 2])).equal
    assert sorted(calls[2:]) == ["a", "a", "e", "e"]


def test_a_recomputation_that_needs_more_memory_gets_it() -> None:
    limits = []

    def read() -> pa.RecordBatchReader:
        limits.append(settings.current().memory_limit_bytes)
        if settings.current().memory_limit_bytes == ENGINE_BYTES:
            raise SetupError.out_of_memory(ENGINE_BYTES)
        return pa.table({"n": [1]}).to_reader()

    assert compare(AT, expected=read, actual=pa.table({"n": [1]})).equal
    assert limits == [ENGINE_BYTES, 0]
    with settings.override(memory_limit_bytes=123 << 20):
        assert compare(AT, expected=read, actual=pa.table({"n": [1]})).equal
    assert limits[2:] == [123 << 20], "a limit that somebody has set is the limit"


def test_progress_is_counted_in_rows() -> None:
    seen: list[events.Event] = []
    one = pa.table({"n": range(1_000)})
    with events.subscribe(seen.append):
        compare(AT, expected=one, actual=one, name="spend")
        compare(AT, expected=one, actual=one.slice(1), name="spend")
    ends = [e for e in seen if e.kind == "end"]
    assert [(e.task, e.done, e.total) for e in ends] == [("verify spend", 2_000, 2_000), ("verify spend", 1_999, 1_999)]
    assert any(e.kind == "note" and "1 of 1 partitions" in e.text for e in seen)


@pytest.mark.long
def test_files_are_gone_afterwards(tmp_path: Path) -> None:
    one, other = pa.table({"x": [float(i) for i in range(500)]}), pa.table({"x": [i + 0.5 for i in range(500)]})
    with settings.override(spill_dir=tmp_path):
        found = compare(AT, expected=one, actual=other, limits=Limits(difference_bytes=1, paired_bytes=0))
        assert found.missing_rows == 500 and not list(tmp_path.iterdir())
        with pytest.raises(ZeroDivisionError):
            compare(AT, expected=one, actual=failing(other), limits=Limits(difference_bytes=1))
    assert not list(tmp_path.iterdir())


def failing(rows: pa.Table) -> Callable[[], pa.RecordBatchReader]:
    """Rows that can be read once, and break off the second time."""
    times = []

    def read() -> pa.RecordBatchReader:
        times.append(1)
        return pa.RecordBatchReader.from_batches(rows.schema, broken() if len(times) > 1 else iter(rows.to_batches()))

    def broken() -> Iterator[pa.RecordBatch]:
        yield from rows.to_batches()
        yield rows.to_batches()[1 // 0]

    return read


def test_a_verification_is_shown_in_every_form() -> None:
    one = pa.table({"k": ["a", "b"], "day": [date(2024, 1, 2), None]})
    found = compare(AT, expected=one, actual=one.slice(1))
    assert json.loads(json.dumps(found.as_dict())) == {
        "equal": False,
        "frontier": {"t": 1},
        "rows": 1,
        "expected_rows": 2,
        "missing_rows": 1,
        "extra_rows": 0,
        "partitions": 1,
        "exact_partitions": 1,
        "missing": [{"row": {"k": "a", "day": "2024-01-02"}, "times": 1}],
        "extra": [],
        "behind": [],
    }
    shown = found._repr_html_()
    assert "1, 2 expected" in shown and "2024" in shown and "1 missing, 0 too many" in shown
    many = compare(
        AT, expected=pa.table({"n": range(3_000)}), actual=pa.table({"n": range(0)}, pa.schema([("n", pa.int64())]))
    )
    assert "3,000 rows in all" in many._repr_html_() and len(many.as_dict()["missing"]) == 10  # type: ignore[arg-type]
