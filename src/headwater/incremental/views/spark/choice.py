"""Choosing: whether a refresh is computed in this process or by Spark's tasks, and why.

Both runtimes go on from the same state, so the choice is made anew for each refresh. A job costs tenths of a second
before it does anything, so Spark is worth it from a number of rows on, the setting ``view_spark_rows``: changed rows,
or those of the sources where all are read. The setting ``view_engine``, or the argument ``engine``, decides
otherwise; what Spark cannot do is then an error that says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, get_args

from headwater.base import settings
from headwater.base.errors import Action, InputError, UnsupportedError
from headwater.derived.environment import Environment
from headwater.incremental.views.definition import Definition
from headwater.incremental.views.spark.places import is_here
from headwater.incremental.views.words import WORDS

__all__ = ["SHARD_ROWS", "Chosen", "Engine", "asked_for", "choose", "shard_count"]

Engine = Literal["auto", "local", "spark"]
_NO_SESSION = "the lake has no Spark session"
SHARD_ROWS = 500_000
"""What one shard should get."""
_ONE_TASK_ROWS = 250_000
_MOST_SHARDS = 4_096


@dataclass(frozen=True, slots=True)
class Chosen:
    """Who computes a refresh, and why."""

    engine: Literal["local", "spark"]
    reason: str

    def __str__(self) -> str:
        return f"{self.engine}: {self.reason}"


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


def choose(view: str, definition: Definition, environment: Environment, rows: int, *, query: bool) -> Chosen:
    """The engine of a refresh that reads so many rows.

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
    least = settings.current().view_spark_rows
    if rows < least:
        return Chosen("local", f"{rows:,} rows are fewer than the {least:,} from which Spark is worth its start")
    if query:
        return Chosen("local", "a query is quicker than keeping its state")
    if why_not is not None:
        return Chosen("local", why_not)
    return Chosen("spark", f"{rows:,} rows are at least the {least:,} from which Spark is worth its start")


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
