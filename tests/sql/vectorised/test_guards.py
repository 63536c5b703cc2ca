"""A row that is not reached cannot fail, and of those that fail the first is named."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.base.errors import ExpressionError
from headwater.sql.expressions import parse
from headwater.sql.vectorised import compile_expression

from .agreement import columns_of, difference, run

_TABLE = pa.table(
    {
        "a": pa.array([1, 0, None, 4, 0], pa.int32()),
        "b": pa.array([7, 7, 7, None, 0], pa.int64()),
        "s": pa.array(["1", "x", None, "4", "-"]),
        "flag": pa.array([True, False, None, True, False]),
    }
)
_SAFE = [
    "a <> 0 AND 4 / a > 1",
    "a = 0 OR 4 / a > 1",
    "a <> 0 AND (b / a > 1 OR b % a = 0)",
    "NOT (a = 0 OR a IS NULL) AND b div a > 1",
    "CASE WHEN a <> 0 THEN 4 / a END",
    "CASE WHEN a = 0 THEN -1 WHEN 10 % a = 2 THEN 10 div a ELSE 100 div a END",
    "if(a = 0, 0, 4 % a)",
    "coalesce(b, 1 div a)",
    "coalesce(if(a = 0, 0, NULL), 7 % a, 1)",
    "CASE WHEN s rlike '^[0-9]+$' THEN CAST(s AS int) + 1 END",
    "CASE WHEN s rlike '^[0-9]+$' THEN CAST(CAST(s AS decimal(5,1)) AS string) ELSE s END",
    "s IN ('1', '4') AND CAST(s AS decimal(4,0)) > 1",
    "flag AND conv(s, 10, 16) = '1' OR a IS NULL",
    "CASE WHEN a <> 0 THEN CASE WHEN b % a = 3 THEN b div a ELSE a END + b div a ELSE 0 END",
    "a = 0 OR (1 / a + 1 / a) > 1 AND 1 / a < 3",
    "CASE WHEN FALSE THEN 1 / 0 ELSE 2 END",
    "FALSE AND 1 / 0 > 1",
    "TRUE OR 1 / 0 > 1",
    "CASE WHEN a > 100 THEN make_date(a, 1, 1) ELSE NULL END",
    "nullif(a, 0) IS NULL OR 1 / a > 0",
]


@pytest.mark.parametrize("text", _SAFE)
def test_rows_that_are_not_reached_do_not_fail(text: str) -> None:
    found = difference(text, _TABLE)
    assert found is None, found
    program = compile_expression(parse(text, schema=_TABLE.schema), _TABLE.schema)
    run(program, _TABLE)


@pytest.mark.parametrize(
    ("text", "row", "why"),
    [
        ("1 / a", 1, "division by zero"),
        ("b % a", 1, "remainder by zero"),
        ("CASE WHEN flag THEN 1 ELSE 7 div a END", 1, "division by zero"),
        ("CAST(s AS int) + 1 / b", 1, "a text cannot be cast to int"),
        ("1 / b + CAST(s AS int)", 1, "a text cannot be cast to int"),
        ("b IS NULL OR 1 / b > 0", 4, "division by zero"),
        ("a + 2147483644", 3, "overflow"),
        ("conv(concat('18446744073709551616', s), 10, 16)", 0, "64 bits"),
        ("CASE WHEN a = 4 THEN CAST(concat(s, 'x') AS decimal(5,1)) ELSE 0 END", 3, "decimal"),
    ],
)
def test_the_first_failing_row_is_named(text: str, row: int, why: str) -> None:
    program = compile_expression(parse(text, schema=_TABLE.schema), _TABLE.schema)
    with pytest.raises(ExpressionError) as caught:
        program.run(columns_of(_TABLE), _TABLE.num_rows)
    assert caught.value.code == "E1303" and caught.value.row == row, caught.value
    assert why in caught.value.message and text in str(caught.value)


def test_many_rows_before_the_failing_one() -> None:
    rows = 50_000
    table = pa.table({"a": pa.array([1] * 40_000 + [0] + [1] * (rows - 40_001), pa.int64())})
    for text in (
        "10 % a",
        "make_date(2024, 2, 29 + CAST(1 - a AS int))",
        "if(a = 1, 0, CAST(concat('x', a) AS decimal(5,1)))",
    ):
        program = compile_expression(parse(text, schema=table.schema), table.schema)
        with pytest.raises(ExpressionError) as caught:
            program.run(columns_of(table), rows)
        assert caught.value.row == 40_000


def test_null_over_zero_is_null() -> None:
    table = pa.table(
        {"n": pa.array([None], pa.int32()), "z": pa.array([0], pa.int32()), "q": pa.array([None], pa.decimal128(4, 1))}
    )
    for text in ("n / z", "n % z", "n div z", "q / z", "q % z", "NULL / z"):
        program = compile_expression(parse(text, schema=table.schema), table.schema)
        assert run(program, table).to_pylist() == [None], text
