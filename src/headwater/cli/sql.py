"""`headwater sql`: SQL on a lake, from the command line, a file, a pipe or a prompt.

Statements come from ``-c``, from ``-f``, from stdin where it is not a terminal, and otherwise from a prompt. Each
result is printed in turn. A script is read as a whole before its first statement runs, so that a misspelled one changes
nothing; a statement that fails ends the script, unless ``--keep-going``.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.base.errors import CancelledError, HeadwaterError, InputError, NotFoundError, StorageError
from headwater.cli._lake import add_lake, open_lake
from headwater.cli._screen import Screen
from headwater.cli._verbs import Exit

if TYPE_CHECKING:
    from headwater.cli._execution import Runner
    from headwater.cli._formats import Printer
    from headwater.cli._script import Piece

SUMMARY = "run SQL on a lake: one statement, a script, or a prompt"

_ENGINES = ("duckdb", "datafusion", "spark")
_FORMATS = ("table", "json", "jsonl", "csv", "parquet", "arrow")


def configure(parser: argparse.ArgumentParser) -> None:
    add_lake(parser, optional=True)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("-c", "--command", metavar="SQL", help="run this")
    source.add_argument("-f", "--file", metavar="SCRIPT", help="run the statements of a file (- is stdin)")
    parser.add_argument("--engine", choices=_ENGINES, default="duckdb", help="who computes the rows (default: duckdb)")
    parser.add_argument(
        "--dialect", choices=("spark", "native"), default="spark", help="native: the engine's own SQL (default: spark)"
    )
    parser.add_argument(
        "--param",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a value for :NAME; 5, 1.5, true, null and date'2024-05-01' are what they look like, else it is text",
    )
    parser.add_argument(
        "--format", choices=_FORMATS, help="how rows are printed (default: table, or what the ending of --output says)"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write the rows to a file")
    parser.add_argument("--max-rows", metavar="N", type=int, default=100, help="rows of a table (default: 100)")
    parser.add_argument("--timing", action="store_true", help="say how long each statement took")
    parser.add_argument("--keep-going", action="store_true", help="go on after a statement that failed")


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    screen.surface = "cli-sql"
    from headwater.cli._execution import Runner
    from headwater.cli._formats import Printer, format_of
    from headwater.cli._parameters import parse_parameters

    if arguments.json and arguments.format not in (None, "json"):
        raise InputError.bad_argument("--format", arguments.format, "json, or no --json")
    if arguments.max_rows < 0:
        raise InputError.bad_argument("--max-rows", arguments.max_rows, "a number of rows, 0 or more")
    parameters = parse_parameters(arguments.param)
    format_ = arguments.format or ("json" if arguments.json else format_of(arguments.output))
    printer = Printer(screen, format_, arguments.output, arguments.max_rows)
    printer.check()
    runner = Runner(open_lake(arguments), arguments.engine, arguments.dialect, parameters, screen.say)
    script = _script(arguments)
    if script is None:
        from headwater.cli._prompt import Prompt

        return Prompt(runner, printer, timing=arguments.timing).loop()
    return _run_script(script, runner, printer, arguments)


def _script(arguments: argparse.Namespace) -> str | None:
    """The text to run, or None for the prompt."""
    if arguments.command is not None:
        return str(arguments.command)
    if arguments.file not in (None, "-"):
        try:
            return Path(arguments.file).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise NotFoundError.object(arguments.file, str(Path.cwd())) from None
        except (OSError, UnicodeDecodeError) as error:
            raise StorageError.failed(arguments.file, str(error)) from None
    if arguments.file is None and sys.stdin.isatty() and not arguments.json:
        return None
    return sys.stdin.read()


def _run_script(script: str, runner: Runner, printer: Printer, arguments: argparse.Namespace) -> int:
    from headwater.cli._script import named_parameters, pieces_of

    pieces: list[Piece] = []
    current: Piece | None = None
    failures: list[HeadwaterError] = []
    try:
        pieces = pieces_of(script, dialect=runner.dialect)
        if runner.dialect == "spark" and (unused := set(runner.parameters) - named_parameters(script)):
            raise InputError.bad_argument("--param", min(unused), "a parameter that the SQL names")
        if not arguments.keep_going:
            for current in pieces:
                runner.read(current.text)
        for current in pieces:
            try:
                _run_piece(current, runner, printer, timing=arguments.timing)
            except HeadwaterError as error:
                if not arguments.keep_going or isinstance(error, CancelledError):
                    raise
                failures.append(_located(error, current, pieces, arguments.file))
                printer.screen.complain(error, debug=arguments.debug)
    except HeadwaterError as error:
        printer.finish(_located(error, current, pieces, arguments.file))
        printer.screen.complain(error, debug=arguments.debug)
        if isinstance(error, CancelledError):
            raise KeyboardInterrupt from None
        return Exit.FAILED
    except BaseException:
        printer.abandon()
        raise
    printer.finish(kept=failures)
    return Exit.FAILED if failures else Exit.OK


def _run_piece(piece: Piece, runner: Runner, printer: Printer, *, timing: bool) -> None:
    begin = time.perf_counter()
    late = runner.run(piece.text, printer.write)
    if timing:
        printer.screen.say(f"time: {1000 * (time.perf_counter() - begin):,.0f} ms")
    if late:
        raise KeyboardInterrupt


def _located(error: HeadwaterError, piece: Piece | None, pieces: list[Piece], file: str | None) -> HeadwaterError:
    """The error, which names the statement's line where there are several."""
    if piece is not None and len(pieces) > 1:
        place = f"statement {pieces.index(piece) + 1} of {len(pieces)}, line {piece.line}"
        place += f" of {file}" if file not in (None, "-") else ""
        error.where = f"{error.where}\n         {place}" if error.where else place
    return error
