"""Two processes do not write to one store; a process that is gone does not keep others out."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.base.errors import ConflictError
from headwater.derived.lock import Lock

HOLD = """
import sys, time
from headwater.derived.lock import Lock
lock = Lock(sys.argv[1])
print("held", flush=True)
time.sleep(60)
"""

LEAVE_A_CHILD = """
import os, sys, time
from headwater.derived.lock import Lock
lock = Lock(sys.argv[1])
child = os.fork()
if child == 0:
    os.close(1)
    time.sleep(60)
    os._exit(0)
print(child, flush=True)
os._exit(0)
"""


def started(code: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, text=True)


def test_one_at_a_time(tmp_path: Path) -> None:
    lock = Lock(str(tmp_path))
    with pytest.raises(ConflictError, match="already, by this very process") as caught:
        Lock(str(tmp_path))
    assert caught.value.code == "E4003"
    lock.release()
    lock.release()
    assert not lock.held
    assert Lock(str(tmp_path)).held


def test_a_lock_that_nobody_holds_any_more_is_free(tmp_path: Path) -> None:
    Lock(str(tmp_path))  # it goes with its object
    Lock(str(tmp_path)).release()


def test_another_process_keeps_us_out_until_it_is_killed(tmp_path: Path) -> None:
    with started(HOLD, tmp_path) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "held\n"
            with pytest.raises(ConflictError, match=rf"pid {child.pid}\b"):
                Lock(str(tmp_path))
        finally:
            child.kill()
    assert Lock(str(tmp_path)).held


def test_a_lock_of_a_dead_process_is_taken_over_even_if_its_child_lives(tmp_path: Path) -> None:
    with started(LEAVE_A_CHILD, tmp_path) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
    try:
        lock = Lock(str(tmp_path))
        assert lock.held
        with pytest.raises(ConflictError):
            Lock(str(tmp_path))
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_lock_of_another_machine_is_not_taken_over(tmp_path: Path) -> None:
    lock = Lock(str(tmp_path))
    (tmp_path / "lock").write_text(json.dumps({"host": f"not-{platform.node()}", "pid": 2**22 + 1}))
    with pytest.raises(ConflictError, match=f"on not-{platform.node()}"):
        Lock(str(tmp_path))
    (tmp_path / "lock").write_text("")
    with pytest.raises(ConflictError, match="has not said"):
        Lock(str(tmp_path))
    lock.release()


def test_a_child_that_was_forked_does_not_hold_it(tmp_path: Path) -> None:
    lock = Lock(str(tmp_path))
    child = os.fork()
    if child == 0:
        os._exit(1 if lock.held else 0)
    assert os.waitpid(child, 0)[1] == 0
    assert lock.held


def test_it_says_that_another_process_had_it_and_has_ended(tmp_path: Path) -> None:
    mine = Lock(str(tmp_path))
    told = [mine.after_another]
    mine.pause()
    child = os.fork()
    if child == 0:
        Lock(str(tmp_path))
        os._exit(0)
    os.waitpid(child, 0)
    mine.resume()
    told.append(mine.after_another)
    mine.pause()
    mine.resume()
    told.append(mine.after_another)
    assert told == [False, True, False]
    mine.release()
