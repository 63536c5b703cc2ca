"""What is not read is refused by its name: classes, modes from before ANSI, other time zones, answers that change."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headwater.base.errors import InputError, SchemaError, UnsupportedError
from headwater.sql.analyzed import plan_of

_ONE: dict[str, Any] = {"class": "Literal", "num-children": 0, "value": "1", "dataType": "integer"}
_TEXT: dict[str, Any] = {"class": "Literal", "num-children": 0, "value": "1", "dataType": "string"}
_DAYS: dict[str, Any] = {"class": "Literal", "num-children": 0, "value": "86400000000", "dataType": "interval day"}
_MIXED: dict[str, Any] = {"class": "Literal", "num-children": 0, "value": "1 days", "dataType": "interval"}
_DAY: dict[str, Any] = {"class": "Literal", "num-children": 0, "value": "2024-01-31", "dataType": "date"}


def _selected(*nodes: dict[str, Any]) -> str:
    alias = {"class": "Alias", "num-children": 1, "name": "x", "exprId": 1}
    project = {"class": "Project", "num-children": 1, "projectList": [[alias, *nodes]]}
    return json.dumps({"format": 1, "plan": [project, {"class": "OneRowRelation", "num-children": 0}]})


def _over(kind: str, *operands: dict[str, Any], **fields: object) -> str:
    return _selected({"class": kind, "num-children": len(operands), **fields}, *operands)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (_over("StrangeFunction", _ONE), "Spark's StrangeFunction"),
        (_over("PythonUDF", _ONE, name="mine"), "the Python function mine()"),
        (_over("Cast", _TEXT, dataType="integer", evalMode="LEGACY"), "outside ANSI mode"),
        (_over("Cast", _TEXT, dataType="integer"), "outside ANSI mode"),
        (_over("Add", _ONE, _ONE, evalMode="LEGACY"), "outside ANSI mode"),
        (_over("Add", _ONE, _ONE), "outside ANSI mode"),
        (_over("UnaryMinus", _ONE, failOnError=False), "outside ANSI mode"),
        (_over("Abs", _ONE, failOnError=False), "failOnError=false"),
        (_over("Cast", _TEXT, dataType="timestamp", evalMode="ANSI", timeZoneId="Asia/Tokyo"), "Asia/Tokyo"),
        (_over("Rand", _ONE), "another answer at each run"),
        (_over("CurrentTimestamp"), "another answer at each run"),
        (_over("EqualTo", _MIXED, _MIXED), "an interval in Spark's EqualTo"),
        (_over("SubtractDates", _DAY, _DAY, legacyInterval=True), "before Spark 3.2"),
        (_selected({**_ONE, "dataType": "variant"}), "Spark's type variant"),
        (_over("Murmur3Hash", _ONE, seed=7), "another seed"),
        (_over("JsonToStructs", _TEXT, schema={"type": "struct", "fields": []}, options="Map(a -> b)"), "with options"),
    ],
)
def test_expressions(text: str, what: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        plan_of(text)
    assert what in caught.value.message
    assert caught.value.hint


def test_an_interval_is_no_column_of_an_answer() -> None:
    with pytest.raises(SchemaError, match="`x` is of type interval day") as caught:
        plan_of(_selected(_DAYS))
    assert caught.value.code == "E1213" and "extract(DAY FROM …)" in str(caught.value.hint)


@pytest.mark.parametrize("kind", ["StrangeNode", "Sample", "LateralJoin", "RebalancePartitions", "InsertIntoCommand"])
def test_plan_nodes(kind: str) -> None:
    with pytest.raises(UnsupportedError, match=f"Spark's plan node {kind}"):
        plan_of(json.dumps({"format": 1, "plan": [{"class": kind, "num-children": 0}]}))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 1}', '{"format": 1, "plan": []}', '{"format": 1, "plan": [{"class": "A"}]}']
)
def test_what_is_no_plan(text: str) -> None:
    with pytest.raises(InputError, match=r"headwater\.spark\.analyzer"):
        plan_of(text)


def test_another_format() -> None:
    with pytest.raises(InputError, match="which this version reads"):
        plan_of('{"format": 2, "plan": []}')
