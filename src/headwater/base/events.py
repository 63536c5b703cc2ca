"""Events: progress and notices, for whoever wants to know.

The problem: long work must say that it is alive, but a library that prints is a nuisance, and a progress bar that
fails must not fail the work. The idea: work is wrapped in a `task`, which sends small structured events to sinks.
What is shown depends on the setting ``progress``: bars on a terminal; elsewhere one plain line at most every 10 s
while the task runs, and one at its end if it took more than 2 s; or nothing. Subscribers get every event.

Invariants: nothing is ever written to stdout; a sink that raises is dropped with one warning, and the work goes on;
events of one task arrive in order, one at a time; with progress off and no subscribers a task costs a lock and an
addition. Colour follows ``Settings.wants_color`` (NO_COLOR).
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TextIO

from headwater.base import settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

__all__ = ["Event", "Hub", "Kind", "Task", "Unsubscribe", "hub", "notice", "subscribe", "task"]

Kind = Literal["start", "advance", "note", "end", "notice"]

_LINE_SECONDS = 10.0
_WORTH_A_LINE_SECONDS = 2.0
_ADVANCE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened in a task; a notice belongs to none, and has task_id 0.

    Attributes
    ----------
    kind : "start", "advance", "note", "end" or "notice"
    task : str
        what is being done
    task_id : int
    done : int
        how much is done so far, in ``unit``
    total : int or None
        how much there is to do, where that is known
    unit : str
    text : str
        of a note or a notice; for the end of a task that failed, the name of the error
    seconds : float
        since the task began
    failed : bool
        the task ended by an error
    """

    kind: Kind
    task: str
    task_id: int
    done: int = 0
    total: int | None = None
    unit: str = ""
    text: str = ""
    seconds: float = 0.0
    failed: bool = False


class _Sink(Protocol):
    def handle(self, event: Event) -> None: ...


class Unsubscribe:
    """What `subscribe` returns: call it, or use it as a ``with`` block, to stop."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop

    def __call__(self) -> None:
        self._stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop()


class Task:
    """Work under way. Use it as a ``with`` block; `advance` may be called from any thread."""

    def __init__(self, hub: Hub, name: str, total: int | None, unit: str) -> None:
        self.name = name
        self.total = total
        self.unit = unit
        self._hub = hub
        self._done = 0
        self._id = hub._next_id()
        self._lock = threading.Lock()
        self._sinks: list[_Sink] = []
        self._began = self._told = 0.0

    @property
    def done(self) -> int:
        """How much is done."""
        return self._done

    def advance(self, count: int = 1) -> None:
        """Say that ``count`` more units are done."""
        with self._lock:
            self._done += count
            if not self._sinks:
                return
            now = self._hub.clock()
            if now - self._told < _ADVANCE_SECONDS:
                return
            self._told = now
        self._send("advance")

    def expect(self, total: int | None) -> None:
        """Say how much there is to do, where that becomes known later or changes; what was done before does not count
        any more.
        """
        with self._lock:
            self._done, self.total = 0, total

    def note(self, text: str) -> None:
        """Say something about this task: which file it is at, why it retries."""
        if self._sinks:
            self._send("note", text=text)

    def __enter__(self) -> Self:
        self._sinks = self._hub._sinks_now()
        if self._sinks:
            self._began = self._told = self._hub.clock()
            self._send("start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sinks:
            self._send("end", text=kind.__name__ if kind else "", failed=kind is not None)
        self._sinks = []

    def _send(self, kind: Kind, *, text: str = "", failed: bool = False) -> None:
        with self._hub._lock:  # so that what is done never seems to shrink
            seconds = self._hub.clock() - self._began
            event = Event(kind, self.name, self._id, self._done, self.total, self.unit, text, seconds, failed)
            self._hub._deliver(self._sinks, event)


class Hub:
    """Where tasks and sinks meet; the module's functions use the one called `hub`.

    Parameters
    ----------
    clock : callable, optional
        seconds, rising; tests pass their own
    stream : text file, optional
        where to show progress (default: stderr, as it is at that moment)
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, stream: TextIO | None = None) -> None:
        self.clock = clock
        self._stream = stream
        self._subscribers: list[_Subscriber] = []
        self._display: tuple[object, _Sink | None] | None = None
        self._lock = threading.RLock()
        self._ids = itertools.count(1)

    def task(self, name: str, *, total: int | None = None, unit: str = "") -> Task:
        """Work that is called ``name``, of ``total`` units if that is known."""
        return Task(self, name, total, unit)

    def notice(self, text: str) -> None:
        """Tell the user something that belongs to no task; it is shown unless progress is off."""
        sinks = self._sinks_now()
        if sinks:
            self._deliver(sinks, Event("notice", "", 0, text=text))

    def subscribe(self, callback: Callable[[Event], None]) -> Unsubscribe:
        """Call ``callback`` with each event of the tasks that start from now on."""
        subscriber = _Subscriber(callback)
        with self._lock:
            self._subscribers = [*self._subscribers, subscriber]

        def stop() -> None:
            subscriber.active = False
            with self._lock:
                self._subscribers = [s for s in self._subscribers if s is not subscriber]

        return Unsubscribe(stop)

    def _next_id(self) -> int:
        return next(self._ids)

    def _sinks_now(self) -> list[_Sink]:
        mode = settings.current().progress
        sinks: list[_Sink] = list(self._subscribers)
        if mode != "off":
            display = self._display_for(mode)
            if display is not None:
                sinks.append(display)
        return sinks

    def _display_for(self, mode: str) -> _Sink | None:
        stream = self._stream or sys.stderr
        if stream is None:  # a process without a console (pythonw)
            return None
        with self._lock:
            if self._display is None or self._display[0] != (mode, stream):
                self._display = ((mode, stream), None)
                with suppress(Exception):  # a closed stream, a strange terminal: show nothing
                    self._display = ((mode, stream), _make_display(mode, stream, self.clock))
            return self._display[1]

    def _deliver(self, sinks: list[_Sink], event: Event) -> None:
        with self._lock:
            for sink in tuple(sinks):
                try:
                    sink.handle(event)
                except Exception as error:  # noqa: BLE001 (a sink must not break the work, whatever it does)
                    self._drop(sinks, sink, error)

    def _drop(self, sinks: list[_Sink], sink: _Sink, error: Exception) -> None:
        with suppress(ValueError):
            sinks.remove(sink)
        self._subscribers = [s for s in self._subscribers if s is not sink]
        if self._display is not None and self._display[1] is sink:
            self._display = (self._display[0], None)
        with suppress(Exception):  # warnings may have been turned into errors
            warnings.warn(f"a progress sink failed and was dropped: {error!r}", RuntimeWarning, stacklevel=4)


class _Subscriber:
    def __init__(self, callback: Callable[[Event], None]) -> None:
        self._callback = callback
        self.active = True

    def handle(self, event: Event) -> None:
        if self.active:
            self._callback(event)


def _make_display(mode: str, stream: TextIO, clock: Callable[[], float]) -> _Sink:
    if mode == "bars" or (mode == "auto" and stream.isatty()):
        with suppress(ImportError):
            return _Bars(stream)
    return _Lines(stream, clock)


class _Lines:
    """One plain line now and then."""

    def __init__(self, stream: TextIO, clock: Callable[[], float]) -> None:
        self._stream = stream
        self._clock = clock
        self._told: dict[int, float] = {}

    def handle(self, event: Event) -> None:
        now = self._clock()
        if event.kind == "notice":
            self._write(event.text)
        elif event.kind == "start":
            self._told[event.task_id] = now
        elif event.kind == "end":
            self._told.pop(event.task_id, None)
            if event.seconds > _WORTH_A_LINE_SECONDS:
                self._write(f"{event.task}: {'failed: ' + event.text if event.failed else 'done'}{_amount(event)}")
        elif now - self._told.get(event.task_id, now) >= _LINE_SECONDS:
            self._told[event.task_id] = now
            self._write(f"{event.task}: {event.text or 'running'}{_amount(event)}")

    def _write(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()


def _amount(event: Event) -> str:
    unit = f" {event.unit}" if event.unit else ""
    whole = f" of {event.total:,}{unit} ({min(event.done / event.total, 1):.0%})" if event.total else unit
    amount = f", {event.done:,}{whole}" if event.done or event.total else ""
    return f"{amount}, {event.seconds:.1f} s"


def _bar_amount(event: Event) -> str:
    """What stands beside a bar: how much of how much, and the share.

    >>> _bar_amount(Event("advance", "refresh v", 1, done=500, total=2000, unit="rows"))
    '500/2,000 rows  25%'
    """
    if not event.total:
        return f"{event.done:,} {event.unit}" if event.done else ""
    return f"{event.done:,}/{event.total:,} {event.unit}  {min(event.done / event.total, 1):.0%}"


class _Bars:
    """Rich progress bars; they vanish when the last task ends."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        plain = not settings.current().wants_color(stream)
        self._console = Console(file=stream, no_color=plain, highlight=False)
        self._columns: tuple[Any, ...] = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[amount]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("{task.fields[text]}", markup=False),
        )
        self._make = Progress
        self._progress: Progress | None = None
        self._rows: dict[int, Any] = {}

    def handle(self, event: Event) -> None:
        if event.kind == "notice":
            self._console.print(event.text, markup=False)
            return
        if self._progress is None:
            self._progress = self._make(*self._columns, console=self._console, transient=True, refresh_per_second=8)
            self._progress.start()
        if event.task_id not in self._rows:
            self._rows[event.task_id] = self._progress.add_task(event.task, total=event.total, amount="", text="")
        row = self._rows[event.task_id]
        self._progress.update(row, completed=event.done, total=event.total, amount=_bar_amount(event))
        if event.text:
            self._progress.update(row, text=event.text)
        if event.kind == "end":
            self._end(event)

    def _end(self, event: Event) -> None:
        assert self._progress is not None, "a task that ends has begun"
        self._progress.remove_task(self._rows.pop(event.task_id))
        if not self._rows:
            self._progress.stop()
            self._progress = None


hub = Hub()


def task(name: str, *, total: int | None = None, unit: str = "") -> Task:
    """Work to show while it runs.

    Parameters
    ----------
    name : str
        what is being done, such as ``merge orders``
    total : int, optional
        how many units there are to do, where that is known
    unit : str, optional
        of what: ``rows``, ``files``, ``bytes``

    Examples
    --------
    >>> seen = []
    >>> with subscribe(lambda event: seen.append((event.kind, event.done, event.text))):
    ...     with task("merge orders", total=3, unit="rows") as work:
    ...         work.advance(3)
    ...         work.note("almost")
    >>> seen
    [('start', 0, ''), ('note', 3, 'almost'), ('end', 3, '')]
    """
    return hub.task(name, total=total, unit=unit)


def notice(text: str) -> None:
    """Tell the user something that belongs to no task; it is shown on stderr unless progress is off."""
    hub.notice(text)


def subscribe(callback: Callable[[Event], None]) -> Unsubscribe:
    """Call ``callback`` with every event of the tasks that start from now on; call the result to stop."""
    return hub.subscribe(callback)
