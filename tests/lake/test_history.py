"""History and time travel: what was committed, and the table as it was."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import headwater as hw
from headwater.lake.table import Table
from headwater.lakehouse import Lake

BASE = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def table(lake: Lake) -> Table:
    """Versions 0 to 3 with 1 to 4 rows, committed at whole hours."""
    made = lake.write("t", [{"id": 0}])
    for i in (1, 2, 3):
        made.append([{"id": i}])
    for version in range(4):
        moment = (BASE + timedelta(hours=version)).timestamp()
        os.utime(Path(made.location) / f"_delta_log/{version:020d}.json", (moment, moment))
    return made


def test_history_is_newest_first(table: Table) -> None:
    table.update({"id": "id + 1"}, where="id = 3")
    entries = table.history()
    assert [e.version for e in entries] == [4, 3, 2, 1, 0]
    assert [e.operation for e in table.history(2)] == ["UPDATE", "WRITE"]
    assert entries[0].metrics["numUpdatedRows"] == 1
    assert entries[0].parameters == {"predicate": "id = 3"}
    assert entries[-1].timestamp == BASE
    assert entries[0].as_dict()["operation"] == "UPDATE"


def test_detail(table: Table) -> None:
    detail = table.detail()
    assert (detail["num_files"], detail["num_rows"], detail["version"]) == (4, 4, 3)
    assert detail["size_bytes"] == sum(e.size for e in table.storage.list("") if not e.path.startswith("_delta_log"))


def test_at_a_version(table: Table) -> None:
    assert [table.at(version=v).count() for v in range(4)] == [1, 2, 3, 4]
    assert table.at(2).version == 2
    for wrong in (4, -1, True, "1"):
        with pytest.raises(hw.InputError):
            table.at(version=wrong)  # type: ignore[arg-type]
    with pytest.raises(hw.InputError):
        table.at()
    with pytest.raises(hw.InputError):
        table.at(version=1, timestamp="2026-01-01")


@pytest.mark.parametrize(
    ("timestamp", "version"),
    [
        ("2026-01-01", 0),
        ("2026-01-01T01:00:00", 1),
        ("2026-01-01T01:59:59.999", 1),
        ("2026-01-01T03:00:00+02:00", 1),
        (BASE + timedelta(hours=2), 2),
        (datetime(2026, 1, 1, 2, 30), 2),
        ("2030-01-01", 3),
    ],
)
def test_at_a_timestamp(table: Table, timestamp: str | datetime, version: int) -> None:
    assert table.at(timestamp=timestamp).version == version


def test_before_the_first_commit(table: Table) -> None:
    with pytest.raises(hw.NotFoundError, match="2025"):
        table.at(timestamp="2025-12-31")
    with pytest.raises(hw.InputError):
        table.at(timestamp="yesterday")


def test_clocks_that_went_back(table: Table) -> None:
    moment = (BASE - timedelta(days=1)).timestamp()
    os.utime(Path(table.location) / "_delta_log/00000000000000000002.json", (moment, moment))
    assert table.at(timestamp=BASE + timedelta(hours=1, minutes=1)).version == 2
    assert [e.version for e in table.history()] == [3, 2, 1, 0]


def test_times_kept_in_the_commits(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1}])
    table.set_properties({"delta.enableInCommitTimestamps": "true"})
    table.append([{"id": 2}])
    properties = table.detail()["properties"]
    assert properties["delta.inCommitTimestampEnablementVersion"] == "1"
    newest = table.history(1)[0].timestamp
    assert (
        str(int(table.history()[1].timestamp.timestamp() * 1000))
        == properties["delta.inCommitTimestampEnablementTimestamp"]
    )
    os.utime(Path(table.location) / "_delta_log/00000000000000000002.json", (1, 1))
    assert table.at(timestamp=newest).version == 2
    table.checkpoint()
    fresh = hw.connect(lake.location).table("t")
    fresh.append([{"id": 3}])
    assert fresh.history(1)[0].timestamp > newest


def test_an_old_version_has_its_schema(lake: Lake) -> None:
    table = lake.write("t", [{"id": 1}])
    table.add_columns({"n": pa.int64()})
    assert table.at(version=0).to_pylist() == [{"id": 1}]
    assert table.at(version=1).to_pylist() == [{"id": 1, "n": None}]
