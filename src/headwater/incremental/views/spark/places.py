"""Places: where the tasks of a job run. On Spark, or one after the other in this process.

The second is the tests' other half: the same reading, cutting, stepping and writing, with the same files, and no JVM;
so every kind of view can be taken through it in milliseconds. `here` lets refreshes within a block run there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from headwater.incremental.views.spark.tasks import Sending, Stepping
from headwater.incremental.views.spark.whole import SteppingAll
from headwater.incremental.views.spark.written import REPORT, Report
from headwater.spark import blocks
from headwater.spark.figures import recording
from headwater.spark.progress import followed

if TYPE_CHECKING:
    from headwater.derived.environment import Environment
    from headwater.incremental.views.spark.jobs import Job
    from headwater.spark.types import SparkSession

__all__ = ["Place", "here", "is_here", "place_for"]


class Place(Protocol):
    """Where jobs run."""

    @property
    def tasks(self) -> int:
        """How many tasks run at once, as far as is known."""

    def reports(self, job: Job, what: str) -> Sequence[Report]:
        """Run a job: what each of its shards has written."""


class _OnSpark:
    """Tasks of a session."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    @property
    def tasks(self) -> int:
        return max(2, int(str(self._session.conf.get("spark.sql.shuffle.partitions", "8"))))

    def reports(self, job: Job, what: str) -> Sequence[Report]:
        if job.whole:
            frame, work = blocks.tasks_of(self._session, 1, SteppingAll(job))
            with followed(self._session, what):
                found = blocks.results_of(frame, work, _texts, REPORT)
            return [Report.of(text) for text in found["report"].to_pylist()]
        frame, _ = blocks.tasks_of(self._session, len(job.shares), _nothing)
        sent = blocks.sent(frame, Sending(job))
        with followed(self._session, what):
            found = blocks.results_of(blocks.exchanged([sent], job.shards), Stepping(job), _texts, REPORT)
        return [Report.of(text) for text in found["report"].to_pylist()]


class _Here:
    """This process."""

    tasks = 2

    def reports(self, job: Job, what: str) -> Sequence[Report]:
        del what
        if job.whole:
            return [Report.of(SteppingAll(job).report().text())]
        sending, stepping = Sending(job), Stepping(job)
        came: list[list[list[pa.Table]]] = [[[] for _ in job.feeds] for _ in range(job.shards)]
        with recording():
            for number in range(len(job.shares)):
                for shard, side, table in sending.sent(number):
                    came[shard][side].append(table)
            return [Report.of(stepping.report(shard, tables).text()) for shard, tables in enumerate(came)]


_here: ContextVar[bool] = ContextVar("headwater views by tasks in this process", default=False)


@contextmanager
def here() -> Iterator[None]:
    """Let tasks of views run in this process."""
    token = _here.set(True)
    try:
        yield
    finally:
        _here.reset(token)


def is_here() -> bool:
    """Whether tasks run in this process."""
    return _here.get()


def place_for(environment: Environment) -> Place:
    """Where the tasks of a lake's views run."""
    if is_here():
        return _Here()
    assert environment.session is not None, "without one, nothing is computed by tasks"
    return _OnSpark(environment.session())


def _nothing(_: int) -> Iterator[pa.Table]:
    return iter(())


def _texts(tables: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
    for table in tables:
        yield from table.to_batches()
