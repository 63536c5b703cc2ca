"""Materialized views as dbt means them: kept where a model is the same, changed where it is not, replaced on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.dbt_adapter.conftest import Project

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def built(project: Project) -> Project:
    project.dbt("build")
    return project


def test_a_changed_query_is_the_views_query_then(built: Project) -> None:
    built.replace("models/spend.sql", "sum(amount) AS total", "sum(amount) AS total, max(amount) AS most")
    ran = built.dbt("run", "--select", "spend")
    assert ran["spend"]["message"].startswith("CREATE MATERIALIZED VIEW")
    assert built.rows("SELECT region, most FROM shop.spend ORDER BY region") == [
        {"region": "north", "most": 40},
        {"region": "south", "most": 35},
    ]
    assert built.dbt("run", "--select", "spend")["spend"]["adapter_response"]["mode"] == "noop"


def test_a_changed_query_may_have_to_wait(built: Project) -> None:
    before = built.rows("SELECT * FROM shop.spend ORDER BY region")
    built.replace("models/spend.sql", "SELECT region", "{{ config(on_configuration_change='fail') }} SELECT region")
    built.replace("models/spend.sql", "sum(amount)", "2 * sum(amount)")
    assert built.dbt("run", "--select", "spend", fails=True)["spend"]["status"] == "error"
    built.replace("models/spend.sql", "'fail'", "'continue'")
    built.dbt("run", "--select", "spend")
    assert built.rows("SELECT * FROM shop.spend ORDER BY region") == before


def test_comments_and_a_semicolon_do_not_make_another_query(built: Project) -> None:
    built.write(
        "models/n.sql", "-- how many\n{{ config(shards=2) }}\nSELECT count(*) AS n FROM {{ ref('paid') }} -- here\n;\n"
    )
    assert built.dbt("run", "--select", "n")["n"]["message"] == "CREATE MATERIALIZED VIEW 1"
    assert built.dbt("run", "--select", "n")["n"]["adapter_response"]["mode"] == "noop"
    built.replace("models/n.sql", "shards=2", "shards=2, policy='full'")
    assert built.dbt("run", "--select", "n")["n"]["message"].startswith("CREATE MATERIALIZED VIEW")
    assert built.lake.view("shop.n").policy == "full"


def test_a_full_refresh(built: Project) -> None:
    built.lake.table("shop.customers").update({"region": "'west'"}, where="id = 2")
    ran = built.dbt("run", "--select", "spend", "--full-refresh")
    assert ran["spend"]["adapter_response"]["mode"] == "full"
    assert {row["region"] for row in built.rows("SELECT * FROM shop.spend")} == {"north", "west"}


@pytest.mark.parametrize(("first", "then"), [("table", "materialized_view"), ("materialized_view", "table")])
def test_a_model_becomes_something_else(built: Project, first: str, then: str) -> None:
    text = "{{ config(materialized='%s') }} SELECT count(*) AS n FROM {{ ref('paid') }}"
    for kind in (first, then):
        built.write("models/n.sql", text % kind)
        built.dbt("run", "--select", "n")
        assert built.rows("SELECT n FROM shop.n") == [{"n": 4}]
        assert ("shop.n" in built.lake.views()) == (kind == "materialized_view")


def test_a_view_of_dbt_keeps_its_rows(built: Project) -> None:
    built.write("models/n.sql", "{{ config(materialized='view') }} SELECT count(*) AS n FROM {{ ref('paid') }}")
    built.dbt("run", "--select", "n")
    assert "shop.n" in built.lake.views()
    built.lake.table("shop.paid").delete("id = 1")
    assert built.rows("SELECT n FROM shop.n") == [{"n": 4}]
    built.dbt("run", "--select", "n")
    assert built.rows("SELECT n FROM shop.n") == [{"n": 3}]


def test_errors_keep_their_code_place_and_hint(built: Project) -> None:
    built.write("models/n.sql", "SELECT id, rand() AS r FROM {{ ref('paid') }}")
    said = built.dbt("run", "--select", "n", fails=True)["n"]["message"]
    assert "error[E1305]: rand()" in said
    assert "hint:" in said


def test_descriptions_and_contracts(built: Project) -> None:
    built.write(
        "models/more.yml",
        """
models:
  - name: n
    description: It's how many
    config: {contract: {enforced: true}, persist_docs: {relation: true}}
    columns: [{name: n, data_type: bigint}]
""",
    )
    built.write("models/n.sql", "SELECT count(*) AS n FROM {{ ref('paid') }}")
    built.dbt("run", "--select", "n")
    assert built.lake.table("shop.n").snapshot.state.metadata.description == "It's how many"
    assert built.dbt("run", "--select", "n")["n"]["adapter_response"]["mode"] == "noop"
    built.replace("models/n.sql", "count(*)", "cast(count(*) AS string)")
    assert "contract" in built.dbt("run", "--select", "n", fails=True)["n"]["message"]
    assert built.rows("SELECT n FROM shop.n") == [{"n": 4}]
