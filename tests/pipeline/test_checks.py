"""Checks: the rows that break them, against a plain count, through changes; and what a violation holds back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.base.errors import InputError
from headwater.pipeline.checks import Check, evaluate, parse_checks

TESTS: dict[str, list[Any]] = {
    "id": ["unique", "not_null"],
    "status": [{"accepted_values": {"values": ["open", "it's paid"]}}],
    "customer": [
        {"relationships": {"to": "ref('customers')", "field": "id"}},
        {"not_null": {"severity": "warn", "where": "amount > 5"}},
    ],
}


def checks() -> list[Check]:
    own = [one for column, tests in TESTS.items() for one in parse_checks("orders", tests, column=column)]
    return [*own, *parse_checks("orders", [{"sql": "SELECT * FROM orders WHERE amount < 0;"}])]


def counts(rows: list[dict[str, Any]], customers: set[int]) -> list[int]:
    """The same by hand, in the order of the checks."""
    ids = [row["id"] for row in rows if row["id"] is not None]
    return [
        sum(ids.count(one) > 1 for one in set(ids)),
        sum(row["id"] is None for row in rows),
        sum(row["status"] is not None and row["status"] not in ("open", "it's paid") for row in rows),
        sum(row["customer"] is not None and row["customer"] not in customers for row in rows),
        sum(row["customer"] is None and (row["amount"] or 0) > 5 for row in rows),
        sum((row["amount"] or 0) < 0 for row in rows),
    ]


@pytest.mark.long
def test_violations_through_changes(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    customers = lake.write("customers", [{"id": 1}, {"id": 2}])
    row = {"id": 1, "status": "open", "customer": 1, "amount": 10}
    orders = lake.write("orders", [row, {**row, "id": 2, "status": "it's paid"}])
    changes: list[Any] = [
        lambda: None,
        lambda: orders.append([{**row, "id": 2, "status": "lost"}, {**row, "id": None, "customer": 9}]),
        lambda: orders.append(
            [{"id": 7, "status": None, "customer": None, "amount": 6}, {**row, "id": 8, "amount": -1}]
        ),
        lambda: customers.append([{"id": 9}]),
        lambda: orders.delete("id = 2"),
        lambda: customers.delete("id = 1"),
        lambda: orders.update({"id": "coalesce(id, 100)", "customer": "9", "amount": "1", "status": "'open'"}),
    ]
    for number, change in enumerate(changes):
        change()
        found = evaluate(lake, checks())
        want = counts(orders.to_pylist(), {r["id"] for r in customers.to_pylist()})
        assert [one.violations for one in found] == want, number
        assert [one.error for one in found] == [None] * len(want)
        assert [len(one.rows) for one in found] == want
        assert found.ok == (not any(n for n, one in zip(want, found, strict=True) if one.check.severity == "error"))
        if number:  # kept from one time to the next, at the price of the change
            assert {one.mode for one in found} <= {"incremental", "noop"}
    lake.close()


def test_what_is_held_back(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    orders = lake.write("orders", [{"id": 1, "amount": 10}])
    lake.view("spend", "SELECT id, sum(amount) AS total FROM orders GROUP BY id")
    served = lake.online("served", "spend", key="id")
    lake.write("others", [{"id": 1}])
    lake.view("apart", "SELECT id FROM others")
    lake.refresh("served", "apart")
    unique = Check(kind="unique", node="orders", column="id")
    assert evaluate(lake, [unique]).blocked == ()
    orders.append([{"id": 1, "amount": 1}])
    found = evaluate(lake, [unique])
    assert not found.ok and found.blocked == ("spend", "served")
    # Whoever refreshes leaves these out, and what is served stays as it was.
    lake.refresh(*[name for name in lake.artefacts() if name not in found.blocked], cascade=False)
    assert served.fetch([1]).to_pylist() == [{"total": 10}] and str(lake.online("served").frontier) == "spend@1"
    orders.delete("amount = 1")
    found = evaluate(lake, [unique])
    assert found.ok and found.blocked == ()
    lake.refresh()
    assert served.fetch([1]).to_pylist() == [{"total": 10}]
    warned = evaluate(lake, [Check(kind="sql", node="orders", query="SELECT * FROM orders", severity="warn")])
    assert warned.ok and not warned.blocked and warned.all[0].violations == 1
    broken = evaluate(lake, [Check(kind="not_null", node="orders", column="nothing")])
    assert not broken.ok and broken.all[0].error is not None and "spend" in broken.blocked
    lake.close()


@pytest.mark.parametrize(
    "tests",
    [
        ["uniqe"],
        [{"unique": {"wher": "x"}}],
        [{"accepted_values": {}}],
        [{"relationships": {"to": "customers"}}],
        [{"not_null": {"severity": "fatal"}}],
        [3],
        [{"unique": {}, "not_null": {}}],
    ],
)
def test_what_is_no_check(tests: list[Any]) -> None:
    with pytest.raises(InputError):
        parse_checks("orders", tests, column="id")
