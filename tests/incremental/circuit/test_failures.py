"""A step that fails changes nothing: the error names the row and the operator, and the next step goes on."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

import headwater as hw

SCHEMA = pa.schema([("k", pa.string()), ("v", pa.int64())])


@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"k": ["ok", "zero"], "v": [5, 0]}, "division by zero"),
        ({"k": ["ok", "x"], "v": [5, 2**63 - 1]}, "overflow"),
    ],
)
def test_a_failing_row(shards: int, bad: dict[str, list[object]], says: str) -> None:
    c = hw.Circuit(shards=shards)
    t = c.input("t", SCHEMA)
    kept = t.with_columns(inverse="1 / v", next="v + 1")
    kept.output("rows")
    t.group_by("k").agg(n="count(*)", total="sum(v)", hi="max(v)").output("counts")
    t.join(t.rename(v="w"), "k").output("pairs")
    c.step(t=pa.table({"k": ["a"], "v": [1]}))
    with pytest.raises(hw.ExpressionError) as raised:
        c.step(t=pa.table(bad, schema=SCHEMA))
    assert says in str(raised.value)
    assert f"'k': '{bad['k'][1]}'" in str(raised.value)
    again = c.step(t=pa.table({"k": ["a", "ok"], "v": [2, 5]}))
    reference = hw.Circuit()
    r = reference.input("t", SCHEMA)
    r.with_columns(inverse="1 / v", next="v + 1").output("rows")
    r.group_by("k").agg(n="count(*)", total="sum(v)", hi="max(v)").output("counts")
    r.join(r.rename(v="w"), "k").output("pairs")
    reference.step(t=pa.table({"k": ["a"], "v": [1]}))
    wanted = reference.step(t=pa.table({"k": ["a", "ok"], "v": [2, 5]}))
    for name in wanted:
        assert again[name] == wanted[name]


def test_a_sum_that_does_not_fit() -> None:
    c = hw.Circuit()
    c.input("t", SCHEMA).group_by("k").agg(total="sum(v)").output("o")
    c.step(t=pa.table({"k": ["a"], "v": [2**63 - 1]}))
    with pytest.raises(hw.ExpressionError, match="sum") as raised:
        c.step(t=pa.table({"k": ["b", "a", "c"], "v": [1, 1, 1]}))
    assert "{'k': 'a'}" in (raised.value.where or "")
    assert c.step(t=pa.table({"k": ["a"], "v": [-1]}))["o"].to_arrow()["total"].to_pylist() in (
        [2**63 - 1, 2**63 - 2],
        [2**63 - 2, 2**63 - 1],
    )


def test_a_decimal_sum_that_does_not_fit_names_its_key() -> None:
    c = hw.Circuit()
    schema = pa.schema([("k", pa.string()), ("d", pa.decimal128(38, 0))])
    c.input("t", schema).group_by("k").agg(n="count(*)", total="sum(d)").output("o")
    most = Decimal(10**38 - 1)
    with pytest.raises(hw.ExpressionError, match="does not fit") as raised:
        c.step(t=pa.table({"k": ["b", "a", "a"], "d": [most, most, most]}, schema=schema))
    assert "{'k': 'a'}" in (raised.value.where or "")


def test_an_output_whose_weights_do_not_fit() -> None:
    c = hw.Circuit()
    t = c.input("t", SCHEMA)
    t.distinct().output("d")
    t.plus(t).output("twice")
    row = {"k": ["a"], "v": [1]}
    with pytest.raises(hw.ConstraintError, match="E2102"):
        c.step(t=pa.table({**row, "_weight": [2**62]}))
    assert c.step(t=pa.table(row))["d"].to_arrow()["_weight"].to_pylist() == [1]


def test_a_python_function_that_raises() -> None:
    c = hw.Circuit()
    calls = iter([True, False, False])

    def shout(rows: pa.Table) -> pa.Table:
        if next(calls):
            raise RuntimeError("no network")
        return rows

    c.input("t", SCHEMA).map(shout, SCHEMA).distinct().output("o")
    with pytest.raises(hw.InputError, match="shout raised RuntimeError: no network"):
        c.step(t=pa.table({"k": ["a"], "v": [1]}))
    assert len(c.step(t=pa.table({"k": ["a"], "v": [1]}))["o"].to_arrow()) == 1


def test_a_python_function_that_gives_other_rows() -> None:
    c = hw.Circuit()
    c.input("t", SCHEMA).map(lambda rows: rows.slice(1), SCHEMA).output("o")
    c.input("u", SCHEMA).map(lambda rows: rows.select(["k"]), SCHEMA).output("p")
    with pytest.raises(hw.InputError, match="gave 0 rows for 1"):
        c.step(t=pa.table({"k": ["a"], "v": [1]}))
    with pytest.raises(hw.InputError, match="gave rows that are not"):
        c.step(u=pa.table({"k": ["a"], "v": [1]}))
