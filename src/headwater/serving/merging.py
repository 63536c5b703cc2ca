"""Putting layers together: overlays stay few, and the base takes them in.

Each refresh adds an overlay. So that there are never many, when there are a few a new one takes in those before it that
are not much larger, as in a log-structured merge tree: their number grows with the logarithm of the rows changed, and
each row is copied as often. When all overlays together are some percent of the base, a new base is written in the
background. Records are copied as they are; only what they refer to in the heap gets another place.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

import pyarrow as pa

from headwater.serving.building import Shape, build_layer, split_by_part
from headwater.serving.keys import KeyBatch
from headwater.serving.layers import Layers
from headwater.serving.origins import KeptRecords
from headwater.serving.record import LayerEntry, OnlineRecord
from headwater.serving.record_file import RecordFile
from headwater.serving.record_writer import RecordWriter, Written
from headwater.serving.store import OnlineStore

__all__ = ["compacted", "needs_compaction", "overlaid", "replace_layers"]

_GROWTH = 2
_FEW_LAYERS = 4
_MOST_LAYERS = 8
_SHARE = 0.04
_FEW = 2_000


def overlaid(
    store: OnlineStore,
    record: OnlineRecord,
    layers: Layers,
    batches: Iterable[pa.RecordBatch],
    deleted: KeyBatch | None,
    number: int,
    *,
    order_by: str | None = None,
    where: str = "",
) -> tuple[LayerEntry, ...]:
    """The layers of a record with newer rows, and without ``deleted`` keys; writes one file."""
    shape = Shape(layers.layout, layers.seed, 1, order_by)
    path = store.new_file(number)
    written = build_layer(batches, shape, lambda _: path, deleted=deleted, where=where)
    new, absorbed = LayerEntry.of(written), 0
    overlays = record.layers[:-1]
    total = new.rows
    while (
        len(overlays) >= _FEW_LAYERS
        and absorbed < len(overlays)
        and (overlays[absorbed].rows <= _GROWTH * total or len(overlays) - absorbed >= _MOST_LAYERS)
    ):
        total += overlays[absorbed].rows
        absorbed += 1
    if absorbed:
        stack = Layers([[RecordFile(path)], *layers.files[:absorbed]])
        merged = store.new_file(number)
        new = LayerEntry.of([_merged(stack, merged, with_tombstones=True)])
        os.unlink(path)
    store.upload(new.files)
    return (new, *record.layers[absorbed:])


def _merged(stack: Layers, path: str, *, with_tombstones: bool) -> Written:
    writer = RecordWriter(path, stack.layout, stack.seed)
    try:
        for located in stack.live():
            writer.copy(located.records, located.heaps, stack.table)
        if with_tombstones:
            for located in stack.tombstones():
                writer.copy(located.records, located.heaps, stack.table, tombstones=len(located.records))
        return writer.finish()
    except BaseException:
        writer.abandon()
        raise


def needs_compaction(record: OnlineRecord) -> bool:
    """Whether the overlays are large enough to be taken in by the base."""
    return bool(record.layers) and record.overlay_rows > _FEW + _SHARE * record.layers[-1].rows


def compacted(store: OnlineStore, layers: Layers, number: int) -> LayerEntry:
    """A base that holds what all layers hold; writes one file per part."""
    writers: list[RecordWriter] = []
    try:
        for part in range(layers.parts):
            one = RecordWriter(store.new_file(number, part), layers.layout, layers.seed)
            writers.append(one)
        origins, kept = layers.origins, KeptRecords()
        for located in layers.live():
            if layers.parts == 1:
                if origins is not None and located.heaps[0] == layers.base:
                    kept.note(layers.numbers(located.records), writers[0].rows)
                writers[0].copy(located.records, located.heaps, layers.table)
                continue
            keys = layers.keys_at(located.records, located.heaps)
            shape = Shape(layers.layout, layers.seed, layers.parts)
            for part, positions in split_by_part(keys, shape):
                writers[part].copy(located.records[positions], located.heaps[positions], layers.table)
        known = None if origins is None else kept.origins(origins)
        entry = LayerEntry.of([writer.finish(known) for writer in writers])
    except BaseException:
        for writer in writers:
            writer.abandon()
        raise
    store.upload(entry.files)
    return entry


def replace_layers(
    now: Sequence[LayerEntry], taken: Sequence[LayerEntry], base: LayerEntry
) -> tuple[LayerEntry, ...] | None:
    """What is committed now, with ``base`` in place of the layers that it was made of; None if their base is not there.

    Overlays that came since, or that took in one of those, are newer than the base, and stay.
    """
    if not now or now[-1] != taken[-1]:
        return None
    gone = set(taken)
    return (*(layer for layer in now if layer not in gone), base)
