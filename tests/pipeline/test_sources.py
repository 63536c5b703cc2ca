"""Sources that are dropped, made again, changed, vacuumed or gone: planned with the reason, refused where that is asked for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.pipeline.test_project import CHAIN, project

import headwater as hw
from headwater.base.errors import ProjectError

ROWS = [{"id": 1, "k": "a", "x": 1.5}, {"id": 2, "k": "b", "x": 2.5}]


def test_a_source_that_was_made_again(tmp_path: Path) -> None:
    made = project(tmp_path, CHAIN)
    made.refresh()
    shutil.rmtree(tmp_path / "lake" / "t")
    hw.connect(tmp_path / "lake").write("t", [*ROWS, {"id": 3, "k": "c", "x": 0.5}])
    again = hw.Project.load(tmp_path)
    plan = again.plan()
    assert plan["a"].mode == "full" and "another table" in plan["a"].reason
    strict = again.plan(strict=True)
    assert strict["a"].mode == "blocked" and strict["b"].mode == "blocked" and strict.blocked == ["a", "b", "c", "d"]
    run = again.refresh(strict=True)
    assert isinstance(run["a"].error, ProjectError) and run["a"].error.code == "E1916"
    assert run.of_state("blocked") == ["b", "c", "d"]
    assert again.lake.table("a").to_arrow().num_rows == 2  # as it was
    assert again.refresh().ok and again.verify().ok
    assert again.lake.table("a").to_arrow().num_rows == 3


def test_a_source_that_is_gone(tmp_path: Path) -> None:
    project(tmp_path, CHAIN).refresh()
    shutil.rmtree(tmp_path / "lake" / "t")
    again = hw.Project.load(tmp_path)
    with pytest.raises(ProjectError, match="`a` reads `t`, which is neither in the project nor in the lake"):
        again.refresh()
    assert again.lake.table("b").to_arrow().num_rows == 2


def test_a_source_that_loses_a_column(tmp_path: Path) -> None:
    made = project(tmp_path, CHAIN)
    made.refresh()
    made.lake.table("t").overwrite([{"id": 1, "k": "a"}], schema_mode="replace")
    again = hw.Project.load(tmp_path)
    with pytest.raises(hw.NotFoundError, match="no column `x`") as caught:
        again.refresh()
    assert caught.value.where is not None and caught.value.where.startswith("views/a.sql:1")


def test_a_source_that_gains_a_column(tmp_path: Path) -> None:
    files = {"views/a.sql": "SELECT * FROM t", "views/b.sql": "SELECT id FROM t"}
    made = project(tmp_path, files)
    made.refresh()
    made.lake.table("t").append([{"id": 3, "k": "a", "x": 1.0, "more": 1}], schema_mode="merge")
    again = hw.Project.load(tmp_path)
    plan = again.plan()
    assert (plan["a"].change, plan["b"].change) == ("changed", None)
    assert plan["a"].reason == "its query gives other columns now" and plan["b"].mode == "incremental"
    assert again.refresh().ok and again.verify().ok
    assert again.lake.table("a").snapshot.schema.names == ["id", "k", "x", "more"]


def test_changes_that_were_vacuumed(tmp_path: Path) -> None:
    made = project(tmp_path, {"views/a.sql": "SELECT id, k FROM t"})
    made.refresh()
    table = made.lake.table("t")
    table.overwrite([{"id": 7, "k": "z", "x": 1.0}])
    table.overwrite([{"id": 8, "k": "y", "x": 1.0}])
    table.vacuum(retention_hours=0, enforce_retention=False)
    again = hw.Project.load(tmp_path)
    plan = again.plan()["a"]
    assert plan.mode == "full" and "since version 0 are gone" in plan.reason
    assert again.plan(strict=True)["a"].mode == "blocked"
    assert again.refresh().ok and again.lake.table("a").to_arrow().to_pylist() == [{"id": 8, "k": "y"}]


def test_all_nodes_of_a_refresh_read_the_same_versions(tmp_path: Path) -> None:
    files = {
        "views/a.sql": "SELECT k, sum(x) AS s FROM t GROUP BY k",
        "views/b.sql": "SELECT k, count(*) AS n FROM t GROUP BY k",
        "views/c.sql": "SELECT a.k, s, n FROM a JOIN b ON a.k = b.k",
    }
    made = project(tmp_path, files)
    made.refresh()
    table = made.lake.table("t")
    done: list[object] = []

    def commit_meanwhile(one: object) -> None:
        if len(done) < 4:  # whoever is refreshed, the table goes on
            done.append(table.append([{"id": 50 + len(done), "k": "a", "x": 1.0}]))

    table.append([{"id": 3, "k": "a", "x": 1.0}])
    run = made.refresh(on_change=commit_meanwhile, workers=2)
    at = {name: made.lake.derived(name).frontier["t"] for name in ("a", "b")}
    assert run.frontier["t"] == 1 and set(at.values()) == {1} and len(done) == 4
    assert made.lake.table("c").to_arrow().sort_by("k").to_pylist()[0] == {"k": "a", "s": 2.5, "n": 2}


@pytest.mark.long
def test_a_lake_that_cannot_be_reached(tmp_path: Path) -> None:
    options = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
    secrets = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    lines = "".join(f'  {name}: "{value}"\n' for name, value in {**options, **secrets}.items())
    (tmp_path / "headwater.yaml").write_text(f"name: shop\nlake: s3://bucket/x\nstorage_options:\n{lines}")
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "v.sql").write_text("SELECT id FROM t")
    with pytest.raises(hw.StorageError, match="cannot reach"):
        hw.Project.load(tmp_path).refresh()
