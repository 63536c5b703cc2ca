"""Samples: where to look into files, so that rows from all over them are seen though few are read.

Files are mostly written in the order of time, so the first rows of a file are no picture of it. Pieces are spread
evenly over the bytes of all files, and in each piece rows are taken at even distances. The work is bounded: so many
pieces, so many batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa

from headwater.timeseries.sources.sharing import Span

__all__ = ["pieces_of", "thinned"]

_PIECES = 16
_BATCHES = 128
_BATCH_ROWS = 131_072

T = TypeVar("T")
Batch = TypeVar("Batch", pa.RecordBatch, pa.Table)


def pieces_of(files: Sequence[tuple[T, int]]) -> list[tuple[T, Span]]:
    """Files, or bytes of them, spread evenly over all, of files with their sizes.

    >>> pieces_of([("a", 10), ("b", 10)])[:2]
    [('a', (0, 1)), ('a', (1, 2))]
    >>> len(pieces_of([(n, 10) for n in range(1_000)]))
    16
    """
    if len(files) > _PIECES:
        return [(files[len(files) * i // _PIECES][0], None) for i in range(_PIECES)]
    total = max(1, sum(size for _, size in files))
    found: list[tuple[T, Span]] = []
    for file, size in files:
        count = max(1, round(_PIECES * size / total))
        edges = [size * i // count for i in range(count)] + [size + 1]
        found += [(file, span) for span in pairwise(edges)]
    return found


def thinned(pieces: Sequence[Iterable[Batch]], rows: int, known: int | None) -> Iterator[Batch]:
    """About so many rows of ``known`` ones: of each piece every n-th row, as far as it is read."""
    most = _BATCHES * _BATCH_ROWS
    step = max(1, min(most, most if known is None else known) // rows)
    for piece in pieces:
        for batch in islice(piece, max(1, _BATCHES // len(pieces))):
            yield batch.take(pa.array(np.arange(0, batch.num_rows, step)))
