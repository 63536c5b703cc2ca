"""Costs: what a refresh is expected to take, from the changes or anew, by what earlier ones took.

Both are measured where they happen: rows of changes a second, and seconds of the last full computation with the rows it read. The
**crossover** is the number of changed rows from which computing anew is expected to be quicker. Small refreshes are never worth that
question: the clock is too coarse to compare them, so below a floor of rows changes are always followed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from headwater.base.derived import Mode

__all__ = ["FLOOR_ROWS", "Rates", "RefreshPlan"]

FLOOR_ROWS = 100_000
"""Changes of fewer rows than this are always followed."""

_NEW = 0.5  # how much the newest measurement counts
_FIXED_SECONDS = 0.01  # reading the log, saving the state, committing
_GUESS = 300_000.0  # rows of changes a second, before anything was measured


@dataclass(frozen=True, slots=True)
class Rates:
    """What was measured: rows of changes a second, and the last full computation."""

    changes_per_second: float = 0.0
    full_seconds: float = 0.0
    full_rows: int = 0

    def to_json(self) -> dict[str, Any]:
        """As a JSON object, without digits that mean nothing."""
        return {k: round(v, 6) if isinstance(v, float) else v for k, v in asdict(self).items()}

    def after_changes(self, rows: int, seconds: float) -> Rates:
        """With one more refresh from changes; a small one says nothing of the rate."""
        if rows < 1_000 or seconds <= 0:
            return self
        rate = rows / seconds
        old = self.changes_per_second
        return replace(self, changes_per_second=rate if not old else _NEW * rate + (1 - _NEW) * old)

    def after_full(self, rows: int, seconds: float) -> Rates:
        """With one more full computation."""
        return replace(self, full_seconds=seconds, full_rows=rows)

    def changes_seconds(self, rows: int) -> float:
        """How long following so many changed rows should take."""
        return _FIXED_SECONDS + rows / (self.changes_per_second or _GUESS)

    def anew_seconds(self, rows: int) -> float:
        """How long computing it anew from so many rows should take."""
        if not self.full_rows:
            return _FIXED_SECONDS + rows / _GUESS
        return max(_FIXED_SECONDS, self.full_seconds * rows / self.full_rows)

    def crossover(self, rows: int) -> int:
        """From how many changed rows on computing anew from ``rows`` rows should be quicker.

        >>> Rates(changes_per_second=1e6, full_seconds=2.0, full_rows=10_000_000).crossover(10_000_000)
        1990000
        """
        rate = self.changes_per_second or _GUESS
        return max(FLOOR_ROWS, math.ceil((self.anew_seconds(rows) - _FIXED_SECONDS) * rate))


@dataclass(frozen=True, kw_only=True)
class RefreshPlan:
    """What a refresh would do now.

    Parameters
    ----------
    mode : "noop", "incremental" or "full"
    reason : str
        why, for people
    changes : mapping of str to int
        changed rows of each source since the frontier, as far as the log tells them
    rows : int
        rows of all sources, which computing anew would read
    incremental_seconds, full_seconds : float
        what each way is expected to take
    crossover : int
        the number of changed rows from which computing anew is expected to be quicker
    """

    mode: Mode
    reason: str
    changes: Mapping[str, int] = field(default_factory=dict)
    rows: int = 0
    incremental_seconds: float = 0.0
    full_seconds: float = 0.0
    crossover: int = 0

    def __str__(self) -> str:
        lines = [f"{self.mode}: {self.reason}"]
        lines += [f"  {table}: {count:,} rows changed" for table, count in self.changes.items()]
        lines.append(
            f"  expected: {self.incremental_seconds:.3f} s from the changes, "
            f"{self.full_seconds:.3f} s anew from {self.rows:,} rows"
        )
        lines.append(f"  crossover: {self.crossover:,} changed rows")
        return "\n".join(lines)
