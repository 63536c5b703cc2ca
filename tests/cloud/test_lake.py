"""One lake on each cloud: tables, SQL, views, exports, online tables and changes, all as on the disk."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import headwater as hw
from headwater.base.storage import open_storage
from headwater.lake import log, snapshot
from headwater.lakehouse import Lake
from headwater.testing.azure_server import AzureServer
from headwater.testing.object_server import ObjectServer
from headwater.timeseries.sources.files import files_at

ROWS: list[dict[str, Any]] = [{"id": i, "p": "x" if i % 2 else "y z", "v": float(i)} for i in range(20)]
QUERY = "SELECT p, count(*) AS n, sum(v) AS total FROM orders GROUP BY p ORDER BY p"


def story(lake: Lake, export_to: str) -> list[Any]:
    """What a lake answers after each of some steps, for two lakes to be compared."""
    told: list[Any] = []
    orders = lake.write("orders", ROWS, partition_by=["p"])
    spend = lake.view("spend", "SELECT p, count(*) AS n, sum(v) AS total FROM orders GROUP BY p")
    files = lake.export("files", "orders", to=export_to)
    online = lake.online("features", "orders", key=["id"])
    for step in range(3):
        if step == 1:
            orders.update({"v": "v + 100"}, where="id < 5")
            orders.delete("id = 7")
        if step == 2:
            news = [{"id": 3, "p": "x", "v": 0.5}, {"id": 99, "p": "x", "v": 9.5}]
            orders.merge(news, on="t.id = s.id").when_matched_update_all().when_not_matched_insert_all().execute()
            orders.optimize()
        for one in (spend, files, online):
            one.refresh()
            assert one.verify().equal
        told.append(sorted(orders.to_pylist(), key=lambda r: r["id"]))
        told += [lake.sql(QUERY, engine=engine).to_tuples() for engine in ("duckdb", "datafusion")]
        told.append(sorted(spend.to_pylist(), key=lambda r: r["p"]))
        told.append(sorted(files.to_arrow().to_pylist(), key=lambda r: r["id"]))
        told.append(lake.online("features").fetch([3, 7, 99]).to_pylist())
    told.append(sorted(orders.changes(after=0).to_arrow().to_pylist(), key=str))
    told.append(lake.sql("SELECT count(*) FROM orders VERSION AS OF 0").to_tuples())
    told.append([h.operation for h in orders.history()])
    orders.vacuum(retention_hours=0, enforce_retention=False)
    told.append(orders.count())
    return told


def test_the_same_as_on_the_disk(cloud: ObjectServer, tmp_path: Path) -> None:
    lake = hw.connect(cloud.url("story"), storage_options=cloud.options)
    there = story(lake, cloud.url("export"))
    here = story(hw.connect(tmp_path / "lake"), str(tmp_path / "export"))
    assert there == here
    orders = lake.table("orders")
    assert DeltaTable(orders.location, storage_options=cloud.options).version() == orders.version
    assert lake.tables() == ["orders"] and lake.views() == ["spend"]


def test_a_log_names_files_by_other_spellings(azure: AzureServer) -> None:
    """Spark writes whole paths as abfss://…: they are read, and a vacuum knows which of them are its own."""
    lake = hw.connect(azure.url("clones"), storage_options=azure.options)
    source = lake.write("source", ROWS)
    (file,) = source.snapshot.files.values()
    container, _, prefix = source.location.removeprefix("az://").partition("/")
    spelled = [
        f"abfss://{container}@{azure.account}.dfs.core.windows.net/{prefix}",
        f"abfs://{container}@{azure.account}.dfs.core.windows.net/{prefix}",
        f"azure://{container}/{prefix}",
    ]
    for number, place in enumerate(spelled):
        clone = lake.table(f"clone{number}").create(source.schema)
        add = file.to_action()["add"] | {"path": f"{place}/{file.path}"}
        clone.storage.put(log.commit_path(1), json.dumps({"add": add}).encode())
        snapshot.forget(clone.storage)
        assert clone.count() == source.count()
        reopened = hw.connect(place.rpartition("/")[0], storage_options=azure.options)
        assert reopened.table("source").count() == source.count()
    remove = {"path": file.path, "deletionTimestamp": 1, "dataChange": False}
    add = file.to_action()["add"] | {"path": f"{spelled[0]}/{file.path}", "dataChange": False}
    source.storage.put(
        log.commit_path(1), "\n".join(json.dumps(a) for a in ({"remove": remove}, {"add": add})).encode()
    )
    snapshot.forget(source.storage)
    assert source.version == 1 and source.count() == len(ROWS)
    assert len(source.vacuum(retention_hours=0, enforce_retention=False)) == 0
    assert source.count() == len(ROWS), "its own file, by a whole path in another spelling, is alive"


def test_another_account_is_not_reached_with_these_credentials(azure: AzureServer) -> None:
    lake = hw.connect(azure.url("foreign"), storage_options=azure.options)
    table = lake.write("t", ROWS)
    (file,) = table.snapshot.files.values()
    add = file.to_action()["add"] | {"path": f"abfss://{azure.bucket}@another.dfs.core.windows.net/{file.path}"}
    table.storage.put(log.commit_path(1), json.dumps({"add": add}).encode())
    snapshot.forget(table.storage)
    with pytest.raises(hw.StorageError) as caught:
        table.to_arrow()
    assert caught.value.code == "E6008" and azure.secret not in str(caught.value)


def test_a_lake_attaches_tables_of_several_clouds(cloud: ObjectServer, tmp_path: Path) -> None:
    other = hw.connect(cloud.url("attached"), storage_options=cloud.options).write("t", ROWS)
    here = hw.connect(tmp_path / "lake", storage_options={**cloud.options, "AWS_REGION": "eu-west-1"})
    here.attach("far", other.location)
    assert here.sql("SELECT sum(id) FROM far").to_tuples() == [(190,)]


def test_files_of_no_table(cloud: ObjectServer) -> None:
    """What a stream reads in tasks: the source goes to another process, with what opens it."""
    storage = open_storage(cloud.url("files"), cloud.options)
    with storage.open_output("raw/day=1/a.parquet") as file:
        pq.write_table(pa.Table.from_pylist(ROWS), file)
    tasks = files_at(f"{storage.url}/raw", options=dict(cloud.options)).tasks()
    work = pickle.loads(pickle.dumps(tasks.work))
    read = pa.concat_tables(table for number in range(tasks.count) for table in work(number))
    assert read.sort_by("id").to_pylist() == [{**row, "day": 1} for row in ROWS]
