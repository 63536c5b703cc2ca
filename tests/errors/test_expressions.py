"""Conditions, values and merge clauses that cannot be meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from headwater.lakehouse import Lake

Attempt = Callable[[], Any]
ROWS = [{"id": 1, "amount": 10, "name": "a"}, {"id": 2, "amount": 0, "name": "b"}]


def case_syntax_error(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.delete("amount > > 3")


def case_unclosed_quote(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.delete("name = 'a")


def case_empty_condition(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.delete("")


def case_unknown_function(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.update({"amount": "frobnicate(amount)"})


def case_aggregate_in_a_condition(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.delete("sum(amount) > 3")


def case_subquery_in_a_condition(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.delete("id in (select id from orders)")


def case_division_by_zero(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.update({"amount": "cast(10 / amount as bigint)"})


def case_overflow_in_an_expression(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.update({"amount": "amount + 9223372036854775807"}, where="id = 1")


def case_cast_of_text_that_is_no_number(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.update({"amount": "cast(name as bigint)"})


def case_text_set_in_a_number(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.update({"amount": "name"})


def case_condition_that_is_a_number(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.delete("amount + 1")


def case_condition_that_is_not_text(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.delete(True)  # type: ignore[arg-type]


def case_value_that_is_not_text(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.update({"amount": 1})  # type: ignore[dict-item]


def case_update_of_nothing(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.update({})


def case_constraint_that_is_not_a_condition(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.add_constraint("wrong", "amount + 1")


def case_new_table_with_a_constraint_that_is_not_a_condition(lake: Lake) -> Attempt:
    return lambda: lake.table("orders").create({"amount": pa.int64()}, constraints={"wrong": "amount + 1"})


def case_optimize_where_on_a_plain_column(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.optimize(where="amount > 3")


def case_optimize_to_files_of_no_size(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.optimize(target_bytes=0)


def case_merge_that_is_ambiguous(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.merge([ROWS[0], ROWS[0]], on=["id"]).when_matched_update_all().execute()


def case_merge_without_a_clause(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.merge(ROWS, on=["id"]).execute()


def case_merge_without_a_condition(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.merge(ROWS, on="  ")


def case_merge_clause_after_one_that_takes_all(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.merge(ROWS, on=["id"]).when_matched_delete().when_matched_update_all()


def case_merge_on_a_name_of_both_sides(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.merge(ROWS, on="id = 1").when_matched_delete().execute()


def case_merge_with_one_alias_for_both_sides(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.merge(ROWS, on="t.id = t.id", source_alias="t")


def case_merge_insert_that_reads_the_target(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.merge(ROWS, on=["id"]).when_not_matched_insert({"id": "t.id"}).execute()


def case_merge_with_a_column_the_table_lacks(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.merge([{"id": 3, "note": "x"}], on=["id"]).when_not_matched_insert_all().execute()


def case_merge_of_a_type_that_clashes(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    rows = [{"id": 3, "amount": "ten", "name": "c"}]
    return lambda: t.merge(rows, on=["id"]).when_not_matched_insert_all().execute()


def case_merge_of_something_without_rows(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.merge("orders", on=["id"])


def case_query_that_spark_refuses_too(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.sql("SELECT name, amount FROM orders GROUP BY name")


def case_query_with_a_comma_too_many(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.sql("SELECT name, FROM orders WHERE id IN (1, 2,)")


def case_query_of_a_version_that_is_none(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.sql("SELECT name FROM orders@latest")


def case_list_where_single_values_are_expected(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.sql("SELECT name FROM orders WHERE id IN (:ids)", parameters={"ids": [1, 2]})


def case_parameter_without_a_type(lake: Lake) -> Attempt:
    return lambda: lake.sql("SELECT :ids AS ids", parameters={"ids": []})


CASES = [f for name, f in list(globals().items()) if name.startswith("case_")]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__.removeprefix("case_"))
def test_refused(case: Any, catalogue: Any) -> None:
    catalogue.check(case)
