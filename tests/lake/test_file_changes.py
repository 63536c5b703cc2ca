"""Changes of files: what a reader that keeps something for each data file has to do, whatever was committed."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.base.change import ChangeBatch
from headwater.lake import log, snapshot
from headwater.lake.file_changes import ChangedFile, FileChanges, file_changes_of, vector_difference
from headwater.lake.interval import Interval
from headwater.lake.scan import POSITION
from headwater.lake.table import Table
from headwater.lakehouse import Lake
from headwater.testing.histories import History

SEEDS = int(os.environ.get("HEADWATER_TEST_SEEDS", "2"))
FEED = {"delta.enableChangeDataFeed": "true"}
VARIANTS = {"vectors": {}, "feed": FEED, "rewrite": {"delta.enableDeletionVectors": "false"}}
ROWS = [{"id": i, "p": "x" if i % 2 else "y"} for i in range(6)]


def kinds(changes: FileChanges) -> Counter[str]:
    return Counter(f.kind for f in changes)


def keys(table: Table, version: int) -> set[tuple[str, str | None]]:
    return {f.key for f in table.at(version=version).snapshot.files.values()} if version >= 0 else set()


def committed(table: Table, *actions: dict[str, Any]) -> None:
    """A commit that another writer made."""
    lines = [{"commitInfo": {"timestamp": 1, "operation": "OTHER"}}, *actions]
    table.storage.put(log.commit_path(table.version + 1), "\n".join(map(json.dumps, lines)).encode())
    snapshot.forget(table.storage)


def edited(table: Table, version: int, change: Callable[[dict[str, Any]], None]) -> None:
    actions = [json.loads(line) for line in table.storage.get(log.commit_path(version)).splitlines()]
    for action in actions:
        change(action)
    table.storage.put(log.commit_path(version), "\n".join(map(json.dumps, actions)).encode())
    snapshot.forget(table.storage)


# ---------------------------------------------------------------------- random histories


@pytest.mark.long
@pytest.mark.parametrize("variant", VARIANTS)
def test_files_and_their_changes_add_up_for_all_versions(variant: str, lake: Lake) -> None:
    seen: Counter[str] = Counter()
    compared = 0
    for seed in range(2 * SEEDS):
        rng = random.Random(f"files {variant} {seed}")
        with hw.settings.override(fsync=False, checkpoint_interval=5, row_group_rows=2):
            table = lake.table(f"t{seed}")
            history = History(table, rng, properties=VARIANTS[variant], mode=rng.choice(["none", "none", "name", "id"]))
            # Each kind is met often: two appends and an update make files with vectors, which OPTIMIZE folds.
            plan = ["append", "append", "update", None, "optimize", "update", None, None, "optimize", None, None]
            steps = [history.step(name) for name in plan]
            states = {v: table.at(version=v).snapshot for v in history.versions}
            operations = {e.version: e.operation for e in table.history()}
            for after in (-1, *history.versions):
                for until in (v for v in history.versions if v >= after):
                    where = f"{after} to {until}, seed {seed}: {steps}"
                    found = table.file_changes(after, until)
                    _check_files(found, states, where)
                    _check_kinds(found, states, operations, where)
                    seen += kinds(found)
                    compared += after >= 0 and _check_rows(found, history, where)
    assert compared > 20
    wanted = {"added", "removed", "rewritten"} | ({"vector_changed"} if variant != "rewrite" else set())
    assert set(seen) == wanted, "each kind was met"


def _check_files(found: FileChanges, states: dict[int, snapshot.Snapshot], where: str) -> None:
    end = states[found.until]
    old = states[found.after].files if found.after >= 0 else {}
    assert {f.key for f in found.apply(old).values()} == {f.key for f in end.files.values()}, where
    assert len({f.path for f in found}) == len(found), where
    assert found.table_id == end.table_id, where
    for one in found:
        assert one.after == end.files.get(one.path), where
        was = old.get(one.path)
        assert (one.before is None) == (was is None), where
        if one.before is not None and was is not None:
            assert one.before.key == was.key and one.before.partition_values == was.partition_values, where
            assert one.before.deletion_vector == was.deletion_vector, where
            assert one.after is None or one.before.key != one.after.key, where


def _check_kinds(
    found: FileChanges, states: dict[int, snapshot.Snapshot], operations: dict[int, str], where: str
) -> None:
    """How each file came or went, by the states of every version in between."""
    for one in found:
        there = [found.after >= 0 and one.path in states[found.after].files]
        moved = found.after
        for version in range(found.after + 1, found.until + 1):
            there.append(one.path in states[version].files)
            moved = version if there[-1] != there[-2] else moved
        if there[0] and there[-1]:
            assert one.kind == "vector_changed", where
        elif operations[moved] == "OPTIMIZE":
            assert one.kind == "rewritten", where
            (rewrite,) = (r for r in found.rewrites if r.version == moved)
            assert one.path in {f.path for f in (rewrite.after if there[-1] else rewrite.before)}, where
        else:
            assert one.kind == ("added" if there[-1] else "removed"), where


def _check_rows(found: FileChanges, history: History, where: str) -> bool:
    """The rows of what came less the rows of what went are the change of rows, each file read by its own definition."""
    table = history.table.at(version=found.until)
    try:
        wanted = history.table.changes(found.after, found.until)
    except hw.SchemaError:
        return False
    if history.has_returned(found.after, found.until):
        return False  # a dropped column is back with its values: files that stayed have other rows
    parts = []
    for one in found:
        for file, weight in ((one.before, -1), (one.after, 1)):
            if file is not None:
                rows = table.read_file(file, metadata=one.metadata).read_all()
                parts.append(rows.append_column("_weight", pa.repeat(pa.scalar(weight, pa.int64()), rows.num_rows)))
    if not parts:
        assert wanted.is_empty, where
        return True
    total = ChangeBatch.from_table(pa.concat_tables(parts)).consolidate()
    assert total == wanted, f"{where}\n{total.to_arrow().to_pylist()}\nwanted {wanted.to_arrow().to_pylist()}"
    return True


@pytest.mark.long
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_mirror_of_every_file_follows_the_table(variant: str, lake: Lake) -> None:
    """Rows of each live file by path and position, kept by changes of files alone, are the rows of the table."""
    steps = ["append", "append", "delete", "update", "update", "optimize", "restore", "checkpoint"]
    for seed in range(SEEDS):
        rng = random.Random(f"mirror {variant} {seed}")
        with hw.settings.override(fsync=False, checkpoint_interval=5, row_group_rows=2):
            table = lake.table(f"m{seed}")
            history = History(table, rng, properties=VARIANTS[variant])
            mirror: dict[str, dict[int, dict[str, Any]]] = {}
            after = -1
            for _ in range(14):
                now = table.snapshot
                for one in table.file_changes(after, now.version):
                    _follow(mirror, table, now, one)
                after = now.version
                assert set(mirror) == set(now.files)
                held = [repr(r) for rows in mirror.values() for r in rows.values()]
                assert Counter(held) == Counter(map(repr, table.to_pylist()))
                for _ in range(rng.randint(1, 3)):
                    history.step(rng.choice(steps))


def _follow(mirror: dict[str, Any], table: Table, now: snapshot.Snapshot, one: ChangedFile) -> None:
    if one.after is None:
        del mirror[one.path]
    elif one.before is None:
        rows = table.read_file(one.after, positions=True).read_all().to_pylist()
        mirror[one.path] = {r.pop(POSITION): r for r in rows}
    else:
        died, back = vector_difference(now, one.before, one.after)
        for position in died:
            del mirror[one.path][position]
        if back:
            rows = table.read_file(one.after, positions=True).read_all().to_pylist()
            mirror[one.path] |= {p: r for r in rows if (p := r.pop(POSITION)) in back}


# ---------------------------------------------------------------------- each kind of commit


def test_rows_that_come_and_go(lake: Lake) -> None:
    table = lake.write("t", ROWS)
    table.append(ROWS)
    table.delete("id = 1")
    found = table.file_changes(after=1)
    assert kinds(found) == {"vector_changed": 2} and not found.rewrites
    assert [f.version for f in found] == [2, 2]
    for one in found:
        assert one.before is not None and one.after is not None
        died, back = vector_difference(table.snapshot, one.before, one.after)
        assert (list(died), list(back)) == ([1], [])
        died, back = vector_difference(table.snapshot, one.after, one.before)
        assert (list(died), list(back)) == ([], [1])
    assert kinds(table.file_changes(after=0)) == {"added": 1, "vector_changed": 1}
    table.overwrite(ROWS)
    assert kinds(table.file_changes(after=0)) == {"added": 1, "removed": 1}
    assert len(table.file_changes(after=3)) == 0
    table.restore(2)
    assert kinds(table.file_changes(after=1)) == {"vector_changed": 2}
    assert len(table.file_changes(after=2)) == 0


def test_optimize_says_which_files_replaced_which(lake: Lake) -> None:
    table = lake.write("t", ROWS, partition_by=["p"])
    table.append(ROWS)
    table.delete("id < 2")
    before = table.snapshot
    table.optimize()
    found = table.file_changes(after=2)
    assert kinds(found) == {"rewritten": 6}
    (rewrite,) = found.rewrites
    assert rewrite.version == 3
    assert {f.key for f in rewrite.before} == {f.key for f in before.files.values()}
    assert {f.path for f in rewrite.after} == set(table.snapshot.files)
    table.delete("id = 5")
    found = table.file_changes(after=2)
    assert kinds(found) == {"rewritten": 6}, "it came by a rewrite, whatever became of its rows since"
    assert sum(f.after.num_deleted for f in found if f.after is not None) == 2
    table.optimize()
    found = table.file_changes(after=2)
    assert [r.version for r in found.rewrites] == [3, 5]
    assert {f.key for f in found.apply(before.files).values()} == keys(table, 5)


def test_the_feed_is_no_data_file(lake: Lake) -> None:
    table = lake.write("t", ROWS, properties=FEED)
    table.update({"p": "'z'"}, where="id = 2")
    assert log.read_commit(table.storage, 1).cdc
    found = table.file_changes(after=0)
    assert kinds(found) == {"vector_changed": 1, "added": 1}
    assert {f.path for f in found} == set(table.snapshot.files)


def test_each_file_with_the_definition_of_its_version(lake: Lake) -> None:
    table = lake.write("t", ROWS)
    table.create(table.schema, partition_by=["p"], mode="replace", data=ROWS)
    found = table.file_changes(after=0)
    (gone,) = found.removed
    assert gone.before is not None and gone.metadata.partition_columns == () and gone.version == 1
    assert {f.metadata.partition_columns for f in found.added} == {("p",)}
    assert table.read_file(gone.before, metadata=gone.metadata).read_all().to_pylist() == ROWS
    table.create({"q": pa.float64()}, mode="replace", data=[{"q": 1.5}])
    (came,) = table.file_changes(after=1).added
    assert came.metadata.schema.names == ["q"]
    gone = table.file_changes(after=1).removed[0]
    assert gone.before is not None
    own = table.pinned_to(table.snapshot.under(gone.metadata))
    assert [r["id"] % 2 for r in own.read_file(gone.before, ["id"]).read_all().to_pylist()] in ([1] * 3, [0] * 3)


def test_statistics_that_are_written_again_are_no_change(lake: Lake) -> None:
    table = lake.write("t", ROWS)
    (add,) = table.snapshot.files.values()
    body = {**add.to_action()["add"], "dataChange": False, "tags": {"seen": "1"}}
    committed(table, {"add": body})
    assert len(table.file_changes(after=0)) == 0 and len(table.changes(after=0)) == 0
    table.append(ROWS)
    table.optimize()
    assert kinds(table.file_changes(after=0)) == {"rewritten": 2}
    assert kinds(table.file_changes(after=2)) == {"rewritten": 3}


def test_statistics_written_again_beside_a_rewrite(lake: Lake) -> None:
    """What a commit with ``dataChange=false`` adds may be there already: the files of the version before tell."""
    table = lake.write("t", ROWS)
    (kept,) = table.snapshot.files.values()
    table.append(ROWS)
    (other,) = (f for f in table.snapshot.files.values() if f.path != kept.path)
    again = {"add": {**kept.to_action()["add"], "dataChange": False}}
    copy = {"add": {**other.to_action()["add"], "path": "copy.parquet", "dataChange": False}}
    committed(table, other.removed(1, data_change=False).to_action(), again, copy)
    found = table.file_changes(after=1)
    assert [(f.kind, f.path) for f in found] == [("rewritten", other.path), ("rewritten", "copy.parquet")]
    assert {f.key for f in found.apply(table.at(version=1).snapshot.files).values()} == keys(table, 2)


def test_files_that_are_removed_without_partition_values(lake: Lake) -> None:
    table = lake.write("t", ROWS, partition_by=["p"])
    table.delete("p = 'x'")

    def older(action: dict[str, Any]) -> None:
        for key in ("partitionValues", "size", "extendedFileMetadata"):
            action.get("remove", {}).pop(key, None)

    edited(table, 1, older)
    (gone,) = table.file_changes(after=0).removed
    assert gone.before is not None and gone.before.partition_values == {"p": "x"}
    assert [r["id"] for r in table.read_file(gone.before, metadata=gone.metadata).read_all().to_pylist()] == [1, 3, 5]


def test_files_of_another_table(lake: Lake) -> None:
    source = lake.write("source", ROWS)
    table = lake.table("t").create(source.schema)
    adds = [f.to_action()["add"] for f in source.snapshot.files.values()]
    committed(table, *({"add": {**a, "path": f"{source.location}/{a['path']}"}} for a in adds))
    (came,) = table.file_changes(after=0).added
    assert came.after is not None and came.path.startswith(source.location)
    assert table.read_file(came.after).read_all().to_pylist() == ROWS
    table.delete("id = 0")
    assert kinds(table.file_changes(after=1)) == {"vector_changed": 1}
    assert table.file_changes(after=1).apply(table.at(version=1).snapshot.files) == table.snapshot.files


def test_log_entries_that_were_cleaned_up(lake: Lake) -> None:
    table = lake.write("t", ROWS)
    for _ in range(3):
        table.append(ROWS)
    table.checkpoint()
    for version in (0, 1):
        table.storage.delete(log.commit_path(version))
    with pytest.raises(hw.NotFoundError) as gone:
        table.file_changes(after=0)
    with pytest.raises(hw.NotFoundError) as same:
        table.changes(after=0)
    assert (gone.value.code, gone.value.message) == (same.value.code, same.value.message)
    assert kinds(table.file_changes(after=1)) == {"added": 2}


def test_one_reading_of_the_log_serves_rows_and_files(lake: Lake) -> None:
    table = lake.write("t", ROWS)
    table.append(ROWS)
    interval = Interval.read(table.snapshot, 0)
    table.storage.delete(log.commit_path(1))
    assert kinds(file_changes_of(interval)) == {"added": 1}


def test_what_is_asked_for_wrongly(lake: Lake) -> None:
    table = lake.write("t", ROWS)
    for after, until in ((1, None), (0, -1), (-2, None), (True, None)):
        with pytest.raises(hw.InputError):
            table.file_changes(after, until)
    with pytest.raises(hw.NotFoundError):
        table.file_changes(0, 7)


def test_the_identity_of_a_table(lake: Lake) -> None:
    first = lake.write("t", ROWS).snapshot.table_id
    table = lake.table("t")
    table.append(ROWS)
    assert table.file_changes(after=0).table_id == first == table.detail()["id"]
    lake.drop("t")
    assert lake.write("t", ROWS).file_changes(after=-1).table_id != first
