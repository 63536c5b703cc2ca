"""The format on disk stays readable: a checkpoint of version 1 that was written once, and the rows that are in it.

``HEADWATER_UPDATE_GOLDEN=1`` writes it anew, which is right only together with a new version of the format, beside the old one.
"""

from __future__ import annotations

import json
import os
import shutil
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headwater.incremental.layout import Layout, Order
from headwater.incremental.store import Store
from headwater.incremental.trace import Trace
from headwater.incremental.zset import ZSet

GOLDEN = Path(__file__).with_name("golden")
UPDATE = os.environ.get("HEADWATER_UPDATE_GOLDEN") == "1"

EVENTS = Layout(
    pa.schema(
        [
            pa.field("city", pa.string()),
            pa.field("ts", pa.timestamp("us"), nullable=False),
            pa.field("price", pa.decimal128(30, 2)),
            pa.field("share", pa.float64()),
            pa.field("ok", pa.bool_()),
        ]
    ),
    keys=1,
    order=[Order("ts", descending=True)],
)
TOTALS = Layout(pa.schema([pa.field("id", pa.int64(), nullable=False)]), keys=1, weights=2)
ROWS = [
    {"city": "Bern", "ts": 3_000_000, "price": Decimal("1.50"), "share": 0.25, "ok": True},
    {"city": None, "ts": 2_000_000, "price": None, "share": float("inf"), "ok": None},
    {
        "city": "Llanfairpwllgwyngyll",
        "ts": 1_000_000,
        "price": Decimal("-1234567890123456789012.34"),
        "share": -0.5,
        "ok": False,
    },
    {"city": "Zürich an der Limmat", "ts": 5_000_000, "price": Decimal("0.00"), "share": None, "ok": True},
]
WEIGHTS = [1, 2, -1, 5]
BOUND = (EVENTS.column("ts").word, 500_000)
NUMBERS = [(7, 1, 70), (-8, 2, -160), (1 << 40, 3, 0)]


def events() -> pa.Table:
    return pa.Table.from_pylist(ROWS, schema=EVENTS.schema)


def write(folder: Path) -> None:
    traces = {"events": Trace(EVENTS), "totals": Trace(TOTALS), "empty": Trace(TOTALS)}
    with Store(folder) as store:
        traces["events"].add(ZSet.packed(EVENTS, events(), np.array(WEIGHTS)))
        store.checkpoint(1, traces, {"orders": 3})
        totals = ZSet.packed(TOTALS, pa.table({"id": [n[0] for n in NUMBERS]}, schema=TOTALS.schema))
        totals.rows[:, -2:] = [n[1:] for n in NUMBERS]
        traces["totals"].add(totals)
        traces["events"].forget(BOUND)
        store.checkpoint(2, traces, {"orders": 4, "text": "Grüße"})
    os.unlink(folder / "lock")


@pytest.mark.parametrize("version", [1])
def test_a_checkpoint_of_each_version_can_be_read(version: int, tmp_path: Path) -> None:
    golden = GOLDEN / f"v{version}"
    if UPDATE:
        shutil.rmtree(golden, ignore_errors=True)
        write(golden)
    folder = tmp_path / "state"
    shutil.copytree(golden, folder)
    with Store(folder) as store:
        assert [store.restore(name).epoch for name in store.manifests()] == [1, 2]
        manifest = store.restore()
        assert manifest.extra == {"orders": 4, "text": "Grüße"}
        store.verify(manifest)
        trace = store.trace(manifest, "events", EVENTS)
        assert trace.bound == BOUND
        found = {json.dumps(row, default=str) for row in trace.zset().to_arrow().to_pylist()}
        rows = events().append_column("_weight", pa.array(WEIGHTS)).to_pylist()
        assert found == {json.dumps(row, default=str) for row in rows}
        # By key, so that the hash is the one of that version.
        assert trace.weights(ZSet.packed(EVENTS, events())).ravel().tolist() == WEIGHTS
        totals = store.trace(manifest, "totals", TOTALS).zset()
        assert sorted(totals.rows[:, [totals.layout.columns[0].word, -2, -1]].tolist()) == sorted(map(list, NUMBERS))
        assert len(store.trace(manifest, "empty", TOTALS)) == 0
        # What is read is written again in today's version, and goes on.
        trace.add(ZSet.packed(EVENTS, events()[:1]))
        store.checkpoint(3, {"events": trace})
        assert len(store.trace(store.restore(), "events", EVENTS)) == len(trace)


def test_what_is_written_today_is_the_newest_golden(tmp_path: Path) -> None:
    write(tmp_path)
    newest = GOLDEN / "v1"
    sizes = [sorted(f.stat().st_size for f in (folder / "runs").iterdir()) for folder in (tmp_path, newest)]
    assert sizes[0] == sizes[1]
    same = {f.read_bytes() for f in (tmp_path / "runs").iterdir()} == {
        f.read_bytes() for f in (newest / "runs").iterdir()
    }
    assert same, "the bytes have changed: a new version is due"
