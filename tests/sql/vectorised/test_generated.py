"""Expressions and rows that nobody thought of: extremes, NaN, both zeros, nulls, texts beyond ASCII."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.sql.test_generated import _EXPRESSIONS, _SCHEMA, _tables

from headwater.base.errors import ExpressionError
from headwater.sql.expressions import parse

from .agreement import difference


@pytest.mark.long
@settings(
    max_examples=max(6, settings().max_examples // 4),
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(table=_tables(), texts=_EXPRESSIONS)
def test_programs_give_what_duckdb_gives(table: pa.Table, texts: list[str]) -> None:
    for text in dict.fromkeys(texts):
        try:
            expression = parse(text, schema=_SCHEMA)
        except ExpressionError:
            continue
        found = difference(text, table, expression)
        assert found is None, found
