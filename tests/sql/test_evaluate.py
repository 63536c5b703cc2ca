"""Evaluation over Arrow: shapes, order, failures in plain words."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import duckdb
import pyarrow as pa
import pytest

from headwater.base.errors import ExpressionError
from headwater.sql import expressions
from headwater.sql.expressions import evaluate, failure, parse

_TABLE = pa.table({"a": pa.array([1, 0, None, 4], pa.int32()), "s": ["x", "y", None, "ß"]})


def _values(text: str, table: pa.Table | pa.RecordBatch = _TABLE) -> list[object]:
    values: list[object] = evaluate(parse(text, schema=table.schema), table).to_pylist()
    return values


def test_values_stand_in_the_tables_order() -> None:
    big = pa.table({"a": pa.array(range(300_000), pa.int32())})
    assert _values("a * 2", big) == list(range(0, 600_000, 2))


def test_a_batch_is_a_table() -> None:
    assert _values("a = 4", _TABLE.to_batches()[0]) == [False, False, None, True]


def test_no_column_is_needed() -> None:
    assert _values("1 = 1") == [True] * 4
    assert _values("a", _TABLE.slice(0, 0)) == []


def test_the_type_is_sparks() -> None:
    for text, dtype in [("a", pa.int32()), ("a + 1L", pa.int64()), ("a / 2", pa.float64()), ("null", pa.null())]:
        assert evaluate(parse(text, schema=_TABLE.schema), _TABLE).type == dtype


def test_texts_in_other_layouts_are_texts() -> None:
    table = pa.table({"s": pa.array(["a", "b"], pa.large_string()), "k": pa.array(["a", "b"]).dictionary_encode()})
    assert _values("s = k AND s = 'a'", table) == [True, False]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1 / a", "division by zero"),
        ("a % a", "remainder by zero"),
        ("a + 2147483647", "overflow"),
        ("cast(a + 126 as tinyint)", "overflow"),
        ("cast(s as int)", "a text cannot be cast to int"),
        ("mask(s)", "outside ASCII"),
    ],
)
def test_failures_say_why_in_plain_words(text: str, why: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        _values(text)
    assert caught.value.code == "E1303"
    assert why in caught.value.message
    assert "SELECT" not in str(caught.value) and "Error:" not in caught.value.message


def test_guards_are_kept() -> None:
    assert _values("a <> 0 AND 4 / a > 1") == [True, False, None, False]
    assert _values("a = 0 OR 4 / a > 1") == [True, True, None, False]
    assert _values("CASE WHEN a <> 0 THEN 4 / a END") == [4.0, None, None, 1.0]
    assert _values("if(a = 0, 0, 4 % a)") == [0, 0, None, 0]


def test_null_divided_by_zero_is_null() -> None:
    table = pa.table({"a": pa.array([None], pa.int32()), "z": pa.array([0], pa.int32())})
    assert _values("a / z", table) == [None]
    assert _values("a % z", table) == [None]


def test_a_connection_of_ones_own() -> None:
    with duckdb.connect() as con:
        con.execute("SET TimeZone = 'America/New_York'")
        expression = parse("cast(timestamp'2024-01-01 01:00:00' as date) = '2024-01-01'", schema=_TABLE.schema)
        assert evaluate(expression, _TABLE, con).to_pylist() == [True] * 4


def test_several_tables_need_a_query() -> None:
    schemas = {"t": _TABLE.schema, "s": _TABLE.schema}
    assert evaluate(parse("s.a = 1", schema=schemas), _TABLE).to_pylist() == [True, False, None, False]
    with pytest.raises(ExpressionError, match="several tables"):
        evaluate(parse("s.a = t.a", schema=schemas), _TABLE)


def test_threads_do_not_meet() -> None:
    def one(n: int) -> list[object]:
        return _values(f"a + {n}")

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, range(40))) == [[1 + n, n, None, 4 + n] for n in range(40)]


def test_an_engines_error_is_never_dumped() -> None:
    why = failure("a", duckdb.BinderException("Binder Error: secret\nLINE 1: SELECT secret")).message
    assert "secret" not in why


def test_exports_are_exact() -> None:
    assert sorted(expressions.__all__) == expressions.__all__
    assert all(hasattr(expressions, name) for name in expressions.__all__)
