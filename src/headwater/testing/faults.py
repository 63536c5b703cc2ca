"""Fault plans: make a named point of the code fail, wait, or take the process down.

Code that writes calls `headwater.base.faults.point` wherever a failure would matter. A `FaultPlan` listens there. It
records which points were reached, and at the nth hit of a point it

- **raises** an error (`InjectedError`, an OSError, unless told otherwise), as failing storage does;
- **crashes**: raises `SimulatedCrash`, which ``except Exception`` does not catch, and goes on raising it at every later
  point, so that clean-up code cannot write what a dead process would not have written;
- **kills** this very process with SIGKILL, for tests that run it in a child process;
- **delays** by some seconds; or **calls** a function of yours, for instance to look at the world from outside.

The environment variable ``HEADWATER_FAULTS`` holds a plan as text, ``point:action[:nth[:seconds]]``, with commas
between rules: ``lake.commit.before_publish:kill:3``. Only this module reads it, and only when a child process calls
`FaultPlan.from_env`. A point may be a pattern: ``storage.*``.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Self

from headwater.base import faults

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from types import TracebackType

__all__ = ["FaultPlan", "InjectedError", "SimulatedCrash"]

VARIABLE = "HEADWATER_FAULTS"


class InjectedError(OSError):
    """The failure that a plan asked for."""


class SimulatedCrash(BaseException):
    """The process is dead as far as the code under test can tell."""


@dataclass
class _Rule:
    pattern: str
    nth: int
    action: Callable[[str, str], None]
    hits: int = 0


class FaultPlan:
    """What shall go wrong, where; and a record of the points that were reached.

    Examples
    --------
    >>> from headwater.base import faults
    >>> plan = FaultPlan().raise_at("write", nth=2)
    >>> with plan:
    ...     faults.point("write")
    ...     try:
    ...         faults.point("write")
    ...     except OSError as error:
    ...         print(error)
    injected at write
    >>> plan.reached
    ['write', 'write']
    """

    def __init__(self) -> None:
        self.reached: list[str] = []
        self.details: list[str] = []
        self.crashed_at: str | None = None
        self._rules: list[_Rule] = []
        self._lock = threading.Lock()
        self._inside = threading.local()
        self._installed: AbstractContextManager[None] | None = None

    # -- rules -----------------------------------------------------------------------------------------------------

    def call_at(self, point: str, call: Callable[[str, str], None], *, nth: int = 0) -> Self:
        """Call ``call(point, detail)`` at the nth hit; at every hit where nth is 0. Points inside it do not count."""
        assert nth >= 0, "hits are counted from 1"
        self._rules.append(_Rule(point, nth, call))
        return self

    def raise_at(self, point: str, *, nth: int = 1, error: BaseException | None = None) -> Self:
        """Raise ``error`` (default: an `InjectedError`) at the nth hit."""

        def fail(name: str, _detail: str) -> None:
            raise error if error is not None else InjectedError(f"injected at {name}")

        return self.call_at(point, fail, nth=nth)

    def crash_at(self, point: str, *, nth: int = 1) -> Self:
        """Raise `SimulatedCrash` at the nth hit, and at every point after it."""

        def crash(name: str, _detail: str) -> None:
            self.crashed_at = name

        return self.call_at(point, crash, nth=nth)

    def kill_at(self, point: str, *, nth: int = 1) -> Self:
        """End this process with SIGKILL at the nth hit."""
        return self.call_at(point, lambda _name, _detail: os.kill(os.getpid(), signal.SIGKILL), nth=nth)

    def delay_at(self, point: str, *, seconds: float, nth: int = 0) -> Self:
        """Sleep at the nth hit; at every hit where nth is 0."""
        return self.call_at(point, lambda _name, _detail: time.sleep(seconds), nth=nth)

    @classmethod
    def parse(cls, text: str) -> Self:
        """A plan from its text form.

        >>> FaultPlan.parse("a.b:raise:2, c:delay:0:0.5")
        FaultPlan(2 rules, 0 points reached)
        """
        plan = cls()
        for rule in filter(None, (part.strip() for part in text.split(","))):
            point, action, nth, seconds, *rest = [*rule.split(":"), "", "", ""][:5]
            count = int(nth or 1)
            if rest != [""] * len(rest) or action not in ("raise", "crash", "kill", "delay"):
                raise ValueError(
                    f"{VARIABLE}: cannot read {rule!r}; write point:raise|crash|kill|delay[:nth[:seconds]]"
                )
            if action == "delay":
                plan.delay_at(point, seconds=float(seconds or 1), nth=count)
            else:
                {"raise": plan.raise_at, "crash": plan.crash_at, "kill": plan.kill_at}[action](point, nth=count)
        return plan

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Self:
        """The plan in ``HEADWATER_FAULTS``: one without rules where that is not set."""
        return cls.parse((os.environ if environ is None else environ).get(VARIABLE, ""))

    # -- what happened ---------------------------------------------------------------------------------------------

    @property
    def hits(self) -> Counter[str]:
        """How often each point was reached."""
        return Counter(self.reached)

    def __repr__(self) -> str:
        return f"FaultPlan({len(self._rules)} rules, {len(self.reached)} points reached)"

    # -- installing ------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._installed = faults.installed(self._hit)
        self._installed.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._installed is not None, "the plan was not entered"
        self._installed.__exit__(kind, error, trace)
        self._installed = None

    def _hit(self, name: str, detail: str) -> None:
        if getattr(self._inside, "busy", False):
            return  # a rule's own work reaches points too
        with self._lock:
            due = self._due(name, detail)
        self._inside.busy = True
        try:
            for rule in due:
                rule.action(name, detail)
        finally:
            self._inside.busy = False
        if self.crashed_at is not None:
            raise SimulatedCrash(f"crashed at {self.crashed_at}")

    def _due(self, name: str, detail: str) -> list[_Rule]:
        self.reached.append(name)
        self.details.append(detail)
        due = []
        for rule in self._rules:
            if fnmatchcase(name, rule.pattern):
                rule.hits += 1
                if rule.nth in (0, rule.hits):
                    due.append(rule)
        return due
