"""JSON in texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings

from headwater.base.errors import ExpressionError
from headwater.sql.expressions import parse

from .nested_data import SCHEMA, TABLE, Differences, lines_of, name_differences, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LINES = lines_of("json")


def test_values(differences: Differences) -> None:
    found = differences(TABLE, _LINES)
    assert not found, "\n".join(found)


def test_names(interpreted: SparkSession) -> None:
    found = name_differences(interpreted, _LINES)
    assert not found, "\n".join(found)


@settings(max_examples=max(2, settings().max_examples // 6), phases=[Phase.generate])
@given(table=tables)
def test_generated_values(differences: Differences, table: pa.Table) -> None:
    found = differences(table, _LINES)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("get_json_object(s, s)", "not a constant"),
        ("get_json_object(s, 'a')", "the JSON path 'a'"),
        ("get_json_object(s, '$.*')", "the JSON path"),
        ("get_json_object(s, '$[*][*]')", "the JSON path"),
        ("get_json_object(s, '$.a b')", "the JSON path"),
        ("from_json(s, s)", "not a constant"),
        ("from_json(s, 'a')", "the schema 'a'"),
        ("from_json(s, 'a float')", "the type float"),
        ("from_json(s, 'a varchar(3)')", "the schema"),
        ("from_json(s, 'a int not null')", "field of a struct type"),
        ("from_json(s, 'map<int, int>')", "map<int,int>"),
        ("from_json(s, 'a binary')", "the type binary"),
        ("from_json(s, 'a int, A int')", "two fields of one name"),
        ("to_json(s)", "to_json() of string"),
        ("to_json(map(date'2024-01-01', 1))", "keys of type date"),
        ("schema_of_json('1')", "schema_of_json()"),
        ('from_json(s, "a int) or (1")', "the schema"),
    ],
)
def test_refused(text: str, what: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text, schema=SCHEMA)
    assert what in caught.value.message
    assert caught.value.hint
