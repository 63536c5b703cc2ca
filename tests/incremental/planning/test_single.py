"""A scalar subquery may give one row; with two the step does not happen."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.base.errors import ExpressionError

from .views import circuit_of, rows_of

SCHEMAS = {"a": pa.schema([("k", pa.int32())]), "b": pa.schema([("k", pa.int32()), ("v", pa.int32())])}
TEXT = "SELECT k, (SELECT b.v FROM b WHERE b.k = a.k) AS v FROM a"


def _rows(name: str, *rows: tuple[int, ...]) -> pa.Table:
    names = SCHEMAS[name].names
    return pa.Table.from_pylist([dict(zip(names, r, strict=True)) for r in rows], schema=SCHEMAS[name])


@pytest.mark.parametrize("text", [TEXT, "SELECT k, (SELECT v FROM b) AS v FROM a"])
def test_a_second_row_stops_the_step(text: str) -> None:
    circuit = circuit_of(text, SCHEMAS)
    rows_of(circuit, a=_rows("a", (1,)), b=_rows("b", (1, 10)))
    with pytest.raises(ExpressionError, match="more than one row"):
        rows_of(circuit, b=_rows("b", (1, 11)))
    swapped = pa.table({"k": [1, 1], "v": [10, 11], "_weight": [-1, 1]})
    assert [(r["v"], r["_weight"]) for r in rows_of(circuit, b=swapped)] == [(10, -1), (11, 1)]


def test_another_key_may_have_a_row_of_its_own() -> None:
    circuit = circuit_of(TEXT, SCHEMAS)
    rows_of(circuit, b=_rows("b", (1, 10), (2, 20)))
    assert rows_of(circuit, a=_rows("a", (2,), (3,))) == [
        {"k": 2, "v": 20, "_weight": 1},
        {"k": 3, "v": None, "_weight": 1},
    ]
