"""Costs: what a refresh is expected to take, in each of the ways to do it, by what earlier ones took.

There are four ways. Following the changes takes something fixed and something for each changed row. A query engine
that computes the view anew takes something for each row of the sources, and leaves no state to go on from. Building
the state anew takes longest, and the next refreshes are cheap again. These three are measured where they happen,
`verify` counting as a query. Where building takes much longer than a query, there is a fourth: the rows are those of a
query, and the state is built **behind** them (`building`).

What following a change takes depends on what it comes to. A row of a small table that a large one is joined with may
stand for thousands of rows of the join. So a changed row counts as often as rows of its table were found in joins when
the state was built: its **fan-out**.

The **crossover** is the number of changed rows from which the quicker of the other two would be quicker than following
the changes. Crossing it once is no reason to give the state up: the next change may be a small one, which the state
answers in milliseconds. So the way is chosen as one decides between renting and buying. What the present way has taken
longer than the other one would have is added up, and taken off where it was quicker; when it comes to what building the
state takes, the other way is taken from then on. Whatever changes come, that is never worse than a small multiple of
the best that could have been done. If following the changes alone would take longer than building the state, it is
built.

Small refreshes are never worth that question: below a floor of rows a view that has state follows the changes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from headwater.derived.plan import RefreshPlan

__all__ = ["FLOOR_ROWS", "USUAL_PACE", "Choice", "Rates", "ViewPlan", "Way"]

Way = Literal["changes", "query", "build", "behind"]

FLOOR_ROWS = 100_000
"""Changes of fewer rows than this are always followed, where there is state."""

_BEHIND_ROWS = 1_000_000  # from so many rows of the sources on rows may be published before there is state,
_BEHIND_SECONDS = 0.5  # if they are visible so much sooner
_NEW = 0.5  # how much the newest measurement counts
_FEW_ROWS = 1_000  # a refresh of fewer says how long the fixed part takes, one of more how long a row does
# What computed so many rows anew says how long a row takes; of fewer, the fixed part is too large a part.
_ENOUGH_ROWS = 100_000
_FIXED_SECONDS = 0.01  # reading the log, saving the state, committing
USUAL_PACE = 300_000.0
"""Rows a second of changes, and of building state, before anything was measured."""
_QUERY_GUESS = 10_000_000.0  # rows a second of a query


@dataclass(frozen=True, slots=True)
class Choice:
    """How to do it, and what the present way has taken too long by then."""

    way: Way
    lost_seconds: float


@dataclass(frozen=True, slots=True)
class Rates:
    """What was measured: changes, the last time the state was built, the last query;
    and what the choice of ways needs to remember.
    """

    changes_per_second: float = 0.0
    fixed_seconds: float = 0.0
    full_seconds: float = 0.0
    full_rows: int = 0
    query_seconds: float = 0.0
    query_rows: int = 0
    lost_seconds: float = 0.0
    stateless: bool = False
    fan_out: Mapping[str, float] = field(default_factory=dict)
    """By table, how many rows of a join a changed row comes to; tables of which it is no more than one are left out."""

    def to_json(self) -> dict[str, Any]:
        """As a JSON object, without digits that mean nothing."""
        values = ((name, getattr(self, name)) for name in self.__slots__ if name != "fan_out")
        found = {k: round(v, 6) if isinstance(v, float) else v for k, v in values}
        return {**found, "fan_out": dict(self.fan_out)} if self.fan_out else found

    def work(self, changes: Mapping[str, int]) -> int:
        """How many rows so many changed rows of each table come to.

        >>> Rates(fan_out={"customers": 50.0}).work({"orders": 10, "customers": 2})
        110
        """
        return round(sum(rows * self.fan_out.get(table, 1.0) for table, rows in changes.items()))

    # -- what was measured -----------------------------------------------------------------------------------------

    def after_changes(self, rows: int, seconds: float, fan_out: float = 1.0) -> Rates:
        """With one more refresh from changes, each of which came to so many rows of joins.

        >>> Rates().after_changes(20, 0.1, fan_out=50.0).changes_per_second
        0.0
        """
        if seconds <= 0:
            return self
        if rows < _FEW_ROWS:
            return replace(self, fixed_seconds=_blended(self.fixed_seconds, seconds))
        spent = max(seconds - self.fixed_seconds, 0.1 * seconds)
        return replace(self, changes_per_second=_blended(self.changes_per_second, rows * fan_out / spent))

    def after_full(self, rows: int, seconds: float, lost_seconds: float = 0.0) -> Rates:
        """With the state built once more."""
        found = replace(self, lost_seconds=lost_seconds, stateless=False)
        return replace(found, full_seconds=seconds, full_rows=rows) if _tells(rows, self.full_rows) else found

    def after_query(self, rows: int, seconds: float) -> Rates:
        """With one more answer by a query engine."""
        return replace(self, query_seconds=seconds, query_rows=rows) if _tells(rows, self.query_rows) else self

    def pace(self, *, follows: bool) -> float:
        """How many rows a second were taken in process, of changes or in building state; 0 if that is not known.

        >>> Rates(full_seconds=2.0, full_rows=1_000_000).pace(follows=False)
        500000.0
        """
        if follows:
            return self.changes_per_second
        known = self.full_rows >= _ENOUGH_ROWS and self.full_seconds > 0
        return self.full_rows / self.full_seconds if known else 0.0

    # -- what is expected ------------------------------------------------------------------------------------------

    def changes_seconds(self, rows: int) -> float:
        """How long following so many changed rows should take."""
        return (self.fixed_seconds or _FIXED_SECONDS) + rows / (self.changes_per_second or USUAL_PACE)

    def anew_seconds(self, rows: int) -> float:
        """How long building the state anew from so many rows should take."""
        return _scaled(self.full_seconds, self.full_rows, rows, USUAL_PACE)

    def queried_seconds(self, rows: int) -> float:
        """How long a query over so many rows should take, with the difference to what is there."""
        return _scaled(self.query_seconds, self.query_rows, rows, _QUERY_GUESS)

    def crossover(self, rows: int) -> int:
        """From how many changed rows on computing anew from ``rows`` rows should be quicker, by a query or by building
        the state.

        >>> Rates(changes_per_second=1e6, query_seconds=0.5, query_rows=10_000_000).crossover(10_000_000)
        490000
        """
        other = min(self.anew_seconds(rows), self.queried_seconds(rows))
        fixed = self.fixed_seconds or _FIXED_SECONDS
        return max(FLOOR_ROWS, math.ceil((other - fixed) * (self.changes_per_second or USUAL_PACE)))

    def goes_behind(self, rows: int) -> bool:
        """Whether building state from so many rows takes so much longer than a query that rows are published first.

        >>> Rates(full_seconds=3.0, full_rows=5_000_000, query_seconds=0.4, query_rows=5_000_000).goes_behind(5_000_000)
        True
        """
        return rows >= _BEHIND_ROWS and self.anew_seconds(rows) - self.queried_seconds(rows) >= _BEHIND_SECONDS

    # -- what to do ------------------------------------------------------------------------------------------------

    def choice(self, changed: int, rows: int) -> Choice:
        """The way to take for so many changed rows, of sources with so many.

        >>> rows = 10_000_000
        >>> rates = Rates(1e6, full_seconds=2.0, full_rows=rows, query_seconds=0.5, query_rows=rows)
        >>> [rates.choice(n, rows).way for n in (1_000, 1_500_000, 5_000_000)]
        ['changes', 'changes', 'build']
        >>> replace(rates, lost_seconds=1.5).choice(1_500_000, 10_000_000).way
        'query'
        """
        changes, query, build = self.changes_seconds(changed), self.queried_seconds(rows), self.anew_seconds(rows)
        if self.stateless:
            lost = max(0.0, self.lost_seconds + query - changes)
            return Choice("build", 0.0) if lost > build else Choice("query", lost)
        keeping = min(changes, build)
        lost = max(0.0, self.lost_seconds + keeping - query)
        if changed < FLOOR_ROWS:
            return Choice("changes", min(lost, self.lost_seconds))
        if lost > build and query < keeping:
            return Choice("query", 0.0)
        return Choice("build" if changes > build else "changes", lost)


def _blended(old: float, new: float) -> float:
    return _NEW * new + (1 - _NEW) * old if old else new


def _tells(rows: int, before: int) -> bool:
    """Whether a measurement is worth more than the last one: that of a few rows is the fixed part,
    and what was compiled for the first time.
    """
    return rows >= _FEW_ROWS or before < _FEW_ROWS


def _scaled(seconds: float, measured: int, rows: int, guess: float) -> float:
    """What so many rows take, by what was measured; the rows that it lacks to tell much are taken for as quick as the
    guess.
    """
    if measured < _FEW_ROWS:
        return _FIXED_SECONDS + rows / guess
    lacking = max(0, _ENOUGH_ROWS - measured)
    return max(_FIXED_SECONDS, (seconds + lacking / guess) * rows / (measured + lacking))


@dataclass(frozen=True, kw_only=True)
class ViewPlan(RefreshPlan):
    """What a refresh of a view would do now.

    Parameters
    ----------
    incremental_seconds, query_seconds, full_seconds : float
        what following the changes is expected to take, a query, and building the state from scratch
    crossover : int
        the number of changed rows from which the quicker of the other two is expected to be quicker than following the
        changes
    way : "changes", "query", "build" or "behind"
        how it would be done; "behind" is by a query, with the state built behind the rows
    lost_seconds : float
        what the way that has been taken so far, this refresh with it, has taken longer than the other would have
    engine : "local" or "spark"
        who would compute it
    engine_reason : str
        why, for people
    """

    incremental_seconds: float = 0.0
    query_seconds: float = 0.0
    full_seconds: float = 0.0
    crossover: int = 0
    way: Way = "changes"
    lost_seconds: float = 0.0
    fan_out: float = 1.0
    engine: Literal["local", "spark"] = "local"
    engine_reason: str = ""

    def _details(self) -> list[str]:
        expected = (
            f"expected: {self.incremental_seconds:.3f} s from the changes, {self.query_seconds:.3f} s by a query, "
            f"{self.full_seconds:.3f} s to build its state anew from {self.rows:,} rows"
        )
        lines = [expected]
        if self.lost_seconds:
            lines.append(f"its way has taken {self.lost_seconds:.3f} s longer than the other would have")
        if self.fan_out > 1:
            lines.append(f"a changed row comes to {self.fan_out:,.0f} rows of joins")
        lines.append(f"crossover: {self.crossover:,} changed rows")
        return [*lines, f"engine: {self.engine}, since {self.engine_reason}"] if self.engine_reason else lines

    def _facts(self) -> list[tuple[str, object]]:
        return [
            ("from the changes", f"{self.incremental_seconds:.3f} s"),
            ("by a query", f"{self.query_seconds:.3f} s"),
            ("to build its state", f"{self.full_seconds:.3f} s from {self.rows:,} rows"),
            ("crossover", f"{self.crossover:,} changed rows"),
            ("engine", f"{self.engine}, since {self.engine_reason}" if self.engine_reason else self.engine),
        ]
