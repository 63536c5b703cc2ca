"""Versions of online tables, made of Arrow tables alone."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from headwater.base.frontier import Frontier
from headwater.serving.building import Shape, build_layer, layout_of, new_seed, sampled, stored_schema, to_stored
from headwater.serving.layers import Layers
from headwater.serving.record_file import RecordFile
from headwater.serving.version import TableVersion, VersionFacts

__all__ = ["facts_of", "version_of"]


def facts_of(rows: int, **more: object) -> VersionFacts:
    """What is known of a version."""
    known = {
        "name": "t",
        "number": 1,
        "frontier": Frontier(t=1),
        "reach": Frontier(t=1),
        "rows": rows,
        "committed_ms": 0,
    }
    return VersionFacts(**{**known, **more})  # type: ignore[arg-type]


def version_of(
    table: pa.Table,
    key: Sequence[str],
    folder: Path,
    *,
    parts: int = 1,
    order_by: str | None = None,
    seed: int | None = None,
    **more: object,
) -> TableVersion:
    """A version that holds the rows of a table."""
    schema = stored_schema(table.schema, key)
    head, rows = sampled(to_stored(b, schema) for b in table.to_batches(max_chunksize=1_000))
    layout = layout_of(schema, key, head, ordered=order_by is not None)
    shape = Shape(layout, new_seed() if seed is None else seed, parts, order_by)
    written = build_layer(rows, shape, lambda part: str(folder / f"{uuid.uuid4().hex}-{part}.records"))
    return TableVersion(facts_of(table.num_rows, **more), Layers([[RecordFile(one.path) for one in written]]))
