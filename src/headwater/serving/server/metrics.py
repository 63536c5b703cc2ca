"""Metrics: what is counted of each table, and how Prometheus reads it.

Every number has a fixed place in the slot of its table (`shared_counters`), so counting a request is a few additions to
memory. Latencies are histograms by the number of keys, since a request of 1,000 keys and one of 1 have nothing in
common. The exposition is made when somebody asks, from the slots of all processes.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING

from headwater.serving.server.shared_counters import CounterSlot, SharedCounters

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from headwater.serving.version import TableVersion

__all__ = ["NUMBERS", "ServerMetrics", "TableMetrics", "exposition"]

KEY_BOUNDS = (1, 10, 100, 1_000, 10_000)
"""Upper bounds of the groups of requests by their number of keys; more than the last are a group of their own."""
SECOND_BOUNDS = (25e-6, 50e-6, 1e-4, 2e-4, 4e-4, 8e-4, 1.6e-3, 3.2e-3, 6.4e-3, 12.8e-3, 25e-3, 50e-3, 0.1, 0.25, 1.0)
STATUSES = (200, 201, 204, 400, 401, 403, 404, 405, 406, 408, 409, 413, 415, 431, 500, 503)
"""Statuses that are counted by name; all others are counted as 0."""

_KEY_LABELS = (*(str(bound) for bound in KEY_BOUNDS), "+Inf")
_NS_BOUNDS = tuple(round(bound * 1e9) for bound in SECOND_BOUNDS)
_GROUP = len(SECOND_BOUNDS) + 2  # a bucket each, one for the rest, and the sum in nanoseconds

# Where each number lies in a slot.
_LATENCY = 0
_STATUS = _LATENCY + (len(KEY_BOUNDS) + 1) * _GROUP
_KEYS = _STATUS + len(STATUSES) + 1
_MISSES = _KEYS + 1
_SWAPS = _KEYS + 2
_SWAP_NS = _KEYS + 3
_FAILURES = _KEYS + 4
_ROWS_WRITTEN = _KEYS + 5
_ROWS_DELETED = _KEYS + 6
# What is true of a table now, as one process sees it.
_VERSION = _KEYS + 7
_COMMITTED_MS = _KEYS + 8
_ROWS = _KEYS + 9
_OVERLAY_ROWS = _KEYS + 10
_BYTES = _KEYS + 11
_LAYERS = _KEYS + 12
_LOADED = _KEYS + 13
NUMBERS = _KEYS + 14

_STATUS_AT = {status: _STATUS + place for place, status in enumerate(STATUSES)}
_STATUS_OTHER = _STATUS + len(STATUSES)


class TableMetrics:
    """Counts what one process does with one table."""

    __slots__ = ("_numbers", "slot")

    def __init__(self, slot: CounterSlot) -> None:
        self.slot = slot
        self._numbers = slot.numbers

    def fetched(self, status: int, keys: int, misses: int, elapsed_ns: int) -> None:
        """A fetch was answered."""
        numbers = self._numbers
        numbers[_STATUS_AT.get(status, _STATUS_OTHER)] += 1
        if status == 200:
            numbers[_KEYS] += keys
            numbers[_MISSES] += misses
            at = _GROUP * bisect_left(KEY_BOUNDS, keys)
            numbers[at + bisect_left(_NS_BOUNDS, elapsed_ns)] += 1
            numbers[at + _GROUP - 1] += elapsed_ns

    def answered(self, status: int) -> None:
        """Anything else was answered."""
        self._numbers[_STATUS_AT.get(status, _STATUS_OTHER)] += 1

    def wrote(self, rows: int) -> None:
        self._numbers[_ROWS_WRITTEN] += rows

    def deleted(self, rows: int) -> None:
        self._numbers[_ROWS_DELETED] += rows

    def swapped(self, version: TableVersion, elapsed_ns: int) -> None:
        """A newer version is served from now on."""
        numbers = self._numbers
        numbers[_SWAPS] += 1
        numbers[_SWAP_NS] += elapsed_ns
        numbers[_VERSION] = version.number
        numbers[_COMMITTED_MS] = version.committed_ms
        numbers[_ROWS] = version.rows
        numbers[_OVERLAY_ROWS] = version.overlay_rows
        numbers[_BYTES] = version.bytes
        numbers[_LAYERS] = version.layers
        numbers[_LOADED] = 1

    def failed(self, why: str) -> None:
        """A newer version could not be opened or made."""
        self._numbers[_FAILURES] += 1
        self.slot.note = why

    def recovered(self) -> None:
        """What failed is right again."""
        if self.slot.note:
            self.slot.note = ""

    def dropped(self) -> None:
        self._numbers[_LOADED] = 0
        self.recovered()


class ServerMetrics:
    """The counters of one process, by table."""

    def __init__(self, counters: SharedCounters, region: int) -> None:
        self.counters, self.region = counters, region
        self._tables: dict[str, TableMetrics] = {}

    def table(self, name: str) -> TableMetrics:
        """The counters of a table; those of names that no table has are the caller's to avoid."""
        found = self._tables.get(name)
        if found is None:
            found = self._tables[name] = TableMetrics(self.counters.slot(self.region, name))
        return found


def exposition(counters: SharedCounters, accept: str) -> tuple[bytes, str]:
    """Everything that was counted, in the format that ``accept`` asks for, and its media type."""
    from prometheus_client.exposition import choose_encoder
    from prometheus_client.registry import CollectorRegistry

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(counters))
    encode, media = choose_encoder(accept)
    return encode(registry), media


class _Collector:
    """What prometheus_client asks for metrics."""

    def __init__(self, counters: SharedCounters) -> None:
        self._counters = counters

    def collect(self) -> Iterator[Metric]:
        yield from _counted(self._counters)
        yield from _current(self._counters)


def _counted(counters: SharedCounters) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

    sums = counters.sums()
    latency = HistogramMetricFamily(
        "headwater_fetch_seconds", "Time to answer a fetch, by its number of keys at most", labels=["table", "keys"]
    )
    requests = CounterMetricFamily("headwater_requests", "Requests, by table and status", labels=["table", "status"])
    for name, numbers in sums.items():
        for group, label in enumerate(_KEY_LABELS):
            at = group * _GROUP
            buckets, total = [], 0
            for place, bound in enumerate((*(f"{b:g}" for b in SECOND_BOUNDS), "+Inf")):
                total += numbers[at + place]
                buckets.append((bound, float(total)))
            if total:
                latency.add_metric([name, label], buckets, numbers[at + _GROUP - 1] / 1e9)
        for status in STATUSES:
            if numbers[_STATUS_AT[status]]:
                requests.add_metric([name, str(status)], numbers[_STATUS_AT[status]])
        if numbers[_STATUS_OTHER]:
            requests.add_metric([name, "other"], numbers[_STATUS_OTHER])
    yield latency
    yield requests
    for title, text, at, scale in (
        ("headwater_keys", "Keys that were looked up", _KEYS, 1),
        ("headwater_misses", "Keys that were not there", _MISSES, 1),
        ("headwater_swaps", "Newer versions that were opened, by all processes", _SWAPS, 1),
        ("headwater_swap_seconds", "Time to open newer versions, by all processes", _SWAP_NS, 1e9),
        ("headwater_failures", "Newer versions that could not be opened or made", _FAILURES, 1),
        ("headwater_rows_written", "Rows that were written through the API", _ROWS_WRITTEN, 1),
        ("headwater_rows_deleted", "Rows that were deleted through the API", _ROWS_DELETED, 1),
    ):
        family = CounterMetricFamily(title, text, labels=["table"])
        for name, numbers in sums.items():
            family.add_metric([name], numbers[at] / scale if scale != 1 else numbers[at])
        yield family


def _current(counters: SharedCounters) -> Iterator[Metric]:
    from prometheus_client.core import GaugeMetricFamily

    loaded = [(region, slot.name, slot.numbers.tolist()) for region, slot in counters.slots() if slot.numbers[_LOADED]]
    version = GaugeMetricFamily(
        "headwater_table_version", "The version that a process serves", labels=["table", "worker"]
    )
    for region, name, numbers in loaded:
        version.add_metric([name, str(region)], numbers[_VERSION])
    yield version
    oldest: dict[str, list[int]] = {}
    for _, name, numbers in loaded:
        if name not in oldest or numbers[_VERSION] < oldest[name][_VERSION]:
            oldest[name] = numbers
    now_ms = time.time() * 1000
    freshness = GaugeMetricFamily(
        "headwater_freshness_seconds", "Age of the oldest version that some process serves", labels=["table"]
    )
    for name, numbers in oldest.items():
        freshness.add_metric([name], max(0.0, (now_ms - numbers[_COMMITTED_MS]) / 1000))
    yield freshness
    for title, text, at in (
        ("headwater_rows", "Rows of the version that is served", _ROWS),
        ("headwater_overlay_rows", "Rows that lie in overlays over the base", _OVERLAY_ROWS),
        ("headwater_table_bytes", "Bytes of the files of the version that is served", _BYTES),
        ("headwater_layers", "Layers of the version that is served, the base among them", _LAYERS),
    ):
        family = GaugeMetricFamily(title, text, labels=["table"])
        for name, numbers in oldest.items():
            family.add_metric([name], numbers[at])
        yield family
    errors = GaugeMetricFamily(
        "headwater_table_error", "1 while a newer version cannot be opened or made", labels=["table"]
    )
    noted = counters.notes()
    for name in sorted({*oldest, *noted}):
        errors.add_metric([name], 1 if name in noted else 0)
    yield errors
