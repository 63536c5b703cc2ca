"""Views that change their runtime: a twin that never leaves the process has the same rows, and the same state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from headwater.base import settings
from headwater.incremental.circuit import durable
from headwater.incremental.views import live as lives
from headwater.incremental.views.addresses import Addresses
from headwater.incremental.views.definition import Definition
from headwater.incremental.views.live import built
from headwater.incremental.views.view import View


@contextmanager
def on(engine: str, shards: int = 3) -> Iterator[None]:
    """Let refreshes be computed so."""
    with settings.override(view_engine=engine, view_spark_shards=shards):
        yield


def state_of(view: View) -> dict[str, list[Any]]:
    """The rows of each trace of what is saved, by its name; without those that say where rows lie."""
    root = view._environment.root
    with lives.live(root, view.name).guard:
        lives.live(root, view.name).discard()
        folder = lives.live(root, view.name).folder
        definition = Definition.of(view.table.snapshot)
        assert definition is not None
        circuit = built(definition, shards=1)
        with folder.held():
            state = view.record.state
            assert state is not None
            name = folder.newest(state, view.table.snapshot.state.metadata.id, view.record.published)
            folder.load(name, circuit, Addresses())
            found: dict[str, list[Any]] = {}
            for key, trace in durable.traces_of(circuit).items():
                if "/classes/" in key:  # a set: each shard may add the same one
                    found[key] = sorted(map(str, trace.zset().to_arrow().drop_columns(["_weight"]).to_pylist()))
                    continue
                rows: pa.Table = trace.zset().to_arrow()
                layout = trace.layout
                weights = [str(w) for w in trace.zset().rows[:, layout.payload :].tolist()]
                found[key] = sorted(zip(map(str, rows.to_pylist()), weights, strict=True))
    return found
