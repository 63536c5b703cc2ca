"""Merge: each clause, their order, and what is refused."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import headwater as hw
from headwater.lake.table import Table
from headwater.lakehouse import Lake

PLAIN: dict[str, str] = {}
FEED = {"delta.enableChangeDataFeed": "true"}
REWRITE = {"delta.enableDeletionVectors": "false"}


@pytest.fixture(params=[PLAIN, FEED, REWRITE], ids=["vectors", "feed", "rewrite"])
def target(lake: Lake, request: pytest.FixtureRequest) -> Table:
    return lake.write("t", [{"id": i, "v": f"old{i}"} for i in (1, 2, 3)], properties=request.param)


def rows(table: Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(r.values()) for r in table.to_pylist()), key=repr)


def exact(table: Table) -> None:
    """The change of the merge, applied to the rows before it, gives the rows after it."""
    before = table.at(version=table.version - 1).to_arrow()
    missing = [f for f in table.schema if f.name not in before.column_names]
    for f in missing:
        before = before.append_column(f, pa.nulls(before.num_rows, f.type))
    after = table.changes(after=table.version - 1).apply_to(before.select(table.schema.names))
    key = repr
    assert sorted(after.to_pylist(), key=key) == sorted(table.to_pylist(), key=key)


SOURCE = [{"id": 2, "v": "new2"}, {"id": 4, "v": "new4"}, {"id": None, "v": "new?"}]


def test_upsert(target: Table) -> None:
    done = target.merge(SOURCE, on=["id"]).when_matched_update_all().when_not_matched_insert_all().execute()
    assert (done["numTargetRowsUpdated"], done["numTargetRowsInserted"], done["numTargetRowsDeleted"]) == (1, 2, 0)
    assert rows(target) == [(1, "old1"), (2, "new2"), (3, "old3"), (4, "new4"), (None, "new?")]
    exact(target)


def test_null_keys_never_match(target: Table) -> None:
    target.append([{"id": None, "v": "old?"}])
    target.merge(SOURCE, on=["id"]).when_matched_delete().execute()
    assert rows(target) == [(1, "old1"), (3, "old3"), (None, "old?")]
    exact(target)


def test_null_safe_keys_do(target: Table) -> None:
    target.append([{"id": None, "v": "old?"}])
    target.merge(SOURCE, on="t.id <=> s.id").when_matched_update({"v": "s.v"}).execute()
    assert rows(target) == [(1, "old1"), (2, "new2"), (3, "old3"), (None, "new?")]
    exact(target)


def test_matched_clauses_are_tried_in_order(target: Table) -> None:
    source = [{"id": i, "k": i} for i in (1, 2, 3)]
    merge = target.merge(source, on="t.id = s.id")
    merge.when_matched_delete(condition="s.k = 1")
    merge.when_matched_update({"v": "concat(t.v, '+', CAST(s.k AS STRING))"}, condition="s.k <= 2")
    merge.when_matched_update({"v": "'rest'"})
    merge.execute()
    assert rows(target) == [(2, "old2+2"), (3, "rest")]
    exact(target)


def test_insert_some_columns_of_some_rows(target: Table) -> None:
    merge = target.merge(SOURCE, on=["id"]).when_not_matched_insert({"id": "s.id * 10"}, condition="s.id IS NOT NULL")
    assert merge.execute()["numTargetRowsInserted"] == 1
    assert rows(target) == [(1, "old1"), (2, "old2"), (3, "old3"), (40, None)]
    exact(target)


def test_not_matched_by_source(target: Table) -> None:
    merge = target.merge(SOURCE, on=["id"])
    merge.when_not_matched_by_source_delete(condition="t.id = 1")
    merge.when_not_matched_by_source_update({"v": "concat(t.v, '!')"})
    merge.when_matched_update_all()
    done = merge.execute()
    assert (done["numTargetRowsDeleted"], done["numTargetRowsUpdated"]) == (1, 2)
    assert rows(target) == [(2, "new2"), (3, "old3!")]
    exact(target)


def test_sync_with_an_empty_source_deletes_all(target: Table) -> None:
    empty = pa.table({"id": pa.array([], pa.int64()), "v": pa.array([], pa.string())})
    target.merge(empty, on=["id"]).when_not_matched_by_source_delete().when_not_matched_insert_all().execute()
    assert rows(target) == []
    exact(target)


def test_an_empty_source_changes_nothing(target: Table) -> None:
    empty = pa.table({"id": pa.array([], pa.int64()), "v": pa.array([], pa.string())})
    merge = target.merge(empty, on=["id"]).when_matched_update_all().when_not_matched_insert_all()
    assert merge.execute().version == 0


def test_two_source_rows_that_change_one_row_are_ambiguous(target: Table) -> None:
    twice = [{"id": 2, "v": "a"}, {"id": 2, "v": "b"}]
    with pytest.raises(hw.InputError, match="source"):
        target.merge(twice, on=["id"]).when_matched_update_all().execute()
    with pytest.raises(hw.InputError):
        target.merge(twice, on=["id"]).when_matched_delete(condition="s.v = 'a'").when_matched_update_all().execute()
    assert target.version == 0
    target.merge(twice, on=["id"]).when_matched_update_all(condition="s.v = 'b'").execute()
    assert rows(target) == [(1, "old1"), (2, "b"), (3, "old3")]


def test_several_source_rows_may_agree_on_a_delete(target: Table) -> None:
    twice = [{"id": 2, "v": "a"}, {"id": 2, "v": "b"}, {"id": 3, "v": "a"}]
    merge = target.merge(twice, on=["id"]).when_matched_delete(condition="s.v = 'a'").when_matched_delete()
    assert merge.execute()["numTargetRowsDeleted"] == 2
    assert rows(target) == [(1, "old1")]
    exact(target)


def test_duplicate_source_rows_are_all_inserted(target: Table) -> None:
    target.merge([{"id": 7, "v": "a"}] * 2, on=["id"]).when_not_matched_insert_all().execute()
    assert rows(target)[3:] == [(7, "a"), (7, "a")]
    exact(target)


def test_a_condition_without_equality(target: Table) -> None:
    target.merge([{"low": 2}], on="t.id >= s.low").when_matched_update({"v": "CAST(s.low AS STRING)"}).execute()
    assert rows(target) == [(1, "old1"), (2, "2"), (3, "2")]
    exact(target)


def test_other_aliases(target: Table) -> None:
    merge = target.merge(SOURCE, on="cards.id = news.id", target_alias="cards", source_alias="news")
    merge.when_matched_update({"v": "news.v"}, condition="cards.v = 'old2'").execute()
    assert (2, "new2") in rows(target)


def test_new_columns_of_the_source(target: Table) -> None:
    source = [{"id": 2, "v": "new2", "extra": 1.5}, {"id": 9, "v": "new9", "extra": 2.5}]
    merge = target.merge(source, on=["id"]).when_matched_update_all().when_not_matched_insert_all()
    with pytest.raises(hw.SchemaError):
        merge.execute()
    merge = target.merge(source, on=["id"], schema_mode="merge").when_matched_update_all().when_not_matched_insert_all()
    merge.execute()
    assert rows(target) == [(1, "old1", None), (2, "new2", 1.5), (3, "old3", None), (9, "new9", 2.5)]
    exact(target)


def test_the_source_may_lack_columns(target: Table) -> None:
    target.merge(
        [{"ID": 2}, {"ID": 5}], on="t.id = s.id"
    ).when_matched_update_all().when_not_matched_insert_all().execute()
    assert rows(target) == [(1, "old1"), (2, "old2"), (3, "old3"), (5, None)]


def test_a_source_of_polars_and_nulls(target: Table) -> None:
    source = pl.DataFrame({"id": [2, 6], "v": pl.Series(["p2", "p6"], dtype=pl.Categorical), "n": [None, None]})
    merge = target.merge(source, on=["id"]).when_matched_update({"v": "s.v"})
    merge.when_not_matched_insert({"id": "s.id", "v": "coalesce(CAST(s.n AS STRING), s.v)"}).execute()
    assert rows(target) == [(1, "old1"), (2, "p2"), (3, "old3"), (6, "p6")]
    exact(target)


def test_text_keys_of_a_polars_source_prune_files(lake: Lake) -> None:
    table = lake.write("t", pa.table({"k": ["a", "b"], "n": [1, 2]}))
    table.append(pa.table({"k": ["x", "y"], "n": [3, 4]}))
    second = next(f for f in table.snapshot.files.values() if '"x"' in (f.stats or ""))
    table.storage.put(second.path, b"unreadable")
    table.merge(pl.DataFrame({"k": ["b"], "n": [9]}), on=["k"]).when_matched_update_all().execute()
    assert table.to_pylist(where="k <= 'b'") == [{"k": "a", "n": 1}, {"k": "b", "n": 9}]


def test_keys_of_unlike_types(lake: Lake) -> None:
    table = lake.write(
        "t", pa.table({"id": pa.array([1, 2], pa.int32()), "n": pa.array([Decimal("1.00"), Decimal("2.00")])})
    )
    table.merge([{"id": 2, "n": 5}], on="t.id = s.id").when_matched_update({"n": "s.n"}).execute()
    assert rows(table) == [(1, Decimal("1.00")), (2, Decimal("5.00"))]


def test_floats_meet_as_numbers(lake: Lake) -> None:
    table = lake.write("t", [{"k": 0.0, "v": 1}, {"k": float("nan"), "v": 2}, {"k": 1.0, "v": 3}])
    table.merge([{"k": -0.0, "v": 10}, {"k": float("nan"), "v": 20}], on=["k"]).when_matched_update(
        {"v": "s.v"}
    ).execute()
    assert sorted(r["v"] for r in table.to_pylist()) == [3, 10, 20]


def test_partitioned_targets(lake: Lake) -> None:
    table = lake.write("t", [{"id": i, "p": "ab"[i % 2]} for i in range(4)], partition_by=["p"], properties=FEED)
    merge = table.merge([{"id": 1, "p": "c"}, {"id": 9, "p": None}], on=["id"])
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert rows(table) == [(0, "a"), (1, "c"), (2, "a"), (3, "b"), (9, None)]
    exact(table)


def test_clauses_that_cannot_be(target: Table) -> None:
    with pytest.raises(hw.InputError, match="no clause"):
        target.merge(SOURCE, on=["id"]).execute()
    with pytest.raises(hw.InputError, match="last"):
        target.merge(SOURCE, on=["id"]).when_matched_delete().when_matched_update_all()
    with pytest.raises(hw.InputError):
        target.merge(SOURCE, on="")
    with pytest.raises(hw.InputError):
        target.merge(SOURCE, on=["id"]).when_not_matched_insert({"id": "t.id"}).execute()
    with pytest.raises(hw.InputError):
        target.merge(SOURCE, on=["id"]).when_not_matched_by_source_delete(condition="s.id = 1").execute()
    with pytest.raises(hw.InputError):
        target.merge(SOURCE, on="t.id = s.nowhere").when_matched_delete().execute()
    assert target.version == 0
