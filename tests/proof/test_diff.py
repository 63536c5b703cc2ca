"""Diff: the exact rows between two versions of anything, against both versions read as a whole."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.incremental.views.world import QUERIES, World

import headwater as hw
from headwater.base.errors import InputError, NotFoundError
from headwater.cli import main

Row = tuple[tuple[str, str], ...]


def frozen(row: dict[str, Any]) -> Row:
    return tuple(sorted((name, repr(value)) for name, value in row.items()))


def counted(rows: list[dict[str, Any]]) -> Counter[Row]:
    return Counter(map(frozen, rows))


def as_counter(found: Any) -> dict[Row, int]:
    total: dict[Row, int] = Counter()
    for change in found.rows:
        if change.old is not None:
            total[frozen(change.old)] -= 1
        if change.new is not None:
            total[frozen(change.new)] += 1
    return {row: n for row, n in total.items() if n}


def difference(old: Counter[Row], new: Counter[Row]) -> dict[Row, int]:
    return {row: new[row] - old[row] for row in {*old, *new} if new[row] != old[row]}


@pytest.mark.long
@pytest.mark.parametrize("name", ["groups", "outer", "filter"])
def test_any_two_versions_of_a_view(name: str, tmp_path: Path) -> None:
    rng = random.Random(11)
    world = World(tmp_path, 11)
    view = world.lake.view("v", QUERIES[name], refresh=True)
    contents = {view.version: counted(view.to_pylist())}
    for _ in range(4):
        world.commit(rng)
        view.refresh()
        contents[view.version] = counted(view.to_pylist())
    versions = sorted(contents)
    for before in versions:
        for after in versions:
            found = world.lake.diff("v", before, after, limit=10_000)
            assert as_counter(found) == difference(contents[before], contents[after])
            assert found.total == len(found.rows)
            assert found.frontiers is not None and found.frontiers[0].keys() == found.frontiers[1].keys()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["export", "online", "ordered"])
def test_commits_of_an_artefact_without_a_table(kind: str, tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    rng = random.Random(5)
    table = lake.write("t", [{"id": i, "k": i % 7, "n": i, "f": i / 3} for i in range(30)])
    if kind == "export":
        one: Any = lake.export("e", "t", columns=["id", "f"], where="n % 2 = 0", refresh=True)
    elif kind == "online":
        one = lake.online("e", "t", key="id", refresh=True)
    else:
        one = lake.online("e", "t", key="k", order_by="n", refresh=True)
    contents = {one.version: counted(one.to_pylist())}
    for step in range(3):
        table.update({"n": "n + 3", "f": "f * 2"}, where=f"id % 5 = {rng.randint(0, 4)}")
        table.append([{"id": 100 + step, "k": step, "n": 1_000 + step, "f": None}])
        table.delete(f"id = {rng.randint(0, 29)}")
        one.refresh()
        contents[one.version] = counted(one.to_pylist())
    for before, old in contents.items():
        for after, new in contents.items():
            found = lake.diff("e", before, after, limit=1_000)
            assert as_counter(found) == difference(old, new)
    assert lake.diff("e", 1, max(contents), limit=1_000).inserted == sum(contents[max(contents)].values())
    lake.close()


def test_updates_are_pairs_where_a_key_is_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = hw.connect(tmp_path)
    orders = lake.write("orders", [{"id": 1, "who": "ann", "amount": 5}, {"id": 2, "who": "bob", "amount": 7}])
    spend = lake.view("spend", "SELECT who AS name, sum(amount) AS total FROM orders GROUP BY who", refresh=True)
    orders.update({"amount": "6"}, where="id = 1")
    spend.refresh()
    found = lake.diff("spend")
    assert found.key == ("name",) and (found.updated, found.inserted, found.deleted) == (1, 0, 0)
    assert [str(row) for row in found.rows] == ["~ name=ann total=5 -> 6"]
    back = lake.diff("spend", found.after, found.before)
    assert [str(row) for row in back.rows] == ["~ name=ann total=6 -> 5"]
    plain = lake.diff("orders")
    assert plain.key == () and (plain.inserted, plain.deleted) == (1, 1)
    assert lake.diff("orders", key="ID").updated == 1
    assert "1 updated" in found._repr_html_()
    assert main(["diff", str(tmp_path), "spend", f"@{found.before}", f"@{found.after}", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["rows"] == [{"old": {"name": "ann", "total": 5}, "new": {"name": "ann", "total": 6}}]
    assert main(["diff", str(tmp_path), "orders", "@0", "@1", "--key", "id"]) == 0
    assert "~ id=1 who=ann amount=5 -> 6" in capsys.readouterr().out


def test_counts_are_of_all_rows_whatever_is_shown(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    table = lake.write("t", [{"id": i, "n": 0} for i in range(50)])
    table.update({"n": "1"})
    found = lake.diff("t", key="id", limit=3)
    assert (found.updated, len(found.rows)) == (50, 3) and "47 more" in str(found)
    unkeyed = lake.diff("t", limit=3)
    assert (unkeyed.inserted, unkeyed.deleted, len(unkeyed.rows)) == (50, 50, 3)
    assert lake.diff("t", 1, 1).equal


def test_rows_of_too_many_changes_are_not_paired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.proof.diff._PAIRED_ROWS", 10)
    table = hw.connect(tmp_path).write("t", [{"id": i, "n": 0} for i in range(50)])
    table.update({"n": "1"})
    found = hw.connect(tmp_path).diff("t", key="id", limit=3)
    assert (found.inserted, found.deleted, found.updated, len(found.rows)) == (50, 50, 0, 3)
    assert "not put side by side" in found.note


def test_what_is_not_there(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    lake.write("t", [{"id": 1}])
    lake.export("e", "t", refresh=True)
    for name, before, after, code in (
        ("nothing", None, None, "E1101"),
        ("t", 0, 7, "E1102"),
        ("e", 0, 9, "E1102"),
    ):
        with pytest.raises(NotFoundError) as error:
            lake.diff(name, before, after)
        assert error.value.code == code
    wrong: list[dict[str, Any]] = [{"before": "x"}, {"before": True}, {"key": "no"}, {"limit": -1}]
    for arguments in wrong:
        with pytest.raises(InputError):
            lake.diff("t", **arguments)
    for _ in range(12):
        lake.table("t").append([{"id": 2}])
        lake.derived("e").refresh()
    with pytest.raises(NotFoundError, match="not kept any more"):
        lake.diff("e", 2, 12)


def test_a_table_with_one_version_has_none_before_it(tmp_path: Path) -> None:
    with hw.connect(tmp_path) as lake:
        lake.write("paid", [{"id": 1}])
        with pytest.raises(NotFoundError, match="no version before 0") as caught:
            lake.diff("paid")
    assert caught.value.code == "E1120"
