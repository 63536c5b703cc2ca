"""Upkeep: one thread, one place a key in the queue, and no job that ends it for the others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import pytest
from tests.waiting import PATIENCE_S

from headwater.base import events
from headwater.derived import upkeep
from headwater.testing.faults import SimulatedCrash


@pytest.fixture
def notices(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(events, "notice", found.append)
    return found


def _raising(error: BaseException) -> Callable[[], None]:
    def job() -> None:
        raise error

    return job


@pytest.mark.parametrize(
    "error", [ValueError("bad"), SimulatedCrash("x"), SystemExit(3)], ids=lambda e: type(e).__name__
)
def test_a_job_that_fails_ends_nothing(notices: list[str], error: BaseException) -> None:
    done = threading.Event()
    upkeep.later("a", _raising(error), what="tidying")
    upkeep.later("b", done.set, what="the next")
    assert upkeep.wait(PATIENCE_S) and done.is_set()
    upkeep.finish("a")
    upkeep.cancel("a")
    assert len(notices) == 1 and notices[0].startswith("tidying: ")


def test_a_key_has_one_place(notices: list[str]) -> None:
    begun, go_on = threading.Event(), threading.Event()
    ran: list[int] = []

    def first() -> None:
        begun.set()
        go_on.wait(PATIENCE_S)

    upkeep.later("first", first, what="first")
    assert begun.wait(PATIENCE_S)
    for number in range(3):
        upkeep.later("second", partial(ran.append, number), what="second")
    upkeep.later("third", lambda: ran.append(99), what="third")
    upkeep.cancel("third")
    assert not upkeep.wait(0)
    go_on.set()
    assert upkeep.wait(PATIENCE_S)
    assert ran == [0] and not notices


def test_no_thread_can_be_started(notices: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        upkeep.later("a", lambda: None, what="tidying")
    assert notices == ["tidying: can't start new thread"]
    assert upkeep.wait(0)
