"""Wrong kinds of things are typed errors where they are written, and leave the circuit as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.base.errors import HeadwaterError

SCHEMA = pa.schema([("k", pa.int64()), ("x", pa.int64())])
Wrong = Callable[[hw.Circuit, Any, Any], object]

WRONG: dict[str, Wrong] = {
    "filter by nothing": lambda c, t, u: t.filter(None),
    "select a number": lambda c, t, u: t.select(5),
    "with_columns of a number": lambda c, t, u: t.with_columns(y=5),
    "group by a list": lambda c, t, u: t.group_by(["k"]),
    "group by twice": lambda c, t, u: t.group_by("k", "k"),
    "plus a number": lambda c, t, u: t.plus(5),
    "join a name": lambda c, t, u: t.join("u", "k"),
    "join on a number": lambda c, t, u: t.join(u, 5),
    "star join one": lambda c, t, u: t.star_join(u, "k"),
    "star join on pairs": lambda c, t, u: t.star_join([u], [("k", "k")]),
    "a stream of another circuit": lambda c, t, u: t.plus(hw.Circuit().input("t", SCHEMA)),
    "over twice": lambda c, t, u: t.over("k", "k", order="x"),
    "an order that is none": lambda c, t, u: t.over("k", order="x sideways"),
    "lag by a text": lambda c, t, u: t.over("k", order="x").lag("x", "a", name="y"),
    "lag by a half": lambda c, t, u: t.over("k", order="x").lag("x", 1.5, name="y"),
    "lag by too much": lambda c, t, u: t.over("k", order="x").lag("x", 2**70, name="y"),
    "lead by a text": lambda c, t, u: t.over("k", order="x").lead("x", "a", name="y"),
    "lag under a taken name": lambda c, t, u: t.over("k", order="x").lag("x", name="x"),
    "lag with a default of another type": lambda c, t, u: t.over("k", order="x").lag("x", name="y", default="abc"),
    "the first a": lambda c, t, u: t.over("k", order="x").top("a"),
    "the first of too many": lambda c, t, u: t.over("k", order="x").top(2**70),
    "the first by nothing known": lambda c, t, u: t.over("k", order="x").top(2, by="foo"),
    "ntile of too many": lambda c, t, u: t.over("k", order="x").rank(n="ntile(99999999999999999999)"),
    "rank with a number": lambda c, t, u: t.over("k", order="x").rank(n="rank(4)"),
    "a frame of one number": lambda c, t, u: t.over("k", order="x").agg(rows=3, n="sum(x)"),
    "a sum with a number": lambda c, t, u: t.over("k", order="x").agg(rows=(-1, 0), n="sum(x, 3)"),
    "a text without a name": lambda c, t, u: t.group_by("k").agg("count(*)"),
    "a subquery as an aggregate": lambda c, t, u: t.group_by("k").agg(n="(select 1)"),
    "an aggregate under the key's name": lambda c, t, u: t.group_by("k").agg(k="count(*)"),
    "a column like the weight": lambda c, t, u: t.with_columns(_weight="x"),
    "rename to the weight": lambda c, t, u: t.rename(x="_weight"),
    "an aggregate like the weight": lambda c, t, u: t.group_by("k").agg(_weight="count(*)"),
    "windows twice": lambda c, t, u: t.window("x", 5).window("x", 5),
    "sessions twice": lambda c, t, u: t.session("x", 5).session("x", 5),
    "as-of upwards": lambda c, t, u: t.join_asof(u, "x", by="k", direction="up"),
    "as-of in full": lambda c, t, u: t.join_asof(u, "x", by="k", how="full"),
    "as-of with unknown ties": lambda c, t, u: t.join_asof(u, "x", by="k", ties="zz"),
    "a watermark in the future": lambda c, t, u: t.watermark("x", -5),
    "no schema": lambda c, t, u: c.input("z", None),
    "a schema as a list": lambda c, t, u: c.input("z", [("a", pa.int64())]),
    "a key twice": lambda c, t, u: c.input("z", SCHEMA, key=["k", "k"]),
    "shards as text": lambda c, t, u: hw.Circuit(shards="2"),  # type: ignore[arg-type]
    "half a shard": lambda c, t, u: hw.Circuit(shards=2.5),  # type: ignore[arg-type]
    "a step of a text": lambda c, t, u: c.step("t"),  # type: ignore[arg-type]
    "restore from a path": lambda c, t, u: c.restore("path"),  # type: ignore[arg-type]
    "checkpoint to a path": lambda c, t, u: c.checkpoint("path"),  # type: ignore[arg-type]
    "a recursion of nothing": lambda c, t, u: c.recursive({"p": SCHEMA}, lambda p: None),  # type: ignore[arg-type,return-value]
    "a recursion of x rounds": lambda c, t, u: c.recursive({"p": SCHEMA}, lambda p: p, most="x"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("what", WRONG)
def test_it_is_a_typed_error(what: str) -> None:
    circuit = hw.Circuit()
    t, u = circuit.input("t", SCHEMA), circuit.input("u", SCHEMA)
    with pytest.raises(HeadwaterError) as caught:
        WRONG[what](circuit, t, u)
    assert caught.value.code and caught.value.hint
    t.output("t")
    assert circuit.step(t=pa.table({"k": [1], "x": [2]}))["t"].table.num_rows == 1


@pytest.mark.parametrize("given", [None, [1], pa.table({"y": [1]})])
def test_a_function_that_gives_something_else(given: object) -> None:
    circuit = hw.Circuit()
    t = circuit.input("t", SCHEMA)
    t.map(lambda rows: given, SCHEMA).output("map")
    with pytest.raises(HeadwaterError):
        circuit.step(t=pa.table({"k": [1], "x": [2]}))
    circuit = hw.Circuit()
    t = circuit.input("t", SCHEMA)
    t.flat_map(lambda rows: given, SCHEMA).output("map")  # type: ignore[arg-type,return-value]
    with pytest.raises(HeadwaterError):
        circuit.step(t=pa.table({"k": [1], "x": [2]}))


def test_nothing_is_added_to_a_circuit_that_has_run() -> None:
    circuit = hw.Circuit()
    t = circuit.input("t", SCHEMA)
    t.output("t")
    circuit.step(t=pa.table({"k": [1], "x": [2]}))
    with pytest.raises(hw.InputError, match="E1506"):
        t.group_by("k").agg(n="count(*)")
    with pytest.raises(hw.InputError, match="E1506"):
        t.output("again")


def test_orders_say_where_nulls_are_and_names_may_be_quoted() -> None:
    circuit = hw.Circuit()
    t = circuit.input("t", pa.schema([("a b", pa.int64())]))
    t.over(order="`a b` desc nulls first").top(1).output("first")
    t.over(order=hw.Order("a b")).top(1).output("other")
    found = circuit.step(t=pa.table({"a b": [1, None, 3]}))
    assert found["first"].to_arrow()["a b"].to_pylist() == [None]
    assert circuit.step(t=pa.table({"a b": [None], "_weight": [-1]}))["other"].to_arrow()["a b"].to_pylist() == [
        None,
        1,
    ]


def test_chunks_have_rows() -> None:
    circuit = hw.Circuit()
    circuit.input("t", SCHEMA).output("t")
    found = circuit.step(t=pa.table({"k": [1, 2, 3], "x": [2, 2, 2]}))
    assert [b.num_rows for b in found.chunks("t", 2)] == [2, 1]
    with pytest.raises(hw.InputError):
        found.chunks("t", 0)


def test_frames_know_the_names_that_spark_has() -> None:
    circuit = hw.Circuit()
    t = circuit.input("t", SCHEMA).over(order="k")
    names = {
        "stddev": "stddev_samp",
        "variance": "var_samp",
        "mean": "avg",
        "first": "first_value",
        "last": "last_value",
    }
    t.agg((-1, 0), None, **{n: f"{n}(x)" for n in names}).output("short")
    t.agg((-1, 0), None, **{n: f"{long}(x)" for n, long in names.items()}).output("long")
    found = circuit.step(t=pa.table({"k": [1, 2, 3], "x": [2, 5, 1]}))
    assert found["short"].to_arrow().equals(found["long"].to_arrow())
