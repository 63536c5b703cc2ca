"""Progress of Spark's jobs, as everything else shows it: tasks that are done, of those that are known.

A classic session is asked through its status tracker, a few times a second, by a thread that ends with the work; a
Connect session tells by itself. What is counted are the stages that began while the work ran, so another job of the
same session counts too.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headwater.base import events
from headwater.spark.session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["followed"]

_EVERY_SECONDS = 0.3


@contextmanager
def followed(session: SparkSession, what: str) -> Iterator[None]:
    """Show how far the jobs of the block are."""
    with events.task(what, unit="tasks") as task:
        told = _Told(task)
        if not is_connect(session):
            stop = threading.Event()
            watching = threading.Thread(target=_watch, args=(session, told, stop), daemon=True)
            watching.start()
            try:
                yield
            finally:
                stop.set()
                watching.join(5)
        else:
            handler: Any = told.from_connect
            session.registerProgressHandler(handler)
            try:
                yield
            finally:
                session.removeProgressHandler(handler)


class _Told:
    """Tasks done by stage, told to a task of ours as they grow."""

    def __init__(self, task: events.Task) -> None:
        self._task = task
        self._done: dict[int, int] = {}
        self._shown = 0

    def stage(self, number: int, done: int) -> None:
        self._done[number] = max(done, self._done.get(number, 0))

    def show(self) -> None:
        total = sum(self._done.values())
        if total > self._shown:
            self._task.advance(total - self._shown)
            self._shown = total

    def from_connect(self, stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        for stage in stages or ():
            self.stage(stage.stage_id, stage.num_completed_tasks)
        self.show()


def _watch(session: SparkSession, told: _Told, stop: threading.Event) -> None:
    tracker = session.sparkContext.statusTracker()
    known = set(tracker.getActiveStageIds())
    seen: set[int] = set()
    while not stop.wait(_EVERY_SECONDS):
        try:
            seen |= set(tracker.getActiveStageIds()) - known
            for number in seen:
                info = tracker.getStageInfo(number)
                if info is not None:
                    told.stage(number, info.numCompletedTasks)
        except Exception:  # noqa: BLE001  (the session may be stopping; the work itself will say so)
            return
        told.show()
