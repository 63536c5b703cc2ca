"""Online tables for tests, made by the parts that everybody uses: a base of rows, overlays, one commit each."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from headwater.base.frontier import Frontier
from headwater.base.storage import LocalStorage
from headwater.derived.record import LastRefresh
from headwater.serving.building import Shape, build_layer, layout_of, new_seed, stored_schema, to_stored
from headwater.serving.record import LayerEntry, OnlineRecord
from headwater.serving.store import OnlineStore

__all__ = ["publish", "store_at"]


def store_at(folder: Path | str, name: str) -> OnlineStore:
    root = LocalStorage(str(folder))
    root.make()
    return OnlineStore(root, name)


def publish(
    store: OnlineStore,
    rows: pa.Table,
    key: Sequence[str],
    frontier: Frontier | None = None,
    *,
    ttl_ms: int | None = None,
    event_time: str | None = None,
) -> int:
    """Commit a version that holds these rows; gives its number."""
    before = store.log.newest()
    number = 1 if before is None else before.number + 1
    schema = stored_schema(rows.schema, key)
    batches = [to_stored(batch, schema) for batch in rows.combine_chunks().to_batches()]
    shape = Shape(layout_of(schema, key, batches, ordered=False), new_seed())
    written = build_layer(batches, shape, lambda part: store.new_file(number, part))
    reflected = Frontier(orders=number) if frontier is None else frontier
    record = OnlineRecord(
        frontier=reflected,
        reach=reflected,
        layers=(LayerEntry.of(written),),
        rows=rows.num_rows,
        published=number,
        last=LastRefresh(int(time.time() * 1000), "full", 0.0, rows.num_rows, rows.num_rows),
        superseded=() if before is None else tuple(store.record(before).files),
    )
    document = record.to_json()
    return store.log.commit(number - 1, {"ttl_ms": ttl_ms, "event_time": event_time}, document)
