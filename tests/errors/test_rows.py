"""Rows that do not fit a table, and rules that they break."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.lake.table import Table
from headwater.lakehouse import Lake

Attempt = Callable[[], Any]
ROWS = [{"id": 1, "amount": 10}, {"id": 2, "amount": 20}]


def strict(lake: Lake) -> Table:
    schema = pa.schema([pa.field("id", pa.int32(), nullable=False), ("amount", pa.int64()), ("twice", pa.int64())])
    return lake.table("orders").create(
        schema, constraints={"positive": "amount > 0"}, generated={"twice": "amount * 2"}
    )


def case_rows_that_are_an_int(lake: Lake) -> Attempt:
    return lambda: lake.write("orders", 42)


def case_rows_that_are_a_list_of_ints(lake: Lake) -> Attempt:
    return lambda: lake.write("orders", [1, 2])


def case_rows_of_mixed_types(lake: Lake) -> Attempt:
    return lambda: lake.write("orders", [{"id": 1}, {"id": "one"}])


def case_rows_in_columns_of_unlike_length(lake: Lake) -> Attempt:
    return lambda: lake.write("orders", {"id": [1, 2], "amount": [1]})


def case_rows_with_a_number_too_large_for_a_long(lake: Lake) -> Attempt:
    return lambda: lake.write("orders", [{"id": 2**70}])


def case_rows_of_a_duration(lake: Lake) -> Attempt:
    return lambda: lake.write("orders", pa.table({"took": [dt.timedelta(seconds=1)]}))


def case_new_table_with_a_duration(lake: Lake) -> Attempt:
    return lambda: lake.table("orders").create({"took": pa.duration("us")})


def case_rows_of_nothing_but_null(lake: Lake) -> Attempt:
    return lambda: lake.write("orders", [{"id": None}])


def case_type_clash(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.append([{"id": "one", "amount": 1}])


def case_overflow(lake: Lake) -> Attempt:
    t = lake.table("orders").create({"id": pa.int8()})
    return lambda: t.append([{"id": 1}, {"id": 200}])


def case_fraction_for_an_integer(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.append([{"id": 1.5, "amount": 1}])


def case_overflow_in_a_later_batch(lake: Lake) -> Attempt:
    t = lake.table("orders").create({"id": pa.int8(), "p": pa.int64()}, partition_by=["p"])
    schema = pa.schema([("id", pa.int64()), ("p", pa.int64())])
    good = pa.record_batch([pa.array([1, 2]), pa.array([1, 2])], schema=schema)
    bad = pa.record_batch([pa.array([1, 200]), pa.array([3, 4])], schema=schema)
    return lambda: t.append(pa.RecordBatchReader.from_batches(schema, iter([good, bad])))


def case_extra_column(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.append([{"id": 3, "amout": 30}])


def case_missing_required_column(lake: Lake) -> Attempt:
    t = strict(lake)
    return lambda: t.append([{"amount": 1}])


def case_null_in_a_required_column(lake: Lake) -> Attempt:
    t = strict(lake)
    return lambda: t.append([{"id": 1, "amount": 1}, {"id": None, "amount": 1}])


def case_null_set_in_a_required_column(lake: Lake) -> Attempt:
    t = strict(lake)
    t.append([{"id": 1, "amount": 1}])
    return lambda: t.update({"id": "null"})


def case_broken_constraint(lake: Lake) -> Attempt:
    t = strict(lake)
    return lambda: t.append([{"id": 1, "amount": -1}])


def case_constraint_broken_by_an_update(lake: Lake) -> Attempt:
    t = strict(lake)
    t.append([{"id": 1, "amount": 1}])
    return lambda: t.update({"amount": "amount - 5"})


def case_constraint_broken_by_a_merge(lake: Lake) -> Attempt:
    t = strict(lake)
    t.append([{"id": 1, "amount": 1}])
    rows = pa.table({"id": pa.array([1], pa.int32()), "amount": [-7]})
    return lambda: t.merge(rows, on=["id"]).when_matched_update_all().execute()


def case_constraint_that_rows_break_already(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.add_constraint("small", "amount < 15")


def case_wrong_value_of_a_generated_column(lake: Lake) -> Attempt:
    t = strict(lake)
    return lambda: t.append([{"id": 1, "amount": 1, "twice": 3}])


def case_setting_a_generated_column(lake: Lake) -> Attempt:
    t = strict(lake)
    return lambda: t.update({"twice": "1"})


def case_change_of_an_append_only_table(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS, properties={"delta.appendOnly": "true"})
    return lambda: t.delete("id = 1")


def case_merge_into_an_append_only_table(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS, properties={"delta.appendOnly": "true"})
    return lambda: t.merge(ROWS, on=["id"]).when_matched_update_all().execute()


def case_overwrite_of_an_append_only_table(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS, properties={"delta.appendOnly": "true"})
    return lambda: t.overwrite(ROWS)


def case_overwrite_with_rows_outside_the_condition(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.overwrite([{"id": 9, "amount": 1}], where="id < 5")


def case_overwrite_of_partitions_of_an_unpartitioned_table(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.overwrite(ROWS, partitions="dynamic")


def case_overwrite_by_condition_and_by_partition(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS, partition_by=["id"])
    return lambda: t.overwrite(ROWS, partitions="dynamic", where="id = 1")


def case_bad_schema_mode(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.append(ROWS, schema_mode="evolve")  # type: ignore[arg-type]


def case_append_that_replaces_the_schema(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.append(ROWS, schema_mode="replace")


def case_narrowing_a_column(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.widen_column("amount", pa.int16())


def case_widening_a_missing_column(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.widen_column("amout", pa.int64())


CASES = [f for name, f in list(globals().items()) if name.startswith("case_")]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__.removeprefix("case_"))
def test_refused(case: Any, catalogue: Any) -> None:
    catalogue.check(case)


@pytest.mark.parametrize("partition_by", [[], ["id"]])
def test_an_error_of_the_caller_s_own_source_comes_through_and_leaves_nothing(
    tmp_path: Path, partition_by: list[str]
) -> None:
    t = hw.connect(tmp_path).write("orders", ROWS, partition_by=partition_by)
    files = sorted(tmp_path.rglob("*"))
    batch = pa.RecordBatch.from_pylist(ROWS)

    def batches() -> Any:
        yield batch
        raise ValueError("the source broke")

    with pytest.raises(ValueError, match="the source broke"):
        t.append(pa.RecordBatchReader.from_batches(batch.schema, batches()))
    assert sorted(tmp_path.rglob("*")) == files
