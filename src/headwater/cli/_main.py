"""From words to a verb: parsing, dispatch, and turning every failure into lines and an exit code.

Only the verb that was asked for is loaded; all of them only for the general help. ``--json`` and ``--debug``
may stand before or after the verb.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from headwater import __version__
from headwater.base.errors import HeadwaterError
from headwater.cli._screen import Screen
from headwater.cli._usage import UsageError
from headwater.cli._verbs import Exit, all_verbs, load_verb, verb_names

__all__ = ["run"]


def run(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    screen = Screen(as_json="--json" in words)
    try:
        return _dispatch(words, screen)
    except UsageError as error:
        screen.error(error)
        return Exit.USAGE
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output has gone (`| head`); nothing may be flushed into it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FAILED
    except Exception as error:  # noqa: BLE001 (the outermost frame: a person reads this)
        if "--debug" in words:
            traceback.print_exc()
        screen.error(error if isinstance(error, HeadwaterError) else _unexpected(error))
        return Exit.FAILED


def _dispatch(words: list[str], screen: Screen) -> int:
    name = next((word for word in words if not word.startswith("-")), None)
    if name is None:
        return _without_verb(words, screen)
    if name not in verb_names():
        raise UsageError.unknown_verb(name)
    verb = load_verb(name)
    parser = _Parser(prog=f"headwater {name}", description=_described(verb.SUMMARY), add_help=False, allow_abbrev=False)
    verb.configure(parser)
    _add_common(parser)
    words.remove(name)
    try:
        arguments = _parsed(parser, words)
    except _HelpAsked:
        screen.data(parser.format_help().rstrip())
        return Exit.OK
    screen.lake = getattr(arguments, "lake", None)
    return verb.run(arguments, screen)


def _parsed(parser: argparse.ArgumentParser, words: list[str]) -> argparse.Namespace:
    """The arguments, names behind options too; inside a project's folder the lake may be left out, and is the
    project's.
    """
    from headwater.cli._lake import is_place, project_above

    positional = [action.dest for action in parser._actions if not action.option_strings]
    root = project_above() if "lake" in positional else None
    if root is None:
        return parser.parse_intermixed_args(words)
    completed = _with_lake(words, root, positional.index("lake"))
    try:
        arguments = parser.parse_intermixed_args(words)
    except UsageError as error:
        try:
            return parser.parse_intermixed_args(completed)
        except UsageError as without:
            # What is missing beside the lake, which need not be given here.
            both = all("are required" in one.message for one in (error, without))
            raise without if both else error from None
    if is_place(arguments.lake):
        return arguments
    try:
        return parser.parse_intermixed_args(completed)
    except UsageError:
        return arguments


def _with_lake(words: list[str], root: str, place: int) -> list[str]:
    """The words with a lake at its place: behind the action in `headwater index status`, else in front."""
    plain = [at for at, word in enumerate(words) if not word.startswith("-")][:place]
    at = plain[-1] + 1 if plain else 0
    return [*words[:at], root, *words[at:]]


def _without_verb(words: list[str], screen: Screen) -> int:
    parser = _Parser(prog="headwater", add_help=False, allow_abbrev=False, usage="headwater <verb> [options]")
    _add_common(parser)
    parser.add_argument("-V", "--version", action="store_true", help="print the version")
    try:
        arguments = parser.parse_args(words)
    except _HelpAsked:
        return _print_verbs(parser, screen)
    if arguments.version:
        if screen.as_json:
            screen.document({"version": __version__})
        else:
            screen.data(f"headwater {__version__}")
        return Exit.OK
    if words:
        raise UsageError("E8002", "a verb is missing", hint=f"verbs: {', '.join(verb_names())}")
    return _print_verbs(parser, screen)


def _print_verbs(parser: argparse.ArgumentParser, screen: Screen) -> int:
    verbs = "\n".join(f"  {name:<10} {verb.SUMMARY}" for name, verb in all_verbs().items())
    parser.description = "Keeps everything derived from a Delta lake fresh, on Spark, from Python."
    usage, described, options = parser.format_help().rstrip().split("\n\n", 2)
    screen.data(
        f"{described}\n\n{usage}\n\nverbs:\n{verbs}\n\n{options}\n\n`headwater <verb> --help` says more about one."
    )
    return Exit.OK


def _add_common(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("everywhere")
    group.add_argument("--json", action="store_true", help="print one JSON document")
    group.add_argument("--debug", action="store_true", help="show tracebacks")
    group.add_argument("-h", "--help", action=_AskForHelp, nargs=0, help="print this")


class _HelpAsked(Exception):
    """The words ask what they could be."""


class _AskForHelp(argparse.Action):
    """Ends parsing where help is asked for: arguments that are required may be missing then."""

    def __call__(self, *_: object) -> None:
        raise _HelpAsked


def _described(summary: str) -> str:
    return summary[0].upper() + summary[1:] + "."


class _Parser(argparse.ArgumentParser):
    """argparse with our wording; its own errors become ours."""

    def error(self, message: str) -> NoReturn:
        options = [option for action in self._actions for option in action.option_strings]
        word = message.rpartition(" ")[2]
        near = difflib.get_close_matches(word, options, n=1) if "unrecognized" in message else []
        lead = f"did you mean `{near[0]}`? " if near else ""
        raise UsageError("E8003", message, hint=f"{lead}see `{self.prog} --help`")


def _unexpected(error: Exception) -> HeadwaterError:
    # Spark's exceptions carry a Java stack trace in their text; the first line is the part for people.
    text = re.split(r"\n|JVM stacktrace:", str(error).strip(), maxsplit=1)[0]
    return HeadwaterError(
        "E9001",
        f"unexpected {type(error).__name__}: {text}" if text else f"unexpected {type(error).__name__}",
        hint="run it again with --debug to see where",
    )
