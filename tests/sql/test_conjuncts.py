"""What a condition says about single columns, and which columns a merge joins by."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.sql.expressions import Conjunct, evaluate, parse, parse_condition

_SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("L", pa.int64()),
        ("d", pa.float64()),
        ("p", pa.decimal128(10, 2)),
        ("s", pa.string()),
        ("day", pa.date32()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("st", pa.struct([("x", pa.int32())])),
    ]
)


def _found(text: str) -> list[tuple[str, str, tuple[object, ...]]]:
    return [(c.column, c.op, c.values) for c in parse_condition(text, schema=_SCHEMA).conjuncts()]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("i > 5", [("i", ">", (5,))]),
        ("5 > i", [("i", "<", (5,))]),
        ("5 <= I", [("i", ">=", (5,))]),
        ("l = 5", [("L", "=", (5,))]),
        ("i = 5L and (s <> 'x' and s is not null)", [("i", "=", (5,)), ("s", "!=", ("x",)), ("s", "is not null", ())]),
        ("not (s = 'x')", [("s", "!=", ("x",))]),
        ("i between 1 and 3", [("i", ">=", (1,)), ("i", "<=", (3,))]),
        ("i in (1, 2, null)", [("i", "in", (1, 2))]),
        ("i is null", [("i", "is null", ())]),
        ("st is null", [("st", "is null", ())]),
        ("i > 2.5", [("i", ">", (Decimal("2.5"),))]),
        ("i = '7'", [("i", "=", (7,))]),
        ("p < 5", [("p", "<", (Decimal("5.00"),))]),
        ("day >= '2024-02-29'", [("day", ">=", (date(2024, 2, 29),))]),
        ("ts < '2024-02-29 01:00:00+02:00'", [("ts", "<", (datetime(2024, 2, 28, 23, tzinfo=UTC),))]),
        ("d < 5", [("d", "<", (5.0,))]),
        ("d = 5", [("d", "=", (5.0,))]),
    ],
)
def test_found(text: str, want: list[tuple[str, str, tuple[object, ...]]]) -> None:
    assert _found(text) == want


@pytest.mark.parametrize(
    "text",
    [
        "i > 5 or s = 'x'",
        "not (i > 5)",
        "i + 1 > 5",
        "i = L",
        "st.x = 1",
        "d > 5",  # a NaN is greater than 5 and in no statistics
        "d >= 5",
        "d <> 5",
        "i = null",
        "i <=> 5",
        "L > 2.5D",  # a long does not fit a double
        "s like 'a%'",
        "1 = 1",
        "not i in (1, 2)",
        "upper(s) = 'X'",
        "ts > day",
        "i in (1, L)",
    ],
)
def test_nothing_is_claimed(text: str) -> None:
    assert _found(text) == []


@given(
    st.lists(st.none() | st.integers(-4, 4), min_size=1, max_size=6),
    st.lists(
        st.sampled_from(["i > 0", "i < 3", "2 >= i", "i in (1, 2)", "i between -1 and 2", "i != 1", "i is null"]),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([" AND ", " OR "]),
)
def test_a_true_row_makes_every_conjunct_true(values: list[int | None], parts: list[str], word: str) -> None:
    table = pa.table({"i": pa.array(values, pa.int32())})
    expression = parse(word.join(parts), schema=table.schema)
    for value, keep in zip(values, evaluate(expression, table).to_pylist(), strict=True):
        if keep:
            assert all(_holds(c, value) for c in expression.conjuncts())


def _holds(conjunct: Conjunct, value: int | None) -> bool:
    if conjunct.op == "is null":
        return value is None
    if value is None:
        return False
    (*_, bound) = conjunct.values
    assert isinstance(bound, int)
    return {
        "=": value == bound,
        "!=": value != bound,
        "<": value < bound,
        "<=": value <= bound,
        ">": value > bound,
        ">=": value >= bound,
        "in": value in conjunct.values,
    }[conjunct.op]


def test_aliases_are_kept() -> None:
    one = pa.schema([("id", pa.int64()), ("v", pa.int32())])
    expression = parse("t.id = s.ID AND t.v > 3 AND s.v = t.v AND s.id > 1", schema={"t": one, "s": one})
    assert expression.equalities("t", "s") == [("id", "id"), ("v", "v")]
    assert expression.equalities("s", "t") == [("id", "id"), ("v", "v")]
    assert [(c.alias, c.column) for c in expression.conjuncts()] == [("t", "v"), ("s", "id")]


def test_keys_of_different_width_still_join() -> None:
    schemas = {"t": pa.schema([("id", pa.int64())]), "s": pa.schema([("key", pa.int32())])}
    assert parse("s.key = t.id", schema=schemas).equalities("t", "s") == [("id", "key")]


@pytest.mark.parametrize("text", ["t.id = s.id OR t.id = 1", "t.id <=> s.id", "t.id + 1 = s.id", "t.id = t.id"])
def test_no_key(text: str) -> None:
    one = pa.schema([("id", pa.int64())])
    assert parse(text, schema={"t": one, "s": one}).equalities("t", "s") == []


def test_nan_is_no_bound() -> None:
    node = parse("d = 1", schema=_SCHEMA)
    assert not any(isinstance(v, float) and math.isnan(v) for c in node.conjuncts() for v in c.values)
