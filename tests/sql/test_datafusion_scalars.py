"""Expressions on DataFusion, row by row and bit by bit: Spark's value, or an error, or a refusal."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings

from headwater.base.errors import ExpressionError
from headwater.base.schema import spark_type

from .conftest import _answers, _spark_answers, fixture_lines
from .datafusion_here import answer
from .test_generated import _EXPRESSIONS, _accepted, _tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def _ours(text: str, table: pa.Table) -> tuple[str, list[object]]:
    """The type and the values here, row by row where the whole fails; an error stands for a row that fails."""
    try:
        column = answer(f"select {text} as c from x", {"x": table}).column(0)
    except ExpressionError as error:
        if error.code == "E1305":
            raise
        if table.num_rows == 1:
            return "", [error]
        parts = [_ours(text, table.slice(i, 1)) for i in range(table.num_rows)]
        return max(kind for kind, _ in parts), [v for _, values in parts for v in values]
    return "void" if pa.types.is_null(column.type) else spark_type(column.type), _answers(column)


def _compare(
    session: SparkSession, table: pa.Table, texts: Sequence[str], *, types: bool = True
) -> tuple[list[str], list[str], list[str]]:
    """The texts that are equal on every row that does not fail, those that are refused, and the differences."""
    asked: list[tuple[str, str, list[object], str]] = []
    refused = []
    for text in dict.fromkeys(texts):
        try:
            kind, ours = _ours(text, table)
        except ExpressionError:
            refused.append(text)
            continue
        failing = [str(i) for i, v in enumerate(ours) if isinstance(v, ExpressionError)]
        guard = f"CASE WHEN row_number_ NOT IN ({', '.join(failing)}) THEN ({text}) END" if failing else f"({text})"
        asked.append((text, kind, ours, guard))
    numbered = table.append_column("row_number_", pa.array(range(table.num_rows), pa.int32()))
    df = session.createDataFrame(numbered).coalesce(1)
    equal, different = [], []
    for (text, kind, ours, _), (theirs, values) in zip(asked, _spark_answers(df, [a[3] for a in asked]), strict=True):
        shown = [None if isinstance(v, ExpressionError) else v for v in ours]
        if shown == values and (not types or kind in ("", theirs)):
            equal.append(text)
        else:
            different.append(f"{text}\n  spark: {theirs} {values}\n  here:  {kind} {ours}")
    return equal, refused, different


@pytest.mark.parametrize(("fixture", "least"), [("agrees.sql", 340), ("functions.sql", 190)])
def test_expressions_give_sparks_values_or_are_refused(
    interpreted: SparkSession, extremes: pa.Table, fixture: str, least: int
) -> None:
    equal, refused, different = _compare(interpreted, extremes, fixture_lines(fixture))
    assert not different, "\n".join(different)
    assert len(equal) >= least, f"{len(equal)} equal; refused: {refused}"


@settings(max_examples=max(2, settings().max_examples // 8), phases=[Phase.generate])
@given(table=_tables(), texts=_EXPRESSIONS)
def test_generated_expressions_give_sparks_values(interpreted: SparkSession, table: pa.Table, texts: list[str]) -> None:
    # Types are not the engine's doing, and are compared by test_generated.
    _, _, different = _compare(interpreted, table, [t for t in texts if _accepted(t)], types=False)
    assert not different, "\n".join(different)


@pytest.fixture(scope="module")
def edge() -> pa.Table:
    """One row at the edge of every type."""
    return pa.table(
        {
            "i8": pa.array([127], pa.int8()),
            "i8n": pa.array([-128], pa.int8()),
            "i": pa.array([2**31 - 1], pa.int32()),
            "zero": pa.array([0], pa.int32()),
            "l": pa.array([2**63 - 1], pa.int64()),
            "ln": pa.array([-(2**63)], pa.int64()),
            "d": pa.array([1e300], pa.float64()),
            "nan": pa.array([float("nan")], pa.float64()),
            "p": pa.array([Decimal("999.95")], pa.decimal128(5, 2)),
            "s": pa.array(["x1"]),
        }
    )


def test_what_fails_in_spark_fails_here(edge: pa.Table, failing: list[str]) -> None:
    passed = []
    for text in failing:
        try:
            passed.append((text, answer(f"select {text} as c from x", {"x": edge}).to_pylist()))
        except ExpressionError as error:
            assert error.code in ("E1305", "E1308"), text
    assert not passed


def test_what_fails_in_a_condition_fails_there_too(edge: pa.Table, failing: list[str]) -> None:
    for text in failing:
        with pytest.raises(ExpressionError):
            answer(f"select 1 from x where ({text}) is not null", {"x": edge})
