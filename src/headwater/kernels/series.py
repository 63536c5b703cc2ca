"""Along a series: sums, extremes and averages that go from row to row.

Rows are sorted by series and time, and ``starts`` says where each series begins. What goes on beyond the last row is
handed over in a small ``state`` array: of the series that is open at the end. Sums are rounded in the order of the
rows, as Spark rounds them.
"""

# mypy: disable-error-code="arg-type, assignment, call-arg, return-value, unreachable, var-annotated"

from __future__ import annotations

import math

import numpy as np

from headwater.kernels.arrays import Doubles, Flags, GivenDoubles, GivenPositions, Positions
from headwater.kernels.compiled import inlined, kernel

__all__ = ["decayed", "running_extremes", "running_moments", "running_sums", "smoothed"]

_MOST = np.int64((1 << 63) - 1)


@kernel
def running_sums(values: GivenDoubles, starts: Positions, times: bool, state: Doubles, out: Doubles) -> None:
    """The sum (or, ``times``, the product) of each row and those before it; ``state`` is that of the open series."""
    rows = values.size
    for s in range(starts.size):
        total = state[0] if s == 0 else (1.0 if times else 0.0)
        last = starts[s + 1] if s + 1 < starts.size else rows
        if times:
            for i in range(starts[s], last):
                total *= values[i]
                out[i] = total
        else:
            for i in range(starts[s], last):
                total += values[i]
                out[i] = total
        state[0] = total


@kernel
def running_moments(values: GivenDoubles, valid: Flags, starts: Positions, state: Doubles, out: Doubles) -> None:
    """The squared distances from the mean of each row and those before it, added up one by one, as Spark does it.

    ``state`` is how many values the open series has, their mean, and their squared distances.
    """
    rows = values.size
    for s in range(starts.size):
        count, mean, squares = (state[0], state[1], state[2]) if s == 0 else (0.0, 0.0, 0.0)
        last = starts[s + 1] if s + 1 < starts.size else rows
        for i in range(starts[s], last):
            if valid[i]:
                count += 1.0
                delta = values[i] - mean
                share = delta / count
                mean += share
                squares += delta * (delta - share)
            out[i] = squares
        state[0], state[1], state[2] = count, mean, squares


@kernel
def running_extremes(
    words: GivenPositions, valid: Flags, starts: Positions, sign: int, state: Positions, out: Positions
) -> None:
    """The first row with the least (or greatest) word up to each row; -1 if there is none, -2 if it was before these.

    ``state`` says whether the open series has one, and which word it is.
    """
    rows = words.size
    for s in range(starts.size):
        found = np.int64(-2 if s == 0 and state[0] else -1)
        best = state[1]
        last = starts[s + 1] if s + 1 < starts.size else rows
        for i in range(starts[s], last):
            if valid[i]:
                word = words[i]
                if found == -1 or (word < best if sign > 0 else word > best):
                    found = i
                    best = word
            out[i] = found
        state[0] = 0 if found == -1 else 1
        state[1] = best


@kernel
def smoothed(
    values: GivenDoubles,
    valid: Flags,
    starts: Positions,
    alpha: float,
    adjusted: bool,
    skipping: bool,
    state: Doubles,
    out: Doubles,
    known: Flags,
) -> None:
    """Exponential averages by rows; ``state`` is (whether there is one, the average, the weight of what was)."""
    rows = values.size
    keep = 1.0 - alpha
    fresh = 1.0 if adjusted else alpha
    for s in range(starts.size):
        last = starts[s + 1] if s + 1 < starts.size else rows
        there = s == 0 and state[0] != 0.0
        mean = state[1] if there else 0.0
        weight = state[2] if there else 1.0
        for i in range(starts[s], last):
            if valid[i]:
                if not there:
                    there = True
                    mean = values[i]
                    weight = 1.0
                elif not adjusted and weight == 1.0:
                    mean = keep * mean + alpha * values[i]
                else:
                    weight *= keep
                    mean = (weight * mean + fresh * values[i]) / (weight + fresh)
                    weight = weight + fresh if adjusted else 1.0
            elif there and not skipping:
                weight *= keep
            out[i] = mean
            known[i] = there
        state[0] = 1.0 if there else 0.0
        state[1] = mean
        state[2] = weight


@kernel
def decayed(
    values: GivenDoubles,
    valid: Flags,
    times: GivenPositions,
    starts: Positions,
    half_life: float,
    state: Doubles,
    moment: Positions,
    out: Doubles,
    known: Flags,
) -> None:
    """Exponential averages by time; ``state`` is (whether there is one, the average),
    ``moment`` the time it was made.
    """
    rows = values.size
    for s in range(starts.size):
        last = starts[s + 1] if s + 1 < starts.size else rows
        there = s == 0 and state[0] != 0.0
        mean = state[1] if there else 0.0
        at = moment[0] if there else np.int64(0)
        for i in range(starts[s], last):
            if valid[i]:
                if there:
                    # The distance of two words may need 65 bits.
                    keep = math.exp2(
                        -((float(times[i]) - float(at)) if _far(times[i], at) else float(times[i] - at)) / half_life
                    )
                    mean = keep * mean + (1.0 - keep) * values[i]
                else:
                    there = True
                    mean = values[i]
                at = times[i]
            out[i] = mean
            known[i] = there
        state[0] = 1.0 if there else 0.0
        state[1] = mean
        moment[0] = at


@inlined
def _far(a: int, b: int) -> bool:
    return (a > 0) != (b > 0) and (abs(a >> 1) + abs(b >> 1)) > (_MOST >> 1)
