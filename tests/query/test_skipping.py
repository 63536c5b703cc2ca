"""Files that cannot matter are not opened. To be sure, they are taken away before the query runs."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater as hw
from headwater.lake import partitions
from headwater.lakehouse import Lake


@pytest.fixture
def orders(lake: Lake, on_disk: None) -> Lake:
    """Ten files: ids of ten each, and a country for each two files."""
    for i in range(10):
        rows = [{"id": 10 * i + j, "country": "ABCDE"[i // 2], "amount": 1.5 * j} for j in range(10)]
        lake.write("orders", rows, partition_by=["country"])
    return lake


def hide(lake: Lake, keep: str) -> int:
    """Take away all files but those that may match ``keep``; how many stay."""
    table = lake.table("orders")
    from headwater.lake.find import candidate_files, condition

    now = table.snapshot
    wanted = condition(now, keep)
    assert wanted is not None
    stay = {a.path for a in candidate_files(now, wanted.conjuncts())}
    for path in now.files:
        if path not in stay:
            local = now.storage.local_path(partitions.decode_path(path))
            assert local is not None
            Path(local).unlink()
    return len(stay)


@pytest.mark.parametrize(
    ("keep", "query", "files", "answer"),
    [
        ("id = 42", "SELECT amount FROM orders WHERE id = 42", 1, [(3.0,)]),
        ("id = 42", "SELECT amount FROM orders WHERE id = :id", 1, [(3.0,)]),
        ("id BETWEEN 38 AND 41", "SELECT sum(id) FROM orders WHERE id BETWEEN 38 AND 41", 2, [(158,)]),
        ("country = 'C'", "SELECT count(*) FROM orders WHERE country = 'C'", 2, [(20,)]),
        ("country = 'C'", "SELECT count(*) FROM orders WHERE upper(country) = 'C' AND country = 'C'", 2, [(20,)]),
        ("country IN ('A', 'E')", "SELECT count(*) FROM orders WHERE country IN ('A', 'E')", 4, [(40,)]),
        ("id < 5", "SELECT count(*) FROM orders a JOIN orders b ON a.id = b.id WHERE a.id < 5 AND b.id < 5", 1, [(5,)]),
        ("id < 5", "WITH x AS (SELECT * FROM orders) SELECT max(id) FROM x WHERE id < 5", 10, [(4,)]),
        ("id = 99", "SELECT count(*) FROM (SELECT id, amount FROM orders) WHERE id = 99 AND amount > 0", 1, [(1,)]),
    ],
)
def test_only_files_that_may_match_are_opened(
    orders: Lake, keep: str, query: str, files: int, answer: list[tuple[object, ...]]
) -> None:
    parameters = {"id": 42} if ":id" in query else None
    if files < 10:
        assert hide(orders, keep) == files
    assert orders.sql(query, parameters=parameters).to_tuples() == answer


def test_explain_says_what_is_read(orders: Lake) -> None:
    plan = "\n".join(r["plan"] for r in orders.sql("EXPLAIN SELECT amount FROM orders WHERE id = 42").to_pylist())
    assert "1 of 10 files (9 skipped)" in plan
    assert "at most 10 rows" in plan
    assert "2 of 3 columns" in plan


def test_a_file_that_is_gone_is_named(orders: Lake) -> None:
    hide(orders, "id = 42")
    with pytest.raises(hw.NotFoundError) as caught:
        orders.sql("SELECT count(amount) FROM orders").to_arrow()
    assert caught.value.code == "E1105"


def test_a_file_that_is_damaged_is_named(orders: Lake) -> None:
    now = orders.table("orders").snapshot
    path = next(iter(now.files))
    local = now.storage.local_path(partitions.decode_path(path))
    assert local is not None
    Path(local).write_bytes(b"PAR1 is not enough")
    with pytest.raises(hw.CorruptionError) as caught:
        orders.sql("SELECT sum(amount) FROM orders").to_arrow()
    assert caught.value.code == "E5004"
    assert path in str(caught.value)
