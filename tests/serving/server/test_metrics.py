"""Counters that all processes share, and what Prometheus reads of them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tests.serving.server.publishing import publish, store_at
from tests.serving.server.running import RunningServer, serving
from tests.serving.server.test_workers import table_of
from tests.waiting import wait_until

from headwater.serving.server.metrics import NUMBERS, ServerMetrics, exposition
from headwater.serving.server.shared_counters import OTHERS, SharedCounters


def test_processes_count_in_regions_of_their_own() -> None:
    counters = SharedCounters(regions=3, tables=8, numbers=2)
    children = []
    for region in (1, 2):
        pid = os.fork()
        if pid == 0:
            for _ in range(1000):
                counters.slot(region, "spend").numbers[0] += region
            counters.slot(region, f"only {region}").numbers[1] = 7
            os._exit(0)
        children.append(pid)
    for pid in children:
        assert os.waitpid(pid, 0)[1] == 0
    assert counters.sums() == {"spend": [3000, 0], "only 1": [0, 7], "only 2": [0, 7]}
    # One that is started in the place of another goes on where that stopped.
    counters.slot(1, "spend").numbers[0] += 1
    assert counters.sums()["spend"] == [3001, 0]


def test_tables_that_find_no_room_are_counted_together() -> None:
    counters = SharedCounters(regions=1, tables=2, numbers=1)
    for number in range(5):
        counters.slot(0, f"t{number}").numbers[0] += 1
    assert counters.sums() == {"t0": [1], "t1": [1], OTHERS: [3]}


def test_notes_are_texts_of_any_length() -> None:
    counters = SharedCounters(regions=1, tables=2, numbers=1)
    slot = counters.slot(0, "t")
    for text in ("", "why", "ä" * 5000, "x"):
        slot.note = text
        assert text.startswith(slot.note) and (slot.note or not text)
    assert counters.notes() == {"t": "x"}


def test_latencies_lie_in_their_buckets() -> None:
    counters = SharedCounters(regions=1, tables=2, numbers=NUMBERS)
    table = ServerMetrics(counters, 0).table("t")
    for keys, elapsed_ns in ((1, 20_000), (1, 60_000), (100, 150_000), (101, 2_000_000_000), (99_999, 5)):
        table.fetched(200, keys, 1, elapsed_ns)
    table.fetched(404, 0, 0, 5)
    table.fetched(299, 0, 0, 5)
    text = exposition(counters, "")[0].decode()
    found = dict(re.findall(r'headwater_fetch_seconds_count\{keys="([^"]+)",table="t"\} (\S+)', text))
    assert found == {"1": "2.0", "100": "1.0", "1000": "1.0", "+Inf": "1.0"}
    assert 'headwater_fetch_seconds_bucket{keys="1",le="2.5e-05",table="t"} 1.0' in text
    assert 'headwater_fetch_seconds_bucket{keys="1000",le="1",table="t"} 0.0' in text
    assert 'headwater_fetch_seconds_bucket{keys="1000",le="+Inf",table="t"} 1.0' in text
    assert 'headwater_requests_total{status="200",table="t"} 5.0' in text
    assert 'headwater_requests_total{status="404",table="t"} 1.0' in text
    assert 'headwater_requests_total{status="other",table="t"} 1.0' in text
    assert 'headwater_keys_total{table="t"} 100202.0' in text
    assert 'headwater_misses_total{table="t"} 5.0' in text


def numbers_of(server: RunningServer, name: str) -> dict[str, float]:
    text = server.ask("GET", "/metrics").body.decode()
    return {labels: float(value) for labels, value in re.findall(rf"^{name}\{{([^}}]*)\}} (\S+)$", text, re.MULTILINE)}


@pytest.mark.long
def test_any_worker_tells_of_all(tmp_path: Path) -> None:
    store = store_at(tmp_path, "t")
    publish(store, table_of(1), ["id"])
    with serving(tmp_path, workers=2) as server:
        for _ in range(40):
            assert server.fetch("t", [1, 2, 5000]).status == 200
        assert numbers_of(server, "headwater_keys_total")['table="t"'] == 120
        assert numbers_of(server, "headwater_misses_total")['table="t"'] == 40
        assert server.fetch("t", ["x"]).status == 400
        assert server.fetch("nothing", [1]).status == 404
        requests = numbers_of(server, "headwater_requests_total")
        assert requests['status="200",table="t"'] == 40 and requests['status="400",table="t"'] == 1
        assert requests['status="404",table="-"'] == 1
        assert not any("nothing" in labels for labels in requests), "names that no table has are not kept"
        wait_until(lambda: len(numbers_of(server, "headwater_table_version")) == 2, "both workers")
        publish(store, table_of(2), ["id"])
        wait_until(lambda: [*numbers_of(server, "headwater_table_version").values()] == [2.0, 2.0], "the new version")
        assert numbers_of(server, "headwater_swaps_total")['table="t"'] == 4
        assert 0 <= numbers_of(server, "headwater_freshness_seconds")['table="t"'] < 600
        assert numbers_of(server, "headwater_rows")['table="t"'] == 200
        assert numbers_of(server, "headwater_overlay_rows")['table="t"'] == 0
        assert numbers_of(server, "headwater_swap_seconds_total")['table="t"'] > 0


def test_open_metrics_where_it_is_asked_for(server: RunningServer) -> None:
    found = server.ask("GET", "/metrics", None, accept="application/openmetrics-text; version=1.0.0")
    assert found.headers["content-type"].startswith("application/openmetrics-text")
    assert found.body.endswith(b"# EOF\n")
    assert server.ask("GET", "/metrics").headers["content-type"].startswith("text/plain")
