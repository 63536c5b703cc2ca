"""A project: planned, refreshed, recorded and looked at, on a lake of its own."""

from __future__ import annotations

import os
import threading
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.base.errors import ProjectError, SchemaError
from headwater.pipeline.ledger import LEDGER
from headwater.pipeline.scaffold import init_project
from headwater.pipeline.schema import schema_text


def project(folder: Path, files: dict[str, str] | None = None) -> hw.Project:
    """A project of some files, with one table of two rows in its lake."""
    lake = hw.connect(folder / "lake")
    if not lake.table("t").exists():
        lake.write("t", [{"id": 1, "k": "a", "x": 1.5}, {"id": 2, "k": "b", "x": 2.5}])
    texts = {"headwater.yaml": "name: shop\n", **(files or {})}
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return hw.Project.load(folder)


CHAIN = {
    "views/a.sql": "SELECT id, k, x FROM t",
    "views/b.sql": "SELECT k, sum(x) AS s FROM a GROUP BY k",
    "views/c.sql": "-- online:\n--   d: {key: k}\nSELECT k, s * 2 AS s2 FROM b",
}


def test_the_schema_is_that_of_the_models() -> None:
    file = resources.files("headwater.pipeline") / "schema.json"
    if os.environ.get("HEADWATER_UPDATE_GOLDEN"):
        Path(str(file)).write_text(schema_text())
    assert file.read_text() == schema_text()


def test_a_chain_is_built_in_order_and_then_follows_changes(tmp_path: Path) -> None:
    made = project(tmp_path, CHAIN)
    assert [one.mode for one in made.plan().values()] == ["full"] * 4
    assert list(made.nodes) == ["t", "a", "b", "c", "d"]
    run = made.refresh()
    assert run.ok and run.changed == ["a", "b", "c", "d"]
    made.lake.table("t").append([{"id": 3, "k": "a", "x": 1.0}])
    plan = made.plan()
    assert [one.mode for one in plan.values()] == ["incremental"] * 4
    assert (plan["a"].rows, plan["a"].rows_total, plan["b"].rows) == (1, 3, None)
    again = made.refresh()
    assert again.changed == ["a", "b", "c", "d"]
    assert {one.refresh.mode for one in again.values() if one.refresh} == {"incremental"}
    assert made.lake.online("d").fetch(["a"]).to_pylist() == [{"s2": 5.0}]
    assert made.refresh().changed == []
    assert made.verify().ok


def test_the_ledger_has_one_row_for_each_publish(tmp_path: Path) -> None:
    made = project(tmp_path, CHAIN)
    made.refresh()
    made.lake.table("t").append([{"id": 3, "k": "a", "x": 1.0}])
    made.refresh()
    made.refresh()
    rows = made.lake.sql(f"SELECT node, version, mode, rows_touched FROM {LEDGER} ORDER BY node, version").to_pylist()
    assert [(r["node"], r["mode"]) for r in rows] == [(n, m) for n in "abcd" for m in ("full", "incremental")]
    assert made.history("b").num_rows == 2 and made.history(limit=3).num_rows == 3


def test_what_others_publish_is_found_and_written_once(tmp_path: Path) -> None:
    made = project(tmp_path, CHAIN)
    made.refresh()
    for n in range(3):
        made.lake.table("t").append([{"id": 10 + n, "k": "a", "x": 1.0}])
        made.lake.refresh("b")
    made.refresh()
    rows = made.history("b").to_pylist()
    assert len({row["version"] for row in rows}) == len(rows) == 4
    assert [row["run"] is None for row in rows] == [True, True, True, False]


def test_a_failure_stays_in_its_branch(tmp_path: Path) -> None:
    files = {
        "views/good.sql": "SELECT id FROM t",
        "views/bad.sql": "SELECT CAST(k AS int) AS n FROM t",
        "views/below.sql": "SELECT n + 1 AS m FROM bad",
        "views/both.sql": "SELECT id FROM good UNION ALL SELECT m FROM below",
    }
    run = project(tmp_path, files).refresh()
    assert {name: one.state for name, one in run.items()} == {
        "good": "done",
        "bad": "failed",
        "below": "blocked",
        "both": "blocked",
    }
    assert run["both"].blocked_by == ("bad",) and not run.ok
    row = hw.Project.load(tmp_path).history("bad").to_pylist()[0]
    assert row["mode"] == "failed" and row["error"].startswith("[E")


def test_nothing_is_applied_of_a_bad_project(tmp_path: Path) -> None:
    made = project(tmp_path, {**CHAIN, "views/z.sql": "SELECT nothing FROM c"})
    with pytest.raises(hw.HeadwaterError) as caught:
        made.refresh()
    assert caught.value.where is not None and caught.value.where.startswith("views/z.sql:1")
    assert made.lake.artefacts() == {} and not made.lake.table(LEDGER).exists()


def test_a_changed_query_changes_the_view_and_its_readers(tmp_path: Path) -> None:
    project(tmp_path, CHAIN).refresh()
    made = project(tmp_path, {**CHAIN, "views/a.sql": "SELECT id, upper(k) AS k, x FROM t"})
    plan = made.plan()
    assert (plan["a"].change, plan["a"].mode, plan["b"].change) == ("changed", "full", None)
    run = made.refresh()
    assert run.ok and run["a"].change == "changed"
    done = run["a"].refresh
    assert done is not None and (done.mode, done.rows_out, done.reason) == ("full", 4, "its query was changed")
    row = made.history("a").to_pylist()[0]
    assert (row["mode"], row["rows_touched"], row["reason"]) == ("full", 4, "its query was changed")
    assert made.lake.sql("SELECT k FROM b ORDER BY k").to_pylist() == [{"k": "A"}, {"k": "B"}]
    assert made.verify().ok


def test_what_is_not_in_the_project_is_reported_and_left_alone(tmp_path: Path) -> None:
    project(tmp_path, CHAIN).refresh()
    (tmp_path / "views" / "c.sql").unlink()
    made = hw.Project.load(tmp_path)
    assert made.unmanaged == {"c": "view", "d": "online"} and made.plan().unmanaged == made.unmanaged
    made.refresh()
    assert "c" in made.lake.artefacts()


def test_selection(tmp_path: Path) -> None:
    made = project(tmp_path, {**CHAIN, "views/e.sql": "-- tags: [daily]\nSELECT id FROM t"})
    assert list(made.plan("+b")) == ["a", "b"]
    assert list(made.plan("b+")) == ["b", "c", "d"]
    assert list(made.plan("t+")) == ["a", "b", "c", "d", "e"] or set(made.plan("t+")) == set("abcde")
    assert list(made.plan("tag:daily")) == ["e"]
    assert list(made.plan("kind:online")) == ["d"]
    for wrong in ("zz", "+", "tag:none", "t"):
        with pytest.raises(ProjectError):
            made.plan(wrong)


def test_strict_leaves_what_would_be_computed_from_scratch(tmp_path: Path) -> None:
    made = project(tmp_path, CHAIN)
    assert made.refresh(strict=True).ok  # the first time there is nothing to follow
    made.lake.table("t").append([{"id": 3, "k": "a", "x": 1.0}])
    assert made.refresh(strict=True).ok
    changed = project(tmp_path, {**CHAIN, "views/a.sql": "SELECT id, lower(k) AS k, x FROM t"})
    assert changed.plan(strict=True)["a"].mode == "blocked"
    run = changed.refresh(strict=True)
    assert run.failed["a"].code == "E1916" and run.of_state("blocked") == ["b", "c", "d"]
    assert changed.lake.view("a").definition == CHAIN["views/a.sql"]


def test_a_stopped_refresh_begins_no_node(tmp_path: Path) -> None:
    stopped = threading.Event()
    stopped.set()
    run = project(tmp_path, CHAIN).refresh(stopped=stopped)
    assert run.stopped and not run.ok and {one.state for one in run.values()} == {"stopped"}


def test_status_and_targets(tmp_path: Path) -> None:
    files = {**CHAIN, "headwater.yaml": "name: shop\ndefaults: {freshness: 1 hour}\n"}
    made = project(tmp_path, files)
    assert {one.health for one in made.status().values()} == {"not applied"}
    made.refresh()
    assert made.status().ok
    made.lake.table("t").append([{"id": 3, "k": "a", "x": 1.0}])
    found = made.status()
    assert found.ok and found["a"].lag == {"t": 1} and found["d"].behind == ("c",)
    files["headwater.yaml"] = "name: shop\ndefaults: {freshness: 1 ms}\n"
    late = project(tmp_path, files).status()
    assert late.stale == ["a", "b", "c", "d"]
    assert all(one.lag_seconds and one.lag_seconds > 0 for one in late.values())


def test_the_project_of_init_works_at_once(tmp_path: Path) -> None:
    init_project(tmp_path / "shop")
    made = hw.Project.load(tmp_path / "shop" / "views")
    assert made.refresh().ok and made.status().ok
    assert "customer_spend" in str(made.lineage()) and "<svg" in made._repr_html_()
    assert "fresh at orders@0" in str(made.lineage()) and " in 0 steps" not in str(made.lineage())
    with pytest.raises(ProjectError, match="has files"):
        init_project(tmp_path / "shop")


def test_columns_can_be_followed(tmp_path: Path) -> None:
    made = project(tmp_path, CHAIN)
    assert made.column_lineage("d", "s2") == [("c", "s2"), ("b", "s"), ("a", "x"), ("t", "x")]


def test_a_source_lies_elsewhere(tmp_path: Path) -> None:
    other = hw.connect(tmp_path / "other")
    other.write("raw", [{"id": 1}])
    yaml = "name: shop\nsources:\n  raw: {location: other/raw, columns: {id: bigint}}\n"
    made = project(tmp_path, {"headwater.yaml": yaml, "views/v.sql": "SELECT id FROM raw"})
    assert made.plan()["v"].mode == "full"
    assert not made.lake.catalog.is_attached("raw")  # a plan changes nothing
    assert made.refresh().ok
    other.table("raw").append([{"id": 2}])
    assert made.refresh()["v"].refresh.mode == "incremental"  # type: ignore[union-attr]
    assert any_error(tmp_path, yaml.replace("bigint", "string"))


def any_error(folder: Path, yaml: str) -> bool:
    (folder / "headwater.yaml").write_text(yaml)
    with pytest.raises((ProjectError, SchemaError), match=r"type|expects"):
        hw.Project.load(folder).check()
    return True


def test_functions_of_the_project(tmp_path: Path) -> None:
    code = "import headwater as hw\n@hw.function(arguments=['string'], returns='string')\ndef up(s):\n    return s and s.upper()\n"
    files: dict[str, Any] = {"functions/f.py": code, "views/v.sql": "SELECT up(k) AS k FROM t"}
    made = project(tmp_path, files)
    assert made.refresh().ok
    assert made.lake.sql("SELECT k FROM v ORDER BY k").to_pylist() == [{"k": "A"}, {"k": "B"}]
    changed = project(tmp_path, {**files, "functions/f.py": code.replace("s.upper()", "s.upper() + '!'")})
    assert changed.plan()["v"].change == "changed"
    assert changed.refresh().ok
    assert changed.lake.sql("SELECT k FROM v ORDER BY k").to_pylist() == [{"k": "A!"}, {"k": "B!"}]


@pytest.mark.long
def test_files_that_are_put_together_are_no_publish(tmp_path: Path) -> None:
    made = project(tmp_path, {"views/v.sql": "SELECT k, sum(x) AS s FROM t GROUP BY k"})
    made.refresh()
    view = made.lake.view("v")
    for number in range(60):
        made.lake.table("t").append([{"id": number, "k": f"k{number}", "x": 1.0}])
        published = view.refresh().before and view.record.published
        made.lake.close()  # what is done in the background is done
        if view.record.published > published:
            break
    assert view.record.published > published, "its files were never put together"
    made.refresh()
    rows = made.history("v").to_pylist()
    assert len(rows) == number + 2 == len({row["at"] for row in rows})
    made.refresh()
    assert made.history("v").num_rows == len(rows)
