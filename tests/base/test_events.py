"""Events reach those who asked, are shown the right way, and never break the work."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import timeit

import pytest

from headwater.base import events, settings


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock() -> Clock:
    return Clock()


def lines(stream: io.StringIO) -> list[str]:
    return stream.getvalue().splitlines()


def test_a_subscriber_sees_the_life_of_a_task(clock: Clock) -> None:
    hub = events.Hub(clock=clock, stream=io.StringIO())
    seen: list[events.Event] = []
    with hub.subscribe(seen.append), hub.task("merge orders", total=100, unit="rows") as work:
        clock.now += 1
        work.advance(40)
        work.advance(2)  # too soon after the last one to be told
        work.note("second file")
        clock.now += 1
        work.advance(58)
    assert [(e.kind, e.done, e.text, e.seconds) for e in seen] == [
        ("start", 0, "", 0.0),
        ("advance", 40, "", 1.0),
        ("note", 42, "second file", 1.0),
        ("advance", 100, "", 2.0),
        ("end", 100, "", 2.0),
    ]
    assert {(e.task, e.total, e.unit, e.failed) for e in seen} == {("merge orders", 100, "rows", False)}
    assert len({e.task_id for e in seen}) == 1
    assert work.done == 100


def test_a_failed_task_says_so_and_the_error_passes(clock: Clock) -> None:
    hub = events.Hub(clock=clock, stream=io.StringIO())
    seen: list[events.Event] = []
    hub.subscribe(seen.append)
    with pytest.raises(KeyError), hub.task("load"):
        raise KeyError("x")
    assert (seen[-1].kind, seen[-1].failed, seen[-1].text) == ("end", True, "KeyError")


def test_unsubscribing_stops_the_events(clock: Clock) -> None:
    hub = events.Hub(clock=clock, stream=io.StringIO())
    seen: list[events.Event] = []
    stop = hub.subscribe(seen.append)
    with hub.task("a") as work:
        stop()
        work.note("unheard")
    stop()
    assert [e.kind for e in seen] == ["start"]


def test_plain_lines_are_rare(clock: Clock) -> None:
    stream = io.StringIO()
    hub = events.Hub(clock=clock, stream=stream)
    with hub.task("merge orders", total=1_000_000, unit="rows") as work:
        for _ in range(50):
            clock.now += 1
            work.advance(20_000)
    assert lines(stream) == [
        "merge orders: running, 200,000 of 1,000,000 rows (20%), 10.0 s",
        "merge orders: running, 400,000 of 1,000,000 rows (40%), 20.0 s",
        "merge orders: running, 600,000 of 1,000,000 rows (60%), 30.0 s",
        "merge orders: running, 800,000 of 1,000,000 rows (80%), 40.0 s",
        "merge orders: running, 1,000,000 of 1,000,000 rows (100%), 50.0 s",
        "merge orders: done, 1,000,000 of 1,000,000 rows (100%), 50.0 s",
    ]


def test_quick_tasks_leave_no_line_and_slow_failures_do(clock: Clock) -> None:
    stream = io.StringIO()
    hub = events.Hub(clock=clock, stream=stream)
    with hub.task("quick"):
        clock.now += 2

    def slow_failure() -> None:
        with hub.task("slow") as work:
            clock.now += 11
            work.note("waiting for the lock")
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        slow_failure()
    hub.notice("the table has no checkpoint")
    assert lines(stream) == [
        "slow: waiting for the lock, 11.0 s",
        "slow: failed: BrokenPipeError, 11.0 s",
        "the table has no checkpoint",
    ]


def test_off_shows_nothing_but_still_tells_subscribers(clock: Clock) -> None:
    stream = Terminal()
    hub = events.Hub(clock=clock, stream=stream)
    seen: list[events.Event] = []
    with settings.override(progress="off"):
        with hub.task("silent") as work:
            clock.now += 60
            work.advance()
        hub.notice("silent")
        hub.subscribe(seen.append)
        hub.notice("heard")
    assert stream.getvalue() == ""
    assert [e.text for e in seen] == ["heard"]


def test_a_terminal_gets_bars_and_a_file_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    colors = {}
    for no_color in ("", "1"):
        monkeypatch.setenv("NO_COLOR", no_color)
        stream = Terminal()
        hub = events.Hub(stream=stream)
        with hub.task("merge [orders]", total=2, unit="rows") as work, hub.task("inner"):
            work.advance(1)
            work.note("[half]")
        hub.notice("a [notice]")
        text = stream.getvalue()
        assert "merge [orders]" in text
        assert "a [notice]" in text
        colors[no_color] = "\x1b[3" in text
    assert colors == {"": True, "1": False}


def test_lines_on_a_terminal_by_setting(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_PROGRESS", "lines")
    stream = Terminal()
    with events.Hub(clock=clock, stream=stream).task("t"):
        clock.now += 3
    assert lines(stream) == ["t: done, 3.0 s"]


def test_a_sink_that_raises_is_dropped_once(clock: Clock) -> None:
    hub = events.Hub(clock=clock, stream=io.StringIO())
    seen: list[events.Event] = []

    def broken(_event: events.Event) -> None:
        raise ZeroDivisionError

    hub.subscribe(broken)
    hub.subscribe(seen.append)
    with pytest.warns(RuntimeWarning, match="ZeroDivisionError"), hub.task("a") as work:
        work.note("goes on")
    with hub.task("b"):
        pass
    assert [e.kind for e in seen] == ["start", "note", "end", "start", "end"]


def test_a_closed_stream_breaks_nothing(clock: Clock) -> None:
    for stream in (io.StringIO(), Terminal()):
        stream.close()
        with events.Hub(clock=clock, stream=stream).task("a") as work:
            clock.now += 20
            work.advance()


def test_a_stream_that_closes_on_the_way_breaks_nothing(clock: Clock) -> None:
    stream = io.StringIO()
    work = events.Hub(clock=clock, stream=stream).task("a").__enter__()
    stream.close()
    clock.now += 20
    with pytest.warns(RuntimeWarning, match="closed file"):
        work.advance()
    work.__exit__(None, None, None)


def test_many_threads_lose_nothing() -> None:
    hub = events.Hub(stream=io.StringIO())
    seen: list[events.Event] = []
    hub.subscribe(seen.append)
    with hub.task("t", total=8_000) as work:

        def advance_often() -> None:
            for _ in range(1_000):
                work.advance()

        workers = [threading.Thread(target=advance_often) for _ in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert work.done == 8_000
    assert seen[-1].done == 8_000
    assert [e.done for e in seen] == sorted(e.done for e in seen)


def test_a_subscriber_may_use_events_itself() -> None:
    hub = events.Hub(stream=io.StringIO())
    seen: list[str] = []

    def answer(event: events.Event) -> None:
        seen.append(event.kind)
        if event.kind == "start" and event.task == "outer":
            with hub.task("inner"):
                pass

    hub.subscribe(answer)
    with hub.task("outer"):
        pass
    assert seen == ["start", "start", "end", "end"]


def test_off_costs_next_to_nothing() -> None:
    with settings.override(progress="off"), events.Hub().task("t") as work:
        assert timeit.timeit(work.advance, number=20_000) < 1.0  # 50 us each: generous, for a busy machine


def test_nothing_goes_to_stdout_and_rich_waits_for_bars() -> None:
    code = (
        "import sys\n"
        "from headwater.base import events\n"
        "events.notice('hello')\n"
        "with events.task('t', total=1) as work: work.advance()\n"
        "assert 'rich' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=_env())
    assert (done.stdout, done.stderr) == ("", "hello\n")


def _env() -> dict[str, str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("HEADWATER_")}
    return {**clean, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def test_a_total_that_becomes_known_later_gives_a_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_PROGRESS", "bars")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")
    ticks = iter(range(0, 1000, 1))
    stream = Terminal()
    hub = events.Hub(clock=lambda: float(next(ticks)), stream=stream)
    seen: list[tuple[int, int | None]] = []
    with (
        hub.subscribe(lambda event: seen.append((event.done, event.total))),
        hub.task("refresh v", unit="rows") as task,
    ):
        task.advance(7)
        task.expect(2_000)
        task.advance(500)
    assert seen == [(0, None), (7, None), (500, 2_000), (500, 2_000)]
    assert "refresh v" in stream.getvalue() and seen[-1] == (500, 2_000)
    assert events._bar_amount(events.Event("end", "t", 1, done=500, total=2_000, unit="rows")) == "500/2,000 rows  25%"
    assert events._bar_amount(events.Event("end", "t", 1, done=5, unit="rows")) == "5 rows"
