"""Many threads at once, a Python thread beside a query, cancelling, limits of memory."""

from __future__ import annotations

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.waiting import PATIENCE_S

import headwater as hw
from headwater.lakehouse import Lake
from headwater.query.result import Result

# Hours of work.
LONG = "SELECT sum(sqrt(a.id * 1.0D + b.id + c.id)) FROM big a CROSS JOIN big b CROSS JOIN big c"
# Seconds: what would wait for its end does not wait for ever.
SOME = "SELECT sum(sqrt(a.id * 1.0D + b.id)) FROM big a CROSS JOIN big b"
SHORT = "SELECT count(*) FROM big WHERE id < 100"


@pytest.fixture
def big(lake: Lake) -> Lake:
    import pyarrow as pa

    lake.write("big", pa.table({"id": pa.array(range(30_000), pa.int64())}))
    return lake


def read_until_cancelled(result: Result) -> None:
    with pytest.raises(hw.CancelledError):
        result.to_arrow()


def test_eight_threads_get_right_answers(big: Lake) -> None:
    queries = [(f"SELECT count(*), sum(id) FROM big WHERE id % 8 = {i}", 3750) for i in range(8)] * 4

    def ask(item: tuple[str, int]) -> tuple[str, tuple[object, ...]]:
        return item[0], big.sql(item[0]).to_tuples()[0]

    one_by_one = dict(map(ask, queries))
    with ThreadPoolExecutor(8) as pool:
        assert dict(pool.map(ask, queries)) == one_by_one
    assert all(found[0] == 3750 for found in one_by_one.values())


def test_a_short_query_is_not_stuck_behind_a_long_one(big: Lake) -> None:
    result = big.sql(LONG)
    reading = threading.Thread(target=read_until_cancelled, args=(result,))
    reading.start()
    try:
        assert big.sql(SHORT).scalar() == 100
        assert reading.is_alive(), "the long query has to be running for this to mean something"
    finally:
        result.cancel()
        reading.join(PATIENCE_S)
    assert not reading.is_alive()


def test_a_python_thread_runs_while_a_query_does(big: Lake) -> None:
    result = big.sql(SOME)

    def read() -> None:
        with contextlib.suppress(hw.CancelledError):
            result.to_arrow()

    reading = threading.Thread(target=read)
    reading.start()
    count, end = 0, time.perf_counter() + 0.3  # by when the query is on its way
    while reading.is_alive() and (count < 10_000 or time.perf_counter() < end):
        count += 1
    reached = count
    result.cancel()  # what is left of it proves nothing more
    reading.join(PATIENCE_S)
    assert reached >= 10_000


def test_cancelling_ends_a_query_soon(big: Lake) -> None:
    result = big.sql(LONG)
    threading.Timer(0.3, result.cancel).start()
    with pytest.raises(hw.CancelledError) as caught:
        result.to_arrow()
    assert caught.value.code == "E1402"


def test_a_query_that_outgrows_its_memory_spills(big: Lake, tmp_path: Path) -> None:
    text = (
        "SELECT a.id, b.id AS other, row_number() OVER (ORDER BY a.id * b.id) AS n FROM big a JOIN big b ON b.id < 60"
    )
    with hw.settings.override(memory_limit_bytes="80 MiB", spill_dir=tmp_path / "spill", threads=1):
        rows = 0
        for batch in big.sql(text):
            rows += batch.num_rows
    assert rows == 30_000 * 60


def test_a_query_without_room_to_spill_says_so(big: Lake, tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("no folder")
    text = "SELECT collect_list(a.id + b.id) FROM big a JOIN big b ON b.id < 200"
    small = hw.settings.override(memory_limit_bytes="40 MiB", spill_dir=blocked, threads=1)
    with small, pytest.raises(hw.SetupError) as caught:
        big.sql(text).to_arrow()
    assert caught.value.code == "E7005"


def test_a_result_streams(big: Lake) -> None:
    """The first rows of 27 trillion are there at once. (With a fourth table, DuckDB first counts the pairs of two.)"""
    with big.sql("SELECT a.id, b.id AS other FROM big a CROSS JOIN big b CROSS JOIN big c") as result:
        batch = next(iter(result))
    assert batch.num_rows > 0
