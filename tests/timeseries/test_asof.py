"""The as-of join against a search through all rows."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from tests.timeseries.cutting import CutAtRandom

from headwater.base.errors import InputError
from headwater.timeseries.methods.joins import JoinMethods
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here

Row = dict[str, Any]
_MOMENT = pa.timestamp("us", "UTC")
_FAR = 2**62


def _expected(
    left: list[Row],
    right: list[Row],
    direction: str,
    strict: bool,
    tolerance: int | None,
    by: tuple[str, ...],
    number: Any,
) -> list[tuple[Any, ...]]:
    found = []
    for row in left:
        best: tuple[Any, ...] | None = None
        match: Row = {}
        for known in right:
            if any(row[k] is None or row[k] != known[k] for k in by):
                continue
            away = number(known["t"]) - number(row["t"])
            if (strict and away == 0) or (tolerance is not None and abs(away) > tolerance):
                continue
            if (direction == "backward" and away > 0) or (direction == "forward" and away < 0):
                continue
            rank: tuple[Any, ...] = (away, known["n"]) if direction == "backward" else (-away, -known["n"])
            if (
                direction == "nearest"
            ):  # of equally near ones the earlier; at one time, the last before and the first after
                rank = (-abs(away), away <= 0, known["n"] if away <= 0 else -known["n"])
            if best is None or rank > best:
                best, match = rank, known
        found.append((row["id"], match.get("v"), match.get("t"), match.get("n")))
    return found


def _drawn(rng: random.Random, rows: int, times: list[Any], keys: list[Any]) -> list[Row]:
    return [
        {
            "k": rng.choice(keys),
            "j": rng.randint(0, 1),
            "t": rng.choice(times),
            "n": n,
            "v": rng.choice([None, rng.random()]),
        }
        for n in range(rows)
    ]


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
def test_equals_a_search(direction: Any, seed: int) -> None:
    rng = random.Random(f"{direction} {seed}")
    kind = rng.choice([pa.int64(), pa.int32(), _MOMENT, pa.timestamp("us"), pa.date32()])
    wide = rng.random() < 0.2 and kind == pa.int64()
    numbers = [*range(12)] if not wide else [-_FAR, -_FAR + 1, 0, 5, _FAR]
    moments = pa.array(numbers, kind if not pa.types.is_date32(kind) else pa.int32()).cast(kind).to_pylist()
    whole = dict(zip(moments, numbers, strict=True))
    keys: list[Any] = rng.choice([["a", "b", "ü", None], ["a"], [f"k{i}" for i in range(50)]])
    by = rng.choice([("k",), ("k", "j"), ()])
    left = [{**row, "id": i} for i, row in enumerate(_drawn(rng, rng.randint(0, 30), moments, keys))]
    right = _drawn(rng, rng.randint(0, 40), moments, keys)
    schema = pa.schema([("k", pa.string()), ("j", pa.int32()), ("t", kind), ("n", pa.int64()), ("v", pa.float64())])
    # The rows come in no order, with columns of any type beside them.
    extra = pa.array([[{"x": i}] for i in range(len(right))], pa.list_(pa.struct([("x", pa.int64())])))
    known = pa.Table.from_pylist(right, schema).append_column("extra", extra)
    known = known.take(pa.array(rng.sample(range(len(right)), len(right)), pa.int64()))
    asked = pa.Table.from_pylist(left, schema.append(pa.field("id", pa.int64()))).drop_columns(["n", "v"])
    strict, tolerance = rng.random() < 0.3, rng.choice([None, None, 0, 2])
    ours = JoinMethods(Values(asked), Ordering("t", by)).join_asof(
        JoinMethods(Values(known), Ordering("t", by, ("n",))),
        direction=direction,
        strict=strict,
        tolerance=tolerance if not pa.types.is_timestamp(kind) or tolerance is None else f"{tolerance} us",
    )
    wanted = _expected(left, right, direction, strict, tolerance, by, whole.__getitem__)
    for budget in (1 << 28, 200):
        cut = CutAtRandom(seed)
        found = run_here(ours.plan, pieces=cut, parts=rng.choice([1, 3]), budget_bytes=budget)
        assert found.schema == ours.schema
        rows = [(r["id"], r["v"], r["t_right"], r["n"]) for r in found.to_pylist()]
        assert sorted(rows, key=str) == sorted(wanted, key=str)
        for row in found.to_pylist():
            assert row["extra"] == (None if row["n"] is None else [{"x": row["n"]}])


def _stream(rows: dict[str, Any], **ordering: Any) -> JoinMethods:
    return JoinMethods(Values(pa.table(rows)), Ordering("t", **ordering))


def test_names_and_inner() -> None:
    trades = _stream({"sym": ["a", "b"], "t": [5, 5], "bid": [1, 2]}, by=("sym",))
    quotes = _stream({"symbol": ["a"], "t": [4], "bid": [9]}, by=("symbol",))
    joined = trades.join_asof(quotes, how="inner")
    assert joined.columns == ["sym", "t", "bid", "t_right", "bid_right"]
    assert run_here(joined.plan).to_pylist() == [{"sym": "a", "t": 5, "bid": 1, "t_right": 4, "bid_right": 9}]
    named = trades.join_asof(quotes, by={"sym": "symbol"}, suffix="_q")
    assert named.columns[-1] == "bid_q"


def test_ties_that_matter_are_refused() -> None:
    trades = _stream({"s": ["a"], "t": [5]}, by=("s",))
    tied = {"s": ["a", "a", "a"], "t": [4, 4, 9], "bid": [1, 2, 3]}
    with pytest.raises(InputError, match="two rows at 4 differ in `bid`") as refused:
        run_here(trades.join_asof(_stream(tied, by=("s",))).plan)
    assert refused.value.code == "E1021"
    assert refused.value.where == "s = 'a'"
    # The same rows are fine if nobody asks for that time, or if nothing that is read differs.
    run_here(trades.join_asof(_stream(tied, by=("s",)), direction="forward").plan)
    run_here(trades.join_asof(_stream({**tied, "bid": [2, 2, 3]}, by=("s",))).plan)
    found = run_here(trades.join_asof(_stream(tied, by=("s",), tiebreak=("bid",))).plan)
    assert found["bid"].to_pylist() == [2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"direction": "back"}, "direction"),
        ({"how": "outer"}, "how"),
        ({"tolerance": -1}, "tolerance"),
        ({"by": {"s": "t"}}, "by"),
        ({"on": ("t", "x")}, "on"),
    ],
)
def test_bad_arguments(arguments: Any, said: str) -> None:
    trades = _stream({"s": ["a"], "t": [5]}, by=("s",))
    quotes = _stream({"s": ["a"], "t": [5], "x": [0.5]}, by=("s",))
    with pytest.raises(InputError, match=f"`{said}`|{said}"):
        trades.join_asof(quotes, **arguments)
