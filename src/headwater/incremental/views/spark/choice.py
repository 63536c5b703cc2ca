"""Choosing: whether a refresh is computed in this process or by Spark's tasks, and why.

Both runtimes go on from the same state, so the choice is made anew for each refresh. The setting ``view_engine``, or
the argument ``engine``, decides it; what Spark cannot do is then an error that says why. Otherwise (`weighed`):

- What this process has no memory for is Spark's: state has files, but a step has all of its rows at once.
- What takes long here is Spark's: from ``view_spark_rows`` rows on, changed ones with what they come to in joins, or
  those of the sources where all are read. That number is of a usual pace; where the view's own pace was measured, rows
  count as many as a process computes of the usual ones in their time, but not more or less than four times as many.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, get_args

from headwater.base import settings
from headwater.base.errors import Action, InputError, UnsupportedError
from headwater.derived.environment import Environment
from headwater.incremental.views.costs import USUAL_PACE
from headwater.incremental.views.definition import Definition
from headwater.incremental.views.spark.places import is_here
from headwater.incremental.views.words import WORDS
from headwater.spark.machine import available_bytes

__all__ = ["SHARD_ROWS", "Chosen", "Demand", "Engine", "asked_for", "choose", "shard_count", "weighed"]

Engine = Literal["auto", "local", "spark"]
_NO_SESSION = "the lake has no Spark session"
SHARD_ROWS = 500_000
"""What one shard should get."""
_ONE_TASK_ROWS = 250_000
_MOST_SHARDS = 4_096
_BUILD_BYTES = 128
_STEP_BYTES = 512
_MOST_PACES = 4


@dataclass(frozen=True, slots=True)
class Chosen:
    """Who computes a refresh, and why."""

    engine: Literal["local", "spark"]
    reason: str

    def __str__(self) -> str:
        return f"{self.engine}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Demand:
    """What a refresh has to do: follow so many rows, or build state from them; ``pace`` is how many of its own the view
    took a second in process, and 0 where that is not known.
    """

    rows: int
    follows: bool
    pace: float = 0.0

    @property
    def nbytes(self) -> int:
        """How much memory it takes in process: all of a step, or a piece and what is kept of each row."""
        return self.rows * (_STEP_BYTES if self.follows else _BUILD_BYTES)

    @property
    def usual_rows(self) -> int:
        """So many rows take as long at the usual pace.

        >>> [Demand(1_000_000, True, pace).usual_rows for pace in (0.0, 600_000.0, 150_000.0, 1.0)]
        [1000000, 500000, 2000000, 4000000]
        """
        if not self.pace:
            return self.rows
        times = min(_MOST_PACES, max(1 / _MOST_PACES, USUAL_PACE / self.pace))
        return round(self.rows * times)


def weighed(demand: Demand, *, least: int, free_bytes: int) -> Chosen:
    """Who should compute a refresh, where both can: ``least`` rows of a usual pace are worth Spark's start.

    >>> print(weighed(Demand(10, follows=True), least=5_000_000, free_bytes=1 << 30))
    local: 10 rows are fewer than the 5,000,000 from which Spark is worth its start
    """
    if demand.nbytes > free_bytes:
        needed, free = (f"{n / 2**20:,.1f} MiB" for n in (demand.nbytes, free_bytes))
        return Chosen("spark", f"{demand.rows:,} rows take about {needed} of memory, and {free} are free here")
    rows, what = demand.usual_rows, f"{demand.rows:,} rows"
    if rows != demand.rows:
        what += f", which at {demand.pace:,.0f} a second count as {rows:,},"
    if rows < least:
        return Chosen("local", f"{what} are fewer than the {least:,} from which Spark is worth its start")
    return Chosen("spark", f"{what} are at least the {least:,} from which Spark is worth its start")


@contextmanager
def asked_for(engine: Engine | None) -> Iterator[None]:
    """Let the views that are refreshed or planned within the block be computed so; None leaves it to the setting."""
    if engine is None:
        yield
        return
    if engine not in get_args(Engine):
        raise InputError.bad_argument("engine", engine, '"auto", "local" or "spark"')
    with settings.override(view_engine=engine):
        yield


def choose(view: str, definition: Definition, environment: Environment, demand: Demand, *, query: bool) -> Chosen:
    """The engine of a refresh.

    ``query`` says whether an SQL engine would compute it.
    """
    asked = settings.current().view_engine
    if asked == "local":
        return Chosen("local", "it was asked for")
    why_not = _why_not(definition, environment)
    if asked == "spark":
        if why_not is not None:
            here = Action("refresh_here", name=view, kind=WORDS)
            hint = (Action("connect_spark", name=view), here) if why_not == _NO_SESSION else here
            raise UnsupportedError.operation(f"refreshing the view `{view}` on Spark", why_not, hint)
        return Chosen("spark", "it was asked for")
    if environment.session is None and not is_here():
        return Chosen("local", _NO_SESSION)
    now = settings.current()
    found = weighed(demand, least=now.view_spark_rows, free_bytes=now.memory_limit_bytes or available_bytes())
    if found.engine == "local":
        return found
    if query:
        return Chosen("local", "a query is quicker than keeping its state")
    return found if why_not is None else Chosen("local", why_not)


def _why_not(definition: Definition, environment: Environment) -> str | None:
    if environment.session is None and not is_here():
        return _NO_SESSION
    if definition.policy == "full":
        return "its policy is `full`: a query engine computes it, and it has no state"
    if definition.functions:
        named = ", ".join(f"`{name}`" for name in definition.functions)
        return f"it calls functions of your own ({named}), which tasks do not have"
    return None


def shard_count(rows: int, tasks: int, *, follows: bool) -> int:
    """Into how many shards so many rows are divided, where so many tasks run at once.

    Rows of changes that one task steps in about the time that a job takes to begin are not divided: one shard needs no
    exchange.
    """
    asked = settings.current().view_spark_shards
    if asked:
        return asked
    if follows and rows <= _ONE_TASK_ROWS:
        return 1
    needed = -(-rows // SHARD_ROWS)
    return min(_MOST_SHARDS, max(tasks, -(-needed // tasks) * tasks))
