"""Versions of an online table: what one commit names, mapped into memory and ready to answer.

A version never changes. Whoever answers a request takes the current one once, so that an answer is of one version
whatever is published meanwhile; its files stay mapped until the last request that uses them has ended.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.base.frontier import Frontier
from headwater.serving.frame import Frame
from headwater.serving.keys import KeyBatch
from headwater.serving.layers import Layers, Located
from headwater.serving.projection import FetchOptions, Projection
from headwater.serving.value_status import NOT_FOUND, OUTSIDE_MAX_AGE

__all__ = ["TableVersion", "VersionFacts"]

_KEPT = 256
_PLAIN = FetchOptions()
_UNITS = {"s": 1_000, "ms": 1, "us": 1, "ns": 1}
Status = np.ndarray[tuple[int], np.dtype[np.uint8]]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFacts:
    """What is known of a version beside its rows.

    Parameters
    ----------
    name, number
        the table, and the number of the commit
    frontier, reach : Frontier
        the versions of its sources, and with them those that the sources reflect themselves
    rows : int
        how many keys have a row
    committed_ms : int
        when it was committed
    ttl_ms, event_time
        how old a row may be, by which column
    """

    name: str
    number: int
    frontier: Frontier
    reach: Frontier
    rows: int
    committed_ms: int
    ttl_ms: int | None = None
    event_time: str | None = None


class TableVersion:
    """One version of an online table; any number of threads may fetch from it.

    Examples
    --------
    >>> import headwater as hw, tempfile
    >>> lake = hw.connect(tempfile.mkdtemp())
    >>> _ = lake.write("spend", [{"id": 1, "total": 10.5}, {"id": 2, "total": 4.0}])
    >>> version = lake.online("features", "spend", key="id", refresh=True).current
    >>> version.fetch([2, 3]).batch().to_pylist()
    [{'total': 4.0, '_found': True}, {'total': None, '_found': False}]
    """

    def __init__(self, facts: VersionFacts, layers: Layers) -> None:
        self.facts = facts
        self.name, self.number = facts.name, facts.number
        self.frontier, self.reach = facts.frontier, facts.reach
        self.rows, self.committed_ms = facts.rows, facts.committed_ms
        self.ttl_ms, self.event_time = facts.ttl_ms, facts.event_time
        self._layers = layers
        self.layout = layers.layout
        self.schema = layers.layout.schema
        self.key = tuple(part.name for part in self.layout.key)
        self.columns = tuple(c.name for c in self.layout.columns)
        self.overlay_rows, self.bytes, self.layers = layers.overlay_rows, layers.bytes, len(layers.files)
        self._projections: dict[tuple[tuple[str, ...] | None, FetchOptions], Projection] = {}

    def keys(self, given: Any) -> KeyBatch:
        """Keys from a list (of tuples, where the key has several columns), a dict of columns, Arrow,
        numpy or a frame.
        """
        return self._layers.codec.keys(given)

    def projection(self, columns: Sequence[str] | None, options: FetchOptions = _PLAIN) -> Projection:
        """Some columns, checked and prepared; all without a list."""
        wanted = None if columns is None else tuple(columns)
        found = self._projections.get((wanted, options))
        if found is None:
            names = self.columns if wanted is None else wanted
            found = Projection(self.layout, names, options, self.event_time)
            if len(self._projections) >= _KEPT:
                self._projections = {}
            self._projections[wanted, options] = found
        return found

    def fetch(
        self,
        keys: Any,
        columns: Sequence[str] | None = None,
        options: FetchOptions = _PLAIN,
        now_ms: float | np.ndarray[Any, Any] | None = None,
    ) -> Frame:
        """The values of columns for keys, in the order of the keys, as an Arrow IPC stream.

        Parameters
        ----------
        keys
            whatever `keys` takes
        columns : sequence of str, optional
            all but the key by default
        options : FetchOptions
        now_ms : float or array, optional
            the time by which the age of rows is judged; one for all, or for each key
        """
        projection = self.projection(columns, options)
        located = self._layers.find(keys if isinstance(keys, KeyBatch) else self.keys(keys))
        status = None
        if self.ttl_ms is not None or options.status:
            status = self._status(located, now_ms)
        return projection.fill(self._layers, located, status)

    def fixed_projection(self, columns: Sequence[str] | None, options: FetchOptions) -> Projection | None:
        """The projection, if it can answer a request by one call (`Projection.answer`)."""
        projection = self.projection(columns, options)
        return projection if projection.is_plain and self.ttl_ms is None else None

    def _status(self, located: Located, now_ms: float | np.ndarray[Any, Any] | None) -> Status:
        """The status of each row; rows that are too old are taken out of ``located``."""
        status = np.where(located.records == 0, np.uint8(NOT_FOUND), np.uint8(0))
        if self.ttl_ms is not None and self.event_time is not None:
            now = time.time() * 1_000 if now_ms is None else now_ms
            old = self._times(located) < now - self.ttl_ms
            old &= located.records != 0
            status[old] = OUTSIDE_MAX_AGE
            located.records[old] = 0
            located.missing = int(np.count_nonzero(located.records == 0))
        return status

    def _times(self, located: Located) -> np.ndarray[Any, Any]:
        """The event times of records in ms; those without one are as old as can be."""
        assert self.event_time is not None
        column = self.projection((self.event_time,), FetchOptions(found=False)).fill(self._layers, located).batch()[0]
        unit = column.type.unit if pa.types.is_timestamp(column.type) else None
        raw = column.cast(pa.int64() if unit else pa.int32()).fill_null(0).to_numpy(zero_copy_only=False)
        scale = {None: 86_400_000.0, "s": 1e3, "ms": 1.0, "us": 1e-3, "ns": 1e-6}[unit]
        known = column.is_valid().to_numpy(zero_copy_only=False)
        return np.where(known, raw * scale, -np.inf)

    def check(self) -> None:
        """Compare the check sums of all files."""
        for layer in self._layers.files:
            for one in layer:
                one.check()

    def populate(self) -> None:
        """Map all pages ahead of the first request."""
        for layer in self._layers.files:
            for one in layer:
                one.populate()

    @property
    def mapped(self) -> Layers:
        """Its files."""
        return self._layers

    def read(self) -> pa.RecordBatchReader:
        """All rows: key and columns, in no particular order."""
        plain = FetchOptions(found=False)
        layers, schema = self._layers, pa.schema([f.with_nullable(True) for f in self.schema])

        def batches() -> Any:
            for located in layers.live():
                arrays = layers.key_columns(located.records, located.heaps)
                if self.columns:
                    arrays += self.projection(None, plain).fill(layers, located).batch().columns
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches())

    def __repr__(self) -> str:
        return f"TableVersion({self.name!r}, {self.number}, {self.frontier}, {self.rows:,} rows)"
