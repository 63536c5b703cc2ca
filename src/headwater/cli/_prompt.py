"""The prompt of `headwater sql`: statements are typed until `;`, and lines that begin with `\\` are commands.

Ctrl-C stops the statement that runs, or clears what is typed; Ctrl-D leaves. The prompt itself is drawn on stderr, so
that stdout holds rows only. What was typed is kept in the user's state folder, readable by the user alone; a statement
that holds a credential of the environment, or the name of one, is not kept.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import create_output

from headwater.base import settings
from headwater.base.errors import CancelledError, HeadwaterError, InputError
from headwater.cli._completion import COMMANDS, ENGINES, PROMPT_FORMATS, SqlCompleter, SqlLexer
from headwater.cli._script import is_complete, pieces_of
from headwater.cli._verbs import Exit

if TYPE_CHECKING:
    from prompt_toolkit.input import Input
    from prompt_toolkit.output import Output

    from headwater.cli._execution import Runner
    from headwater.cli._formats import Printer

__all__ = ["Prompt", "history_path"]

_SECRETS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


def history_path() -> Path:
    """Where what was typed is kept."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "headwater" / "sql_history"


class Prompt:
    """Reads statements and commands, and runs them one by one."""

    def __init__(
        self,
        runner: Runner,
        printer: Printer,
        *,
        timing: bool = False,
        keyboard: Input | None = None,
        display: Output | None = None,
    ) -> None:
        if printer.output is not None or printer.format not in PROMPT_FORMATS:
            raise InputError.bad_argument(
                "--format", printer.format, f"{', '.join(PROMPT_FORMATS)} at the prompt, without --output"
            )
        self._runner, self._printer, self._screen = runner, printer, printer.screen
        self._timing = timing
        self._completer = SqlCompleter(runner.lake)
        colour = settings.current().wants_color(sys.stderr)
        self._session: PromptSession[str] = PromptSession(
            history=_history(),
            completer=ThreadedCompleter(self._completer),
            lexer=SqlLexer() if colour else None,
            key_bindings=self._keys(),
            multiline=True,
            prompt_continuation="       ... ",
            complete_while_typing=False,
            input=keyboard,
            output=display or create_output(stdout=sys.stderr),
        )

    def loop(self) -> int:
        """Until the user leaves."""
        self._screen.say(f"{self._runner.lake.location}: end statements with ;   \\? says more")
        while True:
            try:
                text = self._session.prompt("headwater> ")
            except KeyboardInterrupt:
                continue
            except EOFError:
                return Exit.OK
            if text.strip() in ("\\q", "quit", "exit"):
                return Exit.OK
            try:
                self._handle(text)
            except HeadwaterError as error:
                self._screen.complain(error)
            except KeyboardInterrupt:
                self._screen.say("left behind: the engine did not stop at once")
            except Exception as error:  # noqa: BLE001 (a prompt outlives what is typed into it)
                self._screen.say(
                    f"unexpected {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
                )

    def _handle(self, text: str) -> None:
        if text.lstrip().startswith("\\"):
            self._command(*text.strip().split(maxsplit=1))
            return
        for piece in pieces_of(text, dialect=self._runner.dialect):
            begin = time.perf_counter()
            try:
                if self._runner.run(piece.text, self._printer.write):
                    self._screen.say("it was done before it could be stopped")
                self._printer.finish()
            except CancelledError as error:
                self._screen.say(error.message)
                return
            finally:
                self._completer.forget()
            if self._timing:
                self._screen.say(f"time: {1000 * (time.perf_counter() - begin):,.0f} ms")

    def _command(self, name: str, argument: str = "") -> None:
        argument = argument.strip().rstrip(";")
        if name == "\\?":
            self._screen.say("\n".join(f"{command:<9} {meaning}" for command, meaning in COMMANDS.items()))
        elif name == "\\d":
            self._describe(argument)
        elif name == "\\timing":
            self._timing = not self._timing
            self._screen.say(f"timing is {'on' if self._timing else 'off'}")
        elif name == "\\engine":
            self._runner.engine = _one_of(argument, ENGINES, "engine", self._runner.engine)
            self._screen.say(f"engine is {self._runner.engine}")
        elif name == "\\format":
            self._printer.format = _one_of(argument, PROMPT_FORMATS, "format", self._printer.format)
            self._screen.say(f"format is {self._printer.format}")
        else:
            raise InputError.bad_argument("command", name, f"one of {' '.join(COMMANDS)}")

    def _describe(self, table: str) -> None:
        from headwater.cli._listing import print_listing
        from headwater.query.rendering.terminal import type_name

        if not table:
            kinds = self._runner.lake.catalog.kinds()
            if not kinds:
                self._screen.say("no tables yet")
            print_listing(self._screen, ("table", "kind"), list(kinds.items()))
            return
        fields = self._runner.lake.table(table).snapshot.schema.fields
        rows = [(f.name, type_name(f.arrow.type), "yes" if f.nullable else "no") for f in fields]
        print_listing(self._screen, ("column", "type", "nullable"), rows)

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter")
        def enter(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            text = buffer.text
            done = not text.strip() or text.lstrip().startswith("\\") or text.strip() in ("quit", "exit")
            if done or is_complete(text, dialect=self._runner.dialect):
                buffer.validate_and_handle()
            else:
                buffer.insert_text("\n")

        return keys


def _one_of(given: str, known: Iterable[str], what: str, now: Any) -> Any:
    if not given:
        return now
    if given not in known:
        raise InputError.bad_argument(what, given, f"one of {', '.join(known)}")
    return given


class _FileHistory(FileHistory):
    """A file of the user's own, without credentials."""

    def store_string(self, string: str) -> None:
        if not _holds_credential(string):
            super().store_string(string)


def _holds_credential(text: str) -> bool:
    upper = text.upper()
    values = (os.environ.get(name) for name in _SECRETS)
    return any(name in upper for name in _SECRETS) or any(value in text for value in values if value)


def _history() -> History:
    path = history_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    except OSError:  # a machine without a home; the prompt works all the same
        return InMemoryHistory()
    return _FileHistory(str(path))
