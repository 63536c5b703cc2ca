"""Rows to search in: seeded, with words of very different frequency, nulls and characters beyond ASCII."""

from __future__ import annotations

import random

import pyarrow as pa

WORDS = ["the", "card", "payment", "refund", "was", "lost", "late", "disputed", "café"]
WORDS += ["Zürich", "naïve", "order", "customer", "asked", "again", "42", "e-mail"]
QUERIES = [
    "refund",
    "card AND payment",
    '"was lost"',
    "NOT refund",
    "refu*",
    "author:ann OR disputed",
    "amount:[10 TO 20]",
]


def notes(rows: int, *, seed: int) -> pa.Table:
    """Some notes; ids do not occur for two seeds."""
    rng = random.Random(seed)

    def text(words: int) -> str | None:
        picked = [WORDS[min(int(rng.expovariate(0.3)), len(WORDS) - 1)] for _ in range(words)]
        return None if rng.random() < 0.05 else rng.choice([" ", ", ", ". "]).join(picked)

    return pa.table(
        {
            "id": pa.array([seed * 1_000_000 + n for n in range(rows)], pa.int64()),
            "title": pa.array([text(3) for _ in range(rows)], pa.string()),
            "body": pa.array([text(rng.randrange(1, 30)) for _ in range(rows)], pa.string()),
            "author": pa.array([rng.choice(["ann", "bob", "Eve", None]) for _ in range(rows)], pa.string()),
            "amount": pa.array([rng.randrange(100) for _ in range(rows)], pa.int32()),
        }
    )
