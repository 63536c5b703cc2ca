"""Scores are BM25 over the whole table, and do not depend on how it is cut into splits.

What is counted: N is the number of rows in the splits that are in use, n those of them that have the term, and the average
length is over the same rows. Rows that were deleted since their split was written still count, until the split is rewritten
without them; a split of which no row is alive does not.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from headwater.lakehouse import Lake
from headwater.search.index import SearchIndex

K1, B = 1.2, 0.75
WORDS = [f"w{n}" for n in range(40)]


def quantised(length: int) -> int:
    """A length as a byte can say it: up to 39 exactly, then with four significant bits (Lucene's SmallFloat.intToByte4)."""
    if length < 40:
        return length
    shift = max(0, (length - 24).bit_length() - 4)
    return 24 + ((length - 24) >> shift << shift)


def scores(texts: Sequence[str], query: Sequence[str]) -> list[float]:
    """BM25 of each text."""
    documents = [text.split() for text in texts]
    average = sum(map(len, documents)) / len(documents)
    found = []
    for words in documents:
        counts, total = Counter(words), 0.0
        norm = K1 * (1 - B + B * quantised(len(words)) / average)
        for term in query:
            n = sum(term in other for other in documents)
            if counts[term]:
                total += (
                    math.log(1 + (len(documents) - n + 0.5) / (n + 0.5))
                    * (K1 + 1)
                    * counts[term]
                    / (counts[term] + norm)
                )
        found.append(total)
    return found


def random_texts(seed: int, rows: int) -> list[str]:
    rng = random.Random(seed)
    weights = [1 / (n + 1) for n in range(len(WORDS))]
    return [" ".join(rng.choices(WORDS, weights, k=rng.choice([1, 3, 20, 39, 40, 60, 150, 700]))) for _ in range(rows)]


def make(lake: Lake, texts: Sequence[str], *, files: int, target_rows: int) -> SearchIndex:
    step = -(-len(texts) // files)
    for begin in range(0, len(texts), step):
        ids = range(begin, min(begin + step, len(texts)))
        lake.write("t", pa.table({"id": pa.array(ids, pa.int64()), "body": [texts[n] for n in ids]}), mode="append")
    return lake.index("ix", "t", text="body", target_rows=target_rows, refresh=True)


def found_scores(index: SearchIndex, query: str) -> dict[int, float]:
    found = index.search(query, columns=["id"], k=None)
    return dict(zip((row["id"] for row in found), found.scores, strict=True))


def check(index: SearchIndex, texts: Sequence[str], alive: Sequence[int] | None = None) -> None:
    for query in (["w0"], ["w3", "w7"], ["w30"], ["w1", "w2", "w39"]):
        wanted = scores(texts, query)
        found = found_scores(index, " ".join(query))
        assert set(found) == {n for n in (range(len(texts)) if alive is None else alive) if wanted[n]}
        for number, score in found.items():
            assert score == pytest.approx(wanted[number], rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(("files", "target_rows"), [(1, 10**6), (9, 10**6), (9, 7), (30, 1)])
def test_scores_are_bm25_however_splits_are_cut(files: int, target_rows: int, lake: Lake) -> None:
    texts = random_texts(1, 60)
    index = make(lake, texts, files=files, target_rows=target_rows)
    check(index, texts)
    index.merge()
    check(index, texts)


def test_what_no_split_covers_counts_too(lake: Lake) -> None:
    texts = random_texts(2, 40)
    index = make(lake, texts[:25], files=3, target_rows=100)
    lake.write("t", pa.table({"id": pa.array(range(25, 40), pa.int64()), "body": texts[25:]}), mode="append")
    assert index.coverage < 1
    check(index, texts)


def test_deleted_rows_count_until_their_split_is_rewritten(lake: Lake) -> None:
    texts = random_texts(3, 40)
    index = make(lake, texts, files=4, target_rows=10**6)
    table, alive = lake.table("t"), [n for n in range(40) if n % 3]
    table.delete("id % 3 = 0")
    check(index, texts, alive)
    index.refresh()
    check(index, texts, alive)
    table.optimize(target_bytes=1 << 30)
    index.refresh()
    index.vacuum(retention_hours=0)
    left = [texts[n] for n in alive]
    for query in ("w0", "w5"):
        wanted = scores(left, [query])
        found = found_scores(index, query)
        assert found == pytest.approx({n: s for n, s in zip(alive, wanted, strict=True) if s}, rel=1e-6)


def test_boosts_multiply_and_several_fields_add_up(lake: Lake) -> None:
    rows: dict[str, Any] = {"id": [0, 1, 2], "a": ["w0 w1", "w1", "w2"], "b": ["w1", "w0", "w0 w0"]}
    lake.write("t", pa.table(rows))
    index = lake.index("ix", "t", text=["a", "b"], refresh=True)
    one, two = (scores(rows[c], ["w0"]) for c in "ab")
    assert found_scores(index, "w0") == pytest.approx({n: one[n] + two[n] for n in range(3)}, rel=1e-6)
    assert found_scores(index, "a:w0^2.5 b:w0") == pytest.approx({n: 2.5 * one[n] + two[n] for n in range(3)}, rel=1e-6)
    assert found_scores(index, "a:w*") == {0: 1.0, 1: 1.0, 2: 1.0}, "patterns match without a score"
