"""A column that was renamed, or dropped and added again, is another one, though its name and its type are the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.incremental.views.test_history import forget

import headwater as hw
from headwater.base.errors import UnsupportedError
from headwater.incremental.views import View, output_table
from headwater.incremental.views.record import ViewRecord
from headwater.lake.published import Changed
from headwater.lakehouse import Lake

SQL = "SELECT s, sum(q) AS n FROM t GROUP BY s"
MAPPED = "TBLPROPERTIES('delta.columnMapping.mode'='name')"
CHANGES = {
    "dropped and added": ["ALTER TABLE t DROP COLUMN q", "ALTER TABLE t ADD COLUMN q INT"],
    "renamed and added": ["ALTER TABLE t RENAME COLUMN q TO p", "ALTER TABLE t ADD COLUMN q INT"],
    "swapped": [
        "ALTER TABLE t RENAME COLUMN q TO x",
        "ALTER TABLE t RENAME COLUMN r TO q",
        "ALTER TABLE t RENAME COLUMN x TO r",
    ],
}


def made(folder: Path) -> Lake:
    lake = hw.connect(folder)
    lake.sql(f"CREATE TABLE t(id BIGINT, s STRING, q INT, r INT) {MAPPED}")
    lake.sql("INSERT INTO t VALUES (1, 'a', 5, 50), (2, 'b', 7, 70)")
    return lake


def answer(view: View) -> list[tuple[str, int | None]]:
    return sorted((r["s"], r["n"]) for r in view.to_pylist())


def altered(lake: Lake, kind: str) -> None:
    for statement in CHANGES[kind]:
        lake.sql(statement)
    lake.sql("INSERT INTO t (id, s, q) VALUES (3, 'a', 1)")


WANTED = {
    "dropped and added": [("a", 1), ("b", None)],
    "renamed and added": [("a", 1), ("b", None)],
    "swapped": [("a", 51), ("b", 70)],
}


@pytest.mark.parametrize("kind", sorted(CHANGES))
@pytest.mark.parametrize("again", [False, True])
def test_the_view_is_computed_anew(kind: str, again: bool, tmp_path: Path) -> None:
    lake = made(tmp_path)
    view = lake.view("v", SQL)
    view.refresh()
    lake.sql("INSERT INTO t VALUES (4, 'c', 1, 1)")
    assert view.refresh().mode == "incremental"
    lake.sql("DELETE FROM t WHERE id = 4")
    altered(lake, kind)
    assert view.plan().mode == "full"
    if again:
        forget(view)
        view = lake.view("v", SQL)
    report = view.refresh()
    assert report.mode == "full" and "another column" in report.reason
    assert answer(view) == WANTED[kind]
    assert view.verify().equal
    lake.sql("INSERT INTO t (id, s, q) VALUES (5, 'd', 2)")
    assert view.refresh().mode == "incremental"
    assert view.verify().equal


def test_defined_again_it_means_the_new_column(tmp_path: Path) -> None:
    lake = made(tmp_path)
    lake.sql(f"CREATE MATERIALIZED VIEW v AS {SQL}")
    altered(lake, "swapped")
    lake.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {SQL}")
    view = lake.view("v")
    assert view.refresh().mode == "noop"
    assert answer(view) == WANTED["swapped"]
    assert view.verify().equal


def test_strict_refuses(tmp_path: Path) -> None:
    lake = made(tmp_path)
    view = lake.view("v", SQL, policy="strict")
    view.refresh()
    altered(lake, "dropped and added")
    with pytest.raises(UnsupportedError) as caught:
        view.refresh()
    assert caught.value.code == "E3006"


def test_other_columns_do_not_matter(tmp_path: Path) -> None:
    lake = made(tmp_path)
    view = lake.view("v", SQL)
    view.refresh()
    for statement in ("DROP COLUMN r", "ADD COLUMN r INT", "RENAME COLUMN id TO number"):
        lake.sql(f"ALTER TABLE t {statement}")
    lake.sql("INSERT INTO t VALUES (3, 'a', 1, 1)")
    assert view.refresh().mode == "incremental"
    assert view.verify().equal


def test_a_nested_field_has_an_identity(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    lake.sql(f"CREATE TABLE t(id BIGINT, p STRUCT<a: INT, b: INT>) {MAPPED}")
    lake.sql("INSERT INTO t SELECT 1, named_struct('a', 5, 'b', 7)")
    view = lake.view("v", "SELECT sum(p.a) AS n FROM t")
    view.refresh()
    record = ViewRecord.of(view.table.snapshot)
    (text,) = record.frontier.identities["t"].columns.values()
    assert text.count("col-") == 3, "the column and its two fields"


@pytest.mark.parametrize("kind", sorted(CHANGES))
def test_a_record_that_does_not_say_is_held_against_the_log(kind: str, tmp_path: Path) -> None:
    lake = made(tmp_path)
    view = lake.view("v", SQL)
    view.refresh()
    as_before(view)
    lake.sql("INSERT INTO t VALUES (4, 'c', 1, 1)")
    assert view.refresh().mode == "incremental"
    as_before(view)
    lake.sql("DELETE FROM t WHERE id = 4")
    altered(lake, kind)
    assert view.refresh().mode == "full"
    assert answer(view) == WANTED[kind]


def as_before(view: View) -> None:
    """Write the record as it was before records said it."""
    forget(view)
    base = view.table.snapshot
    record = ViewRecord.of(base)
    known = record.frontier.identities
    assert known["t"].columns
    silent = record.frontier.identified({name: replace(one, columns={}) for name, one in known.items()})
    older = replace(record, frontier=silent, published=base.version + 1)
    output_table.commit(base, "REFRESH MATERIALIZED VIEW", Changed(), older)
    assert not ViewRecord.of(view.table.snapshot).frontier.identities["t"].columns


def test_without_mapping_nothing_is_kept(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    lake.write("t", [{"s": "a", "q": 1}])
    view = lake.view("v", SQL)
    view.refresh()
    value = ViewRecord.of(view.table.snapshot).to_json()
    assert value["version"] == 2 and "columns" not in value
