"""nearest: exact neighbours, for probes at hand and for streams of them, against all pairs computed with fractions."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.timeseries.relation_cases import everywhere

from headwater.base.errors import HeadwaterError, InputError, NotFoundError, UnsupportedError
from headwater.timeseries.methods.vectors import VectorMethods
from headwater.timeseries.operators.narrow import Filter
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here

METRICS = ["cosine", "dot", "l2"]
TYPES = [pa.list_(pa.float32(), 3), pa.list_(pa.float64()), pa.large_list(pa.float32())]


def vectors(r: random.Random, count: int) -> list[Any]:
    """Small whole numbers, so that there are ties; nulls, zeros and broken ones."""
    made: list[Any] = [[float(r.randint(-2, 2)) for _ in range(3)] for _ in range(count)]
    for i in range(count):
        dice = r.random()
        if dice < 0.05:
            made[i] = None
        elif dice < 0.1:
            made[i][r.randint(0, 2)] = r.choice([math.nan, math.inf, None])
        elif dice < 0.15:
            made[i] = [0.0, 0.0, 0.0]
    return made


def usable(vector: Any, metric: str) -> bool:
    if vector is None or any(x is None or not math.isfinite(x) for x in vector):
        return False
    return metric != "cosine" or any(vector)


def distance(a: list[float], b: list[float], metric: str) -> float:
    x, y = [Fraction(v) for v in a], [Fraction(v) for v in b]
    dot = sum((p * q for p, q in zip(x, y, strict=True)), Fraction(0))
    if metric == "dot":
        return -float(dot)
    if metric == "l2":
        return math.sqrt(sum((p - q) ** 2 for p, q in zip(x, y, strict=True)))
    norms = sum(p * p for p in x) * sum(q * q for q in y)
    return 1.0 - float(dot) / math.sqrt(norms)


def brute(rows: list[Any], probes: list[Any], metric: str, k: int | None, within: float | None) -> set[tuple[int, int]]:
    found = set()
    for probe in probes:
        if not usable(probe["v"], metric):
            continue
        near = []
        for row in rows:
            if usable(row["e"], metric):
                (double,) = in_doubles(np.array([row["e"]]), np.array(probe["v"]), metric)
                assert double == pytest.approx(distance(row["e"], probe["v"], metric), abs=1e-12)
                near.append((double, row["id"]))
        near = sorted(pair for pair in near if within is None or pair[0] <= within)
        found |= {(probe["q"], i) for _, i in near[: k if k is not None else len(near)]}
    return found


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("k", "within"), [(1, None), (4, None), (None, 0.75), (3, 1.0), (500, None)])
def test_neighbours_are_those_of_all_pairs(metric: str, kind: pa.DataType, k: int | None, within: float | None) -> None:
    r = random.Random(f"{metric} {kind} {k}")
    rows = [{"id": i, "e": v} for i, v in enumerate(vectors(r, r.choice([0, 60])))]
    probes = [{"q": i, "v": v} for i, v in enumerate(vectors(r, 9))]
    corpus = pa.Table.from_pylist(rows, schema=pa.schema([("id", pa.int64()), ("e", kind)]))
    asked = pa.Table.from_pylist(probes, schema=pa.schema([("q", pa.int64()), ("v", kind)]))
    expected = brute(rows, probes, metric, k, within)
    stream = VectorMethods(Values(corpus))
    at_hand = stream.nearest(asked, "e", other_column="v", k=k, within=within, metric=metric)
    found = everywhere(at_hand.plan, 1)
    assert {(dict(row)["q"], dict(row)["id"]) for row in found} == expected
    assert sum(found.values()) == len(expected)
    computed = VectorMethods(Filter(Values(asked), "q >= 0"))
    sharded = stream.nearest(computed, "e", other_column="v", k=k, within=within, metric=metric, key="q", shards=3)
    assert sharded.schema.names == at_hand.schema.names
    assert everywhere(sharded.plan, 2) == found


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("scale", [1.0, 1e-25, 1e18, 1e-160, 1e150])
def test_no_neighbour_is_lost_to_rounding(metric: str, scale: float) -> None:
    """Vectors that differ in their last bits, of very large and very small numbers, in every kind of block."""
    random_ = np.random.default_rng(0)
    base = random_.normal(size=24)
    kind = np.float32 if 1e-30 < scale < 1e30 else np.float64
    noise = 2.0**-22 if kind is np.float32 else 2.0**-50
    matrix = ((base + random_.normal(size=(400, 24)) * noise * np.abs(base)) * scale).astype(kind)
    probe = (base * scale).astype(kind)[None]
    item = pa.from_numpy_dtype(kind)
    corpus = pa.table({"id": range(400), "e": pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), 24)})
    asked = pa.table({"e": pa.FixedSizeListArray.from_arrays(pa.array(probe.ravel()), 24)})
    assert corpus.schema.field("e").type.value_type == item
    node = VectorMethods(Values(corpus)).nearest(asked, "e", k=5, metric=metric).plan
    found = [run_here(node, pieces=lambda t, n=n: [t.slice(i, n) for i in range(0, 400, n)]) for n in (400, 7, 90)]  # type: ignore[misc]
    assert found[0].equals(found[1]) and found[0].equals(found[2])
    exact = in_doubles(matrix, probe[0], metric)
    order = sorted(range(400), key=lambda i: (exact[i], i))[:5]
    assert found[0]["id"].to_pylist() == order
    assert found[0]["distance"].to_pylist() == [exact[i] for i in order]


def in_doubles(matrix: Any, probe: Any, metric: str) -> list[float]:
    """The formula for one pair, without any block."""
    a, p = matrix.astype(np.float64), probe.astype(np.float64)
    if metric == "cosine":
        a = a / np.abs(a).max(axis=1, keepdims=True)
        a /= np.sqrt(np.add.reduce(a * a, axis=1))[:, None]
        p = p / np.abs(p).max()
        p /= np.sqrt(np.add.reduce((p * p)[None], axis=1))[0]
    found = []
    for row in a:
        if metric == "l2":
            found.append(float(np.sqrt(np.add.reduce(((p - row) * (p - row))[None], axis=1))[0]))
        else:
            dot = float(np.add.reduce((p * row)[None], axis=1)[0])
            found.append(min(2.0, max(0.0, 1.0 - dot)) if metric == "cosine" else 0.0 - dot)
    return found


def test_ties_are_decided_by_the_other_columns() -> None:
    corpus = pa.table({"name": ["d", None, "b", "b"], "e": [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]})
    asked = pa.table({"v": [[1.0, 1.0]]})
    node = VectorMethods(Values(corpus)).nearest(asked, "e", other_column="v", k=2, metric="l2").plan
    for order in itertools.permutations(range(4)):
        moved = (
            VectorMethods(Values(corpus.take(list(order)))).nearest(asked, "e", other_column="v", k=2, metric="l2").plan
        )
        assert run_here(moved).to_pylist() == run_here(node).to_pylist()
    # Of the two called b the one whose bytes come first: 0.0 before 1.0.
    assert [(row["name"], row["e"]) for row in run_here(node).to_pylist()] == [(None, [0.0, 1.0]), ("b", [0.0, 1.0])]


def test_other_columns_come_along() -> None:
    corpus = pa.table({"id": [1], "e": [[1.0, 0.0]], "tags": [["x"]]})
    asked = pa.table({"id": [7], "e": [[2.0, 0.0]]})
    found = run_here(VectorMethods(Values(corpus)).nearest(asked, "e", k=1).plan)
    assert found.to_pylist() == [
        {"id": 1, "e": [1.0, 0.0], "tags": ["x"], "id_right": 7, "e_right": [2.0, 0.0], "distance": 0.0}
    ]


def test_mistakes() -> None:
    corpus = pa.table({"id": [1], "e": pa.array([[1.0, 0.0]], pa.list_(pa.float64(), 2)), "s": ["a"], "l": [[1]]})
    stream = VectorMethods(Values(corpus))
    asked = pa.table({"e": [[1.0, 2.0]], "q": [1]})
    with pytest.raises(InputError, match="how many rows"):
        stream.nearest(asked, "e")
    with pytest.raises(InputError, match="one of cosine, dot, l2"):
        stream.nearest(asked, "e", k=1, metric="manhattan")
    with pytest.raises(InputError, match="a whole number"):
        stream.nearest(asked, "e", k=0)
    with pytest.raises(InputError, match="a distance"):
        stream.nearest(asked, "e", within=math.nan)
    with pytest.raises(NotFoundError):
        stream.nearest(asked, "x", k=1)
    for name in ("s", "l"):
        with pytest.raises(UnsupportedError):
            stream.nearest(corpus, name, k=1)
    with pytest.raises(InputError, match="vectors of one size"):
        stream.nearest({"e": pa.array([[1.0]], pa.list_(pa.float64(), 1))}, "e", k=1)
    with pytest.raises(InputError, match="suffix"):
        stream.nearest(corpus, "e", k=1, suffix="")
    with pytest.raises(InputError, match="distance"):
        stream.nearest(asked, "e", k=1, distance="id")
    with pytest.raises(InputError, match="tell the rows of the other stream apart"):
        stream.nearest(VectorMethods(Filter(Values(asked), "q > 0")), "e", k=1)
    twice = pa.concat_tables([asked, asked])
    unclear = stream.nearest(VectorMethods(Filter(Values(twice), "q > 0")), "e", k=1, key="q")
    with pytest.raises(InputError, match="tell the rows of the other stream apart"):
        run_here(unclear.plan)
    with pytest.raises(HeadwaterError, match="as the others have"):
        run_here(stream.nearest({"e": [[1.0, 2.0, 3.0]]}, "e", k=1).plan)
    with pytest.raises(HeadwaterError, match="as the others have"):
        run_here(stream.nearest({"e": [[1.0, 2.0], [1.0]]}, "e", k=1).plan)
