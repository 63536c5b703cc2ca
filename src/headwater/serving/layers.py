"""Layers: the record files of a version, newest first, as kernels search them.

A layer is one file per part. The last one is the base; those before it are overlays, whose rows and deletions count
before everything that is older. An overlay is small and has one file, which stands for each part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from headwater.base.errors import CorruptionError
from headwater.serving.keys import KeyBatch, KeyCodec
from headwater.serving.origins import Origins
from headwater.serving.record_file import RecordFile

__all__ = ["Layers", "Located"]

Positions = np.ndarray[tuple[int], np.dtype[np.int64]]
_CHUNK = 65_536


class Located:
    """Where the records of some keys are: an address for each (0: it has none), and the row of the layer table."""

    __slots__ = ("heaps", "missing", "records")

    def __init__(self, records: Positions, heaps: Positions, missing: int) -> None:
        self.records = records
        self.heaps = heaps
        self.missing = missing


class Layers:
    """The mapped files of a version."""

    def __init__(self, files: Sequence[Sequence[RecordFile]]) -> None:
        """``files``: for each layer, newest first, the file of each part."""
        assert files and files[-1], "there is a base"
        self.files = [list(layer) for layer in files]
        first = self.files[-1][0]
        self.layout, self.seed, self.parts = first.layout, first.seed, len(self.files[-1])
        self._rows: list[tuple[int, RecordFile]] = []
        addresses: list[list[int]] = []
        for layer in self.files:
            for one in layer:
                if one.layout != self.layout or one.seed != self.seed or len(layer) not in (1, self.parts):
                    raise CorruptionError.record_file(one.path, "it does not belong to the base of its version")
            self._rows += [(len(addresses) + i, one) for i, one in enumerate(layer)]
            addresses += [one.addresses() for one in layer] * (self.parts // len(layer))
        self.table = np.array(addresses, np.int64)
        self.codec = KeyCodec(self.layout.key)
        self.signed_seed = self.seed - (1 << 64) if self.seed >= 1 << 63 else self.seed
        self.described = np.array(
            [self.parts, self.signed_seed, self.layout.null_bytes, *self.layout.shape.tolist()], np.int64
        )
        """The version as `headwater.kernels.online_answer` takes it."""

    @property
    def overlay_rows(self) -> int:
        """Records of the overlays, those of deleted keys among them."""
        return sum(one.rows for layer in self.files[:-1] for one in layer)

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(one.bytes for layer in self.files for one in layer)

    def find(self, keys: KeyBatch) -> Located:
        """The records of keys; the GIL is released."""
        from headwater.kernels.arrays import read_only
        from headwater.kernels.online_find import find_records

        count = len(keys)
        records, heaps = np.empty(count, np.int64), np.zeros(count, np.int64)
        missing = find_records(
            read_only(keys.data),
            read_only(keys.offsets),
            self.table,
            self.parts,
            self.layout.shape,
            self.signed_seed,
            records,
            heaps,
        )
        if keys.nulls is not None:
            records[keys.nulls] = 0
            missing = count - int(np.count_nonzero(records))
        return Located(records, heaps, missing)

    def live(self) -> Iterator[Located]:
        """The records that count, in chunks: those that their own key leads to."""
        for row, one in self._rows:
            begin = int(self.table[row, 2])
            for start in range(0, one.rows, _CHUNK):
                numbers = np.arange(start, min(one.rows, start + _CHUNK))
                records = begin + numbers * self.layout.width
                heaps = np.full(len(records), row, np.int64)
                found = self.find(self.keys_at(records, heaps))
                own = found.records == records
                if own.any():
                    yield Located(records[own], heaps[own], 0)

    def tombstones(self) -> Iterator[Located]:
        """The records of deleted keys that no newer layer has a row for."""
        for row, one in self._rows:
            if not one.tombstones:
                continue
            records = int(self.table[row, 2]) + np.arange(one.rows) * self.layout.width
            raw = one.buffer[one.sections["records"].at :][: one.sections["records"].bytes]
            records = records[(raw[self.layout.nulls :: self.layout.width] & 1) == 1]
            heaps = np.full(len(records), row, np.int64)
            newer = self.find(self.keys_at(records, heaps))
            gone = (newer.records == 0) & (newer.heaps == row)
            yield Located(records[gone], heaps[gone], 0)

    @property
    def base(self) -> int:
        """The row of the layer table that is the base, where it has one part."""
        return len(self.table) - 1

    @property
    def origins(self) -> Origins | None:
        """From where the records of the base come; None where that is not known."""
        return self.files[-1][0].origins if self.parts == 1 else None

    def numbers(self, records: Positions) -> Positions:
        """The numbers of records of the base."""
        found: Positions = (records - self.table[self.base, 2]) // self.layout.width
        return found

    def keys_of_rows(self, path: str, rows: Positions) -> list[pa.Array] | None:
        """The columns of the keys of some rows of a data file of the source; None where a row is not known."""
        numbers = None if self.origins is None else self.origins.find(path, rows)
        if numbers is None:
            return None
        records = self.table[self.base, 2] + numbers * self.layout.width
        return self.key_columns(records, np.full(len(records), self.base, np.int64))

    def keys_at(self, records: Positions, heaps: Positions) -> KeyBatch:
        """The keys of records."""
        from headwater.kernels.online_pack import copy_keys, measure_keys

        offsets = np.empty(len(records) + 1, np.int64)
        total = measure_keys(records, self.layout.shape, offsets)
        data = np.empty(max(1, total), np.uint8)
        copy_keys(records, heaps, self.table, self.layout.shape, offsets, data)
        return KeyBatch(data, offsets)

    def key_columns(self, records: Positions, heaps: Positions) -> list[pa.Array]:
        """The columns of the keys of records."""
        keys = self.keys_at(records, heaps)
        return self.codec.decode(keys.data[: int(keys.offsets[-1])], keys.offsets)
