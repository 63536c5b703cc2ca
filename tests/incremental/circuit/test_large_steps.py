"""Steps so large that their rows are sorted on another thread: joins of both sides, steps that fail, and what comes after."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import headwater as hw
from headwater.incremental.sorting import WORTH_A_THREAD
from headwater.testing import assert_same_rows

_ROWS = 2 * WORTH_A_THREAD
_LEFT = pa.schema([("k", pa.int64()), ("v", pa.int64())])
_RIGHT = pa.schema([("k", pa.int64()), ("name", pa.string())])


def _left(rng: np.random.Generator, rows: int = _ROWS) -> pa.Table:
    k = pa.array(rng.integers(0, 5_000, rows), mask=rng.random(rows) < 0.01)
    return pa.table({"k": k, "v": rng.integers(1, 50, rows)})


def _right(rng: np.random.Generator, rows: int = _ROWS) -> pa.Table:
    k = rng.integers(0, 5_000, rows)
    return pa.table({"k": k, "name": pa.array([f"a name that is long enough {i % 7}" for i in k])}, schema=_RIGHT)


def _circuit(shards: int) -> hw.Circuit:
    circuit = hw.Circuit(shards=shards)
    left, right = circuit.input("l", _LEFT), circuit.input("r", _RIGHT)
    joined = left.join(right, "k").select("k", "name", share="1000 div v")
    joined.group_by("name").agg(n="count(*)", least="min(share)", most="max(share)").output("found")
    return circuit


def _expected(left: pa.Table, right: pa.Table) -> pa.Table:
    with duckdb.connect() as connection:
        connection.register("l", left)
        connection.register("r", right)
        return connection.sql(
            "SELECT name, count(*) AS n, min(1000 // v) AS least, max(1000 // v) AS most FROM l JOIN r USING (k) GROUP BY name"
        ).to_arrow_table()


@pytest.mark.parametrize("shards", [1, 2])
def test_both_sides_change_in_one_step(shards: int) -> None:
    rng = np.random.default_rng(3)
    circuit, found = _circuit(shards), hw.ChangeBatch.empty(_circuit(1).outputs["found"].layout.schema)
    lefts, rights = [_left(rng), _left(rng)], [_right(rng), _right(rng)]
    for left, right in zip(lefts, rights, strict=True):
        found = found + circuit.step(l=left, r=right)["found"]
    found = found + circuit.step(l=hw.ChangeBatch.from_rows(lefts[0], weight=-1))["found"]
    assert_same_rows(found.consolidate().inserted(), _expected(lefts[1], pa.concat_tables(rights)))


def test_a_step_that_fails_leaves_nothing_behind() -> None:
    rng = np.random.default_rng(4)
    circuit = _circuit(1)
    left, right = _left(rng), _right(rng, 5_000)
    first = circuit.step(r=right)["found"] + circuit.step(l=left)["found"]
    bad = pa.concat_tables([_left(rng), pa.table({"k": right["k"][:1], "v": pa.array([0])})])
    with pytest.raises(hw.ExpressionError):
        circuit.step(l=bad)
    assert circuit.step()["found"].is_empty
    more = _left(rng)
    found = (first + circuit.step(l=more)["found"]).consolidate()
    assert_same_rows(found.inserted(), _expected(pa.concat_tables([left, more]), right))


def test_a_sum_that_does_not_fit_leaves_nothing_behind_of_values_that_were_sorted_meanwhile() -> None:
    rng = np.random.default_rng(5)
    circuit = hw.Circuit()
    rows = circuit.input("l", _LEFT)
    rows.group_by("k").agg(total="sum(v)", least="min(v)", most="max(v)").output("found")
    first, large = _left(rng), _left(rng, 40_000)
    found = circuit.step(l=first)["found"]
    most = pa.table({"k": pa.array([7, 7]), "v": pa.array([2**63 - 1, 2**63 - 1])})
    with pytest.raises(hw.ExpressionError, match="does not fit"):
        circuit.step(l=pa.concat_tables([large, most]))
    found = (found + circuit.step(l=large)["found"]).consolidate()
    with duckdb.connect() as connection:
        connection.register("l", pa.concat_tables([first, large]))
        expected = connection.sql(
            "SELECT k, sum(v)::BIGINT AS total, min(v) AS least, max(v) AS most FROM l GROUP BY k"
        ).to_arrow_table()
    assert_same_rows(found.inserted(), expected)
