"""Words and embeddings together: what exact arithmetic over the rows that are alive gives."""

from __future__ import annotations

import math
import random
from typing import Any

import pyarrow as pa
import pytest

from headwater.base.errors import HeadwaterError
from headwater.lakehouse import Lake

_SIZE = 4
Row = dict[str, Any]


def _vector(rng: random.Random) -> list[float] | None:
    kind = rng.random()
    if kind < 0.1:
        return None
    if kind < 0.2:
        return rng.choice([[], [1.0], [0.0] * _SIZE, [float("nan")] * _SIZE, [1.0] * (_SIZE + 1), [1e300] * _SIZE])
    return [rng.choice([-1.0, 0.0, 0.5, rng.uniform(-1, 1)]) for _ in range(_SIZE)]


def _rows(rng: random.Random, first: int, count: int) -> list[Row]:
    words = ["card", "lost", "refund", "paid"]
    return [
        {"id": n, "body": " ".join(rng.choices(words, k=rng.randint(1, 6))), "n": n % 5, "v": _vector(rng)}
        for n in range(first, first + count)
    ]


_SCHEMA = pa.schema([("id", pa.int64()), ("body", pa.string()), ("n", pa.int64()), ("v", pa.list_(pa.float32()))])


def _similarity(one: list[float] | None, sought: list[float]) -> float | None:
    if one is None or len(one) != len(sought):
        return None
    norm = math.sqrt(sum(x * x for x in one))
    if not norm or not math.isfinite(norm):
        return None
    found = sum(x * y for x, y in zip(one, sought, strict=True)) / norm / math.sqrt(sum(y * y for y in sought))
    return found if math.isfinite(found) else None


def _fused(rows: list[Row], words: list[int], sought: list[float]) -> dict[int, float]:
    """The scores by the definition of reciprocal rank fusion."""
    near = [(-s, row["id"]) for row in rows if (s := _similarity(row["v"], sought)) is not None]
    scores: dict[int, float] = {}
    for ranking in (words, [number for _, number in sorted(near)]):
        for rank, number in enumerate(ranking, start=1):
            scores[number] = scores.get(number, 0) + 1 / (60 + rank)
    return scores


@pytest.mark.parametrize("where", [None, "n > 1", "contains(body, 'paid') OR n = 0"])
@pytest.mark.parametrize("seed", range(4))
def test_scores_are_those_of_the_definition(seed: int, where: str | None, lake: Lake) -> None:
    rng = random.Random(seed)
    for begin in (0, 40, 60):
        lake.write("t", pa.Table.from_pylist(_rows(rng, begin, 40 if not begin else 20), _SCHEMA), mode="append")
    index = lake.index("ix", "t", text="body", refresh=True)
    lake.table("t").delete("id % 7 = 3")
    lake.table("t").append(pa.Table.from_pylist(_rows(rng, 200, 10), _SCHEMA))
    rows = lake.table("t").to_arrow(where=where).to_pylist()
    sought = [rng.uniform(-1, 1) for _ in range(_SIZE)]
    for query in ("card lost", "refund AND paid", "*", "absent"):
        words = [row["id"] for row in index.search(query, columns=["id"], k=None, filter=where)]
        wanted = _fused(rows, words, sought)
        found = index.search(query, vector=sought, columns=["id"], k=None, filter=where).to_pylist(scores=True)
        # Rows that are equally near, but for the last digit of a float, may have each other's rank.
        assert {row["id"] for row in found} == set(wanted)
        assert sorted(row["_score"] for row in found) == pytest.approx(sorted(wanted.values()), rel=0.01)
        off = [row["id"] for row in found if row["_score"] != pytest.approx(wanted[row["id"]], rel=1e-9)]
        assert len(off) <= len(found) // 4, off
        pages = [
            row
            for begin in range(0, len(found) + 7, 7)
            for row in index.search(query, vector=sought, columns=["id"], k=7, offset=begin, filter=where)
        ]
        assert [row["id"] for row in pages] == [row["id"] for row in found], "pages fit together"
        assert index.search(query, vector=sought, k=3, filter=where).total == len(wanted)


def test_a_row_that_is_near_and_has_the_word_comes_first(lake: Lake) -> None:
    rows = [{"id": n, "body": "card" if n in (3, 5) else "other", "n": 0, "v": [1.0, n / 10]} for n in range(8)]
    lake.write("t", rows)
    index = lake.index("ix", "t", text="body", refresh=True)
    best = index.search("card", vector=[1.0, 0.52], columns=["id"], k=2)
    assert [row["id"] for row in best] == [5, 3]
    lake.table("t").delete("id = 5")
    assert [row["id"] for row in index.search("card", vector=[1.0, 0.52], columns=["id"], k=1)] == [3]


def test_which_column_and_which_vector(lake: Lake) -> None:
    lake.write("t", [{"id": 1, "body": "a", "v": [1.0, 0.0], "w": [0.0, 1.0], "tags": ["x"]}, {"id": 2, "body": "a", "v": [0.0, 1.0], "w": [1.0, 0.0], "tags": []}])  # fmt: skip
    index = lake.index("ix", "t", text="body", refresh=True)
    for column, first in (("v", 1), ("W", 2)):
        found = index.search("absent", vector=[1, 0], vector_column=column, columns=["id"], k=1)
        assert [row["id"] for row in found] == [first]
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"vector": [1, 0]}, "v, w"),
        ({"vector": [1, 0], "vector_column": "tags"}, "tags"),
        ({"vector": [1, 0], "vector_column": "nosuch"}, "nosuch"),
        ({"vector": [0, 0], "vector_column": "v"}, "not all zero"),
        ({"vector": [], "vector_column": "v"}, "not all zero"),
        ({"vector": [float("nan"), 1], "vector_column": "v"}, "not all zero"),
        ({"vector": "text", "vector_column": "v"}, "a list of numbers"),
        ({"vector": [1, 0], "vector_column": "v", "order_by": "id"}, "order_by"),
        ({"vector": [1, 0], "vector_column": "v", "fuse": "sum"}, "rrf"),
    ]
    for options, words in wrong:
        with pytest.raises(HeadwaterError, match=words):
            index.search("a", **options)
    assert len(index.search("absent", vector=[1, 0, 0], vector_column="v")) == 0, "of another length"
