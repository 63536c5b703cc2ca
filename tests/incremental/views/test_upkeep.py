"""One thread does what can wait, one job for each key, and the end of the process waits for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest
from tests.waiting import PATIENCE_S

import headwater as hw
from headwater.base import events
from headwater.derived import upkeep


def test_a_key_has_one_place_in_the_queue() -> None:
    gate, begun = threading.Event(), threading.Event()
    done: list[object] = []

    def first() -> None:
        begun.set()
        gate.wait(PATIENCE_S)
        done.append("first")

    upkeep.later("a", first, what="a")
    assert begun.wait(PATIENCE_S)
    for number in range(3):
        upkeep.later("b", partial(done.append, number), what="b")
    assert not upkeep.wait(0.01)
    gate.set()
    assert upkeep.wait(PATIENCE_S)
    assert done == ["first", 0]
    upkeep.later("b", lambda: done.append("again"), what="b")
    assert upkeep.wait(PATIENCE_S) and done[-1] == "again"


def test_a_job_that_waits_is_forgotten_and_one_that_runs_is_waited_for() -> None:
    gate, begun = threading.Event(), threading.Event()
    done: list[object] = []

    def first() -> None:
        begun.set()
        gate.wait(PATIENCE_S)
        done.append("first")

    upkeep.later("a", first, what="a")
    assert begun.wait(PATIENCE_S)
    upkeep.later("b", lambda: done.append("b"), what="b")
    upkeep.cancel("b")
    threading.Timer(0.05, gate.set).start()
    upkeep.cancel("a")
    assert done == ["first"]
    assert upkeep.wait(PATIENCE_S) and done == ["first"]


def test_an_error_is_told_and_others_go_on() -> None:
    seen: list[events.Event] = []
    done: list[int] = []

    def fail() -> None:
        raise KeyError("nothing")

    with events.subscribe(seen.append):
        upkeep.later("a", fail, what="the one")
        upkeep.later("b", lambda: done.append(1), what="the other")
        assert upkeep.wait(PATIENCE_S)
    assert done == [1] and [e.text for e in seen if e.kind == "notice"] == ["the one: 'nothing'"]


_LIFE = """
import sys, time
from headwater.derived import upkeep

def job():
    time.sleep(0.2)
    open(sys.argv[1], "w").write("done")

upkeep.later("a", job, what="a")
upkeep.later("b", lambda: open(sys.argv[1] + ".b", "w").write("too"), what="b")
"""


@pytest.mark.long
def test_the_end_of_a_process_waits_for_what_is_to_be_done(tmp_path: Path) -> None:
    file = tmp_path / "done"
    subprocess.run([sys.executable, "-c", _LIFE, str(file)], check=True, timeout=PATIENCE_S)
    assert file.read_text() == "done" and Path(f"{file}.b").read_text() == "too"


def test_a_process_that_was_forked_has_its_own() -> None:
    gate = threading.Event()

    def stay() -> None:
        gate.wait(PATIENCE_S)

    upkeep.later("a", stay, what="a")
    child = os.fork()
    if child == 0:
        done: list[int] = []
        upkeep.cancel("a")
        upkeep.wait(1)
        upkeep.later("a", lambda: done.append(1), what="a")
        os._exit(0 if upkeep.wait(PATIENCE_S) and done == [1] else 1)
    assert os.waitpid(child, 0)[1] == 0
    gate.set()
    assert upkeep.wait(PATIENCE_S)


@pytest.mark.long
def test_a_lake_that_is_closed_can_be_deleted(tmp_path: Path) -> None:
    for number in range(12):
        folder = tmp_path / str(number)
        with hw.connect(folder) as lake:
            lake.write("t", [{"k": 1, "v": 1}])
            view = lake.view("v", "SELECT k, sum(v) AS s FROM t GROUP BY k")
            view.refresh()
            lake.write("t", [{"k": 1, "v": 2}], mode="append")
            view.refresh()
        shutil.rmtree(folder)
        assert not folder.exists()


def test_one_lake_does_not_wait_for_another() -> None:
    gate, begun = threading.Event(), threading.Event()

    def job() -> None:
        begun.set()
        gate.wait(PATIENCE_S)

    upkeep.later("/b\nv", job, what="b")
    assert begun.wait(PATIENCE_S)
    upkeep.finish("/a\n")
    waiting = threading.Thread(target=upkeep.finish, args=["/b\n"])
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()
    gate.set()
    waiting.join(PATIENCE_S)
    assert not waiting.is_alive()
