"""Fault points cost nothing without a plan, and do what the plan says with one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from headwater import testing
from headwater.base import faults
from headwater.testing import FaultPlan, InjectedError, SimulatedCrash


def test_without_a_plan_nothing_happens() -> None:
    faults.point("anything", "at all")


def test_a_plan_records_what_was_reached() -> None:
    with FaultPlan() as plan:
        for name in ("a", "b", "a"):
            faults.point(name, name * 2)
    faults.point("a")
    assert plan.reached == ["a", "b", "a"]
    assert plan.details == ["aa", "bb", "aa"]
    assert plan.hits == {"a": 2, "b": 1}


def test_it_raises_at_the_nth_hit_only() -> None:
    with FaultPlan().raise_at("a.*", nth=2) as plan:
        faults.point("a.x")
        faults.point("b")
        with pytest.raises(InjectedError, match=r"injected at a\.y"):
            faults.point("a.y")
        faults.point("a.x")
    assert len(plan.reached) == 4
    with FaultPlan().raise_at("a", error=PermissionError("no")), pytest.raises(PermissionError, match="no"):
        faults.point("a")


def test_after_a_crash_every_point_crashes() -> None:
    with FaultPlan().crash_at("a") as plan:
        faults.point("before")
        for name in ("a", "cleanup"):
            with pytest.raises(SimulatedCrash):
                faults.point(name)
    assert not issubclass(SimulatedCrash, Exception), "except Exception must not catch it"
    assert plan.crashed_at == "a"


def test_it_delays() -> None:
    with FaultPlan().delay_at("slow", seconds=0.05):
        began = time.monotonic()
        faults.point("slow")
        assert time.monotonic() - began >= 0.05


def test_a_call_may_pass_points_itself() -> None:
    with FaultPlan().call_at("*", lambda name, _detail: faults.point(f"inside {name}")) as plan:
        faults.point("a")
        faults.point("b")
    assert plan.reached == ["a", "b"]


def test_hooks_do_not_nest_and_are_removed_after_errors() -> None:
    with pytest.raises(AssertionError, match="installed already"), FaultPlan(), FaultPlan():
        pytest.fail("two plans at once")
    with pytest.raises(ZeroDivisionError), FaultPlan().raise_at("a"):
        raise ZeroDivisionError
    faults.point("a")


def test_threads_are_counted_together() -> None:
    with FaultPlan() as plan:
        threads = [threading.Thread(target=faults.point, args=("a",)) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert plan.hits["a"] == 20


@pytest.mark.parametrize("text", ["a", "a:explode", "a:kill:x", "a:raise:1:2:3", "a:delay:1:z"])
def test_bad_plans_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"cannot read|invalid literal|could not convert"):
        FaultPlan.parse(text)


def test_plans_come_from_the_environment() -> None:
    assert repr(FaultPlan.from_env({})) == "FaultPlan(0 rules, 0 points reached)"
    with FaultPlan.from_env({"HEADWATER_FAULTS": "a:raise:2, b:crash, c:delay:0:0.001"}):
        faults.point("c")
        faults.point("a")
        with pytest.raises(InjectedError):
            faults.point("a")
        with pytest.raises(SimulatedCrash):
            faults.point("b")


def test_a_killed_process_is_dead() -> None:
    code = (
        "from headwater.base import faults\n"
        "from headwater.testing import FaultPlan\n"
        "with FaultPlan.from_env():\n"
        "    try:\n"
        "        for i in range(9):\n"
        "            print(i, flush=True)\n"
        "            faults.point('write')\n"
        "    finally:\n"
        "        print('clean-up')\n"
    )
    env = {**os.environ, "HEADWATER_FAULTS": "write:kill:3", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == -signal.SIGKILL
    assert done.stdout.split() == ["0", "1", "2"]


def test_the_testing_package_exports_what_it_says() -> None:
    assert testing.__all__ == sorted(testing.__all__, key=lambda name: (not name.isupper(), name))
    assert dir(testing) == sorted(testing.__all__)
    for name in testing.__all__:
        assert getattr(testing, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        testing.nothing  # noqa: B018


def test_the_contract_spreads_its_crashes_evenly() -> None:
    contract = testing.DerivedContract()
    points = [("p", nth) for nth in range(1, 101)]
    spread = contract._spread(points)
    assert len(spread) == contract.most_crashes // 2
    assert (spread[0], spread[-1]) == (points[0], points[-1])
    assert contract._spread(points[:3]) == points[:3]
