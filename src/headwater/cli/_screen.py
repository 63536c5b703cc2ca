"""Where the command line writes: data to stdout, everything else to stderr.

Colour and tables appear on a terminal only, and not where NO_COLOR is set; elsewhere the same facts are plain
lines that `grep` and `cut` can take apart. rich is loaded only for a terminal.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from headwater.base import settings
from headwater.base.errors import HeadwaterError, Surface

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Screen"]


class Screen:
    """The two streams of one run, and whether its data is JSON."""

    def __init__(self, *, as_json: bool = False, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self.as_json = as_json
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self.surface: Surface = "cli"
        """In whose words errors say what to do: a verb that runs SQL sets its own."""
        self.lake: str | None = None
        """The lake that the command is about, as it was written."""

    @property
    def out(self) -> TextIO:
        """stdout, for data that comes in a stream."""
        return self._out

    @property
    def is_terminal(self) -> bool:
        """Whether data is read by a person: stdout is a terminal and is not JSON."""
        return self._out.isatty() and not self.as_json

    def data(self, text: str) -> None:
        """One piece of the answer, on stdout."""
        self._out.write(text + "\n")
        self._out.flush()

    def document(self, value: object) -> None:
        """The answer as JSON, on stdout."""
        self.data(json.dumps(value, indent=2, ensure_ascii=False, default=str))

    def say(self, text: str) -> None:
        """A message, on stderr."""
        self._err.write(text + "\n")
        self._err.flush()

    def worded(self, error: HeadwaterError, name: str | None = None) -> HeadwaterError:
        """The error, in the words of the command line; ``name`` is what it is about, where the command knows."""
        return error.on(self.surface, lake=None if self.lake is None else shlex.quote(self.lake), name=name)

    def error(self, error: HeadwaterError) -> None:
        """A failure: lines on stderr, and under ``--json`` also the document on stdout."""
        if self.as_json:
            self.document({"error": self.worded(error).as_dict()})
        self.complain(error)

    def complain(self, error: HeadwaterError, *, debug: bool = False) -> None:
        """A failure, on stderr only; ``debug`` shows where it was raised."""
        if debug:
            import traceback

            traceback.print_exception(error, file=self._err)
        self.say(self._painted(str(self.worded(error))))

    def console(self) -> Console:
        """rich on stdout, for a terminal."""
        from rich.console import Console

        return Console(file=self._out, no_color=not settings.current().wants_color(self._out), highlight=False)

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """Show on a terminal that something is under way."""
        if not (self.is_terminal and self._err.isatty()):
            yield
            return
        from rich.console import Console

        with Console(file=self._err, no_color=not settings.current().wants_color(self._err)).status(text):
            yield

    def _painted(self, text: str) -> str:
        if not settings.current().wants_color(self._err):
            return text
        lines = text.split("\n")
        head, colon, rest = lines[0].partition(":")
        lines[0] = f"\x1b[1;31m{head}{colon}\x1b[0m\x1b[1m{rest}\x1b[0m"
        return "\n".join(line.replace("  hint:", "  \x1b[36mhint:\x1b[0m", 1) for line in lines)
