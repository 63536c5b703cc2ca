"""As-of joins that skip nulls: for each column the nearest row with a value, against a search and polars."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from tests.timeseries.cutting import CutAtRandom

import headwater as hw
from headwater.base.errors import InputError
from headwater.spark.buckets import hash_of
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.asof import AsOf
from headwater.timeseries.operators.values import Values
from headwater.timeseries.rows import Rows
from headwater.timeseries.running import stages
from headwater.timeseries.running.here import run_here
from headwater.timeseries.slices import HotKey, Sliced
from headwater.timeseries.stream import Stream

Row = dict[str, Any]
_VALUES = ("a", "b", "full", "empty", "list")
_DIRECTIONS = ["backward", "forward", "nearest"]


def _tables(rng: random.Random, most: int = 40) -> tuple[pa.Table, pa.Table]:
    keys, times = ["x", "x", "x", "y", None], range(14)
    left = [{"k": rng.choice(keys), "t": rng.choice(times), "id": i} for i in range(rng.randint(0, most))]
    right = [
        {
            "k": rng.choice(keys),
            "t": rng.choice(times),
            "n": n,
            "a": rng.choice([None, None, n]),
            "b": rng.choice([None, f"b{n}"]),
            "full": n,
            "empty": None,
            "list": rng.choice([None, [n, None]]),
        }
        for n in range(rng.randint(0, most))
    ]
    rng.shuffle(right)
    fields = [("k", pa.string()), ("t", pa.int64())]
    schema = pa.schema(
        [
            *fields,
            ("n", pa.int64()),
            ("a", pa.int64()),
            ("b", pa.string()),
            ("full", pa.int64()),
            ("empty", pa.float64()),
            ("list", pa.list_(pa.int64())),
        ]
    )
    return pa.Table.from_pylist(left, pa.schema([*fields, ("id", pa.int64())])), pa.Table.from_pylist(right, schema)


def _nearest(row: Row, right: list[Row], node: AsOf, column: str | None) -> Row | None:
    """The nearest row, of those with a value in the column."""
    best: tuple[tuple[Any, ...], Row] | None = None
    for known in right:
        if node.left_by and (row["k"] is None or row["k"] != known["k"]):
            continue
        if column is not None and known[column] is None:
            continue
        away = known["t"] - row["t"]
        if (node.strict and away == 0) or (node.tolerance is not None and abs(away) > node.tolerance):
            continue
        if (node.direction == "backward" and away > 0) or (node.direction == "forward" and away < 0):
            continue
        rank: tuple[Any, ...] = (away, known["n"]) if node.direction == "backward" else (-away, -known["n"])
        if node.direction == "nearest":
            rank = (-abs(away), away <= 0, known["n"] if away <= 0 else -known["n"])
        if best is None or rank > best[0]:
            best = rank, known
    return None if best is None else best[1]


def _expected(left: pa.Table, right: pa.Table, node: AsOf) -> list[Row]:
    found, rows = [], right.to_pylist()
    for row in left.to_pylist():
        if node.how == "inner" and _nearest(row, rows, node, None) is None:
            continue
        made = dict(row)
        for name, column in node.taken.items():
            met = _nearest(row, rows, node, None if column in ("t", "n", "full") else column)
            made[name] = None if met is None else met[column]
        found.append(made)
    return found


def _node(rng: random.Random, direction: Any, left: pa.Table, right: pa.Table) -> AsOf:
    by = rng.choice([("k",), ("k",), ()])
    return AsOf(
        *(Values(left), Values(right), "t", "t", by, by, ("n",), direction),
        tolerance=rng.choice([None, None, 0, 3]),
        strict=rng.random() < 0.3,
        how=rng.choice(["left", "inner"]),
        skip_nulls=True,
    )


def _sorted(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row["id"])


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("direction", _DIRECTIONS)
def test_equals_a_search_however_rows_are_cut(direction: str, seed: int) -> None:
    rng = random.Random(f"{direction} {seed}")
    left, right = _tables(rng)
    node = _node(rng, direction, left, right)
    wanted = _expected(left, right, node)
    for budget in (1 << 28, 2_000, 150):
        found = run_here(node, pieces=CutAtRandom(seed), parts=rng.choice([1, 3]), budget_bytes=budget)
        assert found.schema == node.schema
        assert _sorted(found.to_pylist()) == wanted


@pytest.mark.parametrize("seed", range(20))
def test_hot_keys_carry_the_last_value_of_each_column(seed: int) -> None:
    rng = random.Random(seed)
    left, right = _tables(rng, 60)
    node = _node(rng, rng.choice(_DIRECTIONS), left, right)
    keys = [hash_of([pa.array(["x"])], 1)[0]] if node.left_by else [hash_of([], 1)[0]]
    hot = tuple(HotKey(int(key), tuple(sorted(rng.sample(range(-1, 16), rng.randint(1, 4))))) for key in keys)
    slicing, cut = node.slicing(), CutAtRandom(seed)
    arrived: dict[int, list[list[pa.Table]]] = {}
    for side, (table, s, by) in enumerate(zip((left, right), slicing, node.keys(), strict=True)):
        place = Sliced(by, s.time, 2 if by else 1, hot, s.before, s.after, values=s.values)
        for piece in cut(table):
            for bucket, rows in place(piece):
                arrived.setdefault(bucket, [[], []])[side].append(rows)
    found: list[Row] = []
    for lefts, rights in arrived.values():
        for table in node.kernel()(Rows(lefts, left.schema), Rows(rights, right.schema)):
            found += table.to_pylist()
    assert _sorted(found) == _expected(left, right, node)


def test_equals_polars() -> None:
    """polars has no such option: the same by forward filling each column along its series first."""
    rng = random.Random(5)
    left, right = _tables(rng, 400)
    left, right = (t.filter(pa.compute.is_valid(t["k"])) for t in (left, right))
    filled = pl.from_arrow(right)
    assert isinstance(filled, pl.DataFrame)
    columns = ["a", "b", "full"]
    filled = filled.sort("k", "t", "n").with_columns(pl.col(columns).forward_fill().over("k")).sort("t", "n")
    asked = pl.from_arrow(left)
    assert isinstance(asked, pl.DataFrame)
    wanted = asked.sort("t", "id").join_asof(filled, on="t", by="k", check_sortedness=False).sort("id")
    node = AsOf(Values(left), Values(right), "t", "t", ("k",), ("k",), ("n",), skip_nulls=True)
    found = pl.from_arrow(run_here(node))
    assert isinstance(found, pl.DataFrame)
    assert found.sort("id").select(columns).equals(wanted.select(columns))


def test_ties_are_looked_at_for_each_column() -> None:
    left = Stream(Values(pa.table({"t": [9]})), Ordering("t"))
    tied = pa.table({"t": [4, 4], "a": pa.array([1, None], pa.int64()), "b": pa.array([7, 7], pa.int64())})
    right = Stream(Values(tied), Ordering("t"))
    with pytest.raises(InputError, match="two rows at 4 differ in `a`"):
        run_here(left.join_asof(right).plan)
    # Of the two rows only one has a value, so there is nothing to decide.
    assert run_here(left.join_asof(right, skip_nulls=True).plan)["a"].to_pylist() == [1]
    differs = Stream(Values(tied.set_column(1, "a", pa.array([1, 2]))), Ordering("t"))
    for budget in (1 << 20, 8):
        with pytest.raises(InputError, match="two rows at 4 differ in `a`"):
            run_here(left.join_asof(differs, skip_nulls=True).plan, budget_bytes=budget)


def test_a_tie_is_seen_wherever_chunks_end() -> None:
    for before in range(60, 100):
        times = [*range(before), 200, 200]
        right = pa.table({"t": times, "v": range(len(times))})
        node = AsOf(Values(pa.table({"t": [150]})), Values(right), "t", "t", (), (), direction="forward")
        with pytest.raises(InputError, match="two rows at 200 differ in `v`"):
            run_here(node, pieces=lambda t: [t.slice(i, 70) for i in range(0, t.num_rows, 70)], budget_bytes=8)


def test_arguments() -> None:
    stream = Stream(Values(pa.table({"t": [9]})), Ordering("t"))
    with pytest.raises(InputError, match="`skip_nulls`"):
        stream.join_asof(stream, skip_nulls="yes")  # type: ignore[arg-type]
    assert "skipping nulls" in stream.join_asof(stream, skip_nulls=True).plan.line()


def test_on_spark(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(2)
    left, right = _tables(rng, 500)
    lake = hw.connect(tmp_path / "lake", spark=spark)
    for name, rows in (("left", left), ("right", right)):
        lake.write(name, rows.slice(0, rows.num_rows // 2))
        lake.write(name, rows.slice(rows.num_rows // 2))
    asked, known = lake.stream("left", time="t", by="k"), lake.stream("right", time="t", by="k", tiebreak="n")
    usual = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "4")
    try:
        for given in (stages._GIVEN_BYTES, 0):
            monkeypatch.setattr(stages, "_GIVEN_BYTES", given)
            monkeypatch.setattr(stages, "_SMALL_BYTES", 1)
            monkeypatch.setattr(stages, "_SLICED_ROWS", 50)
            joined = asked.join_asof(known, tolerance=3, direction="nearest", skip_nulls=True)
            if not given:
                assert "cut by time" in joined.explain()
            node = joined.plan
            assert isinstance(node, AsOf)
            assert _sorted(joined.collect().to_pylist()) == _sorted(_expected(left, right, node))
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", usual)
