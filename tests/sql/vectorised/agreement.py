"""Programs against DuckDB's path, which is held against Spark: the same type, the same values bit by bit, an error for the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from tests.sql.batched import evaluate_all
from tests.sql.conftest import _answers

from headwater.base.errors import ExpressionError
from headwater.sql.expressions import Expression, evaluate, parse
from headwater.sql.vectorised import Program, Vector, compile_expression, vector_of

FAILED = "failed"


def columns_of(table: pa.Table) -> list[Vector]:
    """The table's columns as a circuit would hold them: strided where they can be, and read-only."""
    return [awkward(vector_of(c)) for c in table.columns]


def awkward(vector: Vector) -> Vector:
    """The same vector in every second place of a longer array, with nonsense under its nulls, and locked."""
    values, valid = vector.values, vector.valid
    if isinstance(values, np.ndarray) and len(values):
        wide = np.zeros(2 * len(values), values.dtype)
        wide[::2] = values
        wide[1::2] = 1
        if valid is not None and values.dtype == np.int64:
            wide[::2][~valid] = np.iinfo(np.int64).min
        values = wide[::2]
        values.flags.writeable = False
    if valid is not None and len(valid):
        spread = np.repeat(valid, 2)
        valid = spread[::2]
        valid.flags.writeable = False
    return Vector(vector.dtype, values, valid)


def run(program: Program, table: pa.Table) -> pa.Array:
    return program.run(columns_of(table), table.num_rows).to_arrow()


def _here(program: Program, table: pa.Table) -> list[object]:
    try:
        found = run(program, table)
        found.validate(full=True)
        assert found.type == program.dtype, (found.type, program.dtype)
        return _answers(pa.chunked_array([found]))
    except ExpressionError as error:
        assert error.code == "E1303" and error.row is not None
        if table.num_rows == 1:
            return [FAILED]
        # The rows before the one it names pass, and that row fails alone.
        before = _here(program, table.slice(0, error.row)) if error.row else []
        assert FAILED not in before, f"row {error.row} is not the first that fails"
        after = table.slice(error.row + 1)
        return [*before, *_here(program, table.slice(error.row, 1)), *(_here(program, after) if len(after) else [])]


def _there(expressions: Sequence[Expression], table: pa.Table) -> list[list[object]]:
    """DuckDB's answers."""
    found = evaluate_all(expressions, table, _answers)
    return [[FAILED if isinstance(v, ExpressionError) else v for v in values] for values in found]


def difference(text: str, table: pa.Table, expression: Expression | None = None) -> str | None:
    """Where a program and DuckDB's path differ over a table, or None."""
    expression = parse(text, schema=table.schema) if expression is None else expression
    return _difference(expression, table, _there([expression], table)[0])


def _difference(expression: Expression, table: pa.Table, there: list[object]) -> str | None:
    program = compile_expression(expression, table.schema)
    here = _here(program, table)
    if here == there:
        return None
    row = next(i for i, (a, b) in enumerate(zip(here, there, strict=True)) if a != b)
    return f"{expression.text}\n  row {row}: {table.slice(row, 1).to_pylist()}\n  here:   {here[row]!r}\n  duckdb: {there[row]!r}\n{program.explain()}"


def differences(texts: Iterable[str], table: pa.Table) -> list[str]:
    known = []
    for text in dict.fromkeys(texts):
        try:
            known.append(parse(text, schema=table.schema))
        except ExpressionError:
            continue  # some lines of the tables are for whole queries
    answers = zip(known, _there(known, table), strict=True)
    return [one for expression, there in answers if (one := _difference(expression, table, there)) is not None]


__all__ = ["FAILED", "awkward", "columns_of", "difference", "differences", "evaluate", "run"]
