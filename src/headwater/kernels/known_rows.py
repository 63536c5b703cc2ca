"""Finding, of rows that were there for a while, the latest that was there at a given moment.

Rows are sorted by their word (key and time), and have been there from ``since`` until before ``until``. From the place
of the last row that may count, a search goes back until it meets one that was there; blocks of 64 rows of which none
was are passed over at once, so a search among rows that came later, or had gone, is short.
"""

# mypy: disable-error-code="arg-type, assignment, call-arg, return-value, unreachable, var-annotated"

from __future__ import annotations

from headwater.kernels.arrays import GivenPositions, Positions
from headwater.kernels.compiled import kernel

__all__ = ["BLOCK", "latest_known", "spans_of_blocks"]

BLOCK = 64


@kernel
def spans_of_blocks(since: GivenPositions, until: GivenPositions, first: Positions, last: Positions) -> None:
    """When the first row of each block came, and when the last one went."""
    for b in range(first.size):
        low = since[b * BLOCK]
        high = until[b * BLOCK]
        for i in range(b * BLOCK + 1, min(since.size, (b + 1) * BLOCK)):
            low = min(low, since[i])
            high = max(high, until[i])
        first[b] = low
        last[b] = high


@kernel
def latest_known(
    words: GivenPositions,
    since: GivenPositions,
    until: GivenPositions,
    first: GivenPositions,
    last: GivenPositions,
    place: GivenPositions,
    base: GivenPositions,
    known: GivenPositions,
    order: GivenPositions,
    content: GivenPositions,
    found: Positions,
    tied: Positions,
) -> None:
    """For each place the row found, and another of the same word and order that says something else; -1 for none.

    ``base`` is the least word of the key. ``order`` and ``content`` are compared only where words are the same; where
    they are empty, nobody asks for ties.
    """
    asks = content.size > 0
    for i in range(place.size):
        at = place[i]
        moment = known[i]
        found[i] = -1
        tied[i] = -1
        while at >= 0 and words[at] >= base[i]:
            if since[at] <= moment < until[at]:
                found[i] = at
                break
            block = at // BLOCK
            if at % BLOCK == BLOCK - 1 and (first[block] > moment or last[block] <= moment):
                at -= BLOCK
            else:
                at -= 1
        if not asks or found[i] < 0:
            continue
        other = at - 1
        while other >= 0 and words[other] == words[at]:
            there = since[other] <= moment < until[other]
            if there and order[other] == order[at] and content[other] != content[at]:
                tied[i] = other
                break
            other -= 1
