"""What goes into a circuit: rows, changes and commands, and what is refused."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.testing.circuits import Integral

SCHEMA = pa.schema([("x", pa.int64()), ("id", pa.string()), ("s", pa.string())])


def table(c: hw.Circuit) -> None:
    c.input("t", SCHEMA, key="id").output("t")


def rows_of(change: hw.ChangeBatch) -> list[tuple[Any, ...]]:
    return sorted(tuple(r.values()) for r in change.to_arrow().to_pylist())


@pytest.mark.parametrize("shards", [1, 3])
def test_commands_equal_a_dictionary(shards: int) -> None:
    """Random commands, several in a step, against a dict that does the same one after the other."""
    rng = random.Random(shards)
    c = hw.Circuit(shards=shards)
    table(c)
    held: dict[str, tuple[Any, Any]] = {}
    integral = Integral()
    for _ in range(150):
        commands: list[Any] = []
        for _ in range(rng.randint(0, 3)):
            keys = [rng.choice(["a", "b", "c", "a key of more than twelve bytes"]) for _ in range(rng.randint(1, 4))]
            values = [rng.choice([None, 1, 2]) for _ in keys]
            texts = [rng.choice([None, "short", "a text that is longer than a slot"]) for _ in keys]
            verb = rng.choice(["upsert", "delete", "patch", "insert"])
            if verb == "upsert":
                commands.append(
                    hw.Upsert(
                        pa.table({"id": keys, "x": pa.array(values, pa.int64()), "s": pa.array(texts, pa.string())})
                    )
                )
                held.update({k: (v, s) for k, v, s in zip(keys, values, texts, strict=True)})
            elif verb == "delete":
                commands.append(hw.Delete(pa.table({"id": keys})))
                for k in keys:
                    held.pop(k, None)
            elif verb == "patch":
                commands.append(hw.Patch(pa.table({"id": keys, "x": pa.array(values, pa.int64())})))
                held |= {k: (v, held[k][1]) for k, v in dict(zip(keys, values, strict=True)).items() if k in held}
            elif keys[0] not in held:
                commands.append(hw.Insert(pa.table({"id": keys[:1], "x": [7], "s": ["new"]})))
                held[keys[0]] = (7, "new")
        integral.add(c.step(t=commands or pa.table({"x": [], "id": [], "s": []}, schema=SCHEMA))["t"].to_arrow())
        assert dict(integral.rows) == {(x, k, s): 1 for k, (x, s) in held.items()}


def test_a_key_that_is_there_cannot_be_inserted() -> None:
    c = hw.Circuit()
    table(c)
    c.step(t=pa.table({"x": [1], "id": ["a"], "s": ["s"]}))
    with pytest.raises(hw.ConstraintError, match="E2103"):
        c.step(t=hw.Insert(pa.table({"x": [2], "id": ["a"], "s": ["s"]})))
    with pytest.raises(hw.ConstraintError, match="E2103"):
        c.step(t=hw.Insert(pa.table({"x": [2, 3], "id": ["b", "b"], "s": ["s", "s"]})))
    assert rows_of(c.step(t=hw.Delete(pa.table({"id": ["a", "b"]})))["t"]) == [(1, "a", "s", -1)]


def test_a_change_of_a_table_has_to_fit_it() -> None:
    c = hw.Circuit()
    table(c)
    row = pa.table({"x": [1], "id": ["a"], "s": ["s"]})
    c.step(t=hw.ChangeBatch.from_rows(row))
    with pytest.raises(hw.ConstraintError, match="E2103"):
        c.step(t=hw.ChangeBatch.from_rows(pa.table({"x": [2], "id": ["a"], "s": ["s"]})))
    with pytest.raises(hw.ConstraintError, match="E2104"):
        c.step(t=hw.ChangeBatch.from_rows(pa.table({"x": [9], "id": ["a"], "s": ["s"]}), weight=-1))
    new = pa.table({"x": [2], "id": ["a"], "s": ["s"]})
    assert rows_of(c.step(t=hw.ChangeBatch.diff(row, new))["t"]) == [(1, "a", "s", -1), (2, "a", "s", 1)]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"q": pa.table({"x": [1]})}, "E1501"),
        ({"u": pa.table({"y": [1]})}, "E1203"),
        ({"u": pa.table({"x": [1], "more": [1]})}, "E1002"),
        ({"u": pa.table({"x": ["text"]})}, "E1201"),
        ({"u": hw.Upsert(pa.table({"x": [1]}))}, "E1001"),
        ({"t": pa.table({"x": [1], "s": ["a"]})}, "E1203"),
        ({"t": pa.table({"x": [1], "id": pa.nulls(1, pa.string()), "s": ["a"]})}, "E2001"),
        ({"t": hw.Patch(pa.table({"id": ["a"], "z": [1]}))}, "E1002"),
    ],
)
def test_input_that_does_not_fit_is_refused_and_nothing_changes(given: dict[str, Any], code: str) -> None:
    c = hw.Circuit()
    table(c)
    c.input("u", pa.schema([pa.field("x", pa.int64(), nullable=False)])).output("u")
    with pytest.raises(hw.HeadwaterError) as raised:
        c.step(given)
    assert raised.value.code == code
    assert raised.value.hint
    assert not len(c.step(u=pa.table({"x": [5]}, schema=pa.schema([("x", pa.int64())])))["t"].to_arrow())


def test_names_are_taken_once() -> None:
    c = hw.Circuit()
    stream = c.input("t", SCHEMA)
    stream.output("o")
    with pytest.raises(hw.InputError, match="E1502"):
        c.input("t", SCHEMA)
    with pytest.raises(hw.InputError, match="E1502"):
        stream.output("o")
    with pytest.raises(hw.SchemaError):
        c.input("w", pa.schema([("_weight", pa.int64())]))


def test_a_transaction_is_one_step() -> None:
    c = hw.Circuit()
    t = c.input("t", pa.schema([("k", pa.int64())]))
    t.group_by("k").agg(n="count(*)").output("counts")
    with c.transaction() as transaction:
        assert not len(c.step(t=pa.table({"k": [1, 2]}))["counts"].to_arrow())
        c.step(t=pa.table({"k": [1], "_weight": [-1]}))
        with pytest.raises(hw.InputError, match="E1503"), c.transaction():
            pass
    assert transaction.outputs is not None
    assert rows_of(transaction.outputs["counts"]) == [(2, 1, 1)]

    def failing() -> None:
        with c.transaction():
            c.step(t=pa.table({"k": [3]}))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert not len(c.step({})["counts"].to_arrow())


def test_outputs_come_in_chunks() -> None:
    c = hw.Circuit()
    c.input("t", pa.schema([("k", pa.int64())])).output("o")
    outputs = c.step(t=pa.table({"k": list(range(1000))}))
    chunks = list(outputs.chunks("o", rows=300))
    assert [b.num_rows for b in chunks] == [300, 300, 300, 100]
    assert sorted(x for b in chunks for x in b["k"].to_pylist()) == list(range(1000))
    with pytest.raises(hw.NotFoundError, match="E1501"):
        outputs["p"]
