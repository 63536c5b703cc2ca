"""The prompt of `headwater sql`: through prompt_toolkit's own pipe, and through a real terminal."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from tests.waiting import PATIENCE_S

import headwater as hw
from headwater.base.errors import InputError
from headwater.cli._completion import SqlCompleter, SqlLexer
from headwater.cli._execution import Runner
from headwater.cli._formats import Printer
from headwater.cli._prompt import Prompt, history_path
from headwater.cli._screen import Screen

ENTER, CTRL_C, CTRL_D, TAB = "\r", "\x03", "\x04", "\t"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def lake(tmp_path: Path) -> hw.Lake:
    lake = hw.connect(tmp_path / "lake")
    lake.write("orders", pa.table({"id": [1, 2], "amount": [1.5, None]}))
    lake.write("sales.cards", [{"number": 1}])
    return lake


def typed(lake: hw.Lake, keys: str, *, format_: str = "jsonl") -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    printer = Printer(Screen(out=out, err=err), format_)
    with create_pipe_input() as keyboard:
        keyboard.send_text(keys)
        code = Prompt(Runner(lake), printer, keyboard=keyboard, display=DummyOutput()).loop()
    return code, out.getvalue(), err.getvalue().partition("\n")[2]


def test_statements_run_at_the_semicolon(lake: hw.Lake) -> None:
    keys = f"SELECT id{ENTER}FROM orders{ENTER}ORDER BY id;{ENTER}\\q{ENTER}"
    assert typed(lake, keys) == (0, '{"id": 1}\n{"id": 2}\n', "")


def test_a_semicolon_in_a_text_is_none(lake: hw.Lake) -> None:
    assert typed(lake, f"SELECT ';{ENTER}' AS a;{ENTER}{CTRL_D}") == (0, '{"a": ";\\n"}\n', "")


def test_several_statements_in_a_line(lake: hw.Lake) -> None:
    assert typed(lake, f"SELECT 1 AS a; SELECT 2 AS b;{ENTER}{CTRL_D}")[1] == '{"a": 1}\n{"b": 2}\n'


def test_an_error_is_said_and_the_prompt_goes_on(lake: hw.Lake) -> None:
    code, out, err = typed(lake, f"SELECT * FROM oders;{ENTER}SELECT 1 AS a;{ENTER}{CTRL_D}")
    assert (code, out) == (0, '{"a": 1}\n')
    assert err.startswith("error[E1101]: no table `oders`")


def test_ctrl_c_clears_what_is_typed(lake: hw.Lake) -> None:
    assert typed(lake, f"SELECT nonsense{CTRL_C}SELECT 1 AS a;{ENTER}{CTRL_D}") == (0, '{"a": 1}\n', "")


def test_commands(lake: hw.Lake) -> None:
    keys = ENTER.join(["\\d", "\\d orders", "\\timing", "\\engine datafusion", "\\format csv", "\\?", "\\x", "\\q", ""])
    code, out, err = typed(lake, keys)
    assert code == 0
    assert out == (
        "table        kind\n───────────  ─────\norders       table\nsales.cards  table\n"
        "column  type    nullable\n──────  ──────  ────────\n"
        "id      bigint  yes\namount  double  yes\n"
    )
    assert "timing is on\nengine is datafusion\nformat is csv\n" in err
    assert "\\engine   who computes the rows" in err
    assert "error[E1001]: `command` is '\\\\x'" in err


def test_a_bad_choice_changes_nothing(lake: hw.Lake) -> None:
    _, out, err = typed(lake, f"\\engine oracle{ENTER}\\format parquet{ENTER}SELECT 1 AS a;{ENTER}{CTRL_D}")
    assert out == '{"a": 1}\n'
    assert "one of duckdb, datafusion, spark" in err
    assert "one of table, json, jsonl, csv" in err


def test_timing(lake: hw.Lake) -> None:
    _, _, err = typed(lake, f"\\timing{ENTER}SELECT 1;{ENTER}\\timing{ENTER}{CTRL_D}")
    assert re.fullmatch(r"timing is on\ntime: [\d,]+ ms\ntiming is off\n", err)


def test_json_is_a_document_for_each_statement(lake: hw.Lake) -> None:
    _, out, _ = typed(lake, f"SELECT 1 AS a;{ENTER}SELECT 2 AS a;{ENTER}{CTRL_D}", format_="json")
    assert out.count('"results"') == 2


def test_binary_formats_are_refused() -> None:
    with pytest.raises(InputError):
        Prompt(None, Printer(Screen(), "parquet"))  # type: ignore[arg-type]


def test_history_is_private_and_without_credentials(
    lake: hw.Lake, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cr3tFindMe")
    keys = [
        "SELECT 1 AS kept;",
        "SELECT 's3cr3tFindMe';",
        "SELECT 'aws_secret_access_key=abc';",
        "\\q",
        "",
    ]
    typed(lake, ENTER.join(keys))
    file = history_path()
    assert file == state / "headwater/sql_history"
    text = file.read_text()
    assert "kept" in text
    assert "FindMe" not in text
    assert "abc" not in text
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_machine_without_a_home(lake: hw.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    assert typed(lake, f"SELECT 1 AS a;{ENTER}{CTRL_D}")[1] == '{"a": 1}\n'


def completions(lake: hw.Lake, text: str) -> list[str]:
    completer = SqlCompleter(lake)
    return [c.text for c in completer.get_completions(Document(text), CompleteEvent(completion_requested=True))]


def test_completion(lake: hw.Lake) -> None:
    assert completions(lake, "SELECT * FROM ") == ["orders", "sales.cards"]
    assert completions(lake, "SELECT * FROM sa") == ["sales.cards"]
    assert completions(lake, "SELECT * FROM orders WHERE am") == ["amount"]
    assert completions(lake, "SELECT o.am")[:1] == []
    assert completions(lake, "SEL") == ["SELECT"]
    assert completions(lake, "sel") == ["select"]
    assert "date_add" in completions(lake, "SELECT date_")
    assert completions(lake, "\\e") == ["\\engine"]
    assert completions(lake, "\\engine d") == ["duckdb", "datafusion"]
    assert completions(lake, "\\d or") == ["orders"]


def test_completion_on_a_lake_that_does_not_answer(tmp_path: Path) -> None:
    lake = hw.connect("s3://bucket/lake", {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_ALLOW_HTTP": "true"})
    assert completions(lake, "SELECT * FROM ord") == ["order"], "the keyword, and no table"


def test_completion_sees_tables_that_were_made_here(lake: hw.Lake) -> None:
    completer = SqlCompleter(lake)
    assert completer.tables() == ["orders", "sales.cards"]
    lake.write("zebras", [{"id": 1}])
    completer.forget()
    assert completer.tables() == ["orders", "sales.cards", "zebras"]


def test_colours() -> None:
    line = SqlLexer().lex_document(Document("SELECT 'a\nb', 12 FROM t -- end"))
    assert line(0) == [("bold ansiblue", "SELECT"), ("", " "), ("ansigreen", "'a")]
    assert line(1)[0] == ("ansigreen", "b'")
    assert ("ansimagenta", "12") in line(1)
    assert line(1)[-1] == ("ansibrightblack italic", "-- end")
    assert line(2) == []


class Terminal:
    """A child on a real pseudo-terminal."""

    def __init__(self, *words: str) -> None:
        self.parent, child = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "headwater.cli", *words],
            stdin=child,
            stdout=child,
            stderr=child,
            env=os.environ | {"TERM": "xterm", "COLUMNS": "80", "LINES": "24", "NO_COLOR": "1"},
            start_new_session=True,
        )
        os.close(child)
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self.parent, text.encode())

    def wait_for(self, text: str, seconds: float = PATIENCE_S) -> None:
        deadline = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < deadline, f"waited for {text!r}, saw {self.seen!r}"
            if select.select([self.parent], [], [], 0.2)[0]:
                try:
                    data = os.read(self.parent, 65536).decode(errors="replace")
                except OSError:  # the child has gone
                    break
                if "\x1b[6n" in data:
                    self.type("\x1b[1;1R")  # a terminal says where its cursor is
                self.seen += re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", data)
        self.seen = self.seen.partition(text)[2]

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.parent)


@pytest.fixture
def terminal(lake: hw.Lake) -> Iterator[Terminal]:
    lake.write("n", pa.table({"i": range(1000)}))
    terminal = Terminal("sql", str(lake.location))
    yield terminal
    terminal.close()


@pytest.mark.long
def test_on_a_real_terminal(terminal: Terminal) -> None:
    terminal.wait_for("headwater>")
    terminal.type(f"SELECT count(*) AS how_many FROM orders;{ENTER}")
    terminal.wait_for("(1 row)")
    terminal.wait_for("headwater>")
    terminal.type(CTRL_D)
    assert terminal.process.wait(PATIENCE_S) == 0


@pytest.mark.long
def test_ctrl_c_stops_a_query_on_a_real_terminal(terminal: Terminal) -> None:
    terminal.wait_for("headwater>")
    terminal.type(f"\\format jsonl{ENTER}")
    terminal.wait_for("format is jsonl")
    terminal.wait_for("headwater>")
    joins = " CROSS JOIN ".join(f"n AS {name}" for name in "abcd")
    terminal.type(f"SELECT a.i FROM {joins};{ENTER}")
    terminal.wait_for('{"i": ')
    os.killpg(terminal.process.pid, signal.SIGINT)
    terminal.wait_for("was cancelled")
    terminal.wait_for("headwater>")
    terminal.type(f"SELECT 41 + 1 AS answer;{ENTER}")
    terminal.wait_for('{"answer": 42}')
    terminal.wait_for("headwater>")
    terminal.type(f"\\q{ENTER}")
    assert terminal.process.wait(PATIENCE_S) == 0
