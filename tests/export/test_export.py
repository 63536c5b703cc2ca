"""Exports are plain Parquet for any reader, cost the files that changed, and are one of a lake's derived artefacts."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from tests.incremental.killing import Server
from tests.incremental.views.world import World

import headwater as hw
from headwater.base.errors import InputError, NotFoundError, SchemaError
from headwater.export import Export
from headwater.lakehouse import Lake
from headwater.testing import assert_same_rows


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = hw.connect(tmp_path / "lake")
    lake.write("orders", pa.table({"id": [1, 2, 3], "name": ["a", None, "Zoë"], "amount": [5.0, 7.5, None]}))
    return lake


def parts(folder: str) -> set[str]:
    return {name for name in os.listdir(folder) if name.endswith(".parquet")}


def test_any_reader_of_parquet_sees_the_rows(lake: Lake, tmp_path: Path) -> None:
    made = lake.export("out", "orders", to=tmp_path / "out", refresh=True)
    lake.table("orders").append([{"id": 4, "name": "d", "amount": 1.0}])
    lake.table("orders").delete("id = 1")
    made.refresh()
    listed = (tmp_path / "out" / "_symlink_format_manifest" / "manifest").read_text().split()
    assert listed == made.files
    for files in (made.files, listed):
        with duckdb.connect() as reader:
            rows = reader.execute("SELECT id FROM read_parquet(?) ORDER BY id", [files]).fetchall()
        assert [row[0] for row in rows] == [2, 3, 4]
    assert made.verify().equal
    assert made.status().rows == 3


def test_a_refresh_writes_only_for_files_that_changed(lake: Lake, tmp_path: Path) -> None:
    orders = lake.table("orders")
    for n in range(10, 15):
        orders.append([{"id": n, "name": "x", "amount": 1.0}])
    made = lake.export("out", "orders", to=tmp_path / "out", refresh=True)
    before = parts(made.location)
    assert len(before) == 6
    orders.update({"amount": "amount + 1"}, where="id = 12")
    report = made.refresh()
    assert report.mode == "incremental" and report.rows_in == 2
    assert len(parts(made.location) - before) == 1, "the file with the row marked has no row left, and one came"
    orders.optimize()
    report = made.refresh()
    assert (report.mode, report.rows_in, report.rows_out) == ("incremental", 0, 0)
    assert made.verify().equal


@pytest.mark.long
def test_files_stay_for_one_more_refresh_and_then_go(lake: Lake, tmp_path: Path) -> None:
    orders = lake.table("orders")
    made = lake.export("out", "orders", to=tmp_path / "out", refresh=True)
    old = made.files
    orders.delete("id = 1")
    made.refresh()
    assert all(map(os.path.exists, old)), "a reader may have just looked"
    orders.delete("id = 2")
    made.refresh()
    assert not any(map(os.path.exists, old))
    (tmp_path / "out" / "part-0000000009-stray.parquet").write_bytes(b"?")
    (tmp_path / "out" / "somebody-elses.parquet").write_bytes(b"?")
    script = f"import headwater as hw; hw.connect({str(tmp_path / 'lake')!r}).export('out').refresh(full=True)"
    subprocess.run([sys.executable, "-c", script], check=True)
    assert "part-0000000009-stray.parquet" not in parts(made.location), "what an attempt left is swept"
    assert "somebody-elses.parquet" in parts(made.location), "and nothing else"


def test_it_is_one_of_the_artefacts_of_the_lake(lake: Lake) -> None:
    view = lake.view("named", "SELECT id FROM orders WHERE name IS NOT NULL")
    made = lake.export("out", "named")
    assert lake.artefacts() == {"named": "view", "out": "export"}
    assert [one.name for one in lake.refresh()] == ["named", "out"]
    assert sorted(made.read().read_all()["id"].to_pylist()) == [1, 3]
    lake.table("orders").append([{"id": 9, "name": "n", "amount": 0.0}])
    assert [(one.name, one.kind.name, one.stale) for one in lake.status()] == [
        ("named", "view", True),
        ("out", "export", True),
    ]
    assert [one.name for one in lake.derived("out").refresh().upstream] == ["named"]
    with pytest.raises(InputError, match="`out`"):
        view.drop()
    with pytest.raises(InputError, match="is the name of a"):
        lake.write("out", [{"a": 1}])
    with pytest.raises(InputError):
        lake.export("orders", "named")
    assert view.drop(cascade=True) == ["out", "named"]
    assert lake.artefacts() == {}
    with pytest.raises(NotFoundError, match="out"):
        lake.export("out")


def test_statements_find_it_by_its_kind(lake: Lake) -> None:
    lake.export("out", "orders", where="amount > 6")
    assert lake.sql("SHOW EXPORTS").to_pylist()[0]["exportName"] == "out"
    done = lake.sql("REFRESH EXPORT out").to_pylist()
    assert (done[0]["mode"], done[0]["export"]) == ("full", "out")
    facts = {row["col_name"]: row["data_type"] for row in lake.sql("DESCRIBE EXTENDED out").to_pylist()}
    assert facts["Type"] == "EXPORT" and facts["Frontier"] == "orders@0"
    lake.sql("DROP EXPORT out")
    assert lake.sql("SHOW EXPORTS").to_pylist() == []
    lake.sql("DROP EXPORT IF EXISTS out")


def test_what_cannot_be_exported_is_refused(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="nosuch"):
        lake.export("out", "orders", columns=["nosuch"])
    made = lake.export("out", "orders", to=tmp_path / "out", where="amount > 1")
    with pytest.raises(InputError, match="never built"):
        made.read()
    assert lake.export("out", "orders", to=tmp_path / "out", where="amount > 1").name == "out"
    with pytest.raises(InputError, match="another definition"):
        lake.export("out", "orders", to=tmp_path / "out", where="amount > 2")
    made.refresh()
    table = lake.table("orders")
    table.create({"id": pa.int64(), "name": pa.string()}, mode="replace")
    before = made.read().read_all()
    with pytest.raises(SchemaError, match="amount"):
        made.refresh()
    assert_same_rows(made.read(), before)


@pytest.mark.long
def test_killed_at_random_it_is_before_or_after(tmp_path: Path) -> None:
    world = World(tmp_path / "lake", 3)
    made = world.lake.export("out", "orders", to=tmp_path / "out", where="id < 50", refresh=True)
    rng = random.Random(7)
    server = Server("tests.export.kill_server")
    for number in range(int(os.environ.get("HEADWATER_TEST_KILLS", "8"))):
        for _ in range(3):
            world.commit(rng)
        life = {"full": bool(number % 2), "after_ms": rng.uniform(5, 150)}
        assert server.live(folder=str(tmp_path / "lake"), **life) == signal.SIGKILL
        assert Export("out", world.lake.environment()).verify().equal
    server.close()
    made.refresh()
    assert made.verify().equal and made.frontier == world.head("orders")
    made.refresh(full=True)
    made.refresh(full=True)
    assert {Path(path).name for path in made.files} <= parts(made.location)
