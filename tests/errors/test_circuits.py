"""What a user of circuits reads when something is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.incremental.store import Store
from headwater.lakehouse import Lake

Attempt = Callable[[], Any]
SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.int64())])
ROW = pa.table({"id": [1], "x": [0]})


def circuit(*, key: str | None = None) -> hw.Circuit:
    c = hw.Circuit()
    c.input("orders", SCHEMA, key=key).output("all")
    return c


def case_a_circuit_without_that_input(_: Lake) -> Attempt:
    return lambda: circuit().step(ordrs=ROW)


def case_a_circuit_without_that_output(_: Lake) -> Attempt:
    return lambda: circuit().step(orders=ROW)["al"]


def case_an_input_whose_name_is_taken(_: Lake) -> Attempt:
    c = circuit()
    return lambda: c.input("orders", SCHEMA)


def case_a_transaction_in_a_transaction(_: Lake) -> Attempt:
    c = circuit()

    def attempt() -> None:
        with c.transaction(), c.transaction():
            pass

    return attempt


def case_a_function_that_raises(_: Lake) -> Attempt:
    c = hw.Circuit()

    def enrich(rows: pa.Table) -> pa.Table:
        raise ConnectionError("no route to host")

    c.input("orders", SCHEMA).map(enrich, SCHEMA).output("o")
    return lambda: c.step(orders=ROW)


def case_state_of_another_circuit(lake: Lake) -> Attempt:
    folder = Path(lake.location) / "_circuit"
    with Store(folder) as store:
        circuit().checkpoint(store)
    other = hw.Circuit()
    other.input("orders", SCHEMA).distinct().output("o")

    def attempt() -> None:
        store = Store(folder, read_only=True)
        other.restore(store)

    return attempt


def case_a_recursion_without_end(_: Lake) -> Attempt:
    c = hw.Circuit()
    start = c.input("orders", SCHEMA)
    c.recursive({"n": SCHEMA}, lambda n, start: start.plus(n.select(id="id + 1", x="x")), most=3, start=start)[
        "n"
    ].output("n")
    return lambda: c.step(orders=ROW)


def case_a_delay_in_a_recursion(_: Lake) -> Attempt:
    c = hw.Circuit()
    start = c.input("orders", SCHEMA)
    return lambda: c.recursive({"n": SCHEMA}, lambda n, start: start.plus(n.delay()), start=start)


def case_a_row_that_cannot_be_computed(_: Lake) -> Attempt:
    c = hw.Circuit()
    c.input("orders", SCHEMA).with_columns(y="10 / x").output("o")
    return lambda: c.step(orders=pa.table({"id": [1, 2], "x": [5, 0]}))


def case_inserting_a_key_that_is_there(_: Lake) -> Attempt:
    c = circuit(key="id")
    c.step(orders=ROW)
    return lambda: c.step(orders=hw.Insert(ROW))


def case_deleting_a_row_that_is_not_there(_: Lake) -> Attempt:
    c = circuit(key="id")
    return lambda: c.step(orders=hw.ChangeBatch.from_rows(ROW, weight=-1))


def case_an_aggregate_of_text(_: Lake) -> Attempt:
    c = hw.Circuit()
    t = c.input("t", pa.schema([("s", pa.string())]))
    return lambda: t.over("s").agg(n="summ(s)")


CASES = [f for name, f in list(globals().items()) if name.startswith("case_")]


@pytest.mark.parametrize("case", CASES, ids=lambda f: f.__name__.removeprefix("case_"))
def test_circuits(case: Any, catalogue: Any) -> None:
    catalogue.check(case)
