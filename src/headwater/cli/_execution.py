"""One statement, run so that Ctrl-C can stop it.

A signal reaches Python only between two of its own steps, and a query is one long step inside an engine. So the work is
done by another thread, and the main thread waits where a signal finds it: the first Ctrl-C asks the engine to stop, the
second one leaves the thread behind.
"""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.lakehouse import Lake
    from headwater.query.result import Result
    from headwater.query.run import Dialect, EngineName

__all__ = ["Runner"]


@dataclass(slots=True)
class Runner:
    """How statements are run: on which lake, by which engine, in which dialect, with which parameters."""

    lake: Lake
    engine: EngineName = "duckdb"
    dialect: Dialect = "spark"
    parameters: Mapping[str, object] = field(default_factory=dict)
    notify: Callable[[str], object] = sys.stderr.write

    def read(self, statement: str) -> None:
        """Read a statement without running it, so that a misspelled one is found before anything is changed."""
        if self.dialect == "spark":
            from importlib import import_module

            from headwater.sql.statements import read_script

            import_module("headwater.query.statements")
            read_script(statement, self._given(statement))

    def results(self, statement: str) -> Iterator[Result]:
        """The results of one statement, with the parameters that it names."""
        from headwater.query.run import run_script

        yield from run_script(
            self.lake, statement, engine=self.engine, dialect=self.dialect, parameters=self._given(statement)
        )

    def _given(self, statement: str) -> Mapping[str, object] | None:
        from headwater.cli._script import named_parameters

        if self.dialect != "spark":
            return self.parameters or None
        named = named_parameters(statement)
        return {name: value for name, value in self.parameters.items() if name in named} or None

    def run(self, statement: str, use: Callable[[Result], Any]) -> bool:
        """Run a statement and give its result to ``use``; an interrupt makes it raise `CancelledError`.

        The answer is whether an interrupt came too late: the statement was done.
        """
        held: list[Result] = []
        asked = threading.Event()

        def work() -> None:
            for result in self.results(statement):
                held.append(result)
                if asked.is_set():
                    result.cancel()
                with result:
                    use(result)

        def cancel() -> None:
            asked.set()
            if not held:
                self.notify("it will stop with its first rows; Ctrl-C again leaves it behind")
            for result in held:
                result.cancel()

        return _interruptible(work, cancel)


def _interruptible(work: Callable[[], None], cancel: Callable[[], None]) -> bool:
    if threading.current_thread() is not threading.main_thread():
        work()  # no signal comes here
        return False
    failed: list[BaseException] = []
    done = threading.Event()
    context = contextvars.copy_context()

    def body() -> None:
        try:
            context.run(work)
        except BaseException as error:  # noqa: BLE001 (it is raised again, by the thread that waits)
            failed.append(error)
        finally:
            done.set()

    threading.Thread(target=body, name="headwater-statement", daemon=True).start()
    interrupted = False
    while True:
        try:
            if done.wait(0.2):
                break
        except KeyboardInterrupt:
            if interrupted:
                raise
            interrupted = True
            cancel()
    if failed:
        raise failed[0]
    return interrupted
