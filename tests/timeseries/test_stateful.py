"""Objects of the user's own along a series."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.timeseries.series_cases import ORDERING, answer, by_series, random_rows

from headwater.base.errors import InputError
from headwater.timeseries.operators.stateful import Stateful
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here

SCHEMA = pa.schema([("series", pa.string()), ("batch", pa.int64()), ("seqs", pa.list_(pa.int64()))])


class Listing:
    """Gives each batch as it comes."""

    def start(self, key: dict[str, Any]) -> dict[str, Any]:
        return {"key": key["s"], "batch": 0}

    def step(self, state: dict[str, Any], batch: pa.Table) -> pa.Table:
        state["batch"] += 1
        row = {"series": state["key"], "batch": state["batch"], "seqs": batch["seq"].to_pylist()}
        return pa.Table.from_pylist([row], SCHEMA)

    def finish(self, state: dict[str, Any]) -> pa.Table:
        return pa.Table.from_pylist([{"series": state["key"], "batch": -state["batch"], "seqs": []}], SCHEMA)


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_batches_are_the_same_however_rows_are_cut(size: int) -> None:
    table = random_rows(size)
    found = answer(Stateful(Values(table), ORDERING, Listing(), SCHEMA, size), by="")
    expected = []
    for (key,), rows in by_series(table).items():
        seqs = [row["seq"] for row in rows]
        batches = [seqs[at : at + size] for at in range(0, len(seqs), size)]
        expected += [{"series": key, "batch": k + 1, "seqs": b} for k, b in enumerate(batches)]
        expected.append({"series": key, "batch": -len(batches), "seqs": []})
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_no_rows() -> None:
    assert run_here(Stateful(Values(random_rows(1).slice(0, 0)), ORDERING, Listing(), SCHEMA)).num_rows == 0


@pytest.mark.parametrize(
    "given", [pa.table({"series": ["a"]}), 5, pa.table({"series": ["a"], "batch": ["x"], "seqs": [[1]]})]
)
def test_rows_that_are_not_what_was_promised(given: Any) -> None:
    class Wrong(Listing):
        def step(self, state: dict[str, Any], batch: pa.Table) -> pa.Table:
            return given

    with pytest.raises(InputError, match=r"Wrong\.step"):
        run_here(Stateful(Values(random_rows(1)), ORDERING, Wrong(), SCHEMA))
