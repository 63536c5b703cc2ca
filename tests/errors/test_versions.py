"""Versions and times that cannot be read, and writes that came too late."""

from __future__ import annotations

import datetime as dt
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headwater.base import settings
from headwater.base.errors import HeadwaterError
from headwater.lake import log
from headwater.lake.table import Table
from headwater.lakehouse import Lake
from headwater.testing.faults import FaultPlan

Attempt = Callable[[], Any]
ROWS = [{"id": 1, "amount": 10}, {"id": 2, "amount": 20}]


def with_versions(lake: Lake, count: int = 3) -> Table:
    t = lake.write("orders", ROWS)
    for n in range(count - 1):
        t.append([{"id": 10 + n, "amount": 1}])
    return t


def cleaned_up(lake: Lake) -> Table:
    """A table that begins with the checkpoint of version 2."""
    t = with_versions(lake, 4)
    folder = Path(t.location) / "_delta_log"
    with settings.override(checkpoint_interval=1):
        t.append([{"id": 99, "amount": 1}])
    for version in range(4):
        (folder / f"{version:020d}.json").unlink()
    return t


def case_negative_version(lake: Lake) -> Attempt:
    t = with_versions(lake)
    return lambda: t.at(version=-1)


def case_version_that_is_text(lake: Lake) -> Attempt:
    t = with_versions(lake)
    return lambda: t.at(version="1")  # type: ignore[arg-type]


def case_version_too_new(lake: Lake) -> Attempt:
    t = with_versions(lake)
    return lambda: t.at(version=9)


def case_version_that_was_cleaned_up(lake: Lake) -> Attempt:
    t = cleaned_up(lake)
    return lambda: t.at(version=1)


def case_changes_since_a_version_that_was_cleaned_up(lake: Lake) -> Attempt:
    t = cleaned_up(lake)
    return lambda: t.changes(after=1)


def case_version_and_timestamp(lake: Lake) -> Attempt:
    t = with_versions(lake)
    return lambda: t.at(version=1, timestamp="2026-01-01")


def case_timestamp_before_the_first_commit(lake: Lake) -> Attempt:
    t = with_versions(lake)
    return lambda: t.at(timestamp="2001-02-03T04:05:06")


def case_timestamp_that_is_not_one(lake: Lake) -> Attempt:
    t = with_versions(lake)
    return lambda: t.at(timestamp="yesterday")


def case_timestamp_that_is_a_date(lake: Lake) -> Attempt:
    t = with_versions(lake)
    return lambda: t.at(timestamp=dt.date(2026, 1, 1))  # type: ignore[arg-type]


def vacuumed(lake: Lake) -> Table:
    t = lake.write("orders", ROWS)
    t.overwrite(ROWS)
    time.sleep(0.01)
    t.vacuum(retention_hours=0, enforce_retention=False)
    return t


def case_time_travel_past_a_vacuum(lake: Lake) -> Attempt:
    t = vacuumed(lake)
    return lambda: t.at(version=0).to_arrow()


def case_restore_past_a_vacuum(lake: Lake) -> Attempt:
    t = vacuumed(lake)
    return lambda: t.restore(version=0)


def case_changes_past_a_vacuum(lake: Lake) -> Attempt:
    t = vacuumed(lake)
    return lambda: t.changes(after=0)


def case_time_travel_to_a_vector_past_a_vacuum(lake: Lake) -> Attempt:
    t = lake.write("orders", pa.table({"id": range(5000)}))
    with settings.override(small_vector_bytes=0):
        t.delete("id % 2 = 0")
    t.delete("id % 5 = 0")
    time.sleep(0.01)
    t.vacuum(retention_hours=0, enforce_retention=False)
    return lambda: t.at(version=1).to_arrow()


def case_changes_that_run_backwards(lake: Lake) -> Attempt:
    t = with_versions(lake)
    return lambda: t.changes(after=2, until=1)


def case_changes_after_a_version_too_new(lake: Lake) -> Attempt:
    t = with_versions(lake)
    return lambda: t.changes(after=9)


def case_changes_until_a_version_too_new(lake: Lake) -> Attempt:
    t = with_versions(lake)
    return lambda: t.changes(after=0, until=9)


def case_changes_across_a_change_of_type(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    t.overwrite([{"id": "one", "amount": 1}], schema_mode="replace")
    return lambda: t.changes(after=0)


def case_retention_too_short(lake: Lake) -> Attempt:
    t = with_versions(lake)
    return lambda: t.vacuum(retention_hours=1)


def case_negative_retention(lake: Lake) -> Attempt:
    t = with_versions(lake)
    return lambda: t.vacuum(retention_hours=-1, enforce_retention=False)


def case_write_to_a_pinned_version(lake: Lake) -> Attempt:
    t = with_versions(lake)
    return lambda: t.at(version=0).append(ROWS)


def case_restore_to_a_version_too_new(lake: Lake) -> Attempt:
    t = with_versions(lake)
    return lambda: t.restore(version=9)


def case_write_on_a_version_that_is_not_the_newest(lake: Lake) -> Attempt:
    t = with_versions(lake)
    return lambda: t.overwrite(ROWS, if_version=1)


def case_write_on_a_version_that_is_not_there(lake: Lake) -> Attempt:
    t = with_versions(lake)
    return lambda: t.delete("id = 1", if_version=7)


def case_write_on_a_negative_version(lake: Lake) -> Attempt:
    t = with_versions(lake)
    return lambda: t.delete("id = 1", if_version=-1)


CASES = [f for name, f in list(globals().items()) if name.startswith("case_")]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__.removeprefix("case_"))
def test_refused(case: Any, catalogue: Any) -> None:
    catalogue.check(case)


def case_race_that_is_lost_too_often(lake: Lake) -> Attempt:
    t = with_versions(lake, 1)
    other = iter(range(100))

    def take_the_version(_point: str, _path: str) -> None:
        version = t.version + 1
        entry = Path(t.location) / log.commit_path(version)
        entry.write_text(json.dumps({"commitInfo": {"operation": "WRITE", "n": next(other)}}))

    def attempt() -> None:
        with settings.override(commit_retries=2), FaultPlan().call_at("lake.commit.before_publish", take_the_version):
            t.append(ROWS)

    return attempt


def test_a_race_that_is_lost_too_often_is_a_conflict(catalogue: Any, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="as it was"):  # the other writer's commits are there, and nothing of ours
        catalogue.check(case_race_that_is_lost_too_often)
    data = [p for p in os.listdir(tmp_path / "lake/orders") if p.endswith(".parquet")]
    assert len(data) == 1


def test_a_refused_write_on_an_old_version_names_the_winner(tmp_path: Path) -> None:
    import headwater as hw

    t = with_versions(hw.connect(tmp_path))
    with pytest.raises(HeadwaterError) as caught:
        t.delete("id = 1", if_version=0)
    assert caught.value.code == "E4001" and "version 1 (WRITE)" in caught.value.message
