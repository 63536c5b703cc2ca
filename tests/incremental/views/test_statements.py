"""Views in SQL: made, refreshed, shown, dropped; and protected from other statements."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.incremental.views.world import World

from headwater.base.errors import HeadwaterError, InputError

SPEND = "SELECT name, count(*) AS n, sum(amount) AS total FROM orders GROUP BY name"


def test_from_the_cradle_to_the_grave(tmp_path: Path) -> None:
    lake = World(tmp_path).lake
    made = lake.sql(f"CREATE MATERIALIZED VIEW spend COMMENT 'who' AS {SPEND}").to_pylist()
    assert made[0]["num_affected_rows"] == lake.table("spend").count() > 0, "it is built when it is made"
    lake.sql("DELETE FROM orders WHERE id < 4; INSERT INTO orders (id, name, amount) VALUES (99, 'new', 1.5)")
    report = lake.sql("REFRESH MATERIALIZED VIEW spend").to_pylist()[0]
    assert report["mode"] == "incremental" and report["rows_in"] == 5 and report["frontier"] == "orders@2"
    assert lake.sql("SELECT total FROM spend WHERE name = 'new'").to_pylist()[0]["total"] is not None
    assert lake.sql("REFRESH MATERIALIZED VIEW spend FULL").to_pylist()[0]["mode"] == "full"
    assert lake.view("spend").verify().equal
    assert lake.sql("SHOW VIEWS").to_pylist() == [
        {"namespace": "", "viewName": "spend", "isTemporary": False, "isMaterialized": True}
    ]
    assert lake.sql("SHOW VIEWS IN sales").to_pylist() == lake.sql("SHOW VIEWS LIKE 'x*'").to_pylist() == []
    assert lake.sql("SHOW CREATE TABLE spend").to_pylist()[0]["createtab_stmt"] == (
        f"CREATE MATERIALIZED VIEW spend\nCOMMENT 'who'\nAS {SPEND}"
    )
    assert "spend" in [row["viewName"] for row in lake.sql("SHOW VIEWS").to_pylist()]
    assert lake.sql("DESCRIBE TABLE spend").to_pylist()[0]["col_name"] == "name"
    operations = [row["operation"] for row in lake.sql("DESCRIBE HISTORY spend").to_pylist()]
    assert operations[-1] == "CREATE MATERIALIZED VIEW" and "REFRESH MATERIALIZED VIEW" in operations
    assert lake.sql("DROP MATERIALIZED VIEW spend").to_arrow().num_rows == 0
    assert "spend" not in lake
    lake.sql("DROP MATERIALIZED VIEW IF EXISTS spend")


def test_modes_and_properties(tmp_path: Path) -> None:
    lake = World(tmp_path).lake
    own = "TBLPROPERTIES ('headwater.policy' = 'strict', 'headwater.shards' = '2', 'owner' = 'ann')"
    lake.sql(f"CREATE MATERIALIZED VIEW spend {own} AS {SPEND}")
    view = lake.view("spend")
    assert view.policy == "strict" and view._meant.shards == 2
    assert view.table.snapshot.configuration["owner"] == "ann"
    lake.sql("CREATE MATERIALIZED VIEW IF NOT EXISTS spend AS SELECT 1 AS other")
    assert lake.view("spend").definition == SPEND
    lake.sql("CREATE OR REPLACE MATERIALIZED VIEW spend AS SELECT name FROM orders")
    assert lake.view("spend").to_arrow().schema.names == ["name"] and lake.view("spend").verify().equal
    with pytest.raises(InputError, match="exists already"):
        lake.sql(f"CREATE MATERIALIZED VIEW spend AS {SPEND}")
    for wrong in ("'headwater.policy' = 'sometimes'", "'headwater.shards' = 'two'"):
        with pytest.raises(InputError):
            lake.sql(f"CREATE MATERIALIZED VIEW other TBLPROPERTIES ({wrong}) AS {SPEND}")
    assert "other" not in lake


def test_a_view_that_cannot_be_built_is_not_left_behind(tmp_path: Path) -> None:
    lake = World(tmp_path).lake
    with pytest.raises(HeadwaterError, match="zero"):
        lake.sql("CREATE MATERIALIZED VIEW v AS SELECT id div 0 AS x FROM orders")
    assert "v" not in lake and not (tmp_path / "_headwater/views/v").exists()


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO spend SELECT * FROM spend",
        "UPDATE Spend SET n = 1",
        "DELETE FROM spend",
        "TRUNCATE TABLE spend",
        "MERGE INTO spend USING orders ON spend.name = orders.name WHEN MATCHED THEN DELETE",
        "DROP TABLE spend",
        "DROP TABLE IF EXISTS spend",
        "CREATE OR REPLACE TABLE spend (id INT)",
        "CREATE OR REPLACE TABLE spend AS SELECT 1 AS id",
        "ALTER TABLE spend ADD COLUMN x INT",
        "RESTORE TABLE spend TO VERSION AS OF 0",
    ],
)
def test_no_other_statement_changes_it(text: str, tmp_path: Path) -> None:
    lake = World(tmp_path).lake
    lake.sql(f"CREATE MATERIALIZED VIEW spend AS {SPEND}")
    version = lake.table("spend").version
    with pytest.raises(InputError) as caught:
        lake.sql(text)
    assert caught.value.code == "E1603" and caught.value.position is not None
    assert lake.table("spend").version == version
    lake.sql("OPTIMIZE spend; VACUUM spend; SELECT * FROM spend; CREATE TABLE copy AS SELECT * FROM spend")


def test_replacing_says_all_of_it_anew(tmp_path: Path) -> None:
    lake = World(tmp_path).lake
    lake.sql(f"CREATE MATERIALIZED VIEW spend COMMENT 'old' TBLPROPERTIES ('owner' = 'ann', 'team' = 'x') AS {SPEND}")
    view = lake.view("spend")
    rows = view.to_arrow()
    retention = "'delta.deletedFileRetentionDuration' = 'interval 2 days'"
    lake.sql(
        f"CREATE OR REPLACE MATERIALIZED VIEW spend COMMENT 'new' TBLPROPERTIES ('owner' = 'bob', {retention}) AS {SPEND}"
    )
    found = view.table.snapshot
    assert found.state.metadata.description == "new" and found.configuration["owner"] == "bob"
    assert found.configuration["delta.deletedFileRetentionDuration"] == "interval 2 days"
    assert "team" not in found.configuration, "what is replaced is replaced wholly"
    assert (
        found.configuration["delta.enableDeletionVectors"]
        == found.configuration["delta.enableChangeDataFeed"]
        == "true"
    )
    assert view.to_arrow().equals(rows), "the rows are those of the same query"
    before = view.table.version
    lake.sql(
        f"CREATE OR REPLACE MATERIALIZED VIEW spend COMMENT 'new' TBLPROPERTIES ('owner' = 'bob', {retention}) AS {SPEND}"
    )
    assert view.table.version == before, "nothing is different"
    lake.sql(
        "CREATE OR REPLACE MATERIALIZED VIEW spend TBLPROPERTIES ('owner' = 'cy') AS SELECT name, 1 AS one FROM orders"
    )
    found = view.table.snapshot
    assert found.state.metadata.description is None and found.configuration["owner"] == "cy"
    assert lake.view("spend").verify().equal
    lake.sql("DELETE FROM orders WHERE id < 4")
    assert lake.view("spend").refresh().mode == "incremental"


def test_a_definition_in_python_keeps_what_it_does_not_speak_of(tmp_path: Path) -> None:
    lake = World(tmp_path).lake
    lake.sql(f"CREATE MATERIALIZED VIEW spend COMMENT 'who' TBLPROPERTIES ('owner' = 'ann') AS {SPEND}")
    lake.view("spend", "SELECT name, count(*) AS n FROM orders GROUP BY name")
    found = lake.table("spend").snapshot
    assert found.state.metadata.description == "who" and found.configuration["owner"] == "ann"
    lake.view("spend", "SELECT name, count(*) AS n FROM orders GROUP BY name", properties={"team": "x"})
    found = lake.table("spend").snapshot
    assert (found.configuration["owner"], found.configuration["team"]) == ("ann", "x")


def test_the_table_of_a_view_stays_what_refreshing_needs(tmp_path: Path) -> None:
    lake = World(tmp_path).lake
    lake.sql(f"CREATE MATERIALIZED VIEW spend AS {SPEND}")
    with pytest.raises(InputError, match=r"`spend` is a materialized view: drop\(\) cannot change it") as caught:
        lake.drop("spend")
    assert caught.value.code == "E1603" and "lake.view('spend').drop()" in str(caught.value.hint)
    with pytest.raises(InputError) as caught:
        lake.sql("DROP TABLE spend")
    assert caught.value.code == "E1603" and "DROP MATERIALIZED VIEW spend" in str(caught.value.hint)
    table = lake.table("spend")
    for name, value in (
        ("delta.appendOnly", "true"),
        ("delta.enableDeletionVectors", "false"),
        ("delta.enableChangeDataFeed", "false"),
    ):
        with pytest.raises(InputError, match=name):
            table.set_properties({name: value})
        with pytest.raises(InputError, match=name):
            lake.sql(f"CREATE OR REPLACE MATERIALIZED VIEW spend TBLPROPERTIES ('{name}' = '{value}') AS {SPEND}")
    with pytest.raises(InputError, match="enableChangeDataFeed"):
        table.unset_properties(["delta.enableChangeDataFeed"])
    with pytest.raises(InputError, match="E1603"):
        lake.sql("ALTER TABLE spend SET TBLPROPERTIES ('a' = 'b')")
    table.set_properties({"owner": "ann", "delta.appendOnly": "false"})
    table.unset_properties(["owner", "delta.appendOnly"])
    lake.sql("DELETE FROM orders WHERE id < 4")
    view = lake.view("spend")
    assert view.refresh().mode == "incremental" and view.verify().equal
    lake.drop_view("spend")
    assert "spend" not in lake and lake.views() == []
