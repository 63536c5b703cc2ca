"""Files that the log names by their whole path: deletion vectors, files of a shallow clone, entries of the feed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.lake import log, snapshot
from headwater.lake.table import Table
from headwater.lakehouse import Lake
from headwater.testing.s3_server import S3Server

ROWS = [{"id": i, "p": "x" if i % 2 else "y"} for i in range(6)]
FORMS: dict[str, Callable[[Path], str]] = {
    "path": lambda p: str(p).replace(" ", "%20"),
    "file": lambda p: f"file:{str(p).replace(' ', '%20')}",
    "url": lambda p: f"file://{str(p).replace(' ', '%20')}",
    "host": lambda p: f"file://localhost{str(p).replace(' ', '%20')}",
}


def edited(table: Table, version: int, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the actions of a commit in place."""
    path = log.commit_path(version)
    actions = [json.loads(line) for line in table.storage.get(path).splitlines()]
    for action in actions:
        change(action)
    table.storage.put(path, "\n".join(map(json.dumps, actions)).encode())
    snapshot.forget(table.storage)


def with_vector_at(table: Table, spelled: str, *, kind: str = "add") -> None:
    def change(action: dict[str, Any]) -> None:
        vector = action.get(kind, {}).get("deletionVector")
        if vector is not None:
            vector |= {"storageType": "p", "pathOrInlineDv": spelled}

    edited(table, table.version, change)


def moved_vector(table: Table, folder: Path) -> Path:
    """Delete a row; its vector lies in another folder then."""
    with hw.settings.override(small_vector_bytes=0):
        table.delete("id = 1")
    (vector,) = Path(table.location).glob("*.bin")
    folder.mkdir(parents=True, exist_ok=True)
    return vector.rename(folder / vector.name)


def ids(table: Table) -> list[int]:
    return sorted(r["id"] for r in table.to_pylist())


@pytest.fixture
def local(tmp_path: Path) -> Lake:
    return hw.connect(tmp_path / "lake")


@pytest.mark.parametrize("form", FORMS)
def test_a_vector_with_a_whole_path(local: Lake, tmp_path: Path, form: str) -> None:
    table = local.write("t", ROWS)
    vector = moved_vector(table, tmp_path / "other place")
    with_vector_at(table, FORMS[form](vector))
    assert ids(table) == [0, 2, 3, 4, 5]
    assert [r["id"] for r in table.changes(after=0).to_arrow().to_pylist()] == [1]
    for engine in ("duckdb", "datafusion"):
        assert local.sql("SELECT sum(id) AS n FROM t", engine=engine).to_arrow().to_pylist() == [{"n": 14}]
    table.append([{"id": 9, "p": "x"}])
    table.delete("id = 2")
    table.update({"id": "id + 10"}, where="id = 3")
    assert ids(table) == [0, 4, 5, 9, 13]
    table.restore(1)
    assert ids(table) == [0, 2, 3, 4, 5]
    table.optimize()
    assert ids(table) == [0, 2, 3, 4, 5]
    table.vacuum(retention_hours=0, enforce_retention=False)
    assert ids(table) == [0, 2, 3, 4, 5]
    assert vector.exists(), "it is not in the table's folder"


def test_a_vector_that_cannot_be_read(local: Lake, tmp_path: Path) -> None:
    table = local.write("t", ROWS)
    vector = moved_vector(table, tmp_path / "other")
    with_vector_at(table, f"file://{vector}")
    vector.unlink()
    (file,) = table.snapshot.files
    with pytest.raises(hw.NotFoundError) as missing:
        table.to_arrow()
    assert str(vector) in missing.value.message and file in missing.value.message
    assert missing.value.where == table.location
    attempts: list[Callable[[], object]] = [lambda: table.delete("id = 2"), lambda: table.update({"p": "'z'"})]
    for attempt in (*attempts, table.optimize):
        with pytest.raises(hw.NotFoundError):
            attempt()
    assert table.version == 1, "nothing was committed"
    table.append([{"id": 9, "p": "x"}])
    with pytest.raises(hw.NotFoundError):
        table.to_arrow()
    table.restore(0)
    assert ids(table) == list(range(6))
    with pytest.raises(hw.NotFoundError):
        table.restore(1)
    assert table.version == 3


@pytest.mark.parametrize("place", ["abfss://data@account/x.bin", "hdfs://host/x.bin"])
def test_a_place_that_nothing_here_can_open(local: Lake, tmp_path: Path, place: str) -> None:
    table = local.write("t", ROWS)
    moved_vector(table, tmp_path / "other")
    with_vector_at(table, place)
    for attempt in (table.to_arrow, lambda: table.delete("id = 2"), table.optimize):
        with pytest.raises(hw.StorageError) as refused:
            attempt()
        assert refused.value.code == "E6008" and place in refused.value.message
        assert next(iter(table.snapshot.files)) in refused.value.message
        assert refused.value.where == table.location
    assert table.version == 1


def cloned(source: Table, target: Table, form: str) -> Table:
    """A shallow clone, as Delta's own implementation makes it: a log that names the files of another table."""
    spelled = FORMS[form]
    target.create(source.schema, partition_by=source.snapshot.partition_columns)

    def whole(add: dict[str, Any]) -> dict[str, Any]:
        return {**add, "path": spelled(Path(source.location)) + "/" + add["path"]}

    adds = [{"add": whole(f.to_action()["add"])} for f in source.snapshot.files.values()]
    info = {"commitInfo": {"timestamp": 1, "operation": "CLONE"}}
    target.storage.put(log.commit_path(1), "\n".join(map(json.dumps, [info, *adds])).encode())
    snapshot.forget(target.storage)
    return target


@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize("form", FORMS)
def test_a_shallow_clone(tmp_path: Path, form: str, vectors: str) -> None:
    source = hw.connect(tmp_path / "the source").write("s", ROWS, partition_by=["p"])
    lake = hw.connect(tmp_path / "lake")
    table = cloned(source, lake.table("t"), form)
    table.set_properties({"delta.enableDeletionVectors": vectors})
    assert ids(table) == list(range(6))
    assert len(table.changes(after=0)) == 6
    assert local_sum(lake) == 15
    table.delete("id = 1")
    table.update({"p": "'z'"}, where="id = 2")
    assert ids(table) == [0, 2, 3, 4, 5]
    table.optimize()
    assert local_sum(lake) == 14
    table.delete("p = 'x'")
    assert ids(table) == [0, 2, 4]
    gone = table.vacuum(retention_hours=0, enforce_retention=False)
    assert not any(p.startswith(("/", "file:")) for p in gone.files)
    assert ids(source) == list(range(6)), "what belongs to the other table stays"
    table.restore(1)
    assert ids(table) == list(range(6))


def local_sum(lake: Lake) -> int:
    total: int = lake.sql("SELECT sum(id) AS n FROM t").to_arrow().to_pylist()[0]["n"]
    return total


def test_entries_of_the_feed_with_a_whole_path(local: Lake, tmp_path: Path) -> None:
    table = local.write("t", ROWS, properties={"delta.enableChangeDataFeed": "true"})
    table.update({"p": "'z'"}, where="id = 2")
    (entry,) = (Path(table.location) / "_change_data").iterdir()
    moved = entry.rename(tmp_path / entry.name)

    def change(action: dict[str, Any]) -> None:
        if "cdc" in action:
            action["cdc"]["path"] = f"file:{moved}"

    edited(table, 1, change)
    found = table.changes(after=0).to_arrow().to_pylist()
    assert sorted((r["id"], r["p"], r["_weight"]) for r in found) == [(2, "y", -1), (2, "z", 1)]
    assert local.sql("SELECT count(*) AS n FROM table_changes('t', 1, 1)").to_arrow().to_pylist() == [{"n": 2}]


def test_vacuum_keeps_a_vector_of_its_own_with_a_whole_path(local: Lake) -> None:
    table = local.write("t", ROWS)
    vector = moved_vector(table, Path(table.location))
    with_vector_at(table, f"file:{vector}")
    os.utime(vector, (1, 1))
    table.vacuum(retention_hours=0, enforce_retention=False)
    assert ids(table) == [0, 2, 3, 4, 5]


def test_vacuum_knows_its_folder_by_another_name(local: Lake, tmp_path: Path) -> None:
    table = local.write("t", ROWS)
    (name,) = table.snapshot.files
    edited(table, 0, lambda a: a["add"].update(path=f"file:{table.location}/{name}") if "add" in a else None)
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    other = hw.connect(tmp_path / "link").table("t")
    os.utime(Path(table.location) / name, (1, 1))
    assert len(other.vacuum(retention_hours=0, enforce_retention=False)) == 0
    assert ids(other) == list(range(6))


def test_vacuum_does_not_follow_links(local: Lake, tmp_path: Path) -> None:
    table = local.write("t", ROWS)
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "rows.parquet").write_bytes(b"not ours")
    (Path(table.location) / "p=x").symlink_to(tmp_path / "precious")
    os.utime(tmp_path / "precious" / "rows.parquet", (1, 1))
    assert len(table.vacuum(retention_hours=0, enforce_retention=False)) == 0
    assert (tmp_path / "precious" / "rows.parquet").exists()


def test_storage_never_deletes_or_writes_elsewhere(local: Lake, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_bytes(b"here")
    storage = local.write("t", ROWS).storage
    for path in (str(other), f"file:{other}", "../../other.txt"):
        for attempt in (storage.delete, lambda p: storage.put(p, b""), lambda p: storage.put_if_absent(p, b"")):
            with pytest.raises(hw.StorageError):
                attempt(path)
    assert other.read_bytes() == b"here"


def test_on_s3(s3: S3Server, tmp_path: Path) -> None:
    """Whole paths lead to other places of the bucket, under each of the schemes that engines write."""
    lake = hw.connect(s3.url("clones"), storage_options=s3.options)
    source = lake.write("source", ROWS)
    with hw.settings.override(small_vector_bytes=0):
        source.delete("id = 1")
    (file,) = source.snapshot.files.values()
    assert file.deletion_vector is not None
    for number, scheme in enumerate(("s3", "s3a")):
        table = lake.table(f"clone{number}").create(source.schema)
        place = scheme + source.location[2:]
        add = file.to_action()["add"]
        add["path"] = f"{place}/{file.path}"
        add["deletionVector"] |= {
            "storageType": "p",
            "pathOrInlineDv": f"{place}/{file.deletion_vector.relative_path()}",
        }
        table.storage.put(log.commit_path(1), json.dumps({"add": add}).encode())
        snapshot.forget(table.storage)
        assert ids(table) == [0, 2, 3, 4, 5]
        table.delete("id = 2")
        table.optimize()
        table.vacuum(retention_hours=0, enforce_retention=False)
        assert ids(table) == [0, 3, 4, 5]
    assert ids(source) == [0, 2, 3, 4, 5]
    here = hw.connect(tmp_path, storage_options=s3.options).table("t").create(source.schema)
    add = file.to_action()["add"] | {"path": f"{source.location}/{file.path}"}
    del add["deletionVector"]
    here.storage.put(log.commit_path(1), json.dumps({"add": add}).encode())
    snapshot.forget(here.storage)
    assert ids(here) == list(range(6)), "a table on the disk may name files of a bucket"
