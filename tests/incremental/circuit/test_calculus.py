"""Delay, integrate, differentiate and feedback: the laws of streams."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import headwater as hw
from headwater.base.change import ChangeBatch

SCHEMA = pa.schema([("n", pa.int64())])


def history(seed: int, steps: int = 25) -> list[pa.Table]:
    rng = random.Random(seed)
    found = []
    for _ in range(steps):
        n = rng.randint(0, 4)
        found.append(
            pa.table(
                {
                    "n": pa.array([rng.randrange(5) for _ in range(n)], pa.int64()),
                    "_weight": pa.array([rng.choice([-2, -1, 1, 3]) for _ in range(n)], pa.int64()),
                }
            )
        )
    return found


@pytest.mark.parametrize("seed", range(4))
def test_the_laws(seed: int) -> None:
    c = hw.Circuit()
    t = c.input("t", SCHEMA)
    t.output("t")
    t.delay().output("delayed")
    t.integrate().output("integral")
    t.integrate().differentiate().output("D I")
    t.differentiate().integrate().output("I D")
    t.integrate().minus(t.integrate().delay()).output("I - z I")
    before = total = ChangeBatch.empty(SCHEMA)
    for change in history(seed):
        outputs = c.step(t=change)
        now = ChangeBatch.from_table(change)
        total = (total + now).consolidate()
        assert outputs["delayed"] == before
        assert outputs["integral"] == total
        for name in ("D I", "I D", "I - z I"):
            assert outputs[name] == now
        before = now


def test_linear_operators_commute_with_integration() -> None:
    c = hw.Circuit()
    t = c.input("t", SCHEMA)
    t.filter("n > 1").integrate().output("I f")
    t.integrate().filter("n > 1").output("f I")
    for change in history(9):
        outputs = c.step(t=change)
        assert outputs["I f"] == outputs["f I"]


def test_feedback_is_a_delay_in_a_cycle() -> None:
    c = hw.Circuit()
    loop = c.feedback(SCHEMA)
    rows = c.input("t", SCHEMA).plus(loop.stream.filter("n < 3").select(n="n + 1"))
    loop.connect(rows)
    rows.output("o")
    assert c.step(t=pa.table({"n": [0]}))["o"].to_arrow()["n"].to_pylist() == [0]
    assert [c.step({})["o"].to_arrow()["n"].to_pylist() for _ in range(5)] == [[1], [2], [3], [], []]
    with pytest.raises(hw.InputError, match="connected"):
        loop.connect(rows)
    assert "feedback" in c.explain()


def test_a_stream_of_another_circuit_is_refused() -> None:
    one, other = (hw.Circuit().input("t", SCHEMA) for _ in range(2))
    with pytest.raises(hw.InputError, match="same circuit"):
        one.plus(other)
    with pytest.raises(hw.InputError, match="same circuit"):
        one.join(other, "n")
