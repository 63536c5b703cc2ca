"""Which runs are merged: what small refreshes add, and not what a large build has divided."""

from __future__ import annotations

from headwater.incremental.manifest import RunEntry
from headwater.incremental.views.spark.merges import due, is_light, shards_for


def runs(*rows: int) -> list[RunEntry]:
    return [RunEntry(f"{i}-{count}.run", count, 8 * count) for i, count in enumerate(rows)]


def test_a_small_refresh_leaves_what_a_large_build_divided() -> None:
    built = runs(*[500_000] * 400)
    assert due([*built, *runs(*[100] * 6)], 6, 1) == ()
    small = runs(*[100] * 7)
    assert due([*built, *small], 6, 1) == tuple(small)
    assert is_light(small)


def test_all_smaller_runs_go_along() -> None:
    found = due(runs(3, *[2_000] * 7, 90_000), 6, 1)
    assert sorted(run.rows for run in found) == [3, *[2_000] * 7]


def test_more_shards_may_leave_more_runs() -> None:
    assert due(runs(*[2_000] * 24), 6, 4) == ()
    assert len(due(runs(*[2_000] * 25), 6, 4)) == 25


def test_large_runs_are_merged_once_their_rows_lie_in_too_many() -> None:
    many = runs(*[140_000] * 40)  # 5.6 million rows, which twelve shards would hold
    assert len(due(many, 6, 1)) == 40
    assert not is_light(many)
    assert shards_for([many, runs(5)], 1) == 12
    assert shards_for([runs(5)], 3) == 3
