"""Statements that cannot be read, or that the tables they name cannot follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headwater.lakehouse import Lake

Attempt = Callable[[], Any]
ROWS = [{"id": 1, "amount": 10, "name": "a"}, {"id": 2, "amount": 0, "name": "b"}]


def case_misspelled_statement(lake: Lake) -> Attempt:
    return lambda: lake.sql("DELTE FROM orders")


def case_statement_that_breaks_off(lake: Lake) -> Attempt:
    return lambda: lake.sql("INSERT INTO orders")


def case_statement_with_an_open_quote(lake: Lake) -> Attempt:
    return lambda: lake.sql("SELECT 1;\nSELECT 'a\nFROM orders")


def case_script_with_a_mistake_in_its_last_statement(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.sql("DELETE FROM orders;\nOPTIMZE orders")


def case_parameter_without_a_value(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.sql("DELETE FROM orders WHERE id = :id", parameters={"key": 1})


def case_parameter_that_nobody_names(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.sql("DELETE FROM orders WHERE id = :id", parameters={"id": 1, "key": 1})


def case_statement_on_a_table_that_is_not_there(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.sql("UPDATE\n  odrers\nSET amount = 1")


def case_statement_that_sets_a_column_that_is_not_there(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.sql("UPDATE orders SET amout = 1 WHERE id = 1")


def case_mistake_inside_a_subquery_of_a_delete(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.sql("DELETE FROM orders\nWHERE id IN (SELECT idd FROM orders)")


def case_unknown_function_in_an_update(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.sql("UPDATE orders SET amount = 1, name = frobnicate(name) WHERE id = 1")


def case_ambiguous_name_in_a_merge(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    lake.write("news", ROWS)
    return lambda: lake.sql("MERGE INTO orders USING news ON orders.id = id WHEN MATCHED THEN DELETE")


def case_insert_of_too_few_values(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.sql("INSERT INTO orders VALUES (1, 2)")


def case_insert_of_a_text_in_a_number(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.sql("INSERT INTO orders (id) VALUES ('one')")


def case_merge_whose_source_lacks_a_column(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    text = "MERGE INTO orders AS t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    return lambda: lake.sql(text)


def case_changes_of_a_table_without_a_feed(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.sql("SELECT * FROM table_changes('orders', 0)")


def case_changes_after_the_last_commit(lake: Lake) -> Attempt:
    lake.sql("CREATE TABLE orders (id INT) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    return lambda: lake.sql("SELECT * FROM table_changes('orders', '2999-01-01')")


def case_search_of_a_table_without_an_index(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.sql("SELECT * FROM search('orders', 'refund')")


def case_search_by_a_query_that_does_not_parse(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    lake.sql("CREATE SEARCH INDEX found ON orders (name)")
    return lambda: lake.sql("SELECT id FROM search('orders', 'card (lost', k => 3)")


def case_search_with_an_option_that_is_misspelled(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    lake.sql("CREATE SEARCH INDEX found ON orders (name)")
    return lambda: lake.sql("SELECT id FROM search('orders', 'card', filters => 'id = 1')")


def case_search_index_that_is_there(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    lake.sql("CREATE SEARCH INDEX found ON orders (name)")
    return lambda: lake.sql("CREATE SEARCH INDEX found ON orders (name)")


def case_search_index_on_a_column_of_another_kind(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.sql("CREATE SEARCH INDEX found ON orders (amount TEXT)")


CASES = [f for name, f in list(globals().items()) if name.startswith("case_")]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__.removeprefix("case_"))
def test_refused(case: Any, catalogue: Any) -> None:
    catalogue.check(case)
