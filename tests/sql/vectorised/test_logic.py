"""Three values: AND, OR, NOT, IN, BETWEEN and <=> over every pair of true, false and null."""

from __future__ import annotations

import itertools

import pyarrow as pa

from headwater.sql.expressions import parse
from headwater.sql.vectorised import compile_expression

from .agreement import differences, run

_TRUTHS = [True, False, None]
_ROWS = list(itertools.product(_TRUTHS, repeat=3))
_TABLE = pa.table({n: pa.array([r[i] for r in _ROWS], pa.bool_()) for i, n in enumerate("abc")})
_NUMBERS = pa.table({"x": pa.array([1, 2, None, 7, 0], pa.int32()), "y": pa.array([None, 2, None, 3, 0], pa.int32())})


def _and(*values: bool | None) -> bool | None:
    return False if False in values else None if None in values else True


def _or(*values: bool | None) -> bool | None:
    return True if True in values else None if None in values else False


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def test_the_tables_of_truth() -> None:
    expected = {
        "a AND b": [_and(a, b) for a, b, _ in _ROWS],
        "a OR b": [_or(a, b) for a, b, _ in _ROWS],
        "NOT a": [_not(a) for a, _, _ in _ROWS],
        "a AND b AND c": [_and(*r) for r in _ROWS],
        "a OR b OR c": [_or(*r) for r in _ROWS],
        "(a OR NOT b) AND (c OR NOT a)": [_and(_or(a, _not(b)), _or(c, _not(a))) for a, b, c in _ROWS],
        "a AND NULL": [_and(a, None) for a, _, _ in _ROWS],
        "NULL OR a": [_or(a, None) for a, _, _ in _ROWS],
        "a <=> b": [a is b for a, b, _ in _ROWS],
        "a IS NULL": [a is None for a, _, _ in _ROWS],
        "a IS NOT NULL AND b": [_and(a is not None, b) for a, b, _ in _ROWS],
        "CASE WHEN a THEN b WHEN b THEN c ELSE a END": [b if a else c if b else a for a, b, c in _ROWS],
        "coalesce(a, b, c)": [a if a is not None else b if b is not None else c for a, b, c in _ROWS],
        "a IN (b, c)": [_or(_same(a, b), _same(a, c)) for a, b, c in _ROWS],
    }
    for text, values in expected.items():
        program = compile_expression(parse(text, schema=_TABLE.schema), _TABLE.schema)
        assert program.native and run(program, _TABLE).to_pylist() == values, text


def _same(a: bool | None, b: bool | None) -> bool | None:
    return None if a is None or b is None else a is b


def test_membership() -> None:
    items = ["1", "1, 2", "1, 2, 7, 9, 11", "1, NULL", "1, 2, 7, 9, NULL", "y", "y, 1", "NULL", "y, NULL, 7"]
    texts = [f"x {word} ({i})" for word in ("IN", "NOT IN") for i in items]
    texts += [f"{v} IN (x, y)" for v in ("1", "NULL", "2")] + [
        "NULL IN (1, 2)",
        "1 IN (1, 2)",
        "x IN (1.5, 2.0)",
        "x IN ('1', '7')",
    ]
    texts += [
        "x BETWEEN y AND 5",
        "x NOT BETWEEN 1 AND y",
        "x <=> y",
        "x <=> NULL",
        "NULL <=> NULL",
        "x IS DISTINCT FROM y",
    ]
    found = differences(texts, _NUMBERS)
    assert not found, "\n".join(found)
