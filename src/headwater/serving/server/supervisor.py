"""The supervisor: binds the socket, loads the code once, and minds the processes that do the work.

It imports everything and loads the kernels before it forks, so that a worker is ready in moments and all of them share
the pages of the code. It starts no thread and opens no object storage before that: neither survives a fork. All workers
take connections from one listening socket, and another process, the follower, publishes new versions.

- A child that dies is started again, at once if it lived for a while, and later and later if it did not.
- SIGTERM and SIGINT end all children gracefully, and after a while by force.
- SIGHUP reads the configuration again: new workers are started with it, and the old ones end when these are ready.
- When the supervisor itself dies, however that happens, its children end: each of them reads from a pipe whose other
  end only the supervisor holds.

Signals only write to a pipe; everything is decided in one loop.
"""

from __future__ import annotations

import gc
import logging
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headwater.base.errors import HeadwaterError, SetupError
from headwater.serving.server.metrics import NUMBERS
from headwater.serving.server.shared_counters import SharedCounters

if TYPE_CHECKING:
    from headwater.serving.server.follower import Publisher
    from headwater.serving.server.options import ServerOptions
    from headwater.serving.server.served import Backing

__all__ = ["Plan", "Supervisor", "bind", "preload"]

_log = logging.getLogger("headwater.serve")

_TABLES = 512
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0
_LONG_LIFE_S = 10.0
_FOLLOWER = "follower"
_FLIGHT = "flight"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a server does: its options, and how each process finds its tables.

    Parameters
    ----------
    options : ServerOptions
    make_backing : callable
        gives a worker its tables; called after the fork
    make_publishers : callable, optional
        gives the follower what it has to keep up to date; called after the fork. Without it there is no follower
    show_backing : callable, optional
        gives the tables to look at, and makes nothing that is not there; where it is None, ``make_backing`` does not
        either
    """

    options: ServerOptions
    make_backing: Callable[[], Backing]
    make_publishers: Callable[[], list[Publisher]] | None = None
    show_backing: Callable[[], Backing] | None = None


@dataclass(slots=True)
class _Child:
    """A process that was started: a worker in its region of the counters, the follower,
    or the one that answers Flight.
    """

    pid: int
    role: str
    region: int
    started: float
    generation: int
    ready: int = -1
    """The end of a pipe on which it says that it is ready; -1 after it has."""
    is_leaving: bool = False


@dataclass(slots=True)
class _Vacancy:
    """A child that has to be started: when, and after how long a pause the next time."""

    role: str
    region: int
    due: float
    pause_s: float = _FIRST_PAUSE_S


@dataclass(slots=True)
class _Wakeup:
    """The pipe that signals write to."""

    reads: socket.socket = field(init=False)
    writes: socket.socket = field(init=False)

    def __post_init__(self) -> None:
        self.reads, self.writes = socket.socketpair()
        self.reads.setblocking(False)
        self.writes.setblocking(False)

    def taken(self) -> bytes:
        try:
            return self.reads.recv(4096)
        except BlockingIOError:
            return b""


def bind(options: ServerOptions) -> socket.socket:
    """The listening socket of a server."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((options.host.strip("[]"), options.port))
    except OSError as error:
        listener.close()
        raise SetupError.cannot_listen(options.host, options.port, error.strerror or str(error)) from None
    listener.listen(2048)
    return listener


def preload() -> None:
    """Import everything that a worker needs, and load the machine code of the kernels.

    What is imported in the middle of a request holds up all requests of its worker.
    """
    import prometheus_client.core
    import prometheus_client.openmetrics.exposition  # noqa: F401
    import pyarrow as pa
    import pyarrow.parquet
    import uvloop  # noqa: F401

    from headwater.serving.server import worker  # noqa: F401
    from headwater.serving.server.warming import load_kernels

    pa.array([""])  # imports pandas, where it is installed: half a second
    load_kernels()


class Supervisor:
    """Runs a server until it is told to stop.

    Parameters
    ----------
    plan : Plan
    reload : callable, optional
        gives the plan anew, from a configuration that may have changed
    on_ready : callable, optional
        told once, when the first worker answers
    """

    def __init__(
        self,
        plan: Plan,
        *,
        reload: Callable[[], Plan] | None = None,
        on_ready: Callable[[str], None] | None = None,
    ) -> None:
        plan.options.check()
        self.plan, self._reload, self._on_ready = plan, reload, on_ready
        self.listener = bind(plan.options)
        self._most_workers = max(plan.options.workers, 1)
        # Two regions for each worker, since old and new ones overlap at a reload, and one for the follower.
        self.counters = SharedCounters(regions=2 * self._most_workers + 1, tables=_TABLES, numbers=NUMBERS)
        self._children: dict[int, _Child] = {}
        self._vacancies: list[_Vacancy] = []
        self._pauses: dict[tuple[str, int], float] = {}
        self._generation = 0
        self._is_stopping = False
        self._deadline = 0.0
        self._wakeup = _Wakeup()
        self._lifeline = os.pipe()  # children read the one end; the other is closed when this process is gone

    @property
    def url(self) -> str:
        host, port = self.listener.getsockname()[:2]
        return f"{self.plan.options.scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    # -- the loop --------------------------------------------------------------------------------------------------

    def run(self) -> int:
        """Serve until told to stop; gives the exit code."""
        preload()
        gc.collect()
        gc.freeze()  # what is loaded by now is shared with the children, and not written to by collections
        before = self._take_signals()
        try:
            now = time.monotonic()
            self._vacancies = [_Vacancy("worker", region, now) for region in range(self.plan.options.workers)]
            if self.plan.make_publishers is not None:
                self._vacancies.append(_Vacancy(_FOLLOWER, 2 * self._most_workers, now))
            if self.plan.options.flight_port is not None:
                self._vacancies.append(_Vacancy(_FLIGHT, -1, now))
            while not (self._is_stopping and not self._children):
                self._start_due()
                self._wait()
                self._reap()
                self._retire()
            return 0
        finally:
            self._kill_all()
            signal.set_wakeup_fd(-1)
            for number, handler in before.items():
                signal.signal(number, handler)
            self.listener.close()

    def _take_signals(self) -> dict[signal.Signals, Any]:
        numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
        before: dict[signal.Signals, Any] = {number: signal.signal(number, lambda *_: None) for number in numbers}
        signal.set_wakeup_fd(self._wakeup.writes.fileno(), warn_on_full_buffer=False)
        return before

    def _wait(self) -> None:
        """Sleep until a signal comes, a child says something, or something is due."""
        now = time.monotonic()
        times = [vacancy.due for vacancy in self._vacancies] if not self._is_stopping else [self._deadline]
        timeout = max(0.0, min(times) - now) if times else None
        readies = [child.ready for child in self._children.values() if child.ready >= 0]
        readable, _, _ = select.select([self._wakeup.reads.fileno(), *readies], [], [], timeout)
        for number in self._wakeup.taken():
            if number in (signal.SIGTERM, signal.SIGINT):
                self._stop(force=self._is_stopping)
            elif number == signal.SIGHUP:
                self._begin_reload()
        for child in self._children.values():
            if child.ready in readable:
                self._became_ready(child)
        if self._is_stopping and time.monotonic() > self._deadline:
            self._stop(force=True)

    def _became_ready(self, child: _Child) -> None:
        said = os.read(child.ready, 16)
        os.close(child.ready)
        child.ready = -1
        if said and self._on_ready is not None:
            told, self._on_ready = self._on_ready, None
            told(self.url)

    # -- children --------------------------------------------------------------------------------------------------

    def _start_due(self) -> None:
        now = time.monotonic()
        due = [] if self._is_stopping else [vacancy for vacancy in self._vacancies if vacancy.due <= now]
        for vacancy in due:
            self._vacancies.remove(vacancy)
            self._start(vacancy)

    def _start(self, vacancy: _Vacancy) -> None:
        reads, writes = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reads)
            self._become(vacancy, writes)
        os.close(writes)
        self._children[pid] = _Child(pid, vacancy.role, vacancy.region, time.monotonic(), self._generation, reads)
        self._pauses[vacancy.role, vacancy.region] = vacancy.pause_s

    def _become(self, vacancy: _Vacancy, ready: int) -> None:
        """What a child does with its life; never returns."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            self._wakeup.reads.close()
            self._wakeup.writes.close()
            os.close(self._lifeline[1])
            for child in self._children.values():
                if child.ready >= 0:
                    os.close(child.ready)
            if vacancy.role == _FOLLOWER:
                from headwater.serving.server.follower import run_follower

                self.listener.close()
                assert self.plan.make_publishers is not None
                run_follower(
                    self.plan.make_publishers, self.counters, vacancy.region, parent=self._lifeline[0], ready=ready
                )
            elif vacancy.role == _FLIGHT:
                from headwater.serving.server.flight import run_flight

                self.listener.close()
                os.close(ready)
                run_flight(self.plan.options, self.plan.make_backing, parent=self._lifeline[0])
            else:
                from headwater.serving.server.worker import run_worker

                run_worker(
                    self.plan.options,
                    self.plan.make_backing,
                    self.counters,
                    vacancy.region,
                    self.listener,
                    parent=self._lifeline[0],
                    ready=ready,
                )
            code = 0
        except HeadwaterError as error:
            _log.error("%s", error)
        except BaseException:  # noqa: BLE001 (the last frame of a process)
            _log.exception("a %s failed", vacancy.role)
        finally:
            logging.shutdown()
            os._exit(code)

    def _reap(self) -> None:
        """Take note of children that have ended, and plan to start them again."""
        for pid in list(self._children):
            try:
                done, status = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                done, status = pid, 0
            if done != pid:
                continue
            child = self._children.pop(pid)
            if child.ready >= 0:
                os.close(child.ready)
            if self._is_stopping or child.is_leaving:
                continue
            lived = time.monotonic() - child.started
            pause = self._pauses.get((child.role, child.region), _FIRST_PAUSE_S)
            pause = _FIRST_PAUSE_S if lived > _LONG_LIFE_S else pause
            _log.error("%s %d ended (%s) after %.1f s", child.role, pid, _ending(status), lived)
            due = time.monotonic() + (0.0 if lived > _LONG_LIFE_S else pause)
            self._vacancies.append(_Vacancy(child.role, child.region, due, min(2 * pause, _LONGEST_PAUSE_S)))

    # -- stopping and reloading ------------------------------------------------------------------------------------

    def _stop(self, *, force: bool) -> None:
        if not self._is_stopping:
            self._is_stopping = True
            self.listener.close()  # nobody else may wait for an answer that would not come
            self._deadline = time.monotonic() + self.plan.options.drain_s + 2.0
        elif force:
            self._deadline = time.monotonic() + 1.0
        self._vacancies = []
        for child in self._children.values():
            _send(child.pid, signal.SIGKILL if force else signal.SIGTERM)

    def _begin_reload(self) -> None:
        """Start workers with the configuration as it is now; the others end when these are ready."""
        if self._reload is None or self._is_stopping:
            return
        try:
            plan = self._reload()
            plan.options.check()
        except HeadwaterError as error:
            _log.error("the configuration was not read again: %s", error)
            return
        if (plan.options.host, plan.options.port) != (self.plan.options.host, self.plan.options.port):
            _log.warning("another host or port takes effect when the server is started again")
        self.plan = plan
        self._generation += 1
        now = time.monotonic()
        self._vacancies = []
        taken = {child.region for child in self._children.values()}
        free = [region for region in range(2 * self._most_workers) if region not in taken]
        workers = min(plan.options.workers, len(free))
        if workers < plan.options.workers:
            _log.warning("%d workers are started; more need a restart of the server", workers)
        self._vacancies = [_Vacancy("worker", region, now) for region in free[:workers]]
        for child in self._children.values():  # there is one of each at a time: it is replaced when it has ended
            if child.role == _FLIGHT or (child.role == _FOLLOWER and plan.make_publishers is not None):
                _send(child.pid, signal.SIGTERM)

    def _retire(self) -> None:
        """End workers of earlier generations once all of this one are ready."""
        old = [c for c in self._children.values() if c.role == "worker" and c.generation < self._generation]
        new = [c for c in self._children.values() if c.role == "worker" and c.generation == self._generation]
        if not old or not new or any(c.ready >= 0 for c in new) or any(v.role == "worker" for v in self._vacancies):
            return
        for child in old:
            if not child.is_leaving:
                child.is_leaving = True
                _send(child.pid, signal.SIGTERM)

    def _kill_all(self) -> None:
        for pid in self._children:
            _send(pid, signal.SIGKILL)
        for pid in list(self._children):
            os.waitpid(pid, 0)
        self._children = {}
        os.close(self._lifeline[1])
        os.close(self._lifeline[0])


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _ending(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"by signal {os.WTERMSIG(status)}"
    return f"with code {os.WEXITSTATUS(status)}"
