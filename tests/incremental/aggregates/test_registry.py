"""Names, types and refusals."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from headwater.base.errors import ExpressionError, HeadwaterError, NotFoundError
from headwater.incremental.aggregates.general import UserGeneral
from headwater.incremental.aggregates.registry import NAMES, aggregation
from headwater.incremental.layout import Order
from headwater.incremental.operators.aggregate import Aggregate
from headwater.sql.functions.catalogue import AGGREGATES

from .histories import SCHEMA, Source


@pytest.mark.parametrize(
    ("function", "columns", "dtype"),
    [
        ("count", (), pa.int64()),
        ("sum", "i", pa.int64()),
        ("sum", "f", pa.float64()),
        ("sum", "p", pa.decimal128(20, 2)),
        ("sum", "q", pa.decimal128(38, 4)),
        ("avg", "i", pa.float64()),
        ("avg", "p", pa.decimal128(14, 6)),
        ("avg", "q", pa.decimal128(34, 8)),
        ("max", "i", pa.int8()),
        ("min_by", ("s", "d"), pa.string()),
        ("bit_or", "i", pa.int8()),
        ("stddev", "q", pa.float64()),
        ("mode", "e", pa.date32()),
        ("collect_set", "s", pa.list_(pa.field("element", pa.string()))),
        ("every", "b", pa.bool_()),
        ("approx_count_distinct", "s", pa.int64()),
    ],
)
def test_types_are_sparks(function: str, columns: Any, dtype: pa.DataType) -> None:
    assert aggregation(function, columns, schema=SCHEMA).field.type == dtype


@pytest.mark.parametrize(
    ("function", "columns", "more", "code"),
    [
        ("sum", "s", {}, "E1305"),
        ("sum", "t", {}, "E1305"),
        ("avg", "b", {}, "E1305"),
        ("count_if", "v", {}, "E1305"),
        ("every", "s", {}, "E1305"),
        ("bit_and", "d", {}, "E1305"),
        ("stddev", "s", {}, "E1305"),
        ("mode", "d", {}, "E1305"),
        ("median", "s", {}, "E1305"),
        ("approx_percentile", "s", {"share": 0.5}, "E1305"),
        ("listagg", "v", {}, "E1305"),
        ("collect_set", "d", {}, "E1305"),
        ("collect_list", "v", {"distinct": True, "order": [Order("t")]}, "E1305"),
        ("sum", ("v", "n"), {}, "E1305"),
        ("count", (), {"distinct": True}, "E1311"),
        ("summ", "v", {}, "E1311"),
        ("percentile", "v", {}, "E1311"),
        ("regr_avgx", ("v", "d"), {}, "E1305"),
    ],
)
def test_what_is_not_taken(function: str, columns: Any, more: dict[str, Any], code: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        aggregation(function, columns, schema=SCHEMA, **more)
    assert caught.value.code == code
    assert caught.value.hint


def test_unknown_columns_and_conditions_that_are_none() -> None:
    with pytest.raises(NotFoundError, match="vv"):
        aggregation("sum", "vv", schema=SCHEMA)
    with pytest.raises(NotFoundError, match="ww"):
        aggregation("sum", "v", schema=SCHEMA, where="ww")
    with pytest.raises(NotFoundError, match="tt"):
        aggregation("first", "v", schema=SCHEMA, order=[Order("tt")])
    with pytest.raises(HeadwaterError, match="boolean"):
        aggregation("sum", "v", schema=SCHEMA, where="v")


def test_every_aggregate_of_the_catalogue_is_known_here_or_named() -> None:
    windows = {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead", "nth_value"}
    plain = {name for name, f in AGGREGATES.items() if f.kind == "aggregate"} - windows
    assert plain - set(NAMES) == {"regr_avgx", "regr_avgy"} | {
        f"bitmap_{kind}_agg" for kind in ("and", "construct", "or")
    }


def test_states_have_different_names() -> None:
    by = [Order("n")]
    made = [
        aggregation("min_by", ("v", "n"), schema=SCHEMA, name="a"),
        aggregation("first", "v", schema=SCHEMA, name="b", order=by),
        aggregation("first", "v", schema=SCHEMA, name="c", order=by, ignore_nulls=True),
        aggregation("first", "v", schema=SCHEMA, name="d", order=[Order("n", nulls_first=False)]),
        aggregation("min", "v", schema=SCHEMA, name="e"),
        aggregation("min", "v", schema=SCHEMA, name="f", where="w"),
        aggregation("count", "v", schema=SCHEMA, name="g_", distinct=True),
        aggregation("mode", "v", schema=SCHEMA, name="h_"),
        aggregation("median", "v", schema=SCHEMA, name="i_"),
        aggregation("median", "v", schema=SCHEMA, name="j", distinct=True),
        aggregation("collect_list", "v", schema=SCHEMA, name="k_"),
        UserGeneral("l", ("v",), pa.int64(), len),
    ]
    names = Aggregate(Source(SCHEMA), ["g"], made).traces()
    state = {id(t) for t in names.values()}
    assert len(state) == len(names) == 1 + 4 * 2 + 2 + 1 + 3 + 2 + 2
