"""Time travel: two versions of one table in one query, and one version of each table for the whole query."""

from __future__ import annotations

import threading

import pytest

import headwater as hw
from headwater.lakehouse import Lake


@pytest.fixture
def prices(lake: Lake) -> Lake:
    lake.write("prices", [{"id": 1, "price": 10}, {"id": 2, "price": 20}, {"id": 3, "price": 30}])
    lake.sql("UPDATE prices SET price = 21 WHERE id = 2")
    lake.sql("DELETE FROM prices WHERE id = 3")
    lake.sql("INSERT INTO prices VALUES (4, 40)")
    return lake


def test_what_changed_between_two_versions(prices: Lake) -> None:
    text = """
        SELECT coalesce(old.id, new.id) AS id, old.price AS before, new.price AS after
        FROM prices VERSION AS OF 0 AS old FULL JOIN prices VERSION AS OF 3 AS new ON old.id = new.id
        WHERE NOT old.price <=> new.price ORDER BY id"""
    assert prices.sql(text).to_tuples() == [(2, 20, 21), (3, 30, None), (4, None, 40)]


def test_versions_by_number_text_and_timestamp(prices: Lake) -> None:
    stamps = {h.version: h.timestamp for h in prices.table("prices").history()}
    for version in range(4):
        expected = prices.table("prices").at(version=version).count()
        for clause in (
            f"VERSION AS OF {version}",
            f"FOR VERSION AS OF {version}",
            f"TIMESTAMP AS OF '{stamps[version]}'",
        ):
            assert prices.sql(f"SELECT count(*) FROM prices {clause}").scalar() == expected
    with pytest.raises(hw.NotFoundError):
        prices.sql("SELECT * FROM prices VERSION AS OF 9")


def test_a_query_reads_one_version_while_others_commit(lake: Lake) -> None:
    lake.write("t", [{"id": i, "v": 0} for i in range(1000)])
    stop = threading.Event()

    def write() -> None:
        n = 0
        while not stop.is_set():
            n += 1
            lake.sql("UPDATE t SET v = :n", parameters={"n": n})

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(20):
            text = "SELECT count(DISTINCT a.v), count(*), max(a.v) = max(b.v) FROM t a JOIN t b ON a.id = b.id"
            assert lake.sql(text).to_tuples() == [(1, 1000, True)]
    finally:
        stop.set()
        writer.join()
