"""Shares: which files, or which bytes of them, each task reads.

About as many bytes a task: small files together, large ones in pieces where they can be read so (a task takes the row
groups that begin in its bytes). Little is not cut at all, since a task costs more than it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TypeVar

__all__ = ["IN_MEMORY", "Span", "shares_of"]

IN_MEMORY = 4
"""How many times as large rows are in memory as in Parquet files, about."""
_LEAST_BYTES, _MOST_BYTES, _FEWEST = 2 << 20, 32 << 20, 8

T = TypeVar("T")
Span = tuple[int, int] | None
"""From a byte to before another; None is the whole file."""


def shares_of(files: Iterable[tuple[T, int]], *, whole: bool = False) -> list[list[tuple[T, Span]]]:
    """The share of each task, of files with their sizes; ``whole`` if none can be cut.

    >>> shares_of([("a", 10), ("b", 20)])
    [[('a', None), ('b', None)]]
    >>> [len(share) for share in shares_of([("a", 100 << 20)])]
    [1, 1, 1, 1, 1, 1, 1, 1]
    """
    known = list(files)
    wanted = max(_LEAST_BYTES, min(_MOST_BYTES, sum(size for _, size in known) // _FEWEST))
    shares: list[list[tuple[T, Span]]] = []
    held = 0
    for file, size in known:
        count = 1 if whole else max(1, size // wanted)
        edges = [size * i // count for i in range(count)] + [size + 1]
        for start, end in pairwise(edges):
            if not shares or held + (end - start) // 2 >= wanted:
                shares.append([])
                held = 0
            shares[-1].append((file, None if count == 1 else (start, end)))
            held += end - start
    return shares
