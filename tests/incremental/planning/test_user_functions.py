"""Functions of the user's own in views: computed for the rows that change, and refused where they would not give the same again."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headwater.base.errors import UnsupportedError
from headwater.incremental.circuit.circuit import Circuit
from headwater.incremental.planning import build, check
from headwater.sql.functions.user import UserFunction
from headwater.sql.query import parse_query

SCHEMA = pa.schema([("k", pa.int32()), ("s", pa.string())])
CALLS: list[int] = []


def _initial(text: str | None) -> str | None:
    CALLS.append(1)
    return text[:1].upper() if text else None


INITIAL = UserFunction("initial", _initial, (pa.string(),), pa.string())
TWICE = UserFunction("twice", lambda x: pc.add(x, x), (pa.int32(),), pa.int32(), vectorised=True)
DICE = UserFunction("dice", lambda: 4, (), pa.int32(), deterministic=False)


def test_the_rows_that_change_are_computed() -> None:
    text = "SELECT initial(s) AS i, sum(twice(k)) AS total FROM t GROUP BY initial(s)"
    plan = parse_query(text, lambda *_: SCHEMA, user_functions=[INITIAL, TWICE])
    check(plan, text)
    circuit = Circuit()
    build(circuit, plan, {"t": circuit.input("t", SCHEMA)}).output("view")
    circuit.step(t=pa.table({"k": [1, 2, None], "s": ["ann", "abe", None]}, schema=SCHEMA))
    CALLS.clear()
    gone = pa.table({"k": pa.array([1], pa.int32()), "s": ["ann"], "_weight": [-1]})
    found = circuit.step(t=gone)["view"].to_arrow().to_pylist()
    assert [(r["i"], r["total"], r["_weight"]) for r in found] == [("A", 4, 1), ("A", 6, -1)]
    assert len(CALLS) == 1


def test_what_gives_another_value_each_time_is_refused() -> None:
    text = "SELECT k, dice() AS d FROM t"
    plan = parse_query(text, lambda *_: SCHEMA, user_functions=[DICE])
    with pytest.raises(UnsupportedError) as caught:
        check(plan, text)
    assert caught.value.position == text.index("dice")
