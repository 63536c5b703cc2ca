"""The range join against all pairs."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from tests.timeseries.cutting import CutAtRandom

from headwater.base.errors import InputError
from headwater.spark.buckets import hash_of
from headwater.timeseries.methods.joins import JoinMethods
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators import range_join
from headwater.timeseries.operators.range_join import RangeJoin
from headwater.timeseries.operators.values import Values
from headwater.timeseries.rows import Rows
from headwater.timeseries.running.here import run_here
from headwater.timeseries.slices import HotKey, Sliced

_ENDS = [-(2**63), 2**63 - 1]


def _table(rng: random.Random, rows: int, name: str) -> pa.Table:
    times = [*range(25)] if rng.random() < 0.8 else [*_ENDS, 0, 3]
    return pa.table(
        {
            "k": pa.array([rng.choice(["a", "a", "b", None]) for _ in range(rows)], pa.string()),
            "t": pa.array([rng.choice(times) for _ in range(rows)], pa.int64()),
            name: pa.array(range(rows), pa.int64()),
        }
    )


def _expected(left: pa.Table, right: pa.Table, node: RangeJoin) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    for a in left.to_pylist():
        met = [
            (a["n"], b["m"])
            for b in right.to_pylist()
            if None not in (a["t"], b["t"])
            and (not node.left_by or (a["k"] is not None and a["k"] == b["k"]))
            and -node.before <= b["t"] - a["t"] <= node.after
        ]
        found += met or ([(a["n"], None)] if node.how == "left" else [])
    return sorted(found, key=str)


def _pairs(found: pa.Table) -> list[tuple[Any, Any]]:
    return sorted(((r["n"], r["m"]) for r in found.to_pylist()), key=str)


@pytest.mark.parametrize("seed", range(60))
def test_equals_all_pairs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(range_join, "_PAIRS", rng.choice([1, 7, 1 << 18]))
    left, right = _table(rng, rng.randint(0, 30), "n"), _table(rng, rng.randint(0, 40), "m")
    by: Any = rng.choice([("k",), ()])
    how: Any = rng.choice(["inner", "left"])
    node = RangeJoin(Values(left), Values(right), "t", "t", by, by, rng.randint(0, 5), rng.randint(0, 5), how)
    wanted = _expected(left, right, node)
    for budget in (1 << 28, 300):
        found = run_here(node, pieces=CutAtRandom(seed), parts=rng.choice([1, 3]), budget_bytes=budget)
        assert found.schema == node.schema
        assert _pairs(found) == wanted
    if not by:
        return
    slicing = node.slicing()
    cuts = tuple(sorted(rng.sample(range(26), 3)))
    hot = (HotKey(int(hash_of([pa.array(["a"])], 1)[0]), cuts),)
    arrived: dict[int, list[list[pa.Table]]] = {}
    for side, (table, s) in enumerate(zip((left, right), slicing, strict=True)):
        place = Sliced(("k",), s.time, 2, hot, s.before, s.after, s.reach)
        for piece in CutAtRandom(seed)(table):
            for bucket, rows in place(piece):
                arrived.setdefault(bucket, [[], []])[side].append(rows)
    tables = [t for a, b in arrived.values() for t in node.kernel()(Rows(a, left.schema), Rows(b, right.schema))]
    assert _pairs(pa.concat_tables([node.schema.empty_table(), *tables])) == wanted


def test_arguments() -> None:
    rows = JoinMethods(Values(pa.table({"t": pa.array([0], pa.timestamp("us")), "v": [1]})), Ordering("t"))
    node = rows.join_range(rows, before="1 s", after="500ms").plan
    assert isinstance(node, RangeJoin)
    assert (node.before, node.after) == (1_000_000, 500_000)
    assert node.schema.names == ["t", "v", "t_right", "v_right"]
    assert "0:00:01 before" in node.line()
    with pytest.raises(InputError, match="before"):
        rows.join_range(rows, before="-1 s", after="2 s")
    with pytest.raises(InputError, match="how"):
        rows.join_range(rows, how="outer")  # type: ignore[arg-type]
