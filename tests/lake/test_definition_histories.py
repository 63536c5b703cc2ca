"""Random histories of a table's definition: what changed between any two versions is the difference of their rows."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pyarrow as pa
import pytest

import headwater as hw
from headwater.base.change import ChangeBatch
from headwater.lake.feed import feed
from headwater.testing.histories import History
from headwater.testing.oracles import assert_same_rows

SEEDS = int(os.environ.get("HEADWATER_TEST_SEEDS", "1"))
VARIANTS = {
    "vectors": {},
    "feed": {"delta.enableChangeDataFeed": "true"},
    "rewrite": {"delta.enableDeletionVectors": "false"},
}


@pytest.mark.long
@pytest.mark.parametrize("variant", VARIANTS)
def test_changes_are_the_difference_of_the_rows(variant: str, tmp_path: Path) -> None:
    refused = compared = 0
    for seed in range(2 * SEEDS):
        rng = random.Random(f"{variant} {seed}")
        with hw.settings.override(fsync=False, checkpoint_interval=5, row_group_rows=2):
            table = hw.connect(tmp_path / str(seed)).table("t")
            history = History(table, rng, properties=VARIANTS[variant], mode=rng.choice(["none", "none", "name", "id"]))
            steps = [history.step() for _ in range(9)]
            where = f"seed {seed}: {steps}"
            for version in history.versions:
                found = table.at(version=version)
                assert_same_rows(found.to_arrow(), history.rows_at(version), where=f"version {version}, {where}")
                assert tuple(found.snapshot.partition_columns) == history.versions[version].split_by
            for after in history.versions:
                for until in (v for v in history.versions if v >= after):
                    done = _check(history, after, until, f"{after} to {until}, {where}", with_feed=variant == "feed")
                    compared, refused = compared + done, refused + (not done)
    assert refused < compared / 2


def _check(history: History, after: int, until: int, where: str, *, with_feed: bool) -> bool:
    """Whether the changes could be had; if not, there is a reason."""
    table = history.table
    try:
        found = table.changes(after=after, until=until)
        told = _added_up(history, after, until) if with_feed and after < until else found
    except hw.SchemaError:
        assert history.may_be_refused(after, until), where
        return False
    wanted = history.difference(after, until)
    assert found == wanted, f"{where}\n{found.to_arrow().to_pylist()}\nwanted {wanted.to_arrow().to_pylist()}"
    if history.has_returned(after, until):
        return True  # a feed tells of rows that commits touched
    assert told == wanted, f"feed, {where}\n{told.to_arrow().to_pylist()}\nwanted {wanted.to_arrow().to_pylist()}"
    return True


def _added_up(history: History, after: int, until: int) -> ChangeBatch:
    rows = feed(history.table.storage, after + 1, until)
    names = history.versions[until].schema.names
    read = rows.read([*names, "_change_type"]).read_all()
    signs = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}
    weights = pa.array([signs[k] for k in read["_change_type"].to_pylist()], pa.int64())
    return ChangeBatch.from_table(read.select(names).append_column("_weight", weights)).consolidate()
