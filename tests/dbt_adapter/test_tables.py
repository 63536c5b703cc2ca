"""Tables, incremental models, seeds, sources in other schemas, and what a lake refuses."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

import headwater as hw

if TYPE_CHECKING:
    from tests.dbt_adapter.conftest import Project

    from headwater.testing.s3_server import S3Server

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]


def test_types_of_seeds(project: Project) -> None:
    project.dbt("seed")
    paid = project.rows("SELECT * FROM shop.payments WHERE id = 3")
    assert paid == [{"id": 3, "customer": 3, "amount": 15, "status": "open", "paid_on": date(2026, 1, 2)}]
    project.write("seeds/odd.csv", 'id,price,name,ok\n1,1.5,"a, b",true\n2,,,false\n')
    project.write("seeds/seeds.yml", "seeds: [{name: odd, config: {column_types: {price: 'decimal(10,2)'}}}]")
    project.dbt("seed", "--select", "odd")
    kinds = {row["col_name"]: row["data_type"] for row in project.rows("DESCRIBE shop.odd")}
    assert kinds == {"id": "bigint", "price": "decimal(10,2)", "name": "string", "ok": "boolean"}
    assert project.rows("SELECT name, ok FROM shop.odd ORDER BY id") == [
        {"name": "a, b", "ok": True},
        {"name": None, "ok": False},
    ]


def test_a_seed_is_loaded_in_one_commit(project: Project) -> None:
    project.dbt("seed")
    before = project.lake.table("shop.payments").snapshot.version
    project.dbt("seed")  # of the same rows
    assert project.lake.table("shop.payments").snapshot.version == before
    project.replace("seeds/payments.csv", "4,1,40,paid,2026-01-03\n", "")
    project.dbt("seed")
    assert project.lake.table("shop.payments").snapshot.version == before + 1
    assert [row["id"] for row in project.rows("SELECT id FROM shop.payments ORDER BY id")] == [1, 2, 3, 5]
    project.write("seeds/payments.csv", "id,customer,amount,status,paid_on,more\n1,1,1,a,2026-01-01,x\n")
    assert "error[" in project.dbt("seed", fails=True)["payments"]["message"]
    project.dbt("seed", "--full-refresh")
    assert project.rows("SELECT more FROM shop.payments") == [{"more": "x"}]


def test_incremental_models(project: Project) -> None:
    project.dbt("seed")
    only_new = "{% if is_incremental() %} WHERE id > (SELECT max(id) FROM {{ this }}) {% endif %}"
    project.write(
        "models/log.sql",
        "{{ config(materialized='incremental') }} SELECT id, amount FROM {{ ref('payments') }} " + only_new,
    )
    project.write(
        "models/newest.sql",
        "{{ config(materialized='incremental', unique_key='customer') }} "
        "SELECT customer, max(id) AS id, sum(amount) AS amount FROM {{ ref('payments') }} GROUP BY customer",
    )
    for _ in range(2):
        project.dbt("run", "--select", "log newest")
        assert project.rows("SELECT count(*) AS n FROM shop.log") == [{"n": 5}]
    project.lake.sql("INSERT INTO shop.payments VALUES (6, 2, 100, 'paid', date '2026-01-04')")
    ran = project.dbt("run", "--select", "log newest")
    assert ran["log"]["message"] == "INSERT 1"
    assert project.rows("SELECT count(*) AS n FROM shop.log") == [{"n": 6}]
    assert project.rows("SELECT * FROM shop.newest ORDER BY customer") == [
        {"customer": 1, "id": 4, "amount": 60},
        {"customer": 2, "id": 6, "amount": 145},
        {"customer": 3, "id": 3, "amount": 15},
    ]
    project.lake.sql("DELETE FROM shop.payments WHERE id < 6")
    project.dbt("run", "--select", "log newest", "--full-refresh")
    assert project.rows("SELECT * FROM shop.newest") == [{"customer": 2, "id": 6, "amount": 100}]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("incremental_strategy='delete+insert', unique_key='id'", "the strategy 'delete+insert' is not known here"),
        ("incremental_strategy='merge'", "needs a unique_key"),
        ("on_schema_change='append_new_columns'", "on_schema_change can only be 'ignore'"),
        ("grants={'select': ['ann']}", "a lake has no grants"),
    ],
)
def test_what_is_not_known_is_refused(project: Project, config: str, said: str) -> None:
    project.dbt("seed")
    project.write("models/n.sql", f"{{{{ config(materialized='incremental', {config}) }}}} SELECT 1 AS id")
    assert said in project.dbt("run", "--select", "n", fails=True)["n"]["message"]


def test_sources_of_the_lake(project: Project) -> None:
    lake = project.lake
    lake.write("orders", [{"id": 1, "amount": 5}])  # at the root, which dbt calls `default`
    lake.write("raw.orders", [{"id": 2, "amount": 7}])
    project.write(
        "models/sources.yml",
        "sources: [{name: default, tables: [{name: orders}]}, {name: raw, tables: [{name: orders}]}]",
    )
    project.write(
        "models/both.sql",
        "SELECT sum(amount) AS total FROM (SELECT amount FROM {{ source('default', 'orders') }} "
        "UNION ALL SELECT amount FROM {{ source('raw', 'orders') }}) AS all_of_them",
    )
    project.dbt("run", "--select", "both")
    assert project.rows("SELECT total FROM shop.both") == [{"total": 12}]
    project.replace("profiles.yml", "schema: shop", "schema: default")
    project.dbt("run", "--select", "both")
    assert "both" in lake.views()


def test_hooks_and_unit_tests(project: Project) -> None:
    project.write(
        "models/n.sql",
        "{{ config(materialized='table', post_hook='INSERT INTO {{ this }} VALUES (41)') }} SELECT amount FROM {{ ref('paid') }}",
    )
    project.write(
        "models/unit.yml",
        """
unit_tests:
  - name: both_are_added
    model: spend
    given:
      - {input: ref('paid'), rows: [{id: 1, customer: 1, amount: 2}, {id: 2, customer: 1, amount: 3}]}
      - {input: ref('customers'), rows: [{id: 1, region: here}]}
    expect: {rows: [{region: here, payments: 2, total: 5}]}
""",
    )
    found = project.dbt("build")
    assert found["spend"]["status"] == "success"
    assert found["both_are_added"]["status"] == "pass"
    assert project.rows("SELECT count(*) AS n FROM shop.n") == [{"n": 5}]


def test_snapshots_and_databases_are_refused(project: Project) -> None:
    project.dbt("seed")
    project.write(
        "snapshots/past.yml",
        "snapshots: [{name: past, relation: ref('payments'), config: {unique_key: id, strategy: check, check_cols: all}}]",
    )
    assert "snapshots are not known here" in project.dbt("snapshot", fails=True)["past"]["message"]
    project.write("models/sources.yml", "sources: [{name: raw, database: elsewhere, tables: [{name: orders}]}]")
    project.write("models/n.sql", "SELECT * FROM {{ source('raw', 'orders') }}")
    with pytest.raises(AssertionError, match="a lake has no databases: leave `database: elsewhere` out"):
        project.dbt("run", "--select", "n")


@pytest.mark.parametrize(
    ("old", "new"), [("path: ", "place: "), ("schema: shop", "schema: shop\n      database: prod")]
)
def test_profiles_that_are_wrong(project: Project, old: str, new: str) -> None:
    project.replace("profiles.yml", old, new)
    with pytest.raises(AssertionError, match=r"the profile has no `path`|a lake has no databases"):
        project.dbt("parse")


def test_dropping_a_schema(project: Project) -> None:
    project.dbt("build")
    project.lake.write("kept", [{"id": 1}])
    project.write(
        "macros/gone.sql",
        "{% macro gone() %}{% do adapter.drop_schema(api.Relation.create(database='lake', schema='shop')) %}{% endmacro %}",
    )
    project.dbt("run-operation", "gone")
    assert list(project.lake.catalog.names()) == ["kept"]


def test_on_s3(project: Project, s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    place = s3.url("shop")
    monkeypatch.setenv("SHOP_LAKE", place)
    options = "".join(f"\n        {name}: '{value}'" for name, value in s3.options.items())
    project.replace("profiles.yml", "threads: 2", f"threads: 2\n      storage_options:{options}")
    project.dbt("build")
    project.replace("seeds/payments.csv", "3,3,15,open", "3,3,15,paid")
    project.dbt("seed")
    assert project.dbt("run")["spend"]["adapter_response"]["mode"] == "incremental"
    lake = hw.connect(place, storage_options=s3.options)
    assert set(lake.views()) == {"shop.spend", "shop.overview"}
    assert lake.sql("SELECT total FROM shop.overview").to_pylist() == [{"total": 120}]
    for written in (project.folder / "logs").rglob("*"):
        assert s3.options["AWS_SECRET_ACCESS_KEY"] not in written.read_text()
