"""Chains of linear nodes in one pass are what their members are one after the other.

The reference is the same circuit with every stream on the way as an output, which keeps its members apart.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.incremental.circuit.stream import Stream
from headwater.incremental.dataflow.fingerprint import fingerprints

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        pa.field("k", pa.int32(), nullable=False),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("d", pa.decimal128(30, 2)),
    ]
)
WORDS = ("", "a", "bb", "a text of more than twelve bytes", "another long text, just as long")


def rows(rng: random.Random, n: int) -> pa.Table:
    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.15 else value

    columns = {
        "id": [maybe(rng.randrange(-5, 20)) for _ in range(n)],
        "k": [rng.randrange(4) for _ in range(n)],
        "x": [maybe(rng.choice([0.0, -0.0, 1.5, float("nan"), -3.25])) for _ in range(n)],
        "s": [maybe(rng.choice(WORDS)) for _ in range(n)],
        "d": [maybe(rng.randrange(-(10**20), 10**20)) for _ in range(n)],
    }
    table = pa.table({name: pa.array(columns[name], SCHEMA.field(name).type) for name in SCHEMA.names}, schema=SCHEMA)
    return table.append_column("_weight", pa.array([rng.choice([1, 1, 2, -1]) for _ in range(n)], pa.int64()))


def longer(stream: Any, rng: random.Random) -> Any:
    """The stream with one more linear operator behind it."""
    names = stream.columns
    numbers = [c for c in names if stream.schema.field(c).type in (pa.int64(), pa.int32())]
    texts = [c for c in names if stream.schema.field(c).type == pa.string()]
    ways = ["negate", "rename", "shuffle"]
    ways += ["limits", "condition", "made", "dropped"] if numbers else []
    ways += ["text", "text filter"] if texts else []
    way = rng.choice(ways)
    if way == "negate":
        return stream.negate()
    if way == "rename":
        c = rng.choice(names)
        return stream.rename(**{c: f"{c}_{rng.randrange(1000)}"})
    if way == "shuffle":
        some = rng.sample(names, rng.randrange(1, len(names) + 1))
        return stream.select(*some)
    if way == "limits":
        return stream.filter(f"{rng.choice(numbers)} > {rng.randrange(-3, 3)}")
    if way == "condition":
        return stream.filter(f"{rng.choice(numbers)} % 3 != 1")
    if way == "made":
        return stream.with_columns(**{f"n{rng.randrange(1000)}": f"{rng.choice(numbers)} * 2 - 1"})
    if way == "dropped":  # computed and not read
        c = rng.choice(names)
        return stream.with_columns(unread=f"abs({rng.choice(numbers)})").drop("unread").rename(**{c: c})
    c = rng.choice(texts)
    if way == "text filter":
        return stream.filter(f"length({c}) > {rng.randrange(0, 4)} OR {c} IS NULL")
    return stream.with_columns(**{f"t{rng.randrange(1000)}": f"concat({c}, '-and a suffix')"})


def circuit(seed: int, *, apart: bool, tail: str, shards: int = 1) -> hw.Circuit:
    rng = random.Random(seed)
    c = hw.Circuit(shards=shards)
    stream = c.input("t", SCHEMA)
    for _ in range(rng.randrange(2, 7)):
        stream = longer(stream, rng)
    if tail == "join":
        key = stream.columns[0]
        stream = stream.join(stream.select(key).distinct(), [(key, key)], suffix="2")
    elif tail == "ordered":
        stream = stream.over(order=f"{stream.columns[0]} desc").rank(place="rank")
    elif tail == "padded":
        other = c.input("u", pa.schema([stream.schema.field(0).with_name("other"), ("more", pa.int64())]))
        stream = stream.join(other, [(stream.columns[0], "other")], how="left").filter("more IS NULL").negate()
    stream.output("out")
    for vertex in c.vertices if apart else ():
        Stream(c, vertex).output(f"after {vertex.id}")
    return c


def counted(change: hw.ChangeBatch) -> Counter[str]:
    found: Counter[str] = Counter()
    for row in change.to_arrow().to_pylist():
        weight = row.pop("_weight")
        found[repr([0.0 if v == 0 and isinstance(v, float) else v for v in row.values()])] += weight
    return Counter({k: w for k, w in found.items() if w})


@pytest.mark.parametrize("tail", ["nothing", "join", "ordered", "padded"])
@pytest.mark.parametrize("seed", range(12))
def test_a_chain_is_what_its_members_are(seed: int, tail: str) -> None:
    rng = random.Random(seed)
    shards = rng.choice([1, 1, 3])
    fused, apart = (circuit(seed, apart=a, tail=tail, shards=shards) for a in (False, True))
    assert any(e.chains for e in fused.schedule().entries)
    assert not any(e.chains for e in apart.schedule().entries)
    assert fingerprints(fused) == fingerprints(apart)  # state has the same names
    for _ in range(4):
        change = rows(rng, rng.choice([0, 1, 30]))
        assert counted(fused.step(t=change)["out"]) == counted(apart.step(t=change)["out"])
    for a, b in zip(fused.vertices, apart.vertices, strict=True):
        assert (a.figures.rows_in, a.figures.rows_out) == (b.figures.rows_in, b.figures.rows_out), a.node


def test_what_is_read_twice_or_given_out_ends_a_chain() -> None:
    c = hw.Circuit()
    t = c.input("t", SCHEMA)
    shared = t.filter("id > 1").select("id", "k")
    shared.negate().filter("k > 0").output("one")
    shared.rename(id="i").filter("i < 9").output("two")
    given = t.filter("k > 1")
    given.output("three")
    given.negate().rename(k="kk").output("four")
    members = [[v.node.label for v in e.members] for e in c.schedule().entries if e.members]
    assert members == [["filter", "select"], ["negate", "filter"], ["rename", "filter"], ["negate", "rename"]]


def test_user_code_is_no_member() -> None:
    c = hw.Circuit()
    t = c.input("t", pa.schema([("x", pa.int64())]))
    mapped = t.filter("x > 1").with_columns(y="x + 1").map(lambda table: table, pa.schema([("x", pa.int64())]))
    mapped.filter("x < 9").negate().output("o")
    members = [[v.node.label for v in e.members] for e in c.schedule().entries if e.members]
    assert members == [["filter", "with columns"], ["filter", "negate"]]
    assert counted(c.step(t=pa.table({"x": [1, 5, 20]}))["o"]) == Counter({"[5]": -1})


def test_an_error_names_the_member_and_the_row_it_saw() -> None:
    c = hw.Circuit()
    t = c.input("t", pa.schema([("x", pa.int64())]))
    t.filter("x >= 0").with_columns(y="x - 3").filter("x < 9").with_columns(z="12 div y").output("o")
    assert len(c.schedule().entries) == 2
    with pytest.raises(hw.ExpressionError) as caught:
        c.step(t=pa.table({"x": [-3, 4, 3, 100]}))
    assert caught.value.where == "with columns x, y, 12 div y as z, row {'x': 3, 'y': 0}"
    assert counted(c.step(t=pa.table({"x": [4]}))["o"]) == Counter({"[4, 1, 12]": 1})


def test_what_can_fail_is_computed_though_nobody_reads_it() -> None:
    c = hw.Circuit()
    t = c.input("t", pa.schema([("x", pa.int64())]))
    t.with_columns(y="1 div x").drop("y").output("o")
    with pytest.raises(hw.ExpressionError):
        c.step(t=pa.table({"x": [0]}))


def test_members_are_drawn_in_a_box_and_keep_their_sql() -> None:
    c = hw.Circuit()
    c.input("t", SCHEMA).filter("id > 1").select("id").negate().output("o")
    c.step(t=rows(random.Random(1), 20))
    drawn = {n.label: n for n in c.graph().nodes}
    assert drawn["filter"].group == drawn["select"].group == drawn["negate"].group == "in one pass (3)"
    assert drawn["filter"].sql == "id > 1" and drawn["source"].group is None
    profile = {r["operator"]: r for r in c.profile().to_pylist()}
    assert profile["filter"]["rows_out"] == profile["select"]["rows_in"] < 20
    assert profile["filter"]["chain"] == profile["negate"]["chain"] == 3 and profile["source"]["chain"] is None
    assert "one pass" in c.explain()
