"""The example of the guide: seeds, a table, views over it and tests; then a correction, which the views follow."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.dbt_adapter.conftest import Project

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]

SPEND = """
SELECT region, count(*) AS payments, sum(amount) AS total FROM shop.payments AS p JOIN shop.customers AS c ON customer = c.id
WHERE status = 'paid' GROUP BY region ORDER BY region
"""


def test_the_example(project: Project) -> None:
    project.dbt("seed")
    built = project.dbt("run")
    assert set(built) == {"paid", "spend", "overview"}
    assert set(project.lake.views()) == {"shop.spend", "shop.overview"}
    assert project.rows("SELECT * FROM shop.spend ORDER BY region") == project.rows(SPEND)
    project.dbt("test")

    # A payment turns out to be paid: the seed is corrected, and the views follow.
    project.replace("seeds/payments.csv", "3,3,15,open", "3,3,15,paid")
    project.dbt("seed")
    again = project.dbt("run")
    spend, overview = again["spend"]["adapter_response"], again["overview"]["adapter_response"]
    assert (spend["mode"], spend["rows_affected"]) == ("incremental", 2)  # one region's row goes, and comes
    assert (overview["mode"], overview["rows_in"], overview["rows_affected"]) == ("incremental", 2, 2)
    assert again["spend"]["message"] == "incremental refresh, 9 rows in, 2 out"
    expected = [{"region": "north", "payments": 3, "total": 75}, {"region": "south", "payments": 2, "total": 45}]
    assert project.rows("SELECT * FROM shop.spend ORDER BY region") == project.rows(SPEND) == expected
    assert project.rows("SELECT total FROM shop.overview") == [{"total": 120}]
    project.dbt("test")
    for name in ("shop.spend", "shop.overview"):
        last = project.lake.view(name).record.last
        assert last is not None
        assert last.mode == "incremental"
        assert project.lake.view(name).verify().equal

    # Nothing has changed but the table, which is made again of the same rows.
    idle = project.dbt("run")
    assert [idle[name]["adapter_response"]["rows_affected"] for name in ("spend", "overview")] == [0, 0]


def test_what_others_change_is_followed(project: Project) -> None:
    project.dbt("build")
    project.lake.table("shop.customers").update({"region": "'west'"}, where="id = 2")
    ran = project.dbt("run", "--select", "spend overview")
    assert ran["spend"]["adapter_response"]["mode"] == "incremental"
    assert ran["spend"]["adapter_response"]["rows_in"] == 2
    assert project.rows("SELECT * FROM shop.spend ORDER BY region") == project.rows(SPEND)


def test_a_test_that_fails(project: Project) -> None:
    project.dbt("build")
    project.lake.sql("UPDATE shop.customers SET region = NULL WHERE id = 2")
    found = project.dbt("build", "--select", "spend", fails=True)
    assert found["not_null_spend_region"]["failures"] == 1
    assert found["unique_spend_region"]["status"] == "pass"


def test_the_catalog(project: Project) -> None:
    project.dbt("build")
    project.dbt("docs", "generate")
    nodes = json.loads((project.folder / "target" / "catalog.json").read_text())["nodes"]
    kinds = {name.split(".")[2]: one["metadata"]["type"] for name, one in nodes.items()}
    table, view = "table", "materialized_view"
    assert kinds == {"customers": table, "payments": table, "paid": table, "spend": view, "overview": view}
    columns = nodes["model.shop.spend"]["columns"]
    assert [(c["name"], c["type"], c["index"]) for c in columns.values()] == [
        ("region", "string", 1),
        ("payments", "bigint", 2),
        ("total", "bigint", 3),
    ]
