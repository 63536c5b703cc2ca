"""`headwater init --from-dbt`: data tests mean here what they mean in dbt, or are listed; so is all that is said of sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.test_dbt import dbt_project

import headwater as hw
from headwater.pipeline.dbt.data_tests import Names, generic_test
from headwater.pipeline.dbt.jinja import NotTaken
from headwater.pipeline.dbt.migration import migrate

FILES = {
    "dbt_project.yml": "name: shop\nvars: {shop: {least: 2}}\nmodels: {shop: {+materialized: table}}\non-run-end: x\n",
    "models/spend.sql": "select customer, sum(amount) as total from {{ source('raw', 'orders') }} group by customer\n",
    "models/top.sql": "select customer, total from {{ ref('spend') }} where total >= {{ var('least', 99) }}\n",
    "models/loop.sql": "{% for a in b %}{% endfor %} select 1 as a\n",
    "models/schema.yml": """
sources:
  - name: raw
    description: what the shop writes
    schema: raw_v2
    loader: fivetran
    tables:
      - name: orders
        identifier: orders_v2
        loaded_at_field: seen
        freshness: {warn_after: {count: 6, period: hour}, error_after: {count: 12, period: hour}}
        columns:
          - name: id
            data_type: bigint
            description: which one
            tests: [unique, {not_null: {severity: WARN}}]
          - name: customer
            tests:
              - relationships: {to: "source('raw', 'people')", field: id}
        tests: [{dbt_utils.expression_is_true: {expression: amount > 0}}]
      - {name: people, meta: {owner: me}}
      - {name: old, config: {enabled: false}}
models:
  - name: spend
    constraints: [{type: check}]
    columns:
      - name: customer
        description: who
        data_tests:
          - unique:
              name: one_row_each
              config: {severity: warn, where: "total > {{ var('least') }}", store_failures: true}
          - not_null: {arguments: {}, config: {error_if: '> 10'}}
          - not_null
          - relationships: {to: ref('people_view'), field: id}
          - relationships: {to: ref('top'), field: customer}
      - name: total
        tests: [{accepted_values: {values: [a], quote: false}}, {not_null: {config: {enabled: false}}}]
    tests: [{unique: {column_name: total}}, {unique: {column_name: a || b}}]
  - name: top
    columns:
      - name: customer
        tests: [{relationships: {to: ref('spend'), field: customer, where: total > 1}}]
  - {name: nowhere, columns: []}
""",
    "tests/no_debts.sql": "{{ config(severity='warn') }}\nselect customer from {{ ref('top') }} join {{ ref('spend') }} "
    "using (customer) where spend.total < 0;\n",
    "tests/schema.yml": "data_tests: [{name: no_debts, description: nobody owes}, {name: lost}]\n",
    "tests/loop.sql": "select * from {{ ref('loop') }}\n",
    "tests/generic/own.sql": "{% test own(model) %}{% endtest %}\n",
}
NOT_TAKEN = (
    "dbt_project.yml: models: settings of dbt's runs and of whole folders",
    "dbt_project.yml: on-run-end",
    "source raw: description: it is said of several tables",
    "source raw.orders: schema: a lake has one set of names",
    "source raw.orders: loader",
    "source raw.people: loader",
    "source raw.orders: loaded_at_field: the age of a table is that of its newest commit",
    "source raw.orders: freshness warn_after: a source has one limit",
    "source raw.orders: description of its columns",
    "source raw.people: meta",
    "source raw.old: it is not enabled",
    "source raw.orders: test dbt_utils.expression_is_true: write it as a query",
    "models/schema.yml: spend: constraints",
    "models/schema.yml: spend: description of its columns",
    "test unique of customer: store_failures",
    "test not_null of customer: its `error_if: > 10` decides when it fails",
    "test relationships of customer: it reads `people_view`, which is no model",
    "test relationships of customer: `top` is refreshed after the tests of `spend`",
    "test accepted_values of total: its values are expressions",
    "test not_null of total: it is not enabled",
    "test unique: `a || b` is no column",
    "models/schema.yml: nowhere: there is no such model",
    "tests/loop.sql: line 1: it reads `loop`, which was not taken",
    "tests/no_debts.sql: description",
    "test lost: there is no such query",
    "tests/generic/own.sql: macros are run by dbt",
)


@pytest.fixture
def moved(tmp_path: Path) -> Any:
    return migrate(dbt_project(tmp_path / "dbt", FILES), tmp_path / "new")


def rows(*amounts: int) -> list[dict[str, Any]]:
    return [{"id": n, "customer": n % 2, "amount": amount} for n, amount in enumerate(amounts)]


def test_what_is_not_taken_is_listed(moved: Any) -> None:
    text = "\n".join(moved.not_taken)
    for reason in NOT_TAKEN:
        assert reason in text, reason


@pytest.mark.long
def test_tests_mean_the_same(moved: Any, tmp_path: Path) -> None:
    lake = hw.connect(tmp_path / "new" / "lake")
    lake.write("orders_v2", rows(1, 2, 3, 4))
    lake.write("people", [{"id": 0}, {"id": 1}])
    made = hw.Project.load(tmp_path / "new")
    run = made.refresh()
    assert run.ok, str(run)
    assert made.lake.sql("SELECT count(*) FROM top").scalar() == 2  # the variable stands below the project's name
    assert {name: one.check.severity for name, one in run.checks.items()} == {
        "unique_orders_v2_id": "error",
        "not_null_orders_v2_id": "warn",
        **{name: "error" for name in run.checks if name.startswith("relationships_")},
        "one_row_each": "warn",
        "not_null_spend_customer": "error",
        "unique_spend_total": "error",
        "no_debts": "warn",
    }
    assert sum(name.startswith("relationships_") for name in run.checks) == 2
    assert run.checks["one_row_each"].check.where == "total > 2"
    assert run.checks["no_debts"].check.node == "top"

    orders = lake.table("orders_v2")
    orders.append([{"id": 9, "customer": 1, "amount": -100}, {"id": None, "customer": 0, "amount": 0}])
    warned = made.refresh()
    assert warned.ok and {one.check.name for one in warned.broken} == {"not_null_orders_v2_id"}
    orders.append([{"id": 9, "customer": 0, "amount": 1}])
    held = made.refresh()
    assert not held.ok and held["spend"].state == "blocked"
    assert "unique_orders_v2_id" in held["spend"].reason


def test_a_source_named_as_a_model_gets_a_name_of_its_own(tmp_path: Path) -> None:
    files = {
        "dbt_project.yml": "name: shop\n",
        "models/orders.sql": "select id from {{ source('raw', 'orders') }}\n",
        "models/s.yml": "sources: [{name: raw, tables: [{name: orders, tests: [{unique: {column_name: id}}]}]}]\n",
    }
    migrate(dbt_project(tmp_path / "dbt", files), tmp_path / "new")
    lake = hw.connect(tmp_path / "new" / "lake")
    lake.write("raw.orders", [{"id": 1}, {"id": 1}])
    run = hw.Project.load(tmp_path / "new").refresh()
    assert run["orders"].state == "blocked" and "unique_raw_orders_id" in run["orders"].reason


@pytest.mark.parametrize(
    ("test", "written"),
    [
        ("unique", {"unique": "id"}),
        ({"unique": None}, {"unique": "id"}),
        ({"unique": {"severity": "error"}}, {"unique": "id"}),
        ({"test_name": "not_null", "name": "x"}, {"not_null": {"column": "id", "name": "x"}}),
        ({"not_null": {}, "config": {"severity": "warn"}}, {"not_null": {"column": "id", "severity": "warn"}}),
        ({"unique": {"where": "a = '${X}'"}}, {"unique": {"column": "id", "where": "a = '${X}'"}}),
        (
            {"relationships": {"arguments": {"to": "{{ ref('m') }}", "field": "k"}}},
            {"relationships": {"column": "id", "to": "m", "field": "k"}},
        ),
    ],
)
def test_ways_to_write_a_test(test: Any, written: dict[str, Any]) -> None:
    names = Names(lambda name: name, lambda schema, table: table, {})
    assert generic_test(test, "n", "id", "", names).written == written


@pytest.mark.parametrize(
    "test",
    [
        5,
        {},
        {"unique": 5},
        {"unique": {"severity": "maybe"}},
        {"unique": {"where": "{% if x %}"}},
        {"unique": {"where": "id in (select id from {{ ref('m') }})"}},
        {"unique": {"warn_if": ">1"}},
        {"accepted_values": {"values": []}},
        {"accepted_values": {"values": [None]}},
        {"relationships": {"to": "m", "field": "k"}},
        {"relationships": {"to": "ref('m')"}},
        {"relationships": {"field": "k"}},
    ],
)
def test_a_test_that_would_be_another_one_is_not_taken(test: Any) -> None:
    with pytest.raises(NotTaken):
        generic_test(test, "n", "id", "", Names(lambda name: name, lambda schema, table: table, {}))
